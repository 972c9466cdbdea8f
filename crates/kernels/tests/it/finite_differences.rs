//! Gradients by going a small step to either side.

/// Numbers between -1 and 1.
pub(crate) fn numbers(count: usize, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
    };
    (0..count).map(|_| next()).collect()
}

/// Checks a gradient at every coordinate.
pub(crate) fn check(what: &str, x: &[f64], gradient: &[f64], loss: impl Fn(&[f64]) -> f64) {
    assert_eq!(x.len(), gradient.len(), "{what}");
    for i in 0..x.len() {
        let at = |step: f64| {
            let mut moved = x.to_vec();
            moved[i] += step;
            loss(&moved)
        };
        // Across a kink a smaller step finds the side that it is on.
        let close = [1e-5, 1e-6, 1e-7].iter().any(|step| {
            let difference = (at(*step) - at(-step)) / (2.0 * step);
            (difference - gradient[i]).abs() <= 1e-5 * (1.0 + difference.abs())
        });
        assert!(close, "{what}[{i}]: {} but {}", gradient[i], (at(1e-6) - at(-1e-6)) / 2e-6);
    }
}
