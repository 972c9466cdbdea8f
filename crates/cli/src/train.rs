//! `gct train`: a model from a dataset.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use clap::Args;
use gct::dataset::Dataset;
use gct::files::Overwrite;
use gct::history::Aggregator;
use gct::job::Job;
use gct::model::Config;
use gct::question::Question;
use gct::record::{CodeKind, PerKind};
use gct::run::{Entry, InitEntry, Run, Settings};
use gct::train::{self, Event, Execution, HistoryCounts, Outcome};
use indicatif::ProgressBar;
use serde_json::json;

use crate::settings::{self, SettingsArguments, task_of};
use crate::terminal::{self, count, counted, refusal, score, visible};

/// Train a model on a task, by default with the paper's hyperparameters
///
/// Ctrl-C writes a checkpoint and stops; --resume continues from the last one, and ends with the same weights
/// as a training that was never stopped.
#[derive(Args)]
#[command(after_help = "Examples:
  gct train --data synthetic --task graph_reconstruction --model gct --out runs/gct
  gct train --data synthetic --task label:d1_m1 --model transformer --out runs/t --steps 5000 --set learning_rate=0.001
  gct train --data hospital --task readmission --model logistic --out runs/l   a baseline, in seconds
  gct train --data hospital --task masked_diagnosis --model explainer --out runs/e   which diagnosis led to what
  gct train --data hospital --task labels:readmission,mortality --set class_weight=balanced --out runs/two
  gct train --data hospital --task readmission --history gru --out runs/h   with earlier visits
  gct train --data hospital --task next_diagnoses --history gru --out runs/n   diagnoses of the next visit
  gct train --data small --task readmission --prior large.parquet --out runs/p   P of a larger dataset
  gct train --data hospital --task masked_code --out runs/pretrained
  gct train --data hospital --task readmission --init runs/pretrained --out runs/r   from its weights
  gct train --out runs/gct --resume                 after a crash, a kill or Ctrl-C
  gct train --out runs/gct --resume --steps 40000   for more steps than before
  gct train --show-config                           the paper's hyperparameters
  gct train --show-config --task masked_diagnosis --model gct

Tasks: graph_reconstruction, diagnosis_treatment, masked_diagnosis, readmission, mortality, masked_code,
  next_diagnoses, next_diagnoses:new, label:NAME, labels:NAME,NAME
Models: gct, transformer, gcn, gcn_p, gcn_random, shallow, deep, mime, logistic")]
pub(crate) struct Arguments {
    /// The dataset folder
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// What to learn
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// Which model [default: gct]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// The run folder to make
    #[arg(long, value_name = "RUN", required_unless_present = "show_config")]
    out: Option<PathBuf>,

    /// See earlier encounters of the subject too, made one vector by none, bag, gru, cnn or attention; gru if
    /// nothing is named
    #[arg(long, value_name = "AGGREGATOR", num_args = 0..=1, default_missing_value = "gru")]
    history: Option<String>,

    /// Training steps, of one batch each [default: 20000]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,

    /// Seed of the initial weights and of the order of encounters [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,

    /// Seed of the split [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    split_seed: Option<u64>,

    /// A table of conditional probabilities that P is made of, as `gct prior --out` writes it [default: those
    /// of the training split]
    #[arg(long, value_name = "FILE")]
    prior: Option<PathBuf>,

    /// A finished run of the same model and width whose weights to begin with; codes are recognised by their
    /// names
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    init: Option<PathBuf>,

    /// Resume the run if it exists
    #[arg(long, conflicts_with = "show_config")]
    resume: bool,

    #[command(flatten)]
    settings: SettingsArguments,

    /// Replace the folder if it is a run
    #[arg(long, conflicts_with = "resume")]
    force: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let Some(out) = arguments.out.as_deref().filter(|_| !arguments.settings.show_config) else {
        return show_config(arguments);
    };
    let mut display = Display::new(quiet);
    let outcome = match arguments.resume && out.exists() {
        true => resume(arguments, out, &mut display),
        false => start(arguments, out, &mut display),
    };
    display.finish();
    let outcome = outcome?;
    let run = Run::open(out)?;
    let settings = run.settings().clone();
    if arguments.json {
        return Ok(terminal::print_json(&json!({
            "run": out,
            "task": settings.task.to_string(),
            "model": settings.model.name(),
            "init": run.manifest().init,
            "steps": outcome.step,
            "ended_early": outcome.early,
            "metric": settings.task.chosen_by(),
            "best": outcome.best,
            "c": outcome.best.and_then(|best| settings.c(best.step)),
            "seconds": outcome.seconds,
        }))?);
    }
    Ok(terminal::print(&report(out, &settings, &outcome))?)
}

