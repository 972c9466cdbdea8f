//! `gct compare`: by how much one run is better than another, and how sure that is.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use gct::compare::{self, Compared, ComparedMetric, Comparison, Contender, Outside};
use gct::dataset::Dataset;
use gct::infer::Which;
use gct::metric::Bootstrap;
use gct::question::Question;
use gct::report;
use gct::run::Run;
use serde_json::json;

use crate::selection::{self, RawArguments, TestArguments, WhichName};
use crate::terminal::{self, count, refusal, score, visible};

/// Replicates unless told otherwise. A replicate of graph reconstruction walks through millions of pairs.
const REPLICATES: u32 = 2000;
const REPLICATES_OF_PAIRS: u32 = 500;

/// Compare runs on the same test encounters: differences of all metrics with 95 % intervals and p values
///
/// Every run is compared with the first, by a bootstrap that draws the same subjects for both (paired): what
/// is difficult for both cancels out. The p value is two-sided: twice the share of replicates on the smaller
/// side of 0, with one replicate more on either side.
#[derive(Args)]
#[command(after_help = "Examples:
  gct compare runs/gct runs/transformer
  gct compare runs/gct runs/transformer runs/shallow --json
  gct compare runs/mortality --predictions lightgbm=lightgbm.csv

A file of --predictions is CSV or Parquet with the columns encounter_id, predicted_boolean_probability and,
unless there is one label, label: as `gct predict` writes them. It has a row for every encounter that is compared.")]
pub(crate) struct Arguments {
    /// Run folders; the first is what all others are compared with
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// For labels: predictions of another program for the same encounters
    #[arg(long, value_name = "NAME=FILE")]
    predictions: Vec<String>,

    /// The dataset folder [default: the one that the runs were trained on]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Which encounters [default: test of the first run's own dataset, all of any other]
    #[arg(long, value_enum, value_name = "PART")]
    split: Option<WhichName>,

    #[command(flatten)]
    test: TestArguments,

    #[command(flatten)]
    raw: RawArguments,

    /// Bootstrap replicates [default: 2000; 500 for graph_reconstruction]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    bootstrap: Option<u32>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let outside = outside(&arguments.predictions)?;
    check_number(arguments, outside.len())?;
    let opened: Vec<(Run, Dataset)> = (arguments.runs.iter())
        .map(|run| selection::open(run, arguments.data.as_deref()))
        .map(|opened| opened.map(|(run, dataset)| (arguments.raw.of(run), dataset)))
        .collect::<gct::Result<_>>()?;
    let folders: Vec<&Path> = arguments.runs.iter().map(PathBuf::as_path).collect();
    let contenders: Vec<Contender<'_>> = (opened.iter().zip(report::names(&folders)))
        .map(|((run, dataset), name)| Contender { name, run, dataset })
        .collect();
    let Contender { run, dataset, .. } = contenders[0];
    let which = arguments.split.map_or_else(|| Which::default_for(run, dataset), WhichName::which);
    let usual = match run.settings().task {
        Question::Edges | Question::NextDiagnoses(_) => REPLICATES_OF_PAIRS,
        Question::Labels(_) | Question::HiddenDiagnosis | Question::HiddenCode => REPLICATES,
    };
    let bootstrap = Bootstrap { replicates: arguments.bootstrap.unwrap_or(usual), seed: 0 };
    let total = contenders.iter().map(|one| selection::estimate(one.run, one.dataset, which)).sum();
    let bar = terminal::progress(total, "asking about encounters", quiet);
    let test_set = arguments.test.of(which);
    let comparison = compare::run(&contenders, &outside, test_set, bootstrap, &terminal::counting(&bar));
    bar.finish_and_clear();
    let comparison = comparison?;
    if arguments.json {
        let mut report = json!({ "task": run.settings().task.to_string(), "tests": comparison.tests() });
        terminal::extend(&mut report, json!(comparison));
        return Ok(terminal::print_json(&report)?);
    }
    Ok(terminal::print(&text(&comparison, &run.settings().task))?)
}

