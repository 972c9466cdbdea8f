//! The dataset folder: one format for every source.
//!
//! ```text
//! DIR/dataset.json                        format version, source, settings, counts, SHA-256 of the files
//! DIR/encounters/part-00000.parquet ...   one row per encounter
//! DIR/vocabulary.parquet                  kind, id, code, description, count
//! ```
//!
//! The folder appears whole or not at all, is read as a stream, and is refused when anything in it is not as
//! it should be. A subject's encounters follow each other in one part (`order.rs`). `docs/data.md` describes
//! the columns for users of other tools. Folders of format 1, which have all encounters in
//! `encounters.parquet` in any order, are read as well.

mod assembly;
mod decode;
mod manifest;
mod order;
mod read;
mod schema;
mod table;
mod verify;
mod write;

pub use assembly::Assembly;
pub use manifest::{Files, Manifest, NamedFile, SCHEMA_VERSION, Source};
pub(crate) use manifest::{MANIFEST, VOCABULARY, parse_manifest};
pub use order::{ENCOUNTERS_PER_PART, part_of, parts_for};
pub(crate) use read::read_vocabulary;
pub use read::{Dataset, Encounters};
pub use schema::is_fixed_column;
pub(crate) use table::Table;
pub use write::Writer;
pub(crate) use write::{TableFile, write_table, write_vocabulary};
