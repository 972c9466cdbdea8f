//! What is left on disk after a kill, what is never overwritten, and output that nobody takes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use snapbox::cmd::cargo_bin;
use snapbox::str;

use crate::{gct, home, names};

/// A command that takes minutes, once it has begun to write into this folder.
fn writing(folder: &Path, out: &str) -> Child {
    let before = names(folder);
    let child = Command::new(cargo_bin!("gct"))
        .args(["synth", "--encounters", "10000000", "--out", out])
        .current_dir(folder)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while names(folder) == before {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Everything below a folder that a killed process left.
fn left(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in names(folder) {
        let path = folder.join(&name);
        if name.starts_with(".gct-") {
            found.push(path);
        } else if path.is_dir() {
            found.extend(left(&path));
        }
    }
    found
}

#[test]
fn the_next_command_removes_what_a_kill_left_and_nothing_of_a_living_process() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let (killed, living) = (writing(home, "data"), writing(home, "other"));
    kill(killed);
    assert_eq!(left(home).len(), 2);
    gct(home, "synth --out data --encounters 300").assert().success();
    let [of_living] = &left(home)[..] else { panic!("that of the living process is left") };
    assert!(of_living.join("new/encounters/part-00000.parquet").exists());
    kill(living);
    gct(home, "synth --out data --encounters 300").assert().code(2);
    assert_eq!(names(home), ["data"], "even if the command is refused");
}

#[test]
fn a_dataset_that_was_being_replaced_is_put_back() {
    let (_guard, home) = home();
    let replaced = || fs::rename(home.join("data"), home.join(".gct-replaced-a1B2c3-data")).unwrap();
    replaced();
    gct(&home, "inspect data").assert().success().stderr_eq(str![[r#"
warning: data is as it was before a command that was replacing it was killed

"#]]);
    replaced();
    gct(&home, "synth --out data --encounters 300").assert().code(2).stderr_eq(str![[r#"
warning: data is as it was before a command that was replacing it was killed
error: data already exists
hint: choose another path, or replace it with --force

"#]]);
    assert_eq!(names(&home), ["data"]);
}

const SMALL: &str = "--set batch=8 --set model.width=16 --set validate_every=2";

#[test]
fn what_a_kill_left_below_is_removed_too() {
    let (_guard, home) = home();
    let experiment =
        "title = \"t\"\ntasks = [\"masked_diagnosis\"]\nmodels = [\"shallow\"]\nsplit_seeds = [0]";
    fs::write(home.join("one.toml"), experiment).unwrap();
    let train = "train --data data --task masked_diagnosis --model shallow --out run";
    for (first, again, out) in [
        ("tune --data data --task masked_diagnosis --trials 1 --out tuned", "", "tuned"),
        ("experiment one.toml --data data --out all", "", "all"),
        (train, "--resume", "run"),
        (train, "--force", "run"),
    ] {
        let line = match first.starts_with("experiment") {
            true => format!("{first} {SMALL} --quiet --set steps=2"),
            false => format!("{first} {SMALL} --quiet --steps 2"),
        };
        if again != "--force" {
            gct(&home, &line).assert().success();
        }
        leave(&home.join(out));
        assert!(left(&home.join(out)).len() >= 2);
        gct(&home, &format!("{line} {again}")).assert().success();
        assert_eq!(left(&home), [""; 0].map(PathBuf::from), "{line} {again}");
    }
}

/// A folder and a file in this folder and all below, as a kill leaves them.
fn leave(folder: &Path) {
    for name in names(folder) {
        if folder.join(&name).is_dir() {
            leave(&folder.join(name));
        }
    }
    fs::create_dir_all(folder.join(".gct-partial-folder/new")).unwrap();
    fs::write(folder.join(".gct-partial-file"), "").unwrap();
}

#[test]
fn nothing_is_written_inside_of_a_dataset() {
    let (_guard, home) = home();
    fs::write(home.join("one.toml"), "title = \"t\"").unwrap();
    for line in [
        "synth --encounters 300 --out data/x",
        "synth --encounters 300 --out data/x/y",
        "synth --encounters 300 --out data/x --force",
        "train --data data --task masked_diagnosis --out data/x",
        "tune --data data --task masked_diagnosis --out data/x",
        "experiment one.toml --data data --out data/x",
        "demo --out data/x",
        "split data --out data/x/split.parquet",
    ] {
        let said = gct(&home, line).assert().code(2).stdout_eq("").get_output().stderr.clone();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("it would be inside a dataset\nhint: "), "{line}: {said}");
        assert_eq!(names(&home.join("data")), ["dataset.json", "encounters", "vocabulary.parquet"]);
    }
}

/// A device on which nothing can be written.
#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_an_error() {
    let (_guard, home) = home();
    for line in ["inspect data", "inspect data --json", "--help", "--version", "train --help"] {
        let output = Command::new(cargo_bin!("gct"))
            .args(line.split_whitespace())
            .current_dir(&home)
            .stdout(fs::File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        let full =
            "error: cannot write to standard output: No space left on device (os error 28)\nhint: free ";
        assert!(said.starts_with(full), "{line}: {said}");
    }
}
