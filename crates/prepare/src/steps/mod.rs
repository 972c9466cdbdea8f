//! From a source's three relations to a dataset folder. Each step is a query whose result is small, or lies on disk until the next:
//!
//! ```text
//! encounters   the source's, with labels joined and a reason where one is dropped
//! tally        every code that any event has, with counts
//! codes        the same, numbered within its kind
//! lists        the codes of each encounter, as numbers, labs with their values
//! alive        encounters with their lists and links that no rule has dropped yet
//! accepted     those that no rule drops, without rare codes, values in buckets
//! ```
//!
//! Rows of events never leave the engine: what comes into this program's memory is codes and counts.

/// A source's queries, planned.
mod queries;

/// Buckets for the values of labs.
mod buckets;

/// Rules on encounters and on codes, until all of them hold.
mod settle;

/// The conditional probabilities of the training split.
mod prior;

use std::collections::BTreeMap;
use std::path::Path;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::{Expr, col};
use gct::dataset::Assembly;
use gct::record::{Code, CodeKind, PerKind, Vocabulary};
use gct::split::By;
use serde_json::json;

use crate::engine::{Engine, Listener, Progress, numbers, single, text_counts};
use crate::error::{Error, Result};
use crate::fhir;
use crate::files::Place;
use crate::functions::{known_ids, true_edges};
use crate::settings::{Rare, Request};
use crate::source::{Flatten, Value, named};
use crate::summary::{self, Summary, TableCounts};
use crate::tables::{self, Tables};
use queries::{asked_tables, found_options, planned, queries};

/// Columns of `encounters` that are not labels.
const FIXED: [&str; 8] =
    ["encounter_id", "subject_id", "start", "end", "prediction_time", "part", "dropped", "from_table"];

/// Names that a user's labels cannot have beside those.
const RESERVED: [&str; 9] = [
    "end",
    "dropped",
    "links",
    "given_id",
    "from_table",
    "all_events",
    "known_events",
    "all_links",
    "known_links",
];

/// A code cannot be longer.
const LONGEST_CODE: usize = 1000;

