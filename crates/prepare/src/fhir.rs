//! FHIR R4 as flat tables, which a source's SQL then reads like any others. Resources are nested, refer to each other in four ways,
//! and lie in bundles or line by line; none of that is for SQL.
//!
//! ```text
//! Encounter          encounter, and a reason per diagnosis
//! Condition          condition
//! Procedure          procedure, and a row of `reason` per reason
//! MedicationRequest  medication_request, and a row of `reason` per reason
//! Medication         medication
//! Observation        observation: a row, or one per component
//! Patient            patient
//! ```
//!
//! Files are read one after the other, and rows go to disk as they come: what is in memory is one line or one bundle. A table has
//! the columns that `source.toml` names. JSON that is broken is an error; a resource that is not what FHIR says is left out and
//! counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::arrow::compute::kernels::cast_utils::string_to_datetime;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::json::ReaderBuilder;
use datafusion::error::DataFusionError;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use flate2::read::MultiGzDecoder;
use futures::TryStreamExt;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::error::Category;

use crate::engine::{Engine, Progress};
use crate::error::{Error, Result};
use crate::files::{File, Format, Place};
use crate::source::{ColumnKind, Source};
use crate::tables::{Unreadable, data_type};

/// Rows that are written at once.
const BATCH: usize = 8192;

/// How many resources are read between two signs of life.
const TOLD: u64 = 500;

/// The resources that are read, and the tables that are made of them, beside that of reasons.
const WANTED: [(&str, &str); 7] = [
    ("Encounter", "encounter"),
    ("Condition", "condition"),
    ("Procedure", "procedure"),
    ("MedicationRequest", "medication_request"),
    ("Medication", "medication"),
    ("Observation", "observation"),
    ("Patient", "patient"),
];

/// Short names of well-known systems of codes.
const SYSTEMS: [(&str, &str); 33] = [
    ("http://snomed.info/sct", "SNOMED"),
    ("urn:oid:2.16.840.1.113883.6.96", "SNOMED"),
    ("http://loinc.org", "LOINC"),
    ("urn:oid:2.16.840.1.113883.6.1", "LOINC"),
    ("http://www.nlm.nih.gov/research/umls/rxnorm", "RXNORM"),
    ("urn:oid:2.16.840.1.113883.6.88", "RXNORM"),
    ("http://hl7.org/fhir/sid/icd-10-cm", "ICD10CM"),
    ("urn:oid:2.16.840.1.113883.6.90", "ICD10CM"),
    ("http://hl7.org/fhir/sid/icd-10", "ICD10"),
    ("urn:oid:2.16.840.1.113883.6.3", "ICD10"),
    ("http://www.cms.gov/Medicare/Coding/ICD10", "ICD10PCS"),
    ("http://hl7.org/fhir/sid/icd-10-pcs", "ICD10PCS"),
    ("urn:oid:2.16.840.1.113883.6.4", "ICD10PCS"),
    ("http://hl7.org/fhir/sid/icd-9-cm", "ICD9CM"),
    ("http://terminology.hl7.org/CodeSystem/icd9cm", "ICD9CM"),
    ("urn:oid:2.16.840.1.113883.6.103", "ICD9CM"),
    ("http://hl7.org/fhir/sid/icd-9-cm/procedure", "ICD9PROC"),
    ("urn:oid:2.16.840.1.113883.6.104", "ICD9PROC"),
    ("http://www.ama-assn.org/go/cpt", "CPT4"),
    ("urn:oid:2.16.840.1.113883.6.12", "CPT4"),
    ("https://www.cms.gov/Medicare/Coding/HCPCSReleaseCodeSets", "HCPCS"),
    ("http://terminology.hl7.org/CodeSystem/HCPCS", "HCPCS"),
    ("urn:oid:2.16.840.1.113883.6.285", "HCPCS"),
    ("http://hl7.org/fhir/sid/ndc", "NDC"),
    ("urn:oid:2.16.840.1.113883.6.69", "NDC"),
    ("http://hl7.org/fhir/sid/cvx", "CVX"),
    ("http://www.whocc.no/atc", "ATC"),
    ("http://fhir.de/CodeSystem/bfarm/atc", "ATC"),
    ("http://fhir.de/CodeSystem/bfarm/icd-10-gm", "ICD10GM"),
    ("http://fhir.de/CodeSystem/dimdi/icd-10-gm", "ICD10GM"),
    ("http://fhir.de/CodeSystem/bfarm/ops", "OPS"),
    ("http://fhir.de/CodeSystem/dimdi/ops", "OPS"),
    ("https://dmd.nhs.uk", "DMD"),
];

