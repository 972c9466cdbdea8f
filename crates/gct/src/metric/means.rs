//! Means over examples. They are kept as sums per subject, so that a replicate need not look at the examples.

use super::Estimate;
use super::bootstrap::{Bootstrap, Draws, Replicated, once_each};

/// The mean of a number that each example has, such as being right (0 or 1) or a log loss.
#[derive(Debug, Clone, Default)]
pub struct Means(Sums<1>);

impl Means {
    /// Adds an example of a subject. Subjects are numbered without large gaps.
    ///
    /// # Panics
    /// If the value is not finite.
    pub fn add(&mut self, value: f64, subject: u32) {
        self.0.add([value], subject);
    }

    /// The mean over examples. Undefined without any.
    pub fn estimate(&self, bootstrap: &Bootstrap) -> Estimate {
        self.0.estimate(bootstrap, |[mean]| *mean)
    }

    /// The same in each replicate.
    pub fn replicated(&self, name: &'static str, draws: &Draws) -> Replicated {
        self.0.replicated(name, draws, |[mean]| *mean)
    }
}

/// Sums over the examples of each subject, by its number.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums<const N: usize>(Vec<Sum<N>>);

#[derive(Debug, Clone, Copy)]
struct Sum<const N: usize> {
    values: [f64; N],
    examples: u64,
}

impl<const N: usize> Sum<N> {
    const ZERO: Self = Sum { values: [0.0; N], examples: 0 };

    fn add(&mut self, other: &Self, times: u32) {
        for (value, other) in self.values.iter_mut().zip(&other.values) {
            *value += f64::from(times) * other;
        }
        self.examples += u64::from(times) * other.examples;
    }
}

impl<const N: usize> Sums<N> {
    pub(super) fn add(&mut self, values: [f64; N], subject: u32) {
        assert!(values.iter().all(|value| value.is_finite()), "a value must be finite");
        let subject = subject as usize;
        if subject >= self.0.len() {
            self.0.resize(subject + 1, Sum::ZERO);
        }
        self.0[subject].add(&Sum { values, examples: 1 }, 1);
    }

    /// A statistic of the means over examples.
    pub(super) fn estimate(
        &self,
        bootstrap: &Bootstrap,
        statistic: impl Fn(&[f64; N]) -> f64 + Sync,
    ) -> Estimate {
        let statistic = |times: &[u32]| self.means(times).map(|means| statistic(&means));
        let subjects = self.subjects();
        let [interval] = bootstrap.intervals(&subjects, |times| [statistic(times)]);
        Estimate { value: statistic(&once_each(&subjects)), interval }
    }

    /// The same in each replicate.
    pub(super) fn replicated(
        &self,
        name: &'static str,
        draws: &Draws,
        statistic: impl Fn(&[f64; N]) -> f64 + Sync,
    ) -> Replicated {
        let statistic = |times: &[u32]| self.means(times).map(|means| statistic(&means));
        Replicated {
            name,
            value: statistic(&draws.once()),
            replicates: draws.replicates(|times: &[[u32; 1]]| [statistic(times.as_flattened())]),
        }
    }

    /// Those that have examples.
    fn subjects(&self) -> Vec<u32> {
        (0..).zip(&self.0).filter(|(_, sum)| sum.examples > 0).map(|(subject, _)| subject).collect()
    }

    fn means(&self, times: &[u32]) -> Option<[f64; N]> {
        let mut total = Sum::ZERO;
        self.0.iter().zip(times).for_each(|(sum, &times)| total.add(sum, times));
        (total.examples > 0).then(|| total.values.map(|value| value / total.examples as f64))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn means(examples: &[(f64, u32)]) -> Means {
        let mut means = Means::default();
        examples.iter().for_each(|&(value, subject)| means.add(value, subject));
        means
    }

    fn estimate(examples: &[(f64, u32)]) -> Estimate {
        means(examples).estimate(&Bootstrap::default())
    }

    #[test]
    fn by_hand() {
        // Two subjects: a replicate is all of the one, all of the other, or (half of the time) both.
        let got = estimate(&[(1.0, 0), (3.0, 0), (8.0, 1)]);
        assert_eq!(got, Estimate { value: Some(4.0), interval: Some([2.0, 8.0]) });
    }

    #[test]
    fn undefined_without_examples_and_uncertain_with_one_subject() {
        assert_eq!(estimate(&[]), Estimate { value: None, interval: None });
        assert_eq!(estimate(&[(1.0, 4), (2.0, 4)]), Estimate { value: Some(1.5), interval: None });
    }

    #[test]
    fn a_gap_in_the_numbers_of_subjects_changes_nothing() {
        let dense: Vec<(f64, u32)> = (0..30).map(|subject| (f64::from(subject).sqrt(), subject)).collect();
        let spread: Vec<(f64, u32)> =
            dense.iter().map(|&(value, subject)| (value, 3 * subject + 1)).collect();
        assert_eq!(estimate(&dense), estimate(&spread));
    }

    #[test]
    #[should_panic(expected = "a value must be finite")]
    fn infinite_values_are_refused() {
        Means::default().add(f64::INFINITY, 0);
    }

    #[test]
    fn the_interval_is_as_wide_as_the_standard_error_says() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let examples: Vec<(f64, u32)> = (0..500).map(|subject| (rng.random::<f64>(), subject)).collect();
        let got = means(&examples).estimate(&Bootstrap { replicates: 4000, seed: 2 });
        let (mean, [low, high]) = (got.value.unwrap(), got.interval.unwrap());
        let variance = examples.iter().map(|(value, _)| (value - mean).powi(2)).sum::<f64>() / 500.0;
        let reach = 1.96 * (variance / 500.0).sqrt();
        // The percentiles of 4,000 replicates vary by 2 % of the reach.
        assert!((mean - low - reach).abs() < 0.08 * reach, "{low} {mean} {reach}");
        assert!((high - mean - reach).abs() < 0.08 * reach, "{mean} {high} {reach}");
    }

    #[test]
    fn the_interval_is_over_subjects_not_over_examples() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let values: Vec<(f64, u32)> = (0..100).map(|subject| (rng.random::<f64>(), subject)).collect();
        let repeated: Vec<(f64, u32)> = values.iter().flat_map(|&value| [value; 4]).collect();
        assert_eq!(estimate(&values).interval, estimate(&repeated).interval);
    }

    proptest! {
        #[test]
        fn agrees_with_drawing_examples(
            examples in prop::collection::vec((-9i32..9, 0u32..5), 1..40),
            times in prop::collection::vec(0u32..4, 5),
        ) {
            // Whole numbers, so that both ways of adding are exact.
            let examples: Vec<(f64, u32)> = examples.iter().map(|&(v, s)| (f64::from(v), s)).collect();
            let drawn: Vec<f64> = examples
                .iter()
                .flat_map(|&(value, subject)| vec![value; times[subject as usize] as usize])
                .collect();
            let expected = (!drawn.is_empty()).then(|| drawn.iter().sum::<f64>() / drawn.len() as f64);
            prop_assert_eq!(means(&examples).0.means(&times).map(|[mean]| mean), expected);
        }
    }
}
