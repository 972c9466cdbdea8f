//! Bayesian optimisation beside random search on made-up landscapes, and the seconds that a suggestion takes.
//!
//! `cargo run --release --package gct-search --example compare -- [trials] [seeds]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::Instant;

use gct_search::{Dimension, How, Observation, Outcome, Scale, Space, Strategy, suggest};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

#[path = "../src/landscapes.rs"]
mod landscapes;

use landscapes::{LANDSCAPES, Landscape, NOISE, normal, space};

/// The true value of the trial that looked best, after each trial; with `parallel` trials running at once.
fn tune(
    landscape: &Landscape,
    strategy: Strategy,
    seed: u64,
    trials: usize,
    parallel: usize,
) -> (Vec<f64>, usize) {
    let space = space();
    let mut noise = Xoshiro256PlusPlus::seed_from_u64(1000 + seed);
    let mut history: Vec<Observation> = vec![];
    let mut best = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    let mut curve = vec![];
    let mut fallbacks = 0;
    for number in 0..trials + parallel - 1 {
        if number < trials {
            let next = suggest(&space, strategy, seed, &history).unwrap();
            fallbacks += usize::from(next.how == How::Random);
            history.push(Observation { point: next.point, outcome: Outcome::Pending });
        }
        if number + 1 >= parallel {
            let ended = &mut history[number + 1 - parallel];
            ended.outcome = match (landscape.truth)(&ended.point) {
                Some(truth) => {
                    let measured = truth + NOISE * normal(&mut noise);
                    if measured > best.0 {
                        best = (measured, truth);
                    }
                    Outcome::Value(measured)
                }
                None => Outcome::Failed,
            };
            curve.push(best.1);
        }
    }
    (curve, fallbacks)
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| values[(values.len() - 1) * quarter / 4])
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<usize>().unwrap());
    let trials = arguments.next().unwrap_or(25);
    let seeds = arguments.next().unwrap_or(21) as u64;
    println!(
        "true value of the trial that looked best after {trials} trials: median (quartiles) over {seeds} seeds"
    );
    for landscape in &LANDSCAPES {
        for (strategy, parallel) in [(Strategy::Random, 1), (Strategy::Bayesian, 1), (Strategy::Bayesian, 4)]
        {
            let start = Instant::now();
            let ends: Vec<(Vec<f64>, usize)> =
                (0..seeds).map(|seed| tune(landscape, strategy, seed, trials, parallel)).collect();
            let [low, median, high] = quartiles(ends.iter().map(|end| end.0[trials - 1]).collect());
            let [_, at_15, _] = quartiles(ends.iter().map(|end| end.0[14.min(trials - 1)]).collect());
            println!(
                "{:6} of {:.2}  {:9} {parallel} at once  {median:.4} ({low:.4} to {high:.4})  after 15: {at_15:.4}  random points: {:4}  {:.1} s",
                landscape.name,
                landscape.best,
                format!("{strategy:?}"),
                ends.iter().map(|end| end.1).sum::<usize>(),
                start.elapsed().as_secs_f64(),
            );
        }
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut history = vec![];
    for number in 0..=200 {
        if [10, 25, 50, 100, 200].contains(&number) {
            let start = Instant::now();
            let next = suggest(&space(), Strategy::Bayesian, 1, &history).unwrap();
            println!(
                "{number} trials: {:.3} s for a suggestion ({:?})",
                start.elapsed().as_secs_f64(),
                next.how
            );
        }
        let point = suggest(&space(), Strategy::Random, 1, &history).unwrap().point;
        let value = (LANDSCAPES[0].truth)(&point).unwrap() + NOISE * normal(&mut rng);
        history.push(Observation { point, outcome: Outcome::Value(value) });
    }
}
