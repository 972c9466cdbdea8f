//! A source is a small file that names its tables and options, and SQL that one can read: `source.toml`,
//! `encounters.sql`, `events.sql` and, where causes are recorded, `links.sql`; `context.sql`, where more is
//! known of patients and visits than codes; and views that these share. Those that come with the program are
//! in `sources/`; a user's own look the same.

use std::collections::BTreeMap;
use std::path::Path;

use gct::overrides;
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::sql::quoted;

/// A source, ready to be used.
#[derive(Debug, Clone)]
pub struct Source {
    /// Its name: `eicu`.
    pub name: String,
    /// Where its files are, for messages.
    pub path: String,
    /// What `source.toml` says.
    pub description: Description,
    /// One row per encounter.
    pub encounters: String,
    /// One row per recorded code.
    pub events: String,
    /// One row per recorded cause, where the source has any.
    pub links: Option<String>,
    /// One row per thing that is known of an encounter beside codes, where the source has any.
    pub context: Option<String>,
    /// Tables and views that come with the source, by file name.
    builtin: Vec<(String, String)>,
}

/// The contents of `source.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// One line for `--help`.
    pub about: String,
    /// A command line that works.
    pub example: String,
    /// What is made into tables first, where the source has none.
    pub flatten: Option<Flatten>,
    /// Its tables.
    pub tables: BTreeMap<String, Table>,
    /// Queries that are computed once, in this order, each in a file `NAME.sql`; the relations can speak of
    /// them.
    #[serde(default)]
    pub views: Vec<String>,
    /// Optional tables of which at least one must be there. An input that is a single file is the first of
    /// them.
    #[serde(default)]
    pub any_of: Vec<String>,
    /// The values that its SQL speaks of as `$name`.
    #[serde(default)]
    pub options: BTreeMap<String, Choice>,
    /// Values for several options at once, chosen by `--rules NAME`.
    #[serde(default)]
    pub rules: BTreeMap<String, toml::Table>,
    /// Another value of an option that all sources have, where this source wants one.
    #[serde(default)]
    pub defaults: toml::Table,
    /// Rollups by what its tables say of codes, chosen by `--rollup KIND=NAME` or `KIND=NAME:WORD`.
    #[serde(default)]
    pub rollups: BTreeMap<String, Hierarchy>,
    /// What its encounters and events have instead of times, if they have none.
    pub timeless: Option<String>,
    /// What its context is called. Without any, names are those that its events of kind `context` have.
    #[serde(default)]
    pub context: BTreeMap<String, Known>,
}

/// A rollup by what the tables of a source say of codes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hierarchy {
    /// How it is asked for, for messages.
    pub expects: String,
    /// The query that has the groups of codes, if not the one of its own name: `code`, `group_code`,
    /// `description` and `distance`. It can speak of `$kind`, of `$word`, and of `source_events`.
    pub query: Option<String>,
    /// The tables that must be there.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Whether it makes no sense without a word after its name.
    #[serde(default)]
    pub needs_word: bool,
    /// What to do with a code that has several groups at the least distance.
    pub several: Several,
}

impl Hierarchy {
    /// The file of its query.
    pub(crate) fn file(&self, name: &str) -> String {
        format!("{}.sql", self.query.as_deref().unwrap_or(name))
    }
}

/// What to do with a code that has several groups at the least distance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Several {
    /// Take the first by name, and count the code.
    First,
    /// Refuse to choose.
    Refuse,
}

/// Something that is known of encounters beside codes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// One line for `--help`.
    pub about: String,
    /// Whether it is known only after the encounter.
    #[serde(default)]
    pub after: bool,
}

/// Records that are no tables, and that the program knows how to make into some.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flatten {
    /// Resources of FHIR R4, as JSON.
    Fhir,
}

