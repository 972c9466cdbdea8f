//! What the commands say alike, beside what is in `gct-terminal`: errors of the library, and the progress of a training.

use std::fmt;

pub(crate) use gct_terminal::{
    advance, count, extend, flushed, percent, print, print_json, progress, score, show_warnings, table,
};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

/// The user stopped it, and this is what to do next.
#[derive(Debug)]
pub(crate) struct Stopped(pub(crate) &'static str);

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Stopped {}

/// An error of many trainings: if the user stopped them, nothing is lost.
pub(crate) fn go_on_again(error: gct::Error) -> anyhow::Error {
    match error {
        gct::Error::Stopped { .. } | gct::Error::Interrupted => {
            Stopped("stopped; run the same command again to go on").into()
        }
        error => error.into(),
    }
}

/// Writes an error and, where there is one, what to do about it.
pub(crate) fn error(error: &anyhow::Error) {
    if let Some(error) = error.downcast_ref::<gct::Error>() {
        gct_terminal::print_error(&error.to_string(), error.hint().as_deref());
    } else if let Some(error) = error.downcast_ref::<gct_serve::Error>() {
        gct_terminal::print_error(&error.to_string(), error.hint().as_deref());
    } else if let Some(error) = error.downcast_ref::<gct_terminal::Unprinted>() {
        gct_terminal::print_error(&error.to_string(), Some(error.hint()));
    } else {
        gct_terminal::print_error(&format!("{error:#}"), None);
    }
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