fn report(out: &Path, settings: &Settings, outcome: &Outcome) -> String {
    let early = if outcome.early { ", early because validation did not improve" } else { "" };
    let best = match outcome.best {
        Some(best) => {
            let metric = settings.task.chosen_by();
            let c = settings.c(best.step).map_or(String::new(), |c| format!(" (C {c})"));
            format!("best validation {metric} {:.4}, at step {}{c}", best.value, count(best.step))
        }
        None => format!("validation {} was never defined", settings.task.chosen_by()),
    };
    let out = visible(out.display());
    format!(
        "{out}: {} of {} on {} in {:.0} s{early}\n{best}\nnext: gct evaluate {out}\n",
        counted(outcome.step, "step", "steps"),
        settings.model.name(),
        visible(&settings.task),
        outcome.seconds
    )
}

fn start(arguments: &Arguments, out: &Path, display: &mut Display) -> Result<Outcome> {
    let Some(data) = &arguments.data else {
        return Err(refusal("--data is missing", "give the dataset folder to train on: --data DIR"));
    };
    let dataset = Dataset::open(data)?;
    let settings = settings(arguments, Some(&dataset))?;
    let overwrite = if arguments.force { Overwrite::Replace } else { Overwrite::Refuse };
    display.begin(&dataset, &settings);
    let display = Mutex::new(display);
    Ok(train::start(settings, &dataset, out, overwrite, Execution::default(), &job(&display))?)
}

fn resume(arguments: &Arguments, out: &Path, display: &mut Display) -> Result<Outcome> {
    let run = Run::open(out)?;
    let dataset = arguments.data.as_deref().map_or_else(|| run.dataset(), Dataset::open)?;
    let steps = check_same(arguments, &run, &dataset)?;
    display.begin(&dataset, run.settings());
    let display = Mutex::new(display);
    Ok(train::resume(out, &dataset, Some(steps), Execution::default(), &job(&display))?)
}

/// A training that is shown, until the user stops it.
fn job<'a>(display: &'a Mutex<&mut Display>) -> Job<'a, Event> {
    let show = |event| display.lock().unwrap_or_else(PoisonError::into_inner).show(&event);
    Job::new(terminal::stop(), show)
}

/// Refuses to resume with other settings than the run began with. Steps may change, and are returned.
fn check_same(arguments: &Arguments, run: &Run, dataset: &Dataset) -> Result<u64> {
    let there = run.settings();
    let mut given = settings_on(arguments, there, dataset)?;
    given.seed = arguments.seed.unwrap_or(given.seed);
    given.split.seed = arguments.split_seed.unwrap_or(given.split.seed);
    given.prior.file = arguments.prior.clone().or(given.prior.file);
    given.history.aggregator = aggregator(arguments)?.unwrap_or(given.history.aggregator);
    let steps = arguments.steps.unwrap_or(given.steps);
    given.steps = there.steps;
    match gct::overrides::difference(&given, there) {
        None => Ok(steps),
        Some(problem) => {
            let problem = problem.to_string();
            Err(gct::Error::RunMismatch { path: run.path().to_owned(), problem }.into())
        }
    }
}

/// The settings of a run with what is given on top of them.
fn settings_on(arguments: &Arguments, there: &Settings, dataset: &Dataset) -> Result<Settings> {
    let mut base = there.clone();
    if let Some(task) = &arguments.task {
        base.task = task_of(task, Some(dataset))?;
    }
    let model = arguments.model.as_deref().map(Config::canonical).transpose()?;
    if let Some(model) = model.filter(|model| *model != there.model.name()) {
        base.model = Config::named(model)?;
    }
    settings::apply_to_training(&arguments.settings, &base, dataset)
}

