//! What is predicted from the nodes, and its loss.

use std::ops::Range;

use gct_kernels::engine::{Connected, DecoderParameters, Engine, Linear, Reach};
use gct_kernels::rows::Activation;
use gct_kernels::weights::{Dense, Vector};
use serde::{Deserialize, Serialize};

use super::parameters::Parameters;
use super::{Config, Nodes, Pass};
use crate::batch::{EmbeddingRows, Example};
use crate::error::{Error, Result};
use crate::record::CodeKind;

/// Which prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeadConfig {
    /// Whether two nodes are connected, from the inner product of their vectors, with a learned scale and bias: inner products
    /// of normalised vectors are far too large for logits.
    Edges {
        /// The log-odds of an edge, to begin with.
        initial_bias: f64,
        /// Whether each pair of kinds has a bias of its own. Inner products alone cannot tell kinds apart: what two
        /// treatments share with a diagnosis, they share with each other.
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
    /// Which diagnosis is hidden, from its node; from the visit for Shallow and Deep, whose nodes do not see each other.
    HiddenDiagnosis,
}

/// Of visit, diagnosis, treatment and lab, each with each and with itself.
const PAIRS_OF_KINDS: usize = (CodeKind::ALL.len() + 1) * (CodeKind::ALL.len() + 2) / 2;

/// More labels than anybody has.
const MOST_LABELS: usize = 100_000;

impl HeadConfig {
    /// Refuses what makes no sense, or does not go with the model.
    ///
    /// # Errors
    /// The first thing found.
    pub fn check(&self, config: &Config) -> Result<()> {
        let has_nodes = !matches!(config, Config::Deep(_) | Config::Mime(_));
        match self {
            HeadConfig::Edges { .. } | HeadConfig::RawEdges if !has_nodes => Err(Error::setting(
                "model",
                config.name(),
                "a model with a vector for each node, to reconstruct edges",
            )),
            HeadConfig::Edges { initial_bias, .. } if !initial_bias.is_finite() => {
                Err(Error::setting("head.initial_bias", initial_bias, "a number"))
            }
            HeadConfig::Labels { count } if !(1..=MOST_LABELS).contains(count) => {
                Err(Error::setting("head.count", count, &format!("a whole number from 1 to {MOST_LABELS}")))
            }
            _ => Ok(()),
        }
    }
}

/// The head of a model.
#[derive(Clone)]
pub(super) enum Head {
    /// Scale and bias, if inner products have them.
    Edges(Option<DecoderParameters>),
    /// Logits from the visit.
    Labels(Output),
    /// Logits from a node, or from the visit.
    HiddenDiagnosis {
        /// The layer.
        output: Output,
        /// Whether from the visit.
        from_visit: bool,
    },
}

/// A linear layer that gives logits.
#[derive(Clone)]
pub(super) struct Output {
    weight: Dense,
    bias: Vector,
}

/// What a head should have said. Edges and hidden diagnoses are in the examples.
pub enum Targets<'a> {
    /// Nothing beyond the examples.
    Examples,
    /// The labels of each example; `None` is left out.
    Labels(&'a [Vec<Option<bool>>]),
}

impl<'a> Targets<'a> {
    /// Those of some of the examples.
    pub(super) fn slice(&self, range: Range<usize>) -> Targets<'a> {
        match self {
            Targets::Examples => Targets::Examples,
            Targets::Labels(labels) => Targets::Labels(&labels[range]),
        }
    }
}

impl Head {
    /// How many terms the loss of these examples is the mean of.
    pub(super) fn terms(&self, examples: &[Example], targets: &Targets<'_>) -> usize {
        match (self, targets) {
            (Head::Edges(_), _) => {
                examples.iter().map(|example| example.nodes() * (example.nodes() - 1)).sum()
            }
            (Head::Labels(_), Targets::Labels(labels)) => labels.iter().flatten().flatten().count(),
            _ => examples.len(),
        }
    }

