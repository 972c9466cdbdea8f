//! The command `gct-prepare`, which `gct prepare` runs: its subcommands and their flags are those that the
//! sources describe.
//!
//! Exit codes: 0 done; 2 failed; 130 interrupted. Data goes to standard output, everything else to standard
//! error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, value_parser};
use gct::files::Overwrite;
use gct::job::Job;
use gct::overrides::{Layer, read, typed};
use gct::record::CodeKind;
use gct_prepare::context;
use gct_prepare::engine::{Limits, Progress};
use gct_prepare::onset;
use gct_prepare::source::{Choice, ChoiceKind};
use gct_prepare::summary::{cell, part};
use gct_prepare::{Error, Request, Result, Source, Summary};
use gct_terminal::{self as terminal, SettingsArguments};
use indicatif::{ProgressBar, ProgressStyle};

fn main() -> ExitCode {
    quiet_engine();
    let sources = Source::builtin();
    terminal::show_warnings();
    let matches = match command(&sources).try_get_matches() {
        Ok(matches) => matches,
        Err(wrong) if wrong.use_stderr() => terminal::misused(&wrong),
        Err(help) => return printed(terminal::flushed(help.print())),
    };
    if limits_memory(&matches) {
        give_memory_back();
    }
    if let Some(("man", matches)) = matches.subcommand() {
        return match write_pages(command(&sources), matches) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&error),
        };
    }
    let threads =
        threads(&matches).unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
    let runtime = terminal::listen().and_then(|()| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build()
    });
    let result = match runtime {
        Ok(runtime) => runtime.block_on(run(&sources, &matches)),
        Err(error) => Err(Error::System(error)),
    };
    match result {
        Ok(text) => printed(terminal::print(&text)),
        Err(error) => fail(&error),
    }
}

fn limits_memory(matches: &ArgMatches) -> bool {
    let limit =
        matches.subcommand().and_then(|(_, matches)| matches.try_get_one::<String>("memory-limit").ok());
    limit.flatten().is_some()
}

/// Begins anew with an allocator that gives large blocks back as soon as they are freed. It would keep them,
/// up to as much again as the program holds, and only reads this from the environment, before the program
/// begins.
fn give_memory_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    if std::env::var_os("MALLOC_MMAP_THRESHOLD_").is_none()
        && let Ok(program) = std::env::current_exe()
    {
        use std::os::unix::process::CommandExt;
        let threshold = (256 << 10).to_string();
        let mut again = std::process::Command::new(program);
        again.args(std::env::args_os().skip(1)).env("MALLOC_MMAP_THRESHOLD_", &threshold);
        // It returns only if it failed, and then memory is all that is lost.
        let _ = again.env("MALLOC_TRIM_THRESHOLD_", threshold).env("MALLOC_ARENA_MAX", "2").exec();
    }
}

fn fail(error: &Error) -> ExitCode {
    terminal::print_error(&error.to_string(), &error.hint());
    ExitCode::from(if matches!(error, Error::Interrupted) { 130 } else { 2 })
}

/// The exit code once everything is done but the output.
fn printed(output: Result<(), terminal::Unprinted>) -> ExitCode {
    let Err(error) = output else { return ExitCode::SUCCESS };
    terminal::print_error(&error.to_string(), error.hint());
    ExitCode::from(2)
}

/// Writes the manual pages of all sources, for `gct man`.
fn write_pages(command: Command, matches: &ArgMatches) -> Result<()> {
    let folder = matches.get_one::<PathBuf>("out").expect("it is required");
    clap_mangen::generate_to(command, folder)
        .map_err(|error| Error::Input { path: folder.display().to_string(), problem: error.to_string() })
}

/// A panic inside of the engine becomes an error there, and its words can hold values.
fn quiet_engine() {
    let loud = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let is_ours = std::thread::current().name() == Some("main");
        if is_ours || std::env::var_os("GCT_ENGINE_ERRORS").is_some() {
            loud(panic);
        }
    }));
}

fn threads(matches: &ArgMatches) -> Option<usize> {
    let (_, matches) = matches.subcommand()?;
    matches.get_one::<u64>("threads").map(|threads| *threads as usize)
}

