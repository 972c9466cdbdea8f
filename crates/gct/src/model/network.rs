//! What a model computes: its layers and its head, on any engine. The weights are somebody else's: those of a
//! `Model`, which learns, or of a `Frozen`, which does not.

use std::ops::Range;

use gct_kernels::Number;
use gct_kernels::engine::{Engine, Reach};
use gct_kernels::pairs::Pairs;
use gct_kernels::tape::{self, Pool, Tape};
use gct_kernels::weights::{Vector, Weights};

use super::aggregator::Aggregator;
use super::chunks::chunks;
use super::layout::{Layout, NodeCount};
use super::{Config, Outcome, Pass, explainer, feed_forward, gcn, gct, logistic, mime, transformer};
use crate::batch::{EmbeddingRows, Example, Visit};
use crate::error::{Error, Result};
use crate::history::History;
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
    /// What makes one vector of the vectors of a subject's visits, with history.
    aggregator: Option<Aggregator>,
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
    Explainer(explainer::Layers),
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
                "labels, hidden_diagnosis, hidden_code or next_diagnoses, because the data have no edges to learn from",
            )),
            _ => Ok(()),
        }
    }

    /// Names its parameters.
    ///
    /// # Errors
    /// If a setting makes no sense, or the head does not go with the model.
    pub(super) fn new(
        (config, history): (&Config, &History),
        head: &HeadConfig,
        rows: EmbeddingRows,
        parameters: &mut Parameters,
    ) -> Result<Self> {
        config.check()?;
        history.check()?;
        let width = config.width(head);
        let embedding = match config {
            Config::Logistic(_) | Config::Explainer(_) => parameters.zeros("embedding", rows.count(), width),
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
            Config::Explainer(_) => Layers::Explainer(explainer::Layers::new(head, parameters)),
        };
        let aggregator = Aggregator::new(history, config, width, parameters)?;
        let head = Head::new(head, config.backbone(head), rows, parameters)?;
        if aggregator.is_some() && !head.looks_at_visits() {
            let allowed = "none in this task, which is about codes of one encounter";
            return Err(Error::setting("history.aggregator", history.aggregator.name(), allowed));
        }
        Ok(Network { config: config.clone(), width, embedding, layers, aggregator, head })
    }

    /// A pass over a whole batch without dropout.
    pub(super) fn pass(&self, batch: &[Example], regularizes: bool) -> Pass<'static> {
        let batch_nodes =
            chunks(batch, 0..batch.len()).map(|chunk| nodes(&batch[chunk])).sum::<usize>().max(1);
        let batch_terms = self.head.terms(batch).max(1);
        Pass { batch_nodes, batch_terms, regularizes, ..Pass::LOOKING }
    }

    /// The visits of some examples, and the pairs of nodes that it mixes along.
    pub(super) fn layout<'a>(&self, examples: &'a [Example]) -> Layout<'a> {
        Layout::new(&self.config, examples)
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
        let layout = self.layout(examples);
        let mut tape = tape(weights, &layout, pool, gradients.is_some());
        let outcome = self.run(&mut tape, &layout, examples, pass);
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
        let mut first_node: usize = chunks(batch, 0..part.start).map(|chunk| nodes(&batch[chunk])).sum();
        let mut outcomes = Vec::new();
        for chunk in chunks(batch, part) {
            let (pass, examples) = (Pass { first_node, ..pass }, &batch[chunk]);
            let gradients = gradients.as_deref_mut();
            outcomes.push(self.play(weights, examples, pass, pool, gradients));
            first_node += nodes(examples);
        }
        Outcome::sum(&outcomes)
    }

    /// The loss of some examples of a batch.
    pub(super) fn run<E: Engine>(
        &self,
        engine: &mut E,
        layout: &Layout<'_>,
        examples: &[Example],
        pass: Pass,
    ) -> Outcome {
        let (auxiliary, nodes) = self.forward(engine, layout, self.head.reach(), pass);
        let (vectors, smoothing) =
            (self.aggregate(engine, layout, nodes.vectors, pass), pass.label_smoothing);
        let prediction =
            self.head.loss(engine, &vectors, examples, pass.batch_terms, smoothing, pass.positives);
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
        if let Layers::Explainer(layers) = &self.layers {
            return layers.answers(weights, examples);
        }
        self.asked(weights, examples, pool, self.head.reach(), |tape, layout, vectors| {
            if let Some(decoder) = self.head.decoder() {
                let groups = Head::groups(decoder, examples);
                let sizes: Vec<&[usize]> = groups.iter().map(Vec::as_slice).collect();
                return tape.edge_logits(&vectors.nodes, decoder, &sizes);
            }
            let vectors = self.aggregate(tape, layout, vectors, Pass::LOOKING);
            let logits = self.head.logits(tape, &vectors, examples);
            let data = tape.data(logits.as_ref().expect("only edges have no logits"));
            let rows = data.chunks_exact(data.len() / examples.len().max(1)).zip(examples);
            rows.map(|(row, example)| row[self.head.answerable(example, row.len())].to_vec()).collect()
        })
    }

    /// The vectors of the visits of a few examples, without dropout.
    pub(super) fn visits<T: Number>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        pool: &mut Pool<T>,
    ) -> Vec<Vec<T>> {
        self.asked(weights, examples, pool, Reach::FIRST, |tape, layout, vectors| {
            let visits = tape.data(&vectors.visits);
            layout.own.iter().map(|visit| visits[visit * self.width..][..self.width].to_vec()).collect()
        })
    }

    /// The vectors of a few examples with all that is seen of their subjects, without dropout.
    pub(super) fn subjects<T: Number>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        pool: &mut Pool<T>,
    ) -> Vec<Vec<T>> {
        self.asked(weights, examples, pool, Reach::FIRST, |tape, layout, vectors| {
            let vectors = self.aggregate(tape, layout, vectors, Pass::LOOKING);
            tape.data(&vectors.visits).chunks_exact(self.width).map(<[T]>::to_vec).collect()
        })
    }

    /// What `read` makes of a forward pass over the nodes within reach.
    fn asked<T: Number, R>(
        &self,
        weights: &Weights<T>,
        examples: &[Example],
        pool: &mut Pool<T>,
        reach: Reach,
        read: impl for<'t> FnOnce(&mut Tape<'t, T>, &Layout<'_>, NodeVectors<Tape<'t, T>>) -> R,
    ) -> R {
        let layout = self.layout(examples);
        let mut tape = tape(weights, &layout, pool, false);
        let (_, nodes) = self.forward(&mut tape, &layout, reach, Pass::LOOKING);
        let result = read(&mut tape, &layout, nodes.vectors);
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
        let (layout, mut pool) = (self.layout(examples), Pool::default());
        let mut tape = tape(weights, &layout, &mut pool, false);
        let (_, NodeStates { vectors, attentions }) =
            self.forward(&mut tape, &layout, Reach::ALL, Pass::LOOKING);
        let vectors = self.aggregate(&mut tape, &layout, vectors, Pass::LOOKING);
        let can_answer = self.head.can_answer(examples);
        let logits = can_answer.then(|| self.head.logits(&mut tape, &vectors, examples)).flatten();
        let nodes = NodeStates { vectors, attentions };
        look(&Activations { tape: &tape, nodes: &nodes, logits, layout: &layout })
    }

    /// The vectors with a row of visits for each example: with history, of all that it sees.
    fn aggregate<E: Engine>(
        &self,
        engine: &mut E,
        layout: &Layout<'_>,
        vectors: NodeVectors<E>,
        pass: Pass,
    ) -> NodeVectors<E> {
        match &self.aggregator {
            None => vectors,
            Some(aggregator) => {
                let visits = aggregator.forward(engine, &vectors.visits, &layout.steps, pass);
                NodeVectors { visits, ..vectors }
            }
        }
    }

    /// The share of these visits in an auxiliary loss, and the nodes that are wanted.
    fn forward<E: Engine>(
        &self,
        engine: &mut E,
        layout: &Layout<'_>,
        wanted: Reach,
        pass: Pass,
    ) -> (f64, NodeStates<E>) {
        let (ids, visits) = (layout.ids(), &layout.visits);
        let embedded = engine.embed(self.embedding, self.width, &ids);
        let given = |matrix: fn(&Visit) -> Vec<f32>| compact(layout, matrix);
        let prior = || match self.config.is_directed() {
            true => given(directed_prior),
            false => visits.iter().map(|visit| &visit.prior[..]).collect::<Vec<_>>().concat(),
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
            Layers::Logistic | Layers::Explainer(_) => logistic::forward(engine, embedded),
            Layers::Mime(mime) => {
                let pairs = [given(mime::orders), given(mime::members)];
                return mime.forward(engine, &embedded, [&pairs[0], &pairs[1]], visits, pass);
            }
        };
        (0.0, nodes)
    }
}

