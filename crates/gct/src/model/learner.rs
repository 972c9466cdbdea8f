//! A model in training, whatever computes its gradients: `train` and checkpoints know only this.
//!
//! There are two learners: `TapeLearner`, the fast one on this processor, and `gct_plain::Plain`, on any
//! device of Burn. Both move the weights by `Model::step`, the one Adam. So a run can be stopped on one
//! learner and resumed on the other.

use gct_kernels::Number;

use super::{Model, Moments, Outcome, Pass};
use crate::batch::Example;

/// A model in training.
pub trait Learner<T> {
    /// Learns from one batch and returns the loss that it had before.
    fn step(&mut self, batch: &[Example], learning: Learning<'_>) -> Outcome;

    /// The model with its weights after the last step, in the memory of the host, whatever the device.
    fn model(&self) -> &Model<T>;

    /// Adam's moments after the last step, in the memory of the host as well.
    fn moments(&self) -> &Moments<T>;
}

/// How a step learns.
#[derive(Debug, Clone, Copy)]
pub struct Learning<'a> {
    /// Adam's learning rate.
    pub rate: f64,
    /// The largest norm that the gradient may have; a longer one is scaled down to it.
    pub clip: Option<f64>,
    /// Weight decay: matrices lose this share of themselves, times the learning rate, in each step.
    pub weight_decay: f64,
    /// The share of each target that is spread evenly over all answers.
    pub label_smoothing: f64,
    /// What a positive of each label counts in the loss, beside 1 for a negative; empty where all count
    /// alike.
    pub positives: &'a [f64],
    /// Seed of the dropout masks.
    pub dropout_key: u32,
}

impl<'a> Learning<'a> {
    /// Without clipping, weight decay, label smoothing and weights of positives.
    pub fn new(rate: f64, dropout_key: u32) -> Self {
        Learning { rate, clip: None, weight_decay: 0.0, label_smoothing: 0.0, positives: &[], dropout_key }
    }

    /// The pass over a batch that this step makes.
    pub fn pass<T: Number>(self, model: &Model<T>, batch: &[Example]) -> Pass<'a> {
        Pass {
            dropout_key: Some(self.dropout_key),
            label_smoothing: self.label_smoothing,
            positives: self.positives,
            ..model.pass(batch, true)
        }
    }
}
