//! One `Example` per encounter: rows of the embedding table, edges between nodes, the matrix P. Nodes are ordered visit,
//! diagnoses, treatments, labs, as in [`graph`](crate::graph).

use std::ops::Range;

use gct_kernels::pairs::Pairs;
use serde::{Deserialize, Serialize};

use crate::graph::{self, Nodes};
use crate::prior::{Hidden, MatrixSettings, Prior, PriorSettings};
use crate::record::{CodeKind, Encounter, PerKind};
use crate::sample::Sample;

/// Which row of the embedding table belongs to which code: the visit, then the codes of each kind, then one for a code that
/// is hidden.
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

    /// The row of a code.
    pub fn code(self, kind: CodeKind, id: u32) -> u32 {
        let PerKind { diagnosis, treatment, .. } = self.vocabulary;
        1 + id
            + match kind {
                CodeKind::Diagnosis => 0,
                CodeKind::Treatment => diagnosis,
                CodeKind::Lab => diagnosis + treatment,
            }
    }

    /// The row of a code that is hidden.
    pub fn hidden(self) -> u32 {
        1 + self.vocabulary.diagnosis + self.vocabulary.treatment + self.vocabulary.lab
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
        let mut id = row.checked_sub(1)?;
        for kind in CodeKind::ALL {
            if id < self.vocabulary[kind] {
                return Some((kind, id));
            }
            id -= self.vocabulary[kind];
        }
        None
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
    /// How many nodes of each kind it has, from the visit down.
    pub sizes: [usize; 4],
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
        let nodes = Nodes::of(encounter);
        let mut ids = vec![EmbeddingRows::VISIT];
        for kind in CodeKind::ALL {
            ids.extend(encounter.codes[kind].iter().map(|&id| rows.code(kind, id)));
        }
        let hidden = settings.hidden.map(|hidden| {
            let node = nodes.range(CodeKind::Diagnosis).start + hidden.position;
            ids[node] = rows.hidden();
            (node, encounter.codes.diagnosis[hidden.position])
        });
        let size = |kind| nodes.range(kind).len();
        let sizes = [1, size(CodeKind::Diagnosis), size(CodeKind::Treatment), size(CodeKind::Lab)];
        let edges = graph::edges(encounter)
            .map(|edges| edges.map(|(cause, effect)| (cause as u32, effect as u32)).collect());
        Example::from_parts(sizes, ids, edges, &prior.matrix(encounter, settings), hidden)
            .with_labels(encounter.labels.clone())
    }

    /// Puts one together. `sizes` are the numbers of nodes of each kind, from the visit down, `prior` is P, row after row.
    pub fn from_parts(
        sizes: [usize; 4],
        ids: Vec<u32>,
        edges: Option<Vec<(u32, u32)>>,
        prior: &[f32],
        hidden: Option<(usize, u32)>,
    ) -> Self {
        let allowed = Pairs::banded(&sizes);
        let mut compact = vec![0.0; allowed.len()];
        allowed.compact(prior, &mut compact);
        Example { sizes, ids, edges, hidden, labels: Vec::new(), allowed, prior: compact }
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
        let [visit, diagnosis, treatment, lab] = self.sizes;
        let (start, size) = match kind {
            CodeKind::Diagnosis => (visit, diagnosis),
            CodeKind::Treatment => (visit + diagnosis, treatment),
            CodeKind::Lab => (visit + diagnosis + treatment, lab),
        };
        start..start + size
    }

    /// How many nodes it has.
    pub fn nodes(&self) -> usize {
        self.ids.len()
    }
}
