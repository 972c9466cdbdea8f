//! How well scores rank, and how much that would vary with other subjects.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Estimate;
use super::bootstrap::{Bootstrap, Draws, Replicated, once_each};
use super::ranking::{Areas, Curve};

/// Replicates that are computed in one walk: it takes hardly longer than for one, since examples are many and
/// far from each other in memory.
pub(super) const TOGETHER: usize = 8;

/// An example.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scored {
    /// Higher is more likely positive. A logit does as well as a probability.
    pub score: f32,
    /// What it is.
    pub positive: bool,
    /// Whose it is. Subjects are numbered without large gaps.
    pub subject: u32,
}

/// Scored examples of subjects, gathered one by one: 12 bytes each.
///
/// Equal scores form one threshold, so a result does not depend on the order in which they came.
#[derive(Debug, Clone, Default)]
pub struct SubjectRanking {
    scored: Vec<Scored>,
}

/// The two areas, with intervals. Replicates in which a class is missing are left out.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct AreaEstimates {
    /// See [`Areas::aucpr`].
    pub aucpr: Estimate,
    /// See [`Areas::auroc`].
    pub auroc: Estimate,
}

impl SubjectRanking {
    /// Adds an example.
    ///
    /// # Panics
    /// If the score is not a number.
    pub fn add(&mut self, scored: Scored) {
        assert!(!scored.score.is_nan(), "a score must be a number");
        self.scored.push(scored);
    }

    /// Sorts once, walks down the scores once for several replicates.
    pub fn estimates(self, bootstrap: &Bootstrap) -> AreaEstimates {
        self.sorted().areas(bootstrap)
    }

    /// The examples from the highest score down, for everything that is asked of an order.
    pub fn sorted(mut self) -> Sorted {
        // The rest of the key makes sums of equal scores the same whatever order they came in.
        let rest = |of: &Scored| (of.subject, of.positive);
        self.scored.par_sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(rest(a).cmp(&rest(b))));
        Sorted { scored: self.scored }
    }
}

/// Scored examples from the highest score down.
#[derive(Debug, Clone, Default)]
pub struct Sorted {
    pub(super) scored: Vec<Scored>,
}

impl Sorted {
    /// The two areas.
    pub fn areas(&self, bootstrap: &Bootstrap) -> AreaEstimates {
        let subjects = self.subjects();
        let once: Vec<[u32; 1]> = once_each(&subjects).into_iter().map(|times| [times]).collect();
        let [Areas { aucpr, auroc }] = self.areas_of(&once);
        let [aucpr_interval, auroc_interval] = bootstrap.intervals_together(&subjects, |times| {
            self.areas_of::<TOGETHER>(times).map(|Areas { aucpr, auroc }| [aucpr, auroc])
        });
        AreaEstimates {
            aucpr: Estimate { value: aucpr, interval: aucpr_interval },
            auroc: Estimate { value: auroc, interval: auroc_interval },
        }
    }

