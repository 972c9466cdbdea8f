//! Trainings that begin with the weights of another run, and those that learn from a share of the split.

use std::fs;
use std::path::Path;

use gct::Error;
use gct::dataset::{Dataset, Source, Writer};
use gct::files::Overwrite;
use gct::model::Model;
use gct::record::{CodeKind, Encounter, PerKind, Vocabulary};
use gct::run::{InitEntry, Run, Settings};
use tempfile::TempDir;

use crate::run::{data, resume, settings, start};

/// Settings that begin with the weights of a run.
fn beginning(settings: Settings, run: &Path) -> Settings {
    Settings { init: Some(run.to_owned()), ..settings }
}

/// Settings that change no weight they begin with: the rate is too small for any float.
fn standing_still(settings: Settings) -> Settings {
    Settings { learning_rate: 1e-30, ..settings }
}

fn last(folder: &Path) -> Model<f32> {
    Model::load(&folder.join("last.safetensors")).unwrap()
}

fn noted(folder: &Path) -> InitEntry {
    Run::open(folder).unwrap().manifest().init.clone().unwrap()
}

/// Whether values are the same, but for a gradient's trace of a rate that is next to nothing in those that
/// are 0.
fn are_same(one: &[f32], other: &[f32]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-20)
}

/// The values of a parameter.
fn values<'a>(model: &'a Model<f32>, name: &str) -> &'a [f32] {
    let named = model.parameters().named().iter().find(|named| named.name == name).unwrap();
    &model.weights().values()[named.start..][..named.len()]
}

fn names(model: &Model<f32>) -> Vec<String> {
    model.parameters().named().iter().map(|named| named.name.clone()).collect()
}

/// The same encounters with the codes of each kind in the opposite order of ids, but for the first code of
/// each, which has another name.
fn reversed(dataset: &Dataset, folder: &Path) -> Dataset {
    let vocabulary: Vocabulary = PerKind::from_fn(|kind| {
        let mut codes = dataset.vocabulary()[kind].clone();
        if let Some(first) = codes.first_mut() {
            first.code = format!("new {}", kind.name());
        }
        codes.reverse();
        codes
    });
    let labels = dataset.manifest().labels.clone();
    let turned = |encounter: Encounter| {
        let codes = PerKind::from_fn(|kind| {
            let last = (vocabulary[kind].len() as u32).saturating_sub(1);
            encounter.codes[kind].iter().map(|id| last - id).collect()
        });
        Encounter { codes: Encounter::new(codes).codes, edges: None, ..encounter }
    };
    let encounters: Vec<Encounter> =
        dataset.encounters().unwrap().map(|encounter| turned(encounter.unwrap())).collect();
    let mut writer = Writer::create(folder, Overwrite::Refuse, vocabulary.clone(), labels).unwrap();
    writer.write(&encounters).unwrap();
    let nothing = serde_json::Value::Null;
    writer.finish(Source { kind: "synthetic".into(), settings: nothing.clone(), findings: nothing }).unwrap();
    Dataset::open(folder).unwrap()
}

#[test]
fn the_same_question_begins_with_all_weights_and_another_with_all_but_the_head() {
    let home = TempDir::new().unwrap();
    let dataset = data(&home);
    let [first, same, other] = ["first", "same", "other"].map(|name| home.path().join(name));
    start(settings("masked_code", "gct"), &dataset, &first, None).unwrap();
    let best = Run::open(&first).unwrap().model().unwrap();

    let still = standing_still(settings("masked_code", "gct"));
    start(beginning(still, &first), &dataset, &same, None).unwrap();
    assert!(are_same(last(&same).weights().values(), best.weights().values()));
    let entry = noted(&same);
    assert_eq!((entry.new, entry.test_encounters, entry.path), (vec![], Some(0), first.clone()));
    assert_eq!(entry.known, PerKind::from_fn(|kind| dataset.vocabulary()[kind].len() as u64));

    let still = standing_still(settings("label:d1_m1", "gct"));
    start(beginning(still, &first), &dataset, &other, None).unwrap();
    let began = last(&other);
    assert_eq!(noted(&other).new, ["head.weight", "head.bias"]);
    for name in names(&began).iter().filter(|name| !name.starts_with("head.")) {
        assert!(are_same(values(&began, name), values(&best, name)), "{name}");
    }
    // Of the same size, but of another question.
    let third = home.path().join("third");
    let still = standing_still(settings("label:d2_m1", "gct"));
    start(beginning(still, &other), &dataset, &third, None).unwrap();
    assert_eq!(noted(&third).new, ["head.weight", "head.bias"]);
}

