//! The encounters of a report: what was said of each, and the sums over all of them.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use rayon::prelude::*;
use serde::Serialize;

use super::cells;
use super::links::Links;
use super::{LayerName, Link, NamedCurves, Options, round};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::evaluate::{attention_of, class_loss, pairs};
use crate::graph;
use crate::infer::{Askable, Asker, LOOKED_AT, Reader, TestSet, in_rounds};
use crate::metric::{CurveTally, log_loss};
use crate::picture::{Layer, Part};
use crate::predict::{Answer, Explainer};
use crate::record::Encounter;
use crate::run::Run;
use crate::task::{Hide, Task};

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
    edges: Option<Vec<(usize, usize)>>,
    answers: Vec<Answer>,
}

/// What was seen of all encounters.
pub(super) struct Seen {
    pub(super) rows: Vec<Row>,
    pub(super) kept: Vec<Encounter>,
    pub(super) layers: Vec<LayerName>,
    pub(super) matrices: Option<String>,
    pub(super) curves: Vec<NamedCurves>,
    pub(super) links: Vec<Link>,
}

/// Asks about all encounters that can be asked about.
pub(super) fn look(
    (run, asked): (&Run, Askable),
    dataset: &Dataset,
    TestSet { which, training }: TestSet,
    options: Options,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<Seen> {
    let task = &run.settings().task;
    let columns = task.columns(&dataset.manifest().labels)?;
    let explainer = Explainer::of(run, asked, columns.clone());
    let asker = explainer.asker();
    let place = |kind, id| explainer.place(kind, id);
    let mut curves = CurvesOfTask::new(task, columns.clone());
    let (mut links, mut matrices) = (Links::default(), Matrices::new());
    let (mut rows, mut kept, mut layers) = (Vec::new(), Vec::new(), Vec::new());
    let mut done = 0;
    let mut reader = Reader::new(run, dataset, which)?.testing(run, dataset, training)?;
    in_rounds(
        &mut reader,
        |encounter| task.asks(encounter, &columns) && asker.can_ask(encounter),
        |encounters| {
            for said in encounters.chunks(LOOKED_AT).flat_map(|some| say(asker, some)) {
                let (encounter, logits, attention) = said?;
                let (nodes, adjacency) = (graph::Nodes::of(encounter).len(), graph::adjacency(encounter));
                curves.add(encounter, adjacency.as_deref(), &logits);
                let all = explainer.layers(nodes, attention, &logits);
                if layers.is_empty() {
                    let named = |one: &Layer| LayerName { name: one.name.clone(), kind: one.part };
                    layers = all.iter().map(named).collect();
                }
                if let Some(last) = all.last() {
                    let mean = |i: usize, j: usize| {
                        0.5 * (last.attention[i * nodes + j] + last.attention[j * nodes + i])
                    };
                    // Of a diagnosis that the model did not see it says nothing.
                    let hidden = asker.example(encounter).hidden.map(|(node, _)| node);
                    links.add(encounter, hidden, adjacency.as_deref(), mean, place);
                }
                done += 1;
                if rows.len() < options.encounters {
                    if !options.live {
                        all.iter().for_each(|layer| matrices.add(layer));
                    }
                    rows.push(row(&explainer, encounter, (done, options.with_ids), &columns, &logits));
                    kept.extend(options.live.then(|| encounter.clone()));
                }
            }
            progress(done)
        },
    )?;
    Ok(Seen {
        rows,
        kept,
        layers,
        matrices: (!options.live).then(|| matrices.finish()),
        curves: curves.finish(options.min_cell, done),
        links: links.finish(options.min_cell),
    })
}

/// What a model says of an encounter: its logits, and the attention of each block.
type Said<'a> = (&'a Encounter, Vec<f32>, Vec<Vec<f32>>);

/// What a model says of some encounters; an error in place of all if an answer is not a number.
fn say<'a>(asker: &Asker<'_>, encounters: &'a [Encounter]) -> Vec<Result<Said<'a>>> {
    let answers = match asker.answers(encounters) {
        Ok(answers) => answers,
        Err(error) => return vec![Err(error)],
    };
    let one = |(encounter, logits): (&'a Encounter, Vec<f32>)| {
        Ok((encounter, logits, attention_of(asker.model(), &asker.example(encounter))))
    };
    encounters.par_iter().zip(answers).map(one).collect()
}

