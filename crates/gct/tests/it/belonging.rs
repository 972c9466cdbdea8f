//! What belongs to a run: whom it learned from, its weights, its settings, its data.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gct::Error;
use gct::dataset::{Dataset, Writer};
use gct::evaluate::{self, Evaluation};
use gct::files::Overwrite;
use gct::infer::{Overlap, TestSet, Training, Which};
use gct::job::{Job, Stop};
use gct::metric::Bootstrap;
use gct::predict;
use gct::record::{Encounter, EncounterId, SubjectId};
use gct::run::{self, Run};
use gct::split::{Split, SplitPart};
use gct::train::{self, Event, Execution};

use crate::run::{data, resume, settings, start};

/// The encounters of a dataset, each changed, in a folder of their own.
fn changed(dataset: &Dataset, folder: &Path, kind: &str, change: impl Fn(usize, &mut Encounter)) -> Dataset {
    let labels = dataset.manifest().labels.clone();
    let vocabulary = dataset.vocabulary().clone();
    let mut writer = Writer::create(folder, Overwrite::Refuse, vocabulary, labels).unwrap();
    let mut encounters: Vec<Encounter> = dataset.encounters().unwrap().map(Result::unwrap).collect();
    (0..).zip(&mut encounters).for_each(|(number, encounter)| change(number, encounter));
    writer.write(&encounters).unwrap();
    let mut source = dataset.manifest().source.clone();
    source.kind = kind.into();
    writer.finish(source).unwrap();
    Dataset::open(folder).unwrap()
}

/// Keeps few codes, which many patients can share.
fn shorten(encounter: &mut Encounter) {
    encounter.edges = None;
    encounter.codes.diagnosis.truncate(3);
    encounter.codes.treatment.truncate(3);
    encounter.codes.lab.truncate(3);
}

fn rename(number: usize, encounter: &mut Encounter) {
    encounter.subject = SubjectId::new(format!("pseudonym {number}"));
    encounter.id = EncounterId::new(format!("renamed {number}"));
}

fn evaluation(run: &Run, dataset: &Dataset, test_set: impl Into<TestSet>) -> gct::Result<Evaluation> {
    evaluate::run(run, dataset, test_set, Bootstrap { replicates: 0, seed: 0 }, &Job::silent())
}

fn included(which: Which) -> TestSet {
    TestSet { which, training: Training::Include }
}

fn count(dataset: &Dataset, part: impl Fn(SplitPart) -> bool) -> u64 {
    let split = Split::new(&Default::default(), dataset).unwrap();
    dataset.encounters().unwrap().filter(|encounter| part(split.part(encounter.as_ref().unwrap()))).count()
        as u64
}

/// Trains on encounters that are recognised by nothing but their subjects.
fn run_on_patients(home: &Path, synthetic: &Dataset) -> (Run, Dataset) {
    let dataset = changed(synthetic, &home.join("patients"), "hospital", |_, encounter| shorten(encounter));
    start(settings("label:d1_m1", "shallow"), &dataset, &home.join("run"), None).unwrap();
    (Run::open(&home.join("run")).unwrap(), dataset)
}

#[test]
fn subjects_that_were_learned_from_are_left_out_of_tests_on_other_data() {
    let home = tempfile::tempdir().unwrap();
    let (run, dataset) = run_on_patients(home.path(), &data(&home));
    let learned = count(&dataset, |part| part != SplitPart::Test);
    // Its own data are split as they were, and nobody is counted as learned from.
    let own = evaluation(&run, &dataset, Which::All).unwrap();
    assert_eq!((own.encounters, own.overlap), (400, Overlap::default()));
    // The same patients with another code less: other data.
    let copy = changed(&dataset, &home.path().join("copy"), "hospital", |_, encounter| {
        encounter.codes.lab.truncate(2);
    });
    let honest = evaluation(&run, &copy, Which::All).unwrap();
    assert_eq!((honest.encounters, honest.overlap.encounters), (400 - learned, learned));
    assert!(!honest.overlap.included && honest.overlap.warning().is_none());
    let all = evaluation(&run, &copy, included(Which::All)).unwrap();
    assert_eq!((all.encounters, all.overlap), (400, Overlap { encounters: learned, included: true }));
    assert!(all.overlap.warning().unwrap().contains("learned from"));
    // Predictions beside the truth are a test too; without it they are not.
    let out = home.path().join("p.parquet");
    let score = |dataset: &Dataset, test_set: TestSet| {
        let output = (out.as_path(), Overwrite::Replace);
        predict::score(&run, dataset, test_set, Default::default(), output, &Job::silent()).unwrap()
    };
    assert_eq!(score(&copy, Which::All.into()).encounters, 400 - learned);
    assert_eq!(score(&copy, included(Which::All)).encounters, 400);
    let half = changed(&dataset, &home.path().join("half"), "hospital", |number, encounter| {
        encounter.labels = if number % 2 == 0 { vec![None; 2] } else { vec![Some(true), None] };
    });
    let written = score(&half, Which::All.into());
    assert!(
        written.overlap.encounters < learned && written.encounters > 200,
        "who has no label is predicted"
    );
    assert_eq!(written.encounters, 400 - written.overlap.encounters);
}

