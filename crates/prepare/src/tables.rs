//! The tables of a source, under the names and types that its SQL counts on.
//!
//! A table of text is converted once into typed Parquet, which also finds the rows that cannot be read; Parquet is used where it
//! lies. Columns are found by name, whatever their order and case.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion::error::DataFusionError;
use flate2::read::MultiGzDecoder;

use crate::columns::{Typed, convert, data_type, no_list, null};
use crate::engine::{Engine, Progress, single, text_counts};
use crate::error::{Error, Result};
use crate::files::{File, Format, Place, store_error, unreadable};
use crate::locate::{self, Dialect, For, Looked};
use crate::source::{Column, ColumnKind, Source, Table, Value, named};

/// How the user's tables differ from what the source expects.
#[derive(Debug, Clone, Default)]
pub struct Differences {
    /// Other places of tables.
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

/// What the engine takes for a quote where there is none: a byte that no text has.
const NO_QUOTE: u8 = 8;

/// Enough bytes for any header.
const HEAD: u64 = 1 << 18;

/// Gives all tables of a source their names and columns, so that queries can be planned before anything is read.
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
    place: Place,
    differences: &'a Differences,
    /// Those that were read, or found missing.
    read: BTreeSet<String>,
    /// What the user says of columns, as far as it is of use.
    heeded: BTreeSet<String>,
    unreadable: Vec<Unreadable>,
}

impl<'a> Tables<'a> {
    pub(crate) fn new(
        engine: &'a Engine<'a>,
        source: &'a Source,
        place: Place,
        differences: &'a Differences,
    ) -> Result<Self> {
        let tables = &source.description.tables;
        if let Some(given) = differences.tables.keys().find(|given| !tables.contains_key(*given)) {
            let known: Vec<&str> = tables.keys().map(String::as_str).collect();
            let (name, value) = ("table".into(), given.clone());
            return Err(Error::Choice { name, value, allowed: known.join(", ") });
        }
        let (read, heeded, unreadable) = (BTreeSet::new(), BTreeSet::new(), vec![]);
        Ok(Tables { engine, source, place, differences, read, heeded, unreadable })
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
                let place = self.differences.tables.get(name).unwrap_or(&self.place.name);
                one_of_several(place, name, option, options.get(option), files)?
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
        self.unreadable.extend(reader.register_groups(groups).await?);
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
        let mut near = self.place.near(&names(name));
        near.retain(|near| !is_other(near));
        let (place, found) = (self.place.name.clone(), self.place.names());
        Error::MissingTable { place, table: name.into(), names: names(name), near, found }
    }

    /// The files of a table, if it is there.
    async fn files(&self, name: &str, table: &Table) -> Result<Vec<File>> {
        let place = &self.place;
        let own = [name.to_owned()];
        match self.differences.tables.get(name) {
            Some(elsewhere) => match place.table(name, std::slice::from_ref(elsewhere))? {
                files if files.is_empty() || place.is_file => {
                    let files = Place::list(&self.engine.context, elsewhere).await?.all();
                    if files.is_empty() {
                        return Err(Error::Empty { file: elsewhere.clone() });
                    }
                    Ok(files)
                }
                files => Ok(files),
            },
            None if place.is_file && self.single() != Some(name) => Ok(vec![]),
            None if table.files.is_empty() => place.table(name, &own),
            None => place.table(name, &table.files),
        }
    }

    /// The table that a single file is: the only one that is needed.
    fn single(&self) -> Option<&str> {
        let description = &self.source.description;
        let mut needed =
            description.tables.iter().filter(|(_, table)| !table.optional && table.builtin.is_none());
        match (needed.next(), needed.next()) {
            (Some((name, _)), None) => Some(name),
            (None, _) => description.any_of.first().map(String::as_str),
            _ => None,
        }
    }

    /// What could not be read, after everything was that had to be.
    pub(crate) async fn finish(self) -> Result<Vec<Unreadable>> {
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
            let (place, found) = (self.place.name.clone(), self.place.names());
            return Err(Error::MissingTables { place, tables: any_of.clone(), found });
        }
        Ok(self.unreadable)
    }
}

/// Whether what the user says of a column, as `column` or `table.column`, is said of this table.
fn is_column(given: &str, name: &str, table: &Table) -> bool {
    let here = given.strip_prefix(&format!("{name}.")).unwrap_or(given);
    table.columns.contains_key(here)
}