/// The paper's settings with what is given on top of them.
fn settings(arguments: &Arguments, dataset: Option<&Dataset>) -> Result<Settings> {
    let (task, model) = (arguments.task.as_deref(), arguments.model.as_deref());
    let mut settings = settings::training(&arguments.settings, task, model, dataset)?;
    settings.steps = arguments.steps.unwrap_or(settings.steps);
    settings.seed = arguments.seed.unwrap_or(settings.seed);
    settings.split.seed = arguments.split_seed.unwrap_or(settings.split.seed);
    settings.prior.file = arguments.prior.clone().or(settings.prior.file);
    settings.init = arguments.init.clone().or(settings.init);
    settings.history.aggregator = aggregator(arguments)?.unwrap_or(settings.history.aggregator);
    settings.check()?;
    Ok(settings)
}

/// The aggregator that a flag names.
fn aggregator(arguments: &Arguments) -> gct::Result<Option<Aggregator>> {
    arguments.history.as_deref().map(Aggregator::named).transpose()
}

/// Whether one training is meant: there is a task, or something that makes no sense without one.
fn is_of_one(arguments: &Arguments) -> bool {
    let Arguments { task, model, steps, seed, split_seed, prior, init, history, settings, .. } = arguments;
    let numbers = [steps, seed, split_seed].iter().any(|number| number.is_some());
    task.is_some()
        || model.is_some()
        || prior.is_some()
        || init.is_some()
        || history.is_some()
        || numbers
        || settings.is_given()
}

/// All settings of one training, or, without a task, the paper's table.
fn show_config(arguments: &Arguments) -> Result<()> {
    let dataset = arguments.data.as_deref().map(Dataset::open).transpose()?;
    if is_of_one(arguments) {
        return Ok(terminal::print(&toml::to_string(&settings(arguments, dataset.as_ref())?)?)?);
    }
    let source =
        dataset.as_ref().map_or(gct::synth::SOURCE, |dataset| dataset.manifest().source.kind.as_str());
    let mut rows = Vec::new();
    for task in Question::NAMES {
        for model in Config::NAMES {
            let settings = Settings::paper(task.parse()?, model, source)?;
            if settings.check().is_err()
                || matches!(settings.model, Config::Logistic(_) | Config::Explainer(_))
            {
                continue;
            }
            let model_settings = toml::Table::try_from(&settings.model)?;
            let [first, second] = match model_settings.get("dropout") {
                Some(toml::Value::Table(both)) => [both.get("mlp"), both.get("post_mlp")],
                one => [one, model_settings.get("post_dropout")],
            };
            let text = |value: Option<&toml::Value>| value.map_or("-".into(), ToString::to_string);
            rows.push(vec![
                task.into(),
                model.into(),
                settings.learning_rate.to_string(),
                text(first),
                text(second),
                text(model_settings.get("regularization")),
            ]);
        }
    }
    let header = ["task", "model", "learning rate", "MLP dropout", "post-MLP dropout", "regularization"];
    let note = "The paper has no hyperparameters for gcn on readmission and mortality (those of gcn_p are \
                used) and for mime (shallow's).\n\
                All settings of one of them: gct train --show-config --task TASK --model MODEL\n";
    Ok(terminal::print(&(terminal::table(&header, rows) + note))?)
}

/// What training sees of earlier encounters, in words.
fn history_line(HistoryCounts { seen, cut }: HistoryCounts, encounters: usize) -> String {
    let mean = seen as f64 / encounters.max(1) as f64;
    let cut = match cut {
        0 => String::new(),
        cut => format!("; of {} only the latest (history.visits)", count(cut)),
    };
    format!("each sees {mean:.2} earlier encounters in the mean{cut}")
}

