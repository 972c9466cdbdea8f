//! `cargo xtask bench data`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::json;

use super::{Measured, measure};
use crate::{cargo, execute, python, root, target};

/// A measurement and the bar that it must stay below.
struct Bar {
    what: &'static str,
    value: f64,
    unit: &'static str,
    most: f64,
}

pub(super) fn run(json_file: Option<&Path>) -> Result<bool> {
    execute(cargo().args(["build", "--release", "--locked", "--package", "gct-cli"]))?;
    let gct = target().join("release").join("gct");
    let home = tempfile::tempdir()?;
    let (small, large) = (home.path().join("small"), home.path().join("large"));
    let synth = |out: &Path, encounters: &str| {
        let mut command = Command::new(&gct);
        command.args(["synth", "--json", "--force", "--encounters", encounters, "--out"]).arg(out);
        measure(&mut command)
    };
    let on = |command: &str, data: &Path| measure(Command::new(&gct).args([command, "--json"]).arg(data));

    // The machine is noisy: the best of three says what the program needs.
    let mut best = synth(&small, "50000")?;
    for _ in 0..2 {
        let again = synth(&small, "50000")?;
        best = if again.seconds < best.seconds { again } else { best };
    }
    let numpy = measure(python::command()?.args(["reference/synthetic.py", "--encounters", "1000"]))?;
    let prior = on("prior", &small)?;
    let duckdb = measure(python::command()?.arg("reference/prior_duckdb.py").arg(&small))?;
    let million = synth(&large, "1000000")?;
    let inspected = on("inspect", &large)?;
    let verified = measure(Command::new(&gct).args(["inspect", "--verify", "--json"]).arg(&large))?;
    let million_prior = on("prior", &large)?;
    let opened = opening(&gct, &large)?;
    let bytes = bytes_in(&large.join("encounters"))? as f64 / 1048576.0;

    let seconds = |measured: &Measured| measured.output["seconds"].as_f64().unwrap_or(f64::NAN);
    let bars = [
        Bar { what: "synth, 50,000 encounters", value: best.seconds, unit: "s", most: 10.0 },
        Bar { what: "its peak memory", value: best.peak_mb, unit: "MB", most: 500.0 },
        Bar { what: "prior, about 40,000 training encounters", value: seconds(&prior), unit: "s", most: 2.0 },
        Bar {
            what: "synth, 1,000,000 encounters: peak memory",
            value: million.peak_mb,
            unit: "MB",
            most: 500.0,
        },
        Bar { what: "opening them", value: opened, unit: "s", most: 1.0 },
        Bar {
            what: "reading them: peak memory over file size",
            value: inspected.peak_mb / bytes,
            unit: "x",
            most: 10.0,
        },
    ];
    println!("{:<44} {:>9} {:>14}", "bar", "measured", "at most");
    for Bar { what, value, unit, most } in &bars {
        let verdict = if value < most { "" } else { "  MISSED" };
        println!("{what:<44} {value:>6.2} {unit:<2} {most:>11.0} {unit}{verdict}");
    }
    let numpy_rate = 1000.0 / seconds(&numpy);
    let rate = 50_000.0 / best.seconds;
    println!("\n{:<44} {:>9} {:>11} {:>7}", "beside a peer", "ours", "theirs", "ratio");
    println!("{:<44} {rate:>9.0} {numpy_rate:>11.0} {:>7.1}", "encounters/s (NumPy)", rate / numpy_rate);
    let (ours, theirs) = (seconds(&prior), seconds(&duckdb));
    println!("{:<44} {ours:>9.2} {theirs:>11.2} {:>7.1}", "seconds for the prior (DuckDB)", theirs / ours);
    println!("\n{:<44} {:>9} {:>11}", "1,000,000 encounters", "seconds", "peak MB");
    for (what, measured) in [
        ("synth", &million),
        ("inspect", &inspected),
        ("inspect --verify", &verified),
        ("prior", &million_prior),
    ] {
        println!("{what:<44} {:>9.1} {:>11.0}", measured.seconds, measured.peak_mb);
    }
    println!("{:<44} {:>21.0}", "files of encounters, MB", bytes);

    if let Some(path) = json_file {
        let numbers = |measured: &Measured| json!({"seconds": measured.seconds, "peak_mb": measured.peak_mb});
        let report = json!({
            "synth_50000": numbers(&best),
            "synth_1000000": numbers(&million),
            "inspect_1000000": numbers(&inspected),
            "verify_1000000": numbers(&verified),
            "open_1000000_seconds": opened,
            "prior_1000000": numbers(&million_prior),
            "prior_50000_seconds": seconds(&prior),
            "encounters_per_second": {"ours": rate, "numpy": numpy_rate},
            "prior_seconds": {"ours": ours, "duckdb": theirs},
            "bars_met": bars.iter().all(|bar| bar.value < bar.most),
        });
        fs::write(root().join(path), format!("{report:#}\n"))?;
    }
    Ok(bars.iter().all(|bar| bar.value < bar.most))
}

/// Seconds until a dataset is open: the best of three times until a label that it does not have is refused.
fn opening(gct: &Path, data: &Path) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        let output = Command::new(gct).args(["inspect", "--leaks", "no such label"]).arg(data).output()?;
        let seconds = start.elapsed().as_secs_f64();
        ensure!(output.status.code() == Some(2), "a label that the dataset does not have is refused");
        best = best.min(seconds);
    }
    Ok(best)
}

/// The size of all files in a folder.
fn bytes_in(folder: &Path) -> Result<u64> {
    let sizes = fs::read_dir(folder)?.map(|entry| Ok(entry?.metadata()?.len()));
    sizes.sum()
}
