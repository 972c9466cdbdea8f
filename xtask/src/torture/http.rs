//! Requests to `gct serve` on this machine: those of `xtask/corpus/requests.http`, larger ones, and both
//! damaged.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rand::RngExt;
use serde_json::Value;

use super::checks::{self, Problem};
use super::corpus::MARKER;
use super::{Case, Check, Round, mutations};
use crate::serving::{Serving, signal};

/// Time for an answer to a whole request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time after which a server that says nothing to a damaged request waits for more of it.
const SILENCE: Duration = Duration::from_millis(300);

/// Whole requests that are sent before the server is asked to end.
const LAST_REQUESTS: usize = 200;

/// More than a server needs, whatever it was asked.
const MEMORY_MB: f64 = 512.0;

/// The server's log, in a folder.
const LOG: &str = "serve.log";

pub(super) fn run(round: &Round<'_>, until: Instant) -> Result<()> {
    let (server, requests) = (start(round, &round.folder)?, requests());
    let cases = (0..1_000_000).map(|number| {
        let subject = if number < requests.len() { "whole requests" } else { "damaged requests" };
        Case::new(Check::Http, number, subject, number)
    });
    round.try_all(cases, until, |number, home| attempt(round, &server.address, &requests, *number, home))?;
    // A look at the server afterwards, whatever the time.
    let (server, later) = (Mutex::new(Some(server)), Instant::now() + PATIENCE);
    let end_of_it = Case::new(Check::Http, "end", "the server afterwards", ());
    round.try_all([end_of_it].into_iter(), later, |(), _| {
        let server = server.lock().expect("no thread panicked").take().context("a server ends once")?;
        end(server, &round.folder)
    })?;
    let last = Case::new(Check::Http, "last", "requests before SIGTERM", ());
    round.try_all([last].into_iter(), later, |(), home| last_requests(round, home))
}

/// Starts a server whose log goes into a folder.
fn start(round: &Round<'_>, folder: &Path) -> Result<Serving> {
    let line = round.world.line("serve WORLD/run --listen 127.0.0.1:0 --json");
    Serving::start(round.programs.command(&line, folder).stderr(File::create(folder.join(LOG))?))
}

/// A whole request: its head, and a body.
#[derive(Clone)]
struct Request(String, Vec<u8>);

impl Request {
    /// The bytes to send.
    fn bytes(&self, address: &str) -> Vec<u8> {
        let head = self.0.replace("ADDRESS", address).replace("LENGTH", &self.1.len().to_string());
        [head.replace('\n', "\r\n").as_bytes(), b"\r\n\r\n", &self.1].concat()
    }
}

/// The requests that are kept, the first of them a prediction, and some that are too large.
fn requests() -> Vec<Request> {
    let kept = include_str!("../../corpus/requests.http").trim_end().split("\n###\n").map(|text| {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let is_chunked = head.contains("chunked");
        let body = if is_chunked { body.replace('\n', "\r\n") } else { body.to_owned() };
        Request(head.to_owned(), body.into_bytes())
    });
    let mut requests: Vec<Request> = kept.collect();
    let many = |part: &str, times: usize| format!("[{}]", vec![part; times].join(","));
    for encounters in [
        "[".repeat(200_000),
        many("{\"diagnosis\": [\"D1\"]}", 1025),
        format!("[{{\"lab\": {}}}]", many("\"L1\"", 700_000)),
        format!("\"{}\"", MARKER.repeat(800_000)),
    ] {
        requests.push(Request(requests[0].0.clone(), format!("{{\"encounters\": {encounters}}}").into()));
    }
    requests
}

/// The bytes of a request: whole, or from a number on damaged by chance.
fn request(seed: u64, requests: &[Request], number: usize, address: &str) -> Vec<u8> {
    let mut random = mutations::random(seed, number);
    let is_whole = number < requests.len();
    let mut request =
        requests[if is_whole { number } else { random.random_range(0..requests.len()) }].clone();
    // Half of the damage is to bodies, whose length is then given as it is.
    let is_body = random.random() && !request.1.is_empty();
    if !is_whole && is_body {
        mutations::damage(&mut request.1, &mut random);
    }
    let mut bytes = request.bytes(address);
    if !is_whole && !is_body {
        mutations::damage(&mut bytes, &mut random);
    }
    bytes
}

