//! The input of a preparation: the tables that the source's queries read, and the values of its options.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{col, lit};
use gct::record::CodeKind;

use crate::context;
use crate::engine::{Engine, texts};
use crate::error::{Error, Result};
use crate::fhir;
use crate::files::InputFiles;
use crate::rollup::{Chosen, Rollup};
use crate::settings::Request;
use crate::source::{self, Choice, ChoiceKind, Flatten, Source, Value};
use crate::sql::substitute;
use crate::summary::{Summary, TableCounts};
use crate::tables::{self, Differences, Tables};

/// A query of a source.
pub(super) struct Query<'a> {
    pub(super) name: &'a str,
    /// The file that it is in, for messages.
    pub(super) file: String,
    sql: &'a str,
    /// Whether other queries read its result, and nothing else does.
    pub(super) is_view: bool,
    /// Names of context that are not taken: rows that have one are not even read.
    left_out: Vec<String>,
}

impl Query<'_> {
    /// Plans it with these values in place of its `$names`.
    pub(super) async fn plan(
        &self,
        engine: &Engine<'_>,
        values: &BTreeMap<String, Value>,
    ) -> Result<DataFrame> {
        let frame = plan(engine, &self.file, self.sql, values).await?;
        let has_names = frame.schema().fields().iter().any(|field| field.name() == "name");
        if self.left_out.is_empty() || !has_names {
            return Ok(frame);
        }
        let left_out = self.left_out.iter().map(|name| lit(name.as_str())).collect();
        Ok(frame.filter(col("name").is_null().or(col("name").in_list(left_out, true)))?)
    }
}

/// The queries of a source: views in their order, then the relations.
pub(super) fn queries(request: &Request) -> Result<Vec<Query<'_>>> {
    let source = &request.source;
    let folder = source.path.trim_end_matches("source.toml");
    let query = |name, sql, is_view| {
        let (file, left_out) = (format!("{folder}{name}.sql"), vec![]);
        Query { name, file, sql, is_view, left_out }
    };
    let mut queries = vec![];
    for view in &source.description.views {
        queries.push(query(view.as_str(), source.builtin_text(&format!("{view}.sql"))?, true));
    }
    queries.push(query("encounters", source.encounters.as_str(), false));
    queries.push(query("events", source.events.as_str(), false));
    queries.extend(source.links.as_deref().map(|links| query("links", links, false)));
    queries.extend(source.labels().map(|labels| query("labels", labels, false)));
    let is_taken = |name: &String| request.settings.context.contains(name);
    let (taken, left_out): (Vec<String>, _) = source.description.context.keys().cloned().partition(is_taken);
    if let (Some(sql), true) = (&source.context, !taken.is_empty() || context::is_open(source)) {
        queries.push(Query { left_out, ..query("context", sql, false) });
    }
    Ok(queries)
}

/// The query of a rollup by what the source's tables say of codes, and the values that it can speak of.
pub(super) fn groups<'a>(
    source: &'a Source,
    kind: CodeKind,
    chosen: &Chosen,
    values: &BTreeMap<String, Value>,
) -> Result<(Query<'a>, BTreeMap<String, Value>)> {
    let file = source.description.rollups[&chosen.name].file(&chosen.name);
    let sql = source.builtin_text(&file)?;
    let file = format!("{}{file}", source.path.trim_end_matches("source.toml"));
    let word = chosen.word.clone().map_or(Value::Null, Value::Text);
    let own = [("kind".to_owned(), Value::Text(kind.name().into())), ("word".to_owned(), word)];
    Ok((Query { name: "groups", file, sql, is_view: false, left_out: vec![] }, merged(values, &own.into())))
}

async fn plan(
    engine: &Engine<'_>,
    file: &str,
    sql: &str,
    values: &BTreeMap<String, Value>,
) -> Result<DataFrame> {
    let refuse = |problem: String| Error::Source { path: file.into(), problem };
    let sql = substitute(sql, |name| values.get(name).map(Value::sql))
        .map_err(|name| refuse(format!("`${name}` is not one of the options")))?;
    // No query has run yet, so the engine's words hold no values.
    engine.foreign_sql(&sql).await.map_err(|error| refuse(error.strip_backtrace()))
}

