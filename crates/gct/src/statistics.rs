//! What a dataset holds, in numbers: the paper's Table 1 for any dataset, and what one should know before
//! training.

use itertools::Itertools;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::job::Job;
use crate::record::{Code, CodeKind, Encounter, PerKind};

/// The numbers.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// How many encounters there are.
    pub encounters: u64,
    /// How many subjects they belong to.
    pub subjects: u64,
    /// How many of the subjects have more than one encounter.
    pub subjects_with_several_encounters: u64,
    /// How many encounters have known edges.
    pub encounters_with_edges: u64,
    /// How many edges there are, all together, the visit's not counted.
    pub edges: u64,
    /// The codes of each kind.
    pub codes: PerKind<CodeStatistics>,
    /// One entry per label.
    pub labels: Vec<LabelStatistics>,
    /// One entry per name of context, in the order of the vocabulary.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextStatistics>,
}

/// Codes of one kind; all zero for context where there is none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CodeStatistics {
    /// How many codes there are to choose from.
    pub vocabulary: u64,
    /// How many of them occur.
    pub used: u64,
    /// How many an encounter has in the mean.
    pub per_encounter: f64,
    /// How many encounters have 0 codes of this kind, 1, 2, and so on.
    pub histogram: Vec<u64>,
}

/// What is known of encounters by one name, such as `sex`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContextStatistics {
    /// The name.
    pub name: String,
    /// How many codes it has, such as `sex=female`.
    pub codes: u64,
    /// How many encounters have one of them.
    pub encounters: u64,
}

/// One label.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LabelStatistics {
    /// Its name.
    pub name: String,
    /// In how many encounters it is known.
    pub known: u64,
    /// In how many it is true.
    pub positive: u64,
}

impl LabelStatistics {
    /// The share of positives among the known ones; undefined if none is known.
    pub fn prevalence(&self) -> Option<f64> {
        (self.known > 0).then(|| self.positive as f64 / self.known as f64)
    }
}

/// Reads a dataset from end to end, which checks every row too. The job is told how many encounters are read.
///
/// # Errors
/// If a row is bad, or the job is stopped.
pub fn collect(dataset: &Dataset, job: &Job<'_, u64>) -> Result<Statistics> {
    let mut statistics = Statistics {
        encounters: 0,
        subjects: 0,
        subjects_with_several_encounters: 0,
        encounters_with_edges: 0,
        edges: 0,
        codes: PerKind::from_fn(|kind| CodeStatistics {
            vocabulary: dataset.vocabulary()[kind].len() as u64,
            used: dataset.vocabulary()[kind].iter().filter(|code| code.count > 0).count() as u64,
            ..CodeStatistics::default()
        }),
        labels: (dataset.manifest().labels.iter())
            .map(|name| LabelStatistics { name: name.clone(), known: 0, positive: 0 })
            .collect(),
        context: Vec::new(),
    };
    let mut context = ContextNames::new(&dataset.vocabulary().context);
    let mut kinds = CodeKind::ALL.to_vec();
    kinds.retain(|kind| kind.is_shown(statistics.codes[*kind].vocabulary));
    let mut subjects: FxHashMap<u128, u64> = FxHashMap::default();
    for encounter in dataset.encounters()? {
        let encounter = encounter?;
        statistics.encounters += 1;
        *subjects.entry(fingerprint(encounter.subject.as_str())).or_default() += 1;
        for &kind in &kinds {
            let (histogram, count) = (&mut statistics.codes[kind].histogram, encounter.codes[kind].len());
            if histogram.len() <= count {
                histogram.resize(count + 1, 0);
            }
            histogram[count] += 1;
        }
        context.add(&encounter);
        if let Some(edges) = &encounter.edges {
            statistics.encounters_with_edges += 1;
            statistics.edges += (edges.diagnosis_treatment.len() + edges.treatment_lab.len()) as u64;
        }
        for (label, value) in statistics.labels.iter_mut().zip(&encounter.labels) {
            label.known += u64::from(value.is_some());
            label.positive += u64::from(*value == Some(true));
        }
        if statistics.encounters.is_multiple_of(1024) {
            job.advance(statistics.encounters)?;
        }
    }
    statistics.context = context.names;
    statistics.subjects = subjects.len() as u64;
    statistics.subjects_with_several_encounters =
        subjects.values().filter(|encounters| **encounters > 1).count() as u64;
    for kind in CodeKind::ALL {
        let codes = &mut statistics.codes[kind];
        let total: u64 = (0..).zip(&codes.histogram).map(|(count, encounters)| count * encounters).sum();
        codes.per_encounter = total as f64 / statistics.encounters.max(1) as f64;
    }
    Ok(statistics)
}

/// Counts the encounters that have each name of context.
struct ContextNames {
    names: Vec<ContextStatistics>,
    /// The position of the name of each code.
    positions: Vec<usize>,
}

impl ContextNames {
    fn new(context: &[Code]) -> Self {
        let mut of = ContextNames { names: Vec::new(), positions: Vec::new() };
        for (name, _) in context.iter().map(Code::name_and_value) {
            let known = of.names.iter().position(|known| known.name == name);
            let position = known.unwrap_or_else(|| {
                of.names.push(ContextStatistics { name: name.to_owned(), codes: 0, encounters: 0 });
                of.names.len() - 1
            });
            of.names[position].codes += 1;
            of.positions.push(position);
        }
        of
    }

    /// A name counts once, also where an encounter has several of its codes.
    fn add(&mut self, encounter: &Encounter) {
        let own = encounter.codes.context.iter().map(|id| self.positions[*id as usize]);
        for position in own.sorted_unstable().dedup() {
            self.names[position].encounters += 1;
        }
    }
}

/// Enough of a hash to tell millions of identifiers apart without keeping them.
fn fingerprint(id: &str) -> u128 {
    u128::from_be_bytes(Sha256::digest(id)[..16].try_into().expect("a SHA-256 has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_context_counts_each_encounter_once() {
        let context = ["sex=female", "age=-17", "sex=male", "smoker"].map(|code| Code {
            code: code.into(),
            description: None,
            count: 1,
        });
        let mut names = ContextNames::new(&context);
        for context in [vec![0, 1], vec![0, 2], vec![1, 3], vec![]] {
            names.add(&Encounter::new(PerKind { context, ..PerKind::default() }));
        }
        let found: Vec<(&str, u64, u64)> =
            names.names.iter().map(|of| (&*of.name, of.codes, of.encounters)).collect();
        assert_eq!(found, [("sex", 2, 2), ("age", 1, 2), ("smoker", 1, 1)]);
    }
}
