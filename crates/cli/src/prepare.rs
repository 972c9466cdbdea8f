//! `gct prepare`: runs the program `gct-prepare` beside this one, as git and cargo run theirs. It holds a
//! query engine, which takes longer to build than everything else together.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use clap::Args;

use crate::terminal::{self, refusal};

/// Make a dataset of health records: eICU, MIMIC, MEDS, OMOP, Synthea, FHIR, claims, any table of events
#[derive(Args)]
#[command(
    disable_help_flag = true,
    override_usage = "gct prepare <SOURCE> <INPUT> --out <DIR> [OPTIONS]",
    after_help = after_help()
)]
pub(crate) struct Arguments {
    /// What to pass on
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS", hide = true)]
    arguments: Vec<OsString>,
}

const PROGRAM: &str = "gct-prepare";

const INSTALL: &str = "cargo install --locked --path crates/prepare";

/// What `gct-prepare` reads: listed here too, for those who have not installed it.
const SOURCES: [(&str, &str); 10] = [
    ("eicu", "eICU Collaborative Research Database: unit stays, their diagnoses and treatments"),
    ("mimic4", "MIMIC-IV, as published: admissions or stays in units, their ICD codes, drugs and labs"),
    ("mimic3", "MIMIC-III, as published: admissions or stays in units, their ICD-9 codes, drugs and labs"),
    (
        "meds",
        "The Medical Event Data Standard (MEDS 0.4): data, code metadata, subject splits and task labels",
    ),
    (
        "synthea",
        "Synthea's CSV export, in its old and new layouts; reasons of procedures and medications are true edges",
    ),
    (
        "omop",
        "OMOP common data model, 5.3 and 5.4: visits, their conditions, procedures, drugs and measurements",
    ),
    ("claims", "Claims: wide ones as in CMS DE-SynPUF, or any table with a row per claim line"),
    (
        "fhir",
        "FHIR R4: bundles, or NDJSON as bulk export writes it; reasons of procedures and medications are true edges",
    ),
    ("events", "Any long table with a row per recorded code: columns are named with --column or --columns"),
    ("sql", "Your own source: a source.toml with encounters.sql, events.sql and perhaps links.sql beside it"),
];

/// Whether a source comes with the program; any other is a folder of the user's own.
pub(crate) fn is_built_in(source: &str) -> bool {
    SOURCES.iter().any(|(name, _)| *name == source)
}

fn after_help() -> String {
    let mut text = "Sources:\n".to_owned();
    for (name, about) in SOURCES {
        text += &format!("  {name:<9} {about}\n");
    }
    text + &format!(
        "\nThe program `{PROGRAM}` does this. In the source of gct, this installs it:\n  {INSTALL}\n\n\
         Examples:\n  gct prepare eicu --help                the options of a source\n  \
         gct prepare eicu eicu-crd --out eicu"
    )
}

/// The command with its sources as subcommands, for completions and manual pages.
pub(crate) fn described(command: clap::Command) -> clap::Command {
    let source = |(name, about)| {
        clap::Command::new(name).about(about).args([
            clap::Arg::new("input")
                .value_name("INPUT")
                .value_hint(clap::ValueHint::AnyPath)
                .required(true)
                .help("The folder of the tables, or their one file"),
            clap::Arg::new("out")
                .long("out")
                .value_name("DIR")
                .value_hint(clap::ValueHint::DirPath)
                .help("The dataset folder to write"),
        ])
    };
    let about = command.get_about().cloned().unwrap_or_default();
    let after = format!(
        "`gct prepare SOURCE --help` lists the options of a source; this installs the program `{PROGRAM}`:\n  {INSTALL}"
    );
    clap::Command::new("prepare")
        .about(about)
        .after_help(after)
        .subcommand_value_name("SOURCE")
        .subcommand_help_heading("Sources")
        .subcommands(SOURCES.map(source))
}

pub(crate) fn run(arguments: &Arguments, threads: Option<u16>, quiet: bool) -> Result<ExitCode> {
    let mut command = Command::new(program());
    command.args(&arguments.arguments);
    if let Some(threads) = threads {
        command.arg("--threads").arg(threads.to_string());
    }
    if quiet {
        command.arg("--quiet");
    }
    match finish(command)? {
        Some(status) => {
            Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(130)))
        }
        None if wants_help(arguments) => {
            terminal::print(&crate::help("prepare"))?;
            Ok(ExitCode::SUCCESS)
        }
        None => Err(refusal(
            format!("the program `{PROGRAM}` is not installed"),
            format!("in the source of gct: {INSTALL}"),
        )),
    }
}

/// Has `gct-prepare`, if it is installed, write its manual pages into a folder.
pub(crate) fn write_pages(folder: &Path) -> Result<()> {
    let mut command = Command::new(program());
    command.arg("man").arg("--out").arg(folder);
    match finish(command)? {
        Some(status) if !status.success() => Err(refusal(
            format!("`{PROGRAM}` cannot write its manual pages"),
            format!("install the same version: {INSTALL}"),
        )),
        _ => Ok(()),
    }
}

fn wants_help(arguments: &Arguments) -> bool {
    arguments.arguments.iter().any(|argument| ["--help", "-h", "help"].iter().any(|help| argument == help))
}

/// Runs it to its end; nothing if there is no such program.
fn finish(mut command: Command) -> Result<Option<ExitStatus>> {
    match command.status() {
        Ok(status) => Ok(Some(status)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
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
