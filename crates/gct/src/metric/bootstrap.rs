//! Subjects drawn with replacement, and the percentiles of what they give.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

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
    /// What each replicate gives for each statistic; none with fewer than two subjects.
    ///
    /// `subjects` are those that have examples, ascending. `statistics` is told how often each was drawn, in
    /// several replicates at a time.
    pub(super) fn replicates<const N: usize, const R: usize>(
        &self,
        subjects: &[u32],
        statistics: impl Fn(&[[u32; R]]) -> [[Option<f64>; N]; R] + Sync,
    ) -> [Vec<Option<f64>>; N] {
        if subjects.len() < 2 {
            return std::array::from_fn(|_| Vec::new());
        }
        let draw = |first: u32| {
            let mut times = vec![[0; R]; once_each(subjects).len()];
            for (index, number) in (first..).take(R).enumerate() {
                self.draw(number, subjects, |subject| times[subject][index] += 1);
            }
            times
        };
        let groups: Vec<[[Option<f64>; N]; R]> =
            (0..self.replicates).into_par_iter().step_by(R).map(|first| statistics(&draw(first))).collect();
        // The last group may have drawn more than there are.
        let replicates = &groups.as_flattened()[..self.replicates as usize];
        std::array::from_fn(|n| replicates.iter().map(|of| of[n]).collect())
    }

    /// Tells which subjects are drawn.
    fn draw(&self, replicate: u32, subjects: &[u32], mut drawn: impl FnMut(usize)) {
        let mixed = SplitMix64::seed_from_u64(self.seed).next_u64();
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(mixed ^ u64::from(replicate));
        for _ in subjects {
            drawn(subjects[rng.random_range(0..subjects.len())] as usize);
        }
    }
}

/// The middle 95 % of the replicates that are defined, unless these are too few.
pub(super) fn interval(replicates: &[Option<f64>]) -> Option<[f64; 2]> {
    let mut defined: Vec<f64> = replicates.iter().flatten().copied().collect();
    if defined.is_empty() || 2 * defined.len() < replicates.len() {
        return None;
    }
    defined.sort_unstable_by(f64::total_cmp);
    Some(ENDS.map(|share| percentile(&defined, share)))
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
        let defined =
            |count: u32| interval(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|n| (n < count).then_some(n.into())));
        assert_eq!(defined(4), None);
        assert_eq!(defined(5), Some([0.1, 3.9]));
        assert_eq!(interval(&[]), None);
    }

    #[test]
    fn one_subject_has_no_interval() {
        let of = |subjects: &[u32]| {
            BOOTSTRAP.replicates::<1, 1>(subjects, |_| [[Some(1.0)]]).map(|of| interval(&of))
        };
        assert_eq!(of(&[]), [None]);
        assert_eq!(of(&[7]), [None]);
        assert_eq!(of(&[7, 9]), [Some([1.0, 1.0])]);
    }
}
