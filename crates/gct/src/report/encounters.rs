//! The encounters of a report: what was said of each, and the sums over all of them.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::links::Links;
use super::{CodeLink, LayerName, NamedCurves, Options, round};
use crate::cells;
use crate::evaluate::Inferred;
use crate::graph::{self, Layer, LayerKind, NodePair, NodeRanges};
use crate::metric::CurveTally;
use crate::predict::{Explainer, hidden_node};
use crate::question::Answer;
use crate::record::{CodeKind, Encounter};
use crate::sample::Sample;

/// Steps in which the square root of a cell is kept.
const STEPS: f32 = 127.0;

/// An encounter in the list.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    loss: Option<f64>,
    codes: Vec<usize>,
    hidden: Option<usize>,
    edges: Option<Vec<NodePair>>,
    answers: Vec<Answer>,
}

/// Gathers what a model says of encounters, one by one.
pub(super) struct Gathering<'a> {
    explainer: Explainer<'a>,
    options: Options,
    rows: Vec<Row>,
    kept: Vec<Encounter>,
    layers: Vec<LayerName>,
    matrices: Matrices,
    /// The curves of each kind of yes-or-no prediction.
    curves: Vec<(String, CurveTally)>,
    links: Links,
    encounters: u64,
}

/// What was gathered of all encounters.
pub(super) struct Seen {
    pub(super) rows: Vec<Row>,
    pub(super) kept: Vec<Encounter>,
    pub(super) layers: Vec<LayerName>,
    pub(super) matrices: Option<String>,
    pub(super) curves: Vec<NamedCurves>,
    pub(super) links: Vec<CodeLink>,
}

impl<'a> Gathering<'a> {
    pub(super) fn new(explainer: Explainer<'a>, options: Options) -> Self {
        let series = explainer.predictor().question().series().into_iter();
        Gathering {
            options,
            rows: Vec::new(),
            kept: Vec::new(),
            layers: Vec::new(),
            matrices: Matrices::new(),
            curves: series.map(|name| (name, CurveTally::default())).collect(),
            links: Links::default(),
            encounters: 0,
            explainer,
        }
    }

    pub(super) fn add(&mut self, Inferred { sample, logits, attentions, .. }: &Inferred<'_>) {
        let encounter = sample.encounter();
        let (nodes, adjacency) = (NodeRanges::of(encounter).len(), graph::adjacency(encounter));
        self.explainer.predictor().question().each_outcome(sample, logits, |series, logit, truth| {
            self.curves[series].1.add(logit, truth);
        });
        let layers = self.explainer.layers(nodes, attentions.clone(), logits);
        if self.layers.is_empty() {
            let named = |layer: &Layer| LayerName { name: layer.name.clone(), kind: layer.kind };
            self.layers = layers.iter().map(named).collect();
        }
        if let Some(last) = layers.last() {
            let mean = |i: usize, j: usize| 0.5 * (last.matrix[i * nodes + j] + last.matrix[j * nodes + i]);
            let code_index = |kind, id| self.explainer.code_index(kind, id);
            // Of a diagnosis that the model did not see it says nothing.
            self.links.add(encounter, hidden_node(sample), adjacency.as_deref(), mean, code_index);
        }
        self.encounters += 1;
        if self.rows.len() < self.options.encounters {
            if !self.options.live {
                layers.iter().for_each(|layer| self.matrices.add(layer));
            }
            self.rows.push(self.row(sample, logits));
            self.kept.extend(self.options.live.then(|| encounter.clone()));
        }
    }

    fn row(&self, sample: &Sample<'_>, logits: &[f32]) -> Row {
        let (explainer, encounter) = (&self.explainer, sample.encounter());
        let codes = CodeKind::ALL.into_iter().flat_map(|kind| {
            encounter.codes[kind].iter().map(move |id| explainer.code_index(kind, *id) as usize)
        });
        let mut answers = explainer.first_answers(sample, logits);
        answers.iter_mut().for_each(|answer| answer.probability = round(answer.probability));
        Row {
            number: self.encounters,
            id: self.options.with_ids.then(|| encounter.id.as_str().to_owned()),
            loss: explainer.predictor().question().loss(sample, logits).map(round),
            codes: codes.collect(),
            hidden: hidden_node(sample),
            edges: graph::edges(encounter).map(Iterator::collect),
            answers,
        }
    }

    pub(super) fn finish(self) -> Seen {
        let Options { min_cell, live, .. } = self.options;
        let counts_encounters = self.explainer.predictor().question().counts_encounters();
        // Curves of a label tell how many encounters have it, and by subtraction how many have neither yes
        // nor no.
        let named = |(name, tally): (String, CurveTally)| {
            let predictions = tally.predictions();
            let is_told = !counts_encounters || cells::is_told(predictions, self.encounters, min_cell);
            let is_told = is_told && !cells::is_small(self.encounters, min_cell);
            let curves = tally.curves(min_cell).filter(|_| is_told)?;
            Some(NamedCurves { name, predictions, curves })
        };
        Seen {
            rows: self.rows,
            kept: self.kept,
            layers: self.layers,
            matrices: (!live).then(|| self.matrices.finish()),
            curves: self.curves.into_iter().filter_map(named).collect(),
            links: self.links.finish(min_cell),
        }
    }
}

/// Matrices as bytes, compressed: a cell is the square of its byte over 127, so that weak links keep some
/// digits. Of probabilities, which are the same both ways, only the upper half is there.
struct Matrices(GzEncoder<Vec<u8>>);

impl Matrices {
    fn new() -> Self {
        Matrices(GzEncoder::new(Vec::new(), Compression::default()))
    }

    fn add(&mut self, layer: &Layer) {
        let nodes = layer.matrix.len().isqrt();
        let is_told = |at: usize| layer.kind != LayerKind::Probability || at / nodes < at % nodes;
        let told = |(at, cell): (usize, &f32)| if is_told(at) { byte(*cell) } else { 0 };
        let bytes: Vec<u8> = layer.matrix.iter().enumerate().map(told).collect();
        self.0.write_all(&bytes).expect("memory can be written");
    }

    fn finish(self) -> String {
        STANDARD.encode(self.0.finish().expect("memory can be written"))
    }
}

fn byte(cell: f32) -> u8 {
    (STEPS * cell.clamp(0.0, 1.0).sqrt()).round() as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_keep_weak_links() {
        for cell in [0.0, 0.001, 0.02, 0.3, 1.0] {
            let back = (f32::from(byte(cell)) / STEPS).powi(2);
            assert!((back - cell).abs() < 0.008, "{cell} {back}");
        }
        assert!(byte(0.0005) > 0);
    }
}
