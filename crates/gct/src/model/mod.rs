//! GCN, Transformer and GCT are the same block; only the matrix that mixes nodes differs. Shallow and Deep
//! are layers on each node and a sum, Logistic is the sum alone. Each has a file of its own; what they share
//! is in `block` and `attention`. All are written in the operations of an `Engine`: `play` runs them on this
//! processor, and other engines can take a model through `run`. A `Learner` trains a model; one that has
//! learned is asked as a `Frozen` one, which is faster.
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
//! | `logistic` | nothing | `logistic.rs`; fitted by `strengths.rs` |
//! | `explainer` | nothing: it reads what was counted | `explainer.rs` |
//!
//! With history, `aggregator.rs` makes one vector of those of a subject's visits; `layout.rs` has each visit
//! computed once.

use gct_kernels::Number;
use gct_kernels::engine::Engine;
pub use gct_kernels::tape::Pool;
use gct_kernels::weights::Weights;

use crate::batch::{EmbeddingRows, Example};
use crate::error::Result;
use crate::history::History;
use crate::parameters::Parameters;
use crate::question::HeadConfig;

mod adam;
mod aggregator;
mod attention;
mod block;
mod chunks;
mod config;
mod explainer;
mod feed_forward;
mod frozen;
mod gcn;
mod gct;
mod layout;
mod learner;
mod logistic;
mod mime;
mod network;
mod strengths;
mod tape_learner;
mod transfer;
mod transformer;
mod weights_file;

pub use adam::{Gradient, Moments};
pub use attention::{AttentionConfig, Join, Normalizer};
pub use block::Dropouts;
pub use config::Config;
pub use feed_forward::{DeepConfig, ShallowConfig};
pub(crate) use frozen::LoadedModel;
pub use frozen::{Frozen, Scratch};
pub use gcn::GcnConfig;
pub(crate) use gcn::normalized_adjacency;
pub use gct::{GctConfig, PriorRole, Regularizer};
pub use layout::Layout;
pub use learner::{Learner, Learning};
pub use logistic::LogisticConfig;
pub use mime::MimeConfig;
pub use network::Activations;
use network::{Network, NodeStates};
pub(crate) use strengths::{Observed, Strengths};
pub use tape_learner::TapeLearner;
pub use transformer::TransformerConfig;

/// A model with its head and its weights. It learns and is saved; what is asked about encounters is asked of
/// a [`Frozen`] one.
///
/// ```
/// use gct::batch::{EmbeddingRows, Encoding};
/// use gct::model::{Config, Model, Pool};
/// use gct::prior::{Counter, PriorSettings};
/// use gct::question::{HeadConfig, Hide, Question};
/// use gct::record::{Encounter, PerKind};
///
/// // A vocabulary of six diagnoses, four treatments and two labs, and one encounter to count.
/// let codes = PerKind { diagnosis: vec![0, 5], treatment: vec![3], lab: vec![1], context: vec![] };
/// let encounter = Encounter::new(codes);
/// let mut counter = Counter::new(PerKind { diagnosis: 6, treatment: 4, lab: 2, ..PerKind::default() });
/// counter.add(&encounter);
/// let (prior, settings) = (counter.finish(), PriorSettings::default());
/// let rows = EmbeddingRows::new(PerKind { diagnosis: 6, treatment: 4, lab: 2, ..PerKind::default() });
/// let encoding = Encoding { rows, prior: &prior, settings: &settings };
///
/// let model = Model::<f32>::new(&Config::named("gct")?, &HeadConfig::HiddenDiagnosis, rows, 0)?;
/// let sample = Question::HiddenDiagnosis.sample(&encounter, Hide::Position(1));
/// let logits = model.frozen().answers(&[encoding.example(&sample)], &mut Pool::default());
/// assert_eq!(logits[0].len(), 6, "one for each diagnosis");
/// # Ok::<(), gct::Error>(())
/// ```
pub struct Model<T> {
    network: Network,
    rows: EmbeddingRows,
    head_config: HeadConfig,
    history: History,
    parameters: Parameters,
    weights: Weights<T>,
}

/// What a pass over some examples is for.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// Decides what is dropped; `None` for evaluation, where nothing is.
    pub dropout_key: Option<u32>,
    /// How many nodes, and how many terms of the loss, the whole batch has: losses are means over the batch,
    /// of which these examples may be a part.
    pub batch_nodes: usize,
    /// See above.
    pub batch_terms: usize,
    /// Index of the first node in the batch.
    pub first_node: usize,
    /// The share of each target that is spread evenly over all answers; 0 for evaluation.
    pub label_smoothing: f64,
    /// What a positive of each label counts in the loss, beside 1 for a negative; empty where all count
    /// alike.
    pub positives: &'a [f64],
    /// Whether the regulariser is wanted. Without it, only what the prediction needs is computed.
    pub regularizes: bool,
}

impl Pass<'static> {
    /// One that has no loss.
    const LOOKING: Self = Pass {
        dropout_key: None,
        batch_nodes: 1,
        batch_terms: 1,
        first_node: 0,
        label_smoothing: 0.0,
        positives: &[],
        regularizes: false,
    };
}

