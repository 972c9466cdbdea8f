//! How many encounters per second a training step and an evaluation handle, for `cargo xtask bench train`.
//!
//! `bench_train FOLDER [MODEL ...]` prints one JSON object: for each model and task `train` and `evaluate` in
//! encounters/s, and for GCT also what its products alone would reach, what the processor can do at most, and
//! the latency of one encounter. `bench_train FOLDER --steps N` trains GCT for N steps instead, and prints
//! how much memory it had on the way.

use std::path::Path;
use std::time::Instant;

use bench::{BATCH, ENCOUNTERS, rate, with_dropout};
use gct::batch::{EmbeddingRows, Encoding, Example};
use gct::dataset::Dataset;
use gct::infer::Predictor;
use gct::job::Job;
use gct::model::{Config, Learner, Learning, Model, TapeLearner};
use gct::prior::{self, MatrixSettings, Prior, PriorSettings};
use gct::question::{HeadConfig, Labels, Question};
use gct::record::{Encounter, PerKind};
use gct::split::{By, Split};
use gct_kernels::gemm::{self, Into, Left, Right, gemm, pack, pack_transposed, packed_len};
use rayon::prelude::*;
use serde_json::{Value, json};

mod bench;

const WIDTH: usize = 128;
static LABEL: Question = Question::Labels(Labels::Named(String::new()));

#[allow(clippy::print_stdout)] // Its output is its result.
fn main() -> gct::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let data = Data::read(&arguments.next().unwrap_or_else(|| "synthetic".into()))?;
    let others: Vec<String> = arguments.collect();
    if let [flag, steps] = &others[..]
        && flag == "--steps"
    {
        let steps = steps.parse().expect("--steps takes a number");
        println!("{:#}", memory(&data, steps)?);
        return Ok(());
    }
    let names = ["gct", "transformer", "gcn", "shallow"];
    let wanted = |name: &&str| others.is_empty() || others.iter().any(|other| other == name);
    let mut report = json!({"encounters": data.examples.len()});
    for name in names.into_iter().filter(wanted) {
        for (task, head) in [("graph_reconstruction", edges()), ("visit_label", labels())] {
            report[name][task] = measure(name, &head, &data)?;
        }
    }
    report["flop_per_encounter"] = flop_per_step(&data.examples).into();
    report["floor"] = floor(&data.examples).into();
    report["peak_flops"] = rayon::broadcast(|_| gemm::peak()).iter().sum::<f64>().into();
    report["latency_microseconds"] = latency(&data)?;
    println!("{report:#}");
    Ok(())
}

fn edges() -> HeadConfig {
    HeadConfig::Edges { initial_bias: -3.0, kinds: true }
}

fn labels() -> HeadConfig {
    HeadConfig::Labels { count: 1 }
}

struct Data {
    rows: EmbeddingRows,
    prior: Prior,
    settings: PriorSettings,
    encounters: Vec<Encounter>,
    examples: Vec<Example>,
}

impl Data {
    fn read(folder: &str) -> gct::Result<Data> {
        let dataset = Dataset::open(Path::new(folder))?;
        let prior = prior::fit(&dataset, &Split::by_hash(0, By::Subject), &Job::silent())?;
        let rows = EmbeddingRows::new(PerKind::from_fn(|kind| dataset.vocabulary()[kind].len() as u32));
        let settings = PriorSettings::default();
        let mut data = Data { rows, prior, settings, encounters: Vec::new(), examples: Vec::new() };
        for encounter in dataset.encounters()?.take(ENCOUNTERS) {
            let encounter = encounter?;
            let example = Example::new(&encounter, rows, &data.prior, &MatrixSettings::default());
            data.examples.push(example.with_labels(vec![encounter.labels[0]]));
            data.encounters.push(encounter);
        }
        data.examples.truncate(data.examples.len() / BATCH * BATCH);
        data.encounters.truncate(data.examples.len());
        Ok(data)
    }

    /// A model of this head, to be asked.
    fn predictor(&self, model: &Model<f32>, head: &HeadConfig) -> Predictor<'_> {
        let question = if matches!(head, HeadConfig::Labels { .. }) { &LABEL } else { &Question::Edges };
        let encoding = Encoding { rows: self.rows, prior: &self.prior, settings: &self.settings };
        Predictor::new(model, question, encoding)
    }

    /// The first examples of whole batches.
    fn batches(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        (0..self.examples.len() / BATCH * BATCH).step_by(BATCH)
    }

    fn batch(&self, at: usize) -> &[Example] {
        &self.examples[at..][..BATCH]
    }
}

