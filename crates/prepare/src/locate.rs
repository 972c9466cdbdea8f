//! Where in a text file something is wrong. The engine reads fast and says that it could not; this reads
//! slowly and says where.

use std::collections::HashSet;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use gct::coding::whole;

use crate::error::Error;
use crate::files::Format;
use crate::functions::moment;
use crate::source::ColumnKind;

/// How a text file tells its columns apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// What is between them.
    pub(crate) delimiter: u8,
    /// Whether a field can be in quotes; else they are letters like any other.
    pub(crate) has_quotes: bool,
}

impl Dialect {
    pub(crate) const COMMAS: Dialect = Dialect { delimiter: b',', has_quotes: true };

    pub(crate) fn reader(self) -> csv::ReaderBuilder {
        let mut reader = csv::ReaderBuilder::new();
        reader.delimiter(self.delimiter).quoting(self.has_quotes).flexible(true);
        reader
    }
}

/// A column to look at: its name, its position in the file, and what it should hold.
#[derive(Debug, Clone)]
pub(crate) struct Looked {
    pub(crate) name: String,
    pub(crate) position: usize,
    pub(crate) kind: ColumnKind,
}

/// What to look for beside what makes a file unreadable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For<'a> {
    /// Nothing else.
    Damage,
    /// A value that is not what its column holds.
    Values(&'a [Looked]),
    /// A value, in whatever column, that holds rows: a quote was left open before them. These columns tell
    /// rows from text.
    Swallowed(&'a [Looked]),
    /// A key, given by the positions of its columns, that an earlier row has.
    Repetition(&'a [usize], &'a str),
}

impl PartialEq for Looked {
    fn eq(&self, other: &Self) -> bool {
        self.position == other.position
    }
}

impl Eq for Looked {}

/// The first thing that is wrong with a file, if anything is.
pub(crate) fn first_problem(
    name: &str,
    bytes: impl Read,
    format: Format,
    dialect: Dialect,
    what: For<'_>,
) -> Option<Error> {
    let bytes: Box<dyn Read> =
        if format == Format::CsvGz { Box::new(MultiGzDecoder::new(bytes)) } else { Box::new(bytes) };
    let mut reader = dialect.reader().from_reader(bytes);
    let header = match reader.byte_headers() {
        Ok(header) => header.clone(),
        Err(error) => return Some(unreadable(name, 0, error)),
    };
    let mut search = Search { header, delimiter: dialect.delimiter, what, seen: HashSet::new() };
    let mut record = csv::ByteRecord::new();
    for row in 1.. {
        match reader.read_byte_record(&mut record) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(error) => return Some(unreadable(name, row, error)),
        }
        if record.len() != search.header.len() {
            let (file, expected, found) = (name.to_owned(), search.header.len(), record.len());
            return Some(Error::Fields { file, row, expected, found });
        }
        if let Some((column, problem)) = search.problem(&record) {
            return Some(Error::Row { file: name.into(), row, column, problem });
        }
    }
    None
}

/// A search for the first row with a problem.
struct Search<'a> {
    header: csv::ByteRecord,
    delimiter: u8,
    what: For<'a>,
    /// The keys of earlier rows.
    seen: HashSet<Vec<String>>,
}

impl Search<'_> {
    /// The column of a row that has a problem, and the problem.
    fn problem(&mut self, record: &csv::ByteRecord) -> Option<(String, String)> {
        let fields: Result<Vec<&str>, usize> = (0..)
            .zip(record)
            .map(|(position, field)| std::str::from_utf8(field).map_err(|_| position))
            .collect();
        let fields = match fields {
            Ok(fields) => fields,
            Err(position) => return Some((self.column(position), "is not UTF-8 text".into())),
        };
        match self.what {
            For::Damage => None,
            For::Swallowed(columns) => {
                let position = swallows(&fields, columns, self.delimiter)?;
                let problem = "holds rows that follow it: a quote is left open";
                Some((self.column(position), problem.into()))
            }
            For::Values(columns) => columns.iter().find_map(|column| {
                Some((column.name.clone(), value_problem(column, fields[column.position])?))
            }),
            For::Repetition(key, column) => {
                let key: Vec<String> =
                    key.iter().map(|position| whole(fields[*position].trim()).to_owned()).collect();
                let is_repeated = key.iter().all(|part| !part.is_empty()) && !self.seen.insert(key);
                is_repeated.then(|| (column.into(), "is that of an earlier row; each may occur once".into()))
            }
        }
    }

    fn column(&self, position: usize) -> String {
        String::from_utf8_lossy(self.header.get(position).unwrap_or_default()).into_owned()
    }
}

