use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::{gct, home, json, names};

const TRAIN: &str = "train --data data --task graph_reconstruction --model gct --steps 40 \
                     --set validate_every=7 --set batch=8 --set model.width=16";

fn spawn(folder: &Path, line: &str) -> Child {
    Command::new(snapbox::cmd::cargo_bin!("gct"))
        .current_dir(folder)
        .args(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What a run ends with: weights, and what was validated without the times.
fn end(run: &Path) -> (Vec<u8>, Vec<u8>, Vec<serde_json::Value>) {
    let lines = fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    let entries = lines.lines().map(|line| {
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        for time in ["encounters_per_second", "seconds"] {
            entry.as_object_mut().unwrap().remove(time);
        }
        entry
    });
    let read = |name: &str| fs::read(run.join(name)).unwrap();
    (read("best.safetensors"), read("last.safetensors"), entries.collect())
}

/// Killed with no chance to clean up, at moments that nobody chose, with other numbers of threads, and
/// resumed each time.
#[test]
fn killed_at_random_moments_it_ends_with_the_same_bits() {
    let (_guard, home) = home();
    gct(&home, &format!("{TRAIN} --out whole --quiet")).assert().success();
    // Another choice of moments every time: none of them may matter.
    let mut random = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let seed = random;
    let mut kills = 0;
    for attempt in 0..200 {
        let threads = 1 + attempt % 3;
        let mut child = spawn(&home, &format!("{TRAIN} --out killed --resume --threads {threads}"));
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(20 + (random >> 33) % 600));
        match child.try_wait().unwrap() {
            Some(status) => {
                assert!(status.success(), "seed {seed}, after {kills} kills: {status}");
                break;
            }
            None => {
                child.kill().unwrap();
                child.wait().unwrap();
                kills += 1;
            }
        }
    }
    println!("killed {kills} times");
    gct(&home, &format!("{TRAIN} --out killed --resume --quiet")).assert().success();
    assert_eq!(end(&home.join("killed")), end(&home.join("whole")), "seed {seed}, {kills} kills");
    // What was being written when a kill came is gone again.
    let left: Vec<String> = names(&home.join("killed"));
    assert!(left.iter().all(|name| !name.starts_with('.')), "{left:?}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_writes_a_checkpoint_and_says_how_to_go_on() {
    let (_guard, home) = home();
    let line = TRAIN.replace("--steps 40", "--steps 100000");
    let child = Command::new(snapbox::cmd::cargo_bin!("gct"))
        .current_dir(&home)
        .args(format!("{line} --out run").split_whitespace())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !home.join("run/metrics.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(100));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{error}");
    assert!(
        error.contains("error: stopped at step ") && error.contains("everything so far is in run"),
        "{error}"
    );
    assert!(error.contains("hint: resume it with: gct train --out run --resume"), "{error}");
    let step: u64 =
        error.split("stopped at step ").nth(1).unwrap().split(';').next().unwrap().parse().unwrap();
    assert!(
        home.join(format!("run/checkpoint-{step:010}.safetensors")).exists(),
        "{:?}",
        names(&home.join("run"))
    );
    let report = json(&home, &format!("train --out run --resume --quiet --steps {}", step + 3));
    assert_eq!(report["steps"], step + 3);
}

/// Starts a long training in a shell that prepares it, and waits until it trains.
#[cfg(unix)]
fn train_after(home: &std::path::Path, prepare: &str, steps: u64) -> std::process::Child {
    let line = TRAIN.replace("--steps 40", &format!("--steps {steps}"));
    let program = snapbox::cmd::cargo_bin!("gct").display().to_string();
    let child = Command::new("sh")
        .current_dir(home)
        .args(["-c", &format!("{prepare} exec '{program}' {line} --out run")])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !home.join("run/metrics.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

#[cfg(unix)]
#[test]
fn a_closed_terminal_writes_a_checkpoint_unless_nohup_says_to_go_on() {
    for (prepare, steps, code) in [("", 100_000, 130), ("trap '' HUP;", 60, 0)] {
        if code == 130 && gct_terminal::ignores_hangup() {
            println!("skipped: these tests themselves were told by nohup to go on");
            continue;
        }
        let (_guard, home) = home();
        let child = train_after(&home, prepare, steps);
        Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{error}");
        assert_eq!(error.contains("error: stopped at step "), code == 130, "{error}");
    }
}

#[test]
fn a_run_from_beginning_to_end() {
    let (_guard, home) = home();
    let assert = gct(&home, &format!("{TRAIN} --out run")).assert().success();
    let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(stderr.starts_with("training on 2"), "{stderr}");
    assert_eq!(stderr.lines().filter(|line| line.starts_with("step ")).count(), 6, "{stderr}");
    let stdout = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(
        stdout.contains("best validation aucpr ") && stdout.ends_with("next: gct evaluate run\n"),
        "{stdout}"
    );
    assert_eq!(
        names(&home.join("run")),
        [
            "best.safetensors",
            "checkpoint-0000000035.safetensors",
            "checkpoint-0000000040.safetensors",
            "config.toml",
            "events.out.tfevents.0.gct",
            "last.safetensors",
            "learned.parquet",
            "log.txt",
            "metrics.jsonl",
            "prior.parquet",
            "run.json",
            "vocabulary.parquet",
        ]
    );
    // Its configuration is one that makes the same run.
    gct(&home, "train --data data --config run/config.toml --out again --quiet").assert().success();
    assert_eq!(end(&home.join("again")), end(&home.join("run")));
}

#[test]
fn the_same_line_begins_and_goes_on() {
    let (_guard, home) = home();
    fs::write(home.join("c.toml"), "split.seed = 3\nseed = 4\n").unwrap();
    let line = format!("{TRAIN} --config c.toml --split-seed 5 --out run --resume --quiet");
    for _ in 0..2 {
        gct(&home, &line).assert().success();
    }
    let config = fs::read_to_string(home.join("run/config.toml")).unwrap();
    assert!(config.contains("seed = 4") && config.contains("[split]\nseed = 5"), "{config}");
}

#[test]
#[cfg(unix)]
fn names_that_are_no_text_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let (_guard, home) = home();
    let name = std::ffi::OsStr::from_bytes(b"d\xe9ta");
    gct(&home, "inspect")
        .arg(name)
        .assert()
        .code(2)
        .stderr_eq("error: an argument is not UTF-8\nhint: rename the file or folder that it names\n");
}

#[test]
fn logistic_regression_tells_which_c_it_chose() {
    let (_guard, home) = home();
    let line = "train --data data --task labels:d2_m1,d1_m1 --model logistic --set class_weight=balanced";
    let report = json(&home, &format!("{line} --out run --quiet"));
    assert_eq!((&report["model"], &report["steps"]), (&"logistic".into(), &11.into()));
    let (step, c) = (report["best"]["step"].as_u64().unwrap(), report["c"].as_f64().unwrap());
    let config: toml::Table = fs::read_to_string(home.join("run/config.toml")).unwrap().parse().unwrap();
    assert_eq!(config["model"]["c"][step as usize - 1].as_float(), Some(c));
    assert_eq!(config["class_weight"].as_str(), Some("balanced"));
    let log = fs::read_to_string(home.join("run/log.txt")).unwrap();
    assert!(log.contains("positives of d2_m1 count ") && log.contains("positives of d1_m1 count "), "{log}");
    let text =
        gct(&home, "train --data data --task label:d1_m1 --model logistic --set model.c=[0.5] --out one");
    let text = text.assert().success().get_output().stdout.clone();
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("one: 1 step of logistic on label:d1_m1"), "{text}");
    assert!(text.contains(", at step 1 (C 0.5)\n"), "{text}");
}

#[test]
fn bad_input_gets_one_clear_error() {
    let (_guard, home) = home();
    gct(&home, &format!("{TRAIN} --out run --quiet").replace("--steps 40", "--steps 4")).assert().success();
    fs::create_dir(home.join("empty")).unwrap();
    fs::write(home.join("file"), "mine").unwrap();
    fs::write(home.join("c.toml"), "task = \"masked_diagnosis\"\nmodel.name = \"gct\"\n").unwrap();
    let before = names(&home);
    for (line, expected) in [
        (
            "train --data data --task gossip --out x",
            "error: unknown task `gossip`; known: graph_reconstruction, ",
        ),
        (
            "train --data data --task mortality --model gctt --out x",
            "error: unknown model `gctt`; known: gct, ",
        ),
        (
            "train --data data --task mortality --out x",
            "error: the task `mortality` needs the label `mortality`, which the dataset does not have; it has: d1_m1, d2_m1\n\
             hint: any of them can be learned: --task label:d1_m1\n",
        ),
        ("train --data data --out x", "error: --task is missing"),
        (
            "train --data data --task labels:d1_m1,d1_m1 --out x",
            "error: setting `task`: labels:d1_m1,d1_m1 is not allowed; expected labels of the dataset with commas \
             between them, each once: labels:NAME,NAME\nhint: ",
        ),
        (
            "train --data data --task labels:d1_m1,died --out x",
            "error: the task `labels:d1_m1,died` needs the label `died`, which the dataset does not have; it has: \
             d1_m1, d2_m1\nhint: any of them can be learned: --task label:d1_m1\n",
        ),
        (
            "train --data data --task masked_diagnosis --model logistic --out x",
            "error: setting `model`: logistic is not allowed; expected another model, such as gct or shallow: it \
             predicts labels of the visit and nothing else\nhint: ",
        ),
        (
            "train --data data --task label:d1_m1 --model logistic --set average=0.9 --out x",
            "error: setting `average`: 0.9 is not allowed; expected 0, because logistic regression is fitted to \
             convergence\nhint: ",
        ),
        (
            "train --data data --task label:d1_m1 --set class_weight=even --out x",
            "error: --set class_weight=even: class_weight: invalid value: text \"even\", expected a number above 0, \
             up to 1000000, or balanced\nhint: ",
        ),
        (
            "train --data data --task graph_reconstruction --set class_weight=balanced --out x",
            "error: setting `class_weight`: balanced is not allowed; expected 1 in this task, which has no labels\n",
        ),
        (
            "train --data data --task graph_reconstruction --config c.toml --out x",
            "error: --task graph_reconstruction, but --config or --set says `masked_diagnosis`\nhint: leave out one of them\n",
        ),
        (
            "train --data data --model shallow --config c.toml --out x",
            "error: --model shallow, but --config or --set says `gct`\nhint: leave out one of them\n",
        ),
        (
            "train --out run --resume --seed 18446744073709551615",
            "error: invalid value '18446744073709551615'",
        ),
        ("embed run --what codes --split all --out x.npy", "error: --what codes is not about encounters"),
        ("train --task mortality --out x", "error: --data is missing"),
        ("train --data empty --task mortality --out x", "error: empty is not a dataset folder"),
        (
            "train --data data --task graph_reconstruction --model deep --out x",
            "error: setting `model`: deep is not allowed; expected a model with a vector for each node",
        ),
        (
            "train --data data --task graph_reconstruction --set steps=0 --out x",
            "error: setting `steps`: 0 is not allowed; expected a whole number from 1 to ",
        ),
        (
            "train --data data --task graph_reconstruction --set model.dropout.mlp=1 --out x",
            "error: setting `model.dropout.mlp`: 1 is not allowed; expected a number from 0 to less than 1",
        ),
        (
            "train --data data --task graph_reconstruction --set model.widht=4 --out x",
            "error: --set model.widht=4: ",
        ),
        ("train --data data --task graph_reconstruction --out run", "error: run already exists\nhint: "),
        (
            "train --data data --task graph_reconstruction --out data --force",
            "error: will not write data: it holds `",
        ),
        (
            "train --out run --resume --seed 5",
            "error: run cannot be resumed: `seed` would be 5, but it began with 0\nhint: ",
        ),
        (
            "train --out run --resume --model shallow",
            "error: run cannot be resumed: `model.name` would be \"shallow\", but it began with \"gct\"",
        ),
        (
            "train --out run --resume --set model.width=32",
            "error: run cannot be resumed: `model.width` would be 32, but it began with 16\nhint: ",
        ),
        (
            "train --out run --resume --set steps=2",
            "error: run cannot be resumed: it has made 4 steps already",
        ),
        (
            "predict run --out run/prior.parquet --force",
            "error: will not write run/prior.parquet: it would be inside a run",
        ),
        ("explain run --graph x.svg --bars x.svg", "error: --graph and --bars are the same file"),
        (
            "explain run --graph x.svg --bars y.svg --code nonsense",
            "error: --code nonsense: the encounter does not have it",
        ),
        ("train --out empty --resume", "error: empty is not a run folder: it has no run.json\nhint: "),
        ("evaluate empty", "error: empty is not a run folder: it has no run.json\nhint: "),
        ("evaluate nowhere", "error: cannot open nowhere: No such file or directory"),
        ("evaluate run --data empty", "error: empty is not a dataset folder"),
        ("predict run --out file", "error: file already exists\nhint: "),
        (
            "predict run --out x --min-probability 2",
            "error: setting `min_probability`: 2 is not allowed; expected a number from 0 to 1",
        ),
        (
            "embed run --out x.txt",
            "error: x.txt cannot be written: its name must end in .parquet or .csv or .jsonl or .npy\n",
        ),
        (
            "predict run --out x.txt",
            "error: x.txt cannot be written: its name must end in .parquet or .csv or .jsonl\n",
        ),
        ("explain run --graph x.png", "error: x.png cannot be written: its name must end in .svg\n"),
        ("explain run --encounter nobody", "error: no encounter of the dataset has this identifier"),
        ("explain run --block 4", "error: --block 4: the model has blocks 1 to 3"),
        ("explain run --top 0", "error: invalid value '0' for '--top <N>': expected a whole number from 1"),
        (
            "explain run --bars x.svg --code nonsense",
            "error: --code nonsense: the encounter does not have it",
        ),
        ("runs nowhere", "error: cannot read nowhere: No such file or directory"),
    ] {
        let assert = gct(&home, line).assert().code(2).stdout_eq("");
        let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(error.starts_with(expected), "{line}: {error}");
        assert_eq!(names(&home), before, "{line}");
    }
    assert_eq!(fs::read_to_string(home.join("file")).unwrap(), "mine");
    fs::write(home.join("run/config.toml"), "nonsense = 1\n").unwrap();
    let assert = gct(&home, "evaluate run").assert().code(2);
    let error = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(error.starts_with("error: run/config.toml: "), "{error}");
}

/// No identifier of a subject or an encounter is in anything but what was asked for by name.
#[test]
fn identifiers_stay_where_they_belong() {
    let (_guard, home) = home();
    plant_identifiers(&home);
    let line = TRAIN.replace("--data data", "--data planted").replace("--steps 40", "--steps 8");
    let mut said = Vec::new();
    for line in [
        &format!("{line} --out run"),
        "evaluate run",
        "explain run --json",
        "explain run --graph g.svg",
        "runs .",
    ] {
        let output = gct(&home, line).assert().success().get_output().clone();
        said.extend([output.stdout, output.stderr].concat());
    }
    for entry in fs::read_dir(home.join("run")).unwrap() {
        said.extend(fs::read(entry.unwrap().path()).unwrap());
    }
    said.extend(fs::read(home.join("g.svg")).unwrap());
    let contains = |needle: &str| said.windows(needle.len()).any(|window| window == needle.as_bytes());
    assert!(contains("D_"), "codes are there");
    assert!(!contains("patient-zero") && !contains("secret-stay"));
    gct(&home, "predict run --out predictions.parquet --min-probability 0").assert().success();
    said = fs::read(home.join("predictions.parquet")).unwrap();
    assert!(said.windows(12).any(|window| window == b"patient-zero"), "here they were asked for");
}

/// The dataset again, with identifiers that are easy to find.
fn plant_identifiers(home: &Path) {
    use gct::dataset::{Dataset, Writer};
    use gct::files::Overwrite;
    use gct::record::{Encounter, EncounterId, SubjectId};
    let dataset = Dataset::open(&home.join("data")).unwrap();
    let (vocabulary, labels) = (dataset.vocabulary().clone(), dataset.manifest().labels.clone());
    let mut writer = Writer::create(&home.join("planted"), Overwrite::Refuse, vocabulary, labels).unwrap();
    let renamed = dataset.encounters().unwrap().enumerate().map(|(number, encounter)| Encounter {
        id: EncounterId::new(format!("secret-stay-{number}")),
        subject: SubjectId::new(format!("patient-zero-{number}")),
        ..encounter.unwrap()
    });
    writer.write(&renamed.collect::<Vec<_>>()).unwrap();
    writer.finish(dataset.manifest().source.clone()).unwrap();
}

#[test]
fn p_can_be_that_of_a_table() {
    let (_guard, home) = home();
    gct(&home, "prior data --out own.parquet").assert().success();
    gct(&home, "prior data --split-seed 5 --out other.parquet").assert().success();
    gct(&home, &format!("{TRAIN} --out whole --quiet")).assert().success();
    let validated = |run: &str| end(&home.join(run)).2;
    // Counted on the same encounters, so the same losses and metrics come of it.
    gct(&home, &format!("{TRAIN} --prior own.parquet --out own --quiet")).assert().success();
    assert_eq!(validated("own"), validated("whole"));
    gct(&home, &format!("{TRAIN} --prior other.parquet --out other --quiet")).assert().success();
    assert_ne!(validated("other"), validated("whole"));
    let config = fs::read_to_string(home.join("other/config.toml")).unwrap();
    assert!(config.contains("file = \"other.parquet\""), "{config}");
    // The table is needed no more.
    fs::remove_file(home.join("other.parquet")).unwrap();
    gct(&home, "evaluate other --quiet").assert().success();
    gct(&home, "train --out other --resume --steps 42 --quiet").assert().success();
    let changed = "train --out other --resume --prior own.parquet --steps 43 --quiet";
    gct(&home, changed).assert().code(2).stderr_eq(snapbox::str![[r#"
error: other cannot be resumed: `prior.file` would be "own.parquet", but it began with "other.parquet"
hint: only --steps can change; for anything else train into another folder with --out

"#]]);
}
