//! Settings of a command: a TOML file, then each `--set KEY=VALUE`, laid over defaults.

use std::path::PathBuf;

use clap::Args;
use gct::overrides::{Layer, assignment, read};

/// What to do about a wrong setting.
pub const SHOW_CONFIG: &str = "--show-config prints all settings with their names and values";

/// The options of every command that has settings.
#[derive(Args, Debug, Clone, Default)]
pub struct SettingsArguments {
    /// A TOML file with settings
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// One setting, by the name that --show-config prints; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Print the settings as TOML and stop
    #[arg(long, conflicts_with = "json")]
    pub show_config: bool,
}

impl SettingsArguments {
    /// With values for `--set` and nothing else.
    pub fn of(set: &[&str]) -> Self {
        SettingsArguments {
            set: set.iter().map(ToString::to_string).collect(),
            ..SettingsArguments::default()
        }
    }

    /// Whether any setting is given.
    pub fn is_given(&self) -> bool {
        self.config.is_some() || !self.set.is_empty()
    }

    /// The file.
    ///
    /// # Errors
    /// If it cannot be read, or is not TOML.
    pub fn file(&self) -> gct::Result<Option<Layer>> {
        let layer = |path: &PathBuf| Ok(Layer { name: path.display().to_string(), settings: read(path)? });
        self.config.as_ref().map(layer).transpose()
    }

    /// Each `--set`.
    ///
    /// # Errors
    /// What is wrong with the first one that is not KEY=VALUE.
    pub fn sets(&self) -> Result<Vec<Layer>, String> {
        let layer = |set: &String| {
            let name = format!("--set {set}");
            match assignment(set) {
                Ok(settings) => Ok(Layer { name, settings }),
                Err(problem) => Err(format!("{name}: {problem}")),
            }
        };
        self.set.iter().map(layer).collect()
    }
}