fn row(
    explainer: &Explainer<'_>,
    encounter: &Encounter,
    (number, with_id): (u64, bool),
    columns: &[usize],
    logits: &[f32],
) -> Row {
    let asker = explainer.asker();
    let codes = crate::record::CodeKind::ALL
        .into_iter()
        .flat_map(|kind| encounter.codes[kind].iter().map(move |id| explainer.place(kind, *id) as usize));
    let mut answers = explainer.answers(encounter, Hide::ByEncounter, logits);
    explainer.shorten(&mut answers);
    answers.iter_mut().for_each(|answer| answer.probability = round(answer.probability));
    Row {
        number,
        id: with_id.then(|| encounter.id.as_str().to_owned()),
        loss: loss(asker, encounter, columns, logits).map(round),
        codes: codes.collect(),
        hidden: asker.example(encounter).hidden.map(|(node, _)| node),
        edges: graph::edges(encounter).map(Iterator::collect),
        answers,
    }
}

/// What training would make smaller, of one encounter.
fn loss(asker: &Asker<'_>, encounter: &Encounter, columns: &[usize], logits: &[f32]) -> Option<f64> {
    let mean =
        |losses: Vec<f64>| (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64);
    match asker.task() {
        Task::MaskedDiagnosis => Some(class_loss(logits, asker.hidden(encounter) as usize)),
        Task::GraphReconstruction => {
            let (nodes, adjacency) = (graph::Nodes::of(encounter).len(), graph::adjacency(encounter)?);
            let of_pair = |((i, j), logit): ((usize, usize), &f32)| {
                log_loss(f64::from(*logit), adjacency[i * nodes + j])
            };
            mean(pairs(nodes).zip(logits).map(of_pair).collect())
        }
        _ => {
            let known = |(column, logit): (&usize, &f32)| {
                encounter.labels[*column].map(|truth| log_loss(f64::from(*logit), truth))
            };
            mean(columns.iter().zip(logits).filter_map(known).collect())
        }
    }
}

/// The curves of each label, or of all pairs.
struct CurvesOfTask {
    columns: Vec<usize>,
    tallies: Vec<(String, CurveTally)>,
}

impl CurvesOfTask {
    fn new(task: &Task, columns: Vec<usize>) -> Self {
        let names = match task {
            Task::GraphReconstruction => vec!["all pairs".to_owned()],
            task => task.labels(),
        };
        CurvesOfTask {
            columns,
            tallies: names.into_iter().map(|name| (name, CurveTally::default())).collect(),
        }
    }

    fn add(&mut self, encounter: &Encounter, adjacency: Option<&[bool]>, logits: &[f32]) {
        if self.columns.is_empty() {
            let nodes = graph::Nodes::of(encounter).len();
            for ((_, tally), edges) in self.tallies.iter_mut().zip(adjacency) {
                pairs(nodes).zip(logits).for_each(|((i, j), logit)| tally.add(*logit, edges[i * nodes + j]));
            }
        }
        for (((_, tally), column), logit) in self.tallies.iter_mut().zip(&self.columns).zip(logits) {
            encounter.labels[*column].into_iter().for_each(|truth| tally.add(*logit, truth));
        }
    }

    /// The curves over so many encounters, if these are enough. Those of a label tell how many have it, and
    /// by subtraction how many have neither yes nor no.
    fn finish(self, min_cell: u64, asked: u64) -> Vec<NamedCurves> {
        let of_pairs = self.columns.is_empty();
        let named = |(name, tally): (String, CurveTally)| {
            let predictions = tally.predictions();
            let is_told = of_pairs || cells::is_told(predictions, asked, min_cell);
            let curves = tally.curves(min_cell).filter(|_| is_told && !cells::is_small(asked, min_cell))?;
            Some(NamedCurves { name, predictions, curves })
        };
        self.tallies.into_iter().filter_map(named).collect()
    }
}

/// Matrices as bytes, compressed: a cell is the square of its byte over 127, so that weak links keep some digits. Of probabilities, which
/// are the same both ways, only the upper half is there.
struct Matrices(GzEncoder<Vec<u8>>);

impl Matrices {
    fn new() -> Self {
        Matrices(GzEncoder::new(Vec::new(), Compression::default()))
    }

    fn add(&mut self, layer: &Layer) {
        let nodes = layer.attention.len().isqrt();
        let is_told = |place: usize| layer.part != Part::Probability || place / nodes < place % nodes;
        let told = |(place, cell): (usize, &f32)| if is_told(place) { byte(*cell) } else { 0 };
        let bytes: Vec<u8> = layer.attention.iter().enumerate().map(told).collect();
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
