//! Encounters as numbers: a `Visit` has rows of the embedding table, edges between nodes and the matrix P,
//! an `Example` is what a model is asked about one, with the visits before it. Nodes are ordered visit,
//! context, diagnoses, treatments, labs, as in [`graph`](crate::graph).

use std::ops::Range;
use std::sync::Arc;

use gct_kernels::pairs::Pairs;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::explainer::{Account, Links};
use crate::graph::{self, NodeKind, NodeRanges};
use crate::history::time_bucket;
use crate::prior::{Cells, Hidden, MatrixSettings, Prior, PriorSettings};
use crate::record::{CodeKind, Encounter, PerKind};
use crate::sample::Sample;

/// Which row of the embedding table belongs to which code: the visit, then the codes of each kind, then one
/// for a code that is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmbeddingRows {
    vocabulary: PerKind<u32>,
}

impl EmbeddingRows {
    /// For vocabularies of these sizes.
    pub fn new(vocabulary: PerKind<u32>) -> Self {
        EmbeddingRows { vocabulary }
    }

    /// The row of the visit.
    pub const VISIT: u32 = 0;

    /// The rows of the visit and of all codes.
    fn ranges(self) -> NodeRanges {
        NodeRanges::new(PerKind::from_fn(|kind| self.codes(kind)))
    }

    /// The row of a code.
    pub fn code(self, kind: CodeKind, id: u32) -> u32 {
        self.ranges().range(kind).start as u32 + id
    }

    /// The rows of the nodes of an encounter.
    pub(crate) fn of(self, encounter: &Encounter) -> Vec<u32> {
        let mut rows = vec![EmbeddingRows::VISIT];
        for kind in CodeKind::ALL {
            rows.extend(encounter.codes[kind].iter().map(|&id| self.code(kind, id)));
        }
        rows
    }

    /// The row of a code that is hidden.
    pub fn hidden(self) -> u32 {
        self.ranges().len() as u32
    }

    /// How many rows there are.
    pub fn count(self) -> usize {
        self.hidden() as usize + 1
    }

    /// How many codes of a kind there are.
    pub fn codes(self, kind: CodeKind) -> usize {
        self.vocabulary[kind] as usize
    }

    /// The code that a row belongs to; `None` for the visit and for one that is hidden.
    pub fn code_at(self, row: u32) -> Option<(CodeKind, u32)> {
        let ranges = self.ranges();
        match (row < self.hidden()).then(|| ranges.locate(row as usize))? {
            (NodeKind::Visit, _) => None,
            (NodeKind::Code(kind), id) => Some((kind, id as u32)),
        }
    }
}

/// How samples become examples for one model.
#[derive(Debug, Clone, Copy)]
pub struct Encoding<'a> {
    /// Which row of the embedding belongs to which code.
    pub rows: EmbeddingRows,
    /// What P is filled with.
    pub prior: &'a Prior,
    /// How P is filled.
    pub settings: &'a PriorSettings,
}