/// How many nodes the visits of some examples have, each visit once.
fn nodes(examples: &[Example]) -> usize {
    let mut count = NodeCount::default();
    examples.iter().for_each(|example| count.add(example));
    count.nodes
}

/// A tape for the visits of some examples.
fn tape<'a, T: Number>(
    weights: &'a Weights<T>,
    layout: &'a Layout<'_>,
    pool: &'a mut Pool<T>,
    learns: bool,
) -> Tape<'a, T> {
    Tape::new(weights, layout.graphs(), pool, learns).with_sequences(layout.sequences())
}

/// The pair numbers of all visits, out of a matrix over the nodes of each.
fn compact(layout: &Layout<'_>, matrix: impl Fn(&Visit) -> Vec<f32>) -> Vec<f32> {
    let graphs = layout.graphs();
    let mut all = vec![0.0; graphs.iter().map(Pairs::len).sum()];
    let mut offset = 0;
    for (visit, pairs) in layout.visits.iter().zip(graphs) {
        pairs.compact(&matrix(visit), &mut all[offset..]);
        offset += pairs.len();
    }
    all
}

/// P of the pairs that look away from the visit, its rows normalised again.
fn directed_prior(visit: &Visit) -> Vec<f32> {
    let nodes = visit.nodes();
    let mut matrix = vec![0.0; nodes * nodes];
    visit.allowed.expand(&visit.prior, &mut matrix);
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
    layout: &'a Layout<'a>,
}

