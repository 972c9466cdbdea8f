//! What a run was trained with. Weights and checkpoints carry it, so that those of another run are told
//! apart.

use serde::{Deserialize, Serialize};

use super::{Manifest, Settings};
use crate::overrides;

/// Everything that decides the weights, but for how many steps were made: a run can be made longer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Identity {
    /// With no number of steps.
    settings: Settings,
    /// SHA-256 of the encounters, the vocabulary and the prior.
    dataset: String,
    vocabulary: String,
    prior: String,
    /// SHA-256 of the weights that it began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    init: Option<String>,
}

impl Identity {
    pub(crate) fn new(settings: &Settings, manifest: &Manifest) -> Self {
        Identity {
            settings: Settings { steps: 0, ..settings.clone() },
            dataset: manifest.dataset.sha256.clone(),
            vocabulary: manifest.files.vocabulary.sha256.clone(),
            prior: manifest.files.prior.sha256.clone(),
            init: manifest.init.as_ref().map(|init| init.weights_sha256.clone()),
        }
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("an identity has only text keys")
    }

    /// Whether a file belongs to this run, by what it carries; if not, what differs.
    pub(crate) fn check(&self, carried: Option<&serde_json::Value>) -> Result<(), String> {
        let carried = carried.ok_or("it does not say which run it belongs to")?;
        let carried: Identity = serde_json::from_value(carried.clone())
            .map_err(|error| format!("it does not say which run it belongs to: {error}"))?;
        if let Some(difference) = difference(&carried.settings, &self.settings) {
            return Err(format!("it belongs to another run, in which {difference}"));
        }
        let hashes = [
            ("dataset", &carried.dataset, &self.dataset),
            ("vocabulary", &carried.vocabulary, &self.vocabulary),
            ("prior", &carried.prior, &self.prior),
        ];
        match hashes.into_iter().find(|(_, carried, own)| carried != own) {
            Some((what, ..)) => Err(format!("it belongs to another run, which has another {what}")),
            None if carried.init != self.init => {
                Err("it belongs to another run, which began with other weights".into())
            }
            None => Ok(()),
        }
    }
}

/// The first setting that differs, but for the number of steps.
pub(super) fn difference(found: &Settings, expected: &Settings) -> Option<String> {
    let found = Settings { steps: expected.steps, ..found.clone() };
    let difference = overrides::difference(&found, expected)?;
    Some(difference.in_words(|name, found, expected| format!("`{name}` is {found} instead of {expected}")))
}
