//! Platt's map: a logistic regression on the logit.
//!
//! The targets are Platt's: (N+ + 1) / (N+ + 2) for each of N+ positives and 1 / (N- + 2) for each of N-
//! negatives, as in scikit-learn. With targets of 1 and 0 there would be no best line where a threshold
//! separates the two, which is common where positives are few.

use super::Map;
use super::logistic::{LogitLine, logit_line};

pub(super) fn fit(examples: &[(f32, bool)]) -> Result<Map, String> {
    let positives = examples.iter().filter(|(_, positive)| *positive).count() as f64;
    let negatives = examples.len() as f64 - positives;
    let targets = [1.0 / (negatives + 2.0), (positives + 1.0) / (positives + 2.0)];
    let smoothed: Vec<(f64, f64)> = examples
        .iter()
        .map(|(logit, positive)| (f64::from(*logit), targets[usize::from(*positive)]))
        .collect();
    let Some(LogitLine { slope, intercept }) = logit_line(&smoothed) else {
        return Err("the model gives all validation encounters the same probability".into());
    };
    if slope <= 0.0 {
        return Err(format!(
            "the fitted slope is {slope:.3}, and a probability must rise with the model's: on validation it \
             is no better than chance"
        ));
    }
    Ok(Map::Platt { slope, intercept })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_that_are_separated_have_a_map() {
        let Map::Platt { slope, intercept } = fit(&[(-1.0, false), (1.0, true)]).unwrap() else {
            panic!("a line is a line")
        };
        // Targets of 1/3 and 2/3 at -1 and 1.
        assert!((slope - 2.0f64.ln()).abs() < 1e-10 && intercept.abs() < 1e-10, "{slope} {intercept}");
    }
}
