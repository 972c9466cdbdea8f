//! What is written while a run goes on: a line per validation for programs, curves for TensorBoard, a log for
//! people.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::events::EventFile;
use crate::error::{OnPath, Result};
use crate::files;

pub(super) const METRICS: &str = "metrics.jsonl";
pub(super) const EVENTS: &str = "events.out.tfevents.0.gct";
pub(super) const LOG: &str = "log.txt";

/// One validation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// After so many steps.
    pub step: u64,
    /// How often every training encounter has been seen, in the mean.
    pub epoch: f64,
    /// The learning rate of the last step.
    pub learning_rate: f64,
    /// The mean loss of prediction over the steps since the validation before.
    pub train_loss: f64,
    /// The same of the regulariser, not weighted.
    pub train_regularizer: f64,
    /// The mean loss of prediction on the validation split.
    pub validation_loss: Option<f64>,
    /// The metric by which models are chosen: its name ...
    pub metric: String,
    /// ... and its value on the validation split, if it is defined.
    pub value: Option<f64>,
    /// Area under the ROC curve, where it applies.
    pub auroc: Option<f64>,
    /// Whether it was the best so far.
    pub best: bool,
    /// Encounters learned from per second, since the validation before.
    pub encounters_per_second: f64,
    /// Seconds of training so far.
    pub seconds: f64,
}

/// The files.
pub(crate) struct Journal {
    metrics: PathBuf,
    events: PathBuf,
    log: PathBuf,
}

impl Journal {
    /// Goes on with the files of a run, of which so much is still true.
    pub(crate) fn open(run: &Path, lengths: [u64; 2]) -> Result<Self> {
        let journal = Journal { metrics: run.join(METRICS), events: run.join(EVENTS), log: run.join(LOG) };
        for (path, length) in [&journal.metrics, &journal.events].into_iter().zip(lengths) {
            let file = append(path)?;
            if file.metadata().on("read", path)?.len() > length {
                file.set_len(length).on("write", path)?;
            }
        }
        Ok(journal)
    }

    /// How long the two files are that a checkpoint remembers.
    pub(crate) fn lengths(&self) -> Result<[u64; 2]> {
        let length = |path: &Path| -> Result<u64> { Ok(std::fs::metadata(path).on("read", path)?.len()) };
        Ok([length(&self.metrics)?, length(&self.events)?])
    }

    /// Writes down a validation.
    pub(crate) fn add(&self, entry: &Entry) -> Result<()> {
        let line = serde_json::to_string(entry).map_err(io::Error::from).on("write", &self.metrics)?;
        writeln!(append(&self.metrics)?, "{line}").on("write", &self.metrics)?;
        let metric = format!("validation/{}", entry.metric);
        let mut scalars = vec![
            ("train/loss", entry.train_loss),
            ("train/regularizer", entry.train_regularizer),
            ("train/learning_rate", entry.learning_rate),
            ("train/encounters_per_second", entry.encounters_per_second),
        ];
        scalars.extend(entry.validation_loss.map(|loss| ("validation/loss", loss)));
        scalars.extend(entry.value.map(|value| (metric.as_str(), value)));
        scalars.extend(entry.auroc.map(|auroc| ("validation/auroc", auroc)));
        let scalars: Vec<(&str, f32)> =
            scalars.into_iter().map(|(name, value)| (name, value as f32)).collect();
        let now = seconds_since_1970();
        EventFile::append(&self.events, now)
            .and_then(|mut events| events.scalars(now, entry.step, &scalars))
            .on("write", &self.events)
    }

    /// Writes a line for people.
    pub(crate) fn note(&self, line: &str) -> Result<()> {
        writeln!(append(&self.log)?, "{} {line}", timestamp(seconds_since_1970() as i64))
            .on("write", &self.log)
    }
}

/// The validations of a run.
pub(crate) fn read(run: &Path) -> Result<Vec<Entry>> {
    let path = run.join(METRICS);
    let text = match files::read_text(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.on("read", &path)?,
    };
    // A line that was being written when the program was killed is none.
    Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn append(path: &Path) -> Result<File> {
    OpenOptions::new().create(true).append(true).open(path).on("write", path)
}

fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |passed| passed.as_secs_f64())
}

/// Such as 2000-02-29T01:01:01Z.
fn timestamp(seconds: i64) -> String {
    chrono::DateTime::from_timestamp(seconds, 0)
        .map_or("-".into(), |time| time.format("%Y-%m-%dT%H:%M:%SZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(timestamp(951_782_400 + 3661), "2000-02-29T01:01:01Z");
    }

    #[test]
    fn what_came_after_a_checkpoint_is_cut_off() {
        let home = tempfile::tempdir().unwrap();
        let entry = |step| Entry {
            step,
            epoch: 0.5,
            learning_rate: 1e-3,
            train_loss: 1.0,
            train_regularizer: 0.0,
            validation_loss: Some(2.0),
            metric: "aucpr".into(),
            value: Some(0.25),
            auroc: None,
            best: true,
            encounters_per_second: 1.0,
            seconds: 1.0,
        };
        let journal = Journal::open(home.path(), [0, 0]).unwrap();
        journal.add(&entry(1)).unwrap();
        let lengths = journal.lengths().unwrap();
        journal.add(&entry(2)).unwrap();
        std::fs::write(home.path().join("other"), "kept").unwrap();
        assert_eq!(read(home.path()).unwrap(), [entry(1), entry(2)]);
        let journal = Journal::open(home.path(), lengths).unwrap();
        assert_eq!(read(home.path()).unwrap(), [entry(1)]);
        assert_eq!(journal.lengths().unwrap(), lengths);
    }
}
