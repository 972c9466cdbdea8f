//! All trials of an experiment, some of them side by side.
//!
//! Trials side by side, each on one thread, finish sooner than one after another on all threads: a training step is short, and at
//! its end threads wait for each other. So there are as many as there are threads, or as trials are left.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::data::check_folder;
use super::trial::{Finished, Trial};
use super::{About, Experiment};
use crate::dataset::Dataset;
use crate::error::{Error, OnPath, Result};
use crate::files::sweep_all;
use crate::split::By;
use crate::train;

/// Which trials to run: every so-manieth.
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

    fn has(self, place: usize) -> bool {
        place % self.of == self.number - 1
    }
}

/// What happens on the way. Trials are told by their place in the list that [`Event::Planned`] has.
#[derive(Debug)]
pub enum Event<'a> {
    /// These are to be run, with so many steps each, so many of them side by side.
    Planned {
        /// The trials.
        trials: &'a [Trial],
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
        found: &'a Finished,
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
        error: &'a Error,
    },
}

/// Who hears of it, and who can stop it.
#[derive(Clone, Copy)]
pub struct Watch<'a> {
    /// Hears what happens, from any thread.
    pub tell: &'a (dyn Fn(Event<'_>) + Sync),
    /// Once true, every trial writes a checkpoint and stops.
    pub stop: &'a AtomicBool,
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

/// Runs the trials of an experiment that are not finished, and writes what they found into a folder; with so many trials side by
/// side, or as many as there are threads.
///
/// # Errors
/// If what is in the folder is of another experiment; if a trial cannot be written; if the user stops it. A trial
/// whose loss explodes is no error: it is told, and the others go on.
pub fn run(
    experiment: &Experiment,
    dataset: &Dataset,
    folder: &Path,
    share: Share,
    side_by_side: Option<usize>,
    watch: Watch<'_>,
) -> Result<Outcome> {
    let proceed = |_| if watch.stop.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) };
    let trials = experiment.trials(&dataset.manifest().source.kind)?;
    for trial in &trials {
        trial.settings.task.columns(&dataset.manifest().labels)?;
    }
    let honours_own = |trial: &Trial| trial.settings.split.by == By::Recorded;
    if experiment.split_seeds.len() > 1 && trials.iter().any(honours_own) && dataset.has_own_split()? {
        return Err(Error::FixedSplit);
    }
    check_folder(folder)?;
    fs::create_dir_all(folder).on("create", folder)?;
    sweep_all(folder);
    let about = About::of(dataset, folder, &proceed)?;
    let (mut left, mut outcome) = (Vec::new(), Outcome::default());
    for (_, trial) in trials.into_iter().enumerate().filter(|(place, _)| share.has(*place)) {
        match trial.finished(folder, &about.sha256)? {
            Some(_) => outcome.finished += 1,
            None => {
                trial.check_run(folder)?;
                left.push(trial);
            }
        }
    }
    experiment.save(folder)?;
    let threads = rayon::current_num_threads();
    let workers = side_by_side.unwrap_or(threads).min(left.len()).max(1);
    (watch.tell)(Event::Planned { trials: &left, finished: outcome.finished, side_by_side: workers });
    let team = Team {
        trials: &left,
        next: AtomicUsize::new(0),
        folder,
        dataset,
        watch,
        outcome: Mutex::new(outcome),
        error: Mutex::new(None),
    };
    std::thread::scope(|scope| {
        for worker in 0..workers {
            // Threads that cannot be shared out evenly go to the first workers.
            let (team, share) = (&team, threads / workers + usize::from(worker < threads % workers));
            scope.spawn(move || team.work(share.max(1)));
        }
    });
    match team.error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(team.outcome.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// Those who share the work.
struct Team<'a> {
    trials: &'a [Trial],
    next: AtomicUsize,
    folder: &'a Path,
    dataset: &'a Dataset,
    watch: Watch<'a>,
    outcome: Mutex<Outcome>,
    /// The first error that ends everything.
    error: Mutex<Option<Error>>,
}

impl Team<'_> {
    /// Runs one trial after another until none is left.
    fn work(&self, threads: usize) {
        let pool = match train::threads(threads, self.folder) {
            Ok(pool) => pool,
            Err(error) => return self.fail(error),
        };
        loop {
            let place = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(trial) = self.trials.get(place) else { return };
            if self.is_over() {
                return;
            }
            let ran = pool.install(|| self.run(trial, place));
            let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
            match ran {
                Ok(found) => {
                    outcome.finished += 1;
                    (self.watch.tell)(Event::Finished { trial: place, found: &found });
                }
                // Another process trains it, or began to while this one read the data.
                Err(Error::Busy { .. } | Error::OutputExists { .. }) => {
                    outcome.elsewhere += 1;
                    (self.watch.tell)(Event::Elsewhere { trial: place });
                }
                Err(error @ (Error::Diverged { .. } | Error::NotFinite | Error::NoSamples { .. })) => {
                    outcome.failed.push(trial.name());
                    (self.watch.tell)(Event::Failed { trial: place, error: &error });
                }
                Err(error) => return self.fail(error),
            }
        }
    }

    fn run(&self, trial: &Trial, place: usize) -> Result<Finished> {
        // Another process may have finished it since this one began.
        let sha256 = &self.dataset.manifest().files.encounters.sha256;
        if let Some(found) = trial.finished(self.folder, sha256)? {
            return Ok(found);
        }
        let mut tell = |event: train::Event<'_>| match event {
            train::Event::Started { step, .. } | train::Event::Step { step, .. } => {
                (self.watch.tell)(Event::Step { trial: place, step });
            }
            train::Event::Read(_) | train::Event::Validated(_) => {}
        };
        trial.run(self.folder, self.dataset, self.watch.stop, &mut tell)
    }

    fn is_over(&self) -> bool {
        let failed = self.error.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if self.watch.stop.load(Ordering::Relaxed) {
            self.fail(Error::Interrupted);
        }
        failed || self.watch.stop.load(Ordering::Relaxed)
    }

    /// Keeps the first error; the others end after the trial that they are at.
    fn fail(&self, error: Error) {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trial_is_in_one_share() {
        for place in 0..20 {
            let shares = (1..=6).filter(|number| Share { number: *number, of: 6 }.has(place)).count();
            assert_eq!(shares, 1);
            assert!(Share::ALL.has(place));
        }
    }
}
