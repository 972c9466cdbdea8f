//! How a model does on subgroups, and how far that is from how it does on everybody else.

use itertools::Itertools;
use serde::{Serialize, Serializer};

use super::measured::{Asked, Counts};
use super::tally::Binary;
use super::{Question, hidden_diagnosis, next_diagnoses};
use crate::error::{Error, Result};
use crate::metric::{Draws, OperatingPoint, Replicated, Scores, Sorted};

/// A way to group encounters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct By {
    /// What they are grouped by: `sex`.
    pub(crate) name: String,
    /// The groups: `female`, `male`.
    pub(crate) groups: Vec<String>,
}

/// What an encounter belongs to of which nothing is recorded.
pub(crate) const NOT_RECORDED: &str = "not recorded";

/// How a model does on a subgroup.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Subgroup {
    /// What it is grouped by: `sex`.
    pub by: String,
    /// Which group: `female`; `not recorded` for encounters of which that is not known.
    pub group: String,
    /// Encounters with a prediction. `None`, as everything else, where a group is too small to be told, or
    /// would give one that is by subtraction.
    pub encounters: Option<u64>,
    /// How much was predicted.
    #[serde(flatten)]
    pub counts: Option<Counts>,
    /// The metrics, with intervals by the draws of all subjects of the evaluation. Of labels, also the slope
    /// and the intercept of calibration.
    #[serde(flatten)]
    pub scores: Scores,
    /// By how much each metric is larger than that of all other encounters, by the same draws.
    #[serde(flatten, serialize_with = "gaps")]
    pub gaps: Scores,
    /// What happens at thresholds, of labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<OperatingPoint>,
    /// Why something is missing.
    pub note: Option<&'static str>,
}

const TOO_SMALL: &str = "not told: it, or what it gives by subtraction, is smaller than the smallest cell";
const NO_POSITIVES: &str = "no positives: what needs both classes is undefined";
const NO_NEGATIVES: &str = "no negatives: what needs both classes is undefined";

/// The gap of a metric has `_gap` after its name.
pub(crate) fn gaps<S: Serializer>(gaps: &Scores, serializer: S) -> Result<S::Ok, S::Error> {
    let entries = gaps.0.iter().flat_map(|(name, gap)| {
        [
            (format!("{name}_gap"), serde_json::json!(gap.value)),
            (format!("{name}_gap_interval"), serde_json::json!(gap.interval)),
        ]
    });
    serializer.collect_map(entries)
}

/// Every answer, with the subgroups of its encounter. 20,000 synthetic encounters of graph reconstruction
/// take 250 MB more than without subgroups.
#[derive(Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// Of each encounter: its subject, its group by each way to group, and what metrics are the means of: the
    /// loss of a guess, a number for each mean of the next visit.
    subjects: Vec<u32>,
    groups: Vec<u32>,
    numbers: Vec<f64>,
}

/// A logit and the truth; of a guess, whether it is right; of the next visit, the index of a number as the
/// series. In 12 bytes: graph reconstruction has hundreds of each encounter.
#[derive(Clone, Copy)]
struct Row {
    logit: f32,
    encounter: u32,
    series: u16,
    truth: bool,
}

impl Rows {
    /// Begins an encounter. Rows are not kept where it has no groups.
    pub(super) fn next_encounter(&mut self, subject: u32, groups: &[u32]) {
        if !groups.is_empty() {
            self.subjects.push(subject);
            self.groups.extend(groups);
        }
    }

    /// Adds an answer about the last encounter.
    pub(super) fn add(&mut self, series: usize, logit: f32, truth: bool) {
        if let Some(encounter) = self.subjects.len().checked_sub(1) {
            let series = u16::try_from(series).expect("a model has no 65,536 labels");
            self.rows.push(Row { logit, encounter: encounter as u32, series, truth });
        }
    }

    /// Adds the one guess about the last encounter.
    pub(super) fn add_guess(&mut self, loss: f64, is_right: bool) {
        self.add(0, f32::NAN, is_right);
        self.numbers.extend((!self.subjects.is_empty()).then_some(loss));
    }

    /// Adds what the means over next visits are of, for the last encounter.
    pub(super) fn add_next(&mut self, numbers: [Option<f64>; next_diagnoses::MEANS.len()]) {
        let defined = (0..numbers.len()).filter(|series| numbers[*series].is_some());
        defined.for_each(|series| self.add(series, f32::NAN, true));
        if !self.subjects.is_empty() {
            self.numbers.extend(numbers.map(|number| number.unwrap_or(f64::NAN)));
        }
    }

    /// The number of the mean that a row is for.
    fn number(&self, row: &Row) -> f64 {
        let each = self.numbers.len() / self.subjects.len();
        self.numbers[row.encounter as usize * each + usize::from(row.series)]
    }

