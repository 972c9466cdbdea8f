//! The options of every command that uses a run on encounters of a dataset: the run, the dataset, the part.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use gct::dataset::Dataset;
use gct::incoming::{Incoming, Met};
use gct::infer::{Overlap, TestSet, Training, Unseen, Which};
use gct::job::Job;
use gct::predict::Written;
use gct::record::{CodeKind, PerKind};
use gct::run::Run;
use gct::split::SplitPart;
use serde_json::json;

use crate::terminal::{self, counted, refusal};

#[derive(Args)]
pub(crate) struct SelectionArguments {
    /// The run folder
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// The dataset folder, a file of new encounters, or - for standard input [default: the dataset that the
    /// run was trained on]
    #[arg(long, value_name = "DIR|FILE")]
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

    /// The flag as it was given, with a space before it.
    pub(crate) fn flag(&self) -> &'static str {
        if self.include_training { " --include-training" } else { "" }
    }

    /// Refuses the option for a file of encounters, which is no test.
    pub(crate) fn refuse_for_file(&self) -> Result<()> {
        match self.include_training {
            true => Err(refusal(
                "--include-training is for datasets with answers, and a file of encounters has none",
                "leave it out",
            )),
            false => Ok(()),
        }
    }
}

/// The option of every command that shows what a run says.
#[derive(Args, Clone, Copy)]
pub(crate) struct RawArguments {
    /// For labels: the model's own probabilities, even if the run is calibrated (`gct calibrate`)
    #[arg(long)]
    raw: bool,
}

impl RawArguments {
    /// The run, calibrated or not.
    pub(crate) fn of(self, run: Run) -> Run {
        if self.raw { run.raw() } else { run }
    }
}

impl SelectionArguments {
    /// Whether encounters are chosen.
    pub(crate) fn is_given(&self) -> bool {
        self.data.is_some() || self.split.is_some()
    }

    /// Opens the run alone.
    pub(crate) fn run(&self) -> gct::Result<Run> {
        Run::open(&self.run)
    }

    /// The path of a file of encounters that are in no dataset, if one is given.
    pub(crate) fn file(&self) -> Result<Option<&Path>> {
        let Some(file) = self.data.as_deref().filter(|data| is_file(data)) else { return Ok(None) };
        if self.split.is_some() {
            return Err(refusal(
                "--split is for datasets, and a file of encounters has no parts",
                "leave it out, and all encounters of the file are used",
            ));
        }
        Ok(Some(file))
    }

    /// Opens the run and the dataset.
    pub(crate) fn open(&self) -> gct::Result<(Run, Dataset, Which)> {
        let (run, dataset) = open(&self.run, self.data.as_deref())?;
        let which = self.split.map_or_else(|| Which::default_for(&run, &dataset), WhichName::which);
        Ok((run, dataset, which))
    }
}

/// Standard input, where a path is given.
const STANDARD_INPUT: &str = "-";

/// Whether the data are a file of encounters, and no dataset.
pub(crate) fn is_file(data: &Path) -> bool {
    data.as_os_str() == STANDARD_INPUT || data.exists() && !data.is_dir()
}

/// Opens a file of encounters that are in no dataset, or standard input.
pub(crate) fn incoming<'a>(run: &'a Run, file: &Path, job: &Job<'_, u64>) -> gct::Result<Incoming<'a>> {
    match file.as_os_str() == STANDARD_INPUT {
        true => Incoming::read(run, "standard input", std::io::stdin(), job),
        false => Incoming::open(run, file, job),
    }
}

/// Lines about codes of new encounters that the run does not know, if there are any.
pub(crate) fn unknown(run: &Run, met: &Met) -> String {
    let mut text = String::new();
    for kind in CodeKind::ALL {
        let Unseen { codes, occurrences } = met.unknown[kind];
        if codes > 0 {
            let [one, several] = ["code", "codes"].map(|noun| format!("{} {noun}", kind.name()));
            text += &unknown_codes(&counted(codes, &one, &several), occurrences);
        }
    }
    if met.without_codes > 0 {
        let encounters = counted(met.without_codes, "encounter has", "encounters have");
        text += &format!("{encounters} no code that the run knows\n");
    }
    if !text.is_empty() && run.manifest().files.coding.is_none() {
        text += "codes were taken as they are: the run does not keep rollups and buckets\n";
    }
    text
}

/// Lines about what was left out of a file of encounters, if anything was.
pub(crate) fn left_out_of_file(run: &Run, written: &Written) -> String {
    let Written { unknown: codes, without_codes, .. } = *written;
    left_out(written.left_out, Unseen::default(), written.overlap)
        + &unknown(run, &Met { unknown: codes, without_codes })
}

/// The same as JSON, per kind.
pub(crate) fn unknown_json(unknown: &PerKind<Unseen>) -> serde_json::Value {
    let kinds = CodeKind::ALL.into_iter().filter(|kind| kind.is_shown(unknown[*kind].codes));
    kinds.map(|kind| (kind.name().to_owned(), json!(unknown[kind]))).collect()
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
        let encounters = counted(overlap.encounters, "encounter", "encounters");
        let are = if overlap.encounters == 1 { "is" } else { "are" };
        let fate = if overlap.included { "included" } else { "left out" };
        text += &format!("{encounters} of subjects that the run learned from {are} {fate}\n");
    }
    text += &overlap.warning().map(|warning| format!("warning: {warning}\n")).unwrap_or_default();
    if encounters > 0 {
        let lacking = counted(encounters, "encounter lacks", "encounters lack");
        text += &format!("{lacking} what the task needs: left out\n");
    }
    if unseen.codes > 0 {
        text += &unknown_codes(&counted(unseen.codes, "code", "codes"), unseen.occurrences);
    }
    text
}

fn unknown_codes(codes: &str, occurrences: u64) -> String {
    let times = counted(occurrences, "time", "times");
    format!("{codes} that the run does not know, left out {times}\n")
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
