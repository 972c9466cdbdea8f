//! Dates and times, which can be as vague as a year.

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// A date or a time: when it is or begins, and which day that is where it was written, if it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) at: i64,
    pub(super) day: Option<i64>,
}

pub(super) const NOT_A_TIME: &str = "expected a date or time";

impl Moment {
    /// Reads `2020`, `2020-05`, `2020-05-03` or `2020-05-03T10:00:00-05:00`.
    fn read(text: &str) -> Option<Moment> {
        let greenwich: Tz = "+00:00".parse().ok()?;
        let at = |text: &str| Some(string_to_datetime(&greenwich, text).ok()?.timestamp_micros());
        match text.len() {
            _ if !text.is_ascii() => None,
            4 => Some(Moment { at: at(&format!("{text}-01-01"))?, day: None }),
            7 => Some(Moment { at: at(&format!("{text}-01"))?, day: None }),
            _ => Some(Moment { at: at(text)?, day: at(text.get(..10)?) }),
        }
    }
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
        assert_eq!(
            Moment::read("1970-01-02T23:00:00-05:00"),
            Some(Moment { at: 2 * day + 4 * hour, day: Some(day) })
        );
        assert_eq!(Moment::read("1970-01-02"), Some(Moment { at: day, day: Some(day) }));
        assert_eq!(Moment::read("1970-02"), Some(Moment { at: 31 * day, day: None }));
        assert_eq!(Moment::read("1971"), Some(Moment { at: 365 * day, day: None }));
        assert!(Moment::read("9999-12-31T23:59:59.999Z").is_some());
        for text in ["", "soon", "1970-13", "1970-01-02T25:00:00Z", "1970-01-0\u{662}", "next \u{fc}ber"] {
            assert_eq!(Moment::read(text), None, "{text}");
        }
    }
}
