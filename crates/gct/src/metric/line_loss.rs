//! The log loss of a line of logits and its derivatives: what fits of one number to an outcome go down by.
//!
//! There are two such fits: the calibration slope, made for every replicate of a bootstrap, and Platt's map
//! (`calibration/logistic.rs`), which a run keeps. They have the same steps, and end at different precisions.

use super::predictions::log_loss;

/// A loss with its gradient, and its second derivatives: by the intercept, by both, by the slope.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct LineLoss {
    /// The sum over the examples.
    pub(crate) loss: f64,
    gradient: [f64; 2],
    curvature: [f64; 3],
}

impl LineLoss {
    /// Adds an example: its number, what the logit stands for there, between 0 and 1, and how often it
    /// counts.
    pub(crate) fn add(&mut self, [intercept, slope]: [f64; 2], x: f64, target: f64, weight: f64) {
        let logit = intercept + slope * x;
        let chance = 1.0 / (1.0 + (-logit).exp());
        let (excess, spread) = (weight * (chance - target), weight * chance * (1.0 - chance));
        self.loss += weight * loss(logit, target);
        self.gradient[0] += excess;
        self.gradient[1] += excess * x;
        self.curvature[0] += spread;
        self.curvature[1] += spread * x;
        self.curvature[2] += spread * x * x;
    }

    /// Newton's step for intercept and slope; `None` if there is no lowest point.
    pub(crate) fn step(&self) -> Option<[f64; 2]> {
        let ([a, b], [aa, ab, bb]) = (self.gradient, self.curvature);
        let determinant = aa * bb - ab * ab;
        (determinant > 0.0).then(|| [ab * b - bb * a, ab * a - aa * b].map(|of| of / determinant))
    }

    /// The same for the intercept alone.
    pub(crate) fn step_of_intercept(&self) -> Option<[f64; 2]> {
        (self.curvature[0] > 0.0).then(|| [-self.gradient[0] / self.curvature[0], 0.0])
    }
}

/// The log loss where the truth is a share. A yes or no has one term.
fn loss(logit: f64, target: f64) -> f64 {
    if target == 1.0 || target == 0.0 {
        return log_loss(logit, target == 1.0);
    }
    target * log_loss(logit, true) + (1.0 - target) * log_loss(logit, false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(line: [f64; 2], examples: &[(i8, u8, u8)]) -> LineLoss {
        let mut sums = LineLoss::default();
        for &(x, target, weight) in examples {
            sums.add(line, f64::from(x) / 4.0, f64::from(target) / 4.0, f64::from(weight));
        }
        sums
    }

    proptest! {
        #[test]
        fn derivatives_are_differences_and_a_step_leads_to_where_they_would_be_zero(
            examples in prop::collection::vec((-9i8..9, 0u8..5, 0u8..4), 1..30),
            line in (-2.0..2.0f64, -2.0..2.0f64),
        ) {
            let (at, little) = ([line.0, line.1], 1e-5);
            let here = of(at, &examples);
            for (which, derivative) in here.gradient.into_iter().enumerate() {
                let beside = |by: f64| {
                    let mut line = at;
                    line[which] += by;
                    of(line, &examples)
                };
                let (up, down) = (beside(little), beside(-little));
                let difference = (up.loss - down.loss) / (2.0 * little);
                prop_assert!((difference - derivative).abs() < 1e-4, "{difference} {derivative}");
                for other in 0..2 {
                    let difference = (up.gradient[other] - down.gradient[other]) / (2.0 * little);
                    let curvature = here.curvature[which + other];
                    prop_assert!((difference - curvature).abs() < 1e-4, "{difference} {curvature}");
                }
            }
            let ([a, b], [aa, ab, bb]) = (here.gradient, here.curvature);
            // Where x hardly varies, rounding decides where the lowest point is.
            prop_assume!(aa * bb - ab * ab > 1e-6 * aa * bb);
            let [by_intercept, by_slope] = here.step().unwrap();
            let left = [a + aa * by_intercept + ab * by_slope, b + ab * by_intercept + bb * by_slope];
            prop_assert!(left.iter().all(|of| of.abs() < 1e-6 * (1.0 + a.abs() + b.abs())), "{left:?}");
        }
    }
}
