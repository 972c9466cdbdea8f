//! Train, validation and test in the ratio 8:1:1.
//!
//! Where an encounter goes depends on a hash of the seed and an identifier, and on nothing else: adding
//! encounters moves none of those that were there, and anyone can repeat it (Python):
//!
//! ```python
//! digest = hashlib.sha256(f"gct-split-1\0{seed}\0{id}".encode()).digest()
//! u = int.from_bytes(digest[:8], "big") / 2**64      # train: u < 0.8, validation: u < 0.9, test: the rest
//! ```
//!
//! A share of a part, to learn from fewer, is by another hash of the same identifiers: those are in it whose
//! `u` of `f"gct-share-1\0{seed}\0{id}"` is below the share.

use std::path::Path;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::StringBuilder;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dataset::{self, Dataset};
use crate::error::{Error, Result};
use crate::files::Overwrite;
use crate::job::Job;
use crate::record::Encounter;
pub use crate::record::SplitPart;

/// Encounters to test on, per encounter to learn from.
pub const TEST_SHARE: f64 = 1.0 / 8.0;

/// What stays together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// As the source of the dataset put it, where it says; else as [`By::Subject`].
    #[default]
    Recorded,
    /// All encounters of a subject are on one side: no patient is learned from and tested on.
    Subject,
    /// Each encounter for itself, as in the paper: a patient's encounters can fall on both sides.
    Encounter,
}

impl By {
    /// All of them.
    pub const ALL: [By; 3] = [By::Recorded, By::Subject, By::Encounter];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            By::Recorded => "recorded",
            By::Subject => "subject",
            By::Encounter => "encounter",
        }
    }
}

/// How to split.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Another seed gives another split.
    pub seed: u64,
    /// What stays together.
    pub by: By,
    /// A label whose positives are spread over the parts in the ratio 8:1:1 too, as exactly as whole subjects
    /// allow. Adding encounters can then move those near a boundary.
    pub stratify: Option<String>,
}

impl Settings {
    /// Refuses what would have no effect on a dataset.
    ///
    /// # Errors
    /// If the dataset comes with its own split, which is honoured, and a seed or a stratification is wanted.
    pub fn check_for(&self, dataset: &Dataset) -> Result<()> {
        let wants_another = self.seed != 0 || self.stratify.is_some();
        match self.by == By::Recorded && wants_another && dataset.has_own_split()? {
            true => Err(Error::FixedSplit),
            false => Ok(()),
        }
    }
}

/// A split, ready to say where an encounter belongs.
///
/// ```
/// use gct::record::{Encounter, EncounterId, PerKind, SubjectId};
/// use gct::split::{By, Split};
///
/// let split = Split::by_hash(0, By::Subject);
/// let visit = |id: &str| Encounter {
///     id: EncounterId::new(id),
///     subject: SubjectId::new("patient-1"),
///     ..Encounter::new(PerKind::default())
/// };
/// // All encounters of a subject are in one part, whoever else is in the dataset.
/// assert_eq!(split.part(&visit("first")), split.part(&visit("second")));
/// ```
#[derive(Debug, Clone)]
pub struct Split {
    settings: Settings,
    strata: Option<Strata>,
}

/// Hashes below `train` are in train, those below `validation` in validation.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    train: u64,
    validation: u64,
}

/// 8/10 and 9/10 of all hashes.
const BOUNDS: Bounds = Bounds { train: share(8), validation: share(9) };

const fn share(tenths: u128) -> u64 {
    ((1u128 << 64) * tenths / 10) as u64
}

/// Groups of subjects (or encounters) that are each split 8:1:1.
#[derive(Debug, Clone)]
struct Strata {
    /// The stratum of each hash.
    members: FxHashMap<u64, Stratum>,
    bounds: [Bounds; 3],
}

/// By the best that is known of a subject (or encounter): a positive label, else a negative one, else none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stratum {
    Unknown,
    Negative,
    Positive,
}