impl<T: Number> Activations<'_, T> {
    /// The last hidden state of every node, row after row, visit after visit.
    pub fn nodes(&self) -> &[T] {
        self.tape.data(&self.nodes.vectors.nodes)
    }

    /// The representation of every visit, row after row; with history, of all that each example sees.
    pub fn visits(&self) -> &[T] {
        self.tape.data(&self.nodes.vectors.visits)
    }

    /// The logits of labels or of hidden codes, row after row; `None` for edges, or if no code is hidden. Of
    /// a code that may be of any kind they are those of all codes.
    pub fn logits(&self) -> Option<&[T]> {
        self.logits.as_ref().map(|logits| self.tape.data(logits))
    }

    /// The attention of each block, of each of its heads, as a matrix over the nodes of each example's visit.
    pub fn attentions(&self) -> Vec<Vec<Vec<Vec<T>>>> {
        let expand = |attention| {
            let all = self.tape.attention(attention);
            let start = |start: &mut usize, pairs: &Pairs| {
                *start += pairs.len();
                Some(*start - pairs.len())
            };
            let starts: Vec<usize> = self.layout.graphs().iter().scan(0, start).collect();
            let one = |visit: &usize| {
                let pairs = &self.layout.graphs()[*visit];
                let mut matrix = vec![T::ZERO; pairs.nodes() * pairs.nodes()];
                pairs.expand(&all[starts[*visit]..], &mut matrix);
                matrix
            };
            self.layout.own.iter().map(one).collect()
        };
        self.nodes.attentions.iter().map(|heads| heads.iter().map(expand).collect()).collect()
    }
}
