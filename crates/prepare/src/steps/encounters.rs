//! The source's relations, and its encounters with the user's labels.

use datafusion::arrow::datatypes::DataType;
use datafusion::dataframe::DataFrame;

use super::input::{Query, queries};
use super::{Steps, add};
use crate::engine::{Engine, single, text_counts};
use crate::error::{Error, Result};
use crate::sql::{filled, named, quoted};
use crate::summary::{self, Summary};
use crate::tables;

/// Columns of `encounters` that are not labels.
const FIXED: [&str; 8] =
    ["encounter_id", "subject_id", "start", "end", "prediction_time", "part", "dropped", "from_table"];

/// Names that a user's labels cannot have beside those.
const RESERVED: [&str; 14] = [
    "end",
    "dropped",
    "links",
    "given_id",
    "own_id",
    "label_rule",
    "label_time",
    "from_table",
    "all_events",
    "known_events",
    "all_context",
    "known_context",
    "all_links",
    "known_links",
];

/// Whether a label cannot have a name, whatever the source, since a column of encounters has it.
pub(crate) fn is_column(name: &str) -> bool {
    FIXED.contains(&name) || RESERVED.contains(&name) || gct::dataset::is_fixed_column(name)
}

/// A column that the source may leave out: its name, and what stands in for it.
pub(super) type Optional = (&'static str, &'static str);

/// No text.
pub(super) const NO_TEXT: &str = "CAST(NULL AS VARCHAR)";

/// No time.
pub(super) const NO_TIME: &str = "arrow_cast(NULL, 'Timestamp(Microsecond, None)')";

/// Columns of `source_encounters` that the source may leave out.
const OPTIONAL: [Optional; 6] = [
    ("start", NO_TIME),
    ("end", NO_TIME),
    ("prediction_time", NO_TIME),
    ("part", NO_TEXT),
    ("dropped", NO_TEXT),
    ("from_table", NO_TEXT),
];

