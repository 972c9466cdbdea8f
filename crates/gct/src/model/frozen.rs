//! A model that has learned, to be asked. It computes the same function with some of its products made
//! beforehand:
//!
//! - Scores Q K' = X W_Q W_K' X', so with heads as wide as the model one product X (W_Q W_K') takes the place
//!   of queries and keys, and the nodes are their own keys.
//! - What depends on a node's code alone is looked up: the projections of the first block, and the layers of
//!   Shallow and Deep before their sum.
//!
//! Results are those of the model to rounding, not to the bit. MiME and Logistic gain nothing and stay as
//! they are.
//!
//! One of a calibrated run calibrates its answers: no other way leads from a run to its logits.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gct_kernels::Number;
use gct_kernels::engine::Engine;
use gct_kernels::gemm::{Into, Left, Right, gemm, pack, pack_transposed, packed_len};
use gct_kernels::tape::{Matrix, Pool, Tape};
use gct_kernels::weights::{Dense, Plan, Vector, Weights};
use rayon::prelude::*;

use super::block::Projection;
use super::chunks::{chunks, even_chunks};
use super::network::{Activations, Layers, Network};
use super::{Config, Model, Outcome};
use crate::batch::Example;
use crate::calibration::Map;
use crate::error::Result;
use crate::history::History;

/// Rows of the embedding that layers are applied to at a time.
const ROWS: usize = 1024;

/// A model that answers and learns no more. It has no parameters of its own, so it cannot be saved.
pub struct Frozen<T> {
    network: Network,
    weights: Weights<T>,
    history: History,
    /// What becomes of the logit of each label; empty where nothing does.
    calibration: Vec<Map>,
}

/// Memory for evaluation, to be used again for the next batch: a pool for each thread, that fits into its
/// cache.
pub struct Scratch<T> {
    pools: Vec<Mutex<Pool<T>>>,
}

impl<T> Default for Scratch<T> {
    fn default() -> Self {
        Scratch { pools: (0..rayon::current_num_threads()).map(|_| Mutex::default()).collect() }
    }
}

impl<T> Scratch<T> {
    /// The pool of this thread.
    fn pool(&self) -> MutexGuard<'_, Pool<T>> {
        let index = rayon::current_thread_index().unwrap_or(0) % self.pools.len();
        self.pools[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Number> Model<T> {
    /// The model as it is now, to be asked. It takes a few milliseconds, for Shallow twenty: make one
    /// for many questions.
    pub fn frozen(&self) -> Frozen<T> {
        let mut network = self.network.clone();
        let mut freezer = Freezer {
            weights: &self.weights,
            embedding: network.embedding,
            width: self.width(),
            plan: self.parameters.plan().clone(),
            values: self.weights.values().to_vec(),
        };
        match &mut network.layers {
            Layers::Gct(gct) => gct.freeze(&mut freezer),
            Layers::Transformer(transformer) => transformer.freeze(&mut freezer),
            Layers::Gcn(gcn) => gcn.freeze(&mut freezer),
            Layers::FeedForward(layers) => network.embedding = layers.freeze(&mut freezer),
            Layers::Mime(_) | Layers::Logistic | Layers::Explainer(_) => {}
        }
        let weights = Weights::new(freezer.plan, freezer.values);
        Frozen { network, weights, history: self.history.clone(), calibration: Vec::new() }
    }
}

impl<T: Number> Frozen<T> {
    /// The settings.
    pub fn config(&self) -> &Config {
        &self.network.config
    }

    /// What it sees of earlier encounters.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Refuses data that lack what the model or its head must be given: see [`Model::check_data`].
    pub(crate) fn check_data(&self, edges_are_known: bool) -> Result<()> {
        self.network.check_data(edges_are_known)
    }

    /// The mean loss of prediction over a batch, without dropout and without the regulariser.
    pub fn evaluate(&self, batch: &[Example], scratch: &Scratch<T>) -> Outcome {
        let pass = self.network.pass(batch, false);
        let play = |chunk: Range<usize>| {
            self.network.play(&self.weights, &batch[chunk], pass, &mut scratch.pool(), None)
        };
        let outcomes: Vec<Outcome> = even_chunks(batch).into_par_iter().map(play).collect();
        Outcome::sum(&outcomes)
    }

    /// What the head says of each example, without dropout: the logits of its labels, of all diagnoses, of
    /// all codes of the hidden one's kind, or of an edge between nodes 0 and 1, 0 and 2, and so on, each pair
    /// once. Those of labels are calibrated, if the run is. On one thread; only the rows that they depend on
    /// are computed.
    ///
    /// # Panics
    /// If a code should be guessed and none is hidden.
    pub fn answers(&self, examples: &[Example], pool: &mut Pool<T>) -> Vec<Vec<T>> {
        let mut answers: Vec<Vec<T>> = chunks(examples, 0..examples.len())
            .flat_map(|chunk| self.network.answers(&self.weights, &examples[chunk], pool))
            .collect();
        if !self.calibration.is_empty() {
            answers.iter_mut().for_each(|logits| self.calibrate(logits));
        }
        answers
    }

    fn calibrate(&self, logits: &mut [T]) {
        for (logit, map) in logits.iter_mut().zip(&self.calibration) {
            *logit = T::of(map.logit(logit.f64() as f32).into());
        }
    }

    /// The vector of the visit of each example, without dropout. On one thread.
    pub fn visits(&self, examples: &[Example], pool: &mut Pool<T>) -> Vec<Vec<T>> {
        chunks(examples, 0..examples.len())
            .flat_map(|chunk| self.network.visits(&self.weights, &examples[chunk], pool))
            .collect()
    }

    /// The vector of all that each example sees of its subject, as the head of a model with history has it,
    /// without dropout. On one thread.
    pub fn subjects(&self, examples: &[Example], pool: &mut Pool<T>) -> Vec<Vec<T>> {
        chunks(examples, 0..examples.len())
            .flat_map(|chunk| self.network.subjects(&self.weights, &examples[chunk], pool))
            .collect()
    }

    /// Gives `look` what was computed on the way of a forward pass: hidden states of the nodes, logits, and
    /// attention of each block.
    pub fn look<R>(&self, examples: &[Example], look: impl FnOnce(&Activations<'_, T>) -> R) -> R {
        self.network.look(&self.weights, examples, look)
    }
}

/// Numbers of a pool that is kept: many times what usual encounters need. One that a very large encounter has
/// made larger is not kept.
const KEPT: usize = 4 << 20;

/// A model for inference and the memory that it works in. A clone is the same one, so it is loaded once for
/// all who use it.
#[derive(Clone)]
pub(crate) struct LoadedModel {
    model: Arc<Frozen<f32>>,
    pools: Arc<Mutex<Vec<Pool<f32>>>>,
}

impl LoadedModel {
    /// The model as it is now, with a map for each of its labels, or none.
    pub(crate) fn new(model: &Model<f32>, calibration: Vec<Map>) -> Self {
        let model = Frozen { calibration, ..model.frozen() };
        LoadedModel { model: Arc::new(model), pools: Arc::default() }
    }

    /// The model.
    pub(crate) fn frozen(&self) -> &Frozen<f32> {
        &self.model
    }

    /// Lends memory to `work`, which others had before.
    pub(crate) fn with_pool<R>(&self, work: impl FnOnce(&mut Pool<f32>) -> R) -> R {
        let free = || self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let mut pool = free().pop().unwrap_or_default();
        let result = work(&mut pool);
        if pool.numbers() <= KEPT {
            free().push(pool);
        }
        result
    }
}

impl fmt::Debug for LoadedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedModel").finish_non_exhaustive()
    }
}

/// Adds to the weights of a model what can be computed beforehand.
pub(super) struct Freezer<'a, T> {
    weights: &'a Weights<T>,
    embedding: Vector,
    width: usize,
    plan: Plan,
    values: Vec<T>,
}

