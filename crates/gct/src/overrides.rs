//! Settings laid over settings, as TOML tables: a file over defaults, a flag over the file.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::{Error, OnPath, Result};
use crate::files;

/// Reads a TOML file.
///
/// # Errors
/// If it cannot be read; if it is not TOML, with the line.
pub fn read(path: &Path) -> Result<Table> {
    let text = files::read_text(path).on("read", path)?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        let problem = format!("line {line}: {}", error.message());
        Error::Malformed { path: path.to_owned(), problem }
    })
}

/// Lays one table over another: tables inside of both are merged, everything else is replaced.
pub fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

/// Settings that are given together, and what to call them where they are wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Where they come from: a file, a flag.
    pub name: String,
    /// The settings.
    pub settings: Table,
}

/// Lays settings over defaults. Each layer is checked by itself, so that a mistake is blamed on the one that
/// it is in.
///
/// # Errors
/// What is wrong, after the name of the layer.
pub fn lay_over<T: Serialize + DeserializeOwned>(defaults: &T, layers: &[Layer]) -> Result<T, String> {
    let mut settings = table(defaults);
    for layer in layers {
        merge(&mut settings, layer.settings.clone());
        typed::<T>(&settings).map_err(|problem| format!("{}: {problem}", layer.name))?;
    }
    typed(&settings)
}

/// `a.b=1` as a table. A value that is no TOML value is taken as text.
///
/// # Errors
/// What is wrong with it.
pub fn assignment(text: &str) -> Result<Table, String> {
    let (key, value) = text
        .split_once('=')
        .filter(|_| !text.contains('\n'))
        .ok_or_else(|| "expected KEY=VALUE".to_owned())?;
    let parse = |value: &str| format!("{} = {value}", key.trim()).parse::<Table>();
    parse(value.trim())
        .or_else(|_| parse(&Value::from(value.trim()).to_string()))
        .map_err(|error| error.message().to_owned())
}

/// Finds a name among those known, which it may differ from in case, and in hyphens for underscores.
///
/// # Errors
/// If it is none of them.
pub(crate) fn canonical(what: &'static str, name: &str, known: &[&'static str]) -> Result<&'static str> {
    let folded = name.to_ascii_lowercase().replace('-', "_");
    known.iter().copied().find(|known| *known == folded).ok_or_else(|| Error::UnknownName {
        what,
        name: name.into(),
        known: known.iter().map(ToString::to_string).collect(),
    })
}

/// Settings as a table.
///
/// # Panics
/// If a number is too large for TOML; those that settings allow are not.
pub fn table(settings: &impl Serialize) -> Table {
    Table::try_from(settings).expect("settings have text keys and numbers that fit")
}

/// Settings as their type, or what is wrong and with which of them.
///
/// # Errors
/// If a name is unknown, a value is missing or of another type.
pub fn typed<T: DeserializeOwned>(settings: &Table) -> Result<T, String> {
    serde_path_to_error::deserialize(settings.clone())
        .map_err(|error| in_words(&error.path().to_string(), error.inner().message()))
}

/// Reads a JSON file that this program wrote.
///
/// # Errors
/// If it cannot be read, or is not what its type says.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = files::read_text(path).on("read", path)?;
    let wrong = |key: &str, error: &serde_json::Error| Error::file(path, in_words(key, &error.to_string()));
    let mut json = serde_json::Deserializer::from_str(&text);
    let value = serde_path_to_error::deserialize(&mut json)
        .map_err(|error| wrong(&error.path().to_string(), error.inner()))?;
    json.end().map_err(|error| wrong(".", &error))?;
    Ok(value)
}

/// A value of JSON as its type, or what is wrong with it and where.
pub(crate) fn from_json<T: DeserializeOwned>(value: serde_json::Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| in_words(&error.path().to_string(), &error.inner().to_string()))
}

/// Types and values as serde names them, and what they are called outside of Rust. Longer ones come before
/// those that they begin with.
const WORDS: [(&str, &str); 24] = [
    ("floating point `", "number `"),
    ("integer `", "number `"),
    ("boolean `", "`"),
    ("type: string \"", "type: text \""),
    ("value: string \"", "value: text \""),
    ("type: map", "type: a table"),
    ("type: sequence", "type: a list"),
    ("type: unit value", "type: nothing"),
    ("type: null", "type: nothing"),
    ("unknown variant `", "unknown name `"),
    ("expected f64", "expected a number"),
    ("expected f32", "expected a number"),
    ("expected i64", "expected a whole number"),
    ("expected i32", "expected a whole number"),
    ("expected usize", "expected a whole number from 0"),
    ("expected u64", "expected a whole number from 0"),
    ("expected u32", "expected a whole number from 0"),
    ("expected u16", "expected a whole number from 0"),
    ("expected u8", "expected a whole number from 0"),
    ("expected a boolean", "expected true or false"),
    ("expected a string", "expected text"),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected a table"),
    ("expected string or map", "expected text or a table"),
];

