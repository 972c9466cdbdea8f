//! What the finished trials of an experiment found, together.

use std::path::Path;

use serde::Serialize;

use super::trial::{Finished, Measured};
use super::{About, Experiment};
use crate::error::Result;
use crate::metric::{Difference, paired};
use crate::paper;
use crate::question::Question;
use crate::split::{SplitPart, TEST_SHARE};

/// What an experiment has found so far.
#[derive(Debug, Clone)]
pub struct Findings {
    /// The data.
    pub about: About,
    /// The trials that have finished, in the order of the experiment.
    pub finished: Vec<Finished>,
    /// How many there are to be.
    pub trials: usize,
    /// Every metric of every model on each part, in the order of the tables.
    pub cells: Vec<Cell>,
}

/// One metric of one model on one part of the split, over splits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// What was learned.
    pub task: String,
    /// Which metric.
    #[serde(rename = "figure")]
    pub metric: String,
    /// `validation` or `test`.
    pub part: &'static str,
    /// The model, or the name of a variant.
    pub model: String,
    /// The splits, by seed, and the metric on each.
    pub splits: Vec<(u64, f64)>,
    /// The mean over splits.
    pub mean: Option<f64>,
    /// The standard deviation, for two splits or more.
    pub sd: Option<f64>,
    /// The paper's mean and standard deviation.
    pub paper: Option<[f64; 2]>,
    /// How much larger it is than that of the model to compare with, on the splits that both have.
    pub beside: Option<Difference>,
}

impl Cell {
    /// Our mean (standard deviation), as far as they are known.
    pub fn ours(&self) -> String {
        with_sd(self.mean, self.sd)
    }

    /// The paper's mean (standard deviation), if it has them.
    pub fn papers(&self) -> String {
        with_sd(self.paper.map(|paper| paper[0]), self.paper.map(|paper| paper[1]))
    }
}

fn with_sd(mean: Option<f64>, sd: Option<f64>) -> String {
    match (mean, sd) {
        (Some(mean), Some(sd)) => format!("{mean:.4} ({sd:.4})"),
        (Some(mean), None) => format!("{mean:.4}"),
        (None, _) => "-".into(),
    }
}

/// Gathers what has been found in a folder of experiments.
///
/// # Errors
/// If the folder is not one, or a trial in it is of another experiment.
pub fn gather(experiment: &Experiment, folder: &Path) -> Result<Findings> {
    let about = About::read(folder)?;
    let trials = experiment.trials(&about.source)?;
    let mut finished = Vec::new();
    for trial in &trials {
        finished.extend(trial.finished(folder, &about.sha256)?);
    }
    let mut cells = Vec::new();
    for task in &experiment.tasks {
        for metric in experiment.metrics(task) {
            for model in &experiment.models {
                for &part in experiment.parts() {
                    let wanted = Wanted { task, metric: &metric, part };
                    cells.push(wanted.cell(experiment, &about, &finished, model));
                }
            }
        }
    }
    Ok(Findings { about, finished, trials: trials.len(), cells })
}

/// Which metric, of what, where.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    task: &'a Question,
    metric: &'a str,
    part: SplitPart,
}

impl Wanted<'_> {
    fn measured<'f>(&self, finished: &'f Finished) -> Option<&'f Measured> {
        match self.part {
            SplitPart::Validation => Some(&finished.validation),
            SplitPart::Train | SplitPart::Test => finished.test.as_ref(),
        }
    }

    /// The metric of a model on each split.
    fn splits(&self, finished: &[Finished], model: &str) -> Vec<(u64, f64)> {
        let of_model = finished.iter().filter(|one| one.model == model && one.settings.task == *self.task);
        of_model
            .filter_map(|one| Some((one.settings.split.seed, *self.measured(one)?.metrics.get(self.metric)?)))
            .collect()
    }

    fn cell(&self, experiment: &Experiment, about: &About, finished: &[Finished], model: &str) -> Cell {
        let splits = self.splits(finished, model);
        let values: Vec<f64> = splits.iter().map(|(_, value)| *value).collect();
        let mean = (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64);
        let sd = mean.filter(|_| values.len() > 1).map(|mean| {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            (squares / (values.len() - 1) as f64).sqrt()
        });
        let beside = experiment.reference().filter(|reference| *reference != model).and_then(|reference| {
            let others = self.splits(finished, reference);
            let difference = |(seed, value): &(u64, f64)| {
                others.iter().find(|(other, _)| other == seed).map(|(_, other)| value - other)
            };
            let differences: Vec<f64> = splits.iter().filter_map(difference).collect();
            paired(&differences, TEST_SHARE)
        });
        Cell {
            task: self.task.to_string(),
            metric: self.metric.into(),
            part: self.part.name(),
            model: model.into(),
            paper: paper::metric(&about.source, self.task, model, self.metric, self.part),
            splits,
            mean,
            sd,
            beside,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::run::Settings;
    use crate::statistics::Statistics;

    fn finished(model: &str, seed: u64, accuracy: f64) -> Finished {
        let mut settings = Settings::paper(Question::HiddenDiagnosis, model, "synthetic").unwrap();
        settings.split.seed = seed;
        let measured = Measured { encounters: 100, metrics: BTreeMap::from([("accuracy".into(), accuracy)]) };
        Finished {
            program: "gct".into(),
            model: model.into(),
            dataset_sha256: String::new(),
            training_encounters: 800,
            seconds: 1.0,
            best: None,
            validation: Measured { encounters: 100, metrics: BTreeMap::new() },
            test: Some(measured),
            curve: Vec::new(),
            settings,
        }
    }

    #[test]
    fn a_cell_is_over_splits_and_differences_are_of_the_same_split() {
        let experiment: Experiment = toml::from_str("title = \"t\"\nmodels = [\"gct\", \"deep\"]").unwrap();
        let about = About {
            source: "synthetic".into(),
            sha256: String::new(),
            statistics: Statistics::default(),
            ceiling: None,
        };
        // Those of deep in another order, and one that gct does not have.
        let found = [
            finished("gct", 0, 0.5),
            finished("gct", 1, 0.7),
            finished("gct", 2, 0.9),
            finished("deep", 2, 0.6),
            finished("deep", 7, 0.0),
            finished("deep", 0, 0.4),
            finished("deep", 1, 0.5),
        ];
        let wanted = Wanted { task: &Question::HiddenDiagnosis, metric: "accuracy", part: SplitPart::Test };
        let gct = wanted.cell(&experiment, &about, &found, "gct");
        assert_eq!((gct.ours().as_str(), gct.papers().as_str()), ("0.7000 (0.2000)", "0.2179 (0.0071)"));
        assert_eq!(gct.beside, None);
        // Differences of -0.1, -0.2 and -0.3: the standard error is 0.1 sqrt(1/3 + 1/8).
        let beside = wanted.cell(&experiment, &about, &found, "deep").beside.unwrap();
        assert!((beside.mean + 0.2).abs() < 1e-12, "{beside:?}");
        assert!((beside.standard_error - 0.067_700_3).abs() < 1e-6, "{beside:?}");
        // What nobody has measured is empty.
        let nothing =
            Wanted { part: SplitPart::Validation, ..wanted }.cell(&experiment, &about, &found, "gct");
        assert_eq!((nothing.ours().as_str(), nothing.splits.len()), ("-", 0));
    }
}
