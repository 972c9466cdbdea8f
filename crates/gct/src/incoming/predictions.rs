//! Predictions that another program made, in the columns that this one writes: CSV or Parquet, a row per
//! encounter and label.

use std::collections::HashMap;
use std::path::Path;

use super::read_columns;
use crate::error::{Error, Result};
use crate::job::Job;

const PROBABILITY: &str = "predicted_boolean_probability";
const LABEL: &str = "label";

/// Probabilities stay so far away from 0 and 1, as those of scikit-learn do in its log loss.
const EDGE: f64 = f64::EPSILON;

/// The logits of some labels for encounters, by their identifiers.
pub(crate) struct Predictions {
    labels: Vec<String>,
    logits: HashMap<String, Vec<Option<f32>>>,
}

/// What is wrong with a row, and in which column.
type Wrong = (&'static str, &'static str);

impl Predictions {
    /// Reads those of these labels; rows of other labels are passed over. A file without a column of labels
    /// is of the only one.
    ///
    /// # Errors
    /// If the file cannot be read, or anything in it is wrong; or the job is stopped.
    pub(crate) fn open(path: &Path, labels: &[String], job: &Job<'_, u64>) -> Result<Self> {
        let mut predictions = Predictions { labels: labels.to_vec(), logits: HashMap::new() };
        let wanted = [PROBABILITY, LABEL].map(str::to_owned);
        let columns = read_columns(path, &wanted, job, |row, encounter, texts| {
            predictions.add(encounter, texts[0].as_deref(), texts[1].as_deref()).map_err(|wrong| {
                let (column, problem) = wrong;
                let (column, problem) = (column.to_owned(), problem.to_owned());
                Error::Row { path: path.to_owned(), row, column, problem }
            })
        })?;
        match predictions.logits.is_empty() {
            true => {
                let found = if columns.contains(&wanted[1]) { "others alone" } else { "no such column" };
                let (column, expected) = (wanted[1].clone(), labels.join(", "));
                Err(Error::Column { path: path.to_owned(), column, expected, found: found.into() })
            }
            false => Ok(predictions),
        }
    }

    /// The logit of a label, if there is one.
    pub(crate) fn logit(&self, encounter: &str, label: usize) -> Option<f32> {
        self.logits.get(encounter)?[label]
    }

    fn add(&mut self, encounter: &str, probability: Option<&str>, label: Option<&str>) -> Result<(), Wrong> {
        let label = match (label, self.labels.len()) {
            (None, 1) => Some(0),
            (None, _) => return Err((LABEL, "is empty or missing, and several labels are compared")),
            (Some(name), _) => self.labels.iter().position(|label| label == name),
        };
        let Some(label) = label else { return Ok(()) };
        let number = probability.and_then(|text| text.trim().parse::<f64>().ok());
        let probability = number.filter(|number| (0.0..=1.0).contains(number));
        let probability = probability.ok_or((PROBABILITY, "expected a number from 0 to 1"))?;
        let probability = probability.clamp(EDGE, 1.0 - EDGE);
        let logit = (probability.ln() - (-probability).ln_1p()) as f32;
        let labels = self.labels.len();
        let row = self.logits.entry(encounter.to_owned()).or_insert_with(|| vec![None; labels]);
        match row[label].replace(logit) {
            Some(_) => Err(("encounter_id", "is that of an earlier row")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str, labels: &[&str]) -> Result<Predictions, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let opened = Predictions::open(file.path(), &labels, &Job::silent());
        opened.map_err(|error| error.to_string().split_once(": ").unwrap().1.to_owned())
    }

    const HEADER: &str = "encounter_id,label,predicted_boolean_probability\n";

    #[test]
    fn rows_of_the_labels_are_read_and_others_passed_over() {
        let read = open(&format!("{HEADER}E1,a,0.5\nE1,b,0.75\nE2,c,0.1\nE2,b,1\n"), &["b", "a"]).unwrap();
        assert!((read.logit("E1", 0).unwrap() - 3f32.ln()).abs() < 1e-6);
        assert_eq!(read.logit("E1", 1), Some(0.0));
        assert_eq!((read.logit("E2", 1), read.logit("E3", 0)), (None, None));
        assert!(read.logit("E2", 0).unwrap().is_finite(), "certainty is kept away from 1");
        let alone = open("x\tpredicted_boolean_probability\tencounter_id\n9\t0.5\tE1\n", &["a"]).unwrap();
        assert_eq!(alone.logit("E1", 0), Some(0.0));
    }

    #[test]
    fn what_is_wrong_is_named_by_row_and_column() {
        let wrong = |rows: &str| open(&format!("{HEADER}{rows}"), &["a"]).err().unwrap();
        let expected = "row 2: column `predicted_boolean_probability`: expected a number from 0 to 1";
        for text in
            ["E1,a,0.5\nE2,a,1.5\n", "E1,a,0.5\nE2,a,\n", "E1,a,0.5\nE2,a,nan\n", "E1,a,0.5\nE2,a,x\n"]
        {
            assert_eq!(wrong(text), expected, "{text}");
        }
        assert_eq!(wrong("E1,a,0.5\nE1,a,0.5\n"), "row 2: column `encounter_id`: is that of an earlier row");
        assert_eq!(wrong("E1,b,0.5\n"), "column `label`: expected a, found others alone");
        let lacks = open("encounter_id,predicted_boolean_probability\nE1,0.5\n", &["a", "b"]).err().unwrap();
        assert!(lacks.starts_with("row 1: column `label`: is empty or missing"), "{lacks}");
        let lacks = open("encounter_id,label,p\nE1,a,0.5\n", &["a"]).err().unwrap();
        assert_eq!(lacks, "row 1: column `predicted_boolean_probability`: expected a number from 0 to 1");
        assert!(open("{\"encounter_id\": 1}", &["a"]).is_err());
    }
}
