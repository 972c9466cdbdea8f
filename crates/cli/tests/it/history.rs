//! Runs that see earlier visits: a user who trained with history notices nothing else to do.

use std::fs;
use std::path::Path;

use crate::{gct, home, json, refusal};

const TRAIN: &str = "train --data visits --task label:later --model gct --steps 100 --set validate_every=20 \
                     --set learning_rate=0.01 --set batch=8 --set model.width=16 --quiet";

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
    gct(&home, "train --out run --resume --steps 120 --quiet").assert().success();
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
        ("--set history.aggregator=lstm", "unknown name `lstm`"),
    ] {
        let error = refusal(&home, &format!("{train} {flags}"));
        assert!(error.contains(said), "{flags}: {error}");
        assert!(!home.join("run").exists(), "{flags}");
    }
    let error = refusal(&home, "train --data data --task graph_reconstruction --out run --history gru");
    assert!(error.contains("none in this task"), "{error}");
}

#[test]
fn explanations_tell_what_earlier_visits_do() {
    let (_guard, home) = trained("--history gru");
    let rows = {
        json(&home, "predict run --split all --why 4 --out all.jsonl");
        lines(&home.join("all.jsonl"))
    };
    // The last visit of a patient who has three or more.
    let of_patient = |a: &serde_json::Value, b: &serde_json::Value| a["subject_id"] == b["subject_id"];
    let patient = rows.chunk_by(of_patient).find(|visits| visits.len() >= 3).unwrap();
    let last = patient.last().unwrap();
    let id = last["encounter_id"].as_str().unwrap();
    let told = json(&home, &format!("explain run --encounter {id}"));
    let (visits, why) = (told["visits"].as_array().unwrap(), &told["attributions"][0]);
    let ids: Vec<&serde_json::Value> = visits.iter().map(|visit| &visit["encounter_id"]).collect();
    let earlier = patient.iter().rev().skip(1).map(|row| &row["encounter_id"]);
    assert!(ids.into_iter().eq(earlier), "{visits:?}");
    assert_eq!(why["visits"].as_array().unwrap().len(), visits.len());
    assert_eq!(why["probability"], last["predicted_boolean_probability"]);
    let strongest: Vec<_> = why["changes"].as_array().unwrap().iter().take(4).collect();
    for (row, change) in last["why"].as_array().unwrap().iter().zip(strongest) {
        assert_eq!((&row["visits_before"], &row["code"]), (&change["visits_before"], &change["code"]));
    }
    let shown = gct(&home, &format!("explain run --encounter {id} --top 1000")).assert().success();
    let text = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(text.contains(": what happens when one earlier visit is left out\nvisit "), "{text}");
    let days = |visit: &serde_json::Value| match visit["days_before"].as_i64().unwrap() {
        1 => "1 day".to_owned(),
        days => format!("{days} days"),
    };
    let latest = format!("1 visit before, {}", days(&visits[0]));
    let of_latest = text.lines().filter(|line| line.contains(&latest)).count();
    assert_eq!(of_latest, 1 + visits[0]["codes"].as_array().unwrap().len(), "{latest} in {text}");
    assert!(text.contains(&format!("2 visits before, {}", days(&visits[1]))), "{text}");
    // Pairs are of the visit asked about.
    let paired = json(&home, &format!("explain run --encounter {id} --pairs 3"));
    assert_eq!(paired["attributions"][0]["pairs"].as_array().unwrap().len(), 3);
    json(&home, "predict run --split all --why 2 --out all.parquet");
    json(&home, "predict run --split all --why 2 --out all.csv");
    let csv = fs::read_to_string(home.join("all.csv")).unwrap();
    assert!(csv.contains("[{\"\"visits_before\"\":"), "{}", csv.lines().nth(1).unwrap());
}

#[test]
fn new_patients_have_a_history_of_the_lines_before_them() {
    let (_guard, home) = trained("--history gru");
    let visit = |id: &str, start: &str| {
        format!(
            "{{\"id\": \"{id}\", \"subject_id\": \"S1\", \"start\": \"{start}\", \"diagnosis\": [\"D_1\"]}}\n"
        )
    };
    let [first, second] = [visit("A", "2026-01-20"), visit("B", "2026-03-01T08:30")];
    let predicted = |text: &str| {
        fs::write(home.join("new.jsonl"), text).unwrap();
        json(&home, "predict run --data new.jsonl --out out.jsonl --force");
        lines(&home.join("out.jsonl"))
    };
    let (both, alone) = (predicted(&(first.clone() + &second)), predicted(&second));
    let probability = "predicted_boolean_probability";
    assert_ne!(both[1][probability], alone[0][probability]);
    assert_eq!(alone[0]["prediction_time"], "2026-03-01T08:30:00");
    let told = json(&home, "explain run --data new.jsonl");
    assert_eq!(told["visits"], serde_json::json!([]));
    predicted(&(first.clone() + &second));
    let told = json(&home, "explain run --data new.jsonl --encounter B");
    assert_eq!(told["visits"][0]["encounter_id"], "A");
    assert_eq!(told["visits"][0]["days_before"], 40);
    assert_eq!(told["predictions"][0]["probability"], both[1][probability]);
    fs::write(home.join("wrong.jsonl"), second + &first).unwrap();
    let said = refusal(&home, "predict run --data wrong.jsonl --out wrong.csv");
    assert!(said.contains("line 2: it begins before an earlier line of its subject"), "{said}");
}
