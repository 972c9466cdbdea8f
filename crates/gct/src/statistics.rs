//! What a dataset holds, in numbers: the paper's Table 1 for any dataset, and what one should know before
//! training.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::dataset::Dataset;
use crate::error::Result;
use crate::job::Job;
use crate::record::{CodeKind, PerKind};

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
    };
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

/// Enough of a hash to tell millions of identifiers apart without keeping them.
fn fingerprint(id: &str) -> u128 {
    u128::from_be_bytes(Sha256::digest(id)[..16].try_into().expect("a SHA-256 has 32 bytes"))
}
