//! How much to believe a count: the mean of a rate given how often something was seen and how often it would
//! have been at the usual rate.
//!
//! Rates are relative to a base, so the usual one is 1. How they vary is learned from the counts themselves
//! (empirical Bayes): a mixture of gamma distributions with means on a grid from very rare to very frequent,
//! whose shares make all counts most likely. No family is assumed: a mixture of narrow gammas comes near to
//! any distribution. A count is Poisson given its rate.

use statrs::function::gamma::ln_gamma;

/// Shape of the gamma distributions: the larger, the narrower.
const SHAPE: f64 = 3.0;

/// Logarithms of the means of the gammas: the first, the last and the step.
const GRID: (f64, f64, f64) = (-9.0, 12.0, 0.5);

/// Rounds of expectation-maximisation for the shares.
const ROUNDS: usize = 150;

/// Counts up to here are told apart; a larger one is scaled down, which leaves its rate the same.
const LARGEST: usize = 64;

/// Logarithms of the expected counts in the table of means: the first, and how many there are to a unit.
const FIRST: f64 = -14.0;
const PER_UNIT: f64 = 8.0;
const COLUMNS: usize = 192;

/// Counts with their expected counts, those that are alike together.
#[derive(Debug, Clone)]
pub(super) struct Histogram {
    /// For each count up to [`LARGEST`] and each column, how many there are.
    cells: Vec<f64>,
}

/// The column of an expected count, and how far it is on the way to the next one.
fn column(expected: f64) -> (usize, f64) {
    let at = ((expected.max(1e-300).ln() - FIRST) * PER_UNIT).clamp(0.0, (COLUMNS - 2) as f64);
    (at as usize, at - at.floor())
}

/// A count and its expected count, both scaled down if the count is too large to be told apart.
fn scaled(count: f64, expected: f64) -> (f64, f64) {
    let largest = LARGEST as f64;
    if count <= largest { (count, expected) } else { (largest, expected * largest / count) }
}

impl Histogram {
    pub(super) fn new() -> Self {
        Histogram { cells: vec![0.0; (LARGEST + 1) * COLUMNS] }
    }

    /// Adds so many times a count with its expected count. A count between two whole numbers is shared by
    /// them.
    pub(super) fn add(&mut self, count: f64, expected: f64, times: f64) {
        let (count, expected) = scaled(count, expected);
        let (column, _) = column(expected);
        let (below, part) = (count.floor(), count - count.floor());
        self.cells[below as usize * COLUMNS + column] += times * (1.0 - part);
        if part > 0.0 {
            self.cells[(below as usize + 1) * COLUMNS + column] += times * part;
        }
    }

    /// The cells that are not empty: count, expected count, how many.
    fn filled(&self) -> Vec<(f64, f64, f64)> {
        let cell = |(at, times): (usize, &f64)| {
            let expected = (FIRST + ((at % COLUMNS) as f64 + 0.5) / PER_UNIT).exp();
            ((at / COLUMNS) as f64, expected, *times)
        };
        self.cells.iter().enumerate().filter(|(_, times)| **times > 0.0).map(cell).collect()
    }
}

/// What counts say of rates.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shrinkage {
    /// The share of each gamma.
    shares: Vec<f64>,
    /// Logarithms of the mean rate, for each count and each expected count.
    means: Vec<f32>,
}

impl Shrinkage {
    /// Learns how rates vary; beside it the logarithm of the likelihood of all counts.
    pub(super) fn learn(histogram: &Histogram) -> (Self, f64) {
        let cells = histogram.filled();
        let grid = grid();
        let likelihoods: Vec<f64> = cells
            .iter()
            .flat_map(|(count, expected, _)| grid.iter().map(|mean| probability(*count, *expected, *mean)))
            .collect();
        let mut shares = vec![1.0 / grid.len() as f64; grid.len()];
        let mut likelihood = 0.0;
        for _ in 0..ROUNDS {
            let mut next = vec![1e-6; grid.len()];
            likelihood = 0.0;
            for ((_, _, times), row) in cells.iter().zip(likelihoods.chunks_exact(grid.len())) {
                let all: f64 = row.iter().zip(&shares).map(|(one, share)| one * share).sum();
                let all = all.max(f64::MIN_POSITIVE);
                likelihood += times * all.ln();
                let parts = next.iter_mut().zip(row).zip(&shares);
                parts.for_each(|((next, one), share)| *next += times * one * share / all);
            }
            let total: f64 = next.iter().sum();
            shares = next.into_iter().map(|next| next / total).collect();
        }
        (Shrinkage::with(shares, &grid), likelihood)
    }

    /// The one with these shares, if they are as many as there are gammas.
    pub(super) fn of(shares: Vec<f64>) -> Option<Self> {
        let grid = grid();
        (shares.len() == grid.len()).then(|| Shrinkage::with(shares, &grid))
    }

    fn with(shares: Vec<f64>, grid: &[f64]) -> Self {
        let mean = |count: usize, column: usize| {
            let expected = (FIRST + column as f64 / PER_UNIT).exp();
            let (mut all, mut sum) = (0.0, 0.0);
            for (mean, share) in grid.iter().zip(&shares) {
                let weight = share * probability(count as f64, expected, *mean);
                all += weight;
                sum += weight * (SHAPE + count as f64) / (SHAPE / mean + expected);
            }
            if all > 0.0 { (sum / all).ln() as f32 } else { (count as f64 / expected).ln() as f32 }
        };
        let cells = (0..=LARGEST).flat_map(|count| (0..COLUMNS).map(move |column| (count, column)));
        let means = cells.map(|(count, column)| mean(count, column)).collect();
        Shrinkage { shares, means }
    }

    /// The shares of the gammas.
    pub(super) fn shares(&self) -> &[f64] {
        &self.shares
    }

