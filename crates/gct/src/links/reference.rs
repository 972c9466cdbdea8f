//! Links of diagnoses with treatments beside a list of those that are known, such as indications of drugs.
//!
//! Every rule ranks the same candidates: pairs that enough encounters have, of treatments that the reference
//! says anything about, since a list that does not know a treatment does not say that nothing indicates it.
//! In single encounters the question is another one: of the diagnoses that are there, which one is the
//! treatment for?

use std::path::Path;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::tally::{BOTH_WAYS, either_way};
use super::{Link, Seen, Settings, Strength, Tally, each_layer};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::graph::NodeRanges;
use crate::incoming;
use crate::infer::{Reader, Unseen, Which};
use crate::job::Job;
use crate::metric::{Bootstrap, Estimate, Means, Scored, SubjectRanking};
use crate::prior::Prior;
use crate::record::{CodeKind, Encounter, SubjectId};
use crate::run::Run;

/// Of how many of the strongest links it is told how many are on the reference.
const STRONGEST: usize = 100;

const DIAGNOSIS: &str = "diagnosis";
const TREATMENT: &str = "treatment";

/// Pairs of a diagnosis and a treatment that are known to belong together, in the codes of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reference {
    /// How many rows the list has.
    pub rows: u64,
    /// Rows with a diagnosis that the run does not know.
    pub unknown_diagnoses: u64,
    /// Rows with a treatment that the run does not know.
    pub unknown_treatments: u64,
    #[serde(skip)]
    pairs: FxHashSet<(u32, u32)>,
    #[serde(skip)]
    treatments: FxHashSet<u32>,
}

impl Reference {
    /// Reads a table as CSV or Parquet with the columns `diagnosis` and `treatment`: codes as they are
    /// recorded, which become codes of the run as those of its dataset did, or codes of the run already.
    ///
    /// # Errors
    /// If the table cannot be read, a column is missing, a row has no treatment, or the run knows no pair.
    pub fn open(path: &Path, run: &Run, job: &Job<'_, u64>) -> Result<Self> {
        let coder = run.coder()?;
        let id = |kind, code: &str| run.recorded_id(coder, kind, code, None);
        let (mut reference, mut empty) = (Reference::default(), None);
        let wanted = [TREATMENT.to_owned()];
        let rows_are = (DIAGNOSIS, "a row per link");
        let columns = incoming::read_table(path, rows_are, &wanted, job, |row, diagnosis, texts| {
            match texts[0].as_deref() {
                None => empty = empty.or(Some(row)),
                Some(treatment) => reference
                    .add(id(CodeKind::Diagnosis, diagnosis), id(CodeKind::Treatment, treatment.trim())),
            }
            Ok(())
        })?;
        let (path, column) = (path.to_owned(), TREATMENT.to_owned());
        if !columns.contains(&column) {
            let (expected, found) = ("text".into(), "no such column".into());
            return Err(Error::Column { path, column, expected, found });
        }
        if let Some(row) = empty {
            return Err(Error::Row { path, row, column, problem: "is empty".into() });
        }
        match reference.pairs.is_empty() {
            true => {
                let allowed = "a table with a diagnosis and a treatment that the run knows";
                Err(Error::setting("links", path.display(), allowed))
            }
            false => Ok(reference),
        }
    }

    /// The true edges of encounters of a dataset: a pair is known that is connected in any of them.
    ///
    /// # Errors
    /// If the dataset knows no such edge, does not go with the run, cannot be read, or the job is stopped.
    pub fn of_edges(run: &Run, dataset: &Dataset, which: Which, job: &Job<'_, u64>) -> Result<Self> {
        let mut reference = Reference::default();
        for (read, encounter) in (1..).zip(Reader::new(run, dataset, which)?) {
            let encounter: Encounter = encounter?;
            for edge in encounter.edges.iter().flat_map(|edges| &edges.diagnosis_treatment) {
                let codes = &encounter.codes;
                let pair =
                    (codes.diagnosis[usize::from(edge.cause)], codes.treatment[usize::from(edge.effect)]);
                if reference.pairs.insert(pair) {
                    reference.rows += 1;
                    reference.treatments.insert(pair.1);
                }
            }
            if u64::is_multiple_of(read, 1024) {
                job.check()?;
            }
        }
        match reference.pairs.is_empty() {
            true => {
                Err(Error::setting("links", "true", "a file, since no true edge of the dataset is known"))
            }
            false => Ok(reference),
        }
    }

