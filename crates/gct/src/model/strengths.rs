//! The fits of a logistic regression: one to convergence for each C, in place of a learner's steps.
//!
//! Newton's method, whose linear systems are solved by conjugate gradients with the diagonal as
//! preconditioner, and whose steps are halved until the objective falls. The Hessian is never built: a
//! product with it is a pass over the codes of all encounters and one back. Computed in double precision.
//!
//! The penalty makes the objective strongly convex in the weights of codes with modulus 1, so where the norm
//! of the gradient is below 1e-6, they are as near to the best ones. A fit begins where the one before it
//! ended, in the single precision of the model, so one that was resumed ends with the same bits. Every number
//! is added up by one thread or in chunks of fixed sizes: the bits are those of any number of threads.
//!
//! A fit that is to stop does so in its midst and leaves the model as it found it.

use gct_kernels::loss::{binary, counted};
use rayon::prelude::*;

use super::{Config, Model, Moments, Outcome};
use crate::error::Result;
use crate::job::Stop;

/// Norm of the gradient of a fit that has converged.
const TOLERANCE: f64 = 1e-6;

/// The same, as a share of what all encounters count: less is rounding.
const ROUNDING: f64 = 1e-15;

/// More steps of Newton's method than a fit needs.
const MOST_STEPS: usize = 200;

/// Rounds of conjugate gradients for one step at most.
const MOST_ROUNDS: usize = 1000;

/// Times that a step is halved at most.
const MOST_HALVINGS: usize = 40;

/// The share of the fall that a step promises which is enough.
const ENOUGH: f64 = 1e-4;

/// Encounters whose losses a thread adds up at a time.
const CHUNK: usize = 4096;

/// Encounters to learn from: the rows of the embedding of each, the encounters of each row, and their labels.
pub(crate) struct Observed {
    /// Where the rows of each encounter end.
    ends: Vec<usize>,
    rows: Vec<u32>,
    /// Where the encounters of each row end.
    column_ends: Vec<usize>,
    encounters: Vec<u32>,
    /// Of each encounter, all labels.
    labels: Vec<Option<bool>>,
}

/// A logistic regression in training.
pub(crate) struct Strengths {
    model: Model<f32>,
    /// Of Adam, who has no part in it: zeros, which checkpoints have of every model.
    moments: Moments<f32>,
    observed: Observed,
    /// What a positive of each label counts; empty for 1.
    positives: Vec<f64>,
}

impl Observed {
    /// Encounters as rows of an embedding that has so many, and their labels.
    pub(crate) fn new<'a>(
        table_rows: usize,
        all: impl Iterator<Item = (Vec<u32>, &'a [Option<bool>])>,
    ) -> Self {
        let (mut ends, mut rows, mut labels) = (vec![0], Vec::new(), Vec::new());
        for (own, truths) in all {
            rows.extend(own);
            ends.push(rows.len());
            labels.extend_from_slice(truths);
        }
        let mut column_ends = vec![0; table_rows + 1];
        rows.iter().for_each(|row| column_ends[*row as usize + 1] += 1);
        (1..=table_rows).for_each(|row| column_ends[row] += column_ends[row - 1]);
        let (mut next, mut encounters) = (column_ends.clone(), vec![0; rows.len()]);
        for encounter in 1..ends.len() {
            for row in &rows[ends[encounter - 1]..ends[encounter]] {
                let at = &mut next[*row as usize];
                encounters[*at] = encounter as u32 - 1;
                *at += 1;
            }
        }
        Observed { ends, rows, column_ends, encounters, labels }
    }

    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    /// The sum of the weights of each encounter.
    fn logits(&self, weights: &[f64]) -> Vec<f64> {
        let sum = |encounter: usize| {
            let rows = &self.rows[self.ends[encounter]..self.ends[encounter + 1]];
            rows.iter().map(|row| weights[*row as usize]).sum()
        };
        (0..self.len()).into_par_iter().with_min_len(CHUNK).map(sum).collect()
    }

    /// The sum, for each row of the embedding, of the numbers of the encounters that have it.
    fn sums(&self, numbers: &[f64]) -> Vec<f64> {
        let sum = |row: usize| {
            let encounters = &self.encounters[self.column_ends[row]..self.column_ends[row + 1]];
            encounters.iter().map(|encounter| numbers[*encounter as usize]).sum()
        };
        (0..self.column_ends.len() - 1).into_par_iter().with_min_len(16).map(sum).collect()
    }
}

impl Strengths {
    /// Takes a model to fit, from where a checkpoint left it.
    pub(crate) fn new(
        model: Model<f32>,
        moments: Moments<f32>,
        observed: Observed,
        positives: Vec<f64>,
    ) -> Self {
        Strengths { model, moments, observed, positives }
    }

