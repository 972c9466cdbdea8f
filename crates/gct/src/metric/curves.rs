//! What areas and errors are summed from, to be drawn: precision-recall, ROC, calibration.

use serde::Serialize;

use super::Ranking;

/// Points of a curve that are kept: more than a screen can show.
const POINTS: usize = 200;

/// Bins of equal width, as those of the calibration error.
const BINS: usize = 10;

/// The curves of yes-or-no predictions, gathered one by one.
#[derive(Debug, Clone, Default)]
pub struct CurveTally {
    ranking: Ranking,
    bins: [Bin; BINS],
}

#[derive(Debug, Clone, Copy, Default)]
struct Bin {
    count: u64,
    positives: u64,
    said: f64,
}

/// The curves.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curves {
    /// The share of positives.
    pub prevalence: f64,
    /// Recall and precision, from the highest threshold down.
    pub precision_recall: Vec<[f64; 2]>,
    /// False positive rate and true positive rate, from the highest threshold down.
    pub roc: Vec<[f64; 2]>,
    /// What was said beside what happened.
    pub calibration: Vec<CalibrationBin>,
}

/// Predictions of about the same probability.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CalibrationBin {
    /// The lowest probability.
    pub low: f64,
    /// The highest.
    pub high: f64,
    /// How many predictions; `None` where that may not be told.
    pub count: Option<u64>,
    /// Their mean probability.
    pub said: Option<f64>,
    /// How often it was so.
    pub happened: Option<f64>,
}

/// How many predictions are above a threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Above {
    /// A probability.
    pub threshold: f64,
    /// True ones above it.
    pub positives: u64,
    /// Others above it.
    pub negatives: u64,
}

impl CurveTally {
    /// Adds a prediction.
    ///
    /// # Panics
    /// If the logit is not a number.
    pub fn add(&mut self, logit: f32, positive: bool) {
        self.ranking.add(logit, positive);
        let probability = 1.0 / (1.0 + (-f64::from(logit)).exp());
        let bin = &mut self.bins[((probability * BINS as f64) as usize).min(BINS - 1)];
        bin.count += 1;
        bin.positives += u64::from(positive);
        bin.said += probability;
    }

    /// How many predictions there are.
    pub fn predictions(&self) -> u64 {
        self.bins.iter().map(|bin| bin.count).sum()
    }

    /// The curves; `None` without both classes, or if one has fewer than `min_cell` predictions. Between
    /// points, and in bins, are as many or none: otherwise they tell nothing.
    pub fn curves(self, min_cell: u64) -> Option<Curves> {
        self.curves_beside(min_cell, None).map(|(curves, _)| curves)
    }

    /// The same where it is also told how many predictions are above a threshold, and whether that can be:
    /// not if it, the curves and the bins would together tell of fewer than `min_cell`.
    pub fn curves_beside(self, min_cell: u64, above: Option<Above>) -> Option<(Curves, bool)> {
        let steps = self.ranking.steps();
        let &(positives, negatives) = steps.last()?;
        if positives < min_cell.max(1) || negatives < min_cell.max(1) {
            return None;
        }
        let bins = calibration(&self.bins, min_cell);
        let above = above.filter(|above| {
            let point = (above.positives, above.negatives);
            let ends = [(0, 0), (positives, negatives)];
            min_cell <= 1
                || (ends.iter().all(|end| are_apart(*end, point, min_cell))
                    && divides(&self.bins, &bins, above, min_cell))
        });
        let steps = far_apart(steps, above.map(|above| (above.positives, above.negatives)), min_cell);
        let rate = |part: u64, of: u64| part as f64 / of as f64;
        let precision = |&(hits, misses): &(u64, u64)| [rate(hits, positives), rate(hits, hits + misses)];
        let roc = |&(hits, misses): &(u64, u64)| [rate(misses, negatives), rate(hits, positives)];
        let curves = Curves {
            prevalence: three_digits(rate(positives, positives + negatives)),
            precision_recall: thinned(steps.iter().map(precision)),
            roc: thinned(std::iter::once([0.0, 0.0]).chain(steps.iter().map(roc))),
            calibration: bins,
        };
        Some((curves, above.is_some()))
    }
}

/// Whether two sums of positives and negatives are as many or none apart.
fn are_apart(a: (u64, u64), b: (u64, u64), min_cell: u64) -> bool {
    [a.0.abs_diff(b.0), a.1.abs_diff(b.1)].iter().all(|apart| *apart == 0 || *apart >= min_cell)
}

