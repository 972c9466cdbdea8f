//! Whether labels of the visit are true: one logit for each, from the visit.

use std::fmt;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, Float32Array};
use gct_kernels::engine::Engine;

use super::answer::{Answer, Statement, probability};
use super::head::MOST_LABELS;
use super::table::{Column, Keys, TableOptions};
use crate::batch::Example;
use crate::error::{Error, Result};
use crate::sample::Sample;

pub(super) const DIAGNOSIS_TREATMENT: &str = "diagnosis_treatment";
pub(super) const READMISSION: &str = "readmission";
pub(super) const MORTALITY: &str = "mortality";

/// Which labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Labels {
    /// The two of the synthetic data that say which diagnosis led to a treatment.
    DiagnosisTreatment,
    /// Whether the patient comes back.
    Readmission,
    /// Whether the patient dies.
    Mortality,
    /// Any label of the dataset.
    Named(String),
    /// Several labels of the dataset, in this order. An encounter with some of them is asked about those.
    Several(Vec<String>),
}

impl Labels {
    /// Their names in a dataset.
    pub fn names(&self) -> Vec<String> {
        match self {
            Labels::DiagnosisTreatment => vec!["d1_m1".into(), "d2_m1".into()],
            Labels::Readmission => vec![READMISSION.into()],
            Labels::Mortality => vec![MORTALITY.into()],
            Labels::Named(label) => vec![label.clone()],
            Labels::Several(labels) => labels.clone(),
        }
    }
}

impl Labels {
    /// The labels of a list with commas between them: `died,readmission`. A list of one is that label.
    pub(super) fn of_list(list: &str) -> Result<Self> {
        let names: Vec<String> = list.split(',').map(|name| name.trim().to_owned()).collect();
        let is_repeated = |at: usize| names[..at].contains(&names[at]);
        if names.iter().any(String::is_empty) || (0..names.len()).any(is_repeated) {
            let allowed = "labels of the dataset with commas between them, each once: labels:NAME,NAME";
            return Err(Error::setting("task", format!("labels:{list}"), allowed));
        }
        match <[String; 1]>::try_from(names) {
            Ok([name]) => Ok(Labels::Named(name)),
            Err(names) => Ok(Labels::Several(names)),
        }
    }
}

impl fmt::Display for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Labels::DiagnosisTreatment => f.write_str(DIAGNOSIS_TREATMENT),
            Labels::Readmission => f.write_str(READMISSION),
            Labels::Mortality => f.write_str(MORTALITY),
            Labels::Named(label) => write!(f, "label:{label}"),
            Labels::Several(labels) => write!(f, "labels:{}", labels.join(",")),
        }
    }
}

/// Refuses a number of labels that makes no sense.
pub(super) fn check(count: usize) -> Result<()> {
    if (1..=MOST_LABELS).contains(&count) {
        return Ok(());
    }
    Err(Error::setting("head.count", count, &format!("a whole number from 1 to {MOST_LABELS}")))
}

/// How many labels of these examples are known: the terms of the loss.
pub(super) fn terms(examples: &[Example]) -> usize {
    examples.iter().flat_map(|example| &example.labels).flatten().count()
}

/// The sum of their cross entropies, of `count` labels each; `share` is what each counts in the gradient, and
/// `positives` how many times as much as a negative.
pub(super) fn loss<E: Engine>(
    count: usize,
    engine: &mut E,
    logits: &E::Matrix,
    examples: &[Example],
    smoothing: f64,
    positives: &[f64],
    share: f64,
) -> f64 {
    let has_all = |example: &Example| example.labels.len() == count;
    assert!(examples.iter().all(has_all), "all labels of every example");
    let labels = examples.iter().flat_map(|example| &example.labels).copied();
    engine.label_loss(logits, labels, smoothing, positives, share)
}

/// Calls `each` with every label that is known: its position, its logit, and the truth.
pub(super) fn each_outcome(sample: &Sample<'_>, logits: &[f32], mut each: impl FnMut(usize, f32, bool)) {
    for (label, (truth, logit)) in sample.encounter().labels.iter().zip(logits).enumerate() {
        if let Some(truth) = truth {
            each(label, *logit, *truth);
        }
    }
}

