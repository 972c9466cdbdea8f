//! `gct calibrate`: probabilities that are as frequent as they say.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use gct::calibrate::{self, CalibratedLabel, Quality};
use gct::calibration::Method;
use gct::infer::Which;
use gct::split::SplitPart;
use serde_json::json;

use crate::selection;
use crate::terminal::{self, count, score, visible};

/// Calibrate the probabilities of labels on the validation split, for every command that uses the run
///
/// The order of encounters stays, their probabilities change: of those with 0.3, three in ten should have the
/// label. The map is kept in the run, as calibration.json; predict, evaluate, explain, report, compare and
/// serve use it unless --raw is given.
#[derive(Args)]
#[command(after_help = "Examples:
  gct calibrate runs/mortality
  gct evaluate runs/mortality                       how good that is on test
  gct evaluate runs/mortality --raw                 without
  gct calibrate runs/mortality --method isotonic    in place of the first
  gct calibrate runs/mortality --data elsewhere     on the validation split of another dataset
  gct calibrate runs/mortality --remove")]
pub(crate) struct Arguments {
    /// The run folder
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// platt (two numbers, for few encounters too) or isotonic (any map that rises; it needs about a thousand
    /// encounters) [default: platt]
    #[arg(long, value_name = "METHOD")]
    method: Option<Method>,

    /// The dataset folder, whose validation split is used [default: the dataset that the run was trained on]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Remove the calibration
    #[arg(long, conflicts_with_all = ["method", "data"])]
    remove: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    if arguments.remove {
        return remove(arguments);
    }
    let method = arguments.method.unwrap_or_default();
    let (run, dataset) = selection::open(&arguments.run, arguments.data.as_deref())?;
    let which = Which::Part(SplitPart::Validation);
    let bar = selection::progress(&run, &dataset, which, "asking about encounters", quiet);
    let labels = calibrate::run(run, &dataset, method, &terminal::counting(&bar));
    bar.finish_and_clear();
    let labels = labels?;
    if arguments.json {
        let report =
            json!({ "run": arguments.run, "method": method, "split": which.name(), "labels": labels });
        return Ok(terminal::print_json(&report)?);
    }
    let out = visible(arguments.run.display());
    let mut text = format!("{out}: calibrated by {method}; all commands use it, unless --raw is given\n");
    labels.iter().for_each(|label| text += &table(label));
    text += &format!(
        "\nThis is on the encounters that it was fitted to, where nearly any map looks good.\n\
         next: gct evaluate {out}\n"
    );
    Ok(terminal::print(&text)?)
}

fn remove(arguments: &Arguments) -> Result<()> {
    let run = gct::run::Run::open(&arguments.run)?;
    let removed = calibrate::remove(&run)?;
    if arguments.json {
        return Ok(terminal::print_json(&json!({ "run": arguments.run, "removed": removed }))?);
    }
    let done = if removed { "the calibration is removed" } else { "there is no calibration" };
    Ok(terminal::print(&format!("{}: {done}\n", visible(arguments.run.display())))?)
}

fn table(label: &CalibratedLabel) -> String {
    let CalibratedLabel { label, encounters, positives, before, after } = label;
    let row = |name: &str, of: fn(&Quality) -> Option<f64>| {
        vec![name.to_owned(), score(of(before)), score(of(after))]
    };
    let rows = [
        row("log loss", |quality| quality.log_loss),
        row("brier score", |quality| quality.brier_score),
        row("calibration slope", |quality| quality.slope),
        row("calibration intercept", |quality| quality.intercept),
    ];
    format!(
        "\n{}, {} positives among {} encounters of validation\n{}",
        visible(label),
        count(*positives),
        count(*encounters),
        terminal::table(&["", "before", "after"], rows)
    )
}
