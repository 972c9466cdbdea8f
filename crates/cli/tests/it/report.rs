use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::{gct, home, json, names};

/// A short training of a small model.
fn train(home: &Path, task: &str, model: &str) {
    train_with(home, task, model, &format!("--out {task}-{model}"));
}

fn train_with(home: &Path, task: &str, model: &str, others: &str) {
    let width = if model == "shallow" { "" } else { "--set model.blocks=3" };
    gct(
        home,
        &format!(
            "train --data data --task {task} --model {model} --steps 20 --set validate_every=10 --set batch=8 \
             --set model.width=16 {width} {others} --quiet"
        ),
    )
    .assert()
    .success();
}

/// What is in a page.
fn data(page: &Path) -> Value {
    let html = fs::read_to_string(page).unwrap();
    let (_, rest) = html.split_once(r#"<script type="application/json" id="report">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn report(home: &Path, line: &str) -> Value {
    json(home, &format!("report {line} --out report.html --force"));
    data(&home.join("report.html"))
}

#[test]
fn a_page_has_what_the_other_commands_say() {
    let (_guard, home) = home();
    train(&home, "graph_reconstruction", "gct");
    train(&home, "graph_reconstruction", "shallow");
    let page = report(&home, "graph_reconstruction-gct graph_reconstruction-shallow");
    let evaluation = json(&home, "evaluate graph_reconstruction-gct");
    let run = &page["runs"][0];
    assert_eq!(run["figures"][0]["name"], "aucpr");
    assert_eq!(run["figures"][0]["value"], evaluation["aucpr"]);
    assert_eq!(run["figures"][0]["low"], evaluation["aucpr_interval"][0]);
    assert_eq!(run["data"]["asked"], evaluation["encounters"]);
    assert_eq!(run["structure"]["entropy"], evaluation["structure"]["entropy"]["blocks"]);
    assert_eq!(run["structure"]["blocks"], serde_json::json!(["P", "block 2", "block 3"]));
    let kinds: Vec<&Value> = run["layers"].as_array().unwrap().iter().map(|layer| &layer["kind"]).collect();
    assert_eq!(kinds, ["prior", "attention", "attention", "probability"]);
    assert_eq!(
        run["encounters"].as_array().unwrap().len() as u64,
        evaluation["encounters"].as_u64().unwrap()
    );
    assert!(page["paper"].as_array().unwrap().iter().any(|figure| figure["value"] == 0.5965));
    // Shallow mixes nothing, but says which pairs are connected.
    let shallow = &page["runs"][1];
    assert_eq!(shallow["layers"], serde_json::json!([{ "name": "answer", "kind": "probability" }]));
    assert_eq!(shallow["structure"], Value::Null);
}

#[test]
fn runs_are_compared_if_they_were_asked_the_same_about_the_same_encounters() {
    let (_guard, home) = home();
    train(&home, "graph_reconstruction", "gct");
    train(&home, "diagnosis_treatment", "gct");
    train_with(&home, "graph_reconstruction", "shallow", "--set split.seed=7 --out other-split");
    train(&home, "graph_reconstruction", "shallow");
    let runs = "graph_reconstruction-gct diagnosis_treatment-gct other-split graph_reconstruction-shallow --encounters 1";
    let groups = |page: &Value, part: &str| -> Vec<u64> {
        page[part].as_array().unwrap().iter().map(|one| one["group"].as_u64().unwrap()).collect()
    };
    let page = report(&home, runs);
    assert_eq!(groups(&page, "runs"), [0, 1, 2, 0]);
    let of_paper = groups(&page, "paper");
    assert!([0, 1, 2].iter().all(|group| of_paper.contains(group)), "{of_paper:?}");
    let page = report(&home, &format!("{runs} --split all"));
    assert_eq!(groups(&page, "runs"), [0, 1, 0, 0], "all are all, however they are split");
}

#[test]
fn each_kind_of_task_has_a_page() {
    let (_guard, home) = home();
    for (task, asks) in [("masked_diagnosis", "diagnosis"), ("diagnosis_treatment", "labels")] {
        train(&home, task, "transformer");
        let page = report(&home, &format!("{task}-transformer --encounters 5"));
        let run = &page["runs"][0];
        assert_eq!(run["asks"], asks);
        let encounters = run["encounters"].as_array().unwrap();
        assert_eq!(encounters.len(), 5);
        for encounter in encounters {
            assert_eq!(encounter["hidden"].is_u64(), asks == "diagnosis");
            assert!(encounter["loss"].as_f64().unwrap() > 0.0);
            assert!(!encounter["answers"].as_array().unwrap().is_empty());
        }
        assert_eq!(run["curves"].as_array().unwrap().is_empty(), asks == "diagnosis");
    }
}

#[test]
fn labels_come_with_their_use_and_answers_with_reasons() {
    let (_guard, home) = home();
    // Frequent labels: a threshold is chosen among the positives of validation.
    gct(&home, "synth --preset appendix --out data --encounters 600 --force").assert().success();
    train(&home, "diagnosis_treatment", "gct");
    let page = report(&home, "diagnosis_treatment-gct --encounters 10");
    let run = &page["runs"][0];
    let evaluation = json(&home, "evaluate diagnosis_treatment-gct --at sensitivity=0.8");
    for outcome in run["outcomes"].as_array().unwrap() {
        let same = &evaluation["labels"][outcome["name"].as_str().unwrap()];
        for name in ["positives", "prevalence", "thresholds", "calibration", "net_benefit"] {
            assert_eq!(outcome[name], same[name], "{name}");
        }
        assert_eq!(
            outcome["thresholds"].as_array().unwrap().last().unwrap()["chosen_for"],
            "sensitivity=0.8"
        );
    }
    assert_eq!(run["outcomes"].as_array().unwrap().len(), 2);
    let rows = run["encounters"].as_array().unwrap();
    let reasons = |row: &Value| row["chosen"].as_array().unwrap().clone();
    assert_eq!(rows.iter().filter(|row| reasons(row).contains(&"risk".into())).count(), 2, "a fifth");
    assert_eq!(rows.iter().filter(|row| reasons(row).contains(&"loss".into())).count(), 2);
    for row in rows {
        let why = row["why"].as_array().unwrap();
        assert_eq!(why.len(), 2, "of each label");
        for (reason, answer) in why.iter().zip(row["answers"].as_array().unwrap()) {
            assert_eq!((&reason["what"], &reason["probability"]), (&answer["what"], &answer["probability"]));
            let changes = reason["changes"].as_array().unwrap();
            assert!(!changes.is_empty() && changes.len() <= 15);
            assert!(changes.iter().all(|change| row["codes"].as_array().unwrap().contains(&change["code"])));
        }
    }
    assert!(page["made"]["command"].as_str().unwrap().starts_with("gct report diagnosis_treatment-gct"));
    let hash = run["data"]["sha256"].as_str().unwrap();
    assert_eq!(hash.len(), 64);
    // An aim of one's own counts.
    let page = report(&home, "diagnosis_treatment-gct --encounters 0 --at alerts=900 --at sensitivity=0.5");
    let points = page["runs"][0]["outcomes"][0]["thresholds"].as_array().unwrap();
    let aims: Vec<&Value> = points.iter().filter_map(|point| point.get("chosen_for")).collect();
    assert_eq!(aims, ["alerts=900", "sensitivity=0.5"]);
    gct(&home, "report diagnosis_treatment-gct --at sensitivity=2 --out other.html").assert().failure();
    gct(&home, "report diagnosis_treatment-gct --by ward --out other.html").assert().failure();
}

#[test]
fn thresholds_and_bins_tell_of_nobody_with_a_smallest_cell() {
    let (_guard, home) = home();
    train(&home, "diagnosis_treatment", "gct");
    let page = report(&home, "diagnosis_treatment-gct --split all --min-cell 11");
    for outcome in page["runs"][0]["outcomes"].as_array().unwrap() {
        let (all, positives) = (outcome["encounters"].as_u64().unwrap(), outcome["positives"].as_u64());
        assert!(positives.is_none_or(|some| some >= 11 && all - some >= 11));
        assert_eq!(
            (&outcome["net_benefit"], &outcome["calibration"]["bins"]),
            (&Value::Array(vec![]), &Value::Array(vec![]))
        );
        let points = outcome["thresholds"].as_array().unwrap();
        assert!(points.len() <= 1 && points.iter().all(|point| point.get("chosen_for").is_some()));
    }
}

#[test]
fn identifiers_are_told_only_when_asked_for() {
    let (_guard, home) = home();
    train(&home, "graph_reconstruction", "gct");
    let without = report(&home, "graph_reconstruction-gct");
    assert_eq!(without["runs"][0]["encounters"][0].get("id"), None);
    let with = report(&home, "graph_reconstruction-gct --with-ids");
    let id = with["runs"][0]["encounters"][0]["id"].as_str().unwrap();
    json(&home, &format!("explain graph_reconstruction-gct --encounter {id}"));
    assert!(!without.to_string().contains(&format!("\"{id}\"")));
}

#[test]
fn small_cells_are_not_told() {
    let (_guard, home) = home();
    train(&home, "graph_reconstruction", "gct");
    let page = report(&home, "graph_reconstruction-gct --min-cell 11");
    let run = &page["runs"][0];
    assert_eq!(run["encounters"], serde_json::json!([]));
    let counts = run["codes"]["count"].as_array().unwrap();
    assert!(!counts.is_empty() && counts.iter().all(|count| count.as_u64().unwrap() >= 11));
    assert_eq!(counts.len(), run["map"]["x"].as_array().unwrap().len());
    assert_eq!(run["structure"]["blocks"].as_array().unwrap().len(), 3, "sums over all encounters are told");
    let all = report(&home, "graph_reconstruction-gct");
    assert!(all["runs"][0]["codes"]["count"].as_array().unwrap().len() > counts.len());
    let names = |of: &Value, index: &Value| of["codes"]["code"][index.as_u64().unwrap() as usize].clone();
    for link in run["links"].as_array().unwrap() {
        let same = |other: &&Value| {
            names(&all["runs"][0], &other["from"]) == names(run, &link["from"])
                && names(&all["runs"][0], &other["to"]) == names(run, &link["to"])
        };
        let other = all["runs"][0]["links"].as_array().unwrap().iter().find(same).unwrap();
        assert_eq!(other["mean"], link["mean"]);
    }
    for link in run["links"].as_array().unwrap() {
        let (both, truly) = (link["encounters"].as_u64().unwrap(), link["true"].as_u64());
        assert!(both >= 11 && truly.is_none_or(|truly| truly == 0 || truly >= 11), "{link}");
    }
    gct(&home, "report graph_reconstruction-gct --min-cell 11 --encounters 3 --out other.html")
        .assert()
        .failure();
    assert!(!home.join("other.html").exists());
}

/// All counts of encounters in a value, wherever they are, with their names.
fn counts(value: &Value) -> Vec<(&str, u64)> {
    match value {
        Value::Object(fields) => (fields.iter())
            .flat_map(|(name, value)| own_counts(name, value).into_iter().chain(counts(value)))
            .collect(),
        Value::Array(values) => values.iter().flat_map(counts).collect(),
        _ => Vec::new(),
    }
}

fn own_counts<'a>(name: &'a str, value: &Value) -> Vec<(&'a str, u64)> {
    const NAMES: [&str; 8] =
        ["encounters", "training", "asked", "left_out", "known", "true", "count", "positives"];
    let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let numbers = values.iter().filter_map(Value::as_u64).filter(|_| NAMES.contains(&name));
    numbers.map(|number| (name, number)).collect()
}