/// Those files of a folder that an option chooses, if there are several to choose from.
fn one_of_several(
    place: &str,
    table: &str,
    option: &str,
    chosen: Option<&Value>,
    files: Vec<File>,
) -> Result<Vec<File>> {
    let found: BTreeSet<&str> = files.iter().map(File::part).collect();
    let found: Vec<String> = found.into_iter().map(str::to_owned).collect();
    let Some(Value::Text(chosen)) = chosen else {
        let (place, table, option) = (place.into(), table.into(), option.into());
        return if found.len() > 1 {
            Err(Error::OneOfSeveral { place, table, option, found })
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

/// A file of labels, as the table `given_labels` with `given_id` and a boolean per label; their names.
pub(crate) async fn register_labels(
    engine: &Engine<'_>,
    place: &str,
    differences: &Differences,
    taken: &[String],
    reserved: &[&str],
) -> Result<Vec<String>> {
    let files = Place::list(&engine.context, place).await?.all();
    let Some(file) = files.first() else { return Err(Error::Empty { file: place.into() }) };
    let id = Column { kind: ColumnKind::Id, optional: false, aliases: vec![] };
    let mut table = Table {
        files: vec![],
        optional: false,
        builtin: None,
        key: vec!["encounter_id".into()],
        columns: BTreeMap::from([("encounter_id".to_owned(), id)]),
        one_per: None,
        plain_tabs: false,
        lists: BTreeMap::new(),
    };
    let name = "given";
    let reader = Reader { engine, name, table: &table, differences };
    let groups = reader.groups(&files).await?;
    let header: Vec<String> = groups[0].schema.fields().iter().map(|field| field.name().clone()).collect();
    let id = reader.find("encounter_id", &table.columns["encounter_id"], &header);
    let mut labels = vec![];
    for (_, label) in header.into_iter().enumerate().filter(|(position, _)| Some(*position) != id) {
        if taken.contains(&label)
            || reserved.contains(&label.as_str())
            || gct::dataset::is_fixed_column(&label)
        {
            return Err(Error::SameColumn { file: file.name.clone(), column: label });
        }
        table
            .columns
            .insert(label.clone(), Column { kind: ColumnKind::Boolean, optional: false, aliases: vec![] });
        labels.push(label);
    }
    let reader = Reader { engine, name, table: &table, differences };
    let groups = reader.groups(&files).await?;
    if let Some(found) = reader.register_groups(groups).await?.first() {
        return Err(Error::Labels { problem: found.first.clone() });
    }
    let columns: String = labels.iter().map(|label| format!(", {}", named(label))).collect();
    let view = engine.sql(&format!("SELECT encounter_id AS given_id{columns} FROM {name}")).await?;
    engine.view("given_labels", view)?;
    Ok(labels)
}

/// A table that comes with the source, as a file.
async fn builtin_file(engine: &Engine<'_>, source: &Source, builtin: &str) -> Result<File> {
    let text = source.builtin_text(builtin)?;
    let path = engine.place(builtin);
    std::fs::write(&path, text)
        .map_err(|error| Error::Place { place: path.display().to_string(), problem: error.to_string() })?;
    let place = Place::list(&engine.context, &path.display().to_string()).await?;
    Ok(place.all().remove(0))
}

/// Files with the same columns.
struct Group {
    files: Vec<File>,
    schema: SchemaRef,
    dialect: Dialect,
}

struct Reader<'a> {
    engine: &'a Engine<'a>,
    name: &'a str,
    table: &'a Table,
    differences: &'a Differences,
}

impl Reader<'_> {
    /// The table of these files.
    async fn register_groups(&self, groups: Vec<Group>) -> Result<Vec<Unreadable>> {
        let (mut selects, mut conditions) = (vec![], vec![]);
        let mut must_convert = false;
        for (position, group) in groups.iter().enumerate() {
            let raw = format!("raw_{}_{position}", self.name);
            self.register_raw(&raw, group)?;
            let typed = self.typed(group)?;
            must_convert |= group.files[0].format != Format::Parquet;
            let mut columns: Vec<String> =
                typed.iter().map(|(name, column)| format!("{} AS {}", column.sql, named(name))).collect();
            let cases: Vec<String> = typed
                .iter()
                .filter_map(|(name, column)| {
                    Some(format!("WHEN {} THEN '{name}'", column.unreadable.as_ref()?))
                })
                .collect();
            must_convert |= !cases.is_empty();
            columns.push(if cases.is_empty() {
                "CAST(NULL AS VARCHAR) AS unreadable".into()
            } else {
                format!("CASE {} END AS unreadable", cases.join(" "))
            });
            conditions.push(!cases.is_empty());
            selects.push(format!("SELECT {} FROM {raw}", columns.join(", ")));
        }
        let all = self.engine.sql(&selects.join(" UNION ALL ")).await?;
        let kept = format!("typed_{}", self.name);
        if must_convert {
            let step = format!("reading {}", self.name);
            if let Err(error) = self.engine.keep(&step, &kept, all).await {
                return Err(self.located(&groups, error, For::Damage).await);
            }
        } else {
            self.engine.view(&kept, all)?;
        }
        let names: Vec<String> =
            self.table.columns.keys().chain(self.table.lists.keys()).map(|name| named(name)).collect();
        let readable = format!("SELECT {} FROM {kept} WHERE unreadable IS NULL", names.join(", "));
        let readable = self.engine.sql(&readable).await?;
        self.engine.view(self.name, readable)?;
        self.check_rows(&groups, &kept).await?;
        self.check_key(&groups).await?;
        if conditions.contains(&true) { self.count_unreadable(&groups, &kept).await } else { Ok(vec![]) }
    }

    /// Files by their columns, so that shards with another order of columns are not mixed up.
    async fn groups(&self, files: &[File]) -> Result<Vec<Group>> {
        let mut groups: Vec<Group> = vec![];
        for file in files {
            let (schema, dialect) = match file.format {
                Format::Parquet => (self.parquet_schema(file).await?, Dialect::COMMAS),
                Format::Csv | Format::CsvGz => self.csv_schema(file).await?,
                Format::Json | Format::JsonGz => {
                    return Err(Error::Damaged {
                        file: file.name.clone(),
                        problem: "expected a table, found JSON".into(),
                    });
                }
            };
            let is_same = |group: &&mut Group| {
                group.schema == schema && group.dialect == dialect && group.files[0].format == file.format
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.files.push(file.clone()),
                None => groups.push(Group { files: vec![file.clone()], schema, dialect }),
            }
        }
        Ok(groups)
    }

    async fn parquet_schema(&self, file: &File) -> Result<SchemaRef> {
        let state = self.engine.context.state();
        let store = file.store(&self.engine.context)?;
        let damaged =
            || Error::Damaged { file: file.name.clone(), problem: "cut off, or not a Parquet file".into() };
        let meta = object_store::ObjectStoreExt::head(store.as_ref(), &file.path).await;
        let meta = meta.map_err(|error| unreadable(&file.name, &error))?;
        // In a task of its own, since the library panics on some damages.
        let schema = tokio::spawn(async move {
            let format = ParquetFormat::default().with_options(state.default_table_options().parquet);
            format.infer_schema(&state, &store, &[meta]).await
        });
        match schema.await {
            Ok(Ok(schema)) => Ok(schema),
            Ok(Err(error)) => Err(store_error(&error)
                .map(|error| unreadable(&file.name, error))
                .filter(|error| matches!(error, Error::Store { .. }))
                .unwrap_or_else(damaged)),
            Err(_) => Err(damaged()),
        }
    }

    fn delimiter(&self, file: &File) -> u8 {
        let is_tsv = [".tsv", ".tsv.gz"].iter().any(|end| file.name.to_lowercase().ends_with(end));
        self.differences.delimiter.unwrap_or(if is_tsv { b'\t' } else { b',' })
    }

    fn dialect(&self, delimiter: u8) -> Dialect {
        Dialect { delimiter, has_quotes: !(self.table.plain_tabs && delimiter == b'\t') }
    }

    async fn csv_schema(&self, file: &File) -> Result<(SchemaRef, Dialect)> {
        let head = file.head(&self.engine.context, HEAD).await?;
        let mut dialect = self.dialect(self.delimiter(file));
        let mut header = header(file, &head, dialect)?;
        if header.is_empty() {
            return Err(Error::Empty { file: file.name.clone() });
        }
        let missing = |header: &[String]| -> Option<String> {
            let columns = self.table.columns.iter().filter(|(_, column)| !column.optional);
            columns
                .map(|(name, column)| (name, self.find(name, column, header)))
                .find_map(|(name, found)| found.is_none().then(|| name.clone()))
        };
        if missing(&header).is_some() && self.differences.delimiter.is_none() {
            // What is separated by tabs is often called .csv all the same.
            let tabs = self.dialect(b'\t');
            let columns = self::header(file, &head, tabs)?;
            if missing(&columns).is_none() {
                (dialect, header) = (tabs, columns);
            }
        }
        if let Some(column) = missing(&header) {
            let delimiter = dialect.delimiter;
            // A file with another delimiter lacks columns too, and that is not what is wrong with it.
            for (other, found, flag) in [
                (b',', "commas", "','"),
                (b';', "semicolons", "';'"),
                (b'\t', "tabs", "tab"),
                (b'|', "bars", "'|'"),
            ] {
                if other != delimiter && missing(&self::header(file, &head, self.dialect(other))?).is_none() {
                    let expected = match delimiter {
                        b',' => "commas",
                        b'\t' => "tabs",
                        b';' => "semicolons",
                        _ => "what was given",
                    };
                    return Err(Error::Delimiter { file: file.name.clone(), found, expected, flag });
                }
            }
            let expected: Vec<String> = self.table.columns.keys().cloned().collect();
            if !header.iter().all(|name| is_name(name)) {
                return Err(Error::NoHeader { file: file.name.clone(), expected });
            }
            return Err(Error::MissingColumn { file: file.name.clone(), column, found: header });
        }
        let mut sorted: Vec<String> = header.iter().map(|name| name.to_lowercase()).collect();
        sorted.sort();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1] && is_name(&pair[0])) {
            return Err(Error::SameColumn { file: file.name.clone(), column: twice[0].clone() });
        }
        let fields: Vec<Field> = header.iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
        Ok((Arc::new(Schema::new(fields)), dialect))
    }

    /// The position of a column in a file: under the name that the user gave, its own, or another that it can have.
    fn find(&self, name: &str, column: &Column, header: &[String]) -> Option<usize> {
        let position = |wanted: &str| {
            let exact = header.iter().position(|found| found == wanted);
            exact.or_else(|| header.iter().position(|found| found.eq_ignore_ascii_case(wanted)))
        };
        let own = || position(name).or_else(|| column.aliases.iter().find_map(|alias| position(alias)));
        let given = &self.differences.columns;
        match given.get(&format!("{}.{name}", self.name)) {
            Some(here) => position(here),
            // A name that is given without a table is for those tables that have it.
            None => given.get(name).and_then(|anywhere| position(anywhere)).or_else(own),
        }
    }

    /// The files as the engine reads them, before anything is converted.
    fn register_raw(&self, name: &str, group: &Group) -> Result<()> {
        let file = &group.files[0];
        let format: Arc<dyn FileFormat> = match file.format {
            Format::Parquet => Arc::new(ParquetFormat::default()),
            _ => Arc::new(
                CsvFormat::default()
                    .with_has_header(true)
                    .with_delimiter(group.dialect.delimiter)
                    .with_quote(if group.dialect.has_quotes { b'"' } else { NO_QUOTE })
                    .with_newlines_in_values(group.dialect.has_quotes)
                    .with_file_compression_type(match file.format {
                        Format::CsvGz => FileCompressionType::GZIP,
                        _ => FileCompressionType::UNCOMPRESSED,
                    }),
            ),
        };
        let urls = group.files.iter().map(|file| file.url.clone()).collect();
        let options = ListingOptions::new(format).with_file_extension("");
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .with_schema(group.schema.clone());
        self.engine.context.deregister_table(name)?;
        self.engine.context.register_table(name, Arc::new(ListingTable::try_new(config)?))?;
        Ok(())
    }

    /// The queries for all columns of the table.
    fn typed(&self, group: &Group) -> Result<Vec<(String, Typed)>> {
        let file = &group.files[0];
        let header: Vec<String> = group.schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut typed = vec![];
        for (name, column) in &self.table.columns {
            typed.push((
                name.clone(),
                match self.find(name, column, &header) {
                    Some(position) => {
                        let field = group.schema.field(position);
                        let raw = named(field.name());
                        let mut typed = convert(column.kind, &raw, field.data_type())
                            .ok_or_else(|| other_type(file, field, column.kind))?;
                        if file.format != Format::Parquet && locate::is_one_line(name, column.kind) {
                            typed.unreadable = Some(format!("strpos({raw}, chr(10)) > 0"));
                        }
                        typed
                    }
                    None if column.optional => Typed { sql: null(column.kind).into(), unreadable: None },
                    None => {
                        let (file, column) = (file.name.clone(), name.clone());
                        return Err(Error::MissingColumn { file, column, found: header });
                    }
                },
            ));
        }
        for (name, beginning) in &self.table.lists {
            let mut found: Vec<(u32, &String)> = header
                .iter()
                .filter_map(|column| {
                    let (begin, end) = column.split_at_checked(beginning.len())?;
                    begin
                        .eq_ignore_ascii_case(beginning)
                        .then(|| end.parse().ok())?
                        .map(|number| (number, column))
                })
                .collect();
            found.sort();
            let mut columns = vec![];
            for (_, column) in found {
                let field = group.schema.field_with_name(column).map_err(DataFusionError::from)?;
                let text = convert(ColumnKind::Text, &named(column), field.data_type());
                columns.push(text.ok_or_else(|| other_type(file, field, ColumnKind::Text))?.sql);
            }
            let sql = if columns.is_empty() {
                no_list().into()
            } else {
                format!("make_array({})", columns.join(", "))
            };
            typed.push((name.clone(), Typed { sql, unreadable: None }));
        }
        Ok(typed)
    }

    /// An error of the engine, as what is wrong with a file.
    async fn located(&self, groups: &[Group], error: Error, what: For<'_>) -> Error {
        if !matches!(error, Error::Engine { .. }) {
            return error;
        }
        for group in groups.iter().filter(|group| group.files[0].format != Format::Parquet) {
            for file in &group.files {
                match self.first_problem(file, group.dialect, what).await {
                    Ok(Some(problem)) => return problem,
                    Ok(None) => {}
                    Err(error) => return error,
                }
            }
        }
        match groups.iter().flat_map(|group| &group.files).find(|file| file.format == Format::Parquet) {
            Some(file) => {
                Error::Damaged { file: file.name.clone(), problem: "cut off, or not a Parquet file".into() }
            }
            None => error,
        }
    }

    async fn first_problem(&self, file: &File, dialect: Dialect, what: For<'_>) -> Result<Option<Error>> {
        let bytes = file.open(self.engine).await?;
        self.engine.tell(Progress { step: "looking for the row", rows: 0, total: None })?;
        Ok(locate::first_problem(&file.name, bytes, file.format, dialect, what))
    }

    /// Refuses a table without rows.
    async fn check_rows(&self, groups: &[Group], kept: &str) -> Result<()> {
        let rows = self.engine.query("counting rows", &format!("SELECT 1 FROM {kept} LIMIT 1")).await;
        match rows {
            Ok(rows)
                if rows.iter().all(|batch| batch.num_rows() == 0)
                    && self.table.builtin.is_none()
                    && !self.table.optional =>
            {
                Err(Error::Empty { file: groups[0].files[0].name.clone() })
            }
            Ok(_) => Ok(()),
            Err(error) => Err(self.located(groups, error, For::Damage).await),
        }
    }

    /// Refuses a key that occurs twice.
    async fn check_key(&self, groups: &[Group]) -> Result<()> {
        if self.table.key.is_empty() {
            return Ok(());
        }
        let key: Vec<String> = self.table.key.iter().map(|column| named(column)).collect();
        let is_known: Vec<String> = key.iter().map(|column| format!("{column} IS NOT NULL")).collect();
        let twice = format!(
            "SELECT count(*) AS n FROM (SELECT 1 FROM {} WHERE {} GROUP BY {} HAVING count(*) > 1)",
            self.name,
            is_known.join(" AND "),
            key.join(", ")
        );
        let twice = single(&self.engine.query("checking keys", &twice).await?);
        if twice == 0 {
            return Ok(());
        }
        let column = self.table.key.join(", ");
        for group in groups.iter().filter(|group| group.files[0].format != Format::Parquet) {
            let header: Vec<String> =
                group.schema.fields().iter().map(|field| field.name().clone()).collect();
            let positions: Vec<usize> = (self.table.key.iter())
                .filter_map(|name| self.find(name, &self.table.columns[name], &header))
                .collect();
            for file in &group.files {
                if let Some(problem) =
                    self.first_problem(file, group.dialect, For::Repetition(&positions, &column)).await?
                {
                    return Err(problem);
                }
            }
        }
        Err(Error::Damaged {
            file: groups[0].files[0].name.clone(),
            problem: format!(
                "in column `{column}`, {twice} values occur more than once; each may occur once"
            ),
        })
    }

    /// Counts the rows that cannot be read, and finds the first of each column.
    async fn count_unreadable(&self, groups: &[Group], kept: &str) -> Result<Vec<Unreadable>> {
        let counts = format!(
            "SELECT unreadable, count(*) AS n FROM {kept} WHERE unreadable IS NOT NULL GROUP BY unreadable ORDER BY unreadable"
        );
        let mut found = vec![];
        for (column, rows) in text_counts(&self.engine.query("counting rows", &counts).await?) {
            let spec = &self.table.columns[&column];
            if locate::is_one_line(&column, spec.kind)
                && let Some(open_quote) =
                    self.first_in(groups, &column, |looked| For::Swallowed(looked)).await?
            {
                // One such row may stand for thousands.
                return Err(open_quote);
            }
            let first = self.first_in(groups, &column, |looked| For::Values(looked)).await?;
            let first = first.map_or_else(|| groups[0].files[0].name.clone(), |problem| problem.to_string());
            found.push(Unreadable { first, column: format!("{}.{column}", self.name), rows });
        }
        Ok(found)
    }

    /// The first problem of a column in files of text.
    async fn first_in(
        &self,
        groups: &[Group],
        column: &str,
        what: fn(&[Looked]) -> For<'_>,
    ) -> Result<Option<Error>> {
        let spec = &self.table.columns[column];
        for group in groups {
            let header: Vec<String> =
                group.schema.fields().iter().map(|field| field.name().clone()).collect();
            let Some(position) = self.find(column, spec, &header) else { continue };
            let looked = [Looked { name: header[position].clone(), position, kind: spec.kind }];
            for file in group.files.iter().filter(|file| file.format != Format::Parquet) {
                if let Some(problem) = self.first_problem(file, group.dialect, what(&looked)).await? {
                    return Ok(Some(problem));
                }
            }
        }
        Ok(None)
    }
}

