//! The life of a model: trained, stopped, resumed, evaluated, used.

use std::fs;
use std::path::Path;

use gct::Error;
use gct::dataset::{Dataset, Source, Writer};
use gct::evaluate;
use gct::files::Overwrite;
use gct::infer::{Predictor, Reader, TestSet, Training, Unseen, Which};
use gct::ingest::synthetic;
use gct::job::{Job, Stop};
use gct::metric::Bootstrap;
use gct::model::{Config, Model, Scratch};
use gct::predict::{self, Embedded};
use gct::question::{Question, TableOptions};
use gct::record::{CodeKind, Edge, Encounter, PerKind};
use gct::run::{ClassWeight, Run, Settings};
use gct::split::SplitPart;
use gct::train::{self, Event, Execution, Outcome};
use tempfile::TempDir;

/// A dataset of 400 encounters.
pub(crate) fn data(home: &TempDir) -> Dataset {
    let folder = home.path().join("data");
    let settings = synthetic::Settings { encounters: 400, ..Default::default() };
    gct::synth::run(&settings, &folder, Overwrite::Refuse, &Job::silent()).unwrap();
    Dataset::open(&folder).unwrap()
}

/// A small and short training.
pub(crate) fn settings(task: &str, model: &str) -> Settings {
    let mut settings = Settings::paper(task.parse().unwrap(), model, "synthetic").unwrap();
    (settings.steps, settings.validate_every, settings.batch) = (10, 4, 8);
    let mut config = serde_json::to_value(&settings.model).unwrap();
    if let Some(width) = config.get_mut("width") {
        *width = 16.into();
    }
    settings.model = serde_json::from_value(config).unwrap();
    settings
}

/// Trains until the step is made after which it is stopped, if it is.
pub(crate) fn start(
    settings: Settings,
    dataset: &Dataset,
    folder: &Path,
    stop_after: Option<u64>,
) -> gct::Result<Outcome> {
    let stop = Stop::new();
    let job = Job::new(&stop, |event| {
        if matches!(event, Event::Step { step, .. } if Some(step) == stop_after) {
            stop.request();
        }
    });
    train::start(settings, dataset, folder, Overwrite::Refuse, Execution::default(), &job)
}

pub(crate) fn resume(dataset: &Dataset, folder: &Path, steps: Option<u64>) -> gct::Result<Outcome> {
    train::resume(folder, dataset, steps, Execution::default(), &Job::silent())
}

fn weights(folder: &Path) -> [Vec<u8>; 2] {
    ["best.safetensors", "last.safetensors"].map(|name| fs::read(folder.join(name)).unwrap())
}

/// What the validations found, without times.
fn validations(folder: &Path) -> Vec<(u64, f64, Option<f64>, bool)> {
    let entries = Run::open(folder).unwrap().entries().unwrap();
    entries.iter().map(|entry| (entry.step, entry.train_loss, entry.value, entry.best)).collect()
}

#[test]
fn a_run_that_was_stopped_ends_like_one_that_was_not() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for (task, model) in [
        ("graph_reconstruction", "gct"),
        ("masked_diagnosis", "transformer"),
        ("diagnosis_treatment", "logistic"),
    ] {
        let whole = home.path().join(format!("{model}-whole"));
        let outcome = start(settings(task, model), &dataset, &whole, None).unwrap();
        assert_eq!(outcome.step, 10);
        for stop in 1..10 {
            let folder = home.path().join(format!("{model}-{stop}"));
            let threads = rayon::ThreadPoolBuilder::new().num_threads(1 + stop as usize % 3).build().unwrap();
            let stopped = threads.install(|| start(settings(task, model), &dataset, &folder, Some(stop)));
            let Err(Error::Stopped { step, .. }) = stopped else { panic!("{stopped:?}") };
            assert_eq!(step, stop);
            let resumed = resume(&dataset, &folder, None).unwrap();
            assert_eq!(resumed.best, outcome.best);
            assert_eq!(weights(&folder), weights(&whole), "{model} stopped at {stop}");
            assert_eq!(validations(&folder), validations(&whole), "{model} stopped at {stop}");
        }
    }
}

#[test]
fn a_regression_that_was_stopped_in_a_fit_ends_like_one_that_was_not() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let settings = || settings("diagnosis_treatment", "logistic");
    let [whole, stopped] = ["whole", "stopped"].map(|name| home.path().join(name));
    start(settings(), &dataset, &whole, None).unwrap();
    // Told to stop before the first fit.
    let stop = Stop::new();
    let job = Job::new(&stop, |event| {
        if matches!(event, Event::Started { .. }) {
            stop.request();
        }
    });
    let execution = Execution::default();
    let one = train::start(settings(), &dataset, &stopped, Overwrite::Refuse, execution, &job);
    assert!(matches!(one, Err(Error::Stopped { step: 0, .. })), "{one:?}");
    resume(&dataset, &stopped, None).unwrap();
    assert_eq!(weights(&stopped), weights(&whole));
    assert_eq!(validations(&stopped), validations(&whole));
}

