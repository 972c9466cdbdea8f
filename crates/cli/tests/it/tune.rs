use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use snapbox::str;

use crate::{gct, home, json, names};

const TUNE: &str = "tune --data data --task masked_diagnosis --model gct --steps 12 --set validate_every=3 \
                    --set batch=8 --set model.width=16";

/// Every trial without its times.
fn trials(folder: &Path) -> serde_json::Value {
    let mut trials: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.join("trials.json")).unwrap()).unwrap();
    for trial in trials.as_array_mut().unwrap() {
        trial.as_object_mut().unwrap().remove("seconds");
    }
    trials
}

#[test]
fn killed_and_run_again_it_tries_the_same() {
    let (_guard, home) = home();
    let report = json(&home, &format!("{TUNE} --out whole --trials 14 --quiet"));
    assert_eq!(report["trials"], 14);
    let mut kills = 0;
    for wait in [300, 700, 1500, 2500] {
        let mut child = Command::new(snapbox::cmd::cargo_bin!("gct"))
            .current_dir(&home)
            .args(format!("{TUNE} --out killed --trials 14").split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        kills += u32::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills > 0, "it ended before it could be killed");
    gct(&home, &format!("{TUNE} --out killed --trials 14 --quiet")).assert().success();
    assert_eq!(trials(&home.join("killed")), trials(&home.join("whole")));
    // With more trials, it goes on.
    gct(&home, &format!("{TUNE} --out killed --trials 15 --quiet")).assert().success();
    let more = trials(&home.join("killed"));
    assert_eq!(more.as_array().unwrap()[..14], trials(&home.join("whole")).as_array().unwrap()[..]);
    assert_eq!(more.as_array().unwrap().len(), 15);
}

#[test]
fn a_trial_that_fell_behind_is_given_up_at_the_same_step_after_a_kill() {
    let (_guard, home) = home();
    let line = TUNE.replace("masked_diagnosis", "graph_reconstruction") + " --strategy random --trials 14";
    gct(&home, &format!("{line} --out tuned --quiet")).assert().success();
    let (tuned, whole) = (home.join("tuned"), trials(&home.join("tuned")));
    // As if killed after the checkpoint, before it was written down that the trial is given up.
    let mut begun = whole.as_array().unwrap().clone();
    let last = begun.iter().rposition(|trial| trial["end"] == "given_up").expect("a trial falls behind");
    for later in last + 1..begun.len() {
        fs::remove_dir_all(tuned.join(format!("trials/{:03}", later + 1))).unwrap();
    }
    begun.truncate(last + 1);
    for trial in &mut begun {
        trial["seconds"] = 0.0.into();
    }
    begun[last]["end"] = "begun".into();
    fs::write(tuned.join("trials.json"), serde_json::to_vec(&begun).unwrap()).unwrap();
    gct(&home, &format!("{line} --out tuned --quiet")).assert().success();
    assert_eq!(trials(&tuned), whole);
}

#[test]
fn the_best_settings_are_those_of_the_best_trial_and_can_be_trained_with() {
    let (_guard, home) = home();
    let report = json(&home, &format!("{TUNE} --out tuned --trials 6 --strategy random --quiet"));
    let tuned = home.join("tuned");
    assert_eq!(
        names(&tuned),
        ["best.toml", "history.csv", "history.svg", "report.html", "trials", "trials.json", "tune.toml"]
    );
    let trials = trials(&tuned);
    let values: Vec<f64> =
        trials.as_array().unwrap().iter().map(|trial| trial["best"]["value"].as_f64().unwrap()).collect();
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    assert_eq!(report["best"]["value"].as_f64(), Some(most));
    let index = values.iter().position(|value| *value == most).unwrap();
    assert_eq!(report["best"]["trial"], index + 1);
    let rate = trials[index]["point"][0].as_f64().unwrap();
    assert_eq!(report["best"]["settings"]["learning_rate"].as_f64(), Some(rate));
    // The first are the settings that it began with: those of the paper.
    assert_eq!(trials[0]["point"], serde_json::json!([0.0001, 0.85, 0.6, 0.05]));
    let history = fs::read_to_string(tuned.join("history.csv")).unwrap();
    assert!(history.starts_with(
        "trial,learning_rate,model.dropout.mlp,model.dropout.post_mlp,model.regularization,chosen_by"
    ));
    assert_eq!(history.lines().count(), 7);
    gct(&home, "train --data data --config tuned/best.toml --out run --quiet").assert().success();
    let again = fs::read(home.join("run/best.safetensors")).unwrap();
    assert_eq!(again, fs::read(tuned.join(format!("trials/{:03}/best.safetensors", index + 1))).unwrap());
}

#[test]
fn what_is_tuned_of_logistic_regression_is_its_c() {
    let (_guard, home) = home();
    let report =
        json(&home, "tune --data data --task label:d1_m1 --model logistic --out tuned --trials 3 --quiet");
    assert_eq!((&report["trials"], &report["finished"]), (&3.into(), &3.into()));
    let c = report["best"]["settings"]["model.c"].as_f64().unwrap();
    let best: toml::Table = fs::read_to_string(home.join("tuned/best.toml")).unwrap().parse().unwrap();
    assert_eq!(best["model"]["c"].as_array().map(Vec::len), Some(1));
    assert_eq!(best["model"]["c"][0].as_float(), Some(c));
}

#[test]
fn another_plan_and_a_bad_space_are_refused() {
    let (_guard, home) = home();
    gct(&home, &format!("{TUNE} --out tuned --trials 1 --quiet")).assert().success();
    gct(&home, &format!("{TUNE} --out tuned --trials 2 --seed 1")).assert().code(2).stderr_eq(str![[r#"
error: tuned is of another experiment: `seed` would be 1, but it began with 0
hint: choose another path, or move away what is there

"#]]);
    fs::write(
        home.join("space.toml"),
        "[[dimensions]]\nname = \"rate\"\nlow = 1\nhigh = 2\nscale = \"log\"\n",
    )
    .unwrap();
    gct(&home, &format!("{TUNE} --out other --space space.toml")).assert().code(2).stderr_eq(str![[r#"
error: the space has `rate`, which is not the name of a setting that is a number
hint: --show-config prints all settings with their names and values

"#]]);
    assert!(!home.join("other").exists());
    gct(&home, &format!("{TUNE} --out data --trials 2")).assert().code(2).stderr_eq(str![[r#"
error: will not write data: it holds something else than a tuning
hint: choose another path, or move away what is there

"#]]);
}

#[test]
fn a_point_that_makes_no_sense_fails_alone_and_whole_numbers_are_reported_whole() {
    let (_guard, home) = home();
    // Both ends are multiples of four; most of what is between them is not.
    let space = "[[dimensions]]\nname = \"model.width\"\nlow = 16\nhigh = 32\nscale = \"linear\"\n";
    fs::write(home.join("space.toml"), space).unwrap();
    let line =
        format!("{TUNE} --set model.attention.heads=4 --space space.toml --strategy random --out tuned");
    // What a killed process leaves behind is nobody's.
    fs::create_dir(home.join("tuned")).unwrap();
    fs::write(home.join("tuned/.gct-partial-x"), "").unwrap();
    let report = json(&home, &format!("{line} --trials 8 --quiet"));
    let trials = trials(&home.join("tuned"));
    let widths = trials.as_array().unwrap().iter().map(|trial| trial["point"][0].as_f64().unwrap());
    assert!(widths.clone().all(|width| width.fract() == 0.0));
    let refused = widths.filter(|width| width % 4.0 != 0.0).count();
    assert!(refused > 0);
    assert_eq!(report["failed"], refused);
    fs::write(home.join("space.toml"), space.replace("16", "16.5")).unwrap();
    gct(&home, &line.replace("tuned", "other")).assert().code(2).stderr_eq(str![[r#"
error: setting `space`: 16.5 of model.width is not allowed; expected a whole number
hint: change it where it was given: by a flag, with --set or in a file

"#]]);
}

#[test]
fn time_ends_it() {
    let (_guard, home) = home();
    let line = TUNE.replace("--steps 12", "--steps 100000");
    gct(&home, &format!("{line} --out tuned --for 2s --quiet")).assert().code(2);
    let trials = trials(&home.join("tuned"));
    assert_eq!(trials[0]["end"], "begun", "it goes on when tuning does");
}
