//! An account of how an encounter came to be: each diagnosis orders treatments until it has enough, each
//! order leads to labs until these are enough, and what no listed diagnosis explains is owed to a *leak*.
//!
//! P of the paper counts which codes are in the same encounters. Here they compete: a treatment has one cause
//! among the diagnoses of its encounter, and the labs that follow it speak for the one or the other.
//!
//! - Where edges are known, causes are counted. Where they are not, they are drawn again and again, each
//!   given all others (`gibbs`).
//! - How much a count is believed is learned from all counts (`shrinkage`), and whether a code is chosen more
//!   often because it is frequent anyway (`rates`). Nothing is assumed of where the data come from.
//! - Who caused what in an encounter follows from all of it in a few rounds (`posterior`); which diagnosis is
//!   hidden, from how well each candidate explains the rest (`candidates`).
//!
//! Only pairs and triples that were seen are stored. Counts are those of training encounters: of one of these
//! its own part is taken away before it is asked about, so that nothing it was learned from leaks into it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use self::counts::{Causes, Counts, Tables};
use self::posterior::{Local, Posterior};
use self::rates::Rates;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::record::{Encounter, PerKind};

mod candidates;
mod counts;
mod file;
mod gibbs;
mod posterior;
mod rates;
mod shrinkage;

pub(crate) use candidates::CLUES;

/// More sweeps than anybody waits for.
const MOST_SWEEPS: usize = 10_000;

/// Counts below this, averaged over the sweeps that are kept, are forgotten.
const LEAST: f64 = 0.05;

/// The share of a label's positives that have both codes of the pair that it may be about.
const POSITIVES: f64 = 0.9;

/// Pairs that a label may be about, and encounters by which one of them is chosen.
const PAIRS: usize = 20;
const ENCOUNTERS: usize = 20_000;

/// How it is learned who causes what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Whether true edges are counted.
    pub edges: Edges,
    /// Where they are not: how often causes are drawn. The second half is kept.
    pub sweeps: usize,
}

/// Whether true edges are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edges {
    /// If training encounters have them.
    #[default]
    Auto,
    /// Yes: encounters without are left out.
    Known,
    /// No, even if there are some.
    Hidden,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { edges: Edges::Auto, sweeps: 40 }
    }
}

impl Settings {
    pub(crate) fn check(&self) -> Result<()> {
        if (2..=MOST_SWEEPS).contains(&self.sweeps) {
            return Ok(());
        }
        Err(Error::setting("sweeps", self.sweeps, &format!("a whole number from 2 to {MOST_SWEEPS}")))
    }
}

/// How far the drawing of causes is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Sweeps made.
    pub sweep: usize,
    /// Of so many.
    pub sweeps: usize,
}

/// Training encounters, collected to learn from.
#[derive(Debug)]
pub(crate) struct Counter {
    settings: Settings,
    seed: u64,
    vocabulary: PerKind<usize>,
    /// Causes that are known.
    known: Tables,
    /// Codes of encounters.
    all: Vec<PerKind<Vec<u32>>>,
    /// For each diagnosis, how often each other one was in the same encounter.
    company: Vec<FxHashMap<u32, u32>>,
}

impl Counter {
    pub(crate) fn new(settings: Settings, vocabulary: PerKind<usize>, seed: u64) -> Self {
        let company = vec![FxHashMap::default(); vocabulary.diagnosis];
        Counter { settings, seed, vocabulary, known: Tables::new(vocabulary), all: Vec::new(), company }
    }

    /// Counts one training encounter.
    pub(crate) fn add(&mut self, encounter: &Encounter) {
        let codes = &encounter.codes;
        for &diagnosis in &codes.diagnosis {
            let row = &mut self.company[diagnosis as usize];
            let others = codes.diagnosis.iter().filter(|other| **other != diagnosis);
            others.for_each(|other| *row.entry(*other).or_default() += 1);
        }
        if self.settings.edges != Edges::Hidden
            && let Some(causes) = Causes::known(encounter)
        {
            // What has edges is learned from them alone, and nothing is drawn.
            self.all = Vec::new();
            self.known.add_encounter(codes);
            self.known.add_causes(codes, &causes, 1.0);
        }
        if self.settings.edges != Edges::Known && self.known.encounters == 0 {
            self.all.push(codes.clone());
        }
    }