    /// The subgroups over all series, then over each where there are several.
    ///
    /// # Errors
    /// If nobody has what is grouped by.
    pub(super) fn subgroups(
        &self,
        question: &Question,
        asked: &Asked<'_>,
        by: &[By],
    ) -> Result<Vec<Vec<Subgroup>>> {
        let names = question.series();
        let several = if names.len() > 1 { names.len() } else { 0 };
        let mut found = vec![Vec::new(); 1 + several];
        for (way, of) in by.iter().enumerate() {
            let group = |row: &Row| self.groups[row.encounter as usize * by.len() + way] as usize;
            let grouped = Grouped { rows: self, question, asked, group: &group };
            let cells: Vec<Vec<u64>> =
                (0..of.groups.len()).map(|group| grouped.cells(group, several)).collect();
            let recorded =
                of.groups.iter().zip(&cells).any(|(name, cells)| name != NOT_RECORDED && cells[0] > 0);
            if !recorded {
                let allowed = "something that is recorded of an encounter that is evaluated";
                return Err(Error::setting("by", &of.name, allowed));
            }
            let told = told(&cells, asked.min_cell);
            for (number, found) in found.iter_mut().enumerate() {
                let series = number.checked_sub(1).map(|series| series as u16);
                found.extend(grouped.of_series(of, series, number, &cells, &told));
            }
        }
        Ok(found)
    }
}

/// Answers by one way to group them.
struct Grouped<'a, G> {
    rows: &'a Rows,
    question: &'a Question,
    asked: &'a Asked<'a>,
    group: &'a G,
}

impl<G: Fn(&Row) -> usize> Grouped<'_, G> {
    fn are_labels(&self) -> bool {
        match self.question {
            Question::Labels(_) => true,
            Question::Edges
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => false,
        }
    }

    fn rows_of(&self, group: usize, series: Option<u16>) -> impl Iterator<Item = &Row> {
        let is =
            move |row: &&Row| (self.group)(row) == group && series.is_none_or(|series| series == row.series);
        self.rows.rows.iter().filter(is)
    }

    /// What must not be small of a group: encounters, subjects, and the positives and negatives of labels.
    fn cells(&self, group: usize, several: usize) -> Vec<u64> {
        let all_and_each = std::iter::once(None).chain((0..several as u16).map(Some));
        let of = |series: Option<u16>| {
            let rows = || self.rows_of(group, series);
            let positives = rows().filter(|row| row.truth).count() as u64;
            let classes = self.are_labels().then(|| [positives, rows().count() as u64 - positives]);
            [self.encounters(group, series), self.subjects(group, series)]
                .into_iter()
                .chain(classes.into_iter().flatten())
                .collect::<Vec<u64>>()
        };
        all_and_each.flat_map(of).collect()
    }

    /// Encounters with an answer; those of an encounter follow each other.
    fn encounters(&self, group: usize, series: Option<u16>) -> u64 {
        self.rows_of(group, series).map(|row| row.encounter).dedup().count() as u64
    }

    fn subjects(&self, group: usize, series: Option<u16>) -> u64 {
        let subject = |row: &Row| self.rows.subjects[row.encounter as usize];
        let mut subjects: Vec<u32> = self.rows_of(group, series).map(subject).dedup().collect();
        subjects.sort_unstable();
        subjects.dedup();
        subjects.len() as u64
    }

    /// The groups of a series that have an answer in any.
    fn of_series(
        &self,
        by: &By,
        series: Option<u16>,
        number: usize,
        cells: &[Vec<u64>],
        told: &[bool],
    ) -> Vec<Subgroup> {
        let of_series = |row: &&Row| series.is_none_or(|series| series == row.series);
        let subjects = self.rows.rows.iter().filter(of_series);
        let subjects = subjects.map(|row| self.rows.subjects[row.encounter as usize]).dedup().collect();
        let draws = Draws::new(self.asked.bootstrap, subjects);
        let there = (0..by.groups.len()).filter(|group| cells[*group][0] > 0);
        there
            .map(|group| {
                let named =
                    Subgroup { by: by.name.clone(), group: by.groups[group].clone(), ..Subgroup::default() };
                match told[group] {
                    true => self.measured(named, group, series, number, &draws),
                    false => Subgroup { note: Some(TOO_SMALL), ..named },
                }
            })
            .collect()
    }

    fn measured(
        &self,
        named: Subgroup,
        group: usize,
        series: Option<u16>,
        number: usize,
        draws: &Draws,
    ) -> Subgroup {
        let rest = self
            .rows
            .rows
            .iter()
            .filter(|row| (self.group)(row) != group && series.is_none_or(|series| series == row.series));
        let (metrics, sorted) = self.replicated(self.rows_of(group, series), draws);
        let (others, _) = self.replicated(rest, draws);
        let counts = Counts { subjects: self.subjects(group, series), ..self.counts(&sorted, group, series) };
        let gaps = metrics.iter().zip(&others).map(|(of, rest)| (of.name, of.minus(rest, draws)));
        Subgroup {
            encounters: Some(self.encounters(group, series)),
            scores: Scores(metrics.iter().map(|of| (of.name, of.estimate(draws))).collect()),
            gaps: Scores(gaps.collect()),
            thresholds: match self.are_labels() {
                true => self.asked.points(&sorted, self.asked.chosen_of(number), draws),
                false => Vec::new(),
            },
            note: match (counts.positives, counts.predictions) {
                (Some(0), _) => Some(NO_POSITIVES),
                (Some(positives), predictions) if positives == predictions => Some(NO_NEGATIVES),
                _ => None,
            },
            counts: Some(counts),
            ..named
        }
    }

    fn counts(&self, sorted: &Sorted, group: usize, series: Option<u16>) -> Counts {
        match self.question {
            Question::Edges | Question::Labels(_) => Counts::of(sorted),
            Question::HiddenDiagnosis | Question::HiddenCode => {
                Counts { predictions: self.rows_of(group, series).count() as u64, ..Counts::default() }
            }
            // Of each encounter one: its diagnoses together.
            Question::NextDiagnoses(_) => {
                Counts { predictions: self.encounters(group, series), ..Counts::default() }
            }
        }
    }

    /// The metrics of some answers in each replicate.
    fn replicated<'r>(
        &self,
        rows: impl Iterator<Item = &'r Row>,
        draws: &Draws,
    ) -> (Vec<Replicated>, Sorted) {
        let subject = |row: &Row| self.rows.subjects[row.encounter as usize];
        match self.question {
            Question::Edges | Question::Labels(_) => {
                let mut binary = Binary::default();
                rows.for_each(|row| binary.add(row.logit, row.truth, subject(row)));
                binary.replicated(self.are_labels(), draws)
            }
            Question::HiddenDiagnosis | Question::HiddenCode => {
                let mut guesses = hidden_diagnosis::Tally::default();
                rows.for_each(|row| guesses.add(row.truth, self.rows.number(row), subject(row)));
                (guesses.replicated(draws), Sorted::default())
            }
            Question::NextDiagnoses(_) => {
                let mut numbers = next_diagnoses::Numbers::default();
                rows.for_each(|row| numbers.add(row.series.into(), self.rows.number(row), subject(row)));
                (numbers.replicated(draws), Sorted::default())
            }
        }
    }
}

