//! What a preparation read, dropped and kept, in numbers.

use std::collections::BTreeMap;

use gct::record::{CodeKind, PerKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::engine::Temporary;
use crate::tables::Unreadable;

/// The numbers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Summary {
    /// The source's name.
    pub source: String,
    /// The options that were used, those found by a query included.
    pub options: BTreeMap<String, Value>,
    /// The tables that were read: what became of their rows.
    pub tables: BTreeMap<String, TableCounts>,
    /// Resources by type, where the source has such: read, and left out because they are not what they should
    /// be.
    pub resources: BTreeMap<String, [u64; 2]>,
    /// Files with nothing in them.
    pub files_empty: u64,
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
    /// Events of kept encounters with a code of the vocabulary, repetitions included.
    pub events_kept: u64,
    /// Events that are no row of a table, but a part of one: the reason of a procedure, a code in a column of
    /// its own.
    pub events_derived: u64,
    /// What is known of encounters beside codes: rows of the source, and of what is made of its encounters.
    /// They are no events.
    pub context_read: u64,
    /// How many of these rows each rule dropped.
    pub context_dropped: Vec<(String, u64)>,
    /// Those of kept encounters with a code of the vocabulary.
    pub context_kept: u64,
    /// How many of these rows have each name that is taken, before any rule on encounters and codes.
    pub context: BTreeMap<String, u64>,
    /// Links that the source has.
    pub links_read: u64,
    /// Links that are true edges, repetitions included.
    pub links_kept: u64,
    /// How many links each rule dropped.
    pub links_dropped: Vec<(String, u64)>,
    /// How many events were kept with a note, by note: `linked_by_date`.
    pub events_noted: BTreeMap<String, u64>,
    /// Rows of tables that could not be read.
    #[serde(skip)]
    pub unreadable: Vec<Unreadable>,
    /// Distinct codes of each kind.
    pub vocabulary: PerKind<u64>,
    /// Codes that were too rare, of each kind.
    pub rare: PerKind<u64>,
    /// Codes that the dataset whose vocabulary is used does not have, of each kind.
    pub unseen: PerKind<u64>,
    /// Whether the vocabulary is that of another dataset.
    #[serde(skip)]
    pub is_like: bool,
    /// What each rollup did.
    pub rollups: Vec<RollupCounts>,
    /// Codes of an encounter in the mean, of each kind.
    pub codes_per_encounter: PerKind<f64>,
    /// Of each label: its name, positives, and in how many encounters it is known.
    pub labels: Vec<(String, u64, u64)>,
    /// Why labels are not known, where the source says so: label, reason, and in how many encounters.
    pub labels_unknown: Vec<(String, String, u64)>,
    /// Labels that the user gave and that are of no encounter.
    pub labels_unmatched: u64,
    /// Columns of the user's labels that are an index of pandas and no label.
    pub label_columns_ignored: Vec<String>,
    /// Subjects of the kept encounters.
    pub subjects: u64,
    /// Those with more than one.
    pub subjects_with_several_encounters: u64,
    /// True edges, those of the visit not counted.
    pub edges: u64,
    /// Encounters with at least one.
    pub encounters_with_edges: u64,
    /// Encounters whose end is left out, since it is before their start.
    pub ends_left_out: u64,
    /// Codes of each kind whose values were put into buckets.
    pub bucketed: PerKind<u64>,
    /// Whether only some encounters were taken.
    #[serde(skip)]
    pub is_limited: bool,
    /// Temporary files.
    #[serde(skip)]
    pub temporary: Temporary,
}

/// What a rollup did with the codes of one kind, before any rule on codes or encounters.
#[derive(Debug, Clone, Serialize)]
pub struct RollupCounts {
    /// The kind.
    pub kind: CodeKind,
    /// The rule or file.
    pub rule: String,
    /// Codes that are in a group.
    pub codes_mapped: u64,
    /// Codes that are in none.
    pub codes_unmapped: u64,
    /// Groups that have a code.
    pub groups: u64,
    /// Events of codes that are in no group.
    pub events_unmapped: u64,
    /// Codes with several nearest groups, where the source's tables have them; the first by name was taken.
    pub ties: Option<u64>,
}

impl RollupCounts {
    fn json(&self, min_cell: u64) -> Value {
        let count = |count: u64| shown_json(cell(count, min_cell));
        let mut counts = json!({
            "kind": self.kind,
            "rule": self.rule,
            "codes_mapped": count(self.codes_mapped),
            "codes_unmapped": count(self.codes_unmapped),
            "groups": count(self.groups),
        });
        if let Some(ties) = self.ties {
            counts["ties"] = count(ties);
        }
        counts
    }
}

