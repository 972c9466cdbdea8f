//! The page of `gct report` and `gct serve`, walked through in a real browser.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::serving::Serving;
use crate::{execute, root};

/// Where Debian puts its browser; `GCT_CHROMIUM` names another.
const CHROMIUM: &str = "/usr/bin/chromium";

/// Runs the tests on pages of their own, and on a report and a server of this program.
pub(crate) fn test(gct: &Path) -> Result<()> {
    let hint = "this needs node, npm and chromium; without them: cargo xtask test --no-browser";
    let chromium = std::env::var_os("GCT_CHROMIUM").map_or_else(|| PathBuf::from(CHROMIUM), PathBuf::from);
    anyhow::ensure!(chromium.exists(), "{} is not there; {hint}", chromium.display());
    let folder = root().join("reference/page");
    execute(Command::new("npm").args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(&folder))
        .context(hint)?;
    let home = tempfile::tempdir()?;
    let run = |line: &str| {
        let mut command = Command::new(gct);
        command.current_dir(home.path()).args(line.split_whitespace()).arg("--quiet");
        command
    };
    let train = "--data data --steps 60 --set batch=8 --set validate_every=20";
    execute(&mut run("synth --out data --encounters 600"))?;
    execute(&mut run(&format!("train --task graph_reconstruction --model gct --out gct {train}")))?;
    execute(&mut run(&format!("train --task graph_reconstruction --model shallow --out shallow {train}")))?;
    execute(&mut run("synth --out visits --encounters 600 --visits 3"))?;
    let train = "--data visits --steps 60 --set batch=8 --set validate_every=20 --history gru";
    execute(&mut run(&format!("train --task label:later --model gct --out later {train}")))?;
    execute(&mut run(&format!("train --task next_diagnoses --model gct --out next {train}")))?;
    execute(&mut run("report gct shallow later next --out report.html"))?;
    let serving = Serving::start(run("serve gct --listen 127.0.0.1:0").arg("--json"))?;
    let with_history = Serving::start(run("serve later --listen 127.0.0.1:0").arg("--json"))?;
    let mut tests = Command::new("node");
    tests.arg("--test").current_dir(&folder).env("GCT_CHROMIUM", chromium);
    tests.env("GCT_REPORT", home.path().join("report.html"));
    tests.env("GCT_SERVE", format!("http://{}/", serving.address));
    execute(tests.env("GCT_SERVE_HISTORY", format!("http://{}/", with_history.address)))
}