    fn add(&mut self, diagnosis: Option<u32>, treatment: Option<u32>) {
        self.rows += 1;
        self.unknown_diagnoses += u64::from(diagnosis.is_none());
        self.unknown_treatments += u64::from(treatment.is_none());
        if let (Some(diagnosis), Some(treatment)) = (diagnosis, treatment) {
            self.pairs.insert((diagnosis, treatment));
            self.treatments.insert(treatment);
        }
    }

    /// How many different pairs of it the run knows.
    pub fn pairs(&self) -> u64 {
        self.pairs.len() as u64
    }

    fn has(&self, diagnosis: u32, treatment: u32) -> bool {
        self.pairs.contains(&(diagnosis, treatment))
    }
}

/// How well rules find the links of a reference.
#[derive(Debug, Clone, Serialize)]
pub struct Comparison {
    /// On which part.
    pub split: &'static str,
    /// On how many encounters.
    pub encounters: u64,
    /// How many could not be asked about.
    pub left_out: u64,
    /// Codes that the run does not know.
    pub unseen: Unseen,
    /// The reference.
    pub reference: Reference,
    /// How many of its pairs the run knows.
    pub known_pairs: u64,
    /// How many pairs are ranked: those of treatments that the reference has, that enough encounters have.
    pub candidates: u64,
    /// How many of them are on the reference.
    pub positives: u64,
    /// The share of the two: the average precision of chance.
    pub chance: f64,
    /// How many treatments of single encounters have a diagnosis of the reference beside them.
    pub treatments_within: u64,
    /// The mean share of the encounter's diagnoses that are on the reference for such a treatment.
    pub chance_within: Estimate,
    /// The rules, that of the run's model first.
    pub rules: Vec<RuleScores>,
}

/// How well one rule finds the links of a reference.
#[derive(Debug, Clone, Serialize)]
pub struct RuleScores {
    /// What it ranks by.
    pub rule: &'static str,
    /// Its average precision over all candidates; the interval is over diagnoses.
    pub average_precision: Estimate,
    /// The share of the 100 strongest that are on the reference; equal strengths share their places.
    pub precision_at_100: Option<f64>,
    /// How often the strongest diagnosis of an encounter is one of the reference, for a treatment that has
    /// one there; the interval is over subjects. Equal strengths share.
    pub first_within: Estimate,
}

/// A rule that ranks pairs by counts of the run's training split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    Forward,
    Backward,
    Explained,
    Association,
}

impl Rule {
    /// Those that the counts of a run are enough for.
    fn of(run: &Run) -> Vec<Rule> {
        let mut rules = vec![Rule::Forward, Rule::Backward];
        rules.extend(run.prior().has_strengths().then_some(Rule::Explained));
        // Chance is not known of counts from a file.
        rules.extend(run.settings().prior.file.is_none().then_some(Rule::Association));
        rules
    }

    fn name(self) -> &'static str {
        match self {
            Rule::Forward => "p(treatment|diagnosis)",
            Rule::Backward => "p(diagnosis|treatment)",
            Rule::Explained => Strength::Explained.name(),
            Rule::Association => Strength::Association.name(),
        }
    }

    fn strength(self, prior: &Prior, diagnosis: u32, treatment: u32) -> f64 {
        let pair = ((CodeKind::Diagnosis, diagnosis), (CodeKind::Treatment, treatment));
        match self {
            Rule::Forward => prior.treatment_given_diagnosis(treatment, diagnosis),
            Rule::Backward => prior.diagnosis_given_treatment(diagnosis, treatment),
            Rule::Explained => prior.strength(pair.0, pair.1).map_or(0.0, f64::from),
            Rule::Association => prior.association(pair.0, pair.1),
        }
    }
}