impl Split {
    /// Splits a dataset. Only a stratified split needs to read it.
    ///
    /// # Errors
    /// If the label to stratify by does not exist, or the dataset cannot be read.
    pub fn new(settings: &Settings, dataset: &Dataset) -> Result<Self> {
        let mut split = Split::by_hash(settings.seed, settings.by);
        if let Some(label) = &settings.stratify {
            let label = dataset.label(label)?;
            let mut members = FxHashMap::default();
            for encounter in dataset.encounters()? {
                let encounter = encounter?;
                let stratum = match encounter.labels[label] {
                    Some(true) => Stratum::Positive,
                    Some(false) => Stratum::Negative,
                    None => Stratum::Unknown,
                };
                let hash = split.hash(encounter.subject.as_str(), encounter.id.as_str());
                let best = members.entry(hash).or_insert(stratum);
                *best = stratum.max(*best);
            }
            split.strata = Some(Strata::new(members));
            split.settings.stratify = settings.stratify.clone();
        }
        Ok(split)
    }

    /// A split that needs no dataset.
    pub fn by_hash(seed: u64, by: By) -> Self {
        Split { settings: Settings { seed, by, stratify: None }, strata: None }
    }

    /// How it splits.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether an encounter is in a share of its part. What is in a share is in every larger one.
    pub fn is_in_share(&self, encounter: &Encounter, share: f64) -> bool {
        let id = self.id(encounter.subject.as_str(), encounter.id.as_str());
        let hash = digest(&format!("gct-share-1\0{}\0{id}", self.settings.seed));
        // The largest hash is 1 as a number, and all of them are in a share of 1.
        share >= 1.0 || (hash as f64 / 2f64.powi(64)) < share
    }

    /// Where an encounter belongs.
    pub fn part(&self, encounter: &Encounter) -> SplitPart {
        self.part_of(encounter.part, encounter.subject.as_str(), encounter.id.as_str())
    }

    /// Where an encounter belongs, by the part that its source recorded and its identifiers: all that counts.
    pub fn part_of(&self, recorded: Option<SplitPart>, subject: &str, encounter: &str) -> SplitPart {
        if let (By::Recorded, Some(part)) = (self.settings.by, recorded) {
            return part;
        }
        let hash = self.hash(subject, encounter);
        let bounds = self.strata.as_ref().map_or(BOUNDS, |strata| strata.bounds(hash));
        if hash < bounds.train {
            SplitPart::Train
        } else if hash < bounds.validation {
            SplitPart::Validation
        } else {
            SplitPart::Test
        }
    }

    /// Writes where every encounter of the dataset belongs, as Parquet: `encounter_id`, `part`. The job is
    /// told how many are done.
    ///
    /// # Errors
    /// If the dataset cannot be read, the file cannot be written, or the job is stopped.
    pub fn write(
        &self,
        dataset: &Dataset,
        path: &Path,
        overwrite: Overwrite,
        job: &Job<'_, u64>,
    ) -> Result<()> {
        let (mut ids, mut parts) = (StringBuilder::new(), StringBuilder::new());
        for (done, encounter) in (1..).zip(dataset.encounters()?) {
            let encounter = encounter?;
            ids.append_value(encounter.id.as_str());
            parts.append_value(self.part(&encounter).name());
            job.advance(done)?;
        }
        let columns: Vec<(_, ArrayRef)> =
            vec![("encounter_id", Arc::new(ids.finish())), ("part", Arc::new(parts.finish()))];
        dataset::write_table(path, overwrite, columns)
    }

    fn hash(&self, subject: &str, encounter: &str) -> u64 {
        hash(self.settings.seed, self.id(subject, encounter))
    }

    /// The identifier that decides.
    fn id<'a>(&self, subject: &'a str, encounter: &'a str) -> &'a str {
        match self.settings.by {
            By::Recorded | By::Subject => subject,
            By::Encounter => encounter,
        }
    }
}

fn hash(seed: u64, id: &str) -> u64 {
    digest(&format!("gct-split-1\0{seed}\0{id}"))
}

fn digest(text: &str) -> u64 {
    let digest = Sha256::new().chain_update(text).finalize();
    u64::from_be_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes"))
}

impl Strata {
    fn new(members: FxHashMap<u64, Stratum>) -> Self {
        let bounds = [Stratum::Unknown, Stratum::Negative, Stratum::Positive].map(|stratum| {
            let mut hashes: Vec<u64> =
                members.iter().filter(|(_, of)| **of == stratum).map(|(hash, _)| *hash).collect();
            hashes.sort_unstable();
            // The first hash that is beyond the first `tenths` of the stratum.
            let bound = |tenths: usize| {
                let inside = (hashes.len() * tenths + 5) / 10;
                hashes.get(inside).copied().unwrap_or(u64::MAX)
            };
            Bounds { train: bound(8), validation: bound(9) }
        });
        Strata { members, bounds }
    }

