//! The results of a card: how good the answers are, where, and at which thresholds.

use std::borrow::Cow;

use super::words::{HIDDEN, UNDEFINED, count, estimate, fact, integer, number, section, share, table, text};
use super::{Facts, Item, Section};
use crate::cells::{self, is_small, told_parts};
use crate::evaluate::{Decisions, Details, LabelScores, Subgroup};
use crate::metric::{Estimate, NetBenefit, OperatingPoint, RiskBin, Scores};
use crate::question::Question;

/// The answers to the question, or those about one label.
pub(super) struct Series<'a> {
    /// The label, where there are several.
    pub(super) name: Option<&'a str>,
    pub(super) scores: &'a Scores,
    pub(super) details: &'a Details,
    /// How many of them are negative and positive; `None` where metrics are not told.
    pub(super) told: Option<[u64; 2]>,
}

impl Series<'_> {
    /// A caption with the label, where there are several.
    fn caption(&self, caption: &str) -> String {
        match self.name {
            Some(label) => format!("{caption}, label {label}"),
            None => caption.to_owned(),
        }
    }

    /// What labels are told, where that may be told.
    fn decisions(&self) -> Option<(&Decisions, [u64; 2])> {
        self.details.decisions.as_ref().zip(self.told)
    }
}

impl Facts<'_> {
    pub(super) fn results(&self) -> Vec<Section> {
        let mut sections = vec![self.performance()];
        if let Question::Labels(_) = self.run.settings().task {
            sections.extend([self.operating_points(), self.calibration(), self.decision_curve()]);
        }
        sections.push(self.subgroups());
        sections
    }

    /// The answers over all labels, where there are several.
    fn all_labels(&self) -> Series<'_> {
        let labels = self.run.settings().task.labels().len();
        let told = match self.run.settings().task {
            Question::Edges
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => {
                let asked = self.evaluation.encounters;
                (!self.is_few(asked)).then_some([asked, 0])
            }
            Question::Labels(_) => {
                (0..labels).map(|index| self.told_of(index)).try_fold([0; 2], |sum, of| {
                    let of = of?;
                    Some([sum[0] + of[0], sum[1] + of[1]])
                })
            }
        };
        Series { name: None, scores: &self.evaluation.scores, details: &self.evaluation.details, told }
    }

    /// The answers about each label; those over all where there is one label or none.
    pub(super) fn series<'s>(&'s self) -> Vec<Series<'s>> {
        let labels = &self.evaluation.labels;
        let of_label = |(index, of): (usize, &'s LabelScores)| {
            let LabelScores { name, scores, details } = of;
            Series { name: Some(name), scores, details, told: self.told_of(index) }
        };
        match labels.is_empty() {
            true => vec![self.all_labels()],
            false => labels.iter().enumerate().map(of_label).collect(),
        }
    }

    /// The negatives and positives of a label that was evaluated, if they are told.
    fn told_of(&self, label: usize) -> Option<[u64; 2]> {
        self.evaluated()?.labels.get(label).copied().flatten()
    }

    fn performance(&self) -> Section {
        let mut items = vec![text(format!("On {}.", self.evaluated_on()))];
        let mut series = vec![self.all_labels()];
        if !self.evaluation.labels.is_empty() {
            series.extend(self.series());
        }
        let heading = |of: &Series<'_>| match of.name {
            Some(label) => label.to_owned(),
            None if series.len() > 1 => "all labels".into(),
            None => "value (95 % interval)".into(),
        };
        let names: Vec<String> = [String::new()].into_iter().chain(series.iter().map(heading)).collect();
        let metrics = self.evaluation.scores.0.iter().map(|(metric, _)| *metric);
        let rows = metrics.map(|metric| {
            let cell = |of: &Series<'_>| told(metric, of.scores, of.told, self.min_cell);
            [metric_name(metric).to_owned()].into_iter().chain(series.iter().map(cell)).collect()
        });
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        items.push(table("Metrics with 95 % intervals", &columns, rows.collect()));
        items.push(text(
            "A dash is a metric that is not defined, for example because one of the two answers is missing.",
        ));
        items.extend(self.attention());
        section("Results: performance", "23a", items)
    }

    /// The best that can be said in a line.
    pub(super) fn headline(&self) -> String {
        let names = match self.run.settings().task {
            Question::Edges | Question::Labels(_) => &["aucpr", "auroc"][..],
            Question::HiddenDiagnosis | Question::HiddenCode => &["accuracy"],
            Question::NextDiagnoses(_) => &["recall@20", "aucpr"],
        };
        let of_series = |series: &Series<'_>| {
            let of = |name: &&str| {
                format!("{} {}", metric_name(name), told(name, series.scores, series.told, self.min_cell))
            };
            let label = series.name.map_or_else(String::new, |label| format!("{label}: "));
            if series.told.is_none() {
                return format!("{label}hidden, since too few encounters have one of the two answers");
            }
            let found: Vec<String> = names.iter().map(of).collect();
            format!("{label}{}", found.join(", "))
        };
        let found: Vec<String> = self.series().iter().map(of_series).collect();
        let is_told = self.series().iter().any(|series| series.told.is_some());
        let intervals = if is_told { "; 95 % intervals in brackets" } else { "" };
        format!("{}{intervals}", found.join("; "))
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

    fn operating_points(&self) -> Section {
        let mut items = vec![text(
            "An answer is an alert if its probability is above the threshold. Thresholds with an aim were chosen on the \
             validation split to reach it there; they are not recommended for use.",
        )];
        for series in self.series() {
            let Some((decisions, cells)) = series.decisions() else {
                items.push(untold(&series));
                continue;
            };
            if decisions.thresholds.is_empty() {
                items.push(text("No threshold is told."));
                continue;
            }
            let told = told_points(&decisions.thresholds, cells, self.min_cell);
            let rows = decisions.thresholds.iter().zip(told).map(|(point, told)| point_row(point, told));
            let columns =
                ["threshold", "chosen for", "sensitivity", "specificity", "PPV", "NPV", "alerts per 1,000"];
            items.push(table(series.caption("Operating points"), &columns, rows.collect()));
        }
        section("Results: operating points", "23a", items)
    }

    fn calibration(&self) -> Section {
        let mut items = vec![text(
            "A slope of 1 is right; less says that probabilities are too extreme, more that they are not extreme enough. \
             An intercept of 0 is right; less says that they are too high.",
        )];
        for series in self.series() {
            let Some((decisions, _)) = series.decisions() else {
                items.push(untold(&series));
                continue;
            };
            let calibration = &decisions.calibration;
            let facts =
                calibration.scores.0.iter().map(|(name, of)| fact(series.caption(name), estimate(of)));
            items.push(Item::Facts(facts.collect()));
            let rows = risk_rows(&calibration.bins, self.min_cell);
            if rows.is_empty() {
                continue;
            }
            let columns = ["predicted, mean", "happened", "95 % interval", "encounters"];
            items.push(table(series.caption("Calibration in groups of like probability"), &columns, rows));
        }
        section("Results: calibration", "23a", items)
    }

    fn decision_curve(&self) -> Section {
        let mut items = vec![text(
            "Net benefit per encounter of acting on the model's alerts, on everybody and on nobody: true positives less \
             false ones, weighted by the odds of the threshold.",
        )];
        for series in self.series() {
            let Some((decisions, cells)) = series.decisions() else {
                items.push(untold(&series));
                continue;
            };
            if decisions.net_benefit.is_empty() {
                items.push(text("Not told beside the curves of the page."));
                continue;
            }
            let points = &decisions.thresholds;
            let told = told_points(points, cells, self.min_cell);
            let of_point = |(point, told): (&OperatingPoint, bool)| {
                let is_at = |of: &&NetBenefit| of.threshold == point.threshold;
                decisions.net_benefit.iter().find(is_at).map(|benefit| benefit_row(benefit, told))
            };
            let given = points.iter().zip(told).filter(|(point, _)| point.chosen_for.is_none());
            let columns = ["threshold", "model", "treat all", "treat none"];
            items.push(table(
                series.caption("Decision curve"),
                &columns,
                given.filter_map(of_point).collect(),
            ));
        }
        section("Results: decision curve", "23a", items)
    }

    fn subgroups(&self) -> Section {
        let mut items = Vec::new();
        for series in self.series() {
            for groups in series.details.subgroups.chunk_by(|one, other| one.by == other.by) {
                items.extend(subgroup_table(&series, groups));
            }
        }
        if items.is_empty() {
            items.push(text(
                "None: the encounters that were evaluated have no context that they could be grouped by, or none was \
                 chosen.",
            ));
        }
        section("Results: subgroups", "14, 23a", items)
    }

    /// What was done to the probabilities after training.
    pub(super) fn recalibration(&self) -> String {
        match self.evaluation.calibrated {
            Some(method) => format!("{}, fitted on the validation split", method.name()),
            None => "none".into(),
        }
    }
}

