//! Encounters that are in no dataset, as they are recorded: next month's patients. They become encounters of
//! a run by its own rollups and buckets ([`crate::coding`]).
//!
//! ```text
//! JSON lines   {"encounter_id": "E1", "diagnosis": ["I50.1"], "lab": [{"code": "K", "value": 4.1}]}
//! events       encounter_id,kind,code,value as CSV or Parquet, a row per recorded code, in any order
//! ```
//!
//! Lines are read one after the other, in bounded memory. Of events, the codes of all encounters are held in
//! memory as numbers, since rows of an encounter can be anywhere.

mod events;
mod lines;
mod predictions;
mod source;
mod table;

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::coding::Coder;
use crate::error::{Error, Result};
use crate::history::Order;
use crate::infer::Unseen;
use crate::job::Job;
use crate::record::{CodeKind, Encounter, EncounterId, PerKind, SubjectId};
use crate::run::Run;
pub(crate) use predictions::Predictions;
use source::Source;
pub(crate) use table::{read_columns, read_table};

/// Codes of an encounter that are not refused. Attention takes memory by the square of it.
const MOST_CODES: usize = 4096;

/// Rows between two looks at whether to stop.
const ROWS: u64 = 1 << 16;

/// Encounters that are in no dataset, with the code ids of a run. Ends after the first error.
pub struct Incoming<'a> {
    path: PathBuf,
    words: Words<'a>,
    rows: Rows,
    /// Labels that the run predicts, none of which is known.
    labels: usize,
    read: u64,
    without_codes: u64,
    /// Of the encounter that came last.
    last: Last,
}

enum Rows {
    Lines(lines::Lines),
    Events(std::vec::IntoIter<Found>),
    Ended,
}

/// A code that the run does not know: its kind, and its number among such codes of the kind.
type Missing = (CodeKind, u32);

/// An encounter, and what it has that the run does not know, once for each time.
type Found = (Encounter, Vec<Missing>);

/// What is known of an encounter after it is handed out.
#[derive(Default)]
struct Last {
    missing: Vec<Missing>,
    is_without_codes: bool,
}

/// What was met in the encounters so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Met {
    /// Codes that the run does not know, and how often they were met, of each kind. They are left out.
    pub unknown: PerKind<Unseen>,
    /// Encounters without any code that the run knows.
    pub without_codes: u64,
}

impl<'a> Incoming<'a> {
    /// Opens a file: JSON lines, or events as CSV or Parquet, packed by gzip or not. What it is, its first
    /// bytes tell.
    ///
    /// # Errors
    /// If it cannot be read, is empty, or, of events, if anything in it is wrong; or the job is stopped.
    pub fn open(run: &'a Run, path: &Path, job: &Job<'_, u64>) -> Result<Self> {
        Incoming::of(run, path, Source::open(path)?, job)
    }

    /// Reads something else than a file, which is called so in messages.
    ///
    /// # Errors
    /// As [`Incoming::open`].
    pub fn read(
        run: &'a Run,
        name: &str,
        reader: impl Read + Send + 'static,
        job: &Job<'_, u64>,
    ) -> Result<Self> {
        let path = Path::new(name);
        Incoming::of(run, path, Source::of(path, Box::new(reader))?, job)
    }

    fn of(run: &'a Run, path: &Path, source: Source, job: &Job<'_, u64>) -> Result<Self> {
        let path = path.to_owned();
        let mut words = Words::new(run)?;
        let rows = match source {
            Source::Lines(reader) => Rows::Lines(lines::Lines::new(reader)),
            Source::Csv(reader) => Rows::Events(events::of_csv(&path, reader, &mut words, job)?.into_iter()),
            Source::Parquet(file) => {
                Rows::Events(events::of_parquet(&path, &file, &mut words, job)?.into_iter())
            }
        };
        let labels = run.settings().task.labels().len();
        Ok(Incoming { path, words, rows, labels, read: 0, without_codes: 0, last: Last::default() })
    }

    /// What was met so far.
    pub fn met(&self) -> Met {
        Met { unknown: self.words.unknown(), without_codes: self.without_codes }
    }

    /// What was met in the encounter that came last.
    pub fn met_in_last(&self) -> Met {
        let unknown = PerKind::from_fn(|kind| {
            let of_kind = self.last.missing.iter().filter(|(found, _)| *found == kind);
            let numbers: Vec<u32> = of_kind.map(|(_, number)| *number).collect();
            let codes = numbers.iter().collect::<HashSet<_>>().len();
            Unseen { codes: codes as u64, occurrences: numbers.len() as u64 }
        });
        Met { unknown, without_codes: u64::from(self.last.is_without_codes) }
    }

