//! An encounter as a graph: which nodes it has, which pairs may be connected (the paper's mask M), which are,
//! and what a model says about them.
//!
//! Nodes are ordered visit, context, diagnoses, treatments, labs; node 0 is the visit. A matrix over nodes is
//! stored row after row, so cell (i, j) is at `i * len + j`.
//!
//! Everything about the kinds of nodes stands here and in [`record`](crate::record), and no `match` on one
//! has a wildcard arm: the compiler leads whoever adds a kind.

mod structure;

#[cfg(test)]
pub(crate) use structure::tests as structures;
pub use structure::{Layer, LayerKind, Link, Node, Structure};

use std::ops::Range;

use gct_kernels::pairs::Pairs;
use serde::{Deserialize, Serialize};

use crate::record::{CodeKind, Edge, Edges, Encounter, PerKind};

/// The kind of a node: the visit, or a kind of code. In files and on the wire it has its
/// [name](NodeKind::name).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeKind {
    /// The encounter itself.
    Visit,
    /// A code of the encounter.
    #[serde(untagged)]
    Code(CodeKind),
}

impl NodeKind {
    /// All kinds, from the visit down.
    pub const ALL: [NodeKind; 1 + CodeKind::ALL.len()] = [
        NodeKind::Visit,
        NodeKind::Code(CodeKind::Context),
        NodeKind::Code(CodeKind::Diagnosis),
        NodeKind::Code(CodeKind::Treatment),
        NodeKind::Code(CodeKind::Lab),
    ];

    /// Its name in files, on the wire and in messages.
    pub fn name(self) -> &'static str {
        match self {
            NodeKind::Visit => "visit",
            NodeKind::Code(kind) => kind.name(),
        }
    }

    /// Its index in [`NodeKind::ALL`].
    pub fn index(self) -> usize {
        match self {
            NodeKind::Visit => 0,
            NodeKind::Code(kind) => 1 + kind as usize,
        }
    }

    /// Whether M connects nodes of the two kinds.
    pub(crate) fn is_next_to(self, other: NodeKind) -> bool {
        self.parent() == Some(other) || other.parent() == Some(self)
    }

    /// The kind that M connects it with, towards the visit.
    fn parent(self) -> Option<NodeKind> {
        match self {
            NodeKind::Visit => None,
            NodeKind::Code(CodeKind::Context | CodeKind::Diagnosis) => Some(NodeKind::Visit),
            NodeKind::Code(CodeKind::Treatment) => Some(NodeKind::Code(CodeKind::Diagnosis)),
            NodeKind::Code(CodeKind::Lab) => Some(NodeKind::Code(CodeKind::Treatment)),
        }
    }
}

/// Two nodes; of an edge, the cause first.
pub type NodePair = (usize, usize);

/// Which nodes are of which kind: the visit, then the codes of each kind. The rows of an embedding are
/// ordered alike, as if there were an encounter with every code of the vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeRanges {
    /// How many nodes of each kind there are, in the order of [`NodeKind::ALL`].
    sizes: [usize; NodeKind::ALL.len()],
}

impl NodeRanges {
    /// A visit with so many codes of each kind.
    pub fn new(codes: PerKind<usize>) -> Self {
        let size = |kind: NodeKind| match kind {
            NodeKind::Visit => 1,
            NodeKind::Code(kind) => codes[kind],
        };
        NodeRanges { sizes: NodeKind::ALL.map(size) }
    }

    /// The nodes of an encounter.
    pub fn of(encounter: &Encounter) -> Self {
        NodeRanges::new(PerKind::from_fn(|kind| encounter.codes[kind].len()))
    }

    /// How many nodes of each kind there are, in the order of [`NodeKind::ALL`].
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// The pairs that M allows, as models mix along them.
    pub(crate) fn pairs(&self) -> Pairs {
        let parents = NodeKind::ALL.map(|kind| kind.parent().map(NodeKind::index));
        Pairs::tree(&self.sizes, &parents)
    }

    /// How many nodes there are, with the visit.
    #[allow(clippy::len_without_is_empty)] // There is always the visit.
    pub fn len(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The nodes of one kind of code.
    pub fn range(&self, kind: CodeKind) -> Range<usize> {
        let index = NodeKind::Code(kind).index();
        let start = self.sizes[..index].iter().sum();
        start..start + self.sizes[index]
    }

    /// The kind of a node, and its index among those of this kind.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn locate(&self, node: usize) -> (NodeKind, usize) {
        let mut index = node;
        for (kind, size) in NodeKind::ALL.into_iter().zip(self.sizes) {
            if index < size {
                return (kind, index);
            }
            index -= size;
        }
        panic!("node {node} of {}", self.len());
    }

