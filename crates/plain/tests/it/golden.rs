//! The models against an independent implementation in PyTorch (float64): attention maps, hidden states,
//! losses and every gradient, on both paths. `tests/golden/*.json` holds its weights, inputs and results;
//! numbers have nine digits.

use std::collections::BTreeMap;

use gct::batch::{self, EmbeddingRows, Example};
use gct::graph::NodeRanges;
use gct::model::{Config, GcnConfig, GctConfig, Learner, Model, Pass, TransformerConfig};
use gct::question::HeadConfig;
use gct::record::PerKind;
use gct_kernels::Number;
use gct_kernels::tape::Pool;
use gct_plain::{Device, Plain};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    config: Settings,
    input: Input,
    weights: BTreeMap<String, Tensor>,
    runs: BTreeMap<String, Run>,
}

#[derive(Deserialize)]
#[allow(non_snake_case)]
struct Settings {
    d: usize,
    V: u32,
    blocks: usize,
    reg: f64,
}

#[derive(Deserialize)]
struct Input {
    visits: Vec<Visit>,
}

#[derive(Deserialize)]
#[allow(non_snake_case)]
struct Visit {
    dx: Vec<u32>,
    proc: Vec<u32>,
    lab: Vec<u32>,
    ids: Vec<u32>,
    edges: Vec<(u32, u32)>,
    labels: Vec<f64>,
    mask_pos: usize,
    P: Vec<f32>,
    P_masked_cond: Vec<f32>,
    P_masked_all: Vec<f32>,
}

#[derive(Deserialize, Clone)]
struct Tensor {
    shape: Vec<usize>,
    data: Vec<f64>,
}

#[derive(Deserialize)]
struct Run {
    hidden: Vec<Vec<Vec<f64>>>,
    attention: Vec<Vec<Vec<f64>>>,
    pred_loss: f64,
    #[serde(default)]
    kl_reg: f64,
    grads: BTreeMap<String, Vec<f64>>,
}

/// Golden files by model, with the configuration that they were made with.
fn golden(name: &str) -> (Golden, Config) {
    let text = match name {
        "gct" => include_str!("../golden/gct.json"),
        "transformer" => include_str!("../golden/transformer.json"),
        _ => include_str!("../golden/gcn.json"),
    };
    let golden: Golden = serde_json::from_str(text).unwrap();
    let (width, blocks) = (golden.config.d, golden.config.blocks);
    let config = match name {
        "gct" => {
            let regularization = golden.config.reg;
            Config::Gct(GctConfig { width, blocks, regularization, ..GctConfig::default() })
        }
        "transformer" => {
            Config::Transformer(TransformerConfig { width, blocks, ..TransformerConfig::default() })
        }
        _ => Config::Gcn(GcnConfig { width, convolutions: blocks, ..GcnConfig::default() }),
    };
    (golden, config)
}

impl Golden {
    fn rows(&self) -> EmbeddingRows {
        let size = self.config.V;
        EmbeddingRows::new(PerKind { diagnosis: size, treatment: size, lab: size, ..PerKind::default() })
    }

    fn examples(&self, run: &str) -> Vec<Example> {
        let example = |visit: &Visit| {
            let hidden = run.starts_with("mdx").then(|| (visit.mask_pos, visit.dx[visit.mask_pos - 1]));
            let mut ids = visit.ids.clone();
            if let Some((node, _)) = hidden {
                ids[node] = self.rows().hidden();
            }
            let prior = match run {
                "mdx_cond" => &visit.P_masked_cond,
                "mdx_all" => &visit.P_masked_all,
                _ => &visit.P,
            };
            let Visit { dx, proc, lab, .. } = visit;
            let codes =
                PerKind { diagnosis: dx.len(), treatment: proc.len(), lab: lab.len(), ..PerKind::default() };
            Example::of(batch::Visit::from_parts(
                NodeRanges::new(codes),
                ids,
                Some(visit.edges.clone()),
                prior,
                hidden,
            ))
        };
        self.input.visits.iter().map(example).collect()
    }

