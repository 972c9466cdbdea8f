//! Laws of all models.

use gct::batch::{EmbeddingRows, Example, Visit};
use gct::ingest::synthetic::{Generator, Settings};
use gct::job::Stop;
use gct::model::{Activations, Config, Frozen, Learner, Learning, Model, Pass, Pool, Scratch, TapeLearner};
use gct::prior::{Counter, Hidden, HiddenRule, MatrixSettings};
use gct::question::HeadConfig;
use gct::record::{CodeKind, Encounter, PerKind};
use gct_kernels::Number;
use serde_json::json;

/// Encounters of the synthetic generator, small ones among them.
fn encounters(count: usize) -> Vec<Encounter> {
    let settings = Settings { encounters: count as u64, min_codes: 1, ..Settings::default() };
    let mut generator = Generator::new(&settings).unwrap();
    let mut all = Vec::new();
    while let Some(drawn) = generator.next_round(&Stop::new()).unwrap() {
        all.extend(drawn.encounters);
    }
    all
}

/// As many codes of each kind as the synthetic generator has, and no context.
fn rows() -> EmbeddingRows {
    rows_with(0)
}

fn rows_with(context: u32) -> EmbeddingRows {
    EmbeddingRows::new(PerKind { context, diagnosis: 1000, treatment: 1000, lab: 1000 })
}

/// The encounters as examples, with a diagnosis hidden if asked for.
fn examples(encounters: &[Encounter], hide: bool) -> Vec<Example> {
    examples_with(rows(), encounters, hide)
}

fn examples_with(rows: EmbeddingRows, encounters: &[Encounter], hide: bool) -> Vec<Example> {
    examples_hiding(rows, encounters, |_| hide.then_some(CodeKind::Diagnosis))
}

/// The encounters as examples of a head, with what it asks for hidden: a code of each kind in turn, if it may
/// be of any.
fn examples_of(head: &HeadConfig, rows: EmbeddingRows, encounters: &[Encounter]) -> Vec<Example> {
    let examples = examples_hiding(rows, encounters, |number| match head {
        HeadConfig::HiddenDiagnosis => Some(CodeKind::Diagnosis),
        HeadConfig::HiddenCode => Some(CodeKind::OF_PAPER[number % 3]),
        HeadConfig::Edges { .. }
        | HeadConfig::RawEdges
        | HeadConfig::Labels { .. }
        | HeadConfig::NextDiagnoses => None,
    });
    with_labels(head, examples)
}

fn examples_hiding(
    rows: EmbeddingRows,
    encounters: &[Encounter],
    hide: impl Fn(usize) -> Option<CodeKind>,
) -> Vec<Example> {
    let mut counter = Counter::new(PerKind::from_fn(|kind| rows.codes(kind)));
    encounters.iter().for_each(|encounter| counter.add(encounter));
    let prior = counter.finish();
    let example = |(number, encounter): (usize, &Encounter)| {
        let hidden = hide(number).map(|kind| Hidden { kind, position: 0, rule: HiddenRule::default() });
        let settings = MatrixSettings { hidden, ..MatrixSettings::default() };
        Example::new(encounter, rows, &prior, &settings)
    };
    encounters.iter().enumerate().map(example).collect()
}

/// The encounters with one or two of five codes of context.
fn with_context(mut encounters: Vec<Encounter>) -> Vec<Encounter> {
    for (number, encounter) in (0u32..).zip(&mut encounters) {
        encounter.codes.context =
            if number % 3 == 0 { vec![4] } else { vec![number % 2, 2 + number % 3 / 2] };
    }
    encounters
}

