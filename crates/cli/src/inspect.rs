//! `gct inspect`: what is in a dataset.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use gct::ceiling::{Ceiling, HiddenScores, JOINT_HELD_OUT, LaterScores, NextScores};
use gct::dataset::Dataset;
use gct::paper;
use gct::question::{Labels, Question};
use gct::record::CodeKind;
use gct::split::SplitPart;
use gct::statistics::{self, CodeStatistics, Statistics};
use gct::synth::Findings;
use serde_json::json;

use crate::leaks::LeakArguments;
use crate::terminal::{self, count, percent, score, visible};
use crate::verify;

/// Show what a dataset holds: the paper's Table 1, labels, context, histograms, the best possible metrics
///
/// Every row is checked.
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The dataset folder
    #[arg(value_name = "DIR")]
    data: PathBuf,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,

    /// Only check the dataset: the SHA-256 of every file, every row, and the counts
    #[arg(long, conflicts_with = "leaks")]
    verify: bool,

    #[command(flatten, next_help_heading = "Leaks")]
    leaks: LeakArguments,
}

const AFTER_HELP: &str = "Examples:
  gct inspect synthetic
  gct inspect eicu --leaks mortality      codes that give it away
  gct inspect eicu --verify               hash every file and check every row

A code gives a label away if at least 10 encounters of the training split have it (or lack it), most of these
have the same value of the label, and the odds of that value are at least 10 times those of the base rate, at
the lower end of a 95 % interval (LR, the likelihood ratio). It is a list to look at, not a test.";

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let dataset = Dataset::open(&arguments.data)?;
    if arguments.verify {
        return verify::run(&dataset, arguments.json, quiet);
    }
    if let Some(leaks) = arguments.leaks.find(&dataset, quiet)? {
        return leaks.print(arguments.json);
    }
    let bar = terminal::progress(dataset.manifest().encounters, "reading encounters", quiet);
    let statistics = statistics::collect(&dataset, &terminal::counting(&bar));
    bar.finish_and_clear();
    let statistics = statistics?;
    let findings = Findings::of(&dataset)?;
    if arguments.json {
        return Ok(terminal::print_json(&report(&dataset, &statistics, findings.as_ref()))?);
    }
    let mut text = format!(
        "{}: {} data, written by {}\n\n",
        visible(arguments.data.display()),
        visible(&dataset.manifest().source.kind),
        visible(&dataset.manifest().program)
    );
    text += &table_1(&statistics, findings.is_some());
    text += &labels(&statistics);
    text += &context(&statistics);
    text += &structure(&statistics);
    for kind in shown(&statistics) {
        text += &histogram(kind, &statistics.codes[kind]);
    }
    if let Some(findings) = &findings {
        text += &ceiling(&findings.ceiling);
    }
    Ok(terminal::print(&text)?)
}

/// The kinds of codes of a dataset.
fn shown(statistics: &Statistics) -> impl Iterator<Item = CodeKind> {
    CodeKind::ALL.into_iter().filter(|kind| kind.is_shown(statistics.codes[*kind].vocabulary))
}

/// The paper's Table 1, with its own column beside ours where the two can be compared.
fn table_1(statistics: &Statistics, synthetic: bool) -> String {
    let mut rows = vec![("encounters".to_owned(), count(statistics.encounters))];
    for kind in shown(statistics) {
        rows.push((format!("{} codes", kind.name()), count(statistics.codes[kind].vocabulary)));
    }
    for kind in shown(statistics) {
        let mean = statistics.codes[kind].per_encounter;
        rows.push((format!("{} codes per encounter", kind.name()), format!("{mean:.2}")));
    }
    if synthetic {
        let papers = paper::COUNTS.into_iter().map(|(_, synthetic, _)| synthetic.to_owned());
        let rows = rows.into_iter().zip(papers).map(|((what, ours), papers)| vec![what, ours, papers]);
        terminal::table(&["", "this dataset", "the paper's"], rows)
    } else {
        terminal::table(&["", "this dataset"], rows.into_iter().map(|(what, ours)| vec![what, ours]))
    }
}

fn labels(statistics: &Statistics) -> String {
    if statistics.labels.is_empty() {
        return "\nno labels\n".into();
    }
    let rows = statistics.labels.iter().map(|label| {
        vec![label.name.clone(), count(label.positive), count(label.known), percent(label.prevalence())]
    });
    format!("\n{}", terminal::table(&["label", "positive", "known", "prevalence"], rows))
}

