//! `gct evaluate`: how good a model is.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use gct::evaluate::{self, Counts, Details, Evaluation, Options, Subgroup};
use gct::links::Settings;
use gct::metric::{Bootstrap, Estimate, NetBenefit, OperatingPoint, Scores};
use gct::question::Question;
use gct::run::Run;
use serde_json::{Value, json};

use crate::reference::{self, Asked};
use crate::selection::{self, RawArguments, SelectionArguments, TestArguments};
use crate::terminal::{self, count, counted, percent, refusal, score, visible};

/// Files of new encounters have no answers to compare with.
const DATA: &str = "The dataset folder [default: the dataset that the run was trained on]";

/// Evaluate a model: AUCPR, AUROC, accuracy, calibration with 95 % intervals, and attention beside true edges
///
/// Intervals are from a bootstrap over subjects. With several labels, metrics are of all of them together,
/// then of each. The JSON also has operating points, the calibration curve and the decision curve of labels;
/// of next_diagnoses the AUROC of the most frequent diagnoses.
#[derive(Args)]
#[command(mut_arg("data", |data| data.value_name("DIR").help(DATA)))]
#[command(after_help = "Examples:
  gct evaluate runs/gct
  gct evaluate runs/gct --thresholds 0.1,0.2        sensitivity, specificity, PPV, NPV and alerts
  gct evaluate runs/gct --at sensitivity=0.8        the same at the threshold that reaches it on validation
  gct evaluate runs/gct --by sex,age                subgroups, and the gap between each and all others
  gct evaluate runs/gct --by ward --table wards.csv
  gct evaluate runs/gct --links indications.csv     how many links between codes are on a list of known ones
  gct evaluate runs/gct --split validation --json
  gct evaluate runs/gct --data another-dataset      without the codes that the run does not know, and without
                                                    the subjects that it learned from")]
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

    /// Print sensitivity, specificity, PPV, NPV and alerts at these thresholds: probabilities above which a
    /// label is predicted; without a number, at 0.01, 0.02, 0.05, 0.1, 0.2, 0.3 and 0.5
    #[arg(long, value_name = "P,...", num_args = 0..=1, value_delimiter = ',')]
    thresholds: Option<Vec<f64>>,

    /// Print the same at a threshold chosen on the validation split: the one that reaches sensitivity=S,
    /// specificity=S or ppv=S (0 to 1), or alerts=N per 1,000 encounters; can be repeated
    #[arg(long, value_name = "AIM")]
    at: Vec<String>,

    /// Print the net benefit of treating by the model, beside treating all and treating none
    #[arg(long)]
    net_benefit: bool,

    /// Evaluate subgroups: by context (sex for the codes sex=female and sex=male) or columns of --table
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    by: Vec<String>,

    /// A CSV or Parquet file with a column encounter_id, a row per encounter, and columns to group by
    #[arg(long, value_name = "FILE", requires = "by")]
    table: Option<PathBuf>,

    /// Leave out subgroups with fewer than N encounters, subjects, positives or negatives, and those that
    /// would give one by subtraction; of next_diagnoses also single diagnoses with fewer; 0 leaves out none
    /// [default: 11]
    #[arg(long, value_name = "N")]
    min_cell: Option<u64>,

    /// Compare the links between codes with known ones, in place of the metrics of the task: a CSV or Parquet
    /// file with columns diagnosis and treatment, as codes; `true` for the true edges of the dataset
    #[arg(
        long,
        value_name = "FILE|true",
        conflicts_with_all = ["thresholds", "at", "net_benefit", "by", "table", "min_cell", "raw", "include_training"]
    )]
    links: Option<PathBuf>,

    /// With --links: leave out pairs that fewer than N encounters have [default: 5]
    #[arg(long, value_name = "N", requires = "links")]
    min_support: Option<u64>,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn options(&self, question: &Question) -> Result<Options> {
        self.check(question)?;
        let given = self.thresholds.clone().filter(|thresholds| !thresholds.is_empty());
        Ok(Options {
            bootstrap: Bootstrap { replicates: self.bootstrap, seed: 0 },
            thresholds: given.unwrap_or_else(|| Options::THRESHOLDS.to_vec()),
            at: self.at.iter().map(|aim| aim.parse()).collect::<gct::Result<_>>()?,
            by: self.by.clone(),
            table: self.table.clone(),
            min_cell: self.min_cell.unwrap_or(Options::MIN_CELL),
        })
    }

    /// Refuses what has no effect: thresholds where no label is predicted, a smallest cell where nothing
    /// could be smaller.
    fn check(&self, question: &Question) -> Result<()> {
        let has_cells = match question {
            Question::NextDiagnoses(_) => true,
            Question::Edges | Question::Labels(_) | Question::HiddenDiagnosis | Question::HiddenCode => {
                !self.by.is_empty()
            }
        };
        if self.min_cell.is_some() && !has_cells {
            return Err(refusal(
                "--min-cell is for subgroups",
                "give --by <NAME,...> as well, or leave it out",
            ));
        }
        let flags = [
            ("--thresholds", self.thresholds.is_some()),
            ("--at", !self.at.is_empty()),
            ("--net-benefit", self.net_benefit),
        ];
        match (question, flags.into_iter().find(|(_, is_given)| *is_given)) {
            (Question::Labels(_), _) | (_, None) => Ok(()),
            (
                Question::Edges
                | Question::HiddenDiagnosis
                | Question::HiddenCode
                | Question::NextDiagnoses(_),
                Some((flag, _)),
            ) => {
                let problem = format!("{flag} is for labels, and this run predicts {}", question.in_words());
                Err(refusal(problem, "leave it out"))
            }
        }
    }

    /// What is printed of all predictions, or of those of one label.
    fn text(&self, scores: &Scores, details: &Details) -> String {
        let mut text = table(scores, details);
        let Some(decisions) = &details.decisions else { return text + &subgroups(&details.subgroups) };
        let is_shown = |point: &&OperatingPoint| self.thresholds.is_some() || point.chosen_for.is_some();
        let shown: Vec<&OperatingPoint> = decisions.thresholds.iter().filter(is_shown).collect();
        if !shown.is_empty() {
            text += &operating_points(&shown);
        }
        if self.net_benefit {
            text += &net_benefit(&decisions.net_benefit);
        }
        text + &subgroups(&details.subgroups)
    }
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let (run, dataset, which) = arguments.selection.open()?;
    if let Some(links) = &arguments.links {
        let bootstrap = Bootstrap { replicates: arguments.bootstrap, seed: 0 };
        let min_support = arguments.min_support.unwrap_or(Settings::default().min_support);
        let asked = Asked { run: &run, dataset: &dataset, which, bootstrap, min_support };
        return reference::run(&asked, links, arguments.json, quiet);
    }
    let run = arguments.raw.of(run);
    let options = arguments.options(&run.settings().task)?;
    let bar = selection::progress(&run, &dataset, which, "evaluating encounters", quiet);
    let evaluation =
        evaluate::run(&run, &dataset, arguments.test.of(which), options, &terminal::counting(&bar));
    bar.finish_and_clear();
    let evaluation = evaluation?;
    if arguments.json {
        return Ok(terminal::print_json(&report(&run, &evaluation))?);
    }
    let settings = run.settings();
    let best = run.entries()?.iter().rfind(|entry| entry.best).map(|entry| entry.step);
    let weights = best.map_or("last weights".into(), |step| format!("best weights, of step {}", count(step)));
    let mut text = format!(
        "{} on {}, {weights}, {} encounters of {}\n{}",
        settings.model.name(),
        visible(&settings.task),
        count(evaluation.encounters),
        evaluation.split,
        counts(&settings.task, &evaluation.details.counts)
    );
    if let Some(method) = evaluation.calibrated {
        text += &format!("calibrated by {method}\n");
    }
    text += &selection::left_out(evaluation.left_out, evaluation.unseen, evaluation.overlap);
    text += &format!("\n{}", arguments.text(&evaluation.scores, &evaluation.details));
    for label in &evaluation.labels {
        let counts = counts(&settings.task, &label.details.counts);
        let shown = arguments.text(&label.scores, &label.details);
        text += &format!("\n{}\n{counts}\n{shown}", visible(&label.name));
    }
    text += &structure(&evaluation);
    Ok(terminal::print(&text)?)
}