/// The examples with two labels, or one for each diagnosis, if these are learned; some are not known.
fn with_labels(head: &HeadConfig, examples: Vec<Example>) -> Vec<Example> {
    let labels = |i: usize| match head {
        HeadConfig::Labels { .. } => vec![Some(i.is_multiple_of(2)), (i > 3).then_some(true)],
        HeadConfig::NextDiagnoses => (0..1000).map(|id| (id > i).then_some(id % 50 == i)).collect(),
        HeadConfig::Edges { .. }
        | HeadConfig::RawEdges
        | HeadConfig::HiddenDiagnosis
        | HeadConfig::HiddenCode => Vec::new(),
    };
    examples.into_iter().enumerate().map(|(i, example)| example.with_labels(labels(i))).collect()
}

fn heads(name: &str) -> Vec<HeadConfig> {
    if name == "logistic" {
        return vec![HeadConfig::Labels { count: 2 }];
    }
    let mut heads = vec![
        HeadConfig::Labels { count: 2 },
        HeadConfig::HiddenDiagnosis,
        HeadConfig::HiddenCode,
        HeadConfig::NextDiagnoses,
    ];
    if !["deep", "mime"].contains(&name) {
        heads.extend([true, false].map(|kinds| HeadConfig::Edges { initial_bias: -3.0, kinds }));
        heads.push(HeadConfig::RawEdges);
    }
    heads
}

/// A configuration with dropout, small enough to be quick.
fn small(name: &str, dropout: f64) -> Config {
    let mut config = serde_json::to_value(Config::named(name).unwrap()).unwrap();
    if name == "logistic" {
        return serde_json::from_value(config).unwrap();
    }
    config["width"] = 16.into();
    if config["dropout"].is_object() {
        config["dropout"] = serde_json::json!({"mlp": dropout, "post_mlp": dropout});
    } else {
        config["dropout"] = dropout.into();
    }
    serde_json::from_value(config).unwrap()
}

/// A model that has learned a little, if it would begin at zero.
fn begun<T: Number>(name: &str, rows: EmbeddingRows) -> Model<T> {
    let mut model = Model::new(&small(name, 0.0), &HeadConfig::Labels { count: 1 }, rows, 3).unwrap();
    if name == "logistic" {
        let weight = |number: usize| T::of((number * 7919 % 1000) as f64 / 1000.0 - 0.5);
        model.weights_mut().update(|values| {
            values.iter_mut().enumerate().for_each(|(number, value)| *value = weight(number));
        });
    }
    model
}

/// The paper chose its numbers of layers so that the models are of like size.
#[test]
fn models_are_of_like_size_without_their_embedding() {
    let size = |name: &str| {
        let config = Config::named(name).unwrap();
        let model = Model::<f32>::new(&config, &HeadConfig::Labels { count: 1 }, rows(), 0).unwrap();
        let named = model.parameters().named();
        named.iter().filter(|parameter| parameter.name != "embedding").map(|p| p.len()).sum::<usize>()
    };
    let sizes = ["transformer", "gct", "gcn", "shallow", "deep"].map(|name| (name, size(name) as f64));
    for (a, of_a) in sizes {
        for (b, of_b) in sizes {
            assert!(of_a / of_b < 1.2, "{a} {of_a} {b} {of_b}");
        }
    }
}

fn borrowed((before, after, weights): &(f64, f64, Vec<f32>)) -> (f64, f64, &Vec<f32>) {
    (*before, *after, weights)
}

#[test]
fn every_model_learns_every_task_with_the_same_bits_on_any_number_of_threads() {
    let encounters = encounters(12);
    for name in Config::NETWORKS {
        for head in heads(name) {
            let examples = examples_of(&head, rows(), &encounters);
            let train = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let model = Model::<f32>::new(&small(name, 0.1), &head, rows(), 7).unwrap();
                let mut learner = TapeLearner::new(model);
                pool.install(|| {
                    let evaluate = |model: &Model<f32>| {
                        model.frozen().evaluate(&examples, &Scratch::default()).prediction
                    };
                    let before = evaluate(learner.model());
                    for step in 0..30 {
                        learner.step(&examples, Learning::new(3e-3, step));
                    }
                    let after = evaluate(learner.model());
                    (before, after, learner.model().weights().values().to_vec())
                })
            };
            let (before, after, weights) = train(1);
            assert!(after < before, "{name} {head:?} learns: {before} to {after}");
            for threads in [2, 4] {
                assert!(
                    (before, after, &weights) == borrowed(&train(threads)),
                    "{name} {head:?}: {threads} threads"
                );
            }
        }
    }
}

