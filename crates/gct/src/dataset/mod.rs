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

mod assembly;
mod folder;
mod manifest;
mod read;
mod replace;
mod schema;
mod scratch;
mod write;

pub use assembly::Assembly;
pub use folder::{Overwrite, check_ending, check_file, copy_file, write_text};
pub(crate) use folder::{
    PendingFile, PendingFolder, RUN_MANIFEST, Shape, check_folder, check_outside, entry_of, hex, lock,
    parent_of, sweep_around, write_file, write_own,
};
pub use manifest::{FileEntry, Manifest, SCHEMA_VERSION, Source};
pub(crate) use manifest::{MANIFEST, VOCABULARY, parse_manifest};
pub use read::{Dataset, Encounters};
pub(crate) use read::{Table, read_vocabulary};
pub(crate) use replace::put_back_missing;
pub use schema::is_fixed_column;
pub use scratch::Scratch;
pub(crate) use scratch::{is_partial, sweep_all};
pub use write::Writer;
pub(crate) use write::{TableFile, write_table, write_vocabulary};
