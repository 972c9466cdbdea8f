//! Settings of a command from a preset, a TOML file and `--set key=value`, each overriding the one before it.

use anyhow::Result;
use gct::dataset::Dataset;
use gct::model::Config;
use gct::overrides::{self, Layer};
use gct::question::Question;
use gct_terminal::SHOW_CONFIG;
pub(crate) use gct_terminal::SettingsArguments;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::terminal::refusal;

/// The paper's settings for a task and a model, which flags, the file or a `--set` name, with everything else
/// on top of them.
pub(crate) fn training(
    arguments: &SettingsArguments,
    task: Option<&str>,
    model: Option<&str>,
    data: Option<&Dataset>,
) -> Result<gct::run::Settings> {
    let layers = spelled(arguments, data)?;
    let given = |name: &str, flag: Option<String>, path: &[&str]| match (flag, last(&layers, path)) {
        (Some(flag), Some(set)) if flag != set => {
            let problem = format!("--{name} {flag}, but --config or --set says `{set}`");
            Err(refusal(problem, "leave out one of them"))
        }
        (flag, set) => Ok(flag.or_else(|| set.map(str::to_owned))),
    };
    let task = task.map(|task| task_of(task, data)).transpose()?.map(|task| task.to_string());
    let Some(task) = given("task", task, &["task"])? else {
        let tasks =
            [&Question::NAMES[..], &[Question::MASKED_CODE], &Question::NEXT_NAMES].concat().join(", ");
        let hint = format!("give one of {tasks}, label:NAME, labels:NAME,NAME");
        return Err(refusal("--task is missing", hint));
    };
    let model = model.map(Config::canonical).transpose()?.map(str::to_owned);
    let model = given("model", model, &["model", "name"])?.unwrap_or_else(|| "gct".into());
    let source = data.map_or(gct::synth::SOURCE, |data| data.manifest().source.kind.as_str());
    laid_over(&gct::run::Settings::paper(task.parse()?, &model, source)?, &layers)
}

/// Settings of a training with the file, then each `--set`, on top of them.
pub(crate) fn apply_to_training(
    arguments: &SettingsArguments,
    settings: &gct::run::Settings,
    data: &Dataset,
) -> Result<gct::run::Settings> {
    laid_over(settings, &spelled(arguments, Some(data))?)
}

/// Applies the file, then each `--set`, to the defaults.
pub(crate) fn apply<T: Serialize + DeserializeOwned>(
    arguments: &SettingsArguments,
    defaults: &T,
) -> Result<T> {
    laid_over(defaults, &layers(arguments)?)
}

/// The file, then each `--set`.
fn layers(arguments: &SettingsArguments) -> Result<Vec<Layer>> {
    let sets = arguments.sets().map_err(|problem| refusal(problem, SHOW_CONFIG))?;
    Ok(arguments.file()?.into_iter().chain(sets).collect())
}

/// The same, with tasks and models by the names that files have.
fn spelled(arguments: &SettingsArguments, data: Option<&Dataset>) -> Result<Vec<Layer>> {
    let mut layers = layers(arguments)?;
    for layer in &mut layers {
        if let Some(toml::Value::String(task)) = layer.settings.get_mut("task") {
            *task = task_of(task, data)?.to_string();
        }
        if let Some(toml::Value::String(name)) =
            layer.settings.get_mut("model").and_then(|model| model.get_mut("name"))
        {
            *name = Config::canonical(name)?.into();
        }
    }
    Ok(layers)
}

/// A task by its name, or by that of a label of the dataset.
pub(crate) fn task_of(name: &str, data: Option<&Dataset>) -> gct::Result<Question> {
    Question::named(name, data.map_or(&[][..], |data| &data.manifest().labels[..]))
}

/// A text among the settings, the last one that is given, by the path of its key.
fn last<'a>(layers: &'a [Layer], path: &[&str]) -> Option<&'a str> {
    layers.iter().rev().find_map(|layer| {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(layer.settings.get(*first)?, |value, key| value.get(*key))?.as_str()
    })
}

fn laid_over<T: Serialize + DeserializeOwned>(defaults: &T, layers: &[Layer]) -> Result<T> {
    overrides::lay_over(defaults, layers).map_err(|problem| refusal(problem, SHOW_CONFIG))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn apply(set: &[&str]) -> Result<gct::split::Settings> {
        super::apply(&SettingsArguments::of(set), &gct::split::Settings::default())
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
