//! Whether acting on predictions does more good than acting on all or on none (Vickers and Elkin, 2006).

use serde::Serialize;

use super::operating_points::Cells;
use super::subject_ranking::Sorted;

/// Net benefit at a threshold, per prediction: true positives less false positives, of which as many make up
/// for a true positive as the odds of the threshold say.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NetBenefit {
    /// Positive above this probability.
    pub threshold: f64,
    /// Of acting where the model says so.
    pub model: f64,
    /// Of acting always.
    pub treat_all: f64,
    /// Of acting never: nothing.
    pub treat_none: f64,
}

/// Thresholds of a decision curve: thousandths below 0.01, where rare outcomes are decided, then hundredths.
pub fn decision_thresholds() -> Vec<f64> {
    let share = |of: u32, all: u32| f64::from(of) / f64::from(all);
    (1..10).map(|number| share(number, 1000)).chain((1..100).map(|number| share(number, 100))).collect()
}

impl Sorted {
    /// The net benefit at thresholds below 1; nothing without a prediction. Scores are logits.
    pub fn net_benefit(&self, thresholds: &[f64]) -> Vec<NetBenefit> {
        if self.is_empty() {
            return Vec::new();
        }
        let thresholds: Vec<f64> = thresholds.iter().copied().filter(|threshold| *threshold < 1.0).collect();
        let mut cuts: Vec<usize> = thresholds.iter().map(|threshold| self.above(*threshold)).collect();
        // At the last cut all are treated.
        cuts.push(self.len());
        let subjects = self.scored.iter().map(|of| of.subject as usize + 1).max().unwrap_or_default();
        let [cells] = self.cells(&cuts, &vec![[1]; subjects]);
        let benefit = |cells: &Cells, threshold: f64| {
            let false_alarms = cells.false_positives as f64 * threshold / (1.0 - threshold);
            (cells.true_positives as f64 - false_alarms) / self.len() as f64
        };
        let at = |(threshold, model): (&f64, &Cells)| NetBenefit {
            threshold: *threshold,
            model: benefit(model, *threshold),
            treat_all: benefit(&cells[thresholds.len()], *threshold),
            treat_none: 0.0,
        };
        thresholds.iter().zip(&cells).map(at).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metric::{Scored, SubjectRanking, predictions::probability};

    fn sorted(examples: &[(f32, bool)]) -> Sorted {
        let mut ranking = SubjectRanking::default();
        for (&(score, positive), subject) in examples.iter().zip(0..) {
            ranking.add(Scored { score, positive, subject });
        }
        ranking.sorted()
    }

    #[test]
    fn by_hand() {
        let got = sorted(&[(2.0, true), (2.0, false), (-2.0, true), (-2.0, false)]).net_benefit(&[0.2, 1.0]);
        // Four false alarms make up for one that is found.
        let expected = NetBenefit { threshold: 0.2, model: 0.1875, treat_all: 0.375, treat_none: 0.0 };
        assert_eq!(got, [expected], "a threshold of 1 has no odds");
        assert_eq!(sorted(&[]).net_benefit(&[0.5]), []);
    }

    #[test]
    fn the_curve_begins_where_rare_outcomes_are_decided() {
        let thresholds = decision_thresholds();
        assert!(thresholds.is_sorted_by(|a, b| a < b));
        assert_eq!((thresholds[0], thresholds[9], thresholds[107]), (0.001, 0.01, 0.99));
        assert_eq!(thresholds.len(), 108);
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            examples in prop::collection::vec((-4i8..5, any::<bool>()), 1..40),
            threshold in 0.0f64..0.99,
        ) {
            let examples: Vec<(f32, bool)> = examples.iter().map(|&(z, y)| (z.into(), y)).collect();
            let count = examples.len() as f64;
            let net = |acts: &dyn Fn(f32) -> bool| {
                let of = |wanted: bool| {
                    examples.iter().filter(|(z, y)| acts(*z) && *y == wanted).count() as f64 / count
                };
                of(true) - of(false) * threshold / (1.0 - threshold)
            };
            let [got] = sorted(&examples).net_benefit(&[threshold])[..] else { panic!("one threshold") };
            prop_assert!((got.model - net(&|z| probability(z) > threshold)).abs() < 1e-12);
            prop_assert!((got.treat_all - net(&|_| true)).abs() < 1e-12);
        }
    }
}
