//! FHIR R4 as flat tables, which a source's SQL then reads like any others. Resources are nested, refer to
//! each other in four ways, and lie in bundles or line by line; none of that is for SQL.
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
//! Files are read one after the other, and rows go to disk as they come: what is in memory is one line or one
//! bundle. A table has the columns that `source.toml` names. JSON that is broken is an error; a resource that
//! is not what FHIR says is left out and counted.

/// Dates and times.
mod moment;

/// Codes with the names of their systems.
mod codes;

/// What references lead to.
mod references;

/// A table that is being written.
mod sheet;

/// The rows of a resource.
mod resources;

/// What a document is made of.
mod outline;

/// The names of types.
mod resource_types;

/// Files, one after the other.
mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::files::{File, Format, InputFiles};
use crate::source::Source;
use crate::tables::Unreadable;
use reader::Reader;
use sheet::Sheet;

/// A list that may be missing.
type List<T> = Option<Vec<T>>;

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

/// Reads all resources of an input into those tables that are asked for; where these are, and what was left
/// out.
pub(crate) async fn flatten(
    engine: &Engine<'_>,
    source: &Source,
    input: &InputFiles,
    asked: &BTreeSet<String>,
) -> Result<(InputFiles, Found)> {
    let folder = engine.temporary_path("flat");
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
        counts: BTreeMap::new(),
        files_empty: 0,
        resources: 0,
        number: 0,
        encounters: 0,
    };
    let is_json = |file: &File| matches!(file.format, Format::Json | Format::JsonGz);
    for file in input.all().iter().filter(|file| input.is_file || is_json(file)) {
        reader.read(file, file.open(engine).await?)?;
    }
    let Reader { sheets, seen, unreadable, encounters, counts: resources, files_empty, .. } = reader;
    for sheet in sheets.into_values() {
        sheet.close()?;
    }
    if encounters == 0 {
        let of_encounters = unreadable.iter().find(|(column, _)| column.starts_with("Encounter."));
        let first = of_encounters.or_else(|| unreadable.iter().next().filter(|_| seen.is_empty()));
        return Err(match first {
            Some((_, found)) => Error::Resource { problem: found.first.clone() },
            None => Error::NoResource {
                path: input.name.clone(),
                resource: "Encounter",
                found: seen.into_iter().collect(),
            },
        });
    }
    let mut flat = InputFiles::list(&engine.context, &folder.display().to_string()).await?;
    // The user knows their own folder, not this one.
    flat.name.clone_from(&input.name);
    let unreadable = unreadable.into_values().collect();
    Ok((flat, Found { resources, files_empty, unreadable }))
}

/// What was found among the resources.
pub(crate) struct Found {
    /// Of each type: how many there are, and how many were left out.
    pub(crate) resources: BTreeMap<String, [u64; 2]>,
    /// Files without any document.
    pub(crate) files_empty: u64,
    /// What was left out.
    pub(crate) unreadable: Vec<Unreadable>,
}

fn unwritable(path: &Path, problem: &str) -> Error {
    Error::Input { path: path.display().to_string(), problem: problem.into() }
}
