//! The head of a model: from vectors of nodes to the answer of a question, and its loss.

use std::ops::Range;

use gct_kernels::engine::{DecoderParameters, Engine, Linear, Reach};
use gct_kernels::rows::Activation;
use gct_kernels::weights::{Dense, Vector};
use serde::{Deserialize, Serialize};

use super::{edges, hidden_code, hidden_diagnosis, labels};
use crate::batch::{EmbeddingRows, Example};
use crate::error::{Error, Result};
use crate::parameters::Parameters;
use crate::record::CodeKind;

/// Which head, as settings and files of weights have it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeadConfig {
    /// Whether two nodes are connected, from the inner product of their vectors, with a learned scale and
    /// bias: inner products of normalised vectors are far too large for logits.
    Edges {
        /// The log-odds of an edge, to begin with.
        initial_bias: f64,
        /// Whether each pair of kinds has a bias of its own. Inner products alone cannot tell kinds apart:
        /// what two treatments share with a diagnosis, they share with each other.
        #[serde(default)]
        kinds: bool,
    },
    /// The same from the inner product as it is, as the paper has it.
    RawEdges,
    /// One or more labels of the visit.
    Labels {
        /// How many.
        count: usize,
    },
    /// Which diagnosis is hidden, from its node; from the visit for Shallow and Deep, whose nodes do not see
    /// each other.
    HiddenDiagnosis,
    /// Which code is hidden, likewise: a logit for each diagnosis, treatment and lab.
    HiddenCode,
    /// Which diagnoses the next visit has: a label for each of the vocabulary.
    NextDiagnoses,
}

/// More labels than anybody has.
pub(super) const MOST_LABELS: usize = 100_000;

/// What a head must know of the model that it stands on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backbone {
    pub(crate) name: &'static str,
    /// Numbers per node, and per visit.
    pub(crate) width: usize,
    /// Whether its vectors of nodes can be compared with each other.
    pub(crate) compares_nodes: bool,
    /// Whether nodes see each other. If they do not, only the visit knows about all of them.
    pub(crate) nodes_see_others: bool,
    /// Whether it answers by itself, with no head to come after it.
    pub(crate) explains: bool,
    /// Whether the vector of its visit is the logits of labels, with nothing to come after it.
    pub(crate) sums_logits: bool,
}

/// Vectors of nodes that a model has computed.
pub(crate) struct NodeVectors<E: Engine> {
    /// One row per node that the head looks at.
    pub(crate) nodes: E::Matrix,
    /// One row per visit.
    pub(crate) visits: E::Matrix,
}

impl HeadConfig {
    /// How many labels it predicts.
    pub(crate) fn labels(&self) -> usize {
        match self {
            HeadConfig::Labels { count } => *count,
            HeadConfig::Edges { .. }
            | HeadConfig::RawEdges
            | HeadConfig::HiddenDiagnosis
            | HeadConfig::HiddenCode
            | HeadConfig::NextDiagnoses => 0,
        }
    }

    /// Refuses what makes no sense, or does not go with the model.
    ///
    /// # Errors
    /// The first thing found.
    pub(crate) fn check(&self, backbone: Backbone) -> Result<()> {
        match self {
            HeadConfig::Edges { .. }
            | HeadConfig::RawEdges
            | HeadConfig::HiddenDiagnosis
            | HeadConfig::HiddenCode
            | HeadConfig::NextDiagnoses
                if backbone.sums_logits =>
            {
                Err(Error::setting(
                    "model",
                    backbone.name,
                    "another model, such as gct or shallow: it predicts labels of the visit and nothing else",
                ))
            }
            HeadConfig::RawEdges | HeadConfig::HiddenCode | HeadConfig::NextDiagnoses
                if backbone.explains =>
            {
                Err(Error::setting(
                    "model",
                    backbone.name,
                    "another model: it predicts edges, a hidden diagnosis, and labels that say whether a diagnosis led \
                 to a treatment",
                ))
            }
            HeadConfig::Edges { .. } | HeadConfig::RawEdges if !backbone.compares_nodes => {
                Err(Error::setting(
                    "model",
                    backbone.name,
                    "a model with a vector for each node, to reconstruct edges",
                ))
            }
            HeadConfig::Edges { initial_bias, .. } if !initial_bias.is_finite() => {
                Err(Error::setting("head.initial_bias", initial_bias, "a number"))
            }
            HeadConfig::Labels { count } => labels::check(*count),
            HeadConfig::Edges { .. }
            | HeadConfig::RawEdges
            | HeadConfig::HiddenDiagnosis
            | HeadConfig::HiddenCode
            | HeadConfig::NextDiagnoses => Ok(()),
        }
    }
}