/// The command line, with a subcommand per source.
fn command(sources: &[Source]) -> Command {
    let mut command = Command::new("gct-prepare")
        .bin_name("gct prepare")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Make a dataset of health records: eICU, MIMIC, MEDS, OMOP, Synthea, FHIR, claims, any table of events, or your own SQL")
        .arg_required_else_help(true)
        .subcommand_required(true)
        .after_help(
            "Examples:\n  gct prepare eicu eicu-crd --out eicu\n  gct prepare synthea output/csv --out synthea --dry-run\n  \
             gct prepare synthea output/csv --onset diabetes=SNOMED:44054006 --within 1..365 --out diabetes\n  \
             gct prepare sql data --source my-source --out mine\n\nA source is SQL that one can read; docs/prepare.md describes all of them.",
        );
    for source in sources {
        let (names, about_context) = context::help(source);
        let example = format!("{about_context}\nExample:\n  {}", source.description.example);
        let mut own =
            Command::new(source.name.clone()).about(source.description.about.clone()).after_help(example);
        if !source.description.rules.is_empty() {
            let names: Vec<String> = source.description.rules.keys().cloned().collect();
            own = own.arg(
                Arg::new("rules")
                    .long("rules")
                    .value_name("NAME")
                    .value_parser(PossibleValuesParser::new(names))
                    .help("Use a named set of options"),
            );
        }
        for (name, choice) in &source.description.options {
            own = own.arg(option(name, choice));
        }
        command = command.subcommand(common(own, names));
    }
    let own = Command::new("sql")
        .about(
            "Your own source: a source.toml with encounters.sql, events.sql and perhaps links.sql and context.sql beside it",
        )
        .after_help("Example:\n  gct prepare sql data --source my-source --option max_hours=48 --out mine")
        .arg(
            Arg::new("source")
                .long("source")
                .visible_alias("sources")
                .required(true)
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The source.toml, or the folder that it is in"),
        )
        .arg(Arg::new("rules").long("rules").value_name("NAME").help("Use a named set of options"))
        .arg(
            Arg::new("option")
                .long("option")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("A value for one of the source's options"),
        );
    let out =
        Arg::new("out").long("out").value_name("DIR").value_parser(value_parser!(PathBuf)).required(true);
    let man = Command::new("man").about("Write manual pages into a folder").hide(true).arg(out);
    let names = "What to take of what is known of patient and visit: all that was known at the time, none, or \
                 names of the source's `[context]`, with commas between them [default: all]";
    command.subcommand(common(own, names.into())).subcommand(man)
}

/// The flag of a source's option.
fn option(name: &str, choice: &Choice) -> Arg {
    let flag = name.replace('_', "-");
    let mut help = choice.about.clone();
    if let Some(default) = choice.default.as_ref().filter(|_| choice.kind != ChoiceKind::Flag) {
        help +=
            &format!(" [default: {}]", default.as_str().map_or_else(|| default.to_string(), str::to_owned));
    }
    let arg = Arg::new(name.to_owned()).long(flag).help(help);
    match choice.kind {
        ChoiceKind::Flag => arg.action(ArgAction::SetTrue),
        ChoiceKind::Integer | ChoiceKind::Number | ChoiceKind::Days => arg.value_name("N"),
        ChoiceKind::Range => arg.value_name("FIRST..LAST"),
        ChoiceKind::Table => arg.value_name("TABLE[:ID]"),
        ChoiceKind::Text if choice.one_of.is_empty() => arg.value_name("TEXT"),
        ChoiceKind::Text => {
            arg.value_name("WORD").value_parser(PossibleValuesParser::new(choice.one_of.clone()))
        }
    }
}

const INPUT: &str = if cfg!(feature = "cloud") {
    "The folder of the tables, or their one file; also s3://, gs://, az://"
} else {
    "The folder of the tables, or their one file"
};

