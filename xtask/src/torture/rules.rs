//! What must be refused, and what must not be printed: rules that chance would hardly try.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::checks::{self, Problem};
use super::program::TIME;
use super::tree;
use super::{Case, Check, Round, files};

/// Tries a rule in an empty folder.
type Rule = fn(&Round<'_>, &Path) -> Result<Vec<Problem>>;

const RULES: &[(&str, Rule)] = &[
    ("weights of another run", |round, home| {
        round.world.copy("run", home)?;
        fs::copy(round.world.path("other/best.safetensors"), home.join("run/best.safetensors"))?;
        refused(round, "evaluate run --bootstrap 2", home)
    }),
    ("checkpoint of another run", |round, home| {
        ["run", "other"].into_iter().try_for_each(|run| round.world.copy(run, home))?;
        let [own, other] =
            ["run/checkpoint-*", "other/checkpoint-*"].map(|pattern| files::resolve(home, pattern));
        fs::copy(other?, own?)?;
        refused(round, "train --out run --resume --steps 18", home)
    }),
    ("checkpoint renamed", |round, home| {
        round.world.copy("run", home)?;
        let last = files::resolve(home, "run/checkpoint-*")?;
        let name = last.file_name().context("a checkpoint has a name")?.to_string_lossy().replace("12", "15");
        fs::rename(&last, last.with_file_name(name))?;
        refused(round, "train --out run --resume --steps 18", home)
    }),
    ("split.seed edited", |round, home| edited(round, home, "run", "[split]", "seed = 0", "seed = 1")),
    ("prior.scalar edited", |round, home| {
        edited(round, home, "run", "[prior]", "scalar = ", "scalar = 0.25 # ")
    }),
    ("task edited", |round, home| edited(round, home, "labelled", "", "label:died", "label:again")),
    ("escapes in codes", escapes),
    ("index of pandas in labels", |round, home| {
        let labels = fs::read_to_string(round.world.path("labels.csv"))?;
        let mut lines = labels.lines();
        let header = format!(",{}\n", lines.next().unwrap_or_default());
        let rows = lines.enumerate().map(|(index, line)| format!("{index},{line}\n"));
        fs::write(home.join("labels.csv"), header + &rows.collect::<String>())?;
        index_of_pandas(round, home)
    }),
    ("identifiers in runs and pages", |round, home| {
        let report = "report WORLD/run --bootstrap 2 --out report.html";
        let outcome = round.gct(report, home, TIME)?;
        let mut problems = checks::look(&outcome);
        for folder in
            [home, &round.world.path("run"), &round.world.path("tuned"), &round.world.path("labelled")]
        {
            tree::walk(folder, &mut |path, bytes| {
                problems.extend(bytes.and_then(|bytes| checks::identifier_in(path, &bytes)));
            })?;
        }
        Ok(problems)
    }),
];

pub(super) fn run(round: &Round<'_>, until: Instant) -> Result<()> {
    let cases = RULES.iter().map(|(name, rule)| Case::new(Check::Rules, name, name, rule));
    round.try_all(cases, until, |rule, home| rule(round, home))
}

/// A command that must not succeed.
fn refused(round: &Round<'_>, line: &str, home: &Path) -> Result<Vec<Problem>> {
    let outcome = round.gct(line, home, TIME)?;
    let mut problems = checks::look(&outcome);
    if outcome.code == Some(0) {
        problems.push(Problem::new("is accepted", line));
    }
    Ok(problems)
}

/// A run whose settings were edited after a line of its file.
fn edited(
    round: &Round<'_>,
    home: &Path,
    run: &str,
    after: &str,
    old: &str,
    new: &str,
) -> Result<Vec<Problem>> {
    round.world.copy(run, home)?;
    let path = home.join(run).join("config.toml");
    let text = fs::read_to_string(&path)?;
    let (before, rest) = text.split_at(text.find(after).with_context(|| format!("no {after}"))?);
    ensure!(rest.contains(old), "{} has no `{old}` after `{after}`", path.display());
    fs::write(&path, before.to_owned() + &rest.replacen(old, new, 1))?;
    refused(round, &format!("evaluate {run} --bootstrap 2"), home)
}

/// Codes that a terminal would obey. They can be refused; printed raw they must not be.
fn escapes(round: &Round<'_>, home: &Path) -> Result<Vec<Problem>> {
    let events = fs::read_to_string(round.world.path("tables/events.csv"))?;
    let codes = [(",D", ",\u{1b}[31mD"), (",T", ",\u{9b}31mT"), (",L", ",\u{1b}]0;owned\u{7}L")];
    let events = codes.into_iter().fold(events, |events, (plain, escape)| events.replace(plain, escape));
    fs::write(home.join("events.csv"), events)?;
    let labels = fs::read_to_string(round.world.path("labels.csv"))?;
    fs::write(home.join("labels.csv"), labels.replacen("died", "\u{1b}[31mdied", 1))?;
    let mut problems = Vec::new();
    for line in [
        "prepare events events.csv --labels labels.csv --out data",
        "inspect data",
        "inspect data --leaks \u{1b}[31mdied",
        "train --data data --task masked_diagnosis --out run --steps 6 SMALL",
        "explain run",
        "explain run --json",
        "links run --min-support 1 --out links.csv",
        "evaluate run --bootstrap 2",
        "explain run --bars bars.svg --code \u{1b}[31m",
    ] {
        let outcome = round.gct(line, home, TIME)?;
        problems.extend(checks::look(&outcome));
        if outcome.code != Some(0) {
            break;
        }
    }
    Ok(problems)
}

/// A column without a name that counts rows is no label.
fn index_of_pandas(round: &Round<'_>, home: &Path) -> Result<Vec<Problem>> {
    let line = "prepare events WORLD/tables --labels labels.csv --out out";
    let outcome = round.gct(line, home, TIME)?;
    let mut problems = checks::look(&outcome);
    let manifest = fs::read_to_string(home.join("out/dataset.json")).unwrap_or_default();
    let labels = serde_json::from_str::<serde_json::Value>(&manifest).unwrap_or_default()["labels"].clone();
    if outcome.code == Some(0) && labels != serde_json::json!(["died", "again"]) {
        problems.push(Problem::new("the index became a label", labels.to_string()));
    }
    Ok(problems)
}
