//! The dataset folder: one format for every source.
//!
//! ```text
//! DIR/dataset.json         format version, source and its settings, counts, SHA-256 of the files
//! DIR/encounters.parquet   one row per encounter
//! DIR/vocabulary.parquet   kind, id, code, description, count
//! ```
//!
//! The folder appears whole or not at all, is read as a stream, and is refused when anything in it is not as it
//! should be. `docs/data.md` describes the columns for users of other tools.

mod folder;
mod manifest;
mod read;
mod schema;
mod write;

pub(crate) use folder::write_file;
pub use folder::{Overwrite, check_file};
pub use manifest::{FileEntry, Manifest, SCHEMA_VERSION, Source};
pub use read::{Dataset, Encounters};
pub use write::Writer;
pub(crate) use write::write_table;