/// Reads all resources of a place into those tables that are asked for; where these are, and what was left out.
pub(crate) async fn flatten(
    engine: &Engine<'_>,
    source: &Source,
    place: &Place,
    asked: &BTreeSet<String>,
) -> Result<(Place, Vec<Unreadable>)> {
    let folder = engine.place("flat");
    fs::create_dir(&folder).map_err(|error| unwritable(&folder, &error.to_string()))?;
    let mut sheets = BTreeMap::new();
    for name in WANTED.into_iter().map(|(_, table)| table).chain(["reason"]) {
        if let Some(table) = source.description.tables.get(name).filter(|_| asked.contains(name)) {
            let columns = table.columns.iter().map(|(name, column)| (name.as_str(), column.kind));
            sheets.insert(name, Sheet::create(&folder.join(format!("{name}.parquet")), columns)?);
        }
    }
    let mut reader = Reader {
        engine,
        sheets,
        seen: BTreeSet::new(),
        unreadable: BTreeMap::new(),
        resources: 0,
        number: 0,
        encounters: 0,
    };
    let is_json = |file: &File| matches!(file.format, Format::Json | Format::JsonGz);
    for file in place.all().iter().filter(|file| place.is_file || is_json(file)) {
        reader.read(file, open(engine, file).await?)?;
    }
    let Reader { sheets, seen, unreadable, encounters, .. } = reader;
    for sheet in sheets.into_values() {
        sheet.close()?;
    }
    if encounters == 0 {
        let of_encounters = unreadable.iter().find(|(column, _)| column.starts_with("Encounter."));
        let first = of_encounters.or_else(|| unreadable.iter().next().filter(|_| seen.is_empty()));
        return Err(match first {
            Some((_, found)) => Error::Resource { problem: found.first.clone() },
            None => Error::NoResource {
                place: place.name.clone(),
                resource: "Encounter",
                found: seen.into_iter().collect(),
            },
        });
    }
    let mut flat = Place::list(&engine.context, &folder.display().to_string()).await?;
    // The user knows their own folder, not this one.
    flat.name.clone_from(&place.name);
    Ok((flat, unreadable.into_values().collect()))
}

fn unwritable(path: &Path, problem: &str) -> Error {
    Error::Place { place: path.display().to_string(), problem: problem.into() }
}

/// The bytes of a file as they are stored. One that is elsewhere is copied first, since it may not fit into memory.
async fn open(engine: &Engine<'_>, file: &File) -> Result<fs::File> {
    let refuse = |problem: String| Error::Place { place: file.name.clone(), problem };
    let path = if file.url.scheme() == "file" {
        file.url.get_url().to_file_path().map_err(|()| refuse("not a path".into()))?
    } else {
        let path = engine.place("download");
        let mut copy = fs::File::create(&path).map_err(|error| unwritable(&path, &error.to_string()))?;
        let store = file.store(&engine.context)?;
        let object = object_store::ObjectStoreExt::get(store.as_ref(), &file.path).await;
        let mut parts = object.map_err(|error| refuse(error.to_string()))?.into_stream();
        while let Some(part) = parts.try_next().await.map_err(|error| refuse(error.to_string()))? {
            copy.write_all(&part).map_err(|error| unwritable(&path, &error.to_string()))?;
            engine.tell(Progress { step: "fetching resources", rows: 0, total: None })?;
        }
        path
    };
    fs::File::open(path).map_err(|error| refuse(error.to_string()))
}

/// A table that is being written.
struct Sheet {
    schema: SchemaRef,
    writer: ArrowWriter<fs::File>,
    rows: Vec<Row>,
}

impl Sheet {
    fn create<'a>(path: &Path, columns: impl Iterator<Item = (&'a str, ColumnKind)>) -> Result<Self> {
        let fields = columns.map(|(name, kind)| Field::new(name, data_type(kind), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let file = fs::File::create(path).map_err(|error| unwritable(path, &error.to_string()))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(16 * BATCH))
            .build();
        let writer =
            ArrowWriter::try_new(file, schema.clone(), Some(properties)).map_err(DataFusionError::from)?;
        Ok(Sheet { schema, writer, rows: vec![] })
    }

    fn push(&mut self, row: Row) -> Result<()> {
        self.rows.push(row);
        if self.rows.len() >= BATCH { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        let mut decoder =
            ReaderBuilder::new(self.schema.clone()).build_decoder().map_err(DataFusionError::from)?;
        decoder.serialize(&self.rows).map_err(DataFusionError::from)?;
        self.rows.clear();
        if let Some(batch) = decoder.flush().map_err(DataFusionError::from)? {
            self.writer.write(&batch).map_err(DataFusionError::from)?;
        }
        Ok(())
    }

    fn close(mut self) -> Result<()> {
        self.write()?;
        self.writer.close().map_err(DataFusionError::from)?;
        Ok(())
    }
}

/// A row of any table, which takes those of its columns that it has.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
struct Row {
    id: String,
    resource: u64,
    updated: Option<i64>,
    encounter: Option<String>,
    status: Option<String>,
    code: Option<String>,
    description: Option<String>,
    // Of encounters.
    class: Option<String>,
    patient: Option<String>,
    part_of: Option<String>,
    start: Option<i64>,
    stop: Option<i64>,
    last_day: Option<i64>,
    // Of patients.
    deceased: Option<bool>,
    deceased_day: Option<i64>,
    // Of medication requests.
    do_not_perform: Option<bool>,
    medication: Option<String>,
    // Of observations.
    category: Option<String>,
    numeric_value: Option<f64>,
    value: Option<String>,
    value_description: Option<String>,
    absent: Option<bool>,
    // Of reasons.
    condition: Option<String>,
}

/// Where a document is: in which file, and in which line where lines are documents.
#[derive(Clone, Copy)]
struct At<'a> {
    file: &'a str,
    line: Option<u64>,
    entry: Option<usize>,
}

