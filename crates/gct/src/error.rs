//! One variant per thing that the user must fix. A message names the file, the row, the column and what was
//! expected, never a value of a patient; what to do about it is in [`Error::hint`], so that an edge can print it
//! on a line of its own.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb: "read", "write", "create".
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The output folder is already there.
    #[error("{} already exists", path.display())]
    OutputExists {
        /// The folder.
        path: PathBuf,
    },

    /// The name of a file promises another format than its own.
    #[error("{} cannot be written: its name must end in .{}", path.display(), endings.join(" or ."))]
    Ending {
        /// The file.
        path: PathBuf,
        /// How it may end.
        endings: &'static [&'static str],
    },

    /// Writing there would destroy something that this program did not write.
    #[error("will not write {}: {problem}", path.display())]
    NotReplaceable {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        problem: String,
    },

    /// A folder that should hold a dataset does not.
    #[error("{} is not a dataset folder: it has no dataset.json", path.display())]
    NotADataset {
        /// The folder.
        path: PathBuf,
    },

    /// A file of a folder that this program made is gone.
    #[error("{} is missing, but {evidence}", path.display())]
    MissingFile {
        /// The file.
        path: PathBuf,
        /// What says that it was there.
        evidence: String,
    },

    /// dataset.json cannot be understood.
    #[error("{}: {problem}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        problem: String,
    },

    /// The folder was written by another version of the format.
    #[error("{}: schema version {found}, but this program reads version {supported}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
        /// What this program reads.
        supported: u32,
    },

    /// A file is cut off, or is something else than its name says.
    #[error("{} is damaged: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// A file does not hold the weights of a model.
    #[error("{} is not a file of weights: {problem}", path.display())]
    Weights {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// A file is compressed in a way that this program does not read.
    #[error("{} is compressed in a way that gct does not read", path.display())]
    Compression {
        /// The file.
        path: PathBuf,
    },

    /// A file differs from the one that was written, though nothing in it is malformed.
    #[error("{} is not the file that was written: its SHA-256 differs from the one in dataset.json", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },

    /// A column is absent or of another type.
    #[error("{}: column `{column}`: expected {expected}, found {found}", path.display())]
    Column {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The type that it must have.
        expected: String,
        /// The type that it has, or "no such column".
        found: String,
    },

    /// One row breaks a rule of the format.
    #[error("{}: row {row}: column `{column}`: {problem}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The row, counted from 1.
        row: u64,
        /// The column.
        column: String,
        /// The rule that it breaks; no value of the row.
        problem: String,
    },

    /// A setting has a value that makes no sense.
    #[error("setting `{name}`: {value} is not allowed; expected {allowed}")]
    Setting {
        /// The setting, with its path in the configuration.
        name: String,
        /// The value that was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },

    /// A task asks for a label that the data do not have.
    #[error(
        "the task `{task}` needs the label `{label}`, which the dataset does not have; it has: {}",
        list(known)
    )]
    NoSuchLabel {
        /// The task.
        task: String,
        /// The label.
        label: String,
        /// The labels there are.
        known: Vec<String>,
    },

    /// A task finds nothing to learn from, or to be measured on.
    #[error("no encounter in {part} has what the task `{task}` asks for: {missing}")]
    NothingToAsk {
        /// The task.
        task: String,
        /// The part of the split.
        part: &'static str,
        /// What is missing.
        missing: &'static str,
    },

    /// A folder that should hold a run does not.
    #[error("{} is not a run folder: it has no run.json", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
    },

    /// A run has no weights yet.
    #[error("{} has no weights yet: training ended before its first validation", path.display())]
    NoWeights {
        /// The run.
        path: PathBuf,
    },

    /// A run that has been trained cannot be gone on with.
    #[error("{} cannot be gone on with: its checkpoints are gone", path.display())]
    NoCheckpoint {
        /// The run.
        path: PathBuf,
    },

    /// A checkpoint cannot be gone on from.
    #[error("{} is damaged: {problem}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The one before it, if there is one.
        before: Option<PathBuf>,
    },

    /// A run is to go on with other settings, or on other data.
    #[error("{} cannot go on: {problem}", path.display())]
    OtherRun {
        /// The run.
        path: PathBuf,
        /// What differs.
        problem: String,
    },

    /// A folder that should hold experiments does not.
    #[error("{} holds no experiment: it has no TOML file", path.display())]
    NoExperiment {
        /// The folder.
        path: PathBuf,
    },

    /// An experiment does not say what to learn from.
    #[error("the experiment `{experiment}` does not say what to learn from")]
    NoData {
        /// Its name.
        experiment: String,
    },

    /// A seed or a stratification, and data with one split.
    #[error("the dataset comes with a split of its own, which seeds and stratification do not change")]
    OwnSplit,

    /// What is in a folder was found with other settings, or on other data.
    #[error("{} is of another experiment: {problem}", path.display())]
    OtherExperiment {
        /// The file or folder.
        path: PathBuf,
        /// What differs.
        problem: String,
    },

    /// Another process trains the same run.
    #[error("{} is being trained by another process", path.display())]
    Busy {
        /// The run.
        path: PathBuf,
    },

    /// The settings of a run are not those that it began with.
    #[error("{} was changed after the run began: {problem}", path.display())]
    SettingsEdited {
        /// The file.
        path: PathBuf,
        /// What differs.
        problem: String,
    },

    /// The dataset of a run is not where it was.
    #[error("the dataset that {} was trained on is not there any more; looked for it at {}", run.display(), paths(looked))]
    DatasetMoved {
        /// The run.
        run: PathBuf,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },

    /// A test on other data finds nobody whom the run did not learn from.
    #[error("nothing is left to test on: all {encounters} encounters of {} are of subjects that the run learned from", path.display())]
    OnlyTraining {
        /// The dataset.
        path: PathBuf,
        /// How many there are.
        encounters: u64,
    },

    /// The data that a run was trained on have got other identifiers.
    #[error(
        "{} has changed since the run was trained on it: only {found} of the {learned} encounters that the run learned \
         from are recognised, so the others cannot be left out of a test",
        path.display()
    )]
    NotRecognised {
        /// The dataset.
        path: PathBuf,
        /// How many are recognised.
        found: u64,
        /// How many there were.
        learned: u64,
    },

    /// A run of an older program, which did not note whom it learned from.
    #[error("{} does not say whom it learned from: an older program trained it", run.display())]
    LearnedUnknown {
        /// The run.
        run: PathBuf,
    },

    /// A dataset does not go with a run.
    #[error("{} does not go with the run: {problem}", path.display())]
    OtherData {
        /// The dataset.
        path: PathBuf,
        /// Why not.
        problem: String,
    },

    /// The loss is not a number any more, or far too large.
    #[error("the loss became {loss} at step {step}; the last good state is that of step {kept}")]
    Diverged {
        /// The step.
        step: u64,
        /// What it became.
        loss: f64,
        /// The step of the last checkpoint.
        kept: u64,
    },

    /// The user stopped a training, which can go on later.
    #[error("stopped at step {step}; everything so far is in {}", path.display())]
    Stopped {
        /// The step.
        step: u64,
        /// The run.
        path: PathBuf,
    },

    /// What a model says is not a number, or infinite.
    #[error("the model's answer is not a number: its weights are far too large")]
    NoAnswer,

    /// No encounter has this identifier.
    #[error("no encounter of the dataset has this identifier")]
    NoSuchEncounter,

    /// An encounter lacks what the task or the model needs.
    #[error("the encounter has no {missing}, which the run needs to be asked")]
    CannotAsk {
        /// What it lacks.
        missing: &'static str,
    },

    /// Predictions that the columns of MEDS cannot hold.
    #[error("these predictions cannot be written as MEDS: {problem}")]
    NotMeds {
        /// Why not.
        problem: &'static str,
    },

    /// A name that is not one of those known.
    #[error("unknown {what} `{name}`; known: {}", list(known))]
    UnknownName {
        /// What kind of thing is named.
        what: &'static str,
        /// The name given.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },

    /// The generator's settings make encounters that its own filter throws away.
    #[error(
        "only {kept} of {drawn} drawn encounters have between {min_codes} and {max_codes} codes of each kind"
    )]
    NothingKept {
        /// How many passed the filter.
        kept: u64,
        /// How many were drawn.
        drawn: u64,
        /// The filter's lower bound.
        min_codes: usize,
        /// The filter's upper bound.
        max_codes: usize,
    },

    /// The user pressed Ctrl-C.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl Error {
    /// What the user can do about it, where there is something better to say than the message itself.
    pub fn hint(&self) -> Option<Cow<'static, str>> {
        let fixed = match self {
            Error::Checkpoint { path, before: Some(before), .. } => {
                return Some(Cow::Owned(format!(
                    "remove {}, and --resume goes on from {}",
                    path.display(),
                    before.display()
                )));
            }
            Error::Stopped { path, .. } => {
                return Some(Cow::Owned(format!("go on with: gct train --out {} --resume", path.display())));
            }
            Error::NoSuchLabel { known, .. } if !known.is_empty() => {
                return Some(Cow::Owned(format!("any of them can be learned: --task label:{}", known[0])));
            }
            Error::Checkpoint { .. } => Some("there is none before it: train again with --force"),
            Error::NoSuchLabel { .. } => Some("try graph_reconstruction or masked_diagnosis"),
            Error::NotARun { .. } => Some("a run folder is made by `gct train --out RUN`"),
            Error::NoCheckpoint { .. } => {
                Some("its model can still be used; to train it further, train again with --force")
            }
            Error::NoWeights { .. } => Some("go on with `gct train --out RUN --resume`"),
            Error::OtherRun { .. } => {
                Some("only --steps can change; for anything else train into another folder with --out")
            }
            Error::NoExperiment { .. } => {
                Some("such a folder is made by `gct experiment FILE.toml --out DIR`")
            }
            Error::NoData { .. } => Some(
                "give a dataset folder with --data DIR, or settings of the generator under [data.synthetic]",
            ),
            Error::OwnSplit => Some(
                "keep to seed 0 without stratification, or split anew: split.by=subject (--set), --split-by subject",
            ),
            Error::OtherExperiment { .. } => {
                Some("choose another folder with --out, or move away what is there")
            }
            Error::OtherData { .. } => {
                Some("give the dataset that the run was trained on, or one made like it")
            }
            Error::NotMeds { .. } => Some("without --meds they can, with columns of our own"),
            Error::Diverged { .. } | Error::NoAnswer => Some(
                "train again with a lower learning rate (--set learning_rate=...), or with clipping (--set clip=1)",
            ),
            Error::OutputExists { path } if path.join("run.json").exists() => {
                Some("go on with it with --resume, replace it with --force, or choose another place")
            }
            Error::OutputExists { .. } => Some("choose another place, or replace it with --force"),
            Error::Busy { .. } => Some("wait until it has ended, or train into another folder with --out"),
            Error::DatasetMoved { .. } => Some("say where it is now: --data DIR"),
            Error::SettingsEdited { .. } => {
                Some("put it back as it was, or train with other settings into another folder")
            }
            Error::OnlyTraining { .. } | Error::LearnedUnknown { .. } => {
                Some("give data of other patients, or include these with --include-training")
            }
            Error::NotRecognised { .. } => Some(
                "give the data with the identifiers they had; if these are other patients, put them into another \
                 folder; or include all with --include-training",
            ),
            Error::NotReplaceable { .. } => Some("choose another place, or move away what is there"),
            Error::NotADataset { .. } => {
                Some("a dataset folder is made by a command such as `gct synth --out DIR`")
            }
            Error::MissingFile { .. } | Error::Damaged { .. } => {
                Some("copy the folder again from where it came, or make it again")
            }
            Error::Weights { .. } => Some("copy the file again from where it came, or train the model again"),
            Error::Compression { .. } => Some(
                "write it with Snappy compression, or none: `write_parquet(..., compression=\"snappy\")`",
            ),
            Error::Changed { .. } => Some(
                "if you changed it on purpose, put its new size and SHA-256 into dataset.json (docs/data.md says how); \
                 otherwise make the dataset again",
            ),
            Error::Version { .. } => {
                Some("make it again with this version of gct, or use the version that wrote it")
            }
            Error::NothingKept { .. } => Some(
                "lower min_codes, raise max_codes, or let encounters grow longer (more_diagnoses, more_treatments, more_labs)",
            ),
            Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some space or choose a folder on another disk; what was there is as it was")
            }
            _ => None,
        };
        fixed.map(Cow::Borrowed)
    }

    /// Reading what somebody wrote failed: the file, and what is wrong with it.
    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Error::Manifest { path: path.to_owned(), problem: problem.to_string() }
    }

    /// The error of a part of the settings, as one of the whole: a setting's name gets the part's in front.
    pub(crate) fn inside(self, part: &str) -> Self {
        match self {
            Error::Setting { name, value, allowed } => {
                Error::Setting { name: format!("{part}.{name}"), value, allowed }
            }
            other => other,
        }
    }

    pub(crate) fn setting(name: &str, value: impl ToString, allowed: &str) -> Self {
        Error::Setting { name: name.into(), value: value.to_string(), allowed: allowed.into() }
    }
}

impl From<gct_search::Error> for Error {
    fn from(error: gct_search::Error) -> Self {
        match error {
            gct_search::Error::Setting { name, value, allowed } => Error::Setting { name, value, allowed },
            other => Error::Setting {
                name: "space".into(),
                value: other.to_string(),
                allowed: "another one".into(),
            },
        }
    }
}

/// Names the path in errors of the file system: `fs::read(path).on("read", path)?`.
pub(crate) trait OnPath<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> OnPath<T> for io::Result<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.to_owned(), source })
    }
}

fn paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}