/// Whether a threshold divides the bins into parts that can be told: its own bin, and those that are not told
/// taken together.
fn divides(bins: &[Bin], shown: &[CalibrationBin], above: &Above, min_cell: u64) -> bool {
    let own = ((above.threshold * BINS as f64) as usize).min(BINS - 1);
    let sum = |from: [u64; 2], bin: &Bin| [0, 1].map(|cell| from[cell] + bin.cells()[cell]);
    let higher = bins[own + 1..].iter().fold([0; 2], sum);
    let point = [above.positives, above.negatives];
    let mut untold = [[0; 2]; 2];
    for at in (0..bins.len()).filter(|at| *at != own && shown[*at].count.is_none()) {
        let side = &mut untold[usize::from(at < own)];
        *side = sum(*side, &bins[at]);
    }
    let is_fine = |cell: u64| cell == 0 || cell >= min_cell;
    let is_told = |cell: usize| {
        // A prediction on the threshold can be in the other bin, by rounding.
        let inside = point[cell].checked_sub(higher[cell])?;
        let rest = bins[own].cells()[cell].checked_sub(inside)?;
        let [high, low] = [0, 1].map(|side| untold[side][cell]);
        Some(match shown[own].count {
            Some(_) => [inside, rest, high, low].into_iter().all(is_fine),
            None => [high + inside, low + rest].into_iter().all(is_fine),
        })
    };
    [0, 1].into_iter().all(|cell| is_told(cell).unwrap_or(false))
}

fn calibration(bins: &[Bin], min_cell: u64) -> Vec<CalibrationBin> {
    let is_small = |cells: [u64; 2]| cells.iter().any(|cell| (1..min_cell).contains(cell));
    let mut told: Vec<bool> = bins.iter().map(|bin| !is_small(bin.cells())).collect();
    // What is not told, taken together, can be had by subtraction: it must not be small either.
    loop {
        let untold = bins.iter().zip(&told).filter(|(_, told)| !**told);
        let sum = untold.fold([0, 0], |sum, (bin, _)| [0, 1].map(|cell| sum[cell] + bin.cells()[cell]));
        let next = (0..bins.len()).filter(|index| told[*index] && bins[*index].count > 0);
        match next.min_by_key(|index| bins[*index].count).filter(|_| is_small(sum)) {
            Some(smallest) => told[smallest] = false,
            None => break,
        }
    }
    bins.iter().zip(told).enumerate().map(|(index, (bin, told))| bin.shown(index, told)).collect()
}

/// The steps that are so many positives and negatives, or none, away from the one before, from the end and
/// from a point that is told beside them.
fn far_apart(steps: Vec<(u64, u64)>, point: Option<(u64, u64)>, min_cell: u64) -> Vec<(u64, u64)> {
    let Some(&end) = steps.last().filter(|_| min_cell > 1) else { return steps };
    let is_far = |from: (u64, u64), to: (u64, u64)| are_apart(from, to, min_cell);
    let mut kept = Vec::new();
    let mut last = (0, 0);
    for step in steps {
        if is_far(last, step) && is_far(step, end) && point.is_none_or(|point| is_far(step, point)) {
            kept.push(step);
            last = step;
        }
    }
    kept
}

