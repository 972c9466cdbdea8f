//! From a source's relations to a dataset folder. Each step is a query whose result is small, or lies
//! on disk until the next:
//!
//! ```text
//! labels       those whose names the data or the settings have: a row per encounter and label
//! encounters   the source's, with labels joined and a reason where one is dropped
//! context      what is known of encounters beside codes, as codes: from then on events like others
//! tally        every code that any event has, with counts
//! rolled       the same, with the group that a rollup puts each code into
//! codes        codes numbered within their kind, those of one group alike
//! lists        the codes of each encounter, as numbers, labs and context with their values
//! alive        encounters with their lists and links that no rule has dropped yet
//! accepted     those that no rule drops, without rare codes, values in buckets
//! ```
//!
//! Rows of events never leave the engine: what comes into this program's memory is codes and counts. The
//! queries are in `crates/prepare/steps/`.

/// The tables that the source's queries read, and the values of its options.
mod input;

/// The source's relations, and its encounters.
mod encounters;

/// Labels of onset.
mod onset;

/// What is known of encounters beside codes.
mod context;

/// Buckets for values.
mod buckets;

/// The codes and links of each encounter, gathered from the source's events.
mod gather;

/// Codes replaced by their groups.
mod roll_up;

/// Rules on encounters and on codes, until all of them hold.
mod settle;

/// What a preparation is refused for once everything is counted.
mod refuse;

/// The conditional probabilities of the training split.
mod prior;

/// The dataset folder.
mod write;

use std::collections::BTreeMap;
use std::path::Path;

use gct::coding::Group;
use gct::dataset::{Assembly, ENCOUNTERS_PER_PART};
use gct::job::Job;
use gct::record::{Code, CodeKind, PerKind};

use crate::engine::{Engine, Progress, text_counts};
use crate::error::{Error, Result};
use crate::rollup::Rollup;
use crate::settings::Request;
use crate::source::Value;
use crate::sql::filled;
use crate::summary::Summary;
pub(crate) use encounters::is_column;

/// Prepares a dataset, or, without a folder for it, counts what it would hold.
///
/// # Errors
/// If the input is not what the source expects, the output cannot be written, or the job is stopped; then
/// nothing is written.
pub async fn prepare(request: &Request, out: Option<&Path>, job: &Job<'_, Progress>) -> Result<Summary> {
    check_prior(request, out)?;
    let rollups = match &request.like {
        Some(like) => like.rollups(&request.settings),
        None => Rollup::all(&request.settings, &request.source)?,
    };
    let per_part = request.limits.encounters_per_part.unwrap_or(ENCOUNTERS_PER_PART);
    let assembly = out.map(|path| Assembly::create(path, request.overwrite)).transpose()?;
    let assembly = assembly.map(|assembly| assembly.with_encounters_per_part(per_part));
    let beside = assembly.as_ref().map_or_else(std::env::temp_dir, |assembly| assembly.parent().to_owned());
    let engine = Engine::new(request.limits.clone(), &beside, job)?;
    let (source, is_limited) = (request.source.name.clone(), request.settings.limit.is_some());
    let is_like = request.like.is_some();
    let mut summary = Summary { source, is_limited, is_like, ..Summary::default() };
    let input = input::read(&engine, request, &rollups, &mut summary).await?;
    let mut steps = Steps::new(&engine, request, rollups, input);
    steps.relations().await?;
    steps.encounters(&mut summary).await?;
    steps.context().await?;
    steps.events().await?;
    steps.tally(&mut summary).await?;
    let codes = steps.lists(&mut summary).await?;
    let settled = steps.settle(codes, &mut summary).await?;
    let bounds = match &request.like {
        Some(like) => PerKind::from_fn(|kind| like.bounds_by_code(kind)),
        None => settled.bounds(),
    };
    let numberings = steps.accept(settled, &mut summary).await?;
    steps.count(&mut summary).await?;
    summary.temporary = engine.temporary();
    refuse::check(&summary, &request.settings)?;
    if let Some(assembly) = assembly {
        steps.finish(assembly, &numberings, bounds, &summary, job).await?;
    }
    Ok(summary)
}

