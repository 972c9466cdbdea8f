//! `gct embed`: vectors for other programs.

use anyhow::Result;
use clap::Args;
use gct::predict;
use serde_json::json;

use crate::asked::{self, AskedArguments};
use crate::output::RequiredFile;
use crate::terminal::{self, count, visible};
use crate::train::heed;

/// Write vectors of visits or of codes, as Parquet or for NumPy
#[derive(Args)]
#[command(after_help = "Examples:
  gct embed runs/gct --out visits.parquet           subject_id, encounter_id, embedding
  gct embed runs/gct --split all --out visits.npy   a row for each encounter, in the order of the dataset
  gct embed runs/gct --codes --out codes.parquet    kind, code, description, embedding

A run that learned masked_diagnosis sees each encounter as it learned to: with one diagnosis hidden.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    asked: AskedArguments,

    /// Vectors of codes instead of visits
    #[arg(long, conflicts_with_all = ["data", "split"])]
    codes: bool,

    #[command(flatten)]
    output: RequiredFile,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check(&["parquet", "npy"])?;
    let (run, written) = if arguments.codes {
        let run = arguments.asked.run()?;
        let written = predict::codes(&run, arguments.output.place())?;
        (run, written)
    } else {
        let (run, dataset, which) = arguments.asked.open()?;
        let bar = asked::progress(&run, &dataset, which, "embedding encounters", quiet);
        let written = predict::visits(&run, &dataset, which, arguments.output.place(), &heed(&bar));
        bar.finish_and_clear();
        (run, written?)
    };
    let width = run.settings().model.width();
    if arguments.json {
        return Ok(terminal::print_json(&json!({
            "out": arguments.output.out,
            "rows": written.rows,
            "width": width,
            "left_out": written.left_out,
            "unseen_codes": written.unseen.codes,
            "unseen_occurrences": written.unseen.occurrences,
        }))?);
    }
    let what = if arguments.codes { "codes" } else { "encounters" };
    let mut text = format!(
        "{}: vectors of {width} numbers for {} {what}\n",
        visible(arguments.output.out.display()),
        count(written.rows)
    );
    text += &asked::left_out(written.left_out, written.unseen, written.overlap);
    Ok(terminal::print(&text)?)
}
