//! Burn trains through `gct::train` like the tape: the same losses, checkpoints and run folders.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use gct::dataset::Dataset;
use gct::evaluate;
use gct::files::Overwrite;
use gct::infer::Which;
use gct::ingest::synthetic;
use gct::job::{Job, Stop};
use gct::metric::Bootstrap;
use gct::model::{Config, Dropouts, GctConfig};
use gct::predict;
use gct::run::{Run, Settings};
use gct::train::{self, Event, Execution};
use gct::{Error, Result};
use gct_plain::{Device, learner_on};
use tempfile::TempDir;

const STEPS: u64 = 10;

fn data(home: &TempDir) -> Dataset {
    let folder = home.path().join("data");
    let settings = synthetic::Settings { encounters: 300, ..Default::default() };
    gct::synth::run(&settings, &folder, Overwrite::Refuse, &Job::silent()).unwrap();
    Dataset::open(&folder).unwrap()
}

/// A short training of a small GCT on edges, where both learners draw the same dropout masks.
fn settings(dropout: f64, clip: f64) -> Settings {
    let mut settings = Settings::paper("graph_reconstruction".parse().unwrap(), "gct", "synthetic").unwrap();
    (settings.steps, settings.validate_every, settings.batch, settings.clip) = (STEPS, 4, 8, clip);
    let dropout = Dropouts { mlp: dropout, post_mlp: dropout };
    settings.model = Config::Gct(GctConfig { width: 16, dropout, ..GctConfig::default() });
    settings
}

/// Starts or resumes a training, which is stopped after a step if one is given, and returns the loss of each.
fn losses(
    stop_after: Option<u64>,
    train: impl FnOnce(&Job<'_, Event>) -> Result<train::Outcome>,
) -> Vec<f64> {
    let (stop, losses) = (Stop::new(), Mutex::new(Vec::new()));
    let job = Job::new(&stop, |event| {
        if let Event::Step { step, loss } = event {
            losses.lock().unwrap().push(loss);
            if Some(step) == stop_after {
                stop.request();
            }
        }
    });
    match (train(&job), stop_after) {
        (Ok(outcome), None) => assert_eq!(outcome.step, STEPS),
        (Err(Error::Stopped { step, .. }), Some(at)) => assert_eq!(step, at),
        other => panic!("{other:?}"),
    }
    drop(job);
    losses.into_inner().unwrap()
}

fn start(
    execution: Execution<'_>,
    settings: Settings,
    data: &Dataset,
    run: &Path,
    stop: Option<u64>,
) -> Vec<f64> {
    losses(stop, |job| train::start(settings, data, run, Overwrite::Refuse, execution, job))
}

fn resume(execution: Execution<'_>, data: &Dataset, run: &Path) -> Vec<f64> {
    losses(None, |job| train::resume(run, data, None, execution, job))
}

/// Whether two trainings had the same losses, to 1e-4 of each.
#[track_caller]
fn assert_alike(ours: &[f64], theirs: &[f64]) {
    assert_eq!([ours.len(), theirs.len()], [STEPS as usize; 2]);
    let worst = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs() / a.abs()).fold(0.0, f64::max);
    assert!(worst < 1e-4, "{worst:.1e}: {ours:?} {theirs:?}");
}

#[test]
fn burn_trains_like_the_tape_through_a_stop_in_the_middle() {
    let home = tempfile::tempdir().unwrap();
    let data = data(&home);
    let burn = learner_on(Device::flex());
    let (tape, burn) = (Execution::default(), Execution { learner: &burn, ..Execution::default() });
    for (name, dropout, clip) in [("bare", 0.0, 0.0), ("clipped", 0.0, 0.05), ("dropping", 0.3, 0.05)] {
        let folder = |of: &str| home.path().join(format!("{name}-{of}"));
        let settings = || settings(dropout, clip);
        let losses = start(tape, settings(), &data, &folder("tape"), None);
        let mut stopped = start(burn, settings(), &data, &folder("burn"), Some(5));
        stopped.extend(resume(burn, &data, &folder("burn")));
        assert_alike(&losses, &stopped);
        // A checkpoint has all that the rest of a training depends on.
        let whole = start(burn, settings(), &data, &folder("whole"), None);
        assert_eq!(stopped, whole);
        let weights = |of: &str| fs::read(folder(of).join("last.safetensors")).unwrap();
        assert!(weights("burn") == weights("whole"), "{name}: other bits after a stop");
    }
}

#[test]
fn a_run_is_resumed_by_another_learner() {
    let home = tempfile::tempdir().unwrap();
    let data = data(&home);
    let burn = learner_on(Device::flex());
    let (tape, burn) = (Execution::default(), Execution { learner: &burn, ..Execution::default() });
    let settings = || settings(0.3, 0.05);
    let losses = start(tape, settings(), &data, &home.path().join("tape"), None);
    for (name, first, second) in [("to-tape", burn, tape), ("to-burn", tape, burn)] {
        let folder = home.path().join(name);
        let mut both = start(first, settings(), &data, &folder, Some(5));
        both.extend(resume(second, &data, &folder));
        assert_alike(&losses, &both);
    }
}

#[test]
fn a_run_of_burn_is_a_run_like_any_other() {
    let home = tempfile::tempdir().unwrap();
    let (data, folder) = (data(&home), home.path().join("run"));
    let burn = learner_on(Device::flex());
    let burn = Execution { learner: &burn, ..Execution::default() };
    start(burn, settings(0.3, 0.0), &data, &folder, None);
    let run = Run::open(&folder).unwrap();
    let steps: Vec<u64> = run.entries().unwrap().iter().map(|entry| entry.step).collect();
    assert_eq!(steps, [4, 8, 10]);
    let none = Bootstrap { replicates: 0, seed: 0 };
    let evaluation = evaluate::run(&run, &data, Which::All, none, &Job::silent()).unwrap();
    assert_eq!(evaluation.encounters, 300);
    assert!(evaluation.scores.value("log_loss").is_some_and(f64::is_finite));
    let out = home.path().join("predictions.parquet");
    let target = (out.as_path(), Overwrite::Refuse);
    let written =
        predict::score(&run, &data, Which::All, Default::default(), target, &Job::silent()).unwrap();
    assert_eq!(written.encounters, 300);
}
