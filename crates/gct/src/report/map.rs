//! Codes on a plane: the two directions in which their vectors vary most, and which codes are near each other.
//!
//! Two directions of a few hundred are found by iterating with the covariance, which takes a screen of code; a crate of linear
//! algebra would be larger than this program.

use rayon::prelude::*;
use serde::Serialize;

use super::round;

/// Neighbours that are told of each code.
const NEIGHBOURS: usize = 10;

/// More rounds than any spectrum needs that a picture can show.
const ROUNDS: usize = 500;

/// Where each code is, and what is near it. Everything is in the order of the vectors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Map {
    /// Along the direction in which they vary most.
    pub x: Vec<f64>,
    /// Along the next.
    pub y: Vec<f64>,
    /// The share of the variance that each direction has.
    pub explained: [f64; 2],
    /// The nearest codes, the nearest first.
    pub neighbours: Vec<Vec<usize>>,
    /// The cosine of the angle to each of them.
    pub similarity: Vec<Vec<f64>>,
}

impl Map {
    /// The map of some vectors; `None` if there are fewer than three.
    pub(super) fn of(vectors: &[&[f32]]) -> Option<Self> {
        if vectors.len() < 3 {
            return None;
        }
        let ([x, y], explained) = principal(vectors);
        let nearest = nearest(vectors);
        let two_digits = |cosine: f64| (cosine * 100.0).round() / 100.0;
        Some(Map {
            x,
            y,
            explained: explained.map(round),
            similarity: nearest
                .iter()
                .map(|near| near.iter().map(|one| two_digits(one.1)).collect())
                .collect(),
            neighbours: nearest.iter().map(|near| near.iter().map(|one| one.0).collect()).collect(),
        })
    }
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

/// The direction that a symmetric matrix stretches most, among those at right angles to others; its largest part is positive.
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

/// The nearest of the others by cosine, for each vector.
fn nearest(vectors: &[&[f32]]) -> Vec<Vec<(usize, f64)>> {
    let units: Vec<Vec<f32>> = (vectors.iter())
        .map(|vector| {
            let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
            vector.iter().map(|value| value / length).collect()
        })
        .collect();
    let of_one = |place: usize| {
        let unit = &units[place];
        let cosine = |other: &Vec<f32>| f64::from(unit.iter().zip(other).map(|(a, b)| a * b).sum::<f32>());
        let mut others: Vec<(usize, f64)> = units
            .iter()
            .enumerate()
            .filter(|(n, _)| *n != place)
            .map(|(n, other)| (n, cosine(other)))
            .collect();
        let nearer = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if others.len() > NEIGHBOURS {
            others.select_nth_unstable_by(NEIGHBOURS, nearer);
            others.truncate(NEIGHBOURS);
        }
        others.sort_unstable_by(nearer);
        others
    };
    (0..vectors.len()).into_par_iter().map(of_one).collect()
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
        let map = Map::of(&points.iter().map(|point| &point[..]).collect::<Vec<_>>()).expect("40 points");
        for (n, (x, y)) in map.x.iter().zip(&map.y).enumerate() {
            let angle = n as f64 / 40.0 * std::f64::consts::TAU;
            let expected = (18f64.sqrt() * angle.cos(), angle.sin());
            assert!((x - expected.0).abs() < 1e-3 && (y - expected.1).abs() < 1e-3, "{n}: {x} {y}");
        }
        assert!((map.explained[0] - 18.0 / 19.0).abs() < 1e-3, "{:?}", map.explained);
    }

    #[test]
    fn neighbours_are_those_of_the_smallest_angle() {
        let vectors: [&[f32]; 4] = [&[1.0, 0.0], &[10.0, 1.0], &[0.0, 1.0], &[-1.0, 0.0]];
        let map = Map::of(&vectors).expect("four vectors");
        assert_eq!(map.neighbours[0], [1, 2, 3]);
        assert_eq!(map.similarity[0][2], -1.0);
        assert_eq!(map.neighbours[3], [2, 1, 0]);
    }

    #[test]
    fn what_does_not_vary_has_a_place_too() {
        let same: [&[f32]; 3] = [&[0.0, 0.0], &[0.0, 0.0], &[0.0, 0.0]];
        let map = Map::of(&same).expect("three vectors");
        assert_eq!(map.x, [0.0; 3]);
        assert_eq!(map.explained, [0.0; 2]);
        assert_eq!(Map::of(&same[..2]), None);
    }
}
