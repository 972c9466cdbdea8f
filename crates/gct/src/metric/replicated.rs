//! A metric and what other subjects would have made of it: to be compared with that of another model.

use super::Estimate;
use super::bootstrap::interval;

/// A metric on all examples and in each replicate of a [`Bootstrap`](super::Bootstrap).
///
/// The same bootstrap draws the same subjects for all metrics whose examples are of the same subjects. So the
/// replicates of two models on the same examples are pairs, and their difference is what differs between the
/// models, without what differs between subjects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replicated {
    /// On all examples. `None` where it is undefined.
    pub value: Option<f64>,
    /// In each replicate, in order; empty with fewer than two subjects.
    pub replicates: Vec<Option<f64>>,
}

impl Replicated {
    /// The value with its interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.value, interval: interval(&self.replicates) }
    }

    /// By how much it is more than another one, replicate by replicate.
    ///
    /// # Panics
    /// If they do not have as many replicates.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        assert_eq!(self.replicates.len(), other.replicates.len(), "replicates must be pairs");
        let minus = |(a, b): (Option<f64>, Option<f64>)| Some(a? - b?);
        let pairs = self.replicates.iter().copied().zip(other.replicates.iter().copied());
        Replicated { value: minus((self.value, other.value)), replicates: pairs.map(minus).collect() }
    }

    /// The two-sided p value of no difference from 0: twice the smaller of the shares of replicates that are
    /// at most 0 and at least 0, with one replicate more on either side, so that it is never 0; at most 1.
    /// Below 0.05 is where the 95 % interval leaves 0 out, but for that one replicate. `None` where the
    /// interval is undefined.
    pub fn p(&self) -> Option<f64> {
        interval(&self.replicates)?;
        let defined = || self.replicates.iter().flatten();
        let least = |count: usize| (count + 1) as f64 / (defined().count() + 1) as f64;
        let [below, above] =
            [defined().filter(|of| **of <= 0.0).count(), defined().filter(|of| **of >= 0.0).count()];
        Some((2.0 * least(below.min(above))).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metric::{Bootstrap, Means, Scored, SubjectRanking};

    fn replicated(replicates: &[f64]) -> Replicated {
        Replicated { value: None, replicates: replicates.iter().copied().map(Some).collect() }
    }

    #[test]
    fn p_by_hand() {
        // 19 replicates: one more on either side makes 20.
        let mostly = |below: usize| {
            let sides: Vec<f64> = (0..19).map(|n| if n < below { -1.0 } else { 1.0 }).collect();
            replicated(&sides).p().unwrap()
        };
        assert!((mostly(0) - 0.1).abs() < 1e-12, "never 0");
        assert!((mostly(1) - 0.2).abs() < 1e-12);
        assert!((mostly(17) - 0.3).abs() < 1e-12, "either side");
        assert_eq!(mostly(10), 1.0);
        assert_eq!(replicated(&[0.0; 9]).p(), Some(1.0), "the same model twice");
        assert_eq!(replicated(&[]).p(), None);
    }

    #[test]
    fn what_is_undefined_in_one_is_undefined_in_the_difference() {
        let a = Replicated { value: Some(3.0), replicates: vec![Some(1.0), None, Some(5.0)] };
        let b = Replicated { value: Some(1.0), replicates: vec![Some(2.0), Some(2.0), Some(2.0)] };
        let expected = Replicated { value: Some(2.0), replicates: vec![Some(-1.0), None, Some(3.0)] };
        assert_eq!(a.minus(&b), expected);
        assert_eq!(a.minus(&Replicated { value: None, ..b }).value, None);
    }

    /// A ranking and a mean of the scores of one model.
    fn measured(examples: &[(f32, bool, u32)], bootstrap: &Bootstrap) -> [Replicated; 2] {
        let (mut ranking, mut means) = (SubjectRanking::default(), Means::default());
        for &(score, positive, subject) in examples {
            ranking.add(Scored { score, positive, subject });
            means.add(score.into(), subject);
        }
        [ranking.replicated(bootstrap)[1].clone(), means.replicated(bootstrap)]
    }

    #[test]
    fn what_all_subjects_have_in_common_is_certain() {
        let bootstrap = Bootstrap { replicates: 200, seed: 1 };
        let one: Vec<(f32, bool, u32)> =
            (0..90u8).map(|n| (f32::from(n % 13), n % 3 == 0, (n / 2).into())).collect();
        let more: Vec<(f32, bool, u32)> =
            one.iter().map(|&(score, of, who)| (score + 1.0, of, who)).collect();
        let ([areas, means], [same, higher]) = (measured(&one, &bootstrap), measured(&more, &bootstrap));
        assert!(means.estimate().interval.is_some_and(|[low, high]| low < high), "subjects differ");
        let Estimate { value, interval } = higher.minus(&means).estimate();
        assert!((value.unwrap() - 1.0).abs() < 1e-12);
        assert!(interval.unwrap().iter().all(|end| (end - 1.0).abs() < 1e-12), "{interval:?}");
        assert_eq!(higher.minus(&means).p(), Some(2.0 / 201.0));
        assert_eq!(same.minus(&areas).p(), Some(1.0));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            examples in prop::collection::vec((0u8..6, 0u8..6, any::<bool>(), 0u32..5), 2..40),
            seed in 0u64..9,
        ) {
            // By definition: the difference of what each model has on the drawn subjects.
            let bootstrap = Bootstrap { replicates: 40, seed };
            let of = |second: bool| -> Vec<(f32, bool, u32)> {
                let score = |&(a, b, positive, who): &(u8, u8, bool, u32)| {
                    (f32::from(if second { b } else { a }), positive, who)
                };
                examples.iter().map(score).collect()
            };
            let ([a, _], [b, _]) = (measured(&of(false), &bootstrap), measured(&of(true), &bootstrap));
            let mut subjects: Vec<u32> = examples.iter().map(|of| of.3).collect();
            subjects.sort_unstable();
            subjects.dedup();
            let naive = |scores: &[(f32, bool, u32)], times: &[u32]| {
                let (mut won, mut pairs) = (0.0, 0.0);
                for (x, _, p) in scores.iter().filter(|of| of.1) {
                    for (y, _, n) in scores.iter().filter(|of| !of.1) {
                        let weight = f64::from(times[*p as usize] * times[*n as usize]);
                        won += weight * if x > y { 1.0 } else if x == y { 0.5 } else { 0.0 };
                        pairs += weight;
                    }
                }
                (pairs > 0.0).then(|| won / pairs)
            };
            let [expected] = bootstrap.replicates(&subjects, |times| {
                let times = times.as_flattened();
                [[(|| Some(naive(&of(true), times)? - naive(&of(false), times)?))()]]
            });
            let got = b.minus(&a).replicates;
            prop_assert_eq!(got.len(), expected.len());
            for (got, expected) in got.iter().zip(&expected) {
                let close = |(a, b): (f64, f64)| (a - b).abs() < 1e-12;
                prop_assert!(got.zip(*expected).map_or(got == expected, close), "{:?} {:?}", got, expected);
            }
        }
    }
}
