//! Progress and stopping: the one protocol of everything that takes long.
//!
//! A function that takes long has a `Job`: it tells the job what happens, and ends with
//! `Error::Interrupted` once the job is to stop. Which events there are depends on the work, such as
//! `train::Event`; loops over encounters tell how many are done, as `u64`. Work without events has the
//! `Stop` alone.
//!
//! ```
//! use gct::job::{Job, Stop};
//!
//! fn count(to: u64, job: &Job<'_, u64>) -> gct::Result<u64> {
//!     for done in 1..=to {
//!         job.advance(done)?;
//!     }
//!     Ok(to)
//! }
//!
//! assert_eq!(count(3, &Job::silent())?, 3);
//! let stop = Stop::new();
//! let job = Job::new(&stop, |done| if done == 2 { stop.request() });
//! assert!(matches!(count(3, &job), Err(gct::Error::Interrupted)));
//! # Ok::<(), gct::Error>(())
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Error, Result};

/// A request to stop, which any thread can make. A clone is the same request.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Not requested yet.
    pub fn new() -> Self {
        Stop::default()
    }

    /// Requests it, for good.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Ends work that is to stop: `stop.check()?`.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once it was requested.
    pub fn check(&self) -> Result<()> {
        if self.is_requested() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// The flag itself, for the handler of a signal: true once it was requested.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

/// Who hears of work with events `E`, and when it is to stop.
pub struct Job<'a, E> {
    tell: Box<dyn Fn(E) + Sync + 'a>,
    stop: Stop,
}

impl<'a, E> Job<'a, E> {
    /// Calls `tell` with every event, from any thread.
    pub fn new(stop: &Stop, tell: impl Fn(E) + Sync + 'a) -> Self {
        Job { tell: Box::new(tell), stop: stop.clone() }
    }

    /// Nobody hears of it, and nobody stops it.
    pub fn silent() -> Self {
        Job::new(&Stop::new(), |_| {})
    }

    /// Tells what happens.
    pub fn tell(&self, event: E) {
        (self.tell)(event);
    }

    /// Ends work that is to stop: `job.check()?`.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once a stop was requested.
    pub fn check(&self) -> Result<()> {
        self.stop.check()
    }

    /// [`Job::tell`], then [`Job::check`].
    ///
    /// # Errors
    /// As [`Job::check`].
    pub fn advance(&self, event: E) -> Result<()> {
        self.tell(event);
        self.check()
    }

    /// What it is stopped by.
    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    /// A job inside of this one, which stops with it. Its events are told as those that `outer` makes of
    /// them.
    pub fn inner<'s, I>(&'s self, outer: impl Fn(I) -> Option<E> + Sync + 's) -> Job<'s, I> {
        Job::new(&self.stop, move |event| {
            if let Some(event) = outer(event) {
                self.tell(event);
            }
        })
    }
}

impl<E> fmt::Debug for Job<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("stop", &self.stop).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_request_is_seen_by_every_clone() {
        let stop = Stop::new();
        let (other, flag) = (stop.clone(), stop.flag());
        stop.check().unwrap();
        other.request();
        assert!(stop.is_requested() && flag.load(Ordering::Relaxed));
        assert!(matches!(stop.check(), Err(Error::Interrupted)));
        assert!(!Stop::new().is_requested(), "another one is not");
    }

    #[test]
    fn an_event_is_told_before_the_work_ends() {
        let (stop, told) = (Stop::new(), Mutex::new(Vec::new()));
        let job = Job::new(&stop, |event: u64| told.lock().unwrap().push(event));
        job.advance(1).unwrap();
        stop.request();
        assert!(matches!(job.advance(2), Err(Error::Interrupted)));
        assert_eq!(*told.lock().unwrap(), [1, 2]);
        Job::silent().advance(3).unwrap();
    }

    #[test]
    fn an_inner_job_tells_the_outer_one_and_stops_with_it() {
        let (stop, told) = (Stop::new(), Mutex::new(Vec::new()));
        let job = Job::new(&stop, |event: String| told.lock().unwrap().push(event));
        let inner = job.inner(|event: u64| (event > 1).then(|| event.to_string()));
        (1..4).for_each(|event| inner.tell(event));
        inner.check().unwrap();
        stop.request();
        assert!(inner.check().is_err());
        assert_eq!(*told.lock().unwrap(), ["2", "3"]);
    }
}
