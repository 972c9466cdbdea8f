//! What a model believes about one encounter: who attends to whom, and what it predicts.

use itertools::Itertools;
use serde::Serialize;

use super::score::code_of;
use super::{largest, probabilities, probability};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::evaluate::{attention_of, nothing_to_ask, pairs};
use crate::graph;
use crate::infer::{Askable, Asker, Reader, Which};
use crate::model::{Config, PriorRole};
use crate::picture::{Kind, Layer, Node, Part, Structure};
use crate::record::{CodeKind, Encounter};
use crate::run::Run;
use crate::task::{Hide, Task, hidden_position};

/// How many guesses of a hidden diagnosis are told.
const GUESSES: usize = 5;

/// How many connected pairs are told where there is no room for all: an encounter may have thousands.
const PAIRS: usize = 30;

/// What a model believes.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The nodes, the attention of each block, the true edges where they are known.
    pub structure: Structure,
    /// What it predicts, the most probable first.
    pub answers: Vec<Answer>,
    /// The node that was hidden from the model.
    pub hidden: Option<usize>,
    /// For graph reconstruction: how probable it finds an edge between two nodes, a symmetric matrix, row after row.
    pub connected: Option<Vec<f32>>,
}

/// One thing that a model predicts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// What: a label, a diagnosis, or two codes that are connected.
    pub what: String,
    /// How probable it finds it.
    pub probability: f64,
    /// Whether it is so, where that is known.
    pub truth: Option<bool>,
}

impl Explanation {
    /// All that it says about pairs of nodes: the attention of each block and, for graph reconstruction, how probable an edge is.
    pub fn layers(&self) -> Vec<Layer> {
        let answer = self.connected.iter().map(|connected| answer(connected.clone()));
        self.structure.layers.iter().cloned().chain(answer).collect()
    }

    /// The strongest links of a block, the strongest first: two nodes of which one attends to the other,
    /// and the mean of the attention both ways.
    pub fn links(&self, layer: usize, most: usize) -> Vec<(usize, usize, f32)> {
        let (nodes, attention) = (self.structure.nodes.len(), &self.structure.layers[layer].attention);
        let weaker = |a: &(usize, usize, f32), b: &(usize, usize, f32)| {
            b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1)))
        };
        pairs(nodes)
            .map(|(i, j)| (i, j, 0.5 * (attention[i * nodes + j] + attention[j * nodes + i])))
            .filter(|(.., weight)| *weight > 0.0)
            .k_smallest_by(most, weaker)
            .collect()
    }

    /// Whether two nodes are connected, where that is known.
    pub fn is_edge(&self, i: usize, j: usize) -> Option<bool> {
        let edges = self.structure.edges.as_ref()?;
        Some(edges.iter().any(|&(cause, effect)| [(i, j), (j, i)].contains(&(cause, effect))))
    }
}

/// Explains the encounter of this identifier, or the first of the test split; `progress` is asked now and then, and can end the search
/// with an error.
///
/// # Errors
/// If there is no such encounter or it cannot be asked about, the run has no model, or the dataset does not go with it.
pub fn explain(
    run: &Run,
    dataset: &Dataset,
    encounter: Option<&str>,
    progress: &dyn Fn() -> Result<()>,
) -> Result<Explanation> {
    let model = run.model()?;
    let which = if encounter.is_some() { Which::All } else { Which::default_for(run, dataset) };
    if model.config().needs_edges() {
        model.check_data(dataset.manifest().with_edges > 0)?;
    }
    let asker = Asker::new(&model, run.view());
    let mut found = None;
    for candidate in Reader::new(run, dataset, which)? {
        let candidate = candidate?;
        progress()?;
        let wanted = encounter.map_or_else(|| asker.can_ask(&candidate), |id| candidate.id.as_str() == id);
        if wanted {
            found = Some(candidate);
            break;
        }
    }
    let encounter = match found {
        Some(found) => found,
        None if encounter.is_some() => return Err(Error::NoSuchEncounter),
        None => return Err(nothing_to_ask(&run.settings().task, which.name())),
    };
    if let Some(missing) = asker.missing(&encounter) {
        return Err(Error::CannotAsk { missing });
    }
    let columns = run.settings().task.columns(&dataset.manifest().labels).unwrap_or_default();
    Explainer { run, asker, columns }.explain(&encounter, Hide::ByEncounter)
}

