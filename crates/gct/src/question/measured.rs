//! What an evaluation tells beside the metrics: counts, what happens at thresholds, calibration, subgroups.

use serde::Serialize;

use super::next_diagnoses::CodeScores;
use super::subgroups::Subgroup;
use crate::metric::{Aim, Bootstrap, Calibration, Draws, NetBenefit, OperatingPoint, Scores, Sorted};
use crate::record::Code;

/// How much was predicted, and how much of it was true.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Predictions that were compared with the truth: of labels, of pairs of nodes, of hidden diagnoses, of
    /// each diagnosis in the next visit.
    pub predictions: u64,
    /// Whose encounters they are about.
    pub subjects: u64,
    /// How many were true: labels, or edges among pairs. `None` for hidden diagnoses, each of which is one
    /// of many classes.
    pub positives: Option<u64>,
    /// Their share.
    pub prevalence: Option<f64>,
}

impl Counts {
    pub(super) fn of(sorted: &Sorted) -> Self {
        Counts::new(sorted.len() as u64, sorted.subjects().len(), sorted.positives())
    }

    pub(super) fn new(predictions: u64, subjects: usize, positives: u64) -> Self {
        Counts {
            predictions,
            subjects: subjects as u64,
            positives: Some(positives),
            prevalence: (predictions > 0).then(|| positives as f64 / predictions as f64),
        }
    }
}

/// What an evaluation tells beside the metrics, of all predictions or of those of one label.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Details {
    /// How much was predicted.
    #[serde(flatten)]
    pub counts: Counts,
    /// What probabilities are good for, of labels.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub decisions: Option<Decisions>,
    /// The most frequent diagnoses of next visits, one by one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub codes: Vec<CodeScores>,
    /// The same for subgroups, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subgroups: Vec<Subgroup>,
}

/// What probabilities of a label are good for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Decisions {
    /// What happens at some thresholds: first those that were given, then those chosen on validation.
    pub thresholds: Vec<OperatingPoint>,
    /// Whether probabilities mean what they say.
    pub calibration: Calibration,
    /// The decision curve.
    pub net_benefit: Vec<NetBenefit>,
}

/// How a model does on one of several labels.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelScores {
    /// The label.
    pub name: String,
    /// The metrics.
    pub scores: Scores,
    /// What else is told.
    pub details: Details,
}

/// Thresholds that aims chose: over all labels, then for each where there are several.
pub(crate) type Chosen = Vec<Vec<(Aim, f64)>>;

/// What is asked of predictions.
pub(crate) struct Asked<'a> {
    pub(crate) bootstrap: Bootstrap,
    pub(crate) thresholds: &'a [f64],
    pub(crate) chosen: &'a Chosen,
    /// Subgroups and diagnoses of fewer are not told.
    pub(crate) min_cell: u64,
    /// The diagnoses that the run knows.
    pub(crate) diagnoses: &'a [Code],
}

impl Asked<'_> {
    /// The chosen thresholds of all labels (0), or of one.
    pub(super) fn chosen_of(&self, series: usize) -> &[(Aim, f64)] {
        self.chosen.get(series).map_or(&[], Vec::as_slice)
    }

    /// The operating points of labels.
    pub(super) fn points(
        &self,
        sorted: &Sorted,
        chosen: &[(Aim, f64)],
        draws: &Draws,
    ) -> Vec<OperatingPoint> {
        let given = self.thresholds.iter().map(|threshold| (None, *threshold));
        let all: Vec<(Option<Aim>, f64)> =
            given.chain(chosen.iter().map(|(aim, threshold)| (Some(*aim), *threshold))).collect();
        let thresholds: Vec<f64> = all.iter().map(|(_, threshold)| *threshold).collect();
        let points = sorted.operating_points(&thresholds, draws);
        let named = |(point, (aim, _)): (OperatingPoint, &(Option<Aim>, f64))| OperatingPoint {
            chosen_for: *aim,
            ..point
        };
        points.into_iter().zip(&all).map(named).collect()
    }
}
