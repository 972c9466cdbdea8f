//! What the benchmarks of training have in common.

use std::time::Instant;

use gct::model::Config;

/// Examples that a step learns from.
pub(crate) const BATCH: usize = 32;

/// Encounters of a dataset that are measured with.
pub(crate) const ENCOUNTERS: usize = 1600;

/// The paper's dropout for GCT on graph reconstruction, wherever a model has dropout.
pub(crate) fn with_dropout(name: &str) -> gct::Result<Config> {
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

/// So many encounters per second: the best of five, after one to warm up, because the machine is noisy.
pub(crate) fn rate(encounters: usize, mut run: impl FnMut()) -> f64 {
    run();
    let seconds = (0..5).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    });
    encounters as f64 / seconds.fold(f64::INFINITY, f64::min)
}
