//! Attention with one or several heads (Equation 2), for Transformer and GCT:
//!
//! ```text
//! A = softmax(Q K' / sqrt(d) + M),   mixed = A V
//! ```
//!
//! | paper | here | shape |
//! |---|---|---|
//! | W_Q, W_K, W_V | `blocks.j.query_key_value` | [width, 3 columns] |
//! | W_V, where there is no attention | `blocks.j.value` | [width, columns] |
//! | | `blocks.j.join`, with several heads side by side | [width, width] |
//!
//! Columns are as many as the width, or with heads that are added, so many times the width. Those of the
//! queries come first, head after head, then those of the keys, then those of the values. The paper has one
//! head; several heads, the sigmoid and directed attention are options of the authors' code. Deviation from
//! it: heads that stand side by side share the width among them, where theirs are each as wide as the model.

use gct_kernels::Number;
use gct_kernels::engine::{Attend, Columns, DivergenceTerm, Engine, Linear, Reach};
use gct_kernels::pairs;
use gct_kernels::weights::Dense;
use serde::{Deserialize, Serialize};

use super::block::Projection;
use super::config::check_whole;
use super::frozen::{Freezer, times_transposed};
use crate::error::{Error, Result};
use crate::parameters::Parameters;

/// How nodes attend to each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AttentionConfig {
    /// Attentions side by side.
    pub heads: usize,
    /// How they come together again.
    pub join: Join,
    /// What makes weights of scores.
    pub normalizer: Normalizer,
    /// Whether nodes look only away from the visit, so that everything gathers in it.
    pub directed: bool,
}

/// How several heads come together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// Side by side, each with its share of the width, and then through a matrix.
    #[default]
    Concat,
    /// Added, each as wide as the model.
    Sum,
}

/// What makes weights of scores.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Normalizer {
    /// Weights of a row sum to 1.
    #[default]
    Softmax,
    /// Every weight is between 0 and 1.
    Sigmoid,
}

impl Default for AttentionConfig {
    fn default() -> Self {
        AttentionConfig {
            heads: 1,
            join: Join::default(),
            normalizer: Normalizer::default(),
            directed: false,
        }
    }
}

impl AttentionConfig {
    pub(super) fn check(&self, width: usize) -> Result<()> {
        check_whole("attention.heads", self.heads, 64)?;
        if self.join == Join::Concat && !width.is_multiple_of(self.heads) {
            let allowed = format!("a number that divides the width, {width}");
            return Err(Error::setting("attention.heads", self.heads, &allowed));
        }
        Ok(())
    }

    fn head_width(&self, width: usize) -> usize {
        match self.join {
            Join::Concat => width / self.heads,
            Join::Sum => width,
        }
    }
}

/// The attention of one block, or its values alone.
#[derive(Clone)]
pub(super) struct Heads {
    projection: Projection,
    keys: Option<Keys>,
    join: Option<Dense>,
    config: AttentionConfig,
    width: usize,
}

/// What queries are held against.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Columns of the projection.
    Projected,
    /// The nodes themselves: the query has been through the matrix of the keys too.
    Nodes,
}

impl Heads {
    /// Queries, keys and values of the block of this name; without attention, values alone.
    pub(super) fn new(
        name: &str,
        width: usize,
        has_attention: bool,
        config: &AttentionConfig,
        parameters: &mut Parameters,
    ) -> Self {
        let columns = config.heads * config.head_width(width);
        let projection = match has_attention {
            true => parameters.matrix(&format!("{name}.query_key_value"), width, 3 * columns),
            false => parameters.matrix(&format!("{name}.value"), width, columns),
        };
        let (projection, keys) = (Projection::Matrix(projection), has_attention.then_some(Keys::Projected));
        let joins = config.heads > 1 && config.join == Join::Concat;
        let join = joins.then(|| parameters.matrix(&format!("{name}.join"), columns, width));
        Heads { projection, keys, join, config: config.clone(), width }
    }

