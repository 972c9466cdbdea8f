//! Models that see earlier encounters: what they learn, what they never see, and that nothing else changes.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use gct::Error;
use gct::batch::Example;
use gct::dataset::{Dataset, Source, Writer};
use gct::evaluate;
use gct::files::Overwrite;
use gct::history::{Aggregator, History, Order};
use gct::infer::{Predictor, Reader, Which};
use gct::job::Job;
use gct::predict::{self, Embedded};
use gct::question::Prediction;
use gct::record::{Code, CodeKind, Encounter, EncounterId, PerKind, SubjectId, Vocabulary};
use gct::run::{Run, Settings};
use gct::split;
use gct::train::{Event, Execution, HistoryCounts};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::run::{resume, settings, start};

const DAY: i64 = 86_400_000_000;

/// Aggregators of vectors.
const AGGREGATORS: [Aggregator; 3] = [Aggregator::Gru, Aggregator::Cnn, Aggregator::Attention];

fn vocabulary() -> Vocabulary {
    PerKind::from_fn(|kind| {
        let count = if kind == CodeKind::Context { 0 } else { 12 };
        let code = |id| Code { code: format!("{}-{id}", kind.name()), description: None, count: 0 };
        (0..count).map(code).collect()
    })
}

/// Numbers that look random, by a seed.
fn numbers(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// Encounters of one subject, a week apart. The label says whether the encounter before had diagnosis 0.
fn encounters_of(subject: usize) -> Vec<Encounter> {
    let mut next = numbers(subject as u64 + 1);
    let mut had = false;
    (0..1 + subject % 5)
        .map(|visit| {
            let mut codes = |count: u64| (0..count).map(|_| next(11) as u32 + 1).collect::<Vec<u32>>();
            let mut diagnosis = codes(3);
            let (treatment, lab) = (codes(3), codes(2));
            let has = next(2) == 0;
            diagnosis.extend(has.then_some(0));
            Encounter {
                id: EncounterId::new(format!("{subject}-{visit}")),
                subject: SubjectId::new(format!("S{subject}")),
                start: Some(visit as i64 * 7 * DAY),
                labels: vec![Some(std::mem::replace(&mut had, has))],
                ..Encounter::new(PerKind { diagnosis, treatment, lab, context: vec![] })
            }
        })
        .collect()
}

fn write(folder: &Path, encounters: &[Encounter]) -> Dataset {
    let labels = vec!["again".to_owned()];
    let mut writer = Writer::create(folder, Overwrite::Refuse, vocabulary(), labels).unwrap();
    writer.write(encounters).unwrap();
    let nothing = || serde_json::json!({});
    writer.finish(Source { kind: "made up".into(), settings: nothing(), findings: nothing() }).unwrap();
    Dataset::open(folder).unwrap()
}

fn data(home: &TempDir) -> Dataset {
    let encounters: Vec<Encounter> = (0..300).flat_map(encounters_of).collect();
    write(&home.path().join("data"), &encounters)
}

fn with_history(model: &str, aggregator: Aggregator) -> Settings {
    let history = History { aggregator, ..History::default() };
    Settings { history, ..settings("label:again", model) }
}

fn weights(folder: &Path) -> [Vec<u8>; 2] {
    ["best.safetensors", "last.safetensors"].map(|name| fs::read(folder.join(name)).unwrap())
}

fn probabilities(run: &Run, encounters: &[Encounter]) -> Vec<f64> {
    let of = |prediction: Prediction| match prediction {
        Prediction::Labels(labels) => labels[0],
        other => panic!("{other:?}"),
    };
    run.predict(encounters).unwrap().into_iter().map(of).collect()
}

#[test]
fn what_happened_at_an_earlier_encounter_is_learned() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let aucpr = |aggregator: Aggregator| {
        let folder = home.path().join(aggregator.name());
        let settings = Settings {
            steps: 150,
            validate_every: 50,
            batch: 32,
            learning_rate: 0.01,
            ..with_history("gct", aggregator)
        };
        start(settings, &dataset, &folder, None).unwrap();
        let run = Run::open(&folder).unwrap();
        let options = gct::metric::Bootstrap { replicates: 0, seed: 0 };
        let all = evaluate::run(&run, &dataset, Which::All, options, &Job::silent()).unwrap();
        assert_eq!(all.encounters, 900);
        all.scores.value("aucpr").unwrap()
    };
    let last_visit = aucpr(Aggregator::None);
    for aggregator in AGGREGATORS {
        let found = aucpr(aggregator);
        assert!(found > last_visit + 0.3, "{}: {found} after {last_visit}", aggregator.name());
    }
}

