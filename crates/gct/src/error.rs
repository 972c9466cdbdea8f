//! One variant per thing that the user must fix. A message names the file, the row, the column and what was
//! expected, never a value of a patient; what to do about it is in [`Error::hint`], so that an edge can print it
//! on a line of its own.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: "read", "write", "create".
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The output folder is already there.
    #[error("{} already exists", path.display())]
    OutputExists {
        /// The folder.
        path: PathBuf,
    },

    /// Writing there would destroy something that this program did not write.
    #[error("will not write {}: {problem}", path.display())]
    NotReplaceable {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        problem: String,
    },

    /// A folder that should hold a dataset does not.
    #[error("{} is not a dataset folder: it has no dataset.json", path.display())]
    NotADataset {
        /// The folder.
        path: PathBuf,
    },

    /// A file that dataset.json lists is gone.
    #[error("{} is missing, but dataset.json lists it", path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
    },

    /// dataset.json cannot be understood.
    #[error("{}: {problem}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        problem: String,
    },

    /// The folder was written by another version of the format.
    #[error("{}: schema version {found}, but this program reads version {supported}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What this program reads.
        supported: u32,
    },

    /// A file is cut off, or is something else than its name says.
    #[error("{} is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// A file does not hold the weights of a model.
    #[error("{} is not a file of weights: {problem}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// A file is compressed in a way that this program does not read.
    #[error("{} is compressed in a way that gct does not read", path.display())]
    Compression {
        /// The file.
        path: PathBuf,
    },

    /// A file differs from the one that was written, though nothing in it is malformed.
    #[error("{} is not the file that was written: its SHA-256 differs from the one in dataset.json", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },

    /// A column is absent or of another type.
    #[error("{}: column `{column}`: expected {expected}, found {found}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The type that it must have.
        expected: String,
        /// The type that it has, or "no such column".
        found: String,
    },

    /// One row breaks a rule of the format.
    #[error("{}: row {row}: column `{column}`: {problem}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The row, counted from 1.
        row: u64,
        /// The column.
        column: String,
        /// The rule that it breaks; no value of the row.
        problem: String,
    },

    /// A setting has a value that makes no sense.
    #[error("setting `{name}`: {value} is not allowed; expected {allowed}")]
    Setting {
        /// The setting, with its path in the configuration.
        name: String,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },

    /// A name that is not one of those known.
    #[error("unknown {what} `{name}`; known: {}", list(known))]
    UnknownName {
        /// What kind of thing is named.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },

    /// The generator's settings make encounters that its own filter throws away.
    #[error(
        "only {kept} of {drawn} drawn encounters have between {min_codes} and {max_codes} codes of each kind"
    )]
    NothingKept {
        /// How many passed the filter.
        kept: u64,
        /// How many were drawn.
        drawn: u64,
        /// The filter's lower bound.
        min_codes: usize,
        /// The filter's upper bound.
        max_codes: usize,
    },

    /// The user pressed Ctrl-C.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl Error {
    /// What the user can do about it, where there is something better to say than the message itself.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Error::OutputExists { .. } => Some("choose another place, or replace it with --force"),
            Error::NotReplaceable { .. } => Some("choose another place, or move away what is there"),
            Error::NotADataset { .. } => {
                Some("a dataset folder is made by a command such as `gct synth --out DIR`")
            }
            Error::MissingFile { .. } | Error::Damaged { .. } => {
                Some("copy the folder again from where it came, or make the dataset again")
            }
            Error::Weights { .. } => Some("copy the file again from where it came, or train the model again"),
            Error::Compression { .. } => Some(
                "write it with Snappy compression, or none: `write_parquet(..., compression=\"snappy\")`",
            ),
            Error::Changed { .. } => Some(
                "if you changed it on purpose, put its new size and SHA-256 into dataset.json (docs/data.md says how); \
                 otherwise make the dataset again",
            ),
            Error::Version { .. } => Some("make the dataset again with this version of gct"),
            Error::NothingKept { .. } => Some(
                "lower min_codes, raise max_codes, or let encounters grow longer (more_diagnoses, more_treatments, more_labs)",
            ),
            Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space or choose a folder on another disk; nothing was written")
            }
            _ => None,
        }
    }

    pub(crate) fn setting(name: &str, value: impl ToString, allowed: &str) -> Self {
        Error::Setting { name: name.into(), value: value.to_string(), allowed: allowed.into() }
    }
}

/// Names the path in errors of the file system: `fs::read(path).on("read", path)?`.
pub(crate) trait OnPath<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> OnPath<T> for io::Result<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.to_owned(), source })
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
