//! What is done to the logits of labels so that probabilities are as frequent as they say: a map for each
//! label, fitted on the validation split and kept beside the weights.
//!
//! A map never turns two logits around, and gives equal ones to equal ones. Platt's keeps the order of all;
//! the isotonic one ties those between which validation saw no difference.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::overrides;

mod isotonic;
mod logistic;
mod platt;

/// The version of the file that this program writes and reads.
const SCHEMA_VERSION: u32 = 1;

/// How a map is fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A logistic regression on the logit (Platt 1999): two numbers.
    #[default]
    Platt,
    /// The best map that only ever rises, by pooling adjacent violators: as many numbers as it takes.
    Isotonic,
}

impl Method {
    /// The names.
    pub const NAMES: [&str; 2] = ["platt", "isotonic"];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Method::Platt => "platt",
            Method::Isotonic => "isotonic",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match overrides::canonical("method", name, &Method::NAMES)? {
            "isotonic" => Ok(Method::Isotonic),
            _ => Ok(Method::Platt),
        }
    }
}

/// What becomes of the logit of one label.
///
/// ```
/// use gct::calibration::{Map, Method};
///
/// // A model that is twice too sure.
/// let validation = [(4.0, true), (2.0, true), (2.0, false), (-2.0, true), (-2.0, false), (-4.0, false)];
/// let map = Map::fit(Method::Platt, &validation)?;
/// assert!(map.logit(4.0) < 2.0 && map.logit(4.0) > map.logit(2.0));
/// # Ok::<(), String>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Map {
    /// `intercept + slope * logit`.
    Platt {
        /// Positive.
        slope: f64,
        /// At a logit of 0.
        intercept: f64,
    },
    /// Probabilities at some logits, straight between them and level outside.
    Isotonic {
        /// Ascending.
        logits: Vec<f32>,
        /// As many, which never fall; none is 0 or 1.
        probabilities: Vec<f64>,
    },
}

impl Map {
    /// Fits one to logits and what happened.
    ///
    /// # Errors
    /// What is wrong with these, to be read after the name of the label.
    pub fn fit(method: Method, examples: &[(f32, bool)]) -> Result<Self, String> {
        let positives = examples.iter().filter(|(_, positive)| *positive).count();
        if positives == 0 || positives == examples.len() {
            let missing = if positives == 0 { "positive" } else { "negative" };
            return Err(format!("none of {} validation encounters is {missing}", examples.len()));
        }
        match method {
            Method::Platt => platt::fit(examples),
            Method::Isotonic => isotonic::fit(examples),
        }
    }

    /// How it was fitted.
    pub fn method(&self) -> Method {
        match self {
            Map::Platt { .. } => Method::Platt,
            Map::Isotonic { .. } => Method::Isotonic,
        }
    }

    /// What becomes of a logit. What is not a number stays so.
    pub fn logit(&self, logit: f32) -> f32 {
        match self {
            Map::Platt { slope, intercept } => (intercept + slope * f64::from(logit)) as f32,
            Map::Isotonic { logits, probabilities } => isotonic::apply(logits, probabilities, logit) as f32,
        }
    }

    /// Refuses one that is not what the fields say.
    fn check(&self) -> Result<(), &'static str> {
        let is_one = match self {
            Map::Platt { slope, intercept } => slope.is_finite() && *slope > 0.0 && intercept.is_finite(),
            Map::Isotonic { logits, probabilities } => {
                logits.len() == probabilities.len()
                    && !logits.is_empty()
                    && logits.iter().all(|logit| logit.is_finite())
                    && logits.is_sorted_by(|a, b| a < b)
                    && probabilities.is_sorted()
                    && probabilities.iter().all(|probability| *probability > 0.0 && *probability < 1.0)
            }
        };
        if is_one { Ok(()) } else { Err("it has a map that does not rise from one number to another") }
    }
}

/// The map of one label, and what it was fitted to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelMap {
    /// The label.
    pub label: String,
    /// Validation encounters whose label is known.
    pub encounters: u64,
    /// How many of them have it.
    pub positives: u64,
    /// The map.
    pub map: Map,
}

/// The contents of `calibration.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    schema_version: u32,
    /// The program that fitted it.
    pub program: String,
    /// The SHA-256 of the encounters of the dataset that it was fitted on.
    pub dataset: String,
    /// The SHA-256 of the weights that it was fitted to: it is of no other.
    pub weights: String,
    /// The maps, a label each, in the order of the run's task.
    pub labels: Vec<LabelMap>,
}

