//! Commands killed at their n-th call of the system that changes files, and run again.
//!
//! `strace` sends the signal when the call begins, so that it is not carried out. It counts by name of the
//! call and by thread: with `when=3` a command dies when any of its threads begins its third one. (With
//! `--seccomp-bpf`, which is faster, strace 6.1 sends no signals: so it only counts.)

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::checks::{self, Problem};
use super::program::{self, TIME};
use super::tree::{self, Tree};
use super::{Arguments, Case, Check, Round, is_of, side_by_side};

/// Calls that change files, those first whose order matters most.
const CALLS: &str = "rename renameat renameat2 link linkat rmdir unlink unlinkat mkdir mkdirat fsync fdatasync ftruncate \
                     copy_file_range pwrite64 write";

/// The most kills of a command at the same call, where its entry does not say otherwise.
const MOST_KILLS: u64 = 16;

/// A command to kill: `xtask/corpus/kills.toml` says what the fields are.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Victim {
    name: String,
    before: Option<String>,
    line: String,
    again: Option<String>,
    most_kills: Option<u64>,
    #[serde(default)]
    whole: Vec<String>,
}

#[derive(Deserialize)]
struct Victims {
    command: Vec<Victim>,
}

/// A command that was watched without being disturbed.
struct Watched<'a> {
    victim: &'a Victim,
    template: PathBuf,
    before: Tree,
    after: Tree,
    /// The most calls of one thread, by name.
    calls: BTreeMap<String, u64>,
}

/// Kills the commands, which take turns, at every call in its turn.
pub(super) fn run(round: &Round<'_>, until: Instant) -> Result<()> {
    if let Err(problem) = can_kill() {
        round.note(&format!("no command was killed: {problem:#}"));
        return Ok(());
    }
    let victims = toml::from_str::<Victims>(include_str!("../../corpus/kills.toml"))?.command;
    let Arguments { command, case, .. } = round.arguments;
    let wanted = victims.iter().filter(|Victim { name, .. }| {
        command.as_ref().is_none_or(|command| is_of(name, command))
            && case.as_ref().is_none_or(|case| case.starts_with(&format!("{name}:")))
    });
    let watched = side_by_side(wanted, |victim| watch(round, victim))?;
    let mut kills: Vec<_> = watched.iter().flat_map(kills_of).collect();
    kills.sort_by_key(|(turn, watched, ..)| (*turn, &watched.victim.name));
    let cases = kills.into_iter().map(|(_, watched, call, number)| {
        let name = &watched.victim.name;
        Case::new(Check::Kills, format!("{name}:{call}:{number}"), name, (watched, call, number))
    });
    let missed = AtomicUsize::new(0);
    round.try_all(cases, until, |(watched, call, number), home| {
        attempt(round, watched, call, *number, home, &missed)
    })?;
    if missed.load(Relaxed) > 0 {
        round.note(&format!("{} commands ended before they were killed", missed.load(Relaxed)));
    }
    Ok(())
}

/// Whether strace is there and can kill.
fn can_kill() -> Result<()> {
    let options = ["-f", "-qqq", "-o", "/dev/null", "-e", "inject=write:signal=KILL:when=1", "echo"];
    let output = Command::new("strace").args(options).stdin(Stdio::null()).output();
    let output = output.context("strace is not installed")?;
    let message = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.signal() == Some(9), "strace may not trace: {}", message.trim_end());
    Ok(())
}

/// Runs a command to its end, and counts its calls.
fn watch<'a>(round: &Round<'_>, victim: &'a Victim) -> Result<Watched<'a>> {
    let home = round.folder.join(format!("undisturbed-{}", victim.name.replace(' ', "")));
    let (template, undisturbed, trace) = (home.join("before"), home.join("after"), home.join("trace.txt"));
    fs::create_dir_all(&template)?;
    if let Some(line) = &victim.before {
        round.programs.succeed(&round.world.line(line), &template)?;
    }
    tree::copy(&template, &undisturbed)?;
    let options = [
        "--seccomp-bpf",
        "-o",
        &*trace.to_string_lossy(),
        "-e",
        &format!("trace={}", CALLS.replace(' ', ",")),
    ];
    let line = round.world.line(&victim.line);
    let outcome = program::run(&mut round.programs.traced(&options, &line, &undisturbed), TIME)?;
    ensure!(outcome.code == Some(0), "`{line}` failed: {}", outcome.stderr.trim_end());
    let (before, after) = (Tree::read(&template)?, Tree::read(&undisturbed)?);
    Ok(Watched { victim, template, before, after, calls: count(&fs::read_to_string(&trace)?) })
}

