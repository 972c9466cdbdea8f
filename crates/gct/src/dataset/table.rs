//! Parquet files: opened with their columns checked, read in batches.

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};

use super::schema;
use crate::error::{self, Error, OnPath, Result};
use crate::files;

/// Rows decoded at a time.
const BATCH: usize = 1024;

/// A Parquet file with the columns that it must have.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    pub(super) path: PathBuf,
    metadata: ArrowReaderMetadata,
}

impl Table {
    /// Opens a file, having checked its columns, and its rows if their number is known.
    pub(crate) fn open(path: PathBuf, expected: &Schema, rows: Option<u64>) -> Result<Self> {
        let file = files::open(&path).on("read", &path)?;
        // The types are those of the Parquet format, whichever library wrote the file.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let load = || ArrowReaderMetadata::load(&file, options).map_err(|error| damaged(&path, &error));
        let metadata = files::decode(&path, load)?;
        let table = Table { path, metadata };
        for column in expected.fields() {
            if !table.has(column)? {
                return Err(table.other_column(column, "no such column".into()));
            }
        }
        let found = table.rows();
        if let Some(rows) = rows.filter(|rows| found != *rows) {
            let problem = format!("it has {found} rows, but dataset.json says {rows}");
            return Err(Error::Damaged { path: table.path, problem });
        }
        Ok(table)
    }

    /// How many rows it says to have.
    pub(super) fn rows(&self) -> u64 {
        u64::try_from(self.metadata.metadata().file_metadata().num_rows()).unwrap_or_default()
    }

    /// Whether it has a column of this name, of whatever type.
    pub(super) fn names(&self, column: &str) -> bool {
        self.metadata.schema().field_with_name(column).is_ok()
    }

    /// Whether it has a column, which is then of the right type.
    pub(super) fn has(&self, column: &Field) -> Result<bool> {
        match self.metadata.schema().field_with_name(column.name()) {
            Ok(found) if same_type(found.data_type(), column.data_type()) => Ok(true),
            Ok(found) => Err(self.other_column(column, schema::describe(found.data_type()))),
            Err(_) => Ok(false),
        }
    }

    fn other_column(&self, expected: &Field, found: String) -> Error {
        Error::Column {
            path: self.path.clone(),
            column: expected.name().clone(),
            expected: schema::describe(expected.data_type()),
            found,
        }
    }

    /// Its rows, some at a time.
    pub(crate) fn batches(&self) -> Result<Batches> {
        self.batches_with(|_| true)
    }

    /// [`Table::batches`] with some of the columns.
    pub(super) fn batches_with(&self, is_wanted: impl Fn(&str) -> bool) -> Result<Batches> {
        let path = self.path.clone();
        let file = files::open(&path).on("read", &path)?;
        let fields = self.metadata.schema().fields();
        let wanted = (0..fields.len()).filter(|position| is_wanted(fields[*position].name()));
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), wanted);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
            .with_projection(mask)
            .with_batch_size(BATCH);
        let reader = files::decode(&path, || reader.build().map_err(|error| damaged(&path, &error)))?;
        Ok(Batches { path, reader: Some(reader) })
    }
}

/// The rows of a Parquet file, some at a time. Ends after the first error.
pub(crate) struct Batches {
    path: PathBuf,
    /// A reader that failed is never used again.
    reader: Option<ParquetRecordBatchReader>,
}

impl Iterator for Batches {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut reader = self.reader.take()?;
        let batch = files::decode(&self.path, || {
            reader.next().transpose().map_err(|error| damaged(&self.path, &error))
        });
        if batch.is_ok() {
            self.reader = Some(reader);
        }
        batch.transpose()
    }
}

fn damaged(path: &Path, error: &dyn std::error::Error) -> Error {
    let (path, said) = (path.to_owned(), error.to_string());
    // What the system refuses says nothing about the file.
    if let Some(source) = error::system_error(&said) {
        return Error::Io { action: "read", path, source };
    }
    // The library has a word for a compression that it was built without.
    if said.contains("Disabled feature") {
        return Error::Compression { path };
    }
    Error::Damaged { path, problem: format!("cut off, or not a Parquet file ({said})") }
}

/// Equal but for what no reader sees: names of list elements, nullability, a time zone.
fn same_type(found: &DataType, expected: &DataType) -> bool {
    match (found, expected) {
        (DataType::List(found), DataType::List(expected)) => {
            same_type(found.data_type(), expected.data_type())
        }
        (DataType::Struct(found), DataType::Struct(expected)) => {
            found.len() == expected.len()
                && found.iter().zip(expected).all(|(found, expected)| {
                    found.name() == expected.name() && same_type(found.data_type(), expected.data_type())
                })
        }
        (DataType::Timestamp(TimeUnit::Microsecond, _), DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            true
        }
        _ => found == expected,
    }
}