/// A table that a source reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The names that its file or folder can have, without extension, if not its own; `*` stands for any
    /// characters.
    #[serde(default)]
    pub files: Vec<String>,
    /// Whether the source can do without it.
    #[serde(default)]
    pub optional: bool,
    /// A file beside `source.toml` that stands in where the user gives none.
    pub builtin: Option<String>,
    /// The columns that identify a row.
    #[serde(default)]
    pub key: Vec<String>,
    /// The columns that are read.
    pub columns: BTreeMap<String, Column>,
    /// The option that says which files to take, where those in its folder are of several names:
    /// `labels/mortality/0.parquet`.
    pub one_per: Option<String>,
    /// Whether quotes in it are letters like any other where it is separated by tabs.
    #[serde(default)]
    pub plain_tabs: bool,
    /// A column that only this table has, which tells it from the others of `any_of` where the input is a
    /// single file.
    pub told_by: Option<String>,
    /// Columns that are made of all those whose names begin alike and end in a number: `dgns =
    /// "ICD9_DGNS_CD_"`.
    #[serde(default)]
    pub lists: BTreeMap<String, String>,
}

/// A column that is read.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "ColumnText")]
pub struct Column {
    /// What it holds.
    pub kind: ColumnKind,
    /// Whether it may be missing, and is null then.
    pub optional: bool,
    /// Other names that it can have.
    pub aliases: Vec<String>,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// An identifier: text as it is written, also where the file has whole numbers.
    Id,
    /// Text, also where it looks like a number.
    Text,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// A date or a moment.
    Time,
    /// The same where it can be read, and nothing where it cannot: when something was recorded, which is not
    /// always asked for.
    Moment,
    /// The day of a moment in another column, there where it was recorded: `stop_day = "day stop"`.
    Day,
    /// True or false.
    Boolean,
    /// A list of texts; one text is a list of one.
    Texts,
}

impl ColumnKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            ColumnKind::Id => "an identifier",
            ColumnKind::Text => "text",
            ColumnKind::Integer => "a whole number",
            ColumnKind::Number => "a number",
            ColumnKind::Time | ColumnKind::Moment | ColumnKind::Day => "a date or time",
            ColumnKind::Boolean => "true or false",
            ColumnKind::Texts => "a list of texts",
        }
    }
}

/// As it is written: `"integer"`, `"text?"` where it may be missing, `"id? hadm_id visit_id"` with other
/// names.
#[derive(Deserialize)]
#[serde(transparent)]
struct ColumnText(String);

impl TryFrom<ColumnText> for Column {
    type Error = String;

    fn try_from(text: ColumnText) -> Result<Self, String> {
        let mut words = text.0.split_whitespace();
        let first = words.next().unwrap_or_default();
        let kind = match first.trim_end_matches('?') {
            "id" => ColumnKind::Id,
            "text" => ColumnKind::Text,
            "integer" => ColumnKind::Integer,
            "number" => ColumnKind::Number,
            "time" => ColumnKind::Time,
            "moment" => ColumnKind::Moment,
            "day" => ColumnKind::Day,
            "boolean" => ColumnKind::Boolean,
            "texts" => ColumnKind::Texts,
            other => {
                return Err(format!(
                    "`{other}` is not id, text, integer, number, time, moment, day, boolean or texts"
                ));
            }
        };
        Ok(Column { kind, optional: first.ends_with('?'), aliases: words.map(str::to_owned).collect() })
    }
}

/// An option of a source.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// One line for `--help`.
    pub about: String,
    /// What it holds.
    #[serde(rename = "type")]
    pub kind: ChoiceKind,
    /// Its value if nothing is said; without one it is null.
    pub default: Option<toml::Value>,
    /// A query on the source's tables that finds the value if nothing is said.
    pub default_sql: Option<String>,
    /// The only values that it can have.
    #[serde(default)]
    pub one_of: Vec<String>,
    /// Words that stand for whole numbers, in an option that is a list of such.
    #[serde(default)]
    pub words: BTreeMap<String, String>,
    /// A number must be above it.
    pub above: Option<f64>,
    /// Whether it decides about labels alone, so that records that are prepared like others can have another
    /// value.
    #[serde(default)]
    pub of_labels: bool,
    /// A label that has the value in its name, unless that is the default: `readmission_7`.
    pub names: Option<String>,
    /// A query on the source's tables for the parts that a table has, of an option that names one.
    pub parts_sql: Option<String>,
}

impl Choice {
    /// Whether a query has to find its value.
    pub(crate) fn is_open(&self, value: &Value) -> bool {
        *value == Value::Null && self.default_sql.is_some()
    }
}

