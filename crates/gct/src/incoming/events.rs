//! Events: a row per recorded code, as CSV or Parquet. Rows of an encounter can be anywhere, so the codes of
//! all encounters are gathered, as numbers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema};

use super::source::{ParquetFile, Reader};
use super::{Found, MOST_CODES, Missing, ROWS, Words, encounter, refusal, too_many};
use crate::coding::{kind_named, whole};
use crate::dataset::Table;
use crate::error::{Error, OnPath, Result};
use crate::job::Job;
use crate::record::{CodeKind, PerKind};

/// The columns that are read, in this order. Others are ignored.
const COLUMNS: [&str; 5] = ["encounter_id", "kind", "code", "value", "subject_id"];
/// Another name of `value`.
const NUMERIC_VALUE: &str = "numeric_value";
/// As many of the columns must be there.
const REQUIRED: usize = 3;

/// Where a file has the columns.
type Positions = [Option<usize>; COLUMNS.len()];

/// The columns by their names.
fn positions(path: &Path, names: &[String]) -> Result<Positions> {
    let is = |name: &str, wanted: &str| {
        name.trim().eq_ignore_ascii_case(wanted)
            || wanted == "value" && name.trim().eq_ignore_ascii_case(NUMERIC_VALUE)
    };
    let mut positions = [None; COLUMNS.len()];
    for (column, wanted) in COLUMNS.iter().enumerate() {
        let mut found = (0..names.len()).filter(|position| is(&names[*position], wanted));
        positions[column] = found.next();
        if found.next().is_some() {
            return Err(refusal(path, format!("two columns are called `{wanted}` or mean it")));
        }
        if column < REQUIRED && positions[column].is_none() {
            let expected = "expected encounter_id, kind, code and perhaps value and subject_id";
            return Err(refusal(path, format!("no column `{wanted}`; {expected}")));
        }
    }
    Ok(positions)
}

/// A row: the texts of the columns, and the value, which a Parquet file has as a number.
struct Row<'r> {
    texts: [Option<Cow<'r, str>>; COLUMNS.len()],
    value: Result<Option<f64>, ()>,
}

