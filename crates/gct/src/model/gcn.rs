//! Graph convolution (Equation 1), with the true structure, P, or random weights:
//!
//! ```text
//! C(j) = MLP(D^-1 (A + I) C(j-1) W(j))
//! ```
//!
//! | paper | here | shape |
//! |---|---|---|
//! | W(j) | `blocks.j.value` | [width, width] |

use std::rc::Rc;

use gct_kernels::Number;
use gct_kernels::tape::{Columns, Linear, Matrix, Tape};
use gct_kernels::weights::Dense;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::block::{Dropouts, Mlp};
use super::parameters::Parameters;
use super::{Nodes, Pass, check_whole};
use crate::batch::Example;
use crate::error::Result;

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

pub(super) struct Gcn {
    convolutions: Vec<(Dense, Mlp)>,
    width: usize,
}

impl Gcn {
    pub(super) fn new(config: &GcnConfig, parameters: &mut Parameters) -> Self {
        let width = config.width;
        let convolution = |number: usize| {
            let value = parameters.matrix(&format!("blocks.{number}.value"), width, width);
            (value, Mlp::new(number, width, config.dropout, parameters))
        };
        Gcn { convolutions: (0..config.convolutions).map(convolution).collect(), width }
    }

    pub(super) fn forward<T: Number>(
        &self,
        tape: &mut Tape<'_, T>,
        mut x: Matrix,
        mixing: Rc<Vec<T>>,
        pass: Pass,
    ) -> Nodes {
        let mixing = tape.given(mixing);
        for (value, mlp) in &self.convolutions {
            let values = tape.linear(x, Linear { weight: *value, bias: None, dropout: None });
            let mixed = tape.mix(mixing, Columns { matrix: values, first: 0, width: self.width });
            x = mlp.forward(tape, x, mixed, pass);
        }
        let visits = tape.select(x, tape.first_rows());
        Nodes { all: x, visits, attentions: vec![mixing; self.convolutions.len()] }
    }
}

/// D^-1 (A + I), row after row.
pub(super) fn normalized_adjacency(example: &Example) -> Vec<f32> {
    let nodes = example.nodes();
    let mut matrix = vec![0.0; nodes * nodes];
    let edges = example.edges.as_ref().expect("gcn is refused on data without edges");
    for &(i, j) in edges {
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
pub(super) fn random_weights(example: &Example) -> Vec<f32> {
    let nodes = example.nodes();
    let seed = example
        .ids
        .iter()
        .fold(0u64, |seed, id| (seed ^ u64::from(*id)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut matrix: Vec<f32> = (0..nodes * nodes).map(|_| rng.random()).collect();
    normalize(&mut matrix, nodes);
    matrix
}

fn normalize(matrix: &mut [f32], nodes: usize) {
    for row in matrix.chunks_exact_mut(nodes) {
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|cell| *cell /= sum);
    }
}
