//! A small model of every operation, its gradient against finite differences, and laws of the record.

use gct_kernels::Number;
use gct_kernels::engine::{
    Attend, Columns, Connected, DecoderParameters, DivergenceTerm, Engine, Linear, Norm, Reach, Recurrent,
};
use gct_kernels::pairs::{Normalizer, Pairs};
use gct_kernels::rows::{Activation, Dropout};
use gct_kernels::tape::{Matrix, Pool, Tape};
use gct_kernels::weights::{Dense, Plan, Vector, Weights};

use crate::finite_differences::{check, numbers};

const WIDTH: usize = 6;
const IDS: usize = 9;

/// Steps of a window.
const SIZE: usize = 3;

/// Two blocks: the first mixes with given weights and attends on the side, the second with its own attention.
/// What they make of graphs may go through sequences.
struct Model {
    plan: Plan,
    table: Vector,
    blocks: [Block; 2],
    label: Dense,
    label_bias: Vector,
    decoder: DecoderParameters,
    gates: (Dense, Vector),
    recurrent: Recurrent,
    window: (Dense, Vector),
}

struct Block {
    attention: Dense,
    norms: [Norm; 2],
    hidden: (Dense, Vector),
    out: (Dense, Vector),
}

impl Model {
    fn new() -> Self {
        let mut plan = Plan::default();
        let table = plan.vector(IDS * WIDTH);
        let block = |plan: &mut Plan| {
            let attention = plan.dense(WIDTH, 3 * WIDTH);
            let mut norm = || Norm { gain: plan.vector(WIDTH), bias: plan.vector(WIDTH), epsilon: 1e-5 };
            let norms = [norm(), norm()];
            Block {
                attention,
                norms,
                hidden: (plan.dense(WIDTH, 10), plan.vector(10)),
                out: (plan.dense(10, WIDTH), plan.vector(WIDTH)),
            }
        };
        let blocks = [block(&mut plan), block(&mut plan)];
        let (label, label_bias) = (plan.dense(WIDTH, 2), plan.vector(2));
        let decoder = DecoderParameters { scale: plan.vector(1), bias: plan.vector(10) };
        let gates = (plan.dense(WIDTH, 3 * WIDTH), plan.vector(3 * WIDTH));
        let recurrent = Recurrent { weight: plan.dense(WIDTH, 3 * WIDTH), bias: plan.vector(3 * WIDTH) };
        let window = (plan.dense(SIZE * WIDTH, WIDTH), plan.vector(WIDTH));
        Model { plan, table, blocks, label, label_bias, decoder, gates, recurrent, window }
    }
}

struct Graph {
    sizes: Vec<usize>,
    pairs: Pairs,
    ids: Vec<u32>,
    edges: Vec<(u32, u32)>,
    given: Vec<f32>,
}

fn graphs() -> Vec<Graph> {
    let graph = |sizes: &[usize], pairs: Pairs, seed: u64, edges: Vec<(u32, u32)>| {
        let n = pairs.nodes();
        let mut matrix: Vec<f64> = numbers(n * n, seed).iter().map(|x| x.abs() + 0.1).collect();
        let mut given = vec![0.0; pairs.len()];
        pairs.compact(&matrix, &mut given);
        pairs.expand(&given, &mut matrix);
        for row in matrix.chunks_mut(n) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|cell| *cell /= sum);
        }
        pairs.compact(&matrix, &mut given);
        let ids = numbers(n, seed + 1).iter().map(|x| ((x + 1.0) * 4.4) as u32).collect();
        Graph {
            sizes: sizes.to_vec(),
            pairs,
            ids,
            edges,
            given: given.into_iter().map(|p| p as f32).collect(),
        }
    };
    vec![
        graph(&[1, 2, 3, 2], crate::chain(&[1, 2, 3, 2]), 1, vec![(0, 1), (0, 2), (1, 3), (2, 5), (3, 6)]),
        graph(&[1, 1, 0, 0], crate::chain(&[1, 1, 0, 0]), 5, vec![(0, 1)]),
        graph(&[1, 3, 2, 0], crate::chain(&[1, 3, 2, 0]), 9, vec![(0, 1), (0, 2), (0, 3), (2, 4)]),
        graph(&[1, 2, 2, 3], crate::fork(&[1, 2, 2, 3]), 13, vec![(0, 1), (0, 2), (0, 3), (0, 4), (3, 6)]),
    ]
}

