//! Questions: what is asked of a model, from the encounters that it is asked of to what a page shows. A file
//! per question owns all of it; this one names the questions and hands each call on.
//!
//! | question | tasks | what is predicted | head | loss | chosen by |
//! |---|---|---|---|---|---|
//! | `Question::Edges` | `graph_reconstruction` | which pairs of nodes are connected | inner products | binary cross entropy over all ordered pairs | AUCPR |
//! | `Question::Labels` | `diagnosis_treatment`, `readmission`, `mortality`, `label:NAME`, `labels:NAME,NAME` | labels of the visit | linear | binary cross entropy | AUCPR |
//! | `Question::HiddenDiagnosis` | `masked_diagnosis` | which diagnosis is hidden | linear | cross entropy | accuracy |
//! | `Question::HiddenCode` | `masked_code` | which diagnosis, treatment or lab is hidden | linear | cross entropy over all codes | accuracy |
//! | `Question::NextDiagnoses` | `next_diagnoses`, `next_diagnoses:new` | diagnoses of the next visit | linear | binary cross entropy over all diagnoses | recall@20 |
//!
//! Encounters have the labels of the question, in its order, and no others. Where none of them is known, or
//! no edge, or no next visit, there is no answer to learn from or to compare with, and the encounter is left
//! out. With several labels, metrics are over all of them together.
//!
//! No `match` on a question has a wildcard arm, in this crate or in another (`cargo xtask tidy`): the
//! compiler leads whoever adds one to every place that must know it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::batch::{EmbeddingRows, Example};
use crate::dataset;
use crate::error::{Error, Result};
use crate::graph;
use crate::history::History;
use crate::metric;
use crate::overrides;
use crate::record::{CodeKind, Encounter, Vocabulary};
use crate::sample::Sample;

