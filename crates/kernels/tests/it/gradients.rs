//! Every backward function against finite differences of its forward function, in f64; and every level of
//! instructions against f64, in f32.

use std::ops::Range;

use gct_kernels::engine::Connected;
use gct_kernels::gemm::{self, Right};
use gct_kernels::loss::{self, Decoder};
use gct_kernels::pairs::{self, Chain, Normalizer, Pairs, Rows};
use gct_kernels::recurrent::{self, Passed, Schedule};
use gct_kernels::rows::{self, Activation, Dropout};
use gct_kernels::{Level, Number, level};

use crate::finite_differences::{check, numbers};

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn normalisation() {
    let (rows, width) = (7, 21);
    let [a, b, upstream] = [1, 2, 3].map(|seed| numbers(rows * width, seed));
    let [gain, bias] = [4, 5].map(|seed| numbers(width, seed));
    let forward = |a: &[f64], gain: &[f64], bias: &[f64]| {
        let mut kept = (vec![0.0; rows * width], vec![0.0; rows], vec![0.0; rows * width]);
        let keep = Some((&mut kept.0[..], &mut kept.1[..]));
        rows::add_norm(width, 1e-5, a, &b, gain, bias, &mut kept.2, keep);
        kept
    };
    let (normal, inverse_sd, out) = forward(&a, &gain, &bias);
    let mut alone = vec![0.0; rows * width];
    rows::add_norm(width, 1e-5, &a, &b, &gain, &bias, &mut alone, None);
    assert_eq!(out, alone, "nothing kept is nothing changed");
    let (mut d_in, mut d_gain, mut d_bias) = (vec![0.0; rows * width], vec![0.0; width], vec![0.0; width]);
    rows::add_norm_back(width, &upstream, &normal, &inverse_sd, &gain, &mut d_in, &mut d_gain, &mut d_bias);
    check("a", &a, &d_in, |a| dot(&forward(a, &gain, &bias).2, &upstream));
    check("gain", &gain, &d_gain, |gain| dot(&forward(&a, gain, &bias).2, &upstream));
    check("bias", &bias, &d_bias, |bias| dot(&forward(&a, &gain, bias).2, &upstream));
}

#[test]
fn bias_activation_and_dropout() {
    let (rows, width) = (4, 19);
    let [x, upstream] = [1, 2].map(|seed| numbers(rows * width, seed));
    let bias = numbers(width, 3);
    for activation in [Activation::Identity, Activation::Relu] {
        for dropout in [None, Some(Dropout::new(0.4, 77, 1000))] {
            let forward = |x: &[f64], bias: &[f64]| {
                let mut out = x.to_vec();
                rows::bias_activation(width, activation, dropout, bias, &mut out);
                out
            };
            let out = forward(&x, &bias);
            let (mut d, mut d_bias) = (upstream.clone(), vec![0.0; width]);
            rows::bias_activation_back(width, activation, dropout, &out, &mut d, &mut d_bias);
            let what = format!("{activation:?} {}", dropout.is_some());
            check(&what, &x, &d, |x| dot(&forward(x, &bias), &upstream));
            check(&what, &bias, &d_bias, |bias| dot(&forward(&x, bias), &upstream));
        }
    }
}

#[test]
fn dropout_drops_its_share_and_keeps_the_mean() {
    let mut x = vec![1.0f32; 100_000];
    rows::bias_activation(100, Activation::Identity, Some(Dropout::new(0.3, 5, 0)), &[0.0; 100], &mut x);
    let dropped = x.iter().filter(|x| **x == 0.0).count();
    // Five standard deviations of a binomial.
    assert!(dropped.abs_diff(30_000) < 730, "{dropped}");
    let kept = 1.0 / 0.7;
    assert!(x.iter().all(|x| *x == 0.0 || (x - kept).abs() < 1e-6));
    // Another key, another choice; another first index, the same choice shifted.
    let choice = |key, first| {
        let mut x = vec![1.0f32; 300];
        rows::bias_activation(
            100,
            Activation::Identity,
            Some(Dropout::new(0.3, key, first)),
            &[0.0; 100],
            &mut x,
        );
        x
    };
    assert_ne!(choice(5, 0), choice(6, 0));
    assert_eq!(choice(5, 0)[100..], choice(5, 100)[..200]);
}

