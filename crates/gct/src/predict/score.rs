//! Predictions as a table. Labels have the column names of the MEDS prediction schema.
//!
//! | task | one row per | columns beside `subject_id`, `encounter_id`, `prediction_time` |
//! |---|---|---|
//! | labels | encounter and label | `label`, `boolean_value`, `predicted_boolean_value`, `predicted_boolean_probability` |
//! | `masked_diagnosis` | encounter and guess | `hidden_diagnosis`, `rank`, `predicted_diagnosis`, `probability` |
//! | `masked_code` | encounter and guess | `hidden_kind`, `hidden_code`, `rank`, `predicted_code`, `probability` |
//! | `next_diagnoses` | encounter and diagnosis | `rank`, `predicted_diagnosis`, `probability`, `boolean_value` |
//! | `graph_reconstruction` | encounter and pair | `cause_kind`, `cause`, `effect_kind`, `effect`, `boolean_value`, `probability` |
//!
//! If reasons are wanted, each row has a column `why` as well: a list of the codes that change it most when
//! they are left out, each with `kind`, `code`, `description`, `change` and `log_odds_change`.
//!
//! As MEDS, a table has the columns of that schema and no other: subjects are integers, one label is known
//! for every row.

use arrow_array::RecordBatch;

use super::attribution::Asked;
use super::rows::{RowFile, Target, with_missing_subjects};
use super::why::WhyColumn;
use super::{Explainer, Written};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::incoming::Incoming;
use crate::infer::{Predictor, Reader, TestSet, in_rounds};
use crate::job::Job;
use crate::question::TableOptions;
use crate::record::Encounter;
use crate::run::Run;

/// Writes the predictions of a run for the encounters of a dataset. The job is told how many are done.
///
/// # Errors
/// If the run has no model, the dataset does not go with it or cannot be read, the file cannot be
/// written, or the job is stopped.
pub fn score<'a>(
    run: &Run,
    dataset: &Dataset,
    test_set: impl Into<TestSet>,
    options: TableOptions,
    out: impl Into<Target<'a>>,
    job: &Job<'_, u64>,
) -> Result<Written> {
    options.check()?;
    let (TestSet { which, training }, predictor) = (test_set.into(), Predictor::of_run(run)?);
    predictor.check_given(dataset)?;
    // Labels to compare with are welcome, but need not be there.
    let labels = run.settings().task.labels();
    let is_known = |label: &String| dataset.manifest().labels.contains(label);
    if options.meds && labels.len() != 1 {
        return Err(Error::NotMeds { problem: "the task is not to predict one label" });
    }
    if options.meds && !labels.iter().all(is_known) {
        return Err(Error::NotMeds { problem: "the dataset does not know the label" });
    }
    dataset.check_hashes(&job.inner(|_| None))?;
    let mut reader = Reader::for_predictions(run, dataset, which)?;
    // Without answers to compare with, it is no test.
    if run.settings().task.has_answers(dataset.manifest()) {
        reader = reader.testing(run, dataset, training)?.of_labels();
    }
    let as_they_are = |rows: RecordBatch| rows;
    let (mut written, file) = write(run, &predictor, &mut reader, options, &out.into(), as_they_are, job)?;
    written.overlap = reader.overlap()?;
    file.finish()?;
    written.unseen = reader.unseen();
    Ok(written)
}

/// Writes the predictions of a run for encounters that are in no dataset. The job is told how many are done.
///
/// # Errors
/// If the run has no model or needs what only a dataset has, an encounter cannot be read, the run knows no
/// code of any of them, the file cannot be written, or the job is stopped.
pub fn score_incoming<'a>(
    run: &Run,
    mut incoming: Incoming<'_>,
    options: TableOptions,
    out: impl Into<Target<'a>>,
    job: &Job<'_, u64>,
) -> Result<Written> {
    options.check()?;
    let predictor = Predictor::of_run(run)?;
    predictor.check_edges(false)?;
    if options.meds {
        return Err(Error::NotMeds { problem: "encounters that are in no dataset have no known label" });
    }
    let out = out.into();
    let (mut written, file) =
        write(run, &predictor, &mut incoming, options, &out, with_missing_subjects, job)?;
    incoming.check()?;
    file.finish()?;
    written.add(incoming.met());
    Ok(written)
}

/// Writes the rows of encounters, as `shape` makes them, to a file that is still to be finished.
fn write(
    run: &Run,
    predictor: &Predictor<'_>,
    encounters: &mut (impl Iterator<Item = Result<Encounter>> + Send),
    options: TableOptions,
    out: &Target<'_>,
    shape: impl Fn(RecordBatch) -> RecordBatch + Sync,
    job: &Job<'_, u64>,
) -> Result<(Written, RowFile)> {
    let is_complete = |encounter: &Encounter| !options.meds || encounter.labels.iter().all(Option::is_some);
    let mut table = run.settings().task.table(run.vocabulary(), options);
    let mut why = match options.why {
        0 => None,
        strongest => Some(WhyColumn::new(Explainer::new(run)?, strongest)),
    };
    let mut file = RowFile::create(out, &with_reasons(&mut why, shape(table.take())).schema())?;
    let mut written = Written::default();
    written.left_out = in_rounds(
        predictor,
        encounters,
        |encounter, _| predictor.can_ask(encounter) && is_complete(encounter),
        |samples| {
            let answers = predictor.answers(samples)?;
            for (sample, logits) in samples.iter().zip(&answers) {
                table.add(sample, logits)?;
            }
            if let Some(why) = &mut why {
                let asked = samples.iter().zip(&answers).map(|(sample, logits)| Asked {
                    sample: *sample,
                    logits,
                    statements: table.statements(sample, logits),
                });
                let before = written.encounters;
                why.add(&asked.collect::<Vec<_>>(), job.stop(), |done| job.tell(before + done as u64))?;
            }
            let batch = with_reasons(&mut why, shape(table.take()));
            file.write(&batch)?;
            written.rows += batch.num_rows() as u64;
            written.encounters += samples.len() as u64;
            job.advance(written.encounters)
        },
    )?;
    Ok((written, file))
}

/// Rows with the reasons for them, if they are wanted.
fn with_reasons(why: &mut Option<WhyColumn<'_>>, rows: RecordBatch) -> RecordBatch {
    match why {
        Some(why) => why.beside(&rows),
        None => rows,
    }
}
