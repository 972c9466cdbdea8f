//! A Python environment of our own, for tests and peers. The product never needs it.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{execute, root, target};

/// Python with the packages of `reference/requirements.txt`, installed when they are new or have changed.
pub(crate) fn command() -> Result<Command> {
    let environment = target().join("python");
    let python = environment.join("bin").join("python");
    let requirements = fs::read_to_string(root().join("reference/requirements.txt"))?;
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).ok().as_deref() != Some(requirements.as_str()) {
        execute(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))
            .context("the Python tests need python3 with its venv module (Debian: python3-venv)")?;
        execute(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
                .arg(root().join("reference/requirements.txt")),
        )
        .context(
            "the Python tests need packages from PyPI; without a network: cargo xtask test --no-python",
        )?;
        fs::write(&installed, &requirements)?;
    }
    let mut command = Command::new(python);
    command.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}
