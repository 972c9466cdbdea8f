use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use snapbox::cmd::cargo_bin;
use snapbox::str;

use crate::{gct, json, names};

#[test]
fn makes_a_dataset_and_says_what_is_in_it() {
    let home = tempfile::tempdir().unwrap();
    gct(home.path(), "synth --out data --encounters 300").assert().success().stderr_eq("").stdout_eq(str![[
        r#"
data: 300 encounters, kept of [..] drawn, in [..] s
diagnosis   [..] per encounter
treatment  [..] per encounter
lab        [..] per encounter
d1_m1       [..] % of encounters
d2_m1       [..] % of encounters
next: gct inspect data

"#
    ]]);
    assert_eq!(names(home.path()), ["data"]);
    assert_eq!(names(&home.path().join("data")), ["dataset.json", "encounters", "vocabulary.parquet"]);
}

#[test]
fn json_has_every_figure() {
    let home = tempfile::tempdir().unwrap();
    let report = json(home.path(), "synth --out data --encounters 400 --seed 3");
    assert_eq!(report["encounters"], 400);
    for path in [
        "/raw_encounters",
        "/diagnoses_per_encounter",
        "/treatments_per_encounter",
        "/labs_per_encounter",
        "/label_prevalence/d1_m1",
        "/label_prevalence/d2_m1",
        "/ceiling/aucpr",
        "/ceiling/auroc",
        "/ceiling_joint/aucpr",
        "/ceiling/hidden_pairs/aucpr",
        "/prior/aucpr",
        "/prior/auroc",
        "/kinds/aucpr",
        "/seconds",
    ] {
        assert!(report.pointer(path).is_some_and(serde_json::Value::is_number), "{path}: {report:#}");
    }
}

#[test]
fn patients_with_several_visits_have_one_more_label_and_its_ceiling() {
    let home = tempfile::tempdir().unwrap();
    let line = "synth --preset appendix --visits 3 --encounters 300 --out data";
    gct(home.path(), line).assert().success().stderr_eq("").stdout_eq(str![[r#"
data: 300 encounters, kept of [..] drawn, in [..] s
diagnosis  [..] per encounter
treatment  [..] per encounter
lab        [..] per encounter
d1_m1      [..] % of encounters
d2_m1      [..] % of encounters
later      [..] % of encounters
next: gct inspect data

"#]]);
    let report = json(home.path(), &format!("{line} --force"));
    for path in ["/label_prevalence/later", "/later/aucpr", "/later/codes/auroc", "/later/visit/aucpr"] {
        assert!(report.pointer(path).is_some_and(serde_json::Value::is_number), "{path}: {report:#}");
    }
    // In the dataset as they are shown; and a dataset of one visit per patient does not speak of visits.
    let settings = |name: &str| {
        let manifest = fs::read_to_string(home.path().join(name).join("dataset.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        manifest["source"]["settings"]["visits"].clone()
    };
    assert_eq!(settings("data")["mean"], 3.0);
    gct(home.path(), "synth --visits 1 --encounters 50 --out one").assert().success();
    gct(home.path(), "synth --encounters 50 --out as-ever").assert().success();
    assert_eq!(settings("one"), serde_json::Value::Null);
    for file in ["dataset.json", "encounters/part-00000.parquet"] {
        let [one, as_ever] = ["one", "as-ever"].map(|name| fs::read(home.path().join(name).join(file)));
        assert!(one.unwrap() == as_ever.unwrap(), "{file}");
    }
}

#[test]
fn a_seed_gives_the_same_bytes_whatever_the_threads() {
    let home = tempfile::tempdir().unwrap();
    let content = |name: &str| {
        ["dataset.json", "encounters/part-00000.parquet", "vocabulary.parquet"]
            .map(|file| fs::read(home.path().join(name).join(file)).unwrap())
    };
    for visits in [1, 4] {
        for threads in [1, 3] {
            let line = "synth --encounters 2000 --seed 9 --force";
            let line = format!("{line} --visits {visits} --threads {threads} --out data-{threads}");
            gct(home.path(), &line).assert().success();
        }
        assert!(content("data-1") == content("data-3"));
    }
}

#[test]
fn settings_come_from_preset_file_and_flags_in_that_order() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("small.toml"), "encounters = 70\nseed = 5\n[labels]\np_d1 = 0.2\n").unwrap();
    let show = |line: &str| {
        let line = format!("synth --show-config {line}");
        let output = gct(home.path(), &line).assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    assert!(show("").contains("p_d1 = 0.055") && show("--preset appendix").contains("p_d1 = 0.33"));
    assert!(!show("").contains("visits") && show("--visits 3").contains("[visits]\nmean = 3.0\n"));
    assert!(show("--set visits.mean=2 --visits 3").contains("mean = 3.0\nchronic = 0.3\n"));
    let shown = show("--config small.toml --set labels.p_d1=0.4 --seed 6");
    assert!(shown.contains("encounters = 70") && shown.contains("seed = 6"), "{shown}");
    assert!(shown.contains("p_d1 = 0.4") && shown.contains("p_m1_given_d2 = 0.8"), "{shown}");
    assert_eq!(names(home.path()), ["small.toml"], "showing makes nothing");
    // What is shown is a file that can be used.
    fs::write(home.path().join("shown.toml"), &shown).unwrap();
    assert_eq!(show("--config shown.toml"), shown);
}

#[test]
fn an_existing_folder_is_replaced_only_by_force_and_only_if_it_is_a_dataset() {
    let home = tempfile::tempdir().unwrap();
    let make = |line: &str| gct(home.path(), &format!("synth --encounters 50 --out data {line}")).assert();
    make("").success();
    let before = fs::read(home.path().join("data/dataset.json")).unwrap();
    make("--seed 1").code(2).stdout_eq("").stderr_eq(str![[r#"
error: data already exists
hint: choose another path, or replace it with --force

"#]]);
    assert_eq!(fs::read(home.path().join("data/dataset.json")).unwrap(), before);
    make("--seed 1 --force").success();
    assert_ne!(fs::read(home.path().join("data/dataset.json")).unwrap(), before);
    assert_eq!(names(home.path()), ["data"]);

    fs::write(home.path().join("data/notes.txt"), "mine").unwrap();
    make("--force").code(2).stderr_eq(str![[r#"
error: will not write data: it holds `notes.txt`, which is not part of a dataset
hint: choose another path, or move away what is there

"#]]);
    assert_eq!(fs::read(home.path().join("data/notes.txt")).unwrap(), b"mine");
}

/// Sends signals and waits: only where there are signals.
#[cfg(unix)]
#[test]
fn ctrl_c_leaves_nothing() {
    for signal in ["-INT", "-TERM"] {
        let home = tempfile::tempdir().unwrap();
        let mut child = Command::new(cargo_bin!("gct"))
            .args(["synth", "--out", "data", "--encounters", "10000000"])
            .current_dir(home.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while names(home.path()).is_empty() {
            sleep(Duration::from_millis(10));
        }
        sleep(Duration::from_millis(300));
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(
            std::io::read_to_string(child.stderr.unwrap()).unwrap(),
            "error: interrupted; nothing was written\nhint: run the same command again to start over\n"
        );
        assert_eq!(names(home.path()), [""; 0]);
    }
}

/// A file that may not grow further stands for a full disk: the write fails in the middle.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let script = "trap '' XFSZ; ulimit -f 64; exec \"$0\" synth --out data --encounters 5000";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(cargo_bin!("gct"))
        .current_dir(home.path())
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.starts_with("error: cannot write ") && error.contains("File too large"), "{error}");
    assert_eq!(names(home.path()), [""; 0]);
}
