//! Which point of a space to try next: Bayesian optimisation with a Gaussian process. It has never heard of
//! medicine.
//!
//! The paper tuned every model with "Bayesian optimization using Gaussian Process" (its appendix): a Gaussian
//! process is fitted to what the trials so far were worth, and the point with the greatest expected
//! improvement comes next. The first few points come from a Latin hypercube, because a model of nothing knows
//! nothing.
//!
//! [`suggest`] is a pure function of the space, the strategy, the seed and the trials so far. A tuning that
//! was killed goes on with what it would have tried; nothing but the trials has to be kept.

#![cfg_attr(test, allow(clippy::unwrap_used))] // A test that cannot go on has failed.

pub mod error;
mod expected;
#[cfg(test)]
mod landscapes;
mod space;
mod stop;
mod surrogate;

use rand::seq::SliceRandom;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use serde::{Deserialize, Serialize};

pub use error::{Error, Result};
pub use space::{Dimension, Scale, Space};
pub use stop::{OTHERS_NEEDED, is_hopeless};

/// What was tried, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Observation {
    /// A value for each dimension of the space.
    pub point: Vec<f64>,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It still runs. The next point keeps away from it.
    Pending,
    /// How good it was; higher is better. A trial that was given up has the value that it had then. One that
    /// is infinite or not a number has failed.
    Value(f64),
    /// It has no value, for example because training diverged. It counts as much as the worst that has one.
    Failed,
}

impl Outcome {
    /// What came of a trial that measured this.
    pub fn of(value: f64) -> Self {
        if value.is_finite() { Outcome::Value(value) } else { Outcome::Failed }
    }

    fn value(self) -> Option<f64> {
        match self {
            Outcome::Value(value) if value.is_finite() => Some(value),
            _ => None,
        }
    }
}

/// Index in `history` of the best trial, the first of several; none if none has a value.
pub fn best(history: &[Observation]) -> Option<usize> {
    let values = history.iter().enumerate().filter_map(|(at, trial)| Some((at, trial.outcome.value()?)));
    values.reduce(|best, other| if other.1 > best.1 { other } else { best }).map(|(at, _)| at)
}

/// How the next point is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// By a Gaussian process, as in the paper.
    #[default]
    Bayesian,
    /// Evenly at random, whatever came of the others.
    Random,
}

/// The next point to try.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// A value for each dimension of the space, within its bounds.
    pub point: Vec<f64>,
    /// Where it comes from.
    pub how: How,
}

/// Where a point comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// It is one of the first, which are spread over the space.
    Design,
    /// The Gaussian process expects the most of it.
    Model,
    /// It was drawn at random: as the strategy says, or because there is nothing to fit a model to, such as
    /// when all trials were worth the same.
    Random,
}

/// How many points are spread over the space before the model is asked: two for each dimension, and two more.
pub fn design_size(space: &Space) -> usize {
    2 * space.dimensions().len() + 2
}

/// The next point to try, after `history`: all trials so far in the order in which they were begun, those
/// that still run among them. Trials that were not suggested, such as the paper's settings, may be among them
/// and replace a point of the design.
///
/// The result does not depend on the number of threads. It may differ between kinds of processors, whose last
/// digits differ.
///
/// # Errors
/// If a trial is not a point of the space.
pub fn suggest(space: &Space, strategy: Strategy, seed: u64, history: &[Observation]) -> Result<Suggestion> {
    let positions = history.iter().map(|trial| space.to_unit(&trial.point)).collect::<Result<Vec<_>>>()?;
    let dimensions = space.dimensions().len();
    let number = history.len();
    let random = || {
        let mut rng = draws(seed, Purpose::Random, number);
        (uniform(&mut rng, dimensions), How::Random)
    };
    let (position, how) = match strategy {
        Strategy::Random => random(),
        Strategy::Bayesian if number < design_size(space) => {
            let mut design = latin_hypercube(seed, dimensions, design_size(space));
            (design.swap_remove(number), How::Design)
        }
        Strategy::Bayesian => {
            let mut rng = draws(seed, Purpose::Search, number);
            let outcomes = history.iter().map(|trial| trial.outcome);
            let told = Told::new(positions.into_iter().zip(outcomes));
            match surrogate::most_promising(&told, &mut rng) {
                Some(position) => (position, How::Model),
                None => random(),
            }
        }
    };
    Ok(Suggestion { point: space.point(&position), how })
}

/// What the model learns from, in the unit cube.
struct Told {
    /// Where the ended trials were, and how good they were on a scale of about one; none twice.
    ended: Vec<(Vec<f64>, f64)>,
    /// Where trials still run.
    pending: Vec<Vec<f64>>,
}

