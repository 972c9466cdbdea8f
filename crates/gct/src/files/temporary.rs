//! Temporary folders and files beside what they become. The process that writes one holds a lock on it, so
//! that what a killed process left can be told from what a living one writes, and is removed by the next
//! command that writes there.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use tempfile::{NamedTempFile, TempDir};

use super::folder::parent_of;
use crate::error::{OnPath, Result};

/// How the names of temporary folders and files begin.
const PARTIAL: &str = ".gct-partial-";

/// The file in a temporary folder that its process has locked. A folder itself can be locked on some systems,
/// but on network file systems that lock is not seen by other machines.
const LOCK: &str = ".lock";

/// How often a temporary folder or file is made anew because a sweep took it before it was locked.
const ATTEMPTS: usize = 16;

/// Whether a name is that of a temporary folder or file.
pub(crate) fn is_partial(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PARTIAL.as_bytes())
}

/// A temporary folder that nobody else may read. Dropped, it is deleted with all that is in it; if the
/// process is killed, the next one in the same folder deletes it.
#[derive(Debug)]
pub struct TemporaryFolder {
    // Dropped in this order: deleted while it is locked.
    folder: TempDir,
    _lock: Option<File>,
}

impl TemporaryFolder {
    /// Makes one inside of a folder.
    ///
    /// # Errors
    /// If it cannot be written there.
    pub fn inside(parent: &Path) -> Result<Self> {
        TemporaryFolder::inside_for(parent, parent)
    }

    /// Makes one inside of a folder; an error names what it is for.
    pub(super) fn inside_for(parent: &Path, target: &Path) -> Result<Self> {
        let make = || {
            let folder = builder(0o700).tempdir_in(parent)?;
            let path = folder.path().join(LOCK);
            let (lock, claim) = match open(&path, true) {
                Ok(file) => {
                    let claim = claim(&file, &path);
                    (Some(file), claim)
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => (None, Claim::Others),
                Err(error) => return Err(error),
            };
            Ok((TemporaryFolder { folder, _lock: lock }, claim))
        };
        claimed(parent, make).on("create", target)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The part of its name that no other has.
    pub(super) fn mark(&self) -> &str {
        let name = self.path().file_name().and_then(OsStr::to_str);
        name.and_then(|name| name.strip_prefix(PARTIAL)).expect("it was named so")
    }
}

/// Makes a temporary file inside of a folder; an error names what it is for.
pub(super) fn file_inside(parent: &Path, target: &Path) -> Result<NamedTempFile> {
    let make = || {
        let file = builder(0o666).tempfile_in(parent)?;
        let claim = claim(file.as_file(), file.path());
        Ok((file, claim))
    };
    claimed(parent, make).on("create", target)
}

/// Removes what killed processes left in a folder. Where there are no locks, nothing is removed.
pub(super) fn sweep(folder: &Path) {
    for entry in entries(folder).filter(|entry| is_partial(&entry.file_name())) {
        // What cannot be removed stays: it is in nobody's way.
        let _ = remove_abandoned(&entry.path());
    }
}

/// Removes what killed processes left in a folder and beside it.
pub(crate) fn sweep_around(folder: &Path) {
    sweep(folder);
    sweep(parent_of(folder));
}

/// Removes what killed processes left in a folder and in all folders in it.
pub(crate) fn sweep_all(folder: &Path) {
    sweep(folder);
    for entry in entries(folder) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !is_partial(&entry.file_name()) {
            sweep_all(&entry.path());
        }
    }
}

fn entries(folder: &Path) -> impl Iterator<Item = fs::DirEntry> {
    fs::read_dir(folder).into_iter().flatten().flatten()
}

fn remove_abandoned(path: &Path) -> io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    let lock = match (kind.is_dir(), kind.is_file()) {
        (true, _) => path.join(LOCK),
        (_, true) => path.to_owned(),
        // A link or a device is nothing that this program made.
        _ => return Ok(()),
    };
    // A process can be killed before it has made the lock.
    let held = open(&lock, kind.is_dir())?;
    match claim(&held, &lock) {
        Claim::Own if kind.is_dir() => fs::remove_dir_all(path),
        Claim::Own => fs::remove_file(path),
        Claim::Others | Claim::Unknown => Ok(()),
    }
}

