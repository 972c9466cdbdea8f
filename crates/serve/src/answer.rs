//! Answers as JSON, in bounded memory: what all clients have not taken yet has a limit, not only what one is
//! sent.

use std::sync::Arc;

use axum::body::Bytes;

use crate::body::{Budget, Share};
use crate::problem::Problem;

/// What stands before and after the answers of a request.
pub(crate) type Envelope = [&'static str; 2];

/// Bytes of an answer that is not counted: the operating system takes as much at once, and connections have a
/// limit.
const SHORT: usize = 64 << 10;

/// The text of an answer while it grows, one JSON object for each question.
pub(crate) struct Text {
    bytes: Vec<u8>,
    is_first: bool,
    end: &'static str,
    most: usize,
}

impl Text {
    pub(crate) fn new([start, end]: Envelope, most: usize) -> Self {
        Text { bytes: start.into(), is_first: true, end, most }
    }

    /// Appends the answers to the next questions.
    pub(crate) fn extend(
        &mut self,
        answers: impl IntoIterator<Item = Result<Vec<u8>, Problem>>,
    ) -> Result<(), Problem> {
        for answer in answers {
            if !std::mem::take(&mut self.is_first) {
                self.bytes.push(b',');
            }
            self.bytes.extend(answer?);
            if self.bytes.len() > self.most {
                return Err(Problem::LongAnswer { most: self.most });
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.extend(self.end.as_bytes());
        self.bytes
    }
}

/// A text with its share of the budget, which is given back when the last byte was sent or the client is
/// gone.
struct Held {
    text: Vec<u8>,
    _share: Share,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

/// The text as a body; refused if clients have too much to take already.
pub(crate) fn held(text: Vec<u8>, budget: &Arc<Budget>) -> Result<Bytes, Problem> {
    if text.len() <= SHORT {
        return Ok(text.into());
    }
    let mut share = Share::of(budget);
    share.grow(text.len())?;
    Ok(Bytes::from_owner(Held { text, _share: share }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_stand_in_their_envelope_with_commas_between() {
        let mut text = Text::new(["[", "]"], 10);
        text.extend([Ok(b"1".to_vec())]).unwrap();
        text.extend([Ok(b"2".to_vec()), Ok(b"3".to_vec())]).unwrap();
        assert_eq!(text.finish(), b"[1,2,3]");
        let mut long = Text::new(["[", "]"], 3);
        let refused = long.extend([Ok(b"1".to_vec()), Ok(b"2".to_vec())]);
        assert_eq!(refused, Err(Problem::LongAnswer { most: 3 }));
        let mut wrong = Text::new(["[", "]"], 10);
        assert_eq!(wrong.extend([Err(Problem::NoAnswer)]), Err(Problem::NoAnswer));
    }

    #[test]
    fn what_clients_have_not_taken_is_bounded() {
        let budget = Budget::new(3 * SHORT);
        let held = |bytes: usize| held(vec![0; bytes], &budget);
        let large = held(2 * SHORT).unwrap();
        assert_eq!(held(2 * SHORT).err(), Some(Problem::Busy));
        assert!(held(SHORT).is_ok(), "short answers are always taken on");
        let half_sent = large.slice(SHORT..);
        drop(large);
        assert_eq!(held(2 * SHORT).err(), Some(Problem::Busy), "the rest is still to be sent");
        drop(half_sent);
        assert!(held(2 * SHORT).is_ok());
    }
}
