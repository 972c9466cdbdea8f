//! From events to the codes and links of each encounter, as numbers; and what became of every event on the
//! way.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::dataframe::DataFrame;
use gct::record::{Code, CodeKind, PerKind};

use super::buckets::BUCKETED;
use super::context::OTHERS;
use super::encounters::{NO_TEXT, NO_TIME, Optional};
use super::{Numbering, Steps, add};
use crate::engine::{as_text, single};
use crate::error::{Error, Result};
use crate::sql::{filled, quoted};
use crate::summary::Summary;

/// What gathering the codes of encounters holds in memory for an event.
const EVENT_BYTES: u64 = 48;

/// Columns of `source_events` that the source may leave out.
const OPTIONAL: [Optional; 5] = [
    ("description", NO_TEXT),
    ("numeric_value", "CAST(NULL AS DOUBLE)"),
    ("dropped", NO_TEXT),
    ("note", NO_TEXT),
    ("from_table", NO_TEXT),
];

/// The time of an event, where labels have a moment of prediction.
const TIME: &str = ", arrow_cast(time, 'Timestamp(Microsecond, None)') AS time";

/// The rules that drop what is not known at the moment of prediction. Context is what is known of the patient
/// and the visit, and often has no time.
const AFTER_PREDICTION: &str = "WHEN time > label_time THEN 'after_prediction' \
    WHEN time IS NULL AND label_time IS NOT NULL AND kind <> 'context' THEN 'no_time'";

/// The rules that drop links that are not known at the moment of prediction, where links have times.
const LINK_AFTER_PREDICTION: &str = "WHEN time > label_time THEN 'after_prediction' \
    WHEN time IS NULL AND label_time IS NOT NULL THEN 'no_time'";

/// No links, with the type that links have.
const NO_LINKS: &str = "arrow_cast(NULL, 'List(Struct(\"cause\": UInt32, \"effect\": UInt32))')";

/// The condition that a row is in one of several shares, after a word that begins or continues a condition.
fn in_share(word: &str, id: &str, share: u64, shares: u64) -> String {
    if shares == 1 { String::new() } else { format!("{word} share({id}, {shares}) = {share}") }
}

