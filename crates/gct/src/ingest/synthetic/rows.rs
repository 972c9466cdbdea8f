//! Conditional distributions that are made from the seed when they are asked for.

use std::sync::{Arc, Mutex, PoisonError};

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::{SplitMix64, Xoshiro256PlusPlus};

use super::pareto;

/// What a stream of random numbers is for: streams of different purposes never meet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Diagnosis = 1,
    CoDiagnosis,
    Treatment,
    Lab,
    MoreCoDiagnoses,
    MoreTreatments,
    MoreLabs,
    Encounter,
    Spare,
    Patient,
    Chronic,
}

/// The random numbers of one row of one table, of one encounter, or of one patient: a function of the seed
/// and the position alone.
pub(super) fn stream(seed: u64, purpose: Purpose, position: u64) -> Xoshiro256PlusPlus {
    let mix = |state: u64| SplitMix64::seed_from_u64(state).next_u64();
    Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed) ^ purpose as u64) ^ position)
}

/// A categorical distribution.
///
/// A draw first finds the block of weights that it falls into, then the weight: two short scans. An alias
/// table draws three times as fast but takes seventy times as long to build, and most rows are drawn from
/// once or twice before they leave the cache (docs/decisions/0004-synthetic-generator.md).
pub(super) struct Categorical {
    weights: Vec<f32>,
    blocks: Vec<f32>,
    total: f32,
}

/// Weights per block: about the square root of the paper's 1,000 codes.
const BLOCK: usize = 32;

impl Categorical {
    fn new(weights: Vec<f32>) -> Self {
        let blocks: Vec<f32> = weights.chunks(BLOCK).map(sum).collect();
        Categorical { total: blocks.iter().sum(), weights, blocks }
    }

    /// The probabilities of all columns.
    pub(super) fn probabilities(&self) -> Vec<f32> {
        self.weights.iter().map(|weight| weight / self.total).collect()
    }

    /// The probability of a column.
    #[cfg(test)]
    pub(super) fn probability(&self, column: u32) -> f64 {
        f64::from(self.weights[column as usize] / self.total)
    }

    /// Draws a column.
    pub(super) fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> u32 {
        let target = rng.random::<f32>() * self.total;
        let (block, left) = descend(&self.blocks, target);
        let start = block * BLOCK;
        let end = self.weights.len().min(start + BLOCK);
        let (column, _) = descend(&self.weights[start..end], left);
        (start + column) as u32
    }
}

/// The first weight at which the running sum exceeds `target`, and what is left of the target there. If
/// rounding lets the target exceed them all: the last weight that is not zero.
fn descend(weights: &[f32], mut target: f32) -> (usize, f32) {
    for (position, &weight) in weights.iter().enumerate() {
        if target < weight {
            return (position, target);
        }
        target -= weight;
    }
    (weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0), 0.0)
}

/// A probability that is set by hand, the rest of its row sharing what is left.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pin {
    pub(super) row: u64,
    pub(super) column: u32,
    pub(super) probability: f64,
}

/// A table of conditional distributions with Pareto weights. Only the rows in use are in memory, in a cache
/// of fixed size: p(R|m,d) has a million rows of a thousand.
pub(super) struct Rows {
    pub(super) seed: u64,
    pub(super) purpose: Purpose,
    pub(super) columns: u32,
    pub(super) shape: f64,
    pub(super) zero_diagonal: bool,
    pub(super) pins: Vec<Pin>,
    pub(super) cache: Cache,
}

impl Rows {
    /// The probabilities of a row, without touching the cache.
    pub(super) fn probabilities(&self, row: u64, out: &mut Vec<f32>) {
        self.weights(row, out);
        let total = sum(out);
        for weight in out {
            *weight /= total;
        }
    }

    /// The row, ready to draw from.
    pub(super) fn get(&self, row: u64) -> Arc<Categorical> {
        self.cache.get_or_insert(row, || {
            let mut weights = Vec::new();
            self.weights(row, &mut weights);
            Categorical::new(weights)
        })
    }

