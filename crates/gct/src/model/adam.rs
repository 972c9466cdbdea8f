//! Adam, the one optimiser of all learners: its constants, its moments, bias correction, clipping by the norm
//! of the whole gradient, and decoupled weight decay, with which it is AdamW.
//!
//! The gradient of a batch may come in summands, one of each shard. They are added up and used piece by
//! piece, each by one thread while it is in the cache; with clipping, all are added up first. Summands are
//! added in their order, so a step gives the same bits with any number of threads.

use std::ops::Range;
use std::slice::ChunksMut;

use gct_kernels::{Number, rows};
use rayon::prelude::*;

use super::Learning;
use crate::parameters::Parameters;

const MEAN_DECAY: f64 = 0.9;
const SQUARE_DECAY: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Parameters that a thread updates at a time.
const PIECE: usize = 1 << 14;

/// Adam's state besides the weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Moments<T> {
    /// The running mean of the gradient.
    pub mean: Vec<T>,
    /// The running mean of its square.
    pub square: Vec<T>,
    /// Number of steps made.
    pub steps: u32,
}

/// The gradient of all parameters, or one of several that are to be added.
pub struct Gradient<T> {
    /// A number per parameter.
    pub values: Vec<T>,
    /// Where they may be other than zero, in order: most rows of the embedding have no part in a batch.
    pub touched: Vec<Range<usize>>,
}

impl<T> Gradient<T> {
    /// One that may be other than zero everywhere.
    pub fn new(values: Vec<T>) -> Self {
        let all = 0..values.len();
        Gradient { values, touched: vec![all] }
    }
}

impl<T: Number> Moments<T> {
    /// Before the first step.
    pub fn zeros(parameters: usize) -> Self {
        Moments { mean: vec![T::ZERO; parameters], square: vec![T::ZERO; parameters], steps: 0 }
    }

    /// One step of Adam: moves the weights against the sum of these gradients, which are zero afterwards.
    ///
    /// # Panics
    /// If there is no gradient, or its length or that of the weights is not that of the moments.
    pub fn step(&mut self, weights: &mut [T], gradients: &mut [Gradient<T>], learning: Learning) {
        let parameters = [self.mean.len(), self.square.len()];
        assert_eq!(parameters, [weights.len(); 2], "moments of every parameter");
        assert!(gradients.iter().all(|gradient| gradient.values.len() == weights.len()), "their gradients");
        let factor = learning.clip.map(|most| {
            // The norm must be known before the first parameter moves.
            let norm = add_up(gradients);
            if norm > most { most / norm } else { 1.0 }
        });
        self.steps += 1;
        let update = Update::new(learning.rate, self.steps);
        let (sum, mut others) = in_pieces(gradients, factor.is_none());
        let jobs: Vec<_> = (weights.chunks_mut(PIECE))
            .zip(self.mean.chunks_mut(PIECE))
            .zip(self.square.chunks_mut(PIECE))
            .zip(sum)
            .map(|job| (job, next_of(&mut others)))
            .enumerate()
            .collect();
        jobs.into_par_iter().for_each(|(number, ((((weights, mean), square), sum), others))| {
            add_piece(number, others, sum);
            if let Some(factor) = factor.filter(|factor| *factor < 1.0) {
                sum.iter_mut().for_each(|gradient| *gradient *= T::of(factor));
            }
            update.apply(weights, mean, square, sum);
        });
    }
}

/// Makes matrices smaller by the rate times the weight decay, the embedding among them: a code that is rare
/// then stays near zero. Vectors (biases, gains of LayerNorm, the scale of edges) are left as they are.
pub(super) fn decay<T: Number>(weights: &mut [T], parameters: &Parameters, learning: Learning) {
    if learning.weight_decay == 0.0 {
        return;
    }
    let keep = T::of(1.0 - learning.rate * learning.weight_decay);
    for matrix in parameters.named().iter().filter(|parameter| parameter.shape.len() == 2) {
        let values = &mut weights[matrix.start..matrix.start + matrix.len()];
        values.par_chunks_mut(PIECE).for_each(|piece| piece.iter_mut().for_each(|weight| *weight *= keep));
    }
}

/// The factors of one step, the same for every parameter.
struct Update<T> {
    rate: T,
    unbias: T,
    keep: [T; 2],
    take: [T; 2],
}

impl<T: Number> Update<T> {
    fn new(rate: f64, step: u32) -> Self {
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        // Moments begin at zero: the share of what they are a mean of by now.
        let share = |decay: f64| 1.0 - decay.powi(step);
        let decays = [MEAN_DECAY, SQUARE_DECAY];
        Update {
            rate: T::of(rate / share(MEAN_DECAY)),
            unbias: T::of(1.0 / share(SQUARE_DECAY)),
            keep: decays.map(T::of),
            take: decays.map(|decay| T::of(1.0 - decay)),
        }
    }

    fn apply(&self, weights: &mut [T], mean: &mut [T], square: &mut [T], gradient: &mut [T]) {
        let &Update { rate, unbias, keep, take } = self;
        rows::adam(rate, unbias, keep, take, T::of(EPSILON), weights, mean, square, gradient);
    }
}

/// A piece of a gradient, and where in the whole gradient it may be other than zero.
type Piece<'a, T> = (&'a [Range<usize>], &'a mut [T]);

/// The rest of a gradient in pieces, and where in the whole gradient they may be other than zero.
type Pieces<'a, T> = (&'a [Range<usize>], ChunksMut<'a, T>);

/// The first gradient in pieces, and the others too if they are still to be added.
fn in_pieces<T>(gradients: &mut [Gradient<T>], with_others: bool) -> (ChunksMut<'_, T>, Vec<Pieces<'_, T>>) {
    let (first, others) = gradients.split_first_mut().expect("there is a gradient");
    let others = if with_others { others } else { &mut [] };
    let others = others.iter_mut().map(|other| (&other.touched[..], other.values.chunks_mut(PIECE)));
    (first.values.chunks_mut(PIECE), others.collect())
}

/// The next piece of each.
fn next_of<'a, T>(gradients: &mut [Pieces<'a, T>]) -> Vec<Piece<'a, T>> {
    gradients.iter_mut().filter_map(|(touched, pieces)| Some((*touched, pieces.next()?))).collect()
}

/// Adds all gradients to the first, and returns the norm of the sum.
fn add_up<T: Number>(gradients: &mut [Gradient<T>]) -> f64 {
    let (sum, mut others) = in_pieces(gradients, true);
    let jobs: Vec<_> = sum.map(|sum| (sum, next_of(&mut others))).enumerate().collect();
    let squares: Vec<f64> = (jobs.into_par_iter())
        .map(|(number, (sum, others))| {
            add_piece(number, others, sum);
            sum.iter().map(|gradient| gradient.f64() * gradient.f64()).sum()
        })
        .collect();
    squares.iter().sum::<f64>().sqrt()
}

/// Adds the n-th pieces of other gradients to that of the first, and clears them.
fn add_piece<T: Number>(number: usize, others: Vec<Piece<'_, T>>, sum: &mut [T]) {
    let range = number * PIECE..number * PIECE + sum.len();
    for (touched, gradient) in others {
        let before = touched.partition_point(|touched| touched.end <= range.start);
        for touched in touched[before..].iter().take_while(|touched| touched.start < range.end) {
            let part = touched.start.max(range.start) - range.start..touched.end.min(range.end) - range.start;
            rows::add(&gradient[part.clone()], &mut sum[part.clone()]);
            gradient[part].fill(T::ZERO);
        }
    }
}