/// Which of its roads a model takes.
#[derive(Debug, Clone, Copy)]
struct Roads {
    normalizer: Normalizer,
    /// Whether attention is held near the one before it.
    divergence: bool,
    /// Which rows the second block gives.
    reach: Reach,
}

const ROADS: [Roads; 4] = [
    Roads { normalizer: Normalizer::Softmax, divergence: true, reach: Reach::ALL },
    Roads { normalizer: Normalizer::Sigmoid, divergence: true, reach: Reach::ALL },
    Roads { normalizer: Normalizer::Softmax, divergence: true, reach: Reach::FIRST },
    Roads { normalizer: Normalizer::Softmax, divergence: false, reach: Reach::FIRST },
];

/// Which graph each step of some sequences is; some are several steps.
fn sequences() -> Vec<Vec<usize>> {
    vec![vec![1, 0, 2], vec![3], vec![2, 2, 0, 3, 1], vec![0, 3]]
}

/// What each operation on sequences makes of the rows of graphs: one row per sequence.
fn over_time<T: Number>(
    model: &Model,
    tape: &mut Tape<'_, T>,
    graphs: &Matrix,
    steps: &[usize],
) -> Vec<Matrix> {
    let layer = |(weight, bias): (Dense, Vector), activation| Linear {
        weight,
        bias: Some((bias, activation)),
        dropout: None,
    };
    let x = tape.steps(graphs, steps);
    let gates = tape.linear(&x, layer(model.gates, Activation::Identity));
    let state = tape.gru(&gates, model.recurrent);

    let projected = tape.linear(&x, Linear::plain(model.gates.0));
    let part = |part: usize| Columns { matrix: &projected, first: part * WIDTH, width: WIDTH };
    let (all, normalizer, reach) =
        (Columns { matrix: &x, first: 0, width: WIDTH }, Normalizer::Softmax, Reach::ALL);
    let how = || Attend { scale: 0.4, bias: None, normalizer, divergence: None, reach };
    let (one, other) = (tape.attend(part(0), part(1), how()), tape.attend(part(2), all, how()));
    let older = tape.mix(&one, all, Reach::ALL);
    let newest = tape.mix(&other, Columns { matrix: &older, ..all }, Reach::FIRST);

    let windows = tape.windows(&older, SIZE);
    let convolved = tape.linear(&windows, layer(model.window, Activation::Relu));
    let (largest, sum) = (tape.largest(&convolved), tape.sum(&convolved));
    vec![state, newest, tape.within(&x, Reach::FIRST), largest, sum]
}

