//! `gct demo`: the whole life of a few models in a few minutes.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use gct::ceiling::{Ceiling, Scores as CeilingScores};
use gct::dataset::Dataset;
use gct::evaluate::{self, Evaluation};
use gct::files::Overwrite;
use gct::infer::{Reader, Which};
use gct::ingest::synthetic;
use gct::job::Job;
use gct::metric::Bootstrap;
use gct::model::{Config, Dropouts};
use gct::picture::{self, Line, Series};
use gct::predict::explain;
use gct::question::{Labels, Prediction, Question};
use gct::record::EncounterId;
use gct::report::{Looked, Options};
use gct::run::{Decay, Run, Settings};
use gct::split::SplitPart;
use gct::synth::Findings;
use gct::train::{self, Event, Execution};
use indicatif::ProgressBar;
use serde_json::json;

use crate::explain::{node, write};
use crate::terminal::{self, count, refusal, score, visible};

/// Try it: generate data, train a model of a label and three that find hidden edges, compare, explain
///
/// 10,000 synthetic encounters, whose edges are known; the labels `d1_m1` and `d2_m1` by GCT, and graph
/// reconstruction by GCT, Transformer and Shallow. It ends with a page and a model card. If it is stopped,
/// the same command resumes it.
#[derive(Args)]
#[command(after_help = "Example:
  gct demo")]
pub(crate) struct Arguments {
    /// The folder for data, runs and report
    #[arg(long, value_name = "DIR", default_value = "gct-demo")]
    out: PathBuf,

    /// Encounters to generate
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    encounters: u64,

    /// Training steps of each model that finds edges, of 32 encounters each; half as many for the label
    #[arg(long, value_name = "N", default_value_t = 2000)]
    steps: u64,

    /// Start over if the folder holds a demo already
    #[arg(long)]
    force: bool,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// A training of the demo.
#[derive(Clone)]
struct Training {
    /// The name of its folder.
    folder: &'static str,
    model: &'static str,
    question: Question,
}

/// In the order of the page, which opens on the first one.
fn trainings() -> [Training; 4] {
    let edges = |model| Training { folder: model, model, question: Question::Edges };
    let question = Question::Labels(Labels::DiagnosisTreatment);
    let label = Training { folder: LABEL, model: "gct", question };
    [label, edges("gct"), edges("transformer"), edges("shallow")]
}

/// The folder of the run that predicts labels.
const LABEL: &str = "label";

/// Folders beside those of the runs.
const DATA: &str = "data";
const REPORT: &str = "report";

/// The page that shows all of it.
const PAGE: &str = "report.html";

/// The model card of the run that predicts labels.
const CARD: &str = "card.md";

/// Fewer encounters than this may leave a part of the split empty.
const FEWEST: u64 = 200;

/// Validations of each training: points of its learning curve.
const VALIDATIONS: u64 = 10;

/// A model, trained and measured.
struct Trained {
    folder: &'static str,
    run: Run,
    evaluation: Evaluation,
    encounters_per_second: f64,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    whole(arguments, quiet).map_err(|error| match error.downcast() {
        Ok(gct::Error::Stopped { .. } | gct::Error::Interrupted) if arguments.force => {
            terminal::Stopped("run the same command again without --force to resume").into()
        }
        Ok(error) => terminal::resumable(error),
        Err(error) => error,
    })
}

fn whole(arguments: &Arguments, quiet: bool) -> Result<()> {
    let start = Instant::now();
    check(arguments)?;
    let (dataset, findings) = data(arguments, quiet)?;
    let mut display = Display::new(arguments, quiet);
    let trained: Result<Vec<Trained>> =
        trainings().iter().map(|training| train(arguments, &dataset, training, &mut display)).collect();
    display.bar.finish_and_clear();
    let trained = trained?;
    let (labels, edges) = trained.split_first().expect("the first training is that of the labels");
    let ceiling = &findings.ceiling;
    let report = arguments.out.join(REPORT);
    draw(&report, &dataset, edges, &ceiling.ceiling_joint)?;
    write(&report.join(PAGE), &page(&dataset, &trained, quiet)?, Overwrite::Replace)?;
    let card = crate::card::of_demo(&labels.run, &dataset, &report.join(CARD))?;
    write(&report.join(CARD), &card, Overwrite::Replace)?;
    let summary = summary(arguments, &trained, ceiling, start.elapsed().as_secs_f64());
    write(&report.join("summary.json"), &format!("{summary:#}\n"), Overwrite::Replace)?;
    if arguments.json {
        return Ok(terminal::print_json(&summary)?);
    }
    let mut text = format!("{}\n{}", labels_table(labels, ceiling), table(edges, &ceiling.ceiling_joint));
    text += &format!(
        "\n{} encounters, {} steps for the labels and {} for the edges each, in {:.0} s. Higher is better, but for \
         attention KL, the divergence of attention from the truth.\n\
         Open {} in a browser; the model card and pictures are beside it.\n\nnext:\n",
        count(dataset.manifest().encounters),
        count(steps(arguments, &trainings()[0].question)),
        count(arguments.steps),
        start.elapsed().as_secs_f64(),
        visible(report.join(PAGE).display())
    );
    // As it was called, so that the lines can be copied.
    let program = visible(std::env::args().next().unwrap_or_else(|| "gct".into()));
    for line in next(&arguments.out, &labels.run, &dataset)? {
        text += &format!("  {program} {line}\n");
    }
    Ok(terminal::print(&text)?)
}

/// What to try next.
fn next(out: &Path, labels: &Run, dataset: &Dataset) -> Result<Vec<String>> {
    let out = visible(out.display());
    let encounter = telling(labels, dataset)?;
    let encounter = encounter.map_or_else(String::new, |id| format!(" --encounter {}", visible(id.as_str())));
    Ok(vec![
        format!("explain {out}/{LABEL}{encounter}"),
        format!("evaluate {out}/{LABEL}"),
        format!("explain {out}/gct --graph graph.svg"),
        format!("train --data {out}/data --task masked_diagnosis --model gct --out {out}/masked"),
    ])
}

/// The test encounter with a true label of which the model is surest. It is made up, so its name may be told.
fn telling(run: &Run, dataset: &Dataset) -> Result<Option<EncounterId>> {
    let test = Reader::for_predictions(run, dataset, Which::Part(SplitPart::Test))?;
    let test = test.collect::<gct::Result<Vec<_>>>()?;
    let surest = |labels: &[Option<bool>], prediction: &Prediction| match prediction {
        Prediction::Labels(chances) => {
            let is_true = labels.iter().zip(chances).filter(|(label, _)| **label == Some(true));
            is_true.map(|(_, chance)| *chance).max_by(f64::total_cmp)
        }
        Prediction::Edges(_)
        | Prediction::HiddenDiagnosis { .. }
        | Prediction::HiddenCode { .. }
        | Prediction::NextDiagnoses { .. } => None,
    };
    let predictions = run.predict(&test)?;
    let sure = test.iter().zip(&predictions);
    let sure = sure.filter_map(|(encounter, said)| Some((surest(&encounter.labels, said)?, encounter)));
    Ok(sure.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, encounter)| encounter.id.clone()))
}

