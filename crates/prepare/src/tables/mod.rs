//! The tables of a source, under the names and types that its SQL counts on.
//!
//! A table of text is converted once into typed Parquet, which also finds the rows that cannot be read;
//! Parquet is used where it lies. Columns are found by name, whatever their order and case.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema};

use crate::columns::data_type;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::files::{File, InputFiles};
use crate::source::{Column, ColumnKind, Source, Table, Value};
use crate::sql::named;

mod reader;

use reader::Reader;
pub(crate) use reader::is_utf16;

/// How the user's tables differ from what the source expects.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// Other paths of tables.
    pub tables: BTreeMap<String, String>,
    /// Other names of columns, as `column` or `table.column`.
    pub columns: BTreeMap<String, String>,
    /// What separates the columns of text files; a comma, or a tab in `.tsv` files, if nothing is said.
    pub delimiter: Option<u8>,
}

/// Rows that could not be read and were left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The file, row and column of the first one.
    pub first: String,
    /// The table and column: `treatment.treatmentoffset`.
    pub column: String,
    /// How many there are.
    pub rows: u64,
}

/// Gives all tables of a source their names and columns, so that queries can be planned before anything is
/// read.
pub(crate) fn outline(engine: &Engine<'_>, source: &Source) -> Result<()> {
    for (name, table) in &source.description.tables {
        let columns = table.columns.iter().map(|(name, column)| (name, data_type(column.kind)));
        let lists = table.lists.keys().map(|name| (name, DataType::new_list(DataType::Utf8, true)));
        let fields = columns.chain(lists).map(|(name, data_type)| Field::new(name, data_type, true));
        engine.outline(name, Arc::new(Schema::new(fields.collect::<Vec<_>>())))?;
    }
    Ok(())
}

/// The tables of a source that something asks for; others are not looked at.
pub(crate) struct Tables<'a> {
    engine: &'a Engine<'a>,
    source: &'a Source,
    input: InputFiles,
    differences: &'a Differences,
    /// Those that were read, or found missing.
    read: BTreeSet<String>,
    /// What the user says of columns, as far as it is of use.
    heeded: BTreeSet<String>,
    /// The table that the input is, if it is a single file.
    single: Option<String>,
    counted: Counted,
}

/// What was found in the tables of a source.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// The rows of each table that has files, those that cannot be read included.
    pub(crate) rows: BTreeMap<String, u64>,
    /// Rows that could not be read.
    pub(crate) unreadable: Vec<Unreadable>,
}

impl<'a> Tables<'a> {
    pub(crate) async fn new(
        engine: &'a Engine<'a>,
        source: &'a Source,
        input: InputFiles,
        differences: &'a Differences,
    ) -> Result<Self> {
        let tables = &source.description.tables;
        if let Some(given) = differences.tables.keys().find(|given| !tables.contains_key(*given)) {
            let known: Vec<&str> = tables.keys().map(String::as_str).collect();
            let (name, value) = ("table".into(), given.clone());
            return Err(Error::Choice { name, value, allowed: known.join(", ") });
        }
        let needs_folder = needed(source).count() > 1 && differences.tables.is_empty();
        if input.is_file && needs_folder && source.description.flatten.is_none() {
            let own = tables.iter().filter(|(_, table)| table.builtin.is_none());
            let tables = own.map(|(name, _)| name.clone()).collect();
            return Err(Error::OneFile { path: input.name, of: source.name.clone(), tables });
        }
        let (read, heeded, counted) = (BTreeSet::new(), BTreeSet::new(), Counted::default());
        let mut tables = Tables { engine, source, input, differences, read, heeded, single: None, counted };
        tables.single = tables.single().await?.map(str::to_owned);
        Ok(tables)
    }

    /// Which tables are there, as `has_NAME`, for queries to which no rows and no table are different things.
    pub(crate) async fn presence(&self) -> Result<BTreeMap<String, Value>> {
        let mut presence = BTreeMap::new();
        for (name, table) in &self.source.description.tables {
            let is_there = !self.files(name, table).await?.is_empty();
            presence.insert(format!("has_{name}"), Value::Flag(is_there));
        }
        Ok(presence)
    }

