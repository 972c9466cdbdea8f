//! One training of an experiment, and what it found.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::error::{Error, OnPath, Result};
use crate::evaluate::{self, Evaluation};
use crate::files::{Overwrite, write_own};
use crate::infer::Which;
use crate::job::Job;
use crate::metric::Bootstrap;
use crate::overrides;
use crate::run::{Best, Run, Settings};
use crate::split::SplitPart;
use crate::train::{self, Event, Execution};

/// One training of an experiment, as its file plans it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTrial {
    /// The model, or the name of a variant.
    pub model: String,
    /// What it is trained with.
    pub settings: Settings,
    /// Whether it is measured on the test split.
    pub test: bool,
}

/// What a trial found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// The program that found it.
    pub program: String,
    /// The model, or the name of a variant.
    pub model: String,
    /// The SHA-256 of the encounters.
    pub dataset_sha256: String,
    /// Encounters of the training split, whether or not the task asks about them.
    pub training_encounters: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// The weights that were measured.
    pub best: Option<Best>,
    /// Metrics on the validation split.
    pub validation: Measured,
    /// Metrics on the test split, if it was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Measured>,
    /// Steps, and the metric by which models are chosen, on the validation split.
    pub curve: Vec<(u64, Option<f64>)>,
    /// What it was trained with.
    pub settings: Settings,
}

/// Metrics on a part of the split.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// On how many encounters.
    pub encounters: u64,
    /// The metrics that are defined, by name.
    #[serde(rename = "figures")]
    pub metrics: BTreeMap<String, f64>,
}

impl Measured {
    fn of(evaluation: &Evaluation) -> Self {
        let scores = evaluation.scores.0.iter().filter_map(|(name, metric)| Some((*name, metric.value?)));
        let structure = evaluation.structure.iter().flat_map(|structure| {
            [
                ("kl_attention_truth", structure.kl_attention_truth.mean),
                ("kl_truth_attention", structure.kl_truth_attention.mean),
                ("entropy", structure.entropy.mean),
                ("edges_aucpr", structure.edges_aucpr.mean),
            ]
        });
        let structure = structure.filter_map(|(name, value)| Some((name, value?)));
        let metrics = scores.chain(structure).map(|(name, value)| (name.to_owned(), value)).collect();
        Measured { encounters: evaluation.encounters, metrics }
    }
}

impl PlannedTrial {
    /// Its name in a folder of experiments.
    pub fn name(&self) -> String {
        let plain = |name: &str| -> String {
            name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '.' }).collect()
        };
        let (task, split) = (self.settings.task.to_string(), self.settings.split.seed);
        format!("{}-{}-{split}", plain(&task), plain(&self.model))
    }

    fn file(&self, folder: &Path) -> PathBuf {
        folder.join("trials").join(format!("{}.json", self.name()))
    }

    /// Its run folder.
    pub fn run_folder(&self, folder: &Path) -> PathBuf {
        folder.join("runs").join(self.name())
    }

    /// What it found, if it has finished: trained, and measured on what it is to be measured on.
    ///
    /// # Errors
    /// If it was run with other settings, or on other data.
    pub fn finished(&self, folder: &Path, dataset_sha256: &str) -> Result<Option<Finished>> {
        let path = self.file(folder);
        if !path.exists() {
            return Ok(None);
        }
        let finished: Finished = overrides::read_json(&path)?;
        if let Some(problem) = overrides::difference(&self.settings, &finished.settings) {
            return Err(Error::ExperimentMismatch { path, problem: problem.to_string() });
        }
        if finished.dataset_sha256 != dataset_sha256 {
            return Err(Error::ExperimentMismatch { path, problem: "it began with another dataset".into() });
        }
        Ok(Some(finished).filter(|finished| finished.test.is_some() || !self.test))
    }

    /// Refuses a run folder that was begun with other settings.
    pub(super) fn check_run(&self, folder: &Path) -> Result<()> {
        let path = self.run_folder(folder);
        if !path.exists() {
            return Ok(());
        }
        match overrides::difference(&self.settings, Run::open(&path)?.settings()) {
            None => Ok(()),
            Some(problem) => Err(Error::ExperimentMismatch { path, problem: problem.to_string() }),
        }
    }

    /// Trains it, or resumes its training, measures it and writes down what it found.
    pub(super) fn run(&self, folder: &Path, dataset: &Dataset, job: &Job<'_, Event>) -> Result<Finished> {
        let path = self.run_folder(folder);
        self.check_run(folder)?;
        let outcome = match path.exists() {
            true => train::resume(&path, dataset, None, Execution::default(), job)?,
            false => {
                let settings = self.settings.clone();
                train::start(settings, dataset, &path, Overwrite::Refuse, Execution::default(), job)?
            }
        };
        // A table compares models as they were trained.
        let run = Run::open(&path)?.raw();
        let measured = |part: SplitPart| -> Result<Measured> {
            let bootstrap = Bootstrap { replicates: 0, seed: 0 };
            match evaluate::run(&run, dataset, Which::Part(part), bootstrap, &job.inner(|_| None)) {
                // Its training is kept.
                Err(Error::Interrupted) => Err(Error::Stopped { step: outcome.step, path: path.clone() }),
                evaluation => Ok(Measured::of(&evaluation?)),
            }
        };
        let finished = Finished {
            program: run.manifest().program.clone(),
            model: self.model.clone(),
            dataset_sha256: run.manifest().dataset.sha256.clone(),
            training_encounters: run.manifest().training_encounters,
            seconds: outcome.seconds,
            best: outcome.best,
            validation: measured(SplitPart::Validation)?,
            test: if self.test { Some(measured(SplitPart::Test)?) } else { None },
            curve: run.entries()?.iter().map(|entry| (entry.step, entry.value)).collect(),
            settings: self.settings.clone(),
        };
        let file = self.file(folder);
        let json = serde_json::to_string_pretty(&finished).expect("what a trial found has only text keys");
        let parent = folder.join("trials");
        fs::create_dir_all(&parent).on("create", &parent)?;
        write_own(&file, (json + "\n").as_bytes())?;
        Ok(finished)
    }
}
