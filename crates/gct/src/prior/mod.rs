//! What data statistics say about the structure: p(m|d), p(d|m), p(r|m), p(m|r), and the matrix P of an
//! encounter.
//!
//! p(m|d) is the share of training encounters with d that also contain m, wherever in the encounter (the
//! authors' released code counts the same). Counts come from the training split alone: nothing in validation
//! or test can change P.
//!
//! Such shares also count pairs that are together by chance. This project adds three other ways to fill P:
//! `alignment`, how well each cause explains an effect beside the other causes of the encounter;
//! `association`, how much more often the two are together than by chance; and what `explainer` says of who
//! causes what, given all of the encounter.
//!
//! Only pairs that occur are stored, so memory grows with what was seen and not with the square of the
//! vocabulary.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::explainer::{self, Account, Links};
use crate::graph::NodeRanges;
use crate::job::Job;
use crate::record::{CodeKind, Encounter, PerKind};
use crate::split::{Split, SplitPart};
use finder::Finder;

mod alignment;
mod association;
mod file;
mod finder;
mod table;

/// Counts the training encounters of a dataset. The job is told how many encounters are read.
///
/// # Errors
/// If the dataset cannot be read, or the job is stopped.
pub fn fit(dataset: &Dataset, split: &Split, job: &Job<'_, u64>) -> Result<Prior> {
    let mut counter = Counter::new(PerKind::from_fn(|kind| dataset.vocabulary()[kind].len()));
    for (read, encounter) in (1..).zip(dataset.encounters()?) {
        let encounter = encounter?;
        if split.part(&encounter) == SplitPart::Train {
            counter.add(&encounter);
        }
        if u64::is_multiple_of(read, 1024) {
            job.advance(read)?;
        }
    }
    Ok(counter.finish())
}

/// Counts in the making.
#[derive(Debug)]
pub struct Counter {
    encounters: u64,
    codes: PerKind<Vec<u32>>,
    diagnosis_treatment: PairCounter,
    treatment_lab: PairCounter,
    /// The encounters, if they are to be aligned.
    kept: Option<Vec<PerKind<Vec<u32>>>>,
}

/// For each cause, how often each effect was in the same encounter.
type PairCounter = Vec<FxHashMap<u32, u32>>;

impl Counter {
    /// Begins at zero, for vocabularies of these sizes.
    pub fn new(vocabulary: PerKind<usize>) -> Self {
        Counter {
            encounters: 0,
            codes: PerKind::from_fn(|kind| vec![0; vocabulary[kind]]),
            diagnosis_treatment: vec![FxHashMap::default(); vocabulary.diagnosis],
            treatment_lab: vec![FxHashMap::default(); vocabulary.treatment],
            kept: None,
        }
    }

    /// Keeps what it counts, to learn from it which cause explains which effect: see [`Cells::Explained`].
    pub fn for_cells(self, cells: Cells) -> Self {
        Counter { kept: (cells == Cells::Explained).then(Vec::new), ..self }
    }

    /// Counts one training encounter.
    ///
    /// # Panics
    /// If a code is outside the vocabulary.
    pub fn add(&mut self, encounter: &Encounter) {
        let codes = &encounter.codes;
        self.encounters += 1;
        for kind in CodeKind::ALL {
            for &code in &codes[kind] {
                self.codes[kind][code as usize] += 1;
            }
        }
        count_pairs(&mut self.diagnosis_treatment, &codes.diagnosis, &codes.treatment);
        count_pairs(&mut self.treatment_lab, &codes.treatment, &codes.lab);
        if let Some(kept) = &mut self.kept {
            kept.push(codes.clone());
        }
    }

    /// How many encounters were counted.
    pub fn encounters(&self) -> u64 {
        self.encounters
    }

    /// Sorts the counts into a prior.
    pub fn finish(self) -> Prior {
        let mut prior = Prior {
            encounters: self.encounters,
            codes: self.codes,
            diagnosis_treatment: PairCounts::from(self.diagnosis_treatment),
            treatment_lab: PairCounts::from(self.treatment_lab),
            account: None,
        };
        if let Some(kept) = self.kept {
            let Prior { codes, diagnosis_treatment, treatment_lab, .. } = &mut prior;
            let treatments = kept.iter().map(|codes| (&codes.diagnosis[..], &codes.treatment[..]));
            let labs = kept.iter().map(|codes| (&codes.treatment[..], &codes.lab[..]));
            rayon::join(
                || alignment::learn(diagnosis_treatment, &codes.diagnosis, treatments),
                || alignment::learn(treatment_lab, &codes.treatment, labs),
            );
        }
        prior
    }
}

