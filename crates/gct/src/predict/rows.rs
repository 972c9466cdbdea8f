//! Rows as a file: Parquet, CSV with a header, or JSON lines.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt32Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType, Field, Schema};
use chrono::DateTime;

use crate::dataset::TableFile;
use crate::error::{Error, OnPath, Result};
use crate::files::{Overwrite, PendingFile};

/// How rows are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Parquet.
    Parquet,
    /// Text with commas and a line of names. What is not known is empty; of a vector each number is a column;
    /// a list of objects is JSON in one column.
    Csv,
    /// A JSON object per line.
    JsonLines,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 3] = [Format::Parquet, Format::Csv, Format::JsonLines];

    /// Its name, which is how files of it end.
    pub fn name(self) -> &'static str {
        match self {
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::JsonLines => "jsonl",
        }
    }

    /// The format that the ending of a file promises.
    pub fn of_ending(path: &Path) -> Option<Self> {
        let ending = path.extension()?.to_str()?;
        Format::ALL.into_iter().find(|format| ending.eq_ignore_ascii_case(format.name()))
    }
}

/// The file that rows are written to.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its path.
    pub path: &'a Path,
    /// What to do if it is there.
    pub overwrite: Overwrite,
    /// How it is written; as its ending promises if nothing is said, and Parquet if that promises nothing.
    pub format: Option<Format>,
}

impl<'a, P: AsRef<Path> + ?Sized> From<(&'a P, Overwrite)> for Target<'a> {
    fn from((path, overwrite): (&'a P, Overwrite)) -> Self {
        Target { path: path.as_ref(), overwrite, format: None }
    }
}

impl Target<'_> {
    fn format(&self) -> Format {
        self.format.or_else(|| Format::of_ending(self.path)).unwrap_or(Format::Parquet)
    }
}

/// A file of rows in the making. Dropped before [`RowFile::finish`], it leaves nothing behind.
pub(crate) enum RowFile {
    Parquet(Box<TableFile>),
    Text { file: BufWriter<File>, pending: PendingFile, format: Format },
}

impl RowFile {
    pub(crate) fn create(target: &Target<'_>, schema: &Arc<Schema>) -> Result<Self> {
        let Target { path, overwrite, .. } = *target;
        let format = target.format();
        if format == Format::Parquet {
            return Ok(RowFile::Parquet(Box::new(TableFile::create(path, overwrite, schema.clone())?)));
        }
        let pending = PendingFile::create(path, overwrite)?;
        let mut file = BufWriter::new(pending.file().try_clone().on("write", path)?);
        if format == Format::Csv {
            write_header(&mut file, schema).on("write", path)?;
        }
        Ok(RowFile::Text { file, pending, format })
    }

    /// Adds rows.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        match self {
            RowFile::Parquet(table) => table.write(rows),
            RowFile::Text { file, pending, format } => (0..rows.num_rows())
                .try_for_each(|row| write_row(file, *format, rows, row))
                .on("write", pending.target()),
        }
    }

    /// Writes what is left, and puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        match self {
            RowFile::Parquet(table) => table.finish(),
            RowFile::Text { mut file, pending, .. } => {
                file.flush().on("write", pending.target())?;
                pending.commit()
            }
        }
    }
}

/// The same rows, in which an empty `subject_id` is missing: new patients need not have one.
pub(super) fn with_missing_subjects(rows: RecordBatch) -> RecordBatch {
    let schema = rows.schema();
    let column = |(field, column): (&Arc<Field>, &ArrayRef)| -> (String, ArrayRef, bool) {
        if field.name() != "subject_id" {
            return (field.name().clone(), column.clone(), field.is_nullable());
        }
        let subjects = column.as_string::<i32>().iter();
        let known: StringArray = subjects.map(|subject| subject.filter(|id| !id.is_empty())).collect();
        (field.name().clone(), Arc::new(known), true)
    };
    let columns = schema.fields().iter().zip(rows.columns()).map(column);
    RecordBatch::try_from_iter_with_nullable(columns).expect("the columns of a table are of one length")
}