/// Kinds of Rust types that serde names in front of their own names.
const KINDS: [(&str, &str); 7] = [
    ("tuple struct ", "a list"),
    ("newtype struct ", "a value"),
    ("unit struct ", "nothing"),
    ("struct ", "a table"),
    ("internally tagged enum ", "a table with a name"),
    ("adjacently tagged enum ", "a table"),
    ("enum ", "one of its names"),
];

/// What serde says is wrong at a path, for those who do not write Rust.
fn in_words(path: &str, message: &str) -> String {
    let mut problem = message.replace('\n', " ");
    for (rust, words) in WORDS {
        problem = problem.replace(rust, words);
    }
    for (kind, words) in KINDS {
        problem = without_type(&problem, kind, words);
    }
    match path {
        "." => problem,
        _ if problem.starts_with("unknown field") => problem,
        path => format!("{path}: {problem}"),
    }
}

/// `expected struct PerKind` as `expected a table`.
fn without_type(problem: &str, kind: &str, words: &str) -> String {
    let Some((begin, end)) = problem.split_once(&format!("expected {kind}")) else { return problem.into() };
    let name = end.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    format!("{begin}expected {words}{}", &end[name.unwrap_or(end.len())..])
}

/// A setting that differs: its name, and its values where it has any.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    name: String,
    given: Option<Value>,
    there: Option<Value>,
}

impl Difference {
    /// Words made of the name, the value given and the value that was there.
    pub(crate) fn in_words(&self, words: impl Fn(&str, &str, &str) -> String) -> String {
        let value = |value: &Option<Value>| value.as_ref().map_or("none".to_owned(), Value::to_string);
        words(&self.name, &value(&self.given), &value(&self.there))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |name: &str, given: &str, there: &str| {
            format!("`{name}` would be {given}, but it began with {there}")
        };
        f.write_str(&self.in_words(words))
    }
}

/// The first setting that differs: what it would be, and what it was.
pub fn difference<T: Serialize>(given: &T, there: &T) -> Option<Difference> {
    let [given, there] = [given, there].map(|settings| Value::Table(table(settings)));
    difference_below(Some(&given), Some(&there), "")
}

fn difference_below(given: Option<&Value>, there: Option<&Value>, path: &str) -> Option<Difference> {
    let (Some(Value::Table(given)), Some(Value::Table(there))) = (given, there) else {
        let difference =
            || Difference { name: path.to_owned(), given: given.cloned(), there: there.cloned() };
        return (given != there).then(difference);
    };
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    // A model's name says more than the settings that it does not share with another.
    let name = ["name".to_owned()];
    let mut keys = name.iter().chain(given.keys()).chain(there.keys());
    keys.find_map(|key| difference_below(given.get(key), there.get(key), &below(key)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn tables_are_merged_and_everything_else_is_replaced() {
        let mut settings: Table = "a = 1\n[b]\nc = [1]\nd = 2".parse().unwrap();
        merge(&mut settings, "b.c = [3]\ne = 4".parse().unwrap());
        assert_eq!(settings, "a = 1\ne = 4\n[b]\nc = [3]\nd = 2".parse().unwrap());
    }

    #[test]
    fn what_was_expected_is_told_without_types_of_rust() {
        let wrong = |text: &str| typed::<BTreeMap<String, u64>>(&text.parse().unwrap()).unwrap_err();
        assert_eq!(wrong("seed = \"x\""), "seed: invalid type: text \"x\", expected a whole number from 0");
        assert_eq!(wrong("seed = -1"), "seed: invalid value: number `-1`, expected a whole number from 0");
        for (message, words) in [
            (
                "invalid type: string \"x\", expected struct PerKind",
                "invalid type: text \"x\", expected a table",
            ),
            ("invalid type: map, expected a string", "invalid type: a table, expected text"),
            ("invalid type: null, expected tuple struct Pair", "invalid type: nothing, expected a list"),
            (
                "invalid type: sequence, expected internally tagged enum Config at line 1 column 2",
                "invalid type: a list, expected a table with a name at line 1 column 2",
            ),
            ("unknown variant `x`, expected `a` or `b`", "unknown name `x`, expected `a` or `b`"),
        ] {
            assert_eq!(in_words(".", message), words);
        }
    }

    #[test]
    fn the_name_of_what_differs_is_told_first() {
        let [one, other] = ["a = 1\n[b]\nname = \"x\"\nf = 1", "a = 1\n[b]\nname = \"y\"\ng = 1"]
            .map(|text| text.parse().unwrap());
        assert_eq!(difference::<Table>(&one, &one), None);
        assert_eq!(
            difference::<Table>(&one, &other).unwrap().to_string(),
            "`b.name` would be \"x\", but it began with \"y\""
        );
    }
}
