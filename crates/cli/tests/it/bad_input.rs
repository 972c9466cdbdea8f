//! One clear error, exit code 2, nothing on standard output, nothing left on disk.

use std::fs;

use snapbox::str;

use crate::{gct, home, names};

/// The error of a command line in an empty folder, which stays empty.
fn refusal(line: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let error = crate::refusal(home.path(), line);
    assert_eq!(names(home.path()), [""; 0], "{line}");
    error
}

#[test]
fn values_that_make_no_sense() {
    for (line, expected) in [
        (
            "--encounters 0",
            "error: setting `encounters`: 0 is not allowed; expected a whole number from 1 to 100000000\n",
        ),
        (
            "--encounters 999999999999",
            "error: setting `encounters`: 999999999999 is not allowed; expected a whole number from 1 to 100000000\n",
        ),
        (
            "--set vocabulary.lab=0",
            "error: setting `vocabulary.lab`: 0 is not allowed; expected a whole number from 2 to 100000\n",
        ),
        (
            "--set more_diagnoses=1.5",
            "error: setting `more_diagnoses`: 1.5 is not allowed; expected a number from 0 to 0.999\n",
        ),
        (
            "--visits 0.5",
            "error: setting `visits.mean`: 0.5 is not allowed; expected a number from 1 to 20\n",
        ),
        (
            "--visits NaN",
            "error: setting `visits.mean`: NaN is not allowed; expected a number from 1 to 20\n",
        ),
        (
            "--visits inf",
            "error: setting `visits.mean`: inf is not allowed; expected a number from 1 to 20\n",
        ),
        ("--visits some", "error: invalid value 'some' for '--visits <MEAN>': invalid float literal"),
        ("--set visits.median=2", "error: --set visits.median=2: unknown field `median`, expected one of"),
        ("--set nonsense=1", "error: --set nonsense=1: unknown field `nonsense`, expected one of"),
        ("--config missing.toml", "error: cannot read missing.toml: No such file or directory"),
        ("--encounters -5", "error: unexpected argument '-5' found"),
        (
            "--encounters many",
            "error: invalid value 'many' for '--encounters <N>': invalid digit found in string",
        ),
        (
            "--preset papper",
            "error: invalid value 'papper' for '--preset <PRESET>'\n  [possible values: paper, appendix]\n\n  tip: a similar value exists: 'paper'",
        ),
        ("--sed 1", "error: unexpected argument '--sed' found"),
        ("--threads 0", "error: invalid value '0' for '--threads <N>': 0 is not in 1..=1024"),
    ] {
        let got = refusal(&format!("synth --out data {line}"));
        assert!(got.starts_with(expected), "{line}: {got}");
    }
    assert!(refusal("synth").contains("--out <DIR>"));
    assert!(refusal("syntth --out data").contains("tip: a similar subcommand exists: 'synth'"));
}

#[test]
fn settings_that_leave_no_encounter() {
    let error = refusal("synth --out data --set min_codes=49 --set max_codes=50");
    assert!(error.contains("drawn encounters have between 49 and 50 codes of each kind"), "{error}");
    assert!(error.contains("\nhint: lower min_codes"), "{error}");
}

#[test]
fn a_mistake_in_a_settings_file_is_found_by_its_line() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("bad.toml"), "encounters = 5\nseed = = 3\n").unwrap();
    let assert = gct(home.path(), "synth --out data --config bad.toml").assert().code(2);
    let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(error.starts_with("error: bad.toml: line 2: "), "{error}");
    fs::write(home.path().join("bad.toml"), "sead = 3\n").unwrap();
    let assert = gct(home.path(), "synth --out data --config bad.toml").assert().code(2);
    let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(error.starts_with("error: bad.toml: unknown field `sead`, expected one of"), "{error}");
    assert_eq!(names(home.path()), ["bad.toml"]);
}