/// The loss of some graphs; with gradients, they are added to.
fn play<T: Number>(
    model: &Model,
    roads: Roads,
    weights: &Weights<T>,
    graphs: &[Graph],
    sequences: &[Vec<usize>],
    first_row: usize,
    pool: &mut Pool<T>,
    gradients: Option<&mut [T]>,
) -> f64 {
    let pairs: Vec<Pairs> = graphs.iter().map(|graph| graph.pairs.clone()).collect();
    let of_steps: Vec<Pairs> = sequences.iter().map(|steps| Pairs::full(steps.len()).directed()).collect();
    let mut tape = Tape::new(weights, &pairs, pool, gradients.is_some()).with_sequences(&of_steps);
    let ids: Vec<u32> = graphs.iter().flat_map(|graph| graph.ids.iter().copied()).collect();
    let mut x = tape.embed(model.table, WIDTH, &ids);
    let given: Vec<f32> = graphs.iter().flat_map(|graph| graph.given.iter().copied()).collect();
    let given = tape.given(&given);
    let mut before = given.clone();
    let mut loss = 0.0;
    for (number, block) in model.blocks.iter().enumerate() {
        // With a divergence, all attend; else only those whose result is asked for.
        let (reach, attending) = match (number, roads.divergence) {
            (0, true) => (Reach::ALL, Reach::ALL),
            (0, false) => (roads.reach.further(1), roads.reach.further(1)),
            (_, true) => (roads.reach, Reach::ALL),
            (_, false) => (roads.reach, roads.reach),
        };
        x = tape.within(&x, attending.further(1));
        let qkv = tape.linear(&x, Linear::plain(block.attention));
        let part = |at: usize| Columns { matrix: &qkv, first: at * WIDTH, width: WIDTH };
        let dropout = |key, width| Some(Dropout::new(0.2, key, first_row * width));
        let layer = |(weight, bias): (Dense, Vector), activation, dropout| Linear {
            weight,
            bias: Some((bias, activation)),
            dropout,
        };
        let how = Attend {
            scale: 0.4,
            bias: (number > 0).then_some(&given),
            normalizer: roads.normalizer,
            divergence: roads.divergence.then_some(DivergenceTerm { before: &before, weight: 0.3 }),
            reach: attending,
        };
        let attention = tape.attend(part(0), part(1), how);
        let mixed = tape.mix(if number == 0 { &given } else { &attention }, part(2), reach);
        before = attention;
        x = tape.within(&x, reach);
        let middle = tape.add_norm(&x, &mixed, block.norms[0]);
        let hidden = tape.linear(&middle, layer(block.hidden, Activation::Relu, dropout(number as u32, 10)));
        let out =
            tape.linear(&hidden, layer(block.out, Activation::Identity, dropout(number as u32 + 50, WIDTH)));
        x = tape.add_norm(&middle, &out, block.norms[1]);
    }
    if roads.reach == Reach::ALL {
        let connected: Vec<Connected<'_>> =
            graphs.iter().map(|graph| Connected { sizes: &graph.sizes, edges: &graph.edges }).collect();
        loss += 0.7 * tape.edge_loss(&x, Some(model.decoder), &connected, 0.7);
    }
    // Labels from the first node, from the sum of all, and from what single operations make of them.
    let nodes: Vec<(usize, usize)> = (0..graphs.len()).map(|graph| (graph, 0)).collect();
    let (first, chosen, sum) = (tape.within(&x, Reach::FIRST), tape.select(&x, &nodes), tape.sum(&x));
    let (product, total) = (tape.multiply(&first, &sum), tape.add(&chosen, &sum));
    let positive = tape.relu(&total);
    let half = |tape: &mut Tape<'_, T>, of| {
        let all = tape.side_by_side(&[of, positive.clone()]);
        let narrow = Linear::plain(model.blocks[0].hidden.0);
        let (left, right) = (tape.linear(&first, narrow), tape.linear(&positive, narrow));
        let wide = tape.side_by_side(&[left, right, all]);
        let classes = graphs.iter().map(|graph| graph.pairs.nodes());
        0.2 * tape.class_loss(&wide, classes, 0.1, 0.2)
    };
    loss += half(&mut tape, product.clone());
    let mut visits = vec![first.clone(), sum, product];
    if roads.reach == Reach::ALL {
        // A whole matrix may be mixed and used elsewhere too.
        visits.push(tape.mix(&given, Columns { matrix: &x, first: 0, width: WIDTH }, Reach::FIRST));
    }
    for visit in visits {
        let bias = Some((model.label_bias, Activation::Identity));
        let logits = tape.linear(&visit, Linear { weight: model.label, bias, dropout: None });
        let labels = graphs.iter().flat_map(|graph| [Some(true), (graph.ids[0] > 3).then_some(false)]);
        loss += tape.label_loss(&logits, labels, 0.3, &[2.5, 0.5], 1.0);
    }
    for rows in over_time(model, &mut tape, &total, &sequences.concat()) {
        let classes = sequences.iter().map(|steps| steps.len() - 1);
        loss += 0.2 * tape.class_loss(&rows, classes, 0.1, 0.2);
    }
    loss += 0.3 * tape.divergence();
    match gradients {
        Some(gradients) => tape.back(gradients),
        None => tape.finish(),
    }
    loss
}

