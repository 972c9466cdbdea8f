//! How well a hidden diagnosis can be found, at least.
//!
//! The generator is known, so every diagnosis can be tried in the hidden place: how probable are then the
//! diagnoses of the encounter, its treatments and its labs? The exact chance is a sum over every account of
//! who brought, ordered and measured what. What is computed here approximates it, so it is no ceiling. But it
//! is a rule that predicts without seeing the answer, so **the best rule is at least as good**: a lower bound
//! of the ceiling.
//!
//! - Diagnoses: each one is a root of a chain or comes with another one that is there; a chain does not lead
//!   to what is not there.
//! - Treatments: a loop that continues with probability b and draws n given treatments has the chance
//!   (1 - b) b^n n! prod p(m|d). Who ordered what is not known, so each treatment has shares of the
//!   diagnoses, found by a few rounds in which every treatment that a diagnosis has makes a further one more
//!   likely; the score is the bound of the logarithm of the chance that these shares give.
//! - Labs: expected numbers of draws under these shares, of which none falls outside of the encounter.
//!
//! Labs cost most (p(R|m,d) has a row for each pair), so they decide among the best by the rest.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use statrs::function::gamma::ln_gamma;

use crate::error::Result;
use crate::ingest::synthetic::Generator;
use crate::job::Stop;
use crate::prior::Prior;
use crate::question::{Hide, Question};
use crate::record::{CodeKind, Encounter};

/// On how many encounters, and fewer if there are very many diagnoses to try.
const ENCOUNTERS: usize = 500;
const TRIED: usize = 1 << 21;

/// Rounds in which shares are found.
const ROUNDS: usize = 4;

/// Diagnoses among which labs decide.
const BEST: usize = 20;

/// Logarithms are of numbers at least as large.
const LEAST: f64 = 1e-300;

/// How often the hidden diagnosis is found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct HiddenScores {
    /// By the chance of everything else of the encounter: a lower bound of the best accuracy.
    pub at_least: f64,
    /// The same without labs.
    pub without_labs: f64,
    /// By the most frequent diagnosis of the training split that is not there already: no model.
    pub frequent: f64,
    /// In how many held-out encounters.
    pub encounters: u64,
}

/// Looks for the diagnosis that evaluation hides in held-out encounters. `None` if there are none.
pub(super) fn measure(
    generator: &Generator,
    prior: &Prior,
    held_out: &[Encounter],
    stop: &Stop,
) -> Result<Option<HiddenScores>> {
    let diagnoses = generator.settings().vocabulary.diagnosis as usize;
    let most = ENCOUNTERS.min((TRIED / diagnoses.max(1)).max(1));
    let question = Question::HiddenDiagnosis;
    let hiding = |encounter| {
        let sample = question.sample(encounter, Hide::ByEncounter);
        sample.hidden_position().map(|(_, position)| position)
    };
    let several = held_out.iter().filter(|encounter| encounter.codes.diagnosis.len() > 1);
    let asked = several.filter_map(|encounter| Some(Asked::new(encounter, hiding(encounter)?)));
    let asked: Vec<Asked<'_>> = asked.take(most).collect();
    if asked.is_empty() {
        return Ok(None);
    }
    let rows = rows_of_all(generator, &asked, stop)?;
    let look = |(number, asked): (usize, &Asked<'_>)| {
        stop.check()?;
        let given: Vec<&Given> = rows.iter().map(|of| &of[number]).collect();
        let [with_labs, without] = asked.guesses(generator, &given);
        Ok([with_labs, without, asked.most_frequent(prior)].map(|guess| guess == Some(asked.hidden)))
    };
    let found: Vec<[bool; 3]> = asked.par_iter().enumerate().map(look).collect::<Result<_>>()?;
    let share = |rule: usize| found.iter().filter(|found| found[rule]).count() as f64 / found.len() as f64;
    let [at_least, without_labs, frequent] = [0, 1, 2].map(share);
    Ok(Some(HiddenScores { at_least, without_labs, frequent, encounters: found.len() as u64 }))
}

/// What a diagnosis gives to the codes of an encounter.
#[derive(Debug, Clone, Default, PartialEq)]
struct Given {
    /// a(d): the chance that another diagnosis comes with it.
    brings_more: f64,
    /// b(d): the chance of one more treatment.
    orders_more: f64,
    /// p(d).
    root: f64,
    /// p(D|d) of the diagnoses that are seen.
    brings: Vec<f32>,
    /// p(M|d) of the treatments.
    orders: Vec<f32>,
}

