//! Earlier encounters of a subject as history: how many of them a model sees, and what makes one vector of
//! their vectors. And the next one, which is never seen, but may be what is asked for.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::overrides;
use crate::record::Encounter;

/// Microseconds in a day.
pub(crate) const DAY: i64 = 86_400_000_000;

/// More visits than anybody looks back on.
const MOST_VISITS: usize = 10_000;

/// More visits than one convolution sees.
const MOST_KERNEL: usize = 64;

/// What is seen of a subject's earlier encounters.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct History {
    /// What makes one vector of the vectors of the visits; `none` for no history.
    pub aggregator: Aggregator,
    /// Visits that are seen at most, the one asked about among them: the latest.
    pub visits: usize,
    /// How many days before the question earlier visits may have begun; 0 for any number.
    pub days: f64,
    /// What the order of a subject's visits is taken from.
    pub order: Order,
    /// Visits that one convolution of `cnn` sees: a visit, and those just before it.
    pub kernel: usize,
}

impl Default for History {
    fn default() -> Self {
        History { aggregator: Aggregator::None, visits: 20, days: 0.0, order: Order::Time, kernel: 3 }
    }
}

/// What makes one vector of the vectors of a subject's visits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aggregator {
    /// Nothing: earlier visits are not seen.
    #[default]
    None,
    /// All codes of all visits in one encounter, without order and times.
    Bag,
    /// A gated recurrent unit, from the oldest visit to the newest.
    Gru,
    /// Convolutions over visits, and the largest of each.
    Cnn,
    /// Attention of the newest visit to all of them.
    Attention,
}

/// What the order of a subject's visits is taken from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Their times, which must be known.
    #[default]
    Time,
    /// The order in which the dataset has them: by their identifiers, where times are not known.
    Recorded,
}

impl Aggregator {
    /// The names of all.
    pub const NAMES: [&str; 5] = ["none", "bag", "gru", "cnn", "attention"];

    /// The aggregator of this name.
    ///
    /// # Errors
    /// If there is none.
    pub fn named(name: &str) -> Result<Self> {
        Ok(match overrides::canonical("aggregator", name, &Aggregator::NAMES)? {
            "bag" => Aggregator::Bag,
            "gru" => Aggregator::Gru,
            "cnn" => Aggregator::Cnn,
            "attention" => Aggregator::Attention,
            _ => Aggregator::None,
        })
    }

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Aggregator::None => "none",
            Aggregator::Bag => "bag",
            Aggregator::Gru => "gru",
            Aggregator::Cnn => "cnn",
            Aggregator::Attention => "attention",
        }
    }
}

impl History {
    /// Whether nothing is seen of earlier encounters.
    pub fn is_none(&self) -> bool {
        self.aggregator == Aggregator::None
    }

    /// Refuses every value that makes no sense.
    ///
    /// # Errors
    /// The first one found.
    pub(crate) fn check(&self) -> Result<()> {
        let whole = |name: &str, value: usize, most: usize| match (1..=most).contains(&value) {
            true => Ok(()),
            false => Err(Error::setting(name, value, &format!("a whole number from 1 to {most}"))),
        };
        whole("history.visits", self.visits, MOST_VISITS)?;
        whole("history.kernel", self.kernel, MOST_KERNEL)?;
        match (0.0..=100_000.0).contains(&self.days) {
            true => Ok(()),
            false => {
                Err(Error::setting("history.days", self.days, "a number from 0, which is any, to 100000"))
            }
        }
    }

    /// The next encounter after one, of those behind it in the order of the dataset, all of one subject: the
    /// first to which this one is history. One that overlaps with it, or begins at the same moment, is not.
    pub(crate) fn next<'a>(&self, encounter: &Encounter, after: &'a [Encounter]) -> Option<&'a Encounter> {
        after.iter().find(|later| self.is_followed(encounter, later))
    }

    /// Whether an encounter is over when another one begins.
    pub(crate) fn is_followed(&self, encounter: &Encounter, later: &Encounter) -> bool {
        is_over(encounter, later, self.order)
    }

    /// How far back a question looks; `None` without history.
    pub(crate) fn window(&self) -> Option<Window> {
        (!self.is_none()).then_some(Window {
            visits: self.visits,
            microseconds: (self.days > 0.0).then_some((self.days * DAY as f64) as i64),
            order: self.order,
            bag: self.aggregator == Aggregator::Bag,
        })
    }
}

/// Which earlier encounters a question sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    visits: usize,
    microseconds: Option<i64>,
    order: Order,
    /// Whether they become one encounter.
    pub(crate) bag: bool,
}

impl Window {
    /// The encounters that are seen of those before one in the order of the dataset, all of one subject: the
    /// latest first.
    pub(crate) fn of<'a, I: DoubleEndedIterator<Item = &'a Encounter>>(
        self,
        before: I,
        asked: &'a Encounter,
    ) -> impl Iterator<Item = &'a Encounter> + use<'a, I> {
        self.all_of(before, asked).take(self.visits - 1)
    }

    /// The same and one more: the one that is seen where another had never been recorded.
    pub(crate) fn one_more_of<'a, I: DoubleEndedIterator<Item = &'a Encounter>>(
        self,
        before: I,
        asked: &'a Encounter,
    ) -> impl Iterator<Item = &'a Encounter> + use<'a, I> {
        self.all_of(before, asked).take(self.visits)
    }

