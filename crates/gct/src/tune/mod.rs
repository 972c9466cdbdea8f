//! Tuning: many trainings, each with hyperparameters that the ones before it make promising.
//!
//! ```text
//! DIR/tune.toml        what is tuned, over which space, with everything that stays the same
//! DIR/trials.json      every trial that was begun, in order
//! DIR/trials/NNN/      its run folder
//! DIR/history.csv      the same trials as a table
//! DIR/history.svg      and as a picture
//! DIR/best.toml        the settings of the best one, for `gct train --config`
//! ```
//!
//! The next point is a function of the seed and the trials so far (`gct_search::suggest`), and a training
//! goes on from its checkpoint: a tuning that was killed goes on as if it had not been, as long as trials run
//! one after another.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gct_search::{Observation, is_hopeless, suggest};
use serde::{Deserialize, Serialize};

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::files::{self, Overwrite, lock, write_own};
use crate::job::{Job, Stop};
use crate::model::Config;
use crate::overrides;
use crate::run::{Best, Settings};
use crate::team;
use crate::train::{self, Event as Training, Execution};

mod history;

pub use gct_search::{Dimension, How, Scale, Space, Strategy};
pub use history::write;

const PLAN: &str = "tune.toml";
const TRIALS: &str = "trials.json";

/// A trial may be given up after this share of its steps, not before: what learns slowly at first may be good
/// in the end.
const GRACE: f64 = 0.2;

/// What is tuned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// How points are chosen.
    pub strategy: Strategy,
    /// Another seed gives other points.
    pub seed: u64,
    /// Whether trials that fall behind are given up.
    pub give_up: bool,
    /// The SHA-256 of the encounters that trials learn from.
    pub dataset_sha256: String,
    /// What is varied, and how far.
    pub space: Space,
    /// Everything that is not. Its own values of what is varied are the first trial, if they are in the
    /// space.
    pub settings: Settings,
}

/// The paper's space for a model: learning rate 1e-4 to 1e-1, dropout rates 0 to 0.9, GCT's lambda 1e-2 to
/// 1e2. Of those that are not the paper's, logistic
/// regression has its C, 1e-4 to 10, and the explainer its sweeps, 10 to 100.
pub fn paper_space(model: &Config) -> Space {
    let log = |name: &str, low: f64, high: f64| Dimension { name: name.into(), low, high, scale: Scale::Log };
    let rate = |name: &str| Dimension { name: name.into(), low: 0.0, high: 0.9, scale: Scale::Linear };
    let mut dimensions = match model {
        Config::Logistic(_) => vec![log("model.c", 1e-4, 10.0)],
        Config::Explainer(_) => vec![log("model.sweeps", 10.0, 100.0)],
        _ => vec![log("learning_rate", 1e-4, 1e-1)],
    };
    match model {
        Config::Logistic(_) | Config::Explainer(_) => {}
        Config::Shallow(_) | Config::Mime(_) => dimensions.push(rate("model.dropout")),
        Config::Deep(_) => dimensions.extend([rate("model.dropout"), rate("model.post_dropout")]),
        Config::Gct(_) | Config::Transformer(_) | Config::Gcn(_) | Config::GcnP(_) | Config::GcnRandom(_) => {
            dimensions.extend([rate("model.dropout.mlp"), rate("model.dropout.post_mlp")]);
        }
    }
    if let Config::Gct(_) = model {
        dimensions.push(log("model.regularization", 1e-2, 1e2));
    }
    Space::new(dimensions).expect("these bounds make sense")
}

impl Plan {
    /// Refuses names that are not settings, and settings that make no sense at either end of the space.
    ///
    /// # Errors
    /// The first one found.
    pub fn check(&self) -> Result<()> {
        self.settings.check()?;
        let corner =
            |end: fn(&Dimension) -> f64| -> Vec<f64> { self.space.dimensions().iter().map(end).collect() };
        for point in [corner(|dimension| dimension.low), corner(|dimension| dimension.high)] {
            let ends = self.space.dimensions().iter().zip(point.iter().zip(self.rounded(point.clone())));
            for (dimension, (end, whole)) in ends {
                if *end != whole {
                    return Err(Error::setting(
                        "space",
                        format!("{end} of {}", dimension.name),
                        "a whole number",
                    ));
                }
            }
            self.at(&point)?;
        }
        Ok(())
    }

