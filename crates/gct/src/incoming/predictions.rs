//! Predictions that another program made, in the columns that this one writes: CSV or Parquet, a row per
//! encounter and label.

use std::collections::HashMap;
use std::path::Path;

use arrow_schema::Schema;

use super::events::{delimiter, read_record, text, value};
use super::source::{ParquetFile, Reader, Source};
use super::{ROWS, refusal};
use crate::dataset::Table;
use crate::error::{Error, OnPath, Result};
use crate::job::Job;

/// The columns that are read, in this order. Others are ignored.
const COLUMNS: [&str; 3] = ["encounter_id", "predicted_boolean_probability", "label"];

/// Probabilities stay so far away from 0 and 1, as those of scikit-learn do in its log loss.
const EDGE: f64 = f64::EPSILON;

/// The logits of some labels for encounters, by their identifiers.
pub(crate) struct Predictions {
    labels: Vec<String>,
    logits: HashMap<String, Vec<Option<f32>>>,
    /// Where the file has the columns.
    positions: [Option<usize>; COLUMNS.len()],
}

/// What is wrong with a row, and in which column.
type Wrong = (&'static str, &'static str);

impl Predictions {
    /// Reads those of these labels; rows of other labels are passed over.
    ///
    /// # Errors
    /// If the file cannot be read, or anything in it is wrong; or the job is stopped.
    pub(crate) fn open(path: &Path, labels: &[String], job: &Job<'_, u64>) -> Result<Self> {
        let mut predictions =
            Predictions { labels: labels.to_vec(), logits: HashMap::new(), positions: Default::default() };
        match Source::open(path)? {
            Source::Lines(_) => return Err(refusal(path, "expected CSV or Parquet")),
            Source::Csv(reader) => predictions.read_csv(path, reader, job)?,
            Source::Parquet(file) => predictions.read_parquet(path, &file, job)?,
        }
        match predictions.logits.is_empty() {
            true => Err(refusal(path, format!("it has no row of {}", labels.join(", ")))),
            false => Ok(predictions),
        }
    }

    /// The logit of a label, if there is one.
    pub(crate) fn logit(&self, encounter: &str, label: usize) -> Option<f32> {
        self.logits.get(encounter)?[label]
    }

    fn find_columns(&mut self, path: &Path, names: &[String]) -> Result<()> {
        for (position, wanted) in self.positions.iter_mut().zip(COLUMNS) {
            *position = names.iter().position(|name| name.trim() == wanted);
        }
        let needed = if self.labels.len() == 1 { 2 } else { 3 };
        let lacking =
            COLUMNS.iter().zip(self.positions).take(needed).find(|(_, position)| position.is_none());
        match lacking {
            Some((name, _)) => Err(refusal(path, format!("no column `{name}`"))),
            None => Ok(()),
        }
    }

    /// Adds a row. A file without a column of labels is of the only one.
    fn add(
        &mut self,
        encounter: Option<&str>,
        probability: Result<Option<f64>, ()>,
        label: Option<&str>,
    ) -> Result<(), Wrong> {
        let label = match (self.positions[2], label) {
            (None, _) => Some(0),
            (Some(_), Some(name)) => self.labels.iter().position(|label| label == name),
            (Some(_), None) => return Err((COLUMNS[2], "is empty")),
        };
        let Some(label) = label else { return Ok(()) };
        let encounter = encounter.filter(|id| !id.is_empty()).ok_or((COLUMNS[0], "is empty"))?;
        let is_one = |probability: &f64| (0.0..=1.0).contains(probability);
        let probability = probability.ok().flatten().filter(is_one);
        let probability = probability.ok_or((COLUMNS[1], "expected a number from 0 to 1"))?;
        let probability = probability.clamp(EDGE, 1.0 - EDGE);
        let logit = (probability.ln() - (-probability).ln_1p()) as f32;
        let labels = self.labels.len();
        let row = self.logits.entry(encounter.to_owned()).or_insert_with(|| vec![None; labels]);
        match row[label].replace(logit) {
            Some(_) => Err((COLUMNS[0], "is that of an earlier row")),
            None => Ok(()),
        }
    }

    fn read_csv(&mut self, path: &Path, mut reader: Reader, job: &Job<'_, u64>) -> Result<()> {
        let delimiter = delimiter(&mut reader).on("read", path)?;
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .from_reader(reader);
        let mut record = csv::StringRecord::new();
        read_record(path, 0, &mut reader, &mut record)?;
        let names: Vec<String> = record.iter().map(str::to_owned).collect();
        self.find_columns(path, &names)?;
        let mut number = 0;
        while read_record(path, number + 1, &mut reader, &mut record)? {
            number += 1;
            if number % ROWS == 0 {
                job.check()?;
            }
            if record.len() != names.len() {
                let problem = format!("expected {} fields, found {}", names.len(), record.len());
                return Err(refusal(path, format!("row {number}: {problem}")));
            }
            let [encounter, probability, label] =
                self.positions.map(|position| record.get(position?).map(str::trim));
            let probability = probability.map(|text| text.parse::<f64>().map_err(|_| ())).transpose();
            self.add(encounter, probability, label).map_err(|wrong| wrong_row(path, number, wrong))?;
        }
        Ok(())
    }

    fn read_parquet(&mut self, path: &Path, file: &ParquetFile, job: &Job<'_, u64>) -> Result<()> {
        let named = |error: Error| match error {
            Error::Damaged { problem, .. } => Error::Damaged { path: path.to_owned(), problem },
            other => other,
        };
        let table = Table::open(file.path().to_owned(), &Schema::empty(), None).map_err(named)?;
        let mut number = 0;
        for batch in table.batches()? {
            let batch = batch.map_err(named)?;
            job.check()?;
            let fields = batch.schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
            self.find_columns(path, &fields)?;
            let [encounters, probabilities, labels] =
                self.positions.map(|position| position.map(|position| batch.column(position).as_ref()));
            for row in 0..batch.num_rows() {
                number += 1;
                let encounter = encounters.and_then(|column| text(column, row));
                let probability = probabilities.map_or(Ok(None), |column| value(column, row));
                let label = labels.and_then(|column| text(column, row));
                self.add(encounter.as_deref(), probability, label.as_deref())
                    .map_err(|wrong| wrong_row(path, number, wrong))?;
            }
        }
        Ok(())
    }
}

fn wrong_row(path: &Path, number: u64, (column, problem): Wrong) -> Error {
    refusal(path, format!("row {number}: column `{column}`: {problem}"))
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
        assert_eq!(wrong(",a,0.5\n"), "row 1: column `encounter_id`: is empty");
        assert_eq!(wrong("E1,b,0.5\n"), "it has no row of a");
        assert_eq!(wrong("E1,a\n"), "row 1: expected 3 fields, found 2");
        let lacks = open("encounter_id,predicted_boolean_probability\nE1,0.5\n", &["a", "b"]).err().unwrap();
        assert_eq!(lacks, "no column `label`");
        assert_eq!(open("{\"encounter_id\": 1}", &["a"]).err().unwrap(), "expected CSV or Parquet");
    }
}
