//! How recorded codes and values become codes of a vocabulary. A code is first replaced by its group, if its
//! kind is rolled up; then a value goes into a bucket, which is a code of its own; and a code that is too
//! rare can stand under one code with all others that are. `gct-prepare` does this with queries, and for an
//! encounter that is in no dataset a `Coder` does the same.

mod buckets;
mod code;
mod mapping;
mod moment;
mod recorded;
mod rules;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use buckets::{bucket, bucket_code, bucket_text};
pub use code::{ICD9, ICD10, procedures_of};
pub use mapping::{Group, Mapping};
pub use moment::{RecordedTimes, WrongTime, moment};
pub use recorded::Recorded;
pub use rules::Rule;

use crate::record::{CodeKind, PerKind, Vocabulary};

/// What to do with codes that a rollup does not map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unmapped {
    /// Leave them as they are.
    #[default]
    Keep,
    /// Leave their events out.
    Drop,
    /// Put all of a kind under one code.
    Group,
}

/// How the codes of one kind become groups.
#[derive(Debug, Clone, PartialEq)]
pub enum Groups {
    /// By a rule that needs no file.
    Rule(Rule),
    /// By a table.
    Mapping(Mapping),
}

impl Groups {
    /// The group of a code, if it has one.
    pub fn group(&self, code: &str) -> Option<Group> {
        match self {
            Groups::Rule(rule) => rule.group(code),
            Groups::Mapping(mapping) => mapping.group(code),
        }
    }
}

/// What the code says that stands for all codes of a kind that are in no group.
pub fn unmapped_description(kind: CodeKind) -> String {
    format!("a {} that is in no group", kind.name())
}

/// What the code says that stands for all rare codes of a kind.
pub fn rare_description(kind: CodeKind, min_count: u64) -> String {
    format!("a {} that fewer than {min_count} encounters have", kind.name())
}

/// An identifier that a program wrote as a number with a fraction of nothing, without it: `7.0` is `7`.
pub fn whole(identifier: &str) -> &str {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match identifier.strip_suffix(".0") {
        Some(number) if digits(number.strip_prefix('-').unwrap_or(number)) => number,
        _ => identifier,
    }
}

/// What kinds of codes are called in tables of events.
const KINDS: [(&str, CodeKind); 16] = [
    ("context", CodeKind::Context),
    ("diagnosis", CodeKind::Diagnosis),
    ("dx", CodeKind::Diagnosis),
    ("condition", CodeKind::Diagnosis),
    ("problem", CodeKind::Diagnosis),
    ("treatment", CodeKind::Treatment),
    ("tx", CodeKind::Treatment),
    ("procedure", CodeKind::Treatment),
    ("px", CodeKind::Treatment),
    ("medication", CodeKind::Treatment),
    ("drug", CodeKind::Treatment),
    ("rx", CodeKind::Treatment),
    ("lab", CodeKind::Lab),
    ("laboratory", CodeKind::Lab),
    ("measurement", CodeKind::Lab),
    ("observation", CodeKind::Lab),
];

/// The kind of this name, in upper or lower case, as `gct-prepare` reads tables of events.
pub fn kind_named(name: &str) -> Option<CodeKind> {
    KINDS.into_iter().find(|(known, _)| name.eq_ignore_ascii_case(known)).map(|(_, kind)| kind)
}

/// The bounds of the values of each code of a kind.
pub type Bounds = BTreeMap<String, Vec<f64>>;

/// The settings of a preparation that decide what becomes of codes. There are others beside them.
#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    rollup: PerKind<Option<String>>,
    #[serde(default)]
    rollup_unmapped: Unmapped,
    min_count: u64,
}

/// The findings of a preparation that decide what becomes of codes.
#[derive(Deserialize)]
struct Findings {
    lab_bounds: Bounds,
    #[serde(default)]
    context_bounds: Bounds,
    #[serde(default)]
    rollups: BTreeMap<String, BTreeMap<String, String>>,
}

/// The names of findings that decide what becomes of codes.
const FINDINGS: [&str; 3] = ["lab_bounds", "context_bounds", "rollups"];

/// The part of the findings of a preparation that decides what becomes of codes; nothing if there is none, as
/// for synthetic data.
pub(crate) fn findings(all: &Value) -> Option<Value> {
    all.get("lab_bounds")?;
    let some = FINDINGS.iter().filter_map(|name| Some(((*name).to_owned(), all.get(name)?.clone())));
    Some(Value::Object(some.collect()))
}

/// Replaces recorded codes and values by codes of a vocabulary.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coder {
    /// How codes become groups, where a kind is rolled up.
    pub groups: PerKind<Option<Groups>>,
    /// What becomes of codes in no group.
    pub unmapped: Unmapped,
    /// The bounds of values, by code, of each kind that has values.
    pub bounds: PerKind<Bounds>,
    /// The code for codes in no group, where the vocabulary has one.
    pub unmapped_code: PerKind<Option<String>>,
    /// The code for rare codes, where the vocabulary has one.
    pub rare_code: PerKind<Option<String>>,
}

