//! Settings from a preset, a TOML file and `--set key=value`, each overriding the one before it.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use gct::dataset::Dataset;
use gct::model::Config;
use gct::overrides::{merge, read, table, typed};
use gct::question::Question;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::terminal::refusal;

/// The options of every command that has settings.
#[derive(Args)]
pub(crate) struct SettingsArguments {
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// One setting, by the name that --show-config prints; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Print the settings as TOML and stop
    #[arg(long, conflicts_with = "json")]
    pub(crate) show_config: bool,
}

impl SettingsArguments {
    /// Whether any setting is given.
    pub(crate) fn is_given(&self) -> bool {
        self.config.is_some() || !self.set.is_empty()
    }

    /// The paper's settings for a task and a model, which flags, the file or a `--set` name, with everything else on top of them.
    pub(crate) fn training(
        &self,
        task: Option<&str>,
        model: Option<&str>,
        data: Option<&Dataset>,
    ) -> Result<gct::run::Settings> {
        let layers = self.spelled(data)?;
        let given = |name: &str, flag: Option<String>, path: &[&str]| match (flag, last(&layers, path)) {
            (Some(flag), Some(set)) if flag != set => {
                let problem = format!("--{name} {flag}, but --config or --set says `{set}`");
                Err(refusal(problem, "leave out one of them"))
            }
            (flag, set) => Ok(flag.or_else(|| set.map(str::to_owned))),
        };
        let task = task.map(|task| task_of(task, data)).transpose()?.map(|task| task.to_string());
        let Some(task) = given("task", task, &["task"])? else {
            let hint = format!("give one of {}, label:NAME", Question::NAMES.join(", "));
            return Err(refusal("--task is missing", hint));
        };
        let model = model.map(Config::canonical).transpose()?.map(str::to_owned);
        let model = given("model", model, &["model", "name"])?.unwrap_or_else(|| "gct".into());
        let source = data.map_or(gct::synth::SOURCE, |data| data.manifest().source.kind.as_str());
        laid_over(&gct::run::Settings::paper(task.parse()?, &model, source)?, &layers)
    }

    /// Settings of a training with the file, then each `--set`, on top of them.
    pub(crate) fn apply_to_training(
        &self,
        settings: &gct::run::Settings,
        data: &Dataset,
    ) -> Result<gct::run::Settings> {
        laid_over(settings, &self.spelled(Some(data))?)
    }

    /// Applies the file, then each `--set`, to the defaults.
    pub(crate) fn apply<T: Serialize + DeserializeOwned>(&self, defaults: &T) -> Result<T> {
        laid_over(defaults, &self.layers()?)
    }

    /// The file, then each `--set`, as tables; each with what to call it where it is wrong.
    fn layers(&self) -> Result<Vec<Layer>> {
        let file = self.config.iter().map(|path| Ok((path.display().to_string(), read(path)?)));
        let sets = self.set.iter().map(|set| Ok((format!("--set {set}"), assignment(set)?)));
        file.chain(sets).collect()
    }

    /// The same, with tasks and models by the names that files have.
    fn spelled(&self, data: Option<&Dataset>) -> Result<Vec<Layer>> {
        let mut layers = self.layers()?;
        for (_, layer) in &mut layers {
            if let Some(toml::Value::String(task)) = layer.get_mut("task") {
                *task = task_of(task, data)?.to_string();
            }
            if let Some(toml::Value::String(name)) =
                layer.get_mut("model").and_then(|model| model.get_mut("name"))
            {
                *name = Config::canonical(name)?.into();
            }
        }
        Ok(layers)
    }
}

/// Settings that are given together, and what to call them where they are wrong.
type Layer = (String, toml::Table);

/// A task by its name, or by that of a label of the dataset.
pub(crate) fn task_of(name: &str, data: Option<&Dataset>) -> gct::Result<Question> {
    Question::named(name, data.map_or(&[][..], |data| &data.manifest().labels[..]))
}

/// A text among the settings, the last one that is given, by the path of its key.
fn last<'a>(layers: &'a [Layer], path: &[&str]) -> Option<&'a str> {
    layers.iter().rev().find_map(|(_, layer)| {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(layer.get(*first)?, |value, key| value.get(*key))?.as_str()
    })
}

/// Lays settings over others. Each layer is checked by itself, so that a mistake is blamed on the one that it is in.
fn laid_over<T: Serialize + DeserializeOwned>(defaults: &T, layers: &[Layer]) -> Result<T> {
    let mut settings = table(defaults);
    for (name, layer) in layers {
        merge(&mut settings, layer.clone());
        typed::<T>(&settings).map_err(|problem| refusal(format!("{name}: {problem}"), SHOW))?;
    }
    typed(&settings).map_err(|problem| refusal(problem, SHOW))
}

const SHOW: &str = "--show-config prints all settings with their names and values";

fn bad_setting(set: &str, problem: &str) -> anyhow::Error {
    refusal(format!("--set {set}: {problem}"), SHOW)
}

/// `a.b=1` as a table. A value that is no TOML value is taken as text.
pub(crate) fn assignment(set: &str) -> Result<toml::Table> {
    let (key, value) = set
        .split_once('=')
        .filter(|_| !set.contains('\n'))
        .ok_or_else(|| bad_setting(set, "expected KEY=VALUE"))?;
    let parse = |value: &str| format!("{} = {value}", key.trim()).parse::<toml::Table>();
    parse(value.trim())
        .or_else(|_| parse(&toml::Value::from(value.trim()).to_string()))
        .map_err(|error| bad_setting(set, error.message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(set: &[&str]) -> Result<gct::split::Settings> {
        let set = set.iter().map(ToString::to_string).collect();
        SettingsArguments { config: None, set, show_config: false }.apply(&gct::split::Settings::default())
    }

    #[test]
    fn values_are_toml_or_text() {
        let settings = apply(&["seed = 7", "by=encounter", "stratify=\"died\""]).unwrap();
        assert_eq!((settings.seed, settings.by), (7, gct::split::By::Encounter));
        assert_eq!(settings.stratify.as_deref(), Some("died"));
    }

    #[test]
    fn unknown_keys_and_bad_values_are_refused() {
        assert_eq!(
            apply(&["sead=7"]).unwrap_err().to_string(),
            "--set sead=7: unknown field `sead`, expected one of `seed`, `by`, `stratify`"
        );
        assert_eq!(apply(&["seed"]).unwrap_err().to_string(), "--set seed: expected KEY=VALUE");
        assert!(
            apply(&["seed=-1"]).unwrap_err().to_string().starts_with("--set seed=-1: seed: invalid value")
        );
    }
}
