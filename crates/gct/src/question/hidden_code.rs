//! Which code is hidden, of any kind but context: as with a hidden diagnosis, but the code may be a treatment
//! or a lab too. Models learn such things without a label, so it is what to begin with where labels are few.
//!
//! The head has a logit for each diagnosis, treatment and lab of the vocabulary, and learns cross entropy
//! over all of them. The kind of the hidden code is known when the question is asked: answers are over the
//! codes of that kind, which are the learned probabilities given the kind.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt32Builder};
use gct_kernels::engine::Engine;

use super::Hide;
use super::answer::{Prediction, Statement, largest, softmax};
use super::hidden_diagnosis::{self, hidden, hidden_code, ranked};
use super::table::{Column, Keys, TableOptions};
use crate::batch::{EmbeddingRows, Example};
use crate::graph::NodeKind;
use crate::metric::{Bootstrap, Draws, Means, Replicated, Scores};
use crate::record::{CodeKind, Encounter, PerKind, Vocabulary};
use crate::sample::Sample;

pub(super) const MASKED_CODE: &str = "masked_code";

/// How many codes of an encounter may be hidden.
pub(super) fn candidates(encounter: &Encounter) -> usize {
    CodeKind::OF_PAPER.iter().map(|kind| encounter.codes[*kind].len()).sum()
}

/// A sample of an encounter with one of its codes hidden.
///
/// # Panics
/// If it has none that may be hidden.
pub(super) fn hiding<'a>(sample: Sample<'a>, hide: Hide) -> Sample<'a> {
    let encounter = sample.encounter();
    let mut position = hide.position(encounter, candidates(encounter));
    for kind in CodeKind::OF_PAPER {
        match position.checked_sub(encounter.codes[kind].len()) {
            None => return sample.hiding_code(kind, position),
            Some(rest) => position = rest,
        }
    }
    panic!("a code that is there is hidden")
}

/// The logits of the codes of a kind among those of all codes, which are in the order of the embedding.
fn classes(rows: EmbeddingRows, kind: CodeKind) -> Range<usize> {
    let first = (rows.code(kind, 0) - rows.code(CodeKind::Diagnosis, 0)) as usize;
    first..first + rows.codes(kind)
}

/// How many codes can be the answer, of all kinds.
pub(super) fn count(rows: EmbeddingRows) -> usize {
    CodeKind::OF_PAPER.iter().map(|kind| rows.codes(*kind)).sum()
}

/// The logits of the codes that the hidden one of an example can be: those of its kind.
pub(super) fn of_kind(rows: EmbeddingRows, example: &Example) -> Range<usize> {
    match example.visit.ranges.locate(hidden(example).0).0 {
        NodeKind::Code(kind) => classes(rows, kind),
        NodeKind::Visit => unreachable!("the visit is never hidden"),
    }
}

/// The sum of cross entropies of the hidden codes over all codes; `share` is what each counts in the
/// gradient.
pub(super) fn batch_loss<E: Engine>(
    engine: &mut E,
    logits: &E::Matrix,
    (examples, rows): (&[Example], EmbeddingRows),
    smoothing: f64,
    share: f64,
) -> f64 {
    let class = |example: &Example| of_kind(rows, example).start + hidden(example).1 as usize;
    engine.class_loss(logits, examples.iter().map(class), smoothing, share)
}

/// Right guesses and losses, by subject, and right guesses of each kind.
#[derive(Default)]
pub(super) struct Tally {
    all: hidden_diagnosis::Tally,
    right: PerKind<Means>,
}

/// The metric of the guesses of a kind.
fn accuracy_of(kind: CodeKind) -> &'static str {
    match kind {
        CodeKind::Context => unreachable!("context is never hidden"),
        CodeKind::Diagnosis => "accuracy_diagnosis",
        CodeKind::Treatment => "accuracy_treatment",
        CodeKind::Lab => "accuracy_lab",
    }
}

impl Tally {
    /// Adds whether the guess of a code of this kind is right, and its loss.
    pub(super) fn add(&mut self, kind: CodeKind, is_right: bool, loss: f64, subject: u32) {
        self.all.add(is_right, loss, subject);
        self.right[kind].add(f64::from(u8::from(is_right)), subject);
    }

