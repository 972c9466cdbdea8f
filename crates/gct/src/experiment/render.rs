//! Tables of an experiment as Markdown, CSV and LaTeX, and its learning curves.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::gather::{Cell, Findings};
use super::{About, Experiment};
use crate::error::Result;
use crate::files::write_own;
use crate::ingest::synthetic::LATER;
use crate::metric::SIGNIFICANT;
use crate::paper;
use crate::picture::{self, Line, Series};
use crate::question::{Labels, Next, Question};
use crate::record::CodeKind;

/// Writes the tables and curves of an experiment beside it, and returns the paths.
///
/// # Errors
/// If a file cannot be written.
pub fn write(experiment: &Experiment, findings: &Findings, folder: &Path) -> Result<Vec<PathBuf>> {
    let tables = tables(experiment, findings);
    let mut files = vec![
        (format!("{}.md", experiment.name), markdown(experiment, findings, &tables)),
        (format!("{}.csv", experiment.name), csv(&findings.cells)),
        (format!("{}.tex", experiment.name), tables.iter().map(|table| latex(experiment, table)).collect()),
    ];
    for task in &experiment.tasks {
        if findings.finished.iter().any(|one| one.settings.task == *task) {
            files.push((curves_name(experiment, task), curves(experiment, findings, task)));
        }
    }
    let mut paths = Vec::new();
    for (name, text) in files {
        let path = folder.join(name);
        write_own(&path, text.as_bytes())?;
        paths.push(path);
    }
    Ok(paths)
}

