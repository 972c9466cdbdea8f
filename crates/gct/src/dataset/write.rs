//! Writing a dataset folder, as a stream.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, ListArray, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use super::decode::Decoder;
use super::manifest::{ENCOUNTERS, Files, KIND, Manifest, SCHEMA_VERSION, Source, VOCABULARY, part_name};
use super::order::{Sequence, compare, part_of};
use super::schema::{self, DIAGNOSIS_TREATMENT, END, EdgeColumn, TREATMENT_LAB};
use super::table::Table;
use crate::error::{Error, OnPath, Result};
use crate::files::{FileEntry, HashedFile, Overwrite, PendingFile, PendingFolder};
use crate::record::{CodeKind, Edge, Edges, Encounter, PerKind, Vocabulary};

/// Encounters per row group: what a writer or a reader holds in memory at a time.
const ROW_GROUP: usize = 32_768;

/// Encounters that are written at a time after they were sorted.
const SORTED_AT_A_TIME: usize = 4096;

/// A dataset folder in the making. Dropped before [`Writer::finish`], it leaves nothing behind.
///
/// Encounters may come in any order. Those of a part that do not come in its order are read again and sorted
/// in memory at the end.
pub struct Writer {
    folder: PendingFolder,
    parts: Vec<Part>,
    vocabulary: Vocabulary,
    labels: Vec<String>,
    rows: u64,
    codes: PerKind<u64>,
    with_edges: u64,
}

impl Writer {
    /// Begins a folder at `path`, with all encounters in one part. The counts of the vocabulary are filled in
    /// from the encounters.
    ///
    /// # Errors
    /// If `path` exists and may not be replaced, or cannot be written.
    ///
    /// # Panics
    /// If a label has the name of another column.
    pub fn create(
        path: &Path,
        overwrite: Overwrite,
        vocabulary: Vocabulary,
        labels: Vec<String>,
    ) -> Result<Self> {
        Writer::create_parts(path, overwrite, vocabulary, labels, 1, false)
    }

    /// [`Writer::create`] with so many parts, of which there is at least one;
    /// [`parts_for`](super::parts_for) says how many there should be. If `has_ends`, encounters may have an
    /// end.
    ///
    /// # Errors
    /// As [`Writer::create`].
    ///
    /// # Panics
    /// As [`Writer::create`].
    pub fn create_parts(
        path: &Path,
        overwrite: Overwrite,
        mut vocabulary: Vocabulary,
        labels: Vec<String>,
        parts: usize,
        has_ends: bool,
    ) -> Result<Self> {
        for label in &labels {
            assert!(!schema::is_fixed_column(label), "label `{label}` has the name of another column");
        }
        for kind in CodeKind::ALL {
            vocabulary[kind].iter_mut().for_each(|code| code.count = 0);
        }
        let folder = PendingFolder::create(path, overwrite, KIND)?;
        let encounters = folder.path().join(ENCOUNTERS);
        fs::create_dir(&encounters).on("create", &encounters)?;
        let schema = schema::encounters(&labels, !vocabulary.context.is_empty());
        let schema = if has_ends { schema::with_ends(&schema) } else { schema };
        let part = |part| {
            let table = TableWriter::create(folder.path(), &part_name(part), schema.clone())?;
            Ok(Part { table, sequence: Sequence::default(), is_sorted: true })
        };
        let parts = (0..parts.max(1)).map(part).collect::<Result<_>>()?;
        Ok(Writer { folder, parts, vocabulary, labels, rows: 0, codes: PerKind::default(), with_edges: 0 })
    }

    /// Adds encounters.
    ///
    /// # Errors
    /// If the disk refuses.
    ///
    /// # Panics
    /// If a code is not in the vocabulary, an encounter has another number of labels than the dataset, an end
    /// in a dataset without ends, or a prediction time or a part of a split, which generators do not know and
    /// [`super::Assembly`] is for.
    pub fn write(&mut self, encounters: &[Encounter]) -> Result<()> {
        let mut of_parts = vec![Vec::new(); self.parts.len()];
        for encounter in encounters {
            let is_of_other_source = encounter.prediction_time.is_some() || encounter.part.is_some();
            assert!(!is_of_other_source, "columns of other sources");
            of_parts[part_of(encounter.subject.as_str(), self.parts.len())].push(encounter);
            for kind in CodeKind::ALL {
                for &id in &encounter.codes[kind] {
                    self.vocabulary[kind][id as usize].count += 1;
                }
                self.codes[kind] += encounter.codes[kind].len() as u64;
            }
            self.with_edges += u64::from(encounter.edges.is_some());
        }
        self.rows += encounters.len() as u64;
        let labels = self.labels.len();
        for (part, encounters) in self.parts.iter_mut().zip(of_parts) {
            part.is_sorted &= part.sequence.misplaced(&encounters).is_none();
            part.table.write(columns(&encounters, labels, &part.table.schema))?;
        }
        Ok(())
    }

