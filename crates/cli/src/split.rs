//! `gct split`: who is trained on, who is tested on.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueEnum};
use gct::dataset::Dataset;
use gct::record::SubjectId;
use gct::split::{By, Settings, Split, SplitPart};
use serde_json::json;

use crate::output::OutputFile;
use crate::terminal::{self, count, percent};

/// Show or write the split into train, validation and test
#[derive(Args)]
#[command(after_help = "Examples:
  gct split synthetic
  gct split synthetic --split-seed 3 --stratify d1_m1 --out split-3.parquet
  gct split synthetic --split-by encounter      as the paper does

The file has the columns encounter_id and part.")]
pub(crate) struct Arguments {
    /// The dataset folder
    #[arg(value_name = "DIR")]
    data: PathBuf,

    #[command(flatten)]
    split: SplitArguments,

    #[command(flatten)]
    output: OutputFile,

    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// The options of every command that splits a dataset.
#[derive(Args)]
pub(crate) struct SplitArguments {
    /// Seed of the split
    #[arg(long, value_name = "N", default_value_t = 0)]
    split_seed: u64,

    /// What is kept together in one part
    #[arg(long, value_enum, value_name = "WHAT", default_value = "recorded")]
    split_by: ByName,

    /// Split the positives of this label 8:1:1 as well
    #[arg(long, value_name = "LABEL")]
    stratify: Option<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ByName {
    /// The parts that the source records, if it does; else as `subject`
    Recorded,
    /// All encounters of a subject: no patient is in two parts
    #[value(alias = "patient")]
    Subject,
    /// Nothing, as in the paper: a patient can be in two parts
    Encounter,
}

impl SplitArguments {
    pub(crate) fn split(&self, dataset: &Dataset) -> gct::Result<Split> {
        let by = match self.split_by {
            ByName::Recorded => By::Recorded,
            ByName::Subject => By::Subject,
            ByName::Encounter => By::Encounter,
        };
        let settings = Settings { seed: self.split_seed, by, stratify: self.stratify.clone() };
        settings.check_for(dataset)?;
        Split::new(&settings, dataset)
    }
}

/// What is on one side.
#[derive(Default)]
struct Side {
    encounters: u64,
    subjects: HashSet<SubjectId>,
    positives: Vec<u64>,
    known: Vec<u64>,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    arguments.output.check()?;
    let dataset = Dataset::open(&arguments.data)?;
    let split = arguments.split.split(&dataset)?;
    let labels = &dataset.manifest().labels;
    let mut sides: HashMap<SplitPart, Side> = SplitPart::ALL.map(|part| (part, Side::default())).into();
    for side in sides.values_mut() {
        side.positives = vec![0; labels.len()];
        side.known = vec![0; labels.len()];
    }
    let bar = terminal::progress(dataset.manifest().encounters, "splitting encounters", quiet);
    for encounter in dataset.encounters()? {
        let encounter = encounter?;
        let side = sides.entry(split.part(&encounter)).or_default();
        side.encounters += 1;
        for (label, value) in encounter.labels.iter().enumerate() {
            side.known[label] += u64::from(value.is_some());
            side.positives[label] += u64::from(*value == Some(true));
        }
        side.subjects.insert(encounter.subject);
        bar.inc(1);
        terminal::stop().check()?;
    }
    bar.finish_and_clear();
    let torn = torn_subjects(&sides);
    if let Some((out, overwrite)) = arguments.output.target() {
        let bar = terminal::progress(dataset.manifest().encounters, "writing encounters", quiet);
        let written = split.write(&dataset, out, overwrite, &terminal::counting(&bar));
        bar.finish_and_clear();
        written?;
    }

    let prevalence = |side: &Side, label: usize| {
        (side.known[label] > 0).then(|| side.positives[label] as f64 / side.known[label] as f64)
    };
    if arguments.json {
        let parts: serde_json::Map<_, _> = SplitPart::ALL
            .into_iter()
            .map(|part| {
                let side = &sides[&part];
                let prevalence: serde_json::Map<_, _> = (0..labels.len())
                    .map(|label| (labels[label].clone(), json!(prevalence(side, label))))
                    .collect();
                let value = json!({
                    "encounters": side.encounters,
                    "subjects": side.subjects.len(),
                    "label_prevalence": prevalence,
                });
                (part.name().to_owned(), value)
            })
            .collect();
        let mut report = json!(parts);
        report["subjects_on_several_sides"] = json!(torn);
        return Ok(terminal::print_json(&report)?);
    }
    let mut header = vec!["part", "encounters", "subjects"];
    header.extend(labels.iter().map(String::as_str));
    let rows = SplitPart::ALL.into_iter().map(|part| {
        let side = &sides[&part];
        let mut row = vec![part.name().into(), count(side.encounters), count(side.subjects.len() as u64)];
        row.extend((0..labels.len()).map(|label| percent(prevalence(side, label))));
        row
    });
    let mut text = terminal::table(&header, rows);
    text += &format!("{} subjects in several parts\n", count(torn));
    Ok(terminal::print(&text)?)
}

/// How many subjects are on more than one side.
fn torn_subjects(sides: &HashMap<SplitPart, Side>) -> u64 {
    let mut appearances: HashMap<&SubjectId, u32> = HashMap::new();
    for subject in sides.values().flat_map(|side| &side.subjects) {
        *appearances.entry(subject).or_default() += 1;
    }
    appearances.values().filter(|sides| **sides > 1).count() as u64
}
