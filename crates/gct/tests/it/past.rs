//! What earlier visits and their codes do to answers, beside asking by hand about a patient who never had
//! them; and new patients with several visits.

use std::fs;
use std::path::Path;

use gct::dataset::{Dataset, Source, Writer};
use gct::files::Overwrite;
use gct::history::{Aggregator, History};
use gct::incoming::Incoming;
use gct::infer::{Predictor, Which};
use gct::job::Job;
use gct::predict::{self, Attribution, Explainer, Explanation};
use gct::question::{Prediction, TableOptions};
use gct::record::{Code, CodeKind, Encounter, EncounterId, PerKind, SubjectId, Vocabulary};
use gct::run::{Run, Settings};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{settings, start};

const DAY: i64 = 86_400_000_000;

/// Visits that are seen at most, which are fewer than some patients have.
const SEEN: usize = 4;

fn vocabulary() -> Vocabulary {
    PerKind::from_fn(|kind| {
        let count = if kind == CodeKind::Context { 3 } else { 12 };
        let code = |id| Code { code: format!("{}-{id}", kind.name()), description: None, count: 0 };
        (0..count).map(code).collect()
    })
}

/// A patient with some visits, at random times of day; one of them may go on beyond the next.
fn patient(seed: u64, visits: usize) -> Vec<Encounter> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut time = 0;
    let mut visit = |number: usize| {
        time += (1 + next(40) as i64) * DAY / 2;
        let mut codes = |most: u64, below: u64| (0..=next(most)).map(|_| next(below) as u32).collect();
        let codes = PerKind {
            context: codes(2, 3),
            diagnosis: codes(4, 12),
            treatment: codes(4, 12),
            lab: codes(3, 12),
        };
        Encounter {
            id: EncounterId::new(format!("{seed}-{number}")),
            subject: SubjectId::new(format!("S{seed}")),
            start: Some(time),
            end: Some(time + if next(5) == 0 { 30 * DAY } else { DAY / 4 }),
            labels: vec![Some(next(2) == 0)],
            ..Encounter::new(codes)
        }
    };
    (0..visits).map(&mut visit).collect()
}

fn data(home: &Path) -> Dataset {
    let visits = (0..200).flat_map(|seed| patient(seed, 1 + seed as usize % 4));
    let encounters: Vec<Encounter> = visits.map(|visit| Encounter { end: None, ..visit }).collect();
    let folder = home.join("data");
    let mut writer =
        Writer::create(&folder, Overwrite::Refuse, vocabulary(), vec!["again".to_owned()]).unwrap();
    writer.write(&encounters).unwrap();
    let nothing = || json!({});
    writer.finish(Source { kind: "made up".into(), settings: nothing(), findings: nothing() }).unwrap();
    Dataset::open(&folder).unwrap()
}

fn trained(home: &Path, dataset: &Dataset, task: &str, model: &str, aggregator: Aggregator) -> Run {
    let folder = home.join(format!("{}-{model}-{}", task.replace(':', "-"), aggregator.name()));
    let history = History { aggregator, visits: SEEN, ..History::default() };
    start(Settings { history, ..settings(task, model) }, dataset, &folder, None).unwrap();
    Run::open(&folder).unwrap()
}

/// Runs with each aggregator.
struct Runs {
    _home: TempDir,
    runs: Vec<Run>,
}

impl Runs {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let dataset = data(home.path());
        let runs = [
            ("label:again", "gct", Aggregator::Gru),
            ("label:again", "transformer", Aggregator::Cnn),
            ("label:again", "gct", Aggregator::Attention),
            ("label:again", "gct", Aggregator::Bag),
            ("label:again", "logistic", Aggregator::Bag),
            ("next_diagnoses", "shallow", Aggregator::Gru),
        ];
        let run = |(task, model, aggregator)| trained(home.path(), &dataset, task, model, aggregator);
        Runs { runs: runs.map(run).into(), _home: home }
    }
}

/// How probable an answer about the last of these encounters is.
fn probability(run: &Run, encounters: &[Encounter], what: &str) -> f64 {
    match run.predict(encounters).unwrap().pop().unwrap() {
        Prediction::Labels(labels) => labels[0],
        Prediction::NextDiagnoses { ranked, .. } => {
            let wanted = run.code_id(CodeKind::Diagnosis, what).unwrap();
            ranked.iter().find(|(id, _)| *id == wanted).unwrap().1
        }
        other => panic!("{other:?}"),
    }
}

