//! The block that GCN, Transformer and GCT share, after its mixing:
//!
//! ```text
//! u = LayerNorm(x + mixed)
//! x' = LayerNorm(u + dropout(W2 dropout(relu(W1 u + b1)) + b2))
//! ```
//!
//! The paper calls it MLP; residuals, normalisation and dropout are those of the authors' code.

use gct_kernels::engine::{Engine, Linear, Norm, Reach};
use gct_kernels::rows::{Activation, Dropout};
use gct_kernels::weights::{Dense, Vector};
use serde::{Deserialize, Serialize};

use super::Pass;
use crate::error::{Error, Result};
use crate::parameters::Parameters;

/// What LayerNorm adds to a variance.
const NORM_EPSILON: f64 = 1e-12;

/// The paper's two rates of dropout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropouts {
    /// After the hidden layer of an MLP.
    pub mlp: f64,
    /// After the MLP.
    pub post_mlp: f64,
}

impl Dropouts {
    pub(super) fn check(&self) -> Result<()> {
        for (name, rate) in [("dropout.mlp", self.mlp), ("dropout.post_mlp", self.post_mlp)] {
            check_rate(name, rate)?;
        }
        Ok(())
    }
}

pub(super) fn check_rate(name: &str, rate: f64) -> Result<()> {
    if (0.0..1.0).contains(&rate) {
        return Ok(());
    }
    Err(Error::setting(name, rate, "a number from 0 to less than 1"))
}

/// Makes a [`Norm`].
pub(super) fn norm(name: &str, width: usize, parameters: &mut Parameters) -> Norm {
    Norm {
        gain: parameters.vector(&format!("{name}.gain"), width, 1.0),
        bias: parameters.vector(&format!("{name}.bias"), width, 0.0),
        epsilon: NORM_EPSILON,
    }
}

/// Dropout of one layer: `layer` tells it apart from the others of the model.
pub(super) fn dropout(pass: Pass, rate: f64, layer: u32, width: usize) -> Option<Dropout> {
    let key = pass.dropout_key.filter(|_| rate > 0.0)?;
    Some(Dropout::new(rate, key.wrapping_add(layer.wrapping_mul(0x9e37_79b9)), pass.first_node * width))
}

/// What makes values of nodes, and queries and keys.
#[derive(Clone, Copy)]
pub(super) enum Projection {
    /// A matrix.
    Matrix(Dense),
    /// In the first block of a frozen model: what a matrix makes of each row of the embedding.
    Table {
        /// It.
        table: Vector,
        /// How many numbers each row has.
        columns: usize,
    },
}

impl Projection {
    /// That of nodes `x`. `ids` are their rows of the embedding.
    pub(super) fn of<E: Engine>(self, engine: &mut E, ids: &[u32], x: &E::Matrix) -> E::Matrix {
        match self {
            Projection::Matrix(weight) => engine.linear(x, Linear::plain(weight)),
            Projection::Table { table, columns } => engine.embed(table, columns, ids),
        }
    }
}

/// The name of a block among parameters.
pub(super) fn block_name(number: usize) -> String {
    format!("blocks.{number}")
}

/// What follows the mixing.
#[derive(Clone)]
pub(super) struct Mlp {
    mixed_norm: Norm,
    hidden: (Dense, Vector),
    out: (Dense, Vector),
    out_norm: Norm,
    dropouts: Dropouts,
    number: u32,
    width: usize,
}

impl Mlp {
    /// That of the block of this name and number.
    pub(super) fn new(
        name: &str,
        number: usize,
        width: usize,
        dropouts: Dropouts,
        parameters: &mut Parameters,
    ) -> Self {
        let mixed_norm = norm(&format!("{name}.mixed_norm"), width, parameters);
        let hidden = parameters.matrix(&format!("{name}.hidden.weight"), width, width);
        let hidden = (hidden, parameters.vector(&format!("{name}.hidden.bias"), width, 0.0));
        let out = parameters.last_of_branch(&format!("{name}.out.weight"), width, width);
        let out = (out, parameters.vector(&format!("{name}.out.bias"), width, 0.0));
        let out_norm = norm(&format!("{name}.out_norm"), width, parameters);
        Mlp { mixed_norm, hidden, out, out_norm, dropouts, number: number as u32, width }
    }

    /// The nodes within reach, after what was mixed for them.
    pub(super) fn forward<E: Engine>(
        &self,
        engine: &mut E,
        x: &E::Matrix,
        mixed: &E::Matrix,
        reach: Reach,
        pass: Pass,
    ) -> E::Matrix {
        let x = engine.within(x, reach);
        let u = engine.add_norm(&x, mixed, self.mixed_norm);
        let hidden = Linear {
            weight: self.hidden.0,
            bias: Some((self.hidden.1, Activation::Relu)),
            dropout: dropout(pass, self.dropouts.mlp, 2 * self.number, self.width),
        };
        let out = Linear {
            weight: self.out.0,
            bias: Some((self.out.1, Activation::Identity)),
            dropout: dropout(pass, self.dropouts.post_mlp, 2 * self.number + 1, self.width),
        };
        let hidden = engine.linear(&u, hidden);
        let out = engine.linear(&hidden, out);
        engine.add_norm(&u, &out, self.out_norm)
    }
}