/// Layouts of every kind, with empty groups among them.
fn layouts() -> Vec<Pairs> {
    vec![
        Pairs::full(1),
        Pairs::full(7),
        Pairs::full(20).directed(),
        crate::chain(&[1, 3, 5, 4]),
        crate::chain(&[1, 2, 3, 0]),
        crate::chain(&[1, 0, 3, 2]),
        crate::chain(&[1, 17, 20, 33]),
        crate::chain(&[1, 3, 5, 4]).directed(),
        crate::fork(&[1, 4, 3, 5, 2]),
        crate::fork(&[1, 9, 0, 3, 2]),
        crate::fork(&[1, 2, 17, 3]).directed(),
    ]
}

#[test]
fn allowed_pairs_are_neighbouring_groups_and_self() {
    let dense = |pairs: &Pairs| {
        let mut matrix = vec!['.'; pairs.nodes() * pairs.nodes()];
        for (i, j, cell) in pairs.cells() {
            assert!(cell < pairs.len());
            matrix[i * pairs.nodes() + j] = '#';
        }
        matrix.chunks(pairs.nodes()).map(|row| row.iter().collect()).collect::<Vec<String>>()
    };
    assert_eq!(dense(&crate::chain(&[1, 2, 1])), ["###.", "##.#", "#.##", ".###"]);
    assert_eq!(dense(&crate::chain(&[1, 2, 1]).directed()), ["###.", ".#.#", "..##", "...#"]);
    assert_eq!(dense(&crate::fork(&[1, 2, 1, 1])), ["####.", "##...", "#.#..", "#..##", "...##"]);
    assert_eq!(
        crate::fork(&[1, 0, 2, 1]).cells().collect::<Vec<_>>(),
        crate::chain(&[1, 2, 1]).cells().collect::<Vec<_>>()
    );
    assert_eq!(dense(&Pairs::full(3)), ["###", "###", "###"]);
    assert_eq!(dense(&Pairs::full(3).directed()), ["###", ".##", "..#"]);
}

#[test]
fn first_nodes_are_the_nearest_and_keep_their_cells() {
    let banded = crate::chain(&[1, 2, 3, 4]);
    assert_eq!([0, 1, 2, 3, usize::MAX].map(|steps| banded.count_within(steps)), [1, 3, 6, 10, 10]);
    let fork = crate::fork(&[1, 2, 3, 4, 5]);
    assert_eq!([0, 1, 2, 3, usize::MAX].map(|steps| fork.count_within(steps)), [1, 6, 10, 15, 15]);
    let full = Pairs::full(7);
    assert_eq!([0, 1, usize::MAX].map(|steps| full.count_within(steps)), [1, 7, 7]);
    // Nothing leads from the visit to treatments without a diagnosis.
    let broken = crate::chain(&[1, 0, 3, 2]);
    assert_eq!([0, 1, 2, 3, usize::MAX].map(|steps| broken.count_within(steps)), [1, 1, 1, 1, 6]);
    for layout in layouts() {
        for rows in 0..=layout.nodes() {
            let first = layout.of_first(rows);
            let expected: Vec<_> = layout.cells().filter(|(i, _, _)| *i < rows).collect();
            assert_eq!(first.cells().collect::<Vec<_>>(), expected);
            assert_eq!(first.rows(), rows);
            assert!(
                expected
                    .iter()
                    .all(|(i, j, cell)| { *cell < first.len() && first.columns_end() > *i.max(j) })
            );
        }
    }
}

#[test]
fn directed_pairs_are_those_that_look_ahead() {
    for layout in [Pairs::full(7), crate::chain(&[1, 3, 5, 4]), crate::chain(&[1, 0, 3, 2])] {
        let pairs = |layout: &Pairs| layout.cells().map(|(i, j, _)| (i, j)).collect::<Vec<_>>();
        let expected: Vec<_> = pairs(&layout).into_iter().filter(|(i, j)| j >= i).collect();
        assert_eq!(pairs(&layout.directed()), expected);
    }
}

