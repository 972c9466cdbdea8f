//! Which subgroups encounters are in: by what is recorded of their context, or by a column of a table.

use std::path::Path;

use rustc_hash::FxHashMap;

use super::Options;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::incoming;
use crate::job::Job;
use crate::question::{By, NOT_RECORDED};
use crate::record::{Code, Encounter, EncounterId};

/// More groups than anybody reads.
const MOST_GROUPS: usize = 100;

/// The group of encounters that have several values of what they are grouped by.
const SEVERAL: &str = "several";

/// What encounters are grouped by, and the group of each.
pub(super) struct Groups {
    pub(super) by: Vec<By>,
    members: Vec<Members>,
}

/// The group of encounters by one way to group them.
enum Members {
    /// By their context: the group of each code, if it is one of those.
    OfContext(Vec<Option<u32>>),
    /// One by one. Others belong to the last group.
    Listed(FxHashMap<EncounterId, u32>),
}

impl Groups {
    /// Groups encounters in the words of a vocabulary, in which the codes of context are these.
    ///
    /// # Errors
    /// If a name is neither a column of the table nor one of context, or the table is not what it should be.
    pub(super) fn new(options: &Options, context: &[Code], job: &Job<'_, u64>) -> Result<Self> {
        let mut groups = Groups { by: Vec::new(), members: Vec::new() };
        let (columns, mut listed) = match &options.table {
            Some(table) => columns(table, &options.by, job)?,
            None => Default::default(),
        };
        let names = names(context);
        for name in &options.by {
            let (of, members) = match listed.remove(name) {
                Some(column) => column.finish(),
                None if names.contains(&name.as_str()) => of_context(name, context),
                None => return Err(unknown(name, &columns, &names)),
            };
            if of.len() > MOST_GROUPS {
                let allowed = format!("a name with at most {MOST_GROUPS} groups; found {}", of.len());
                return Err(Error::setting("by", name, &allowed));
            }
            groups.by.push(By { name: name.clone(), groups: of });
            groups.members.push(members);
        }
        Ok(groups)
    }

    /// The same for encounters of a dataset that become those of a run, and can lose context on the way: who
    /// is in which group is read beforehand.
    ///
    /// # Errors
    /// As [`Groups::new`], and if the dataset cannot be read.
    pub(super) fn of_dataset(options: &Options, dataset: &Dataset, job: &Job<'_, u64>) -> Result<Self> {
        let mut groups = Groups::new(options, &dataset.vocabulary().context, job)?;
        let is_of_context = |members: &Members| matches!(members, Members::OfContext(_));
        if !groups.members.iter().any(is_of_context) {
            return Ok(groups);
        }
        let mut listed = vec![FxHashMap::default(); groups.by.len()];
        for encounter in dataset.encounters_with(false)? {
            let encounter = encounter?;
            let of = groups.of(&encounter);
            for (way, listed) in listed.iter_mut().enumerate() {
                let is_last = of[way] as usize + 1 == groups.by[way].groups.len();
                if is_of_context(&groups.members[way]) && !is_last {
                    listed.insert(encounter.id.clone(), of[way]);
                }
            }
        }
        for (members, listed) in groups.members.iter_mut().zip(listed) {
            if is_of_context(members) {
                *members = Members::Listed(listed);
            }
        }
        Ok(groups)
    }

    /// The groups of an encounter, one for each way.
    pub(super) fn of(&self, encounter: &Encounter) -> Vec<u32> {
        let of = |(by, members): (&By, &Members)| {
            let last = by.groups.len() as u32 - 1;
            match members {
                Members::Listed(listed) => listed.get(&encounter.id).copied().unwrap_or(last),
                Members::OfContext(groups) => {
                    let mut found = encounter.codes.context.iter().filter_map(|id| groups[*id as usize]);
                    match (found.next(), found.next()) {
                        (None, _) => last,
                        (Some(group), None) => group,
                        (Some(_), Some(_)) => last - 1,
                    }
                }
            }
        };
        self.by.iter().zip(&self.members).map(of).collect()
    }
}