    fn bounds(&self, hash: u64) -> Bounds {
        self.bounds[self.members.get(&hash).copied().unwrap_or(Stratum::Unknown) as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::{EncounterId, PerKind, SubjectId};

    fn encounter(subject: &str, id: &str) -> Encounter {
        Encounter {
            id: EncounterId::new(id),
            subject: SubjectId::new(subject),
            ..Encounter::new(PerKind::default())
        }
    }

    #[test]
    fn the_hash_is_the_documented_one() {
        // hashlib.sha256(b"gct-split-1\x000\x00S7").digest()[:8]
        assert_eq!(hash(0, "S7"), 0x5bb7_f576_d99b_203c);
    }

    #[test]
    fn parts_have_the_sizes_8_1_1() {
        let split = Split::by_hash(3, By::Subject);
        let mut sizes = [0; 3];
        for i in 0..100_000 {
            sizes[split.part(&encounter(&format!("S{i}"), "")) as usize] += 1;
        }
        // Five standard deviations of a binomial with n = 100,000.
        for (size, expected, sd) in [(sizes[0], 80_000, 127), (sizes[1], 10_000, 95), (sizes[2], 10_000, 95)]
        {
            assert!(i64::abs(size - expected) < 5 * sd, "{sizes:?}");
        }
    }

    #[test]
    fn a_share_is_part_of_every_larger_one_and_cuts_no_subject() {
        let split = Split::by_hash(3, By::Subject);
        let mut sizes = [0; 3];
        for i in 0..20_000 {
            let (subject, shares) = (format!("S{i}"), [0.01, 0.1, 1.0]);
            let one = shares.map(|share| split.is_in_share(&encounter(&subject, "a"), share));
            let other = shares.map(|share| split.is_in_share(&encounter(&subject, "b"), share));
            assert!(one == other && one.is_sorted(), "{one:?} {other:?}");
            sizes.iter_mut().zip(one).for_each(|(size, is_in)| *size += usize::from(is_in));
        }
        // Five standard deviations of a binomial with n = 20,000.
        assert!(
            sizes[0].abs_diff(200) < 70 && sizes[1].abs_diff(2000) < 212 && sizes[2] == 20_000,
            "{sizes:?}"
        );
        // Shares of parts are as large: the hash is another one than that of the parts.
        let train = |i: &i32| split.part(&encounter(&format!("S{i}"), "")) == SplitPart::Train;
        let inside = |i: &i32| split.is_in_share(&encounter(&format!("S{i}"), ""), 0.1);
        let found = (0..20_000).filter(train).filter(inside).count();
        assert!(found.abs_diff(1600) < 190, "{found}");
    }

    #[test]
    fn what_the_source_says_counts_unless_something_else_is_wanted() {
        let recorded = Encounter { part: Some(SplitPart::Test), ..encounter("S7", "") };
        assert_eq!(Split::by_hash(0, By::Subject).part(&recorded), SplitPart::Train);
        assert_eq!(Split::by_hash(0, By::Recorded).part(&recorded), SplitPart::Test);
        assert_eq!(Split::by_hash(0, By::Recorded).part(&encounter("S7", "")), SplitPart::Train);
    }

    #[test]
    fn a_stratum_is_split_as_exactly_as_whole_numbers_allow() {
        let members = (0..1000u64)
            .map(|i| (hash(0, &i.to_string()), if i < 30 { Stratum::Positive } else { Stratum::Negative }))
            .collect();
        let strata = Strata::new(members);
        let mut positives = [0; 3];
        for i in 0..30u64 {
            let (hash, bounds) = (hash(0, &i.to_string()), strata.bounds(hash(0, &i.to_string())));
            let part = if hash < bounds.train {
                0
            } else if hash < bounds.validation {
                1
            } else {
                2
            };
            positives[part] += 1;
        }
        assert_eq!(positives, [24, 3, 3]);
    }

    proptest! {
        #[test]
        fn a_subject_is_on_one_side(seed: u64, subject in ".{0,20}", ids in prop::collection::vec(".{0,20}", 2..6)) {
            let split = Split::by_hash(seed, By::Subject);
            let first = split.part(&encounter(&subject, &ids[0]));
            for id in &ids {
                prop_assert_eq!(split.part(&encounter(&subject, id)), first);
            }
        }
    }
}
