//! What a model answered beside the truth, until it becomes metrics.

use rustc_hash::FxHashMap;

use super::measured::{Asked, Chosen, Counts, Decisions, Details, LabelScores};
use super::subgroups::{By, Rows};
use super::{Question, hidden_code, hidden_diagnosis, next_diagnoses};
use crate::error::{Error, Result};
use crate::metric::{
    Aim, Bootstrap, Draws, Predictions, Replicated, Scored, Scores, Sorted, SubjectRanking,
    decision_thresholds,
};
use crate::record::SubjectId;
use crate::sample::Sample;

/// Answers of a model, counted by subject.
pub(crate) struct Tally {
    question: Question,
    subjects: FxHashMap<SubjectId, u32>,
    encounters: u64,
    /// Yes-or-no predictions: all of them, and those of each series where there are several.
    all: Binary,
    series: Vec<(String, Binary)>,
    /// Guesses of one class among many.
    guesses: hidden_diagnosis::Tally,
    /// The same where codes of all kinds are guessed.
    codes: hidden_code::Tally,
    /// Diagnoses of next visits.
    next: next_diagnoses::Tally,
    /// Every answer by itself, if there are subgroups.
    rows: Rows,
}

/// Yes-or-no predictions.
#[derive(Default)]
pub(super) struct Binary {
    ranking: SubjectRanking,
    predictions: Predictions,
}

impl Binary {
    pub(super) fn add(&mut self, logit: f32, positive: bool, subject: u32) {
        self.ranking.add(Scored { score: logit, positive, subject });
        self.predictions.add(logit.into(), positive, subject);
    }

    fn scores(self, bootstrap: &Bootstrap) -> (Scores, Sorted) {
        let sorted = self.ranking.sorted();
        let (areas, others) = (sorted.areas(bootstrap), self.predictions.estimates(bootstrap));
        let scores = Scores(vec![
            ("aucpr", areas.aucpr),
            ("auroc", areas.auroc),
            ("accuracy", others.accuracy),
            ("log_loss", others.log_loss),
            ("brier_score", others.brier_score),
            ("calibration_error", others.calibration_error),
        ]);
        (scores, sorted)
    }

    /// The same in each replicate; of labels, slope and intercept too.
    pub(super) fn replicated(self, are_labels: bool, draws: &Draws) -> (Vec<Replicated>, Sorted) {
        let sorted = self.ranking.sorted();
        let mut metrics: Vec<Replicated> = sorted.replicated(draws).into();
        metrics.extend(self.predictions.replicated(draws));
        if are_labels {
            metrics.extend(sorted.recalibration(draws));
        }
        (metrics, sorted)
    }
}

/// The metrics of all answers, or of those of one series, in each replicate.
pub(crate) struct Replicates {
    pub(crate) series: Option<String>,
    pub(crate) metrics: Vec<Replicated>,
    pub(crate) draws: Draws,
}

impl Tally {
    pub(super) fn new(question: &Question) -> Self {
        Tally::of(question, question.series())
    }

    /// The same for some series of a question, of which [`Tally::outcome`] is told.
    pub(crate) fn of(question: &Question, series: Vec<String>) -> Self {
        let names = Some(series).filter(|names| names.len() > 1).unwrap_or_default();
        Tally {
            question: question.clone(),
            subjects: FxHashMap::default(),
            encounters: 0,
            all: Binary::default(),
            series: names.into_iter().map(|name| (name, Binary::default())).collect(),
            guesses: hidden_diagnosis::Tally::default(),
            codes: hidden_code::Tally::default(),
            next: next_diagnoses::Tally::default(),
            rows: Rows::default(),
        }
    }

