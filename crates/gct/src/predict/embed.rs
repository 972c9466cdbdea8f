//! Vectors for other programs: of visits, and of codes. Parquet with a list of fixed length, CSV, JSON lines,
//! or `.npy` with a row for each, in the order of the dataset or of the vocabulary.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field};

use super::Written;
use super::npy;
use super::rows::{Format, RowFile, Target};
use crate::dataset::Dataset;
use crate::error::{Error, OnPath, Result};
use crate::files::PendingFile;
use crate::incoming::Incoming;
use crate::infer::{Predictor, Reader, Which, in_rounds, is_of_same_subject};
use crate::job::Job;
use crate::record::{CodeKind, Encounter};
use crate::run::Run;
use crate::sample::Sample;

/// What a vector is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Embedded {
    /// An encounter by itself.
    Visits,
    /// A subject: its last encounter with those before it that a model with history sees.
    Subjects,
}

impl Embedded {
    /// Refuses a run whose model has no vectors, or none of subjects.
    fn check(self, predictor: &Predictor<'_>) -> Result<()> {
        predictor.check_vectors()?;
        match self {
            Embedded::Subjects if !predictor.sees_history() => {
                let allowed = "visits: the run sees no history, so it has no vectors of subjects";
                Err(Error::setting("what", "subjects", allowed))
            }
            Embedded::Visits | Embedded::Subjects => Ok(()),
        }
    }

    /// The samples that get a vector.
    fn of<'e>(self, samples: &[Sample<'e>]) -> Vec<Sample<'e>> {
        match self {
            Embedded::Visits => samples.to_vec(),
            Embedded::Subjects => {
                let same = |one: &Sample<'_>, next: &Sample<'_>| {
                    is_of_same_subject(one.encounter(), next.encounter())
                };
                samples.chunk_by(same).filter_map(|subject| subject.last().copied()).collect()
            }
        }
    }

    fn vectors(self, predictor: &Predictor<'_>, samples: &[Sample<'_>]) -> Result<Vec<Vec<f32>>> {
        match self {
            Embedded::Visits => predictor.vectors(samples),
            Embedded::Subjects => predictor.subject_vectors(samples),
        }
    }
}

/// Writes the vector of every visit or subject, as the model's head sees it. The job is told how many are
/// done.
///
/// # Errors
/// If the run has no model or no vectors of these, the dataset does not go with it or cannot be read, a
/// vector is not of numbers, the file cannot be written, or the job is stopped.
pub fn embed<'a>(
    run: &Run,
    embedded: Embedded,
    dataset: &Dataset,
    which: Which,
    out: impl Into<Target<'a>>,
    job: &Job<'_, u64>,
) -> Result<Written> {
    let (out, predictor) = (out.into(), Predictor::of_run(run)?);
    embedded.check(&predictor)?;
    predictor.check_given(dataset)?;
    dataset.check_hashes(&job.inner(|_| None))?;
    let can_ask = |encounter: &Encounter, _: Option<&Encounter>| predictor.can_ask(encounter);
    let mut rows = 0;
    if is_npy(&out)? {
        // How many rows there are stands at the beginning of the file.
        let mut reader = Reader::for_predictions(run, dataset, which)?;
        let left_out = in_rounds(&predictor, &mut reader, can_ask, |samples| {
            rows += embedded.of(samples).len();
            job.check()
        })?;
        if left_out > 0 {
            let allowed = format!(
                "a .parquet file: {left_out} encounters are left out, and rows of .npy have no names"
            );
            return Err(Error::setting("out", out.path.display(), &allowed));
        }
    }
    let mut reader = Reader::for_predictions(run, dataset, which)?;
    let file = VectorFile::create(out, rows, run.settings().width())?;
    let (mut written, file) = write((&predictor, embedded), &mut reader, file, false, job)?;
    file.finish()?;
    written.unseen = reader.unseen();
    Ok(written)
}

/// The same for encounters that are in no dataset. The job is told how many are done.
///
/// # Errors
/// If the run has no model, no vectors of these, or needs what only a dataset has, an encounter cannot be
/// read, the run knows no code of any of them, a vector is not of numbers, the file cannot be written or is
/// to be one of NumPy, or the job is stopped.
pub fn embed_incoming<'a>(
    run: &Run,
    embedded: Embedded,
    mut incoming: Incoming<'_>,
    out: impl Into<Target<'a>>,
    job: &Job<'_, u64>,
) -> Result<Written> {
    let (out, predictor) = (out.into(), Predictor::of_run(run)?);
    embedded.check(&predictor)?;
    predictor.check_edges(false)?;
    if is_npy(&out)? {
        let allowed = "a .parquet, .csv or .jsonl file: how many rows there are is known at the end only";
        return Err(Error::setting("out", out.path.display(), allowed));
    }
    let file = VectorFile::create(out, 0, run.settings().width())?;
    let (mut written, file) = write((&predictor, embedded), &mut incoming, file, true, job)?;
    incoming.check()?;
    file.finish()?;
    written.add(incoming.met());
    Ok(written)
}

