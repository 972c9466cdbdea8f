//! Models are written once, forward, in these operations. Two engines play them: `Tape`, which is fast on a
//! processor, and one of plain tensor operations for any device, in a crate of its own, that the first is
//! checked against.
//!
//! A matrix has one row per node, graph after graph, or only the rows that a `Reach` takes in. Beside graphs
//! there may be sequences: graphs whose nodes are steps in time, the newest first. A matrix can have a row per
//! step just as well, and what works on the nodes of graphs works on the steps of sequences.

use crate::pairs::Normalizer;
use crate::rows::{Activation, Dropout};
use crate::weights::{Dense, Vector};

/// The nodes of each graph that are at most so many hops along its pairs away from its first node. Nodes are
/// ordered by that distance, so these are always the first ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reach(usize);

impl Reach {
    /// The first node.
    pub const FIRST: Reach = Reach(0);

    /// Every node.
    pub const ALL: Reach = Reach(usize::MAX);

    /// These nodes and those so many hops further away.
    pub fn further(self, hops: usize) -> Reach {
        Reach(self.0.saturating_add(hops))
    }

    /// How many hops.
    pub fn hops(self) -> usize {
        self.0
    }
}

/// What the rows of a matrix stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// The nodes of graphs.
    Nodes,
    /// The steps of sequences.
    Steps,
}

/// Which rows a matrix has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// What they stand for.
    pub axis: Axis,
    /// Which of these are there.
    pub reach: Reach,
}

impl Extent {
    /// Nodes within reach.
    pub fn nodes(reach: Reach) -> Self {
        Extent { axis: Axis::Nodes, reach }
    }

    /// Steps within reach.
    pub fn steps(reach: Reach) -> Self {
        Extent { axis: Axis::Steps, reach }
    }

    /// The same, but within another reach.
    pub fn within(self, reach: Reach) -> Self {
        Extent { reach, ..self }
    }
}

/// Some columns of a matrix, or all. A matrix of which only some are used may be used for nothing else, and
/// each column once.
#[derive(Debug)]
pub struct Columns<'a, M> {
    /// Which matrix.
    pub matrix: &'a M,
    /// The first column.
    pub first: usize,
    /// How many.
    pub width: usize,
}

impl<M> Clone for Columns<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for Columns<'_, M> {}

/// A linear layer with what follows it.
#[derive(Debug, Clone, Copy)]
pub struct Linear {
    /// The matrix.
    pub weight: Dense,
    /// What is added, and what is done with the sum.
    pub bias: Option<(Vector, Activation)>,
    /// What is dropped of that; without a bias, nothing is.
    pub dropout: Option<Dropout>,
}

impl Linear {
    /// A layer that is nothing but its matrix.
    pub fn plain(weight: Dense) -> Self {
        Linear { weight, bias: None, dropout: None }
    }
}

/// A gated recurrent unit, as PyTorch's `nn.GRU` has it.
#[derive(Debug, Clone, Copy)]
pub struct Recurrent {
    /// From the state to what it contributes to the gates: reset, update and new, side by side.
    pub weight: Dense,
    /// What is added to that.
    pub bias: Vector,
}

/// A LayerNorm.
#[derive(Debug, Clone, Copy)]
pub struct Norm {
    /// Its gain.
    pub gain: Vector,
    /// Its bias.
    pub bias: Vector,
    /// What keeps its quotient finite.
    pub epsilon: f64,
}

/// How scores become an attention.
#[derive(Debug)]
pub struct Attend<'a, A> {
    /// What scores are multiplied with.
    pub scale: f64,
    /// What is added to them then: something given, not computed.
    pub bias: Option<&'a A>,
    /// What is done with the sum.
    pub normalizer: Normalizer,
    /// The term of the loss that holds it near another attention.
    pub divergence: Option<DivergenceTerm<'a, A>>,
    /// Who attends.
    pub reach: Reach,
}

/// The KL divergence of an attention from the one before it, as a term of the loss that holds it near.
#[derive(Debug)]
pub struct DivergenceTerm<'a, A> {
    /// The attention before it. One that was computed may be before one other at most.
    pub before: &'a A,
    /// The weight, in the loss, of the sum over rows of the divergence between the two. The same along a
    /// chain.
    pub weight: f64,
}

/// Edge reconstruction's scale and biases among the parameters, as [`Decoder`](crate::loss::Decoder) has
/// them.
#[derive(Debug, Clone, Copy)]
pub struct DecoderParameters {
    /// What inner products are multiplied with ...
    pub scale: Vector,
    /// ... and what is added, to make a logit.
    pub bias: Vector,
}

