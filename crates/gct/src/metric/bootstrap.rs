//! Subjects drawn with replacement, and the percentiles of what they give.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Estimate;

/// The ends of a 95 % interval.
const ENDS: [f64; 2] = [0.025, 0.975];

/// How often subjects are drawn anew, and by which seed.
///
/// Examples of one subject are alike, so whole subjects are drawn: as many as there are, with replacement,
/// each bringing all of its examples. The interval holds the middle 95 % of what the replicates give. It is
/// `None` with fewer than two subjects, or when fewer than half of the replicates are defined.
///
/// The draws of a replicate depend on the seed, its number and the number of subjects that have examples:
/// threads change nothing, and estimates of the same subjects are drawn alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bootstrap {
    /// How often. With 0 there are values only, no intervals.
    pub replicates: u32,
    /// Another seed gives other draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    fn default() -> Self {
        Bootstrap { replicates: 200, seed: 0 }
    }
}

impl Bootstrap {
    /// The interval of each statistic.
    ///
    /// `subjects` are those that have examples, ascending. `statistics` is told how often each was drawn.
    pub(super) fn intervals<const N: usize>(
        &self,
        subjects: &[u32],
        statistics: impl Fn(&[u32]) -> [Option<f64>; N] + Sync,
    ) -> [Option<[f64; 2]>; N] {
        self.intervals_together(subjects, |times| [statistics(times.as_flattened())])
    }

    /// The same for statistics that are computed of several replicates at a time.
    pub(super) fn intervals_together<const N: usize, const R: usize>(
        &self,
        subjects: &[u32],
        statistics: impl Fn(&[[u32; R]]) -> [[Option<f64>; N]; R] + Sync,
    ) -> [Option<[f64; 2]>; N] {
        let replicates = self.replicates(subjects, statistics);
        std::array::from_fn(|n| self.interval(replicates.iter().filter_map(|of| of[n]).collect()))
    }

    /// What is computed of each replicate, several at a time. None are drawn of fewer than two subjects.
    fn replicates<T: Send, const R: usize>(
        &self,
        subjects: &[u32],
        compute: impl Fn(&[[u32; R]]) -> [T; R] + Sync,
    ) -> Vec<T> {
        if subjects.len() < 2 {
            return Vec::new();
        }
        let draw = |first: u32| {
            let mut times = vec![[0; R]; once_each(subjects).len()];
            for (index, number) in (first..).take(R).enumerate() {
                self.draw(number, subjects, |subject| times[subject][index] += 1);
            }
            times
        };
        let groups: Vec<[T; R]> =
            (0..self.replicates).into_par_iter().step_by(R).map(|first| compute(&draw(first))).collect();
        // The last group may have drawn more than there are.
        groups.into_iter().flatten().take(self.replicates as usize).collect()
    }

    /// Tells which subjects are drawn.
    fn draw(&self, replicate: u32, subjects: &[u32], mut drawn: impl FnMut(usize)) {
        let mixed = SplitMix64::seed_from_u64(self.seed).next_u64();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(mixed ^ u64::from(replicate));
        for _ in subjects {
            drawn(subjects[rng.random_range(0..subjects.len())] as usize);
        }
    }

    fn interval(&self, mut defined: Vec<f64>) -> Option<[f64; 2]> {
        if defined.is_empty() || 2 * defined.len() < self.replicates as usize {
            return None;
        }
        defined.sort_unstable_by(f64::total_cmp);
        Some(ENDS.map(|share| percentile(&defined, share)))
    }
}

/// A bootstrap over given subjects, for what is computed of several sets of their examples with the same
/// draws.
#[derive(Debug, Clone)]
pub struct Draws {
    bootstrap: Bootstrap,
    /// Ascending.
    subjects: Vec<u32>,
}

impl Draws {
    /// Draws these subjects, as many as there are in each replicate.
    pub fn new(bootstrap: Bootstrap, mut subjects: Vec<u32>) -> Self {
        subjects.sort_unstable();
        subjects.dedup();
        Draws { bootstrap, subjects }
    }

    /// The subjects, ascending.
    pub fn subjects(&self) -> &[u32] {
        &self.subjects
    }

    /// Every subject drawn once.
    pub(super) fn once(&self) -> Vec<u32> {
        once_each(&self.subjects)
    }

    /// What is computed of each replicate, told how often each subject was drawn, several replicates at a
    /// time.
    pub(super) fn replicates<T: Send, const R: usize>(
        &self,
        compute: impl Fn(&[[u32; R]]) -> [T; R] + Sync,
    ) -> Vec<T> {
        self.bootstrap.replicates(&self.subjects, compute)
    }

