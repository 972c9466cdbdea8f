//! GCN, Transformer and GCT are the same block; only the matrix that mixes nodes differs. Shallow and Deep are layers on each
//! node and a sum. Each has a file of its own; what they share is in `block` and `attention`. All are written in the
//! operations of an `Engine`: `play` runs them on this processor, and other engines can take a model through `run`.
//!
//! | name | mixes with | file |
//! |---|---|---|
//! | `gct` | P, then attention over the pairs that M allows | `gct.rs` |
//! | `transformer` | attention over all pairs | `transformer.rs` |
//! | `gcn` | the true adjacency, normalised | `gcn.rs` |
//! | `gcn_p` | P | `gcn.rs` |
//! | `gcn_random` | random weights | `gcn.rs` |
//! | `shallow`, `deep` | nothing | `feed_forward.rs` |
//! | `mime` | the true edges from diagnoses to treatments | `mime.rs` |

use std::borrow::Cow;

use gct_kernels::Number;
use gct_kernels::engine::{Engine, Reach};
use gct_kernels::pairs::Pairs;
pub use gct_kernels::tape::Pool;
use gct_kernels::tape::Tape;
use gct_kernels::weights::{Vector, Weights};

use crate::batch::{EmbeddingRows, Example};
use crate::error::{Error, Result};

mod attention;
mod block;
mod config;
mod feed_forward;
mod gcn;
mod gct;
mod head;
mod mime;
mod parameters;
mod step;
mod transformer;
mod weights_file;

pub use attention::{AttentionConfig, Join, Normalizer};
pub use block::Dropouts;
pub use config::Config;
pub use feed_forward::{DeepConfig, ShallowConfig};
pub use gcn::GcnConfig;
pub(crate) use gcn::normalized_adjacency;
pub use gct::{GctConfig, Regularizer};
pub use head::{HeadConfig, Targets};
pub use mime::MimeConfig;
pub use parameters::{Named, Parameters};
pub use step::{Learning, Progress, Scratch, Trainer};
pub use transformer::TransformerConfig;

/// The layers of a model.
enum Layers {
    Gct(gct::Gct),
    Transformer(transformer::Transformer),
    Gcn(gcn::Gcn),
    FeedForward(feed_forward::FeedForward),
    Mime(mime::Mime),
}

/// A model with its head and its weights.
pub struct Model<T> {
    config: Config,
    rows: EmbeddingRows,
    embedding: Vector,
    layers: Layers,
    head_config: HeadConfig,
    head: head::Head,
    parameters: Parameters,
    weights: Weights<T>,
}

/// What a pass over some examples is for.
#[derive(Debug, Clone, Copy)]
pub struct Pass {
    /// Decides what is dropped; `None` for evaluation, where nothing is.
    pub dropout_key: Option<u32>,
    /// How many nodes, and how many terms of the loss, the whole batch has: losses are means over the batch, of which
    /// these examples may be a part.
    pub batch_nodes: usize,
    /// See above.
    pub batch_terms: usize,
    /// The place of the first node in the batch.
    pub first_node: usize,
    /// Whether the regulariser is wanted. Without it, only what the prediction needs is computed.
    pub regularizes: bool,
}

impl Pass {
    /// One that has no loss.
    const LOOKING: Pass =
        Pass { dropout_key: None, batch_nodes: 1, batch_terms: 1, first_node: 0, regularizes: false };
}

/// What a model makes of some examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The share of these examples in the batch's mean loss of prediction.
    pub prediction: f64,
    /// And in its regulariser, not yet weighted: GCT's divergence, MiME's auxiliary loss. 0 if it was not wanted.
    pub regularizer: f64,
}

/// Where the rows of nodes have got to.
struct Nodes<E: Engine> {
    /// One row per node that the head looks at.
    all: E::Matrix,
    /// One row per visit.
    visits: E::Matrix,
    /// The attention of each head of each block, if it has any.
    attentions: Vec<Vec<E::Attention>>,
}

