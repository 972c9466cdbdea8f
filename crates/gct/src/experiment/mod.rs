//! Experiments: many trainings that together make one of the paper's tables.
//!
//! ```toml
//! title = "Masked diagnosis"
//! tasks = ["masked_diagnosis"]
//! models = ["gct", "transformer", "gct_scalar_1"]
//! split_seeds = [0, 1, 2, 3, 4]
//! figures = ["accuracy"]        # what the tables hold; by default that by which models are chosen
//! compare_with = "gct"          # the model that the others are tested against
//! test = true                   # false while settings are chosen: the test split is not looked at
//!
//! [data.synthetic]              # settings of `gct synth`; or [data] folder = "..."
//! encounters = 50000
//!
//! [variants.gct_scalar_1]       # a model under another name, with settings of its own
//! model = "gct"
//! set.prior.scalar = 1.0
//!
//! [[settings]]                  # laid over the paper's, in order
//! models = ["gct"]              # for these models only; likewise tasks
//! set.learning_rate = 0.001
//! ```
//!
//! `set.init = "pretrained/{split}"` begins with the weights of a run, another one for each seed of the
//! split.
//!
//! `include = "other.toml"` begins with everything that the other file says; its `settings` come first.
//!
//! Every model on every task with every split is a trial. A folder of experiments holds what they found,
//! which is small, and what they trained:
//!
//! ```text
//! DIR/data.json              counts of the dataset, and what any model can reach
//! DIR/NAME.toml              each experiment, with what it includes
//! DIR/NAME.md, .csv, .tex    its tables
//! DIR/NAME-TASK.svg          its learning curves
//! DIR/trials/TRIAL.json      what each finished trial found
//! DIR/runs/TRIAL/            its run folder
//! DIR/data/                  the dataset, if it was made for the experiment
//! ```
//!
//! With the first five alone, tables can be made again, and a trial that is there is not run again.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::{Error, OnPath, Result};
use crate::files::write_own;
use crate::ingest::synthetic;
use crate::model::Config;
use crate::overrides;
use crate::question::Question;
use crate::run::Settings;
use crate::split::SplitPart;

mod data;
mod gather;
mod render;
mod trial;
mod workers;

pub use data::About;
pub use gather::{Cell, Findings, gather};
pub use render::write;
pub use trial::{Finished, PlannedTrial};
pub use workers::{Event, Outcome, Share, run};

/// An experiment, as its file says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// The name of the file, without its ending.
    #[serde(skip)]
    pub name: String,
    /// What it is about.
    pub title: String,
    /// What models learn; none for a table of the data alone.
    #[serde(default)]
    pub tasks: Vec<Question>,
    /// Models, or names of variants.
    #[serde(default)]
    pub models: Vec<String>,
    /// One split for each.
    #[serde(default)]
    pub split_seeds: Vec<u64>,
    /// What the tables hold; if nothing, the metric by which models are chosen.
    #[serde(default, rename = "figures")]
    pub metrics: Vec<String>,
    /// The model that others are tested against; if none, `gct`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_with: Option<String>,
    /// Whether the test split is looked at. While settings are chosen it should not be: validation is for
    /// that.
    #[serde(default = "looks_at_test")]
    pub test: bool,
    /// What is learned from.
    #[serde(default)]
    pub data: Data,
    /// Models under other names.
    #[serde(default)]
    pub variants: BTreeMap<String, Variant>,
    /// What differs from the paper's settings.
    #[serde(default)]
    pub settings: Vec<Override>,
}

fn looks_at_test() -> bool {
    true
}

/// What is learned from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Data {
    /// A dataset folder; it can be given on the command line too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// Settings of the generator, over its defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub synthetic: Option<Table>,
}

/// A model under another name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// The model.
    pub model: String,
    /// What it has of its own, laid over everything else.
    #[serde(default)]
    pub set: Table,
}

/// Settings for some trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    /// For these tasks; for all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<Question>,
    /// For these models; for all if there are none. A variant is its model too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The settings.
    pub set: Table,
}

/// Metrics that a table can hold.
pub const METRICS: [&str; 16] = [
    "recall@10",
    "recall@20",
    "recall@30",
    "aucpr",
    "auroc",
    "accuracy",
    "accuracy_diagnosis",
    "accuracy_treatment",
    "accuracy_lab",
    "log_loss",
    "brier_score",
    "calibration_error",
    "kl_attention_truth",
    "kl_truth_attention",
    "entropy",
    "edges_aucpr",
];

