//! What a model says about the nodes of an encounter: the parts that pictures, pages and programs share.

use std::borrow::Cow;

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::{NodeKind, NodePair, pairs};

/// A node of an encounter, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its kind.
    pub kind: NodeKind,
    /// Its code, of any length; `visit` for the visit.
    pub code: String,
    /// What the code means, where the source says.
    pub description: Option<String>,
    /// Whether it was hidden from the model.
    pub hidden: bool,
}

impl Node {
    /// The visit.
    pub fn visit() -> Self {
        let kind = NodeKind::Visit;
        Node { kind, code: kind.name().into(), description: None, hidden: false }
    }

    /// Its code, with a remark if it was hidden.
    pub fn label(&self) -> Cow<'_, str> {
        match self.hidden {
            true => Cow::Owned(format!("{} (hidden)", self.code)),
            false => Cow::Borrowed(&self.code),
        }
    }

    /// The same, and what the code means.
    pub(crate) fn full_label(&self) -> String {
        match &self.description {
            Some(description) => format!("{}: {description}", self.label()),
            None => self.label().into_owned(),
        }
    }
}

/// What the numbers of a layer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerKind {
    /// P, counted on the training split.
    Prior,
    /// The attention of a block.
    Attention,
    /// How probable an edge is.
    Probability,
}

impl LayerKind {
    /// All kinds.
    pub const ALL: [LayerKind; 3] = [LayerKind::Prior, LayerKind::Attention, LayerKind::Probability];

    /// Its name in files and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            LayerKind::Prior => "prior",
            LayerKind::Attention => "attention",
            LayerKind::Probability => "probability",
        }
    }
}

/// What one part of a model says about pairs of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// What the part is called: `P`, `block 2`.
    pub name: String,
    /// What its numbers are.
    pub kind: LayerKind,
    /// A square matrix, row after row: cell (i, j) is what node i gives to node j, from 0 to 1.
    pub matrix: Vec<f32>,
}

/// Two nodes that a model connects: by attention, which one gives to the other, or by an edge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// The node that gives attention; of an edge, the one nearer to the visit.
    pub from: usize,
    /// The other one.
    pub to: usize,
    /// How strongly, from 0 to 1.
    pub weight: f64,
}

/// An encounter as a graph, and what a model makes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// The nodes; those of a kind keep their order in a picture.
    pub nodes: Vec<Node>,
    /// The parts of the model, from its input up; none if the model does not mix nodes.
    pub layers: Vec<Layer>,
    /// The true edges, cause first; `None` where they are not known.
    pub edges: Option<Vec<NodePair>>,
}

