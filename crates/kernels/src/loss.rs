//! Sums of losses over examples; whoever calls divides by their number.

use crate::Number;
use crate::gemm::{Into, Left, Right, gemm};
use crate::level::vectorized;
use crate::rows::{sum, total, transpose};

/// What edge reconstruction does with a pair's inner product.
#[derive(Debug, Clone, Copy)]
pub struct Decoder<T> {
    /// A factor ...
    pub scale: T,
    /// ... and what is added, to make a logit.
    pub bias: T,
}

/// The gradient of a [`Decoder`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct DecoderGradient {
    /// With respect to the scale.
    pub scale: f64,
    /// With respect to the bias.
    pub bias: f64,
}

/// Cross entropy of "is there an edge" over all ordered pairs of different nodes of one graph.
///
/// `z` has a row of `width` per node; `edges` lists each edge once; `logits` and `turned` are room to work in, of at least
/// `nodes * stride` and `width * (stride + 1)` numbers, where `stride` is `nodes` rounded up to a multiple of 16. With
/// `d_z`, the gradient of `weight` times the loss goes there and is returned for the decoder.
pub fn edges<T: Number>(
    [nodes, width]: [usize; 2],
    decoder: Decoder<T>,
    z: &[T],
    edges: &[(u32, u32)],
    weight: f64,
    logits: &mut [T],
    turned: &mut [T],
    d_z: Option<&mut [T]>,
) -> (f64, DecoderGradient) {
    let Some(d_z) = d_z else {
        let loss = edges_loss([nodes, width], decoder, z, edges, logits, turned);
        return (loss, DecoderGradient::default());
    };
    let stride = inner_products([nodes, width], false, z, logits, turned);
    // An edge's loss is softplus(-x) = softplus(x) - x: the logits of edges are taken off once.
    let both = |&(i, j): &(u32, u32)| [i as usize * stride + j as usize, j as usize * stride + i as usize];
    let logit = |dot: T| decoder.scale * dot + decoder.bias;
    let of_edges: f64 = edges.iter().flat_map(both).map(|place| logit(logits[place]).f64()).sum();
    let dots_of_edges: f64 = edges.iter().flat_map(both).map(|place| logits[place].f64()).sum();
    let mut gradient = DecoderGradient { scale: -dots_of_edges, bias: -(2.0 * edges.len() as f64) };
    let mut loss = -of_edges;
    for node in 0..nodes {
        let row = &mut logits[node * stride..][..stride];
        let (row_loss, d_scale, d_bias) = softplus_row(decoder.scale, decoder.bias, node, nodes, row);
        loss += row_loss.f64();
        gradient.scale += d_scale.f64();
        gradient.bias += d_bias.f64();
    }
    for place in edges.iter().flat_map(both) {
        logits[place] -= T::ONE;
    }
    // The logits are symmetric, so both ends of a pair give the same: twice one of them.
    gemm([nodes, width, nodes], Left::rows(logits, stride), Right::rows(z, width), d_z, width, Into::Set);
    let factor = T::of(2.0 * weight) * decoder.scale;
    d_z[..nodes * width].iter_mut().for_each(|d| *d *= factor);
    gradient.scale *= weight;
    gradient.bias *= weight;
    (loss, gradient)
}

/// The loss of [`edges`] alone: each pair once, and twice that.
fn edges_loss<T: Number>(
    [nodes, width]: [usize; 2],
    decoder: Decoder<T>,
    z: &[T],
    edges: &[(u32, u32)],
    dots: &mut [T],
    turned: &mut [T],
) -> f64 {
    let stride = inner_products([nodes, width], true, z, dots, turned);
    let logit = |&(i, j): &(u32, u32)| {
        let (first, second) = (i.min(j) as usize, i.max(j) as usize);
        (decoder.scale * dots[first * stride + second] + decoder.bias).f64()
    };
    let of_edges: f64 = edges.iter().map(logit).sum();
    let row = |node: usize| {
        let dots = &dots[node * stride..][..stride];
        softplus_after(decoder.scale, decoder.bias, node, nodes, dots).f64()
    };
    2.0 * ((0..nodes).map(row).sum::<f64>() - of_edges)
}

