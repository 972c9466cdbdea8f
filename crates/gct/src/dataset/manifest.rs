//! `dataset.json`: what the folder holds and where it came from.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::schema;
use crate::error::{Error, OnPath, Result};
use crate::files::{self, FileEntry, FolderKind};
use crate::overrides;
use crate::record::PerKind;

pub(crate) const MANIFEST: &str = files::DATASET_MANIFEST;
pub(super) const ENCOUNTERS: &str = "encounters.parquet";
pub(crate) const VOCABULARY: &str = "vocabulary.parquet";

/// What a dataset folder holds.
pub(super) const KIND: FolderKind = FolderKind {
    name: "dataset",
    manifest: MANIFEST,
    holds: |name| [MANIFEST, ENCOUNTERS, VOCABULARY].contains(&name),
};

/// The version of the folder's format that this program writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

/// The contents of `dataset.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`].
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
    /// The two other files.
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

/// One entry for each file beside `dataset.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// The encounters.
    #[serde(rename = "encounters.parquet")]
    pub encounters: FileEntry,
    /// The vocabulary.
    #[serde(rename = "vocabulary.parquet")]
    pub vocabulary: FileEntry,
}

impl Manifest {
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
        let manifest: Manifest = parse_manifest(&path, &text, SCHEMA_VERSION)?;
        let malformed = |problem: String| Error::Malformed { path: path.clone(), problem };
        for (position, label) in manifest.labels.iter().enumerate() {
            if schema::is_fixed_column(label) || manifest.labels[..position].contains(label) {
                return Err(malformed(format!("label `{label}` has the name of another column")));
            }
        }
        Ok(manifest)
    }
}

/// Reads the JSON that tells a folder of this program, if it is of the version that is supported.
pub(crate) fn parse_manifest<T: DeserializeOwned>(path: &Path, text: &str, supported: u32) -> Result<T> {
    let malformed = |problem: String| Error::Malformed { path: path.to_owned(), problem };
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| malformed(format!("not valid JSON: {error}")))?;
    match &value["schema_version"] {
        version if *version == supported => {}
        serde_json::Value::Null => return Err(malformed("no `schema_version`".into())),
        version => {
            let (path, found) = (path.to_owned(), version.to_string());
            return Err(Error::Version { path, found, supported });
        }
    }
    overrides::from_json(value).map_err(malformed)
}