/// For every diagnosis what it gives in every encounter. A row of a table is made once.
fn rows_of_all(generator: &Generator, asked: &[Asked<'_>], stop: &Stop) -> Result<Vec<Vec<Given>>> {
    let mut roots = Vec::new();
    generator.diagnosis_probabilities(&mut roots);
    let given = |id: u32| {
        let (mut brings, mut orders) = (Vec::new(), Vec::new());
        generator.co_diagnosis_probabilities(id, &mut brings);
        generator.treatment_probabilities(id, &mut orders);
        let of = |codes: &[u32], row: &[f32]| codes.iter().map(|id| row[*id as usize]).collect();
        let in_encounter = |asked: &Asked<'_>| Given {
            brings_more: generator.more_co_diagnoses(id),
            orders_more: generator.more_treatments(id),
            root: f64::from(roots[id as usize]),
            brings: of(&asked.seen, &brings),
            orders: of(&asked.encounter.codes.treatment, &orders),
        };
        stop.check().map(|()| asked.iter().map(in_encounter).collect())
    };
    (0..generator.settings().vocabulary.diagnosis).into_par_iter().map(given).collect()
}

/// An encounter with a hidden diagnosis.
struct Asked<'a> {
    encounter: &'a Encounter,
    hidden: u32,
    /// The other diagnoses.
    seen: Vec<u32>,
}

impl<'a> Asked<'a> {
    fn new(encounter: &'a Encounter, position: usize) -> Self {
        let mut seen = encounter.codes.diagnosis.clone();
        let hidden = seen.remove(position);
        Asked { encounter, hidden, seen }
    }

    /// The most probable diagnosis, and the one without labs; `given` is what each diagnosis gives here.
    fn guesses(&self, generator: &Generator, given: &[&Given]) -> [Option<u32>; 2] {
        let seen: Vec<&Given> = self.seen.iter().map(|id| given[*id as usize]).collect();
        let brought = self.brought(generator, given);
        let with = |id: u32| -> Vec<&Given> { seen.iter().copied().chain([given[id as usize]]).collect() };
        let others = (0..given.len() as u32).filter(|id| !self.seen.contains(id));
        let mut scored: Vec<(f64, u32)> = others
            .map(|id| {
                let (all, labs) = (with(id), Vec::new());
                (of_diagnoses(&all, brought[id as usize]) + Shares::of(&all, &labs).score(&all, &labs), id)
            })
            .collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let without = scored.first().map(|(_, id)| *id);
        scored.truncate(BEST);
        let measuring: Vec<Vec<Measuring>> =
            self.seen.iter().map(|id| self.measuring(generator, *id)).collect();
        let by_labs = scored.iter().map(|(_, id)| {
            let (all, own) = (with(*id), self.measuring(generator, *id));
            let labs: Vec<&[Measuring]> = measuring.iter().chain([&own]).map(Vec::as_slice).collect();
            (of_diagnoses(&all, brought[*id as usize]) + Shares::of(&all, &labs).score(&all, &labs), *id)
        });
        let best = by_labs.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        [best.map(|(_, id)| id), without]
    }

    /// How often each diagnosis comes with those that are seen.
    fn brought(&self, generator: &Generator, given: &[&Given]) -> Vec<f64> {
        let (mut sums, mut row) = (vec![0.0; given.len()], Vec::new());
        for id in &self.seen {
            generator.co_diagnosis_probabilities(*id, &mut row);
            let more = given[*id as usize].brings_more;
            sums.iter_mut().zip(&row).for_each(|(sum, chance)| *sum += more * f64::from(*chance));
        }
        sums
    }

    /// What a diagnosis measures with each treatment.
    fn measuring(&self, generator: &Generator, diagnosis: u32) -> Vec<Measuring> {
        let (codes, mut row) = (&self.encounter.codes, Vec::new());
        let of_treatment = |treatment: &u32| {
            generator.lab_probabilities(*treatment, diagnosis, &mut row);
            let labs = codes.lab.iter().map(|lab| f64::from(row[*lab as usize]));
            Measuring::new(generator.more_labs(*treatment, diagnosis), labs.collect())
        };
        codes.treatment.iter().map(of_treatment).collect()
    }

    fn most_frequent(&self, prior: &Prior) -> Option<u32> {
        let all = 0..prior.vocabulary_size(CodeKind::Diagnosis) as u32;
        let count = |id: &u32| (prior.occurrences((CodeKind::Diagnosis, *id)), std::cmp::Reverse(*id));
        all.filter(|id| !self.seen.contains(id)).max_by_key(count)
    }
}

fn ln(chance: f64) -> f64 {
    chance.max(LEAST).ln()
}