fn measure(name: &str, head: &HeadConfig, data: &Data) -> gct::Result<Value> {
    let mut learner = TapeLearner::new(Model::<f32>::new(&with_dropout(name)?, head, data.rows, 0)?);
    let train = rate(data.examples.len(), || {
        for at in data.batches() {
            learner.step(data.batch(at), Learning::new(5e-4, at as u32));
        }
    });
    // What `gct evaluate` and `gct predict` do with encounters that they have read: made examples of, P
    // included, and answered.
    let predictor = data.predictor(learner.model(), head);
    let evaluate = rate(data.encounters.len(), || {
        let answers = predictor.answers(&predictor.samples(&data.encounters)).expect("the weights are small");
        std::hint::black_box(answers);
    });
    Ok(json!({"train": train, "evaluate": evaluate}))
}

/// Outputs of the linear layers of GCT's three blocks: value; query, key and value; two layers of every MLP.
const LAYERS: [usize; 9] = [WIDTH, WIDTH, WIDTH, 3 * WIDTH, WIDTH, WIDTH, 3 * WIDTH, WIDTH, WIDTH];

/// Operations of the products of one training step of GCT on graph reconstruction, per encounter: what the
/// model asks for, whatever the program does.
fn flop_per_step(examples: &[Example]) -> f64 {
    let columns: usize = LAYERS.iter().sum();
    let flop = |example: &Example| {
        let nodes = example.nodes();
        let pairs = example.visit.allowed.cells().count();
        // Forward, and backward to the inputs and to the weights.
        let linear = 3 * 2 * nodes * WIDTH * columns;
        // P mixes in block 1, forward and back. In the others scores and mixing are two products, and four
        // back.
        let mixing = (2 + 2 * 6) * 2 * pairs * WIDTH;
        let decoder = 2 * 2 * nodes * nodes * WIDTH;
        (linear + mixing + decoder) as f64
    };
    examples.iter().map(flop).sum::<f64>() / examples.len() as f64
}

/// Encounters per second if a training step were nothing but the products of its linear layers.
fn floor(examples: &[Example]) -> f64 {
    const ROWS: usize = 160;
    let nodes: usize = examples.iter().map(Example::nodes).sum();
    let threads = rayon::current_num_threads();
    let chunks = nodes / ROWS / threads;
    let most = 3 * WIDTH;
    let random: Vec<f32> = (0..most * most).map(|i| (i % 17) as f32 * 0.1 - 0.8).collect();
    let x = &random[..ROWS * most];
    let mut packed = vec![0.0; packed_len(most, most)];
    let mut turned = packed.clone();
    pack(&random, WIDTH, most, &mut packed);
    pack_transposed(&random, WIDTH, most, &mut turned);
    rate(chunks * threads * ROWS, || {
        (0..threads).into_par_iter().for_each(|_| {
            let (mut y, mut d_w) = (vec![0.0; ROWS * most], vec![0.0; WIDTH * most]);
            for outputs in (0..chunks).flat_map(|_| LAYERS) {
                let (w, w_turned) = (Right::packed(&packed, WIDTH), Right::packed(&turned, outputs));
                gemm([ROWS, outputs, WIDTH], Left::rows(x, WIDTH), w, &mut y, outputs, Into::Set);
                gemm([ROWS, WIDTH, outputs], Left::rows(x, outputs), w_turned, &mut y, WIDTH, Into::Set);
                let (x, d) = (Left::transposed(x, WIDTH), Right::rows(x, outputs));
                gemm([WIDTH, outputs, ROWS], x, d, &mut d_w, outputs, Into::Add);
            }
            std::hint::black_box((y, d_w));
        });
    }) / nodes as f64
        * examples.len() as f64
}

/// Microseconds for the label of one encounter alone: the median and the 99th percentile.
fn latency(data: &Data) -> gct::Result<Value> {
    let model = Model::<f32>::new(&Config::named("gct")?, &labels(), data.rows, 0)?;
    let predictor = data.predictor(&model, &labels());
    let mut times: Vec<f64> = (data.encounters.iter())
        .map(|encounter| {
            let start = Instant::now();
            let _ = std::hint::black_box(predictor.answers(&[predictor.sample(encounter)]));
            start.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    Ok(json!({"median": times[times.len() / 2], "p99": times[times.len() * 99 / 100]}))
}

/// Resident memory in MB after a tenth of the steps and after each further tenth.
fn memory(data: &Data, steps: usize) -> gct::Result<Value> {
    let mut learner = TapeLearner::new(Model::<f32>::new(&with_dropout("gct")?, &edges(), data.rows, 0)?);
    let mut megabytes = Vec::new();
    for (step, at) in data.batches().cycle().take(steps).enumerate() {
        learner.step(data.batch(at), Learning::new(5e-4, step as u32));
        if (step + 1) % (steps / 10).max(1) == 0 {
            megabytes.push(resident_megabytes());
        }
    }
    Ok(json!({"steps": steps, "megabytes": megabytes}))
}

/// What Linux says; `None` elsewhere.
fn resident_megabytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
}
