//! Which diagnoses the next visit has: what is learned, that the truth is never seen, and what is measured.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gct::dataset::{Dataset, Source, Writer};
use gct::evaluate::{self, Evaluation, Options};
use gct::files::Overwrite;
use gct::history::{Aggregator, History, Order};
use gct::infer::{Predictor, Which};
use gct::job::Job;
use gct::metric::Bootstrap;
use gct::predict;
use gct::question::{Prediction, TableOptions};
use gct::record::{Code, CodeKind, Encounter, EncounterId, PerKind, SubjectId, Vocabulary};
use gct::run::{ClassWeight, Run, Settings};
use gct::split;
use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use crate::run::{settings, start};

const DAY: i64 = 86_400_000_000;

const DIAGNOSES: u32 = 60;

fn vocabulary() -> Vocabulary {
    PerKind::from_fn(|kind| {
        let count = if kind == CodeKind::Diagnosis { DIAGNOSES } else { 2 };
        let code = |id| Code { code: format!("{}-{id}", kind.name()), description: None, count: 0 };
        (0..count).map(code).collect()
    })
}

/// The diagnosis of the next visit that one of this visit leads to.
fn follows(diagnosis: u32) -> u32 {
    (7 * diagnosis + 3) % DIAGNOSES
}

/// Visits of a subject, a week apart. Each has what follows from the one before, and a diagnosis that stays.
fn visits_of(subject: usize) -> Vec<Encounter> {
    let own = subject as u32 * 11;
    let mut diagnosis: Vec<u32> = (0..4).map(|at| (own + 17 * at * at + at) % DIAGNOSES).collect();
    (0..2 + subject % 3)
        .map(|visit| {
            let mut codes = diagnosis.clone();
            codes.push(own % DIAGNOSES);
            diagnosis = diagnosis.iter().map(|id| follows(*id)).collect();
            Encounter {
                id: EncounterId::new(format!("{subject}-{visit}")),
                subject: SubjectId::new(format!("S{subject}")),
                start: Some(visit as i64 * 7 * DAY),
                ..Encounter::new(PerKind { diagnosis: codes, ..PerKind::default() })
            }
        })
        .collect()
}

fn write(folder: &Path, encounters: &[Encounter]) -> Dataset {
    let mut writer = Writer::create(folder, Overwrite::Refuse, vocabulary(), Vec::new()).unwrap();
    writer.write(encounters).unwrap();
    let nothing = || serde_json::json!({});
    writer.finish(Source { kind: "made up".into(), settings: nothing(), findings: nothing() }).unwrap();
    Dataset::open(folder).unwrap()
}

fn subjects() -> Vec<Vec<Encounter>> {
    (0..300).map(visits_of).collect()
}

fn data(home: &TempDir) -> Dataset {
    write(&home.path().join("data"), &subjects().concat())
}

fn with_history(task: &str, model: &str, aggregator: Aggregator) -> Settings {
    Settings { history: History { aggregator, ..History::default() }, ..settings(task, model) }
}

fn trained(home: &TempDir, dataset: &Dataset, settings: Settings) -> Run {
    let folder = home.path().join(format!("run-{}", fs::read_dir(home.path()).unwrap().count()));
    start(settings, dataset, &folder, None).unwrap();
    Run::open(&folder).unwrap()
}

fn evaluated(run: &Run, dataset: &Dataset, replicates: u32) -> Evaluation {
    let options = Options { min_cell: 5, ..Bootstrap { replicates, seed: 0 }.into() };
    evaluate::run(run, dataset, Which::All, options, &Job::silent()).unwrap()
}

#[test]
fn what_follows_from_a_visit_is_learned_with_and_without_history() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let visits: usize = subjects().iter().map(Vec::len).sum();
    for (model, aggregator) in [
        ("shallow", Aggregator::None),
        ("gct", Aggregator::Gru),
        ("transformer", Aggregator::Bag),
        ("deep", Aggregator::Attention),
    ] {
        let task = with_history("next_diagnoses", model, aggregator);
        let settings = Settings { steps: 300, validate_every: 150, batch: 32, learning_rate: 0.01, ..task };
        let run = trained(&home, &dataset, settings);
        let all = evaluated(&run, &dataset, 20);
        assert_eq!((all.encounters, all.left_out), (visits as u64 - 300, 300), "the last ones are left out");
        let recall = all.scores.value("recall@10").unwrap();
        // Ten of sixty are a sixth.
        assert!(recall > 0.5, "{model} {aggregator:?}: {recall}");
        assert!(all.scores.get("recall@10").interval.is_some() && all.scores.get("aucpr").interval.is_some());
        let entries = run.entries().unwrap();
        assert!(entries.iter().all(|entry| entry.metric == "recall@20" && entry.value.is_some()));
    }
}

