//! Remedies of the library in the words of a command line.

use std::borrow::Cow;

use gct::Remedy;

/// What to do about an error of the library, and with which flag.
pub fn hint(remedy: &Remedy) -> Cow<'static, str> {
    use Remedy::*;
    let fixed = match remedy {
        FreeSpace => "free some space or choose a folder on another disk; what was there is as it was",
        FreeMemory => "close other programs, or use a machine with more memory",
        AllowOpenFiles => "allow more open files, as with `ulimit -n 4096`, and run the command again",
        CheckPath => "check the spelling of the path, and that it is there",
        ChangePermissions => "change the permissions of the file and its folder, or choose another path",
        CheckDisk => "check that the disk is there and has no errors, and run the command again",
        GiveFile => "give a file, not a folder",
        GiveFolder => "give a folder: a part of the path is a file",
        GiveRegularFile => "write its contents into a file, and give that",
        SaveAsUtf8 => "save the file as UTF-8 text",

        ChooseOutput { is_run: true } => "resume it (--resume), replace it (--force), or choose another path",
        ChooseOutput { is_run: false } => "choose another path, or replace it with --force",
        MoveAway => "choose another path, or move away what is there",
        ChangeEnding { endings } => {
            return format!("end its name in .{}", endings.join(" or .")).into();
        }

        GiveDataset => "a dataset folder is made by a command such as `gct synth --out DIR`",
        LocateDataset => "say where it is now: --data DIR",
        GiveMatchingDataset => "give the dataset that the run was trained on, or one made like it",
        UseAllParts => "give the dataset that the run was trained on, or use all encounters with --split all",
        GiveRun => "a run folder is made by `gct train --out RUN`",
        GiveExperiment => "such a folder is made by `gct experiment FILE.toml --out DIR`",
        NameData => "give a dataset folder with --data DIR, or generator settings under [data.synthetic]",
        GiveEncounterId => "give an id of the column `encounter_id` of the dataset's encounters",
        ChooseEncounter => "choose another encounter",
        CorrectEncounters => "correct the file; docs/runs.md shows under New patients what it looks like",
        GiveCodes => GIVE_CODES,

        CopyFolder => "copy the folder again from where it came, or make it again",
        CopyWeights => "copy the file again from where it came, or train the model again",
        CorrectSettingsFile => "correct the file; a setting is a line NAME = VALUE, with text in quotes",
        CorrectData => CORRECT_DATA,
        ChangeCompression => {
            "write it with Snappy compression, or none: `write_parquet(..., compression=\"snappy\")`"
        }
        RecordHash => RECORD_HASH,
        MatchVersion => "make it again with this version of gct, or use the version that wrote it",

        CorrectSetting => "change it where it was given: by a flag, with --set or in a file",
        ListSettings => "--show-config prints all settings with their names and values",
        ChooseLabel { example: None } => "try graph_reconstruction or masked_diagnosis",
        ChooseLabel { example: Some(label) } => {
            return format!("any of them can be learned: --task label:{label}").into();
        }
        ChooseTask => "choose another task with --task, or a dataset that has it",
        GiveThreshold => "aim at something else with --at, or give the threshold itself with --thresholds",
        ChooseKnownName => "give one of the known names",
        AddLabels => "make the dataset again with labels: `gct prepare` joins your own with --labels FILE",
        KeepSplit => KEEP_SPLIT,
        WidenFilter => WIDEN_FILTER,
        LowerLearningRate => LOWER_LEARNING_RATE,

        Resume { run } => {
            return format!("resume it with: gct train --out {} --resume", run.display()).into();
        }
        ResumeEarlier { damaged, earlier } => {
            return format!(
                "remove {}, and --resume continues from {}",
                damaged.display(),
                earlier.display()
            )
            .into();
        }
        TrainAgain { is_usable: false } => "there is no earlier checkpoint: train again with --force",
        TrainAgain { is_usable: true } => {
            "its model can still be used; to train it further, train again with --force"
        }
        KeepSettings => "only --steps can change; for anything else train into another folder with --out",
        BeginWithAlike => "give a run of the same model and width, or leave --init out to begin at random",
        RestoreSettings => "put it back as it was, or train with other settings into another folder",
        WaitForProcess => "wait until that has ended, or train into another folder with --out",

        Calibrate => "fit it again with `gct calibrate RUN`, or use the probabilities as they are with --raw",
        UseUncalibrated => "the run can be used as it is, with the probabilities of its model",
        CompareAlike => "compare runs of the same task, dataset, split settings and part of the split",

        IncludeTraining => "give data of other patients, or include these with --include-training",
        RestoreIdentifiers => RESTORE_IDENTIFIERS,
        WriteOtherColumns => "without --meds they can be written, with columns of gct's own",
        RunAgain => "run the same command again to start over",
    };
    fixed.into()
}

const GIVE_CODES: &str = "give codes of the run without values, as `gct embed RUN --what codes` lists them, or \
     train the run again";

const CORRECT_DATA: &str =
    "correct it where the data come from and make the file again; docs/data.md describes the columns";

const RECORD_HASH: &str = "if you changed it on purpose, put its new size and SHA-256 into dataset.json \
     (docs/data.md says how); otherwise make the dataset again";

const KEEP_SPLIT: &str = "keep to seed 0 without stratification, or split by subject instead: \
     split.by=subject (--set), --split-by subject";

const WIDEN_FILTER: &str = "lower min_codes, raise max_codes, or let encounters grow longer \
     (more_diagnoses, more_treatments, more_labs)";

const LOWER_LEARNING_RATE: &str =
    "train again with a lower learning rate (--set learning_rate=...), or with clipping (--set clip=1)";

const RESTORE_IDENTIFIERS: &str = "give the data with the identifiers they had; if these are other patients, \
     put them into another folder; or include all with --include-training";

