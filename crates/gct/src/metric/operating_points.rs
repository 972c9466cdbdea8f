//! What becomes of predictions at a threshold. A prediction is positive if its probability is above it.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use super::bootstrap::Draws;
use super::predictions::probability;
use super::subject_ranking::{Sorted, TOGETHER};
use super::{Estimate, Scores};
use crate::error::{Error, Result};

/// What is told at a threshold.
const NAMES: [&str; 6] = ["sensitivity", "specificity", "ppv", "npv", "f1", "alerts_per_1000"];

/// How predictions do at a threshold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OperatingPoint {
    /// A prediction is positive if its probability is above this.
    pub threshold: f64,
    /// What the threshold was chosen for, on the validation split; `None` if it was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_for: Option<Aim>,
    /// Sensitivity, specificity, PPV, NPV, F1 and alerts per 1,000 predictions. PPV is undefined without an
    /// alert, NPV if all are alerts.
    #[serde(flatten)]
    pub scores: Scores,
}

/// What a threshold is chosen for, where several would do the one that alerts least (for a sensitivity) or
/// finds most (for all others).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Aim {
    /// At least this sensitivity: the highest such threshold.
    Sensitivity(f64),
    /// At least this specificity: the lowest such threshold.
    Specificity(f64),
    /// At least this positive predictive value: the lowest such threshold.
    Ppv(f64),
    /// At most so many alerts per 1,000 predictions: the lowest such threshold.
    Alerts(f64),
}

impl Aim {
    /// The names of aims.
    pub const NAMES: [&str; 4] = ["sensitivity", "specificity", "ppv", "alerts"];

    fn parts(&self) -> (&'static str, f64) {
        match *self {
            Aim::Sensitivity(value) => ("sensitivity", value),
            Aim::Specificity(value) => ("specificity", value),
            Aim::Ppv(value) => ("ppv", value),
            Aim::Alerts(value) => ("alerts", value),
        }
    }

    /// Refuses a value outside of its range.
    ///
    /// # Errors
    /// If it is.
    pub fn check(&self) -> Result<()> {
        let (name, value) = self.parts();
        let most = if let Aim::Alerts(_) = self { 1000.0 } else { 1.0 };
        match value > 0.0 && value <= most {
            true => Ok(()),
            false => Err(Error::setting(name, value, &format!("a number above 0, at most {most}"))),
        }
    }

    /// Whether a threshold reaches it.
    fn is_reached(&self, cells: &Cells) -> bool {
        let [sensitivity, specificity, ppv, _, _, alerts] = cells.values();
        let at_least = |found: Option<f64>, wanted: f64| found.is_some_and(|found| found >= wanted);
        match *self {
            Aim::Sensitivity(value) => at_least(sensitivity, value),
            Aim::Specificity(value) => at_least(specificity, value),
            Aim::Ppv(value) => at_least(ppv, value),
            Aim::Alerts(value) => alerts.is_some_and(|alerts| alerts <= value),
        }
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = self.parts();
        write!(to, "{name}={value}")
    }
}

impl FromStr for Aim {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let aim: fn(f64) -> Aim = match name.trim() {
            "sensitivity" => Aim::Sensitivity,
            "specificity" => Aim::Specificity,
            "ppv" => Aim::Ppv,
            "alerts" => Aim::Alerts,
            other => {
                let known = Aim::NAMES.map(str::to_owned).to_vec();
                return Err(Error::UnknownName { what: "aim", name: other.into(), known });
            }
        };
        let value = value.trim();
        let wrong = |_| Error::setting(name.trim(), value, &format!("a number, as in {}=0.8", name.trim()));
        let aim = aim(value.parse().map_err(wrong)?);
        aim.check()?;
        Ok(aim)
    }
}

impl Serialize for Aim {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Predictions at a threshold, counted by what was said and what happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cells {
    pub(super) true_positives: u64,
    pub(super) false_positives: u64,
    pub(super) false_negatives: u64,
    pub(super) true_negatives: u64,
}

impl Cells {
    /// From how many positives and negatives are above the threshold, and how many there are.
    pub(super) fn new(above: [u64; 2], all: [u64; 2]) -> Self {
        Cells {
            true_positives: above[0],
            false_positives: above[1],
            false_negatives: all[0] - above[0],
            true_negatives: all[1] - above[1],
        }
    }

