//! Rows of a part as encounters, and what a row is refused for.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampMicrosecondType, UInt32Type};
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, TimestampMicrosecondArray};

use super::schema::{
    DIAGNOSIS_TREATMENT, ENCOUNTER_ID, END, EdgeColumn, PART, PREDICTION_TIME, START, SUBJECT_ID,
    TREATMENT_LAB,
};
use super::table::{Batches, Table};
use crate::error::{Error, Result};
use crate::record::{CodeKind, Edge, Edges, Encounter, EncounterId, PerKind, SplitPart, SubjectId};

/// Turns rows into encounters and refuses those that break a rule.
pub(super) struct Decoder {
    vocabulary: PerKind<u64>,
    labels: Vec<String>,
    edges: bool,
}

impl Decoder {
    /// For vocabularies of these sizes; if not `edges`, as if none were known.
    pub(super) fn new(vocabulary: PerKind<u64>, labels: &[String], edges: bool) -> Self {
        Decoder { vocabulary, labels: labels.to_vec(), edges }
    }

    /// The rows of a part.
    pub(super) fn batches(&self, part: &Table) -> Result<Batches> {
        let left_out = [DIAGNOSIS_TREATMENT.name, TREATMENT_LAB.name];
        part.batches_with(|name| self.edges || !left_out.contains(&name))
    }

    /// Encounters that begin after so many rows of a file.
    pub(super) fn decode(
        &self,
        batch: &RecordBatch,
        path: &Path,
        rows_before: u64,
    ) -> Result<Vec<Encounter>> {
        let bad_row = |column: &str, (row, problem): (usize, String)| Error::Row {
            path: path.to_owned(),
            row: rows_before + row as u64 + 1,
            column: column.into(),
            problem,
        };
        for name in [ENCOUNTER_ID, SUBJECT_ID] {
            no_nulls(column(batch, name)).map_err(|problem| bad_row(name, problem))?;
        }
        let ids = column(batch, ENCOUNTER_ID).as_string::<i32>();
        let subjects = column(batch, SUBJECT_ID).as_string::<i32>();
        let [starts, ends, prediction_times] = [START, END, PREDICTION_TIME].map(|name| times(batch, name));
        let mut codes = PerKind::try_from_fn(|kind| match batch.column_by_name(kind.name()) {
            Some(column) => {
                codes(column, self.vocabulary[kind]).map_err(|problem| bad_row(kind.name(), problem))
            }
            // The columns were checked: only that of context can be missing.
            None => Ok(vec![Vec::new(); batch.num_rows()]),
        })?;
        let edges_of = |kinds: EdgeColumn| match self.edges {
            true => edges(column(batch, kinds.name), kinds, &codes)
                .map_err(|problem| bad_row(kinds.name, problem)),
            false => Ok(vec![None; batch.num_rows()]),
        };
        let (diagnosis_treatment, treatment_lab) = (edges_of(DIAGNOSIS_TREATMENT)?, edges_of(TREATMENT_LAB)?);
        let labels: Vec<_> = self.labels.iter().map(|label| column(batch, label).as_boolean()).collect();
        let parts = parts(batch).map_err(|problem| bad_row(PART, problem))?;

        let mut encounters = Vec::with_capacity(batch.num_rows());
        for (row, known) in diagnosis_treatment.into_iter().zip(treatment_lab).enumerate() {
            let edges = match known {
                (Some(diagnosis_treatment), Some(treatment_lab)) => {
                    Some(Edges { diagnosis_treatment, treatment_lab })
                }
                (None, None) => None,
                _ => {
                    let problem = format!("null, but `{}` is not, or the reverse", DIAGNOSIS_TREATMENT.name);
                    return Err(bad_row(TREATMENT_LAB.name, (row, problem)));
                }
            };
            let (start, end) = (time(starts, row), time(ends, row));
            if start.zip(end).is_some_and(|(start, end)| end < start) {
                return Err(bad_row(END, (row, format!("is before `{START}`"))));
            }
            encounters.push(Encounter {
                id: EncounterId::new(ids.value(row)),
                subject: SubjectId::new(subjects.value(row)),
                start,
                end,
                prediction_time: time(prediction_times, row),
                part: parts[row],
                codes: PerKind::from_fn(|kind| std::mem::take(&mut codes[kind][row])),
                edges,
                labels: labels.iter().map(|label| label.is_valid(row).then(|| label.value(row))).collect(),
            });
        }
        Ok(encounters)
    }
}