/// Refuses settings that make no sense; and, before anything is written, a folder in which something else
/// than a demo stands where one would be: what a user made is not begun anew.
fn check(arguments: &Arguments) -> Result<()> {
    let out = &arguments.out;
    let foreign = |name: &str| {
        let problem = format!("{} holds `{name}`, which is not of a demo", out.display());
        Err(refusal(problem, "choose another folder with --out"))
    };
    if let Some(manifest) = ["dataset.json", "run.json"].into_iter().find(|name| out.join(name).exists()) {
        return foreign(manifest);
    }
    if out.join(DATA).exists() {
        let source = Dataset::open(&out.join(DATA))?.manifest().source.clone();
        let made: Option<synthetic::Settings> = serde_json::from_value(source.settings).ok();
        let of_any_size = |made| synthetic::Settings { encounters: 0, ..made };
        if source.kind != gct::synth::SOURCE || made.map(of_any_size) != Some(of_any_size(Default::default()))
        {
            return foreign(DATA);
        }
    }
    for training in trainings() {
        let (folder, wanted) =
            (out.join(training.folder), settings(&training, steps(arguments, &training.question))?);
        wanted.check()?;
        if !folder.exists() {
            continue;
        }
        let made = Run::open(&folder)?.settings().clone();
        if made != settings(&training, made.steps)? {
            return foreign(training.folder);
        }
        if made != wanted && !arguments.force {
            return Err(other_demo(&folder));
        }
    }
    Ok(())
}

/// Makes the data, unless they are there already.
fn data(arguments: &Arguments, quiet: bool) -> Result<(Dataset, Findings)> {
    let folder = arguments.out.join(DATA);
    let settings = synthetic::Settings { encounters: arguments.encounters, ..Default::default() };
    if arguments.encounters < FEWEST {
        let problem = format!("--encounters {}: a demo needs at least {FEWEST}", arguments.encounters);
        return Err(refusal(problem, format!("give --encounters {FEWEST} or more")));
    }
    if arguments.force || !folder.exists() {
        let bar = terminal::progress(settings.encounters, "drawing encounters", quiet);
        let overwrite = if arguments.force { Overwrite::Replace } else { Overwrite::Refuse };
        let job = terminal::drawing(&bar, "measuring the best that any model can do, a few seconds");
        let made = gct::synth::run(&settings, &folder, overwrite, &job);
        bar.finish_and_clear();
        made?;
    }
    let dataset = Dataset::open(&folder)?;
    match Findings::of(&dataset)? {
        Some(findings) if dataset.manifest().encounters == arguments.encounters => Ok((dataset, findings)),
        _ => Err(other_demo(&folder)),
    }
}

