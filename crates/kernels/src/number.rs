use std::fmt::Debug;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// `f32` or `f64`.
pub trait Number:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Sum
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + crate::gemm::Multiply
    + crate::rows::Transpose
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// The nearest number to `x`.
    fn of(x: f64) -> Self;
    /// This number as f64.
    fn f64(self) -> f64;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// `self * a + b`, rounded once if `FMA`.
    fn fma<const FMA: bool>(self, a: Self, b: Self) -> Self;
    /// e to this number; exactly 0 far below zero.
    fn exp<const FMA: bool>(self) -> Self;
    /// The hyperbolic tangent.
    fn tanh<const FMA: bool>(self) -> Self;

    /// The logistic function.
    #[inline(always)]
    fn sigmoid<const FMA: bool>(self) -> Self {
        Self::ONE / (Self::ONE + (-self).exp::<FMA>())
    }

    /// Whether it is not a number.
    #[inline(always)]
    fn is_nan(self) -> bool {
        self.partial_cmp(&self).is_none()
    }

    /// The larger of two; itself if it is not a number, so that what went wrong is seen in the end.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if other > self { other } else { self }
    }
}

impl Number for f32 {
    const ZERO: f32 = 0.0;
    const ONE: f32 = 1.0;

    #[inline(always)]
    fn of(x: f64) -> f32 {
        x as f32
    }

    #[inline(always)]
    fn f64(self) -> f64 {
        f64::from(self)
    }

    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }

    #[inline(always)]
    fn abs(self) -> f32 {
        f32::abs(self)
    }

    #[inline(always)]
    fn fma<const FMA: bool>(self, a: f32, b: f32) -> f32 {
        if FMA { self.mul_add(a, b) } else { self * a + b }
    }

    /// About 1e-7 relative; without a branch, so that a loop over it vectorises.
    #[inline(always)]
    fn exp<const FMA: bool>(self) -> f32 {
        let Exponential { series, rest, power } = Exponential::of::<FMA>(self);
        if self < -87.0 { 0.0 } else { series.fma::<FMA>(rest, 1.0) * power }
    }

    /// e / (e + 2) for e = exp(2 |x|) - 1, which is exact near zero too.
    #[inline(always)]
    fn tanh<const FMA: bool>(self) -> f32 {
        let Exponential { series, rest, power } = Exponential::of::<FMA>(2.0 * Number::abs(self));
        let e = (series * rest).fma::<FMA>(power, power - 1.0);
        (e / (e + 2.0)).copysign(self)
    }
}

/// The exponential function as (1 + rest * series) * power, for a rest near zero and a power of two.
struct Exponential {
    series: f32,
    rest: f32,
    power: f32,
}

impl Exponential {
    /// Of a number between -87 and 88, or the nearest there.
    #[inline(always)]
    fn of<const FMA: bool>(x: f32) -> Self {
        /// Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
        const ROUND: f32 = 12_582_912.0;
        /// ln 2 in two parts, the first short enough for exact products with a small whole number.
        const LN_2_HIGH: f32 = 0.693_359_4;
        const LN_2_LOW: f32 = -2.121_944_4e-4;
        let x = x.larger(-87.0);
        let x = if x > 88.0 { 88.0 } else { x };
        let rounded = x.fma::<FMA>(std::f32::consts::LOG2_E, ROUND);
        let whole = rounded - ROUND;
        let rest = whole.fma::<FMA>(-LN_2_HIGH, x);
        let rest = whole.fma::<FMA>(-LN_2_LOW, rest);
        let mut series = 1.0 / 5040.0f32;
        for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0] {
            series = series.fma::<FMA>(rest, coefficient);
        }
        let power = rounded.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23;
        Exponential { series, rest, power: f32::from_bits(power) }
    }
}

impl Number for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;

    #[inline(always)]
    fn of(x: f64) -> f64 {
        x
    }

    #[inline(always)]
    fn f64(self) -> f64 {
        self
    }

    #[inline(always)]
    fn sqrt(self) -> f64 {
        f64::sqrt(self)
    }

    #[inline(always)]
    fn abs(self) -> f64 {
        f64::abs(self)
    }

    #[inline(always)]
    fn fma<const FMA: bool>(self, a: f64, b: f64) -> f64 {
        if FMA { self.mul_add(a, b) } else { self * a + b }
    }

    #[inline(always)]
    fn exp<const FMA: bool>(self) -> f64 {
        f64::exp(self)
    }

    #[inline(always)]
    fn tanh<const FMA: bool>(self) -> f64 {
        f64::tanh(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_that_of_the_library() {
        for step in -8700..=8800 {
            let x = step as f32 / 100.0;
            let expected = f64::from(x).exp();
            for got in [Number::exp::<true>(x), Number::exp::<false>(x)] {
                assert!((f64::from(got) / expected - 1.0).abs() < 3e-7, "{x}: {got} {expected}");
            }
        }
        assert_eq!(Number::exp::<true>(-1e30f32), 0.0);
        assert_eq!(Number::exp::<true>(f32::NEG_INFINITY), 0.0);
        assert!(Number::exp::<true>(f32::NAN).is_nan() && Number::exp::<false>(f32::NAN).is_nan());
    }

    #[test]
    fn sigmoid_and_tanh_are_a_few_ulp_from_exact() {
        let close = |got: f32, expected: f64| (f64::from(got) / expected - 1.0).abs() < 5e-7;
        for step in -8000..=8000 {
            // Near zero too, where the difference of two numbers near 1 would have no digits left.
            for x in [step as f32 / 100.0, step as f32 * 1e-7, step as f32 / 8000.0] {
                let (sigmoid, tanh) = (1.0 / (1.0 + (-f64::from(x)).exp()), f64::from(x).tanh());
                for got in [Number::sigmoid::<true>(x), Number::sigmoid::<false>(x)] {
                    assert!(close(got, sigmoid), "{x}: {got} {sigmoid}");
                }
                for got in [Number::tanh::<true>(x), Number::tanh::<false>(x)] {
                    assert!(got == x || close(got, tanh), "{x}: {got} {tanh}");
                }
            }
        }
        assert_eq!([-1e30f32, 1e30].map(Number::tanh::<true>), [-1.0, 1.0]);
        assert_eq!(Number::sigmoid::<true>(1e30f32), 1.0);
        assert!(Number::tanh::<true>(f32::NAN).is_nan() && Number::sigmoid::<true>(f32::NAN).is_nan());
        assert!(Number::is_nan(f32::NAN) && !Number::is_nan(f32::INFINITY));
    }
}
