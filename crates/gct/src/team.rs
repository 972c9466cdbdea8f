//! Workers that take one thing after another from a common store, each with threads of its own.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::error::{OnPath, Result};
use crate::job::Stop;

/// Has so many workers each do what `next` hands out, one after another, until there is nothing left. The
/// threads of the caller are shared among them: those that cannot be shared evenly go to the first ones.
/// `folder` is what errors about threads name.
///
/// # Errors
/// The first one; [`crate::Error::Interrupted`] if a stop is requested. The other workers then end after what
/// they are at.
pub(crate) fn run<T: Send>(
    workers: usize,
    folder: &Path,
    stop: &Stop,
    next: impl Fn() -> Result<Option<T>> + Sync,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let failed = Mutex::new(None);
    let has_failed = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let work_on = |threads: usize| -> Result<()> {
        let pool = pool(threads, folder)?;
        while !has_failed() {
            stop.check()?;
            let Some(one) = next()? else { break };
            pool.install(|| work(one))?;
        }
        Ok(())
    };
    let fail = |error| {
        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    };
    let all = rayon::current_num_threads();
    std::thread::scope(|scope| {
        for worker in 0..workers {
            let (work_on, fail) = (&work_on, &fail);
            scope.spawn(move || work_on(share(all, workers, worker)).unwrap_or_else(fail));
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// How many of all threads a worker has: at least one.
fn share(threads: usize, workers: usize, worker: usize) -> usize {
    (threads / workers + usize::from(worker < threads % workers)).max(1)
}

fn pool(threads: usize, folder: &Path) -> Result<rayon::ThreadPool> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(std::io::Error::other).on("start threads for", folder)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::error::Error;

    /// Runs a team on the numbers below a bound.
    fn team(
        workers: usize,
        below: usize,
        stop: &Stop,
        work: impl Fn(usize) -> Result<()> + Sync,
    ) -> Result<()> {
        let numbers = Mutex::new(0..below);
        run(workers, Path::new("F"), stop, || Ok(numbers.lock().unwrap().next()), work)
    }

    #[test]
    fn everything_is_done_once() {
        for workers in [1, 3, 8] {
            let done = Mutex::new(Vec::new());
            let note = |number| {
                done.lock().unwrap().push(number);
                Ok(())
            };
            team(workers, 100, &Stop::new(), note).unwrap();
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..100).collect::<Vec<_>>(), "{workers} workers");
        }
    }

    #[test]
    fn an_error_ends_all() {
        let done = AtomicUsize::new(0);
        let work = |number| match number {
            5 => Err(Error::FixedSplit),
            _ => {
                done.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
        };
        assert!(matches!(team(3, 1_000_000, &Stop::new(), work), Err(Error::FixedSplit)));
        assert!(done.into_inner() < 1_000_000 - 1);
        // One worker cannot go on to another error.
        let fail = |number| Err(if number == 0 { Error::FixedSplit } else { Error::NotFinite });
        assert!(matches!(team(1, 2, &Stop::new(), fail), Err(Error::FixedSplit)));
        let nothing = || Err::<Option<()>, _>(Error::FixedSplit);
        let refused = run(2, Path::new("F"), &Stop::new(), nothing, |()| unreachable!());
        assert!(matches!(refused, Err(Error::FixedSplit)));
    }

    #[test]
    fn a_stop_ends_all() {
        let (stop, done) = (Stop::new(), AtomicUsize::new(0));
        let work = |number| {
            if number == 5 {
                stop.request();
            }
            done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        assert!(matches!(team(3, 1_000_000, &stop, work), Err(Error::Interrupted)));
        assert!(done.into_inner() < 1_000_000);
        assert!(matches!(team(3, 1, &stop, |_| unreachable!()), Err(Error::Interrupted)));
    }

    #[test]
    fn threads_that_cannot_be_shared_evenly_go_to_the_first_workers() {
        let shares = |threads, workers| -> Vec<usize> {
            (0..workers).map(|worker| share(threads, workers, worker)).collect()
        };
        assert_eq!(shares(7, 3), [3, 2, 2]);
        assert_eq!(shares(8, 2), [4, 4]);
        assert_eq!(shares(2, 3), [1, 1, 1]);
        let sizes = Mutex::new(Vec::new());
        let both_begun = Barrier::new(2);
        let note = |_| {
            sizes.lock().unwrap().push(rayon::current_num_threads());
            both_begun.wait();
            Ok(())
        };
        rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap().install(|| {
            team(2, 2, &Stop::new(), note).unwrap();
        });
        let mut sizes = sizes.into_inner().unwrap();
        sizes.sort_unstable();
        assert_eq!(sizes, [1, 2]);
    }
}
