//! Rules that need no file: categories and chapters of ICD, levels of ATC. A rule applies to a code whose
//! prefix says that it is of the vocabulary, or, without a prefix, to one that has its shape.

use super::code::{ATC, ICD9, ICD10, Parts};
use super::mapping::Group;

/// A rule that puts codes into groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The category of a diagnosis: its first three characters, four of an E-code of ICD-9.
    IcdCategory,
    /// The chapter of a diagnosis.
    IcdChapter,
    /// A level of ATC, by the number of characters that it has.
    Atc(usize),
}

impl Rule {
    /// The names of all rules.
    pub const NAMES: [&str; 7] = ["icd3", "icd_chapter", "atc1", "atc2", "atc3", "atc4", "atc5"];

    /// The rule of a name, in upper or lower case.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.to_lowercase().replace('-', "_").as_str() {
            "icd3" => Rule::IcdCategory,
            "icd_chapter" => Rule::IcdChapter,
            "atc1" => Rule::Atc(1),
            "atc2" => Rule::Atc(3),
            "atc3" => Rule::Atc(4),
            "atc4" => Rule::Atc(5),
            "atc5" => Rule::Atc(7),
            _ => return None,
        })
    }

    /// The group of a code, if the rule applies to it.
    pub fn group(self, code: &str) -> Option<Group> {
        let parts = Parts::of(code);
        let under_prefix =
            |code: String| Group { code: format!("{}{code}", parts.prefix), description: None };
        match self {
            Rule::IcdCategory => category(parts).map(under_prefix),
            Rule::IcdChapter => chapter(parts),
            Rule::Atc(length) => atc(parts, length).map(under_prefix),
        }
    }
}

/// A version of ICD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Nine,
    Ten,
}

impl Version {
    /// The versions that a code can be of. Without a prefix its shape decides; `E850` and `V10` can be of
    /// both.
    fn of(parts: Parts<'_>) -> Vec<Self> {
        let vocabulary = parts.vocabulary();
        let is_possible = |version: &Version| match vocabulary.as_str() {
            "" => true,
            ICD9 => *version == Version::Nine,
            ICD10 => *version == Version::Ten,
            _ => false,
        };
        let versions = [Version::Nine, Version::Ten].into_iter().filter(is_possible);
        versions.filter(|version| version.has_shape(parts)).collect()
    }

    /// Whether a code looks like one of this version.
    fn has_shape(self, parts: Parts<'_>) -> bool {
        let plain = parts.plain();
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let dot_fits = parts.body.find('.').is_none_or(|dot| dot == self.category_length(&plain));
        dot_fits
            && match (self, plain.as_bytes()) {
                (Version::Nine, [b'E', b'0' | b'8' | b'9', rest @ ..]) => {
                    (2..=3).contains(&rest.len()) && is_number(&plain[1..])
                }
                (Version::Nine, [b'V', rest @ ..]) => (2..=4).contains(&rest.len()) && is_number(&plain[1..]),
                (Version::Nine, all) => (3..=5).contains(&all.len()) && is_number(&plain),
                (Version::Ten, [b'E', b'9', ..]) => false,
                (Version::Ten, [b'A'..=b'Z', b'0'..=b'9', b'0'..=b'9' | b'A' | b'B', rest @ ..]) => {
                    rest.len() <= 4 && rest.iter().all(u8::is_ascii_alphanumeric)
                }
                (Version::Ten, _) => false,
            }
    }

    fn category_length(self, plain: &str) -> usize {
        if self == Version::Nine && plain.starts_with('E') { 4 } else { 3 }
    }

    /// The category of a code that has the shape.
    fn category(self, parts: Parts<'_>) -> String {
        let mut plain = parts.plain();
        plain.truncate(self.category_length(&plain));
        plain
    }
}

/// The category of a diagnosis, if all versions that it can be of agree.
fn category(parts: Parts<'_>) -> Option<String> {
    let mut categories = Version::of(parts).into_iter().map(|version| version.category(parts));
    let first = categories.next()?;
    categories.all(|other| other == first).then_some(first)
}

/// The chapter of a diagnosis, if it can be of one version only.
fn chapter(parts: Parts<'_>) -> Option<Group> {
    let [version] = Version::of(parts)[..] else { return None };
    let (name, chapters) = match version {
        Version::Nine => ("ICD9CM", &ICD9_CHAPTERS[..]),
        Version::Ten => ("ICD10CM", &ICD10_CHAPTERS[..]),
    };
    let category = version.category(parts);
    let begins_before = |range: &str| range.split('-').next().is_some_and(|first| first <= category.as_str());
    let (range, title) = chapters.iter().rev().find(|(range, _)| begins_before(range))?;
    Some(Group { code: format!("{name}:{range}"), description: Some((*title).into()) })
}