/// What an option holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChoiceKind {
    /// Present or not.
    Flag,
    /// A whole number.
    Integer,
    /// A number.
    Number,
    /// Text.
    Text,
    /// A whole number of days. In SQL it is an interval.
    Days,
    /// Two whole numbers, the smaller first: `1..365`. In SQL it is a list of the two.
    Range,
    /// Where the table with the name of the option is, and which part of it is meant: `cohorts.csv:5`. In SQL
    /// it is the part, or an empty text for all of them.
    Table,
}

/// The files of a source that comes with the program; the queries of another one where it has its own tables
/// only.
macro_rules! builtin {
    ($name:literal $(, $part:ident = $($files:literal)+)*) => {
        builtin!(@ $name, folder = $name $(, $part = $($files)+)*)
    };
    (
        @ $name:literal, folder = $own:literal, queries = $folder:literal
        $(, $part:ident = $($files:literal)+)*
    ) => {
        builtin!(@ $name, folder = $folder $(, $part = $($files)+)*)
    };
    (
        @ $name:literal, folder = $folder:literal $(, links = $links:literal)?
        $(, context = $context:literal)? $(, with = $($with:literal)+)?
    ) => {
        Files {
            name: $name,
            description: include_str!(concat!("../sources/", $name, "/source.toml")),
            encounters: include_str!(concat!("../sources/", $folder, "/encounters.sql")),
            events: include_str!(concat!("../sources/", $folder, "/events.sql")),
            links: (&[$(include_str!(concat!("../sources/", $folder, "/", $links)))?] as &[&str])
                .first()
                .copied(),
            context: (&[$(include_str!(concat!("../sources/", $folder, "/", $context)))?] as &[&str])
                .first()
                .copied(),
            with: &[$($(($with, include_str!(concat!("../sources/", $folder, "/", $with))),)+)?],
        }
    };
}

struct Files {
    name: &'static str,
    description: &'static str,
    encounters: &'static str,
    events: &'static str,
    links: Option<&'static str>,
    context: Option<&'static str>,
    with: &'static [(&'static str, &'static str)],
}

/// The query for labels whose names the data have.
const LABELS: &str = "labels.sql";

/// The sources that come with the program, in the order in which they are listed.
static BUILTIN: &[Files] = &[
    builtin!("eicu", context = "context.sql"),
    builtin!("mimic4", context = "context.sql", with = "spans.sql" "visits.sql"),
    builtin!("mimic3", queries = "mimic4", context = "context.sql", with = "spans.sql" "visits.sql"),
    builtin!(
        "meds",
        context = "context.sql",
        with = "code_kinds.sql" "kinds.csv" "not_given.csv" "observed.sql" "parents.sql" "subjects.sql" "visits.sql"
    ),
    builtin!("synthea", links = "links.sql", context = "context.sql"),
    builtin!("omop", context = "context.sql", with = "ancestors.sql" "labels.sql" "observed.sql" "visits.sql"),
    builtin!("claims", context = "context.sql", with = "claim_dates.sql" "kinds.csv" "known_kinds.sql"),
    builtin!(
        "fhir",
        links = "links.sql",
        context = "context.sql",
        with = "conditions.sql" "treatments.sql" "visits.sql"
    ),
    builtin!("events", links = "links.sql", with = "kinds.csv" "known_kinds.sql"),
];

impl Source {
    /// The sources that come with the program.
    pub fn builtin() -> Vec<Source> {
        BUILTIN
            .iter()
            .map(|files| Source {
                name: files.name.into(),
                path: format!("sources/{}/source.toml", files.name),
                description: toml::from_str(files.description)
                    .unwrap_or_else(|error| panic!("sources/{}/source.toml: {error}", files.name)),
                encounters: files.encounters.into(),
                events: files.events.into(),
                links: files.links.map(str::to_owned),
                context: files.context.map(str::to_owned),
                builtin: files.with.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect(),
            })
            .collect()
    }

