//! Runs compared on the same encounters: by how much each is better than the first, in every metric, and how
//! sure that is.
//!
//! The replicates of all runs draw the same subjects, so the difference of two runs is taken replicate by
//! replicate (`Replicated`): encounters that are difficult for both cancel out, and a difference is known
//! far better than the two metrics are. Runs are asked one after the other; of each, the replicates are kept.

use std::path::Path;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::calibration::Method;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::incoming::Predictions;
use crate::infer::{Predictor, Reader, TestSet, Which, in_rounds};
use crate::job::Job;
use crate::metric::{Bootstrap, Estimate, Replicated};
use crate::overrides;
use crate::question::{Question, Replicates, Tally};
use crate::record::SubjectId;
use crate::run::Run;
use crate::sample::Sample;

/// A run, and what it is asked about.
pub struct Contender<'a> {
    /// What it is called in the comparison.
    pub name: String,
    /// The run.
    pub run: &'a Run,
    /// Where encounters are from: the same for all.
    pub dataset: &'a Dataset,
}

/// Predictions that another program made for the same encounters: a CSV or Parquet file with the columns
/// `encounter_id`, `predicted_boolean_probability` and, unless there is one label, `label`.
#[derive(Debug, Clone, Copy)]
pub struct Outside<'a> {
    /// What it is called in the comparison.
    pub name: &'a str,
    /// The file.
    pub file: &'a Path,
}

/// What was compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// On which part: `train`, `validation`, `test` or `all`.
    pub split: &'static str,
    /// On how many encounters.
    pub encounters: u64,
    /// Of how many subjects.
    pub subjects: u64,
    /// Replicates of the bootstrap.
    pub replicates: u32,
    /// The reference first, then what is compared with it.
    pub runs: Vec<Compared>,
}

/// A run in a comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// What it is called.
    pub name: String,
    /// Its model; `None` for predictions of another program.
    pub model: Option<&'static str>,
    /// How it is calibrated, if it is.
    pub calibrated: Option<Method>,
    /// The metrics over all answers.
    pub metrics: Vec<ComparedMetric>,
    /// Those of each label, where there are several.
    pub labels: Vec<LabelComparison>,
}

/// The metrics of a label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelComparison {
    /// The label.
    pub label: String,
    /// Its metrics.
    pub metrics: Vec<ComparedMetric>,
}

/// A metric of a run, and by how much it is more than that of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ComparedMetric {
    /// Its name.
    pub metric: &'static str,
    /// Its value, where it is defined.
    pub value: Option<f64>,
    /// Its 95 % interval over subjects.
    pub interval: Option<[f64; 2]>,
    /// The value less that of the reference; `None` for the reference itself.
    pub difference: Option<f64>,
    /// The 95 % interval of the difference.
    pub difference_interval: Option<[f64; 2]>,
    /// The two-sided p value of no difference: see [`Replicated::p`].
    pub p: Option<f64>,
}

impl Comparison {
    /// How many differences have a p value: as many questions were asked of the same encounters.
    pub fn tests(&self) -> usize {
        let of_run = |run: &Compared| {
            let labels = run.labels.iter().flat_map(|label| &label.metrics);
            run.metrics.iter().chain(labels).filter(|metric| metric.p.is_some()).count()
        };
        self.runs.iter().map(of_run).sum()
    }
}