    /// Fits all labels at the n-th C, and returns the loss that is left.
    ///
    /// # Errors
    /// If it is to stop. Then the model has the weights of before.
    pub(crate) fn step(&mut self, number: u64, stop: &Stop) -> Result<Outcome> {
        let Config::Logistic(config) = self.model.config() else {
            unreachable!("only logistic regression is fitted for several C")
        };
        let (c, labels) = (config.c[number as usize], self.model.width());
        let mut outcome = Outcome { prediction: 0.0, regularizer: 0.0 };
        let terms = self.observed.labels.iter().flatten().count().max(1);
        let mut fitted = Vec::new();
        for label in 0..labels {
            let fit = Fit::new(&self.observed, label, labels, c, &self.positives);
            let start = self.model.weights().values().iter().skip(label).step_by(labels);
            let mut weights: Vec<f64> = start.map(|weight| f64::from(*weight)).collect();
            if !fit.minimize(&mut weights, stop)? {
                log::warn!("the logistic regression with C {c} has not converged");
            }
            let penalty = penalty(&weights);
            outcome.regularizer += penalty;
            let loss = fit.value(&weights, &self.observed.logits(&weights)) - penalty;
            outcome.prediction += loss / c / terms as f64;
            fitted.push(weights);
        }
        self.model.weights_mut().update(|values| {
            for (label, weights) in fitted.iter().enumerate() {
                let own = values.iter_mut().skip(label).step_by(labels);
                own.zip(weights).for_each(|(value, weight)| *value = *weight as f32);
            }
        });
        Ok(outcome)
    }

    pub(crate) fn model(&self) -> &Model<f32> {
        &self.model
    }

    pub(crate) fn moments(&self) -> &Moments<f32> {
        &self.moments
    }
}

/// One label and one C. The weights are those of all rows of the embedding; the first is the intercept.
struct Fit<'a> {
    observed: &'a Observed,
    /// The label of each encounter; anything where it counts nothing.
    truths: Vec<bool>,
    /// What each encounter counts: C, times the weight of positives for a positive, or 0 where the label is
    /// not known.
    counts: Vec<f64>,
}

impl<'a> Fit<'a> {
    fn new(observed: &'a Observed, label: usize, labels: usize, c: f64, positives: &[f64]) -> Self {
        let own = || observed.labels.iter().skip(label).step_by(labels);
        Fit {
            observed,
            truths: own().map(|truth| *truth == Some(true)).collect(),
            counts: own().map(|truth| c * counted(*truth, label, positives)).collect(),
        }
    }

    /// Moves the weights to where the objective is least, and returns whether they are there.
    fn minimize(&self, weights: &mut [f64], stop: &Stop) -> Result<bool> {
        let total: f64 = self.counts.iter().sum();
        let mut logits = self.observed.logits(weights);
        let mut value = self.value(weights, &logits);
        for _ in 0..MOST_STEPS {
            let (slopes, bends) = self.derivatives(&logits);
            let gradient = self.penalized(self.observed.sums(&slopes), weights);
            let length = dot(&gradient, &gradient).sqrt();
            if length <= TOLERANCE.max(ROUNDING * total) {
                return Ok(true);
            }
            let precision = (length / (1.0 + total)).sqrt().min(0.1);
            let direction = self.direction(&gradient, &bends, precision * length, stop)?;
            let along = self.observed.logits(&direction);
            let promised = dot(&gradient, &direction);
            let Some(step) = self.step(weights, &logits, &direction, &along, value, promised) else {
                return Ok(false);
            };
            add(step, &direction, weights);
            add(step, &along, &mut logits);
            value = self.value(weights, &logits);
        }
        Ok(false)
    }

    /// C times the loss, and the penalty.
    fn value(&self, weights: &[f64], logits: &[f64]) -> f64 {
        let chunks = logits.par_chunks(CHUNK).zip(self.truths.par_chunks(CHUNK));
        let losses: Vec<f64> = (chunks.zip(self.counts.par_chunks(CHUNK)))
            .map(|((logits, truths), counts)| {
                let losses = logits.iter().zip(truths).zip(counts);
                losses.map(|((logit, truth), count)| count * binary(*logit, *truth, 0.0).0).sum()
            })
            .collect();
        losses.iter().sum::<f64>() + penalty(weights)
    }

    /// The first and the second derivative of C times the loss, by each logit.
    fn derivatives(&self, logits: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let truths = self.truths.par_iter().zip(&self.counts);
        (logits.par_iter().zip(truths).with_min_len(CHUNK))
            .map(|(logit, (truth, count))| {
                let slope = binary(*logit, *truth, 0.0).1;
                // With p of the label, the slope is p or p - 1.
                (count * slope, count * slope.abs() * (1.0 - slope.abs()))
            })
            .unzip()
    }

