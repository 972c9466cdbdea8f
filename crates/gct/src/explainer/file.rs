//! What was learned in a file of its own: counts, and how much they are believed.
//!
//! | table | first | second | third | value | after |
//! |---|---|---|---|---|---|
//! | `known` | | | | 1 if true edges were counted | |
//! | `encounters` | | | | how many were counted | |
//! | `diagnosis` | diagnosis | | | encounters with it | |
//! | `pair` | diagnosis | treatment | | orders | labs after them |
//! | `triple` | diagnosis | treatment | lab | how often | |
//! | `company` | diagnosis | diagnosis | | encounters with both | |
//! | `label` | label | diagnosis | treatment | | |
//! | `habit` | number | place | | see `Habits` | |
//!
//! One diagnosis, and one treatment, more than the vocabulary has is the leak.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt32Type};
use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use super::counts::Counts;
use super::rates::{Habit, Habits, Rates};
use super::shrinkage::{Chance, Shrinkage};
use super::{Account, Company};
use crate::dataset::{self, Table};
use crate::error::{Error, Result};
use crate::files::{FileEntry, Overwrite};
use crate::record::PerKind;

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("table", DataType::Utf8, false),
        Field::new("first", DataType::UInt32, true),
        Field::new("second", DataType::UInt32, true),
        Field::new("third", DataType::UInt32, true),
        Field::new("value", DataType::Float64, true),
        Field::new("after", DataType::Float64, true),
    ])
}

/// The rows in the making.
#[derive(Default)]
struct Rows {
    tables: Vec<&'static str>,
    ids: [Vec<Option<u32>>; 3],
    values: Vec<Option<f64>>,
    after: Vec<Option<f64>>,
}

impl Rows {
    fn add(&mut self, table: &'static str, ids: &[u32], value: Option<f64>, after: Option<f64>) {
        self.tables.push(table);
        for (at, column) in self.ids.iter_mut().enumerate() {
            column.push(ids.get(at).copied());
        }
        self.values.push(value);
        self.after.push(after);
    }

    fn add_counts(&mut self, counts: &Counts) {
        self.add("encounters", &[], Some(counts.encounters as f64), None);
        for (diagnosis, there) in (0..).zip(&counts.diagnoses) {
            self.add("diagnosis", &[diagnosis], Some(f64::from(*there)), None);
        }
        for diagnosis in 0..counts.diagnoses.len() {
            for pair in counts.starts[diagnosis]..counts.starts[diagnosis + 1] {
                let (orders, after) = (f64::from(counts.orders[pair]), f64::from(counts.labs_after[pair]));
                let ids = [diagnosis as u32, counts.treatments[pair]];
                self.add("pair", &ids, Some(orders), Some(after));
                let (labs, results) = counts.results_of(pair);
                for (lab, count) in labs.iter().zip(results) {
                    self.add("triple", &[ids[0], ids[1], *lab], Some(f64::from(*count)), None);
                }
            }
        }
    }

    fn add_habits(&mut self, habits: &Habits) {
        for (number, habit) in (0..).zip([&habits.treatments, &habits.labs]) {
            let values = std::iter::once(&habit.power).chain(habit.shrinkage.shares());
            (0..).zip(values).for_each(|(at, value)| self.add("habit", &[number, at], Some(*value), None));
        }
        for (number, chance) in (2..).zip([habits.more, habits.more_labs]) {
            (0..)
                .zip(chance.before)
                .for_each(|(at, value)| self.add("habit", &[number, at], Some(value), None));
        }
    }
}