/// Whether a field of the first line can be shown: it looks like the name of a column, and not like a number, a date or a patient.
fn is_name(field: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || " _.#/()%".contains(letter);
    field.len() <= 64
        && field.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && field.chars().all(is_plain)
}

/// The names in the first line of a text file.
fn header(file: &File, head: &[u8], dialect: Dialect) -> Result<Vec<String>> {
    let bytes: Box<dyn Read> = match file.format {
        Format::CsvGz => Box::new(MultiGzDecoder::new(head)),
        _ => Box::new(head),
    };
    let mut reader = dialect.reader().has_headers(false).from_reader(bytes);
    let mut record = csv::ByteRecord::new();
    let problem = |problem: &str| Error::Damaged { file: file.name.clone(), problem: problem.into() };
    match reader.read_byte_record(&mut record) {
        Ok(false) => return Ok(vec![]),
        Ok(true) => {}
        Err(_) if file.format == Format::CsvGz => return Err(problem("it cannot be unpacked")),
        Err(_) => return Err(problem("its header cannot be read")),
    }
    let mut names = vec![];
    for field in &record {
        let name = std::str::from_utf8(field).map_err(|_| problem("its header is not UTF-8 text"))?;
        names.push(name.trim_start_matches('\u{feff}').trim().to_owned());
    }
    // Columns without a name cannot be asked for, but they have their place.
    Ok(names
        .into_iter()
        .enumerate()
        .map(|(position, name)| if name.is_empty() { format!("column {position}") } else { name })
        .collect())
}

fn other_type(file: &File, field: &Field, expected: ColumnKind) -> Error {
    Error::ColumnType {
        file: file.name.clone(),
        column: field.name().clone(),
        expected: expected.name(),
        found: field.data_type().to_string().to_lowercase(),
    }
}