fn count_pairs(counter: &mut PairCounter, causes: &[u32], effects: &[u32]) {
    for &cause in causes {
        let row = &mut counter[cause as usize];
        for &effect in effects {
            *row.entry(effect).or_default() += 1;
        }
    }
}

/// Conditional probabilities between codes, as counts. [`fit`] counts the training split of a dataset,
/// [`Counter`] encounters in memory.
///
/// ```
/// use gct::graph::NodeRanges;
/// use gct::prior::{Counter, MatrixSettings};
/// use gct::record::{Encounter, PerKind};
///
/// let encounter = |treatment: &[u32]| {
///     let treatment = treatment.to_vec();
///     Encounter::new(PerKind { diagnosis: vec![0], treatment, ..PerKind::default() })
/// };
/// let mut counter = Counter::new(PerKind { diagnosis: 1, treatment: 2, lab: 0, ..PerKind::default() });
/// counter.add(&encounter(&[0]));
/// counter.add(&encounter(&[0, 1]));
/// let prior = counter.finish();
/// assert_eq!(prior.treatment_given_diagnosis(1, 0), 0.5);
///
/// // P over the nodes visit, diagnosis and treatment, row after row; every row sums to 1.
/// let asked = encounter(&[1]);
/// let p = prior.matrix(&asked, &MatrixSettings::default());
/// assert_eq!(p.len(), NodeRanges::of(&asked).len().pow(2));
/// assert_eq!(p[3..6], [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Prior {
    encounters: u64,
    codes: PerKind<Vec<u32>>,
    diagnosis_treatment: PairCounts,
    treatment_lab: PairCounts,
    /// Who causes what, if that was learned.
    account: Option<Arc<Account>>,
}

/// Counts of pairs, those that occur: compressed rows, one per cause, effects ascending.
#[derive(Debug, Clone, Default, PartialEq)]
struct PairCounts {
    /// Row `c` is `starts[c]..starts[c + 1]`.
    starts: Vec<usize>,
    effects: Vec<u32>,
    counts: Vec<u32>,
    /// How strongly each cause leads to each effect, if that was learned.
    strengths: Vec<f32>,
    finder: Finder,
}

impl From<PairCounter> for PairCounts {
    fn from(counter: PairCounter) -> Self {
        let pairs = counter.iter().map(FxHashMap::len).sum();
        let mut table = PairCounts {
            starts: Vec::with_capacity(counter.len() + 1),
            effects: Vec::with_capacity(pairs),
            counts: Vec::with_capacity(pairs),
            ..PairCounts::default()
        };
        table.starts.push(0);
        let mut row = Vec::new();
        for counts in counter {
            row.extend(counts);
            row.sort_unstable();
            table.effects.extend(row.iter().map(|&(effect, _)| effect));
            table.counts.extend(row.iter().map(|&(_, count)| count));
            table.starts.push(table.effects.len());
            row.clear();
        }
        table.finder = Finder::new(&table.starts, &table.effects);
        table
    }
}

impl PairCounts {
    fn row(&self, cause: u32) -> std::ops::Range<usize> {
        self.starts[cause as usize]..self.starts[cause as usize + 1]
    }

    /// The index of a pair, if it was seen.
    fn index(&self, cause: u32, effect: u32) -> Option<usize> {
        let row = self.row(cause);
        let position = self.finder.find(cause, effect, &self.effects[row.clone()])?;
        Some(row.start + position)
    }

    fn count(&self, cause: u32, effect: u32) -> u32 {
        self.index(cause, effect).map_or(0, |index| self.counts[index])
    }

    /// The counts of one cause with several effects. All positions are found before the first count is read,
    /// and what is not there is read too and thrown away: counts are far apart in memory, and so many can be
    /// on their way at once.
    fn counts_of(&self, cause: u32, effects: &[u32], counts: &mut Vec<u32>) {
        const NOWHERE: u32 = u32::MAX;
        let row = self.row(cause);
        let (row_effects, row_counts) = (&self.effects[row.clone()], &self.counts[row]);
        let position = |effect: &u32| {
            self.finder.find(cause, *effect, row_effects).map_or(NOWHERE, |position| position as u32)
        };
        counts.clear();
        counts.extend(effects.iter().map(position));
        let Some(last) = row_counts.len().checked_sub(1) else {
            return counts.fill(0);
        };
        // Each position becomes its count.
        for number in counts {
            let count = row_counts[last.min(*number as usize)];
            *number = if *number == NOWHERE { 0 } else { count };
        }
    }
}

