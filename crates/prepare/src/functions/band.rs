//! `age_band(years)`, `visits_band(count)` and `days_band(days)`: the band that a number lies in, as text:
//! `65-74`, `2`, `8-30`, `90+`. Null for numbers below 0, which say that something is wrong. And
//! `years_between(birth, time)`: how many birthdays there were between two moments.

use std::sync::Arc;

use chrono::{DateTime, Datelike, Utc};
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, StringViewArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, TimeUnit, TimestampMicrosecondType};
use datafusion::common::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

/// Where the bands of ages begin.
const AGES: &[u32] = &[0, 5, 15, 25, 35, 45, 55, 65, 75, 85, 90];

/// Where the bands of numbers of visits begin.
const VISITS: &[u32] = &[0, 1, 2, 3, 5, 10];

/// Where the bands of days between visits begin.
const DAYS: &[u32] = &[0, 2, 8, 31, 91, 366];

/// The band of a number among bands that begin at these.
fn band(number: f64, starts: &[u32]) -> Option<String> {
    let index = starts.partition_point(|start| f64::from(*start) <= number).checked_sub(1)?;
    let first = starts[index];
    Some(match starts.get(index + 1) {
        Some(next) if *next == first + 1 => first.to_string(),
        Some(next) => format!("{first}-{}", next - 1),
        None => format!("{first}+"),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Band {
    name: &'static str,
    starts: &'static [u32],
    signature: Signature,
}

impl Band {
    fn new(name: &'static str, starts: &'static [u32]) -> Self {
        Band { name, starts, signature: Signature::any(1, Volatility::Immutable) }
    }

    pub(super) fn of_age() -> Self {
        Band::new("age_band", AGES)
    }

    pub(super) fn of_visits() -> Self {
        Band::new("visits_band", VISITS)
    }

    pub(super) fn of_days() -> Self {
        Band::new("days_band", DAYS)
    }
}

impl ScalarUDFImpl for Band {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8View)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let array = ColumnarValue::values_to_arrays(&arguments.args)?.swap_remove(0);
        let numbers = cast(&array, &DataType::Float64)?;
        let bands = numbers.as_primitive::<Float64Type>().iter().map(|number| band(number?, self.starts));
        Ok(ColumnarValue::Array(Arc::new(bands.collect::<StringViewArray>()) as ArrayRef))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct YearsBetween(Signature);

impl Default for YearsBetween {
    fn default() -> Self {
        YearsBetween(Signature::any(2, Volatility::Immutable))
    }
}

/// How many birthdays there were, both moments in microseconds; below 0 before birth.
fn years_between(birth: i64, time: i64) -> Option<i64> {
    let [birth, time] =
        [birth, time].map(|moment| DateTime::<Utc>::from_timestamp_micros(moment).map(|at| at.date_naive()));
    let (birth, time) = (birth?, time?);
    let is_before = (time.month(), time.day()) < (birth.month(), birth.day());
    Some(i64::from(time.year() - birth.year()) - i64::from(is_before))
}

impl ScalarUDFImpl for YearsBetween {
    fn name(&self) -> &'static str {
        "years_between"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let moment = DataType::Timestamp(TimeUnit::Microsecond, None);
        let arrays = ColumnarValue::values_to_arrays(&arguments.args)?;
        let (births, times) = (cast(&arrays[0], &moment)?, cast(&arrays[1], &moment)?);
        let births = births.as_primitive::<TimestampMicrosecondType>();
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let years = births.iter().zip(times).map(|(birth, time)| years_between(birth?, time?));
        Ok(ColumnarValue::Array(Arc::new(years.collect::<Int64Array>()) as ArrayRef))
    }
}

#[cfg(test)]
mod tests {
    use super::super::moment;
    use super::*;

    fn bands(numbers: &[f64], starts: &[u32]) -> Vec<String> {
        numbers.iter().map(|number| band(*number, starts).unwrap_or_default()).collect()
    }

    #[test]
    fn ages_are_in_bands_of_ten_years_and_the_old_are_together() {
        let ages = [0.0, 4.9, 5.0, 14.0, 15.0, 64.0, 65.0, 74.0, 84.0, 85.0, 89.0, 90.0, 300.0];
        let found = bands(&ages, AGES);
        let expected = [
            "0-4", "0-4", "5-14", "5-14", "15-24", "55-64", "65-74", "65-74", "75-84", "85-89", "85-89",
            "90+", "90+",
        ];
        assert_eq!(found, expected);
        assert_eq!((band(-1.0, AGES), band(f64::NAN, AGES)), (None, None));
    }

    #[test]
    fn visits_and_days_have_bands_that_grow() {
        assert_eq!(bands(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 9.0, 10.0, 99.0], VISITS).join(" "), {
            "0 1 2 3-4 3-4 5-9 5-9 10+ 10+"
        });
        assert_eq!(
            bands(&[0.0, 1.0, 2.0, 7.0, 8.0, 30.0, 31.0, 90.0, 91.0, 365.0, 366.0], DAYS).join(" "),
            "0-1 0-1 2-7 2-7 8-30 8-30 31-90 31-90 91-365 91-365 366+"
        );
    }

    #[test]
    fn a_year_is_over_on_the_birthday() {
        let years = |birth: &str, time: &str| {
            let [birth, time] = [birth, time].map(|text| moment(text).unwrap().timestamp_micros());
            years_between(birth, time).unwrap()
        };
        assert_eq!(years("1950-06-15", "2020-06-14 23:59:00"), 69);
        assert_eq!(years("1950-06-15", "2020-06-15"), 70);
        assert_eq!(years("2000-02-29", "2001-02-28"), 0);
        assert_eq!(years("2000-02-29", "2001-03-01"), 1);
        assert_eq!(years("1820-01-01", "2120-01-02"), 300);
        assert!(years("2020-01-02", "2020-01-01") < 0);
    }
}