/// With weight decay, smoothed labels, an average of the weights and, where there are labels, balanced ones.
fn regularized(task: &str, model: &str) -> Settings {
    let settings = settings(task, model);
    let class_weight =
        if task == "diagnosis_treatment" { ClassWeight::Balanced } else { ClassWeight::default() };
    Settings { weight_decay: 0.5, label_smoothing: 0.1, average: 0.8, class_weight, ..settings }
}

#[test]
fn a_regularized_run_that_was_stopped_ends_like_one_that_was_not() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for (task, model) in [("diagnosis_treatment", "gct"), ("masked_diagnosis", "deep")] {
        let (whole, plain) = (home.path().join(format!("{model}-whole")), home.path().join(model));
        let outcome = start(regularized(task, model), &dataset, &whole, None).unwrap();
        start(settings(task, model), &dataset, &plain, None).unwrap();
        assert_ne!(weights(&whole), weights(&plain));
        for stop in [1, 3, 4, 9] {
            let folder = home.path().join(format!("{model}-{stop}"));
            let stopped = start(regularized(task, model), &dataset, &folder, Some(stop));
            assert!(matches!(stopped, Err(Error::Stopped { .. })), "{stopped:?}");
            assert_eq!(resume(&dataset, &folder, None).unwrap().best, outcome.best);
            assert_eq!(weights(&folder), weights(&whole), "{model} stopped at {stop}");
            assert_eq!(validations(&folder), validations(&whole), "{model} stopped at {stop}");
        }
    }
}

#[test]
fn each_setting_of_regularization_changes_what_is_learned() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let good = || settings("diagnosis_treatment", "gct");
    let all = [
        good(),
        Settings { weight_decay: 0.5, ..good() },
        Settings { label_smoothing: 0.1, ..good() },
        Settings { average: 0.8, ..good() },
        Settings { class_weight: ClassWeight::Number(5.0), ..good() },
        Settings { class_weight: ClassWeight::Balanced, ..good() },
    ];
    let found: Vec<Vec<u8>> = (all.into_iter().enumerate())
        .map(|(at, settings)| {
            let folder = home.path().join(at.to_string());
            start(settings, &dataset, &folder, None).unwrap();
            fs::read(folder.join("last.safetensors")).unwrap()
        })
        .collect();
    for (at, one) in found.iter().enumerate() {
        assert!(found[..at].iter().all(|other| other != one), "{at}");
    }
    // An average changes what is saved, not what is learned.
    let learned = |at: usize| {
        let bytes = fs::read(home.path().join(format!("{at}/checkpoint-0000000010.safetensors"))).unwrap();
        let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        let data = |name: &str| file.tensor(name).map(|tensor| tensor.data().to_vec());
        (data("weights").unwrap(), data("average").ok())
    };
    assert_eq!(learned(3).0, learned(0).0);
    assert!(learned(3).1.is_some_and(|average| average != learned(3).0) && learned(0).1.is_none());
}

#[test]
fn weight_decay_is_decoupled_and_spares_vectors() {
    use gct::model::{Learner, Learning, TapeLearner};
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("diagnosis_treatment", "gct"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let predictor = Predictor::of_run(&run).unwrap();
    let examples: Vec<_> = (dataset.encounters().unwrap().take(8))
        .map(|encounter| predictor.example(&predictor.sample(&encounter.unwrap())))
        .collect();
    let model = || {
        let settings = run.settings();
        Model::<f32>::new(&settings.model, &settings.head, run.embedding_rows(), 3).unwrap()
    };
    let (rate, weight_decay) = (0.01, 2.0);
    let after = |weight_decay: f64| {
        let mut learner = TapeLearner::new(model());
        learner.step(&examples, Learning { weight_decay, ..Learning::new(rate, 1) });
        learner.model().weights().values().to_vec()
    };
    let (plain, decayed, model) = (after(0.0), after(weight_decay), model());
    let before = model.weights().values();
    for parameter in model.parameters().named() {
        let lost = if parameter.shape.len() == 2 { rate * weight_decay } else { 0.0 } as f32;
        for at in parameter.start..parameter.start + parameter.len() {
            // Adam's own step is the same: the decay has no part in its moments.
            let expected = plain[at] - lost * before[at];
            assert!((decayed[at] - expected).abs() < 1e-6, "{} {at}", parameter.name);
        }
    }
    assert!(model.parameters().named().iter().any(|parameter| parameter.shape.len() == 1));
}

#[test]
fn a_run_that_is_over_can_be_made_longer() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let (short, long) = (home.path().join("short"), home.path().join("long"));
    start(settings("diagnosis_treatment", "gct"), &dataset, &short, None).unwrap();
    let before = weights(&short);
    assert_eq!(resume(&dataset, &short, None).unwrap().step, 10, "nothing is left to do");
    assert_eq!(weights(&short), before);
    resume(&dataset, &short, Some(16)).unwrap();
    start(Settings { steps: 16, ..settings("diagnosis_treatment", "gct") }, &dataset, &long, None).unwrap();
    assert_eq!(weights(&short)[1], weights(&long)[1]);
    assert_eq!(Run::open(&short).unwrap().settings().steps, 16);
    let error = resume(&dataset, &short, Some(15)).unwrap_err();
    assert!(error.to_string().contains("it has made 16 steps already"), "{error}");
    assert_eq!(Run::open(&short).unwrap().settings().steps, 16, "nothing was changed");
}

