//! What all sources have in common that a user can choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gct::coding::Unmapped;
use gct::files::Overwrite;
use gct::overrides::{self, Layer};
use gct::record::{CodeKind, PerKind};
use gct::split::By;
use serde::{Deserialize, Serialize};
use toml::Table;

use crate::context;
use crate::engine::Limits;
use crate::error::{Error, Result};
use crate::like::{Like, OF_LABELS, OWN};
use crate::onset;
use crate::source::{Choice, ChoiceKind, Source, Value, range};
use crate::tables::Differences;

/// What to do with codes that occur in few encounters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rare {
    /// Leave them out.
    #[default]
    Drop,
    /// Put all of a kind under one code.
    Group,
}

/// What to do with encounters of subjects who had a diagnosis before its onset could be predicted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prevalent {
    /// Leave them out.
    #[default]
    Drop,
    /// Keep them with an unknown label.
    Keep,
}

/// How encounters are made into a dataset, whatever the source.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// An encounter has at least so many distinct codes of each kind.
    pub min_codes: PerKind<u64>,
    /// And at most so many; of context, 0 is no bound.
    pub max_codes: PerKind<u64>,
    /// A code occurs in at least so many encounters.
    pub min_count: u64,
    /// What to do with those that do not.
    pub rare: Rare,
    /// Into how many buckets the values of a lab go; 0 for none.
    pub lab_bins: u32,
    /// The rule or file by which codes of each kind become groups, if any.
    pub rollup: PerKind<Option<String>>,
    /// What to do with codes that a rollup does not map.
    pub rollup_unmapped: Unmapped,
    /// The names of what to take of what is known of encounters beside codes; none for nothing. In those of a
    /// [`Request`], `all` has become names.
    pub context: Vec<String>,
    /// The dataset, or a run that learned from it, whose codes, buckets, rollups and filters are used.
    pub like: Option<String>,
    /// Labels to join: a table with `encounter_id` and a column per label.
    pub labels: Option<String>,
    /// Labels of onset: the diagnoses of each, as codes with commas between them or as a file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub onset: BTreeMap<String, String>,
    /// The first and the last day after an encounter on which what labels are about counts: `1..365`.
    pub within: String,
    /// What to do with encounters of subjects who had one of the diagnoses already.
    pub prevalent: Prevalent,
    /// Use only the first encounters, this many.
    pub limit: Option<u64>,
    /// The split whose training part the buckets are from.
    pub split_by: By,
    /// Its seed.
    pub split_seed: u64,
    /// Refuse what is otherwise dropped and counted.
    pub strict: bool,
    /// Counts below this are hidden, except 0.
    pub min_cell: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            min_codes: PerKind { diagnosis: 1, treatment: 1, lab: 0, ..PerKind::default() },
            max_codes: PerKind { diagnosis: 50, treatment: 50, lab: 50, ..PerKind::default() },
            min_count: 1,
            rare: Rare::Drop,
            lab_bins: 5,
            rollup: PerKind::default(),
            rollup_unmapped: Unmapped::Keep,
            context: vec![context::ALL.into()],
            like: None,
            labels: None,
            onset: BTreeMap::new(),
            within: "1..365".into(),
            prevalent: Prevalent::Drop,
            limit: None,
            split_by: By::Recorded,
            split_seed: 0,
            strict: false,
            min_cell: 0,
        }
    }
}

/// The settings that all sources have.
const COMMON: [&str; 18] = [
    "min_codes",
    "max_codes",
    "min_count",
    "rare",
    "lab_bins",
    "rollup",
    "rollup_unmapped",
    "context",
    "like",
    "labels",
    "onset",
    "within",
    "prevalent",
    "limit",
    "split_by",
    "split_seed",
    "strict",
    "min_cell",
];

/// Whether a setting is one that all sources have.
pub(crate) fn is_common(name: &str) -> bool {
    COMMON.contains(&name)
}

