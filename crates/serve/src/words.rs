//! Codes as text to encounters in numbers.

use std::sync::Arc;

use gct::coding::Recorded;
use gct::graph::{NodeKind, NodeRanges};
use gct::question::Hide;
use gct::record::{CodeKind, PerKind};
use gct::run::Run;
use gct::sample::OwnedSample;

use crate::problem::Problem;
use crate::shape::{self, Code, UnknownCode};

/// The most codes of an encounter that are left out one by one.
const MOST_LEFT_OUT: usize = 200;

/// An encounter as the model is asked about it.
pub(crate) struct Question {
    pub(crate) sample: OwnedSample,
    pub(crate) hide: Hide,
    /// Codes that are not known, each once; the model is not asked about them.
    pub(crate) unknown: Vec<UnknownCode>,
}

impl Question {
    /// How many nodes the encounter has.
    pub(crate) fn nodes(&self) -> usize {
        NodeRanges::of(&self.sample.encounter).len()
    }

    /// Whether an explanation says what each code does: an answer for each takes long if there are many, and
    /// others wait.
    pub(crate) fn has_reasons(&self) -> bool {
        self.nodes() <= 1 + MOST_LEFT_OUT
    }
}

/// Codes of kinds that have no values.
fn without_value(codes: Vec<Code<'_>>) -> Vec<Recorded<'_>> {
    codes.into_iter().map(|code| Recorded::new(code.0)).collect()
}

/// The codes that a run knows.
pub(crate) struct Words {
    run: Arc<Run>,
    most_codes: usize,
}

impl Words {
    pub(crate) fn new(run: Arc<Run>, most_codes: usize) -> Self {
        Words { run, most_codes }
    }

    /// The encounter at an index of the request.
    pub(crate) fn question(&self, index: usize, asked: shape::Encounter<'_>) -> Result<Question, Problem> {
        let shape::Encounter { context, diagnosis, treatment, lab, hide } = asked;
        let (diagnosis, treatment) = (without_value(diagnosis), without_value(treatment));
        let codes = PerKind { context, diagnosis, treatment, lab };
        if CodeKind::ALL.iter().map(|kind| codes[*kind].len()).sum::<usize>() > self.most_codes {
            return Err(Problem::TooManyCodes { index, most: self.most_codes });
        }
        // The file about values was read when the server began.
        let (encounter, mut unknown) = self.run.recorded(&codes).map_err(|_| Problem::NoBuckets { index })?;
        let unknown = CodeKind::ALL.into_iter().flat_map(|kind| {
            let codes = std::mem::take(&mut unknown[kind]).into_iter();
            codes.map(move |code| UnknownCode { kind: NodeKind::Code(kind), code })
        });
        let unknown = unknown.collect();
        let hide = self.hide(index, hide.as_ref().map(AsRef::as_ref), &encounter.codes.diagnosis)?;
        Ok(Question { sample: encounter.into(), hide, unknown })
    }

    fn hide(&self, index: usize, wanted: Option<&str>, diagnoses: &[u32]) -> Result<Hide, Problem> {
        let hides = self.run.settings().task == gct::question::Question::HiddenDiagnosis;
        match wanted {
            Some(_) if !hides => Err(Problem::HidesNothing { index }),
            None if !hides => Ok(Hide::ByEncounter),
            _ if diagnoses.is_empty() => Err(Problem::NothingToHide { index }),
            // The encounter has no name, so what is hidden depends on how many diagnoses there are, and on
            // nothing else.
            None => Ok(Hide::ByEncounter),
            Some(code) => {
                let alone = PerKind { diagnosis: vec![Recorded::new(code)], ..PerKind::default() };
                let alone = self.run.recorded(&alone).map_err(|_| Problem::NoBuckets { index })?.0;
                let id = alone.codes.diagnosis.first();
                let position = id.and_then(|id| diagnoses.binary_search(id).ok());
                position.map(Hide::Position).ok_or(Problem::NotThereToHide { index })
            }
        }
    }
}
