//! `gct serve`: a run as an HTTP API.

use std::borrow::Cow;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use gct::dataset::Dataset;
use gct::infer::Which;
use gct::report::Options;
use gct::run::Run;
use gct_serve::{Bound, Limits, Log, Page, Server, Settings, Token};
use serde_json::json;

use crate::report::LookArguments;
use crate::selection::RawArguments;
use crate::terminal::refusal;
use crate::{selection, terminal};

/// Encounters the page shows unless told otherwise: their list is sent as a whole.
const PAGE: usize = 5000;

/// The smallest count that the page tells of real patients unless told otherwise: what most enclaves release.
const MIN_CELL: u64 = 11;

const SMALL_CELLS: &str = "the page shows no encounters, no count from 1 to 10 and no code of fewer encounters; \
    --min-cell 0 shows all counts, --encounters N encounters as well";

const NO_ENCOUNTERS: &str = "the page shows no encounters without --token-file; \
    --encounters N shows them to everybody on this machine";

/// Serve predictions, explanations and embeddings over HTTP, and a page to explore them
///
/// The page is that of `gct report`, for the encounters of the test split and for encounters that are pasted
/// or uploaded. Without the dataset there is only the API.
#[derive(Args)]
#[command(after_help = "Examples:
  gct serve runs/gct
  curl -H 'Content-Type: application/json' http://127.0.0.1:8080/v1/predict \\
       -d '{\"encounters\": [{\"diagnosis\": [\"D_199\"], \"treatment\": [\"T_3\"], \"lab\": [\"L_9\"]}]}'
  gct serve runs/gct --listen 0.0.0.0:8080 --token-file token")]
pub(crate) struct Arguments {
    /// The run folder
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Where to listen; port 0 takes one that is free
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,

    /// Answer only clients that send the token in this file; needed to listen for other machines
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// The largest body of a request, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_body: u32,

    /// The most encounters of a request
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_encounters: u32,

    /// The most codes of an encounter
    #[arg(long, value_name = "N", default_value_t = 512)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_codes: u32,

    /// The most connections at a time
    #[arg(long, value_name = "N", default_value_t = 1024)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    max_connections: u32,

    /// How long a request may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,

    /// The dataset folder whose encounters the page shows [default: the one that the run was trained on]
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Serve only the API
    #[arg(long, conflicts_with_all = ["data", "encounters", "with_ids", "min_cell", "bootstrap"])]
    no_page: bool,

    #[command(flatten)]
    raw: RawArguments,

    #[command(flatten)]
    look: LookArguments,

    /// Print where it listens as one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments, quiet: bool) -> Result<()> {
    let standard = Limits::default();
    let body = (arguments.max_body as usize) << 20;
    let limits = Limits {
        body,
        bodies: standard.bodies.max(4 * body),
        encounters: arguments.max_encounters as usize,
        codes: arguments.max_codes as usize,
        connections: arguments.max_connections as usize,
        request: Duration::from_secs(arguments.timeout),
        // Whatever was received has its time.
        shutdown: Duration::from_secs(arguments.timeout) + (standard.shutdown - standard.request),
        ..standard
    };
    let log: Log = Box::new(say);
    let run = arguments.raw.of(Run::open(&arguments.run)?);
    // Before the page is made, which takes a while.
    let bound = Bound::new(Settings {
        listen: arguments.listen,
        token: arguments.token_file.as_deref().map(Token::read).transpose()?,
        limits,
        log: (!quiet).then_some(log),
    })?;
    let page = page(arguments, &run, quiet)?;
    let server = Server::start(run, bound, page)?;
    let address = format!("http://{}", server.address());
    if arguments.json {
        // On one line: whoever waits for it reads no more.
        terminal::print(&format!("{}\n", json!({"listen": address})))?;
    }
    if !quiet {
        say(&format!("listening on {address}"));
    }
    Ok(server.run(terminal::stop())?)
}