/// A column of moments, where the dataset has it.
fn times<'a>(batch: &'a RecordBatch, name: &str) -> Option<&'a TimestampMicrosecondArray> {
    batch.column_by_name(name).map(|times| times.as_primitive::<TimestampMicrosecondType>())
}

/// The moment of a row, where it is known.
fn time(times: Option<&TimestampMicrosecondArray>, row: usize) -> Option<i64> {
    times.filter(|times| times.is_valid(row)).map(|times| times.value(row))
}

/// The side of the split of each row, where the dataset records one.
fn parts(batch: &RecordBatch) -> Result<Vec<Option<SplitPart>>, (usize, String)> {
    let Some(parts) = batch.column_by_name(PART) else { return Ok(vec![None; batch.num_rows()]) };
    let part = |(row, name): (usize, Option<&str>)| match name {
        None => Ok(None),
        Some(name) => match SplitPart::ALL.into_iter().find(|part| part.name() == name) {
            None => Err((row, "expected train, validation or test".into())),
            part => Ok(part),
        },
    };
    parts.as_string::<i32>().iter().enumerate().map(part).collect()
}

/// The code ids of each row: known, distinct and ascending.
fn codes(column: &ArrayRef, vocabulary: u64) -> Result<Vec<Vec<u32>>, (usize, String)> {
    no_nulls(column)?;
    let lists = column.as_list::<i32>();
    no_null_elements(lists, lists.values())?;
    let ids = lists.values().as_primitive::<UInt32Type>().values();
    lists
        .offsets()
        .windows(2)
        .enumerate()
        .map(|(row, ends)| {
            let codes = &ids[ends[0] as usize..ends[1] as usize];
            if codes.iter().any(|&id| u64::from(id) >= vocabulary) {
                return Err((row, format!("an id is outside the vocabulary, which has {vocabulary} codes")));
            }
            if !codes.is_sorted_by(|a, b| a < b) {
                return Err((row, "ids must be distinct and ascending".into()));
            }
            if codes.len() > usize::from(u16::MAX) {
                return Err((row, format!("more than {} codes", u16::MAX)));
            }
            Ok(codes.to_vec())
        })
        .collect()
}

/// The edges of each row as positions in its lists of codes.
fn edges(
    column: &ArrayRef,
    kinds: EdgeColumn,
    codes: &PerKind<Vec<Vec<u32>>>,
) -> Result<Vec<Option<Vec<Edge>>>, (usize, String)> {
    let lists = column.as_list::<i32>();
    let pairs = lists.values().as_struct();
    no_null_elements(lists, pairs)?;
    for end in pairs.columns() {
        no_null_elements(lists, end)?;
    }
    let [causes, effects] = [0, 1].map(|end| pairs.column(end).as_primitive::<UInt32Type>().values());
    let mut rows = Vec::with_capacity(lists.len());
    for (row, ends) in lists.offsets().windows(2).enumerate() {
        if lists.is_null(row) {
            rows.push(None);
            continue;
        }
        let position = |kind: CodeKind, id| match codes[kind][row].binary_search(&id) {
            Ok(position) => Ok(position as u16),
            Err(_) => Err((row, format!("an edge names a {} that is not in the encounter", kind.name()))),
        };
        let mut edges = Vec::with_capacity((ends[1] - ends[0]) as usize);
        for pair in ends[0] as usize..ends[1] as usize {
            edges.push(Edge {
                cause: position(kinds.cause, causes[pair])?,
                effect: position(kinds.effect, effects[pair])?,
            });
        }
        if !edges.is_sorted_by(|a, b| a < b) {
            return Err((row, "edges must be distinct and ascending".into()));
        }
        rows.push(Some(edges));
    }
    Ok(rows)
}

pub(super) fn column<'a>(batch: &'a RecordBatch, name: &str) -> &'a ArrayRef {
    batch.column_by_name(name).expect("the columns were checked when the table was opened")
}

/// Refuses nulls in a column that must have none.
pub(super) fn no_nulls(column: &dyn Array) -> Result<(), (usize, String)> {
    match (0..column.len()).find(|&row| column.is_null(row)) {
        Some(row) => Err((row, "must not be null".into())),
        None => Ok(()),
    }
}

/// Refuses nulls inside the lists of a column.
fn no_null_elements(lists: &ListArray, elements: &dyn Array) -> Result<(), (usize, String)> {
    match (0..elements.len()).find(|&element| elements.is_null(element)) {
        Some(element) => {
            let row = lists.offsets().partition_point(|&end| end as usize <= element) - 1;
            Err((row, "a list must not hold a null".into()))
        }
        None => Ok(()),
    }
}
