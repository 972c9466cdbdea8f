//! Graph Convolutional Transformer (Section 3.3):
//!
//! ```text
//! A(j) = softmax(Q(j) K(j)' / sqrt(d) + M)
//! C(1) = MLP(P C(0) W_V),   C(j) = MLP(A(j) C(j-1) W_V)  for j > 1
//! L = L_pred + lambda sum over j of KL(A(j-1) || A(j)),   A(0) = P
//! ```
//!
//! P can also guide all blocks alike, as a bias of their scores, which is ours and not the paper's: see
//! [`PriorRole`].
//!
//! Its parameters are those of `attention` and `block`; M is the pairs that are laid out at all, and connects
//! context with the visit alone. Deviations:
//! the regulariser has two readings, see [`Regularizer`]; with directed attention, P keeps only the pairs
//! that look away from the visit, and its rows are normalised again, where the authors' code leaves it whole.

use gct_kernels::Number;
use gct_kernels::engine::{Engine, Reach};
use serde::{Deserialize, Serialize};

use super::attention::{AttentionConfig, Heads};
use super::block::{Dropouts, Mlp, block_name};
use super::config::{check_weight, check_whole};
use super::frozen::Freezer;
use super::{NodeStates, Pass};
use crate::error::Result;
use crate::parameters::Parameters;
use crate::question::NodeVectors;

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
    /// What P does.
    pub prior: PriorRole,
    /// How nodes attend to each other.
    pub attention: AttentionConfig,
}

/// How P guides attention.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorRole {
    /// The paper's: it stands in for the attention of the first block.
    #[default]
    Replaces,
    /// Its logarithm is added to the scores of every block, the first one included.
    Biases,
}

/// What a probability of P is at least, as a bias: attention can overcome that.
const LEAST: f32 = 1e-3;

/// The two readings of the regulariser.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Regularizer {
    /// The authors' code: block 1 has no attention of its own; the mean over the other blocks of KL(before ||
    /// this), each the mean over nodes and heads.
    #[default]
    Released,
    /// The paper's formula: block 1 computes attention without using it; the sum over all blocks, each the
    /// mean over nodes and heads.
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
            prior: PriorRole::default(),
            attention: AttentionConfig::default(),
        }
    }
}

impl GctConfig {
    /// Whether a block mixes by its own attention, not by P.
    fn attends(&self, block: usize) -> bool {
        block > 0 || self.prior == PriorRole::Biases
    }

    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_whole("blocks", self.blocks, 100)?;
        check_weight("regularization", self.regularization)?;
        self.attention.check(self.width)?;
        self.dropout.check()
    }
}

#[derive(Clone)]
pub(super) struct Gct {
    blocks: Vec<(Heads, Mlp)>,
    config: GctConfig,
}

impl Gct {
    pub(super) fn new(config: &GctConfig, parameters: &mut Parameters) -> Self {
        let width = config.width;
        let block = |number: usize| {
            let name = block_name(number);
            let has_attention = config.attends(number) || config.regularizer == Regularizer::Paper;
            let heads = Heads::new(&name, width, has_attention, &config.attention, parameters);
            (heads, Mlp::new(&name, number, width, config.dropout, parameters))
        };
        Gct { blocks: (0..config.blocks).map(block).collect(), config: config.clone() }
    }

    /// See `frozen`. Where a block mixes with P, it does not matter what it would attend to.
    pub(super) fn freeze<T: Number>(&mut self, freezer: &mut Freezer<'_, T>) {
        for (number, (heads, _)) in self.blocks.iter_mut().enumerate() {
            heads.freeze(number == 0, self.config.attends(number), freezer);
        }
    }

    pub(super) fn forward<E: Engine>(
        &self,
        engine: &mut E,
        ids: &[u32],
        mut x: E::Matrix,
        prior: &[f32],
        wanted: Reach,
        pass: Pass,
    ) -> NodeStates<E> {
        let bias = (self.config.prior == PriorRole::Biases).then(|| {
            let logs: Vec<f32> = prior.iter().map(|p| p.max(LEAST).ln()).collect();
            engine.given(&logs)
        });
        let prior = vec![engine.given(prior); self.config.attention.heads];
        let (mut before, mut attentions) = (prior.clone(), Vec::new());
        for (number, (heads, mlp)) in self.blocks.iter().enumerate() {
            // The regulariser wants the attention of all nodes, and so all nodes before the last block.
            let left = self.blocks.len() - 1 - number;
            let reach = if pass.regularizes && left > 0 { Reach::ALL } else { wanted.further(left) };
            let projected = heads.project(engine, ids, &x);
            let mut mixing = &prior;
            let attends = self.config.attends(number);
            if heads.has_attention() && (pass.regularizes || attends) {
                let (divergence, attending) = match pass.regularizes {
                    true => (Some((&before[..], self.weight(pass))), Reach::ALL),
                    false => (None, reach),
                };
                before = heads.attend(engine, &x, &projected, bias.as_ref(), divergence, attending);
                if attends {
                    mixing = &before;
                }
            }
            let mixed = heads.mix(engine, mixing, &projected, reach);
            attentions.push(mixing.clone());
            x = mlp.forward(engine, &x, &mixed, reach, pass);
        }
        let visits = engine.within(&x, Reach::FIRST);
        NodeStates { vectors: NodeVectors { nodes: x, visits }, attentions }
    }

    /// What a sum of divergences over nodes, blocks and heads is multiplied with to make the regulariser.
    fn share(&self, pass: Pass) -> f64 {
        let blocks = match self.config.regularizer {
            Regularizer::Released => {
                let attending = (0..self.config.blocks).filter(|block| self.config.attends(*block)).count();
                attending.max(1) as f64
            }
            Regularizer::Paper => 1.0,
        };
        1.0 / (pass.batch_nodes as f64 * blocks * self.config.attention.heads as f64)
    }

    fn weight(&self, pass: Pass) -> f64 {
        self.config.regularization * self.share(pass)
    }

    pub(super) fn regularizer(&self, divergence: f64, pass: Pass) -> f64 {
        divergence * self.share(pass)
    }
}