/// The probability of each diagnosis that is asked for and whether the next visit has it, encounter by
/// encounter, by way of predictions in memory.
fn predicted(run: &Run, encounters: &[Encounter]) -> Vec<Vec<(u32, f64, bool)>> {
    let told = |prediction: Prediction| match prediction {
        Prediction::NextDiagnoses { truth: Some(truth), ranked } => {
            ranked.into_iter().map(|(id, chance)| (id, chance, truth.contains(&id))).collect()
        }
        Prediction::NextDiagnoses { truth: None, .. } => Vec::new(),
        other => panic!("{other:?}"),
    };
    run.predict(encounters).unwrap().into_iter().map(told).collect()
}

/// By definition: the precision of all that scores as high as a positive, the mean over positives.
fn average_precision(scored: &[(f64, bool)]) -> f64 {
    let precision = |least: f64| {
        let above = || scored.iter().filter(move |(score, _)| *score >= least);
        above().filter(|(_, truth)| *truth).count() as f64 / above().count() as f64
    };
    let positives = || scored.iter().filter(|(_, truth)| *truth);
    positives().map(|(score, _)| precision(*score)).sum::<f64>() / positives().count() as f64
}

/// By definition: how many pairs of a positive and a negative are in order.
fn area(scored: &[(f64, bool)]) -> f64 {
    let of = |truth: bool| scored.iter().filter(move |(_, is)| *is == truth).map(|(score, _)| *score);
    let wins =
        |a: f64| of(false).map(move |b| f64::from(u8::from(a > b)) + 0.5 * f64::from(u8::from(a == b)));
    let won: f64 = of(true).flat_map(wins).sum();
    won / (of(true).count() * of(false).count()) as f64
}

#[test]
fn metrics_are_what_they_say() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for task in ["next_diagnoses", "next_diagnoses:new"] {
        let run = trained(&home, &dataset, with_history(task, "shallow", Aggregator::Gru));
        let evaluation = evaluated(&run, &dataset, 0);
        let told = predicted(&run, &subjects().concat());
        let told: Vec<_> = told.into_iter().filter(|told| !told.is_empty()).collect();
        let close = |name: &str, expected: f64| {
            let got = evaluation.scores.value(name).unwrap();
            assert!((got - expected).abs() < 1e-6, "{task} {name}: {got} {expected}");
        };
        for at in [10, 20, 30] {
            let truths = |told: &[(u32, f64, bool)]| told.iter().filter(|(.., truth)| *truth).count() as f64;
            let with_any = || told.iter().filter(|told| truths(told) > 0.0);
            let sum: f64 = with_any().map(|told| truths(&told[..at]) / truths(told)).sum();
            close(&format!("recall@{at}"), sum / with_any().count() as f64);
        }
        let loss =
            |(_, chance, truth): &(u32, f64, bool)| -(if *truth { *chance } else { 1.0 - chance }).ln();
        let mean = |told: &Vec<_>| told.iter().map(loss).sum::<f64>() / told.len() as f64;
        close("log_loss", told.iter().map(mean).sum::<f64>() / told.len() as f64);
        let pairs: Vec<_> = told.iter().flatten().map(|(_, chance, truth)| (*chance, *truth)).collect();
        close("aucpr", average_precision(&pairs));
        let all: Vec<_> = told.iter().flatten().collect();
        let positives = all.iter().filter(|(.., truth)| *truth).count() as u64;
        let counts = evaluation.details.counts;
        assert_eq!((counts.predictions, counts.positives), (all.len() as u64, Some(positives)));
        let codes = &evaluation.details.codes;
        assert!(codes.len() == 50 && codes.is_sorted_by(|a, b| a.positives >= b.positives), "{codes:?}");
        for scores in codes {
            let id = run.code_id(CodeKind::Diagnosis, &scores.code).unwrap();
            let of: Vec<(f64, bool)> =
                all.iter().filter(|told| told.0 == id).map(|told| (told.1, told.2)).collect();
            assert_eq!(scores.positives, of.iter().filter(|(_, truth)| *truth).count() as u64);
            assert!((scores.auroc.unwrap() - area(&of)).abs() < 1e-6, "{task} {scores:?}");
        }
    }
}

