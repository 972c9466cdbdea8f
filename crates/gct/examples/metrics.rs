//! All metrics of scored examples, for `reference/test_metrics.py`.
//!
//! `metrics FILE` reads a JSON object of `scores` (logits), `labels`, `subjects`, `bootstrap` and, if they
//! are asked for, `thresholds`.

use std::{env, fs};

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
}

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = env::args().nth(1).ok_or("metrics FILE")?;
    let examples: Examples = serde_json::from_str(&fs::read_to_string(path)?)?;
    let (mut ranking, mut predictions) = (SubjectRanking::default(), Predictions::default());
    for ((score, positive), subject) in
        examples.scores.into_iter().zip(examples.labels).zip(examples.subjects)
    {
        ranking.add(Scored { score, positive, subject });
        predictions.add(score.into(), positive, subject);
    }
    let ranking = ranking.sorted();
    let draws = Draws::new(examples.bootstrap, ranking.subjects());
    let printed = json!({
        "areas": ranking.areas(&examples.bootstrap),
        "predictions": predictions.estimates(&examples.bootstrap),
        "thresholds": ranking.operating_points(&examples.thresholds, &draws),
        "calibration": ranking.calibration(&draws),
        "net_benefit": ranking.net_benefit(&examples.thresholds),
    });
    println!("{printed}");
    Ok(())
}
