//! Questions: what is asked of a model, from the encounters that it is asked of to what a page shows. A file
//! per question owns all of it; this one names the questions and hands each call on.
//!
//! | question | tasks | what is predicted | head | loss | chosen by |
//! |---|---|---|---|---|---|
//! | `Question::Edges` | `graph_reconstruction` | which pairs of nodes are connected | inner products | binary cross entropy over all ordered pairs | AUCPR |
//! | `Question::Labels` | `diagnosis_treatment`, `readmission`, `mortality`, `label:NAME`, `labels:NAME,NAME` | labels of the visit | linear | binary cross entropy | AUCPR |
//! | `Question::HiddenDiagnosis` | `masked_diagnosis` | which diagnosis is hidden | linear | cross entropy | accuracy |
//!
//! Encounters have the labels of the question, in its order, and no others. Where none of them is known, or
//! no edge, there is no answer to learn from or to compare with, and the encounter is left out. With several
//! labels, metrics are over all of them together.
//!
//! No `match` on a question has a wildcard arm, in this crate or in another (`cargo xtask tidy`): the
//! compiler leads whoever adds one to every place that must know it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::dataset;
use crate::error::{Error, Result};
use crate::graph;
use crate::metric;
use crate::overrides;
use crate::record::{Encounter, Vocabulary};
use crate::sample::Sample;

mod answer;
mod edges;
mod head;
mod hidden_diagnosis;
mod labels;
mod measured;
mod subgroups;
mod table;
mod tally;

pub use answer::{Answer, Prediction};
pub(crate) use answer::{Statement, probability_of};
pub use head::HeadConfig;
pub(crate) use head::{Backbone, Head, NodeVectors, Output};
pub use hidden_diagnosis::Hide;
pub use labels::Labels;
pub(crate) use measured::{Asked, Chosen};
pub use measured::{Counts, Decisions, Details, LabelScores};
pub use subgroups::Subgroup;
pub(crate) use subgroups::{By, NOT_RECORDED, gaps};
pub(crate) use table::Table;
pub use table::TableOptions;
pub(crate) use tally::{Replicates, Tally};

/// What is asked of a model. Its text form is the name of the task.
///
/// ```
/// use gct::question::{Labels, Question};
///
/// let question: Question = "graph_reconstruction".parse()?;
/// assert_eq!(question, Question::Edges);
/// // Any label of a dataset can be asked for.
/// let labels = ["died".to_owned(), "readmission".to_owned()];
/// let question = Question::named("died", &labels)?;
/// assert_eq!(question, Question::Labels(Labels::Named("died".into())));
/// assert_eq!(question.to_string(), "label:died");
/// assert_eq!((question.labels(), question.chosen_by()), (vec!["died".to_owned()], "aucpr"));
/// # Ok::<(), gct::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Question {
    /// Which pairs of nodes are connected.
    Edges,
    /// Whether labels of the visit are true.
    Labels(Labels),
    /// Which diagnosis is hidden.
    HiddenDiagnosis,
}

const GRAPH_RECONSTRUCTION: &str = "graph_reconstruction";
const MASKED_DIAGNOSIS: &str = "masked_diagnosis";

/// How the task of a label is listed. No name is equal to it: names are compared in small letters.
const ANY_LABEL: &str = "label:NAME";

impl Question {
    /// The names of the paper's tasks.
    pub const NAMES: [&str; 5] = [
        GRAPH_RECONSTRUCTION,
        labels::DIAGNOSIS_TREATMENT,
        MASKED_DIAGNOSIS,
        labels::READMISSION,
        labels::MORTALITY,
    ];

    /// The question of this name, or whether the label of this name is true, if the dataset has it.
    ///
    /// # Errors
    /// If it is neither.
    pub fn named(name: &str, labels: &[String]) -> Result<Self> {
        let label = |label: &str| Question::Labels(Labels::Named(label.into()));
        // A label in the same letters comes before a task in other letters.
        if !Question::NAMES.contains(&name) && labels.iter().any(|label| label == name) {
            return Ok(label(name));
        }
        let alike: Vec<&String> = labels.iter().filter(|label| label.eq_ignore_ascii_case(name)).collect();
        name.parse().or_else(|error| match (error, alike.as_slice()) {
            (Error::UnknownName { .. }, [alike]) => Ok(label(alike)),
            (Error::UnknownName { what, name, mut known }, _) => {
                known.extend(labels.iter().map(|label| format!("label:{label}")));
                known.retain(|known| labels.is_empty() || known != ANY_LABEL);
                Err(Error::UnknownName { what, name, known })
            }
            (error, _) => Err(error),
        })
    }

