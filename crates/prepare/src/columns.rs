//! The types of columns, and the SQL that makes what a file has one of them.

use datafusion::arrow::datatypes::{DataType, TimeUnit};

use crate::source::ColumnKind;

/// What the values of a column are once they are read.
pub(crate) fn data_type(kind: ColumnKind) -> DataType {
    match kind {
        ColumnKind::Id | ColumnKind::Text => DataType::Utf8,
        ColumnKind::Integer => DataType::Int64,
        ColumnKind::Number => DataType::Float64,
        ColumnKind::Time => DataType::Timestamp(TimeUnit::Microsecond, None),
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
        ColumnKind::Time => "arrow_cast(NULL, 'Timestamp(Microsecond, None)')",
        ColumnKind::Boolean => "CAST(NULL AS BOOLEAN)",
    }
}

pub(crate) fn no_list() -> &'static str {
    "arrow_cast(NULL, 'List(Utf8)')"
}

/// The query that makes a column what it should be, if its type allows that.
pub(crate) fn convert(kind: ColumnKind, column: &str, found: &DataType) -> Option<Typed> {
    let exact = |sql: String| Some(Typed { sql, unreadable: None });
    let tried = |sql: String| {
        let unreadable =
            Some(format!("{sql} IS NULL AND nullif(trim(CAST({column} AS VARCHAR)), '') IS NOT NULL"));
        Some(Typed { sql, unreadable })
    };
    let found = if let DataType::Dictionary(_, value) = found { value } else { found };
    let is_text = matches!(found, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    if matches!(found, DataType::Null) {
        return exact(null(kind).into());
    }
    let text = format!("clean({column})");
    match kind {
        ColumnKind::Id | ColumnKind::Text if is_text => exact(text),
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
        ColumnKind::Time if is_text || found.is_integer() => {
            let text = if is_text { text } else { format!("CAST({column} AS VARCHAR)") };
            let moment = |text: &str| {
                format!("arrow_cast(try_cast({text} AS TIMESTAMP(6)), 'Timestamp(Microsecond, None)')")
            };
            let compact =
                format!("concat(substr({text}, 1, 4), '-', substr({text}, 5, 2), '-', substr({text}, 7, 2))");
            tried(format!(
                "CASE WHEN length({text}) = 8 AND {text} NOT LIKE '%-%' AND {text} NOT LIKE '%:%' THEN {} ELSE {} END",
                moment(&compact),
                moment(&text)
            ))
        }
        ColumnKind::Time
            if matches!(
                found,
                DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, _) | DataType::Date32
            ) =>
        {
            exact(format!("arrow_cast({column}, 'Timestamp(Microsecond, None)')"))
        }
        // Seconds can be too many to be counted in microseconds.
        ColumnKind::Time if matches!(found, DataType::Timestamp(..) | DataType::Date64) => {
            tried(format!("arrow_cast(try_cast({column} AS TIMESTAMP(6)), 'Timestamp(Microsecond, None)')"))
        }
        ColumnKind::Boolean if is_text => {
            let text = format!("lower({text})");
            tried(format!(
                "CASE WHEN {text} IN ('true', 't', 'yes', 'y', '1', '1.0') THEN true WHEN {text} IN ('false', 'f', 'no', 'n', '0', '0.0') THEN false END"
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
