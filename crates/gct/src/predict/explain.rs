//! What a model believes about one encounter: what it predicts, why, and who attends to whom.

use super::Attribution;
use super::causes::{self, Cause};
use super::past::{self, PastVisit};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::evaluate::attention_within;
use crate::graph::{self, Layer, LayerKind, Node, NodeKind, NodeRanges, Structure};
use crate::incoming::{Incoming, Met};
use crate::infer::{Predictor, Reader, Which, is_of_same_subject};
use crate::job::{Job, Stop};
use crate::model::{Config, PriorRole};
use crate::question::{Answer, Statement};
use crate::record::{Code, CodeKind, Encounter};
use crate::run::Run;
use crate::sample::{OwnedSample, Sample};

/// How many connected pairs are told where there is no room for all: an encounter may have thousands.
const PAIRS: usize = 30;

/// What a model believes about an encounter.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The nodes, the attention of each block, the true edges where they are known.
    pub structure: Structure,
    /// The earlier visits that it sees, the latest first; `None` without history.
    pub visits: Option<Vec<PastVisit>>,
    /// What it predicts, the most probable first.
    pub answers: Vec<Answer>,
    /// Why: what each code and each earlier visit does to each of [`Explainer::first_answers`].
    pub attributions: Vec<Attribution>,
    /// What led to each treatment and each lab; `None` if the model is no explainer.
    pub causes: Option<Vec<Cause>>,
    /// For graph reconstruction: how probable it finds an edge between two nodes, a symmetric matrix, row
    /// after row.
    pub connected: Option<Vec<f32>>,
}

impl Explanation {
    /// All that it says about pairs of nodes: the attention of each block and, for graph reconstruction, how
    /// probable an edge is.
    pub fn layers(&self) -> Vec<Layer> {
        let answer = self.connected.iter().map(|connected| answer(connected.clone()));
        self.structure.layers.iter().cloned().chain(answer).collect()
    }
}

/// Explains the encounter of this identifier, or the first of the test split; `paired` as in
/// [`Explainer::attribute`]. The job is told how many were looked at.
///
/// # Errors
/// If there is no such encounter or it cannot be asked about, the run has no model, the dataset does not go
/// with it, or the job is stopped.
pub fn explain(
    run: &Run,
    dataset: &Dataset,
    encounter: Option<&str>,
    paired: usize,
    job: &Job<'_, u64>,
) -> Result<Explanation> {
    let explainer = Explainer::new(run)?;
    let predictor = explainer.predictor();
    let which = if encounter.is_some() { Which::All } else { Which::default_for(run, dataset) };
    predictor.check_given(dataset)?;
    let mut reader = Reader::new(run, dataset, which)?;
    let found = find(predictor, &mut reader, encounter, which.name(), job)?;
    let next = predictor.next_of(&found.encounter, &mut reader)?;
    let found = OwnedSample { next, ..found };
    explainer.explain_with(&predictor.sample_of(&found), paired, job.stop())
}

/// Explains the encounter of this identifier, or the first that can be asked about, of encounters that are in
/// no dataset; and what was met in it. `paired` and the job are as for [`explain`].
///
/// # Errors
/// If there is no such encounter or it cannot be asked about, one before it cannot be read, the run has no
/// model or needs what only a dataset has, or the job is stopped.
pub fn explain_incoming(
    run: &Run,
    mut incoming: Incoming<'_>,
    encounter: Option<&str>,
    paired: usize,
    job: &Job<'_, u64>,
) -> Result<(Explanation, Met)> {
    let explainer = Explainer::new(run)?;
    let predictor = explainer.predictor();
    predictor.check_edges(false)?;
    let found = find(predictor, &mut incoming, encounter, "the file", job)?;
    let explanation = explainer.explain_with(&predictor.sample_of(&found), paired, job.stop())?;
    Ok((explanation, incoming.met_in_last()))
}

/// The encounter of this identifier, or the first that can be asked about; those of its subject before it,
/// if the model sees history.
fn find(
    predictor: &Predictor<'_>,
    encounters: &mut impl Iterator<Item = Result<Encounter>>,
    wanted: Option<&str>,
    part: &'static str,
    job: &Job<'_, u64>,
) -> Result<OwnedSample> {
    let mut before: Vec<Encounter> = Vec::new();
    for (read, candidate) in (1..).zip(encounters) {
        let candidate = candidate?;
        job.advance(read)?;
        if before.last().is_some_and(|last| !is_of_same_subject(last, &candidate)) {
            before.clear();
        }
        let is_wanted =
            wanted.map_or_else(|| predictor.can_ask(&candidate), |id| candidate.id.as_str() == id);
        if is_wanted {
            return match predictor.missing(&candidate) {
                Some(missing) => Err(Error::CannotPredict { missing }),
                None => Ok(OwnedSample { before, ..candidate.into() }),
            };
        }
        before.extend(predictor.sees_history().then_some(candidate));
    }
    match wanted {
        Some(_) => Err(Error::NoSuchEncounter),
        None => Err(predictor.question().no_answers(part)),
    }
}

/// A run with its model, asked about encounters that come from anywhere. They have the labels of the run's
/// question, or none.
pub struct Explainer<'a> {
    run: &'a Run,
    predictor: Predictor<'a>,
}

impl<'a> Explainer<'a> {
    /// Loads the model, unless the run has it already.
    ///
    /// # Errors
    /// If the run has no model, or its file is damaged.
    pub fn new(run: &'a Run) -> Result<Self> {
        Ok(Explainer { run, predictor: Predictor::of_run(run)? })
    }