/// The view that says until when subjects are observed, where a source has one.
pub(super) const OBSERVED: &str = "observed";

/// The tables and views that the relations of a source are made of.
#[derive(Default)]
pub(super) struct Needed(BTreeSet<String>);

impl Needed {
    /// Whether a query has to be computed: all but views that no other query reads.
    pub(super) fn is(&self, query: &Query<'_>) -> bool {
        !query.is_view || self.0.contains(query.name)
    }
}

/// What the queries of a source can speak of, once its tables are read.
pub(super) struct Input {
    /// The values of the source's options.
    pub(super) options: BTreeMap<String, Value>,
    /// The same, and which tables there are.
    pub(super) values: BTreeMap<String, Value>,
    /// The tables and views that they read.
    pub(super) needed: Needed,
}

/// Reads the tables that the source's queries need.
pub(super) async fn read(
    engine: &Engine<'_>,
    request: &Request,
    rollups: &[Rollup],
    summary: &mut Summary,
) -> Result<Input> {
    let files = InputFiles::list(&engine.context, &request.input).await?;
    tables::outline(engine, &request.source)?;
    let files = match request.source.description.flatten {
        Some(Flatten::Fhir) => flatten(engine, request, rollups, files, summary).await?,
        None => files,
    };
    let differences = located(request)?;
    let mut tables = Tables::new(engine, &request.source, files, &differences).await?;
    let mut presence = tables.presence().await?;
    presence.insert("within".into(), source::range("within", &request.settings.within)?);
    let options = found_options(engine, request, &mut tables, &presence).await?;
    let values = merged(&options, &presence);
    for (_, chosen) in rollups.iter().filter_map(Rollup::chosen) {
        tables.require(&request.source.description.rollups[&chosen.name].tables).await?;
    }
    let needed = needed(engine, request, rollups, &values).await?;
    tables.read(&needed.0, &values).await?;
    check_parts(engine, request, &values).await?;
    let found = tables.finish().await?;
    summary.tables = found.rows.into_iter().map(|(name, rows)| (name, TableCounts::new(rows))).collect();
    summary.count_unreadable(found.unreadable);
    summary.options = options.iter().map(|(name, value)| (name.clone(), value.json())).collect();
    match summary.unreadable.first() {
        Some(found) if request.settings.strict => Err(Error::Strict { problem: found.first.clone() }),
        _ => Ok(Input { options, values, needed }),
    }
}

/// How the user's tables differ from what is expected, with those that options name.
fn located(request: &Request) -> Result<Differences> {
    let mut differences = request.differences.clone();
    for (name, value) in &request.options {
        let Value::Table { path: Some(path), .. } = value else { continue };
        if let Some(other) = differences.tables.insert(name.clone(), path.clone()) {
            let (value, allowed) =
                (format!("{name}={other}"), format!("one path for it: --{name} has another"));
            return Err(Error::Choice { name: "table".into(), value, allowed });
        }
    }
    Ok(differences)
}

/// Refuses a part of a table that the table does not have.
async fn check_parts(engine: &Engine<'_>, request: &Request, values: &BTreeMap<String, Value>) -> Result<()> {
    for (name, choice) in &request.source.description.options {
        let Some(sql) = &choice.parts_sql else { continue };
        let Value::Table { part: Some(part), .. } = &request.options[name] else { continue };
        let frame = plan(engine, &request.source.path, sql, values).await?;
        let mut known = texts(&engine.run("looking at the tables", frame).await?);
        if !known.contains(part) {
            known.sort_by_key(|part| (part.len(), part.clone()));
            let count = known.len();
            known.truncate(40);
            let more = if count > 40 { format!(" and {} more", count - 40) } else { String::new() };
            let allowed = format!("one of {}{more}", known.join(", "));
            return Err(Error::Choice { name: name.clone(), value: part.clone(), allowed });
        }
    }
    Ok(())
}

