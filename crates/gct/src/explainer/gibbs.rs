//! Learning who causes what without having seen one edge: collapsed Gibbs sampling.
//!
//! Every treatment of every training encounter is given a cause and every lab a source, first by how strongly
//! codes go together more often than by chance. Then each is drawn again and again, given all others: what
//! the counts of all other encounters say, and what is drawn in its own. Counts are those of the sweep
//! before, so encounters can be drawn side by side; random numbers depend on the seed, the sweep and the
//! encounter alone. The counts of the last sweeps are averaged.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::counts::{Causes, Counts, Tables};
use super::posterior::Local;
use super::rates::Rates;
use super::{LEAST, Progress};
use crate::error::Result;
use crate::job::Job;
use crate::record::{CodeKind, PerKind};

/// Sweeps between two times that it is learned how rates vary.
const LEARN_EVERY: usize = 5;

/// What is drawn in one encounter: the cause of each treatment and the source of each lab, by positions.
#[derive(Debug, Clone)]
struct Drawn {
    causes: Vec<u16>,
    sources: Vec<u16>,
}

impl Drawn {
    /// The cause of each treatment and the source of each lab that go together with it best.
    fn first(codes: &PerKind<Vec<u32>>, orders: &Together, results: &Together) -> Self {
        let best = |causes: &[u32], effect: u32, together: &Together| {
            let scores = causes.iter().map(|cause| together.strength(*cause, effect)).enumerate();
            let positive = scores.filter(|(_, score)| *score > 0.0);
            positive.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(causes.len(), |(at, _)| at) as u16
        };
        let cause = |treatment: &u32| best(&codes.diagnosis, *treatment, orders);
        let source = |lab: &u32| best(&codes.treatment, *lab, results);
        Drawn {
            causes: codes.treatment.iter().map(cause).collect(),
            sources: codes.lab.iter().map(source).collect(),
        }
    }

    fn causes(&self, diagnoses: usize) -> Causes {
        let treatments = self.causes.len();
        let mut labs = vec![0.0; treatments + 1];
        self.sources.iter().for_each(|source| labs[usize::from(*source)] += 1.0);
        let mut all = Causes::default();
        let cause =
            |treatment: usize| self.causes.get(treatment).map_or(diagnoses, |cause| usize::from(*cause));
        all.orders
            .extend((0..=treatments).map(|treatment| (cause(treatment), treatment, 1.0, labs[treatment])));
        all.results.extend(self.sources.iter().enumerate().map(|(lab, source)| {
            let source = usize::from(*source);
            (cause(source), source, lab, 1.0)
        }));
        all
    }

    /// Draws everything once, each given all others.
    fn draw(&mut self, local: &Local, rng: &mut Xoshiro256PlusPlus) {
        self.draw_causes(local, rng);
        self.draw_sources(local, rng);
    }

    fn draw_causes(&mut self, local: &Local, rng: &mut Xoshiro256PlusPlus) {
        let mut ordered = vec![0.0; local.diagnoses];
        self.causes.iter().for_each(|cause| ordered[usize::from(*cause)] += 1.0);
        let mut weights = vec![0.0; local.diagnoses];
        for treatment in 0..self.causes.len() {
            ordered[usize::from(self.causes[treatment])] -= 1.0;
            for (diagnosis, weight) in weights.iter_mut().enumerate() {
                *weight = self.log_weight(local, diagnosis, treatment) + (ordered[diagnosis] + 1.0_f64).ln();
            }
            let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
            let cause = choose(&weights, rng);
            self.causes[treatment] = cause as u16;
            ordered[cause] += 1.0;
        }
    }

    /// The logarithm of how likely a diagnosis is to order a treatment that leads to the labs that it led to;
    /// many of them are together very unlikely.
    fn log_weight(&self, local: &Local, diagnosis: usize, treatment: usize) -> f64 {
        let cell = diagnosis * local.treatments + treatment;
        let more = local.more[cell];
        let own = self.sources.iter().zip(&local.lab[cell * local.labs..]);
        let own = own.filter(|(source, _)| usize::from(**source) == treatment);
        (local.order[cell] * (1.0 - more)).ln() + own.map(|(_, lab)| (more * lab).ln()).sum::<f64>()
    }

    fn draw_sources(&mut self, local: &Local, rng: &mut Xoshiro256PlusPlus) {
        let (treatments, labs) = (local.treatments, local.labs);
        let mut measured = vec![0.0; treatments];
        self.sources.iter().for_each(|source| measured[usize::from(*source)] += 1.0);
        let cause = |treatment: usize| {
            self.causes.get(treatment).map_or(local.diagnoses - 1, |cause| usize::from(*cause))
        };
        let cells: Vec<usize> =
            (0..treatments).map(|treatment| cause(treatment) * treatments + treatment).collect();
        let mut weights = vec![0.0; treatments];
        for (lab, source) in self.sources.iter_mut().enumerate() {
            measured[usize::from(*source)] -= 1.0;
            let each = weights.iter_mut().zip(&cells).zip(&measured);
            each.for_each(|((weight, cell), measured)| {
                *weight = local.more[*cell] * local.lab[cell * labs + lab] * (measured + 1.0);
            });
            let drawn = choose(&weights, rng);
            *source = drawn as u16;
            measured[drawn] += 1.0;
        }
    }
}

