//! An encounter as a graph: which nodes it has, which pairs may be connected (the paper's mask M), and which are.
//!
//! Nodes are ordered visit, diagnoses, treatments, labs; node 0 is the visit. A matrix over nodes is stored row
//! after row, so cell (i, j) is at `i * len + j`.

use std::ops::Range;

use crate::record::{CodeKind, Encounter, PerKind};

/// The nodes of one encounter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nodes {
    counts: PerKind<usize>,
}

impl Nodes {
    /// The nodes of an encounter.
    pub fn of(encounter: &Encounter) -> Self {
        Nodes { counts: PerKind::from_fn(|kind| encounter.codes[kind].len()) }
    }

    /// How many there are, with the visit.
    #[allow(clippy::len_without_is_empty)] // There is always the visit.
    pub fn len(&self) -> usize {
        1 + self.counts.diagnosis + self.counts.treatment + self.counts.lab
    }

    /// The nodes of one kind.
    pub fn range(&self, kind: CodeKind) -> Range<usize> {
        let start = match kind {
            CodeKind::Diagnosis => 1,
            CodeKind::Treatment => 1 + self.counts.diagnosis,
            CodeKind::Lab => 1 + self.counts.diagnosis + self.counts.treatment,
        };
        start..start + self.counts[kind]
    }

    /// How far below the visit a node is: 0 for the visit, 3 for a lab.
    fn depth(&self, node: usize) -> usize {
        assert!(node < self.len(), "node {node} of {}", self.len());
        CodeKind::ALL.iter().take_while(|&&kind| node >= self.range(kind).start).count()
    }

    /// Whether M allows the pair: visit-diagnosis, diagnosis-treatment, treatment-lab, both ways, and a node with itself.
    pub fn allowed(&self, i: usize, j: usize) -> bool {
        i == j || self.depth(i).abs_diff(self.depth(j)) == 1
    }
}

/// The true edges between nodes, each once, cause first; `None` where the source does not know them.
pub fn edges(encounter: &Encounter) -> Option<impl Iterator<Item = (usize, usize)>> {
    let nodes = Nodes::of(encounter);
    let known = encounter.edges.as_ref()?;
    let [diagnoses, treatments, labs] = CodeKind::ALL.map(|kind| nodes.range(kind));
    let (first_diagnosis, first_treatment, first_lab) = (diagnoses.start, treatments.start, labs.start);
    let visit = diagnoses.map(|diagnosis| (0, diagnosis));
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
    let len = Nodes::of(encounter).len();
    let mut matrix = vec![false; len * len];
    for (i, j) in edges(encounter)? {
        matrix[i * len + j] = true;
        matrix[j * len + i] = true;
    }
    Some(matrix)
}

/// The pairs of so many nodes, each once: (0, 1), (0, 2), ..., (1, 2), ....
pub fn pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |i| (i + 1..nodes).map(move |j| (i, j)))
}

/// The code of a node; `None` for the visit.
pub fn code_of(encounter: &Encounter, node: usize) -> Option<(CodeKind, u32)> {
    let nodes = Nodes::of(encounter);
    let kind = CodeKind::ALL.into_iter().find(|kind| nodes.range(*kind).contains(&node))?;
    Some((kind, encounter.codes[kind][node - nodes.range(kind).start]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Edge, Edges, EncounterId, SubjectId};

    /// The visit (0), two diagnoses (1, 2), two treatments (3, 4), one lab (5); both diagnoses ordered treatment 4,
    /// which measured the lab; treatment 3 is nobody's.
    fn encounter() -> Encounter {
        Encounter {
            id: EncounterId::new("e"),
            subject: SubjectId::new("s"),
            start: None,
            prediction_time: None,
            part: None,
            codes: PerKind { diagnosis: vec![3, 7], treatment: vec![0, 9], lab: vec![4] },
            edges: Some(Edges {
                diagnosis_treatment: vec![Edge { cause: 0, effect: 1 }, Edge { cause: 1, effect: 1 }],
                treatment_lab: vec![Edge { cause: 1, effect: 0 }],
            }),
            labels: vec![],
        }
    }

    #[test]
    fn the_mask_allows_neighbouring_kinds_and_self() {
        let nodes = Nodes::of(&encounter());
        let rows: Vec<String> = (0..nodes.len())
            .map(|i| (0..nodes.len()).map(|j| if nodes.allowed(i, j) { '#' } else { '.' }).collect())
            .collect();
        assert_eq!(rows, ["###...", "##.##.", "#.###.", ".###.#", ".##.##", "...###"]);
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
        let nodes = Nodes::of(&encounter);
        assert!(edges(&encounter).unwrap().all(|(i, j)| nodes.allowed(i, j)));
    }
}
