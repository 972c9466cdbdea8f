//! Learns the hidden structure of health-record encounters.
//!
//! One encounter (visit) is a graph, visit -> diagnoses -> treatments -> labs, whose edges are usually not
//! recorded. This library is the Graph Convolutional Transformer (Choi et al., AAAI 2020) with everything
//! around it: records in, a dataset folder, splits without leaks, the conditional probabilities that guide
//! the model, training, predictions, explanations, evaluation.
//!
//! ```
//! use gct::dataset::Dataset;
//! use gct::files::Overwrite;
//! use gct::ingest::synthetic;
//! use gct::job::Job;
//! use gct::question::{Prediction, Question};
//! use gct::record::PerKind;
//! use gct::run::{Run, Settings};
//! use gct::train::{self, Execution};
//!
//! # let home = tempfile::tempdir().unwrap();
//! # let (data, folder) = (home.path().join("data"), home.path().join("run"));
//! // Records, as a dataset folder: here from the paper's generator.
//! let records = synthetic::Settings { encounters: 200, ..Default::default() };
//! gct::synth::run(&records, &data, Overwrite::Refuse, &Job::silent())?;
//! let dataset = Dataset::open(&data)?;
//!
//! // Train a model to find the edges of an encounter; three steps are not enough to learn anything.
//! let settings = Settings { steps: 3, ..Settings::paper(Question::Edges, "gct", "synthetic")? };
//! train::start(settings, &dataset, &folder, Overwrite::Refuse, Execution::default(), &Job::silent())?;
//!
//! // Predict: how probable is an edge between two codes of this encounter?
//! let run = Run::open(&folder)?;
//! let treatment = vec!["T_3", "T_9"];
//! let codes = PerKind { diagnosis: vec!["D_5"], treatment, lab: vec!["no such lab"], context: vec![] };
//! let (encounter, unknown) = run.encounter(&codes);
//! assert_eq!(unknown.lab, ["no such lab"]);
//! let predictions = run.predict(std::slice::from_ref(&encounter))?;
//! let Prediction::Edges(links) = &predictions[0] else { unreachable!("edges are what was asked for") };
//! assert_eq!(links.len(), 3, "the visit and the diagnosis, and the diagnosis and each treatment");
//!
//! // Explain: why these answers, and where does the model look?
//! let explanation = run.explain(&encounter)?;
//! for why in &explanation.attributions {
//!     println!("{} is less probable without {}", why.what, why.changes[0].code);
//! }
//! let structure = &explanation.structure;
//! let strongest = structure.links(0, 1)[0];
//! println!("{} looks at {}", structure.nodes[strongest.from].code, structure.nodes[strongest.to].code);
//! # Ok::<(), gct::Error>(())
//! ```
//!
//! | you want to | look at |
//! |---|---|
//! | describe an encounter | [`record::Encounter`], [`run::Run::encounter`], [`run::Run::recorded`] |
//! | read encounters that are in no dataset | [`incoming::Incoming`], [`predict::score_incoming`] |
//! | read or write a dataset folder | [`dataset::Dataset`], [`dataset::Writer`] |
//! | draw the paper's synthetic data | [`synth::run`] |
//! | choose what is predicted | [`question::Question`] |
//! | choose a model and its hyperparameters | [`run::Settings`], [`model::Config`] |
//! | train, stop and resume | [`train::start`], [`train::resume`] |
//! | predict, attribute, explain, embed, evaluate in memory | [`run::Run`] |
//! | calibrate the probabilities of a run | [`calibrate::run`], [`run::Run::raw`] |
//! | compare runs on the same encounters | [`compare::run`] |
//! | the same for a dataset, into files | [`predict::score`], [`predict::embed`], [`evaluate::run`] |
//! | compute P of an encounter | [`prior::Prior`] |
//! | split by subject | [`split::Split`] |
//! | work with weights and vectors of nodes | [`model::Model`] |
//! | draw attention as SVG | [`picture::graph()`], [`picture::bars()`] |
//! | list the links between codes, compare them with a reference | [`links::of_run`], [`links::compare()`] |
//! | write a page about runs | [`report::gather`] |
//! | write a model card | [`card::gather`] |
//! | repeat the paper's tables, tune | [`experiment`], [`tune`] |
//!
//! Results depend on seeds and never on the number of threads. Identifiers of people cannot be printed by
//! accident, and no error contains one.
//!
//! The order of the modules is the table of contents *and* the law: a file uses only modules declared above
//! its own. `cargo xtask tidy` reads this list and fails on a reference that points down.

/// What can go wrong, in the user's words.
pub mod error;

/// Files and folders: written whole or not at all, locked, hashed; read only if they are regular files.
pub mod files;

/// Progress and stopping: what long work tells, and when it ends early.
pub mod job;

/// Workers that share trainings and threads.
mod team;

/// Settings laid over settings: a file over defaults, a flag over the file.
pub mod overrides;

/// Subjects, encounters, codes and vocabularies: plain data, no input or output.
pub mod record;

/// Counts by which someone could be recognised, and those that give such a one by subtraction.
mod cells;

/// How recorded codes and values become codes of a vocabulary: rollups, buckets.
pub mod coding;

/// Encounters that are not in a dataset folder yet: the synthetic generator.
pub mod ingest;

/// The dataset folder: write and read.
pub mod dataset;

/// Train, validation and test, by subject or by encounter.
pub mod split;

/// An encounter as a graph: kinds of nodes, true edges, pairs that may be connected, what a model says about
/// them.
pub mod graph;

/// Earlier encounters of a subject as history: how many a model sees, and what makes one vector of theirs.
pub mod history;

/// What is known when a question is asked: an encounter, and those of its subject before it.
pub mod sample;

/// Who caused what in an encounter: counted where edges are known, drawn where they are not.
pub mod explainer;

/// Conditional probabilities counted on the training split, and the matrix P of an encounter.
pub mod prior;

/// Encounters as numbers: node ids, edges, P. The last module where a medical word meets a number.
pub mod batch;

/// How good answers are: areas under curves, accuracy, log loss, calibration, with intervals.
pub mod metric;

/// What makes the probabilities of labels as frequent as they say: Platt's map and the isotonic one.
pub mod calibration;

/// Names, shapes and first values of a model's parameters.
pub mod parameters;

/// What is asked of a model: samples, heads, losses, metrics and output, a file per question.
pub mod question;

/// What the paper reports: counts of its data, metrics, hyperparameters.
pub mod paper;

/// The models of the paper and logistic regression: numbers in, numbers out.
pub mod model;

/// The run folder: settings, weights, checkpoints, what was measured.
pub mod run;

/// A run's model at work: the encounters of a dataset in the words of the run, inference on all threads.
pub mod infer;

/// Encounters that are in no dataset, as they are recorded: JSON lines, or events as CSV or Parquet.
pub mod incoming;

/// How good a model is on a part of a dataset, and how true its attention is.
pub mod evaluate;

/// `gct calibrate` as one call: fit on the validation split, keep in the run.
pub mod calibrate;

/// `gct compare` as one call: how much better one run is than another on the same encounters.
pub mod compare;

/// `gct train` as one call: the loop, the choice of the best model, resuming after a stop.
pub mod train;

/// Pictures as SVG.
pub mod picture;

/// Predictions, embeddings and explanations: in memory, and as files.
pub mod predict;

/// The links between codes that a run, counts or a dataset say there are, beside each other and a reference.
pub mod links;

/// A run described for those who must judge it: a model card in the order of TRIPOD+AI.
pub mod card;

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

pub use error::{Error, Remedy, Result};