impl Steps<'_> {
    /// Events with a reason where one is dropped, as a view.
    pub(super) async fn events(&mut self) -> Result<()> {
        let source = self.engine.context.table("source_events").await?;
        let has_values = source.schema().fields().iter().any(|field| field.name() == "numeric_value");
        let has_bins = self.request.settings.lab_bins > 1;
        self.has_values.lab = has_values && has_bins;
        self.has_values.context = (has_values || self.has_context) && has_bins;
        let columns = self.columns("source_events", &OPTIONAL).await?;
        let limited = match self.request.settings.limit {
            Some(_) => "WHERE given.encounter_id IN (SELECT encounter_id FROM encounters)",
            None => "",
        };
        let [time, join_times, after_prediction] = match self.has_label_times {
            true => {
                if !self.has_times(&source, "events.sql")? {
                    return Err(self.no_times());
                }
                [TIME, include_str!("../../steps/join_times.sql"), AFTER_PREDICTION]
            }
            false => ["", "", ""],
        };
        // What is dropped by the time of a label is dropped last.
        let columns = if self.has_label_times { columns + ", time" } else { columns };
        let no_time = if self.has_label_times { format!(", {NO_TIME}") } else { String::new() };
        let and_context = match self.has_context {
            true => filled(include_str!("../../steps/and_context.sql"), &[("no_time", &no_time)]),
            false => String::new(),
        };
        let parts = [
            ("columns", columns.as_str()),
            ("where", limited),
            ("time", time),
            ("join_times", join_times),
            ("after_prediction", after_prediction),
            ("and_context", &and_context),
            ("is_chosen", &self.is_chosen()),
        ];
        let events = self.engine.sql(&filled(include_str!("../../steps/events.sql"), &parts)).await?;
        self.engine.view("events", events)
    }

    /// Whether a relation, which is in this file, has times.
    pub(super) fn has_times(&self, relation: &DataFrame, file: &str) -> Result<bool> {
        let times = relation.schema().fields().iter().find(|field| field.name() == "time");
        match times {
            Some(field) if field.data_type().is_temporal() => Ok(true),
            Some(field) => Err(Error::Source {
                path: self.request.source.path.replace("source.toml", file),
                problem: format!("column `time` must be a timestamp, not {}", field.data_type()),
            }),
            None => Ok(false),
        }
    }

    /// Labels have moments of prediction, and events have no time.
    fn no_times(&self) -> Error {
        Error::NoTimes {
            file: self.request.settings.labels.clone().unwrap_or_default(),
            of: self.request.source.name.clone(),
            instead: self.request.source.description.timeless.clone(),
        }
    }

    /// Every code that any event has, numbered within its kind; and how many events were dropped.
    pub(super) async fn tally(&mut self, summary: &mut Summary) -> Result<()> {
        let step = "counting codes";
        let tally = self.engine.sql(include_str!("../../steps/tally.sql")).await?;
        self.engine.keep(step, "tally", tally).await?;
        // Where nothing has a value, there is nothing to put into buckets.
        for kind in BUCKETED {
            let values =
                filled(include_str!("../../steps/count_values.sql"), &[("kind", &quoted(kind.name()))]);
            self.has_values[kind] &= single(&self.engine.query("counting values", &values).await?) > 0;
        }
        self.roll_up(summary).await?;
        for (rule, count) in self.count_by(step, OTHERS, "dropped", "sum(events)").await? {
            summary.events_read += count;
            add(&mut summary.events_dropped, &rule, count);
        }
        for (table, count) in self.count_by(step, OTHERS, "from_table", "sum(events)").await? {
            match table.as_str() {
                "" => summary.events_derived = count,
                _ => summary.tables.entry(table).or_default().events = Some(count),
            }
        }
        self.count_context(summary).await?;
        // An event can have several notes, with commas between them.
        for (notes, count) in self.count_by(step, "rolled", "note", "sum(events)").await? {
            for note in notes.split(',').filter(|note| !note.is_empty()) {
                *summary.events_noted.entry(note.into()).or_default() += count;
            }
        }
        let codes = self.engine.sql(include_str!("../../steps/codes.sql")).await?;
        self.engine.keep("numbering codes", "codes", codes).await
    }

    /// The codes of each encounter as numbers, beside the encounter; and the codes.
    pub(super) async fn lists(&self, summary: &mut Summary) -> Result<PerKind<Numbering>> {
        let shares = self.engine.shares((summary.events_read + summary.context_read) * EVENT_BYTES);
        self.gather_codes(shares, summary).await?;
        if self.has_links {
            self.gather_links(summary).await?;
        }
        let mut joined = self.joined(shares).await?;
        let alive = if self.repeats() || self.request.like.is_some() || shares > 1 {
            self.engine.keep_all("joining encounters", "joined", joined).await?;
            self.engine.context.table("joined").await?
        } else {
            // It is read once, by the rules.
            joined.remove(0)
        };
        self.engine.view("alive", alive)?;
        self.codes().await
    }

    async fn gather_codes(&self, shares: u64, summary: &mut Summary) -> Result<()> {
        let listed = |kind| match self.has_values[kind] {
            true => "named_struct('id', codes.id, 'value', events.numeric_value)",
            false => "codes.id",
        };
        let [context, lab] = [CodeKind::Context, CodeKind::Lab].map(listed);
        let mut lists = vec![];
        for share in 0..shares {
            let and_share = in_share("AND", "events.encounter_id", share, shares);
            let parts = [("context", context), ("lab", lab), ("and_share", &and_share)];
            lists.push(self.engine.sql(&filled(include_str!("../../steps/lists.sql"), &parts)).await?);
        }
        self.engine.keep_all("gathering codes", "lists", lists).await?;
        let (lost, dropped) = self.lost("lists", "events").await?;
        add(&mut summary.events_dropped, "no_encounter", lost);
        add(&mut summary.events_dropped, "encounter_dropped", dropped);
        let (lost, dropped) = self.lost("lists", "context_rows").await?;
        add(&mut summary.context_dropped, "no_encounter", lost);
        add(&mut summary.context_dropped, "encounter_dropped", dropped);
        Ok(())
    }

    /// Encounters with their codes and links, in shares.
    async fn joined(&self, shares: u64) -> Result<Vec<DataFrame>> {
        let [links, count_links, join_links] = match self.has_links {
            true => [
                "links.links",
                "coalesce(links.links_read, 0)",
                "LEFT JOIN links ON encounters.encounter_id = links.encounter_id",
            ],
            false => [NO_LINKS, "0", ""],
        };
        let mut joined = vec![];
        for share in 0..shares {
            let parts = [
                ("links", links),
                ("count_links", count_links),
                ("join_links", join_links),
                ("where_share", &in_share("WHERE", "encounter_id", share, shares)),
                ("and_share", &in_share("AND", "encounters.encounter_id", share, shares)),
            ];
            joined.push(self.engine.sql(&filled(include_str!("../../steps/joined.sql"), &parts)).await?);
        }
        Ok(joined)
    }

    /// The links of each encounter between numbers of codes; and how many have no such ends.
    async fn gather_links(&self, summary: &mut Summary) -> Result<()> {
        let source = self.engine.context.table("source_links").await?;
        let mut wanted = vec![("dropped", NO_TEXT)];
        // Where links have no times, one is known as soon as its ends are.
        let [join_times, after_prediction] =
            match self.has_label_times && self.has_times(&source, "links.sql")? {
                true => {
                    wanted.push(("time", NO_TIME));
                    [include_str!("../../steps/join_times.sql"), LINK_AFTER_PREDICTION]
                }
                false => ["", ""],
            };
        let parts = [
            ("columns", &*self.columns("source_links", &wanted).await?),
            ("join_times", join_times),
            ("after_prediction", after_prediction),
        ];
        let ends = filled(include_str!("../../steps/link_ends.sql"), &parts);
        let ends = self.engine.sql(&ends).await?;
        self.engine.keep("reading links", "link_ends", ends).await?;
        for (rule, count) in self.count_by("counting links", "link_ends", "dropped", "count(*)").await? {
            summary.links_read += count;
            add(&mut summary.links_dropped, &rule, count);
        }
        let links = self.engine.sql(include_str!("../../steps/links.sql")).await?;
        self.engine.keep("gathering links", "links", links).await?;
        let (lost, dropped) = self.lost("links", "links_read").await?;
        add(&mut summary.links_dropped, "no_encounter", lost);
        add(&mut summary.links_dropped, "encounter_dropped", dropped);
        Ok(())
    }

    /// How many events or links are of no encounter, and how many of one that the source drops.
    async fn lost(&self, table: &str, count: &str) -> Result<(u64, u64)> {
        let outside = |condition: &str| {
            let parts = [("table", table), ("count", count), ("where", condition)];
            filled(include_str!("../../steps/lost.sql"), &parts)
        };
        let step = "looking for lost rows";
        let lost = single(&self.engine.query(step, &outside("")).await?);
        let outside = single(&self.engine.query(step, &outside("WHERE dropped IS NULL")).await?);
        Ok((lost, outside - lost))
    }

    async fn codes(&self) -> Result<PerKind<Numbering>> {
        let codes = include_str!("../../steps/read_codes.sql");
        let mut numberings = PerKind::<Numbering>::from_fn(|_| Numbering::default());
        for batch in self.engine.query("reading codes", codes).await? {
            let [kinds, codes, descriptions] = [0, 1, 2].map(|column| as_text(batch.column(column)));
            let (codes, descriptions) = (codes.as_string::<i32>(), descriptions.as_string::<i32>());
            for row in 0..batch.num_rows() {
                let name = kinds.as_string::<i32>().value(row);
                let kind = CodeKind::ALL.into_iter().find(|kind| kind.name() == name);
                let kind = kind.unwrap_or_else(|| panic!("events of other kinds are dropped"));
                numberings[kind].codes.push(Code {
                    code: codes.value(row).into(),
                    description: descriptions.is_valid(row).then(|| descriptions.value(row).into()),
                    count: 0,
                });
            }
        }
        for kind in CodeKind::ALL {
            let count = numberings[kind].codes.len() as u32;
            numberings[kind].new = (0..count).map(Some).collect();
        }
        Ok(numberings)
    }
}
