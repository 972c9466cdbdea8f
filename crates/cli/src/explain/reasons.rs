//! Why a model predicts what it predicts, as tables: what happens when codes are left out.

use anyhow::Result;
use gct::predict::{Attribution, Change, Explanation, PairChange, PastVisit, VisitChange};
use gct::question::Question;

use crate::terminal::{self, counted, refusal, visible};

/// Of how many predictions the reasons are listed, where there are many of which most are hardly probable.
const FIRST: usize = 3;

/// A code with its description, where it has one.
pub(super) fn name(code: &str, description: Option<&str>) -> String {
    match description {
        Some(description) => format!("{code} {description}"),
        None => code.to_owned(),
    }
}

/// Refuses `--pairs` where there is no pair.
pub(super) fn check_pairs(explanation: &Explanation) -> Result<()> {
    let hint = "leave it out";
    if explanation.attributions.is_empty() {
        return Err(refusal("--pairs: nothing is predicted that codes could speak for", hint));
    }
    if explanation.attributions.iter().all(|attribution| attribution.changes.len() < 2) {
        return Err(refusal("--pairs: the encounter has no two codes that could be left out", hint));
    }
    Ok(())
}

/// The reasons of all labels, or of the first predictions of another question.
pub(super) fn text(question: &Question, explanation: &Explanation, top: usize) -> String {
    let shown = match question {
        Question::Labels(_) => explanation.attributions.len(),
        Question::Edges | Question::HiddenDiagnosis | Question::HiddenCode | Question::NextDiagnoses(_) => {
            FIRST
        }
    };
    let visits = explanation.visits.as_deref();
    let shown = explanation.attributions.iter().take(shown);
    shown.map(|attribution| reasons(attribution, visits, top)).collect()
}

/// The reasons of a prediction; `visits` are the earlier ones, where there is history.
fn reasons(attribution: &Attribution, visits: Option<&[PastVisit]>, top: usize) -> String {
    let Attribution { what, probability, changes, pairs, .. } = attribution;
    let why = format!("\nwhy {}, {}", visible(what), share(*probability));
    let mut text = of_visits(&why, attribution, top);
    if changes.is_empty() {
        return text + &format!("{why}: the encounter has no code to leave out\n");
    }
    text += &format!("{why}: what happens when one code is left out\n");
    text += &of_codes(changes, visits, top);
    if !pairs.is_empty() {
        text += &format!("{why}: what happens when two codes are left out\n");
        let header = ["code", "and", "without both", "change", "log-odds", "beyond the sum"];
        text += &terminal::table(&header, pairs.iter().take(top).map(pair));
    }
    text
}

/// What earlier visits do; nothing where none is seen.
fn of_visits(why: &str, attribution: &Attribution, top: usize) -> String {
    let Some(visits) = attribution.visits.as_ref().filter(|visits| !visits.is_empty()) else {
        return String::new();
    };
    let row = |VisitChange { visits_before, days_before, without, change, log_odds_change }: &VisitChange| {
        let name = before(*visits_before, *days_before);
        vec![name, share(*without), signed(*change), format!("{log_odds_change:+.2}")]
    };
    let header = ["visit", "without it", "change", "log-odds"];
    let table = terminal::table(&header, visits.iter().take(top).map(row));
    format!("{why}: what happens when one earlier visit is left out\n{table}")
}

/// What codes do; where there is history, each with its visit.
fn of_codes(changes: &[Change], visits: Option<&[PastVisit]>, top: usize) -> String {
    let row = |change: &Change| {
        let Change { kind, code, description, without, change, log_odds_change, visits_before, .. } = change;
        let name = name(code, description.as_deref());
        let of_visit = visits_before.zip(visits).map(|(back, visits)| match back {
            0 => String::new(),
            back => before(back, visits[back - 1].days_before),
        });
        let numbers = [share(*without), signed(*change), format!("{log_odds_change:+.2}")];
        [name, kind.name().into()].into_iter().chain(of_visit).chain(numbers).collect()
    };
    let rows = changes.iter().take(top).map(row);
    match visits {
        None => terminal::table(&["code", "kind", "without it", "change", "log-odds"], rows),
        Some(_) => {
            terminal::table(&["code", "kind", "earlier visit", "without it", "change", "log-odds"], rows)
        }
    }
}

/// An earlier visit in words.
fn before(visits: usize, days: Option<i64>) -> String {
    let visits = counted(visits as u64, "visit", "visits");
    match days {
        Some(days) => format!("{visits} before, {}", counted(days.unsigned_abs(), "day", "days")),
        None => format!("{visits} before"),
    }
}

fn pair(PairChange { codes, without, change, log_odds_change, interaction, .. }: &PairChange) -> Vec<String> {
    let [first, second] = codes.clone();
    let log_odds = format!("{log_odds_change:+.2}");
    vec![first, second, share(*without), signed(*change), log_odds, format!("{interaction:+.2}")]
}

/// A probability that is not written as 0 unless it is.
pub(super) fn share(probability: f64) -> String {
    match is_written_as_zero(probability) {
        true => format!("{probability:.1e}"),
        false => format!("{probability:.4}"),
    }
}

fn signed(change: f64) -> String {
    match is_written_as_zero(change) {
        true => format!("{change:+.1e}"),
        false => format!("{change:+.4}"),
    }
}

fn is_written_as_zero(number: f64) -> bool {
    number != 0.0 && number.abs() < 0.000_05
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_visit_is_told_by_its_place_and_its_days() {
        assert_eq!(before(2, Some(34)), "2 visits before, 34 days");
        assert_eq!(before(1, Some(1)), "1 visit before, 1 day");
        assert_eq!(before(1, None), "1 visit before");
    }

    #[test]
    fn a_small_probability_is_not_zero() {
        assert_eq!([0.5, 0.000_05, 0.000_007, 0.0].map(share), ["0.5000", "0.0001", "7.0e-6", "0.0000"]);
        assert_eq!([0.25, -0.5, -0.000_02, 0.0].map(signed), ["+0.2500", "-0.5000", "-2.0e-5", "+0.0000"]);
    }
}