impl<T: Number> Model<T> {
    /// A model with random weights.
    ///
    /// # Errors
    /// If a setting makes no sense, or the head does not go with the model.
    pub fn new(config: &Config, head: &HeadConfig, rows: EmbeddingRows, seed: u64) -> Result<Self> {
        Model::build(config, head, rows, |parameters| Ok(parameters.initialize(seed)))
    }

    /// A model with the weights that `values` gives for its parameters.
    fn build(
        config: &Config,
        head: &HeadConfig,
        rows: EmbeddingRows,
        values: impl FnOnce(&Parameters) -> Result<Vec<T>>,
    ) -> Result<Self> {
        config.check()?;
        let mut parameters = Parameters::default();
        let width = config.width();
        let embedding = parameters.table("embedding", rows.count(), width);
        let layers = match config {
            Config::Gct(config) => Layers::Gct(gct::Gct::new(config, &mut parameters)),
            Config::Transformer(config) => {
                Layers::Transformer(transformer::Transformer::new(config, &mut parameters))
            }
            Config::Gcn(config) | Config::GcnP(config) | Config::GcnRandom(config) => {
                Layers::Gcn(gcn::Gcn::new(config, &mut parameters))
            }
            Config::Shallow(config) => {
                Layers::FeedForward(feed_forward::FeedForward::shallow(config, &mut parameters))
            }
            Config::Deep(config) => {
                Layers::FeedForward(feed_forward::FeedForward::deep(config, &mut parameters))
            }
            Config::Mime(config) => Layers::Mime(mime::Mime::new(config, rows, &mut parameters)?),
        };
        let head_config = head.clone();
        let head = head::Head::new(head, config, rows, &mut parameters)?;
        let weights = Weights::new(parameters.plan().clone(), values(&parameters)?);
        let config = config.clone();
        Ok(Model { config, rows, embedding, layers, head_config, head, parameters, weights })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What it predicts.
    pub fn head(&self) -> &HeadConfig {
        &self.head_config
    }

    /// Which row of the embedding belongs to which code.
    pub fn embedding_rows(&self) -> EmbeddingRows {
        self.rows
    }

    /// The names and shapes of the parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Numbers per node, and per visit.
    pub fn width(&self) -> usize {
        self.config.width()
    }

    /// A row of the embedding.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn embedding(&self, row: u32) -> &[T] {
        let width = self.config.width();
        &self.embedding.of(self.weights.values())[row as usize * width..][..width]
    }

    /// The weights.
    pub fn weights(&self) -> &Weights<T> {
        &self.weights
    }

    /// The weights, to be changed.
    pub fn weights_mut(&mut self) -> &mut Weights<T> {
        &mut self.weights
    }

    /// Refuses data that lack what the model or its head must be given.
    ///
    /// # Errors
    /// If edges are needed and not known.
    pub fn check_data(&self, edges_are_known: bool) -> Result<()> {
        match (edges_are_known, &self.head) {
            (false, _) if self.config.needs_edges() => Err(Error::setting(
                "model",
                self.config.name(),
                "a model that is not given the true edges, because the data have none; try gct or gcn_p",
            )),
            (false, head::Head::Edges(_)) => Err(Error::setting(
                "head",
                "edges",
                "labels or hidden_diagnosis, because the data have no edges to learn from",
            )),
            _ => Ok(()),
        }
    }

    /// The pairs of nodes of each example that this model mixes along.
    pub fn graphs(&self, examples: &[Example]) -> Vec<Pairs> {
        let pairs = |example: &Example| {
            let pairs = match self.config.is_unrestricted() {
                true => Cow::Owned(Pairs::full(example.nodes())),
                false => Cow::Borrowed(&example.allowed),
            };
            if self.config.is_directed() { pairs.directed() } else { pairs.into_owned() }
        };
        examples.iter().map(pairs).collect()
    }

