//! `gct inspect --leaks`: the codes that give a label away.

use anyhow::Result;
use clap::Args;
use gct::dataset::Dataset;
use gct::leaks::{self, Leak, Leaks, SingleCode};
use gct::question::Question;
use serde_json::json;

use crate::split::SplitArguments;
use crate::terminal::{self, count, percent, score, visible};

#[derive(Args)]
#[command(mut_group("SplitArguments", |group| group.requires("leaks")))]
pub(crate) struct LeakArguments {
    /// Only list the codes that give a label away, counted on the training split
    #[arg(long, value_name = "LABEL")]
    leaks: Option<String>,

    /// How many codes to list at most, the strongest first [default: 20]
    #[arg(long, value_name = "N", requires = "leaks")]
    top: Option<usize>,

    /// Hide counts from 1 to N-1, counts that reveal them by subtraction, and codes of fewer than N
    /// encounters [default: 0]
    #[arg(long, value_name = "N", requires = "leaks")]
    min_cell: Option<u64>,

    #[command(flatten)]
    split: SplitArguments,
}

/// What was found, and how it is shown.
pub(crate) struct Listed {
    found: Leaks,
    top: usize,
}

impl LeakArguments {
    /// The codes that give the label away, if that is wanted.
    pub(crate) fn find(&self, dataset: &Dataset, quiet: bool) -> Result<Option<Listed>> {
        let Some(name) = &self.leaks else { return Ok(None) };
        let label = label_of(name, dataset)?;
        let split = self.split.split(dataset)?;
        let bar = terminal::progress(dataset.manifest().encounters, "reading encounters", quiet);
        let (min_cell, job) = (self.min_cell.unwrap_or(0), terminal::counting(&bar));
        let found = leaks::find(dataset, &split, &label, min_cell, &job);
        bar.finish_and_clear();
        Ok(Some(Listed { found: found?, top: self.top.unwrap_or(20) }))
    }
}

/// A label as `--task` of a training names it: `label:died`, `died`, `Mortality`.
fn label_of(name: &str, dataset: &Dataset) -> gct::Result<String> {
    let labels = &dataset.manifest().labels;
    let of_task = Question::named(name, labels).map(|task| task.labels());
    let label = match of_task.as_deref() {
        Ok([label]) => label.as_str(),
        _ => name,
    };
    dataset.label(label).map(|_| label.to_owned())
}

impl Listed {
    pub(crate) fn print(&self, json: bool) -> Result<()> {
        if json {
            return Ok(terminal::print_json(&self.report())?);
        }
        let mut text = head(&self.found);
        text += &self.table();
        text += &self.how_many();
        text += &best(&self.found);
        Ok(terminal::print(&text)?)
    }

    fn table(&self) -> String {
        let rows: Vec<Vec<String>> = self.found.leaks.iter().take(self.top).map(row).collect();
        if rows.is_empty() {
            return String::new();
        }
        let header = [
            "code",
            "kind",
            "gives away",
            "encounters",
            "positive",
            "precision",
            "coverage",
            "LR at least",
            "AUROC",
            "AUCPR",
        ];
        format!("{}\n", terminal::table(&header, rows))
    }

    fn how_many(&self) -> String {
        let Leaks { leaks, hidden, codes, .. } = &self.found;
        let (all, of) = (leaks.len() as u64 + hidden, count(*codes));
        let mut text = match all {
            0 => format!("no code of {of} gives it away"),
            1 => format!("1 code of {of} gives it away"),
            _ => format!("{} codes of {of} give it away", count(all)),
        };
        if leaks.len() > self.top {
            text += &format!("; --top {} lists all", leaks.len());
        }
        if *hidden > 0 {
            text += &format!("; {} not listed, since too few encounters have the code", count(*hidden));
        }
        if all > 0 {
            text += "\nThis is a list to look at, not a test: is each code known before the label is?";
        }
        text + "\n"
    }

    fn report(&self) -> serde_json::Value {
        let mut found = self.found.clone();
        found.leaks.truncate(self.top);
        let mut report = json!({ "split": "train", "leaks_found": self.found.leaks.len() });
        terminal::extend(&mut report, json!(found));
        report
    }
}

/// The label on the training split.
fn head(found: &Leaks) -> String {
    let [training, known, positive] =
        [found.training_encounters, found.known, found.positive].map(|number| shown(number, count));
    let base_rate = match found.known {
        Some(0) => percent(None),
        _ => shown(found.base_rate, |share| percent(Some(share))),
    };
    let label = visible(&found.label);
    format!(
        "label {label}, training split: {training} encounters, known in {known}, \
         positive in {positive} ({base_rate})\n\n"
    )
}

fn row(Leak { code, present, value, likelihood_ratio }: &Leak) -> Vec<String> {
    let name = match &code.description {
        Some(description) => format!("{} {description}", code.code),
        None => code.code.clone(),
    };
    let (value, how) =
        (if *value { "positive" } else { "negative" }, if *present { "with" } else { "without" });
    vec![
        name,
        code.kind.name().into(),
        format!("{value} {how} it"),
        shown(code.encounters, count),
        shown(code.positive, count),
        shown(code.precision, |share| percent(Some(share))),
        shown(code.coverage, |share| percent(Some(share))),
        shown(*likelihood_ratio, |ratio| format!("{ratio:.1}")),
        shown(code.auroc, |area| score(Some(area))),
        shown(code.aucpr, |area| score(Some(area))),
    ]
}

/// How far one code gets.
fn best(found: &Leaks) -> String {
    let line = |metric: &str, code: &Option<SingleCode>, area: fn(&SingleCode) -> Option<f64>| match code {
        Some(code) => {
            let area = shown(area(code), |area| score(Some(area)));
            format!("best {metric} of one code alone: {area}, {}\n", visible(&code.code))
        }
        None => String::new(),
    };
    line("AUROC", &found.best_auroc, |code| code.auroc) + &line("AUCPR", &found.best_aucpr, |code| code.aucpr)
}

/// A number, unless --min-cell hides it.
fn shown<T>(number: Option<T>, show: impl Fn(T) -> String) -> String {
    number.map_or("hidden".into(), show)
}