/// What became of the rows of a table.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TableCounts {
    /// How many it has.
    pub rows: u64,
    /// Those that cannot be read.
    pub unreadable: u64,
    /// Those that are events, in a table whose rows are.
    pub events: Option<u64>,
    /// Those that are context, in the same.
    pub context: u64,
    /// Those that are encounters, in a table whose rows are.
    pub encounters: Option<u64>,
}

impl TableCounts {
    /// A table with so many rows.
    pub fn new(rows: u64) -> Self {
        TableCounts { rows, ..TableCounts::default() }
    }

    fn adds_up(&self) -> bool {
        let all = |part: Option<u64>| part.is_none_or(|part| self.rows == self.unreadable + part);
        let events = self.events.or((self.context > 0).then_some(0)).map(|events| events + self.context);
        all(events) && all(self.encounters)
    }

    fn json(&self, min_cell: u64) -> Value {
        let count = |count: u64| shown_json(cell(count, min_cell));
        // What is left over would tell how few cannot be read.
        let rows = if cell(self.unreadable, min_cell).is_err() { json!("hidden") } else { count(self.rows) };
        let mut counts = json!({ "rows": rows, "unreadable": count(self.unreadable) });
        for (name, part) in [("events", self.events), ("encounters", self.encounters)] {
            if let Some(part) = part {
                counts[name] = count(part);
            }
        }
        if self.context > 0 {
            counts["context"] = count(self.context);
        }
        counts
    }
}

fn shown_json<T: Into<Value>>(told: Result<T, String>) -> Value {
    told.map_or_else(Value::from, Into::into)
}

impl Summary {
    /// Counts rows that cannot be read, each with its table.
    pub(crate) fn count_unreadable(&mut self, unreadable: Vec<Unreadable>) {
        for found in &unreadable {
            let table = found.column.split('.').next().unwrap_or_default();
            if let Some(counts) = self.tables.get_mut(table) {
                counts.unreadable += found.rows;
            }
        }
        self.unreadable.extend(unreadable);
    }

    /// The counts that are not the sum of what was kept, dropped by a rule, or unreadable: there a source
    /// loses rows, or counts some twice. Of a part of the encounters, as `--limit` takes it, nothing can be
    /// said.
    pub fn unbalanced(&self) -> Vec<String> {
        let all = |read: u64, kept: u64, dropped: &[(String, u64)]| {
            read == kept + dropped.iter().map(|(_, count)| count).sum::<u64>()
        };
        let relations = [
            ("encounters", all(self.encounters_read, self.encounters_kept, &self.dropped)),
            ("events", all(self.events_read, self.events_kept, &self.events_dropped)),
            ("context", all(self.context_read, self.context_kept, &self.context_dropped)),
            ("links", all(self.links_read, self.links_kept, &self.links_dropped)),
        ];
        let tables = self.tables.iter().map(|(name, counts)| (name.as_str(), counts.adds_up()));
        let wrong = relations.into_iter().chain(tables).filter(|(_, adds_up)| !adds_up && !self.is_limited);
        wrong.map(|(name, _)| name.to_owned()).collect()
    }

    /// The kinds of codes that are spoken of: context only if there was any.
    pub fn kinds(&self) -> impl Iterator<Item = CodeKind> {
        CodeKind::ALL
            .into_iter()
            .filter(|kind| kind.is_shown(self.vocabulary[*kind] + self.rare[*kind] + self.unseen[*kind]))
    }

