//! `gct tune`: good hyperparameters.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, ValueEnum};
use gct::dataset::Dataset;
use gct::files::Overwrite;
use gct::infer::Which;
use gct::job::Job;
use gct::report::{Looked, Options};
use gct::run::Run;
use gct::split::SplitPart;
use gct::tune::{self, Effort, End, Event, Plan, Space, Strategy, Tuning};
use indicatif::ProgressBar;
use serde::Deserialize;
use serde_json::json;

use crate::explain::write;
use crate::settings::{self, SettingsArguments};
use crate::terminal::{self, count, refusal, score, visible};

/// Find good hyperparameters for a model by Bayesian optimisation with a Gaussian process
///
/// Each trial is a training, with settings chosen by how earlier trials did on the validation split. Trials
/// that fall behind are stopped early. The same command, run again, resumes; with more --trials it adds
/// trials.
#[derive(Args)]
#[command(after_help = "Examples:
  gct tune --data synthetic --task graph_reconstruction --model gct --out tuned --steps 2000 --trials 30
  gct tune --data eicu --task mortality --out tuned --for 8h
  gct train --data synthetic --config tuned/best.toml --out runs/best --steps 20000

The space is the paper's: learning rate 1e-4 to 1e-1, dropout rates 0 to 0.9, GCT's regularization 1e-2 to
1e2; of logistic, which is not the paper's, model.c 1e-4 to 10. --space reads another one from a TOML file:
  [[dimensions]]
  name = \"learning_rate\"
  low = 1e-4
  high = 1e-2
  scale = \"log\"")]
pub(crate) struct Arguments {
    /// The dataset folder
    #[arg(long, value_name = "DIR")]
    data: PathBuf,

    /// What to learn
    #[arg(long, value_name = "TASK")]
    task: Option<String>,

    /// Which model [default: gct]
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// The folder for trials and results
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Number of trials, earlier ones included [default: 30; with --for, no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    trials: Option<u32>,

    /// Time limit, such as 90m or 8h
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    budget: Option<Duration>,

    /// Training steps of each trial [default: 20000]
    #[arg(long, value_name = "N")]
    steps: Option<u64>,

    /// How the settings of a trial are chosen
    #[arg(long, value_enum, default_value_t = By::Bayesian)]
    strategy: By,

    /// Seed of the search; that of the trainings is the setting `seed`
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: u64,

    /// Stop no trial early
    #[arg(long)]
    keep_all: bool,

    /// A TOML file with the search space
    #[arg(long, value_name = "FILE")]
    space: Option<PathBuf>,

    /// Trials at the same time [default: one for every four threads]; with several, results depend on which
    /// ends first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    side_by_side: Option<u16>,

    #[command(flatten)]
    settings: SettingsArguments,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    Bayesian,
    Random,
}

/// 90m, 8h, 45s.
fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_at(text.len() - text.chars().last().map_or(0, char::len_utf8));
    let seconds = match unit {
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("expected a number with s, m or h, such as 90m".into()),
    };
    match number.parse::<f64>() {
        Ok(number) if number > 0.0 && number < 1e6 => Ok(Duration::from_secs_f64(number * seconds)),
        _ => Err("expected a number with s, m or h, such as 90m".into()),
    }
}

/// A file of `--space`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpaceFile {
    dimensions: Space,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let started = Instant::now();
    let dataset = Dataset::open(&arguments.data)?;
    let plan = plan(arguments, &dataset)?;
    if arguments.settings.show_config {
        return Ok(terminal::print(&toml::to_string(&plan)?)?);
    }
    let tuning = Tuning::open(&arguments.out, plan)?;
    let trials = match (arguments.trials, arguments.budget) {
        (Some(trials), _) => trials as usize,
        (None, Some(_)) => usize::MAX,
        (None, None) => 30,
    };
    let threads = rayon::current_num_threads();
    let display = Display::new(&tuning, trials, quiet);
    let effort = Effort {
        trials,
        deadline: arguments.budget.map(|budget| started + budget),
        side_by_side: arguments.side_by_side.map_or(threads.div_ceil(4), usize::from),
    };
    let job = Job::new(terminal::stop(), |event| display.show(&event));
    let tuning = tuning.run(&dataset, effort, &job);
    display.finish();
    let tuning = tuning.map_err(terminal::resumable)?;
    tune::write(&tuning)?;
    report(arguments, &tuning)?;
    page(&tuning, &dataset, &arguments.out, quiet)
}

