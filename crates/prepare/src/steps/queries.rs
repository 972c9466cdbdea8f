//! A source's queries, planned with the values of its options, and the tables that they ask for.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;
use datafusion::error::DataFusionError;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::settings::Request;
use crate::source::{Choice, ChoiceKind, Source, Value, substitute};
use crate::tables::Tables;

/// The queries of a source and the files that they are in: views in their order, then the relations.
pub(super) fn queries(source: &Source) -> Result<Vec<(&str, String, &str)>> {
    let mut queries = vec![];
    for view in &source.description.views {
        queries.push((view.as_str(), source.builtin_text(&format!("{view}.sql"))?));
    }
    queries.extend([("encounters", source.encounters.as_str()), ("events", &source.events)]);
    queries.extend(source.links.as_deref().map(|links| ("links", links)));
    let folder = source.place.trim_end_matches("source.toml");
    Ok(queries.into_iter().map(|(name, sql)| (name, format!("{folder}{name}.sql"), sql)).collect())
}

/// Plans a query of a source.
pub(super) async fn planned(
    engine: &Engine<'_>,
    place: &str,
    sql: &str,
    options: &BTreeMap<String, Value>,
) -> Result<DataFrame> {
    let sql = substitute(place, sql, options)?;
    // No query has run yet, so the engine's words hold no values.
    let refuse =
        |error: DataFusionError| Error::Source { place: place.into(), problem: error.strip_backtrace() };
    engine.foreign_sql(&sql).await.map_err(refuse)
}

/// The tables that the queries of a source read with these options. An option that is not known yet could ask for any.
pub(super) async fn asked_tables(
    engine: &Engine<'_>,
    request: &Request,
    options: &BTreeMap<String, Value>,
) -> Result<BTreeSet<String>> {
    let description = &request.source.description;
    if description.options.iter().any(|(name, choice)| choice.is_open(&options[name])) {
        return Ok(description.tables.keys().cloned().collect());
    }
    let mut asked = BTreeSet::new();
    for (name, place, sql) in queries(&request.source)? {
        let frame = planned(engine, &place, sql, options).await?;
        if description.views.iter().any(|view| view == name) {
            engine.outline(name, frame.schema().inner().clone())?;
        }
        let refuse = |error: DataFusionError| Error::Source { place, problem: error.strip_backtrace() };
        asked.extend(Engine::tables_of(frame).map_err(refuse)?);
    }
    Ok(asked)
}

/// The options, with those that a query finds.
pub(super) async fn found_options(
    engine: &Engine<'_>,
    request: &Request,
    tables: &mut Tables<'_>,
    presence: &BTreeMap<String, Value>,
) -> Result<BTreeMap<String, Value>> {
    let mut options = request.options.clone();
    for (name, choice) in &request.source.description.options {
        if let (true, Some(sql)) = (choice.is_open(&options[name]), &choice.default_sql) {
            let place = &request.source.place;
            let values = super::with(&options, presence);
            let asked = Engine::tables_of(planned(engine, place, sql, &values).await?)?;
            tables.read(&asked, &values).await?;
            let frame = planned(engine, place, sql, &values).await?;
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
    }
}
