//! The run folder: everything about one trained model. It predicts without the dataset that it was trained
//! on.
//!
//! ```text
//! RUN/run.json               format, program, dataset and its hash, settings, hashes of the next four
//! RUN/vocabulary.parquet     the codes that the model knows
//! RUN/prior.parquet          counts of the training split, for P
//! RUN/learned.parquet        whom it learned from, as salted hashes
//! RUN/explainer.parquet      who causes what, where the model or its P was told to learn that
//! RUN/coding.json            how recorded codes and values became those codes, where that is known
//! RUN/config.toml            every setting, resolved
//! RUN/best.safetensors       the weights with the best validation
//! RUN/calibration.json       what becomes of the probabilities of labels, once it was fitted
//! RUN/last.safetensors       the weights of the last checkpoint
//! RUN/checkpoint-*           the last two: weights, Adam's moments, where it stands
//! RUN/metrics.jsonl          one object per validation
//! RUN/events.out.tfevents.*  the same for TensorBoard
//! RUN/log.txt                what happened when
//! ```
//!
//! The folder appears with its first six files in it, or not at all; every other file is replaced as a
//! whole, or only grows.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::batch::{EmbeddingRows, Encoding};
use crate::calibration::Calibration;
use crate::coding::{self, Coder, Recorded};
use crate::dataset::{self, Dataset, VOCABULARY};
use crate::error::{Error, OnPath, Result};
use crate::explainer::Account;
use crate::files::{self, FileEntry, FolderKind, Overwrite, PendingFolder};
use crate::model::{LoadedModel, Model};
use crate::overrides;
use crate::prior::Prior;
use crate::record::{CodeKind, Encounter, PerKind, Vocabulary};

pub(crate) mod checkpoint;
mod class_weight;
mod events;
mod identity;
mod init;
pub(crate) mod journal;
mod learned;
mod settings;

pub use checkpoint::Best;
pub use class_weight::ClassWeight;
pub(crate) use identity::Identity;
pub(crate) use init::Init;
pub use init::InitEntry;
pub use journal::Entry;
pub(crate) use learned::{Hasher, Learned};
pub use settings::{Decay, Settings};

/// The version of the folder's format that this program writes and reads.
pub const SCHEMA_VERSION: u32 = 1;

const MANIFEST: &str = files::RUN_MANIFEST;
const PRIOR: &str = "prior.parquet";
const LEARNED: &str = "learned.parquet";
const EXPLAINER: &str = "explainer.parquet";
const CODING: &str = "coding.json";
const CONFIG: &str = "config.toml";
pub(crate) const BEST: &str = "best.safetensors";
pub(crate) const LAST: &str = "last.safetensors";
const CALIBRATION: &str = "calibration.json";

const KIND: FolderKind = FolderKind {
    name: "run",
    manifest: MANIFEST,
    subfolder: None,
    holds: |name| {
        let fixed = [
            MANIFEST,
            VOCABULARY,
            PRIOR,
            LEARNED,
            EXPLAINER,
            CODING,
            CONFIG,
            BEST,
            LAST,
            CALIBRATION,
            journal::METRICS,
            journal::EVENTS,
            journal::LOG,
        ];
        fixed.contains(&name) || checkpoint::is_checkpoint(name)
    },
};

/// The contents of `run.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The program that wrote it.
    pub program: String,
    /// What it was trained on.
    pub dataset: DatasetEntry,
    /// How many encounters the training split has: those that P counts, whether or not the task asks about
    /// them.
    pub training_encounters: u64,
    /// How many encounters the training and the validation split have; unknown of runs of older programs.
    #[serde(default)]
    pub learned_encounters: Option<u64>,
    /// How many codes of each kind the vocabulary has.
    pub vocabulary: PerKind<u64>,
    /// The settings that it began with, which `config.toml` must still have; unknown of runs of older
    /// programs.
    #[serde(default)]
    pub settings: Option<Settings>,
    /// The run whose weights it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub init: Option<InitEntry>,
    /// The files that must stay as they are.
    pub files: Files,
}

