//! `gct links`: which diagnosis leads to which treatment, and which treatment to which lab.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Args, ValueEnum};
use gct::dataset::Dataset;
use gct::infer::{Unseen, Which};
use gct::links::{self, Link, Links, Settings};
use gct::prior::Cells;
use serde_json::json;

use crate::output::RowsFile;
use crate::selection::{self, WhichName};
use crate::terminal::{self, count, counted, refusal, visible};

/// List the links between codes: a row per diagnosis and treatment, or treatment and lab, that occur together
///
/// Of a run: by the mean probability of an edge, if that is what it predicts, and by attention otherwise. Of
/// a table of gct prior, or of all encounters of a dataset: by counts.
#[derive(Args)]
#[command(after_help = "Examples:
  gct links runs/gct --out links.csv                    what the run's model finds in its test split
  gct links runs/gct --split all --min-support 20 --top 500 --out links.csv
  gct links synthea --by association --out links.parquet   what is together more often than by chance
  gct links prior.parquet --by conditional --out -      a table of gct prior, to standard output

The columns are kind, cause, cause_description, effect, effect_description, strength, low and high (the 95 %
interval of the strength), forward and backward (from cause to effect and back), encounters (with both codes),
edges_known and edges (of these, where true edges are known, and where there is one). How well links agree
with a list of known ones: gct evaluate --links.")]
pub(crate) struct Arguments {
    /// The run folder, a table of gct prior, or a dataset folder
    #[arg(value_name = "RUN|PRIOR|DATASET")]
    source: PathBuf,

    /// Of a run: the dataset folder [default: the dataset that the run was trained on]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Of a run: which encounters [default: test of the run's own dataset, all of any other]
    #[arg(long, value_enum, value_name = "PART")]
    split: Option<WhichName>,

    /// Of a table or a dataset: what the strength is [default: association]
    #[arg(long, value_enum)]
    by: Option<ByName>,

    /// Leave out pairs that fewer than N encounters have
    #[arg(long, value_name = "N", default_value_t = Settings::default().min_support)]
    min_support: u64,

    /// Leave out pairs and counts of fewer than N encounters, and what gives such a count by subtraction
    #[arg(long, value_name = "N", default_value_t = 0)]
    min_cell: u64,

    /// The N strongest of each kind [default: all]
    #[arg(long, value_name = "N")]
    top: Option<usize>,

    #[command(flatten)]
    output: RowsFile,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What the strength of counted links is.
#[derive(Clone, Copy, ValueEnum)]
enum ByName {
    /// The mean of p(effect|cause) and p(cause|effect)
    Conditional,
    /// How strongly the cause leads to the effect beside the other causes (of a dataset)
    Explained,
    /// How many standard deviations the two are together more often than by chance
    Association,
}

impl ByName {
    fn cells(self) -> Cells {
        match self {
            ByName::Conditional => Cells::Conditional,
            ByName::Explained => Cells::Explained,
            ByName::Association => Cells::Association,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check(&["parquet", "csv", "jsonl"], arguments.json)?;
    let settings =
        Settings { min_support: arguments.min_support, min_cell: arguments.min_cell, top: arguments.top };
    let is_run = arguments.source.join("run.json").exists();
    let links = if is_run {
        of_run(arguments, &settings, quiet)?
    } else {
        counted_links(arguments, &settings, quiet)?
    };
    arguments.output.with_target(|target| links.write(target))?;
    if arguments.json {
        return Ok(terminal::print_json(&report(arguments, &links))?);
    }
    let text = summary(arguments, &links);
    terminal::print_summary(&text, arguments.output.is_standard(), quiet)
}

fn of_run(arguments: &Arguments, settings: &Settings, quiet: bool) -> Result<Links> {
    if arguments.by.is_some() {
        let hint = "leave it out, or give the run's dataset instead of the run";
        return Err(refusal("--by is for counts, and the strengths of a run are its model's", hint));
    }
    let (run, dataset) = selection::open(&arguments.source, arguments.data.as_deref())?;
    let which = arguments.split.map_or_else(|| Which::default_for(&run, &dataset), WhichName::which);
    let bar = selection::progress(&run, &dataset, which, "reading encounters", quiet);
    let links = links::of_run(&run, &dataset, which, settings, &terminal::counting(&bar));
    bar.finish_and_clear();
    Ok(links?)
}

/// Of a table or a dataset.
fn counted_links(arguments: &Arguments, settings: &Settings, quiet: bool) -> Result<Links> {
    let flags = [("--data", arguments.data.is_some()), ("--split", arguments.split.is_some())];
    if let Some((flag, _)) = flags.into_iter().find(|(_, is_given)| *is_given) {
        let problem = format!("{flag} is for runs, and a table or a dataset is counted as a whole");
        return Err(refusal(problem, "leave it out; gct prior counts a training split"));
    }
    let by = arguments.by.unwrap_or(ByName::Association).cells();
    if is_table(&arguments.source) {
        return Ok(links::of_file(&arguments.source, by, settings)?);
    }
    let dataset = Dataset::open(&arguments.source)?;
    let bar = terminal::progress(dataset.manifest().encounters, "counting encounters", quiet);
    let links = links::of_dataset(&dataset, by, settings, &terminal::counting(&bar));
    bar.finish_and_clear();
    Ok(links?)
}

fn is_table(path: &Path) -> bool {
    path.exists() && !path.is_dir()
}

fn summary(arguments: &Arguments, links: &Links) -> String {
    let of = links.encounters.map(|all| format!(", over {} encounters", count(all))).unwrap_or_default();
    let what = counted(links.links.len() as u64, "link", "links");
    let said = format!("{what} by {}{of}\n", links.strength.name());
    let mut text = match arguments.output.is_standard() {
        true => said,
        false => format!("{}: {said}", visible(arguments.output.out.display())),
    };
    text += &selection::left_out(links.left_out, links.unseen, gct::infer::Overlap::default());
    for kind in ["diagnosis", "treatment"] {
        let of_kind = |link: &&Link| link.cause.0.name() == kind;
        for link in links.links.iter().filter(of_kind).take(3) {
            let [cause, effect] = [link.cause, link.effect].map(|code| visible(&links.code(code).code));
            let encounters = counted(link.encounters, "encounter", "encounters");
            text += &format!("  {cause} -> {effect}  {:.3}  {encounters}\n", link.strength);
        }
    }
    text
}

fn report(arguments: &Arguments, links: &Links) -> serde_json::Value {
    let Unseen { codes, occurrences } = links.unseen;
    json!({
        "out": arguments.output.out,
        "links": links.links.len(),
        "strength": links.strength.name(),
        "encounters": links.encounters,
        "left_out": links.left_out,
        "unseen_codes": codes,
        "unseen_occurrences": occurrences,
    })
}
