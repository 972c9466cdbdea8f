//! A client that measures a server, for `cargo xtask bench serve`.
//!
//! `bench_client RUN ADDRESS SECONDS PID` asks a server of the run, which is the process PID, about
//! encounters of its dataset, and prints one JSON object: how long a call takes, how many encounters per
//! second it answers, how many the same model answers in this process, and how much of the processors' time
//! each of them takes. `bench_client RUN ADDRESS SECONDS soak` asks everything from 16 connections for so
//! long, and prints how many calls that were.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gct::infer::{Predictor, Reader, Which};
use gct::record::{CodeKind, Encounter};
use gct::run::Run;
use serde_json::{Value, json};

/// Encounters that are asked about, again and again.
const ENCOUNTERS: usize = 1600;

/// Encounters of a call, if it has several.
const TOGETHER: usize = 32;

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> gct::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [run, address, seconds, what] = &arguments[..] else {
        panic!("bench_client RUN ADDRESS SECONDS PID|soak");
    };
    let time = Duration::from_secs_f64(seconds.parse().expect("SECONDS is a number"));
    let run = Run::open(Path::new(run))?;
    let encounters: Vec<Encounter> = Reader::for_predictions(&run, &run.dataset()?, Which::All)?
        .take(ENCOUNTERS)
        .collect::<gct::Result<_>>()?;
    let report = match what.as_str() {
        "soak" => soak(&run, &encounters, address, time),
        server => measure(&run, &encounters, (address, server), time)?,
    };
    println!("{report:#}");
    Ok(())
}

fn measure(
    run: &Run,
    encounters: &[Encounter],
    (address, server): (&str, &str),
    time: Duration,
) -> gct::Result<Value> {
    let (single, together) =
        (calls(run, encounters, 1, "/v1/predict"), calls(run, encounters, TOGETHER, "/v1/predict"));
    // What is new to the processor's caches is not measured.
    Load { address, calls: &single, connections: 1 }.run(time / 4);
    let mut latencies = Load { address, calls: &single, connections: 1 }.run(time).latencies;
    latencies.sort_unstable();
    let percentile =
        |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    let mut throughput = Vec::new();
    // Before and after each, because the machine is not the same from one moment to the next.
    let mut before = in_process(run, encounters, time / 2)?;
    for connections in [1, 16, 64] {
        for (size, calls) in [(1, &single), (TOGETHER, &together)] {
            let busy = [server, "self"].map(processor_seconds);
            let done = Load { address, calls, connections }.run(time);
            let [of_server, of_client] = [server, "self"].map(processor_seconds);
            let after = in_process(run, encounters, time / 2)?;
            let answered = (done.latencies.len() * size) as f64;
            let [alone, each] = [0, 1].map(|index| 0.5 * (before[index] + after[index]));
            throughput.push(json!({
                "connections": connections,
                "encounters_per_call": size,
                "per_second": answered / done.seconds,
                "in_process_per_second": alone,
                "seconds": done.seconds,
                "processor_seconds": {
                    "model": answered * each,
                    "server": of_server - busy[0],
                    "client": of_client - busy[1],
                },
            }));
            before = after;
        }
    }
    Ok(json!({
        "latency_microseconds": {"calls": latencies.len(), "median": percentile(0.5), "p99": percentile(0.99)},
        "throughput": throughput,
    }))
}

fn soak(run: &Run, encounters: &[Encounter], address: &str, time: Duration) -> Value {
    let mut all = Vec::new();
    for path in ["/v1/predict", "/v1/explain", "/v1/embed"] {
        for size in [1, 7] {
            all.extend(calls(run, encounters, size, path));
        }
    }
    let done = Load { address, calls: &all, connections: 16 }.run(time);
    json!({"calls": done.latencies.len(), "seconds": done.seconds})
}

/// Encounters per second that the model answers without a server, and seconds of a processor that each takes.
fn in_process(run: &Run, encounters: &[Encounter], time: Duration) -> gct::Result<[f64; 2]> {
    let predictor = Predictor::of_run(run)?;
    predictor.answers(&predictor.samples(encounters))?;
    let (started, busy, mut rounds) = (Instant::now(), processor_seconds("self"), 0);
    while started.elapsed() < time {
        predictor.answers(&predictor.samples(encounters))?;
        rounds += 1;
    }
    let answered = (rounds * encounters.len()) as f64;
    Ok([answered / started.elapsed().as_secs_f64(), (processor_seconds("self") - busy) / answered])
}

/// What all threads of a process have had of the processors.
fn processor_seconds(process: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the process is there");
    // Its name is in parentheses and may be anything; the state comes next, and then numbers. A tick is a
    // hundredth of a second.
    let (_, numbers) = stat.rsplit_once(')').expect("the process has a name");
    let ticks = numbers.split_whitespace().skip(11).take(2);
    ticks.map(|ticks| ticks.parse::<f64>().expect("ticks are numbers")).sum::<f64>() / 100.0
}

/// Whole requests, of so many encounters each.
fn calls(run: &Run, encounters: &[Encounter], size: usize, path: &str) -> Vec<Vec<u8>> {
    let by_codes = |encounter: &Encounter| {
        let codes = |kind: CodeKind| -> Vec<&str> {
            encounter.codes[kind]
                .iter()
                .map(|id| run.vocabulary()[kind][*id as usize].code.as_str())
                .collect()
        };
        json!({"diagnosis": codes(CodeKind::Diagnosis), "treatment": codes(CodeKind::Treatment), "lab": codes(CodeKind::Lab)})
    };
    let call = |encounters: &[Encounter]| {
        let body = json!({"encounters": encounters.iter().map(by_codes).collect::<Vec<_>>()}).to_string();
        let head = "HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length:";
        format!("POST {path} {head} {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    encounters.chunks_exact(size).map(call).collect()
}

struct Load<'a> {
    address: &'a str,
    calls: &'a [Vec<u8>],
    connections: usize,
}

struct Done {
    latencies: Vec<Duration>,
    seconds: f64,
}

impl Load<'_> {
    /// Calls from all connections for so long, each with the next request as soon as it has an answer.
    fn run(&self, time: Duration) -> Done {
        let (started, next) = (Instant::now(), AtomicU64::new(0));
        let connection = || {
            let stream = TcpStream::connect(self.address).expect("the server listens");
            stream.set_nodelay(true).expect("a socket can be told not to wait");
            let (mut stream, mut latencies, mut body) = (BufReader::new(stream), Vec::new(), Vec::new());
            while started.elapsed() < time {
                let index = next.fetch_add(1, Ordering::Relaxed) as usize % self.calls.len();
                let sent = Instant::now();
                stream.get_mut().write_all(&self.calls[index]).expect("the server reads");
                answer(&mut stream, &mut body);
                latencies.push(sent.elapsed());
            }
            latencies
        };
        let latencies = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.connections).map(|_| scope.spawn(connection)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("a client does not panic")).collect()
        });
        Done { latencies, seconds: started.elapsed().as_secs_f64() }
    }
}

/// Reads an answer, which must be a good one.
fn answer(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) {
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).expect("the server answers");
    assert!(line.starts_with("HTTP/1.1 200"), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).expect("the server answers");
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.trim().parse().expect("a length is a number");
        }
    }
    body.resize(length, 0);
    stream.read_exact(body).expect("the answer is as long as it says");
}
