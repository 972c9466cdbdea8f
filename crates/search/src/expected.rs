//! Expected improvement, as its logarithm: far from everything good it is smaller than any floating-point
//! number, and the search would see a plain of zeros (Ament et al. 2023, arXiv:2310.20708).

use std::f64::consts::{PI, SQRT_2};

/// The logarithm of E[max(Y - best, 0)] for a normal Y; -infinity if that is 0.
pub(super) fn log_improvement(mean: f64, deviation: f64, best: f64) -> f64 {
    if deviation <= 0.0 {
        return (mean - best).max(0.0).ln();
    }
    let z = (mean - best) / deviation;
    deviation.ln() + log_unit_improvement(z)
}

/// log(phi(z) + z Phi(z)).
fn log_unit_improvement(z: f64) -> f64 {
    let log_density = -0.5 * z * z - 0.5 * (2.0 * PI).ln();
    if z > -6.0 {
        return (log_density.exp() + 0.5 * z * libm::erfc(-z / SQRT_2)).ln();
    }
    // The two terms cancel; their asymptotic series does not.
    let s = 1.0 / (z * z);
    log_density + s.ln() + (1.0 - s * (3.0 - s * (15.0 - s * 105.0))).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the trapezoidal rule over y > best, relative to exp(-z²/2), which would underflow.
    fn integrated(z: f64) -> f64 {
        let (steps, end) = (400_000, 40.0);
        let step = end / f64::from(steps);
        let at = |i: i32| {
            let t = f64::from(i) * step;
            t * (t * z - 0.5 * t * t).exp()
        };
        let sum: f64 = (0..=steps).map(at).sum();
        (sum * step / (2.0 * PI).sqrt()).ln() - 0.5 * z * z
    }

    #[test]
    fn it_is_the_integral() {
        for z in [-60.0, -12.0, -6.1, -6.0, -5.9, -3.0, -1.0, 0.0, 0.7, 3.0, 8.0] {
            let (got, expected) = (log_unit_improvement(z), integrated(z));
            // The series leaves out a term of 945/z^8, 6e-4 at -6.
            assert!((got - expected).abs() < 7e-4, "{z}: {got} {expected}");
        }
    }

    #[test]
    fn it_is_never_not_a_number() {
        assert_eq!(log_improvement(2.0, 0.0, 1.0), 0.0);
        assert_eq!(log_improvement(1.0, 0.0, 1.0), f64::NEG_INFINITY);
        for z in [-1e300, -1e10, 1e10, 1e300] {
            assert!(!log_improvement(z, 1.0, 0.0).is_nan(), "{z}");
            assert!(!log_improvement(z, 1e-300, 0.0).is_nan(), "{z}");
        }
        assert!(log_improvement(-1e5, 1.0, 0.0) > log_improvement(-2e5, 1.0, 0.0));
    }
}
