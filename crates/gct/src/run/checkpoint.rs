//! Where a training stands, in one file: weights, Adam's moments, the average of the weights if there is one,
//! and a few numbers. There is no random state to keep: all that is random depends on the seed and the step.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::error::{Error, OnPath, Result};
use crate::files::{self, hex, write_own};
use crate::model::{Model, Moments};
use crate::run::Run;

/// The numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct State {
    /// Steps made.
    pub(crate) step: u64,
    /// The best validation so far.
    pub(crate) best: Option<Best>,
    /// How many validations there were since.
    pub(crate) validations_since_best: u64,
    /// The losses since the last validation.
    pub(crate) losses: Losses,
    /// How long the files were that grow: what came later is cut off.
    pub(crate) journal: [u64; 2],
    /// How long it has taken.
    pub(crate) seconds: f64,
}

/// A validation that was better than all before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// After so many steps.
    pub step: u64,
    /// The metric by which models are chosen.
    pub value: f64,
}

/// Sums of losses over steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Losses {
    pub(crate) prediction: f64,
    pub(crate) regularizer: f64,
    pub(crate) steps: u64,
}

#[derive(Serialize, Deserialize)]
struct Description {
    state: State,
    sha256: String,
    /// What identifies the run.
    run: Option<serde_json::Value>,
}

const KEY: &str = "gct";
const AVERAGE: &str = "average";
const PREFIX: &str = "checkpoint-";
const SUFFIX: &str = ".safetensors";

/// How many are kept: the last one, and the one before it in case the last is damaged.
const KEPT: usize = 2;

/// Whether a file of this name is a checkpoint.
pub(super) fn is_checkpoint(name: &str) -> bool {
    step_of(name).is_some()
}

fn step_of(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

/// The checkpoints of a run, the last one first.
fn list(run: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(run).on("read", run)? {
        let name = entry.on("read", run)?.file_name();
        if let Some(step) = name.to_str().and_then(step_of) {
            found.push((step, run.join(name)));
        }
    }
    found.sort_by_key(|(step, _)| std::cmp::Reverse(*step));
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Writes a checkpoint, whole or not at all, and removes those that are not needed any more.
pub(crate) fn save(
    run: &Run,
    (model, moments): (&Model<f32>, &Moments<f32>),
    average: Option<&[f32]>,
    state: &State,
) -> Result<()> {
    let path = run.path().join(format!("{PREFIX}{:010}{SUFFIX}", state.step));
    let wrong = |problem: String| Error::NotWeights { path: path.clone(), problem };
    let Moments { mean, square, .. } = moments;
    let weights = model.weights().values();
    let mut vectors = vec![("mean", mean.as_slice()), ("square", square), ("weights", weights)];
    vectors.extend(average.map(|average| (AVERAGE, average)));
    let bytes: Vec<Vec<u8>> = (vectors.iter())
        .map(|(_, values)| values.iter().flat_map(|value| value.to_le_bytes()).collect())
        .collect();
    let mut tensors = Vec::new();
    for ((name, values), bytes) in vectors.iter().zip(&bytes) {
        let view = TensorView::new(Dtype::F32, vec![values.len()], bytes);
        tensors.push((*name, view.map_err(|error| wrong(error.to_string()))?));
    }
    let description = Description {
        state: state.clone(),
        sha256: hash(state, bytes.iter().map(Vec::as_slice)),
        run: Some(run.identity().to_json()),
    };
    let description = serde_json::to_string(&description).map_err(|error| wrong(error.to_string()))?;
    let file = serialize(tensors, Some(HashMap::from([(KEY.to_owned(), description)])))
        .map_err(|error| wrong(error.to_string()))?;
    write_own(&path, &file)?;
    remove_old(run.path())
}

/// Removes those that are not needed any more; a kill can have come before that.
pub(crate) fn remove_old(run: &Path) -> Result<()> {
    for old in list(run)?.into_iter().skip(KEPT) {
        fs::remove_file(&old).on("remove", &old)?;
    }
    Ok(())
}

/// Whether a run has a checkpoint.
pub(crate) fn exists(run: &Path) -> Result<bool> {
    Ok(!list(run)?.is_empty())
}

/// The step of the last checkpoint; 0 if there is none.
pub(super) fn last_step(run: &Path) -> Result<u64> {
    let Some(path) = list(run)?.into_iter().next() else { return Ok(0) };
    let damaged = |problem: String| Error::Checkpoint { path: path.clone(), problem, before: None };
    let bytes = files::read(&path).on("read", &path)?;
    Ok(describe(&path, &bytes).map_err(damaged)?.state.step)
}

/// What a checkpoint says of itself. Its name must say the same step.
fn describe(path: &Path, bytes: &[u8]) -> Result<Description, String> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| error.to_string())?;
    let description = header.metadata().as_ref().and_then(|metadata| metadata.get(KEY));
    let description = description.ok_or("it has no description")?;
    let description: Description = serde_json::from_str(description).map_err(|error| error.to_string())?;
    let (named, step) = (path.file_name().and_then(|name| step_of(name.to_str()?)), description.state.step);
    match named == Some(step) {
        true => Ok(description),
        false => Err(format!("it was renamed: it is of step {step}")),
    }
}