#[test]
fn what_few_encounters_were_asked_is_not_told() {
    let (_guard, home) = home();
    train(&home, "graph_reconstruction", "gct");
    train(&home, "diagnosis_treatment", "gct");
    let asked = json(&home, "evaluate graph_reconstruction-gct")["encounters"].as_u64().unwrap();
    let runs = "graph_reconstruction-gct diagnosis_treatment-gct";
    let all = report(&home, &format!("{runs} --min-cell {asked}"));
    assert_eq!(all["runs"][0]["data"]["asked"], asked, "as many are not few");
    let page = report(&home, &format!("{runs} --min-cell {}", asked + 1));
    let names = counts(&page["runs"]);
    assert!(names.iter().any(|(name, _)| *name == "count"), "of codes that many encounters have");
    assert!(names.iter().all(|(_, count)| *count == 0 || *count > asked), "{names:?}");
    for run in page["runs"].as_array().unwrap() {
        assert_eq!(run["data"]["asked"], Value::Null);
        assert_eq!((&run["curves"], &run["links"]), (&serde_json::json!([]), &serde_json::json!([])));
        assert!(run["figures"].as_array().unwrap().iter().all(|figure| figure["value"].is_null()));
        assert_eq!(run["structure"], Value::Null);
    }
}

#[test]
fn nothing_is_replaced_or_left_behind() {
    let (_guard, home) = home();
    train(&home, "graph_reconstruction", "gct");
    let before = names(&home);
    fs::write(home.join("mine.html"), "mine").unwrap();
    gct(&home, "report graph_reconstruction-gct --out mine.html").assert().failure();
    assert_eq!(fs::read_to_string(home.join("mine.html")).unwrap(), "mine");
    fs::remove_file(home.join("mine.html")).unwrap();
    gct(&home, "report graph_reconstruction-gct no-such-run --out page.html").assert().failure();
    assert_eq!(names(&home), before);
}

