//! A dataset folder whose encounters another program writes.

use std::path::{Path, PathBuf};

use super::manifest::{ENCOUNTERS, Files, KIND, Manifest, SCHEMA_VERSION, Source, VOCABULARY};
use super::read::{Encounters, open_encounters, read_vocabulary};
use super::write::write_vocabulary;
use crate::error::Result;
use crate::files::{FileEntry, Overwrite, PendingFolder};
use crate::job::Job;
use crate::record::{CodeKind, PerKind, Vocabulary};

/// A dataset folder in the making, whose `encounters.parquet` a query engine writes. Dropped before
/// [`Assembly::finish`], it leaves nothing behind.
pub struct Assembly {
    folder: PendingFolder,
}

impl Assembly {
    /// Begins a folder at `path`.
    ///
    /// # Errors
    /// If `path` exists and may not be replaced, or cannot be written.
    pub fn create(path: &Path, overwrite: Overwrite) -> Result<Self> {
        Ok(Assembly { folder: PendingFolder::create(path, overwrite, KIND)? })
    }

    /// Where the folder is meanwhile.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that it will be in.
    pub fn parent(&self) -> &Path {
        self.folder.parent()
    }

    /// Where the encounters belong.
    pub fn encounters(&self) -> PathBuf {
        self.folder().join(ENCOUNTERS)
    }

    /// Reads every encounter that was written, refuses what is not as it should be, and renames the folder to
    /// its path. This is where codes are counted: the counts of the vocabulary are filled in. The job is told
    /// how many encounters are read.
    ///
    /// # Errors
    /// If a row is bad, the disk refuses, or the job is stopped; then nothing is left behind.
    pub fn finish(
        self,
        source: Source,
        mut vocabulary: Vocabulary,
        labels: Vec<String>,
        encounters: u64,
        job: &Job<'_, u64>,
    ) -> Result<Manifest> {
        let folder = self.folder.path();
        let sizes = PerKind::from_fn(|kind| vocabulary[kind].len() as u64);
        let mut counts = PerKind::from_fn(|kind| vec![0; vocabulary[kind].len()]);
        let mut with_edges = 0;
        let table = open_encounters(folder, &labels, sizes.context > 0, encounters)?;
        for (row, encounter) in (1..).zip(Encounters::read(&table, sizes, &labels, true)?) {
            let encounter = encounter?;
            for kind in CodeKind::ALL {
                encounter.codes[kind].iter().for_each(|id| counts[kind][*id as usize] += 1);
            }
            with_edges += u64::from(encounter.edges.is_some());
            if row % 4096 == 0 {
                job.advance(row)?;
            }
        }
        for kind in CodeKind::ALL {
            vocabulary[kind].iter_mut().zip(&counts[kind]).for_each(|(code, count)| code.count = *count);
        }
        let files = Files {
            encounters: FileEntry::of(&self.encounters())?,
            vocabulary: write_vocabulary(folder, &vocabulary)?,
        };
        // Codes are of the source, and can be what a vocabulary does not allow.
        read_vocabulary(&folder.join(VOCABULARY), sizes)?;
        let manifest = Manifest {
            schema_version: SCHEMA_VERSION,
            program: concat!("gct ", env!("CARGO_PKG_VERSION")).into(),
            source,
            encounters,
            vocabulary: sizes,
            codes: PerKind::from_fn(|kind| counts[kind].iter().sum()),
            with_edges,
            labels,
            files,
        };
        manifest.write(folder)?;
        self.folder.commit()?;
        Ok(manifest)
    }
}