#[test]
fn mixing_is_a_product_with_the_whole_matrix() {
    let width = 5;
    for layout in layouts() {
        let n = layout.nodes();
        let (weights, x) = (numbers(n * n, 1), numbers(n * width, 2));
        let mut a = vec![0.0; layout.len()];
        layout.compact(&weights, &mut a);
        let mut matrix = vec![0.0; n * n];
        layout.expand(&a, &mut matrix);
        let rows = Rows { data: &x, stride: width };

        let product = |transposed: bool| -> Vec<f64> {
            let cell = |i: usize, j: usize| if transposed { matrix[j * n + i] } else { matrix[i * n + j] };
            (0..n * width)
                .map(|at| (0..n).map(|j| cell(at / width, j) * x[j * width + at % width]).sum())
                .collect()
        };
        let (mut mixed, mut turned) = (vec![9.0; n * width], vec![9.0; n * width]);
        pairs::mix(&layout, width, &a, rows, &mut mixed, width);
        pairs::mix_transposed(&layout, width, &a, rows, &mut turned, width);
        for (got, expected) in mixed.iter().zip(product(false)).chain(turned.iter().zip(product(true))) {
            assert!((got - expected).abs() < 1e-12, "{layout:?}");
        }

        let mut s = vec![9.0; layout.len()];
        pairs::dots(&layout, width, rows, rows, &mut s, &mut vec![0.0; layout.scratch(width)]);
        for (i, j, cell) in layout.cells() {
            let expected = dot(&x[i * width..][..width], &x[j * width..][..width]);
            assert!((s[cell] - expected).abs() < 1e-12, "{layout:?}");
        }
    }
}

/// Attention of one block inside a chain: before -> this -> after, all made from scores.
#[test]
fn normalisers_and_divergence() {
    let (scale, weight) = (0.7, 0.3);
    let both = |layout: Pairs| [Normalizer::Softmax, Normalizer::Sigmoid].map(|how| (layout.clone(), how));
    for (layout, normalizer) in layouts().into_iter().flat_map(both) {
        let only = |matrix: Vec<f64>| {
            let mut compact = vec![0.0; layout.len()];
            layout.compact(&matrix, &mut compact);
            compact
        };
        let n = layout.nodes();
        let attention = |s: &[f64]| {
            let (mut log_p, mut p) = (s.to_vec(), vec![0.0; layout.len()]);
            pairs::normalize(&layout, normalizer, scale, true, &mut log_p, &mut p);
            (p, log_p)
        };
        let [s, before, after, upstream] = [1, 2, 3, 4].map(|seed| only(numbers(n * n, seed)));
        let ((before, _), (_, log_after)) = (attention(&before), attention(&after));
        let loss = |s: &[f64]| {
            let (p, log_p) = attention(s);
            let near = pairs::divergence(&layout, &before, None, &log_p);
            let far = pairs::divergence(&layout, &p, Some(&log_p), &log_after);
            dot(&p, &upstream) + weight * (near + far)
        };
        let (p, log_p) = attention(&s);
        let mut matrix = vec![0.0; n * n];
        layout.expand(&p, &mut matrix);
        let sums_to_1 = |row: &[f64]| (row.iter().sum::<f64>() - 1.0).abs() < 1e-12;
        assert!(normalizer == Normalizer::Sigmoid || matrix.chunks(n).all(sums_to_1), "rows sum to 1");
        for (_, _, cell) in layout.cells() {
            assert!((log_p[cell] - p[cell].ln()).abs() < 1e-9, "logarithms are those of the weights");
        }

        let mut d = upstream.clone();
        let chain = Chain { before: Some((&before, weight)), log_after: Some((&log_after, weight)) };
        pairs::normalize_back(&layout, normalizer, scale, &p, Some(&log_p), chain, &mut d);
        let cells: Vec<usize> = layout.cells().map(|(_, _, cell)| cell).collect();
        let chosen = |all: &[f64]| cells.iter().map(|cell| all[*cell]).collect::<Vec<f64>>();
        check("scores", &chosen(&s), &chosen(&d), |moved| {
            let mut s = s.clone();
            cells.iter().zip(moved).for_each(|(cell, value)| s[*cell] = *value);
            loss(&s)
        });
    }
}

