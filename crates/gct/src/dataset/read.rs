//! Reading a dataset folder: everything is checked, encounters are streamed.

use std::fs;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use rustc_hash::{FxBuildHasher, FxHashSet};

use super::decode::{Decoder, column, no_nulls};
use super::manifest::{ENCOUNTERS, Manifest, VOCABULARY};
use super::order::{Sequence, part_of};
use super::schema::{self, ENCOUNTER_ID, PART, SUBJECT_ID};
use super::table::{Batches, Table};
use crate::error::{Error, OnPath, Result};
use crate::files;
use crate::record::{Code, CodeKind, Encounter, PerKind, Vocabulary};

/// An open dataset folder. Encounters are read one by one, so it can be larger than the memory.
///
/// ```
/// use gct::dataset::{Dataset, Source, Writer};
/// use gct::files::Overwrite;
/// use gct::record::{Code, CodeKind, Encounter, EncounterId, PerKind, SubjectId};
///
/// # let home = tempfile::tempdir().unwrap();
/// # let folder = home.path().join("dataset");
/// let code = |code: &str| Code { code: code.into(), description: None, count: 0 };
/// let vocabulary = PerKind {
///     diagnosis: vec![code("cough"), code("chest pain")],
///     treatment: vec![code("benzonatate"), code("EKG")],
///     ..PerKind::default()
/// };
/// let mut writer = Writer::create(&folder, Overwrite::Refuse, vocabulary, vec!["died".into()])?;
/// writer.write(&[Encounter {
///     id: EncounterId::new("stay-1"),
///     subject: SubjectId::new("patient-1"),
///     labels: vec![Some(false)],
///     ..Encounter::new(PerKind { diagnosis: vec![1], treatment: vec![1], ..PerKind::default() })
/// }])?;
/// let nothing = serde_json::json!({});
/// writer.finish(Source { kind: "by hand".into(), settings: nothing.clone(), findings: nothing })?;
///
/// let dataset = Dataset::open(&folder)?;
/// assert_eq!(dataset.manifest().encounters, 1);
/// let encounter = dataset.encounters()?.next().expect("there is one")?;
/// let id = encounter.codes[CodeKind::Treatment][0];
/// assert_eq!(dataset.vocabulary().treatment[id as usize].code, "EKG");
/// # Ok::<(), gct::Error>(())
/// ```
#[derive(Debug)]
pub struct Dataset {
    folder: PathBuf,
    manifest: Manifest,
    vocabulary: Vocabulary,
    /// The parts of the encounters.
    parts: Vec<Table>,
    /// Set once the hashes of all files were found to be right.
    pub(super) hashed: OnceLock<()>,
}

impl Dataset {
    /// Opens a folder, having checked its version, the sizes of its files, their columns and their number of
    /// rows. Rows are checked as they are read; whether files are those that were written, bit for bit,
    /// [`Dataset::check_hashes`] says.
    ///
    /// # Errors
    /// If anything is not as it should be; the error is as specific as it can be.
    pub fn open(folder: &Path) -> Result<Self> {
        let manifest = Manifest::read(folder)?;
        let mut changed = None;
        for (name, entry) in manifest.files.all() {
            let path = folder.join(name);
            if size(&path)? != entry.bytes {
                changed = changed.or(Some(path));
            }
        }
        let vocabulary = read_vocabulary(&folder.join(VOCABULARY), manifest.vocabulary)?;
        let paths = manifest.files.encounters.iter().map(|part| folder.join(&part.name)).collect();
        let has_context = manifest.vocabulary.context > 0;
        let parts = open_parts(folder, paths, &manifest.labels, has_context, manifest.encounters)?;
        let (folder, hashed) = (folder.to_owned(), OnceLock::new());
        let dataset = Dataset { folder, manifest, vocabulary, parts, hashed };
        match changed {
            Some(path) => Err(dataset.why_changed(path)),
            None => Ok(dataset),
        }
    }

