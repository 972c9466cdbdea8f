//! What logits say, in probabilities.

use serde::Serialize;

use crate::graph::Link;
use crate::record::CodeKind;

/// One thing that a model predicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// What: a label, a code, or two codes that are connected.
    pub what: String,
    /// How probable the model finds it.
    pub probability: f64,
    /// Whether it is true, where that is known.
    pub truth: Option<bool>,
}

/// What an answer says, in numbers: something that is true or not, and that a model finds probable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statement {
    /// The label of this index is true.
    Label(usize),
    /// The code of this id, of the hidden one's kind, is the hidden one.
    Hidden(usize),
    /// The diagnosis of this id is in the next visit.
    Next(usize),
    /// These two nodes are connected; the first is nearer to the visit.
    Pair(usize, usize),
}

/// What a model predicts for an encounter. Nodes are those of [`NodeRanges`](crate::graph::NodeRanges),
/// codes are ids of the run's vocabulary.
#[derive(Debug, Clone, PartialEq)]
pub enum Prediction {
    /// How probable an edge is, for each pair of nodes that M allows, in order of nodes.
    Edges(Vec<Link>),
    /// How probable each label of the visit is, in the order of
    /// [`Question::labels`](super::Question::labels).
    Labels(Vec<f64>),
    /// Which diagnosis was hidden.
    HiddenDiagnosis {
        /// The one that was.
        hidden: u32,
        /// All diagnoses with their probabilities, the most probable first.
        ranked: Vec<(u32, f64)>,
    },
    /// Which code was hidden.
    HiddenCode {
        /// The kind of it and of all that are ranked.
        kind: CodeKind,
        /// The id of the one that was.
        hidden: u32,
        /// All codes of this kind with their probabilities, the most probable first.
        ranked: Vec<(u32, f64)>,
    },
    /// Which diagnoses the next visit has.
    NextDiagnoses {
        /// Those that it has, where it is known.
        truth: Option<Vec<u32>>,
        /// All that are asked for, with their probabilities, the most probable first.
        ranked: Vec<(u32, f64)>,
    },
}

/// The probability of a logit.
pub(crate) fn probability(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

/// The probability of log-odds.
pub(crate) fn probability_of(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

/// The log-odds of a class, from the logits of all classes: its own logit beside the sum of all others.
pub(super) fn class_log_odds(logits: &[f32], class: usize) -> f64 {
    let others = || logits.iter().enumerate().filter(|(other, _)| *other != class);
    let largest = f64::from(others().map(|(_, logit)| *logit).fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = others().map(|(_, logit)| (f64::from(*logit) - largest).exp()).sum();
    f64::from(logits[class]) - largest - sum.ln()
}

/// The probabilities of the logits of classes.
pub(super) fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let exponentials: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|exponential| exponential / sum).collect()
}

/// The classes with the largest probabilities, the largest first; of equal ones the first.
pub(super) fn largest(probabilities: &[f64], count: usize) -> Vec<usize> {
    let mut classes: Vec<usize> = (0..probabilities.len()).collect();
    let order = |a: &usize, b: &usize| probabilities[*b].total_cmp(&probabilities[*a]).then(a.cmp(b));
    if count < classes.len() {
        classes.select_nth_unstable_by(count, order);
        classes.truncate(count);
    }
    classes.sort_unstable_by(order);
    classes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_are_probabilities() {
        assert_eq!(probability(0.0), 0.5);
        assert!((probability(3f32.ln()) - 0.75).abs() < 1e-7);
        assert_eq!(probability(-1e30), 0.0);
        let got = softmax(&[1f32.ln(), 3f32.ln(), 1000.0]);
        assert_eq!(got, [0.0, 0.0, 1.0]);
    }

    #[test]
    fn log_odds_of_a_class_are_those_of_its_share() {
        let logits = [0.3, -1.0, 2.5, 0.0];
        for (class, share) in softmax(&logits).into_iter().enumerate() {
            assert!((class_log_odds(&logits, class) - (share / (1.0 - share)).ln()).abs() < 1e-9);
            assert!((probability_of(class_log_odds(&logits, class)) - share).abs() < 1e-12);
        }
        assert_eq!(class_log_odds(&[1000.0, -1000.0], 0), 2000.0, "where a share is 1");
    }

    #[test]
    fn the_largest_come_first() {
        let shares = [0.1, 0.4, 0.1, 0.4];
        assert_eq!(largest(&shares, 3), [1, 3, 0]);
        assert_eq!(largest(&shares, 9), [1, 3, 0, 2]);
        assert_eq!(largest(&shares, 0), [0usize; 0]);
    }
}