    /// The loss of some examples of a batch, on this processor; with gradients, theirs is added.
    ///
    /// # Panics
    /// If an example lacks what the model or the head needs: edges, labels, a hidden diagnosis.
    pub fn play(
        &self,
        examples: &[Example],
        targets: &Targets<'_>,
        pass: Pass,
        pool: &mut Pool<T>,
        gradients: Option<&mut [T]>,
    ) -> Outcome {
        let graphs = self.graphs(examples);
        let mut tape = Tape::new(&self.weights, &graphs, pool, gradients.is_some());
        let outcome = self.run(&mut tape, &graphs, examples, targets, pass);
        match gradients {
            Some(gradients) => tape.back(gradients),
            None => tape.finish(),
        }
        outcome
    }

    /// The loss of some examples of a batch, on any engine. `graphs` are those of [`Model::graphs`].
    ///
    /// # Panics
    /// As [`Model::play`].
    pub fn run<E: Engine>(
        &self,
        engine: &mut E,
        graphs: &[Pairs],
        examples: &[Example],
        targets: &Targets<'_>,
        pass: Pass,
    ) -> Outcome {
        let (auxiliary, nodes) = self.forward(engine, graphs, examples, self.head.reach(), pass);
        let prediction = self.head.loss(engine, &nodes, examples, targets, pass);
        let regularizer = match &self.layers {
            Layers::Gct(gct) if pass.regularizes => gct.regularizer(engine.divergence(), pass),
            _ => auxiliary,
        };
        Outcome { prediction, regularizer }
    }

    /// What the head says of a few examples, without dropout: one list of logits for each. Only the rows that they depend on are
    /// computed.
    fn answers_at_once(&self, examples: &[Example], pool: &mut Pool<T>) -> Vec<Vec<T>> {
        let graphs = self.graphs(examples);
        let mut tape = Tape::new(&self.weights, &graphs, pool, false);
        let (_, nodes) = self.forward(&mut tape, &graphs, examples, self.head.reach(), Pass::LOOKING);
        let answers = match (&self.head, self.head.logits(&mut tape, &nodes, examples)) {
            (head::Head::Edges(decoder), _) => tape.edge_logits(&nodes.all, *decoder),
            (_, logits) => {
                let logits = logits.expect("only edges have no logits");
                let data = tape.data(&logits);
                data.chunks_exact(data.len() / examples.len().max(1)).map(<[T]>::to_vec).collect()
            }
        };
        tape.finish();
        answers
    }

    /// The vectors of the visits of a few examples, without dropout.
    fn visits_at_once(&self, examples: &[Example], pool: &mut Pool<T>) -> Vec<Vec<T>> {
        let graphs = self.graphs(examples);
        let mut tape = Tape::new(&self.weights, &graphs, pool, false);
        let (_, nodes) = self.forward(&mut tape, &graphs, examples, Reach::FIRST, Pass::LOOKING);
        let visits = tape.data(&nodes.visits).chunks_exact(self.width()).map(<[T]>::to_vec).collect();
        tape.finish();
        visits
    }