/// Prepares a dataset, or, without a place for it, counts what it would hold.
///
/// # Errors
/// If the input is not what the source expects, or the output cannot be written; then nothing is.
pub async fn prepare(request: &Request, out: Option<&Path>, listener: Listener<'_>) -> Result<Summary> {
    if let Some(prior) = &request.prior {
        if out.is_some_and(|out| prior.starts_with(out)) {
            let (name, value) = ("prior".into(), prior.display().to_string());
            return Err(Error::Choice { name, value, allowed: "a place outside of the dataset".into() });
        }
        gct::dataset::check_file(prior, request.overwrite)?;
    }
    let assembly = out.map(|path| Assembly::create(path, request.overwrite)).transpose()?;
    let beside = assembly.as_ref().map_or_else(std::env::temp_dir, |assembly| assembly.parent().to_owned());
    let engine = Engine::new(request.limits.clone(), &beside, listener)?;
    let place = Place::list(&engine.context, &request.input).await?;
    let (source, is_limited) = (request.source.name.clone(), request.settings.limit.is_some());
    let mut summary = Summary { source, is_limited, ..Summary::default() };
    tables::outline(&engine, &request.source)?;
    let place = match request.source.description.flatten {
        Some(Flatten::Fhir) => {
            // Which tables there will be is not known yet.
            let all = request.source.description.tables.keys();
            let all = all.map(|name| (format!("has_{name}"), Value::Flag(true))).collect();
            let asked = asked_tables(&engine, request, &with(&request.options, &all)).await?;
            let (flat, found) = fhir::flatten(&engine, &request.source, &place, &asked).await?;
            (summary.resources, summary.files_empty) = (found.resources, found.files_empty);
            summary.unreadable = found.unreadable;
            flat
        }
        None => place,
    };
    let mut tables = Tables::new(&engine, &request.source, place, &request.differences).await?;
    let presence = tables.presence().await?;
    let options = found_options(&engine, request, &mut tables, &presence).await?;
    let values = with(&options, &presence);
    tables.read(&asked_tables(&engine, request, &values).await?, &values).await?;
    let found = tables.finish().await?;
    summary.tables = found.rows.into_iter().map(|(name, rows)| (name, TableCounts::new(rows))).collect();
    summary.count_unreadable(found.unreadable);
    if request.settings.strict
        && let Some(found) = summary.unreadable.first()
    {
        return Err(Error::Strict { problem: found.first.clone() });
    }
    summary.options = options.iter().map(|(name, value)| (name.clone(), value.json())).collect();

    let mut steps = Steps {
        engine: &engine,
        request,
        options,
        values,
        labels: vec![],
        has_links: false,
        has_values: false,
    };
    steps.relations().await?;
    steps.encounters(&mut summary).await?;
    steps.events().await?;
    steps.tally(&mut summary).await?;
    let codes = steps.lists(&mut summary).await?;
    let settled = steps.settle(codes, &mut summary).await?;
    let bounds = settled.bounds_by_code();
    let vocabulary = steps.accept(settled, &mut summary).await?;
    steps.count(&mut summary).await?;
    summary.temporary = engine.temporary();
    if request.settings.strict {
        if let Some(table) = summary.unbalanced().first() {
            let problem = format!("the source loses rows of `{table}`, or counts some twice");
            return Err(Error::Strict { problem });
        }
        let encounters =
            ["absurd_time", "two_types", "no_subject_id", "no_encounter_id", "ends_before_start"];
        if let Some((rule, count)) =
            summary.dropped.iter().find(|(rule, _)| encounters.contains(&rule.as_str()))
        {
            let count = summary::shown(*count, request.settings.min_cell);
            return Err(Error::Strict { problem: format!("{count} encounters dropped: {rule}") });
        }
        let refused = ["no_code", "code_too_long", "unknown_kind", "no_encounter", "absurd_time"];
        if let Some((rule, count)) =
            summary.events_dropped.iter().find(|(rule, _)| refused.contains(&rule.as_str()))
        {
            let count = summary::shown(*count, request.settings.min_cell);
            return Err(Error::Strict { problem: format!("{count} events dropped: {rule}") });
        }
    }
    if summary.encounters_kept == 0 {
        let shown = |count: u64| summary::shown(count, request.settings.min_cell);
        return Err(Error::NothingKept {
            read: summary
                .read(request.settings.min_cell)
                .map_or_else(|hidden| hidden, |count| count.to_string()),
            dropped: summary.dropped.iter().map(|(rule, count)| (rule.clone(), shown(*count))).collect(),
            unreadable: summary.unreadable.iter().map(|found| found.first.clone()).collect(),
        });
    }
    let Some(assembly) = assembly else { return Ok(summary) };
    let vocabulary = steps.write(&assembly, vocabulary).await?;
    let prior = match &request.prior {
        Some(out) => Some((steps.prior(&assembly).await?, out)),
        None => None,
    };
    let source = gct::dataset::Source {
        kind: request.source.name.clone(),
        settings: steps.settings(),
        findings: json!({ "counts": summary.json(request.settings.min_cell), "lab_bounds": bounds }),
    };
    let labels = summary.labels.iter().map(|label| label.0.clone()).collect();
    let total = summary.encounters_kept;
    let finished = assembly.finish(source, vocabulary, labels, total, &|rows| {
        let going_on = listener(Progress { step: "checking every encounter", rows, total: Some(total) });
        if going_on { Ok(()) } else { Err(gct::Error::Interrupted) }
    });
    match finished {
        Err(gct::Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => return Err(error.into()),
        Ok(manifest) => debug_assert_eq!(manifest.encounters, summary.encounters_kept),
    }
    if let Some((written, out)) = prior {
        gct::dataset::copy_file(&written, out, request.overwrite)?;
    }
    Ok(summary)
}

/// What gathering the codes of encounters holds in memory for an event.
const EVENT_BYTES: u64 = 48;

/// The condition that a row is in one of several shares, after a word that begins or continues one.
fn in_share(word: &str, id: &str, share: u64, shares: u64) -> String {
    if shares == 1 { String::new() } else { format!("{word} share({id}, {shares}) = {share}") }
}

/// Adds a count under the name of a rule, unless there is nothing to count or no rule.
fn add(counts: &mut Vec<(String, u64)>, rule: &str, count: u64) {
    match counts.iter_mut().find(|(known, _)| known == rule) {
        _ if rule.is_empty() || count == 0 => {}
        Some((_, known)) => *known += count,
        None => counts.push((rule.to_owned(), count)),
    }
}

/// The codes of one kind, by the numbers that they have in lists, and the numbers that they will have.
#[derive(Debug, Clone, Default)]
struct Numbering {
    codes: Vec<Code>,
    new: Vec<Option<u32>>,
}

/// The options of a source, with what else its queries can speak of.
fn with(options: &BTreeMap<String, Value>, more: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    more.iter().chain(options).map(|(name, value)| (name.clone(), value.clone())).collect()
}

struct Steps<'a> {
    engine: &'a Engine<'a>,
    request: &'a Request,
    options: BTreeMap<String, Value>,
    /// The options, and which tables there are.
    values: BTreeMap<String, Value>,
    labels: Vec<String>,
    has_links: bool,
    /// Whether events have values that go into buckets.
    has_values: bool,
}

