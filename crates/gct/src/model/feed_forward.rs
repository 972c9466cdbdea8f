//! Shallow and Deep: layers on each node, a sum over nodes, and for Deep layers on the sum.
//!
//! ```text
//! x' = LayerNorm(x + dropout(relu(W x + b)))
//! ```
//!
//! The sum is over all nodes, context among them. The number of layers is the paper's, chosen to match the
//! parameters of Transformer and GCT.

use gct_kernels::Number;
use gct_kernels::engine::{Engine, Linear, Norm};
use gct_kernels::rows::Activation;
use gct_kernels::weights::{Dense, Vector};
use serde::{Deserialize, Serialize};

use super::block::{check_rate, dropout, norm};
use super::config::check_whole;
use super::frozen::Freezer;
use super::{NodeStates, Pass};
use crate::error::Result;
use crate::parameters::Parameters;
use crate::question::NodeVectors;

/// Settings of Shallow, with the paper's defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShallowConfig {
    /// Numbers per node.
    pub width: usize,
    /// Layers on each node.
    pub layers: usize,
    /// Rate of dropout after each layer: the paper's MLP dropout.
    pub dropout: f64,
}

impl Default for ShallowConfig {
    fn default() -> Self {
        ShallowConfig { width: 128, layers: 15, dropout: 0.0 }
    }
}

impl ShallowConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_whole("layers", self.layers, 1000)?;
        check_rate("dropout", self.dropout)
    }
}

/// Settings of Deep, with the paper's defaults.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DeepConfig {
    /// Numbers per node, and per visit.
    pub width: usize,
    /// Layers on each node.
    pub layers_before_sum: usize,
    /// Layers on the sum.
    pub layers_after_sum: usize,
    /// Rate of dropout after each layer before the sum: the paper's MLP dropout.
    pub dropout: f64,
    /// Rate of dropout after each layer after the sum: the paper's post-MLP dropout.
    pub post_dropout: f64,
}

impl Default for DeepConfig {
    fn default() -> Self {
        DeepConfig { width: 128, layers_before_sum: 8, layers_after_sum: 7, dropout: 0.0, post_dropout: 0.0 }
    }
}

impl DeepConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_whole("layers_before_sum", self.layers_before_sum, 1000)?;
        check_whole("layers_after_sum", self.layers_after_sum, 1000)?;
        check_rate("dropout", self.dropout)?;
        check_rate("post_dropout", self.post_dropout)
    }
}

#[derive(Clone)]
pub(super) struct FeedForward {
    before: Vec<Layer>,
    after: Vec<Layer>,
}

#[derive(Clone)]
struct Layer {
    weight: Dense,
    bias: Vector,
    norm: Norm,
    dropout: f64,
    number: u32,
}

impl FeedForward {
    pub(super) fn shallow(config: &ShallowConfig, parameters: &mut Parameters) -> Self {
        let layer = |number| Layer::new("layers", [number, 0], config.width, config.dropout, parameters);
        FeedForward { before: (0..config.layers).map(layer).collect(), after: Vec::new() }
    }

    pub(super) fn deep(config: &DeepConfig, parameters: &mut Parameters) -> Self {
        let &DeepConfig { width, layers_before_sum, layers_after_sum, dropout, post_dropout } = config;
        let mut layers = |name: &str, earlier, count, dropout| -> Vec<Layer> {
            (0..count).map(|number| Layer::new(name, [number, earlier], width, dropout, parameters)).collect()
        };
        FeedForward {
            before: layers("before_sum", 0, layers_before_sum, dropout),
            after: layers("after_sum", layers_before_sum, layers_after_sum, post_dropout),
        }
    }

    /// See `frozen`: nodes do not see each other before the sum. Returns what takes the place of the
    /// embedding.
    pub(super) fn freeze<T: Number>(&mut self, freezer: &mut Freezer<'_, T>) -> Vector {
        let layers = std::mem::take(&mut self.before);
        freezer.embedding_through(|tape, x| {
            layers.iter().fold(x, |x, layer| layer.forward(tape, &x, Pass::LOOKING))
        })
    }

    pub(super) fn forward<E: Engine>(&self, engine: &mut E, mut x: E::Matrix, pass: Pass) -> NodeStates<E> {
        for layer in &self.before {
            x = layer.forward(engine, &x, pass);
        }
        let mut visits = engine.sum(&x);
        for layer in &self.after {
            visits = layer.forward(engine, &visits, pass);
        }
        NodeStates { vectors: NodeVectors { nodes: x, visits }, attentions: Vec::new() }
    }
}

impl Layer {
    /// The layer of this number, after so many earlier ones of other names.
    fn new(
        name: &str,
        [number, earlier]: [usize; 2],
        width: usize,
        dropout: f64,
        parameters: &mut Parameters,
    ) -> Self {
        let name = format!("{name}.{number}");
        Layer {
            weight: parameters.last_of_branch(&format!("{name}.weight"), width, width),
            bias: parameters.vector(&format!("{name}.bias"), width, 0.0),
            norm: norm(&format!("{name}.norm"), width, parameters),
            dropout,
            number: (earlier + number) as u32,
        }
    }

    fn forward<E: Engine>(&self, engine: &mut E, x: &E::Matrix, pass: Pass) -> E::Matrix {
        let linear = Linear {
            weight: self.weight,
            bias: Some((self.bias, Activation::Relu)),
            dropout: dropout(pass, self.dropout, self.number, self.weight.outputs),
        };
        let y = engine.linear(x, linear);
        engine.add_norm(x, &y, self.norm)
    }
}
