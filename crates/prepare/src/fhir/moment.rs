//! Dates and times, which can be as vague as a year.

use chrono::{DateTime, Months};
use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A date or a time: when it is or begins, which day that is where it was written, if it says so, and when it
/// is over, which is the same for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at: i64,
    pub(super) day: Option<i64>,
    pub(super) over: i64,
}

/// In microseconds.
const DAY: i64 = 86_400_000_000;

pub(super) const NOT_A_TIME: &str = "expected a date or time";

impl Moment {
    /// Reads `2020`, `2020-05`, `2020-05-03` or `2020-05-03T10:00:00-05:00`.
    fn read(text: &str) -> Option<Moment> {
        let greenwich: Tz = "+00:00".parse().ok()?;
        let at = |text: &str| Some(string_to_datetime(&greenwich, text).ok()?.timestamp_micros());
        match text.len() {
            _ if !text.is_ascii() => None,
            4 => Moment::of_months(at(&format!("{text}-01-01"))?, 12),
            7 => Moment::of_months(at(&format!("{text}-01"))?, 1),
            10 => {
                let at = at(text)?;
                Some(Moment { at, day: Some(at), over: at + DAY })
            }
            _ => {
                let over = at(text)?;
                Some(Moment { at: over, day: at(text.get(..10)?), over })
            }
        }
    }

    /// Of which no day is known.
    fn of_months(at: i64, months: u32) -> Option<Moment> {
        let over = DateTime::from_timestamp_micros(at)?.checked_add_months(Months::new(months))?;
        Some(Moment { at, day: None, over: over.timestamp_micros() })
    }
}

/// When something is known, of a field that may hold anything: what is no time is none.
pub(super) fn known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let found = Value::deserialize(deserializer)?;
    Ok(found.as_str().and_then(|text| Moment::read(text.trim())).map(|moment| moment.over))
}

/// The same of a period, which is known when it begins.
pub(super) fn known_period<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    let found = Value::deserialize(deserializer)?;
    let end = |name: &str| Moment::read(found.get(name)?.as_str()?.trim());
    Ok(end("start").or_else(|| end("end")).map(|moment| moment.over))
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Moment::read(text.trim()).ok_or_else(|| D::Error::custom(NOT_A_TIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_moments_and_days_are_those_of_the_place() {
        let day = 86_400_000_000;
        let hour = day / 24;
        let moment = |at, day, over| Some(Moment { at, day, over });
        let time = 2 * day + 4 * hour;
        assert_eq!(Moment::read("1970-01-02T23:00:00-05:00"), moment(time, Some(day), time));
        assert_eq!(Moment::read("1970-01-02"), moment(day, Some(day), 2 * day));
        assert_eq!(Moment::read("1970-02"), moment(31 * day, None, 59 * day));
        assert_eq!(Moment::read("1971"), moment(365 * day, None, 730 * day));
        assert_eq!(Moment::read("9999").unwrap().day, None);
        assert!(Moment::read("9999-12-31T23:59:59.999Z").is_some());
        for text in ["", "soon", "1970-13", "1970-01-02T25:00:00Z", "1970-01-0\u{662}", "next \u{fc}ber"] {
            assert_eq!(Moment::read(text), None, "{text}");
        }
    }
}
