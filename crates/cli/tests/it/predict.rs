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

#[test]
fn reasons_are_beside_each_row_in_every_format() {
    let (_guard, home) = trained("diagnosis_treatment");
    gct(&home, "predict run --why 2 --out why.jsonl").assert().success();
    gct(&home, "predict run --why 2 --out why.csv").assert().success();
    gct(&home, "predict run --why 2 --out why.parquet").assert().success();
    let lines = fs::read_to_string(home.join("why.jsonl")).unwrap();
    let table = fs::read_to_string(home.join("why.csv")).unwrap();
    assert!(table.lines().next().unwrap().ends_with(",why"), "{table}");
    for (line, record) in lines.lines().zip(table.lines().skip(1)) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let cell = record.split_once(",\"[").unwrap().1.strip_suffix('"').unwrap().replace("\"\"", "\"");
        let in_csv: serde_json::Value = serde_json::from_str(&format!("[{cell}")).unwrap();
        assert_eq!((&row["why"], row["why"].as_array().unwrap().len()), (&in_csv, 2));
        for change in row["why"].as_array().unwrap() {
            assert!(change["kind"].is_string() && change["code"].is_string(), "{change}");
            assert!(change["change"].is_f64() && change["log_odds_change"].is_f64(), "{change}");
        }
    }
    // New encounters have reasons too; those with fewer codes have fewer.
    fs::write(home.join("new.jsonl"), "{\"id\": \"E1\", \"diagnosis\": [\"D_1\"]}\n").unwrap();
    gct(&home, "predict run --data new.jsonl --why 5 --out new-why.jsonl").assert().success();
    let new = fs::read_to_string(home.join("new-why.jsonl")).unwrap();
    assert_eq!(new.matches("\"code\":\"D_1\"").count(), 2, "once for each label: {new}");
    for line in ["predict run --why 0 --out x.jsonl", "predict run --why 2 --meds --out x.parquet"] {
        refusal(&home, line);
    }
    assert!(!home.join("x.jsonl").exists() && !home.join("x.parquet").exists());
}