/// Sends a request and looks at the answer.
fn attempt(
    round: &Round<'_>,
    address: &str,
    requests: &[Request],
    number: usize,
    home: &Path,
) -> Result<Vec<Problem>> {
    let (bytes, is_whole) =
        (request(round.arguments.seed, requests, number, address), number < requests.len());
    fs::write(home.join("request"), &bytes)?;
    Ok(match exchange(address, &bytes, if is_whole { PATIENCE } else { SILENCE })? {
        None => vec![Problem::new("neither answers nor closes the connection", "")],
        Some(answer) if !answer.is_empty() => look(&String::from_utf8_lossy(&answer)),
        Some(_) if is_whole => vec![Problem::new("a whole request is not answered", "")],
        Some(_) => Vec::new(),
    })
}

/// What comes back until the connection is closed; none if it never is.
fn exchange(address: &str, request: &[u8], patience: Duration) -> Result<Option<Vec<u8>>> {
    let mut stream = TcpStream::connect(address).context("cannot connect to the server")?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    // A server may refuse and close before it has read all.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    if read_to_close(&mut stream, &mut answer) {
        return Ok(Some(answer));
    }
    let _ = stream.shutdown(Shutdown::Write);
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(read_to_close(&mut stream, &mut answer).then_some(answer))
}

/// Whether the connection is closed before nothing comes for too long.
fn read_to_close(stream: &mut TcpStream, answer: &mut Vec<u8>) -> bool {
    let is_silent =
        |error: std::io::Error| matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
    !stream.read_to_end(answer).is_err_and(is_silent)
}

/// What is wrong with an answer.
fn look(answer: &str) -> Vec<Problem> {
    let answer = answer.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(answer);
    let (head, rest) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    // What follows a damaged request is another one, with an answer of its own.
    let body = rest.split("HTTP/1.1 ").next().unwrap_or_default();
    let status: u16 = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let mut value: Value = serde_json::from_str(body).unwrap_or_default();
    let mut problems = Vec::new();
    if status == 0 || status >= 500 {
        problems.push(Problem::new(format!("an answer with status {status}"), body));
    }
    let is_explained = value["error"].is_string() && value["hint"].is_string();
    if status >= 400 && !body.is_empty() && !is_explained {
        problems.push(Problem::new("an error without a hint", body));
    }
    // Unknown codes are given back to whoever sent them.
    remove_unknown(&mut value);
    let body = if value.is_null() { body.to_owned() } else { value.to_string() };
    if head.contains(MARKER) || body.contains(MARKER) {
        problems.push(Problem::new("a value of the request in the answer", answer));
    }
    problems
}

fn remove_unknown(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("unknown");
            fields.values_mut().for_each(remove_unknown);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_unknown),
        _ => {}
    }
}

/// The server after everything: alive, not large, silent about requests; and it ends.
fn end(server: Serving, folder: &Path) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    let answer =
        exchange(&server.address, &requests()[0].bytes(&server.address), PATIENCE)?.unwrap_or_default();
    if !answer.starts_with(b"HTTP/1.1 200") {
        problems.push(Problem::new("the server is not well", String::from_utf8_lossy(&answer)));
    }
    let memory = server.resident_mb()?;
    if memory > MEMORY_MB {
        problems.push(Problem::new("the server is large", format!("{memory:.0} MB")));
    }
    problems.extend(terminated(server)?);
    problems.extend(checks::printed(&fs::read_to_string(folder.join(LOG))?, "the log"));
    Ok(problems)
}

/// Asks a server to end, which it must do well.
fn terminated(server: Serving) -> Result<Option<Problem>> {
    let status = server.terminate()?;
    Ok((!status.success()).then(|| Problem::new("the server ends badly", status.to_string())))
}

/// Requests that have arrived whole before the server is asked to end are all answered.
fn last_requests(round: &Round<'_>, home: &Path) -> Result<Vec<Problem>> {
    let server = start(round, home)?;
    let request = requests()[0].bytes(&server.address);
    let mut streams = Vec::new();
    for _ in 0..LAST_REQUESTS {
        streams.push(TcpStream::connect(&server.address)?);
    }
    // Halted, it reads none of them before it is asked to end.
    signal("STOP", server.id().into())?;
    for stream in &mut streams {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(&request)?;
    }
    let mut problems: Vec<Problem> = terminated(server)?.into_iter().collect();
    let is_lost = |stream: &mut TcpStream| {
        let mut answer = Vec::new();
        !read_to_close(stream, &mut answer) || !answer.starts_with(b"HTTP/1.1 200")
    };
    let lost = streams.iter_mut().map(is_lost).filter(|is_lost| *is_lost).count();
    if lost > 0 {
        problems.push(Problem::new("requests are lost at SIGTERM", format!("{lost} of {LAST_REQUESTS}")));
    }
    Ok(problems)
}