/// What a run was trained on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetEntry {
    /// Where it was.
    pub path: PathBuf,
    /// The way there from the run folder, for both being moved together.
    #[serde(default)]
    pub relative: Option<PathBuf>,
    /// The kind of its source.
    pub source: String,
    /// The SHA-256 of its encounters.
    pub sha256: String,
    /// How many encounters it has.
    pub encounters: u64,
}

impl DatasetEntry {
    fn of(dataset: &Dataset, run: &Path) -> Result<Self> {
        let manifest = dataset.manifest();
        let path = fs::canonicalize(dataset.path()).on("open", dataset.path())?;
        if path.to_str().is_none() {
            return Err(Error::file(
                &path,
                "its path is not UTF-8, and could not be written down: rename it",
            ));
        }
        Ok(DatasetEntry {
            relative: way(run, &path),
            path,
            source: manifest.source.kind.clone(),
            sha256: manifest.identity(),
            encounters: manifest.encounters,
        })
    }
}

/// The way from a folder, which need not be there yet, to another.
fn way(from: &Path, to: &Path) -> Option<PathBuf> {
    let from = fs::canonicalize(files::parent_of(from)).ok()?.join(from.file_name()?);
    let common = from.components().zip(to.components()).take_while(|(from, to)| from == to).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    Some(up.chain(to.components().skip(common)).collect())
}

/// Files that are what was written, to the bit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// The vocabulary.
    #[serde(rename = "vocabulary.parquet")]
    pub vocabulary: FileEntry,
    /// The prior.
    #[serde(rename = "prior.parquet")]
    pub prior: FileEntry,
    /// Whom it learned from; runs of older programs do not have it.
    #[serde(rename = "learned.parquet", default)]
    pub learned: Option<FileEntry>,
    /// Who causes what, where that was learned.
    #[serde(rename = "explainer.parquet", default, skip_serializing_if = "Option::is_none")]
    pub explainer: Option<FileEntry>,
    /// How recorded codes and values became codes of the vocabulary; synthetic data have none, and runs of
    /// older programs do not have it.
    #[serde(rename = "coding.json", default, skip_serializing_if = "Option::is_none")]
    pub coding: Option<FileEntry>,
}

/// A run: a trained model with its vocabulary, its settings and what P is computed from. Weights are loaded
/// when they are first needed, and then kept.
///
/// ```
/// use gct::infer::{Reader, Which};
/// use gct::metric::Bootstrap;
/// use gct::question::Prediction;
/// use gct::run::{Run, Settings};
/// use gct::split::SplitPart;
/// # use gct::dataset::Dataset;
/// # use gct::files::Overwrite;
/// # use gct::job::Job;
/// # let home = tempfile::tempdir().unwrap();
/// # let (data, folder) = (home.path().join("data"), home.path().join("run"));
/// # let records = gct::ingest::synthetic::Settings { encounters: 200, ..Default::default() };
/// # gct::synth::run(&records, &data, Overwrite::Refuse, &Job::silent())?;
/// # let dataset = Dataset::open(&data)?;
/// # let task = "diagnosis_treatment".parse()?;
/// # let settings = Settings { steps: 3, ..Settings::paper(task, "gct", "synthetic")? };
/// # gct::train::start(settings, &dataset, &folder, Overwrite::Refuse, Default::default(), &Job::silent())?;
///
/// let run = Run::open(&folder)?;
/// // Encounters of a dataset with the code ids and the labels of the run.
/// let test = Reader::new(&run, &dataset, Which::Part(SplitPart::Test))?.collect::<gct::Result<Vec<_>>>()?;
///
/// let evaluation = run.evaluate(&test, Bootstrap::default())?;
/// println!("log loss {:?}", evaluation.scores.value("log_loss"));
/// for (prediction, vector) in run.predict(&test)?.iter().zip(run.embed(&test)?) {
///     let Prediction::Labels(probabilities) = prediction else { unreachable!("labels are asked for") };
///     assert_eq!(probabilities.len(), run.settings().task.labels().len());
///     assert_eq!(vector.len(), run.settings().width());
/// }
/// # Ok::<(), gct::Error>(())
/// ```
#[derive(Debug)]
pub struct Run {
    folder: PathBuf,
    manifest: Manifest,
    settings: Settings,
    vocabulary: Vocabulary,
    prior: Prior,
    /// The id of each code, once it is asked for.
    ids: OnceLock<PerKind<HashMap<String, u32>>>,
    /// How recorded codes become codes of the vocabulary, once it is asked for.
    coder: OnceLock<Option<Coder>>,
    /// The model for inference, once it is needed.
    loaded: OnceLock<LoadedModel>,
    /// How it is calibrated, once it is asked for.
    calibration: OnceLock<Option<Calibration>>,
}

