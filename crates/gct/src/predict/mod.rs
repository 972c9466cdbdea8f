//! What a finished run gives away: predictions and embeddings of any number of encounters, in bounded memory, and what its model
//! believes about one of them.

mod embed;
mod explain;
mod npy;
mod score;

pub use embed::{codes, visits};
pub use explain::{Answer, Explainer, Explanation, explain};
pub use score::{Options, score};

use crate::infer::{Overlap, Unseen};

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// How many encounters.
    pub encounters: u64,
    /// How many rows.
    pub rows: u64,
    /// How many encounters could not be asked about.
    pub left_out: u64,
    /// Codes that the run does not know.
    pub unseen: Unseen,
    /// Encounters of other data whose subjects the run learned from, where true answers are written too.
    pub overlap: Overlap,
}

/// The probability that a logit stands for.
fn probability(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

/// The probabilities that the logits of classes stand for.
fn probabilities(logits: &[f32]) -> Vec<f64> {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let exponentials: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|exponential| exponential / sum).collect()
}

/// The classes with the largest probabilities, the largest first; of equal ones the first.
fn largest(probabilities: &[f64], count: usize) -> Vec<usize> {
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
    fn logits_stand_for_probabilities() {
        assert_eq!(probability(0.0), 0.5);
        assert!((probability(3f32.ln()) - 0.75).abs() < 1e-7);
        assert_eq!(probability(-1e30), 0.0);
        let got = probabilities(&[1f32.ln(), 3f32.ln(), 1000.0]);
        assert_eq!(got, [0.0, 0.0, 1.0]);
    }

    #[test]
    fn the_largest_come_first() {
        let shares = [0.1, 0.4, 0.1, 0.4];
        assert_eq!(largest(&shares, 3), [1, 3, 0]);
        assert_eq!(largest(&shares, 9), [1, 3, 0, 2]);
        assert_eq!(largest(&shares, 0), [0usize; 0]);
    }
}
