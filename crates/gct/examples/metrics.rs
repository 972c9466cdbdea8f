//! All metrics of scored examples, for `reference/test_metrics.py`.
//!
//! `metrics FILE` reads a JSON object of `scores` (logits), `labels`, `subjects`, `bootstrap` and, if they
//! are asked for, `thresholds` and `other`, the scores of another model.

use std::{env, fs};

use gct::calibration::{Map, Method};
use gct::metric::{Bootstrap, Draws, Predictions, Scored, SubjectRanking};
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Examples {
    scores: Vec<f32>,
    labels: Vec<bool>,
    subjects: Vec<u32>,
    bootstrap: Bootstrap,
    #[serde(default)]
    thresholds: Vec<f64>,
    #[serde(default)]
    other: Option<Vec<f32>>,
}

impl Examples {
    /// By how much the AUROC and the log loss of other scores are more.
    fn differences(&self, other: &[f32], draws: &Draws) -> [serde_json::Value; 2] {
        let [other, own] = [other, &self.scores].map(|scores| {
            let (mut ranking, mut predictions) = (SubjectRanking::default(), Predictions::default());
            for ((&score, &positive), &subject) in scores.iter().zip(&self.labels).zip(&self.subjects) {
                ranking.add(Scored { score, positive, subject });
                predictions.add(score.into(), positive, subject);
            }
            let [_, auroc] = ranking.sorted().replicated(draws);
            let [_, log_loss, ..] = predictions.replicated(draws);
            [auroc, log_loss]
        });
        std::array::from_fn(
            |at| json!({"of": other[at].minus(&own[at], draws), "p": other[at].p(&own[at], draws)}),
        )
    }
}

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = env::args().nth(1).ok_or("metrics FILE")?;
    let examples: Examples = serde_json::from_str(&fs::read_to_string(path)?)?;
    let (mut ranking, mut predictions) = (SubjectRanking::default(), Predictions::default());
    for ((&score, &positive), &subject) in
        examples.scores.iter().zip(&examples.labels).zip(&examples.subjects)
    {
        ranking.add(Scored { score, positive, subject });
        predictions.add(score.into(), positive, subject);
    }
    let ranking = ranking.sorted();
    let draws = Draws::new(examples.bootstrap, ranking.subjects());
    let pairs: Vec<(f32, bool)> =
        examples.scores.iter().copied().zip(examples.labels.iter().copied()).collect();
    let maps = [Method::Platt, Method::Isotonic].map(|method| Map::fit(method, &pairs).ok());
    let printed = json!({
        "maps": maps,
        "differences": examples.other.as_ref().map(|other| examples.differences(other, &draws)),
        "areas": ranking.areas(&examples.bootstrap),
        "predictions": predictions.estimates(&examples.bootstrap),
        "thresholds": ranking.operating_points(&examples.thresholds, &draws),
        "calibration": ranking.calibration(&draws),
        "net_benefit": ranking.net_benefit(&examples.thresholds),
    });
    println!("{printed}");
    Ok(())
}
