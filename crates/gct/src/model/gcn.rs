//! Graph convolution (Equation 1), with the true structure, P, or random weights:
//!
//! ```text
//! C(j) = MLP(D^-1 (A + I) C(j-1) W(j))
//! ```
//!
//! | paper | here | shape |
//! |---|---|---|
//! | W(j) | `blocks.j.value` | [width, width] |
//!
//! Context is a neighbour of the visit alone, in A as in P and among the pairs with random weights.

use gct_kernels::Number;
use gct_kernels::engine::{Columns, Engine, Reach};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::block::{Dropouts, Mlp, Projection, block_name};
use super::config::check_whole;
use super::frozen::Freezer;
use super::{NodeStates, Pass};
use crate::batch::Visit;
use crate::error::Result;
use crate::parameters::Parameters;
use crate::question::NodeVectors;

/// Settings, with the paper's defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GcnConfig {
    /// Numbers per node.
    pub width: usize,
    /// Convolutions.
    pub convolutions: usize,
    /// Rates of dropout.
    pub dropout: Dropouts,
}

impl Default for GcnConfig {
    fn default() -> Self {
        GcnConfig { width: 128, convolutions: 5, dropout: Dropouts::default() }
    }
}

impl GcnConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_whole("convolutions", self.convolutions, 100)?;
        self.dropout.check()
    }
}

#[derive(Clone)]
pub(super) struct Gcn {
    convolutions: Vec<(Projection, Mlp)>,
    width: usize,
}

impl Gcn {
    pub(super) fn new(config: &GcnConfig, parameters: &mut Parameters) -> Self {
        let width = config.width;
        let convolution = |number: usize| {
            let name = block_name(number);
            let value = parameters.matrix(&format!("{name}.value"), width, width);
            (Projection::Matrix(value), Mlp::new(&name, number, width, config.dropout, parameters))
        };
        Gcn { convolutions: (0..config.convolutions).map(convolution).collect(), width }
    }

    /// See `frozen`.
    pub(super) fn freeze<T: Number>(&mut self, freezer: &mut Freezer<'_, T>) {
        let (first, _) = &mut self.convolutions[0];
        if let Projection::Matrix(value) = *first {
            *first = freezer.projection(true, &[freezer.columns(value, 0..self.width)]);
        }
    }

    pub(super) fn forward<E: Engine>(
        &self,
        engine: &mut E,
        ids: &[u32],
        mut x: E::Matrix,
        mixing: &[f32],
        wanted: Reach,
        pass: Pass,
    ) -> NodeStates<E> {
        let mixing = engine.given(mixing);
        for (number, (value, mlp)) in self.convolutions.iter().enumerate() {
            let reach = wanted.further(self.convolutions.len() - 1 - number);
            let values = value.of(engine, ids, &x);
            let mixed = engine.mix(&mixing, Columns { matrix: &values, first: 0, width: self.width }, reach);
            x = mlp.forward(engine, &x, &mixed, reach, pass);
        }
        let attentions = vec![vec![mixing]; self.convolutions.len()];
        let visits = engine.within(&x, Reach::FIRST);
        NodeStates { vectors: NodeVectors { nodes: x, visits }, attentions }
    }
}

/// D^-1 (A + I), row after row.
pub(crate) fn normalized_adjacency(visit: &Visit) -> Vec<f32> {
    let nodes = visit.nodes();
    let mut matrix = vec![0.0; nodes * nodes];
    for &(i, j) in visit.known_edges() {
        matrix[i as usize * nodes + j as usize] = 1.0;
        matrix[j as usize * nodes + i as usize] = 1.0;
    }
    for node in 0..nodes {
        matrix[node * nodes + node] = 1.0;
    }
    normalize(&mut matrix, nodes);
    matrix
}

/// Uniform random numbers with rows that sum to 1: the same for the same codes.
pub(super) fn random_weights(visit: &Visit) -> Vec<f32> {
    let nodes = visit.nodes();
    let seed = visit
        .ids
        .iter()
        .fold(0u64, |seed, id| (seed ^ u64::from(*id)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut matrix: Vec<f32> = (0..nodes * nodes).map(|_| rng.random()).collect();
    normalize(&mut matrix, nodes);
    matrix
}

/// Divides rows by their sums; a row of zeros stays one.
pub(super) fn normalize(matrix: &mut [f32], nodes: usize) {
    for row in matrix.chunks_exact_mut(nodes) {
        let sum: f32 = row.iter().sum();
        if sum > 0.0 {
            row.iter_mut().for_each(|cell| *cell /= sum);
        }
    }
}
