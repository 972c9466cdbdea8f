use std::fs;
use std::path::Path;

use serde_json::Value;
use snapbox::str;

use crate::{gct, json, learned, refusal, trained};

const SMALL: &str =
    "--set steps=20 --set validate_every=10 --set model.width=16 --set learning_rate=0.01 --quiet";

/// Another run beside `run`.
fn train(home: &Path, out: &str, flags: &str) {
    let line = format!("train --data data --model gct --out {out} {SMALL} {flags}");
    gct(home, &line).assert().success();
}

fn metric<'r>(run: &'r Value, name: &str) -> &'r Value {
    run["metrics"].as_array().unwrap().iter().find(|metric| metric["metric"] == name).unwrap()
}

#[test]
fn prints_differences_with_intervals_and_p_values() {
    let (_guard, home) = learned();
    train(&home, "other", "--task diagnosis_treatment --seed 1");
    gct(&home, "compare run other --bootstrap 100").assert().success().stderr_eq("").stdout_eq(str![[r#"
diagnosis_treatment, 58 encounters of 58 subjects of test; the reference is run

[..]run    other   difference[..]95 % interval        p
aucpr              [..]
auroc              [..]
accuracy           [..]
log loss           [..]
brier score        [..]
calibration error  [..]

d1_m1[..]run    other   difference[..]95 % interval        p
aucpr              [..]
auroc              [..]
accuracy           [..]
log loss           [..]
brier score        [..]
calibration error  [..]

d2_m1[..]run    other   difference[..]95 % interval        p
aucpr              [..]
auroc              [..]
accuracy           [..]
log loss           [..]
brier score        [..]
calibration error  [..]

Intervals and p are of a paired bootstrap of 100 replicates over subjects; p is two-sided and at least 0.0198.
These are 18 differences: of so many, one in twenty would have p below 0.05 by chance. Name the one
that counts before you look, or hold each against 0.0028 (Bonferroni), which takes --bootstrap 719 or more.

"#]]);
}

#[test]
fn values_and_intervals_are_those_of_evaluate() {
    let (_guard, home) = learned();
    train(&home, "other", "--task diagnosis_treatment --seed 1");
    train(&home, "third", "--task diagnosis_treatment --seed 2");
    let compared = json(&home, "compare run other third --bootstrap 200");
    assert_eq!((&compared["split"], &compared["encounters"]), (&"test".into(), &58.into()));
    assert_eq!((&compared["task"], &compared["tests"]), (&"diagnosis_treatment".into(), &36.into()));
    for (at, run) in ["run", "other", "third"].iter().enumerate() {
        let (evaluated, of_run) = (json(&home, &format!("evaluate {run}")), &compared["runs"][at]);
        assert_eq!(of_run["name"], **run);
        for name in ["aucpr", "auroc", "accuracy", "log_loss", "brier_score", "calibration_error"] {
            let of_metric = metric(of_run, name);
            assert_eq!(of_metric["value"], evaluated[name]);
            assert_eq!(of_metric["interval"], evaluated[format!("{name}_interval")]);
            let difference = of_metric["difference"].as_f64();
            let expected = evaluated[name].as_f64().unwrap()
                - metric(&compared["runs"][0], name)["value"].as_f64().unwrap();
            assert_eq!(difference, (at > 0).then_some(expected));
            let [low, high] = [0, 1].map(|end| of_metric["difference_interval"][end].as_f64());
            let p = of_metric["p"].as_f64();
            assert_eq!(p.is_some(), at > 0);
            // What the interval leaves out has a small p, and the other way round.
            if let (Some(low), Some(high), Some(p)) = (low, high, p) {
                assert!(low <= high && p > 0.0 && p <= 1.0);
                assert!(if low > 0.0 || high < 0.0 { p < 0.07 } else { p > 0.03 }, "{low} {high} {p}");
            }
        }
        let labels = of_run["labels"].as_array().unwrap();
        assert_eq!(labels[1]["label"], "d2_m1");
        assert_eq!(labels[1]["metrics"][1]["value"], evaluated["labels"]["d2_m1"]["auroc"]);
    }
    assert_eq!(compared, json(&home, "compare run other third --bootstrap 200 --threads 1"));
}

#[test]
fn a_calibrated_run_is_compared_as_it_is() {
    let (_guard, home) = learned();
    train(&home, "other", "--task diagnosis_treatment --seed 1");
    let before = json(&home, "compare other run --bootstrap 20");
    gct(&home, "calibrate run").assert().success();
    let after = json(&home, "compare other run --bootstrap 20");
    assert_eq!(
        (&after["runs"][0]["calibrated"], &after["runs"][1]["calibrated"]),
        (&Value::Null, &"platt".into())
    );
    assert_ne!(metric(&before["runs"][1], "log_loss"), metric(&after["runs"][1], "log_loss"));
    assert_eq!(json(&home, "compare other run --bootstrap 20 --raw"), before);
}

#[test]
fn labels_in_common_are_compared() {
    let (_guard, home) = learned();
    train(&home, "second", "--task d2_m1");
    let compared = json(&home, "compare run second --bootstrap 20");
    assert_eq!(compared["runs"][0]["labels"], Value::Array(vec![]));
    let evaluated = json(&home, "evaluate run --bootstrap 20");
    assert_eq!(metric(&compared["runs"][0], "aucpr")["value"], evaluated["labels"]["d2_m1"]["aucpr"]);
    let evaluated = json(&home, "evaluate second --bootstrap 20");
    assert_eq!(metric(&compared["runs"][1], "aucpr")["value"], evaluated["aucpr"]);
}

#[test]
fn other_tasks_are_compared_in_their_metrics() {
    for (task, metrics, replicates) in [("graph_reconstruction", 6, 500), ("masked_diagnosis", 2, 2000)] {
        let (_guard, home) = trained(task);
        train(&home, "other", &format!("--task {task}"));
        let compared = json(&home, "compare run other");
        assert_eq!(compared["replicates"], replicates);
        let evaluated = json(&home, "evaluate other --bootstrap 0");
        let other = &compared["runs"][1];
        assert_eq!(other["metrics"].as_array().unwrap().len(), metrics);
        assert_eq!(metric(other, "accuracy")["value"], evaluated["accuracy"]);
    }
}

#[test]
fn predictions_of_another_program_stand_beside_a_run() {
    let (_guard, home) = learned();
    train(&home, "other", "--task diagnosis_treatment --seed 1");
    let expected = json(&home, "compare run other --bootstrap 50");
    for file in ["rows.csv", "rows.parquet"] {
        gct(&home, &format!("predict other --split all --out {file}")).assert().success();
        let got = json(&home, &format!("compare run --predictions theirs={file} --bootstrap 50"));
        assert_eq!((&got["runs"][1]["name"], &got["runs"][1]["model"]), (&"theirs".into(), &Value::Null));
        for name in ["aucpr", "auroc", "accuracy", "log_loss", "brier_score", "calibration_error"] {
            let [got, expected] = [&got, &expected].map(|of| metric(&of["runs"][1], name));
            for field in ["value", "difference", "p"] {
                let [got, expected] = [got, expected].map(|of| of[field].as_f64().unwrap());
                assert!((got - expected).abs() < 1e-5, "{name} {field}: {got} {expected}");
            }
        }
    }
    let rows = fs::read_to_string(home.join("rows.csv")).unwrap();
    let fewer: Vec<&str> = rows.lines().filter(|line| !line.ends_with('7')).collect();
    fs::write(home.join("fewer.csv"), fewer.join("\n")).unwrap();
    let said = refusal(&home, "compare run --predictions theirs=fewer.csv");
    assert!(said.starts_with("error: theirs cannot be compared with run: it lacks "), "{said}");
    fs::write(home.join("wrong.csv"), rows.replace("predicted_boolean_probability", "p")).unwrap();
    let said = refusal(&home, "compare run --predictions theirs=wrong.csv");
    assert!(
        said.contains(
            "wrong.csv: column `predicted_boolean_probability`: expected a number from 0 to 1, found no"
        ),
        "{said}"
    );
    for line in [
        "--predictions rows.csv",
        "--predictions =rows.csv",
        "--predictions a=",
        "--predictions a=nowhere.csv",
    ] {
        refusal(&home, &format!("compare run {line}"));
    }
}

#[test]
fn what_cannot_be_compared_is_said() {
    let (_guard, home) = learned();
    let said = |line: &str| refusal(&home, line).lines().next().unwrap().to_owned();
    assert_eq!(said("compare run"), "error: there is nothing to compare: one run is given");
    assert_eq!(said("compare run ./run"), "error: ./run is given twice");
    train(&home, "first", "--task d1_m1");
    train(&home, "second", "--task d2_m1");
    assert_eq!(
        said("compare first second"),
        "error: second cannot be compared with first: it predicts label:d2_m1, not label:d1_m1"
    );
    train(&home, "edges", "--task graph_reconstruction");
    let expected =
        "error: edges cannot be compared with run: it predicts graph_reconstruction, not diagnosis_treatment";
    assert_eq!(said("compare run edges"), expected);
    train(&home, "resplit", "--task d1_m1 --split-seed 1");
    let expected =
        "error: resplit cannot be compared with first: its split differs: `split.seed` is 1 instead of 0";
    assert_eq!(said("compare first resplit"), expected);
    gct(&home, "compare first resplit --split all --bootstrap 10").assert().success();
    gct(&home, "synth --preset appendix --out data2 --encounters 600 --seed 1").assert().success();
    let line = format!("train --data data2 --task d1_m1 --out elsewhere {SMALL}");
    gct(&home, &line).assert().success();
    assert!(said("compare first elsewhere").contains("/data2 does not hold the encounters of "));
    gct(&home, "compare first elsewhere --data data --split all --bootstrap 10").assert().success();
    let hint = "\nhint: compare runs of the same task, dataset, split settings and part of the split\n";
    assert!(refusal(&home, "compare first second").ends_with(hint));
}
