//! Labels of onset, of the diagnoses that the source records: before rollups, and whatever rule drops them
//! later.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::dataframe::DataFrame;

use super::Steps;
use super::encounters::{NO_TEXT, NO_TIME, Optional};
use super::input::OBSERVED;
use crate::engine::texts;
use crate::error::{Error, Result};
use crate::onset::{self, Wanted};
use crate::settings::Prevalent;
use crate::source::{Value, range};
use crate::sql::{filled, named};
use crate::tables;

/// Columns of encounters that the source may leave out.
const OF_ENCOUNTERS: [Optional; 2] = [("end", NO_TIME), ("dropped", NO_TEXT)];

/// Columns of events that the source may leave out. With subjects, events without an encounter are seen too.
const OF_EVENTS: [Optional; 3] = [("subject_id", NO_TEXT), ("time", NO_TIME), ("dropped", NO_TEXT)];

impl Steps<'_> {
    /// A row per encounter and label of onset, if any is asked for.
    pub(super) async fn onset_labels(&mut self) -> Result<Option<DataFrame>> {
        if self.request.settings.onset.is_empty() {
            return Ok(None);
        }
        self.check_dates().await?;
        let columns = self.columns("source_events", &OF_EVENTS).await?;
        let diagnoses = filled(include_str!("../../steps/diagnoses.sql"), &[("columns", &columns)]);
        self.engine.view("diagnoses", self.engine.sql(&diagnoses).await?)?;
        self.find_codes().await?;
        let onsets = self.engine.sql(include_str!("../../steps/onsets.sql")).await?;
        self.engine.keep("looking for onsets", "onsets", onsets).await?;
        self.labels_of_onsets().await.map(Some)
    }

    /// Refuses a source whose encounters have no dates, and events with times that are none.
    async fn check_dates(&self) -> Result<()> {
        let source = &self.request.source;
        let encounters = self.engine.context.table("source_encounters").await?;
        let has_start = encounters.schema().fields().iter().any(|field| field.name() == "start");
        if source.description.timeless.is_some() || !has_start {
            let (of, instead) = (source.name.clone(), source.description.timeless.clone());
            return Err(Error::NoDates { of, instead });
        }
        let events = self.engine.context.table("source_events").await?;
        self.has_times(&events, "events.sql").map(drop)
    }

    /// The codes of each label that are recorded, as the table `onset_codes`.
    async fn find_codes(&mut self) -> Result<()> {
        let recorded = "SELECT DISTINCT code FROM diagnoses ORDER BY code";
        let recorded = texts(&self.engine.query("looking for diagnoses", recorded).await?);
        let mut rows = vec![];
        for (label, codes) in &self.request.settings.onset {
            let wanted = self.wanted(label, codes).await?;
            let found: Vec<&String> = recorded.iter().filter(|code| wanted.has(code)).collect();
            if found.is_empty() {
                return Err(Error::NoOnset {
                    label: label.clone(),
                    diagnoses: recorded.len(),
                    input: self.request.input.clone(),
                    wanted: wanted.shown(),
                    beginnings: onset::beginnings(&recorded),
                });
            }
            rows.extend(found.into_iter().map(|code| (label.as_str(), code.as_str())));
            self.onsets.insert(label.clone(), wanted.list());
        }
        let column = |texts: StringArray| Arc::new(texts) as ArrayRef;
        let labels = column(rows.iter().map(|(label, _)| Some(*label)).collect());
        let codes = column(rows.iter().map(|(_, code)| Some(*code)).collect());
        let table = RecordBatch::try_from_iter([("label", labels), ("code", codes)])
            .unwrap_or_else(|error| panic!("two columns of one length: {error}"));
        self.engine.context.register_batch("onset_codes", table)?;
        Ok(())
    }

    /// The diagnoses of a label: codes, or a file of such.
    async fn wanted(&self, label: &str, codes: &str) -> Result<Wanted> {
        if !onset::is_file(codes) {
            return Wanted::of(codes.split(',').map(str::to_owned));
        }
        let table = format!("codes_of_{label}");
        tables::register_codes(self.engine, codes, &table).await?;
        let listed = format!("SELECT DISTINCT code FROM {} WHERE code IS NOT NULL", named(&table));
        Wanted::of(texts(&self.engine.query("reading codes", &listed).await?))
    }

    /// The query for labels, which sees encounters and `onsets`.
    async fn labels_of_onsets(&self) -> Result<DataFrame> {
        let settings = &self.request.settings;
        let Value::Range(first, last) = range("within", &settings.within)? else {
            unreachable!("a range is read as one")
        };
        let is_observed = self.request.source.description.views.iter().any(|view| view == OBSERVED);
        let [until, join_observed] = match is_observed {
            // Without a row, until what is seen last.
            true => [
                "CASE WHEN observed_id IS NULL THEN seen.until ELSE observed.until END",
                include_str!("../../steps/join_observed.sql"),
            ],
            false => ["seen.until", ""],
        };
        let parts = [
            ("columns", self.columns("source_encounters", &OF_ENCOUNTERS).await? + ", start"),
            ("until", until.into()),
            ("join_observed", join_observed.into()),
            ("first", first.to_string()),
            ("last", last.to_string()),
            ("is_dropped", (settings.prevalent == Prevalent::Drop).to_string()),
        ];
        let parts = parts.each_ref().map(|(name, part)| (*name, part.as_str()));
        self.engine.sql(&filled(include_str!("../../steps/onset_labels.sql"), &parts)).await
    }
}