impl Account {
    /// Writes it.
    pub(crate) fn save(&self, path: &Path) -> Result<FileEntry> {
        let mut rows = Rows::default();
        rows.add("known", &[], Some(f64::from(u8::from(self.edges_were_known))), None);
        rows.add_counts(&self.counts);
        for diagnosis in 0..self.counts.leak() as u32 {
            let (others, counts) = self.company.of(diagnosis);
            for (other, count) in others.iter().zip(counts) {
                rows.add("company", &[diagnosis, *other], Some(f64::from(*count)), None);
            }
        }
        for (label, (diagnosis, treatment)) in (0..).zip(&self.labels) {
            rows.add("label", &[label, *diagnosis, *treatment], None, None);
        }
        rows.add_habits(&self.rates.habits());
        let Rows { tables, ids: [first, second, third], values, after } = rows;
        let columns: Vec<(_, ArrayRef)> = vec![
            ("table", Arc::new(StringArray::from_iter_values(tables))),
            ("first", Arc::new(UInt32Array::from(first))),
            ("second", Arc::new(UInt32Array::from(second))),
            ("third", Arc::new(UInt32Array::from(third))),
            ("value", Arc::new(Float64Array::from(values))),
            ("after", Arc::new(Float64Array::from(after))),
        ];
        dataset::write_table(path, Overwrite::Refuse, columns)?;
        FileEntry::of(path)
    }

    /// Reads it, for vocabularies of these sizes.
    pub(crate) fn load(path: &Path, vocabulary: PerKind<usize>) -> Result<Self> {
        let wrong = |problem: &str| Error::Damaged { path: path.to_owned(), problem: problem.into() };
        let mut reading = Reading::new(vocabulary);
        let table = Table::open(path.to_owned(), &schema(), None)?;
        for batch in table.batches()? {
            reading.take(&batch?).ok_or_else(|| wrong("a row of it makes no sense where it stands"))?;
        }
        reading.finish().ok_or_else(|| wrong("rows are missing"))
    }
}

/// What was read so far.
struct Reading {
    sizes: PerKind<u32>,
    known: Option<bool>,
    counts: Counts,
    company: Company,
    labels: Vec<(u32, u32)>,
    habits: [Vec<f64>; 4],
}