    /// In the order of [`NAMES`].
    fn values(&self) -> [Option<f64>; NAMES.len()] {
        let Cells { true_positives, false_positives, false_negatives, true_negatives } = *self;
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let (alerts, quiet) = (true_positives + false_positives, false_negatives + true_negatives);
        let positives = true_positives + false_negatives;
        let f1 = share(2 * true_positives, alerts + positives).filter(|_| positives > 0);
        [
            share(true_positives, positives),
            share(true_negatives, false_positives + true_negatives),
            share(true_positives, alerts),
            share(true_negatives, quiet),
            f1,
            share(1000 * alerts, alerts + quiet),
        ]
    }
}

impl Sorted {
    /// How predictions do at each threshold; scores are logits.
    pub fn operating_points(&self, thresholds: &[f64], draws: &Draws) -> Vec<OperatingPoint> {
        let cuts: Vec<usize> = thresholds.iter().map(|threshold| self.above(*threshold)).collect();
        let once: Vec<[u32; 1]> = draws.once().into_iter().map(|times| [times]).collect();
        let [all] = self.cells(&cuts, &once);
        let replicates = draws.replicates(|times| self.cells::<TOGETHER>(&cuts, times));
        let values: Vec<Vec<[Option<f64>; NAMES.len()]>> =
            replicates.iter().map(|cells| cells.iter().map(Cells::values).collect()).collect();
        let point = |(at, threshold): (usize, &f64)| {
            let estimate = |(name, value): (usize, Option<f64>)| {
                let interval = draws.interval(values.iter().map(|replicate| replicate[at][name]));
                (NAMES[name], Estimate { value, interval })
            };
            let scores = Scores(all[at].values().into_iter().enumerate().map(estimate).collect());
            OperatingPoint { threshold: *threshold, chosen_for: None, scores }
        };
        thresholds.iter().enumerate().map(point).collect()
    }

    /// The threshold that an aim chooses, with as few digits as tell the probabilities on both sides of it
    /// apart; `None` if no threshold reaches it.
    pub fn threshold_for(&self, aim: Aim) -> Option<f64> {
        let all = [self.positives(), self.len() as u64 - self.positives()];
        // Each cut with the probabilities above and below it, from no alert to nothing but alerts.
        let (mut above, mut next, mut reached) = ([0, 0], 0, None);
        loop {
            let below = self.scored.get(next).map_or(0.0, |of| probability(of.score));
            if aim.is_reached(&Cells::new(above, all)) {
                let least = next.checked_sub(1).map_or(1.0, |last| probability(self.scored[last].score));
                reached = Some(short_between(below, least));
                if let Aim::Sensitivity(_) = aim {
                    return reached;
                }
            }
            let Some(of) = self.scored.get(next) else { return reached };
            // Equal probabilities, of logits that may differ, are on one side.
            let tied = probability(of.score);
            while let Some(of) = self.scored.get(next).filter(|of| probability(of.score) == tied) {
                above[usize::from(!of.positive)] += 1;
                next += 1;
            }
        }
    }

    /// How many predictions are above a threshold.
    pub(super) fn above(&self, threshold: f64) -> usize {
        self.scored.partition_point(|of| probability(of.score) > threshold)
    }