    /// Adds to sums over encounters what the penalty gives, which is not of the intercept.
    fn penalized(&self, mut sums: Vec<f64>, weights: &[f64]) -> Vec<f64> {
        add(1.0, &weights[1..], &mut sums[1..]);
        sums
    }

    /// Where Newton's step leads: the solution of H x = -gradient, to a residual of this norm.
    fn direction(&self, gradient: &[f64], bends: &[f64], goal: f64, stop: &Stop) -> Result<Vec<f64>> {
        let ones = vec![1.0; gradient.len()];
        let diagonal = self.penalized(self.observed.sums(bends), &ones);
        let divided = |residual: &[f64]| -> Vec<f64> {
            residual
                .iter()
                .zip(&diagonal)
                .map(|(residual, own)| residual / own.max(f64::MIN_POSITIVE))
                .collect()
        };
        let mut solution = vec![0.0; gradient.len()];
        let mut residual: Vec<f64> = gradient.iter().map(|slope| -slope).collect();
        let mut towards = divided(&residual);
        let mut product = dot(&residual, &towards);
        for _ in 0..MOST_ROUNDS {
            stop.check()?;
            let image = self.times_hessian(&towards, bends);
            let bend = dot(&towards, &image);
            if bend <= 0.0 {
                break;
            }
            let share = product / bend;
            add(share, &towards, &mut solution);
            add(-share, &image, &mut residual);
            if dot(&residual, &residual).sqrt() <= goal {
                break;
            }
            let scaled = divided(&residual);
            let next = dot(&residual, &scaled);
            let kept = next / product;
            towards.iter_mut().zip(&scaled).for_each(|(towards, scaled)| *towards = scaled + kept * *towards);
            product = next;
        }
        Ok(solution)
    }

    fn times_hessian(&self, vector: &[f64], bends: &[f64]) -> Vec<f64> {
        let mut logits = self.observed.logits(vector);
        logits.iter_mut().zip(bends).for_each(|(logit, bend)| *logit *= bend);
        self.penalized(self.observed.sums(&logits), vector)
    }

    /// The share of a direction after which the objective has fallen as much as it should. `None` if there is
    /// none, but for a promise that is rounding.
    fn step(
        &self,
        weights: &[f64],
        logits: &[f64],
        direction: &[f64],
        along: &[f64],
        value: f64,
        promised: f64,
    ) -> Option<f64> {
        if -promised <= 1e-12 * (1.0 + value.abs()) {
            return Some(1.0);
        }
        let mut step = 1.0;
        for _ in 0..MOST_HALVINGS {
            let (mut moved, mut moved_logits) = (weights.to_vec(), logits.to_vec());
            add(step, direction, &mut moved);
            add(step, along, &mut moved_logits);
            if self.value(&moved, &moved_logits) <= value + ENOUGH * step * promised {
                return Some(step);
            }
            step /= 2.0;
        }
        None
    }
}

