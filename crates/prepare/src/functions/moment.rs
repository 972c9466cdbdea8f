//! `moment(text)`: a date or a time as microseconds, in UTC where it says its zone; `day(text)`: the day of
//! it, there where it was recorded. Null where the text is neither, or outside of the years from 1 to 9999,
//! beyond which arithmetic with dates overflows.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDate, NaiveTime, Utc};
use datafusion::arrow::array::{ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Moment {
    is_day: bool,
    signature: Signature,
}

impl Moment {
    pub(super) fn of_time() -> Self {
        Moment { is_day: false, signature: Signature::any(1, Volatility::Immutable) }
    }

    pub(super) fn of_day() -> Self {
        Moment { is_day: true, signature: Signature::any(1, Volatility::Immutable) }
    }
}

/// A text as a moment, if it is one.
pub(crate) fn moment(text: &str) -> Option<DateTime<Utc>> {
    let moment = string_to_datetime(&Utc, &dashed(text.trim_matches(' '))).ok()?;
    (1..=9999).contains(&moment.year()).then_some(moment)
}

/// The day of a moment, as it is written before the time.
fn day(text: &str) -> Option<DateTime<Utc>> {
    moment(text)?;
    let day: NaiveDate = dashed(text.trim_matches(' ')).get(..10)?.parse().ok()?;
    Some(day.and_time(NaiveTime::MIN).and_utc())
}

/// 20200131 as 2020-01-31.
fn dashed(text: &str) -> Cow<'_, str> {
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("{}-{}-{}", &text[..4], &text[4..6], &text[6..]).into();
    }
    text.into()
}

impl ScalarUDFImpl for Moment {
    fn name(&self) -> &'static str {
        if self.is_day { "day" } else { "moment" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Timestamp(TimeUnit::Microsecond, None))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = ColumnarValue::values_to_arrays(&arguments.args)?.swap_remove(0);
        let texts = cast(&array, &DataType::Utf8View)?;
        let read = if self.is_day { day } else { moment };
        let moments: TimestampMicrosecondArray =
            texts.as_string_view().iter().map(|text| Some(read(text?)?.timestamp_micros())).collect();
        Ok(ColumnarValue::Array(Arc::new(moments) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(text: &str) -> [Option<String>; 2] {
        [moment(text), day(text)].map(|found| found.map(|found| found.format("%Y-%m-%d %H:%M").to_string()))
    }

    #[test]
    fn a_day_is_that_of_the_zone_in_which_it_was_recorded() {
        let found = |moment: &str, day: &str| [moment, day].map(|text| Some(text.to_owned()));
        assert_eq!(both("20200131"), found("2020-01-31 00:00", "2020-01-31 00:00"));
        assert_eq!(both(" 2020-01-31 10:30:00 "), found("2020-01-31 10:30", "2020-01-31 00:00"));
        assert_eq!(both("2020-01-31T23:30:00-05:00"), found("2020-02-01 04:30", "2020-01-31 00:00"));
        assert_eq!(both("2020-02-01T00:30:00+01:00"), found("2020-01-31 23:30", "2020-02-01 00:00"));
        for text in ["", "2020-13-01", "yesterday", "+12020-01-01", "0000-01-01", "20201"] {
            assert_eq!(both(text), [None, None], "{text}");
        }
    }
}
