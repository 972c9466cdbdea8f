//! Runs that see earlier visits: a user who trained with history notices nothing else to do.

use std::fs;
use std::path::Path;

use crate::{gct, home, json, refusal};

const TRAIN: &str = "train --data visits --task label:later --model gct --steps 12 --set validate_every=6 \
                     --set batch=8 --set model.width=16 --quiet";

/// Patients with three visits in the mean, and a run.
fn trained(history: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let (guard, home) = home();
    gct(&home, "synth --out visits --encounters 600 --visits 3 --quiet").assert().success();
    gct(&home, &format!("{TRAIN} {history} --out run")).assert().success();
    (guard, home)
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_command_sees_the_history_that_the_run_was_trained_with() {
    let (_guard, home) = trained("--history attention");
    let config = fs::read_to_string(home.join("run/config.toml")).unwrap();
    assert!(config.contains("[history]\naggregator = \"attention\"\nvisits = 20\n"), "{config}");
    let evaluated = json(&home, "evaluate run --split all --bootstrap 0");
    assert_eq!(evaluated["encounters"], 600);
    let subjects = evaluated["subjects"].as_u64().unwrap();
    assert!(subjects < 300, "{subjects}");
    json(&home, "predict run --split all --out all.jsonl");
    assert_eq!(lines(&home.join("all.jsonl")).len(), 600);
    let embedded = json(&home, "embed run --split all --what subjects --out subjects.parquet");
    assert_eq!(embedded["rows"].as_u64(), Some(subjects));
    json(&home, "calibrate run");
    gct(&home, "explain run").assert().success();
    gct(&home, "report run --out report --quiet").assert().success();
    // The last visit alone is another model of the same test.
    gct(&home, &format!("{TRAIN} --out alone")).assert().success();
    let compared = json(&home, "compare run alone --bootstrap 50");
    assert_eq!(compared["encounters"], json(&home, "evaluate alone --bootstrap 0")["encounters"]);
}

#[test]
fn a_run_is_resumed_with_its_history() {
    let (_guard, home) = trained("--history --set history.visits=4");
    let config = fs::read_to_string(home.join("run/config.toml")).unwrap();
    assert!(config.contains("aggregator = \"gru\"\nvisits = 4\n"), "{config}");
    gct(&home, "train --out run --resume --steps 15 --quiet").assert().success();
    let error = refusal(&home, "train --out run --resume --history cnn");
    assert!(error.contains("history.aggregator"), "{error}");
}

#[test]
fn history_that_makes_no_sense_is_refused() {
    let (_guard, home) = home();
    let train = "train --data data --task label:d1_m1 --out run --steps 2";
    for (flags, said) in [
        ("--history lstm", "unknown aggregator `lstm`"),
        ("--history gru", "no encounter of the training split has a time"),
        ("--history gru --set history.order=recorded", "has an earlier one of its subject"),
        ("--history gru --model logistic", "none or bag with logistic regression"),
        ("--history gru --set split.by=encounter", "none with a split by encounter"),
        ("--history gru --set history.visits=0", "a whole number from 1 to 10000"),
        ("--set history.aggregator=lstm", "unknown variant `lstm`"),
    ] {
        let error = refusal(&home, &format!("{train} {flags}"));
        assert!(error.contains(said), "{flags}: {error}");
        assert!(!home.join("run").exists(), "{flags}");
    }
    let error = refusal(&home, "train --data data --task graph_reconstruction --out run --history gru");
    assert!(error.contains("none in this task"), "{error}");
}
