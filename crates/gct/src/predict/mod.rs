//! For encounters in memory these are methods of [`Run`](crate::run::Run): `predict`, `embed`, `explain`. The
//! functions here are for datasets of any size, in bounded memory.

mod embed;
mod explain;
mod memory;
mod npy;
mod score;

pub use embed::{codes, visits};
pub(crate) use explain::hidden_node;
pub use explain::{Explainer, Explanation, explain};
pub use score::score;

use crate::infer::{Overlap, Unseen};

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// How many encounters.
    pub encounters: u64,
    /// How many rows.
    pub rows: u64,
    /// How many encounters could not be asked about.
    pub left_out: u64,
    /// Codes that the run does not know.
    pub unseen: Unseen,
    /// Encounters of other data whose subjects the run learned from, where true answers are written too.
    pub overlap: Overlap,
}
