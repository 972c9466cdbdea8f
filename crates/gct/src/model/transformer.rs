//! Transformer encoder with one head and no positions (Equation 2):
//!
//! ```text
//! C(j) = MLP(softmax(Q(j) K(j)' / sqrt(d)) V(j))
//! ```
//!
//! | paper | here | shape |
//! |---|---|---|
//! | W_Q, W_K, W_V | `blocks.j.query_key_value` | [width, 3 width] |

use gct_kernels::Number;
use gct_kernels::tape::{Columns, Linear, Matrix, Tape};
use gct_kernels::weights::Dense;
use serde::{Deserialize, Serialize};

use super::block::{Dropouts, Mlp};
use super::parameters::Parameters;
use super::{Nodes, Pass, check_whole};
use crate::error::Result;

/// Settings, with the paper's defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransformerConfig {
    /// Numbers per node.
    pub width: usize,
    /// Blocks.
    pub blocks: usize,
    /// Rates of dropout.
    pub dropout: Dropouts,
}

impl Default for TransformerConfig {
    fn default() -> Self {
        TransformerConfig { width: 128, blocks: 3, dropout: Dropouts::default() }
    }
}

impl TransformerConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_whole("blocks", self.blocks, 100)?;
        self.dropout.check()
    }
}

pub(super) struct Transformer {
    blocks: Vec<(Dense, Mlp)>,
    width: usize,
}

impl Transformer {
    pub(super) fn new(config: &TransformerConfig, parameters: &mut Parameters) -> Self {
        let width = config.width;
        let block = |number: usize| {
            let name = format!("blocks.{number}.query_key_value");
            let projection = parameters.matrix(&name, width, 3 * width);
            (projection, Mlp::new(number, width, config.dropout, parameters))
        };
        Transformer { blocks: (0..config.blocks).map(block).collect(), width }
    }

    pub(super) fn forward<T: Number>(&self, tape: &mut Tape<'_, T>, mut x: Matrix, pass: Pass) -> Nodes {
        let width = self.width;
        let mut attentions = Vec::new();
        for (projection, mlp) in &self.blocks {
            let projected = tape.linear(x, Linear { weight: *projection, bias: None, dropout: None });
            let part = |at: usize| Columns { matrix: projected, first: at * width, width };
            let attention = tape.attend(part(0), part(1), 1.0 / (width as f64).sqrt(), None);
            attentions.push(attention);
            let mixed = tape.mix(attention, part(2));
            x = mlp.forward(tape, x, mixed, pass);
        }
        let visits = tape.select(x, tape.first_rows());
        Nodes { all: x, visits, attentions }
    }
}
