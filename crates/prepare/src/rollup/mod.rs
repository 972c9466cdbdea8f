//! Rollups: codes replaced by the groups that they belong to, by a rule or by a file that maps them.

/// Files that map codes to groups.
mod mapping;

use std::collections::BTreeMap;
use std::path::Path;

use gct::coding::{Group, Groups, Rule};
use gct::record::CodeKind;

use crate::error::{Error, Result, nearest};
use crate::settings::Settings;

/// How the codes of one kind become groups.
pub(crate) struct Rollup {
    pub(crate) kind: CodeKind,
    /// The rule or file, as the user gave it.
    pub(crate) rule: String,
    pub(crate) by: Groups,
}

impl Rollup {
    /// The rollups that settings ask for. Reads their files.
    pub(crate) fn all(settings: &Settings) -> Result<Vec<Self>> {
        let given =
            CodeKind::ALL.into_iter().filter_map(|kind| Some((kind, settings.rollup[kind].as_ref()?)));
        given.map(|(kind, rule)| Rollup::read(kind, rule)).collect()
    }

    fn read(kind: CodeKind, rule: &str) -> Result<Self> {
        let by = match Rule::named(rule) {
            Some(rule) => Groups::Rule(rule),
            None if Path::new(rule).exists() => Groups::Mapping(mapping::read(Path::new(rule), kind)?),
            None => return Err(unknown(kind, rule)),
        };
        Ok(Rollup { kind, rule: rule.into(), by })
    }

    /// The group of a code, if the rollup maps it.
    pub(crate) fn group(&self, code: &str) -> Option<Group> {
        self.by.group(code)
    }

    /// The whole mapping of a file, from codes to groups. It does not tell which codes occur in the data,
    /// since rare ones must not be disclosed.
    pub(crate) fn mapping(&self) -> Option<BTreeMap<String, String>> {
        match &self.by {
            Groups::Rule(_) => None,
            Groups::Mapping(mapping) => Some(mapping.table()),
        }
    }
}

fn unknown(kind: CodeKind, rule: &str) -> Error {
    let names: Vec<String> = Rule::NAMES.map(String::from).to_vec();
    let hint = match nearest(rule, &names) {
        Some(near) => {
            format!("is it the rule `{near}`? or give the path of a file that maps codes to groups")
        }
        None => "give one of these rules, or the path of a file that maps codes to groups".into(),
    };
    let problem = format!(
        "the rollup of {}: `{rule}` is neither a rule nor a file; rules are {}",
        kind.name(),
        names.join(", ")
    );
    Error::Rollup { problem, hint }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_there_is_not_names_the_nearest() {
        let error = Rollup::read(CodeKind::Diagnosis, "icd-chapters").err().unwrap();
        assert_eq!(
            error.to_string(),
            "the rollup of diagnosis: `icd-chapters` is neither a rule nor a file; \
             rules are icd3, icd_chapter, atc1, atc2, atc3, atc4, atc5"
        );
        assert!(error.hint().starts_with("is it the rule `icd_chapter`?"), "{}", error.hint());
        assert!(Rollup::read(CodeKind::Diagnosis, "ICD-Chapter").is_ok());
    }
}
