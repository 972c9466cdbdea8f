use snapbox::str;

use crate::{gct, home, json, names};

#[test]
fn shows_the_parts_and_that_nobody_is_on_two_sides() {
    let (_home, home) = home();
    gct(&home, "split data").assert().success().stderr_eq("").stdout_eq(str![[r#"
part         encounters   subjects    d1_m1    d2_m1
train               [..]
validation          [..]
test                [..]
0 subjects in several parts

"#]]);
    let report = json(&home, "split data --split-by encounter --split-seed 4");
    let encounters = |part: &str| report[part]["encounters"].as_u64().unwrap();
    assert_eq!(encounters("train") + encounters("validation") + encounters("test"), 300);
}

#[test]
fn stratified_parts_have_the_label_in_equal_shares() {
    let (_home, home) = home();
    let report = json(&home, "split data --stratify d1_m1");
    let prevalence = |part: &str| report[part]["label_prevalence"]["d1_m1"].as_f64().unwrap();
    let encounters = |part: &str| report[part]["encounters"].as_f64().unwrap();
    let positives = ["train", "validation", "test"].map(|part| (prevalence(part) * encounters(part)).round());
    let total: f64 = positives.iter().sum();
    for (positives, share) in positives.iter().zip([0.8, 0.1, 0.1]) {
        assert!((positives - share * total).abs() <= 1.0, "{report:#}");
    }
}

#[test]
fn writes_a_file_once() {
    let (_home, home) = home();
    gct(&home, "split data --out split.parquet").assert().success();
    assert_eq!(names(&home), ["data", "split.parquet"]);
    gct(&home, "split data --out split.parquet").assert().code(2).stderr_eq(str![[r#"
error: split.parquet already exists
hint: choose another path, or replace it with --force

"#]]);
    gct(&home, "split data --out split.parquet --force").assert().success();
}

#[test]
fn an_unknown_label_lists_those_there_are() {
    let (_home, home) = home();
    gct(&home, "split data --stratify death").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: unknown label `death`; known: d1_m1, d2_m1
hint: give one of the known names

"#]]);
}
