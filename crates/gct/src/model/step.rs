//! One step of training: forward and backward over a batch, then Adam.
//!
//! A batch is cut into a fixed number of shards of about equal size. Each is worked through by one thread, a chunk of nodes at a
//! time, with a gradient of its own; gradients are added in the order of the shards. So a step gives the same bits with
//! any number of threads.

use std::ops::Range;
use std::slice::ChunksMut;

use gct_kernels::Number;
use gct_kernels::rows::{self, Adam};
use gct_kernels::tape::Pool;
use gct_kernels::weights::Vector;
use rayon::prelude::*;

use super::chunks::{SHARDS, shards};
use super::{Model, Outcome, Pass};
use crate::batch::Example;

/// Parameters that a thread updates at a time.
const UPDATE: usize = 1 << 14;

/// A model being trained.
pub struct Trainer<T> {
    model: Model<T>,
    progress: Progress<T>,
    shards: Vec<Shard<T>>,
}

struct Shard<T> {
    gradients: Vec<T>,
    /// Where they may be other than zero, in order: most rows of the embedding have no part in a batch.
    touched: Vec<Range<usize>>,
    pool: Pool<T>,
}

/// How a step learns.
#[derive(Debug, Clone, Copy)]
pub struct Learning {
    /// How far to go.
    pub rate: f64,
    /// The largest norm that the gradient may have; a longer one is shortened to it.
    pub clip: Option<f64>,
    /// Decides what is dropped.
    pub dropout_key: u32,
}

impl Learning {
    /// Without clipping.
    pub fn new(rate: f64, dropout_key: u32) -> Self {
        Learning { rate, clip: None, dropout_key }
    }
}

/// Where Adam stands, besides the weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress<T> {
    /// The running mean of the gradient.
    pub mean: Vec<T>,
    /// The running mean of its square.
    pub square: Vec<T>,
    /// How many steps were made.
    pub steps: u32,
}

impl<T: Number> Trainer<T> {
    /// Takes a model to train.
    pub fn new(model: Model<T>) -> Self {
        let zeros = || vec![T::ZERO; model.parameters().len()];
        let progress = Progress { mean: zeros(), square: zeros(), steps: 0 };
        Trainer::resume(model, progress)
    }

    /// Takes a model and goes on where another trainer stood.
    ///
    /// # Panics
    /// If it was another model's.
    pub fn resume(model: Model<T>, progress: Progress<T>) -> Self {
        let parameters = model.parameters().len();
        assert_eq!(
            [progress.mean.len(), progress.square.len()],
            [parameters; 2],
            "moments of every parameter"
        );
        let shard =
            |_| Shard { gradients: vec![T::ZERO; parameters], touched: Vec::new(), pool: Pool::default() };
        Trainer { shards: (0..SHARDS).map(shard).collect(), model, progress }
    }

    /// Where Adam stands.
    pub fn progress(&self) -> &Progress<T> {
        &self.progress
    }

    /// The model.
    pub fn model(&self) -> &Model<T> {
        &self.model
    }

    /// Learns from one batch and returns the loss that it had.
    pub fn step(&mut self, batch: &[Example], learning: Learning) -> Outcome {
        let pass = Pass { dropout_key: Some(learning.dropout_key), ..self.model.pass(batch, true) };
        let parts = shards(batch);
        let model = &self.model;
        let outcomes: Vec<Outcome> = (self.shards.par_iter_mut().zip(parts))
            .map(|(shard, range)| {
                shard.touched = model.touched(&batch[range.clone()]);
                let gradients = &mut shard.gradients[..];
                let (part, pool) = ((batch, range), &mut shard.pool);
                model.network.play_in_chunks(&model.weights, part, pass, pool, Some(gradients))
            })
            .collect();
        self.update(learning);
        Outcome::sum(&outcomes)
    }