    /// Learns who causes what.
    ///
    /// # Errors
    /// If edges should be counted and there are none, or it is to stop.
    pub(crate) fn learn(self, job: &Job<'_, Progress>) -> Result<Account> {
        let are_known = self.known.encounters > 0;
        if self.settings.edges == Edges::Known && !are_known {
            let allowed = "auto or hidden, because no training encounter has edges";
            return Err(Error::setting("edges", "known", allowed));
        }
        let company = Company::new(self.company);
        let (counts, rates) = match are_known {
            true => {
                let counts = Counts::new(&self.known, 0.0);
                let rates = Rates::learn(&counts);
                (counts, rates)
            }
            false => gibbs::learn(&self.all, self.vocabulary, (self.settings.sweeps, self.seed), job)?,
        };
        Ok(Account::new(are_known, counts, rates, company))
    }
}

/// What was learned of who causes what.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// Whether true edges were counted.
    edges_were_known: bool,
    counts: Counts,
    rates: Rates,
    company: Company,
    /// The pair of a diagnosis and a treatment that each label is about.
    labels: Vec<(u32, u32)>,
    /// Of each pair: how likely it is that the diagnosis orders one more treatment, and this one.
    orders: Vec<f32>,
    by_treatment: ByTreatment,
}

/// How often diagnoses were in the same encounter: compressed rows.
#[derive(Debug, Clone, Default, PartialEq)]
struct Company {
    starts: Vec<usize>,
    others: Vec<u32>,
    counts: Vec<u32>,
}

impl Company {
    fn new(rows: Vec<FxHashMap<u32, u32>>) -> Self {
        let mut company = Company { starts: vec![0], ..Company::default() };
        for row in rows {
            let row: BTreeMap<u32, u32> = row.into_iter().collect();
            company.others.extend(row.keys());
            company.counts.extend(row.values());
            company.starts.push(company.others.len());
        }
        company
    }

    /// The diagnoses that were seen with one, and how often.
    fn of(&self, diagnosis: u32) -> (&[u32], &[u32]) {
        let row = self.starts[diagnosis as usize]..self.starts[diagnosis as usize + 1];
        (&self.others[row.clone()], &self.counts[row])
    }
}

/// For each treatment the diagnoses that were seen to order it, with the index of the pair.
#[derive(Debug, Clone, Default, PartialEq)]
struct ByTreatment {
    starts: Vec<usize>,
    pairs: Vec<(u32, u32)>,
}

impl ByTreatment {
    fn new(counts: &Counts) -> Self {
        let mut rows = vec![Vec::new(); counts.vocabulary.treatment as usize];
        for diagnosis in 0..counts.leak() {
            for pair in counts.starts[diagnosis]..counts.starts[diagnosis + 1] {
                rows[counts.treatments[pair] as usize].push((diagnosis as u32, pair as u32));
            }
        }
        let mut table = ByTreatment { starts: vec![0], pairs: Vec::new() };
        for row in rows {
            table.pairs.extend(row);
            table.starts.push(table.pairs.len());
        }
        table
    }

    fn of(&self, treatment: u32) -> &[(u32, u32)] {
        &self.pairs[self.starts[treatment as usize]..self.starts[treatment as usize + 1]]
    }
}

/// Who probably caused what in an encounter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Links {
    /// Of each diagnosis and each treatment, row after row; the last row is the leak. Those of a treatment
    /// sum to 1.
    pub orders: Vec<f32>,
    /// Of each treatment and each lab; the last row is the leak. Those of a lab sum to 1.
    pub results: Vec<f32>,
}

