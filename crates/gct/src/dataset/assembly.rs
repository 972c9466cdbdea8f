//! A dataset folder whose encounters another program writes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::decode::Decoder;
use super::manifest::{ENCOUNTERS, Files, KIND, Manifest, SCHEMA_VERSION, Source, VOCABULARY, part_name};
use super::order::{ENCOUNTERS_PER_PART, parts_for};
use super::read::{Encounters, open_parts, read_vocabulary};
use super::verify::Counts;
use super::write::write_vocabulary;
use crate::error::{OnPath, Result};
use crate::files::{FileEntry, Overwrite, PendingFolder};
use crate::job::Job;
use crate::record::{CodeKind, PerKind, Vocabulary};

/// A dataset folder in the making, whose parts a query engine writes. Dropped before [`Assembly::finish`], it
/// leaves nothing behind.
pub struct Assembly {
    folder: PendingFolder,
    encounters_per_part: u64,
}

impl Assembly {
    /// Begins a folder at `path`.
    ///
    /// # Errors
    /// If `path` exists and may not be replaced, or cannot be written.
    pub fn create(path: &Path, overwrite: Overwrite) -> Result<Self> {
        let folder = PendingFolder::create(path, overwrite, KIND)?;
        let encounters = folder.path().join(ENCOUNTERS);
        fs::create_dir(&encounters).on("create", &encounters)?;
        Ok(Assembly { folder, encounters_per_part: ENCOUNTERS_PER_PART })
    }

    /// Makes parts of another size than [`ENCOUNTERS_PER_PART`].
    pub fn with_encounters_per_part(self, encounters_per_part: u64) -> Self {
        Assembly { encounters_per_part, ..self }
    }

    /// Where the folder is meanwhile.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder that it will be in.
    pub fn parent(&self) -> &Path {
        self.folder.parent()
    }

    /// The folder of the parts.
    pub fn encounters(&self) -> PathBuf {
        self.folder().join(ENCOUNTERS)
    }

    /// Where so many encounters belong: a file per part. Which part a subject is in,
    /// [`part_of`](super::part_of) says.
    pub fn parts(&self, encounters: u64) -> Vec<PathBuf> {
        let parts = parts_for(encounters, self.encounters_per_part);
        (0..parts).map(|part| self.folder().join(part_name(part))).collect()
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
        let parts = self.parts(encounters);
        let tables = open_parts(folder, parts.clone(), &labels, sizes.context > 0, encounters)?;
        let read = Encounters::read(tables, Decoder::new(sizes, &labels, true), true)?;
        let counts = Counts::of(read, sizes, job)?;
        for kind in CodeKind::ALL {
            let codes = vocabulary[kind].iter_mut().zip(&counts.of_codes[kind]);
            codes.for_each(|(code, count)| code.count = *count);
        }
        let parts = parts.iter().map(|part| synced(part)).collect::<Result<_>>()?;
        let files = Files::new(parts, write_vocabulary(folder, &vocabulary)?);
        // Codes are of the source, and can be what a vocabulary does not allow.
        read_vocabulary(&folder.join(VOCABULARY), sizes)?;
        let manifest = Manifest {
            schema_version: SCHEMA_VERSION,
            program: concat!("gct ", env!("CARGO_PKG_VERSION")).into(),
            source,
            encounters,
            vocabulary: sizes,
            codes: counts.codes(),
            with_edges: counts.with_edges,
            labels,
            files,
        };
        manifest.write(folder)?;
        self.folder.commit()?;
        Ok(manifest)
    }
}

/// Hashes a file that another program wrote, having synced it.
fn synced(path: &Path) -> Result<FileEntry> {
    File::options().write(true).open(path).and_then(|file| file.sync_all()).on("write", path)?;
    FileEntry::of(path)
}
