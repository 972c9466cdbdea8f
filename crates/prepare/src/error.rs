//! One variant per thing that the user must fix. Messages name files, rows and columns, never a value.

use std::fmt::Write;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something that the main library refused.
    #[error(transparent)]
    Gct(#[from] gct::Error),

    /// A place cannot be listed or read.
    #[error("cannot read {place}: {problem}")]
    Place {
        /// The file, folder or address.
        place: String,
        /// What the operating system said.
        problem: String,
    },

    /// An object store cannot be asked, or says no.
    #[error("cannot read {place}: {problem}")]
    Store {
        /// The address of a folder or a file.
        place: String,
        /// What kind of answer it gave, if any.
        problem: String,
        /// What to do about it, which differs from store to store.
        hint: String,
    },

    /// A table that the source needs is not there.
    #[error("{place} has no table `{table}`{}; it has: {}", called(table, names), list(found))]
    MissingTable {
        /// Where it was looked for.
        place: String,
        /// The table.
        table: String,
        /// What its file or folder is called.
        names: Vec<String>,
        /// What is called nearly so.
        near: Vec<String>,
        /// What is there.
        found: Vec<String>,
    },

    /// Of several tables one is needed, and none is there.
    #[error("{place} has none of the tables `{}`; it has: {}", tables.join("`, `"), list(found))]
    MissingTables {
        /// Where they were looked for.
        place: String,
        /// The tables.
        tables: Vec<String>,
        /// What is there.
        found: Vec<String>,
    },

    /// A table is there twice.
    #[error("{place} has the table `{table}` more than once: {}", files.join(", "))]
    SeveralTables {
        /// Where it was looked for.
        place: String,
        /// The table.
        table: String,
        /// Both.
        files: Vec<String>,
    },

    /// A folder holds several tables of one kind, which an option chooses from.
    #[error("{place} has several tables `{table}`, one per {option}: {}", list(found))]
    OneOfSeveral {
        /// Where they are.
        place: String,
        /// The table.
        table: String,
        /// The option.
        option: String,
        /// Its possible values.
        found: Vec<String>,
    },

    /// A table lacks a column.
    #[error("{file}: no column `{column}`; it has: {}", list(found))]
    MissingColumn {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// The columns that it has.
        found: Vec<String>,
    },

    /// The first line of a text file is no header.
    #[error("{file}: its first line does not name the expected columns: {}", list(expected))]
    NoHeader {
        /// The file.
        file: String,
        /// The columns that the source reads. What stands there instead can be a patient.
        expected: Vec<String>,
    },

    /// The user's labels cannot be joined.
    #[error("{problem}")]
    Labels {
        /// What is wrong with them.
        problem: String,
    },

    /// None of the user's labels is of an encounter.
    #[error("{file}: none of its {labels} labels is of an encounter of {input}")]
    OtherLabels {
        /// The file.
        file: String,
        /// How many it has.
        labels: String,
        /// Where the encounters are from.
        input: String,
    },

    /// Two columns of a table have the same name, but for upper and lower case.
    #[error("{file}: two columns are called `{column}`")]
    SameColumn {
        /// The file.
        file: String,
        /// The name.
        column: String,
    },

    /// The columns of a text file are separated by something else.
    #[error("{file}: its columns seem to be separated by {found}, not by {expected}")]
    Delimiter {
        /// The file.
        file: String,
        /// What separates them.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
        /// The flag that says so.
        flag: &'static str,
    },

    /// A column has a type that cannot be what it should be.
    #[error("{file}: column `{column}`: expected {expected}, found {found}")]
    ColumnType {
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: String,
    },

    /// One row is bad.
    #[error("{file}: row {row}: column `{column}`: {problem}")]
    Row {
        /// The file.
        file: String,
        /// The row, counted from 1, the header not counted.
        row: u64,
        /// The column.
        column: String,
        /// What is wrong with it; no value.
        problem: String,
    },

    /// A row has more or fewer fields than the header.
    #[error("{file}: row {row}: expected {expected} fields, found {found}")]
    Fields {
        /// The file.
        file: String,
        /// The row.
        row: u64,
        /// As many as the header has.
        expected: usize,
        /// As many as the row has.
        found: usize,
    },

    /// A file is cut off, or is something else than its name says.
    #[error("{file} is damaged: {problem}")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong with it.
        problem: String,
    },

    /// A place has nothing of what the dataset is made of.
    #[error("{place} has no resource `{resource}`; it has: {}", list(found))]
    NoResource {
        /// Where it was looked for.
        place: String,
        /// The type of resource.
        resource: &'static str,
        /// The types that are there.
        found: Vec<String>,
    },

    /// A resource is not what it should be, and no other is there.
    #[error("{problem}")]
    Resource {
        /// The file, its place there, and what is wrong with it; no value.
        problem: String,
    },

    /// A table has a header and nothing else, or nothing at all.
    #[error("{file} has no rows")]
    Empty {
        /// The file.
        file: String,
    },

    /// Something that is dropped and counted by default, and that `--strict` refuses.
    #[error("{problem} (refused because of --strict)")]
    Strict {
        /// What was found, with its count.
        problem: String,
    },

    /// A source's description or SQL is wrong.
    #[error("{place}: {problem}")]
    Source {
        /// The file.
        place: String,
        /// What is wrong with it.
        problem: String,
    },

    /// An option has a value that makes no sense.
    #[error("option `{name}`: {value} is not allowed; expected {allowed}")]
    Choice {
        /// The option.
        name: String,
        /// What was given.
        value: String,
        /// What is allowed.
        allowed: String,
    },

    /// No encounter is left.
    #[error("no encounter is left: of {read} read, {}{}", reasons(dropped), unreadable.iter().map(|first| format!("; left out, {first}")).collect::<String>())]
    NothingKept {
        /// How many there were.
        read: String,
        /// How many each rule dropped.
        dropped: Vec<(String, String)>,
        /// The first row of each column that could not be read.
        unreadable: Vec<String>,
    },

    /// The memory that was allowed is not enough, and what was held could not be put on disk.
    #[error("{} of memory are not enough", limit.as_deref().unwrap_or("these amounts"))]
    Memory {
        /// What was allowed.
        limit: Option<String>,
    },

    /// The query engine failed in a way that this program did not foresee.
    #[error("the query engine failed: {kind}")]
    Engine {
        /// The kind of failure. The engine's own words can hold values, so they are shown on request only.
        kind: String,
    },

    /// The user stopped the program.
    #[error("interrupted; nothing was written")]
    Interrupted,
}