/// How probable each label is.
pub(super) fn probabilities(logits: &[f32]) -> Vec<f64> {
    logits.iter().map(|logit| probability(*logit)).collect()
}

/// What is said of a sample: each label, in order.
pub(super) fn statements(logits: &[f32]) -> Vec<Statement> {
    (0..logits.len()).map(Statement::Label).collect()
}

/// What logits say of each label.
pub(super) fn answers(labels: &Labels, sample: &Sample<'_>, logits: &[f32]) -> Vec<Answer> {
    let truths = &sample.encounter().labels;
    let answer = |(at, (label, logit)): (usize, (String, &f32))| Answer {
        what: label,
        probability: probability(*logit),
        truth: truths.get(at).copied().flatten(),
    };
    labels.names().into_iter().zip(logits).enumerate().map(answer).collect()
}

/// A row per encounter and label, with the column names of the MEDS prediction schema.
pub(crate) struct Table {
    names: Vec<String>,
    options: TableOptions,
    keys: Keys,
    /// Subjects as MEDS has them.
    subject_numbers: Int64Builder,
    labels: StringBuilder,
    truths: BooleanBuilder,
    decisions: BooleanBuilder,
    probabilities: Float64Builder,
}

impl Table {
    pub(super) fn new(labels: &Labels, options: TableOptions) -> Self {
        Table {
            names: labels.names(),
            options,
            keys: Keys::default(),
            subject_numbers: Int64Builder::new(),
            labels: StringBuilder::new(),
            truths: BooleanBuilder::new(),
            decisions: BooleanBuilder::new(),
            probabilities: Float64Builder::new(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) -> Result<()> {
        if self.options.meds {
            self.subject_numbers.append_value(meds_subject(sample)?);
        }
        for answer in self.names.iter().zip(&sample.encounter().labels).zip(logits) {
            let ((label, truth), logit) = answer;
            let probability = probability(*logit);
            self.keys.add(sample);
            self.labels.append_value(label);
            self.truths.append_option(*truth);
            self.decisions.append_value(probability > self.options.threshold);
            self.probabilities.append_value(probability);
        }
        Ok(())
    }

    /// What each row of a sample says.
    pub(super) fn statements(&self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Statement> {
        let rows = self.names.len().min(sample.encounter().labels.len());
        statements(&logits[..logits.len().min(rows)])
    }

    pub(super) fn take(&mut self) -> Vec<Column> {
        if self.options.meds {
            return self.take_meds();
        }
        let mut columns = self.keys.take();
        columns.extend::<[Column; 4]>([
            ("label", Arc::new(self.labels.finish()), false),
            ("boolean_value", Arc::new(self.truths.finish()), true),
            ("predicted_boolean_value", Arc::new(self.decisions.finish()), false),
            ("predicted_boolean_probability", Arc::new(self.probabilities.finish()), false),
        ]);
        columns
    }

    /// The columns of that schema and no other.
    fn take_meds(&mut self) -> Vec<Column> {
        let times: ArrayRef = self.keys.take_times();
        self.labels = StringBuilder::new();
        let probabilities = self.probabilities.finish();
        let probabilities: Float32Array = probabilities.values().iter().map(|p| Some(*p as f32)).collect();
        vec![
            ("subject_id", Arc::new(self.subject_numbers.finish()), false),
            ("prediction_time", times, false),
            ("boolean_value", Arc::new(self.truths.finish()), false),
            ("predicted_boolean_value", Arc::new(self.decisions.finish()), false),
            ("predicted_boolean_probability", Arc::new(probabilities), false),
        ]
    }
}

/// The subject of a sample as MEDS has it, if the sample also has a time.
fn meds_subject(sample: &Sample<'_>) -> Result<i64> {
    let number = sample.encounter().subject.as_str().parse();
    let number =
        number.map_err(|_| Error::NotMeds { problem: "a subject's identifier is not an integer" })?;
    match sample.time() {
        Some(_) => Ok(number),
        None => Err(Error::NotMeds { problem: "the time of an encounter is not known" }),
    }
}
