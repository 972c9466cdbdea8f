//! Which part of a dataset an encounter is in, and where in it.
//!
//! All encounters of a subject are in one part, so that a part can be worked on alone. Inside of it they are
//! sorted by subject, then by start (unknown ones last), then by their own id. Identifiers are compared by
//! length, then byte by byte: `S2` comes before `S10`.

use std::cmp::Ordering;

use sha2::{Digest, Sha256};

use super::schema::{ENCOUNTER_ID, START, SUBJECT_ID};
use crate::record::{Encounter, EncounterId, SubjectId};

/// Encounters that a part has in the mean, at most, unless there are too many parts.
pub const ENCOUNTERS_PER_PART: u64 = 262_144;

/// Parts that a dataset has at most: a writer may have to read its input once for each.
const MOST_PARTS: u64 = 64;

/// How many parts so many encounters are written in, if one has about `per_part`.
///
/// ```
/// use gct::dataset::{ENCOUNTERS_PER_PART, parts_for};
///
/// assert_eq!(parts_for(50_000, ENCOUNTERS_PER_PART), 1);
/// assert_eq!(parts_for(1_000_000, ENCOUNTERS_PER_PART), 4);
/// ```
pub fn parts_for(encounters: u64, per_part: u64) -> usize {
    encounters.div_ceil(per_part.max(1)).clamp(1, MOST_PARTS) as usize
}

/// The part of a subject, by a hash of its identifier.
///
/// # Panics
/// If there are no parts.
pub fn part_of(subject: &str, parts: usize) -> usize {
    if parts == 1 {
        return 0;
    }
    let digest = Sha256::new().chain_update("gct-part-1\0").chain_update(subject).finalize();
    let first = digest[..8].iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    (first % parts as u64) as usize
}

/// The order of identifiers: by length, then byte by byte.
fn natural(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

/// What decides where in its part an encounter is.
type Key<'a> = (&'a SubjectId, Option<i64>, &'a EncounterId);

fn key(encounter: &Encounter) -> Key<'_> {
    (&encounter.subject, encounter.start, &encounter.id)
}

/// The first column in which two encounters differ, and how.
fn difference(one: Key<'_>, other: Key<'_>) -> Option<(&'static str, Ordering)> {
    let start = |start: Option<i64>| (start.is_none(), start);
    [
        (SUBJECT_ID, natural(one.0.as_str(), other.0.as_str())),
        (START, start(one.1).cmp(&start(other.1))),
        (ENCOUNTER_ID, natural(one.2.as_str(), other.2.as_str())),
    ]
    .into_iter()
    .find(|(_, order)| order.is_ne())
}

/// The order of encounters in a part.
pub(super) fn compare(one: &Encounter, other: &Encounter) -> Ordering {
    difference(key(one), key(other)).map_or(Ordering::Equal, |(_, order)| order)
}

/// Follows the encounters of a part and finds those that come too early.
#[derive(Default)]
pub(super) struct Sequence {
    last: Option<(SubjectId, Option<i64>, EncounterId)>,
}

impl Sequence {
    /// The position of the first of these encounters that belongs before the one that precedes it, and the
    /// column that says so.
    pub(super) fn misplaced(&mut self, encounters: &[&Encounter]) -> Option<(usize, &'static str)> {
        let mut before = self.last.as_ref().map(|(subject, start, id)| (subject, *start, id));
        let mut found = None;
        for (position, encounter) in encounters.iter().enumerate() {
            let after = key(encounter);
            let column = before.and_then(|before| difference(before, after));
            if let Some((column, Ordering::Greater)) = column {
                found = Some((position, column));
                break;
            }
            before = Some(after);
        }
        if let Some(last) = encounters.last() {
            self.last = Some((last.subject.clone(), last.start, last.id.clone()));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    fn encounter(subject: &str, start: Option<i64>, id: &str) -> Encounter {
        Encounter {
            id: EncounterId::new(id),
            subject: SubjectId::new(subject),
            start,
            ..Encounter::new(PerKind::default())
        }
    }

    #[test]
    fn subjects_come_by_length_then_by_bytes_and_unknown_starts_last() {
        let sorted = [
            encounter("", Some(9), "a"),
            encounter("S2", Some(-5), "z"),
            encounter("S2", Some(7), "e9"),
            encounter("S2", Some(7), "e10"),
            encounter("S2", None, "a"),
            encounter("S10", Some(-9), "a"),
            encounter("ä1", Some(1), "a"),
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(compare(one, other), at.cmp(&other_at), "{at} {other_at}");
            }
        }
    }

    #[test]
    fn what_comes_too_early_is_found_across_batches() {
        let [first, second] = [encounter("S1", Some(1), "a"), encounter("S1", Some(0), "b")];
        let mut sequence = Sequence::default();
        assert_eq!(sequence.misplaced(&[&second, &first]), None);
        assert_eq!(sequence.misplaced(&[&first, &second]), Some((1, START)));
        let mut sequence = Sequence::default();
        assert_eq!(sequence.misplaced(&[&first]), None);
        assert_eq!(sequence.misplaced(&[]), None);
        assert_eq!(sequence.misplaced(&[&second]), Some((0, START)));
    }

    /// As Python computes it:
    /// `int.from_bytes(hashlib.sha256(b"gct-part-1\0S7").digest()[:8], "big") % 4`
    #[test]
    fn parts_are_those_of_the_documents() {
        assert_eq!(["S0", "S7", "S1", ""].map(|subject| part_of(subject, 4)), [0, 1, 2, 3]);
        assert_eq!(part_of("S7", 1), 0);
        let mut sizes = [0; 5];
        (0..10_000).for_each(|subject| sizes[part_of(&format!("S{subject}"), 5)] += 1);
        assert!(sizes.iter().all(|size: &u32| size.abs_diff(2000) < 200), "{sizes:?}");
    }

    #[test]
    fn there_is_a_part_even_for_nothing_and_never_too_many() {
        let parts = |encounters| parts_for(encounters, 100);
        assert_eq!([0, 1, 100, 101, 6400, 1_000_000].map(parts), [1, 1, 1, 2, 64, 64]);
    }
}
