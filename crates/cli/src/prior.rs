//! `gct prior`: conditional probabilities of the training split.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use gct::dataset::Dataset;
use serde_json::json;

use crate::output::OutputFile;
use crate::split::SplitArguments;
use crate::terminal::{self, count};

/// Count p(m|d), p(d|m), p(r|m) and p(m|r) on the training split
#[derive(Args)]
#[command(after_help = "Example:
  gct prior synthetic --out prior.parquet
  gct train --data other --task readmission --prior prior.parquet --out runs/gct

The file has the columns given_kind, given_id, given_code, kind, id, code, count, given_count, probability,
encounters, and association, the signed root of chi-squared of the two codes; gct train --prior fills P with
it, also for another dataset with the same codes.")]
pub(crate) struct Arguments {
    /// The dataset folder
    #[arg(value_name = "DIR")]
    data: PathBuf,

    #[command(flatten)]
    split: SplitArguments,

    #[command(flatten)]
    output: OutputFile,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check()?;
    let dataset = Dataset::open(&arguments.data)?;
    let split = arguments.split.split(&dataset)?;
    let bar = terminal::progress(dataset.manifest().encounters, "counting encounters", quiet);
    let start = Instant::now();
    let prior = gct::prior::fit(&dataset, &split, &terminal::counting(&bar));
    bar.finish_and_clear();
    let (prior, seconds) = (prior?, start.elapsed().as_secs_f64());
    if let Some((out, overwrite)) = arguments.output.target() {
        prior.write(out, overwrite, dataset.vocabulary())?;
    }
    if arguments.json {
        return Ok(terminal::print_json(&json!({
            "training_encounters": prior.encounters(),
            "pairs": prior.pairs(),
            "seconds": seconds,
        }))?);
    }
    let text = format!(
        "{} training encounters, {} pairs of codes seen together, in {seconds:.2} s\n",
        count(prior.encounters()),
        count(prior.pairs() as u64),
    );
    Ok(terminal::print(&text)?)
}