/// How much was predicted, and how much of it is true.
fn counts(question: &Question, counts: &Counts) -> String {
    let (what, true_ones) = match question {
        Question::Edges => ("pairs of nodes", "are connected"),
        Question::Labels(_) => ("labels", "are positive"),
        Question::HiddenDiagnosis => ("hidden diagnoses", ""),
        Question::HiddenCode => ("hidden codes", ""),
        Question::NextDiagnoses(_) => ("diagnoses of next visits", "are there"),
    };
    let Counts { predictions, subjects, positives, prevalence } = *counts;
    let share = positives
        .map(|positives| format!(", of which {} {true_ones} ({})", count(positives), percent(prevalence)))
        .unwrap_or_default();
    format!("{} {what} of {}{share}\n", count(predictions), counted(subjects, "subject", "subjects"))
}

fn interval(estimate: &Estimate) -> String {
    match estimate.interval {
        Some([low, high]) => format!("{low:.4} to {high:.4}"),
        None => "-".into(),
    }
}

fn table(scores: &Scores, details: &Details) -> String {
    let row = |name: String, estimate: &Estimate| vec![name, score(estimate.value), interval(estimate)];
    let metrics = scores.0.iter().map(|(name, estimate)| row(name.replace('_', " "), estimate));
    let calibration = details.decisions.iter().flat_map(|decisions| &decisions.calibration.scores.0);
    let calibration = calibration.map(|(name, estimate)| row(format!("calibration {name}"), estimate));
    terminal::table(&["", "", "95 % interval"], metrics.chain(calibration))
}

