//! `cargo deny`: licences, banned crates and sources of all dependencies, by `deny.toml`; and known
//! vulnerabilities, where their database can be reached.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, execute, root, target};

/// Pinned, so that a new release does not change what passes.
const VERSION: &str = "0.20.2";

/// Checks the dependencies, after installing `cargo-deny` if it is not there yet.
pub(crate) fn check() -> Result<()> {
    let program = installed()?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(root()).args(["--locked", "--log-level", "error"]).args(arguments);
        command
    };
    // deny.toml has a wrapper that does not depend on what it wraps, and says why.
    execute(&mut deny(&["check", "--allow", "unused-wrapper", "bans", "licenses", "sources"]))?;
    if deny(&["fetch", "db"]).output()?.status.success() {
        execute(&mut deny(&["check", "--disable-fetch", "advisories"]))
    } else {
        println!("advisories left out: their database cannot be reached");
        Ok(())
    }
}

/// The program, in the folder of build results. Unoptimised it is built in a minute and checks in three
/// seconds.
fn installed() -> Result<PathBuf> {
    let tools = target().join("tools");
    let program = tools.join("bin").join("cargo-deny");
    if is_current(&program) {
        return Ok(program);
    }
    let build = tools.join("build");
    let install =
        ["install", "cargo-deny", "--locked", "--debug", "--force", "--quiet", "--version", VERSION];
    execute(cargo().args(install).arg("--root").arg(&tools).arg("--target-dir").arg(&build))
        .context("this needs crates.io; tests without a network: cargo xtask test --no-registry")?;
    fs::remove_dir_all(&build)?;
    Ok(program)
}

fn is_current(program: &Path) -> bool {
    let output = Command::new(program).arg("--version").output();
    let wanted = format!("cargo-deny {VERSION}");
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == wanted)
}