#[test]
fn every_model_learns_every_task_with_context() {
    let encounters = with_context(encounters(12));
    for name in Config::NETWORKS {
        for head in heads(name) {
            let examples = examples_of(&head, rows_with(5), &encounters);
            let model = Model::<f32>::new(&small(name, 0.1), &head, rows_with(5), 7).unwrap();
            let mut learner = TapeLearner::new(model);
            let evaluate =
                |model: &Model<f32>| model.frozen().evaluate(&examples, &Scratch::default()).prediction;
            let before = evaluate(learner.model());
            for step in 0..30 {
                learner.step(&examples, Learning::new(3e-3, step));
            }
            let after = evaluate(learner.model());
            assert!(after < before, "{name} {head:?} learns: {before} to {after}");
        }
    }
}

#[test]
fn context_changes_the_vector_of_the_visit() {
    let encounters = with_context(encounters(2));
    let other = |mut encounter: Encounter| {
        encounter.codes.context = vec![1];
        encounter
    };
    let others: Vec<Encounter> = encounters.iter().cloned().map(other).collect();
    for name in Config::NETWORKS {
        let model = begun::<f64>(name, rows_with(5));
        let visits = |encounters: &[Encounter]| {
            let examples = examples_with(rows_with(5), encounters, false);
            model.look(&examples[..1], |view| view.visits().to_vec())
        };
        let (one, another) = (visits(&encounters), visits(&others));
        assert!(one.iter().zip(&another).any(|(a, b)| (a - b).abs() > 1e-6), "{name}");
    }
}

#[test]
fn a_vocabulary_without_context_makes_the_weights_that_there_were() {
    let edges = HeadConfig::Edges { initial_bias: -3.0, kinds: true };
    let shape = |context: u32, of: &str| {
        let model = Model::<f32>::new(&small("gct", 0.0), &edges, rows_with(context), 7).unwrap();
        let named = model.parameters().named().iter().find(|parameter| parameter.name == of).cloned();
        named.map(|parameter| parameter.len())
    };
    assert_eq!([shape(0, "embedding"), shape(5, "embedding")], [Some(3002 * 16), Some(3007 * 16)]);
    assert_eq!([shape(0, "head.bias"), shape(5, "head.bias")], [Some(10), Some(15)]);
}

#[test]
fn batch_mates_change_nothing() {
    let encounters = encounters(6);
    let examples = examples(&encounters, false);
    for name in Config::NETWORKS {
        let model = begun::<f32>(name, rows()).frozen();
        let together = model.look(&examples, |view| view.visits().to_vec());
        let apart: Vec<f32> = examples
            .iter()
            .flat_map(|example| model.look(std::slice::from_ref(example), |view| view.visits().to_vec()))
            .collect();
        assert!(together == apart, "{name}: to the bit");
    }
}

