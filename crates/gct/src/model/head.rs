//! What is predicted from the nodes, and its loss.

use std::ops::Range;

use gct_kernels::Number;
use gct_kernels::loss;
use gct_kernels::rows::Activation;
use gct_kernels::tape::{Linear, Matrix, Tape};
use gct_kernels::weights::{Dense, Vector};
use serde::{Deserialize, Serialize};

use super::parameters::Parameters;
use super::{Config, Nodes, Pass};
use crate::batch::{EmbeddingRows, Example};
use crate::error::{Error, Result};

/// Which prediction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "head", rename_all = "snake_case", deny_unknown_fields)]
pub enum HeadConfig {
    /// Whether two nodes are connected, from the inner product of their vectors, with a learned scale and bias: inner products
    /// of normalised vectors are far too large for logits.
    Edges {
        /// The log-odds of an edge, to begin with.
        initial_bias: f64,
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

/// The head of a model.
pub(super) enum Head {
    /// Scale and bias, if inner products have them.
    Edges(Option<Vector>),
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
        let is_deep = matches!(config, Config::Deep(_));
        match head {
            HeadConfig::Edges { .. } | HeadConfig::RawEdges if is_deep => Err(Error::setting(
                "model",
                "deep",
                "a model with a vector for each node, to reconstruct edges",
            )),
            HeadConfig::Edges { initial_bias } => {
                let scale = parameters.vector("head.scale", 1, 1.0 / (width as f64).sqrt());
                parameters.vector("head.bias", 1, *initial_bias);
                Ok(Head::Edges(Some(Vector { len: 2, ..scale })))
            }
            HeadConfig::RawEdges => Ok(Head::Edges(None)),
            HeadConfig::Labels { count: 0 } => Err(Error::setting("count", 0, "at least one label")),
            HeadConfig::Labels { count } => Ok(Head::Labels(Output::new(width, *count, parameters))),
            HeadConfig::HiddenDiagnosis => Ok(Head::HiddenDiagnosis {
                output: Output::new(width, rows.diagnoses(), parameters),
                from_visit: is_deep || matches!(config, Config::Shallow(_)),
            }),
        }
    }

    /// The share of these examples in the batch's mean loss. With gradients, the tape is left ready to go back.
    pub(super) fn loss<T: Number>(
        &self,
        tape: &mut Tape<'_, T>,
        nodes: &Nodes,
        examples: &[Example],
        targets: &Targets<'_>,
        pass: Pass,
        gradients: Option<&mut [T]>,
    ) -> f64 {
        let share = 1.0 / pass.batch_terms as f64;
        match self {
            Head::Edges(decoder) => {
                let edges: Vec<&[(u32, u32)]> = (examples.iter())
                    .map(|example| {
                        &example.edges.as_ref().expect("edges are known where they are predicted")[..]
                    })
                    .collect();
                share * tape.edge_loss(nodes.all, *decoder, &edges, share, gradients)
            }
            Head::Labels(output) => {
                let Targets::Labels(labels) = targets else { panic!("labels are needed to learn labels") };
                let logits = output.logits(tape, nodes.visits);
                let all = labels.iter().flatten();
                let (mut loss, mut d) = (0.0, room(tape, logits));
                for ((logit, label), d) in tape.data(logits).iter().zip(all).zip(&mut d) {
                    let (one, slope) = label.map_or((0.0, T::ZERO), |label| loss::binary(*logit, label));
                    loss += one;
                    *d = slope * T::of(share);
                }
                if gradients.is_some() {
                    tape.seed(logits, d);
                }
                share * loss
            }
            Head::HiddenDiagnosis { output, from_visit } => {
                let hidden = |example: &Example| example.hidden.expect("a diagnosis is hidden to be guessed");
                let from = if *from_visit {
                    nodes.visits
                } else {
                    let rows =
                        tape.first_rows().iter().zip(examples).map(|(row, e)| row + hidden(e).0).collect();
                    tape.select(nodes.all, rows)
                };
                let logits = output.logits(tape, from);
                let mut d = room(tape, logits);
                d.copy_from_slice(tape.data(logits));
                let classes = output.weight.outputs;
                let loss: f64 = (d.chunks_exact_mut(classes).zip(examples))
                    .map(|(logits, example)| loss::classes(logits, hidden(example).1 as usize, share))
                    .sum();
                if gradients.is_some() {
                    tape.seed(logits, d);
                }
                share * loss
            }
        }
    }
}

impl Output {
    fn new(width: usize, outputs: usize, parameters: &mut Parameters) -> Self {
        Output {
            weight: parameters.matrix("head.weight", width, outputs),
            bias: parameters.vector("head.bias", outputs, 0.0),
        }
    }

    fn logits<T: Number>(&self, tape: &mut Tape<'_, T>, x: Matrix) -> Matrix {
        tape.linear(
            x,
            Linear { weight: self.weight, bias: Some((self.bias, Activation::Identity)), dropout: None },
        )
    }
}

/// Room for the gradient of a matrix.
fn room<T: Number>(tape: &mut Tape<'_, T>, of: Matrix) -> Vec<T> {
    tape.room(tape.data(of).len())
}
