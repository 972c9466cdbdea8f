//! Every function takes matrices of `width` columns, row after row. Sums run in 16 lanes, whatever the width of a register,
//! so that a result does not depend on the processor's.

use crate::Number;
use crate::level::vectorized;

/// Lanes of a sum.
const LANES: usize = 16;

/// Adds lanes pairwise.
#[inline(always)]
pub(crate) fn total<T: Number>(mut lanes: [T; LANES]) -> T {
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            let other = lanes[lane + half];
            lanes[lane] += other;
        }
        half /= 2;
    }
    lanes[0]
}

/// Adds something for each place of some slices, in lanes: `add(numbers, sum)` is the lane's sum with the numbers at a place.
#[inline(always)]
pub(crate) fn sum<T: Number, const SLICES: usize>(
    slices: [&[T]; SLICES],
    add: impl Fn([T; SLICES], T) -> T,
) -> T {
    let mut lanes = [T::ZERO; LANES];
    let parts = slices.map(|slice| slice.as_chunks::<LANES>());
    for chunk in 0..parts[0].0.len() {
        // Whole arrays, not single numbers: a bounds check in the inner loop would keep it from being vectorised.
        let chunks = parts.map(|(chunks, _)| &chunks[chunk]);
        for (lane, sum) in lanes.iter_mut().enumerate() {
            *sum = add(chunks.map(|chunk| chunk[lane]), *sum);
        }
    }
    for (lane, sum) in lanes.iter_mut().enumerate().take(parts[0].1.len()) {
        *sum = add(parts.map(|(_, rest)| rest[lane]), *sum);
    }
    total(lanes)
}

vectorized! {
/// out = LayerNorm(a + b): `normal` keeps (a + b - mean) / sd, `inverse_sd` keeps 1 / sd, both for [`add_norm_back`].
pub fn add_norm(
    width: usize,
    epsilon: f64,
    a: &[T],
    b: &[T],
    gain: &[T],
    bias: &[T],
    normal: &mut [T],
    inverse_sd: &mut [T],
    out: &mut [T],
) {
    let (gain, bias, share) = (&gain[..width], &bias[..width], T::of(1.0 / width as f64));
    for (row, inverse_sd) in inverse_sd.iter_mut().enumerate() {
        let at = row * width;
        let (a, b) = (&a[at..][..width], &b[at..][..width]);
        let (normal, out) = (&mut normal[at..][..width], &mut out[at..][..width]);
        for i in 0..width {
            normal[i] = a[i] + b[i];
        }
        let mean = sum([&*normal], |[x], sum| sum + x) * share;
        let variance = sum([&*normal], |[x], sum| (x - mean).fma::<FMA>(x - mean, sum)) * share;
        let scale = T::ONE / (variance + T::of(epsilon)).sqrt();
        *inverse_sd = scale;
        for i in 0..width {
            let x = (normal[i] - mean) * scale;
            normal[i] = x;
            out[i] = x.fma::<FMA>(gain[i], bias[i]);
        }
    }
}
}

vectorized! {
/// The gradient of [`add_norm`]: d(a + b), and what is added to the gradients of gain and bias.
pub fn add_norm_back(
    width: usize,
    d_out: &[T],
    normal: &[T],
    inverse_sd: &[T],
    gain: &[T],
    d_in: &mut [T],
    d_gain: &mut [T],
    d_bias: &mut [T],
) {
    let (gain, share) = (&gain[..width], T::of(1.0 / width as f64));
    let (d_gain, d_bias) = (&mut d_gain[..width], &mut d_bias[..width]);
    for (row, &scale) in inverse_sd.iter().enumerate() {
        let at = row * width;
        let (d_out, normal, d_in) = (&d_out[at..][..width], &normal[at..][..width], &mut d_in[at..][..width]);
        for i in 0..width {
            d_gain[i] = d_out[i].fma::<FMA>(normal[i], d_gain[i]);
            d_bias[i] += d_out[i];
        }
        let mean = sum([d_out, gain], |[d, gain], sum| d.fma::<FMA>(gain, sum)) * share;
        let along = sum([d_out, gain, normal], |[d, gain, x], sum| (d * gain).fma::<FMA>(x, sum)) * share;
        for i in 0..width {
            d_in[i] = scale * (d_out[i] * gain[i] - mean - normal[i] * along);
        }
    }
}
}

/// Dropout whose choices depend on a key and an element's place alone: the same whichever thread asks, and again in the
/// backward pass, so that no mask is stored.
#[derive(Debug, Clone, Copy)]
pub struct Dropout {
    key: u32,
    first: u32,
    threshold: u32,
    scale: f64,
}

impl Dropout {
    /// Drops a share `rate` of elements and scales the others up. `first` is the place of the first element.
    ///
    /// # Panics
    /// If the rate is not in 0..1.
    pub fn new(rate: f64, key: u32, first: usize) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout rate {rate}");
        Dropout {
            key,
            first: first as u32,
            threshold: (rate * 4_294_967_296.0) as u32,
            scale: 1.0 / (1.0 - rate),
        }
    }

    /// What the element at a place is multiplied with: 0, or the scale of what is kept.
    pub fn factor(&self, place: usize) -> f64 {
        if self.keeps(place) { self.scale } else { 0.0 }
    }

    #[inline(always)]
    fn keeps(&self, place: usize) -> bool {
        let mut x = self.first.wrapping_add(place as u32).wrapping_mul(0x9e37_79b1) ^ self.key;
        x = (x ^ (x >> 16)).wrapping_mul(0x85eb_ca6b);
        x = (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35);
        x ^= x >> 16;
        x >= self.threshold
    }
}

/// What follows the bias of a linear layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// Nothing.
    Identity,
    /// max(x, 0).
    Relu,
}

