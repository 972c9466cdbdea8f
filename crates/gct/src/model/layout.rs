//! The visits of some examples as a model computes them: each once, even if several examples see it.

use std::borrow::Cow;
use std::ptr;
use std::sync::Arc;

use gct_kernels::pairs::Pairs;
use rustc_hash::FxHashMap;

use super::Config;
use crate::batch::{Example, Visit};

/// The visits of some examples and the graphs that a model mixes along.
pub struct Layout<'a> {
    /// Each visit once, in the order in which examples see them first.
    pub(super) visits: Vec<&'a Visit>,
    /// The pairs of nodes of each visit.
    graphs: Vec<Pairs>,
    /// The own visit of each example.
    pub(super) own: Vec<usize>,
    /// The steps of all examples, one example after the other, the latest first; none without history.
    pub(super) steps: Steps,
    /// Which steps of each example look at which.
    sequences: Vec<Pairs>,
}

/// The steps of some examples, in columns.
#[derive(Default)]
pub(super) struct Steps {
    /// The visit of each.
    pub(super) visits: Vec<usize>,
    /// The bucket of the time since the visit before it.
    pub(super) since: Vec<u32>,
    /// The bucket of the time to the question.
    pub(super) ago: Vec<u32>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(config: &Config, examples: &'a [Example]) -> Self {
        let has_history = examples.iter().any(|example| !example.steps.is_empty());
        let (mut visits, mut indices): (Vec<&Visit>, _) = (Vec::new(), FxHashMap::default());
        let mut index = |visit: &'a Arc<Visit>| {
            if !has_history {
                // Heads look at a row for each example.
                visits.push(visit);
                return visits.len() - 1;
            }
            *indices.entry(Arc::as_ptr(visit)).or_insert_with(|| {
                visits.push(visit);
                visits.len() - 1
            })
        };
        let own = examples.iter().map(|example| index(&example.visit)).collect();
        let mut steps = Steps::default();
        for step in examples.iter().flat_map(|example| &example.steps) {
            steps.visits.push(index(&step.visit));
            steps.since.push(step.since);
            steps.ago.push(step.ago);
        }
        // The latest step comes first, so whoever looks only further on looks back in time.
        let sequence = |example: &Example| Pairs::full(example.steps.len()).directed();
        let sequences = if has_history { examples.iter().map(sequence).collect() } else { Vec::new() };
        let graphs = visits.iter().map(|visit| graph(config, visit)).collect();
        Layout { visits, graphs, own, steps, sequences }
    }

    /// The pairs of nodes of each visit that the model mixes along.
    pub fn graphs(&self) -> &[Pairs] {
        &self.graphs
    }

    /// The steps of each example that look at each other; none without history.
    pub fn sequences(&self) -> &[Pairs] {
        &self.sequences
    }

    /// The rows of the embedding table of all nodes.
    pub(super) fn ids(&self) -> Vec<u32> {
        self.visits.iter().flat_map(|visit| visit.ids.iter().copied()).collect()
    }
}

/// The pairs of nodes of a visit that a model mixes along.
fn graph(config: &Config, visit: &Visit) -> Pairs {
    let pairs = match config.is_unrestricted() {
        true => Cow::Owned(Pairs::full(visit.nodes())),
        false => Cow::Borrowed(&visit.allowed),
    };
    if config.is_directed() { pairs.directed() } else { pairs.into_owned() }
}

/// Whether two examples have a visit in common.
pub(super) fn share(one: &Example, other: &Example) -> bool {
    // Without history they have their own visits alone.
    !one.steps.is_empty()
        && one.visits().any(|visit| other.visits().any(|also| ptr::eq(Arc::as_ptr(visit), Arc::as_ptr(also))))
}

/// Counts the nodes of examples that follow each other, those of a visit that they share once.
#[derive(Default)]
pub(super) struct NodeCount {
    seen: Vec<*const Visit>,
    pub(super) nodes: usize,
}

impl NodeCount {
    /// How many nodes an example would add.
    pub(super) fn more(&self, example: &Example) -> usize {
        let is_new = |visit: &&Arc<Visit>| !self.seen.contains(&Arc::as_ptr(visit));
        example.visits().filter(is_new).map(|visit| visit.nodes()).sum()
    }

    /// Adds the nodes of an example.
    pub(super) fn add(&mut self, example: &Example) {
        self.nodes += self.more(example);
        if !example.steps.is_empty() {
            self.seen.extend(example.visits().map(Arc::as_ptr));
        }
    }
}