    /// A user's own source: a `source.toml` with its SQL beside it.
    ///
    /// # Errors
    /// If a file is missing or makes no sense.
    pub fn read(path: &Path) -> Result<Source> {
        let path = if path.is_dir() { path.join("source.toml") } else { path.to_owned() };
        let text =
            |path: &Path| gct::files::read_text(path).map_err(|error| Error::system("read", path, error));
        let shown = path.display().to_string();
        let description: Description = overrides::typed(&overrides::read(&path)?)
            .map_err(|problem| Error::Source { path: shown.clone(), problem })?;
        let folder = path.parent().unwrap_or(Path::new("."));
        check_context(&description).map_err(|problem| Error::Source { path: shown.clone(), problem })?;
        let optional = |name: &str| {
            let path = folder.join(name);
            path.exists().then(|| text(&path)).transpose()
        };
        let mut builtin = vec![];
        for file in description.tables.values().filter_map(|table| table.builtin.as_ref()) {
            builtin.push((file.clone(), text(&folder.join(file))?));
        }
        let views = description.views.iter().map(|view| format!("{view}.sql"));
        let rollups = description.rollups.iter().map(|(name, rollup)| rollup.file(name));
        let labels = folder.join(LABELS).exists().then(|| LABELS.to_owned());
        for file in views.chain(rollups).chain(labels) {
            let sql = text(&folder.join(&file))?;
            builtin.push((file, sql));
        }
        let name =
            folder.canonicalize().ok().and_then(|folder| Some(folder.file_name()?.to_str()?.to_owned()));
        Ok(Source {
            name: name.unwrap_or_else(|| "sql".into()),
            path: shown,
            description,
            encounters: text(&folder.join("encounters.sql"))?,
            events: text(&folder.join("events.sql"))?,
            links: optional("links.sql")?,
            context: optional("context.sql")?,
            builtin,
        })
    }

    /// The query for labels whose names the data have, if the source has one: a row per encounter and label.
    pub(crate) fn labels(&self) -> Option<&str> {
        self.builtin.iter().find(|(name, _)| name == LABELS).map(|(_, text)| text.as_str())
    }

    /// The text of a table or view that comes with the source.
    ///
    /// # Errors
    /// If it is missing.
    pub(crate) fn builtin_text(&self, file: &str) -> Result<&str> {
        let found = self.builtin.iter().find(|(name, _)| name == file);
        found.map(|(_, text)| text.as_str()).ok_or_else(|| Error::Source {
            path: self.path.clone(),
            problem: format!("its file `{file}` is missing"),
        })
    }
}

/// Refuses names of context that a user cannot ask for.
fn check_context(description: &Description) -> Result<(), String> {
    let is_wrong = |name: &&String| ["all", "none", ""].contains(&name.as_str()) || name.contains([',', '=']);
    match description.context.keys().find(is_wrong) {
        Some(name) => Err(format!("context cannot be called `{name}`: use letters, digits and underscores")),
        None => Ok(()),
    }
}

/// A value of an option, as SQL writes it.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing was said.
    Null,
    /// Present or not.
    Flag(bool),
    /// A whole number.
    Integer(i64),
    /// A number.
    Number(f64),
    /// Text.
    Text(String),
    /// A whole number of days.
    Days(u32),
    /// Two whole numbers, the smaller first.
    Range(u32, u32),
    /// Where a table is, if not where the others are, and which part of it is meant, if not all.
    Table {
        /// Its path, or its name among the others.
        path: Option<String>,
        /// The part.
        part: Option<String>,
    },
}