/// Writes the vectors of encounters to a file that is still to be finished. New ones need not have a subject.
fn write<'a>(
    (predictor, embedded): (&Predictor<'_>, Embedded),
    encounters: &mut (impl Iterator<Item = Result<Encounter>> + Send),
    mut file: VectorFile<'a>,
    are_new: bool,
    job: &Job<'_, u64>,
) -> Result<(Written, VectorFile<'a>)> {
    let mut written = Written::default();
    // So that there is a file even if there is no encounter.
    file.write(names(&[], are_new), std::iter::empty())?;
    let can_ask = |encounter: &Encounter, _: Option<&Encounter>| predictor.can_ask(encounter);
    written.left_out = in_rounds(predictor, encounters, can_ask, |samples| {
        let of = embedded.of(samples);
        let vectors = embedded.vectors(predictor, &of)?;
        file.write(names(&of, are_new), vectors.iter().map(Vec::as_slice))?;
        written.rows += of.len() as u64;
        written.encounters += samples.len() as u64;
        job.advance(written.encounters)
    })?;
    Ok((written, file))
}

fn names(samples: &[Sample<'_>], are_new: bool) -> Vec<(&'static str, ArrayRef, bool)> {
    let encounters = || samples.iter().map(|sample| sample.encounter());
    let subjects = encounters().map(|encounter| Some(encounter.subject.as_str()));
    let subjects: StringArray = subjects.map(|id| id.filter(|id| !are_new || !id.is_empty())).collect();
    let ids = StringArray::from_iter_values(encounters().map(|encounter| encounter.id.as_str()));
    vec![("subject_id", Arc::new(subjects), are_new), ("encounter_id", Arc::new(ids), false)]
}

/// Writes the vector of every code.
///
/// # Errors
/// If the run has no model, or the file cannot be written.
pub fn codes<'a>(run: &Run, out: impl Into<Target<'a>>) -> Result<Written> {
    let (model, vocabulary) = (run.model()?, run.vocabulary());
    model.config().check_vectors()?;
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
    let mut file = VectorFile::create(out.into(), codes.len(), model.width())?;
    let rows = model.embedding_rows();
    file.write(names, codes.iter().map(|(kind, id, _)| model.embedding(rows.code(*kind, *id))))?;
    file.finish()?;
    Ok(Written { rows: codes.len() as u64, ..Written::default() })
}

fn is_npy(out: &Target<'_>) -> Result<bool> {
    match out.path.extension().and_then(|extension| extension.to_str()) {
        _ if out.format.is_some() => Ok(false),
        Some("npy") => Ok(true),
        Some(_) if Format::of_ending(out.path).is_some() => Ok(false),
        // The ending decides, so there must be one.
        _ => Err(Error::Ending { path: out.path.to_owned(), endings: &["parquet", "csv", "jsonl", "npy"] }),
    }
}

/// A file of vectors in the making.
enum VectorFile<'a> {
    Npy(npy::Writer<BufWriter<File>>, PendingFile),
    /// With its target until the columns are known.
    Rows {
        target: Target<'a>,
        width: usize,
        file: Option<RowFile>,
    },
}

impl<'t> VectorFile<'t> {
    fn create(target: Target<'t>, rows: usize, width: usize) -> Result<Self> {
        let Target { path, overwrite, .. } = target;
        if is_npy(&target)? {
            let pending = PendingFile::create(path, overwrite)?;
            let file = BufWriter::new(pending.file().try_clone().on("write", path)?);
            let writer = npy::Writer::new(file, rows, width).on("write", path)?;
            return Ok(VectorFile::Npy(writer, pending));
        }
        crate::files::check_file(path, overwrite)?;
        Ok(VectorFile::Rows { target, width, file: None })
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
            VectorFile::Rows { target, width, file } => {
                let values = Float32Array::from_iter_values(vectors.flatten().copied());
                let element = Arc::new(Field::new("element", DataType::Float32, false));
                let list = FixedSizeListArray::new(element, *width as i32, Arc::new(values), None);
                let columns = names.into_iter().chain([("embedding", Arc::new(list) as ArrayRef, false)]);
                let batch = RecordBatch::try_from_iter_with_nullable(columns)
                    .expect("the columns of a table are of one length");
                let file = match file {
                    Some(file) => file,
                    none => none.insert(RowFile::create(target, &batch.schema())?),
                };
                file.write(&batch)
            }
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            VectorFile::Npy(writer, pending) => {
                writer.finish().on("write", pending.target())?;
                pending.commit()
            }
            VectorFile::Rows { file, .. } => file.map_or(Ok(()), RowFile::finish),
        }
    }
}