/// The page, unless it is not wanted or the data are gone.
fn page(arguments: &Arguments, run: &Run, quiet: bool) -> Result<Option<Page>> {
    let model = &run.settings().model;
    if model.needs_edges() && arguments.data.is_some() {
        return Err(refusal(
            format!("--data is for the page, and there is none of {}, which needs true edges", model.name()),
            "leave it out",
        ));
    }
    if arguments.no_page || model.needs_edges() {
        return Ok(None);
    }
    let dataset = match &arguments.data {
        Some(folder) => Dataset::open(folder)?,
        None => match run.dataset() {
            Err(gct::Error::DatasetMoved { .. }) => {
                if !quiet {
                    say("there is no page: the dataset of the run is gone; --data DIR gives another");
                }
                return Ok(None);
            }
            dataset => dataset?,
        },
    };
    let which = Which::default_for(run, &dataset);
    let bar = terminal::progress(selection::estimate(run, &dataset, which), "looking at encounters", quiet);
    let (options, hidden) = options(arguments, &dataset)?;
    if let Some(line) = hidden.filter(|_| !quiet) {
        say(line);
    }
    let page = Page::gather(run, &dataset, which, options, &terminal::counting(&bar));
    bar.finish_and_clear();
    match page {
        Ok(page) => Ok(Some(page)),
        Err(error @ (gct::Error::Interrupted | gct::Error::Setting { .. })) => Err(error.into()),
        Err(error) if arguments.data.is_none() => {
            if !quiet {
                say(&format!("there is no page: {error}"));
            }
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// What the page tells, and what to say about what it does not. Of real patients it tells as much as a report
/// that may leave an enclave, unless told otherwise: a token keeps strangers out, but whoever has it need not
/// be allowed to see single patients.
fn options(arguments: &Arguments, dataset: &Dataset) -> Result<(Options, Option<&'static str>)> {
    let look = &arguments.look;
    if dataset.manifest().source.kind == gct::synth::SOURCE {
        return Ok((look.options(PAGE)?, None));
    }
    let shows_encounters = look.encounters.is_some_and(|count| count > 0);
    if look.min_cell.is_none() && !shows_encounters {
        let look = LookArguments { min_cell: Some(MIN_CELL), ..look.clone() };
        return Ok((look.options(0)?, Some(SMALL_CELLS)));
    }
    // Whoever has an account on this machine could look at them.
    let is_open = arguments.token_file.is_none();
    let hidden = (is_open && look.encounters.is_none()).then_some(NO_ENCOUNTERS);
    Ok((look.options(if is_open { 0 } else { PAGE })?, hidden))
}

/// A line for whoever watches. If nobody does, it is served all the same.
fn say(line: &str) {
    terminal::print_line(line);
}

/// What to do about a server that does not start.
pub(crate) fn hint(error: &gct_serve::Error) -> Cow<'static, str> {
    use gct_serve::Error;
    let fixed = match error {
        Error::Run(error) => return gct_terminal::hint(&error.remedy()),
        Error::NeedsEdges { .. } => "serve a run of gct, transformer, gcn_p, gcn_random, shallow or deep",
        Error::TokenNeeded { .. } => {
            "give a file with a token that clients must send (--token-file FILE), or listen on 127.0.0.1"
        }
        Error::TokenExposed { .. } => "chmod 600 FILE",
        Error::NotAToken { .. } | Error::TokenFile { .. } => {
            "make one with: (umask 077; head -c 32 /dev/urandom | base64 | tr -d '\\n/+=' > FILE)"
        }
        Error::Listen { source, .. } => match source.kind() {
            io::ErrorKind::AddrInUse => {
                "another program listens there; choose another port (0 takes any that is free)"
            }
            io::ErrorKind::AddrNotAvailable => {
                "give an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them"
            }
            io::ErrorKind::PermissionDenied => {
                "choose a port from 1024: lower ones are for the administrator"
            }
            _ => return gct_terminal::hint(&gct::Remedy::of_system(source)),
        },
        Error::Threads(_) => "use fewer --threads, or allow this user more (`ulimit -u`)",
    };
    fixed.into()
}