    /// The interval of what replicates gave.
    pub(super) fn interval(&self, replicates: impl Iterator<Item = Option<f64>>) -> Option<[f64; 2]> {
        self.bootstrap.interval(replicates.flatten().collect())
    }
}

/// A metric on all examples and in every replicate of some [`Draws`].
#[derive(Debug, Clone, PartialEq)]
pub struct Replicated {
    /// What it is called.
    pub name: &'static str,
    /// On all examples.
    pub value: Option<f64>,
    /// In each replicate; none where nothing was drawn.
    pub replicates: Vec<Option<f64>>,
}

impl Replicated {
    /// The value with its interval.
    pub fn estimate(&self, draws: &Draws) -> Estimate {
        Estimate { value: self.value, interval: draws.interval(self.replicates.iter().copied()) }
    }

    /// How much larger it is than the same metric of other examples, by the same draws.
    pub fn minus(&self, other: &Replicated, draws: &Draws) -> Estimate {
        let difference = |(one, other): (Option<f64>, Option<f64>)| Some(one? - other?);
        let replicates = self.replicates.iter().copied().zip(other.replicates.iter().copied());
        Estimate {
            value: difference((self.value, other.value)),
            interval: draws.interval(replicates.map(difference)),
        }
    }
}

/// Every subject drawn once: no resampling at all.
pub(super) fn once_each(subjects: &[u32]) -> Vec<u32> {
    vec![1; subjects.last().map_or(0, |&last| last as usize + 1)]
}

/// Linear between the two nearest, as NumPy does it.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let position = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[position.floor() as usize], sorted[position.ceil() as usize]);
    below + (above - below) * position.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOOTSTRAP: Bootstrap = Bootstrap { replicates: 1000, seed: 3 };

    fn draws(bootstrap: Bootstrap, replicate: u32, subjects: &[u32]) -> Vec<u32> {
        let mut times = vec![0; once_each(subjects).len()];
        bootstrap.draw(replicate, subjects, |subject| times[subject] += 1);
        times
    }

    #[test]
    fn percentiles_are_those_of_numpy() {
        // np.percentile([1, 2, 4, 8], [0, 2.5, 50, 97.5, 100])
        let got = [0.0, 0.025, 0.5, 0.975, 1.0].map(|share| percentile(&[1.0, 2.0, 4.0, 8.0], share));
        for (got, expected) in got.into_iter().zip([1.0, 1.075, 3.0, 7.7, 8.0]) {
            assert!((got - expected).abs() < 1e-12, "{got} {expected}");
        }
    }

    #[test]
    fn a_replicate_draws_as_many_subjects_as_there_are_and_no_others() {
        for replicate in 0..100 {
            let times = draws(BOOTSTRAP, replicate, &[1, 2, 5]);
            assert_eq!(times.len(), 6);
            assert_eq!(times.iter().sum::<u32>(), 3);
            assert_eq!([times[0], times[3], times[4]], [0; 3]);
        }
    }

    #[test]
    fn draws_are_uniform() {
        let mut total = [0; 4];
        for replicate in 0..10_000 {
            let times = draws(BOOTSTRAP, replicate, &[0, 1, 2, 3]);
            total.iter_mut().zip(times).for_each(|(total, times)| *total += times);
        }
        // 40,000 draws, each subject with chance 1/4: five standard deviations are 433.
        assert!(total.iter().all(|&times| times.abs_diff(10_000) < 433), "{total:?}");
    }

    #[test]
    fn seed_and_number_make_the_draws() {
        let subjects: Vec<u32> = (0..50).collect();
        let first = draws(BOOTSTRAP, 0, &subjects);
        assert_eq!(first, draws(BOOTSTRAP, 0, &subjects));
        assert_ne!(first, draws(BOOTSTRAP, 1, &subjects));
        assert_ne!(first, draws(Bootstrap { seed: 4, ..BOOTSTRAP }, 0, &subjects));
    }

    #[test]
    fn undefined_replicates_are_left_out_until_they_are_too_many() {
        let defined = |count: u32| (0..count).map(f64::from).collect();
        let bootstrap = Bootstrap { replicates: 10, seed: 0 };
        assert_eq!(bootstrap.interval(defined(4)), None);
        assert_eq!(bootstrap.interval(defined(5)), Some([0.1, 3.9]));
        assert_eq!(Bootstrap { replicates: 0, seed: 0 }.interval(vec![]), None);
    }

    #[test]
    fn one_subject_has_no_interval() {
        assert_eq!(BOOTSTRAP.intervals(&[], |_| [Some(1.0)]), [None]);
        assert_eq!(BOOTSTRAP.intervals(&[7], |_| [Some(1.0)]), [None]);
        assert_eq!(BOOTSTRAP.intervals(&[7, 9], |_| [Some(1.0)]), [Some([1.0, 1.0])]);
    }
}