#[test]
fn a_run_that_is_ended_where_it_was_stopped_is_validated_there() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder, whole) = (data(&home), home.path().join("run"), home.path().join("whole"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, Some(7)).unwrap_err();
    resume(&dataset, &folder, Some(7)).unwrap();
    start(Settings { steps: 7, ..settings("graph_reconstruction", "gct") }, &dataset, &whole, None).unwrap();
    assert_eq!(validations(&folder), validations(&whole));
    assert_eq!(weights(&folder), weights(&whole));
}

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_it_is_offered() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, Some(9)).unwrap_err();
    let last = folder.join("checkpoint-0000000009.safetensors");
    let whole = fs::read(&last).unwrap();
    for offset in [3, whole.len() / 2, whole.len() - 2] {
        let mut broken = whole.clone();
        broken[offset] ^= 16;
        fs::write(&last, broken).unwrap();
        let error = resume(&dataset, &folder, None).unwrap_err();
        let remedy = error.remedy();
        assert!(error.to_string().contains("checkpoint-0000000009.safetensors is damaged"), "{error}");
        let earlier = folder.join("checkpoint-0000000008.safetensors");
        assert_eq!(remedy, gct::Remedy::ResumeEarlier { damaged: last.clone(), earlier });
    }
    fs::write(&last, &whole[..whole.len() / 2]).unwrap();
    assert!(matches!(resume(&dataset, &folder, None), Err(Error::Checkpoint { before: Some(_), .. })));
    fs::remove_file(&last).unwrap();
    assert_eq!(resume(&dataset, &folder, None).unwrap().step, 10);
    let other = home.path().join("other");
    start(settings("graph_reconstruction", "gct"), &dataset, &other, None).unwrap();
    assert_eq!(weights(&folder), weights(&other));
}

#[test]
fn a_run_that_lost_its_checkpoints_is_not_begun_anew() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, Some(9)).unwrap_err();
    let before = weights(&folder);
    for step in [8, 9] {
        fs::remove_file(folder.join(format!("checkpoint-{step:010}.safetensors"))).unwrap();
    }
    let error = resume(&dataset, &folder, None).unwrap_err();
    assert!(error.to_string().contains("its checkpoints are gone"), "{error}");
    assert_eq!(weights(&folder), before);
}

#[test]
fn a_run_is_trained_by_one_process_at_a_time() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, Some(5)).unwrap_err();
    let elsewhere = fs::File::open(folder.join("run.json")).unwrap();
    elsewhere.lock().unwrap();
    assert!(matches!(resume(&dataset, &folder, None), Err(Error::Busy { .. })));
    let (anew, job) = (settings("graph_reconstruction", "gct"), Job::silent());
    let replaced = train::start(anew, &dataset, &folder, Overwrite::Replace, Execution::default(), &job);
    assert!(matches!(replaced, Err(Error::Busy { .. })), "not even by force");
    drop(elsewhere);
    fs::write(folder.join(".gct-partial-xyz"), "left by a kill").unwrap();
    assert_eq!(resume(&dataset, &folder, None).unwrap().step, 10);
    assert!(!folder.join(".gct-partial-xyz").exists());
}

#[test]
fn the_best_weights_are_not_replaced_by_the_last() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "shallow"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    run.model().unwrap();
    fs::remove_file(folder.join("best.safetensors")).unwrap();
    let error = run.model().err().unwrap();
    assert!(matches!(error, Error::MissingFile { .. }), "{error}");
}