/// One conditional probability, of those that are not zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conditional {
    /// The kind and id of the code that is given.
    pub given: (CodeKind, u32),
    /// The kind and id of the code whose probability this is.
    pub code: (CodeKind, u32),
    /// In how many training encounters both occur.
    pub count: u32,
    /// In how many training encounters the given code occurs.
    pub given_count: u32,
}

impl Conditional {
    /// p(code|given).
    pub fn probability(&self) -> f64 {
        share(self.count, self.given_count)
    }
}

impl Prior {
    /// How many training encounters were counted.
    pub fn encounters(&self) -> u64 {
        self.encounters
    }

    /// The same, used for so many training encounters.
    pub(crate) fn with_encounters(self, encounters: u64) -> Self {
        Prior { encounters, ..self }
    }

    /// The same with what was learned of who causes what.
    pub(crate) fn with_account(self, account: Account) -> Self {
        Prior { account: Some(Arc::new(account)), ..self }
    }

    /// What was learned of who causes what, if it was.
    pub fn account(&self) -> Option<&Account> {
        self.account.as_deref()
    }

    /// p(m|d).
    pub fn treatment_given_diagnosis(&self, treatment: u32, diagnosis: u32) -> f64 {
        share(self.diagnosis_treatment.count(diagnosis, treatment), self.codes.diagnosis[diagnosis as usize])
    }

    /// p(d|m).
    pub fn diagnosis_given_treatment(&self, diagnosis: u32, treatment: u32) -> f64 {
        share(self.diagnosis_treatment.count(diagnosis, treatment), self.codes.treatment[treatment as usize])
    }

    /// p(r|m).
    pub fn lab_given_treatment(&self, lab: u32, treatment: u32) -> f64 {
        share(self.treatment_lab.count(treatment, lab), self.codes.treatment[treatment as usize])
    }

    /// p(m|r).
    pub fn treatment_given_lab(&self, treatment: u32, lab: u32) -> f64 {
        share(self.treatment_lab.count(treatment, lab), self.codes.lab[lab as usize])
    }

    /// How many standard deviations a diagnosis and a treatment, or a treatment and a lab, are together more
    /// often than by chance: the signed root of the chi-squared statistic of the counts. 0 for other kinds.
    pub fn association(&self, cause: (CodeKind, u32), effect: (CodeKind, u32)) -> f64 {
        let Some(pairs) = self.pairs_of(cause.0, effect.0) else { return 0.0 };
        let [of_cause, of_effect] = [cause, effect].map(|code| self.occurrences(code));
        association::chi(pairs.count(cause.1, effect.1), of_cause, of_effect, self.encounters)
    }

    /// In how many training encounters a code is.
    pub fn occurrences(&self, (kind, id): (CodeKind, u32)) -> u32 {
        self.codes[kind][id as usize]
    }

    /// How many codes of a kind there are.
    pub(crate) fn vocabulary_size(&self, kind: CodeKind) -> usize {
        self.codes[kind].len()
    }

    /// How strongly a cause leads to an effect, where that was learned: see [`Cells::Explained`].
    pub fn strength(&self, cause: (CodeKind, u32), effect: (CodeKind, u32)) -> Option<f32> {
        let pairs = self.pairs_of(cause.0, effect.0)?;
        pairs.index(cause.1, effect.1).and_then(|index| pairs.strengths.get(index).copied())
    }

    /// Whether strengths were learned.
    pub fn has_strengths(&self) -> bool {
        !self.diagnosis_treatment.strengths.is_empty()
    }

    /// The counts of pairs of these kinds, if they may be connected.
    fn pairs_of(&self, cause: CodeKind, effect: CodeKind) -> Option<&PairCounts> {
        match (cause, effect) {
            (CodeKind::Diagnosis, CodeKind::Treatment) => Some(&self.diagnosis_treatment),
            (CodeKind::Treatment, CodeKind::Lab) => Some(&self.treatment_lab),
            (CodeKind::Diagnosis | CodeKind::Treatment | CodeKind::Context | CodeKind::Lab, _) => None,
        }
    }

