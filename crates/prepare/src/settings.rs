//! What all sources have in common that a user can choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gct::files::Overwrite;
use gct::record::{CodeKind, PerKind};
use gct::split::By;

use crate::engine::Limits;
use crate::error::{Error, Result};
use crate::source::{Source, Value};
use crate::tables::Differences;

/// What to do with codes that occur in few encounters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rare {
    /// Leave them out.
    #[default]
    Drop,
    /// Put all of a kind under one code.
    Group,
}

/// How encounters are made into a dataset, whatever the source.
#[derive(Debug, Clone)]
pub struct Settings {
    /// An encounter has at least so many distinct codes of each kind.
    pub min_codes: PerKind<u64>,
    /// And at most so many.
    pub max_codes: PerKind<u64>,
    /// A code occurs in at least so many encounters.
    pub min_count: u64,
    /// What to do with those that do not.
    pub rare: Rare,
    /// Into how many buckets the values of a lab go; 0 for none.
    pub lab_bins: u32,
    /// Labels to join: a table with `encounter_id` and a column per label.
    pub labels: Option<String>,
    /// Use only the first encounters, this many.
    pub limit: Option<u64>,
    /// The split whose training part the buckets are from.
    pub split_by: By,
    /// Its seed.
    pub split_seed: u64,
    /// Refuse what is otherwise dropped and counted.
    pub strict: bool,
    /// Counts below this are hidden, except 0.
    pub min_cell: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            min_codes: PerKind { diagnosis: 1, treatment: 1, lab: 0 },
            max_codes: PerKind { diagnosis: 50, treatment: 50, lab: 50 },
            min_count: 1,
            rare: Rare::Drop,
            lab_bins: 5,
            labels: None,
            limit: None,
            split_by: By::Recorded,
            split_seed: 0,
            strict: false,
            min_cell: 0,
        }
    }
}

/// The settings that a source's rules and defaults can speak of.
const COMMON: [&str; 5] = ["min_codes", "max_codes", "min_count", "lab_bins", "split_by"];

/// Whether an option is one that all sources have.
pub(crate) fn is_common(option: &str) -> bool {
    COMMON.contains(&option)
}

impl Settings {
    /// Changes one setting, as a user or a source writes it.
    ///
    /// # Errors
    /// If the value makes no sense.
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let refuse =
            |allowed: &str| Error::Choice { name: name.into(), value: text.into(), allowed: allowed.into() };
        match name {
            "min_codes" => per_kind(&mut self.min_codes, &[CodeKind::Diagnosis, CodeKind::Treatment], text),
            "max_codes" => per_kind(&mut self.max_codes, &CodeKind::ALL, text),
            "min_count" => text.parse().ok().map(|count| self.min_count = count),
            "lab_bins" => text.parse().ok().filter(|bins| *bins <= 1000).map(|bins| self.lab_bins = bins),
            "split_by" => match text {
                "subject" => Some(By::Subject),
                "encounter" => Some(By::Encounter),
                _ => None,
            }
            .map(|by| self.split_by = by),
            _ => return Err(refuse(&COMMON.join(", "))),
        }
        .ok_or_else(|| {
            refuse(match name {
                "min_codes" | "max_codes" => "a number, or numbers per kind: diagnosis=1,treatment=0",
                "lab_bins" => "a number up to 1000",
                "split_by" => "subject or encounter",
                _ => "a number",
            })
        })
    }
}

/// `5`, or `diagnosis=1,treatment=0`.
fn per_kind(values: &mut PerKind<u64>, all: &[CodeKind], text: &str) -> Option<()> {
    if let Ok(number) = text.parse() {
        all.iter().for_each(|kind| values[*kind] = number);
        return Some(());
    }
    for word in text.split(',') {
        let (name, number) = word.split_once('=')?;
        let kind = CodeKind::ALL.into_iter().find(|kind| kind.name() == name.trim())?;
        values[kind] = number.trim().parse().ok()?;
    }
    Some(())
}

/// Everything that a preparation needs to know.
#[derive(Debug, Clone)]
pub struct Request {
    /// The source.
    pub source: Source,
    /// Where its tables are.
    pub input: String,
    /// The values of the source's options, with null for those to be found by a query.
    pub options: BTreeMap<String, Value>,
    /// The options that were chosen by name, rules included.
    pub rules: Option<String>,
    /// What all sources have in common.
    pub settings: Settings,
    /// How the tables differ from what is expected.
    pub differences: Differences,
    /// How much memory and how many threads to take.
    pub limits: Limits,
    /// Where the conditional probabilities of the training split go, if anywhere.
    pub prior: Option<PathBuf>,
    /// What to do with what is there.
    pub overwrite: Overwrite,
}

impl Request {
    /// A request with everything as the source, the rules and the user say, in this order.
    ///
    /// # Errors
    /// If a name is not known or a value makes no sense.
    pub fn new(
        source: Source,
        input: &str,
        rules: Option<&str>,
        given: &BTreeMap<String, String>,
    ) -> Result<Self> {
        let known = source.description.options.clone();
        let mut settings = Settings::default();
        let mut options: BTreeMap<String, Value> =
            known.keys().map(|name| (name.clone(), Value::Null)).collect();
        let mut set = |name: &str, text: &str| -> Result<()> {
            if is_common(name) {
                return settings.set(name, text);
            }
            let choice = known.get(name).ok_or_else(|| Error::Choice {
                name: name.into(),
                value: text.into(),
                allowed: format!(
                    "one of the options {}",
                    known.keys().cloned().collect::<Vec<_>>().join(", ")
                ),
            })?;
            options.insert(name.into(), Value::parse(name, choice, text)?);
            Ok(())
        };
        for (name, value) in &source.description.defaults {
            set(name, &plain(value))?;
        }
        for (name, choice) in &known {
            if let Some(default) = &choice.default {
                set(name, &plain(default))?;
            }
        }
        if let Some(rules) = rules {
            let values = source.description.rules.get(rules).ok_or_else(|| Error::Choice {
                name: "rules".into(),
                value: rules.into(),
                allowed: source.description.rules.keys().cloned().collect::<Vec<_>>().join(", "),
            })?;
            for (name, value) in values {
                set(name, &plain(value))?;
            }
        }
        for (name, text) in given {
            set(name, text)?;
        }
        Ok(Request {
            source,
            input: input.into(),
            options,
            rules: rules.map(str::to_owned),
            settings,
            differences: Differences::default(),
            limits: Limits::default(),
            prior: None,
            overwrite: Overwrite::Refuse,
        })
    }
}

/// A value without quotes.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_codes_are_for_all_kinds_or_for_some() {
        let mut settings = Settings::default();
        settings.set("min_codes", "2").unwrap();
        assert_eq!(settings.min_codes, PerKind { diagnosis: 2, treatment: 2, lab: 0 });
        settings.set("min_codes", "treatment=0,lab=3").unwrap();
        assert_eq!(settings.min_codes, PerKind { diagnosis: 2, treatment: 0, lab: 3 });
        let error = settings.set("max_codes", "visit=1").unwrap_err().to_string();
        assert!(error.contains("option `max_codes`: visit=1 is not allowed"), "{error}");
    }
}
