//! Which model, with which settings, and what is refused.

use serde::{Deserialize, Serialize};

use super::{DeepConfig, GcnConfig, GctConfig, LogisticConfig, MimeConfig, ShallowConfig, TransformerConfig};
use crate::error::{Error, Result};
use crate::explainer;
use crate::overrides;
use crate::question::{Backbone, HeadConfig};

/// A model by its name in the paper, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case")]
pub enum Config {
    /// The paper's model.
    Gct(GctConfig),
    /// Attention without a hint.
    Transformer(TransformerConfig),
    /// Convolution with the true structure.
    Gcn(GcnConfig),
    /// Convolution with P.
    GcnP(GcnConfig),
    /// Convolution with random weights.
    GcnRandom(GcnConfig),
    /// Layers on each node, then a sum.
    Shallow(ShallowConfig),
    /// Layers on each node, a sum, layers on the sum.
    Deep(DeepConfig),
    /// Diagnoses with the treatments they led to, then a sum.
    Mime(MimeConfig),
    /// A sum of the weights of codes: logistic regression. Not of the paper.
    Logistic(LogisticConfig),
    /// Who causes what, counted or drawn. Not of the paper.
    Explainer(explainer::Settings),
}

impl Config {
    /// The paper's settings for a model, but for dropout, which depends on the task and is off here.
    ///
    /// # Errors
    /// If there is no such model.
    pub fn named(name: &str) -> Result<Self> {
        Ok(match Config::canonical(name)? {
            "gct" => Config::Gct(GctConfig::default()),
            "transformer" => Config::Transformer(TransformerConfig::default()),
            "gcn" => Config::Gcn(GcnConfig::default()),
            "gcn_p" => Config::GcnP(GcnConfig::default()),
            "gcn_random" => Config::GcnRandom(GcnConfig::default()),
            "shallow" => Config::Shallow(ShallowConfig::default()),
            "deep" => Config::Deep(DeepConfig::default()),
            "mime" => Config::Mime(MimeConfig::default()),
            "logistic" => Config::Logistic(LogisticConfig::default()),
            "explainer" => Config::Explainer(explainer::Settings::default()),
            name => unreachable!("{name} is among the names and has no settings"),
        })
    }

    /// The name of a model as files spell it: case does not matter, nor do hyphens for underscores.
    ///
    /// # Errors
    /// If there is no such model.
    pub fn canonical(name: &str) -> Result<&'static str> {
        overrides::canonical("model", name, &Config::NAMES)
    }

    /// The names of those that are networks, and of logistic regression, which is one with a single layer.
    pub const NETWORKS: [&str; 9] =
        ["gct", "transformer", "gcn", "gcn_p", "gcn_random", "shallow", "deep", "mime", "logistic"];

    /// The names of all models.
    pub const NAMES: [&str; 10] = [
        "gct",
        "transformer",
        "gcn",
        "gcn_p",
        "gcn_random",
        "shallow",
        "deep",
        "mime",
        "logistic",
        "explainer",
    ];

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Config::Gct(_) => "gct",
            Config::Transformer(_) => "transformer",
            Config::Gcn(_) => "gcn",
            Config::GcnP(_) => "gcn_p",
            Config::GcnRandom(_) => "gcn_random",
            Config::Shallow(_) => "shallow",
            Config::Deep(_) => "deep",
            Config::Mime(_) => "mime",
            Config::Logistic(_) => "logistic",
            Config::Explainer(_) => "explainer",
        }
    }

    /// Refuses every value that makes no sense.
    ///
    /// # Errors
    /// The first one found.
    pub fn check(&self) -> Result<()> {
        match self {
            Config::Gct(config) => config.check(),
            Config::Transformer(config) => config.check(),
            Config::Gcn(config) | Config::GcnP(config) | Config::GcnRandom(config) => config.check(),
            Config::Shallow(config) => config.check(),
            Config::Deep(config) => config.check(),
            Config::Mime(config) => config.check(),
            Config::Logistic(config) => config.check(),
            Config::Explainer(settings) => settings.check(),
        }
    }

    /// Numbers per node, and per visit, under this head.
    pub fn width(&self, head: &HeadConfig) -> usize {
        match self {
            Config::Gct(config) => config.width,
            Config::Transformer(config) => config.width,
            Config::Gcn(config) | Config::GcnP(config) | Config::GcnRandom(config) => config.width,
            Config::Shallow(config) => config.width,
            Config::Deep(config) => config.width,
            Config::Mime(config) => config.width,
            // A weight of each code for each label.
            Config::Logistic(_) => head.labels(),
            // It has none.
            Config::Explainer(_) => 1,
        }
    }

    /// What a head must know of it.
    pub(crate) fn backbone(&self, head: &HeadConfig) -> Backbone {
        Backbone {
            name: self.name(),
            width: self.width(head),
            compares_nodes: !matches!(self, Config::Deep(_) | Config::Mime(_) | Config::Logistic(_)),
            explains: matches!(self, Config::Explainer(_)),
            nodes_see_others: !matches!(
                self,
                Config::Shallow(_) | Config::Deep(_) | Config::Logistic(_) | Config::Explainer(_)
            ),
            sums_logits: matches!(self, Config::Logistic(_)),
        }
    }

    /// Whether nodes take something from each other, block by block.
    pub fn mixes(&self) -> bool {
        !matches!(
            self,
            Config::Shallow(_)
                | Config::Deep(_)
                | Config::Mime(_)
                | Config::Logistic(_)
                | Config::Explainer(_)
        )
    }

    /// Refuses a model that has no vectors of visits and codes.
    pub(crate) fn check_vectors(&self) -> Result<()> {
        match self {
            Config::Explainer(_) => {
                let allowed = "a model with vectors of visits and codes, such as gct: an explainer has none";
                Err(Error::setting("model", self.name(), allowed))
            }
            _ => Ok(()),
        }
    }

    /// Whether it must be given the true edges.
    pub fn needs_edges(&self) -> bool {
        matches!(self, Config::Gcn(_) | Config::Mime(_))
    }

    /// Whether nodes look at all nodes, or only along the pairs that M allows.
    pub(super) fn is_unrestricted(&self) -> bool {
        matches!(self, Config::Transformer(_) | Config::GcnRandom(_))
    }

    /// Whether nodes look only away from the visit.
    pub(super) fn is_directed(&self) -> bool {
        match self {
            Config::Gct(config) => config.attention.directed,
            Config::Transformer(config) => config.attention.directed,
            _ => false,
        }
    }
}

/// Refuses a width or a number that makes no sense.
pub(super) fn check_whole(name: &str, value: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::setting(name, value, &format!("a whole number from 1 to {most}")))
}

/// Refuses the weight of a part of the loss that makes no sense.
pub(super) fn check_weight(name: &str, value: f64) -> Result<()> {
    if (0.0..=1e6).contains(&value) {
        return Ok(());
    }
    Err(Error::setting(name, value, "a number from 0 to 1000000"))
}