/// A table in words.
struct Table {
    title: String,
    /// What to say below it.
    note: Option<String>,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn tables(experiment: &Experiment, findings: &Findings) -> Vec<Table> {
    if experiment.tasks.is_empty() {
        return vec![counts(&findings.about)];
    }
    let tables = experiment.tasks.iter().flat_map(|task| {
        experiment.metrics(task).into_iter().map(move |metric| of_metric(experiment, findings, task, &metric))
    });
    tables.collect()
}

/// One metric of all models on one task.
fn of_metric(experiment: &Experiment, findings: &Findings, task: &Question, metric: &str) -> Table {
    let name = task.to_string();
    let of = |model: &str, part: &str| {
        let is = |cell: &&Cell| {
            cell.task == name && cell.metric == metric && cell.model == model && cell.part == part
        };
        findings.cells.iter().find(is)
    };
    let has_paper =
        findings.cells.iter().any(|cell| cell.task == name && cell.metric == metric && cell.paper.is_some());
    let judge = experiment.judged_by().name();
    let parts = experiment.parts().iter().map(|part| part.name());
    let mut header: Vec<String> = ["model"].into_iter().chain(parts.clone()).map(String::from).collect();
    if has_paper {
        header.push(format!("paper, {judge}"));
    }
    if let Some(reference) = experiment.reference() {
        header.extend([format!("{judge}, beside {reference}"), "p".into()]);
    }
    header.push("splits".into());
    let row = |model: &String| {
        let judged = of(model, judge);
        let mut row = vec![model.clone()];
        row.extend(parts.clone().map(|part| of(model, part).map_or("-".into(), Cell::ours)));
        if has_paper {
            row.push(judged.map_or("-".into(), Cell::papers));
        }
        if experiment.reference().is_some() {
            let beside = judged.and_then(|cell| cell.beside);
            row.push(beside.map_or("-".into(), |beside| beside.to_string()));
            row.push(beside.map_or("-".into(), |beside| match beside.p {
                p if p < 0.001 => "< 0.001".into(),
                p => format!("{p:.3}"),
            }));
        }
        row.push(judged.map_or("-".into(), |cell| cell.splits.len().to_string()));
        row
    };
    let reachable = ceiling(&findings.about, task, metric);
    Table {
        title: format!("{}: {}", title(task), metric_name(metric)),
        note: reachable.map(|value| format!("The best that any model can do without the edges: {value:.4}.")),
        header,
        rows: experiment.models.iter().map(row).collect(),
    }
}

/// What a metric can reach without seeing the edges, where that is known.
fn ceiling(about: &About, question: &Question, metric: &str) -> Option<f64> {
    let ceiling = about.ceiling.as_ref()?;
    let areas = match question {
        Question::Edges => ceiling.ceiling_joint.all_pairs,
        Question::Labels(Labels::DiagnosisTreatment) => ceiling.diagnosis_treatment?.areas,
        Question::Labels(Labels::Named(label)) if label == LATER => ceiling.later?.areas,
        Question::NextDiagnoses(Next::All) => {
            return ceiling.next_diagnoses.as_ref()?.drawn.get(metric).copied();
        }
        Question::Labels(_)
        | Question::HiddenDiagnosis
        | Question::HiddenCode
        | Question::NextDiagnoses(Next::New) => return None,
    };
    match metric {
        "aucpr" => areas.aucpr,
        "auroc" => areas.auroc,
        _ => None,
    }
}

/// Table 1.
fn counts(about: &About) -> Table {
    let statistics = &about.statistics;
    let vocabulary = CodeKind::OF_PAPER.map(|kind| statistics.codes[kind].vocabulary.to_string());
    let mean = CodeKind::OF_PAPER.map(|kind| format!("{:.2}", statistics.codes[kind].per_encounter));
    let ours = [statistics.encounters.to_string()].into_iter().chain(vocabulary).chain(mean);
    let papers = |(_, synthetic, eicu): paper::Count| match about.source.as_str() {
        "synthetic" => synthetic.to_owned(),
        "eicu" => eicu.unwrap_or("-").to_owned(),
        _ => "-".into(),
    };
    let mut rows: Vec<Vec<String>> = paper::COUNTS
        .into_iter()
        .zip(ours)
        .map(|(count, ours)| vec![count.0.into(), ours, papers(count)])
        .collect();
    for label in &statistics.labels {
        let prevalence = label.prevalence().map_or("-".into(), |share| format!("{:.2} %", 100.0 * share));
        rows.push(vec![format!("encounters with {}", label.name), prevalence, "-".into()]);
    }
    Table { title: "Data".into(), note: None, header: ["", "ours", "paper"].map(String::from).into(), rows }
}

fn title(task: &Question) -> String {
    let text = task.in_words();
    text[..1].to_uppercase() + &text[1..]
}

fn metric_name(metric: &str) -> &str {
    match metric {
        "aucpr" => "AUCPR",
        "auroc" => "AUROC",
        "log_loss" => "log loss",
        "brier_score" => "Brier score",
        "calibration_error" => "calibration error",
        "kl_attention_truth" => "KL(attention || truth)",
        "kl_truth_attention" => "KL(truth || attention)",
        "edges_aucpr" => "AUCPR of true edges by attention",
        other => other,
    }
}

fn markdown(experiment: &Experiment, findings: &Findings, tables: &[Table]) -> String {
    let mut text = format!("# {}\n\n", experiment.title);
    text += "The results of each trial are in `trials/`.\n";
    if !experiment.tasks.is_empty() {
        let seconds: f64 = findings.finished.iter().map(|one| one.seconds).sum();
        let seeds: Vec<String> = experiment.split_seeds.iter().map(ToString::to_string).collect();
        let _ = write!(
            text,
            "{} of {} trials have finished, after {:.1} hours of training, on splits of the seeds {}.\n\
             Metrics are mean (standard deviation) over splits, of the weights with the best validation.\n",
            findings.finished.len(),
            findings.trials,
            seconds / 3600.0,
            seeds.join(", ")
        );
        if let Some(reference) = experiment.reference() {
            let _ = writeln!(
                text,
                "Differences from {reference} are with their standard error; * marks p < {SIGNIFICANT} in the corrected \
                 resampled t-test\nof Nadeau and Bengio (2003), paired over splits."
            );
        }
    }
    for table in tables {
        let _ = write!(text, "\n## {}\n\n", table.title);
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace("||", "\\|\\|"));
        text += &line(&table.header);
        text += &line(&vec!["---".to_owned(); table.header.len()]);
        text.extend(table.rows.iter().map(|row| line(row)));
        if let Some(note) = &table.note {
            let _ = write!(text, "\n{note}\n");
        }
    }
    if !findings.finished.is_empty() {
        text += "\n## Steps\n\n| task | model | steps | best at, mean | learning rate | minutes, mean |\n|---|---|---|---|---|---|\n";
        for (task, model) in
            experiment.tasks.iter().flat_map(|task| experiment.models.iter().map(move |model| (task, model)))
        {
            text += &effort(findings, task, model).unwrap_or_default();
        }
    }
    for task in &experiment.tasks {
        if findings.finished.iter().any(|one| one.settings.task == *task) {
            let _ = write!(text, "\n![Learning curves]({})\n", curves_name(experiment, task));
        }
    }
    text
}