/// The flags that every source has.
fn common(command: Command, context: String) -> Command {
    let number = |name: &'static str| {
        Arg::new(name).long(name).value_name("N").value_parser(value_parser!(i64).range(0..))
    };
    // The flags of settings bring a description of their own, which is not that of the command.
    let about = command.get_about().cloned().unwrap_or_default();
    SettingsArguments::augment_args(command)
        .about(about)
        .long_about(None)
        .arg(Arg::new("input").required_unless_present("show_config").value_name("INPUT").help(INPUT))
        .arg(
            Arg::new("out").long("out").value_name("DIR").value_parser(value_parser!(PathBuf))
                .required_unless_present_any(["dry-run", "show_config"]).help("The dataset folder to write"),
        )
        .arg(
            Arg::new("prior").long("prior").value_name("FILE").value_parser(value_parser!(PathBuf)).requires("out")
                .help("Also write the conditional probabilities of the training split, as `gct prior` does"),
        )
        .arg(Arg::new("force").long("force").action(ArgAction::SetTrue).help("Replace the dataset if it exists"))
        .arg(Arg::new("dry-run").long("dry-run").action(ArgAction::SetTrue).help("Only count, and write nothing but temporary files, in $TMPDIR"))
        .arg(Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print one JSON object instead of text"))
        .arg(
            Arg::new("min-codes").long("min-codes").value_name("N")
                .help("Minimum of distinct diagnoses and of treatments in an encounter; by kind: diagnosis=1,treatment=0 [default: 1]"),
        )
        .arg(
            Arg::new("max-codes").long("max-codes").value_name("N")
                .help("Maximum of distinct codes of each kind in an encounter; by kind: lab=200 [default: 50]"),
        )
        .arg(number("min-count").help("Minimum of encounters that have a code [default: 1]"))
        .arg(
            Arg::new("rare").long("rare").value_name("WORD").value_parser(["drop", "group"])
                .help("What to do with rarer codes: drop them, or replace all of a kind by one code [default: drop]"),
        )
        .arg(
            number("lab-bins")
                .help("Buckets of the values of each lab, by quantiles of the training split; 0 for none [default: 5]"),
        )
        .arg(
            Arg::new("rollup").long("rollup").value_name("KIND=RULE|FILE").action(ArgAction::Append)
                .help("Replace the codes of a kind by their groups: icd3, icd_chapter, atc1 to atc5, a file that maps them, such as CCS; ancestors:CLASS of omop, parents of meds"),
        )
        .arg(
            Arg::new("rollup-unmapped").long("rollup-unmapped").value_name("WORD").value_parser(["keep", "drop", "group"])
                .help("What to do with codes that have no group: keep them, drop them, or replace all of a kind by one code [default: keep]"),
        )
        .arg(Arg::new("context").long("context").value_name("NAMES").help(context))
        .arg(number("split-seed").help("Seed of the split whose training part the buckets are computed on [default: 0]"))
        .arg(
            Arg::new("split-by").long("split-by").value_name("WORD").value_parser(["subject", "encounter"])
                .help("What is kept together in one part of that split [default: subject]"),
        )
        .arg(
            Arg::new("like").long("like").value_name("DATASET|RUN")
                .help(
                    "Use the codes, buckets, rollups, filters and options of this dataset, or of the one that this run \
                     learned from; nothing is computed anew, codes that it does not have are counted and left out, \
                     and labels are your own",
                ),
        )
        .arg(
            Arg::new("labels").long("labels").value_name("FILE")
                .help(
                    "Join these labels: a table with encounter_id, a column of true and false per label, and perhaps \
                     prediction_time, after which nothing is known",
                ),
        )
        .arg(
            Arg::new("onset").long("onset").value_name("[NAME=]CODES|FILE").action(ArgAction::Append)
                .help(
                    "Make a label of whether the patient has one of these diagnoses for the first time in the days \
                     after the visit: codes of the source with commas between them, `ICD10CM:I50*` for all that begin \
                     so, or a file with a column `code`. Those who had one already are dropped",
                ),
        )
        .arg(
            Arg::new("within").long("within").value_name("FIRST..LAST")
                .help(
                    "With labels of what follows, as --onset and --cohort of omop make them: the first and the last \
                     day on which it counts, after the last day of the visit [default: 1..365]",
                ),
        )
        .arg(
            Arg::new("prevalent").long("prevalent").value_name("WORD").value_parser(["drop", "keep"])
                .help(
                    "With --onset: what to do with visits of those who had one of the diagnoses before, or in the visit: \
                     drop them, or keep them with an unknown label [default: drop]",
                ),
        )
        .arg(number("limit").help("Use only the first N encounters").value_parser(value_parser!(i64).range(1..)))
        .arg(number("min-cell").help("Hide counts from 1 to N-1, and counts that reveal them by subtraction"))
        .arg(Arg::new("strict").long("strict").action(ArgAction::SetTrue).help("Refuse what is otherwise dropped and counted"))
        .arg(
            Arg::new("table").long("table").value_name("NAME=PATH").action(ArgAction::Append)
                .help("Where a table is, if not in INPUT under its own name"),
        )
        .arg(
            Arg::new("column").long("column").value_name("NAME=THEIRS").action(ArgAction::Append)
                .help("What a column is called in your tables; NAME is column or table.column"),
        )
        .arg(
            Arg::new("columns").long("columns").value_name("FILE").value_parser(value_parser!(PathBuf))
                .help("A TOML file of such names: code = \"icd10\""),
        )
        .arg(Arg::new("delimiter").long("delimiter").value_name("CHAR").help("What separates columns of text files; `tab` for a tab [default: ,]"))
        .arg(Arg::new("memory-limit").long("memory-limit").value_name("SIZE").help("Memory that the program may take, as 1G or 500M; the rest goes to disk"))
        .arg(number("threads").help("Threads to use [default: one per core]").value_parser(value_parser!(u64).range(1..=1024)))
        .arg(Arg::new("quiet").long("quiet").short('q').action(ArgAction::SetTrue).help("Show no progress"))
}