impl Experiment {
    /// Reads an experiment, with `set` laid over the settings of every trial.
    ///
    /// # Errors
    /// If the file is not one, or something in it makes no sense.
    pub fn read(path: &Path, set: Table) -> Result<Self> {
        let wrong = |problem: String| Error::Malformed { path: path.to_owned(), problem };
        let mut experiment: Experiment = overrides::typed(&included(path)?).map_err(wrong)?;
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        experiment.name = name.unwrap_or_default();
        experiment.spell_models();
        if !set.is_empty() {
            for variant in experiment.variants.values_mut() {
                overrides::merge(&mut variant.set, set.clone());
            }
            experiment.settings.push(Override { tasks: Vec::new(), models: Vec::new(), set });
        }
        experiment.check().map_err(wrong)?;
        Ok(experiment)
    }

    /// Spells names of models as they are written; an unknown one is left as it is, for the check.
    fn spell_models(&mut self) {
        let spell = |name: &mut String| {
            if let Ok(canonical) = Config::canonical(name) {
                *name = canonical.into();
            }
        };
        self.variants.values_mut().for_each(|variant| spell(&mut variant.model));
        let named = self.models.iter_mut().chain(self.settings.iter_mut().flat_map(|one| &mut one.models));
        let is_model = |name: &&mut String| !self.variants.contains_key(name.as_str());
        named.chain(&mut self.compare_with).filter(is_model).for_each(spell);
    }

    fn check(&self) -> Result<(), String> {
        for (name, empty) in
            [("models", self.models.is_empty()), ("split_seeds", self.split_seeds.is_empty())]
        {
            if empty && !self.tasks.is_empty() {
                return Err(format!("`{name}` is empty, so there is nothing to train"));
            }
        }
        let repeated = |names: &[String]| (1..names.len()).find(|at| names[..*at].contains(&names[*at]));
        let seeds: Vec<String> = self.split_seeds.iter().map(ToString::to_string).collect();
        let tasks: Vec<String> = self.tasks.iter().map(ToString::to_string).collect();
        for (key, names) in [("tasks", &tasks), ("models", &self.models), ("split_seeds", &seeds)] {
            if let Some(at) = repeated(names) {
                return Err(format!("`{key}` has {} twice", names[at]));
            }
        }
        let sets = self.settings.iter().map(|one| &one.set).chain(self.variants.values().map(|one| &one.set));
        for set in sets {
            let inside =
                |table: &str, key: &str| set.get(table).is_some_and(|table| table.get(key).is_some());
            let taken = [
                ("task", set.contains_key("task")),
                ("split.seed", inside("split", "seed")),
                ("model.name", inside("model", "name")),
            ];
            if let Some((name, _)) = taken.into_iter().find(|(_, is_set)| *is_set) {
                return Err(format!("`{name}` cannot be set: `tasks`, `split_seeds` and `models` say it"));
            }
        }
        for variant in self.variants.keys() {
            if Config::NAMES.contains(&variant.as_str()) {
                return Err(format!("`variants.{variant}` has the name of a model"));
            }
        }
        for metric in &self.metrics {
            if !METRICS.contains(&metric.as_str()) {
                return Err(format!("unknown metric `{metric}`; known: {}", METRICS.join(", ")));
            }
        }
        let known =
            |name: &String| self.variants.contains_key(name) || Config::NAMES.contains(&name.as_str());
        let named = self.models.iter().chain(self.settings.iter().flat_map(|one| &one.models));
        if let Some(unknown) = named.chain(&self.compare_with).find(|name| !known(name)) {
            let variants = self.variants.keys().map(String::as_str);
            let names: Vec<&str> = Config::NAMES.into_iter().chain(variants).collect();
            return Err(format!("unknown model `{unknown}`; known: {}", names.join(", ")));
        }
        if self.compare_with.is_some() && !self.models.is_empty() && self.reference().is_none() {
            return Err("`compare_with` is not among `models`".into());
        }
        if self.data.folder.is_some() && self.data.synthetic.is_some() {
            return Err(
                "`data` has a folder and settings of the generator; it can be from one of them".into()
            );
        }
        self.generator().map(drop)
    }

    /// The settings of the generator, if the data are made for the experiment.
    fn generator(&self) -> Result<Option<synthetic::Settings>, String> {
        let Some(given) = &self.data.synthetic else { return Ok(None) };
        let mut settings = overrides::table(&synthetic::Settings::default());
        overrides::merge(&mut settings, given.clone());
        let settings = overrides::typed(&settings).map_err(|problem| format!("data.synthetic: {problem}"))?;
        Ok(Some(settings))
    }

