//! JSON lines: an encounter per line, as the server reads them, with an id. Earlier visits of a patient are
//! lines of their own: those before it with its subject.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{BufRead, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::error::Category;

use super::source::Reader;
use super::{Found, MOST_CODES, Words, encounter, refusal, too_many};
use crate::coding::{Recorded, RecordedTimes, WrongTime, whole};
use crate::error::{OnPath, Result};
use crate::record::{CodeKind, Encounter, PerKind};

/// Bytes of a line that are read: far more than [`MOST_CODES`] codes have.
const LONGEST: u64 = 16 << 20;

const SHAPE: &str = "expected an object with `encounter_id` and lists of codes: `diagnosis`, `treatment`, \
                     `lab`, `context`, perhaps `subject_id`, `start`, `end` and `prediction_time`; a lab can be \
                     {\"code\": CODE, \"value\": NUMBER}";

const IN_ORDER: &str = "lines of a subject must follow each other, the oldest first";

const NO_OBJECT: &str = "it is not one JSON object";

/// An encounter. It has no `Debug`: what is in it belongs into no message.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Line<'a> {
    #[serde(borrow, alias = "id")]
    encounter_id: Option<Name<'a>>,
    #[serde(borrow)]
    subject_id: Option<Name<'a>>,
    #[serde(borrow)]
    context: Vec<Recorded<'a>>,
    #[serde(borrow)]
    diagnosis: Vec<Text<'a>>,
    #[serde(borrow)]
    treatment: Vec<Text<'a>>,
    #[serde(borrow)]
    lab: Vec<Recorded<'a>>,
    #[serde(borrow)]
    start: Option<Text<'a>>,
    #[serde(borrow)]
    end: Option<Text<'a>>,
    #[serde(borrow)]
    prediction_time: Option<Text<'a>>,
}

impl Line<'_> {
    /// An encounter with the times of the line.
    fn timed(&self, encounter: Encounter) -> Result<Encounter, String> {
        let [start, end, prediction_time] = [&self.start, &self.end, &self.prediction_time]
            .map(|time| time.as_ref().map(|text| text.0.as_ref()));
        let times = RecordedTimes { start, end, prediction_time };
        times.of(encounter).map_err(|wrong| match wrong {
            WrongTime::NotATime(name) => {
                format!("its `{name}` is no time: expected one such as 2026-03-01 or 2026-03-01T08:30:00")
            }
            WrongTime::EndBeforeStart => "its `end` is before its `start`".into(),
        })
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// An identifier, which some programs write as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Name<'a> {
    Text(#[serde(borrow)] Cow<'a, str>),
    Number(i64),
}

impl Name<'_> {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Name::Text(text) => whole(text.trim_matches(' ')).into(),
            Name::Number(number) => number.to_string().into(),
        }
    }
}

/// The lines of a file that are still to be read.
pub(super) struct Lines {
    reader: Reader,
    number: u64,
    text: Vec<u8>,
    ids: HashSet<String>,
    subjects: Subjects,
}

/// The subjects of the lines so far, where it takes other lines of a subject to ask about one.
#[derive(Default)]
struct Subjects {
    seen: HashSet<String>,
    /// That of the last line, and the latest start of it.
    last: Option<(String, Option<i64>)>,
}

impl Subjects {
    /// What is wrong with the place of an encounter among the lines.
    fn add(&mut self, encounter: &Encounter) -> Result<(), String> {
        let subject = encounter.subject.as_str();
        let before = self.last.take().filter(|(last, _)| last == subject && !subject.is_empty());
        let start = before.as_ref().and_then(|(_, start)| *start);
        if start.zip(encounter.start).is_some_and(|(before, start)| start < before) {
            return Err(format!("it begins before an earlier line of its subject; {IN_ORDER}"));
        }
        if before.is_none() && !subject.is_empty() && !self.seen.insert(subject.to_owned()) {
            return Err(format!("lines of another subject are between it and others of its own; {IN_ORDER}"));
        }
        self.last = Some((subject.to_owned(), encounter.start.or(start)));
        Ok(())
    }
}

impl Lines {
    pub(super) fn new(reader: Reader) -> Self {
        let subjects = Subjects::default();
        Lines { reader, number: 0, text: Vec::new(), ids: HashSet::new(), subjects }
    }

    /// The next encounter.
    pub(super) fn next(&mut self, path: &Path, words: &mut Words<'_>) -> Result<Option<Found>> {
        loop {
            self.text.clear();
            self.number += 1;
            let read = (&mut self.reader).take(LONGEST + 1).read_until(b'\n', &mut self.text);
            if read.on("read", path)? == 0 {
                return Ok(None);
            }
            if self.text.len() as u64 > LONGEST {
                return Err(refusal(path, format!("line {}: it is longer than 16 MB", self.number)));
            }
            if !self.text.iter().all(u8::is_ascii_whitespace) {
                break;
            }
        }
        // Serde would take a list for the fields of an object.
        if !self.text.trim_ascii_start().starts_with(b"{") {
            return Err(refusal(path, format!("line {}: {NO_OBJECT}", self.number)));
        }
        let line: Line<'_> = serde_json::from_slice(&self.text).map_err(|error| {
            let problem = match error.classify() {
                Category::Data => SHAPE,
                Category::Io | Category::Syntax | Category::Eof => NO_OBJECT,
            };
            refusal(path, format!("line {}, column {}: {problem}", self.number, error.column()))
        })?;
        let found = of_line(self.number, &line, words)?;
        let found = found.map_err(|problem| refusal(path, format!("line {}: {problem}", self.number)))?;
        if !self.ids.insert(found.0.id.as_str().to_owned()) {
            let problem = format!("line {}: its `encounter_id` is that of an earlier line", self.number);
            return Err(refusal(path, problem));
        }
        if words.needs_order(&found.0) {
            let placed = self.subjects.add(&found.0);
            placed.map_err(|problem| refusal(path, format!("line {}: {problem}", self.number)))?;
        }
        Ok(Some(found))
    }
}

/// The encounter of a line, or what is wrong with it.
fn of_line(number: u64, line: &Line<'_>, words: &mut Words<'_>) -> Result<Result<Found, String>> {
    let (mut codes, mut missing) = (PerKind::<Vec<u32>>::default(), Vec::new());
    let without_value =
        |codes: &[Text<'_>]| codes.iter().map(|code| Recorded::new(code.0.to_string())).collect();
    let recorded = PerKind::<Vec<Recorded<'_>>> {
        context: line.context.clone(),
        diagnosis: without_value(&line.diagnosis),
        treatment: without_value(&line.treatment),
        lab: line.lab.clone(),
    };
    if CodeKind::ALL.iter().map(|kind| recorded[*kind].len()).sum::<usize>() > MOST_CODES {
        return Ok(Err(too_many()));
    }
    for kind in CodeKind::ALL {
        for Recorded { code, value } in &recorded[kind] {
            let code = code.trim_matches(' ');
            if code.is_empty() {
                return Ok(Err(format!("a code of `{}` is empty", kind.name())));
            }
            match words.id(kind, code, *value)? {
                Ok(id) => codes[kind].push(id),
                Err(unknown) => missing.push(unknown),
            }
        }
    }
    let id = line.encounter_id.as_ref().map_or_else(|| number.to_string().into(), Name::text);
    let subject = line.subject_id.as_ref().map(Name::text).unwrap_or_default();
    Ok(match id.is_empty() {
        true => Err("its `encounter_id` is empty".into()),
        false => line.timed(encounter(&id, &subject, codes)).map(|encounter| (encounter, missing)),
    })
}
