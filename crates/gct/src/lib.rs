//! Learns the hidden structure of health-record encounters.
//!
//! One encounter (visit) is a graph, visit -> diagnoses -> treatments -> labs, whose edges are usually not
//! recorded. This library holds everything that the Graph Convolutional Transformer (Choi et al., AAAI 2020)
//! needs: records in, a dataset folder, splits without leaks, and the conditional probabilities that guide it.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//!
//! use gct::dataset::Dataset;
//! use gct::files::Overwrite;
//! use gct::ingest::synthetic::Settings;
//! use gct::prior::{self, MatrixSettings};
//! use gct::split::{By, Split};
//!
//! # let home = tempfile::tempdir().unwrap();
//! # let folder = home.path().join("synthetic");
//! let settings = Settings { encounters: 200, ..Settings::default() };
//! gct::synth::run(&settings, &folder, Overwrite::Refuse, &AtomicBool::new(false), &|_| {})?;
//!
//! let dataset = Dataset::open(&folder)?;
//! let split = Split::by_hash(0, By::Subject);
//! let prior = prior::fit(&dataset, &split)?;
//! let encounter = dataset.encounters()?.next().expect("200 encounters")?;
//! let p = prior.matrix(&encounter, &MatrixSettings::default());
//! let nodes = gct::graph::NodeRanges::of(&encounter).len();
//! assert_eq!(p.len(), nodes * nodes);
//! # Ok::<(), gct::Error>(())
//! ```
//!
//! The order of the `mod` lines below is the table of contents *and* the law: a file may use only modules
//! declared above its own. `cargo xtask tidy` reads this list and fails on a reference that points down.

/// What can go wrong, in the user's words.
pub mod error;

/// Files and folders: written whole or not at all, locked, hashed; read only if they are regular files.
pub mod files;

/// Settings laid over settings: a file over defaults, a flag over the file.
pub mod overrides;

/// Subjects, encounters, codes and vocabularies: plain data, no input or output.
pub mod record;

/// Encounters that are not in a dataset folder yet: the synthetic generator.
pub mod ingest;

/// The dataset folder: write and read.
pub mod dataset;

/// Train, validation and test, by subject or by encounter.
pub mod split;

/// An encounter as a graph: kinds of nodes, true edges, pairs that may be connected, what a model says about them.
pub mod graph;

/// What is known when a question is asked: encounters of one subject.
pub mod sample;

/// Conditional probabilities counted on the training split, and the matrix P of an encounter.
pub mod prior;

/// Encounters as numbers: node ids, edges, P. The last place where a medical word meets a number.
pub mod batch;

/// How good answers are: areas under curves, accuracy, log loss, calibration, with intervals.
pub mod metric;

/// Names, shapes and first values of a model's parameters.
pub mod parameters;

/// What is asked of a model: samples, heads, losses, metrics and output, a file per question.
pub mod question;

/// The models of the paper: numbers in, numbers out.
pub mod model;

/// The run folder: settings, weights, checkpoints, what was measured.
pub mod run;

/// A run asked about encounters.
pub mod infer;

/// How good a model is on a part of a dataset, and how true its attention is.
pub mod evaluate;

/// `gct train` as one call: the loop, the choice of the best model, going on after a stop.
pub mod train;

/// Pictures as SVG.
pub mod picture;

/// Predictions, embeddings and explanations to take away.
pub mod predict;

/// The paper's own figures.
pub mod paper;

/// What runs found, as one page to look at.
pub mod report;

/// The best score that any model can reach on synthetic data, and two simple rules beside it.
pub mod ceiling;

/// Counts of a dataset: the paper's Table 1, label prevalences, histograms.
pub mod statistics;

/// Codes that give a label away.
pub mod leaks;

/// `gct synth` as one call: draw, write, measure the ceiling.
pub mod synth;

/// Many trainings that together make a table of the paper.
pub mod experiment;

/// Many trainings that together find good hyperparameters.
pub mod tune;

pub use error::{Error, Result};
