//! Rollups by what the tables of a source say of codes: ancestors of concepts, parents of codes. Which groups
//! codes have is known once the tables are read.

use std::collections::{BTreeMap, BTreeSet};

use gct::record::CodeKind;

use super::Group;
use crate::error::{Error, Result};
use crate::source::{Hierarchy, Several, Source};

/// A rollup of a source, as the user chose it: `ancestors:Ingredient`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    /// Its name in `source.toml`.
    pub(crate) name: String,
    /// What follows the name.
    pub(crate) word: Option<String>,
    several: Several,
    expects: String,
    /// The rollup by the same query that takes the first of several groups, if there is one.
    first: Option<String>,
}

/// The nearest groups of codes, by name.
pub(crate) type Nearest = BTreeMap<String, Vec<Group>>;

/// The groups of codes, each one, and how many codes had several to choose from.
pub(crate) struct FoundGroups {
    pub(crate) of: BTreeMap<String, Group>,
    pub(crate) ties: u64,
}

impl Chosen {
    /// The rollup of a source that a rule names, if it names one.
    pub(super) fn of(kind: CodeKind, rule: &str, source: &Source) -> Result<Option<Self>> {
        let (name, word) = rule.split_once(':').map_or((rule, ""), |(name, word)| (name, word.trim()));
        let name = name.trim().to_lowercase();
        let Some(hierarchy) = source.description.rollups.get(&name) else {
            return match owner(&name).filter(|_| !std::path::Path::new(rule).exists()) {
                Some(owner) => Err(of_other(kind, rule, &owner, &source.name)),
                None => Ok(None),
            };
        };
        let word = Some(word).filter(|word| !word.is_empty()).map(str::to_owned);
        if word.is_none() && hierarchy.needs_word {
            return Err(Error::Rollup {
                problem: format!(
                    "the rollup of {}: `{rule}` does not say which groups are meant",
                    kind.name()
                ),
                hint: format!("give {}", hierarchy.expects),
            });
        }
        let is_first = |(other, rollup): &(&String, &Hierarchy)| {
            rollup.several == Several::First && rollup.file(other) == hierarchy.file(&name)
        };
        let first = source.description.rollups.iter().find(is_first).map(|(other, _)| other.clone());
        let (several, expects) = (hierarchy.several, hierarchy.expects.clone());
        Ok(Some(Chosen { name, word, several, expects, first }))
    }

    /// One group for each code. Refuses groups of none of the codes, and several of one code if that is what
    /// the source says.
    pub(crate) fn settle(
        &self,
        kind: CodeKind,
        rule: &str,
        codes: usize,
        nearest: Nearest,
    ) -> Result<FoundGroups> {
        if nearest.is_empty() && codes > 0 {
            return Err(Error::Rollup {
                problem: format!(
                    "the rollup of {}: `{rule}` puts none of the {codes} codes into a group",
                    kind.name()
                ),
                hint: format!("give {}", self.expects),
            });
        }
        let ties = nearest.values().filter(|groups| groups.len() > 1).count() as u64;
        if ties > 0 && self.several == Several::Refuse {
            return Err(self.refuse(kind, rule, ties, &nearest));
        }
        let first = |(code, groups): (String, Vec<Group>)| Some((code, groups.into_iter().next()?));
        Ok(FoundGroups { of: nearest.into_iter().filter_map(first).collect(), ties })
    }

    fn refuse(&self, kind: CodeKind, rule: &str, ties: u64, nearest: &Nearest) -> Error {
        let prefix = prefix(nearest);
        let prefix = prefix.map(|prefix| {
            format!("say which ones by how they begin, for instance {}:{prefix}; or ", self.name)
        });
        let first = self.first.as_ref().map(|first| format!("take the first by name with {first}, or "));
        let file = Some("write a file of codes and groups".to_owned());
        Error::Rollup {
            problem: format!("the rollup of {}: by `{rule}`, {ties} codes have several groups", kind.name()),
            hint: [prefix, first, file].into_iter().flatten().collect(),
        }
    }
}

