//! What runs found, as one page to look at: metrics and curves, encounters with what a model believes about
//! them, the links it believes in over all of them, its codes on a map. A `Report` is plain data; `html`
//! makes it a file that fetches nothing.
//!
//! Identifiers are left out unless they are asked for. With `Options::min_cell` there are no encounters, no
//! count below it is told, and codes that occur in fewer encounters are left out.

mod choice;
mod codes;
mod encounters;
mod html;
mod map;
mod options;
mod outcomes;
mod timeline;

use std::time::SystemTime;

use serde::Serialize;
use toml::{Table, Value};

pub use crate::links::CodeLink;
use codes::{Codes, Told};
use encounters::Gathering;
pub use encounters::Row;
pub use html::{Page, html, page};
pub use map::Map;
pub use options::Options;

use crate::calibration::Method;
use crate::card::{self, Card};
use crate::cells::{self, Numbers, Overlap, is_small};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::evaluate::{self, Evaluation, LabelScores};
use crate::graph::LayerKind;
use crate::infer::{TestSet, Which};
use crate::ingest::synthetic::LATER;
use crate::job::Job;
use crate::metric::{Curves, Scores};
use crate::model::Config;
use crate::overrides;
use crate::paper;
use crate::predict::Explainer;
use crate::question::{Labels, Next, Question};
use crate::record::PerKind;
use crate::run::Run;
use crate::sample::OwnedSample;
use crate::split::SplitPart;

/// The version of the shape that the page reads.
const FORMAT: u32 = 3;

/// A run with encounters to look at.
pub struct Looked<'a> {
    /// What it is called in the report.
    pub name: String,
    /// The run.
    pub run: &'a Run,
    /// Where encounters are from.
    pub dataset: &'a Dataset,
    /// Which of them.
    pub test_set: TestSet,
}

/// Everything on the page.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    format: u32,
    program: &'static str,
    live: bool,
    min_cell: u64,
    /// When and how the page was made, if whoever makes it says so.
    pub made: Option<Made>,
    paper: Vec<PaperMetric>,
    /// The runs, in the order in which they were given.
    pub runs: Vec<RunReport>,
}

/// When and how a page was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Made {
    /// The day, `2026-11-18`.
    pub date: String,
    /// The command that makes it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Made {
    /// Today, in the time of Greenwich.
    pub fn today(command: Option<String>) -> Self {
        let now = chrono::DateTime::<chrono::Utc>::from(SystemTime::now());
        Made { date: now.format("%Y-%m-%d").to_string(), command }
    }
}

/// A metric of the paper, on its test split.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct PaperMetric {
    /// The runs that it stands beside.
    group: usize,
    model: &'static str,
    #[serde(rename = "figure")]
    metric: &'static str,
    value: f64,
    deviation: f64,
}

/// Everything about one run.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    name: String,
    /// Runs of one group were asked the same about the same encounters, and are compared with each other.
    group: usize,
    model: &'static str,
    task: String,
    asks: &'static str,
    /// How the probabilities of labels are calibrated, if they are.
    calibrated: Option<Method>,
    part: &'static str,
    /// What it sees of earlier visits, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<timeline::Seen>,
    /// What trained it.
    program: String,
    data: About,
    settings: Vec<(String, String)>,
    steps: u64,
    seconds: f64,
    #[serde(rename = "figures")]
    metrics: Vec<NamedMetric>,
    ceiling: Vec<CeilingMetric>,
    labels: Vec<LabelMetrics>,
    outcomes: Vec<outcomes::Outcome>,
    subgroups: Vec<outcomes::Group>,
    learning: Learning,
    curves: Vec<NamedCurves>,
    codes: Codes,
    layers: Vec<LayerName>,
    encounters: Vec<Row>,
    matrices: Option<String>,
    structure: Option<StructureFigures>,
    links: Vec<CodeLink>,
    map: Option<Map>,
    card: Card,
    /// The encounters themselves with their numbers, ascending, for a server to ask about.
    #[serde(skip)]
    pub kept: Vec<(u64, OwnedSample)>,
    /// How many were asked about, also where that is not told.
    #[serde(skip)]
    asked: u64,
}

