//! The earlier visits that an explanation speaks of.

use serde::Serialize;
use serde::ser::Serializer;

use crate::graph::{self, NodeKind, NodeRanges};
use crate::history::DAY;
use crate::record::{Code, Encounter, EncounterId};
use crate::run::Run;
use crate::sample::Sample;

/// An earlier visit that a model with history sees.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PastVisit {
    /// How many visits before the one asked about, of those that are seen: 1 for the latest.
    pub visits_before: usize,
    /// Its identifier, where it has one.
    #[serde(rename = "encounter_id", skip_serializing_if = "is_unnamed", serialize_with = "name")]
    pub id: EncounterId,
    /// Whole days from its start to that of the visit asked about, where both are known.
    pub days_before: Option<i64>,
    /// Its codes, in the order of its nodes without the visit.
    pub codes: Vec<PastCode>,
}

/// A code of an earlier visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PastCode {
    /// Its kind.
    pub kind: NodeKind,
    /// The code.
    pub code: String,
    /// What it means, where the source says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

fn is_unnamed(id: &EncounterId) -> bool {
    id.as_str().is_empty()
}

fn name<S: Serializer>(id: &EncounterId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(id.as_str())
}

/// The earlier visits of a sample, the latest first; `None` without history.
pub(super) fn visits(run: &Run, sample: &Sample<'_>) -> Option<Vec<PastVisit>> {
    let visit = |(visits_before, earlier): (usize, &Encounter)| PastVisit {
        visits_before,
        id: earlier.id.clone(),
        days_before: days_before(sample, earlier),
        codes: (1..NodeRanges::of(earlier).len()).filter_map(|node| code(run, earlier, node)).collect(),
    };
    sample.has_history().then(|| (1..).zip(sample.history()).map(visit).collect())
}

/// Whole days from the start of an earlier visit to that of the one asked about.
pub(crate) fn days_before(sample: &Sample<'_>, earlier: &Encounter) -> Option<i64> {
    Some((sample.encounter().start? - earlier.start?).div_euclid(DAY))
}

fn code(run: &Run, encounter: &Encounter, node: usize) -> Option<PastCode> {
    let (kind, id) = graph::code_of(encounter, node)?;
    let Code { code, description, .. } = run.vocabulary()[kind][id as usize].clone();
    Some(PastCode { kind: NodeKind::Code(kind), code, description })
}