impl Structure {
    /// The node that was hidden from the model.
    pub fn hidden(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.hidden)
    }

    /// The strongest links of a layer, the strongest first: what one node gives to another. What the other
    /// gives back is a link of its own, and may be much less: a treatment of many labs gives little to each.
    pub fn links(&self, layer: usize, most: usize) -> Vec<Link> {
        let (nodes, matrix) = (self.nodes.len(), &self.layers[layer].matrix);
        let weaker =
            |a: &Link, b: &Link| b.weight.total_cmp(&a.weight).then((a.from, a.to).cmp(&(b.from, b.to)));
        pairs(nodes)
            .flat_map(|(i, j)| [(i, j), (j, i)])
            .map(|(from, to)| Link { from, to, weight: f64::from(matrix[from * nodes + to]) })
            .filter(|link| link.weight > 0.0)
            .k_smallest_by(most, weaker)
            .collect()
    }

    /// Whether two nodes are connected, where that is known.
    pub fn is_edge(&self, i: usize, j: usize) -> Option<bool> {
        let edges = self.edges.as_ref()?;
        Some(edges.iter().any(|edge| [(i, j), (j, i)].contains(edge)))
    }

    /// What one node gives to another; `None` if it is NaN or infinite, so that it is not taken for zero.
    pub(crate) fn attention(&self, layer: usize, from: usize, to: usize) -> Option<f64> {
        let cell = self.layers[layer].matrix[from * self.nodes.len() + to];
        cell.is_finite().then(|| f64::from(cell).clamp(0.0, 1.0))
    }

    /// Checks that matrices are square over the nodes and that edges are between them.
    ///
    /// # Panics
    /// If that is not so.
    pub(crate) fn check(&self) {
        let nodes = self.nodes.len();
        for Layer { name, matrix, .. } in &self.layers {
            assert_eq!(matrix.len(), nodes * nodes, "attention of {name} between {nodes} nodes");
        }
        for &(cause, effect) in self.edges.iter().flatten() {
            assert!(cause.max(effect) < nodes, "edge ({cause}, {effect}) among {nodes} nodes");
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Node 0 is the visit; then codes of each kind but context, named by kind and index. Nobody attends to
    /// anybody.
    pub(crate) fn encounter(counts: [usize; 3], layers: &[&str]) -> Structure {
        let mut nodes = vec![Node::visit()];
        for ((kind, letter), count) in NodeKind::ALL[2..].iter().zip(["D", "T", "L"]).zip(counts) {
            nodes.extend((0..count).map(|index| Node {
                kind: *kind,
                code: format!("{letter}_{index}"),
                ..Node::visit()
            }));
        }
        let silence = vec![0.0; nodes.len() * nodes.len()];
        let layer =
            |name: &&str| Layer { name: (*name).into(), kind: LayerKind::Attention, matrix: silence.clone() };
        Structure { layers: layers.iter().map(layer).collect(), nodes, edges: None }
    }

    /// Visit, one diagnosis, two treatments; the diagnosis gives 0.5 to the visit, 0.4 to T_0 and 0.1 to T_1.
    pub(crate) fn small() -> Structure {
        let mut structure = encounter([1, 2, 0], &["P"]);
        structure.layers[0].matrix[4..8].copy_from_slice(&[0.5, 0.0, 0.4, 0.1]);
        structure
    }

    #[test]
    fn edges_have_no_direction() {
        let structure = Structure { edges: Some(vec![(0, 1)]), ..encounter([2, 0, 0], &[]) };
        let is_edge = [(0, 1), (1, 0), (0, 2)].map(|(i, j)| structure.is_edge(i, j));
        assert_eq!(is_edge, [Some(true), Some(true), Some(false)]);
        assert_eq!(encounter([2, 0, 0], &[]).is_edge(0, 1), None);
    }

    #[test]
    fn links_have_a_direction_and_the_strongest_come_first() {
        let link = |from, to, weight: f32| Link { from, to, weight: f64::from(weight) };
        let mut structure = small();
        structure.layers[0].matrix[2 * 4 + 1] = 0.2;
        let expected = [link(1, 0, 0.5), link(1, 2, 0.4), link(2, 1, 0.2), link(1, 3, 0.1)];
        assert_eq!(structure.links(0, 9), expected);
        assert_eq!(structure.links(0, 2), expected[..2]);
    }

    #[test]
    fn a_hidden_node_is_marked() {
        let mut structure = small();
        assert_eq!(structure.hidden(), None);
        structure.nodes[1].hidden = true;
        assert_eq!((structure.hidden(), structure.nodes[1].label().as_ref()), (Some(1), "D_0 (hidden)"));
    }

    #[test]
    fn only_numbers_are_attention() {
        let mut structure = encounter([1, 0, 0], &["P"]);
        structure.layers[0].matrix = vec![0.25, f32::NAN, f32::INFINITY, 1.000_000_1];
        let cells = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| structure.attention(0, i, j));
        assert_eq!(cells, [Some(0.25), None, None, Some(1.0)]);
    }

    #[test]
    #[should_panic(expected = "edge (0, 2) among 2 nodes")]
    fn an_edge_needs_its_nodes() {
        Structure { edges: Some(vec![(0, 2)]), ..encounter([1, 0, 0], &[]) }.check();
    }
}