/// The names of columns; a list of n numbers has n of them.
fn write_header(file: &mut impl Write, schema: &Schema) -> io::Result<()> {
    let mut names = Vec::new();
    for field in schema.fields() {
        match field.data_type() {
            DataType::FixedSizeList(_, length) => {
                names.extend((0..*length).map(|index| format!("{}_{index}", field.name())));
            }
            _ => names.push(field.name().clone()),
        }
    }
    csv_line(file, &names)
}

fn write_row(file: &mut impl Write, format: Format, rows: &RecordBatch, row: usize) -> io::Result<()> {
    if format == Format::Csv {
        let cells = rows.columns().iter().flat_map(|column| match cell(column, row) {
            Cell::Nothing => vec![String::new()],
            Cell::Plain(text) | Cell::Text(text) => vec![text],
            Cell::List(numbers) => numbers,
        });
        return csv_line(file, &cells.collect::<Vec<_>>());
    }
    let schema = rows.schema();
    for (index, (field, column)) in schema.fields().iter().zip(rows.columns()).enumerate() {
        file.write_all(if index == 0 { b"{" } else { b"," })?;
        serde_json::to_writer(&mut *file, field.name())?;
        file.write_all(b":")?;
        match cell(column, row) {
            Cell::Nothing => file.write_all(b"null")?,
            Cell::Plain(text) => file.write_all(text.as_bytes())?,
            Cell::Text(text) => serde_json::to_writer(&mut *file, &text)?,
            Cell::List(numbers) => write!(file, "[{}]", numbers.join(","))?,
        }
    }
    file.write_all(b"}\n")
}

fn csv_line(file: &mut impl Write, cells: &[String]) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new().buffer_capacity(1 << 10).from_writer(file);
    writer.write_record(cells).map_err(io::Error::other)?;
    writer.flush()
}

/// A value as text.
enum Cell {
    Nothing,
    /// A number, true or false, a list of objects as JSON.
    Plain(String),
    Text(String),
    /// Numbers.
    List(Vec<String>),
}

fn cell(column: &dyn Array, row: usize) -> Cell {
    if column.is_null(row) {
        return Cell::Nothing;
    }
    match column.data_type() {
        DataType::Boolean => Cell::Plain(column.as_boolean().value(row).to_string()),
        DataType::UInt32 => Cell::Plain(column.as_primitive::<UInt32Type>().value(row).to_string()),
        DataType::Int64 => Cell::Plain(column.as_primitive::<Int64Type>().value(row).to_string()),
        DataType::Float32 => Cell::Plain(number(column.as_primitive::<Float32Type>().value(row))),
        DataType::Float64 => Cell::Plain(number(column.as_primitive::<Float64Type>().value(row))),
        DataType::Timestamp(..) => {
            let time =
                DateTime::from_timestamp_micros(column.as_primitive::<TimestampMicrosecondType>().value(row));
            time.map_or(Cell::Nothing, |time| Cell::Text(time.format("%Y-%m-%dT%H:%M:%S%.f").to_string()))
        }
        DataType::FixedSizeList(..) => {
            let vector = column.as_fixed_size_list().value(row);
            Cell::List(vector.as_primitive::<Float32Type>().values().iter().copied().map(number).collect())
        }
        DataType::List(_) => {
            let items = column.as_list::<i32>().value(row);
            let objects: Vec<String> = (0..items.len()).map(|item| object(items.as_struct(), item)).collect();
            Cell::Plain(format!("[{}]", objects.join(",")))
        }
        _ => Cell::Text(column.as_string::<i32>().value(row).to_owned()),
    }
}

/// A row of named values as JSON, without those that are not known.
fn object(values: &StructArray, row: usize) -> String {
    let value = |(name, column): (&str, &ArrayRef)| {
        let value = match cell(column, row) {
            Cell::Nothing => return None,
            Cell::Plain(text) => text,
            Cell::Text(text) => serde_json::to_string(&text).expect("a text is JSON"),
            Cell::List(numbers) => format!("[{}]", numbers.join(",")),
        };
        Some(format!("\"{name}\":{value}"))
    };
    let values: Vec<String> =
        values.column_names().into_iter().zip(values.columns()).filter_map(value).collect();
    format!("{{{}}}", values.join(","))
}

