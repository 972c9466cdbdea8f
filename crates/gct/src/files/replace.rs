//! A new folder in the place of an old one, such that the old one is never lost.
//!
//! Most systems exchange two folders in one step. Where that cannot be done, the old folder steps aside under
//! a name that says whose it is; if the program is killed then, the next command that needs the folder puts
//! it back.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::check::manifest_of;
use super::folder::parent_of;
use crate::error::{OnPath, Result};

/// How the name of a folder begins that has stepped aside: a mark follows, then `-` and its own name.
const REPLACED: &str = ".gct-replaced-";

/// Exchanges two folders in one step.
type Exchange = fn(&Path, &Path) -> io::Result<()>;

/// Exchanges a new folder and the one at `target`. No other process has the same mark.
pub(super) fn replace(new: &Path, target: &Path, mark: &str) -> Result<()> {
    replace_by(exchange, new, target, mark)
}

fn replace_by(exchange: Exchange, new: &Path, target: &Path, mark: &str) -> Result<()> {
    match exchange(new, target) {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            exchange_by_steps(new, target, mark)
        }
        exchanged => exchanged.on("replace", target),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(new: &Path, target: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, new, CWD, target, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

fn exchange_by_steps(new: &Path, target: &Path, mark: &str) -> Result<()> {
    let mut name = OsStr::new(REPLACED).to_owned();
    name.push(mark);
    name.push("-");
    name.push(target.file_name().unwrap_or_default());
    let aside = parent_of(target).join(name);
    fs::rename(target, &aside).on("replace", target)?;
    if let Err(error) = fs::rename(new, target) {
        // Unless another process has put it back.
        if aside.exists() {
            fs::rename(&aside, target).on("put back from", &aside)?;
        }
        return Err(error).on("replace", target);
    }
    // Another process may have removed it, now that it is replaced.
    let _ = fs::rename(&aside, new);
    Ok(())
}

/// Restores a folder that a killed process left aside; or removes it, if that process had put the new one in
/// its place.
pub(super) fn restore(target: &Path) {
    for aside in asides(target) {
        // Fails if something is there.
        if fs::rename(&aside, target).is_ok() {
            log::warn!("{} is as it was before a command that was replacing it was killed", target.display());
        } else if manifest_of(target).is_some() {
            let _ = fs::remove_dir_all(&aside);
        }
    }
}

/// Restores a folder that is not there because a killed process left it aside.
pub(crate) fn restore_missing(folder: &Path) {
    if !folder.exists() {
        restore(folder);
    }
}

/// What has stepped aside for a target.
fn asides(target: &Path) -> Vec<PathBuf> {
    let Some(name) = target.file_name() else { return Vec::new() };
    let is_its = |entry: &fs::DirEntry| {
        let aside = entry.file_name();
        let marked = aside.to_str().and_then(|aside| aside.strip_prefix(REPLACED)?.split_once('-'));
        marked.is_some_and(|(_, own)| own == name)
    };
    let entries = fs::read_dir(parent_of(target)).into_iter().flatten().flatten();
    entries.filter(is_its).map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::check::DATASET_MANIFEST;
    use super::super::temporary::names;
    use super::*;

    /// A folder with `data`, which is old, and `scratch/new`.
    fn home() -> (tempfile::TempDir, [PathBuf; 2]) {
        let home = tempfile::tempdir().unwrap();
        let paths = ["data", "scratch/new"].map(|name| home.path().join(name));
        for (path, what) in paths.iter().zip(["old", "new"]) {
            fs::create_dir_all(path).unwrap();
            fs::write(path.join(DATASET_MANIFEST), format!("{{\"schema_version\": \"{what}\"}}")).unwrap();
        }
        (home, paths)
    }

    fn is(folder: &Path, what: &str) -> bool {
        fs::read_to_string(folder.join(DATASET_MANIFEST)).is_ok_and(|text| text.contains(what))
    }

    fn cannot(_: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[test]
    fn in_one_step_or_in_three_the_two_change_places() {
        for exchange in [exchange as Exchange, cannot] {
            let (home, [data, new]) = home();
            replace_by(exchange, &new, &data, "mark").unwrap();
            assert!(is(&data, "new") && is(&new, "old"));
            assert_eq!(names(home.path()), ["data", "scratch"]);
        }
    }

    #[test]
    fn if_the_new_one_cannot_be_put_there_the_old_one_is_restored() {
        let (home, [data, new]) = home();
        assert!(replace_by(cannot, &new.join("gone"), &data, "mark").is_err());
        assert!(is(&data, "old"));
        assert_eq!(names(home.path()), ["data", "scratch"]);
    }

    #[test]
    fn a_kill_between_two_steps_never_loses_the_old_one() {
        let (home, [data, new]) = home();
        let aside = home.path().join(".gct-replaced-mark-data");
        // After the first step.
        fs::rename(&data, &aside).unwrap();
        restore(&home.path().join("mark-data"));
        restore(&home.path().join("ata"));
        assert!(is(&aside, "old"), "it is of another folder");
        restore_missing(&data);
        assert!(is(&data, "old"));
        assert_eq!(names(home.path()), ["data", "scratch"]);
        // After the second one.
        fs::rename(&data, &aside).unwrap();
        fs::rename(&new, &data).unwrap();
        restore_missing(&data);
        assert!(is(&data, "new") && is(&aside, "old"), "whoever reads removes nothing");
        restore(&data);
        assert!(is(&data, "new"));
        assert_eq!(names(home.path()), ["data", "scratch"]);
    }

    #[test]
    fn what_stepped_aside_for_something_else_stays() {
        let (home, [data, _]) = home();
        let aside = home.path().join(".gct-replaced-mark-data");
        fs::rename(&data, &aside).unwrap();
        fs::create_dir(&data).unwrap();
        fs::write(data.join("thesis"), "").unwrap();
        restore(&data);
        assert!(is(&aside, "old") && names(&data) == ["thesis"]);
    }
}