/// Refuses one run alone, and the same run twice.
fn check_number(arguments: &Arguments, outside: usize) -> Result<()> {
    if arguments.runs.len() + outside < 2 {
        return Err(refusal(
            "there is nothing to compare: one run is given",
            "give another run, or predictions of another program with --predictions NAME=FILE",
        ));
    }
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let real: Vec<PathBuf> = arguments.runs.iter().map(real).collect();
    match (1..real.len()).find(|at| real[..*at].contains(&real[*at])) {
        Some(at) => {
            let run = visible(arguments.runs[at].display());
            Err(refusal(format!("{run} is given twice"), "give each run once"))
        }
        None => Ok(()),
    }
}

/// The name and the file of each `NAME=FILE`.
fn outside(given: &[String]) -> Result<Vec<Outside<'_>>> {
    given.iter().map(|given| named_file(given)).collect()
}

fn named_file(given: &str) -> Result<Outside<'_>> {
    match given.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => {
            Ok(Outside { name, file: Path::new(file) })
        }
        _ => Err(refusal(
            format!("--predictions {}: expected NAME=FILE", visible(given)),
            "say what they are called: --predictions lightgbm=FILE",
        )),
    }
}

fn text(comparison: &Comparison, task: &Question) -> String {
    let Comparison { split, encounters, subjects, replicates, runs } = comparison;
    let (reference, others) = (&runs[0], &runs[1..]);
    let mut text = format!(
        "{}, {} encounters of {} subjects of {split}; the reference is {}\n",
        visible(task),
        count(*encounters),
        count(*subjects),
        visible(&reference.name)
    );
    for other in runs {
        if let Some(method) = other.calibrated {
            text += &format!("{} is calibrated by {method}\n", visible(&other.name));
        }
    }
    for other in others {
        text += &format!("\n{}", table(reference, other, &reference.metrics, &other.metrics, None));
        for (own, theirs) in reference.labels.iter().zip(&other.labels) {
            text +=
                &format!("\n{}", table(reference, other, &own.metrics, &theirs.metrics, Some(&own.label)));
        }
    }
    text += &format!(
        "\nIntervals and p are of a paired bootstrap of {} replicates over subjects; p is two-sided and at \
         least {:.4}.\n",
        count(u64::from(*replicates)),
        (2.0 / (f64::from(*replicates) + 1.0)).min(1.0)
    );
    text + &advice(comparison.tests(), *replicates)
}

/// How to read so many differences.
fn advice(tests: usize, replicates: u32) -> String {
    if tests < 2 {
        return String::new();
    }
    // With fewer, no p is as small.
    let needed = 40 * tests - 1;
    let more = match (replicates as usize) < needed {
        true => format!(", which takes --bootstrap {needed} or more"),
        false => String::new(),
    };
    format!(
        "These are {tests} differences: of so many, one in twenty would have p below 0.05 by chance. Name the \
         one\nthat counts before you look, or hold each against {:.4} (Bonferroni){more}.\n",
        0.05 / tests as f64
    )
}

fn table(
    reference: &Compared,
    other: &Compared,
    own: &[ComparedMetric],
    theirs: &[ComparedMetric],
    label: Option<&str>,
) -> String {
    let rows = own.iter().zip(theirs).map(|(own, theirs)| {
        let signed = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:+.4}"));
        vec![
            own.metric.replace('_', " "),
            score(own.value),
            score(theirs.value),
            signed(theirs.difference),
            theirs.difference_interval.map_or("-".into(), |[low, high]| format!("{low:+.4} to {high:+.4}")),
            score(theirs.p),
        ]
    });
    let names = [label.unwrap_or_default(), &reference.name, &other.name];
    let [label, own, theirs] = names.map(|name| visible(name).to_string());
    terminal::table(&[&label, &own, &theirs, "difference", "95 % interval", "p"], rows)
}
