//! The chance of an edge, pair by pair.
//!
//! Diagnosis d draws treatments while a coin of b(d) says so, and each draw is m with p = p(m|d). So it
//! orders m at least once with
//!
//! ```text
//! q(d,m) = b p / (1 - b + b p)
//! ```
//!
//! and given that somebody ordered m, d did with chance q(d,m) / (1 - prod over d' of (1 - q(d',m))). For a
//! lab the same holds with c(m,d) and p(r|m,d), averaged over who may have ordered m.

use super::PairScores;
use super::chances::Chances;

pub(super) fn posterior(chances: &Chances) -> PairScores {
    let &Chances { diagnoses, treatments, labs, .. } = chances;

    let mut ordered = vec![0.0; diagnoses * treatments];
    for (pair, ordered) in ordered.iter_mut().enumerate() {
        *ordered = at_least_once(chances.more_treatments[pair / treatments], chances.treatment[pair]);
    }
    given_one_happened(&mut ordered, treatments);

    let mut measured = vec![0.0; treatments * labs];
    for treatment in 0..treatments {
        let causes = || (0..diagnoses).map(|diagnosis| diagnosis * treatments + treatment);
        let total: f64 = causes().map(|pair| ordered[pair]).sum();
        for pair in causes() {
            let weight = if total > 0.0 { ordered[pair] / total } else { 0.0 };
            for (lab, &p) in chances.labs_of(pair).iter().enumerate() {
                measured[treatment * labs + lab] += weight * at_least_once(chances.more_labs[pair], p);
            }
        }
    }
    given_one_happened(&mut measured, labs);

    let scores = |chances: Vec<f64>| chances.into_iter().map(|chance| chance as f32).collect();
    PairScores { diagnosis_treatment: scores(ordered), treatment_lab: scores(measured) }
}

/// The chance that a loop that continues with `more` draws something of probability `p` at least once.
fn at_least_once(more: f64, p: f64) -> f64 {
    more * p / (1.0 - more + more * p)
}

/// Conditions each column on at least one of its events having happened.
fn given_one_happened(chances: &mut [f64], columns: usize) {
    for column in 0..columns {
        let cells = (column..chances.len()).step_by(columns);
        let none: f64 = cells.clone().map(|cell| 1.0 - chances[cell]).product();
        for cell in cells {
            // If all are impossible, rounding has eaten them; nothing distinguishes them then.
            chances[cell] = if none < 1.0 { chances[cell] / (1.0 - none) } else { 0.0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        // Two diagnoses, one treatment, one lab; b = 1/2 for both, p(m|d) = 1 and 1/3.
        let chances = Chances {
            diagnoses: 2,
            treatments: 1,
            labs: 1,
            more_treatments: vec![0.5, 0.5],
            treatment: vec![1.0, 1.0 / 3.0],
            more_labs: vec![0.5, 0.5],
            lab: vec![0.1, 0.2],
        };
        let got = posterior(&chances);
        // q = 1/2 and (1/6) / (1/2 + 1/6) = 1/4; somebody: 1 - 1/2 * 3/4 = 5/8.
        assert!((got.diagnosis_treatment[0] - 0.8).abs() < 1e-6);
        assert!((got.diagnosis_treatment[1] - 0.4).abs() < 1e-6);
        // The only treatment must have measured the only lab.
        assert!((got.treatment_lab[0] - 1.0).abs() < 1e-6);
    }
}