#[test]
fn a_test_with_nobody_left_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (run, dataset) = run_on_patients(home.path(), &data(&home));
    let copy = changed(&dataset, &home.path().join("copy"), "hospital", |_, encounter| {
        encounter.codes.lab.truncate(2);
    });
    let refused = evaluation(&run, &copy, Which::Part(SplitPart::Train)).unwrap_err();
    assert!(matches!(refused, Error::OnlyTraining { .. }), "{refused}");
    let (out, part) = (home.path().join("p.parquet"), Which::Part(SplitPart::Train));
    let output = (out.as_path(), Overwrite::Refuse);
    let refused = predict::score(&run, &copy, part, Default::default(), output, &Job::silent()).unwrap_err();
    assert!(matches!(refused, Error::OnlyTraining { .. }) && !out.exists(), "{refused}");
    // A run of a program that did not note whom it learned from.
    let manifest = home.path().join("run/run.json");
    let mut json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    json["files"].as_object_mut().unwrap().remove("learned.parquet");
    fs::write(&manifest, json.to_string()).unwrap();
    let old = Run::open(&home.path().join("run")).unwrap();
    assert!(evaluation(&old, &dataset, Which::Part(SplitPart::Test)).is_ok());
    assert!(matches!(evaluation(&old, &copy, Which::All), Err(Error::TrainingUnknown { .. })));
    assert!(evaluation(&old, &copy, included(Which::All)).is_ok());
}

#[test]
fn data_that_got_new_identifiers_are_not_taken_for_other_patients() {
    let home = tempfile::tempdir().unwrap();
    let synthetic = data(&home);
    let (run, dataset) = run_on_patients(home.path(), &synthetic);
    let before = home.path().join("before");
    fs::rename(dataset.path(), &before).unwrap();
    let dataset = Dataset::open(&before).unwrap();
    let renamed = changed(&dataset, &home.path().join("patients"), "hospital", rename);
    let test = Which::default_for(&run, &renamed);
    assert_eq!(test, Which::Part(SplitPart::Test));
    let refused = evaluation(&run, &renamed, test).unwrap_err();
    assert!(matches!(refused, Error::IdentifiersChanged { found: 0, .. }), "{refused}");
    assert!(evaluation(&run, &renamed, included(test)).is_ok());
    // Encounters with enough codes are recognised by them, wherever the data are.
    start(settings("label:d1_m1", "shallow"), &synthetic, &home.path().join("long"), None).unwrap();
    let run = Run::open(&home.path().join("long")).unwrap();
    let learned = count(&synthetic, |part| part != SplitPart::Test);
    let renamed = changed(&synthetic, &home.path().join("renamed"), "synthetic", rename);
    let evaluation = evaluation(&run, &renamed, Which::All).unwrap();
    assert_eq!((evaluation.encounters, evaluation.overlap.encounters), (400 - learned, learned));
}

#[test]
fn what_is_kept_of_those_learned_from_is_no_identifier() {
    let home = tempfile::tempdir().unwrap();
    let synthetic = data(&home);
    let dataset = changed(&synthetic, &home.path().join("patients"), "hospital", |number, encounter| {
        encounter.subject = SubjectId::new(format!("PLANTED-{number}"));
        encounter.id = EncounterId::new(format!("PLANTED-E{number}"));
    });
    start(settings("label:d1_m1", "shallow"), &dataset, &home.path().join("run"), None).unwrap();
    for entry in fs::read_dir(home.path().join("run")).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(7).any(|window| window == b"PLANTED"));
    }
}

#[test]
fn weights_and_checkpoints_of_another_run_are_refused_with_what_differs() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let begin = |name: &str, seed: u64| {
        let mut settings = settings("graph_reconstruction", "gct");
        settings.seed = seed;
        start(settings, &dataset, &home.path().join(name), Some(9)).unwrap_err();
    };
    begin("ours", 0);
    begin("theirs", 1);
    let [ours, theirs] = ["ours", "theirs"].map(|name| home.path().join(name));
    let swap = |name: &str| fs::copy(theirs.join(name), ours.join(name)).unwrap();
    swap("best.safetensors");
    let error = Run::open(&ours).unwrap().model().err().unwrap();
    assert!(error.to_string().contains("another run, in which `seed` is 1 instead of 0"), "{error}");
    swap("checkpoint-0000000009.safetensors");
    let error = resume(&dataset, &ours, None).unwrap_err();
    assert!(error.to_string().contains("another run, in which `seed` is 1 instead of 0"), "{error}");
    // Weights that say nothing of a run are of no run.
    Run::open(&theirs).unwrap().model().unwrap().save(&home.path().join("w"), Overwrite::Refuse).unwrap();
    fs::copy(home.path().join("w"), theirs.join("best.safetensors")).unwrap();
    let error = Run::open(&theirs).unwrap().model().err().unwrap();
    assert!(error.to_string().contains("does not say which run"), "{error}");
}

