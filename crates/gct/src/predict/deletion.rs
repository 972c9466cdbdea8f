//! The deletion curve: how much an answer changes when the k codes that a ranking puts first are left out.
//!
//! It compares rankings of codes by what they promise: the codes that an answer depends on. Answers are those
//! that are true and that the model is sure of; the change is exact, as in an
//! [`Attribution`](super::Attribution). Codes are those of the encounter asked about: with history, earlier
//! visits stay as they are.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;

use super::attribution::{Asked, Cut, Effect, ask_without, single_effects};
use super::{Explainer, hidden_node};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::evaluate::attention_within;
use crate::infer::{LOOKED_AT, Predictor, Reader, TestSet, in_rounds};
use crate::job::{Job, Stop};
use crate::metric::{Bootstrap, Estimate, Means};
use crate::question::{Statement, probability_of};
use crate::record::SubjectId;
use crate::run::Run;
use crate::sample::Sample;

/// The most codes that are left out.
const MOST: usize = 5;

/// How codes are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranking {
    /// By the change of log-odds without the code: what speaks most for the answer comes first.
    Attribution,
    /// By the attention that the node with the answer gives them in the last block: the visit, or the hidden
    /// diagnosis. A node that it cannot see gets none; of equal ones the first node comes first.
    Attention,
    /// By chance.
    Random,
}

impl Ranking {
    /// All of them.
    pub const ALL: [Ranking; 3] = [Ranking::Attribution, Ranking::Attention, Ranking::Random];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Ranking::Attribution => "attribution",
            Ranking::Attention => "attention",
            Ranking::Random => "random",
        }
    }
}

/// What was found.
#[derive(Debug, Clone)]
pub struct Deletion {
    /// On which part of the dataset.
    pub split: &'static str,
    /// How many encounters were asked about.
    pub encounters: u64,
    /// How many answers are true and probable enough.
    pub answers: u64,
    /// A curve for each ranking that the model has.
    pub curves: Vec<DeletionCurve>,
}

/// The changes of one ranking.
#[derive(Debug, Clone)]
pub struct DeletionCurve {
    /// The ranking.
    pub ranking: Ranking,
    /// For one code, two codes, and so on.
    pub steps: Vec<DeletionStep>,
}

/// What happens when the first k codes are left out, in the mean over answers.
#[derive(Debug, Clone, Copy)]
pub struct DeletionStep {
    /// How many answers have so many codes.
    pub answers: u64,
    /// The change of the probability.
    pub change: Estimate,
    /// The change of the log-odds.
    pub log_odds_change: Estimate,
}

/// Leaves codes out of the encounters of a dataset, for true answers of at least this probability: 0.9 where
/// a model can be sure, less for rare outcomes. Random codes are the same at every call. The job is told how
/// many encounters are done.
///
/// # Errors
/// As [`evaluate::run`](crate::evaluate::run).
pub fn deletion(
    run: &Run,
    dataset: &Dataset,
    test_set: impl Into<TestSet>,
    least: f64,
    bootstrap: Bootstrap,
    job: &Job<'_, u64>,
) -> Result<Deletion> {
    let (TestSet { which, training }, explainer) = (test_set.into(), Explainer::new(run)?);
    let predictor = explainer.predictor();
    predictor.check_given(dataset)?;
    predictor.question().columns(&dataset.manifest().labels)?;
    dataset.check_hashes(&job.inner(|_| None))?;
    let mut reader = Reader::for_predictions(run, dataset, which)?.testing(run, dataset, training)?;
    let mut sums = Sums { least, ..Sums::default() };
    in_rounds(
        predictor,
        &mut reader,
        |encounter, next| predictor.can_test(encounter, next),
        |samples| {
            for some in samples.chunks(LOOKED_AT) {
                sums.add(&explainer, some, job.stop())?;
                job.advance(sums.encounters)?;
            }
            Ok(())
        },
    )?;
    reader.overlap()?;
    if sums.encounters == 0 {
        return Err(predictor.question().no_answers(which.name()));
    }
    Ok(sums.finish(which.name(), &bootstrap))
}

/// Changes so far.
#[derive(Default)]
struct Sums {
    /// The least probability of an answer.
    least: f64,
    encounters: u64,
    answers: u64,
    subjects: FxHashMap<SubjectId, u32>,
    /// By ranking and number of codes.
    changes: [[Changes; MOST]; Ranking::ALL.len()],
}

#[derive(Default)]
struct Changes {
    answers: u64,
    probability: Means,
    log_odds: Means,
}

