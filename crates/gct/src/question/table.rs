//! Predictions as rows of a table: columns that all questions share, and the table of each.

use std::sync::Arc;

use arrow_array::builder::{StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::{ArrayRef, RecordBatch};

use super::{Question, Statement, edges, hidden_code, hidden_diagnosis, labels, next_diagnoses};
use crate::error::{Error, Result};
use crate::record::Vocabulary;
use crate::sample::Sample;

/// What is written of predictions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TableOptions {
    /// The probability above which a label is predicted.
    pub threshold: f64,
    /// How many codes are guessed, or diagnoses are told of the next visit.
    pub top: usize,
    /// The least probability of a pair that is written.
    pub min_probability: f64,
    /// Whether the columns are those of MEDS, and no other.
    pub meds: bool,
    /// How many codes are told with each row that change it most when they are left out; 0 for no such
    /// column.
    pub why: usize,
}

impl Default for TableOptions {
    fn default() -> Self {
        TableOptions { threshold: 0.5, top: 10, min_probability: 0.5, meds: false, why: 0 }
    }
}

impl TableOptions {
    pub(crate) fn check(&self) -> Result<()> {
        for (name, value) in [("threshold", self.threshold), ("min_probability", self.min_probability)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::setting(name, value, "a number from 0 to 1"));
            }
        }
        if self.top == 0 {
            return Err(Error::setting("top", self.top, "a whole number from 1"));
        }
        if self.meds && self.why > 0 {
            return Err(Error::NotMeds { problem: "its columns have no room for reasons" });
        }
        Ok(())
    }
}

/// A column: its name, its values, and whether one may be missing.
pub(super) type Column = (&'static str, ArrayRef, bool);

/// What a row is about.
#[derive(Default)]
pub(super) struct Keys {
    subjects: StringBuilder,
    encounters: StringBuilder,
    times: TimestampMicrosecondBuilder,
}

impl Keys {
    pub(super) fn add(&mut self, sample: &Sample<'_>) {
        self.subjects.append_value(sample.encounter().subject.as_str());
        self.encounters.append_value(sample.encounter().id.as_str());
        self.times.append_option(sample.time());
    }

    /// The columns of all rows since the last time.
    pub(super) fn take(&mut self) -> Vec<Column> {
        vec![
            ("subject_id", Arc::new(self.subjects.finish()), false),
            ("encounter_id", Arc::new(self.encounters.finish()), false),
            ("prediction_time", Arc::new(self.times.finish()), true),
        ]
    }

    /// The times of all rows since the last time; the rest is forgotten.
    pub(super) fn take_times(&mut self) -> ArrayRef {
        std::mem::take(self).times_only()
    }

    fn times_only(mut self) -> ArrayRef {
        Arc::new(self.times.finish())
    }
}

/// Rows that are not yet written.
pub(crate) enum Table<'a> {
    Edges(edges::Table<'a>),
    Labels(labels::Table),
    HiddenDiagnosis(hidden_diagnosis::Table<'a>),
    HiddenCode(hidden_code::Table<'a>),
    NextDiagnoses(next_diagnoses::Table<'a>),
}

impl<'a> Table<'a> {
    pub(super) fn new(question: &Question, vocabulary: &'a Vocabulary, options: TableOptions) -> Self {
        match question {
            Question::Edges => Table::Edges(edges::Table::new(vocabulary, options)),
            Question::Labels(labels) => Table::Labels(labels::Table::new(labels, options)),
            Question::HiddenDiagnosis => {
                Table::HiddenDiagnosis(hidden_diagnosis::Table::new(vocabulary, options))
            }
            Question::HiddenCode => Table::HiddenCode(hidden_code::Table::new(vocabulary, options)),
            Question::NextDiagnoses(next) => {
                Table::NextDiagnoses(next_diagnoses::Table::new(*next, vocabulary, options))
            }
        }
    }

    /// Adds the rows of a sample.
    ///
    /// # Errors
    /// If MEDS could not have them.
    pub(crate) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) -> Result<()> {
        match self {
            Table::Edges(table) => table.add(sample, logits),
            Table::Labels(table) => table.add(sample, logits)?,
            Table::HiddenDiagnosis(table) => table.add(sample, logits),
            Table::HiddenCode(table) => table.add(sample, logits),
            Table::NextDiagnoses(table) => table.add(sample, logits),
        }
        Ok(())
    }

    /// What each row of a sample says, in the order of the rows.
    pub(crate) fn statements(&self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Statement> {
        match self {
            Table::Edges(table) => table.statements(sample, logits),
            Table::Labels(table) => table.statements(sample, logits),
            Table::HiddenDiagnosis(table) => table.statements(logits),
            Table::HiddenCode(table) => table.statements(logits),
            Table::NextDiagnoses(table) => table.statements(sample, logits),
        }
    }

    /// All rows since the last time.
    pub(crate) fn take(&mut self) -> RecordBatch {
        let columns = match self {
            Table::Edges(table) => table.take(),
            Table::Labels(table) => table.take(),
            Table::HiddenDiagnosis(table) => table.take(),
            Table::HiddenCode(table) => table.take(),
            Table::NextDiagnoses(table) => table.take(),
        };
        RecordBatch::try_from_iter_with_nullable(columns).expect("the columns of a table are of one length")
    }
}