#[test]
fn edge_reconstruction() {
    let graphs = [
        Connected { sizes: &[1, 1], edges: &[(0, 1)] },
        Connected { sizes: &[1, 3, 2], edges: &[(0, 1), (0, 2), (2, 4)] },
        Connected { sizes: &[1, 0, 18], edges: &[(3, 18), (0, 7)] },
        Connected { sizes: &[2, 17, 9], edges: &[(3, 18), (27, 0), (5, 20)] },
    ];
    // A bias for each pair of groups, or one for all pairs.
    for (Connected { sizes, edges }, count) in graphs.into_iter().flat_map(|graph| [(graph, 6), (graph, 1)]) {
        let (width, nodes) = (4, sizes.iter().sum::<usize>());
        let (z, weight) = (numbers(nodes * width, 8), 0.25);
        let (scale, biases) = (0.8, numbers(count, 10));
        let run = |z: &[f64], scale: f64, biases: &[f64], gradient: bool| {
            let stride = nodes.next_multiple_of(16);
            let (mut logits, mut turned) = (vec![0.0; nodes * stride], vec![0.0; width * (stride + 1)]);
            let mut d_z = vec![0.0; nodes * width];
            let mut decoder = Decoder::new(scale, biases);
            let loss = loss::edges(
                sizes,
                width,
                &mut decoder,
                z,
                edges,
                weight,
                &mut logits,
                &mut turned,
                gradient.then_some(&mut d_z[..]),
            );
            (loss, decoder, d_z)
        };
        let (got, decoder, d_z) = run(&z, scale, &biases, true);
        let group = |node: usize| (0..).find(|group| node < sizes[..=*group].iter().sum()).unwrap();
        // Groups 0, 1, 2: the pairs (0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2).
        let indices = [[0, 1, 3], [1, 2, 4], [3, 4, 5]];
        let mut naive = 0.0;
        for i in 0..nodes {
            for j in (0..nodes).filter(|j| *j != i) {
                let index = if count == 1 { 0 } else { indices[group(i)][group(j)] };
                let product = dot(&z[i * width..][..width], &z[j * width..][..width]);
                let logit = scale * product + biases[index];
                let is_edge = edges.contains(&(i as u32, j as u32)) || edges.contains(&(j as u32, i as u32));
                naive += if is_edge { (-logit).exp().ln_1p() } else { logit.exp().ln_1p() };
            }
        }
        assert!((got - naive).abs() < 1e-9, "{got} {naive}");
        let (alone, ..) = run(&z, scale, &biases, false);
        assert!((alone - naive).abs() < 1e-9, "each pair once: {alone} {naive}");
        check("z", &z, &d_z, |z| weight * run(z, scale, &biases, false).0);
        check("scale", &[scale], &[decoder.d_scale], |x| weight * run(&z, x[0], &biases, false).0);
        check("biases", &biases, &decoder.d_biases, |x| weight * run(&z, scale, x, false).0);
    }
}

#[test]
fn labels_and_classes() {
    for logit in [-40.0, -1.5, 0.0, 0.3, 40.0] {
        for label in [false, true] {
            for smoothing in [0.0, 0.2] {
                let slope = loss::binary(logit, label, smoothing).1;
                check("binary", &[logit], &[slope], |x| loss::binary(x[0], label, smoothing).0);
            }
        }
    }
    let logits = numbers(37, 3);
    for smoothing in [0.0, 0.2] {
        let mut gradient = logits.clone();
        loss::classes(&mut gradient, 5, smoothing, 0.6);
        check("classes", &logits, &gradient, |x| 0.6 * loss::classes(&mut x.to_vec(), 5, smoothing, 1.0));
    }
}

#[test]
fn a_smoothed_loss_is_the_mean_over_smoothed_targets() {
    // Minus the logarithm of each answer's probability, each as often as it is the target.
    let naive = |logits: &[f64], targets: &[f64]| -> f64 {
        let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
        logits.iter().zip(targets).map(|(logit, target)| -target * (logit.exp() / total).ln()).sum()
    };
    let close = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    // Of two answers, 0.2 is spread: 0.9 and 0.1.
    close(loss::binary(0.7, true, 0.2).0, naive(&[0.7, 0.0], &[0.9, 0.1]));
    close(loss::binary(0.7, false, 0.2).0, naive(&[0.7, 0.0], &[0.1, 0.9]));
    let logits = [0.5, -1.0, 2.0, 0.0];
    close(loss::classes(&mut logits.to_vec(), 2, 0.2, 1.0), naive(&logits, &[0.05, 0.05, 0.85, 0.05]));
    close(loss::classes(&mut logits.to_vec(), 2, 0.0, 1.0), naive(&logits, &[0.0, 0.0, 1.0, 0.0]));
}

/// The rows of sequences of these lengths.
fn sequences(lengths: &[usize]) -> Vec<Range<usize>> {
    let mut end = 0;
    let rows = |length: &usize| {
        end += length;
        end - length..end
    };
    lengths.iter().map(rows).collect()
}

/// A gated recurrent unit over sequences of these lengths, with what it leaves for its gradient.
struct Unit<T> {
    schedule: Schedule,
    width: usize,
    states: Vec<T>,
    gates: Vec<T>,
    out: Vec<T>,
}

