//! Pictures of what a model looks at and of how it learns: plain data in, the text of an SVG file out.
//!
//! A picture is one file that fetches nothing and runs nothing, and the same data give the same text. Colours
//! are from the palette of Okabe and Ito, which readers with any kind of colour vision can tell apart. Labels
//! that are too long are shortened; the whole label shows when the mouse rests on it.

mod axis;
mod bars;
mod curves;
mod graph;
mod links;
mod page;
mod svg;

pub use bars::bars;
pub use curves::{Line, Series, curves};
pub use graph::{Graph, graph};

use serde::Serialize;

/// The kinds of nodes, from the visit down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The encounter itself.
    Visit,
    /// Why the patient came.
    Diagnosis,
    /// What was ordered for it.
    Treatment,
    /// What a treatment measured.
    Lab,
}

impl Kind {
    /// All kinds, from the visit down.
    pub const ALL: [Kind; 4] = [Kind::Visit, Kind::Diagnosis, Kind::Treatment, Kind::Lab];

    /// What stands over or beside the nodes of a kind.
    fn heading(self) -> &'static str {
        match self {
            Kind::Visit => "visit",
            Kind::Diagnosis => "diagnoses",
            Kind::Treatment => "treatments",
            Kind::Lab => "labs",
        }
    }
}

/// A node of an encounter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its kind.
    pub kind: Kind,
    /// Its code, of any length.
    pub label: String,
    /// What the code means, shown when the mouse rests on the label.
    pub description: Option<String>,
}

impl Node {
    fn full_label(&self) -> String {
        match &self.description {
            Some(description) => format!("{}: {description}", self.label),
            None => self.label.clone(),
        }
    }
}

/// A part of a model that says something about pairs of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// P, which it begins with.
    Prior,
    /// The attention of a block.
    Attention,
    /// How probable it finds an edge.
    Probability,
}

/// Who attends to whom in one part of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// What the part is called: `P`, `block 2`.
    pub name: String,
    /// What it is.
    pub part: Part,
    /// A square matrix, row after row: cell (i, j) is what node i gives to node j, from 0 to 1.
    pub attention: Vec<f32>,
}

/// An encounter as a graph, and what a model makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// The nodes; those of a kind keep their order in a picture.
    pub nodes: Vec<Node>,
    /// The parts of the model, from its input up.
    pub layers: Vec<Layer>,
    /// The true edges, cause first; `None` where they are not known.
    pub edges: Option<Vec<(usize, usize)>>,
}

impl Structure {
    fn check(&self) {
        let nodes = self.nodes.len();
        for Layer { name, attention, .. } in &self.layers {
            assert_eq!(attention.len(), nodes * nodes, "attention of {name} between {nodes} nodes");
        }
        for &(cause, effect) in self.edges.iter().flatten() {
            assert!(cause.max(effect) < nodes, "edge ({cause}, {effect}) among {nodes} nodes");
        }
    }

    /// What one node gives to another; `None` if it is no number, so that it is not taken for zero.
    fn attention(&self, layer: usize, from: usize, to: usize) -> Option<f64> {
        let cell = self.layers[layer].attention[from * self.nodes.len() + to];
        cell.is_finite().then(|| f64::from(cell).clamp(0.0, 1.0))
    }

    fn is_true_edge(&self, a: usize, b: usize) -> bool {
        self.edges.iter().flatten().any(|&edge| edge == (a, b) || edge == (b, a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Node 0 is the visit; then codes of each kind, named by kind and position. Nobody attends to anybody.
    pub(super) fn encounter(counts: [usize; 3], layers: &[&str]) -> Structure {
        let mut nodes = vec![Node { kind: Kind::Visit, label: "visit".into(), description: None }];
        for ((kind, letter), count) in Kind::ALL[1..].iter().zip(["D", "T", "L"]).zip(counts) {
            nodes.extend((0..count).map(|position| Node {
                kind: *kind,
                label: format!("{letter}_{position}"),
                description: None,
            }));
        }
        let silence = vec![0.0; nodes.len() * nodes.len()];
        let layer =
            |name: &&str| Layer { name: (*name).into(), part: Part::Attention, attention: silence.clone() };
        Structure { layers: layers.iter().map(layer).collect(), nodes, edges: None }
    }

    /// Visit, one diagnosis, two treatments; the diagnosis gives 0.5 to the visit, 0.4 to T_0 and 0.1 to T_1.
    pub(super) fn small() -> Structure {
        let mut structure = encounter([1, 2, 0], &["P"]);
        structure.layers[0].attention[4..8].copy_from_slice(&[0.5, 0.0, 0.4, 0.1]);
        structure
    }

    #[test]
    fn edges_have_no_direction() {
        let structure = Structure { edges: Some(vec![(0, 1)]), ..encounter([2, 0, 0], &[]) };
        assert!(structure.is_true_edge(0, 1) && structure.is_true_edge(1, 0));
        assert!(!structure.is_true_edge(0, 2));
    }

    #[test]
    fn only_numbers_are_attention() {
        let mut structure = encounter([1, 0, 0], &["P"]);
        structure.layers[0].attention = vec![0.25, f32::NAN, f32::INFINITY, 1.000_000_1];
        let cells = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| structure.attention(0, i, j));
        assert_eq!(cells, [Some(0.25), None, None, Some(1.0)]);
    }

    #[test]
    #[should_panic(expected = "edge (0, 2) among 2 nodes")]
    fn an_edge_needs_its_nodes() {
        Structure { edges: Some(vec![(0, 2)]), ..encounter([1, 0, 0], &[]) }.check();
    }
}
