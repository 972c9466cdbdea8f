//! Whom a run learned from, as salted hashes: so that a test on other data does not take them for new
//! patients.
//!
//! A subject is recognised by its identifier. Identifiers change when data are pseudonymised again, so an
//! encounter is recognised by its codes too, if it has so many that two patients hardly ever share them all.
//! Synthetic subjects are numbered from one in every dataset: only their codes count.
//!
//! The hashes keep identifiers out of the folder. They do not stop somebody who has a list of identifiers
//! from checking who of them was learned from.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, StringArray, UInt64Array};
use arrow_schema::{DataType, Field, Schema};
use sha2::{Digest, Sha256};

use crate::dataset::{self, Dataset, Table};
use crate::error::{Error, Result};
use crate::files::{FileEntry, Overwrite};
use crate::ingest::synthetic;
use crate::record::{CodeKind, Encounter, PerKind};

/// An encounter with fewer codes is not recognised by them.
const ENOUGH_CODES: usize = 10;

/// What a hash is of.
const SUBJECT: &str = "subject";
const CODES: &str = "codes";

/// The encounters that models learn from or are chosen by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Learned {
    /// How many encounters.
    encounters: u64,
    /// Hashes of their subjects, sorted.
    subjects: Vec<u64>,
    /// Hashes of their codes, sorted.
    codes: Vec<u64>,
}

/// Hashes the encounters of one dataset.
pub(crate) struct Hasher {
    salt: String,
    /// Whether identifiers of subjects mean the same in other datasets.
    subjects: bool,
    codes: PerKind<Vec<u64>>,
}

impl Hasher {
    /// `salt` is the hash of the dataset that was learned from; `dataset` is the one whose encounters are
    /// hashed.
    pub(crate) fn new(salt: &str, dataset: &Dataset) -> Self {
        let mut hasher = Hasher {
            salt: salt.to_owned(),
            subjects: dataset.manifest().source.kind != synthetic::SOURCE,
            codes: PerKind::default(),
        };
        hasher.codes = PerKind::from_fn(|kind| {
            let codes = dataset.vocabulary()[kind].iter();
            codes.map(|code| hasher.hash(kind.name(), &code.code)).collect()
        });
        hasher
    }

    fn hash(&self, what: &str, text: &str) -> u64 {
        let digest =
            Sha256::new().chain_update(format!("gct-learned-1\0{}\0{what}\0{text}", self.salt)).finalize();
        u64::from_be_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes"))
    }

    fn subject(&self, encounter: &Encounter) -> Option<u64> {
        self.subjects.then(|| self.hash(SUBJECT, encounter.subject.as_str()))
    }

    /// The sum of the hashes of the codes, whose order does not matter.
    fn codes(&self, encounter: &Encounter) -> Option<u64> {
        let of_kind = |kind: CodeKind| encounter.codes[kind].iter().map(move |id| (kind, *id as usize));
        let codes: Vec<_> = CodeKind::ALL.into_iter().flat_map(of_kind).collect();
        let sum = |sum: u64, (kind, id): &(CodeKind, usize)| sum.wrapping_add(self.codes[*kind][*id]);
        (codes.len() >= ENOUGH_CODES).then(|| codes.iter().fold(0, sum))
    }
}

impl Learned {
    pub(crate) fn add(&mut self, hasher: &Hasher, encounter: &Encounter) {
        self.encounters += 1;
        self.subjects.extend(hasher.subject(encounter));
        self.codes.extend(hasher.codes(encounter));
    }

    /// How many encounters were learned from.
    pub(crate) fn encounters(&self) -> u64 {
        self.encounters
    }

    /// Whether an encounter, or another one of its subject, was learned from.
    pub(crate) fn knows(&self, hasher: &Hasher, encounter: &Encounter) -> bool {
        let among =
            |hashes: &[u64], hash: Option<u64>| hash.is_some_and(|h| hashes.binary_search(&h).is_ok());
        among(&self.subjects, hasher.subject(encounter)) || among(&self.codes, hasher.codes(encounter))
    }

    /// Writes the hashes in the order of their values, which tells nothing about the order of the encounters.
    pub(crate) fn save(&mut self, path: &Path) -> Result<FileEntry> {
        for hashes in [&mut self.subjects, &mut self.codes] {
            hashes.sort_unstable();
            hashes.dedup();
        }
        let rows = [(SUBJECT, &self.subjects), (CODES, &self.codes)];
        let rows: Vec<(&str, u64)> =
            rows.iter().flat_map(|(what, hashes)| hashes.iter().map(|hash| (*what, *hash))).collect();
        let columns: Vec<(_, ArrayRef)> = vec![
            ("what", Arc::new(StringArray::from_iter_values(rows.iter().map(|(what, _)| what)))),
            ("hash", Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(_, hash)| *hash)))),
        ];
        dataset::write_table(path, Overwrite::Refuse, columns)?;
        FileEntry::of(path)
    }

    /// Reads the hashes of so many encounters.
    pub(crate) fn load(path: &Path, encounters: u64) -> Result<Self> {
        let schema = Schema::new(vec![
            Field::new("what", DataType::Utf8, false),
            Field::new("hash", DataType::UInt64, false),
        ]);
        let damaged = |problem: String| Error::Damaged { path: path.to_owned(), problem };
        let mut learned = Learned { encounters, ..Learned::default() };
        for batch in Table::open(path.to_owned(), &schema, None)?.batches()? {
            let batch = batch.map_err(|error| damaged(error.to_string()))?;
            let (what, hashes) =
                (batch.column(0).as_string::<i32>(), batch.column(1).as_primitive::<UInt64Type>());
            for (what, hash) in what.iter().flatten().zip(hashes.values()) {
                match what {
                    SUBJECT => learned.subjects.push(*hash),
                    CODES => learned.codes.push(*hash),
                    _ => {
                        return Err(damaged("it has rows that are neither of a subject nor of codes".into()));
                    }
                }
            }
        }
        Ok(learned)
    }
}
