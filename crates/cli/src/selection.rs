//! The options of every command that uses a run on encounters of a dataset: the run, the dataset, the part.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use gct::dataset::Dataset;
use gct::infer::{Overlap, TestSet, Training, Unseen, Which};
use gct::run::Run;
use gct::split::SplitPart;

use crate::terminal::{self, count};

#[derive(Args)]
pub(crate) struct SelectionArguments {
    /// The run folder
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// The dataset folder [default: the one that the run was trained on]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Which encounters [default: test of the run's own dataset, all of any other]
    #[arg(long, value_enum, value_name = "PART")]
    split: Option<WhichName>,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum WhichName {
    Train,
    Validation,
    Test,
    All,
}

impl WhichName {
    pub(crate) fn which(self) -> Which {
        match self {
            WhichName::All => Which::All,
            WhichName::Train => Which::Part(SplitPart::Train),
            WhichName::Validation => Which::Part(SplitPart::Validation),
            WhichName::Test => Which::Part(SplitPart::Test),
        }
    }
}

/// The option of every command that compares predictions with the truth.
#[derive(Args)]
pub(crate) struct TestArguments {
    /// On another dataset than the run's own, test on subjects that the run learned from too; metrics are
    /// then too good
    #[arg(long)]
    include_training: bool,
}

impl TestArguments {
    pub(crate) fn of(&self, which: Which) -> TestSet {
        let training = if self.include_training { Training::Include } else { Training::LeaveOut };
        TestSet { which, training }
    }
}

impl SelectionArguments {
    /// Opens the run alone.
    pub(crate) fn run(&self) -> gct::Result<Run> {
        Run::open(&self.run)
    }

    /// Opens the run and the dataset.
    pub(crate) fn open(&self) -> gct::Result<(Run, Dataset, Which)> {
        let (run, dataset) = open(&self.run, self.data.as_deref())?;
        let which = self.split.map_or_else(|| Which::default_for(&run, &dataset), WhichName::which);
        Ok((run, dataset, which))
    }
}

/// Opens a run and a dataset: its own, if no other is given.
pub(crate) fn open(run: &Path, data: Option<&Path>) -> gct::Result<(Run, Dataset)> {
    let run = Run::open(run)?;
    let dataset = data.map_or_else(|| run.dataset(), Dataset::open)?;
    Ok((run, dataset))
}

/// How many encounters that is, for a progress bar. Before reading, only the size of the training split is
/// known.
pub(crate) fn estimate(run: &Run, dataset: &Dataset, which: Which) -> u64 {
    let all = dataset.manifest().encounters;
    let is_own = run.manifest().dataset.sha256 == dataset.manifest().identity();
    let train = if is_own { run.manifest().training_encounters } else { all * 8 / 10 };
    match which {
        Which::All => all,
        Which::Part(SplitPart::Train) => train,
        Which::Part(_) => all.saturating_sub(train).div_ceil(2),
    }
}

/// Lines about what was left out, if anything was.
pub(crate) fn left_out(encounters: u64, unseen: Unseen, overlap: Overlap) -> String {
    let mut text = String::new();
    if overlap.encounters > 0 {
        let (encounters, fate) =
            (count(overlap.encounters), if overlap.included { "are included" } else { "are left out" });
        text += &format!("{encounters} encounters of subjects that the run learned from {fate}\n");
    }
    text += &overlap.warning().map(|warning| format!("warning: {warning}\n")).unwrap_or_default();
    if encounters > 0 {
        text += &format!("{} encounters left out: they lack what the task needs\n", count(encounters));
    }
    if unseen.codes > 0 {
        text += &format!(
            "{} codes that the run does not know, left out {} times\n",
            count(unseen.codes),
            count(unseen.occurrences)
        );
    }
    text
}

/// A progress bar over the selected encounters.
pub(crate) fn progress(
    run: &Run,
    dataset: &Dataset,
    which: Which,
    what: &'static str,
    quiet: bool,
) -> indicatif::ProgressBar {
    terminal::progress(estimate(run, dataset, which), what, quiet)
}