/// Makes tables of records that are none; where these are.
async fn flatten(
    engine: &Engine<'_>,
    request: &Request,
    rollups: &[Rollup],
    files: InputFiles,
    summary: &mut Summary,
) -> Result<InputFiles> {
    // Which tables there will be is not known yet.
    let all = request.source.description.tables.keys();
    let mut all: BTreeMap<_, _> = all.map(|name| (format!("has_{name}"), Value::Flag(true))).collect();
    all.insert("within".into(), source::range("within", &request.settings.within)?);
    let needed = needed(engine, request, rollups, &merged(&request.options, &all)).await?;
    let (flat, found) = fhir::flatten(engine, &request.source, &files, &needed.0).await?;
    (summary.resources, summary.files_empty) = (found.resources, found.files_empty);
    summary.unreadable = found.unreadable;
    Ok(flat)
}

/// The values of options, with others that queries can speak of.
fn merged(options: &BTreeMap<String, Value>, more: &BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    more.iter().chain(options).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The tables and views that the relations of a source are made of with these values. While an option is not
/// known, all of them.
async fn needed(
    engine: &Engine<'_>,
    request: &Request,
    rollups: &[Rollup],
    values: &BTreeMap<String, Value>,
) -> Result<Needed> {
    let description = &request.source.description;
    if description.options.iter().any(|(name, choice)| choice.is_open(&values[name])) {
        return Ok(Needed(description.tables.keys().chain(&description.views).cloned().collect()));
    }
    let mut read = vec![];
    for query in queries(request)? {
        let frame = query.plan(engine, values).await?;
        let name = if query.is_view { query.name.to_owned() } else { format!("source_{}", query.name) };
        engine.outline(&name, frame.schema().inner().clone())?;
        let tables = tables_of(&query.file, frame)?;
        read.push((query, tables));
    }
    for (kind, chosen) in rollups.iter().filter_map(Rollup::chosen) {
        let (query, values) = groups(&request.source, kind, chosen, values)?;
        let frame = query.plan(engine, &values).await?;
        let tables = tables_of(&query.file, frame)?;
        read.push((query, tables));
    }
    // What reads a view comes after it; onsets come last.
    let mut needed = Needed::default();
    if !request.settings.onset.is_empty() {
        needed.0.insert(OBSERVED.into());
    }
    for (query, tables) in read.into_iter().rev() {
        if needed.is(&query) {
            needed.0.extend(tables);
        }
    }
    Ok(needed)
}

/// The tables that the query in a file reads.
fn tables_of(file: &str, frame: DataFrame) -> Result<BTreeSet<String>> {
    let refuse =
        |error: DataFusionError| Error::Source { path: file.into(), problem: error.strip_backtrace() };
    Engine::tables_of(frame).map_err(refuse)
}

/// The options, with those that a query finds.
async fn found_options(
    engine: &Engine<'_>,
    request: &Request,
    tables: &mut Tables<'_>,
    presence: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>> {
    let mut options = request.options.clone();
    for (name, choice) in &request.source.description.options {
        if let (true, Some(sql)) = (choice.is_open(&options[name]), &choice.default_sql) {
            let file = &request.source.path;
            let values = merged(&options, presence);
            let needed = Engine::tables_of(plan(engine, file, sql, &values).await?)?;
            tables.read(&needed, &values).await?;
            let frame = plan(engine, file, sql, &values).await?;
            let found = engine.run("looking at the tables", frame).await?;
            options.insert(name.clone(), found_value(&found, choice));
        }
    }
    Ok(options)
}

fn found_value(found: &[RecordBatch], choice: &Choice) -> Value {
    let Some(batch) = found.iter().find(|batch| batch.num_rows() > 0) else { return Value::Null };
    let column =
        cast(batch.column(0), &DataType::Utf8).unwrap_or_else(|error| panic!("a value as text: {error}"));
    let column = column.as_string::<i32>();
    if column.is_null(0) {
        return Value::Null;
    }
    let text = column.value(0);
    match choice.kind {
        ChoiceKind::Flag => Value::Flag(text == "true"),
        ChoiceKind::Integer => text.parse().map_or(Value::Null, Value::Integer),
        ChoiceKind::Number => text.parse().map_or(Value::Null, Value::Number),
        ChoiceKind::Text => Value::Text(text.into()),
        ChoiceKind::Days | ChoiceKind::Range | ChoiceKind::Table => {
            Value::parse("", choice, text).unwrap_or(Value::Null)
        }
    }
}