/// What stands where a label has too few of one answer.
fn untold(series: &Series<'_>) -> Item {
    let label = series.name.map_or_else(String::new, |label| format!(" for the label {label}"));
    text(format!("Hidden{label}: too few encounters have one of the two answers."))
}

/// A metric, where it is told. Times the number of predictions, accuracy is a count.
fn told(name: &str, scores: &Scores, told: Option<[u64; 2]>, min_cell: u64) -> String {
    let found = scores.0.iter().find(|(of, _)| *of == name).map(|(_, found)| *found).unwrap_or_default();
    let Some(all) = told.map(|[negative, positive]| negative + positive) else { return HIDDEN.into() };
    let right = |value: f64| (value * all as f64).round() as u64;
    match found.value {
        Some(value) if name.contains("accuracy") && !cells::is_told(right(value), all, min_cell) => {
            HIDDEN.into()
        }
        _ => estimate(&found),
    }
}

/// How many positives and negatives are above a threshold, of so many.
fn above(point: &OperatingPoint, [negatives, positives]: [u64; 2]) -> [u64; 2] {
    let of = |share: Option<f64>, all: u64| (share.unwrap_or_default() * all as f64).round() as u64;
    let quiet = of(point.scores.value("specificity"), negatives);
    [of(point.scores.value("sensitivity"), positives), negatives - quiet.min(negatives)]
}