#[test]
fn reordering_nodes_reorders_the_result() {
    let encounters = encounters(1);
    let example = &examples(&encounters, false)[0];
    // Two diagnoses are swapped.
    let (visit, n) = (&example.visit, example.nodes());
    assert!(encounters[0].codes.diagnosis.len() >= 2, "an encounter with two diagnoses");
    let swap = |node: usize| match node {
        1 => 2,
        2 => 1,
        other => other,
    };
    let mut prior = vec![0.0; n * n];
    visit.allowed.expand(&visit.prior, &mut prior);
    let swapped = Example::of(Visit::from_parts(
        visit.ranges,
        (0..n).map(|i| visit.ids[swap(i)]).collect(),
        visit.edges.as_ref().map(|edges| {
            edges.iter().map(|&(i, j)| (swap(i as usize) as u32, swap(j as usize) as u32)).collect()
        }),
        &(0..n * n).map(|cell| prior[swap(cell / n) * n + swap(cell % n)]).collect::<Vec<f32>>(),
        None,
    ));
    for name in Config::NETWORKS.iter().filter(|name| **name != "gcn_random") {
        let model = begun::<f64>(name, rows());
        let nodes =
            |example: &Example| model.look(std::slice::from_ref(example), |view| view.nodes().to_vec());
        let (before, after) = (nodes(example), nodes(&swapped));
        for (i, row) in after.chunks(model.width()).enumerate() {
            for (after, before) in row.iter().zip(&before[swap(i) * model.width()..]) {
                assert!((after - before).abs() < 1e-9, "{name}");
            }
        }
    }
}

#[test]
fn without_its_coefficient_the_regulariser_has_no_effect() {
    let examples = examples(&encounters(4), false);
    let train = |regularization: f64| {
        let mut config = serde_json::to_value(small("gct", 0.0)).unwrap();
        config["regularization"] = regularization.into();
        let config: Config = serde_json::from_value(config).unwrap();
        let model = Model::<f32>::new(&config, &HeadConfig::RawEdges, rows(), 1).unwrap();
        let mut learner = TapeLearner::new(model);
        let outcome = learner.step(&examples, Learning::new(1e-3, 0));
        (outcome, learner.model().weights().values().to_vec())
    };
    let ((off, weights_off), (on, weights_on)) = (train(0.0), train(5.0));
    assert_eq!(off, on, "the first loss is reported without its weight");
    assert!(off.regularizer > 0.0);
    assert!(weights_off != weights_on, "but with a weight it moves the model elsewhere");
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    let refused = |model: &str, change: &[(&str, serde_json::Value)]| {
        let mut config = serde_json::to_value(Config::named(model).unwrap()).unwrap();
        change.iter().for_each(|(key, value)| config[*key] = value.clone());
        let config: Config = serde_json::from_value(config).unwrap();
        config.check().unwrap_err().to_string()
    };
    assert_eq!(
        refused("gct", &[("width", 0.into())]),
        "setting `width`: 0 is not allowed; expected a whole number from 1 to 4096"
    );
    assert_eq!(
        refused("gct", &[("regularization", (-1.0).into())]),
        "setting `regularization`: -1 is not allowed; expected a number from 0 to 1000000"
    );
    assert_eq!(
        refused("gct", &[("attention", serde_json::json!({"heads": 3}))]),
        "setting `attention.heads`: 3 is not allowed; expected a number that divides the width, 128"
    );
    assert_eq!(
        refused("mime", &[("auxiliary", (-0.5).into())]),
        "setting `auxiliary`: -0.5 is not allowed; expected a number from 0 to 1000000"
    );
    assert_eq!(
        refused("transformer", &[("dropout", serde_json::json!({"mlp": 1.0, "post_mlp": 0.0}))]),
        "setting `dropout.mlp`: 1 is not allowed; expected a number from 0 to less than 1"
    );
    assert_eq!(
        Config::named("gtc").unwrap_err().to_string(),
        "unknown model `gtc`; known: gct, transformer, gcn, gcn_p, gcn_random, shallow, deep, mime, \
         logistic, explainer"
    );
    for name in ["deep", "mime"] {
        let config = Config::named(name).unwrap();
        let error = Model::<f32>::new(&config, &HeadConfig::RawEdges, rows(), 0).err().unwrap();
        assert!(error.to_string().contains("a vector for each node"), "{error}");
    }
}