    /// All conditional probabilities that are not zero: p(m|d), then p(d|m), then p(r|m), then p(m|r), each
    /// ordered by diagnosis or treatment first.
    pub fn conditionals(&self) -> impl Iterator<Item = Conditional> {
        use CodeKind::{Diagnosis, Lab, Treatment};
        let directions = [
            (&self.diagnosis_treatment, Diagnosis, Treatment, true),
            (&self.diagnosis_treatment, Diagnosis, Treatment, false),
            (&self.treatment_lab, Treatment, Lab, true),
            (&self.treatment_lab, Treatment, Lab, false),
        ];
        directions.into_iter().flat_map(move |(pairs, cause_kind, effect_kind, forward)| {
            (0..self.codes[cause_kind].len() as u32).flat_map(move |cause| {
                pairs.row(cause).map(move |position| {
                    let (cause, effect) = ((cause_kind, cause), (effect_kind, pairs.effects[position]));
                    let (given, code) = if forward { (cause, effect) } else { (effect, cause) };
                    let given_count = self.codes[given.0][given.1 as usize];
                    Conditional { given, code, count: pairs.counts[position], given_count }
                })
            })
        })
    }

    /// How many pairs of codes were seen together, of those that may be connected.
    pub fn pairs(&self) -> usize {
        self.diagnosis_treatment.effects.len() + self.treatment_lab.effects.len()
    }

    /// P of an encounter (the paper's Figure 3): row after row over the nodes of [`NodeRanges`].
    ///
    /// Cell (i, j) between a diagnosis and a treatment, or a treatment and a lab, is p(j|i), or what
    /// [`Cells`] say; visit-diagnosis and visit-context cells and the diagonal are a scalar; all else is
    /// zero. Rows are then scaled to sum to 1.
    ///
    /// # Panics
    /// If the hidden code is not in the encounter, a code is outside the vocabulary, or strengths were
    /// not learned that the cells need.
    pub fn matrix(&self, encounter: &Encounter, settings: &MatrixSettings) -> Vec<f32> {
        let links = self
            .account()
            .filter(|_| settings.cells == Cells::Posterior)
            .map(|account| account.links(encounter, settings.hidden_diagnosis(), false));
        self.matrix_of(encounter, settings, links.as_ref())
    }

    /// The same, where it is known who probably caused what: without a hidden diagnosis.
    pub(crate) fn matrix_of(
        &self,
        encounter: &Encounter,
        settings: &MatrixSettings,
        links: Option<&Links>,
    ) -> Vec<f32> {
        let nodes = NodeRanges::of(encounter);
        let len = nodes.len();
        let [context, diagnoses, treatments, labs] = CodeKind::ALL.map(|kind| nodes.range(kind));
        let mut matrix = vec![0.0f32; len * len];

        for node in 0..len {
            matrix[node * len + node] = settings.scalar;
        }
        for code in context.chain(diagnoses.clone()) {
            matrix[code] = settings.scalar;
            matrix[code * len] = settings.scalar;
        }
        let blocks = [
            Block {
                kinds: [CodeKind::Diagnosis, CodeKind::Treatment],
                nodes: [diagnoses, treatments.clone()],
            },
            Block { kinds: [CodeKind::Treatment, CodeKind::Lab], nodes: [treatments, labs] },
        ];
        for (block, chances) in blocks.iter().zip(links.map_or([None; 2], Links::chances)) {
            match settings.cells {
                Cells::Conditional => self.fill_conditional(&mut matrix, len, block, encounter),
                Cells::Explained | Cells::Association => {
                    self.fill_shares(&mut matrix, len, block, encounter, settings);
                }
                Cells::Posterior => {
                    let chances = chances.expect("what P is filled with was learned");
                    block.fill(&mut matrix, len, settings.hidden, chances);
                }
            }
        }
        let hidden = settings.hidden.map(|Hidden { kind, position, rule }| {
            let of_kind = nodes.range(kind);
            assert!(position < of_kind.len(), "hidden {} {position} of {}", kind.name(), of_kind.len());
            (of_kind.start + position, rule)
        });
        if let Some((hidden, HiddenRule::KeepVisitAndSelf)) = hidden {
            empty(&mut matrix, len, hidden, |node| node != 0 && node != hidden);
        }
        for row in matrix.chunks_exact_mut(len) {
            let sum: f32 = row.iter().sum();
            if sum > 0.0 {
                row.iter_mut().for_each(|cell| *cell /= sum);
            }
        }
        if let Some((hidden, HiddenRule::AllZero)) = hidden {
            empty(&mut matrix, len, hidden, |_| true);
        }
        matrix
    }
}

/// The cells of P between a kind of causes and a kind of effects.
struct Block {
    kinds: [CodeKind; 2],
    nodes: [Range<usize>; 2],
}

