//! What makes one vector of the vectors of a subject's visits: the sequence aggregator that the paper leaves
//! to later work (its footnote 1).
//!
//! ```text
//! x(v) = visit(v) + since(v) + ago(v)
//! h    = x(asked) + GRU(x)                            gru
//! h    = x(asked) + max over v of relu(W x(v..) + b)  cnn
//! h    = MLP(softmax(Q K' / sqrt(d)) V)               attention, of the visit asked about to all
//! ```
//!
//! | symbol | parameter | shape |
//! |---|---|---|
//! | since(v), by the bucket of the time since the visit before | `history.since` | `[18, width]` |
//! | ago(v), by the bucket of the time to the question | `history.ago` | `[18, width]` |
//! | GRU: W_i, b_i; W_h, b_h, gates in the order reset, update, new | `history.input`, `history.state` | `[width, 3 width]`, `[3 width]` |
//! | W, b over a visit and those before it, the latest first | `history.filter` | `[kernel width, width]`, `[width]` |
//! | Q, K, V and MLP | `history.blocks.0`, as a block of Transformer | |
//!
//! The visit asked about is added to what `gru` and `cnn` say of all, so that they only have to say what
//! history adds; a block of attention does so by itself.

use gct_kernels::engine::{Engine, Linear, Reach, Recurrent};
use gct_kernels::rows::Activation;
use gct_kernels::weights::{Dense, Vector};

use super::attention::{AttentionConfig, Heads};
use super::block::{Dropouts, Mlp};
use super::layout::Steps;
use super::{Config, Pass};
use crate::error::{Error, Result};
use crate::history::{Aggregator as Kind, History, TIME_BUCKETS};
use crate::parameters::Parameters;

/// The aggregator of a model.
#[derive(Clone)]
pub(super) struct Aggregator {
    since: Vector,
    ago: Vector,
    width: usize,
    layers: Layers,
}

#[derive(Clone)]
enum Layers {
    Gru { input: (Dense, Vector), state: Recurrent },
    Cnn { filter: (Dense, Vector), kernel: usize },
    Attention(Box<(Heads, Mlp)>),
}

impl Aggregator {
    /// That of a model, if it has one: a bag of codes needs none.
    ///
    /// # Errors
    /// If the model has no vectors to aggregate.
    pub(super) fn new(
        history: &History,
        config: &Config,
        width: usize,
        parameters: &mut Parameters,
    ) -> Result<Option<Self>> {
        let mut layer = |name: &str, inputs: usize, outputs: usize| {
            let weight = parameters.matrix(&format!("history.{name}.weight"), inputs, outputs);
            (weight, parameters.vector(&format!("history.{name}.bias"), outputs, 0.0))
        };
        let layers = match history.aggregator {
            Kind::None | Kind::Bag => return Ok(None),
            Kind::Gru => {
                let input = layer("input", width, 3 * width);
                let (weight, bias) = layer("state", width, 3 * width);
                Layers::Gru { input, state: Recurrent { weight, bias } }
            }
            Kind::Cnn => {
                let filter = layer("filter", history.kernel * width, width);
                Layers::Cnn { filter, kernel: history.kernel }
            }
            Kind::Attention => {
                let config = AttentionConfig::default();
                let heads = Heads::new("history.blocks.0", width, true, &config, parameters);
                let mlp = Mlp::new("history.blocks.0", 0, width, Dropouts::default(), parameters);
                Layers::Attention(Box::new((heads, mlp)))
            }
        };
        let mut table = |name: &str| parameters.zeros(&format!("history.{name}"), TIME_BUCKETS, width);
        let (since, ago) = (table("since"), table("ago"));
        if let Config::Logistic(_) | Config::Explainer(_) = config {
            let allowed = "none or bag with logistic regression, which has no vectors of visits";
            return Err(Error::setting("history.aggregator", history.aggregator.name(), allowed));
        }
        Ok(Some(Aggregator { since, ago, width, layers }))
    }

    /// A row for each example, of a row for each visit.
    pub(super) fn forward<E: Engine>(
        &self,
        engine: &mut E,
        visits: &E::Matrix,
        steps: &Steps,
        pass: Pass,
    ) -> E::Matrix {
        let mut x = engine.steps(visits, &steps.visits);
        for (table, buckets) in [(self.since, &steps.since), (self.ago, &steps.ago)] {
            let times = engine.embed(table, self.width, buckets);
            x = engine.add(&x, &times);
        }
        let said = match &self.layers {
            Layers::Gru { input: (weight, bias), state } => {
                let gates = engine.linear(&x, linear(*weight, *bias, Activation::Identity));
                engine.gru(&gates, *state)
            }
            Layers::Cnn { filter: (weight, bias), kernel } => {
                let windows = engine.windows(&x, *kernel);
                let filtered = engine.linear(&windows, linear(*weight, *bias, Activation::Relu));
                engine.largest(&filtered)
            }
            Layers::Attention(block) => {
                let (heads, mlp) = &**block;
                let projected = heads.project(engine, &[], &x);
                let attention = heads.attend(engine, &x, &projected, None, None, Reach::FIRST);
                let mixed = heads.mix(engine, &attention, &projected, Reach::FIRST);
                return mlp.forward(engine, &x, &mixed, Reach::FIRST, pass);
            }
        };
        let asked = engine.within(&x, Reach::FIRST);
        engine.add(&asked, &said)
    }
}

fn linear(weight: Dense, bias: Vector, activation: Activation) -> Linear {
    Linear { weight, bias: Some((bias, activation)), dropout: None }
}