    /// The model that others are tested against, if it is among those of the experiment.
    pub fn reference(&self) -> Option<&str> {
        let reference = self.compare_with.as_deref().unwrap_or("gct");
        self.models.iter().map(String::as_str).find(|model| *model == reference)
    }

    /// The parts of the split that are looked at.
    pub fn parts(&self) -> &'static [SplitPart] {
        if self.test { &[SplitPart::Validation, SplitPart::Test] } else { &[SplitPart::Validation] }
    }

    /// The part that models are judged by: the last one that is looked at.
    pub fn judged_by(&self) -> SplitPart {
        if self.test { SplitPart::Test } else { SplitPart::Validation }
    }

    /// The metrics of a task's tables.
    pub fn metrics(&self, task: &Question) -> Vec<String> {
        match self.metrics.is_empty() {
            true => vec![task.chosen_by().into()],
            false => self.metrics.clone(),
        }
    }

    /// The model behind a name.
    fn model<'a>(&'a self, name: &'a str) -> &'a str {
        self.variants.get(name).map_or(name, |variant| &variant.model)
    }

    /// All trials on data of this source: for each split, each task, each model that can learn it. A split is
    /// finished before the next one begins, so that there is something to compare early on.
    ///
    /// # Errors
    /// If settings make no sense.
    pub fn trials(&self, source: &str) -> Result<Vec<PlannedTrial>> {
        let mut trials = Vec::new();
        for &split_seed in &self.split_seeds {
            for task in &self.tasks {
                for name in &self.models {
                    let mut settings = Settings::paper(task.clone(), self.model(name), source)?;
                    if settings.head.check(settings.model.backbone(&settings.head)).is_err() {
                        // Deep has no nodes whose edges could be found: an empty cell, as in the paper.
                        continue;
                    }
                    settings = self.laid_over(settings, name)?;
                    settings.split.seed = split_seed;
                    settings.init = settings.init.map(|init| of_split(&init, split_seed));
                    settings.check()?;
                    trials.push(PlannedTrial { model: name.clone(), settings, test: self.test });
                }
            }
        }
        let mut names: Vec<String> = trials.iter().map(|trial| trial.name().to_lowercase()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            None => Ok(trials),
            Some(pair) => Err(Error::file(
                &PathBuf::from(format!("{}.toml", self.name)),
                format!("two trials would both be called {}: give tasks or variants other names", pair[0]),
            )),
        }
    }

    fn laid_over(&self, settings: Settings, name: &str) -> Result<Settings> {
        let model = self.model(name);
        let applies = |one: &&Override| {
            (one.tasks.is_empty() || one.tasks.contains(&settings.task))
                && (one.models.is_empty() || one.models.iter().any(|of| of == name || of == model))
        };
        let own = self.variants.get(name).map(|variant| &variant.set);
        let mut table = overrides::table(&settings);
        for set in self.settings.iter().filter(applies).map(|one| &one.set).chain(own) {
            overrides::merge(&mut table, set.clone());
        }
        overrides::typed(&table).map_err(|problem| Error::Malformed {
            path: PathBuf::from(format!("{}.toml", self.name)),
            problem: format!("settings of {name} on {}: {problem}", settings.task),
        })
    }

    /// Writes it into a folder of experiments, with what it includes.
    fn save(&self, folder: &Path) -> Result<()> {
        let text = toml::to_string(self).expect("an experiment has text keys and numbers that fit");
        write_own(&folder.join(format!("{}.toml", self.name)), text.as_bytes())
    }
}

/// The path of a run to begin with, with the seed of the split for `{split}`: weights that were learned on
/// another split have seen encounters that this one tests on.
fn of_split(init: &Path, seed: u64) -> PathBuf {
    match init.to_str() {
        Some(text) => text.replace("{split}", &seed.to_string()).into(),
        None => init.to_owned(),
    }
}

/// The experiments in a folder, by name.
///
/// # Errors
/// If it has none, or one of them cannot be read.
pub fn list(folder: &Path) -> Result<Vec<Experiment>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).on("read", folder)? {
        let path = entry.on("read", folder)?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        return Err(Error::NoExperiment { path: folder.to_owned() });
    }
    paths.iter().map(|path| Experiment::read(path, Table::new())).collect()
}

