//! One `Example` per encounter: rows of the embedding table, edges between nodes, the matrix P. Nodes are
//! ordered visit, context, diagnoses, treatments, labs, as in [`graph`](crate::graph).

use std::ops::Range;

use gct_kernels::pairs::Pairs;
use serde::{Deserialize, Serialize};

use crate::graph::{self, NodeKind, NodeRanges};
use crate::prior::{Hidden, MatrixSettings, Prior, PriorSettings};
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
    /// The last encounter of a sample in numbers.
    pub fn example(&self, sample: &Sample<'_>) -> Example {
        let hidden = sample.hidden_position().map(|position| Hidden { position, rule: self.settings.hidden });
        let settings = MatrixSettings { scalar: self.settings.scalar, cells: self.settings.cells, hidden };
        Example::new(sample.encounter(), self.rows, self.prior, &settings)
    }
}

/// An encounter in numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Which nodes are of which kind.
    pub ranges: NodeRanges,
    /// The row of the embedding table of each node.
    pub ids: Vec<u32>,
    /// The true edges, each once, the visit's included; `None` where they are not known.
    pub edges: Option<Vec<(u32, u32)>>,
    /// A hidden diagnosis: its node, and its id.
    pub hidden: Option<(usize, u32)>,
    /// The labels to learn, `None` where one is not known; empty where something else is learned.
    pub labels: Vec<Option<bool>>,
    /// The pairs that M allows.
    pub allowed: Pairs,
    /// P of the allowed pairs.
    pub prior: Vec<f32>,
}

impl Example {
    /// Makes one.
    pub fn new(encounter: &Encounter, rows: EmbeddingRows, prior: &Prior, settings: &MatrixSettings) -> Self {
        let ranges = NodeRanges::of(encounter);
        let mut ids = rows.of(encounter);
        let hidden = settings.hidden.map(|hidden| {
            let node = ranges.range(CodeKind::Diagnosis).start + hidden.position;
            ids[node] = rows.hidden();
            (node, encounter.codes.diagnosis[hidden.position])
        });
        let edges = graph::edges(encounter)
            .map(|edges| edges.map(|(cause, effect)| (cause as u32, effect as u32)).collect());
        Example::from_parts(ranges, ids, edges, &prior.matrix(encounter, settings), hidden)
            .with_labels(encounter.labels.clone())
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
        Example { ranges, ids, edges, hidden, labels: Vec::new(), allowed, prior: compact }
    }

    /// The same with labels to learn.
    pub fn with_labels(self, labels: Vec<Option<bool>>) -> Self {
        Example { labels, ..self }
    }

    /// The true edges.
    ///
    /// # Panics
    /// If they are not known: models and heads that need them are refused where there are none.
    pub(crate) fn known_edges(&self) -> &[(u32, u32)] {
        self.edges.as_ref().expect("the edges of every example that needs them are known")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_mix_along_the_pairs_that_the_mask_allows() {
        for context in [0, 2] {
            let ranges = NodeRanges::new(PerKind { context, diagnosis: 2, treatment: 3, lab: 2 });
            let len = ranges.len();
            let example = Example::from_parts(ranges, vec![0; len], None, &vec![1.0; len * len], None);
            let mut cells = vec![0.0; len * len];
            example.allowed.expand(&example.prior, &mut cells);
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