/// Compares the links that a run's model finds in encounters of a dataset with a reference, and beside them
/// those by counts of the run's training split. The job is told how many encounters are done.
///
/// # Errors
/// As [`of_run`](super::of_run), and if no encounter has a pair of the reference among the candidates.
pub fn compare(
    run: &Run,
    dataset: &Dataset,
    which: Which,
    reference: Reference,
    (settings, bootstrap): (&Settings, &Bootstrap),
    job: &Job<'_, u64>,
) -> Result<Comparison> {
    let rules = Rule::of(run);
    let mut tally = Tally::default();
    let mut within = Within::new(rules.len() + 1);
    let seen = each_layer(run, dataset, which, job, |seen, index| {
        tally.add(seen.encounter, seen.hidden, None, seen.layer, index);
        within.add(&seen, &reference, &rules, run.prior());
    })?;
    let rows = run.embedding_rows();
    let code = |index: u32| rows.code_at(index + 1).expect("what was tallied are codes");
    let mut candidates = tally.pairs(settings.min_support, settings.min_cell, code);
    candidates
        .retain(|link| link.cause.0 == CodeKind::Diagnosis && reference.treatments.contains(&link.effect.1));
    let positives = candidates.iter().filter(|link| reference.has(link.cause.1, link.effect.1)).count();
    if positives == 0 {
        let value = format!("a list of {} known pairs", reference.pairs());
        let allowed =
            format!("one with a pair that at least {} encounters have", settings.min_support.max(1));
        return Err(Error::setting("links", value, &allowed));
    }
    let model = |link: &Link| link.strength;
    let mut scores = vec![rule_scores(seen.strength.name(), &candidates, &reference, bootstrap, model)];
    scores.extend(rules.iter().map(|rule| {
        let strength = |link: &Link| rule.strength(run.prior(), link.cause.1, link.effect.1);
        rule_scores(rule.name(), &candidates, &reference, bootstrap, strength)
    }));
    for (scores, first) in scores.iter_mut().zip(&within.first) {
        scores.first_within = first.estimate(bootstrap);
    }
    Ok(Comparison {
        split: which.name(),
        encounters: seen.encounters,
        left_out: seen.left_out,
        unseen: seen.unseen,
        known_pairs: reference.pairs(),
        candidates: candidates.len() as u64,
        positives: positives as u64,
        chance: positives as f64 / candidates.len() as f64,
        treatments_within: within.treatments,
        chance_within: within.chance.estimate(bootstrap),
        rules: scores,
        reference,
    })
}

/// How well a strength ranks candidates; what is within encounters is not known yet.
fn rule_scores(
    rule: &'static str,
    candidates: &[Link],
    reference: &Reference,
    bootstrap: &Bootstrap,
    strength: impl Fn(&Link) -> f64,
) -> RuleScores {
    let mut ranking = SubjectRanking::default();
    let mut scored = Vec::with_capacity(candidates.len());
    for link in candidates {
        let (score, positive) = (strength(link) as f32, reference.has(link.cause.1, link.effect.1));
        // Pairs of one diagnosis are alike, so whole diagnoses are drawn.
        ranking.add(Scored { score, positive, subject: link.cause.1 });
        scored.push((score, positive));
    }
    RuleScores {
        rule,
        average_precision: ranking.estimates(bootstrap).aucpr,
        precision_at_100: precision_at(STRONGEST, scored),
        first_within: Estimate::default(),
    }
}

/// The share of the first that are positive, where those with the same score share the places that are left.
/// `None` of fewer.
fn precision_at(first: usize, mut scored: Vec<(f32, bool)>) -> Option<f64> {
    if scored.len() < first {
        return None;
    }
    scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut places, mut found) = (first as f64, 0.0);
    for equal in scored.chunk_by(|a, b| a.0 == b.0) {
        let taken = places.min(equal.len() as f64);
        let positives = equal.iter().filter(|(_, positive)| *positive).count() as f64;
        found += positives * taken / equal.len() as f64;
        places -= taken;
        if places == 0.0 {
            break;
        }
    }
    Some(found / first as f64)
}