    /// Golden tensors under our names, in our layout: matrices are [inputs, outputs], and query, key and
    /// value stand side by side. Names that are not there are left out.
    fn ours(&self, of: &BTreeMap<String, Tensor>, name: &str, run: &str) -> Option<Vec<f64>> {
        let turned = |name: &str| {
            let Tensor { shape, data } = of.get(name)?;
            let (outputs, inputs) = (shape[0], shape[1]);
            let cell = |i: usize| data[i % outputs * inputs + i / outputs];
            Some(((0..inputs * outputs).map(cell).collect::<Vec<f64>>(), inputs))
        };
        let plain = |name: &str| of.get(name).map(|tensor| tensor.data.clone());
        let head = if run == "dt" { "dt" } else { "mdx" };
        let parts: Vec<&str> = name.split('.').collect();
        match parts[..] {
            // The last row of theirs is for padding.
            ["embedding"] => plain("emb.weight").map(|mut all| {
                all.truncate(all.len() - self.config.d);
                all
            }),
            ["blocks", k, "value"] => turned(&format!("blocks.{k}.V.weight")).map(|(data, _)| data),
            ["blocks", k, "query_key_value"] => {
                let parts = ["Q", "K", "V"].map(|part| turned(&format!("blocks.{k}.{part}.weight")));
                let [Some((q, inputs)), Some((key, _)), Some((v, _))] = parts else { return None };
                let width = q.len() / inputs;
                let rows =
                    (0..inputs).flat_map(|row| [&q, &key, &v].map(|part| &part[row * width..][..width]));
                Some(rows.flatten().copied().collect())
            }
            ["blocks", k, layer, part] => {
                let theirs = match layer {
                    "mixed_norm" => "ln1",
                    "out_norm" => "ln2",
                    "hidden" => "f1",
                    _ => "f2",
                };
                match (layer, part) {
                    ("hidden" | "out", "weight") => {
                        turned(&format!("blocks.{k}.{theirs}.weight")).map(|(data, _)| data)
                    }
                    (_, "gain") => plain(&format!("blocks.{k}.{theirs}.weight")),
                    _ => plain(&format!("blocks.{k}.{theirs}.bias")),
                }
            }
            ["head", "weight"] => turned(&format!("{head}.head.weight")).map(|(data, _)| data),
            ["head", "bias"] if run.starts_with("gr") => plain("gr_bias"),
            ["head", "bias"] => plain(&format!("{head}.head.bias")),
            _ => None,
        }
    }
}

/// The largest difference relative to the largest expected number.
fn deviation(got: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    let scale = expected.iter().fold(1e-6f64, |most, x| most.max(x.abs()));
    got.iter().zip(expected).fold(0.0f64, |most, (a, b)| most.max((a - b).abs())) / scale
}

/// Who computes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Path {
    Fast,
    Plain,
}

