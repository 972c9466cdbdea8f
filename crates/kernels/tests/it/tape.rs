//! A small model of every operation, its gradient against finite differences, and laws of the record.

use std::rc::Rc;

use gct_kernels::Number;
use gct_kernels::pairs::Pairs;
use gct_kernels::rows::{Activation, Dropout};
use gct_kernels::tape::{Columns, Leash, Linear, Norm, Pool, Tape};
use gct_kernels::weights::{Dense, Plan, Vector, Weights};

use crate::finite_differences::{check, numbers};

const WIDTH: usize = 6;
const IDS: usize = 9;

/// Two blocks: the first mixes with given weights and attends on the side, the second with its own attention.
struct Model {
    plan: Plan,
    table: Vector,
    blocks: [Block; 2],
    label: Dense,
    label_bias: Vector,
    decoder: Vector,
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
        let (label, label_bias, decoder) = (plan.dense(WIDTH, 2), plan.vector(2), plan.vector(2));
        Model { plan, table, blocks, label, label_bias, decoder }
    }
}

struct Graph {
    pairs: Pairs,
    ids: Vec<u32>,
    edges: Vec<(u32, u32)>,
    given: Vec<f64>,
}

fn graphs() -> Vec<Graph> {
    let graph = |sizes: &[usize], seed: u64, edges: Vec<(u32, u32)>| {
        let pairs = Pairs::banded(sizes, false);
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
        Graph { pairs, ids, edges, given }
    };
    vec![
        graph(&[1, 2, 3, 2], 1, vec![(0, 1), (0, 2), (1, 3), (2, 5), (3, 6)]),
        graph(&[1, 1, 0, 0], 5, vec![(0, 1)]),
        graph(&[1, 3, 2, 0], 9, vec![(0, 1), (0, 2), (0, 3), (2, 4)]),
    ]
}

/// The loss of some graphs; with gradients, they are added to.
fn play<T: Number>(
    model: &Model,
    weights: &Weights<T>,
    graphs: &[Graph],
    first_row: usize,
    pool: &mut Pool<T>,
    mut gradients: Option<&mut [T]>,
) -> f64 {
    let pairs: Vec<Pairs> = graphs.iter().map(|graph| graph.pairs.clone()).collect();
    let mut tape = Tape::new(weights, &pairs, pool);
    let ids = graphs.iter().flat_map(|graph| graph.ids.iter().copied()).collect();
    let mut x = tape.embed(model.table, WIDTH, ids);
    let given = graphs.iter().flat_map(|graph| graph.given.iter().map(|p| T::of(*p))).collect();
    let given = tape.given(Rc::new(given));
    let mut before = given;
    for (number, block) in model.blocks.iter().enumerate() {
        let qkv = tape.linear(x, Linear { weight: block.attention, bias: None, dropout: None });
        let part = |at: usize| Columns { matrix: qkv, first: at * WIDTH, width: WIDTH };
        let attention = tape.attend(part(0), part(1), 0.4, Some(Leash { before, weight: 0.3 }));
        before = attention;
        let mixed = tape.mix(if number == 0 { given } else { attention }, part(2));
        let middle = tape.add_norm(x, mixed, block.norms[0]);
        let dropout = |key, width| Some(Dropout::new(0.2, key, first_row * width));
        let hidden = tape.linear(
            middle,
            Linear {
                weight: block.hidden.0,
                bias: Some((block.hidden.1, Activation::Relu)),
                dropout: dropout(number as u32, 10),
            },
        );
        let out = tape.linear(
            hidden,
            Linear {
                weight: block.out.0,
                bias: Some((block.out.1, Activation::Identity)),
                dropout: dropout(number as u32 + 50, WIDTH),
            },
        );
        x = tape.add_norm(middle, out, block.norms[1]);
    }
    let edges: Vec<&[(u32, u32)]> = graphs.iter().map(|graph| &graph.edges[..]).collect();
    let mut loss = 0.7 * tape.edge_loss(x, Some(model.decoder), &edges, 0.7, gradients.as_deref_mut());
    loss += 0.3 * tape.divergence();
    // A label from the first node and one from the sum of all.
    let first = tape.first_rows();
    for from_sum in [false, true] {
        let visit = if from_sum { tape.sum(x) } else { tape.select(x, first.clone()) };
        let logits = tape.linear(
            visit,
            Linear {
                weight: model.label,
                bias: Some((model.label_bias, Activation::Identity)),
                dropout: None,
            },
        );
        let parts: Vec<(f64, T)> = (tape.data(logits).iter().enumerate())
            .map(|(i, logit)| gct_kernels::loss::binary(*logit, i % 2 == 0))
            .collect();
        loss += parts.iter().map(|(loss, _)| loss).sum::<f64>();
        if gradients.is_some() {
            let mut d = tape.room(parts.len());
            parts.iter().zip(&mut d).for_each(|((_, slope), d)| *d = *slope);
            tape.seed(logits, d);
        }
    }
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
    let loss = |values: &[f64]| {
        let weights = Weights::new(model.plan.clone(), values.to_vec());
        play(&model, &weights, &graphs, 0, &mut Pool::default(), None)
    };
    let mut gradients = vec![0.0; values.len()];
    let weights = Weights::new(model.plan.clone(), values.clone());
    let got = play(&model, &weights, &graphs, 0, &mut Pool::default(), Some(&mut gradients));
    assert_eq!(got, loss(&values), "the gradient changes nothing in the loss");
    check("parameters", &values, &gradients, loss);
}

#[test]
fn graphs_do_not_see_each_other_and_memory_is_used_again() {
    let (model, graphs) = (Model::new(), graphs());
    let weights = Weights::new(model.plan.clone(), numbers(model.plan.len(), 3));
    let mut pool = Pool::default();
    let (mut together, mut apart) = (vec![0.0; model.plan.len()], vec![0.0; model.plan.len()]);
    let loss = play(&model, &weights, &graphs, 0, &mut pool, Some(&mut together));
    let (mut sum, mut row) = (0.0, 0);
    for graph in &graphs {
        sum += play(&model, &weights, std::slice::from_ref(graph), row, &mut pool, Some(&mut apart));
        row += graph.pairs.nodes();
    }
    assert!((loss - sum).abs() < 1e-9, "{loss} {sum}");
    for (together, apart) in together.iter().zip(&apart) {
        assert!((together - apart).abs() < 1e-9 * (1.0 + apart.abs()), "{together} {apart}");
    }
    // What the pool holds by now must not matter.
    assert_eq!(play(&model, &weights, &graphs, 0, &mut pool, None), loss);
}

#[test]
fn memory_does_not_grow() {
    let (model, graphs) = (Model::new(), graphs());
    let weights = Weights::new(model.plan.clone(), numbers(model.plan.len(), 3));
    let (mut pool, mut gradients) = (Pool::default(), vec![0.0; model.plan.len()]);
    let mut play_once = || {
        play(&model, &weights, &graphs, 0, &mut pool, Some(&mut gradients));
        play(&model, &weights, &graphs, 0, &mut pool, None);
        pool.buffers()
    };
    let first = play_once();
    assert!(first > 0);
    for _ in 0..20 {
        assert_eq!(play_once(), first);
    }
}