impl Coder {
    /// What the settings and the findings of a preparation say, and the vocabulary that it made.
    ///
    /// # Errors
    /// What of it cannot be understood.
    pub fn new(settings: &Value, all_findings: &Value, vocabulary: &Vocabulary) -> Result<Self, String> {
        let unreadable = |error: serde_json::Error| error.to_string();
        let settings: Settings = Deserialize::deserialize(settings).map_err(unreadable)?;
        let found: Findings = Deserialize::deserialize(all_findings).map_err(unreadable)?;
        let bounds = PerKind { lab: found.lab_bounds, context: found.context_bounds, ..PerKind::default() };
        check_bounds(&bounds)?;
        let groups = PerKind::try_from_fn(|kind| match &settings.rollup[kind] {
            None => Ok(None),
            Some(rule) => groups(kind, rule, &found.rollups).map(Some),
        })?;
        let named = |kind: CodeKind, word: &str, description: String| {
            let is_meant = |code: &&crate::record::Code| {
                code.code.starts_with(&format!("({word}")) && code.description.as_ref() == Some(&description)
            };
            vocabulary[kind].iter().find(is_meant).map(|code| code.code.clone())
        };
        let rare = |kind| named(kind, "rare", rare_description(kind, settings.min_count));
        Ok(Coder {
            groups,
            unmapped: settings.rollup_unmapped,
            bounds,
            unmapped_code: PerKind::from_fn(|kind| named(kind, "unmapped", unmapped_description(kind))),
            rare_code: PerKind::from_fn(rare),
        })
    }

    /// The code of a vocabulary for a recorded code, perhaps with a value; nothing if the vocabulary has
    /// none. A code that is in no group, but in the vocabulary, is taken for a code of it.
    pub fn code<'c>(
        &self,
        kind: CodeKind,
        recorded: &'c str,
        value: Option<f64>,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<Cow<'c, str>> {
        let group = self.group(kind, recorded, &is_known)?;
        let bounds = self.bounds[kind].get(group.as_ref());
        let code = match (value.filter(|value| value.is_finite()), bounds) {
            (Some(value), Some(bounds)) => {
                let of = bounds.len() + 1;
                Cow::Owned(bucket_code(kind, &group, bucket(value, bounds), of))
            }
            _ => group,
        };
        let rare = || self.rare_code[kind].clone().map(Cow::Owned);
        if is_known(&code) { Some(code) } else { rare() }
    }

    fn group<'c>(
        &self,
        kind: CodeKind,
        recorded: &'c str,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<Cow<'c, str>> {
        let Some(groups) = &self.groups[kind] else { return Some(recorded.into()) };
        match groups.group(recorded) {
            Some(group) => Some(group.code.into()),
            None if self.unmapped == Unmapped::Keep || is_known(recorded) => Some(recorded.into()),
            None if self.unmapped == Unmapped::Group => self.unmapped_code[kind].clone().map(Cow::Owned),
            None => None,
        }
    }
}

/// How a kind was rolled up: a mapping that was written down is used before a rule of its name.
fn groups(
    kind: CodeKind,
    rule: &str,
    mappings: &BTreeMap<String, BTreeMap<String, String>>,
) -> Result<Groups, String> {
    if let Some(table) = mappings.get(kind.name()) {
        return Ok(Groups::Mapping(Mapping::of_table(table)));
    }
    let rule = Rule::named(rule).map(Groups::Rule);
    rule.ok_or_else(|| format!("the rollup of {} is neither a rule nor a mapping", kind.name()))
}

