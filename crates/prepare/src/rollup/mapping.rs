//! Files that map codes to groups: a table with `code` and `group`, or CCS, CCSR and phecodes as they are
//! published.

use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use gct::coding::{Group, ICD9, ICD10, Mapping, procedures_of};
use gct::record::CodeKind;

use crate::error::{Error, Result};
use crate::tables::is_utf16;

/// A kind of file, recognised by its columns. Names are compared without case, quotes, spaces and signs.
struct Format {
    /// What the column of codes can be called, and the vocabulary of ICD that its codes are of, if one.
    codes: &'static [(&'static str, &'static str)],
    /// Columns of groups with those of their descriptions. The first that a row has anything in counts.
    groups: &'static [[&'static str; 2]],
    /// What the groups are called by, so that 401.1 of one vocabulary is not that of another.
    prefix: &'static str,
}

const FORMATS: [Format; 4] = [
    Format {
        codes: &[("icd10cmcode", ICD10), ("icd10pcs", ICD10)],
        groups: &[
            ["defaultccsrcategoryip", "defaultccsrcategorydescriptionip"],
            ["ccsrcategory1", "ccsrcategory1description"],
            ["prccsr", "prccsrdescription"],
        ],
        prefix: "CCSR:",
    },
    Format {
        codes: &[("icd9cmcode", ICD9), ("icd10cmcode", ICD10), ("icd10pcscode", ICD10)],
        groups: &[["ccscategory", "ccscategorydescription"]],
        prefix: "CCS:",
    },
    Format {
        codes: &[("icd10cm", ICD10), ("icd10", ICD10), ("icd9cm", ICD9), ("icd9", ICD9)],
        groups: &[["phecode", "phecodestr"], ["phecode", "phecodestring"], ["phecode", "phenotype"]],
        prefix: "PHECODE:",
    },
    Format { codes: &[("code", "")], groups: &[["group", "description"]], prefix: "" },
];

/// The title of a file can stand before the names of its columns.
const HEADER_LINES: usize = 3;

/// The columns of a file.
struct Columns {
    code: usize,
    /// The vocabulary of ICD that all codes are of, or none if each says it by its prefix.
    vocabulary: String,
    groups: Vec<(usize, Option<usize>)>,
    prefix: &'static str,
}

impl Columns {
    /// The columns that a line names, if it is the header of a mapping of this kind of codes.
    fn of(header: &csv::StringRecord, kind: CodeKind) -> Option<Self> {
        let names: Vec<String> = header.iter().map(simple).collect();
        let find = |name: &str| names.iter().position(|known| known == name);
        FORMATS.iter().find_map(|format| {
            let (code, version) =
                format.codes.iter().find_map(|(name, version)| Some((find(name)?, *version)))?;
            let groups = format.groups.iter().filter_map(|[group, text]| Some((find(group)?, find(text))));
            let mut groups: Vec<_> = groups.collect();
            // One that says what it means comes first.
            groups.sort_by_key(|(_, description)| description.is_none());
            let vocabulary = match kind {
                CodeKind::Treatment if !version.is_empty() => procedures_of(version),
                _ => version.into(),
            };
            (!groups.is_empty()).then_some(Columns { code, vocabulary, groups, prefix: format.prefix })
        })
    }

    /// The group of a row, if it has one.
    fn group(&self, row: &csv::StringRecord) -> Option<Group> {
        let text = |column: usize| Some(unquoted(row.get(column)?)).filter(|text| !text.is_empty());
        // CCSR says so of a diagnosis that cannot be the first one; its next column has a category.
        let is_group = |group: &&str| !(self.prefix == "CCSR:" && group.starts_with("XXX"));
        self.groups.iter().find_map(|(group, description)| {
            let code = format!("{}{}", self.prefix, text(*group).filter(is_group)?);
            Some(Group { code, description: description.and_then(text).map(str::to_owned) })
        })
    }
}

/// A name of a column without case, quotes, spaces and signs.
fn simple(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
}

/// A value without the single quotes and spaces around it.
fn unquoted(value: &str) -> &str {
    value.trim().trim_matches('\'').trim()
}

/// Reads a file that maps codes of this kind.
pub(super) fn read(path: &Path, kind: CodeKind) -> Result<Mapping> {
    let file = path.display().to_string();
    let text = text(path, &file)?;
    let first_lines = || text.lines().take(HEADER_LINES);
    let delimiter = if first_lines().any(|line| line.contains('\t')) { b'\t' } else { b',' };
    let mut reader = csv::ReaderBuilder::new();
    reader.has_headers(false).flexible(true).delimiter(delimiter);
    let mut reader = reader.from_reader(text.as_bytes());
    let mut rows = reader.records().map(|row| row.unwrap_or_default());
    let mut first = None;
    for header in rows.by_ref().take(HEADER_LINES) {
        if let Some(columns) = Columns::of(&header, kind) {
            return of_rows(&file, &columns, header.len(), rows);
        }
        first.get_or_insert(header);
    }
    Err(no_columns(&file, &first.unwrap_or_default()))
}

fn of_rows(
    file: &str,
    columns: &Columns,
    expected: usize,
    rows: impl Iterator<Item = csv::StringRecord>,
) -> Result<Mapping> {
    let mut mapping = Mapping::default();
    for (row, record) in (1..).zip(rows) {
        if record.len() != expected {
            return Err(Error::Fields { file: file.into(), row, expected, found: record.len() });
        }
        let code = unquoted(record.get(columns.code).unwrap_or_default());
        if let (false, Some(group)) = (code.is_empty(), columns.group(&record)) {
            mapping.add(&columns.vocabulary, code, group).map_err(|problem| Error::Rollup {
                problem: format!("{file}: row {row}: {problem}"),
                hint: "keep one row per code, with a group of at most 1000 bytes; rows are counted from 1 without the header".into(),
            })?;
        }
    }
    if mapping.is_empty() { Err(Error::Empty { file: file.into() }) } else { Ok(mapping) }
}

/// The text of a file, unpacked. Bytes that are no UTF-8 can only be of descriptions.
fn text(path: &Path, file: &str) -> Result<String> {
    let mut bytes = gct::files::read(path)
        .map_err(|error| Error::Input { path: file.into(), problem: error.to_string() })?;
    if bytes.starts_with(&[0x1f, 0x8b]) {
        let mut unpacked = vec![];
        let damaged = |_| Error::Damaged { file: file.into(), problem: "it cannot be unpacked".into() };
        MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).map_err(damaged)?;
        bytes = unpacked;
    }
    match is_utf16(&bytes[..bytes.len().min(4)]) {
        true => Err(Error::Encoding { file: file.into() }),
        false => Ok(String::from_utf8_lossy(&bytes).trim_start_matches('\u{feff}').to_owned()),
    }
}

fn no_columns(file: &str, header: &csv::StringRecord) -> Error {
    if header.is_empty() {
        return Error::Empty { file: file.into() };
    }
    let found: Vec<&str> = header.iter().take(40).map(unquoted).collect();
    Error::Rollup {
        problem: format!("{file} maps no codes to groups; its columns are {}", found.join(", ")),
        hint: "name them `code` and `group`, or give a file of CCS, CCSR or phecodes as it is published"
            .into(),
    }
}
