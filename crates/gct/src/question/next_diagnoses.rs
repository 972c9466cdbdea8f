//! Which diagnoses the next visit of the patient has: a logit for each of the vocabulary, from the visit or,
//! with history, from all that is seen of the patient.
//!
//! The next visit is the truth and nothing else: it is not among what a model is given. Without a next visit
//! there is no truth; a prediction can be made nevertheless.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt32Builder};
use rustc_hash::FxHashMap;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::answer::{Answer, Prediction, Statement, probability};
use super::table::{Column, Keys, TableOptions};
use crate::metric::{Bootstrap, Draws, Means, Ranking, Replicated, Scored, Scores, SubjectRanking, log_loss};
use crate::record::{Code, Vocabulary};
use crate::sample::Sample;

/// Which diagnoses of the next visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// All.
    All,
    /// Those that are in no visit that the question sees.
    New,
}

pub(super) const NEXT_DIAGNOSES: &str = "next_diagnoses";
pub(super) const NEW_DIAGNOSES: &str = "next_diagnoses:new";

/// How many of the most probable diagnoses are compared with those of the next visit.
const AT: [usize; 3] = [10, 20, 30];

/// The names of the means, in the order of [`Outcome::numbers`].
pub(super) const MEANS: [&str; 4] = ["recall@10", "recall@20", "recall@30", LOG_LOSS];

const LOG_LOSS: &str = "log_loss";

/// What models are chosen by: unlike AUCPR it is over all encounters, however large the vocabulary is.
pub(super) const CHOSEN_BY: &str = MEANS[1];

/// Pairs of an encounter and a diagnosis that are kept to be ranked, 20 bytes each.
const PAIRS: usize = 1 << 22;

/// How many diagnoses are measured one by one: the most frequent.
const CODES: usize = 50;

/// How many diagnoses an explanation has.
pub(super) const GUESSES: usize = 10;

/// How well one diagnosis is foreseen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeScores {
    /// The diagnosis.
    pub code: String,
    /// After how many encounters it is in the next visit, of those that AUCPR is over.
    pub positives: u64,
    /// AUROC over these encounters.
    pub auroc: Option<f64>,
}

