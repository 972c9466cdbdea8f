//! Settings laid over settings, as TOML tables: a file over defaults, a flag over the file.

use std::fmt;
use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::error::{Error, OnPath, Result};

/// Reads a TOML file.
///
/// # Errors
/// If it cannot be read; if it is not TOML, with the line.
pub fn read(path: &Path) -> Result<Table> {
    let text = fs::read_to_string(path).on("read", path)?;
    text.parse().map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        let problem = format!("line {line}: {}", error.message());
        Error::Manifest { path: path.to_owned(), problem }
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

/// What serde says is wrong at a path, for those who do not write Rust.
pub(crate) fn in_words(path: &str, message: &str) -> String {
    const TYPES: [(&str, &str); 6] = [
        ("f64", "a number"),
        ("u64", "a whole number from 0"),
        ("u32", "a whole number from 0"),
        ("usize", "a whole number from 0"),
        ("i64", "a whole number"),
        ("a boolean", "true or false"),
    ];
    let mut problem = message.replace('\n', " ");
    for (rust, words) in TYPES {
        if let Some(told) = problem.strip_suffix(&format!("expected {rust}")) {
            problem = format!("{told}expected {words}");
            break;
        }
    }
    match path {
        "." => problem,
        _ if problem.starts_with("unknown field") => problem,
        path => format!("{path}: {problem}"),
    }
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
        assert_eq!(wrong("seed = \"x\""), "seed: invalid type: string \"x\", expected a whole number from 0");
        assert_eq!(wrong("seed = -1"), "seed: invalid value: integer `-1`, expected a whole number from 0");
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