/// What a training began with, in words: the run, the codes that it knows, and the parameters that it lacks.
fn began_lines(init: &InitEntry, codes: PerKind<u64>) -> Vec<String> {
    let of_kind = |kind: CodeKind| {
        let (known, all) = (init.known[kind], codes[kind]);
        let new = if known < all { format!(", {} new", count(all - known)) } else { String::new() };
        let plural = match kind {
            CodeKind::Context => "names of context",
            CodeKind::Diagnosis => "diagnoses",
            CodeKind::Treatment => "treatments",
            CodeKind::Lab => "labs",
        };
        (all > 0).then(|| format!("{} of {} {plural} known to the run{new}", count(known), count(all)))
    };
    let run =
        format!("begins with the weights of {} ({})", visible(init.path.display()), visible(&init.task));
    let mut lines = vec![run];
    lines.extend(CodeKind::ALL.into_iter().filter_map(of_kind));
    if !init.new.is_empty() {
        lines.push(format!("begins at random: {}", init.new.join(", ")));
    }
    if let Some(encounters) = init.test_encounters.filter(|encounters| *encounters > 0) {
        let encounters = counted(encounters, "encounter", "encounters");
        lines.push(format!("the run learned from {encounters} of the test split: split as it did"));
    }
    lines
}

/// How a training is shown: a bar if somebody is looking, else a line now and then.
pub(crate) struct Display {
    bar: ProgressBar,
    quiet: bool,
    lines: bool,
    /// How many codes the dataset has.
    codes: PerKind<u64>,
    metric: &'static str,
    loss: Option<f64>,
    last: Option<f64>,
    best: Option<f64>,
}

impl Display {
    pub(crate) fn new(quiet: bool) -> Self {
        let lines = !quiet && !io::stderr().is_terminal();
        let bar = ProgressBar::hidden();
        Display {
            bar,
            quiet,
            lines,
            codes: PerKind::default(),
            metric: "",
            loss: None,
            last: None,
            best: None,
        }
    }

    /// Forgets the training before.
    pub(crate) fn begin(&mut self, dataset: &Dataset, settings: &Settings) {
        *self = Display {
            bar: terminal::progress(dataset.manifest().encounters, "reading encounters", self.quiet),
            codes: PerKind::from_fn(|kind| dataset.vocabulary()[kind].len() as u64),
            metric: settings.task.chosen_by(),
            ..Display::new(self.quiet)
        };
    }

    pub(crate) fn show(&mut self, event: &Event) {
        match event {
            Event::Read(encounters) => self.bar.set_position(*encounters),
            Event::Drawn(progress) => {
                if progress.sweep == 0 {
                    self.finish();
                    self.bar = terminal::progress(progress.sweeps as u64, "drawing causes", self.quiet);
                }
                self.bar.set_position(progress.sweep as u64);
            }
            Event::Began(init) => began_lines(init, self.codes).iter().for_each(|line| self.line(line)),
            Event::Started { step, steps, batch, train, validation, left_out, history } => {
                self.finish();
                self.bar = terminal::training(*steps, *batch, self.quiet);
                self.bar.set_position(*step);
                self.bar.reset_eta();
                let left_out = match left_out {
                    0 => String::new(),
                    more => format!(", {} left out", count(*more as u64)),
                };
                self.line(&format!(
                    "training on {} encounters, validating on {}{left_out}",
                    count(*train as u64),
                    count(*validation as u64)
                ));
                history.iter().for_each(|counts| self.line(&history_line(*counts, *train)));
            }
            Event::Step { step, loss } => {
                // The loss of one batch jumps about.
                self.loss = Some(self.loss.map_or(*loss, |before| 0.98 * before + 0.02 * loss));
                self.bar.set_position(*step);
                self.message();
            }
            Event::Validated(entry) => self.validated(entry),
        }
    }

    fn validated(&mut self, entry: &Entry) {
        self.last = entry.value;
        if entry.best {
            self.best = entry.value;
        }
        self.message();
        self.line(&format!(
            "step {}: loss {:.4}, validation loss {}, {} {}{}, {} encounters/s",
            count(entry.step),
            entry.train_loss,
            score(entry.validation_loss),
            self.metric,
            score(entry.value),
            if entry.best { " (best)" } else { "" },
            count(entry.encounters_per_second as u64)
        ));
    }

    fn message(&self) {
        let loss = self.loss.map_or(String::new(), |loss| format!("loss {loss:.4}"));
        let validation = match self.last {
            Some(last) => format!(", {} {last:.4}, best {}", self.metric, score(self.best)),
            None => String::new(),
        };
        self.bar.set_message(loss + &validation);
    }

    fn line(&self, text: &str) {
        if self.lines {
            terminal::print_line(text);
        }
    }

    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
