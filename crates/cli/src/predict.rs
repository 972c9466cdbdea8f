//! `gct predict`: predictions as Parquet.

use anyhow::Result;
use clap::Args;
use gct::predict;
use gct::question::{Question, TableOptions};
use serde_json::json;

use crate::output::RequiredFile;
use crate::selection::{self, SelectionArguments, TestArguments};
use crate::terminal::{self, count, refusal, visible};

/// Write the predictions of a run as Parquet
#[derive(Args)]
#[command(after_help = "Examples:
  gct predict runs/gct --out predictions.parquet
  gct predict runs/gct --data new-encounters --split all --out new.parquet
  gct predict runs/reconstruction --min-probability 0 --out every-pair.parquet
  gct predict runs/mortality --meds --out for-meds-evaluation.parquet

Every row has subject_id, encounter_id and prediction_time, and
  for labels                label, boolean_value, predicted_boolean_value, predicted_boolean_probability
  for masked_diagnosis      hidden_diagnosis, rank, predicted_diagnosis, probability
  for graph_reconstruction  cause_kind, cause, effect_kind, effect, boolean_value, probability")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,

    #[command(flatten)]
    test: TestArguments,

    #[command(flatten)]
    output: RequiredFile,

    /// For labels: the probability above which a label is predicted [default: 0.5]
    #[arg(long, value_name = "P")]
    threshold: Option<f64>,

    /// For masked_diagnosis: how many diagnoses to predict [default: 10]
    #[arg(long, value_name = "K")]
    top: Option<usize>,

    /// For graph_reconstruction: the least probability of an edge to write [default: 0.5]
    #[arg(long, value_name = "P")]
    min_probability: Option<f64>,

    /// For labels: write the columns of the MEDS prediction schema and no other, as meds-evaluation takes
    /// them; encounters without a known label are left out
    #[arg(long)]
    meds: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What to write, which must be something that the task predicts.
    fn options(&self, question: &Question) -> Result<TableOptions> {
        let Arguments { threshold, top, min_probability, meds, .. } = *self;
        for (flag, is_given, of) in [
            ("threshold", threshold.is_some(), "labels"),
            ("meds", meds, "labels"),
            ("top", top.is_some(), "masked_diagnosis"),
            ("min-probability", min_probability.is_some(), "graph_reconstruction"),
        ] {
            if is_given && of != question.kind() {
                return Err(refusal(
                    format!("--{flag} is for runs that predict {of}, and this one predicts {question}"),
                    "leave it out",
                ));
            }
        }
        let standard = TableOptions::default();
        Ok(TableOptions {
            threshold: threshold.unwrap_or(standard.threshold),
            top: top.unwrap_or(standard.top),
            min_probability: min_probability.unwrap_or(standard.min_probability),
            meds,
        })
    }
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check(&["parquet"])?;
    let (run, dataset, which) = arguments.selection.open()?;
    let options = arguments.options(&run.settings().task)?;
    let bar = selection::progress(&run, &dataset, which, "predicting encounters", quiet);
    let (test_set, target) = (arguments.test.of(which), arguments.output.target());
    let written = predict::score(&run, &dataset, test_set, options, target, &terminal::counting(&bar));
    bar.finish_and_clear();
    let written = written?;
    if arguments.json {
        return Ok(terminal::print_json(&json!({
            "out": arguments.output.out,
            "split": which.name(),
            "encounters": written.encounters,
            "rows": written.rows,
            "left_out": written.left_out,
            "unseen_codes": written.unseen.codes,
            "unseen_occurrences": written.unseen.occurrences,
            "learned_from": written.overlap,
            "warning": written.overlap.warning(),
        }))?);
    }
    let mut text = format!(
        "{}: {} rows for {} encounters\n",
        visible(arguments.output.out.display()),
        count(written.rows),
        count(written.encounters)
    );
    text += &selection::left_out(written.left_out, written.unseen, written.overlap);
    Ok(terminal::print(&text)?)
}
