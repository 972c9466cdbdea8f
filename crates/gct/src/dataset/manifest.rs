//! `dataset.json`: what the folder holds and where it came from.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::schema;
use crate::error::{Error, OnPath, Result};
use crate::files::{self, FileEntry, FolderKind};
use crate::overrides;
use crate::record::PerKind;

pub(crate) const MANIFEST: &str = files::DATASET_MANIFEST;
pub(crate) const VOCABULARY: &str = "vocabulary.parquet";

/// The folder of the parts.
pub(super) const ENCOUNTERS: &str = "encounters";

/// The only file of encounters in format 1.
const ALL_ENCOUNTERS: &str = "encounters.parquet";

/// The path of a part inside of the dataset folder.
pub(super) fn part_name(part: usize) -> String {
    format!("{ENCOUNTERS}/part-{part:05}.parquet")
}

/// The number of a part by its path.
fn part_number(name: &str) -> Option<usize> {
    let number = name.strip_prefix(ENCOUNTERS)?.strip_prefix("/part-")?.strip_suffix(".parquet")?;
    number.parse().ok().filter(|number| part_name(*number) == name)
}

/// What a dataset folder holds.
pub(super) const KIND: FolderKind = FolderKind {
    name: "dataset",
    manifest: MANIFEST,
    subfolder: Some(ENCOUNTERS),
    holds: |name| [MANIFEST, ALL_ENCOUNTERS, VOCABULARY].contains(&name) || part_number(name).is_some(),
};

/// The version of the folder's format that this program writes. Version 1 is read as well.
pub const SCHEMA_VERSION: u32 = 2;

/// The version in which encounters were one file, in any order.
const ONE_FILE: u32 = 1;

/// The contents of `dataset.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`], or 1 in a folder of an older program.
    pub schema_version: u32,
    /// The program that wrote the folder.
    pub program: String,
    /// Where the encounters came from.
    pub source: Source,
    /// How many encounters there are.
    pub encounters: u64,
    /// How many codes of each kind the vocabulary has.
    pub vocabulary: PerKind<u64>,
    /// How many codes of each kind the encounters have, all together.
    pub codes: PerKind<u64>,
    /// How many encounters have known edges.
    pub with_edges: u64,
    /// The label columns, in the order of [`Encounter::labels`](crate::record::Encounter::labels).
    pub labels: Vec<String>,
    /// The other files.
    pub files: Files,
}

/// Where the encounters came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The name of the source: `synthetic`.
    pub kind: String,
    /// The settings that made the dataset.
    pub settings: serde_json::Value,
    /// What was measured while it was made.
    #[serde(default)]
    pub findings: serde_json::Value,
}

/// One entry for each file beside `dataset.json`. In JSON, a table from names to entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, FileEntry>", into = "BTreeMap<String, FileEntry>")]
pub struct Files {
    /// The parts of the encounters, in their order. There is at least one.
    pub encounters: Vec<NamedFile>,
    /// The vocabulary.
    pub vocabulary: FileEntry,
}

/// A file of the folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Its path inside of the folder, with `/`.
    pub name: String,
    /// Its size and hash.
    pub entry: FileEntry,
}

impl Files {
    /// The files of encounters in parts, and a vocabulary.
    pub(super) fn new(parts: Vec<FileEntry>, vocabulary: FileEntry) -> Self {
        let part = |(part, entry)| NamedFile { name: part_name(part), entry };
        Files { encounters: parts.into_iter().enumerate().map(part).collect(), vocabulary }
    }

    /// All of them, the vocabulary last.
    pub fn all(&self) -> impl Iterator<Item = (&str, &FileEntry)> {
        let encounters = self.encounters.iter().map(|file| (file.name.as_str(), &file.entry));
        encounters.chain([(VOCABULARY, &self.vocabulary)])
    }
}