    /// Refuses to go on without these tables.
    pub(crate) async fn require(&self, names: &[String]) -> Result<()> {
        for name in names {
            if self.files(name, &self.source.description.tables[name]).await?.is_empty() {
                return Err(self.missing(name));
            }
        }
        Ok(())
    }

    /// Reads these tables, if that was not done yet.
    pub(crate) async fn read(
        &mut self,
        names: &BTreeSet<String>,
        options: &BTreeMap<String, Value>,
    ) -> Result<()> {
        let source = self.source;
        for (name, table) in source.description.tables.iter().filter(|(name, _)| names.contains(*name)) {
            if self.read.insert(name.clone()) {
                self.read_one(name, table, options).await?;
            }
        }
        Ok(())
    }

    async fn read_one(&mut self, name: &str, table: &Table, options: &BTreeMap<String, Value>) -> Result<()> {
        let files = self.files(name, table).await?;
        let files = match &table.one_per {
            Some(option) => {
                let path = self.differences.tables.get(name).unwrap_or(&self.input.name);
                one_of_several(path, name, option, options.get(option), files)?
            }
            None => files,
        };
        // What the user says of their tables is not said of ours.
        let none = Differences::default();
        let (files, differences) = match (files.is_empty(), &table.builtin) {
            (true, Some(builtin)) => (vec![builtin_file(self.engine, self.source, builtin).await?], &none),
            _ => (files, self.differences),
        };
        if files.is_empty() {
            if table.optional {
                return Ok(());
            }
            return Err(self.missing(name));
        }
        let reader = Reader { engine: self.engine, name, table, differences };
        let groups = reader.groups(&files).await?;
        for (given, theirs) in &differences.columns {
            let has = groups
                .iter()
                .flat_map(|group| group.schema.fields())
                .any(|field| field.name().eq_ignore_ascii_case(theirs));
            if has && is_column(given, name, table) {
                self.heeded.insert(given.clone());
            }
        }
        let found = reader.register_groups(groups).await?;
        self.counted.rows.insert(name.to_owned(), found.rows);
        self.counted.unreadable.extend(found.unreadable);
        Ok(())
    }

    fn missing(&self, name: &str) -> Error {
        let tables = &self.source.description.tables;
        let names = |name: &str| match tables[name].files.as_slice() {
            [] => vec![name.to_owned()],
            files => files.to_vec(),
        };
        // What is another table is not this one.
        let is_other = |near: &String| {
            let mut others = tables.keys().filter(|other| *other != name).flat_map(|other| names(other));
            others.any(|other| other.eq_ignore_ascii_case(near))
        };
        let mut near = self.input.near(&names(name));
        near.retain(|near| !is_other(near));
        let (path, found) = (self.input.name.clone(), self.input.names());
        Error::MissingTable { path, table: name.into(), names: names(name), near, found }
    }

    /// The files of a table, if it is there.
    async fn files(&self, name: &str, table: &Table) -> Result<Vec<File>> {
        let input = &self.input;
        let own = [name.to_owned()];
        match self.differences.tables.get(name) {
            Some(elsewhere) => match input.table(name, std::slice::from_ref(elsewhere))? {
                files if files.is_empty() || input.is_file => {
                    let files = InputFiles::list(&self.engine.context, elsewhere).await?.all();
                    if files.is_empty() {
                        return Err(Error::Empty { file: elsewhere.clone() });
                    }
                    Ok(files)
                }
                files => Ok(files),
            },
            None if input.is_file && self.single.as_deref() != Some(name) => Ok(vec![]),
            None if input.is_file => Ok(input.all()),
            None if table.files.is_empty() => input.table(name, &own),
            None => input.table(name, &table.files),
        }
    }