/// The first characters of a code of ATC that has so many.
fn atc(parts: Parts<'_>, length: usize) -> Option<String> {
    const LETTERS: [bool; 7] = [true, false, false, true, true, false, false];
    let vocabulary = parts.vocabulary();
    let plain = parts.plain();
    // A letter alone says nothing without a prefix.
    let lengths: &[usize] = if vocabulary == ATC { &[1, 3, 4, 5, 7] } else { &[3, 4, 5, 7] };
    let mut signs = plain.bytes().zip(LETTERS);
    let is_atc = (vocabulary == ATC || vocabulary.is_empty())
        && lengths.contains(&plain.len())
        && signs.all(
            |(byte, is_letter)| {
                if is_letter { byte.is_ascii_uppercase() } else { byte.is_ascii_digit() }
            },
        );
    (is_atc && plain.len() >= length).then(|| plain[..length].to_owned())
}

/// Chapters of ICD-9-CM in the order of their first categories, as text.
const ICD9_CHAPTERS: [(&str, &str); 19] = [
    ("001-139", "Infectious and parasitic diseases"),
    ("140-239", "Neoplasms"),
    ("240-279", "Endocrine, nutritional and metabolic diseases, and immunity disorders"),
    ("280-289", "Diseases of the blood and blood-forming organs"),
    ("290-319", "Mental disorders"),
    ("320-389", "Diseases of the nervous system and sense organs"),
    ("390-459", "Diseases of the circulatory system"),
    ("460-519", "Diseases of the respiratory system"),
    ("520-579", "Diseases of the digestive system"),
    ("580-629", "Diseases of the genitourinary system"),
    ("630-679", "Complications of pregnancy, childbirth, and the puerperium"),
    ("680-709", "Diseases of the skin and subcutaneous tissue"),
    ("710-739", "Diseases of the musculoskeletal system and connective tissue"),
    ("740-759", "Congenital anomalies"),
    ("760-779", "Certain conditions originating in the perinatal period"),
    ("780-799", "Symptoms, signs, and ill-defined conditions"),
    ("800-999", "Injury and poisoning"),
    ("E000-E999", "External causes of injury and poisoning"),
    ("V01-V91", "Factors influencing health status and contact with health services"),
];