#[test]
fn what_needs_edges_is_refused_on_data_without_them() {
    let check = |name: &str, head: HeadConfig, edges_are_known: bool| {
        let model = Model::<f32>::new(&small(name, 0.0), &head, rows(), 0).unwrap();
        model.check_data(edges_are_known).map_err(|error| error.to_string())
    };
    let labels = || HeadConfig::Labels { count: 1 };
    for name in Config::NETWORKS {
        assert_eq!(check(name, labels(), true), Ok(()));
        let needs_edges = ["gcn", "mime"].contains(&name);
        assert_eq!(check(name, labels(), false).is_err(), needs_edges, "{name}");
    }
    assert_eq!(
        check("gcn", labels(), false).unwrap_err(),
        "setting `model`: gcn is not allowed; expected a model that is not given the true edges, because the data \
         have none; try gct or gcn_p"
    );
    assert!(check("gct", HeadConfig::RawEdges, false).is_err());
}

#[test]
fn both_readings_of_the_regulariser_have_the_gradient_of_finite_differences() {
    let examples = examples_with(rows_with(5), &with_context(encounters(2)), false);
    let nodes = examples.iter().map(Example::nodes).sum();
    let pass = Pass {
        dropout_key: None,
        batch_nodes: nodes,
        batch_terms: 50,
        first_node: 0,
        label_smoothing: 0.0,
        positives: &[],
        regularizes: true,
    };
    let mut values = Vec::new();
    for regularizer in ["released", "paper"] {
        let mut config = serde_json::to_value(small("gct", 0.0)).unwrap();
        (config["regularization"], config["regularizer"]) = (3.0.into(), regularizer.into());
        let config: Config = serde_json::from_value(config).unwrap();
        let mut model = Model::<f64>::new(
            &config,
            &HeadConfig::Edges { initial_bias: -2.0, kinds: true },
            rows_with(5),
            5,
        )
        .unwrap();
        let play = |model: &Model<f64>, gradients: Option<&mut [f64]>| {
            let outcome = model.play(&examples, pass, &mut Pool::default(), gradients);
            (outcome.prediction + 3.0 * outcome.regularizer, outcome.regularizer)
        };
        let mut gradients = vec![0.0; model.parameters().len()];
        values.push(play(&model, Some(&mut gradients)).1);
        let named = model.parameters().named().to_vec();
        for parameter in named.iter().filter(|parameter| parameter.name != "embedding") {
            let at = parameter.start + parameter.len() / 3;
            let mut moved = |step: f64| {
                model.weights_mut().update(|values| values[at] += step);
                let loss = play(&model, None).0;
                model.weights_mut().update(|values| values[at] -= step);
                loss
            };
            let difference = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            let gradient = gradients[at];
            let close = (difference - gradient).abs() <= 1e-5 * (1.0 + difference.abs());
            assert!(close, "{regularizer} {}: {gradient} but {difference}", parameter.name);
        }
    }
    assert!(
        values[0] > 0.0 && values[1] > 1.5 * values[0],
        "a sum over three blocks, a mean over two: {values:?}"
    );
}

/// The literal masking of the paper leaves a row of zeros, which nothing may divide by.
#[test]
fn a_row_of_zeros_in_p_does_no_harm() {
    let encounters = encounters(3);
    let mut counter =
        Counter::new(PerKind { diagnosis: 1000, treatment: 1000, lab: 1000, ..PerKind::default() });
    encounters.iter().for_each(|encounter| counter.add(encounter));
    let (prior, hidden) = (
        counter.finish(),
        Some(Hidden { kind: CodeKind::Diagnosis, position: 0, rule: HiddenRule::AllZero }),
    );
    let settings = MatrixSettings { hidden, ..MatrixSettings::default() };
    let examples: Vec<Example> =
        encounters.iter().map(|encounter| Example::new(encounter, rows(), &prior, &settings)).collect();
    for directed in [false, true] {
        let mut config = serde_json::to_value(small("gct", 0.0)).unwrap();
        config["attention"]["directed"] = directed.into();
        let config: Config = serde_json::from_value(config).unwrap();
        let model = Model::<f32>::new(&config, &HeadConfig::HiddenDiagnosis, rows(), 2).unwrap();
        let logits = model.frozen().answers(&examples, &mut Pool::default()).concat();
        // A number that is none would have become the least that a layer gives.
        assert!(logits.iter().all(|logit| logit.abs() < 1e3), "directed: {directed}");
    }
}