impl Calibration {
    pub(crate) fn new(dataset: String, weights: String, labels: Vec<LabelMap>) -> Self {
        let program = concat!("gct ", env!("CARGO_PKG_VERSION")).into();
        Calibration { schema_version: SCHEMA_VERSION, program, dataset, weights, labels }
    }

    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let calibration: Calibration = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let Calibration { schema_version, labels, .. } = &calibration;
        if *schema_version != SCHEMA_VERSION {
            return Err(format!("it has version {schema_version}, and this program reads {SCHEMA_VERSION}"));
        }
        if labels.is_empty() || labels.iter().any(|label| label.map.method() != calibration.method()) {
            return Err("it must have labels, and one kind of map for all of them".into());
        }
        labels.iter().try_for_each(|label| label.map.check())?;
        Ok(calibration)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a calibration has only text keys") + "\n"
    }

    /// How it was fitted.
    pub fn method(&self) -> Method {
        self.labels.first().map_or_else(Method::default, |label| label.map.method())
    }

    pub(crate) fn maps(&self) -> Vec<Map> {
        self.labels.iter().map(|label| label.map.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAP: &str = r#"{"platt": {"slope": 0.5, "intercept": -1.0}}"#;

    fn file(map: &str) -> String {
        format!(
            r#"{{"schema_version": 1, "program": "gct", "dataset": "d", "weights": "w",
                "labels": [{{"label": "died", "encounters": 9, "positives": 3, "map": {map}}}]}}"#
        )
    }

    #[test]
    fn what_is_written_is_read() {
        let read = Calibration::parse(&file(MAP)).unwrap();
        assert_eq!(Calibration::parse(&read.to_json()).unwrap(), read);
        assert_eq!((read.method(), read.maps()[0].logit(4.0)), (Method::Platt, 1.0));
    }

    #[test]
    fn maps_that_do_not_rise_are_refused() {
        for map in [
            r#"{"platt": {"slope": -0.5, "intercept": 0.0}}"#,
            r#"{"platt": {"slope": 0.0, "intercept": 0.0}}"#,
            r#"{"isotonic": {"logits": [], "probabilities": []}}"#,
            r#"{"isotonic": {"logits": [1.0], "probabilities": [0.1, 0.2]}}"#,
            r#"{"isotonic": {"logits": [1.0, 1.0], "probabilities": [0.1, 0.2]}}"#,
            r#"{"isotonic": {"logits": [1.0, 2.0], "probabilities": [0.3, 0.2]}}"#,
            r#"{"isotonic": {"logits": [1.0, 2.0], "probabilities": [0.0, 0.2]}}"#,
            r#"{"isotonic": {"logits": [1e39, 2e39], "probabilities": [0.1, 0.2]}}"#,
            r#"{"temperature": 2.0}"#,
        ] {
            assert!(Calibration::parse(&file(map)).is_err(), "{map}");
        }
        assert!(Calibration::parse(&file(MAP).replace("version\": 1", "version\": 2")).is_err());
        assert!(Calibration::parse(&file(MAP).replace("\"weights\"", "\"wait\"")).is_err());
    }

    #[test]
    fn one_answer_alone_cannot_be_fitted() {
        for method in [Method::Platt, Method::Isotonic] {
            assert_eq!(
                Map::fit(method, &[(1.0, false), (2.0, false)]).unwrap_err(),
                "none of 2 validation encounters is positive"
            );
            assert_eq!(
                Map::fit(method, &[(1.0, true), (2.0, true)]).unwrap_err(),
                "none of 2 validation encounters is negative"
            );
            // Those that have it have the lower logits.
            assert!(Map::fit(method, &[(1.0, true), (2.0, false)]).is_err());
            assert!(Map::fit(method, &[(1.0, true), (1.0, false)]).is_err());
        }
    }

    proptest! {
        #[test]
        fn maps_keep_order_and_ties_and_stay_finite(
            examples in prop::collection::vec((-9i8..9, any::<bool>()), 2..60),
            logits in prop::collection::vec(-40.0..40.0f32, 2..20),
        ) {
            let examples: Vec<(f32, bool)> = examples.iter().map(|&(x, y)| (f32::from(x) / 2.0, y)).collect();
            for method in [Method::Platt, Method::Isotonic] {
                let Ok(map) = Map::fit(method, &examples) else { continue };
                prop_assert_eq!(map.check(), Ok(()));
                let mut sorted = logits.clone();
                sorted.sort_by(f32::total_cmp);
                let mapped: Vec<f32> = sorted.iter().map(|logit| map.logit(*logit)).collect();
                prop_assert!(mapped.is_sorted() && mapped.iter().all(|logit| logit.is_finite()));
                prop_assert!(map.logit(f32::NAN).is_nan());
            }
        }
    }
}
