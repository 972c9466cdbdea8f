//! What a model answered beside the truth, until it becomes metrics.

use rustc_hash::FxHashMap;

use super::{Question, hidden_diagnosis};
use crate::metric::{Bootstrap, Predictions, Replicated, Scored, Scores, SubjectRanking};
use crate::record::SubjectId;
use crate::sample::Sample;

/// Answers of a model, counted by subject.
pub(crate) struct Tally {
    question: Question,
    subjects: FxHashMap<SubjectId, u32>,
    binary: AllBinary,
    /// Guesses of one class among many.
    guesses: hidden_diagnosis::Tally,
}

/// Yes-or-no predictions: all of them, and those of each series where there are several.
struct AllBinary {
    all: Binary,
    series: Vec<(String, Binary)>,
}

impl AllBinary {
    fn add(&mut self, series: usize, logit: f32, positive: bool, subject: u32) {
        self.all.add(logit, positive, subject);
        if let Some((_, series)) = self.series.get_mut(series) {
            series.add(logit, positive, subject);
        }
    }
}

/// Yes-or-no predictions.
#[derive(Default)]
struct Binary {
    ranking: SubjectRanking,
    predictions: Predictions,
}

impl Binary {
    fn add(&mut self, logit: f32, positive: bool, subject: u32) {
        self.ranking.add(Scored { score: logit, positive, subject });
        self.predictions.add(logit.into(), positive, subject);
    }

    fn replicated(self, bootstrap: &Bootstrap) -> Metrics {
        let names = ["aucpr", "auroc", "accuracy", "log_loss", "brier_score", "calibration_error"];
        let areas = self.ranking.replicated(bootstrap);
        names.into_iter().zip(areas.into_iter().chain(self.predictions.replicated(bootstrap))).collect()
    }
}

/// Metrics by name, with their replicates.
pub(crate) type Metrics = Vec<(&'static str, Replicated)>;

fn scores(metrics: &Metrics) -> Scores {
    Scores(metrics.iter().map(|(name, metric)| (*name, metric.estimate())).collect())
}

impl Tally {
    pub(super) fn new(question: &Question) -> Self {
        Tally::of(question, question.series())
    }

    /// The same for some series of a question, which [`Tally::add`] does not know.
    pub(crate) fn of(question: &Question, series: Vec<String>) -> Self {
        let names = Some(series).filter(|names| names.len() > 1).unwrap_or_default();
        Tally {
            question: question.clone(),
            subjects: FxHashMap::default(),
            binary: AllBinary {
                all: Binary::default(),
                series: names.into_iter().map(|name| (name, Binary::default())).collect(),
            },
            guesses: hidden_diagnosis::Tally::default(),
        }
    }

    /// Adds what a model said of a sample.
    pub(crate) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        let subject = self.subject(&sample.encounter().subject);
        let Tally { question, binary, guesses, .. } = self;
        match question {
            Question::Edges | Question::Labels(_) => {
                question.each_outcome(sample, logits, |series, logit, truth| {
                    binary.add(series, logit, truth, subject);
                });
            }
            Question::HiddenDiagnosis => guesses.add(sample, logits, subject),
        }
    }

    /// The number of a subject, in the order of their first examples.
    pub(crate) fn subject(&mut self, id: &SubjectId) -> u32 {
        let next = self.subjects.len() as u32;
        *self.subjects.entry(id.clone()).or_insert(next)
    }

    /// How many subjects were told of.
    pub(crate) fn subjects(&self) -> u64 {
        self.subjects.len() as u64
    }

    /// Adds one yes-or-no prediction of a series.
    pub(crate) fn outcome(&mut self, series: usize, logit: f32, truth: bool, subject: u32) {
        self.binary.add(series, logit, truth, subject);
    }

    /// The metrics over all answers, and those of each label where there are several.
    pub(crate) fn finish(self, bootstrap: &Bootstrap) -> (Scores, Vec<(String, Scores)>) {
        let (all, series) = self.replicated(bootstrap);
        (scores(&all), series.into_iter().map(|(name, metrics)| (name, scores(&metrics))).collect())
    }

    /// The same with their replicates.
    pub(crate) fn replicated(self, bootstrap: &Bootstrap) -> (Metrics, Vec<(String, Metrics)>) {
        let AllBinary { all, series } = self.binary;
        let all = match self.question {
            Question::Edges | Question::Labels(_) => all.replicated(bootstrap),
            Question::HiddenDiagnosis => self.guesses.replicated(bootstrap),
        };
        let series = series.into_iter().map(|(name, series)| (name, series.replicated(bootstrap)));
        (all, series.collect())
    }
}
