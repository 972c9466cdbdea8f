//! Files that appear whole or not at all: written beside, synced, renamed.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::check::{Overwrite, check_file};
use super::folder::{NewParents, parent_of, sync_folder};
use super::temporary::file_inside;
use crate::error::{OnPath, Result};

/// A file in the making. Dropped before [`PendingFile::commit`], it leaves nothing behind.
pub(crate) struct PendingFile {
    // Dropped in this order, as in a pending folder.
    temporary: NamedTempFile,
    parents: NewParents,
    target: PathBuf,
    overwrite: Overwrite,
}

impl PendingFile {
    /// Begins one.
    pub(crate) fn create(target: &Path, overwrite: Overwrite) -> Result<Self> {
        check_file(target, overwrite)?;
        PendingFile::beside(target, overwrite)
    }

    fn beside(target: &Path, overwrite: Overwrite) -> Result<Self> {
        let parents = NewParents::of(target)?;
        let temporary = file_inside(parent_of(target), target)?;
        Ok(PendingFile { temporary, parents, target: target.to_owned(), overwrite })
    }

    /// The file.
    pub(crate) fn file(&self) -> &File {
        self.temporary.as_file()
    }

    /// Where it will be.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Renames the finished file to its target.
    pub(crate) fn commit(self) -> Result<()> {
        let PendingFile { temporary, parents, target, overwrite } = self;
        temporary.as_file().sync_all().on("write", &target)?;
        let persisted = match overwrite {
            Overwrite::Refuse => temporary.persist_noclobber(&target),
            Overwrite::Replace => temporary.persist(&target),
        };
        if let Err(error) = persisted {
            return overwrite.refused(error.error, &target);
        }
        parents.keep();
        sync_folder(parent_of(&target))
    }
}

/// Writes one file that appears whole or not at all.
pub(crate) fn write_file(
    target: &Path,
    overwrite: Overwrite,
    write: impl FnOnce(&File) -> Result<()>,
) -> Result<()> {
    let pending = PendingFile::create(target, overwrite)?;
    write(pending.file())?;
    pending.commit()
}

/// Writes or replaces a file inside a run or another folder of ours, where [`write_file`] refuses to write.
pub(crate) fn write_own(target: &Path, bytes: &[u8]) -> Result<()> {
    let pending = PendingFile::beside(target, Overwrite::Replace)?;
    pending.file().write_all(bytes).on("write", target)?;
    pending.commit()
}

/// Writes a text to a file that appears whole or not at all.
///
/// # Errors
/// If the file is there and may not be replaced, or cannot be written.
pub fn write_text(target: &Path, overwrite: Overwrite, text: &str) -> Result<()> {
    write_file(target, overwrite, |mut file| file.write_all(text.as_bytes()).on("write", target))
}

/// Copies a file; the copy appears whole or not at all.
///
/// # Errors
/// If a file is there and may not be replaced, or it cannot be written.
pub fn copy_file(from: &Path, target: &Path, overwrite: Overwrite) -> Result<()> {
    write_file(target, overwrite, |mut file| {
        let mut from_file = File::open(from).on("read", from)?;
        io::copy(&mut from_file, &mut file).on("write", target)?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::error::Error;

    #[test]
    fn who_comes_second_learns_that_it_exists() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("plan");
        let pending = PendingFile::create(&target, Overwrite::Refuse).unwrap();
        fs::write(&target, "theirs").unwrap();
        assert!(matches!(pending.commit(), Err(Error::OutputExists { .. })));
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
    }
}
