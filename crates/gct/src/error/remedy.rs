//! What can be done about an error: the kind of action, which an edge puts into words.

use std::io;
use std::path::PathBuf;

use super::Error;

/// What the user can do about an [`Error`].
///
/// The enum is exhaustive on purpose: the compiler tells an edge that words remedies which of them it lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remedy {
    /// Free space on the disk, or write to another one. The old contents are intact.
    FreeSpace,
    /// Free memory, or use a machine with more.
    FreeMemory,
    /// Raise the limit of open files.
    AllowOpenFiles,
    /// Check that the path is right and that something is there.
    CheckPath,
    /// Change the permissions of the path, or choose another one.
    ChangePermissions,
    /// Check that the disk is there and works.
    CheckDisk,
    /// Give a file: the path is a folder.
    GiveFile,
    /// Give a folder: a part of the path is a file.
    GiveFolder,
    /// Give a regular file: the path is a pipe or a device.
    GiveRegularFile,
    /// Save the file as UTF-8.
    SaveAsUtf8,

    /// Choose another path for the output, or allow it to be replaced.
    ChooseOutput {
        /// It is a run, which can be resumed as well.
        is_run: bool,
    },
    /// Choose another path for the output, or move away what is there, which is never replaced.
    MoveAway,
    /// Give the output another file extension.
    ChangeEnding {
        /// The extensions that are possible, without dots.
        endings: &'static [&'static str],
    },

    /// Give a dataset folder.
    GiveDataset,
    /// Give the folder that the run's dataset was moved to.
    LocateDataset,
    /// Give the dataset that the run was trained on, or one of the same source.
    GiveMatchingDataset,
    /// Give the dataset that the run was trained on, or use all parts of this one.
    UseAllParts,
    /// Give a run folder.
    GiveRun,
    /// Give a folder of experiments.
    GiveExperiment,
    /// Name the data of an experiment.
    NameData,
    /// Give the identifier of an encounter of the dataset.
    GiveEncounterId,
    /// Choose another encounter.
    ChooseEncounter,

    /// Correct a file of encounters that are in no dataset.
    CorrectEncounters,
    /// Give codes of the run's vocabulary without values, or train the run again.
    GiveCodes,

    /// Copy or make the folder again: a file in it is missing or damaged.
    CopyFolder,
    /// Copy the file of weights again, or train the model again.
    CopyWeights,
    /// Correct a settings file that somebody wrote.
    CorrectSettingsFile,
    /// Correct the data at their source, and write the file again.
    CorrectData,
    /// Write the file with a compression that can be read.
    ChangeCompression,
    /// Record the file's new hash if it was changed on purpose.
    RecordHash,
    /// Use the program and the files of one version.
    MatchVersion,

    /// Change a setting.
    CorrectSetting,
    /// Look up the names of the settings.
    ListSettings,
    /// Choose a label that the dataset has, or a task that needs none.
    ChooseLabel {
        /// One that can be chosen.
        example: Option<String>,
    },
    /// Choose another task, or a dataset that has what this one needs.
    ChooseTask,
    /// Aim at something that can be reached, or give a threshold.
    GiveThreshold,
    /// Give one of the names that the message lists.
    ChooseKnownName,
    /// Make the dataset again with labels.
    AddLabels,
    /// Keep the split of the dataset as it is, or split by subject instead.
    KeepSplit,
    /// Let the generator keep more of the encounters that it draws.
    WidenFilter,
    /// Train again with a lower learning rate or with gradient clipping.
    LowerLearningRate,

    /// Resume the run.
    Resume {
        /// The run folder.
        run: PathBuf,
    },
    /// Remove the damaged checkpoint, and resume from the one before it.
    ResumeEarlier {
        /// The checkpoint to remove.
        damaged: PathBuf,
        /// The checkpoint before it.
        earlier: PathBuf,
    },
    /// Train again from the start: there is no checkpoint to resume from.
    TrainAgain {
        /// The run has a model that can be used as it is.
        is_usable: bool,
    },
    /// Resume with the settings of the run, of which only the number of steps can change.
    KeepSettings,
    /// Begin with the weights of a run of the same model and width, or with random ones.
    BeginWithAlike,
    /// Undo the changes of the run's settings file.
    RestoreSettings,
    /// Wait for the other process, or train into another folder.
    WaitForProcess,

    /// Fit the calibration again, or use the probabilities as they are.
    Calibrate,
    /// Use the probabilities as they are.
    UseUncalibrated,
    /// Compare what was asked the same about the same encounters.
    CompareAlike,

    /// Test on other patients, or include those that the run learned from.
    IncludeTraining,
    /// Give the data with their old identifiers, or include the patients that the run learned from.
    RestoreIdentifiers,
    /// Write the predictions with other columns than those of MEDS.
    WriteOtherColumns,
    /// Start the same thing again.
    RunAgain,
}

