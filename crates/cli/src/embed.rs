//! `gct embed`: vectors for other programs.

use anyhow::Result;
use clap::Args;
use gct::predict;
use serde_json::json;

use crate::output::RequiredFile;
use crate::selection::{self, SelectionArguments};
use crate::terminal::{self, count, visible};

/// Write embeddings of visits or of codes, as Parquet or for NumPy
#[derive(Args)]
#[command(after_help = "Examples:
  gct embed runs/gct --out visits.parquet           subject_id, encounter_id, embedding
  gct embed runs/gct --split all --out visits.npy   a row for each encounter, in the order of the dataset
  gct embed runs/gct --codes --out codes.parquet    kind, code, description, embedding

A run of masked_diagnosis embeds each encounter with one diagnosis hidden, as in training.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,

    /// Embeddings of codes instead of visits
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
        let run = arguments.selection.run()?;
        let written = predict::codes(&run, arguments.output.target())?;
        (run, written)
    } else {
        let (run, dataset, which) = arguments.selection.open()?;
        let bar = selection::progress(&run, &dataset, which, "embedding encounters", quiet);
        let written =
            predict::visits(&run, &dataset, which, arguments.output.target(), &terminal::counting(&bar));
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
    text += &selection::left_out(written.left_out, written.unseen, written.overlap);
    Ok(terminal::print(&text)?)
}
