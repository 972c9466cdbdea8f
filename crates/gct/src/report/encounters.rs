//! The encounters of a report: what was said of each, and the sums over all of them.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;

use super::choice::{Candidate, Choice, Chosen, Reason};
use super::timeline::{self, Visit, VisitEffect};
use super::{CodeLink, LayerName, NamedCurves, Options, round};
use crate::cells;
use crate::error::Result;
use crate::evaluate::{self, Inferred};
use crate::graph::{self, Layer, LayerKind, NodePair, NodeRanges};
use crate::infer::LOOKED_AT;
use crate::job::Stop;
use crate::links::Tally;
use crate::metric::{Above, CurveTally};
use crate::predict::{Attribution, Explainer, hidden_node};
use crate::question::Answer;
use crate::record::CodeKind;
use crate::sample::{OwnedSample, Sample};

/// Steps in which the square root of a cell is kept.
const STEPS: f32 = 127.0;

/// The codes of which it is told what the answer would be without them: the strongest.
const STRONGEST: usize = 15;

/// An encounter in the list.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    chosen: Vec<Reason>,
    loss: Option<f64>,
    codes: Vec<usize>,
    hidden: Option<usize>,
    edges: Option<Vec<NodePair>>,
    answers: Vec<Answer>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    why: Vec<Why>,
    /// With history: the visits before it, the latest first. A server tells them with the reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    visits: Option<Vec<Visit>>,
    /// The diagnoses of the next visit, where they are asked for and known.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<Vec<usize>>,
}

/// What an answer would be without each of some codes.
#[derive(Debug, Clone, Serialize)]
struct Why {
    what: String,
    probability: f64,
    changes: Vec<Lacking>,
    /// With history: what it would be without each earlier visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    visits: Option<Vec<VisitEffect>>,
    /// With history: the change of log-odds without each code of each visit, that of the encounter first.
    #[serde(skip_serializing_if = "Option::is_none")]
    effects: Option<Vec<Vec<Option<f64>>>>,
}

/// What an answer would be without a code.
#[derive(Debug, Clone, Serialize)]
struct Lacking {
    /// An index among all codes of the run.
    code: usize,
    /// With history: how many visits before the encounter.
    #[serde(skip_serializing_if = "Option::is_none")]
    visits_before: Option<usize>,
    without: f64,
    log_odds_change: f64,
}

/// Gathers what a model says of encounters, one by one.
pub(super) struct Gathering<'a> {
    explainer: Explainer<'a>,
    options: &'a Options,
    choice: Choice,
    layers: Vec<LayerName>,
    /// The curves of each kind of yes-or-no prediction.
    curves: Vec<(String, CurveTally)>,
    links: Tally,
    encounters: u64,
}

/// What was gathered of all encounters.
pub(super) struct Seen {
    pub(super) rows: Vec<Row>,
    /// The encounters of the rows, by their numbers.
    pub(super) kept: Vec<(u64, OwnedSample)>,
    pub(super) layers: Vec<LayerName>,
    pub(super) matrices: Option<String>,
    pub(super) curves: Vec<NamedCurves>,
    pub(super) links: Vec<CodeLink>,
}

impl<'a> Gathering<'a> {
    pub(super) fn new(explainer: Explainer<'a>, options: &'a Options) -> Self {
        let series = explainer.predictor().question().series().into_iter();
        Gathering {
            options,
            choice: Choice::new(options.encounters),
            layers: Vec::new(),
            curves: series.map(|name| (name, CurveTally::default())).collect(),
            links: Tally::default(),
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
            let code_index = |kind, id| self.explainer.code_index(kind, id);
            // Of a diagnosis that the model did not see it says nothing.
            self.links.add(encounter, hidden_node(sample), adjacency.as_deref(), last, code_index);
        }
        self.encounters += 1;
        let candidate = self.candidate(sample, logits);
        self.choice.add(candidate, sample);
    }

    fn candidate(&self, sample: &Sample<'_>, logits: &[f32]) -> Candidate {
        let question = self.explainer.predictor().question();
        let risk = question.risk(logits);
        let mut is_positive = false;
        if risk.is_some() {
            question.each_outcome(sample, logits, |_, _, truth| is_positive |= truth);
        }
        Candidate { number: self.encounters, risk, loss: question.loss(sample, logits), is_positive }
    }

    /// Looks again at the encounters that are on the page. `above` is, of each series, how many predictions
    /// are above the threshold that is told.
    ///
    /// # Errors
    /// If an answer is not a number, or the work is stopped.
    pub(super) fn finish(self, above: &[Option<Above>], stop: &Stop) -> Result<Seen> {
        let &Options { min_cell, live, .. } = self.options;
        let chosen = self.choice.finish();
        let looking = Looking { explainer: &self.explainer, options: self.options, stop };
        let (rows, matrices) = looking.rows(&chosen)?;
        let counts_encounters = self.explainer.predictor().question().counts_encounters();
        // Curves of a label tell how many encounters have it, and by subtraction how many have neither yes
        // nor no.
        let above = above.iter().copied().chain(std::iter::repeat(None));
        let named = |((name, tally), above): ((String, CurveTally), Option<Above>)| {
            let predictions = tally.predictions();
            let is_told = !counts_encounters || cells::is_told(predictions, self.encounters, min_cell);
            let is_told = is_told && !cells::is_small(self.encounters, min_cell);
            let (curves, has_threshold) = tally.curves_beside(min_cell, above).filter(|_| is_told)?;
            Some(NamedCurves { name, predictions, has_threshold, curves })
        };
        let kept = chosen.into_iter().filter(|_| live).map(|one| (one.number, one.sample));
        Ok(Seen {
            rows,
            kept: kept.collect(),
            layers: self.layers,
            matrices: (!live).then_some(matrices),
            curves: self.curves.into_iter().zip(above).filter_map(named).collect(),
            links: self.links.finish(min_cell),
        })
    }
}

