//! Synthetic data from settings to a finished folder: draw, write, count the prior, measure the ceiling, in
//! one pass and in bounded memory.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::ceiling::{self, Ceiling};
use crate::dataset::{Dataset, ENCOUNTERS_PER_PART, MANIFEST, Manifest, Source, Writer, parts_for};
use crate::error::{Error, Result};
use crate::files::Overwrite;
pub use crate::ingest::synthetic::SOURCE;
use crate::ingest::synthetic::{Generator, Settings};
use crate::job::Job;
use crate::overrides;
use crate::prior::Counter;
use crate::record::{Encounter, PerKind};
use crate::split::{By, Split, SplitPart};

/// The split by which the ceiling's held-out encounters and its prior are chosen.
const SPLIT_SEED: u64 = 0;

/// What was measured while the encounters were drawn; stored in `dataset.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// How many encounters were drawn until enough had passed the filter.
    pub raw_encounters: u64,
    /// How many encounters carry each label.
    pub label_positives: BTreeMap<String, u64>,
    /// What graph reconstruction and labels can reach.
    #[serde(flatten)]
    pub ceiling: Ceiling,
}

impl Findings {
    /// The findings of a dataset, if it is synthetic.
    ///
    /// # Errors
    /// If `dataset.json` says that it is, but holds something else.
    pub fn of(dataset: &Dataset) -> Result<Option<Self>> {
        let source = &dataset.manifest().source;
        if source.kind != SOURCE {
            return Ok(None);
        }
        let wrong = |problem: String| {
            Error::file(&dataset.path().join(MANIFEST), format!("source.findings: {problem}"))
        };
        overrides::from_json(source.findings.clone()).map(Some).map_err(wrong)
    }
}

/// What happens while [`run`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Encounters kept so far, of those wanted.
    Drawn(u64),
    /// All are drawn; the ceiling is being measured.
    Measuring,
}

/// Makes a dataset folder of synthetic encounters.
///
/// # Errors
/// If a setting makes no sense, the folder cannot be written, or it is stopped. Nothing is left behind then.
pub fn run(
    settings: &Settings,
    out: &Path,
    overwrite: Overwrite,
    job: &Job<'_, Event>,
) -> Result<(Manifest, Findings)> {
    let mut generator = Generator::new(settings)?;
    let labels = generator.label_names();
    let parts = parts_for(settings.encounters, ENCOUNTERS_PER_PART);
    let (vocabulary, has_ends) = (generator.vocabulary(), settings.visits.are_several());
    let mut sink = Sink {
        writer: Writer::create_parts(out, overwrite, vocabulary, labels.clone(), parts, has_ends)?,
        split: Split::by_hash(SPLIT_SEED, By::Subject),
        counter: Counter::new(PerKind::from_fn(|kind| settings.vocabulary[kind] as usize)),
        held_out: Vec::new(),
        label_positives: vec![0; labels.len()],
    };
    let (mut raw_encounters, mut kept) = (0, 0);
    let mut round = generator.next_round(job.stop())?;
    while let Some(drawn) = round {
        raw_encounters = drawn.raw_encounters;
        // One round is drawn while the one before it is written.
        let (next, taken) = rayon::join(|| generator.next_round(job.stop()), || sink.take(&drawn.encounters));
        taken?;
        round = next?;
        kept += drawn.encounters.len() as u64;
        job.advance(Event::Drawn(kept))?;
    }
    job.tell(Event::Measuring);
    let findings = Findings {
        raw_encounters,
        label_positives: labels.into_iter().zip(sink.label_positives).collect(),
        ceiling: ceiling::measure(&generator, &sink.counter.finish(), &sink.held_out, job.stop())?,
    };
    job.check()?;
    let source = Source {
        kind: SOURCE.into(),
        settings: serde_json::to_value(settings).expect("settings have only text keys"),
        findings: serde_json::to_value(&findings).expect("findings have only text keys"),
    };
    Ok((sink.writer.finish(source)?, findings))
}

/// Where drawn encounters go.
struct Sink {
    writer: Writer,
    split: Split,
    counter: Counter,
    held_out: Vec<Encounter>,
    label_positives: Vec<u64>,
}

impl Sink {
    fn take(&mut self, encounters: &[Encounter]) -> Result<()> {
        for encounter in encounters {
            match self.split.part(encounter) {
                SplitPart::Train => self.counter.add(encounter),
                SplitPart::Test if self.held_out.len() < ceiling::HELD_OUT => {
                    self.held_out.push(encounter.clone())
                }
                SplitPart::Test | SplitPart::Validation => {}
            }
            for (positives, label) in self.label_positives.iter_mut().zip(&encounter.labels) {
                *positives += u64::from(*label == Some(true));
            }
        }
        self.writer.write(encounters)
    }
}
