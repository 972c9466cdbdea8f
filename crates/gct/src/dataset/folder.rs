//! Folders and files that appear whole or not at all: written beside, synced, renamed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{self, Path, PathBuf};

use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;

use super::manifest::{ENCOUNTERS, FileEntry, MANIFEST, VOCABULARY};
use super::replace::{put_back, replace};
use super::scratch::{self, Scratch, is_partial, sweep};
use crate::error::{Error, OnPath, Result};
use crate::input;

/// What to do when the output is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overwrite {
    /// Refuse.
    Refuse,
    /// Replace it, if it is nothing but what this program would write there.
    Replace,
}

impl Overwrite {
    /// Why something could not be put in its place: another process may have been there first.
    fn refused(self, error: io::Error, target: &Path) -> Result<()> {
        match (self, error.kind()) {
            (Overwrite::Refuse, io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists) => {
                Err(Error::OutputExists { path: target.to_owned() })
            }
            _ => Err(error).on("create", target),
        }
    }
}

/// What a folder of this program looks like: nothing else is ever replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// What it is, in the user's words.
    pub(crate) what: &'static str,
    /// The file that tells it: JSON with a `schema_version`.
    pub(crate) manifest: &'static str,
    /// Whether a file of this name belongs to it.
    pub(crate) holds: fn(&str) -> bool,
}

/// A dataset.
pub(super) const DATASET: Shape = Shape {
    what: "dataset",
    manifest: MANIFEST,
    holds: |name| [MANIFEST, ENCOUNTERS, VOCABULARY].contains(&name),
};

/// A folder in the making. Dropped before [`PendingFolder::commit`], it leaves nothing behind.
pub(crate) struct PendingFolder {
    // Dropped in this order: what is inside goes before what was made to hold it.
    scratch: Scratch,
    parents: NewParents,
    folder: PathBuf,
    target: PathBuf,
    overwrite: Overwrite,
    shape: Shape,
}

impl PendingFolder {
    /// Begins one.
    pub(crate) fn create(target: &Path, overwrite: Overwrite, shape: Shape) -> Result<Self> {
        check_folder(target, overwrite, shape)?;
        let parents = NewParents::of(target)?;
        let scratch = Scratch::inside_for(parent_of(target), target)?;
        let folder = scratch.path().join("new");
        fs::create_dir(&folder).on("create", target)?;
        Ok(PendingFolder { scratch, parents, folder, target: target.to_owned(), overwrite, shape })
    }

    /// Where its files go meanwhile.
    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }

    /// The folder that it will be in.
    pub(super) fn parent(&self) -> &Path {
        parent_of(&self.target)
    }

    /// Puts the finished folder in its place. What was there before ends up in the temporary folder and is
    /// deleted last.
    pub(crate) fn commit(self) -> Result<()> {
        sync_folder(&self.folder)?;
        check_folder(&self.target, self.overwrite, self.shape)?;
        match fs::rename(&self.folder, &self.target) {
            Err(_) if self.overwrite == Overwrite::Replace && self.target.exists() => {
                replace(&self.folder, &self.target, self.scratch.mark())?;
            }
            Err(error) => return self.overwrite.refused(error, &self.target),
            Ok(()) => {}
        }
        self.parents.keep();
        sync_folder(parent_of(&self.target))
    }
}

/// Keeps other processes from working in a folder, as long as the file is held; `None` if the file is not there, or the file system
/// has no locks, which is no reason not to work.
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

/// Refuses a place inside a dataset or a run, and an existing folder, or, when it may be replaced, one that
/// is anything but of this shape or empty. What a killed process left there is removed, or put back, first.
pub(crate) fn check_folder(target: &Path, overwrite: Overwrite, shape: Shape) -> Result<()> {
    put_back(target);
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
    let mut is_empty = true;
    for entry in fs::read_dir(target).on("replace", target)? {
        let entry = entry.on("replace", target)?;
        if is_partial(&entry.file_name()) {
            continue;
        }
        let (name, is_file) = (entry.file_name(), entry.file_type().on("replace", target)?.is_file());
        if !is_file || !name.to_str().is_some_and(shape.holds) {
            let (name, what) = (name.to_string_lossy(), shape.what);
            return Err(refuse(format!("it holds `{name}`, which is not part of a {what}")));
        }
        is_empty = false;
    }
    if !is_empty && !is_manifest(&target.join(shape.manifest)) {
        return Err(refuse(format!("its {} is not that of a {}", shape.manifest, shape.what)));
    }
    Ok(())
}