impl<T: Number> Freezer<'_, T> {
    /// Some columns of a matrix of the model, row after row.
    pub(super) fn columns(&self, matrix: Dense, columns: Range<usize>) -> Vec<T> {
        let all = &self.values[matrix.start..][..matrix.inputs * matrix.outputs];
        all.chunks_exact(matrix.outputs).flat_map(|row| &row[columns.clone()]).copied().collect()
    }

    /// Projects nodes with matrices that stand side by side; if the nodes are rows of the embedding still, by
    /// a table.
    pub(super) fn projection(&mut self, of_embedding: bool, matrices: &[Vec<T>]) -> Projection {
        let width = self.width;
        let row = |row: usize| {
            matrices.iter().flat_map(move |matrix| {
                let columns = matrix.len() / width;
                &matrix[row * columns..][..columns]
            })
        };
        let matrix: Vec<T> = (0..width).flat_map(row).copied().collect();
        let columns = matrix.len() / width;
        if !of_embedding {
            let dense = self.plan.dense(width, columns);
            self.values.extend(matrix);
            return Projection::Matrix(dense);
        }
        let mut packed = vec![T::ZERO; packed_len(width, columns)];
        pack(&matrix, width, columns, &mut packed);
        let embedding = self.embedding.of(self.weights.values());
        let rows = embedding.len() / width;
        let mut table = vec![T::ZERO; rows * columns];
        let (left, right) = (Left::rows(embedding, width), Right::packed(&packed, width));
        gemm([rows, columns, width], left, right, &mut table, columns, Into::Set);
        Projection::Table { table: self.table(table), columns }
    }

    /// What `layers` make of each row of the embedding.
    pub(super) fn embedding_through(
        &mut self,
        layers: impl Fn(&mut Tape<'_, T>, Matrix) -> Matrix,
    ) -> Vector {
        let rows = (self.embedding.len / self.width) as u32;
        let (ids, mut pool): (Vec<u32>, _) = ((0..rows).collect(), Pool::default());
        let mut table = Vec::with_capacity(self.embedding.len);
        for ids in ids.chunks(ROWS) {
            let mut tape = Tape::new(self.weights, &[], &mut pool, false);
            let x = tape.embed(self.embedding, self.width, ids);
            let x = layers(&mut tape, x);
            table.extend_from_slice(tape.data(&x));
            tape.finish();
        }
        self.table(table)
    }

    fn table(&mut self, table: Vec<T>) -> Vector {
        let vector = self.plan.vector(table.len());
        self.values.extend(table);
        vector
    }
}

/// A B' of two matrices of `width` columns.
pub(super) fn times_transposed<T: Number>(width: usize, a: &[T], b: &[T]) -> Vec<T> {
    let [rows, columns] = [a, b].map(|matrix| matrix.len() / width);
    let mut turned = vec![T::ZERO; packed_len(width, columns)];
    pack_transposed(b, columns, width, &mut turned);
    let mut product = vec![T::ZERO; rows * columns];
    let (left, right) = (Left::rows(a, width), Right::packed(&turned, width));
    gemm([rows, columns, width], left, right, &mut product, columns, Into::Set);
    product
}