    /// Adds the gradients of the shards and goes one step against them.
    fn update(&mut self, Learning { rate, clip, .. }: Learning) {
        let factor = clip.map(|most| {
            // Its length must be known before the first parameter moves.
            let norm = self.add_gradients();
            if norm > most { most / norm } else { 1.0 }
        });
        let Trainer { model, progress, shards } = self;
        let [first, others @ ..] = &mut shards[..] else { unreachable!("there are {SHARDS} shards") };
        progress.steps += 1;
        let adam =
            Adam { learning_rate: rate, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-8, step: progress.steps };
        let mut others = if factor.is_some() { Vec::new() } else { parts_of(others) };
        model.weights_mut().update(|values| {
            let jobs: Vec<_> = (values.chunks_mut(UPDATE))
                .zip(progress.mean.chunks_mut(UPDATE))
                .zip(progress.square.chunks_mut(UPDATE))
                .zip(first.gradients.chunks_mut(UPDATE))
                .map(|job| (job, next_of(&mut others)))
                .enumerate()
                .collect();
            jobs.into_par_iter().for_each(|(number, ((((values, mean), square), sum), others))| {
                add_up(number, others, sum);
                if let Some(factor) = factor.filter(|factor| *factor < 1.0) {
                    sum.iter_mut().for_each(|gradient| *gradient *= T::of(factor));
                }
                adam.update(values, mean, square, sum);
            });
        });
    }

    /// Adds the gradients of all shards to those of the first, and returns the length of the sum.
    fn add_gradients(&mut self) -> f64 {
        let [first, others @ ..] = &mut self.shards[..] else { unreachable!("there are {SHARDS} shards") };
        let mut others = parts_of(others);
        let jobs: Vec<_> =
            (first.gradients.chunks_mut(UPDATE)).map(|sum| (sum, next_of(&mut others))).enumerate().collect();
        let squares: Vec<f64> = (jobs.into_par_iter())
            .map(|(number, (sum, others))| {
                add_up(number, others, sum);
                sum.iter().map(|gradient| gradient.f64() * gradient.f64()).sum()
            })
            .collect();
        squares.iter().sum::<f64>().sqrt()
    }
}

/// The gradients of a shard that belong to one job, and where in all of them they may be other than zero.
type Part<'a, T> = (&'a [Range<usize>], &'a mut [T]);

/// The gradients of shards, cut into those of each job.
fn parts_of<T>(shards: &mut [Shard<T>]) -> Vec<(&[Range<usize>], ChunksMut<'_, T>)> {
    shards.iter_mut().map(|shard| (&shard.touched[..], shard.gradients.chunks_mut(UPDATE))).collect()
}

/// Those of the next job.
fn next_of<'a, T>(shards: &mut [(&'a [Range<usize>], ChunksMut<'a, T>)]) -> Vec<Part<'a, T>> {
    shards.iter_mut().filter_map(|(touched, parts)| Some((*touched, parts.next()?))).collect()
}

/// Adds the gradients of other shards to those of the first, and clears them.
fn add_up<T: Number>(job: usize, others: Vec<Part<'_, T>>, sum: &mut [T]) {
    let job = job * UPDATE..job * UPDATE + sum.len();
    for (touched, gradient) in others {
        let before = touched.partition_point(|range| range.end <= job.start);
        for range in touched[before..].iter().take_while(|range| range.start < job.end) {
            let part = range.start.max(job.start) - job.start..range.end.min(job.end) - job.start;
            rows::add(&gradient[part.clone()], &mut sum[part.clone()]);
            gradient[part].fill(T::ZERO);
        }
    }
}

impl<T: Number> Model<T> {
    /// Where the gradients of these examples may be other than zero, in order.
    fn touched(&self, examples: &[Example]) -> Vec<Range<usize>> {
        let Vector { start, len } = self.network.embedding;
        let width = self.width();
        let mut ids: Vec<u32> = examples.iter().flat_map(|example| example.ids.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        debug_assert_eq!(start, 0, "the embedding comes first");
        let row = |id: u32| start + id as usize * width..start + (id as usize + 1) * width;
        ids.into_iter().map(row).chain(std::iter::once(start + len..self.parameters.len())).collect()
    }
}