/// Writes down who causes what, if that was learned.
fn save_account(prior: &Prior, path: &Path) -> Result<Option<FileEntry>> {
    prior.account().map(|account| account.save(path)).transpose()
}

/// A prior with who causes what, if the settings say that it was learned.
fn load_account(
    folder: &Path,
    manifest: &Manifest,
    settings: &Settings,
    sizes: PerKind<usize>,
    prior: Prior,
) -> Result<Prior> {
    let path = folder.join(EXPLAINER);
    match (settings.explainer(), &manifest.files.explainer) {
        (None, _) => Ok(prior),
        (Some(_), None) => Err(Error::file(&path, "run.json does not name it, and the settings need it")),
        (Some(_), Some(entry)) => {
            check_written(&path, entry)?;
            Ok(prior.with_account(Account::load(&path, sizes)?))
        }
    }
}

/// Whether a folder can be a run's, before any work is done for it.
///
/// # Errors
/// If something is there that may not be replaced.
pub fn check_place(folder: &Path, overwrite: Overwrite) -> Result<()> {
    files::check_folder(folder, overwrite, KIND)?;
    files::lock(&folder.join(MANIFEST)).map(drop)
}

impl Run {
    /// Begins a run on a dataset, and keeps other processes from training it as long as the file is held.
    ///
    /// # Errors
    /// If the folder exists and may not be replaced, or cannot be written.
    pub(crate) fn create(
        folder: &Path,
        overwrite: Overwrite,
        settings: Settings,
        dataset: &Dataset,
        prior: Prior,
        (mut learned, init): (Learned, Option<InitEntry>),
    ) -> Result<(Self, Option<fs::File>)> {
        let vocabulary = dataset.vocabulary();
        let replaced = files::lock(&folder.join(MANIFEST))?;
        let pending = PendingFolder::create(folder, overwrite, KIND)?;
        let manifest = Manifest {
            schema_version: SCHEMA_VERSION,
            program: concat!("gct ", env!("CARGO_PKG_VERSION")).into(),
            dataset: DatasetEntry::of(dataset, folder)?,
            training_encounters: prior.encounters(),
            learned_encounters: Some(learned.encounters()),
            vocabulary: PerKind::from_fn(|kind| vocabulary[kind].len() as u64),
            settings: Some(settings.clone()),
            init,
            files: Files {
                vocabulary: dataset::write_vocabulary(pending.path(), vocabulary)?,
                prior: prior.save(&pending.path().join(PRIOR), settings.prior.cells)?,
                learned: Some(learned.save(&pending.path().join(LEARNED))?),
                explainer: save_account(&prior, &pending.path().join(EXPLAINER))?,
                coding: write_coding(&pending.path().join(CODING), &dataset.manifest().source)?,
            },
        };
        let json = serde_json::to_string_pretty(&manifest).expect("a manifest has only text keys");
        for (name, text) in [(CONFIG, config(&settings)), (MANIFEST, json + "\n")] {
            let path = pending.path().join(name);
            let mut file = fs::File::create(&path).on("write", &path)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).on("write", &path)?;
        }
        // Locked before anybody can see it; and what has come into its place meanwhile is not replaced if it
        // is being trained.
        let own = files::lock(&pending.path().join(MANIFEST))?;
        let _replaced = match replaced {
            None => files::lock(&folder.join(MANIFEST))?,
            held => held,
        };
        pending.commit()?;
        let vocabulary = vocabulary.clone();
        Ok((Run::of(folder, manifest, settings, vocabulary, prior), own))
    }

    /// Opens a run, having checked its version and its files.
    ///
    /// # Errors
    /// If it is not one, was written by another version, or a file is damaged.
    pub fn open(folder: &Path) -> Result<Self> {
        let manifest = read_manifest(folder)?;
        let settings = read_settings(folder)?;
        check_settings(folder, &manifest, &settings)?;
        let (vocabulary, prior) = (folder.join(VOCABULARY), folder.join(PRIOR));
        check_written(&vocabulary, &manifest.files.vocabulary)?;
        check_written(&prior, &manifest.files.prior)?;
        let vocabulary = dataset::read_vocabulary(&vocabulary, manifest.vocabulary)?;
        let sizes = PerKind::from_fn(|kind| vocabulary[kind].len());
        let prior = Prior::load(&prior, sizes, manifest.training_encounters, settings.prior.cells)?;
        let prior = load_account(folder, &manifest, &settings, sizes, prior)?;
        Ok(Run::of(folder, manifest, settings, vocabulary, prior))
    }

    fn of(
        folder: &Path,
        manifest: Manifest,
        settings: Settings,
        vocabulary: Vocabulary,
        prior: Prior,
    ) -> Self {
        Run {
            folder: folder.to_owned(),
            manifest,
            settings,
            vocabulary,
            prior,
            ids: OnceLock::new(),
            coder: OnceLock::new(),
            loaded: OnceLock::new(),
            calibration: OnceLock::new(),
        }
    }

    /// The same run with the probabilities of its model as they are, calibrated or not.
    #[must_use]
    pub fn raw(self) -> Self {
        Run { loaded: OnceLock::new(), calibration: OnceLock::from(None), ..self }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The contents of `run.json`.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The contents of `config.toml`.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Makes the run longer than it was meant to be.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn set_steps(&mut self, steps: u64) -> Result<()> {
        self.settings.steps = steps;
        let path = self.folder.join(CONFIG);
        files::write_own(&path, config(&self.settings).as_bytes())
    }

    /// Keeps other processes from training it, as long as the file is held, and removes what a kill left
    /// behind.
    pub(crate) fn lock(&self) -> Result<Option<fs::File>> {
        let Some(lock) = files::lock(&self.folder.join(MANIFEST))? else { return Ok(None) };
        files::sweep_around(&self.folder);
        Ok(Some(lock))
    }

    /// Refuses a run that has been trained but has lost its checkpoints.
    pub(crate) fn check_checkpoints(&self) -> Result<()> {
        let trained = [BEST, LAST].iter().any(|name| self.folder.join(name).exists());
        if !trained || checkpoint::exists(&self.folder)? {
            return Ok(());
        }
        Err(Error::NoCheckpoint { path: self.folder.clone() })
    }

    /// Refuses a run whose training has not ended: by its settings, more steps are to be made.
    pub(crate) fn check_ended(&self) -> Result<()> {
        let entries = self.entries()?;
        let (step, steps) = (entries.last().map_or(0, |entry| entry.step), self.settings.last_step());
        let since_best = entries.iter().rev().take_while(|entry| !entry.best).count() as u64;
        let is_early = self.settings.patience > 0 && since_best >= self.settings.patience;
        match step >= steps || is_early {
            true => Ok(()),
            false => Err(Error::NotEnded { run: self.folder.clone(), step, steps }),
        }
    }

    /// Opens the dataset that it was trained on. If it is not where it was, it may have been moved together
    /// with the run.
    ///
    /// # Errors
    /// If it is not found, or is damaged.
    pub fn dataset(&self) -> Result<Dataset> {
        let DatasetEntry { path, relative, sha256, .. } = &self.manifest.dataset;
        if path.exists() {
            return Dataset::open(path);
        }
        let moved = relative.iter().map(|way| self.folder.join(way));
        let beside = path.file_name().map(|name| files::parent_of(&self.folder).join(name));
        let mut looked = vec![path.clone()];
        for candidate in moved.chain(beside) {
            // Another dataset of the same name is none of ours.
            let manifest = dataset::Manifest::read(&candidate);
            if manifest.is_ok_and(|manifest| manifest.identity() == *sha256) {
                return Dataset::open(&candidate);
            }
            if !looked.contains(&candidate) {
                looked.push(candidate);
            }
        }
        Err(Error::DatasetMoved { run: self.folder.clone(), looked })
    }

    /// Whom it learned from; `None` for runs of older programs.
    ///
    /// # Errors
    /// If its file is missing or damaged.
    pub(crate) fn learned(&self) -> Result<Option<Learned>> {
        let Some(entry) = &self.manifest.files.learned else { return Ok(None) };
        let path = self.folder.join(LEARNED);
        check_written(&path, entry)?;
        Learned::load(&path, self.manifest.learned_encounters.unwrap_or_default()).map(Some)
    }

    /// What identifies it.
    pub(crate) fn identity(&self) -> Identity {
        Identity::new(&self.settings, &self.manifest)
    }

    /// Whether a file of weights belongs to it, by the identity that the file carries. Older programs wrote
    /// none.
    pub(crate) fn check_belongs(&self, carried: Option<&serde_json::Value>) -> Result<(), String> {
        match self.manifest.settings {
            Some(_) => self.identity().check(carried),
            None => Ok(()),
        }
    }

    /// The codes that the model knows.
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The counts of its training split.
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The id of a code, if the model knows it.
    pub fn code_id(&self, kind: CodeKind, code: &str) -> Option<u32> {
        let ids = self.ids.get_or_init(|| {
            PerKind::from_fn(|kind| {
                self.vocabulary[kind].iter().map(|code| code.code.clone()).zip(0..).collect()
            })
        });
        ids[kind].get(code).copied()
    }

    /// What made the dataset that it was trained on: the source, its settings, and the findings that decide
    /// what becomes of codes. Nothing for synthetic data and for runs of older programs.
    ///
    /// # Errors
    /// If its file is missing or damaged.
    pub fn source(&self) -> Result<Option<dataset::Source>> {
        let Some(entry) = &self.manifest.files.coding else { return Ok(None) };
        let path = self.folder.join(CODING);
        check_written(&path, entry)?;
        let text = files::read_text(&path).on("read", &path)?;
        serde_json::from_str(&text).map(Some).map_err(|error| Error::file(&path, error))
    }

    /// How recorded codes and values become codes of its vocabulary. Nothing where that is not known: there
    /// codes are those of the vocabulary already.
    ///
    /// # Errors
    /// If its file is missing or damaged.
    pub fn coder(&self) -> Result<Option<&Coder>> {
        if let Some(coder) = self.coder.get() {
            return Ok(coder.as_ref());
        }
        let coder = match self.source()? {
            Some(source) => Some(
                Coder::new(&source.settings, &source.findings, &self.vocabulary)
                    .map_err(|problem| Error::file(&self.folder.join(CODING), problem))?,
            ),
            None => None,
        };
        Ok(self.coder.get_or_init(|| coder).as_ref())
    }

    /// The id of the code that a recorded one becomes, if the model knows it.
    pub(crate) fn recorded_id(
        &self,
        coder: Option<&Coder>,
        kind: CodeKind,
        code: &str,
        value: Option<f64>,
    ) -> Option<u32> {
        let Some(coder) = coder else { return self.code_id(kind, code) };
        let known = coder.code(kind, code, value, |code| self.code_id(kind, code).is_some())?;
        self.code_id(kind, &known)
    }

    /// An encounter of codes and values as they are recorded, in any order, and those of the codes that the
    /// model does not know, each once and in order; they are left out. What became of codes when the run's
    /// dataset was prepared becomes of these: groups of rollups, buckets of values.
    ///
    /// # Errors
    /// If a code has a value, and the run does not know what becomes of values; if its file about that is
    /// damaged.
    pub fn recorded(&self, codes: &PerKind<Vec<Recorded<'_>>>) -> Result<(Encounter, PerKind<Vec<String>>)> {
        let coder = self.coder()?;
        let has_value = |kind: &CodeKind| codes[*kind].iter().any(|recorded| recorded.value.is_some());
        if coder.is_none() && CodeKind::ALL.iter().any(has_value) {
            return Err(Error::NoBuckets { run: self.folder.clone() });
        }
        Ok(self.encounter_by(|kind| {
            codes[kind].iter().map(move |recorded| {
                let id = self.recorded_id(coder, kind, &recorded.code, recorded.value);
                (recorded.code.as_ref(), id)
            })
        }))
    }

    /// An encounter of these codes of its vocabulary, in any order, and those of them that the model does not
    /// know, each once and in order; they are left out.
    pub fn encounter(&self, codes: &PerKind<Vec<impl AsRef<str>>>) -> (Encounter, PerKind<Vec<String>>) {
        self.encounter_by(|kind| {
            codes[kind].iter().map(AsRef::as_ref).map(move |code| (code, self.code_id(kind, code)))
        })
    }

    /// An encounter of codes with their ids, and the codes without one, each once and in order.
    fn encounter_by<'c, I: Iterator<Item = (&'c str, Option<u32>)>>(
        &self,
        codes: impl Fn(CodeKind) -> I,
    ) -> (Encounter, PerKind<Vec<String>>) {
        let mut unknown = PerKind::<Vec<String>>::default();
        let known = PerKind::from_fn(|kind| {
            let mut known = Vec::new();
            for (code, id) in codes(kind) {
                match id {
                    Some(id) => known.push(id),
                    None => unknown[kind].push(code.to_owned()),
                }
            }
            unknown[kind].sort_unstable();
            unknown[kind].dedup();
            known
        });
        (Encounter::new(known), unknown)
    }

    /// How samples become examples for its model.
    pub fn encoding(&self) -> Encoding<'_> {
        Encoding { rows: self.embedding_rows(), prior: &self.prior, settings: &self.settings.prior }
    }

    /// Which row of the embedding belongs to which code.
    pub fn embedding_rows(&self) -> EmbeddingRows {
        EmbeddingRows::new(PerKind::from_fn(|kind| self.vocabulary[kind].len() as u32))
    }

    /// The model with the best validation; the last one, if validation was never defined.
    ///
    /// # Errors
    /// If there is none yet, or its file is not that of this run.
    pub fn model(&self) -> Result<Model<f32>> {
        let path = self.weights()?;
        let (model, carried) = Model::load_with_run(&path)?;
        let wrong = |problem: &str| Error::NotWeights { path: path.clone(), problem: problem.into() };
        if model.config() != &self.settings.model || model.head() != &self.settings.head {
            return Err(wrong("it is of another model than config.toml says"));
        }
        if model.embedding_rows() != self.embedding_rows() {
            return Err(wrong("it is of another vocabulary than the run"));
        }
        self.check_belongs(carried.as_ref()).map_err(|problem| wrong(&problem))?;
        Ok(model)
    }

    /// The same for inference. It is loaded at the first call, and stays what it was then.
    pub(crate) fn loaded(&self) -> Result<LoadedModel> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded.clone());
        }
        // In this order, weights that come in between are noticed.
        let model = self.model()?;
        let maps = self.calibration()?.map(Calibration::maps).unwrap_or_default();
        Ok(self.loaded.get_or_init(|| LoadedModel::new(&model, maps)).clone())
    }

    /// How the probabilities of its labels are calibrated, if they are. It is read at the first call, and
    /// stays what it was then.
    ///
    /// # Errors
    /// If its file is damaged, or was fitted to other weights than the run has.
    pub fn calibration(&self) -> Result<Option<&Calibration>> {
        if let Some(known) = self.calibration.get() {
            return Ok(known.as_ref());
        }
        let path = self.folder.join(CALIBRATION);
        let found = match path.exists() {
            true => Some(self.read_calibration(&path)?),
            false => None,
        };
        Ok(self.calibration.get_or_init(|| found).as_ref())
    }

    fn read_calibration(&self, path: &Path) -> Result<Calibration> {
        let unusable = |problem: &str| Error::Calibration { path: path.to_owned(), problem: problem.into() };
        let text = files::read_text(path).on("read", path)?;
        let calibration = Calibration::parse(&text).map_err(|problem| unusable(&problem))?;
        let labels = calibration.labels.iter().map(|label| &label.label);
        if !labels.eq(&self.settings.task.labels()) {
            return Err(unusable("it is of other labels than the run"));
        }
        match calibration.weights == self.weights_hash()? {
            true => Ok(calibration),
            false => Err(unusable("it was fitted to other weights than those that the run has now")),
        }
    }

    /// The SHA-256 of the file with the weights of [`Run::model`].
    pub(crate) fn weights_hash(&self) -> Result<String> {
        Ok(FileEntry::of(&self.weights()?)?.sha256)
    }

    /// Keeps a calibration, or none any more; whether there was one.
    pub(crate) fn set_calibration(&self, calibration: Option<&Calibration>) -> Result<bool> {
        let path = self.folder.join(CALIBRATION);
        let was_there = path.exists();
        match calibration {
            Some(calibration) => files::write_own(&path, calibration.to_json().as_bytes())?,
            None if was_there => fs::remove_file(&path).on("remove", &path)?,
            None => {}
        }
        Ok(was_there)
    }

    /// The file with the weights of [`Run::model`].
    fn weights(&self) -> Result<PathBuf> {
        let [best, last] = [BEST, LAST].map(|name| self.folder.join(name));
        if best.exists() {
            return Ok(best);
        }
        if let Some(entry) = self.entries()?.iter().rfind(|entry| entry.best) {
            let evidence = format!("step {} had the best validation", entry.step);
            return Err(Error::MissingFile { path: best, evidence });
        }
        if last.exists() { Ok(last) } else { Err(Error::NoWeights { path: self.folder.clone() }) }
    }

    /// Its validations.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn entries(&self) -> Result<Vec<Entry>> {
        journal::read(&self.folder)
    }

    /// Whether a dataset is the one that it was trained on, or stands where that one stood: a label may have
    /// been added since, but those who were learned from are still among its subjects.
    pub(crate) fn is_of(&self, dataset: &Dataset) -> bool {
        let same_path =
            || fs::canonicalize(dataset.path()).is_ok_and(|path| path == self.manifest.dataset.path);
        self.check_dataset(dataset).is_ok() || same_path()
    }

    /// Refuses a dataset that is not the one that it was trained on.
    pub(crate) fn check_dataset(&self, dataset: &Dataset) -> Result<()> {
        if dataset.manifest().identity() == self.manifest.dataset.sha256 {
            return Ok(());
        }
        let problem = format!("{} is not the dataset that it began with", dataset.path().display());
        Err(Error::RunMismatch { path: self.folder.clone(), problem })
    }
}

