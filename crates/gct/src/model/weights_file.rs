//! A model in one file: its weights as safetensors, each under the path of its field, and what is needed to
//! build it again in the file's own metadata. `docs/weights.md` says how to use it from other programs.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Config, Model};
use crate::batch::EmbeddingRows;
use crate::error::{Error, OnPath, Result};
use crate::files::{self, Overwrite, hex, write_file};
use crate::history::History;
use crate::parameters::Parameters;
use crate::question::HeadConfig;
use crate::record::CodeKind;

/// What the metadata of a file hold, as JSON, under the key `gct`. One key, because several would be written
/// in any order.
#[derive(Serialize, Deserialize)]
struct Description {
    format: u32,
    model: Config,
    head: HeadConfig,
    #[serde(default, skip_serializing_if = "History::is_none")]
    history: History,
    rows: EmbeddingRows,
    /// Of the numbers, in the order of the parameters. Who changes weights on purpose leaves it out.
    sha256: Option<String>,
    /// What identifies the run that the weights are of, for weights in a run folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<serde_json::Value>,
}

/// What all formats have.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

const KEY: &str = "gct";
const FORMAT: u32 = 1;

impl Model<f32> {
    /// Writes the model to a file that appears whole or not at all. The same weights make the same bytes.
    ///
    /// # Errors
    /// If the file cannot be written, or a weight is not finite.
    pub fn save(&self, path: &Path, overwrite: Overwrite) -> Result<()> {
        let file = self.to_file(path, None)?;
        write_file(path, overwrite, |mut to| to.write_all(&file).on("write", path))
    }

    /// What [`Model::save`] writes, with what identifies the run that it is of; `path` is for messages.
    pub(crate) fn to_file(&self, path: &Path, run: Option<serde_json::Value>) -> Result<Vec<u8>> {
        let bytes = bytes_of(self.weights.values());
        let wrong = |problem: String| Error::NotWeights { path: path.to_owned(), problem };
        if !self.weights.values().iter().all(|value| value.is_finite()) {
            return Err(wrong("a weight is not finite, and nothing was written".into()));
        }
        let mut tensors = Vec::new();
        for named in self.parameters.named() {
            let range = 4 * named.start..4 * (named.start + named.len());
            let view = TensorView::new(Dtype::F32, named.shape.clone(), &bytes[range]);
            tensors.push((named.name.as_str(), view.map_err(|error| wrong(error.to_string()))?));
        }
        let description = Description {
            format: FORMAT,
            model: self.network.config.clone(),
            head: self.head_config.clone(),
            history: self.history.clone(),
            rows: self.rows,
            sha256: Some(hex(&Sha256::digest(&bytes))),
            run,
        };
        let description = serde_json::to_string(&description).map_err(|error| wrong(error.to_string()))?;
        let metadata = HashMap::from([(KEY.to_owned(), description)]);
        serialize(tensors, Some(metadata)).map_err(|error| wrong(error.to_string()))
    }

    /// Reads a model.
    ///
    /// # Errors
    /// If the file is not there, or is not what [`Model::save`] wrote.
    pub fn load(path: &Path) -> Result<Self> {
        Model::load_with_run(path).map(|(model, _)| model)
    }

    /// The same, and what identifies the run that it is of.
    pub(crate) fn load_with_run(path: &Path) -> Result<(Self, Option<serde_json::Value>)> {
        let bytes = files::read(path).on("read", path)?;
        let wrong = |problem: String| Error::NotWeights { path: path.to_owned(), problem };
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(|error| wrong(error.to_string()))?;
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| wrong(error.to_string()))?;
        let description = (header.metadata().as_ref().and_then(|metadata| metadata.get(KEY)))
            .ok_or_else(|| wrong(format!("its metadata have no `{KEY}`: another program wrote it")))?;
        let json = |error: serde_json::Error| wrong(format!("its metadata: {error}"));
        let Format { format } = serde_json::from_str(description).map_err(json)?;
        if format != FORMAT {
            return Err(wrong(format!("it has format {format}, but this program reads format {FORMAT}")));
        }
        let Description { model, head, history, rows, sha256, run, .. } =
            serde_json::from_str(description).map_err(json)?;
        // Before any memory is asked for: the vocabulary must be as large as the table that is there.
        let codes = CodeKind::ALL.map(|kind| rows.codes(kind) as u64).iter().sum::<u64>();
        let table = tensors.tensor("embedding").map_err(|_| wrong("it has no `embedding`".into()))?;
        if table.shape().first().map(|rows| *rows as u64) != Some(codes + 2) {
            return Err(wrong(format!("`embedding` is {:?}, for {codes} codes", table.shape())));
        }
        let read = |parameters: &Parameters| read(&tensors, parameters).map_err(wrong);
        let model = Model::build((&model, &history), &head, rows, read).map_err(|error| match error {
            Error::Setting { .. } => wrong(error.to_string()),
            other => other,
        })?;
        match sha256 {
            Some(written) if written != hex(&Sha256::digest(bytes_of(model.weights.values()))) => {
                Err(wrong("its numbers are not those that were written".into()))
            }
            _ => Ok((model, run)),
        }
    }
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The values of all parameters, or what is wrong with them.
fn read(tensors: &SafeTensors<'_>, parameters: &Parameters) -> Result<Vec<f32>, String> {
    let mut values = Vec::new();
    for named in parameters.named() {
        let name = &named.name;
        let tensor = tensors.tensor(name).map_err(|_| format!("it has no `{name}`"))?;
        if tensor.dtype() != Dtype::F32 || tensor.shape() != named.shape {
            let (kind, shape, expected) = (tensor.dtype(), tensor.shape(), &named.shape);
            return Err(format!("`{name}` is {kind:?} {shape:?}; expected F32 {expected:?}"));
        }
        let (numbers, _) = tensor.data().as_chunks();
        values.extend(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)));
        if !values[named.start..].iter().all(|value| value.is_finite()) {
            return Err(format!("`{name}` has a number that is not finite"));
        }
    }
    if tensors.len() > parameters.named().len() {
        return Err("it has weights that this model does not have".into());
    }
    Ok(values)
}
