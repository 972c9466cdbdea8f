//! The best that graph reconstruction and diagnosis-treatment classification can be on synthetic data.
//!
//! The generator is known, so the chance of every edge given the encounter's codes can be computed. A model
//! that does not see the edges cannot rank pairs better than these chances do, however long it trains.
//!
//! There are two of them. `pairwise` has a closed form but weighs each pair by itself: it asks who among the
//! encounter's diagnoses may have ordered a treatment, and forgets that a diagnosis that has ordered several
//! is more likely to have ordered one more, and that the labs say something about who ordered them. `joint`
//! weighs the encounter as a whole; it has no closed form and is sampled. Only the joint one is a bound for
//! a model that looks at the whole encounter.
//!
//! Labels have ceilings too: those of diagnosis-treatment classification are edges; `later`, which patients
//! with several visits have, depends on an edge of an earlier visit. The diagnoses of their next visits have
//! one as well.
//!
//! Of masked diagnosis there is a lower bound of the ceiling (`hidden`): a rule that knows the generator and
//! approximates the chance of each diagnosis.
//!
//! Beside them stand two rules that need no generator: the conditional probabilities of the training split,
//! and the share of true edges among pairs of the same two kinds.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::graph::NodeRanges;
use crate::ingest::synthetic::Generator;
use crate::job::Stop;
use crate::metric::{Areas, Ranking};
use crate::prior::Prior;
use crate::record::{Edge, Encounter};

mod chances;
mod hidden;
mod joint;
mod later;
mod next;
mod pairwise;

use chances::Chances;
pub use hidden::HiddenScores;
pub use later::LaterScores;
pub use next::NextScores;

/// Scores of graph reconstruction on held-out encounters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The chance of each edge, pair by pair.
    pub ceiling: Scores,
    /// The chance of each edge, given the whole encounter: the best that a model can do, as far as sampling
    /// tells.
    pub ceiling_joint: Scores,
    /// The conditional probabilities of the training split.
    pub prior: Scores,
    /// The share of true edges among pairs of the same two kinds.
    pub kinds: Scores,
    /// The chance of each label of diagnosis-treatment classification, given the whole encounter. Older
    /// datasets do not have it.
    #[serde(default)]
    pub diagnosis_treatment: Option<LabelScores>,
    /// The chance of the label `later`, and two rules beside it, if patients have several visits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<LaterScores>,
    /// How often a hidden diagnosis is found, at least. Older datasets do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub masked_diagnosis: Option<HiddenScores>,
    /// The chances of the diagnoses of the next visit, and a rule beside them, if patients have several
    /// visits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_diagnoses: Option<NextScores>,
}

/// How well a chance ranks encounters by their labels.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LabelScores {
    /// Over all labels together, as the task is measured.
    #[serde(flatten)]
    pub areas: Areas,
    /// On how many held-out encounters.
    pub encounters: u64,
}

/// How well a score ranks true edges.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Scores {
    /// Over all ordered pairs of different nodes, the visit's included: how we read the paper's Table 2.
    #[serde(flatten)]
    pub all_pairs: Areas,
    /// Over the pairs whose edges are hidden, diagnosis-treatment and treatment-lab, alone.
    pub hidden_pairs: Areas,
    /// On how many held-out encounters.
    pub encounters: u64,
}

/// How many held-out encounters are enough: the areas then vary by about 0.003 from one choice of them to
/// another.
pub const HELD_OUT: usize = 2000;

/// Sampling is slow, and this many settle the joint ceiling to about 0.005.
pub const JOINT_HELD_OUT: usize = 500;