    /// Adds what a model said of a sample.
    pub(crate) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        self.add_to_groups(sample, logits, &[]);
    }

    /// Adds what a model said of a sample, which is in these subgroups, one for each way to group.
    pub(crate) fn add_to_groups(&mut self, sample: &Sample<'_>, logits: &[f32], groups: &[u32]) {
        let subject = self.subject(&sample.encounter().subject);
        self.encounters += 1;
        self.rows.next_encounter(subject, groups);
        match &self.question {
            Question::Edges | Question::Labels(_) => {
                self.question.each_outcome(sample, logits, |series, logit, truth| {
                    self.all.add(logit, truth, subject);
                    self.rows.add(series, logit, truth);
                    if let Some((_, series)) = self.series.get_mut(series) {
                        series.add(logit, truth, subject);
                    }
                });
            }
            Question::HiddenDiagnosis => {
                let (is_right, loss) = hidden_diagnosis::outcome(sample, logits);
                self.guesses.add(is_right, loss, subject);
                self.rows.add_guess(loss, is_right);
            }
            Question::HiddenCode => {
                let (is_right, loss) = hidden_diagnosis::outcome(sample, logits);
                self.codes.add(hidden_diagnosis::hidden_code(sample).0, is_right, loss, subject);
                self.rows.add_guess(loss, is_right);
            }
            Question::NextDiagnoses(next) => {
                let outcome = next.outcome(sample, logits);
                self.next.add(sample, logits, &outcome, subject);
                self.rows.add_next(outcome.numbers);
            }
        }
    }

    /// The number of a subject, in the order of their first examples.
    pub(crate) fn subject(&mut self, id: &SubjectId) -> u32 {
        let next = self.subjects.len() as u32;
        *self.subjects.entry(id.clone()).or_insert(next)
    }

    /// How many subjects were told of.
    pub(crate) fn subjects(&self) -> u32 {
        self.subjects.len() as u32
    }

    /// Adds one yes-or-no prediction of a series, to metrics alone.
    pub(crate) fn outcome(&mut self, series: usize, logit: f32, truth: bool, subject: u32) {
        self.all.add(logit, truth, subject);
        if let Some((_, series)) = self.series.get_mut(series) {
            series.add(logit, truth, subject);
        }
    }

    /// The metrics over all answers in each replicate, and those of each series where there are several.
    pub(crate) fn replicated(self, bootstrap: Bootstrap) -> Vec<Replicates> {
        let everybody = (0..self.subjects()).collect();
        let binary = |series: Option<String>, Binary { ranking, predictions }: Binary| {
            let sorted = ranking.sorted();
            // Subjects whose answer is not known are not drawn.
            let draws = Draws::new(bootstrap, sorted.subjects());
            let metrics =
                sorted.replicated(&draws).into_iter().chain(predictions.replicated(&draws)).collect();
            Replicates { series, metrics, draws }
        };
        match self.question {
            Question::Edges | Question::Labels(_) => {
                let series = self.series.into_iter().map(|(name, series)| binary(Some(name), series));
                std::iter::once(binary(None, self.all)).chain(series).collect()
            }
            Question::HiddenDiagnosis => {
                let draws = Draws::new(bootstrap, everybody);
                vec![Replicates { series: None, metrics: self.guesses.replicated(&draws), draws }]
            }
            Question::HiddenCode => {
                let draws = Draws::new(bootstrap, everybody);
                vec![Replicates { series: None, metrics: self.codes.replicated(&draws), draws }]
            }
            Question::NextDiagnoses(_) => {
                let draws = Draws::new(bootstrap, everybody);
                vec![Replicates { series: None, metrics: self.next.replicated(&draws), draws }]
            }
        }
    }

    /// The metrics over all answers.
    pub(crate) fn scores(self, bootstrap: &Bootstrap) -> Scores {
        match self.question {
            Question::Edges | Question::Labels(_) => self.all.scores(bootstrap).0,
            Question::HiddenDiagnosis => self.guesses.scores(bootstrap),
            Question::HiddenCode => self.codes.scores(bootstrap),
            Question::NextDiagnoses(_) => self.next.scores(bootstrap),
        }
    }

    /// Everything over all answers, and over those of each label where there are several.
    ///
    /// # Errors
    /// If subgroups make no sense.
    pub(crate) fn finish(self, asked: &Asked<'_>, by: &[By]) -> Result<(Scores, Details, Vec<LabelScores>)> {
        let (scores, mut details) = match &self.question {
            Question::Edges | Question::Labels(_) => of_binary(self.all, &self.question, asked, 0),
            Question::HiddenDiagnosis => (self.guesses.scores(&asked.bootstrap), self.of_guesses()),
            Question::HiddenCode => (self.codes.scores(&asked.bootstrap), self.of_guesses()),
            Question::NextDiagnoses(_) => {
                let counts = Counts::new(self.next.predictions, self.subjects.len(), self.next.positives);
                let codes = self.next.codes(asked.diagnoses, asked.min_cell);
                (self.next.scores(&asked.bootstrap), Details { counts, codes, ..Details::default() })
            }
        };
        let label = |(at, (name, series)): (usize, (String, Binary))| {
            let (scores, details) = of_binary(series, &self.question, asked, at + 1);
            LabelScores { name, scores, details }
        };
        let mut labels: Vec<LabelScores> = self.series.into_iter().enumerate().map(label).collect();
        // Last, when what was kept for the others is gone.
        let mut subgroups = self.rows.subgroups(&self.question, asked, by)?.into_iter();
        details.subgroups = subgroups.next().unwrap_or_default();
        for (label, subgroups) in labels.iter_mut().zip(subgroups) {
            label.details.subgroups = subgroups;
        }
        Ok((scores, details, labels))
    }

    /// What is told of guesses beside their metrics.
    fn of_guesses(&self) -> Details {
        let (predictions, subjects) = (self.encounters, self.subjects.len() as u64);
        Details { counts: Counts { predictions, subjects, ..Counts::default() }, ..Details::default() }
    }

    /// The threshold that each aim chooses: over all labels, then for each where there are several.
    ///
    /// # Errors
    /// If no threshold reaches one.
    pub(crate) fn choose(self, aims: &[Aim]) -> Result<Chosen> {
        let names = self.series.iter().map(|(name, _)| Some(name.clone()));
        let names: Vec<Option<String>> = std::iter::once(None).chain(names).collect();
        let series = self.series.into_iter().map(|(_, series)| series);
        let all = std::iter::once(self.all).chain(series).map(|series| series.ranking.sorted());
        all.zip(names).map(|(sorted, name)| choose(&sorted, name.as_deref(), aims)).collect()
    }
}