    /// The settings at a point of the space.
    fn at(&self, point: &[f64]) -> Result<Settings> {
        let mut table = overrides::table(&self.settings);
        for (dimension, value) in self.space.dimensions().iter().zip(point) {
            let number = number_of(&mut table, &dimension.name)
                .ok_or_else(|| Error::UnknownSetting { name: dimension.name.clone() })?;
            *number = match number {
                toml::Value::Integer(_) => toml::Value::Integer(value.round() as i64),
                // A trial has one C.
                toml::Value::Array(_) => toml::Value::Array(vec![toml::Value::Float(*value)]),
                _ => toml::Value::Float(*value),
            };
        }
        let settings: Settings = overrides::typed(&table)
            .map_err(|problem| Error::setting("space", problem, "values that settings can have"))?;
        settings.check()?;
        Ok(settings)
    }

    /// A point as it is trained: settings that are whole numbers stay whole.
    fn rounded(&self, mut point: Vec<f64>) -> Vec<f64> {
        let mut table = overrides::table(&self.settings);
        for (dimension, value) in self.space.dimensions().iter().zip(&mut point) {
            if number_of(&mut table, &dimension.name).is_some_and(|number| number.is_integer()) {
                *value = value.round();
            }
        }
        point
    }

    /// Where the settings themselves are in the space, if they are in it.
    fn own_point(&self) -> Option<Vec<f64>> {
        let mut table = overrides::table(&self.settings);
        let value = |dimension: &Dimension| {
            let value = match number_of(&mut table, &dimension.name)? {
                toml::Value::Integer(value) => *value as f64,
                toml::Value::Float(value) => *value,
                _ => return None,
            };
            (dimension.low..=dimension.high).contains(&value).then_some(value)
        };
        self.space.dimensions().iter().map(value).collect()
    }
}

/// The number among settings that a dotted name means, or the list of numbers.
fn number_of<'a>(table: &'a mut toml::Table, name: &str) -> Option<&'a mut toml::Value> {
    let (path, key) = name.rsplit_once('.').map_or((None, name), |(path, key)| (Some(path), key));
    let mut inner = table;
    for part in path.into_iter().flat_map(|path| path.split('.')) {
        inner = inner.get_mut(part)?.as_table_mut()?;
    }
    let is_number = |value: &toml::Value| value.is_integer() || value.is_float();
    let is_list = |value: &toml::Value| value.as_array().is_some_and(|list| list.iter().all(is_number));
    inner.get_mut(key).filter(|value| is_number(value) || is_list(value))
}

/// A trial that was begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// The value of each setting that is varied, in the order of the space.
    pub point: Vec<f64>,
    /// Where the point comes from; none for the settings that tuning began with.
    pub how: Option<How>,
    /// What became of it.
    pub end: End,
    /// Its best validation.
    pub best: Option<Best>,
    /// Steps made.
    pub steps: u64,
    /// Seconds of training.
    pub seconds: f64,
    /// Steps, and the metric by which models are chosen.
    pub curve: Vec<(u64, f64)>,
}

/// What became of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It runs, or was cut off and will go on.
    Begun,
    /// It made all its steps.
    Finished,
    /// It fell behind the others.
    GivenUp,
    /// Its loss exploded, or its validation was never defined.
    Failed,
}

impl Trial {
    fn outcome(&self) -> gct_search::Outcome {
        match (self.end, self.best) {
            (End::Begun, _) => gct_search::Outcome::Pending,
            (End::Finished | End::GivenUp, Some(best)) => gct_search::Outcome::of(best.value),
            _ => gct_search::Outcome::Failed,
        }
    }
}

/// A tuning and its folder.
#[derive(Debug)]
pub struct Tuning {
    folder: PathBuf,
    plan: Plan,
    trials: Vec<Trial>,
}

/// What happens on the way. Trials are counted from 0.
#[derive(Debug)]
pub enum Event {
    /// A trial begins, or goes on.
    Started {
        /// Which one.
        trial: usize,
        /// Its settings that are varied.
        point: Vec<f64>,
    },
    /// It has made so many steps.
    Step {
        /// Which one.
        trial: usize,
        /// Steps made.
        step: u64,
    },
    /// It has ended.
    Ended {
        /// Which one.
        trial: usize,
        /// What became of it.
        result: Trial,
    },
}

