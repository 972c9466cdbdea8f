//! What was tried, how often, and what was found.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::checks::Problem;
use super::{Case, Check};

/// How many examples of the same finding are printed.
const EXAMPLES: usize = 2;

/// The findings of a round.
pub(crate) struct Report {
    seed: u64,
    /// Further options that repeating a case takes.
    options: String,
    /// Cases, and those of them in which something was found.
    tried: BTreeMap<(Check, String), [u64; 2]>,
    /// By where and what.
    found: BTreeMap<(Check, String, String), Vec<Example>>,
    notes: Vec<String>,
}

struct Example {
    case: String,
    detail: String,
    /// The folder of the case.
    kept: PathBuf,
}

impl Report {
    pub(crate) fn new(seed: u64, binaries: Option<&Path>) -> Self {
        let options = binaries.map(|folder| format!(" --binaries {}", folder.display())).unwrap_or_default();
        Report { seed, options, tried: BTreeMap::new(), found: BTreeMap::new(), notes: Vec::new() }
    }

    pub(crate) fn note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }

    pub(crate) fn add<T>(&mut self, case: &Case<T>, mut problems: Vec<Problem>, kept: &Path) {
        problems.dedup();
        let [tried, found] = self.tried.entry((case.part, case.subject.clone())).or_default();
        *tried += 1;
        *found += u64::from(!problems.is_empty());
        for problem in problems {
            let examples = self.found.entry((case.part, case.subject.clone(), problem.kind)).or_default();
            examples.push(Example { case: case.name.clone(), detail: problem.detail, kept: kept.to_owned() });
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.found.is_empty()
    }

    /// A command line that tries a case again.
    fn repeat(&self, part: Check, case: &str) -> String {
        format!("cargo xtask torture {} --seed {} --case '{case}'{}", part.name(), self.seed, self.options)
    }

    pub(crate) fn print(&self, as_json: bool) {
        if as_json {
            return println!("{:#}", self.json());
        }
        println!("{:<8} {:<36} {:>7} {:>7}", "part", "what", "tried", "found");
        for ((part, subject), [tried, found]) in &self.tried {
            println!("{:<8} {subject:<36} {tried:>7} {found:>7}", part.name());
        }
        for note in &self.notes {
            println!("note: {note}");
        }
        for ((part, subject, kind), examples) in &self.found {
            println!("\n{} {subject}: {kind} ({} times)", part.name(), examples.len());
            for example in examples.iter().take(EXAMPLES) {
                println!("  {}", example.detail.replace('\n', "\n  "));
                println!("    kept in {}", example.kept.display());
                println!("    again: {}", self.repeat(*part, &example.case));
            }
        }
        let tried: u64 = self.tried.values().map(|[tried, _]| tried).sum();
        println!("\n{tried} cases with seed {}: {} findings", self.seed, self.found.len());
    }

    fn json(&self) -> Value {
        let tried = self.tried.iter().map(|((part, subject), [tried, found])| {
            json!({"part": part.name(), "what": subject, "tried": tried, "found": found})
        });
        let findings = self.found.iter().flat_map(|((part, subject, kind), examples)| {
            examples.iter().map(move |example| {
                json!({
                    "part": part.name(), "what": subject, "case": example.case, "kind": kind,
                    "detail": example.detail, "kept": example.kept, "again": self.repeat(*part, &example.case),
                })
            })
        });
        json!({
            "seed": self.seed,
            "tried": tried.collect::<Vec<_>>(),
            "findings": findings.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}