#[test]
fn a_run_with_history_that_was_stopped_ends_like_one_that_was_not() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for (model, aggregator) in
        [("gct", Aggregator::Gru), ("shallow", Aggregator::Cnn), ("transformer", Aggregator::Attention)]
    {
        let whole = home.path().join(model);
        start(with_history(model, aggregator), &dataset, &whole, None).unwrap();
        for stop in [1, 4, 7] {
            let folder = home.path().join(format!("{model}-{stop}"));
            let threads = rayon::ThreadPoolBuilder::new().num_threads(1 + stop as usize % 3).build().unwrap();
            let settings = with_history(model, aggregator);
            let stopped = threads.install(|| start(settings, &dataset, &folder, Some(stop)));
            assert!(matches!(stopped, Err(Error::Stopped { .. })), "{stopped:?}");
            resume(&dataset, &folder, None).unwrap();
            assert_eq!(weights(&folder), weights(&whole), "{model} stopped at {stop}");
        }
    }
}

#[test]
fn without_an_aggregator_other_settings_of_history_change_nothing() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let (plain, other) = (home.path().join("plain"), home.path().join("other"));
    start(settings("label:again", "gct"), &dataset, &plain, None).unwrap();
    let history = History { visits: 3, days: 5.0, order: Order::Recorded, kernel: 2, ..History::default() };
    start(Settings { history, ..settings("label:again", "gct") }, &dataset, &other, None).unwrap();
    let [plain, other] = [plain, other].map(|folder| Run::open(&folder).unwrap());
    let [plain, other] = [&plain, &other].map(|run| run.model().unwrap().weights().values().to_vec());
    assert_eq!(plain, other);
}

#[test]
fn visits_that_examples_share_are_computed_once() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let folder = home.path().join("run");
    start(with_history("gct", Aggregator::Gru), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let (predictor, model) = (Predictor::of_run(&run).unwrap(), run.model().unwrap());
    let encounters: Vec<Encounter> =
        Reader::new(&run, &dataset, Which::All).unwrap().take(100).map(Result::unwrap).collect();
    let samples = predictor.samples(&encounters);
    let examples = run.encoding().examples(&samples);
    let steps: usize = examples.iter().map(|example| example.steps.len()).sum();
    assert!(steps > 2 * encounters.len() - 30, "{steps}");
    assert_eq!(model.layout(&examples).graphs().len(), encounters.len());
    // Alone, each of them is the same.
    let alone: Vec<Example> = samples.iter().map(|sample| predictor.example(sample)).collect();
    assert_eq!(alone, examples);
    let together = predictor.answers(&samples).unwrap();
    for (sample, together) in samples.iter().zip(together) {
        let alone = predictor.answers(&[*sample]).unwrap();
        assert!((alone[0][0] - together[0]).abs() < 1e-5, "{} {}", alone[0][0], together[0]);
    }
}

#[test]
fn a_vector_of_a_subject_is_that_of_its_last_encounter() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let folder = home.path().join("run");
    start(with_history("gct", Aggregator::Attention), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let written = |embedded: Embedded, name: &str| {
        let out = home.path().join(name);
        let target = (out.as_path(), Overwrite::Refuse);
        predict::embed(&run, embedded, &dataset, Which::All, target, &Job::silent())
    };
    assert_eq!(written(Embedded::Visits, "visits.parquet").unwrap().rows, 900);
    assert_eq!(written(Embedded::Subjects, "subjects.parquet").unwrap().rows, 300);
    let plain = home.path().join("plain");
    start(settings("label:again", "gct"), &dataset, &plain, None).unwrap();
    let run = Run::open(&plain).unwrap();
    let out = home.path().join("none.parquet");
    let target = (out.as_path(), Overwrite::Refuse);
    let refused = predict::embed(&run, Embedded::Subjects, &dataset, Which::All, target, &Job::silent());
    assert!(refused.unwrap_err().to_string().contains("the run sees no history"));
    assert!(!out.exists());
}

#[test]
fn what_training_sees_of_history_is_told() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let counts = |visits: usize| {
        let mut settings = with_history("shallow", Aggregator::Gru);
        (settings.history.visits, settings.steps) = (visits, 1);
        let told = Mutex::new(None);
        let stop = gct::job::Stop::new();
        let job = Job::new(&stop, |event| {
            if let Event::Started { history, .. } = event {
                *told.lock().unwrap() = history;
            }
        });
        let folder = home.path().join(visits.to_string());
        gct::train::start(settings, &dataset, &folder, Overwrite::Refuse, Execution::default(), &job)
            .unwrap();
        let counts = told.lock().unwrap().take();
        counts.unwrap()
    };
    let all = counts(20);
    assert_eq!(all.cut, 0);
    let HistoryCounts { seen, cut } = counts(2);
    // The n-th encounter of a subject has n - 1 before it; of five, three have more than one.
    assert!(seen < all.seen && cut > 0 && seen + cut <= all.seen, "{seen} {cut} {}", all.seen);
}

