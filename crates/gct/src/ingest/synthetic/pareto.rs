//! Pareto weights by the thousand.
//!
//! A row of p(R|m,d) is made anew whenever it is needed, so this is the generator's hot loop. It is written
//! with additions, multiplications, divisions and integer operations alone: the compiler turns it into vector
//! instructions, and IEEE 754 then promises the same bits on every machine, which a system's `pow` does not.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Fills `weights` with independent draws of u^(-1/shape) - 1, u uniform on (0, 1): the distribution that
/// NumPy's `random.pareto(shape)` has (Pareto II, Lomax).
pub(super) fn fill(rng: &mut Xoshiro256PlusPlus, shape: f32, weights: &mut [f32]) {
    let exponent = 1.0 / shape;
    let mut pairs = weights.chunks_exact_mut(2);
    for pair in &mut pairs {
        let bits = rng.next_u64();
        // Kept as bits until the loop below, which has no calls and vectorises.
        pair[0] = f32::from_bits(bits as u32);
        pair[1] = f32::from_bits((bits >> 32) as u32);
    }
    for last in pairs.into_remainder() {
        *last = f32::from_bits(rng.next_u64() as u32);
    }
    for weight in weights {
        *weight = power_law(weight.to_bits(), exponent);
    }
}

/// u^(-exponent) - 1 for u = (k + 1/2) / 2^31, where k is the upper 31 bits.
#[inline(always)]
fn power_law(bits: u32, exponent: f32) -> f32 {
    let u = (bits >> 1) as i32 as f32 + 0.5;
    // At least 0: u rounds up to 2^31 at most.
    let log2_inverse = 31.0 - log2(u);
    (exp2(log2_inverse * exponent) - 1.0).max(0.0)
}

/// Base-2 logarithm of a normal positive number, to about 1e-7 absolute.
#[inline(always)]
fn log2(x: f32) -> f32 {
    const SQRT_HALF_BITS: i32 = 0x3f35_04f3;
    // Split x = 2^e * m with m in [sqrt(1/2), sqrt(2)).
    let offset = x.to_bits() as i32 - SQRT_HALF_BITS;
    let e = offset >> 23;
    let m = f32::from_bits((x.to_bits() as i32 - (e << 23)) as u32);
    // ln m = 2 artanh(z): |z| <= 0.172, so four terms reach the precision of f32.
    let z = (m - 1.0) / (m + 1.0);
    let z2 = z * z;
    let series = 1.0 + z2 * (1.0 / 3.0 + z2 * (1.0 / 5.0 + z2 * (1.0 / 7.0)));
    e as f32 + 2.0 * std::f32::consts::LOG2_E * z * series
}

/// 2^y for 0 <= y < 127, to about 1e-7 relative.
#[inline(always)]
fn exp2(y: f32) -> f32 {
    // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits: a cast would check for
    // overflow.
    const ROUND: f32 = 12_582_912.0;
    let rounded = y + ROUND;
    let x = (y - (rounded - ROUND)) * std::f32::consts::LN_2;
    // e^x by Taylor for |x| <= 0.347: the next term is about 1e-7.
    let series = 1.0
        + x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0 + x * (1.0 / 720.0))))));
    let whole = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    series * f32::from_bits(whole.wrapping_add(127) << 23)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn agrees_with_the_library_functions() {
        let mut bits = 1u32;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for shape in [0.5, 1.5, 2.0, 20.0] {
                let u = (f64::from(bits >> 1) + 0.5) / f64::from(1u32 << 31);
                let expected = u.powf(-1.0 / f64::from(shape)) - 1.0;
                let got = f64::from(power_law(bits, 1.0 / shape));
                // f32 holds the logarithm to 1e-6 or so; the exponent 1/0.5 doubles that.
                assert!(
                    (got - expected).abs() <= 1e-5 * (1.0 + expected),
                    "{bits} {shape}: {got} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_ends_of_the_range_are_finite_and_not_negative() {
        for bits in [0, 1, 2, u32::MAX - 1, u32::MAX] {
            let weight = power_law(bits, 2.0);
            assert!(weight.is_finite() && weight >= 0.0, "{bits}: {weight}");
        }
    }

    #[test]
    fn has_the_quantiles_of_a_pareto() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut weights = vec![0.0; 100_001];
        fill(&mut rng, 1.5, &mut weights);
        weights.sort_by(f32::total_cmp);
        for quantile in [0.1f64, 0.5, 0.9, 0.99] {
            let expected = (1.0 - quantile).powf(-1.0 / 1.5) - 1.0;
            let got = f64::from(weights[(quantile * 100_000.0) as usize]);
            // Three standard errors of a sample quantile of 100,000 are below 3 % here.
            assert!((got / expected - 1.0).abs() < 0.03, "{quantile}: {got} {expected}");
        }
    }
}