#[derive(Debug, Clone, Serialize)]
struct About {
    source: String,
    /// The SHA-256 of the encounters that the run was trained on.
    sha256: String,
    encounters: Option<u64>,
    training: Option<u64>,
    asked: Option<u64>,
    left_out: Option<u64>,
    /// Encounters of other data whose subjects the run learned from.
    learned_from: Option<u64>,
    /// Why the metrics are not to be believed.
    warning: Option<&'static str>,
    codes: PerKind<usize>,
}

#[derive(Debug, Clone, Serialize)]
struct NamedMetric {
    name: &'static str,
    value: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
}

/// The best that any model can reach on synthetic data, measured when they were made.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct CeilingMetric {
    #[serde(rename = "figure")]
    metric: &'static str,
    value: f64,
}

#[derive(Debug, Clone, Serialize)]
struct LabelMetrics {
    name: String,
    #[serde(rename = "figures")]
    metrics: Vec<NamedMetric>,
}

#[derive(Debug, Clone, Serialize)]
struct Learning {
    metric: &'static str,
    entries: Vec<LearningEntry>,
}

#[derive(Debug, Clone, Serialize)]
struct LearningEntry {
    step: u64,
    loss: f64,
    value: Option<f64>,
}

#[derive(Debug, Clone, Serialize)]
struct NamedCurves {
    name: String,
    /// How many predictions the curves are of.
    #[serde(skip)]
    predictions: u64,
    /// Whether what happens at the threshold may be told beside them.
    #[serde(skip)]
    has_threshold: bool,
    #[serde(flatten)]
    curves: Curves,
}

/// A part of a model that can be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct LayerName {
    name: String,
    kind: LayerKind,
}

#[derive(Debug, Clone, Serialize)]
struct StructureFigures {
    blocks: Vec<String>,
    kl_attention_truth: Vec<Option<f64>>,
    kl_truth_attention: Vec<Option<f64>>,
    entropy: Vec<Option<f64>>,
    edges_aucpr: Vec<Option<f64>>,
    encounters: Option<u64>,
}