impl Steps<'_> {
    /// The source's SQL, under the names of the three relations.
    async fn relations(&mut self) -> Result<()> {
        let description = &self.request.source.description;
        for (name, place, sql) in queries(&self.request.source)? {
            let frame = planned(self.engine, &place, sql, &self.values).await?;
            if description.views.iter().any(|view| view == name) {
                self.engine.keep(&format!("making {}", name.replace('_', " ")), name, frame).await?;
                continue;
            }
            let refuse = |problem: String| Error::Source { place: place.clone(), problem };
            let columns: &[&str] = match name {
                "encounters" => &["encounter_id", "subject_id"],
                "events" => &["encounter_id", "kind", "code"],
                _ => &["encounter_id", "cause", "effect"],
            };
            let found: Vec<String> =
                frame.schema().fields().iter().map(|field| field.name().clone()).collect();
            if let Some(missing) = columns.iter().find(|column| !found.iter().any(|found| found == *column)) {
                return Err(refuse(format!(
                    "its result has no column `{missing}`; it has: {}",
                    found.join(", ")
                )));
            }
            if name == "encounters" {
                for field in
                    frame.schema().fields().iter().filter(|field| !FIXED.contains(&field.name().as_str()))
                {
                    if field.data_type() != &DataType::Boolean {
                        let (name, found) = (field.name(), field.data_type());
                        return Err(refuse(format!(
                            "column `{name}` is a label and must be boolean, not {found}"
                        )));
                    }
                    self.labels.push(field.name().clone());
                }
            }
            self.has_links |= name == "links";
            self.engine.view(&format!("source_{name}"), frame)?;
        }
        Ok(())
    }

    /// Columns of a relation, with nulls of these types for those that it does not have.
    async fn columns(&self, relation: &str, wanted: &[(&str, &str)]) -> Result<String> {
        let frame = self.engine.context.table(relation).await?;
        let columns = wanted.iter().map(|(name, absent)| {
            let has = frame.schema().fields().iter().any(|field| field.name() == name);
            if has { named(name) } else { format!("{absent} AS {}", named(name)) }
        });
        Ok(columns.collect::<Vec<_>>().join(", "))
    }

    /// The source's encounters, with the user's labels, kept on disk.
    async fn encounters(&mut self, summary: &mut Summary) -> Result<()> {
        let moment = "arrow_cast(NULL, 'Timestamp(Microsecond, None)')";
        let text = "CAST(NULL AS VARCHAR)";
        let optional = [
            ("start", moment),
            ("prediction_time", moment),
            ("part", text),
            ("dropped", text),
            ("from_table", text),
        ];
        let optional = self.columns("source_encounters", &optional).await?;
        let own: String = self.labels.iter().map(|label| format!(", {}", named(label))).collect();
        let (mut labels, mut join) = (own.clone(), "");
        if let Some(file) = &self.request.settings.labels {
            let given = tables::register_labels(
                self.engine,
                file,
                &self.request.differences,
                &self.labels,
                &RESERVED,
            )
            .await?;
            labels.extend(given.names.iter().map(|label| format!(", {}", named(label))));
            self.labels.extend(given.names);
            summary.label_columns_ignored = given.ignored;
            join = " LEFT JOIN given_labels g ON CAST(s.encounter_id AS VARCHAR) = g.given_id";
        }
        let limit = match self.request.settings.limit {
            Some(limit) => format!(" ORDER BY encounter_id LIMIT {limit}"),
            None => String::new(),
        };
        let sql = format!(
            "SELECT CAST(s.encounter_id AS VARCHAR) AS encounter_id, CAST(s.subject_id AS VARCHAR) AS subject_id, s.start, s.prediction_time, s.part, s.from_table, \
                 CASE WHEN s.encounter_id IS NULL THEN 'no_encounter_id' WHEN s.dropped IS NOT NULL THEN s.dropped \
                      WHEN s.subject_id IS NULL THEN 'no_subject_id' END AS dropped{labels} \
             FROM (SELECT encounter_id, subject_id, {optional}{own} FROM source_encounters{limit}) s{join}"
        );
        let frame = self.engine.sql(&sql).await?;
        self.engine.keep("reading encounters", "encounters", frame).await?;
        let twice = "SELECT count(*) FROM (SELECT 1 FROM encounters WHERE dropped IS NULL GROUP BY encounter_id HAVING count(*) > 1)";
        let twice = single(&self.engine.query("checking encounters", twice).await?);
        if twice > 0 {
            return Err(Error::Damaged {
                file: self.request.input.clone(),
                problem: format!("{twice} encounters have the identifier of another; each may occur once"),
            });
        }
        if let Some(file) = &self.request.settings.labels {
            self.match_labels(file, summary).await?;
        }
        let counts = "SELECT dropped, count(*) AS n FROM encounters GROUP BY dropped ORDER BY dropped";
        for (rule, count) in text_counts(&self.engine.query("counting encounters", counts).await?) {
            summary.encounters_read += count;
            // One of them would get the codes of the other.
            if rule == "two_subjects" {
                let count = summary::shown(count, self.request.settings.min_cell);
                return Err(Error::TwoSubjects { input: self.request.input.clone(), count });
            }
            add(&mut summary.dropped, &rule, count);
        }
        let tables = "SELECT from_table, count(*) AS n FROM encounters WHERE from_table IS NOT NULL GROUP BY from_table";
        for (table, count) in text_counts(&self.engine.query("counting encounters", tables).await?) {
            summary.tables.entry(table).or_default().encounters = Some(count);
        }
        Ok(())
    }

    /// Counts the user's labels that are of no encounter.
    async fn match_labels(&self, file: &str, summary: &mut Summary) -> Result<()> {
        let settings = &self.request.settings;
        // What a limit leaves out is no mistake.
        let encounters = if settings.limit.is_some() { "source_encounters" } else { "encounters" };
        let all = "SELECT count(*) FROM given_labels";
        let all = single(&self.engine.query("matching labels", all).await?);
        let unmatched = format!(
            "SELECT count(*) FROM given_labels g LEFT ANTI JOIN {encounters} e ON g.given_id = CAST(e.encounter_id AS VARCHAR)"
        );
        summary.labels_unmatched = single(&self.engine.query("matching labels", &unmatched).await?);
        let shown = |count: u64| summary::shown(count, settings.min_cell);
        let (unmatched, labels) = (shown(summary.labels_unmatched), shown(all));
        if summary.labels_unmatched == all {
            let (file, input) = (file.to_owned(), self.request.input.clone());
            return Err(Error::OtherLabels { file, labels, input });
        }
        if settings.strict && summary.labels_unmatched > 0 {
            let problem = format!("{file}: {unmatched} of {labels} labels are of no encounter");
            return Err(Error::Strict { problem });
        }
        Ok(())
    }

    /// The training encounters, as a condition on `encounters e`.
    fn is_training(&self) -> String {
        let id = match self.request.settings.split_by {
            By::Encounter => "e.encounter_id",
            _ => "e.subject_id",
        };
        let seed = self.request.settings.split_seed;
        // The first 8 of 10 parts of all hashes, as `gct::split` has them.
        // The source's own split counts as long as nothing else is asked for.
        let recorded =
            if self.request.settings.split_by == By::Recorded { "e.part = 'train'" } else { "NULL" };
        format!(
            "coalesce({recorded}, encode(sha256(concat('gct-split-1', chr(0), '{seed}', chr(0), {id})), 'hex') < 'cccccccccccccccc')"
        )
    }

    /// Events with a reason where one is dropped, as a view.
    async fn events(&mut self) -> Result<()> {
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
    async fn tally(&mut self, summary: &mut Summary) -> Result<()> {
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
    async fn lists(&self, summary: &mut Summary) -> Result<PerKind<Numbering>> {
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

    /// Subjects, labels and edges of what is kept. A label that is known nowhere is none.
    async fn count(&mut self, summary: &mut Summary) -> Result<()> {
        let subjects = "SELECT count(*), count(*) FILTER (WHERE n > 1) FROM \
            (SELECT subject_id, count(*) AS n FROM accepted WHERE dropped IS NULL GROUP BY subject_id)";
        let subjects = numbers(&self.engine.query("counting subjects", subjects).await?);
        (summary.subjects, summary.subjects_with_several_encounters) = (subjects[0], subjects[1]);
        let mut counts = vec![
            "coalesce(sum(cardinality(links)), 0)".to_owned(),
            "count(*) FILTER (WHERE cardinality(links) > 0)".into(),
            "coalesce(sum(all_events), 0)".into(),
            "coalesce(sum(known_events), 0)".into(),
            "coalesce(sum(all_links), 0)".into(),
            "coalesce(sum(known_links), 0)".into(),
        ];
        for label in &self.labels {
            let label = named(label);
            counts.push(format!("count(*) FILTER (WHERE {label})"));
            counts.push(format!("count({label})"));
        }
        let counts: Vec<String> = counts
            .iter()
            .enumerate()
            .map(|(place, count)| format!("CAST({count} AS BIGINT) AS c{place}"))
            .collect();
        let counts = format!("SELECT {} FROM accepted WHERE dropped IS NULL", counts.join(", "));
        let counts = numbers(&self.engine.query("counting labels", &counts).await?);
        (summary.edges, summary.encounters_with_edges) = (counts[0], counts[1]);
        (summary.events_kept, summary.links_kept) = (counts[3], counts[5]);
        add(&mut summary.events_dropped, "rare_code", counts[2] - counts[3]);
        add(&mut summary.links_dropped, "end_left_out", counts[4] - counts[5]);
        summary.labels = self
            .labels
            .iter()
            .zip(counts[6..].chunks(2))
            .map(|(label, counts)| (label.clone(), counts[0], counts[1]))
            .filter(|(_, _, known)| *known > 0)
            .collect();
        self.labels = summary.labels.iter().map(|label| label.0.clone()).collect();
        Ok(())
    }

    /// Writes the encounters, and says which codes they have.
    async fn write(&self, assembly: &Assembly, numberings: PerKind<Numbering>) -> Result<Vocabulary> {
        let mut columns = vec![
            datafusion::logical_expr::cast(col("encounter_id"), DataType::Utf8).alias("encounter_id"),
            col("subject_id"),
            col("start"),
        ];
        for kind in CodeKind::ALL {
            columns.push(known_ids(col(kind.name()), &numberings[kind].new).alias(kind.name()));
        }
        let dense = true_edges(
            [
                col("links"),
                known_ids(col("diagnosis"), &numberings.diagnosis.new),
                known_ids(col("treatment"), &numberings.treatment.new),
            ],
            [&numberings.diagnosis.new, &numberings.treatment.new],
        );
        columns.push(dense.alias("diagnosis_treatment"));
        columns.push(col("treatment_lab"));
        columns.extend(
            self.labels.iter().map(|label| Expr::Column(datafusion::common::Column::from_name(label))),
        );
        let mut optional = vec![];
        for (name, present) in
            [("part", "part IS NOT NULL"), ("prediction_time", "prediction_time IS NOT NULL")]
        {
            let any = format!("SELECT count(*) FROM (SELECT 1 FROM accepted WHERE {present} LIMIT 1)");
            if single(&self.engine.query("looking at encounters", &any).await?) > 0 {
                optional.push(col(name));
            }
        }
        columns.extend(optional);
        let no_lab_edges = "CASE WHEN cardinality(links) > 0 THEN \
            arrow_cast(make_array(), 'List(Struct(\"treatment\": UInt32, \"lab\": UInt32))') END";
        let kept = format!(
            "SELECT * EXCEPT(links, all_events, known_events, all_links, known_links, from_table), CASE WHEN cardinality(links) > 0 THEN links END AS links, {no_lab_edges} AS treatment_lab \
             FROM accepted WHERE dropped IS NULL"
        );
        let frame = self
            .engine
            .sql(&kept)
            .await?
            .select(columns)?
            .sort(vec![col("encounter_id").sort(true, false)])?;
        self.engine.write("writing encounters", frame, &assembly.encounters().display().to_string()).await?;
        Ok(PerKind::from_fn(|kind| {
            let numbering = &numberings[kind];
            let kept = numbering.codes.iter().zip(&numbering.new).filter(|(_, new)| new.is_some());
            kept.map(|(code, _)| code.clone()).collect()
        }))
    }

    /// What made the dataset, for `dataset.json`.
    fn settings(&self) -> serde_json::Value {
        let settings = &self.request.settings;
        json!({
            "input": self.request.input,
            "rules": self.request.rules,
            "options": self.options.iter().map(|(name, value)| (name.clone(), value.json())).collect::<serde_json::Map<_, _>>(),
            "min_codes": settings.min_codes,
            "max_codes": settings.max_codes,
            "min_count": settings.min_count,
            "rare": match settings.rare { Rare::Drop => "drop", Rare::Group => "group" },
            "lab_bins": settings.lab_bins,
            "labels": settings.labels,
            "limit": settings.limit,
            "split_by": settings.split_by,
            "split_seed": settings.split_seed,
        })
    }
}