#[test]
fn rows_of_another_vocabulary_are_taken_by_the_names_of_codes() {
    let home = TempDir::new().unwrap();
    let dataset = data(&home);
    let [first, second, random] = ["first", "second", "random"].map(|name| home.path().join(name));
    start(settings("masked_code", "gct"), &dataset, &first, None).unwrap();
    let best = Run::open(&first).unwrap().model().unwrap();
    let other = reversed(&dataset, &home.path().join("reversed"));
    let still = || standing_still(settings("masked_code", "gct"));
    start(beginning(still(), &first), &other, &second, None).unwrap();
    start(still(), &other, &random, None).unwrap();
    let (began, random, rows) = (last(&second), last(&random), best.embedding_rows());
    for kind in CodeKind::OF_PAPER {
        let codes = dataset.vocabulary()[kind].len() as u32;
        for id in 0..codes {
            let row = began.embedding(rows.code(kind, codes - 1 - id));
            let expected = match id {
                0 => random.embedding(rows.code(kind, codes - 1)),
                id => best.embedding(rows.code(kind, id)),
            };
            assert_eq!(row, expected, "{} {id}", kind.name());
        }
    }
    assert_eq!(began.embedding(0), best.embedding(0), "the visit");
    assert_eq!(began.embedding(rows.hidden()), best.embedding(rows.hidden()));
    let entry = noted(&second);
    // Each column of the head belongs to a code.
    assert_eq!(entry.new, ["head.weight", "head.bias"]);
    let known = PerKind::from_fn(|kind| (dataset.vocabulary()[kind].len() as u64).saturating_sub(1));
    assert_eq!(entry.known, known);
    assert!(entry.test_encounters.is_some());
}

#[test]
fn it_is_told_whom_of_the_test_split_the_run_learned_from() {
    let home = TempDir::new().unwrap();
    let dataset = data(&home);
    let [first, second] = ["first", "second"].map(|name| home.path().join(name));
    start(settings("masked_code", "gct"), &dataset, &first, None).unwrap();
    let mut another = beginning(settings("masked_code", "gct"), &first);
    another.split.seed = 1;
    start(another, &dataset, &second, None).unwrap();
    // About 40 of 400 are tested on, of which nine in ten were learned from or validated on.
    let seen = noted(&second).test_encounters.unwrap();
    assert!((20..=60).contains(&seen), "{seen}");
}

#[test]
fn a_run_that_began_with_another_is_resumed_without_it() {
    let home = TempDir::new().unwrap();
    let dataset = data(&home);
    let [first, whole] = ["first", "whole"].map(|name| home.path().join(name));
    start(settings("masked_code", "gct"), &dataset, &first, None).unwrap();
    let own = || beginning(settings("label:d1_m1", "gct"), &first);
    start(own(), &dataset, &whole, None).unwrap();
    let stopped: Vec<_> = [1, 3, 6].map(|stop| home.path().join(stop.to_string())).into();
    for (folder, stop) in stopped.iter().zip([1, 3, 6]) {
        assert!(matches!(start(own(), &dataset, folder, Some(stop)), Err(Error::Stopped { .. })));
    }
    fs::remove_dir_all(&first).unwrap();
    for folder in &stopped {
        resume(&dataset, folder, None).unwrap();
        assert_eq!(last(folder).weights().values(), last(&whole).weights().values());
    }
}