/// How often codes of two kinds were in the same encounter.
struct Together {
    encounters: f64,
    causes: Vec<u32>,
    effects: Vec<u32>,
    pairs: FxHashMap<(u32, u32), u32>,
}

impl Together {
    fn new<'e>(sizes: [usize; 2], encounters: impl ExactSizeIterator<Item = (&'e [u32], &'e [u32])>) -> Self {
        let mut together = Together {
            encounters: encounters.len() as f64,
            causes: vec![0; sizes[0]],
            effects: vec![0; sizes[1]],
            pairs: FxHashMap::default(),
        };
        for (causes, effects) in encounters {
            causes.iter().for_each(|cause| together.causes[*cause as usize] += 1);
            effects.iter().for_each(|effect| together.effects[*effect as usize] += 1);
            for &cause in causes {
                effects.iter().for_each(|effect| *together.pairs.entry((cause, *effect)).or_default() += 1);
            }
        }
        together
    }

    /// By how many standard deviations two codes are together more often than by chance.
    fn strength(&self, cause: u32, effect: u32) -> f64 {
        let [cause_count, effect_count] =
            [self.causes[cause as usize], self.effects[effect as usize]].map(f64::from);
        let expected = cause_count * effect_count / self.encounters;
        let found = self.pairs.get(&(cause, effect)).copied().map_or(0.0, f64::from);
        (found - expected) / expected.sqrt()
    }
}

/// A position, with a chance in proportion to its weight.
fn choose(weights: &[f64], rng: &mut Xoshiro256PlusPlus) -> usize {
    let all: f64 = weights.iter().sum();
    let mut left = rng.random::<f64>() * all;
    for (position, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return position;
        }
    }
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(weights.len() - 1)
}

/// What is drawn to begin with.
fn first(encounters: &[PerKind<Vec<u32>>], vocabulary: PerKind<usize>) -> Vec<Drawn> {
    let together = |[causes, effects]: [CodeKind; 2]| {
        let both = encounters.iter().map(|codes| (&codes[causes][..], &codes[effects][..]));
        Together::new([vocabulary[causes], vocabulary[effects]], both)
    };
    let (orders, results) = rayon::join(
        || together([CodeKind::Diagnosis, CodeKind::Treatment]),
        || together([CodeKind::Treatment, CodeKind::Lab]),
    );
    encounters.par_iter().map(|codes| Drawn::first(codes, &orders, &results)).collect()
}

/// Learns from encounters without edges.
///
/// # Errors
/// If it is to stop.
pub(super) fn learn(
    encounters: &[PerKind<Vec<u32>>],
    vocabulary: PerKind<usize>,
    (sweeps, seed): (usize, u64),
    job: &Job<'_, Progress>,
) -> Result<(Counts, Rates)> {
    let mut drawn = first(encounters, vocabulary);
    let count = |tables: &mut Tables, drawn: &[Drawn], times: f64| {
        for (codes, drawn) in encounters.iter().zip(drawn) {
            tables.add_causes(codes, &drawn.causes(codes.diagnosis.len()), times);
        }
    };
    let mut there = Tables::new(vocabulary);
    encounters.iter().for_each(|codes| there.add_encounter(codes));
    let mut average = there.empty();
    let mut rates: Option<Rates> = None;
    let first_kept = sweeps / 2;
    for sweep in 0..sweeps {
        job.advance(Progress { sweep, sweeps })?;
        let mut tables = there.empty();
        count(&mut tables, &drawn, 1.0);
        let counts = Counts::new(&tables, 0.0);
        let now = match rates.filter(|_| sweep % LEARN_EVERY != 0) {
            Some(rates) => rates.again(&counts),
            None => Rates::learn(&counts),
        };
        let each = drawn.par_iter_mut().zip(encounters).enumerate().with_min_len(64);
        each.for_each(|(at, (drawn, codes))| {
            let own = drawn.causes(codes.diagnosis.len());
            let local = Local::new(&counts, &now, codes, Some(&own));
            let key = seed ^ ((sweep as u64) << 40) ^ at as u64;
            drawn.draw(&local, &mut Xoshiro256PlusPlus::seed_from_u64(key));
        });
        if sweep >= first_kept {
            count(&mut average, &drawn, 1.0 / (sweeps - first_kept) as f64);
        }
        rates = Some(now);
    }
    let counts = Counts::new(&average, LEAST);
    let rates = Rates::learn(&counts);
    Ok((counts, rates))
}
