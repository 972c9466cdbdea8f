//! What may be written where: nothing is replaced but what this program wrote, and nothing is written
//! inside a dataset or a run.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{self, Path};

use super::folder::parent_of;
use super::input;
use super::replace::restore;
use super::temporary::{is_partial, sweep};
use crate::error::{Error, OnPath, Result};

/// Name of the manifest of a dataset folder.
pub(crate) const DATASET_MANIFEST: &str = "dataset.json";

/// Name of the manifest of a run folder.
pub(crate) const RUN_MANIFEST: &str = "run.json";

/// What to do when the output is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Refuse.
    Refuse,
    /// Replace it, if it is nothing but what this program would write there.
    Replace,
}

impl Overwrite {
    /// The error of a failed rename: another process may have written the target first.
    pub(super) fn refused(self, error: io::Error, target: &Path) -> Result<()> {
        match (self, error.kind()) {
            (Overwrite::Refuse, io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) => {
                Err(Error::OutputExists { path: target.to_owned() })
            }
            _ => Err(error).on("create", target),
        }
    }
}

/// One kind of folder that this program writes. Folders of other kinds are never replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FolderKind {
    /// Its name in messages: "dataset", "run".
    pub(crate) name: &'static str,
    /// Name of its manifest, which is JSON with a `schema_version`.
    pub(crate) manifest: &'static str,
    /// Name of the folder that it may have, without folders in it.
    pub(crate) subfolder: Option<&'static str>,
    /// Whether a file with this path inside of it, written with `/`, belongs to it.
    pub(crate) holds: fn(&str) -> bool,
}

/// Refuses a path inside a dataset or a run, and an existing folder, or, when it may be replaced, one that
/// is neither empty nor of this kind. What a killed process left there is removed, or restored, first.
pub(crate) fn check_folder(target: &Path, overwrite: Overwrite, kind: FolderKind) -> Result<()> {
    restore(target);
    sweep(parent_of(target));
    check_outside(target)?;
    let Some(found) = look_at(target)? else { return Ok(()) };
    if overwrite == Overwrite::Refuse {
        return Err(Error::OutputExists { path: target.to_owned() });
    }
    let refuse = |problem: String| Error::NotReplaceable { path: target.to_owned(), problem };
    if !found.is_dir() {
        return Err(refuse("it is not a folder".into()));
    }
    if target.file_name().is_none() {
        return Err(refuse("`.`, `..` and `/` cannot be replaced".into()));
    }
    let mut found = contents(target, "")?;
    let subfolder = found.iter().position(|(name, of)| of.is_dir() && kind.subfolder == Some(name));
    if let Some((name, _)) = subfolder.map(|position| found.remove(position)) {
        found.extend(contents(&target.join(&name), &format!("{name}/"))?);
    }
    if let Some((name, _)) = found.iter().find(|(name, of)| !of.is_file() || !(kind.holds)(name)) {
        return Err(refuse(format!("it holds `{name}`, which is not part of a {}", kind.name)));
    }
    if !found.is_empty() && !is_manifest(&target.join(kind.manifest)) {
        return Err(refuse(format!("its {} is not that of a {}", kind.manifest, kind.name)));
    }
    Ok(())
}

/// Names of what is in a folder, after a prefix, and what each is. What a killed process left is not counted.
fn contents(folder: &Path, prefix: &str) -> Result<Vec<(String, fs::FileType)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).on("replace", folder)? {
        let entry = entry.on("replace", folder)?;
        if !is_partial(&entry.file_name()) {
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            found.push((name, entry.file_type().on("replace", folder)?));
        }
    }
    Ok(found)
}

/// Refuses an existing file, or, when it may be replaced, anything but a plain file; and a path inside a
/// dataset or a run. What a killed process left there is removed first.
pub fn check_file(target: &Path, overwrite: Overwrite) -> Result<()> {
    sweep(parent_of(target));
    check_outside(target)?;
    let refuse = |problem: &str| Error::NotReplaceable { path: target.to_owned(), problem: problem.into() };
    match look_at(target)? {
        Some(_) if overwrite == Overwrite::Refuse => Err(Error::OutputExists { path: target.to_owned() }),
        Some(found) if !found.is_file() => Err(refuse("it is not a plain file")),
        _ => Ok(()),
    }
}

/// Refuses a name that promises another format than the one that is written.
pub fn check_ending(file: &Path, endings: &'static [&'static str]) -> Result<()> {
    let is_allowed = |ending: &OsStr| endings.iter().any(|allowed| ending.eq_ignore_ascii_case(allowed));
    if file.extension().is_none_or(is_allowed) {
        return Ok(());
    }
    Err(Error::Ending { path: file.to_owned(), endings })
}

