//! `gct embed`: vectors for other programs.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use gct::predict::{self, Written};
use gct::run::Run;
use serde_json::json;

use crate::output::RowsFile;
use crate::selection::{self, SelectionArguments};
use crate::terminal::{self, counted, visible};

/// Write embeddings of visits or of codes, as Parquet, CSV, JSON lines or for NumPy
#[derive(Args)]
#[command(after_help = "Examples:
  gct embed runs/gct --out visits.parquet           subject_id, encounter_id, embedding
  gct embed runs/gct --split all --out visits.npy   a row for each encounter, in the order of the dataset
  gct embed runs/gct --codes --out codes.parquet    kind, code, description, embedding
  gct embed runs/gct --data new.csv --out new.csv   new encounters, as for `gct predict`; - for standard input

A run of masked_diagnosis embeds each encounter with one diagnosis hidden, as in training.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,

    /// Embeddings of codes instead of visits
    #[arg(long, conflicts_with_all = ["data", "split"])]
    codes: bool,

    #[command(flatten)]
    output: RowsFile,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check(&["parquet", "csv", "jsonl", "npy"], arguments.json)?;
    let run = arguments.selection.run()?;
    let file = arguments.selection.file()?;
    let (written, left_out) = match file {
        Some(file) => {
            let written = of_file(arguments, &run, file, quiet)?;
            (written, selection::left_out_of_file(&run, &written))
        }
        None => {
            let written = match arguments.codes {
                true => arguments.output.with_target(|target| predict::codes(&run, target))?,
                false => of_dataset(arguments, quiet)?,
            };
            (written, selection::left_out(written.left_out, written.unseen, written.overlap))
        }
    };
    let width = run.settings().width();
    if arguments.json {
        let mut report = json!({
            "out": arguments.output.out,
            "rows": written.rows,
            "width": width,
            "left_out": written.left_out,
            "unseen_codes": written.unseen.codes,
            "unseen_occurrences": written.unseen.occurrences,
        });
        if file.is_some() {
            report["unknown"] = selection::unknown_json(&written.unknown);
            report["without_codes"] = written.without_codes.into();
        }
        return Ok(terminal::print_json(&report)?);
    }
    let [one, several] = if arguments.codes { ["code", "codes"] } else { ["encounter", "encounters"] };
    let said = format!("vectors of {width} numbers for {}\n{left_out}", counted(written.rows, one, several));
    let text = match arguments.output.is_standard() {
        true => said,
        false => format!("{}: {said}", visible(arguments.output.out.display())),
    };
    terminal::print_summary(&text, arguments.output.is_standard(), quiet)
}

fn of_dataset(arguments: &Arguments, quiet: bool) -> Result<Written> {
    let (run, dataset, which) = arguments.selection.open()?;
    let bar = selection::progress(&run, &dataset, which, "embedding encounters", quiet);
    arguments.output.with_target(|target| {
        let written = predict::visits(&run, &dataset, which, target, &terminal::counting(&bar));
        bar.finish_and_clear();
        written
    })
}

fn of_file(arguments: &Arguments, run: &Run, file: &Path, quiet: bool) -> Result<Written> {
    let bar = terminal::progress(0, "embedding encounters", quiet);
    arguments.output.with_target(|target| {
        let job = terminal::counting(&bar);
        let written = selection::incoming(run, file, &job)
            .and_then(|incoming| predict::incoming_visits(run, incoming, target, &job));
        bar.finish_and_clear();
        written
    })
}
