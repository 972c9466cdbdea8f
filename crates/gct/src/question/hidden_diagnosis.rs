//! Which diagnosis is hidden: a logit for each of the vocabulary, from the hidden node, or from the visit for
//! models whose nodes do not see each other. What does not depend on the kind of the hidden code is that of
//! [`hidden_code`](super::hidden_code) too: there logits are those of all codes of the hidden one's kind.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, StringBuilder, UInt32Builder};
use gct_kernels::engine::Engine;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use sha2::{Digest, Sha256};

use super::answer::{Answer, Prediction, Statement, largest, softmax};
use super::table::{Column, Keys, TableOptions};
use crate::batch::Example;
use crate::metric::{Bootstrap, Draws, Means, Replicated, Scores};
use crate::record::{CodeKind, Encounter, Vocabulary};
use crate::sample::Sample;

/// How many guesses an explanation has.
const GUESSES: usize = 5;

/// Which code is hidden, of those that may be.
#[derive(Debug, Clone, Copy)]
pub enum Hide {
    /// One that depends on the encounter alone.
    ByEncounter,
    /// Another one for each key.
    ByKey(u64),
    /// The one at this position among those of the encounter: its diagnoses or, where a code of any kind may
    /// be hidden, its diagnoses, treatments and labs, one after the other.
    Position(usize),
}

impl Hide {
    /// The position of the hidden code among so many of an encounter that may be hidden, at least one.
    pub(super) fn position(self, encounter: &Encounter, codes: usize) -> usize {
        match self {
            Hide::ByKey(key) => Xoshiro256PlusPlus::seed_from_u64(key).random_range(0..codes),
            Hide::Position(position) => position,
            Hide::ByEncounter => {
                let digest = Sha256::digest(format!("gct-hidden-1\0{}", encounter.id.as_str()));
                let number = u64::from_be_bytes(digest[..8].try_into().expect("a SHA-256 has 32 bytes"));
                (number % codes as u64) as usize
            }
        }
    }
}

/// The hidden code of an example: its node and its id.
pub(super) fn hidden(example: &Example) -> (usize, u32) {
    example.visit.hidden.expect("a code is hidden to be guessed")
}

/// The node of the hidden code of each example, as the engine selects rows.
pub(super) fn nodes(examples: &[Example]) -> Vec<(usize, usize)> {
    examples.iter().enumerate().map(|(at, example)| (at, hidden(example).0)).collect()
}

/// The sum of cross entropies of the hidden diagnoses; `share` is what each counts in the gradient.
pub(super) fn batch_loss<E: Engine>(
    engine: &mut E,
    logits: &E::Matrix,
    examples: &[Example],
    smoothing: f64,
    share: f64,
) -> f64 {
    engine.class_loss(logits, examples.iter().map(|example| hidden(example).1 as usize), smoothing, share)
}

/// The kind and the id of the hidden code of a sample.
pub(super) fn hidden_code(sample: &Sample<'_>) -> (CodeKind, u32) {
    sample.hidden_code().expect("a code is hidden to be guessed")
}

/// Its id alone.
fn truth(sample: &Sample<'_>) -> usize {
    hidden_code(sample).1 as usize
}

/// Cross entropy of the hidden code and its logits.
pub(super) fn loss(sample: &Sample<'_>, logits: &[f32]) -> Option<f64> {
    Some(class_loss(logits, truth(sample)))
}

/// Whether the guess for a sample is right, and its loss.
pub(super) fn outcome(sample: &Sample<'_>, logits: &[f32]) -> (bool, f64) {
    let truth = truth(sample);
    (is_largest(logits, truth), class_loss(logits, truth))
}

/// Right guesses and losses, by subject.
#[derive(Default)]
pub(super) struct Tally {
    right: Means,
    loss: Means,
}

impl Tally {
    /// Adds whether a guess is right, and its loss.
    pub(super) fn add(&mut self, is_right: bool, loss: f64, subject: u32) {
        self.right.add(f64::from(u8::from(is_right)), subject);
        self.loss.add(loss, subject);
    }

    /// Its metrics in each replicate.
    pub(super) fn replicated(&self, draws: &Draws) -> Vec<Replicated> {
        vec![self.right.replicated("accuracy", draws), self.loss.replicated("log_loss", draws)]
    }

    pub(super) fn scores(&self, bootstrap: &Bootstrap) -> Scores {
        Scores(vec![
            ("accuracy", self.right.estimate(bootstrap)),
            ("log_loss", self.loss.estimate(bootstrap)),
        ])
    }
}

/// All diagnoses, the most probable first.
pub(super) fn prediction(sample: &Sample<'_>, logits: &[f32]) -> Prediction {
    Prediction::HiddenDiagnosis { hidden: truth(sample) as u32, ranked: ranked(logits) }
}

