//! `cargo xtask bench serve`: a server on this machine and a client beside it, and the same model without
//! either.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::measure;
use crate::serving::Serving;
use crate::{cargo, execute, root, target};

/// Server and model have so many threads each, and the client runs beside them.
const THREADS: &str = "2";

/// How long each number is measured.
const SECONDS: &str = "4";

pub(super) fn run(json_file: Option<&Path>, soak: Option<u64>) -> Result<bool> {
    // Both at once: what they share has the same features and is built once.
    let packages = ["--package", "gct-cli", "--package", "gct-serve", "--bins", "--examples"];
    execute(cargo().args(["build", "--release", "--locked"]).args(packages))?;
    let home = tempfile::tempdir()?;
    let gct = |line: &str| {
        let mut command = Command::new(target().join("release").join("gct"));
        command.current_dir(home.path()).args(line.split_whitespace()).args(["--json", "--quiet"]);
        command
    };
    measure(&mut gct("synth --out data --encounters 4000"))?;
    measure(&mut gct("train --data data --task label:d1_m1 --model gct --steps 20 --out run"))?;
    let serving =
        Serving::start(&mut gct(&format!("serve run --listen 127.0.0.1:0 --no-page --threads {THREADS}")))?;
    let client = |arguments: &[&str]| {
        let mut command = Command::new(target().join("release/examples/bench_client"));
        command.current_dir(home.path()).args(["run", &serving.address]).args(arguments);
        command.env("RAYON_NUM_THREADS", THREADS);
        command
    };
    let report = match soak {
        Some(seconds) => soaked(&serving, client(&[&seconds.to_string(), "soak"]), seconds)?,
        None => table(&measure(&mut client(&[SECONDS, &serving.id().to_string()]))?.output),
    };
    if let Some(path) = json_file {
        fs::write(root().join(path), format!("{report:#}\n"))?;
    }
    Ok(true)
}

/// Prints what the client measured.
fn table(measured: &Value) -> Value {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let latency = &measured["latency_microseconds"];
    println!("label of a visit, GCT of the paper's size; the client shares the cores with the server");
    println!(
        "one encounter, one connection: median {:.0} us, 99th percentile {:.0} us",
        number(&latency["median"]),
        number(&latency["p99"])
    );
    println!(
        "of the cores' time: model, as much as it takes without a server; the rest of the server; client"
    );
    println!(
        "\n{:>11} {:>20} {:>13} {:>17} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "connections",
        "encounters per call",
        "encounters/s",
        "without a server",
        "share",
        "model",
        "server",
        "client",
        "other"
    );
    let cores = std::thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64);
    for row in measured["throughput"].as_array().into_iter().flatten() {
        let [connections, size, speed, alone, seconds] =
            ["connections", "encounters_per_call", "per_second", "in_process_per_second", "seconds"]
                .map(|name| number(&row[name]));
        let [model, server, client] = ["model", "server", "client"]
            .map(|who| 100.0 * number(&row["processor_seconds"][who]) / (cores * seconds));
        println!(
            "{connections:>11} {size:>20} {speed:>13.0} {alone:>17.0} {:>6.2} {model:>4.0} % {:>4.0} % {client:>4.0} % {:>4.0} %",
            speed / alone,
            server - model,
            100.0 - server - client
        );
    }
    measured.clone()
}

/// Lets a client ask for so long, and watches the server's memory.
fn soaked(serving: &Serving, mut client: Command, seconds: u64) -> Result<Value> {
    let before = serving.resident_mb()?;
    println!("{:>8} {:>12}\n{:>8} {before:>12.1}", "seconds", "resident MB", 0);
    let (started, mut child) = (Instant::now(), client.stdout(Stdio::piped()).spawn()?);
    let mut resident = vec![json!([0, before])];
    for tenth in 1..=10 {
        let until = Duration::from_secs_f64(seconds as f64 * f64::from(tenth) / 10.0);
        std::thread::sleep(until.saturating_sub(started.elapsed()));
        let now = serving.resident_mb()?;
        println!("{:>8.0} {now:>12.1}", started.elapsed().as_secs_f64());
        resident.push(json!([started.elapsed().as_secs_f64(), now]));
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("the client failed: {status}");
    }
    let mut told = String::new();
    child.stdout.take().context("it has no output")?.read_to_string(&mut told)?;
    let client: Value = serde_json::from_str(&told)?;
    println!("{} calls", client["calls"]);
    Ok(json!({"resident_mb": resident, "client": client}))
}
