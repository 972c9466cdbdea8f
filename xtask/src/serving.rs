//! `gct serve` as a process of its own, for tests and benchmarks.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};

/// A run that is being served.
pub(crate) struct Serving {
    child: Child,
    /// Where it listens: an address and a port.
    pub(crate) address: String,
}

impl Serving {
    /// Starts it, and waits until it says where it listens.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot run {command:?}"))?;
        let mut lines = BufReader::new(child.stdout.take().context("it has no output")?).lines();
        let address = lines.find_map(|line| {
            let line = line.ok()?;
            Some(line.split_once("http://")?.1.trim_end_matches(['"', '}']).to_owned())
        });
        match address {
            Some(address) => Ok(Serving { child, address }),
            None => bail!("{command:?} did not say where it listens"),
        }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, and waits until it has; what it was answering has more than its time for that.
    pub(crate) fn terminate(mut self) -> Result<ExitStatus> {
        signal("TERM", self.child.id().into())?;
        // One that was halted goes on.
        signal("CONT", self.child.id().into())?;
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(40) {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        bail!("the server did not end")
    }

    /// The memory that it has now.
    pub(crate) fn resident_mb(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let field = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(field.trim().trim_end_matches(" kB").parse::<f64>()? / 1024.0)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process or, if the number is negative, to a group of them. One that has ended takes
/// none.
pub(crate) fn signal(name: &str, process: i64) -> Result<()> {
    let mut kill = Command::new("kill");
    kill.args(["-s", name, "--", &process.to_string()])
        .stderr(Stdio::null())
        .status()
        .context("cannot run kill")?;
    Ok(())
}