/// The indices of the earlier encounters that the last one sees, the latest first.
fn seen(encounters: &[Encounter]) -> Vec<usize> {
    let last = encounters.len() - 1;
    let is_over = |at: &usize| encounters[*at].end <= encounters[last].start;
    (0..last).rev().filter(is_over).take(SEEN - 1).collect()
}

/// The code of a kind and position, which is that of a node but for the visit.
fn codes(encounter: &Encounter) -> Vec<(CodeKind, u32)> {
    let of_kind = |kind: CodeKind| encounter.codes[kind].iter().map(move |id| (kind, *id));
    CodeKind::ALL.into_iter().flat_map(of_kind).collect()
}

fn without(encounter: &Encounter, (kind, id): (CodeKind, u32)) -> Encounter {
    let mut encounter = encounter.clone();
    encounter.codes[kind].retain(|other| *other != id);
    encounter
}

fn explained(run: &Run, encounters: &[Encounter]) -> Explanation {
    let explainer = Explainer::new(run).unwrap();
    let samples = explainer.predictor().samples(encounters);
    explainer.explain(samples.last().unwrap()).unwrap()
}

/// Compares what is said of one answer with what is said when asked by hand; how many changes there are.
fn check(run: &Run, encounters: &[Encounter], why: &Attribution) -> usize {
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{a} {b}");
    let (last, seen) = (encounters.len() - 1, seen(encounters));
    close(why.probability, probability(run, encounters, &why.what));
    let visits = why.visits.as_ref().unwrap();
    assert_eq!(visits.len(), seen.len());
    assert!(visits.is_sorted_by(|a, b| a.log_odds_change.abs() >= b.log_odds_change.abs()));
    for change in visits {
        let at = seen[change.visits_before - 1];
        let days = (encounters[last].start.unwrap() - encounters[at].start.unwrap()) / DAY;
        assert_eq!(change.days_before, Some(days));
        let mut rest = encounters.to_vec();
        rest.remove(at);
        close(change.without, probability(run, &rest, &why.what));
        close(change.change, change.without - why.probability);
    }
    let is_bag = run.settings().history.aggregator == Aggregator::Bag;
    let mut wanted = Vec::new();
    for (visits_before, at) in std::iter::once(last).chain(seen).enumerate() {
        for (index, (kind, id)) in codes(&encounters[at]).into_iter().enumerate() {
            if visits_before == 0 || !is_bag || kind != CodeKind::Context {
                wanted.push((visits_before, 1 + index, at, (kind, id)));
            }
        }
    }
    assert_eq!(why.changes.len(), wanted.len());
    assert!(why.changes.is_sorted_by(|a, b| a.log_odds_change.abs() >= b.log_odds_change.abs()));
    for (visits_before, node, at, code) in wanted {
        let is_it =
            |change: &&predict::Change| (change.visits_before, change.node) == (Some(visits_before), node);
        let change = why.changes.iter().find(is_it).unwrap();
        assert_eq!(change.code, run.vocabulary()[code.0][code.1 as usize].code);
        let mut edited = encounters.to_vec();
        edited[at] = without(&encounters[at], code);
        close(change.without, probability(run, &edited, &why.what));
        close(change.change, change.without - why.probability);
    }
    why.changes.len() + visits.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    /// Whatever a patient had: what is said of a visit and of a code is what a model says of the patient who
    /// never had it.
    #[test]
    fn a_change_is_what_happens_to_a_patient_who_never_had_the_visit_or_the_code(
        seed in 1000u64..2000,
        visits in 1usize..8,
    ) {
        thread_local! {
            static RUNS: Runs = Runs::new();
        }
        RUNS.with(|Runs { runs, .. }| {
            let encounters = patient(seed, visits);
            for run in runs {
                let explanation = explained(run, &encounters);
                for why in explanation.attributions.iter().take(2) {
                    assert!(check(run, &encounters, why) > 0);
                }
                let told = explanation.visits.unwrap();
                prop_assert_eq!(told.len(), seen(&encounters).len());
                for (visits_before, (told, at)) in (1..).zip(told.iter().zip(seen(&encounters))) {
                    prop_assert_eq!(told.visits_before, visits_before);
                    prop_assert_eq!(&told.id, &encounters[at].id);
                    let of_visit: Vec<&str> = told.codes.iter().map(|code| code.code.as_str()).collect();
                    let expected = codes(&encounters[at]).into_iter();
                    let expected = expected.map(|(kind, id)| &run.vocabulary()[kind][id as usize].code);
                    prop_assert!(expected.eq(of_visit), "codes are in the order of nodes");
                }
            }
            Ok(())
        })?;
    }
}

