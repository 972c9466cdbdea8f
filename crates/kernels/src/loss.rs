//! Sums of losses over examples; whoever calls divides by their number.

use std::ops::Range;

use crate::Number;
use crate::gemm::{Into, Left, Right, gemm};
use crate::level::vectorized;
use crate::rows::{sum, total, transpose};

/// What edge reconstruction does with the inner product of a pair: a factor, and what is added, make a logit.
/// And the gradient of both.
///
/// There is a bias for every pair of the groups that nodes are in, in the order of [`pair_of_groups`]; or one
/// for all pairs, and groups make no difference.
#[derive(Debug, Clone)]
pub struct Decoder<T> {
    scale: T,
    biases: Vec<T>,
    /// The gradient with respect to the scale.
    pub d_scale: f64,
    /// The gradient with respect to biases.
    pub d_biases: Vec<f64>,
    graph: Columns<T>,
}

/// The biases of one graph: for each of its groups a row, with a column per node.
#[derive(Debug, Clone, Default)]
struct Columns<T> {
    stride: usize,
    /// Where each group ends.
    ends: Vec<usize>,
    biases: Vec<T>,
    d_biases: Vec<T>,
}

/// Index of a pair of groups, whichever comes first: (0, 0), (0, 1), (1, 1), (0, 2) and so on.
pub fn pair_of_groups(one: usize, other: usize) -> usize {
    let (first, second) = (one.min(other), one.max(other));
    second * (second + 1) / 2 + first
}

impl<T: Number> Decoder<T> {
    /// With this scale and these biases.
    pub fn new(scale: T, biases: &[T]) -> Self {
        Decoder {
            scale,
            biases: biases.to_vec(),
            d_scale: 0.0,
            d_biases: vec![0.0; biases.len()],
            graph: Columns::default(),
        }
    }

    /// Index of the bias of a pair of groups.
    fn bias_index(&self, one: usize, other: usize) -> usize {
        if self.biases.len() == 1 { 0 } else { pair_of_groups(one, other) }
    }

    /// Gets ready for a graph whose nodes are in groups of these sizes.
    fn turn_to(&mut self, sizes: &[usize]) {
        let whole = [sizes.iter().sum()];
        let sizes = if self.biases.len() == 1 { &whole } else { sizes };
        let mut graph = std::mem::take(&mut self.graph);
        graph.stride = whole[0].next_multiple_of(16);
        graph.ends.clear();
        graph.ends.extend(sizes.iter().scan(0, |end, size| {
            *end += size;
            Some(*end)
        }));
        for column in [&mut graph.biases, &mut graph.d_biases] {
            column.clear();
            column.resize(sizes.len() * graph.stride, T::ZERO);
        }
        for row in 0..sizes.len() {
            for group in 0..sizes.len() {
                let columns = graph.columns_of(row, group);
                graph.biases[columns].fill(self.biases[self.bias_index(row, group)]);
            }
        }
        self.graph = graph;
    }

    /// Adds what the columns of the graph have gathered.
    fn gather(&mut self, weight: f64) {
        let groups = self.graph.ends.len();
        for row in 0..groups {
            for group in 0..groups {
                let (bias, columns) = (self.bias_index(row, group), self.graph.columns_of(row, group));
                let sum: f64 = self.graph.d_biases[columns].iter().map(|number| number.f64()).sum();
                self.d_biases[bias] += weight * sum;
            }
        }
    }
}

impl<T> Columns<T> {
    /// Where the row of one group has the columns of another.
    fn columns_of(&self, row: usize, group: usize) -> Range<usize> {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        row * self.stride + start..row * self.stride + self.ends[group]
    }

    /// The columns of a node's row.
    fn row(&self, node: usize) -> Range<usize> {
        let start = self.stride * self.ends.partition_point(|end| *end <= node);
        start..start + self.stride
    }
}

