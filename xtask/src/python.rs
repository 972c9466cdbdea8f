//! A Python environment of our own, for tests and peers. The product never needs it.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{execute, root, target};

/// Python for tests.
pub(crate) fn command() -> Result<Command> {
    environment("python", "reference/requirements.txt")
}

/// Python with PyTorch, which takes gigabytes, for benchmarks alone.
pub(crate) fn torch() -> Result<Command> {
    environment("python-torch", "reference/requirements-torch.txt")
}

/// Python with the packages of a file, installed when they are new or have changed.
fn environment(name: &str, requirements: &str) -> Result<Command> {
    let environment = target().join(name);
    let python = environment.join("bin").join("python");
    let (file, installed) = (root().join(requirements), environment.join("installed.txt"));
    let wanted = fs::read_to_string(&file)?;
    if fs::read_to_string(&installed).ok().as_deref() != Some(wanted.as_str()) {
        execute(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment))
            .context("this needs python3 with its venv module (Debian: python3-venv)")?;
        execute(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
                .arg(&file),
        )
        .context("this needs packages from PyPI; tests without a network: cargo xtask test --no-python")?;
        fs::write(&installed, &wanted)?;
    }
    let mut command = Command::new(python);
    command.current_dir(root()).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(command)
}
