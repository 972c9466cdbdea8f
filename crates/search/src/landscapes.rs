//! Functions shaped like what hyperparameters do to a validation score, for the comparison of strategies. A
//! point is a learning rate from 1e-4 to 1e-1, two dropout rates from 0 to 0.9, and a regularisation
//! coefficient from 1e-2 to 1e2.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

// Of the library in its tests, of the example in the example.
use super::{Dimension, Scale, Space};

/// A landscape: its name, what a point is truly worth (none: training diverges), and the best there is.
pub(crate) struct Landscape {
    pub(crate) name: &'static str,
    pub(crate) truth: fn(&[f64]) -> Option<f64>,
    pub(crate) best: f64,
}

pub(crate) const LANDSCAPES: [Landscape; 3] = [
    Landscape { name: "ridge", truth: ridge, best: 0.8 },
    Landscape { name: "cliff", truth: cliff, best: 0.6 },
    Landscape { name: "plain", truth: plain, best: 0.75 },
];

/// How far measured values are from the truth, on landscapes whose heights differ by about 0.5: one standard
/// deviation.
pub(crate) const NOISE: f64 = 0.005;

fn bell(distance: f64) -> f64 {
    (-0.5 * distance * distance).exp()
}

/// A narrow ridge: more dropout needs a higher learning rate, and off the ridge nothing is learned.
fn ridge(point: &[f64]) -> Option<f64> {
    let [rate, dropout, post, lambda] = logs(point);
    let on_ridge = bell((rate + 2.9 - 1.2 * (dropout - 0.4)) / 0.35);
    let along = bell((dropout - 0.4) / 0.35) * bell((post - 0.15) / 0.5) * bell((lambda + 1.0) / 1.2);
    Some(0.3 + 0.5 * on_ridge * along)
}

/// Faster learning is better until it diverges, earlier where there is little dropout.
fn cliff(point: &[f64]) -> Option<f64> {
    let [rate, dropout, post, lambda] = logs(point);
    let edge = -2.0 + 0.5 * (dropout - 0.45);
    let below = edge - rate;
    if below < 0.0 {
        return None;
    }
    let slow = 0.12 * (below - 0.15).powi(2);
    Some(
        0.6 - slow
            - 0.6 * (dropout - 0.6).powi(2)
            - 0.3 * (post - 0.1).powi(2)
            - 0.02 * (lambda - 0.5).powi(2),
    )
}

/// A broad hill in two settings; the second dropout does nothing, and little regularisation does no harm.
fn plain(point: &[f64]) -> Option<f64> {
    let [rate, dropout, _, lambda] = logs(point);
    let harm = 0.15 / (1.0 + (-(lambda - 1.0) / 0.2).exp()) - 0.15 / (1.0 + 15f64.exp());
    Some(0.25 + 0.5 * bell((rate + 3.4) / 0.45) * bell((dropout - 0.2) / 0.4) - harm)
}

fn logs(point: &[f64]) -> [f64; 4] {
    [point[0].log10(), point[1], point[2], point[3].log10()]
}

/// The space of the paper, for GCT.
pub(crate) fn space() -> Space {
    let dimension = |name: &str, low, high, scale| Dimension { name: name.into(), low, high, scale };
    Space::new(vec![
        dimension("learning_rate", 1e-4, 1e-1, Scale::Log),
        dimension("model.dropout.mlp", 0.0, 0.9, Scale::Linear),
        dimension("model.dropout.post_mlp", 0.0, 0.9, Scale::Linear),
        dimension("model.regularization", 1e-2, 1e2, Scale::Log),
    ])
    .unwrap()
}

/// A draw that is nearly normal, with mean 0 and deviation 1.
pub(crate) fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
}