/// Writes what decides what becomes of recorded codes, if the source of a dataset says that.
fn write_coding(path: &Path, source: &dataset::Source) -> Result<Option<FileEntry>> {
    let Some(findings) = coding::findings(&source.findings) else { return Ok(None) };
    let source = dataset::Source { findings, ..source.clone() };
    let text = serde_json::to_string_pretty(&source).expect("a source has only text keys") + "\n";
    let mut file = fs::File::create(path).on("write", path)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).on("write", path)?;
    FileEntry::of(path).map(Some)
}

/// Refuses a file that is not the one that was written.
fn check_written(path: &Path, entry: &FileEntry) -> Result<()> {
    if !path.exists() {
        return Err(Error::MissingFile { path: path.to_owned(), evidence: "run.json lists it".into() });
    }
    if FileEntry::of(path)? != *entry {
        let problem = "it is not the file that was written with run.json".into();
        return Err(Error::Damaged { path: path.to_owned(), problem });
    }
    Ok(())
}

/// Refuses settings that are not those that the run began with, but for the number of steps.
fn check_settings(folder: &Path, manifest: &Manifest, settings: &Settings) -> Result<()> {
    let began = manifest.settings.as_ref();
    match began.and_then(|began| identity::difference(settings, began)) {
        Some(problem) => Err(Error::SettingsEdited { path: folder.join(CONFIG), problem }),
        None => Ok(()),
    }
}

