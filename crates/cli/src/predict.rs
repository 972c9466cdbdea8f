//! `gct predict`: predictions as Parquet, CSV or JSON lines.

use std::path::Path;

use anyhow::Result;
use clap::Args;
use gct::infer::Which;
use gct::predict::{self, Written};
use gct::question::{Question, TableOptions};
use serde_json::json;

use crate::explain::at_least_one;
use crate::output::RowsFile;
use crate::selection::{self, RawArguments, SelectionArguments, TestArguments};
use crate::terminal::{self, counted, refusal, visible};

/// Write the predictions of a run as Parquet, CSV or JSON lines
#[derive(Args)]
#[command(after_help = "Examples:
  gct predict runs/gct --out predictions.parquet
  gct predict runs/gct --data new-encounters --split all --out new.parquet
  gct predict runs/reconstruction --min-probability 0 --out every-pair.parquet
  gct predict runs/mortality --meds --out for-meds-evaluation.parquet
  gct predict runs/mortality --data new-events.csv --out new.csv
  gct predict runs/mortality --why 5 --out with-reasons.jsonl
  echo '{\"id\": \"E1\", \"diagnosis\": [\"I50.1\"], \"lab\": [{\"code\": \"K\", \"value\": 4.1}]}' |
    gct predict runs/mortality --data - --out -

New encounters need no dataset: --data takes JSON lines as above, or a CSV or Parquet file of
events with encounter_id, kind (diagnosis, treatment, lab or context), code and perhaps value and
subject_id. Codes are as they are recorded: the rollups and buckets of the run are applied.
For a run that sees history, lines also have subject_id and start, and perhaps end: those of a
subject follow each other, the oldest first. docs/runs.md says more.

Every row has subject_id, encounter_id and prediction_time, and
  for labels                label, boolean_value, predicted_boolean_value, predicted_boolean_probability
  for masked_diagnosis      hidden_diagnosis, rank, predicted_diagnosis, probability
  for masked_code           hidden_kind, hidden_code, rank, predicted_code, probability
  for next_diagnoses        rank, predicted_diagnosis, probability, boolean_value
  for graph_reconstruction  cause_kind, cause, effect_kind, effect, boolean_value, probability

With --why each row also has why: a list of codes with kind, code, description where there is one,
change (the probability without the code, minus that with it) and log_odds_change; of a run that
sees history also visits_before: 0 for codes of the encounter, 1 for those of the visit before it.
In CSV it is JSON in one column. Every encounter is then asked about once more for each code.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,

    #[command(flatten)]
    test: TestArguments,

    #[command(flatten)]
    raw: RawArguments,

    #[command(flatten)]
    output: RowsFile,

    /// For labels: the probability above which a label is predicted [default: 0.5]
    #[arg(long, value_name = "P")]
    threshold: Option<f64>,

    /// For masked_diagnosis, masked_code and next_diagnoses: how many codes to predict [default: 10]
    #[arg(long, value_name = "K")]
    top: Option<usize>,

    /// For graph_reconstruction: the least probability of an edge to write [default: 0.5]
    #[arg(long, value_name = "P")]
    min_probability: Option<f64>,

    /// For labels: write the columns of the MEDS prediction schema and no other, as meds-evaluation takes
    /// them; encounters without a known label are left out
    #[arg(long)]
    meds: bool,

    /// Also write a column `why`: the N codes that change the row most when they are left out
    #[arg(long, value_name = "N", conflicts_with = "meds", value_parser = at_least_one)]
    why: Option<usize>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What to write, which must be something that the task predicts.
    fn options(&self, question: &Question) -> Result<TableOptions> {
        let Arguments { threshold, top, min_probability, meds, .. } = *self;
        for (flag, is_given, of) in [
            ("threshold", threshold.is_some(), &["labels"][..]),
            ("meds", meds, &["labels"]),
            (
                "top",
                top.is_some(),
                &["masked_diagnosis", "masked_code", "next_diagnoses", "next_diagnoses:new"],
            ),
            ("min-probability", min_probability.is_some(), &["graph_reconstruction"]),
        ] {
            if is_given && !of.contains(&question.kind()) {
                let of = of.join(" or ");
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
            why: self.why.unwrap_or(0),
        })
    }
}

/// What was predicted.
struct Predicted {
    written: Written,
    split: Option<Which>,
    /// Lines about what was left out.
    left_out: String,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check(&["parquet", "csv", "jsonl"], arguments.json)?;
    let Predicted { written, split, left_out } = match arguments.selection.file()? {
        Some(file) => of_file(arguments, file, quiet)?,
        None => of_dataset(arguments, quiet)?,
    };
    if arguments.json {
        let mut report = json!({
            "out": arguments.output.out,
            "split": split.map(Which::name),
            "encounters": written.encounters,
            "rows": written.rows,
            "left_out": written.left_out,
            "unseen_codes": written.unseen.codes,
            "unseen_occurrences": written.unseen.occurrences,
            "learned_from": written.overlap,
            "warning": written.overlap.warning(),
        });
        if split.is_none() {
            report["unknown"] = selection::unknown_json(&written.unknown);
            report["without_codes"] = written.without_codes.into();
        }
        return Ok(terminal::print_json(&report)?);
    }
    let rows = counted(written.rows, "row", "rows");
    let encounters = counted(written.encounters, "encounter", "encounters");
    let said = format!("{rows} for {encounters}\n{left_out}");
    let text = match arguments.output.is_standard() {
        true => said,
        false => format!("{}: {said}", visible(arguments.output.out.display())),
    };
    terminal::print_summary(&text, arguments.output.is_standard(), quiet)
}

fn of_dataset(arguments: &Arguments, quiet: bool) -> Result<Predicted> {
    let (run, dataset, which) = arguments.selection.open()?;
    let run = arguments.raw.of(run);
    let options = arguments.options(&run.settings().task)?;
    let bar = selection::progress(&run, &dataset, which, "predicting encounters", quiet);
    let test_set = arguments.test.of(which);
    let written = arguments.output.with_target(|target| {
        let written = predict::score(&run, &dataset, test_set, options, target, &terminal::counting(&bar));
        bar.finish_and_clear();
        written
    })?;
    let left_out = selection::left_out(written.left_out, written.unseen, written.overlap);
    Ok(Predicted { written, split: Some(which), left_out })
}

fn of_file(arguments: &Arguments, file: &Path, quiet: bool) -> Result<Predicted> {
    arguments.test.refuse_for_file()?;
    let run = arguments.raw.of(arguments.selection.run()?);
    let options = arguments.options(&run.settings().task)?;
    let bar = terminal::progress(0, "predicting encounters", quiet);
    let written = arguments.output.with_target(|target| {
        let job = terminal::counting(&bar);
        let written = selection::incoming(&run, file, &job)
            .and_then(|incoming| predict::score_incoming(&run, incoming, options, target, &job));
        bar.finish_and_clear();
        written
    })?;
    let left_out = selection::left_out_of_file(&run, &written);
    Ok(Predicted { written, split: None, left_out })
}