/// The vocabulary with which most codes that have several groups have one: `ATC/` of `ATC/C07AB02`. None if
/// it helps no code.
fn prefix(nearest: &Nearest) -> Option<String> {
    let vocabulary = |group: &Group| Some(group.code[..=group.code.find([':', '/'])?].to_owned());
    let mut counts = BTreeMap::<String, u64>::new();
    for groups in nearest.values().filter(|groups| groups.len() > 1) {
        let all: Vec<String> = groups.iter().filter_map(vocabulary).collect();
        for one in all.iter().collect::<BTreeSet<_>>() {
            let is_single = all.iter().filter(|other| *other == one).count() == 1;
            *counts.entry(one.clone()).or_default() += u64::from(is_single);
        }
    }
    let best = counts.into_iter().filter(|(_, count)| *count > 0);
    best.max_by(|a, b| a.1.cmp(&b.1).then_with(|| b.0.cmp(&a.0))).map(|(prefix, _)| prefix)
}

/// The source that comes with the program and has a rollup of this name.
fn owner(name: &str) -> Option<String> {
    let sources = Source::builtin().into_iter();
    sources.filter(|source| source.description.rollups.contains_key(name)).map(|source| source.name).next()
}

fn of_other(kind: CodeKind, rule: &str, owner: &str, source: &str) -> Error {
    Error::Rollup {
        problem: format!(
            "the rollup of {}: `{rule}` needs tables of {owner}, which {source} does not have",
            kind.name()
        ),
        hint: "give another rule, or the path of a file that maps codes to groups".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(codes: &[(&str, &[&str])]) -> Nearest {
        let group = |code: &&str| Group { code: (*code).into(), description: None };
        codes.iter().map(|(code, groups)| ((*code).to_owned(), groups.iter().map(group).collect())).collect()
    }

    fn chosen(source: &str, rule: &str) -> Result<Option<Chosen>> {
        let source = Source::builtin().into_iter().find(|known| known.name == source).unwrap();
        Chosen::of(CodeKind::Treatment, rule, &source)
    }

    #[test]
    fn a_rule_names_a_rollup_of_the_source() {
        let found = chosen("omop", "Ancestors: ATC 3rd").unwrap().unwrap();
        assert_eq!((found.name.as_str(), found.word.as_deref()), ("ancestors", Some("ATC 3rd")));
        assert_eq!(chosen("meds", "parents").unwrap().unwrap().word, None);
        assert!(chosen("omop", "icd3").unwrap().is_none());
        let error = chosen("omop", "ancestors").unwrap_err();
        assert_eq!(
            error.to_string(),
            "the rollup of treatment: `ancestors` does not say which groups are meant"
        );
        let error = chosen("events", "ancestors:Ingredient").unwrap_err().to_string();
        assert_eq!(
            error,
            "the rollup of treatment: `ancestors:Ingredient` needs tables of omop, which events does not have"
        );
    }

    #[test]
    fn of_several_groups_the_first_is_taken_or_none() {
        let several =
            nearest(&[("a", &["ATC/1", "ATC/2"]), ("b", &["ATC/3", "RxNorm/9"]), ("c", &["ATC/4"])]);
        let first = chosen("meds", "first_parent").unwrap().unwrap();
        let groups = first.settle(CodeKind::Treatment, "first_parent", 3, several.clone()).unwrap();
        let taken: Vec<&str> = groups.of.values().map(|group| group.code.as_str()).collect();
        assert_eq!((taken, groups.ties), (vec!["ATC/1", "ATC/3", "ATC/4"], 2));
        let parents = chosen("meds", "parents").unwrap().unwrap();
        let error = parents.settle(CodeKind::Treatment, "parents", 3, several).err().unwrap();
        assert_eq!(error.to_string(), "the rollup of treatment: by `parents`, 2 codes have several groups");
        assert!(error.hint().contains("for instance parents:ATC/;"), "{}", error.hint());
    }

    #[test]
    fn a_prefix_is_only_suggested_if_it_helps() {
        assert_eq!(prefix(&nearest(&[("a", &["ATC/1", "ATC/2"])])), None);
        let more = nearest(&[("a", &["ATC/1", "RxNorm/2"]), ("b", &["ATC/1", "RxNorm/2", "RxNorm/3"])]);
        assert_eq!(prefix(&more).as_deref(), Some("ATC/"));
    }
}
