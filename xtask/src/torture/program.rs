//! A command, run within bounds: how it ended, what it printed, how much memory it took.

use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::serving::signal;

/// Every command takes a few seconds at most; after this time it is interrupted, as by Ctrl-C.
pub(crate) const TIME: Duration = Duration::from_secs(60);

/// Time after which an interrupted command is killed, and counts as hanging.
const GRACE: Duration = Duration::from_secs(3);

/// No command here needs a tenth of this.
const MEMORY_MB: f64 = 1024.0;

/// `gct` and, beside it, `gct-prepare`.
pub(crate) struct Programs {
    pub(crate) folder: PathBuf,
}

impl Programs {
    /// The program that a line of arguments is for, and these arguments. `gct prepare` is run as what it
    /// starts, so that the memory and the death of that program are seen.
    fn split<'a>(&self, line: &'a str) -> (PathBuf, impl Iterator<Item = &'a str>) {
        let (name, rest) = match line.strip_prefix("prepare ") {
            Some(rest) => ("gct-prepare", rest),
            None => ("gct", line),
        };
        // One thread: calls of the system then come in the same order each time.
        (self.folder.join(name), rest.split_whitespace().chain(["--threads", "1"]))
    }

    /// A command line, to be run in a folder.
    pub(crate) fn command(&self, line: &str, home: &Path) -> Command {
        let (program, arguments) = self.split(line);
        let mut command = Command::new(program);
        command.args(arguments).current_dir(home);
        command
    }

    /// The same under `strace` with these options.
    pub(crate) fn traced(&self, options: &[&str], line: &str, home: &Path) -> Command {
        let (program, arguments) = self.split(line);
        let mut command = Command::new("strace");
        command.args(["-f", "-qqq"]).args(options).arg("--").arg(program).args(arguments);
        command.current_dir(home);
        command
    }

    /// Runs what must succeed.
    pub(crate) fn succeed(&self, line: &str, home: &Path) -> Result<Outcome> {
        let outcome = run(&mut self.command(line, home), TIME)?;
        ensure!(outcome.code == Some(0), "`gct {line}` failed: {}", outcome.stderr.trim_end());
        Ok(outcome)
    }
}

/// How a command ended, and what it printed.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) is_over_memory: bool,
    pub(crate) is_hung: bool,
}

/// Runs a command to its end, or to its bounds.
pub(crate) fn run(command: &mut Command, time: Duration) -> Result<Outcome> {
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    command.stdin(std::process::Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = command.process_group(0).spawn().with_context(|| format!("cannot run {command:?}"))?;
    let (group, start) = (-i64::from(child.id()), Instant::now());
    let (mut outcome, mut is_interrupted) = (Outcome::default(), false);
    let status = loop {
        // The kernel keeps the peak, so only that of the last milliseconds can be missed.
        outcome.is_over_memory |= peak_mb(child.id()).is_some_and(|peak| peak > MEMORY_MB);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        outcome.is_hung = start.elapsed() > time + GRACE;
        if outcome.is_hung || outcome.is_over_memory {
            signal("KILL", group)?;
            break child.wait()?;
        }
        if start.elapsed() > time && !is_interrupted {
            is_interrupted = true;
            signal("INT", group)?;
        }
        thread::sleep(Duration::from_millis(3));
    };
    (outcome.code, outcome.signal) = (status.code(), status.signal());
    (outcome.stdout, outcome.stderr) = (text(&mut stdout)?, text(&mut stderr)?);
    Ok(outcome)
}

fn peak_mb(process: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(field.trim().trim_end_matches(" kB").parse::<f64>().ok()? / 1024.0)
}

fn text(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
