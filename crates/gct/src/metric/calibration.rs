//! Whether probabilities mean what they say: the calibration slope and intercept (Cox, 1958), and the curve.

use serde::Serialize;

use super::Scores;
use super::bootstrap::{Draws, Replicated};
use super::line_loss::LineLoss;
use super::predictions::probability;
use super::subject_ranking::{Scored, Sorted};

/// Bins of the curve.
const BINS: usize = 10;

/// Newton steps after which a fit is given up; five or six do.
const MOST_STEPS: usize = 60;

/// A step that is no longer than this ends a fit: the next one would be its square.
const SHORT: f64 = 1e-7;

/// Half of the middle 95 % of a normal distribution.
const NORMAL: f64 = 1.959_963_984_540_054;

/// How calibrated predictions are.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// `slope` and `intercept`, as TRIPOD has them. The slope is that of a logistic regression of what
    /// happened on the logit: 1 is right, less is overconfident. The intercept (calibration in the large) is
    /// that of the same regression with the slope fixed to 1: 0 is right, less says that probabilities are
    /// too high. The slope is undefined where one score divides positives from negatives.
    #[serde(flatten)]
    pub scores: Scores,
    /// What was said beside what happened, in bins of about as many predictions, from the lowest risk.
    pub bins: Vec<RiskBin>,
}

/// Predictions that are neighbours by their probability: about a tenth of all. Equal ones are in one bin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RiskBin {
    /// The lowest probability.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many predictions.
    pub count: u64,
    /// Their mean probability.
    pub said: f64,
    /// How often it was so.
    pub happened: f64,
    /// The 95 % interval of that: Wilson's, with as many observations as the bin has subjects. A bootstrap of
    /// a bin without a positive would be sure that there never is one.
    pub happened_interval: [f64; 2],
}

/// Which parameters of a recalibration are fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fitted {
    /// The intercept alone; the slope stays 1.
    Intercept,
    /// Intercept and slope.
    Both,
}

impl Fitted {
    /// Newton's step.
    fn step(self, here: &LineLoss) -> Option<[f64; 2]> {
        match self {
            Fitted::Intercept => here.step_of_intercept(),
            Fitted::Both => here.step(),
        }
    }
}

impl Sorted {
    /// How calibrated the predictions are; scores are logits.
    pub fn calibration(&self, draws: &Draws) -> Calibration {
        let [slope, intercept] = self.recalibration(draws);
        let scores = [("slope", &slope), ("intercept", &intercept)];
        let scores = scores.map(|(name, of)| (name, of.estimate(draws)));
        Calibration { scores: Scores(scores.to_vec()), bins: self.risk_bins() }
    }

    /// Slope and intercept in each replicate.
    pub fn recalibration(&self, draws: &Draws) -> [Replicated; 2] {
        let once = draws.once();
        let [both, large] = [(Fitted::Both, [0.0, 0.0]), (Fitted::Intercept, [0.0, 1.0])]
            .map(|(fitted, start)| self.fit(fitted, &once, start));
        // The fit of all is near that of each replicate.
        let replicate = |times: &[u32]| {
            let again = |fitted: Fitted, start: Option<[f64; 2]>| self.fit(fitted, times, start?);
            let (both, large) = (again(Fitted::Both, both), again(Fitted::Intercept, large));
            [both.map(|[_, slope]| slope), large.map(|[intercept, _]| intercept)]
        };
        let replicates = draws.replicates(|times: &[[u32; 1]]| [replicate(times.as_flattened())]);
        let of = |name: &'static str, value: Option<f64>, at: usize| Replicated {
            name,
            value,
            replicates: replicates.iter().map(|of| of[at]).collect(),
        };
        [
            of("calibration_slope", both.map(|[_, slope]| slope), 0),
            of("calibration_intercept", large.map(|[intercept, _]| intercept), 1),
        ]
    }

    /// The most likely intercept and slope, by Newton's method with steps that are halved until they help.
    fn fit(&self, fitted: Fitted, times: &[u32], start: [f64; 2]) -> Option<[f64; 2]> {
        self.is_fitted(fitted, times).then_some(())?;
        let (mut at, mut here) = (start, self.slopes(times, start));
        for _ in 0..MOST_STEPS {
            let mut step = fitted.step(&here).filter(|step| step.iter().all(|part| part.is_finite()))?;
            if step.iter().all(|part| part.abs() <= SHORT * (1.0 + at[0].abs() + at[1].abs())) {
                return Some([at[0] + step[0], at[1] + step[1]]);
            }
            let mut next = self.slopes(times, [at[0] + step[0], at[1] + step[1]]);
            while next.loss > here.loss && step.iter().any(|part| part.abs() > SHORT) {
                step = step.map(|part| part / 2.0);
                next = self.slopes(times, [at[0] + step[0], at[1] + step[1]]);
            }
            at = [at[0] + step[0], at[1] + step[1]];
            here = next;
        }
        None
    }

    /// Whether the most likely parameters are finite: both classes must be there, and for a slope overlap.
    fn is_fitted(&self, fitted: Fitted, times: &[u32]) -> bool {
        let is =
            |positive: bool| move |of: &&Scored| of.positive == positive && times[of.subject as usize] > 0;
        let ends = |positive: bool| {
            let highest = self.scored.iter().find(is(positive))?.score;
            Some((self.scored.iter().rfind(is(positive))?.score, highest))
        };
        match (fitted, ends(true), ends(false)) {
            (Fitted::Intercept, positives, negatives) => positives.is_some() && negatives.is_some(),
            (Fitted::Both, Some(positives), Some(negatives)) => {
                positives.0 < negatives.1 && negatives.0 < positives.1
            }
            (Fitted::Both, ..) => false,
        }
    }

    /// The loss of a recalibration and its derivatives, over examples as often as their subjects were drawn.
    fn slopes(&self, times: &[u32], line: [f64; 2]) -> LineLoss {
        let mut sums = LineLoss::default();
        for of in &self.scored {
            let times = times[of.subject as usize];
            if times > 0 {
                sums.add(line, f64::from(of.score), f64::from(of.positive), f64::from(times));
            }
        }
        sums
    }

    /// Bins of neighbours, from the lowest probability. Fewer than ten if many are equal.
    fn risk_bins(&self) -> Vec<RiskBin> {
        let count = self.scored.len();
        let same = |a: usize, b: usize| self.scored[a].score == self.scored[b].score;
        let mut bins = Vec::new();
        let mut end = count;
        for bin in 1..=BINS {
            let mut start = count - count * bin / BINS;
            while start > 0 && start < count && same(start - 1, start) {
                start -= 1;
            }
            if start < end {
                bins.push(RiskBin::new(&self.scored[start..end]));
                end = start;
            }
        }
        bins
    }
}

