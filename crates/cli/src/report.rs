//! `gct report`: runs as one page to look at.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use gct::dataset::Dataset;
use gct::infer::Which;
use gct::metric::{Aim, Bootstrap};
use gct::report::{self, Looked, Made, Options};
use gct::run::Run;
use serde_json::json;

use crate::explain::write;
use crate::output::RequiredFile;
use crate::selection::{self, RawArguments, TestArguments, WhichName};
use crate::terminal::{self, count, refusal, visible};

/// Write a page to look at: metrics and curves, encounters with explanations, links and a map of codes
///
/// The page is a single file that needs no network. It holds codes of single encounters, without identifiers
/// unless --with-ids is given; with --min-cell it holds none.
#[derive(Args)]
#[command(after_help = "Examples:
  gct report runs/gct --out report.html
  gct report runs/gct runs/transformer --out report.html       side by side
  gct report runs/gct --min-cell 11 --out report.html          no encounters, and no count from 1 to 10")]
pub(crate) struct Arguments {
    /// Run folders; several are compared
    #[arg(value_name = "RUN", required = true)]
    runs: Vec<PathBuf>,

    /// The dataset folder [default: the one that each run was trained on]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Which encounters [default: test of a run's own dataset, all of any other]
    #[arg(long, value_enum, value_name = "PART")]
    split: Option<WhichName>,

    #[command(flatten)]
    test: TestArguments,

    #[command(flatten)]
    raw: RawArguments,

    #[command(flatten)]
    look: LookArguments,

    #[command(flatten)]
    out: RequiredFile,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// What a page tells.
#[derive(Args, Clone)]
pub(crate) struct LookArguments {
    /// Encounters of each run on the page [default: 200; of a server 5000, none of real patients; with
    /// --min-cell none]
    #[arg(long, value_name = "N")]
    pub(crate) encounters: Option<usize>,

    /// Show the identifiers of encounters
    #[arg(long)]
    pub(crate) with_ids: bool,

    /// Hide encounters, counts from 1 to N-1 and codes of fewer than N encounters; 0 hides nothing
    /// [default: 0; of a server with data of real patients 11, unless --encounters shows some]
    #[arg(long, value_name = "N")]
    pub(crate) min_cell: Option<u64>,

    /// Bootstrap replicates for the intervals; 0 for no intervals
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub(crate) bootstrap: u32,

    /// What the threshold of alerts reaches on the validation split: sensitivity=S, specificity=S or ppv=S
    /// from 0 to 1, alerts=N per 1,000; can be repeated, the first counts [default: sensitivity=0.8, if it
    /// can be had]
    #[arg(long, value_name = "AIM")]
    pub(crate) at: Vec<String>,

    /// Groups of patients to evaluate: by context (sex for the codes sex=female and sex=male) or columns of
    /// --table [default: sex and age, if the run has them]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    pub(crate) by: Vec<String>,

    /// A CSV or Parquet file with a column encounter_id, a row per encounter, and columns to group by
    #[arg(long, value_name = "FILE", requires = "by")]
    pub(crate) table: Option<PathBuf>,
}

impl LookArguments {
    /// What that means for a page that shows so many encounters unless told otherwise.
    pub(crate) fn options(&self, usual: usize) -> Result<Options> {
        let min_cell = self.min_cell.unwrap_or_default();
        let encounters = self.encounters.unwrap_or(if min_cell > 1 { 0 } else { usual });
        if self.with_ids && encounters == 0 {
            return Err(refusal(
                "--with-ids is for the encounters on the page, and it shows none",
                "leave it out",
            ));
        }
        Ok(Options {
            encounters,
            with_ids: self.with_ids,
            min_cell,
            bootstrap: Bootstrap { replicates: self.bootstrap, seed: 0 },
            at: self.aims()?,
            by: (!self.by.is_empty()).then(|| self.by.clone()),
            table: self.table.clone(),
            ..Options::default()
        })
    }
}

impl LookArguments {
    fn aims(&self) -> gct::Result<Option<Vec<Aim>>> {
        let aims = self.at.iter().map(|aim| aim.parse()).collect::<gct::Result<Vec<Aim>>>()?;
        Ok((!aims.is_empty()).then_some(aims))
    }
}

impl Arguments {
    /// The command that makes the same page, without what has no part in it.
    fn command(&self) -> String {
        let mut words = vec!["gct report".to_owned()];
        words.extend(self.runs.iter().map(|run| run.display().to_string()));
        let mut flag = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("--{name} {value}")));
        };
        flag("data", self.data.as_ref().map(|data| data.display().to_string()));
        flag("split", self.split.map(|split| split.which().name().to_owned()));
        flag("encounters", self.look.encounters.map(|number| number.to_string()));
        flag("min-cell", self.look.min_cell.map(|number| number.to_string()));
        self.look.at.iter().for_each(|aim| flag("at", Some(aim.clone())));
        flag("by", (!self.look.by.is_empty()).then(|| self.look.by.join(",")));
        flag("table", self.look.table.as_ref().map(|table| table.display().to_string()));
        words.join(" ")
    }
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.out.check(&["html", "htm"])?;
    let options = arguments.look.options(Options::default().encounters)?;
    let opened: Vec<(Run, Dataset)> = (arguments.runs.iter())
        .map(|run| selection::open(run, arguments.data.as_deref()))
        .map(|opened| opened.map(|(run, dataset)| (arguments.raw.of(run), dataset)))
        .collect::<gct::Result<_>>()?;
    let folders: Vec<&Path> = arguments.runs.iter().map(PathBuf::as_path).collect();
    let looked: Vec<Looked<'_>> = (opened.iter().zip(report::names(&folders)))
        .map(|((run, dataset), name)| {
            let which = arguments.split.map_or_else(|| Which::default_for(run, dataset), WhichName::which);
            Looked { name, run, dataset, test_set: arguments.test.of(which) }
        })
        .collect();
    let html = page(&looked, &options, Some(arguments.command()), quiet)?;
    let (out, overwrite) = arguments.out.target();
    write(out, &html, overwrite)?;
    if arguments.json {
        let report = json!({ "report": out, "bytes": html.len(), "runs": looked.len() });
        return Ok(terminal::print_json(&report)?);
    }
    let size = count(html.len() as u64 / 1000);
    Ok(terminal::print(&format!("{}, {size} kB; open it in a browser\n", visible(out.display())))?)
}

/// For a page that is a by-product: encounters are on it only if no patient stands behind them.
pub(crate) fn by_product(dataset: &Dataset, encounters: usize) -> Options {
    let is_made_up = dataset.manifest().source.kind == gct::synth::SOURCE;
    Options { encounters: if is_made_up { encounters } else { 0 }, ..Options::default() }
}

/// The page of some runs.
pub(crate) fn page(
    looked: &[Looked<'_>],
    options: &Options,
    command: Option<String>,
    quiet: bool,
) -> gct::Result<String> {
    let total = looked.iter().map(|one| selection::estimate(one.run, one.dataset, one.test_set.which)).sum();
    let bar = terminal::progress(total, "looking at encounters", quiet);
    let report = report::gather(looked, options, &terminal::counting(&bar));
    bar.finish_and_clear();
    let mut report = report?;
    report.made = Some(Made::today(command));
    Ok(report::html(&report))
}
