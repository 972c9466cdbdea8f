//! A logistic regression on one number, with targets between 0 and 1, to the last digits: a run keeps it.
//!
//! That of the calibration slope (`metric/calibration.rs`) has the same steps, and ends earlier: it is made
//! for every replicate of a bootstrap.

use crate::metric::LineLoss;

/// Steps of Newton's method. It takes fewer than ten where there is a minimum.
const STEPS: usize = 100;

/// A step that moves the line by less has arrived.
const ARRIVED: f64 = 1e-12;

/// The line `intercept + slope * x`, as a logit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LogitLine {
    /// How much the logit grows with x.
    pub(super) slope: f64,
    /// The logit at 0.
    pub(super) intercept: f64,
}

/// The line of least log loss through pairs of x and a target. `None` if all x are the same. Targets are
/// neither 0 nor 1: if a threshold separated those, the steepest line would be the best.
pub(super) fn logit_line(examples: &[(f64, f64)]) -> Option<LogitLine> {
    let (mean, deviation) = spread(examples)?;
    let examples: Vec<(f64, f64)> = examples.iter().map(|&(x, y)| ((x - mean) / deviation, y)).collect();
    let share = examples.iter().map(|(_, y)| y).sum::<f64>() / examples.len() as f64;
    let mut line = [(share / (1.0 - share)).ln(), 0.0];
    let mut here = loss(&examples, line);
    for _ in 0..STEPS {
        let step = here.step()?;
        // Halved until it leads down, which a full step nearly always does.
        let (next, now) = (0..60)
            .map(|halvings| line_after(line, step, 0.5f64.powi(halvings)))
            .map(|next| (next, loss(&examples, next)))
            .find(|(_, now)| now.loss <= here.loss)?;
        let moved = (next[0] - line[0]).abs().max((next[1] - line[1]).abs());
        (line, here) = (next, now);
        if moved <= ARRIVED * (1.0 + line[1].abs()) {
            let slope = line[1] / deviation;
            return Some(LogitLine { slope, intercept: line[0] - slope * mean });
        }
    }
    None
}

/// The mean and the standard deviation of x.
fn spread(examples: &[(f64, f64)]) -> Option<(f64, f64)> {
    let count = examples.len() as f64;
    let mean = examples.iter().map(|(x, _)| x).sum::<f64>() / count;
    let variance = examples.iter().map(|(x, _)| (x - mean).powi(2)).sum::<f64>() / count;
    let is_spread = variance.is_finite() && variance > 0.0 && examples.iter().any(|of| of.0 != examples[0].0);
    is_spread.then(|| (mean, variance.sqrt()))
}

fn line_after(line: [f64; 2], step: [f64; 2], share: f64) -> [f64; 2] {
    [line[0] + share * step[0], line[1] + share * step[1]]
}

fn loss(examples: &[(f64, f64)], line: [f64; 2]) -> LineLoss {
    let mut sums = LineLoss::default();
    examples.iter().for_each(|&(x, target)| sums.add(line, x, target, 1.0));
    sums
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        // Two x: the line goes through the logits of their shares, 1/4 and 2/3.
        let examples = [(0.0, 1.0), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0), (2.0, 1.0), (2.0, 1.0), (2.0, 0.0)];
        let line = logit_line(&examples).unwrap();
        assert!((line.intercept - (1.0f64 / 3.0).ln()).abs() < 1e-10, "{line:?}");
        assert!((2.0 * line.slope - (2.0f64.ln() + 3.0f64.ln())).abs() < 1e-10, "{line:?}");
    }

    #[test]
    fn there_is_none_where_nothing_varies() {
        assert_eq!(logit_line(&[]), None);
        assert_eq!(logit_line(&[(1.0, 0.1), (1.0, 0.9)]), None);
    }

    #[test]
    fn two_that_are_apart_have_a_line_through_both() {
        let line = logit_line(&[(0.0, 0.2), (1.0, 0.8)]).unwrap();
        assert!((line.slope - 2.0 * 4f64.ln()).abs() < 1e-9 && (line.intercept + 4f64.ln()).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn no_line_beside_it_is_better(
            examples in prop::collection::vec((-20i8..20, 1u8..10), 3..60),
            aside in (-1.0..1.0f64, -1.0..1.0f64),
        ) {
            let examples: Vec<(f64, f64)> =
                examples.iter().map(|&(x, y)| (f64::from(x) / 4.0, f64::from(y) / 10.0)).collect();
            prop_assume!(examples.iter().any(|(x, _)| *x != examples[0].0));
            let LogitLine { slope, intercept } = logit_line(&examples).unwrap();
            let best = loss(&examples, [intercept, slope]).loss;
            for share in [1.0, 0.1, 0.01, 0.001] {
                let other = [intercept + share * aside.0, slope + share * aside.1];
                let other = loss(&examples, other).loss;
                prop_assert!(best <= other * (1.0 + 1e-12), "{best} {other}");
            }
        }
    }
}
