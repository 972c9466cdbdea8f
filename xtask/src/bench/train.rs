//! `cargo xtask bench train`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{keep_best, measure, verdict};
use crate::{cargo, execute, python, root, target};

/// Everything runs on so many threads.
const THREADS: &str = "2";

/// Ratios to PyTorch that GCT must reach in training: padded, and written by an expert.
const TRAIN_RATIOS: [f64; 2] = [4.0, 1.8];

/// And in evaluation: padded.
const EVALUATE_RATIO: f64 = 4.0;

/// The share of the processor's peak that a training step must reach.
const PEAK_FRACTION: f64 = 0.55;

/// The megabytes that it may take.
const MEGABYTES: f64 = 400.0;

/// How often GCT is measured, ours and theirs in turn. The best of each counts: a busy machine slows down and
/// nothing else.
const ROUNDS: usize = 3;

const TASKS: [&str; 2] = ["graph_reconstruction", "visit_label"];

pub(super) fn run(json_file: Option<&Path>, steps: Option<usize>) -> Result<bool> {
    let data = Data::make()?;
    if let Some(steps) = steps {
        return memory(&data, steps);
    }
    let mut ours = measure(&mut data.ours())?;
    let mut theirs = json!({});
    for round in 0..ROUNDS {
        if round > 0 {
            keep_best(&mut ours.output["gct"], &measure(data.ours().arg("gct"))?.output["gct"]);
        }
        for task in TASKS {
            keep_best(&mut theirs[task]["padded"], &data.pytorch(task, &["--style", "padded"])?);
            keep_best(&mut theirs[task]["expert"], &data.pytorch(task, &["--style", "expert"])?);
            // An expert would try the compiler and keep what is faster.
            match data.pytorch(task, &["--style", "expert", "--compile"]) {
                Ok(compiled) => keep_best(&mut theirs[task]["expert"], &compiled),
                Err(error) => println!("without torch.compile: {error:#}"),
            }
        }
    }
    let mut report = json!({});
    let mut met = true;

    println!(
        "{:<36} {:>8} {:>8} {:>8} {:>9}  ratios",
        "GCT, encounters/s", "ours", "padded", "expert", "bars"
    );
    for task in TASKS {
        for what in ["train", "evaluate"] {
            let number = |of: &Value| of[what].as_f64().unwrap_or(f64::NAN);
            let [us, padded, expert] =
                [&ours.output["gct"][task], &theirs[task]["padded"], &theirs[task]["expert"]].map(number);
            let ratios = [us / padded, us / expert];
            let (enough, bars) = match what {
                "train" => (
                    ratios[0] >= TRAIN_RATIOS[0] && ratios[1] >= TRAIN_RATIOS[1],
                    format!("{:.1}, {:.1}", TRAIN_RATIOS[0], TRAIN_RATIOS[1]),
                ),
                _ => (ratios[0] >= EVALUATE_RATIO, format!("{EVALUATE_RATIO:.1}")),
            };
            met &= enough;
            let name = format!("{what} {task}");
            let shown = format!("{:.2}, {:.2}{}", ratios[0], ratios[1], verdict(enough));
            println!("{name:<36} {us:>8.0} {padded:>8.0} {expert:>8.0} {bars:>9}  {shown}");
            report[what][task] = json!({"ours": us, "pytorch_padded": padded, "pytorch_expert": expert});
        }
    }

    println!("\n{:<36} {:>8} {:>8}", "our other models, encounters/s", "train", "evaluate");
    for model in ["transformer", "gcn", "shallow"] {
        for task in TASKS {
            let number = |what: &str| ours.output[model][task][what].as_f64().unwrap_or(f64::NAN);
            let name = format!("{model} {task}");
            println!("{name:<36} {:>8.0} {:>8.0}", number("train"), number("evaluate"));
        }
        report["models"][model] = ours.output[model].clone();
    }

    let number = |key: &str| ours.output[key].as_f64().unwrap_or(f64::NAN);
    let (peak, floor) = (number("peak_flops"), number("floor"));
    let trained = ours.output["gct"][TASKS[0]]["train"].as_f64().unwrap_or(f64::NAN);
    let reached = trained * number("flop_per_encounter");
    let fast_enough = reached / peak >= PEAK_FRACTION;
    let small_enough = ours.peak_mb < MEGABYTES;
    let latency = |which: &str| ours.output["latency_microseconds"][which].as_f64().unwrap_or(f64::NAN);
    println!("\nGCT's training step on graph reconstruction");
    println!("  products of its linear layers alone   {floor:>8.0} encounters/s");
    println!("  reached                               {:>8.1} GFLOP/s", reached / 1e9);
    println!("  multiply-adds alone                   {:>8.1} GFLOP/s", peak / 1e9);
    println!(
        "  share of that                         {:>8.1} %, at least {:.0} %{}",
        100.0 * reached / peak,
        100.0 * PEAK_FRACTION,
        verdict(fast_enough)
    );
    println!(
        "  peak memory                           {:>8.0} MB, at most {MEGABYTES:.0} MB{}",
        ours.peak_mb,
        verdict(small_enough)
    );
    println!(
        "GCT's label of one encounter: median {:.0} us, 99th percentile {:.0} us",
        latency("median"),
        latency("p99")
    );

    met &= fast_enough && small_enough;
    report["peak_fraction"] = (reached / peak).into();
    report["gflops"] = (reached / 1e9).into();
    report["peak_gflops"] = (peak / 1e9).into();
    report["linear_products_alone"] = floor.into();
    report["peak_mb"] = ours.peak_mb.into();
    report["latency_microseconds"] = ours.output["latency_microseconds"].clone();
    report["bars_met"] = met.into();
    if let Some(path) = json_file {
        fs::write(root().join(path), format!("{report:#}\n"))?;
    }
    Ok(met)
}

