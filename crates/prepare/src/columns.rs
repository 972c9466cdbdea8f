//! The types of columns, and the SQL that makes what a file has one of them.

use datafusion::arrow::datatypes::{DataType, TimeUnit};

use crate::source::ColumnKind;
use crate::sql::quoted;

/// What the values of a column are once they are read.
pub(crate) fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Id | ColumnKind::Text => DataType::Utf8,
        ColumnKind::Integer => DataType::Int64,
        ColumnKind::Number => DataType::Float64,
        ColumnKind::Time | ColumnKind::Moment | ColumnKind::Day => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        ColumnKind::Boolean => DataType::Boolean,
        ColumnKind::Texts => DataType::new_list(DataType::Utf8, true),
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
        ColumnKind::Time | ColumnKind::Moment | ColumnKind::Day => {
            "arrow_cast(NULL, 'Timestamp(Microsecond, None)')"
        }
        ColumnKind::Boolean => "CAST(NULL AS BOOLEAN)",
        ColumnKind::Texts => no_list(),
    }
}

pub(crate) fn no_list() -> &'static str {
    "arrow_cast(NULL, 'List(Utf8)')"
}

/// The first and the last day that are read, and their first and last microseconds. Beyond them arithmetic
/// with dates overflows.
const CALENDAR: [(&str, i64); 2] =
    [("0001-01-01", -62_135_596_800_000_000), ("9999-12-31", 253_402_300_799_999_999)];

/// A condition under which a moment that a Parquet file has lies outside of the calendar, unless its type has
/// none there.
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

/// A column of a file, to be converted.
struct Given<'a> {
    column: &'a str,
    found: &'a DataType,
    is_text: bool,
}

/// The query that makes a column what it should be, if its type allows that. `far` says that some of its
/// moments are outside of the calendar.
pub(crate) fn convert(kind: ColumnKind, column: &str, found: &DataType, far: bool) -> Option<Typed> {
    let found = if let DataType::Dictionary(_, value) = found { value } else { found };
    let is_text = matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let given = Given { column, found, is_text };
    if matches!(found, DataType::Null) {
        return exact(null(kind).into());
    }
    match kind {
        ColumnKind::Id | ColumnKind::Text => given.as_text(kind),
        ColumnKind::Integer => given.as_integer(),
        ColumnKind::Number if is_text => given.tried(format!("try_cast({} AS DOUBLE)", given.clean())),
        ColumnKind::Number if found.is_numeric() => exact(format!("CAST({column} AS DOUBLE)")),
        ColumnKind::Number => None,
        ColumnKind::Time | ColumnKind::Day => given.as_time(kind == ColumnKind::Day, far),
        // What is no time is none, and no row is unreadable because of it.
        ColumnKind::Moment => {
            exact(given.as_time(false, true).map_or_else(|| null(kind).into(), |typed| typed.sql))
        }
        ColumnKind::Boolean => given.as_boolean(),
        ColumnKind::Texts => given.as_texts(),
    }
}

/// A query that reads every value.
fn exact(sql: String) -> Option<Typed> {
    Some(Typed { sql, unreadable: None })
}