/// What is known of encounters beside codes of illness and care, if anything is.
fn context(statistics: &Statistics) -> String {
    if statistics.context.is_empty() {
        return String::new();
    }
    let rows = statistics.context.iter().map(|of| {
        let share = of.encounters as f64 / statistics.encounters as f64;
        vec![of.name.clone(), count(of.codes), count(of.encounters), percent(Some(share))]
    });
    format!("\n{}", terminal::table(&["context", "codes", "encounters", "share"], rows))
}

fn structure(statistics: &Statistics) -> String {
    let known = statistics.encounters_with_edges;
    let edges = if known == 0 {
        "true edges are not known".into()
    } else {
        let mean = statistics.edges as f64 / known as f64;
        format!("true edges are known in {} encounters, {mean:.1} each besides the visit's", count(known))
    };
    format!(
        "\n{} subjects, {} of them with several encounters\n{edges}\n",
        count(statistics.subjects),
        count(statistics.subjects_with_several_encounters),
    )
}

/// How many lines a histogram has at most, and how wide its longest bar is.
const LINES: usize = 12;
const WIDTH: u64 = 48;

fn histogram(kind: CodeKind, codes: &CodeStatistics) -> String {
    let lines = bins(&codes.histogram);
    let longest = lines.iter().map(|(_, encounters)| *encounters).max().unwrap_or(0).max(1);
    let mut text = format!("\n{} codes per encounter\n", kind.name());
    for (range, encounters) in lines {
        // An encounter that is there is seen, however few its like.
        let width = (encounters * WIDTH).div_ceil(longest);
        text += &format!("{range:>9} {} {}\n", "█".repeat(width as usize), count(encounters));
    }
    text
}

/// Bins of equal width from the least number of codes that an encounter has to the most, and how many
/// encounters are in each.
fn bins(histogram: &[u64]) -> Vec<(String, u64)> {
    let occurs = |encounters: &u64| *encounters > 0;
    let Some(least) = histogram.iter().position(occurs) else { return Vec::new() };
    let most = histogram.iter().rposition(occurs).unwrap_or(least);
    let per_line = (most + 1 - least).div_ceil(LINES);
    let bin = |from: usize| {
        let to = most.min(from + per_line - 1);
        let range = if from == to { from.to_string() } else { format!("{from}-{to}") };
        (range, histogram[from..=to].iter().sum())
    };
    (least..=most).step_by(per_line).map(bin).collect()
}

fn ceiling(ceiling: &Ceiling) -> String {
    let rows = [
        ("ceiling, given the whole encounter", ceiling.ceiling_joint),
        ("ceiling, pair by pair", ceiling.ceiling),
        ("conditional probabilities of the training split", ceiling.prior),
        ("the kinds of the two codes alone", ceiling.kinds),
    ];
    let rows = rows.map(|(what, scores)| {
        vec![
            what.into(),
            score(scores.all_pairs.aucpr),
            score(scores.all_pairs.auroc),
            score(scores.hidden_pairs.aucpr),
            score(scores.hidden_pairs.auroc),
            count(scores.encounters),
        ]
    });
    let header = ["graph reconstruction by", "AUCPR", "AUROC", "hidden AUCPR", "hidden AUROC", "encounters"];
    let is_settled = ceiling.ceiling_joint.encounters >= JOINT_HELD_OUT as u64;
    let known = if is_settled { ", to about 0.005" } else { "" };
    let mut text = format!(
        "\n{}The first row is the best that any model can do, estimated by sampling{known}.\n\
         Hidden: only diagnosis-treatment and treatment-lab pairs.\n",
        terminal::table(&header, rows.into_iter().chain([papers(&Question::Edges)]))
    );
    if let Some(scores) = &ceiling.diagnosis_treatment {
        let header = ["diagnosis-treatment classification by", "AUCPR", "AUROC", "encounters"];
        let best = vec![
            "ceiling, given the whole encounter".into(),
            score(scores.areas.aucpr),
            score(scores.areas.auroc),
            count(scores.encounters),
        ];
        text += &format!(
            "\n{}",
            terminal::table(&header, [best, papers(&Question::Labels(Labels::DiagnosisTreatment))])
        );
    }
    text + &ceiling.masked_diagnosis.as_ref().map(masked_diagnosis).unwrap_or_default()
        + &ceiling.later.as_ref().map(later).unwrap_or_default()
        + &ceiling.next_diagnoses.as_ref().map(next_diagnoses).unwrap_or_default()
}

