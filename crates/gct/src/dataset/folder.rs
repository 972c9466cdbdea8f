//! Folders and files that appear whole or not at all: written beside, synced, renamed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use super::manifest::{ENCOUNTERS, FileEntry, MANIFEST, VOCABULARY};
use crate::error::{Error, OnPath, Result};

/// What to do when the output is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Refuse.
    Refuse,
    /// Replace it, if it is nothing but a dataset.
    Replace,
}

/// A folder in the making. Dropped before [`PendingFolder::commit`], it leaves nothing behind.
pub(super) struct PendingFolder {
    temporary: TempDir,
    target: PathBuf,
    overwrite: Overwrite,
}

impl PendingFolder {
    pub(super) fn create(target: &Path, overwrite: Overwrite) -> Result<Self> {
        check_replaceable(target, overwrite)?;
        let temporary = beside(target, 0o777, |builder, parent| builder.tempdir_in(parent))?;
        Ok(PendingFolder { temporary, target: target.to_owned(), overwrite })
    }

    pub(super) fn path(&self) -> &Path {
        self.temporary.path()
    }

    /// Puts the finished folder in its place.
    pub(super) fn commit(self) -> Result<()> {
        sync_folder(self.path())?;
        check_replaceable(&self.target, self.overwrite)?;
        // The old dataset steps aside first and is deleted last, so that at any moment one of the two is whole.
        let aside = if self.target.exists() {
            let aside = beside(&self.target, 0o700, |builder, parent| builder.tempdir_in(parent))?;
            fs::rename(&self.target, aside.path().join("old")).on("replace", &self.target)?;
            Some(aside)
        } else {
            None
        };
        if let Err(error) = fs::rename(self.temporary.path(), &self.target) {
            if let Some(aside) = &aside {
                fs::rename(aside.path().join("old"), &self.target).on("restore", &self.target)?;
            }
            return Err(error).on("create", &self.target);
        }
        // Renamed away: there is nothing left for the guard to delete.
        let _ = self.temporary.keep();
        sync_folder(parent_of(&self.target))
    }
}

/// Refuses an existing target, or, when it may be replaced, one that holds anything but a dataset.
fn check_replaceable(target: &Path, overwrite: Overwrite) -> Result<()> {
    match fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found.on("look at", target)?,
    };
    if overwrite == Overwrite::Refuse || target.file_name().is_none() {
        return Err(Error::OutputExists { path: target.to_owned() });
    }
    for entry in fs::read_dir(target).on("replace", target)? {
        let name = entry.on("replace", target)?.file_name();
        if ![MANIFEST, ENCOUNTERS, VOCABULARY].iter().any(|ours| name == *ours) {
            let file = name.to_string_lossy().into_owned();
            return Err(Error::NotReplaceable { path: target.to_owned(), file });
        }
    }
    Ok(())
}

/// Makes a temporary file or folder in the same folder as `target`, so that a rename can put it in place; its
/// permissions are `mode` less the user's umask, as for anything that a program creates.
fn beside<T>(
    target: &Path,
    mode: u32,
    make: impl FnOnce(&tempfile::Builder<'_, '_>, &Path) -> io::Result<T>,
) -> Result<T> {
    let parent = parent_of(target);
    fs::create_dir_all(parent).on("create", parent)?;
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.partial-");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    make(&builder, parent).on("create", target)
}

/// Writes one file that appears whole or not at all.
pub(super) fn write_file(
    target: &Path,
    overwrite: Overwrite,
    write: impl FnOnce(&File) -> Result<()>,
) -> Result<()> {
    if overwrite == Overwrite::Refuse && target.exists() {
        return Err(Error::OutputExists { path: target.to_owned() });
    }
    let temporary = beside(target, 0o666, |builder, parent| builder.tempfile_in(parent))?;
    write(temporary.as_file())?;
    temporary.as_file().sync_all().on("write", target)?;
    temporary.persist(target).map_err(|error| error.error).on("create", target)?;
    sync_folder(parent_of(target))
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

fn sync_folder(path: &Path) -> Result<()> {
    // Only Unix can sync a folder.
    if cfg!(unix) { File::open(path).and_then(|folder| folder.sync_all()).on("write", path) } else { Ok(()) }
}

/// A file that is counted and hashed as it is written.
pub(super) struct HashedFile {
    file: BufWriter<File>,
    path: PathBuf,
    bytes: u64,
    hash: Sha256,
}

impl HashedFile {
    pub(super) fn create(path: PathBuf) -> Result<Self> {
        let file = BufWriter::new(File::create(&path).on("write", &path)?);
        Ok(HashedFile { file, path, bytes: 0, hash: Sha256::new() })
    }

    pub(super) fn finish(mut self) -> Result<FileEntry> {
        self.file.flush().and_then(|()| self.file.get_ref().sync_all()).on("write", &self.path)?;
        Ok(FileEntry { bytes: self.bytes, sha256: hex(&self.hash.finalize()) })
    }
}

impl Write for HashedFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.file.write(data)?;
        self.bytes += written as u64;
        self.hash.update(&data[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Counts and hashes a file as it is on disk.
pub(super) fn entry_of(path: &Path) -> Result<FileEntry> {
    let mut file = File::open(path).on("read", path)?;
    let mut buffer = vec![0; 1 << 20];
    let (mut bytes, mut hash) = (0, Sha256::new());
    loop {
        let read = file.read(&mut buffer).on("read", path)?;
        if read == 0 {
            return Ok(FileEntry { bytes, sha256: hex(&hash.finalize()) });
        }
        bytes += read as u64;
        hash.update(&buffer[..read]);
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_dropped_folder_leaves_nothing_and_a_committed_one_is_there() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("data");
        let pending = PendingFolder::create(&target, Overwrite::Refuse).unwrap();
        fs::write(pending.path().join(MANIFEST), "{}").unwrap();
        drop(pending);
        assert_eq!(names(home.path()), [""; 0]);

        let pending = PendingFolder::create(&target, Overwrite::Refuse).unwrap();
        fs::write(pending.path().join(MANIFEST), "{}").unwrap();
        pending.commit().unwrap();
        assert_eq!(names(home.path()), ["data"]);
        assert_eq!(names(&target), [MANIFEST]);
    }

    #[test]
    fn a_dataset_is_replaced_only_on_request_and_anything_else_never() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("data");
        fs::create_dir(&target).unwrap();
        fs::write(target.join(MANIFEST), "old").unwrap();
        assert!(matches!(PendingFolder::create(&target, Overwrite::Refuse), Err(Error::OutputExists { .. })));

        let pending = PendingFolder::create(&target, Overwrite::Replace).unwrap();
        fs::write(pending.path().join(MANIFEST), "new").unwrap();
        pending.commit().unwrap();
        assert_eq!(fs::read_to_string(target.join(MANIFEST)).unwrap(), "new");
        assert_eq!(names(home.path()), ["data"]);

        fs::write(target.join("thesis.docx"), "years of work").unwrap();
        let refused = PendingFolder::create(&target, Overwrite::Replace).err().unwrap();
        assert!(refused.to_string().contains("thesis.docx"), "{refused}");
        assert_eq!(names(&target), [MANIFEST, "thesis.docx"]);
    }

    #[test]
    fn a_file_is_hashed_alike_on_the_way_in_and_out() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let mut file = HashedFile::create(path.clone()).unwrap();
        file.write_all(b"abc").unwrap();
        let entry = file.finish().unwrap();
        assert_eq!(entry.bytes, 3);
        assert_eq!(entry.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(entry_of(&path).unwrap(), entry);
    }
}