    /// The two areas in each replicate.
    pub fn replicated(&self, draws: &Draws) -> [Replicated; 2] {
        let once: Vec<[u32; 1]> = draws.once().into_iter().map(|times| [times]).collect();
        let [all] = self.areas_of(&once);
        let replicates = draws.replicates(|times| self.areas_of::<TOGETHER>(times));
        let metric = |name: &'static str, of: fn(&Areas) -> Option<f64>| Replicated {
            name,
            value: of(&all),
            replicates: replicates.iter().map(of).collect(),
        };
        [metric("aucpr", |areas| areas.aucpr), metric("auroc", |areas| areas.auroc)]
    }

    /// How many examples there are.
    pub fn len(&self) -> usize {
        self.scored.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scored.is_empty()
    }

    /// How many are positive.
    pub fn positives(&self) -> u64 {
        self.scored.iter().filter(|of| of.positive).count() as u64
    }

    /// Those that have examples, ascending.
    pub fn subjects(&self) -> Vec<u32> {
        let last = self.scored.iter().map(|of| of.subject).max();
        let mut present = vec![false; last.map_or(0, |last| last as usize + 1)];
        self.scored.iter().for_each(|of| present[of.subject as usize] = true);
        (0..).zip(present).filter(|(_, present)| *present).map(|(subject, _)| subject).collect()
    }

    /// The areas of some replicates, in each of which a subject counts as many times as it was drawn.
    fn areas_of<const N: usize>(&self, times: &[[u32; N]]) -> [Areas; N] {
        let mut curves = [Curve::default(); N];
        for threshold in self.scored.chunk_by(|a, b| a.score == b.score) {
            let (mut positives, mut negatives) = ([0; N], [0; N]);
            for of in threshold {
                let side = if of.positive { &mut positives } else { &mut negatives };
                let times = times[of.subject as usize];
                side.iter_mut().zip(times).for_each(|(side, times)| *side += u64::from(times));
            }
            let steps = positives.into_iter().zip(negatives);
            curves
                .iter_mut()
                .zip(steps)
                .for_each(|(curve, (positives, negatives))| curve.step(positives, negatives));
        }
        curves.map(|curve| curve.areas())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;
    use crate::metric::Ranking;

    type Example = (f32, bool, u32);

    fn ranking(examples: &[Example]) -> SubjectRanking {
        let mut ranking = SubjectRanking::default();
        for &(score, positive, subject) in examples {
            ranking.add(Scored { score, positive, subject });
        }
        ranking
    }

    fn estimates(examples: &[Example]) -> AreaEstimates {
        ranking(examples).estimates(&Bootstrap::default())
    }

    /// Areas of the examples, each as often as its subject was drawn.
    fn repeated(examples: &[Example], times: &[u32]) -> Areas {
        let mut ranking = Ranking::default();
        for &(score, positive, subject) in examples {
            (0..times[subject as usize]).for_each(|_| ranking.add(score, positive));
        }
        ranking.areas()
    }

    /// 40 subjects of 25 examples, with ties.
    fn drawn() -> Vec<Example> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let example = |number: u32| {
            let positive = rng.random::<f32>() < 0.2;
            ((rng.random::<f32>() * 20.0).round() + f32::from(positive) * 3.0, positive, number / 25)
        };
        (0..1000).map(example).collect()
    }

    #[test]
    fn by_hand() {
        // One positive, below two negatives: drawn once it has a precision of 1/3, drawn twice of 2/3.
        // Drawn three times, in 1 of 27 replicates, it would have 1, but then the negatives are missing.
        let got = estimates(&[(0.9, false, 0), (0.8, false, 1), (0.1, true, 2)]);
        let third = 1.0 / 3.0;
        assert_eq!(got.aucpr, Estimate { value: Some(third), interval: Some([third, 2.0 / 3.0]) });
        assert_eq!(got.auroc, Estimate { value: Some(0.0), interval: Some([0.0, 0.0]) });
    }

    #[test]
    fn undefined_without_a_class_or_a_second_subject() {
        assert_eq!(estimates(&[]), AreaEstimates::default());
        let only_positives = estimates(&[(0.5, true, 0), (0.4, true, 1)]);
        assert_eq!(only_positives, AreaEstimates::default());
        let one_subject = estimates(&[(0.5, true, 3), (0.4, false, 3)]);
        assert_eq!(one_subject.auroc, Estimate { value: Some(1.0), interval: None });
    }

    #[test]
    #[should_panic(expected = "a score must be a number")]
    fn a_score_that_is_not_a_number_is_refused() {
        ranking(&[(f32::NAN, true, 0)]);
    }

    #[test]
    fn threads_and_order_change_nothing() {
        let mut examples = drawn();
        let expected = estimates(&examples);
        examples.reverse();
        for threads in [1, 2, 4] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert_eq!(pool.install(|| estimates(&examples)), expected, "{threads} threads");
        }
    }

    #[test]
    fn twice_the_examples_of_the_same_subjects_are_no_news() {
        let examples = drawn();
        let twice: Vec<Example> = examples.iter().flat_map(|&example| [example; 2]).collect();
        assert_eq!(estimates(&examples), estimates(&twice));
    }

    #[test]
    fn a_gap_in_the_numbers_of_subjects_changes_nothing() {
        let examples = drawn();
        let spread: Vec<Example> =
            examples.iter().map(|&(score, of, subject)| (score, of, 3 * subject + 1)).collect();
        assert_eq!(estimates(&examples), estimates(&spread));
    }

    #[test]
    fn more_subjects_narrow_the_interval_and_it_holds_the_value() {
        let width = |estimate: Estimate| {
            let ([low, high], value) = (estimate.interval.unwrap(), estimate.value.unwrap());
            assert!(low < value && value < high, "{estimate:?}");
            high - low
        };
        let examples = drawn();
        // Sixteen times the subjects make a quarter of the width.
        let many: Vec<Example> = (0..16)
            .flat_map(|copy| {
                examples.iter().map(move |&(score, of, subject)| (score, of, subject + 40 * copy))
            })
            .collect();
        let (few, many) = (estimates(&examples), estimates(&many));
        for ratio in [width(few.aucpr) / width(many.aucpr), width(few.auroc) / width(many.auroc)] {
            assert!((3.0..5.3).contains(&ratio), "{ratio}");
        }
    }

    #[test]
    fn an_example_takes_12_bytes() {
        assert_eq!(size_of::<Scored>(), 12);
    }

    proptest! {
        #[test]
        fn agrees_with_repeated_examples(
            examples in prop::collection::vec((0u8..6, any::<bool>(), 0u32..5), 0..40),
            times in prop::collection::vec(0u32..4, 5),
        ) {
            let examples: Vec<Example> = examples.iter().map(|&(s, p, who)| (s.into(), p, who)).collect();
            let sorted = ranking(&examples).sorted();
            let reversed = times.iter().rev();
            let both: Vec<[u32; 2]> = times.iter().zip(reversed).map(|(one, other)| [*one, *other]).collect();
            for (index, fast) in sorted.areas_of(&both).into_iter().enumerate() {
                let times: Vec<u32> = both.iter().map(|times| times[index]).collect();
                prop_assert_eq!(fast, repeated(&examples, &times));
            }
            let got = estimates(&examples);
            let all = repeated(&examples, &[1; 5]);
            prop_assert_eq!(Areas { aucpr: got.aucpr.value, auroc: got.auroc.value }, all);
        }
    }
}
