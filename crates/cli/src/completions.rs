//! `gct completions`: names of commands and flags, for the shell to complete.

use anyhow::Result;
use clap::Args;
use clap_complete::Shell;

use crate::terminal;

/// Print a script that completes commands and flags in a shell
#[derive(Args)]
#[command(after_help = "Examples:
  gct completions bash > ~/.local/share/bash-completion/completions/gct
  gct completions zsh > ~/.zfunc/_gct                  a folder of $fpath
  gct completions fish > ~/.config/fish/completions/gct.fish")]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::described(), "gct", &mut script);
    Ok(terminal::print(&String::from_utf8(script)?)?)
}
