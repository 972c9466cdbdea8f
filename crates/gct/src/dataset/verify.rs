//! What opening a dataset does not check because it takes longer: every byte, and every row.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::manifest::{MANIFEST, VOCABULARY};
use super::read::{Dataset, Encounters};
use crate::error::{Error, Result};
use crate::files::FileEntry;
use crate::job::Job;
use crate::record::{CodeKind, PerKind};

/// What encounters hold, counted.
pub(super) struct Counts {
    /// In how many encounters each code is.
    pub(super) of_codes: PerKind<Vec<u64>>,
    /// How many encounters have known edges.
    pub(super) with_edges: u64,
}

impl Counts {
    /// Reads encounters to the end, for vocabularies of these sizes. The job is told how many are read.
    pub(super) fn of(encounters: Encounters, sizes: PerKind<u64>, job: &Job<'_, u64>) -> Result<Self> {
        let of_codes = PerKind::from_fn(|kind| vec![0; sizes[kind] as usize]);
        let mut counts = Counts { of_codes, with_edges: 0 };
        for (row, encounter) in (1..).zip(encounters) {
            let encounter = encounter?;
            for kind in CodeKind::ALL {
                encounter.codes[kind].iter().for_each(|id| counts.of_codes[kind][*id as usize] += 1);
            }
            counts.with_edges += u64::from(encounter.edges.is_some());
            if row % 4096 == 0 {
                job.advance(row)?;
            }
        }
        Ok(counts)
    }

    /// How many codes of each kind there are, all together.
    pub(super) fn codes(&self) -> PerKind<u64> {
        PerKind::from_fn(|kind| self.of_codes[kind].iter().sum())
    }
}

impl Dataset {
    /// Refuses files that are not the ones that were written, by their SHA-256. An open dataset is hashed
    /// once. The job is told how many bytes are read.
    ///
    /// # Errors
    /// Names the first such file, or a row in it that breaks a rule; if the job is stopped.
    pub fn check_hashes(&self, job: &Job<'_, u64>) -> Result<()> {
        if self.hashed.get().is_some() {
            return Ok(());
        }
        let read = AtomicU64::new(0);
        let changed = |(name, entry): &(&str, &FileEntry)| -> Result<Option<PathBuf>> {
            let path = self.path().join(name);
            let found = FileEntry::of_with(&path, |bytes| {
                job.advance(read.fetch_add(bytes, Ordering::Relaxed) + bytes)
            })?;
            Ok((found != **entry).then_some(path))
        };
        let files: Vec<_> = self.manifest().files.all().collect();
        let changed: Vec<Result<Option<PathBuf>>> = files.par_iter().map(changed).collect();
        for file in changed {
            if let Some(path) = file? {
                return Err(self.why_changed(path));
            }
        }
        self.hashed.get_or_init(|| ());
        Ok(())
    }

    /// Reads every encounter, and refuses counts in the vocabulary and in `dataset.json` that are not those
    /// of the encounters. The job is told how many are read.
    ///
    /// # Errors
    /// If a row breaks a rule, or a count is another; if the job is stopped.
    pub fn check_rows(&self, job: &Job<'_, u64>) -> Result<()> {
        let manifest = self.manifest();
        let counts = Counts::of(self.encounters()?, manifest.vocabulary, job)?;
        let malformed = |problem| Err(Error::Malformed { path: self.path().join(MANIFEST), problem });
        if counts.with_edges != manifest.with_edges {
            let (said, found) = (manifest.with_edges, counts.with_edges);
            return malformed(format!("with_edges is {said}, but {found} encounters have known edges"));
        }
        for kind in CodeKind::ALL {
            let (said, found) = (manifest.codes[kind], counts.codes()[kind]);
            if said != found {
                return malformed(format!(
                    "codes.{} is {said}, but the encounters have {found}",
                    kind.name()
                ));
            }
            let codes = self.vocabulary()[kind].iter().zip(&counts.of_codes[kind]);
            if codes.into_iter().any(|(code, count)| code.count != *count) {
                let problem = format!("column `count` is wrong for a {} code", kind.name());
                return Err(Error::Damaged { path: self.path().join(VOCABULARY), problem });
            }
        }
        Ok(())
    }
}
