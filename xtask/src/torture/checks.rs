//! What no command may do, whatever it is given.

use std::path::Path;

use super::corpus::MARKER;
use super::program::Outcome;

/// Something that should not have happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What it is, in words that are the same for all of its kind.
    pub(crate) kind: String,
    /// What is particular about this one.
    pub(crate) detail: String,
}

impl Problem {
    pub(crate) fn new(kind: impl Into<String>, detail: impl Into<String>) -> Self {
        Problem { kind: kind.into(), detail: detail.into() }
    }
}

/// What is wrong with how a command ended and with what it printed.
pub(crate) fn look(outcome: &Outcome) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut found = |kind: String| problems.push(Problem::new(kind, outcome.stderr.trim_end()));
    match (outcome.is_hung, outcome.is_over_memory, outcome.code) {
        (true, ..) => found("hangs".into()),
        (_, true, _) => found("takes more than 1 GiB".into()),
        (.., Some(0 | 2 | 130)) => {}
        (.., Some(101)) => found("panics".into()),
        (.., Some(code)) => found(format!("exit code {code}")),
        (.., None) => found(format!("dies of signal {}", outcome.signal.unwrap_or(0))),
    }
    if outcome.code != Some(101) && outcome.stderr.contains("panicked at") {
        found("panics on a thread".into());
    }
    if outcome.code == Some(2) {
        problems.extend(refusal(&outcome.stderr));
    }
    problems.extend(printed(&outcome.stdout, "standard output"));
    problems.extend(printed(&outcome.stderr, "standard error"));
    problems
}

/// What is wrong with the message of a command that refused to work.
fn refusal(message: &str) -> Option<Problem> {
    let error = message.lines().find_map(|line| line.strip_prefix("error: "));
    let kind = match error {
        None => "exit code 2 without `error:`",
        Some(error) if !error.trim().contains(char::is_whitespace) => "a message that is only a path",
        Some(_) if !message.lines().any(|line| line.starts_with("hint: ")) => "an error without a hint",
        Some(_) => return None,
    };
    Some(Problem::new(kind, message.trim_end()))
}

/// What must not be printed, in whatever is printed.
pub(crate) fn printed(text: &str, stream: &str) -> Vec<Problem> {
    let is_raw = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    let line_with = |holds: &dyn Fn(&str) -> bool| text.split('\n').find(|line| holds(line));
    let escape = line_with(&|line| line.contains(is_raw)).map(|line| {
        Problem::new(format!("a raw control character on {stream}"), line.escape_debug().to_string())
    });
    let identifier = line_with(&|line| line.contains(MARKER))
        .map(|line| Problem::new(format!("a planted identifier on {stream}"), line));
    escape.into_iter().chain(identifier).collect()
}

/// Whether a file that is not meant to hold identifiers holds one.
pub(crate) fn identifier_in(path: &Path, bytes: &[u8]) -> Option<Problem> {
    let holds = bytes.windows(MARKER.len()).any(|window| window == MARKER.as_bytes());
    holds.then(|| Problem::new("a planted identifier in a file", path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(code: i32, stdout: &str, stderr: &str) -> Vec<String> {
        let (stdout, stderr) = (stdout.to_owned(), stderr.to_owned());
        let outcome = Outcome { code: Some(code), stdout, stderr, ..Outcome::default() };
        look(&outcome).into_iter().map(|problem| problem.kind).collect()
    }

    #[test]
    fn a_good_end_has_no_problems() {
        assert_eq!(kinds(0, "all is well\n", ""), [""; 0]);
        assert_eq!(kinds(2, "", "error: data is no dataset\nhint: make one\n"), [""; 0]);
        assert_eq!(kinds(130, "", "stopped\n"), [""; 0]);
    }

    #[test]
    fn every_bad_end_is_found() {
        assert_eq!(kinds(101, "", "thread 'main' panicked at x.rs:1:1"), ["panics"]);
        assert_eq!(kinds(0, "", "thread 'a' panicked at x.rs:1:1"), ["panics on a thread"]);
        assert_eq!(kinds(1, "", ""), ["exit code 1"]);
        assert_eq!(kinds(2, "", "usage"), ["exit code 2 without `error:`"]);
        assert_eq!(kinds(2, "", "error: data is no dataset\n"), ["an error without a hint"]);
        assert_eq!(kinds(2, "", "error: /data/set\nhint: no\n"), ["a message that is only a path"]);
        assert_eq!(kinds(0, "\u{1b}[31mD_1\n", ""), ["a raw control character on standard output"]);
        assert_eq!(kinds(0, "", "PLANTED-4711-e3\n"), ["a planted identifier on standard error"]);
        let killed = Outcome { signal: Some(6), ..Outcome::default() };
        assert_eq!(look(&killed)[0].kind, "dies of signal 6");
        assert_eq!(look(&Outcome { is_hung: true, ..killed })[0].kind, "hangs");
    }
}