/// Scores the held-out encounters. Those of a subject follow each other in time.
///
/// # Errors
/// If it is stopped.
///
/// # Panics
/// If the edges of an encounter are not known.
pub fn measure(generator: &Generator, prior: &Prior, held_out: &[Encounter], stop: &Stop) -> Result<Ceiling> {
    let few = &held_out[..held_out.len().min(JOINT_HELD_OUT)];
    let pairwise = |_, encounter: &Encounter| vec![pairwise::posterior(&Chances::of(generator, encounter))];
    // Sampling is slow: it is done for those that are ranked by their edges, and for those that may have a
    // label.
    let pairs = generator.label_pairs();
    let joint = each(held_out, stop, |number, encounter| {
        let is_wanted = number < few.len() || pairs.iter().any(|pair| pair_index(encounter, *pair).is_some());
        let rng = generator.spare_stream(number as u64);
        is_wanted.then(|| joint::posterior(&Chances::of(generator, encounter), rng))
    })?;
    let rates = Rates::of(held_out);
    let visits = generator.settings().visits;
    Ok(Ceiling {
        ceiling: score(held_out, stop, pairwise)?,
        ceiling_joint: rank(few, joint.iter().map(Option::as_slice)),
        prior: score(held_out, stop, |_, encounter| conditional_probabilities(prior, encounter))?,
        kinds: score(held_out, stop, |_, encounter| vec![rates.of_pairs(encounter)])?,
        diagnosis_treatment: Some(rank_labels(held_out, pairs, &joint)),
        masked_diagnosis: hidden::measure(generator, prior, held_out, stop)?,
        later: visits.are_several().then(|| later::rank(held_out, pairs[0], &joint, &visits)),
        next_diagnoses: if visits.are_several() { next::rank(generator, held_out, stop)? } else { None },
    })
}

/// What `rule` says of each encounter, on all threads.
fn each<R: Send>(
    encounters: &[Encounter],
    stop: &Stop,
    rule: impl Fn(usize, &Encounter) -> R + Sync,
) -> Result<Vec<R>> {
    let one = |(number, encounter)| stop.check().map(|()| rule(number, encounter));
    encounters.par_iter().enumerate().map(one).collect()
}

/// Index of a pair of diagnosis and treatment among all pairs of an encounter, if it has both.
fn pair_index(encounter: &Encounter, (diagnosis, treatment): (u32, u32)) -> Option<usize> {
    let codes = &encounter.codes;
    let index = |code: u32, codes: &[u32]| codes.iter().position(|other| *other == code);
    Some(index(diagnosis, &codes.diagnosis)? * codes.treatment.len() + index(treatment, &codes.treatment)?)
}

/// The chance that a diagnosis led to a treatment, given the scores of an encounter that has both. What is
/// not there led to nothing.
fn chance_of(encounter: &Encounter, pair: (u32, u32), scores: Option<&PairScores>) -> f32 {
    let chance = pair_index(encounter, pair).zip(scores);
    chance.map_or(0.0, |(index, scores)| scores.diagnosis_treatment[index])
}

/// Ranks encounters by the joint chance of their labels: each says that a certain diagnosis led to a certain
/// treatment.
fn rank_labels(
    encounters: &[Encounter],
    pairs: [(u32, u32); 2],
    joint: &[Option<PairScores>],
) -> LabelScores {
    let mut ranking = Ranking::default();
    for (encounter, scores) in encounters.iter().zip(joint) {
        for (label, pair) in encounter.labels.iter().zip(pairs) {
            ranking.add(chance_of(encounter, pair, scores.as_ref()), *label == Some(true));
        }
    }
    LabelScores { areas: ranking.areas(), encounters: encounters.len() as u64 }
}

/// A score for every pair whose edge is hidden, row after row.
#[derive(Debug, Clone, Default, PartialEq)]
struct PairScores {
    /// Diagnosis by treatment.
    diagnosis_treatment: Vec<f32>,
    /// Treatment by lab.
    treatment_lab: Vec<f32>,
}

/// Ranks the pairs of all encounters by what `rule` says of each: one set of scores, or two if it scores the
/// pair (i, j) otherwise than (j, i).
fn score(
    encounters: &[Encounter],
    stop: &Stop,
    rule: impl Fn(usize, &Encounter) -> Vec<PairScores> + Sync,
) -> Result<Scores> {
    let scored = each(encounters, stop, rule)?;
    Ok(rank(encounters, scored.iter().map(Vec::as_slice)))
}