impl Block {
    /// Fills the cells, in both directions, with the chance that the cause led to the effect. A cause that is
    /// hidden has no chances.
    fn fill(&self, matrix: &mut [f32], len: usize, hidden: Option<Hidden>, chances: &[f32]) {
        let [causes, effects] = &self.nodes;
        let hidden = hidden.filter(|hidden| hidden.kind == self.kinds[0]);
        let hidden = hidden.map(|hidden| causes.start + hidden.position);
        let seen = causes.clone().filter(|cause| Some(*cause) != hidden);
        for (i, row) in seen.zip(chances.chunks_exact(effects.len().max(1))) {
            for (j, chance) in effects.clone().zip(row) {
                matrix[i * len + j] = *chance;
                matrix[j * len + i] = *chance;
            }
        }
    }
}

impl Prior {
    /// Fills the cells of a block with p(effect|cause) and p(cause|effect).
    fn fill_conditional(&self, matrix: &mut [f32], len: usize, block: &Block, encounter: &Encounter) {
        let ([cause_kind, effect_kind], [causes, effects]) = (block.kinds, &block.nodes);
        let Some(pairs) = self.pairs_of(cause_kind, effect_kind) else { return };
        let (codes, mut counts) = (&encounter.codes, Vec::new());
        for (i, &cause) in causes.clone().zip(&codes[cause_kind]) {
            pairs.counts_of(cause, &codes[effect_kind], &mut counts);
            for ((j, &effect), &count) in effects.clone().zip(&codes[effect_kind]).zip(&counts) {
                matrix[i * len + j] = share(count, self.codes[cause_kind][cause as usize]) as f32;
                matrix[j * len + i] = share(count, self.codes[effect_kind][effect as usize]) as f32;
            }
        }
    }

    /// Fills the cells of a block, in both directions, with the share that each cause has of an effect.
    fn fill_shares(
        &self,
        matrix: &mut [f32],
        len: usize,
        block: &Block,
        encounter: &Encounter,
        settings: &MatrixSettings,
    ) {
        let ([cause_kind, effect_kind], [causes, effects]) = (block.kinds, &block.nodes);
        let Some(pairs) = self.pairs_of(cause_kind, effect_kind) else { return };
        let hidden = settings.hidden.filter(|hidden| hidden.kind == cause_kind);
        let mut strengths = Vec::new();
        for (j, &effect) in effects.clone().zip(&encounter.codes[effect_kind]) {
            let strength = |(position, &cause): (usize, &u32)| match hidden {
                // Whoever is hidden explains nothing, so that the others show no trace of it.
                Some(hidden) if hidden.position == position => 0.0,
                _ if settings.cells == Cells::Association => {
                    self.association((cause_kind, cause), (effect_kind, effect)) as f32
                }
                _ => pairs.index(cause, effect).map_or(0.0, |index| pairs.strengths[index]),
            };
            strengths.clear();
            strengths.extend(encounter.codes[cause_kind].iter().enumerate().map(strength));
            match settings.cells == Cells::Association {
                true => association::shares(&mut strengths),
                false => alignment::explain(&mut strengths),
            }
            for (i, &chance) in causes.clone().zip(&strengths) {
                matrix[i * len + j] = chance;
                matrix[j * len + i] = chance;
            }
        }
    }
}

/// Sets to zero what a node and the chosen others have to do with each other.
fn empty(matrix: &mut [f32], len: usize, hidden: usize, chosen: impl Fn(usize) -> bool) {
    for node in (0..len).filter(|&node| chosen(node)) {
        matrix[hidden * len + node] = 0.0;
        matrix[node * len + hidden] = 0.0;
    }
}

fn share(part: u32, whole: u32) -> f64 {
    if part == 0 { 0.0 } else { f64::from(part) / f64::from(whole) }
}

/// How P is filled, as settings of a training have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PriorSettings {
    /// A table of conditional probabilities, as [`Prior::write`] makes it, in place of those of the training
    /// split.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// What visit-diagnosis cells and the diagonal get before rows are scaled: 0.5 in the authors' code.
    pub scalar: f32,
    /// What cells between codes are.
    pub cells: Cells,
    /// What happens to the cells of a hidden code.
    pub hidden: HiddenRule,
    /// How it is learned who causes what, for cells that say so; as [`explainer::Settings`] are by default if
    /// not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explainer: Option<explainer::Settings>,
}

impl Default for PriorSettings {
    fn default() -> Self {
        let MatrixSettings { scalar, cells, .. } = MatrixSettings::default();
        PriorSettings { file: None, scalar, cells, hidden: HiddenRule::default(), explainer: None }
    }
}

