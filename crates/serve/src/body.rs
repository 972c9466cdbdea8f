//! Request bodies, in bounded memory: what all clients send at once has a limit too, not only what one sends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, HttpBody};
use http_body_util::BodyExt;

use crate::problem::Problem;

/// The bytes that all bodies, or all answers, together may have.
pub(crate) struct Budget {
    used: AtomicUsize,
    most: usize,
}

impl Budget {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Budget { used: AtomicUsize::new(0), most })
    }
}

/// What one of them has of the budget. It is given back when this is dropped.
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Nothing yet.
    pub(crate) fn of(budget: &Arc<Budget>) -> Self {
        Share { budget: budget.clone(), bytes: 0 }
    }

    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        self.bytes += bytes;
        let before = self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        if before + bytes > self.budget.most { Err(Problem::Busy) } else { Ok(()) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Reads a body of at most so many bytes; refuses it at once if it says that it has more.
pub(crate) async fn read(
    mut body: Body,
    most: usize,
    budget: &Arc<Budget>,
) -> Result<(Vec<u8>, Share), Problem> {
    let too_large = Problem::TooLarge { most };
    if body.size_hint().lower() > most as u64 {
        return Err(too_large);
    }
    let mut share = Share::of(budget);
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Problem::CutOff)?.into_data() else { continue };
        if data.len() > most - bytes.len() {
            return Err(too_large);
        }
        share.grow(data.len())?;
        bytes.extend_from_slice(&data);
    }
    Ok((bytes, share))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, most: usize, budget: &Arc<Budget>) -> Result<(Vec<u8>, Share), Problem> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(super::read(Body::from(text), most, budget))
    }

    #[test]
    fn a_body_has_a_limit_and_all_bodies_have_one() {
        let budget = Budget::new(10);
        let (bytes, share) = read("sixsix", 6, &budget).map_err(|problem| problem.to_string()).unwrap();
        assert_eq!(bytes, b"sixsix");
        assert_eq!(read("sevenen", 6, &budget).err(), Some(Problem::TooLarge { most: 6 }));
        assert_eq!(read("fives", 6, &budget).err(), Some(Problem::Busy), "six are in use");
        drop(share);
        assert!(read("fives", 6, &budget).is_ok(), "all were given back");
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
