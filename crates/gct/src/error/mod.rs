//! One variant per thing that the user must fix. A message names the file, the row, the column and what was
//! expected, never a value of a patient. What to do about it is a [`Remedy`], which an edge puts into its own
//! words: a command line speaks of flags, a server and another language do not.

use std::io;
use std::path::{Path, PathBuf};

pub use remedy::Remedy;

mod remedy;

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

    /// The output exists already.
    #[error("{} already exists", path.display())]
    OutputExists {
        /// The file or folder.
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

    /// A JSON or TOML file cannot be understood.
    #[error("{}: {problem}", path.display())]
    Malformed {
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
    NotWeights {
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

    /// A file differs from the one that was written, though it can be read.
    #[error(
        "{} is not the file that was written: its SHA-256 differs from the one in dataset.json",
        path.display()
    )]
    HashMismatch {
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

    /// A search space names something that is not a setting, or not a number.
    #[error("the space has `{name}`, which is not the name of a setting that is a number")]
    UnknownSetting {
        /// The name given.
        name: String,
    },

    /// A task needs a label that the data do not have.
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

    /// No encounter can be used to train on a task or to evaluate it.
    #[error("no encounter in {part} has what the task `{task}` needs: {missing}")]
    NoSamples {
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

    /// A run that has been trained has no checkpoint to resume from.
    #[error("{} cannot be resumed: its checkpoints are gone", path.display())]
    NoCheckpoint {
        /// The run.
        path: PathBuf,
    },

    /// A checkpoint cannot be resumed from.
    #[error("{} is damaged: {problem}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// The one before it, if there is one.
        before: Option<PathBuf>,
    },

    /// A run would be resumed with other settings, or on other data.
    #[error("{} cannot be resumed: {problem}", path.display())]
    RunMismatch {
        /// The run.
        path: PathBuf,
        /// What differs.
        problem: String,
    },

    /// A training cannot begin with the weights of a run.
    #[error("a training cannot begin with the weights of {}: {problem}", run.display())]
    CannotBeginWith {
        /// The run.
        run: PathBuf,
        /// Why not.
        problem: String,
    },

    /// The training of a run whose weights are wanted has not ended.
    #[error(
        "a training cannot begin with the weights of {}: it has made {step} of its {steps} steps",
        run.display()
    )]
    NotEnded {
        /// The run.
        run: PathBuf,
        /// Steps made, at its last validation.
        step: u64,
        /// Steps to make.
        steps: u64,
    },

    /// A folder that should hold experiments does not.
    #[error("{} holds no experiment: it has no TOML file", path.display())]
    NoExperiment {
        /// The folder.
        path: PathBuf,
    },

    /// An experiment names no data to train on.
    #[error("the experiment `{experiment}` does not say which data to train on")]
    NoData {
        /// Its name.
        experiment: String,
    },

    /// A seed or a stratification was given, but the split is part of the dataset.
    #[error("the dataset comes with a split of its own, which seeds and stratification do not change")]
    FixedSplit,

    /// The results in a folder were found with other settings, or on other data.
    #[error("{} is of another experiment: {problem}", path.display())]
    ExperimentMismatch {
        /// The file or folder.
        path: PathBuf,
        /// What differs.
        problem: String,
    },

    /// Another process writes to the same run or tuning.
    #[error("{} is being trained, tuned or calibrated by another process", path.display())]
    Busy {
        /// Its folder.
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
    #[error(
        "the dataset that {} was trained on is not there any more; looked for it at {}",
        run.display(),
        paths(looked)
    )]
    DatasetMoved {
        /// The run.
        run: PathBuf,
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },

    /// Every subject of the test data is one that the run learned from.
    #[error(
        "nothing is left to test on: all {encounters} encounters of {} are of subjects that the run \
         learned from",
        path.display()
    )]
    OnlyTraining {
        /// The dataset.
        path: PathBuf,
        /// How many there are.
        encounters: u64,
    },

    /// The identifiers of the data that a run was trained on have changed.
    #[error(
        "{} has changed since the run was trained on it: only {found} of the {learned} encounters that the \
         run learned from are recognised, so the others cannot be left out of a test",
        path.display()
    )]
    IdentifiersChanged {
        /// The dataset.
        path: PathBuf,
        /// How many are recognised.
        found: u64,
        /// How many there were.
        learned: u64,
    },

    /// A run of an older version, which did not record its training subjects.
    #[error(
        "{} does not say which subjects it learned from: an older version of gct trained it",
        run.display()
    )]
    TrainingUnknown {
        /// The run.
        run: PathBuf,
    },

    /// The encounters of a run's dataset have changed, and the parts of its stratified split with them.
    #[error(
        "{} has changed since the run was trained, and with it the stratified split: training encounters \
         can be in any part",
        path.display()
    )]
    StratificationChanged {
        /// The dataset.
        path: PathBuf,
    },

    /// The calibration of a run cannot be used.
    #[error("{} cannot be used: {problem}", path.display())]
    Calibration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// The probabilities of a run cannot be calibrated.
    #[error("{what} cannot be calibrated: {problem}")]
    CannotCalibrate {
        /// The label or the task.
        what: String,
        /// Why not.
        problem: String,
    },

    /// Two runs were not asked the same about the same encounters.
    #[error("{run} cannot be compared with {reference}: {problem}")]
    NotComparable {
        /// The run that all others are compared with.
        reference: String,
        /// The other one.
        run: String,
        /// In what they differ.
        problem: String,
    },

    /// A run cannot be used on this dataset.
    #[error("{} does not match the run: {problem}", path.display())]
    DatasetMismatch {
        /// The dataset.
        path: PathBuf,
        /// Why not.
        problem: String,
    },

    /// The loss is NaN, infinite or far too large.
    #[error("the loss became {loss} at step {step}; the last good state is that of step {kept}")]
    Diverged {
        /// The step.
        step: u64,
        /// What it became.
        loss: f64,
        /// The step of the last checkpoint.
        kept: u64,
    },

    /// The user stopped a training, which can be resumed.
    #[error("stopped at step {step}; everything so far is in {}", path.display())]
    Stopped {
        /// The step.
        step: u64,
        /// The run.
        path: PathBuf,
    },

    /// A model's prediction is NaN or infinite.
    #[error("the model's prediction is NaN or infinite: its weights are far too large")]
    NotFinite,

    /// No encounter has this identifier.
    #[error("no encounter of the dataset has this identifier")]
    NoSuchEncounter,

    /// An encounter lacks what the task or the model needs.
    #[error("the encounter has no {missing}, which the run needs for a prediction")]
    CannotPredict {
        /// What it lacks.
        missing: &'static str,
    },

    /// An encounter in memory that a run cannot be asked about.
    #[error("the encounter at index {index} of those given {problem}")]
    EncounterRefused {
        /// Its index, from 0.
        index: usize,
        /// What is wrong with it.
        problem: String,
    },

    /// A file of encounters that are in no dataset is not what it should be.
    #[error("{}: {problem}", path.display())]
    Incoming {
        /// The file.
        path: PathBuf,
        /// Line or row, column, and what is wrong there; no value.
        problem: String,
    },

    /// A value is given, and the run does not know what becomes of values.
    #[error(
        "{} does not know how values become codes: its data had none, or an older version of gct trained it",
        run.display()
    )]
    NoBuckets {
        /// The run.
        run: PathBuf,
    },

    /// Predictions that the columns of MEDS cannot hold.
    #[error("these predictions cannot be written as MEDS: {problem}")]
    NotMeds {
        /// Why not.
        problem: &'static str,
    },

    /// No threshold can be chosen for what is aimed at.
    #[error("no threshold can be chosen for {aim}: {problem}")]
    NoThreshold {
        /// What is aimed at.
        aim: String,
        /// Why not.
        problem: String,
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

    /// The generator's filter drops nearly every encounter that its settings make.
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
    /// Reading what somebody wrote failed: the file, and what is wrong with it.
    pub(crate) fn file(path: &Path, problem: impl ToString) -> Self {
        Error::Malformed { path: path.to_owned(), problem: problem.to_string() }
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

/// An error of the operating system that a library passed on as text, from which the number can be read.
pub fn system_error(text: &str) -> Option<io::Error> {
    /// A damaged file leads to positions that the system refuses.
    const INVALID_ARGUMENT: i32 = 22;
    let (_, end) = text.split_once("(os error ")?;
    let number = end.split_once(')')?.0.parse().ok()?;
    (number != INVALID_ARGUMENT).then(|| io::Error::from_raw_os_error(number))
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use std::iter::successors;

    use super::*;

    /// One of each kind of error, each found by way of the one before it, so that the compiler misses none.
    fn after(error: Option<&Error>) -> Option<Error> {
        let (path, problem) = (PathBuf::from("P"), "it is wrong".to_owned());
        let source = io::Error::from(io::ErrorKind::NotFound);
        Some(match error {
            None => Error::Io { action: "read", path, source },
            Some(Error::Io { .. }) => Error::OutputExists { path },
            Some(Error::OutputExists { .. }) => Error::Ending { path, endings: &["svg"] },
            Some(Error::Ending { .. }) => Error::NotReplaceable { path, problem },
            Some(Error::NotReplaceable { .. }) => Error::NotADataset { path },
            Some(Error::NotADataset { .. }) => Error::MissingFile { path, evidence: problem },
            Some(Error::MissingFile { .. }) => Error::Malformed { path, problem },
            Some(Error::Malformed { .. }) => Error::Version { path, found: "2".into(), supported: 1 },
            Some(Error::Version { .. }) => Error::Damaged { path, problem },
            Some(Error::Damaged { .. }) => Error::NotWeights { path, problem },
            Some(Error::NotWeights { .. }) => Error::Compression { path },
            Some(Error::Compression { .. }) => Error::HashMismatch { path },
            Some(Error::HashMismatch { .. }) => {
                let (column, expected, found) = ("c".into(), "text".into(), "boolean".into());
                Error::Column { path, column, expected, found }
            }
            Some(Error::Column { .. }) => Error::Row { path, row: 1, column: "c".into(), problem },
            Some(Error::Row { .. }) => Error::setting("seed", -1, "a number from 0"),
            Some(Error::Setting { .. }) => Error::UnknownSetting { name: "n".into() },
            Some(Error::UnknownSetting { .. }) => {
                Error::NoSuchLabel { task: "t".into(), label: "l".into(), known: vec![] }
            }
            Some(Error::NoSuchLabel { .. }) => {
                Error::NoSamples { task: "t".into(), part: "train", missing: "edges" }
            }
            Some(Error::NoSamples { .. }) => Error::NotARun { path },
            Some(Error::NotARun { .. }) => Error::NoWeights { path },
            Some(Error::NoWeights { .. }) => Error::NoCheckpoint { path },
            Some(Error::NoCheckpoint { .. }) => Error::Checkpoint { path, problem, before: None },
            Some(Error::Checkpoint { .. }) => Error::RunMismatch { path, problem },
            Some(Error::RunMismatch { .. }) => Error::CannotBeginWith { run: path, problem },
            Some(Error::CannotBeginWith { .. }) => Error::NotEnded { run: path, step: 1, steps: 2 },
            Some(Error::NotEnded { .. }) => Error::NoExperiment { path },
            Some(Error::NoExperiment { .. }) => Error::NoData { experiment: "e".into() },
            Some(Error::NoData { .. }) => Error::FixedSplit,
            Some(Error::FixedSplit) => Error::ExperimentMismatch { path, problem },
            Some(Error::ExperimentMismatch { .. }) => Error::Busy { path },
            Some(Error::Busy { .. }) => Error::SettingsEdited { path, problem },
            Some(Error::SettingsEdited { .. }) => {
                Error::DatasetMoved { run: path.clone(), looked: vec![path] }
            }
            Some(Error::DatasetMoved { .. }) => Error::OnlyTraining { path, encounters: 1 },
            Some(Error::OnlyTraining { .. }) => Error::IdentifiersChanged { path, found: 1, learned: 2 },
            Some(Error::IdentifiersChanged { .. }) => Error::TrainingUnknown { run: path },
            Some(Error::TrainingUnknown { .. }) => Error::StratificationChanged { path },
            Some(Error::StratificationChanged { .. }) => Error::DatasetMismatch { path, problem },
            Some(Error::DatasetMismatch { .. }) => Error::Calibration { path, problem },
            Some(Error::Calibration { .. }) => Error::CannotCalibrate { what: "a label".into(), problem },
            Some(Error::CannotCalibrate { .. }) => {
                Error::NotComparable { reference: "a".into(), run: "b".into(), problem }
            }
            Some(Error::NotComparable { .. }) => Error::Diverged { step: 2, loss: f64::NAN, kept: 1 },
            Some(Error::Diverged { .. }) => Error::Stopped { step: 1, path },
            Some(Error::Stopped { .. }) => Error::NotFinite,
            Some(Error::NotFinite) => Error::NoSuchEncounter,
            Some(Error::NoSuchEncounter) => Error::CannotPredict { missing: "edges" },
            Some(Error::CannotPredict { .. }) => Error::EncounterRefused { index: 3, problem },
            Some(Error::EncounterRefused { .. }) => {
                Error::Incoming { path, problem: "line 3: it is no JSON".into() }
            }
            Some(Error::Incoming { .. }) => Error::NoBuckets { run: path },
            Some(Error::NoBuckets { .. }) => Error::NotMeds { problem: "a subject is no number" },
            Some(Error::NotMeds { .. }) => Error::NoThreshold { aim: "ppv=0.9".into(), problem },
            Some(Error::NoThreshold { .. }) => {
                Error::UnknownName { what: "task", name: "t".into(), known: vec!["u".into()] }
            }
            Some(Error::UnknownName { .. }) => {
                Error::NothingKept { kept: 0, drawn: 9, min_codes: 1, max_codes: 2 }
            }
            Some(Error::NothingKept { .. }) => Error::Interrupted,
            Some(Error::Interrupted) => return None,
        })
    }

    #[test]
    fn every_error_says_what_is_wrong() {
        let errors: Vec<Error> = successors(after(None), |error| after(Some(error))).collect();
        for error in &errors {
            let message = error.to_string();
            assert!(message.split(' ').count() >= 3 && !message.contains('\n'), "{message}");
        }
        assert_eq!(errors.len(), 53, "one of each");
    }

    #[test]
    fn too_many_open_files_are_not_damage() {
        let said = "External: Too many open files (os error 24)";
        let error = system_error(said).unwrap();
        assert_eq!(Remedy::of_system(&error), Remedy::AllowOpenFiles);
        assert!(system_error("EOF: invalid footer").is_none());
        // What a damaged file leads to.
        assert!(system_error("External: Invalid argument (os error 22)").is_none());
    }
}
