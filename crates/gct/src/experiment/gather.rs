//! What the finished trials of an experiment found, together.

use std::path::Path;

use serde::Serialize;

use super::trial::{Finished, Measured};
use super::{About, Experiment};
use crate::error::Result;
use crate::metric::{Difference, paired};
use crate::paper;
use crate::split::Part;
use crate::task::Task;

/// What an experiment has found so far.
#[derive(Debug, Clone)]
pub struct Findings {
    /// The data.
    pub about: About,
    /// The trials that have finished, in the order of the experiment.
    pub finished: Vec<Finished>,
    /// How many there are to be.
    pub trials: usize,
    /// Every figure of every model on each part, in the order of the tables.
    pub cells: Vec<Cell>,
}

/// One figure of one model on one part of the split, over splits.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// What was learned.
    pub task: String,
    /// Which figure.
    pub figure: String,
    /// `validation` or `test`.
    pub part: &'static str,
    /// The model, or the name of a variant.
    pub model: String,
    /// The splits, by seed, and the figure on each.
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
        for figure in experiment.figures(task) {
            for model in &experiment.models {
                for &part in experiment.parts() {
                    let wanted = Wanted { task, figure: &figure, part };
                    cells.push(wanted.cell(experiment, &about, &finished, model));
                }
            }
        }
    }
    Ok(Findings { about, finished, trials: trials.len(), cells })
}

/// Which figure, of what, where.
#[derive(Clone, Copy)]
struct Wanted<'a> {
    task: &'a Task,
    figure: &'a str,
    part: Part,
}

impl Wanted<'_> {
    fn measured<'f>(&self, finished: &'f Finished) -> Option<&'f Measured> {
        match self.part {
            Part::Validation => Some(&finished.validation),
            Part::Train | Part::Test => finished.test.as_ref(),
        }
    }

    /// The figure of a model on each split.
    fn splits(&self, finished: &[Finished], model: &str) -> Vec<(u64, f64)> {
        let of_model = finished.iter().filter(|one| one.model == model && one.settings.task == *self.task);
        of_model
            .filter_map(|one| Some((one.settings.split.seed, *self.measured(one)?.figures.get(self.figure)?)))
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
            let one = finished.iter().find(|one| one.model == model && one.settings.task == *self.task)?;
            paired(&differences, self.measured(one)?.encounters as f64 / one.training_encounters as f64)
        });
        Cell {
            task: self.task.to_string(),
            figure: self.figure.into(),
            part: self.part.name(),
            model: model.into(),
            paper: paper::figure(&about.source, self.task, model, self.figure, self.part),
            splits,
            mean,
            sd,
            beside,
        }
    }
}
