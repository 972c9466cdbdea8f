//! Predictions as Parquet. Labels have the column names of the MEDS prediction schema.
//!
//! | task | one row per | columns beside `subject_id`, `encounter_id`, `prediction_time` |
//! |---|---|---|
//! | labels | encounter and label | `label`, `boolean_value`, `predicted_boolean_value`, `predicted_boolean_probability` |
//! | `masked_diagnosis` | encounter and guess | `hidden_diagnosis`, `rank`, `predicted_diagnosis`, `probability` |
//! | `graph_reconstruction` | encounter and pair | `cause_kind`, `cause`, `effect_kind`, `effect`, `boolean_value`, `probability` |
//!
//! As MEDS, a table has the columns of that schema and no other: subjects are integers, one label is known for every row.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, UInt32Builder,
};
use arrow_array::{ArrayRef, Float32Array, RecordBatch};

use super::{Written, largest, probabilities, probability};
use crate::dataset::{Dataset, TableFile};
use crate::error::{Error, Result};
use crate::evaluate::pairs;
use crate::files::Overwrite;
use crate::graph;
use crate::infer::{Asker, Reader, TestSet, in_rounds};
use crate::record::{CodeKind, Encounter};
use crate::run::Run;
use crate::task::Task;

/// What is written of a prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The probability above which a label is predicted.
    pub threshold: f64,
    /// How many diagnoses are guessed.
    pub top: usize,
    /// The least probability of a pair that is written.
    pub min_probability: f64,
    /// Whether the columns are those of MEDS, and no other.
    pub meds: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { threshold: 0.5, top: 10, min_probability: 0.5, meds: false }
    }
}

impl Options {
    fn check(&self) -> Result<()> {
        for (name, value) in [("threshold", self.threshold), ("min_probability", self.min_probability)] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::setting(name, value, "a number from 0 to 1"));
            }
        }
        if self.top == 0 {
            return Err(Error::setting("top", self.top, "a whole number from 1"));
        }
        Ok(())
    }
}

/// Writes the predictions of a run for the encounters of a dataset; `progress` hears how many are done, and can end it with an error.
///
/// # Errors
/// If the run has no model, the dataset does not go with it or cannot be read, or the file cannot be written.
pub fn score(
    run: &Run,
    dataset: &Dataset,
    test_set: impl Into<TestSet>,
    options: Options,
    out: (&Path, Overwrite),
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<Written> {
    options.check()?;
    let (TestSet { which, training }, model) = (test_set.into(), run.model()?);
    if model.config().needs_edges() {
        model.check_data(dataset.manifest().with_edges > 0)?;
    }
    // Labels to compare with are welcome, but need not be there.
    let labels = run.settings().task.labels();
    let place = |label: &String| dataset.manifest().labels.iter().position(|known| known == label);
    let columns: Vec<Option<usize>> = labels.iter().map(place).collect();
    if options.meds && labels.len() != 1 {
        return Err(Error::NotMeds { problem: "the task is not to predict one label" });
    }
    let truth = columns.first().copied().flatten();
    if options.meds && truth.is_none() {
        return Err(Error::NotMeds { problem: "the dataset does not know the label" });
    }
    let is_complete = |encounter: &Encounter| {
        !options.meds || truth.is_some_and(|column| encounter.labels[column].is_some())
    };
    let asker = Asker::new(&model, run.view());
    let mut reader = Reader::for_predictions(run, dataset, which)?;
    // Without answers to compare with, it is no test.
    if has_answers(run, dataset, &columns) {
        let labels = columns.iter().flatten().copied().collect();
        reader = reader.testing(run, dataset, training)?.of_labels(labels);
    }
    let mut rows = Rows::new(run, &labels, columns, options);
    let mut file = TableFile::create(out.0, out.1, rows.take().schema())?;
    let mut written = Written::default();
    written.left_out = in_rounds(
        &mut reader,
        |encounter| asker.can_ask(encounter) && is_complete(encounter),
        |encounters| {
            for (encounter, answer) in encounters.iter().zip(asker.answers(encounters)?) {
                rows.add(encounter, &asker, &answer)?;
            }
            let batch = rows.take();
            file.write(&batch)?;
            written.rows += batch.num_rows() as u64;
            written.encounters += encounters.len() as u64;
            progress(written.encounters)
        },
    )?;
    written.overlap = reader.overlap()?;
    file.finish()?;
    written.unseen = reader.unseen();
    Ok(written)
}

/// Whether the table will hold true answers beside the predictions.
fn has_answers(run: &Run, dataset: &Dataset, columns: &[Option<usize>]) -> bool {
    match run.settings().task {
        Task::GraphReconstruction => dataset.manifest().with_edges > 0,
        Task::MaskedDiagnosis => true,
        _ => columns.iter().any(Option::is_some),
    }
}

/// Rows that are not yet written.
struct Rows<'a> {
    run: &'a Run,
    labels: &'a [String],
    columns: Vec<Option<usize>>,
    options: Options,
    subjects: StringBuilder,
    numbers: Int64Builder,
    encounters: StringBuilder,
    times: TimestampMicrosecondBuilder,
    /// Columns of text, of which a task uses as many as it needs.
    texts: [StringBuilder; 4],
    truths: BooleanBuilder,
    decisions: BooleanBuilder,
    ranks: UInt32Builder,
    probabilities: Float64Builder,
}

