//! What a preparation read, dropped and kept, in numbers.

use std::collections::BTreeMap;

use gct::record::{CodeKind, PerKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::tables::Unreadable;

/// The numbers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The source's name.
    pub source: String,
    /// The options that were used, those found by a query included.
    pub options: BTreeMap<String, Value>,
    /// Encounters that the source has.
    pub encounters_read: u64,
    /// Encounters in the dataset.
    pub encounters_kept: u64,
    /// How many encounters each rule dropped. A rule sees what those before it left.
    pub dropped: Vec<(String, u64)>,
    /// Events that the source has.
    pub events_read: u64,
    /// How many events each rule dropped.
    pub events_dropped: Vec<(String, u64)>,
    /// How many events were kept with a note, by note: `linked_by_date`.
    pub events_noted: BTreeMap<String, u64>,
    /// Rows of tables that could not be read.
    #[serde(skip)]
    pub unreadable: Vec<Unreadable>,
    /// Distinct codes of each kind.
    pub vocabulary: PerKind<u64>,
    /// Codes that were too rare, of each kind.
    pub rare: PerKind<u64>,
    /// Codes of an encounter in the mean, of each kind.
    pub codes_per_encounter: PerKind<f64>,
    /// Of each label: its name, positives, and in how many encounters it is known.
    pub labels: Vec<(String, u64, u64)>,
    /// Labels that the user gave and that are of no encounter.
    pub labels_unmatched: u64,
    /// Subjects of the kept encounters.
    pub subjects: u64,
    /// Those with more than one.
    pub subjects_with_several_encounters: u64,
    /// True edges, those of the visit not counted.
    pub edges: u64,
    /// Encounters with at least one.
    pub encounters_with_edges: u64,
    /// Labs whose values were put into buckets.
    pub bucketed_labs: u64,
}

impl Summary {
    /// One JSON object, with counts from 1 to less than `min_cell` hidden.
    pub fn json(&self, min_cell: u64) -> Value {
        let count =
            |count: u64| cell(count, min_cell).map_or_else(|hidden| json!(hidden), |count| json!(count));
        let counts = |counts: &[(String, u64)]| -> serde_json::Map<String, Value> {
            counts.iter().map(|(name, number)| (name.clone(), count(*number))).collect()
        };
        let per_kind = |counts: PerKind<u64>| -> serde_json::Map<String, Value> {
            CodeKind::ALL.iter().map(|kind| (kind.name().to_owned(), count(counts[*kind]))).collect()
        };
        let label = |take: fn(&(String, u64, u64)) -> u64| -> serde_json::Map<String, Value> {
            self.labels.iter().map(|label| (label.0.clone(), count(take(label)))).collect()
        };
        let one_hidden =
            self.dropped.iter().filter(|(_, number)| cell(*number, min_cell).is_err()).count() == 1;
        let mean = |kind: CodeKind| {
            let mean = self.codes_per_encounter[kind];
            let total = (mean * self.encounters_kept as f64).round() as u64;
            (
                kind.name().to_owned(),
                cell(total, min_cell).map_or_else(|hidden| json!(hidden), |_| json!(mean)),
            )
        };
        json!({
            "source": self.source,
            "options": self.options,
            // One hidden count could be had by subtraction.
            "encounters_read": if one_hidden { json!("hidden") } else { count(self.encounters_read) },
            "encounters_kept": count(self.encounters_kept),
            "dropped": counts(&self.dropped),
            "events_read": count(self.events_read),
            "events_dropped": counts(&self.events_dropped),
            "events_noted": self.events_noted.iter()
                .map(|(note, number)| (note.clone(), count(*number)))
                .collect::<serde_json::Map<_, _>>(),
            "rows_unreadable": self.unreadable.iter()
                .map(|found| (found.column.clone(), count(found.rows)))
                .collect::<serde_json::Map<_, _>>(),
            "vocabulary": per_kind(self.vocabulary),
            "rare": per_kind(self.rare),
            "codes_per_encounter": CodeKind::ALL.into_iter().map(mean).collect::<serde_json::Map<_, _>>(),
            "labels": label(|label| label.1),
            "labels_known": label(|label| label.2),
            "labels_unmatched": count(self.labels_unmatched),
            "subjects": count(self.subjects),
            "subjects_with_several_encounters": count(self.subjects_with_several_encounters),
            "edges": count(self.edges),
            "encounters_with_edges": count(self.encounters_with_edges),
            "bucketed_labs": count(self.bucketed_labs),
        })
    }
}

/// A count as text.
pub fn shown(count: u64, min_cell: u64) -> String {
    cell(count, min_cell).map_or_else(|hidden| hidden, |count| count.to_string())
}

/// A count, or how it is shown when it is too small to be shown.
///
/// # Errors
/// If it is too small.
pub fn cell(count: u64, min_cell: u64) -> Result<u64, String> {
    if count == 0 || count >= min_cell { Ok(count) } else { Err(format!("<{min_cell}")) }
}