/// The matrix that GCN mixes with is the truth itself.
#[test]
fn the_structure_of_gcn_is_the_true_one() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("diagnosis_treatment", "gcn"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let none = Bootstrap { replicates: 0, seed: 0 };
    let structure =
        evaluate::run(&run, &dataset, Which::All, none, &Job::silent()).unwrap().structure.unwrap();
    for kl in [&structure.kl_attention_truth, &structure.kl_truth_attention] {
        assert!(kl.blocks.iter().all(|kl| kl.unwrap().abs() < 1e-6), "{kl:?}");
    }
    assert_eq!(structure.edges_aucpr.mean, Some(1.0));
    // By hand: the entropy of a node with k neighbours and itself is ln(k + 1).
    let entropies: Vec<f64> = (dataset.encounters().unwrap())
        .map(|encounter| {
            let encounter = encounter.unwrap();
            let nodes = gct::graph::NodeRanges::of(&encounter).len();
            let adjacency = gct::graph::adjacency(&encounter).unwrap();
            let neighbours = |row: &[bool]| row.iter().filter(|edge| **edge).count();
            adjacency.chunks(nodes).map(|row| (neighbours(row) as f64 + 1.0).ln()).sum::<f64>() / nodes as f64
        })
        .collect();
    let expected = entropies.iter().sum::<f64>() / entropies.len() as f64;
    assert!((structure.entropy.mean.unwrap() - expected).abs() < 1e-5, "{structure:?} {expected}");
    // Random weights are not: the two directions differ, and each is where it should be.
    let random = home.path().join("random");
    start(settings("diagnosis_treatment", "gcn_random"), &dataset, &random, None).unwrap();
    let run = Run::open(&random).unwrap();
    let structure =
        evaluate::run(&run, &dataset, Which::All, none, &Job::silent()).unwrap().structure.unwrap();
    // Most of what is given goes where there is no edge, at a cost of up to 27.6 nats; what should be given
    // is given in small part.
    assert!(structure.kl_attention_truth.mean > Some(20.0), "{structure:?}");
    assert!(structure.kl_truth_attention.mean < Some(5.0), "{structure:?}");
}

#[test]
fn a_run_with_a_stratified_split_predicts_where_the_label_is_unknown() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    let mut settings = settings("label:d1_m1", "gct");
    settings.split.stratify = Some("d1_m1".into());
    start(settings, &dataset, &folder, None).unwrap();
    let unlabelled = home.path().join("unlabelled");
    let mut writer =
        Writer::create(&unlabelled, Overwrite::Refuse, dataset.vocabulary().clone(), vec![]).unwrap();
    let encounters: Vec<Encounter> = (dataset.encounters().unwrap())
        .map(|encounter| Encounter { labels: vec![], ..encounter.unwrap() })
        .collect();
    writer.write(&encounters).unwrap();
    writer.finish(dataset.manifest().source.clone()).unwrap();
    let (run, unlabelled) = (Run::open(&folder).unwrap(), Dataset::open(&unlabelled).unwrap());
    let out = home.path().join("p.parquet");
    let output = (out.as_path(), Overwrite::Refuse);
    let written =
        predict::score(&run, &unlabelled, Which::All, Default::default(), output, &Job::silent()).unwrap();
    assert_eq!(written.rows, 400);
    // With other encounters, others would be in its parts.
    let changed = home.path().join("changed");
    let labels = dataset.manifest().labels.clone();
    let mut writer =
        Writer::create(&changed, Overwrite::Refuse, dataset.vocabulary().clone(), labels).unwrap();
    let encounters: Vec<Encounter> = dataset.encounters().unwrap().skip(9).map(Result::unwrap).collect();
    writer.write(&encounters).unwrap();
    writer.finish(dataset.manifest().source.clone()).unwrap();
    let changed = Dataset::open(&changed).unwrap();
    for (which, is_read) in [(Which::All, true), (Which::Part(SplitPart::Test), false)] {
        assert_eq!(Reader::new(&run, &changed, which).is_ok(), is_read, "{which:?}");
        assert!(Reader::new(&run, &dataset, which).is_ok(), "{which:?}");
    }
}