fn plan(arguments: &Arguments, dataset: &Dataset) -> Result<Plan> {
    let (task, model) = (arguments.task.as_deref(), arguments.model.as_deref());
    let mut settings = settings::training(&arguments.settings, task, model, Some(dataset))?;
    settings.steps = arguments.steps.unwrap_or(settings.steps);
    let space = match &arguments.space {
        Some(path) => {
            let file: SpaceFile = gct::overrides::typed(&gct::overrides::read(path)?)
                .map_err(|problem| gct::Error::Malformed { path: path.clone(), problem })?;
            file.dimensions
        }
        None => tune::paper_space(&settings.model),
    };
    let strategy = match arguments.strategy {
        By::Bayesian => Strategy::Bayesian,
        By::Random => Strategy::Random,
    };
    Ok(Plan {
        strategy,
        seed: arguments.seed,
        give_up: !arguments.keep_all,
        dataset_sha256: dataset.manifest().identity(),
        space,
        settings,
    })
}

/// Writes a page of the best trial. It looks at the validation split, as tuning does.
fn page(tuning: &Tuning, dataset: &Dataset, out: &Path, quiet: bool) -> Result<()> {
    let Some((trial, _)) = tuning.best()? else { return Ok(()) };
    let folder = tuning.run_folder(trial);
    if !folder.exists() {
        return Ok(());
    }
    let run = Run::open(&folder)?.raw();
    let name = format!("trial {}", trial + 1);
    let looked = Looked { name, run: &run, dataset, test_set: Which::Part(SplitPart::Validation).into() };
    let options = crate::report::by_product(dataset, Options::default().encounters);
    let html = crate::report::page(&[looked], &options, None, quiet)?;
    Ok(write(&out.join("report.html"), &html, Overwrite::Replace)?)
}

fn report(arguments: &Arguments, tuning: &Tuning) -> Result<()> {
    let (plan, trials) = (tuning.plan(), tuning.trials());
    let metric = plan.settings.task.chosen_by();
    let ended = |end: End| trials.iter().filter(|trial| trial.end == end).count();
    let seconds: f64 = trials.iter().map(|trial| trial.seconds).sum();
    let best = tuning.best()?;
    let names = plan.space.dimensions().iter().map(|dimension| dimension.name.clone());
    let out = visible(arguments.out.display());
    if arguments.json {
        let point = |trial: usize| -> serde_json::Map<_, _> {
            names.clone().zip(trials[trial].point.iter().map(|value| json!(value))).collect()
        };
        terminal::print_json(&json!({
            "out": arguments.out,
            "metric": metric,
            "trials": trials.len(),
            "finished": ended(End::Finished),
            "given_up": ended(End::GivenUp),
            "failed": ended(End::Failed),
            "seconds": seconds,
            "best": best.as_ref().map(|(trial, _)| json!({
                "trial": trial + 1,
                "value": trials[*trial].best.map(|best| best.value),
                "settings": point(*trial),
            })),
        }))?;
    }
    let Some((trial, _)) = best else {
        let (failed, begun) = (ended(End::Failed), ended(End::Begun));
        let problem = format!("no trial has a value yet: {failed} failed, {begun} not ended");
        return Err(refusal(
            problem,
            "run the same command again with more --trials, or with another --space",
        ));
    };
    if arguments.json {
        return Ok(());
    }
    let mut text = format!(
        "{out}: {} trials of {} on {} in {:.0} s of training: {} finished, {} stopped early, {} failed\n\
         best validation {metric} {} by trial {}:\n",
        trials.len(),
        plan.settings.model.name(),
        visible(&plan.settings.task),
        seconds,
        ended(End::Finished),
        ended(End::GivenUp),
        ended(End::Failed),
        score(trials[trial].best.map(|best| best.value)),
        trial + 1
    );
    for (name, value) in names.zip(&trials[trial].point) {
        text += &format!("  {} = {value}\n", visible(name));
    }
    let data = visible(arguments.data.display());
    text += &format!("next: gct train --data {data} --config {out}/best.toml --out RUN\n");
    Ok(terminal::print(&text)?)
}