/// What is wrong with a resource, without a value of it.
#[derive(Debug, PartialEq, Eq)]
struct Problem {
    path: String,
    problem: String,
}

struct Reader<'a> {
    engine: &'a Engine<'a>,
    sheets: BTreeMap<&'static str, Sheet>,
    /// The types of resources that there are.
    seen: BTreeSet<String>,
    /// What was left out, by resource and path.
    unreadable: BTreeMap<String, Unreadable>,
    /// How many resources there are, those that are not read included.
    resources: u64,
    /// The number of the one that is being read.
    number: u64,
    /// How many encounters are among them.
    encounters: u64,
}

impl Reader<'_> {
    /// Reads one file: a document per line, or one document.
    fn read(&mut self, file: &File, bytes: fs::File) -> Result<()> {
        let damaged = |problem: String| Error::Damaged { file: file.name.clone(), problem };
        let failed = |line: u64, error: io::Error| match error.kind() {
            io::ErrorKind::UnexpectedEof => damaged("it is cut off".into()),
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                damaged(format!("it cannot be unpacked after line {line}"))
            }
            kind => Error::Place { place: file.name.clone(), problem: kind.to_string() },
        };
        let mut bytes = BufReader::with_capacity(1 << 16, bytes);
        let head = bytes.fill_buf().map_err(|error| failed(0, error))?;
        let is_packed = head.starts_with(&[0x1f, 0x8b]);
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
        let mut buffer = vec![];
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
            let at = At { file: &file.name, line: (!whole).then_some(line), entry: None };
            self.document(text, at).map_err(|failure| match failure {
                Failure::Json(error) => damaged(json_problem(&error, line)),
                Failure::Other(error) => error,
            })?;
        }
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
            // References name the address of an entry, which need not be made of the resource's id, nor say its type.
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
        // The name is shown, so it has to be one.
        if !self.seen.contains(kind) && kind.len() < 50 && kind.bytes().all(|byte| byte.is_ascii_alphabetic())
        {
            self.seen.insert(kind.to_owned());
        }
        self.resources += 1;
        if self.resources % TOLD == 1 {
            let progress = Progress { step: "reading resources", rows: self.resources, total: None };
            self.engine.tell(progress)?;
        }
        Ok(())
    }

    fn leave_out(&mut self, kind: &str, path: &str, problem: &str, at: At<'_>) {
        let mut column = kind.to_owned();
        for part in path.split('.').filter(|part| !part.is_empty()) {
            column += ".";
            column += part.split('[').next().unwrap_or(part);
        }
        let found = self.unreadable.entry(column.clone()).or_insert_with(|| {
            let line = at.line.map(|line| format!(": line {line}"));
            let entry = at.entry.map(|entry| format!(": entry {entry}"));
            let path = if path.is_empty() { String::new() } else { format!(": `{path}`") };
            let place = [line, entry, Some(path)].into_iter().flatten().collect::<String>();
            Unreadable { first: format!("{}{place}: {problem}", at.file), column, rows: 0 }
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

/// What a document is, and for a bundle what is in it. Values that are something else than text are found out later.
#[derive(Default)]
struct Outline {
    resource_type: Option<Value>,
    entry: Option<Entries>,
}

#[derive(Default)]
struct OutlineEntry {
    full_url: Option<Value>,
    resource: Option<Object<OutlineResource>>,
}

#[derive(Default)]
struct OutlineResource {
    resource_type: Option<Value>,
    id: Option<Value>,
}

/// An entry whose resource is read.
#[derive(Default)]
struct WholeEntry {
    resource: Option<Value>,
}

/// The names of their fields.
#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    ResourceType,
    Entry,
    FullUrl,
    Resource,
    Id,
    #[serde(other)]
    Other,
}

/// An object of which some fields are read. What serde derives gives up a whole document for one part that is something else, or for a
/// field that is there twice; here the last one counts.
trait Fields: Default {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error>;
}

fn pass<'de, A: MapAccess<'de>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(drop)
}

impl Fields for Outline {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::ResourceType => self.resource_type = map.next_value()?,
            Key::Entry => self.entry = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

impl Fields for OutlineEntry {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::FullUrl => self.full_url = map.next_value()?,
            Key::Resource => self.resource = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

impl Fields for OutlineResource {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::ResourceType => self.resource_type = map.next_value()?,
            Key::Id => self.id = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

impl Fields for WholeEntry {
    fn take<'de, A: MapAccess<'de>>(&mut self, key: Key, map: &mut A) -> Result<(), A::Error> {
        match key {
            Key::Resource => self.resource = map.next_value()?,
            _ => pass(map)?,
        }
        Ok(())
    }
}

/// An object, or something else where one should be.
enum Object<T> {
    Is(T),
    Not,
}

/// The entries of a bundle, or something else where they should be.
enum Entries {
    Are(Vec<Object<OutlineEntry>>),
    Not,
}

impl Default for Entries {
    fn default() -> Self {
        Entries::Are(vec![])
    }
}

/// Takes what is expected, and passes over everything else.
struct Taking<T>(PhantomData<T>);

/// Everything of JSON that is neither an object nor a list.
macro_rules! pass_over_scalars {
    ($not:expr) => {
        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("JSON")
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
            Ok($not)
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok($not)
        }
    };
}

impl<'de, T: Fields> Visitor<'de> for Taking<Object<T>> {
    type Value = Object<T>;

    pass_over_scalars!(Object::Not);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<T>, A::Error> {
        let mut found = T::default();
        while let Some(key) = map.next_key()? {
            found.take(key, &mut map)?;
        }
        Ok(Object::Is(found))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Object<T>, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Object::Not)
    }
}

impl<'de> Visitor<'de> for Taking<Entries> {
    type Value = Entries;

    pass_over_scalars!(Entries::Not);

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Entries::Not)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Entries, A::Error> {
        let mut entries = vec![];
        while let Some(entry) = elements.next_element()? {
            entries.push(entry);
        }
        Ok(Entries::Are(entries))
    }
}

impl<'de, T: Fields> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking::<Self>(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Taking::<Self>(PhantomData))
    }
}