/// Trains for so many steps; the memory of the second half must be that of the first.
fn memory(data: &Data, steps: usize) -> Result<bool> {
    let output = measure(data.ours().args(["--steps", &steps.to_string()]))?.output;
    let tenths: Vec<f64> =
        output["megabytes"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    if tenths.len() < 10 {
        bail!("no measurements of memory: this needs Linux and at least ten steps");
    }
    println!("memory after each tenth of {steps} steps, MB: {tenths:.1?}");
    let most = |part: &[f64]| part.iter().copied().fold(0.0, f64::max);
    let (first, second) = tenths.split_at(tenths.len() / 2);
    let grows = most(second) > most(first) + 1.0;
    println!("{}", if grows { "it GROWS" } else { "it does not grow" });
    Ok(!grows && most(&tenths) < MEGABYTES)
}

/// What ours and theirs learn from.
struct Data {
    folder: PathBuf,
    prior: PathBuf,
    _home: TempDir,
}

impl Data {
    fn make() -> Result<Data> {
        let release = ["build", "--release", "--locked", "--package"];
        execute(cargo().args(release).arg("gct-cli"))?;
        execute(cargo().args(release).args(["gct", "--example", "bench_train"]))?;
        let home = tempfile::tempdir()?;
        let (folder, prior) = (home.path().join("synthetic"), home.path().join("prior.parquet"));
        let gct = target().join("release").join("gct");
        let synth = ["synth", "--encounters", "4000", "--json", "--out"];
        let made = Command::new(&gct).args(synth).arg(&folder).output()?;
        let counted = Command::new(&gct).args(["prior", "--out"]).arg(&prior).arg(&folder).output()?;
        if !made.status.success() || !counted.status.success() {
            bail!("gct could not make the data to train on");
        }
        Ok(Data { folder, prior, _home: home })
    }

    fn ours(&self) -> Command {
        let mut command = Command::new(target().join("release/examples/bench_train"));
        command.arg(&self.folder).env("RAYON_NUM_THREADS", THREADS);
        command
    }

    fn pytorch(&self, task: &str, how: &[&str]) -> Result<Value> {
        let mut command = python::torch()?;
        command.arg("reference/train_pytorch.py").args([&self.folder, &self.prior]);
        command.args(["--task", task, "--threads", THREADS]).args(how);
        Ok(measure(&mut command)?.output)
    }
}