/// Runs one golden case and returns the largest deviation, with what it is of.
fn run<T: Number>(name: &str, case: &str, path: Path) -> (f64, String) {
    let (golden, config) = golden(name);
    let expected = &golden.runs[case];
    let head = match case {
        "gr" => HeadConfig::RawEdges,
        "gr_scaled_bias" => HeadConfig::Edges { initial_bias: 0.0, kinds: false },
        "dt" => HeadConfig::Labels { count: 2 },
        _ => HeadConfig::HiddenDiagnosis,
    };
    let mut model = Model::<T>::new(&config, &head, golden.rows(), 0).unwrap();
    let named = model.parameters().named().to_vec();
    model.weights_mut().update(|values| {
        for parameter in &named {
            let weights = match parameter.name.as_str() {
                // Their scale is fixed.
                "head.scale" => vec![1.0 / (golden.config.d as f64).sqrt()],
                other => golden.ours(&golden.weights, other, case).unwrap_or_else(|| panic!("no {other}")),
            };
            assert_eq!(weights.len(), parameter.len(), "{}", parameter.name);
            for (value, weight) in values[parameter.start..].iter_mut().zip(weights) {
                *value = T::of(weight);
            }
        }
    });

    let examples: Vec<Example> = (golden.examples(case).into_iter().zip(&golden.input.visits))
        .map(|(example, visit)| {
            example.with_labels(visit.labels.iter().map(|label| Some(*label == 1.0)).collect())
        })
        .collect();
    let nodes: Vec<usize> = examples.iter().map(Example::nodes).collect();
    let batch_terms = match case {
        "dt" => 8,
        _ if case.starts_with("gr") => nodes.iter().map(|n| n * (n - 1)).sum(),
        _ => 4,
    };
    let pass = Pass {
        dropout_key: None,
        batch_nodes: nodes.iter().sum(),
        batch_terms,
        first_node: 0,
        label_smoothing: 0.0,
        positives: &[],
        regularizes: true,
    };
    let plain = Plain::new(model, &Device::flex());
    let model = plain.model();
    let (outcome, gradients) = match path {
        Path::Fast => {
            let mut gradients = vec![T::ZERO; model.parameters().len()];
            let outcome = model.play(&examples, pass, &mut Pool::default(), Some(&mut gradients));
            (outcome, gradients.iter().map(|x| x.f64()).collect::<Vec<f64>>())
        }
        Path::Plain => plain.gradients(&examples, pass),
    };

    let mut worst = (0.0, String::new());
    let mut compare = |what: String, got: &[f64], expected: &[f64]| {
        let deviation = deviation(got, expected);
        if deviation > worst.0 {
            worst = (deviation, format!("{path:?} {name} {case} {what}"));
        }
    };
    compare("loss".into(), &[outcome.prediction], &[expected.pred_loss]);
    if name == "gct" {
        compare("regulariser".into(), &[outcome.regularizer], &[expected.kl_reg]);
    }
    let theirs: BTreeMap<String, Tensor> = (expected.grads.iter())
        .map(|(name, data)| {
            let shape = golden.weights[name].shape.clone();
            (name.clone(), Tensor { shape, data: data.clone() })
        })
        .collect();
    for parameter in named.iter().filter(|parameter| parameter.name != "head.scale") {
        let theirs = golden.ours(&theirs, &parameter.name, case);
        let theirs = theirs.unwrap_or_else(|| panic!("no gradient of {}", parameter.name));
        compare(parameter.name.clone(), &gradients[parameter.start..][..parameter.len()], &theirs);
    }
    if path == Path::Plain {
        return worst;
    }
    model.look(&examples, |view| {
        let hidden: Vec<f64> = expected.hidden.last().unwrap().concat();
        compare("hidden".into(), &view.nodes().iter().map(|x| x.f64()).collect::<Vec<_>>(), &hidden);
        for (block, (ours, theirs)) in view.attentions().iter().zip(&expected.attention).enumerate() {
            let ours: Vec<f64> = ours[0].concat().iter().map(|x| x.f64()).collect();
            compare(format!("attention {block}"), &ours, &theirs.concat());
        }
    });
    worst
}

#[test]
fn every_golden_case_is_met_on_both_paths() {
    let cases = ["gr", "gr_scaled_bias", "dt", "mdx_cond"];
    let all = ["gct", "transformer", "gcn"].iter().flat_map(|name| cases.map(|case| (*name, case)));
    for (name, case) in all.chain([("gct", "mdx_all")]) {
        for path in [Path::Fast, Path::Plain] {
            let (double, what) = run::<f64>(name, case, path);
            assert!(double < 1e-6, "f64: {what}: {double:.1e}");
            let (single, what) = run::<f32>(name, case, path);
            assert!(single < 1e-4, "f32: {what}: {single:.1e}");
            println!("{name} {case} {path:?}: f64 {double:.1e}, f32 {single:.1e} ({what})");
        }
    }
}