impl Encoding<'_> {
    /// A sample in numbers.
    pub fn example(&self, sample: &Sample<'_>) -> Example {
        self.examples(std::slice::from_ref(sample)).swap_remove(0)
    }

    /// Samples in numbers. An encounter that several of them see becomes one visit, which they share.
    pub fn examples(&self, samples: &[Sample<'_>]) -> Vec<Example> {
        let mut shared = FxHashMap::default();
        samples.iter().map(|sample| self.sharing(sample, &mut shared)).collect()
    }

    /// A sample in numbers, with the visits of encounters that others have seen already, by their addresses.
    fn sharing(&self, sample: &Sample<'_>, shared: &mut FxHashMap<*const Encounter, Arc<Visit>>) -> Example {
        let labels = sample.encounter().labels.clone();
        if let Some(bag) = sample.bag() {
            return Example::of(self.visit(&bag, None, false)).with_labels(labels);
        }
        let mut visit =
            |encounter: &Encounter, hidden: Option<(CodeKind, usize)>| match (hidden, sample.has_history()) {
                (None, true) => {
                    let visit = || Arc::new(self.visit(encounter, None, sample.was_counted()));
                    Arc::clone(shared.entry(std::ptr::from_ref(encounter)).or_insert_with(visit))
                }
                _ => Arc::new(self.visit(encounter, hidden, sample.was_counted())),
            };
        let own = visit(sample.encounter(), sample.hidden_position());
        let mut steps = Vec::new();
        if sample.has_history() {
            let seen: Vec<&Encounter> = std::iter::once(sample.encounter()).chain(sample.history()).collect();
            for (at, encounter) in seen.iter().enumerate() {
                let between = |earlier: &&Encounter| Some(encounter.start? - earlier.start?);
                let since = time_bucket(seen.get(at + 1).and_then(between));
                let ago = time_bucket(sample.time().zip(encounter.start).map(|(asked, start)| asked - start));
                let visit = if at == 0 { Arc::clone(&own) } else { visit(encounter, None) };
                steps.push(Step { visit, since, ago });
            }
        }
        Example { visit: own, labels, steps }
    }

    /// An encounter in numbers, with the code of a kind at a position hidden; whether it was counted in what
    /// was learned by counting.
    fn visit(&self, encounter: &Encounter, hidden: Option<(CodeKind, usize)>, counted: bool) -> Visit {
        let diagnosis = hidden.filter(|(kind, _)| *kind == CodeKind::Diagnosis).map(|(_, position)| position);
        let explained =
            self.prior.account().map(|account| self.explained(account, encounter, diagnosis, counted));
        let rule = self.settings.hidden;
        let hidden = hidden.map(|(kind, position)| Hidden { kind, position, rule });
        let settings = MatrixSettings { scalar: self.settings.scalar, cells: self.settings.cells, hidden };
        let links = explained.as_ref().map(|explained| &explained.links);
        let matrix = self.prior.matrix_of(encounter, &settings, links);
        Visit { explained, ..Visit::with_matrix(encounter, self.rows, &settings, &matrix) }
    }

    /// What an account says of an encounter whose diagnosis at a position is hidden.
    fn explained(
        &self,
        account: &Account,
        encounter: &Encounter,
        hidden: Option<usize>,
        counted: bool,
    ) -> Explained {
        // A network that has the links as P makes no use of the clues, which take longer.
        let asked = hidden.filter(|_| self.settings.cells != Cells::Posterior);
        let (links, clues) = match asked {
            Some(hidden) => account.guesses(encounter, hidden),
            None => (account.links(encounter, hidden, counted), Vec::new()),
        };
        let label = |pair: &_| Links::place(encounter, *pair).map_or(0.0, |place| links.orders[place]);
        let labels = account.labels().iter().map(label).collect();
        Explained { labels, links, clues }
    }
}

/// An encounter in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Visit {
    /// Which nodes are of which kind.
    pub ranges: NodeRanges,
    /// The row of the embedding table of each node.
    pub ids: Vec<u32>,
    /// The true edges, each once, the visit's included; `None` where they are not known.
    pub edges: Option<Vec<(u32, u32)>>,
    /// A hidden code: its node, and its id.
    pub hidden: Option<(usize, u32)>,
    /// The pairs that M allows.
    pub allowed: Pairs,
    /// P of the allowed pairs.
    pub prior: Vec<f32>,
    /// What was learned of who causes what says of it, if it was learned.
    pub explained: Option<Explained>,
}

/// What an account of who causes what says of an encounter.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Who probably caused what, without a hidden diagnosis.
    pub links: Links,
    /// How probable it is that the two codes which each label is about are connected.
    pub labels: Vec<f32>,
    /// What speaks for each diagnosis as the hidden one; empty where that is not asked.
    pub clues: Vec<f32>,
}

/// What a model is asked about a visit.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// The visit.
    pub visit: Arc<Visit>,
    /// The labels to learn, `None` where one is not known; empty where something else is learned.
    pub labels: Vec<Option<bool>>,
    /// With history: the visit and those before it, the latest first. Empty without.
    pub steps: Vec<Step>,
}

/// One of a subject's visits, as an example looks back on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The visit. Examples of one subject share it.
    pub visit: Arc<Visit>,
    /// The bucket of the time since the visit before it.
    pub since: u32,
    /// The bucket of the time from its beginning to the question.
    pub ago: u32,
}

impl Visit {
    /// Makes one.
    pub fn new(encounter: &Encounter, rows: EmbeddingRows, prior: &Prior, settings: &MatrixSettings) -> Self {
        let matrix = prior.matrix(encounter, settings);
        Visit::with_matrix(encounter, rows, settings, &matrix)
    }

