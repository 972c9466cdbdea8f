//! Tables that map codes to groups.

use std::collections::BTreeMap;

use super::code::{Parts, vocabulary};

/// A code of the dataset has at most so many bytes.
const LONGEST: usize = 1000;

/// A group of codes, which becomes a code of the dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What it is called.
    pub code: String,
    /// What it means, where that is known.
    pub description: Option<String>,
}

/// What a table says of one code.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    /// The vocabulary of the code; empty if the table does not say.
    vocabulary: String,
    group: Group,
}

impl Entry {
    /// Whether a code of this vocabulary can be meant.
    fn is_of(&self, vocabulary: &str) -> bool {
        vocabulary.is_empty() || self.vocabulary.is_empty() || self.vocabulary == vocabulary
    }
}

/// Groups by code. Vocabularies are compared where both sides name one: `E850` of ICD-9 is not that of
/// ICD-10.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping {
    /// By what follows the prefix, without dots, in upper case.
    plain: BTreeMap<String, Vec<Entry>>,
    /// By the whole code as it is recorded, where that says something else: as the tables of a source do.
    exact: BTreeMap<String, Group>,
}

impl Mapping {
    /// The mapping that [`Mapping::table`] wrote down, or one of codes as they are recorded.
    pub fn of_table(table: &BTreeMap<String, String>) -> Self {
        let mut mapping = Mapping::default();
        for (name, group) in table {
            // Names of vocabularies are in lower case, and codes are not.
            let (of, code) = match name.split_once(':') {
                Some((of, code)) if !of.is_empty() && vocabulary(of) == of => (of, code),
                _ => ("", name.as_str()),
            };
            let group = Group { code: group.clone(), description: None };
            let entries = mapping.plain.entry(code.to_owned()).or_default();
            entries.push(Entry { vocabulary: of.to_owned(), group });
        }
        let is_other = |(name, group): &(&String, &String)| {
            mapping.group(name).is_none_or(|found| found.code != **group)
        };
        let named = |(name, group): (&String, &String)| {
            (name.clone(), Group { code: group.clone(), description: None })
        };
        let exact = table.iter().filter(is_other).map(named).collect();
        Mapping { exact, ..mapping }
    }

    /// Whether it maps nothing.
    pub fn is_empty(&self) -> bool {
        self.plain.is_empty()
    }

    /// Adds a code of a vocabulary, which the code's own prefix names if it is empty.
    ///
    /// # Errors
    /// If the code has another group already, or the group's name is too long.
    pub fn add(&mut self, vocabulary: &str, code: &str, group: Group) -> Result<(), String> {
        let parts = Parts::of(code);
        let vocabulary = if vocabulary.is_empty() { parts.vocabulary() } else { vocabulary.into() };
        if group.code.len() > LONGEST {
            return Err(format!("the group of the code {code} is longer than {LONGEST} bytes"));
        }
        let known = self.plain.entry(parts.plain()).or_default();
        if let Some(other) =
            known.iter().find(|entry| entry.is_of(&vocabulary) && entry.group.code != group.code)
        {
            let [other, group] = [&other.group.code, &group.code];
            return Err(format!("the code {code} has the group {group}, but {other} in an earlier row"));
        }
        if !known.iter().any(|entry| entry.vocabulary == vocabulary) {
            known.push(Entry { vocabulary, group });
        }
        Ok(())
    }

    /// The group of a code, if it has one.
    pub fn group(&self, code: &str) -> Option<Group> {
        if let Some(group) = self.exact.get(code) {
            return Some(group.clone());
        }
        let parts = Parts::of(code);
        let vocabulary = parts.vocabulary();
        let entry = self.plain.get(&parts.plain())?.iter().find(|entry| entry.is_of(&vocabulary))?;
        Some(entry.group.clone())
    }

    /// All codes, after their vocabulary if they have one, with their groups.
    pub fn table(&self) -> BTreeMap<String, String> {
        let named = |code: &String, entry: &Entry| match entry.vocabulary.as_str() {
            "" => code.clone(),
            vocabulary => format!("{vocabulary}:{code}"),
        };
        let each =
            self.plain.iter().flat_map(|(code, entries)| entries.iter().map(move |entry| (code, entry)));
        each.map(|(code, entry)| (named(code, entry), entry.group.code.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_that_was_written_down_maps_as_before() {
        let mut mapping = Mapping::default();
        let group = |code: &str| Group { code: code.into(), description: Some("what it means".into()) };
        for (vocabulary, code, name) in [
            ("icd10", "I50.1", "CCSR:CIR019"),
            ("icd9proc", "47.01", "CCS:80"),
            ("", "SNOMED:123", "heart"),
            ("", "SNOMED:124", "lung"),
            ("", "aspirin", "pain"),
            ("", "renal|failure/acute", "kidney"),
            ("icd10", "E850", "CCSR:END"),
            ("icd9", "E850", "CCS:2603"),
        ] {
            mapping.add(vocabulary, code, group(name)).unwrap();
        }
        let table = mapping.table();
        assert_eq!(table["icd10:I501"], "CCSR:CIR019");
        assert_eq!(table["snomed:123"], "heart");
        let again = Mapping::of_table(&table);
        assert_eq!(again.table(), table);
        for code in [
            "ICD10CM:I50.1",
            "i501",
            "ICD9PROC:4701",
            "SNOMED:123",
            "snomed/124",
            "Aspirin",
            "renal|failure/acute",
            "ICD10CM:E850",
            "ICD9CM:E850",
            "ICD9CM:I50.1",
            "nothing",
        ] {
            let named = |mapping: &Mapping| mapping.group(code).map(|group| group.code);
            assert_eq!(named(&mapping), named(&again), "{code}");
        }
        assert_eq!(again.group("ICD9CM:E850").unwrap().code, "CCS:2603");
    }

    #[test]
    fn codes_that_were_written_down_as_they_are_recorded_have_their_own_groups() {
        let table = [
            ("DIAGNOSIS//ICD//10//I501", "ICD10CM/I50.1"),
            ("RxNorm:313782", "RxNorm:161"),
            ("a.1", "first"),
            ("A1", "second"),
        ];
        let table = table.map(|(code, group)| (code.to_owned(), group.to_owned())).into();
        let mapping = Mapping::of_table(&table);
        assert_eq!(mapping.table(), table);
        let group = |code: &str| mapping.group(code).map(|group| group.code);
        for (code, expected) in &table {
            assert_eq!(group(code).as_ref(), Some(expected), "{code}");
        }
        assert_eq!(group("RxNorm:313783"), None);
    }
}