    /// Its metrics in each replicate.
    pub(super) fn replicated(&self, draws: &Draws) -> Vec<Replicated> {
        let of_kind = |kind: CodeKind| self.right[kind].replicated(accuracy_of(kind), draws);
        self.all.replicated(draws).into_iter().chain(CodeKind::OF_PAPER.map(of_kind)).collect()
    }

    pub(super) fn scores(&self, bootstrap: &Bootstrap) -> Scores {
        let mut scores = self.all.scores(bootstrap);
        let of_kind = |kind: CodeKind| (accuracy_of(kind), self.right[kind].estimate(bootstrap));
        scores.0.extend(CodeKind::OF_PAPER.map(of_kind));
        scores
    }
}

/// All codes of the hidden one's kind, the most probable first.
pub(super) fn prediction(sample: &Sample<'_>, logits: &[f32]) -> Prediction {
    let (kind, hidden) = hidden_code(sample);
    Prediction::HiddenCode { kind, hidden, ranked: ranked(logits) }
}

/// A row per encounter and guess.
pub(crate) struct Table<'a> {
    vocabulary: &'a Vocabulary,
    guesses: usize,
    keys: Keys,
    kinds: StringBuilder,
    hidden: StringBuilder,
    ranks: UInt32Builder,
    predicted: StringBuilder,
    probabilities: Float64Builder,
}

impl<'a> Table<'a> {
    pub(super) fn new(vocabulary: &'a Vocabulary, options: TableOptions) -> Self {
        Table {
            vocabulary,
            guesses: options.top,
            keys: Keys::default(),
            kinds: StringBuilder::new(),
            hidden: StringBuilder::new(),
            ranks: UInt32Builder::new(),
            predicted: StringBuilder::new(),
            probabilities: Float64Builder::new(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        let ((kind, hidden), shares) = (hidden_code(sample), softmax(logits));
        let code = |id: usize| self.vocabulary[kind][id].code.as_str();
        for (rank, guess) in (1..).zip(largest(&shares, self.guesses)) {
            self.keys.add(sample);
            self.kinds.append_value(kind.name());
            self.hidden.append_value(code(hidden as usize));
            self.ranks.append_value(rank);
            self.predicted.append_value(code(guess));
            self.probabilities.append_value(shares[guess]);
        }
    }

    /// What each row of a sample says.
    pub(super) fn statements(&self, logits: &[f32]) -> Vec<Statement> {
        largest(&softmax(logits), self.guesses).into_iter().map(Statement::Hidden).collect()
    }

    pub(super) fn take(&mut self) -> Vec<Column> {
        let mut columns = self.keys.take();
        columns.extend::<[Column; 5]>([
            ("hidden_kind", Arc::new(self.kinds.finish()), false),
            ("hidden_code", Arc::new(self.hidden.finish()), false),
            ("rank", Arc::new(self.ranks.finish()), false),
            ("predicted_code", Arc::new(self.predicted.finish()), false),
            ("probability", Arc::new(self.probabilities.finish()), false),
        ]);
        columns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_but_context_may_be_hidden() {
        let codes = PerKind { context: vec![7], diagnosis: vec![3, 5], treatment: vec![2], lab: vec![4, 6] };
        let encounter = Encounter::new(codes);
        let hidden = |position| hiding(Sample::of(&encounter), Hide::Position(position)).hidden_code();
        let found: Vec<_> = (0..candidates(&encounter)).map(|position| hidden(position).unwrap()).collect();
        use CodeKind::{Diagnosis, Lab, Treatment};
        assert_eq!(found, [(Diagnosis, 3), (Diagnosis, 5), (Treatment, 2), (Lab, 4), (Lab, 6)]);
    }

    #[test]
    fn each_kind_has_its_classes_one_after_the_other() {
        let rows = EmbeddingRows::new(PerKind { context: 9, diagnosis: 3, treatment: 2, lab: 4 });
        assert_eq!(CodeKind::OF_PAPER.map(|kind| classes(rows, kind)), [0..3, 3..5, 5..9]);
        assert_eq!(count(rows), 9);
    }
}
