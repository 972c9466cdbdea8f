//! Every function takes matrices of `width` columns, row after row. Sums run in 16 lanes, whatever the width
//! of a register, so that a result does not depend on the processor's.

use crate::Number;
use crate::gemm::offset;
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

/// Adds something for each index of some slices, in lanes: `add(numbers, sum)` is the lane's sum with the
/// numbers at an index.
#[inline(always)]
pub(crate) fn sum<T: Number, const SLICES: usize>(
    slices: [&[T]; SLICES],
    add: impl Fn([T; SLICES], T) -> T,
) -> T {
    let mut lanes = [T::ZERO; LANES];
    let parts = slices.map(|slice| slice.as_chunks::<LANES>());
    for chunk in 0..parts[0].0.len() {
        // Whole arrays, not single numbers: a bounds check in the inner loop would keep it from being
        // vectorised.
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

/// out = a + b; returns the sum over it, in lanes.
#[inline(always)]
fn add_rows<T: Number>(a: &[T], b: &[T], out: &mut [T]) -> T {
    let mut lanes = [T::ZERO; LANES];
    let ((a, a_rest), (b, b_rest), (out, out_rest)) =
        (a.as_chunks::<LANES>(), b.as_chunks::<LANES>(), out.as_chunks_mut::<LANES>());
    for ((a, b), out) in a.iter().zip(b).zip(out) {
        for lane in 0..LANES {
            out[lane] = a[lane] + b[lane];
            lanes[lane] += out[lane];
        }
    }
    for (lane, ((a, b), out)) in a_rest.iter().zip(b_rest).zip(out_rest).enumerate() {
        *out = *a + *b;
        lanes[lane] += *out;
    }
    total(lanes)
}

vectorized! {
/// out = LayerNorm(a + b). For [`add_norm_back`], `keep` takes (a + b - mean) / sd and 1 / sd.
pub fn add_norm(
    width: usize,
    epsilon: f64,
    a: &[T],
    b: &[T],
    gain: &[T],
    bias: &[T],
    out: &mut [T],
    keep: Option<(&mut [T], &mut [T])>,
) {
    // A width that is known when this is compiled makes it a quarter faster: this one is the paper's.
    match width {
        128 => add_norm_of::<T, FMA>(128, epsilon, a, b, gain, bias, out, keep),
        width => add_norm_of::<T, FMA>(width, epsilon, a, b, gain, bias, out, keep),
    }
}
}

#[inline(always)]
fn add_norm_of<T: Number, const FMA: bool>(
    width: usize,
    epsilon: f64,
    a: &[T],
    b: &[T],
    gain: &[T],
    bias: &[T],
    out: &mut [T],
    mut keep: Option<(&mut [T], &mut [T])>,
) {
    let (gain, bias, share) = (&gain[..width], &bias[..width], T::of(1.0 / width as f64));
    for (row, out) in out.chunks_exact_mut(width).enumerate() {
        let at = row * width;
        let mean = add_rows(&a[at..][..width], &b[at..][..width], out) * share;
        let variance = sum([&*out], |[x], sum| (x - mean).fma::<FMA>(x - mean, sum)) * share;
        let scale = T::ONE / (variance + T::of(epsilon)).sqrt();
        if let Some((normal, inverse_sd)) = &mut keep {
            inverse_sd[row] = scale;
            for (normal, x) in normal[at..][..width].iter_mut().zip(&*out) {
                *normal = (*x - mean) * scale;
            }
        }
        for i in 0..width {
            out[i] = ((out[i] - mean) * scale).fma::<FMA>(gain[i], bias[i]);
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

/// Dropout whose choices depend on a key and an element's index alone: the same whichever thread asks, and
/// again in the backward pass, so that no mask is stored.
#[derive(Debug, Clone, Copy)]
pub struct Dropout {
    key: u32,
    first: u32,
    threshold: u32,
    scale: f64,
}

impl Dropout {
    /// Drops a share `rate` of elements and scales the others up. `first` is the index of the first element.
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

    /// What the element at an index is multiplied with: 0, or the scale of what is kept.
    pub fn factor(&self, index: usize) -> f64 {
        if self.keeps(index) { self.scale } else { 0.0 }
    }

    #[inline(always)]
    fn keeps(&self, index: usize) -> bool {
        let mut x = self.first.wrapping_add(index as u32).wrapping_mul(0x9e37_79b1) ^ self.key;
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

impl Activation {
    /// What it gives at least.
    pub(crate) fn least<T: Number>(self) -> T {
        if self == Activation::Relu { T::ZERO } else { T::of(-1e38) }
    }
}

vectorized! {
/// x = dropout(activation(x + bias)), in place.
pub fn bias_activation(
    width: usize,
    activation: Activation,
    dropout: Option<Dropout>,
    bias: &[T],
    x: &mut [T],
) {
    let bias = &bias[..width];
    let least = activation.least();
    for (row, x) in x.chunks_exact_mut(width).enumerate() {
        match dropout {
            Some(dropout) => {
                let scale = T::of(dropout.scale);
                for i in 0..width {
                    let factor = if dropout.keeps(row * width + i) { scale } else { T::ZERO };
                    x[i] = (x[i] + bias[i]).larger(least) * factor;
                }
            }
            None => {
                for i in 0..width {
                    x[i] = (x[i] + bias[i]).larger(least);
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
                let out = &out[row * width..][..width];
                let scale = dropout.map_or(T::ONE, |dropout| T::of(dropout.scale));
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

/// Turns rows into columns. The sizes are how many rows there are, how many columns are written (those after
/// the last row zero), and the width of a row; `zeros` has as many zeros.
pub(crate) fn transpose<T: Number>(
    [rows, end, width]: [usize; 3],
    from: &[T],
    from_stride: usize,
    zeros: &[T],
    to: &mut [T],
    to_stride: usize,
) {
    let line = |row: usize| if row < rows { &from[row * from_stride..][..width] } else { &zeros[..width] };
    let wide = width - width % 8;
    let eights = if end < 8 { 0 } else { end.div_ceil(8) };
    for eight in 0..eights {
        // The last eight may be some of those before once more.
        let row = (8 * eight).min(end - 8);
        let lines = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| line(row + i));
        T::transpose_eight(wide, lines, &mut to[row..], to_stride);
        for (i, line) in lines.iter().enumerate() {
            for column in wide..width {
                to[column * to_stride + row + i] = line[column];
            }
        }
    }
    for row in 8 * eights..end {
        for (column, value) in line(row).iter().enumerate() {
            to[column * to_stride + row] = *value;
        }
    }
}

/// A number of which eight rows can be turned into columns at a time.
pub trait Transpose: Sized {
    /// Turns the first `width` columns of eight lines, a multiple of eight, into lines of eight, `stride`
    /// apart.
    ///
    /// # Panics
    /// If there are fewer columns, or there is no room.
    fn transpose_eight(width: usize, lines: [&[Self]; 8], to: &mut [Self], stride: usize);
}

/// Eight by eight: what is written together lies together.
fn transpose_plainly<T: Number>(width: usize, lines: [&[T]; 8], to: &mut [T], stride: usize) {
    for column in (0..width).step_by(8) {
        for i in column..column + 8 {
            for (to, line) in to[i * stride..][..8].iter_mut().zip(lines) {
                *to = line[i];
            }
        }
    }
}

impl Transpose for f64 {
    fn transpose_eight(width: usize, lines: [&[f64]; 8], to: &mut [f64], stride: usize) {
        transpose_plainly(width, lines, to, stride);
    }
}

impl Transpose for f32 {
    fn transpose_eight(width: usize, lines: [&[f32]; 8], to: &mut [f32], stride: usize) {
        #[cfg(target_arch = "x86_64")]
        if crate::level() >= crate::Level::Avx2 {
            assert!(width.is_multiple_of(8) && lines.iter().all(|line| line.len() >= width), "eight lines");
            assert!(
                width == 0 || to.len() > offset([(width - 1, stride)], 7),
                "[{width}, 8] in {} numbers",
                to.len()
            );
            // SAFETY: the processor has the instructions of the level in use, and the assertions bound every
            // access.
            return unsafe {
                x86::transpose_eight(width, lines.map(<[f32]>::as_ptr), to.as_mut_ptr(), stride)
            };
        }
        transpose_plainly(width, lines, to, stride);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Compilers do not find these shuffles, and what they find takes six times as long.
    #[target_feature(enable = "avx2,fma")]
    pub(super) unsafe fn transpose_eight(width: usize, lines: [*const f32; 8], to: *mut f32, stride: usize) {
        for column in (0..width).step_by(8) {
            // SAFETY: the caller's: eight numbers of each line begin here, and eight lines of eight have
            // room.
            unsafe {
                let [a, b, c, d, e, f, g, h] = lines.map(|line| _mm256_loadu_ps(line.add(column)));
                // Of two lines, then of four, the first and the second half of each half register.
                let twos = |a, b| [_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)];
                let fours = |[a, b]: [__m256; 2], [c, d]: [__m256; 2]| {
                    [
                        _mm256_shuffle_ps::<0x44>(a, c),
                        _mm256_shuffle_ps::<0xee>(a, c),
                        _mm256_shuffle_ps::<0x44>(b, d),
                        _mm256_shuffle_ps::<0xee>(b, d),
                    ]
                };
                let (upper, lower) = (fours(twos(a, b), twos(c, d)), fours(twos(e, f), twos(g, h)));
                for i in 0..4 {
                    let (left, right) = (to.add((column + i) * stride), to.add((column + i + 4) * stride));
                    _mm256_storeu_ps(left, _mm256_permute2f128_ps::<0x20>(upper[i], lower[i]));
                    _mm256_storeu_ps(right, _mm256_permute2f128_ps::<0x31>(upper[i], lower[i]));
                }
            }
        }
    }
}

/// Has numbers brought to the cache, for somebody who will ask for them soon.
#[inline]
pub(crate) fn prefetch<T>(numbers: &[T]) {
    #[cfg(target_arch = "x86_64")]
    for line in numbers.chunks(64 / size_of::<T>()) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every x86-64 processor has the instruction, and it changes nothing.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = numbers;
}

vectorized! {
/// to += from.
pub fn add(from: &[T], to: &mut [T]) {
    for (from, to) in from.iter().zip(to) {
        *to += *from;
    }
}
}

vectorized! {
/// to += factor from.
pub fn add_scaled(factor: T, from: &[T], to: &mut [T]) {
    for (from, to) in from.iter().zip(to) {
        *to += *from * factor;
    }
}
}

vectorized! {
/// A step of Adam over some parameters; the gradient is zero afterwards. Of the running means of the gradient
/// and of its square `keep` stays and `take` of the new one comes in; `rate` and `unbias` correct that they
/// began at zero.
pub fn adam(
    rate: T,
    unbias: T,
    keep: [T; 2],
    take: [T; 2],
    epsilon: T,
    parameters: &mut [T],
    mean: &mut [T],
    square: &mut [T],
    gradient: &mut [T],
) {
    let ([keep_mean, keep_square], [take_mean, take_square]) = (keep, take);
    let moments = mean.iter_mut().zip(square);
    for ((parameter, (mean, square)), gradient) in parameters.iter_mut().zip(moments).zip(gradient) {
        let g = *gradient;
        *gradient = T::ZERO;
        *mean = keep_mean * *mean + take_mean * g;
        *square = keep_square * *square + take_square * g * g;
        *parameter -= rate * *mean / ((*square * unbias).sqrt() + epsilon);
    }
}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{self, Level, limit};

    #[test]
    fn rows_become_columns_at_every_level() {
        for (rows, end, width) in
            [(1, 1, 3), (5, 7, 8), (8, 8, 16), (3, 16, 21), (13, 16, 128), (20, 29, 40), (0, 9, 8)]
        {
            let (from_stride, to_stride) = (width + 2, end + 3);
            let from: Vec<f32> = (0..rows * from_stride).map(|i| i as f32 + 1.0).collect();
            let mut expected = vec![-1.0; width * to_stride];
            for (index, cell) in expected.iter_mut().enumerate() {
                match (index % to_stride, index / to_stride) {
                    (row, column) if row < rows => *cell = from[row * from_stride + column],
                    (row, _) if row < end => *cell = 0.0,
                    _ => {}
                }
            }
            let _alone = level::alone();
            for level in [Level::Baseline, Level::Avx2, Level::Avx512] {
                limit(level);
                let mut to = vec![-1.0; width * to_stride];
                transpose([rows, end, width], &from, from_stride, &vec![0.0; width], &mut to, to_stride);
                assert_eq!(to, expected, "{rows} {end} {width} {level:?}");
            }
        }
    }

    #[test]
    #[should_panic]
    fn columns_without_room_are_refused() {
        let _alone = level::alone();
        limit(Level::Avx512);
        f32::transpose_eight(16, [&[0.0; 16]; 8], &mut [0.0; 127], 8);
    }
}
