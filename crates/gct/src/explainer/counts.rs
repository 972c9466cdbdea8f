//! What is counted: how often a diagnosis is there, how often it led to a treatment, and how often that
//! treatment then led to a lab. Only what was seen is stored.
//!
//! Treatments that no diagnosis led to are counted under a cause of its own, which every encounter has, and
//! labs that no treatment led to under a treatment of its own: the *leak*.

use rustc_hash::FxHashMap;

use crate::record::{Encounter, PerKind};

/// Who caused what in one encounter, by positions: each with how much it counts.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// Position of the diagnosis (the number of diagnoses is the leak), position of the treatment, share,
    /// and how many labs this order led to.
    pub(super) orders: Vec<(usize, usize, f64, f64)>,
    /// Positions of the diagnosis, the treatment (the number of treatments is the leak) and the lab, share.
    pub(super) results: Vec<(usize, usize, usize, f64)>,
}

impl Causes {
    /// Those of an encounter whose edges are known. Of several causes of a treatment each gets the same share
    /// of its labs.
    pub(super) fn known(encounter: &Encounter) -> Option<Self> {
        let edges = encounter.edges.as_ref()?;
        let codes = &encounter.codes;
        let (diagnoses, treatments) = (codes.diagnosis.len(), codes.treatment.len());
        let mut causes = vec![Vec::new(); treatments + 1];
        for edge in &edges.diagnosis_treatment {
            causes[usize::from(edge.effect)].push(usize::from(edge.cause));
        }
        // Whatever nobody ordered, and labs that nobody measured, are owed to the leak.
        causes.iter_mut().filter(|causes| causes.is_empty()).for_each(|causes| causes.push(diagnoses));
        let mut labs = vec![Vec::new(); treatments + 1];
        let mut has_source = vec![false; codes.lab.len()];
        for edge in &edges.treatment_lab {
            labs[usize::from(edge.cause)].push(usize::from(edge.effect));
            has_source[usize::from(edge.effect)] = true;
        }
        labs[treatments].extend((0..has_source.len()).filter(|lab| !has_source[*lab]));
        let mut all = Causes::default();
        for (treatment, (causes, labs)) in causes.iter().zip(&labs).enumerate() {
            let share = 1.0 / causes.len() as f64;
            for &cause in causes {
                all.orders.push((cause, treatment, 1.0, share * labs.len() as f64));
                all.results.extend(labs.iter().map(|lab| (cause, treatment, *lab, share)));
            }
        }
        Some(all)
    }
}

impl Causes {
    /// Without the diagnosis at a position; those after it move up.
    pub(super) fn without(mut self, diagnosis: usize) -> Self {
        self.orders.retain(|order| order.0 != diagnosis);
        self.results.retain(|result| result.0 != diagnosis);
        let causes = self.orders.iter_mut().map(|order| &mut order.0);
        let causes = causes.chain(self.results.iter_mut().map(|result| &mut result.0));
        causes.filter(|cause| **cause > diagnosis).for_each(|cause| *cause -= 1);
        self
    }
}

/// Counts in the making.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) vocabulary: PerKind<u64>,
    pub(super) encounters: u64,
    /// In how many encounters each diagnosis is; the last is the leak.
    pub(super) diagnoses: Vec<f64>,
    /// Orders and the labs that they led to, of pairs.
    pub(super) pairs: FxHashMap<u64, [f64; 2]>,
    /// Labs, of pairs.
    pub(super) triples: FxHashMap<u64, f64>,
}

impl Tables {
    pub(super) fn new(vocabulary: PerKind<usize>) -> Self {
        Tables {
            vocabulary: PerKind::from_fn(|kind| vocabulary[kind] as u64),
            diagnoses: vec![0.0; vocabulary.diagnosis + 1],
            ..Tables::default()
        }
    }

    /// The same encounters, with no causes counted.
    pub(super) fn empty(&self) -> Self {
        let (vocabulary, encounters, diagnoses) = (self.vocabulary, self.encounters, self.diagnoses.clone());
        Tables { vocabulary, encounters, diagnoses, ..Tables::default() }
    }

    /// The key of a pair; one more than the last id is the leak.
    pub(super) fn pair(&self, diagnosis: u64, treatment: u64) -> u64 {
        diagnosis * (self.vocabulary.treatment + 1) + treatment
    }

    /// The key of a triple.
    pub(super) fn triple(&self, pair: u64, lab: u64) -> u64 {
        pair * self.vocabulary.lab + lab
    }

    /// Counts that an encounter was there.
    pub(super) fn add_encounter(&mut self, codes: &PerKind<Vec<u32>>) {
        self.encounters += 1;
        for &diagnosis in &codes.diagnosis {
            self.diagnoses[diagnosis as usize] += 1.0;
        }
        *self.diagnoses.last_mut().expect("the leak is there") += 1.0;
    }

