//! `gct prepare`: runs the program `gct-prepare` beside this one, as git and cargo run theirs. It holds a query engine, which takes
//! longer to build than everything else together.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;

/// Make a dataset of health records: eICU, MEDS, OMOP, Synthea, FHIR, claims, any table of events
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// What to pass on
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

const PROGRAM: &str = "gct-prepare";

pub(crate) fn run(arguments: &Arguments, threads: Option<u16>, quiet: bool) -> Result<ExitCode> {
    let mut command = Command::new(program());
    command.args(&arguments.arguments);
    if let Some(threads) = threads {
        command.arg("--threads").arg(threads.to_string());
    }
    if quiet {
        command.arg("--quiet");
    }
    match command.status() {
        Ok(status) => {
            Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(130)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "the program `{PROGRAM}` is not installed\nhint: cargo build --release --package {PROGRAM} puts it beside gct, \
             cargo install --path crates/prepare where cargo puts programs"
        ),
        Err(error) => Err(error).with_context(|| format!("cannot run {PROGRAM}")),
    }
}

/// The program beside this one, or else the one that the shell would find.
fn program() -> PathBuf {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let beside =
        std::env::current_exe().ok().map(|own| own.with_file_name(&name)).filter(|beside| beside.exists());
    beside.unwrap_or_else(|| name.into())
}