mod answer;
mod edges;
mod head;
mod hidden_code;
mod hidden_diagnosis;
mod labels;
mod measured;
mod next_diagnoses;
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
pub use next_diagnoses::{CodeScores, Next};
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
    /// Which code is hidden: a diagnosis, a treatment or a lab.
    HiddenCode,
    /// Which diagnoses the next visit has.
    NextDiagnoses(Next),
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

    /// The task of a hidden code of any kind, which the paper does not have.
    pub const MASKED_CODE: &'static str = hidden_code::MASKED_CODE;

    /// The names of the tasks about the next visit, which the paper does not have.
    pub const NEXT_NAMES: [&str; 2] = [next_diagnoses::NEXT_DIAGNOSES, next_diagnoses::NEW_DIAGNOSES];

    /// The names of all tasks but those about labels of any name.
    fn tasks() -> impl Iterator<Item = &'static str> {
        Question::NAMES.into_iter().chain([Question::MASKED_CODE]).chain(Question::NEXT_NAMES)
    }

    /// The question of this name, or whether the label of this name is true, if the dataset has it.
    ///
    /// # Errors
    /// If it is neither.
    pub fn named(name: &str, labels: &[String]) -> Result<Self> {
        let label = |label: &str| Question::Labels(Labels::Named(label.into()));
        // A label in the same letters comes before a task in other letters.
        if !Question::tasks().any(|task| task == name) && labels.iter().any(|label| label == name) {
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
            Question::NextDiagnoses(Next::New) => "new diagnoses of the next visit".into(),
            Question::Edges
            | Question::Labels(_)
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(Next::All) => self.to_string().replace('_', " "),
        }
    }

    /// What several tasks have in common: the kind of prediction, as messages name it.
    pub fn kind(&self) -> &'static str {
        match self {
            Question::Edges => GRAPH_RECONSTRUCTION,
            Question::Labels(_) => "labels",
            Question::HiddenDiagnosis => MASKED_DIAGNOSIS,
            Question::HiddenCode => Question::MASKED_CODE,
            Question::NextDiagnoses(Next::All) => next_diagnoses::NEXT_DIAGNOSES,
            Question::NextDiagnoses(Next::New) => next_diagnoses::NEW_DIAGNOSES,
        }
    }

    /// The same as the page names it.
    pub(crate) fn page_kind(&self) -> &'static str {
        match self {
            Question::Edges => "pairs",
            Question::Labels(_) => "labels",
            Question::HiddenDiagnosis => "diagnosis",
            Question::HiddenCode => "code",
            Question::NextDiagnoses(_) => "next",
        }
    }

    /// How many of the answers about a sample come with reasons on the page: each label and each diagnosis of
    /// the next visit, the first guess of a hidden one. An encounter has too many pairs of codes.
    pub(crate) fn explained_on_page(&self) -> usize {
        match self {
            Question::Edges => 0,
            Question::Labels(labels) => labels.names().len(),
            Question::HiddenDiagnosis | Question::HiddenCode => 1,
            Question::NextDiagnoses(_) => next_diagnoses::GUESSES,
        }
    }

    /// The ids of the diagnoses of the next visit that are predicted, where they are what is asked for and
    /// known.
    pub(crate) fn next_truth(&self, sample: &Sample<'_>) -> Option<Vec<u32>> {
        match self {
            Question::NextDiagnoses(next) => next.truth(sample),
            Question::Edges | Question::Labels(_) | Question::HiddenDiagnosis | Question::HiddenCode => None,
        }
    }

    /// The labels that it is about.
    pub fn labels(&self) -> Vec<String> {
        match self {
            Question::Labels(labels) => labels.names(),
            Question::Edges
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => Vec::new(),
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
            Question::HiddenCode => "a diagnosis, treatment or lab",
            Question::NextDiagnoses(_) => "a next visit of the same patient",
        }
    }

    /// Whether the true answer for an encounter is known, of which this is the next one of the subject.
    pub fn has_answer(&self, encounter: &Encounter, next: Option<&Encounter>) -> bool {
        match self {
            Question::Edges => encounter.edges.is_some(),
            Question::Labels(_) => encounter.labels.iter().any(Option::is_some),
            Question::HiddenDiagnosis => !encounter.codes.diagnosis.is_empty(),
            Question::HiddenCode => hidden_code::candidates(encounter) > 0,
            Question::NextDiagnoses(_) => next.is_some(),
        }
    }

    /// Whether a dataset can have true answers.
    pub(crate) fn has_answers(&self, dataset: &dataset::Manifest) -> bool {
        match self {
            Question::Edges => dataset.with_edges > 0,
            Question::Labels(labels) => labels.names().iter().any(|label| dataset.labels.contains(label)),
            Question::HiddenDiagnosis | Question::HiddenCode | Question::NextDiagnoses(_) => true,
        }
    }

    /// Whether edges are read for it, even by models that do not need them.
    pub(crate) fn reads_edges(&self) -> bool {
        match self {
            Question::Edges => true,
            Question::Labels(_)
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => false,
        }
    }

    /// Whether it is about the next encounter of the subject.
    pub(crate) fn is_about_next(&self) -> bool {
        match self {
            Question::NextDiagnoses(_) => true,
            Question::Edges | Question::Labels(_) | Question::HiddenDiagnosis | Question::HiddenCode => false,
        }
    }

    /// Whether the other encounters of a subject must be at hand to ask about one.
    pub(crate) fn needs_subject(&self, history: &History) -> bool {
        self.is_about_next() || !history.is_none()
    }

    /// The next encounter after one of a subject, if the question is about it.
    pub(crate) fn next<'a>(
        &self,
        encounter: &Encounter,
        after: &'a [Encounter],
        history: &History,
    ) -> Option<&'a Encounter> {
        self.is_about_next().then(|| history.next(encounter, after)).flatten()
    }

    /// The error for encounters of which none has an answer.
    pub(crate) fn no_answers(&self, part: &'static str) -> Error {
        Error::NoSamples { task: self.to_string(), part, missing: self.needs() }
    }

    /// What an encounter lacks for the question to be asked at all.
    pub(crate) fn missing(&self, encounter: &Encounter) -> Option<&'static str> {
        match self {
            Question::HiddenDiagnosis if encounter.codes.diagnosis.is_empty() => Some("diagnosis"),
            Question::HiddenCode if hidden_code::candidates(encounter) == 0 => {
                Some("diagnosis, treatment or lab")
            }
            Question::Edges
            | Question::Labels(_)
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => None,
        }
    }

    /// What is known of an encounter when the question is asked.
    ///
    /// # Panics
    /// If a code is to be hidden and there is none.
    pub fn sample<'a>(&self, encounter: &'a Encounter, hide: Hide) -> Sample<'a> {
        let sample = Sample::of(encounter);
        match self {
            Question::Edges | Question::Labels(_) | Question::NextDiagnoses(_) => sample,
            Question::HiddenDiagnosis => {
                sample.hiding(hide.position(encounter, encounter.codes.diagnosis.len()))
            }
            Question::HiddenCode => hidden_code::hiding(sample, hide),
        }
    }

    /// The same of one of a subject's encounters, which are in the order of a dataset: with those before it
    /// that are seen, and the next one as the truth if that is what is asked for.
    pub(crate) fn sample_among<'a>(
        &self,
        subject: &'a [Encounter],
        at: usize,
        history: &History,
        hide: Hide,
    ) -> Sample<'a> {
        let (encounter, after) = (&subject[at], &subject[at + 1..]);
        let sample = self.sample(encounter, hide).with_history(&subject[..at], history.window());
        sample.with_next(self.next(encounter, after, history))
    }

    /// The example of a sample with what it is to learn, for a vocabulary of so many diagnoses.
    pub(crate) fn with_targets(&self, example: Example, sample: &Sample<'_>, diagnoses: usize) -> Example {
        match self {
            Question::NextDiagnoses(next) => example.with_labels(next.targets(sample, diagnoses)),
            Question::Edges | Question::Labels(_) | Question::HiddenDiagnosis | Question::HiddenCode => {
                example
            }
        }
    }

    /// The head that answers it, before training.
    pub fn head(&self) -> HeadConfig {
        match self {
            Question::Edges => edges::HEAD,
            Question::Labels(labels) => HeadConfig::Labels { count: labels.names().len() },
            Question::HiddenDiagnosis => HeadConfig::HiddenDiagnosis,
            Question::HiddenCode => HeadConfig::HiddenCode,
            Question::NextDiagnoses(_) => HeadConfig::NextDiagnoses,
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
            Question::HiddenCode => (*head == self.head(), "hidden_code"),
            Question::NextDiagnoses(_) => (*head == self.head(), "next_diagnoses"),
        };
        if fits {
            return Ok(());
        }
        Err(Error::setting("head", serde_json::to_string(head).unwrap_or_default(), allowed))
    }

    /// Refuses label smoothing where there is nothing to smooth.
    ///
    /// # Errors
    /// If the targets are edges or diagnoses, most of which are absent: smoothing would turn every absent one
    /// into some.
    pub(crate) fn check_smoothing(&self, smoothing: f64) -> Result<()> {
        match self {
            Question::Edges if smoothing > 0.0 => {
                Err(Error::setting("label_smoothing", smoothing, "0 in this task, whose targets are edges"))
            }
            Question::NextDiagnoses(_) if smoothing > 0.0 => {
                let allowed = "0 in this task, in which most of many diagnoses are absent";
                Err(Error::setting("label_smoothing", smoothing, allowed))
            }
            Question::Edges
            | Question::Labels(_)
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => Ok(()),
        }
    }

    /// How many numbers are computed for an answer, apart from pairs of nodes, with a vocabulary of these
    /// sizes.
    pub(crate) fn answer_len(&self, rows: EmbeddingRows) -> usize {
        match self {
            Question::Edges => 1,
            Question::Labels(labels) => labels.names().len(),
            Question::HiddenDiagnosis | Question::NextDiagnoses(_) => rows.codes(CodeKind::Diagnosis),
            Question::HiddenCode => hidden_code::count(rows),
        }
    }

    /// The metric by which models are chosen; higher is better.
    pub fn chosen_by(&self) -> &'static str {
        match self {
            Question::Edges | Question::Labels(_) => "aucpr",
            Question::HiddenDiagnosis | Question::HiddenCode => "accuracy",
            Question::NextDiagnoses(_) => next_diagnoses::CHOSEN_BY,
        }
    }

    /// Names of the kinds of yes-or-no predictions, each with curves of its own.
    pub(crate) fn series(&self) -> Vec<String> {
        match self {
            Question::Edges => vec!["all pairs".into()],
            Question::Labels(labels) => labels.names(),
            Question::HiddenDiagnosis | Question::HiddenCode | Question::NextDiagnoses(_) => Vec::new(),
        }
    }

    /// Whether a sample has one prediction of each series, so that their numbers are numbers of encounters.
    pub(crate) fn counts_encounters(&self) -> bool {
        match self {
            Question::Labels(_)
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => true,
            Question::Edges => false,
        }
    }

    /// The log-odds of the most probable label, where labels are asked for.
    pub(crate) fn risk(&self, logits: &[f32]) -> Option<f32> {
        match self {
            Question::Labels(_) => logits.iter().copied().reduce(f32::max),
            Question::Edges
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => None,
        }
    }

    /// Calls `each` with every yes-or-no prediction of a sample whose truth is known: its series, its logit,
    /// and the truth. Diagnoses of the next visit are no series: they are ranked.
    pub(crate) fn each_outcome(
        &self,
        sample: &Sample<'_>,
        logits: &[f32],
        mut each: impl FnMut(usize, f32, bool),
    ) {
        match self {
            Question::Edges => edges::each_outcome(sample, logits, |logit, truth| each(0, logit, truth)),
            Question::Labels(_) => labels::each_outcome(sample, logits, each),
            Question::HiddenDiagnosis | Question::HiddenCode | Question::NextDiagnoses(_) => {}
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
            Question::HiddenDiagnosis | Question::HiddenCode => hidden_diagnosis::loss(sample, logits),
            Question::NextDiagnoses(next) => next.loss(sample, logits),
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
            Question::HiddenDiagnosis | Question::HiddenCode => {
                hidden_diagnosis::answers(sample, logits, vocabulary)
            }
            Question::NextDiagnoses(next) => next.answers(sample, logits, vocabulary),
        }
    }

    /// What [`Question::answers`] say, in the same order.
    pub(crate) fn statements(&self, sample: &Sample<'_>, logits: &[f32], pairs: usize) -> Vec<Statement> {
        match self {
            Question::Edges => edges::statements(sample, logits, pairs),
            Question::Labels(_) => labels::statements(logits),
            Question::HiddenDiagnosis | Question::HiddenCode => hidden_diagnosis::statements(sample, logits),
            Question::NextDiagnoses(next) => next.statements(sample, logits),
        }
    }

    /// What logits say of a sample, in probabilities.
    pub(crate) fn prediction(&self, sample: &Sample<'_>, logits: &[f32]) -> Prediction {
        match self {
            Question::Edges => Prediction::Edges(edges::links(sample, logits)),
            Question::Labels(_) => Prediction::Labels(labels::probabilities(logits)),
            Question::HiddenDiagnosis => hidden_diagnosis::prediction(sample, logits),
            Question::HiddenCode => hidden_code::prediction(sample, logits),
            Question::NextDiagnoses(next) => next.prediction(sample, logits),
        }
    }

    /// How probable an edge between two nodes is, where that is what is asked: a symmetric matrix, row after
    /// row.
    pub(crate) fn edge_probabilities(&self, nodes: usize, logits: &[f32]) -> Option<Vec<f32>> {
        match self {
            Question::Edges => Some(edges::probabilities(nodes, logits)),
            Question::Labels(_)
            | Question::HiddenDiagnosis
            | Question::HiddenCode
            | Question::NextDiagnoses(_) => None,
        }
    }
}

