//! The model that is an account and no network: what was counted of who causes what says nearly everything,
//! and a few weights make probabilities of it.
//!
//! | question | answer | weights |
//! |---|---|---|
//! | edges | scale * log-odds of the share of the cause + bias, of orders and of results | `links.*` |
//! | labels | the same of the order that the label is about | `labels.*` |
//! | hidden diagnosis | the sum of the clues, weighed | `clues` |
//!
//! The weights are fitted on the validation split, where nothing was counted: five at most, or two for a
//! label. Edges of the visit are given, and pairs that M forbids have none.

use std::ops::Range;

use gct_kernels::Number;
use gct_kernels::weights::{Vector, Weights};
use rayon::prelude::*;

use super::{Model, Outcome};
use crate::batch::{Example, Explained};
use crate::calibration::{Map, Method};
use crate::explainer::CLUES;
use crate::graph::{self, NodeKind};
use crate::metric::log_loss;
use crate::parameters::Parameters;
use crate::question::HeadConfig;
use crate::record::CodeKind;

/// The log-odds of an edge that is given, and of one that cannot be.
const GIVEN: f64 = 12.0;
const IMPOSSIBLE: f64 = -20.0;

/// Shares nearer to 0 or 1 than this are as good as certain.
const CERTAIN: f64 = 1e-7;

/// Diagnoses that are so improbable play no part in a step.
const NEGLIGIBLE: f64 = 1e-12;

/// Examples that a thread takes at a time.
const CHUNK: usize = 64;

/// Steps of Newton's method, of which few are needed.
const STEPS: usize = 25;

/// What holds weights near to where they begin.
const RIDGE: f64 = 1e-3;

/// The weights.
#[derive(Clone)]
pub(super) enum Layers {
    /// Scale and bias of the log-odds of orders and results, or of each label.
    Odds { scale: Vector, bias: Vector, are_labels: bool },
    /// A weight for each clue.
    Clues(Vector),
}

/// Log-odds of a share.
fn log_odds(share: f32) -> f32 {
    let share = f64::from(share).clamp(CERTAIN, 1.0 - CERTAIN);
    (share / (1.0 - share)).ln() as f32
}

impl Layers {
    /// Names its parameters.
    pub(super) fn new(head: &HeadConfig, parameters: &mut Parameters) -> Self {
        let mut odds = |name: &str, count: usize, are_labels: bool| Layers::Odds {
            scale: parameters.vector(&format!("{name}.scale"), count, 1.0),
            bias: parameters.vector(&format!("{name}.bias"), count, 0.0),
            are_labels,
        };
        match head {
            HeadConfig::Labels { count } => odds("labels", *count, true),
            HeadConfig::HiddenDiagnosis => Layers::Clues(parameters.vector("clues", CLUES, 1.0)),
            // Of other questions it knows nothing, which the head has said.
            HeadConfig::Edges { .. }
            | HeadConfig::RawEdges
            | HeadConfig::HiddenCode
            | HeadConfig::NextDiagnoses => odds("links", 2, false),
        }
    }

    /// What it says of each example: see `Frozen::answers`.
    pub(super) fn answers<T: Number>(&self, weights: &Weights<T>, examples: &[Example]) -> Vec<Vec<T>> {
        let weight = |vector: &Vector, at: usize| vector.of(weights.values())[at].f64();
        let logits = |example: &Example| match self {
            Layers::Odds { scale, bias, are_labels } => {
                let odds = |group: usize, share: f32| {
                    weight(scale, group) * f64::from(log_odds(share)) + weight(bias, group)
                };
                match are_labels {
                    true => (0..).zip(labels(example)).map(|(label, share)| odds(label, *share)).collect(),
                    false => links(example, odds),
                }
            }
            Layers::Clues(vector) => {
                let own: Vec<f64> = (0..CLUES).map(|clue| weight(vector, clue)).collect();
                weighed(example, &own)
            }
        };
        examples.iter().map(|example| logits(example).into_iter().map(T::of).collect()).collect()
    }

    /// The weights that make the answers about these examples most likely, from where they are, and the mean
    /// loss that is left.
    fn fit(&self, weights: &mut [f32], examples: &[Example]) -> f64 {
        let (scale, bias, are_labels) = match self {
            Layers::Clues(vector) => return fit_clues(&mut weights[vector.start..][..CLUES], examples),
            Layers::Odds { scale, bias, are_labels } => (scale, bias, are_labels),
        };
        let (mut loss, mut count) = (0.0, 0);
        for group in 0..scale.len {
            let observed = match are_labels {
                true => examples.iter().filter_map(|example| observed_label(example, group)).collect(),
                false => {
                    examples.iter().flat_map(|example| observed_links(example, group)).collect::<Vec<_>>()
                }
            };
            let (own, number) = fit_odds(weights, [scale.start + group, bias.start + group], &observed);
            (loss, count) = (loss + own, count + number);
        }
        loss / count.max(1) as f64
    }
}

