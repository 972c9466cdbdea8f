//! What a report holds.

use std::path::PathBuf;

use crate::evaluate;
use crate::metric::{Aim, Bootstrap};
use crate::run::Run;

/// What a report holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Encounters of each run that can be looked at.
    pub encounters: usize,
    /// Whether their identifiers are told.
    pub with_ids: bool,
    /// Counts from 1 to below this are not told.
    pub min_cell: u64,
    /// For the intervals of metrics.
    pub bootstrap: Bootstrap,
    /// What the threshold of alerts is chosen for, on the validation split; the first is that of the page.
    /// `None`: [`Options::AIM`], if the validation split is there and has it.
    pub at: Option<Vec<Aim>>,
    /// What encounters are grouped by. `None`: sex and age, if that is context of the run.
    pub by: Option<Vec<String>>,
    /// A table of what encounters are grouped by, as in [`evaluate::Options`].
    pub table: Option<PathBuf>,
    /// Whether a server stands behind the page, which is asked for matrices of attention one by one.
    pub live: bool,
}

impl Options {
    /// What a threshold is chosen for if nothing is said: to find four of five.
    pub const AIM: Aim = Aim::Sensitivity(0.8);

    /// What patients are grouped by if nothing is said.
    const BY: [&str; 2] = ["sex", "age"];

    /// What is asked of an evaluation.
    pub(super) fn evaluation(&self, run: &Run) -> evaluate::Options {
        let are_labels = !run.settings().task.labels().is_empty();
        let has = |name: &&str| {
            let start = format!("{name}=");
            run.vocabulary().context.iter().any(|code| code.code.starts_with(&start))
        };
        let usual = || Options::BY.iter().filter(|name| are_labels && has(name)).map(|name| (*name).into());
        evaluate::Options {
            at: self.at.clone().unwrap_or_else(|| are_labels.then_some(Options::AIM).into_iter().collect()),
            by: self.by.clone().unwrap_or_else(|| usual().collect()),
            table: self.table.clone(),
            min_cell: self.min_cell,
            ..self.bootstrap.into()
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            encounters: 200,
            with_ids: false,
            min_cell: 0,
            bootstrap: Bootstrap::default(),
            at: None,
            by: None,
            table: None,
            live: false,
        }
    }
}
