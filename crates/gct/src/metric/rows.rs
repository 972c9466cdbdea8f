//! Rows of attention (or of P) as distributions over nodes. In nats: logarithms are natural.

/// Keeps the logarithm finite where `q` is zero.
const EPSILON: f64 = 1e-12;

/// Kullback-Leibler divergence: the sum of p ln((p + 1e-12) / (q + 1e-12)), in nats. Terms with p = 0 are 0.
///
/// Not negative if both rows sum to one, up to rounding; 0 for equal rows; at most about 28 where q is 0.
///
/// # Panics
/// If the rows differ in length.
pub fn kl(p: &[f32], q: &[f32]) -> f64 {
    assert_eq!(p.len(), q.len(), "rows must have the same length");
    let pairs = p.iter().zip(q).map(|(&p, &q)| (f64::from(p), f64::from(q)));
    pairs.filter(|(p, _)| *p != 0.0).map(|(p, q)| p * ((p + EPSILON) / (q + EPSILON)).ln()).sum()
}

/// Entropy: the sum of -p ln p, in nats. From 0, all on one node, to the logarithm of the number of nodes.
pub fn entropy(p: &[f32]) -> f64 {
    let values = p.iter().map(|&p| f64::from(p));
    // Added to a positive zero, so that no row has an entropy of -0.
    values.filter(|p| *p != 0.0).fold(0.0, |sum, p| sum - p * p.ln())
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use proptest::prelude::*;

    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn by_hand() {
        assert!(close(kl(&[0.5, 0.5], &[0.25, 0.75]), 0.5 * 2f64.ln() + 0.5 * (2.0f64 / 3.0).ln()));
        assert!(close(kl(&[0.0, 1.0], &[0.5, 0.5]), LN_2));
        assert!(close(kl(&[1.0, 0.0], &[0.0, 1.0]), -1e-12f64.ln()));
        assert!(close(entropy(&[0.25; 4]), 2.0 * LN_2));
        assert!(close(entropy(&[0.5, 0.0, 0.5]), LN_2));
        assert_eq!(entropy(&[1.0, 0.0]).to_bits(), 0);
        assert_eq!((kl(&[], &[]), entropy(&[])), (0.0, 0.0));
    }

    #[test]
    #[should_panic(expected = "the same length")]
    fn rows_of_different_length_are_refused() {
        kl(&[1.0], &[0.5, 0.5]);
    }

    fn distribution() -> impl Strategy<Value = Vec<f32>> {
        let weights = prop::collection::vec(0u8..5, 6).prop_filter("a sum", |of| of.iter().any(|&w| w > 0));
        weights.prop_map(|weights| {
            let sum: f32 = weights.iter().map(|&weight| f32::from(weight)).sum();
            weights.iter().map(|&weight| f32::from(weight) / sum).collect()
        })
    }

    proptest! {
        #[test]
        fn divergence_is_cross_entropy_less_entropy(p in distribution(), q in distribution()) {
            let terms = p.iter().zip(&q).map(|(&p, &q)| -f64::from(p) * (f64::from(q) + 1e-12).ln());
            let cross: f64 = terms.sum();
            prop_assert!(close(kl(&p, &q), cross - entropy(&p)));
            prop_assert!(kl(&p, &q) > -1e-6 && kl(&p, &p) == 0.0);
        }
    }
}