#[test]
fn few_encounters_give_no_scores_of_single_diagnoses() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let run = trained(&home, &dataset, settings("next_diagnoses", "shallow"));
    let codes = |min_cell: u64| {
        let options = Options { min_cell, ..Bootstrap { replicates: 0, seed: 0 }.into() };
        run.evaluate(&subjects().concat(), options).unwrap().details.codes
    };
    let all = codes(0);
    let least = all[25].positives;
    let told: Vec<_> = all.into_iter().filter(|of| of.positives >= least).collect();
    assert_eq!(codes(least), told);
    assert_eq!(codes(10_000), []);
}

/// The rows that are written of all encounters.
fn rows(run: &Run, dataset: &Dataset, out: &Path, top: usize) -> Vec<Value> {
    let options = TableOptions { top, ..TableOptions::default() };
    predict::score(run, dataset, Which::All, options, (out, Overwrite::Replace), &Job::silent()).unwrap();
    fs::read_to_string(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn predictions_are_ranked_and_new_ones_are_not_those_that_were_seen() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, out) = (data(&home), home.path().join("rows.jsonl"));
    for (task, aggregator) in [
        ("next_diagnoses", Aggregator::Gru),
        ("next_diagnoses:new", Aggregator::Gru),
        ("next_diagnoses:new", Aggregator::None),
    ] {
        let run = trained(&home, &dataset, with_history(task, "shallow", aggregator));
        let rows = rows(&run, &dataset, &out, DIAGNOSES as usize);
        for subject in (0..300).step_by(7) {
            let visits = visits_of(subject);
            for (at, visit) in visits.iter().enumerate() {
                let of_visit = |row: &&Value| row["encounter_id"] == format!("{subject}-{at}");
                let of_visit: Vec<&Value> = rows.iter().filter(of_visit).collect();
                let first = if aggregator == Aggregator::None { at } else { 0 };
                let seen = visits[first..=at].iter().flat_map(|visit| visit.codes.diagnosis.clone());
                let seen: BTreeSet<u32> = seen.filter(|_| task.ends_with("new")).collect();
                let next = visits.get(at + 1).map(|next| &next.codes.diagnosis);
                let expected: BTreeSet<u32> = (0..DIAGNOSES).filter(|id| !seen.contains(id)).collect();
                let id = |row: &Value| {
                    run.code_id(CodeKind::Diagnosis, row["predicted_diagnosis"].as_str().unwrap()).unwrap()
                };
                assert_eq!(of_visit.iter().map(|row| id(row)).collect::<BTreeSet<u32>>(), expected);
                let chance = |row: &&Value| row["probability"].as_f64().unwrap();
                assert!(of_visit.is_sorted_by(|a, b| chance(a) >= chance(b)), "{task}");
                for (rank, row) in (1..).zip(of_visit) {
                    assert_eq!(row["rank"], rank);
                    let truth = next.map(|next| next.contains(&id(row)));
                    assert_eq!(row["boolean_value"].as_bool(), truth, "{task} {visit:?}");
                }
            }
        }
    }
    let run = trained(&home, &dataset, settings("next_diagnoses", "shallow"));
    let visits: usize = subjects().iter().map(Vec::len).sum();
    assert_eq!(rows(&run, &dataset, &out, 3).len(), 3 * visits);
}

