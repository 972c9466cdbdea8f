//! `gct experiment`: the tables of the paper, and one's own.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::Result;
use clap::{Args, Subcommand};
use gct::dataset::Dataset;
use gct::experiment::{self, Event, Experiment, Findings, Outcome, PlannedTrial, Share};
use gct::files::Overwrite;
use gct::infer::Which;
use gct::job::Job;
use gct::metric::SIGNIFICANT;
use gct::overrides::{assignment, merge};
use gct::report::Looked;
use gct::run::Run;
use indicatif::ProgressBar;
use serde_json::json;

use crate::explain::write;
use crate::terminal::{self, count, counted, refusal, score, visible};

/// Train every model of a table on every split, and put the metrics beside the paper's
///
/// The same command, run again or on several machines that share the folder, skips finished trials and
/// resumes the others.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  gct experiment experiments/masked-diagnosis.toml --out results
  gct experiment experiments/masked-diagnosis.toml --out results --shard 3/8    one of 8 jobs
  gct experiment table results                                                  the finished trials"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,

    /// What to train: a TOML file, such as those in `experiments/`
    #[arg(value_name = "FILE", required = true)]
    file: Option<PathBuf>,

    /// The folder for data, runs and tables; several experiments on the same data can share it
    #[arg(long, value_name = "DIR", required = true)]
    out: Option<PathBuf>,

    /// The dataset folder, instead of what the file says about data
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Run only one shard of the trials, such as 3/8, for a job array
    #[arg(long, value_name = "I/N", value_parser = share)]
    shard: Option<Share>,

    /// Trials at the same time [default: one per thread]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    side_by_side: Option<u16>,

    /// One setting of every trial, by the name that `gct train --show-config --task TASK` prints; may be
    /// repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Write tables of the finished trials
    Table {
        /// A folder that `gct experiment --out` made
        #[arg(value_name = "DIR")]
        folder: PathBuf,

        /// Print one JSON object instead of text
        #[arg(long)]
        json: bool,
    },
}

fn share(text: &str) -> Result<Share, String> {
    let parts = text.split_once('/').and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
    match parts {
        Some((number, of)) if (1..=of).contains(&number) => Ok(Share { number, of }),
        _ => Err("expected I/N with I from 1 to N, such as 3/8".into()),
    }
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    if let Some(Command::Table { folder, json }) = &arguments.command {
        let experiments = experiment::list(folder)?;
        return tables(&experiments, folder, None, *json);
    }
    let (Some(file), Some(out)) = (&arguments.file, &arguments.out) else {
        let hint = "gct experiment FILE.toml --out DIR runs one, gct experiment table DIR shows its tables";
        return Err(refusal("a file and --out are missing, or `table` and a folder", hint));
    };
    let mut set = toml::Table::new();
    for one in &arguments.set {
        let assignment = assignment(one)
            .map_err(|problem| refusal(format!("--set {one}: {problem}"), gct_terminal::SHOW_CONFIG))?;
        merge(&mut set, assignment);
    }
    let experiment = Experiment::read(file, set)?;
    let dataset = data(&experiment, arguments, out, quiet)?;
    let display = Display::new(quiet);
    let job = Job::new(terminal::stop(), |event| display.show(event));
    let share = arguments.shard.unwrap_or(Share::ALL);
    let outcome =
        experiment::run(&experiment, &dataset, out, share, arguments.side_by_side.map(usize::from), &job);
    display.finish();
    let outcome = outcome.map_err(terminal::resumable)?;
    tables(std::slice::from_ref(&experiment), out, Some(&outcome), arguments.json)?;
    page(&experiment, &dataset, out, quiet)?;
    match &outcome.failed[..] {
        [] => Ok(()),
        failed => Err(refusal(
            format!("{} failed: {}", counted(failed.len() as u64, "trial", "trials"), failed.join(", ")),
            "the lines above say why; the same command tries them again",
        )),
    }
}

fn data(experiment: &Experiment, arguments: &Arguments, out: &Path, quiet: bool) -> Result<Dataset> {
    let encounters =
        experiment.data.synthetic.as_ref().and_then(|table| table.get("encounters")?.as_integer());
    let total = encounters.and_then(|encounters| encounters.try_into().ok()).unwrap_or(50_000);
    let bar = terminal::progress(total, "drawing encounters", quiet);
    let job = terminal::drawing(&bar, "measuring the best that any model can do, a few seconds");
    let dataset = experiment.dataset(out, arguments.data.as_deref(), &job);
    bar.finish_and_clear();
    Ok(dataset?)
}

/// Writes a page that compares what was trained with the first split.
fn page(experiment: &Experiment, dataset: &Dataset, out: &Path, quiet: bool) -> Result<()> {
    let trials = experiment.trials(&dataset.manifest().source.kind)?;
    let is_first = |trial: &&PlannedTrial| Some(&trial.settings.split.seed) == experiment.split_seeds.first();
    let mut runs = Vec::new();
    for trial in trials.iter().filter(is_first) {
        // Others may be on another machine, or under way.
        let is_finished = trial.finished(out, &dataset.manifest().identity())?.is_some();
        if is_finished && trial.run_folder(out).exists() {
            runs.push((trial.name(), Run::open(&trial.run_folder(out))?.raw()));
        }
    }
    if runs.is_empty() {
        return Ok(());
    }
    let looked: Vec<Looked<'_>> = (runs.iter())
        .map(|(name, run)| Looked {
            name: name.clone(),
            run,
            dataset,
            test_set: Which::Part(experiment.judged_by()).into(),
        })
        .collect();
    let options = crate::report::by_product(dataset, 50);
    let html = crate::report::page(&looked, &options, None, quiet)?;
    Ok(write(&out.join(format!("{}.html", experiment.name)), &html, Overwrite::Replace)?)
}

