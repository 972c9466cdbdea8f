//! Whether one model is better than another, over the same examples.

use super::bootstrap::{Draws, Replicated};

impl Replicated {
    /// The two-sided p value of no difference from the same metric of another model, by the same draws.
    ///
    /// Replicates that draw the same subjects for both are pairs: their difference is what differs between
    /// the models, without what differs between subjects. The p value is twice the smaller of the shares of
    /// differences that are at most 0 and at least 0, with one replicate more on either side, so that it is
    /// never 0; at most 1. Below 0.05 is where the interval of [`Replicated::minus`] leaves 0 out, but for
    /// that one replicate. `None` where that interval is undefined.
    pub fn p(&self, other: &Replicated, draws: &Draws) -> Option<f64> {
        self.minus(other, draws).interval?;
        let pairs = self.replicates.iter().zip(&other.replicates);
        let differences: Vec<f64> = pairs.filter_map(|(one, other)| Some((*one)? - (*other)?)).collect();
        let count = |is: fn(&f64) -> bool| differences.iter().filter(|difference| is(difference)).count();
        let smaller = count(|of| *of <= 0.0).min(count(|of| *of >= 0.0));
        Some((2.0 * (smaller + 1) as f64 / (differences.len() + 1) as f64).min(1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::metric::{Bootstrap, Draws, Estimate, Means, Replicated, Scored, SubjectRanking};

    type Example = (f32, bool, u32);

    fn draws(replicates: u32, seed: u64, examples: &[Example]) -> Draws {
        Draws::new(Bootstrap { replicates, seed }, examples.iter().map(|of| of.2).collect())
    }

    /// The area under the ROC curve of the scores of one model, and their mean.
    fn measured(examples: &[Example], draws: &Draws) -> [Replicated; 2] {
        let (mut ranking, mut means) = (SubjectRanking::default(), Means::default());
        for &(score, positive, subject) in examples {
            ranking.add(Scored { score, positive, subject });
            means.add(score.into(), subject);
        }
        let [_, auroc] = ranking.sorted().replicated(draws);
        [auroc, means.replicated("mean", draws)]
    }

    fn replicated(replicates: &[Option<f64>]) -> Replicated {
        Replicated { name: "x", value: None, replicates: replicates.to_vec() }
    }

    #[test]
    fn p_by_hand() {
        let draws = draws(19, 0, &[(0.0, true, 0), (0.0, true, 1)]);
        let nothing = replicated(&[Some(0.0); 19]);
        // 19 replicates: one more on either side makes 20.
        let mostly = |below: usize| {
            let sides: Vec<_> = (0..19).map(|n| Some(if n < below { -1.0 } else { 1.0 })).collect();
            replicated(&sides).p(&nothing, &draws).unwrap()
        };
        assert!((mostly(0) - 0.1).abs() < 1e-12, "never 0");
        assert!((mostly(1) - 0.2).abs() < 1e-12);
        assert!((mostly(17) - 0.3).abs() < 1e-12, "either side");
        assert_eq!(mostly(10), 1.0);
        assert_eq!(nothing.p(&nothing, &draws), Some(1.0), "the same model twice");
        let few: Vec<_> = (0..19).map(|n| (n < 9).then_some(1.0)).collect();
        assert_eq!(replicated(&few).p(&nothing, &draws), None, "more than half are undefined");
        assert_eq!(nothing.p(&replicated(&few), &draws), None);
        assert_eq!(replicated(&[]).p(&replicated(&[]), &draws), None, "one subject");
    }

    #[test]
    fn what_all_subjects_have_in_common_is_certain() {
        let one: Vec<Example> = (0..90u8).map(|n| (f32::from(n % 13), n % 3 == 0, (n / 2).into())).collect();
        let more: Vec<Example> = one.iter().map(|&(score, of, who)| (score + 1.0, of, who)).collect();
        let draws = draws(200, 1, &one);
        let ([areas, means], [same, higher]) = (measured(&one, &draws), measured(&more, &draws));
        assert!(means.estimate(&draws).interval.is_some_and(|[low, high]| low < high), "subjects differ");
        let Estimate { value, interval } = higher.minus(&means, &draws);
        assert!((value.unwrap() - 1.0).abs() < 1e-12);
        assert!(interval.unwrap().iter().all(|end| (end - 1.0).abs() < 1e-12), "{interval:?}");
        assert_eq!(higher.p(&means, &draws), Some(2.0 / 201.0));
        assert_eq!(same.p(&areas, &draws), Some(1.0));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(
            examples in prop::collection::vec((0u8..6, 0u8..6, any::<bool>(), 0u32..5), 2..40),
            seed in 0u64..9,
        ) {
            let of = |second: bool| -> Vec<Example> {
                let score = |&(a, b, positive, who): &(u8, u8, bool, u32)| {
                    (f32::from(if second { b } else { a }), positive, who)
                };
                examples.iter().map(score).collect()
            };
            let draws = draws(40, seed, &of(false));
            let ([a, _], [b, _]) = (measured(&of(false), &draws), measured(&of(true), &draws));
            // By definition: what each model has on the drawn subjects, pair by pair of examples.
            let naive = |scores: &[Example], times: &[u32]| {
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
            let expected: Vec<Option<f64>> = draws.replicates(|times: &[[u32; 1]]| {
                let times = times.as_flattened();
                let both = naive(&of(true), times).zip(naive(&of(false), times));
                [both.map(|(b, a)| b - a)]
            });
            let defined: Vec<f64> = expected.iter().flatten().copied().collect();
            let got = b.p(&a, &draws);
            if 2 * defined.len() < expected.len() || defined.is_empty() {
                prop_assert_eq!(got, None);
                return Ok(());
            }
            let side = |sign: f64| defined.iter().filter(|of| **of * sign >= -1e-12).count() as f64;
            let expected = 2.0 * (side(1.0).min(side(-1.0)) + 1.0) / (defined.len() as f64 + 1.0);
            prop_assert!((got.unwrap() - expected.min(1.0)).abs() < 1e-9, "{:?} {}", got, expected);
        }
    }
}
