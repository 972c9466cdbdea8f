//! How good predictions are, and how much that would vary with other subjects.
//!
//! | what | from | gives |
//! |---|---|---|
//! | `Ranking` | scores, one by one or in bulk | AUCPR and AUROC |
//! | `SubjectRanking` | scores of subjects | the same, with intervals |
//! | `Predictions` | logits of yes or no | accuracy, log loss, Brier score, calibration error; intervals |
//! | `CurveTally` | logits of yes or no | precision-recall, ROC and calibration curves |
//! | `Means` | any number per example | its mean, with an interval |
//! | `kl`, `entropy` | rows of attention | how far apart, how spread out; in nats |
//! | `logit_line` | logits and targets | the logistic regression of the one on the other: slope and intercept |
//! | `Replicated` | the replicates of a metric | its interval; the difference of two, with a p value |
//! | `paired` | differences over splits | whether one model is better than another |
//!
//! Undefined is `None`, never a stand-in. What an interval says is told at `Bootstrap`.

use serde::{Deserialize, Serialize};

mod bootstrap;
mod curves;
mod logistic;
mod means;
mod paired;
mod predictions;
mod ranking;
mod replicated;
mod rows;
mod subject_ranking;

pub use bootstrap::Bootstrap;
pub use curves::{CalibrationBin, CurveTally, Curves};
pub use logistic::{LogitLine, logit_line};
pub use means::Means;
pub use paired::{Difference, SIGNIFICANT, paired};
pub use predictions::{PredictionEstimates, Predictions, log_loss};
pub use ranking::{Areas, Ranking};
pub use replicated::Replicated;
pub use rows::{entropy, kl};
pub use subject_ranking::{AreaEstimates, Scored, SubjectRanking};

/// A value and how far it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// On all examples. `None` where it is undefined.
    pub value: Option<f64>,
    /// The 95 % interval over subjects. `None` where too few subjects or replicates define it.
    pub interval: Option<[f64; 2]>,
}

/// Metrics by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores(pub Vec<(&'static str, Estimate)>);

impl Scores {
    /// The value of a metric, if it is there and defined.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(of, _)| *of == name).and_then(|(_, estimate)| estimate.value)
    }
}
