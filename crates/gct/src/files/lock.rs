//! Locks that keep two processes from writing to the same run.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use super::folder::parent_of;
use crate::error::{Error, OnPath, Result};

/// Locks the folder that a file is in, as long as the returned file is open. `None` if the file is not there,
/// or if the file system has no locks, which is no reason not to work.
pub(crate) fn lock(file: &Path) -> Result<Option<File>> {
    // Network file systems lock only what is open for writing.
    let opened = match File::options().read(true).write(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => File::open(file),
        opened => opened,
    };
    let opened = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.on("open", file)?,
    };
    match opened.try_lock() {
        Ok(()) => Ok(Some(opened)),
        Err(fs::TryLockError::WouldBlock) => Err(Error::Busy { path: parent_of(file).to_owned() }),
        Err(fs::TryLockError::Error(_)) => Ok(None),
    }
}
