//! Requests with earlier visits of a patient.

use std::fs;
use std::path::Path;

use chrono::DateTime;
use gct::dataset::Dataset;
use gct::files::Overwrite;
use gct::history::{Aggregator, History, Order};
use gct::infer::{Reader, Which};
use gct::ingest::synthetic::{self, Visits};
use gct::job::Job;
use gct::predict::{self, Explainer};
use gct::question::TableOptions;
use gct::record::{CodeKind, Encounter};
use gct::run::{Run, Settings};
use gct::sample::OwnedSample;
use gct::train::{self, Execution};
use gct_serve::shape::{Attribution, Embeddings, Explanations, PastVisit, Predictions};
use serde_json::{Value, json};

use crate::home::{Served, by_codes};

/// Patients with several visits.
struct Patients {
    home: tempfile::TempDir,
    dataset: Dataset,
}

impl Patients {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        let visits = Visits { mean: 3.0, ..Visits::default() };
        let settings = synthetic::Settings { encounters: 150, visits, ..Default::default() };
        gct::synth::run(&settings, &folder, Overwrite::Refuse, &Job::silent()).unwrap();
        Patients { dataset: Dataset::open(&folder).unwrap(), home }
    }

    fn trained(&self, task: &str, history: History) -> Run {
        let mut settings = Settings::paper(task.parse().unwrap(), "gct", "synthetic").unwrap();
        (settings.steps, settings.validate_every, settings.batch) = (6, 3, 8);
        let mut config = serde_json::to_value(&settings.model).unwrap();
        config["width"] = 16.into();
        (settings.model, settings.history) = (serde_json::from_value(config).unwrap(), history);
        let folder = self.home.path().join(format!(
            "{}-{}",
            task.replace(':', "-"),
            settings.history.aggregator.name()
        ));
        let (execution, job) = (Execution::default(), Job::silent());
        train::start(settings, &self.dataset, &folder, Overwrite::Replace, execution, &job).unwrap();
        Run::open(&folder).unwrap()
    }

    fn encounters(&self, run: &Run) -> Vec<Encounter> {
        Reader::new(run, &self.dataset, Which::All).unwrap().map(Result::unwrap).collect()
    }
}

fn seeing(aggregator: Aggregator) -> History {
    History { aggregator, ..History::default() }
}

fn time(microseconds: Option<i64>) -> Option<String> {
    Some(DateTime::from_timestamp_micros(microseconds?).unwrap().format("%Y-%m-%dT%H:%M:%S").to_string())
}

fn timed(run: &Run, encounter: &Encounter) -> Value {
    let mut asked = by_codes(run, encounter);
    (asked["start"], asked["end"]) = (json!(time(encounter.start)), json!(time(encounter.end)));
    asked
}

/// Each encounter as it is asked about with all earlier ones of its patient, the latest first.
fn asked(run: &Run, encounters: &[Encounter]) -> Vec<Value> {
    let of_patient = |patient: &[Encounter]| -> Vec<Value> {
        let one = |at: usize| {
            let mut asked = timed(run, &patient[at]);
            asked["visits"] = patient[..at].iter().rev().map(|visit| timed(run, visit)).collect();
            asked
        };
        (0..patient.len()).map(one).collect()
    };
    encounters.chunk_by(|one, next| one.subject == next.subject).flat_map(of_patient).collect()
}