/// What is wrong with a value of a column.
fn value_problem(column: &Looked, field: &str) -> Option<String> {
    if is_one_line(&column.name.to_lowercase(), column.kind) && field.contains('\n') {
        return Some("holds a line break; is a quote left open?".into());
    }
    let value = field.trim();
    let is_wrong = !value.is_empty() && !is(column.kind, value);
    is_wrong.then(|| format!("expected {}", column.kind.name()))
}

/// The position of the field of a record that holds rows of the table.
///
/// Text can have line breaks, and lines of it as many commas as a row. A line is a row if it also has what
/// these columns hold, and identifiers written as those of this record are.
fn swallows(record: &[&str], columns: &[Looked], delimiter: u8) -> Option<usize> {
    (0..record.len()).find(|position| {
        let lines: Vec<&str> = record[*position].lines().skip(1).collect();
        lines.iter().enumerate().any(|(number, line)| {
            let fields: Vec<&str> = line.split(char::from(delimiter)).collect();
            // The row in which the quote is closed goes on in the next field of the record.
            let is_last = number + 1 == lines.len() && fields.len() == position + 1;
            let is_whole = fields.len() == record.len();
            (is_whole || is_last) && is_row(&fields, record, *position, columns, is_whole)
        })
    })
}

/// Whether the fields of a line are those of a row, or of the beginning of one.
fn is_row(fields: &[&str], record: &[&str], swallowing: usize, columns: &[Looked], is_whole: bool) -> bool {
    let end = if is_whole { fields.len() } else { swallowing };
    let mut known = 0;
    for column in columns.iter().filter(|column| column.position < end && column.position != swallowing) {
        let (here, there) = (fields[column.position].trim(), record[column.position].trim());
        let fits = match column.kind {
            ColumnKind::Text | ColumnKind::Texts | ColumnKind::Moment => continue,
            ColumnKind::Id => are_alike(here, there),
            kind => here.is_empty() || is(kind, here),
        };
        if !fits {
            return false;
        }
        known += usize::from(!here.is_empty());
    }
    known > 0 || is_whole && columns.iter().all(|column| column.kind == ColumnKind::Text)
}

/// Whether two identifiers are of one make: both numbers, or equally long with the same letters between
/// words.
fn are_alike(one: &str, other: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(char::is_numeric);
    let same = |(a, b): (char, char)| a == b || a.is_alphanumeric() && b.is_alphanumeric();
    match (is_number(one), is_number(other)) {
        (false, false) => one.len() == other.len() && one.chars().zip(other.chars()).all(same),
        (both, of_them) => both && of_them,
    }
}

fn unreadable(name: &str, row: u64, error: csv::Error) -> Error {
    let problem = match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => "it is cut off".into(),
        csv::ErrorKind::Io(error) => format!("it cannot be unpacked after row {row} ({})", error.kind()),
        _ => format!("row {row} cannot be read"),
    };
    Error::Damaged { file: name.into(), problem }
}

/// Whether a value of a column can have no line break. In a code or an identifier it is a quote that was left
/// open, and the rest of the file.
pub(crate) fn is_one_line(name: &str, kind: ColumnKind) -> bool {
    matches!(kind, ColumnKind::Id | ColumnKind::Text) && !name.contains("description")
}

