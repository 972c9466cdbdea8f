//! One variant per thing that the user must fix. Messages name files, rows and columns, never a value.

use std::borrow::Cow;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use gct::Remedy;
use gct::error::system_error;

/// The result of everything in this library that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Something that the main library refused.
    #[error(transparent)]
    Gct(gct::Error),

    /// An input cannot be listed or read.
    #[error("cannot read {path}: {problem}")]
    Input {
        /// The file, folder or address.
        path: String,
        /// What the operating system said.
        problem: String,
    },

    /// The operating system refused something that no single file is the reason of.
    #[error("the operating system refused: {0}")]
    System(io::Error),

    /// An object store cannot be asked, or says no.
    #[error("cannot read {path}: {problem}")]
    Store {
        /// The address of a folder or a file.
        path: String,
        /// What kind of answer it gave, if any.
        problem: String,
        /// What to do about it, which differs from store to store.
        hint: String,
    },

    /// A table that the source needs is not there.
    #[error("{path} has no table `{table}`{}; it has: {}", called(table, names), list(found))]
    MissingTable {
        /// Where it was looked for.
        path: String,
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
    #[error("{path} has none of the tables `{}`; it has: {}", tables.join("`, `"), list(found))]
    MissingTables {
        /// Where they were looked for.
        path: String,
        /// The tables.
        tables: Vec<String>,
        /// What is there.
        found: Vec<String>,
    },

    /// A single file where the source has several tables.
    #[error("{path} is one file; {of} has several tables: {}", tables.join(", "))]
    OneFile {
        /// The file.
        path: String,
        /// The name of the source.
        of: String,
        /// The tables that it can have.
        tables: Vec<String>,
    },

    /// A table is there twice.
    #[error("{path} has the table `{table}` more than once: {}", files.join(", "))]
    SeveralTables {
        /// Where it was looked for.
        path: String,
        /// The table.
        table: String,
        /// Both.
        files: Vec<String>,
    },

    /// A folder holds several tables of one kind, which an option chooses from.
    #[error("{path} has several tables `{table}`, one per {option}: {}", list(found))]
    OneOfSeveral {
        /// Where they are.
        path: String,
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

    /// The user's labels have a moment of prediction, and events have no time.
    #[error("{file} has a column `prediction_time`, but events of {of} have {}", instead.as_deref().map_or("no time".into(), |instead| format!("no time; they have {instead}")))]
    NoTimes {
        /// The file.
        file: String,
        /// The name of the source.
        of: String,
        /// What events have instead.
        instead: Option<String>,
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

    /// A text file is not UTF-8.
    #[error("{file}: expected UTF-8 text, found UTF-16")]
    Encoding {
        /// The file.
        file: String,
    },

    /// An input has nothing of what the dataset is made of.
    #[error("{path} has no resource `{resource}`; it has: {}", list(found))]
    NoResource {
        /// Where it was looked for.
        path: String,
        /// The type of resource.
        resource: &'static str,
        /// The types that are there.
        found: Vec<String>,
    },

    /// A resource is not what it should be, and no other is there.
    #[error("{problem}")]
    Resource {
        /// The file, its position there, and what is wrong with it; no value.
        problem: String,
    },

    /// Encounters of different patients have one identifier.
    #[error("{input}: {count} encounters have events of two subjects; an encounter is of one")]
    TwoSubjects {
        /// Where they are from.
        input: String,
        /// How many there are.
        count: String,
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
    #[error("{path}: {problem}")]
    Source {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },

    /// Settings cannot be understood.
    #[error("{0}")]
    Settings(String),

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

    /// An option does nothing without another, which is not given.
    #[error("option `{name}` does nothing without `{}`", needed.join("` or `"))]
    Needs {
        /// The option.
        name: String,
        /// The others, of which one is needed.
        needed: Vec<String>,
    },

    /// Labels of what follows an encounter are asked for, and encounters have no dates.
    #[error("`onset` needs the dates of encounters, and those of {of} have {}", instead.as_deref().unwrap_or("none"))]
    NoDates {
        /// The name of the source.
        of: String,
        /// What encounters have instead.
        instead: Option<String>,
    },

    /// No diagnosis is one of those that a label of onset is about.
    #[error("`onset` of `{label}`: none of the {diagnoses} codes of diagnoses in {input} is {wanted}")]
    NoOnset {
        /// The label.
        label: String,
        /// How many codes there are.
        diagnoses: usize,
        /// Where they are from.
        input: String,
        /// What was asked for, in short.
        wanted: String,
        /// How codes of the source begin, where they name a vocabulary.
        beginnings: Vec<String>,
    },

    /// Codes cannot be put into groups as the user wants it.
    #[error("{problem}")]
    Rollup {
        /// What is wrong.
        problem: String,
        /// What to do about it.
        hint: String,
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

impl From<gct::Error> for Error {
    fn from(error: gct::Error) -> Self {
        match error {
            gct::Error::Interrupted => Error::Interrupted,
            error => Error::Gct(error),
        }
    }
}

impl Error {
    /// What the operating system said of a file or folder.
    pub(crate) fn system(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        gct::Error::Io { action, path: path.into(), source }.into()
    }

    /// What to do about it.
    pub fn hint(&self) -> Cow<'static, str> {
        // No wildcard: whoever adds an error says what to do about it.
        match self {
            Error::Gct(error) => gct_terminal::hint(&error.remedy()),
            Error::Input { problem, .. } => match system_error(problem) {
                Some(error) => gct_terminal::hint(&Remedy::of_system(&error)),
                None => "check the spelling of the path, and that this user can read it".into(),
            },
            Error::System(error) => gct_terminal::hint(&Remedy::of_system(error)),
            Error::Store { hint, .. } | Error::Rollup { hint, .. } => hint.clone().into(),
            Error::MissingTable { table, names, near, .. } => where_is_table(table, names, near).into(),
            Error::MissingTables { tables, found, .. } => where_are_tables(tables, found).into(),
            Error::OneFile { .. } => "give the folder that the tables are in".into(),
            Error::SeveralTables { table, files, .. } => {
                format!("say which one is meant: --table {table}={}", files[0]).into()
            }
            Error::OneOfSeveral { option, found, .. } => {
                format!("say which one is meant: --{option} {}", found[0]).into()
            }
            Error::MissingColumn { column, found, .. } => match nearest(column, found) {
                Some(near) => format!("is it `{near}`? then say so: --column {column}={near}").into(),
                None => format!("say which column it is: --column {column}=NAME").into(),
            },
            Error::NoHeader { .. } => {
                "the first line must name the columns; --column says what they are called".into()
            }
            Error::Labels { .. } => LABELS.into(),
            Error::NoTimes { .. } => {
                "remove that column, or write a table of events with their times for `gct prepare events`".into()
            }
            Error::OtherLabels { .. } => {
                "its `encounter_id` must be what the source takes for one; identifiers are compared as text, so 7 is not 007"
                    .into()
            }
            Error::SameColumn { .. } => "rename or remove one of them".into(),
            Error::Delimiter { flag, .. } => format!("run again with --delimiter {flag}").into(),
            Error::ColumnType { column, .. } => {
                format!("write the column anew, or say which other one is meant: --column {column}=NAME").into()
            }
            Error::Row { .. } | Error::Fields { .. } => {
                "correct the row, or export the table again; rows are counted from 1 without the header".into()
            }
            Error::Encoding { file } => {
                format!("convert it first: iconv -f UTF-16 -t UTF-8 {file} > NEW").into()
            }
            Error::Damaged { .. } => "copy it from where it came from again, and compare sizes".into(),
            Error::NoResource { .. } | Error::Resource { .. } => {
                "give files of FHIR R4 with resources of type Encounter; docs/prepare.md describes them".into()
            }
            Error::TwoSubjects { .. } => {
                "give every encounter an identifier of its own, for instance that of the subject before its number".into()
            }
            Error::Empty { .. } => "export the table again, or give another path".into(),
            Error::Strict { .. } => "without --strict such rows are dropped and counted".into(),
            Error::Source { .. } => "correct the source; docs/prepare.md describes its files".into(),
            Error::Settings(_) => gct_terminal::SHOW_CONFIG.into(),
            Error::Choice { .. } => "give a value that is expected; --help lists all options".into(),
            Error::Needs { name, needed } => {
                format!("give --{} too, or leave --{name} out", needed.join(" or --")).replace('_', "-").into()
            }
            Error::NoDates { .. } => {
                "leave --onset out, or write tables of events and of encounters with their `start` for `gct prepare events`"
                    .into()
            }
            Error::NoOnset { beginnings, .. } if beginnings.is_empty() => {
                "write codes as the source does, with * at the end for any rest: --onset 'I50*'".into()
            }
            Error::NoOnset { beginnings, .. } => {
                format!("write codes as the source does: they begin with {}", beginnings.join(", ")).into()
            }
            Error::NothingKept { dropped, .. }
                if !dropped.is_empty() && dropped.iter().all(|(rule, _)| rule == "unknown_subject") =>
            {
                "no label is of a subject that has events; are labels and events of the same dataset?".into()
            }
            Error::NothingKept { .. } => {
                "--min-codes, --max-codes and the rules of the source decide what is kept".into()
            }
            Error::Memory { .. } => "allow more with --memory-limit, or use fewer --threads".into(),
            Error::Engine { .. } => {
                "GCT_ENGINE_ERRORS=1 shows its own words, which can hold values of patients".into()
            }
            Error::Interrupted => "run the same command again to start over".into(),
        }
    }
}

/// What to do about a table that is missing, of these names, with names of files that are like them.
fn where_is_table(table: &str, names: &[String], near: &[String]) -> String {
    match near.first() {
        Some(first) => format!("is it `{}`? then say so: --table {table}={first}", near.join("` or `")),
        None => format!(
            "expected a file `{}` as .csv, .csv.gz or .parquet, or a folder of such files; or say where it is: --table {table}=PATH",
            names.first().map_or(table, String::as_str)
        ),
    }
}

/// What to do about tables of which one is needed and none was found.
fn where_are_tables(tables: &[String], found: &[String]) -> String {
    match tables.iter().find_map(|table| Some((table, nearest(table, found)?))) {
        Some((table, near)) => format!("is it `{near}`? then say so: --table {table}={near}"),
        None => format!("say where one is: --table {}=PATH", tables[0]),
    }
}

/// What a table of labels holds.
const LABELS: &str = "a label is true or false, yes or no, 1 or 0, or empty where it is not known, prediction_time a date or time; remove other columns";

/// The engine's errors that say something to a user; the rest by kind, since their words can hold values.
impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Self {
        #[cfg(feature = "cloud")]
        if let Some(explained) =
            crate::files::store_error(&error).and_then(|error| crate::cloud::explained(None, error))
        {
            return explained;
        }
        if let Some(error) = system_error(&error.to_string()) {
            return Error::System(error);
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

#[cfg(test)]
mod tests {
    use std::iter::successors;

    use super::*;

    /// One of each kind of error, each found by way of the one before it, so that the compiler misses none.
    fn after(error: Option<&Error>) -> Option<Error> {
        let (path, file, problem) = ("P".to_owned(), "F".to_owned(), "it is wrong".to_owned());
        let (table, column, found) = ("t".to_owned(), "c".to_owned(), vec!["a".to_owned()]);
        let system = || io::Error::from_raw_os_error(24);
        Some(match error {
            None => Error::Gct(gct::Error::NoSuchEncounter),
            Some(Error::Gct(_)) => Error::Input { path, problem },
            Some(Error::Input { .. }) => Error::System(system()),
            Some(Error::System(_)) => Error::Store { path, problem, hint: "ask for a key".into() },
            Some(Error::Store { .. }) => {
                Error::MissingTable { path, table, names: vec![], near: vec![], found }
            }
            Some(Error::MissingTable { .. }) => Error::MissingTables { path, tables: vec![table], found },
            Some(Error::MissingTables { .. }) => Error::OneFile { path, of: "omop".into(), tables: found },
            Some(Error::OneFile { .. }) => Error::SeveralTables { path, table, files: found },
            Some(Error::SeveralTables { .. }) => {
                Error::OneOfSeveral { path, table, option: "task".into(), found }
            }
            Some(Error::OneOfSeveral { .. }) => Error::MissingColumn { file, column, found },
            Some(Error::MissingColumn { .. }) => Error::NoHeader { file, expected: found },
            Some(Error::NoHeader { .. }) => Error::Labels { problem },
            Some(Error::Labels { .. }) => Error::NoTimes { file, of: "eicu".into(), instead: None },
            Some(Error::NoTimes { .. }) => Error::OtherLabels { file, labels: "2".into(), input: path },
            Some(Error::OtherLabels { .. }) => Error::SameColumn { file, column },
            Some(Error::SameColumn { .. }) => {
                Error::Delimiter { file, found: "tabs", expected: "commas", flag: "tab" }
            }
            Some(Error::Delimiter { .. }) => {
                Error::ColumnType { file, column, expected: "text", found: "a list".into() }
            }
            Some(Error::ColumnType { .. }) => Error::Row { file, row: 1, column, problem },
            Some(Error::Row { .. }) => Error::Fields { file, row: 1, expected: 2, found: 3 },
            Some(Error::Fields { .. }) => Error::Damaged { file, problem },
            Some(Error::Damaged { .. }) => Error::Encoding { file },
            Some(Error::Encoding { .. }) => Error::TwoSubjects { input: path, count: "1".into() },
            Some(Error::TwoSubjects { .. }) => Error::NoResource { path, resource: "Encounter", found },
            Some(Error::NoResource { .. }) => Error::Resource { problem },
            Some(Error::Resource { .. }) => Error::Empty { file },
            Some(Error::Empty { .. }) => Error::Strict { problem },
            Some(Error::Strict { .. }) => Error::Source { path, problem },
            Some(Error::Source { .. }) => Error::Settings("it is wrong".into()),
            Some(Error::Settings(_)) => {
                Error::Choice { name: "o".into(), value: "x".into(), allowed: "a number".into() }
            }
            Some(Error::Choice { .. }) => Error::Needs { name: "a_b".into(), needed: found },
            Some(Error::Needs { .. }) => Error::NoDates { of: "eicu".into(), instead: None },
            Some(Error::NoDates { .. }) => {
                let (label, wanted) = ("stroke".into(), "I63*".into());
                Error::NoOnset { label, diagnoses: 2, input: path, wanted, beginnings: found }
            }
            Some(Error::NoOnset { .. }) => Error::Rollup { problem, hint: "give another file".into() },
            Some(Error::Rollup { .. }) => {
                Error::NothingKept { read: "1".into(), dropped: vec![], unreadable: vec![] }
            }
            Some(Error::NothingKept { .. }) => Error::Memory { limit: None },
            Some(Error::Memory { .. }) => Error::Engine { kind: problem },
            Some(Error::Engine { .. }) => Error::Interrupted,
            Some(Error::Interrupted) => return None,
        })
    }

    #[test]
    fn every_error_says_what_is_wrong_and_what_to_do() {
        let errors: Vec<Error> = successors(after(None), |error| after(Some(error))).collect();
        for error in &errors {
            let (message, hint) = (error.to_string(), error.hint());
            assert!(message.split(' ').count() >= 3, "no more than a path: {message}");
            assert!(hint.split(' ').count() >= 3 && !hint.contains('\n'), "{message}: {hint}");
        }
        assert_eq!(errors.len(), 37, "one of each");
    }

    #[test]
    fn what_the_system_refuses_is_no_damage() {
        let said = "External: Too many open files (os error 24)".to_owned();
        let error = Error::from(DataFusionError::ArrowError(Box::new(ArrowError::ParquetError(said)), None));
        assert!(matches!(&error, Error::System(_)) && error.hint().contains("ulimit -n"), "{error}");
    }
}
