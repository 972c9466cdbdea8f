//! Why a model predicts what it predicts, as tables: what happens when codes are left out.

use anyhow::Result;
use gct::predict::{Attribution, Change, Explanation, PairChange};
use gct::question::Question;

use crate::terminal::{self, refusal, visible};

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
        Question::Edges | Question::HiddenDiagnosis | Question::NextDiagnoses(_) => FIRST,
    };
    explanation.attributions.iter().take(shown).map(|attribution| reasons(attribution, top)).collect()
}

fn reasons(Attribution { what, probability, changes, pairs }: &Attribution, top: usize) -> String {
    let (what, probability) = (visible(what), share(*probability));
    if changes.is_empty() {
        return format!("\nwhy {what}, {probability}: the encounter has no code to leave out\n");
    }
    let row = |change: &Change| {
        let Change { kind, code, description, without, change, log_odds_change, .. } = change;
        let name = name(code, description.as_deref());
        vec![name, kind.name().into(), share(*without), signed(*change), format!("{log_odds_change:+.2}")]
    };
    let header = ["code", "kind", "without it", "change", "log-odds"];
    let mut text = format!("\nwhy {what}, {probability}: what happens when one code is left out\n");
    text += &terminal::table(&header, changes.iter().take(top).map(row));
    if !pairs.is_empty() {
        text += &format!("\nwhy {what}, {probability}: what happens when two codes are left out\n");
        let header = ["code", "and", "without both", "change", "log-odds", "beyond the sum"];
        text += &terminal::table(&header, pairs.iter().take(top).map(pair));
    }
    text
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
    fn a_small_probability_is_not_zero() {
        assert_eq!([0.5, 0.000_05, 0.000_007, 0.0].map(share), ["0.5000", "0.0001", "7.0e-6", "0.0000"]);
        assert_eq!([0.25, -0.5, -0.000_02, 0.0].map(signed), ["+0.2500", "-0.5000", "-2.0e-5", "+0.0000"]);
    }
}
