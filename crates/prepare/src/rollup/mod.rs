//! Rollups: codes replaced by the groups that they belong to, by a rule or by a file that maps them.

/// Files that map codes to groups.
mod mapping;

/// Groups that the tables of the source know.
mod hierarchy;

use std::collections::BTreeMap;
use std::path::Path;

use gct::coding::{Group, Groups, Rule};
use gct::record::CodeKind;

use crate::error::{Error, Result, nearest};
use crate::settings::Settings;
use crate::source::Source;
pub(crate) use hierarchy::{Chosen, FoundGroups, Nearest};

/// How the codes of one kind become groups.
pub(crate) struct Rollup {
    pub(crate) kind: CodeKind,
    /// The rule or file, as the user gave it.
    pub(crate) rule: String,
    by: By,
}

/// Who knows the groups.
enum By {
    /// A rule or a mapping.
    Coding(Groups),
    /// The tables of the source.
    Source(Chosen),
}

impl Rollup {
    /// The rollups that settings ask for. Reads their files.
    pub(crate) fn all(settings: &Settings, source: &Source) -> Result<Vec<Self>> {
        let given =
            CodeKind::ALL.into_iter().filter_map(|kind| Some((kind, settings.rollup[kind].as_ref()?)));
        let rollup = |(kind, rule): (CodeKind, &String)| match Chosen::of(kind, rule, source)? {
            Some(chosen) => Ok(Rollup { kind, rule: rule.clone(), by: By::Source(chosen) }),
            None => Rollup::read(kind, rule),
        };
        given.map(rollup).collect()
    }

    fn read(kind: CodeKind, rule: &str) -> Result<Self> {
        let groups = match Rule::named(rule) {
            Some(rule) => Groups::Rule(rule),
            None if Path::new(rule).exists() => Groups::Mapping(mapping::read(Path::new(rule), kind)?),
            None => return Err(unknown(kind, rule)),
        };
        Ok(Rollup::new(kind, rule, groups))
    }

    /// A rollup whose groups are known already.
    pub(crate) fn new(kind: CodeKind, rule: &str, groups: Groups) -> Self {
        Rollup { kind, rule: rule.into(), by: By::Coding(groups) }
    }

    /// The kind and what the source's tables are asked for, if they know the groups.
    pub(crate) fn chosen(&self) -> Option<(CodeKind, &Chosen)> {
        match &self.by {
            By::Source(chosen) => Some((self.kind, chosen)),
            By::Coding(_) => None,
        }
    }

    /// The group of a code, if the rollup maps it. Those that the source's tables know are not known here.
    pub(crate) fn group(&self, code: &str) -> Option<Group> {
        match &self.by {
            By::Coding(groups) => groups.group(code),
            By::Source(_) => None,
        }
    }

    /// The whole mapping of a file, from codes to groups. It does not tell which codes occur in the data,
    /// since rare ones must not be disclosed.
    pub(crate) fn mapping(&self) -> Option<BTreeMap<String, String>> {
        match &self.by {
            By::Coding(Groups::Rule(_)) | By::Source(_) => None,
            By::Coding(Groups::Mapping(mapping)) => Some(mapping.table()),
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