    /// The name of the task to be read: `graph reconstruction`. A label keeps its own name, whatever that is.
    pub fn in_words(&self) -> String {
        match self {
            Question::Labels(Labels::Named(label)) => format!("label {label}"),
            Question::Labels(Labels::Several(labels)) => format!("labels {}", labels.join(", ")),
            Question::Edges | Question::Labels(_) | Question::HiddenDiagnosis => {
                self.to_string().replace('_', " ")
            }
        }
    }

    /// What several tasks have in common: the kind of prediction, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Question::Edges => GRAPH_RECONSTRUCTION,
            Question::Labels(_) => "labels",
            Question::HiddenDiagnosis => MASKED_DIAGNOSIS,
        }
    }

    /// The same as the page names it.
    pub(crate) fn page_kind(&self) -> &'static str {
        match self {
            Question::Edges => "pairs",
            Question::Labels(_) => "labels",
            Question::HiddenDiagnosis => "diagnosis",
        }
    }

    /// The labels that it is about.
    pub fn labels(&self) -> Vec<String> {
        match self {
            Question::Labels(labels) => labels.names(),
            Question::Edges | Question::HiddenDiagnosis => Vec::new(),
        }
    }

    /// The columns of its labels among those of a dataset.
    ///
    /// # Errors
    /// If the dataset lacks one.
    pub fn columns(&self, labels: &[String]) -> Result<Vec<usize>> {
        let column = |wanted: String| {
            labels.iter().position(|label| *label == wanted).ok_or_else(|| Error::NoSuchLabel {
                task: self.to_string(),
                label: wanted.clone(),
                known: labels.to_vec(),
            })
        };
        self.labels().into_iter().map(column).collect()
    }

    /// What an encounter must have to be asked about, in a message: "known edges".
    fn needs(&self) -> &'static str {
        match self {
            Question::Edges => "known edges",
            Question::Labels(_) => "a known label",
            Question::HiddenDiagnosis => "a diagnosis",
        }
    }

    /// Whether the true answer for an encounter is known.
    pub fn has_answer(&self, encounter: &Encounter) -> bool {
        match self {
            Question::Edges => encounter.edges.is_some(),
            Question::Labels(_) => encounter.labels.iter().any(Option::is_some),
            Question::HiddenDiagnosis => !encounter.codes.diagnosis.is_empty(),
        }
    }

    /// Whether a dataset can have true answers.
    pub(crate) fn has_answers(&self, dataset: &dataset::Manifest) -> bool {
        match self {
            Question::Edges => dataset.with_edges > 0,
            Question::Labels(labels) => labels.names().iter().any(|label| dataset.labels.contains(label)),
            Question::HiddenDiagnosis => true,
        }
    }

    /// Whether edges are read for it, even by models that do not need them.
    pub(crate) fn reads_edges(&self) -> bool {
        match self {
            Question::Edges => true,
            Question::Labels(_) | Question::HiddenDiagnosis => false,
        }
    }

    /// The error for encounters of which none has an answer.
    pub(crate) fn no_answers(&self, part: &'static str) -> Error {
        Error::NoSamples { task: self.to_string(), part, missing: self.needs() }
    }

    /// What an encounter lacks for the question to be asked at all.
    pub(crate) fn missing(&self, encounter: &Encounter) -> Option<&'static str> {
        match self {
            Question::HiddenDiagnosis if encounter.codes.diagnosis.is_empty() => Some("diagnosis"),
            Question::Edges | Question::Labels(_) | Question::HiddenDiagnosis => None,
        }
    }

    /// What is known of an encounter when the question is asked.
    ///
    /// # Panics
    /// If a diagnosis is to be hidden and there is none.
    pub fn sample<'a>(&self, encounter: &'a Encounter, hide: Hide) -> Sample<'a> {
        let sample = Sample::of(encounter);
        match self {
            Question::Edges | Question::Labels(_) => sample,
            Question::HiddenDiagnosis => sample.hiding(hide.position(encounter)),
        }
    }

    /// The head that answers it, before training.
    pub fn head(&self) -> HeadConfig {
        match self {
            Question::Edges => edges::HEAD,
            Question::Labels(labels) => HeadConfig::Labels { count: labels.names().len() },
            Question::HiddenDiagnosis => HeadConfig::HiddenDiagnosis,
        }
    }

    /// Refuses a head that does not answer it.
    ///
    /// # Errors
    /// If it is such a head.
    pub(crate) fn check_head(&self, head: &HeadConfig) -> Result<()> {
        let (fits, allowed) = match self {
            Question::Edges => {
                (matches!(head, HeadConfig::Edges { .. } | HeadConfig::RawEdges), "edges or raw_edges")
            }
            Question::Labels(_) => (*head == self.head(), "labels, one for each label of the task"),
            Question::HiddenDiagnosis => (*head == self.head(), "hidden_diagnosis"),
        };
        if fits {
            return Ok(());
        }
        Err(Error::setting("head", serde_json::to_string(head).unwrap_or_default(), allowed))
    }

    /// Refuses label smoothing where there is nothing to smooth.
    ///
    /// # Errors
    /// If the targets are edges, most of which are absent: smoothing would turn every absent one into some.
    pub(crate) fn check_smoothing(&self, smoothing: f64) -> Result<()> {
        match self {
            Question::Edges if smoothing > 0.0 => {
                Err(Error::setting("label_smoothing", smoothing, "0 in this task, whose targets are edges"))
            }
            Question::Edges | Question::Labels(_) | Question::HiddenDiagnosis => Ok(()),
        }
    }

    /// How many numbers an answer can have, apart from pairs of nodes, for a vocabulary of so many diagnoses.
    pub(crate) fn answer_len(&self, diagnoses: usize) -> usize {
        match self {
            Question::Edges => 1,
            Question::Labels(labels) => labels.names().len(),
            Question::HiddenDiagnosis => diagnoses,
        }
    }

    /// The metric by which models are chosen; higher is better.
    pub fn chosen_by(&self) -> &'static str {
        match self {
            Question::Edges | Question::Labels(_) => "aucpr",
            Question::HiddenDiagnosis => "accuracy",
        }
    }

    /// Names of the kinds of yes-or-no predictions, each with curves of its own.
    pub(crate) fn series(&self) -> Vec<String> {
        match self {
            Question::Edges => vec!["all pairs".into()],
            Question::Labels(labels) => labels.names(),
            Question::HiddenDiagnosis => Vec::new(),
        }
    }

    /// Whether a sample has one prediction of each series, so that their numbers are numbers of encounters.
    pub(crate) fn counts_encounters(&self) -> bool {
        match self {
            Question::Labels(_) | Question::HiddenDiagnosis => true,
            Question::Edges => false,
        }
    }

    /// The log-odds of the most probable label, where labels are asked for.
    pub(crate) fn risk(&self, logits: &[f32]) -> Option<f32> {
        match self {
            Question::Labels(_) => logits.iter().copied().reduce(f32::max),
            Question::Edges | Question::HiddenDiagnosis => None,
        }
    }

    /// Calls `each` with every yes-or-no prediction of a sample whose truth is known: its series, its logit,
    /// and the truth.
    pub(crate) fn each_outcome(
        &self,
        sample: &Sample<'_>,
        logits: &[f32],
        mut each: impl FnMut(usize, f32, bool),
    ) {
        match self {
            Question::Edges => edges::each_outcome(sample, logits, |logit, truth| each(0, logit, truth)),
            Question::Labels(_) => labels::each_outcome(sample, logits, each),
            Question::HiddenDiagnosis => {}
        }
    }

    /// What training would make smaller, of one sample; `None` if no answer is known.
    pub(crate) fn loss(&self, sample: &Sample<'_>, logits: &[f32]) -> Option<f64> {
        match self {
            Question::Edges | Question::Labels(_) => {
                let (mut sum, mut count) = (0.0, 0);
                self.each_outcome(sample, logits, |_, logit, truth| {
                    sum += metric::log_loss(f64::from(logit), truth);
                    count += 1;
                });
                (count > 0).then(|| sum / f64::from(count))
            }
            Question::HiddenDiagnosis => hidden_diagnosis::loss(sample, logits),
        }
    }

    /// An empty tally of its metrics.
    pub(crate) fn tally(&self) -> Tally {
        Tally::new(self)
    }

    /// An empty table of predictions.
    pub(crate) fn table<'a>(&self, vocabulary: &'a Vocabulary, options: TableOptions) -> Table<'a> {
        Table::new(self, vocabulary, options)
    }

    /// What logits say of a sample, the most probable first; of connected pairs at most so many.
    pub(crate) fn answers(
        &self,
        sample: &Sample<'_>,
        logits: &[f32],
        vocabulary: &Vocabulary,
        pairs: usize,
    ) -> Vec<Answer> {
        match self {
            Question::Edges => edges::answers(sample, logits, vocabulary, pairs),
            Question::Labels(labels) => labels::answers(labels, sample, logits),
            Question::HiddenDiagnosis => hidden_diagnosis::answers(sample, logits, vocabulary),
        }
    }

    /// What [`Question::answers`] say, in the same order.
    pub(crate) fn statements(&self, sample: &Sample<'_>, logits: &[f32], pairs: usize) -> Vec<Statement> {
        match self {
            Question::Edges => edges::statements(sample, logits, pairs),
            Question::Labels(_) => labels::statements(logits),
            Question::HiddenDiagnosis => hidden_diagnosis::statements(sample, logits),
        }
    }

    /// What logits say of a sample, in probabilities.
    pub(crate) fn prediction(&self, sample: &Sample<'_>, logits: &[f32]) -> Prediction {
        match self {
            Question::Edges => Prediction::Edges(edges::links(sample, logits)),
            Question::Labels(_) => Prediction::Labels(labels::probabilities(logits)),
            Question::HiddenDiagnosis => hidden_diagnosis::prediction(sample, logits),
        }
    }

    /// How probable an edge between two nodes is, where that is what is asked: a symmetric matrix, row after
    /// row.
    pub(crate) fn edge_probabilities(&self, nodes: usize, logits: &[f32]) -> Option<Vec<f32>> {
        match self {
            Question::Edges => Some(edges::probabilities(nodes, logits)),
            Question::Labels(_) | Question::HiddenDiagnosis => None,
        }
    }
}