impl Error {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Gct(error) => error.hint().map(|hint| hint.to_string()),
            Error::Store { hint, .. } => Some(hint.clone()),
            Error::MissingTable { table, names, near, .. } => Some(match near.first() {
                Some(first) => {
                    format!("is it `{}`? then say so: --table {table}={first}", near.join("` or `"))
                }
                None => format!(
                    "expected a file `{}` as .csv, .csv.gz or .parquet, or a folder of such files; or say where it is: --table {table}=PATH",
                    names.first().unwrap_or(table)
                ),
            }),
            Error::MissingTables { tables, found, .. } => {
                Some(match tables.iter().find_map(|table| Some((table, nearest(table, found)?))) {
                    Some((table, near)) => format!("is it `{near}`? then say so: --table {table}={near}"),
                    None => format!("say where one is: --table {}=PATH", tables[0]),
                })
            }
            Error::SeveralTables { table, files, .. } => {
                Some(format!("say which one is meant: --table {table}={}", files[0]))
            }
            Error::OneOfSeveral { option, found, .. } => {
                Some(format!("say which one is meant: --{option} {}", found[0]))
            }
            Error::MissingColumn { column, found, .. } => Some(match nearest(column, found) {
                Some(near) => format!("is it `{near}`? then say so: --column {column}={near}"),
                None => format!("say which column it is: --column {column}=NAME"),
            }),
            Error::NoHeader { .. } => {
                Some("the first line must name the columns; --column says what they are called".into())
            }
            Error::OtherLabels { .. } => Some(
                "its `encounter_id` must be what the source takes for one; identifiers are compared as text, so 7 is not 007"
                    .into(),
            ),
            Error::Delimiter { flag, .. } => Some(format!("run again with --delimiter {flag}")),
            Error::Damaged { .. } => Some("copy it from where it came from again, and compare sizes".into()),
            Error::Strict { .. } => Some("without --strict such rows are dropped and counted".into()),
            Error::NothingKept { dropped, .. }
                if !dropped.is_empty() && dropped.iter().all(|(rule, _)| rule == "unknown_subject") =>
            {
                Some(
                    "no label is of a subject that has events; are labels and events of the same dataset?"
                        .into(),
                )
            }
            Error::NothingKept { .. } => {
                Some("--min-codes, --max-codes and the rules of the source decide what is kept".into())
            }
            Error::Memory { .. } => Some("allow more with --memory-limit, or use fewer --threads".into()),
            Error::Engine { .. } => {
                Some("GCT_ENGINE_ERRORS=1 shows its own words, which can hold values of patients".into())
            }
            _ => None,
        }
    }
}