    /// Gives `look` what was computed on the way of a forward pass: hidden states of the nodes, logits, and attention of each
    /// block.
    pub fn look<R>(&self, examples: &[Example], look: impl FnOnce(&View<'_, T>) -> R) -> R {
        let (graphs, mut pool) = (self.graphs(examples), Pool::default());
        let mut tape = Tape::new(&self.weights, &graphs, &mut pool, false);
        let (_, nodes) = self.forward(&mut tape, &graphs, examples, Reach::ALL, Pass::LOOKING);
        let logits =
            self.head.can_answer(examples).then(|| self.head.logits(&mut tape, &nodes, examples)).flatten();
        look(&View { tape: &tape, nodes: &nodes, logits, graphs: &graphs })
    }

    /// The share of these examples in an auxiliary loss, and the nodes that are wanted.
    fn forward<E: Engine>(
        &self,
        engine: &mut E,
        graphs: &[Pairs],
        examples: &[Example],
        wanted: Reach,
        pass: Pass,
    ) -> (f64, Nodes<E>) {
        let ids: Vec<u32> = examples.iter().flat_map(|example| example.ids.iter().copied()).collect();
        let embedded = engine.embed(self.embedding, self.config.width(), &ids);
        let given = |matrix: fn(&Example) -> Vec<f32>| compact(examples, graphs, matrix);
        let prior = || match self.config.is_directed() {
            true => given(directed_prior),
            false => examples.iter().flat_map(|example| example.prior.iter().copied()).collect(),
        };
        let nodes = match &self.layers {
            Layers::Gct(gct) => gct.forward(engine, embedded, &prior(), wanted, pass),
            Layers::Transformer(transformer) => transformer.forward(engine, embedded, wanted, pass),
            Layers::Gcn(gcn) => {
                let mixing = match &self.config {
                    Config::Gcn(_) => given(gcn::normalized_adjacency),
                    Config::GcnRandom(_) => given(gcn::random_weights),
                    _ => prior(),
                };
                gcn.forward(engine, embedded, &mixing, wanted, pass)
            }
            Layers::FeedForward(layers) => layers.forward(engine, embedded, pass),
            Layers::Mime(mime) => {
                let pairs = [given(mime::orders), given(mime::members)];
                return mime.forward(engine, &embedded, [&pairs[0], &pairs[1]], examples, pass);
            }
        };
        (0.0, nodes)
    }
}

/// The pair numbers of all examples, out of a matrix over the nodes of each.
fn compact(examples: &[Example], graphs: &[Pairs], matrix: impl Fn(&Example) -> Vec<f32>) -> Vec<f32> {
    let mut all = vec![0.0; graphs.iter().map(Pairs::len).sum()];
    let mut place = 0;
    for (example, pairs) in examples.iter().zip(graphs) {
        pairs.compact(&matrix(example), &mut all[place..]);
        place += pairs.len();
    }
    all
}

/// P of the pairs that look away from the visit, its rows normalised again.
fn directed_prior(example: &Example) -> Vec<f32> {
    let nodes = example.nodes();
    let mut matrix = vec![0.0; nodes * nodes];
    example.allowed.expand(&example.prior, &mut matrix);
    for (node, row) in matrix.chunks_exact_mut(nodes).enumerate() {
        row[..node].fill(0.0);
    }
    gcn::normalize(&mut matrix, nodes);
    matrix
}

/// What a model computed on the way.
pub struct View<'a, T: Number> {
    tape: &'a Tape<'a, T>,
    nodes: &'a Nodes<Tape<'a, T>>,
    logits: Option<gct_kernels::tape::Matrix>,
    graphs: &'a [Pairs],
}

impl<T: Number> View<'_, T> {
    /// The last hidden state of every node, row after row, example after example.
    pub fn nodes(&self) -> &[T] {
        self.tape.data(&self.nodes.all)
    }

    /// The representation of every visit, row after row.
    pub fn visits(&self) -> &[T] {
        self.tape.data(&self.nodes.visits)
    }

    /// The logits of labels or of hidden diagnoses, row after row; `None` for edges, or if no diagnosis is hidden.
    pub fn logits(&self) -> Option<&[T]> {
        self.logits.as_ref().map(|logits| self.tape.data(logits))
    }

    /// The attention of each block, of each of its heads, as a matrix over the nodes of each example.
    pub fn attentions(&self) -> Vec<Vec<Vec<Vec<T>>>> {
        let expand = |attention| {
            let all = self.tape.attention(attention);
            let mut place = 0;
            let one = |pairs: &Pairs| {
                let mut matrix = vec![T::ZERO; pairs.nodes() * pairs.nodes()];
                pairs.expand(&all[place..], &mut matrix);
                place += pairs.len();
                matrix
            };
            self.graphs.iter().map(one).collect()
        };
        self.nodes.attentions.iter().map(|heads| heads.iter().map(expand).collect()).collect()
    }
}
