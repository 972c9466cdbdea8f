//! `cargo xtask test`: the one test command.

use anyhow::Result;
use clap::Args;

use crate::{browser, cargo, deny, execute, python, target, tidy, torture};

#[derive(Args)]
pub(crate) struct Arguments {
    /// Leave out the tests that need packages from PyPI, for a machine without a network
    #[arg(long)]
    no_python: bool,

    /// Leave out the tests that need node, npm and chromium
    #[arg(long)]
    no_browser: bool,

    /// Leave out what asks crates.io: the checks of dependencies and of packages
    #[arg(long)]
    no_registry: bool,
}

/// `gct-prepare` is checked with its clouds, and tested without them. Features that differed between the
/// checks would have the whole query engine checked twice.
const FEATURES: [&str; 2] = ["--features", "gct-prepare/cloud"];

fn run_step(name: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("--- {name}");
    step()
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    run_step("format", || execute(cargo().args(["fmt", "--all", "--check"])))?;
    run_step("tidy", tidy::run)?;
    if arguments.no_registry {
        println!("--- dependencies and packages left out (--no-registry)");
    } else {
        run_step("dependencies", deny::check)?;
        run_step("packages", || {
            let package = ["package", "--workspace", "--exclude", "xtask", "--no-verify", "--allow-dirty"];
            execute(cargo().args(package).args(["--locked", "--quiet"]))
        })?;
    }
    run_step("clippy", || {
        let clippy = ["clippy", "--workspace", "--all-targets", "--locked"];
        execute(cargo().args(clippy).args(FEATURES).args(["--", "--deny", "warnings"]))
    })?;
    run_step("documentation", || {
        let rustdoc = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked", "--quiet"];
        execute(cargo().args(rustdoc).args(FEATURES).env("RUSTDOCFLAGS", "--deny warnings"))
    })?;
    run_step("Rust tests", || execute(cargo().args(["test", "--workspace", "--locked"])))?;
    // The tests before have built the programs. Asking for them alone would build the query engine once more,
    // with other features.
    let debug = target().join("debug");
    run_step("torture, a short round", || torture::short_round(&debug))?;
    if arguments.no_browser {
        println!("--- browser tests left out (--no-browser)");
    } else {
        run_step("browser tests", || browser::test(&debug.join("gct")))?;
    }
    if arguments.no_python {
        println!("--- Python tests left out (--no-python)");
        return Ok(());
    }
    run_step("Python tests", || {
        let mut pytest = python::command()?;
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "reference"]);
        execute(pytest.env("GCT", debug.join("gct")).env("GCT_METRICS", debug.join("examples/metrics")))
    })
}
