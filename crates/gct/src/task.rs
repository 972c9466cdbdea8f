//! The tasks of the paper: what is hidden, what is asked, by which figure models are chosen.
//!
//! | task | what is predicted | head | loss | chosen by |
//! |---|---|---|---|---|
//! | `graph_reconstruction` | which pairs of nodes are connected | edges | binary cross entropy over all ordered pairs | AUCPR |
//! | `diagnosis_treatment` | labels `d1_m1` and `d2_m1` of synthetic data | labels | binary cross entropy | AUCPR |
//! | `masked_diagnosis` | which diagnosis is hidden | hidden diagnosis | cross entropy | accuracy |
//! | `readmission`, `mortality` | the label of that name | labels | binary cross entropy | AUCPR |
//! | `label:NAME` | any label of the dataset | labels | binary cross entropy | AUCPR |
//!
//! Where a label is unknown, the encounter is left out. With several labels, figures are over all of them together.

use std::fmt;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::batch::{EmbeddingRows, Example};
use crate::error::{Error, Result};
use crate::model::HeadConfig;
use crate::overrides;
use crate::prior::{Cells, Hidden, HiddenRule, MatrixSettings, Prior};
use crate::record::Encounter;

/// What a model learns to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Task {
    /// Which pairs of nodes are connected.
    GraphReconstruction,
    /// The two labels of the synthetic data that say which diagnosis led to a treatment.
    DiagnosisTreatment,
    /// Which diagnosis is hidden.
    MaskedDiagnosis,
    /// Whether the patient comes back.
    Readmission,
    /// Whether the patient dies.
    Mortality,
    /// Any label of the dataset.
    Label(String),
}

/// How the task of a label is named, among the names of tasks. No name is equal to it: names are compared in small letters.
const ANY_LABEL: &str = "label:NAME";

/// The figure by which models are chosen; higher is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// Average precision.
    Aucpr,
    /// The share of right answers.
    Accuracy,
}

impl Selection {
    /// Its name in files and messages.
    pub fn name(self) -> &'static str {
        match self {
            Selection::Aucpr => "aucpr",
            Selection::Accuracy => "accuracy",
        }
    }
}

/// How P is filled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PriorSettings {
    /// What visit-diagnosis cells and the diagonal get before rows are scaled: 0.5 in the authors' code.
    pub scalar: f32,
    /// What cells between codes are.
    pub cells: Cells,
    /// What happens to the cells of a hidden diagnosis.
    pub hidden: HiddenRule,
}

impl Default for PriorSettings {
    fn default() -> Self {
        let MatrixSettings { scalar, cells, .. } = MatrixSettings::default();
        PriorSettings { scalar, cells, hidden: HiddenRule::default() }
    }
}

impl PriorSettings {
    pub(crate) fn check(&self) -> Result<()> {
        if self.scalar > 0.0 && self.scalar <= 1e6 {
            return Ok(());
        }
        Err(Error::setting("prior.scalar", self.scalar, "a number above 0, up to 1000000"))
    }
}

/// Which diagnosis is hidden.
#[derive(Debug, Clone, Copy)]
pub enum Hide {
    /// One that depends on the encounter alone.
    ByEncounter,
    /// Another one for each key.
    ByKey(u64),
    /// The one at this position among the encounter's diagnoses.
    Position(usize),
}

/// What an encounter becomes for a task.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The task.
    pub task: &'a Task,
    /// Which row of the embedding belongs to which code.
    pub rows: EmbeddingRows,
    /// What P is filled with.
    pub prior: &'a Prior,
    /// And how.
    pub settings: PriorSettings,
}

impl View<'_> {
    /// The encounter in numbers; for masked diagnosis, with a diagnosis hidden.
    ///
    /// # Panics
    /// If there is nothing to hide: see [`Task::asks`].
    pub fn example(&self, encounter: &Encounter, hide: Hide) -> Example {
        let hidden = (*self.task == Task::MaskedDiagnosis)
            .then(|| Hidden { position: hidden_position(encounter, hide), rule: self.settings.hidden });
        let settings = MatrixSettings { scalar: self.settings.scalar, cells: self.settings.cells, hidden };
        Example::new(encounter, self.rows, self.prior, &settings)
    }
}