/// A run in a list.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Its folder.
    pub path: PathBuf,
    /// What it learned.
    pub task: String,
    /// The model's name.
    pub model: String,
    /// Steps to make.
    pub steps: u64,
    /// Its seed, and that of its split.
    pub seeds: [u64; 2],
    /// Steps made, at the last checkpoint.
    pub step: u64,
    /// The metric by which models are chosen.
    pub metric: String,
    /// Its best validation.
    pub best: Option<Best>,
    /// How long it took.
    pub seconds: f64,
}

/// A run that cannot be read, in a list.
#[derive(Debug, Clone, Serialize)]
pub struct Unreadable {
    /// Its folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

/// The runs in a folder, and in folders in it, by path.
///
/// # Errors
/// If the folder cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Result<Summary, Unreadable>>> {
    if folder.join(MANIFEST).exists() {
        let unreadable = |error: Error| Unreadable { path: folder.to_owned(), problem: error.to_string() };
        return Ok(vec![summary(folder).map_err(unreadable)]);
    }
    let mut inside = Vec::new();
    for entry in fs::read_dir(folder).on("read", folder)? {
        let entry = entry.on("read", folder)?;
        if entry.file_type().on("read", folder)?.is_dir()
            && !entry.file_name().to_string_lossy().starts_with('.')
        {
            inside.push(entry.path());
        }
    }
    inside.sort();
    let listed = |folder: &PathBuf| {
        list(folder).unwrap_or_else(|error| {
            vec![Err(Unreadable { path: folder.clone(), problem: error.to_string() })]
        })
    };
    Ok(inside.iter().flat_map(listed).collect())
}

