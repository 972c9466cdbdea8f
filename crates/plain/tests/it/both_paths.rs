//! The fast path equals the plain one, values and gradients, for every model, head and option, on encounters
//! of every shape.

use gct::batch::{EmbeddingRows, Example, Step, Visit};
use gct::graph::NodeRanges;
use gct::history::{Aggregator, History};
use gct::model::{Config, Learner, Learning, Model, Normalizer, Outcome, Pass, TapeLearner};
use gct::question::HeadConfig;
use gct::record::{CodeKind, PerKind};
use gct_kernels::Number;
use gct_kernels::tape::Pool;
use gct_plain::{Device, Plain};
use serde_json::{Value, json};

const CODES: u32 = 60;

pub(crate) fn rows() -> EmbeddingRows {
    EmbeddingRows::new(PerKind { diagnosis: CODES, treatment: CODES, lab: CODES, ..PerKind::default() })
}

/// Two labels of the visit.
const LABELS: HeadConfig = HeadConfig::Labels { count: 2 };

/// The same and some codes of context.
fn rows_with(context: u32) -> EmbeddingRows {
    EmbeddingRows::new(PerKind { context, diagnosis: CODES, treatment: CODES, lab: CODES })
}

/// An example with so many of so many codes of context.
fn with_context(example: &Example, nodes: usize, codes: u32) -> Example {
    let (visit, old, added) = (&example.visit, example.nodes(), nodes);
    let len = old + added;
    let moved = |node: usize| if node == 0 { 0 } else { node + added };
    let mut ids = vec![EmbeddingRows::VISIT];
    ids.extend((0..added as u32).map(|at| 1 + at));
    ids.extend(visit.ids[1..].iter().map(|id| id + codes));
    let mut edges: Vec<(u32, u32)> = (1..=added as u32).map(|context| (0, context)).collect();
    let both = |(i, j): &(u32, u32)| (moved(*i as usize) as u32, moved(*j as usize) as u32);
    edges.extend(visit.edges.iter().flatten().map(both));
    let (mut before, mut prior) = (vec![0.0; old * old], vec![0.0; len * len]);
    visit.allowed.expand(&visit.prior, &mut before);
    for (cell, share) in before.into_iter().enumerate() {
        prior[moved(cell / old) * len + moved(cell % old)] = share;
    }
    for context in 1..=added {
        (prior[context], prior[context * len], prior[context * len + context]) = (0.3, 0.6, 0.4);
    }
    let kinds =
        PerKind::from_fn(|kind| if kind == CodeKind::Context { added } else { visit.range(kind).len() });
    let hidden = visit.hidden.map(|(node, id)| (moved(node), id));
    Example::of(Visit::from_parts(NodeRanges::new(kinds), ids, Some(edges), &prior, hidden))
}

/// Numbers between 0 and 1, by a seed.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() * end as f64) as usize
    }
}

/// An encounter with so many diagnoses, treatments and labs. Some codes have no edge at all.
pub(crate) fn example([diagnoses, treatments, labs]: [usize; 3], hides: bool, seed: u64) -> Example {
    let mut numbers = Numbers(seed);
    let sizes = [1, diagnoses, treatments, labs];
    let nodes: usize = sizes.iter().sum();
    let first_of = [0, 1, 1 + CODES, 1 + 2 * CODES];
    let mut ids = Vec::new();
    for (kind, size) in sizes.into_iter().enumerate() {
        let start = numbers.below(CODES as usize);
        ids.extend((0..size).map(|at| match kind {
            0 => EmbeddingRows::VISIT,
            _ => first_of[kind] + ((start + at) as u32) % CODES,
        }));
    }
    let mut edges: Vec<(u32, u32)> = (1..=diagnoses as u32).map(|diagnosis| (0, diagnosis)).collect();
    let starts = [0, 1, 1 + diagnoses, 1 + diagnoses + treatments];
    for kind in [1, 2] {
        for effect in 0..sizes[kind + 1] {
            if sizes[kind] > 0 && numbers.next() < 0.7 {
                let cause = starts[kind] + numbers.below(sizes[kind]);
                edges.push((cause as u32, (starts[kind + 1] + effect) as u32));
            }
        }
    }
    let kind_of = |node: usize| starts.iter().rposition(|start| *start <= node).unwrap();
    let mut prior = vec![0.0; nodes * nodes];
    for (i, row) in prior.chunks_exact_mut(nodes).enumerate() {
        for (j, cell) in row.iter_mut().enumerate() {
            // Pairs that were never seen together have a prior of 0.
            if i == j || (kind_of(i).abs_diff(kind_of(j)) == 1 && numbers.next() < 0.8) {
                *cell = numbers.next() as f32 + 0.05;
            }
        }
        let sum: f32 = row.iter().sum();
        row.iter_mut().for_each(|cell| *cell /= sum);
    }
    let hidden = (hides && diagnoses > 0).then(|| {
        let node = 1 + numbers.below(diagnoses);
        let id = ids[node] - 1;
        ids[node] = rows().hidden();
        (node, id)
    });
    let ranges = NodeRanges::new(PerKind {
        diagnosis: diagnoses,
        treatment: treatments,
        lab: labs,
        ..PerKind::default()
    });
    Example::of(Visit::from_parts(ranges, ids, Some(edges), &prior, hidden))
}