#[test]
fn the_gradient_of_every_parameter_is_that_of_finite_differences() {
    let (model, graphs) = (Model::new(), graphs());
    let values: Vec<f64> = numbers(model.plan.len(), 3).iter().map(|x| x * 0.7).collect();
    for roads in ROADS {
        let loss = |values: &[f64]| {
            let weights = Weights::new(model.plan.clone(), values.to_vec());
            play(&model, roads, &weights, &graphs, &sequences(), 0, &mut Pool::default(), None)
        };
        let mut gradients = vec![0.0; values.len()];
        let weights = Weights::new(model.plan.clone(), values.clone());
        let got = play(
            &model,
            roads,
            &weights,
            &graphs,
            &sequences(),
            0,
            &mut Pool::default(),
            Some(&mut gradients),
        );
        let alone = loss(&values);
        assert!(
            (got - alone).abs() < 1e-12 * got,
            "the gradient changes only how the loss is rounded: {got} {alone}"
        );
        check(&format!("{roads:?}"), &values, &gradients, loss);
    }
}

#[test]
fn graphs_do_not_see_each_other_and_memory_is_used_again() {
    let (model, graphs) = (Model::new(), graphs());
    let weights = Weights::new(model.plan.clone(), numbers(model.plan.len(), 3));
    let mut pool = Pool::default();
    let (mut together, mut apart) = (vec![0.0; model.plan.len()], vec![0.0; model.plan.len()]);
    // A graph is all steps of its sequence.
    let sequences: Vec<Vec<usize>> = (0..graphs.len()).map(|graph| vec![graph; graph + 1]).collect();
    let loss = play(&model, ROADS[0], &weights, &graphs, &sequences, 0, &mut pool, Some(&mut together));
    let (mut sum, mut row) = (0.0, 0);
    for (graph, steps) in graphs.iter().zip(&sequences) {
        let (graph, steps) = (std::slice::from_ref(graph), [vec![0; steps.len()]]);
        sum += play(&model, ROADS[0], &weights, graph, &steps, row, &mut pool, Some(&mut apart));
        row += graph[0].pairs.nodes();
    }
    assert!((loss - sum).abs() < 1e-9, "{loss} {sum}");
    for (together, apart) in together.iter().zip(&apart) {
        assert!((together - apart).abs() < 1e-9 * (1.0 + apart.abs()), "{together} {apart}");
    }
    // What the pool holds by now must not matter.
    let _same_level = crate::LEVEL.lock();
    let alone = [&mut pool, &mut Pool::default()]
        .map(|pool| play(&model, ROADS[0], &weights, &graphs, &sequences, 0, pool, None));
    assert_eq!(alone[0], alone[1]);
}

#[test]
fn memory_does_not_grow() {
    let (model, graphs) = (Model::new(), graphs());
    let weights = Weights::new(model.plan.clone(), numbers(model.plan.len(), 3));
    let (mut pool, mut gradients) = (Pool::default(), vec![0.0; model.plan.len()]);
    let mut play_once = || {
        play(&model, ROADS[0], &weights, &graphs, &sequences(), 0, &mut pool, Some(&mut gradients));
        play(&model, ROADS[0], &weights, &graphs, &sequences(), 0, &mut pool, None);
        pool.buffers()
    };
    let first = play_once();
    assert!(first > 0);
    for _ in 0..20 {
        assert_eq!(play_once(), first);
    }
}
