//! Folders that appear whole or not at all: written beside, synced, renamed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::check::{FolderKind, Overwrite, check_folder};
use super::replace::replace;
use super::temporary::TemporaryFolder;
use crate::error::{OnPath, Result};

/// A folder in the making. Dropped before [`PendingFolder::commit`], it leaves nothing behind.
pub(crate) struct PendingFolder {
    // Dropped in this order: what is inside goes before what was made to hold it.
    temporary: TemporaryFolder,
    parents: NewParents,
    folder: PathBuf,
    target: PathBuf,
    overwrite: Overwrite,
    kind: FolderKind,
}

impl PendingFolder {
    /// Begins one.
    pub(crate) fn create(target: &Path, overwrite: Overwrite, kind: FolderKind) -> Result<Self> {
        check_folder(target, overwrite, kind)?;
        let parents = NewParents::of(target)?;
        let temporary = TemporaryFolder::inside_for(parent_of(target), target)?;
        let folder = temporary.path().join("new");
        fs::create_dir(&folder).on("create", target)?;
        Ok(PendingFolder { temporary, parents, folder, target: target.to_owned(), overwrite, kind })
    }

    /// Where its files go meanwhile.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// The folder that it will be in.
    pub(crate) fn parent(&self) -> &Path {
        parent_of(&self.target)
    }

    /// Renames the finished folder to its target. What was there before ends up in the temporary folder and
    /// is deleted last.
    pub(crate) fn commit(self) -> Result<()> {
        if let Some(subfolder) =
            self.kind.subfolder.map(|name| self.folder.join(name)).filter(|path| path.exists())
        {
            sync_folder(&subfolder)?;
        }
        sync_folder(&self.folder)?;
        check_folder(&self.target, self.overwrite, self.kind)?;
        match fs::rename(&self.folder, &self.target) {
            Err(_) if self.overwrite == Overwrite::Replace && self.target.exists() => {
                replace(&self.folder, &self.target, self.temporary.mark())?;
            }
            Err(error) => return self.overwrite.refused(error, &self.target),
            Ok(()) => {}
        }
        self.parents.keep();
        sync_folder(parent_of(&self.target))
    }
}

/// Parent folders that had to be created. Dropped, those that are still empty are removed again.
pub(super) struct NewParents(Vec<PathBuf>);

impl NewParents {
    pub(super) fn of(target: &Path) -> Result<Self> {
        let parent = parent_of(target);
        let missing =
            parent.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let missing = NewParents(missing.map(Path::to_owned).collect());
        fs::create_dir_all(parent).on("create", parent)?;
        Ok(missing)
    }

    pub(super) fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for NewParents {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The folder that something is in.
pub(crate) fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

pub(super) fn sync_folder(path: &Path) -> Result<()> {
    // Only Unix can sync a folder.
    if cfg!(unix) { File::open(path).and_then(|folder| folder.sync_all()).on("write", path) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::check::{CONTENTS, DATASET, DATASET_MANIFEST};
    use super::super::temporary::names;
    use super::*;
    use crate::error::Error;

    #[test]
    fn a_dropped_folder_leaves_nothing_and_a_committed_one_is_there() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("new/data");
        let pending = PendingFolder::create(&target, Overwrite::Refuse, DATASET).unwrap();
        fs::write(pending.path().join(DATASET_MANIFEST), CONTENTS).unwrap();
        drop(pending);
        assert_eq!(names(home.path()), [""; 0], "not even the folder above it");

        let pending = PendingFolder::create(&target, Overwrite::Refuse, DATASET).unwrap();
        fs::write(pending.path().join(DATASET_MANIFEST), CONTENTS).unwrap();
        pending.commit().unwrap();
        assert_eq!(names(&home.path().join("new")), ["data"]);
        assert_eq!(names(&target), [DATASET_MANIFEST]);
    }

    /// Tries to replace a folder and returns the refusal.
    fn refusal(target: &Path) -> String {
        PendingFolder::create(target, Overwrite::Replace, DATASET).err().unwrap().to_string()
    }

    #[test]
    fn a_dataset_is_replaced_only_on_request_and_anything_else_never() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("data");
        fs::create_dir(&target).unwrap();
        fs::write(target.join(DATASET_MANIFEST), CONTENTS).unwrap();
        assert!(matches!(
            PendingFolder::create(&target, Overwrite::Refuse, DATASET),
            Err(Error::OutputExists { .. })
        ));

        let pending = PendingFolder::create(&target, Overwrite::Replace, DATASET).unwrap();
        fs::write(pending.path().join("vocabulary.parquet"), "new").unwrap();
        pending.commit().unwrap();
        assert_eq!(names(&target), ["vocabulary.parquet"]);
        assert_eq!(names(home.path()), ["data"]);

        assert!(refusal(&target).contains("not that of a dataset"), "without its dataset.json");
        fs::write(target.join(DATASET_MANIFEST), "{\"name\": \"another program's\"}").unwrap();
        assert!(refusal(&target).contains("not that of a dataset"));
        fs::write(target.join(DATASET_MANIFEST), CONTENTS).unwrap();
        fs::write(target.join("thesis.docx"), "years of work").unwrap();
        assert!(refusal(&target).contains("thesis.docx"));
        fs::remove_file(target.join("thesis.docx")).unwrap();
        fs::remove_file(target.join("vocabulary.parquet")).unwrap();
        fs::create_dir(target.join("vocabulary.parquet")).unwrap();
        assert!(refusal(&target).contains("vocabulary.parquet"), "a folder of that name");
        assert_eq!(names(&target), [DATASET_MANIFEST, "vocabulary.parquet"]);
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refusal(&file).contains("not a folder"));
    }