    /// Has products made beforehand; see `frozen`. `of_embedding` are nodes as they come; without `attends`,
    /// values are all that is wanted of them.
    pub(super) fn freeze<T: Number>(
        &mut self,
        of_embedding: bool,
        attends: bool,
        freezer: &mut Freezer<'_, T>,
    ) {
        let Projection::Matrix(matrix) = self.projection else { return };
        let (heads, width) = (self.config.heads, self.config.head_width(self.width));
        let part = |part: usize, head: usize| {
            let first = (part * heads + head) * width;
            freezer.columns(matrix, first..first + width)
        };
        let values = self.values_part();
        self.keys = self.keys.filter(|_| attends);
        let mut matrices: Vec<Vec<T>> = match self.keys {
            None => Vec::new(),
            // One product instead of two only if it is no wider than one of them.
            Some(_) if width == self.width => {
                self.keys = Some(Keys::Nodes);
                (0..heads).map(|head| times_transposed(width, &part(0, head), &part(1, head))).collect()
            }
            Some(_) => (0..2 * heads).map(|index| part(index / heads, index % heads)).collect(),
        };
        matrices.extend((0..heads).map(|head| part(values, head)));
        self.projection = freezer.projection(of_embedding, &matrices);
    }

    pub(super) fn has_attention(&self) -> bool {
        self.keys.is_some()
    }

    /// Queries, keys and values of nodes. `ids` are their rows of the embedding.
    pub(super) fn project<E: Engine>(&self, engine: &mut E, ids: &[u32], x: &E::Matrix) -> E::Matrix {
        self.projection.of(engine, ids, x)
    }

    /// Which part of the projection the values are.
    fn values_part(&self) -> usize {
        match self.keys {
            None => 0,
            Some(Keys::Nodes) => 1,
            Some(Keys::Projected) => 2,
        }
    }

    fn columns<'a, M>(&self, projected: &'a M, part: usize, head: usize) -> Columns<'a, M> {
        let width = self.config.head_width(self.width);
        Columns { matrix: projected, first: (part * self.config.heads + head) * width, width }
    }

    /// The attention of each head among nodes `x`, over those within reach. `bias` is added to the scores;
    /// `before` are those of the block before, with the weight of the divergence from them.
    pub(super) fn attend<E: Engine>(
        &self,
        engine: &mut E,
        x: &E::Matrix,
        projected: &E::Matrix,
        bias: Option<&E::Attention>,
        before: Option<(&[E::Attention], f64)>,
        reach: Reach,
    ) -> Vec<E::Attention> {
        let scale = 1.0 / (self.config.head_width(self.width) as f64).sqrt();
        let normalizer = match self.config.normalizer {
            Normalizer::Softmax => pairs::Normalizer::Softmax,
            Normalizer::Sigmoid => pairs::Normalizer::Sigmoid,
        };
        (0..self.config.heads)
            .map(|head| {
                let divergence =
                    before.map(|(before, weight)| DivergenceTerm { before: &before[head], weight });
                let query = self.columns(projected, 0, head);
                let key = match self.keys {
                    Some(Keys::Nodes) => Columns { matrix: x, first: 0, width: self.width },
                    _ => self.columns(projected, 1, head),
                };
                engine.attend(query, key, Attend { scale, bias, normalizer, divergence, reach })
            })
            .collect()
    }

    /// The values of nodes within reach, mixed by each head's attention.
    pub(super) fn mix<E: Engine>(
        &self,
        engine: &mut E,
        attentions: &[E::Attention],
        projected: &E::Matrix,
        reach: Reach,
    ) -> E::Matrix {
        let values = self.values_part();
        let mut mixed: Vec<E::Matrix> = (attentions.iter().enumerate())
            .map(|(head, attention)| engine.mix(attention, self.columns(projected, values, head), reach))
            .collect();
        if let Some(join) = self.join {
            let all = engine.side_by_side(&mixed);
            return engine.linear(&all, Linear::plain(join));
        }
        let first = mixed.remove(0);
        mixed.iter().fold(first, |sum, other| engine.add(&sum, other))
    }
}