/// Compares runs, and predictions of other programs, with the first run. Runs that predict several labels are
/// compared on those that all of them predict. The job is told how many encounters are done, over all runs.
///
/// # Errors
/// If they were not asked the same about the same encounters: the same labels or task, dataset, split
/// settings and encounters; if a prediction is missing; as [`evaluate::run`](crate::evaluate::run).
pub fn run(
    runs: &[Contender<'_>],
    outside: &[Outside<'_>],
    test_set: impl Into<TestSet>,
    bootstrap: Bootstrap,
    job: &Job<'_, u64>,
) -> Result<Comparison> {
    let test_set = test_set.into();
    let Some((reference, others)) = runs.split_first() else {
        return Err(Error::setting("runs", 0, "one or more"));
    };
    let asked = Asked::new(runs, outside)?;
    others.iter().try_for_each(|other| check_same(reference, other, test_set.which))?;
    let predictions = (outside.iter())
        .map(|outside| Predictions::open(outside.file, &asked.labels, job))
        .collect::<Result<Vec<_>>>()?;
    let mut told: Vec<Compared> = Vec::new();
    let (mut first, mut done): (Option<(Encounters, Vec<Replicates>)>, u64) = (None, 0);
    for one in runs {
        let before = done;
        let job = job.inner(|now| Some(before + now));
        let (encounters, tally) = asked.ask(one, test_set, !predictions.is_empty(), &job)?;
        if let Some((expected, _)) = &first {
            encounters.check(expected).map_err(|problem| not_comparable(reference, &one.name, problem))?;
        }
        done += encounters.count;
        let measured = tally.replicated(bootstrap);
        let (model, calibrated) = (one.run.settings().model.name(), one.run.calibration()?);
        told.push(Compared {
            model: Some(model),
            calibrated: calibrated.map(|calibration| calibration.method()),
            ..compared(&one.name, &measured, first.as_ref().map(|(_, reference)| reference.as_slice()))
        });
        first.get_or_insert((encounters, measured));
    }
    let (encounters, measured) = first.expect("there is a first run");
    for (outside, predictions) in outside.iter().zip(&predictions) {
        let tally = encounters.tally(&asked, predictions);
        let tally = tally.map_err(|problem| not_comparable(reference, outside.name, problem))?;
        told.push(compared(outside.name, &tally.replicated(bootstrap), Some(&measured)));
    }
    Ok(Comparison {
        split: test_set.which.name(),
        encounters: encounters.count,
        subjects: encounters.subjects,
        replicates: bootstrap.replicates,
        runs: told,
    })
}

fn not_comparable(reference: &Contender<'_>, run: &str, problem: String) -> Error {
    Error::NotComparable { reference: reference.name.clone(), run: run.into(), problem }
}

/// Refuses a run that was not asked about the encounters of the reference.
fn check_same(reference: &Contender<'_>, other: &Contender<'_>, which: Which) -> Result<()> {
    let differ = |problem: String| Err(not_comparable(reference, &other.name, problem));
    if reference.dataset.manifest().identity() != other.dataset.manifest().identity() {
        let [theirs, own] = [other, reference].map(|one| one.dataset.path().display());
        return differ(format!("its dataset {theirs} does not hold the encounters of {own}"));
    }
    let [own, theirs] = [reference, other].map(|one| &one.run.settings().split);
    match overrides::difference(theirs, own) {
        Some(difference) if which != Which::All => differ(difference.in_words(|name, found, expected| {
            format!("its split differs: `split.{name}` is {found} instead of {expected}")
        })),
        Some(_) | None => Ok(()),
    }
}

/// What is asked of all.
struct Asked {
    question: Question,
    /// The labels that all of them predict; none if labels are not what is asked.
    labels: Vec<String>,
}

impl Asked {
    fn new(runs: &[Contender<'_>], outside: &[Outside<'_>]) -> Result<Self> {
        let reference = &runs[0];
        let question = &reference.run.settings().task;
        let mut labels = question.labels();
        for other in runs {
            let task = &other.run.settings().task;
            labels.retain(|label| task.labels().contains(label));
            if task.kind() != question.kind() || labels.is_empty() != question.labels().is_empty() {
                let problem = format!("it predicts {task}, not {question}");
                return Err(not_comparable(reference, &other.name, problem));
            }
        }
        match outside.first().filter(|_| labels.is_empty()) {
            Some(outside) => {
                let problem =
                    format!("predictions from a file are of labels, and the runs predict {question}");
                Err(not_comparable(reference, outside.name, problem))
            }
            None => Ok(Asked { question: question.clone(), labels }),
        }
    }

    fn tally(&self) -> Tally {
        match self.labels.is_empty() {
            true => self.question.tally(),
            false => Tally::of(&self.question, self.labels.clone()),
        }
    }

    /// Asks a run; `keep` the truths, for predictions that come from elsewhere.
    fn ask(
        &self,
        one: &Contender<'_>,
        TestSet { which, training }: TestSet,
        keep: bool,
        job: &Job<'_, u64>,
    ) -> Result<(Encounters, Tally)> {
        let Contender { run, dataset, .. } = one;
        let (question, predictor) = (&run.settings().task, Predictor::of_run(run)?);
        predictor.model().check_data(dataset.manifest().with_edges > 0)?;
        question.columns(&dataset.manifest().labels)?;
        dataset.check_hashes(&job.inner(|_| None))?;
        let mut reader = Reader::new(run, dataset, which)?.testing(run, dataset, training)?;
        let (mut asking, mut done) = (Asking::new(self, run, keep), 0);
        in_rounds(
            &predictor,
            &mut reader,
            |encounter, next| predictor.can_test(encounter, next),
            |samples| {
                for some in samples.chunks(predictor.at_once()) {
                    for (sample, logits) in some.iter().zip(predictor.answers(some)?) {
                        asking.add(sample, &logits);
                    }
                }
                done += samples.len() as u64;
                job.advance(done)
            },
        )?;
        reader.overlap()?;
        let Asking { mut encounters, tally, .. } = asking;
        encounters.subjects = tally.subjects().into();
        match encounters.count {
            0 => Err(question.no_answers(which.name())),
            _ => Ok((encounters, tally)),
        }
    }
}

/// A run being asked.
struct Asking<'a> {
    run: &'a Run,
    /// For each label of the run, which of those that are compared it is.
    shared: Vec<Option<usize>>,
    encounters: Encounters,
    tally: Tally,
}

impl<'a> Asking<'a> {
    fn new(asked: &Asked, run: &'a Run, keep: bool) -> Self {
        let shared = |label: &String| asked.labels.iter().position(|shared| shared == label);
        let shared = run.settings().task.labels().iter().map(shared).collect();
        Asking { run, shared, encounters: Encounters::new(keep), tally: asked.tally() }
    }

    /// Adds what the run said of a sample, and notes what is true.
    fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        let Asking { run, shared, encounters, tally } = self;
        let (question, encounter) = (&run.settings().task, sample.encounter());
        let mut truths = Vec::new();
        match question {
            Question::Edges => {
                question.each_outcome(sample, logits, |_, _, truth| truths.push((0, truth)));
                tally.add(sample, logits);
            }
            Question::Labels(_) => {
                let mut known = Vec::new();
                question.each_outcome(sample, logits, |label, logit, truth| {
                    known.extend(shared[label].map(|label| (label, logit, truth)));
                });
                if known.is_empty() {
                    return;
                }
                known.sort_unstable_by_key(|(label, ..)| *label);
                let subject = tally.subject(&encounter.subject);
                for (label, logit, truth) in known {
                    tally.outcome(label, logit, truth, subject);
                    truths.push((label, truth));
                }
            }
            Question::HiddenDiagnosis => {
                let hidden = sample.hidden_diagnosis().expect("a diagnosis is hidden to be guessed");
                encounters.hash.update(run.vocabulary().diagnosis[hidden as usize].code.as_bytes());
                tally.add(sample, logits);
            }
            Question::HiddenCode => {
                let (kind, id) = sample.hidden_code().expect("a code is hidden to be guessed");
                encounters.hash.update(kind.name());
                encounters.hash.update(run.vocabulary()[kind][id as usize].code.as_bytes());
                tally.add(sample, logits);
            }
            Question::NextDiagnoses(next) => {
                for id in next.truth(sample).into_iter().flatten() {
                    encounters.hash.update(run.vocabulary().diagnosis[id as usize].code.as_bytes());
                }
                tally.add(sample, logits);
            }
        }
        encounters.add(encounter.id.as_str(), &encounter.subject, truths);
    }
}

