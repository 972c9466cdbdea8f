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

/// The codes and links of each encounter, gathered from the source's events.
mod gather;

/// Rules on encounters and on codes, until all of them hold.
mod settle;

/// The conditional probabilities of the training split.
mod prior;

use std::collections::BTreeMap;
use std::path::Path;

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
        gct::files::check_file(prior, request.overwrite)?;
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
        gct::files::copy_file(&written, out, request.overwrite)?;
    }
    Ok(summary)
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
