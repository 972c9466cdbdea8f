//! GCN, Transformer and GCT are the same block; only the matrix that mixes nodes differs. Shallow and Deep are layers on each
//! node and a sum. Each has a file of its own; what they share is in `block`.
//!
//! | name | mixes with | file |
//! |---|---|---|
//! | `gct` | P, then attention over the pairs that M allows | `gct.rs` |
//! | `transformer` | attention over all pairs | `transformer.rs` |
//! | `gcn` | the true adjacency, normalised | `gcn.rs` |
//! | `gcn_p` | P | `gcn.rs` |
//! | `gcn_random` | random weights | `gcn.rs` |
//! | `shallow`, `deep` | nothing | `feed_forward.rs` |

use std::rc::Rc;

use gct_kernels::Number;
use gct_kernels::pairs::Pairs;
use gct_kernels::tape::{Attention, Matrix, Pool, Tape};
use gct_kernels::weights::{Vector, Weights};
use serde::{Deserialize, Serialize};

use crate::batch::{EmbeddingRows, Example};
use crate::error::{Error, Result};

mod block;
mod feed_forward;
mod gcn;
mod gct;
mod head;
mod parameters;
mod step;
mod transformer;

pub use block::Dropouts;
pub use feed_forward::{DeepConfig, ShallowConfig};
pub use gcn::GcnConfig;
pub use gct::{GctConfig, Regularizer};
pub use head::{HeadConfig, Targets};
pub use parameters::{Named, Parameters};
pub use step::{Scratch, Trainer};
pub use transformer::TransformerConfig;

/// A model by its name in the paper, with its settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "snake_case")]
pub enum Config {
    /// The paper's model.
    Gct(GctConfig),
    /// Attention without a hint.
    Transformer(TransformerConfig),
    /// Convolution with the true structure.
    Gcn(GcnConfig),
    /// Convolution with P.
    GcnP(GcnConfig),
    /// Convolution with random weights.
    GcnRandom(GcnConfig),
    /// Layers on each node, then a sum.
    Shallow(ShallowConfig),
    /// Layers on each node, a sum, layers on the sum.
    Deep(DeepConfig),
}

impl Config {
    /// The paper's settings for a model, but for dropout, which depends on the task and is off here.
    ///
    /// # Errors
    /// If there is no such model.
    pub fn named(name: &str) -> Result<Self> {
        match name {
            "gct" => Ok(Config::Gct(GctConfig::default())),
            "transformer" => Ok(Config::Transformer(TransformerConfig::default())),
            "gcn" => Ok(Config::Gcn(GcnConfig::default())),
            "gcn_p" => Ok(Config::GcnP(GcnConfig::default())),
            "gcn_random" => Ok(Config::GcnRandom(GcnConfig::default())),
            "shallow" => Ok(Config::Shallow(ShallowConfig::default())),
            "deep" => Ok(Config::Deep(DeepConfig::default())),
            _ => Err(Error::UnknownName {
                what: "model",
                name: name.into(),
                known: Config::NAMES.map(String::from).into(),
            }),
        }
    }

    /// The names of all models.
    pub const NAMES: [&str; 7] = ["gct", "transformer", "gcn", "gcn_p", "gcn_random", "shallow", "deep"];

    /// Refuses every value that makes no sense.
    ///
    /// # Errors
    /// The first one found.
    pub fn check(&self) -> Result<()> {
        match self {
            Config::Gct(config) => config.check(),
            Config::Transformer(config) => config.check(),
            Config::Gcn(config) | Config::GcnP(config) | Config::GcnRandom(config) => config.check(),
            Config::Shallow(config) => config.check(),
            Config::Deep(config) => config.check(),
        }
    }

    fn width(&self) -> usize {
        match self {
            Config::Gct(config) => config.width,
            Config::Transformer(config) => config.width,
            Config::Gcn(config) | Config::GcnP(config) | Config::GcnRandom(config) => config.width,
            Config::Shallow(config) => config.width,
            Config::Deep(config) => config.width,
        }
    }

    /// Whether nodes look at all nodes, or only along the pairs that M allows.
    fn is_unrestricted(&self) -> bool {
        matches!(self, Config::Transformer(_) | Config::GcnRandom(_))
    }
}

/// The layers of a model.
enum Layers {
    Gct(gct::Gct),
    Transformer(transformer::Transformer),
    Gcn(gcn::Gcn),
    FeedForward(feed_forward::FeedForward),
}

/// A model with its head and its weights.
pub struct Model<T> {
    config: Config,
    rows: EmbeddingRows,
    embedding: Vector,
    layers: Layers,
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
}

/// What a model makes of some examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The share of these examples in the batch's mean loss of prediction.
    pub prediction: f64,
    /// And in its regulariser, not yet weighted.
    pub regularizer: f64,
}

/// Where the rows of nodes have got to.
struct Nodes {
    /// One row per node.
    all: Matrix,
    /// One row per visit.
    visits: Matrix,
    /// The attention of each block, if it has any.
    attentions: Vec<Attention>,
}

impl<T: Number> Model<T> {
    /// A model with random weights.
    ///
    /// # Errors
    /// If a setting makes no sense, or the head does not go with the model.
    pub fn new(config: &Config, head: &HeadConfig, rows: EmbeddingRows, seed: u64) -> Result<Self> {
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
        };
        let head = head::Head::new(head, config, rows, &mut parameters)?;
        let weights = Weights::new(parameters.plan().clone(), parameters.initialize(seed));
        Ok(Model { config: config.clone(), rows, embedding, layers, head, parameters, weights })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Which row of the embedding belongs to which code.
    pub fn embedding_rows(&self) -> EmbeddingRows {
        self.rows
    }

