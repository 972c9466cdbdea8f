//! How well the label `later` of a visit can be known.
//!
//! It depends on whether d1 led to m1 in an earlier visit. What led to what in a visit depends on nothing
//! outside of it, so the chance that it did so in at least one of them is
//!
//! ```text
//! h = 1 - prod over earlier visits of (1 - q)
//! ```
//!
//! with q the chance of the connection given all codes of that visit, and the chance of the label is
//! base + (hit - base) h.

use serde::{Deserialize, Serialize};

use super::{PairScores, chance_of, pair_index};
use crate::ingest::synthetic::Visits;
use crate::metric::{Areas, Ranking};
use crate::record::Encounter;

/// How well the label `later` of held-out visits can be ranked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LaterScores {
    /// By its chance, given the codes of the visits before: the best that a model can do, as far as sampling
    /// tells.
    #[serde(flatten)]
    pub areas: Areas,
    /// By whether an earlier visit has both d1 and m1, whatever led to m1: codes without structure.
    pub codes: Areas,
    /// By whether the visit itself has d1: no history. Nothing else in it says much, its treatments and labs
    /// nothing at all, since they are drawn from its own diagnoses alone.
    pub visit: Areas,
    /// On how many held-out encounters.
    pub encounters: u64,
}

/// What the visits of a patient so far say.
struct Past {
    /// The chance that d1 led to m1 in none of them.
    never: f64,
    /// Whether one of them has both.
    has_both: bool,
}

const NO_PAST: Past = Past { never: 1.0, has_both: false };

/// Ranks encounters by the chance of their last label. Those of a subject follow each other in time.
pub(super) fn rank(
    encounters: &[Encounter],
    connection: (u32, u32),
    joint: &[Option<PairScores>],
    visits: &Visits,
) -> LaterScores {
    let [mut best, mut codes, mut visit] = [(); 3].map(|()| Ranking::default());
    let mut scored = encounters.iter().zip(joint);
    for of_subject in encounters.chunk_by(|one, next| one.subject == next.subject) {
        let mut past = NO_PAST;
        for (encounter, scores) in scored.by_ref().take(of_subject.len()) {
            let is_true = encounter.labels.last() == Some(&Some(true));
            let chance = visits.later_base + (visits.later_hit - visits.later_base) * (1.0 - past.never);
            best.add(chance as f32, is_true);
            codes.add(f32::from(u8::from(past.has_both)), is_true);
            let has_d1 = encounter.codes.diagnosis.contains(&connection.0);
            visit.add(f32::from(u8::from(has_d1)), is_true);
            past.never *= 1.0 - f64::from(chance_of(encounter, connection, scores.as_ref()));
            past.has_both |= pair_index(encounter, connection).is_some();
        }
    }
    let encounters = encounters.len() as u64;
    LaterScores { areas: best.areas(), codes: codes.areas(), visit: visit.areas(), encounters }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{PerKind, SubjectId};

    /// A visit with the treatment and, perhaps, d1, with the chance that it led to the treatment.
    fn visit(subject: &str, chance: Option<f32>, later: bool) -> (Encounter, Option<PairScores>) {
        let diagnosis = chance.map_or(vec![5], |_| vec![1, 5]);
        let codes = PerKind { diagnosis, treatment: vec![9], ..PerKind::default() };
        let subject = SubjectId::new(subject);
        let labels = vec![None, None, Some(later)];
        let scores = chance.map(|chance| PairScores {
            diagnosis_treatment: vec![chance, 1.0 - chance],
            treatment_lab: vec![],
        });
        (Encounter { subject, labels, ..Encounter::new(codes) }, scores)
    }

    #[test]
    fn by_hand() {
        let (encounters, joint): (Vec<_>, Vec<_>) = [
            visit("a", Some(0.9), false),
            visit("a", None, true),
            visit("b", Some(0.4), false),
            visit("b", Some(0.4), false),
            visit("b", None, true),
            visit("c", Some(0.5), false),
            visit("c", None, false),
        ]
        .into_iter()
        .unzip();
        let scores = rank(&encounters, (1, 9), &joint, &Visits::default());
        // 1 - 0.6 * 0.6 = 0.64 is above the 0.5 of c and below the 0.9 of a.
        assert_eq!((scores.areas.aucpr, scores.areas.auroc), (Some(1.0), Some(1.0)));
        // Four visits come after one with both codes, two of them with the label: 2 * 2/4 / 2, and of ten
        // pairs six are right and four tied.
        assert_eq!((scores.codes.aucpr, scores.codes.auroc), (Some(0.5), Some(0.8)));
        // d1 in the visit itself says the reverse: 1/7 at the end, and one tie in five.
        assert_eq!(scores.visit.auroc, Some(0.1));
        assert_eq!(scores.encounters, 7);
    }
}