/// Cross entropy of "is there an edge" over all ordered pairs of different nodes of one graph.
///
/// `sizes` are those of the graph's groups of nodes; `z` has a row of `width` per node; `edges` lists each
/// edge once; `logits` and `turned` are room to work in, of at least `nodes * stride` and `width * (stride +
/// 1)` numbers, where `stride` is `nodes` rounded up to a multiple of 16. With `d_z`, the gradient of
/// `weight` times the loss goes there, and is added to the decoder's.
pub fn edges<T: Number>(
    sizes: &[usize],
    width: usize,
    decoder: &mut Decoder<T>,
    z: &[T],
    edges: &[(u32, u32)],
    weight: f64,
    logits: &mut [T],
    turned: &mut [T],
    d_z: Option<&mut [T]>,
) -> f64 {
    decoder.turn_to(sizes);
    let nodes = sizes.iter().sum();
    let Some(d_z) = d_z else {
        return edges_loss([nodes, width], decoder, z, edges, logits, turned);
    };
    let stride = inner_products([nodes, width], false, z, logits, turned);
    let (scale, graph) = (decoder.scale, &mut decoder.graph);
    let both = || edges.iter().flat_map(|&(i, j)| [(i as usize, j as usize), (j as usize, i as usize)]);
    // An edge's loss is softplus(-x) = softplus(x) - x: the logits of edges are taken off once.
    let (mut loss, mut d_scale) = (0.0, 0.0);
    for (i, j) in both() {
        let (dot, column) = (logits[i * stride + j], graph.row(i).start + j);
        loss -= (scale * dot + graph.biases[column]).f64();
        d_scale -= dot.f64();
        graph.d_biases[column] -= T::ONE;
    }
    for node in 0..nodes {
        let (columns, row) = (graph.row(node), &mut logits[node * stride..][..stride]);
        let (biases, d_biases) = (&graph.biases[columns.clone()], &mut graph.d_biases[columns]);
        let (row_loss, row_scale) = softplus_row(scale, biases, node, nodes, row, d_biases);
        loss += row_loss.f64();
        d_scale += row_scale.f64();
    }
    for (i, j) in both() {
        logits[i * stride + j] -= T::ONE;
    }
    // The logits are symmetric, so both ends of a pair give the same: twice one of them.
    gemm([nodes, width, nodes], Left::rows(logits, stride), Right::rows(z, width), d_z, width, Into::Set);
    let factor = T::of(2.0 * weight) * scale;
    d_z[..nodes * width].iter_mut().for_each(|d| *d *= factor);
    decoder.d_scale += weight * d_scale;
    decoder.gather(weight);
    loss
}

/// The loss of [`edges`] alone: each pair once, and twice that.
fn edges_loss<T: Number>(
    [nodes, width]: [usize; 2],
    decoder: &Decoder<T>,
    z: &[T],
    edges: &[(u32, u32)],
    dots: &mut [T],
    turned: &mut [T],
) -> f64 {
    let stride = inner_products([nodes, width], true, z, dots, turned);
    let graph = &decoder.graph;
    let logit = |&(i, j): &(u32, u32)| {
        let (first, second) = (i.min(j) as usize, i.max(j) as usize);
        let bias = graph.biases[graph.row(first).start + second];
        (decoder.scale * dots[first * stride + second] + bias).f64()
    };
    let of_edges: f64 = edges.iter().map(logit).sum();
    let row = |node: usize| {
        let (biases, dots) = (&graph.biases[graph.row(node)], &dots[node * stride..][..stride]);
        softplus_after(decoder.scale, biases, node, nodes, dots).f64()
    };
    2.0 * ((0..nodes).map(row).sum::<f64>() - of_edges)
}

/// The inner products of all nodes with each other, or `upper`, of each at least with those after it, in rows
/// that are as far apart as is returned.
fn inner_products<T: Number>(
    [nodes, width]: [usize; 2],
    upper: bool,
    z: &[T],
    products: &mut [T],
    turned: &mut [T],
) -> usize {
    let stride = nodes.next_multiple_of(16);
    let (turned, zeros) = turned.split_at_mut(width * stride);
    zeros[..width].fill(T::ZERO);
    transpose([nodes, stride, width], z, width, zeros, turned, stride);
    let left = Left::rows(z, width);
    if !upper {
        gemm([nodes, stride, width], left, Right::rows(turned, stride), products, stride, Into::Set);
        return stride;
    }
    for first in (0..stride).step_by(16) {
        let right = Right::rows(&turned[first..], stride);
        gemm([nodes.min(first + 16), 16, width], left, right, &mut products[first..], stride, Into::Set);
    }
    stride
}

/// The logits of the pairs of one graph that [`edges`] has the loss of, (0, 1), (0, 2) and so on: each pair
/// once, because both ways are the same. `products` and `turned` are room to work in, as there.
pub fn edge_logits<T: Number>(
    sizes: &[usize],
    width: usize,
    decoder: &mut Decoder<T>,
    z: &[T],
    products: &mut [T],
    turned: &mut [T],
) -> Vec<T> {
    decoder.turn_to(sizes);
    let (nodes, graph) = (sizes.iter().sum(), &decoder.graph);
    let stride = inner_products([nodes, width], true, z, products, turned);
    let mut logits = Vec::with_capacity(nodes * nodes.saturating_sub(1) / 2);
    for node in 0..nodes {
        let dots = &products[node * stride..][node + 1..nodes];
        let biases = &graph.biases[graph.row(node)][node + 1..nodes];
        logits.extend(dots.iter().zip(biases).map(|(dot, bias)| decoder.scale * *dot + *bias));
    }
    logits
}