impl Sums {
    fn add(&mut self, explainer: &Explainer<'_>, samples: &[Sample<'_>], stop: &Stop) -> Result<()> {
        let predictor = explainer.predictor();
        let logits = predictor.answers(samples)?;
        let told = samples.iter().zip(&logits);
        let asked: Vec<Asked<'_>> =
            told.flat_map(|(sample, logits)| sure(explainer, sample, logits, self.least)).collect();
        let own = |asked: &Asked<'_>| asked.own_codes().collect();
        let effects = single_effects(predictor, &asked, own, stop)?;
        for (index, ranking) in Ranking::ALL.into_iter().enumerate() {
            let ranked = asked.iter().zip(&effects).zip(self.answers..);
            let ranked: Vec<Vec<usize>> = ranked
                .map(|((asked, effects), seed)| ranked_codes(predictor, ranking, asked, &effects[0], seed))
                .collect();
            let cuts = ranked.iter().enumerate().flat_map(|(at, codes)| {
                let cut =
                    move |count: usize| Cut { asked: at, visits_before: 0, nodes: codes[..count].to_vec() };
                (1..=codes.len().min(MOST)).map(cut)
            });
            ask_without(predictor, &asked, cuts, stop, |cut, after| {
                if let [Some(after)] = after {
                    let one = &asked[cut.asked];
                    let subject = self.subject(&one.sample);
                    self.changes[index][cut.nodes.len() - 1].add(one.before(0), *after, subject);
                }
            })?;
        }
        self.encounters += samples.len() as u64;
        self.answers += asked.len() as u64;
        Ok(())
    }

    fn subject(&mut self, sample: &Sample<'_>) -> u32 {
        let next = self.subjects.len() as u32;
        *self.subjects.entry(sample.encounter().subject.clone()).or_insert(next)
    }

    fn finish(self, split: &'static str, bootstrap: &Bootstrap) -> Deletion {
        let curve = |(ranking, changes): (Ranking, [Changes; MOST])| DeletionCurve {
            ranking,
            steps: changes.iter().map(|changes| changes.step(bootstrap)).collect(),
        };
        let has_any = |curve: &DeletionCurve| curve.steps.iter().any(|step| step.answers > 0);
        let curves = Ranking::ALL.into_iter().zip(self.changes).map(curve).filter(has_any).collect();
        Deletion { split, encounters: self.encounters, answers: self.answers, curves }
    }
}

impl Changes {
    fn add(&mut self, before: f64, after: f64, subject: u32) {
        self.answers += 1;
        self.probability.add(probability_of(after) - probability_of(before), subject);
        self.log_odds.add(after - before, subject);
    }

    fn step(&self, bootstrap: &Bootstrap) -> DeletionStep {
        DeletionStep {
            answers: self.answers,
            change: self.probability.estimate(bootstrap),
            log_odds_change: self.log_odds.estimate(bootstrap),
        }
    }
}

/// The answers about a sample that are true and that the model is sure of, each on its own.
fn sure<'a>(explainer: &Explainer<'_>, sample: &Sample<'a>, logits: &'a [f32], least: f64) -> Vec<Asked<'a>> {
    let answers = explainer.first_answers(sample, logits);
    let told = answers.iter().zip(explainer.first_statements(sample, logits));
    let sure = told.filter(|(answer, _)| answer.truth == Some(true) && answer.probability >= least);
    sure.map(|(_, statement)| Asked { sample: *sample, logits, statements: vec![statement] }).collect()
}

/// The codes of a sample in the order of a ranking; none if the model has no such ranking.
fn ranked_codes(
    predictor: &Predictor<'_>,
    ranking: Ranking,
    asked: &Asked<'_>,
    effects: &[Effect],
    seed: u64,
) -> Vec<usize> {
    let mut effects = effects.to_vec();
    effects.sort_by_key(|effect| effect.place);
    match ranking {
        Ranking::Attribution => {
            effects.sort_by(|a, b| a.log_odds_change().total_cmp(&b.log_odds_change()));
        }
        Ranking::Attention => {
            let Some(attention) = attention_of_answer(predictor, asked) else { return Vec::new() };
            effects.sort_by(|a, b| attention[b.place.node].total_cmp(&attention[a.place.node]));
        }
        Ranking::Random => effects.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed)),
    }
    effects.into_iter().map(|effect| effect.place.node).collect()
}

/// What the node with the answer gives to each node in the last block; `None` if there is no such node, or no
/// attention.
fn attention_of_answer(predictor: &Predictor<'_>, asked: &Asked<'_>) -> Option<Vec<f32>> {
    let node = match asked.statements[0] {
        Statement::Label(_) | Statement::Next(_) => 0,
        Statement::Hidden(_) => hidden_node(&asked.sample)?,
        Statement::Pair(..) => return None,
    };
    let last = attention_within(predictor, &asked.sample).pop()?;
    Some(last.chunks(asked.nodes()).nth(node)?.to_vec())
}
