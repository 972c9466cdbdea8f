//! The files of one table: which columns they have, how they become a typed table, and what is wrong with
//! them.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::file_format::csv::CsvFormat;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::DataFusionError;
use flate2::read::MultiGzDecoder;
use gct::error::system_error;

use super::{Differences, Unreadable};
use crate::columns::{Typed, convert, is_far, no_list, null};
use crate::engine::{Engine, single, text_counts};
use crate::error::{Error, Result, nearest};
use crate::files::{File, Format, store_error, unreadable};
use crate::locate::{self, Dialect, For, Looked};
use crate::source::{Column, ColumnKind, Table};
use crate::sql::named;

/// What the engine takes for a quote where there is none: a byte that no text has.
const NO_QUOTE: u8 = 8;

/// Enough bytes for any header.
const HEAD: u64 = 1 << 18;

/// Files with the same columns.
pub(super) struct Group {
    files: Vec<File>,
    pub(super) schema: SchemaRef,
    dialect: Dialect,
}

impl Group {
    fn is_parquet(&self) -> bool {
        self.files[0].format == Format::Parquet
    }

    /// The names of its columns.
    pub(super) fn header(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }
}

/// How many rows a table has, and which of them cannot be read.
pub(super) struct Counted {
    pub(super) rows: u64,
    pub(super) unreadable: Vec<Unreadable>,
}

/// The query for the columns of a table in files of one kind, each under its number since names can be
/// anything; `unreadable`, the number of the first column whose value cannot be read; and `has_line_break`,
/// whether a field of the row has one.
fn select(typed: &[(String, Typed)], group: &Group, raw: &str) -> String {
    let columns =
        typed.iter().enumerate().map(|(number, (_, column))| format!("{} AS c{number}", column.sql));
    let mut columns: Vec<String> = columns.collect();
    let cases: Vec<String> = typed
        .iter()
        .enumerate()
        .filter_map(|(number, (_, column))| {
            Some(format!("WHEN {} THEN {number}", column.unreadable.as_ref()?))
        })
        .collect();
    columns.push(if cases.is_empty() {
        "CAST(NULL AS BIGINT) AS unreadable".into()
    } else {
        format!("CAST(CASE {} END AS BIGINT) AS unreadable", cases.join(" "))
    });
    let fields: Vec<String> = group.schema.fields().iter().map(|field| named(field.name())).collect();
    columns.push(if group.is_parquet() || !group.dialect.has_quotes {
        "false AS has_line_break".into()
    } else {
        format!("has_line_break({}) AS has_line_break", fields.join(", "))
    });
    format!("SELECT {} FROM {raw}", columns.join(", "))
}

/// What reads the files of one table.
pub(super) struct Reader<'a> {
    pub(super) engine: &'a Engine<'a>,
    pub(super) name: &'a str,
    pub(super) table: &'a Table,
    pub(super) differences: &'a Differences,
}