    /// After the last encounter: refuses a file without any, and one of which the run knows no code.
    ///
    /// # Errors
    /// If it is such a file.
    pub fn check(&self) -> Result<()> {
        let met = self.met();
        let has_unknown = CodeKind::ALL.iter().any(|kind| met.unknown[*kind].occurrences > 0);
        let problem = match self.read {
            0 => "it has no encounter",
            read if read == met.without_codes && has_unknown => "the run knows none of its codes",
            _ => return Ok(()),
        };
        Err(refusal(&self.path, problem))
    }

    fn next_found(&mut self) -> Result<Option<Found>> {
        Ok(match &mut self.rows {
            Rows::Lines(lines) => lines.next(&self.path, &mut self.words)?,
            Rows::Events(encounters) => encounters.next(),
            Rows::Ended => None,
        })
    }
}

impl Iterator for Incoming<'_> {
    type Item = Result<Encounter>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_found();
        if !matches!(next, Ok(Some(_))) {
            self.rows = Rows::Ended;
        }
        let (encounter, missing) = match next.transpose()? {
            Ok(found) => found,
            Err(error) => return Some(Err(error)),
        };
        self.read += 1;
        let has_code = CodeKind::ALL.iter().any(|kind| !encounter.codes[*kind].is_empty());
        self.without_codes += u64::from(!has_code);
        self.last = Last { missing, is_without_codes: !has_code };
        Some(Ok(Encounter { labels: vec![None; self.labels], ..encounter }))
    }
}

fn refusal(path: &Path, problem: impl Into<String>) -> Error {
    Error::Incoming { path: path.to_owned(), problem: problem.into() }
}

/// Recorded codes to ids of a run, and those that it does not know.
struct Words<'a> {
    run: &'a Run,
    coder: Option<&'a Coder>,
    /// What became of each code without a value.
    met: PerKind<HashMap<String, Option<u32>>>,
    /// The number of each code that is not known, and how often there was one.
    unknown: PerKind<(HashMap<String, u32>, u64)>,
}

impl<'a> Words<'a> {
    fn new(run: &'a Run) -> Result<Self> {
        let coder = run.coder()?;
        Ok(Words { run, coder, met: PerKind::default(), unknown: PerKind::default() })
    }

    /// Whether an encounter is before or after others of its subject in what the run is asked.
    fn needs_order(&self, encounter: &Encounter) -> bool {
        let settings = self.run.settings();
        let has_order = encounter.start.is_some() || settings.history.order == Order::Recorded;
        has_order && settings.task.needs_subject(&settings.history)
    }

    /// The id of a recorded code, or that the run does not know it.
    ///
    /// # Errors
    /// If the run does not know what becomes of values.
    fn id(&mut self, kind: CodeKind, code: &str, value: Option<f64>) -> Result<Result<u32, Missing>> {
        if value.is_some() && self.coder.is_none() {
            return Err(Error::NoBuckets { run: self.run.path().to_owned() });
        }
        let id = match (value, self.met[kind].get(code)) {
            (None, Some(id)) => *id,
            _ => self.run.recorded_id(self.coder, kind, code, value),
        };
        if value.is_none() && !self.met[kind].contains_key(code) {
            self.met[kind].insert(code.to_owned(), id);
        }
        Ok(id.ok_or_else(|| (kind, self.missing(kind, code))))
    }

    /// The number of a code that is not known.
    fn missing(&mut self, kind: CodeKind, code: &str) -> u32 {
        let (codes, occurrences) = &mut self.unknown[kind];
        *occurrences += 1;
        let next = codes.len() as u32;
        match codes.get(code) {
            Some(number) => *number,
            None => *codes.entry(code.to_owned()).or_insert(next),
        }
    }

    fn unknown(&self) -> PerKind<Unseen> {
        PerKind::from_fn(|kind| {
            let (codes, occurrences) = &self.unknown[kind];
            Unseen { codes: codes.len() as u64, occurrences: *occurrences }
        })
    }
}

/// An encounter with its identifiers.
fn encounter(id: &str, subject: &str, codes: PerKind<Vec<u32>>) -> Encounter {
    Encounter { id: EncounterId::new(id), subject: SubjectId::new(subject), ..Encounter::new(codes) }
}

fn too_many() -> String {
    format!("the encounter has more than {MOST_CODES} codes")
}