/// Looks at runs. The job is told how many encounters are done.
///
/// # Errors
/// If a run has no model, a dataset does not go with it or cannot be read, or the job is stopped.
pub fn gather(looked: &[Looked<'_>], options: &Options, job: &Job<'_, u64>) -> Result<Report> {
    if options.min_cell > 1 && options.encounters > 0 {
        return Err(Error::setting(
            "encounters",
            options.encounters,
            "0 with a smallest cell: each is a single patient",
        ));
    }
    let (mut runs, mut about, mut done) = (Vec::new(), Vec::new(), 0);
    for one in looked {
        let report = of_run(one, options, &job.inner(|now| Some(done + now)))?;
        done += report.asked;
        about.push(asked_about(one, report.asked));
        runs.push(report);
    }
    let groups = groups(&about);
    runs.iter_mut().zip(&groups).for_each(|(run, group)| run.group = *group);
    Ok(Report {
        format: FORMAT,
        program: concat!("gct ", env!("CARGO_PKG_VERSION")),
        live: options.live,
        min_cell: options.min_cell,
        made: None,
        paper: paper_figures(looked, &groups),
        runs,
    })
}

/// What a run was asked, and about which encounters: those of which dataset, which of them, and how many of
/// these it could be asked about.
fn asked_about(looked: &Looked<'_>, asked: u64) -> impl PartialEq {
    let Looked { run, dataset, test_set, .. } = looked;
    let (settings, which) = (run.settings(), test_set.which);
    let split = (which != Which::All).then(|| overrides::table(&settings.split));
    let data = dataset.manifest().identity();
    (settings.task.clone(), data, which.name(), split, asked)
}

/// The same number for those that are the same, counted from 0.
fn groups(about: &[impl PartialEq]) -> Vec<usize> {
    let mut firsts: Vec<usize> = Vec::new();
    let group = |index: usize| {
        let found = firsts.iter().position(|first| about[*first] == about[index]);
        found.unwrap_or_else(|| {
            firsts.push(index);
            firsts.len() - 1
        })
    };
    (0..about.len()).map(group).collect()
}

/// How a run does, and what was seen of its encounters on the way.
fn evaluated(
    looked: &Looked<'_>,
    options: &Options,
    job: &Job<'_, u64>,
) -> Result<(Evaluation, encounters::Seen)> {
    let Looked { run, dataset, test_set, .. } = looked;
    let mut asked = options.evaluation(run);
    loop {
        let mut gathering = Gathering::new(Explainer::new(run)?, options);
        let observe = &mut |inferred: &evaluate::Inferred<'_>| gathering.add(inferred);
        match evaluate::with(run, dataset, *test_set, asked.clone(), job, Some(observe)) {
            // Nobody wanted it.
            Err(Error::NoThreshold { .. }) if options.at.is_none() && !asked.at.is_empty() => {
                asked.at.clear()
            }
            evaluation => {
                let evaluation = evaluation?;
                let above = outcomes::above(&run.settings().task, &evaluation);
                return Ok((evaluation, gathering.finish(&above, job.stop())?));
            }
        }
    }
}

fn of_run(looked: &Looked<'_>, options: &Options, job: &Job<'_, u64>) -> Result<RunReport> {
    let Looked { name, run, dataset, test_set } = looked;
    let (settings, entries, model) = (run.settings(), run.entries()?, run.model()?);
    let (evaluation, seen) = evaluated(looked, options, job)?;
    let (asked, min_cell) = (evaluation.encounters, options.min_cell);
    let shown = outcomes::of_card(&evaluation, &settings.task, &seen.curves, min_cell);
    let card = card::of(run, dataset, *test_set, &shown, min_cell, job)?;
    let rows = model.embedding_rows();
    let told = Told::new(run, min_cell);
    let vectors: Vec<&[f32]> =
        told.codes.iter().map(|(kind, id)| model.embedding(rows.code(*kind, *id))).collect();
    Ok(RunReport {
        name: name.clone(),
        group: 0,
        model: settings.model.name(),
        task: settings.task.to_string(),
        asks: settings.task.page_kind(),
        calibrated: evaluation.calibrated,
        part: evaluation.split,
        history: timeline::Seen::of(&settings.history),
        program: run.manifest().program.clone(),
        data: about(looked, &evaluation, &card, min_cell),
        settings: flat(&overrides::table(settings)),
        steps: entries.last().map_or(0, |entry| entry.step),
        seconds: round(entries.last().map_or(0.0, |entry| entry.seconds)),
        metrics: metrics(
            &evaluation.scores,
            predictions(&settings.task, asked, &seen.curves, min_cell),
            min_cell,
        ),
        ceiling: ceiling(&settings.task, &dataset.manifest().source.findings),
        outcomes: outcomes::outcomes(&settings.task, &evaluation, &seen.curves, min_cell),
        subgroups: outcomes::subgroups(&settings.task, &evaluation, min_cell),
        labels: label_figures(&evaluation, &seen.curves, min_cell),
        learning: Learning {
            metric: settings.task.chosen_by(),
            entries: (entries.iter())
                .map(|entry| LearningEntry {
                    step: entry.step,
                    loss: round(entry.train_loss),
                    value: entry.value,
                })
                .collect(),
        },
        curves: seen.curves,
        codes: told.names(run),
        structure: structure(&evaluation, &seen.layers, min_cell),
        layers: seen.layers,
        encounters: seen.rows,
        matrices: seen.matrices,
        links: told.links(seen.links, asked),
        map: Map::of(&vectors, &told.counts),
        card,
        kept: seen.kept,
        asked,
    })
}

fn about(looked: &Looked<'_>, evaluation: &Evaluation, card: &Card, min_cell: u64) -> About {
    let Looked { run, dataset, test_set, .. } = looked;
    let overlap = match test_set.which {
        Which::Part(SplitPart::Train) => Overlap::Same,
        Which::Part(_) if run.is_of(dataset) => Overlap::Apart,
        Which::Part(_) | Which::All => Overlap::Some,
    };
    let counts = [
        dataset.manifest().encounters,
        run.manifest().training_encounters,
        evaluation.encounters,
        evaluation.left_out,
    ];
    let Numbers { encounters, training, asked, left_out } = Numbers::told(counts, overlap, min_cell);
    About {
        source: run.manifest().dataset.source.clone(),
        sha256: run.manifest().dataset.sha256.clone(),
        // Beside the card's counts they would give one that it hides.
        encounters: encounters.filter(|_| !card.hides.encounters),
        training: training.filter(|_| !card.hides.training),
        asked,
        left_out,
        // One more count would give another by subtraction.
        learned_from: (min_cell <= 1).then_some(evaluation.overlap.encounters),
        warning: evaluation.overlap.warning(),
        codes: PerKind::from_fn(|kind| run.vocabulary()[kind].len()),
    }
}

/// The ceiling of a task among what was measured when a dataset was made.
fn ceiling(question: &Question, findings: &serde_json::Value) -> Vec<CeilingMetric> {
    let of_task = match question {
        Question::Edges => &findings["ceiling_joint"],
        Question::Labels(Labels::DiagnosisTreatment) => &findings["diagnosis_treatment"],
        Question::Labels(Labels::Named(label)) if label == LATER => &findings["later"],
        Question::NextDiagnoses(Next::All) => &findings["next_diagnoses"],
        Question::Labels(_)
        | Question::HiddenDiagnosis
        | Question::HiddenCode
        | Question::NextDiagnoses(Next::New) => {
            return Vec::new();
        }
    };
    let metric = |metric| Some(CeilingMetric { metric, value: round(of_task[metric].as_f64()?) });
    ["recall@10", "recall@20", "recall@30", "aucpr", "auroc"].into_iter().filter_map(metric).collect()
}

/// How many predictions the metrics over all of them are of; `None` if the metrics are not told. Without
/// the curves of a label one of its two answers is rare, and the metrics of all labels together would give
/// those of one by subtraction.
fn predictions(question: &Question, asked: u64, curves: &[NamedCurves], min_cell: u64) -> Option<u64> {
    let series = question.series().len();
    if series == 0 {
        return (!is_small(asked, min_cell)).then_some(asked);
    }
    let sum = curves.iter().map(|curves| curves.predictions).sum();
    (min_cell <= 1 || curves.len() == series).then_some(sum)
}

/// The metrics of so many predictions, without values if these are not told.
fn metrics(scores: &Scores, predictions: Option<u64>, min_cell: u64) -> Vec<NamedMetric> {
    // Times the number of predictions, accuracy is a count.
    let is_told = |name: &str, value: f64| {
        let right = |all: u64| (value * all as f64).round() as u64;
        predictions.is_some_and(|all| name != "accuracy" || cells::is_told(right(all), all, min_cell))
    };
    let metric = |(name, metric): &(&'static str, crate::metric::Estimate)| {
        let interval = metric.interval.filter(|_| metric.value.is_some_and(|value| is_told(name, value)));
        NamedMetric {
            name,
            value: metric.value.filter(|value| is_told(name, *value)),
            low: interval.map(|ends| ends[0]),
            high: interval.map(|ends| ends[1]),
        }
    };
    scores.0.iter().map(metric).collect()
}

/// The metrics of each label; not of one without curves, since one of its two answers is too rare to be told.
fn label_figures(evaluation: &Evaluation, curves: &[NamedCurves], min_cell: u64) -> Vec<LabelMetrics> {
    let of_label = |LabelScores { name, scores, .. }: &LabelScores| {
        let own = curves.iter().find(|curve| curve.name == *name);
        let predictions = own.map(|curve| curve.predictions).or((min_cell <= 1).then_some(0))?;
        Some(LabelMetrics { name: name.clone(), metrics: metrics(scores, Some(predictions), min_cell) })
    };
    evaluation.labels.iter().filter_map(of_label).collect()
}

fn structure(evaluation: &Evaluation, layers: &[LayerName], min_cell: u64) -> Option<StructureFigures> {
    let structure = evaluation.structure.as_ref().filter(|known| !is_small(known.encounters, min_cell))?;
    Some(StructureFigures {
        blocks: layers
            .iter()
            .filter(|layer| layer.kind != LayerKind::Probability)
            .map(|layer| layer.name.clone())
            .collect(),
        kl_attention_truth: structure.kl_attention_truth.blocks.clone(),
        kl_truth_attention: structure.kl_truth_attention.blocks.clone(),
        entropy: structure.entropy.blocks.clone(),
        edges_aucpr: structure.edges_aucpr.blocks.clone(),
        encounters: cells::is_told(structure.encounters, evaluation.encounters, min_cell)
            .then_some(structure.encounters),
    })
}

/// Settings by their names, dots between the parts.
fn flat(table: &Table) -> Vec<(String, String)> {
    let below = |(key, value): (&String, &Value)| match value {
        Value::Table(table) => {
            flat(table).into_iter().map(|(inner, value)| (format!("{key}.{inner}"), value)).collect()
        }
        Value::String(text) => vec![(key.clone(), text.clone())],
        value => vec![(key.clone(), value.to_string())],
    };
    table.iter().flat_map(below).collect()
}

/// The metrics of all of the paper's models on the tasks of these runs, where they were asked about a test
/// split.
fn paper_figures(looked: &[Looked<'_>], groups: &[usize]) -> Vec<PaperMetric> {
    let mut metrics: Vec<PaperMetric> = Vec::new();
    for (Looked { run, test_set, .. }, group) in looked.iter().zip(groups) {
        let (task, source) = (&run.settings().task, &run.manifest().dataset.source);
        let is_known = metrics.iter().any(|metric| metric.group == *group);
        if test_set.which != Which::Part(SplitPart::Test) || is_known {
            continue;
        }
        for model in Config::NAMES {
            for metric in ["aucpr", "auroc", "accuracy"] {
                let found = paper::metric(source, task, model, metric, SplitPart::Test);
                metrics.extend(found.map(|[value, deviation]| PaperMetric {
                    group: *group,
                    model,
                    metric,
                    value,
                    deviation,
                }));
            }
        }
    }
    metrics
}

/// Short names of run folders, each once.
pub fn names(folders: &[&std::path::Path]) -> Vec<String> {
    let name = |folder: &std::path::Path| {
        let own = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        own.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = Vec::new();
    for folder in folders {
        let own = name(folder);
        let taken = |candidate: &String| names.contains(candidate);
        let numbered = (2..).map(|number| format!("{own} ({number})"));
        let free = std::iter::once(own.clone()).chain(numbered).find(|candidate| !taken(candidate));
        names.extend(free);
    }
    names
}

/// As many digits as a page shows.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_named_by_their_path() {
        let table: Table = "a = 1\nb = \"x\"\n[c.d]\ne = 0.5".parse().unwrap();
        let expected = [("a", "1"), ("b", "x"), ("c.d.e", "0.5")];
        assert_eq!(flat(&table), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn the_same_are_in_one_group() {
        assert_eq!(groups(&["a", "b", "a", "c", "b"]), [0, 1, 0, 2, 1]);
    }

    #[test]
    fn names_of_runs_are_told_apart() {
        let folders = ["a/gct", "b/gct", "b/shallow"].map(std::path::Path::new);
        assert_eq!(names(&folders), ["gct", "gct (2)", "shallow"]);
    }
}