fn explained(example: &Example) -> &Explained {
    example.visit.explained.as_ref().expect("a run of an explainer has an account")
}

fn labels(example: &Example) -> &[f32] {
    &explained(example).labels
}

/// The nodes of causes and effects of orders, or of results.
fn ends(example: &Example, group: usize) -> [Range<usize>; 2] {
    let kinds = [[CodeKind::Diagnosis, CodeKind::Treatment], [CodeKind::Treatment, CodeKind::Lab]];
    kinds[group].map(|kind| example.visit.range(kind))
}

/// The share of each pair of a cause and an effect.
fn shares(example: &Example, group: usize) -> &[f32] {
    let links = &explained(example).links;
    if group == 0 { &links.orders } else { &links.results }
}

/// The logit of an edge of each pair of nodes.
fn links(example: &Example, odds: impl Fn(usize, f32) -> f64) -> Vec<f64> {
    let visit = &example.visit;
    let logit = |(i, j): (usize, usize)| {
        let [(a, first), (b, second)] = [i, j].map(|node| visit.ranges.locate(node));
        let group = match (a, b) {
            (NodeKind::Visit, NodeKind::Code(CodeKind::Diagnosis | CodeKind::Context)) => return GIVEN,
            (NodeKind::Code(CodeKind::Diagnosis), NodeKind::Code(CodeKind::Treatment)) => 0,
            (NodeKind::Code(CodeKind::Treatment), NodeKind::Code(CodeKind::Lab)) => 1,
            _ => return IMPOSSIBLE,
        };
        let effects = ends(example, group)[1].len();
        odds(group, shares(example, group)[first * effects + second])
    };
    graph::pairs(visit.nodes()).map(logit).collect()
}

/// The log-odds of a label, and whether it is true, where that is known.
fn observed_label(example: &Example, label: usize) -> Option<(f32, bool)> {
    Some((log_odds(labels(example)[label]), example.labels[label]?))
}

/// The log-odds of each order, or each result, and whether it is an edge.
fn observed_links(example: &Example, group: usize) -> Vec<(f32, bool)> {
    let [causes, effects] = ends(example, group);
    let mut truths = vec![false; causes.len() * effects.len()];
    for (i, j) in example.visit.known_edges().iter().map(|(i, j)| (*i as usize, *j as usize)) {
        if causes.contains(&i) && effects.contains(&j) {
            truths[(i - causes.start) * effects.len() + j - effects.start] = true;
        }
    }
    shares(example, group).iter().map(|share| log_odds(*share)).zip(truths).collect()
}

/// Fits scale and bias as a calibration is fitted, and returns the sum of losses and how many there are.
/// Where nothing can be fitted, because all truths are the same, they stay.
fn fit_odds(weights: &mut [f32], [scale, bias]: [usize; 2], observed: &[(f32, bool)]) -> (f64, usize) {
    if let Ok(Map::Platt { slope, intercept }) = Map::fit(Method::Platt, observed) {
        (weights[scale], weights[bias]) = (slope as f32, intercept as f32);
    }
    let logit = |odds: f32| f64::from(weights[scale]) * f64::from(odds) + f64::from(weights[bias]);
    let losses = observed.iter().map(|(odds, truth)| log_loss(logit(*odds), *truth));
    (losses.sum(), observed.len())
}

/// The logit of each diagnosis as the hidden one.
fn weighed(example: &Example, weights: &[f64]) -> Vec<f64> {
    let sum = |row: &[f32]| row.iter().zip(weights).map(|(clue, weight)| f64::from(*clue) * weight).sum();
    explained(example).clues.chunks_exact(CLUES).map(sum).collect()
}

/// Fits the weights of clues, and returns the mean loss.
fn fit_clues(weights: &mut [f32], examples: &[Example]) -> f64 {
    let mut own: Vec<f64> = weights.iter().map(|weight| f64::from(*weight)).collect();
    let first = own.clone();
    let mut loss = 0.0;
    for _ in 0..STEPS {
        let parts: Vec<(System, f64)> =
            examples.par_chunks(CHUNK).map(|examples| clue_system(&own, examples)).collect();
        let mut system = System::new(CLUES);
        parts.iter().for_each(|(part, _)| system.sum(part));
        loss = parts.iter().map(|(_, loss)| loss).sum::<f64>() / examples.len().max(1) as f64;
        system.hold(&own, &first);
        own.iter_mut().zip(system.solve()).for_each(|(own, step)| *own += step.clamp(-1.0, 1.0));
    }
    weights.iter_mut().zip(own).for_each(|(weight, own)| *weight = own as f32);
    loss
}