impl Settings {
    /// The settings of these layers over the defaults.
    fn of(layers: &[Layer]) -> Result<Self> {
        let settings: Settings =
            overrides::lay_over(&Settings::default(), layers).map_err(Error::Settings)?;
        if settings.lab_bins > 1000 {
            let (name, value) = ("lab_bins".into(), settings.lab_bins.to_string());
            return Err(Error::Choice { name, value, allowed: "a number up to 1000".into() });
        }
        range("within", &settings.within)?;
        onset::check(&settings.onset)?;
        if settings.lab_bins > 1 && settings.rollup.lab.is_some() {
            return Err(Error::Rollup {
                problem:
                    "labs cannot be rolled up while their values go into buckets: codes of one group can \
                          have values in different units"
                        .into(),
                hint: "leave values out with --lab-bins 0, or leave labs as they are".into(),
            });
        }
        Ok(settings)
    }
}

/// Numbers of codes as a table: `5` is for all kinds but context (and labs need not be there),
/// `diagnosis=1,treatment=0` for some.
fn per_kind(name: &str, value: &toml::Value) -> Result<Table> {
    let all = match name {
        "min_codes" => &[CodeKind::Diagnosis, CodeKind::Treatment][..],
        _ => &CodeKind::OF_PAPER,
    };
    let number = |text: &str| text.trim().parse::<i64>().ok().filter(|number| *number >= 0);
    let text = plain(value);
    if let Some(number) = number(&text) {
        return Ok(all.iter().map(|kind| (kind.name().to_owned(), number.into())).collect());
    }
    let of_kind = |word: &str| {
        let (name, count) = word.split_once('=')?;
        let kind = CodeKind::ALL.into_iter().find(|kind| kind.name() == name.trim())?;
        Some((kind.name().to_owned(), number(count)?.into()))
    };
    text.split(',').map(of_kind).collect::<Option<Table>>().ok_or_else(|| Error::Choice {
        name: name.into(),
        value: text.clone(),
        allowed: "a number, or numbers per kind: diagnosis=1,treatment=0".into(),
    })
}

/// Everything that a preparation needs to know.
#[derive(Debug, Clone)]
pub struct Request {
    /// The source.
    pub source: Source,
    /// Where its tables are.
    pub input: String,
    /// The values of the source's options, with null for those to be found by a query.
    pub options: BTreeMap<String, Value>,
    /// The options that were chosen by name, rules included.
    pub rules: Option<String>,
    /// What all sources have in common.
    pub settings: Settings,
    /// The dataset whose codes, buckets, rollups and filters are used, if not those of the records.
    pub like: Option<Like>,
    /// How the tables differ from what is expected.
    pub differences: Differences,
    /// How much memory and how many threads to take.
    pub limits: Limits,
    /// Where the conditional probabilities of the training split go, if anywhere.
    pub prior: Option<PathBuf>,
    /// What to do with what is there.
    pub overwrite: Overwrite,
}

impl Request {
    /// A request with everything as the source, the rules and the user say, in this order.
    ///
    /// # Errors
    /// If a name is not known or a value makes no sense.
    pub fn new(source: Source, input: &str, rules: Option<&str>, given: Vec<Layer>) -> Result<Self> {
        let like = Like::wanted(&given)?;
        if let (Some(like), Some(rules)) = (&like, rules) {
            like.refuse_others([("rules".to_owned(), rules)], &|_| like.rules(&source))?;
        }
        let rules = rules.or_else(|| like.as_ref()?.rules(&source)).map(str::to_owned);
        let mut layers = layers(&source, rules.as_deref())?;
        layers.extend(like.iter().map(|like| like.layer(&source)));
        let (settings, options) = resolved(&source, &[&layers[..], &given].concat())?;
        check_needs(&source, &given, &settings, &options)?;
        if let Some(like) = &like {
            let (fixed, fixed_options) = resolved(&source, &layers)?;
            let fixed = overrides::table(&fixed);
            let is_free = |name: &str| OWN.contains(&name) || OF_LABELS.contains(&name);
            let own = overrides::table(&settings).into_iter().filter(|(name, _)| !is_free(name));
            like.refuse_others(own, &|name| fixed.get(name).cloned())?;
            if like.source == source.name {
                let known = &source.description.options;
                // Some options are found in the data, and labels are no vocabulary.
                let is_fixed = |name: &str| known[name].default_sql.is_none() && !known[name].of_labels;
                let own = options.iter().filter(|(name, _)| is_fixed(name));
                let own = own.map(|(name, value)| (name.clone(), value.shown()));
                like.refuse_others(own, &|name| Some(fixed_options.get(name)?.shown()))?;
            }
        }
        Ok(Request {
            input: input.into(),
            options,
            rules,
            settings,
            like,
            differences: Differences::default(),
            limits: Limits::default(),
            prior: None,
            overwrite: Overwrite::Refuse,
            source,
        })
    }