impl Statement {
    /// The log-odds of the statement by the logits of an encounter of so many nodes.
    pub(crate) fn log_odds(self, nodes: usize, logits: &[f32]) -> f64 {
        match self {
            Statement::Label(label) => f64::from(logits[label]),
            Statement::Diagnosis(id) => answer::class_log_odds(logits, id),
            Statement::Pair(from, to) => edges::log_odds(nodes, logits, (from, to)),
        }
    }

    /// The same statement about an encounter without some nodes; `None` if it is about one of them.
    pub(crate) fn without(self, left_out: &[usize]) -> Option<Statement> {
        match self {
            Statement::Label(_) | Statement::Diagnosis(_) => Some(self),
            Statement::Pair(from, to) => {
                let ends = [from, to].map(|node| graph::node_without(node, left_out));
                Some(Statement::Pair(ends[0]?, ends[1]?))
            }
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Edges => f.write_str(GRAPH_RECONSTRUCTION),
            Question::Labels(labels) => labels.fmt(f),
            Question::HiddenDiagnosis => f.write_str(MASKED_DIAGNOSIS),
        }
    }
}

impl FromStr for Question {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        if let Some(label) = name.strip_prefix("label:").filter(|label| !label.is_empty()) {
            return Ok(Question::Labels(Labels::Named(label.into())));
        }
        if let Some(list) = name.strip_prefix("labels:") {
            return Labels::of_list(list).map(Question::Labels);
        }
        let known: Vec<&str> = Question::NAMES.into_iter().chain([ANY_LABEL]).collect();
        Ok(match overrides::canonical("task", name, &known)? {
            GRAPH_RECONSTRUCTION => Question::Edges,
            labels::DIAGNOSIS_TREATMENT => Question::Labels(Labels::DiagnosisTreatment),
            MASKED_DIAGNOSIS => Question::HiddenDiagnosis,
            labels::READMISSION => Question::Labels(Labels::Readmission),
            labels::MORTALITY => Question::Labels(Labels::Mortality),
            name => unreachable!("{name} is among the names and is no task"),
        })
    }
}