#[cfg(test)]
mod tests {
    use std::iter::successors;
    use std::path::PathBuf;

    use super::*;

    /// One of each kind of remedy, each found by way of the one before it, so that the compiler misses none.
    fn after(remedy: Option<&Remedy>) -> Option<Remedy> {
        let path = || PathBuf::from("P");
        Some(match remedy {
            None => Remedy::FreeSpace,
            Some(Remedy::FreeSpace) => Remedy::FreeMemory,
            Some(Remedy::FreeMemory) => Remedy::AllowOpenFiles,
            Some(Remedy::AllowOpenFiles) => Remedy::CheckPath,
            Some(Remedy::CheckPath) => Remedy::ChangePermissions,
            Some(Remedy::ChangePermissions) => Remedy::CheckDisk,
            Some(Remedy::CheckDisk) => Remedy::GiveFile,
            Some(Remedy::GiveFile) => Remedy::GiveFolder,
            Some(Remedy::GiveFolder) => Remedy::GiveRegularFile,
            Some(Remedy::GiveRegularFile) => Remedy::SaveAsUtf8,
            Some(Remedy::SaveAsUtf8) => Remedy::ChooseOutput { is_run: true },
            Some(Remedy::ChooseOutput { is_run: true }) => Remedy::ChooseOutput { is_run: false },
            Some(Remedy::ChooseOutput { is_run: false }) => Remedy::MoveAway,
            Some(Remedy::MoveAway) => Remedy::ChangeEnding { endings: &["svg"] },
            Some(Remedy::ChangeEnding { .. }) => Remedy::GiveDataset,
            Some(Remedy::GiveDataset) => Remedy::LocateDataset,
            Some(Remedy::LocateDataset) => Remedy::GiveMatchingDataset,
            Some(Remedy::GiveMatchingDataset) => Remedy::UseAllParts,
            Some(Remedy::UseAllParts) => Remedy::GiveRun,
            Some(Remedy::GiveRun) => Remedy::BeginWithAlike,
            Some(Remedy::BeginWithAlike) => Remedy::GiveExperiment,
            Some(Remedy::GiveExperiment) => Remedy::NameData,
            Some(Remedy::NameData) => Remedy::GiveEncounterId,
            Some(Remedy::GiveEncounterId) => Remedy::ChooseEncounter,
            Some(Remedy::ChooseEncounter) => Remedy::CorrectEncounters,
            Some(Remedy::CorrectEncounters) => Remedy::GiveCodes,
            Some(Remedy::GiveCodes) => Remedy::CopyFolder,
            Some(Remedy::CopyFolder) => Remedy::CopyWeights,
            Some(Remedy::CopyWeights) => Remedy::CorrectSettingsFile,
            Some(Remedy::CorrectSettingsFile) => Remedy::CorrectData,
            Some(Remedy::CorrectData) => Remedy::ChangeCompression,
            Some(Remedy::ChangeCompression) => Remedy::RecordHash,
            Some(Remedy::RecordHash) => Remedy::MatchVersion,
            Some(Remedy::MatchVersion) => Remedy::CorrectSetting,
            Some(Remedy::CorrectSetting) => Remedy::ListSettings,
            Some(Remedy::ListSettings) => Remedy::ChooseLabel { example: None },
            Some(Remedy::ChooseLabel { example: None }) => Remedy::ChooseLabel { example: Some("l".into()) },
            Some(Remedy::ChooseLabel { example: Some(_) }) => Remedy::ChooseTask,
            Some(Remedy::ChooseTask) => Remedy::GiveThreshold,
            Some(Remedy::GiveThreshold) => Remedy::ChooseKnownName,
            Some(Remedy::ChooseKnownName) => Remedy::AddLabels,
            Some(Remedy::AddLabels) => Remedy::KeepSplit,
            Some(Remedy::KeepSplit) => Remedy::WidenFilter,
            Some(Remedy::WidenFilter) => Remedy::LowerLearningRate,
            Some(Remedy::LowerLearningRate) => Remedy::Resume { run: path() },
            Some(Remedy::Resume { .. }) => Remedy::ResumeEarlier { damaged: path(), earlier: path() },
            Some(Remedy::ResumeEarlier { .. }) => Remedy::TrainAgain { is_usable: false },
            Some(Remedy::TrainAgain { is_usable: false }) => Remedy::TrainAgain { is_usable: true },
            Some(Remedy::TrainAgain { is_usable: true }) => Remedy::KeepSettings,
            Some(Remedy::KeepSettings) => Remedy::RestoreSettings,
            Some(Remedy::RestoreSettings) => Remedy::WaitForProcess,
            Some(Remedy::WaitForProcess) => Remedy::Calibrate,
            Some(Remedy::Calibrate) => Remedy::UseUncalibrated,
            Some(Remedy::UseUncalibrated) => Remedy::CompareAlike,
            Some(Remedy::CompareAlike) => Remedy::IncludeTraining,
            Some(Remedy::IncludeTraining) => Remedy::RestoreIdentifiers,
            Some(Remedy::RestoreIdentifiers) => Remedy::WriteOtherColumns,
            Some(Remedy::WriteOtherColumns) => Remedy::RunAgain,
            Some(Remedy::RunAgain) => return None,
        })
    }

    #[test]
    fn every_remedy_is_a_line_of_at_least_three_words() {
        let remedies: Vec<Remedy> = successors(after(None), |remedy| after(Some(remedy))).collect();
        for remedy in &remedies {
            let hint = hint(remedy);
            assert!(hint.split(' ').count() >= 3 && !hint.contains('\n'), "{remedy:?}: {hint}");
        }
        assert_eq!(remedies.len(), 58, "one of each");
    }
}