impl PriorSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if !(self.scalar > 0.0 && self.scalar <= 1e6) {
            return Err(Error::setting("prior.scalar", self.scalar, "a number above 0, up to 1000000"));
        }
        if let Some(explainer) = &self.explainer {
            explainer.check().map_err(|error| error.inside("prior.explainer"))?;
            if self.cells != Cells::Posterior {
                let allowed = "nothing, because prior.cells is not posterior";
                return Err(Error::setting("prior.explainer", "this", allowed));
            }
        }
        match (&self.file, self.cells) {
            (None, _) | (Some(_), Cells::Conditional) => Ok(()),
            (Some(_), Cells::Explained) => {
                let allowed =
                    "conditional, because a file has counts, and explanations are learned from encounters";
                Err(Error::setting("prior.cells", "explained", allowed))
            }
            (Some(_), Cells::Posterior) => {
                let allowed =
                    "conditional, because a file has counts, and causes are learned from encounters";
                Err(Error::setting("prior.cells", "posterior", allowed))
            }
            (Some(_), Cells::Association) => {
                let allowed = "conditional, because chance depends on the number of all encounters, and a run \
                               that takes its counts from a file does not keep that";
                Err(Error::setting("prior.cells", "association", allowed))
            }
        }
    }
}

/// How to fill P.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixSettings {
    /// What visit-diagnosis cells and the diagonal get before rows are scaled: 0.5 in the authors' code.
    pub scalar: f32,
    /// What cells between codes are.
    pub cells: Cells,
    /// The diagnosis that a model must guess, and that P must not give away.
    pub hidden: Option<Hidden>,
}

impl MatrixSettings {
    /// The position of a diagnosis that is hidden.
    fn hidden_diagnosis(&self) -> Option<usize> {
        self.hidden.filter(|hidden| hidden.kind == CodeKind::Diagnosis).map(|hidden| hidden.position)
    }
}

impl Default for MatrixSettings {
    fn default() -> Self {
        MatrixSettings { scalar: 0.5, cells: Cells::default(), hidden: None }
    }
}

/// What cells of P between a cause and an effect are, before rows are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cells {
    /// p(effect|cause) and p(cause|effect), as in the paper.
    #[default]
    Conditional,
    /// In both directions the chance that the cause led to the effect, beside the other causes of the
    /// encounter; learned from the training split by expectation-maximisation.
    Explained,
    /// In both directions the chance that the cause led to the effect, given all of the encounter: see
    /// [`explainer`].
    Posterior,
    /// In both directions the share that the cause has of the effect, by how much more often the two are
    /// together in the training split than by chance, beside the other causes of the encounter and chance
    /// itself. For real records, whose frequent codes are together with everything.
    Association,
}

/// A hidden code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hidden {
    /// Its kind, which is one of the paper's.
    pub kind: CodeKind,
    /// Its position among the encounter's codes of this kind.
    pub position: usize,
    /// Which of its cells are emptied.
    pub rule: HiddenRule,
}

