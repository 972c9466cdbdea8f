//! `gct embed`: vectors for other programs.

use std::path::Path;

use anyhow::Result;
use clap::{Args, ValueEnum};
use gct::predict::{self, Embedded, Written};
use gct::run::Run;
use serde_json::json;

use crate::output::RowsFile;
use crate::selection::{self, SelectionArguments};
use crate::terminal::{self, counted, refusal, visible};

/// Write embeddings of visits or of codes, as Parquet, CSV, JSON lines or for NumPy
#[derive(Args)]
#[command(after_help = "Examples:
  gct embed runs/gct --out visits.parquet           subject_id, encounter_id, embedding
  gct embed runs/gct --split all --out visits.npy   a row for each encounter, in the order of the dataset
  gct embed runs/gct --what codes --out codes.parquet   kind, code, description, embedding
  gct embed runs/history --what subjects --out subjects.parquet   a vector per patient, at the last visit
  gct embed runs/gct --data new.csv --out new.csv   new encounters, as for `gct predict`; - for standard input

A run of masked_diagnosis or masked_code embeds each encounter with one code hidden, as in training.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,

    /// Embeddings of what; those of subjects are of runs with history
    #[arg(long, value_enum, default_value_t = What::Visits)]
    what: What,

    #[command(flatten)]
    output: RowsFile,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    Visits,
    Subjects,
    Codes,
}

impl What {
    /// What the rows are, in the report.
    fn names(self) -> [&'static str; 2] {
        match self {
            What::Visits => ["encounter", "encounters"],
            What::Subjects => ["subject", "subjects"],
            What::Codes => ["code", "codes"],
        }
    }

    /// What of encounters is embedded; `None` if nothing.
    fn of_encounters(self) -> Option<Embedded> {
        match self {
            What::Visits => Some(Embedded::Visits),
            What::Subjects => Some(Embedded::Subjects),
            What::Codes => None,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    if arguments.what == What::Codes && arguments.selection.is_given() {
        let hint = "leave out --data and --split: codes are those of the run";
        return Err(refusal("--what codes is not about encounters", hint));
    }
    arguments.output.check(&["parquet", "csv", "jsonl", "npy"], arguments.json)?;
    let run = arguments.selection.run()?;
    let file = arguments.selection.file()?;
    let (written, left_out) = match (file, arguments.what.of_encounters()) {
        (Some(file), Some(embedded)) => {
            let written = of_file(arguments, &run, (file, embedded), quiet)?;
            (written, selection::left_out_of_file(&run, &written))
        }
        (_, embedded) => {
            let written = match embedded {
                None => arguments.output.with_target(|target| predict::codes(&run, target))?,
                Some(embedded) => of_dataset(arguments, embedded, quiet)?,
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
    let [one, several] = arguments.what.names();
    let said = format!("vectors of {width} numbers for {}\n{left_out}", counted(written.rows, one, several));
    let text = match arguments.output.is_standard() {
        true => said,
        false => format!("{}: {said}", visible(arguments.output.out.display())),
    };
    terminal::print_summary(&text, arguments.output.is_standard(), quiet)
}

fn of_dataset(arguments: &Arguments, embedded: Embedded, quiet: bool) -> Result<Written> {
    let (run, dataset, which) = arguments.selection.open()?;
    let bar = selection::progress(&run, &dataset, which, "embedding encounters", quiet);
    arguments.output.with_target(|target| {
        let written = predict::embed(&run, embedded, &dataset, which, target, &terminal::counting(&bar));
        bar.finish_and_clear();
        written
    })
}

fn of_file(
    arguments: &Arguments,
    run: &Run,
    (file, embedded): (&Path, Embedded),
    quiet: bool,
) -> Result<Written> {
    let bar = terminal::progress(0, "embedding encounters", quiet);
    arguments.output.with_target(|target| {
        let job = terminal::counting(&bar);
        let written = selection::incoming(run, file, &job)
            .and_then(|incoming| predict::embed_incoming(run, embedded, incoming, target, &job));
        bar.finish_and_clear();
        written
    })
}