/// The logarithm of how probable it is that these diagnoses and no others come together, but for what is the
/// same whichever is in the hidden place, as the last one is; `brought` is how often it comes with the
/// others.
fn of_diagnoses(all: &[&Given], brought: f64) -> f64 {
    let Some((own, seen)) = all.split_last() else { return 0.0 };
    // About as many roots as diagnoses that come with no other.
    let mean = all.iter().map(|of| of.brings_more).sum::<f64>() / all.len() as f64;
    let roots = all.len() as f64 * (1.0 - mean);
    // Chains that end, or lead to what is there.
    let within: f64 = own.brings.iter().copied().map(f64::from).sum();
    let mut sum = ln(1.0 - own.brings_more * (1.0 - within.min(1.0)));
    for (at, of) in seen.iter().enumerate() {
        let bring = |by: &Given| by.brings_more * f64::from(by.brings[at]);
        let without = roots * of.root + seen.iter().copied().map(bring).sum::<f64>();
        sum += ln(without + bring(own)) - ln(without);
    }
    sum + ln(roots * own.root + brought)
}

/// What a diagnosis measures with a treatment: the logarithm of the chance that nothing of it falls outside
/// of the encounter, and how often each lab is drawn, in the mean, if so.
#[derive(Debug, Clone, PartialEq)]
struct Measuring {
    within: f64,
    draws: Vec<f64>,
}

impl Measuring {
    fn new(more: f64, labs: Vec<f64>) -> Self {
        let left = 1.0 - more * labs.iter().sum::<f64>();
        let draws = labs.into_iter().map(|lab| more * lab / left).collect();
        Measuring { within: ln((1.0 - more) / left), draws }
    }
}

/// Which share of each treatment is of which diagnosis, diagnosis by treatment.
#[derive(Debug, Clone)]
struct Shares {
    treatments: usize,
    shares: Vec<f64>,
    /// How many treatments each diagnosis has.
    of_diagnosis: Vec<f64>,
    /// How often each lab is drawn by each treatment, treatment by lab; nothing without labs.
    drawn: Vec<f64>,
}

impl Shares {
    /// Finds shares; `labs` are of each diagnosis what it measures with each treatment, or nothing.
    fn of(all: &[&Given], labs: &[&[Measuring]]) -> Self {
        let treatments = all.first().map_or(0, |of| of.orders.len());
        let mut shares = Shares {
            treatments,
            shares: vec![0.0; all.len() * treatments],
            of_diagnosis: vec![0.0; all.len()],
            drawn: Vec::new(),
        };
        for _ in 0..ROUNDS {
            for treatment in 0..treatments {
                shares.divide(treatment, all, labs);
            }
            shares.draw(labs);
        }
        shares
    }

    /// Divides a treatment among the diagnoses anew.
    fn divide(&mut self, treatment: usize, all: &[&Given], labs: &[&[Measuring]]) {
        let evidence = self.evidence(treatment, labs);
        let mut sum = 0.0;
        for (diagnosis, of) in all.iter().enumerate() {
            let at = diagnosis * self.treatments + treatment;
            self.of_diagnosis[diagnosis] -= self.shares[at];
            let others = 1.0 + self.of_diagnosis[diagnosis];
            let by_labs = evidence.get(diagnosis).copied().unwrap_or(1.0);
            self.shares[at] = of.orders_more * f64::from(of.orders[treatment]) * others * by_labs;
            sum += self.shares[at];
        }
        let even = 1.0 / all.len() as f64;
        for diagnosis in 0..all.len() {
            let share = &mut self.shares[diagnosis * self.treatments + treatment];
            *share = if sum > 0.0 { *share / sum } else { even };
            self.of_diagnosis[diagnosis] += *share;
        }
    }

    /// What the labs of a treatment say about each diagnosis; nothing in the first round.
    fn evidence(&self, treatment: usize, labs: &[&[Measuring]]) -> Vec<f64> {
        let Some(count) = self.drawn.len().checked_div(self.treatments).filter(|count| *count > 0) else {
            return Vec::new();
        };
        let of_all = |lab: usize| self.drawn.iter().skip(lab).step_by(count).sum::<f64>().max(LEAST);
        let own = &self.drawn[treatment * count..][..count];
        let parts: Vec<f64> = own.iter().enumerate().map(|(lab, drawn)| drawn / of_all(lab)).collect();
        let by = |of: &&[Measuring]| {
            let Measuring { within, draws } = &of[treatment];
            within + draws.iter().zip(&parts).map(|(draws, part)| part * ln(*draws)).sum::<f64>()
        };
        let logarithms: Vec<f64> = labs.iter().map(by).collect();
        let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logarithms.into_iter().map(|logarithm| (logarithm - largest).exp()).collect()
    }