impl<'a> Rows<'a> {
    fn new(run: &'a Run, labels: &'a [String], columns: Vec<Option<usize>>, options: Options) -> Self {
        Rows {
            run,
            labels,
            columns,
            options,
            subjects: StringBuilder::new(),
            numbers: Int64Builder::new(),
            encounters: StringBuilder::new(),
            times: TimestampMicrosecondBuilder::new(),
            texts: Default::default(),
            truths: BooleanBuilder::new(),
            decisions: BooleanBuilder::new(),
            ranks: UInt32Builder::new(),
            probabilities: Float64Builder::new(),
        }
    }

    fn begin(&mut self, encounter: &Encounter, probability: f64) {
        self.subjects.append_value(encounter.subject.as_str());
        self.encounters.append_value(encounter.id.as_str());
        self.times.append_option(encounter.prediction_time.or(encounter.start));
        self.probabilities.append_value(probability);
    }

    fn add(&mut self, encounter: &Encounter, asker: &Asker<'_>, answer: &[f32]) -> Result<()> {
        if self.options.meds {
            let number = encounter.subject.as_str().parse();
            let number =
                number.map_err(|_| Error::NotMeds { problem: "a subject's identifier is not an integer" })?;
            self.numbers.append_value(number);
            if encounter.prediction_time.or(encounter.start).is_none() {
                return Err(Error::NotMeds { problem: "the time of an encounter is not known" });
            }
        }
        match asker.task() {
            Task::MaskedDiagnosis => self.add_guesses(encounter, asker.hidden(encounter), answer),
            Task::GraphReconstruction => self.add_pairs(encounter, answer),
            _ => self.add_labels(encounter, answer),
        }
        Ok(())
    }

    fn add_labels(&mut self, encounter: &Encounter, answer: &[f32]) {
        for (label, logit) in answer.iter().enumerate() {
            let probability = probability(*logit);
            self.begin(encounter, probability);
            self.texts[0].append_value(&self.labels[label]);
            self.truths.append_option(self.columns[label].and_then(|column| encounter.labels[column]));
            self.decisions.append_value(probability > self.options.threshold);
        }
    }

    fn add_guesses(&mut self, encounter: &Encounter, hidden: u32, answer: &[f32]) {
        let (run, shares) = (self.run, probabilities(answer));
        let name = |id: usize| run.vocabulary().diagnosis[id].code.as_str();
        for (rank, guess) in (1..).zip(largest(&shares, self.options.top)) {
            self.begin(encounter, shares[guess]);
            self.texts[0].append_value(name(hidden as usize));
            self.texts[1].append_value(name(guess));
            self.ranks.append_value(rank);
        }
    }