/// What a training goes on from.
pub(crate) struct Loaded {
    pub(crate) model: Model<f32>,
    pub(crate) moments: Moments<f32>,
    /// The average of the weights, if there is one.
    pub(crate) average: Option<Vec<f32>>,
    pub(crate) state: State,
}

/// Loads the last checkpoint into a model as it is before the first step; without one, it stays so.
pub(crate) fn load(run: &Run, model: Model<f32>) -> Result<Loaded> {
    let mut all = list(run.path())?.into_iter();
    let Some(path) = all.next() else {
        let moments = Moments::zeros(model.parameters().len());
        return Ok(Loaded { model, moments, average: None, state: State::default() });
    };
    let (bytes, before) = (files::read(&path).on("read", &path)?, all.next());
    let loaded = describe(&path, &bytes).and_then(|description| {
        run.check_belongs(description.run.as_ref())?;
        let loaded = read(&bytes, description, model)?;
        match run.settings().average > 0.0 && loaded.average.is_none() {
            true => Err("it lacks the average of the weights".into()),
            false => Ok(loaded),
        }
    });
    loaded.map_err(|problem| Error::Checkpoint { path, problem, before })
}

fn read(
    bytes: &[u8],
    Description { state, sha256, .. }: Description,
    mut model: Model<f32>,
) -> Result<Loaded, String> {
    let text = |error: safetensors::SafeTensorError| error.to_string();
    let tensors = SafeTensors::deserialize(bytes).map_err(text)?;
    let has_average = tensors.names().contains(&AVERAGE);
    let mut data = Vec::new();
    for name in ["mean", "square", "weights"].into_iter().chain(has_average.then_some(AVERAGE)) {
        data.push(tensors.tensor(name).map_err(text)?.data());
    }
    if hash(&state, data.iter().copied()) != sha256 {
        return Err("its SHA-256 is not the one that was written".into());
    }
    let numbers = |bytes: &[u8]| -> Vec<f32> {
        let (numbers, _) = bytes.as_chunks();
        numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    };
    if data.iter().any(|bytes| bytes.len() != size_of::<f32>() * model.parameters().len()) {
        return Err("it is of another model".into());
    }
    let [mean, square, weights] = [0, 1, 2].map(|at: usize| numbers(data[at]));
    model.weights_mut().update(|values| values.copy_from_slice(&weights));
    let moments = Moments { mean, square, steps: state.step as u32 };
    Ok(Loaded { model, moments, average: data.get(3).map(|bytes| numbers(bytes)), state })
}

/// Of the state as well: a changed step would be as bad as a changed weight.
fn hash<'a>(state: &State, parts: impl Iterator<Item = &'a [u8]>) -> String {
    let state = serde_json::to_string(state).unwrap_or_default();
    let hash = parts.fold(Sha256::new().chain_update(state), |hash, part| hash.chain_update(part));
    hex(&hash.finalize())
}
