//! `gct card`: a run described for those who must judge it.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use gct::card::{self, Card, Item, Options};
use gct::dataset::{Dataset, Source};
use gct::infer::Which;
use gct::job::Job;
use gct::metric::Bootstrap;
use gct::run::Run;
use serde_json::{Value, json};

use crate::explain::write;
use crate::output::RequiredFile;
use crate::prepare;
use crate::selection::{self, TestArguments, WhichName};
use crate::terminal::{self, visible};

/// Write a model card: data, outcome, model, results, limits, how to repeat, in the order of TRIPOD+AI
///
/// The card says what the run, its dataset and an evaluation say. What only the authors of a model can know
/// is marked as theirs to complete.
#[derive(Args)]
#[command(after_help = "Examples:
  gct card runs/mortality --out card.md
  gct card runs/mortality --data another-hospital --out card.md     with results on other data
  gct card runs/mortality --out card.md --by sex,ethnicity          with these subgroups
  gct card runs/mortality --out card.md --min-cell 0                shows all counts")]
pub(crate) struct Arguments {
    /// The run folder
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// The dataset folder to evaluate on [default: the one that the run was trained on]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Which encounters to evaluate on [default: test of the run's own dataset, all of any other]
    #[arg(long, value_enum, value_name = "PART")]
    split: Option<WhichName>,

    #[command(flatten)]
    test: TestArguments,

    /// Evaluate subgroups by these names of context, such as sex or age [default: sex and age, where the data
    /// have them]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    by: Option<Vec<String>>,

    /// Hide counts from 1 to N-1, and those that would give such a count by subtraction; 0 hides nothing
    /// [default: 11; of synthetic data 0]
    #[arg(long, value_name = "N")]
    min_cell: Option<u64>,

    /// Bootstrap replicates for the intervals; 0 for no intervals
    #[arg(long, value_name = "N", default_value_t = 200)]
    bootstrap: u32,

    #[command(flatten)]
    out: RequiredFile,

    /// Print one JSON object with the sections of the card
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.out.check(&["md", "markdown"])?;
    let (run, dataset) = selection::open(&arguments.run, arguments.data.as_deref())?;
    let which = arguments.split.map_or_else(|| Which::default_for(&run, &dataset), WhichName::which);
    let options = Options {
        min_cell: arguments.min_cell.unwrap_or_else(|| usual_min_cell(&dataset)),
        bootstrap: Bootstrap { replicates: arguments.bootstrap, seed: 0 },
        by: arguments.by.clone(),
    };
    let bar = selection::progress(&run, &dataset, which, "evaluating encounters", quiet);
    let card = card::gather(&run, &dataset, arguments.test.of(which), &options, &terminal::counting(&bar));
    bar.finish_and_clear();
    let mut card = card?;
    let (out, overwrite) = arguments.out.target();
    card.add(commands(&run, &arguments.choices(&dataset), &arguments.own_choices(), out)?);
    write(out, &card.to_markdown(), overwrite)?;
    if arguments.json {
        let report = json!({ "card": out, "title": card.title, "sections": card.sections });
        return Ok(terminal::print_json(&report)?);
    }
    Ok(terminal::print(&told(&card, out))?)
}

fn told(card: &Card, out: &Path) -> String {
    let items = card.sections.iter().flat_map(|section| &section.items);
    let open = items.filter(|item| matches!(item, Item::ToComplete(_))).count();
    format!("{}: {} points are left for its authors to complete\n", visible(out.display()), open)
}

/// Nobody can be recognised in synthetic data.
pub(crate) fn usual_min_cell(dataset: &Dataset) -> u64 {
    if dataset.manifest().source.kind == gct::synth::SOURCE { 0 } else { gct::evaluate::Options::MIN_CELL }
}

impl Arguments {
    /// What was chosen for the evaluation, as flags with a space before each.
    fn choices(&self, dataset: &Dataset) -> String {
        let mut choices = String::new();
        if self.data.is_some() {
            choices += &format!(" --data {}", folder(dataset.path()));
        }
        if let Some(split) = self.split {
            choices += &format!(" --split {}", split.which().name());
        }
        choices += self.test.flag();
        if self.bootstrap != Bootstrap::default().replicates {
            choices += &format!(" --bootstrap {}", self.bootstrap);
        }
        choices
    }

    /// What was chosen for the card alone.
    fn own_choices(&self) -> String {
        let by = self.by.as_ref().map_or_else(String::new, |names| format!(" --by {}", names.join(",")));
        by + &self.min_cell.map_or_else(String::new, |least| format!(" --min-cell {least}"))
    }
}

/// The card of the demo's labels, as Markdown.
pub(crate) fn of_demo(run: &Run, dataset: &Dataset, out: &Path) -> Result<String> {
    let options = Options { min_cell: usual_min_cell(dataset), ..Options::default() };
    let job = Job::new(terminal::stop(), |_| {});
    let mut card = card::gather(run, dataset, Which::default_for(run, dataset).into(), &options, &job)?;
    card.add(commands(run, "", "", out)?);
    Ok(card.to_markdown())
}

/// The commands that make data, run, results and card again, with names of folders in place of the ways to
/// them.
fn commands(run: &Run, choices: &str, own_choices: &str, out: &Path) -> Result<Item> {
    let (data, name) = (folder(&run.manifest().dataset.path), folder(run.path()));
    let source = match run.dataset() {
        Ok(own) => Some(own.manifest().source.clone()),
        Err(_) => run.source()?,
    };
    let mut lines: Vec<String> = source.and_then(|source| making(&source, &data)).into_iter().collect();
    lines.push(format!("gct train --config {} --data {data} --out {name}", card::TRAINING_FILE));
    if let Some(calibration) = run.calibration()? {
        lines.push(format!("gct calibrate {name} --method {}", calibration.method().name()));
    }
    lines.push(format!("gct evaluate {name}{choices}"));
    lines.push(format!("gct card {name}{choices}{own_choices} --out {}", folder(out)));
    Ok(Item::Code(lines.join("\n")))
}

/// The command that makes a dataset, if its source says so.
fn making(source: &Source, data: &str) -> Option<String> {
    if source.kind == gct::synth::SOURCE {
        return Some(format!("gct synth --config {} --out {data}", card::DATA_FILE));
    }
    let text = |name: &str| source.settings.get(name).and_then(Value::as_str);
    let input = folder(Path::new(text("input")?));
    let rules = text("rules").map_or_else(String::new, |rules| format!(" --rules {rules}"));
    let kind = &source.kind;
    // A source of one's own has the name of its folder.
    let (kind, own) = match prepare::is_built_in(kind) {
        true => (kind.as_str(), String::new()),
        false => ("sql", format!(" --source {}", folder(Path::new(kind)))),
    };
    Some(format!("gct prepare {kind} {input}{own}{rules} --config {} --out {data}", card::DATA_FILE))
}

/// The last part of a path, in quotes where a shell needs them.
fn folder(path: &Path) -> String {
    let own = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = own.file_name().map_or_else(|| "data".into(), |name| name.to_string_lossy().into_owned());
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    if name.chars().all(is_plain) { name } else { format!("'{}'", name.replace('\'', "'\\''")) }
}