/// A file over those that it includes.
fn included(path: &Path) -> Result<Table> {
    let mut table = overrides::read(path)?;
    let wrong = |problem: &str| Error::Malformed { path: path.to_owned(), problem: problem.into() };
    let Some(include) = table.remove("include") else { return Ok(table) };
    let include = include.as_str().ok_or_else(|| wrong("`include` must be the name of a file"))?;
    let other = path.parent().unwrap_or(Path::new("")).join(include);
    let mut base = overrides::read(&other)?;
    if base.contains_key("include") {
        return Err(wrong(&format!("{} includes another file; only one level is read", other.display())));
    }
    // Lists are replaced when tables are merged, but these add up.
    let lists = [base.remove("settings"), table.remove("settings")];
    overrides::merge(&mut base, table);
    let mut settings = Vec::new();
    for list in lists.into_iter().flatten() {
        match list {
            Value::Array(list) => settings.extend(list),
            _ => return Err(wrong("`settings` must be a list: [[settings]]")),
        }
    }
    base.insert("settings".into(), Value::Array(settings));
    Ok(base)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Experiment> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.toml");
        fs::write(&path, text).unwrap();
        fs::write(
            folder.path().join("base.toml"),
            "split_seeds = [0]\n[data.synthetic]\nencounters = 200\n[[settings]]\nset.steps = 7\nset.warmup = 3",
        )
        .unwrap();
        Experiment::read(&path, Table::new())
    }

    const GOOD: &str = "title = \"t\"\ninclude = \"base.toml\"\nsplit_seeds = [4, 5]\nmodels = [\"gct\", \"deep\", \"mine\"]\n\
        tasks = [\"graph_reconstruction\", \"masked_diagnosis\"]\n\
        [[settings]]\ntasks = [\"masked_diagnosis\"]\nmodels = [\"gct\"]\nset.steps = 9\n\
        [variants.mine]\nmodel = \"gct\"\nset.prior.scalar = 1.0";

    #[test]
    fn trials_are_models_times_tasks_times_splits() {
        let experiment = read(GOOD).unwrap();
        let trials = experiment.trials("synthetic").unwrap();
        let names: Vec<String> = trials.iter().map(PlannedTrial::name).collect();
        // Deep cannot reconstruct graphs.
        let one = ["graph_reconstruction-gct", "graph_reconstruction-mine", "masked_diagnosis-gct"];
        let two = ["masked_diagnosis-deep", "masked_diagnosis-mine"];
        let expected: Vec<String> = ([4, 5].iter())
            .flat_map(|seed| one.iter().chain(&two).map(move |name| format!("{name}-{seed}")))
            .collect();
        assert_eq!(names, expected);
        let steps: Vec<u64> = trials[..5].iter().map(|trial| trial.settings.steps).collect();
        assert_eq!(steps, [7, 7, 9, 7, 9], "what is laid over gct is laid over its variant");
        let scalars: Vec<f32> = trials[..5].iter().map(|trial| trial.settings.prior.scalar).collect();
        assert_eq!(scalars, [0.5, 1.0, 0.5, 0.5, 1.0]);
        assert!(trials.iter().all(|trial| trial.settings.warmup == 3));
    }

    #[test]
    fn what_is_written_is_what_was_read() {
        let experiment = read(GOOD).unwrap();
        let folder = tempfile::tempdir().unwrap();
        experiment.save(folder.path()).unwrap();
        assert_eq!(list(folder.path()).unwrap(), [experiment]);
    }

    #[test]
    fn nonsense_is_refused() {
        for (from, to, problem) in [
            ("\"deep\"", "\"depe\"", "unknown model `depe`"),
            ("\"deep\"", "\"gct\"", "`models` has gct twice"),
            ("split_seeds = [4, 5]", "split_seeds = []", "`split_seeds` is empty"),
            ("title = \"t\"", "titel = \"t\"", "unknown field `titel`"),
            ("model = \"gct\"", "model = 3", "variants.mine.model: invalid type"),
            ("base.toml", "bose.toml", "cannot read"),
            ("set.steps = 9", "set.split.seed = 9", "`split.seed` cannot be set"),
            ("[variants.mine]", "[variants.deep]", "`variants.deep` has the name of a model"),
            ("[variants.mine]", "[variants.other]", "unknown model `mine`"),
            ("\"masked_diagnosis\"]", "\"masked\"]", "unknown task `masked`"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let error = read(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(problem), "{to}: {error}");
        }
        let bad = read(&GOOD.replace("prior.scalar = 1.0", "prior.scaler = 1.0")).unwrap();
        let error = bad.trials("synthetic").unwrap_err().to_string();
        assert!(
            error.contains("settings of mine on graph_reconstruction: unknown field `scaler`"),
            "{error}"
        );
    }
}
