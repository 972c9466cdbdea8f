//! For encounters in memory these are methods of [`Run`](crate::run::Run): `predict`, `attribute`, `explain`,
//! `embed`. The functions here are for datasets and files of any size, in bounded memory.

mod attribution;
mod causes;
mod deletion;
mod embed;
mod explain;
mod memory;
mod npy;
mod past;
mod rows;
mod score;
mod why;

pub use attribution::{Attribution, Change, MOST_PAIRED, PairChange, VisitChange};
pub use causes::Cause;
pub use deletion::{Deletion, DeletionCurve, DeletionStep, Ranking, deletion};
pub use embed::{Embedded, codes, embed, embed_incoming};
pub(crate) use explain::hidden_node;
pub use explain::{Explainer, Explanation, explain, explain_incoming};
pub(crate) use past::days_before;
pub use past::{PastCode, PastVisit};
pub(crate) use rows::RowFile;
pub use rows::{Format, Target, check_format};
pub use score::{score, score_incoming};

use crate::incoming::Met;
use crate::infer::{Overlap, Unseen};
use crate::record::{CodeKind, PerKind};

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
    /// The same by kind, of encounters that are in no dataset.
    pub unknown: PerKind<Unseen>,
    /// Encounters that are in no dataset, without any code that the run knows.
    pub without_codes: u64,
    /// Encounters of other data whose subjects the run learned from, where true answers are written too.
    pub overlap: Overlap,
}

impl Written {
    /// Adds what was met in encounters that are in no dataset.
    fn add(&mut self, met: Met) {
        (self.unknown, self.without_codes) = (met.unknown, met.without_codes);
        for kind in CodeKind::ALL {
            self.unseen.codes += met.unknown[kind].codes;
            self.unseen.occurrences += met.unknown[kind].occurrences;
        }
    }
}
