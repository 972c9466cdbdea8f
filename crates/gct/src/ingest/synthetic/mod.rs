//! Synthetic encounters with known structure: the paper's Appendix A.
//!
//! | paper | here | meaning |
//! |---|---|---|
//! | p(D) | [`Settings::diagnosis_pareto`] | how likely a diagnosis is drawn on its own |
//! | p(D\|d) | [`Settings::co_diagnosis_pareto`] | what comes with diagnosis d |
//! | p(M\|d) | [`Settings::treatment_pareto`] | what is ordered for diagnosis d |
//! | p(R\|m,d) | [`Settings::lab_pareto`] | what treatment m, ordered for d, measures |
//! | a(D), b(D), c(M,D) | [`Settings::co_diagnosis`], [`Settings::more_treatments`], [`Settings::more_labs`] | the chance that one more is drawn |
//!
//! Deviations from the printed Algorithm 1, all as in the authors' released generator: a loop *continues*
//! with probability a, b or c (and so may draw nothing), a chain of co-diagnoses goes on with a of its latest
//! one, there are at least two draws of diagnoses, codes are distinct, p(D|d) has a zero diagonal, a
//! treatment drawn again for the same diagnosis draws no labs again. Encounters are drawn until enough pass
//! the filter instead of drawing 2,000,000 and keeping the first 50,000: the result is the same.
//!
//! The paper's patients have one encounter each. With [`Visits::mean`] above 1 they have several, each drawn
//! after the one before (`history.rs`).
//!
//! Every number comes from the seed and its own position (which table, which row, which encounter), never
//! from the order in which threads ask. So p(R|m,d) with its 10^9 numbers needs no memory, and a seed gives
//! the same encounters with any number of threads.

mod generator;
mod history;
mod pareto;
mod rows;
mod settings;

pub use generator::{Drawn, Generator, LATER};
pub use settings::{Labels, Normal, Preset, Settings, Visits};

/// The name of this source in `dataset.json`.
pub const SOURCE: &str = "synthetic";