impl Told {
    fn new(trials: impl Iterator<Item = (Vec<f64>, Outcome)>) -> Self {
        let (running, over): (Vec<_>, Vec<_>) = trials.partition(|(_, outcome)| *outcome == Outcome::Pending);
        let values: Vec<Option<f64>> = over.iter().map(|(_, outcome)| outcome.value()).collect();
        // The same point twice would make the model's matrix singular; its mean says the same.
        let mut ended: Vec<(Vec<f64>, f64)> = vec![];
        let mut times: Vec<f64> = vec![];
        for ((position, _), score) in over.into_iter().zip(scores(&values)) {
            match ended.iter().position(|(before, _)| *before == position) {
                Some(at) => {
                    times[at] += 1.0;
                    ended[at].1 += (score - ended[at].1) / times[at];
                }
                None => {
                    ended.push((position, score));
                    times.push(1.0);
                }
            }
        }
        let mut pending: Vec<Vec<f64>> = vec![];
        for (position, _) in running {
            if !pending.contains(&position) && ended.iter().all(|(other, _)| *other != position) {
                pending.push(position);
            }
        }
        Told { ended, pending }
    }
}

/// Values on a scale that a Gaussian process can follow: about -1 to 1, failures as the worst. Nothing if all
/// have failed.
///
/// The better half keeps its distances, in units of its spread. The worse half keeps its order alone, because
/// how bad the bad ones are, perhaps by orders of magnitude after a divergence, must not drown what matters
/// among the good ones (the half-rank warping of Google's Vizier, Song et al. 2024, arXiv:2408.11527).
fn scores(values: &[Option<f64>]) -> Vec<f64> {
    let mut sorted: Vec<f64> = values.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let (Some(worst), Some(best)) = (sorted.first().copied(), sorted.last().copied()) else { return vec![] };
    let median = sorted[sorted.len() / 2];
    // Halves, because the difference of two finite numbers can be infinite.
    let spread = best / 2.0 - median / 2.0;
    let half = sorted.iter().filter(|value| **value < median).count().max(1) as f64;
    let score = |value: f64| {
        if value >= median {
            return if spread > 0.0 { (value / 2.0 - median / 2.0) / spread } else { 0.0 };
        }
        // Ties share the mean of their ranks.
        let below = sorted.partition_point(|other| *other < value);
        let tied = sorted.partition_point(|other| *other <= value) - below;
        (below as f64 + (tied as f64 - 1.0) / 2.0 - half) / half
    };
    values.iter().map(|value| score(value.unwrap_or(worst))).collect()
}

/// What random numbers are drawn for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Design,
    Random,
    Search,
}

/// Random numbers that are a function of the seed, the purpose and the number of the trial.
fn draws(seed: u64, purpose: Purpose, number: usize) -> Xoshiro256PlusPlus {
    let mixed = SplitMix64::seed_from_u64(seed).next_u64();
    Xoshiro256PlusPlus::seed_from_u64(mixed ^ ((purpose as u64) << 48) ^ number as u64)
}

fn uniform(rng: &mut impl Rng, dimensions: usize) -> Vec<f64> {
    (0..dimensions).map(|_| rng.random()).collect()
}