/// A number that is finite and not negative.
fn count(value: f64) -> Option<f64> {
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Whether an id comes after the one before it in its row, and is below a bound.
fn is_next(row: &[u32], id: u32, bound: u32) -> bool {
    id < bound && row.last().is_none_or(|last| *last < id)
}

impl Reading {
    fn new(vocabulary: PerKind<usize>) -> Self {
        let sizes = PerKind::from_fn(|kind| vocabulary[kind] as u32);
        let counts = Counts { vocabulary: sizes, lab_starts: vec![0], ..Counts::default() };
        let company = Company { starts: vec![0], ..Company::default() };
        Reading { sizes, known: None, counts, company, labels: Vec::new(), habits: Default::default() }
    }

    /// Takes the next rows; `None` if one cannot be the next one.
    fn take(&mut self, batch: &RecordBatch) -> Option<()> {
        let column = |name: &str| batch.column_by_name(name).expect("the columns were checked");
        let tables = column("table").as_string::<i32>();
        let ids = ["first", "second", "third"].map(|name| column(name).as_primitive::<UInt32Type>());
        let numbers = ["value", "after"].map(|name| column(name).as_primitive::<Float64Type>());
        for row in 0..batch.num_rows() {
            let id = |at: usize| ids[at].is_valid(row).then(|| ids[at].value(row));
            let number = |at: usize| numbers[at].is_valid(row).then(|| count(numbers[at].value(row)))?;
            match tables.value(row) {
                "known" => self.known = Some(number(0)? > 0.0),
                "encounters" => self.counts.encounters = number(0)? as u64,
                "diagnosis" => self.take_diagnosis(id(0)?, number(0)?)?,
                "pair" => self.take_pair([id(0)?, id(1)?], [number(0)?, number(1)?])?,
                "triple" => self.take_triple([id(0)?, id(1)?, id(2)?], number(0)?)?,
                "company" => self.take_company([id(0)?, id(1)?], number(0)?)?,
                "label" => self.take_label([id(0)?, id(1)?, id(2)?])?,
                "habit" => {
                    let habit = self.habits.get_mut(id(0)? as usize)?;
                    (habit.len() == id(1)? as usize).then(|| number(0).map(|value| habit.push(value)))??;
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn take_diagnosis(&mut self, diagnosis: u32, there: f64) -> Option<()> {
        let own = &mut self.counts.diagnoses;
        let is_next = diagnosis as usize == own.len() && diagnosis <= self.sizes.diagnosis;
        is_next.then(|| own.push(there as f32))
    }

    fn take_pair(&mut self, [diagnosis, treatment]: [u32; 2], [orders, after]: [f64; 2]) -> Option<()> {
        let counts = &mut self.counts;
        let row = diagnosis as usize;
        // The leak alone has labs without a treatment.
        let bound = self.sizes.treatment + u32::from(diagnosis == self.sizes.diagnosis);
        if row >= counts.diagnoses.len() || row + 1 < counts.starts.len() {
            return None;
        }
        counts.starts.resize(row + 1, counts.treatments.len());
        let begin = counts.starts[row];
        is_next(&counts.treatments[begin..], treatment, bound).then_some(())?;
        counts.treatments.push(treatment);
        counts.orders.push(orders as f32);
        counts.labs_after.push(after as f32);
        counts.lab_starts.push(counts.labs.len());
        Some(())
    }

    fn take_triple(&mut self, [diagnosis, treatment, lab]: [u32; 3], value: f64) -> Option<()> {
        let counts = &mut self.counts;
        let is_of_last =
            counts.starts.len() == diagnosis as usize + 1 && counts.treatments.last() == Some(&treatment);
        let begin = counts.lab_starts.len().checked_sub(2).map(|at| counts.lab_starts[at])?;
        (is_of_last && is_next(&counts.labs[begin..], lab, self.sizes.lab)).then_some(())?;
        counts.labs.push(lab);
        counts.results.push(value as f32);
        *counts.lab_starts.last_mut()? = counts.labs.len();
        Some(())
    }

    fn take_company(&mut self, [diagnosis, other]: [u32; 2], value: f64) -> Option<()> {
        let (company, row) = (&mut self.company, diagnosis as usize);
        if diagnosis >= self.sizes.diagnosis || row + 1 < company.starts.len() {
            return None;
        }
        company.starts.resize(row + 1, company.others.len());
        let begin = company.starts[row];
        is_next(&company.others[begin..], other, self.sizes.diagnosis).then_some(())?;
        company.others.push(other);
        company.counts.push(value as u32);
        Some(())
    }

    fn take_label(&mut self, [label, diagnosis, treatment]: [u32; 3]) -> Option<()> {
        let fits = diagnosis < self.sizes.diagnosis && treatment < self.sizes.treatment;
        (fits && label as usize == self.labels.len()).then(|| self.labels.push((diagnosis, treatment)))
    }

    /// All together; `None` if something is missing.
    fn finish(mut self) -> Option<Account> {
        let diagnoses = self.sizes.diagnosis as usize;
        (self.counts.diagnoses.len() == diagnoses + 1).then_some(())?;
        self.counts.starts.resize(diagnoses + 2, self.counts.treatments.len());
        self.company.starts.resize(diagnoses + 1, self.company.others.len());
        let [treatments, labs, more, more_labs] = &self.habits;
        let habit = |values: &[f64]| {
            let (power, shares) = values.split_first()?;
            Some(Habit { power: *power, shrinkage: Shrinkage::of(shares.to_vec())? })
        };
        let chance = |values: &[f64]| {
            let before: [f64; 2] = values.try_into().ok()?;
            before.iter().all(|value| *value > 0.0).then_some(Chance { before })
        };
        let habits = Habits {
            treatments: habit(treatments)?,
            labs: habit(labs)?,
            more: chance(more)?,
            more_labs: chance(more_labs)?,
        };
        let rates = Rates::of(&self.counts, habits);
        let account = Account::new(self.known?, self.counts, rates, self.company);
        Some(Account { labels: self.labels, ..account })
    }
}
