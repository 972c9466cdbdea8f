//! The repository's chores: `cargo xtask test | tidy | torture | bench`.

#![allow(clippy::print_stdout, clippy::print_stderr)] // A chore talks to whoever runs it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

mod bench;
mod browser;
mod deny;
mod python;
mod serving;
mod test;
mod tidy;
mod torture;
mod width;

/// The repository's chores
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that must pass: format, lints, tidy, Rust tests, Python tests, a walk through the page in a
    /// browser
    Test(test::Arguments),
    /// The rules of the house that no compiler checks: module order, paths in documents
    Tidy,
    /// Kill every command that writes, damage every file that is read, send odd requests, and list what came
    /// of it
    Torture(torture::Arguments),
    /// Speed and memory, side by side with a peer
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().chore {
        Chore::Test(arguments) => test::run(&arguments).map(|()| true),
        Chore::Tidy => tidy::run().map(|()| true),
        Chore::Torture(arguments) => torture::run(&arguments),
        Chore::Bench(arguments) => bench::run(&arguments),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// The root of the repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the repository")
}

/// Where build results go.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target))
}

fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; anything but success is an error that shows the command.
fn execute(command: &mut Command) -> Result<()> {
    let words: Vec<_> = std::iter::once(command.get_program()).chain(command.get_args()).collect();
    let shown = words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    let status = command.status().with_context(|| format!("cannot run `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}