fn penalty(weights: &[f64]) -> f64 {
    dot(&weights[1..], &weights[1..]) / 2.0
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Adds so many times a vector to another.
fn add(times: f64, vector: &[f64], to: &mut [f64]) {
    to.iter_mut().zip(vector).for_each(|(to, part)| *to += times * part);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::batch::EmbeddingRows;
    use crate::error::Error;
    use crate::model::LogisticConfig;
    use crate::question::HeadConfig;
    use crate::record::PerKind;

    /// Rows of the embedding: the visit, the codes, and one for hidden codes.
    const ROWS: usize = 10;

    /// Encounters of two or three of eight codes, with two labels that depend on them and are not always
    /// known.
    fn encounters(count: u32) -> Vec<(Vec<u32>, Vec<Option<bool>>)> {
        let encounter = |number: u32| {
            let draw = |of: u32| number.wrapping_mul(2_654_435_761).rotate_left(of) >> 8;
            let mut rows = vec![0, 1 + draw(3) % 4, 5 + draw(11) % 4];
            rows.extend((draw(5) % 3 == 0).then_some(4));
            rows.dedup();
            let first = (draw(17) % 10 < 2 * rows[1]).then_some(true).or(Some(false));
            (rows, vec![first, (!number.is_multiple_of(3)).then_some(draw(7) % 4 == 0)])
        };
        (0..count).map(encounter).collect()
    }

    fn observed(all: &[(Vec<u32>, Vec<Option<bool>>)]) -> Observed {
        Observed::new(ROWS, all.iter().map(|(rows, labels)| (rows.clone(), &labels[..])))
    }

    fn strengths(c: &[f64], positives: &[f64]) -> Strengths {
        let rows = EmbeddingRows::new(PerKind { diagnosis: 4, treatment: 4, ..PerKind::default() });
        let config = Config::Logistic(LogisticConfig { c: c.to_vec() });
        let model = Model::new(&config, &HeadConfig::Labels { count: 2 }, rows, 0).unwrap();
        let moments = Moments::zeros(model.parameters().len());
        Strengths::new(model, moments, observed(&encounters(500)), positives.to_vec())
    }

    /// By definition, and slowly: the gradient of C times the loss and the penalty.
    fn gradient(weights: &[f64], label: usize, c: f64, positive: f64) -> Vec<f64> {
        let mut gradient: Vec<f64> = weights.to_vec();
        gradient[0] = 0.0;
        for (rows, labels) in encounters(500) {
            let Some(truth) = labels[label] else { continue };
            let logit: f64 = rows.iter().map(|row| weights[*row as usize]).sum();
            let count = if truth { positive } else { 1.0 };
            let slope = c * count * (1.0 / (1.0 + (-logit).exp()) - f64::from(u8::from(truth)));
            rows.iter().for_each(|row| gradient[*row as usize] += slope);
        }
        gradient
    }

    #[test]
    fn the_gradient_of_a_fit_is_zero() {
        for (c, positive) in [(1e-3, 1.0), (1.0, 1.0), (100.0, 1.0), (1.0, 4.0)] {
            let all = observed(&encounters(500));
            for label in [0, 1] {
                let mut weights = vec![0.0; ROWS];
                let positives = if positive == 1.0 { vec![] } else { vec![positive; 2] };
                let fit = Fit::new(&all, label, 2, c, &positives);
                assert!(fit.minimize(&mut weights, &Stop::new()).unwrap());
                let gradient = gradient(&weights, label, c, positive);
                assert!(gradient.iter().all(|slope| slope.abs() < 2e-6), "{c} {positive}: {gradient:?}");
                assert!(weights[1..].iter().any(|weight| weight.abs() > 1e-4));
                assert_eq!(weights[ROWS - 1], 0.0, "no encounter has it");
            }
        }
    }

    #[test]
    fn a_fit_does_not_depend_on_those_before_it() {
        let (mut path, mut alone) = (strengths(&[1e-3, 0.1, 10.0], &[]), strengths(&[10.0], &[]));
        let stop = Stop::new();
        let last = (0..3).map(|number| path.step(number, &stop).unwrap()).last().unwrap();
        let only = alone.step(0, &stop).unwrap();
        assert!((last.prediction - only.prediction).abs() < 1e-7, "{last:?} {only:?}");
        for (a, b) in path.model().weights().values().iter().zip(alone.model().weights().values()) {
            assert!((a - b).abs() < 2e-6, "{a} {b}");
        }
    }

    #[test]
    fn bits_are_those_of_any_number_of_threads() {
        let fit = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut path = strengths(&[0.01, 1.0], &[2.0, 3.0]);
            let outcomes = pool.install(|| [0, 1].map(|number| path.step(number, &Stop::new()).unwrap()));
            (outcomes, path.model().weights().values().to_vec())
        };
        assert!(fit(1) == fit(3));
    }

    #[test]
    fn a_fit_that_is_stopped_is_as_if_it_had_not_begun() {
        let weights = |of: &Strengths| of.model().weights().values().to_vec();
        let mut whole = strengths(&[0.01, 1.0], &[]);
        let outcomes = [0, 1].map(|number| whole.step(number, &Stop::new()).unwrap());
        let mut path = strengths(&[0.01, 1.0], &[]);
        path.step(0, &Stop::new()).unwrap();
        let (before, stop) = (weights(&path), Stop::new());
        stop.request();
        assert!(matches!(path.step(1, &stop), Err(Error::Interrupted)));
        // After any time: some of these are in the midst of it.
        for wait in (0..2000).step_by(100) {
            let stop = Stop::new();
            let ended = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_micros(wait));
                    stop.request();
                });
                path.step(1, &stop)
            });
            if ended.is_ok() {
                break;
            }
            assert!(weights(&path) == before, "stopped after {wait} microseconds");
        }
        if weights(&path) == before {
            assert_eq!(path.step(1, &Stop::new()).unwrap(), outcomes[1]);
        }
        assert!(weights(&path) == weights(&whole));
    }

    #[test]
    fn a_label_without_positives_still_has_a_fit() {
        let all: Vec<_> = encounters(50).into_iter().map(|(rows, _)| (rows, vec![Some(false)])).collect();
        let mut weights = vec![0.0; ROWS];
        let observed = observed(&all);
        assert!(Fit::new(&observed, 0, 1, 1.0, &[]).minimize(&mut weights, &Stop::new()).unwrap());
        assert!(weights[0] < -10.0 && weights[0].is_finite(), "{weights:?}");
    }
}