/// Masked diagnosis, of which there is a lower bound of the ceiling alone.
fn masked_diagnosis(scores: &HiddenScores) -> String {
    let [papers, _] =
        paper::metric("synthetic", &Question::HiddenDiagnosis, "gct", "accuracy", SplitPart::Test)
            .map_or([None; 2], |of| of.map(Some));
    let rows = [
        ("ceiling, at least", Some(scores.at_least), count(scores.encounters)),
        ("the same without labs", Some(scores.without_labs), count(scores.encounters)),
        ("the most frequent diagnosis", Some(scores.frequent), count(scores.encounters)),
        ("the paper's GCT", papers, String::new()),
    ];
    let rows = rows.map(|(what, accuracy, of)| vec![what.into(), score(accuracy), of]);
    let table = terminal::table(&["masked diagnosis by", "accuracy", "encounters"], rows);
    format!(
        "\n{table}The first row is a rule that approximates the chance of each diagnosis: the best rule is at \
         least as good.\n"
    )
}

/// The label of patients with several visits.
fn later(scores: &LaterScores) -> String {
    let rows = [
        ("ceiling, given all earlier encounters", scores.areas),
        ("d1 and m1 in an earlier encounter", scores.codes),
        ("d1 in the encounter itself", scores.visit),
    ];
    let rows = rows.map(|(what, areas)| {
        vec![what.into(), score(areas.aucpr), score(areas.auroc), count(scores.encounters)]
    });
    format!("\n{}", terminal::table(&["label later by", "AUCPR", "AUROC", "encounters"], rows))
}

/// The diagnoses of the next visits of patients with several.
fn next_diagnoses(scores: &NextScores) -> String {
    let rows = [
        ("ceiling, drawn after the encounter", &scores.drawn),
        ("those it has already, then the frequent", &scores.repeated),
    ];
    let metrics = ["recall@10", "recall@20", "recall@30", "aucpr"];
    let rows = rows.map(|(what, metric)| {
        let metrics = metrics.iter().map(|name| score(metric.get(*name).copied()));
        std::iter::once(what.into()).chain(metrics).chain([count(scores.encounters)]).collect()
    });
    let header = ["next diagnoses by", "recall@10", "recall@20", "recall@30", "AUCPR", "encounters"];
    format!("\n{}", terminal::table(&header, rows))
}

/// The row of the paper's GCT.
fn papers(task: &Question) -> Vec<String> {
    let metric = |name| paper::metric("synthetic", task, "gct", name, SplitPart::Test).map(|[mean, _]| mean);
    vec!["the paper's GCT".into(), score(metric("aucpr")), score(metric("auroc"))]
}

fn report(dataset: &Dataset, statistics: &Statistics, findings: Option<&Findings>) -> serde_json::Value {
    let mut report = json!({
        "source": dataset.manifest().source.kind,
        "program": dataset.manifest().program,
        "diagnoses_per_encounter": statistics.codes.diagnosis.per_encounter,
        "treatments_per_encounter": statistics.codes.treatment.per_encounter,
        "labs_per_encounter": statistics.codes.lab.per_encounter,
        "label_prevalence": (statistics.labels.iter())
            .map(|label| (label.name.clone(), json!(label.prevalence())))
            .collect::<serde_json::Map<_, _>>(),
    });
    terminal::extend(&mut report, json!(statistics));
    if let Some(findings) = findings {
        report["raw_encounters"] = json!(findings.raw_encounters);
        terminal::extend(&mut report, json!(findings.ceiling));
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_with_the_least_and_end_with_the_most() {
        let mut histogram = vec![0; 51];
        (5..=50).for_each(|codes| histogram[codes] = 1);
        let lines = bins(&histogram);
        assert_eq!((lines[0].clone(), lines[1].clone()), (("5-8".to_owned(), 4), ("9-12".to_owned(), 4)));
        assert_eq!((lines.len(), lines.last()), (12, Some(&("49-50".to_owned(), 2))));
        assert_eq!(bins(&[0, 0, 7]), [("2".to_owned(), 7)]);
        assert_eq!(bins(&[]), []);
    }
}