#[test]
fn the_same_run_gives_the_same_page() {
    let (_guard, home) = home();
    train(&home, "graph_reconstruction", "gct");
    for (threads, page) in [(1, "one.html"), (3, "three.html")] {
        gct(&home, &format!("report graph_reconstruction-gct --out {page} --threads {threads}"))
            .assert()
            .success();
    }
    assert_eq!(fs::read(home.join("one.html")).unwrap(), fs::read(home.join("three.html")).unwrap());
}

/// Patients with three visits in the mean, and a run on them.
fn train_on_visits(home: &Path, task: &str, others: &str) {
    if !home.join("visits").exists() {
        gct(home, "synth --out visits --encounters 600 --visits 3 --quiet").assert().success();
    }
    let line = format!(
        "train --data visits --task {task} --steps 12 --set validate_every=6 --set batch=8 --set model.width=16 \
         --out run --quiet {others}"
    );
    gct(home, &line).assert().success();
}

/// The names of codes of a run, by their indexes.
fn code_names<'a>(run: &'a Value, indexes: &'a Value) -> Vec<&'a Value> {
    indexes
        .as_array()
        .unwrap()
        .iter()
        .map(|index| &run["codes"]["code"][index.as_u64().unwrap() as usize])
        .collect()
}

#[test]
fn earlier_visits_are_told_with_what_they_do() {
    let (_guard, home) = home();
    train_on_visits(&home, "label:later", "--model gct --history gru");
    let page = report(&home, "run --encounters 12 --with-ids");
    let run = &page["runs"][0];
    let seen = serde_json::json!({ "aggregator": "gru", "visits": 20, "days": null, "order": "time" });
    assert_eq!(run["history"], seen);
    let rows = run["encounters"].as_array().unwrap();
    let many = |row: &&Value| row["visits"].as_array().unwrap().len();
    assert!(rows.iter().any(|row| many(&row) == 0));
    let row = rows.iter().max_by_key(many).unwrap();
    assert!(many(&row) > 1);
    let explained = json(&home, &format!("explain run --encounter {}", row["id"].as_str().unwrap()));
    let visits = row["visits"].as_array().unwrap();
    assert_eq!(visits.len(), explained["visits"].as_array().unwrap().len());
    for (visit, other) in visits.iter().zip(explained["visits"].as_array().unwrap()) {
        assert!(visit["days_before"].as_u64().is_some());
        for name in ["days_before", "encounter_id"] {
            assert_eq!(visit[name], other[name]);
        }
        let codes: Vec<&Value> =
            other["codes"].as_array().unwrap().iter().map(|code| &code["code"]).collect();
        assert_eq!(code_names(run, &visit["codes"]), codes);
    }
    let (why, other) = (&row["why"][0], &explained["attributions"][0]);
    let near =
        |value: &Value, other: &Value| (value.as_f64().unwrap() - other.as_f64().unwrap()).abs() < 1e-4;
    for (visit, other) in why["visits"].as_array().unwrap().iter().zip(other["visits"].as_array().unwrap()) {
        assert_eq!(visit["visits_before"], other["visits_before"]);
        assert!(near(&visit["without"], &other["without"]));
        assert!(near(&visit["log_odds_change"], &other["log_odds_change"]));
    }
    let changes = other["changes"].as_array().unwrap();
    assert!(changes.iter().take(15).any(|change| change["visits_before"] != 0));
    for (lacking, change) in why["changes"].as_array().unwrap().iter().zip(changes) {
        assert_eq!(lacking["visits_before"], change["visits_before"]);
        assert_eq!(run["codes"]["code"][lacking["code"].as_u64().unwrap() as usize], change["code"]);
    }
    for change in changes {
        let place = |name: &str| change[name].as_u64().unwrap() as usize;
        assert!(near(&why["effects"][place("visits_before")][place("node") - 1], &change["log_odds_change"]));
    }
    let effects: usize =
        why["effects"].as_array().unwrap().iter().map(|of| of.as_array().unwrap().len()).sum();
    assert_eq!(effects, changes.len(), "no code is without its effect");
}