#[test]
fn positives_count_as_if_there_were_more_of_them() {
    let head = HeadConfig::Labels { count: 2 };
    let once = with_labels(&head, examples(&encounters(9), false));
    // Of the first label, what is true three times, and what is false once; of the second as it is.
    let mut often = once.clone();
    for example in &once {
        if example.labels[0] == Some(true) {
            often.extend([(); 2].map(|()| example.clone().with_labels(vec![Some(true), None])));
        }
    }
    for name in ["shallow", "logistic"] {
        let model = Model::<f64>::new(&small(name, 0.0), &head, rows(), 7).unwrap();
        let play = |examples: &[Example], positives: &[f64]| {
            let mut gradients = vec![0.0; model.parameters().len()];
            let pass = Pass { positives, batch_terms: 10, ..model.pass(examples, false) };
            let outcome = model.play(examples, pass, &mut Pool::default(), Some(&mut gradients));
            (outcome.prediction, gradients)
        };
        let ((loss, slopes), (expected, expected_slopes)) = (play(&once, &[3.0, 1.0]), play(&often, &[]));
        assert!((loss - expected).abs() < 1e-12, "{name}: {loss} {expected}");
        assert!((loss - play(&once, &[]).0).abs() > 0.1, "{name}: the weight counts");
        for (slope, expected) in slopes.iter().zip(&expected_slopes) {
            assert!((slope - expected).abs() < 1e-12, "{name}: {slope} {expected}");
        }
    }
}

#[test]
#[should_panic(expected = "all labels of every example")]
fn labels_of_the_wrong_number_are_not_learned_from() {
    let labels = [vec![Some(true)], vec![Some(true), None, None]];
    let examples = examples(&encounters(2), false).into_iter().zip(labels);
    let examples: Vec<Example> = examples.map(|(example, labels)| example.with_labels(labels)).collect();
    let model = Model::<f32>::new(&small("gct", 0.0), &HeadConfig::Labels { count: 2 }, rows(), 2).unwrap();
    TapeLearner::new(model).step(&examples, Learning::new(1e-3, 0));
}

#[test]
fn computing_only_what_is_needed_changes_no_logit() {
    let encounters = encounters(9);
    for name in Config::NETWORKS {
        let visits = |head: &HeadConfig| !matches!(head, HeadConfig::Edges { .. } | HeadConfig::RawEdges);
        let heads = heads(name).into_iter().filter(visits);
        for (head, context) in heads.flat_map(|head| [(head.clone(), 0), (head, 5)]) {
            let encounters = if context > 0 { with_context(encounters.clone()) } else { encounters.clone() };
            let rows = rows_with(context);
            let examples = examples_of(&head, rows, &encounters);
            let model = Model::<f64>::new(&small(name, 0.1), &head, rows, 3).unwrap().frozen();
            let all = model.look(&examples, |view| view.logits().unwrap().to_vec());
            let needed = model.answers(&examples, &mut Pool::default()).concat();
            // Of a hidden code those of its kind, which are 1000 of 3000 in the order of the kinds.
            let of_kind = |(number, row): (usize, &[f64])| row[number % 3 * 1000..][..1000].to_vec();
            let all = match head {
                HeadConfig::HiddenCode => all.chunks(3000).enumerate().flat_map(of_kind).collect(),
                HeadConfig::Edges { .. }
                | HeadConfig::RawEdges
                | HeadConfig::Labels { .. }
                | HeadConfig::HiddenDiagnosis
                | HeadConfig::NextDiagnoses => all,
            };
            assert_eq!(all.len(), needed.len());
            for (all, needed) in all.iter().zip(&needed) {
                assert!((all - needed).abs() < 1e-12, "{name} {head:?}: {all} {needed}");
            }
        }
    }
}