/// How much to do, and how much of it at once.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Trials to end with, those of earlier sittings included.
    pub trials: usize,
    /// No trial is trained after this.
    pub deadline: Option<Instant>,
    /// Trials at the same time.
    pub side_by_side: usize,
}

impl Effort {
    fn is_late(self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl Tuning {
    /// Begins a tuning, or goes on with the one that is in the folder.
    ///
    /// # Errors
    /// If the plan makes no sense, or the folder holds the tuning of another plan.
    pub fn open(folder: &Path, plan: Plan) -> Result<Self> {
        plan.check()?;
        let path = folder.join(PLAN);
        if !path.exists() {
            let is_foreign = |name: &OsStr| name != PLAN && !files::is_partial(name);
            if fs::read_dir(folder)
                .is_ok_and(|inside| inside.flatten().any(|entry| is_foreign(&entry.file_name())))
            {
                let problem = "it holds something else than a tuning".into();
                return Err(Error::NotReplaceable { path: folder.to_owned(), problem });
            }
            let text = toml::to_string(&plan).expect("a plan has text keys and numbers that fit");
            match files::write_text(&path, Overwrite::Refuse, &text) {
                // Another process has begun in the meantime.
                Err(Error::OutputExists { .. }) => {}
                written => written?,
            }
        }
        let there = Tuning::read(folder)?;
        match overrides::difference(&plan, &there.plan) {
            None => Ok(there),
            Some(problem) => {
                Err(Error::ExperimentMismatch { path: folder.to_owned(), problem: problem.to_string() })
            }
        }
    }

    /// Reads a tuning.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(PLAN);
        let plan =
            overrides::typed(&overrides::read(&path)?).map_err(|problem| Error::file(&path, problem))?;
        let path = folder.join(TRIALS);
        let trials = match path.exists() {
            true => overrides::read_json(&path)?,
            false => Vec::new(),
        };
        Ok(Tuning { folder: folder.to_owned(), plan, trials })
    }

    /// What is tuned.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Every trial that was begun, in order.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The best trial, and its settings.
    ///
    /// # Errors
    /// None: the settings of a trial that was run make sense.
    pub fn best(&self) -> Result<Option<(usize, Settings)>> {
        let history = self.history();
        gct_search::best(&history).map(|best| Ok((best, self.plan.at(&self.trials[best].point)?))).transpose()
    }

    /// Runs trials until there are enough, or it is time. Once the job is to stop, every trial writes a
    /// checkpoint and stops.
    ///
    /// # Errors
    /// If a trial cannot be written, or the job is stopped.
    pub fn run(self, dataset: &Dataset, effort: Effort, job: &Job<'_, Event>) -> Result<Self> {
        let _lock = lock(&self.folder.join(PLAN))?;
        files::sweep_all(&self.folder);
        // As it is now that nobody else writes.
        let tuning = Tuning::read(&self.folder)?;
        let cut_off =
            (0..tuning.trials.len()).filter(|trial| tuning.trials[*trial].end == End::Begun).collect();
        let sitting = Sitting { dataset, effort, job, inside: Mutex::new(Inside { tuning, cut_off }) };
        let workers = effort.side_by_side.max(1);
        team::run(workers, &self.folder, job.stop(), || sitting.next(), |trial| sitting.run(trial))?;
        Ok(sitting.inside.into_inner().unwrap_or_else(PoisonError::into_inner).tuning)
    }

    fn history(&self) -> Vec<Observation> {
        let observed = |trial: &Trial| Observation { point: trial.point.clone(), outcome: trial.outcome() };
        self.trials.iter().map(observed).collect()
    }

    /// Chooses the next point and writes down that it was begun.
    fn begin(&mut self) -> Result<usize> {
        let own = self.plan.own_point().filter(|_| self.trials.is_empty());
        let (point, how) = match own {
            Some(point) => (point, None),
            None => {
                let Plan { space, strategy, seed, .. } = &self.plan;
                let next = suggest(space, *strategy, *seed, &self.history())?;
                (self.plan.rounded(next.point), Some(next.how))
            }
        };
        let (end, best, curve) = (End::Begun, None, Vec::new());
        self.trials.push(Trial { point, how, end, best, steps: 0, seconds: 0.0, curve });
        self.save()?;
        Ok(self.trials.len() - 1)
    }

    fn save(&self) -> Result<()> {
        let json = serde_json::to_string_pretty(&self.trials).expect("trials have only text keys");
        write_own(&self.folder.join(TRIALS), (json + "\n").as_bytes())
    }

    /// The run folder of a trial.
    pub fn run_folder(&self, trial: usize) -> PathBuf {
        self.folder.join("trials").join(format!("{:03}", trial + 1))
    }
}

/// Trials under way, of one call of [`Tuning::run`].
struct Sitting<'a> {
    dataset: &'a Dataset,
    effort: Effort,
    job: &'a Job<'a, Event>,
    inside: Mutex<Inside>,
}