impl Error {
    /// What the user can do about it.
    pub fn remedy(&self) -> Remedy {
        // No wildcard: whoever adds an error says what can be done about it.
        match self {
            Error::Io { source, .. } => Remedy::of_system(source),
            Error::OutputExists { path } => Remedy::ChooseOutput { is_run: path.join("run.json").exists() },
            Error::Ending { endings, .. } => Remedy::ChangeEnding { endings },
            Error::NotReplaceable { .. } | Error::ExperimentMismatch { .. } => Remedy::MoveAway,
            Error::NotADataset { .. } => Remedy::GiveDataset,
            Error::Malformed { path, .. } if path.extension().is_some_and(|ending| ending == "toml") => {
                Remedy::CorrectSettingsFile
            }
            Error::Malformed { .. } | Error::MissingFile { .. } | Error::Damaged { .. } => Remedy::CopyFolder,
            Error::Version { .. } => Remedy::MatchVersion,
            Error::NotWeights { .. } => Remedy::CopyWeights,
            Error::Compression { .. } => Remedy::ChangeCompression,
            Error::HashMismatch { .. } => Remedy::RecordHash,
            Error::Column { .. } | Error::Row { .. } => Remedy::CorrectData,
            Error::Setting { .. } => Remedy::CorrectSetting,
            Error::UnknownSetting { .. } => Remedy::ListSettings,
            Error::NoSuchLabel { known, .. } => Remedy::ChooseLabel { example: known.first().cloned() },
            Error::NoSamples { .. } => Remedy::ChooseTask,
            Error::NotARun { .. } => Remedy::GiveRun,
            Error::NoWeights { path } | Error::Stopped { path, .. } => Remedy::Resume { run: path.clone() },
            Error::NoCheckpoint { .. } => Remedy::TrainAgain { is_usable: true },
            Error::Checkpoint { path, before: Some(before), .. } => {
                Remedy::ResumeEarlier { damaged: path.clone(), earlier: before.clone() }
            }
            Error::Checkpoint { before: None, .. } => Remedy::TrainAgain { is_usable: false },
            Error::RunMismatch { .. } => Remedy::KeepSettings,
            Error::CannotBeginWith { .. } => Remedy::BeginWithAlike,
            Error::NotEnded { run, .. } => Remedy::Resume { run: run.clone() },
            Error::NoExperiment { .. } => Remedy::GiveExperiment,
            Error::NoData { .. } => Remedy::NameData,
            Error::FixedSplit => Remedy::KeepSplit,
            Error::Busy { .. } => Remedy::WaitForProcess,
            Error::SettingsEdited { .. } => Remedy::RestoreSettings,
            Error::DatasetMoved { .. } => Remedy::LocateDataset,
            Error::OnlyTraining { .. } | Error::TrainingUnknown { .. } => Remedy::IncludeTraining,
            Error::IdentifiersChanged { .. } => Remedy::RestoreIdentifiers,
            Error::StratificationChanged { .. } => Remedy::UseAllParts,
            Error::DatasetMismatch { .. } => Remedy::GiveMatchingDataset,
            Error::Calibration { .. } => Remedy::Calibrate,
            Error::CannotCalibrate { .. } => Remedy::UseUncalibrated,
            Error::NotComparable { .. } => Remedy::CompareAlike,
            Error::Diverged { .. } | Error::NotFinite => Remedy::LowerLearningRate,
            Error::NoSuchEncounter => Remedy::GiveEncounterId,
            Error::CannotPredict { .. } | Error::EncounterRefused { .. } => Remedy::ChooseEncounter,
            Error::Incoming { .. } => Remedy::CorrectEncounters,
            Error::NoBuckets { .. } => Remedy::GiveCodes,
            Error::NotMeds { .. } => Remedy::WriteOtherColumns,
            Error::NoThreshold { .. } => Remedy::GiveThreshold,
            Error::UnknownName { known, .. } if known.is_empty() => Remedy::AddLabels,
            Error::UnknownName { .. } => Remedy::ChooseKnownName,
            Error::NothingKept { .. } => Remedy::WidenFilter,
            Error::Interrupted => Remedy::RunAgain,
        }
    }
}

impl Remedy {
    /// What can be done about an error of the operating system.
    pub fn of_system(error: &io::Error) -> Self {
        /// Error numbers of "too many open files", of the system and of one process; they have no kind.
        const TOO_MANY_FILES: [i32; 2] = [23, 24];
        if error.raw_os_error().is_some_and(|number| TOO_MANY_FILES.contains(&number)) {
            return Remedy::AllowOpenFiles;
        }
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Remedy::FreeSpace
            }
            io::ErrorKind::NotFound => Remedy::CheckPath,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Remedy::ChangePermissions,
            io::ErrorKind::IsADirectory => Remedy::GiveFile,
            io::ErrorKind::NotADirectory => Remedy::GiveFolder,
            io::ErrorKind::InvalidData => Remedy::SaveAsUtf8,
            io::ErrorKind::InvalidInput => Remedy::GiveRegularFile,
            io::ErrorKind::OutOfMemory => Remedy::FreeMemory,
            _ => Remedy::CheckDisk,
        }
    }
}