    /// The table that a single file is: the only one that is needed; or of several the one that its name or
    /// its columns fit.
    async fn single(&self) -> Result<Option<&'a str>> {
        if !self.input.is_file {
            return Ok(None);
        }
        let description = &self.source.description;
        let mut needed = needed(self.source);
        match (needed.next(), needed.next()) {
            (Some(name), None) => return Ok(Some(name)),
            (None, _) => {}
            _ => return Ok(None),
        }
        for name in &description.any_of {
            if self.input.is_called(&description.tables[name].files) {
                return Ok(Some(name));
            }
        }
        for name in &description.any_of {
            let table = &description.tables[name];
            let reader = Reader { engine: self.engine, name, table, differences: self.differences };
            if reader.fits(&self.input.all()).await? {
                return Ok(Some(name));
            }
        }
        Ok(description.any_of.first().map(String::as_str))
    }

    /// What was found, after everything was read that had to be.
    pub(crate) async fn finish(self) -> Result<Counted> {
        let description = &self.source.description;
        let unread = || description.tables.iter().filter(|(name, _)| !self.read.contains(*name));
        for (given, theirs) in
            self.differences.columns.iter().filter(|(given, _)| !self.heeded.contains(*given))
        {
            if !unread().any(|(name, table)| is_column(given, name, table)) {
                let value = format!("{given}={theirs}");
                let allowed = "a column that the source reads, and a name that one of its tables has".into();
                return Err(Error::Choice { name: "column".into(), value, allowed });
            }
        }
        let any_of = &description.any_of;
        let mut any_found = any_of.is_empty();
        for name in any_of {
            any_found |= !self.files(name, &description.tables[name]).await?.is_empty();
        }
        if !any_found {
            let (path, found) = (self.input.name.clone(), self.input.names());
            return Err(Error::MissingTables { path, tables: any_of.clone(), found });
        }
        Ok(self.counted)
    }
}

/// The tables that a source cannot do without, at least if options ask for them.
fn needed(source: &Source) -> impl Iterator<Item = &str> {
    let tables = source.description.tables.iter();
    tables.filter(|(_, table)| !table.optional && table.builtin.is_none()).map(|(name, _)| name.as_str())
}

/// Whether what the user says of a column, as `column` or `table.column`, is said of this table.
fn is_column(given: &str, name: &str, table: &Table) -> bool {
    let here = given.strip_prefix(&format!("{name}.")).unwrap_or(given);
    table.columns.contains_key(here)
}

/// Those files of a folder that an option chooses, if there are several to choose from.
fn one_of_several(
    path: &str,
    table: &str,
    option: &str,
    chosen: Option<&Value>,
    files: Vec<File>,
) -> Result<Vec<File>> {
    let found: BTreeSet<&str> = files.iter().map(File::part).collect();
    let found: Vec<String> = found.into_iter().map(str::to_owned).collect();
    let Some(Value::Text(chosen)) = chosen else {
        let (path, table, option) = (path.into(), table.into(), option.into());
        return if found.len() > 1 {
            Err(Error::OneOfSeveral { path, table, option, found })
        } else {
            Ok(files)
        };
    };
    let begins = |part: &str| part.strip_prefix(chosen.as_str()).is_some_and(|rest| rest.starts_with('/'));
    let kept: Vec<File> =
        files.into_iter().filter(|file| file.part() == chosen || begins(file.part())).collect();
    if kept.is_empty() {
        let (name, value) = (option.into(), chosen.clone());
        let none = format!("none, since there are no files of `{table}`");
        let allowed = if found.is_empty() { none } else { found.join(", ") };
        return Err(Error::Choice { name, value, allowed });
    }
    Ok(kept)
}

/// The columns of a file of labels.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    /// The names of labels.
    pub(crate) names: Vec<String>,
    /// Indexes that pandas wrote.
    pub(crate) ignored: Vec<String>,
    /// Whether it says for which moment labels are to be predicted.
    pub(crate) has_times: bool,
}

/// The column of labels that says for which moment they are to be predicted.
const PREDICTION_TIME: &str = "prediction_time";

/// Whether a column is an index that pandas wrote. In CSV it has no name, or after it was read once more
/// `Unnamed: 0`.
fn is_index(name: &str, position: usize) -> bool {
    let between = |begin: &str, end: &str| name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
    let number = between("__index_level_", "__").or_else(|| between("Unnamed: ", ""));
    number.is_some_and(|number| number.parse::<u32>().is_ok()) || name == reader::unnamed(position)
}

