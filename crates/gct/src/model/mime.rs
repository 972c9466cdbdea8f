//! MiME (Choi et al. 2018), which is given the true edges between diagnoses and treatments. With s = ReLU:
//!
//! ```text
//! e = s(E_d),   r = sum over the treatments of d of s(E_m)
//! o = s(W_o (e + s(W_dm e + b_dm) * r) + b_o),   visit = sum of o over the diagnoses and the context
//! ```
//!
//! | here | shape | |
//! |---|---|---|
//! | `gate.weight`, `gate.bias` | `[width, width]`, `[width]` | W_dm, b_dm |
//! | `out.weight`, `out.bias` | `[width, width]`, `[width]` | W_o, b_o |
//! | `auxiliary.diagnosis.weight`, `.bias` and `auxiliary.treatment.*` | `[width, codes]`, `[codes]` | of the auxiliary loss |
//!
//! The auxiliary loss asks o for its diagnosis (one of all) and its treatments (any of all); `auxiliary` is
//! its weight, 0 leaves it out. It is the mean over the nodes of a batch. Labs have no part in it. Context
//! has no treatments, so its r is 0; the auxiliary loss does not ask for it.

use gct_kernels::engine::{Columns, Engine, Linear, Reach};
use gct_kernels::rows::Activation;
use gct_kernels::weights::{Dense, Vector};
use serde::{Deserialize, Serialize};

use super::block::{check_rate, dropout};
use super::config::{check_weight, check_whole};
use super::{NodeStates, Pass};
use crate::batch::{EmbeddingRows, Visit};
use crate::error::{Error, Result};
use crate::parameters::Parameters;
use crate::question::{NodeVectors, Output};
use crate::record::CodeKind;

/// Settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MimeConfig {
    /// Numbers per code.
    pub width: usize,
    /// Rate of dropout of o.
    pub dropout: f64,
    /// The weight of the auxiliary loss.
    pub auxiliary: f64,
}

impl Default for MimeConfig {
    fn default() -> Self {
        MimeConfig { width: 128, dropout: 0.0, auxiliary: 0.0 }
    }
}

impl MimeConfig {
    pub(super) fn check(&self) -> Result<()> {
        check_whole("width", self.width, 4096)?;
        check_weight("auxiliary", self.auxiliary)?;
        check_rate("dropout", self.dropout)
    }
}

#[derive(Clone)]
pub(super) struct Mime {
    gate: (Dense, Vector),
    out: (Dense, Vector),
    auxiliary: Option<[Output; 2]>,
    rows: EmbeddingRows,
    config: MimeConfig,
}

impl Mime {
    pub(super) fn new(config: &MimeConfig, rows: EmbeddingRows, parameters: &mut Parameters) -> Result<Self> {
        let kinds = [CodeKind::Diagnosis, CodeKind::Treatment];
        if config.auxiliary > 0.0 && kinds.iter().any(|kind| rows.codes(*kind) == 0) {
            let allowed = "0, because there are no diagnoses or no treatments to tell";
            return Err(Error::setting("auxiliary", config.auxiliary, allowed));
        }
        let width = config.width;
        let mut layer = |name: &str| {
            let weight = parameters.matrix(&format!("{name}.weight"), width, width);
            (weight, parameters.vector(&format!("{name}.bias"), width, 0.0))
        };
        let (gate, out) = (layer("gate"), layer("out"));
        let auxiliary = (config.auxiliary > 0.0).then(|| {
            kinds.map(|kind| {
                Output::new(&format!("auxiliary.{}", kind.name()), width, rows.codes(kind), parameters)
            })
        });
        Ok(Mime { gate, out, auxiliary, rows, config: config.clone() })
    }

    /// The share of these visits in the batch's auxiliary loss, and the nodes, of which only diagnoses
    /// and context mean anything. `orders` and `members` are the pair numbers of [`orders`] and [`members`].
    pub(super) fn forward<E: Engine>(
        &self,
        engine: &mut E,
        x: &E::Matrix,
        [orders, members]: [&[f32]; 2],
        visits: &[&Visit],
        pass: Pass,
    ) -> (f64, NodeStates<E>) {
        let width = self.config.width;
        let [orders, members] = [orders, members].map(|pairs| engine.given(pairs));
        let e = engine.relu(x);
        let r = engine.mix(&orders, Columns { matrix: &e, first: 0, width }, Reach::ALL);
        let layer = |(weight, bias): (Dense, Vector), rate| Linear {
            weight,
            bias: Some((bias, Activation::Relu)),
            dropout: dropout(pass, rate, 0, width),
        };
        let gate = engine.linear(&e, layer(self.gate, 0.0));
        let gated = engine.multiply(&gate, &r);
        let both = engine.add(&e, &gated);
        let o = engine.linear(&both, layer(self.out, self.config.dropout));
        let sum = engine.mix(&members, Columns { matrix: &o, first: 0, width }, Reach::FIRST);
        let auxiliary = self.auxiliary_loss(engine, &o, visits, pass);
        let vectors = NodeVectors { nodes: o, visits: sum };
        (auxiliary, NodeStates { vectors, attentions: Vec::new() })
    }

    fn auxiliary_loss<E: Engine>(&self, engine: &mut E, o: &E::Matrix, visits: &[&Visit], pass: Pass) -> f64 {
        let Some([diagnosis, treatment]) = self.auxiliary.as_ref().filter(|_| pass.regularizes) else {
            return 0.0;
        };
        let share = 1.0 / pass.batch_nodes as f64;
        let weight = self.config.auxiliary * share;
        let (mut nodes, mut classes, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for (graph, visit) in visits.iter().enumerate() {
            for node in visit.range(CodeKind::Diagnosis) {
                // A hidden diagnosis is not to be told here.
                let Some((_, id)) = self.rows.code_at(visit.ids[node]) else { continue };
                nodes.push((graph, node));
                classes.push(id as usize);
                let first = labels.len();
                labels.resize(first + self.rows.codes(CodeKind::Treatment), Some(false));
                for (_, effect) in visit.known_edges().iter().filter(|(cause, _)| *cause as usize == node) {
                    let treatment = self.rows.code_at(visit.ids[*effect as usize]);
                    labels[first + treatment.expect("a diagnosis leads to codes").1 as usize] = Some(true);
                }
            }
        }
        let of_diagnoses = engine.select(o, &nodes);
        let logits = diagnosis.logits(engine, &of_diagnoses);
        let of_codes = engine.class_loss(&logits, classes.into_iter(), 0.0, weight);
        let logits = treatment.logits(engine, &of_diagnoses);
        share * (of_codes + engine.label_loss(&logits, labels.into_iter(), 0.0, &[], weight))
    }
}

/// 1 where a diagnosis led to a treatment, row after row.
pub(super) fn orders(visit: &Visit) -> Vec<f32> {
    let mut matrix = vec![0.0; visit.nodes() * visit.nodes()];
    let diagnoses = visit.range(CodeKind::Diagnosis);
    for (cause, effect) in visit.known_edges().iter().map(|(i, j)| (*i as usize, *j as usize)) {
        if diagnoses.contains(&cause) {
            matrix[cause * visit.nodes() + effect] = 1.0;
        }
    }
    matrix
}

/// 1 from the visit to each of its diagnoses and its context, row after row.
pub(super) fn members(visit: &Visit) -> Vec<f32> {
    let mut matrix = vec![0.0; visit.nodes() * visit.nodes()];
    for kind in [CodeKind::Context, CodeKind::Diagnosis] {
        matrix[visit.range(kind)].fill(1.0);
    }
    matrix
}