    /// Writes what is left, and puts the folder in its place.
    ///
    /// # Errors
    /// If the disk refuses; then nothing is left behind.
    pub fn finish(self, source: Source) -> Result<Manifest> {
        let sizes = PerKind::from_fn(|kind| self.vocabulary[kind].len() as u64);
        let decoder = Decoder::new(sizes, &self.labels, true);
        let finish = |part: Part| part.finish(&decoder, self.labels.len());
        let parts = self.parts.into_iter().map(finish).collect::<Result<_>>()?;
        let files = Files::new(parts, write_vocabulary(self.folder.path(), &self.vocabulary)?);
        let manifest = Manifest {
            schema_version: SCHEMA_VERSION,
            program: concat!("gct ", env!("CARGO_PKG_VERSION")).into(),
            source,
            encounters: self.rows,
            vocabulary: sizes,
            codes: self.codes,
            with_edges: self.with_edges,
            labels: self.labels,
            files,
        };
        manifest.write(self.folder.path())?;
        self.folder.commit()?;
        Ok(manifest)
    }
}

/// One file of encounters.
struct Part {
    table: TableWriter,
    sequence: Sequence,
    /// Whether all encounters came in order.
    is_sorted: bool,
}

impl Part {
    fn finish(self, decoder: &Decoder, labels: usize) -> Result<FileEntry> {
        let TableWriter { path, schema, .. } = &self.table;
        let (path, schema) = (path.clone(), schema.clone());
        let written = self.table.finish()?;
        if self.is_sorted {
            return Ok(written);
        }
        let table = Table::open(path.clone(), &schema, None)?;
        let mut encounters = Vec::new();
        for batch in decoder.batches(&table)? {
            encounters.extend(decoder.decode(&batch?, &path, encounters.len() as u64)?);
        }
        encounters.sort_by(compare);
        let mut table = TableWriter::at(path, schema)?;
        for some in encounters.chunks(SORTED_AT_A_TIME) {
            table.write(columns(&some.iter().collect::<Vec<_>>(), labels, &table.schema))?;
        }
        table.finish()
    }
}

/// Writes the `vocabulary.parquet` of a folder.
pub(crate) fn write_vocabulary(folder: &Path, vocabulary: &Vocabulary) -> Result<FileEntry> {
    let mut table = TableWriter::create(folder, VOCABULARY, schema::vocabulary())?;
    table.write(vocabulary_columns(vocabulary))?;
    table.finish()
}

/// One Parquet file of the folder.
struct TableWriter {
    parquet: ArrowWriter<HashedFile>,
    schema: Arc<Schema>,
    path: PathBuf,
}

impl TableWriter {
    fn create(folder: &Path, name: &str, schema: Schema) -> Result<Self> {
        TableWriter::at(folder.join(name), Arc::new(schema))
    }

    fn at(path: PathBuf, schema: Arc<Schema>) -> Result<Self> {
        let file = HashedFile::create(path.clone())?;
        let parquet = ArrowWriter::try_new(file, schema.clone(), Some(properties()))
            .map_err(|error| write_error(&path, error))?;
        Ok(TableWriter { parquet, schema, path })
    }

    fn write(&mut self, columns: Vec<ArrayRef>) -> Result<()> {
        let batch =
            RecordBatch::try_new(self.schema.clone(), columns).expect("columns follow their own schema");
        self.parquet.write(&batch).map_err(|error| write_error(&self.path, error))
    }

    fn finish(self) -> Result<FileEntry> {
        self.parquet.into_inner().map_err(|error| write_error(&self.path, error))?.finish()
    }
}

/// Writes one table as a Parquet file of its own, whole or not at all.
pub(crate) fn write_table(
    path: &Path,
    overwrite: Overwrite,
    columns: Vec<(&'static str, ArrayRef)>,
) -> Result<()> {
    let table = RecordBatch::try_from_iter(columns).expect("the columns of a table are of one length");
    let mut file = TableFile::create(path, overwrite, table.schema())?;
    file.write(&table)?;
    file.finish()
}

/// A Parquet file in the making, written a part at a time. Dropped before [`TableFile::finish`], it leaves
/// nothing behind.
pub(crate) struct TableFile {
    parquet: ArrowWriter<File>,
    pending: PendingFile,
}

impl TableFile {
    /// Begins one.
    pub(crate) fn create(path: &Path, overwrite: Overwrite, schema: Arc<Schema>) -> Result<Self> {
        let pending = PendingFile::create(path, overwrite)?;
        let file = pending.file().try_clone().on("write", path)?;
        let parquet = ArrowWriter::try_new(file, schema, Some(properties()))
            .map_err(|error| write_error(path, error))?;
        Ok(TableFile { parquet, pending })
    }

    /// Adds rows.
    pub(crate) fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        self.parquet.write(rows).map_err(|error| write_error(self.pending.target(), error))
    }

    /// Writes what is left, and puts the file in its place.
    pub(crate) fn finish(self) -> Result<()> {
        self.parquet.close().map_err(|error| write_error(self.pending.target(), error))?;
        self.pending.commit()
    }
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .build()
}

