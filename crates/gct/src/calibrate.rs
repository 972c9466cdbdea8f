//! Calibration of a run: maps are fitted to the validation split, never to test, and kept in the run folder,
//! where everything that asks the run finds them.

use serde::Serialize;

use crate::calibration::{Calibration, LabelMap, Map, Method};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::infer::{Predictor, Reader, Training, Which, in_rounds};
use crate::job::Job;
use crate::metric::{Bootstrap, Draws, Predictions, Scored, SubjectRanking};
use crate::question::Question;
use crate::run::Run;
use crate::split::SplitPart;

/// How good the probabilities of a label are, on the encounters that its map was fitted to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quality {
    /// Minus the logarithm of the probability of what happened, in the mean.
    pub log_loss: Option<f64>,
    /// The squared difference of the probability and what happened, in the mean.
    pub brier_score: Option<f64>,
    /// The calibration slope: below 1, the model is too sure.
    pub slope: Option<f64>,
    /// Calibration in the large: below 0, probabilities are too high.
    pub intercept: Option<f64>,
}

impl Quality {
    fn of(examples: &[(f32, bool)], map: impl Fn(f32) -> f32) -> Self {
        let (mut ranking, mut predictions) = (SubjectRanking::default(), Predictions::default());
        for &(logit, positive) in examples {
            let score = map(logit);
            ranking.add(Scored { score, positive, subject: 0 });
            predictions.add(score.into(), positive, 0);
        }
        let bootstrap = Bootstrap { replicates: 0, seed: 0 };
        let [slope, intercept] = ranking.sorted().recalibration(&Draws::new(bootstrap, vec![0]));
        let estimates = predictions.estimates(&bootstrap);
        Quality {
            log_loss: estimates.log_loss.value,
            brier_score: estimates.brier_score.value,
            slope: slope.value,
            intercept: intercept.value,
        }
    }
}

/// How a label was calibrated.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CalibratedLabel {
    /// The label.
    pub label: String,
    /// Validation encounters whose label is known.
    pub encounters: u64,
    /// How many of them have it.
    pub positives: u64,
    /// How good the model's own probabilities are on them.
    pub before: Quality,
    /// How good the calibrated ones are on them.
    pub after: Quality,
}

/// Fits maps to the validation split and keeps them in the run, in place of what was there: from now on,
/// whoever opens the run has calibrated probabilities, unless it is [`Run::raw`]. On another dataset than its
/// own, subjects that the run learned from are left out. The job is told how many encounters are done.
///
/// # Errors
/// If the run does not predict labels, is trained or calibrated by another process, or has no model; if the
/// dataset does not go with it; if one of the two answers is missing in validation, or the probabilities of
/// the model do not rise with what happens there; if the file cannot be written, or the job is stopped. Then
/// nothing is changed.
pub fn run(run: Run, dataset: &Dataset, method: Method, job: &Job<'_, u64>) -> Result<Vec<CalibratedLabel>> {
    let run = run.raw();
    let _lock = run.lock()?;
    let labels = labels(&run)?;
    let examples = examples(&run, dataset, labels.len(), job)?;
    let (mut maps, mut calibrated) = (Vec::new(), Vec::new());
    for (label, examples) in labels.into_iter().zip(&examples) {
        let cannot = |problem| Error::CannotCalibrate { what: format!("the label `{label}`"), problem };
        let map = Map::fit(method, examples).map_err(cannot)?;
        let encounters = examples.len() as u64;
        let positives = examples.iter().filter(|(_, positive)| *positive).count() as u64;
        calibrated.push(CalibratedLabel {
            label: label.clone(),
            encounters,
            positives,
            before: Quality::of(examples, |logit| logit),
            after: Quality::of(examples, |logit| map.logit(logit)),
        });
        maps.push(LabelMap { label, encounters, positives, map });
    }
    let calibration = Calibration::new(dataset.manifest().identity(), run.weights_hash()?, maps);
    run.set_calibration(Some(&calibration))?;
    Ok(calibrated)
}

/// Takes the calibration of a run away; whether there was one.
///
/// # Errors
/// If another process trains or calibrates the run, or the file cannot be removed.
pub fn remove(run: &Run) -> Result<bool> {
    let _lock = run.lock()?;
    run.set_calibration(None)
}

/// The labels that a run predicts.
fn labels(run: &Run) -> Result<Vec<String>> {
    let task = &run.settings().task;
    match task {
        Question::Labels(_) => Ok(task.labels()),
        Question::Edges | Question::HiddenDiagnosis | Question::HiddenCode | Question::NextDiagnoses(_) => {
            Err(Error::CannotCalibrate {
                what: format!("the task `{task}`"),
                problem: "only the probabilities of labels are, each by a map of its own".into(),
            })
        }
    }
}

/// The logits of each label on the validation split, and what happened.
fn examples(
    run: &Run,
    dataset: &Dataset,
    labels: usize,
    job: &Job<'_, u64>,
) -> Result<Vec<Vec<(f32, bool)>>> {
    let predictor = Predictor::of_run(run)?;
    predictor.check_given(dataset)?;
    predictor.question().columns(&dataset.manifest().labels)?;
    dataset.check_hashes(&job.inner(|_| None))?;
    let mut reader = Reader::new(run, dataset, Which::Part(SplitPart::Validation))?;
    if !run.is_of(dataset) {
        reader = reader.testing(run, dataset, Training::LeaveOut)?;
    }
    let (mut examples, mut done) = (vec![Vec::new(); labels], 0);
    in_rounds(
        &predictor,
        &mut reader,
        |encounter, next| predictor.can_test(encounter, next),
        |samples| {
            for (sample, logits) in samples.iter().zip(predictor.answers(samples)?) {
                predictor.question().each_outcome(sample, &logits, |label, logit, truth| {
                    examples[label].push((logit, truth));
                });
            }
            done += samples.len() as u64;
            job.advance(done)
        },
    )?;
    reader.overlap()?;
    Ok(examples)
}
