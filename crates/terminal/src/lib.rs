//! What the commands of gct have in common: errors, progress, stopping, tables, numbers.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::LazyLock;
use std::time::Duration;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use gct::job::{Job, Stop};
use indicatif::{HumanDuration, ProgressBar, ProgressState, ProgressStyle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

mod settings;

pub use settings::{SHOW_CONFIG, SettingsArguments};

pub use hint::hint;

mod hint;

/// Standard output could not be written.
#[derive(Debug)]
pub struct Unprinted(io::Error);

impl Unprinted {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        "free some space where it goes, or send it elsewhere, as in `> FILE`"
    }
}

impl fmt::Display for Unprinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write to standard output: {}", self.0)
    }
}

impl std::error::Error for Unprinted {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

/// Text of a file or an argument for a line of its own or a cell of a table: what would move the cursor,
/// change colors or turn the direction of writing is shown as JSON writes it, and so are line breaks, which
/// could forge a line.
pub fn visible(text: impl fmt::Display) -> String {
    escape(&text.to_string(), is_hidden).into_owned()
}

/// Whether a character does something to a terminal instead of being shown: C0, C1 and DEL, line and
/// paragraph separators, controls of the direction of writing.
fn is_hidden(letter: char) -> bool {
    const DIRECTIONS: [char; 3] = ['\u{61c}', '\u{200e}', '\u{200f}'];
    let is_between = matches!(letter, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    letter.is_control() || is_between || DIRECTIONS.contains(&letter)
}

fn escape(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        match letter {
            letter if !is_hidden(letter) => shown.push(letter),
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            letter => shown.push_str(&format!("\\u{:04x}", u32::from(letter))),
        }
    }
    shown.into()
}

/// Lines of ours: everything but their ends is made visible. What is escaped is still valid inside of texts
/// of JSON and TOML.
fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |letter| letter != '\n' && is_hidden(letter))
}

/// Writes text to standard output. Line breaks are kept, so what comes from a file must have gone through
/// [`visible`] before.
///
/// # Errors
/// As [`flushed`].
pub fn print(text: &str) -> Result<(), Unprinted> {
    flushed(io::stdout().write_all(lines(text).as_bytes()))
}

/// Makes sure that what was written to standard output has arrived.
///
/// # Errors
/// If it could not be written. That whoever read it has had enough of it, as `head` does, is no failure.
pub fn flushed(written: io::Result<()>) -> Result<(), Unprinted> {
    match written.and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Unprinted(error)),
        _ => Ok(()),
    }
}

/// Writes one line to standard error.
pub fn print_line(line: &str) {
    // If standard error is closed, nobody is left to tell.
    let _ = writeln!(io::stderr().lock(), "{}", visible(line));
}

/// Writes one JSON object to standard output.
///
/// # Errors
/// As [`flushed`].
pub fn print_json(value: &serde_json::Value) -> Result<(), Unprinted> {
    print(&format!("{value:#}\n"))
}

/// Shows on standard error what the library warns of.
struct Warnings;