/// The operating system's own words where it said something, for a message like "no space left on device".
fn write_error(path: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(other) => std::io::Error::other(other),
        },
        other => std::io::Error::other(other),
    };
    Error::Io { action: "write", path: path.to_owned(), source }
}

/// The columns of a schema, in its order.
fn columns(encounters: &[&Encounter], labels: usize, schema: &Schema) -> Vec<ArrayRef> {
    let has = |name| schema.field_with_name(name).is_ok();
    let mut columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(encounters.iter().map(|e| e.id.as_str()))),
        Arc::new(StringArray::from_iter_values(encounters.iter().map(|e| e.subject.as_str()))),
        times(encounters, |encounter| encounter.start),
    ];
    if has(END) {
        columns.push(times(encounters, |encounter| encounter.end));
    } else {
        assert!(encounters.iter().all(|e| e.end.is_none()), "a dataset without ends");
    }
    let codes = |kind: CodeKind| {
        let codes = || encounters.iter().map(|e| &e.codes[kind]);
        let values = UInt32Array::from_iter_values(codes().flatten().copied());
        list(codes().map(Vec::len), Arc::new(values), None)
    };
    columns.extend(CodeKind::OF_PAPER.map(codes));
    columns.push(edge_column(encounters, DIAGNOSIS_TREATMENT, |edges| &edges.diagnosis_treatment));
    columns.push(edge_column(encounters, TREATMENT_LAB, |edges| &edges.treatment_lab));
    columns.extend(has(CodeKind::Context.name()).then(|| codes(CodeKind::Context)));
    for label in 0..labels {
        let values = encounters.iter().map(|e| {
            assert_eq!(e.labels.len(), labels, "an encounter has one value for each label of its dataset");
            e.labels[label]
        });
        columns.push(Arc::new(values.collect::<BooleanArray>()));
    }
    columns
}

fn times(encounters: &[&Encounter], time: fn(&Encounter) -> Option<i64>) -> ArrayRef {
    Arc::new(encounters.iter().map(|encounter| time(encounter)).collect::<TimestampMicrosecondArray>())
}

fn edge_column(encounters: &[&Encounter], column: EdgeColumn, edges: fn(&Edges) -> &Vec<Edge>) -> ArrayRef {
    let known = encounters.iter().map(|e| e.edges.is_some()).collect::<Vec<_>>();
    let lengths = encounters.iter().map(|e| e.edges.as_ref().map_or(0, |known| edges(known).len()));
    let ids = |kind: CodeKind, position: fn(&Edge) -> u16| -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(encounters.iter().flat_map(|e| {
            let edges = e.edges.as_ref().map_or(&[][..], |known| edges(known));
            edges.iter().map(move |edge| e.codes[kind][position(edge) as usize])
        })))
    };
    let pairs = StructArray::new(
        column.pair(),
        vec![ids(column.cause, |edge| edge.cause), ids(column.effect, |edge| edge.effect)],
        None,
    );
    list(lengths, Arc::new(pairs), Some(NullBuffer::from(known)))
}

fn list(lengths: impl Iterator<Item = usize>, values: ArrayRef, nulls: Option<NullBuffer>) -> ArrayRef {
    let element: DataType = values.data_type().clone();
    Arc::new(ListArray::new(schema::element(element), OffsetBuffer::from_lengths(lengths), values, nulls))
}

fn vocabulary_columns(vocabulary: &Vocabulary) -> Vec<ArrayRef> {
    let entries: Vec<_> = CodeKind::ALL
        .into_iter()
        .flat_map(|kind| (0u32..).zip(&vocabulary[kind]).map(move |(id, code)| (kind, id, code)))
        .collect();
    vec![
        Arc::new(StringArray::from_iter_values(entries.iter().map(|(kind, ..)| kind.name()))),
        Arc::new(UInt32Array::from_iter_values(entries.iter().map(|(_, id, _)| *id))),
        Arc::new(StringArray::from_iter_values(entries.iter().map(|(.., code)| &code.code))),
        Arc::new(entries.iter().map(|(.., code)| code.description.as_deref()).collect::<StringArray>()),
        Arc::new(UInt64Array::from_iter_values(entries.iter().map(|(.., code)| code.count))),
    ]
}
