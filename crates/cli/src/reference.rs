//! `gct evaluate --links`: the links that a run finds, beside those that are known.

use std::path::Path;

use anyhow::Result;
use gct::dataset::Dataset;
use gct::infer::{Overlap, Which};
use gct::links::{Comparison, Reference, RuleScores, Settings, compare};
use gct::metric::{Bootstrap, Estimate};
use gct::run::Run;
use serde_json::json;

use crate::selection;
use crate::terminal::{self, count, counted, percent, score, visible};

/// What stands for the true edges of the dataset in place of a file.
const TRUE_EDGES: &str = "true";

/// What is evaluated: the run, encounters, and how often subjects and diagnoses are drawn.
pub(crate) struct Asked<'a> {
    pub(crate) run: &'a Run,
    pub(crate) dataset: &'a Dataset,
    pub(crate) which: Which,
    pub(crate) bootstrap: Bootstrap,
    pub(crate) min_support: u64,
}

pub(crate) fn run(asked: &Asked<'_>, links: &Path, json: bool, quiet: bool) -> Result<()> {
    let &Asked { run, dataset, which, bootstrap, min_support } = asked;
    let bar = selection::progress(run, dataset, which, "reading encounters", quiet);
    let job = terminal::counting(&bar);
    let reference = match links.as_os_str() == TRUE_EDGES {
        true => Reference::of_edges(run, dataset, which, &job),
        false => Reference::open(links, run, &job),
    };
    let settings = Settings { min_support, ..Settings::default() };
    let compared = reference
        .and_then(|reference| compare(run, dataset, which, reference, (&settings, &bootstrap), &job));
    bar.finish_and_clear();
    let compared = compared?;
    if json {
        return Ok(terminal::print_json(&json!(compared))?);
    }
    let name = match links.as_os_str() == TRUE_EDGES {
        true => "the true edges".into(),
        false => visible(links.display()).to_string(),
    };
    Ok(terminal::print(&text(run, &name, min_support, &compared))?)
}

fn text(run: &Run, name: &str, min_support: u64, compared: &Comparison) -> String {
    let Comparison { reference, candidates, positives, .. } = compared;
    let settings = run.settings();
    let mut text = format!(
        "links of {} on {} beside {name}, {} encounters of {}\n",
        settings.model.name(),
        visible(&settings.task),
        count(compared.encounters),
        compared.split,
    );
    text += &selection::left_out(compared.left_out, compared.unseen, Overlap::default());
    text += &format!(
        "{} of the reference, {} of them known to the run",
        counted(reference.rows, "pair", "pairs"),
        count(compared.known_pairs)
    );
    let unknown = [(reference.unknown_diagnoses, "diagnosis"), (reference.unknown_treatments, "treatment")];
    for (rows, kind) in unknown.into_iter().filter(|(rows, _)| *rows > 0) {
        text += &format!("; {} with an unknown {kind}", counted(rows, "row", "rows"));
    }
    text += &format!(
        "\n{} pairs of a diagnosis and a treatment of the reference in at least {} each, {} of them on it ({})\n",
        count(*candidates),
        counted(min_support.max(1), "encounter", "encounters"),
        count(*positives),
        percent(Some(compared.chance)),
    );
    text += &format!(
        "{} treatments in an encounter with a diagnosis of the reference\n\n",
        count(compared.treatments_within)
    );
    let header = ["by", "average precision", "", "precision at 100", "first in encounter", ""];
    let rows = compared.rules.iter().map(row).chain([chance(compared)]);
    text + &terminal::table(&header, rows)
        + "Intervals (95 %) of the average precision are over diagnoses, in encounters over subjects.\n"
}

fn row(scores: &RuleScores) -> Vec<String> {
    vec![
        scores.rule.into(),
        score(scores.average_precision.value),
        ends(&scores.average_precision),
        score(scores.precision_at_100),
        score(scores.first_within.value),
        ends(&scores.first_within),
    ]
}

fn chance(compared: &Comparison) -> Vec<String> {
    let (chance, within) = (Some(compared.chance), &compared.chance_within);
    vec!["chance".into(), score(chance), String::new(), score(chance), score(within.value), ends(within)]
}

fn ends(estimate: &Estimate) -> String {
    estimate.interval.map_or_else(|| "-".into(), |[low, high]| format!("{low:.4} to {high:.4}"))
}