    /// The mean rate after a count, where `expected` is what it would be in the mean at the rate 1.
    pub(super) fn mean(&self, count: f64, expected: f64) -> f64 {
        let (count, expected) = scaled(count.max(0.0), expected);
        let (column, right) = column(expected);
        let (below, part) = (count as usize, count - count.floor());
        let at = |count: usize| {
            let row = &self.means[count * COLUMNS + column..][..2];
            f64::from(row[0]) + right * f64::from(row[1] - row[0])
        };
        let mean = at(below);
        if part == 0.0 { mean.exp() } else { (mean + part * (at(below + 1) - mean)).exp() }
    }
}

/// The means of the gammas.
fn grid() -> Vec<f64> {
    let (first, last, step) = GRID;
    (0..=((last - first) / step) as usize).map(|at| (first + at as f64 * step).exp()).collect()
}

/// How likely a count is if its rate is from a gamma: negative binomial.
fn probability(count: f64, expected: f64, mean: f64) -> f64 {
    let scale = mean * expected / SHAPE;
    let ways = ln_gamma(SHAPE + count) - ln_gamma(SHAPE) - ln_gamma(count + 1.0);
    (ways - SHAPE * scale.ln_1p() + count * (scale.ln() - scale.ln_1p())).exp()
}

/// A share of successes that is believed the more, the more it was tried: the mean of a beta distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chance {
    /// Successes and failures that count from the beginning.
    pub(super) before: [f64; 2],
}

impl Chance {
    /// Learns from successes and failures of many how much each is to be believed: the most likely of some
    /// strengths about the mean of all.
    pub(super) fn learn(all: impl Iterator<Item = (f64, f64)> + Clone) -> Self {
        let (successes, failures) = all.clone().fold((0.5, 0.5), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let mean = successes / (successes + failures);
        let chance = |strength: f64| Chance { before: [strength * mean, strength * (1.0 - mean)] };
        let strengths = [0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 200.0];
        let likelihoods = strengths.map(|strength| {
            let chance = chance(strength);
            all.clone().map(|(successes, failures)| chance.likelihood(successes, failures)).sum::<f64>()
        });
        let best = (0..strengths.len()).max_by(|a, b| likelihoods[*a].total_cmp(&likelihoods[*b]));
        chance(strengths[best.unwrap_or(3)])
    }

    /// The chance after so many successes and failures.
    pub(super) fn after(self, successes: f64, failures: f64) -> f64 {
        let [before, without] = self.before;
        (before + successes) / (before + without + successes + failures)
    }

    fn likelihood(self, successes: f64, failures: f64) -> f64 {
        let beta = |a: f64, b: f64| ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
        let [a, b] = self.before;
        beta(a + successes, b + failures) - beta(a, b)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Counts of rates that a function draws, each with its rate.
    fn counts(expected: f64, draw: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        use rand_distr::{Distribution, Poisson};
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        (0..40_000)
            .map(|_| {
                let rate = draw(rng.random());
                let count = Poisson::new((rate * expected).max(1e-12)).unwrap().sample(&mut rng);
                (count, rate)
            })
            .collect()
    }

    #[test]
    fn the_mean_of_a_rate_is_that_of_those_with_the_same_count() {
        // Rates with a heavy tail, and rates of two kinds: no family fits both.
        let heavy = |share: f64| (1.0 - share).powf(-1.0 / 1.5) - 1.0;
        let exponential = |share: f64| -(1.0 - share).ln();
        let two = |share: f64| match share < 0.9 {
            true => 0.1 * exponential(share / 0.9),
            false => 9.1 * exponential((share - 0.9) / 0.1),
        };
        for rates in [counts(0.8, heavy), counts(0.8, two)] {
            let mut histogram = Histogram::new();
            rates.iter().for_each(|(count, _)| histogram.add(*count, 0.8, 1.0));
            let (shrinkage, _) = Shrinkage::learn(&histogram);
            for count in [0.0, 1.0, 2.0, 4.0] {
                let alike: Vec<f64> =
                    rates.iter().filter(|(own, _)| *own == count).map(|(_, rate)| *rate).collect();
                let mean = alike.iter().sum::<f64>() / alike.len() as f64;
                let found = shrinkage.mean(count, 0.8);
                // A count by itself would say 1.25 for each, and 0 where nothing was seen.
                assert!((found / mean - 1.0).abs() < 0.3, "{count}: {found} and not {mean}");
            }
        }
    }

    #[test]
    fn a_large_count_is_believed_and_parts_of_a_count_lie_between() {
        let mut histogram = Histogram::new();
        [(0.0, 900.0), (1.0, 80.0), (5.0, 10.0), (300.0, 3.0)]
            .iter()
            .for_each(|(count, times)| histogram.add(*count, 1.0, *times));
        let (shrinkage, _) = Shrinkage::learn(&histogram);
        assert!((shrinkage.mean(5000.0, 10.0) / 500.0 - 1.0).abs() < 0.1);
        let [low, between, high] = [1.0, 1.5, 2.0].map(|count| shrinkage.mean(count, 1.0));
        assert!(low < between && between < high, "{low} {between} {high}");
        assert!(shrinkage.mean(1.0, 1.0) < 1.0, "seen once, but most are seen never");
    }

    #[test]
    fn chances_lie_between_what_was_seen_and_the_mean_of_all() {
        let all = [(9.0, 1.0), (1.0, 9.0), (0.0, 0.0), (50.0, 50.0)];
        let chance = Chance::learn(all.iter().copied());
        assert!((chance.after(0.0, 0.0) - 0.5).abs() < 0.01);
        let often = chance.after(9.0, 1.0);
        assert!(often > 0.5 && often < 0.9, "{often}");
    }
}
