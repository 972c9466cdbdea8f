//! Codes on a plane: the two directions in which their vectors vary most, and which codes are near each
//! other.
//!
//! Two directions of a few hundred are found by iterating with the covariance, which takes a screen of code;
//! a crate of linear algebra would be larger than this program.

use rayon::prelude::*;
use serde::Serialize;

use super::round;

/// Neighbours that are told of each code.
const NEIGHBOURS: usize = 10;

/// Codes on a map at most. Each is compared with each, and a browser draws them all whenever the mouse moves.
const MAPPED: usize = 20_000;

/// More rounds than any spectrum needs that a picture can show.
const ROUNDS: usize = 500;

/// Where each code is, and what is near it. Everything is in the order of the vectors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map {
    /// Along the direction in which they vary most; `None` of a code that is not on the map.
    pub x: Vec<Option<f64>>,
    /// Along the next.
    pub y: Vec<Option<f64>>,
    /// The share of the variance that each direction has.
    pub explained: [f64; 2],
    /// The nearest codes on the map, the nearest first.
    pub neighbours: Vec<Vec<usize>>,
    /// The cosine of the angle to each of them.
    pub similarity: Vec<Vec<f64>>,
}

impl Map {
    /// The map of codes with these vectors and counts: of all, or of the most frequent 20,000. `None` if
    /// there are fewer than three, or each is one number only: the weight of a logistic regression.
    pub(super) fn of(vectors: &[&[f32]], counts: &[u64]) -> Option<Self> {
        Map::of_most_frequent(MAPPED, vectors, counts)
    }

    fn of_most_frequent(most: usize, vectors: &[&[f32]], counts: &[u64]) -> Option<Self> {
        if vectors.len() < 3 || vectors[0].len() < 2 {
            return None;
        }
        let indices = most_frequent(most, counts);
        let mapped: Vec<&[f32]> = indices.iter().map(|index| vectors[*index]).collect();
        let ([x, y], explained) = principal(&mapped);
        let (mut neighbours, mut similarity) = (vec![vec![]; vectors.len()], vec![vec![]; vectors.len()]);
        let two_digits = |cosine: f64| (cosine * 100.0).round() / 100.0;
        for (index, near) in indices.iter().zip(nearest(&mapped)) {
            neighbours[*index] = near.iter().map(|one| indices[one.0]).collect();
            similarity[*index] = near.iter().map(|one| two_digits(one.1)).collect();
        }
        let spread = |values: Vec<f64>| {
            let mut all = vec![None; vectors.len()];
            indices.iter().zip(values).for_each(|(index, value)| all[*index] = Some(value));
            all
        };
        Some(Map { x: spread(x), y: spread(y), explained: explained.map(round), neighbours, similarity })
    }
}

/// The indices of the largest counts, ascending; of equal ones the first.
fn most_frequent(most: usize, counts: &[u64]) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..counts.len()).collect();
    indices.sort_by_key(|index| std::cmp::Reverse(counts[*index]));
    indices.truncate(most);
    indices.sort_unstable();
    indices
}

/// The coordinates along the first two principal directions, and their shares of the variance.
fn principal(vectors: &[&[f32]]) -> ([Vec<f64>; 2], [f64; 2]) {
    let width = vectors[0].len();
    let mut mean = vec![0.0; width];
    for vector in vectors {
        mean.iter_mut().zip(*vector).for_each(|(mean, value)| *mean += f64::from(*value));
    }
    mean.iter_mut().for_each(|mean| *mean /= vectors.len() as f64);
    let centred: Vec<Vec<f64>> = (vectors.iter())
        .map(|vector| vector.iter().zip(&mean).map(|(value, mean)| f64::from(*value) - mean).collect())
        .collect();
    let covariance: Vec<Vec<f64>> = (0..width)
        .into_par_iter()
        .map(|i| {
            let mut row = vec![0.0; width];
            for vector in &centred {
                row.iter_mut().zip(vector).for_each(|(cell, value)| *cell += vector[i] * value);
            }
            row
        })
        .collect();
    let total: f64 = (0..width).map(|i| covariance[i][i]).sum();
    let mut found: Vec<Vec<f64>> = Vec::new();
    let mut shares = [0.0; 2];
    for share in &mut shares {
        let direction = leading(&covariance, &found);
        let variance = dot(&direction, &times(&covariance, &direction));
        *share = if total > 0.0 { variance / total } else { 0.0 };
        found.push(direction);
    }
    let along = |direction: &Vec<f64>| centred.iter().map(|vector| round(dot(vector, direction))).collect();
    ([along(&found[0]), along(&found[1])], shares)
}

