//! How many encounters per second a training step and an evaluation handle, for `cargo xtask bench train`.
//!
//! Prints one JSON object: model, task, `train` and `evaluate`.

use std::path::Path;
use std::time::Instant;

use gct::batch::{EmbeddingRows, Example};
use gct::dataset::Dataset;
use gct::model::{Config, HeadConfig, Model, Scratch, Targets, Trainer};
use gct::prior::{self, MatrixSettings};
use gct::record::PerKind;
use gct::split::{By, Split};
use serde_json::{Value, json};

const BATCH: usize = 32;
const ENCOUNTERS: usize = 1600;

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> gct::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "synthetic".into());
    let dataset = Dataset::open(Path::new(&folder))?;
    let prior = prior::fit(&dataset, &Split::by_hash(0, By::Subject))?;
    let rows = EmbeddingRows::new(PerKind::from_fn(|kind| dataset.vocabulary()[kind].len() as u32));
    let (mut examples, mut labels) = (Vec::new(), Vec::new());
    for encounter in dataset.encounters()?.take(ENCOUNTERS) {
        let encounter = encounter?;
        examples.push(Example::new(&encounter, rows, &prior, &MatrixSettings::default()));
        labels.push(vec![encounter.labels[0]]);
    }
    let mut report = json!({});
    for name in ["gct", "transformer", "gcn", "shallow"] {
        let edges = HeadConfig::Edges { initial_bias: -3.0 };
        for (task, head) in
            [("graph_reconstruction", edges), ("visit_label", HeadConfig::Labels { count: 1 })]
        {
            report[name][task] = measure(name, &head, rows, &examples, &labels)?;
        }
    }
    println!("{report:#}");
    Ok(())
}

fn measure(
    name: &str,
    head: &HeadConfig,
    rows: EmbeddingRows,
    examples: &[Example],
    labels: &[Vec<Option<bool>>],
) -> gct::Result<Value> {
    let mut trainer = Trainer::new(Model::<f32>::new(&with_dropout(name)?, head, rows, 0)?);
    let targets = |at: usize| match head {
        HeadConfig::Labels { .. } => Targets::Labels(&labels[at..][..BATCH]),
        _ => Targets::Examples,
    };
    let batches = || (0..examples.len() / BATCH).map(|batch| batch * BATCH);
    let train = rate(examples.len(), || {
        for at in batches() {
            trainer.step(&examples[at..][..BATCH], &targets(at), 5e-4, at as u32);
        }
    });
    let mut scratch = Scratch::default();
    let evaluate = rate(examples.len(), || {
        for at in batches() {
            trainer.model().evaluate(&examples[at..][..BATCH], &targets(at), &mut scratch);
        }
    });
    Ok(json!({"train": train, "evaluate": evaluate}))
}

/// The paper's dropout for GCT on graph reconstruction, wherever a model has dropout.
fn with_dropout(name: &str) -> gct::Result<Config> {
    let mut config = Config::named(name)?;
    match &mut config {
        Config::Gct(config) => (config.dropout.mlp, config.dropout.post_mlp) = (0.3, 0.1),
        Config::Transformer(config) => (config.dropout.mlp, config.dropout.post_mlp) = (0.3, 0.1),
        Config::Gcn(config) => (config.dropout.mlp, config.dropout.post_mlp) = (0.3, 0.1),
        Config::Shallow(config) => config.dropout = 0.3,
        _ => {}
    }
    Ok(config)
}

/// The best of five, after one to warm up: the machine is noisy.
fn rate(encounters: usize, mut run: impl FnMut()) -> f64 {
    run();
    let seconds = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    encounters as f64 / seconds.fold(f64::INFINITY, f64::min)
}
