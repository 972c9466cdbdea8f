//! Which encounters are on the page: the first ones, and some that a reader wants to see: those at the
//! highest risk, those that the model is most wrong about, and some of those whose label is true, which are
//! rare. Memory is bounded by how many there are on the page.

use serde::Serialize;

use crate::sample::{OwnedSample, Sample};

/// Of the encounters on the page, the share that each reason but the first may fill.
const SHARE: usize = 5;

/// Why an encounter is on the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Reason {
    /// It is one of the first.
    First,
    /// Few have a label that is more probable.
    Risk,
    /// A label is true.
    Positive,
    /// Few have a larger loss.
    Loss,
}

/// What is known of an encounter that may be chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    /// Its number among all that the run was asked about, from 1.
    pub(super) number: u64,
    /// The log-odds of its most probable label, if labels are asked for.
    pub(super) risk: Option<f32>,
    pub(super) loss: Option<f64>,
    /// Whether one of the labels that are asked for is true.
    pub(super) is_positive: bool,
}

/// An encounter on the page.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) number: u64,
    pub(super) reasons: Vec<Reason>,
    pub(super) sample: OwnedSample,
}

/// Chooses among encounters that come one by one.
pub(super) struct Choice {
    most: usize,
    first: Vec<(u64, OwnedSample)>,
    others: [(Reason, Largest); 3],
}

impl Choice {
    /// Of at most so many.
    pub(super) fn new(most: usize) -> Self {
        let largest = || Largest { most: most / SHARE, kept: Vec::new() };
        let others = [Reason::Risk, Reason::Positive, Reason::Loss].map(|reason| (reason, largest()));
        Choice { most, first: Vec::new(), others }
    }

    pub(super) fn add(&mut self, candidate: Candidate, sample: &Sample<'_>) {
        let Candidate { number, risk, loss, is_positive } = candidate;
        if self.first.len() < self.most {
            self.first.push((number, sample.to_owned_sample()));
        }
        for (reason, largest) in &mut self.others {
            let key = match reason {
                Reason::First => None,
                Reason::Risk => risk.map(f64::from),
                Reason::Positive => is_positive.then(|| scattered(number)),
                Reason::Loss => loss,
            };
            if let Some(key) = key {
                largest.add(key, number, sample);
            }
        }
    }

    /// Those that were chosen, by their numbers: all that have a reason of their own, and so many of the
    /// first ones as there is room for.
    pub(super) fn finish(self) -> Vec<Chosen> {
        let mut chosen: Vec<Chosen> = Vec::new();
        for (reason, Largest { kept, .. }) in self.others {
            for (_, number, sample) in kept {
                match chosen.iter_mut().find(|one| one.number == number) {
                    Some(one) => one.reasons.push(reason),
                    None => chosen.push(Chosen { number, reasons: vec![reason], sample }),
                }
            }
        }
        chosen.sort_unstable_by_key(|one| one.number);
        let mut room = self.most - chosen.len();
        for (number, sample) in self.first {
            match chosen.binary_search_by_key(&number, |one| one.number) {
                Ok(at) => chosen[at].reasons.insert(0, Reason::First),
                Err(at) if room > 0 => {
                    chosen.insert(at, Chosen { number, reasons: vec![Reason::First], sample });
                    room -= 1;
                }
                Err(_) => break,
            }
        }
        chosen
    }
}

/// A number that says nothing about where an encounter stands, and is the same in every run.
fn scattered(number: u64) -> f64 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64
}

/// The encounters with the largest keys, the largest first; of equal ones the first.
struct Largest {
    most: usize,
    kept: Vec<(f64, u64, OwnedSample)>,
}

impl Largest {
    fn add(&mut self, key: f64, number: u64, sample: &Sample<'_>) {
        let at = self.kept.partition_point(|(other, ..)| *other >= key);
        if at < self.most {
            self.kept.truncate(self.most - 1);
            self.kept.insert(at, (key, number, sample.to_owned_sample()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::{Encounter, PerKind};

    fn choose(most: usize, candidates: &[(f32, f64, bool)]) -> Vec<(u64, Vec<Reason>)> {
        let mut choice = Choice::new(most);
        for (number, &(risk, loss, is_positive)) in (1..).zip(candidates) {
            let candidate = Candidate { number, risk: Some(risk), loss: Some(loss), is_positive };
            choice.add(candidate, &Sample::of(&Encounter::new(PerKind::default())));
        }
        choice.finish().into_iter().map(|one| (one.number, one.reasons)).collect()
    }

    #[test]
    fn remarkable_ones_are_beside_the_first() {
        let mut candidates = vec![(-3.0, 0.1, false); 20];
        candidates[12].0 = 2.0;
        candidates[15].1 = 5.0;
        candidates[18].2 = true;
        let expected = [
            (1, vec![Reason::First]),
            (2, vec![Reason::First]),
            (13, vec![Reason::Risk]),
            (16, vec![Reason::Loss]),
            (19, vec![Reason::Positive]),
        ];
        assert_eq!(choose(5, &candidates), expected);
        assert_eq!(choose(4, &candidates).len(), 4, "the first alone, where there is no room");
        assert_eq!(choose(0, &candidates), []);
    }

    #[test]
    fn one_can_have_several_reasons() {
        let mut candidates = vec![(-3.0, 0.1, false); 9];
        candidates[1] = (2.0, 5.0, true);
        let all = vec![Reason::First, Reason::Risk, Reason::Positive, Reason::Loss];
        assert_eq!(choose(5, &candidates)[1], (2, all));
    }

    proptest! {
        #[test]
        fn as_many_as_there_are_and_the_largest_among_them(
            candidates in prop::collection::vec((-3i8..3, 0u8..5, any::<bool>()), 0..60),
            most in 0usize..40,
        ) {
            let candidates: Vec<(f32, f64, bool)> =
                candidates.iter().map(|&(risk, loss, truth)| (risk.into(), loss.into(), truth)).collect();
            let chosen = choose(most, &candidates);
            prop_assert_eq!(chosen.len(), most.min(candidates.len()));
            prop_assert!(chosen.is_sorted_by_key(|(number, _)| *number));
            // By definition: sorted, the first of equal ones first.
            let mut by_loss: Vec<usize> = (0..candidates.len()).collect();
            by_loss.sort_by(|a, b| candidates[*b].1.total_cmp(&candidates[*a].1));
            let mut worst: Vec<u64> = by_loss.iter().take(most / SHARE).map(|at| *at as u64 + 1).collect();
            worst.sort_unstable();
            let marked: Vec<u64> = (chosen.iter())
                .filter(|(_, reasons)| reasons.contains(&Reason::Loss))
                .map(|(number, _)| *number)
                .collect();
            prop_assert_eq!(marked, worst);
        }
    }
}