/// Which operating points are told: those with no small cell, and so far from each other that what lies
/// between two is not small either.
fn told_points(points: &[OperatingPoint], [negatives, positives]: [u64; 2], min_cell: u64) -> Vec<bool> {
    let mut shown: Vec<[u64; 2]> = Vec::new();
    let is_told = |point: &OperatingPoint| {
        let [hits, alarms] = above(point, [negatives, positives]);
        let cells = [hits, alarms, positives - hits.min(positives), negatives - alarms];
        let between = shown.iter().flat_map(|of| [of[0].abs_diff(hits), of[1].abs_diff(alarms)]);
        let told = !cells.into_iter().chain(between).any(|cell| is_small(cell, min_cell));
        shown.extend(told.then_some([hits, alarms]));
        told
    };
    // What was chosen for something comes first.
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by_key(|index| points[*index].chosen_for.is_none());
    let told: Vec<bool> = order.iter().map(|index| &points[*index]).map(is_told).collect();
    let mut by_index: Vec<(usize, bool)> = order.into_iter().zip(told).collect();
    by_index.sort_unstable();
    by_index.into_iter().map(|(_, told)| told).collect()
}

fn point_row(point: &OperatingPoint, told: bool) -> Vec<String> {
    let shares = ["sensitivity", "specificity", "ppv", "npv"];
    let aim = point.chosen_for.map_or_else(|| UNDEFINED.into(), |aim| aim.to_string().replace('=', " "));
    let mut row = vec![share(point.threshold), aim];
    if !told {
        row.extend(vec![HIDDEN.to_owned(); shares.len() + 1]);
        return row;
    }
    row.extend(shares.map(|name| short(&point.scores.get(name), 3)));
    row.push(short(&point.scores.get("alerts_per_1000"), 0));
    row
}

/// A value with its interval, in so many digits.
fn short(of: &Estimate, digits: usize) -> String {
    match (of.value, of.interval) {
        (Some(value), Some([low, high])) => format!("{value:.digits$} ({low:.digits$} to {high:.digits$})"),
        (Some(value), None) => format!("{value:.digits$}"),
        (None, _) => UNDEFINED.into(),
    }
}

fn risk_rows(bins: &[RiskBin], min_cell: u64) -> Vec<Vec<String>> {
    let cells = |bin: &RiskBin| {
        let positives = (bin.happened * bin.count as f64).round() as u64;
        [positives, bin.count - positives.min(bin.count)]
    };
    let told = told_parts(&bins.iter().map(cells).collect::<Vec<_>>(), min_cell);
    let row = |(bin, told): (&RiskBin, bool)| {
        let [low, high] = bin.happened_interval;
        let happened =
            [share(bin.happened), format!("{} to {}", share(low), share(high)), integer(bin.count)];
        let happened = if told { happened } else { [HIDDEN; 3].map(str::to_owned) };
        [share(bin.said)].into_iter().chain(happened).collect()
    };
    bins.iter().zip(told).map(row).collect()
}

fn benefit_row(benefit: &NetBenefit, told: bool) -> Vec<String> {
    let cell = |value: f64| format!("{value:.4}");
    let model = if told { cell(benefit.model) } else { HIDDEN.into() };
    vec![share(benefit.threshold), model, cell(benefit.treat_all), cell(benefit.treat_none)]
}