/// What the trials of a model took.
fn effort(findings: &Findings, task: &Question, model: &str) -> Option<String> {
    let of_model = |one: &&super::Finished| one.model == model && one.settings.task == *task;
    let trials: Vec<_> = findings.finished.iter().filter(of_model).collect();
    let (first, count) = (trials.first()?, trials.len() as f64);
    let best: Vec<f64> = trials.iter().filter_map(|one| one.best).map(|best| best.step as f64).collect();
    let seconds: f64 = trials.iter().map(|one| one.seconds).sum();
    let best_at = match best.len() {
        0 => "-".into(),
        count => format!("{:.0}", best.iter().sum::<f64>() / count as f64),
    };
    Some(format!(
        "| {task} | {model} | {} | {best_at} | {} | {:.1} |\n",
        first.settings.steps,
        first.settings.learning_rate,
        seconds / count / 60.0
    ))
}

fn csv(cells: &[Cell]) -> String {
    let mut text =
        "task,figure,part,model,splits,mean,sd,paper_mean,paper_sd,difference,standard_error,p\n".to_owned();
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for cell in cells {
        let names = [&cell.task, &cell.metric, cell.part, &cell.model].map(text_cell);
        let (paper, beside) = (cell.paper, cell.beside);
        let numbers = [
            cell.mean,
            cell.sd,
            paper.map(|paper| paper[0]),
            paper.map(|paper| paper[1]),
            beside.map(|beside| beside.mean),
            beside.map(|beside| beside.standard_error),
            beside.map(|beside| beside.p),
        ];
        let _ = writeln!(text, "{},{},{}", names.join(","), cell.splits.len(), numbers.map(number).join(","));
    }
    text
}

