//! A table that is written as its rows come.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::json::ReaderBuilder;
use datafusion::error::DataFusionError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use serde::Serialize;

use super::unwritable;
use crate::columns::data_type;
use crate::error::Result;
use crate::source::ColumnKind;

/// Rows that are written at once.
const BATCH: usize = 8192;

/// A table that is being written.
pub(super) struct Sheet {
    schema: SchemaRef,
    writer: ArrowWriter<fs::File>,
    rows: Vec<Row>,
}

impl Sheet {
    pub(super) fn create<'a>(
        path: &Path,
        columns: impl Iterator<Item = (&'a str, ColumnKind)>,
    ) -> Result<Self> {
        let fields = columns.map(|(name, kind)| Field::new(name, data_type(kind), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let file = fs::File::create(path).map_err(|error| unwritable(path, &error.to_string()))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(16 * BATCH))
            .build();
        let writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(DataFusionError::from)?;
        Ok(Sheet { schema, writer, rows: vec![] })
    }

    pub(super) fn push(&mut self, row: Row) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= BATCH { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let mut decoder =
            ReaderBuilder::new(self.schema.clone()).build_decoder().map_err(DataFusionError::from)?;
        decoder.serialize(&self.rows).map_err(DataFusionError::from)?;
        self.rows.clear();
        if let Some(batch) = decoder.flush().map_err(DataFusionError::from)? {
            self.writer.write(&batch).map_err(DataFusionError::from)?;
        }
        Ok(())
    }

    pub(super) fn close(mut self) -> Result<()> {
        self.write()?;
        self.writer.close().map_err(DataFusionError::from)?;
        Ok(())
    }
}

/// A row of any table, which takes those of its columns that it has.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) resource: u64,
    pub(super) updated: Option<i64>,
    pub(super) encounter: Option<String>,
    pub(super) status: Option<String>,
    pub(super) code: Option<String>,
    pub(super) description: Option<String>,
    /// When it is known.
    pub(super) time: Option<i64>,
    // Of encounters.
    pub(super) class: Option<String>,
    pub(super) patient: Option<String>,
    pub(super) part_of: Option<String>,
    pub(super) start: Option<i64>,
    pub(super) stop: Option<i64>,
    pub(super) last_day: Option<i64>,
    // Of patients.
    pub(super) deceased: Option<bool>,
    pub(super) deceased_day: Option<i64>,
    pub(super) gender: Option<String>,
    pub(super) birth_date: Option<i64>,
    // Of medication requests.
    pub(super) do_not_perform: Option<bool>,
    pub(super) medication: Option<String>,
    // Of observations.
    pub(super) category: Option<String>,
    pub(super) numeric_value: Option<f64>,
    pub(super) value: Option<String>,
    pub(super) value_description: Option<String>,
    pub(super) absent: Option<bool>,
    // Of reasons.
    pub(super) condition: Option<String>,
}