/// A file of labels, as the table `given_labels` with `given_id`, `label_time` if the file has a
/// `prediction_time`, and a boolean per label.
pub(crate) async fn register_labels(
    engine: &Engine<'_>,
    path: &str,
    differences: &Differences,
    taken: &[String],
    reserved: &[&str],
) -> Result<Labels> {
    let files = InputFiles::list(&engine.context, path).await?.all();
    let Some(file) = files.first() else { return Err(Error::Empty { file: path.into() }) };
    let id = Column { kind: ColumnKind::Id, optional: false, aliases: vec![] };
    let mut table = Table {
        key: vec!["encounter_id".into()],
        columns: BTreeMap::from([("encounter_id".to_owned(), id)]),
        ..Table::default()
    };
    let name = "given";
    let reader = Reader { engine, name, table: &table, differences };
    let groups = reader.groups(&files).await?;
    let header = groups[0].header();
    let id = reader.find("encounter_id", &table.columns["encounter_id"], &header);
    let time = Column { kind: ColumnKind::Time, optional: false, aliases: vec![] };
    let time_at = reader.find(PREDICTION_TIME, &time, &header);
    let mut labels = Labels { has_times: time_at.is_some(), ..Labels::default() };
    if labels.has_times {
        table.columns.insert(PREDICTION_TIME.into(), time);
    }
    for (position, label) in header.into_iter().enumerate() {
        if [id, time_at].contains(&Some(position)) {
            continue;
        }
        if is_index(&label, position) {
            labels.ignored.push(label);
            continue;
        }
        if taken.contains(&label)
            || reserved.contains(&label.as_str())
            || gct::dataset::is_fixed_column(&label)
        {
            return Err(Error::SameColumn { file: file.name.clone(), column: label });
        }
        table
            .columns
            .insert(label.clone(), Column { kind: ColumnKind::Boolean, optional: false, aliases: vec![] });
        labels.names.push(label);
    }
    let reader = Reader { engine, name, table: &table, differences };
    let groups = reader.groups(&files).await?;
    if let Some(found) = reader.register_groups(groups).await?.unreadable.first() {
        return Err(Error::Labels { problem: found.first.clone() });
    }
    let time = if labels.has_times { format!(", {PREDICTION_TIME} AS label_time") } else { String::new() };
    let columns: String = labels.names.iter().map(|label| format!(", {}", named(label))).collect();
    let view = engine.sql(&format!("SELECT encounter_id AS given_id{time}{columns} FROM {name}")).await?;
    engine.view("given_labels", view)?;
    Ok(labels)
}

/// A file of codes, as a table of this name with a column `code`. Other columns are not read.
pub(crate) async fn register_codes(engine: &Engine<'_>, path: &str, name: &str) -> Result<()> {
    let files = InputFiles::list(&engine.context, path).await?.all();
    if files.is_empty() {
        return Err(Error::Empty { file: path.into() });
    }
    let code = Column { kind: ColumnKind::Text, optional: false, aliases: vec![] };
    let table = Table { columns: BTreeMap::from([("code".to_owned(), code)]), ..Table::default() };
    // What the user says of the columns of tables is not said of it.
    let reader = Reader { engine, name, table: &table, differences: &Differences::default() };
    let groups = reader.groups(&files).await?;
    match reader.register_groups(groups).await?.unreadable.first() {
        Some(found) => Err(Error::Labels { problem: found.first.clone() }),
        None => Ok(()),
    }
}

/// A table that comes with the source, as a file.
async fn builtin_file(engine: &Engine<'_>, source: &Source, builtin: &str) -> Result<File> {
    let text = source.builtin_text(builtin)?;
    let path = engine.temporary_path(builtin);
    std::fs::write(&path, text).map_err(|error| Error::system("write", &path, error))?;
    let listed = InputFiles::list(&engine.context, &path.display().to_string()).await?;
    Ok(listed.all().remove(0))
}
