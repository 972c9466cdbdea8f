//! What an experiment learns from.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Experiment;
use crate::ceiling::Ceiling;
use crate::dataset::Dataset;
use crate::error::{Error, OnPath, Result};
use crate::files::{Overwrite, check_outside, is_partial, write_own};
use crate::job::Job;
use crate::overrides;
use crate::statistics::{self, Statistics};
use crate::synth;

const FILE: &str = "data.json";
const DATA: &str = "data";

/// Refuses a folder that is not one of experiments, nor empty: files of the user's could have the names of
/// ours.
pub(super) fn check_folder(folder: &Path) -> Result<()> {
    if folder.join(FILE).exists() {
        return About::read(folder).map(drop);
    }
    check_outside(folder)?;
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).on("read", folder)? {
        let name = entry.on("read", folder)?.file_name();
        // Data are made before anything is written about them.
        if name != DATA && !is_partial(&name) && !folder.join(FILE).exists() {
            let problem = format!("it holds `{}`, which is not part of an experiment", name.display());
            return Err(Error::NotReplaceable { path: folder.to_owned(), problem });
        }
    }
    Ok(())
}

/// What is known of the data without having them.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// The kind of the source.
    pub source: String,
    /// The SHA-256 of the encounters.
    pub sha256: String,
    /// Counts.
    pub statistics: Statistics,
    /// What graph reconstruction can reach, where that is known.
    pub ceiling: Option<Ceiling>,
}

impl About {
    /// Reads it from a folder of experiments.
    ///
    /// # Errors
    /// If it is not there, or not what this program writes.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE);
        overrides::read_json(&path)
    }

    /// Counts the data and writes it, unless it is there already.
    pub(super) fn of(dataset: &Dataset, folder: &Path, job: &Job<'_, u64>) -> Result<Self> {
        let manifest = dataset.manifest();
        let path = folder.join(FILE);
        if path.exists() {
            let about = About::read(folder)?;
            if about.sha256 != manifest.identity() {
                let problem = format!("{} is not the dataset that it began with", dataset.path().display());
                return Err(Error::ExperimentMismatch { path: folder.to_owned(), problem });
            }
            return Ok(about);
        }
        let findings = synth::Findings::of(dataset)?;
        let about = About {
            source: manifest.source.kind.clone(),
            sha256: manifest.identity(),
            statistics: statistics::collect(dataset, job)?,
            ceiling: findings.map(|findings| findings.ceiling),
        };
        let json = serde_json::to_string_pretty(&about).expect("counts have only text keys");
        write_own(&path, (json + "\n").as_bytes())?;
        Ok(about)
    }
}

impl Experiment {
    /// Opens the data: those that are given, those that its file names, or those that it makes for itself.
    ///
    /// # Errors
    /// If there are none; if they are not of this experiment; if they cannot be made; if the job is stopped.
    pub fn dataset(
        &self,
        folder: &Path,
        given: Option<&Path>,
        job: &Job<'_, synth::Event>,
    ) -> Result<Dataset> {
        check_folder(folder)?;
        if let Some(path) = given.or(self.data.folder.as_deref()) {
            return Dataset::open(path);
        }
        let wrong = |problem: String| Error::file(&PathBuf::from(format!("{}.toml", self.name)), problem);
        let Some(settings) = self.generator().map_err(wrong)? else {
            return Err(Error::NoData { experiment: self.name.clone() });
        };
        let path = folder.join(DATA);
        if !path.exists() {
            match synth::run(&settings, &path, Overwrite::Refuse, job) {
                // Another process has made the same data in the meantime.
                Err(Error::OutputExists { .. }) => {}
                made => drop(made?),
            }
        }
        let dataset = Dataset::open(&path)?;
        let there = overrides::from_json(dataset.manifest().source.settings.clone())
            .map_err(|problem| Error::file(&path, format!("source.settings: {problem}")))?;
        match overrides::difference(&settings, &there) {
            None => Ok(dataset),
            Some(problem) => {
                Err(Error::ExperimentMismatch { path, problem: format!("data.synthetic: {problem}") })
            }
        }
    }
}