fn summary(folder: &Path) -> Result<Summary> {
    let (manifest, settings, entries) =
        (read_manifest(folder)?, read_settings(folder)?, journal::read(folder)?);
    check_settings(folder, &manifest, &settings)?;
    let best = entries.iter().rfind(|entry| entry.best);
    Ok(Summary {
        path: folder.to_owned(),
        task: settings.task.to_string(),
        model: settings.model.name().into(),
        steps: settings.last_step(),
        seeds: [settings.seed, settings.split.seed],
        step: checkpoint::last_step(folder)?,
        metric: settings.task.chosen_by().into(),
        best: best.and_then(|entry| Some(Best { step: entry.step, value: entry.value? })),
        seconds: entries.last().map_or(0.0, |entry| entry.seconds),
    })
}

fn config(settings: &Settings) -> String {
    toml::to_string(settings).expect("settings have text keys and numbers that fit")
}

fn read_manifest(folder: &Path) -> Result<Manifest> {
    let path = folder.join(MANIFEST);
    files::restore_missing(folder);
    let text = match files::read_text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => {
            return Err(Error::NotARun { path: folder.to_owned() });
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(error).on("open", folder),
        text => text.on("read", &path)?,
    };
    dataset::parse_manifest(&path, &text, &[SCHEMA_VERSION])
}

fn read_settings(folder: &Path) -> Result<Settings> {
    let path = folder.join(CONFIG);
    let settings: Settings =
        overrides::typed(&overrides::read(&path)?).map_err(|problem| Error::file(&path, problem))?;
    settings.check()?;
    Ok(settings)
}
