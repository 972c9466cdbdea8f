//! Numbers and names as a card writes them.

use std::path::Path;

use chrono::DateTime;

use super::{Item, Section, Table};
use crate::metric::Estimate;

/// What stands where a count is not told.
pub(super) const HIDDEN: &str = "hidden";

/// What stands where a number is not defined.
pub(super) const UNDEFINED: &str = "-";

/// A whole number with commas between thousands.
pub(super) fn integer(number: u64) -> String {
    let digits = number.to_string();
    let group = |(at, digit): (usize, char)| {
        let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
        comma.then_some(',').into_iter().chain([digit]).collect::<String>()
    };
    digits.chars().enumerate().map(group).collect()
}

/// A count, as far as it is told.
pub(super) fn count(count: Option<u64>) -> String {
    count.map_or_else(|| HIDDEN.into(), integer)
}

/// A share in percent.
pub(super) fn percent(some: u64, all: u64) -> String {
    match all {
        0 => UNDEFINED.into(),
        all => format!("{:.2} %", 100.0 * some as f64 / all as f64),
    }
}

/// A number with four digits; a dash if it is not defined.
pub(super) fn number(value: Option<f64>) -> String {
    value.map_or_else(|| UNDEFINED.into(), |value| format!("{value:.4}"))
}

/// A share or probability in few digits: what is little is not nothing.
pub(super) fn share(value: f64) -> String {
    if value == 0.0 || value >= 0.001 { format!("{value:.3}") } else { format!("{value:.1e}") }
}

/// A value with its interval.
pub(super) fn estimate(estimate: &Estimate) -> String {
    match (estimate.value, estimate.interval) {
        (Some(value), Some([low, high])) => format!("{value:.4} ({low:.4} to {high:.4})"),
        (value, _) => number(value),
    }
}

/// The month of a moment in microseconds: `2019-03`.
pub(super) fn month(moment: i64) -> String {
    DateTime::from_timestamp_micros(moment)
        .map_or_else(|| UNDEFINED.into(), |moment| moment.format("%Y-%m").to_string())
}

/// The name of a folder, without the way there.
pub(super) fn folder(path: &Path) -> String {
    let own = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    own.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
}

/// Names with commas between them.
pub(super) fn list(names: impl IntoIterator<Item = impl Into<String>>) -> String {
    names.into_iter().map(Into::into).collect::<Vec<String>>().join(", ")
}

pub(super) fn section(title: &'static str, tripod: &'static str, items: Vec<Item>) -> Section {
    Section { title, tripod, items }
}

pub(super) fn text(text: impl Into<String>) -> Item {
    Item::Text(text.into())
}

pub(super) fn complete(what: impl Into<String>) -> Item {
    Item::ToComplete(what.into())
}

pub(super) fn fact(name: impl Into<String>, value: impl Into<String>) -> (String, String) {
    (name.into(), value.into())
}

pub(super) fn table(caption: impl Into<String>, columns: &[&str], rows: Vec<Vec<String>>) -> Item {
    let columns = columns.iter().map(|name| (*name).to_owned()).collect();
    Item::Table(Table { caption: caption.into(), columns, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(integer), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((percent(1, 8), percent(0, 0)), ("12.50 %".into(), "-".into()));
        assert_eq!(month(1_553_000_000_000_000), "2019-03");
        let of = Estimate { value: Some(0.5), interval: Some([0.25, 0.75]) };
        assert_eq!(estimate(&of), "0.5000 (0.2500 to 0.7500)");
        assert_eq!(estimate(&Estimate::default()), "-");
    }
}