/// The direction that a symmetric matrix stretches most, among those at right angles to others; its largest
/// part is positive.
fn leading(matrix: &[Vec<f64>], others: &[Vec<f64>]) -> Vec<f64> {
    // Any beginning will do that is not at right angles to it by construction.
    let mut direction: Vec<f64> = (0..matrix.len()).map(|n| 1.0 + (n as f64 * 0.618).fract()).collect();
    for _ in 0..ROUNDS {
        let mut next = times(matrix, &direction);
        for other in others {
            let shadow = dot(&next, other);
            next.iter_mut().zip(other).for_each(|(part, other)| *part -= shadow * other);
        }
        let length = dot(&next, &next).sqrt();
        if length < 1e-300 {
            break;
        }
        next.iter_mut().for_each(|part| *part /= length);
        direction = next;
    }
    let largest = direction.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    let length = dot(&direction, &direction).sqrt().copysign(largest);
    direction.iter().map(|part| part / length).collect()
}

fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, vector)).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Vectors that are compared with another at a time, in lanes that the processor adds up side by side.
const LANES: usize = 16;

/// Vectors whose neighbours are looked for together, so that what they are compared with is read from
/// memory once for all.
const TOGETHER: usize = 64;

/// The nearest of the others by cosine, for each vector.
fn nearest(vectors: &[&[f32]]) -> Vec<Vec<(usize, f64)>> {
    let units: Vec<Vec<f32>> = vectors.iter().map(|vector| unit(vector)).collect();
    let blocks: Vec<Vec<f32>> = units.chunks(LANES).map(interleaved).collect();
    let some = |(chunk, own): (usize, &[Vec<f32>])| {
        let mut found = vec![Nearest::default(); own.len()];
        for (block, others) in blocks.iter().enumerate() {
            for (n, (unit, nearest)) in own.iter().zip(&mut found).enumerate() {
                let indices = (block * LANES..units.len()).zip(cosines(unit, others));
                indices.filter(|(index, _)| *index != chunk * TOGETHER + n).for_each(|one| nearest.add(one));
            }
        }
        found
    };
    units.par_chunks(TOGETHER).enumerate().flat_map_iter(some).map(|nearest| nearest.0).collect()
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter().map(|value| value / length).collect()
}

/// The first numbers of all vectors, then the second, and so on: a lane per vector, empty ones last.
fn interleaved(vectors: &[Vec<f32>]) -> Vec<f32> {
    let lane = |lane: usize, position: usize| vectors.get(lane).map_or(0.0, |vector| vector[position]);
    (0..vectors[0].len()).flat_map(|position| (0..LANES).map(move |n| lane(n, position))).collect()
}

/// The cosine of the angle to each of a block of interleaved unit vectors. Each is summed up from the first
/// number to the last, as `Iterator::sum` would, so that the lanes change no digit.
fn cosines(unit: &[f32], others: &[f32]) -> [f64; LANES] {
    let mut sums = [-0.0f32; LANES];
    for (value, lanes) in unit.iter().zip(others.chunks_exact(LANES)) {
        sums.iter_mut().zip(lanes).for_each(|(sum, lane)| *sum += value * lane);
    }
    sums.map(f64::from)
}

/// The nearest so far, the nearest first: never more than are told, or memory would grow with the square of
/// the vocabulary.
#[derive(Debug, Clone, Default)]
struct Nearest(Vec<(usize, f64)>);