/// Looks at the encounters that were chosen.
struct Looking<'a> {
    explainer: &'a Explainer<'a>,
    options: &'a Options,
    stop: &'a Stop,
}

impl Looking<'_> {
    /// Their rows and their matrices, compressed. A server is asked for matrices and reasons when they are
    /// wanted.
    fn rows(&self, chosen: &[Chosen]) -> Result<(Vec<Row>, String)> {
        let (predictor, mut rows, mut matrices) = (self.explainer.predictor(), Vec::new(), Matrices::new());
        for some in chosen.chunks(LOOKED_AT) {
            let samples: Vec<Sample<'_>> = some.iter().map(|one| predictor.sample_of(&one.sample)).collect();
            let inferred = evaluate::infer(predictor, &samples, !self.options.live)?;
            for (one, Inferred { sample, logits, attentions, .. }) in some.iter().zip(inferred) {
                self.stop.check()?;
                if !self.options.live {
                    let nodes = NodeRanges::of(sample.encounter()).len();
                    self.explainer.layers(nodes, attentions, &logits).iter().for_each(|l| matrices.add(l));
                }
                rows.push(self.row(one, &sample, &logits)?);
            }
        }
        Ok((rows, matrices.finish()))
    }

    fn row(&self, chosen: &Chosen, sample: &Sample<'_>, logits: &[f32]) -> Result<Row> {
        let (explainer, encounter) = (self.explainer, sample.encounter());
        let question = explainer.predictor().question();
        let codes = timeline::codes(explainer, encounter);
        let visits = (!self.options.live).then(|| timeline::visits(explainer, sample, self.options.with_ids));
        let visits = visits.flatten();
        let diagnosis = |id: u32| explainer.code_index(CodeKind::Diagnosis, id) as usize;
        let next = question.next_truth(sample).map(|next| next.into_iter().map(diagnosis).collect());
        let mut answers = explainer.first_answers(sample, logits);
        answers.iter_mut().for_each(|answer| answer.probability = shortened(answer.probability));
        Ok(Row {
            number: chosen.number,
            id: self.options.with_ids.then(|| encounter.id.as_str().to_owned()),
            chosen: chosen.reasons.clone(),
            loss: question.loss(sample, logits).map(round),
            hidden: hidden_node(sample),
            edges: graph::edges(encounter).map(Iterator::collect),
            answers,
            why: if self.options.live { Vec::new() } else { self.why(sample, &codes, visits.as_deref())? },
            codes,
            visits,
            next,
        })
    }

    /// What its first answers rest on.
    fn why(&self, sample: &Sample<'_>, codes: &[usize], visits: Option<&[Visit]>) -> Result<Vec<Why>> {
        let most = self.explainer.predictor().question().explained_on_page();
        if most == 0 {
            return Ok(Vec::new());
        }
        let earlier = visits.unwrap_or_default().iter().map(|visit| visit.codes.as_slice());
        let codes: Vec<&[usize]> = std::iter::once(codes).chain(earlier).collect();
        let attributions = self.explainer.attribute(sample, 0)?;
        Ok(attributions.into_iter().take(most).map(|attribution| why(attribution, &codes)).collect())
    }
}

/// What one answer rests on; `codes` are those of the encounter and, with history, of each earlier visit.
fn why(attribution: Attribution, codes: &[&[usize]]) -> Why {
    let visits = timeline::visit_effects(&attribution);
    let effects = visits.is_some().then(|| timeline::code_effects(&attribution, codes));
    let lacking = attribution.changes.into_iter().take(STRONGEST).map(|change| Lacking {
        // The visit is the first node.
        code: codes[change.visits_before.unwrap_or(0)][change.node - 1],
        visits_before: change.visits_before,
        without: shortened(change.without),
        log_odds_change: round(change.log_odds_change),
    });
    let (what, probability) = (attribution.what, shortened(attribution.probability));
    Why { what, probability, changes: lacking.collect(), visits, effects }
}

/// A probability with as many digits as tell it apart from never and from always.
pub(super) fn shortened(probability: f64) -> f64 {
    let least = probability.min(1.0 - probability);
    if least <= 0.0 {
        return probability;
    }
    let steps = 10f64.powi((3 - least.log10().floor() as i32).clamp(4, 15));
    (probability * steps).round() / steps
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
    fn what_is_improbable_is_not_impossible() {
        let cases = [
            (0.0, 0.0),
            (0.000_007_123_4, 0.000_007_123),
            (0.123_456, 0.123_5),
            (0.999_987_651, 0.999_987_65),
            (1.0, 1.0),
        ];
        for (probability, expected) in cases {
            assert!((shortened(probability) - expected).abs() < 1e-12, "{probability}");
        }
    }

    #[test]
    fn bytes_keep_weak_links() {
        for cell in [0.0, 0.001, 0.02, 0.3, 1.0] {
            let back = (f32::from(byte(cell)) / STEPS).powi(2);
            assert!((back - cell).abs() < 0.008, "{cell} {back}");
        }
        assert!(byte(0.0005) > 0);
    }
}