#[test]
fn weights_that_are_no_numbers_end_a_run_before_they_are_kept() {
    use gct::model::{Learner, Learning, TapeLearner};
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let encounters: Vec<Encounter> = dataset.encounters().unwrap().take(3).map(Result::unwrap).collect();
    for task in ["graph_reconstruction", "masked_diagnosis", "diagnosis_treatment"] {
        let folder = home.path().join(task);
        start(settings(task, "gct"), &dataset, &folder, None).unwrap();
        let run = Run::open(&folder).unwrap();
        let mut model = run.model().unwrap();
        model.weights_mut().update(|values| values.iter_mut().for_each(|value| *value *= 1e30));
        let predictor = Predictor::new(&model, &run.settings().task, run.encoding());
        let answers = predictor.answers(&predictor.samples(&encounters));
        assert!(matches!(answers, Err(Error::NotFinite)), "{task}");
        let mut example = predictor.example(&predictor.sample(&encounters[0]));
        if task == "diagnosis_treatment" {
            example = example.with_labels(vec![Some(true), Some(false)]);
        }
        let mut learner = TapeLearner::new(model);
        let loss = learner.step(&[example], Learning::new(1.0, 0)).prediction;
        assert!(!loss.is_finite(), "{task}: {loss}");
        assert!(learner.model().save(&home.path().join("w"), Overwrite::Refuse).is_err());
    }
}

#[test]
fn patience_ends_a_training_early_and_for_good() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    let mut settings = settings("diagnosis_treatment", "shallow");
    // With so small a rate nothing changes, and nothing gets better.
    (settings.learning_rate, settings.patience, settings.validate_every, settings.steps) = (1e-30, 2, 1, 50);
    let outcome = start(settings, &dataset, &folder, None).unwrap();
    assert!(outcome.early && outcome.step == 3, "{outcome:?}");
    assert_eq!(resume(&dataset, &folder, None).unwrap().step, 3);
}

#[test]
fn a_loss_that_explodes_ends_the_run_and_keeps_the_last_good_state() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    let mut settings = settings("diagnosis_treatment", "mime");
    (settings.learning_rate, settings.validate_every, settings.steps) = (10.0, 1, 500);
    let error = start(settings, &dataset, &folder, None).unwrap_err();
    let Error::Diverged { step, kept, .. } = error else { panic!("{error}") };
    assert_eq!(kept + 1, step);
    let last = format!("checkpoint-{kept:010}.safetensors");
    assert!(folder.join(last).exists() && Run::open(&folder).unwrap().model().is_ok());
    assert!(fs::read_to_string(folder.join("log.txt")).unwrap().contains("the loss became"));
}

#[test]
fn every_model_learns_every_task_that_it_can() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for task in ["graph_reconstruction", "diagnosis_treatment", "masked_diagnosis", "label:d1_m1"] {
        for model in Config::NETWORKS {
            let folder = home.path().join(format!("{}-{model}", task.replace(':', "-")));
            let mut settings = settings(task, model);
            (settings.steps, settings.validate_every) = (2, 2);
            let no_nodes = ["deep", "mime"].contains(&model) && task == "graph_reconstruction"
                || model == "logistic" && ["graph_reconstruction", "masked_diagnosis"].contains(&task);
            match start(settings, &dataset, &folder, None) {
                Err(Error::Setting { name, .. }) if no_nodes => {
                    assert_eq!(name, "model");
                    assert!(!folder.exists());
                    continue;
                }
                outcome => assert_eq!(outcome.unwrap().step, 2, "{task} {model}"),
            }
            let run = Run::open(&folder).unwrap();
            let bootstrap = Bootstrap { replicates: 20, seed: 0 };
            let evaluation =
                evaluate::run(&run, &dataset, Which::Part(SplitPart::Test), bootstrap, &Job::silent())
                    .unwrap();
            assert!(evaluation.scores.value("log_loss").is_some(), "{task} {model}");
            let mixes = !["shallow", "deep", "mime", "logistic"].contains(&model);
            assert_eq!(evaluation.structure.is_some(), mixes, "{task} {model}");
            let several = task == "diagnosis_treatment";
            assert_eq!(evaluation.labels.len(), if several { 2 } else { 0 });
        }
    }
}

/// The dataset with labels of which some are not known: none of every fifteenth encounter.
fn partly_labelled(dataset: &Dataset, folder: &Path) -> Dataset {
    let labels = dataset.manifest().labels.clone();
    let mut writer = Writer::create(folder, Overwrite::Refuse, dataset.vocabulary().clone(), labels).unwrap();
    let encounters: Vec<Encounter> = (dataset.encounters().unwrap().enumerate())
        .map(|(number, encounter)| {
            let encounter = encounter.unwrap();
            let known = [number % 3 != 0, number % 5 != 0];
            let labels = encounter.labels.iter().zip(known).map(|(label, known)| label.filter(|_| known));
            Encounter { labels: labels.collect(), ..encounter }
        })
        .collect();
    writer.write(&encounters).unwrap();
    writer.finish(dataset.manifest().source.clone()).unwrap();
    Dataset::open(folder).unwrap()
}