impl TryFrom<String> for Question {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        name.parse()
    }
}

impl From<Question> for String {
    fn from(question: Question) -> Self {
        question.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    fn label(name: &str) -> Question {
        Question::Labels(Labels::Named(name.into()))
    }

    #[test]
    fn names_are_read_and_written_alike() {
        for name in Question::NAMES.into_iter().chain(["label:died", "label:label:x"]) {
            assert_eq!(name.parse::<Question>().unwrap().to_string(), name);
        }
        let error = "readmision".parse::<Question>().unwrap_err().to_string();
        assert!(error.starts_with("unknown task `readmision`; known: graph_reconstruction"), "{error}");
        assert!("label:".parse::<Question>().is_err());
    }

    #[test]
    fn several_labels_keep_their_order() {
        let both: Question = "labels:b_2,a".parse().unwrap();
        assert_eq!(both, Question::Labels(Labels::Several(vec!["b_2".into(), "a".into()])));
        assert_eq!((both.to_string(), both.in_words()), ("labels:b_2,a".into(), "labels b_2, a".into()));
        assert_eq!("labels:b_2, a".parse::<Question>().unwrap(), both);
        assert_eq!("labels:a".parse::<Question>().unwrap(), label("a"), "one is that label");
        let labels = ["a".to_owned(), "b_2".to_owned()];
        assert_eq!(both.columns(&labels).unwrap(), [1, 0]);
        let error = both.columns(&labels[..1]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the task `labels:b_2,a` needs the label `b_2`, which the dataset does not have; it has: a"
        );
        for wrong in ["labels:", "labels:a,", "labels:a,,b", "labels:a,b,a", "labels: ,a"] {
            let error = wrong.parse::<Question>().unwrap_err().to_string();
            assert_eq!(
                error,
                format!(
                    "setting `task`: {wrong} is not allowed; expected labels of the dataset with commas between \
                     them, each once: labels:NAME,NAME"
                )
            );
        }
        assert_eq!(Question::named("labels:a,b_2", &labels).unwrap().labels(), labels);
    }

    #[test]
    fn case_and_hyphens_do_not_matter_in_names_of_tasks() {
        for name in ["Graph-Reconstruction", "GRAPH_RECONSTRUCTION", "graph-reconstruction"] {
            assert_eq!(name.parse::<Question>().unwrap(), Question::Edges);
        }
        assert_eq!("label:In-Hospital".parse::<Question>().unwrap().to_string(), "label:In-Hospital");
    }

    #[test]
    fn a_label_can_be_named_alone_unless_a_task_has_its_name() {
        let labels = ["died".to_owned(), "mortality".to_owned(), "Readmission".to_owned()];
        let named = |name: &str| Question::named(name, &labels).map(|question| question.to_string());
        assert_eq!(named("died").unwrap(), "label:died");
        assert_eq!(named("mortality").unwrap(), "mortality");
        assert_eq!(named("Readmission").unwrap(), "label:Readmission");
        assert_eq!(named("MORTALITY").unwrap(), "mortality");
        assert_eq!(named("DIED").unwrap(), "label:died");
        let error = named("dead").unwrap_err().to_string();
        assert!(error.starts_with("unknown task `dead`; known: graph_reconstruction"), "{error}");
        assert!(error.ends_with("mortality, label:died, label:mortality, label:Readmission"), "{error}");
    }

    #[test]
    fn in_words_a_label_keeps_its_name() {
        assert_eq!(Question::Edges.in_words(), "graph reconstruction");
        assert_eq!(label("d1_m1").in_words(), "label d1_m1");
    }

    #[test]
    fn a_missing_label_lists_those_there_are() {
        let labels = ["died".to_owned(), "readmission".to_owned()];
        assert_eq!(Question::Labels(Labels::Readmission).columns(&labels).unwrap(), [1]);
        let error = Question::Labels(Labels::Mortality).columns(&labels).unwrap_err().to_string();
        assert!(error.contains("`mortality`") && error.contains("died, readmission"), "{error}");
    }

    #[test]
    fn only_encounters_with_an_answer_are_learned_from() {
        let encounter = |labels: &[Option<bool>]| Encounter {
            labels: labels.to_vec(),
            ..Encounter::new(PerKind::default())
        };
        assert!(!Question::Edges.has_answer(&encounter(&[])), "no edges");
        assert!(!Question::HiddenDiagnosis.has_answer(&encounter(&[])), "no diagnosis");
        assert!(!label("x").has_answer(&encounter(&[None])), "unknown");
        assert!(label("x").has_answer(&encounter(&[Some(false)])));
        let both = Question::Labels(Labels::DiagnosisTreatment);
        assert!(both.has_answer(&encounter(&[None, Some(true)])), "one of two is known");
    }
}