/// How often the strongest diagnosis of an encounter is on the reference, by each rule.
struct Within {
    treatments: u64,
    chance: Means,
    first: Vec<Means>,
    /// Subjects by number.
    subjects: FxHashMap<SubjectId, u32>,
}

impl Within {
    fn new(rules: usize) -> Self {
        let first = vec![Means::default(); rules];
        Within { treatments: 0, chance: Means::default(), first, subjects: FxHashMap::default() }
    }

    fn add(&mut self, seen: &Seen<'_>, reference: &Reference, rules: &[Rule], prior: &Prior) {
        let encounter = seen.encounter;
        let nodes = NodeRanges::of(encounter);
        let (diagnoses, treatments) = (nodes.range(CodeKind::Diagnosis), nodes.range(CodeKind::Treatment));
        let there = diagnoses.zip(&encounter.codes.diagnosis).filter(|(node, _)| Some(*node) != seen.hidden);
        let there: Vec<(usize, u32)> = there.map(|(node, id)| (node, *id)).collect();
        for (node, &treatment) in treatments.zip(&encounter.codes.treatment) {
            let is_known: Vec<bool> = there.iter().map(|(_, id)| reference.has(*id, treatment)).collect();
            let known = is_known.iter().filter(|known| **known).count();
            if known == 0 {
                continue;
            }
            let next = self.subjects.len() as u32;
            let subject = *self.subjects.entry(encounter.subject.clone()).or_insert(next);
            self.treatments += 1;
            self.chance.add(known as f64 / there.len() as f64, subject);
            let model = |&(of, _): &(usize, u32)| either_way(seen.layer, nodes.len(), of, node)[BOTH_WAYS];
            let by_model: Vec<f64> = there.iter().map(model).collect();
            self.first[0].add(first_is_known(&by_model, &is_known), subject);
            for (rule, first) in rules.iter().zip(&mut self.first[1..]) {
                let strength = |(_, id): &(usize, u32)| rule.strength(prior, *id, treatment);
                let strengths: Vec<f64> = there.iter().map(strength).collect();
                first.add(first_is_known(&strengths, &is_known), subject);
            }
        }
    }
}

/// Whether the strongest is known; the share of those as strong that are.
fn first_is_known(strengths: &[f64], is_known: &[bool]) -> f64 {
    let most = strengths.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let strongest = || strengths.iter().zip(is_known).filter(|(strength, _)| **strength == most);
    strongest().filter(|(_, known)| **known).count() as f64 / strongest().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_of_equal_strength_share_the_places() {
        let scored = vec![(0.9, true), (0.5, true), (0.5, false), (0.5, false), (0.1, true)];
        assert_eq!(precision_at(1, scored.clone()), Some(1.0));
        // One place for three, of which one is positive.
        assert!((precision_at(2, scored.clone()).unwrap() - (1.0 + 1.0 / 3.0) / 2.0).abs() < 1e-12);
        assert_eq!(precision_at(5, scored.clone()), Some(0.6));
        assert_eq!(precision_at(6, scored), None);
    }

    #[test]
    fn the_strongest_is_known_or_not() {
        assert_eq!(first_is_known(&[0.1, 0.7, 0.2], &[true, false, false]), 0.0);
        assert_eq!(first_is_known(&[0.1, 0.7, 0.2], &[false, true, false]), 1.0);
        assert_eq!(first_is_known(&[0.7, 0.7, 0.2], &[false, true, true]), 0.5);
    }

    #[test]
    fn rows_of_unknown_codes_are_counted() {
        let mut reference = Reference::default();
        for (diagnosis, treatment) in
            [(Some(1), Some(2)), (Some(1), Some(2)), (None, Some(2)), (Some(1), None)]
        {
            reference.add(diagnosis, treatment);
        }
        assert_eq!((reference.rows, reference.pairs()), (4, 1));
        assert_eq!((reference.unknown_diagnoses, reference.unknown_treatments), (1, 1));
        assert!(reference.has(1, 2) && !reference.has(2, 1));
    }
}
