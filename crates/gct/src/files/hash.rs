//! Sizes and SHA-256 of files.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::input;
use crate::error::{OnPath, Result};

/// Size and hash of a file, as noted when it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// Its size.
    pub bytes: u64,
    /// Its hash, as `sha256sum` prints it.
    pub sha256: String,
}

impl FileEntry {
    /// Reads a file and hashes it.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        FileEntry::of_with(path, |_| Ok(()))
    }

    /// [`FileEntry::of`]; `each` is told how many bytes were read, again and again, and can end it.
    pub(crate) fn of_with(path: &Path, each: impl Fn(u64) -> Result<()>) -> Result<Self> {
        let mut file = input::open(path).on("read", path)?;
        let mut buffer = vec![0; 1 << 20];
        let (mut bytes, mut hash) = (0, Sha256::new());
        loop {
            let read = file.read(&mut buffer).on("read", path)?;
            if read == 0 {
                return Ok(FileEntry { bytes, sha256: hex(&hash.finalize()) });
            }
            bytes += read as u64;
            hash.update(&buffer[..read]);
            each(read as u64)?;
        }
    }
}

/// A file that is counted and hashed as it is written.
pub(crate) struct HashedFile {
    file: BufWriter<File>,
    path: PathBuf,
    bytes: u64,
    hash: Sha256,
}

impl HashedFile {
    pub(crate) fn create(path: PathBuf) -> Result<Self> {
        let file = BufWriter::new(File::create(&path).on("write", &path)?);
        Ok(HashedFile { file, path, bytes: 0, hash: Sha256::new() })
    }

    pub(crate) fn finish(mut self) -> Result<FileEntry> {
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

/// Bytes as lowercase hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hashed_alike_on_the_way_in_and_out() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let mut file = HashedFile::create(path.clone()).unwrap();
        file.write_all(b"abc").unwrap();
        let entry = file.finish().unwrap();
        assert_eq!(entry.bytes, 3);
        assert_eq!(entry.sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(FileEntry::of(&path).unwrap(), entry);
    }
}