/// What `gct predict` writes of all encounters: of each, what and how probable.
fn written(run: &Run, dataset: &Dataset, out: &Path) -> Vec<Vec<(String, f64)>> {
    let (target, job) = ((out, Overwrite::Replace), Job::silent());
    predict::score(run, dataset, Which::All, TableOptions::default(), target, &job).unwrap();
    let rows: Vec<Value> =
        fs::read_to_string(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |row: &Value| match row.get("label") {
        Some(label) => {
            (label.as_str().unwrap().to_owned(), row["predicted_boolean_probability"].as_f64().unwrap())
        }
        None => {
            (row["predicted_diagnosis"].as_str().unwrap().to_owned(), row["probability"].as_f64().unwrap())
        }
    };
    let same = |a: &Value, b: &Value| a["encounter_id"] == b["encounter_id"];
    rows.chunk_by(same).map(|of| of.iter().map(told).collect()).collect()
}

#[test]
fn answers_with_earlier_visits_are_those_of_predictions_to_the_bit() {
    let patients = Patients::new();
    for (task, aggregator) in [
        ("label:later", Aggregator::Gru),
        ("label:later", Aggregator::Cnn),
        ("label:later", Aggregator::Bag),
        ("next_diagnoses", Aggregator::Attention),
        ("next_diagnoses:new", Aggregator::Gru),
    ] {
        let run = patients.trained(task, seeing(aggregator));
        let expected = written(&run, &patients.dataset, &patients.home.path().join("out.jsonl"));
        let asked = asked(&run, &patients.encounters(&run));
        assert_eq!(asked.len(), expected.len());
        let served = Served::with(run, |_| {}, None);
        let predicted = |encounters: &[Value]| -> Vec<Vec<(String, f64)>> {
            let answer = served.client().post("/v1/predict", &json!({"encounters": encounters}));
            assert_eq!(answer.status, 200, "{answer:?}");
            let got: Predictions = serde_json::from_slice(&answer.body).unwrap();
            let told = |one: gct_serve::shape::Prediction| {
                one.answers.into_iter().map(|answer| (answer.what, answer.probability)).collect()
            };
            got.predictions.into_iter().map(told).collect()
        };
        assert_eq!(predicted(&asked), expected, "{task} {aggregator:?}");
        let last = asked.len() - 1;
        assert_eq!(predicted(&asked[last..]), expected[last..], "one alone is the same");
    }
}

#[test]
fn explanations_and_vectors_see_earlier_visits() {
    let patients = Patients::new();
    let run = patients.trained("label:later", seeing(Aggregator::Gru));
    let encounters = patients.encounters(&run);
    let alike = |one: &Encounter, next: &Encounter| one.subject == next.subject;
    let patient = encounters.chunk_by(alike).find(|visits| visits.len() >= 3).unwrap();
    let (asked, last) = (asked(&run, patient).pop().unwrap(), patient.len() - 1);
    let request = json!({"encounters": [asked, by_codes(&run, &patient[last])]});
    let explainer = Explainer::new(&run).unwrap();
    let sample = OwnedSample { before: patient[..last].to_vec(), ..patient[last].clone().into() };
    let sample = explainer.predictor().sample_of(&sample);
    let expected = explainer.explain(&sample).unwrap();
    let vector = explainer.predictor().vectors(&[sample]).unwrap().remove(0);
    let subject = explainer.predictor().subject_vectors(&[sample]).unwrap().remove(0);
    let served = Served::with(Run::open(run.path()).unwrap(), |_| {}, None);
    let answer = served.client().post("/v1/explain", &request);
    assert!(!answer.text().contains("encounter_id"), "{}", answer.text());
    let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
    let why: Vec<Attribution> = expected.attributions.iter().cloned().map(Into::into).collect();
    assert_eq!(why[0].visits.as_ref().unwrap().len(), last);
    assert_eq!(got.explanations[0].attributions.as_ref(), Some(&why));
    let visits: Vec<PastVisit> = expected.visits.unwrap().into_iter().map(Into::into).collect();
    assert_eq!(got.explanations[0].visits.as_ref(), Some(&visits));
    assert_eq!(got.explanations[1].visits, Some(Vec::new()), "the same encounter without a history");
    let got = served.client().post("/v1/embed", &request);
    let got: Embeddings = serde_json::from_slice(&got.body).unwrap();
    let [with, without] = &got.embeddings[..] else { panic!("two were asked about") };
    assert_eq!((&with.vector, &with.subject), (&vector, &Some(subject)));
    assert_eq!(with.vector, without.vector, "that of the visit alone");
    assert_ne!(with.subject, without.subject);
    let model = served.client().get("/v1/model").json();
    let expected = json!({"aggregator": "gru", "visits": 20, "days": null, "order": "time"});
    assert_eq!(model["history"], expected);
    let description = served.client().get("/openapi.json").json();
    let schemas = &description["components"]["schemas"];
    assert_eq!(schemas["Encounter"]["properties"]["visits"]["items"]["$ref"], "#/components/schemas/Visit");
    assert_eq!(schemas["Visit"]["additionalProperties"], false);
}

#[test]
fn codes_of_earlier_visits_that_the_run_does_not_know_are_told() {
    let patients = Patients::new();
    let run = patients.trained("label:later", seeing(Aggregator::Gru));
    let served = Served::with(run, |_| {}, None);
    let visit = |day: u32| json!({"start": format!("2026-01-{day:02}"), "lab": ["?", "b"]});
    let asked = json!({"start": "2026-02-01", "lab": ["a", "b"], "visits": [visit(1), visit(2)]});
    let answer = served.client().post("/v1/predict", &json!({"encounters": [asked]})).json();
    let unknown = |code: &str| json!({"kind": "lab", "code": code});
    assert_eq!(answer["predictions"][0]["unknown"], json!([unknown("?"), unknown("a"), unknown("b")]));
}

#[test]
fn reasons_are_told_as_long_as_they_do_not_take_too_long() {
    let patients = Patients::new();
    for (aggregator, visits, has_reasons) in
        [(Aggregator::Gru, 19, true), (Aggregator::Bag, 8, true), (Aggregator::Bag, 19, false)]
    {
        let run = patients.trained("label:later", seeing(aggregator));
        let labs = run.vocabulary().lab[..20].iter().map(|code| code.code.as_str()).collect::<Vec<_>>();
        let visit = |day: usize| json!({"start": format!("2026-01-{day:02}"), "lab": labs});
        let before: Vec<Value> = (1..=visits).map(visit).collect();
        let asked = json!({"start": "2026-02-01", "lab": labs, "visits": before});
        let served = Served::with(run, |_| {}, None);
        let answer = served.client().post("/v1/explain", &json!({"encounters": [asked]}));
        let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
        let why = &got.explanations[0].attributions;
        let expected = has_reasons.then_some((visits, 20 * (1 + visits)));
        let told = |why: &Attribution| (why.visits.as_ref().unwrap().len(), why.changes.len());
        assert_eq!(why.as_ref().map(|why| told(&why[0])), expected, "{aggregator:?}");
    }
}

/// Stands in wrong requests, and in no answer.
const SECRET: &str = "patient-4711";

#[test]
fn visits_whose_order_is_not_clear_are_refused() {
    let patients = Patients::new();
    let visit = |start: &str| json!({"start": start, "diagnosis": [SECRET]});
    let asked = |visits: Value| json!({"start": "2026-02-01", "visits": visits});
    let untimed = json!({"visits": [{"diagnosis": [SECRET]}, {}]});
    let half_timed = asked(json!([visit("2026-01-03"), {"diagnosis": [SECRET]}]));
    let wrong = [
        (json!({"visits": [visit("2026-01-03")]}), "encounters[0] has no start, so the order"),
        (half_timed.clone(), "encounters[0].visits[1] has no start"),
        (
            asked(json!([visit("2026-01-03"), visit("2026-01-02"), visit("2026-01-03T00:00")])),
            "encounters[0].visits[0] and visits[2] begin at the same moment",
        ),
        (asked(json!([visit("2026-02-01")])), "encounters[0].visits[0] does not begin before"),
        (asked(json!([visit(SECRET)])), "encounters[0].visits[0].start is neither a date nor a time"),
        (json!({"start": "2026-02-30"}), "encounters[0].start is neither"),
        (json!({"start": "2026-02-01", "end": "2026-01-31"}), "encounters[0] ends before it begins"),
        (
            asked(json!([{"start": "2026-01-03", "end": "2026-01-02"}])),
            "encounters[0].visits[0] ends before it begins",
        ),
        (
            asked(json!([{"start": "2026-01-03", "lab": vec![SECRET; 513]}])),
            "encounters[0].visits[0] has more than 512 codes",
        ),
        (asked(json!(vec![visit("2026-01-03"); 1025])), "encounters[0] has more than 1024 visits"),
        (asked(json!([{"start": "2026-01-03", "hide": SECRET}])), "the body has another shape than expected"),
        (asked(json!([{"start": "2026-01-03", "visits": []}])), "the body has another shape than expected"),
    ];
    let refused = |served: &Served, asked: &Value, expected: &str| {
        for path in ["/v1/predict", "/v1/explain", "/v1/embed"] {
            let answer = served.client().post(path, &json!({"encounters": [asked]}));
            let (status, error, hint) = answer.refusal();
            assert_eq!(status, 422, "{expected}");
            assert!(error.starts_with(expected), "{expected}: {error}");
            assert!(!hint.is_empty() && !format!("{error}{hint}").contains("4711"), "{error} {hint}");
        }
    };
    let served = Served::with(patients.trained("label:later", seeing(Aggregator::Gru)), |_| {}, None);
    for (asked, expected) in &wrong {
        refused(&served, asked, expected);
    }
    refused(&served, &untimed, "encounters[0] has no start");
    let alone = Served::with(patients.trained("label:later", History::default()), |_| {}, None);
    let expected = "encounters[0].visits: this run sees no earlier visits";
    refused(&alone, &asked(json!([visit("2026-01-03")])), expected);
    assert!(alone.client().get("/v1/model").json().get("history").is_none());
    // Where the order need not be told by times, no time at all is as clear as all of them.
    let recorded = History { order: Order::Recorded, ..seeing(Aggregator::Attention) };
    let recorded = Served::with(patients.trained("label:later", recorded), |_| {}, None);
    let answer = recorded.client().post("/v1/explain", &json!({"encounters": [untimed]}));
    let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
    let days: Vec<Option<i64>> =
        got.explanations[0].visits.iter().flatten().map(|visit| visit.days_before).collect();
    assert_eq!(days, [None, None]);
    refused(&recorded, &half_timed, "encounters[0].visits[1] has no start");
}

#[test]
fn a_visit_that_is_not_over_is_not_seen() {
    let patients = Patients::new();
    let run = patients.trained("label:later", seeing(Aggregator::Gru));
    let code = run.vocabulary()[CodeKind::Diagnosis][0].code.clone();
    let served = Served::with(run, |_| {}, None);
    let visit = |start: &str, end: &str| json!({"start": start, "end": end, "diagnosis": [code]});
    let visits = json!([
        visit("2026-01-01", "2026-01-05"),
        visit("2026-01-20", "2026-02-01T08:00:01"),
        visit("2026-01-10", "2026-02-01T08:00"),
    ]);
    let asked = json!({"start": "2026-02-01 08:00", "visits": visits});
    let answer = served.client().post("/v1/explain", &json!({"encounters": [asked]}));
    let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
    let days: Vec<Option<i64>> =
        got.explanations[0].visits.iter().flatten().map(|visit| visit.days_before).collect();
    assert_eq!(days, [Some(22), Some(31)]);
}

#[test]
fn visits_that_are_not_seen_are_counted() {
    let patients = Patients::new();
    let history = History { visits: 3, days: 30.0, ..seeing(Aggregator::Gru) };
    let run = patients.trained("label:later", history);
    let code = run.vocabulary()[CodeKind::Diagnosis][0].code.clone();
    let served = Served::with(run, |_| {}, None);
    let visit = |start: &str| json!({"start": start, "diagnosis": [code]});
    let asked = |starts: &[&str]| -> Value {
        let visits: Vec<Value> = starts.iter().map(|start| visit(start)).collect();
        json!({"start": "2026-02-01", "visits": visits})
    };
    // Older than 30 days; more than the latest two; not over.
    let old = asked(&["2026-01-20", "2026-01-01"]);
    let many = asked(&["2026-01-05", "2026-01-15", "2026-01-20", "2026-01-25"]);
    let mut going_on = asked(&["2026-01-20"]);
    going_on["visits"][0]["end"] = json!("2026-02-03");
    let request = json!({"encounters": [old, many, going_on, asked(&["2026-01-20"]), asked(&[])]});
    for (path, list) in
        [("/v1/predict", "predictions"), ("/v1/explain", "explanations"), ("/v1/embed", "embeddings")]
    {
        let answer = served.client().post(path, &request).json();
        let counts: Vec<&Value> =
            answer[list].as_array().unwrap().iter().map(|one| &one["not_seen"]).collect();
        assert_eq!(counts, [1, 2, 1, 0, 0], "{path}");
    }
    let alone = Served::with(patients.trained("label:later", History::default()), |_| {}, None);
    let answer = alone.client().post("/v1/predict", &json!({"encounters": [{"start": "2026-02-01"}]})).json();
    assert_eq!(answer["predictions"][0].get("not_seen"), None, "it takes no earlier visits");
}
