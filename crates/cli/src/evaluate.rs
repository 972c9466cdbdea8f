//! `gct evaluate`: how good a model is.

use anyhow::Result;
use clap::Args;
use gct::evaluate::{self, Evaluation};
use gct::metric::{Bootstrap, Estimate, Scores};
use gct::run::Run;
use serde_json::{Value, json};

use crate::selection::{self, RawArguments, SelectionArguments, TestArguments};
use crate::terminal::{self, count, score, visible};

/// Evaluate a model: AUCPR, AUROC, accuracy, calibration with 95 % intervals, and attention beside true edges
///
/// Intervals are from a bootstrap over subjects. With several labels, metrics are of all of them together,
/// then of each.
#[derive(Args)]
#[command(after_help = "Examples:
  gct evaluate runs/gct
  gct evaluate runs/gct --split validation --json
  gct evaluate runs/gct --data another-dataset      of the same source; codes that the run does not know are left out,
                                                    and so are subjects that it learned from")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,

    #[command(flatten)]
    test: TestArguments,

    #[command(flatten)]
    raw: RawArguments,

    /// Bootstrap replicates for the intervals; 0 for no intervals
    #[arg(long, value_name = "N", default_value_t = 200)]
    bootstrap: u32,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let (run, dataset, which) = arguments.selection.open()?;
    let run = arguments.raw.of(run);
    let bootstrap = Bootstrap { replicates: arguments.bootstrap, seed: 0 };
    let bar = selection::progress(&run, &dataset, which, "evaluating encounters", quiet);
    let evaluation =
        evaluate::run(&run, &dataset, arguments.test.of(which), bootstrap, &terminal::counting(&bar));
    bar.finish_and_clear();
    let evaluation = evaluation?;
    if arguments.json {
        return Ok(terminal::print_json(&report(&run, &evaluation))?);
    }
    let settings = run.settings();
    let best = run.entries()?.iter().rfind(|entry| entry.best).map(|entry| entry.step);
    let weights = best.map_or("last weights".into(), |step| format!("best weights, of step {}", count(step)));
    let mut text = format!(
        "{} on {}, {weights}, {} encounters of {}\n",
        settings.model.name(),
        visible(&settings.task),
        count(evaluation.encounters),
        evaluation.split
    );
    if let Some(method) = evaluation.calibrated {
        text += &format!("calibrated by {method}\n");
    }
    text += &selection::left_out(evaluation.left_out, evaluation.unseen, evaluation.overlap);
    text += &format!("\n{}", table(&evaluation.scores));
    for (label, scores) in &evaluation.labels {
        text += &format!("\n{}\n{}", visible(label), table(scores));
    }
    text += &structure(&evaluation);
    Ok(terminal::print(&text)?)
}

fn table(scores: &Scores) -> String {
    let interval = |estimate: &Estimate| match estimate.interval {
        Some([low, high]) => format!("{low:.4} to {high:.4}"),
        None => "-".into(),
    };
    let rows = scores
        .0
        .iter()
        .map(|(name, estimate)| vec![name.replace('_', " "), score(estimate.value), interval(estimate)]);
    terminal::table(&["", "", "95 % interval"], rows)
}

fn structure(evaluation: &Evaluation) -> String {
    let Some(structure) = &evaluation.structure else { return String::new() };
    let rows = [
        ("KL(attention || truth)", &structure.kl_attention_truth),
        ("KL(truth || attention)", &structure.kl_truth_attention),
        ("entropy", &structure.entropy),
        ("AUCPR of true edges by attention", &structure.edges_aucpr),
    ];
    let blocks = structure.entropy.blocks.len();
    let header: Vec<String> = ["attention".to_owned()]
        .into_iter()
        .chain((1..=blocks).map(|block| format!("block {block}")))
        .chain(["mean".to_owned()])
        .collect();
    let rows = rows.map(|(name, estimate)| {
        let numbers = estimate.blocks.iter().chain([&estimate.mean]).map(|number| score(*number));
        [name.to_owned()].into_iter().chain(numbers).collect()
    });
    format!("\n{}", terminal::table(&header.iter().map(String::as_str).collect::<Vec<_>>(), rows))
}

pub(crate) fn report(run: &Run, evaluation: &Evaluation) -> Value {
    let settings = run.settings();
    let mut report = json!({
        "task": settings.task.to_string(),
        "model": settings.model.name(),
        "calibrated": evaluation.calibrated,
        "split": evaluation.split,
        "encounters": evaluation.encounters,
        "left_out": evaluation.left_out,
        "unseen_codes": evaluation.unseen.codes,
        "unseen_occurrences": evaluation.unseen.occurrences,
        "learned_from": evaluation.overlap,
        "warning": evaluation.overlap.warning(),
    });
    terminal::extend(&mut report, metrics(&evaluation.scores));
    if !evaluation.labels.is_empty() {
        let labels = evaluation.labels.iter().map(|(label, scores)| (label.clone(), metrics(scores)));
        report["labels"] = labels.collect::<serde_json::Map<_, _>>().into();
    }
    if let Some(structure) = &evaluation.structure {
        report["structure"] = json!(structure);
    }
    report
}

fn metrics(scores: &Scores) -> Value {
    let mut object = serde_json::Map::new();
    for (name, estimate) in &scores.0 {
        object.insert((*name).into(), json!(estimate.value));
        object.insert(format!("{name}_interval"), json!(estimate.interval));
    }
    object.into()
}