#[test]
fn several_labels_are_learned_in_their_order_from_whoever_has_one_of_them() {
    let home = tempfile::tempdir().unwrap();
    let dataset = partly_labelled(&data(&home), &home.path().join("partly"));
    let at = |name: &str| home.path().join(name);
    let bootstrap = Bootstrap { replicates: 0, seed: 0 };
    let evaluated = |name: &str| {
        let run = Run::open(&at(name)).unwrap();
        evaluate::run(&run, &dataset, Which::All, bootstrap, &Job::silent()).unwrap()
    };
    for model in ["shallow", "logistic"] {
        let [both, turned, one] = ["both", "turned", "one"].map(|name| format!("{model}-{name}"));
        for (task, name) in
            [("labels:d1_m1,d2_m1", &both), ("labels:d2_m1,d1_m1", &turned), ("label:d2_m1", &one)]
        {
            let mut settings = settings(task, model);
            settings.split.stratify = Some("d2_m1".into());
            start(settings, &dataset, &at(name), None).unwrap();
        }
        let found = evaluated(&both);
        assert_eq!((found.encounters, found.left_out), (373, 27), "{model}");
        let names: Vec<&str> = found.labels.iter().map(|label| label.name.as_str()).collect();
        assert_eq!(names, ["d1_m1", "d2_m1"]);
        assert_eq!(evaluated(&one).encounters, 320);
        // The labels of a logistic regression do not know of each other.
        if model == "logistic" {
            let last = |name: &str| Model::load(&at(name).join("last.safetensors")).unwrap();
            let column = |model: Model<f32>, label: usize| -> Vec<f32> {
                model.weights().values().iter().skip(label).step_by(model.width()).copied().collect()
            };
            assert_eq!(column(last(&both), 1), column(last(&one), 0));
            assert_eq!(column(last(&both), 0), column(last(&turned), 1));
        }
    }
    // The task of the paper is two labels.
    let mut paper = settings("diagnosis_treatment", "gct");
    start(paper.clone(), &dataset, &at("paper"), None).unwrap();
    paper.task = "labels:d1_m1,d2_m1".parse().unwrap();
    start(paper, &dataset, &at("same"), None).unwrap();
    let values = |name: &str| Run::open(&at(name)).unwrap().model().unwrap().weights().values().to_vec();
    assert_eq!(values("paper"), values("same"));
}

#[test]
fn the_loss_of_an_evaluation_is_that_of_the_model() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for task in ["graph_reconstruction", "masked_diagnosis", "label:d1_m1"] {
        let folder = home.path().join(task.replace(':', "-"));
        start(settings(task, "gct"), &dataset, &folder, None).unwrap();
        let run = Run::open(&folder).unwrap();
        let (model, task) = (run.model().unwrap(), run.settings().task.clone());
        let predictor = Predictor::of_run(&run).unwrap();
        let encounters: Vec<Encounter> =
            Reader::new(&run, &dataset, Which::All).unwrap().map(Result::unwrap).collect();
        let examples: Vec<_> =
            predictor.samples(&encounters).iter().map(|sample| predictor.example(sample)).collect();
        let loss = model.frozen().evaluate(&examples, &Scratch::default()).prediction;
        let none = Bootstrap { replicates: 0, seed: 0 };
        let evaluation = evaluate::run(&run, &dataset, Which::All, none, &Job::silent()).unwrap();
        let measured = evaluation.scores.value("log_loss").unwrap();
        assert!((loss - measured).abs() < 1e-5 * loss.abs(), "{task}: {loss} {measured}");
        assert_eq!(evaluation.encounters, 400);
    }
}

/// The same encounters in a dataset with its codes in reverse order and without some of them.
fn turned(dataset: &Dataset, folder: &Path, dropped: usize) -> Dataset {
    let vocabulary = PerKind::from_fn(|kind| {
        let mut codes = dataset.vocabulary()[kind].clone();
        codes.reverse();
        codes.iter_mut().take(dropped).for_each(|code| code.code.insert_str(0, "new "));
        codes
    });
    let last = PerKind::from_fn(|kind| (dataset.vocabulary()[kind].len() as u32).saturating_sub(1));
    let encounters: Vec<Encounter> = (dataset.encounters().unwrap())
        .map(|encounter| {
            let mut encounter = encounter.unwrap();
            let sizes = PerKind::from_fn(|kind| encounter.codes[kind].len() as u16);
            for kind in CodeKind::ALL {
                encounter.codes[kind] =
                    encounter.codes[kind].iter().rev().map(|id| last[kind] - id).collect();
            }
            let turn = |edges: &mut Vec<Edge>, causes: CodeKind, effects: CodeKind| {
                for edge in edges.iter_mut() {
                    edge.cause = sizes[causes] - 1 - edge.cause;
                    edge.effect = sizes[effects] - 1 - edge.effect;
                }
                edges.sort_unstable();
            };
            let edges = encounter.edges.as_mut().unwrap();
            turn(&mut edges.diagnosis_treatment, CodeKind::Diagnosis, CodeKind::Treatment);
            turn(&mut edges.treatment_lab, CodeKind::Treatment, CodeKind::Lab);
            encounter
        })
        .collect();
    let labels = dataset.manifest().labels.clone();
    let mut writer = Writer::create(folder, Overwrite::Refuse, vocabulary, labels).unwrap();
    writer.write(&encounters).unwrap();
    let kind = dataset.manifest().source.kind.clone();
    let source = Source { kind, settings: serde_json::json!({}), findings: serde_json::Value::Null };
    writer.finish(source).unwrap();
    Dataset::open(folder).unwrap()
}

