//! `cargo xtask bench prepare`: a long table of events to encounter lists and conditional probabilities,
//! beside DuckDB and Polars.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{Measured, measure};
use crate::{cargo, execute, python, root, target};

/// About 42 million rows of events.
const ENCOUNTERS: &str = "1000000";

/// The most that it may take beside DuckDB, whose seconds differ from machine to machine: 15 s where that
/// took 18.
const SHARE: f64 = 15.0 / 18.0;
const MEGABYTES: f64 = 1500.0;

/// A limit under which the work must still be done.
const LIMIT: &str = "1G";

/// Everything runs so often, in turn, and the best counts.
const ROUNDS: usize = 2;

pub(super) fn run(json_file: Option<&Path>) -> Result<bool> {
    let release = ["build", "--release", "--locked", "--package"];
    execute(cargo().args(release).arg("gct-cli"))?;
    execute(cargo().args(release).arg("gct-prepare"))?;
    let home = tempfile::tempdir()?;
    let program = |name: &str, line: &str| {
        let mut command = Command::new(target().join("release").join(name));
        command.current_dir(home.path()).args(line.split_whitespace()).args(["--json", "--quiet"]);
        command
    };
    let peer = |line: &str| -> Result<Command> {
        let mut command = python::command()?;
        command
            .arg(root().join("reference/prepare_peers.py"))
            .args(line.split_whitespace())
            .current_dir(home.path());
        Ok(command)
    };
    measure(&mut program("gct", &format!("synth --out data --encounters {ENCOUNTERS}")))?;
    let rows = measure(&mut peer("events data events.parquet")?)?.output["rows"].as_u64();
    let Some(rows) = rows else { bail!("the table of events was not made") };

    let ours =
        "events events.parquet --out prepared --force --threads 2 --max-codes 1000 --prior prior.parquet";
    let lines = [("ours", String::new()), ("with_limit", format!(" --memory-limit {LIMIT}"))];
    let mut best: Vec<(&str, Measured)> = vec![];
    let mut keep =
        |name: &'static str, measured: Measured| match best.iter_mut().find(|(other, _)| *other == name) {
            Some((_, before)) if before.seconds <= measured.seconds => {}
            Some((_, before)) => *before = measured,
            None => best.push((name, measured)),
        };
    for _ in 0..ROUNDS {
        for (name, flags) in &lines {
            keep(name, measure(&mut program("gct-prepare", &format!("{ours}{flags}")))?);
        }
        for name in ["duckdb", "polars"] {
            keep(name, measure(&mut peer(&format!("{name} events.parquet {name}"))?)?);
        }
    }
    println!("{rows} rows of events, {ENCOUNTERS} encounters");
    println!("{:<12} {:>8} {:>9}", "", "seconds", "peak MB");
    let duckdb = best.iter().find(|(name, _)| *name == "duckdb").map_or(f64::NAN, |(_, peer)| peer.seconds);
    let (mut report, mut met) = (json!({ "rows": rows }), true);
    for (name, measured) in &best {
        let enough = match *name {
            "ours" => measured.seconds < SHARE * duckdb && measured.peak_mb < MEGABYTES,
            _ => true,
        };
        met &= enough;
        let verdict = if enough { "" } else { "  MISSED" };
        println!("{name:<12} {:>8.1} {:>9.0}{verdict}", measured.seconds, measured.peak_mb);
        report[*name] = json!({ "seconds": measured.seconds, "peak_mb": measured.peak_mb });
        if let (Value::Null, true) = (&measured.output["encounters_kept"], name.starts_with("ours")) {
            bail!("gct-prepare said nothing");
        }
    }
    println!(
        "at most {SHARE:.2} of DuckDB's seconds and {MEGABYTES} MB for ours; with_limit has --memory-limit {LIMIT}"
    );
    report["bars_met"] = met.into();
    if let Some(path) = json_file {
        fs::write(root().join(path), format!("{report:#}\n"))?;
    }
    Ok(met)
}