/// Goes through a bundle and hands out those of its resources that are of some kind, so that only one of them is in memory.
struct Walk<'a, F> {
    kinds: &'a [Option<&'static str>],
    each: &'a mut F,
}

impl<'de, F: FnMut(usize, &'static str, &Value) -> bool> DeserializeSeed<'de> for Walk<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(usize, &'static str, &Value) -> bool> Visitor<'de> for Walk<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a bundle or its entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key()? {
            match key {
                Key::Entry => map.next_value_seed(Walk { kinds: self.kinds, each: &mut *self.each })?,
                _ => pass(&mut map)?,
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        for (position, kind) in self.kinds.iter().enumerate() {
            let Some(kind) = kind else {
                entries.next_element::<IgnoredAny>()?;
                continue;
            };
            if let Some(Object::Is(WholeEntry { resource: Some(resource) })) = entries.next_element()?
                && !(self.each)(position, kind, &resource)
            {
                return Err(A::Error::custom("stopped"));
            }
        }
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// A list that may be missing.
type List<T> = Option<Vec<T>>;

#[derive(Deserialize)]
struct Identified {
    id: Option<String>,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    last_updated: Option<Moment>,
}

#[derive(Deserialize)]
struct Concept {
    coding: List<Coding>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Coding {
    system: Option<String>,
    code: Option<String>,
    display: Option<String>,
}

#[derive(Deserialize)]
struct Reference {
    reference: Option<String>,
}

#[derive(Deserialize)]
struct Period {
    start: Option<Moment>,
    end: Option<Moment>,
}

#[derive(Deserialize)]
struct Quantity {
    value: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Encounter {
    status: Option<String>,
    class: Option<Coding>,
    subject: Option<Reference>,
    part_of: Option<Reference>,
    period: Option<Period>,
    diagnosis: List<EncounterDiagnosis>,
}

#[derive(Deserialize)]
struct EncounterDiagnosis {
    condition: Option<Reference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    verification_status: Option<Concept>,
    code: Option<Concept>,
    encounter: Option<Reference>,
    /// What R4's `encounter` was called before, and still is in data that calls itself R4.
    context: Option<Reference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Treatment {
    status: Option<String>,
    do_not_perform: Option<bool>,
    /// Of a procedure.
    code: Option<Concept>,
    /// Of a medication request.
    medication_codeable_concept: Option<Concept>,
    medication_reference: Option<Reference>,
    encounter: Option<Reference>,
    context: Option<Reference>,
    reason_code: List<Concept>,
    reason_reference: List<Reference>,
}

#[derive(Deserialize)]
struct Medication {
    code: Option<Concept>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Observation {
    status: Option<String>,
    category: List<Concept>,
    encounter: Option<Reference>,
    context: Option<Reference>,
    code: Option<Concept>,
    value_quantity: Option<Quantity>,
    value_integer: Option<f64>,
    value_codeable_concept: Option<Concept>,
    value_string: Option<String>,
    value_boolean: Option<bool>,
    data_absent_reason: Option<Concept>,
    component: List<Component>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Component {
    code: Option<Concept>,
    value_quantity: Option<Quantity>,
    value_integer: Option<f64>,
    value_codeable_concept: Option<Concept>,
    value_string: Option<String>,
    value_boolean: Option<bool>,
    data_absent_reason: Option<Concept>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Patient {
    deceased_boolean: Option<bool>,
    deceased_date_time: Option<Moment>,
}

/// A date or a time: when it is or begins, and which day that is where it was written, if it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Moment {
    at: i64,
    day: Option<i64>,
}

const NOT_A_TIME: &str = "expected a date or time";

impl Moment {
    /// Reads `2020`, `2020-05`, `2020-05-03` or `2020-05-03T10:00:00-05:00`.
    fn read(text: &str) -> Option<Moment> {
        let greenwich: Tz = "+00:00".parse().ok()?;
        let at = |text: &str| Some(string_to_datetime(&greenwich, text).ok()?.timestamp_micros());
        match text.len() {
            _ if !text.is_ascii() => None,
            4 => Some(Moment { at: at(&format!("{text}-01-01"))?, day: None }),
            7 => Some(Moment { at: at(&format!("{text}-01"))?, day: None }),
            _ => Some(Moment { at: at(text)?, day: at(text.get(..10)?) }),
        }
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Moment::read(text.trim()).ok_or_else(|| D::Error::custom(NOT_A_TIME))
    }
}

/// A code with its system's name before it, and what it means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Coded {
    code: Option<String>,
    description: Option<String>,
}

impl Concept {
    /// The first of its codes.
    fn coded(&self) -> Coded {
        let has_code = |coding: &&Coding| coding.code.as_ref().is_some_and(|code| !code.trim().is_empty());
        let coding = self.coding.iter().flatten().find(has_code);
        let display = coding.and_then(|coding| coding.display.clone());
        Coded { code: coding.and_then(Coding::named), description: display.or_else(|| self.text.clone()) }
    }

    /// Whether one of its codes is this one, whatever its system.
    fn has(&self, code: &str) -> bool {
        self.coding.iter().flatten().any(|coding| coding.code.as_deref() == Some(code))
    }
}

impl Coding {
    /// `SNOMED:123`; a system without a short name stays as it is.
    fn named(&self) -> Option<String> {
        let code = self.code.as_ref()?.trim();
        let Some(system) = self.system.as_ref().map(|system| system.trim().trim_end_matches('/')) else {
            return Some(code.to_owned());
        };
        let known = SYSTEMS.iter().find(|(address, _)| *address == system);
        Some(format!("{}:{code}", known.map_or(system, |(_, name)| name)))
    }
}

fn coded(concept: Option<&Concept>) -> Coded {
    concept.map(Concept::coded).unwrap_or_default()
}

/// What a reference leads to.
#[derive(Debug, PartialEq)]
enum Target<'a> {
    /// A resource of its own.
    Id(String),
    /// One inside of the resource that refers to it.
    Inside(&'a Value),
}

/// What the entries of a bundle are, by their addresses: the kind of a resource, if it is one that is read, and its id.
type Addresses = HashMap<String, (Option<&'static str>, String)>;

/// What references can lead to, beside other resources.
struct Scope<'a> {
    contained: &'a [Value],
    addresses: &'a Addresses,
}

impl<'a> Scope<'a> {
    /// Where a reference leads, if to a resource of this kind.
    fn target(&self, reference: Option<&Reference>, kind: &str) -> Option<Target<'a>> {
        let text = reference?.reference.as_deref()?.trim();
        if let Some(name) = text.strip_prefix('#') {
            let is_it = |inside: &&Value| inside["id"] == name && inside["resourceType"] == kind;
            return self.contained.iter().find(is_it).map(Target::Inside);
        }
        if let Some((found, id)) = self.addresses.get(text) {
            return (*found == Some(kind)).then(|| Target::Id(id.clone()));
        }
        // One that asks a server for what fits leads nowhere here.
        if text.contains('?') {
            return None;
        }
        let text = text.split("/_history/").next().unwrap_or(text);
        let mut parts = text.rsplit('/').skip(1);
        if parts.next().is_some_and(|of| of != kind && of.starts_with(|first: char| first.is_uppercase())) {
            return None;
        }
        let id = last_part(text);
        (!id.is_empty()).then(|| Target::Id(id.to_owned()))
    }

    fn id(&self, reference: Option<&Reference>, kind: &str) -> Option<String> {
        match self.target(reference, kind)? {
            Target::Id(id) => Some(id),
            Target::Inside(_) => None,
        }
    }
}

/// The id in `Encounter/123`, `https://server/fhir/Encounter/123` or `urn:uuid:123`.
fn last_part(address: &str) -> &str {
    let last = address.rsplit('/').next().unwrap_or(address);
    if last.starts_with("urn:") { last.rsplit(':').next().unwrap_or(last) } else { last }
}

/// Reads a part of a resource as what FHIR says that it is.
fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let said = error.inner().to_string();
        // What was found comes first and can be a value; what was expected comes last and is ours.
        let problem = match said.rsplit_once(", expected ").map(|(_, expected)| expected) {
            _ if said == NOT_A_TIME => NOT_A_TIME.into(),
            Some("a string") => "expected text".into(),
            Some("a sequence") => "expected a list".into(),
            Some("a boolean") => "expected true or false".into(),
            Some("f64") => "expected a number".into(),
            Some(expected) if expected.starts_with("struct ") => "expected an object".into(),
            _ => "is not what FHIR R4 has there".into(),
        };
        Problem { path: if path == "." { String::new() } else { path }, problem }
    })
}

/// The rows of a resource, each with the name of its table.
fn rows(
    kind: &str,
    resource: &Value,
    number: u64,
    address: Option<&str>,
    addresses: &Addresses,
) -> Result<Vec<(&'static str, Row)>, Problem> {
    let Identified { id, meta } = read(resource)?;
    let id = id.or_else(|| address.map(|address| last_part(address).to_owned()));
    let id = id.filter(|id| !id.trim().is_empty());
    let id = id.ok_or_else(|| Problem { path: "id".into(), problem: "is missing".into() })?;
    let contained = resource.get("contained").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let scope = Scope { contained, addresses };
    let updated = meta.and_then(|meta| meta.last_updated).map(|moment| moment.at);
    let row = Row { id, resource: number, updated, ..Row::default() };
    match kind {
        "Encounter" => encounter(row, read(resource)?, &scope),
        "Condition" => {
            let Condition { verification_status, code, encounter, context } = read(resource)?;
            let Coded { code, description } = coded(code.as_ref());
            let status = ["entered-in-error", "refuted"]
                .into_iter()
                .find(|status| verification_status.as_ref().is_some_and(|found| found.has(status)));
            let encounter = scope.id(encounter.or(context).as_ref(), "Encounter");
            let status = status.map(str::to_owned);
            Ok(vec![("condition", Row { encounter, status, code, description, ..row })])
        }
        "Procedure" => treatment("procedure", row, read(resource)?, &scope),
        "MedicationRequest" => treatment("medication_request", row, read(resource)?, &scope),
        "Medication" => {
            let Coded { code, description } = coded(read::<Medication>(resource)?.code.as_ref());
            Ok(vec![("medication", Row { code, description, ..row })])
        }
        "Observation" => Ok(observations(row, read(resource)?, &scope)),
        _ => {
            let Patient { deceased_boolean, deceased_date_time } = read(resource)?;
            let deceased = Some(deceased_date_time.is_some() || deceased_boolean == Some(true));
            let deceased_day = deceased_date_time.and_then(|moment| moment.day);
            Ok(vec![("patient", Row { deceased, deceased_day, ..row })])
        }
    }
}

fn encounter(row: Row, found: Encounter, scope: &Scope<'_>) -> Result<Vec<(&'static str, Row)>, Problem> {
    let (start, end) = found.period.map_or((None, None), |period| (period.start, period.end));
    let mut rows = vec![];
    for diagnosis in found.diagnosis.iter().flatten() {
        rows.extend(reason(&row, scope.target(diagnosis.condition.as_ref(), "Condition"))?);
    }
    rows.push((
        "encounter",
        Row {
            status: found.status,
            class: found.class.and_then(|class| class.code),
            patient: scope.id(found.subject.as_ref(), "Patient"),
            part_of: scope.id(found.part_of.as_ref(), "Encounter"),
            start: start.map(|moment| moment.at),
            stop: end.map(|moment| moment.at),
            last_day: end.or(start).and_then(|moment| moment.day),
            ..row
        },
    ));
    Ok(rows)
}

/// A reason that is a condition.
fn reason(row: &Row, target: Option<Target<'_>>) -> Result<Option<(&'static str, Row)>, Problem> {
    let mut reason = Row { resource: row.resource, ..Row::default() };
    match target {
        None => return Ok(None),
        Some(Target::Id(id)) => reason.condition = Some(id),
        Some(Target::Inside(inside)) => {
            let found: Condition = within("contained", read(inside))?;
            Coded { code: reason.code, description: reason.description } = coded(found.code.as_ref());
        }
    }
    Ok(Some(("reason", reason)))
}

fn treatment(
    table: &'static str,
    row: Row,
    found: Treatment,
    scope: &Scope<'_>,
) -> Result<Vec<(&'static str, Row)>, Problem> {
    let mut rows = vec![];
    for concept in found.reason_code.iter().flatten() {
        let Coded { code, description } = concept.coded();
        rows.push(("reason", Row { resource: row.resource, code, description, ..Row::default() }));
    }
    for reference in found.reason_reference.iter().flatten() {
        rows.extend(reason(&row, scope.target(Some(reference), "Condition"))?);
    }
    let own = found.code.or(found.medication_codeable_concept);
    let (coded, medication) = match scope.target(found.medication_reference.as_ref(), "Medication") {
        Some(Target::Inside(inside)) => {
            let found: Medication = within("contained", read(inside))?;
            (coded(found.code.as_ref()), None)
        }
        Some(Target::Id(id)) => (coded(own.as_ref()), Some(id)),
        None => (coded(own.as_ref()), None),
    };
    rows.push((
        table,
        Row {
            encounter: scope.id(found.encounter.or(found.context).as_ref(), "Encounter"),
            status: found.status,
            do_not_perform: found.do_not_perform,
            code: coded.code,
            description: coded.description,
            medication,
            ..row
        },
    ));
    Ok(rows)
}

/// The same problem, in a part.
fn within<T>(part: &str, result: Result<T, Problem>) -> Result<T, Problem> {
    result.map_err(|problem| Problem { path: format!("{part}.{}", problem.path), ..problem })
}

/// Its own value, and those of its components. One that has only components says nothing itself.
fn observations(row: Row, found: Observation, scope: &Scope<'_>) -> Vec<(&'static str, Row)> {
    let categories: Vec<&Concept> = found.category.iter().flatten().collect();
    let category = if categories.iter().any(|category| category.has("laboratory")) {
        Some("laboratory".to_owned())
    } else {
        let codings = categories.iter().flat_map(|category| category.coding.iter().flatten());
        codings.filter_map(|coding| coding.code.clone()).next()
    };
    let encounter = scope.id(found.encounter.or(found.context).as_ref(), "Encounter");
    let row = Row { encounter, status: found.status, category, ..row };
    let components: Vec<Row> =
        found.component.into_iter().flatten().map(|component| component.row(row.clone())).collect();
    let own = Component {
        code: found.code,
        value_quantity: found.value_quantity,
        value_integer: found.value_integer,
        value_codeable_concept: found.value_codeable_concept,
        value_string: found.value_string,
        value_boolean: found.value_boolean,
        data_absent_reason: found.data_absent_reason,
    }
    .row(row);
    let has_value = own.value.is_some() || own.numeric_value.is_some();
    let own = (has_value || components.is_empty()).then_some(own);
    own.into_iter().chain(components).map(|row| ("observation", row)).collect()
}

impl Component {
    /// A number, or else a word.
    fn row(self, row: Row) -> Row {
        let Coded { code, description } = coded(self.code.as_ref());
        let numeric_value = self.value_quantity.and_then(|quantity| quantity.value).or(self.value_integer);
        let word = match (self.value_codeable_concept, self.value_string, self.value_boolean) {
            (Some(concept), ..) => {
                let Coded { code, description } = concept.coded();
                Coded { code: code.or_else(|| description.clone()), description }
            }
            (None, Some(text), _) => Coded {
                code: Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
                description: None,
            },
            (None, None, Some(value)) => Coded { code: Some(value.to_string()), description: None },
            (None, None, None) => Coded::default(),
        };
        let (value, value_description) =
            if numeric_value.is_some() { (None, None) } else { (word.code, word.description) };
        let absent = numeric_value.is_none() && value.is_none() && self.data_absent_reason.is_some();
        Row { code, description, numeric_value, value, value_description, absent: Some(absent), ..row }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flat(resource: &Value) -> Result<Vec<(&'static str, Row)>, Problem> {
        rows(resource["resourceType"].as_str().unwrap(), resource, 7, None, &Addresses::new())
    }

    #[test]
    fn references_are_ids_and_lead_only_to_what_is_meant() {
        let addresses = Addresses::from([
            ("urn:uuid:new".to_owned(), (Some("Encounter"), "old".to_owned())),
            ("urn:uuid:other".to_owned(), (Some("Patient"), "other".to_owned())),
            ("urn:uuid:unread".to_owned(), (None, "unread".to_owned())),
        ]);
        let contained = [json!({"resourceType": "Medication", "id": "m"})];
        let scope = Scope { contained: &contained, addresses: &addresses };
        let id = |text: &str| {
            scope.target(Some(&Reference { reference: Some(text.into()) }), "Encounter").map(|target| {
                let Target::Id(id) = target else { panic!("not inside") };
                id
            })
        };
        for text in [
            "Encounter/12",
            "https://a.org/fhir/Encounter/12",
            "Encounter/12/_history/3",
            "urn:uuid:12",
            "urn:oid:12",
            "12",
        ] {
            assert_eq!(id(text).as_deref(), Some("12"), "{text}");
        }
        assert_eq!(id("urn:uuid:new").as_deref(), Some("old"));
        for text in [
            "Patient/12",
            "https://a.org/fhir/Patient/12",
            "Encounter?identifier=12",
            "#m",
            "",
            "Encounter/",
            "urn:uuid:other",
            "urn:uuid:unread",
        ] {
            assert_eq!(id(text), None, "{text}");
        }
        let inside = Reference { reference: Some("#m".into()) };
        assert_eq!(scope.target(Some(&inside), "Medication"), Some(Target::Inside(&contained[0])));
    }

    #[test]
    fn times_are_moments_and_days_are_those_of_the_place() {
        let day = 86_400_000_000;
        let hour = day / 24;
        assert_eq!(
            Moment::read("1970-01-02T23:00:00-05:00"),
            Some(Moment { at: 2 * day + 4 * hour, day: Some(day) })
        );
        assert_eq!(Moment::read("1970-01-02"), Some(Moment { at: day, day: Some(day) }));
        assert_eq!(Moment::read("1970-02"), Some(Moment { at: 31 * day, day: None }));
        assert_eq!(Moment::read("1971"), Some(Moment { at: 365 * day, day: None }));
        assert!(Moment::read("9999-12-31T23:59:59.999Z").is_some());
        for text in ["", "soon", "1970-13", "1970-01-02T25:00:00Z", "1970-01-0\u{662}", "next \u{fc}ber"] {
            assert_eq!(Moment::read(text), None, "{text}");
        }
    }

    #[test]
    fn systems_have_short_names_and_the_first_code_counts() {
        let concept: Concept = serde_json::from_value(json!({"text": "Flu", "coding": [
            {"system": "http://snomed.info/sct"},
            {"system": "http://snomed.info/sct", "code": "1"},
            {"system": "http://hl7.org/fhir/sid/icd-10-cm", "code": "J11", "display": "Influenza"},
        ]}))
        .unwrap();
        assert_eq!(concept.coded(), Coded { code: Some("SNOMED:1".into()), description: Some("Flu".into()) });
        let named = |system: Option<&str>| {
            Coding { system: system.map(str::to_owned), code: Some("1".into()), display: None }
                .named()
                .unwrap()
        };
        assert_eq!(named(Some("http://hl7.org/fhir/sid/icd-10-cm")), "ICD10CM:1");
        assert_eq!(named(Some("http://clinic.org/codes/")), "http://clinic.org/codes:1");
        assert_eq!(named(None), "1");
    }

    #[test]
    fn components_are_observations_of_their_own() {
        let loinc = |code: &str| json!({"coding": [{"system": "http://loinc.org", "code": code}]});
        let pressure = json!({
            "resourceType": "Observation", "id": "o", "code": loinc("85354-9"),
            "encounter": {"reference": "Encounter/e"},
            "category": [{"coding": [{"code": "vital-signs"}]}, {"coding": [{"code": "laboratory"}]}],
            "component": [
                {"code": loinc("8480-6"), "valueQuantity": {"value": 120}},
                {"code": loinc("8462-4"), "valueCodeableConcept": {"text": "low"}},
                {"code": loinc("8478-0"), "dataAbsentReason": {"text": "unknown"}},
            ],
        });
        let rows = flat(&pressure).unwrap();
        let shown: Vec<String> = rows
            .iter()
            .map(|(table, row)| {
                format!(
                    "{table} {} {} {:?} {:?} {:?} {}",
                    row.resource,
                    row.code.as_deref().unwrap(),
                    row.numeric_value,
                    row.value,
                    row.absent,
                    row.category.as_deref().unwrap()
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "observation 7 LOINC:8480-6 Some(120.0) None Some(false) laboratory",
                "observation 7 LOINC:8462-4 None Some(\"low\") Some(false) laboratory",
                "observation 7 LOINC:8478-0 None None Some(true) laboratory",
            ]
        );
    }

    #[test]
    fn what_is_not_fhir_is_named_by_its_path_and_not_by_its_value() {
        let problem = |resource: Value| {
            let Problem { path, problem } = flat(&resource).unwrap_err();
            format!("{path}: {problem}")
        };
        let secret = "PATIENT-4711, expected a string";
        for (resource, expected) in [
            (json!({"resourceType": "Condition"}), "id: is missing"),
            (json!({"resourceType": "Condition", "id": 4711}), "id: expected text"),
            (
                json!({"resourceType": "Condition", "id": "c", "code": {"coding": secret}}),
                "code.coding: expected a list",
            ),
            (
                json!({"resourceType": "Condition", "id": "c", "code": {"coding": [{"code": [secret]}]}}),
                "code.coding[0].code: expected text",
            ),
            (json!({"resourceType": "Encounter", "id": "e", "class": secret}), "class: expected an object"),
            (
                json!({"resourceType": "Encounter", "id": "e", "period": {"end": secret}}),
                "period.end: expected a date or time",
            ),
            (
                json!({"resourceType": "Observation", "id": "o", "valueQuantity": {"value": secret}}),
                "valueQuantity.value: expected a number",
            ),
            (
                json!({"resourceType": "Patient", "id": "p", "deceasedBoolean": secret}),
                "deceasedBoolean: expected true or false",
            ),
        ] {
            assert_eq!(problem(resource), expected);
        }
    }
}