impl Statement {
    /// The log-odds of the statement by the logits of an encounter of so many nodes.
    pub(crate) fn log_odds(self, nodes: usize, logits: &[f32]) -> f64 {
        match self {
            Statement::Label(label) | Statement::Next(label) => f64::from(logits[label]),
            Statement::Hidden(id) => answer::class_log_odds(logits, id),
            Statement::Pair(from, to) => edges::log_odds(nodes, logits, (from, to)),
        }
    }

    /// The same statement about an encounter without some nodes; `None` if it is about one of them.
    pub(crate) fn without(self, left_out: &[usize]) -> Option<Statement> {
        match self {
            Statement::Label(_) | Statement::Hidden(_) | Statement::Next(_) => Some(self),
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
            Question::HiddenDiagnosis | Question::HiddenCode | Question::NextDiagnoses(_) => {
                f.write_str(self.kind())
            }
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
        let known: Vec<&str> = Question::tasks().chain([ANY_LABEL]).collect();
        Ok(match overrides::canonical("task", name, &known)? {
            GRAPH_RECONSTRUCTION => Question::Edges,
            labels::DIAGNOSIS_TREATMENT => Question::Labels(Labels::DiagnosisTreatment),
            MASKED_DIAGNOSIS => Question::HiddenDiagnosis,
            hidden_code::MASKED_CODE => Question::HiddenCode,
            labels::READMISSION => Question::Labels(Labels::Readmission),
            labels::MORTALITY => Question::Labels(Labels::Mortality),
            next_diagnoses::NEXT_DIAGNOSES => Question::NextDiagnoses(Next::All),
            next_diagnoses::NEW_DIAGNOSES => Question::NextDiagnoses(Next::New),
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
        for name in Question::tasks().chain(["label:died", "label:label:x"]) {
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
        assert!(error.ends_with("new, label:died, label:mortality, label:Readmission"), "{error}");
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
        let has_answer = |question: &Question, encounter: &Encounter| question.has_answer(encounter, None);
        assert!(!has_answer(&Question::Edges, &encounter(&[])), "no edges");
        assert!(!has_answer(&Question::HiddenDiagnosis, &encounter(&[])), "no diagnosis");
        assert!(!has_answer(&label("x"), &encounter(&[None])), "unknown");
        assert!(has_answer(&label("x"), &encounter(&[Some(false)])));
        let next = Question::NextDiagnoses(Next::All);
        assert!(!has_answer(&next, &encounter(&[])), "no next visit");
        assert!(next.has_answer(&encounter(&[]), Some(&encounter(&[]))), "one without diagnoses is known");
        let both = Question::Labels(Labels::DiagnosisTreatment);
        assert!(has_answer(&both, &encounter(&[None, Some(true)])), "one of two is known");
    }
}
