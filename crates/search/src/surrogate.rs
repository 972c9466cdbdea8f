//! The Gaussian process, which is that of `egobox-gp`, and the search for the point of which it expects the
//! most.
//!
//! Why that crate, and not the optimiser that is built on it: docs/decisions/0011-tuning.md.

use std::panic::{AssertUnwindSafe, catch_unwind};

use egobox_gp::correlation_models::Matern52Corr;
use egobox_gp::mean_models::ConstantMean;
use egobox_gp::{GaussianProcess, ThetaTuning};
use linfa::prelude::{Dataset, Fit};
use ndarray::{Array1, Array2};
use rand::{Rng, RngExt};

use super::expected::log_improvement;
use super::{Told, uniform};

/// Twice differentiable, no more: what hyperparameters do is not as smooth as a bell.
type Model = GaussianProcess<f64, ConstantMean, Matern52Corr>;

/// Shares of noise among which the likelihood chooses, as variances relative to that of the process. A
/// validation score is noisy, and a process that has to pass through every point would wiggle.
const NOISES: [f64; 3] = [1e-4, 1e-2, 1e-1];

/// Starts of the search for length scales. Not 1: with that, the crate draws from the system's entropy.
const STARTS: usize = 2;

/// Bounds of the inverse length scales, in standard deviations of the points. The ends mean that a setting
/// does nothing, or that knowing a value tells nothing about its neighbours: with few points the likelihood
/// likes both too much.
const INVERSE_LENGTHS: (f64, f64) = (0.1, 3.0);

/// Points of the whole cube that are looked at.
const WIDE: usize = 1000;

/// The best points so far, around which is searched, and the points that are looked at around each.
const AROUND: usize = 5;
const NEAR: usize = 60;

/// The search is then made finer so many times, with so many points around each of the best.
const ROUNDS: i32 = 12;
const FINER: usize = 20;

/// No point is tried nearer than this to another, in the dimension in which they differ most: it would be the
/// same training again.
const NEAREST: f64 = 0.005;

/// The position in the unit cube with the greatest expected improvement. None if nothing can be fitted.
pub(super) fn most_promising(told: &Told, rng: &mut impl Rng) -> Option<Vec<f64>> {
    // The crate unwraps the results of its linear algebra. What is known to break it is kept from it, and
    // nothing else has been seen to; but as the same trials give the same model, a panic would come again at
    // every attempt to go on, and the tuning would be lost.
    catch_unwind(AssertUnwindSafe(|| search(told, rng))).ok().flatten()
}

fn search(told: &Told, rng: &mut impl Rng) -> Option<Vec<f64>> {
    let dimensions = told.ended.first()?.0.len();
    let model = fit(told)?;
    let taken: Vec<&[f64]> =
        told.ended.iter().map(|(position, _)| position).chain(&told.pending).map(Vec::as_slice).collect();
    // What the model believes of the best, not what was measured: that may have been luck.
    let (means, _) = predict(&model, &taken)?;
    let mut order: Vec<usize> = (0..taken.len()).collect();
    order.sort_by(|a, b| means[*b].total_cmp(&means[*a]));
    let best = means[order[0]];

    let mut found = Best { model: &model, best, taken: &taken, kept: vec![] };
    let mut positions: Vec<Vec<f64>> = (0..WIDE).map(|_| uniform(rng, dimensions)).collect();
    for around in order.iter().take(AROUND) {
        positions.extend((0..NEAR).map(|i| moved(taken[*around], 0.2 / (1 + i % 8) as f64, rng)));
    }
    found.look_at(positions)?;
    for round in 0..ROUNDS {
        let width = 0.1 * 0.7f64.powi(round);
        let mut positions = vec![];
        for (position, _) in &found.kept {
            positions.extend((0..FINER).map(|_| moved(position, width, rng)));
        }
        found.look_at(positions)?;
    }
    found.kept.into_iter().next().map(|(position, _)| position)
}

/// The best positions seen.
struct Best<'a> {
    model: &'a Model,
    best: f64,
    taken: &'a [&'a [f64]],
    /// With the logarithm of the improvement to expect, the best first.
    kept: Vec<(Vec<f64>, f64)>,
}

impl Best<'_> {
    fn look_at(&mut self, mut positions: Vec<Vec<f64>>) -> Option<()> {
        positions.retain(|position| self.taken.iter().all(|other| distance(position, other) >= NEAREST));
        if positions.is_empty() {
            return Some(());
        }
        let slices: Vec<&[f64]> = positions.iter().map(Vec::as_slice).collect();
        let (means, variances) = predict(self.model, &slices)?;
        for ((position, mean), variance) in positions.into_iter().zip(means).zip(variances) {
            let promise = log_improvement(mean, variance.sqrt(), self.best);
            if !promise.is_nan() {
                self.kept.push((position, promise));
            }
        }
        self.kept.sort_by(|a, b| b.1.total_cmp(&a.1));
        self.kept.dedup_by(|a, b| a.0 == b.0);
        self.kept.truncate(AROUND);
        Some(())
    }
}

