//! Probabilities of yes or no, held against what happened.
//!
//! All of it is computed from logits in double precision. Log loss is ln(1 + e^x) of the logit x of what
//! did not happen, which is exact however sure the model was: nothing is clipped, where scikit-learn keeps
//! probabilities 2.2e-16 away from 0 and 1.

use serde::{Deserialize, Serialize};

use super::bootstrap::{Draws, Replicated};
use super::means::{Means, Sums};
use super::{Bootstrap, Estimate};

/// Bins of equal width, [0, 0.1), [0.1, 0.2), ..., [0.9, 1].
const BINS: usize = 10;

/// Predictions of yes or no, gathered one by one, kept as sums per subject.
#[derive(Debug, Clone, Default)]
pub struct Predictions {
    right: Means,
    log_loss: Means,
    squared_error: Means,
    /// By how much the probabilities of each bin exceed what happened.
    excess: Sums<BINS>,
}

/// How good the probabilities are. Undefined without an example.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PredictionEstimates {
    /// The share of right answers, where only a logit above 0 answers yes.
    pub accuracy: Estimate,
    /// Minus the logarithm of the probability of what happened, in nats, averaged.
    pub log_loss: Estimate,
    /// The squared difference of the probability and what happened (0 or 1), averaged.
    pub brier_score: Estimate,
    /// Expected calibration error: in each of ten bins of the probability, the distance between the mean
    /// probability and the share of positives, averaged over examples.
    pub calibration_error: Estimate,
}

impl Predictions {
    /// Adds an example of a subject. Subjects are numbered without large gaps.
    ///
    /// # Panics
    /// If the logit is not finite.
    pub fn add(&mut self, logit: f64, positive: bool, subject: u32) {
        assert!(logit.is_finite(), "a logit must be finite");
        let probability = 1.0 / (1.0 + (-logit).exp());
        let excess = probability - f64::from(positive);
        let bin = ((probability * BINS as f64) as usize).min(BINS - 1);
        self.right.add(f64::from((logit > 0.0) == positive), subject);
        self.log_loss.add(log_loss(logit, positive), subject);
        self.squared_error.add(excess * excess, subject);
        self.excess.add(std::array::from_fn(|of| if of == bin { excess } else { 0.0 }), subject);
    }

    /// All estimates.
    pub fn estimates(&self, bootstrap: &Bootstrap) -> PredictionEstimates {
        PredictionEstimates {
            accuracy: self.right.estimate(bootstrap),
            log_loss: self.log_loss.estimate(bootstrap),
            brier_score: self.squared_error.estimate(bootstrap),
            // A bin's distance times its share of the examples is its excess per example of all bins.
            calibration_error: self.excess.estimate(bootstrap, distance),
        }
    }

    /// The same in each replicate.
    pub fn replicated(&self, draws: &Draws) -> [Replicated; 4] {
        [
            self.right.replicated("accuracy", draws),
            self.log_loss.replicated("log_loss", draws),
            self.squared_error.replicated("brier_score", draws),
            self.excess.replicated("calibration_error", draws, distance),
        ]
    }
}

fn distance(excess: &[f64; BINS]) -> f64 {
    excess.iter().map(|of| of.abs()).sum()
}

/// The probability of a logit.
pub(super) fn probability(logit: f32) -> f64 {
    1.0 / (1.0 + (-f64::from(logit)).exp())
}

/// Minus the logarithm of the probability of what happened, in nats.
pub fn log_loss(logit: f64, positive: bool) -> f64 {
    softplus(if positive { -logit } else { logit })
}

