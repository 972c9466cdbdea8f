//! What a tuning has tried, for people: a table, a picture, the best settings.

use std::fmt::Write;

use super::{End, Tuning};
use crate::error::Result;
use crate::files::write_own;
use crate::picture::{self, Series};

/// Writes `history.csv`, `history.svg` and, if a trial has a value, `best.toml` into the folder of a tuning.
///
/// # Errors
/// If a file cannot be written.
pub fn write(tuning: &Tuning) -> Result<()> {
    let mut files = vec![("history.csv", csv(tuning)), ("history.svg", picture(tuning))];
    if let Some((_, settings)) = tuning.best()? {
        files.push((
            "best.toml",
            toml::to_string(&settings).expect("settings have text keys and numbers that fit"),
        ));
    }
    for (name, text) in files {
        write_own(&tuning.folder.join(name), text.as_bytes())?;
    }
    Ok(())
}

fn csv(tuning: &Tuning) -> String {
    let names = tuning.plan.space.dimensions().iter().map(|dimension| dimension.name.as_str());
    let metric = tuning.plan.settings.task.chosen_by();
    let header: Vec<&str> = ["trial"]
        .into_iter()
        .chain(names)
        .chain(["chosen_by", "end", metric, "best_step", "steps", "seconds"])
        .collect();
    let mut text = header.join(",") + "\n";
    for (number, trial) in (1..).zip(&tuning.trials) {
        let point: Vec<String> = trial.point.iter().map(ToString::to_string).collect();
        let how = trial.how.map_or("settings", |how| match how {
            gct_search::How::Design => "design",
            gct_search::How::Model => "model",
            gct_search::How::Random => "random",
        });
        let end = match trial.end {
            End::Begun => "begun",
            End::Finished => "finished",
            End::GivenUp => "given_up",
            End::Failed => "failed",
        };
        let [value, step] =
            [trial.best.map(|best| best.value.to_string()), trial.best.map(|best| best.step.to_string())]
                .map(Option::unwrap_or_default);
        let _ = writeln!(
            text,
            "{number},{},{how},{end},{value},{step},{},{:.1}",
            point.join(","),
            trial.steps,
            trial.seconds
        );
    }
    text
}

/// The value of each trial, and the best so far.
fn picture(tuning: &Tuning) -> String {
    let values: Vec<(f64, f64)> = (1..)
        .zip(&tuning.trials)
        .filter_map(|(number, trial)| {
            Some((
                f64::from(number),
                trial.best.filter(|_| matches!(trial.end, End::Finished | End::GivenUp))?.value,
            ))
        })
        .collect();
    let mut best = f64::NEG_INFINITY;
    let best_so_far = values.iter().map(|(number, value)| {
        best = best.max(*value);
        (*number, best)
    });
    let series = [
        Series { name: "best so far".into(), points: best_so_far.collect() },
        Series { name: "each trial".into(), points: values.clone() },
    ];
    let settings = &tuning.plan.settings;
    let title = format!("Tuning {} on {}", settings.model.name(), settings.task.in_words());
    let metric = format!("validation {}", settings.task.chosen_by());
    picture::curves(&title, "trial", &metric, &series, &[])
}
