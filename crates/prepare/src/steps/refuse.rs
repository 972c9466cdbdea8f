//! What a preparation is refused for once everything is counted.

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::summary::{self, Summary};

/// Rules on encounters that mean damage: `--strict` refuses them.
const ENCOUNTER_DAMAGE: [&str; 5] =
    ["absurd_time", "two_types", "no_subject_id", "no_encounter_id", "ends_before_start"];

/// Rules on events that mean damage.
const EVENT_DAMAGE: [&str; 5] = ["no_code", "code_too_long", "unknown_kind", "no_encounter", "absurd_time"];

/// Refuses what `--strict` forbids, and a dataset without encounters.
pub(super) fn check(summary: &Summary, settings: &Settings) -> Result<()> {
    if settings.strict {
        check_balance(summary)?;
        check_damage("encounters", &summary.dropped, &ENCOUNTER_DAMAGE, settings)?;
        check_damage("events", &summary.events_dropped, &EVENT_DAMAGE, settings)?;
    }
    if summary.encounters_kept == 0 { Err(nothing_kept(summary, settings.min_cell)) } else { Ok(()) }
}

fn check_balance(summary: &Summary) -> Result<()> {
    match summary.unbalanced().first() {
        Some(table) => Err(Error::Strict {
            problem: format!("the source loses rows of `{table}`, or counts some twice"),
        }),
        None => Ok(()),
    }
}

fn check_damage(what: &str, dropped: &[(String, u64)], damage: &[&str], settings: &Settings) -> Result<()> {
    match dropped.iter().find(|(rule, _)| damage.contains(&rule.as_str())) {
        Some((rule, count)) => {
            let count = summary::shown(*count, settings.min_cell);
            Err(Error::Strict { problem: format!("{count} {what} dropped: {rule}") })
        }
        None => Ok(()),
    }
}

fn nothing_kept(summary: &Summary, min_cell: u64) -> Error {
    let dropped = summary.dropped.iter();
    Error::NothingKept {
        read: summary.read(min_cell).map_or_else(|hidden| hidden, |count| count.to_string()),
        dropped: dropped.map(|(rule, count)| (rule.clone(), summary::shown(*count, min_cell))).collect(),
        unreadable: summary.unreadable.iter().map(|found| found.first.clone()).collect(),
    }
}