/// Does what the user asks for; what there is to say about it.
async fn run(sources: &[Source], matches: &ArgMatches) -> Result<String> {
    let Some((name, matches)) = matches.subcommand() else { unreachable!("a subcommand is required") };
    let source = match sources.iter().find(|source| source.name == name) {
        Some(source) => source.clone(),
        None => Source::read(matches.get_one::<PathBuf>("source").unwrap_or(&PathBuf::new()))?,
    };
    let request = request(source, matches)?;
    if settings_arguments(matches).show_config {
        return Ok(request.table().to_string());
    }
    let out = matches.get_one::<PathBuf>("out").filter(|_| !matches.get_flag("dry-run"));
    let bar = bar(matches.get_flag("quiet"));
    let job = Job::new(terminal::stop(), |progress| show(&bar, progress));
    let summary = gct_prepare::prepare(&request, out.map(PathBuf::as_path), &job).await;
    bar.finish_and_clear();
    let summary = summary?;
    let min_cell = request.settings.min_cell;
    Ok(if matches.get_flag("json") {
        format!("{:#}\n", summary.json(min_cell))
    } else {
        report(&request, &summary, out.map(PathBuf::as_path), min_cell)
    })
}

/// What the user asks for.
fn request(source: Source, matches: &ArgMatches) -> Result<Request> {
    let text = |name: &str| matches.try_get_one::<String>(name).ok().flatten().cloned();
    let input = text("input").unwrap_or_default();
    let given = given(&source, matches)?;
    let mut request = Request::new(source, &input, text("rules").as_deref(), given)?;
    request.differences.tables = pairs(matches, "table")?.into_iter().collect();
    if let Some(file) = matches.get_one::<PathBuf>("columns") {
        request.differences.columns = columns(file)?;
    }
    request.differences.columns.extend(pairs(matches, "column")?);
    request.differences.delimiter = text("delimiter").map(|text| delimiter(&text)).transpose()?;
    request.prior = matches.get_one::<PathBuf>("prior").cloned();
    request.overwrite = if matches.get_flag("force") { Overwrite::Replace } else { Overwrite::Refuse };
    request.limits = Limits {
        memory: text("memory-limit").map(|text| size(&text)).transpose()?,
        threads: matches.get_one::<u64>("threads").map(|threads| *threads as usize),
        ..Limits::default()
    };
    Ok(request)
}

/// The settings that the user gives: the file, each `--set`, and flags, which win.
fn given(source: &Source, matches: &ArgMatches) -> Result<Vec<Layer>> {
    let arguments = settings_arguments(matches);
    let mut layers: Vec<Layer> = arguments.file()?.into_iter().collect();
    layers.extend(arguments.sets().map_err(Error::Settings)?);
    let mut set = |flag: &str, name: &str, value: toml::Value| {
        let settings = [(name.to_owned(), value)].into_iter().collect();
        layers.push(Layer { name: format!("--{flag}"), settings });
    };
    for name in source.description.options.keys() {
        if let Some(value) = flag_value(matches, name) {
            set(&name.replace('_', "-"), name, value);
        }
    }
    for (name, value) in pairs(matches, "option")? {
        set("option", &name, value.into());
    }
    for (name, codes) in onsets(matches)? {
        set("onset", "onset", toml::Table::from_iter([(name, codes.into())]).into());
    }
    for (kind, rule) in rollups(matches)? {
        set("rollup", "rollup", toml::Table::from_iter([(kind, rule.into())]).into());
    }
    for flag in SETTINGS {
        if let Some(value) = flag_value(matches, flag) {
            set(flag, &flag.replace('-', "_"), value);
        }
    }
    Ok(layers)
}