impl Steps<'_> {
    /// The results of the source's queries: views are computed, the relations get names.
    pub(super) async fn relations(&mut self) -> Result<()> {
        let mut labels = None;
        for query in queries(self.request)? {
            if !self.needed.is(&query) {
                continue;
            }
            let mut frame = query.plan(self.engine, &self.values).await?;
            if query.is_view {
                let step = format!("making {}", query.name.replace('_', " "));
                self.engine.keep(&step, query.name, frame).await?;
                continue;
            }
            check_columns(&query, &frame)?;
            if query.name == "labels" {
                // Without any table, its options ask for none.
                labels = (!Engine::tables_of(frame.clone())?.is_empty()).then_some(frame);
                continue;
            }
            if query.name == "encounters" {
                frame = self.with_names(frame)?;
                self.labels = labels_of(&query, &frame)?;
            }
            self.has_links |= query.name == "links";
            self.has_context |= query.name == "context";
            self.engine.view(&format!("source_{}", query.name), frame)?;
        }
        self.keep_labels(labels).await
    }

    /// Encounters with the names of labels that have the value of an option in them.
    fn with_names(&self, mut frame: DataFrame) -> Result<DataFrame> {
        for (option, choice) in &self.request.source.description.options {
            let Some(label) = &choice.names else { continue };
            let value = self.options[option].shown();
            if choice.default.as_ref().is_none_or(|default| default.to_string() != value) {
                frame = frame.with_column_renamed(label, &format!("{label}_{value}"))?;
            }
        }
        Ok(frame)
    }

    /// Keeps the labels of the source whose names the data have, and those of onset.
    async fn keep_labels(&mut self, of_source: Option<DataFrame>) -> Result<()> {
        let onsets = self.onset_labels().await?;
        let mut rows = vec![];
        for (relation, frame) in [("named_labels", of_source), ("onset_labels", onsets)] {
            let Some(frame) = frame else { continue };
            self.engine.view(relation, frame)?;
            let columns = self.columns(relation, &[("dropped", NO_TEXT)]).await?;
            let parts = [("relation", relation), ("columns", &columns)];
            rows.push(filled(include_str!("../../steps/labels.sql"), &parts));
        }
        self.has_own_labels = !rows.is_empty();
        if self.has_own_labels {
            let labels = self.engine.sql(&rows.join(" UNION ALL ")).await?;
            self.engine.keep("making labels", "source_labels", labels).await?;
        }
        Ok(())
    }

    /// A column per label whose name the data or the settings have, as the table `own_labels`; their names.
    async fn own_labels(&self) -> Result<Vec<String>> {
        if !self.has_own_labels {
            return Ok(vec![]);
        }
        let names = include_str!("../../steps/label_names.sql");
        let names = text_counts(&self.engine.query("reading labels", names).await?);
        let names: Vec<String> = names.into_iter().map(|(name, _)| name).collect();
        let is_taken = |name: &&String| name.is_empty() || is_column(name) || self.labels.contains(name);
        if let Some(name) = names.iter().find(is_taken) {
            return Err(Error::Source {
                path: self.request.source.path.replace("source.toml", "labels.sql"),
                problem: format!("a label cannot be called `{name}`"),
            });
        }
        let column = |name: &String| {
            format!(", bool_or(value) FILTER (WHERE label = {}) AS {}", quoted(name), named(name))
        };
        let columns: String = names.iter().map(column).collect();
        let sql = filled(include_str!("../../steps/own_labels.sql"), &[("labels", &columns)]);
        let frame = self.engine.sql(&sql).await?;
        self.engine.keep("making labels", "own_labels", frame).await?;
        Ok(names)
    }

    /// Columns of a relation, with what stands in for those that it does not have.
    pub(super) async fn columns(&self, relation: &str, wanted: &[Optional]) -> Result<String> {
        let frame = self.engine.context.table(relation).await?;
        let columns = wanted.iter().map(|(name, absent)| {
            let has = frame.schema().fields().iter().any(|field| field.name() == name);
            if has { named(name) } else { format!("{absent} AS {}", named(name)) }
        });
        Ok(columns.collect::<Vec<_>>().join(", "))
    }

    /// The source's encounters, with the user's labels, kept on disk.
    pub(super) async fn encounters(&mut self, summary: &mut Summary) -> Result<()> {
        let own = after_commas(&self.labels);
        let columns = self.columns("source_encounters", &OPTIONAL).await? + &own;
        let (mut labels, mut join_labels, mut time) = (own, String::new(), "given.prediction_time");
        let mut label_rule = NO_TEXT;
        let found = self.own_labels().await?;
        if !found.is_empty() {
            labels += &after_commas(&found);
            self.labels.extend(found);
            join_labels += include_str!("../../steps/join_own_labels.sql");
            label_rule = "own_labels.label_rule";
        }
        if let Some(file) = &self.request.settings.labels {
            let differences = &self.request.differences;
            let given =
                tables::register_labels(self.engine, file, differences, &self.labels, &RESERVED).await?;
            labels += &after_commas(&given.names);
            self.labels.extend(given.names);
            summary.label_columns_ignored = given.ignored;
            join_labels += include_str!("../../steps/join_labels.sql");
            self.has_label_times = given.has_times;
            if given.has_times {
                time = "least(given.prediction_time, given_labels.label_time)";
            }
        }
        let limit = match self.request.settings.limit {
            Some(limit) => format!("ORDER BY encounter_id LIMIT {limit}"),
            None => String::new(),
        };
        let sql = filled(
            include_str!("../../steps/encounters.sql"),
            &[
                ("columns", &columns),
                ("labels", &labels),
                ("limit", &limit),
                ("join_labels", &join_labels),
                ("prediction_time", time),
                ("label_rule", label_rule),
            ],
        );
        let frame = self.engine.sql(&sql).await?;
        self.engine.keep("reading encounters", "encounters", frame).await?;
        self.check_encounters().await?;
        if let Some(file) = &self.request.settings.labels {
            self.match_labels(file, summary).await?;
        }
        self.count_encounters(summary).await
    }

    /// Refuses identifiers that occur twice.
    async fn check_encounters(&self) -> Result<()> {
        let repeated = include_str!("../../steps/repeated_encounters.sql");
        match single(&self.engine.query("checking encounters", repeated).await?) {
            0 => Ok(()),
            count => Err(Error::Damaged {
                file: self.request.input.clone(),
                problem: format!("{count} encounters have the identifier of another; each may occur once"),
            }),
        }
    }

    async fn count_encounters(&self, summary: &mut Summary) -> Result<()> {
        let step = "counting encounters";
        for (rule, count) in self.count_by(step, "encounters", "dropped", "count(*)").await? {
            summary.encounters_read += count;
            // One of them would get the codes of the other.
            if rule == "two_subjects" {
                let count = summary::shown(count, self.request.settings.min_cell);
                return Err(Error::TwoSubjects { input: self.request.input.clone(), count });
            }
            add(&mut summary.dropped, &rule, count);
        }
        let tables = self.count_by(step, "encounters", "from_table", "count(*)").await?;
        for (table, count) in tables.into_iter().filter(|(table, _)| !table.is_empty()) {
            summary.tables.entry(table).or_default().encounters = Some(count);
        }
        Ok(())
    }

    /// Counts the user's labels that are of no encounter.
    async fn match_labels(&self, file: &str, summary: &mut Summary) -> Result<()> {
        let settings = &self.request.settings;
        // What a limit leaves out is no mistake.
        let encounters = if settings.limit.is_some() { "source_encounters" } else { "encounters" };
        let all = single(&self.engine.query("matching labels", "SELECT count(*) FROM given_labels").await?);
        let unmatched =
            filled(include_str!("../../steps/unmatched_labels.sql"), &[("encounters", encounters)]);
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
}

/// Names as columns of SQL, each after a comma.
fn after_commas(names: &[String]) -> String {
    names.iter().map(|name| format!(", {}", named(name))).collect()
}

/// Refuses a relation without a column that all sources have.
fn check_columns(query: &Query<'_>, frame: &DataFrame) -> Result<()> {
    let wanted: &[&str] = match query.name {
        "encounters" => &["encounter_id", "subject_id"],
        "events" => &["encounter_id", "kind", "code"],
        "labels" => &["encounter_id", "label", "value", "note"],
        "context" => &["encounter_id", "name"],
        _ => &["encounter_id", "cause", "effect"],
    };
    let found: Vec<&str> = frame.schema().fields().iter().map(|field| field.name().as_str()).collect();
    match wanted.iter().find(|column| !found.contains(column)) {
        Some(missing) => Err(Error::Source {
            path: query.file.clone(),
            problem: format!("its result has no column `{missing}`; it has: {}", found.join(", ")),
        }),
        None => Ok(()),
    }
}

/// The labels among the columns of the source's encounters.
fn labels_of(query: &Query<'_>, frame: &DataFrame) -> Result<Vec<String>> {
    let fields = frame.schema().fields().iter().filter(|field| !FIXED.contains(&field.name().as_str()));
    let label = |name: &String, found: &DataType| match found {
        DataType::Boolean => Ok(name.clone()),
        _ => Err(Error::Source {
            path: query.file.clone(),
            problem: format!("column `{name}` is a label and must be boolean, not {found}"),
        }),
    };
    fields.map(|field| label(field.name(), field.data_type())).collect()
}