/// One bar over the steps of all trials.
struct Display {
    lines: bool,
    names: Vec<String>,
    metric: &'static str,
    inside: Mutex<Inside>,
}

struct Inside {
    bar: ProgressBar,
    steps_each: u64,
    /// Steps that need not be made any more, of trials that have ended.
    done: u64,
    /// Steps of trials that run.
    running: Vec<(usize, u64)>,
    ended: usize,
    best: Option<f64>,
}

impl Display {
    fn new(tuning: &Tuning, trials: usize, quiet: bool) -> Self {
        let settings = &tuning.plan().settings;
        let left = trials.saturating_sub(tuning.trials().len()).min(100_000) as u64;
        let ended: Vec<_> = tuning.trials().iter().filter(|trial| trial.end != End::Begun).collect();
        let begun = tuning.trials().len() - ended.len();
        let bar =
            terminal::training((left + begun as u64) * settings.last_step(), settings.batch as u64, quiet);
        let best = ended.iter().filter(|trial| trial.end != End::Failed).filter_map(|trial| trial.best);
        let best = best.map(|best| best.value);
        Display {
            lines: !quiet && !io::stderr().is_terminal(),
            names: tuning.plan().space.dimensions().iter().map(|dimension| dimension.name.clone()).collect(),
            metric: settings.task.chosen_by(),
            inside: Mutex::new(Inside {
                bar,
                steps_each: settings.last_step(),
                done: 0,
                running: Vec::new(),
                ended: ended.len(),
                best: best.reduce(f64::max),
            }),
        }
    }

    fn show(&self, event: &Event) {
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Started { trial, .. } => inside.running.push((*trial, 0)),
            Event::Step { trial, step } => {
                if let Some(running) = inside.running.iter_mut().find(|running| running.0 == *trial) {
                    running.1 = *step;
                }
                inside.draw(self.metric);
            }
            Event::Ended { trial, result } => {
                inside.running.retain(|running| running.0 != *trial);
                inside.done += inside.steps_each;
                inside.ended += 1;
                let value = result.best.map(|best| best.value);
                let counts = value.filter(|_| result.end != End::Failed);
                inside.best = inside.best.into_iter().chain(counts).reduce(f64::max);
                inside.draw(self.metric);
                if self.lines {
                    let end = match result.end {
                        End::GivenUp => format!(", stopped early at step {}", count(result.steps)),
                        End::Failed => ", failed".into(),
                        End::Begun | End::Finished => String::new(),
                    };
                    let point: Vec<String> = self
                        .names
                        .iter()
                        .zip(&result.point)
                        .map(|(name, value)| format!("{name} {value}"))
                        .collect();
                    terminal::print_line(&format!(
                        "trial {}: {} {}{end}; {}",
                        trial + 1,
                        self.metric,
                        score(value),
                        point.join(", ")
                    ));
                }
            }
        }
    }

    fn finish(&self) {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner).bar.finish_and_clear();
    }
}

impl Inside {
    fn draw(&self, metric: &str) {
        terminal::advance(&self.bar, self.done + self.running.iter().map(|running| running.1).sum::<u64>());
        self.bar.set_message(format!("{} trials ended, best {metric} {}", self.ended, score(self.best)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("90m"), Ok(Duration::from_secs(5400)));
        assert_eq!(time("1.5h"), Ok(Duration::from_secs(5400)));
        for bad in ["", "90", "h", "-1h", "1d", "nanh", "1é"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }
}
