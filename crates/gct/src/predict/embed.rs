//! Vectors for other programs: of visits, and of codes. Parquet with a list of fixed length, or `.npy` with a
//! row for each, in the order of the dataset or of the vocabulary.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field};

use super::Written;
use super::npy;
use crate::dataset::{Dataset, TableFile};
use crate::error::{Error, OnPath, Result};
use crate::files::{Overwrite, PendingFile};
use crate::infer::{Predictor, Reader, Which, in_rounds};
use crate::job::Job;
use crate::record::{CodeKind, Encounter};
use crate::run::Run;

/// Writes the vector of every visit, as the model's head sees it. The job is told how many are done.
///
/// # Errors
/// If the run has no model, the dataset does not go with it or cannot be read, a vector is not of numbers,
/// the file cannot be written, or the job is stopped.
pub fn visits(
    run: &Run,
    dataset: &Dataset,
    which: Which,
    out: (&Path, Overwrite),
    job: &Job<'_, u64>,
) -> Result<Written> {
    let predictor = Predictor::of_run(run)?;
    predictor.check_given(dataset)?;
    dataset.check_hashes(&job.inner(|_| None))?;
    let can_ask = |encounter: &Encounter| predictor.can_ask(encounter);
    let mut rows = 0;
    if is_npy(out.0)? {
        // How many rows there are stands at the beginning of the file.
        let mut reader = Reader::for_predictions(run, dataset, which)?;
        let left_out = in_rounds(&mut reader, can_ask, |encounters| {
            rows += encounters.len();
            job.check()
        })?;
        if left_out > 0 {
            let allowed = format!(
                "a .parquet file: {left_out} encounters are left out, and rows of .npy have no names"
            );
            return Err(Error::setting("out", out.0.display(), &allowed));
        }
    }
    let mut reader = Reader::for_predictions(run, dataset, which)?;
    let mut file = VectorFile::create(out, rows, run.settings().model.width())?;
    let mut written = Written::default();
    // So that there is a file even if there is no encounter.
    file.write(names(&[]), std::iter::empty())?;
    written.left_out = in_rounds(&mut reader, can_ask, |encounters| {
        let vectors = predictor.vectors(&predictor.samples(encounters))?;
        file.write(names(encounters), vectors.iter().map(Vec::as_slice))?;
        written.encounters += encounters.len() as u64;
        job.advance(written.encounters)
    })?;
    file.finish()?;
    (written.rows, written.unseen) = (written.encounters, reader.unseen());
    Ok(written)
}

fn names(encounters: &[Encounter]) -> Vec<(&'static str, ArrayRef, bool)> {
    let text = |of: fn(&Encounter) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(encounters.iter().map(of)))
    };
    vec![
        ("subject_id", text(|encounter| encounter.subject.as_str()), false),
        ("encounter_id", text(|encounter| encounter.id.as_str()), false),
    ]
}

/// Writes the vector of every code.
///
/// # Errors
/// If the run has no model, or the file cannot be written.
pub fn codes(run: &Run, out: (&Path, Overwrite)) -> Result<Written> {
    let (model, vocabulary) = (run.model()?, run.vocabulary());
    let codes: Vec<_> = CodeKind::ALL
        .into_iter()
        .flat_map(|kind| (0u32..).zip(&vocabulary[kind]).map(move |(id, code)| (kind, id, code)))
        .collect();
    let names: Vec<(&str, ArrayRef, bool)> = vec![
        ("kind", Arc::new(StringArray::from_iter_values(codes.iter().map(|(kind, ..)| kind.name()))), false),
        ("code", Arc::new(StringArray::from_iter_values(codes.iter().map(|(.., code)| &code.code))), false),
        (
            "description",
            Arc::new(codes.iter().map(|(.., code)| code.description.as_deref()).collect::<StringArray>()),
            true,
        ),
    ];
    let mut file = VectorFile::create(out, codes.len(), model.width())?;
    let rows = model.embedding_rows();
    file.write(names, codes.iter().map(|(kind, id, _)| model.embedding(rows.code(*kind, *id))))?;
    file.finish()?;
    Ok(Written { rows: codes.len() as u64, ..Written::default() })
}

fn is_npy(path: &Path) -> Result<bool> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("npy") => Ok(true),
        Some("parquet") => Ok(false),
        // The ending decides, so there must be one.
        _ => Err(Error::Ending { path: path.to_owned(), endings: &["parquet", "npy"] }),
    }
}

/// A file of vectors in the making.
enum VectorFile {
    Npy(npy::Writer<BufWriter<File>>, PendingFile),
    /// With its path until the columns are known.
    Parquet {
        target: (std::path::PathBuf, Overwrite),
        width: usize,
        table: Option<Box<TableFile>>,
    },
}

impl VectorFile {
    fn create((path, overwrite): (&Path, Overwrite), rows: usize, width: usize) -> Result<Self> {
        if is_npy(path)? {
            let pending = PendingFile::create(path, overwrite)?;
            let file = BufWriter::new(pending.file().try_clone().on("write", path)?);
            let writer = npy::Writer::new(file, rows, width).on("write", path)?;
            return Ok(VectorFile::Npy(writer, pending));
        }
        crate::files::check_file(path, overwrite)?;
        Ok(VectorFile::Parquet { target: (path.to_owned(), overwrite), width, table: None })
    }

    fn write<'a>(
        &mut self,
        names: Vec<(&str, ArrayRef, bool)>,
        mut vectors: impl Iterator<Item = &'a [f32]>,
    ) -> Result<()> {
        match self {
            VectorFile::Npy(writer, pending) => {
                vectors.try_for_each(|vector| writer.row(vector)).on("write", pending.target())
            }
            VectorFile::Parquet { target, width, table } => {
                let values = Float32Array::from_iter_values(vectors.flatten().copied());
                let element = Arc::new(Field::new("element", DataType::Float32, false));
                let list = FixedSizeListArray::new(element, *width as i32, Arc::new(values), None);
                let columns = names.into_iter().chain([("embedding", Arc::new(list) as ArrayRef, false)]);
                let batch = RecordBatch::try_from_iter_with_nullable(columns)
                    .expect("the columns of a table are of one length");
                let table = match table {
                    Some(table) => table,
                    none => none.insert(Box::new(TableFile::create(&target.0, target.1, batch.schema())?)),
                };
                table.write(&batch)
            }
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            VectorFile::Npy(writer, pending) => {
                writer.finish().on("write", pending.target())?;
                pending.commit()
            }
            VectorFile::Parquet { table, .. } => table.map_or(Ok(()), |table| table.finish()),
        }
    }
}