/// Encounters of 2 to 151 nodes: the smallest and the largest, without labs, without treatments, one of them
/// twice. If no diagnosis is to be hidden, also some without any, which nothing connects to the visit, and a
/// visit alone.
pub(crate) fn batch(hides: bool) -> Vec<Example> {
    let shapes = [[1, 0, 0], [1, 4, 0], [3, 1, 2], [8, 13, 20], [17, 0, 0], [5, 0, 9], [2, 3, 1], [2, 3, 1]];
    let mut batch: Vec<Example> =
        shapes.iter().enumerate().map(|(at, shape)| example(*shape, hides, 40 + at as u64)).collect();
    batch.push(example([50, 50, 50], hides, 7));
    batch.push(batch[3].clone());
    if !hides {
        batch.extend([[0, 3, 2], [0, 0, 0], [0, 0, 4]].map(|shape| example(shape, false, 3)));
    }
    batch
}

fn config(name: &str, changes: &Value) -> Config {
    let mut config = serde_json::to_value(Config::named(name).unwrap()).unwrap();
    if name != "logistic" {
        config["width"] = 12.into();
    }
    for (key, value) in changes.as_object().unwrap() {
        config[key] = value.clone();
    }
    serde_json::from_value(config).unwrap()
}

/// Every model, and every option of those that have any.
fn configs() -> Vec<Config> {
    let dropout = json!({"mlp": 0.3, "post_mlp": 0.2});
    let mut all: Vec<Config> = Config::NETWORKS.iter().map(|name| config(name, &json!({}))).collect();
    for name in ["gct", "transformer"] {
        for attention in [
            json!({"heads": 3}),
            json!({"heads": 2, "join": "sum"}),
            json!({"normalizer": "sigmoid"}),
            json!({"directed": true}),
            json!({"heads": 2, "normalizer": "sigmoid", "directed": true}),
        ] {
            all.push(config(name, &json!({"attention": attention})));
        }
        all.push(config(name, &json!({"dropout": dropout})));
    }
    all.push(config("gct", &json!({"regularizer": "paper", "regularization": 2.0})));
    all.push(config("gct", &json!({"regularization": 3.0, "attention": {"heads": 2}})));
    all.push(config(
        "gct",
        &json!({"regularization": 3.0, "prior": "biases", "attention": {"directed": true}}),
    ));
    all.push(config("gcn", &json!({"dropout": dropout})));
    all.push(config("shallow", &json!({"dropout": 0.2})));
    all.push(config("deep", &json!({"dropout": 0.2, "post_dropout": 0.3})));
    all.push(config("mime", &json!({"auxiliary": 0.5, "dropout": 0.2})));
    all
}

fn fast<T: Number>(model: &Model<T>, batch: &[Example], pass: Pass) -> (Outcome, Vec<f64>) {
    let mut gradients = vec![T::ZERO; model.parameters().len()];
    let outcome = model.play(batch, pass, &mut Pool::default(), Some(&mut gradients));
    (outcome, gradients.iter().map(|x| x.f64()).collect())
}

/// The largest difference between the two paths, relative to the largest number of its kind.
fn deviation<T: Number>(config: &Config, head: &HeadConfig, context: u32) -> f64 {
    deviation_of::<T>((config, &History::default()), head, context)
}

/// The same with history.
fn deviation_of<T: Number>((config, history): (&Config, &History), head: &HeadConfig, context: u32) -> f64 {
    let labels = |at: usize| vec![Some(at.is_multiple_of(3)), (at > 2).then_some(at.is_multiple_of(2))];
    let batch: Vec<Example> = (batch(*head == HeadConfig::HiddenDiagnosis).into_iter().enumerate())
        .map(|(at, example)| match context {
            0 => example.with_labels(labels(at)),
            _ => with_context(&example, at % (1 + context as usize), context).with_labels(labels(at)),
        })
        .collect();
    let batch = if history.is_none() { batch } else { with_steps(batch) };
    let mut model = Model::<T>::with_history(config, history, head, rows_with(context), 11).unwrap();
    if config.name() == "logistic" {
        // It begins at zero, where nothing could differ.
        let weight = |number: usize| T::of((number * 7919 % 1000) as f64 / 1000.0 - 0.5);
        model.weights_mut().update(|values| {
            values.iter_mut().enumerate().for_each(|(number, value)| *value = weight(number));
        });
    }
    let plain = Plain::new(model, &Device::flex());
    let model = plain.model();
    let mut worst = 0.0f64;
    for regularizes in [true, false] {
        let label_smoothing = if regularizes { 0.2 } else { 0.0 };
        let positives: &[f64] = if regularizes { &[3.0, 0.5] } else { &[] };
        let pass =
            Pass { dropout_key: Some(5), label_smoothing, positives, ..model.pass(&batch, regularizes) };
        let (ours, our_gradients) = fast(model, &batch, pass);
        let (theirs, their_gradients) = plain.gradients(&batch, pass);
        let mut compare = |a: &[f64], b: &[f64]| {
            let scale = b.iter().fold(1e-3f64, |most, x| most.max(x.abs()));
            let difference = a.iter().zip(b).fold(0.0f64, |most, (a, b)| most.max((a - b).abs()));
            worst = worst.max(difference / scale);
        };
        compare(&[ours.prediction, ours.regularizer], &[theirs.prediction, theirs.regularizer]);
        for named in model.parameters().named() {
            let range = named.start..named.start + named.len();
            compare(&our_gradients[range.clone()], &their_gradients[range]);
        }
    }
    worst
}