/// The layers of a head.
#[derive(Clone)]
pub(crate) enum Head {
    /// Scale and bias, if inner products have them.
    Edges(Option<DecoderParameters>),
    /// Logits from the visit: of labels, or of the diagnoses of the next visit.
    Labels {
        /// How many.
        count: usize,
        /// The layer; none if the vector of the visit is the logits.
        output: Option<Output>,
    },
    /// Logits from a node, or from the visit.
    HiddenDiagnosis {
        /// The layer.
        output: Output,
        /// Whether from the visit.
        from_visit: bool,
    },
    /// The same of all codes.
    HiddenCode {
        /// The layer.
        output: Output,
        /// Whether from the visit.
        from_visit: bool,
        /// How many codes there are of each kind.
        rows: EmbeddingRows,
    },
}

impl Head {
    /// Names its parameters.
    ///
    /// # Errors
    /// If the head makes no sense or does not go with the model.
    pub(crate) fn new(
        head: &HeadConfig,
        backbone: Backbone,
        rows: EmbeddingRows,
        parameters: &mut Parameters,
    ) -> Result<Self> {
        head.check(backbone)?;
        let (width, diagnoses) = (backbone.width, rows.codes(CodeKind::Diagnosis));
        if backbone.explains {
            return Ok(Head::Labels { count: head.labels(), output: None });
        }
        let without_diagnoses =
            |head: &str| Err(Error::setting("head", head, "labels or edges, because there are no diagnoses"));
        match head {
            HeadConfig::Edges { initial_bias, kinds } => {
                let scale = parameters.vector("head.scale", 1, 1.0 / (width as f64).sqrt());
                let biases = if *kinds { edges::pairs_of_kinds(rows) } else { 1 };
                let bias = parameters.vector("head.bias", biases, *initial_bias);
                Ok(Head::Edges(Some(DecoderParameters { scale, bias })))
            }
            HeadConfig::RawEdges => Ok(Head::Edges(None)),
            HeadConfig::Labels { count } => {
                let output = (!backbone.sums_logits).then(|| Output::new("head", width, *count, parameters));
                Ok(Head::Labels { count: *count, output })
            }
            HeadConfig::HiddenCode if hidden_code::count(rows) == 0 => {
                Err(Error::setting("head", "hidden_code", "labels, because there are no codes"))
            }
            HeadConfig::HiddenDiagnosis if diagnoses == 0 => without_diagnoses("hidden_diagnosis"),
            HeadConfig::NextDiagnoses if diagnoses == 0 => without_diagnoses("next_diagnoses"),
            HeadConfig::HiddenDiagnosis => Ok(Head::HiddenDiagnosis {
                output: Output::new("head", width, diagnoses, parameters),
                from_visit: !backbone.nodes_see_others,
            }),
            HeadConfig::HiddenCode => Ok(Head::HiddenCode {
                output: Output::new("head", width, hidden_code::count(rows), parameters),
                from_visit: !backbone.nodes_see_others,
                rows,
            }),
            HeadConfig::NextDiagnoses => Ok(Head::Labels {
                count: diagnoses,
                output: Some(Output::new("head", width, diagnoses, parameters)),
            }),
        }
    }

    /// Whether it learns from true edges.
    pub(crate) fn learns_edges(&self) -> bool {
        match self {
            Head::Edges(_) => true,
            Head::Labels { .. } | Head::HiddenDiagnosis { .. } | Head::HiddenCode { .. } => false,
        }
    }

    /// How many terms the loss of these examples is the mean of.
    pub(crate) fn terms(&self, examples: &[Example]) -> usize {
        match self {
            Head::Edges(_) => edges::terms(examples),
            Head::Labels { .. } => labels::terms(examples),
            Head::HiddenDiagnosis { .. } | Head::HiddenCode { .. } => examples.len(),
        }
    }

    /// The nodes whose vectors it looks at.
    pub(crate) fn reach(&self) -> Reach {
        match self {
            Head::Edges(_) | Head::HiddenCode { from_visit: false, .. } => Reach::ALL,
            Head::Labels { .. }
            | Head::HiddenDiagnosis { from_visit: true, .. }
            | Head::HiddenCode { from_visit: true, .. } => Reach::FIRST,
            Head::HiddenDiagnosis { from_visit: false, .. } => Reach::FIRST.further(1),
        }
    }

    /// Whether it looks at vectors of visits and not at those of nodes.
    pub(crate) fn looks_at_visits(&self) -> bool {
        match self {
            Head::Labels { .. } => true,
            Head::Edges(_) | Head::HiddenDiagnosis { .. } | Head::HiddenCode { .. } => false,
        }
    }