    /// The pairs that may be connected: a visit and a diagnosis, a diagnosis and a treatment, a treatment and a lab.
    fn add_pairs(&mut self, encounter: &Encounter, answer: &[f32]) {
        let nodes = graph::Nodes::of(encounter);
        let adjacency = graph::adjacency(encounter);
        let least = self.options.min_probability;
        // Few pairs are probable, and a logit is compared faster than it becomes a probability.
        let least_logit = (least.ln() - (-least).ln_1p()) as f32 - 1e-3;
        for ((i, j), logit) in pairs(nodes.len()).zip(answer) {
            if *logit < least_logit || probability(*logit) < least || !nodes.allowed(i, j) {
                continue;
            }
            let probability = probability(*logit);
            self.begin(encounter, probability);
            for (at, node) in [i, j].into_iter().enumerate() {
                let (kind, code) = match code_of(&nodes, encounter, node) {
                    Some((kind, id)) => (kind.name(), self.run.vocabulary()[kind][id as usize].code.as_str()),
                    None => ("visit", "visit"),
                };
                self.texts[2 * at].append_value(kind);
                self.texts[2 * at + 1].append_value(code);
            }
            self.truths.append_option(adjacency.as_ref().map(|edges| edges[i * nodes.len() + j]));
        }
    }

    /// All rows since the last time.
    fn take(&mut self) -> RecordBatch {
        let columns = if self.options.meds { self.meds_columns() } else { self.columns() };
        RecordBatch::try_from_iter_with_nullable(columns).expect("the columns of a table are of one length")
    }

    fn meds_columns(&mut self) -> Vec<(&'static str, ArrayRef, bool)> {
        self.subjects = StringBuilder::new();
        self.encounters = StringBuilder::new();
        self.texts = Default::default();
        let probabilities = self.probabilities.finish();
        let probabilities: Float32Array = probabilities.values().iter().map(|p| Some(*p as f32)).collect();
        vec![
            ("subject_id", Arc::new(self.numbers.finish()), false),
            ("prediction_time", Arc::new(self.times.finish()), false),
            ("boolean_value", Arc::new(self.truths.finish()), false),
            ("predicted_boolean_value", Arc::new(self.decisions.finish()), false),
            ("predicted_boolean_probability", Arc::new(probabilities), false),
        ]
    }

    fn columns(&mut self) -> Vec<(&'static str, ArrayRef, bool)> {
        let [first, second, third, fourth] = &mut self.texts;
        let text = |of: &mut StringBuilder| -> ArrayRef { Arc::new(of.finish()) };
        let mut columns: Vec<(&'static str, ArrayRef, bool)> = vec![
            ("subject_id", text(&mut self.subjects), false),
            ("encounter_id", text(&mut self.encounters), false),
            ("prediction_time", Arc::new(self.times.finish()), true),
        ];
        let probabilities: ArrayRef = Arc::new(self.probabilities.finish());
        match self.run.settings().task {
            Task::MaskedDiagnosis => columns.extend([
                ("hidden_diagnosis", text(first), false),
                ("rank", Arc::new(self.ranks.finish()) as ArrayRef, false),
                ("predicted_diagnosis", text(second), false),
                ("probability", probabilities, false),
            ]),
            Task::GraphReconstruction => columns.extend([
                ("cause_kind", text(first), false),
                ("cause", text(second), false),
                ("effect_kind", text(third), false),
                ("effect", text(fourth), false),
                ("boolean_value", Arc::new(self.truths.finish()) as ArrayRef, true),
                ("probability", probabilities, false),
            ]),
            _ => columns.extend([
                ("label", text(first), false),
                ("boolean_value", Arc::new(self.truths.finish()) as ArrayRef, true),
                ("predicted_boolean_value", Arc::new(self.decisions.finish()) as ArrayRef, false),
                ("predicted_boolean_probability", probabilities, false),
            ]),
        }
        columns
    }
}

/// The code of a node; `None` for the visit.
pub(super) fn code_of(nodes: &graph::Nodes, encounter: &Encounter, node: usize) -> Option<(CodeKind, u32)> {
    let kind = CodeKind::ALL.into_iter().find(|kind| nodes.range(*kind).contains(&node))?;
    Some((kind, encounter.codes[kind][node - nodes.range(kind).start]))
}