/// The inner products of all nodes with each other, or `upper`, of each at least with those after it, in rows that are as far
/// apart as is returned.
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

/// The logits of the pairs of one graph that [`edges`] has the loss of, (0, 1), (0, 2) and so on: each pair once, because
/// both ways are the same. `products` and `turned` are room to work in, as there.
pub fn edge_logits<T: Number>(
    [nodes, width]: [usize; 2],
    decoder: Decoder<T>,
    z: &[T],
    products: &mut [T],
    turned: &mut [T],
) -> Vec<T> {
    let stride = inner_products([nodes, width], true, z, products, turned);
    let row = |node: usize| &products[node * stride + node + 1..node * stride + nodes];
    (0..nodes).flat_map(|node| row(node).iter().map(|dot| decoder.scale * *dot + decoder.bias)).collect()
}

vectorized! {
/// Dots become sigmoids of their logits, but 0 on the diagonal and beyond the nodes. Returns the sums of softplus, of
/// sigmoid times dot, and of sigmoids.
fn softplus_row(scale: T, bias: T, node: usize, nodes: usize, row: &mut [T]) -> (T, T, T) {
    // Far below zero, a logit has neither loss nor gradient.
    let nothing = T::of(-1e30);
    let (mut linear, mut d_scale, mut d_bias) = ([T::ZERO; 16], [T::ZERO; 16], [T::ZERO; 16]);
    let mut product = [T::ONE; 16];
    row[node] = T::ZERO;
    for (chunk, row) in row.chunks_exact_mut(16).enumerate() {
        for lane in 0..16 {
            let place = chunk * 16 + lane;
            let dot = row[lane];
            let x = if place == node || place >= nodes { nothing } else { dot.fma::<FMA>(scale, bias) };
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
    (total(linear) + log_of_product(product), total(d_scale), total(d_bias))
}
}

vectorized! {
/// The sum over the nodes after `node` of the softplus of their logits.
fn softplus_after(scale: T, bias: T, node: usize, nodes: usize, dots: &[T]) -> T {
    // Far below zero, a logit has no loss.
    let nothing = T::of(-1e30);
    let (mut linear, mut product) = ([T::ZERO; 16], [T::ONE; 16]);
    let first = (node + 1) / 16;
    for (chunk, dots) in dots.as_chunks::<16>().0.iter().enumerate().skip(first) {
        for lane in 0..16 {
            let place = chunk * 16 + lane;
            let x = if place <= node || place >= nodes { nothing } else { dots[lane].fma::<FMA>(scale, bias) };
            linear[lane] += x.larger(T::ZERO);
            product[lane] *= T::ONE + (-x.abs()).exp::<FMA>();
        }
    }
    total(linear) + log_of_product(product)
}
}

/// The sum of logarithms of numbers between 1 and 2, of which lanes have the products. Two logarithms, and in double precision: what
/// does not overflow in a lane does not either.
#[inline(always)]
fn log_of_product<T: Number>(lanes: [T; 16]) -> T {
    let (first, second) = lanes.split_at(8);
    let log = |lanes: &[T]| lanes.iter().map(|lane| lane.f64()).product::<f64>().ln();
    T::of(log(first) + log(second))
}

/// Cross entropy of a binary label and its logit: the loss and its derivative.
pub fn binary<T: Number>(logit: T, label: bool) -> (f64, T) {
    let x = logit.f64();
    let e = (-x.abs()).exp();
    let sigmoid = if x >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) };
    let target = f64::from(u8::from(label));
    (x.max(0.0) - x * target + e.ln_1p(), T::of(sigmoid - target))
}

/// Cross entropy of a class and the logits of all classes; the logits become `weight` times the gradient.
pub fn classes<T: Number>(logits: &mut [T], class: usize, weight: f64) -> f64 {
    let largest = logits.iter().copied().fold(logits[0], T::larger);
    let target = (logits[class] - largest).f64();
    let total = exponentials(largest, logits);
    let factor = T::of(weight) / total;
    logits.iter_mut().for_each(|logit| *logit *= factor);
    logits[class] -= T::of(weight);
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
