//! Fast operations on packed node matrices, each forward beside its backward.
//!
//! A batch of graphs is one matrix with a row per node, graph after graph: nothing is padded. Linear layers
//! and normalisation run on all rows at once, mixing along edges runs graph by graph on the pairs that are
//! allowed.
//!
//! Functions of `gemm`, `rows`, `pairs`, `recurrent` and `loss` work on plain slices and are compiled three times
//! (AVX-512, AVX2 with FMA, baseline); [`level()`] chooses at run time. They are generic over [`Number`]:
//! `f32` for speed, `f64` for checking gradients by finite differences.
//!
//! This crate knows nothing about what the graphs mean, and is the only home of `unsafe`.

/// Which instructions the processor has.
pub mod level;

/// Numbers that kernels compute with.
pub mod number;

/// Dense products.
pub mod gemm;

/// Operations on the rows of a matrix, one by one: normalisation, activation, dropout, Adam.
pub mod rows;

/// Mixing along the allowed pairs of a graph: attention, softmax, divergence.
pub mod pairs;

/// Sequences of steps: a gated recurrent unit, windows, maxima.
pub mod recurrent;

/// Losses with their gradients.
pub mod loss;

/// All parameters of a model in one vector.
pub mod weights;

/// What models are written in.
pub mod engine;

/// The engine for processors: a record of operations, played forward and backward.
pub mod tape;

pub use level::{Level, level};
pub use number::Number;
