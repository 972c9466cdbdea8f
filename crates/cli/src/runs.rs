//! `gct runs`: what has been trained.

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use gct::run::{Summary, Unreadable};
use serde_json::json;

use crate::terminal::{self, count, score, visible};

/// List the runs in a folder
#[derive(Args)]
#[command(after_help = "Example:
  gct runs runs")]
pub(crate) struct Arguments {
    /// A folder with run folders in it, at any depth
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,

    /// Print one JSON array instead of text
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let runs = gct::run::list(&arguments.folder)?;
    if arguments.json {
        let value = |run: &Result<Summary, Unreadable>| match run {
            Ok(run) => json!(run),
            Err(unreadable) => json!(unreadable),
        };
        return Ok(terminal::print_json(&runs.iter().map(value).collect())?);
    }
    if runs.is_empty() {
        return Ok(terminal::print(&format!("no runs in {}\n", visible(arguments.folder.display())))?);
    }
    let name = |path: &Path| match path.strip_prefix(&arguments.folder) {
        Ok(below) if below != Path::new("") => below.display().to_string(),
        _ => path.display().to_string(),
    };
    let rows = runs.iter().flatten().map(|run| {
        let [seed, split_seed] = run.seeds;
        vec![
            name(&run.path),
            run.task.clone(),
            run.model.clone(),
            format!("{seed}, {split_seed}"),
            format!("{} of {}", count(run.step), count(run.steps)),
            run.metric.clone(),
            score(run.best.map(|best| best.value)),
            run.best.map_or("-".into(), |best| count(best.step)),
            format!("{:.0} s", run.seconds),
        ]
    });
    let header = ["run", "task", "model", "seed, split", "steps", "metric", "best", "at step", "time"];
    let mut text = terminal::table(&header, rows);
    for Unreadable { problem, .. } in runs.iter().filter_map(|run| run.as_ref().err()) {
        text += &format!("not listed: {}\n", visible(problem));
    }
    Ok(terminal::print(&text)?)
}
