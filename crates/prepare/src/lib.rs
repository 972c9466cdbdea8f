//! Health records of many sources, as dataset folders of `gct`.
//!
//! A source is SQL that one can read: it turns the source's tables into relations: `encounters`, `events`
//! and, where there is such, `links` of causes and `context`. Everything after that is the same for all:
//! filtering, vocabularies, buckets of values, true edges, counts, writing. All of it is plans of Apache
//! DataFusion, whose rows stay in the engine.

/// What can go wrong, in the user's words.
pub mod error;

/// Functions that the queries use beside those of the engine.
pub mod functions;

/// Text of SQL.
mod sql;

/// A source: its tables, options and SQL.
pub mod source;

/// What is known of encounters beside codes.
pub mod context;

/// Labels of onset: which diagnoses they are about.
pub mod onset;

/// The query engine, with limits and a job.
pub mod engine;

/// Objects of a store, piece by piece.
#[cfg(feature = "cloud")]
mod pieces;

/// Object stores of the large clouds.
#[cfg(feature = "cloud")]
mod cloud;

/// Which file holds which table.
mod files;

/// Where in a text file something is wrong.
mod locate;

/// The types of columns.
mod columns;

/// The tables of a source, typed.
pub mod tables;

/// Resources of FHIR, as tables.
mod fhir;

/// Codes replaced by the groups that they belong to.
mod rollup;

/// What all sources have in common that a user can choose.
pub mod settings;

/// The vocabulary, buckets, rollups and filters of another dataset.
mod like;

/// What was read, dropped and kept.
pub mod summary;

/// From a source's relations to a dataset folder.
mod steps;

pub use error::{Error, Result};
pub use gct::coding::Unmapped;
pub use like::Like;
pub use settings::{Request, Settings};
pub use source::Source;
pub use steps::prepare;
pub use summary::Summary;
