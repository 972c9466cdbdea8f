//! How many visits per second a training step and an evaluation of GCT with history handle, for `cargo xtask
//! bench patients`.
//!
//! `bench_patients FOLDER` prints one JSON object: `train` and `evaluate` in visits/s. Each visit of some
//! patients is asked about once, with those before it as its history, so there are as many questions as
//! visits.

use std::path::Path;

use bench::{BATCH, ENCOUNTERS, rate, with_dropout};
use gct::batch::{EmbeddingRows, Encoding, Example};
use gct::dataset::Dataset;
use gct::history::{Aggregator, History};
use gct::infer::Predictor;
use gct::job::Job;
use gct::model::{Learner, Learning, Model, TapeLearner};
use gct::prior::{self, PriorSettings};
use gct::question::{HeadConfig, Labels, Question};
use gct::record::{Encounter, PerKind};
use gct::split::{By, Split};
use serde_json::json;

mod bench;

/// The label of synthetic patients that depends on earlier visits.
const LABEL: &str = "later";
static QUESTION: Question = Question::Labels(Labels::Named(String::new()));

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> gct::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "visits".into());
    let dataset = Dataset::open(Path::new(&folder))?;
    let visits = visits(&dataset)?;
    let prior = prior::fit(&dataset, &Split::by_hash(0, By::Subject), &Job::silent())?;
    let (rows, settings) = (embedding_rows(&dataset), PriorSettings::default());
    let encoding = Encoding { rows, prior: &prior, settings: &settings };

    let history = History { aggregator: Aggregator::Gru, ..History::default() };
    let head = HeadConfig::Labels { count: 1 };
    let model = Model::<f32>::with_history(&with_dropout("gct")?, &history, &head, rows, 0)?;
    // As training does it: a batch has consecutive visits, so that those of a patient stay together, and what
    // several of its samples see is one visit.
    let predictor = Predictor::new(&model, &QUESTION, encoding);
    let batches: Vec<Vec<Example>> =
        predictor.samples(&visits).chunks(BATCH).map(|samples| encoding.examples(samples)).collect();

    let mut learner = TapeLearner::new(model);
    let train = rate(visits.len(), || {
        for (step, batch) in (0..).zip(&batches) {
            learner.step(batch, Learning::new(5e-4, step));
        }
    });
    // What `gct predict` does with encounters that it has read.
    let predictor = Predictor::new(learner.model(), &QUESTION, encoding);
    let evaluate = rate(visits.len(), || {
        let answers = predictor.answers(&predictor.samples(&visits)).expect("the weights are small");
        std::hint::black_box(answers);
    });
    println!("{:#}", json!({"visits": visits.len(), "train": train, "evaluate": evaluate}));
    Ok(())
}

/// The first visits of a dataset, those of a patient one after the other, with the one label.
fn visits(dataset: &Dataset) -> gct::Result<Vec<Encounter>> {
    let label = dataset.manifest().labels.iter().position(|label| label == LABEL);
    let label = label.expect("the dataset is of gct synth --visits");
    let only_label = |encounter: gct::Result<Encounter>| {
        let encounter = encounter?;
        Ok(Encounter { labels: vec![encounter.labels[label]], ..encounter })
    };
    dataset.encounters()?.take(ENCOUNTERS).map(only_label).collect()
}

fn embedding_rows(dataset: &Dataset) -> EmbeddingRows {
    EmbeddingRows::new(PerKind::from_fn(|kind| dataset.vocabulary()[kind].len() as u32))
}
