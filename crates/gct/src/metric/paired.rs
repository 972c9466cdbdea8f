//! Whether one model is better than another, over the same splits.

use std::fmt;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean difference of two models over splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// How probable a difference so large, in either direction, would be between equals.
    pub p: f64,
}

/// Differences that equals would show less often than this are marked.
pub const SIGNIFICANT: f64 = 0.05;

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.p < SIGNIFICANT { "*" } else { "" };
        write!(to, "{:+.4} ± {:.4}{mark}", self.mean, self.standard_error)
    }
}

/// The corrected resampled t-test of Nadeau and Bengio (2003) on differences, one per split. Splits of the
/// same data share most of their training encounters, so their results are not independent and the common
/// t-test would see differences where there are none; `test_share` is the number of test encounters per
/// training encounter. Undefined for fewer than two splits, or if all differences are the same.
pub fn paired(differences: &[f64], test_share: f64) -> Option<Difference> {
    let count = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / count;
    let variance = differences.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let standard_error = ((1.0 / count + test_share) * variance).sqrt();
    if differences.len() < 2 || !standard_error.is_finite() || standard_error <= 0.0 {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
    let p = 2.0 * (1.0 - t.cdf((mean / standard_error).abs()));
    Some(Difference { mean, standard_error, p })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_t_test_where_splits_share_nothing() {
        // scipy.stats.ttest_1samp([1, 2, 3, 4, 2.5], 0): t = 5, p = 0.00749.
        let Difference { mean, standard_error, p } = paired(&[1.0, 2.0, 3.0, 4.0, 2.5], 0.0).unwrap();
        assert!((mean - 2.5).abs() < 1e-12 && (standard_error - 0.5).abs() < 1e-12);
        assert!((p - 0.007_490).abs() < 1e-6, "{p}");
        // By hand: the variance is larger by (1/5 + 1/8) / (1/5).
        let corrected = paired(&[1.0, 2.0, 3.0, 4.0, 2.5], 0.125).unwrap();
        assert!((corrected.standard_error - 0.5 * 1.625f64.sqrt()).abs() < 1e-12);
        assert!(corrected.p > p);
    }

    #[test]
    fn it_is_undefined_where_nothing_varies() {
        assert_eq!(paired(&[], 0.1), None);
        assert_eq!(paired(&[1.0], 0.1), None);
        assert_eq!(paired(&[1.0, 1.0], 0.1), None);
    }
}