vectorized! {
/// Dots become sigmoids of their logits, but 0 on the diagonal and beyond the nodes. Returns the sums of
/// softplus and of sigmoid times dot; sigmoids are added to the gradient of the biases.
fn softplus_row(
    scale: T,
    biases: &[T],
    node: usize,
    nodes: usize,
    row: &mut [T],
    d_biases: &mut [T],
) -> (T, T) {
    // Far below zero, a logit has neither loss nor gradient.
    let nothing = T::of(-1e30);
    let (mut linear, mut product, mut d_scale) = ([T::ZERO; 16], [T::ONE; 16], [T::ZERO; 16]);
    row[node] = T::ZERO;
    let columns = biases.as_chunks::<16>().0.iter().zip(d_biases.as_chunks_mut::<16>().0);
    for (chunk, (row, (bias, d_bias))) in row.as_chunks_mut::<16>().0.iter_mut().zip(columns).enumerate() {
        for lane in 0..16 {
            let (other, dot) = (chunk * 16 + lane, row[lane]);
            let is_left_out = other == node || other >= nodes;
            let x = if is_left_out { nothing } else { dot.fma::<FMA>(scale, bias[lane]) };
            let e = (-x.abs()).exp::<FMA>();
            let q = T::ONE / (T::ONE + e);
            let sigmoid = if x >= T::ZERO { q } else { e * q };
            linear[lane] += x.larger(T::ZERO);
            product[lane] *= T::ONE + e;
            d_scale[lane] = sigmoid.fma::<FMA>(dot, d_scale[lane]);
            d_bias[lane] += sigmoid;
            row[lane] = sigmoid;
        }
    }
    (total(linear) + log_of_product(product), total(d_scale))
}
}

vectorized! {
/// The sum over the nodes after `node` of the softplus of their logits.
fn softplus_after(scale: T, biases: &[T], node: usize, nodes: usize, dots: &[T]) -> T {
    // Far below zero, a logit has no loss.
    let nothing = T::of(-1e30);
    let (mut linear, mut product) = ([T::ZERO; 16], [T::ONE; 16]);
    let first = (node + 1) / 16;
    let chunks = dots.as_chunks::<16>().0.iter().zip(biases.as_chunks::<16>().0);
    for (chunk, (dots, bias)) in chunks.enumerate().skip(first) {
        for lane in 0..16 {
            let other = chunk * 16 + lane;
            let is_left_out = other <= node || other >= nodes;
            let x = if is_left_out { nothing } else { dots[lane].fma::<FMA>(scale, bias[lane]) };
            linear[lane] += x.larger(T::ZERO);
            product[lane] *= T::ONE + (-x.abs()).exp::<FMA>();
        }
    }
    total(linear) + log_of_product(product)
}
}

/// The sum of logarithms of numbers between 1 and 2, of which lanes have the products. Two logarithms, and in
/// double precision: what does not overflow in a lane does not either.
#[inline(always)]
fn log_of_product<T: Number>(lanes: [T; 16]) -> T {
    let (first, second) = lanes.split_at(8);
    let log = |lanes: &[T]| lanes.iter().map(|lane| lane.f64()).product::<f64>().ln();
    T::of(log(first) + log(second))
}

/// Cross entropy of a binary label and its logit: the loss and its derivative. The target is the label, moved
/// towards one half by the share `smoothing` of the way.
pub fn binary<T: Number>(logit: T, label: bool, smoothing: f64) -> (f64, T) {
    let x = logit.f64();
    let e = (-x.abs()).exp();
    let sigmoid = if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) };
    let target = smoothed(label, smoothing);
    (x.max(0.0) - x * target + e.ln_1p(), T::of(sigmoid - target))
}

/// What the n-th of the labels of many rows counts in the loss, where a positive of each column counts as
/// much as `positives` says, and a negative 1; without them, every label counts 1.
pub fn counted(label: Option<bool>, number: usize, positives: &[f64]) -> f64 {
    match (label, positives.len()) {
        (None, _) => 0.0,
        (Some(true), columns @ 1..) => positives[number % columns],
        (Some(_), _) => 1.0,
    }
}

/// A label as a target: 0 or 1, moved towards one half by the share `smoothing` of the way.
pub fn smoothed(label: bool, smoothing: f64) -> f64 {
    (1.0 - smoothing) * f64::from(u8::from(label)) + 0.5 * smoothing
}

/// Cross entropy of a class and the logits of all classes; the logits become `weight` times the gradient. The
/// share `smoothing` of the target is spread evenly over all classes.
pub fn classes<T: Number>(logits: &mut [T], class: usize, smoothing: f64, weight: f64) -> f64 {
    let largest = logits.iter().copied().fold(logits[0], T::larger);
    let evenly = smoothing / logits.len() as f64;
    let target = match smoothing > 0.0 {
        true => {
            let all: f64 = logits.iter().map(|logit| (*logit - largest).f64()).sum();
            (1.0 - smoothing) * (logits[class] - largest).f64() + evenly * all
        }
        false => (logits[class] - largest).f64(),
    };
    let total = exponentials(largest, logits);
    let factor = T::of(weight) / total;
    logits.iter_mut().for_each(|logit| *logit *= factor);
    if smoothing > 0.0 {
        logits.iter_mut().for_each(|logit| *logit -= T::of(weight * evenly));
    }
    logits[class] -= T::of(weight * (1.0 - smoothing));
    total.f64().ln() - target
}

vectorized! {
fn exponentials(largest: T, x: &mut [T]) -> T {
    for x in x.iter_mut() {
        *x = (*x - largest).exp::<FMA>();
    }
    sum([&*x], |[e], sum| sum + e)
}
}