    /// The names and shapes of the parameters.
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// The weights.
    pub fn weights(&self) -> &Weights<T> {
        &self.weights
    }

    /// The weights, to be changed.
    pub fn weights_mut(&mut self) -> &mut Weights<T> {
        &mut self.weights
    }

    /// The pairs of an example that this model mixes along.
    fn pairs(&self, example: &Example) -> Pairs {
        if self.config.is_unrestricted() {
            Pairs::full(example.nodes(), false)
        } else {
            example.allowed.clone()
        }
    }

    /// The loss of some examples of a batch; with gradients, theirs is added.
    ///
    /// # Panics
    /// If an example lacks what the model or the head needs: edges, labels, a hidden diagnosis.
    pub fn play(
        &self,
        examples: &[Example],
        targets: &Targets<'_>,
        pass: Pass,
        pool: &mut Pool<T>,
        mut gradients: Option<&mut [T]>,
    ) -> Outcome {
        let pairs: Vec<Pairs> = examples.iter().map(|example| self.pairs(example)).collect();
        let mut tape = Tape::new(&self.weights, &pairs, pool);
        let nodes = self.forward(&mut tape, examples, &pairs, pass);
        let prediction = self.head.loss(&mut tape, &nodes, examples, targets, pass, gradients.as_deref_mut());
        let regularizer = match &self.layers {
            Layers::Gct(gct) => gct.regularizer(tape.divergence(), pass),
            _ => 0.0,
        };
        match gradients {
            Some(gradients) => tape.back(gradients),
            None => tape.finish(),
        }
        Outcome { prediction, regularizer }
    }

    /// Gives `look` the matrices on the tape after a forward pass: hidden states of the nodes and attention of each block, as
    /// matrices over the nodes of each example.
    pub fn look<R>(&self, examples: &[Example], look: impl FnOnce(&View<'_, T>) -> R) -> R {
        let pairs: Vec<Pairs> = examples.iter().map(|example| self.pairs(example)).collect();
        let mut pool = Pool::default();
        let mut tape = Tape::new(&self.weights, &pairs, &mut pool);
        let terms = Pass { dropout_key: None, batch_nodes: 1, batch_terms: 1, first_node: 0 };
        let nodes = self.forward(&mut tape, examples, &pairs, terms);
        look(&View { tape: &tape, nodes: &nodes, pairs: &pairs })
    }

    fn forward(&self, tape: &mut Tape<'_, T>, examples: &[Example], pairs: &[Pairs], pass: Pass) -> Nodes {
        let ids = examples.iter().flat_map(|example| example.ids.iter().copied()).collect();
        let embedded = tape.embed(self.embedding, self.config.width(), ids);
        match &self.layers {
            Layers::Gct(gct) => gct.forward(tape, embedded, prior(examples), pass),
            Layers::Transformer(transformer) => transformer.forward(tape, embedded, pass),
            Layers::Gcn(gcn) => {
                let mixing = match &self.config {
                    Config::Gcn(_) => compact(examples, pairs, gcn::normalized_adjacency),
                    Config::GcnRandom(_) => compact(examples, pairs, gcn::random_weights),
                    _ => prior(examples),
                };
                gcn.forward(tape, embedded, mixing, pass)
            }
            Layers::FeedForward(layers) => layers.forward(tape, embedded, pass),
        }
    }
}

/// P of all examples.
fn prior<T: Number>(examples: &[Example]) -> Rc<Vec<T>> {
    let all = examples.iter().flat_map(|example| &example.prior);
    Rc::new(all.map(|p| T::of(f64::from(*p))).collect())
}

/// The pair numbers of all examples, out of a matrix over the nodes of each.
fn compact<T: Number>(
    examples: &[Example],
    pairs: &[Pairs],
    matrix: impl Fn(&Example) -> Vec<f32>,
) -> Rc<Vec<T>> {
    let mut all = vec![T::ZERO; pairs.iter().map(Pairs::len).sum()];
    let mut place = 0;
    for (example, pairs) in examples.iter().zip(pairs) {
        let matrix: Vec<T> = matrix(example).into_iter().map(|x| T::of(f64::from(x))).collect();
        pairs.compact(&matrix, &mut all[place..]);
        place += pairs.len();
    }
    Rc::new(all)
}

/// What a model computed on the way.
pub struct View<'a, T> {
    tape: &'a Tape<'a, T>,
    nodes: &'a Nodes,
    pairs: &'a [Pairs],
}

impl<T: Number> View<'_, T> {
    /// The last hidden state of every node, row after row, example after example.
    pub fn nodes(&self) -> &[T] {
        self.tape.data(self.nodes.all)
    }

    /// The representation of every visit, row after row.
    pub fn visits(&self) -> &[T] {
        self.tape.data(self.nodes.visits)
    }

    /// The attention of each block, as a matrix over the nodes of each example.
    pub fn attentions(&self) -> Vec<Vec<Vec<T>>> {
        let expand = |attention: &Attention| {
            let all = self.tape.attention(*attention);
            let mut place = 0;
            let one = |pairs: &Pairs| {
                let mut matrix = vec![T::ZERO; pairs.nodes() * pairs.nodes()];
                pairs.expand(&all[place..], &mut matrix);
                place += pairs.len();
                matrix
            };
            self.pairs.iter().map(one).collect()
        };
        self.nodes.attentions.iter().map(expand).collect()
    }
}

/// Refuses a width, a number or a rate that makes no sense.
fn check_whole(name: &str, value: usize, most: usize) -> Result<()> {
    if (1..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::setting(name, value, &format!("a whole number from 1 to {most}")))
}