impl Nearest {
    /// Of equal ones that stays before which came before.
    fn add(&mut self, (index, cosine): (usize, f64)) {
        let is_nearer = |other: &(usize, f64)| other.1.total_cmp(&cosine).is_ge();
        // Of thousands of vectors nearly all are farther away than the last.
        if self.0.get(NEIGHBOURS - 1).is_some_and(is_nearer) {
            return;
        }
        let rank = self.0.partition_point(is_nearer);
        self.0.truncate(NEIGHBOURS - 1);
        self.0.insert(rank, (index, cosine));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_direction_comes_first() {
        // An ellipse in a plane of three dimensions: long along (1, 1, 0), short along (0, 0, 1).
        let points: Vec<[f32; 3]> = (0u8..40)
            .map(|n| {
                let angle = f32::from(n) / 40.0 * std::f32::consts::TAU;
                [3.0 * angle.cos() + 5.0, 3.0 * angle.cos(), angle.sin()]
            })
            .collect();
        let points: Vec<&[f32]> = points.iter().map(|point| &point[..]).collect();
        let map = Map::of(&points, &[1; 40]).expect("40 points");
        for (n, (x, y)) in map.x.iter().flatten().zip(map.y.iter().flatten()).enumerate() {
            let angle = n as f64 / 40.0 * std::f64::consts::TAU;
            let expected = (18f64.sqrt() * angle.cos(), angle.sin());
            assert!((x - expected.0).abs() < 1e-3 && (y - expected.1).abs() < 1e-3, "{n}: {x} {y}");
        }
        assert!((map.explained[0] - 18.0 / 19.0).abs() < 1e-3, "{:?}", map.explained);
    }

    #[test]
    fn neighbours_are_those_of_the_smallest_angle() {
        let vectors: [&[f32]; 4] = [&[1.0, 0.0], &[10.0, 1.0], &[0.0, 1.0], &[-1.0, 0.0]];
        let map = Map::of(&vectors, &[1; 4]).expect("four vectors");
        assert_eq!(map.neighbours[0], [1, 2, 3]);
        assert_eq!(map.similarity[0][2], -1.0);
        assert_eq!(map.neighbours[3], [2, 1, 0]);
    }

    #[test]
    fn what_does_not_vary_has_a_point_too() {
        let same: [&[f32]; 3] = [&[0.0, 0.0], &[0.0, 0.0], &[0.0, 0.0]];
        let map = Map::of(&same, &[1; 3]).expect("three vectors");
        assert_eq!(map.x, [Some(0.0); 3]);
        assert_eq!(map.explained, [0.0; 2]);
        assert_eq!(Map::of(&same[..2], &[1; 2]), None);
        let on_a_line: [&[f32]; 3] = [&[0.0], &[1.0], &[2.0]];
        assert_eq!(Map::of(&on_a_line, &[1; 3]), None);
    }

    /// Vectors of three small whole numbers: many are at the same angle.
    fn many() -> Vec<[f32; 3]> {
        (0u16..150).map(|n| [n % 5, n / 5 % 6, n % 7].map(|value| f32::from(value) - 2.0)).collect()
    }

    #[test]
    fn neighbours_are_those_of_a_list_of_all_cosines() {
        let vectors = many();
        let vectors: Vec<&[f32]> = vectors.iter().map(|vector| &vector[..]).collect();
        let units: Vec<Vec<f32>> = vectors.iter().map(|vector| unit(vector)).collect();
        for (index, near) in nearest(&vectors).iter().enumerate() {
            let cosine = |other: &[f32]| units[index].iter().zip(other).map(|(a, b)| a * b).sum::<f32>();
            let mut all: Vec<(usize, f64)> = (units.iter().enumerate())
                .filter(|(other, _)| *other != index)
                .map(|(other, unit)| (other, f64::from(cosine(unit))))
                .collect();
            all.sort_by(|a, b| b.1.total_cmp(&a.1));
            assert_eq!(near, &all[..NEIGHBOURS], "of {index}");
        }
    }

    #[test]
    fn lists_of_neighbours_do_not_grow_with_the_vocabulary() {
        let vectors = many();
        let near = nearest(&vectors.iter().map(|vector| &vector[..]).collect::<Vec<_>>());
        assert!(near.iter().all(|near| near.capacity() <= 2 * NEIGHBOURS));
    }

    #[test]
    fn of_too_many_codes_the_most_frequent_are_on_the_map() {
        let vectors: [&[f32]; 5] = [&[1.0, 0.0], &[0.0, 1.0], &[10.0, 1.0], &[1.0, 1.0], &[-1.0, 0.0]];
        let map = Map::of_most_frequent(3, &vectors, &[7, 2, 9, 2, 2]).expect("five vectors");
        assert_eq!(map.x.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false, false]);
        assert_eq!(map.neighbours, [vec![2, 1], vec![2, 0], vec![0, 1], vec![], vec![]]);
        let alone = Map::of(&vectors[..3], &[1; 3]).expect("three vectors");
        assert_eq!((&map.x[..3], &map.y[..3]), (&alone.x[..], &alone.y[..]), "others have no part in it");
    }
}