/// What was asked, in order: to be sure that another run was asked the same.
struct Encounters {
    count: u64,
    subjects: u64,
    /// Of identifiers and truths.
    hash: Sha256,
    kept: Option<Vec<Kept>>,
}

/// An encounter with what is true of its labels.
struct Kept {
    id: String,
    subject: SubjectId,
    truths: Vec<(usize, bool)>,
}

impl Encounters {
    fn new(keep: bool) -> Self {
        Encounters { count: 0, subjects: 0, hash: Sha256::new(), kept: keep.then(Vec::new) }
    }

    fn add(&mut self, id: &str, subject: &SubjectId, truths: Vec<(usize, bool)>) {
        self.count += 1;
        self.hash.update((id.len() as u64).to_be_bytes());
        self.hash.update(id);
        self.hash.update((truths.len() as u64).to_be_bytes());
        let number = |(label, truth): &(usize, bool)| (2 * *label as u32 + u32::from(*truth)).to_be_bytes();
        self.hash.update(truths.iter().flat_map(number).collect::<Vec<u8>>());
        if let Some(kept) = &mut self.kept {
            kept.push(Kept { id: id.into(), subject: subject.clone(), truths });
        }
    }

    /// Refuses others.
    fn check(&self, expected: &Encounters) -> Result<(), String> {
        let part = [self, expected].map(|encounters| encounters.count);
        match part {
            [own, theirs] if own != theirs => {
                Err(format!("it can be asked about {own} of these encounters, and that one about {theirs}"))
            }
            _ if self.hash.clone().finalize() != expected.hash.clone().finalize() => {
                Err("it was asked about other encounters, or other answers are true".into())
            }
            _ => Ok(()),
        }
    }