vectorized! {
/// x = dropout(activation(x + bias)), in place.
pub fn bias_activation(width: usize, activation: Activation, dropout: Option<Dropout>, bias: &[T], x: &mut [T]) {
    let bias = &bias[..width];
    let floor = if activation == Activation::Relu { T::ZERO } else { T::of(-1e38) };
    for (row, x) in x.chunks_exact_mut(width).enumerate() {
        match dropout {
            Some(dropout) => {
                let scale = T::of(dropout.scale);
                for i in 0..width {
                    let factor = if dropout.keeps(row * width + i) { scale } else { T::ZERO };
                    x[i] = (x[i] + bias[i]).larger(floor) * factor;
                }
            }
            None => {
                for i in 0..width {
                    x[i] = (x[i] + bias[i]).larger(floor);
                }
            }
        }
    }
}
}

vectorized! {
/// The gradient of [`bias_activation`], in place: `out` is what it gave. Adds to the gradient of the bias.
pub fn bias_activation_back(
    width: usize,
    activation: Activation,
    dropout: Option<Dropout>,
    out: &[T],
    d: &mut [T],
    d_bias: &mut [T],
) {
    let d_bias = &mut d_bias[..width];
    for (row, d) in d.chunks_exact_mut(width).enumerate() {
        match (activation, dropout) {
            // What is positive was kept and is above the kink.
            (Activation::Relu, dropout) => {
                let (out, scale) = (&out[row * width..][..width], dropout.map_or(T::ONE, |dropout| T::of(dropout.scale)));
                for i in 0..width {
                    let x = if out[i] > T::ZERO { d[i] * scale } else { T::ZERO };
                    d[i] = x;
                    d_bias[i] += x;
                }
            }
            (Activation::Identity, Some(dropout)) => {
                let scale = T::of(dropout.scale);
                for i in 0..width {
                    let x = if dropout.keeps(row * width + i) { d[i] * scale } else { T::ZERO };
                    d[i] = x;
                    d_bias[i] += x;
                }
            }
            (Activation::Identity, None) => {
                for i in 0..width {
                    d_bias[i] += d[i];
                }
            }
        }
    }
}
}

vectorized! {
/// Turns rows into columns. The sizes are how many rows there are, how many columns are written (those after the last row
/// zero), and the width of a row; `zeros` has as many zeros.
pub(crate) fn transpose(
    sizes: [usize; 3],
    from: &[T],
    from_stride: usize,
    zeros: &[T],
    to: &mut [T],
    to_stride: usize,
) {
    let [rows, end, width] = sizes;
    let line = |row: usize| if row < rows { &from[row * from_stride..][..width] } else { &zeros[..width] };
    // Eight by eight: what is written together lies together.
    let whole = end - end % 8;
    for row in (0..whole).step_by(8) {
        let lines: [&[T]; 8] = std::array::from_fn(|i| line(row + i));
        let blocks = lines.map(|line| line.as_chunks::<8>().0);
        for column in 0..width / 8 {
            let block = blocks.map(|blocks| &blocks[column]);
            for i in 0..8 {
                let to = &mut to[(8 * column + i) * to_stride + row..][..8];
                for (to, line) in to.iter_mut().zip(block) {
                    *to = line[i];
                }
            }
        }
        for column in width - width % 8..width {
            for (i, line) in lines.iter().enumerate() {
                to[column * to_stride + row + i] = line[column];
            }
        }
    }
    for row in whole..end {
        for (column, value) in line(row).iter().enumerate() {
            to[column * to_stride + row] = *value;
        }
    }
}
}

vectorized! {
/// to += from.
pub fn add(from: &[T], to: &mut [T]) {
    for (from, to) in from.iter().zip(to) {
        *to += *from;
    }
}
}

/// Adam's constants and its step.
#[derive(Debug, Clone, Copy)]
pub struct Adam {
    /// How far to go.
    pub learning_rate: f64,
    /// How slowly the mean of the gradient forgets.
    pub beta_1: f64,
    /// How slowly the mean of its square forgets.
    pub beta_2: f64,
    /// Keeps the quotient finite.
    pub epsilon: f64,
    /// Which step this is, from 1.
    pub step: u32,
}

impl Adam {
    /// Moves the parameters against the gradient, which is zero afterwards.
    pub fn update<T: Number>(
        &self,
        parameters: &mut [T],
        mean: &mut [T],
        square: &mut [T],
        gradient: &mut [T],
    ) {
        let forgotten = |beta: f64| 1.0 - beta.powi(self.step as i32);
        let rate = T::of(self.learning_rate / forgotten(self.beta_1));
        let unbias = T::of(1.0 / forgotten(self.beta_2));
        let betas = [self.beta_1, self.beta_2, 1.0 - self.beta_1, 1.0 - self.beta_2].map(T::of);
        adam(rate, unbias, betas, T::of(self.epsilon), parameters, mean, square, gradient);
    }
}

vectorized! {
fn adam(
    rate: T,
    unbias: T,
    betas: [T; 4],
    epsilon: T,
    parameters: &mut [T],
    mean: &mut [T],
    square: &mut [T],
    gradient: &mut [T],
) {
    let [keep_mean, keep_square, new_mean, new_square] = betas;
    let moments = mean.iter_mut().zip(square);
    for ((parameter, (mean, square)), gradient) in parameters.iter_mut().zip(moments).zip(gradient) {
        let g = *gradient;
        *gradient = T::ZERO;
        *mean = keep_mean * *mean + new_mean * g;
        *square = keep_square * *square + new_square * g * g;
        *parameter -= rate * *mean / ((*square * unbias).sqrt() + epsilon);
    }
}
}