    /// Whether M allows the pair: visit-context, visit-diagnosis, diagnosis-treatment, treatment-lab, both
    /// ways, and a node with itself.
    pub fn allowed(&self, i: usize, j: usize) -> bool {
        let [(a, _), (b, _)] = [i, j].map(|node| self.locate(node));
        i == j || a.is_next_to(b)
    }
}

/// The true edges between nodes, each once, cause first; `None` where the source does not know them.
pub fn edges(encounter: &Encounter) -> Option<impl Iterator<Item = NodePair>> {
    let nodes = NodeRanges::of(encounter);
    let known = encounter.edges.as_ref()?;
    let [context, diagnoses, treatments, labs] = CodeKind::ALL.map(|kind| nodes.range(kind));
    let (first_diagnosis, first_treatment, first_lab) = (diagnoses.start, treatments.start, labs.start);
    let visit = context.chain(diagnoses).map(|code| (0, code));
    let diagnosis_treatment = known.diagnosis_treatment.iter().map(move |edge| {
        (first_diagnosis + usize::from(edge.cause), first_treatment + usize::from(edge.effect))
    });
    let treatment_lab = known
        .treatment_lab
        .iter()
        .map(move |edge| (first_treatment + usize::from(edge.cause), first_lab + usize::from(edge.effect)));
    Some(visit.chain(diagnosis_treatment).chain(treatment_lab))
}

/// The true adjacency matrix A, symmetric, with a zero diagonal.
pub fn adjacency(encounter: &Encounter) -> Option<Vec<bool>> {
    let len = NodeRanges::of(encounter).len();
    let mut matrix = vec![false; len * len];
    for (i, j) in edges(encounter)? {
        matrix[i * len + j] = true;
        matrix[j * len + i] = true;
    }
    Some(matrix)
}

/// The pairs of so many nodes, each once: (0, 1), (0, 2), ..., (1, 2), ....
pub fn pairs(nodes: usize) -> impl Iterator<Item = NodePair> {
    (0..nodes).flat_map(move |i| (i + 1..nodes).map(move |j| (i, j)))
}

/// The code of a node; `None` for the visit.
pub fn code_of(encounter: &Encounter, node: usize) -> Option<(CodeKind, u32)> {
    match NodeRanges::of(encounter).locate(node) {
        (NodeKind::Visit, _) => None,
        (NodeKind::Code(kind), index) => Some((kind, encounter.codes[kind][index])),
    }
}

/// What becomes of a node when others are left out: its index without them, or `None` if it is one of them.
pub fn node_without(node: usize, left_out: &[usize]) -> Option<usize> {
    let before = left_out.iter().filter(|other| **other < node).count();
    (!left_out.contains(&node)).then(|| node - before)
}

