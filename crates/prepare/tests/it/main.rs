//! The command as a user meets it: exit code, standard output, standard error, and what is left on disk.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

mod bad_input;
mod claims;
mod conservation;
mod context;
mod diabetes;
mod eicu;
mod events;
mod fhir;
mod fuzz;
mod incoming;
mod install;
mod label_times;
mod like;
mod meds;
mod mimic;
mod omop;
mod onset;
mod parts;
mod readmission;
mod rollup;
mod synthea;

use std::path::{Path, PathBuf};

use gct::dataset::Dataset;
use gct::record::{CodeKind, Encounter};
use snapbox::cmd::{Command, cargo_bin};

/// `gct-prepare` in this folder, with the words of one command line.
fn prepare(folder: &Path, line: &str) -> Command {
    Command::new(cargo_bin!("gct-prepare"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .env("RUST_BACKTRACE", "0")
}

/// What a command prints as JSON.
fn json(folder: &Path, line: &str) -> serde_json::Value {
    let output =
        prepare(folder, line).arg("--json").assert().success().stderr_eq("").get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// Real public data, if the machine has it.
fn test_data(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("GCT_TEST_DATA").map(|data| PathBuf::from(data).join(name));
    if path.as_ref().is_none_or(|path| !path.exists()) {
        #[allow(clippy::print_stderr)]
        {
            eprintln!("skipped: GCT_TEST_DATA does not say where {name} is");
        }
        return None;
    }
    path
}

/// Writes files with these names and contents.
fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// Writes the rows of a query.
async fn write_parquet(path: &Path, rows: &str) {
    let frame = datafusion::prelude::SessionContext::new().sql(rows).await.unwrap();
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let options = datafusion::dataframe::DataFrameWriteOptions::new().with_single_file_output(true);
    frame.write_parquet(path.to_str().unwrap(), options, None).await.unwrap();
}

/// The names in a folder, hidden ones included.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// An encounter of a dataset as a line: its id, subject, codes by name, edges, labels. They come in the order
/// of their ids as text, which is easier to follow than that of the dataset.
fn lines(dataset: &Path) -> Vec<String> {
    let dataset = Dataset::open(dataset).unwrap();
    let mut encounters: Vec<Encounter> = dataset.encounters().unwrap().map(Result::unwrap).collect();
    encounters.sort_by(|one, other| one.id.as_str().cmp(other.id.as_str()));
    encounters.iter().map(|encounter| line(&dataset, encounter)).collect()
}

fn line(dataset: &Dataset, encounter: &Encounter) -> String {
    let code = |kind: CodeKind, id: u32| dataset.vocabulary()[kind][id as usize].code.clone();
    let codes = |kind: CodeKind| -> String {
        let codes: Vec<String> = encounter.codes[kind].iter().map(|id| code(kind, *id)).collect();
        codes.join(" ")
    };
    let mut text = format!(
        "{} of {}: {} | {} | {}",
        encounter.id.as_str(),
        encounter.subject.as_str(),
        codes(CodeKind::Diagnosis),
        codes(CodeKind::Treatment),
        codes(CodeKind::Lab)
    );
    for edge in encounter.edges.iter().flat_map(|edges| &edges.diagnosis_treatment) {
        let cause = encounter.codes.diagnosis[usize::from(edge.cause)];
        let effect = encounter.codes.treatment[usize::from(edge.effect)];
        text += &format!(", {}>{}", code(CodeKind::Diagnosis, cause), code(CodeKind::Treatment, effect));
    }
    for (name, value) in dataset.manifest().labels.iter().zip(&encounter.labels) {
        text += &format!(", {name}={}", value.map_or("?".into(), |value| value.to_string()));
    }
    text
}
