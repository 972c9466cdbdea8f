//! C (+)= A B, with any strides of A, and B either row by row or in panels.
//!
//! A tile of C is kept in registers while k runs: 12 rows by 32 columns with AVX-512, 6 by 16 with AVX2. Each
//! step loads a row of B and one number of A per row of C. Weights are packed into panels of 32 columns once
//! per step, so that those loads are consecutive. For matrices of a few hundred rows and 128 columns this
//! reaches nine tenths of the processor's peak; a general library, which packs both sides in every call, is
//! slower here.

use std::hint::black_box;
use std::time::Instant;

use crate::Number;
use crate::rows::transpose;

/// Columns per panel of a packed matrix.
pub const PANEL: usize = 32;

/// The left matrix: element (i, k) at `data[i * row + k * column]`.
#[derive(Debug, Clone, Copy)]
pub struct Left<'a, T> {
    /// The numbers.
    pub data: &'a [T],
    /// Distance between rows.
    pub row: usize,
    /// Distance between columns.
    pub column: usize,
}

impl<'a, T> Left<'a, T> {
    /// Rows of consecutive numbers, `stride` apart.
    pub fn rows(data: &'a [T], stride: usize) -> Self {
        Left { data, row: stride, column: 1 }
    }

    /// The transpose of rows of consecutive numbers, `stride` apart.
    pub fn transposed(data: &'a [T], stride: usize) -> Self {
        Left { data, row: 1, column: stride }
    }
}

/// The right matrix: element (k, j) at `data[j / PANEL * panel + k * row + j % PANEL]`.
#[derive(Debug, Clone, Copy)]
pub struct Right<'a, T> {
    data: &'a [T],
    row: usize,
    panel: usize,
}

impl<'a, T> Right<'a, T> {
    /// Rows of consecutive numbers, `stride` apart.
    pub fn rows(data: &'a [T], stride: usize) -> Self {
        Right { data, row: stride, panel: PANEL }
    }

    /// A matrix of `k` rows as [`pack`] or [`pack_transposed`] left it.
    pub fn packed(data: &'a [T], k: usize) -> Self {
        // Never less than a row, so that what is read last is in the last panel.
        Right { data, row: PANEL, panel: PANEL.saturating_mul(k.max(1)) }
    }
}

/// How many numbers a packed matrix takes.
pub fn packed_len(k: usize, n: usize) -> usize {
    n.div_ceil(PANEL) * PANEL * k
}

/// Packs W [k, n] for X W.
pub fn pack<T: Number>(w: &[T], k: usize, n: usize, out: &mut [T]) {
    for (panel, out) in out[..packed_len(k, n)].chunks_exact_mut(PANEL * k.max(1)).enumerate() {
        let columns = PANEL.min(n - panel * PANEL);
        for (row, out) in out.chunks_exact_mut(PANEL).enumerate() {
            out[..columns].copy_from_slice(&w[row * n + panel * PANEL..][..columns]);
            out[columns..].fill(T::ZERO);
        }
    }
}

/// Packs the transpose of W [k, n], for dY W'.
pub fn pack_transposed<T: Number>(w: &[T], k: usize, n: usize, out: &mut [T]) {
    let zeros = vec![T::ZERO; n];
    for (panel, out) in out[..packed_len(n, k)].chunks_exact_mut(PANEL * n.max(1)).enumerate() {
        let rows = PANEL.min(k - panel * PANEL);
        transpose([rows, PANEL, n], &w[panel * PANEL * n..], n, &zeros, out, PANEL);
    }
}

/// Offset of the element that is so many steps of such lengths from the first; `usize::MAX`, which no slice
/// has, if it overflows.
pub(crate) fn offset<const N: usize>(steps: [(usize, usize); N], rest: usize) -> usize {
    steps.iter().fold(rest, |offset, (count, length)| offset.saturating_add(count.saturating_mul(*length)))
}

