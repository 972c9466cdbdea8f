//! How well scores rank positives above negatives.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Scored examples, gathered one by one or in bulk.
///
/// Equal scores form one threshold, so a result does not depend on the order in which they came.
#[derive(Debug, Clone, Default)]
pub struct Ranking {
    scored: Vec<Tie>,
}

/// Examples of one score.
#[derive(Debug, Clone, Copy)]
struct Tie {
    score: f32,
    positives: u32,
    negatives: u32,
}

impl Ranking {
    /// Adds one example.
    ///
    /// # Panics
    /// If the score is not a number.
    pub fn add(&mut self, score: f32, positive: bool) {
        self.add_many(score, u32::from(positive), u32::from(!positive));
    }

    /// Adds examples of equal score.
    ///
    /// # Panics
    /// If the score is not a number.
    pub fn add_many(&mut self, score: f32, positives: u32, negatives: u32) {
        assert!(!score.is_nan(), "a score must be a number");
        if positives + negatives > 0 {
            self.scored.push(Tie { score, positives, negatives });
        }
    }

    /// Sorts, and gives both areas under the curves.
    pub fn areas(self) -> Areas {
        let mut curve = Curve::default();
        self.each_threshold(|positives, negatives| curve.step(positives, negatives));
        curve.areas()
    }

    /// Sorts, and gives how many positives and negatives are at or above each threshold, from the highest
    /// down.
    pub(super) fn steps(self) -> Vec<(u64, u64)> {
        let (mut steps, mut above) = (Vec::new(), (0, 0));
        self.each_threshold(|positives, negatives| {
            above = (above.0 + positives, above.1 + negatives);
            steps.push(above);
        });
        steps
    }

    /// Tells of each score, from the highest down, how many positives and negatives have it.
    fn each_threshold(mut self, mut each: impl FnMut(u64, u64)) {
        self.scored.par_sort_unstable_by(|a, b| b.score.total_cmp(&a.score));
        for threshold in self.scored.chunk_by(|a, b| a.score == b.score) {
            each(
                threshold.iter().map(|tie| u64::from(tie.positives)).sum(),
                threshold.iter().map(|tie| u64::from(tie.negatives)).sum(),
            );
        }
    }
}

/// The walk from the highest score down, one threshold at a time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Curve {
    true_positives: u64,
    false_positives: u64,
    /// The precision at each positive, added up.
    precision: f64,
    pairs_lost_twice: u128,
}

impl Curve {
    /// Lowers the threshold by one score, of so many positives and negatives.
    pub(super) fn step(&mut self, positives: u64, negatives: u64) {
        if positives > 0 {
            // Each of these positives loses to the negatives above it and draws with those beside it.
            self.pairs_lost_twice += u128::from(positives) * u128::from(2 * self.false_positives + negatives);
        }
        self.true_positives += positives;
        self.false_positives += negatives;
        if positives > 0 {
            let found = self.true_positives + self.false_positives;
            self.precision += positives as f64 * (self.true_positives as f64 / found as f64);
        }
    }

    /// What it comes to at the lowest score.
    pub(super) fn areas(&self) -> Areas {
        let (positives, negatives) = (self.true_positives, self.false_positives);
        let defined = positives > 0 && negatives > 0;
        let won_twice = 2 * u128::from(positives) * u128::from(negatives) - self.pairs_lost_twice;
        Areas {
            aucpr: defined.then(|| self.precision / positives as f64),
            auroc: defined.then(|| won_twice as f64 / 2.0 / positives as f64 / negatives as f64),
        }
    }
}

/// The two areas.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Areas {
    /// Average precision: the precision at each positive, averaged. Undefined without both classes.
    pub aucpr: Option<f64>,
    /// The chance that a positive scores above a negative, ties counting half. Undefined without both.
    pub auroc: Option<f64>,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn areas(examples: &[(f32, bool)]) -> Areas {
        let mut ranking = Ranking::default();
        for &(score, positive) in examples {
            ranking.add(score, positive);
        }
        ranking.areas()
    }

    /// By definition: every threshold for the one, every pair for the other.
    fn naive(examples: &[(f32, bool)]) -> Areas {
        let count = |of: &dyn Fn(f32, bool) -> bool| {
            examples.iter().filter(|(score, positive)| of(*score, *positive)).count() as f64
        };
        let (positives, negatives) = (count(&|_, positive| positive), count(&|_, positive| !positive));
        let (mut precision, mut won) = (0.0, 0.0);
        for &(threshold, _) in examples.iter().filter(|(_, positive)| *positive) {
            precision += count(&|score, positive| score >= threshold && positive)
                / count(&|score, _| score >= threshold);
            won += count(&|score, positive| score < threshold && !positive)
                + 0.5 * count(&|score, positive| score == threshold && !positive);
        }
        Areas {
            aucpr: (positives * negatives > 0.0).then(|| precision / positives),
            auroc: (positives * negatives > 0.0).then(|| won / positives / negatives),
        }
    }

    #[test]
    fn by_hand() {
        // Ranks 1 and 3 of 4 are positive: precision 1 and 2/3; 3 of 4 pairs are in order.
        let got = areas(&[(0.9, true), (0.7, false), (0.5, true), (0.1, false)]);
        assert_eq!(got, Areas { aucpr: Some((1.0 + 2.0 / 3.0) / 2.0), auroc: Some(0.75) });
        // One tie of everything: precision is the prevalence.
        assert_eq!(areas(&[(0.5, true), (0.5, false)]), Areas { aucpr: Some(0.5), auroc: Some(0.5) });
    }

    #[test]
    fn undefined_without_a_class() {
        assert_eq!(areas(&[]), Areas { aucpr: None, auroc: None });
        assert_eq!(areas(&[(0.5, false)]), Areas { aucpr: None, auroc: None });
        assert_eq!(areas(&[(0.5, true)]), Areas { aucpr: None, auroc: None });
    }

    proptest! {
        #[test]
        fn agrees_with_counting(examples in prop::collection::vec((0u8..6, any::<bool>()), 0..40)) {
            // Few distinct scores, so that ties are the rule.
            let examples: Vec<(f32, bool)> = examples.iter().map(|&(s, p)| (f32::from(s) / 5.0, p)).collect();
            let (fast, slow) = (areas(&examples), naive(&examples));
            let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
                (Some(a), Some(b)) => (a - b).abs() < 1e-12,
                (a, b) => a == b,
            };
            prop_assert!(close(fast.aucpr, slow.aucpr) && close(fast.auroc, slow.auroc), "{fast:?} {slow:?}");
        }

        #[test]
        fn bulk_is_the_same_as_one_by_one(ties in prop::collection::vec((0u8..5, 0u32..4, 0u32..4), 0..10)) {
            let (mut bulk, mut single) = (Ranking::default(), Ranking::default());
            for (score, positives, negatives) in ties {
                bulk.add_many(score.into(), positives, negatives);
                (0..positives).for_each(|_| single.add(score.into(), true));
                (0..negatives).for_each(|_| single.add(score.into(), false));
            }
            prop_assert_eq!(bulk.areas(), single.areas());
        }
    }
}