/// Flags that are settings of all sources.
const SETTINGS: [&str; 16] = [
    "min-codes",
    "max-codes",
    "min-count",
    "rare",
    "lab-bins",
    "rollup-unmapped",
    "context",
    "like",
    "labels",
    "within",
    "prevalent",
    "limit",
    "split-by",
    "split-seed",
    "strict",
    "min-cell",
];

/// The value of a flag, if it is given.
fn flag_value(matches: &ArgMatches, flag: &str) -> Option<toml::Value> {
    if let Ok(text) = matches.try_get_one::<String>(flag) {
        return text.map(|text| text.as_str().into());
    }
    if let Ok(number) = matches.try_get_one::<i64>(flag) {
        return number.map(|number| (*number).into());
    }
    let is_set = matches.try_get_one::<bool>(flag).ok().flatten().is_some_and(|is_set| *is_set);
    is_set.then_some(true.into())
}

fn settings_arguments(matches: &ArgMatches) -> SettingsArguments {
    SettingsArguments::from_arg_matches(matches).unwrap_or_default()
}

/// The values of a flag that is given as NAME=VALUE.
fn pairs(matches: &ArgMatches, name: &str) -> Result<Vec<(String, String)>> {
    let values = matches.try_get_many::<String>(name).ok().flatten().into_iter().flatten();
    let pair = |text: &String| {
        let (left, right) = text.split_once('=').ok_or_else(|| Error::Choice {
            name: name.into(),
            value: text.clone(),
            allowed: "NAME=VALUE".into(),
        })?;
        Ok((left.trim().to_lowercase(), right.trim().to_owned()))
    };
    values.map(pair).collect()
}

/// The rule or file of each kind that is rolled up.
fn rollups(matches: &ArgMatches) -> Result<BTreeMap<String, String>> {
    let mut rollups = BTreeMap::new();
    for (kind, rule) in pairs(matches, "rollup")? {
        if !CodeKind::ALL.iter().any(|known| known.name() == kind) {
            let (name, value) = ("rollup".into(), format!("{kind}={rule}"));
            let kinds = CodeKind::ALL.map(CodeKind::name).join(", ");
            let allowed = format!("KIND=RULE or KIND=FILE, where KIND is one of {kinds}");
            return Err(Error::Choice { name, value, allowed });
        }
        if let Some(first) = rollups.insert(kind.clone(), rule.clone()) {
            let problem = format!("the rollup of {kind} is given twice: {first} and {rule}");
            return Err(Error::Rollup { problem, hint: "give --rollup once per kind".into() });
        }
    }
    Ok(rollups)
}

/// The codes or the file of each label of onset.
fn onsets(matches: &ArgMatches) -> Result<BTreeMap<String, String>> {
    let mut onsets = BTreeMap::new();
    for text in matches.get_many::<String>("onset").into_iter().flatten() {
        let (name, codes) = onset::named(text);
        if onsets.insert(name.to_owned(), codes.to_owned()).is_some() {
            let allowed = format!("one list of codes for the label `{name}`: give others as NAME=CODES");
            return Err(Error::Choice { name: "onset".into(), value: text.clone(), allowed });
        }
    }
    Ok(onsets)
}

fn columns(file: &Path) -> Result<BTreeMap<String, String>> {
    typed(&read(file)?).map_err(|problem| gct::Error::Malformed { path: file.to_owned(), problem }.into())
}

fn delimiter(text: &str) -> Result<u8> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(Error::Choice {
            name: "delimiter".into(),
            value: text.into(),
            allowed: "one character, or `tab`".into(),
        }),
    }
}

/// 1G or 500M as bytes.
fn size(text: &str) -> Result<usize> {
    let upper = text.trim().to_uppercase();
    let upper = upper.trim_end_matches("IB").trim_end_matches('B');
    let (number, unit) = match upper.strip_suffix(['K', 'M', 'G', 'T']) {
        Some(number) => (number, upper.as_bytes()[number.len()]),
        None => (upper, b' '),
    };
    let unit = match unit {
        b'K' => 1u64 << 10,
        b'M' => 1 << 20,
        b'G' => 1 << 30,
        b'T' => 1 << 40,
        _ => 1,
    };
    match number.trim().parse::<f64>() {
        Ok(number) if number * unit as f64 >= 1e6 => Ok((number * unit as f64) as usize),
        _ => Err(Error::Choice {
            name: "memory-limit".into(),
            value: text.into(),
            allowed: "a size of at least 1M, as 1G or 500M".into(),
        }),
    }
}