#[test]
fn another_dataset_is_read_in_the_words_of_the_run() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let none = Bootstrap { replicates: 0, seed: 0 };
    let everybody = TestSet { which: Which::All, training: Training::Include };
    let evaluate = |dataset: &Dataset| evaluate::run(&run, dataset, everybody, none, &Job::silent()).unwrap();
    let same = turned(&dataset, &home.path().join("same"), 0);
    let (here, there) = (evaluate(&dataset), evaluate(&same));
    assert_eq!(here.scores, there.scores);
    assert_eq!(there.unseen, Unseen::default());
    assert_eq!(Which::default_for(&run, &same), Which::All);
    fs::rename(dataset.path(), home.path().join("before")).unwrap();
    let changed = turned(&same, dataset.path(), 0);
    assert_eq!(Which::default_for(&run, &changed), Which::Part(SplitPart::Test), "where its own was");
    let other = turned(&changed, &home.path().join("other"), 100);
    let there = evaluate(&other);
    assert_eq!(there.unseen.codes, 300);
    assert!(there.unseen.occurrences > 0 && there.scores != here.scores);
    let strange = turned(&changed, &home.path().join("strange"), 1000);
    let error = evaluate::run(&run, &strange, Which::All, none, &Job::silent()).unwrap_err();
    assert!(error.to_string().contains("the run knows none of its codes"), "{error}");
}

#[test]
fn a_run_predicts_without_its_dataset_and_predictions_are_the_models() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("label:d1_m1", "gct"), &dataset, &folder, None).unwrap();
    let moved = home.path().join("moved");
    fs::rename(home.path().join("data"), &moved).unwrap();
    let (run, dataset) = (Run::open(&folder).unwrap(), Dataset::open(&moved).unwrap());
    let out = home.path().join("predictions.parquet");
    let output = (out.as_path(), Overwrite::Refuse);
    let written =
        predict::score(&run, &dataset, Which::All, Default::default(), output, &Job::silent()).unwrap();
    assert_eq!((written.encounters, written.rows, written.left_out), (400, 400, 0));
    let again = predict::score(&run, &dataset, Which::All, Default::default(), output, &Job::silent());
    assert!(matches!(again, Err(Error::OutputExists { .. })));
    // MEDS has subjects that are integers; ours are not, and nothing is left behind.
    let meds = (TableOptions { meds: true, ..Default::default() }, home.path().join("meds.parquet"));
    let output = (meds.1.as_path(), Overwrite::Refuse);
    let refused = predict::score(&run, &dataset, Which::All, meds.0, output, &Job::silent());
    assert!(matches!(refused, Err(Error::NotMeds { .. })));
    assert!(!meds.1.exists());
    // Masked diagnosis writes several guesses, reconstruction all pairs that may be connected.
    for (task, rows) in [("masked_diagnosis", 4000), ("graph_reconstruction", 0)] {
        let folder = home.path().join(task);
        start(settings(task, "gct"), &dataset, &folder, None).unwrap();
        let run = Run::open(&folder).unwrap();
        let out = home.path().join(format!("{task}.parquet"));
        let options = TableOptions { min_probability: 0.0, ..Default::default() };
        let output = (out.as_path(), Overwrite::Refuse);
        let written = predict::score(&run, &dataset, Which::All, options, output, &Job::silent()).unwrap();
        let pairs: usize = (dataset.encounters().unwrap())
            .map(|encounter| {
                let codes = encounter.unwrap().codes;
                let [c, d, m, r] = CodeKind::ALL.map(|kind| codes[kind].len());
                c + d + d * m + m * r
            })
            .sum();
        assert_eq!(written.rows, if rows > 0 { rows } else { pairs as u64 });
    }
}

