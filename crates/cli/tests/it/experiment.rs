use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use snapbox::str;

use crate::{gct, json, names};

const FILE: &str = r#"
title = "A small one"
tasks = ["graph_reconstruction", "masked_diagnosis"]
models = ["gct", "deep"]
split_seeds = [0, 1]

[data.synthetic]
encounters = 300

[[settings]]
set.steps = 6
set.validate_every = 3
set.batch = 8
set.model.width = 16
"#;

#[test]
fn logistic_regression_and_several_labels_can_be_among_the_trials() {
    let home = tempfile::tempdir().unwrap();
    let file = FILE
        .replace(
            "\"graph_reconstruction\", \"masked_diagnosis\"",
            "\"labels:d1_m1,d2_m1\", \"masked_diagnosis\"",
        )
        .replace("\"deep\"]", "\"logistic\"]")
        .replace("[0, 1]", "[0]")
        .replace("set.model.width = 16", "[[settings]]\nmodels = [\"gct\"]\nset.model.width = 16");
    fs::write(home.path().join("mixed.toml"), file).unwrap();
    let report = json(home.path(), "experiment mixed.toml --out all --quiet");
    let mixed = &report["experiments"]["mixed"];
    assert_eq!((mixed["trials"].as_u64(), mixed["finished"].as_u64()), (Some(3), Some(3)));
    let trials = names(&home.path().join("all/trials"));
    let expected = ["labels.d1_m1.d2_m1-gct-0", "labels.d1_m1.d2_m1-logistic-0", "masked_diagnosis-gct-0"];
    assert_eq!(
        trials,
        expected.map(|name| format!("{name}.json")),
        "logistic regression guesses no diagnosis"
    );
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("small.toml"), FILE).unwrap();
    folder
}

fn found(folder: &Path) -> Vec<(String, serde_json::Value)> {
    let read = |name: String| {
        let mut trial: serde_json::Value =
            serde_json::from_slice(&fs::read(folder.join(&name)).unwrap()).unwrap();
        trial.as_object_mut().unwrap().remove("seconds");
        (name, trial)
    };
    names(folder).into_iter().map(read).collect()
}

