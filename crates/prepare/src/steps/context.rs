//! What is known of encounters beside codes: what the source says, and what is made of a subject's
//! encounters.

use super::Steps;
use super::encounters::{NO_TEXT, NO_TIME, Optional};
use crate::context::{self, Offered};
use crate::error::{Error, Result};
use crate::sql::{filled, quoted};
use crate::summary::Summary;

/// Columns of `source_context` that the source may leave out.
const OPTIONAL: [Optional; 2] = [("value", NO_TEXT), ("numeric_value", "CAST(NULL AS DOUBLE)")];

/// Columns of encounters that context is made of, and that the source may leave out.
const OF_VISITS: [Optional; 4] =
    [("start", NO_TIME), ("end", NO_TIME), ("prediction_time", NO_TIME), ("dropped", NO_TEXT)];

/// The rows of context among counted events.
pub(super) const CONTEXT: &str = "(SELECT * FROM rolled WHERE kind = 'context')";

/// All others.
pub(super) const OTHERS: &str = "(SELECT * FROM rolled WHERE kind IS DISTINCT FROM 'context')";

impl Steps<'_> {
    /// Context as codes, in the table `context`, if any is taken.
    pub(super) async fn context(&mut self) -> Result<()> {
        let mut known = vec![];
        if self.has_context {
            let columns = self.columns("source_context", &OPTIONAL).await?;
            known.push(format!("SELECT encounter_id, name, {columns} FROM source_context"));
        }
        known.extend(self.of_visits().await?);
        self.has_context = !known.is_empty();
        if self.has_context {
            let parts = [("known", &*known.join(" UNION ALL "))];
            let context = self.engine.sql(&filled(include_str!("../../steps/context.sql"), &parts)).await?;
            self.engine.keep("reading context", "context", context).await?;
        }
        Ok(())
    }

    /// The query of context that is made of the subject's encounters, if any is taken.
    async fn of_visits(&self) -> Result<Option<String>> {
        let settings = &self.request.settings;
        let is_taken = |known: &Offered| known.of_visits && settings.context.contains(&known.name);
        let offered = context::offered(&self.request.source);
        let names: Vec<String> =
            offered.iter().filter(|known| is_taken(known)).map(|known| quoted(&known.name)).collect();
        if names.is_empty() {
            return Ok(None);
        }
        // Visits that a limit leaves out took place all the same.
        let encounters = if settings.limit.is_some() { "source_encounters" } else { "encounters" };
        let columns = self.columns(encounters, &OF_VISITS).await?;
        let parts = [("columns", columns.as_str()), ("encounters", encounters)];
        let all = filled(include_str!("../../steps/visit_context.sql"), &parts);
        Ok(Some(format!("SELECT * FROM ({all}) WHERE name IN ({})", names.join(", "))))
    }

    /// The condition that context is taken, by the name at the beginning of its code.
    pub(super) fn is_chosen(&self) -> String {
        let chosen = &self.request.settings.context;
        if chosen.iter().any(|name| name == context::ALL) {
            return "true".into();
        }
        let names: Vec<String> = chosen.iter().map(|name| quoted(name)).collect();
        if names.is_empty() {
            "false".into()
        } else {
            format!("split_part(code, '=', 1) IN ({})", names.join(", "))
        }
    }

    /// What became of context before encounters are looked at, and how many rows there are of each name.
    pub(super) async fn count_context(&self, summary: &mut Summary) -> Result<()> {
        let step = "counting context";
        for (rule, count) in self.count_by(step, CONTEXT, "dropped", "sum(events)").await? {
            summary.context_read += count;
            super::add(&mut summary.context_dropped, &rule, count);
        }
        for (table, count) in self.count_by(step, CONTEXT, "from_table", "sum(events)").await? {
            if !table.is_empty() {
                summary.tables.entry(table).or_default().context = count;
            }
        }
        let named = "(SELECT split_part(code, '=', 1) AS name, events FROM rolled \
                     WHERE kind = 'context' AND dropped IS NULL)";
        let found = self.count_by(step, named, "name", "sum(events)").await?;
        let count = |name: &str| found.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count);
        let chosen = self.request.settings.context.iter().filter(|name| *name != context::ALL);
        summary.context = chosen.map(|name| (name.clone(), count(name))).collect();
        self.check_names(summary).await
    }

    /// Refuses a name that nothing has, where only the data know the names.
    async fn check_names(&self, summary: &Summary) -> Result<()> {
        let source = &self.request.source;
        let offered = context::offered(source);
        let is_made = |name: &str| offered.iter().any(|known| known.name == name);
        let missing = summary.context.iter().find(|(name, count)| **count == 0 && !is_made(name));
        // Names of another dataset need not occur in these records.
        let is_asked = context::is_open(source) && self.request.like.is_none();
        let Some((missing, _)) = missing.filter(|_| is_asked) else { return Ok(()) };
        let named = "(SELECT split_part(code, '=', 1) AS name FROM events \
                     WHERE kind = 'context' AND strpos(code, '=') > 0)";
        let names = self.count_by("looking for context", named, "name", "count(*)").await?;
        let names = names.into_iter().filter(|(_, count)| *count >= self.request.settings.min_cell);
        let names = names.map(|(name, _)| name).chain(offered.into_iter().map(|known| known.name));
        Err(Error::Choice {
            name: "context".into(),
            value: missing.clone(),
            allowed: format!(
                "all, none, or names with commas between them: {}",
                names.collect::<Vec<_>>().join(", ")
            ),
        })
    }
}