/// A bar for steps whose rows are known, and a line for others.
fn bar(quiet: bool) -> ProgressBar {
    if !terminal::is_watched(quiet) {
        return ProgressBar::hidden();
    }
    ProgressBar::new_spinner()
}

fn show(bar: &ProgressBar, progress: Progress) {
    if bar.is_hidden() {
        return;
    }
    let template = if progress.total.is_some_and(|total| total > 0) {
        "{msg} {wide_bar} {human_pos}/{human_len} rows {eta} left"
    } else {
        "{spinner} {msg}: {human_pos} rows, {elapsed}"
    };
    if bar.message() != progress.step {
        bar.reset();
        bar.set_message(progress.step);
    }
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_length(progress.total.unwrap_or(0));
    terminal::advance(bar, progress.rows);
    bar.tick();
}

/// The counts as tables, and what else there is to say.
fn report(request: &Request, summary: &Summary, out: Option<&Path>, min_cell: u64) -> String {
    let mut text = terminal::table(&["", ""], count_rows(summary, min_cell));
    let kinds = code_rows(summary, min_cell);
    let mut names = vec!["codes", "distinct", "per encounter", "too rare"];
    names.extend(summary.is_like.then_some("unseen"));
    text += &format!("\n{}", terminal::table(&names, kinds));
    if !summary.rollups.is_empty() {
        let rollups = rollup_rows(summary, min_cell);
        let names = ["rollup", "by", "codes", "groups", "codes in none", "their events"];
        text += &format!("\n{}", terminal::table(&names, rollups));
    }
    if !summary.labels.is_empty() {
        let labels = label_rows(summary, min_cell);
        text += &format!("\n{}", terminal::table(&["label", "positive", "known", "prevalence"], labels));
    }
    if !summary.labels_unknown.is_empty() {
        let unknown = summary.unknown(min_cell);
        let rows =
            unknown.map(|(label, reason, count)| vec![label.into(), reason.replace('_', " "), shown(count)]);
        text += &format!("\n{}", terminal::table(&["label", "unknown because", "encounters"], rows));
    }
    text += &warnings(summary, min_cell);
    if request.settings.split_by == gct::split::By::Encounter {
        text += "\nThese rules split by encounter: train with --set split.by=encounter\n";
    }
    let temporary = &summary.temporary;
    let folder = terminal::visible(temporary.folder.display());
    text += &format!(
        "\nTemporary files in {folder} took {} and are deleted.\n",
        indicatif::HumanBytes(temporary.bytes)
    );
    match out {
        Some(out) => {
            let out = terminal::visible(out.display());
            text + &format!("\nThe dataset is in {out}; look at it with: gct inspect {out}\n")
        }
        None => text + "Nothing else was written.\n",
    }
}

/// A count, or how it is shown when it is too small to be shown.
fn shown(count: Result<u64, String>) -> String {
    count.map_or_else(|hidden| hidden, terminal::count)
}