/// The most calls of one thread, by name: a line of the trace begins with the thread, then comes the call.
fn count(trace: &str) -> BTreeMap<String, u64> {
    let mut by_thread: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((call, _)) = rest.trim_start().split_once('(') else { continue };
        *by_thread.entry((thread, call)).or_default() += 1;
    }
    let mut most: BTreeMap<String, u64> = BTreeMap::new();
    for ((_, call), number) in by_thread {
        let entry = most.entry(call.to_owned()).or_default();
        *entry = number.max(*entry);
    }
    most
}

/// All kills of a command: its turn, the call and its number.
fn kills_of<'a>(watched: &'a Watched<'a>) -> Vec<(usize, &'a Watched<'a>, &'static str, u64)> {
    let at_most = watched.victim.most_kills.unwrap_or(MOST_KILLS);
    let calls = CALLS.split(' ').filter_map(|call| Some((call, *watched.calls.get(call)?)));
    let kills = calls.flat_map(|(call, most)| kill_numbers(most, at_most).map(move |number| (call, number)));
    kills.enumerate().map(|(turn, (call, number))| (turn, watched, call, number)).collect()
}

/// Numbers of calls to kill at: all, or evenly spread ones with the first and the last.
fn kill_numbers(most: u64, at_most: u64) -> impl Iterator<Item = u64> {
    let count = most.min(at_most);
    (0..count).map(move |index| 1 + index * (most - 1) / (count - 1).max(1))
}

/// Kills a command, looks at what is there, goes on, and compares with what an undisturbed one leaves.
fn attempt(
    round: &Round<'_>,
    watched: &Watched<'_>,
    call: &str,
    number: u64,
    home: &Path,
    missed: &AtomicUsize,
) -> Result<Vec<Problem>> {
    let victim = watched.victim;
    tree::copy(&watched.template, home)?;
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:signal=KILL:when={number}"));
    let options = ["-o", "/dev/null", "-e", &trace, "-e", &inject];
    let killed =
        program::run(&mut round.programs.traced(&options, &round.world.line(&victim.line), home), TIME)?;
    missed.fetch_add(usize::from(killed.signal != Some(9)), Relaxed);
    let mut problems = just_killed(watched, &Tree::read(home)?);

    let outcome = round.gct(victim.again.as_ref().unwrap_or(&victim.line), home, TIME)?;
    let found = Tree::read(home)?;
    // Finished before the kill, it is refused because it is there.
    let is_there = victim.whole.iter().all(|path| found.at(path) == watched.after.at(path));
    let is_refused = outcome.code == Some(2) && !victim.whole.is_empty() && is_there;
    if outcome.code != Some(0) && !is_refused {
        problems.push(Problem::new("cannot be run again", outcome.stderr.trim_end()));
    }
    problems.extend(checks::look(&outcome));
    problems.extend(found.differences(&watched.after));
    Ok(problems)
}

/// What is wrong when a command was killed, before anybody goes on.
fn just_killed(watched: &Watched<'_>, found: &Tree) -> Vec<Problem> {
    let names: Vec<&str> = found.top().collect();
    let vanished = watched.before.top().filter(|name| !names.contains(name));
    let mut problems: Vec<Problem> =
        vanished.map(|name| Problem::new("what was there before has vanished", name)).collect();
    for path in &watched.victim.whole {
        let (now, before, after) = (found.at(path), watched.before.at(path), watched.after.at(path));
        if now != before && now != after && problems.is_empty() {
            problems.push(Problem::new("an output is there in part", path));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_by_thread() {
        let trace = "7 rename(\"a\", \"b\") = 0\n8 rename(\"c\", \"d\" <unfinished ...>\n7 write(1, \"x\", 1) = 1\n\
                     8 <... rename resumed>) = 0\n7 rename(\"e\", \"f\") = 0\n7 +++ exited with 0 +++\n";
        assert_eq!(count(trace), BTreeMap::from([("rename".to_owned(), 2), ("write".to_owned(), 1)]));
    }

    #[test]
    fn few_calls_are_all_places_and_many_are_spread() {
        assert_eq!(kill_numbers(1, 16).collect::<Vec<_>>(), [1]);
        assert_eq!(kill_numbers(3, 16).collect::<Vec<_>>(), [1, 2, 3]);
        let many: Vec<u64> = kill_numbers(1000, 16).collect();
        assert_eq!((many.len() as u64, many[0], many[many.len() - 1]), (16, 1, 1000));
    }
}
