//! Which trials to give up.

/// So many other trials must be known before one is given up: the median of fewer says little.
pub const OTHERS_NEEDED: usize = 5;

/// Whether a trial may be given up: its best so far is below the median of what the others had as their best
/// up to the same step.
///
/// A curve is what was measured at steps, in any order; higher is better. `others` are the trials that ended:
/// finished, or given up themselves. Those count with what they had: without them the median would be that of
/// the winners, and half of all that are left would have to go again and again. No trial is given up before
/// step `grace`, nor while fewer than [`OTHERS_NEEDED`] others are known at its step. Values that are not
/// numbers are no values; a trial that has none after `grace` is the worst.
pub fn is_hopeless(curve: &[(u64, f64)], others: &[Vec<(u64, f64)>], grace: u64) -> bool {
    let Some(step) = curve.iter().map(|(step, _)| *step).max() else { return false };
    let mut known: Vec<f64> = others.iter().filter_map(|other| best_until(other, step)).collect();
    if step < grace || known.len() < OTHERS_NEEDED {
        return false;
    }
    known.sort_by(f64::total_cmp);
    // The lower of the two in the middle: in doubt a trial goes on.
    let median = known[(known.len() - 1) / 2];
    best_until(curve, step).is_none_or(|best| best < median)
}

fn best_until(curve: &[(u64, f64)], step: u64) -> Option<f64> {
    let values = curve.iter().filter(|(at, value)| *at <= step && !value.is_nan());
    values.map(|(_, value)| *value).max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five trials that have 1, 2, 3, 4, 5 tenths at step 100, and twice that at step 200.
    fn others() -> Vec<Vec<(u64, f64)>> {
        (1..=5).map(|i| f64::from(i) / 10.0).map(|at| vec![(100, at), (200, 2.0 * at)]).collect()
    }

    #[test]
    fn below_the_median_at_its_step() {
        assert!(is_hopeless(&[(100, 0.29)], &others(), 0));
        assert!(!is_hopeless(&[(100, 0.3)], &others(), 0), "a tie goes on");
        assert!(!is_hopeless(&[(150, 0.3)], &others(), 0), "what the others had later does not count");
        assert!(is_hopeless(&[(200, 0.3)], &others(), 0));
    }

    #[test]
    fn its_best_counts_not_its_last() {
        assert!(!is_hopeless(&[(50, 0.35), (100, 0.1)], &others(), 0));
        let mut noisy = others();
        noisy[3].push((90, 0.9));
        noisy[2].push((90, 0.9));
        noisy[1].push((90, 0.9));
        assert!(is_hopeless(&[(100, 0.8)], &noisy, 0));
    }

    #[test]
    fn patience() {
        assert!(!is_hopeless(&[(100, 0.0)], &others(), 101));
        assert!(is_hopeless(&[(100, 0.0)], &others(), 100));
        assert!(!is_hopeless(&[(100, 0.0)], &others()[..4], 0), "too few others");
        assert!(!is_hopeless(&[(99, 0.0)], &others(), 0), "the others have nothing as early as that");
        assert!(!is_hopeless(&[], &others(), 0));
    }

    #[test]
    fn an_even_number_of_others_is_judged_by_the_lower_middle() {
        let mut six = others();
        six.push(vec![(100, 0.6)]);
        assert!(!is_hopeless(&[(100, 0.3)], &six, 0));
        assert!(is_hopeless(&[(100, 0.29)], &six, 0));
    }

    #[test]
    fn what_is_not_a_number_is_the_worst() {
        assert!(is_hopeless(&[(100, f64::NAN)], &others(), 0));
        assert!(!is_hopeless(&[(50, 0.4), (100, f64::NAN)], &others(), 0));
        let mut broken = others();
        broken[0] = vec![(100, f64::NAN)];
        assert!(!is_hopeless(&[(100, 0.0)], &broken, 0), "only four are known");
        assert!(is_hopeless(&[(100, f64::NEG_INFINITY)], &others(), 0));
    }
}
