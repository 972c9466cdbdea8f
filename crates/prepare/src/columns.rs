//! The types of columns, and the SQL that makes what a file has one of them.

use datafusion::arrow::datatypes::{DataType, TimeUnit};

use crate::source::{ColumnKind, quoted};

/// What the values of a column are once they are read.
pub(crate) fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Id | ColumnKind::Text => DataType::Utf8,
        ColumnKind::Integer => DataType::Int64,
        ColumnKind::Number => DataType::Float64,
        ColumnKind::Time | ColumnKind::Day => DataType::Timestamp(TimeUnit::Microsecond, None),
        ColumnKind::Boolean => DataType::Boolean,
    }
}

/// A query for one column, and a condition under which its value cannot be read.
pub(crate) struct Typed {
    pub(crate) sql: String,
    pub(crate) unreadable: Option<String>,
}

/// Nothing, of the type of a column.
pub(crate) fn null(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Id | ColumnKind::Text => "CAST(NULL AS VARCHAR)",
        ColumnKind::Integer => "CAST(NULL AS BIGINT)",
        ColumnKind::Number => "CAST(NULL AS DOUBLE)",
        ColumnKind::Time | ColumnKind::Day => "arrow_cast(NULL, 'Timestamp(Microsecond, None)')",
        ColumnKind::Boolean => "CAST(NULL AS BOOLEAN)",
    }
}

pub(crate) fn no_list() -> &'static str {
    "arrow_cast(NULL, 'List(Utf8)')"
}

/// The first and the last day that are read, and their first and last microseconds. Beyond them arithmetic with dates overflows.
const CALENDAR: [(&str, i64); 2] =
    [("0001-01-01", -62_135_596_800_000_000), ("9999-12-31", 253_402_300_799_999_999)];

/// A condition under which a moment that a Parquet file has lies outside of the calendar, unless its type has none there.
pub(crate) fn is_far(column: &str, found: &DataType) -> Option<String> {
    let [first, last] = match found {
        // A day as a moment could overflow before it is compared.
        DataType::Date32 => CALENDAR.map(|(day, _)| format!("DATE '{day}'")),
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let zone = zone.as_ref().map_or("None".into(), |zone| format!("Some(\"{zone}\")"));
            let found = quoted(&format!("Timestamp(Microsecond, {zone})"));
            CALENDAR.map(|(_, moment)| format!("arrow_cast({moment}, {found})"))
        }
        _ => return None,
    };
    Some(format!("{column} < {first} OR {column} > {last}"))
}

/// A query for a moment, or null where it lies outside of the calendar.
fn within_calendar(moment: &str) -> String {
    let [first, last] =
        CALENDAR.map(|(_, moment)| format!("arrow_cast({moment}, 'Timestamp(Microsecond, None)')"));
    format!("CASE WHEN {moment} BETWEEN {first} AND {last} THEN {moment} END")
}

/// The query that makes a column what it should be, if its type allows that. `far` says that some of its moments are outside of the
/// calendar.
pub(crate) fn convert(kind: ColumnKind, column: &str, found: &DataType, far: bool) -> Option<Typed> {
    let exact = |sql: String| Some(Typed { sql, unreadable: None });
    let found = if let DataType::Dictionary(_, value) = found { value } else { found };
    let is_text = matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let tried = |sql: String| {
        let given = if is_text { format!("clean({column})") } else { column.to_owned() };
        let unreadable = Some(format!("{sql} IS NULL AND {given} IS NOT NULL"));
        Some(Typed { sql, unreadable })
    };
    if matches!(found, DataType::Null) {
        return exact(null(kind).into());
    }
    let text = format!("clean({column})");
    let is_time = matches!(kind, ColumnKind::Time | ColumnKind::Day);
    match kind {
        ColumnKind::Id if is_text => exact(format!("identifier({column})")),
        ColumnKind::Text if is_text => exact(text),
        // Identifiers are text everywhere, so that those of one table can be compared with those of any other.
        ColumnKind::Id | ColumnKind::Text if found.is_integer() => {
            exact(format!("CAST({column} AS VARCHAR)"))
        }
        // It can be larger than a signed number of 64 bits.
        ColumnKind::Integer if matches!(found, DataType::UInt64) => {
            tried(format!("try_cast({column} AS BIGINT)"))
        }
        ColumnKind::Integer if is_text => tried(format!(
            "coalesce(try_cast({text} AS BIGINT), try_cast(CASE WHEN {text} LIKE '%.0' THEN left({text}, -2) END AS BIGINT))"
        )),
        ColumnKind::Integer if found.is_integer() => exact(format!("CAST({column} AS BIGINT)")),
        ColumnKind::Integer | ColumnKind::Id if found.is_floating() => {
            let whole = format!("CASE WHEN {column} = trunc({column}) THEN try_cast({column} AS BIGINT) END");
            tried(if kind == ColumnKind::Id { format!("CAST({whole} AS VARCHAR)") } else { whole })
        }
        ColumnKind::Number if is_text => tried(format!("try_cast({text} AS DOUBLE)")),
        ColumnKind::Number if found.is_numeric() => exact(format!("CAST({column} AS DOUBLE)")),
        _ if is_time && (is_text || found.is_integer()) => {
            let text = if is_text { column.to_owned() } else { format!("CAST({column} AS VARCHAR)") };
            tried(format!("{}({text})", if kind == ColumnKind::Day { "day" } else { "moment" }))
        }
        _ if is_time
            && (found.is_temporal() && !matches!(found, DataType::Time32(_) | DataType::Time64(_))) =>
        {
            let moment = "'Timestamp(Microsecond, None)'";
            let local = match found {
                DataType::Timestamp(_, Some(_)) if kind == ColumnKind::Day => {
                    format!("to_local_time({column})")
                }
                _ => column.to_owned(),
            };
            // Seconds can be too many to be counted in microseconds.
            let is_exact = matches!(
                found,
                DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) | DataType::Date32
            );
            let sql = if is_exact {
                format!("arrow_cast({local}, {moment})")
            } else {
                format!("arrow_cast(try_cast({local} AS TIMESTAMP(6)), {moment})")
            };
            let day =
                |sql: String| if kind == ColumnKind::Day { format!("date_trunc('day', {sql})") } else { sql };
            match is_far(column, found).filter(|_| far) {
                Some(is_far) => tried(format!("CASE WHEN {is_far} THEN NULL ELSE {} END", day(sql))),
                None if is_exact => exact(day(sql)),
                None => tried(within_calendar(&day(sql))),
            }
        }
        ColumnKind::Boolean if is_text => {
            let text = format!("lower({text})");
            tried(format!(
                "CASE WHEN {text} IN ('true', 't', 'yes', 'y') OR try_cast({text} AS DOUBLE) = 1 THEN true \
                      WHEN {text} IN ('false', 'f', 'no', 'n') OR try_cast({text} AS DOUBLE) = 0 THEN false END"
            ))
        }
        ColumnKind::Boolean if found.is_integer() => {
            tried(format!("CASE WHEN {column} = 1 THEN true WHEN {column} = 0 THEN false END"))
        }
        // Where a label is not known, other programs write whole numbers as such ones, and NaN.
        ColumnKind::Boolean if found.is_floating() => {
            let sql = format!("CASE WHEN {column} = 1 THEN true WHEN {column} = 0 THEN false END");
            let unreadable =
                Some(format!("{sql} IS NULL AND nullif(CAST({column} AS VARCHAR), 'NaN') IS NOT NULL"));
            Some(Typed { sql, unreadable })
        }
        ColumnKind::Boolean if matches!(found, DataType::Boolean) => exact(column.into()),
        _ => None,
    }
}