    /// One JSON object, with counts from 1 to less than `min_cell` hidden.
    pub fn json(&self, min_cell: u64) -> Value {
        let count =
            |count: u64| cell(count, min_cell).map_or_else(|hidden| json!(hidden), |count| json!(count));
        let counts = |counts: &[(String, u64)]| -> serde_json::Map<String, Value> {
            counts.iter().map(|(name, number)| (name.clone(), count(*number))).collect()
        };
        let per_kind = |counts: PerKind<u64>| -> serde_json::Map<String, Value> {
            self.kinds().map(|kind| (kind.name().to_owned(), count(counts[kind]))).collect()
        };
        let part =
            |some, all| part(some, all, min_cell).map_or_else(|hidden| json!(hidden), |count| json!(count));
        let mean = |kind: CodeKind| {
            let mean =
                self.mean_codes(kind, min_cell).map_or_else(|hidden| json!(hidden), |mean| json!(mean));
            (kind.name().to_owned(), mean)
        };
        let rollup = |counts: &RollupCounts| {
            let mut json = counts.json(min_cell);
            json["events_unmapped"] = shown_json(self.events_unmapped(counts, min_cell));
            json
        };
        let mut told = json!({
            "source": self.source,
            "options": self.options,
            "encounters_read": self.read(min_cell).map_or_else(|hidden| json!(hidden), |count| json!(count)),
            "encounters_kept": count(self.encounters_kept),
            "dropped": counts(&self.dropped),
            "tables": self.tables.iter()
                .map(|(name, counts)| (name.clone(), counts.json(min_cell)))
                .collect::<serde_json::Map<_, _>>(),
            "resources": self.resources.iter()
                .map(|(name, [read, left_out])| (name.clone(), json!({
                    "read": part_or_all(*read, *left_out, min_cell), "left_out": count(*left_out),
                })))
                .collect::<serde_json::Map<_, _>>(),
            "files_empty": count(self.files_empty),
            "unbalanced": self.unbalanced(),
            "events_read": shown_json(read(self.events_read, &self.events_dropped, min_cell)),
            "events_derived": count(self.events_derived),
            "events_dropped": counts(&self.events_dropped),
            "events_kept": count(self.events_kept),
            "links_read": shown_json(read(self.links_read, &self.links_dropped, min_cell)),
            "links_dropped": counts(&self.links_dropped),
            "links_kept": count(self.links_kept),
            "events_noted": self.events_noted.iter()
                .map(|(note, number)| (note.clone(), count(*number)))
                .collect::<serde_json::Map<_, _>>(),
            "rows_unreadable": self.unreadable.iter()
                .map(|found| (found.column.clone(), count(found.rows)))
                .collect::<serde_json::Map<_, _>>(),
            "vocabulary": per_kind(self.vocabulary),
            "rare": per_kind(self.rare),
            "rollups": self.rollups.iter().map(rollup).collect::<Vec<_>>(),
            "codes_per_encounter": self.kinds().map(mean).collect::<serde_json::Map<_, _>>(),
            "labels": self.labels.iter()
                .map(|(name, positive, known)| (name.clone(), part(*positive, *known)))
                .collect::<serde_json::Map<_, _>>(),
            "labels_known": self.labels.iter()
                .map(|(name, _, known)| (name.clone(), part(*known, self.encounters_kept)))
                .collect::<serde_json::Map<_, _>>(),
            "labels_unknown": self.labels_unknown_json(min_cell),
            "labels_unmatched": count(self.labels_unmatched),
            "label_columns_ignored": self.label_columns_ignored,
            "subjects": count(self.subjects),
            "subjects_with_several_encounters": part(self.subjects_with_several_encounters, self.subjects),
            "edges": count(self.edges),
            "encounters_with_edges": part(self.encounters_with_edges, self.encounters_kept),
            "ends_left_out": count(self.ends_left_out),
            "bucketed_labs": count(self.bucketed.lab),
        });
        if self.context_read > 0 {
            told["context_read"] = shown_json(self.context_read(min_cell));
            told["context_dropped"] = counts(&self.context_dropped).into();
            told["context_kept"] = count(self.context_kept);
            told["context"] = self.context_json(min_cell);
            told["bucketed_context"] = count(self.bucketed.context);
        }
        if self.is_like {
            told["unseen"] = per_kind(self.unseen).into();
        }
        told
    }

    /// How many rows of context have each name. Hidden where nearly all encounters have it, and all of them
    /// where the count of a rule is, which could be had from them.
    fn context_json(&self, min_cell: u64) -> Value {
        let is_hidden = self.context_dropped.iter().any(|(_, count)| cell(*count, min_cell).is_err());
        let count = |rows: u64| match is_hidden {
            true => json!("hidden"),
            false => shown_json(part(rows, self.encounters_read, min_cell)),
        };
        self.context.iter().map(|(name, rows)| (name.clone(), count(*rows))).collect()
    }

    /// Rows of context read, hidden as encounters read are.
    ///
    /// # Errors
    /// How it is shown if it is hidden.
    pub fn context_read(&self, min_cell: u64) -> Result<u64, String> {
        read(self.context_read, &self.context_dropped, min_cell)
    }

    /// Why a label is not known, with counts. All of a label are hidden if one is too small: it could be had
    /// by subtraction.
    pub fn unknown(&self, min_cell: u64) -> impl Iterator<Item = (&str, &str, Result<u64, String>)> {
        let is_small = move |label: &str| {
            let mut own = self.labels_unknown.iter().filter(|(of, ..)| of == label);
            own.any(|(_, _, count)| cell(*count, min_cell).is_err())
        };
        self.labels_unknown.iter().map(move |(label, reason, count)| {
            let count = if is_small(label) { Err("hidden".into()) } else { Ok(*count) };
            (label.as_str(), reason.as_str(), count)
        })
    }

    fn labels_unknown_json(&self, min_cell: u64) -> Value {
        let mut labels = json!({});
        for (label, reason, count) in self.unknown(min_cell) {
            labels[label][reason] = shown_json(count);
        }
        labels
    }