/// The names of context, each once, in the order of the vocabulary.
fn names(context: &[Code]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in context.iter().map(Code::name_and_value) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The groups that a name of context makes; the last two are of encounters with several values and with none.
fn of_context(name: &str, context: &[Code]) -> (Vec<String>, Members) {
    let mut groups: Vec<String> = Vec::new();
    let of = |code: &Code| {
        let (of, value) = code.name_and_value();
        (of == name).then(|| {
            groups.push(value.to_owned());
            groups.len() as u32 - 1
        })
    };
    let members = context.iter().map(of).collect();
    groups.extend([SEVERAL, NOT_RECORDED].map(str::to_owned));
    (groups, Members::OfContext(members))
}

/// Encounters by what a column of a table says.
#[derive(Default)]
struct Column {
    groups: FxHashMap<String, u32>,
    members: FxHashMap<EncounterId, u32>,
}

impl Column {
    fn add(&mut self, id: &str, group: &str) {
        let next = self.groups.len() as u32;
        let group = *self.groups.entry(group.to_owned()).or_insert(next);
        self.members.insert(EncounterId::new(id), group);
    }

    /// The groups by their names, and the one of encounters that the table does not have.
    fn finish(mut self) -> (Vec<String>, Members) {
        let mut groups: Vec<(String, u32)> = self.groups.into_iter().collect();
        groups.sort_unstable();
        let mut positions = vec![0; groups.len()];
        (0..).zip(&groups).for_each(|(position, (_, group))| positions[*group as usize] = position);
        self.members.values_mut().for_each(|group| *group = positions[*group as usize]);
        let names = groups.into_iter().map(|(name, _)| name).chain([NOT_RECORDED.to_owned()]);
        (names.collect(), Members::Listed(self.members))
    }
}

/// The names of all columns of a table, and those that are wanted.
fn columns(
    table: &Path,
    wanted: &[String],
    job: &Job<'_, u64>,
) -> Result<(Vec<String>, FxHashMap<String, Column>)> {
    let mut columns: Vec<Column> = wanted.iter().map(|_| Column::default()).collect();
    let mut seen: FxHashMap<EncounterId, ()> = FxHashMap::default();
    let names = incoming::read_columns(table, wanted, job, |row, id, texts| {
        if seen.insert(EncounterId::new(id), ()).is_some() {
            let (column, problem) = ("encounter_id".into(), "occurs in an earlier row".into());
            return Err(Error::Row { path: table.to_owned(), row, column, problem });
        }
        for (column, text) in columns.iter_mut().zip(texts) {
            if let Some(text) = text {
                column.add(id, text.trim());
            }
            // A column with an identifier in it would make a group of everybody.
            if column.groups.len() > 100 * MOST_GROUPS {
                break;
            }
        }
        Ok(())
    })?;
    let there = wanted.iter().cloned().zip(columns).filter(|(name, _)| names.contains(name));
    let there = there.collect();
    Ok((names, there))
}

fn unknown(name: &str, columns: &[String], names: &[&str]) -> Error {
    let known: Vec<String> =
        columns.iter().cloned().chain(names.iter().map(|name| (*name).to_owned())).collect();
    match known.is_empty() {
        true => Error::setting("by", name, "a column of a table: the dataset has no context"),
        false => Error::UnknownName { what: "name to group by", name: name.to_owned(), known },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    fn code(code: &str) -> Code {
        Code { code: code.into(), description: None, count: 1 }
    }

    #[test]
    fn context_makes_groups_by_its_names() {
        let context = ["sex=female", "age=-17", "sex=male", "smoker"].map(code);
        let by = vec!["sex".to_owned(), "smoker".to_owned()];
        let options = Options { by, ..Options::default() };
        let groups = Groups::new(&options, &context, &Job::silent()).unwrap();
        let of = |context: &[u32]| {
            let codes = PerKind { context: context.to_vec(), ..PerKind::default() };
            let of = groups.of(&Encounter::new(codes));
            groups.by.iter().zip(of).map(|(by, group)| by.groups[group as usize].clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(&[0, 1]), ["female", "not recorded"]);
        assert_eq!(of(&[2, 3]), ["male", "yes"]);
        assert_eq!(of(&[0, 2]), ["several", "not recorded"]);
        let options = Options { by: vec!["ward".into()], ..Options::default() };
        let error = Groups::new(&options, &context, &Job::silent()).err().unwrap().to_string();
        assert_eq!(error, "unknown name to group by `ward`; known: sex, age, smoker");
        let error = Groups::new(&options, &[], &Job::silent()).err().unwrap().to_string();
        assert!(error.contains("the dataset has no context"), "{error}");
    }
}