/// The engine's errors that say something to a user; the rest by kind, since their words can hold values.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        #[cfg(feature = "cloud")]
        if let Some(explained) =
            crate::files::store_error(&error).and_then(|error| crate::cloud::explained(None, error))
        {
            return explained;
        }
        let root = error.find_root();
        match root {
            DataFusionError::ResourcesExhausted(_) => Error::Memory { limit: None },
            _ if std::env::var_os("GCT_ENGINE_ERRORS").is_some() => Error::Engine { kind: error.to_string() },
            DataFusionError::ArrowError(arrow, _) => Error::Engine { kind: arrow_kind(arrow).into() },
            DataFusionError::ParquetError(_) => {
                Error::Engine { kind: "a Parquet file could not be read".into() }
            }
            DataFusionError::ObjectStore(_) | DataFusionError::IoError(_) => {
                Error::Engine { kind: "a file could not be read or written".into() }
            }
            DataFusionError::Plan(problem) => {
                Error::Engine { kind: format!("a query makes no sense: {problem}") }
            }
            DataFusionError::SchemaError(problem, _) => {
                Error::Engine { kind: format!("a query makes no sense: {problem}") }
            }
            _ => Error::Engine { kind: "something that was not foreseen".into() },
        }
    }
}

fn arrow_kind(error: &ArrowError) -> &'static str {
    match error {
        ArrowError::CsvError(_) => "a CSV file could not be read",
        ArrowError::ParquetError(_) => "a Parquet file could not be read",
        ArrowError::IoError(..) => "a file could not be read or written",
        ArrowError::CastError(_) | ArrowError::ParseError(_) => "a value could not be converted",
        _ => "a computation failed",
    }
}

/// What a table is called, if not by its name.
fn called(table: &str, names: &[String]) -> String {
    if names.iter().all(|name| name == table) {
        return String::new();
    }
    format!(", which is called `{}`", names.join("` or `"))
}

/// Names, or that there are none; not more than a screen holds.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 40;
    match names.len() {
        0 => "nothing".into(),
        count if count > SHOWN => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
        _ => names.join(", "),
    }
}

fn reasons(dropped: &[(String, String)]) -> String {
    let mut text = String::new();
    for (position, (rule, count)) in dropped.iter().enumerate() {
        let _ = write!(text, "{}{count} dropped as {rule}", if position == 0 { "" } else { ", " });
    }
    if text.is_empty() { "none has a code".into() } else { text }
}

/// How like each other two names are, from 0 to 1.
pub(crate) fn likeness(name: &str, other: &str) -> f64 {
    strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase())
}

/// Above this, one can have been meant by the other.
pub(crate) const ALIKE: f64 = 0.8;

/// The name that was probably meant.
pub(crate) fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    let best = known.iter().max_by(|a, b| likeness(name, a).total_cmp(&likeness(name, b)))?;
    (likeness(name, best) > ALIKE).then_some(best)
}