struct Inside {
    tuning: Tuning,
    /// Trials of an earlier sitting that have not ended.
    cut_off: Vec<usize>,
}

impl Sitting<'_> {
    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next trial, if there is to be one.
    fn next(&self) -> Result<Option<usize>> {
        let mut inside = self.lock();
        if self.effort.is_late() {
            return Ok(None);
        }
        if let Some(trial) = inside.cut_off.pop() {
            return Ok(Some(trial));
        }
        let begun = inside.tuning.trials.len();
        if begun >= self.effort.trials { Ok(None) } else { inside.tuning.begin().map(Some) }
    }

    fn run(&self, trial: usize) -> Result<()> {
        let (folder, settings, give_up) = {
            let tuning = &self.lock().tuning;
            let point = &tuning.trials[trial].point;
            self.job.tell(Event::Started { trial, point: point.clone() });
            (tuning.run_folder(trial), tuning.plan.at(point), tuning.plan.give_up)
        };
        // Settings that make sense at both ends of the space may make none in between.
        let Ok(settings) = settings else { return self.write_down(trial, |trial| trial.end = End::Failed) };
        let grace = (settings.steps as f64 * GRACE) as u64;
        let is_behind = |curve: &[(u64, f64)]| give_up && is_hopeless(curve, &self.others(trial), grace);
        let curve: Vec<(u64, f64)> = match folder.exists() {
            true => curve_of(&folder)?,
            false => Vec::new(),
        };
        // It may have been cut off before it was given up.
        if let Some(&(step, _)) = curve.last().filter(|(step, _)| *step < settings.steps && is_behind(&curve))
        {
            return self.end(trial, End::GivenUp, step, &folder);
        }
        // The trial alone is stopped when it falls behind, and with all others by the user or the clock.
        let (stop, behind, curve) = (Stop::new(), Stop::new(), Mutex::new(curve));
        let job = Job::new(&stop, |event| {
            match event {
                Training::Started { step, .. } | Training::Step { step, .. } => {
                    self.job.tell(Event::Step { trial, step });
                }
                Training::Validated(entry) => {
                    let mut curve = curve.lock().unwrap_or_else(PoisonError::into_inner);
                    curve.extend(entry.value.map(|value| (entry.step, value)));
                    if is_behind(&curve) {
                        behind.request();
                    }
                }
                Training::Read(_) | Training::Began(_) | Training::Drawn(_) => {}
            }
            if behind.is_requested() || self.job.stop().is_requested() || self.effort.is_late() {
                stop.request();
            }
        });
        let ended = match folder.exists() {
            true => train::resume(&folder, self.dataset, None, Execution::default(), &job),
            false => {
                let overwrite = Overwrite::Refuse;
                train::start(settings, self.dataset, &folder, overwrite, Execution::default(), &job)
            }
        };
        let (end, steps) = match ended {
            Ok(outcome) => (End::Finished, outcome.step),
            Err(Error::Stopped { step, .. }) if behind.is_requested() => (End::GivenUp, step),
            // The trial stays begun, and is resumed by the next sitting.
            Err(Error::Stopped { .. } | Error::Interrupted) if self.effort.is_late() => return Ok(()),
            Err(Error::Diverged { step, .. }) => (End::Failed, step),
            Err(error) => return Err(error),
        };
        self.end(trial, end, steps, &folder)
    }

    /// The curves of all trials that have ended.
    fn others(&self, trial: usize) -> Vec<Vec<(u64, f64)>> {
        let inside = self.lock();
        let ended = |(index, one): &(usize, &Trial)| *index != trial && one.end != End::Begun;
        inside.tuning.trials.iter().enumerate().filter(ended).map(|(_, one)| one.curve.clone()).collect()
    }

    fn end(&self, trial: usize, end: End, steps: u64, folder: &Path) -> Result<()> {
        let entries = crate::run::Run::open(folder)?.entries()?;
        let best = entries.iter().rfind(|entry| entry.best);
        let best = best.and_then(|entry| Some(Best { step: entry.step, value: entry.value? }));
        let curve = curve_of(folder)?;
        self.write_down(trial, |trial| {
            trial.best = best;
            trial.end = if best.is_none() { End::Failed } else { end };
            trial.steps = steps;
            trial.seconds = entries.last().map_or(0.0, |entry| entry.seconds);
            trial.curve = curve;
        })
    }

    /// Keeps what became of a trial.
    fn write_down(&self, trial: usize, change: impl FnOnce(&mut Trial)) -> Result<()> {
        let mut inside = self.lock();
        let tuning = &mut inside.tuning;
        change(&mut tuning.trials[trial]);
        tuning.save()?;
        write(tuning)?;
        self.job.tell(Event::Ended { trial, result: tuning.trials[trial].clone() });
        Ok(())
    }
}

