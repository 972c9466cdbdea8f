//! A code as a vocabulary and what it calls something: `ICD10CM:I50.1`, `DIAGNOSIS//ICD//10//I501`, `i50.1`.

/// A code taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts<'a> {
    /// The vocabulary with the `:` or `/` after it, as it is written; often empty.
    pub(super) prefix: &'a str,
    /// What follows.
    pub(super) body: &'a str,
}

impl<'a> Parts<'a> {
    /// A prefix is letters, digits and a few signs up to the last `:` or `/`.
    pub(super) fn of(code: &'a str) -> Self {
        let code = code.trim();
        let is_of_prefix = |c: char| c.is_ascii_alphanumeric() || "_-./:".contains(c);
        let end = code.rfind([':', '/']).map_or(0, |end| end + 1);
        let end = if code[..end].chars().all(is_of_prefix) { end } else { 0 };
        Parts { prefix: &code[..end], body: code[end..].trim() }
    }

    /// The vocabulary, however it is spelled; empty without a prefix.
    pub(super) fn vocabulary(&self) -> String {
        vocabulary(self.prefix)
    }

    /// What follows the prefix, without dots, in upper case.
    pub(super) fn plain(&self) -> String {
        self.body.chars().filter(|c| *c != '.').collect::<String>().to_uppercase()
    }
}

/// Diagnoses of ICD-9.
pub const ICD9: &str = "icd9";
/// Diagnoses of ICD-10.
pub const ICD10: &str = "icd10";
/// Drugs of ATC.
pub(super) const ATC: &str = "atc";

/// One name for all spellings of a vocabulary: `ICD-10-CM`, `ICD10` and `DIAGNOSIS//ICD//10` are `icd10`.
/// Procedures of ICD are vocabularies of their own.
pub(super) fn vocabulary(name: &str) -> String {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
    let is_procedures = ["pcs", "proc", "px"].iter().any(|word| name.contains(word));
    let version = [ICD10, ICD9].into_iter().find(|version| name.contains(version));
    match version {
        Some(version) if is_procedures => procedures_of(version),
        Some(version) => version.into(),
        None if name.ends_with(ATC) => ATC.into(),
        None => name,
    }
}

/// The procedures of a version of ICD.
pub fn procedures_of(version: &str) -> String {
    format!("{version}proc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_at_the_last_sign_after_a_vocabulary() {
        for (code, prefix, body) in [
            ("ICD10CM:I50.1", "ICD10CM:", "I50.1"),
            ("ICD10CM/I50.1", "ICD10CM/", "I50.1"),
            ("DIAGNOSIS//ICD//10//I501", "DIAGNOSIS//ICD//10//", "I501"),
            (" i50.1 ", "", "i50.1"),
            ("LOINC:94500-6=SNOMED:10828004", "", "LOINC:94500-6=SNOMED:10828004"),
            ("renal|failure/acute", "", "renal|failure/acute"),
            ("", "", ""),
        ] {
            assert_eq!(Parts::of(code), Parts { prefix, body });
        }
        assert_eq!(Parts::of("icd10cm:i50.1").plain(), "I501");
    }

    #[test]
    fn vocabularies_have_many_spellings() {
        for name in ["ICD10CM:", "ICD-10-CM", "ICD10", "ICD10GM:", "DIAGNOSIS//ICD//10//", "icd10cm"] {
            assert_eq!(vocabulary(name), ICD10, "{name}");
        }
        for name in ["ICD9DX:", "ICD9CM", "ICD-9-CM", "DIAGNOSIS//ICD//9//"] {
            assert_eq!(vocabulary(name), ICD9, "{name}");
        }
        for name in ["ICD10PCS:", "PROCEDURE//ICD//10//", "ICD10PX", "icd10proc"] {
            assert_eq!(vocabulary(name), "icd10proc", "{name}");
        }
        assert_eq!([vocabulary("ATC/"), vocabulary("WHO ATC"), vocabulary("")], ["atc", "atc", ""]);
    }
}