    /// The model with what it takes to ask it.
    pub fn predictor(&self) -> &Predictor<'a> {
        &self.predictor
    }

    /// What the model believes about a sample, and why.
    ///
    /// # Errors
    /// If an answer is not a number.
    ///
    /// # Panics
    /// If it cannot be asked about: see [`Predictor::missing`].
    pub fn explain(&self, sample: &Sample<'_>) -> Result<Explanation> {
        self.explain_with(sample, 0, &Stop::new())
    }

    fn explain_with(&self, sample: &Sample<'_>, paired: usize, stop: &Stop) -> Result<Explanation> {
        let (explanation, logits) = self.believed(sample)?;
        let attributions = self.attribute_answers(sample, &logits, paired, stop)?;
        Ok(Explanation { attributions, ..explanation })
    }

    /// The same without a reason, which takes an answer for each code: `attributions` is empty.
    ///
    /// # Errors
    /// As [`Explainer::explain`].
    ///
    /// # Panics
    /// As [`Explainer::explain`].
    pub fn explain_without_why(&self, sample: &Sample<'_>) -> Result<Explanation> {
        Ok(self.believed(sample)?.0)
    }

    /// What it believes, and the logits of that.
    fn believed(&self, sample: &Sample<'_>) -> Result<(Explanation, Vec<f32>)> {
        let (predictor, encounter) = (&self.predictor, sample.encounter());
        let structure = Structure {
            layers: self.blocks(attention_within(predictor, sample)),
            edges: graph::edges(encounter).map(Iterator::collect),
            nodes: nodes(self.run, sample),
        };
        let logits = predictor.answers(std::slice::from_ref(sample))?.swap_remove(0);
        let connected = predictor.question().edge_probabilities(structure.nodes.len(), &logits);
        let answers = self.answers(sample, &logits);
        let visits = past::visits(self.run, sample);
        let attributions = Vec::new();
        let causes = self.causes(sample);
        Ok((Explanation { structure, visits, answers, attributions, causes, connected }, logits))
    }

    /// What led to what in the encounter, if the model is an explainer.
    fn causes(&self, sample: &Sample<'_>) -> Option<Vec<Cause>> {
        let Config::Explainer(_) = self.predictor.model().config() else { return None };
        let example = self.predictor.example(sample);
        example.visit.explained.as_ref().map(|explained| causes::causes(sample, explained))
    }

    /// The attention of each block, named.
    pub(crate) fn blocks(&self, attentions: Vec<Vec<f32>>) -> Vec<Layer> {
        let layer = |(block, matrix): (usize, Vec<f32>)| match self.predictor.model().config() {
            Config::Gct(config) if block == 0 && config.prior == PriorRole::Replaces => {
                Layer { name: "P".into(), kind: LayerKind::Prior, matrix }
            }
            _ => Layer { name: format!("block {}", block + 1), kind: LayerKind::Attention, matrix },
        };
        attentions.into_iter().enumerate().map(layer).collect()
    }

    /// The same, and the probabilities of edges where they are what is asked.
    pub(crate) fn layers(&self, nodes: usize, attentions: Vec<Vec<f32>>, logits: &[f32]) -> Vec<Layer> {
        let probabilities = self.predictor.question().edge_probabilities(nodes, logits).map(answer);
        self.blocks(attentions).into_iter().chain(probabilities).collect()
    }

    /// The index of a code among all codes: diagnoses, treatments, labs.
    pub(crate) fn code_index(&self, kind: CodeKind, id: u32) -> u32 {
        self.run.embedding_rows().code(kind, id) - 1
    }

    /// What logits of the model (see [`Predictor::answers`]) say of a sample, the most probable first.
    pub fn answers(&self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Answer> {
        self.predictor.question().answers(sample, logits, self.run.vocabulary(), usize::MAX)
    }

    /// The same with as many answers as a page or a client wants to have: of connected pairs the 30 most
    /// probable.
    pub fn first_answers(&self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Answer> {
        self.predictor.question().answers(sample, logits, self.run.vocabulary(), PAIRS)
    }

    /// What [`Explainer::first_answers`] say, in the same order.
    pub(super) fn first_statements(&self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Statement> {
        self.predictor.question().statements(sample, logits, PAIRS)
    }

    /// The code of a node that is not the visit.
    pub(super) fn code(&self, encounter: &Encounter, node: usize) -> (CodeKind, &'a Code) {
        let (kind, id) = graph::code_of(encounter, node).expect("every node but the visit has a code");
        (kind, &self.run.vocabulary()[kind][id as usize])
    }

    /// Leaves as many answers as [`Explainer::first_answers`] has.
    pub fn shorten(&self, answers: &mut Vec<Answer>) {
        if self.predictor.question().reads_edges() {
            answers.truncate(PAIRS);
        }
    }
}

fn answer(connected: Vec<f32>) -> Layer {
    Layer { name: "answer".into(), kind: LayerKind::Probability, matrix: connected }
}

/// The node of the hidden code.
pub(crate) fn hidden_node(sample: &Sample<'_>) -> Option<usize> {
    let ranges = NodeRanges::of(sample.encounter());
    sample.hidden_position().map(|(kind, position)| ranges.range(kind).start + position)
}

/// The nodes of a sample, the visit first.
fn nodes(run: &Run, sample: &Sample<'_>) -> Vec<Node> {
    let (encounter, hidden) = (sample.encounter(), hidden_node(sample));
    let node = |node: usize| match graph::code_of(encounter, node) {
        None => Node::visit(),
        Some((kind, id)) => {
            let Code { code, description, .. } = run.vocabulary()[kind][id as usize].clone();
            Node { kind: NodeKind::Code(kind), code, description, hidden: hidden == Some(node) }
        }
    };
    (0..NodeRanges::of(encounter).len()).map(node).collect()
}
