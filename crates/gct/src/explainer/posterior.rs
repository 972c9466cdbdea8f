//! Who caused what in one encounter, given all of it: a few rounds in which treatments ask for their
//! diagnosis and labs for their treatment, each given what the others think.
//!
//! A diagnosis orders treatments until it has enough, so one that has ordered already is the more likely to
//! have ordered another. The same holds for the labs of a treatment. A treatment has one cause here, and a
//! lab one source.

use super::counts::{Causes, Counts};
use super::rates::Rates;
use crate::record::PerKind;

/// Rounds of asking each other.
const ROUNDS: usize = 4;

/// How much of what was thought before is kept in a round.
const KEPT: f64 = 0.3;

/// A fit above this is as good as any.
const MOST: f64 = 1e100;

/// Nothing is impossible.
const LEAST: f64 = 1e-12;

/// How likely everything is in one encounter, before treatments and labs ask each other. The last diagnosis
/// and the last treatment are the leak.
#[derive(Debug, Default)]
pub(super) struct Local {
    pub(super) diagnoses: usize,
    pub(super) treatments: usize,
    pub(super) labs: usize,
    /// Of each diagnosis and treatment: that one more is ordered, and it is this one.
    pub(super) order: Vec<f64>,
    /// Of each diagnosis and treatment: that the order leads to one more lab.
    pub(super) more: Vec<f64>,
    /// Of each diagnosis, treatment and lab: that it is this one.
    pub(super) lab: Vec<f64>,
}

/// Who probably caused what.
#[derive(Debug, Clone, Default)]
pub(super) struct Posterior {
    /// Of each diagnosis and treatment; the last of each is the leak.
    pub(super) orders: Vec<f64>,
    pub(super) sources: Sources,
}

impl Local {
    /// Looks up what was counted; what the encounter itself contributed is taken away.
    pub(super) fn new(
        counts: &Counts,
        rates: &Rates,
        codes: &PerKind<Vec<u32>>,
        own: Option<&Causes>,
    ) -> Self {
        let [diagnoses, treatments, labs] =
            [codes.diagnosis.len() + 1, codes.treatment.len() + 1, codes.lab.len()];
        let cells = diagnoses * treatments;
        let mut own_orders = vec![[0.0; 2]; if own.is_some() { cells } else { 0 }];
        let mut own_results = vec![0.0; if own.is_some() { cells * labs } else { 0 }];
        if let Some(own) = own {
            for &(diagnosis, treatment, share, labs) in &own.orders {
                own_orders[diagnosis * treatments + treatment] = [share, labs];
            }
            for &(diagnosis, treatment, lab, share) in &own.results {
                own_results[(diagnosis * treatments + treatment) * labs + lab] = share;
            }
        }
        let mut local = Local {
            diagnoses,
            treatments,
            labs,
            order: vec![0.0; cells],
            more: vec![0.0; cells],
            lab: vec![0.0; cells * labs],
        };
        for diagnosis in 0..diagnoses {
            let id = codes.diagnosis.get(diagnosis).map_or(counts.leak(), |id| *id as usize);
            for treatment in 0..treatments {
                // Labs without a treatment have no diagnosis either.
                if treatment + 1 == treatments && diagnosis + 1 < diagnoses {
                    continue;
                }
                let cell = diagnosis * treatments + treatment;
                let code = codes.treatment.get(treatment).copied().unwrap_or(counts.vocabulary.treatment);
                let pair = counts.find(id, code);
                let [own_order, own_labs] = own_orders.get(cell).copied().unwrap_or_default();
                let counted = |numbers: &[f32], own: f64| {
                    pair.map_or(0.0, |pair| (f64::from(numbers[pair]) - own).max(0.0))
                };
                let (orders, after) =
                    (counted(&counts.orders, own_order), counted(&counts.labs_after, own_labs));
                let more = rates.more_labs(orders, after);
                (local.order[cell], local.more[cell]) = (rates.order(id, code, orders).max(LEAST), more);
                let own = own_results.get(cell * labs..(cell + 1) * labs).unwrap_or_default();
                let row = &mut local.lab[cell * labs..][..labs];
                fill_labs(
                    row,
                    rates,
                    &codes.lab,
                    pair.map(|pair| counts.results_of(pair)),
                    (orders, more),
                    own,
                );
            }
        }
        local
    }
}

/// How likely each lab of an encounter is after a pair with these counts.
pub(super) fn fill_labs(
    row: &mut [f64],
    rates: &Rates,
    labs: &[u32],
    counted: Option<(&[u32], &[f32])>,
    (orders, more): (f64, f64),
    own: &[f64],
) {
    rates.unseen_labs(labs, orders, more, row);
    let (ids, counts) = counted.unwrap_or_default();
    let mut from = 0;
    for (at, (cell, lab)) in row.iter_mut().zip(labs).enumerate() {
        from += ids[from..].partition_point(|id| id < lab);
        if ids.get(from) == Some(lab) {
            let count = f64::from(counts[from]) - own.get(at).copied().unwrap_or_default();
            *cell = rates.lab(*lab, count.max(0.0), orders, more);
        }
        *cell = cell.max(LEAST);
    }
}

