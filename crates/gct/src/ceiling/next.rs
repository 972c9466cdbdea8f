//! How well the diagnoses of the next visit can be known.
//!
//! A visit is drawn after the diagnoses of the one before, and depends on nothing else of the patient:
//! treatments, labs and earlier visits say no more. What it can have is found by drawing it many times. The
//! chance of a diagnosis is the share of these draws that have it, shrunk a little towards its share among
//! those after all visits, which settles the rare ones.

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::ingest::synthetic::Generator;
use crate::job::Stop;
use crate::metric::Ranking;
use crate::record::Encounter;

/// On how many visits with a next one.
const VISITS: usize = 500;

/// How often the next visit is drawn.
const DRAWS: u32 = 500;

/// How many draws the share among those of all visits counts as.
const WEIGHT: f32 = 10.0;

/// How many of the most probable diagnoses are compared with the true ones, and the name of that.
const RECALLS: [(usize, &str); 3] = [(10, "recall@10"), (20, "recall@20"), (30, "recall@30")];

/// How well the diagnoses of the next visit can be ranked: metrics by the names that a model's have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NextScores {
    /// By their chances after the visit: the best that a model can do, as far as drawing tells.
    #[serde(flatten)]
    pub drawn: BTreeMap<String, f64>,
    /// By whether the visit has them already, the more frequent first: no model.
    pub repeated: BTreeMap<String, f64>,
    /// After how many held-out visits.
    pub encounters: u64,
}

/// Ranks the diagnoses of the visits that follow on held-out ones. Those of a subject follow each other in
/// time. `None` if there are none.
pub(super) fn rank(generator: &Generator, held_out: &[Encounter], stop: &Stop) -> Result<Option<NextScores>> {
    let follow = |pair: &&[Encounter]| pair[0].subject == pair[1].subject;
    let pairs: Vec<&[Encounter]> = held_out.windows(2).filter(follow).take(VISITS).collect();
    if pairs.is_empty() {
        return Ok(None);
    }
    let draw = |(number, pair): (usize, &&[Encounter])| {
        let before = &pair[0].codes.diagnosis;
        stop.check().map(|()| generator.draws_after(before, DRAWS, held_out.len() + number))
    };
    let drawn: Vec<Vec<u32>> = pairs.par_iter().enumerate().map(draw).collect::<Result<_>>()?;
    let mut shares = vec![0.0; drawn[0].len()];
    for counts in &drawn {
        shares.iter_mut().zip(counts).for_each(|(share, count)| *share += *count as f32);
    }
    let draws = (pairs.len() as u32 * DRAWS) as f32;
    shares.iter_mut().for_each(|share| *share /= draws);
    let (mut by_chance, mut by_repetition) = (Ranks::default(), Ranks::default());
    for (pair, counts) in pairs.iter().zip(&drawn) {
        let next = &pair[1].codes.diagnosis;
        by_chance.add(
            counts.iter().zip(&shares).map(|(count, share)| *count as f32 + WEIGHT * share).collect(),
            next,
        );
        let mut repeated = shares.clone();
        pair[0].codes.diagnosis.iter().for_each(|id| repeated[*id as usize] += 1.0);
        by_repetition.add(repeated, next);
    }
    let encounters = pairs.len() as u64;
    Ok(Some(NextScores { drawn: by_chance.metrics(), repeated: by_repetition.metrics(), encounters }))
}

/// Ranked diagnoses of many visits.
#[derive(Default)]
struct Ranks {
    pairs: Ranking,
    recalls: [f64; RECALLS.len()],
    visits: u32,
}

impl Ranks {
    /// Adds a visit: a score for each diagnosis, and the true ones.
    fn add(&mut self, scores: Vec<f32>, truth: &[u32]) {
        let mut ids: Vec<u32> = (0..scores.len() as u32).collect();
        ids.sort_by(|a, b| scores[*b as usize].total_cmp(&scores[*a as usize]));
        for ((most, _), recall) in RECALLS.iter().zip(&mut self.recalls) {
            let found = ids.iter().take(*most).filter(|id| truth.contains(id)).count();
            *recall += found as f64 / truth.len() as f64;
        }
        self.visits += 1;
        scores.iter().zip(0..).for_each(|(score, id)| self.pairs.add(*score, truth.contains(&id)));
    }

    fn metrics(self) -> BTreeMap<String, f64> {
        let visits = f64::from(self.visits);
        let recalls = RECALLS.iter().zip(self.recalls).map(|((_, name), sum)| (*name, sum / visits));
        let aucpr = self.pairs.areas().aucpr.map(|value| ("aucpr", value));
        recalls.chain(aucpr).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recalls_are_means_over_visits_and_aucpr_is_over_all_pairs() {
        let mut ranks = Ranks::default();
        let falling: Vec<f32> = (0..40).map(|id| 40.0 - id as f32).collect();
        ranks.add(falling.clone(), &[0, 15, 25, 39]);
        ranks.add(falling, &[0]);
        let metrics = ranks.metrics();
        let of = |name: &str| metrics[name];
        assert_eq!([of("recall@10"), of("recall@20"), of("recall@30")], [0.625, 0.75, 0.875]);
        // Of each score there are two pairs: 2/2 twice, then 3 of 32, 4 of 52 and 5 of 80.
        let expected = (1.0 + 1.0 + 3.0 / 32.0 + 4.0 / 52.0 + 5.0 / 80.0) / 5.0;
        assert!((of("aucpr") - expected).abs() < 1e-9, "{metrics:?}");
    }
}
