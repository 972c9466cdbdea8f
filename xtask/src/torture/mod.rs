//! `cargo xtask torture`: kills every command that writes, damages every file that is read, sends odd
//! requests, and lists what came of it. A case is decided by the seed and its name, so whatever is found can
//! be repeated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};

use self::checks::Problem;
use self::corpus::World;
use self::program::{Outcome, Programs};
use self::report::Report;
use crate::{cargo, execute, target};

mod checks;
mod corpus;
mod files;
mod http;
mod kills;
mod mutations;
mod program;
mod report;
mod rules;
mod tree;

#[derive(Args)]
#[command(after_help = "Examples:
  cargo xtask torture
  cargo xtask torture kills --command train --minutes 30
  cargo xtask torture files --seed 7 --json
  cargo xtask torture files --seed 7 --case 1234       once more what was found")]
pub(crate) struct Arguments {
    /// What to do [default: all of it]
    #[arg(value_enum, value_name = "PART")]
    parts: Vec<Check>,

    /// How long it may take
    #[arg(long, value_name = "N", default_value_t = 10.0)]
    minutes: f64,

    /// Another seed gives other damage
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Only this command or file, as the table names it: train means `train --resume` too
    #[arg(long, value_name = "NAME")]
    command: Option<String>,

    /// Only this case
    #[arg(long, value_name = "CASE")]
    case: Option<String>,

    /// The folder of gct and gct-prepare [default: both are built, as for tests]
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,

    /// Where to work, and to keep what was found [default: torture, among the build results]
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Check {
    /// What must be refused, and what must not be printed: a list
    Rules,
    /// Requests to a server, whole and damaged
    Http,
    /// Commands killed at their n-th call of the system that writes
    Kills,
    /// Files that are damaged, or something else than files
    Files,
}

impl Check {
    /// Its share of the time, beside the others'.
    fn weight(self) -> f64 {
        match self {
            Check::Rules | Check::Http => 1.0,
            Check::Kills => 5.0,
            Check::Files => 3.0,
        }
    }

    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// Something to try.
struct Case<T> {
    part: Check,
    /// By which it can be tried again.
    name: String,
    /// What it is tried on: a row of the table.
    subject: String,
    what: T,
}

impl<T> Case<T> {
    fn new(part: Check, name: impl ToString, subject: &str, what: T) -> Self {
        Case { part, name: name.to_string(), subject: subject.to_owned(), what }
    }
}

/// One call of this chore.
struct Round<'a> {
    arguments: &'a Arguments,
    programs: Programs,
    world: World,
    folder: PathBuf,
    report: Mutex<Report>,
}

/// Part of the tests: a minute and a half, with programs that are built.
pub(crate) fn short_round(binaries: &Path) -> Result<()> {
    let mut chore = Command::new(std::env::current_exe()?);
    execute(chore.args(["torture", "--minutes", "1.5", "--binaries"]).arg(binaries))
}

/// Whether nothing was found.
pub(crate) fn run(arguments: &Arguments) -> Result<bool> {
    let end = Instant::now() + Duration::from_secs_f64(60.0 * arguments.minutes);
    let programs = match &arguments.binaries {
        Some(folder) => {
            fs::canonicalize(folder).with_context(|| format!("no folder {}", folder.display()))?
        }
        None => {
            execute(cargo().args(["test", "--workspace", "--no-run", "--locked", "--quiet"]))?;
            target().join("debug")
        }
    };
    let programs = Programs { folder: programs };
    let folder = arguments.folder.clone().unwrap_or_else(|| target().join("torture"));
    if folder.exists() {
        ensure!(folder.join("world").exists(), "{} holds something else: name another", folder.display());
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(folder.join("world"))?;
    let folder = fs::canonicalize(&folder)?;
    let world = World::build(&programs, &folder.join("world"))?;
    let report = Mutex::new(Report::new(arguments.seed, arguments.binaries.as_deref()));
    let round = Round { arguments, programs, world, folder, report };
    let is_chosen = |part: &Check| arguments.parts.is_empty() || arguments.parts.contains(part);
    let parts: Vec<Check> = Check::value_variants().iter().copied().filter(is_chosen).collect();
    for (index, &part) in parts.iter().enumerate() {
        let weights: f64 = parts[index..].iter().map(|part| part.weight()).sum();
        let left = end.saturating_duration_since(Instant::now());
        round.run(part, Instant::now() + left.mul_f64(part.weight() / weights))?;
    }
    let report = round.report.into_inner().expect("no thread panicked");
    report.print(arguments.json);
    Ok(report.is_clean())
}

impl Round<'_> {
    fn run(&self, part: Check, until: Instant) -> Result<()> {
        match part {
            Check::Rules => rules::run(self, until),
            Check::Http => http::run(self, until),
            Check::Kills => kills::run(self, until),
            Check::Files => files::run(self, until),
        }
    }

    /// Runs a line of arguments in a folder.
    fn gct(&self, line: &str, home: &Path, time: Duration) -> Result<Outcome> {
        program::run(&mut self.programs.command(&self.world.line(line), home), time)
    }

    /// Whether a case is one of those that were chosen.
    fn wants<T>(&self, case: &Case<T>) -> bool {
        self.arguments.command.as_ref().is_none_or(|command| is_of(&case.subject, command))
            && self.arguments.case.as_ref().is_none_or(|name| *name == case.name)
    }

    /// Tries one case after the other, each in a folder of its own, on all cores, until time is up.
    fn try_all<T: Send>(
        &self,
        cases: impl Iterator<Item = Case<T>> + Send,
        until: Instant,
        attempt: impl Fn(&T, &Path) -> Result<Vec<Problem>> + Sync,
    ) -> Result<()> {
        let most = if self.arguments.case.is_some() { 1 } else { usize::MAX };
        let cases = cases.filter(|case| self.wants(case)).take(most).take_while(|_| Instant::now() < until);
        side_by_side(cases, |case| {
            let name = format!("{}-{}", case.part.name(), case.name.replace([' ', ':', '/'], "-"));
            let home = self.folder.join(&name);
            fs::create_dir_all(&home)?;
            let problems = attempt(&case.what, &home).context(name)?;
            if problems.is_empty() {
                fs::remove_dir_all(&home)?;
            }
            self.report.lock().expect("no thread panicked").add(&case, problems, &home);
            Ok(())
        })?;
        Ok(())
    }

    /// Says that something was left out.
    fn note(&self, note: &str) {
        self.report.lock().expect("no thread panicked").note(note);
    }
}

/// Whether the name of a command with options is that of the command.
fn is_of(name: &str, command: &str) -> bool {
    name.strip_prefix(command).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Works on all items, on all cores. Results come in any order.
fn side_by_side<I: Send, O: Send>(
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I) -> Result<O> + Sync,
) -> Result<Vec<O>> {
    let items = Mutex::new(items);
    let next = || items.lock().expect("no thread panicked").next();
    let one_thread = || std::iter::from_fn(next).map(&work).collect::<Result<Vec<O>>>();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(one_thread)).collect();
        let results = workers.into_iter().map(|worker| worker.join().expect("no thread panics"));
        Ok(results.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    })
}