/// Whether a text is what a column should hold; the same as the queries that read it find.
pub(crate) fn is(kind: ColumnKind, text: &str) -> bool {
    match kind {
        ColumnKind::Id | ColumnKind::Text | ColumnKind::Texts | ColumnKind::Moment => true,
        ColumnKind::Integer => text.strip_suffix(".0").unwrap_or(text).parse::<i64>().is_ok(),
        ColumnKind::Number => text.parse::<f64>().is_ok(),
        ColumnKind::Time | ColumnKind::Day => moment(text).is_some(),
        ColumnKind::Boolean => {
            let words = ["true", "false", "t", "f", "yes", "no", "y", "n"];
            words.contains(&text.to_lowercase().as_str())
                || text.parse::<f64>().is_ok_and(|number| number == 0.0 || number == 1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &[u8], what: For<'_>) -> String {
        let found = first_problem("t.csv", text, Format::Csv, Dialect::COMMAS, what);
        found.map_or_else(|| "none".into(), |error| error.to_string())
    }

    #[test]
    fn the_first_problem_is_named_by_row_and_column_and_not_by_value() {
        let kinds = [Looked { name: "offset".into(), position: 1, kind: ColumnKind::Integer }];
        assert_eq!(problem(b"id,offset\n1,-5\n2,\n3,7.0\n", For::Values(&kinds)), "none");
        assert_eq!(
            problem(b"id,offset\n1,2\n2,\"se\ncret\"\n", For::Values(&kinds)),
            "t.csv: row 2: column `offset`: expected a whole number"
        );
        assert_eq!(problem(b"id,offset\n1\n", For::Damage), "t.csv: row 1: expected 2 fields, found 1");
        assert_eq!(
            problem(b"id,offset\n1,\xff\n", For::Damage),
            "t.csv: row 1: column `offset`: is not UTF-8 text"
        );
        assert_eq!(
            problem(b"id,offset\n1,2\n1,3\n", For::Repetition(&[0], "id")),
            "t.csv: row 2: column `id`: is that of an earlier row; each may occur once"
        );
    }

    #[test]
    fn rows_inside_of_a_field_are_told_from_text() {
        let columns = [
            Looked { name: "id".into(), position: 0, kind: ColumnKind::Id },
            Looked { name: "on".into(), position: 1, kind: ColumnKind::Time },
        ];
        let swallowed =
            |rows: &str| problem(format!("id,on,note,x\n{rows}").as_bytes(), For::Swallowed(&columns));
        let open = "t.csv: row 1: column `note`: holds rows that follow it: a quote is left open";
        assert_eq!(swallowed("7,2020-01-01,\"a,u\n12,2020-01-02,b,v\n9,2020-01-03,c\",w\n"), open);
        assert_eq!(swallowed("7,2020-01-01,\"a,u\n9,2020-01-03,c\",w\n"), open);
        assert_eq!(
            swallowed("7,2020-01-01,\"one, two\nthree, four, five, six\nseven, eight, nine\",w\n"),
            "none"
        );
        assert_eq!(swallowed("7,2020-01-01,\"one\ntwo\",w\n8,2020-01-01,x,w\n"), "none");
    }

    #[test]
    fn a_cut_off_archive_is_told() {
        let mut whole = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
        let rows: String = (0..10_000).map(|row| format!("{row},{}\n", row * 7919 % 10007)).collect();
        std::io::Write::write_all(&mut whole, format!("a,b\n{rows}").as_bytes()).unwrap();
        let whole = whole.finish().unwrap();
        let found =
            first_problem("t.csv.gz", &whole[..whole.len() / 2], Format::CsvGz, Dialect::COMMAS, For::Damage);
        assert_eq!(found.unwrap().to_string(), "t.csv.gz is damaged: it is cut off");
        assert!(first_problem("t.csv.gz", &whole[..], Format::CsvGz, Dialect::COMMAS, For::Damage).is_none());
    }
}