fn other_demo(folder: &Path) -> anyhow::Error {
    refusal(format!("{} is not of this demo", folder.display()), "--force starts over")
}

/// Trains one model, or resumes it, and evaluates it.
fn train(
    arguments: &Arguments,
    dataset: &Dataset,
    training: &Training,
    display: &mut Display,
) -> Result<Trained> {
    terminal::stop().check()?;
    let (folder, steps) = (arguments.out.join(training.folder), steps(arguments, &training.question));
    display.name = training.folder;
    let shared = Mutex::new(&mut *display);
    let job = Job::new(terminal::stop(), |event| {
        shared.lock().unwrap_or_else(PoisonError::into_inner).show(&event);
    });
    if folder.exists() && !arguments.force {
        train::resume(&folder, dataset, None, Execution::default(), &job)?;
    } else {
        let overwrite = if arguments.force { Overwrite::Replace } else { Overwrite::Refuse };
        let settings = settings(training, steps)?;
        train::start(settings, dataset, &folder, overwrite, Execution::default(), &job)?;
    }
    drop(job);
    display.done += steps;
    display.bar.set_position(display.done);
    let run = Run::open(&folder)?;
    let bootstrap = Bootstrap { replicates: 0, seed: 0 };
    let job = Job::new(terminal::stop(), |_| {});
    let evaluation = evaluate::run(&run, dataset, Which::Part(SplitPart::Test), bootstrap, &job)?;
    let entries = run.entries()?;
    let speeds: f64 = entries.iter().map(|entry| entry.encounters_per_second).sum();
    let encounters_per_second = speeds / entries.len().max(1) as f64;
    Ok(Trained { folder: training.folder, run, evaluation, encounters_per_second })
}

/// How many steps a training has: labels are learned sooner than edges.
fn steps(arguments: &Arguments, question: &Question) -> u64 {
    match question {
        Question::Edges | Question::HiddenDiagnosis | Question::HiddenCode | Question::NextDiagnoses(_) => {
            arguments.steps
        }
        Question::Labels(_) => arguments.steps.div_ceil(2),
    }
}

/// The paper's settings are for a million steps. For so few, learning is faster, slows down at the end, and
/// drops nothing.
fn settings(training: &Training, steps: u64) -> Result<Settings> {
    let mut settings = Settings::paper(training.question.clone(), training.model, gct::synth::SOURCE)?;
    settings.steps = steps;
    settings.validate_every = (steps / VALIDATIONS).max(1);
    settings.learning_rate = 0.005;
    settings.warmup = steps / 20;
    settings.decay = Decay::Cosine;
    match &mut settings.model {
        Config::Gct(config) => config.dropout = Dropouts::default(),
        Config::Transformer(config) => config.dropout = Dropouts::default(),
        Config::Shallow(config) => config.dropout = 0.0,
        _ => {}
    }
    Ok(settings)
}

/// One bar over all trainings.
struct Display {
    bar: ProgressBar,
    lines: bool,
    name: &'static str,
    /// Steps of the models before.
    done: u64,
    last: Option<f64>,
}

impl Display {
    fn new(arguments: &Arguments, quiet: bool) -> Self {
        let steps = trainings().iter().map(|training| steps(arguments, &training.question)).sum();
        let bar = terminal::training(steps, 32, quiet);
        Display { bar, lines: !quiet && !io::stderr().is_terminal(), name: "", done: 0, last: None }
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::Read(_) | Event::Began(_) | Event::Drawn(_) => {}
            Event::Started { step, .. } => {
                self.last = None;
                self.bar.set_position(self.done + step);
            }
            Event::Step { step, loss } => {
                self.bar.set_position(self.done + step);
                self.bar.set_message(format!("{}, loss {loss:.3}, AUCPR {}", self.name, score(self.last)));
            }
            Event::Validated(entry) => {
                self.last = entry.value;
                if self.lines {
                    // If standard error is closed, nobody is left to tell.
                    let (step, value) = (count(entry.step), score(entry.value));
                    let _ =
                        writeln!(io::stderr().lock(), "{} step {step}: validation AUCPR {value}", self.name);
                }
            }
        }
    }
}

