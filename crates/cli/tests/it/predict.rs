use std::fs;

use snapbox::str;

use crate::{gct, json, names, refusal, trained};

#[test]
fn writes_the_same_file_with_any_number_of_threads() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "predict run --out one.parquet --threads 1").assert().success().stderr_eq("").stdout_eq(str![
        [r#"
one.parquet: [..] rows for [..] encounters

"#]
    ]);
    let written = json(&home, "predict run --out two.parquet --threads 2");
    let read = |name: &str| fs::read(home.join(name)).unwrap();
    assert_eq!(read("one.parquet"), read("two.parquet"));
    assert!(read("one.parquet").starts_with(b"PAR1"));
    assert_eq!(written["encounters"], json(&home, "evaluate run --bootstrap 0")["encounters"]);
    assert_eq!(names(&home), ["data", "one.parquet", "run", "two.parquet"]);
}

#[test]
fn a_lower_bound_of_probability_writes_more_pairs() {
    let (_guard, home) = trained("graph_reconstruction");
    let rows = |bound: &str| {
        let line = format!("predict run --out {bound}.parquet --min-probability {bound}");
        json(&home, &line)["rows"].as_u64().unwrap()
    };
    let (all, some, certain) = (rows("0"), rows("0.5"), rows("1"));
    assert!(all > some && some >= certain && all > 1000, "{all}, {some}, {certain}");
}

#[test]
fn labels_have_a_row_for_each_encounter_and_label() {
    let (_guard, home) = trained("diagnosis_treatment");
    let written = json(&home, "predict run --split all --out all.parquet");
    assert_eq!((&written["encounters"], &written["rows"]), (&300.into(), &600.into()));
    assert_eq!(written["split"], "all");
    let error = refusal(&home, "predict run --top 3 --out x.parquet");
    assert!(error.starts_with("error: --top is for runs that predict masked_diagnosis"), "{error}");
    let error = refusal(&home, "predict run --out all.parquet");
    assert!(error.starts_with("error: all.parquet already exists"), "{error}");
    gct(&home, "predict run --out all.parquet --force").assert().success();
}

#[test]
fn of_several_labels_each_has_a_row_and_meds_has_no_place_for_them() {
    let (_guard, home) = trained("labels:d2_m1,d1_m1");
    let written = json(&home, "predict run --split all --out all.csv");
    assert_eq!((&written["encounters"], &written["rows"]), (&300.into(), &600.into()));
    let table = fs::read_to_string(home.join("all.csv")).unwrap();
    let labels: Vec<&str> = table.lines().skip(1).map(|row| row.split(',').nth(3).unwrap()).collect();
    assert!(labels.chunks(2).all(|pair| pair == ["d2_m1", "d1_m1"]));
    let error = refusal(&home, "predict run --meds --out x.parquet");
    assert!(error.contains("the task is not to predict one label"), "{error}");
    let report = json(&home, "evaluate run --bootstrap 0");
    assert!(report["labels"]["d2_m1"].is_object() && report["labels"]["d1_m1"].is_object());
    gct(&home, "report run --out page.html --quiet").assert().success();
}

#[test]
fn guesses_of_a_hidden_diagnosis_are_as_many_as_wanted() {
    let (_guard, home) = trained("masked_diagnosis");
    let written = json(&home, "predict run --top 3 --out guesses.parquet");
    assert_eq!(written["rows"].as_u64().unwrap(), 3 * written["encounters"].as_u64().unwrap());
}
