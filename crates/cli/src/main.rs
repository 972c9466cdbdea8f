//! The command `gct`. Each subcommand is a file of its own; what it does is in the library, what it says is
//! here.
//!
//! Exit codes: 0 done; 2 failed; 130 interrupted. Data goes to standard output,
//! everything else to standard error.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

mod calibrate;
mod card;
mod compare;
mod completions;
mod demo;
mod embed;
mod evaluate;
mod experiment;
mod explain;
mod inspect;
mod leaks;
mod links;
mod man;
mod output;
mod predict;
mod prepare;
mod prior;
mod reference;
mod report;
mod runs;
mod selection;
mod serve;
mod settings;
mod split;
mod suggest;
mod synth;
mod terminal;
mod train;
mod tune;
mod verify;

/// Learn the hidden structure of health-record encounters.
#[derive(Parser)]
#[command(name = "gct", version, arg_required_else_help = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,

    /// Threads to use [default: one per core]; results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Show no progress
    #[arg(long, short, global = true)]
    quiet: bool,
}

const EXAMPLES: &str = "Examples:
  gct demo                           all of it in a few minutes
  gct synth --out synthetic          50,000 synthetic encounters, as in the paper
  gct inspect synthetic              what is in them
  gct prepare eicu eicu-crd --out eicu
  gct train --data synthetic --task graph_reconstruction --model gct --out runs/gct
  gct evaluate runs/gct
  gct explain runs/gct --graph graph.svg
  gct report runs/gct --out report.html
  gct card runs/gct --out card.md
  gct serve runs/gct";

#[derive(Subcommand)]
enum Command {
    Demo(demo::Arguments),
    Synth(synth::Arguments),
    Prepare(prepare::Arguments),
    Inspect(inspect::Arguments),
    Split(split::Arguments),
    Prior(prior::Arguments),
    Train(train::Arguments),
    Runs(runs::Arguments),
    Calibrate(calibrate::Arguments),
    Evaluate(evaluate::Arguments),
    Compare(compare::Arguments),
    Predict(predict::Arguments),
    Embed(embed::Arguments),
    Explain(explain::Arguments),
    Links(links::Arguments),
    Report(report::Arguments),
    Card(card::Arguments),
    Experiment(experiment::Arguments),
    Tune(tune::Arguments),
    Serve(serve::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

fn main() -> ExitCode {
    // Names of files are printed and written down, which takes text.
    if std::env::args_os().any(|argument| argument.to_str().is_none()) {
        terminal::error(&terminal::refusal(
            "an argument is not UTF-8",
            "rename the file or folder that it names",
        ));
        return ExitCode::from(2);
    }
    terminal::show_warnings();
    let done = match Arguments::try_parse() {
        Ok(arguments) => run(arguments),
        Err(wrong) if wrong.use_stderr() => gct_terminal::misused(&suggest::with_tip(wrong)),
        Err(help) => terminal::flushed(help.print()).map(|()| ExitCode::SUCCESS).map_err(Into::into),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            terminal::error(&error);
            let interrupted = match error.downcast_ref() {
                Some(error) => matches!(error, gct::Error::Interrupted | gct::Error::Stopped { .. }),
                None => error.is::<terminal::Stopped>(),
            };
            ExitCode::from(if interrupted { 130 } else { 2 })
        }
    }
}

fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    gct_terminal::listen()?;
    if let Some(threads) = arguments.threads {
        rayon::ThreadPoolBuilder::new().num_threads(threads.into()).build_global()?;
    }
    let quiet = arguments.quiet;
    match arguments.command {
        Command::Prepare(own) => return prepare::run(&own, arguments.threads, quiet),
        Command::Demo(arguments) => demo::run(&arguments, quiet),
        Command::Synth(arguments) => synth::run(&arguments, quiet),
        Command::Inspect(arguments) => inspect::run(&arguments, quiet),
        Command::Split(arguments) => split::run(&arguments, quiet),
        Command::Prior(arguments) => prior::run(&arguments, quiet),
        Command::Train(arguments) => train::run(&arguments, quiet),
        Command::Runs(arguments) => runs::run(&arguments),
        Command::Calibrate(arguments) => calibrate::run(&arguments, quiet),
        Command::Evaluate(arguments) => evaluate::run(&arguments, quiet),
        Command::Compare(arguments) => compare::run(&arguments, quiet),
        Command::Predict(arguments) => predict::run(&arguments, quiet),
        Command::Embed(arguments) => embed::run(&arguments, quiet),
        Command::Explain(arguments) => explain::run(&arguments, quiet),
        Command::Links(arguments) => links::run(&arguments, quiet),
        Command::Report(arguments) => report::run(&arguments, quiet),
        Command::Card(arguments) => card::run(&arguments, quiet),
        Command::Experiment(arguments) => experiment::run(&arguments, quiet),
        Command::Tune(arguments) => tune::run(&arguments, quiet),
        Command::Serve(arguments) => serve::run(&arguments, quiet),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// The help of a subcommand, as text.
fn help(subcommand: &str) -> String {
    let mut command = Arguments::command();
    command.build();
    let found = command.find_subcommand_mut(subcommand).expect("it is one of ours");
    found.render_long_help().to_string()
}

/// All commands and flags, for completions and manual pages.
fn described() -> clap::Command {
    Arguments::command().mut_subcommand("prepare", prepare::described)
}
