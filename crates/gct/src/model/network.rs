//! What a model computes: its layers and its head, on any engine. The weights are somebody else's: those of a
//! `Model`, which learns, or of a `Frozen`, which does not.

use std::borrow::Cow;
use std::ops::Range;

use gct_kernels::Number;
use gct_kernels::engine::{Engine, Reach};
use gct_kernels::pairs::Pairs;
use gct_kernels::tape::{self, Pool, Tape};
use gct_kernels::weights::{Vector, Weights};

use super::chunks::chunks;
use super::{Config, Outcome, Pass, feed_forward, gcn, gct, logistic, mime, transformer};
use crate::batch::{EmbeddingRows, Example};
use crate::error::{Error, Result};
use crate::parameters::Parameters;
use crate::question::{Head, HeadConfig, NodeVectors};

/// A model without its weights.
#[derive(Clone)]
pub(super) struct Network {
    pub(super) config: Config,
    /// Numbers per node, and per visit.
    pub(super) width: usize,
    /// A row for every code.
    pub(super) embedding: Vector,
    pub(super) layers: Layers,
    pub(super) head: Head,
}

/// The layers of a model.
#[derive(Clone)]
pub(super) enum Layers {
    Gct(gct::Gct),
    Transformer(transformer::Transformer),
    Gcn(gcn::Gcn),
    FeedForward(feed_forward::FeedForward),
    Mime(mime::Mime),
    Logistic,
}

/// What the layers have computed.
pub(super) struct NodeStates<E: Engine> {
    pub(super) vectors: NodeVectors<E>,
    /// The attention of each head of each block, if it has any.
    pub(super) attentions: Vec<Vec<E::Attention>>,
}

impl Network {
    /// Refuses data that lack what the model or its head must be given.
    pub(super) fn check_data(&self, edges_are_known: bool) -> Result<()> {
        match (edges_are_known, self.head.learns_edges()) {
            (false, _) if self.config.needs_edges() => Err(Error::setting(
                "model",
                self.config.name(),
                "a model that is not given the true edges, because the data have none; try gct or gcn_p",
            )),
            (false, true) => Err(Error::setting(
                "head",
                "edges",
                "labels or hidden_diagnosis, because the data have no edges to learn from",
            )),
            _ => Ok(()),
        }
    }

    /// Names its parameters.
    ///
    /// # Errors
    /// If a setting makes no sense, or the head does not go with the model.
    pub(super) fn new(
        config: &Config,
        head: &HeadConfig,
        rows: EmbeddingRows,
        parameters: &mut Parameters,
    ) -> Result<Self> {
        config.check()?;
        let width = config.width(head);
        let embedding = match config {
            Config::Logistic(_) => parameters.zeros("embedding", rows.count(), width),
            _ => parameters.table("embedding", rows.count(), width),
        };
        let layers = match config {
            Config::Gct(config) => Layers::Gct(gct::Gct::new(config, parameters)),
            Config::Transformer(config) => {
                Layers::Transformer(transformer::Transformer::new(config, parameters))
            }
            Config::Gcn(config) | Config::GcnP(config) | Config::GcnRandom(config) => {
                Layers::Gcn(gcn::Gcn::new(config, parameters))
            }
            Config::Shallow(config) => {
                Layers::FeedForward(feed_forward::FeedForward::shallow(config, parameters))
            }
            Config::Deep(config) => Layers::FeedForward(feed_forward::FeedForward::deep(config, parameters)),
            Config::Mime(config) => Layers::Mime(mime::Mime::new(config, rows, parameters)?),
            Config::Logistic(_) => Layers::Logistic,
        };
        let head = Head::new(head, config.backbone(head), rows, parameters)?;
        Ok(Network { config: config.clone(), width, embedding, layers, head })
    }