    /// Whether these examples have what it answers.
    pub(crate) fn can_answer(&self, examples: &[Example]) -> bool {
        match self {
            Head::Edges(_) | Head::Labels { .. } => true,
            Head::HiddenDiagnosis { .. } | Head::HiddenCode { .. } => {
                examples.iter().all(|example| example.visit.hidden.is_some())
            }
        }
    }

    /// The scale and bias of edges, if edges are what it predicts.
    pub(crate) fn decoder(&self) -> Option<Option<DecoderParameters>> {
        match self {
            Head::Edges(decoder) => Some(*decoder),
            Head::Labels { .. } | Head::HiddenDiagnosis { .. } | Head::HiddenCode { .. } => None,
        }
    }

    /// The sizes of each example's groups of nodes, as the decoder of edges knows them.
    pub(crate) fn groups(decoder: Option<DecoderParameters>, examples: &[Example]) -> Vec<Vec<usize>> {
        edges::groups(decoder, examples)
    }

    /// The logits of each visit, or of each hidden diagnosis; `None` for edges.
    pub(crate) fn logits<E: Engine>(
        &self,
        engine: &mut E,
        vectors: &NodeVectors<E>,
        examples: &[Example],
    ) -> Option<E::Matrix> {
        match self {
            Head::Edges(_) => None,
            Head::Labels { output: None, .. } => Some(vectors.visits.clone()),
            Head::Labels { output: Some(output), .. }
            | Head::HiddenDiagnosis { output, from_visit: true }
            | Head::HiddenCode { output, from_visit: true, .. } => {
                Some(output.logits(engine, &vectors.visits))
            }
            Head::HiddenDiagnosis { output, from_visit: false }
            | Head::HiddenCode { output, from_visit: false, .. } => {
                let selected = engine.select(&vectors.nodes, &hidden_diagnosis::nodes(examples));
                Some(output.logits(engine, &selected))
            }
        }
    }

    /// Of the logits of an example, those of what its answer can be: all, or those of the codes of the hidden
    /// one's kind.
    pub(crate) fn answerable(&self, example: &Example, logits: usize) -> Range<usize> {
        match self {
            Head::Edges(_) | Head::Labels { .. } | Head::HiddenDiagnosis { .. } => 0..logits,
            Head::HiddenCode { rows, .. } => hidden_code::of_kind(*rows, example),
        }
    }

    /// The share of these examples in the mean loss of a batch with so many terms. Targets are smoothed, but
    /// for edges, whose settings refuse it; positives of labels count as much as `positives` says.
    pub(crate) fn loss<E: Engine>(
        &self,
        engine: &mut E,
        vectors: &NodeVectors<E>,
        examples: &[Example],
        batch_terms: usize,
        smoothing: f64,
        positives: &[f64],
    ) -> f64 {
        let share = 1.0 / batch_terms as f64;
        let logits = self.logits(engine, vectors, examples);
        let loss = match (self, logits) {
            (Head::Edges(decoder), _) => edges::loss(*decoder, engine, &vectors.nodes, examples, share),
            (Head::Labels { count, .. }, Some(logits)) => {
                labels::loss(*count, engine, &logits, examples, smoothing, positives, share)
            }
            (Head::HiddenDiagnosis { .. }, Some(logits)) => {
                hidden_diagnosis::batch_loss(engine, &logits, examples, smoothing, share)
            }
            (Head::HiddenCode { rows, .. }, Some(logits)) => {
                hidden_code::batch_loss(engine, &logits, (examples, *rows), smoothing, share)
            }
            (Head::Labels { .. } | Head::HiddenDiagnosis { .. } | Head::HiddenCode { .. }, None) => {
                unreachable!("only edges have no logits")
            }
        };
        share * loss
    }
}

/// A linear layer that gives logits.
#[derive(Clone)]
pub(crate) struct Output {
    weight: Dense,
    bias: Vector,
}

impl Output {
    pub(crate) fn new(name: &str, width: usize, outputs: usize, parameters: &mut Parameters) -> Self {
        Output {
            weight: parameters.matrix(&format!("{name}.weight"), width, outputs),
            bias: parameters.vector(&format!("{name}.bias"), outputs, 0.0),
        }
    }

    pub(crate) fn logits<E: Engine>(&self, engine: &mut E, x: &E::Matrix) -> E::Matrix {
        let bias = Some((self.bias, Activation::Identity));
        engine.linear(x, Linear { weight: self.weight, bias, dropout: None })
    }
}