#[test]
fn trials_are_run_once_and_gathered() {
    let home = folder();
    let report = json(home.path(), "experiment small.toml --out all --quiet");
    let small = &report["experiments"]["small"];
    assert_eq!(
        (small["trials"].as_u64(), small["finished"].as_u64()),
        (Some(6), Some(6)),
        "deep has no nodes"
    );
    let all = home.path().join("all");
    assert_eq!(
        names(&all),
        [
            "data",
            "data.json",
            "runs",
            "small-graph-reconstruction.svg",
            "small-masked-diagnosis.svg",
            "small.csv",
            "small.html",
            "small.md",
            "small.tex",
            "small.toml",
            "trials"
        ]
    );
    let markdown = fs::read_to_string(all.join("small.md")).unwrap();
    for part in [
        "6 of 6 trials have finished",
        "| model | validation | test | paper, test | test, beside gct | p | splits |",
        "| 0.5965 (0.0031) | - | - | 2 |",
        "| deep | - | - | - | - | - | 0 |",
        "The best that any model can do without the edges: 0.",
    ] {
        assert!(markdown.contains(part), "{part}\n{markdown}");
    }
    // A figure is the mean of what the trials found.
    let trials = found(&all.join("trials"));
    let of_gct = trials.iter().filter(|(name, _)| name.starts_with("graph_reconstruction-gct"));
    let values: Vec<f64> =
        of_gct.map(|(_, trial)| trial["test"]["figures"]["aucpr"].as_f64().unwrap()).collect();
    let cell = &small["figures"][1];
    assert_eq!((cell["model"].as_str(), cell["part"].as_str()), (Some("gct"), Some("test")));
    assert!((cell["mean"].as_f64().unwrap() - (values[0] + values[1]) / 2.0).abs() < 1e-12);
    // Nothing is run again, and tables need neither runs nor data.
    let before = fs::metadata(all.join("trials/masked_diagnosis-deep-1.json")).unwrap().modified().unwrap();
    gct(home.path(), "experiment small.toml --out all").assert().success().stderr_eq(str![[r#"
0 trials to run, 1 side by side; 6 finished before

"#]]);
    assert_eq!(
        fs::metadata(all.join("trials/masked_diagnosis-deep-1.json")).unwrap().modified().unwrap(),
        before
    );
    fs::remove_dir_all(all.join("runs")).unwrap();
    fs::remove_dir_all(all.join("data")).unwrap();
    fs::remove_file(all.join("small.md")).unwrap();
    gct(home.path(), "experiment table all").assert().success();
    assert_eq!(fs::read_to_string(all.join("small.md")).unwrap(), markdown);
}

#[test]
fn the_test_split_is_looked_at_only_when_settings_are_chosen() {
    let home = folder();
    let file = home.path().join("small.toml");
    fs::write(&file, FILE.replace("title", "test = false\ntitle")).unwrap();
    let report = json(home.path(), "experiment small.toml --out all --quiet");
    let parts = |report: &serde_json::Value| -> Vec<String> {
        let cells = report["experiments"]["small"]["figures"].as_array().unwrap().iter();
        cells.map(|cell| cell["part"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(parts(&report), ["validation"; 4]);
    let all = home.path().join("all");
    let markdown = fs::read_to_string(all.join("small.md")).unwrap();
    assert!(
        markdown.contains("| model | validation | paper, validation | validation, beside gct | p | splits |"),
        "{markdown}"
    );
    assert!(found(&all.join("trials")).iter().all(|(_, trial)| trial.get("test").is_none()));
    // Once they are chosen, what was trained is measured, and not trained again.
    let weights = |name: &str| fs::read(all.join("runs").join(name).join("metrics.jsonl")).unwrap();
    let before = weights("graph_reconstruction-gct-0");
    fs::write(&file, FILE).unwrap();
    let report = json(home.path(), "experiment small.toml --out all --quiet");
    assert_eq!(parts(&report), ["validation", "test"].repeat(4));
    assert_eq!(weights("graph_reconstruction-gct-0"), before);
    assert!(found(&all.join("trials")).iter().all(|(_, trial)| trial["test"]["encounters"].is_u64()));
}

#[test]
fn shares_find_together_what_one_process_finds() {
    let home = folder();
    gct(home.path(), "experiment small.toml --out whole --quiet --threads 2").assert().success();
    // Three shares at the same time, on the same folder.
    let shares: Vec<_> = (1..=3)
        .map(|share| {
            Command::new(snapbox::cmd::cargo_bin!("gct"))
                .current_dir(home.path())
                .args(format!("experiment small.toml --out shared --shard {share}/3").split_whitespace())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for share in shares {
        let output = share.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let whole = found(&home.path().join("whole/trials"));
    assert_eq!(found(&home.path().join("shared/trials")), whole);
    // A trial that ended before it was measured.
    let trial = "graph_reconstruction-gct-1.json";
    fs::remove_file(home.path().join("shared/trials").join(trial)).unwrap();
    gct(home.path(), "experiment small.toml --out shared --quiet").assert().success();
    assert_eq!(found(&home.path().join("shared/trials")), whole);
}

#[test]
fn killed_and_run_again_it_finds_the_same() {
    let home = folder();
    let long = FILE.replace("set.steps = 6", "set.steps = 200").replace("every = 3", "every = 20");
    fs::write(home.path().join("small.toml"), long).unwrap();
    gct(home.path(), "experiment small.toml --out whole --quiet").assert().success();
    let killed = home.path().join("killed");
    let mut child = Command::new(snapbox::cmd::cargo_bin!("gct"))
        .current_dir(home.path())
        .args("experiment small.toml --out killed --threads 1".split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let validations = killed.join("runs/masked_diagnosis-gct-0/metrics.jsonl");
    while fs::metadata(&validations).map_or(0, |file| file.len()) == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(names(&killed.join("trials")).len() < 6, "it was cut off");
    gct(home.path(), "experiment small.toml --out killed --quiet").assert().success();
    assert_eq!(found(&killed.join("trials")), found(&home.path().join("whole/trials")));
}

#[test]
fn settings_of_the_command_line_are_those_of_variants_too() {
    let home = folder();
    let variant = "\n[variants.mine]\nmodel = \"gct\"\nset.steps = 9\n";
    fs::write(home.path().join("small.toml"), FILE.replace("\"deep\"", "\"mine\"") + variant).unwrap();
    gct(home.path(), "experiment small.toml --out all --set steps=3 --quiet").assert().success();
    let trials = found(&home.path().join("all/trials"));
    assert_eq!(trials.len(), 8);
    assert!(trials.iter().all(|(_, trial)| trial["settings"]["steps"] == 3));
}

#[test]
fn other_settings_and_other_data_are_refused_before_anything_is_trained() {
    let home = folder();
    gct(home.path(), "experiment small.toml --out all --quiet").assert().success();
    gct(home.path(), "experiment small.toml --out all --set steps=7").assert().code(2).stderr_eq(str![[r#"
error: all/trials/graph_reconstruction-gct-0.json is of another experiment: `steps` would be 7, but it began with 6
hint: choose another path, or move away what is there

"#]]);
    fs::write(home.path().join("small.toml"), FILE.replace("encounters = 300", "encounters = 301")).unwrap();
    gct(home.path(), "experiment small.toml --out all").assert().code(2).stderr_eq(str![[r#"
error: all/data is of another experiment: data.synthetic: `encounters` would be 301, but it began with 300
hint: choose another path, or move away what is there

"#]]);
    fs::write(
        home.path().join("small.toml"),
        FILE.replace("[data.synthetic]", "[data]").replace("encounters = 300", ""),
    )
    .unwrap();
    gct(home.path(), "experiment small.toml --out other").assert().code(2).stderr_eq(str![[r#"
error: the experiment `small` does not say which data to train on
hint: give a dataset folder with --data DIR, or generator settings under [data.synthetic]

"#]]);
    assert!(!home.path().join("other").exists());
    gct(home.path(), "experiment small.toml --out all --shard 4/3").assert().code(2);
    // A file of the user's could have the name of one of ours.
    fs::create_dir(home.path().join("theirs")).unwrap();
    fs::write(home.path().join("theirs/data.json"), "{}").unwrap();
    gct(home.path(), "experiment small.toml --out theirs").assert().code(2);
    assert_eq!(names(&home.path().join("theirs")), ["data.json"]);
    gct(home.path(), "experiment small.toml --out .").assert().code(2).stderr_eq(str![[r#"
error: will not write .: it holds `[..]`, which is not part of an experiment
hint: choose another path, or move away what is there

"#]]);
}

#[test]
fn a_trial_that_fails_does_not_stop_the_others() {
    let home = folder();
    // A loss that begins far too large.
    let exploding = "\n[[settings]]\ntasks = [\"graph_reconstruction\"]\nset.head.initial_bias = 1e9\n";
    fs::write(home.path().join("small.toml"), FILE.to_owned() + exploding).unwrap();
    let output = gct(home.path(), "experiment small.toml --out all").assert().code(2);
    let errors = String::from_utf8_lossy(&output.get_output().stderr).into_owned();
    assert!(errors.contains("graph_reconstruction-gct-0 failed: the loss became"), "{errors}");
    let last = "error: 2 trials failed: ";
    assert!(errors.lines().any(|line| line.starts_with(last)), "{errors}");
    assert_eq!(found(&home.path().join("all/trials")).len(), 4, "the others have finished");
}
