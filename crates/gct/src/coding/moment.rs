//! Times of an encounter, as they are recorded.

use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, NaiveTime};

use crate::record::Encounter;

/// How a time with a day may go on. A zone is taken from those that have one.
const FORMATS: [&str; 4] =
    ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];

/// A date or a time of ISO 8601 in microseconds since 1970-01-01, in UTC where it says its zone. `None` if it
/// is neither, or outside of the years from 1 to 9999.
///
/// ```
/// use gct::coding::moment;
///
/// let start = moment("2026-03-01T08:30").unwrap();
/// assert_eq!(start - moment("2026-03-01").unwrap(), 8 * 3_600_000_000 + 1_800_000_000);
/// assert_eq!(moment("2026-03-01 09:30:00+01:00"), Some(start));
/// assert_eq!(moment("yesterday"), None);
/// ```
pub fn moment(text: &str) -> Option<i64> {
    let text = text.trim_matches(' ');
    let zoned = || Some(DateTime::parse_from_rfc3339(text).ok()?.naive_utc());
    let timed = || FORMATS.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
    let day = || Some(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_time(NaiveTime::MIN));
    let moment = zoned().or_else(timed).or_else(day)?;
    (1..=9999).contains(&moment.year()).then(|| moment.and_utc().timestamp_micros())
}

/// The times of an encounter as texts; nothing where one is not known.
#[derive(Default)]
pub struct RecordedTimes<'a> {
    /// When it began.
    pub start: Option<&'a str>,
    /// When it ended.
    pub end: Option<&'a str>,
    /// The moment up to which its codes are known.
    pub prediction_time: Option<&'a str>,
}

/// What is wrong with the times of an encounter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongTime {
    /// The one of this name is neither a date nor a time.
    NotATime(&'static str),
    /// It ends before it begins.
    EndBeforeStart,
}

impl RecordedTimes<'_> {
    /// An encounter with these times.
    ///
    /// # Errors
    /// If one is none, or the end is before the start.
    pub fn of(&self, encounter: Encounter) -> Result<Encounter, WrongTime> {
        let time = |name: &'static str, text: Option<&str>| match text.map(moment) {
            Some(None) => Err(WrongTime::NotATime(name)),
            known => Ok(known.flatten()),
        };
        let (start, end) = (time("start", self.start)?, time("end", self.end)?);
        let prediction_time = time("prediction_time", self.prediction_time)?;
        match start.zip(end) {
            Some((start, end)) if end < start => Err(WrongTime::EndBeforeStart),
            _ => Ok(Encounter { start, end, prediction_time, ..encounter }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    #[test]
    fn a_moment_is_a_date_or_a_time() {
        let hour = 3_600_000_000;
        for (text, expected) in [
            ("1970-01-01", Some(0)),
            (" 1970-01-01T01:00 ", Some(hour)),
            ("1970-01-01 01:00:00", Some(hour)),
            ("1970-01-01T00:00:01.5", Some(1_500_000)),
            ("1970-01-01T01:00:00Z", Some(hour)),
            ("1970-01-01T01:00:00+02:00", Some(-hour)),
            ("1969-12-31", Some(-24 * hour)),
            ("0000-12-31", None),
            ("10000-01-01", None),
            ("1970-02-30", None),
            ("01.02.1970", None),
            ("1970", None),
            ("", None),
        ] {
            assert_eq!(moment(text), expected, "{text}");
        }
    }

    #[test]
    fn an_encounter_ends_after_it_begins() {
        let encounter = || Encounter::new(PerKind::default());
        let times = |start, end| RecordedTimes { start: Some(start), end: Some(end), ..Default::default() };
        let timed = times("1970-01-01", "1970-01-01").of(encounter()).unwrap();
        assert_eq!((timed.start, timed.end, timed.prediction_time), (Some(0), Some(0), None));
        assert_eq!(times("1970-01-02", "1970-01-01").of(encounter()), Err(WrongTime::EndBeforeStart));
        assert_eq!(times("1970-01-02", "soon").of(encounter()), Err(WrongTime::NotATime("end")));
        let timed = RecordedTimes { prediction_time: Some("1970-01-01"), ..Default::default() };
        assert_eq!(timed.of(encounter()).unwrap().prediction_time, Some(0));
        assert_eq!(RecordedTimes::default().of(encounter()), Ok(encounter()));
    }
}