#[test]
fn what_does_not_go_together_is_refused_before_anything_is_written() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    let refused = |settings: Settings, dataset: &Dataset| {
        let error = start(settings, dataset, &folder, None).unwrap_err();
        assert!(!folder.exists(), "{error}");
        error.to_string()
    };
    assert!(refused(settings("mortality", "gct"), &dataset).contains("it has: d1_m1, d2_m1"));
    assert!(refused(settings("graph_reconstruction", "deep"), &dataset).contains("`model`: deep"));
    let plain = home.path().join("plain");
    let mut writer = Writer::create(&plain, Overwrite::Refuse, dataset.vocabulary().clone(), vec![]).unwrap();
    let encounters: Vec<Encounter> = (dataset.encounters().unwrap())
        .map(|encounter| Encounter { edges: None, labels: vec![], ..encounter.unwrap() })
        .collect();
    writer.write(&encounters).unwrap();
    let source =
        Source { kind: "plain".into(), settings: serde_json::json!({}), findings: serde_json::Value::Null };
    writer.finish(source).unwrap();
    let plain = Dataset::open(&plain).unwrap();
    let error = refused(settings("graph_reconstruction", "gct"), &plain);
    assert!(error.contains("no encounter in the dataset has what the task"), "{error}");
    assert!(refused(settings("masked_diagnosis", "gcn"), &plain).contains("not given the true edges"));
    start(settings("masked_diagnosis", "gct"), &dataset, &folder, None).unwrap();
    let error = resume(&plain, &folder, None).unwrap_err();
    assert!(error.to_string().contains("is not the dataset that it began with"), "{error}");
    let run = Run::open(&folder).unwrap();
    let none = Bootstrap { replicates: 0, seed: 0 };
    let error = evaluate::run(&run, &plain, Which::All, none, &Job::silent()).unwrap_err();
    assert!(error.to_string().contains("it holds plain data"), "{error}");
    let manifest = fs::read_to_string(folder.join("run.json")).unwrap();
    fs::write(folder.join("run.json"), manifest.replace("\"schema_version\": 1", "\"schema_version\": 9"))
        .unwrap();
    assert!(matches!(Run::open(&folder), Err(Error::Version { .. })));
}

#[test]
fn a_gradient_is_clipped_to_its_largest_length() {
    use gct::model::{Learner, Learning, Model, TapeLearner};
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let predictor = Predictor::of_run(&run).unwrap();
    let examples: Vec<_> = (dataset.encounters().unwrap().take(8))
        .map(|encounter| predictor.example(&predictor.sample(&encounter.unwrap())))
        .collect();
    // After the first step, Adam's mean is a tenth of the gradient.
    let after = |clip: Option<f64>| {
        let settings = run.settings();
        let model = Model::<f32>::new(&settings.model, &settings.head, run.embedding_rows(), 3).unwrap();
        let mut learner = TapeLearner::new(model);
        learner.step(&examples, Learning { clip, ..Learning::new(1e-3, 1) });
        let mean = learner.moments().mean.clone();
        let length = mean.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt() * 10.0;
        (mean, length, learner.model().weights().values().to_vec())
    };
    let (mean, length, weights) = after(None);
    let loose = after(Some(2.0 * length));
    assert_eq!((&loose.0, &loose.2), (&mean, &weights), "one that is short enough stays as it is");
    let tight = after(Some(0.25 * length));
    assert!((tight.1 / length - 0.25).abs() < 1e-5, "{} {length}", tight.1);
    let part = |(clipped, whole): (&f32, &f32)| (clipped - 0.25 * whole).abs() < 1e-7;
    assert!(tight.0.iter().zip(&mean).all(part));
    assert_eq!(Question::Edges, run.settings().task);
}

#[test]
fn vectors_that_are_not_of_numbers_are_not_written() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, None).unwrap();
    // Every weight is finite, and what is computed with them is not.
    let best = folder.join("best.safetensors");
    let mut model = Model::<f32>::load(&best).unwrap();
    model.weights_mut().update(|values| values.iter_mut().for_each(|value| *value = value.signum() * 1e38));
    let large = home.path().join("large.safetensors");
    model.save(&large, Overwrite::Refuse).unwrap();
    fs::rename(&large, &best).unwrap();
    // A run of an older program, which takes weights that do not say whose they are.
    let manifest = folder.join("run.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    json.as_object_mut().unwrap().remove("settings");
    fs::write(&manifest, json.to_string()).unwrap();
    let run = Run::open(&folder).unwrap();
    for name in ["vectors.parquet", "vectors.npy"] {
        let out = home.path().join(name);
        let written = predict::embed(
            &run,
            Embedded::Visits,
            &dataset,
            Which::All,
            (&out, Overwrite::Refuse),
            &Job::silent(),
        );
        assert!(matches!(written, Err(Error::NotFinite)), "{written:?}");
    }
    let mut left: Vec<_> =
        fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["data", "run"]);
}
