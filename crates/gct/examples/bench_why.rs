//! How long the reasons of a prediction take, for `cargo xtask bench predict`.
//!
//! `bench_why RUN CODES` takes the first encounter of the run's dataset with so many codes, and prints one
//! JSON object: the median of the milliseconds that it takes to say what each code does to each label.

use std::path::Path;
use std::time::Instant;

use gct::dataset::Dataset;
use gct::infer::{Reader, Which};
use gct::record::{CodeKind, Encounter};
use gct::run::Run;
use serde_json::json;

const TIMES: usize = 101;

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> gct::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "bench_why RUN CODES";
    let run = Run::open(Path::new(&arguments.next().expect(usage)))?;
    let wanted: usize = arguments.next().and_then(|codes| codes.parse().ok()).expect(usage);
    let dataset = Dataset::open(&run.manifest().dataset.path)?;
    let codes =
        |encounter: &Encounter| CodeKind::ALL.map(|kind| encounter.codes[kind].len()).iter().sum::<usize>();
    let encounter = Reader::new(&run, &dataset, Which::All)?
        .find(|encounter| encounter.as_ref().is_ok_and(|encounter| codes(encounter) == wanted))
        .expect("an encounter has so many codes")?;
    run.attribute(&encounter)?;
    let mut milliseconds: Vec<f64> = (0..TIMES)
        .map(|_| {
            let start = Instant::now();
            run.attribute(&encounter).map(|_| 1e3 * start.elapsed().as_secs_f64())
        })
        .collect::<gct::Result<_>>()?;
    milliseconds.sort_by(f64::total_cmp);
    println!("{:#}", json!({"codes": wanted, "milliseconds": milliseconds[TIMES / 2]}));
    Ok(())
}
