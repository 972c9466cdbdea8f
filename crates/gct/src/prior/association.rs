//! How strongly two codes are associated, against chance.
//!
//! Of N encounters a have the cause, b the effect, and o both; by chance a b / N would. The signed root of
//! the chi-squared statistic of this table of two by two,
//!
//! ```text
//! chi = sqrt(N) (N o - a b) / sqrt(a b (N - a) (N - b))
//! ```
//!
//! is about how many standard deviations o is from what chance gives. A code that all encounters have is
//! associated with none. In P of an encounter only the positive part counts, and beside the other causes of
//! the effect: a cause has the share
//!
//! ```text
//! chi(c, e) / (1 + sum over the causes c' of the encounter of chi(c', e))
//! ```
//!
//! of it, where the 1 is what chance alone explains. So an effect that nothing of the encounter is associated
//! with is explained by nothing, and the shares do not grow with the number of training encounters as chi
//! does.

/// The signed root of chi-squared. 0 where a code is in no encounter, or in all.
pub(super) fn chi(both: u32, cause: u32, effect: u32, encounters: u64) -> f64 {
    let [both, cause, effect] = [both, cause, effect].map(f64::from);
    let all = encounters as f64;
    let margins = cause * effect * (all - cause) * (all - effect);
    if margins > 0.0 { all.sqrt() * (all * both - cause * effect) / margins.sqrt() } else { 0.0 }
}

/// The share of an effect that each cause has, given how they are associated with it.
pub(super) fn shares(associations: &mut [f32]) {
    associations.iter_mut().for_each(|chi| *chi = chi.max(0.0));
    let all = 1.0 + associations.iter().sum::<f32>();
    associations.iter_mut().for_each(|chi| *chi /= all);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chi_is_that_of_a_table_of_two_by_two() {
        // 20 encounters, 8 with the cause, 5 with the effect, 4 with both: 2 are expected. Pearson's sum over
        // the cells: 4/2 + 4/6 + 4/3 + 4/9.
        let expected = (2.0 + 2.0 / 3.0 + 4.0 / 3.0 + 4.0 / 9.0f64).sqrt();
        assert!((chi(4, 8, 5, 20) - expected).abs() < 1e-12, "{}", chi(4, 8, 5, 20));
        assert!((chi(0, 8, 5, 20) + expected).abs() < 1e-12, "as much below chance");
        assert_eq!([chi(5, 20, 5, 20), chi(8, 8, 20, 20), chi(0, 0, 5, 20)], [0.0; 3]);
    }

    #[test]
    fn a_cause_has_its_share_beside_the_others_and_chance() {
        let mut associations = [2.0, -3.0, 1.0];
        shares(&mut associations);
        assert_eq!(associations, [0.5, 0.0, 0.25]);
        let mut nothing = [-1.0, 0.0];
        shares(&mut nothing);
        assert_eq!(nothing, [0.0; 2]);
    }

    proptest! {
        #[test]
        fn independent_codes_are_not_associated(a in 1u32..60, b in 1u32..60, times in 1u32..30) {
            // Of a x b squares one row and one column: exactly as many in both as chance gives.
            let all = u64::from(a * b * times);
            prop_assert_eq!(chi(times, a * times, b * times, all), 0.0);
            let more = chi(times + 1, a * times + 1, b * times + 1, all + 1);
            prop_assert!(more >= 0.0 && more <= (all as f64 + 1.0).sqrt() * (1.0 + 1e-12), "{}", more);
        }
    }
}