#[test]
fn folders_that_are_no_datasets() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("empty")).unwrap();
    fs::write(home.path().join("file"), "").unwrap();
    for command in ["inspect", "split", "prior"] {
        gct(home.path(), &format!("{command} empty")).assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: empty is not a dataset folder: it has no dataset.json
hint: a dataset folder is made by a command such as `gct synth --out DIR`

"#]]);
        gct(home.path(), &format!("{command} nowhere")).assert().code(2).stderr_eq(str![[r#"
error: cannot open nowhere: No such file or directory (os error 2)
hint: check the spelling of the path, and that it is there

"#]]);
        gct(home.path(), &format!("{command} file")).assert().code(2).stderr_eq(str![[r#"
error: cannot read file/dataset.json: Not a directory (os error 20)
hint: give a folder: a part of the path is a file

"#]]);
    }
    assert_eq!(names(home.path()), ["empty", "file"]);
    gct(home.path(), "synth --out file --encounters 50").assert().code(2).stderr_eq(str![[r#"
error: file already exists
hint: choose another path, or replace it with --force

"#]]);
    gct(home.path(), "synth --out file --encounters 50 --force").assert().code(2).stderr_eq(str![[r#"
error: will not write file: it is not a folder
hint: choose another path, or move away what is there

"#]]);
    gct(home.path(), "synth --out file/data --encounters 50").assert().code(2);
    assert_eq!(names(home.path()), ["empty", "file"]);
}

#[test]
fn mistakes_in_settings_are_told_in_plain_words_with_a_hint() {
    let home = tempfile::tempdir().unwrap();
    for (text, expected) in [
        ("vocabulary = 5", "error: s.toml: vocabulary: invalid type: number `5`, expected a table\nhint: "),
        ("seed = [1]", "error: s.toml: seed: invalid type: a list, expected a whole number from 0\nhint: "),
        ("seed = = 3", "error: s.toml: line 1: "),
        ("seed", "error: s.toml: line 1: "),
    ] {
        fs::write(home.path().join("s.toml"), text).unwrap();
        let assert = gct(home.path(), "synth --out data --config s.toml").assert().code(2);
        let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(said.starts_with(expected) && said.contains("\nhint: "), "{text}: {said}");
        assert_eq!(said.lines().count(), 2, "{said}");
    }
}

#[test]
fn what_a_terminal_would_obey_is_shown_and_not_done() {
    let (_home, home) = home();
    let path = home.join("data/dataset.json");
    let manifest = fs::read_to_string(&path).unwrap();
    let start = manifest.find("\"gct ").unwrap();
    let end = start + 1 + manifest[start + 1..].find('"').unwrap();
    let hostile = r#""a\u001b[2J\u009b31m\u202e\nerror: b"#;
    fs::write(&path, format!("{}{hostile}{}", &manifest[..start], &manifest[end..])).unwrap();
    let output = gct(&home, "inspect data").assert().success().get_output().stdout.clone();
    let shown = String::from_utf8(output).unwrap();
    let line = shown.lines().next().unwrap();
    assert_eq!(line, r"data: synthetic data, written by a\u001b[2J\u009b31m\u202e\nerror: b");
    let json = gct(&home, "inspect data --json").assert().success().get_output().stdout.clone();
    assert!(String::from_utf8(json).unwrap().contains(r#""program": "a\u001b[2J\u009b31m\u202e\nerror: b""#));
    let assert = gct(&home, "inspect").arg("no\u{1b}[2J\nerror: x").assert().code(2);
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.starts_with(r"error: cannot open no\u001b[2J\nerror: x: "), "{said}");
    // The words of clap about a wrong argument, from which it takes control characters by itself or not.
    let assert = gct(&home, "inspect data").arg("--\u{1b}[2J").assert().code(2);
    assert!(!assert.get_output().stderr.contains(&0x1b));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting_for_who_writes_to_it() {
    let (_home, home) = home();
    fs::create_dir(home.join("piped")).unwrap();
    for pipe in ["pipe.toml", "piped/dataset.json"] {
        assert!(std::process::Command::new("mkfifo").arg(home.join(pipe)).status().unwrap().success());
    }
    for (line, pipe) in [
        ("synth --out x --config pipe.toml", "pipe.toml"),
        ("experiment pipe.toml --out x", "pipe.toml"),
        ("tune --data data --task graph_reconstruction --space pipe.toml --out x", "pipe.toml"),
        ("inspect piped", "piped/dataset.json"),
    ] {
        let assert = gct(&home, line).assert().code(2).stdout_eq("");
        let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        let expected = format!(
            "error: cannot read {pipe}: found a pipe, expected a regular file\n\
             hint: write its contents into a file, and give that\n"
        );
        assert_eq!(said, expected, "{line}");
    }
}

#[cfg(unix)]
#[test]
fn too_many_open_files_are_not_damage() {
    let (_home, home) = home();
    let program = snapbox::cmd::cargo_bin!("gct").display().to_string();
    let mut refused = 0;
    for limit in 3..16 {
        let line = format!("ulimit -n {limit}; exec {program} inspect data");
        let run = std::process::Command::new("sh").args(["-c", &line]).current_dir(&home).output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(!said.contains("damaged") && !said.contains("panicked"), "{limit}: {said}");
        if said.contains("Too many open files") {
            assert!(said.contains("\nhint: allow more open files"), "{limit}: {said}");
            refused += 1;
        }
    }
    assert!(refused > 0);
}