    /// The same, however many there are.
    fn all_of<'a, I: DoubleEndedIterator<Item = &'a Encounter>>(
        self,
        before: I,
        asked: &'a Encounter,
    ) -> impl Iterator<Item = &'a Encounter> + use<'a, I> {
        before.rev().filter(move |earlier| self.sees(earlier, asked))
    }

    /// Whether there are more encounters to be seen than there may be.
    pub(crate) fn is_cut(self, before: &[Encounter], asked: &Encounter) -> bool {
        self.all_of(before.iter(), asked).nth(self.visits - 1).is_some()
    }

    /// Whether an encounter is over, and not too long ago, when the question about another one is asked.
    /// One that overlaps with it is not seen: its codes may be of later.
    fn sees(self, earlier: &Encounter, asked: &Encounter) -> bool {
        let past = || asked.start.zip(earlier.start).map_or(0, |(asked, start)| asked - start);
        is_over(earlier, asked, self.order) && self.microseconds.is_none_or(|most| past() <= most)
    }
}

/// Whether an encounter is over when another one, which comes after it in a dataset, begins. Where times are
/// not known, the order of the dataset says so if that is what counts.
fn is_over(earlier: &Encounter, later: &Encounter, order: Order) -> bool {
    let (Some(start), Some(later)) = (earlier.start, later.start) else { return order == Order::Recorded };
    let end = earlier.end.unwrap_or(start).max(start);
    start < later && end <= later
}

/// Buckets of times between visits: one for times that are not known, one for less than a day, and then one
/// for each doubling of the days.
pub(crate) const TIME_BUCKETS: usize = 18;

/// The bucket of a time in microseconds: 0 where it is not known, 1 below a day, 2 below two, 3 below four.
///
/// A time is never negative: what was later is not seen.
pub(crate) fn time_bucket(microseconds: Option<i64>) -> u32 {
    let Some(days) = microseconds.map(|time| time.max(0) / DAY) else { return 0 };
    let doublings = if days == 0 { 0 } else { days.ilog2() + 1 };
    (1 + doublings).min(TIME_BUCKETS as u32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    fn encounter(start: i64, end: i64) -> Encounter {
        let (start, end) = (Some(start * DAY), Some(end * DAY));
        Encounter { start, end, ..Encounter::new(PerKind::default()) }
    }

    fn window(visits: usize, days: f64) -> Window {
        let history = History { aggregator: Aggregator::Gru, visits, days, ..History::default() };
        history.window().unwrap()
    }

    fn starts(window: Window, before: &[Encounter], asked: &Encounter) -> Vec<i64> {
        window.of(before.iter(), asked).map(|encounter| encounter.start.unwrap() / DAY).collect()
    }

    #[test]
    fn the_latest_encounters_that_are_over_are_seen() {
        let before =
            [encounter(1, 2), encounter(5, 50), encounter(7, 9), encounter(8, 20), encounter(20, 20)];
        let asked = encounter(20, 30);
        assert_eq!(starts(window(20, 0.0), &before, &asked), [8, 7, 1], "5 goes on, 20 is not before");
        assert_eq!(starts(window(3, 0.0), &before, &asked), [8, 7], "the one asked about is the third");
        assert_eq!(starts(window(20, 13.0), &before, &asked), [8, 7]);
        assert_eq!(starts(window(1, 0.0), &before, &asked), [0i64; 0]);
    }

    #[test]
    fn the_next_encounter_begins_when_this_one_is_over() {
        let history = History::default();
        let after = [encounter(5, 6), encounter(7, 7), encounter(9, 9), encounter(12, 15)];
        let next = |encounter: &Encounter| history.next(encounter, &after).map(|of| of.start.unwrap() / DAY);
        assert_eq!(next(&encounter(5, 9)), Some(9), "5 begins at the same moment, 7 overlaps");
        assert_eq!(next(&encounter(3, 13)), None);
        assert_eq!(history.next(&encounter(3, 3), &[]), None);
    }

    #[test]
    fn without_times_only_the_recorded_order_counts() {
        let unknown = || Encounter::new(PerKind::default());
        let (before, asked) = ([unknown(), unknown()], unknown());
        assert_eq!(window(20, 0.0).of(before.iter(), &asked).count(), 0);
        let recorded = Window { order: Order::Recorded, ..window(20, 0.0) };
        assert_eq!(recorded.of(before.iter(), &asked).count(), 2);
        let after = [unknown()];
        assert_eq!(History::default().next(&asked, &after), None);
        let recorded = History { order: Order::Recorded, ..History::default() };
        assert_eq!(recorded.next(&asked, &after), Some(&after[0]));
    }

    #[test]
    fn times_are_bucketed_by_doublings_of_days() {
        let bucket = |days: f64| time_bucket(Some((days * DAY as f64) as i64));
        assert_eq!(time_bucket(None), 0);
        let expected = [(0.0, 1), (0.9, 1), (1.0, 2), (1.9, 2), (2.0, 3), (3.9, 3), (4.0, 4), (365.0, 10)];
        for (days, expected) in expected {
            assert_eq!(bucket(days), expected, "{days} days");
        }
        assert_eq!(bucket(1e5), TIME_BUCKETS as u32 - 1);
        assert_eq!(bucket(-3.0), 1);
    }
}
