//! The run whose weights a training begins with: what is taken of it, and what is noted of it.
//!
//! Of parameters those with the same name and shape are taken. Rows of the embedding belong to codes: with
//! another vocabulary each row is taken by the kind and the name of its code, and a code that the other run
//! does not know keeps its random row. The head is taken if the question is the same, unless it has an output
//! for each code and the codes are others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Hasher, Learned, Run, Settings};
use crate::batch::EmbeddingRows;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::model::{Config, Model};
use crate::question::{HeadConfig, Question};
use crate::record::{CodeKind, Encounter, PerKind, SplitPart, Vocabulary};

/// The run whose weights a training began with, as `run.json` has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InitEntry {
    /// Its folder, as it was given.
    pub path: PathBuf,
    /// What it had learned.
    pub task: Question,
    /// The SHA-256 of its file of weights.
    pub weights_sha256: String,
    /// The SHA-256 of the encounters that it had learned from.
    pub dataset_sha256: String,
    /// How many codes of the new run's vocabulary it knows, by kind.
    pub known: PerKind<u64>,
    /// The parameters that were not taken of it and began at random.
    pub new: Vec<String>,
    /// How many encounters of the new run's test split it had learned from; unknown of runs of older
    /// programs.
    pub test_encounters: Option<u64>,
}

/// A run to begin with, and what it is looked at for.
pub(crate) struct Init {
    run: Run,
    model: Model<f32>,
    path: PathBuf,
    recognition: Option<(Learned, Hasher)>,
    test_encounters: Option<u64>,
}

impl Init {
    /// Opens the run that the settings name, if they name one.
    ///
    /// # Errors
    /// If it cannot be opened, its training has not ended, or its model is another one.
    pub(crate) fn open(settings: &Settings, dataset: &Dataset) -> Result<Option<Self>> {
        let Some(path) = settings.init.as_deref() else { return Ok(None) };
        let run = Run::open(path)?;
        check_alike(path, run.settings(), settings)?;
        run.check_ended()?;
        let model = run.model()?;
        let same_split = run.settings().split == settings.split && run.check_dataset(dataset).is_ok();
        let learned = if same_split { None } else { run.learned()? };
        let test_encounters = (same_split || learned.is_some()).then_some(0);
        let hasher = || Hasher::new(&run.manifest().dataset.sha256, dataset);
        let recognition = learned.map(|learned| (learned, hasher()));
        Ok(Some(Init { model, path: path.to_owned(), recognition, test_encounters, run }))
    }

    /// Counts an encounter of the test split that it learned from.
    pub(crate) fn note(&mut self, encounter: &Encounter, part: SplitPart) {
        let Some((learned, hasher)) = self.recognition.as_ref().filter(|_| part == SplitPart::Test) else {
            return;
        };
        let knows = learned.knows(hasher, encounter);
        self.test_encounters = self.test_encounters.map(|count| count + u64::from(knows));
    }

    /// Gives a model of these settings, as it is before the first step, the weights of the run.
    pub(crate) fn give(
        &self,
        model: &mut Model<f32>,
        settings: &Settings,
        vocabulary: &Vocabulary,
    ) -> Result<InitEntry> {
        let theirs = self.run.vocabulary();
        let ids = PerKind::from_fn(|kind| {
            let known: HashMap<&str, u32> =
                theirs[kind].iter().map(|code| code.code.as_str()).zip(0..).collect();
            vocabulary[kind].iter().map(|code| known.get(code.code.as_str()).copied()).collect::<Vec<_>>()
        });
        let same = CodeKind::ALL
            .into_iter()
            .all(|kind| ids[kind].iter().copied().eq((0..theirs[kind].len() as u32).map(Some)));
        let (own, other) = (model.embedding_rows(), self.model.embedding_rows());
        let row_of = |row: u32| match own.code_at(row) {
            Some((kind, id)) => Some(other.code(kind, ids[kind][id as usize]?)),
            None if row == EmbeddingRows::VISIT => Some(EmbeddingRows::VISIT),
            None => Some(other.hidden()),
        };
        let new = model.take(&self.model, row_of, |name| may_take(name, self.run.settings(), settings, same));
        Ok(InitEntry {
            path: self.path.clone(),
            task: self.run.settings().task.clone(),
            weights_sha256: self.run.weights_hash()?,
            dataset_sha256: self.run.manifest().dataset.sha256.clone(),
            known: PerKind::from_fn(|kind| ids[kind].iter().flatten().count() as u64),
            new,
            test_encounters: self.test_encounters,
        })
    }
}

/// Whether a parameter means the same in both runs if it has the same name and shape; `same` is whether their
/// vocabularies are.
fn may_take(name: &str, theirs: &Settings, own: &Settings, same: bool) -> bool {
    let is_of_codes = match &own.head {
        HeadConfig::HiddenDiagnosis | HeadConfig::HiddenCode | HeadConfig::NextDiagnoses => true,
        HeadConfig::Edges { .. } | HeadConfig::RawEdges | HeadConfig::Labels { .. } => false,
    };
    match name.split('.').next() {
        Some("head") => theirs.task == own.task && theirs.head == own.head && (same || !is_of_codes),
        Some("history") => theirs.history.aggregator == own.history.aggregator,
        // MiME's outputs for each code.
        Some("auxiliary") => same,
        _ => true,
    }
}

/// Refuses a run of another model or width.
fn check_alike(path: &Path, theirs: &Settings, own: &Settings) -> Result<()> {
    let refused = |problem: String| Err(Error::CannotBeginWith { run: path.to_owned(), problem });
    let [their_model, own_model] = [theirs, own].map(|settings| settings.model.name());
    if their_model != own_model {
        return refused(format!("it is of the model {their_model}, and {own_model} is to be trained"));
    }
    let [their_width, own_width] = [theirs, own].map(Settings::width);
    if their_width != own_width {
        return refused(format!(
            "its width is {their_width}, and that of the model to be trained {own_width}"
        ));
    }
    Ok(())
}

impl Settings {
    /// Refuses a run to begin with where there is nothing that could begin.
    pub(super) fn check_init(&self) -> Result<()> {
        match (&self.model, &self.init) {
            (Config::Logistic(_), Some(init)) => {
                let allowed = "nothing, because logistic regression is fitted to convergence from zero";
                Err(Error::setting("init", init.display(), allowed))
            }
            (Config::Explainer(_), Some(init)) => {
                let allowed = "nothing, because an explainer counts anew";
                Err(Error::setting("init", init.display(), allowed))
            }
            _ => Ok(()),
        }
    }
}
