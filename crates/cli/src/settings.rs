//! Settings from a preset, a TOML file and `--set key=value`, each overriding the one before it.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use gct::overrides::{merge, read, table, typed};
use gct::task::Task;
use serde::Serialize;
use serde::de::DeserializeOwned;

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
    #[arg(long)]
    pub(crate) show_config: bool,
}

impl SettingsArguments {
    /// A text among the settings that were given, the last one, by the path of its key.
    pub(crate) fn text(&self, path: &[&str]) -> Result<Option<String>> {
        let mut given = toml::Table::new();
        if let Some(file) = &self.config {
            merge(&mut given, read(file)?);
        }
        for set in &self.set {
            merge(&mut given, assignment(set)?);
        }
        let mut value = toml::Value::Table(given);
        for key in path {
            match value.get(key) {
                Some(inner) => value = inner.clone(),
                None => return Ok(None),
            }
        }
        Ok(value.as_str().map(str::to_owned))
    }

    /// The paper's settings for a task and a model, which flags, the file or a `--set` name, with everything else on top of them.
    pub(crate) fn training(
        &self,
        task: Option<&str>,
        model: Option<&str>,
        source: &str,
    ) -> Result<gct::run::Settings> {
        let given = |name: &str, flag: Option<&str>, path: &[&str]| match (flag, self.text(path)?) {
            (Some(flag), Some(set)) if flag != set => {
                bail!("--{name} {flag}, but --config or --set says `{set}`: leave out one of them")
            }
            (flag, set) => Ok(flag.map(str::to_owned).or(set)),
        };
        let Some(task) = given("task", task, &["task"])? else {
            bail!("--task is missing: one of {}, label:NAME", Task::NAMES.join(", "));
        };
        let model = given("model", model, &["model", "name"])?.unwrap_or_else(|| "gct".into());
        self.apply(&gct::run::Settings::paper(task.parse()?, &model, source)?)
    }

    /// Applies the file, then each `--set`, to the defaults.
    pub(crate) fn apply<T: Serialize + DeserializeOwned>(&self, defaults: &T) -> Result<T> {
        let mut settings = table(defaults);
        if let Some(path) = &self.config {
            merge(&mut settings, read(path)?);
            // Checked by itself, so that a mistake is blamed on the file that it is in.
            typed::<T>(&settings).map_err(|problem| anyhow!("{}: {problem}", path.display()))?;
        }
        for set in &self.set {
            merge(&mut settings, assignment(set)?);
            typed::<T>(&settings).map_err(|problem| anyhow!("--set {set}: {problem}"))?;
        }
        typed(&settings).map_err(|problem| anyhow!(problem))
    }
}

/// `a.b=1` as a table. A value that is no TOML value is taken as text.
pub(crate) fn assignment(set: &str) -> Result<toml::Table> {
    let (key, value) = set
        .split_once('=')
        .filter(|_| !set.contains('\n'))
        .ok_or_else(|| anyhow!("--set {set}: expected KEY=VALUE"))?;
    let parse = |value: &str| format!("{} = {value}", key.trim()).parse::<toml::Table>();
    parse(value.trim())
        .or_else(|_| parse(&toml::Value::from(value.trim()).to_string()))
        .map_err(|error| anyhow!("--set {set}: {}", error.message()))
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