#[test]
fn history_that_cannot_be_is_refused_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let folder = home.path().join("run");
    let refused = |settings: Settings, dataset: &Dataset| {
        let error = start(settings, dataset, &folder, None).unwrap_err().to_string();
        assert!(!folder.exists());
        error
    };
    let good = || with_history("gct", Aggregator::Gru);
    let by_encounter = split::Settings { by: split::By::Encounter, ..good().split };
    let error = refused(Settings { split: by_encounter, ..good() }, &dataset);
    assert!(error.contains("none with a split by encounter"), "{error}");
    let error = refused(with_history("logistic", Aggregator::Gru), &dataset);
    assert!(error.contains("none or bag with logistic regression"), "{error}");
    for task in ["graph_reconstruction", "masked_diagnosis"] {
        let history = good().history;
        let error = refused(Settings { history, ..settings(task, "gct") }, &dataset);
        assert!(error.contains("none in this task"), "{error}");
    }
    for (name, history) in [
        ("visits", History { visits: 0, ..good().history }),
        ("kernel", History { kernel: 0, ..good().history }),
        ("days", History { days: -1.0, ..good().history }),
        ("days", History { days: f64::NAN, ..good().history }),
    ] {
        let error = refused(Settings { history, ..good() }, &dataset);
        assert!(error.contains(&format!("`history.{name}`")), "{error}");
    }
    let untimed: Vec<Encounter> =
        (0..100).flat_map(encounters_of).map(|encounter| Encounter { start: None, ..encounter }).collect();
    let untimed = write(&home.path().join("untimed"), &untimed);
    let error = refused(good(), &untimed);
    assert!(error.contains("`history.order`: time is not allowed; expected recorded"), "{error}");
    let history = History { order: Order::Recorded, ..good().history };
    start(Settings { history, ..good() }, &untimed, &home.path().join("recorded"), None).unwrap();
    let lone: Vec<Encounter> =
        (0..100).flat_map(|subject| encounters_of(subject).into_iter().take(1)).collect();
    let lone = write(&home.path().join("lone"), &lone);
    let error = refused(good(), &lone);
    assert!(error.contains("no encounter of the training split has an earlier one"), "{error}");
}

#[test]
fn logistic_regression_takes_history_as_a_bag() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let aucpr = |aggregator: Aggregator| {
        let folder = home.path().join(aggregator.name());
        start(Settings { steps: 20, ..with_history("logistic", aggregator) }, &dataset, &folder, None)
            .unwrap();
        let run = Run::open(&folder).unwrap();
        let options = gct::metric::Bootstrap { replicates: 0, seed: 0 };
        let all = evaluate::run(&run, &dataset, Which::All, options, &Job::silent()).unwrap();
        all.scores.value("aucpr").unwrap()
    };
    let (alone, bag) = (aucpr(Aggregator::None), aucpr(Aggregator::Bag));
    assert!(bag > alone + 0.05, "{bag} after {alone}");
}

/// A run with history, and what it says of the encounters of a subject.
struct Asked {
    _home: TempDir,
    run: Run,
}

impl Asked {
    fn new(aggregator: Aggregator) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (dataset, folder) = (data(&home), home.path().join("run"));
        start(with_history("gct", aggregator), &dataset, &folder, None).unwrap();
        Asked { run: Run::open(&folder).unwrap(), _home: home }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// Whatever becomes of the future, and of encounters that are not over when the question is asked: the
    /// same prediction, to the bit. What was before does change it.
    #[test]
    fn nothing_of_the_future_is_seen(seed in 0u64..1000) {
        thread_local! {
            static RUNS: Vec<Asked> = AGGREGATORS.map(Asked::new).into();
        }
        RUNS.with(|runs| {
            let encounters = encounters_of(4 + 5 * seed as usize);
            for Asked { run, .. } in runs {
                let before = probabilities(run, &encounters);
                for asked in 0..encounters.len() {
                    let mut next = numbers(seed + 77);
                    let mut edited = encounters.clone();
                    for later in &mut edited[asked + 1..] {
                        later.codes.diagnosis = vec![next(12) as u32];
                        later.labels = vec![None];
                        later.start = later.start.map(|start| start + next(90) as i64 * DAY);
                    }
                    // One that began before and goes on is not seen either.
                    let overlapping = Encounter {
                        start: Some(edited[asked].start.unwrap() - DAY),
                        end: Some(edited[asked].start.unwrap() + 1),
                        ..encounters_of(seed as usize)[0].clone()
                    };
                    let overlapping = Encounter { subject: edited[0].subject.clone(), ..overlapping };
                    edited.insert(asked, overlapping);
                    edited[asked + 1..].sort_by_key(|encounter| encounter.start);
                    let after = probabilities(run, &edited);
                    prop_assert_eq!(after[asked + 1], before[asked]);
                    prop_assert_eq!(probabilities(run, &encounters[..=asked])[asked], before[asked]);
                    if asked > 0 {
                        let alone = probabilities(run, &encounters[asked..=asked])[0];
                        prop_assert_ne!(alone, before[asked], "what was before is seen");
                    }
                }
            }
            Ok(())
        })?;
    }
}
