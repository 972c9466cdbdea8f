//! What positives count in the loss of labels.

use std::fmt;

use serde::de::{Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, Result};
use crate::question::Question;
use crate::record::Encounter;

/// What a positive of each label counts in the loss, beside 1 for a negative. A model that learns with
/// another weight than 1 ranks encounters, but its probabilities are no longer those of the data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ClassWeight {
    /// This, of all labels; 1 is no weighting.
    Number(f64),
    /// As many times as much as there are negatives for each positive in the training split, of each label by
    /// itself.
    Balanced,
}

const BALANCED: &str = "balanced";

const ALLOWED: &str = "a number above 0, up to 1000000, or balanced";

impl Default for ClassWeight {
    fn default() -> Self {
        ClassWeight::Number(1.0)
    }
}

impl ClassWeight {
    /// Refuses what makes no sense.
    pub(super) fn check(self, task: &Question) -> Result<()> {
        match (self, task) {
            (ClassWeight::Number(1.0), _) => Ok(()),
            (
                _,
                Question::Edges
                | Question::HiddenDiagnosis
                | Question::HiddenCode
                | Question::NextDiagnoses(_),
            ) => Err(Error::setting("class_weight", self, "1 in this task, which has no labels")),
            (ClassWeight::Number(number), _) if !(number > 0.0 && number <= 1e6) => {
                Err(Error::setting("class_weight", number, ALLOWED))
            }
            (ClassWeight::Number(_) | ClassWeight::Balanced, Question::Labels(_)) => Ok(()),
        }
    }

    /// The weight of each of these labels, by the training split; none if all count alike.
    ///
    /// # Errors
    /// If it is to be balanced, and a label has no positives or no negatives.
    pub(crate) fn positives(self, labels: &[String], train: &[Encounter]) -> Result<Vec<f64>> {
        let balanced = |(label, name): (usize, &String)| {
            let count = |value: bool| {
                train.iter().filter(|encounter| encounter.labels[label] == Some(value)).count() as f64
            };
            let (positives, negatives) = (count(true), count(false));
            if positives > 0.0 && negatives > 0.0 {
                return Ok(negatives / positives);
            }
            let missing = if positives == 0.0 { "positives" } else { "negatives" };
            let problem = format!("a number, because `{name}` has no {missing} in the training split");
            Err(Error::setting("class_weight", BALANCED, &problem))
        };
        match self {
            ClassWeight::Number(1.0) => Ok(Vec::new()),
            ClassWeight::Number(number) => Ok(vec![number; labels.len()]),
            ClassWeight::Balanced => labels.iter().enumerate().map(balanced).collect(),
        }
    }
}

impl fmt::Display for ClassWeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClassWeight::Number(number) => number.fmt(f),
            ClassWeight::Balanced => f.write_str(BALANCED),
        }
    }
}

impl Serialize for ClassWeight {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            ClassWeight::Number(number) => serializer.serialize_f64(*number),
            ClassWeight::Balanced => serializer.serialize_str(BALANCED),
        }
    }
}

impl<'de> Deserialize<'de> for ClassWeight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrWord)
    }
}

struct NumberOrWord;

impl Visitor<'_> for NumberOrWord {
    type Value = ClassWeight;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALLOWED)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<ClassWeight, E> {
        Ok(ClassWeight::Number(number))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<ClassWeight, E> {
        Ok(ClassWeight::Number(number as f64))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<ClassWeight, E> {
        Ok(ClassWeight::Number(number as f64))
    }

    fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<ClassWeight, E> {
        match word {
            BALANCED => Ok(ClassWeight::Balanced),
            other => Err(E::invalid_value(Unexpected::Str(other), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    fn encounters(labels: &[[Option<bool>; 2]]) -> Vec<Encounter> {
        let encounter = |labels: &[Option<bool>; 2]| Encounter {
            labels: labels.to_vec(),
            ..Encounter::new(PerKind::default())
        };
        labels.iter().map(encounter).collect()
    }

    #[test]
    fn balanced_is_negatives_per_positive_of_each_label() {
        let names = ["a".to_owned(), "b".to_owned()];
        let (yes, no) = (Some(true), Some(false));
        let train = encounters(&[[yes, no], [no, None], [no, yes], [no, yes], [None, yes]]);
        let positives = |weight: ClassWeight| weight.positives(&names, &train);
        assert_eq!(positives(ClassWeight::Balanced).unwrap(), [3.0, 1.0 / 3.0]);
        assert_eq!(positives(ClassWeight::Number(2.5)).unwrap(), [2.5, 2.5]);
        assert_eq!(positives(ClassWeight::default()).unwrap(), [0.0; 0]);
        let error = ClassWeight::Balanced.positives(&names, &train[..2]).unwrap_err().to_string();
        assert_eq!(
            error,
            "setting `class_weight`: balanced is not allowed; expected a number, because `b` has no positives in \
             the training split"
        );
    }

    #[test]
    fn it_is_a_number_or_a_word() {
        let read = |text: &str| serde_json::from_str::<ClassWeight>(text).map_err(|error| error.to_string());
        for (text, weight) in [("\"balanced\"", ClassWeight::Balanced), ("8", ClassWeight::Number(8.0))] {
            assert_eq!(read(text), Ok(weight));
        }
        assert_eq!(serde_json::to_string(&ClassWeight::Number(2.0)).unwrap(), "2.0");
        assert_eq!(serde_json::to_string(&ClassWeight::Balanced).unwrap(), "\"balanced\"");
        let error = read("\"even\"").unwrap_err();
        assert!(error.contains("expected a number above 0, up to 1000000, or balanced"), "{error}");
    }
}