fn table(trained: &[Trained], ceiling: &CeilingScores) -> String {
    let mut rows: Vec<Vec<String>> = (trained.iter())
        .map(|Trained { run, evaluation, encounters_per_second, .. }| {
            let structure = evaluation.structure.as_ref();
            vec![
                run.settings().model.name().into(),
                score(evaluation.scores.value("aucpr")),
                score(evaluation.scores.value("auroc")),
                score(structure.and_then(|structure| structure.kl_attention_truth.mean)),
                score(structure.and_then(|structure| structure.entropy.mean)),
                count(*encounters_per_second as u64),
            ]
        })
        .collect();
    rows.push(vec![
        "the best that any model can do".into(),
        score(ceiling.all_pairs.aucpr),
        score(ceiling.all_pairs.auroc),
    ]);
    let header = ["hidden edges", "AUCPR", "AUROC", "attention KL", "entropy", "encounters/s learned"];
    terminal::table(&header, rows)
}

/// The labels, beside the best that any model can do.
fn labels_table(trained: &Trained, ceiling: &Ceiling) -> String {
    let scores = &trained.evaluation.scores;
    let own = [score(scores.value("aucpr")), score(scores.value("auroc"))];
    let best = ceiling.diagnosis_treatment.map(|best| [best.areas.aucpr, best.areas.auroc].map(score));
    let rows = [(trained.run.settings().model.name(), Some(own)), ("the best that any model can do", best)];
    let rows = rows.into_iter().filter_map(|(name, scores)| {
        Some([name.to_owned()].into_iter().chain(scores?).collect::<Vec<String>>())
    });
    terminal::table(&["labels d1_m1 and d2_m1", "AUCPR", "AUROC"], rows)
}

fn summary(arguments: &Arguments, trained: &[Trained], ceiling: &Ceiling, seconds: f64) -> serde_json::Value {
    let report = |Trained { run, evaluation, encounters_per_second, .. }: &Trained| {
        let mut report = crate::evaluate::report(run, evaluation);
        report["encounters_per_second"] = json!(encounters_per_second);
        report
    };
    let (labels, edges): (Vec<&Trained>, Vec<&Trained>) =
        trained.iter().partition(|trained| trained.folder == LABEL);
    let models: serde_json::Map<_, _> =
        edges.iter().map(|trained| (trained.folder.to_owned(), report(trained))).collect();
    json!({
        "encounters": arguments.encounters,
        "steps": arguments.steps,
        "label": labels.first().map(|trained| report(trained)),
        "label_steps": steps(arguments, &trainings()[0].question),
        "label_ceiling": ceiling.diagnosis_treatment,
        "models": models,
        "ceiling": ceiling.ceiling_joint,
        "seconds": seconds,
    })
}

/// All of it as one page.
fn page(dataset: &Dataset, trained: &[Trained], quiet: bool) -> gct::Result<String> {
    let looked: Vec<Looked<'_>> = (trained.iter())
        .map(|Trained { folder, run, .. }| {
            let name = (*folder).to_owned();
            Looked { name, run, dataset, test_set: Which::Part(SplitPart::Test).into() }
        })
        .collect();
    crate::report::page(&looked, &Options::default(), None, quiet)
}

/// Learning curves, and what GCT and Transformer believe about one encounter.
fn draw(report: &Path, dataset: &Dataset, trained: &[Trained], ceiling: &CeilingScores) -> Result<()> {
    let series = trained.iter().map(|trained| -> Result<Series> {
        let points = trained
            .run
            .entries()?
            .iter()
            .filter_map(|entry| Some((entry.step as f64, entry.value?)))
            .collect();
        Ok(Series { name: trained.run.settings().model.name().into(), points })
    });
    let series = series.collect::<Result<Vec<Series>>>()?;
    let references: Vec<Line> = (ceiling.all_pairs.aucpr.into_iter())
        .map(|value| Line { name: "the best that any model can do".into(), value })
        .collect();
    let curves = picture::curves("Graph reconstruction", "step", "validation AUCPR", &series, &references);
    write(&report.join("learning-curves.svg"), &curves, Overwrite::Replace)?;
    for trained in trained {
        let explanation = explain(&trained.run, dataset, None, 0, &Job::new(terminal::stop(), |_| {}))?;
        let (structure, name) = (&explanation.structure, trained.run.settings().model.name());
        if structure.layers.is_empty() {
            continue;
        }
        let bars = picture::bars(structure, node(&explanation, None)?);
        write(&report.join(format!("{name}-attention.svg")), &bars, Overwrite::Replace)?;
        for layer in 0..structure.layers.len() {
            let file = report.join(format!("{name}-block-{}.svg", layer + 1));
            write(&file, &picture::graph(structure, layer).svg, Overwrite::Replace)?;
        }
    }
    Ok(())
}
