//! `gct man`: the help of every command as manual pages.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use clap_mangen::Man;

use crate::{prepare, terminal};

/// Print the manual page of gct, or write those of all commands
///
/// Existing pages are replaced. Those of `gct prepare` have the options of each source if the program
/// `gct-prepare` is installed.
#[derive(Args)]
#[command(after_help = "Examples:
  gct man | man -l -
  gct man --out ~/.local/share/man/man1      then: man gct-train")]
pub(crate) struct Arguments {
    /// Write a page for each command into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let command = crate::described().disable_help_subcommand(true);
    let Some(folder) = &arguments.out else {
        let mut page = Vec::new();
        Man::new(command).render(&mut page)?;
        return Ok(terminal::print(&String::from_utf8(page)?)?);
    };
    let failed = || format!("cannot write manual pages to {}", folder.display());
    fs::create_dir_all(folder).with_context(failed)?;
    clap_mangen::generate_to(command, folder).with_context(failed)?;
    // Last, so that its own pages replace the ones that do not have its options.
    prepare::write_pages(folder)
}