/// Refuses a path inside a dataset or a run, however deep: what is there is this program's own.
pub(crate) fn check_outside(target: &Path) -> Result<()> {
    let refuse = |problem: &str| Error::NotReplaceable { path: target.to_owned(), problem: problem.into() };
    let target_folder = path::absolute(parent_of(target)).on("look at", target)?;
    // Of what is not there yet, nothing can be a dataset.
    let there = target_folder.ancestors().find_map(|above| above.canonicalize().ok());
    match there.unwrap_or_default().ancestors().find_map(manifest_of) {
        Some(DATASET_MANIFEST) => Err(refuse("it would be inside a dataset")),
        Some(_) => Err(refuse("it would be inside a run")),
        None => Ok(()),
    }
}

/// Name of the manifest of a folder, if it is a dataset or a run.
pub(super) fn manifest_of(folder: &Path) -> Option<&'static str> {
    [DATASET_MANIFEST, RUN_MANIFEST].into_iter().find(|name| is_manifest(&folder.join(name)))
}

/// What is there, links not followed.
fn look_at(path: &Path) -> Result<Option<fs::Metadata>> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        found => found.on("look at", path).map(Some),
    }
}

/// Whether a file is the manifest of a folder of this program, of whatever version.
fn is_manifest(path: &Path) -> bool {
    let parsed =
        input::read(path).ok().and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    parsed.is_some_and(|manifest| manifest.get("schema_version").is_some())
}

/// What tests write.
#[cfg(test)]
pub(super) const DATASET: FolderKind = FolderKind {
    name: "dataset",
    manifest: DATASET_MANIFEST,
    subfolder: Some("encounters"),
    holds: |name| [DATASET_MANIFEST, "encounters/part", "vocabulary.parquet"].contains(&name),
};

/// The least that a manifest holds.
#[cfg(test)]
pub(super) const CONTENTS: &str = "{\"schema_version\": 1}";

#[cfg(test)]
mod tests {
    use super::super::temporary::names;
    use super::*;

    #[test]
    fn a_folder_that_came_between_the_last_look_and_the_rename_is_named() {
        let home = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| home.path().join(name));
        fs::create_dir(&ours).unwrap();
        fs::create_dir_all(theirs.join("something")).unwrap();
        let error = fs::rename(&ours, &theirs).unwrap_err();
        assert!(matches!(Overwrite::Refuse.refused(error, &theirs), Err(Error::OutputExists { .. })));
    }

    fn refusal(target: &Path) -> String {
        check_folder(target, Overwrite::Replace, DATASET).unwrap_err().to_string()
    }

    #[test]
    fn nothing_is_written_inside_of_a_dataset_or_a_run() {
        let home = tempfile::tempdir().unwrap();
        for (manifest, problem) in [(DATASET_MANIFEST, "inside a dataset"), (RUN_MANIFEST, "inside a run")] {
            let folder = home.path().join(manifest.replace('.', "-"));
            fs::create_dir_all(folder.join("sub")).unwrap();
            fs::write(folder.join(manifest), CONTENTS).unwrap();
            for name in ["x", "sub/x", "a/b/c", "sub/../x", "sub/../a/x"] {
                let target = folder.join(name);
                assert!(refusal(&target).contains(problem), "{name}");
                let file = check_file(&target, Overwrite::Replace).unwrap_err().to_string();
                assert!(file.contains(problem), "{name}");
            }
            assert_eq!(names(&folder), [manifest, "sub"]);
            let beside = home.path().join("beside");
            assert!(check_folder(&beside, Overwrite::Refuse, DATASET).is_ok());
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_devices_are_never_replaced() {
        let home = tempfile::tempdir().unwrap();
        let (target, link) = (home.path().join("data"), home.path().join("link"));
        fs::create_dir(&target).unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert!(refusal(&link).contains("not a folder"));
        assert!(check_file(&link, Overwrite::Replace).unwrap_err().to_string().contains("not a plain file"));
        assert!(check_file(Path::new("/dev/null"), Overwrite::Replace).is_err());
        fs::write(target.join(DATASET_MANIFEST), CONTENTS).unwrap();
        let inside = check_file(&target.join("encounters/part"), Overwrite::Replace).unwrap_err();
        assert!(inside.to_string().contains("inside a dataset"), "{inside}");
        let inside = check_file(&link.join("new/x"), Overwrite::Replace).unwrap_err();
        assert!(inside.to_string().contains("inside a dataset"), "{inside}");
    }
}
