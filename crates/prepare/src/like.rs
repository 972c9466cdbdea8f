//! The vocabulary, buckets, rollups, filters and context of another dataset, for records that are to mean the
//! same: next month's patients, another hospital's. Nothing is fitted anew.

use std::collections::HashMap;
use std::path::Path;

use gct::coding::Coder;
use gct::dataset::Dataset;
use gct::overrides::Layer;
use gct::record::{Code, CodeKind, Vocabulary};
use gct::run::Run;
use serde_json::json;
use toml::Table;

use crate::context;
use crate::error::{Error, Result};
use crate::rollup::Rollup;
use crate::settings::{Settings, is_common};
use crate::source::{ChoiceKind, Source};

/// Settings that are the user's own, whatever another dataset has.
pub(crate) const OWN: [&str; 6] = ["labels", "onset", "limit", "strict", "min_cell", "like"];

/// Settings of labels: those of the dataset, unless the user gives others.
pub(crate) const OF_LABELS: [&str; 2] = ["within", "prevalent"];

/// What another dataset decides.
#[derive(Debug, Clone)]
pub struct Like {
    /// Its folder, or that of a run that learned from it, as the user gave it.
    pub path: String,
    /// The name of its source.
    pub source: String,
    /// Its codes; their counts are its own.
    pub vocabulary: Vocabulary,
    /// How recorded codes and values became those.
    pub coder: Coder,
    settings: serde_json::Value,
}

impl Like {
    /// The dataset or run that the last of these layers names, if one does.
    ///
    /// # Errors
    /// If it cannot be read, or does not say how its codes came about.
    pub(crate) fn wanted(given: &[Layer]) -> Result<Option<Self>> {
        let path = given.iter().rev().find_map(|layer| layer.settings.get("like")?.as_str());
        path.map(Like::read).transpose()
    }

    fn read(path: &str) -> Result<Self> {
        let folder = Path::new(path);
        let (source, vocabulary) = match folder.join("run.json").exists() {
            true => {
                let run = Run::open(folder)?;
                (run.source()?, run.vocabulary().clone())
            }
            false => {
                let dataset = Dataset::open(folder)?;
                (Some(dataset.manifest().source.clone()), dataset.vocabulary().clone())
            }
        };
        let refused = |why: &str| {
            let allowed = format!("a dataset that `gct prepare` made, or a run that learned from one{why}");
            Error::Choice { name: "like".into(), value: path.into(), allowed }
        };
        // Synthetic data do not say how codes came about.
        let source = source.filter(|source| source.findings.get("lab_bounds").is_some());
        let source = source.ok_or_else(|| refused(""))?;
        let coder = Coder::new(&source.settings, &source.findings, &vocabulary)
            .map_err(|problem| refused(&format!(", that says how codes came about: {problem}")))?;
        let gct::dataset::Source { kind, settings, .. } = source;
        Ok(Like { path: path.into(), source: kind, vocabulary, coder, settings })
    }

    /// The rules by which it was made, if it is of this source.
    pub(crate) fn rules(&self, source: &Source) -> Option<&str> {
        self.settings["rules"].as_str().filter(|_| self.source == source.name)
    }

    /// Its settings that are not the user's own; and its options, if it is of this source, but for those that
    /// are found in the data or say where a table is.
    pub(crate) fn layer(&self, source: &Source) -> Layer {
        let all = self.settings.as_object().into_iter().flatten();
        let is_taken = |name: &str| is_common(name) && !OWN.contains(&name);
        let mut settings: Table = all
            .filter(|(name, _)| is_taken(name))
            .filter_map(|(name, value)| Some((name.clone(), toml_value(value)?)))
            .collect();
        let known = &source.description.options;
        let is_option = |name: &str| {
            known
                .get(name)
                .is_some_and(|choice| choice.default_sql.is_none() && choice.kind != ChoiceKind::Table)
        };
        let options = self.settings["options"].as_object().filter(|_| self.source == source.name);
        let options = options.into_iter().flatten().filter(|(name, _)| is_option(name));
        settings.extend(options.filter_map(|(name, value)| Some((name.clone(), toml_value(value)?))));
        settings.insert("context".into(), self.context(source).into());
        Layer { name: format!("--like {}", self.path), settings }
    }

    /// The names of its context that this source can have.
    fn context(&self, source: &Source) -> Vec<String> {
        let offered = context::offered(source);
        let can_have = |name: &str| {
            name == context::ALL || context::is_open(source) || offered.iter().any(|known| known.name == name)
        };
        match self.settings["context"].as_array() {
            Some(names) => names
                .iter()
                .filter_map(|name| name.as_str())
                .filter(|name| can_have(name))
                .map(str::to_owned)
                .collect(),
            // Older programs took what there was.
            None if self.vocabulary.context.is_empty() => vec![],
            None => vec![context::ALL.into()],
        }
    }

    /// Its rollups, whose files need not be there any more.
    pub(crate) fn rollups(&self, settings: &Settings) -> Vec<Rollup> {
        let each = CodeKind::ALL.into_iter();
        each.filter_map(|kind| {
            let groups = self.coder.groups[kind].clone()?;
            Some(Rollup::new(kind, settings.rollup[kind].as_deref().unwrap_or_default(), groups))
        })
        .collect()
    }

    /// The bounds of the values of a code; none if it has none.
    pub(crate) fn bounds(&self, kind: CodeKind, code: &str) -> Vec<f64> {
        self.coder.bounds[kind].get(code).cloned().unwrap_or_default()
    }

    /// All bounds of a kind.
    pub(crate) fn bounds_by_code(&self, kind: CodeKind) -> serde_json::Map<String, serde_json::Value> {
        self.coder.bounds[kind].iter().map(|(code, bounds)| (code.clone(), json!(bounds))).collect()
    }

    /// The number of each code of a kind.
    pub(crate) fn ids(&self, kind: CodeKind) -> HashMap<&str, u32> {
        self.vocabulary[kind].iter().map(|code| code.code.as_str()).zip(0..).collect()
    }

    /// The codes of a kind, not yet counted.
    pub(crate) fn codes(&self, kind: CodeKind) -> Vec<Code> {
        self.vocabulary[kind].iter().map(|code| Code { count: 0, ..code.clone() }).collect()
    }

    /// Refuses a setting or an option that the user gives and that is not that of the dataset.
    pub(crate) fn refuse_others<V: PartialEq + ToString>(
        &self,
        own: impl IntoIterator<Item = (String, V)>,
        like: &impl Fn(&str) -> Option<V>,
    ) -> Result<()> {
        for (name, value) in own {
            let expected = like(&name);
            if expected.as_ref() != Some(&value) {
                let expected = expected.map_or("none".into(), |value| value.to_string());
                let allowed = format!("{}, as {} has it: --like decides", expected.trim_end(), self.path);
                return Err(Error::Choice { name, value: value.to_string().trim_end().into(), allowed });
            }
        }
        Ok(())
    }
}

/// A value of JSON without what is null; nothing if it is null.
fn toml_value(value: &serde_json::Value) -> Option<toml::Value> {
    match value {
        serde_json::Value::Null => None,
        serde_json::Value::Object(fields) => {
            let known = fields.iter().filter_map(|(name, value)| Some((name.clone(), toml_value(value)?)));
            Some(toml::Value::Table(known.collect()))
        }
        value => toml::Value::try_from(value).ok(),
    }
}
