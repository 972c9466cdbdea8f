//! Codes as text to encounters in numbers.

use std::collections::HashMap;

use gct::graph::{NodeKind, NodeRanges};
use gct::question::Hide;
use gct::record::{CodeKind, Encounter, EncounterId, PerKind, SubjectId};
use gct::run::Run;

use crate::problem::Problem;
use crate::shape::{self, UnknownCode};

/// An encounter as the model is asked about it.
pub(crate) struct Question {
    pub(crate) encounter: Encounter,
    pub(crate) hide: Hide,
    /// Codes that are not known, each once; the model is not asked about them.
    pub(crate) unknown: Vec<UnknownCode>,
}

impl Question {
    /// How many nodes the encounter has.
    pub(crate) fn nodes(&self) -> usize {
        NodeRanges::of(&self.encounter).len()
    }
}

/// The codes that a run knows.
pub(crate) struct Words {
    ids: PerKind<HashMap<String, u32>>,
    hides: bool,
    most_codes: usize,
}

impl Words {
    pub(crate) fn new(run: &Run, most_codes: usize) -> Self {
        let ids =
            |kind: CodeKind| run.vocabulary()[kind].iter().map(|code| code.code.clone()).zip(0..).collect();
        Words {
            ids: PerKind::from_fn(ids),
            hides: run.settings().task == gct::question::Question::HiddenDiagnosis,
            most_codes,
        }
    }

    /// The encounter at an index of the request.
    pub(crate) fn question(&self, index: usize, asked: shape::Encounter<'_>) -> Result<Question, Problem> {
        let shape::Encounter { diagnosis, treatment, lab, hide } = asked;
        if diagnosis.len() + treatment.len() + lab.len() > self.most_codes {
            return Err(Problem::TooManyCodes { index, most: self.most_codes });
        }
        let mut given = PerKind { diagnosis, treatment, lab };
        let mut unknown = Vec::new();
        let codes = PerKind::from_fn(|kind| {
            let mut ids = Vec::new();
            let mut strange = Vec::new();
            for shape::Code(code) in std::mem::take(&mut given[kind]) {
                match self.ids[kind].get(&*code) {
                    Some(id) => ids.push(*id),
                    None => strange.push(code),
                }
            }
            ids.sort_unstable();
            ids.dedup();
            strange.sort_unstable();
            strange.dedup();
            let kind = NodeKind::Code(kind);
            unknown.extend(strange.into_iter().map(|code| UnknownCode { kind, code: code.into_owned() }));
            ids
        });
        let hide = self.hide(index, hide.as_ref().map(|code| &*code.0), &codes.diagnosis)?;
        Ok(Question { encounter: encounter(codes), hide, unknown })
    }

    fn hide(&self, index: usize, wanted: Option<&str>, diagnoses: &[u32]) -> Result<Hide, Problem> {
        match wanted {
            Some(_) if !self.hides => Err(Problem::HidesNothing { index }),
            None if !self.hides => Ok(Hide::ByEncounter),
            _ if diagnoses.is_empty() => Err(Problem::NothingToHide { index }),
            None => Ok(Hide::ByEncounter),
            Some(code) => {
                let id = self.ids.diagnosis.get(code);
                let position = id.and_then(|id| diagnoses.binary_search(id).ok());
                position.map(Hide::Position).ok_or(Problem::NotThereToHide { index })
            }
        }
    }
}

/// An encounter of which nothing is known but its codes. It has no name, so what is hidden by default depends on how many
/// diagnoses there are, and on nothing else.
pub(crate) fn encounter(codes: PerKind<Vec<u32>>) -> Encounter {
    Encounter {
        id: EncounterId::new(""),
        subject: SubjectId::new(""),
        start: None,
        prediction_time: None,
        part: None,
        codes,
        edges: None,
        labels: Vec::new(),
    }
}