#[test]
fn an_explanation_tells_the_truth_beside_the_most_probable() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let run = trained(&home, &dataset, with_history("next_diagnoses", "gct", Aggregator::Gru));
    for (asked, next) in [("2-1", Some(2)), ("2-3", None)] {
        let told = predict::explain(&run, &dataset, Some(asked), 0, &Job::silent()).unwrap();
        assert_eq!((told.answers.len(), told.attributions.len()), (10, 10));
        for (answer, why) in told.answers.iter().zip(&told.attributions) {
            let id = run.code_id(CodeKind::Diagnosis, &answer.what).unwrap();
            let truth = next.map(|at: usize| visits_of(2)[at].codes.diagnosis.contains(&id));
            assert_eq!((answer.truth, &why.what), (truth, &answer.what));
            assert_eq!(why.probability, answer.probability);
            assert!(!why.changes.is_empty());
        }
    }
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("refused"));
    let refused = |settings: Settings, dataset: &Dataset| {
        let error = start(settings, dataset, &folder, None).unwrap_err().to_string();
        assert!(!folder.exists());
        error
    };
    let good = || settings("next_diagnoses", "shallow");
    let by_encounter = split::Settings { by: split::By::Encounter, ..good().split };
    let error = refused(Settings { split: by_encounter, ..good() }, &dataset);
    assert!(error.contains("`split.by`: encounter is not allowed"), "{error}");
    let error = refused(settings("next_diagnoses", "logistic"), &dataset);
    assert!(error.contains("`model`: logistic is not allowed; expected another model"), "{error}");
    let error = refused(Settings { class_weight: ClassWeight::Balanced, ..good() }, &dataset);
    assert!(error.contains("`class_weight`"), "{error}");
    let error = refused(Settings { label_smoothing: 0.1, ..good() }, &dataset);
    assert!(error.contains("most of many diagnoses are absent"), "{error}");
    let head = gct::question::HeadConfig::HiddenDiagnosis;
    let error = refused(Settings { head, ..good() }, &dataset);
    assert!(error.contains("expected next_diagnoses"), "{error}");
    let alone: Vec<Encounter> =
        subjects().into_iter().flat_map(|visits| visits.into_iter().take(1)).collect();
    let error = refused(good(), &write(&home.path().join("alone"), &alone));
    assert!(error.contains("`next_diagnoses`") && error.contains("a next visit"), "{error}");
    let untimed = |visit: Encounter| Encounter { start: None, ..visit };
    let untimed: Vec<Encounter> = subjects().concat().into_iter().map(untimed).collect();
    let untimed = write(&home.path().join("untimed"), &untimed);
    let error = refused(good(), &untimed);
    assert!(error.contains("a next visit"), "{error}");
    let recorded = History { order: Order::Recorded, ..History::default() };
    start(Settings { history: recorded, ..good() }, &untimed, &home.path().join("recorded"), None).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Whatever the next visit has: the same logits, to the bit, and another truth.
    #[test]
    fn nothing_of_the_next_visit_is_seen(
        subject in 0usize..300,
        codes in prop::collection::btree_set(0..DIAGNOSES, 1..9),
        later in 0i64..50,
    ) {
        thread_local! {
            static RUNS: (TempDir, Vec<Run>) = {
                let home = tempfile::tempdir().unwrap();
                let dataset = data(&home);
                let run = |aggregator| {
                    trained(&home, &dataset, with_history("next_diagnoses", "gct", aggregator))
                };
                let aggregators = [Aggregator::None, Aggregator::Bag, Aggregator::Gru, Aggregator::Attention];
                let runs = aggregators.map(run).into();
                (home, runs)
            };
        }
        RUNS.with(|(_, runs)| {
            let visits = visits_of(subject);
            let mut edited = visits.clone();
            let last = edited.last_mut().unwrap();
            last.codes.diagnosis = codes.iter().copied().collect();
            last.start = last.start.map(|start| start + later * DAY);
            let asked = visits.len() - 2;
            for run in runs {
                let predictor = Predictor::of_run(run).unwrap();
                let logits = |visits: &[Encounter]| predictor.answers(&predictor.samples(visits)).unwrap();
                prop_assert_eq!(&logits(&visits)[..=asked], &logits(&edited)[..=asked]);
                prop_assert_eq!(&logits(&visits[..=asked])[..], &logits(&visits)[..=asked]);
                let truth = |visits: &[Encounter]| {
                    let next = predictor.samples(visits)[asked].next();
                    next.map(|next| next.codes.diagnosis.clone())
                };
                prop_assert_eq!(truth(&edited), Some(codes.iter().copied().collect::<Vec<u32>>()));
                prop_assert_eq!(truth(&visits[..=asked]), None);
            }
            Ok(())
        })?;
    }
}