/// Which groups are told: none with a small cell, and of the others as many as it takes for what is not
/// told, taken together, to have none either: it can be had by subtraction from the whole.
fn told(cells: &[Vec<u64>], min_cell: u64) -> Vec<bool> {
    let is_small = |cells: &[u64]| cells.iter().any(|cell| (1..min_cell).contains(cell));
    let mut told: Vec<bool> = cells.iter().map(|cells| !is_small(cells)).collect();
    loop {
        let untold = cells.iter().zip(&told).filter(|(_, told)| !**told).map(|(cells, _)| cells);
        let mut sum = vec![0; cells.first().map_or(0, Vec::len)];
        untold.for_each(|cells| sum.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += cell));
        let next = (0..cells.len()).filter(|group| told[*group] && cells[*group][0] > 0);
        match next.min_by_key(|group| cells[*group][0]).filter(|_| is_small(&sum)) {
            Some(smallest) => told[smallest] = false,
            None => return told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_12_bytes() {
        assert_eq!(size_of::<Row>(), 12);
    }

    #[test]
    fn small_groups_are_not_told_nor_what_gives_them_by_subtraction() {
        let of = |cells: &[u64]| cells.iter().map(|cell| vec![*cell]).collect::<Vec<_>>();
        assert_eq!(told(&of(&[50, 40, 0]), 11), [true, true, true]);
        assert_eq!(told(&of(&[50, 40, 3]), 11), [true, false, false], "3 are 93 less the others");
        assert_eq!(told(&of(&[50, 40, 3, 9]), 11), [true, true, false, false]);
        assert_eq!(told(&of(&[50, 40, 10]), 11), [true, false, false], "the largest that is small");
        assert_eq!(told(&of(&[50, 40, 11]), 11), [true; 3], "and the next one is not");
        assert_eq!(told(&of(&[50, 40, 3]), 0), [true; 3]);
        // 200 encounters, of whom 4 are positive: the others would give them.
        assert_eq!(told(&[vec![200, 4], vec![300, 30], vec![250, 30]], 11), [false, true, false]);
    }
}