impl Local {
    /// The rounds.
    pub(super) fn posterior(&self) -> Posterior {
        let mut orders = self.order.clone();
        self.settle(&mut orders);
        let mut sources = Sources::new(self, &orders, None);
        for round in 0..ROUNDS {
            let mut next = self.order.clone();
            self.weigh(&orders, &sources, &mut next);
            self.settle(&mut next);
            let kept = if round == 0 { 0.0 } else { KEPT };
            orders.iter_mut().zip(&next).for_each(|(old, new)| *old = kept * *old + (1.0 - kept) * new);
            sources = Sources::new(self, &orders, Some(&sources));
        }
        Posterior { orders, sources }
    }

    /// Makes the weights of the causes of each treatment sum to 1; the last treatment is the leak's.
    fn settle(&self, orders: &mut [f64]) {
        let last = self.treatments - 1;
        for diagnosis in 0..self.diagnoses {
            orders[diagnosis * self.treatments + last] = f64::from(u8::from(diagnosis + 1 == self.diagnoses));
        }
        normalize_columns(orders, self.treatments);
    }

    /// Multiplies how much speaks for each diagnosis as the cause of each treatment with what the others
    /// think: how many treatments it has ordered already, and whether the labs fit.
    fn weigh(&self, orders: &[f64], sources: &Sources, next: &mut [f64]) {
        for diagnosis in 0..self.diagnoses {
            let own = &orders[diagnosis * self.treatments..][..self.treatments - 1];
            let ordered: f64 = own.iter().sum();
            for (treatment, order) in own.iter().enumerate() {
                let cell = diagnosis * self.treatments + treatment;
                let likely = &self.lab[cell * self.labs..][..self.labs];
                next[cell] *= (1.0 + ordered - order) * sources.fit(treatment, self.more[cell], likely);
            }
        }
    }
}

/// Where the labs of an encounter probably come from.
#[derive(Debug, Clone, Default)]
pub(super) struct Sources {
    /// Of each treatment and lab: how probable; the last treatment is the leak.
    pub(super) results: Vec<f64>,
    /// The same before it sums to 1 for each lab, and the sums.
    weights: Vec<f64>,
    sums: Vec<f64>,
    /// How many labs each treatment led to.
    after: Vec<f64>,
}

impl Sources {
    /// By who ordered what. A treatment that has led to labs `before` is the likelier to have led to another.
    fn new(local: &Local, orders: &[f64], before: Option<&Sources>) -> Self {
        let (treatments, labs) = (local.treatments, local.labs);
        let mut weights = vec![0.0; treatments * labs];
        for (cell, order) in orders.iter().enumerate() {
            let factor = order * local.more[cell];
            let row = &mut weights[cell % treatments * labs..][..labs];
            row.iter_mut().zip(&local.lab[cell * labs..]).for_each(|(weight, lab)| *weight += factor * lab);
        }
        if let Some(before) = before {
            for (treatment, row) in weights.chunks_exact_mut(labs.max(1)).enumerate() {
                let own = before.results[treatment * labs..].iter();
                row.iter_mut()
                    .zip(own)
                    .for_each(|(weight, own)| *weight *= 1.0 + before.after[treatment] - own);
            }
        }
        let mut sums = vec![0.0; labs];
        for row in weights.chunks_exact(labs.max(1)) {
            sums.iter_mut().zip(row).for_each(|(sum, weight)| *sum += weight);
        }
        let mut results = weights.clone();
        normalize_columns(&mut results, labs);
        let after = |treatment: usize| results[treatment * labs..][..labs].iter().sum();
        Sources { after: (0..treatments).map(after).collect(), results, weights, sums }
    }

    /// How well the labs fit to a treatment that was ordered by somebody after whom they are so likely.
    pub(super) fn fit(&self, treatment: usize, more: f64, likely: &[f64]) -> f64 {
        let own = treatment * likely.len()..(treatment + 1) * likely.len();
        let cells = self.results[own.clone()].iter().zip(&self.weights[own]).zip(&self.sums);
        let fit = cells.zip(likely).fold(1.0 - more, |fit, (((own, weight), sum), likely)| {
            fit * (more * likely * (1.0 + self.after[treatment] - own) + sum - weight) / sum
        });
        // Of very many labs it could be more than a number can hold.
        fit.min(MOST)
    }
}

impl Posterior {
    /// How much the causes of an encounter order a treatment, as it is and weighed with how labs fit.
    pub(super) fn demand(&self, local: &Local, treatment: usize) -> [f64; 2] {
        let mut sums = [1e-12; 2];
        for diagnosis in 0..local.diagnoses {
            let own = &self.orders[diagnosis * local.treatments..][..local.treatments - 1];
            let cell = diagnosis * local.treatments + treatment;
            let order = local.order[cell] * (1.0 + own.iter().sum::<f64>() - own[treatment]);
            let likely = &local.lab[cell * local.labs..][..local.labs];
            sums[0] += order;
            sums[1] += order * self.sources.fit(treatment, local.more[cell], likely);
        }
        sums
    }
}

/// Makes every column of a matrix sum to 1.
fn normalize_columns(matrix: &mut [f64], columns: usize) {
    if columns == 0 {
        return;
    }
    let mut sums = vec![0.0; columns];
    matrix.chunks_exact(columns).for_each(|row| {
        sums.iter_mut().zip(row).for_each(|(sum, cell)| *sum += cell);
    });
    for row in matrix.chunks_exact_mut(columns) {
        row.iter_mut().zip(&sums).filter(|(_, sum)| **sum > 0.0).for_each(|(cell, sum)| *cell /= sum);
    }
}