    pub(super) fn new(
        head: &HeadConfig,
        config: &Config,
        rows: EmbeddingRows,
        parameters: &mut Parameters,
    ) -> Result<Self> {
        let width = config.width();
        head.check(config)?;
        match head {
            HeadConfig::Edges { initial_bias, kinds } => {
                let scale = parameters.vector("head.scale", 1, 1.0 / (width as f64).sqrt());
                let bias =
                    parameters.vector("head.bias", if *kinds { PAIRS_OF_KINDS } else { 1 }, *initial_bias);
                Ok(Head::Edges(Some(DecoderParameters { scale, bias })))
            }
            HeadConfig::RawEdges => Ok(Head::Edges(None)),
            HeadConfig::HiddenDiagnosis if rows.codes(CodeKind::Diagnosis) == 0 => Err(Error::setting(
                "head",
                "hidden_diagnosis",
                "labels or edges, because there are no diagnoses",
            )),
            HeadConfig::Labels { count } => Ok(Head::Labels(Output::new("head", width, *count, parameters))),
            HeadConfig::HiddenDiagnosis => Ok(Head::HiddenDiagnosis {
                output: Output::new("head", width, rows.codes(CodeKind::Diagnosis), parameters),
                from_visit: matches!(config, Config::Shallow(_) | Config::Deep(_)),
            }),
        }
    }

    /// The nodes whose vectors it looks at.
    pub(super) fn reach(&self) -> Reach {
        match self {
            Head::Edges(_) => Reach::ALL,
            Head::Labels(_) | Head::HiddenDiagnosis { from_visit: true, .. } => Reach::FIRST,
            Head::HiddenDiagnosis { .. } => Reach::FIRST.further(1),
        }
    }

    /// Whether these examples ask what it answers.
    pub(super) fn can_answer(&self, examples: &[Example]) -> bool {
        !matches!(self, Head::HiddenDiagnosis { .. })
            || examples.iter().all(|example| example.hidden.is_some())
    }

    /// The logits of each visit, or of each hidden diagnosis; `None` for edges.
    pub(super) fn logits<E: Engine>(
        &self,
        engine: &mut E,
        nodes: &Nodes<E>,
        examples: &[Example],
    ) -> Option<E::Matrix> {
        match self {
            Head::Edges(_) => None,
            Head::Labels(output) | Head::HiddenDiagnosis { output, from_visit: true } => {
                Some(output.logits(engine, &nodes.visits))
            }
            Head::HiddenDiagnosis { output, .. } => {
                let places: Vec<(usize, usize)> =
                    examples.iter().enumerate().map(|(at, example)| (at, hidden(example).0)).collect();
                let selected = engine.select(&nodes.all, &places);
                Some(output.logits(engine, &selected))
            }
        }
    }

    /// The share of these examples in the batch's mean loss.
    pub(super) fn loss<E: Engine>(
        &self,
        engine: &mut E,
        nodes: &Nodes<E>,
        examples: &[Example],
        targets: &Targets<'_>,
        pass: Pass,
    ) -> f64 {
        let share = 1.0 / pass.batch_terms as f64;
        let logits = self.logits(engine, nodes, examples);
        let loss = match (self, logits) {
            (Head::Labels(output), Some(logits)) => {
                let Targets::Labels(labels) = targets else { panic!("labels are needed to learn labels") };
                assert_eq!(labels.len(), examples.len(), "labels of every example");
                assert!(labels.iter().all(|labels| labels.len() == output.weight.outputs), "all of them");
                engine.label_loss(&logits, labels.iter().flatten().copied(), share)
            }
            (Head::HiddenDiagnosis { .. }, Some(logits)) => {
                engine.class_loss(&logits, examples.iter().map(|example| hidden(example).1 as usize), share)
            }
            (Head::Edges(decoder), _) => {
                let graphs: Vec<Connected<'_>> = examples
                    .iter()
                    .map(|example| Connected { sizes: &example.sizes, edges: known_edges(example) })
                    .collect();
                engine.edge_loss(&nodes.all, *decoder, &graphs, share)
            }
            (_, None) => unreachable!("only edges have no logits"),
        };
        share * loss
    }
}

/// The hidden diagnosis: its node and its id.
fn hidden(example: &Example) -> (usize, u32) {
    example.hidden.expect("a diagnosis is hidden to be guessed")
}

/// The edges.
pub(super) fn known_edges(example: &Example) -> &[(u32, u32)] {
    example.edges.as_ref().expect("models and heads that need edges are refused where there are none")
}

impl Output {
    pub(super) fn new(name: &str, width: usize, outputs: usize, parameters: &mut Parameters) -> Self {
        Output {
            weight: parameters.matrix(&format!("{name}.weight"), width, outputs),
            bias: parameters.vector(&format!("{name}.bias"), outputs, 0.0),
        }
    }

    pub(super) fn logits<E: Engine>(&self, engine: &mut E, x: &E::Matrix) -> E::Matrix {
        let bias = Some((self.bias, Activation::Identity));
        engine.linear(x, Linear { weight: self.weight, bias, dropout: None })
    }
}
