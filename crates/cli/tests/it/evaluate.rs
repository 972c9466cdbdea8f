use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;
use snapbox::str;

use crate::{gct, json, refusal, trained};

#[test]
fn prints_metrics_with_intervals_and_how_true_attention_is() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "evaluate run").assert().success().stderr_eq("").stdout_eq(str![[r#"
gct on graph_reconstruction, best weights, of step [..], 25 encounters of test
[..] pairs of nodes of 25 subjects, of which [..] are connected ([..] %)

                                95 % interval
aucpr               0.[..]   0.[..] to 0.[..]
auroc               0.[..]   0.[..] to 0.[..]
accuracy            0.[..]   0.[..] to 0.[..]
log loss            0.[..]   0.[..] to 0.[..]
brier score         0.[..]   0.[..] to 0.[..]
calibration error   0.[..]   0.[..] to 0.[..]

attention                          block 1   block 2   block 3      mean
KL(attention || truth) [..].[..] [..].[..] [..].[..] [..].[..]
KL(truth || attention) [..].[..] [..].[..] [..].[..] [..].[..]
entropy [..].[..] [..].[..] [..].[..] [..].[..]
AUCPR of true edges by attention [..].[..] [..].[..] [..].[..] [..].[..]

"#]]);
}

#[test]
fn every_metric_lies_in_its_interval() {
    let (_guard, home) = trained("graph_reconstruction");
    let report = json(&home, "evaluate run --bootstrap 50");
    assert_eq!((&report["split"], &report["task"]), (&"test".into(), &"graph_reconstruction".into()));
    for metric in ["aucpr", "auroc", "accuracy", "log_loss", "brier_score", "calibration_error"] {
        let value = report[metric].as_f64().unwrap();
        let [low, high] = [0, 1].map(|end| report[format!("{metric}_interval")][end].as_f64().unwrap());
        assert!(low <= value && value <= high, "{metric}: {report}");
    }
    for metric in ["kl_attention_truth", "kl_truth_attention", "entropy", "edges_aucpr"] {
        assert_eq!(report["structure"][metric]["blocks"].as_array().unwrap().len(), 3, "{report}");
        assert!(report["structure"][metric]["mean"].is_f64());
    }
    let validation = json(&home, "evaluate run --split validation --bootstrap 0");
    assert_eq!(validation["aucpr_interval"], Value::Null);
    assert_ne!(validation["aucpr"], report["aucpr"]);
}

#[test]
fn several_labels_are_measured_together_and_one_by_one() {
    let (_guard, home) = trained("diagnosis_treatment");
    let report = json(&home, "evaluate run --split all --bootstrap 0");
    assert_eq!(report["encounters"], 300);
    let labels = report["labels"].as_object().unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), ["d1_m1", "d2_m1"]);
    let accuracy = |of: &Value| of["accuracy"].as_f64().unwrap();
    let mean = labels.values().map(accuracy).sum::<f64>() / 2.0;
    assert!((accuracy(&report) - mean).abs() < 1e-12, "{report}");
}