impl<T: Number> Unit<T> {
    fn play(lengths: &[usize], width: usize, x: &[T], weight: &[T], bias: &[T]) -> Self {
        let schedule = Schedule::new(&sequences(lengths));
        let zeros = |rows: usize, parts: usize| vec![T::ZERO; rows * parts * width];
        let (mut states, mut gates) = (zeros(schedule.steps(), 1), zeros(schedule.steps(), 4));
        let (mut state, mut out) = (zeros(lengths.len(), 1), zeros(lengths.len(), 1));
        let mut packed = vec![T::ZERO; gemm::packed_len(width, 3 * width)];
        gemm::pack(weight, width, 3 * width, &mut packed);
        let (passed, weight) = (Passed { states: &mut states[..], gates: &mut gates[..] }, &packed);
        let layer = (Right::packed(weight, width), bias);
        recurrent::gru(&schedule, width, x, layer, passed, &mut state, &mut out);
        Unit { schedule, width, states, gates, out }
    }

    /// The gradients of x, weight and bias.
    fn back(&self, weight: &[T], upstream: &[T]) -> [Vec<T>; 3] {
        let &Unit { ref schedule, width, .. } = self;
        let mut packed = vec![T::ZERO; gemm::packed_len(3 * width, width)];
        gemm::pack_transposed(weight, width, 3 * width, &mut packed);
        let [mut d_hidden, mut d_x] = [(); 2].map(|()| vec![T::ZERO; 3 * width * schedule.steps()]);
        let (mut d_state, mut d_weight) = (vec![T::ZERO; upstream.len()], vec![T::ZERO; weight.len()]);
        let (passed, packed) =
            (Passed { states: &self.states[..], gates: &self.gates[..] }, Right::packed(&packed, 3 * width));
        recurrent::gru_back(schedule, width, packed, passed, upstream, &mut d_state, &mut d_hidden, &mut d_x);
        recurrent::gru_back_weight(schedule, width, &self.states, &d_hidden, &mut d_weight);
        let mut d_bias = vec![T::ZERO; 3 * width];
        d_hidden.chunks(3 * width).for_each(|d| rows::add(d, &mut d_bias));
        [d_x, d_weight, d_bias]
    }
}

/// The equations of `nn.GRU`, one sequence and one number at a time.
fn naive_unit(width: usize, x: &[f64], weight: &[f64], bias: &[f64]) -> Vec<f64> {
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    x.rchunks(3 * width).fold(vec![0.0; width], |state, x| {
        let hidden = |column: usize| -> f64 {
            let products = state.iter().enumerate().map(|(i, h)| h * weight[i * 3 * width + column]);
            products.sum::<f64>() + bias[column]
        };
        let next = |i: usize| {
            let reset = sigmoid(x[i] + hidden(i));
            let update = sigmoid(x[width + i] + hidden(width + i));
            let new = (x[2 * width + i] + reset * hidden(2 * width + i)).tanh();
            (1.0 - update) * new + update * state[i]
        };
        (0..width).map(next).collect()
    })
}

#[test]
fn a_gated_recurrent_unit() {
    for (lengths, width) in [(&[3, 1, 5, 1, 2, 5][..], 3), (&[1, 1], 2), (&[4], 19), (&[2, 6], 16)] {
        let steps: usize = lengths.iter().sum();
        let x = numbers(steps * 3 * width, 1);
        let (weight, bias) = (numbers(width * 3 * width, 2), numbers(3 * width, 3));
        let upstream = numbers(lengths.len() * width, 4);
        let unit = Unit::play(lengths, width, &x, &weight, &bias);
        let naive = sequences(lengths).into_iter().flat_map(|rows| {
            naive_unit(width, &x[3 * width * rows.start..3 * width * rows.end], &weight, &bias)
        });
        for (got, expected) in unit.out.iter().zip(naive) {
            assert!((got - expected).abs() < 1e-12, "{lengths:?}: {got} {expected}");
        }
        let [d_x, d_weight, d_bias] = unit.back(&weight, &upstream);
        let loss = |x: &[f64], weight: &[f64], bias: &[f64]| {
            dot(&Unit::play(lengths, width, x, weight, bias).out, &upstream)
        };
        check("x", &x, &d_x, |x| loss(x, &weight, &bias));
        check("weight", &weight, &d_weight, |weight| loss(&x, weight, &bias));
        check("bias", &bias, &d_bias, |bias| loss(&x, &weight, bias));
    }
}

