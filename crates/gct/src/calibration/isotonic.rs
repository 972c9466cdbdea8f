//! The isotonic map: of all maps that never fall, the one nearest to what happened.
//!
//! Adjacent logits whose shares of positives fall are pooled until none do. Fitted as it is, the lowest group
//! would often have a probability of 0 and the highest of 1, whose logits are infinite. So it is fitted as if
//! there were one more positive below all others and one more negative above: the probability of a lowest
//! group of n negatives is 1 / (n + 1). Between groups the probability is straight, as in scikit-learn.

use super::Map;

/// Examples with one probability.
struct Group {
    low: f32,
    high: f32,
    positives: f64,
    count: f64,
}

impl Group {
    fn of(logit: f32, positive: bool) -> Self {
        Group { low: logit, high: logit, positives: f64::from(u8::from(positive)), count: 1.0 }
    }

    fn share(&self) -> f64 {
        self.positives / self.count
    }

    fn pool(&mut self, above: &Group) {
        self.high = above.high;
        self.positives += above.positives;
        self.count += above.count;
    }
}

pub(super) fn fit(examples: &[(f32, bool)]) -> Result<Map, String> {
    let mut sorted: Vec<Group> =
        examples.iter().map(|(logit, positive)| Group::of(*logit, *positive)).collect();
    sorted.push(Group::of(f32::NEG_INFINITY, true));
    sorted.push(Group::of(f32::INFINITY, false));
    sorted.sort_by(|a, b| a.low.total_cmp(&b.low));
    let mut tied: Vec<Group> = Vec::new();
    for one in sorted {
        match tied.last_mut().filter(|last| last.high == one.low) {
            Some(last) => last.pool(&one),
            None => tied.push(one),
        }
    }
    let mut groups: Vec<Group> = Vec::new();
    for mut next in tied {
        while let Some(mut last) = groups.pop_if(|last| last.share() >= next.share()) {
            last.pool(&next);
            next = last;
        }
        groups.push(next);
    }
    if groups.len() < 2 {
        return Err("on validation, encounters with higher probabilities do not have it more often".into());
    }
    let least = examples.iter().map(|(logit, _)| *logit).fold(f32::INFINITY, f32::min);
    let most = examples.iter().map(|(logit, _)| *logit).fold(f32::NEG_INFINITY, f32::max);
    let (mut logits, mut probabilities) = (Vec::new(), Vec::new());
    for group in &groups {
        let ends = [group.low.max(least), group.high.min(most)];
        let different = if ends[0] < ends[1] { &ends[..] } else { &ends[..1] };
        logits.extend(different);
        probabilities.extend(different.iter().map(|_| group.share()));
    }
    Ok(Map::Isotonic { logits, probabilities })
}

/// The logit of the probability at a logit.
pub(super) fn apply(logits: &[f32], probabilities: &[f64], logit: f32) -> f64 {
    if logit.is_nan() {
        return f64::NAN;
    }
    let above = logits.partition_point(|of| *of <= logit);
    let probability = if above == 0 {
        probabilities[0]
    } else if above == logits.len() {
        probabilities[above - 1]
    } else {
        let [low, high] = [logits[above - 1], logits[above]].map(f64::from);
        let way = (f64::from(logit) - low) / (high - low);
        // Between the two, whatever is rounded.
        let [least, most] = [probabilities[above - 1], probabilities[above]];
        (least + way * (most - least)).clamp(least, most)
    };
    probability.ln() - (-probability).ln_1p()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fitted(examples: &[(f32, bool)]) -> (Vec<f32>, Vec<f64>) {
        match fit(examples).unwrap() {
            Map::Isotonic { logits, probabilities } => (logits, probabilities),
            Map::Platt { .. } => panic!("a line is no staircase"),
        }
    }

    #[test]
    fn by_hand() {
        let (logits, probabilities) =
            fitted(&[(-2.0, false), (-1.0, false), (0.0, true), (1.0, false), (2.0, true)]);
        // One more positive with the two lowest, one more negative with the highest.
        assert_eq!(logits, [-2.0, -1.0, 0.0, 2.0]);
        let expected = [1.0 / 3.0, 1.0 / 3.0, 0.5, 0.5];
        assert!(probabilities.iter().zip(expected).all(|(got, expected)| (got - expected).abs() < 1e-15));
        let probability = |logit: f32| 1.0 / (1.0 + (-apply(&logits, &probabilities, logit)).exp());
        assert!((probability(-0.5) - 5.0 / 12.0).abs() < 1e-12, "half way");
        assert!((probability(-9.0) - 1.0 / 3.0).abs() < 1e-12 && (probability(9.0) - 0.5).abs() < 1e-12);
    }

    /// The best share of each example by the formula of minima and maxima, which says it without an
    /// algorithm.
    fn naive(examples: &[(f32, bool)], at: f32) -> f64 {
        let mut all: Vec<(f32, f64)> =
            examples.iter().map(|(logit, positive)| (*logit, f64::from(u8::from(*positive)))).collect();
        all.extend([(f32::NEG_INFINITY, 1.0), (f32::INFINITY, 0.0)]);
        let mean = |low: f32, high: f32| {
            let inside = all.iter().filter(|(logit, _)| *logit >= low && *logit <= high);
            let (sum, count) = inside.fold((0.0, 0.0), |(sum, count), (_, y)| (sum + y, count + 1.0));
            sum / count
        };
        let ends: Vec<f32> = all.iter().map(|(logit, _)| *logit).collect();
        let least = |low: f32| {
            let highs = ends.iter().filter(|high| **high >= at);
            highs.map(|high| mean(low, *high)).fold(f64::INFINITY, f64::min)
        };
        ends.iter().filter(|low| **low <= at).map(|low| least(*low)).fold(f64::NEG_INFINITY, f64::max)
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(examples in prop::collection::vec((-6i8..6, any::<bool>()), 2..40)) {
            let examples: Vec<(f32, bool)> = examples.iter().map(|&(x, y)| (f32::from(x), y)).collect();
            prop_assume!(examples.iter().any(|of| of.1) && examples.iter().any(|of| !of.1));
            let Ok(Map::Isotonic { logits, probabilities }) = fit(&examples) else {
                let shares: Vec<f64> = examples.iter().map(|(logit, _)| naive(&examples, *logit)).collect();
                prop_assert!(shares.iter().all(|share| (share - shares[0]).abs() < 1e-12));
                return Ok(());
            };
            for (logit, _) in &examples {
                let got = 1.0 / (1.0 + (-apply(&logits, &probabilities, *logit)).exp());
                let expected = naive(&examples, *logit);
                prop_assert!((got - expected).abs() < 1e-12, "{got} {expected} at {logit}");
            }
        }
    }
}
