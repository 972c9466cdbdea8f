use std::fs;
use std::path::Path;

use serde_json::Value;
use snapbox::str;

use crate::{gct, json, learned, refusal, trained};

/// What is written for every encounter and label of the test split: its probability and the decision.
fn predicted(home: &Path, flags: &str) -> Vec<(f64, bool)> {
    let rows =
        gct(home, &format!("predict run --out - {flags}")).assert().success().get_output().stdout.clone();
    let row = |line: &str| -> (f64, bool) {
        let row: Value = serde_json::from_str(line).unwrap();
        (
            row["predicted_boolean_probability"].as_f64().unwrap(),
            row["predicted_boolean_value"].as_bool().unwrap(),
        )
    };
    String::from_utf8(rows).unwrap().lines().map(row).collect()
}

fn logit(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}

#[test]
fn says_what_changes_and_what_that_is_worth() {
    let (_guard, home) = learned();
    gct(&home, "calibrate run").assert().success().stderr_eq("").stdout_eq(str![[r#"
run: calibrated by platt; all commands use it, unless --raw is given

d1_m1, 9 positives among 53 encounters of validation
[..]before[..]after
log loss[..]
brier score[..]
calibration slope[..]
calibration intercept[..]

d2_m1, 5 positives among 53 encounters of validation
[..]before[..]after
log loss[..]
brier score[..]
calibration slope[..]
calibration intercept[..]

This is on the encounters that it was fitted to, where nearly any map looks good.
next: gct evaluate run

"#]]);
    let text = gct(&home, "evaluate run --bootstrap 0").assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(text).unwrap().contains("\ncalibrated by platt\n"));
}

#[test]
fn every_command_uses_it_unless_told_not_to() {
    let (_guard, home) = learned();
    let (evaluated, before) = (json(&home, "evaluate run"), predicted(&home, ""));
    assert_eq!(evaluated["calibrated"], Value::Null);
    let fitted = json(&home, "calibrate run");
    assert_eq!((&fitted["method"], &fitted["split"]), (&"platt".into(), &"validation".into()));
    let file: Value =
        serde_json::from_str(&fs::read_to_string(home.join("run/calibration.json")).unwrap()).unwrap();
    assert_eq!(file["labels"][1]["positives"], fitted["labels"][1]["positives"]);

    let calibrated = json(&home, "evaluate run");
    assert_eq!(calibrated["calibrated"], "platt");
    assert_ne!(calibrated["log_loss"], evaluated["log_loss"]);
    assert_eq!(
        calibrated["labels"]["d1_m1"]["auroc"], evaluated["labels"]["d1_m1"]["auroc"],
        "order is kept"
    );
    assert_eq!(json(&home, "evaluate run --raw"), evaluated, "the bits of before");

    let after = predicted(&home, "--threshold 0.2");
    assert_eq!(predicted(&home, "--raw"), before);
    for (at, ((raw, _), (probability, decision))) in before.iter().zip(&after).enumerate() {
        let map = &file["labels"][at % 2]["map"]["platt"];
        let expected = map["intercept"].as_f64().unwrap() + map["slope"].as_f64().unwrap() * logit(*raw);
        assert!((logit(*probability) - expected).abs() < 1e-4, "{raw} {probability}");
        assert_eq!(*decision, *probability > 0.2);
    }
    for (flags, expected) in [("", &after), ("--raw", &before)] {
        let explained = json(&home, &format!("explain run {flags}"));
        assert_eq!(explained["predictions"][0]["probability"], expected[0].0, "the first of the test split");
    }
    for (flags, expected) in [("", "\"calibrated\":\"platt\""), ("--raw", "\"calibrated\":null")] {
        gct(&home, &format!("report run --bootstrap 0 --force --out report.html {flags}")).assert().success();
        assert!(fs::read_to_string(home.join("report.html")).unwrap().contains(expected));
    }
}

#[test]
fn one_calibration_takes_the_place_of_another() {
    let (_guard, home) = learned();
    let raw = json(&home, "evaluate run --bootstrap 0");
    gct(&home, "calibrate run").assert().success();
    gct(&home, "calibrate run --method isotonic --json").assert().success();
    assert_eq!(json(&home, "evaluate run --bootstrap 0")["calibrated"], "isotonic");
    let once = fs::read(home.join("run/calibration.json")).unwrap();
    gct(&home, "calibrate run --method Isotonic --threads 1").assert().success();
    assert_eq!(fs::read(home.join("run/calibration.json")).unwrap(), once, "fitted to the model's own");
    gct(&home, "calibrate run --remove").assert().success().stdout_eq("run: the calibration is removed\n");
    gct(&home, "calibrate run --remove").assert().success().stdout_eq("run: there is no calibration\n");
    assert_eq!(json(&home, "evaluate run --bootstrap 0"), raw);
    assert_eq!(json(&home, "evaluate run --bootstrap 0 --raw"), raw, "--raw asks for what is so");
    // A folder with the file is still one that may be replaced.
    gct(&home, "calibrate run").assert().success();
    let settings = "--steps 2 --set batch=8 --set model.width=16 --quiet --force";
    gct(&home, &format!("train --data data --task d1_m1 --out run {settings}")).assert().success();
    assert!(!home.join("run/calibration.json").exists());
}

#[test]
fn a_calibration_of_other_weights_is_refused() {
    let (_guard, home) = learned();
    gct(&home, "calibrate run").assert().success();
    gct(&home, "train --out run --resume --steps 40 --quiet").assert().success();
    let expected = "error: run/calibration.json cannot be used: it was fitted to other weights than those that the \
                    run has now\nhint: fit it again with `gct calibrate RUN`, or use the probabilities as they are \
                    with --raw\n";
    for line in ["evaluate run", "predict run --out rows.csv", "explain run", "report run --out page.html"] {
        assert_eq!(refusal(&home, line), expected, "{line}");
    }
    assert!(!home.join("rows.csv").exists());
    gct(&home, "evaluate run --raw").assert().success();
    gct(&home, "calibrate run").assert().success();
    gct(&home, "evaluate run").assert().success();
}

#[test]
fn a_damaged_or_foreign_file_is_refused_and_can_be_replaced() {
    let (_guard, home) = learned();
    gct(&home, "calibrate run").assert().success();
    let (file, path) = (home.join("run/calibration.json"), "run/calibration.json cannot be used: ");
    let good = fs::read_to_string(&file).unwrap();
    for (text, problem) in [
        ("{", "EOF while parsing"),
        ("", "EOF while parsing"),
        (&good.replace("\"slope\": ", "\"slope\": -"), "it has a map that does not rise"),
        (&good.replace("d1_m1", "died"), "it is of other labels than the run"),
        (&good.replace("\"schema_version\": 1", "\"schema_version\": 7"), "it has version 7"),
        (&good.replace("\"positives\"", "\"negatives\""), "unknown field"),
    ] {
        fs::write(&file, text).unwrap();
        let said = refusal(&home, "evaluate run");
        assert!(said.contains(&format!("{path}{problem}")), "{said}");
        assert!(said.contains("hint: fit it again with `gct calibrate RUN`"), "{said}");
    }
    gct(&home, "evaluate run --raw --bootstrap 0").assert().success();
    gct(&home, "calibrate run").assert().success();
    assert_eq!(fs::read_to_string(&file).unwrap(), good);
}

#[test]
fn what_cannot_be_calibrated_is_said() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "calibrate run").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: the task `graph_reconstruction` cannot be calibrated: only the probabilities of labels are, each by a map of its own
hint: the run can be used as it is, with the probabilities of its model

"#]]);
    // Twenty encounters, of which two or so are validated on.
    gct(&home, "synth --out few --encounters 20").assert().success();
    let settings = "--steps 2 --set batch=8 --set model.width=16 --quiet";
    gct(&home, &format!("train --data few --task d1_m1 --out few-run {settings}")).assert().success();
    gct(&home, "calibrate few-run").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: the label `d1_m1` cannot be calibrated: none of [..] validation encounters is positive
hint: the run can be used as it is, with the probabilities of its model

"#]]);
    assert!(!home.join("few-run/calibration.json").exists());
    let said = refusal(&home, "calibrate run --method beta");
    assert!(said.contains("unknown method `beta`; known: platt, isotonic"), "{said}");
    for line in ["calibrate run --remove --method platt", "calibrate", "calibrate nowhere", "calibrate data"]
    {
        refusal(&home, line);
    }
}

#[test]
fn a_run_that_is_being_trained_is_left_alone() {
    let (_guard, home) = learned();
    let held = fs::File::options().read(true).write(true).open(home.join("run/run.json")).unwrap();
    held.lock().unwrap();
    for line in ["calibrate run", "calibrate run --remove"] {
        let said = refusal(&home, line);
        assert!(
            said.starts_with("error: run is being trained, tuned or calibrated by another process"),
            "{said}"
        );
    }
    assert!(!home.join("run/calibration.json").exists());
}