#[test]
fn settings_that_were_edited_are_refused_by_name() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, None).unwrap();
    let path = folder.join("config.toml");
    let text = fs::read_to_string(&path).unwrap();
    for (key, value) in [("split.seed", 7), ("seed", 3), ("batch", 16)] {
        let mut table: toml::Table = text.parse().unwrap();
        let edited = match key.split_once('.') {
            Some((outer, key)) => table[outer].as_table_mut().unwrap().insert(key.into(), value.into()),
            None => table.insert(key.into(), value.into()),
        };
        assert!(edited.is_some());
        fs::write(&path, table.to_string()).unwrap();
        let error = Run::open(&folder).unwrap_err();
        assert!(error.to_string().contains(&format!("`{key}` is {value} instead of")), "{error}");
        let [Err(listed)] = &run::list(&folder).unwrap()[..] else { panic!("it is listed as a good one") };
        assert!(listed.problem.contains(key), "{}", listed.problem);
    }
    fs::write(&path, text.replace("steps = 10", "steps = 12")).unwrap();
    assert_eq!(resume(&dataset, &folder, None).unwrap().step, 12, "a run can be made longer");
}

#[test]
fn a_renamed_checkpoint_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, Some(5)).unwrap_err();
    let [from, to] = [5, 99].map(|step| folder.join(format!("checkpoint-{step:010}.safetensors")));
    fs::rename(from, to).unwrap();
    let error = resume(&dataset, &folder, None).unwrap_err();
    assert!(error.to_string().contains("it was renamed: it is of step 5"), "{error}");
    let [Err(listed)] = &run::list(&folder).unwrap()[..] else { panic!("it is listed as a good one") };
    assert!(listed.problem.contains("renamed"), "{}", listed.problem);
}

#[test]
fn a_checkpoint_that_a_kill_left_is_removed_though_nothing_is_left_to_train() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, None).unwrap();
    let [old, last] = [2, 10].map(|step| folder.join(format!("checkpoint-{step:010}.safetensors")));
    fs::copy(&last, &old).unwrap();
    resume(&dataset, &folder, None).unwrap();
    assert!(last.exists() && !old.exists());
}

#[test]
fn a_run_finds_data_that_moved_with_it() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("here")).unwrap();
    let here = home.path().join("here");
    let synthetic = data(&home);
    let dataset = changed(&synthetic, &here.join("data"), "synthetic", |_, _| {});
    start(settings("label:d1_m1", "shallow"), &dataset, &here.join("runs/one"), None).unwrap();
    let there = home.path().join("there");
    fs::rename(&here, &there).unwrap();
    let run = Run::open(&there.join("runs/one")).unwrap();
    assert_eq!(run.dataset().unwrap().manifest().files, dataset.manifest().files);
    // Copied side by side.
    fs::rename(there.join("data"), there.join("runs/data")).unwrap();
    assert_eq!(run.dataset().unwrap().manifest().files, dataset.manifest().files);
    // Another dataset of that name is not taken for it, and it is said where it was looked for.
    fs::remove_dir_all(there.join("runs/data")).unwrap();
    changed(&synthetic, &there.join("runs/data"), "synthetic", |_, encounter| {
        encounter.labels = vec![None; 2]
    });
    let error = run.dataset().unwrap_err().to_string();
    for path in ["here/data", "there/runs/one/../../data", "there/runs/data"] {
        assert!(error.contains(path), "{path}: {error}");
    }
}

#[test]
fn checkpoints_are_written_by_the_clock_too() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    let mut settings = settings("graph_reconstruction", "gct");
    settings.validate_every = 1000;
    let kept = AtomicU64::new(0);
    let job = Job::new(&Stop::new(), |event| {
        if let Event::Step { step, .. } = event {
            let before = folder.join(format!("checkpoint-{:010}.safetensors", step - 1));
            kept.fetch_add(before.exists().into(), Ordering::Relaxed);
        }
    });
    let execution = Execution { checkpoint_every: Duration::ZERO, ..Execution::default() };
    train::start(settings, &dataset, &folder, Overwrite::Refuse, execution, &job).unwrap();
    assert_eq!(kept.load(Ordering::Relaxed), 10);
}