impl RiskBin {
    /// Of examples from the highest score down, of which there is one at least.
    fn new(scored: &[Scored]) -> Self {
        let count = scored.len() as f64;
        let chances = || scored.iter().map(|of| probability(of.score));
        let mut subjects: Vec<u32> = scored.iter().map(|of| of.subject).collect();
        subjects.sort_unstable();
        subjects.dedup();
        let happened = scored.iter().filter(|of| of.positive).count() as f64 / count;
        RiskBin {
            low: chances().next_back().unwrap_or_default(),
            high: chances().next().unwrap_or_default(),
            count: scored.len() as u64,
            said: chances().sum::<f64>() / count,
            happened,
            happened_interval: wilson(happened, subjects.len() as f64),
        }
    }
}

/// Wilson's 95 % interval of a share of so many observations.
fn wilson(share: f64, count: f64) -> [f64; 2] {
    let square = NORMAL * NORMAL;
    let middle = (share + square / (2.0 * count)) / (1.0 + square / count);
    let reach = NORMAL / (1.0 + square / count)
        * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
    // Rounding must not leave the range.
    [(middle - reach).clamp(0.0, share), (middle + reach).clamp(share, 1.0)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::metric::{Bootstrap, SubjectRanking};

    type Example = (f32, bool, u32);

    fn sorted(examples: &[Example]) -> Sorted {
        let mut ranking = SubjectRanking::default();
        for &(score, positive, subject) in examples {
            ranking.add(Scored { score, positive, subject });
        }
        ranking.sorted()
    }

    fn calibration(examples: &[Example]) -> Calibration {
        let sorted = sorted(examples);
        sorted.calibration(&Draws::new(Bootstrap::default(), sorted.subjects()))
    }

    fn slope_and_intercept(examples: &[Example]) -> [Option<f64>; 2] {
        let Scores(scores) = calibration(examples).scores;
        [scores[0].1.value, scores[1].1.value]
    }

    /// Outcomes drawn by the chance that the recalibrated logit says.
    fn drawn(count: u32, intercept: f64, slope: f64) -> Vec<Example> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(4);
        let example = |subject: u32| {
            let score = (rng.random::<f64>() * 6.0 - 4.0) as f32;
            let chance = 1.0 / (1.0 + (-intercept - slope * f64::from(score)).exp());
            (score, rng.random::<f64>() < chance, subject)
        };
        (0..count).map(example).collect()
    }

    #[test]
    fn by_hand() {
        // Scores of -ln 3 and ln 3, a share of positives of 1/4 and 3/4: as said.
        let third = 3f32.ln();
        let of = |score: f32, positives: u32| {
            (0..4).map(move |number| (score, number < positives, number)).collect::<Vec<Example>>()
        };
        let close = |got: Option<f64>, expected: f64| (got.unwrap() - expected).abs() < 1e-6;
        let [slope, intercept] = slope_and_intercept(&[of(-third, 1), of(third, 3)].concat());
        assert!(close(slope, 1.0) && close(intercept, 0.0), "{slope:?} {intercept:?}");
        // The same outcomes with twice the logit were overconfident.
        let [slope, intercept] = slope_and_intercept(&[of(-2.0 * third, 1), of(2.0 * third, 3)].concat());
        assert!(close(slope, 0.5) && close(intercept, 0.0), "{slope:?} {intercept:?}");
        // All said one half, three of four happened: ln 3 is missing, and nothing is known of the slope.
        let [slope, intercept] = slope_and_intercept(&of(0.0, 3));
        assert!(slope.is_none() && close(intercept, 3f64.ln()), "{slope:?} {intercept:?}");
    }

    #[test]
    fn undefined_without_a_class_or_overlap() {
        assert_eq!(slope_and_intercept(&[]), [None, None]);
        assert_eq!(slope_and_intercept(&[(1.0, true, 0), (2.0, true, 1)]), [None, None]);
        let divided = [(1.0, true, 0), (0.0, true, 1), (0.0, false, 2), (-1.0, false, 3)];
        let [slope, intercept] = slope_and_intercept(&divided);
        assert!(slope.is_none() && intercept.is_some(), "{slope:?}");
        let [slope, _] = slope_and_intercept(&[(1.0, true, 0), (0.0, false, 2), (-1.0, true, 3)]);
        assert!(slope.is_some());
    }

    #[test]
    fn intervals_hold_what_outcomes_were_drawn_by() {
        let examples = drawn(4000, 0.4, 0.7);
        let Scores(scores) = calibration(&examples).scores;
        let slope = scores[0].1;
        let [low, high] = slope.interval.unwrap();
        assert!(low < 0.7 && 0.7 < high && high - low < 0.2, "{slope:?}");
        let intercept = scores[1].1;
        let [low, high] = intercept.interval.unwrap();
        assert!(low < intercept.value.unwrap() && intercept.value.unwrap() < high && low > 0.3);
    }

    #[test]
    fn bins_are_of_about_as_many_and_keep_ties_together() {
        let bins = calibration(&drawn(1000, 0.0, 1.0)).bins;
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [100; 10]);
        assert!(bins.windows(2).all(|pair| pair[0].high < pair[1].low));
        let tied: Vec<Example> = (0..100).map(|n| (f32::from(n > 70), n % 3 == 0, n)).collect();
        let bins = calibration(&tied).bins;
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [71, 29]);
        assert_eq!(calibration(&[]).bins, []);
    }

    #[test]
    fn a_bin_without_a_positive_is_not_sure_of_it() {
        // statsmodels: proportion_confint(0, 10, method="wilson") and (3, 10).
        for (share, expected) in [(0.0, [0.0, 0.277_533]), (0.3, [0.107_789, 0.603_222])] {
            let got = wilson(share, 10.0);
            assert!(got.iter().zip(expected).all(|(got, of)| (got - of).abs() < 1e-5), "{got:?}");
        }
        let one_subject: Vec<Example> = (0..50).map(|_| (0.0, false, 7)).collect();
        assert!(calibration(&one_subject).bins[0].happened_interval[1] > 0.7, "of one subject");
    }

    #[test]
    fn threads_and_order_change_nothing() {
        let mut examples = drawn(300, 0.1, 1.3);
        let expected = calibration(&examples);
        examples.reverse();
        for threads in [1, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| calibration(&examples)), expected, "{threads} threads");
        }
    }

    proptest! {
        #[test]
        fn a_fit_is_where_the_slopes_of_the_likelihood_are_zero(
            examples in prop::collection::vec((-6i8..7, any::<bool>(), 0u32..6), 1..50),
            times in prop::collection::vec(0u32..4, 6),
        ) {
            let examples: Vec<Example> =
                examples.iter().map(|&(z, y, who)| (f32::from(z) / 2.0, y, who)).collect();
            let sorted = sorted(&examples);
            // By definition: every example as often as its subject was drawn.
            let excess = |[intercept, slope]: [f64; 2], power: i32| -> f64 {
                let of = |&(z, y, who): &Example| {
                    let chance = 1.0 / (1.0 + (-intercept - slope * f64::from(z)).exp());
                    f64::from(times[who as usize]) * (chance - f64::from(y)) * f64::from(z).powi(power)
                };
                examples.iter().map(of).sum()
            };
            if let Some(both) = sorted.fit(Fitted::Both, &times, [0.0, 0.0]) {
                prop_assert!(excess(both, 0).abs() < 1e-6 && excess(both, 1).abs() < 1e-6, "{both:?}");
            }
            let classes: Vec<bool> =
                examples.iter().filter(|of| times[of.2 as usize] > 0).map(|of| of.1).collect();
            let large = sorted.fit(Fitted::Intercept, &times, [0.0, 1.0]);
            prop_assert_eq!(large.is_some(), classes.contains(&true) && classes.contains(&false));
            if let Some(large) = large {
                prop_assert!(excess(large, 0).abs() < 1e-6 && large[1] == 1.0, "{large:?}");
            }
        }
    }
}
