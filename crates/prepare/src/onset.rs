//! Labels of onset: whether a subject has one of some diagnoses for the first time in the days after an
//! encounter. Here is which diagnoses those are.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::steps::is_column;

/// The label of an onset that has no name of its own.
const ONSET: &str = "onset";

/// The ends of names of files that a list of codes can be in.
const FILES: [&str; 5] = [".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet"];

/// The name of a label and its codes, of `NAME=CODES` or of codes alone.
pub fn named(text: &str) -> (&str, &str) {
    match text.split_once('=') {
        Some((name, codes)) if is_name(name.trim()) => (name.trim(), codes.trim()),
        _ => (ONSET, text.trim()),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether a text is a file of codes, and no codes.
pub(crate) fn is_file(text: &str) -> bool {
    let lower = text.to_lowercase();
    FILES.iter().any(|end| lower.ends_with(end))
}

/// Refuses names that cannot be those of labels, and lists that are none.
pub(crate) fn check(onset: &BTreeMap<String, String>) -> Result<()> {
    for (name, codes) in onset {
        if !is_name(name) || is_column(name) {
            let allowed = "a name that has letters, digits and underscores alone and is that of no column";
            return Err(refused(name, allowed));
        }
        if !is_file(codes) {
            Wanted::of(codes.split(',').map(str::to_owned))?;
        }
    }
    Ok(())
}

fn refused(value: &str, allowed: &str) -> Error {
    Error::Choice { name: ONSET.into(), value: value.into(), allowed: allowed.into() }
}

/// The diagnoses that an onset is one of: codes as the source writes them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Wanted {
    whole: BTreeSet<String>,
    /// How codes begin, whatever their rest is.
    beginnings: BTreeSet<String>,
}

impl Wanted {
    /// The diagnoses of a list.
    ///
    /// # Errors
    /// If it has none, or a `*` elsewhere than at the end of a code.
    pub(crate) fn of(list: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut wanted = Wanted::default();
        for code in list {
            let code = code.trim();
            let beginning = code.strip_suffix('*');
            if beginning.unwrap_or(code).contains('*') {
                let allowed = "codes with commas between them, * only at the end of one";
                return Err(refused(code, allowed));
            }
            match beginning {
                Some(beginning) => drop(wanted.beginnings.insert(beginning.to_owned())),
                None if code.is_empty() => {}
                None => drop(wanted.whole.insert(code.to_owned())),
            }
        }
        match wanted == Wanted::default() {
            true => Err(refused("an empty list", "codes with commas between them, or a file of codes")),
            false => Ok(wanted),
        }
    }

    /// Whether a code is one of them.
    pub(crate) fn has(&self, code: &str) -> bool {
        self.whole.contains(code) || self.beginnings.iter().any(|beginning| code.starts_with(beginning))
    }

    /// As they are written.
    pub(crate) fn list(&self) -> Vec<String> {
        let beginnings = self.beginnings.iter().map(|beginning| format!("{beginning}*"));
        self.whole.iter().cloned().chain(beginnings).collect()
    }

    /// As a message has them.
    pub(crate) fn shown(&self) -> String {
        const SHOWN: usize = 5;
        let list = self.list();
        let more = list.len().saturating_sub(SHOWN);
        let first = list[..list.len() - more].join(", ");
        if more > 0 { format!("{first} or one of {more} more") } else { first }
    }
}

/// How codes begin that name their vocabulary: `ICD10CM:`, `DIAGNOSIS//ICD//10//`. Such of many codes first.
pub(crate) fn beginnings(codes: &[String]) -> Vec<String> {
    const SHOWN: usize = 8;
    let mut counts = BTreeMap::<&str, usize>::new();
    for code in codes {
        let slashes = code.rfind("//").map(|at| at + 2);
        let end = slashes.or(code.find(':').map(|at| at + 1));
        // Anything else can be words about a patient.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_/:".contains(&byte);
        if let Some(beginning) = end.map(|end| &code[..end]).filter(|text| text.bytes().all(is_plain)) {
            *counts.entry(beginning).or_default() += 1;
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().take(SHOWN).map(|(beginning, _)| beginning.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(list: &str) -> Wanted {
        Wanted::of(list.split(',').map(str::to_owned)).unwrap()
    }

    #[test]
    fn a_label_has_the_name_before_the_first_equals_sign() {
        assert_eq!(named("I50*,428"), ("onset", "I50*,428"));
        assert_eq!(named("heart_failure = I50*"), ("heart_failure", "I50*"));
        assert_eq!(named("LOINC:1=high"), ("onset", "LOINC:1=high"));
        assert_eq!(named("=I50"), ("onset", "=I50"));
        assert_eq!(named("hf=codes/hf.csv"), ("hf", "codes/hf.csv"));
    }

    #[test]
    fn a_code_is_whole_or_begins_so() {
        let wanted = wanted("ICD10CM:I50*, ICD9CM:428,,");
        for (code, has) in [
            ("ICD10CM:I50", true),
            ("ICD10CM:I5023", true),
            ("ICD10CM:I51", false),
            ("icd10cm:I50", false),
            ("ICD9CM:428", true),
            ("ICD9CM:4280", false),
        ] {
            assert_eq!(wanted.has(code), has, "{code}");
        }
        assert_eq!(wanted.list(), ["ICD9CM:428", "ICD10CM:I50*"]);
    }

    #[test]
    fn lists_without_a_code_are_refused() {
        for list in ["", " ", "I5*0", "*I50"] {
            assert!(Wanted::of([list.to_owned()]).is_err(), "{list}");
        }
        assert!(wanted("*").has("anything"));
        assert_eq!(wanted("a,b,c,d,e").shown(), "a, b, c, d, e");
        assert_eq!(wanted("a,b,c,d,e,f*,g").shown(), "a, b, c, d, e or one of 2 more");
    }

    #[test]
    fn codes_begin_with_their_vocabulary() {
        let codes = ["ICD9CM:428", "ICD10CM:I50", "ICD10CM:E11", "D//ICD//10//I1", "pain in: chest", "I50"];
        let codes = codes.map(str::to_owned);
        assert_eq!(beginnings(&codes), ["ICD10CM:", "D//ICD//10//", "ICD9CM:"]);
        assert_eq!(beginnings(&codes[5..]), [""; 0]);
        assert!(is_file("codes/HF.CSV") && is_file("s3://b/hf.parquet") && !is_file("I50*"));
    }
}