/// What is wrong with a row, and in which column.
type Wrong = (&'static str, String);

/// The encounters of the rows so far.
struct Gathered<'w, 'a> {
    words: &'w mut Words<'a>,
    index: HashMap<String, usize>,
    encounters: Vec<One>,
}

/// What is known of an encounter.
#[derive(Default)]
struct One {
    subject: Option<String>,
    codes: PerKind<Vec<u32>>,
    missing: Vec<Missing>,
}

impl Gathered<'_, '_> {
    fn add(&mut self, row: &Row<'_>) -> Result<Result<(), Wrong>> {
        let needed = |column: usize| {
            let text = row.texts[column].as_ref().map(|text| text.trim_matches(' '));
            text.filter(|text| !text.is_empty()).ok_or((COLUMNS[column], "is empty".to_owned()))
        };
        let (id, kind, code) = match (needed(0), needed(1), needed(2)) {
            (Ok(id), Ok(kind), Ok(code)) => (id, kind, code),
            (Err(wrong), ..) | (_, Err(wrong), _) | (.., Err(wrong)) => return Ok(Err(wrong)),
        };
        let Some(kind) = kind_named(kind) else {
            return Ok(Err((COLUMNS[1], "expected context, diagnosis, treatment or lab".into())));
        };
        let Ok(value) = row.value else { return Ok(Err((COLUMNS[3], "expected a number".into()))) };
        // As when a dataset is prepared, other kinds have no values.
        let value = value.filter(|_| matches!(kind, CodeKind::Lab | CodeKind::Context));
        let subject = row.texts[4].as_ref().map(|text| whole(text.trim_matches(' ')));
        let known = self.words.id(kind, code, value)?;
        let one = self.encounter(whole(id));
        match (&one.subject, subject.filter(|subject| !subject.is_empty())) {
            (Some(known), Some(subject)) if known != subject => {
                let problem = "is another one than in an earlier row of the same encounter";
                return Ok(Err((COLUMNS[4], problem.into())));
            }
            (None, Some(subject)) => one.subject = Some(subject.to_owned()),
            _ => {}
        }
        match known {
            Ok(id) if one.codes[kind].contains(&id) => {}
            Ok(id) => one.codes[kind].push(id),
            Err(unknown) => one.missing.push(unknown),
        }
        let codes = CodeKind::ALL.iter().map(|kind| one.codes[*kind].len()).sum::<usize>();
        Ok(if codes > MOST_CODES { Err((COLUMNS[2], too_many())) } else { Ok(()) })
    }

    fn encounter(&mut self, id: &str) -> &mut One {
        let next = self.encounters.len();
        let index = match self.index.get(id) {
            Some(index) => *index,
            None => {
                self.index.insert(id.to_owned(), next);
                self.encounters.push(One::default());
                next
            }
        };
        &mut self.encounters[index]
    }

    /// The encounters in the order of their first rows.
    fn finish(self) -> Vec<Found> {
        let mut ids = vec![String::new(); self.encounters.len()];
        self.index.into_iter().for_each(|(id, index)| ids[index] = id);
        let made = ids.iter().zip(self.encounters);
        let subject = |one: &mut One| one.subject.take().unwrap_or_default();
        made.map(|(id, mut one)| (encounter(id, &subject(&mut one), one.codes), one.missing)).collect()
    }
}

/// Adds a row, and names it if it is wrong.
fn add(path: &Path, number: u64, row: &Row<'_>, gathered: &mut Gathered<'_, '_>) -> Result<()> {
    gathered
        .add(row)?
        .map_err(|(column, problem)| refusal(path, format!("row {number}: column `{column}`: {problem}")))
}

/// The encounters of a text file.
pub(super) fn of_csv(
    path: &Path,
    mut reader: Reader,
    words: &mut Words<'_>,
    job: &Job<'_, u64>,
) -> Result<Vec<Found>> {
    let delimiter = delimiter(&mut reader).on("read", path)?;
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(reader);
    let mut record = csv::StringRecord::new();
    read_record(path, 0, &mut reader, &mut record)?;
    let names: Vec<String> = record.iter().map(str::to_owned).collect();
    let positions = positions(path, &names)?;
    let mut gathered = Gathered { words, index: HashMap::new(), encounters: Vec::new() };
    let mut number = 0;
    while read_record(path, number + 1, &mut reader, &mut record)? {
        number += 1;
        if number % ROWS == 0 {
            job.check()?;
        }
        if record.len() != names.len() {
            let problem = format!("expected {} fields, found {}", names.len(), record.len());
            return Err(refusal(path, format!("row {number}: {problem}")));
        }
        let texts =
            positions.map(|position| position.and_then(|position| record.get(position)).map(Cow::from));
        let value = texts[3].as_ref().map(|text| text.trim()).filter(|text| !text.is_empty());
        let value = value.map(|text| text.parse::<f64>().map_err(|_| ())).transpose();
        add(path, number, &Row { texts, value }, &mut gathered)?;
    }
    if number == 0 { Err(refusal(path, "it has no rows")) } else { Ok(gathered.finish()) }
}

/// What is between the columns: a comma, unless the first line has none.
pub(super) fn delimiter(reader: &mut Reader) -> std::io::Result<u8> {
    let found = reader.fill_buf()?;
    let line = found.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let has = |byte: &u8| line.contains(byte);
    Ok([b',', b'\t', b';'].into_iter().find(has).unwrap_or(b','))
}

/// Reads a row; whether there is one.
pub(super) fn read_record(
    path: &Path,
    number: u64,
    reader: &mut csv::Reader<impl Read>,
    record: &mut csv::StringRecord,
) -> Result<bool> {
    reader.read_record(record).map_err(|error| match error.into_kind() {
        csv::ErrorKind::Io(source) => Error::Io { action: "read", path: path.to_owned(), source },
        _ => refusal(path, format!("row {number}: expected UTF-8 text")),
    })
}

/// The encounters of a Parquet file, which is called by another path in messages.
pub(super) fn of_parquet(
    path: &Path,
    file: &ParquetFile,
    words: &mut Words<'_>,
    job: &Job<'_, u64>,
) -> Result<Vec<Found>> {
    let named = |error: Error| match error {
        Error::Damaged { problem, .. } => Error::Damaged { path: path.to_owned(), problem },
        other => other,
    };
    let table = Table::open(file.path().to_owned(), &Schema::empty(), None).map_err(named)?;
    let mut gathered = Gathered { words, index: HashMap::new(), encounters: Vec::new() };
    let mut number = 0;
    for batch in table.batches()? {
        let batch = batch.map_err(named)?;
        job.check()?;
        let names: Vec<String> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        let positions = positions(path, &names)?;
        check_types(path, &batch, &positions)?;
        for row in 0..batch.num_rows() {
            number += 1;
            let column = |index: usize| positions[index].map(|position| batch.column(position).as_ref());
            let text = |index: usize| column(index).and_then(|column| text(column, row));
            let texts = [text(0), text(1), text(2), None, text(4)];
            let value = column(3).map_or(Ok(None), |column| value(column, row));
            add(path, number, &Row { texts, value }, &mut gathered)?;
        }
    }
    if number == 0 { Err(refusal(path, "it has no rows")) } else { Ok(gathered.finish()) }
}

/// Refuses columns that are neither text nor numbers.
fn check_types(path: &Path, batch: &RecordBatch, positions: &Positions) -> Result<()> {
    for (position, name) in positions.iter().zip(COLUMNS) {
        let Some(position) = position else { continue };
        let found = batch.column(*position).data_type();
        let expected = if name == "value" { "a number" } else { "text" };
        let is_read = if name == "kind" { is_text(found) } else { is_text_or_number(found) };
        if *found != DataType::Null && !is_read {
            return Err(refusal(path, format!("column `{name}`: expected {expected}")));
        }
    }
    Ok(())
}

fn is_text(column: &DataType) -> bool {
    matches!(column, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Whether [`text`] reads such a column.
pub(super) fn is_text_or_number(column: &DataType) -> bool {
    is_text(column) || column.is_integer() || matches!(column, DataType::Float32 | DataType::Float64)
}

/// A text, or a number as text.
pub(super) fn text(column: &dyn Array, row: usize) -> Option<Cow<'_, str>> {
    if column.is_null(row) {
        return None;
    }
    match column.data_type() {
        DataType::Utf8 => Some(column.as_string::<i32>().value(row).into()),
        DataType::LargeUtf8 => Some(column.as_string::<i64>().value(row).into()),
        DataType::Utf8View => Some(column.as_string_view().value(row).into()),
        DataType::Float32 | DataType::Float64 => {
            number(column, row).map(|number| format!("{number:?}").into())
        }
        DataType::UInt64 => Some(column.as_primitive::<UInt64Type>().value(row).to_string().into()),
        DataType::Int64 => Some(column.as_primitive::<Int64Type>().value(row).to_string().into()),
        _ => number(column, row).map(|number| number.to_string().into()),
    }
}

/// A number, or a text that is one.
fn value(column: &dyn Array, row: usize) -> Result<Option<f64>, ()> {
    if column.is_null(row) {
        return Ok(None);
    }
    if let Some(number) = number(column, row) {
        return Ok(Some(number));
    }
    let text = text(column, row).unwrap_or_default();
    match text.trim() {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|_| ()),
    }
}

/// The number in a column of numbers.
fn number(column: &dyn Array, row: usize) -> Option<f64> {
    Some(match column.data_type() {
        DataType::Float64 => column.as_primitive::<Float64Type>().value(row),
        DataType::Float32 => f64::from(column.as_primitive::<Float32Type>().value(row)),
        DataType::Int64 => column.as_primitive::<Int64Type>().value(row) as f64,
        DataType::Int32 => f64::from(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int16 => f64::from(column.as_primitive::<Int16Type>().value(row)),
        DataType::Int8 => f64::from(column.as_primitive::<Int8Type>().value(row)),
        DataType::UInt64 => column.as_primitive::<UInt64Type>().value(row) as f64,
        DataType::UInt32 => f64::from(column.as_primitive::<UInt32Type>().value(row)),
        DataType::UInt16 => f64::from(column.as_primitive::<UInt16Type>().value(row)),
        DataType::UInt8 => f64::from(column.as_primitive::<UInt8Type>().value(row)),
        _ => return None,
    })
}