#[test]
fn a_run_that_was_killed_before_its_first_checkpoint_begins_with_the_same_weights_again() {
    let home = TempDir::new().unwrap();
    let dataset = data(&home);
    let [first, whole, killed] = ["first", "whole", "killed"].map(|name| home.path().join(name));
    start(settings("masked_code", "gct"), &dataset, &first, None).unwrap();
    let own = || beginning(settings("label:d1_m1", "gct"), &first);
    start(own(), &dataset, &whole, None).unwrap();
    let begun = |folder: &Path| {
        assert!(matches!(start(own(), &dataset, folder, Some(1)), Err(Error::Stopped { .. })));
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name.starts_with("checkpoint-") || name.ends_with(".safetensors") || name.contains("tfevents")
            {
                fs::remove_file(&path).unwrap();
            }
        }
        fs::remove_file(folder.join("metrics.jsonl")).ok();
    };
    begun(&killed);
    resume(&dataset, &killed, None).unwrap();
    assert_eq!(last(&killed).weights().values(), last(&whole).weights().values());

    let other = home.path().join("other");
    begun(&other);
    fs::remove_dir_all(&first).unwrap();
    start(Settings { seed: 5, ..settings("masked_code", "gct") }, &dataset, &first, None).unwrap();
    let error = resume(&dataset, &other, None).unwrap_err().to_string();
    assert!(error.ends_with("it has other weights than when the training began"), "{error}");
}

#[test]
fn what_cannot_be_begun_with_is_refused_and_nothing_is_written() {
    let home = TempDir::new().unwrap();
    let dataset = data(&home);
    let [first, stopped, out] = ["first", "stopped", "out"].map(|name| home.path().join(name));
    start(settings("masked_code", "gct"), &dataset, &first, None).unwrap();
    let half = start(settings("masked_code", "gct"), &dataset, &stopped, Some(5));
    assert!(matches!(half, Err(Error::Stopped { .. })));
    let refused = |settings: Settings| {
        let error = start(settings, &dataset, &out, None).unwrap_err();
        assert!(!out.exists());
        error.to_string().replace(&home.path().display().to_string(), "HOME")
    };
    let gct = || settings("label:d1_m1", "gct");
    assert_eq!(
        refused(beginning(settings("label:d1_m1", "transformer"), &first)),
        "a training cannot begin with the weights of HOME/first: it is of the model gct, and transformer is to be \
         trained"
    );
    let mut wide = gct();
    if let gct::model::Config::Gct(config) = &mut wide.model {
        config.width = 32;
    }
    assert_eq!(
        refused(beginning(wide, &first)),
        "a training cannot begin with the weights of HOME/first: its width is 16, and that of the model to be \
         trained 32"
    );
    assert_eq!(
        refused(beginning(gct(), &stopped)),
        "a training cannot begin with the weights of HOME/stopped: it has made 4 of its 10 steps"
    );
    assert!(refused(beginning(gct(), &home.path().join("nowhere"))).starts_with("cannot open HOME/nowhere"));
    assert_eq!(
        refused(beginning(gct(), dataset.path())),
        "HOME/data is not a run folder: it has no run.json"
    );
    assert_eq!(
        refused(beginning(settings("label:d1_m1", "logistic"), Path::new("x"))),
        "setting `init`: x is not allowed; expected nothing, because logistic regression is fitted to convergence \
         from zero"
    );
}

#[test]
fn a_share_of_the_training_split_is_learned_from_and_p_counts_all_of_it() {
    let home = TempDir::new().unwrap();
    let dataset = data(&home);
    let mut found = Vec::new();
    for share in [0.1, 0.5, 1.0] {
        let folder = home.path().join(share.to_string());
        let settings = Settings { train_share: share, ..settings("masked_code", "gct") };
        start(settings, &dataset, &folder, None).unwrap();
        let log = fs::read_to_string(folder.join("log.txt")).unwrap();
        let encounters = log.split(" on ").nth(1).unwrap().split(' ').next().unwrap();
        let run = Run::open(&folder).unwrap();
        found.push((encounters.parse::<u64>().unwrap(), run.manifest().training_encounters));
    }
    let [(tenth, p), (half, p_of_half), (all, p_of_all)] = found[..] else { panic!("{found:?}") };
    assert!(p == p_of_half && p == p_of_all && all == p, "{found:?}");
    assert!((10..=60).contains(&tenth) && (110..=210).contains(&half), "{found:?}");
    for share in [0.0, -0.5, 1.5, f64::NAN] {
        let settings = Settings { train_share: share, ..settings("masked_code", "gct") };
        assert!(settings.check().unwrap_err().to_string().starts_with("setting `train_share`"));
    }
}
