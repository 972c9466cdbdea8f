//! The fast learner: forward and backward over a batch on the tape, then Adam.
//!
//! A batch is cut into a fixed number of shards of about equal size. Each is worked through by one thread, a
//! chunk of nodes at a time, with a gradient of its own; gradients are added in the order of the shards. So a
//! step gives the same bits with any number of threads.

use std::ops::Range;

use gct_kernels::Number;
use gct_kernels::tape::Pool;
use gct_kernels::weights::Vector;
use rayon::prelude::*;

use super::adam::Gradient;
use super::chunks::{SHARDS, shards};
use super::{Learner, Learning, Model, Moments, Outcome};
use crate::batch::Example;

/// A model in training on the tape.
pub struct TapeLearner<T> {
    model: Model<T>,
    moments: Moments<T>,
    /// One of each shard.
    gradients: Vec<Gradient<T>>,
    pools: Vec<Pool<T>>,
}

impl<T: Number> TapeLearner<T> {
    /// Takes a model to train from the beginning.
    pub fn new(model: Model<T>) -> Self {
        let moments = Moments::zeros(model.parameters().len());
        TapeLearner::resume(model, moments)
    }

    /// Takes a model to train from where another learner stood.
    pub fn resume(model: Model<T>, moments: Moments<T>) -> Self {
        let zeros = || Gradient::new(vec![T::ZERO; model.parameters().len()]);
        let gradients = (0..SHARDS).map(|_| zeros()).collect();
        TapeLearner { model, moments, gradients, pools: (0..SHARDS).map(|_| Pool::default()).collect() }
    }
}

impl<T: Number> Learner<T> for TapeLearner<T> {
    fn step(&mut self, batch: &[Example], learning: Learning<'_>) -> Outcome {
        let pass = learning.pass(&self.model, batch);
        let TapeLearner { model, moments, gradients, pools } = self;
        let shards = gradients.par_iter_mut().zip(pools).zip(shards(batch));
        let outcomes: Vec<Outcome> = shards
            .map(|((gradient, pool), range)| {
                gradient.touched = model.touched(&batch[range.clone()]);
                let (part, values) = ((batch, range), &mut gradient.values[..]);
                model.network.play_in_chunks(&model.weights, part, pass, pool, Some(values))
            })
            .collect();
        model.step(moments, gradients, learning);
        Outcome::sum(&outcomes)
    }

    fn model(&self) -> &Model<T> {
        &self.model
    }

    fn moments(&self) -> &Moments<T> {
        &self.moments
    }
}

impl<T: Number> Model<T> {
    /// Where the gradients of these examples may be other than zero, in order.
    fn touched(&self, examples: &[Example]) -> Vec<Range<usize>> {
        let Vector { start, len } = self.network.embedding;
        let width = self.width();
        let visits = examples.iter().flat_map(Example::visits);
        let mut ids: Vec<u32> = visits.flat_map(|visit| visit.ids.iter().copied()).collect();
        ids.sort_unstable();
        ids.dedup();
        debug_assert_eq!(start, 0, "the embedding comes first");
        let row = |id: u32| start + id as usize * width..start + (id as usize + 1) * width;
        ids.into_iter().map(row).chain(std::iter::once(start + len..self.parameters.len())).collect()
    }
}
