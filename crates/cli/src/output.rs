//! The options of every command that can write its result to a file.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use gct::files::{self, Overwrite, TemporaryFolder};
use gct::predict::{self, Format, Target};

use crate::terminal::{flushed, refusal};

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

/// A format of rows.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum FormatName {
    Parquet,
    Csv,
    Jsonl,
}

impl FormatName {
    fn format(self) -> Format {
        match self {
            FormatName::Parquet => Format::Parquet,
            FormatName::Csv => Format::Csv,
            FormatName::Jsonl => Format::JsonLines,
        }
    }
}

/// The file or standard output that a command writes rows to.
#[derive(Args)]
pub(crate) struct RowsFile {
    /// The file to write; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// How to write it [default: as FILE ends; jsonl to standard output]
    #[arg(long, value_enum)]
    format: Option<FormatName>,

    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

impl RowsFile {
    /// Whether rows go to standard output.
    pub(crate) fn is_standard(&self) -> bool {
        self.out.as_os_str() == "-"
    }

    /// Refuses a path that cannot be written, before any work is done.
    pub(crate) fn check(&self, endings: &'static [&'static str], json: bool) -> Result<()> {
        if self.is_standard() {
            return match (self.force, json) {
                (true, _) => Err(refusal("--force is for files, and --out - is none", "leave it out")),
                (_, true) => Err(refusal(
                    "--json and --out - are both for standard output",
                    "write the rows to a file, or leave out --json",
                )),
                _ => Ok(()),
            };
        }
        files::check_ending(&self.out, endings)?;
        if let Some(format) = self.format {
            predict::check_format(&self.out, format.format())?;
            if self.out.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy")) {
                return Err(refusal("--format is for rows, and .npy has none", "leave it out"));
            }
        }
        Ok(files::check_file(&self.out, self.overwrite())?)
    }

    fn overwrite(&self) -> Overwrite {
        if self.force { Overwrite::Replace } else { Overwrite::Refuse }
    }

    /// Calls `write` with the file; for standard output, with one whose contents are printed afterwards, so
    /// that nothing is printed if anything is wrong.
    pub(crate) fn with_target<T>(&self, write: impl FnOnce(Target<'_>) -> gct::Result<T>) -> Result<T> {
        let format = self.format.map(FormatName::format);
        if !self.is_standard() {
            return Ok(write(Target { path: &self.out, overwrite: self.overwrite(), format })?);
        }
        let folder = TemporaryFolder::inside(&std::env::temp_dir())?;
        let path = folder.path().join("rows");
        let format = Some(format.unwrap_or(Format::JsonLines));
        let written = write(Target { path: &path, overwrite: Overwrite::Refuse, format })?;
        let mut rows = File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
        flushed(io::copy(&mut rows, &mut io::stdout().lock()).map(drop))?;
        Ok(written)
    }
}