/// What to do with what is in C.
#[derive(Debug, Clone, Copy)]
pub enum Into<'a, T> {
    /// Write over it.
    Set,
    /// Add to it.
    Add,
    /// Write max(A B + bias, least) over it.
    Layer {
        /// One number for each column.
        bias: &'a [T],
        /// For each element.
        least: T,
    },
    /// Write A B + D X over it, for a diagonal D.
    Beside {
        /// D, and how far apart its numbers are.
        diagonal: (&'a [T], usize),
        /// X, and how far apart its rows are.
        x: (&'a [T], usize),
    },
}

/// C [m, n] = A [m, k] B [k, n], or C += A B; rows of C are `stride` apart.
///
/// # Panics
/// If a matrix is smaller than its sizes and strides say.
pub fn gemm<T: Number>(
    [m, n, k]: [usize; 3],
    a: Left<'_, T>,
    b: Right<'_, T>,
    c: &mut [T],
    stride: usize,
    into: Into<'_, T>,
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(stride >= n && c.len() > offset([(m - 1, stride)], n - 1), "C [{m}, {n}] in {} numbers", c.len());
    if k > 0 {
        let (a_last, b_last) = (
            offset([(m - 1, a.row), (k - 1, a.column)], 0),
            offset([((n - 1) / PANEL, b.panel), (k - 1, b.row)], (n - 1) % PANEL),
        );
        assert!(a.data.len() > a_last, "A [{m}, {k}] in {} numbers", a.data.len());
        assert!(b.data.len() > b_last, "B [{k}, {n}] in {} numbers", b.data.len());
    }
    match into {
        Into::Layer { bias, .. } => assert!(bias.len() >= n, "{} biases for {n} columns", bias.len()),
        Into::Beside { diagonal: (diagonal, step), x: (x, stride) } => {
            assert!(diagonal.len() > offset([(m - 1, step)], 0), "D [{m}] in {} numbers", diagonal.len());
            assert!(x.len() > offset([(m - 1, stride)], n - 1), "X [{m}, {n}] in {} numbers", x.len());
        }
        _ => {}
    }
    // SAFETY: the assertions bound every access.
    unsafe { T::multiply([m, n, k], a, b, c.as_mut_ptr(), stride, into) }
}

/// A number that can be multiplied in tiles; see [`gemm`].
pub trait Multiply: Sized {
    /// [`gemm`] without its checks.
    ///
    /// # Safety
    /// The matrices must be as large as their sizes and strides say.
    unsafe fn multiply(
        sizes: [usize; 3],
        a: Left<'_, Self>,
        b: Right<'_, Self>,
        c: *mut Self,
        stride: usize,
        into: Into<'_, Self>,
    );
}

/// A vector register.
trait Register<T>: Copy {
    const LANES: usize;
    unsafe fn splat(x: T) -> Self;
    unsafe fn load(from: *const T) -> Self;
    unsafe fn store(self, to: *mut T);
    /// `a * b + self`.
    unsafe fn accumulate(self, a: Self, b: Self) -> Self;
    /// The larger of two; itself where it is not a number.
    unsafe fn larger(self, other: Self) -> Self;
}

/// One number: for the last columns, and for `f64`, which is for tests.
impl<T: Number> Register<T> for T {
    const LANES: usize = 1;

    #[inline(always)]
    unsafe fn splat(x: T) -> Self {
        x
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller's.
        unsafe { *from }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller's.
        unsafe { *to = self }
    }

    #[inline(always)]
    unsafe fn accumulate(self, a: T, b: T) -> Self {
        a * b + self
    }

    #[inline(always)]
    unsafe fn larger(self, other: T) -> Self {
        Number::larger(self, other)
    }
}

/// Four numbers, which compilers turn into a register of any processor.
#[derive(Clone, Copy)]
struct Four([f32; 4]);

impl Register<f32> for Four {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn splat(x: f32) -> Self {
        Four([x; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's; an array of f32 needs no more alignment than an f32.
        Four(unsafe { *from.cast() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as above.
        unsafe { *to.cast() = self.0 }
    }

    #[inline(always)]
    unsafe fn accumulate(self, a: Self, b: Self) -> Self {
        Four(std::array::from_fn(|lane| a.0[lane] * b.0[lane] + self.0[lane]))
    }

    #[inline(always)]
    unsafe fn larger(self, other: Self) -> Self {
        Four(std::array::from_fn(|lane| Number::larger(self.0[lane], other.0[lane])))
    }
}

/// ROWS by REGISTERS of C, over all of k.
#[inline(always)]
unsafe fn tile<T: Number, R: Register<T>, const ROWS: usize, const REGISTERS: usize>(
    k: usize,
    (mut a, a_row, a_column): (*const T, usize, usize),
    (mut b, b_row): (*const T, usize),
    (c, stride): (*mut T, usize),
    (into, row, column): (&Into<'_, T>, usize, usize),
) {
    // SAFETY: the caller's: all rows, columns and steps are inside their matrices. A pointer moved beyond the
    // last step is not used.
    unsafe {
        let mut sums = [[R::splat(T::ZERO); REGISTERS]; ROWS];
        for _ in 0..k {
            let mut row = [R::splat(T::ZERO); REGISTERS];
            for (register, value) in row.iter_mut().enumerate() {
                *value = R::load(b.add(register * R::LANES));
            }
            for (i, sums) in sums.iter_mut().enumerate() {
                let x = R::splat(*a.add(i * a_row));
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum = sum.accumulate(x, value);
                }
            }
            (a, b) = (a.wrapping_add(a_column), b.wrapping_add(b_row));
        }
        let to = (c, stride);
        match *into {
            Into::Set => store(sums, to, |sum, _, _| sum),
            Into::Add => {
                store(sums, to, |sum, i, j| R::load(c.add(i * stride + j)).accumulate(R::splat(T::ONE), sum))
            }
            Into::Layer { bias, least } => store(sums, to, |sum, _, j| {
                let bias = R::load(bias.as_ptr().add(column + j));
                bias.accumulate(R::splat(T::ONE), sum).larger(R::splat(least))
            }),
            Into::Beside { diagonal: (diagonal, step), x: (x, stride) } => store(sums, to, |sum, i, j| {
                let x = R::load(x.as_ptr().add((row + i) * stride + column + j));
                sum.accumulate(R::splat(*diagonal.as_ptr().add((row + i) * step)), x)
            }),
        }
    }
}

/// Writes what `finish` makes of the sums of a tile, each with its row and its first column.
#[inline(always)]
unsafe fn store<T, R: Register<T>, const ROWS: usize, const REGISTERS: usize>(
    sums: [[R; REGISTERS]; ROWS],
    (c, stride): (*mut T, usize),
    finish: impl Fn(R, usize, usize) -> R,
) {
    for (i, sums) in sums.into_iter().enumerate() {
        for (register, sum) in sums.into_iter().enumerate() {
            // SAFETY: the caller's: the tile is inside of C.
            unsafe { finish(sum, i, register * R::LANES).store(c.add(i * stride + register * R::LANES)) }
        }
    }
}

/// Columns `from..to` of C in tiles of ROWS by REGISTERS.
#[inline(always)]
unsafe fn columns<T: Number, R: Register<T>, const ROWS: usize, const REGISTERS: usize>(
    [m, from, to, k]: [usize; 4],
    a: Left<'_, T>,
    b: Right<'_, T>,
    c: *mut T,
    stride: usize,
    into: &Into<'_, T>,
) {
    for j in (from..to).step_by(REGISTERS * R::LANES) {
        // SAFETY: the caller's: column j and those of its tile are inside B and C, and so are all m rows of A
        // and C.
        unsafe {
            let b = (b.data.as_ptr().wrapping_add(j / PANEL * b.panel + j % PANEL), b.row);
            let a_at = |i: usize| (a.data.as_ptr().wrapping_add(i * a.row), a.row, a.column);
            let c_at = |i: usize| (c.wrapping_add(i * stride + j), stride);
            // Three rows or fewer would wait for their own sums: they share with the tile before them.
            let few = m > ROWS && (1..4).contains(&(m % ROWS));
            let whole = m - m % ROWS - if few { ROWS } else { 0 };
            for i in (0..whole).step_by(ROWS) {
                tile::<T, R, ROWS, REGISTERS>(k, a_at(i), b, c_at(i), (into, i, j));
            }
            let mut i = whole;
            for rows in if few { [(m - whole).div_ceil(2), (m - whole) / 2] } else { [m - whole, 0] } {
                macro_rules! rest {
                    ($($rows:literal)*) => {
                        match rows {
                            $($rows if $rows <= ROWS => {
                                tile::<T, R, $rows, REGISTERS>(k, a_at(i), b, c_at(i), (into, i, j));
                            })*
                            _ => {}
                        }
                    };
                }
                rest!(1 2 3 4 5 6 7 8 9 10 11);
                i += rows;
            }
        }
    }
}

/// Nothing but multiply-adds, in as many independent chains as keep every unit busy and fit into registers;
/// returns how many operations they are.
#[inline(always)]
unsafe fn multiply_adds<R: Register<f32>>(rounds: usize) -> usize {
    const CHAINS: usize = 12;
    // SAFETY: the caller's: the processor has the instructions.
    unsafe {
        let x = R::splat(black_box(0.5));
        let mut sums = [x; CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = sum.accumulate(x, *sum);
            }
        }
        for sum in sums {
            let mut lanes = [0.0f32; 16];
            sum.store(lanes.as_mut_ptr());
            black_box(lanes);
        }
    }
    2 * R::LANES * CHAINS * rounds
}

/// The single-precision operations per second that one thread can do at most, measured: a multiply-add is
/// two.
pub fn peak() -> f64 {
    const ROUNDS: usize = 1_000_000;
    let measure = |_| {
        let start = Instant::now();
        // SAFETY: a level is in use only if the processor has its instructions.
        let operations = unsafe {
            match crate::level() {
                #[cfg(target_arch = "x86_64")]
                crate::Level::Avx512 => x86::avx512_peak(ROUNDS),
                #[cfg(target_arch = "x86_64")]
                crate::Level::Avx2 => x86::avx2_peak(ROUNDS),
                _ => multiply_adds::<Four>(ROUNDS),
            }
        };
        operations as f64 / start.elapsed().as_secs_f64()
    };
    (0..10).map(measure).fold(0.0, f64::max)
}

impl Multiply for f64 {
    unsafe fn multiply(
        [m, n, k]: [usize; 3],
        a: Left<'_, f64>,
        b: Right<'_, f64>,
        c: *mut f64,
        stride: usize,
        into: Into<'_, f64>,
    ) {
        // SAFETY: the caller's.
        unsafe { columns::<f64, f64, 4, 1>([m, 0, n, k], a, b, c, stride, &into) }
    }
}

impl Multiply for f32 {
    unsafe fn multiply(
        [m, n, k]: [usize; 3],
        a: Left<'_, f32>,
        b: Right<'_, f32>,
        c: *mut f32,
        stride: usize,
        into: Into<'_, f32>,
    ) {
        // SAFETY: the caller's; a level is in use only if the processor has its instructions.
        unsafe {
            let done = match crate::level() {
                #[cfg(target_arch = "x86_64")]
                crate::Level::Avx512 => x86::avx512([m, n, k], a, b, c, stride, &into),
                #[cfg(target_arch = "x86_64")]
                crate::Level::Avx2 => x86::avx2([m, n, k], a, b, c, stride, &into),
                _ => {
                    let (wide, done) = (n / 8 * 8, n / 4 * 4);
                    columns::<f32, Four, 4, 2>([m, 0, wide, k], a, b, c, stride, &into);
                    columns::<f32, Four, 4, 1>([m, wide, done, k], a, b, c, stride, &into);
                    done
                }
            };
            columns::<f32, f32, 4, 1>([m, done, n, k], a, b, c, stride, &into);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Into, Left, Register, Right, columns};

    macro_rules! register {
        ($type:ty, $lanes:literal, $splat:ident, $load:ident, $store:ident, $larger:ident,
         |$a:ident, $b:ident, $sum:ident| $fma:expr) => {
            impl Register<f32> for $type {
                const LANES: usize = $lanes;

                #[inline(always)]
                unsafe fn splat(x: f32) -> Self {
                    // SAFETY: the caller's: the processor has the instructions.
                    unsafe { $splat(x) }
                }

                #[inline(always)]
                unsafe fn load(from: *const f32) -> Self {
                    // SAFETY: the caller's.
                    unsafe { $load(from) }
                }

                #[inline(always)]
                unsafe fn store(self, to: *mut f32) {
                    // SAFETY: the caller's.
                    unsafe { $store(to, self) }
                }

                #[inline(always)]
                unsafe fn accumulate(self, $a: Self, $b: Self) -> Self {
                    let $sum = self;
                    // SAFETY: the caller's.
                    unsafe { $fma }
                }

                #[inline(always)]
                unsafe fn larger(self, other: Self) -> Self {
                    // SAFETY: the caller's.
                    // Of two of which one is not a number, the processor takes the second.
                    unsafe { $larger(other, self) }
                }
            }
        };
    }

    register!(__m512, 16, _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_max_ps, |a, b, sum| {
        _mm512_fmadd_ps(a, b, sum)
    });
    register!(__m256, 8, _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_max_ps, |a, b, sum| {
        _mm256_fmadd_ps(a, b, sum)
    });

    /// A product with tiles of so many rows by two registers, then by one; returns how many columns fill
    /// registers and are done.
    macro_rules! product {
        ($name:ident, $peak:ident, $features:literal, $register:ty, $rows:literal) => {
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $peak(rounds: usize) -> usize {
                // SAFETY: the caller's.
                unsafe { super::multiply_adds::<$register>(rounds) }
            }

            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(
                [m, n, k]: [usize; 3],
                a: Left<'_, f32>,
                b: Right<'_, f32>,
                c: *mut f32,
                stride: usize,
                into: &Into<'_, f32>,
            ) -> usize {
                const LANES: usize = <$register as Register<f32>>::LANES;
                let (wide, done) = (n - n % (2 * LANES), n - n % LANES);
                // SAFETY: the caller's.
                unsafe {
                    columns::<f32, $register, $rows, 2>([m, 0, wide, k], a, b, c, stride, into);
                    columns::<f32, $register, $rows, 1>([m, wide, done, k], a, b, c, stride, into);
                }
                done
            }
        };
    }

    product!(avx512, avx512_peak, "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma", __m512, 12);
    product!(avx2, avx2_peak, "avx2,fma", __m256, 6);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::level::{self, Level, limit};

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    fn naive(
        [m, n, k]: [usize; 3],
        a: impl Fn(usize, usize) -> f32,
        b: impl Fn(usize, usize) -> f32,
    ) -> Vec<f64> {
        let dot = |i, j| (0..k).map(|x| f64::from(a(i, x)) * f64::from(b(x, j))).sum();
        (0..m).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| dot(i, j)).collect()
    }

    fn assert_close(got: &[f32], stride: usize, n: usize, expected: &[f64]) {
        for (row, expected) in expected.chunks(n).enumerate() {
            for (got, expected) in got[row * stride..].iter().zip(expected) {
                // A sum of at most 70 products of numbers below 1, in f32.
                assert!((f64::from(*got) - expected).abs() < 2e-5, "{got} {expected}");
            }
        }
    }

    #[test]
    #[should_panic = "B [1, 33] in 1 numbers"]
    fn a_packed_matrix_without_rows_is_too_small() {
        gemm([1, 33, 1], Left::rows(&[1.0], 1), Right::packed(&[1.0], 0), &mut [0.0f32; 33], 33, Into::Set);
    }

    #[test]
    #[should_panic = "A [3, 1] in 1 numbers"]
    fn strides_that_overflow_are_too_large() {
        let (a, b) = (Left::rows(&[1.0], usize::MAX / 2 + 1), Right::rows(&[1.0], 1));
        gemm([3, 1, 1], a, b, &mut [0.0f32; 3], 1, Into::Set);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn every_level_and_layout_gives_the_product(
            m in 1usize..40, n in 1usize..70, k in 0usize..70, seed: u32, spare in 0usize..5, level in 1u8..4,
        ) {
            let _alone = level::alone();
            limit([Level::Baseline, Level::Avx2, Level::Avx512][usize::from(level) - 1]);
            let (a, w) = (numbers(m * (k + spare) + spare, seed), numbers(k * n, seed ^ 1));
            let stride = n + spare;
            let expected = naive([m, n, k], |i, x| a[i * (k + spare) + x], |x, j| w[x * n + j]);
            let before = numbers(m * stride, seed ^ 2);

            let mut c = before.clone();
            gemm([m, n, k], Left::rows(&a, k + spare), Right::rows(&w, n), &mut c, stride, Into::Set);
            assert_close(&c, stride, n, &expected);
            for (i, (now, then)) in c.iter().zip(&before).enumerate() {
                prop_assert!(i % stride < n || now == then, "what is between the rows stays");
            }

            let mut packed = vec![f32::NAN; packed_len(k, n)];
            pack(&w, k, n, &mut packed);
            let mut c = before.clone();
            gemm([m, n, k], Left::rows(&a, k + spare), Right::packed(&packed, k), &mut c, stride, Into::Add);
            let added: Vec<f64> = (expected.iter().enumerate())
                .map(|(i, product)| product + f64::from(before[i / n * stride + i % n]))
                .collect();
            assert_close(&c, stride, n, &added);

            let (bias, diagonal) = (numbers(n, seed ^ 5), numbers(m * 2, seed ^ 6));
            let x = numbers(m * stride, seed ^ 7);
            let mut c = before.clone();
            let into = Into::Layer { bias: &bias, least: -0.25 };
            gemm([m, n, k], Left::rows(&a, k + spare), Right::packed(&packed, k), &mut c, stride, into);
            let layer: Vec<f64> = (expected.iter().enumerate())
                .map(|(i, product)| (product + f64::from(bias[i % n])).max(-0.25))
                .collect();
            assert_close(&c, stride, n, &layer);

            let mut c = before.clone();
            let into = Into::Beside { diagonal: (&diagonal, 2), x: (&x, stride) };
            gemm([m, n, k], Left::rows(&a, k + spare), Right::packed(&packed, k), &mut c, stride, into);
            let beside: Vec<f64> = (expected.iter().enumerate())
                .map(|(i, product)| {
                    product + f64::from(diagonal[i / n * 2]) * f64::from(x[i / n * stride + i % n])
                })
                .collect();
            assert_close(&c, stride, n, &beside);

            // C = A' B for A [k, m], and C = A B' for B [n, k].
            let (left, right) = (numbers(k * m, seed ^ 3), numbers(n * k, seed ^ 4));
            let mut packed = vec![f32::NAN; packed_len(k, n)];
            pack_transposed(&right, n, k, &mut packed);
            let mut c = before;
            gemm([m, n, k], Left::transposed(&left, m), Right::packed(&packed, k), &mut c, stride, Into::Set);
            let expected = naive([m, n, k], |i, x| left[x * m + i], |x, j| right[j * k + x]);
            assert_close(&c, stride, n, &expected);
        }
    }

    #[test]
    #[should_panic(expected = "B [3, 2] in 5 numbers")]
    fn a_matrix_that_is_too_small_is_refused() {
        gemm([2, 2, 3], Left::rows(&[0.0; 6], 3), Right::rows(&[0.0; 5], 2), &mut [0.0f32; 4], 2, Into::Set);
    }
}