/// Whose a temporary folder or file is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Locked by the file that it was claimed with, as long as that is open.
    Own,
    /// Locked by somebody else, or removed.
    Others,
    /// The file system has no locks.
    Unknown,
}

fn claim(file: &File, path: &Path) -> Claim {
    match file.try_lock() {
        Ok(()) if is_at(file, path) => Claim::Own,
        Ok(()) | Err(TryLockError::WouldBlock) => Claim::Others,
        Err(TryLockError::Error(_)) => Claim::Unknown,
    }
}

/// Makes something and claims it; a sweep can come between the two.
fn claimed<T>(parent: &Path, make: impl Fn() -> io::Result<(T, Claim)>) -> io::Result<T> {
    sweep(parent);
    for _ in 1..ATTEMPTS {
        let (made, claim) = make()?;
        if claim != Claim::Others {
            return Ok(made);
        }
    }
    make().map(|(made, _)| made)
}

/// Opens a file to lock it. Network file systems lock only what is open for writing.
fn open(path: &Path, create: bool) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(create).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NOFOLLOW.bits().cast_signed(),
    );
    options.open(path)
}

/// Whether a file that was opened is still the one at its path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let identity = |found: fs::Metadata| (found.dev(), found.ino());
    let there = fs::symlink_metadata(path).map(identity);
    there.is_ok_and(|there| file.metadata().map(identity).is_ok_and(|opened| opened == there))
}

#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Temporary names; permissions are `mode` less the user's umask, as for anything that a program creates.
fn builder(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PARTIAL);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    #[cfg(not(unix))]
    let _ = mode;
    builder
}

/// The names in a folder, hidden ones included.
#[cfg(test)]
pub(super) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        entries(folder).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn name(path: &Path) -> String {
        path.file_name().unwrap().to_string_lossy().into_owned()
    }

    #[test]
    fn what_a_killed_process_left_goes_and_what_a_living_one_writes_stays() {
        let home = tempfile::tempdir().unwrap();
        let parent = home.path();
        let (folder, file) =
            (TemporaryFolder::inside(parent).unwrap(), file_inside(parent, &parent.join("table")).unwrap());
        for left in ["before-its-lock", "with-rows", "with-rows/new"] {
            fs::create_dir(parent.join(format!("{PARTIAL}{left}"))).unwrap();
        }
        for left in ["with-rows/.lock", "with-rows/new/encounters", "table"] {
            fs::write(parent.join(format!("{PARTIAL}{left}")), "").unwrap();
        }
        fs::write(parent.join("gct-partial-mine"), "").unwrap();
        sweep(parent);
        let mut living = vec![name(folder.path()), name(file.path()), "gct-partial-mine".into()];
        living.sort();
        assert_eq!(names(parent), living);
        drop((folder, file));
        assert_eq!(names(parent), ["gct-partial-mine"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let theirs = home.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        fs::write(theirs.join("thesis"), "").unwrap();
        fs::create_dir(home.path().join(".gct-partial-folder")).unwrap();
        let links = [".gct-partial-link", ".gct-partial-folder/.lock"];
        for (link, to) in links.iter().zip([theirs.clone(), theirs.join("thesis")]) {
            std::os::unix::fs::symlink(to, home.path().join(link)).unwrap();
        }
        sweep_all(home.path());
        assert_eq!(names(&theirs), ["thesis"]);
    }

    #[test]
    fn folders_in_folders_are_swept() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("runs/one/.gct-partial-x/new")).unwrap();
        fs::write(home.path().join("runs/.gct-partial-y"), "").unwrap();
        sweep_all(home.path());
        assert_eq!(names(&home.path().join("runs")), ["one"]);
        assert_eq!(names(&home.path().join("runs/one")), [""; 0]);
    }

    /// Making and locking are two steps, and a sweep can come between them.
    #[test]
    fn nobody_sweeps_away_what_is_being_made() {
        let home = tempfile::tempdir().unwrap();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    sweep(home.path());
                }
            });
            for _ in 0..500 {
                let folder = TemporaryFolder::inside(home.path()).unwrap();
                let file = file_inside(folder.path(), folder.path()).unwrap();
                assert!(file.path().exists());
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(names(home.path()), [""; 0]);
    }
}
