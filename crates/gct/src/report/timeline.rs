//! The visits before an encounter on the page: when each was, its codes, and what an answer owes to them.

use serde::Serialize;

use super::encounters::shortened;
use super::round;
use crate::history::{Aggregator, History, Order};
use crate::predict::{Attribution, Explainer, VisitChange, days_before};
use crate::record::{CodeKind, Encounter};
use crate::sample::Sample;

/// What a run sees of earlier visits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Seen {
    aggregator: Aggregator,
    /// At most, the encounter asked about among them.
    visits: usize,
    /// How long before it one may have begun; `None` for any time.
    days: Option<f64>,
    order: Order,
}

impl Seen {
    /// `None` without history.
    pub(super) fn of(history: &History) -> Option<Self> {
        let &History { aggregator, visits, days, order, .. } = history;
        (!history.is_none()).then_some(Seen { aggregator, visits, days: (days > 0.0).then_some(days), order })
    }
}

/// A visit before the encounter that is asked about. Times are told as days between the two alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Visit {
    /// Only with identifiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    encounter_id: Option<String>,
    /// Whole days between the beginnings of the two; `None` where times are not known.
    days_before: Option<i64>,
    /// Indexes among all codes of the run: context, diagnoses, treatments, labs.
    pub(super) codes: Vec<usize>,
}

/// The codes of an encounter, as indexes among all codes of the run, in the order of its nodes.
pub(super) fn codes(explainer: &Explainer<'_>, encounter: &Encounter) -> Vec<usize> {
    let of_kind = |kind| encounter.codes[kind].iter().map(move |id| explainer.code_index(kind, *id) as usize);
    CodeKind::ALL.into_iter().flat_map(of_kind).collect()
}

/// The visits that a sample sees, the latest first; `None` without history.
pub(super) fn visits(explainer: &Explainer<'_>, sample: &Sample<'_>, with_ids: bool) -> Option<Vec<Visit>> {
    let visit = |earlier: &Encounter| Visit {
        encounter_id: with_ids.then(|| earlier.id.as_str().to_owned()),
        days_before: days_before(sample, earlier),
        codes: codes(explainer, earlier),
    };
    sample.has_history().then(|| sample.history().map(visit).collect())
}

/// What an answer owes to a visit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct VisitEffect {
    visits_before: usize,
    without: f64,
    log_odds_change: f64,
}

/// What an answer owes to each earlier visit; `None` without history.
pub(super) fn visit_effects(attribution: &Attribution) -> Option<Vec<VisitEffect>> {
    let effect = |visit: &VisitChange| VisitEffect {
        visits_before: visit.visits_before,
        without: shortened(visit.without),
        log_odds_change: round(visit.log_odds_change),
    };
    attribution.visits.as_ref().map(|visits| visits.iter().map(effect).collect())
}

/// The changes of log-odds without each code of the encounter and of each earlier visit, the latest first, in
/// the order of their `codes`; `None` of a code that cannot be left out.
pub(super) fn code_effects(attribution: &Attribution, codes: &[&[usize]]) -> Vec<Vec<Option<f64>>> {
    let mut effects: Vec<Vec<Option<f64>>> = codes.iter().map(|codes| vec![None; codes.len()]).collect();
    for change in &attribution.changes {
        // The visit itself is the first node.
        effects[change.visits_before.unwrap_or(0)][change.node - 1] = Some(round(change.log_odds_change));
    }
    effects
}