    /// Encounters read. Hidden if one rule's count is: it could be had by subtraction.
    ///
    /// # Errors
    /// How it is shown if it is hidden.
    pub fn read(&self, min_cell: u64) -> Result<u64, String> {
        read(self.encounters_read, &self.dropped, min_cell)
    }

    /// Events read, hidden in the same way.
    ///
    /// # Errors
    /// How it is shown if it is hidden.
    pub fn events_read(&self, min_cell: u64) -> Result<u64, String> {
        read(self.events_read, &self.events_dropped, min_cell)
    }

    /// Links read, hidden in the same way.
    ///
    /// # Errors
    /// How it is shown if it is hidden.
    pub fn links_read(&self, min_cell: u64) -> Result<u64, String> {
        read(self.links_read, &self.links_dropped, min_cell)
    }

    /// Events that one of the rollups does not map. Hidden if that count of any rollup is too small: it could
    /// be had from the events that all of them drop.
    ///
    /// # Errors
    /// How it is shown if it is hidden.
    pub fn events_unmapped(&self, counts: &RollupCounts, min_cell: u64) -> Result<u64, String> {
        let is_small = |counts: &RollupCounts| cell(counts.events_unmapped, min_cell).is_err();
        match cell(counts.events_unmapped, min_cell)? {
            count if count > 0 && self.rollups.iter().any(is_small) => Err("hidden".into()),
            count => Ok(count),
        }
    }

    /// Codes of an encounter in the mean. Hidden if all encounters together have few.
    ///
    /// # Errors
    /// How it is shown if it is hidden.
    pub fn mean_codes(&self, kind: CodeKind, min_cell: u64) -> Result<f64, String> {
        let mean = self.codes_per_encounter[kind];
        cell((mean * self.encounters_kept as f64).round() as u64, min_cell).map(|_| mean)
    }
}

/// How many were read, hidden if the count of one rule is.
fn read(read: u64, dropped: &[(String, u64)], min_cell: u64) -> Result<u64, String> {
    match dropped.iter().filter(|(_, number)| cell(*number, min_cell).is_err()).count() {
        1 => Err("hidden".into()),
        _ => cell(read, min_cell),
    }
}

/// A count of all, hidden if that of a part is.
fn part_or_all(all: u64, part: u64, min_cell: u64) -> Value {
    if cell(part, min_cell).is_err() { json!("hidden") } else { shown_json(cell(all, min_cell)) }
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

/// A count of some out of all, or how it is shown when it, or the rest, is too small to be shown.
///
/// # Errors
/// If one of them is too small.
pub fn part(some: u64, all: u64, min_cell: u64) -> Result<u64, String> {
    match cell(some, min_cell)? {
        some if cell(all.saturating_sub(some), min_cell).is_err() => Err("hidden".into()),
        some => Ok(some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_add_up_is_named() {
        let mut summary = Summary {
            events_read: 5,
            events_kept: 3,
            events_dropped: vec![("no_code".into(), 2)],
            tables: BTreeMap::from([(
                "lab".into(),
                TableCounts { rows: 8, unreadable: 1, events: Some(5), context: 2, encounters: None },
            )]),
            ..Summary::default()
        };
        assert_eq!(summary.unbalanced(), [""; 0]);
        summary.events_kept = 2;
        summary
            .tables
            .insert("patient".into(), TableCounts { rows: 6, encounters: Some(7), ..TableCounts::default() });
        assert_eq!(summary.unbalanced(), ["events", "patient"]);
        summary.is_limited = true;
        assert_eq!(summary.unbalanced(), [""; 0]);
    }

    #[test]
    fn a_small_count_can_not_be_had_by_subtraction() {
        let summary = Summary {
            encounters_read: 120,
            encounters_kept: 100,
            dropped: vec![("short".into(), 17), ("long".into(), 3)],
            labels: vec![("died".into(), 20, 97), ("most".into(), 98, 100), ("none".into(), 0, 100)],
            subjects: 90,
            subjects_with_several_encounters: 88,
            encounters_with_edges: 95,
            ..Summary::default()
        };
        let told = summary.json(11);
        assert_eq!(told["encounters_read"], "hidden");
        assert_eq!(told["dropped"]["long"], "<11");
        assert_eq!(told["labels"], json!({"died": 20, "most": "hidden", "none": 0}));
        assert_eq!(told["labels_known"], json!({"died": "hidden", "most": 100, "none": 100}));
        assert_eq!(told["subjects_with_several_encounters"], "hidden");
        assert_eq!(told["encounters_with_edges"], "hidden");
        let all = summary.json(0);
        assert_eq!(all["encounters_read"], 120);
        assert_eq!(all["labels_known"]["died"], 97);
        assert_eq!(all["encounters_with_edges"], 95);
    }
}