/// Some visits of one patient, of which each sees all before it; the last two have a diagnosis in common.
fn three_visits() -> Vec<Encounter> {
    let visit = |(day, diagnosis): (i64, Vec<u32>)| Encounter {
        id: EncounterId::new(format!("E{day}")),
        subject: SubjectId::new("S"),
        start: Some(day * DAY),
        labels: vec![None],
        ..Encounter::new(PerKind { diagnosis, treatment: vec![1], ..PerKind::default() })
    };
    [(0, vec![2]), (30, vec![5, 7]), (34, vec![7, 9])].map(visit).into()
}

#[test]
fn of_a_bag_a_code_that_another_visit_has_as_well_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let run = trained(home.path(), &data(home.path()), "label:again", "logistic", Aggregator::Bag);
    let why = &explained(&run, &three_visits()).attributions[0];
    let change = |visits_before: usize, code: &str| {
        let is_it =
            |change: &&predict::Change| change.visits_before == Some(visits_before) && change.code == code;
        why.changes.iter().find(is_it).unwrap().log_odds_change
    };
    assert_eq!((change(0, "diagnosis-7"), change(1, "diagnosis-7")), (0.0, 0.0));
    assert_ne!(change(1, "diagnosis-5"), 0.0);
    assert_ne!(change(0, "diagnosis-9"), 0.0);
}

#[test]
fn what_is_said_of_visits_has_its_shape_and_is_not_there_without_history() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(home.path());
    let run = trained(home.path(), &dataset, "label:again", "gct", Aggregator::Gru);
    let Explanation { visits, attributions, .. } = explained(&run, &three_visits());
    let visits = serde_json::to_value(visits).unwrap();
    let treatment = json!({"kind": "treatment", "code": "treatment-1"});
    let expected = json!([
        {"visits_before": 1, "encounter_id": "E30", "days_before": 4, "codes": [
            {"kind": "diagnosis", "code": "diagnosis-5"}, {"kind": "diagnosis", "code": "diagnosis-7"}, treatment,
        ]},
        {"visits_before": 2, "encounter_id": "E0", "days_before": 34, "codes": [
            {"kind": "diagnosis", "code": "diagnosis-2"}, treatment,
        ]},
    ]);
    assert_eq!(visits, expected);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let why = serde_json::to_value(&attributions[0]).unwrap();
    assert_eq!(keys(&why), ["what", "probability", "visits", "changes"]);
    let of_change = ["node", "kind", "code", "without", "change", "log_odds_change"];
    assert_eq!(keys(&why["changes"][0])[0], "visits_before");
    assert_eq!(keys(&why["changes"][0])[1..], of_change);
    let of_visit = ["visits_before", "days_before", "without", "change", "log_odds_change"];
    assert_eq!(keys(&why["visits"][0]), of_visit);
    let alone = trained(home.path(), &dataset, "label:again", "gct", Aggregator::None);
    let Explanation { visits, attributions, .. } = explained(&alone, &three_visits());
    assert_eq!(visits, None);
    let why = serde_json::to_value(&attributions[0]).unwrap();
    assert_eq!(keys(&why), ["what", "probability", "changes"]);
    assert_eq!(keys(&why["changes"][0]), of_change);
    // A patient without earlier visits has none, where they would be seen.
    let Explanation { visits, attributions, .. } = explained(&run, &three_visits()[..1]);
    assert_eq!((visits, &attributions[0].visits), (Some(Vec::new()), &Some(Vec::new())));
    assert!(attributions[0].changes.iter().all(|change| change.visits_before == Some(0)));
}

fn rows(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_table_tells_the_strongest_codes_of_all_visits() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(home.path());
    let run = trained(home.path(), &dataset, "label:again", "gct", Aggregator::Gru);
    let out = home.path().join("why.jsonl");
    let options = TableOptions { why: 3, ..Default::default() };
    let target = (out.as_path(), Overwrite::Refuse);
    predict::score(&run, &dataset, Which::All, options, target, &Job::silent()).unwrap();
    let mut earlier = 0;
    for row in rows(&out).iter().take(40) {
        let id = row["encounter_id"].as_str().unwrap();
        let told = predict::explain(&run, &dataset, Some(id), 0, &Job::silent()).unwrap();
        let strongest = &told.attributions[0].changes;
        for (told, change) in row["why"].as_array().unwrap().iter().zip(strongest) {
            assert_eq!(told["visits_before"].as_u64(), change.visits_before.map(|visits| visits as u64));
            assert_eq!(told["code"], change.code);
            assert!((told["change"].as_f64().unwrap() - change.change).abs() < 1e-6);
            earlier += u64::from(change.visits_before > Some(0));
        }
    }
    assert!(earlier > 0);
    let alone = trained(home.path(), &dataset, "label:again", "gct", Aggregator::None);
    let out = home.path().join("alone.jsonl");
    let target = (out.as_path(), Overwrite::Refuse);
    predict::score(&alone, &dataset, Which::All, options, target, &Job::silent()).unwrap();
    assert!(rows(&out).iter().all(|row| row["why"][0].get("visits_before").is_none()));
}

