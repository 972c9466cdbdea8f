//! The command as a user meets it: exit code, standard output, standard error, and what is left on disk.

#![allow(clippy::unwrap_used)] // A test that cannot go on has failed.

mod bad_input;
mod bits;
mod calibrate;
mod card;
mod compare;
mod completions;
mod context;
mod demo;
mod embed;
mod evaluate;
mod experiment;
mod explain;
mod files;
mod flags;
mod history;
mod incoming;
mod init;
mod inspect;
mod links;
mod man;
mod names;
mod predict;
mod prepare;
mod prior;
mod report;
mod runs;
mod serve;
mod split;
mod synth;
mod train;
mod tune;

use std::path::{Path, PathBuf};

use snapbox::cmd::{Command, cargo_bin};
use snapbox::str;

/// Every command, as its help lists them.
const COMMANDS: [&str; 22] = [
    "demo",
    "synth",
    "prepare",
    "inspect",
    "split",
    "prior",
    "train",
    "runs",
    "calibrate",
    "evaluate",
    "compare",
    "predict",
    "embed",
    "explain",
    "links",
    "report",
    "card",
    "experiment",
    "tune",
    "serve",
    "completions",
    "man",
];

#[test]
fn the_version_has_the_name_of_the_command() {
    let home = tempfile::tempdir().unwrap();
    gct(home.path(), "--version").assert().success().stderr_eq("").stdout_eq(str![[r#"
gct 0.1.0

"#]]);
}

/// `gct` in this folder, with the words of one command line.
fn gct(folder: &Path, line: &str) -> Command {
    Command::new(cargo_bin!("gct"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .env("RUST_BACKTRACE", "0")
}

/// What a command prints as JSON.
fn json(folder: &Path, line: &str) -> serde_json::Value {
    let output = gct(folder, line).arg("--json").assert().success().stderr_eq("").get_output().stdout.clone();
    serde_json::from_slice(&output).unwrap()
}

/// A folder with a dataset `data` of 300 encounters.
fn home() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    gct(home.path(), "synth --out data --encounters 300").assert().success();
    let path = home.path().to_owned();
    (home, path)
}

/// A folder with the dataset `data` and the run `run`, which learned this task from it for a moment.
fn trained(task: &str) -> (tempfile::TempDir, PathBuf) {
    let (guard, home) = home();
    let settings = "--steps 4 --set validate_every=2 --set batch=8 --set model.width=16";
    let line = format!("train --data data --task {task} --model gct --out run --quiet {settings}");
    gct(&home, &line).assert().success();
    (guard, home)
}

/// A folder with the dataset `data` and the run `run`, which has learned both of its labels a little.
fn learned() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    gct(home.path(), "synth --preset appendix --out data --encounters 600").assert().success();
    let settings = "--set validate_every=10 --set model.width=16 --set learning_rate=0.01 --quiet";
    let line =
        format!("train --data data --task diagnosis_treatment --model gct --out run --steps 20 {settings}");
    gct(home.path(), &line).assert().success();
    let path = home.path().to_owned();
    (home, path)
}

/// `gct` in this folder, to which it is copied, and with no other program to find: as if `gct-prepare` were
/// not installed.
fn alone(folder: &Path, line: &str) -> std::process::Output {
    let program = folder.join("gct");
    if !program.exists() {
        std::fs::copy(cargo_bin!("gct"), &program).unwrap();
    }
    let mut command = std::process::Command::new(program);
    command.current_dir(folder).args(line.split_whitespace()).env("PATH", folder).output().unwrap()
}

/// The error of a command line that is refused, with a word about what to do.
fn refusal(folder: &Path, line: &str) -> String {
    let assert = gct(folder, line).assert().code(2).stdout_eq("");
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    // Those about how a command is written have hints of another form.
    assert!(said.contains("\nhint: ") || said.contains("try '--help'"), "{line}: {said}");
    said
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