/// The position of the diagnosis that is hidden.
pub(crate) fn hidden_position(encounter: &Encounter, hide: Hide) -> usize {
    let diagnoses = encounter.codes.diagnosis.len();
    match hide {
        Hide::ByKey(key) => Xoshiro256PlusPlus::seed_from_u64(key).random_range(0..diagnoses),
        Hide::Position(position) => position,
        Hide::ByEncounter => {
            let digest = Sha256::digest(format!("gct-hidden-1\0{}", encounter.id.as_str()));
            let number = u64::from_be_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes"));
            (number % diagnoses as u64) as usize
        }
    }
}

impl Task {
    /// The names of the paper's tasks.
    pub const NAMES: [&str; 5] =
        ["graph_reconstruction", "diagnosis_treatment", "masked_diagnosis", "readmission", "mortality"];

    /// Its name to be read: `graph reconstruction`. A label keeps its own name, whatever that is.
    pub fn in_words(&self) -> String {
        match self {
            Task::Label(label) => format!("label {label}"),
            task => task.to_string().replace('_', " "),
        }
    }

    /// The labels that it predicts.
    pub fn labels(&self) -> Vec<String> {
        match self {
            Task::GraphReconstruction | Task::MaskedDiagnosis => Vec::new(),
            Task::DiagnosisTreatment => vec!["d1_m1".into(), "d2_m1".into()],
            Task::Readmission | Task::Mortality => vec![self.to_string()],
            Task::Label(label) => vec![label.clone()],
        }
    }

    /// The task of this name, or the prediction of the label of this name, if the dataset has it.
    ///
    /// # Errors
    /// If it is neither.
    pub fn named(name: &str, labels: &[String]) -> Result<Self> {
        // A label that is spelled just so comes before a task in other letters.
        if !Task::NAMES.contains(&name) && labels.iter().any(|label| label == name) {
            return Ok(Task::Label(name.into()));
        }
        let alike: Vec<&String> = labels.iter().filter(|label| label.eq_ignore_ascii_case(name)).collect();
        name.parse().or_else(|error| match (error, alike.as_slice()) {
            (Error::UnknownName { .. }, [label]) => Ok(Task::Label((*label).clone())),
            (Error::UnknownName { what, name, mut known }, _) => {
                known.extend(labels.iter().map(|label| format!("label:{label}")));
                known.retain(|known| labels.is_empty() || known != ANY_LABEL);
                Err(Error::UnknownName { what, name, known })
            }
            (error, _) => Err(error),
        })
    }

    /// What its labels are among those of a dataset.
    ///
    /// # Errors
    /// If the dataset lacks one.
    pub fn columns(&self, labels: &[String]) -> Result<Vec<usize>> {
        let place = |wanted: String| {
            labels.iter().position(|label| *label == wanted).ok_or_else(|| Error::NoSuchLabel {
                task: self.to_string(),
                label: wanted.clone(),
                known: labels.to_vec(),
            })
        };
        self.labels().into_iter().map(place).collect()
    }

    /// The head that answers it, before training.
    pub fn head(&self) -> HeadConfig {
        match self {
            // The log-odds of an edge in the synthetic data, where about 4 of 100 pairs are connected.
            Task::GraphReconstruction => HeadConfig::Edges { initial_bias: -3.0, kinds: true },
            Task::MaskedDiagnosis => HeadConfig::HiddenDiagnosis,
            _ => HeadConfig::Labels { count: self.labels().len() },
        }
    }

    /// By what models are chosen.
    pub fn selection(&self) -> Selection {
        match self {
            Task::MaskedDiagnosis => Selection::Accuracy,
            _ => Selection::Aucpr,
        }
    }

    /// Whether an encounter has something to ask, and the answer; `columns` are those of [`Task::columns`].
    pub fn asks(&self, encounter: &Encounter, columns: &[usize]) -> bool {
        match self {
            Task::GraphReconstruction => encounter.edges.is_some(),
            Task::MaskedDiagnosis => !encounter.codes.diagnosis.is_empty(),
            _ => columns.iter().any(|column| encounter.labels[*column].is_some()),
        }
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Task::GraphReconstruction => Task::NAMES[0],
            Task::DiagnosisTreatment => Task::NAMES[1],
            Task::MaskedDiagnosis => Task::NAMES[2],
            Task::Readmission => Task::NAMES[3],
            Task::Mortality => Task::NAMES[4],
            Task::Label(label) => return write!(f, "label:{label}"),
        })
    }
}