    /// What each cut makes of some replicates, in one walk.
    pub(super) fn cells<const N: usize>(&self, cuts: &[usize], times: &[[u32; N]]) -> [Vec<Cells>; N] {
        let mut order: Vec<usize> = (0..cuts.len()).collect();
        order.sort_by_key(|at| cuts[*at]);
        let mut above = vec![[[0; 2]; N]; cuts.len()];
        let (mut sums, mut walked) = ([[0; 2]; N], 0);
        let mut walk = |to: usize| {
            for of in &self.scored[walked..to] {
                let times = times[of.subject as usize];
                let side = usize::from(!of.positive);
                sums.iter_mut().zip(times).for_each(|(sum, times)| sum[side] += u64::from(times));
            }
            walked = to;
            sums
        };
        order.into_iter().for_each(|at| above[at] = walk(cuts[at]));
        let all = walk(self.scored.len());
        std::array::from_fn(|n| above.iter().map(|above| Cells::new(above[n], all[n])).collect())
    }
}

/// The number with the fewest digits from `low` to below `high`.
fn short_between(low: f64, high: f64) -> f64 {
    let rounded = |digits: i32| {
        let scale = 10f64.powi(digits);
        (low * scale).ceil() / scale
    };
    (1..17).map(rounded).find(|number| *number >= low && *number < high).unwrap_or(low)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metric::{Bootstrap, Scored, SubjectRanking};

    type Example = (f32, bool, u32);

    fn sorted(examples: &[Example]) -> Sorted {
        let mut ranking = SubjectRanking::default();
        for &(score, positive, subject) in examples {
            ranking.add(Scored { score, positive, subject });
        }
        ranking.sorted()
    }

    fn points(examples: &[Example], thresholds: &[f64]) -> Vec<OperatingPoint> {
        let sorted = sorted(examples);
        sorted.operating_points(thresholds, &Draws::new(Bootstrap::default(), sorted.subjects()))
    }

    /// By definition: each prediction is looked at for each threshold.
    fn naive(examples: &[Example], threshold: f64) -> [Option<f64>; 6] {
        let count = |said: bool, happened: bool| {
            let is = |of: &&Example| (probability(of.0) > threshold, of.1) == (said, happened);
            examples.iter().filter(is).count() as f64
        };
        let (hits, false_alarms) = (count(true, true), count(true, false));
        let (missed, rejected) = (count(false, true), count(false, false));
        let ratio = |a: f64, b: f64| (b > 0.0).then(|| a / b);
        let (sensitivity, ppv) = (ratio(hits, hits + missed), ratio(hits, hits + false_alarms));
        // The harmonic mean of both; 0 without a hit.
        let f1 = sensitivity.map(|recall| match ppv {
            Some(ppv) if hits > 0.0 => 2.0 / (1.0 / recall + 1.0 / ppv),
            _ => 0.0,
        });
        let specificity = ratio(rejected, rejected + false_alarms);
        let alerts = ratio(1000.0 * (hits + false_alarms), examples.len() as f64);
        [sensitivity, specificity, ppv, ratio(rejected, rejected + missed), f1, alerts]
    }

    #[test]
    fn by_hand() {
        let examples = [(2.0, true, 0), (1.0, false, 1), (0.0, true, 2), (-1.0, false, 3)];
        let [half, high] = &points(&examples, &[0.5, 0.9])[..] else { panic!("two points") };
        let value = |name: &str| half.scores.value(name).unwrap();
        // A probability of one half is not above one half.
        assert_eq!([value("sensitivity"), value("specificity"), value("ppv"), value("npv")], [0.5; 4]);
        assert_eq!((value("f1"), value("alerts_per_1000")), (0.5, 500.0));
        assert_eq!((high.scores.value("ppv"), high.scores.value("sensitivity")), (None, Some(0.0)));
        assert_eq!(high.scores.value("f1"), Some(0.0));
    }

    #[test]
    fn an_aim_chooses_the_threshold_that_alerts_least_or_finds_most() {
        let examples: Vec<Example> = [(0.9, true), (0.8, false), (0.6, true), (0.3, false), (0.1, true)]
            .map(|(share, positive): (f32, bool)| ((share / (1.0 - share)).ln(), positive, 0))
            .to_vec();
        let chosen = |aim: &str| sorted(&examples).threshold_for(aim.parse().unwrap());
        assert_eq!(chosen("sensitivity=0.6"), Some(0.4), "above 0.3 and below 0.6 by one digit");
        assert_eq!(chosen("sensitivity=1"), Some(0.0));
        assert_eq!(chosen("specificity=0.5"), Some(0.4));
        assert_eq!(chosen("ppv=0.6"), Some(0.0), "3 of 5, though fewer would do as well");
        assert_eq!(chosen("ppv=0.65"), Some(0.4));
        assert_eq!(chosen("alerts=200"), Some(0.81), "0.8 in single precision is a little more");
        let no_hit = sorted(&[(1.0, false, 0), (0.0, true, 1)]);
        assert_eq!(no_hit.threshold_for(Aim::Ppv(0.9)), None);
        assert_eq!(sorted(&[(1.0, false, 0)]).threshold_for(Aim::Sensitivity(0.5)), None);
    }

    #[test]
    fn aims_are_read_and_refused() {
        assert_eq!("sensitivity=0.8".parse::<Aim>().unwrap().to_string(), "sensitivity=0.8");
        for wrong in ["recall=0.8", "sensitivity", "ppv=1.1", "ppv=0", "alerts=2000", "ppv=NaN", "ppv=x"] {
            assert!(wrong.parse::<Aim>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn agrees_with_counting(
            examples in prop::collection::vec((-4i8..5, any::<bool>(), 0u32..5), 0..40),
            thresholds in prop::collection::vec(prop::sample::select(vec![0.0, 0.1, 0.5, 0.88, 1.0]), 0..5),
        ) {
            let examples: Vec<Example> = examples.iter().map(|&(s, p, who)| (s.into(), p, who)).collect();
            for point in points(&examples, &thresholds) {
                let got = NAMES.map(|name| point.scores.value(name));
                let expected = naive(&examples, point.threshold);
                let close = |(a, b): (&Option<f64>, &Option<f64>)| match (a, b) {
                    (Some(a), Some(b)) => (a - b).abs() < 1e-12,
                    (a, b) => a == b,
                };
                prop_assert!(got.iter().zip(&expected).all(close), "{got:?} {expected:?}");
            }
        }

        #[test]
        fn a_replicate_is_repeated_examples(
            examples in prop::collection::vec((-4i8..5, any::<bool>(), 0u32..5), 1..40),
            times in prop::collection::vec(0u32..4, 5),
        ) {
            let examples: Vec<Example> = examples.iter().map(|&(s, p, who)| (s.into(), p, who)).collect();
            let repeat = |of: &Example| vec![*of; times[of.2 as usize] as usize];
            let repeated: Vec<Example> = examples.iter().flat_map(repeat).collect();
            let (all, drawn) = (sorted(&examples), sorted(&repeated));
            let weights: Vec<[u32; 1]> = times.iter().map(|times| [*times]).collect();
            for threshold in [0.2, 0.5, 0.7] {
                let [got] = all.cells(&[all.above(threshold)], &weights);
                let [expected] = drawn.cells(&[drawn.above(threshold)], &[[1]; 5]);
                prop_assert_eq!(got, expected);
            }
        }

        #[test]
        fn a_chosen_threshold_reaches_its_aim_and_its_neighbours_do_not_better(
            examples in prop::collection::vec((-4i8..5, any::<bool>()), 1..30),
            value in 0.05f64..1.0,
            kind in 0usize..4,
        ) {
            let examples: Vec<Example> = examples.iter().map(|&(s, p)| (s.into(), p, 0)).collect();
            let aims = [Aim::Sensitivity(value), Aim::Specificity(value), Aim::Ppv(value)];
            let aim = aims.get(kind).copied().unwrap_or(Aim::Alerts(1000.0 * value));
            let sorted = sorted(&examples);
            let all = [sorted.positives(), sorted.len() as u64 - sorted.positives()];
            let reached = |cut: usize| {
                let hits = sorted.scored[..cut].iter().filter(|of| of.positive).count() as u64;
                aim.is_reached(&Cells::new([hits, cut as u64 - hits], all))
            };
            // Every cut between different scores.
            let differs = |cut: &usize| *cut == 0 || *cut == sorted.len()
                || sorted.scored[cut - 1].score > sorted.scored[*cut].score;
            let cuts: Vec<usize> = (0..=sorted.len()).filter(differs).filter(|cut| reached(*cut)).collect();
            let expected = match aim {
                Aim::Sensitivity(_) => cuts.first(),
                Aim::Specificity(_) | Aim::Ppv(_) | Aim::Alerts(_) => cuts.last(),
            };
            let got = sorted.threshold_for(aim).map(|threshold| sorted.above(threshold));
            prop_assert_eq!(got, expected.copied());
        }
    }
}
