//! `cargo xtask bench patients`: models that see a patient's earlier visits. Training and inference beside
//! PyTorch in memory, then a million visits from file to file.
//!
//! A visit per second: every visit of every patient is asked about once, with all visits before it as its
//! history, and the time of that is divided by the number of visits. So it counts distinct visits, of which
//! each has one answer, however many samples see it. Ours and theirs are counted alike, and compute the same
//! function: GCT on every visit and, for every visit asked about, a GRU over a sequence of its own, because
//! the time from a visit to the question is part of the model. All encode the visits of a batch once and not
//! for each sample; ours encodes a visit again where a batch ends amid a patient, PyTorch's batches do not.
//! Beyond that, PyTorch *padded* computes the visits and nodes that padding adds, as most people would write
//! it, and *expert* does not (`reference/patients_pytorch.py`).

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use super::{Measured, keep_best, measure, verdict};
use crate::{cargo, execute, python, root, target};

/// Everything runs on so many threads.
const THREADS: &str = "2";

/// How often ours and theirs are measured, in turn. The best of each counts.
const ROUNDS: usize = 2;

/// Ratios to PyTorch that must be reached, in training and in inference: padded, and written by an expert.
const RATIOS: [f64; 2] = [3.0, 1.5];

/// Visits to learn from. Ours takes the first 1,600 of them and PyTorch the first 800, which take long enough
/// if they are padded. The others count for the prior.
const SMALL: &str = "--visits 3 --encounters 4000";

/// Visits in files: those of 200,000 patients.
const LARGE: &str = "--visits 5 --encounters 1000000";

/// The megabytes that predicting them may take, however many there are. What is held at a time: a round of
/// 4,096 visits and the rest of one patient, the round that is read meanwhile, their answers, the model and
/// the counts that P is made of. That takes about 120.
const MEGABYTES: f64 = 200.0;

/// The share of the speed in memory that it must keep.
const SHARE: f64 = 0.8;

/// A part of this benchmark.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    /// Training and inference in memory, beside PyTorch
    Speed,
    /// A million visits from file to file
    Files,
}

pub(super) fn run(json_file: Option<&Path>, only: Option<Part>) -> Result<bool> {
    let release = ["build", "--release", "--locked", "--package"];
    execute(cargo().args(release).arg("gct-cli"))?;
    execute(cargo().args(release).args(["gct", "--example", "bench_patients"]))?;
    let home = tempfile::tempdir()?;
    let (mut report, mut met) = (json!({}), true);
    if only != Some(Part::Files) {
        let (numbers, enough) = speed(home.path())?;
        report["visits_per_second"] = numbers;
        met &= enough;
    }
    if only != Some(Part::Speed) {
        let (numbers, enough) = files(home.path())?;
        report["files"] = numbers;
        met &= enough;
    }
    report["bars_met"] = met.into();
    if let Some(path) = json_file {
        fs::write(root().join(path), format!("{report:#}\n"))?;
    }
    Ok(met)
}

/// Runs `gct` in a folder.
fn gct(home: &Path, line: &str) -> Result<Measured> {
    let mut command = Command::new(target().join("release").join("gct"));
    measure(command.current_dir(home).args(line.split_whitespace()).args(["--json", "--quiet"]))
}

/// The same model on visits that are in memory.
fn in_memory(home: &Path, data: &str) -> Result<Value> {
    let mut command = Command::new(target().join("release/examples/bench_patients"));
    Ok(measure(command.current_dir(home).arg(data).env("RAYON_NUM_THREADS", THREADS))?.output)
}

/// Training and inference beside PyTorch: the numbers, and whether the bars are met.
fn speed(home: &Path) -> Result<(Value, bool)> {
    gct(home, &format!("synth --out visits {SMALL}"))?;
    gct(home, "prior visits --out prior.parquet")?;
    let mut best = json!({});
    for _ in 0..ROUNDS {
        keep_best(&mut best["ours"], &in_memory(home, "visits")?);
        keep_best(&mut best["padded"], &pytorch(home, &["--style", "padded"])?);
        keep_best(&mut best["expert"], &pytorch(home, &["--style", "expert"])?);
        // An expert would try the compiler and keep what is faster.
        match pytorch(home, &["--style", "expert", "--compile"]) {
            Ok(compiled) => keep_best(&mut best["expert"], &compiled),
            Err(error) => println!("without torch.compile: {error:#}"),
        }
    }
    let bars = format!("{:.1}, {:.1}", RATIOS[0], RATIOS[1]);
    println!(
        "{:<24} {:>8} {:>8} {:>8} {:>9}  ratios",
        "GCT and GRU, visits/s", "ours", "padded", "expert", "bars"
    );
    let (mut report, mut met) = (json!({}), true);
    for what in ["train", "evaluate"] {
        let [us, padded, expert] =
            ["ours", "padded", "expert"].map(|who| best[who][what].as_f64().unwrap_or(f64::NAN));
        let ratios = [us / padded, us / expert];
        let enough = ratios[0] >= RATIOS[0] && ratios[1] >= RATIOS[1];
        met &= enough;
        let shown = format!("{:.2}, {:.2}{}", ratios[0], ratios[1], verdict(enough));
        println!("{what:<24} {us:>8.0} {padded:>8.0} {expert:>8.0} {bars:>9}  {shown}");
        report[what] = json!({"ours": us, "pytorch_padded": padded, "pytorch_expert": expert});
    }
    Ok((report, met))
}

fn pytorch(home: &Path, how: &[&str]) -> Result<Value> {
    let mut command = python::torch()?;
    command
        .arg("reference/patients_pytorch.py")
        .args(["visits", "prior.parquet"].map(|name| home.join(name)));
    Ok(measure(command.args(["--threads", THREADS]).args(how))?.output)
}

/// Predictions of a million visits from file to file: the numbers, and whether the bars are met.
fn files(home: &Path) -> Result<(Value, bool)> {
    let drawn = gct(home, &format!("synth --out many {LARGE}"))?;
    gct(home, &format!("synth --out few {}", LARGE.replace("1000000", "4000")))?;
    gct(home, "train --data few --task label:later --history gru --steps 20 --out run")?;
    // Before and after, because the machine is not the same from one minute to the next.
    let before = in_memory(home, "few")?;
    let line = format!("predict run --data many --split all --out predictions.parquet --threads {THREADS}");
    let Measured { seconds, peak_mb, output } = gct(home, &line)?;
    let after = in_memory(home, "few")?;
    let Some(visits) = output["encounters"].as_f64() else { bail!("gct predict said nothing") };
    let bound =
        [&before, &after].map(|of| of["evaluate"].as_f64().unwrap_or(f64::NAN)).iter().sum::<f64>() / 2.0;
    let (rate, share) = (visits / seconds, visits / seconds / bound);
    let enough = share >= SHARE && peak_mb < MEGABYTES;
    println!("\n{visits:.0} visits, from file to file (drawn in {:.0} s)", drawn.seconds);
    println!("  predicted      {rate:>8.0} visits/s, in {seconds:.0} s");
    println!("  in memory      {bound:>8.0} visits/s");
    println!("  share of that  {:>8.0} %, at least {:.0} %", 100.0 * share, 100.0 * SHARE);
    println!("  peak memory    {peak_mb:>8.0} MB, at most {MEGABYTES:.0} MB{}", verdict(enough));
    let numbers = json!({
        "visits": visits,
        "predict_per_second": rate,
        "in_memory_per_second": bound,
        "share": share,
        "peak_mb": peak_mb,
    });
    Ok((numbers, enough))
}
