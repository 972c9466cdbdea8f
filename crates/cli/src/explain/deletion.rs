//! `gct explain --deletion`: how much answers change without the codes that a ranking puts first.

use anyhow::Result;
use gct::infer::Which;
use gct::metric::{Bootstrap, Estimate};
use gct::predict::{self, Deletion, DeletionCurve, DeletionStep};
use serde_json::{Value, json};

use super::Arguments;
use crate::selection;
use crate::terminal::{self, count, refusal};

pub(super) fn run(arguments: &Arguments, least: f64, quiet: bool) -> Result<()> {
    if arguments.data.as_deref().is_some_and(selection::is_file) {
        let hint = "give the folder of a dataset, or leave out --data";
        return Err(refusal(
            "--deletion is for datasets with answers, and a file of encounters has none",
            hint,
        ));
    }
    let (run, dataset) = selection::open(&arguments.run, arguments.data.as_deref())?;
    let which = Which::default_for(&run, &dataset);
    let bar = selection::progress(&run, &dataset, which, "leaving out codes", quiet);
    let job = terminal::counting(&bar);
    let deletion = predict::deletion(&run, &dataset, which, least, Bootstrap::default(), &job);
    bar.finish_and_clear();
    let deletion = deletion?;
    if deletion.answers == 0 {
        let problem = format!(
            "no true answer of {} encounters has a probability of {} or more",
            count(deletion.encounters),
            least
        );
        return Err(refusal(problem, "give a lower one, such as --deletion=0.5"));
    }
    if arguments.json {
        return Ok(terminal::print_json(&report(&deletion, least))?);
    }
    Ok(terminal::print(&text(&deletion, least))?)
}

fn text(deletion: &Deletion, least: f64) -> String {
    let mut text = format!(
        "{} true answers with a probability of {} or more, in {} encounters of {}\n\
         mean change of the probability when the first codes of a ranking are left out\n",
        count(deletion.answers),
        least,
        count(deletion.encounters),
        deletion.split
    );
    let row = |DeletionCurve { ranking, steps }: &DeletionCurve| {
        let name = ranking.name().to_owned();
        [name].into_iter().chain(steps.iter().map(|step| estimate(&step.change))).collect()
    };
    text += &terminal::table(&["ranking", "1 code", "2", "3", "4", "5"], deletion.curves.iter().map(row));
    text
}

fn estimate(Estimate { value, interval }: &Estimate) -> String {
    match (value, interval) {
        (Some(value), Some([low, high])) => format!("{value:+.3} [{low:+.3}, {high:+.3}]"),
        (Some(value), None) => format!("{value:+.3}"),
        (None, _) => "-".into(),
    }
}

fn report(deletion: &Deletion, least: f64) -> Value {
    let step = |(codes, step): (usize, &DeletionStep)| {
        json!({
            "codes": codes,
            "answers": step.answers,
            "change": step.change.value,
            "change_interval": step.change.interval,
            "log_odds_change": step.log_odds_change.value,
            "log_odds_change_interval": step.log_odds_change.interval,
        })
    };
    let curve = |curve: &DeletionCurve| {
        json!({
            "ranking": curve.ranking.name(),
            "steps": (1..).zip(&curve.steps).map(step).collect::<Vec<_>>(),
        })
    };
    json!({
        "split": deletion.split,
        "encounters": deletion.encounters,
        "least_probability": least,
        "answers": deletion.answers,
        "curves": deletion.curves.iter().map(curve).collect::<Vec<_>>(),
    })
}