impl Value {
    /// Reads a value as a user writes it on the command line.
    ///
    /// # Errors
    /// If it is not of the option's type, or none of its values.
    pub fn parse(name: &str, choice: &Choice, text: &str) -> Result<Value> {
        let refuse = |allowed: String| Error::Choice { name: name.into(), value: text.into(), allowed };
        let fits = |number: f64| choice.above.is_none_or(|above| number > above);
        let above = choice.above.map_or(String::new(), |above| format!(" above {above}"));
        if !choice.one_of.is_empty() && !choice.one_of.iter().any(|known| known == text) {
            return Err(refuse(choice.one_of.join(", ")));
        }
        Ok(match choice.kind {
            ChoiceKind::Flag => Value::Flag(text.parse().map_err(|_| refuse("true or false".into()))?),
            ChoiceKind::Integer => match text.parse::<i64>() {
                Ok(number) if fits(number as f64) => Value::Integer(number),
                _ => return Err(refuse(format!("a whole number{above}"))),
            },
            ChoiceKind::Number => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && fits(number) => Value::Number(number),
                _ => return Err(refuse(format!("a number{above}"))),
            },
            ChoiceKind::Text if choice.words.is_empty() => Value::Text(text.into()),
            ChoiceKind::Text => Value::Text(numbers(text, &choice.words).ok_or_else(|| {
                let words: Vec<&str> = choice.words.keys().map(String::as_str).collect();
                refuse(format!("whole numbers, or {}, with commas between them", words.join(", ")))
            })?),
            ChoiceKind::Days => match text.parse() {
                Ok(days @ 1..=MOST_DAYS) => Value::Days(days),
                _ => return Err(refuse(format!("a whole number from 1 to {MOST_DAYS}"))),
            },
            ChoiceKind::Range => range(name, text)?,
            ChoiceKind::Table => table(text)
                .ok_or_else(|| refuse("a table or its path, or :NUMBER for a part of it, or both".into()))?,
        })
    }

    /// As it is written in SQL.
    pub fn sql(&self) -> String {
        match self {
            Value::Null => "NULL".into(),
            Value::Flag(flag) => flag.to_string(),
            // A negative number after a minus would begin a comment.
            Value::Integer(number) if *number < 0 => format!("({number})"),
            Value::Integer(number) => number.to_string(),
            Value::Number(number) => format!("CAST({number:?} AS DOUBLE)"),
            Value::Text(text) => quoted(text),
            Value::Days(days) => format!("INTERVAL '{days} days'"),
            Value::Range(first, last) => format!("make_array({first}, {last})"),
            Value::Table { part, .. } => quoted(part.as_deref().unwrap_or_default()),
        }
    }

    /// As messages have it.
    pub(crate) fn shown(&self) -> String {
        match self.json() {
            serde_json::Value::Null => "none".into(),
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        }
    }

    /// As it is written in `dataset.json`.
    pub fn json(&self) -> serde_json::Value {
        match self {
            Value::Null => serde_json::Value::Null,
            Value::Flag(flag) => (*flag).into(),
            Value::Integer(number) => (*number).into(),
            Value::Number(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Days(days) => (*days).into(),
            Value::Range(first, last) => format!("{first}..{last}").into(),
            Value::Table { path, part } => {
                let part = part.as_ref().map(|part| format!(":{part}"));
                [path.clone(), part].into_iter().flatten().collect::<String>().into()
            }
        }
    }
}

/// A century, so that no time that is read is moved beyond all times.
const MOST_DAYS: u32 = 36_500;

/// Two whole numbers with two points between them, the smaller first, as the value of an option or setting.
///
/// # Errors
/// If it is something else.
pub(crate) fn range(name: &str, text: &str) -> Result<Value> {
    let numbers = || {
        let (first, last) = text.split_once("..")?;
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last).then_some(Value::Range(first, last))
    };
    numbers().ok_or_else(|| {
        let allowed = "two whole numbers with .. between them, the smaller one first, as 1..365".into();
        Error::Choice { name: name.into(), value: text.into(), allowed }
    })
}

/// A table and a part of it: `cohorts.csv`, `cohorts.csv:5`, `:5`, `5`.
fn table(text: &str) -> Option<Value> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (path, part) = match text.rsplit_once(':') {
        Some((path, part)) if is_number(part) => (path, Some(part)),
        None if is_number(text) => ("", Some(text)),
        _ => (text, None),
    };
    let [path, part] = [Some(path), part].map(|text| text.filter(|text| !text.is_empty()).map(str::to_owned));
    (path.is_some() || part.is_some()).then_some(Value::Table { path, part })
}

