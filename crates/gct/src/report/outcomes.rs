//! How good answers about labels are where they are used: at thresholds, by calibration and net benefit, and
//! in subgroups.

use serde::Serialize;

use super::NamedCurves;
use crate::cells;
use crate::evaluate::{Details, Evaluation, LabelScores};
use crate::metric::{Above, Calibration, NetBenefit, OperatingPoint, Scores};
use crate::question::{Question, gaps};

/// What a label's probabilities are good for.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Outcome {
    name: String,
    /// With a known label.
    encounters: Option<u64>,
    positives: Option<u64>,
    prevalence: Option<f64>,
    /// With a smallest cell the chosen one at most: differences between rows are counts of few encounters,
    /// and so are those to the points of the curves, which are kept away from that one.
    thresholds: Vec<OperatingPoint>,
    calibration: Calibration,
    net_benefit: Vec<NetBenefit>,
}

/// How a model does on a group of patients.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Group {
    label: String,
    by: String,
    group: String,
    encounters: Option<u64>,
    positives: Option<u64>,
    #[serde(flatten)]
    scores: Scores,
    /// How far metrics are from those of all other encounters.
    #[serde(flatten, serialize_with = "gaps")]
    gaps: Scores,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// Each label with what is said of it.
fn labels<'a>(question: &Question, evaluation: &'a Evaluation) -> Vec<(String, &'a Details)> {
    match question.labels().as_slice() {
        [only] => vec![(only.clone(), &evaluation.details)],
        _ => {
            let several = |LabelScores { name, details, .. }: &'a LabelScores| (name.clone(), details);
            evaluation.labels.iter().map(several).collect()
        }
    }
}

/// The first threshold that was chosen on validation.
fn chosen(details: &Details) -> Option<&OperatingPoint> {
    let thresholds = details.decisions.iter().flat_map(|decisions| &decisions.thresholds);
    thresholds.into_iter().find(|point| point.chosen_for.is_some())
}

/// How many predictions of each label are above its threshold.
pub(super) fn above(question: &Question, evaluation: &Evaluation) -> Vec<Option<Above>> {
    let above = |(_, details): (String, &Details)| {
        let (point, counts) = (chosen(details)?, details.counts);
        let share = |name: &str, of: u64| Some((point.scores.value(name)? * of as f64).round() as u64);
        let positives = share("sensitivity", counts.positives?)?;
        let alerts = (point.scores.value("alerts_per_1000")? / 1000.0 * counts.predictions as f64).round();
        Some(Above { threshold: point.threshold, positives, negatives: alerts as u64 - positives })
    };
    labels(question, evaluation).into_iter().map(above).collect()
}

/// The labels of a question. With a smallest cell, not one without curves: one of its answers is too rare.
pub(super) fn outcomes(
    question: &Question,
    evaluation: &Evaluation,
    curves: &[NamedCurves],
    min_cell: u64,
) -> Vec<Outcome> {
    let outcome = |(name, details): (String, &Details)| {
        let decisions = details.decisions.clone()?;
        let own = curves.iter().find(|curve| curve.name == name);
        if min_cell > 1 && own.is_none() {
            return None;
        }
        let chosen = || chosen(details).filter(|_| own.is_some_and(|curve| curve.has_threshold));
        let counts = &details.counts;
        let [count, positives] = [Some(counts.predictions), counts.positives];
        let is_told = positives.is_some_and(|some| cells::is_told(some, counts.predictions, min_cell));
        let mut calibration = decisions.calibration;
        if min_cell > 1 {
            calibration.bins.clear();
        }
        Some(Outcome {
            name,
            encounters: count.filter(|count| !cells::is_small(*count, min_cell)),
            positives: positives.filter(|_| is_told),
            prevalence: counts.prevalence.filter(|_| is_told),
            thresholds: match min_cell {
                0 | 1 => decisions.thresholds,
                _ => chosen().into_iter().cloned().collect(),
            },
            calibration,
            net_benefit: if min_cell > 1 { Vec::new() } else { decisions.net_benefit },
        })
    };
    labels(question, evaluation).into_iter().filter_map(outcome).collect()
}

/// What a card beside these outcomes may be written of: with a smallest cell the same thresholds, and no bins
/// and no decision curve, as with the curves these could give small counts.
pub(super) fn of_card(
    evaluation: &Evaluation,
    question: &Question,
    curves: &[NamedCurves],
    min_cell: u64,
) -> Evaluation {
    let mut shown = evaluation.clone();
    if min_cell <= 1 {
        return shown;
    }
    let told = outcomes(question, evaluation, curves, min_cell);
    let only = question.labels();
    let withhold = |name: Option<&String>, details: &mut Details| {
        let Some(decisions) = &mut details.decisions else { return };
        let own = name.and_then(|name| told.iter().find(|outcome| outcome.name == *name));
        decisions.thresholds = own.map(|outcome| outcome.thresholds.clone()).unwrap_or_default();
        decisions.calibration.bins.clear();
        decisions.net_benefit.clear();
    };
    withhold(only.first().filter(|_| only.len() == 1), &mut shown.details);
    for LabelScores { name, details, .. } in &mut shown.labels {
        withhold(Some(name), details);
    }
    shown
}

/// The subgroups of each label, which the evaluation tells by the same smallest cell. Accuracy, and what
/// happens at thresholds, are counts over counts that are told: without a smallest cell alone.
pub(super) fn subgroups(question: &Question, evaluation: &Evaluation, min_cell: u64) -> Vec<Group> {
    let of_label = |(label, details): (String, &Details)| {
        let group = move |of: &crate::evaluate::Subgroup| {
            let [mut scores, mut gaps] = [&of.scores, &of.gaps].map(Clone::clone);
            for metrics in [&mut scores, &mut gaps] {
                metrics.0.retain(|(name, _)| min_cell <= 1 || *name != "accuracy");
            }
            let chosen = of.thresholds.iter().find(|point| point.chosen_for.is_some());
            scores.0.extend(chosen.filter(|_| min_cell <= 1).iter().flat_map(|point| &point.scores.0));
            Group {
                label: label.clone(),
                by: of.by.clone(),
                group: of.group.clone(),
                encounters: of.encounters,
                positives: of.counts.and_then(|counts| counts.positives),
                scores,
                gaps,
                note: of.note,
            }
        };
        details.subgroups.iter().map(group).collect::<Vec<_>>()
    };
    labels(question, evaluation).into_iter().flat_map(of_label).collect()
}