impl Reader<'_> {
    /// The table of these files.
    pub(super) async fn register_groups(&self, groups: Vec<Group>) -> Result<Counted> {
        let mut selects = vec![];
        let mut must_convert = false;
        for (position, group) in groups.iter().enumerate() {
            let raw = format!("raw_{}_{position}", self.name);
            self.register_raw(&raw, group)?;
            let typed = self.typed(group, &self.far_columns(group, &raw).await?)?;
            must_convert |=
                !group.is_parquet() || typed.iter().any(|(_, column)| column.unreadable.is_some());
            selects.push(select(&typed, group, &raw));
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
            self.names().enumerate().map(|(number, name)| format!("c{number} AS {}", named(name))).collect();
        let readable = format!("SELECT {} FROM {kept} WHERE unreadable IS NULL", names.join(", "));
        let readable = self.engine.sql(&readable).await?;
        self.engine.view(self.name, readable)?;
        let rows = self.count_rows(&groups, &kept).await?;
        self.check_key(&groups).await?;
        self.check_quotes(&groups, &kept).await?;
        let unreadable = self.count_unreadable(&groups, &kept).await?;
        Ok(Counted { rows, unreadable })
    }

    /// The names of the columns, in the order of their numbers.
    fn names(&self) -> impl Iterator<Item = &String> {
        self.table.columns.keys().chain(self.table.lists.keys())
    }

    /// The columns of moments of which some are outside of the calendar. Statistics of Parquet say so without
    /// a look at the rows.
    async fn far_columns(&self, group: &Group, raw: &str) -> Result<BTreeSet<String>> {
        let mut far = BTreeSet::new();
        let times = self.table.columns.iter().filter(|(_, column)| column.kind == ColumnKind::Time);
        for (name, column) in times.filter(|_| group.is_parquet()) {
            let Some(position) = self.find(name, column, &group.header()) else { continue };
            let field = group.schema.field(position);
            let Some(is_far) = is_far(&named(field.name()), field.data_type()) else { continue };
            let any = format!("SELECT count(*) FROM (SELECT 1 FROM {raw} WHERE {is_far} LIMIT 1)");
            match self.engine.query("looking at times", &any).await {
                Ok(found) if single(&found) == 0 => {}
                Ok(_) => drop(far.insert(field.name().clone())),
                Err(error) => {
                    return Err(self.located(std::slice::from_ref(group), error, For::Damage).await);
                }
            }
        }
        Ok(far)
    }

    /// Files by their columns, so that shards with another order of columns are not mixed up.
    pub(super) async fn groups(&self, files: &[File]) -> Result<Vec<Group>> {
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

    /// Whether files have the columns of this table, and the one that tells it from others.
    pub(super) async fn fits(&self, files: &[File]) -> Result<bool> {
        let Some(group) = (match self.groups(files).await {
            Ok(groups) => groups.into_iter().next(),
            Err(Error::MissingColumn { .. } | Error::NoHeader { .. } | Error::Delimiter { .. }) => None,
            Err(error) => return Err(error),
        }) else {
            return Ok(false);
        };
        let header = group.header();
        let has = |name: &String| header.iter().any(|found| found.eq_ignore_ascii_case(name));
        let needed = |(name, column): (&String, &Column)| {
            column.optional || self.find(name, column, &header).is_some()
        };
        Ok(self.table.columns.iter().all(needed) && self.table.told_by.iter().all(has))
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
                .or_else(|| Some(Error::system("read", &file.name, system_error(&error.to_string())?)))
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
        check_encoding(file, &head)?;
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
            // What is not certain to be a header can be a patient.
            if !header.iter().all(|name| is_name(name)) || !self.is_header(&header) {
                let own = self.table.columns.iter().filter(|(_, column)| column.kind != ColumnKind::Day);
                let expected = own.map(|(name, _)| name.clone()).collect();
                return Err(Error::NoHeader { file: file.name.clone(), expected });
            }
            return Err(Error::MissingColumn { file: file.name.clone(), column, found: header });
        }
        let mut sorted: Vec<String> = header.iter().map(|name| name.to_lowercase()).collect();
        sorted.sort();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1] && is_name(&pair[0])) {
            return Err(Error::SameColumn { file: file.name.clone(), column: twice[0].clone() });
        }
        let mut names = BTreeSet::new();
        let fields = header.iter().enumerate().map(|(position, name)| {
            let name = if names.insert(name) { name.clone() } else { unnamed(position) };
            Field::new(name, DataType::Utf8, true)
        });
        Ok((Arc::new(Schema::new(fields.collect::<Vec<_>>())), dialect))
    }

    /// Whether a first line names columns: one of them at least is called as one that is read, or nearly so.
    fn is_header(&self, line: &[String]) -> bool {
        let names = |(name, column): (&String, &Column)| {
            self.find(name, column, line).is_some()
                || std::iter::once(name).chain(&column.aliases).any(|name| nearest(name, line).is_some())
        };
        self.table.columns.iter().any(names)
    }

    /// The position of a column in a file: under the name that the user gave, its own, or another that it can
    /// have.
    pub(super) fn find(&self, name: &str, column: &Column, header: &[String]) -> Option<usize> {
        if let (ColumnKind::Day, Some(other)) = (column.kind, column.aliases.first()) {
            return self.find(other, self.table.columns.get(other)?, header);
        }
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
        let options = ListingOptions::new(format).with_file_extension("");
        let table = |urls: Vec<ListingTableUrl>| {
            let config = ListingTableConfig::new_with_multi_paths(urls)
                .with_listing_options(options.clone())
                .with_schema(group.schema.clone());
            ListingTable::try_new(config)
        };
        for file in group.files.iter().filter(|file| file.format == Format::Parquet) {
            self.engine.remember(&file.name, Arc::new(table(vec![file.url.clone()])?));
        }
        let urls = group.files.iter().map(|file| file.url.clone()).collect();
        self.engine.context.deregister_table(name)?;
        self.engine.context.register_table(name, Arc::new(table(urls)?))?;
        Ok(())
    }

    /// The queries for all columns of the table.
    fn typed(&self, group: &Group, far: &BTreeSet<String>) -> Result<Vec<(String, Typed)>> {
        let (file, header) = (&group.files[0], group.header());
        let mut typed = vec![];
        for (name, column) in &self.table.columns {
            typed.push((
                name.clone(),
                match self.find(name, column, &header) {
                    Some(position) => {
                        let field = group.schema.field(position);
                        let raw = named(field.name());
                        let mut typed =
                            convert(column.kind, &raw, field.data_type(), far.contains(field.name()))
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
                let text = convert(ColumnKind::Text, &named(column), field.data_type(), false);
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
        if !matches!(error, Error::Engine { .. }) || std::env::var_os("GCT_ENGINE_ERRORS").is_some() {
            return error;
        }
        for group in groups.iter().filter(|group| !group.is_parquet()) {
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
        self.engine.tell("looking for the row", 0)?;
        Ok(locate::first_problem(&file.name, bytes, file.format, dialect, what))
    }

    /// Counts the rows, and refuses a table that must have some and has none.
    async fn count_rows(&self, groups: &[Group], kept: &str) -> Result<u64> {
        let rows = self.engine.query("counting rows", &format!("SELECT count(*) FROM {kept}")).await;
        match rows.map(|rows| single(&rows)) {
            Ok(0) if self.table.builtin.is_none() && !self.table.optional => {
                Err(Error::Empty { file: groups[0].files[0].name.clone() })
            }
            Ok(rows) => Ok(rows),
            Err(error) => Err(self.located(groups, error, For::Damage).await),
        }
    }

    /// Refuses files in which an open quote swallows rows, in whatever column: nobody could count those.
    async fn check_quotes(&self, groups: &[Group], kept: &str) -> Result<()> {
        let broken = format!("SELECT count(*) FROM (SELECT 1 FROM {kept} WHERE has_line_break LIMIT 1)");
        if single(&self.engine.query("looking for open quotes", &broken).await?) == 0 {
            return Ok(());
        }
        for group in groups.iter().filter(|group| !group.is_parquet() && group.dialect.has_quotes) {
            let columns = self.looked(group);
            for file in &group.files {
                if let Some(problem) =
                    self.first_problem(file, group.dialect, For::Swallowed(&columns)).await?
                {
                    return Err(problem);
                }
            }
        }
        Ok(())
    }

    /// The columns that are read, and where a group has them.
    fn looked(&self, group: &Group) -> Vec<Looked> {
        let header = group.header();
        let is_told = |kind| !matches!(kind, ColumnKind::Day | ColumnKind::Moment);
        let columns = self.table.columns.iter().filter(|(_, column)| is_told(column.kind));
        let looked = columns.filter_map(|(name, column)| {
            let position = self.find(name, column, &header)?;
            Some(Looked { name: header[position].clone(), position, kind: column.kind })
        });
        looked.collect()
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
        for group in groups.iter().filter(|group| !group.is_parquet()) {
            let header = group.header();
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
        let names: Vec<&String> = self.names().collect();
        let mut found = vec![];
        for (number, rows) in text_counts(&self.engine.query("counting rows", &counts).await?) {
            let column = number.parse::<usize>().map_or("", |number| names[number]);
            let first = self.first_in(groups, column).await?;
            let first = first
                .map_or_else(|| format!("column `{column}` of `{}`", self.name), |first| first.to_string());
            found.push(Unreadable { first, column: format!("{}.{column}", self.name), rows });
        }
        Ok(found)
    }

    /// The first value of a column that cannot be read.
    async fn first_in(&self, groups: &[Group], column: &str) -> Result<Option<Error>> {
        let spec = &self.table.columns[column];
        for group in groups {
            let header = group.header();
            let Some(position) = self.find(column, spec, &header) else { continue };
            let looked = [Looked { name: header[position].clone(), position, kind: spec.kind }];
            for file in &group.files {
                let problem = if group.is_parquet() {
                    self.first_row(file, group, column, &looked[0]).await?
                } else {
                    self.first_problem(file, group.dialect, For::Values(&looked)).await?
                };
                if problem.is_some() {
                    return Ok(problem);
                }
            }
        }
        Ok(None)
    }

    /// The first row of a Parquet file whose value of a column cannot be read.
    async fn first_row(
        &self,
        file: &File,
        group: &Group,
        column: &str,
        looked: &Looked,
    ) -> Result<Option<Error>> {
        let one = Group { files: vec![file.clone()], schema: group.schema.clone(), dialect: group.dialect };
        let raw = format!("raw_{}_file", self.name);
        self.register_raw(&raw, &one)?;
        let typed = self.typed(&one, &self.far_columns(&one, &raw).await?)?;
        let condition =
            typed.into_iter().find(|(name, _)| name == column).and_then(|(_, column)| column.unreadable);
        let Some(condition) = condition else { return Ok(None) };
        self.engine.tell("looking for the row", 0)?;
        let row = self.engine.first_row(&format!("SELECT {condition} FROM {raw}")).await?;
        let found = match group.schema.field(looked.position).data_type() {
            found if found.is_integer() => "other whole numbers",
            found if found.is_floating() => "other numbers",
            found if found.is_temporal() => "times that are too far away",
            _ => "other text",
        };
        let problem = format!("expected {}, found {found}", looked.kind.name());
        let (file, column) = (file.name.clone(), looked.name.clone());
        Ok(row.map(|row| Error::Row { file, row, column, problem }))
    }
}

/// Whether a field of the first line can be shown: it looks like the name of a column, and not like a number,
/// a date or a patient.
fn is_name(field: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || " _.#/()%".contains(letter);
    field.len() <= 64
        && field.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && field.chars().all(is_plain)
}

/// Refuses text of two bytes per letter, which spreadsheets write.
fn check_encoding(file: &File, head: &[u8]) -> Result<()> {
    let mut first = vec![];
    match file.format {
        // What cannot be unpacked is found by whoever reads it.
        Format::CsvGz => drop(MultiGzDecoder::new(head).take(4).read_to_end(&mut first)),
        _ => first.extend(head.iter().take(4)),
    }
    if is_utf16(&first) { Err(Error::Encoding { file: file.name.clone() }) } else { Ok(()) }
}

/// Whether a text begins as UTF-16 does: with a mark, or with an ASCII letter and half of the next.
pub(crate) fn is_utf16(first: &[u8]) -> bool {
    matches!(first, [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, 1..=255, 0, 1..=255] | [1..=255, 0, 1..=255, 0])
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
        .map(|(position, name)| if name.is_empty() { unnamed(position) } else { name })
        .collect())
}

/// What a column without a name is called.
pub(super) fn unnamed(position: usize) -> String {
    format!("column {position}")
}

fn other_type(file: &File, field: &Field, expected: ColumnKind) -> Error {
    Error::ColumnType {
        file: file.name.clone(),
        column: field.name().clone(),
        expected: expected.name(),
        found: field.data_type().to_string().to_lowercase(),
    }
}
