//! Every file that is read, damaged: of datasets, runs, experiments and tunings, settings, source tables.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::checks::{self, Problem};
use super::mutations::{self, Instead};
use super::tree::Tree;
use super::{Case, Check, Round};

/// Damage can make a command work for long, which is no fault if it can be interrupted; what hangs cannot.
const TIME: Duration = Duration::from_secs(10);

/// A file, and who reads it: `xtask/corpus/files.toml` says what the fields are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Format {
    name: String,
    path: String,
    manifest: Option<String>,
    lines: Vec<String>,
}

#[derive(Deserialize)]
struct Formats {
    file: Vec<Format>,
}

/// First something else where every file was, then damage by chance.
pub(super) fn run(round: &Round<'_>, until: Instant) -> Result<()> {
    let formats = toml::from_str::<Formats>(include_str!("../../corpus/files.toml"))?.file;
    let cases = (0..1_000_000)
        .map(|number| Case::new(Check::Files, number, &formats[number % formats.len()].name, number));
    round.try_all(cases, until, |&number, home| {
        let (turn, format) = (number / formats.len(), &formats[number % formats.len()]);
        attempt(round, format, turn, number, home)
    })
}

/// Damages a file and runs whoever reads it.
fn attempt(
    round: &Round<'_>,
    format: &Format,
    turn: usize,
    number: usize,
    home: &Path,
) -> Result<Vec<Problem>> {
    let top = format.path.split('/').next().unwrap_or_default();
    round.world.copy(top, home)?;
    let file = resolve(home, &format.path)?;
    if let Some(instead) = Instead::ALL.get(turn) {
        instead.replace(&file)?;
    } else {
        let mut bytes = fs::read(&file)?;
        mutations::damage(&mut bytes, &mut mutations::random(round.arguments.seed, number));
        fs::write(&file, bytes)?;
        if let Some(manifest) = &format.manifest {
            match_hash(&home.join(manifest), &file)?;
        }
    }
    let mut problems = Vec::new();
    for line in &format.lines {
        let outcome = round.gct(line, home, TIME)?;
        problems.extend(checks::look(&outcome));
        if outcome.code != Some(0) {
            break;
        }
    }
    problems.extend(Tree::read(home)?.partial());
    Ok(problems)
}

/// The file that a path names, in which `*` stands for the rest of a name: the last such file.
pub(super) fn resolve(home: &Path, path: &str) -> Result<PathBuf> {
    let Some(prefix) = path.strip_suffix('*') else { return Ok(home.join(path)) };
    let (folder, start) = prefix.rsplit_once('/').unwrap_or(("", prefix));
    let mut names = Vec::new();
    for entry in fs::read_dir(home.join(folder))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let last = names.into_iter().filter(|name| name.starts_with(start)).max();
    Ok(home.join(folder).join(last.with_context(|| format!("there is no {path}"))?))
}

/// Writes size and SHA-256 of a file into the manifest that lists it.
fn match_hash(manifest: &Path, file: &Path) -> Result<()> {
    let mut value: Value = serde_json::from_slice(&fs::read(manifest)?)?;
    let bytes = fs::read(file)?;
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = manifest.parent().context("a manifest is in a folder")?;
    let name = file.strip_prefix(folder)?.to_string_lossy();
    value["files"][&*name] = json!({"bytes": bytes.len(), "sha256": sha256});
    Ok(fs::write(manifest, format!("{value:#}\n"))?)
}
