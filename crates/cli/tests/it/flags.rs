//! Flags that do not exist, and flags that do not apply.

use crate::{gct, home, names, refusal};

#[test]
fn what_other_programs_call_it_leads_to_what_it_is_called_here() {
    let home = tempfile::tempdir().unwrap();
    for (line, tip) in [
        ("train --lr 0.001", "use --set learning_rate=0.001"),
        ("train --learning_rate=0.001", "use --set learning_rate=0.001"),
        ("train --weight-decay 0.1", "use --set weight_decay=0.1"),
        ("train --label-smoothing 0.1", "use --set label_smoothing=0.1"),
        ("train --ema-decay 0.999", "use --set average=0.999"),
        ("tune --data data --out out --batch-size 64", "use --set batch=64"),
        ("experiment file.toml --out out --steps 100", "use --set steps=100"),
        ("train --epochs 5", "use --steps N: an epoch has as many steps as there are training encounters"),
        ("train --hidden-size 64", "use --set model.width=64"),
        ("train --num-heads 4", "use --set model.attention.heads=4"),
        ("train --patience --out x", "use --set patience=VALUE"),
        ("train --device cuda", "there is only the CPU"),
        ("--quiet evaluate run --gpu 0", "there is only the CPU"),
        ("evaluate run --threshold 0.3", "gct predict has --threshold"),
        ("split data --seed 3", "use --split-seed 3"),
        ("serve run --port 80", "use --listen HOST:PORT"),
        ("synth --output data", "use --out data"),
        ("evaluate run --workers 4", "use --threads 4"),
    ] {
        let error = refusal(home.path(), line);
        assert!(error.starts_with("error: unexpected argument '--"), "{line}: {error}");
        let tips: Vec<&str> = error.lines().filter(|line| line.contains("tip:")).collect();
        assert!(tips.len() == 1 && tips[0].contains(tip), "{line}: {error}");
    }
    // What has no such name keeps the tip that spelling gives, or none.
    assert!(refusal(home.path(), "train --stepz 3").contains("tip: a similar argument exists: '--steps'"));
    assert!(!refusal(home.path(), "train --xyzzy 3").contains("tip:"));
}

#[test]
fn flags_that_do_not_apply_are_refused_and_nothing_is_written() {
    let (_guard, home) = home();
    let train = "train --data data --steps 2 --set batch=2 --set model.width=8 --quiet";
    for (task, model, out) in [
        ("graph_reconstruction", "gct", "edges"),
        ("masked_diagnosis", "gct", "hidden"),
        ("label:d1_m1", "gct", "label"),
        ("label:d1_m1", "gcn", "convolved"),
    ] {
        gct(&home, &format!("{train} --task {task} --model {model} --out {out}")).assert().success();
    }
    let before = names(&home);
    for (line, expected) in [
        ("predict label --out p.parquet --top 3", "--top is for runs that predict masked_diagnosis"),
        (
            "predict label --out p.parquet --min-probability 0",
            "--min-probability is for runs that predict graph_rec",
        ),
        ("predict edges --out p.parquet --threshold 0.5", "--threshold is for runs that predict labels"),
        (
            "predict edges --out p.parquet --meds",
            "--meds is for runs that predict labels, and this one predicts gr",
        ),
        (
            "predict hidden --out p.parquet --min-probability 0",
            "--min-probability is for runs that predict graph_r",
        ),
        (
            "predict hidden --out p.parquet --threshold 0.5",
            "and this one predicts masked_diagnosis\nhint: leave it out",
        ),
        ("explain edges --top 3 --json", "'--top <N>' cannot be used with '--json'"),
        ("explain edges --block 1 --json", "--block is for text and for --graph"),
        ("explain edges --force", "--force is for the files of --graph and --bars"),
        ("split data --force", "--out <FILE>"),
        ("prior data --force", "--out <FILE>"),
        (
            "report edges --out r.html --with-ids --encounters 0",
            "--with-ids is for the encounters on the page",
        ),
        (
            "report edges --out r.html --with-ids --min-cell 11",
            "--with-ids is for the encounters on the page",
        ),
        (
            "serve edges --listen 127.0.0.1:0 --no-page --data data",
            "'--no-page' cannot be used with '--data <DIR>'",
        ),
        ("serve edges --listen 127.0.0.1:0 --no-page --min-cell 5", "cannot be used with '--min-cell <N>'"),
        (
            "serve convolved --listen 127.0.0.1:0 --data data",
            "--data is for the page, and there is none of gcn",
        ),
        ("train --show-config --json", "'--show-config' cannot be used with '--json'"),
        ("synth --show-config --json", "'--show-config' cannot be used with '--json'"),
        ("train --show-config --resume", "'--show-config' cannot be used with '--resume'"),
        ("train --show-config --model gct", "--task is missing"),
        ("train --show-config --set batch=3", "--task is missing"),
        ("train --show-config --seed 3", "--task is missing"),
        ("train --out edges --resume --task mortality", "`task` would be \"mortality\""),
    ] {
        let error = refusal(&home, line);
        assert!(error.starts_with("error: ") && error.contains(expected), "{line}: {error}");
        assert_eq!(names(&home), before, "{line}");
    }
    // Where they apply they are taken, and so is what nobody gave.
    for line in [
        "predict label --out 1.parquet --threshold 0.1",
        "predict hidden --out 2.parquet --top 2",
        "predict edges --out 3.parquet --min-probability 0",
        "predict edges --out 4.parquet",
        "explain edges --top 2 --block 1",
        "explain edges --block 1 --json --graph graph.svg",
        "explain edges --graph graph.svg --force",
        "train --show-config",
    ] {
        gct(&home, line).assert().success();
    }
}