    /// All settings that a user can change, by name.
    pub fn table(&self) -> Table {
        let mut table = overrides::table(&self.settings);
        for (name, value) in &self.options {
            let value = toml::Value::try_from(value.json()).ok();
            table.extend(value.map(|value| (name.clone(), value)));
        }
        table
    }
}

/// What layers say together: the settings of all sources, and the options of this one.
fn resolved(source: &Source, layers: &[Layer]) -> Result<(Settings, BTreeMap<String, Value>)> {
    let mut common = Vec::new();
    let known = &source.description.options;
    let mut options: BTreeMap<String, Value> = known.keys().map(|name| (name.clone(), Value::Null)).collect();
    for Layer { name: layer, settings } in layers.iter().cloned() {
        let mut of_all = Table::new();
        for (name, value) in settings {
            match name.as_str() {
                "min_codes" | "max_codes" if !value.is_table() => {
                    of_all.insert(name.clone(), per_kind(&name, &value)?.into());
                }
                "context" if !value.is_array() => drop(of_all.insert(name, words(&plain(&value)))),
                "onset" if !value.is_table() => {
                    let text = plain(&value);
                    let (label, codes) = onset::named(&text);
                    of_all.insert(name, Table::from_iter([(label.to_owned(), codes.into())]).into());
                }
                common if is_common(common) => drop(of_all.insert(name, value)),
                _ => drop(options.insert(name.clone(), option(known, &name, &plain(&value))?)),
            }
        }
        common.push(Layer { name: layer, settings: of_all });
    }
    let mut settings = Settings::of(&common)?;
    settings.context = context::chosen(source, &settings.context)?;
    Ok((settings, options))
}

/// Refuses a setting that is given and does nothing without labels of what follows. A file that has all
/// settings may have it with its default.
fn check_needs(
    source: &Source,
    given: &[Layer],
    settings: &Settings,
    options: &BTreeMap<String, Value>,
) -> Result<()> {
    let known = source.description.options.iter();
    // What subjects enter is in a table that an option names.
    let tables = known.filter(|(_, choice)| choice.of_labels && choice.kind == ChoiceKind::Table);
    let tables: Vec<String> = tables.map(|(name, _)| name.clone()).collect();
    let has_table = tables.iter().any(|name| options[name] != Value::Null);
    let default = overrides::table(&Settings::default());
    for (name, others, is_of_use) in [("within", tables, has_table), ("prevalent", vec![], false)] {
        let is_asked = |layer: &Layer| {
            let value = layer.settings.get(name);
            value.is_some_and(|value| layer.name.starts_with("--") || default.get(name) != Some(value))
        };
        if settings.onset.is_empty() && !is_of_use && given.iter().any(is_asked) {
            let needed = ["onset".to_owned()].into_iter().chain(others).collect();
            return Err(Error::Needs { name: name.into(), needed });
        }
    }
    Ok(())
}

/// What the source and the rules say, in this order.
fn layers(source: &Source, rules: Option<&str>) -> Result<Vec<Layer>> {
    let description = &source.description;
    let own = |settings: &Table| Layer { name: source.path.clone(), settings: settings.clone() };
    let options = description.options.iter();
    let defaults = options.filter_map(|(name, choice)| Some((name.clone(), choice.default.clone()?)));
    let mut layers = vec![own(&description.defaults), own(&defaults.collect())];
    if let Some(rules) = rules {
        layers.push(own(description.rules.get(rules).ok_or_else(|| Error::Choice {
            name: "rules".into(),
            value: rules.into(),
            allowed: description.rules.keys().cloned().collect::<Vec<_>>().join(", "),
        })?));
    }
    Ok(layers)
}

/// The value of one of a source's options.
fn option(known: &BTreeMap<String, Choice>, name: &str, text: &str) -> Result<Value> {
    let choice = known.get(name).ok_or_else(|| Error::Choice {
        name: name.into(),
        value: text.into(),
        allowed: format!(
            "one of {}",
            known.keys().map(String::as_str).chain(COMMON).collect::<Vec<_>>().join(", ")
        ),
    })?;
    Value::parse(name, choice, text)
}