/// Refuses a path for the conditional probabilities that cannot be written, before any work is done.
fn check_prior(request: &Request, out: Option<&Path>) -> Result<()> {
    let Some(prior) = &request.prior else { return Ok(()) };
    if out.is_some_and(|out| prior.starts_with(out)) {
        let (name, value) = ("prior".into(), prior.display().to_string());
        return Err(Error::Choice { name, value, allowed: "a path outside of the dataset".into() });
    }
    Ok(gct::files::check_file(prior, request.overwrite)?)
}

/// Adds a count under the name of a rule, unless there is nothing to count or no rule.
fn add(counts: &mut Vec<(String, u64)>, rule: &str, count: u64) {
    match counts.iter_mut().find(|(known, _)| known == rule) {
        _ if rule.is_empty() || count == 0 => {}
        Some((_, known)) => *known += count,
        None => counts.push((rule.to_owned(), count)),
    }
}

/// What codes that stand for nothing else are called together: as no code is called already.
fn free_name(word: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number| format!("({word} {number})"));
    let mut names = std::iter::once(format!("({word})")).chain(numbered);
    names.find(|name| !is_taken(name)).unwrap_or_else(|| unreachable!("there are finitely many codes"))
}

/// The codes of one kind, by the numbers that they have in lists, and the numbers that they will have.
#[derive(Debug, Clone, Default)]
struct Numbering {
    codes: Vec<Code>,
    new: Vec<Option<u32>>,
}

struct Steps<'a> {
    engine: &'a Engine<'a>,
    request: &'a Request,
    rollups: Vec<Rollup>,
    options: BTreeMap<String, Value>,
    /// The options, and which tables there are.
    values: BTreeMap<String, Value>,
    labels: Vec<String>,
    /// The tables and views that the source's relations are made of.
    needed: input::Needed,
    has_links: bool,
    /// Whether anything is known of encounters beside codes.
    has_context: bool,
    /// Of which kinds events have values that go into buckets.
    has_values: PerKind<bool>,
    /// Whether there are labels whose names the data or the settings have.
    has_own_labels: bool,
    /// The codes of each label of onset, as the user gave them.
    onsets: BTreeMap<String, Vec<String>>,
    /// Whether the user's labels say for which moment they are to be predicted.
    has_label_times: bool,
    /// The groups that the source's tables have for codes, by kind.
    groups: Vec<(CodeKind, BTreeMap<String, Group>)>,
}

impl<'a> Steps<'a> {
    fn new(engine: &'a Engine<'a>, request: &'a Request, rollups: Vec<Rollup>, input: input::Input) -> Self {
        let input::Input { options, values, needed } = input;
        Steps {
            engine,
            request,
            rollups,
            options,
            values,
            labels: vec![],
            needed,
            has_links: false,
            has_context: false,
            has_values: PerKind::default(),
            has_own_labels: false,
            onsets: BTreeMap::new(),
            has_label_times: false,
            groups: vec![],
        }
    }

    /// How many rows of a table have each value of a column, or what else `count` says of them. No value is
    /// an empty text.
    async fn count_by(
        &self,
        step: &str,
        table: &str,
        column: &str,
        count: &str,
    ) -> Result<Vec<(String, u64)>> {
        let sql = filled(
            include_str!("../../steps/count_by.sql"),
            &[("table", table), ("column", column), ("count", count)],
        );
        Ok(text_counts(&self.engine.query(step, &sql).await?))
    }

    /// The training encounters, as a condition on a table of encounters.
    fn is_training(&self, table: &str) -> String {
        let settings = &self.request.settings;
        let (by, seed) = (settings.split_by.name(), settings.split_seed);
        let columns = ["part", "subject_id", "encounter_id"].map(|column| format!("{table}.{column}"));
        format!("is_training('{by}', '{seed}', {})", columns.join(", "))
    }
}