/// A graph whose edges are to be found.
#[derive(Debug, Clone, Copy)]
pub struct Connected<'a> {
    /// The sizes of its groups of nodes.
    pub sizes: &'a [usize],
    /// Its edges, each once.
    pub edges: &'a [(u32, u32)],
}

/// Operations on the nodes of a batch of graphs, and on the steps of sequences. Losses add `weight` times what they return to what is
/// minimised.
pub trait Engine {
    /// A matrix.
    type Matrix: Clone;

    /// Weights between the nodes of each graph.
    type Attention: Clone;

    /// A row of the table for every id.
    fn embed(&mut self, table: Vector, width: usize, ids: &[u32]) -> Self::Matrix;

    /// x W, with bias, activation and dropout.
    fn linear(&mut self, x: &Self::Matrix, layer: Linear) -> Self::Matrix;

    /// LayerNorm(a + b).
    fn add_norm(&mut self, a: &Self::Matrix, b: &Self::Matrix, norm: Norm) -> Self::Matrix;

    /// max(x, 0).
    fn relu(&mut self, x: &Self::Matrix) -> Self::Matrix;

    /// a + b.
    fn add(&mut self, a: &Self::Matrix, b: &Self::Matrix) -> Self::Matrix;

    /// a * b, element by element.
    fn multiply(&mut self, a: &Self::Matrix, b: &Self::Matrix) -> Self::Matrix;

    /// The columns of one, then those of the next.
    fn side_by_side(&mut self, parts: &[Self::Matrix]) -> Self::Matrix;

    /// An attention between nodes that is given: the pair numbers of all graphs, one after the other.
    fn given(&mut self, pairs: &[f32]) -> Self::Attention;

    /// The attention of queries to keys.
    fn attend(
        &mut self,
        query: Columns<'_, Self::Matrix>,
        key: Columns<'_, Self::Matrix>,
        how: Attend<'_, Self::Attention>,
    ) -> Self::Attention;

    /// Every node within reach takes the weighted sum of those it attends to.
    fn mix(
        &mut self,
        attention: &Self::Attention,
        x: Columns<'_, Self::Matrix>,
        reach: Reach,
    ) -> Self::Matrix;

    /// The rows of the nodes within reach.
    fn within(&mut self, x: &Self::Matrix, reach: Reach) -> Self::Matrix;

    /// One row per graph: the sum over its nodes.
    fn sum(&mut self, x: &Self::Matrix) -> Self::Matrix;

    /// The rows of some nodes, each given by its graph and its index there.
    fn select(&mut self, x: &Self::Matrix, nodes: &[(usize, usize)]) -> Self::Matrix;

    /// The rows of all steps, sequence after sequence, each given by its row of x: mostly that of a graph of
    /// which x has one row. A row may be that of several steps.
    fn steps(&mut self, x: &Self::Matrix, graphs: &[usize]) -> Self::Matrix;

    /// One row per sequence: the state of a gated recurrent unit after it went from the oldest step, with
    /// zeros before it, to the newest. x has what each step contributes to the gates reset, update and new,
    /// side by side.
    fn gru(&mut self, x: &Self::Matrix, layer: Recurrent) -> Self::Matrix;

    /// Each step with the `size` - 1 older ones beside it, the newest first; zeros for those that there are
    /// not.
    fn windows(&mut self, x: &Self::Matrix, size: usize) -> Self::Matrix;

    /// One row per sequence: the largest number of each column. Of equal ones the newest has the gradient.
    fn largest(&mut self, x: &Self::Matrix) -> Self::Matrix;

    /// Cross entropy of "is there an edge", summed over all ordered pairs of different nodes. Without a
    /// decoder, inner products are logits.
    fn edge_loss(
        &mut self,
        z: &Self::Matrix,
        decoder: Option<DecoderParameters>,
        graphs: &[Connected<'_>],
        weight: f64,
    ) -> f64;

    /// Cross entropy of labels, summed; row after row, `None` is left out. Targets are moved towards one half
    /// by the share `smoothing` of the way. `positives` is what a positive of each column counts, beside 1
    /// for a negative; empty where all count alike.
    fn label_loss(
        &mut self,
        logits: &Self::Matrix,
        labels: impl Iterator<Item = Option<bool>>,
        smoothing: f64,
        positives: &[f64],
        weight: f64,
    ) -> f64;

    /// Cross entropy of one class per row, summed. The share `smoothing` of each target is spread evenly over
    /// all classes.
    fn class_loss(
        &mut self,
        logits: &Self::Matrix,
        classes: impl Iterator<Item = usize>,
        smoothing: f64,
        weight: f64,
    ) -> f64;

    /// The sum of all divergences between attentions and those before them, not weighted.
    fn divergence(&mut self) -> f64;
}