fn is_sigmoid(config: &Config) -> bool {
    let attention = match config {
        Config::Gct(config) => &config.attention,
        Config::Transformer(config) => &config.attention,
        _ => return false,
    };
    attention.normalizer == Normalizer::Sigmoid
}

#[test]
fn every_model_option_and_head_is_the_same_on_both_paths() {
    let mut worst = (0.0, 0.0);
    for config in configs() {
        let mut heads = vec![LABELS];
        if config.name() != "logistic" {
            heads.push(HeadConfig::HiddenDiagnosis);
        }
        if !["deep", "mime", "logistic"].contains(&config.name()) {
            heads.extend([true, false].map(|kinds| HeadConfig::Edges { initial_bias: -3.0, kinds }));
            heads.push(HeadConfig::RawEdges);
        }
        for head in heads {
            let double = deviation::<f64>(&config, &head, 0);
            assert!(double < 1e-9, "{config:?} {head:?}: {double:.1e} in double precision");
            // Sigmoids that are all about one half make the nodes of a large encounter almost equal, and
            // their differences imprecise.
            let tolerance = if is_sigmoid(&config) { 1e-2 } else { 1e-4 };
            let single = deviation::<f32>(&config, &head, 0);
            assert!(single < tolerance, "{config:?} {head:?}: {single:.1e} in single precision");
            worst = (f64::max(worst.0, double), f64::max(worst.1, single));
        }
    }
    println!("largest deviation: {:.1e} in double, {:.1e} in single precision", worst.0, worst.1);
}

#[test]
fn every_model_is_the_same_on_both_paths_with_context() {
    for name in Config::NETWORKS {
        let mut heads = vec![LABELS];
        if name != "logistic" {
            heads.push(HeadConfig::HiddenDiagnosis);
        }
        if !["deep", "mime", "logistic"].contains(&name) {
            heads.push(HeadConfig::Edges { initial_bias: -3.0, kinds: true });
        }
        for head in heads {
            let found = deviation::<f64>(&config(name, &json!({})), &head, 3);
            assert!(found < 1e-9, "{name} {head:?}: {found:.1e}");
        }
    }
}

/// Examples of subjects with one, two or more visits, each of which sees those before it.
fn with_steps(batch: Vec<Example>) -> Vec<Example> {
    let mut before: Vec<Step> = Vec::new();
    let example = |(at, example): (usize, Example)| {
        if [0, 1, 3].contains(&at) {
            before.clear();
        }
        let (since, ago) = (at as u32 % 5, (at as u32 * 7) % 18);
        before.insert(0, Step { visit: example.visit.clone(), since, ago });
        Example { steps: before.clone(), ..example }
    };
    batch.into_iter().enumerate().map(example).collect()
}

#[test]
fn every_aggregator_is_the_same_on_both_paths() {
    for name in Config::NETWORKS.into_iter().filter(|name| *name != "logistic") {
        for aggregator in [Aggregator::Gru, Aggregator::Cnn, Aggregator::Attention] {
            let history = History { aggregator, ..History::default() };
            let found = deviation_of::<f64>((&config(name, &json!({})), &history), &LABELS, 0);
            assert!(found < 1e-9, "{name} {aggregator:?}: {found:.1e}");
        }
    }
}

#[test]
fn both_paths_learn_alike() {
    let (batch, head) = (batch(false), HeadConfig::Edges { initial_bias: -3.0, kinds: true });
    let model = || Model::<f64>::new(&config("gct", &json!({})), &head, rows(), 3).unwrap();
    let mut tape = TapeLearner::new(model());
    let mut plain = Plain::new(model(), &Device::flex());
    // Batches of other codes in turn: nothing may be left of the gradient of the one before.
    for step in 0..6 {
        let batch = if step % 2 == 0 { &batch[..5] } else { &batch[5..] };
        // Some of them are clipped, and in some the weights decay.
        let (clip, weight_decay) = ((step > 2).then_some(0.1), if step > 3 { 0.5 } else { 0.0 });
        let learning = Learning { clip, weight_decay, ..Learning::new(1e-2, step) };
        let (ours, theirs) = (tape.step(batch, learning), plain.step(batch, learning));
        assert!((ours.prediction - theirs.prediction).abs() < 1e-7, "{ours:?} {theirs:?}");
    }
    for (ours, theirs) in tape.model().weights().values().iter().zip(plain.model().weights().values()) {
        assert!((ours - theirs).abs() < 1e-6, "{ours} {theirs}");
    }
}