fn three_digits(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

impl Bin {
    /// Positives and negatives.
    fn cells(&self) -> [u64; 2] {
        [self.positives, self.count - self.positives]
    }

    fn shown(&self, index: usize, told: bool) -> CalibrationBin {
        let mean = |sum: f64| (self.count > 0 && told).then(|| sum / self.count as f64);
        CalibrationBin {
            low: index as f64 / BINS as f64,
            high: (index + 1) as f64 / BINS as f64,
            count: told.then_some(self.count),
            said: mean(self.said),
            happened: mean(self.positives as f64),
        }
    }
}

/// The ends, and between them only points that are some way from the one kept before.
fn thinned(points: impl Iterator<Item = [f64; 2]>) -> Vec<[f64; 2]> {
    let step = 2.0 / POINTS as f64;
    let mut kept: Vec<[f64; 2]> = Vec::new();
    let mut last = None;
    for point in points {
        let far = |before: &[f64; 2]| (point[0] - before[0]).abs() + (point[1] - before[1]).abs() >= step;
        if kept.last().is_none_or(far) {
            kept.push(point);
            last = None;
        } else {
            last = Some(point);
        }
    }
    kept.extend(last);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(examples: &[(f32, bool)]) -> CurveTally {
        let mut tally = CurveTally::default();
        examples.iter().for_each(|&(logit, positive)| tally.add(logit, positive));
        tally
    }

    #[test]
    fn by_hand() {
        let curves =
            tally(&[(2.0, true), (1.0, false), (1.0, true), (-3.0, false)]).curves(0).expect("both classes");
        assert_eq!(curves.prevalence, 0.5);
        // Equal scores are one threshold.
        assert_eq!(curves.precision_recall, [[0.5, 1.0], [1.0, 2.0 / 3.0], [1.0, 0.5]]);
        assert_eq!(curves.roc, [[0.0, 0.0], [0.0, 0.5], [0.5, 1.0], [1.0, 1.0]]);
        let full: Vec<_> = curves.calibration.iter().filter(|bin| bin.count != Some(0)).collect();
        assert_eq!(full.len(), 3);
        assert_eq!((full[1].low, full[1].count, full[1].happened), (0.7, Some(2), Some(0.5)));
    }

    #[test]
    fn there_is_no_curve_of_one_class() {
        assert_eq!(tally(&[(1.0, true)]).curves(0), None);
        assert_eq!(tally(&[]).curves(0), None);
    }

    #[test]
    fn small_cells_are_not_told() {
        let mut examples = vec![(2.0, true); 12];
        examples.extend([(2.0, false); 3]);
        examples.extend([(-2.0, false); 20]);
        let curves = tally(&examples).curves(11).expect("both classes");
        let high = curves.calibration[8];
        assert_eq!((high.count, high.said, high.happened), (None, None, None));
        let low = curves.calibration[1];
        assert_eq!((low.count, low.happened), (None, None), "else the other could be had by subtraction");
        assert_eq!(tally(&[(1.0, true), (1.0, false)]).curves(2), None);
        // Two that are small are small together too; with a third they are not. The fourth can be told.
        let mut examples = vec![(-4.0, true), (-4.0, false), (-2.0, true), (-2.0, false)];
        for (logit, count) in [(0.5, 15), (2.0, 20)] {
            examples.extend(vec![(logit, true); count]);
            examples.extend(vec![(logit, false); count]);
        }
        let bins = tally(&examples).curves(11).expect("both classes").calibration;
        let untold: Vec<usize> = (0..BINS).filter(|index| bins[*index].count.is_none()).collect();
        assert_eq!(untold, [0, 1, 6]);
        assert_eq!(bins[8].count, Some(40));
    }

    #[test]
    fn a_threshold_is_told_if_nothing_small_is_told_with_it() {
        let mut examples = Vec::new();
        for (logit, count) in [(-2.0, 40), (-1.0, 20), (0.5, 20), (1.0, 5), (2.0, 20)] {
            examples.extend(vec![(logit, true); count]);
            examples.extend(vec![(logit, false); count]);
        }
        let beside = |threshold: f64, above: u64| {
            let above = Above { threshold, positives: above, negatives: above };
            tally(&examples).curves_beside(11, Some(above)).expect("both classes")
        };
        // The 5 at 0.73 are not told, and those at 0.27 lest the 5 be had by subtraction.
        let (curves, is_told) = beside(0.2, 65);
        assert!(is_told);
        let far = |count: u64| count.abs_diff(65) == 0 || count.abs_diff(65) >= 11;
        assert!(curves.roc.iter().all(|point| far((point[0] * 105.0).round() as u64)), "{:?}", curves.roc);
        assert!(!beside(0.5, 45).1, "45 without the 20 and 20 of bins that are told");
        assert!(!beside(0.7, 25).1, "25 without the 20 of the last bin");
        let above = Above { threshold: 0.7, positives: 25, negatives: 25 };
        assert!(
            tally(&examples).curves_beside(0, Some(above)).expect("both classes").1,
            "unless all is told"
        );
    }

    #[test]
    fn many_points_become_few_and_keep_their_ends() {
        let examples: Vec<_> = (0..5000u16).map(|n| (f32::from(n), n % 3 == 0)).collect();
        let curves = tally(&examples).curves(0).expect("both classes");
        for curve in [&curves.roc, &curves.precision_recall] {
            assert!(curve.len() <= 3 * POINTS, "{}", curve.len());
        }
        assert_eq!((curves.roc[0], curves.roc.last()), ([0.0, 0.0], Some(&[1.0, 1.0])));
        assert_eq!(curves.precision_recall.last(), Some(&[1.0, 1667.0 / 5000.0]));
    }
}
