//! All trials of an experiment, some of them side by side.
//!
//! Trials side by side, each on one thread, finish sooner than one after another on all threads: a training
//! step is short, and at its end threads wait for each other. So there are as many as there are threads, or
//! as trials are left.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::data::check_folder;
use super::trial::{Finished, PlannedTrial};
use super::{About, Experiment};
use crate::dataset::Dataset;
use crate::error::{Error, OnPath, Result};
use crate::files::sweep_all;
use crate::job::Job;
use crate::split::By;
use crate::team;
use crate::train;

/// Which trials to run: every `of`-th, from the one at index `number - 1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which one of the shares, from 1.
    pub number: usize,
    /// How many shares there are.
    pub of: usize,
}

impl Share {
    /// All of them.
    pub const ALL: Share = Share { number: 1, of: 1 };

    fn has(self, index: usize) -> bool {
        index % self.of == self.number - 1
    }
}

/// What happens on the way. A trial is told by its index in the list of [`Event::Planned`].
#[derive(Debug)]
pub enum Event {
    /// These are to be run, with so many steps each, so many of them side by side.
    Planned {
        /// The trials.
        trials: Vec<PlannedTrial>,
        /// How many were finished before.
        finished: usize,
        /// How many run at the same time.
        side_by_side: usize,
    },
    /// A trial has made so many steps.
    Step {
        /// Which one.
        trial: usize,
        /// Steps made.
        step: u64,
    },
    /// A trial has ended.
    Finished {
        /// Which one.
        trial: usize,
        /// What it found.
        found: Box<Finished>,
    },
    /// A trial was left to the process that trains it already.
    Elsewhere {
        /// Which one.
        trial: usize,
    },
    /// A trial failed by itself; the others go on.
    Failed {
        /// Which one.
        trial: usize,
        /// Why.
        error: Error,
    },
}

/// How an experiment ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Trials that have finished, now or before, of this share.
    pub finished: usize,
    /// Trials that another process trains.
    pub elsewhere: usize,
    /// Trials that failed, by name.
    pub failed: Vec<String>,
}

/// Runs the trials of an experiment that are not finished, and writes what they found into a folder; with so
/// many trials side by side, or as many as there are threads. Once the job is to stop, every trial writes a
/// checkpoint and stops.
///
/// # Errors
/// If what is in the folder is of another experiment; if a trial cannot be written; if the job is stopped. A
/// trial whose loss explodes is no error: it is told, and the others go on.
pub fn run(
    experiment: &Experiment,
    dataset: &Dataset,
    folder: &Path,
    share: Share,
    side_by_side: Option<usize>,
    job: &Job<'_, Event>,
) -> Result<Outcome> {
    let trials = experiment.trials(&dataset.manifest().source.kind)?;
    for trial in &trials {
        trial.settings.task.columns(&dataset.manifest().labels)?;
    }
    let honours_own = |trial: &PlannedTrial| trial.settings.split.by == By::Recorded;
    if experiment.split_seeds.len() > 1 && trials.iter().any(honours_own) && dataset.has_own_split()? {
        return Err(Error::FixedSplit);
    }
    check_folder(folder)?;
    fs::create_dir_all(folder).on("create", folder)?;
    sweep_all(folder);
    let about = About::of(dataset, folder, &job.inner(|_| None))?;
    let (mut left, mut outcome) = (Vec::new(), Outcome::default());
    for (_, trial) in trials.into_iter().enumerate().filter(|(index, _)| share.has(*index)) {
        match trial.finished(folder, &about.sha256)? {
            Some(_) => outcome.finished += 1,
            None => {
                trial.check_run(folder)?;
                left.push(trial);
            }
        }
    }
    experiment.save(folder)?;
    let workers = side_by_side.unwrap_or_else(rayon::current_num_threads).min(left.len()).max(1);
    job.tell(Event::Planned { trials: left.clone(), finished: outcome.finished, side_by_side: workers });
    let sitting = Sitting { trials: &left, folder, dataset, job, outcome: Mutex::new(outcome) };
    let first_left = AtomicUsize::new(0);
    let next = || Ok(Some(first_left.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < left.len()));
    team::run(workers, folder, job.stop(), next, |index| sitting.run(index))?;
    Ok(sitting.outcome.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Trials under way, of one call of [`run`].
struct Sitting<'a> {
    trials: &'a [PlannedTrial],
    folder: &'a Path,
    dataset: &'a Dataset,
    job: &'a Job<'a, Event>,
    outcome: Mutex<Outcome>,
}

impl Sitting<'_> {
    /// Runs the trial at an index, and tells what became of it.
    fn run(&self, index: usize) -> Result<()> {
        let ran = self.train(index);
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        match ran {
            Ok(found) => {
                outcome.finished += 1;
                self.job.tell(Event::Finished { trial: index, found: Box::new(found) });
            }
            // Another process trains it, or began to while this one read the data.
            Err(Error::Busy { .. } | Error::OutputExists { .. }) => {
                outcome.elsewhere += 1;
                self.job.tell(Event::Elsewhere { trial: index });
            }
            Err(error @ (Error::Diverged { .. } | Error::NotFinite | Error::NoSamples { .. })) => {
                outcome.failed.push(self.trials[index].name());
                self.job.tell(Event::Failed { trial: index, error });
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn train(&self, index: usize) -> Result<Finished> {
        let trial = &self.trials[index];
        // Another process may have finished it since this one began.
        let sha256 = &self.dataset.manifest().identity();
        if let Some(found) = trial.finished(self.folder, sha256)? {
            return Ok(found);
        }
        let job = self.job.inner(|event| match event {
            train::Event::Started { step, .. } | train::Event::Step { step, .. } => {
                Some(Event::Step { trial: index, step })
            }
            train::Event::Read(_)
            | train::Event::Began(_)
            | train::Event::Drawn(_)
            | train::Event::Validated(_) => None,
        });
        trial.run(self.folder, self.dataset, &job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_is_in_one_share() {
        for index in 0..20 {
            let shares = (1..=6).filter(|number| Share { number: *number, of: 6 }.has(index)).count();
            assert_eq!(shares, 1);
            assert!(Share::ALL.has(index));
        }
    }
}