    fn draw(&mut self, labs: &[&[Measuring]]) {
        let count = labs.first().and_then(|of| of.first()).map_or(0, |of| of.draws.len());
        self.drawn = vec![0.0; self.treatments * count];
        for (diagnosis, of) in labs.iter().enumerate() {
            for (treatment, measuring) in of.iter().enumerate() {
                let share = self.shares[diagnosis * self.treatments + treatment];
                let drawn = &mut self.drawn[treatment * count..][..count];
                drawn.iter_mut().zip(&measuring.draws).for_each(|(sum, draws)| *sum += share * draws);
            }
        }
    }

    /// A bound of the logarithm of the chance of treatments, and about that of labs.
    fn score(&self, all: &[&Given], labs: &[&[Measuring]]) -> f64 {
        let mut sum = 0.0;
        for (diagnosis, of) in all.iter().enumerate() {
            sum += ln(1.0 - of.orders_more) + ln_gamma(1.0 + self.of_diagnosis[diagnosis].max(0.0));
            for treatment in 0..self.treatments {
                let share = self.shares[diagnosis * self.treatments + treatment];
                if share > 0.0 {
                    let ordered = of.orders_more * f64::from(of.orders[treatment]);
                    sum += share * (ln(ordered) - ln(share));
                    sum += labs.get(diagnosis).map_or(0.0, |of| share * of[treatment].within);
                }
            }
        }
        let count = self.drawn.len().checked_div(self.treatments).unwrap_or(0);
        let drawn = |lab: usize| self.drawn.iter().skip(lab).step_by(count).sum::<f64>();
        sum + (0..count).map(|lab| ln(-(-drawn(lab)).exp_m1())).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(orders_more: f64, orders: &[f32]) -> Given {
        Given { orders_more, orders: orders.to_vec(), ..Given::default() }
    }

    #[test]
    fn the_only_diagnosis_has_all_treatments() {
        let only = given(0.5, &[0.2, 0.1]);
        let shares = Shares::of(&[&only], &[]);
        assert_eq!(shares.shares, [1.0, 1.0]);
        // (1 - b) b^2 2! p1 p2.
        let expected = (0.5f64 * 0.25 * 2.0 * 0.2 * 0.1).ln();
        assert!((shares.score(&[&only], &[]) - expected).abs() < 1e-6);
    }

    #[test]
    fn who_has_ordered_several_is_more_likely_to_have_ordered_another() {
        let (one, two) = (given(0.5, &[0.4, 0.4, 0.1]), given(0.5, &[0.01, 0.01, 0.1]));
        let shares = Shares::of(&[&one, &two], &[]);
        assert!(shares.shares[2] > 0.7, "{:?}", shares.shares);
    }

    #[test]
    fn labs_say_who_ordered() {
        let (one, two) = (given(0.5, &[0.1]), given(0.5, &[0.1]));
        let measuring = |lab: f64| vec![Measuring::new(0.5, vec![lab])];
        let labs = [measuring(0.3), measuring(0.03)];
        let labs: Vec<&[Measuring]> = labs.iter().map(Vec::as_slice).collect();
        let shares = Shares::of(&[&one, &two], &labs);
        assert!(shares.shares[0] > 0.9, "{:?}", shares.shares);
        // Of one diagnosis alone: (1 - c) / (1 - c p) that nothing else is drawn, and c p / (1 - c p) draws.
        let alone = Shares::of(&[&one], &labs[..1]);
        let (within, draws) = (0.5f64 / 0.85, 0.15f64 / 0.85);
        let expected = (0.5f64 * 0.5 * 0.1).ln() + within.ln() + (1.0 - (-draws).exp()).ln();
        assert!((alone.score(&[&one], &labs[..1]) - expected).abs() < 1e-6);
    }

    #[test]
    fn what_comes_with_those_that_are_seen_is_more_probable() {
        let seen = Given { brings_more: 0.5, root: 0.1, brings: vec![0.0], ..Given::default() };
        let one = Given { brings_more: 0.5, root: 0.1, brings: vec![0.4], ..Given::default() };
        let other = Given { brings: vec![0.0], ..one.clone() };
        assert!(of_diagnoses(&[&seen, &one], 0.0) > of_diagnoses(&[&seen, &other], 0.0));
        assert!(of_diagnoses(&[&seen, &other], 0.2) > of_diagnoses(&[&seen, &other], 0.0));
    }
}
