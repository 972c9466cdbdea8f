//! The options of every command that can write its result to a file.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use gct::dataset::{self, Overwrite};

/// Where a table goes.
#[derive(Args)]
pub(crate) struct OutputFile {
    /// Write the result to this Parquet file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl OutputFile {
    /// The place, if one was given, and what to do with what is there.
    pub(crate) fn place(&self) -> Option<(&Path, Overwrite)> {
        let overwrite = if self.force { Overwrite::Replace } else { Overwrite::Refuse };
        self.out.as_deref().map(|out| (out, overwrite))
    }

    /// Refuses a place that cannot be written, before any work is done.
    pub(crate) fn check(&self) -> Result<()> {
        let Some((out, overwrite)) = self.place() else { return Ok(()) };
        check_ending(out, &["parquet"])?;
        Ok(dataset::check_file(out, overwrite)?)
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
    /// The place, and what to do with what is there.
    pub(crate) fn place(&self) -> (&Path, Overwrite) {
        (&self.out, if self.force { Overwrite::Replace } else { Overwrite::Refuse })
    }

    /// Refuses a place that cannot be written, before any work is done.
    pub(crate) fn check(&self, endings: &[&str]) -> Result<()> {
        let (out, overwrite) = self.place();
        check_ending(out, endings)?;
        Ok(dataset::check_file(out, overwrite)?)
    }
}

/// Refuses a name that promises another format than the one that is written.
pub(crate) fn check_ending(file: &Path, endings: &[&str]) -> Result<()> {
    let is_one = |ending: &std::ffi::OsStr| endings.iter().any(|one| ending.eq_ignore_ascii_case(one));
    if file.extension().is_none_or(is_one) {
        return Ok(());
    }
    bail!("{} cannot be written: its name must end in .{}", file.display(), endings.join(" or ."))
}