/// Writes and prints the tables of experiments.
fn tables(experiments: &[Experiment], folder: &Path, outcome: Option<&Outcome>, as_json: bool) -> Result<()> {
    let mut all = Vec::new();
    for experiment in experiments {
        let findings = experiment::gather(experiment, folder)?;
        let files = experiment::write(experiment, &findings, folder)?;
        all.push((experiment, findings, files));
    }
    if as_json {
        let experiments: serde_json::Map<_, _> = (all.iter())
            .map(|(experiment, findings, files)| {
                let value = json!({
                    "title": experiment.title,
                    "trials": findings.trials,
                    "finished": findings.finished.len(),
                    "figures": findings.cells,
                    "files": files,
                });
                (experiment.name.clone(), value)
            })
            .collect();
        let mut report = json!({ "experiments": experiments });
        if let Some(outcome) = outcome {
            report["failed"] = json!(outcome.failed);
            report["elsewhere"] = json!(outcome.elsewhere);
        }
        return Ok(terminal::print_json(&report)?);
    }
    let mut text = String::new();
    for (experiment, findings, files) in &all {
        text += &format!("{}\n\n", visible(&experiment.title));
        text += &summary(experiment, findings);
        let files: Vec<String> = files.iter().map(|file| visible(file.display())).collect();
        text += &format!("\ntables: {}\n", files.join(", "));
    }
    if let Some(Outcome { elsewhere: others @ 1.., .. }) = outcome {
        let others = counted(*others as u64, "trial is", "trials are");
        text += &format!("{others} being trained by other processes\n");
    }
    Ok(terminal::print(&text)?)
}

/// The metrics of each task that models are judged by, ours beside the paper's.
fn summary(experiment: &Experiment, findings: &Findings) -> String {
    let judge = experiment.judged_by().name();
    let rows = findings.cells.iter().filter(|cell| cell.part == judge).map(|cell| {
        vec![
            format!("{} {}", cell.task, cell.metric),
            cell.model.clone(),
            cell.ours(),
            cell.papers(),
            cell.beside.map_or("-".into(), |beside| beside.to_string()),
            cell.splits.len().to_string(),
        ]
    });
    if experiment.tasks.is_empty() {
        let statistics = &findings.about.statistics;
        return format!("{} encounters counted\n", count(statistics.encounters));
    }
    let beside = experiment.reference().map_or("-".into(), |reference| format!("beside {reference}"));
    let header = [judge, "model", "ours", "paper", &beside, "splits"];
    let legend = experiment.reference().map_or(String::new(), |_| format!("* p < {SIGNIFICANT}\n"));
    format!(
        "{}{legend}{} of {} trials finished\n",
        terminal::table(&header, rows),
        findings.finished.len(),
        findings.trials
    )
}

/// One bar over the steps of all trials.
struct Display {
    quiet: bool,
    lines: bool,
    inside: Mutex<Inside>,
}

struct Inside {
    bar: ProgressBar,
    trials: Vec<PlannedTrial>,
    /// Steps of each trial.
    steps: Vec<u64>,
    /// Trials that have ended, of this sitting.
    ended: usize,
}

impl Display {
    fn new(quiet: bool) -> Self {
        let inside = Inside { bar: ProgressBar::hidden(), trials: Vec::new(), steps: Vec::new(), ended: 0 };
        Display { quiet, lines: !quiet && !io::stderr().is_terminal(), inside: Mutex::new(inside) }
    }

    fn show(&self, event: Event) {
        let mut inside = self.inside.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            Event::Planned { trials, finished, side_by_side } => {
                let total: u64 = trials.iter().map(|trial| trial.settings.last_step()).sum();
                let batch = trials.first().map_or(1, |trial| trial.settings.batch as u64);
                inside.bar = terminal::training(total, batch, self.quiet);
                inside.steps = vec![0; trials.len()];
                self.line(&format!(
                    "{} to run, {side_by_side} side by side; {finished} finished before",
                    counted(trials.len() as u64, "trial", "trials")
                ));
                inside.trials = trials;
            }
            Event::Step { trial, step } => {
                inside.steps[trial] = step;
                let done = inside.steps.iter().sum();
                inside.bar.set_position(done);
                inside.message();
            }
            Event::Finished { trial, found } => {
                let (name, best) = (inside.trials[trial].name(), found.best.map(|best| best.value));
                let metric = found.settings.task.chosen_by();
                let seconds = found.seconds;
                self.line(&format!("{name}: validation {metric} {}, {seconds:.0} s", score(best)));
                inside.end(trial);
            }
            Event::Elsewhere { trial } => {
                self.line(&format!("{}: another process trains it", inside.trials[trial].name()));
                inside.end(trial);
            }
            Event::Failed { trial, error } => {
                let text = format!("{} failed: {error}", inside.trials[trial].name());
                inside.bar.suspend(|| self.line_always(&text));
                inside.end(trial);
            }
        }
    }

    fn line(&self, text: &str) {
        if self.lines {
            self.line_always(text);
        }
    }

    fn line_always(&self, text: &str) {
        terminal::print_line(text);
    }

    fn finish(&self) {
        let inside = self.inside.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        inside.bar.finish_and_clear();
    }
}

impl Inside {
    fn end(&mut self, trial: usize) {
        self.ended += 1;
        self.steps[trial] = self.trials[trial].settings.last_step();
        self.bar.set_position(self.steps.iter().sum());
        self.message();
    }

    fn message(&self) {
        self.bar.set_message(format!("{} of {} trials", self.ended, self.trials.len()));
    }
}
