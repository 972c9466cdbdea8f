//! Predictions as Parquet. Labels have the column names of the MEDS prediction schema.
//!
//! | task | one row per | columns beside `subject_id`, `encounter_id`, `prediction_time` |
//! |---|---|---|
//! | labels | encounter and label | `label`, `boolean_value`, `predicted_boolean_value`, `predicted_boolean_probability` |
//! | `masked_diagnosis` | encounter and guess | `hidden_diagnosis`, `rank`, `predicted_diagnosis`, `probability` |
//! | `graph_reconstruction` | encounter and pair | `cause_kind`, `cause`, `effect_kind`, `effect`, `boolean_value`, `probability` |
//!
//! As MEDS, a table has the columns of that schema and no other: subjects are integers, one label is known
//! for every row.

use std::path::Path;

use super::Written;
use crate::dataset::{Dataset, TableFile};
use crate::error::{Error, Result};
use crate::files::Overwrite;
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
pub fn score(
    run: &Run,
    dataset: &Dataset,
    test_set: impl Into<TestSet>,
    options: TableOptions,
    out: (&Path, Overwrite),
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
    let is_complete = |encounter: &Encounter| !options.meds || encounter.labels.iter().all(Option::is_some);
    dataset.check_hashes(&job.inner(|_| None))?;
    let mut reader = Reader::for_predictions(run, dataset, which)?;
    // Without answers to compare with, it is no test.
    if run.settings().task.has_answers(dataset.manifest()) {
        reader = reader.testing(run, dataset, training)?.of_labels();
    }
    let mut table = run.settings().task.table(run.vocabulary(), options);
    let mut file = TableFile::create(out.0, out.1, table.take().schema())?;
    let mut written = Written::default();
    written.left_out = in_rounds(
        &mut reader,
        |encounter| predictor.can_ask(encounter) && is_complete(encounter),
        |encounters| {
            let samples = predictor.samples(encounters);
            for (sample, logits) in samples.iter().zip(predictor.answers(&samples)?) {
                table.add(sample, &logits)?;
            }
            let batch = table.take();
            file.write(&batch)?;
            written.rows += batch.num_rows() as u64;
            written.encounters += encounters.len() as u64;
            job.advance(written.encounters)
        },
    )?;
    written.overlap = reader.overlap()?;
    file.finish()?;
    written.unseen = reader.unseen();
    Ok(written)
}