/// What a model makes of some examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The share of these examples in the batch's mean loss of prediction.
    pub prediction: f64,
    /// And in its regulariser, not yet weighted: GCT's divergence, MiME's auxiliary loss. 0 if it was not
    /// wanted.
    pub regularizer: f64,
}

impl Outcome {
    fn sum(parts: &[Outcome]) -> Outcome {
        Outcome {
            prediction: parts.iter().map(|part| part.prediction).sum(),
            regularizer: parts.iter().map(|part| part.regularizer).sum(),
        }
    }
}

impl<T: Number> Model<T> {
    /// A model with random weights.
    ///
    /// # Errors
    /// If a setting makes no sense, or the head does not go with the model.
    pub fn new(config: &Config, head: &HeadConfig, rows: EmbeddingRows, seed: u64) -> Result<Self> {
        Model::with_history(config, &History::default(), head, rows, seed)
    }

    /// The same for one that sees earlier visits.
    ///
    /// # Errors
    /// As [`Model::new`]; if the model or the head does not go with history.
    pub fn with_history(
        config: &Config,
        history: &History,
        head: &HeadConfig,
        rows: EmbeddingRows,
        seed: u64,
    ) -> Result<Self> {
        Model::build((config, history), head, rows, |parameters| Ok(parameters.initialize(seed)))
    }

    /// A model with the weights that `values` gives for its parameters.
    fn build(
        (config, history): (&Config, &History),
        head: &HeadConfig,
        rows: EmbeddingRows,
        values: impl FnOnce(&Parameters) -> Result<Vec<T>>,
    ) -> Result<Self> {
        let mut parameters = Parameters::default();
        let network = Network::new((config, history), head, rows, &mut parameters)?;
        let weights = Weights::new(parameters.plan().clone(), values(&parameters)?);
        let (head_config, history) = (head.clone(), history.clone());
        Ok(Model { network, rows, head_config, history, parameters, weights })
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.network.config
    }

    /// What it sees of earlier encounters.
    pub fn history(&self) -> &History {
        &self.history
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
        self.network.width
    }

    /// A row of the embedding.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn embedding(&self, row: u32) -> &[T] {
        let width = self.width();
        &self.network.embedding.of(self.weights.values())[row as usize * width..][..width]
    }

    /// The weights.
    pub fn weights(&self) -> &Weights<T> {
        &self.weights
    }

    /// The weights, to be changed.
    pub fn weights_mut(&mut self) -> &mut Weights<T> {
        &mut self.weights
    }

    /// The same model with other weights.
    ///
    /// # Panics
    /// If there are more or fewer than it has parameters.
    pub(crate) fn with_weights(&self, values: Vec<T>) -> Self {
        Model {
            network: self.network.clone(),
            rows: self.rows,
            head_config: self.head_config.clone(),
            history: self.history.clone(),
            parameters: self.parameters.clone(),
            weights: Weights::new(self.parameters.plan().clone(), values),
        }
    }

    /// Moves the weights against the sum of these gradients, which are zero afterwards: one step of AdamW,
    /// which is Adam if weights do not decay.
    ///
    /// # Panics
    /// As [`Moments::step`].
    pub fn step(&mut self, moments: &mut Moments<T>, gradients: &mut [Gradient<T>], learning: Learning) {
        let Model { parameters, weights, .. } = self;
        weights.update(|weights| {
            adam::decay(weights, parameters, learning);
            moments.step(weights, gradients, learning);
        });
    }

    /// Refuses data that lack what the model or its head must be given.
    ///
    /// # Errors
    /// If edges are needed and not known.
    pub fn check_data(&self, edges_are_known: bool) -> Result<()> {
        self.network.check_data(edges_are_known)
    }

    /// A pass over a whole batch without dropout.
    pub fn pass(&self, batch: &[Example], regularizes: bool) -> Pass<'static> {
        self.network.pass(batch, regularizes)
    }

    /// The visits of some examples, each once, and the pairs of nodes that this model mixes along.
    pub fn layout<'a>(&self, examples: &'a [Example]) -> Layout<'a> {
        self.network.layout(examples)
    }

    /// The loss of some examples of a batch, on this processor; with gradients, theirs is added.
    ///
    /// # Panics
    /// If an example lacks what the model or the head needs: edges, labels, a hidden diagnosis.
    pub fn play(
        &self,
        examples: &[Example],
        pass: Pass<'_>,
        pool: &mut Pool<T>,
        gradients: Option<&mut [T]>,
    ) -> Outcome {
        self.network.play(&self.weights, examples, pass, pool, gradients)
    }

    /// The loss of some examples of a batch, on any engine, which has the graphs and the sequences of
    /// their [`Model::layout`].
    ///
    /// # Panics
    /// As [`Model::play`].
    pub fn run<E: Engine>(
        &self,
        engine: &mut E,
        layout: &Layout<'_>,
        examples: &[Example],
        pass: Pass<'_>,
    ) -> Outcome {
        self.network.run(engine, layout, examples, pass)
    }

    /// Gives `look` what was computed on the way of a forward pass as it is learned: hidden states of the
    /// nodes, logits, and attention of each block.
    pub fn look<R>(&self, examples: &[Example], look: impl FnOnce(&Activations<'_, T>) -> R) -> R {
        self.network.look(&self.weights, examples, look)
    }
}
