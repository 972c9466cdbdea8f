//! Files of bundles, of resources, or of lines of either, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};

use flate2::read::MultiGzDecoder;
use serde::de::{DeserializeSeed, IgnoredAny};
use serde_json::Value;
use serde_json::error::Category;

use super::WANTED;
use super::outline::{Entries, Object, Outline, OutlineEntry, Walk};
use super::references::{Addresses, last_part};
use super::resource_types::RESOURCE_TYPES;
use super::resources::rows;
use super::sheet::Sheet;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::files::{File, Format};
use crate::tables::{Unreadable, is_utf16};

/// How many resources are read between two signs of life.
const TOLD: u64 = 500;

/// Where a document is: in which file, and in which line where lines are documents.
#[derive(Clone, Copy)]
struct At<'a> {
    file: &'a str,
    line: Option<u64>,
    entry: Option<usize>,
}

pub(super) struct Reader<'a> {
    pub(super) engine: &'a Engine<'a>,
    pub(super) sheets: BTreeMap<&'static str, Sheet>,
    /// The types of resources that there are.
    pub(super) seen: BTreeSet<String>,
    /// What was left out, by resource and path.
    pub(super) unreadable: BTreeMap<String, Unreadable>,
    /// Of each type: how many there are, and how many were left out. Others than those that are read are
    /// `other`.
    pub(super) counts: BTreeMap<String, [u64; 2]>,
    /// Files without any document.
    pub(super) files_empty: u64,
    /// How many resources there are, those that are not read included.
    pub(super) resources: u64,
    /// The number of the one that is being read.
    pub(super) number: u64,
    /// How many encounters are among them.
    pub(super) encounters: u64,
}