#[test]
fn visits_are_told_where_encounters_are_and_without_names() {
    let (_guard, home) = home();
    train_on_visits(&home, "label:later", "--model gct --history gru");
    let text = report(&home, "run --encounters 5").to_string();
    assert!(text.contains("days_before") && !text.contains("encounter_id") && !text.contains("\"start\""));
    for none in ["--encounters 0", "--min-cell 11"] {
        let page = report(&home, &format!("run {none}"));
        assert_eq!(page["runs"][0]["encounters"], serde_json::json!([]));
        assert!(!page.to_string().contains("days_before"));
    }
}

#[test]
fn without_history_nothing_speaks_of_visits() {
    let (_guard, home) = home();
    train_on_visits(&home, "label:later", "--model gct");
    let page = report(&home, "run --encounters 5");
    let row = &page["runs"][0]["encounters"][0];
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<String>>();
    assert_eq!(keys(row), ["number", "chosen", "loss", "codes", "hidden", "edges", "answers", "why"]);
    assert_eq!(keys(&row["why"][0]), ["what", "probability", "changes"]);
    assert_eq!(keys(&row["why"][0]["changes"][0]), ["code", "without", "log_odds_change"]);
    assert_eq!(page["runs"][0].get("history"), None);
}

#[test]
fn of_a_bag_the_encounter_alone_is_looked_at() {
    let (_guard, home) = home();
    train_on_visits(&home, "label:later", "--model transformer --history bag");
    let page = report(&home, "run --encounters 12 --with-ids");
    let rows = page["runs"][0]["encounters"].as_array().unwrap();
    let row = rows.iter().max_by_key(|row| row["visits"].as_array().unwrap().len()).unwrap();
    let explained = json(&home, &format!("explain run --encounter {}", row["id"].as_str().unwrap()));
    let nodes = explained["nodes"].as_array().unwrap().len();
    assert_eq!(nodes, 1 + row["codes"].as_array().unwrap().len());
    for block in explained["blocks"].as_array().unwrap() {
        let rows = block["attention"].as_array().unwrap();
        assert!(rows.len() == nodes && rows.iter().all(|row| row.as_array().unwrap().len() == nodes));
        let given: f64 = rows[0].as_array().unwrap().iter().filter_map(Value::as_f64).sum();
        assert!(given < 0.999, "{given}: something goes to earlier visits");
    }
}

#[test]
fn the_next_visit_is_told_beside_the_most_probable_diagnoses() {
    let (_guard, home) = home();
    train_on_visits(&home, "next_diagnoses", "--model gct");
    let page = report(&home, "run --encounters 8");
    let run = &page["runs"][0];
    assert_eq!((&run["asks"], &run["learning"]["metric"]), (&"next".into(), &"recall@20".into()));
    for row in run["encounters"].as_array().unwrap() {
        let (answers, next) = (row["answers"].as_array().unwrap(), code_names(run, &row["next"]));
        assert_eq!((answers.len(), row["why"].as_array().unwrap().len()), (10, 10));
        assert!(!next.is_empty());
        for (answer, why) in answers.iter().zip(row["why"].as_array().unwrap()) {
            assert_eq!(answer["what"], why["what"]);
            assert_eq!(answer["truth"], next.contains(&&answer["what"]));
        }
    }
}