/// Two rows for each point: values, then their intervals.
fn operating_points(points: &[&OperatingPoint]) -> String {
    let rows = points.iter().flat_map(|point| {
        let scores: Vec<(&str, Estimate)> =
            point.scores.0.iter().filter(|(name, _)| *name != "f1").copied().collect();
        let value = |(name, estimate): &(&str, Estimate)| match estimate.value {
            Some(value) if *name == "alerts_per_1000" => format!("{value:.1}"),
            value => score(value),
        };
        let ends = |(name, estimate): &(&str, Estimate)| match estimate.interval {
            Some([low, high]) if *name == "alerts_per_1000" => format!("{low:.1} to {high:.1}"),
            Some([low, high]) => format!("{low:.3} to {high:.3}"),
            None => "-".into(),
        };
        let aim = point.chosen_for.map(|aim| aim.to_string()).unwrap_or_default();
        let first = |text: String| std::iter::once(text);
        [
            first(point.threshold.to_string()).chain(scores.iter().map(value)).collect::<Vec<_>>(),
            first(aim).chain(scores.iter().map(ends)).collect(),
        ]
    });
    let header = ["threshold", "sensitivity", "specificity", "PPV", "NPV", "alerts per 1,000"];
    let mut text = format!("\n{}", terminal::table(&header, rows));
    if points.iter().any(|point| point.chosen_for.is_some()) {
        text += "thresholds with an aim were chosen on the validation split\n";
    }
    text
}

fn net_benefit(curve: &[NetBenefit]) -> String {
    let shown = curve.iter().filter(|point| Options::THRESHOLDS.contains(&point.threshold));
    let row = |point: &NetBenefit| {
        let numbers = [point.model, point.treat_all, point.treat_none].map(|number| format!("{number:.4}"));
        std::iter::once(point.threshold.to_string()).chain(numbers).collect()
    };
    let header = ["net benefit at", "model", "treat all", "treat none"];
    format!("\n{}", terminal::table(&header, shown.map(row)))
}

/// A table for each way to group: the first two metrics of each subgroup, and how far they are from those of
/// everybody else.
fn subgroups(groups: &[Subgroup]) -> String {
    groups.chunk_by(|a, b| a.by == b.by).map(subgroups_by).collect()
}

fn subgroups_by(groups: &[Subgroup]) -> String {
    let scores = groups.iter().find(|group| !group.scores.0.is_empty()).map(|group| &group.scores.0);
    let shown: Vec<&str> = scores.into_iter().flatten().take(2).map(|(name, _)| *name).collect();
    let mut header = vec![groups[0].by.clone(), "encounters".into(), "positives".into()];
    header.extend(shown.iter().flat_map(|name| [name.replace('_', " "), "less the others".into()]));
    let rows = groups.iter().flat_map(|group| {
        let number = |number: Option<u64>| number.map_or("-".into(), count);
        let positives = group.counts.and_then(|counts| counts.positives);
        let estimates = shown.iter().flat_map(|name| [group.scores.get(name), group.gaps.get(name)]);
        let ends =
            |of: Estimate| of.interval.map_or("-".into(), |[low, high]| format!("{low:.3} to {high:.3}"));
        let (values, intervals): (Vec<_>, Vec<_>) =
            estimates.map(|estimate| (score(estimate.value), ends(estimate))).unzip();
        let name = group.group.clone();
        [
            [vec![name, number(group.encounters), number(positives)], values].concat(),
            [vec![String::new(); 3], intervals].concat(),
        ]
    });
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut text = format!("\n{}", terminal::table(&header, rows));
    for group in groups {
        if let Some(note) = group.note {
            text += &format!("{}: {note}\n", visible(&group.group));
        }
    }
    text
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
    terminal::extend(&mut report, measured(&evaluation.scores, &evaluation.details));
    if !evaluation.labels.is_empty() {
        let labels = &evaluation.labels;
        let labels = labels.iter().map(|of| (of.name.clone(), measured(&of.scores, &of.details)));
        report["labels"] = labels.collect::<serde_json::Map<_, _>>().into();
    }
    if let Some(structure) = &evaluation.structure {
        report["structure"] = json!(structure);
    }
    report
}

fn measured(scores: &Scores, details: &Details) -> Value {
    let mut object = json!(scores);
    terminal::extend(&mut object, json!(details));
    object
}