/// What was read, dropped and kept: a row per count.
fn count_rows(summary: &Summary, min_cell: u64) -> Vec<Vec<String>> {
    let count = |number: u64| shown(cell(number, min_cell));
    let count_of = |some: u64, all: u64| shown(part(some, all, min_cell));
    let row = |name: &str, count: String| vec![name.to_owned(), count];
    let named = |what: &str, name: &str, number: u64| {
        vec![format!("  {what}: {}", name.replace('_', " ")), count(number)]
    };
    let dropped = |rules: &[(String, u64)]| -> Vec<Vec<String>> {
        rules.iter().map(|(rule, number)| named("dropped", rule, *number)).collect()
    };
    let mut rows = vec![row("encounters read", shown(summary.read(min_cell)))];
    rows.extend(dropped(&summary.dropped));
    rows.push(row("encounters kept", count(summary.encounters_kept)));
    rows.push(row("subjects", count(summary.subjects)));
    let several = count_of(summary.subjects_with_several_encounters, summary.subjects);
    rows.push(row("  with several encounters", several));
    rows.push(row("events read", shown(summary.events_read(min_cell))));
    rows.extend(dropped(&summary.events_dropped));
    rows.push(row("events kept", count(summary.events_kept)));
    rows.extend(summary.events_noted.iter().map(|(note, number)| named("noted", note, *number)));
    if summary.context_read > 0 {
        rows.push(row("context read", shown(summary.context_read(min_cell))));
        rows.extend(dropped(&summary.context_dropped));
        rows.push(row("context kept", count(summary.context_kept)));
    }
    if summary.links_read > 0 {
        rows.push(row("links read", shown(summary.links_read(min_cell))));
        rows.extend(dropped(&summary.links_dropped));
    }
    if summary.labels_unmatched > 0 {
        rows.push(row("labels of no encounter", count(summary.labels_unmatched)));
    }
    if summary.edges > 0 {
        rows.push(row("true edges", count(summary.edges)));
        let with_any = count_of(summary.encounters_with_edges, summary.encounters_kept);
        rows.push(row("  encounters with any", with_any));
    }
    if summary.ends_left_out > 0 {
        rows.push(row("ends left out: before the start", count(summary.ends_left_out)));
    }
    if summary.bucketed.lab > 0 {
        rows.push(row("labs with values in buckets", count(summary.bucketed.lab)));
    }
    rows
}

/// The codes of each kind: how many there are, per encounter, and too rare.
fn code_rows(summary: &Summary, min_cell: u64) -> impl Iterator<Item = Vec<String>> {
    summary.kinds().map(move |kind| {
        let mean = summary.mean_codes(kind, min_cell);
        let mut row = vec![
            kind.name().into(),
            shown(cell(summary.vocabulary[kind], min_cell)),
            mean.map_or_else(|hidden| hidden, |mean| format!("{mean:.2}")),
            shown(cell(summary.rare[kind], min_cell)),
        ];
        row.extend(summary.is_like.then(|| shown(cell(summary.unseen[kind], min_cell))));
        row
    })
}

/// What each rollup did: how many codes it put into how many groups, and what it does not map.
fn rollup_rows(summary: &Summary, min_cell: u64) -> impl Iterator<Item = Vec<String>> {
    let count = move |number: u64| shown(cell(number, min_cell));
    summary.rollups.iter().map(move |rollup| {
        vec![
            rollup.kind.name().into(),
            rollup.rule.clone(),
            count(rollup.codes_mapped),
            count(rollup.groups),
            count(rollup.codes_unmapped),
            shown(summary.events_unmapped(rollup, min_cell)),
        ]
    })
}

/// The positives of each label, in how many encounters it is known, and its prevalence there.
fn label_rows(summary: &Summary, min_cell: u64) -> impl Iterator<Item = Vec<String>> {
    summary.labels.iter().map(move |(name, positive, known)| {
        let (positive, known) =
            (part(*positive, *known, min_cell), part(*known, summary.encounters_kept, min_cell));
        let share = match (&positive, &known) {
            (Ok(positive), Ok(known)) if *known > 0 => Some(*positive as f64 / *known as f64),
            _ => None,
        };
        vec![name.clone(), shown(positive), shown(known), terminal::percent(share)]
    })
}

/// What of the input was not used, and why.
fn warnings(summary: &Summary, min_cell: u64) -> String {
    let mut text = String::new();
    for table in summary.unbalanced() {
        text += &format!(
            "\nThe counts of `{table}` do not add up: the source loses rows, or counts some twice\n"
        );
    }
    if summary.files_empty > 0 {
        text += &format!("\n{} files have nothing in them\n", terminal::count(summary.files_empty));
    }
    for found in &summary.unreadable {
        let (rows, first) = (shown(cell(found.rows, min_cell)), terminal::visible(&found.first));
        text += &format!("\n{rows} rows left out, the first: {first}\n");
    }
    for rollup in summary.rollups.iter().filter(|rollup| rollup.ties.is_some_and(|ties| ties > 0)) {
        let (kind, ties) = (rollup.kind.name(), shown(cell(rollup.ties.unwrap_or(0), min_cell)));
        text +=
            &format!("\n{ties} codes of {kind} have several nearest groups; the first by name was taken\n");
    }
    for column in &summary.label_columns_ignored {
        let column = terminal::visible(column);
        text += &format!(
            "\nThe column `{column}` of the labels was left out: it is an index that pandas wrote\n"
        );
    }
    text
}
