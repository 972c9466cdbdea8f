//! `cargo xtask bench`: speed and memory of the release build, with a peer measured beside it in the same
//! run.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use serde_json::Value;

mod data;
mod mimic;
mod patients;
mod predict;
mod prepare;
mod serve;
mod train;

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Synthetic data, the dataset folder and the prior, beside NumPy and DuckDB
    Data {
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Training and evaluation, beside PyTorch padded and PyTorch packed
    Train {
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Instead, train for so many steps and see whether memory grows
        #[arg(long)]
        steps: Option<usize>,
    },
    /// 42 million events as a dataset, beside DuckDB and Polars
    Prepare {
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// 10 million labs in tables shaped like those of MIMIC-IV as a dataset
    Mimic {
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// A server and a client on this machine, beside the same model without them
    Serve {
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Instead, ask for so many seconds and see whether memory grows
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(10..))]
        soak: Option<u64>,
    },
    /// Models with history: training and inference beside PyTorch, predictions of a million visits
    Patients {
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
        /// Only this part
        #[arg(long, value_name = "PART")]
        only: Option<patients::Part>,
    },
    /// Predictions of a million encounters, beside the same model on examples in memory
    Predict {
        /// Also write the numbers to this file
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
}

/// Whether all bars were met.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    match &arguments.what {
        What::Data { json } => data::run(json.as_deref()),
        What::Train { json, steps } => train::run(json.as_deref(), *steps),
        What::Prepare { json } => prepare::run(json.as_deref()),
        What::Mimic { json } => mimic::run(json.as_deref()),
        What::Patients { json, only } => patients::run(json.as_deref(), *only),
        What::Predict { json } => predict::run(json.as_deref()),
        What::Serve { json, soak } => serve::run(json.as_deref(), *soak),
    }
}

/// What a command took.
struct Measured {
    seconds: f64,
    peak_mb: f64,
    output: Value,
}

/// Runs a command that prints JSON, and watches its memory.
fn measure(command: &mut Command) -> Result<Measured> {
    let start = Instant::now();
    let child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    let watch = thread::spawn(move || {
        let mut peak_kb = 0.0;
        // The kernel keeps the peak itself, so only what happens in the last moment can be missed.
        while let Ok(status) = fs::read_to_string(&status) {
            let field = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            match field.and_then(|field| field.trim().trim_end_matches(" kB").parse::<f64>().ok()) {
                Some(kb) => peak_kb = kb,
                None => break,
            }
            thread::sleep(Duration::from_millis(5));
        }
        peak_kb / 1024.0
    });
    let output = child.wait_with_output()?;
    let seconds = start.elapsed().as_secs_f64();
    if !output.status.success() {
        bail!("{command:?} failed: {}", output.status);
    }
    let peak_mb = watch.join().expect("the watcher does not panic");
    let output =
        serde_json::from_slice(&output.stdout).with_context(|| format!("{command:?} printed no JSON"))?;
    Ok(Measured { seconds, peak_mb, output })
}

/// Keeps the larger one of every number.
fn keep_best(best: &mut Value, other: &Value) {
    match other {
        Value::Object(fields) => fields.iter().for_each(|(key, other)| keep_best(&mut best[key], other)),
        other if other.as_f64() > best.as_f64() => *best = other.clone(),
        _ => {}
    }
}

/// What is printed beside a number that has a bar.
fn verdict(enough: bool) -> &'static str {
    if enough { "" } else { "  MISSED" }
}