impl FromStr for Task {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        if let Some(label) = name.strip_prefix("label:").filter(|label| !label.is_empty()) {
            return Ok(Task::Label(label.into()));
        }
        let known: Vec<&str> = Task::NAMES.into_iter().chain([ANY_LABEL]).collect();
        Ok(match overrides::canonical("task", name, &known)? {
            "graph_reconstruction" => Task::GraphReconstruction,
            "diagnosis_treatment" => Task::DiagnosisTreatment,
            "masked_diagnosis" => Task::MaskedDiagnosis,
            "readmission" => Task::Readmission,
            "mortality" => Task::Mortality,
            name => unreachable!("{name} is among the names and is no task"),
        })
    }
}

impl TryFrom<String> for Task {
    type Error = Error;

    fn try_from(name: String) -> Result<Self> {
        name.parse()
    }
}

impl From<Task> for String {
    fn from(task: Task) -> Self {
        task.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EncounterId, PerKind, SubjectId};

    fn encounter(id: &str, diagnoses: u32) -> Encounter {
        Encounter {
            id: EncounterId::new(id),
            subject: SubjectId::new("s"),
            start: None,
            prediction_time: None,
            part: None,
            codes: PerKind { diagnosis: (0..diagnoses).collect(), treatment: vec![], lab: vec![] },
            edges: None,
            labels: vec![None, Some(true)],
        }
    }

    #[test]
    fn names_are_read_and_written_alike() {
        for name in Task::NAMES.into_iter().chain(["label:died", "label:label:x"]) {
            assert_eq!(name.parse::<Task>().unwrap().to_string(), name);
        }
        let error = "readmision".parse::<Task>().unwrap_err().to_string();
        assert!(error.starts_with("unknown task `readmision`; known: graph_reconstruction"), "{error}");
        assert!("label:".parse::<Task>().is_err());
    }

    #[test]
    fn case_and_hyphens_do_not_matter_in_names_of_tasks() {
        for name in ["Graph-Reconstruction", "GRAPH_RECONSTRUCTION", "graph-reconstruction"] {
            assert_eq!(name.parse::<Task>().unwrap(), Task::GraphReconstruction);
        }
        assert_eq!("label:In-Hospital".parse::<Task>().unwrap().to_string(), "label:In-Hospital");
    }

    #[test]
    fn a_label_can_be_named_alone_unless_a_task_has_its_name() {
        let labels = ["died".to_owned(), "mortality".to_owned(), "Readmission".to_owned()];
        let named = |name: &str| Task::named(name, &labels).map(|task| task.to_string());
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
        assert_eq!(Task::GraphReconstruction.in_words(), "graph reconstruction");
        assert_eq!(Task::Label("d1_m1".into()).in_words(), "label d1_m1");
    }

    #[test]
    fn a_missing_label_lists_those_there_are() {
        let labels = ["died".to_owned(), "readmission".to_owned()];
        assert_eq!(Task::Readmission.columns(&labels).unwrap(), [1]);
        let error = Task::Mortality.columns(&labels).unwrap_err().to_string();
        assert!(error.contains("`mortality`") && error.contains("died, readmission"), "{error}");
    }

    #[test]
    fn only_encounters_with_an_answer_are_asked() {
        let encounter = encounter("e", 0);
        assert!(!Task::GraphReconstruction.asks(&encounter, &[]), "no edges");
        assert!(!Task::MaskedDiagnosis.asks(&encounter, &[]), "no diagnosis");
        assert!(!Task::Label("x".into()).asks(&encounter, &[0]), "unknown");
        assert!(Task::Label("x".into()).asks(&encounter, &[1]));
        assert!(Task::DiagnosisTreatment.asks(&encounter, &[0, 1]), "one of two is known");
    }

    #[test]
    fn evaluation_always_hides_the_same_diagnosis_and_training_another() {
        let positions = |hide: &dyn Fn(u64) -> Hide| -> Vec<usize> {
            (0..200).map(|key| hidden_position(&encounter("e", 7), hide(key))).collect()
        };
        let fixed = positions(&|_| Hide::ByEncounter);
        assert!(fixed.iter().all(|position| *position == fixed[0]));
        let changing = positions(&Hide::ByKey);
        assert!((0..7).all(|position| changing.contains(&position)), "{changing:?}");
        let others: Vec<usize> =
            (0..200).map(|i| hidden_position(&encounter(&i.to_string(), 7), Hide::ByEncounter)).collect();
        assert!((0..7).all(|position| others.contains(&position)), "{others:?}");
    }
}