/// Removes what killed processes left in a folder and beside it.
pub(crate) fn sweep_around(folder: &Path) {
    sweep(folder);
    sweep(parent_of(folder));
}

/// The file that tells a run.
pub(crate) const RUN_MANIFEST: &str = "run.json";

/// Refuses a name that promises another format than the one that is written.
pub fn check_ending(file: &Path, endings: &'static [&'static str]) -> Result<()> {
    let is_one = |ending: &OsStr| endings.iter().any(|one| ending.eq_ignore_ascii_case(one));
    if file.extension().is_none_or(is_one) {
        return Ok(());
    }
    Err(Error::Ending { path: file.to_owned(), endings })
}

/// Refuses a place inside a dataset or a run, however deep: what is there is this program's own.
pub(crate) fn check_outside(target: &Path) -> Result<()> {
    let refuse = |problem: &str| Error::NotReplaceable { path: target.to_owned(), problem: problem.into() };
    let target_folder = path::absolute(parent_of(target)).on("look at", target)?;
    // Of what is not there yet, nothing can be a dataset.
    let there = target_folder.ancestors().find_map(|above| above.canonicalize().ok());
    match there.unwrap_or_default().ancestors().find_map(kind_of) {
        Some(MANIFEST) => Err(refuse("it would be inside a dataset")),
        Some(_) => Err(refuse("it would be inside a run")),
        None => Ok(()),
    }
}

/// The name of the manifest of a folder, if it is a dataset or a run.
pub(super) fn kind_of(folder: &Path) -> Option<&'static str> {
    [MANIFEST, RUN_MANIFEST].into_iter().find(|name| is_manifest(&folder.join(name)))
}

/// Refuses an existing file, or, when it may be replaced, anything but a plain file; and a place inside a
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
        input::bytes(path).ok().and_then(|text| serde_json::from_slice::<serde_json::Value>(&text).ok());
    parsed.is_some_and(|manifest| manifest.get("schema_version").is_some())
}

/// Folders that had to be made above a target. Dropped, they go again, unless something else has come into them.
struct NewParents(Vec<PathBuf>);

impl NewParents {
    fn of(target: &Path) -> Result<Self> {
        let parent = parent_of(target);
        let missing =
            parent.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let missing = NewParents(missing.map(Path::to_owned).collect());
        fs::create_dir_all(parent).on("create", parent)?;
        Ok(missing)
    }

    fn keep(mut self) {
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

/// Writes, or replaces, a file of a run itself.
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

/// Puts a finished file of another program in its place, where it appears whole or not at all.
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
        let temporary = scratch::file_inside(parent_of(target), target)?;
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

    /// Puts the finished file in its place.
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

/// The folder that something is in.
pub(crate) fn parent_of(path: &Path) -> &Path {
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
pub(crate) fn entry_of(path: &Path) -> Result<FileEntry> {
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
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::scratch::names;
    use super::*;

    const A_MANIFEST: &str = "{\"schema_version\": 1}";

    #[test]
    fn a_dropped_folder_leaves_nothing_and_a_committed_one_is_there() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("new/data");
        let pending = PendingFolder::create(&target, Overwrite::Refuse, DATASET).unwrap();
        fs::write(pending.path().join(MANIFEST), A_MANIFEST).unwrap();
        drop(pending);
        assert_eq!(names(home.path()), [""; 0], "not even the folder above it");

        let pending = PendingFolder::create(&target, Overwrite::Refuse, DATASET).unwrap();
        fs::write(pending.path().join(MANIFEST), A_MANIFEST).unwrap();
        pending.commit().unwrap();
        assert_eq!(names(&home.path().join("new")), ["data"]);
        assert_eq!(names(&target), [MANIFEST]);
    }

    #[test]
    fn who_comes_second_learns_that_it_exists() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("plan");
        let pending = PendingFile::create(&target, Overwrite::Refuse).unwrap();
        fs::write(&target, "theirs").unwrap();
        assert!(matches!(pending.commit(), Err(Error::OutputExists { .. })));
        assert_eq!(fs::read_to_string(&target).unwrap(), "theirs");
        // A folder that came between the last look and the rename.
        let [ours, theirs] = ["ours", "theirs"].map(|name| home.path().join(name));
        fs::create_dir(&ours).unwrap();
        fs::create_dir_all(theirs.join("something")).unwrap();
        let error = fs::rename(&ours, &theirs).unwrap_err();
        assert!(matches!(Overwrite::Refuse.refused(error, &theirs), Err(Error::OutputExists { .. })));
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
        fs::write(target.join(MANIFEST), A_MANIFEST).unwrap();
        assert!(matches!(
            PendingFolder::create(&target, Overwrite::Refuse, DATASET),
            Err(Error::OutputExists { .. })
        ));

        let pending = PendingFolder::create(&target, Overwrite::Replace, DATASET).unwrap();
        fs::write(pending.path().join(VOCABULARY), "new").unwrap();
        pending.commit().unwrap();
        assert_eq!(names(&target), [VOCABULARY]);
        assert_eq!(names(home.path()), ["data"]);

        assert!(refusal(&target).contains("not that of a dataset"), "without its dataset.json");
        fs::write(target.join(MANIFEST), "{\"name\": \"another program's\"}").unwrap();
        assert!(refusal(&target).contains("not that of a dataset"));
        fs::write(target.join(MANIFEST), A_MANIFEST).unwrap();
        fs::write(target.join("thesis.docx"), "years of work").unwrap();
        assert!(refusal(&target).contains("thesis.docx"));
        fs::remove_file(target.join("thesis.docx")).unwrap();
        fs::create_dir(target.join(ENCOUNTERS)).unwrap();
        assert!(refusal(&target).contains(ENCOUNTERS), "a folder of that name");
        assert_eq!(names(&target), [MANIFEST, ENCOUNTERS, VOCABULARY]);
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refusal(&file).contains("not a folder"));
    }