/// Chapters of ICD-10-CM in the same order.
const ICD10_CHAPTERS: [(&str, &str); 22] = [
    ("A00-B99", "Certain infectious and parasitic diseases"),
    ("C00-D49", "Neoplasms"),
    (
        "D50-D89",
        "Diseases of the blood and blood-forming organs and certain disorders involving the immune mechanism",
    ),
    ("E00-E89", "Endocrine, nutritional and metabolic diseases"),
    ("F01-F99", "Mental, behavioral and neurodevelopmental disorders"),
    ("G00-G99", "Diseases of the nervous system"),
    ("H00-H59", "Diseases of the eye and adnexa"),
    ("H60-H95", "Diseases of the ear and mastoid process"),
    ("I00-I99", "Diseases of the circulatory system"),
    ("J00-J99", "Diseases of the respiratory system"),
    ("K00-K95", "Diseases of the digestive system"),
    ("L00-L99", "Diseases of the skin and subcutaneous tissue"),
    ("M00-M99", "Diseases of the musculoskeletal system and connective tissue"),
    ("N00-N99", "Diseases of the genitourinary system"),
    ("O00-O9A", "Pregnancy, childbirth and the puerperium"),
    ("P00-P96", "Certain conditions originating in the perinatal period"),
    ("Q00-Q99", "Congenital malformations, deformations and chromosomal abnormalities"),
    ("R00-R99", "Symptoms, signs and abnormal clinical and laboratory findings, not elsewhere classified"),
    ("S00-T88", "Injury, poisoning and certain other consequences of external causes"),
    ("U00-U85", "Codes for special purposes"),
    ("V00-Y99", "External causes of morbidity"),
    ("Z00-Z99", "Factors influencing health status and contact with health services"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn group(rule: &str, code: &str) -> Option<String> {
        Some(Rule::named(rule).unwrap().group(code)?.code)
    }

    fn check(rule: &str, expected: &[(&str, &str)]) {
        for (code, expected) in expected {
            let found = group(rule, code).unwrap_or_else(|| "unmapped".into());
            assert_eq!(found, *expected, "{code} by {rule}");
        }
    }

    #[test]
    fn categories_of_icd() {
        check(
            "icd3",
            &[
                ("ICD10CM:I50.1", "ICD10CM:I50"),
                ("ICD10CM:I501", "ICD10CM:I50"),
                ("ICD10CM:I10", "ICD10CM:I10"),
                ("ICD10CM:C7A.00", "ICD10CM:C7A"),
                ("DIAGNOSIS//ICD//10//E119", "DIAGNOSIS//ICD//10//E11"),
                ("ICD9DX:4019", "ICD9DX:401"),
                ("ICD9CM:E850.1", "ICD9CM:E850"),
                ("ICD10CM:E85.0", "ICD10CM:E85"),
                ("ICD9CM:V10.1", "ICD9CM:V10"),
                // Without a prefix: by shape, and where both versions have it, only if they agree.
                ("i50.1", "I50"),
                ("401.9", "401"),
                ("E11.9", "E11"),
                ("E119", "E11"),
                ("E950", "E950"),
                ("E850.1", "E850"),
                ("E850", "unmapped"),
                ("V10.1", "V10"),
                // Not of ICD, or not diagnoses.
                ("ICD10PCS:0FT44ZZ", "unmapped"),
                ("ICD9PROC:4701", "unmapped"),
                ("SNOMED:40199", "unmapped"),
                ("ICD10CM:", "unmapped"),
                ("ICD10CM:heart", "unmapped"),
                ("40", "unmapped"),
                ("401999", "unmapped"),
                ("40.19", "unmapped"),
                ("aspirin", "unmapped"),
                ("ä10", "unmapped"),
            ],
        );
    }

    #[test]
    fn chapters_of_icd() {
        check(
            "icd_chapter",
            &[
                ("ICD10CM:I50.1", "ICD10CM:I00-I99"),
                ("ICD10:B99", "ICD10CM:A00-B99"),
                ("ICD10CM:D49.9", "ICD10CM:C00-D49"),
                ("ICD10CM:D50", "ICD10CM:D50-D89"),
                ("ICD10CM:H59", "ICD10CM:H00-H59"),
                ("ICD10CM:H60", "ICD10CM:H60-H95"),
                ("ICD10CM:O9A.1", "ICD10CM:O00-O9A"),
                ("ICD10CM:T88", "ICD10CM:S00-T88"),
                ("ICD10CM:Y99", "ICD10CM:V00-Y99"),
                ("ICD10CM:V10.1", "ICD10CM:V00-Y99"),
                ("ICD10CM:E85.0", "ICD10CM:E00-E89"),
                ("ICD9CM:001", "ICD9CM:001-139"),
                ("ICD9CM:1399", "ICD9CM:001-139"),
                ("ICD9CM:140.0", "ICD9CM:140-239"),
                ("ICD9CM:999.9", "ICD9CM:800-999"),
                ("ICD9CM:E850.1", "ICD9CM:E000-E999"),
                ("ICD9CM:V10", "ICD9CM:V01-V91"),
                ("ICD9CM:000", "unmapped"),
                ("I50.1", "ICD10CM:I00-I99"),
                ("40199", "ICD9CM:390-459"),
                ("E11.9", "ICD10CM:E00-E89"),
                ("V43.62XA", "ICD10CM:V00-Y99"),
                ("V10.1", "unmapped"),
                ("E850", "unmapped"),
            ],
        );
        let heart = Rule::IcdChapter.group("I50").unwrap();
        assert_eq!(heart.description.as_deref(), Some("Diseases of the circulatory system"));
    }

    #[test]
    fn every_chapter_has_its_first_and_last_category() {
        for (name, chapters) in [("ICD9CM", &ICD9_CHAPTERS[..]), ("ICD10CM", &ICD10_CHAPTERS[..])] {
            assert!(chapters.is_sorted(), "the last that begins before a category is its chapter");
            for (range, _) in chapters {
                for category in range.split('-') {
                    check("icd_chapter", &[(&format!("{name}:{category}"), &format!("{name}:{range}"))]);
                }
            }
        }
    }

    #[test]
    fn levels_of_atc() {
        let levels = |code: &str| {
            ["atc1", "atc2", "atc3", "atc4", "atc5"].map(|rule| group(rule, code).unwrap_or("-".into()))
        };
        assert_eq!(levels("ATC:C07AB02"), ["ATC:C", "ATC:C07", "ATC:C07A", "ATC:C07AB", "ATC:C07AB02"]);
        assert_eq!(levels("c07ab"), ["C", "C07", "C07A", "C07AB", "-"]);
        assert_eq!(levels("ATC/C"), ["ATC/C", "-", "-", "-", "-"]);
        for code in ["C", "C07AB0", "7CAB", "RXNORM:C07AB02", "aspirin", "C07AB02X", ""] {
            assert_eq!(levels(code), ["-"; 5], "{code}");
        }
    }
}
