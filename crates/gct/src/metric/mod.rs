//! How good predictions are, and how much that would vary with other subjects.
//!
//! | what | from | gives |
//! |---|---|---|
//! | `Ranking` | scores, one by one or in bulk | AUCPR and AUROC |
//! | `SubjectRanking` | scores of subjects | the same, with intervals |
//! | `Predictions` | logits of yes or no | accuracy, log loss, Brier score, calibration error; intervals |
//! | `Sorted` | logits of yes or no, sorted | operating points, calibration slope and curve, net benefit |
//! | `CurveTally` | logits of yes or no | precision-recall, ROC and calibration curves |
//! | `Means` | any number per example | its mean, with an interval |
//! | `Replicated` | a metric by the draws of a bootstrap | differences of two models, with intervals and p values |
//! | `kl`, `entropy` | rows of attention | how far apart, how spread out; in nats |
//! | `paired` | differences over splits | whether one model is better than another |
//!
//! Undefined is `None`, never a stand-in. What an interval says is told at `Bootstrap`.

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

mod bootstrap;
mod calibration;
mod curves;
mod decision_curve;
mod line_loss;
mod means;
mod operating_points;
mod paired;
mod paired_bootstrap;
mod predictions;
mod ranking;
mod rows;
mod subject_ranking;

pub use bootstrap::{Bootstrap, Draws, Replicated};
pub use calibration::{Calibration, RiskBin};
pub use curves::{Above, CalibrationBin, CurveTally, Curves};
pub use decision_curve::{NetBenefit, decision_thresholds};
pub(crate) use line_loss::LineLoss;
pub use means::Means;
pub use operating_points::{Aim, OperatingPoint};
pub use paired::{Difference, SIGNIFICANT, paired};
pub use predictions::{PredictionEstimates, Predictions, log_loss};
pub use ranking::{Areas, Ranking};
pub use rows::{entropy, kl};
pub use subject_ranking::{AreaEstimates, Scored, Sorted, SubjectRanking};

/// A value and how far it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Estimate {
    /// On all examples. `None` where it is undefined.
    pub value: Option<f64>,
    /// The 95 % interval over subjects. `None` where too few subjects or replicates define it.
    pub interval: Option<[f64; 2]>,
}

/// Metrics by name. In JSON a name has its value, and the name with `_interval` its interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores(pub Vec<(&'static str, Estimate)>);

impl Scores {
    /// The value of a metric, if it is there and defined.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.get(name).value
    }

    /// A metric with its interval; undefined if it is not there.
    pub fn get(&self, name: &str) -> Estimate {
        self.0.iter().find(|(of, _)| *of == name).map(|(_, estimate)| *estimate).unwrap_or_default()
    }
}

impl Serialize for Scores {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2 * self.0.len()))?;
        for (name, estimate) in &self.0 {
            map.serialize_entry(name, &estimate.value)?;
            map.serialize_entry(&format!("{name}_interval"), &estimate.interval)?;
        }
        map.end()
    }
}