/// The Newton step of some examples with these weights of clues, and the sum of their losses.
fn clue_system(weights: &[f64], examples: &[Example]) -> (System, f64) {
    let (mut system, mut loss) = (System::new(CLUES), 0.0);
    for example in examples {
        let clues = &explained(example).clues;
        let logits = weighed(example, weights);
        let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = logits.iter().map(|logit| (logit - largest).exp()).sum();
        let (_, truth) = example.visit.hidden.expect("a diagnosis is hidden to be guessed");
        loss += largest + sum.ln() - logits[truth as usize];
        let row = |at: usize| -> Vec<f64> {
            clues[at * CLUES..][..CLUES].iter().map(|clue| f64::from(*clue)).collect()
        };
        let mut mean = vec![0.0; CLUES];
        for (at, logit) in logits.iter().enumerate() {
            let share = (logit - largest).exp() / sum;
            if share > NEGLIGIBLE {
                let row = row(at);
                system.add(&row, 0.0, share);
                mean.iter_mut().zip(&row).for_each(|(mean, clue)| *mean += share * clue);
            }
        }
        system.add(&mean, 0.0, -1.0);
        let miss: Vec<f64> =
            row(truth as usize).iter().zip(&mean).map(|(truth, mean)| truth - mean).collect();
        system.push(&miss);
    }
    (system, loss)
}

/// The linear system of a step of Newton's method.
struct System {
    gradient: Vec<f64>,
    /// Row after row.
    hessian: Vec<f64>,
}

impl System {
    fn new(weights: usize) -> Self {
        System { gradient: vec![0.0; weights], hessian: vec![0.0; weights * weights] }
    }

    /// Adds an observation: by how much it was missed, and how much it bends.
    fn add(&mut self, row: &[f64], miss: f64, bend: f64) {
        self.gradient.iter_mut().zip(row).for_each(|(slope, value)| *slope += miss * value);
        for (cells, a) in self.hessian.chunks_exact_mut(row.len()).zip(row) {
            cells.iter_mut().zip(row).for_each(|(cell, b)| *cell += bend * a * b);
        }
    }

    /// Adds to the gradient alone.
    fn push(&mut self, gradient: &[f64]) {
        self.gradient.iter_mut().zip(gradient).for_each(|(slope, own)| *slope += own);
    }

    fn sum(&mut self, other: &System) {
        self.push(&other.gradient);
        self.hessian.iter_mut().zip(&other.hessian).for_each(|(cell, other)| *cell += other);
    }

    /// Holds weights near to where they begin.
    fn hold(&mut self, weights: &[f64], first: &[f64]) {
        let count = weights.len();
        for at in 0..count {
            self.gradient[at] -= RIDGE * (weights[at] - first[at]);
            self.hessian[at * count + at] += RIDGE;
        }
    }

    /// Where the step leads: Gaussian elimination of a matrix that is positive definite.
    fn solve(mut self) -> Vec<f64> {
        let count = self.gradient.len();
        for pivot in 0..count {
            for row in pivot + 1..count {
                let share = self.hessian[row * count + pivot] / self.hessian[pivot * count + pivot];
                for column in pivot..count {
                    self.hessian[row * count + column] -= share * self.hessian[pivot * count + column];
                }
                self.gradient[row] -= share * self.gradient[pivot];
            }
        }
        for row in (0..count).rev() {
            for column in row + 1..count {
                self.gradient[row] -= self.hessian[row * count + column] * self.gradient[column];
            }
            self.gradient[row] /= self.hessian[row * count + row];
        }
        self.gradient
    }
}

impl Model<f32> {
    /// Fits the few weights of an explainer to examples of the validation split, and returns the loss that is
    /// left.
    ///
    /// # Panics
    /// If it is another model.
    pub(crate) fn fit_explainer(&mut self, examples: &[Example]) -> Outcome {
        let super::network::Layers::Explainer(layers) = self.network.layers.clone() else {
            unreachable!("only an explainer is fitted to what was counted")
        };
        let mut prediction = 0.0;
        self.weights.update(|weights| prediction = layers.fit(weights, examples));
        Outcome { prediction, regularizer: 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitted_odds_are_calibrated() {
        // Of those with log-odds of 3 one in four is true, of those with -1 one in fifty.
        let observed: Vec<(f32, bool)> =
            (0..400).map(|at| (if at % 2 == 0 { 3.0 } else { -1.0 }, at % 8 == 0 || at % 100 == 1)).collect();
        let mut weights = [1.0, 0.0];
        let (_, count) = fit_odds(&mut weights, [0, 1], &observed);
        let chance = |odds: f32| 1.0 / (1.0 + (-weights[0] * odds - weights[1]).exp());
        assert_eq!(count, 400);
        assert!((chance(3.0) - 0.25).abs() < 0.01, "{}", chance(3.0));
        assert!((chance(-1.0) - 0.02).abs() < 0.005, "{}", chance(-1.0));
    }

    #[test]
    fn a_system_is_solved() {
        let mut system = System::new(2);
        system.add(&[1.0, 2.0], 3.0, 2.0);
        system.add(&[0.0, 1.0], 1.0, 4.0);
        // [2 4; 4 12] x = [3 7]
        let found = system.solve();
        assert!((found[0] - 1.0).abs() < 1e-12 && (found[1] - 0.25).abs() < 1e-12, "{found:?}");
    }
}
