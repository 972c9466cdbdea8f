//! What a model believes about one encounter: who attends to whom, and what it predicts.

use serde::Serialize;

use super::score::code_of;
use super::{largest, probabilities, probability};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::evaluate::{attention_of, nothing_to_ask, pairs};
use crate::graph;
use crate::infer::{Asker, Reader, Which};
use crate::model::Config;
use crate::picture::{Kind, Layer, Node, Structure};
use crate::record::{CodeKind, Encounter};
use crate::run::Run;
use crate::task::Task;

/// How many guesses of a hidden diagnosis are told.
const GUESSES: usize = 5;

/// What a model believes.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// The nodes, the attention of each block, the true edges where they are known.
    pub structure: Structure,
    /// What it predicts, the most probable first.
    pub answers: Vec<Answer>,
    /// The node that was hidden from the model.
    pub hidden: Option<usize>,
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
    /// The links of a block, one per pair of nodes of which one attends to the other, the strongest first: the two nodes, and the mean
    /// of the attention both ways.
    pub fn links(&self, layer: usize) -> Vec<(usize, usize, f32)> {
        let (nodes, attention) = (self.structure.nodes.len(), &self.structure.layers[layer].attention);
        let mut links: Vec<(usize, usize, f32)> = pairs(nodes)
            .map(|(i, j)| (i, j, 0.5 * (attention[i * nodes + j] + attention[j * nodes + i])))
            .filter(|(.., weight)| *weight > 0.0)
            .collect();
        links.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
        links
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
    of_encounter(run, &asker, &columns, &encounter)
}

fn of_encounter(
    run: &Run,
    asker: &Asker<'_>,
    columns: &[usize],
    encounter: &Encounter,
) -> Result<Explanation> {
    let mut nodes = nodes(run, encounter);
    let hidden = (*asker.task() == Task::MaskedDiagnosis).then(|| {
        graph::Nodes::of(encounter).range(CodeKind::Diagnosis).start + asker.hidden_position(encounter)
    });
    if let Some(hidden) = hidden {
        nodes[hidden].label += " (hidden)";
    }
    let attentions = attention_of(asker.model(), &asker.example(encounter));
    let name = |block: usize| match asker.model().config() {
        Config::Gct(_) if block == 0 => "block 1, which is P".to_owned(),
        _ => format!("block {}", block + 1),
    };
    let layer = |(block, attention): (usize, Vec<f32>)| Layer { name: name(block), attention };
    let structure = Structure {
        layers: attentions.into_iter().enumerate().map(layer).collect(),
        edges: graph::edges(encounter).map(Iterator::collect),
        nodes,
    };
    let answer = asker.answers(std::slice::from_ref(encounter))?.swap_remove(0);
    let answers = match asker.task() {
        Task::MaskedDiagnosis => {
            let (shares, hidden) = (probabilities(&answer), asker.hidden(encounter) as usize);
            let guess = |id: usize| Answer {
                what: run.vocabulary().diagnosis[id].code.clone(),
                probability: shares[id],
                truth: Some(id == hidden),
            };
            let mut guesses = largest(&shares, GUESSES);
            // What it should have said is told, however far down it is.
            guesses.extend((!guesses.contains(&hidden)).then_some(hidden));
            guesses.into_iter().map(guess).collect()
        }
        Task::GraphReconstruction => connections(encounter, &structure, &answer),
        task => (task.labels().into_iter().zip(&answer).enumerate())
            .map(|(place, (label, logit))| Answer {
                what: label,
                probability: probability(*logit),
                truth: columns.get(place).and_then(|column| encounter.labels[*column]),
            })
            .collect(),
    };
    Ok(Explanation { structure, answers, hidden })
}

/// The pairs that a model finds connected, the most probable first.
fn connections(encounter: &Encounter, structure: &Structure, answer: &[f32]) -> Vec<Answer> {
    let (nodes, adjacency) = (graph::Nodes::of(encounter), graph::adjacency(encounter));
    let mut connected: Vec<Answer> = pairs(nodes.len())
        .zip(answer)
        .filter(|((i, j), logit)| **logit >= 0.0 && nodes.allowed(*i, *j))
        .map(|((i, j), logit)| Answer {
            what: format!("{} - {}", structure.nodes[i].label, structure.nodes[j].label),
            probability: probability(*logit),
            truth: adjacency.as_ref().map(|edges| edges[i * nodes.len() + j]),
        })
        .collect();
    connected.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    connected
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