    #[test]
    fn a_folder_of_parts_is_replaced_with_its_dataset_unless_it_holds_something_else() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("data");
        let write = || {
            let pending = PendingFolder::create(&target, Overwrite::Replace, DATASET)?;
            fs::create_dir(pending.path().join("encounters")).unwrap();
            fs::write(pending.path().join("encounters/part"), "").unwrap();
            fs::write(pending.path().join(DATASET_MANIFEST), CONTENTS).unwrap();
            pending.commit()
        };
        write().unwrap();
        write().unwrap();
        assert_eq!(names(&target), [DATASET_MANIFEST, "encounters"]);
        for (path, is_folder) in
            [("encounters/thesis.docx", false), ("encounters/part-2", false), ("encounters/sub", true)]
        {
            let path = target.join(path);
            if is_folder { fs::create_dir(&path) } else { fs::write(&path, "") }.unwrap();
            let name = path.strip_prefix(&target).unwrap().display().to_string();
            assert!(refusal(&target).contains(&name), "{name}");
            if is_folder { fs::remove_dir(&path) } else { fs::remove_file(&path) }.unwrap();
        }
        fs::remove_file(target.join(DATASET_MANIFEST)).unwrap();
        assert!(refusal(&target).contains("not that of a dataset"));
        fs::remove_dir_all(target.join("encounters")).unwrap();
        fs::write(target.join("encounters"), "").unwrap();
        assert!(refusal(&target).contains("`encounters`"), "a file of that name");
    }

    #[test]
    fn what_a_killed_process_left_inside_is_in_nobodys_way() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("data");
        fs::create_dir_all(target.join(".gct-partial-folder/new")).unwrap();
        fs::write(target.join(".gct-partial-file"), "").unwrap();
        for _ in 0..2 {
            let pending = PendingFolder::create(&target, Overwrite::Replace, DATASET).unwrap();
            fs::write(pending.path().join(DATASET_MANIFEST), CONTENTS).unwrap();
            pending.commit().unwrap();
            assert_eq!(names(&target), [DATASET_MANIFEST]);
            fs::create_dir(target.join(".gct-partial-other")).unwrap();
        }
    }

    /// One is replaced in one step where the system can, which it is asked about here too.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_that_is_replaced_again_and_again_is_always_there() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("data");
        let write = || {
            let pending = PendingFolder::create(&target, Overwrite::Replace, DATASET).unwrap();
            fs::write(pending.path().join(DATASET_MANIFEST), CONTENTS).unwrap();
            pending.commit().unwrap();
        };
        write();
        std::thread::scope(|scope| {
            let writers = [(); 3].map(|()| scope.spawn(|| (0..50).for_each(|_| write())));
            while !writers.iter().all(|writer| writer.is_finished()) {
                assert!(target.exists());
            }
        });
        assert_eq!(
            (names(home.path()), names(&target)),
            (vec!["data".into()], vec![DATASET_MANIFEST.into()])
        );
    }
}