impl Reader<'_> {
    /// Reads one file: a document per line, or one document.
    pub(super) fn read(&mut self, file: &File, bytes: fs::File) -> Result<()> {
        let damaged = |problem: String| Error::Damaged { file: file.name.clone(), problem };
        let failed = |line: u64, error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it is cut off".into()),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                damaged(format!("it cannot be unpacked after line {line}"))
            }
            kind => Error::Input { path: file.name.clone(), problem: kind.to_string() },
        };
        let mut bytes = BufReader::with_capacity(1 << 16, bytes);
        let head = bytes.fill_buf().map_err(|error| failed(0, error))?;
        let is_packed = head.starts_with(&[0x1f, 0x8b]);
        if is_utf16(&head[..head.len().min(4)]) {
            return Err(Error::Encoding { file: file.name.clone() });
        }
        if !is_packed && !head.is_empty() && file.format == Format::JsonGz {
            return Err(damaged("it cannot be unpacked".into()));
        }
        let mut bytes: Box<dyn BufRead> =
            if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(bytes))) } else { Box::new(bytes) };

        let lower = file.name.to_lowercase();
        let mut is_lines = [".ndjson", ".jsonl"]
            .iter()
            .any(|end| lower.trim_end_matches(".gz").ends_with(end))
            .then_some(true);
        let (mut buffer, mut documents) = (vec![], 0);
        for line in 1.. {
            buffer.clear();
            let length = bytes.read_until(b'\n', &mut buffer).map_err(|error| failed(line, error))?;
            if length == 0 {
                break;
            }
            if line == 1 && buffer.starts_with(b"\xef\xbb\xbf") {
                buffer.drain(..3);
            }
            if buffer.trim_ascii().is_empty() {
                continue;
            }
            // A first line that is a document is followed by others; one that is not is the beginning of one.
            let whole =
                !*is_lines.get_or_insert_with(|| serde_json::from_slice::<IgnoredAny>(&buffer).is_ok());
            if whole {
                bytes.read_to_end(&mut buffer).map_err(|error| failed(line, error))?;
            }
            let text = std::str::from_utf8(&buffer).map_err(|error| {
                let before = buffer[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
                damaged(format!("line {} is not UTF-8 text", line + before as u64))
            })?;
            documents += 1;
            let at = At { file: &file.name, line: (!whole).then_some(line), entry: None };
            self.document(text, at).map_err(|failure| match failure {
                Failure::Json(error) => damaged(json_problem(&error, line)),
                Failure::Other(error) => error,
            })?;
        }
        self.files_empty += u64::from(documents == 0);
        Ok(())
    }

    /// Takes a bundle or a resource.
    fn document(&mut self, text: &str, at: At<'_>) -> Result<(), Failure> {
        let outline = match serde_json::from_str(text).map_err(Failure::Json)? {
            Object::Is(outline) => outline,
            Object::Not => Outline::default(),
        };
        match outline.resource_type.as_ref().and_then(Value::as_str) {
            Some("Bundle") => match outline.entry.unwrap_or_default() {
                Entries::Are(entries) => self.bundle(text, &entries, at),
                Entries::Not => {
                    self.leave_out("Bundle", "entry", "expected a list", at);
                    Ok(())
                }
            },
            Some(kind) => {
                self.saw(kind)?;
                if let Some(kind) = wanted(kind).filter(|kind| self.is_asked(kind)) {
                    let value: Value = serde_json::from_str(text).map_err(Failure::Json)?;
                    self.resource(kind, &value, None, &Addresses::new(), at)?;
                }
                Ok(())
            }
            None => {
                self.leave_out("resource", "", "expected a FHIR resource", at);
                Ok(())
            }
        }
    }

    /// Takes the resources of a bundle, one at a time.
    fn bundle(&mut self, text: &str, entries: &[Object<OutlineEntry>], at: At<'_>) -> Result<(), Failure> {
        let text_of = |value: &Option<Value>| value.as_ref().and_then(Value::as_str).map(str::to_owned);
        let (mut kinds, mut urls, mut addresses) = (vec![], vec![], Addresses::new());
        for (position, entry) in entries.iter().enumerate() {
            let at = At { entry: Some(position + 1), ..at };
            kinds.push(None);
            urls.push(None);
            let resource = match entry {
                Object::Is(OutlineEntry { resource: Some(Object::Is(resource)), full_url }) => {
                    urls[position] = text_of(full_url);
                    resource
                }
                // An entry can be what became of a request, and have none.
                Object::Is(OutlineEntry { resource: None, .. }) => continue,
                Object::Is(_) | Object::Not => {
                    self.leave_out("resource", "", "expected a FHIR resource", at);
                    continue;
                }
            };
            match text_of(&resource.resource_type).as_deref() {
                Some("Bundle") => {
                    self.leave_out("Bundle", "entry", "a bundle inside of a bundle is not read", at);
                }
                Some(kind) => {
                    self.saw(kind)?;
                    kinds[position] = wanted(kind);
                }
                None => self.leave_out("resource", "", "expected a FHIR resource", at),
            }
            // References name the address of an entry, which need not be made of the resource's id, nor say
            // its type.
            if let Some(address) = &urls[position] {
                let id = text_of(&resource.id).unwrap_or_else(|| last_part(address).to_owned());
                addresses.insert(address.clone(), (kinds[position], id));
            }
        }
        let kinds: Vec<_> = kinds.into_iter().map(|kind| kind.filter(|kind| self.is_asked(kind))).collect();
        let mut failed = None;
        let each = &mut |position: usize, kind: &'static str, resource: &Value| {
            let at = At { entry: Some(position + 1), ..at };
            let taken = self.resource(kind, resource, urls[position].as_deref(), &addresses, at);
            taken.map_err(|error| failed = Some(error)).is_ok()
        };
        let walked = Walk { kinds: &kinds, each }.deserialize(&mut serde_json::Deserializer::from_str(text));
        match (failed, walked) {
            (Some(error), _) => Err(Failure::Other(error)),
            (None, walked) => walked.map_err(Failure::Json),
        }
    }

    /// Takes one resource.
    fn resource(
        &mut self,
        kind: &'static str,
        resource: &Value,
        address: Option<&str>,
        addresses: &Addresses,
        at: At<'_>,
    ) -> Result<()> {
        self.number += 1;
        match rows(kind, resource, self.number, address, addresses) {
            Ok(rows) => {
                self.encounters += u64::from(kind == "Encounter");
                for (table, row) in rows {
                    if let Some(sheet) = self.sheets.get_mut(table) {
                        sheet.push(row)?;
                    }
                }
            }
            Err(problem) => self.leave_out(kind, &problem.path, &problem.problem, at),
        }
        Ok(())
    }

    /// Whether the table of a kind of resource is asked for.
    fn is_asked(&self, kind: &str) -> bool {
        WANTED.iter().any(|(known, table)| *known == kind && self.sheets.contains_key(table))
    }

    fn saw(&mut self, kind: &str) -> Result<()> {
        // The name is shown, so it has to be one that FHIR knows.
        let known = RESOURCE_TYPES.iter().find(|known| **known == kind);
        if let Some(known) = known.filter(|known| !self.seen.contains(**known)) {
            self.seen.insert((*known).to_owned());
        }
        let counted = wanted(kind).filter(|kind| self.is_asked(kind)).unwrap_or("other");
        self.counts.entry(counted.to_owned()).or_default()[0] += 1;
        self.resources += 1;
        if self.resources % TOLD == 1 {
            self.engine.tell("reading resources", self.resources)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, kind: &str, path: &str, problem: &str, at: At<'_>) {
        if let Some(kind) = wanted(kind) {
            self.counts.entry(kind.to_owned()).or_default()[1] += 1;
        }
        let mut column = kind.to_owned();
        for part in path.split('.').filter(|part| !part.is_empty()) {
            column += ".";
            column += part.split('[').next().unwrap_or(part);
        }
        let found = self.unreadable.entry(column.clone()).or_insert_with(|| {
            let line = at.line.map(|line| format!(": line {line}"));
            let entry = at.entry.map(|entry| format!(": entry {entry}"));
            let path = if path.is_empty() { String::new() } else { format!(": `{path}`") };
            let position = [line, entry, Some(path)].into_iter().flatten().collect::<String>();
            Unreadable { first: format!("{}{position}: {problem}", at.file), column, rows: 0 }
        });
        found.rows += 1;
    }
}

/// Why a document could not be taken.
enum Failure {
    Json(serde_json::Error),
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

/// What is wrong with JSON that begins in this line. What the parser says of its form holds no value.
fn json_problem(error: &serde_json::Error, line: u64) -> String {
    let line = line + (error.line() as u64).saturating_sub(1);
    let said = error.to_string();
    let said = said.rsplit_once(" at line ").map_or(said.as_str(), |(said, _)| said);
    match error.classify() {
        Category::Eof => format!("it is cut off at line {line}"),
        Category::Syntax => format!("line {line}, column {}: {said}", error.column()),
        _ => format!("line {line}, column {}: it is not FHIR", error.column()),
    }
}

fn wanted(kind: &str) -> Option<&'static str> {
    WANTED.into_iter().map(|(known, _)| known).find(|known| *known == kind)
}