fn check_bounds(bounds: &PerKind<Bounds>) -> Result<(), String> {
    for kind in CodeKind::ALL {
        let is_wrong = |bounds: &&Vec<f64>| {
            bounds.is_empty() || !bounds.is_sorted_by(|a, b| a < b) || !bounds.iter().all(|b| b.is_finite())
        };
        if bounds[kind].values().any(|bounds| is_wrong(&bounds)) {
            return Err(format!("bounds of {} are not ascending numbers", kind.name()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Code;

    fn vocabulary() -> Vocabulary {
        let code = |(code, description): &(&str, Option<String>)| Code {
            code: (*code).into(),
            description: description.clone(),
            count: 1,
        };
        let codes = |codes: &[(&str, Option<String>)]| codes.iter().map(code).collect::<Vec<_>>();
        PerKind {
            diagnosis: codes(&[
                ("(unmapped)", Some(unmapped_description(CodeKind::Diagnosis))),
                ("I50", None),
                ("heart", None),
            ]),
            treatment: codes(&[
                ("(rare)", Some(rare_description(CodeKind::Treatment, 3))),
                ("aspirin", None),
            ]),
            lab: codes(&[("K", None), ("K//1-of-3", None), ("K//3-of-3", None), ("Na", None)]),
            context: codes(&[("bmi=2-of-2", None), ("sex=female", None)]),
        }
    }

    fn coder(unmapped: &str) -> Coder {
        let settings = json!({
            "rollup": {"diagnosis": "icd3", "treatment": null, "lab": null},
            "rollup_unmapped": unmapped, "min_count": 3, "lab_bins": 3,
        });
        let findings = json!({
            "counts": {}, "lab_bounds": {"K": [3.5, 5]}, "context_bounds": {"bmi": [25]}, "rollups": {},
        });
        Coder::new(&settings, &findings, &vocabulary()).unwrap()
    }

    fn code(coder: &Coder, kind: CodeKind, recorded: &str, value: Option<f64>) -> Option<String> {
        let vocabulary = vocabulary();
        let is_known = |code: &str| vocabulary[kind].iter().any(|known| known.code == code);
        coder.code(kind, recorded, value, is_known).map(Cow::into_owned)
    }

    #[test]
    fn codes_become_groups_and_values_buckets() {
        let coder = coder("group");
        let diagnosis = |recorded| code(&coder, CodeKind::Diagnosis, recorded, None);
        assert_eq!(diagnosis("I50.1").as_deref(), Some("I50"));
        assert_eq!(diagnosis("I10"), None, "a group that the vocabulary does not have");
        assert_eq!(diagnosis("lumbago").as_deref(), Some("(unmapped)"));
        assert_eq!(diagnosis("heart").as_deref(), Some("heart"), "a code of the vocabulary already");
        let lab = |recorded, value| code(&coder, CodeKind::Lab, recorded, value);
        assert_eq!(lab("K", Some(3.5)).as_deref(), Some("K//1-of-3"), "a bound belongs to the bucket below");
        assert_eq!(lab("K", Some(3.6)), None, "a bucket that the vocabulary does not have");
        assert_eq!(lab("K", Some(5.1)).as_deref(), Some("K//3-of-3"));
        assert_eq!(lab("K", None).as_deref(), Some("K"));
        assert_eq!(lab("K", Some(f64::NAN)).as_deref(), Some("K"));
        assert_eq!(lab("Na", Some(140.0)).as_deref(), Some("Na"), "a lab without bounds");
        assert_eq!(lab("K//3-of-3", None).as_deref(), Some("K//3-of-3"));
        let context = |recorded, value| code(&coder, CodeKind::Context, recorded, value);
        assert_eq!(context("bmi", Some(31.0)).as_deref(), Some("bmi=2-of-2"));
        assert_eq!(context("sex=female", None).as_deref(), Some("sex=female"));
        let treatment = |recorded| code(&coder, CodeKind::Treatment, recorded, None);
        assert_eq!(treatment("aspirin").as_deref(), Some("aspirin"));
        assert_eq!(treatment("never seen").as_deref(), Some("(rare)"), "no encounter had it");
    }

    #[test]
    fn codes_in_no_group_are_kept_or_dropped() {
        assert_eq!(code(&coder("keep"), CodeKind::Diagnosis, "lumbago", None), None);
        assert_eq!(code(&coder("keep"), CodeKind::Diagnosis, "heart", None).as_deref(), Some("heart"));
        assert_eq!(code(&coder("drop"), CodeKind::Diagnosis, "lumbago", None), None);
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        let settings =
            json!({"rollup": {"diagnosis": "ccs.csv", "treatment": null, "lab": null}, "min_count": 1});
        let wrong = |settings: &Value, findings: &Value| {
            Coder::new(settings, findings, &Vocabulary::default()).unwrap_err()
        };
        let problem = wrong(&settings, &json!({"lab_bounds": {}}));
        assert_eq!(problem, "the rollup of diagnosis is neither a rule nor a mapping");
        let mapped = json!({"lab_bounds": {}, "rollups": {"diagnosis": {"icd10:I501": "CCS:108"}}});
        assert!(Coder::new(&settings, &mapped, &Vocabulary::default()).is_ok());
        let problem = wrong(&json!({"min_count": 1}), &json!({"lab_bounds": {"K": [5, 3]}}));
        assert_eq!(problem, "bounds of lab are not ascending numbers");
        assert!(wrong(&json!({}), &json!({"lab_bounds": {}})).contains("min_count"));
        assert_eq!(findings(&json!({"ceiling": 1})), None, "as of synthetic data");
    }

    #[test]
    fn only_a_number_loses_its_fraction() {
        assert_eq!(["7.0", "-7.0", "a.0", ".0", "7.00"].map(whole), ["7", "-7", "a.0", ".0", "7.00"]);
    }
}