impl Links {
    fn of(local: &Local, posterior: &Posterior) -> Self {
        // Without the order of the leak that labs without a treatment come from.
        let rows = posterior.orders.chunks_exact(local.treatments);
        let orders = rows.flat_map(|row| &row[..local.treatments - 1]).map(|share| *share as f32);
        let results = posterior.sources.results.iter().map(|share| *share as f32);
        Links { orders: orders.collect(), results: results.collect() }
    }

    /// Those of orders, and those of results.
    pub(crate) fn chances(&self) -> [Option<&[f32]>; 2] {
        [Some(&self.orders), Some(&self.results)]
    }

    /// Where the order of a treatment by a diagnosis stands, in an encounter that has both.
    pub(crate) fn place(encounter: &Encounter, (diagnosis, treatment): (u32, u32)) -> Option<usize> {
        let row = encounter.codes.diagnosis.binary_search(&diagnosis).ok()?;
        let column = encounter.codes.treatment.binary_search(&treatment).ok()?;
        Some(row * encounter.codes.treatment.len() + column)
    }
}

impl Account {
    fn new(edges_were_known: bool, counts: Counts, rates: Rates, company: Company) -> Self {
        let by_treatment = ByTreatment::new(&counts);
        let order = |diagnosis: usize, pair: usize| {
            rates.order(diagnosis, counts.treatments[pair], f64::from(counts.orders[pair])) as f32
        };
        let of = |diagnosis: usize| {
            (counts.starts[diagnosis]..counts.starts[diagnosis + 1]).map(move |pair| order(diagnosis, pair))
        };
        let orders = (0..counts.diagnoses.len()).flat_map(of).collect();
        Account { edges_were_known, counts, rates, company, labels: Vec::new(), orders, by_treatment }
    }

    /// Whether true edges were counted.
    pub fn edges_were_known(&self) -> bool {
        self.edges_were_known
    }

    /// Who probably caused what in an encounter, as if the diagnosis at the `hidden` position had not been
    /// recorded. What the encounter was itself counted for is taken away, if it `was_counted`.
    pub fn links(&self, encounter: &Encounter, hidden: Option<usize>, was_counted: bool) -> Links {
        let own = was_counted.then(|| self.own(encounter)).flatten();
        let (codes, own) = match hidden {
            None => (Cow::Borrowed(&encounter.codes), own),
            Some(at) => (Cow::Owned(without(&encounter.codes, at)), own.map(|own| own.without(at))),
        };
        let local = Local::new(&self.counts, &self.rates, &codes, own.as_ref());
        Links::of(&local, &local.posterior())
    }

    /// The same of one that was not counted, and what speaks for each diagnosis of the vocabulary as the
    /// hidden one: [`CLUES`] numbers for each.
    pub(crate) fn guesses(&self, encounter: &Encounter, hidden: usize) -> (Links, Vec<f32>) {
        let codes = without(&encounter.codes, hidden);
        let local = Local::new(&self.counts, &self.rates, &codes, None);
        let posterior = local.posterior();
        (Links::of(&local, &posterior), self.clues(&codes, &local, &posterior))
    }

    /// What a training encounter was counted for; where its edges were not known, what it probably was.
    fn own(&self, encounter: &Encounter) -> Option<Causes> {
        if self.edges_were_known {
            return Causes::known(encounter);
        }
        let local = Local::new(&self.counts, &self.rates, &encounter.codes, None);
        Some(causes_of(&local, &local.posterior()))
    }

    /// The pair that each label is about.
    pub(crate) fn labels(&self) -> &[(u32, u32)] {
        &self.labels
    }