/// Ranks the pairs of all encounters by their scores.
fn rank<'s>(encounters: &[Encounter], scored: impl Iterator<Item = &'s [PairScores]>) -> Scores {
    let (mut all, mut hidden) = (Ranking::default(), Ranking::default());
    for (encounter, directions) in encounters.iter().zip(scored) {
        let edges = encounter.edges.as_ref().expect("synthetic encounters know their edges");
        let nodes = NodeRanges::of(encounter).len();
        for scores in directions {
            let mut add = |scores: &[f32], edges: &[Edge], effects: usize| {
                let mut edges =
                    edges.iter().map(|edge| usize::from(edge.cause) * effects + usize::from(edge.effect));
                let mut next = edges.next();
                for (pair, &score) in scores.iter().enumerate() {
                    let is_edge = next == Some(pair);
                    if is_edge {
                        next = edges.next();
                    }
                    all.add(score, is_edge);
                    hidden.add(score, is_edge);
                }
            };
            add(&scores.diagnosis_treatment, &edges.diagnosis_treatment, encounter.codes.treatment.len());
            add(&scores.treatment_lab, &edges.treatment_lab, encounter.codes.lab.len());
            // Everybody knows that the visit has its diagnoses, and that no other pair is ever connected.
            let certain = encounter.codes.diagnosis.len();
            let weighed = scores.diagnosis_treatment.len() + scores.treatment_lab.len();
            let impossible = nodes * (nodes - 1) / 2 - certain - weighed;
            all.add_many(f32::INFINITY, certain as u32, 0);
            all.add_many(f32::NEG_INFINITY, 0, impossible as u32);
        }
    }
    Scores { all_pairs: all.areas(), hidden_pairs: hidden.areas(), encounters: encounters.len() as u64 }
}

/// p(effect|cause) for the pair one way, p(cause|effect) the other way.
fn conditional_probabilities(prior: &Prior, encounter: &Encounter) -> Vec<PairScores> {
    let codes = &encounter.codes;
    let table = |causes: &[u32], effects: &[u32], probability: &dyn Fn(u32, u32) -> f64| -> Vec<f32> {
        let row = |&cause| effects.iter().map(move |&effect| probability(cause, effect) as f32);
        causes.iter().flat_map(row).collect()
    };
    let (diagnoses, treatments, labs) = (&codes.diagnosis, &codes.treatment, &codes.lab);
    vec![
        PairScores {
            diagnosis_treatment: table(diagnoses, treatments, &|d, m| prior.treatment_given_diagnosis(m, d)),
            treatment_lab: table(treatments, labs, &|m, r| prior.lab_given_treatment(r, m)),
        },
        PairScores {
            diagnosis_treatment: table(diagnoses, treatments, &|d, m| prior.diagnosis_given_treatment(d, m)),
            treatment_lab: table(treatments, labs, &|m, r| prior.treatment_given_lab(m, r)),
        },
    ]
}

/// How many of the pairs of two kinds are edges. Two numbers, counted on the held-out encounters themselves.
struct Rates {
    diagnosis_treatment: f32,
    treatment_lab: f32,
}

impl Rates {
    fn of(encounters: &[Encounter]) -> Self {
        let mut counts = [(0, 0); 2];
        for encounter in encounters {
            let codes = &encounter.codes;
            let edges = encounter.edges.as_ref().expect("synthetic encounters know their edges");
            counts[0].0 += edges.diagnosis_treatment.len();
            counts[0].1 += codes.diagnosis.len() * codes.treatment.len();
            counts[1].0 += edges.treatment_lab.len();
            counts[1].1 += codes.treatment.len() * codes.lab.len();
        }
        let [diagnosis_treatment, treatment_lab] =
            counts.map(|(edges, pairs)| edges as f32 / pairs.max(1) as f32);
        Rates { diagnosis_treatment, treatment_lab }
    }

    fn of_pairs(&self, encounter: &Encounter) -> PairScores {
        let codes = &encounter.codes;
        PairScores {
            diagnosis_treatment: vec![
                self.diagnosis_treatment;
                codes.diagnosis.len() * codes.treatment.len()
            ],
            treatment_lab: vec![self.treatment_lab; codes.treatment.len() * codes.lab.len()],
        }
    }
}