/// The subgroups by one name: their sizes, the first metrics, and how far these are from everybody else's.
fn subgroup_table(series: &Series<'_>, groups: &[Subgroup]) -> Vec<Item> {
    let by = &groups[0].by;
    if groups.iter().all(|group| group.encounters.is_none()) {
        let caption = series.caption(&format!("By {by}"));
        return vec![text(format!(
            "{caption}: hidden, since groups are too small, alone or by subtraction."
        ))];
    }
    let names: Vec<&str> = groups
        .iter()
        .find(|group| !group.scores.0.is_empty())
        .map(|group| {
            group.scores.0.iter().map(|(name, _)| *name).filter(|name| is_of_subgroups(name)).collect()
        })
        .unwrap_or_default();
    let (has_positives, mut columns) =
        (series.details.decisions.is_some(), vec![Cow::from(&**by), "encounters".into()]);
    columns.extend(has_positives.then(|| "positives".into()));
    for name in &names {
        columns.push(metric_name(name).into());
        columns
            .extend(is_ranked(name).then(|| format!("{} less that of the others", metric_name(name)).into()));
    }
    let row = |group: &Subgroup| {
        let mut row = vec![group.group.clone(), count(group.encounters)];
        let positives = group.counts.and_then(|counts| counts.positives);
        row.extend(has_positives.then(|| count(positives)));
        for name in &names {
            let cell = |scores: &Scores| match group.encounters {
                Some(_) => short(&scores.get(name), 3),
                None => HIDDEN.into(),
            };
            row.push(cell(&group.scores));
            row.extend(is_ranked(name).then(|| cell(&group.gaps)));
        }
        row
    };
    let columns: Vec<&str> = columns.iter().map(|name| &**name).collect();
    vec![table(series.caption(&format!("By {by}")), &columns, groups.iter().map(row).collect())]
}

/// Metrics that a card gives of subgroups. Accuracy would be a count.
fn is_of_subgroups(name: &str) -> bool {
    is_ranked(name) || ["recall@20", "log_loss", "calibration_slope", "calibration_intercept"].contains(&name)
}

/// Metrics whose difference from everybody else's is given.
fn is_ranked(name: &str) -> bool {
    ["aucpr", "auroc"].contains(&name)
}

/// A metric as a card calls it.
pub(super) fn metric_name(name: &str) -> &str {
    match name {
        "aucpr" => "AUCPR",
        "auroc" => "AUROC",
        "top_5_accuracy" => "accuracy of five guesses",
        "log_loss" => "log loss",
        "brier_score" => "Brier score",
        "calibration_error" => "calibration error",
        "calibration_slope" => "calibration slope",
        "calibration_intercept" => "calibration intercept",
        other => other,
    }
}

/// Whether an interval leaves a value out.
pub(super) fn leaves_out(estimate: &Estimate, value: f64) -> bool {
    estimate.interval.is_some_and(|[low, high]| value < low || value > high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::metric::Aim;

    fn point([hits, alarms]: [u64; 2], [negatives, positives]: [u64; 2], aim: Option<Aim>) -> OperatingPoint {
        let share = |value: u64, of: u64| Estimate { value: Some(value as f64 / of as f64), interval: None };
        let scores = vec![
            ("sensitivity", share(hits, positives)),
            ("specificity", share(negatives - alarms, negatives)),
        ];
        OperatingPoint { threshold: 0.5, chosen_for: aim, scores: Scores(scores) }
    }

    #[test]
    fn a_chosen_threshold_comes_before_one_that_is_too_near() {
        let cells = [500, 100];
        let points = [([50, 60], None), ([45, 60], Some(Aim::Sensitivity(0.4))), ([20, 0], None)];
        let points: Vec<OperatingPoint> = points.map(|(of, aim)| point(of, cells, aim)).into();
        assert_eq!(told_points(&points, cells, 11), [false, true, true]);
        assert_eq!(told_points(&points, cells, 0), [true; 3]);
    }

    proptest! {
        #[test]
        fn nothing_small_stands_in_or_between_points_that_are_told(
            found in prop::collection::vec([0u64..=40, 0..=200], 1..8)
        ) {
            let cells = [200, 40];
            let points: Vec<OperatingPoint> = found.iter().map(|of| point(*of, cells, None)).collect();
            let told = told_points(&points, cells, 11);
            let told = found.iter().zip(told).filter(|(_, told)| *told);
            let told: Vec<&[u64; 2]> = told.map(|(of, _)| of).collect();
            for [hits, alarms] in &told {
                let all = [*hits, *alarms, 40 - hits, 200 - alarms];
                let between = told.iter().flat_map(|of| [of[0].abs_diff(*hits), of[1].abs_diff(*alarms)]);
                prop_assert!(!all.into_iter().chain(between).any(|cell| is_small(cell, 11)), "{told:?}");
            }
        }
    }
}
