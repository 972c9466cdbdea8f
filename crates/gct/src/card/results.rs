//! The results of a card: how good the answers are, where, and at which thresholds.

use super::words::{HIDDEN, UNDEFINED, estimate, fact, number, section, table, text};
use super::{Facts, Item, Section};
use crate::cells;
use crate::metric::{Estimate, Scores};
use crate::question::Question;

impl Facts<'_> {
    pub(super) fn results(&self) -> Vec<Section> {
        vec![self.performance()]
    }

    fn performance(&self) -> Section {
        let evaluation = self.evaluation;
        let mut items = vec![text(format!("On {}.", self.evaluated_on()))];
        let mut series: Vec<(&str, &Scores, Option<u64>)> =
            vec![("value", &evaluation.scores, self.predictions())];
        if !evaluation.labels.is_empty() {
            series[0].0 = "all labels";
            let labels = evaluation.labels.iter().enumerate();
            series
                .extend(labels.map(|(index, (name, scores))| (&**name, scores, self.predictions_of(index))));
        }
        let names: Vec<&str> = [""].into_iter().chain(series.iter().map(|(name, ..)| *name)).collect();
        let rows = evaluation.scores.0.iter().map(|(metric, _)| {
            let cell = |(_, scores, predictions): &(&str, &Scores, Option<u64>)| {
                told(metric, scores, *predictions, self.min_cell)
            };
            [metric_name(metric).to_owned()].into_iter().chain(series.iter().map(cell)).collect()
        });
        items.push(table("Metrics with 95 % intervals", &names, rows.collect()));
        items.push(text(
            "A dash is a metric that is not defined, for example because one of the two answers is missing.",
        ));
        items.extend(self.attention());
        section("Results: performance", "23a", items)
    }

    /// The best that can be said in a line.
    pub(super) fn headline(&self) -> String {
        let (scores, predictions) = (&self.evaluation.scores, self.predictions());
        let names = match self.run.settings().task {
            Question::Edges | Question::Labels(_) => &["aucpr", "auroc"][..],
            Question::HiddenDiagnosis => &["accuracy"],
        };
        let of =
            |name: &&str| format!("{} {}", metric_name(name), told(name, scores, predictions, self.min_cell));
        let found: Vec<String> = names.iter().map(of).collect();
        format!("{}, with 95 % intervals", found.join(", "))
    }

    /// How many predictions the metrics over all of them are of; `None` if these metrics are not told.
    fn predictions(&self) -> Option<u64> {
        let asked = self.evaluation.encounters;
        match self.run.settings().task {
            Question::Edges | Question::HiddenDiagnosis => (!self.is_few(asked)).then_some(asked),
            Question::Labels(_) => {
                let labels = self.run.settings().task.labels().len();
                (0..labels).map(|index| self.predictions_of(index)).sum()
            }
        }
    }

    /// The same of one label: both answers of it must be told.
    fn predictions_of(&self, label: usize) -> Option<u64> {
        match self.evaluated() {
            Some(part) => {
                part.labels.get(label).copied().flatten().map(|[negative, positive]| negative + positive)
            }
            None => (self.min_cell <= 1).then_some(self.evaluation.encounters),
        }
    }

    fn attention(&self) -> Vec<Item> {
        let structure = self.evaluation.structure.as_ref();
        let Some(structure) = structure.filter(|structure| !self.is_few(structure.encounters)) else {
            return Vec::new();
        };
        let facts = vec![
            fact("KL(attention || truth)", number(structure.kl_attention_truth.mean)),
            fact("entropy of attention", number(structure.entropy.mean)),
            fact("AUCPR of true edges by attention", number(structure.edges_aucpr.mean)),
        ];
        vec![text("Attention beside the true edges, mean over blocks:"), Item::Facts(facts)]
    }

    pub(super) fn recalibration(&self) -> String {
        "none".into()
    }
}

/// A metric of so many predictions, where it is told. Times their number, accuracy is a count.
fn told(name: &str, scores: &Scores, predictions: Option<u64>, min_cell: u64) -> String {
    let found = scores.0.iter().find(|(of, _)| *of == name).map(|(_, found)| *found).unwrap_or_default();
    let Some(all) = predictions else { return HIDDEN.into() };
    let right = |value: f64| (value * all as f64).round() as u64;
    match found.value {
        Some(value) if name == "accuracy" && !cells::is_told(right(value), all, min_cell) => HIDDEN.into(),
        Some(_) => estimate(&found),
        None => UNDEFINED.into(),
    }
}

/// A metric as a card calls it.
fn metric_name(name: &str) -> &str {
    match name {
        "aucpr" => "AUCPR",
        "auroc" => "AUROC",
        "accuracy" => "accuracy",
        "top_5_accuracy" => "accuracy of five guesses",
        "log_loss" => "log loss",
        "brier_score" => "Brier score",
        "calibration_error" => "calibration error",
        other => other,
    }
}

/// Whether an interval leaves a value out.
pub(super) fn leaves_out(estimate: &Estimate, value: f64) -> bool {
    estimate.interval.is_some_and(|[low, high]| value < low || value > high)
}