/// A run with its model, asked about encounters that come from anywhere.
pub struct Explainer<'a> {
    run: &'a Run,
    asker: Asker<'a>,
    columns: Vec<usize>,
}

impl<'a> Explainer<'a> {
    /// Loads the model. `columns` are where encounters have the labels of the task, if they have them: see [`Task::columns`].
    ///
    /// # Errors
    /// If the run has no model, or its file is damaged.
    pub fn new(run: &'a Run, columns: Vec<usize>) -> Result<Self> {
        Ok(Explainer::of(run, Askable::new(&run.model()?), columns))
    }

    /// The same with the model of the run that was loaded before.
    pub fn of(run: &'a Run, asked: Askable, columns: Vec<usize>) -> Self {
        Explainer { run, asker: Asker::of(asked, run.view()), columns }
    }

    /// The model with what it takes to ask it.
    pub fn asker(&self) -> &Asker<'a> {
        &self.asker
    }

    /// What an encounter lacks to be asked about.
    pub fn missing(&self, encounter: &Encounter) -> Option<&'static str> {
        self.asker.missing(encounter)
    }

    /// The nodes of an encounter, the visit first.
    pub fn nodes(&self, encounter: &Encounter) -> Vec<Node> {
        nodes(self.run, encounter)
    }

    /// What the model believes about an encounter.
    ///
    /// # Errors
    /// If an answer is not a number.
    ///
    /// # Panics
    /// If it cannot be asked about: see [`Explainer::missing`].
    pub fn explain(&self, encounter: &Encounter, hide: Hide) -> Result<Explanation> {
        let (asker, mut nodes) = (&self.asker, self.nodes(encounter));
        let example = asker.example_hiding(encounter, hide);
        let hidden = example.hidden.map(|(node, _)| node);
        if let Some(hidden) = hidden {
            nodes[hidden].label += " (hidden)";
        }
        let structure = Structure {
            layers: self.blocks(attention_of(asker.model(), &example)),
            edges: graph::edges(encounter).map(Iterator::collect),
            nodes,
        };
        let logits = asker.answers_to(&[()], |()| example.clone())?.swap_remove(0);
        let connected =
            (*asker.task() == Task::GraphReconstruction).then(|| matrix(structure.nodes.len(), &logits));
        Ok(Explanation { structure, answers: self.answers(encounter, hide, &logits), hidden, connected })
    }

    /// The attention of each block, named.
    pub(crate) fn blocks(&self, attentions: Vec<Vec<f32>>) -> Vec<Layer> {
        let layer = |(block, attention): (usize, Vec<f32>)| match self.asker.model().config() {
            Config::Gct(config) if block == 0 && config.prior == PriorRole::Replaces => {
                Layer { name: "P".into(), part: Part::Prior, attention }
            }
            _ => Layer { name: format!("block {}", block + 1), part: Part::Attention, attention },
        };
        attentions.into_iter().enumerate().map(layer).collect()
    }

    /// The same, and the probabilities of edges where they are what is asked.
    pub(crate) fn layers(&self, nodes: usize, attentions: Vec<Vec<f32>>, logits: &[f32]) -> Vec<Layer> {
        let mut layers = self.blocks(attentions);
        if *self.asker.task() == Task::GraphReconstruction {
            layers.push(answer(matrix(nodes, logits)));
        }
        layers
    }

    /// The place of a code among all codes: diagnoses, treatments, labs.
    pub(crate) fn place(&self, kind: CodeKind, id: u32) -> u32 {
        self.run.embedding_rows().code(kind, id) - 1
    }

    /// Leaves as many answers as a page or a client wants to have: of connected pairs the 30 most probable.
    pub fn shorten(&self, answers: &mut Vec<Answer>) {
        if *self.asker.task() == Task::GraphReconstruction {
            answers.truncate(PAIRS);
        }
    }

    /// What logits of the model (see [`Asker::answers_to`]) say of an encounter, the most probable first.
    pub fn answers(&self, encounter: &Encounter, hide: Hide, logits: &[f32]) -> Vec<Answer> {
        self.answers_up_to(usize::MAX, encounter, hide, logits)
    }

    /// The same, as short as [`Explainer::shorten`] makes it; the rest is never written down.
    pub fn first_answers(&self, encounter: &Encounter, hide: Hide, logits: &[f32]) -> Vec<Answer> {
        self.answers_up_to(PAIRS, encounter, hide, logits)
    }

    fn answers_up_to(&self, pairs: usize, encounter: &Encounter, hide: Hide, logits: &[f32]) -> Vec<Answer> {
        match self.asker.task() {
            Task::MaskedDiagnosis => {
                let hidden = encounter.codes.diagnosis[hidden_position(encounter, hide)] as usize;
                let shares = probabilities(logits);
                let guess = |id: usize| Answer {
                    what: self.run.vocabulary().diagnosis[id].code.clone(),
                    probability: shares[id],
                    truth: Some(id == hidden),
                };
                let mut guesses = largest(&shares, GUESSES);
                // What it should have said is told, however far down it is.
                guesses.extend((!guesses.contains(&hidden)).then_some(hidden));
                guesses.into_iter().map(guess).collect()
            }
            Task::GraphReconstruction => connections(encounter, &self.nodes(encounter), logits, pairs),
            task => (task.labels().into_iter().zip(logits).enumerate())
                .map(|(place, (label, logit))| Answer {
                    what: label,
                    probability: probability(*logit),
                    truth: self.columns.get(place).and_then(|column| *encounter.labels.get(*column)?),
                })
                .collect(),
        }
    }
}