impl Next {
    /// The diagnoses that are not predicted, ascending.
    fn seen(self, sample: &Sample<'_>) -> Vec<u32> {
        if self == Next::All {
            return Vec::new();
        }
        let visits = std::iter::once(sample.encounter()).chain(sample.history());
        let mut seen: Vec<u32> = visits.flat_map(|visit| visit.codes.diagnosis.iter().copied()).collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    /// Of so many diagnoses whether the next visit has them, `None` for one that is not predicted.
    ///
    /// # Panics
    /// If the next visit is not known.
    pub(super) fn targets(self, sample: &Sample<'_>, diagnoses: usize) -> Vec<Option<bool>> {
        let next = sample.next().expect("the next visit of a sample to learn from is known");
        let mut targets = vec![Some(false); diagnoses];
        next.codes.diagnosis.iter().for_each(|id| targets[*id as usize] = Some(true));
        self.seen(sample).into_iter().for_each(|id| targets[id as usize] = None);
        targets
    }

    /// The ids of the diagnoses of the next visit that are predicted, where it is known.
    pub(crate) fn truth(self, sample: &Sample<'_>) -> Option<Vec<u32>> {
        let (next, seen) = (sample.next()?, self.seen(sample));
        let is_new = |id: &u32| seen.binary_search(id).is_err();
        Some(next.codes.diagnosis.iter().copied().filter(is_new).collect())
    }

    /// The most probable diagnoses, the most probable first; of equal ones the first.
    fn ranked(self, sample: &Sample<'_>, logits: &[f32], count: usize) -> Vec<usize> {
        let seen = self.seen(sample);
        let mut ids: Vec<usize> =
            (0..logits.len()).filter(|id| seen.binary_search(&(*id as u32)).is_err()).collect();
        let order = |a: &usize, b: &usize| logits[*b].total_cmp(&logits[*a]).then(a.cmp(b));
        if count < ids.len() {
            ids.select_nth_unstable_by(count, order);
            ids.truncate(count);
        }
        ids.sort_unstable_by(order);
        ids
    }

    /// What became of the predictions of a sample whose next visit is known.
    pub(super) fn outcome(self, sample: &Sample<'_>, logits: &[f32]) -> Outcome {
        let targets = self.targets(sample, logits.len());
        let positives = targets.iter().filter(|target| **target == Some(true)).count();
        let ranked = self.ranked(sample, logits, AT[AT.len() - 1]);
        let recall = |at: usize| {
            let found = ranked.iter().take(at).filter(|id| targets[**id] == Some(true)).count();
            found as f64 / positives as f64
        };
        let [first, second, third] = AT.map(|at| (positives > 0).then(|| recall(at)));
        Outcome { numbers: [first, second, third, mean_loss(&targets, logits)], targets }
    }

    /// The mean loss over the diagnoses of a sample; `None` if its next visit is not known.
    pub(super) fn loss(self, sample: &Sample<'_>, logits: &[f32]) -> Option<f64> {
        sample.next()?;
        mean_loss(&self.targets(sample, logits.len()), logits)
    }

    /// All diagnoses that are predicted, the most probable first.
    pub(super) fn prediction(self, sample: &Sample<'_>, logits: &[f32]) -> Prediction {
        let ranked = self.ranked(sample, logits, logits.len()).into_iter();
        let ranked = ranked.map(|id| (id as u32, probability(logits[id]))).collect();
        Prediction::NextDiagnoses { truth: self.truth(sample), ranked }
    }

    /// The most probable diagnoses.
    pub(super) fn answers(self, sample: &Sample<'_>, logits: &[f32], vocabulary: &Vocabulary) -> Vec<Answer> {
        let truth = self.truth(sample);
        let answer = |id: usize| Answer {
            what: vocabulary.diagnosis[id].code.clone(),
            probability: probability(logits[id]),
            truth: truth.as_ref().map(|truth| truth.contains(&(id as u32))),
        };
        self.ranked(sample, logits, GUESSES).into_iter().map(answer).collect()
    }

    /// The same as statements.
    pub(super) fn statements(self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Statement> {
        self.ranked(sample, logits, GUESSES).into_iter().map(Statement::Next).collect()
    }
}

/// The mean of the cross entropies of all targets that there are.
fn mean_loss(targets: &[Option<bool>], logits: &[f32]) -> Option<f64> {
    let pairs = targets.iter().zip(logits).filter_map(|(target, logit)| Some(((*target)?, *logit)));
    let (mut sum, mut count) = (0.0, 0u32);
    for (target, logit) in pairs {
        sum += log_loss(logit.into(), target);
        count += 1;
    }
    (count > 0).then(|| sum / f64::from(count))
}

/// What became of the predictions of one sample.
pub(super) struct Outcome {
    /// What metrics are the means of: the shares of the true diagnoses among the most probable, if there are
    /// true ones, and the loss.
    pub(super) numbers: [Option<f64>; MEANS.len()],
    targets: Vec<Option<bool>>,
}

/// Recalls and losses by subject.
#[derive(Default)]
pub(super) struct Numbers([Means; MEANS.len()]);

impl Numbers {
    /// Adds one of [`Outcome::numbers`], by its index.
    pub(super) fn add(&mut self, index: usize, number: f64, subject: u32) {
        self.0[index].add(number, subject);
    }

    /// Their means in each replicate.
    pub(super) fn replicated(&self, draws: &Draws) -> Vec<Replicated> {
        MEANS.into_iter().zip(&self.0).map(|(name, means)| means.replicated(name, draws)).collect()
    }
}

/// What is added up of all samples.
#[derive(Default)]
pub(super) struct Tally {
    numbers: Numbers,
    pairs: Pairs,
    /// Diagnoses that were predicted, and those of them that were true, over all samples.
    pub(super) predictions: u64,
    pub(super) positives: u64,
}

impl Tally {
    /// Adds the outcome of a sample.
    pub(super) fn add(&mut self, sample: &Sample<'_>, logits: &[f32], outcome: &Outcome, subject: u32) {
        let numbers = outcome.numbers.into_iter().enumerate();
        let numbers = numbers.filter_map(|(index, number)| Some((index, number?)));
        numbers.for_each(|(index, number)| self.numbers.add(index, number, subject));
        let targets = || outcome.targets.iter().flatten();
        self.predictions += targets().count() as u64;
        self.positives += targets().filter(|target| **target).count() as u64;
        self.pairs.add((subject, hash(sample.encounter().subject.as_str())), logits, &outcome.targets);
    }

    /// Its metrics in each replicate.
    pub(super) fn replicated(&self, draws: &Draws) -> Vec<Replicated> {
        let [aucpr, _] = self.pairs.ranking().sorted().replicated(draws);
        let mut metrics = self.numbers.replicated(draws);
        metrics.insert(AT.len(), aucpr);
        metrics
    }

    pub(super) fn scores(&self, bootstrap: &Bootstrap) -> Scores {
        let aucpr = self.pairs.ranking().estimates(bootstrap).aucpr;
        let means = MEANS.into_iter().zip(&self.numbers.0);
        let mut scores: Vec<_> = means.map(|(name, means)| (name, means.estimate(bootstrap))).collect();
        scores.insert(AT.len(), ("aucpr", aucpr));
        Scores(scores)
    }

    /// The most frequent diagnoses one by one, but for those of which so few are true, or untrue, that
    /// someone could be recognised by it.
    pub(super) fn codes(&self, diagnoses: &[Code], min_cell: u64) -> Vec<CodeScores> {
        self.pairs.codes(diagnoses, min_cell)
    }
}

/// Pairs of an encounter and a diagnosis, to be ranked. Where there are too many, those of a random part of
/// the subjects: the same part in whatever order they come.
struct Pairs {
    most: usize,
    kept: Vec<Pair>,
    /// The pairs of subjects whose hash is less are kept.
    bound: u64,
}

#[derive(Clone, Copy)]
struct Pair {
    logit: f32,
    positive: bool,
    diagnosis: u32,
    subject: u32,
    hash: u32,
}

impl Default for Pairs {
    fn default() -> Self {
        Pairs { most: PAIRS, kept: Vec::new(), bound: 1 << 32 }
    }
}

impl Pairs {
    /// Adds those of an encounter of a subject, given by its number and its hash.
    fn add(&mut self, (subject, hash): (u32, u32), logits: &[f32], targets: &[Option<bool>]) {
        let pair = |(diagnosis, (logit, target)): (u32, (&f32, &Option<bool>))| {
            Some(Pair { logit: *logit, positive: (*target)?, diagnosis, subject, hash })
        };
        if u64::from(hash) < self.bound {
            self.kept.extend((0..).zip(logits.iter().zip(targets)).filter_map(pair));
        }
        while self.kept.len() > self.most {
            self.bound /= 2;
            self.kept.retain(|pair| u64::from(pair.hash) < self.bound);
        }
    }

    fn ranking(&self) -> SubjectRanking {
        let mut ranking = SubjectRanking::default();
        for &Pair { logit, positive, subject, .. } in &self.kept {
            ranking.add(Scored { score: logit, positive, subject });
        }
        ranking
    }

    /// The most frequent diagnoses one by one, the most frequent first; of equal ones the first.
    fn codes(&self, diagnoses: &[Code], min_cell: u64) -> Vec<CodeScores> {
        let mut counts = vec![[0u64; 2]; diagnoses.len()];
        self.kept.iter().for_each(|pair| counts[pair.diagnosis as usize][usize::from(pair.positive)] += 1);
        let is_told = |id: &usize| counts[*id].iter().all(|count| *count >= min_cell.max(1));
        let mut told: Vec<usize> = (0..diagnoses.len()).filter(is_told).collect();
        told.sort_by_key(|id| std::cmp::Reverse(counts[*id][1]));
        told.truncate(CODES);
        let mut rankings = vec![Ranking::default(); told.len()];
        let ranking: FxHashMap<u32, usize> = told.iter().map(|id| *id as u32).zip(0..).collect();
        for pair in &self.kept {
            if let Some(index) = ranking.get(&pair.diagnosis) {
                rankings[*index].add(pair.logit, pair.positive);
            }
        }
        let scores = |(id, ranking): (usize, Ranking)| CodeScores {
            code: diagnoses[id].code.clone(),
            positives: counts[id][1],
            auroc: ranking.areas().auroc,
        };
        told.into_iter().zip(rankings).map(scores).collect()
    }
}

/// A number that says which part of all subjects one belongs to.
fn hash(subject: &str) -> u32 {
    let digest = Sha256::digest(format!("gct-pairs-1\0{subject}"));
    u32::from_be_bytes(digest[..4].try_into().expect("a SHA-256 has 32 bytes"))
}

/// A row per encounter and diagnosis, the most probable ones.
pub(crate) struct Table<'a> {
    next: Next,
    vocabulary: &'a Vocabulary,
    most: usize,
    keys: Keys,
    ranks: UInt32Builder,
    predicted: StringBuilder,
    probabilities: Float64Builder,
    truths: BooleanBuilder,
}

impl<'a> Table<'a> {
    pub(super) fn new(next: Next, vocabulary: &'a Vocabulary, options: TableOptions) -> Self {
        Table {
            next,
            vocabulary,
            most: options.top,
            keys: Keys::default(),
            ranks: UInt32Builder::new(),
            predicted: StringBuilder::new(),
            probabilities: Float64Builder::new(),
            truths: BooleanBuilder::new(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        let truth = self.next.truth(sample);
        for (rank, id) in (1..).zip(self.next.ranked(sample, logits, self.most)) {
            self.keys.add(sample);
            self.ranks.append_value(rank);
            self.predicted.append_value(&self.vocabulary.diagnosis[id].code);
            self.probabilities.append_value(probability(logits[id]));
            self.truths.append_option(truth.as_ref().map(|truth| truth.contains(&(id as u32))));
        }
    }

    /// What each row of a sample says.
    pub(super) fn statements(&self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Statement> {
        self.next.ranked(sample, logits, self.most).into_iter().map(Statement::Next).collect()
    }

    pub(super) fn take(&mut self) -> Vec<Column> {
        let mut columns = self.keys.take();
        columns.extend::<[Column; 4]>([
            ("rank", Arc::new(self.ranks.finish()), false),
            ("predicted_diagnosis", Arc::new(self.predicted.finish()), false),
            ("probability", Arc::new(self.probabilities.finish()), false),
            ("boolean_value", Arc::new(self.truths.finish()), true),
        ]);
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten diagnoses of each of some subjects, the first of them true.
    fn pairs(most: usize, subjects: impl Iterator<Item = u32>) -> Pairs {
        let targets: Vec<Option<bool>> = (0..11).map(|id| (id < 10).then_some(id == 0)).collect();
        let mut pairs = Pairs { most, ..Pairs::default() };
        for subject in subjects {
            let logits = [subject as f32; 11];
            pairs.add((subject, hash(&subject.to_string())), &logits, &targets);
        }
        pairs
    }

    #[test]
    fn of_too_many_pairs_those_of_whole_subjects_are_kept_in_whatever_order() {
        let subjects = |pairs: &Pairs| {
            let mut subjects: Vec<u32> = pairs.kept.iter().map(|pair| pair.subject).collect();
            assert!(subjects.chunk_by(|a, b| a == b).all(|of| of.len() == 10), "{subjects:?}");
            subjects.dedup();
            subjects.sort_unstable();
            subjects
        };
        assert_eq!(subjects(&pairs(10_000, 0..1000)).len(), 1000);
        let kept = pairs(4000, 0..1000);
        let few = subjects(&kept);
        assert!((150..=400).contains(&few.len()), "{}", few.len());
        assert_eq!(subjects(&pairs(4000, (0..1000).rev())), few);
        assert!(few.iter().any(|subject| *subject > 900) && few.iter().any(|subject| *subject < 100));
        let code = |id: u32| Code { code: id.to_string(), description: None, count: 0 };
        let diagnoses: Vec<Code> = (0..11).map(code).collect();
        assert_eq!(kept.codes(&diagnoses, 1), [], "each of them is always true or never");
    }
}