/// Points of the unit cube of which each dimension, cut into as many slices as there are points, has one in
/// each slice. Of many such designs, the one whose nearest two points are farthest from each other.
fn latin_hypercube(seed: u64, dimensions: usize, points: usize) -> Vec<Vec<f64>> {
    const DESIGNS: usize = 100;
    let mut rng = draws(seed, Purpose::Design, 0);
    let mut draw = || {
        let mut design = vec![vec![0.0; dimensions]; points];
        for dimension in 0..dimensions {
            let mut slices: Vec<usize> = (0..points).collect();
            slices.shuffle(&mut rng);
            for (point, slice) in design.iter_mut().zip(slices) {
                point[dimension] = (slice as f64 + rng.random::<f64>()) / points as f64;
            }
        }
        design
    };
    let nearest = |design: &[Vec<f64>]| {
        let pairs = design.iter().enumerate().flat_map(|(i, a)| design[..i].iter().map(move |b| (a, b)));
        pairs.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()).fold(f64::INFINITY, f64::min)
    };
    let mut best = draw();
    for _ in 1..DESIGNS {
        let other = draw();
        if nearest(&other) > nearest(&best) {
            best = other;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, ProptestConfig, any, prop_assert, prop_oneof, proptest};
    use proptest::strategy::Strategy as _;

    use super::landscapes::{LANDSCAPES, Landscape, NOISE, normal, space};
    use super::*;

    fn inside(space: &Space, point: &[f64]) -> bool {
        space.dimensions().iter().zip(point).all(|(d, x)| (d.low..=d.high).contains(x))
            && point.len() == space.dimensions().len()
    }

    fn tuned(landscape: &Landscape, strategy: Strategy, seed: u64, trials: usize) -> Vec<Observation> {
        let mut noise = Xoshiro256PlusPlus::seed_from_u64(1000 + seed);
        let mut history = vec![];
        for _ in 0..trials {
            let point = suggest(&space(), strategy, seed, &history).unwrap().point;
            let truth = (landscape.truth)(&point).unwrap_or(f64::NAN);
            history.push(Observation { outcome: Outcome::of(truth + NOISE * normal(&mut noise)), point });
        }
        history
    }

    /// The documented case: on a landscape shaped like those of hyperparameters, with noise, what the
    /// Gaussian process finds in 25 trials is less than half as far from the best there is as what random
    /// search finds, in the median over seeds. The example `compare` has more.
    #[test]
    fn it_beats_random_search() {
        let landscape = &LANDSCAPES[0];
        let loss = |strategy| {
            let end = |seed| {
                let history = tuned(landscape, strategy, seed, 25);
                let best = &history[best(&history).unwrap()];
                landscape.best - (landscape.truth)(&best.point).unwrap()
            };
            let mut losses: Vec<f64> = (0..11).map(end).collect();
            losses.sort_by(f64::total_cmp);
            losses[5]
        };
        let (bayesian, random) = (loss(Strategy::Bayesian), loss(Strategy::Random));
        assert!(bayesian < random / 2.0, "{}: {bayesian} {random}", landscape.name);
    }

    #[test]
    fn a_tuning_goes_on_as_it_would_have_with_any_number_of_threads() {
        let history = tuned(&LANDSCAPES[1], Strategy::Bayesian, 4, 14);
        for number in 0..history.len() {
            let ask = || suggest(&space(), Strategy::Bayesian, 4, &history[..number]).unwrap();
            assert_eq!(ask().point, history[number].point, "{number}");
            let how = if number < design_size(&space()) { How::Design } else { How::Model };
            assert_eq!(ask().how, how, "{number}");
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert_eq!(pool.install(ask).point, history[number].point, "{number} {threads}");
            }
        }
        let other = suggest(&space(), Strategy::Bayesian, 5, &history).unwrap();
        assert_ne!(other, suggest(&space(), Strategy::Bayesian, 4, &history).unwrap());
    }

    #[test]
    fn the_design_has_one_point_in_each_slice_of_each_dimension() {
        let (space, mut history) = (space(), vec![]);
        for _ in 0..design_size(&space) {
            let point = suggest(&space, Strategy::Bayesian, 7, &history).unwrap().point;
            history.push(Observation { point, outcome: Outcome::Pending });
        }
        let logs = |at: usize| history.iter().map(move |trial: &Observation| trial.point[at].log10());
        let rates: Vec<f64> = logs(0).map(|log| (log + 4.0) / 3.0).collect();
        let lambdas: Vec<f64> = logs(3).map(|log| (log + 2.0) / 4.0).collect();
        let dropouts: Vec<f64> = history.iter().map(|trial| trial.point[1] / 0.9).collect();
        for mut column in [rates, lambdas, dropouts] {
            column.sort_by(f64::total_cmp);
            for (slice, position) in column.into_iter().enumerate() {
                // Rounding may move a point over the edge of its slice.
                let slice = slice as f64 / 10.0;
                assert!((slice - 0.001..slice + 0.101).contains(&position), "{slice} {position}");
            }
        }
    }

    #[test]
    fn random_search_is_even_on_the_scale_and_blind() {
        let trial = |outcome| Observation { point: vec![1e-3, 0.1, 0.1, 1.0], outcome };
        let rates: Vec<f64> = (0..400)
            .map(|number| {
                let history = vec![trial(Outcome::Value(0.5)); number];
                let next = suggest(&space(), Strategy::Random, 1, &history).unwrap();
                let blind =
                    suggest(&space(), Strategy::Random, 1, &vec![trial(Outcome::Failed); number]).unwrap();
                assert_eq!((next.how, &next), (How::Random, &blind));
                next.point[0]
            })
            .collect();
        let decade = |low: f64| rates.iter().filter(|rate| (low..10.0 * low).contains(*rate)).count();
        for low in [1e-4, 1e-3, 1e-2] {
            // 133 expected, with a standard deviation of 9.4.
            assert!((100..167).contains(&decade(low)), "{low}: {}", decade(low));
        }
    }

    #[test]
    fn it_falls_back_to_a_random_point_and_says_so() {
        let (space, points) = (space(), tuned(&LANDSCAPES[0], Strategy::Random, 1, 12));
        let how = |outcome: fn(usize) -> Outcome| {
            let trials = points.iter().enumerate();
            let history: Vec<Observation> = trials
                .map(|(at, trial)| Observation { point: trial.point.clone(), outcome: outcome(at) })
                .collect();
            let next = suggest(&space, Strategy::Bayesian, 1, &history).unwrap();
            assert!(inside(&space, &next.point));
            next.how
        };
        assert_eq!(how(|_| Outcome::Value(0.5)), How::Random);
        assert_eq!(how(|_| Outcome::Failed), How::Random);
        assert_eq!(how(|_| Outcome::Value(f64::NAN)), How::Random);
        assert_eq!(how(|_| Outcome::Pending), How::Random);
        assert_eq!(how(|at| if at < 2 { Outcome::Value(at as f64) } else { Outcome::Pending }), How::Random);
        assert_eq!(how(|at| if at < 3 { Outcome::Value(at as f64) } else { Outcome::Pending }), How::Model);
        assert_eq!(how(|at| if at == 3 { Outcome::Value(0.5) } else { Outcome::Failed }), How::Random);
        assert_eq!(how(|at| if at < 2 { Outcome::Value(at as f64) } else { Outcome::Failed }), How::Model);
        let same = vec![Observation { point: vec![1e-3, 0.1, 0.1, 1.0], outcome: Outcome::Value(0.1) }; 20];
        assert_eq!(suggest(&space, Strategy::Bayesian, 1, &same).unwrap().how, How::Random);
    }

    #[test]
    fn the_better_half_keeps_its_distances_and_the_worse_its_order() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        let (got, expected) = (scores(&some(&[0.5, -1e300, 0.7, 0.4, 0.55])), [0.0, -1.0, 1.0, -0.5, 0.25]);
        assert!(got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-12), "{got:?}");
        let mut failed = some(&[0.5, 0.1, 0.7, 0.4, 0.6]);
        failed.push(None);
        assert_eq!(scores(&failed)[5], scores(&failed)[1]);
        assert!(
            scores(&some(&[-1e308, 1e308, 0.0, f64::MAX, f64::MIN])).iter().all(|score| score.abs() <= 1.0)
        );
        assert_eq!(scores(&some(&[0.3; 4])), [0.0; 4]);
        assert_eq!(scores(&[None, None]), [0.0; 0]);
    }

    #[test]
    fn the_first_of_the_best() {
        let trial = |outcome| Observation { point: vec![], outcome };
        let values = [Outcome::Failed, Outcome::Value(0.1), Outcome::Value(0.3), Outcome::Value(0.3)];
        let mut history: Vec<Observation> = values.map(trial).into();
        history.extend([Outcome::Pending, Outcome::Value(f64::INFINITY)].map(trial));
        assert_eq!(best(&history), Some(2));
        assert_eq!(best(&history[..1]), None);
    }

    #[test]
    fn a_trial_is_what_was_written() {
        for outcome in [Outcome::Pending, Outcome::of(0.25), Outcome::of(f64::NAN)] {
            let trial = Observation { point: vec![0.001, 0.5], outcome };
            let text = serde_json::to_string(&trial).unwrap();
            assert_eq!(serde_json::from_str::<Observation>(&text).unwrap(), trial, "{text}");
        }
    }

    #[test]
    fn two_hundred_trials() {
        let mut history = tuned(&LANDSCAPES[0], Strategy::Random, 1, 200);
        history[7].outcome = Outcome::Pending;
        assert_eq!(suggest(&space(), Strategy::Bayesian, 1, &history).unwrap().how, How::Model);
    }

    fn any_outcome() -> impl proptest::strategy::Strategy<Value = Outcome> {
        prop_oneof![
            Just(Outcome::Pending),
            Just(Outcome::Failed),
            Just(Outcome::Value(0.5)),
            (-1.0..1.0f64).prop_map(Outcome::Value),
            any::<f64>().prop_map(Outcome::Value),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Points on a coarse grid, so that many are the same or in line, with values of any size.
        #[test]
        fn whatever_comes_of_trials_there_is_a_next_point(
            trials in proptest::collection::vec((proptest::collection::vec(0..4u8, 3), any_outcome()), 1..30),
            seed in any::<u64>(),
        ) {
            let dimension = |name: &str| {
                Dimension { name: name.into(), low: 0.0, high: 3.0, scale: Scale::Linear }
            };
            let space = Space::new(["a", "b", "c"].map(dimension).into()).unwrap();
            let trial = |(point, outcome): (Vec<u8>, Outcome)| {
                Observation { point: point.into_iter().map(f64::from).collect(), outcome }
            };
            let history: Vec<Observation> = trials.into_iter().map(trial).collect();
            let next = suggest(&space, super::Strategy::Bayesian, seed, &history).unwrap();
            prop_assert!(inside(&space, &next.point), "{next:?}");
            if next.how == How::Model {
                prop_assert!(history.iter().all(|trial| trial.point != next.point), "{next:?}");
            }
        }
    }
}