fn curve_of(folder: &Path) -> Result<Vec<(u64, f64)>> {
    let entries = crate::run::Run::open(folder)?.entries()?;
    Ok(entries.iter().filter_map(|entry| Some((entry.step, entry.value?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(model: &str) -> Plan {
        let task = if model == "logistic" { "mortality" } else { "masked_diagnosis" };
        let settings = Settings::paper(task.parse().unwrap(), model, "synthetic").unwrap();
        let space = paper_space(&settings.model);
        let dataset_sha256 = String::new();
        Plan { strategy: Strategy::Bayesian, seed: 0, give_up: true, dataset_sha256, space, settings }
    }

    #[test]
    fn the_papers_space_is_made_of_settings_of_every_model_and_holds_the_papers_own() {
        for model in Config::NETWORKS.into_iter().filter(|model| *model != "logistic") {
            let plan = plan(model);
            plan.check().unwrap();
            let own = plan.own_point().unwrap();
            assert_eq!(plan.at(&own).unwrap(), plan.settings, "{model}");
            assert_eq!(
                own.len(),
                if model == "gct" {
                    4
                } else if ["shallow", "mime"].contains(&model) {
                    2
                } else {
                    3
                }
            );
        }
    }

    #[test]
    fn a_trial_of_logistic_regression_has_one_c() {
        let plan = plan("logistic");
        plan.check().unwrap();
        assert_eq!(plan.own_point(), None, "its own values are many");
        let settings = plan.at(&[0.25]).unwrap();
        let Config::Logistic(config) = &settings.model else { panic!("{:?}", settings.model) };
        assert_eq!((&config.c[..], settings.last_step()), (&[0.25][..], 1));
    }

    #[test]
    fn a_space_of_something_else_is_refused() {
        let dimension =
            |name: &str, high: f64| Dimension { name: name.into(), low: 0.0, high, scale: Scale::Linear };
        for (name, high, problem) in [
            ("model.droput", 1.0, "the space has `model.droput`, which is not"),
            ("task", 1.0, "the space has `task`, which is not"),
            ("model.dropout.mlp", 1.5, "`model.dropout.mlp`: 1.5"),
            ("batch", 64.0, "`batch`: 0"),
        ] {
            let plan = Plan { space: Space::new(vec![dimension(name, high)]).unwrap(), ..plan("gct") };
            let error = plan.check().unwrap_err().to_string();
            assert!(error.contains(problem), "{name}: {error}");
        }
    }

    #[test]
    fn whole_numbers_stay_whole() {
        let dimension = Dimension { name: "batch".into(), low: 8.0, high: 64.0, scale: Scale::Log };
        let plan = Plan { space: Space::new(vec![dimension]).unwrap(), ..plan("gct") };
        plan.check().unwrap();
        assert_eq!(plan.at(&[20.6]).unwrap().batch, 21);
    }
}