/// An encounter as a line of a file.
fn line(encounter: &Encounter) -> String {
    let time = |time: Option<i64>| {
        let time = chrono::DateTime::from_timestamp_micros(time.unwrap()).unwrap();
        time.format("%Y-%m-%dT%H:%M:%S").to_string()
    };
    let vocabulary = vocabulary();
    let codes = |kind: CodeKind| -> Vec<&str> {
        encounter.codes[kind].iter().map(|id| vocabulary[kind][*id as usize].code.as_str()).collect()
    };
    let mut line = json!({
        "encounter_id": encounter.id.as_str(), "subject_id": encounter.subject.as_str(),
        "start": time(encounter.start), "end": time(encounter.end),
    });
    CodeKind::ALL.iter().for_each(|kind| line[kind.name()] = json!(codes(*kind)));
    format!("{line}\n")
}

#[test]
fn lines_of_new_patients_see_those_before_them() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(home.path());
    let run = trained(home.path(), &dataset, "label:again", "gct", Aggregator::Gru);
    let patients: Vec<Encounter> = (3000..3010).flat_map(|seed| patient(seed, 5)).collect();
    let text: String = patients.iter().map(line).collect();
    let read = |text: String| {
        let incoming = Incoming::read(&run, "a file", std::io::Cursor::new(text), &Job::silent()).unwrap();
        incoming.collect::<gct::Result<Vec<Encounter>>>()
    };
    let unlabelled = patients.iter().cloned().map(|one| Encounter { labels: vec![None], ..one });
    assert_eq!(read(text.clone()).unwrap(), unlabelled.collect::<Vec<_>>());
    let out = home.path().join("new.jsonl");
    let incoming =
        Incoming::read(&run, "a file", std::io::Cursor::new(text.clone()), &Job::silent()).unwrap();
    let target = (out.as_path(), Overwrite::Refuse);
    predict::score_incoming(&run, incoming, TableOptions::default(), target, &Job::silent()).unwrap();
    let expected = run.predict(&patients).unwrap();
    let alone = Predictor::of_run(&run).unwrap();
    let alone = alone.answers(&[alone.sample(&patients[4])]).unwrap()[0][0];
    for (row, expected) in rows(&out).iter().zip(&expected) {
        let Prediction::Labels(expected) = expected else { panic!("{expected:?}") };
        assert_eq!(row["predicted_boolean_probability"].as_f64(), Some(expected[0]));
    }
    let sigmoid = 1.0 / (1.0 + (-f64::from(alone)).exp());
    assert_ne!(rows(&out)[4]["predicted_boolean_probability"].as_f64(), Some(sigmoid));
    let lines: Vec<&str> = text.lines().collect();
    let with = |lines: [&str; 3]| read(lines.join("\n")).unwrap_err().to_string();
    let refused = with([lines[1], lines[0], lines[2]]);
    assert!(refused.contains("line 2: it begins before an earlier line of its subject"), "{refused}");
    let refused = with([lines[0], lines[5], lines[1]]);
    assert!(refused.contains("line 3: lines of another subject are between it and others"), "{refused}");
    let wrong = lines[0].replace("1970-", "the year 1970-");
    let refused = read(wrong).unwrap_err().to_string();
    assert!(refused.contains("line 1: its `start` is no time") && !refused.contains("the year"), "{refused}");
    // Without history nothing depends on the order.
    let alone = trained(home.path(), &dataset, "label:again", "gct", Aggregator::None);
    let shuffled = [lines[1], lines[5], lines[0]].join("\n");
    let incoming = Incoming::read(&alone, "a file", std::io::Cursor::new(shuffled), &Job::silent()).unwrap();
    assert_eq!(incoming.filter(Result::is_ok).count(), 3);
}
