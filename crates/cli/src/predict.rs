//! `gct predict`: predictions as Parquet.

use anyhow::Result;
use clap::Args;
use gct::predict::{self, Options};
use serde_json::json;

use crate::asked::{self, AskedArguments, TestArguments};
use crate::output::RequiredFile;
use crate::terminal::{self, count};
use crate::train::heed;

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
    asked: AskedArguments,

    #[command(flatten)]
    test: TestArguments,

    #[command(flatten)]
    output: RequiredFile,

    /// The probability above which a label is predicted
    #[arg(long, value_name = "P", default_value_t = Options::default().threshold)]
    threshold: f64,

    /// How many diagnoses to guess
    #[arg(long, value_name = "K", default_value_t = Options::default().top)]
    top: usize,

    /// The least probability of an edge to write
    #[arg(long, value_name = "P", default_value_t = Options::default().min_probability)]
    min_probability: f64,

    /// Write the columns of the MEDS prediction schema and no other, as meds-evaluation takes them; encounters without a known label are left out
    #[arg(long)]
    meds: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check(&["parquet"])?;
    let (run, dataset, which) = arguments.asked.open()?;
    let bar = asked::progress(&dataset, which, "predicting encounters", quiet);
    let Arguments { threshold, top, min_probability, meds, .. } = *arguments;
    let options = Options { threshold, top, min_probability, meds };
    let written = predict::score(
        &run,
        &dataset,
        arguments.test.of(which),
        options,
        arguments.output.place(),
        &heed(&bar),
    );
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
        arguments.output.out.display(),
        count(written.rows),
        count(written.encounters)
    );
    text += &asked::left_out(written.left_out, written.unseen, written.overlap);
    Ok(terminal::print(&text)?)
}