    /// A pass over a whole batch without dropout.
    pub(super) fn pass(&self, batch: &[Example], regularizes: bool) -> Pass<'static> {
        let batch_nodes = batch.iter().map(Example::nodes).sum::<usize>().max(1);
        let batch_terms = self.head.terms(batch).max(1);
        Pass { batch_nodes, batch_terms, regularizes, ..Pass::LOOKING }
    }

    /// The pairs of nodes of each example that it mixes along.
    pub(super) fn graphs(&self, examples: &[Example]) -> Vec<Pairs> {
        let pairs = |example: &Example| {
            let pairs = match self.config.is_unrestricted() {
                true => Cow::Owned(Pairs::full(example.nodes())),
                false => Cow::Borrowed(&example.allowed),
            };
            if self.config.is_directed() { pairs.directed() } else { pairs.into_owned() }
        };
        examples.iter().map(pairs).collect()
    }

    /// See `Model::play`.
    pub(super) fn play<T: Number>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        pass: Pass,
        pool: &mut Pool<T>,
        gradients: Option<&mut [T]>,
    ) -> Outcome {
        let graphs = self.graphs(examples);
        let mut tape = Tape::new(weights, &graphs, pool, gradients.is_some());
        let outcome = self.run(&mut tape, &graphs, examples, pass);
        match gradients {
            Some(gradients) => tape.back(gradients),
            None => tape.finish(),
        }
        outcome
    }

    /// Plays a part of a batch, a few examples at a time.
    pub(super) fn play_in_chunks<T: Number>(
        &self,
        weights: &Weights<T>,
        (batch, part): (&[Example], Range<usize>),
        pass: Pass,
        pool: &mut Pool<T>,
        mut gradients: Option<&mut [T]>,
    ) -> Outcome {
        let mut first_node: usize = batch[..part.start].iter().map(Example::nodes).sum();
        let mut outcomes = Vec::new();
        for chunk in chunks(batch, part) {
            let (pass, examples) = (Pass { first_node, ..pass }, &batch[chunk]);
            let gradients = gradients.as_deref_mut();
            outcomes.push(self.play(weights, examples, pass, pool, gradients));
            first_node += examples.iter().map(Example::nodes).sum::<usize>();
        }
        Outcome::sum(&outcomes)
    }

    /// The loss of some examples of a batch.
    pub(super) fn run<E: Engine>(
        &self,
        engine: &mut E,
        graphs: &[Pairs],
        examples: &[Example],
        pass: Pass,
    ) -> Outcome {
        let (auxiliary, nodes) = self.forward(engine, graphs, examples, self.head.reach(), pass);
        let smoothing = pass.label_smoothing;
        let prediction =
            self.head.loss(engine, &nodes.vectors, examples, pass.batch_terms, smoothing, pass.positives);
        let regularizer = match &self.layers {
            Layers::Gct(gct) if pass.regularizes => gct.regularizer(engine.divergence(), pass),
            _ => auxiliary,
        };
        Outcome { prediction, regularizer }
    }

    /// What the head says of a few examples, without dropout: one list of logits for each. Only the rows that
    /// they depend on are computed.
    pub(super) fn answers<T: Number>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        pool: &mut Pool<T>,
    ) -> Vec<Vec<T>> {
        self.asked(weights, examples, pool, self.head.reach(), |tape, nodes| {
            if let Some(decoder) = self.head.decoder() {
                let groups = Head::groups(decoder, examples);
                let sizes: Vec<&[usize]> = groups.iter().map(Vec::as_slice).collect();
                return tape.edge_logits(&nodes.vectors.nodes, decoder, &sizes);
            }
            let logits = self.head.logits(tape, &nodes.vectors, examples);
            let data = tape.data(logits.as_ref().expect("only edges have no logits"));
            data.chunks_exact(data.len() / examples.len().max(1)).map(<[T]>::to_vec).collect()
        })
    }

    /// The vectors of the visits of a few examples, without dropout.
    pub(super) fn visits<T: Number>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        pool: &mut Pool<T>,
    ) -> Vec<Vec<T>> {
        self.asked(weights, examples, pool, Reach::FIRST, |tape, nodes| {
            tape.data(&nodes.vectors.visits).chunks_exact(self.width).map(<[T]>::to_vec).collect()
        })
    }

    /// What `read` makes of a forward pass over the nodes within reach.
    fn asked<T: Number, R>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        pool: &mut Pool<T>,
        reach: Reach,
        read: impl for<'t> FnOnce(&mut Tape<'t, T>, &NodeStates<Tape<'t, T>>) -> R,
    ) -> R {
        let graphs = self.graphs(examples);
        let mut tape = Tape::new(weights, &graphs, pool, false);
        let (_, nodes) = self.forward(&mut tape, &graphs, examples, reach, Pass::LOOKING);
        let result = read(&mut tape, &nodes);
        tape.finish();
        result
    }

    /// Gives `look` what was computed on the way of a forward pass.
    pub(super) fn look<T: Number, R>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        look: impl FnOnce(&Activations<'_, T>) -> R,
    ) -> R {
        let (graphs, mut pool) = (self.graphs(examples), Pool::default());
        let mut tape = Tape::new(weights, &graphs, &mut pool, false);
        let (_, nodes) = self.forward(&mut tape, &graphs, examples, Reach::ALL, Pass::LOOKING);
        let logits = self
            .head
            .can_answer(examples)
            .then(|| self.head.logits(&mut tape, &nodes.vectors, examples))
            .flatten();
        look(&Activations { tape: &tape, nodes: &nodes, logits, graphs: &graphs })
    }

    /// The share of these examples in an auxiliary loss, and the nodes that are wanted.
    fn forward<E: Engine>(
        &self,
        engine: &mut E,
        graphs: &[Pairs],
        examples: &[Example],
        wanted: Reach,
        pass: Pass,
    ) -> (f64, NodeStates<E>) {
        let ids: Vec<u32> = examples.iter().flat_map(|example| example.ids.iter().copied()).collect();
        let embedded = engine.embed(self.embedding, self.width, &ids);
        let given = |matrix: fn(&Example) -> Vec<f32>| compact(examples, graphs, matrix);
        let prior = || match self.config.is_directed() {
            true => given(directed_prior),
            false => examples.iter().map(|example| &example.prior[..]).collect::<Vec<_>>().concat(),
        };
        let nodes = match &self.layers {
            Layers::Gct(gct) => gct.forward(engine, &ids, embedded, &prior(), wanted, pass),
            Layers::Transformer(transformer) => transformer.forward(engine, &ids, embedded, wanted, pass),
            Layers::Gcn(gcn) => {
                let mixing = match &self.config {
                    Config::Gcn(_) => given(gcn::normalized_adjacency),
                    Config::GcnRandom(_) => given(gcn::random_weights),
                    _ => prior(),
                };
                gcn.forward(engine, &ids, embedded, &mixing, wanted, pass)
            }
            Layers::FeedForward(layers) => layers.forward(engine, embedded, pass),
            Layers::Logistic => logistic::forward(engine, embedded),
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
    let mut offset = 0;
    for (example, pairs) in examples.iter().zip(graphs) {
        pairs.compact(&matrix(example), &mut all[offset..]);
        offset += pairs.len();
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
pub struct Activations<'a, T: Number> {
    tape: &'a Tape<'a, T>,
    nodes: &'a NodeStates<Tape<'a, T>>,
    logits: Option<tape::Matrix>,
    graphs: &'a [Pairs],
}

impl<T: Number> Activations<'_, T> {
    /// The last hidden state of every node, row after row, example after example.
    pub fn nodes(&self) -> &[T] {
        self.tape.data(&self.nodes.vectors.nodes)
    }

    /// The representation of every visit, row after row.
    pub fn visits(&self) -> &[T] {
        self.tape.data(&self.nodes.vectors.visits)
    }

    /// The logits of labels or of hidden diagnoses, row after row; `None` for edges, or if no diagnosis is
    /// hidden.
    pub fn logits(&self) -> Option<&[T]> {
        self.logits.as_ref().map(|logits| self.tape.data(logits))
    }

    /// The attention of each block, of each of its heads, as a matrix over the nodes of each example.
    pub fn attentions(&self) -> Vec<Vec<Vec<Vec<T>>>> {
        let expand = |attention| {
            let all = self.tape.attention(attention);
            let mut offset = 0;
            let one = |pairs: &Pairs| {
                let mut matrix = vec![T::ZERO; pairs.nodes() * pairs.nodes()];
                pairs.expand(&all[offset..], &mut matrix);
                offset += pairs.len();
                matrix
            };
            self.graphs.iter().map(one).collect()
        };
        self.nodes.attentions.iter().map(|heads| heads.iter().map(expand).collect()).collect()
    }
}