    /// One with this P.
    fn with_matrix(
        encounter: &Encounter,
        rows: EmbeddingRows,
        settings: &MatrixSettings,
        matrix: &[f32],
    ) -> Self {
        let ranges = NodeRanges::of(encounter);
        let mut ids = rows.of(encounter);
        let hidden = settings.hidden.map(|hidden| {
            let node = ranges.range(hidden.kind).start + hidden.position;
            ids[node] = rows.hidden();
            (node, encounter.codes[hidden.kind][hidden.position])
        });
        let edges = graph::edges(encounter)
            .map(|edges| edges.map(|(cause, effect)| (cause as u32, effect as u32)).collect());
        Visit::from_parts(ranges, ids, edges, matrix, hidden)
    }

    /// Puts one together. `prior` is P, row after row.
    pub fn from_parts(
        ranges: NodeRanges,
        ids: Vec<u32>,
        edges: Option<Vec<(u32, u32)>>,
        prior: &[f32],
        hidden: Option<(usize, u32)>,
    ) -> Self {
        let allowed = ranges.pairs();
        let mut compact = vec![0.0; allowed.len()];
        allowed.compact(prior, &mut compact);
        Visit { ranges, ids, edges, hidden, allowed, prior: compact, explained: None }
    }

    /// The true edges.
    ///
    /// # Panics
    /// If they are not known: models and heads that need them are refused where there are none.
    pub(crate) fn known_edges(&self) -> &[(u32, u32)] {
        self.edges.as_ref().expect("the edges of every visit whose edges are needed are known")
    }

    /// The nodes of a kind.
    pub fn range(&self, kind: CodeKind) -> Range<usize> {
        self.ranges.range(kind)
    }

    /// How many nodes it has.
    pub fn nodes(&self) -> usize {
        self.ids.len()
    }
}

impl Example {
    /// One of an encounter without history.
    pub fn new(encounter: &Encounter, rows: EmbeddingRows, prior: &Prior, settings: &MatrixSettings) -> Self {
        Example::of(Visit::new(encounter, rows, prior, settings)).with_labels(encounter.labels.clone())
    }

    /// One of a visit without history and labels.
    pub fn of(visit: Visit) -> Self {
        Example { visit: Arc::new(visit), labels: Vec::new(), steps: Vec::new() }
    }

    /// The same with labels to learn.
    pub fn with_labels(self, labels: Vec<Option<bool>>) -> Self {
        Example { labels, ..self }
    }

    /// The visits that a model sees, its own first.
    pub fn visits(&self) -> impl Iterator<Item = &Arc<Visit>> {
        std::iter::once(&self.visit).chain(self.steps.iter().skip(1).map(|step| &step.visit))
    }

    /// How many nodes its own visit has.
    pub fn nodes(&self) -> usize {
        self.visit.nodes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_mix_along_the_pairs_that_the_mask_allows() {
        for context in [0, 2] {
            let ranges = NodeRanges::new(PerKind { context, diagnosis: 2, treatment: 3, lab: 2 });
            let len = ranges.len();
            let visit = Visit::from_parts(ranges, vec![0; len], None, &vec![1.0; len * len], None);
            let mut cells = vec![0.0; len * len];
            visit.allowed.expand(&visit.prior, &mut cells);
            for (cell, allowed) in cells.into_iter().enumerate() {
                assert_eq!(allowed > 0.0, ranges.allowed(cell / len, cell % len), "cell {cell}");
            }
        }
    }

    #[test]
    fn rows_of_the_embedding_are_ordered_like_nodes() {
        let rows = EmbeddingRows::new(PerKind { diagnosis: 3, treatment: 2, lab: 1, ..PerKind::default() });
        assert_eq!((rows.hidden(), rows.count()), (7, 8));
        for (row, code) in
            [(0, None), (1, Some((CodeKind::Diagnosis, 0))), (5, Some((CodeKind::Treatment, 1))), (7, None)]
        {
            assert_eq!(rows.code_at(row), code);
            assert!(code.is_none_or(|(kind, id)| rows.code(kind, id) == row));
        }
        let rows = EmbeddingRows::new(PerKind { context: 2, ..rows.vocabulary });
        assert_eq!((rows.code(CodeKind::Context, 1), rows.code(CodeKind::Diagnosis, 0)), (2, 3));
    }
}