/// The ids of all codes with their probabilities, the most probable first.
pub(super) fn ranked(logits: &[f32]) -> Vec<(u32, f64)> {
    let shares = softmax(logits);
    largest(&shares, shares.len()).into_iter().map(|id| (id as u32, shares[id])).collect()
}

/// The most probable guesses, and the hidden code, however improbable it is.
pub(super) fn answers(sample: &Sample<'_>, logits: &[f32], vocabulary: &Vocabulary) -> Vec<Answer> {
    let ((kind, _), hidden, shares) = (hidden_code(sample), truth(sample), softmax(logits));
    let guess = |id: usize| Answer {
        what: vocabulary[kind][id].code.clone(),
        probability: shares[id],
        truth: Some(id == hidden),
    };
    guesses(sample, &shares).into_iter().map(guess).collect()
}

/// The same as statements.
pub(super) fn statements(sample: &Sample<'_>, logits: &[f32]) -> Vec<Statement> {
    guesses(sample, &softmax(logits)).into_iter().map(Statement::Hidden).collect()
}

/// The ids of the most probable codes, and that of the hidden one.
fn guesses(sample: &Sample<'_>, shares: &[f64]) -> Vec<usize> {
    let (mut guesses, hidden) = (largest(shares, GUESSES), truth(sample));
    guesses.extend((!guesses.contains(&hidden)).then_some(hidden));
    guesses
}

/// A row per encounter and guess.
pub(crate) struct Table<'a> {
    vocabulary: &'a Vocabulary,
    guesses: usize,
    keys: Keys,
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
            hidden: StringBuilder::new(),
            ranks: UInt32Builder::new(),
            predicted: StringBuilder::new(),
            probabilities: Float64Builder::new(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        let (hidden, shares) = (truth(sample), softmax(logits));
        let code = |id: usize| self.vocabulary.diagnosis[id].code.as_str();
        for (rank, guess) in (1..).zip(largest(&shares, self.guesses)) {
            self.keys.add(sample);
            self.hidden.append_value(code(hidden));
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
        columns.extend::<[Column; 4]>([
            ("hidden_diagnosis", Arc::new(self.hidden.finish()), false),
            ("rank", Arc::new(self.ranks.finish()), false),
            ("predicted_diagnosis", Arc::new(self.predicted.finish()), false),
            ("probability", Arc::new(self.probabilities.finish()), false),
        ]);
        columns
    }
}

/// Whether the logit of a class is larger than all others; of equal ones the first counts.
fn is_largest(logits: &[f32], class: usize) -> bool {
    let beats = |(other, logit): (usize, &f32)| {
        other == class || logits[class] > *logit || (logits[class] == *logit && class < other)
    };
    logits.iter().enumerate().all(beats)
}

/// Cross entropy of a class and the logits of all classes.
fn class_loss(logits: &[f32], class: usize) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum();
    sum.ln() + largest - f64::from(logits[class])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{EncounterId, PerKind};

    fn encounter(id: &str, diagnoses: u32) -> Encounter {
        let codes = PerKind { diagnosis: (0..diagnoses).collect(), ..PerKind::default() };
        Encounter { id: EncounterId::new(id), ..Encounter::new(codes) }
    }

    #[test]
    fn evaluation_always_hides_the_same_diagnosis_and_training_another() {
        let positions = |hide: &dyn Fn(u64) -> Hide| -> Vec<usize> {
            (0..200).map(|key| hide(key).position(&encounter("e", 7), 7)).collect()
        };
        let fixed = positions(&|_| Hide::ByEncounter);
        assert!(fixed.iter().all(|position| *position == fixed[0]));
        let changing = positions(&Hide::ByKey);
        assert!((0..7).all(|position| changing.contains(&position)), "{changing:?}");
        let others: Vec<usize> =
            (0..200).map(|i| Hide::ByEncounter.position(&encounter(&i.to_string(), 7), 7)).collect();
        assert!((0..7).all(|position| others.contains(&position)), "{others:?}");
    }

    #[test]
    fn of_equal_answers_the_first_is_given() {
        assert!(is_largest(&[1.0, 3.0, 3.0], 1));
        assert!(!is_largest(&[1.0, 3.0, 3.0], 2));
        assert!(!is_largest(&[1.0, 3.0, 3.0], 0));
    }

    #[test]
    fn the_loss_of_a_class_is_minus_the_logarithm_of_its_share() {
        let logits = [1f32.ln(), 3f32.ln(), 4f32.ln()];
        assert!((class_loss(&logits, 1) - (8f64 / 3.0).ln()).abs() < 1e-6);
        assert!((class_loss(&[1000.0, 0.0], 1) - 1000.0).abs() < 1e-9, "far from what a float can hold");
    }
}