    /// What predictions from elsewhere say of the same encounters.
    fn tally(&self, asked: &Asked, predictions: &Predictions) -> Result<Tally, String> {
        let (mut tally, mut missing, mut all) = (asked.tally(), 0u64, 0u64);
        for Kept { id, subject, truths } in self.kept.iter().flatten() {
            let subject = tally.subject(subject);
            for (label, truth) in truths {
                all += 1;
                match predictions.logit(id, *label) {
                    Some(logit) => tally.outcome(*label, logit, *truth, subject),
                    None => missing += 1,
                }
            }
        }
        match missing {
            0 => Ok(tally),
            _ => Err(format!("it lacks {missing} of the {all} predictions that are compared")),
        }
    }
}

/// What is told of a run, beside the reference unless it is that.
fn compared(name: &str, own: &[Replicates], reference: Option<&[Replicates]>) -> Compared {
    let metrics = |at: usize| metrics(&own[at], reference.map(|reference| &reference[at]));
    let label = |at: usize| {
        let label = own[at].series.clone().expect("all but the first are of a label");
        LabelComparison { label, metrics: metrics(at) }
    };
    Compared {
        name: name.into(),
        model: None,
        calibrated: None,
        metrics: metrics(0),
        labels: (1..own.len()).map(label).collect(),
    }
}

fn metrics(own: &Replicates, reference: Option<&Replicates>) -> Vec<ComparedMetric> {
    let metric = |(at, metric): (usize, &Replicated)| {
        let Estimate { value, interval } = metric.estimate(&own.draws);
        let reference = reference.map(|reference| &reference.metrics[at]);
        let difference = reference.map(|reference| metric.minus(reference, &own.draws));
        ComparedMetric {
            metric: metric.name,
            value,
            interval,
            difference: difference.and_then(|difference| difference.value),
            difference_interval: difference.and_then(|difference| difference.interval),
            p: reference.and_then(|reference| metric.p(reference, &own.draws)),
        }
    };
    own.metrics.iter().enumerate().map(metric).collect()
}
