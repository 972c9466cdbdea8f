//! What the commands say alike, beside what is in `gct-terminal`: errors of the library, and the progress of
//! a training.

use std::borrow::Cow;
use std::fmt;

use gct::job::Job;
use gct::synth;
pub(crate) use gct_terminal::{
    advance, count, counted, counting, extend, flushed, percent, print, print_json, print_line, progress,
    score, show_warnings, stop, table, visible,
};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// The user stopped it, and this is what to do next.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) &'static str);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("stopped; everything so far is kept")
    }
}

impl std::error::Error for Stopped {}

/// A command that makes no sense, and what to do about it.
#[derive(Debug)]
struct Refusal {
    problem: String,
    hint: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Refusal {}

/// What is wrong with a command, and what to do about it.
pub(crate) fn refusal(problem: impl Into<String>, hint: impl Into<String>) -> anyhow::Error {
    Refusal { problem: problem.into(), hint: hint.into() }.into()
}

/// An error of many trainings, which the same command resumes if the user stopped them.
pub(crate) fn resumable(error: gct::Error) -> anyhow::Error {
    match error {
        gct::Error::Stopped { .. } | gct::Error::Interrupted => {
            Stopped("run the same command again to resume").into()
        }
        error => error.into(),
    }
}

/// Writes an error and what to do about it.
pub(crate) fn error(error: &anyhow::Error) {
    let (message, hint) = if let Some(error) = error.downcast_ref::<gct::Error>() {
        (error.to_string(), gct_terminal::hint(&error.remedy()))
    } else if let Some(error) = error.downcast_ref::<gct_serve::Error>() {
        (error.to_string(), crate::serve::hint(error))
    } else if let Some(error) = error.downcast_ref::<gct_terminal::Unprinted>() {
        (error.to_string(), error.hint().into())
    } else {
        (format!("{error:#}"), hint(error))
    };
    gct_terminal::print_error(&message, &hint);
}

/// What to do about an error of this program alone.
fn hint(error: &anyhow::Error) -> Cow<'_, str> {
    if let Some(Refusal { hint, .. }) = error.downcast_ref() {
        hint.into()
    } else if let Some(Stopped(next)) = error.downcast_ref() {
        (*next).into()
    } else if let Some(error) = error.downcast_ref() {
        gct_terminal::hint(&gct::Remedy::of_system(error))
    } else {
        "run the command again; with --help it shows what it takes".into()
    }
}

/// Prints what a command has to say, line by line to standard error if standard output has its rows.
pub(crate) fn print_summary(text: &str, rows_are_printed: bool, quiet: bool) -> anyhow::Result<()> {
    if !rows_are_printed {
        return Ok(print(text)?);
    }
    if !quiet {
        text.lines().for_each(print_line);
    }
    Ok(())
}

/// Making synthetic data moves a bar, until the user stops it; `measuring` is what the bar says in the end.
pub(crate) fn drawing<'a>(bar: &'a ProgressBar, measuring: &'static str) -> Job<'a, synth::Event> {
    Job::new(stop(), move |event| match event {
        synth::Event::Drawn(encounters) => bar.set_position(encounters),
        synth::Event::Measuring => bar.set_message(measuring),
    })
}

/// A progress bar for training, which counts steps and shows how many encounters are learned from per second.
pub(crate) fn training(steps: u64, batch: u64, quiet: bool) -> ProgressBar {
    if !gct_terminal::is_watched(quiet) {
        return ProgressBar::hidden();
    }
    let style =
        ProgressStyle::with_template("step {human_pos}/{human_len} {wide_bar} {msg}, {rate}, {eta} left")
            .expect("the template is well formed")
            .with_key("rate", move |state: &ProgressState, text: &mut dyn fmt::Write| {
                let _ = write!(text, "{}/s", count((state.per_sec() * batch as f64) as u64));
            });
    ProgressBar::new(steps).with_style(style)
}
