//! Columns of a table that has a row per encounter, as CSV or Parquet: the ward, the hospital, whatever is
//! known of encounters beside their codes.

use std::borrow::Cow;
use std::path::Path;

use arrow_array::{Array, RecordBatch};
use arrow_schema::Schema;

use super::ROWS;
use super::events::{delimiter, is_text_or_number, read_record, text};
use super::source::{ParquetFile, Reader, Source};
use crate::coding::whole;
use crate::dataset::Table;
use crate::error::{Error, OnPath, Result};
use crate::job::Job;

/// The column that says which encounter a row is about.
const ENCOUNTER_ID: &str = "encounter_id";

/// Texts of one row, in the order of the columns that are wanted.
type Texts<'r> = Vec<Option<Cow<'r, str>>>;

/// Tells of every row which encounter it is about, and what it has in the columns of these names; nothing
/// where it is empty, or there is no such column. Returns the names of all columns but that of encounters.
///
/// # Errors
/// If the table cannot be read, has no column `encounter_id` or no row, or the job is stopped.
pub(crate) fn read_columns(
    path: &Path,
    wanted: &[String],
    job: &Job<'_, u64>,
    each: impl FnMut(u64, &str, Texts<'_>) -> Result<()>,
) -> Result<Vec<String>> {
    read_table(path, (ENCOUNTER_ID, "a row per encounter"), wanted, job, each)
}

/// The same for a table that is about something else: in place of the column of encounters another one that
/// every row must have, and what a row is.
pub(crate) fn read_table(
    path: &Path,
    (key, rows_are): (&'static str, &str),
    wanted: &[String],
    job: &Job<'_, u64>,
    mut each: impl FnMut(u64, &str, Texts<'_>) -> Result<()>,
) -> Result<Vec<String>> {
    let (names, rows) = match Source::open(path)? {
        Source::Csv(reader) => of_csv(path, reader, (key, wanted), job, &mut each)?,
        Source::Parquet(file) => of_parquet(path, &file, (key, wanted), job, &mut each)?,
        Source::Lines(_) => return Err(column(path, key, "a table as CSV or Parquet", "JSON")),
    };
    if rows == 0 {
        return Err(column(path, key, rows_are, "no row"));
    }
    Ok(names.into_iter().filter(|name| name != key).collect())
}

fn column(path: &Path, key: &str, expected: &str, found: &str) -> Error {
    let [column, expected, found] = [key, expected, found].map(str::to_owned);
    Error::Column { path: path.to_owned(), column, expected, found }
}

fn row(path: &Path, row: u64, column: &str, problem: String) -> Error {
    Error::Row { path: path.to_owned(), row, column: column.into(), problem }
}

/// Where the column is that says what a row is about, and each wanted one.
struct Positions {
    key: &'static str,
    id: usize,
    wanted: Vec<Option<usize>>,
}

impl Positions {
    fn new(path: &Path, names: &[String], (key, wanted): (&'static str, &[String])) -> Result<Self> {
        let position = |wanted: &str| names.iter().position(|name| name == wanted);
        let id = position(key).ok_or_else(|| column(path, key, "text", "no such column"))?;
        Ok(Positions { key, id, wanted: wanted.iter().map(|name| position(name)).collect() })
    }

    /// Tells of a row.
    fn tell<'r>(
        &self,
        path: &Path,
        number: u64,
        text: impl Fn(usize) -> Option<Cow<'r, str>>,
        each: &mut impl FnMut(u64, &str, Texts<'_>) -> Result<()>,
    ) -> Result<()> {
        let filled = |position: usize| text(position).filter(|text| !text.trim().is_empty());
        let id = filled(self.id).ok_or_else(|| row(path, number, self.key, "is empty".into()))?;
        let texts = self.wanted.iter().map(|position| position.and_then(filled)).collect();
        each(number, whole(id.trim_matches(' ')), texts)
    }
}

fn of_csv(
    path: &Path,
    mut reader: Reader,
    wanted: (&'static str, &[String]),
    job: &Job<'_, u64>,
    each: &mut impl FnMut(u64, &str, Texts<'_>) -> Result<()>,
) -> Result<(Vec<String>, u64)> {
    let delimiter = delimiter(&mut reader).on("read", path)?;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(reader);
    let mut record = csv::StringRecord::new();
    read_record(path, 0, &mut reader, &mut record)?;
    let names: Vec<String> = record.iter().map(|name| name.trim().to_owned()).collect();
    let positions = Positions::new(path, &names, wanted)?;
    let mut number = 0;
    while read_record(path, number + 1, &mut reader, &mut record)? {
        number += 1;
        if number % ROWS == 0 {
            job.check()?;
        }
        if record.len() != names.len() {
            let problem = format!("expected {} fields in the row, found {}", names.len(), record.len());
            return Err(row(path, number, wanted.0, problem));
        }
        positions.tell(path, number, |position| record.get(position).map(Cow::from), each)?;
    }
    Ok((names, number))
}

fn of_parquet(
    path: &Path,
    file: &ParquetFile,
    wanted: (&'static str, &[String]),
    job: &Job<'_, u64>,
    each: &mut impl FnMut(u64, &str, Texts<'_>) -> Result<()>,
) -> Result<(Vec<String>, u64)> {
    let named = |error: Error| match error {
        Error::Damaged { problem, .. } => Error::Damaged { path: path.to_owned(), problem },
        other => other,
    };
    let table = Table::open(file.path().to_owned(), &Schema::empty(), None).map_err(named)?;
    let (mut names, mut number) = (Vec::new(), 0);
    for batch in table.batches()? {
        let batch = batch.map_err(named)?;
        job.check()?;
        names = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        let positions = Positions::new(path, &names, wanted)?;
        check_types(path, &batch, &names, &positions)?;
        for row in 0..batch.num_rows() {
            number += 1;
            let column = |position: usize| text(batch.column(position).as_ref(), row);
            positions.tell(path, number, column, each)?;
        }
    }
    Ok((names, number))
}

/// Refuses columns that are neither text nor numbers.
fn check_types(path: &Path, batch: &RecordBatch, names: &[String], positions: &Positions) -> Result<()> {
    for position in std::iter::once(positions.id).chain(positions.wanted.iter().copied().flatten()) {
        let found = batch.column(position).data_type();
        if !is_text_or_number(found) {
            return Err(Error::Column {
                path: path.to_owned(),
                column: names[position].clone(),
                expected: "text or a number".into(),
                found: found.to_string(),
            });
        }
    }
    Ok(())
}