impl log::Log for Warnings {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        // The words of other libraries can hold values of patients.
        metadata.target().starts_with("gct")
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            print_line(&format!("warning: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

/// From now on, shows what the library warns of.
pub fn show_warnings() {
    if log::set_logger(&Warnings).is_ok() {
        log::set_max_level(log::LevelFilter::Warn);
    }
}

/// Adds the fields of one JSON object to another.
pub fn extend(object: &mut serde_json::Value, more: serde_json::Value) {
    if let (Some(object), serde_json::Value::Object(more)) = (object.as_object_mut(), more) {
        object.extend(more);
    }
}

/// Writes an error and what to do about it, each on one line.
pub fn print_error(error: &str, hint: &str) {
    let text = format!("error: {}\nhint: {}\n", visible(error), visible(hint));
    // If standard error is closed too, nobody is left to tell.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Ends a command that was written wrongly, or that shows its help. What an argument would do to a terminal
/// is shown instead.
pub fn misused(error: &clap::Error) -> ! {
    if std::env::args_os().any(|argument| argument.to_string_lossy().contains(is_hidden)) {
        let _ = io::stderr().lock().write_all(lines(&error.render().to_string()).as_bytes());
        std::process::exit(error.exit_code());
    }
    error.exit()
}

/// Whether progress is shown: somebody is looking, and wants to.
pub fn is_watched(quiet: bool) -> bool {
    !quiet && io::stderr().is_terminal()
}

/// The program's own.
static STOP: LazyLock<Stop> = LazyLock::new(Stop::new);

/// What every command is stopped by, once [`listen`] was called.
pub fn stop() -> &'static Stop {
    &STOP
}

/// From now on, Ctrl-C, a request to terminate and a terminal that is closed ask to [`stop`], so that a
/// command can clean up. A second Ctrl-C or request does not ask: the program ends with 130.
///
/// # Errors
/// If the system refuses.
pub fn listen() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM] {
        // Before the flag is set, so that the first one finds it unset.
        flag::register_conditional_shutdown(signal, 130, STOP.flag())?;
        flag::register(signal, STOP.flag())?;
    }
    // A terminal that is closed may say so twice.
    if !ignores_hangup() {
        flag::register(SIGHUP, STOP.flag())?;
    }
    Ok(())
}

/// Whether a closed terminal is no reason to stop: `nohup` has said so to the system before this program
/// began.
pub fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Signals are numbered from 1, and SIGHUP is the first.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// A progress bar with an estimate, if somebody is looking.
pub fn progress(total: u64, what: &'static str, quiet: bool) -> ProgressBar {
    if !is_watched(quiet) {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {rate} {left}")
        .expect("the template is well formed")
        .with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = write!(text, "{}/s", count(state.per_sec() as u64));
        })
        .with_key("left", |state: &ProgressState, text: &mut dyn fmt::Write| {
            let _ = text.write_str(&left(state.pos(), state.len(), state.eta(), state.elapsed()));
        });
    let bar = ProgressBar::new(total).with_style(style).with_message(what);
    // What comes after the last one is seen to go on too.
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

/// The time that is left; when all are done, what is computed of them takes a while.
fn left(done: u64, total: Option<u64>, eta: Duration, elapsed: Duration) -> String {
    match total {
        Some(total) if done >= total && total > 0 => format!("finishing, {:#}", HumanDuration(elapsed)),
        _ => format!("{:#} left", HumanDuration(eta)),
    }
}

/// Moves a bar on. A total that is an estimate grows with what is done, so that it is never passed.
pub fn advance(bar: &ProgressBar, done: u64) {
    if bar.length().is_some_and(|total| done > total) {
        bar.set_length(done);
    }
    bar.set_position(done);
}

/// A job over encounters that moves a bar, until the user stops it.
pub fn counting(bar: &ProgressBar) -> Job<'_, u64> {
    Job::new(stop(), |done| advance(bar, done))
}

/// A table without lines: the first column to the left, the others to the right.
pub fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    if header.iter().any(|title| !title.is_empty()) {
        table.set_header(header.iter().map(visible));
    }
    table.add_rows(rows.into_iter().map(|row| row.iter().map(visible).collect::<Vec<_>>()));
    for (position, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 3));
        if position > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n") + "\n"
}

/// 50000 as 50,000.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = (0..digits.len().div_ceil(3))
        .rev()
        .map(|group| {
            let end = digits.len() - 3 * group;
            &digits[end.saturating_sub(3)..end]
        })
        .collect();
    groups.join(",")
}

/// A count with its noun: `1 step`, `2,000 steps`.
pub fn counted(number: u64, one: &str, several: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { several })
}

/// 0.0331 as 3.31 %; undefined as a dash.
pub fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.2} %", 100.0 * share))
}

/// Four decimals, as in the paper's tables; undefined as a dash.
pub fn score(score: Option<f64>) -> String {
    score.map_or("-".into(), |score| format!("{score:.4}"))
}

#[cfg(test)]
mod tests {
    use indicatif::ProgressDrawTarget;

    use super::*;

    /// A clearing of the screen, C1, DEL, a turn of direction and a forged line.
    const HOSTILE: &str = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}\r\n\terror: b";
    const SHOWN: &str = r"a\u001b[2J\u009b31m\u007f\u202e\r\n\terror: b";

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        assert_eq!(visible(HOSTILE), SHOWN);
        assert_eq!(lines(HOSTILE), SHOWN.replace(r"\n", "\n"));
        assert_eq!(visible("größe 日本 █ \\"), "größe 日本 █ \\");
        let cells = table(&["code"], [vec![HOSTILE.to_owned()]]);
        assert_eq!(cells, format!("code\n{SHOWN}\n"));
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = serde_json::json!({ HOSTILE: [HOSTILE] });
        let text = format!("{value:#}");
        assert!(!lines(&text).contains(|letter: char| letter != '\n' && is_hidden(letter)));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&lines(&text)).unwrap(), value);
    }

    #[test]
    fn progress_never_passes_its_total() {
        let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::hidden());
        for (done, total) in [(999, 1000), (1000, 1000), (1005, 1005)] {
            advance(&bar, done);
            assert_eq!((bar.position(), bar.length()), (done, Some(total)));
        }
    }

    #[test]
    fn what_comes_after_the_last_one_is_named() {
        let [eta, elapsed] = [7, 90].map(Duration::from_secs);
        assert_eq!(left(3, Some(10), eta, elapsed), "7s left");
        assert_eq!(left(10, Some(10), eta, elapsed), "finishing, 2m");
        assert_eq!(left(0, Some(0), eta, elapsed), "7s left");
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        let grouped = [0, 7, 999, 1000, 50_000, 1_234_567].map(count);
        assert_eq!(grouped, ["0", "7", "999", "1,000", "50,000", "1,234,567"]);
    }
}
