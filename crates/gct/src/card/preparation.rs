//! What a dataset says of how it was made: the source, its settings, and what its rules left out.

use std::path::Path;

use serde_json::{Map, Value};

use crate::cells::told_parts;
use crate::dataset::Source;
use crate::ingest::synthetic;
use crate::record::CodeKind;

/// The `source` of a dataset, read with care: other programs may have written it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Preparation {
    source: Source,
}

/// What became of everything of one kind that a source had: encounters, events, context or links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flow {
    /// What was read; hidden if it would give a hidden count.
    pub(super) read: Option<u64>,
    /// The rules that dropped some, and how many, in their order.
    pub(super) dropped: Vec<(String, Option<u64>)>,
    /// What was left.
    pub(super) kept: Option<u64>,
}

impl Preparation {
    pub(super) fn new(source: Source) -> Self {
        Preparation { source }
    }

    /// The name of the source.
    pub(super) fn kind(&self) -> &str {
        &self.source.kind
    }

    pub(super) fn is_synthetic(&self) -> bool {
        self.kind() == synthetic::SOURCE
    }

    /// The settings of the generator, of synthetic data.
    pub(super) fn synthetic(&self) -> Option<synthetic::Settings> {
        serde_json::from_value(self.source.settings.clone()).ok().filter(|_| self.is_synthetic())
    }

    /// Whether it was prepared from records, with counts of what was left out.
    pub(super) fn counts(&self) -> Option<&Map<String, Value>> {
        self.source.findings.get("counts")?.as_object()
    }

    /// Whether its settings are those of a preparation of records.
    pub(super) fn is_prepared(&self) -> bool {
        self.source.settings.get("options").is_some()
    }

    /// A setting; nothing if it is not set.
    pub(super) fn setting(&self, name: &str) -> Option<&Value> {
        self.source.settings.get(name).filter(|value| !value.is_null())
    }

    /// An option of the source; nothing if it is not set.
    pub(super) fn option(&self, name: &str) -> Option<&Value> {
        self.setting("options")?.get(name).filter(|value| !value.is_null())
    }

    /// An option or setting that is a text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.option(name).or_else(|| self.setting(name))?.as_str()
    }

    /// The names of the context that was taken.
    pub(super) fn context(&self) -> Vec<&str> {
        let names = self.setting("context").and_then(Value::as_array);
        names.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The rule or file by which codes of a kind became groups.
    pub(super) fn rollup(&self, kind: CodeKind) -> Option<String> {
        self.setting("rollup")?.get(kind.name())?.as_str().map(name_of)
    }

    /// The diagnoses that a label of onset is about, the first of them.
    pub(super) fn onset(&self, label: &str) -> Option<String> {
        const SHOWN: usize = 10;
        let codes = self.source.findings.get("onset")?.get(label)?.as_array()?;
        let mut shown: Vec<&str> = codes.iter().filter_map(Value::as_str).take(SHOWN).collect();
        let more = format!("{} more", codes.len().saturating_sub(SHOWN));
        if codes.len() > SHOWN {
            shown.push(&more);
        }
        Some(shown.join(", "))
    }

    /// How many codes of a kind have values in buckets.
    pub(super) fn bucketed(&self, kind: CodeKind) -> usize {
        let bounds = match kind {
            CodeKind::Lab => "lab_bounds",
            CodeKind::Context => "context_bounds",
            CodeKind::Diagnosis | CodeKind::Treatment => return 0,
        };
        self.source.findings.get(bounds).and_then(Value::as_object).map_or(0, Map::len)
    }

    /// A bound on the number of codes of a kind.
    pub(super) fn bound(&self, name: &str, kind: CodeKind) -> Option<u64> {
        self.setting(name)?.get(kind.name())?.as_u64()
    }

    /// What became of encounters, events, context or links. If what was kept is hidden elsewhere, so that it
    /// must not be had from here, `kept_is_told` is false.
    pub(super) fn flow(&self, what: &str, kept_is_told: bool, min_cell: u64) -> Option<Flow> {
        let counts = self.counts()?;
        let read = counts.get(&format!("{what}_read"))?;
        let rules = match what {
            "encounters" => counts.get("dropped"),
            _ => counts.get(&format!("{what}_dropped")),
        };
        let rules: Vec<(String, Option<u64>)> = rules?
            .as_object()?
            .iter()
            .map(|(rule, count)| (rule.replace('_', " "), count.as_u64()))
            .collect();
        let kept = counts.get(&format!("{what}_kept"))?.as_u64();
        let cells: Vec<[u64; 1]> =
            rules.iter().map(|(_, count)| *count).chain([kept]).map(|count| [count.unwrap_or(0)]).collect();
        let told = told_parts(&cells, min_cell);
        // What the preparation itself did not tell may be any number.
        let all_known = rules.iter().all(|(_, count)| count.is_some()) && kept.is_some();
        let all_told = all_known && told.iter().all(|told| *told) && kept_is_told;
        let sum = cells.iter().flatten().sum::<u64>();
        let dropped = rules.into_iter().zip(&told);
        Some(Flow {
            read: read.as_u64().filter(|read| all_told || (all_known && kept_is_told && *read == sum)),
            dropped: dropped.map(|((rule, count), told)| (rule, count.filter(|_| *told))).collect(),
            kept: kept.filter(|_| kept_is_told && told.last() == Some(&true)),
        })
    }

    /// Why a label is not known, in how many encounters. All are hidden if one is few.
    pub(super) fn unknown(&self, label: &str, min_cell: u64) -> Vec<(String, Option<u64>)> {
        let reasons = self.counts().and_then(|counts| counts.get("labels_unknown")?.get(label)?.as_object());
        let reasons: Vec<(String, Option<u64>)> = reasons
            .into_iter()
            .flatten()
            .map(|(reason, count)| (reason.replace('_', " "), count.as_u64()))
            .collect();
        let is_hidden = |count: &Option<u64>| count.is_none_or(|count| (1..min_cell).contains(&count));
        let any_hidden = reasons.iter().any(|(_, count)| is_hidden(count));
        reasons.into_iter().map(|(reason, count)| (reason, count.filter(|_| !any_hidden))).collect()
    }

    /// How many rows of tables could not be read; nothing if that is not told.
    pub(super) fn unreadable(&self, min_cell: u64) -> Option<u64> {
        let rows = self.counts()?.get("rows_unreadable")?.as_object()?;
        let sum = rows.values().map(Value::as_u64).sum::<Option<u64>>()?;
        (!crate::cells::is_small(sum, min_cell)).then_some(sum)
    }

    /// The settings that would repeat it, as TOML, without ways to files; nothing if they are not known.
    pub(super) fn settings(&self) -> String {
        let Some(all) = self.source.settings.as_object() else { return String::new() };
        let kept = |name: &str| !["input", "rules", "options"].contains(&name);
        let options = all.get("options").and_then(Value::as_object).into_iter().flatten();
        let settings = all.iter().filter(|(name, _)| kept(name)).chain(options);
        let table: toml::Table =
            settings.filter_map(|(name, value)| Some((name.clone(), without_ways(value)?))).collect();
        toml::to_string(&table).unwrap_or_default()
    }
}