/// Words with commas between them, as a list.
fn words(text: &str) -> toml::Value {
    text.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>().into()
}

/// A value without quotes.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(lines: &[&str]) -> Result<Settings> {
        let layer = |line: &&str| Layer { name: (*line).into(), settings: line.parse().unwrap() };
        let source = Source::builtin().swap_remove(0);
        Ok(Request::new(source, "in", None, lines.iter().map(layer).collect())?.settings)
    }

    #[test]
    fn numbers_of_codes_are_for_all_kinds_or_for_some() {
        let two = settings(&["min_codes = 2"]).unwrap();
        assert_eq!(two.min_codes, PerKind { diagnosis: 2, treatment: 2, lab: 0, ..PerKind::default() });
        let mixed = settings(&["min_codes = \"2\"", "min_codes = \"treatment=0,lab=3\""]).unwrap();
        assert_eq!(mixed.min_codes, PerKind { diagnosis: 2, treatment: 0, lab: 3, ..PerKind::default() });
        let table = settings(&["min_codes.treatment = 0"]).unwrap();
        assert_eq!(table.min_codes, PerKind { diagnosis: 1, treatment: 0, lab: 0, ..PerKind::default() });
        let error = settings(&["max_codes = \"visit=1\""]).unwrap_err().to_string();
        assert!(error.contains("option `max_codes`: visit=1 is not allowed"), "{error}");
    }

    #[test]
    fn context_is_a_list_or_words_with_commas() {
        let listed = settings(&["context = [\"sex\", \"age\"]"]).unwrap();
        assert_eq!(listed.context, ["age", "sex"]);
        assert_eq!(settings(&["context = \"sex, age\""]).unwrap().context, listed.context);
        assert_eq!(settings(&["context = \"none\""]).unwrap().context, [""; 0]);
        assert_eq!(settings(&["context = []"]).unwrap().context, [""; 0]);
        let all = settings(&[]).unwrap().context;
        assert!(all.contains(&"age".to_owned()) && !all.contains(&"discharge".to_owned()), "{all:?}");
    }

    #[test]
    fn onsets_are_named_or_not() {
        let onsets = |lines: &[&str]| settings(lines).unwrap().onset;
        let stroke = ("stroke".to_owned(), "I63*,I64".to_owned());
        assert_eq!(onsets(&["onset = \"stroke=I63*,I64\""]), BTreeMap::from([stroke.clone()]));
        let unnamed = ("onset".to_owned(), "I50*".to_owned());
        assert_eq!(
            onsets(&["onset.stroke = \"I63*,I64\"", "onset = \"I50*\""]),
            BTreeMap::from([stroke, unnamed])
        );
    }

    #[test]
    fn wrong_settings_are_refused() {
        for (line, problem) in [
            (
                "min_count = \"x\"",
                "min_count = \"x\": min_count: invalid type: text \"x\", expected a whole number",
            ),
            ("lab_bins = 2000", "option `lab_bins`: 2000 is not allowed; expected a number up to 1000"),
            ("max_hour = 3", "option `max_hour`: 3 is not allowed; expected one of after_discharge, "),
            (
                "within = \"9..1\"",
                "option `within`: 9..1 is not allowed; expected two whole numbers with .. ",
            ),
            ("within = \"1..9\"", "option `within` does nothing without `onset`"),
            ("onset.start = \"I50\"", "option `onset`: start is not allowed; expected a name that "),
            ("onset = \"I5*0\"", "option `onset`: I5*0 is not allowed; expected codes with commas between "),
            ("min_codes = -1", "option `min_codes`: -1 is not allowed; expected a number"),
        ] {
            let error = settings(&[line]).unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
    }

    #[test]
    fn every_setting_of_all_sources_has_its_name() {
        let settings = Settings {
            like: Some(String::new()),
            labels: Some(String::new()),
            onset: BTreeMap::from([("stroke".into(), "I63*".into())]),
            limit: Some(1),
            ..Settings::default()
        };
        let mut names: Vec<String> = overrides::table(&settings).into_iter().map(|(name, _)| name).collect();
        let mut common = COMMON.map(String::from).to_vec();
        names.sort();
        common.sort();
        assert_eq!(names, common);
    }
}
