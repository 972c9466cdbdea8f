use serde_json::Value;
use snapbox::str;

use crate::{gct, json, trained};

#[test]
fn prints_metrics_with_intervals_and_how_true_attention_is() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "evaluate run").assert().success().stderr_eq("").stdout_eq(str![[r#"
gct on graph_reconstruction, best weights, of step [..], 25 encounters of test

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
