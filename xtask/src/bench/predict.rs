//! `cargo xtask bench predict`: files in, files out, beside the same model on examples that are in memory.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{Measured, measure};
use crate::{cargo, execute, root, target};

/// Everything runs on so many threads.
const THREADS: &str = "2";

/// The share of the speed in memory that `gct predict` must keep.
const SHARE: f64 = 0.8;

/// The megabytes that it may take, however many encounters there are.
const MEGABYTES: f64 = 400.0;

/// The milliseconds that the reasons of a prediction may take, for an encounter of so many codes.
const REASONS: f64 = 10.0;
const CODES: usize = 40;

/// What is predicted, of how many encounters, and the name of it in the training benchmark.
const TASKS: [(&str, &str, &str); 2] =
    [("label:d1_m1", "1000000", "visit_label"), ("graph_reconstruction", "200000", "graph_reconstruction")];

pub(super) fn run(json_file: Option<&Path>) -> Result<bool> {
    let release = ["build", "--release", "--locked", "--package"];
    execute(cargo().args(release).arg("gct-cli"))?;
    execute(cargo().args(release).args(["gct", "--example", "bench_train", "--example", "bench_why"]))?;
    let home = tempfile::tempdir()?;
    let gct = |line: &str| {
        let mut command = Command::new(target().join("release").join("gct"));
        command.current_dir(home.path()).args(line.split_whitespace()).args(["--json", "--quiet"]);
        command
    };
    let in_memory = || -> Result<Value> {
        let mut command = Command::new(target().join("release/examples/bench_train"));
        let command = command.current_dir(home.path()).args(["small", "gct"]);
        Ok(measure(command.env("RAYON_NUM_THREADS", THREADS))?.output)
    };
    measure(&mut gct("synth --out small --encounters 4000"))?;
    let (mut report, mut met) = (json!({}), true);
    println!(
        "{:<24} {:>10} {:>12} {:>12} {:>8} {:>9}",
        "GCT", "encounters", "in memory/s", "predict/s", "share", "peak MB"
    );
    for (task, encounters, name) in TASKS {
        measure(&mut gct(&format!("synth --out data --force --encounters {encounters}")))?;
        measure(&mut gct(&format!("train --data small --task {task} --steps 20 --out {name}")))?;
        // Before and after, because the machine is not the same from one minute to the next.
        let before = in_memory()?;
        let line = format!("predict {name} --data data --split all --out {name}.parquet --threads {THREADS}");
        let Measured { seconds, peak_mb, output } = measure(&mut gct(&line))?;
        let after = in_memory()?;
        let speed = |of: &Value| of["gct"][name]["evaluate"].as_f64().unwrap_or(f64::NAN);
        let Some(done) = output["encounters"].as_f64() else { bail!("gct predict said nothing") };
        let (ours, bound) = (done / seconds, 0.5 * (speed(&before) + speed(&after)));
        let enough = ours / bound >= SHARE && peak_mb < MEGABYTES;
        met &= enough;
        let verdict = if enough { "" } else { "  MISSED" };
        println!(
            "{name:<24} {encounters:>10} {bound:>12.0} {ours:>12.0} {:>8.2} {peak_mb:>9.0}{verdict}",
            ours / bound
        );
        report[name] = json!({
            "encounters": done,
            "in_memory_per_second": bound,
            "predict_per_second": ours,
            "share": ours / bound,
            "peak_mb": peak_mb,
        });
    }
    let milliseconds = reasons(home.path(), TASKS[0].2)?;
    let enough = milliseconds < REASONS;
    met &= enough;
    let verdict = if enough { "" } else { "  MISSED" };
    println!("reasons of a prediction, {CODES} codes: {milliseconds:.1} ms{verdict}");
    report["reasons_milliseconds"] = milliseconds.into();
    report["bars_met"] = met.into();
    if let Some(path) = json_file {
        fs::write(root().join(path), format!("{report:#}\n"))?;
    }
    Ok(met)
}

/// How long it takes to say what each code does to a label.
fn reasons(home: &Path, run: &str) -> Result<f64> {
    let mut command = Command::new(target().join("release/examples/bench_why"));
    let command = command.current_dir(home).args([run, &CODES.to_string()]).env("RAYON_NUM_THREADS", THREADS);
    match measure(command)?.output["milliseconds"].as_f64() {
        Some(milliseconds) => Ok(milliseconds),
        None => bail!("bench_why said nothing"),
    }
}