#[test]
fn windows() {
    let (steps, width) = (4, 3);
    let x = numbers(steps * width, 1);
    for size in 1..=6 {
        let forward = |x: &[f64]| {
            let mut out = vec![9.0; steps * size * width];
            recurrent::windows(width, size, x, &mut out);
            out
        };
        let naive = (0..steps * size * width).map(|at| {
            let (step, back, column) = (at / (size * width), at / width % size, at % width);
            if step + back < steps { x[(step + back) * width + column] } else { 0.0 }
        });
        assert!(naive.eq(forward(&x)), "windows of {size}");
        let upstream = numbers(steps * size * width, 2);
        let mut d_x = vec![0.0; x.len()];
        recurrent::windows_back(width, size, &upstream, &mut d_x);
        check("x", &x, &d_x, |x| dot(&forward(x), &upstream));
    }
}

#[test]
fn the_largest_of_each_column() {
    let (steps, width) = (5, 19);
    let (x, upstream) = (numbers(steps * width, 1), numbers(width, 2));
    let forward = |x: &[f64]| {
        let mut out = vec![0.0; width];
        recurrent::largest(x, &mut out);
        out
    };
    let back = |x: &[f64]| {
        let mut d_x = vec![9.0; x.len()];
        recurrent::largest_back(x, &forward(x), &mut upstream.clone(), &mut d_x);
        d_x
    };
    check("x", &x, &back(&x), |x| dot(&forward(x), &upstream));
    let equal = vec![0.5; steps * width];
    assert_eq!(back(&equal)[..width], upstream);
    assert!(back(&equal)[width..].iter().all(|d| *d == 0.0), "the newest of equal ones has the gradient");
    for step in 0..steps {
        let mut broken = x.clone();
        broken[step * width] = f64::NAN;
        assert!(forward(&broken)[0].is_nan() && !forward(&broken)[1].is_nan(), "NaN of step {step}");
    }
}

/// One pass over most kernels in f32, to be compared with f64.
fn everything<T: Number>() -> Vec<f64> {
    let of = |numbers: Vec<f64>| numbers.into_iter().map(T::of).collect::<Vec<T>>();
    let (layout, width) = (crate::chain(&[1, 9, 14, 20]), 128);
    let nodes = layout.nodes();
    let (x, gain, bias) = (of(numbers(nodes * width, 1)), of(numbers(width, 2)), of(numbers(width, 3)));
    let rows = Rows { data: &x, stride: width };
    let (mut s, mut p) = (vec![T::ZERO; layout.len()], vec![T::ZERO; layout.len()]);
    pairs::dots(&layout, width, rows, rows, &mut s, &mut vec![T::ZERO; layout.scratch(width)]);
    pairs::normalize(&layout, Normalizer::Softmax, 0.09, true, &mut s, &mut p);
    let mut mixed = vec![T::ZERO; nodes * width];
    pairs::mix(&layout, width, &p, rows, &mut mixed, width);
    let (mut normal, mut inverse_sd, mut out) =
        (vec![T::ZERO; nodes * width], vec![T::ZERO; nodes], vec![T::ZERO; nodes * width]);
    let keep = Some((&mut normal[..], &mut inverse_sd[..]));
    rows::add_norm(width, 1e-5, &x, &mixed, &gain, &bias, &mut out, keep);
    rows::bias_activation(width, Activation::Relu, Some(Dropout::new(0.2, 3, 0)), &bias, &mut out);
    let (lengths, bias) = ([3, 30, 1, 10], of(numbers(3 * width, 4)));
    let weight: Vec<T> = of(numbers(width * 3 * width, 5).iter().map(|x| x * 0.1).collect());
    let unit = Unit::play(&lengths, width, &of(numbers(nodes * 3 * width, 6)), &weight, &bias);
    let [d_x, ..] = unit.back(&weight, &of(numbers(lengths.len() * width, 7)));
    p.iter().chain(&out).chain(&unit.out).chain(&d_x).map(|x| x.f64()).collect()
}

#[test]
fn every_level_of_instructions_agrees_with_double_precision() {
    let expected = everything::<f64>();
    let _alone = crate::LEVEL.lock();
    for at_most in [Level::Baseline, Level::Avx2, Level::Avx512] {
        level::limit(at_most);
        for (got, expected) in everything::<f32>().iter().zip(&expected) {
            assert!((got - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{at_most:?}: {got} {expected}");
        }
    }
}
