//! The files of one table: which columns they have, how they become a typed table, and what is wrong with them.

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
use crate::columns::{Typed, convert, no_list, null};
use crate::engine::{Engine, Progress, single, text_counts};
use crate::error::{Error, Result};
use crate::files::{File, Format, store_error, unreadable};
use crate::locate::{self, Dialect, For, Looked};
use crate::source::{Column, ColumnKind, Table, named};

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

/// What reads the files of one table.
pub(super) struct Reader<'a> {
    pub(super) engine: &'a Engine<'a>,
    pub(super) name: &'a str,
    pub(super) table: &'a Table,
    pub(super) differences: &'a Differences,
}

impl Reader<'_> {
    /// The table of these files.
    pub(super) async fn register_groups(&self, groups: Vec<Group>) -> Result<Vec<Unreadable>> {
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
    pub(super) fn find(&self, name: &str, column: &Column, header: &[String]) -> Option<usize> {
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
            let first = match first {
                Some(problem) => problem.to_string(),
                None => self.other_values(groups, &column).to_string(),
            };
            found.push(Unreadable { first, column: format!("{}.{column}", self.name), rows });
        }
        Ok(found)
    }

    /// A column of a Parquet file that holds other values than it should, in a row that is not known.
    fn other_values(&self, groups: &[Group], column: &str) -> Error {
        let (spec, file) = (&self.table.columns[column], &groups[0].files[0]);
        let header: Vec<String> =
            groups[0].schema.fields().iter().map(|field| field.name().clone()).collect();
        let found = self.find(column, spec, &header).map(|position| groups[0].schema.field(position));
        let found = found.map_or("other values", |field| match field.data_type() {
            found if found.is_integer() => "other whole numbers",
            found if found.is_floating() => "other numbers",
            _ => "other text",
        });
        let (file, column) = (file.name.clone(), column.to_owned());
        Error::ColumnType { file, column, expected: spec.kind.name(), found: found.into() }
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