    /// What is wrong with a file that is not the one that was written: a bad row, if there is one, says more
    /// than a hash does.
    pub(super) fn why_changed(&self, path: PathBuf) -> Error {
        let read = read_vocabulary(&self.folder.join(VOCABULARY), self.manifest.vocabulary)
            .and_then(|_| self.encounters()?.try_for_each(|encounter| encounter.map(drop)));
        read.err().unwrap_or(Error::HashMismatch { path })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The contents of `dataset.json`.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The codes.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The position of a label in [`Encounter::labels`].
    ///
    /// # Errors
    /// If there is no such label.
    pub fn label(&self, name: &str) -> Result<usize> {
        self.manifest.labels.iter().position(|label| label == name).ok_or_else(|| Error::UnknownName {
            what: "label",
            name: name.into(),
            known: self.manifest.labels.clone(),
        })
    }

    /// Whether its source says of any encounter on which side of a split it is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn has_own_split(&self) -> Result<bool> {
        if self.parts.iter().all(|part| !part.names(PART)) {
            return Ok(false);
        }
        for encounter in self.encounters_with(false)? {
            if encounter?.part.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads the encounters from the first to the last, a batch in memory at a time.
    ///
    /// # Errors
    /// If the file cannot be opened; a bad row is an error of the iterator.
    pub fn encounters(&self) -> Result<Encounters> {
        self.encounters_with(true)
    }

    /// [`Dataset::encounters`]; if not `edges`, as if none were known, which takes less time.
    pub(crate) fn encounters_with(&self, edges: bool) -> Result<Encounters> {
        let decoder = Decoder::new(self.manifest.vocabulary, &self.manifest.labels, edges);
        Encounters::read(self.parts.clone(), decoder, self.manifest.is_sorted())
    }
}

/// The parts of the encounters, whose columns and number of rows are as they should be.
pub(super) fn open_parts(
    folder: &Path,
    paths: Vec<PathBuf>,
    labels: &[String],
    has_context: bool,
    rows: u64,
) -> Result<Vec<Table>> {
    let expected = schema::encounters(labels, has_context);
    let known = (paths.len() == 1).then_some(rows);
    let mut parts = Vec::with_capacity(paths.len());
    for path in paths {
        let part = Table::open(path, &expected, known)?;
        for column in schema::optional_columns() {
            part.has(&column)?;
        }
        parts.push(part);
    }
    let found: u64 = parts.iter().map(Table::rows).sum();
    if found != rows {
        let problem = format!("its parts have {found} rows, but dataset.json says {rows}");
        return Err(Error::Damaged { path: folder.join(ENCOUNTERS), problem });
    }
    Ok(parts)
}

/// The size of a file that must be there.
fn size(path: &Path) -> Result<u64> {
    if !path.exists() {
        return Err(Error::MissingFile { path: path.to_owned(), evidence: "dataset.json lists it".into() });
    }
    files::check_regular(path).and_then(|()| fs::metadata(path)).map(|found| found.len()).on("read", path)
}

/// Reads a vocabulary of these sizes.
pub(crate) fn read_vocabulary(path: &Path, sizes: PerKind<u64>) -> Result<Vocabulary> {
    let rows = CodeKind::ALL.iter().map(|&kind| sizes[kind]).sum();
    let table = Table::open(path.to_owned(), &schema::vocabulary(), Some(rows))?;
    let mut vocabulary = Vocabulary::default();
    let mut first_row = 0;
    for batch in table.batches()? {
        let batch = batch?;
        let bad_row = |column: &str, (row, problem): (usize, String)| Error::Row {
            path: path.to_owned(),
            row: first_row + row as u64 + 1,
            column: column.into(),
            problem,
        };
        for name in ["kind", "id", "code", "count"] {
            no_nulls(column(&batch, name)).map_err(|problem| bad_row(name, problem))?;
        }
        let (kinds, codes) = (column(&batch, "kind").as_string::<i32>(), column(&batch, "code").as_string());
        let descriptions = column(&batch, "description").as_string::<i32>();
        let ids = column(&batch, "id").as_primitive::<UInt32Type>();
        let counts = column(&batch, "count").as_primitive::<UInt64Type>();
        for row in 0..batch.num_rows() {
            let kind = CodeKind::ALL.into_iter().find(|kind| kind.name() == kinds.value(row));
            let Some(kind) = kind else {
                return Err(bad_row("kind", (row, "expected context, diagnosis, treatment or lab".into())));
            };
            if ids.value(row) as usize != vocabulary[kind].len() {
                let problem = format!("ids of a kind count up from 0; expected {}", vocabulary[kind].len());
                return Err(bad_row("id", (row, problem)));
            }
            let code = |array: &arrow_array::StringArray| array.value(row).to_owned();
            vocabulary[kind].push(Code {
                code: code(codes),
                description: descriptions.is_valid(row).then(|| code(descriptions)),
                count: counts.value(row),
            });
        }
        first_row += batch.num_rows() as u64;
    }
    let found = PerKind::from_fn(|kind| vocabulary[kind].len() as u64);
    if found != sizes {
        let problem = "its number of codes per kind is not the one that was written".into();
        return Err(Error::Damaged { path: path.to_owned(), problem });
    }
    Ok(vocabulary)
}

/// The encounters of a dataset, part by part, one after the other, having checked that their ids are unique
/// and that each is where it belongs. Ends after the first error.
pub struct Encounters {
    parts: Vec<Table>,
    /// The part that is read.
    part: usize,
    /// Its rows, those from `rows` on.
    batches: Batches,
    rows: u64,
    decoder: Decoder,
    ids: UniqueIds,
    /// The order of the part, in a format that has one.
    sequence: Option<Sequence>,
    decoded: std::vec::IntoIter<Encounter>,
    failed: bool,
}

impl Encounters {
    /// Reads parts with this decoder; if `is_sorted`, encounters must be in their part and in order.
    pub(super) fn read(parts: Vec<Table>, decoder: Decoder, is_sorted: bool) -> Result<Self> {
        Ok(Encounters {
            batches: decoder.batches(&parts[0])?,
            parts,
            part: 0,
            rows: 0,
            decoder,
            ids: UniqueIds::default(),
            sequence: is_sorted.then(Sequence::default),
            decoded: Vec::new().into_iter(),
            failed: false,
        })
    }

    /// The rows that come next, from the next part if this one has no more.
    fn next_rows(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if let Some(batch) = self.batches.next() {
                return Some(batch);
            }
            let next = self.parts.get(self.part + 1)?;
            self.batches = match self.decoder.batches(next) {
                Ok(batches) => batches,
                Err(error) => return Some(Err(error)),
            };
            (self.part, self.rows) = (self.part + 1, 0);
            self.sequence = self.sequence.is_some().then(Sequence::default);
        }
    }

    fn decode(&mut self, batch: &RecordBatch) -> Result<Vec<Encounter>> {
        let path = &self.parts[self.part].path;
        let encounters = self.decoder.decode(batch, path, self.rows)?;
        let misplaced = self.misplaced(&encounters);
        let repeated = self.ids.repeated(&encounters, &self.parts[..=self.part], self.rows)?;
        if let Some((position, column, problem)) = misplaced.or(repeated) {
            let (path, row) = (self.parts[self.part].path.clone(), self.rows + position as u64 + 1);
            return Err(Error::Row { path, row, column: column.into(), problem });
        }
        self.rows += encounters.len() as u64;
        Ok(encounters)
    }

    /// The first encounter that is in another place than the format says.
    fn misplaced(&mut self, encounters: &[Encounter]) -> Option<BadEncounter> {
        let all: Vec<&Encounter> = encounters.iter().collect();
        if let Some((position, column)) = self.sequence.as_mut()?.misplaced(&all) {
            let problem = "encounters of a part must be sorted by subject, start and id";
            return Some((position, column, problem.into()));
        }
        let (part, parts) = (self.part, self.parts.len());
        let is_elsewhere = |encounter: &Encounter| part_of(encounter.subject.as_str(), parts) != part;
        let position = encounters.iter().position(is_elsewhere)?;
        Some((position, SUBJECT_ID, "belongs to another part, by its hash".into()))
    }
}

/// The position of an encounter in a batch, the column that is wrong, and what is wrong with it.
type BadEncounter = (usize, &'static str, String);

impl Iterator for Encounters {
    type Item = Result<Encounter>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(encounter) = self.decoded.next() {
                return Some(Ok(encounter));
            }
            if self.failed {
                return None;
            }
            let batch = self.next_rows()?;
            match batch.and_then(|batch| self.decode(&batch)) {
                Ok(encounters) => self.decoded = encounters.into_iter(),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Finds an encounter id that occurs twice. Keeps a hash of 8 bytes per encounter, not the ids.
#[derive(Default)]
struct UniqueIds {
    hashes: FxHashSet<u64>,
}

impl UniqueIds {
    /// The first of these encounters with the id of an earlier one. They begin after so many rows of the last
    /// of these parts.
    fn repeated(
        &mut self,
        encounters: &[Encounter],
        parts: &[Table],
        rows_before: u64,
    ) -> Result<Option<BadEncounter>> {
        for (position, encounter) in encounters.iter().enumerate() {
            let (id, rows) = (encounter.id.as_str(), rows_before + position as u64);
            if !self.hashes.insert(FxBuildHasher.hash_one(id)) && is_earlier(id, parts, rows)? {
                let problem = "is that of an earlier row; ids must be unique";
                return Ok(Some((position, ENCOUNTER_ID, problem.into())));
            }
        }
        Ok(None)
    }
}

/// Looks for an id itself, since two ids can have one hash: in the first rows of the last of these parts, and
/// in all rows of the others.
fn is_earlier(id: &str, parts: &[Table], rows: u64) -> Result<bool> {
    for (index, part) in parts.iter().enumerate() {
        let mut left = if index + 1 == parts.len() { rows as usize } else { usize::MAX };
        for batch in part.batches_with(|name| name == ENCOUNTER_ID)? {
            let batch = batch?;
            let ids = column(&batch, ENCOUNTER_ID).as_string::<i32>();
            if ids.iter().take(left).any(|earlier| earlier == Some(id)) {
                return Ok(true);
            }
            left = left.saturating_sub(ids.len());
            if left == 0 {
                break;
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::{Source, Writer};
    use crate::files::Overwrite;
    use crate::record::EncounterId;

    #[test]
    fn two_ids_with_one_hash_are_two_ids() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        let encounters: Vec<Encounter> = (0..3000)
            .map(|row| Encounter {
                id: EncounterId::new(format!("e{row}")),
                ..Encounter::new(PerKind::default())
            })
            .collect();
        let mut writer = Writer::create(&folder, Overwrite::Refuse, Vocabulary::default(), vec![]).unwrap();
        writer.write(&encounters).unwrap();
        let (kind, settings, findings) = ("x".into(), serde_json::json!({}), serde_json::json!({}));
        writer.finish(Source { kind, settings, findings }).unwrap();
        let dataset = Dataset::open(&folder).unwrap();
        let mut read = dataset.encounters().unwrap();
        // As if an id of a row before had the hash of this one.
        read.ids.hashes.insert(FxBuildHasher.hash_one("e2500"));
        assert_eq!(read.by_ref().filter(Result::is_ok).count(), 3000);
        assert!(!is_earlier("e2500", &dataset.parts, 2500).unwrap());
        assert!(is_earlier("e2500", &dataset.parts, 2501).unwrap());
        let twice = [dataset.parts.clone(), dataset.parts.clone()].concat();
        assert!(is_earlier("e2500", &twice, 0).unwrap(), "in all rows of an earlier part");
    }
}
