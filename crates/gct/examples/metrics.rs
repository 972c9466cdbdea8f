//! All metrics of scored examples, for `reference/test_metrics.py`.
//!
//! `metrics FILE` reads a JSON object of `scores` (logits), `labels`, `subjects` and `bootstrap`, and perhaps
//! `other`, the scores of another model. Maps that calibrate the scores are those of `calibration`.

use std::{env, fs};

use gct::calibration::{Map, Method};
use gct::metric::{Bootstrap, Predictions, Replicated, Scored, SubjectRanking};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Examples {
    scores: Vec<f32>,
    other: Option<Vec<f32>>,
    labels: Vec<bool>,
    subjects: Vec<u32>,
    bootstrap: Bootstrap,
}

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = env::args().nth(1).ok_or("metrics FILE")?;
    let examples: Examples = serde_json::from_str(&fs::read_to_string(path)?)?;
    let (ranking, predictions) = examples.gathered(&examples.scores);
    let areas = ranking.estimates(&examples.bootstrap);
    let predictions = predictions.estimates(&examples.bootstrap);
    let pairs: Vec<(f32, bool)> =
        examples.scores.iter().copied().zip(examples.labels.iter().copied()).collect();
    let calibration = [Method::Platt, Method::Isotonic].map(|method| Map::fit(method, &pairs).ok());
    let differences = examples.other.as_deref().map(|other| examples.differences(other));
    println!(
        "{}",
        json!({
            "areas": areas,
            "predictions": predictions,
            "calibration": calibration,
            "differences": differences,
        })
    );
    Ok(())
}

impl Examples {
    fn gathered(&self, scores: &[f32]) -> (SubjectRanking, Predictions) {
        let (mut ranking, mut predictions) = (SubjectRanking::default(), Predictions::default());
        for ((&score, &positive), &subject) in scores.iter().zip(&self.labels).zip(&self.subjects) {
            ranking.add(Scored { score, positive, subject });
            predictions.add(score.into(), positive, subject);
        }
        (ranking, predictions)
    }

    /// By how much the metrics of other scores are more: AUROC and log loss.
    fn differences(&self, other: &[f32]) -> [serde_json::Value; 2] {
        let [other, own] = [other, &self.scores].map(|scores| {
            let (ranking, predictions) = self.gathered(scores);
            let [_, auroc] = ranking.replicated(&self.bootstrap);
            let [_, log_loss, ..] = predictions.replicated(&self.bootstrap);
            [auroc, log_loss]
        });
        let told = |difference: Replicated| json!({ "of": difference.estimate(), "p": difference.p() });
        std::array::from_fn(|metric| told(other[metric].minus(&own[metric])))
    }
}