fn choose(sorted: &Sorted, label: Option<&str>, aims: &[Aim]) -> Result<Vec<(Aim, f64)>> {
    let of = label.map(|label| format!(" of the label `{label}`")).unwrap_or_default();
    let refused = |aim: &Aim, problem: String| Error::NoThreshold { aim: aim.to_string(), problem };
    let (positives, all) = (sorted.positives(), sorted.len() as u64);
    let one = |aim: &Aim| {
        if positives == 0 || positives == all {
            let missing = if positives == 0 { "positive" } else { "negative" };
            return Err(refused(aim, format!("the validation split has no {missing}{of}")));
        }
        let reached = sorted.threshold_for(*aim);
        reached
            .map(|threshold| (*aim, threshold))
            .ok_or_else(|| refused(aim, format!("no threshold reaches it on the validation split{of}")))
    };
    aims.iter().map(one).collect()
}

fn of_binary(binary: Binary, question: &Question, asked: &Asked<'_>, series: usize) -> (Scores, Details) {
    let (scores, sorted) = binary.scores(&asked.bootstrap);
    let counts = Counts::of(&sorted);
    let decisions = matches!(question, Question::Labels(_)).then(|| {
        let draws = Draws::new(asked.bootstrap, sorted.subjects());
        Decisions {
            thresholds: asked.points(&sorted, asked.chosen_of(series), &draws),
            calibration: sorted.calibration(&draws),
            net_benefit: sorted.net_benefit(&decision_thresholds()),
        }
    });
    (scores, Details { counts, decisions, ..Details::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Encounter, PerKind};

    /// The metrics with their intervals, where each of some subjects has its encounters so many times.
    fn scores(times: usize) -> Scores {
        let question: Question = "label:l".parse().unwrap();
        let mut tally = question.tally();
        for subject in 0..60u32 {
            let logit = (subject * 7 % 13) as f32 / 3.0 - 2.0;
            let labels = vec![Some((subject * 5 + 3) % 11 < 4)];
            let encounter = Encounter {
                subject: SubjectId::new(format!("S{subject}")),
                labels,
                ..Encounter::new(PerKind::default())
            };
            (0..times).for_each(|_| tally.add(&Sample::of(&encounter), &[logit]));
        }
        assert_eq!(tally.subjects(), 60);
        tally.scores(&Bootstrap::default())
    }

    #[test]
    fn more_encounters_of_the_same_subjects_make_nothing_more_certain() {
        let (once, often) = (scores(1), scores(9));
        for ((name, once), (_, often)) in once.0.iter().zip(&often.0) {
            let ([low, high], [many_low, many_high]) = (once.interval.unwrap(), often.interval.unwrap());
            assert!(high - low > 0.01, "{name}: {once:?}");
            assert!((low - many_low).abs() + (high - many_high).abs() < 1e-9, "{name}: {once:?} {often:?}");
        }
    }
}