    /// Counts who caused what in it, so many times.
    pub(super) fn add_causes(&mut self, codes: &PerKind<Vec<u32>>, causes: &Causes, times: f64) {
        let diagnosis = |at: usize, all: &Self| {
            codes.diagnosis.get(at).map_or(all.vocabulary.diagnosis, |id| u64::from(*id))
        };
        let treatment = |at: usize, all: &Self| {
            codes.treatment.get(at).map_or(all.vocabulary.treatment, |id| u64::from(*id))
        };
        for &(cause, effect, share, labs) in &causes.orders {
            let pair = self.pair(diagnosis(cause, self), treatment(effect, self));
            let counts = self.pairs.entry(pair).or_default();
            counts[0] += times * share;
            counts[1] += times * labs;
        }
        for &(cause, effect, lab, share) in &causes.results {
            let pair = self.pair(diagnosis(cause, self), treatment(effect, self));
            let triple = self.triple(pair, u64::from(codes.lab[lab]));
            *self.triples.entry(triple).or_default() += times * share;
        }
    }
}

/// Counts as compressed rows: the pairs of a diagnosis, and the labs of a pair.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Counts {
    pub(super) vocabulary: PerKind<u32>,
    pub(super) encounters: u64,
    /// In how many encounters each diagnosis is; the last is the leak.
    pub(super) diagnoses: Vec<f32>,
    /// The pairs of diagnosis `d` are `starts[d]..starts[d + 1]`.
    pub(super) starts: Vec<usize>,
    pub(super) treatments: Vec<u32>,
    pub(super) orders: Vec<f32>,
    /// How many labs these orders led to.
    pub(super) labs_after: Vec<f32>,
    /// The labs of pair `p` are `lab_starts[p]..lab_starts[p + 1]`.
    pub(super) lab_starts: Vec<usize>,
    pub(super) labs: Vec<u32>,
    pub(super) results: Vec<f32>,
}

impl Counts {
    /// Sorts counts, of which less than `least` is left out.
    pub(super) fn new(tables: &Tables, least: f64) -> Self {
        let per_diagnosis = tables.vocabulary.treatment + 1;
        let mut pairs: Vec<(u64, [f64; 2])> =
            tables.pairs.iter().filter(|(_, counts)| counts[0] >= least).map(|(key, c)| (*key, *c)).collect();
        pairs.sort_unstable_by_key(|(key, _)| *key);
        let mut triples: Vec<(u64, f64)> =
            tables.triples.iter().filter(|(_, count)| **count >= least).map(|(key, c)| (*key, *c)).collect();
        triples.sort_unstable_by_key(|(key, _)| *key);
        let mut counts = Counts {
            vocabulary: PerKind::from_fn(|kind| tables.vocabulary[kind] as u32),
            encounters: tables.encounters,
            diagnoses: tables.diagnoses.iter().map(|count| *count as f32).collect(),
            lab_starts: vec![0],
            ..Counts::default()
        };
        let labs = tables.vocabulary.lab.max(1);
        let mut rest = triples.iter().peekable();
        for (key, [orders, labs_after]) in &pairs {
            counts.starts.resize((key / per_diagnosis) as usize + 1, counts.treatments.len());
            counts.treatments.push((key % per_diagnosis) as u32);
            counts.orders.push(*orders as f32);
            counts.labs_after.push(*labs_after as f32);
            while rest.next_if(|(triple, _)| triple / labs < *key).is_some() {}
            while let Some((triple, count)) = rest.next_if(|(triple, _)| triple / labs == *key) {
                counts.labs.push((triple % labs) as u32);
                counts.results.push(*count as f32);
            }
            counts.lab_starts.push(counts.labs.len());
        }
        counts.starts.resize(counts.diagnoses.len() + 1, counts.treatments.len());
        counts
    }

    /// The leak among diagnoses: one more than the last id.
    pub(super) fn leak(&self) -> usize {
        self.vocabulary.diagnosis as usize
    }

    /// The index of a pair, if it was seen.
    pub(super) fn find(&self, diagnosis: usize, treatment: u32) -> Option<usize> {
        let row = self.starts[diagnosis]..self.starts[diagnosis + 1];
        self.treatments[row.clone()].binary_search(&treatment).ok().map(|at| row.start + at)
    }

    /// The labs of a pair with their counts.
    pub(super) fn results_of(&self, pair: usize) -> (&[u32], &[f32]) {
        let labs = self.lab_starts[pair]..self.lab_starts[pair + 1];
        (&self.labs[labs.clone()], &self.results[labs])
    }

    /// The pairs of a diagnosis with a treatment; the last one of the leak, labs without a treatment, is not
    /// among them.
    pub(super) fn treatments_of(&self, diagnosis: usize) -> (&[u32], &[f32]) {
        let pairs = self.starts[diagnosis]..self.starts[diagnosis + 1];
        let (codes, orders) = (&self.treatments[pairs.clone()], &self.orders[pairs]);
        let own = codes.partition_point(|code| *code < self.vocabulary.treatment);
        (&codes[..own], &orders[..own])
    }

    /// How many treatments each diagnosis ordered, the leak included.
    pub(super) fn ordered(&self) -> Vec<f64> {
        let sum = |diagnosis| self.treatments_of(diagnosis).1.iter().map(|count| f64::from(*count)).sum();
        (0..self.diagnoses.len()).map(sum).collect()
    }
}