/// A value as TOML, with the names of files and folders in place of the ways to them; nothing for null.
fn without_ways(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::String(text) => name_of(text).into(),
        Value::Object(values) => toml::Value::Table(
            values.iter().filter_map(|(name, value)| Some((name.clone(), without_ways(value)?))).collect(),
        ),
        other => toml::Value::try_from(other).ok()?,
    })
}

/// The last part of a path or address.
pub(super) fn name_of(path: &str) -> String {
    let name = Path::new(path).file_name().and_then(|name| name.to_str());
    name.filter(|_| Path::new(path).is_absolute() || path.contains("://")).unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prepared(dropped: Value, read: Value, kept: Value) -> Preparation {
        let counts = json!({"encounters_read": read, "dropped": dropped, "encounters_kept": kept});
        let settings =
            json!({"input": "/home/someone/records", "options": {"hours": 24, "file": "s3://x/y.csv"}});
        Preparation::new(Source { kind: "eicu".into(), settings, findings: json!({"counts": counts}) })
    }

    #[test]
    fn the_days_and_diagnoses_of_labels_are_told() {
        let source = |settings: Value| Source {
            kind: "omop".into(),
            settings,
            findings: json!({"onset": {"hf": ["I50*", "I11.0"]}}),
        };
        let meaning = |settings: Value, label: &str| {
            crate::card::outcome::of_label(&Preparation::new(source(settings)), label).unwrap()
        };
        let settings = json!({"options": {"readmission_days": 7, "readmission": "unplanned", "cohort": ":5"},
            "within": "1..90", "onset": {"hf": "hf.csv"}, "prevalent": "drop"});
        assert_eq!(
            meaning(settings.clone(), "hf"),
            "a diagnosis among I50*, I11.0 is made for the first time on days 1 to 90 after the last day of the visit; \
             unknown for those who are not observed for that long"
        );
        let readmission = meaning(settings.clone(), "readmission_7");
        assert!(readmission.starts_with("another admission of the person by way of the emergency room "));
        assert!(readmission.contains(" or in the 7 days after it; "), "{readmission}");
        assert!(meaning(settings, "cohort_5").contains(" on days 1 to 90 after "));
        let plain = meaning(json!({"options": {}}), "readmission");
        assert!(plain.contains(" or in the 30 days after it; "), "{plain}");
    }

    #[test]
    fn the_flow_is_told_as_far_as_it_gives_no_small_count() {
        let flow = |dropped, kept_is_told, min_cell| {
            let sum = 100 + [17, 3, 40].iter().sum::<u64>();
            prepared(dropped, json!(sum), json!(100)).flow("encounters", kept_is_told, min_cell).unwrap()
        };
        let three = json!({"too_short": 17, "too_long": 3, "dead": 40});
        let all = flow(three.clone(), true, 0);
        assert_eq!((all.read, all.kept), (Some(160), Some(100)));
        assert_eq!(all.dropped[0], ("too short".into(), Some(17)));
        let some = flow(three.clone(), true, 11);
        let counts: Vec<Option<u64>> = some.dropped.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [None, None, Some(40)], "17 with 3 is not small, and 3 alone cannot be had");
        assert_eq!((some.read, some.kept), (Some(160), Some(100)));
        let hidden = flow(three, false, 11);
        assert_eq!((hidden.read, hidden.kept), (None, None));
        let before = flow(json!({"too_short": "<5", "too_long": "<5"}), true, 11);
        assert_eq!((before.read, before.kept), (None, Some(100)), "what a preparation hid stays hidden");
    }

    #[test]
    fn ways_to_files_are_left_out() {
        let preparation = prepared(json!({}), json!(1), json!(1));
        assert!(!preparation.settings().contains("records"));
        assert_eq!(preparation.settings(), "file = \"y.csv\"\nhours = 24\n");
        assert_eq!(name_of("data/eicu-demo"), "data/eicu-demo", "as the user gave it");
    }
}
