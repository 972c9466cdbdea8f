//! The dataset folder: one format for every source.
//!
//! ```text
//! DIR/dataset.json         format version, source and its settings, counts, SHA-256 of the files
//! DIR/encounters.parquet   one row per encounter
//! DIR/vocabulary.parquet   kind, id, code, description, count
//! ```
//!
//! The folder appears whole or not at all, is read as a stream, and is refused when anything in it is not as
//! it should be. `docs/data.md` describes the columns for users of other tools.

mod assembly;
mod manifest;
mod read;
mod schema;
mod write;

pub use assembly::Assembly;
pub(crate) use manifest::{MANIFEST, VOCABULARY, parse_manifest};
pub use manifest::{Manifest, SCHEMA_VERSION, Source};
pub use read::{Dataset, Encounters};
pub(crate) use read::{Table, read_vocabulary};
pub use schema::is_fixed_column;
pub use write::Writer;
pub(crate) use write::{TableFile, write_table, write_vocabulary};
