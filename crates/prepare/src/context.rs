//! What is known of encounters beside codes: which of it a source offers, and which of it is taken.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::source::Source;

/// The word for everything that is known at the time of the encounter.
pub(crate) const ALL: &str = "all";

/// The word for nothing.
const NONE: &str = "none";

/// Context that is made of the encounters of a subject, for every source whose encounters have a start: its
/// name, a line about it, and whether it is known only afterwards.
const OF_VISITS: [(&str, &str, bool); 3] = [
    ("days_since_last_visit", "Days since the end of the earlier encounter that ended last, in bands", false),
    ("earlier_visits", "Encounters of the subject that began earlier, in bands", false),
    ("length_of_stay", "Days from start to end, in buckets", true),
];

/// Context that a source offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Its name: `age`.
    pub name: String,
    /// What it is.
    pub about: String,
    /// Whether it is known only after the encounter.
    pub after: bool,
    /// Whether it is made of the subject's encounters, and not by the source.
    pub(crate) of_visits: bool,
}

/// Everything that a source offers, by name. What it describes itself is not made of encounters.
pub fn offered(source: &Source) -> Vec<Offered> {
    let description = &source.description;
    let own = description.context.iter().map(|(name, known)| Offered {
        name: name.clone(),
        about: known.about.clone(),
        after: known.after,
        of_visits: false,
    });
    let of_visits = OF_VISITS
        .iter()
        .filter(|(name, ..)| description.timeless.is_none() && !description.context.contains_key(*name));
    let of_visits = of_visits.map(|(name, about, after)| Offered {
        name: (*name).into(),
        about: (*about).into(),
        after: *after,
        of_visits: true,
    });
    let mut all: Vec<Offered> = own.chain(of_visits).collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Whether only the data know what a source's context is called.
pub(crate) fn is_open(source: &Source) -> bool {
    source.description.context.is_empty()
}

/// The names that are taken, in order: those that are given, `all` as everything that the source offers and
/// that is known at the time of the encounter. Where only the data know the names, `all` also stays.
///
/// # Errors
/// If the source does not offer a name, or `none` is not alone.
pub(crate) fn chosen(source: &Source, words: &[String]) -> Result<Vec<String>> {
    let offered = offered(source);
    let refuse = |value: &str, allowed: String| Error::Choice {
        name: "context".into(),
        value: if value.is_empty() { "nothing".into() } else { value.to_owned() },
        allowed,
    };
    let mut names = BTreeSet::new();
    for word in words {
        match word.as_str() {
            NONE if words.len() > 1 => return Err(refuse(&words.join(","), "`none` alone".into())),
            NONE => {}
            ALL => {
                names.extend(offered.iter().filter(|known| !known.after).map(|known| known.name.clone()));
                names.extend(is_open(source).then(|| ALL.to_owned()));
            }
            _ if offered.iter().any(|known| known.name == *word) => drop(names.insert(word.clone())),
            "" => return Err(refuse(word, allowed(&offered))),
            _ if is_open(source) => drop(names.insert(word.clone())),
            _ => return Err(refuse(word, allowed(&offered))),
        }
    }
    Ok(names.into_iter().collect())
}

/// The words that a user can give.
fn allowed(offered: &[Offered]) -> String {
    let names = |after: bool| -> String {
        let names = offered.iter().filter(|known| known.after == after).map(|known| known.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    let after = match names(true) {
        after if after.is_empty() => String::new(),
        after => format!("; and, known only afterwards, {after}"),
    };
    format!("all, none, or names with commas between them: {}{after}", names(false))
}

/// How a source's context is told about in `--help`: a line for its names, and one about each.
pub fn help(source: &Source) -> (String, String) {
    let offered = offered(source);
    let width = offered.iter().map(|known| known.name.len()).max().unwrap_or(0);
    let line = |known: &Offered| {
        let after = if known.after { " (known only afterwards: taken if named)" } else { "" };
        format!("  {:width$}  {}{after}\n", known.name, known.about)
    };
    let lines: String = offered.iter().map(line).collect();
    let short = match is_open(source) {
        true => {
            "What to take of what is known of patient and visit: all that was known at the time, none, or names, \
                 which are those that events of kind `context` have, and those below [default: all]"
        }
        false => {
            "What to take of what is known of patient and visit: all that was known at the time, none, or names \
                  of those below, with commas between them [default: all]"
        }
    };
    (short.into(), format!("Context:\n{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        let mut source = Source::builtin().swap_remove(0);
        source.description =
            toml::from_str(&format!("about = ''\nexample = ''\ntables = {{}}\n{text}")).unwrap();
        source
    }

    fn names(source: &Source, words: &[&str]) -> Result<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(chosen(source, &words)?.join(" "))
    }

    #[test]
    fn all_is_what_is_known_at_the_time_of_the_visit() {
        let source = source("[context]\nsex = { about = 'x' }\ndischarge = { about = 'x', after = true }\n");
        assert_eq!(names(&source, &["all"]).unwrap(), "days_since_last_visit earlier_visits sex");
        assert_eq!(names(&source, &["discharge", "sex", "sex"]).unwrap(), "discharge sex");
        assert_eq!(
            names(&source, &["all", "discharge"]).unwrap(),
            "days_since_last_visit discharge earlier_visits sex"
        );
        assert_eq!(
            (names(&source, &["none"]).unwrap(), names(&source, &[]).unwrap()),
            ("".into(), "".into())
        );
        for (words, said) in [
            (
                &["age"][..],
                "option `context`: age is not allowed; expected all, none, or names with commas between them: \
                 days_since_last_visit, earlier_visits, sex; and, known only afterwards, discharge, length_of_stay",
            ),
            (&["none", "sex"], "option `context`: none,sex is not allowed; expected `none` alone"),
            (&[""], "option `context`: nothing is not allowed; expected all, none, or names"),
        ] {
            let error = names(&source, words).unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_source_without_times_has_no_earlier_visits_but_its_own() {
        let with = source("timeless = 'minutes'\n[context]\nearlier_visits = { about = 'own' }\n");
        assert_eq!(names(&with, &["all"]).unwrap(), "earlier_visits");
        assert!(!offered(&with)[0].of_visits);
        assert!(names(&with, &["length_of_stay"]).is_err());
    }

    #[test]
    fn where_only_the_data_know_names_any_can_be_given() {
        let open = source("");
        assert_eq!(names(&open, &["all"]).unwrap(), "all days_since_last_visit earlier_visits");
        assert_eq!(names(&open, &["weight"]).unwrap(), "weight");
        assert!(names(&open, &[""]).is_err());
    }
}
