//! The options of every command that can write its result to a file.

use std::path::{Path, PathBuf};

use clap::Args;
use gct::files::{self, Overwrite};

/// Where a table goes.
#[derive(Args)]
pub(crate) struct OutputFile {
    /// Write the result to this Parquet file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    force: bool,
}

impl OutputFile {
    /// The path, if one was given, and what to do with what is there.
    pub(crate) fn target(&self) -> Option<(&Path, Overwrite)> {
        let overwrite = if self.force { Overwrite::Replace } else { Overwrite::Refuse };
        self.out.as_deref().map(|out| (out, overwrite))
    }

    /// Refuses a path that cannot be written, before any work is done.
    pub(crate) fn check(&self) -> gct::Result<()> {
        let Some((out, overwrite)) = self.target() else { return Ok(()) };
        files::check_ending(out, &["parquet"])?;
        files::check_file(out, overwrite)
    }
}

/// The file that a command must write.
#[derive(Args)]
pub(crate) struct RequiredFile {
    /// The file to write
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl RequiredFile {
    /// The path, and what to do with what is there.
    pub(crate) fn target(&self) -> (&Path, Overwrite) {
        (&self.out, if self.force { Overwrite::Replace } else { Overwrite::Refuse })
    }

    /// Refuses a path that cannot be written, before any work is done.
    pub(crate) fn check(&self, endings: &'static [&'static str]) -> gct::Result<()> {
        let (out, overwrite) = self.target();
        files::check_ending(out, endings)?;
        files::check_file(out, overwrite)
    }
}
