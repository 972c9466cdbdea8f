//! How strongly each cause leads to each effect, learned without seeing an edge.
//!
//! Two codes may share many encounters because one leads to the other, or only because a third one leads to
//! both. So let every cause c of an encounter lead to effect e by itself, with strength q(c, e): e is there
//! unless all of them fail (a noisy-or). If it is there, the chance that c led to it is
//!
//! ```text
//! q(c, e) / (1 - product over the causes c' of the encounter of (1 - q(c', e)))
//! ```
//!
//! Expectation-maximisation in turn takes these chances for counts, and q(c, e) for the expected number of
//! encounters in which c led to e over the number of encounters with c. It begins with p(e|c). Few rounds are
//! better than many: pairs that were seen once or twice soon explain themselves.

use super::PairCounts;

/// Rounds of expectation-maximisation: of 1 to 20, those with which the chances rank the true edges of
/// synthetic data best.
const ROUNDS: usize = 2;

/// No effect is certain: others may have led to it too.
const STRONGEST: f64 = 0.999;

/// Causes and effects of one encounter.
pub(super) type Together<'a> = (&'a [u32], &'a [u32]);

/// Learns the strength of every pair that was counted; `causes` has in how many encounters each cause is.
pub(super) fn learn<'a>(
    pairs: &mut PairCounts,
    causes: &[u32],
    encounters: impl Iterator<Item = Together<'a>> + Clone,
) {
    let cause_of: Vec<usize> = (pairs.starts.windows(2).enumerate())
        .flat_map(|(cause, row)| std::iter::repeat_n(cause, row[1] - row[0]))
        .collect();
    let strength =
        |expected: f64, index: usize| (expected / f64::from(causes[cause_of[index]])).min(STRONGEST) as f32;
    pairs.strengths =
        (0..).zip(&pairs.counts).map(|(index, count)| strength(f64::from(*count), index)).collect();
    let mut indices = Vec::new();
    for _ in 0..ROUNDS {
        let mut expected = vec![0.0; pairs.counts.len()];
        for (causes, effects) in encounters.clone() {
            for &effect in effects {
                indices.clear();
                indices.extend(causes.iter().filter_map(|cause| pairs.index(*cause, effect)));
                let none: f64 =
                    indices.iter().map(|index| 1.0 - f64::from(pairs.strengths[*index])).product();
                for &index in &indices {
                    expected[index] +=
                        f64::from(pairs.strengths[index]) / (1.0 - none).max(f64::MIN_POSITIVE);
                }
            }
        }
        pairs.strengths = (0..).zip(&expected).map(|(index, expected)| strength(*expected, index)).collect();
    }
}

/// The chance that each cause led to an effect that is there, given the strengths with which they lead to it.
/// Of strengths that are all zero, nobody did.
pub(super) fn explain(strengths: &mut [f32]) {
    // By logarithms, in which small strengths are not lost beside 1.
    let none: f64 = strengths.iter().map(|strength| f64::from(-*strength).ln_1p()).sum();
    let any = -none.exp_m1();
    if any > 0.0 {
        strengths.iter_mut().for_each(|strength| *strength = (f64::from(*strength) / any).min(1.0) as f32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_a_noisy_or() {
        let mut strengths = [0.5, 0.2, 0.0];
        explain(&mut strengths);
        // One of them led to it: 1 - 0.5 * 0.8.
        assert!((strengths[0] - 0.5 / 0.6).abs() < 1e-6 && (strengths[1] - 0.2 / 0.6).abs() < 1e-6);
        assert_eq!(strengths[2], 0.0);
        let mut weak = [4e-9, 4e-9];
        explain(&mut weak);
        assert!((weak[0] - 0.5).abs() < 1e-6, "{weak:?}");
        let mut nobody = [0.0, 0.0];
        explain(&mut nobody);
        assert_eq!(nobody, [0.0, 0.0]);
    }
}