    /// Finds the pair of a diagnosis and a treatment that each label is about: the label is true where the
    /// one led to the other. Of pairs that nearly all positives have, it is the one that makes the labels of
    /// training encounters most likely.
    ///
    /// # Errors
    /// If a label has no such pair: then it is about something else.
    pub(crate) fn find_labels<'e>(
        &mut self,
        names: &[String],
        train: impl Iterator<Item = &'e Encounter> + Clone,
    ) -> Result<()> {
        for (label, name) in names.iter().enumerate() {
            let known = train.clone().filter_map(|encounter| Some((encounter, encounter.labels[label]?)));
            let positives = known.clone().filter(|(_, truth)| *truth).map(|(one, _)| one);
            let pairs = frequent_pairs(positives.take(ENCOUNTERS));
            let mut best: Option<(f64, (u32, u32))> = None;
            for pair in pairs {
                let likelihood = self.likelihood(pair, known.clone());
                if likelihood > best.map_or(0.0, |(best, _)| best) {
                    best = Some((likelihood, pair));
                }
            }
            let Some((_, pair)) = best else {
                let problem = "a label that says whether a diagnosis led to a treatment: nearly all of its \
                               positives have both codes; another model predicts any label";
                return Err(Error::setting("model", format!("explainer for the label {name}"), problem));
            };
            self.labels.push(pair);
        }
        Ok(())
    }

    /// How much likelier labels are if they say that a pair is connected, than by their share alone.
    fn likelihood<'e>(&self, pair: (u32, u32), known: impl Iterator<Item = (&'e Encounter, bool)>) -> f64 {
        let share = |encounter: &Encounter| {
            let place = Links::place(encounter, pair);
            let share = place.map_or(0.0, |place| self.links(encounter, None, true).orders[place]);
            f64::from(share).clamp(0.001, 0.999)
        };
        let observed: Vec<(f64, bool)> =
            known.take(ENCOUNTERS).map(|(encounter, truth)| (share(encounter), truth)).collect();
        let prevalence =
            observed.iter().filter(|(_, truth)| *truth).count() as f64 / observed.len().max(1) as f64;
        let log = |share: f64, truth: bool| if truth { share.ln() } else { (1.0 - share).ln() };
        let gain =
            |(share, truth): &(f64, bool)| log(*share, *truth) - log(prevalence.clamp(0.001, 0.999), *truth);
        observed.iter().map(gain).sum()
    }
}

/// The pairs of a diagnosis and a treatment that nearly all of some encounters have, the most frequent first.
fn frequent_pairs<'e>(encounters: impl Iterator<Item = &'e Encounter>) -> Vec<(u32, u32)> {
    let (mut counts, mut all) = (FxHashMap::<(u32, u32), u32>::default(), 0u32);
    for encounter in encounters {
        all += 1;
        for &diagnosis in &encounter.codes.diagnosis {
            for &treatment in &encounter.codes.treatment {
                *counts.entry((diagnosis, treatment)).or_default() += 1;
            }
        }
    }
    let least = (f64::from(all) * POSITIVES).ceil().max(1.0) as u32;
    let mut pairs: Vec<_> = counts.into_iter().filter(|(_, count)| *count >= least).collect();
    pairs.sort_unstable_by_key(|(pair, count)| (std::cmp::Reverse(*count), *pair));
    pairs.into_iter().map(|(pair, _)| pair).take(PAIRS).collect()
}

/// Codes as if the diagnosis at a position had not been recorded.
fn without(codes: &PerKind<Vec<u32>>, diagnosis: usize) -> PerKind<Vec<u32>> {
    let mut codes = codes.clone();
    codes.diagnosis.remove(diagnosis);
    codes
}

/// A posterior as what an encounter is counted for.
fn causes_of(local: &Local, posterior: &Posterior) -> Causes {
    let (treatments, labs) = (local.treatments, local.labs);
    let mut all = Causes::default();
    for (cell, &share) in posterior.orders.iter().enumerate().filter(|(_, share)| **share > 1e-3) {
        let (diagnosis, treatment) = (cell / treatments, cell % treatments);
        let results = &posterior.sources.results[treatment * labs..][..labs];
        all.orders.push((diagnosis, treatment, share, share * results.iter().sum::<f64>()));
        let own = results.iter().enumerate().filter(|(_, result)| **result > 1e-3);
        all.results.extend(own.map(|(lab, result)| (diagnosis, treatment, lab, share * result)));
    }
    all
}