    fn weights(&self, row: u64, out: &mut Vec<f32>) {
        out.resize(self.columns as usize, 0.0);
        pareto::fill(&mut stream(self.seed, self.purpose, row), self.shape as f32, out);
        if self.zero_diagonal {
            out[row as usize] = 0.0;
        }
        for pin in self.pins.iter().filter(|pin| pin.row == row) {
            let column = pin.column as usize;
            out[column] = 0.0;
            out[column] = (f64::from(sum(out)) * pin.probability / (1.0 - pin.probability)) as f32;
        }
    }
}

/// Adds in eight lanes: fast, and always in the same order.
fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 8];
    let chunks = values.chunks_exact(8);
    let rest: f32 = chunks.remainder().iter().sum();
    for chunk in chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.iter().sum::<f32>() + rest
}

/// A direct-mapped cache: each row has one slot, which it may have to share. What is in it never changes a
/// result.
pub(super) struct Cache {
    slots: Box<[Slot]>,
}

/// A row and its number.
type Slot = Mutex<Option<(u64, Arc<Categorical>)>>;

impl Cache {
    /// Room for `rows` rows of `columns`, within a budget of bytes.
    pub(super) fn new(rows: u64, columns: u32, budget: usize) -> Self {
        let row_bytes = size_of::<f32>() * columns as usize * (BLOCK + 1) / BLOCK + 128;
        let slots = (budget / row_bytes).clamp(1, usize::try_from(rows).unwrap_or(usize::MAX));
        Cache { slots: (0..slots).map(|_| Mutex::new(None)).collect() }
    }

    fn get_or_insert(&self, row: u64, make: impl FnOnce() -> Categorical) -> Arc<Categorical> {
        let slot = &self.slots[(row % self.slots.len() as u64) as usize];
        // A slot is whole at any time, so a lock left by a panicking thread is as good as any.
        if let Some((held, categorical)) = &*slot.lock().unwrap_or_else(PoisonError::into_inner)
            && *held == row
        {
            return Arc::clone(categorical);
        }
        let made = Arc::new(make());
        *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some((row, Arc::clone(&made)));
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(pins: Vec<Pin>, cache: Cache) -> Rows {
        Rows {
            seed: 1,
            purpose: Purpose::CoDiagnosis,
            columns: 10,
            shape: 1.5,
            zero_diagonal: true,
            pins,
            cache,
        }
    }

    #[test]
    fn a_row_sums_to_one_with_its_diagonal_at_zero_and_its_pin_in_place() {
        let rows = rows(vec![Pin { row: 3, column: 7, probability: 0.33 }], Cache::new(10, 10, 1_000_000));
        let mut probabilities = Vec::new();
        rows.probabilities(3, &mut probabilities);
        assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        assert_eq!(probabilities[3], 0.0);
        assert!((probabilities[7] - 0.33).abs() < 1e-6);
        rows.probabilities(4, &mut probabilities);
        assert!((probabilities[7] - 0.33).abs() > 1e-6, "a pin holds for its own row only");
    }

    #[test]
    fn draws_follow_the_probabilities() {
        let rows = rows(vec![], Cache::new(10, 10, 1_000_000));
        let (mut probabilities, mut counts) = (Vec::new(), [0u32; 10]);
        rows.probabilities(5, &mut probabilities);
        let mut rng = stream(9, Purpose::Encounter, 0);
        for _ in 0..100_000 {
            counts[rows.get(5).sample(&mut rng) as usize] += 1;
        }
        for (count, p) in counts.iter().zip(&probabilities) {
            // Five standard errors.
            let error = 5.0 * (f64::from(*p) / 100_000.0).sqrt();
            assert!((f64::from(*count) / 100_000.0 - f64::from(*p)).abs() <= error, "{count} {p}");
        }
    }

    #[test]
    fn the_size_of_the_cache_changes_nothing() {
        let (small, large) =
            (rows(vec![], Cache::new(10, 10, 1)), rows(vec![], Cache::new(10, 10, 1_000_000)));
        assert_eq!(small.cache.slots.len(), 1);
        assert_eq!(large.cache.slots.len(), 10);
        let draw = |rows: &Rows| {
            let mut rng = stream(2, Purpose::Encounter, 0);
            (0..200).map(|i| rows.get(i % 10).sample(&mut rng)).collect::<Vec<_>>()
        };
        assert_eq!(draw(&small), draw(&large));
    }
}
