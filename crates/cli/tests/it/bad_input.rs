//! One clear error, exit code 2, nothing on standard output, nothing left on disk.

use std::fs;

use snapbox::str;

use crate::{gct, names};

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

"#]]);
        gct(home.path(), &format!("{command} file")).assert().code(2).stderr_eq(str![[r#"
error: cannot read file/dataset.json: Not a directory (os error 20)

"#]]);
    }
    assert_eq!(names(home.path()), ["empty", "file"]);
    gct(home.path(), "synth --out file --encounters 50").assert().code(2).stderr_eq(str![[r#"
error: file already exists
hint: choose another place, or replace it with --force

"#]]);
    gct(home.path(), "synth --out file --encounters 50 --force").assert().code(2).stderr_eq(str![[r#"
error: will not write file: it is not a folder
hint: choose another place, or move away what is there

"#]]);
    gct(home.path(), "synth --out file/data --encounters 50").assert().code(2);
    assert_eq!(names(home.path()), ["empty", "file"]);
}