#[test]
fn counts_are_always_told() {
    let (_guard, home) = trained("diagnosis_treatment");
    let report = json(&home, "evaluate run --split all --bootstrap 0");
    assert_eq!((&report["predictions"], &report["subjects"]), (&600.into(), &300.into()));
    let labels = report["labels"].as_object().unwrap();
    let positives = labels.values().map(|of| of["positives"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(report["positives"], positives);
    assert_eq!(report["prevalence"], positives as f64 / 600.0);
    let (_guard, home) = trained("masked_diagnosis");
    let report = json(&home, "evaluate run --split all --bootstrap 0");
    assert_eq!((&report["predictions"], &report["positives"]), (&300.into(), &Value::Null));
}

#[test]
fn labels_are_looked_at_where_decisions_are_made() {
    let (_guard, home) = trained("diagnosis_treatment");
    let report = json(&home, "evaluate run --split all --bootstrap 20 --thresholds 0.001,0.999");
    for of in report["labels"].as_object().unwrap().values().chain([&report]) {
        let points = of["thresholds"].as_array().unwrap();
        let at = |point: usize, name: &str| points[point][name].as_f64();
        assert_eq!((points.len(), at(0, "sensitivity"), at(0, "npv")), (2, Some(1.0), None), "{points:?}");
        assert_eq!((at(1, "alerts_per_1000"), at(1, "ppv")), (Some(0.0), None));
        assert!(points[0]["ppv_interval"][0].is_f64());
        let bins = of["calibration"]["bins"].as_array().unwrap();
        let count: u64 = bins.iter().map(|bin| bin["count"].as_u64().unwrap()).sum();
        assert_eq!(of["predictions"], count);
        assert!(of["calibration"]["intercept_interval"][0].is_f64());
        assert_eq!(of["net_benefit"].as_array().unwrap().len(), 108);
    }
    let usual = json(&home, "evaluate run --split all --bootstrap 0");
    assert_eq!(usual["thresholds"].as_array().unwrap().len(), 7);
}

#[test]
fn thresholds_are_chosen_on_validation() {
    let (_guard, home) = trained("label:d1_m1");
    let chosen = |split: &str| {
        let line =
            format!("evaluate run --split {split} --bootstrap 0 --thresholds 0.5 --at sensitivity=0.6");
        json(&home, &line)["thresholds"][1].clone()
    };
    let (test, validation) = (chosen("test"), chosen("validation"));
    assert_eq!(
        (&test["chosen_for"], &validation["chosen_for"]),
        (&"sensitivity=0.6".into(), &"sensitivity=0.6".into())
    );
    assert_eq!(test["threshold"], validation["threshold"]);
    assert!(validation["sensitivity"].as_f64().unwrap() >= 0.6);
    let predicted = |line: &str| -> Vec<Value> {
        gct(&home, &format!("predict run --out p.jsonl --force {line}")).assert().success();
        let rows = fs::read_to_string(home.join("p.jsonl")).unwrap();
        rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect()
    };
    // It is the highest that does: on the validation split, one alert less would not reach it.
    let mut rows = predicted("--split validation");
    let chance = |row: &Value| row["predicted_boolean_probability"].as_f64().unwrap();
    rows.sort_by(|a, b| chance(b).total_cmp(&chance(a)));
    let positives = |rows: &[Value]| rows.iter().filter(|row| row["boolean_value"] == true).count();
    let reaches = |alerts: &usize| positives(&rows[..*alerts]) as f64 >= 0.6 * positives(&rows) as f64;
    let fewest = (0..=rows.len()).find(reaches).unwrap() as f64;
    let alerts = validation["alerts_per_1000"].as_f64().unwrap();
    assert!((alerts - 1000.0 * fewest / rows.len() as f64).abs() < 1e-9, "{validation} {fewest}");
    // What is predicted above it is what is counted above it.
    let threshold = &test["threshold"];
    let rows = predicted(&format!("--threshold {threshold}"));
    let alerts = rows.iter().filter(|row| row["predicted_boolean_value"] == true).count();
    let expected = 1000.0 * alerts as f64 / rows.len() as f64;
    assert!((test["alerts_per_1000"].as_f64().unwrap() - expected).abs() < 1e-9, "{test} {expected}");
    // On other data it is still chosen on the validation split of the run's own dataset.
    gct(&home, "synth --out other --encounters 100 --seed 1").assert().success();
    let other =
        json(&home, "evaluate run --data other --bootstrap 0 --at sensitivity=0.6 --include-training");
    assert_eq!(other["thresholds"][7]["threshold"], test["threshold"]);
    fs::remove_dir_all(home.join("data")).unwrap();
    let said = refusal(&home, "evaluate run --data other --at ppv=0.5 --include-training");
    assert!(said.contains("it needs the validation split that the run was trained with"), "{said}");
}

#[test]
fn text_has_thresholds_and_net_benefit_where_they_are_asked_for() {
    let (_guard, home) = trained("label:d1_m1");
    let line = "evaluate run --split all --thresholds 0.001 --at alerts=100 --net-benefit --quiet";
    gct(&home, line).assert().success().stdout_eq(str![[r#"
gct on label:d1_m1, best weights, of step [..], 300 encounters of all
300 labels of 300 subjects, of which [..] are positive ([..] %)

[..]
aucpr [..]
auroc [..]
accuracy [..]
log loss [..]
brier score [..]
calibration error [..]
calibration slope [..]
calibration intercept [..]

threshold[..]sensitivity[..]specificity[..]PPV[..]NPV   alerts per 1,000
0.001 [..] 1.0000[..] 0.0000[..] - [..] 1000.0
[..] 1.000 to 1.000 [..]
0.[..]
alerts=100 [..] to [..]
thresholds with an aim were chosen on the validation split

net benefit at[..]model[..]treat all   treat none
0.01 [..] 0.0000
0.02 [..] 0.0000
0.05 [..] 0.0000
0.1 [..] 0.0000
0.2 [..] 0.0000
0.3 [..] 0.0000
0.5 [..] 0.0000
...

"#]]);
}

/// Wards of the encounters of the dataset: the first 100 on one, the next 3 on another, the others on a
/// third, but for 50 that are not in the table.
fn wards(home: &Path) {
    gct(home, "embed run --split all --out all.jsonl").assert().success();
    let rows = fs::read_to_string(home.join("all.jsonl")).unwrap();
    let mut ids: Vec<String> = Vec::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let id = row["encounter_id"].as_str().unwrap().to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let mut table = "encounter_id,ward,bed\n".to_owned();
    for (number, id) in ids.iter().take(250).enumerate() {
        let ward = match number {
            0..100 => "east",
            100..103 => "attic",
            _ => "west",
        };
        writeln!(table, "{id},{ward},{number}").unwrap();
    }
    fs::write(home.join("wards.csv"), table).unwrap();
}

#[test]
fn subgroups_by_a_table_are_compared_with_everybody_else() {
    for task in ["diagnosis_treatment", "graph_reconstruction", "masked_diagnosis"] {
        let (_guard, home) = trained(task);
        wards(&home);
        let line = "evaluate run --split all --bootstrap 30 --by ward --table wards.csv";
        let all = json(&home, &format!("{line} --min-cell 0"));
        let groups = all["subgroups"].as_array().unwrap();
        let of = |name: &str| groups.iter().find(|group| group["group"] == name).unwrap();
        let counts = ["attic", "east", "west", "not recorded"].map(|name| of(name)["encounters"].as_u64());
        assert_eq!(counts, [Some(3), Some(100), Some(147), Some(50)], "{task}");
        // The metrics are means here: those of the groups, weighted, are those of all.
        let weighted = groups
            .iter()
            .map(|group| group["predictions"].as_f64().unwrap() * group["log_loss"].as_f64().unwrap());
        let mean = weighted.sum::<f64>() / all["predictions"].as_f64().unwrap();
        assert!((mean - all["log_loss"].as_f64().unwrap()).abs() < 1e-6, "{task}");
        // So is the gap: the group less the mean of the others.
        let east = of("east");
        let (loss, predictions) = (east["log_loss"].as_f64().unwrap(), east["predictions"].as_f64().unwrap());
        let total = all["predictions"].as_f64().unwrap();
        let rest = (total * mean - predictions * loss) / (total - predictions);
        assert!((east["log_loss_gap"].as_f64().unwrap() - (loss - rest)).abs() < 1e-6, "{task}");
        let [low, high] = [0, 1].map(|end| east["log_loss_gap_interval"][end].as_f64().unwrap());
        assert!(low <= loss - rest && loss - rest <= high, "{task}: {east}");
        // Three encounters are too few to be told, and so are those that would give them.
        let told = json(&home, line);
        let groups = told["subgroups"].as_array().unwrap();
        let of = |name: &str| groups.iter().find(|group| group["group"] == name).unwrap();
        assert_eq!(
            (&of("attic")["encounters"], &of("not recorded")["encounters"]),
            (&Value::Null, &Value::Null)
        );
        assert!(of("attic")["note"].as_str().unwrap().starts_with("not told"));
        assert!(of("attic")["log_loss"].is_null(), "{task}");
        gct(&home, &line.replace("--by ward", "--by ward --quiet")).assert().success();
    }
}

#[test]
fn what_makes_no_sense_is_refused_at_once() {
    let (_guard, home) = trained("diagnosis_treatment");
    wards(&home);
    fs::write(home.join("no_id.csv"), "ward,bed\neast,1\n").unwrap();
    fs::write(home.join("twice.csv"), "encounter_id,ward\nE1,east\nE1,west\n").unwrap();
    fs::write(home.join("others.csv"), "encounter_id,ward\nnobody,east\n").unwrap();
    let mut said = String::new();
    for line in [
        "--thresholds 0.1,1.5",
        "--thresholds NaN",
        "--at recall=0.8",
        "--at sensitivity=80",
        "--at ppv=much",
        "--at alerts=0",
        "--by sex",
        "--by sex --table wards.csv",
        "--by bed --table wards.csv",
        "--by ward --table no_id.csv",
        "--by ward --table twice.csv",
        "--by ward --table others.csv",
        "--by ward --table nowhere.csv",
    ] {
        write!(said, "{}", refusal(&home, &format!("evaluate run --quiet {line}"))).unwrap();
    }
    snapbox::assert_data_eq!(
        said,
        str![[r#"
error: setting `threshold`: 1.5 is not allowed; expected a number from 0 to 1
hint: change it where it was given: by a flag, with --set or in a file
error: setting `threshold`: NaN is not allowed; expected a number from 0 to 1
hint: change it where it was given: by a flag, with --set or in a file
error: unknown aim `recall`; known: sensitivity, specificity, ppv, alerts
hint: give one of the known names
error: setting `sensitivity`: 80 is not allowed; expected a number above 0, at most 1
hint: change it where it was given: by a flag, with --set or in a file
error: setting `ppv`: much is not allowed; expected a number, as in ppv=0.8
hint: change it where it was given: by a flag, with --set or in a file
error: setting `alerts`: 0 is not allowed; expected a number above 0, at most 1000
hint: change it where it was given: by a flag, with --set or in a file
error: setting `by`: sex is not allowed; expected a column of a table: the dataset has no context
hint: change it where it was given: by a flag, with --set or in a file
error: unknown name to group by `sex`; known: ward, bed
hint: give one of the known names
error: setting `by`: bed is not allowed; expected a name with at most 100 groups; found 251
hint: change it where it was given: by a flag, with --set or in a file
error: no_id.csv: column `encounter_id`: expected text, found no such column
hint: correct it where the data come from and make the file again; docs/data.md describes the columns
error: twice.csv: row 2: column `encounter_id`: occurs in an earlier row
hint: correct it where the data come from and make the file again; docs/data.md describes the columns
error: setting `by`: ward is not allowed; expected something that is recorded of an encounter that is evaluated
hint: change it where it was given: by a flag, with --set or in a file
error: cannot read nowhere.csv: No such file or directory (os error 2)
hint: check the spelling of the path, and that it is there

"#]]
    );
    let said = refusal(&home, "evaluate run --at sensitivity=0.6");
    assert!(said.contains("has no positive of the label `d2_m1`\nhint: aim at something else"), "{said}");
    for line in ["--table wards.csv", "--min-cell 5"] {
        assert!(refusal(&home, &format!("evaluate run {line}")).contains("--by <NAME,...>"), "{line}");
    }
    let (_guard, home) = trained("masked_diagnosis");
    for line in ["--thresholds 0.1", "--at ppv=0.5", "--net-benefit"] {
        let said = refusal(&home, &format!("evaluate run {line}"));
        assert!(said.contains("is for labels, and this run predicts masked diagnosis"), "{said}");
    }
}