/// ln(1 + e^x), without the overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn estimates(examples: &[(f64, bool)]) -> PredictionEstimates {
        let mut predictions = Predictions::default();
        for (&(logit, positive), subject) in examples.iter().zip(0..) {
            predictions.add(logit, positive, subject);
        }
        predictions.estimates(&Bootstrap::default())
    }

    /// Accuracy, log loss, Brier score and calibration error.
    fn values(examples: &[(f64, bool)]) -> [f64; 4] {
        let of = estimates(examples);
        [of.accuracy, of.log_loss, of.brier_score, of.calibration_error].map(|of| of.value.unwrap())
    }

    fn logit(probability: f64) -> f64 {
        (probability / (1.0 - probability)).ln()
    }

    fn assert_close(got: [f64; 4], expected: [f64; 4]) {
        let close = |(got, expected): (&f64, &f64)| (got - expected).abs() < 1e-12;
        assert!(got.iter().zip(&expected).all(close), "{got:?} {expected:?}");
    }

    #[test]
    fn by_hand() {
        let got =
            values(&[(logit(0.75), true), (logit(0.75), false), (logit(0.25), true), (logit(0.25), false)]);
        let log_loss = -(0.75f64.ln() + 0.25f64.ln()) / 2.0;
        // Both bins have a share of positives of 1/2, which is 1/4 away.
        assert_close(got, [0.5, log_loss, (0.0625 + 0.5625) / 2.0, 0.25]);
    }

    #[test]
    fn calibration_forgives_what_averages_out_within_a_bin_only() {
        let well = [0.81, 0.82, 0.83, 0.84].map(logit);
        let off = 0.825 - 0.75;
        let got = values(&[(well[0], true), (well[1], true), (well[2], true), (well[3], false)]);
        assert!((got[3] - off).abs() < 1e-12, "{got:?}");
        // The same mean probability over two bins: |0.79 - 1| and |0.86 - 1/2|, half of the examples each.
        let two = [0.78, 0.80 - 1e-9, 0.85, 0.87].map(logit);
        let got = values(&[(two[0], true), (two[1], true), (two[2], true), (two[3], false)]);
        assert!((got[3] - (0.21 + 0.36) / 2.0).abs() < 1e-8, "{got:?}");
    }

    #[test]
    fn bins_contain_their_lower_end_and_the_last_one_both() {
        // Probability 1/2 exactly is with 0.55, not with 0.45.
        let beside = |probability| values(&[(0.0, true), (logit(probability), false)])[3];
        assert!((beside(0.55) - 0.025).abs() < 1e-12);
        assert!((beside(0.45) - 0.475).abs() < 1e-12);
        assert_close(values(&[(800.0, false)]), [0.0, 800.0, 1.0, 1.0]);
    }

    #[test]
    fn log_loss_is_not_clipped() {
        assert_close(values(&[(-1000.0, true), (1000.0, false)]), [0.0, 1000.0, 1.0, 1.0]);
        // ln(1 + e^-50) is e^-50, to 22 digits.
        let sure = values(&[(50.0, true)])[1];
        assert!((sure / (-50.0f64).exp() - 1.0).abs() < 1e-12, "{sure}");
    }

    #[test]
    fn a_logit_of_zero_answers_no() {
        assert_eq!(values(&[(0.0, false)])[0], 1.0);
        assert_eq!(values(&[(0.0, true)])[0], 0.0);
    }

    #[test]
    fn threads_change_nothing() {
        let examples: Vec<(f64, bool)> =
            (0..500).map(|n| (f64::from(n % 83) / 9.0 - 4.0, n % 3 == 0)).collect();
        let expected = estimates(&examples);
        assert!(expected.log_loss.interval.is_some());
        for threads in [1, 2, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| estimates(&examples)), expected, "{threads} threads");
        }
    }

    #[test]
    fn undefined_without_examples() {
        assert_eq!(estimates(&[]), PredictionEstimates::default());
    }

    #[test]
    #[should_panic(expected = "a logit must be finite")]
    fn a_logit_that_is_not_a_number_is_refused() {
        estimates(&[(f64::NAN, true)]);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definitions(examples in prop::collection::vec((-8i32..9, any::<bool>()), 1..60)) {
            let examples: Vec<(f64, bool)> = examples.iter().map(|&(z, y)| (f64::from(z) / 2.0, y)).collect();
            let count = examples.len() as f64;
            let probability = |logit: f64| logit.exp() / (1.0 + logit.exp());
            let mean = |of: &dyn Fn(f64, f64) -> f64| {
                examples.iter().map(|&(z, y)| of(probability(z), f64::from(y))).sum::<f64>() / count
            };
            let inside = |p: f64, bin: i32| p >= f64::from(bin) / 10.0 && p < f64::from(bin + 1) / 10.0;
            let calibration: f64 = (0..10)
                .map(|bin| {
                    let members: Vec<(f64, f64)> = examples
                        .iter()
                        .map(|&(z, y)| (probability(z), f64::from(y)))
                        .filter(|&(p, _)| inside(p, bin))
                        .collect();
                    let size = members.len().max(1) as f64;
                    let said = members.iter().map(|(p, _)| p).sum::<f64>() / size;
                    let happened = members.iter().map(|(_, y)| y).sum::<f64>() / size;
                    (said - happened).abs() * members.len() as f64 / count
                })
                .sum();
            assert_close(values(&examples), [
                mean(&|p, y| f64::from((p > 0.5) == (y > 0.5))),
                mean(&|p, y| -(y * p.ln() + (1.0 - y) * (1.0 - p).ln())),
                mean(&|p, y| (p - y).powi(2)),
                calibration,
            ]);
        }
    }
}