/// A list of whole numbers and words that stand for some, as numbers with commas between them.
fn numbers(text: &str, words: &BTreeMap<String, String>) -> Option<String> {
    let number = |part: &str| {
        let part = part.trim().to_lowercase();
        words.get(&part).cloned().or_else(|| part.parse::<i64>().ok().map(|number| number.to_string()))
    };
    let numbers: Option<Vec<String>> = text.split(',').map(number).collect();
    numbers.map(|numbers| numbers.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_number_does_not_begin_a_comment() {
        assert_eq!(Value::Integer(-3).sql(), "(-3)");
        assert_eq!(Value::Text("O'Hara".into()).sql(), "'O''Hara'");
    }

    #[test]
    fn days_are_an_interval() {
        let choice: Choice = toml::from_str("about = ''\ntype = 'days'").unwrap();
        assert_eq!(Value::parse("n", &choice, "7").unwrap().sql(), "INTERVAL '7 days'");
        for wrong in ["0", "-1", "1.5", "36501", "soon"] {
            let error = Value::parse("n", &choice, wrong).unwrap_err().to_string();
            assert!(error.ends_with("expected a whole number from 1 to 36500"), "{wrong}: {error}");
        }
    }

    #[test]
    fn words_stand_for_numbers_in_a_list() {
        let words = BTreeMap::from([("inpatient".to_owned(), "9201,262".to_owned())]);
        assert_eq!(numbers("Inpatient, 9203", &words).as_deref(), Some("9201,262,9203"));
        assert_eq!(numbers("ward", &words), None);
    }

    #[test]
    fn a_range_has_its_smaller_number_first() {
        assert_eq!(range("within", "1..365").unwrap(), Value::Range(1, 365));
        assert_eq!(range("within", " 0 .. 0 ").unwrap(), Value::Range(0, 0));
        for wrong in ["365..1", "1-365", "1", "..", "-1..5", "1..x"] {
            let error = range("within", wrong).unwrap_err().to_string();
            assert!(error.starts_with("option `within`: "), "{wrong}: {error}");
        }
        assert_eq!(Value::Range(1, 365).sql(), "make_array(1, 365)");
    }

    #[test]
    fn a_table_can_have_a_part() {
        for (text, path, part) in [
            ("cohorts.csv", Some("cohorts.csv"), None),
            ("cohorts.csv:5", Some("cohorts.csv"), Some("5")),
            (":5", None, Some("5")),
            ("5", None, Some("5")),
            ("s3://a/b", Some("s3://a/b"), None),
            ("s3://a/b:7", Some("s3://a/b"), Some("7")),
        ] {
            let [path, part] = [path, part].map(|text| text.map(str::to_owned));
            assert_eq!(table(text), Some(Value::Table { path, part }), "{text}");
        }
        assert_eq!(table(""), None);
        assert_eq!(table("cohorts.csv:5").unwrap().json(), "cohorts.csv:5");
        assert_eq!(table("x").unwrap().sql(), "''");
    }

    #[test]
    fn a_column_says_what_it_holds_and_how_else_it_is_called() {
        let column = Column::try_from(ColumnText("id? hadm_id visit_id".into())).unwrap();
        let aliases = vec!["hadm_id".to_owned(), "visit_id".to_owned()];
        assert_eq!(column, Column { kind: ColumnKind::Id, optional: true, aliases });
        assert!(Column::try_from(ColumnText("string".into())).unwrap_err().contains("`string`"));
    }

    #[test]
    fn kinds_of_events_are_called_alike_in_the_library() {
        let sources = Source::builtin();
        let events = sources.iter().find(|source| source.name == "events").unwrap();
        let kinds = events.builtin_text("kinds.csv").unwrap();
        assert_eq!(kinds.lines().count(), 17, "a header, and as many names as the library knows");
        for line in kinds.lines().skip(1) {
            let (name, kind) = line.split_once(',').unwrap();
            let known = gct::coding::kind_named(&name.to_uppercase()).unwrap();
            assert_eq!(known.name(), kind, "{name}");
        }
    }

    #[test]
    fn every_source_that_comes_with_the_program_can_be_read() {
        let sources = Source::builtin();
        assert_eq!(sources.len(), BUILTIN.len());
        for source in sources {
            for view in &source.description.views {
                source.builtin_text(&format!("{view}.sql")).unwrap();
            }
            for (name, rollup) in &source.description.rollups {
                source.builtin_text(&rollup.file(name)).unwrap();
                for table in &rollup.tables {
                    assert!(source.description.tables.contains_key(table), "{name}: {table}");
                }
            }
            check_context(&source.description).unwrap();
            for table in &source.description.any_of {
                assert!(source.description.tables[table].optional, "{table}");
            }
            for (rules, values) in &source.description.rules {
                for option in values.keys().filter(|option| !crate::settings::is_common(option)) {
                    assert!(source.description.options.contains_key(option), "{rules}: {option}");
                }
            }
        }
    }
}