impl Given<'_> {
    /// Text without what surrounds it.
    fn clean(&self) -> String {
        format!("clean({})", self.column)
    }

    /// A query that is null where a value cannot be read.
    fn tried(&self, sql: String) -> Option<Typed> {
        let given = if self.is_text { self.clean() } else { self.column.to_owned() };
        let unreadable = Some(format!("{sql} IS NULL AND {given} IS NOT NULL"));
        Some(Typed { sql, unreadable })
    }

    /// Floating point numbers that are whole.
    fn whole(&self) -> String {
        let column = self.column;
        format!("CASE WHEN {column} = trunc({column}) THEN try_cast({column} AS BIGINT) END")
    }

    fn as_text(&self, kind: ColumnKind) -> Option<Typed> {
        let column = self.column;
        match kind {
            ColumnKind::Id if self.is_text => exact(format!("identifier({column})")),
            _ if self.is_text => exact(self.clean()),
            // Identifiers are text everywhere, so that those of one table can be compared with those of any
            // other.
            _ if self.found.is_integer() => exact(format!("CAST({column} AS VARCHAR)")),
            ColumnKind::Id if self.found.is_floating() => {
                self.tried(format!("CAST({} AS VARCHAR)", self.whole()))
            }
            _ => None,
        }
    }

    fn as_integer(&self) -> Option<Typed> {
        let (column, text) = (self.column, self.clean());
        match self.found {
            // It can be larger than a signed number of 64 bits.
            DataType::UInt64 => self.tried(format!("try_cast({column} AS BIGINT)")),
            _ if self.is_text => {
                let without_zero = format!("CASE WHEN {text} LIKE '%.0' THEN left({text}, -2) END");
                self.tried(format!(
                    "coalesce(try_cast({text} AS BIGINT), try_cast({without_zero} AS BIGINT))"
                ))
            }
            found if found.is_integer() => exact(format!("CAST({column} AS BIGINT)")),
            found if found.is_floating() => self.tried(self.whole()),
            _ => None,
        }
    }

    fn as_time(&self, is_day: bool, far: bool) -> Option<Typed> {
        let (column, found) = (self.column, self.found);
        if self.is_text || found.is_integer() {
            let text = if self.is_text { column.to_owned() } else { format!("CAST({column} AS VARCHAR)") };
            return self.tried(format!("{}({text})", if is_day { "day" } else { "moment" }));
        }
        if !found.is_temporal() || matches!(found, DataType::Time32(_) | DataType::Time64(_)) {
            return None;
        }
        let local = match found {
            DataType::Timestamp(_, Some(_)) if is_day => format!("to_local_time({column})"),
            _ => column.to_owned(),
        };
        // Seconds can be too many to be counted in microseconds.
        let is_exact = matches!(
            found,
            DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) | DataType::Date32
        );
        let local = if is_exact { local } else { format!("try_cast({local} AS TIMESTAMP(6))") };
        let moment = format!("arrow_cast({local}, 'Timestamp(Microsecond, None)')");
        let sql = if is_day { format!("date_trunc('day', {moment})") } else { moment };
        match is_far(column, found).filter(|_| far) {
            Some(is_far) => self.tried(format!("CASE WHEN {is_far} THEN NULL ELSE {sql} END")),
            None if is_exact => exact(sql),
            None => self.tried(within_calendar(&sql)),
        }
    }

    fn as_texts(&self) -> Option<Typed> {
        let is_text =
            |found: &DataType| matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        match self.found {
            _ if self.is_text => exact(format!("make_array({})", self.clean())),
            DataType::List(field) | DataType::LargeList(field) if is_text(field.data_type()) => {
                exact(format!("arrow_cast({}, 'List(Utf8)')", self.column))
            }
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<Typed> {
        let column = self.column;
        let by_number = format!("CASE WHEN {column} = 1 THEN true WHEN {column} = 0 THEN false END");
        match self.found {
            DataType::Boolean => exact(column.into()),
            _ if self.is_text => {
                let text = format!("lower({})", self.clean());
                self.tried(format!(
                    "CASE WHEN {text} IN ('true', 't', 'yes', 'y') OR try_cast({text} AS DOUBLE) = 1 THEN true \
                     WHEN {text} IN ('false', 'f', 'no', 'n') OR try_cast({text} AS DOUBLE) = 0 THEN false END"
                ))
            }
            found if found.is_integer() => self.tried(by_number),
            // Where a label is not known, other programs write whole numbers as floating point, and NaN.
            found if found.is_floating() => {
                let is_known = format!("nullif(CAST({column} AS VARCHAR), 'NaN') IS NOT NULL");
                let unreadable = Some(format!("{by_number} IS NULL AND {is_known}"));
                Some(Typed { sql: by_number, unreadable })
            }
            _ => None,
        }
    }
}
