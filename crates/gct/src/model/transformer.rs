//! Transformer encoder without positions (Equation 2):
//!
//! ```text
//! C(j) = MLP(softmax(Q(j) K(j)' / sqrt(d)) V(j))
//! ```
//!
//! Its parameters are those of `attention` and `block`. Context is among the nodes, all of which see each
//! other.

use gct_kernels::Number;
use gct_kernels::engine::{Engine, Reach};
use serde::{Deserialize, Serialize};

use super::attention::{AttentionConfig, Heads};
use super::block::{Dropouts, Mlp, block_name};
use super::config::check_whole;
use super::frozen::Freezer;
use super::{NodeStates, Pass};
use crate::error::Result;
use crate::parameters::Parameters;
use crate::question::NodeVectors;

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
    /// How nodes attend to each other.
    pub attention: AttentionConfig,
}

impl Default for TransformerConfig {
    fn default() -> Self {
        TransformerConfig {
            width: 128,
            blocks: 3,
            dropout: Dropouts::default(),
            attention: AttentionConfig::default(),
        }
    }
}

impl TransformerConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_whole("blocks", self.blocks, 100)?;
        self.attention.check(self.width)?;
        self.dropout.check()
    }
}

#[derive(Clone)]
pub(super) struct Transformer {
    blocks: Vec<(Heads, Mlp)>,
}

impl Transformer {
    pub(super) fn new(config: &TransformerConfig, parameters: &mut Parameters) -> Self {
        let width = config.width;
        let block = |number: usize| {
            let name = block_name(number);
            let heads = Heads::new(&name, width, true, &config.attention, parameters);
            (heads, Mlp::new(&name, number, width, config.dropout, parameters))
        };
        Transformer { blocks: (0..config.blocks).map(block).collect() }
    }

    /// See `frozen`.
    pub(super) fn freeze<T: Number>(&mut self, freezer: &mut Freezer<'_, T>) {
        for (number, (heads, _)) in self.blocks.iter_mut().enumerate() {
            heads.freeze(number == 0, true, freezer);
        }
    }

    pub(super) fn forward<E: Engine>(
        &self,
        engine: &mut E,
        ids: &[u32],
        mut x: E::Matrix,
        wanted: Reach,
        pass: Pass,
    ) -> NodeStates<E> {
        let mut attentions = Vec::new();
        for (number, (heads, mlp)) in self.blocks.iter().enumerate() {
            let reach = wanted.further(self.blocks.len() - 1 - number);
            let projected = heads.project(engine, ids, &x);
            let attention = heads.attend(engine, &x, &projected, None, None, reach);
            let mixed = heads.mix(engine, &attention, &projected, reach);
            attentions.push(attention);
            x = mlp.forward(engine, &x, &mixed, reach, pass);
        }
        let visits = engine.within(&x, Reach::FIRST);
        NodeStates { vectors: NodeVectors { nodes: x, visits }, attentions }
    }
}
