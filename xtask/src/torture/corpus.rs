//! What is damaged and killed: a few files that are kept in `xtask/corpus/world`, and what the program itself
//! makes at the start.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::{Compression, write::GzEncoder};
use serde_json::Value;

use super::program::Programs;
use super::tree;
use crate::root;

/// What every identifier of a subject or an encounter begins with. It must never be printed, nor written to a
/// log.
pub(crate) const MARKER: &str = "PLANTED-4711";

/// Settings that make a training take a fraction of a second.
pub(crate) const SMALL: &str = "--set batch=8 --set validate_every=6 --set model.width=16";

/// How many encounters the table of events has: enough for three parts of a split.
const ENCOUNTERS: usize = 120;

/// A folder with everything to begin with:
///
/// ```text
/// tables/        events.csv and links.csv, with planted identifiers
/// labels.csv     two labels of these encounters; new.jsonl their codes as JSON lines; known.csv known links
/// packed/        the same events as events.csv.gz
/// parquet/       events.parquet, made of predictions; events.parquet beside it a few of the events
/// synthea/       a few tables of Synthea; eicu/, mimic4/, meds/, omop/ and claims/ of those; fhir/ a bundle
///                and ndjson/ the same as lines
/// data/, pairs/  synthetic datasets; planted/ that of the tables
/// run/, other/   runs of graph reconstruction that differ in their seed; labelled/ one of a label;
///                calibrated/ one of two, which is, with its predictions in theirs.csv
/// results/       of an experiment; tuned/ of a tuning
/// *.toml         settings
/// ```
pub(crate) struct World(PathBuf);

impl World {
    pub(crate) fn build(programs: &Programs, folder: &Path) -> Result<Self> {
        tree::copy(&root().join("xtask/corpus/world"), folder)?;
        let world = World(folder.to_owned());
        world.write_tables()?;
        world.write_fhir()?;
        for line in [
            "synth --out data --encounters 150",
            "prepare events tables --labels labels.csv --out planted",
            "train --data planted --task graph_reconstruction --out run --steps 12 SMALL",
            "train --data planted --task graph_reconstruction --out other --steps 12 --seed 1 SMALL",
            "train --data planted --task label:died --out labelled --steps 12 SMALL",
            "synth --preset appendix --out pairs --encounters 600",
            "train --data pairs --task diagnosis_treatment --out calibrated --steps 24 SMALL --set batch=32 --set learning_rate=0.01",
            "calibrate calibrated",
            "predict calibrated --split all --out theirs.csv",
            "predict run --split all --out parquet/events.parquet",
            "experiment experiment.toml --out results",
            "tune --data planted --task masked_diagnosis --out tuned --trials 2 --steps 6 --space space.toml SMALL",
        ] {
            programs.succeed(&world.line(line), folder)?;
        }
        let shown = "train --show-config --data planted --task graph_reconstruction --steps 6 SMALL";
        let settings = programs.succeed(&world.line(shown), folder)?.stdout;
        fs::write(folder.join("settings.toml"), settings)?;
        Ok(world)
    }

    /// A line of arguments with the words WORLD and SMALL replaced.
    pub(crate) fn line(&self, line: &str) -> String {
        line.replace("SMALL", SMALL).replace("WORLD", &self.0.to_string_lossy())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Copies a file or a folder of it elsewhere.
    pub(crate) fn copy(&self, name: &str, home: &Path) -> Result<()> {
        let (from, to) = (self.path(name), home.join(name));
        if from.is_dir() {
            return tree::copy(&from, &to);
        }
        fs::copy(&from, &to).with_context(|| format!("cannot copy {}", from.display())).map(drop)
    }

    fn write_tables(&self) -> Result<()> {
        for folder in ["tables", "packed", "parquet"] {
            fs::create_dir(self.path(folder))?;
        }
        fs::write(self.path("tables/events.csv"), events())?;
        fs::write(self.path("tables/links.csv"), links())?;
        fs::write(self.path("labels.csv"), labels())?;
        fs::write(self.path("new.jsonl"), lines())?;
        fs::write(self.path("known.csv"), "diagnosis,treatment\nD1,T1\nD2,T5\nD8,T3\nnone,T3\n")?;
        let mut packed =
            GzEncoder::new(File::create(self.path("packed/events.csv.gz"))?, Compression::default());
        packed.write_all(events().as_bytes())?;
        packed.finish()?;
        Ok(())
    }

    fn write_fhir(&self) -> Result<()> {
        let bundle: Value = serde_json::from_slice(&fs::read(self.path("bundle.json"))?)?;
        for folder in ["fhir", "ndjson"] {
            fs::create_dir(self.path(folder))?;
        }
        fs::rename(self.path("bundle.json"), self.path("fhir/bundle.json"))?;
        let entries = bundle["entry"].as_array().context("the bundle has no entries")?;
        let lines: String = entries.iter().map(|entry| format!("{}\n", entry["resource"])).collect();
        fs::write(self.path("ndjson/all.ndjson"), lines)?;
        Ok(())
    }
}

/// Kind and code of what is recorded of an encounter: two diagnoses, two treatments and a lab.
fn codes(encounter: usize) -> [(&'static str, String); 5] {
    let code = |letter: char, number: usize| format!("{letter}{number}");
    [
        ("dx", code('D', encounter % 7)),
        ("dx", code('D', 7 + encounter % 3)),
        ("rx", code('T', encounter % 5)),
        ("rx", code('T', 5 + encounter % 2)),
        ("lab", code('L', encounter % 4)),
    ]
}

fn events() -> String {
    let mut table = "encounter_id,subject_id,kind,code,time,numeric_value\n".to_owned();
    for encounter in 0..ENCOUNTERS {
        for (kind, code) in codes(encounter) {
            let value = if kind == "lab" { format!("{}.5", encounter % 9) } else { String::new() };
            let (subject, day) = (encounter / 2, encounter % 28 + 1);
            writeln!(
                table,
                "{MARKER}-e{encounter},{MARKER}-s{subject},{kind},{code},2020-01-{day:02},{value}"
            )
            .expect("writing to a string");
        }
    }
    table
}

/// The same encounters as JSON lines.
fn lines() -> String {
    let line = |encounter: usize| {
        let [(_, d), (_, e), (_, t), (_, u), (_, lab)] = codes(encounter);
        let lab = format!("{{\"code\": \"{lab}\", \"value\": {}.5}}", encounter % 9);
        format!(
            "{{\"encounter_id\": \"{MARKER}-e{encounter}\", \"diagnosis\": [\"{d}\", \"{e}\"], \
             \"treatment\": [\"{t}\", \"{u}\"], \"lab\": [{lab}]}}\n"
        )
    };
    (0..ENCOUNTERS).map(line).collect()
}

fn links() -> String {
    let rows = (0..ENCOUNTERS).map(|encounter| {
        let [(_, diagnosis), _, (_, treatment), ..] = codes(encounter);
        format!("{MARKER}-e{encounter},{diagnosis},{treatment}\n")
    });
    "encounter_id,cause,effect\n".to_owned() + &rows.collect::<String>()
}

fn labels() -> String {
    let rows = (0..ENCOUNTERS).map(|encounter| {
        let (died, again) = (encounter.is_multiple_of(3), encounter.is_multiple_of(5));
        format!("{MARKER}-e{encounter},{died},{again}\n")
    });
    "encounter_id,died,again\n".to_owned() + &rows.collect::<String>()
}