/// A position near another: about half of its numbers are moved, so that settings that are right already can
/// stay.
fn moved(position: &[f64], width: f64, rng: &mut impl Rng) -> Vec<f64> {
    let mut near = position.to_vec();
    for value in &mut near {
        if rng.random::<bool>() {
            *value = (*value + width * (2.0 * rng.random::<f64>() - 1.0)).clamp(0.0, 1.0);
        }
    }
    near
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// The likeliest model of the ended trials, then told that the pending ones are as good as it believes: it
/// grows sure of them, and expects nothing more there.
fn fit(told: &Told) -> Option<Model> {
    let first = told.ended.first()?.1;
    if told.ended.len() < 3 || told.ended.iter().all(|(_, score)| *score == first) {
        return None;
    }
    let positions: Vec<&[f64]> = told.ended.iter().map(|(position, _)| position.as_slice()).collect();
    let scores: Vec<f64> = told.ended.iter().map(|(_, score)| *score).collect();
    let tuning =
        ThetaTuning::Full { init: Array1::from_elem(1, 0.3), bounds: Array1::from_elem(1, INVERSE_LENGTHS) };
    let fits = NOISES.iter().filter_map(|noise| {
        let model = fit_to(&positions, &scores, tuning.clone(), *noise)?;
        model.likelihood().is_finite().then_some((model, *noise))
    });
    let (model, noise) = fits.max_by(|a, b| a.0.likelihood().total_cmp(&b.0.likelihood()))?;
    if told.pending.is_empty() {
        return Some(model);
    }
    let mut all = positions;
    all.extend(told.pending.iter().map(Vec::as_slice));
    let believed = predict(&model, &all[scores.len()..])?.0;
    let scores: Vec<f64> = scores.into_iter().chain(believed).collect();
    fit_to(&all, &scores, ThetaTuning::Fixed(model.theta().clone()), noise)
}

fn fit_to(positions: &[&[f64]], scores: &[f64], tuning: ThetaTuning<f64>, noise: f64) -> Option<Model> {
    let data = Dataset::new(matrix(positions)?, Array1::from(scores.to_vec()));
    Model::params(ConstantMean::default(), Matern52Corr::default())
        .theta_tuning(tuning)
        .n_start(STARTS)
        .nugget(noise)
        .fit(&data)
        .ok()
}

/// Means and variances; none if one is not a number.
fn predict(model: &Model, positions: &[&[f64]]) -> Option<(Vec<f64>, Vec<f64>)> {
    let (means, variances) = model.predict_valvar(&matrix(positions)?).ok()?;
    let finite = means.iter().chain(&variances).all(|number| number.is_finite());
    finite.then(|| (means.to_vec(), variances.to_vec()))
}

fn matrix(rows: &[&[f64]]) -> Option<Array2<f64>> {
    let columns = rows.first()?.len();
    Array2::from_shape_vec((rows.len(), columns), rows.concat()).ok()
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn told(ended: Vec<(Vec<f64>, f64)>, pending: Vec<Vec<f64>>) -> Told {
        Told { ended, pending }
    }

    fn asked(told: &Told) -> Option<Vec<f64>> {
        most_promising(told, &mut Xoshiro256PlusPlus::seed_from_u64(3))
    }

    /// A parabola with its top at 0.62, looked at from both sides.
    fn parabola() -> Vec<(Vec<f64>, f64)> {
        [0.0, 0.2, 0.4, 0.8, 1.0].map(|x: f64| (vec![x], 1.0 - (x - 0.62).powi(2))).into()
    }

    #[test]
    fn it_finds_the_top_of_a_hill() {
        let position = asked(&told(parabola(), vec![])).unwrap();
        assert!((position[0] - 0.62).abs() < 0.05, "{position:?}");
    }

    #[test]
    fn it_keeps_away_from_what_is_being_tried() {
        let first = asked(&told(parabola(), vec![])).unwrap();
        let second = asked(&told(parabola(), vec![first.clone()])).unwrap();
        let third = asked(&told(parabola(), vec![first.clone(), second.clone()])).unwrap();
        for (a, b) in [(&first, &second), (&first, &third), (&second, &third)] {
            assert!(distance(a, b) > 2.0 * NEAREST, "{first:?} {second:?} {third:?}");
        }
    }

    #[test]
    fn the_model_follows_what_it_was_told_and_is_less_sure_elsewhere() {
        let model = fit(&told(parabola(), vec![])).unwrap();
        let (means, variances) = predict(&model, &[&[0.4], &[0.6]]).unwrap();
        assert!((means[0] - 0.9516).abs() < 1e-3 && (means[1] - 0.9996).abs() < 0.02, "{means:?}");
        assert!(variances[1] > 10.0 * variances[0], "{variances:?}");
    }

    #[test]
    fn nothing_to_fit() {
        assert_eq!(asked(&told(vec![], vec![vec![0.5]])), None);
        assert_eq!(asked(&told(parabola()[..2].to_vec(), vec![])), None);
        let flat = parabola().into_iter().map(|(position, _)| (position, 0.5)).collect();
        assert_eq!(asked(&told(flat, vec![])), None);
    }

    #[test]
    fn a_full_space_has_no_next_point() {
        let everywhere = (0..=200).map(|i| f64::from(i) / 200.0).map(|x| (vec![x], x)).collect();
        assert_eq!(asked(&told(everywhere, vec![])), None);
    }

    #[test]
    fn a_panic_of_the_crate_is_no_end() {
        // One point, which `fit` keeps from the crate, makes it panic: this is what the guard is for.
        let one = || fit_to(&[&[0.5]], &[1.0], ThetaTuning::default(), 1e-6);
        assert!(catch_unwind(one).is_err());
    }
}
