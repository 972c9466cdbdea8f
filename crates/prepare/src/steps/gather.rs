//! From events to the codes and links of each encounter, as numbers; and what became of every event on the way.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use gct::record::{Code, CodeKind, PerKind};

use super::{Numbering, Steps, add};
use crate::engine::{single, text_counts};
use crate::error::Result;
use crate::summary::Summary;

/// A code cannot be longer.
const LONGEST_CODE: usize = 1000;

/// What gathering the codes of encounters holds in memory for an event.
const EVENT_BYTES: u64 = 48;

/// The condition that a row is in one of several shares, after a word that begins or continues one.
fn in_share(word: &str, id: &str, share: u64, shares: u64) -> String {
    if shares == 1 { String::new() } else { format!("{word} share({id}, {shares}) = {share}") }
}

impl Steps<'_> {
    /// Events with a reason where one is dropped, as a view.
    pub(super) async fn events(&mut self) -> Result<()> {
        let text = "CAST(NULL AS VARCHAR)";
        let optional = [
            ("description", text),
            ("numeric_value", "CAST(NULL AS DOUBLE)"),
            ("dropped", text),
            ("note", text),
            ("from_table", text),
        ];
        let has_values = {
            let frame = self.engine.context.table("source_events").await?;
            frame.schema().fields().iter().any(|field| field.name() == "numeric_value")
        };
        self.has_values = has_values && self.request.settings.lab_bins > 1;
        let optional = self.columns("source_events", &optional).await?;
        let limited = match self.request.settings.limit {
            Some(_) => " WHERE v.encounter_id IN (SELECT encounter_id FROM encounters)",
            None => "",
        };
        // What is no number, or beyond all numbers, goes into no bucket.
        let value = "CAST(numeric_value AS DOUBLE)";
        let is_finite = format!("{value} BETWEEN -{0:e} AND {0:e}", f64::MAX);
        let events = format!(
            "SELECT encounter_id, kind, code, description, from_table, \
                 CASE WHEN {is_finite} THEN {value} END AS numeric_value, \
                 nullif(concat_ws(',', note, CASE WHEN kind = 'lab' AND NOT {is_finite} THEN 'no_finite_value' END), '') AS note, \
                 CASE WHEN dropped IS NOT NULL THEN dropped \
                      WHEN kind IS NULL OR kind NOT IN ('diagnosis', 'treatment', 'lab') THEN 'unknown_kind' \
                      WHEN code IS NULL OR code = '' THEN 'no_code' \
                      WHEN octet_length(code) > {LONGEST_CODE} THEN 'code_too_long' END AS dropped \
             FROM (SELECT CAST(encounter_id AS VARCHAR) AS encounter_id, kind, code, {optional} FROM source_events) v{limited}"
        );
        let events = self.engine.sql(&events).await?;
        self.engine.view("events", events)
    }

    /// Every code that any event has, numbered within its kind; and how many events were dropped.
    pub(super) async fn tally(&mut self, summary: &mut Summary) -> Result<()> {
        let tally = "SELECT kind, CASE WHEN dropped IS NULL THEN code END AS code, dropped, from_table, \
                 CASE WHEN dropped IS NULL THEN note END AS note, max(description) AS description, count(*) AS events, \
                 count(numeric_value) AS with_value \
             FROM events GROUP BY 1, 2, 3, 4, 5";
        let tally = self.engine.sql(tally).await?;
        self.engine.keep("counting codes", "tally", tally).await?;
        // Where no lab has a value, there is nothing to put into buckets.
        let values = "SELECT coalesce(sum(with_value), 0) FROM tally WHERE kind = 'lab' AND dropped IS NULL";
        self.has_values &= single(&self.engine.query("counting values", values).await?) > 0;
        let by = |column: &str| {
            format!(
                "SELECT {column}, CAST(sum(events) AS BIGINT) AS n FROM tally GROUP BY {column} ORDER BY {column}"
            )
        };
        for (rule, count) in text_counts(&self.engine.query("counting codes", &by("dropped")).await?) {
            summary.events_read += count;
            add(&mut summary.events_dropped, &rule, count);
        }
        for (table, count) in text_counts(&self.engine.query("counting codes", &by("from_table")).await?) {
            match table.as_str() {
                "" => summary.events_derived = count,
                _ => summary.tables.entry(table).or_default().events = Some(count),
            }
        }
        // An event can have several notes, with commas between them.
        for (notes, count) in text_counts(&self.engine.query("counting codes", &by("note")).await?) {
            for note in notes.split(',').filter(|note| !note.is_empty()) {
                *summary.events_noted.entry(note.into()).or_default() += count;
            }
        }
        let codes = "SELECT kind, code, max(description) AS description, \
                 arrow_cast(row_number() OVER (PARTITION BY kind ORDER BY code) - 1, 'UInt32') AS id \
             FROM tally WHERE dropped IS NULL GROUP BY kind, code";
        let codes = self.engine.sql(codes).await?;
        self.engine.keep("numbering codes", "codes", codes).await
    }

    /// The codes of each encounter as numbers, beside the encounter; and the codes.
    pub(super) async fn lists(&self, summary: &mut Summary) -> Result<PerKind<Numbering>> {
        let list = |kind: CodeKind| {
            let entry = match kind {
                CodeKind::Lab if self.has_values => "named_struct('id', c.id, 'value', v.numeric_value)",
                _ => "c.id",
            };
            let kind = kind.name();
            format!("array_agg({entry}) FILTER (WHERE v.kind = '{kind}') AS {kind}")
        };
        let lists: Vec<String> = CodeKind::ALL.iter().map(|kind| list(*kind)).collect();
        let shares = self.engine.shares(summary.events_read * EVENT_BYTES);
        let mut parts = vec![];
        for share in 0..shares {
            let lists = format!(
                "SELECT v.encounter_id, {}, count(*) AS events FROM events v JOIN codes c ON v.kind = c.kind AND v.code = c.code \
                 WHERE v.dropped IS NULL{} GROUP BY v.encounter_id",
                lists.join(", "),
                in_share(" AND", "v.encounter_id", share, shares)
            );
            parts.push(self.engine.sql(&lists).await?);
        }
        self.engine.keep_all("gathering codes", "lists", parts).await?;
        let (lost, dropped) = self.lost("lists", "events").await?;
        add(&mut summary.events_dropped, "no_encounter", lost);
        add(&mut summary.events_dropped, "encounter_dropped", dropped);
        let links = if self.has_links {
            self.links(summary).await?;
            ("k.links, coalesce(k.links_read, 0)", " LEFT JOIN links k ON e.encounter_id = k.encounter_id")
        } else {
            ("arrow_cast(NULL, 'List(Struct(\"cause\": UInt32, \"effect\": UInt32))') AS links, 0", "")
        };
        let mut parts = vec![];
        for share in 0..shares {
            let joined = format!(
                "SELECT e.*, l.diagnosis, l.treatment, l.lab, coalesce(l.events, 0) AS all_events, {} AS all_links \
                 FROM encounters e LEFT JOIN (SELECT * FROM lists{}) l ON e.encounter_id = l.encounter_id{} \
                 WHERE e.dropped IS NULL{}",
                links.0,
                in_share(" WHERE", "encounter_id", share, shares),
                links.1,
                in_share(" AND", "e.encounter_id", share, shares)
            );
            parts.push(self.engine.sql(&joined).await?);
        }
        let alive = if self.repeats() || shares > 1 {
            self.engine.keep_all("joining encounters", "joined", parts).await?;
            self.engine.context.table("joined").await?
        } else {
            // It is read once, by the rules.
            parts.remove(0)
        };
        self.engine.view("alive", alive)?;
        self.codes().await
    }

    /// The links of each encounter between numbers of codes; and how many have no such ends.
    async fn links(&self, summary: &mut Summary) -> Result<()> {
        let dropped = self.columns("source_links", &[("dropped", "CAST(NULL AS VARCHAR)")]).await?;
        let ends = format!(
            "SELECT k.encounter_id, c.id AS cause, t.id AS effect, \
                 CASE WHEN k.dropped IS NOT NULL THEN k.dropped WHEN k.encounter_id IS NULL THEN 'no_encounter' \
                      WHEN c.id IS NULL THEN 'unknown_cause' WHEN t.id IS NULL THEN 'unknown_effect' END AS dropped \
             FROM (SELECT CAST(encounter_id AS VARCHAR) AS encounter_id, cause, effect, {dropped} FROM source_links) k \
             LEFT JOIN codes c ON c.kind = 'diagnosis' AND c.code = k.cause \
             LEFT JOIN codes t ON t.kind = 'treatment' AND t.code = k.effect"
        );
        let ends = self.engine.sql(&ends).await?;
        self.engine.keep("reading links", "link_ends", ends).await?;
        let counts = "SELECT dropped, count(*) AS n FROM link_ends GROUP BY dropped ORDER BY dropped";
        for (rule, count) in text_counts(&self.engine.query("counting links", counts).await?) {
            summary.links_read += count;
            add(&mut summary.links_dropped, &rule, count);
        }
        let links = "SELECT encounter_id, array_agg(named_struct('cause', cause, 'effect', effect)) AS links, \
                 count(*) AS links_read \
             FROM link_ends WHERE dropped IS NULL GROUP BY encounter_id";
        let links = self.engine.sql(links).await?;
        self.engine.keep("gathering links", "links", links).await?;
        let (lost, dropped) = self.lost("links", "links_read").await?;
        add(&mut summary.links_dropped, "no_encounter", lost);
        add(&mut summary.links_dropped, "encounter_dropped", dropped);
        Ok(())
    }

    /// How many events or links are of no encounter, and how many of one that the source drops.
    async fn lost(&self, table: &str, count: &str) -> Result<(u64, u64)> {
        let outside = |encounters: &str| {
            format!(
                "SELECT CAST(coalesce(sum(l.{count}), 0) AS BIGINT) FROM {table} l \
                 LEFT ANTI JOIN (SELECT encounter_id FROM encounters{encounters}) e ON l.encounter_id = e.encounter_id"
            )
        };
        let lost = single(&self.engine.query("looking for lost rows", &outside("")).await?);
        let alive = outside(" WHERE dropped IS NULL");
        let outside = single(&self.engine.query("looking for lost rows", &alive).await?);
        Ok((lost, outside - lost))
    }

    async fn codes(&self) -> Result<PerKind<Numbering>> {
        let codes = "SELECT kind, CAST(code AS VARCHAR), CAST(description AS VARCHAR), id FROM codes ORDER BY kind, id";
        let mut numberings = PerKind::<Numbering>::from_fn(|_| Numbering::default());
        for batch in self.engine.query("reading codes", codes).await? {
            let [kinds, codes, descriptions] = [0, 1, 2].map(|column| {
                cast(batch.column(column), &DataType::Utf8)
                    .unwrap_or_else(|error| panic!("text as text: {error}"))
            });
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