    #[test]
    fn what_a_killed_process_left_inside_is_in_nobodys_way() {
        let home = tempfile::tempdir().unwrap();
        let target = home.path().join("data");
        fs::create_dir_all(target.join(".gct-partial-folder/new")).unwrap();
        fs::write(target.join(".gct-partial-file"), "").unwrap();
        for _ in 0..2 {
            let pending = PendingFolder::create(&target, Overwrite::Replace, DATASET).unwrap();
            fs::write(pending.path().join(MANIFEST), A_MANIFEST).unwrap();
            pending.commit().unwrap();
            assert_eq!(names(&target), [MANIFEST]);
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
            fs::write(pending.path().join(MANIFEST), A_MANIFEST).unwrap();
            pending.commit().unwrap();
        };
        write();
        std::thread::scope(|scope| {
            let writers = [(); 3].map(|()| scope.spawn(|| (0..50).for_each(|_| write())));
            while !writers.iter().all(|writer| writer.is_finished()) {
                assert!(target.exists());
            }
        });
        assert_eq!((names(home.path()), names(&target)), (vec!["data".into()], vec![MANIFEST.into()]));
    }

    #[test]
    fn nothing_is_written_inside_of_a_dataset_or_a_run() {
        let home = tempfile::tempdir().unwrap();
        for (manifest, problem) in [(MANIFEST, "inside a dataset"), (RUN_MANIFEST, "inside a run")] {
            let folder = home.path().join(manifest.replace('.', "-"));
            fs::create_dir_all(folder.join("sub")).unwrap();
            fs::write(folder.join(manifest), A_MANIFEST).unwrap();
            for name in ["x", "sub/x", "a/b/c", "sub/../x", "sub/../a/x"] {
                let target = folder.join(name);
                assert!(refusal(&target).contains(problem), "{name}");
                let file = check_file(&target, Overwrite::Replace).unwrap_err().to_string();
                assert!(file.contains(problem), "{name}");
            }
            assert_eq!(names(&folder), [manifest, "sub"]);
            let beside = home.path().join("beside");
            assert!(PendingFolder::create(&beside, Overwrite::Refuse, DATASET).is_ok());
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
        fs::write(target.join(MANIFEST), A_MANIFEST).unwrap();
        let inside = check_file(&target.join(ENCOUNTERS), Overwrite::Replace).unwrap_err();
        assert!(inside.to_string().contains("inside a dataset"), "{inside}");
        let inside = check_file(&link.join("new/x"), Overwrite::Replace).unwrap_err();
        assert!(inside.to_string().contains("inside a dataset"), "{inside}");
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