/// Which cells of a hidden code are emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HiddenRule {
    /// Those that its identity decides, before rows are scaled. The visit and self cells stay, so that every
    /// row still sums to 1 and a hidden diagnosis still hears from the visit.
    #[default]
    KeepVisitAndSelf,
    /// Its whole row and column of the finished P, as the paper's text has it. Its own row then sums to 0;
    /// the rows of treatments sum to less than 1, and what is missing gives the hidden diagnosis away in
    /// part.
    AllZero,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encounter(diagnosis: &[u32], treatment: &[u32], lab: &[u32]) -> Encounter {
        Encounter::new(PerKind {
            diagnosis: diagnosis.into(),
            treatment: treatment.into(),
            lab: lab.into(),
            ..PerKind::default()
        })
    }

    /// Four encounters: diagnosis 0 is in all, treatment 0 in three of them, lab 0 in one.
    fn prior() -> Prior {
        let mut counter = Counter::new(PerKind { diagnosis: 3, treatment: 2, lab: 1, ..PerKind::default() });
        counter.add(&encounter(&[0], &[0], &[0]));
        counter.add(&encounter(&[0, 1], &[0], &[]));
        counter.add(&encounter(&[0], &[0, 1], &[]));
        counter.add(&encounter(&[0], &[], &[]));
        counter.finish()
    }

    fn rows(matrix: &[f32], len: usize) -> Vec<Vec<f32>> {
        matrix.chunks(len).map(<[f32]>::to_vec).collect()
    }

    #[test]
    fn probabilities_are_shares_of_encounters() {
        let prior = prior();
        assert_eq!(prior.encounters(), 4);
        assert_eq!(prior.treatment_given_diagnosis(0, 0), 3.0 / 4.0);
        assert_eq!(prior.diagnosis_given_treatment(0, 0), 1.0);
        assert_eq!(prior.treatment_given_diagnosis(1, 1), 0.0, "never seen together");
        assert_eq!(prior.treatment_given_diagnosis(0, 2), 0.0, "never seen at all");
        assert_eq!(prior.lab_given_treatment(0, 0), 1.0 / 3.0);
        assert_eq!(prior.treatment_given_lab(0, 0), 1.0);
        assert_eq!(prior.pairs(), 4);
    }

    #[test]
    fn all_conditionals_are_listed_in_both_directions() {
        let prior = prior();
        assert_eq!(prior.conditionals().count(), 2 * prior.pairs());
        for c in prior.conditionals() {
            let expected = match (c.given.0, c.code.0) {
                (CodeKind::Diagnosis, CodeKind::Treatment) => {
                    prior.treatment_given_diagnosis(c.code.1, c.given.1)
                }
                (CodeKind::Treatment, CodeKind::Diagnosis) => {
                    prior.diagnosis_given_treatment(c.code.1, c.given.1)
                }
                (CodeKind::Treatment, CodeKind::Lab) => prior.lab_given_treatment(c.code.1, c.given.1),
                (CodeKind::Lab, CodeKind::Treatment) => prior.treatment_given_lab(c.code.1, c.given.1),
                other => panic!("no such table: {other:?}"),
            };
            assert_eq!(c.probability(), expected);
        }
    }

    #[test]
    fn the_matrix_is_figure_3() {
        // Nodes: visit, diagnoses 0 and 2, treatment 0. The counts know nothing of diagnosis 2.
        let matrix = prior().matrix(&encounter(&[0, 2], &[0], &[]), &MatrixSettings::default());
        assert_eq!(
            rows(&matrix, 4),
            [
                [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0],
                [0.5 / 1.75, 0.5 / 1.75, 0.0, 0.75 / 1.75],
                [0.5, 0.0, 0.5, 0.0],
                [0.0, 1.0 / 1.5, 0.0, 0.5 / 1.5],
            ]
        );
    }

    #[test]
    fn associated_causes_share_an_effect() {
        // Ten encounters: diagnosis 0 in five, 1 in four, treatment 0 in four of those with 0, one with both.
        let mut counter = Counter::new(PerKind { diagnosis: 2, treatment: 1, lab: 0, ..PerKind::default() });
        for (diagnoses, treatment, times) in
            [(&[0][..], true, 3), (&[0, 1], true, 1), (&[0], false, 1), (&[1], false, 3), (&[], false, 2)]
        {
            let treatments = if treatment { &[0][..] } else { &[] };
            (0..times).for_each(|_| counter.add(&encounter(diagnoses, treatments, &[])));
        }
        let prior = counter.finish();
        let of = |diagnosis| prior.association((CodeKind::Diagnosis, diagnosis), (CodeKind::Treatment, 0));
        // sqrt(10) (10 x 4 - 5 x 4) / sqrt(5 x 4 x 5 x 6), and less than by chance of the other.
        assert!((of(0) - 10f64.sqrt() * 20.0 / 600f64.sqrt()).abs() < 1e-12, "{}", of(0));
        assert!((of(1) - 10f64.sqrt() * -6.0 / 24.0).abs() < 1e-12, "{}", of(1));
        let settings = MatrixSettings { cells: Cells::Association, ..MatrixSettings::default() };
        let matrix = rows(&prior.matrix(&encounter(&[0, 1], &[0], &[]), &settings), 4);
        // Of the treatment diagnosis 0 has the share chi / (1 + chi); its row is scaled to sum to 1.
        let share = (of(0) / (1.0 + of(0))) as f32;
        assert!((matrix[3][1] - share / (share + 0.5)).abs() < 1e-6, "{matrix:?}");
        assert!((matrix[1][3] - share / (share + 1.0)).abs() < 1e-6, "{matrix:?}");
        assert_eq!((matrix[3][2], matrix[2][3]), (0.0, 0.0), "less often than by chance");
    }

    #[test]
    fn context_gets_the_scalar_and_no_conditional_probability() {
        let mut counter = Counter::new(PerKind { context: 2, diagnosis: 1, treatment: 1, lab: 0 });
        let encounter = |context: &[u32]| {
            Encounter::new(PerKind {
                context: context.into(),
                diagnosis: vec![0],
                treatment: vec![0],
                ..PerKind::default()
            })
        };
        counter.add(&encounter(&[0, 1]));
        let prior = counter.finish();
        assert_eq!(prior.conditionals().count(), 2);
        // Nodes: visit, context, diagnosis, treatment.
        let matrix = prior.matrix(&encounter(&[1]), &MatrixSettings::default());
        assert_eq!(
            rows(&matrix, 4),
            [
                [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0],
                [0.5, 0.5, 0.0, 0.0],
                [0.25, 0.0, 0.25, 0.5],
                [0.0, 0.0, 1.0 / 1.5, 0.5 / 1.5],
            ]
        );
        let hidden =
            Some(Hidden { kind: CodeKind::Diagnosis, position: 0, rule: HiddenRule::KeepVisitAndSelf });
        let matrix = prior.matrix(&encounter(&[1]), &MatrixSettings { hidden, ..MatrixSettings::default() });
        assert_eq!(rows(&matrix, 4)[2], [0.5, 0.0, 0.5, 0.0]);
    }

    #[test]
    fn a_hidden_diagnosis_keeps_its_visit_and_self_cells() {
        let hidden =
            Some(Hidden { kind: CodeKind::Diagnosis, position: 0, rule: HiddenRule::KeepVisitAndSelf });
        let matrix = prior()
            .matrix(&encounter(&[0], &[0], &[]), &MatrixSettings { hidden, ..MatrixSettings::default() });
        assert_eq!(rows(&matrix, 3), [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]);
    }

    #[test]
    fn the_literal_rule_empties_row_and_column() {
        let hidden = Some(Hidden { kind: CodeKind::Diagnosis, position: 0, rule: HiddenRule::AllZero });
        let matrix = prior()
            .matrix(&encounter(&[0], &[0], &[]), &MatrixSettings { hidden, ..MatrixSettings::default() });
        assert_eq!(rows(&matrix, 3), [[0.5, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.5 / 1.5]]);
    }

    /// Counts, encounters and matrices of an independent implementation in PyTorch.
    #[derive(Deserialize)]
    struct Golden {
        scalar: f32,
        counts: GoldenCounts,
        visits: Vec<GoldenVisit>,
    }

    #[derive(Deserialize)]
    #[allow(non_snake_case)]
    struct GoldenCounts {
        cD: Vec<u32>,
        cM: Vec<u32>,
        cL: Vec<u32>,
        DM: Vec<u32>,
        ML: Vec<u32>,
    }

    #[derive(Deserialize)]
    #[allow(non_snake_case)]
    struct GoldenVisit {
        dx: Vec<u32>,
        proc: Vec<u32>,
        lab: Vec<u32>,
        mask_pos: usize,
        P: Vec<f32>,
        P_masked_cond: Vec<f32>,
        P_masked_all: Vec<f32>,
    }

    #[test]
    fn the_matrix_is_that_of_an_independent_implementation() {
        let golden: Golden = serde_json::from_str(include_str!("../../tests/golden/prior.json")).unwrap();
        let pairs = |counts: &[u32]| -> PairCounts {
            let row = |row: &[u32]| (0..).zip(row.iter().copied()).filter(|(_, count)| *count > 0).collect();
            PairCounts::from(counts.chunks(20).map(row).collect::<PairCounter>())
        };
        let GoldenCounts { cD, cM, cL, DM, ML } = golden.counts;
        let prior = Prior {
            encounters: 0,
            codes: PerKind { diagnosis: cD, treatment: cM, lab: cL, ..PerKind::default() },
            diagnosis_treatment: pairs(&DM),
            treatment_lab: pairs(&ML),
            account: None,
        };
        for visit in &golden.visits {
            // In the order of the other implementation.
            let codes = PerKind {
                diagnosis: visit.dx.clone(),
                treatment: visit.proc.clone(),
                lab: visit.lab.clone(),
                ..PerKind::default()
            };
            let encounter = Encounter { codes, ..Encounter::new(PerKind::default()) };
            let hide = |rule| Some(Hidden { kind: CodeKind::Diagnosis, position: visit.mask_pos - 1, rule });
            for (hidden, expected) in [
                (None, &visit.P),
                (hide(HiddenRule::KeepVisitAndSelf), &visit.P_masked_cond),
                (hide(HiddenRule::AllZero), &visit.P_masked_all),
            ] {
                let got = prior.matrix(
                    &encounter,
                    &MatrixSettings { scalar: golden.scalar, hidden, ..MatrixSettings::default() },
                );
                assert_eq!(got.len(), expected.len());
                for (got, expected) in got.iter().zip(expected) {
                    assert!((got - expected).abs() < 1e-6, "{hidden:?}: {got} {expected}");
                }
            }
        }
    }
}