/// Every model, and every option that a frozen one treats in its own way.
fn with_options() -> Vec<Config> {
    let mut all: Vec<Config> = Config::NETWORKS.iter().map(|name| small(name, 0.0)).collect();
    for name in ["gct", "transformer"] {
        for attention in [
            json!({"heads": 4}),
            json!({"heads": 2, "join": "sum"}),
            json!({"normalizer": "sigmoid"}),
            json!({"directed": true}),
            json!({"heads": 2, "join": "sum", "normalizer": "sigmoid", "directed": true}),
        ] {
            let mut config = serde_json::to_value(small(name, 0.0)).unwrap();
            config["attention"] = attention;
            all.push(serde_json::from_value(config).unwrap());
        }
    }
    let mut paper = serde_json::to_value(small("gct", 0.0)).unwrap();
    paper["regularizer"] = "paper".into();
    all.push(serde_json::from_value(paper).unwrap());
    all
}

/// All that can be seen of a forward pass.
fn seen<T: Number>(view: &Activations<'_, T>) -> Vec<f64> {
    let attentions = view.attentions().into_iter().flatten().flatten().flatten();
    let logits = view.logits().unwrap_or_default();
    let all = view.nodes().iter().chain(view.visits()).chain(logits).copied();
    all.chain(attentions).map(Number::f64).collect()
}

fn a_frozen_model_is_the_same<T: Number>(tolerance: f64, context: u32) {
    let (encounters, rows) = (encounters(7), rows_with(context));
    let encounters = if context > 0 { with_context(encounters) } else { encounters };
    for config in with_options() {
        for head in heads(config.name()) {
            let examples = examples_of(&head, rows, &encounters);
            let mut learner = TapeLearner::new(Model::<T>::new(&config, &head, rows, 7).unwrap());
            // So that no bias is 0 and no gain is 1.
            for step in 0..5 {
                learner.step(&examples, Learning::new(3e-3, step));
            }
            let (model, frozen) = (learner.model(), learner.model().frozen());
            let close = |a: f64, b: f64| (a - b).abs() <= tolerance * (1.0 + a.abs());
            let pass = model.pass(&examples, false);
            let loss = model.play(&examples, pass, &mut Pool::default(), None).prediction;
            let got = frozen.evaluate(&examples, &Scratch::default()).prediction;
            assert!(close(loss, got), "{config:?} {head:?}: {loss} {got}");
            let (expected, got) = (model.look(&examples, seen), frozen.look(&examples, seen));
            assert_eq!(expected.len(), got.len());
            for (expected, got) in expected.into_iter().zip(got) {
                assert!(close(expected, got), "{config:?} {head:?}: {expected} {got}");
            }
        }
    }
}

#[test]
fn a_frozen_model_is_the_same_in_single_precision() {
    a_frozen_model_is_the_same::<f32>(1e-4, 0);
}

#[test]
fn a_frozen_model_is_the_same_in_double_precision() {
    a_frozen_model_is_the_same::<f64>(1e-9, 0);
}

#[test]
fn a_frozen_model_is_the_same_with_context() {
    a_frozen_model_is_the_same::<f64>(1e-9, 5);
}

#[test]
fn a_frozen_model_stays_as_it_is() {
    let examples = examples(&encounters(3), false);
    let model = Model::<f32>::new(&small("gct", 0.0), &HeadConfig::RawEdges, rows(), 1).unwrap();
    let mut learner = TapeLearner::new(model);
    let evaluate = |model: &Frozen<f32>| model.evaluate(&examples, &Scratch::default());
    let frozen = learner.model().frozen();
    let before = evaluate(&frozen);
    learner.step(&examples, Learning::new(1e-2, 0));
    assert_eq!(evaluate(&frozen), before);
    assert_ne!(evaluate(&learner.model().frozen()), before);
}
