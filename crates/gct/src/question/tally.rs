//! What a model answered beside the truth, until it becomes metrics.

use rustc_hash::FxHashMap;

use super::{Question, hidden_diagnosis};
use crate::metric::{Bootstrap, Predictions, Scored, Scores, SubjectRanking};
use crate::record::SubjectId;
use crate::sample::Sample;

/// Answers of a model, counted by subject.
pub(crate) struct Tally {
    question: Question,
    subjects: FxHashMap<SubjectId, u32>,
    /// Yes-or-no predictions: all of them, and those of each series where there are several.
    all: Binary,
    series: Vec<(String, Binary)>,
    /// Guesses of one class among many.
    guesses: hidden_diagnosis::Tally,
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

    fn scores(self, bootstrap: &Bootstrap) -> Scores {
        let (areas, others) = (self.ranking.estimates(bootstrap), self.predictions.estimates(bootstrap));
        Scores(vec![
            ("aucpr", areas.aucpr),
            ("auroc", areas.auroc),
            ("accuracy", others.accuracy),
            ("log_loss", others.log_loss),
            ("brier_score", others.brier_score),
            ("calibration_error", others.calibration_error),
        ])
    }
}

impl Tally {
    pub(super) fn new(question: &Question) -> Self {
        let names = Some(question.series()).filter(|names| names.len() > 1).unwrap_or_default();
        Tally {
            question: question.clone(),
            subjects: FxHashMap::default(),
            all: Binary::default(),
            series: names.into_iter().map(|name| (name, Binary::default())).collect(),
            guesses: hidden_diagnosis::Tally::default(),
        }
    }

    /// Adds what a model said of a sample.
    pub(crate) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        let next = self.subjects.len() as u32;
        let subject = *self.subjects.entry(sample.encounter().subject.clone()).or_insert(next);
        match &self.question {
            Question::Edges | Question::Labels(_) => {
                self.question.each_outcome(sample, logits, |series, logit, truth| {
                    self.all.add(logit, truth, subject);
                    if let Some((_, series)) = self.series.get_mut(series) {
                        series.add(logit, truth, subject);
                    }
                });
            }
            Question::HiddenDiagnosis => self.guesses.add(sample, logits, subject),
        }
    }

    /// The metrics over all answers, and those of each label where there are several.
    pub(crate) fn finish(self, bootstrap: &Bootstrap) -> (Scores, Vec<(String, Scores)>) {
        let scores = match self.question {
            Question::Edges | Question::Labels(_) => self.all.scores(bootstrap),
            Question::HiddenDiagnosis => self.guesses.scores(bootstrap),
        };
        let series = self.series.into_iter().map(|(name, series)| (name, series.scores(bootstrap)));
        (scores, series.collect())
    }
}
