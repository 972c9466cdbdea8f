//! Graph Convolutional Transformer (Section 3.3):
//!
//! ```text
//! A(j) = softmax(Q(j) K(j)' / sqrt(d) + M)
//! C(1) = MLP(P C(0) W_V),   C(j) = MLP(A(j) C(j-1) W_V)  for j > 1
//! L = L_pred + lambda sum over j of KL(A(j-1) || A(j)),   A(0) = P
//! ```
//!
//! | paper | here | shape |
//! |---|---|---|
//! | W_V of block 1 | `blocks.0.value` | [width, width] |
//! | W_Q, W_K, W_V of a later block | `blocks.j.query_key_value` | [width, 3 width] |
//! | M | the pairs that are laid out at all | |
//!
//! Deviation: the regulariser has two readings, see [`Regularizer`].

use std::rc::Rc;

use gct_kernels::Number;
use gct_kernels::tape::{Columns, Leash, Linear, Matrix, Tape};
use gct_kernels::weights::Dense;
use serde::{Deserialize, Serialize};

use super::block::{Dropouts, Mlp};
use super::parameters::Parameters;
use super::{Nodes, Pass, check_whole};
use crate::error::{Error, Result};

/// Settings, with the paper's defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GctConfig {
    /// Numbers per node.
    pub width: usize,
    /// Blocks; the first mixes with P.
    pub blocks: usize,
    /// Rates of dropout.
    pub dropout: Dropouts,
    /// Lambda: how strongly attention is held near that of the block before.
    pub regularization: f64,
    /// What it is multiplied with.
    pub regularizer: Regularizer,
}

/// The two readings of the regulariser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regularizer {
    /// The authors' code: block 1 has no attention of its own; the mean over the other blocks of KL(before || this), each
    /// the mean over nodes.
    #[default]
    Released,
    /// The paper's formula: block 1 computes attention without using it; the sum over all blocks.
    Paper,
}

impl Default for GctConfig {
    fn default() -> Self {
        GctConfig {
            width: 128,
            blocks: 3,
            dropout: Dropouts::default(),
            regularization: 0.02,
            regularizer: Regularizer::default(),
        }
    }
}

impl GctConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_whole("blocks", self.blocks, 100)?;
        if !(0.0..=1e6).contains(&self.regularization) {
            return Err(Error::setting("regularization", self.regularization, "a number from 0 to 1000000"));
        }
        self.dropout.check()
    }
}

pub(super) struct Gct {
    blocks: Vec<Block>,
    config: GctConfig,
}

struct Block {
    /// Value alone, or query, key and value side by side.
    projection: Dense,
    mlp: Mlp,
}

impl Gct {
    pub(super) fn new(config: &GctConfig, parameters: &mut Parameters) -> Self {
        let width = config.width;
        let block = |number: usize| {
            let projection = if number == 0 && config.regularizer == Regularizer::Released {
                parameters.matrix("blocks.0.value", width, width)
            } else {
                parameters.matrix(&format!("blocks.{number}.query_key_value"), width, 3 * width)
            };
            Block { projection, mlp: Mlp::new(number, width, config.dropout, parameters) }
        };
        Gct { blocks: (0..config.blocks).map(block).collect(), config: config.clone() }
    }

    pub(super) fn forward<T: Number>(
        &self,
        tape: &mut Tape<'_, T>,
        mut x: Matrix,
        prior: Rc<Vec<T>>,
        pass: Pass,
    ) -> Nodes {
        let width = self.config.width;
        let prior = tape.given(prior);
        let (mut before, mut attentions) = (prior, Vec::new());
        for (number, block) in self.blocks.iter().enumerate() {
            let projected = tape.linear(x, Linear { weight: block.projection, bias: None, dropout: None });
            let part = |at: usize| Columns { matrix: projected, first: at * width, width };
            let has_attention = block.projection.outputs > width;
            let mut mixing = prior;
            if has_attention {
                let leash = Leash { before, weight: self.weight(pass) };
                let attention = tape.attend(part(0), part(1), 1.0 / (width as f64).sqrt(), Some(leash));
                before = attention;
                if number > 0 {
                    mixing = attention;
                }
            }
            attentions.push(mixing);
            let mixed = tape.mix(mixing, part(if has_attention { 2 } else { 0 }));
            x = block.mlp.forward(tape, x, mixed, pass);
        }
        let visits = tape.select(x, tape.first_rows());
        Nodes { all: x, visits, attentions }
    }

    /// What a sum of divergences over nodes and blocks is multiplied with to make the regulariser.
    fn share(&self, pass: Pass) -> f64 {
        let blocks = match self.config.regularizer {
            Regularizer::Released => (self.config.blocks - 1).max(1) as f64,
            Regularizer::Paper => 1.0,
        };
        1.0 / (pass.batch_nodes as f64 * blocks)
    }

    fn weight(&self, pass: Pass) -> f64 {
        self.config.regularization * self.share(pass)
    }

    pub(super) fn regularizer(&self, divergence: f64, pass: Pass) -> f64 {
        divergence * self.share(pass)
    }
}