/// A number in as few digits as tell it from all others.
fn number(number: impl serde::Serialize) -> String {
    serde_json::to_string(&number).expect("a number is JSON")
}

/// Refuses a format that the ending of the file contradicts.
///
/// # Errors
/// If it does.
pub fn check_format(path: &Path, format: Format) -> Result<()> {
    match Format::of_ending(path) {
        Some(promised) if promised != format => Err(Error::setting(
            "format",
            format.name(),
            &format!("{}, as the ending of {} promises", promised.name(), path.display()),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{
        BooleanArray, FixedSizeListArray, Float32Array, Float64Array, TimestampMicrosecondArray,
    };

    use super::*;

    fn rows() -> RecordBatch {
        let element = Arc::new(Field::new("element", DataType::Float32, false));
        let vectors = Arc::new(Float32Array::from(vec![0.1, -2.0, 1e-9, 3.5]));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("encounter_id", Arc::new(StringArray::from(vec!["a,\"b\"", "c"]))),
            ("prediction_time", Arc::new(TimestampMicrosecondArray::from(vec![Some(1_500_000), None]))),
            ("boolean_value", Arc::new(BooleanArray::from(vec![None, Some(true)]))),
            ("probability", Arc::new(Float64Array::from(vec![0.1 + 0.2, 1.0]))),
            ("embedding", Arc::new(FixedSizeListArray::new(element, 2, vectors, None))),
        ];
        RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, column)| (name, column, true)),
        )
        .unwrap()
    }

    fn written(format: Format) -> String {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("rows");
        let target = Target { path: &path, overwrite: Overwrite::Refuse, format: Some(format) };
        let mut file = RowFile::create(&target, &rows().schema()).unwrap();
        file.write(&rows()).unwrap();
        file.finish().unwrap();
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn an_empty_subject_is_missing() {
        let text = |ids: [&str; 2]| -> ArrayRef { Arc::new(StringArray::from(ids.to_vec())) };
        let columns = [("subject_id", text(["", "s"]), false), ("encounter_id", text(["", "e"]), false)];
        let rows = with_missing_subjects(RecordBatch::try_from_iter_with_nullable(columns).unwrap());
        assert_eq!((rows.column(0).is_null(0), rows.column(0).is_null(1)), (true, false));
        assert_eq!((rows.column(1).null_count(), rows.schema().field(1).is_nullable()), (0, false));
    }

    #[test]
    fn csv_has_a_column_per_number() {
        assert_eq!(
            written(Format::Csv),
            "encounter_id,prediction_time,boolean_value,probability,embedding_0,embedding_1\n\
             \"a,\"\"b\"\"\",1970-01-01T00:00:01.500,,0.30000000000000004,0.1,-2.0\n\
             c,,true,1.0,1e-9,3.5\n"
        );
    }

    #[test]
    fn json_lines_have_an_object_per_row() {
        let text = written(Format::JsonLines);
        let lines: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0]["encounter_id"], "a,\"b\"");
        assert_eq!(lines[0]["prediction_time"], "1970-01-01T00:00:01.500");
        assert_eq!(lines[0]["boolean_value"], serde_json::Value::Null);
        assert_eq!(lines[0]["probability"], 0.1 + 0.2);
        assert_eq!(text.lines().nth(1).unwrap().split("embedding").nth(1).unwrap(), "\":[1e-9,3.5]}");
    }

    #[test]
    fn an_ending_and_a_format_agree() {
        let refused = check_format(Path::new("a.csv"), Format::Parquet).unwrap_err().to_string();
        assert!(refused.contains("expected csv, as the ending of a.csv promises"), "{refused}");
        for path in ["a.jsonl", "a.txt", "a"] {
            assert!(check_format(Path::new(path), Format::JsonLines).is_ok());
        }
        let target = |path: &'static str| Target::from((Path::new(path), Overwrite::Refuse)).format();
        assert_eq!(
            [target("a.CSV"), target("a"), target("b.jsonl")],
            [Format::Csv, Format::Parquet, Format::JsonLines]
        );
    }
}