/// The encounter as if some of its codes had never been recorded: without them and their edges. Codes are
/// named by their nodes.
pub fn without(encounter: &Encounter, left_out: &[usize]) -> Encounter {
    let nodes = NodeRanges::of(encounter);
    let codes = PerKind::from_fn(|kind| {
        let codes = nodes.range(kind).zip(&encounter.codes[kind]);
        codes.filter(|(node, _)| !left_out.contains(node)).map(|(_, code)| *code).collect()
    });
    let remaining = NodeRanges::new(PerKind::from_fn(|kind| Vec::len(&codes[kind])));
    let position = |kind: CodeKind, position: u16| {
        let node = node_without(nodes.range(kind).start + usize::from(position), left_out)?;
        Some((node - remaining.range(kind).start) as u16)
    };
    let moved = |edges: &[Edge], causes: CodeKind, effects: CodeKind| -> Vec<Edge> {
        let edge = |edge: &Edge| {
            Some(Edge { cause: position(causes, edge.cause)?, effect: position(effects, edge.effect)? })
        };
        edges.iter().filter_map(edge).collect()
    };
    let edges = encounter.edges.as_ref().map(|edges| Edges {
        diagnosis_treatment: moved(&edges.diagnosis_treatment, CodeKind::Diagnosis, CodeKind::Treatment),
        treatment_lab: moved(&edges.treatment_lab, CodeKind::Treatment, CodeKind::Lab),
    });
    Encounter {
        id: encounter.id.clone(),
        subject: encounter.subject.clone(),
        labels: encounter.labels.clone(),
        codes,
        edges,
        ..*encounter
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The visit (0), two diagnoses (1, 2), two treatments (3, 4), one lab (5); both diagnoses ordered
    /// treatment 4, which measured the lab; treatment 3 is nobody's.
    fn encounter() -> Encounter {
        Encounter {
            edges: Some(Edges {
                diagnosis_treatment: vec![Edge { cause: 0, effect: 1 }, Edge { cause: 1, effect: 1 }],
                treatment_lab: vec![Edge { cause: 1, effect: 0 }],
            }),
            ..Encounter::new(PerKind {
                diagnosis: vec![3, 7],
                treatment: vec![0, 9],
                lab: vec![4],
                ..PerKind::default()
            })
        }
    }

    #[test]
    fn kinds_have_the_names_of_files() {
        for (index, kind) in NodeKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.index(), index);
            let json = serde_json::to_value(kind).unwrap();
            assert_eq!(json, kind.name());
            assert_eq!(serde_json::from_value::<NodeKind>(json).unwrap(), kind);
        }
        assert!(serde_json::from_str::<NodeKind>("\"medication\"").is_err());
        for kind in LayerKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
    }

    #[test]
    fn nodes_are_ordered_by_kind() {
        let ranges = NodeRanges::of(&encounter());
        assert_eq!((ranges.sizes(), ranges.len()), (&[1, 0, 2, 2, 1][..], 6));
        assert_eq!(CodeKind::ALL.map(|kind| ranges.range(kind)), [1..1, 1..3, 3..5, 5..6]);
        assert_eq!(ranges.locate(0), (NodeKind::Visit, 0));
        assert_eq!(ranges.locate(4), (NodeKind::Code(CodeKind::Treatment), 1));
        assert_eq!(code_of(&encounter(), 4), Some((CodeKind::Treatment, 9)));
    }

    #[test]
    fn the_mask_allows_neighbouring_kinds_and_self() {
        let nodes = NodeRanges::of(&encounter());
        let rows: Vec<String> = (0..nodes.len())
            .map(|i| (0..nodes.len()).map(|j| if nodes.allowed(i, j) { '#' } else { '.' }).collect())
            .collect();
        assert_eq!(rows, ["###...", "##.##.", "#.###.", ".###.#", ".##.##", "...###"]);
    }

    #[test]
    fn context_is_connected_with_the_visit_alone() {
        let codes = PerKind { context: vec![2, 5], ..encounter().codes };
        let encounter = Encounter { codes, ..encounter() };
        let nodes = NodeRanges::of(&encounter);
        assert_eq!(code_of(&encounter, 2), Some((CodeKind::Context, 5)));
        let rows: Vec<String> = (0..nodes.len())
            .map(|i| (0..nodes.len()).map(|j| if nodes.allowed(i, j) { '#' } else { '.' }).collect())
            .collect();
        assert_eq!(rows[..4], ["#####...", "##......", "#.#.....", "#..#.##."]);
        assert_eq!(edges(&encounter).unwrap().filter(|(i, _)| *i == 0).count(), 4);
        assert!(edges(&encounter).unwrap().all(|(i, j)| nodes.allowed(i, j)));
    }

    #[test]
    fn an_encounter_without_a_code_has_the_edges_of_the_others() {
        let whole = encounter();
        assert_eq!(without(&whole, &[]), whole);
        // Without treatment 3, which is nobody's; without the first diagnosis; without both and the lab.
        let edge = |cause, effect| Edge { cause, effect };
        for (left_out, treatments, labs) in [
            (&[3][..], vec![edge(0, 0), edge(1, 0)], vec![edge(0, 0)]),
            (&[1], vec![edge(0, 1)], vec![edge(1, 0)]),
            (&[1, 3, 5], vec![edge(0, 0)], vec![]),
            (&[4], vec![], vec![]),
        ] {
            let rest = without(&whole, left_out);
            let edges = rest.edges.as_ref().unwrap();
            assert_eq!((&edges.diagnosis_treatment, &edges.treatment_lab), (&treatments, &labs));
            assert_eq!(NodeRanges::of(&rest).len(), 6 - left_out.len());
            for node in (0..6).filter(|node| !left_out.contains(node)) {
                let moved = node_without(node, left_out).unwrap();
                assert_eq!(code_of(&rest, moved), code_of(&whole, node), "node {node}");
            }
            assert!(left_out.iter().all(|node| node_without(*node, left_out).is_none()));
        }
    }

    #[test]
    fn adjacency_is_the_edges_both_ways() {
        let matrix = adjacency(&encounter()).unwrap();
        let rows: Vec<String> = matrix
            .chunks(6)
            .map(|row| row.iter().map(|&edge| if edge { '#' } else { '.' }).collect())
            .collect();
        assert_eq!(rows, [".##...", "#...#.", "#...#.", "......", ".##..#", "....#."]);
        assert_eq!(adjacency(&Encounter { edges: None, ..encounter() }), None);
    }

    #[test]
    fn every_pair_of_nodes_comes_once() {
        assert_eq!(pairs(3).collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(pairs(1).count(), 0);
    }

    #[test]
    fn every_true_edge_is_allowed() {
        let encounter = encounter();
        let nodes = NodeRanges::of(&encounter);
        assert!(edges(&encounter).unwrap().all(|(i, j)| nodes.allowed(i, j)));
    }
}