impl From<Files> for BTreeMap<String, FileEntry> {
    fn from(files: Files) -> Self {
        files.all().map(|(name, entry)| (name.to_owned(), entry.clone())).collect()
    }
}

impl TryFrom<BTreeMap<String, FileEntry>> for Files {
    type Error = String;

    /// Takes `encounters.parquet` alone, or parts that are numbered from 0.
    fn try_from(mut named: BTreeMap<String, FileEntry>) -> Result<Self, String> {
        let vocabulary = named.remove(VOCABULARY).ok_or(format!("`{VOCABULARY}` is missing"))?;
        let names = match named.contains_key(ALL_ENCOUNTERS) {
            true => vec![ALL_ENCOUNTERS.to_owned()],
            false => (0..named.len().max(1)).map(part_name).collect(),
        };
        let mut encounters = Vec::with_capacity(names.len());
        for name in names {
            let entry = named.remove(&name).ok_or(format!("`{name}` is missing"))?;
            encounters.push(NamedFile { name, entry });
        }
        match named.keys().next() {
            Some(other) => Err(format!("`{other}` is no file of such a dataset")),
            None => Ok(Files { encounters, vocabulary }),
        }
    }
}

impl Manifest {
    /// What tells the encounters from those of any other dataset: the SHA-256 of the file that they are in,
    /// or, of several parts, that of their hashes one after the other, in hexadecimal digits.
    ///
    /// Synthetic encounters of one part have the same bytes, and so the same identity, in format 1 and 2.
    pub fn identity(&self) -> String {
        match &self.files.encounters[..] {
            [only] => only.entry.sha256.clone(),
            parts => {
                let hash =
                    parts.iter().fold(Sha256::new(), |hash, part| hash.chain_update(&part.entry.sha256));
                files::hex(&hash.finalize())
            }
        }
    }

    /// Whether encounters are sorted, in the parts that their subjects belong to.
    pub(super) fn is_sorted(&self) -> bool {
        self.schema_version > ONE_FILE
    }

    pub(super) fn write(&self, folder: &Path) -> Result<()> {
        let path = folder.join(MANIFEST);
        let mut text = serde_json::to_string_pretty(self).expect("a manifest has only text keys");
        text.push('\n');
        fs::File::create(&path)
            .and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            })
            .on("write", &path)
    }

    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(MANIFEST);
        files::restore_missing(folder);
        let text = match files::read_text(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => {
                return Err(Error::NotADataset { path: folder.to_owned() });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error).on("open", folder),
            text => text.on("read", &path)?,
        };
        let manifest: Manifest = parse_manifest(&path, &text, &[SCHEMA_VERSION, ONE_FILE])?;
        let malformed = |problem: String| Error::Malformed { path: path.clone(), problem };
        let expected = if manifest.is_sorted() { &part_name(0) } else { ALL_ENCOUNTERS };
        if manifest.files.encounters[0].name != expected {
            return Err(malformed(format!("files: `{expected}` is missing")));
        }
        for (position, label) in manifest.labels.iter().enumerate() {
            if schema::is_fixed_column(label) || manifest.labels[..position].contains(label) {
                return Err(malformed(format!("label `{label}` has the name of another column")));
            }
        }
        Ok(manifest)
    }
}

/// Reads the JSON that tells a folder of this program, if it is of a version that is supported. The newest
/// comes first.
pub(crate) fn parse_manifest<T: DeserializeOwned>(path: &Path, text: &str, supported: &[u32]) -> Result<T> {
    let malformed = |problem: String| Error::Malformed { path: path.to_owned(), problem };
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| malformed(format!("not valid JSON: {error}")))?;
    match &value["schema_version"] {
        version if supported.iter().any(|supported| version == supported) => {}
        serde_json::Value::Null => return Err(malformed("no `schema_version`".into())),
        version => {
            let (path, found) = (path.to_owned(), version.to_string());
            return Err(Error::Version { path, found, supported: supported[0] });
        }
    }
    overrides::from_json(value).map_err(malformed)
}
