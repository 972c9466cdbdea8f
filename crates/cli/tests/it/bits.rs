//! Results keep their bits: every model trained for 200 steps on every kind of question, with one thread and
//! with two, and the SHA-256 of what comes out, beside what came out when `bits.txt` was recorded.
//!
//! The last bits depend on the instructions that a processor has and on the C library, so only the kind of
//! machine that recorded the file compares with it. Others see that one thread and two agree. A change that
//! means to change results records the file anew: `GCT_RECORD=1 cargo test -p gct-cli --test it bits`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gct_kernels::level::level;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{gct, json};

const MODELS: [&str; 9] =
    ["gct", "transformer", "gcn", "gcn_p", "gcn_random", "shallow", "deep", "mime", "logistic"];

const QUESTIONS: [&str; 5] =
    ["graph_reconstruction", "diagnosis_treatment", "masked_diagnosis", "masked_code", "label:d1_m1"];

/// What is compared, in the order of the columns of `bits.txt`.
const RESULTS: [&str; 4] = ["weights", "predictions", "metrics", "explanation"];

/// SHA-256 of each of the [`RESULTS`], by model and question.
type Digests = BTreeMap<(String, String), [String; RESULTS.len()]>;

fn recorded_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/bits.txt")
}

/// The processor and the C library, as far as results depend on them.
fn machine() -> String {
    format!(
        "{} {:?} {}",
        std::env::consts::ARCH,
        level(),
        if cfg!(target_env = "gnu") { "gnu" } else { "other" }
    )
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The tensors of a file, without its header, which tells the version of the program.
fn tensors(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + header..].to_vec()
}

/// The results, and the attributions of the explanation, which no file has: they are compared between numbers
/// of threads alone.
fn results(home: &Path, model: &str, question: &str, threads: usize) -> ([String; RESULTS.len()], String) {
    let run = format!("{model}-{}-{threads}", question.replace(':', "-"));
    let small = match model {
        "logistic" => "",
        _ => "--steps 200 --set validate_every=50 --set batch=8 --set model.width=16",
    };
    let line = format!("train --data data --task {question} --model {model} {small}");
    gct(home, &format!("{line} --threads {threads} --out {run} --quiet")).assert().success();
    gct(home, &format!("predict {run} --threads {threads} --out {run}.parquet --quiet")).assert().success();
    let mut metrics = json(home, &format!("evaluate {run} --threads {threads} --bootstrap 20 --quiet"));
    without_details(&mut metrics);
    let mut explanation = json(home, &format!("explain {run} --threads {threads} --quiet"));
    let attributions = explanation["attributions"].to_string();
    explanation.as_object_mut().unwrap().retain(|key, _| key != "attributions");
    let weights = [
        tensors(&home.join(&run).join("best.safetensors")),
        tensors(&home.join(&run).join("last.safetensors")),
    ];
    let predictions = fs::read(home.join(format!("{run}.parquet"))).unwrap();
    let results = [
        weights.concat(),
        predictions,
        metrics.to_string().into_bytes(),
        explanation.to_string().into_bytes(),
    ];
    (results.map(|result| digest(&result)), attributions)
}

/// Leaves of an evaluation what was there when the digests were recorded: the metrics.
fn without_details(metrics: &mut Value) {
    const LATER: [&str; 8] = [
        "calibrated",
        "predictions",
        "subjects",
        "positives",
        "prevalence",
        "thresholds",
        "calibration",
        "net_benefit",
    ];
    let Value::Object(metrics) = metrics else { return };
    metrics.retain(|key, _| !LATER.contains(&key.as_str()));
    if let Some(Value::Object(labels)) = metrics.get_mut("labels") {
        labels.values_mut().for_each(without_details);
    }
}

fn digests(model: &str) -> Digests {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    gct(home, "synth --out data --encounters 300").assert().success();
    let mut digests = Digests::new();
    for question in QUESTIONS {
        // Deep and MiME have no vectors of nodes to reconstruct edges from, and logistic regression predicts
        // labels alone.
        let has_nodes = !["deep", "mime", "logistic"].contains(&model);
        let answers = match question {
            "graph_reconstruction" => has_nodes,
            "masked_diagnosis" | "masked_code" => model != "logistic",
            _ => true,
        };
        if !answers {
            continue;
        }
        let one = results(home, model, question, 1);
        assert_eq!(one, results(home, model, question, 2), "{model}, {question}: one thread and two");
        digests.insert((model.into(), question.into()), one.0);
    }
    digests
}

fn read_recorded() -> (String, Digests) {
    let text = fs::read_to_string(recorded_file()).unwrap_or_default();
    let mut lines = text.lines();
    let machine = lines.next().unwrap_or_default().to_owned();
    let row = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let [model, question, digests @ ..] = &words[..] else { panic!("bits.txt: {line}") };
        ((model.clone(), question.clone()), digests.to_vec().try_into().unwrap())
    };
    (machine, lines.map(row).collect())
}

fn record(all: Digests) {
    let (_, mut recorded) = read_recorded();
    recorded.extend(all);
    let row = |((model, question), digests): (&(String, String), &[String; RESULTS.len()])| {
        format!("{model} {question} {}\n", digests.join(" "))
    };
    let rows: String = recorded.iter().map(row).collect();
    fs::write(recorded_file(), format!("{}\n{rows}", machine())).unwrap();
}

#[test]
fn every_model_keeps_its_bits() {
    let all: Digests = std::thread::scope(|scope| {
        let half = |models: &'static [&'static str]| {
            scope.spawn(|| models.iter().flat_map(|model| digests(model)).collect::<Vec<_>>())
        };
        let halves = [half(&MODELS[..4]), half(&MODELS[4..])];
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    });
    if std::env::var_os("GCT_RECORD").is_some() {
        return record(all);
    }
    let (recorded_on, recorded) = read_recorded();
    if recorded_on != machine() {
        println!("not compared: bits.txt is of {recorded_on}, this is {}", machine());
        return;
    }
    assert_eq!(all.len(), recorded.len(), "models and questions");
    for ((model, question), digests) in &all {
        let before = &recorded[&(model.clone(), question.clone())];
        for ((result, now), before) in RESULTS.iter().zip(digests).zip(before) {
            assert_eq!(now, before, "{result} of {model} on {question}");
        }
    }
}