/// A text as a cell of CSV. A spreadsheet would compute one that begins like a formula: an apostrophe
/// prevents that.
fn text_cell(text: &str) -> String {
    let is_formula = text.starts_with(['\t', '\r']) || text.trim_start().starts_with(['=', '+', '-', '@']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

fn latex(experiment: &Experiment, table: &Table) -> String {
    let escaped = |text: &str| -> String {
        let special = |c: char| match c {
            '_' | '%' | '&' | '#' | '$' | '{' | '}' => format!("\\{c}"),
            '|' => "$|$".into(),
            '±' => "$\\pm$".into(),
            '<' => "$<$".into(),
            '\\' => "\\textbackslash{}".into(),
            '~' | '^' => format!("\\{c}{{}}"),
            c => c.into(),
        };
        text.chars().map(special).collect()
    };
    let line =
        |cells: &[String]| cells.iter().map(|cell| escaped(cell)).collect::<Vec<_>>().join(" & ") + " \\\\\n";
    let columns = "r".repeat(table.header.len() - 1);
    let mut text = format!(
        "% {}\n\\begin{{table}}\n\\centering\n\\caption{{{}}}\n\\begin{{tabular}}{{l{columns}}}\n\\toprule\n",
        experiment.title.replace('\n', " "),
        escaped(&table.title)
    );
    text += &line(&table.header);
    text += "\\midrule\n";
    text.extend(table.rows.iter().map(|row| line(row)));
    text + "\\bottomrule\n\\end{tabular}\n\\end{table}\n"
}

fn curves_name(experiment: &Experiment, task: &Question) -> String {
    let task = match task {
        Question::Labels(Labels::Named(label)) => format!("label-{}", file_name(label)),
        Question::Labels(Labels::Several(labels)) => format!("labels-{}", file_name(&labels.join(","))),
        Question::Edges
        | Question::Labels(_)
        | Question::HiddenDiagnosis
        | Question::HiddenCode
        | Question::NextDiagnoses(_) => task.to_string().replace(['_', ':'], "-"),
    };
    format!("{}-{task}.svg", experiment.name)
}

/// A name as a part of a file's name and of a link: another for each name. Bytes that either could take
/// amiss are in hexadecimal.
fn file_name(name: &str) -> String {
    let plain = |byte: u8| match byte {
        b'-' | b'_' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("={byte:02X}"),
    };
    name.bytes().map(plain).collect()
}

/// The metric by which models are chosen, the mean over splits at each step that all of them have.
fn curves(experiment: &Experiment, findings: &Findings, task: &Question) -> String {
    let series = experiment.models.iter().filter_map(|model| {
        let of_model =
            findings.finished.iter().filter(|one| one.model == *model && one.settings.task == *task);
        let curves: Vec<_> = of_model.map(|one| &one.curve).collect();
        let at = |step: u64| {
            let values = curves
                .iter()
                .map(|curve| curve.iter().find(|point| point.0 == step).and_then(|point| point.1));
            values.sum::<Option<f64>>().map(|sum| (step as f64, sum / curves.len() as f64))
        };
        let points = curves.first()?.iter().filter_map(|point| at(point.0)).collect();
        Some(Series { name: model.clone(), points })
    });
    let selection = task.chosen_by();
    let reachable = ceiling(&findings.about, task, selection);
    let references: Vec<Line> = reachable
        .map(|value| Line { name: "the best that any model can do without the edges".into(), value })
        .into_iter()
        .collect();
    let y = format!("validation {}", metric_name(selection));
    picture::curves(&title(task), "step", &y, &series.collect::<Vec<_>>(), &references)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_of_two_tasks_have_two_names() {
        let experiment: Experiment = toml::from_str("title = \"t\"").unwrap();
        let experiment = Experiment { name: "e".into(), ..experiment };
        let name = |task: &str| curves_name(&experiment, &task.parse().unwrap());
        assert_eq!(name("graph_reconstruction"), "e-graph-reconstruction.svg");
        let labels =
            ["x_y", "x-y", "x y", "x=20y", "x.y", "å", "../x"].map(|label| name(&format!("label:{label}")));
        let expected = ["x_y", "x-y", "x=20y", "x=3D20y", "x=2Ey", "=C3=A5", "=2E=2E=2Fx"];
        assert_eq!(labels, expected.map(|name| format!("e-label-{name}.svg")));
    }

    #[test]
    fn texts_are_no_formulas() {
        let texts = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", " =1", "gct", "a,\"b\"", "=a,b", "x=1"];
        let expected = [
            "'=1+1",
            "'+1",
            "'-1",
            "'@x",
            "'\tx",
            "\"'\rx\"",
            "' =1",
            "gct",
            "\"a,\"\"b\"\"\"",
            "\"'=a,b\"",
            "x=1",
        ];
        assert_eq!(texts.map(text_cell), expected);
        let cell = Cell {
            task: "label:x".into(),
            metric: "aucpr".into(),
            part: "test",
            model: "=cmd()".into(),
            splits: vec![(0, -0.5)],
            mean: Some(-0.5),
            sd: None,
            paper: None,
            beside: None,
        };
        let (_, line) = csv(&[cell]).split_once('\n').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
        assert_eq!(line, "label:x,aucpr,test,'=cmd(),1,-0.5,,,,,,\n", "numbers stay numbers");
    }
}
