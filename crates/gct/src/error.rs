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

    /// An encounter in memory that a run cannot be asked about.
    #[error("the encounter at index {index} of those given {problem}")]
    EncounterRefused {
        /// Its index, from 0.
        index: usize,
        /// What is wrong with it.
        problem: String,
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
    /// What the user can do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        // No wildcard: whoever adds an error says what to do about it.
        let fixed = match self {
            Error::Io { source, .. } => system_hint(source),
            Error::Checkpoint { path, before: Some(before), .. } => {
                let (path, before) = (path.display(), before.display());
                return format!("remove {path}, and --resume goes on from {before}").into();
            }
            Error::Checkpoint { before: None, .. } => "there is none before it: train again with --force",
            Error::Stopped { path, .. } => {
                return format!("go on with: gct train --out {} --resume", path.display()).into();
            }
            Error::NoSuchLabel { known, .. } => match known.first() {
                Some(label) => return format!("any of them can be learned: --task label:{label}").into(),
                None => "try graph_reconstruction or masked_diagnosis",
            },
            Error::Ending { endings, .. } => {
                return format!("end its name in .{}", endings.join(" or .")).into();
            }
            Error::Manifest { path, .. } if path.extension().is_some_and(|ending| ending == "toml") => {
                "correct the file; a setting is a line NAME = VALUE, with text in quotes"
            }
            Error::Manifest { .. } | Error::MissingFile { .. } | Error::Damaged { .. } => {
                "copy the folder again from where it came, or make it again"
            }
            Error::Column { .. } | Error::Row { .. } => {
                "correct it where the data come from and make the file again; docs/data.md describes the columns"
            }
            Error::Setting { .. } => "change it where it was given: by a flag, with --set or in a file",
            Error::NothingToAsk { .. } => "choose another task with --task, or a dataset that has it",
            Error::NoSuchEncounter => "give an id of the column `encounter_id` of encounters.parquet",
            Error::CannotAsk { .. } => "choose another encounter",
            Error::EncounterRefused { .. } => "leave it out, or make it with `Run::encounter`",
            Error::UnknownName { known, .. } if known.is_empty() => {
                "make the dataset again with labels: `gct prepare` joins your own with --labels FILE"
            }
            Error::UnknownName { .. } => "give one of the known names",
            Error::Interrupted => "run the same command again to begin anew",
            Error::NotARun { .. } => "a run folder is made by `gct train --out RUN`",
            Error::NoCheckpoint { .. } => {
                "its model can still be used; to train it further, train again with --force"
            }
            Error::NoWeights { .. } => "go on with `gct train --out RUN --resume`",
            Error::OtherRun { .. } => {
                "only --steps can change; for anything else train into another folder with --out"
            }
            Error::NoExperiment { .. } => "such a folder is made by `gct experiment FILE.toml --out DIR`",
            Error::NoData { .. } => {
                "give a dataset folder with --data DIR, or settings of the generator under [data.synthetic]"
            }
            Error::OwnSplit => {
                "keep to seed 0 without stratification, or split anew: split.by=subject (--set), --split-by subject"
            }
            Error::OtherExperiment { .. } => "choose another folder with --out, or move away what is there",
            Error::OtherData { .. } => "give the dataset that the run was trained on, or one made like it",
            Error::NotMeds { .. } => "without --meds they can, with columns of our own",
            Error::Diverged { .. } | Error::NoAnswer => {
                "train again with a lower learning rate (--set learning_rate=...), or with clipping (--set clip=1)"
            }
            Error::OutputExists { path } if path.join("run.json").exists() => {
                "go on with it with --resume, replace it with --force, or choose another place"
            }
            Error::OutputExists { .. } => "choose another place, or replace it with --force",
            Error::Busy { .. } => "wait until it has ended, or train into another folder with --out",
            Error::DatasetMoved { .. } => "say where it is now: --data DIR",
            Error::SettingsEdited { .. } => {
                "put it back as it was, or train with other settings into another folder"
            }
            Error::OnlyTraining { .. } | Error::LearnedUnknown { .. } => {
                "give data of other patients, or include these with --include-training"
            }
            Error::NotRecognised { .. } => {
                "give the data with the identifiers they had; if these are other patients, put them into another \
                 folder; or include all with --include-training"
            }
            Error::NotReplaceable { .. } => "choose another place, or move away what is there",
            Error::NotADataset { .. } => {
                "a dataset folder is made by a command such as `gct synth --out DIR`"
            }
            Error::Weights { .. } => "copy the file again from where it came, or train the model again",
            Error::Compression { .. } => {
                "write it with Snappy compression, or none: `write_parquet(..., compression=\"snappy\")`"
            }
            Error::Changed { .. } => {
                "if you changed it on purpose, put its new size and SHA-256 into dataset.json (docs/data.md says how); \
                 otherwise make the dataset again"
            }
            Error::Version { .. } => {
                "make it again with this version of gct, or use the version that wrote it"
            }
            Error::NothingKept { .. } => {
                "lower min_codes, raise max_codes, or let encounters grow longer (more_diagnoses, more_treatments, more_labs)"
            }
        };
        fixed.into()
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

/// What to do about an error of the operating system.
pub fn system_hint(error: &io::Error) -> &'static str {
    /// The numbers of "too many open files", of the whole system and of one process, for which there is no kind.
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    if error.raw_os_error().is_some_and(|number| TOO_MANY_FILES.contains(&number)) {
        return "allow more open files, as with `ulimit -n 4096`, and run the command again";
    }
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "free some space or choose a folder on another disk; what was there is as it was"
        }
        io::ErrorKind::NotFound => "check the spelling of the path, and that it is there",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "change the permissions of the file and its folder, or choose another place"
        }
        io::ErrorKind::IsADirectory => "give a file, not a folder",
        io::ErrorKind::NotADirectory => "give a folder: a part of the path is a file",
        io::ErrorKind::InvalidData => "save the file as UTF-8 text",
        io::ErrorKind::InvalidInput => "write its contents into a file, and give that",
        io::ErrorKind::OutOfMemory => "close other programs, or use a machine with more memory",
        _ => "check that the disk is there and has no errors, and run the command again",
    }
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
            Some(Error::MissingFile { .. }) => Error::Manifest { path, problem },
            Some(Error::Manifest { .. }) => Error::Version { path, found: "2".into(), supported: 1 },
            Some(Error::Version { .. }) => Error::Damaged { path, problem },
            Some(Error::Damaged { .. }) => Error::Weights { path, problem },
            Some(Error::Weights { .. }) => Error::Compression { path },
            Some(Error::Compression { .. }) => Error::Changed { path },
            Some(Error::Changed { .. }) => {
                let (column, expected, found) = ("c".into(), "text".into(), "boolean".into());
                Error::Column { path, column, expected, found }
            }
            Some(Error::Column { .. }) => Error::Row { path, row: 1, column: "c".into(), problem },
            Some(Error::Row { .. }) => Error::setting("seed", -1, "a number from 0"),
            Some(Error::Setting { .. }) => {
                Error::NoSuchLabel { task: "t".into(), label: "l".into(), known: vec![] }
            }
            Some(Error::NoSuchLabel { .. }) => {
                Error::NothingToAsk { task: "t".into(), part: "train", missing: "edges" }
            }
            Some(Error::NothingToAsk { .. }) => Error::NotARun { path },
            Some(Error::NotARun { .. }) => Error::NoWeights { path },
            Some(Error::NoWeights { .. }) => Error::NoCheckpoint { path },
            Some(Error::NoCheckpoint { .. }) => Error::Checkpoint { path, problem, before: None },
            Some(Error::Checkpoint { .. }) => Error::OtherRun { path, problem },
            Some(Error::OtherRun { .. }) => Error::NoExperiment { path },
            Some(Error::NoExperiment { .. }) => Error::NoData { experiment: "e".into() },
            Some(Error::NoData { .. }) => Error::OwnSplit,
            Some(Error::OwnSplit) => Error::OtherExperiment { path, problem },
            Some(Error::OtherExperiment { .. }) => Error::Busy { path },
            Some(Error::Busy { .. }) => Error::SettingsEdited { path, problem },
            Some(Error::SettingsEdited { .. }) => {
                Error::DatasetMoved { run: path.clone(), looked: vec![path] }
            }
            Some(Error::DatasetMoved { .. }) => Error::OnlyTraining { path, encounters: 1 },
            Some(Error::OnlyTraining { .. }) => Error::NotRecognised { path, found: 1, learned: 2 },
            Some(Error::NotRecognised { .. }) => Error::LearnedUnknown { run: path },
            Some(Error::LearnedUnknown { .. }) => Error::OtherData { path, problem },
            Some(Error::OtherData { .. }) => Error::Diverged { step: 2, loss: f64::NAN, kept: 1 },
            Some(Error::Diverged { .. }) => Error::Stopped { step: 1, path },
            Some(Error::Stopped { .. }) => Error::NoAnswer,
            Some(Error::NoAnswer) => Error::NoSuchEncounter,
            Some(Error::NoSuchEncounter) => Error::CannotAsk { missing: "edges" },
            Some(Error::CannotAsk { .. }) => Error::EncounterRefused { index: 3, problem },
            Some(Error::EncounterRefused { .. }) => Error::NotMeds { problem: "a subject is no number" },
            Some(Error::NotMeds { .. }) => {
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
    fn every_error_says_what_is_wrong_and_what_to_do() {
        let mut count = 0;
        let mut error = after(None);
        while let Some(one) = error {
            let (message, hint) = (one.to_string(), one.hint());
            assert!(message.split(' ').count() >= 3, "no more than a path: {message}");
            assert!(hint.split(' ').count() >= 3 && !hint.contains('\n'), "{message}: {hint}");
            count += 1;
            error = after(Some(&one));
        }
        assert_eq!(count, 43, "one of each");
    }

    #[test]
    fn too_many_open_files_are_not_damage() {
        let said = "External: Too many open files (os error 24)";
        let error = system_error(said).unwrap();
        assert!(system_hint(&error).contains("ulimit -n"));
        assert!(system_error("EOF: invalid footer").is_none());
        // What a damaged file leads to.
        assert!(system_error("External: Invalid argument (os error 22)").is_none());
        for kind in [io::ErrorKind::OutOfMemory, io::ErrorKind::InvalidInput, io::ErrorKind::TimedOut] {
            assert!(!system_hint(&kind.into()).is_empty());
        }
    }
}