fn answer(connected: Vec<f32>) -> Layer {
    Layer { name: "answer".into(), part: Part::Probability, attention: connected }
}

/// The probabilities of edges as a matrix.
fn matrix(nodes: usize, logits: &[f32]) -> Vec<f32> {
    let mut matrix = vec![0.0; nodes * nodes];
    for ((i, j), logit) in pairs(nodes).zip(logits) {
        let probability = probability(*logit) as f32;
        (matrix[i * nodes + j], matrix[j * nodes + i]) = (probability, probability);
    }
    matrix
}

/// The pairs of codes that a model finds connected, the most probable first, up to so many. The visit is
/// connected with all diagnoses, so its pairs say nothing, and they would all come first.
fn connections(encounter: &Encounter, named: &[Node], answer: &[f32], most: usize) -> Vec<Answer> {
    let (nodes, adjacency) = (graph::Nodes::of(encounter), graph::adjacency(encounter));
    let mut connected: Vec<(usize, usize, f64)> = pairs(nodes.len())
        .zip(answer)
        .filter(|((i, j), logit)| *i > 0 && **logit >= 0.0 && nodes.allowed(*i, *j))
        .map(|((i, j), logit)| (i, j, probability(*logit)))
        .collect();
    connected.sort_by(|a, b| b.2.total_cmp(&a.2));
    let answer = |&(i, j, probability): &(usize, usize, f64)| Answer {
        what: format!("{} - {}", named[i].label, named[j].label),
        probability,
        truth: adjacency.as_ref().map(|edges| edges[i * nodes.len() + j]),
    };
    connected.iter().take(most).map(answer).collect()
}

fn nodes(run: &Run, encounter: &Encounter) -> Vec<Node> {
    let nodes = graph::Nodes::of(encounter);
    let node = |node: usize| match code_of(&nodes, encounter, node) {
        None => Node { kind: Kind::Visit, label: "visit".into(), description: None },
        Some((kind, id)) => {
            let code = &run.vocabulary()[kind][id as usize];
            let kind = match kind {
                CodeKind::Diagnosis => Kind::Diagnosis,
                CodeKind::Treatment => Kind::Treatment,
                CodeKind::Lab => Kind::Lab,
            };
            Node { kind, label: code.code.clone(), description: code.description.clone() }
        }
    };
    (0..nodes.len()).map(node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    #[test]
    fn connected_pairs_are_of_codes_and_the_most_probable_come_first() {
        let encounter =
            Encounter::bare(PerKind { diagnosis: vec![0], treatment: vec![0, 1], lab: Vec::new() });
        let kinds = [Kind::Visit, Kind::Diagnosis, Kind::Treatment, Kind::Treatment];
        let names = ["visit", "D", "T", "U"];
        let node = |(kind, name): (Kind, &str)| Node { kind, label: name.into(), description: None };
        let nodes: Vec<Node> = kinds.into_iter().zip(names).map(node).collect();
        // Visit with each; the diagnosis with each treatment; these with each other, which nothing connects.
        let logits = [9.0, 8.0, 7.0, 0.5, 1.5, 6.0];
        let found = |most: usize| -> Vec<String> {
            let found = connections(&encounter, &nodes, &logits, most);
            found.into_iter().map(|answer| answer.what).collect()
        };
        assert_eq!(found(9), ["D - U", "D - T"]);
        assert_eq!(found(1), ["D - U"]);
    }
}
