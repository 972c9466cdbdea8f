//! The chance of an edge given the whole encounter, by Gibbs sampling.
//!
//! What is unknown about an encounter is who ordered what and who measured what. A loop that continues with
//! probability b makes a geometric number of draws, which is a Poisson number whose rate is exponential with
//! mean b / (1 - b). Given such a rate for each diagnosis (and for each pair of diagnosis and treatment, for
//! its labs), all draws are independent Poisson counts, and each can be sampled given the others and the
//! codes that must come out:
//!
//! 1. the rates, from the numbers of draws: gamma;
//! 2. for a treatment with one cause, which cause, its labs moving along; for every further pair, whether it
//!    is one more cause that the encounter does not need;
//! 3. for each lab, how often it was drawn (at least once) and by which of the pairs.
//!
//! The chances are averages over many rounds, not of what was sampled but of the chance that it had
//! (Rao-Blackwell), so that a few hundred rounds are enough.

use rand::RngExt;
use rand_distr::{Distribution, Gamma, Poisson};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::PairScores;
use super::chances::Chances;

/// Rounds that are averaged, after as many as a quarter of them to forget the start. Ten times as many move
/// the areas by less than 0.003.
const ROUNDS: usize = 400;
const WARM_UP: usize = ROUNDS / 4;

pub(super) fn posterior(chances: &Chances, rng: Xoshiro256PlusPlus) -> PairScores {
    let mut sampler = Sampler::new(chances, rng);
    for _ in 0..WARM_UP {
        sampler.round();
    }
    sampler.ordered.fill(0.0);
    sampler.measured.fill(0.0);
    for _ in 0..ROUNDS {
        sampler.round();
    }
    let scores = |sums: &[f64]| sums.iter().map(|sum| (sum / ROUNDS as f64) as f32).collect();
    PairScores { diagnosis_treatment: scores(&sampler.ordered), treatment_lab: scores(&sampler.measured) }
}

/// One explanation of the encounter. "Pair" is a pair of diagnosis and treatment.
struct Sampler<'a> {
    chances: &'a Chances,
    rng: Xoshiro256PlusPlus,
    /// Whether the diagnosis ordered the treatment, over pairs.
    causes: Vec<bool>,
    /// How often the pair drew the lab, over (pair, lab).
    draws: Vec<u32>,
    /// How many pairs drew the lab.
    sources: Vec<u32>,
    /// How many treatments a diagnosis orders, in the mean.
    treatment_rate: Vec<f64>,
    /// How many labs a pair measures, in the mean; 0 for a pair that is no cause.
    lab_rate: Vec<f64>,
    /// The share of p(R|m,d) that falls on the encounter's labs, over pairs.
    lab_mass: Vec<f64>,
    /// The chance that everything a pair measures is among the encounter's labs, over pairs.
    within_labs: Vec<f64>,
    /// ln(1 - c(m,d)), over pairs, and ln(c(m,d) p(r|m,d)), over (pair, lab).
    log_enough: Vec<f64>,
    log_lab: Vec<f64>,
    /// Sums of chances over rounds: diagnosis by treatment, treatment by lab.
    ordered: Vec<f64>,
    measured: Vec<f64>,
}

impl<'a> Sampler<'a> {
    /// Begins with the most likely cause of everything.
    fn new(chances: &'a Chances, rng: Xoshiro256PlusPlus) -> Self {
        let &Chances { diagnoses, treatments, labs, .. } = chances;
        let pairs = diagnoses * treatments;
        let lab_mass: Vec<f64> = (0..pairs).map(|pair| chances.labs_of(pair).iter().sum()).collect();
        let mut sampler = Sampler {
            chances,
            rng,
            causes: vec![false; pairs],
            draws: vec![0; pairs * labs],
            sources: vec![1; labs],
            treatment_rate: vec![1.0; diagnoses],
            lab_rate: vec![0.0; pairs],
            within_labs: (chances.more_labs.iter().zip(&lab_mass))
                .map(|(more, mass)| (1.0 - more) / (1.0 - more * mass))
                .collect(),
            lab_mass,
            log_enough: chances.more_labs.iter().map(|more| (1.0 - more).ln()).collect(),
            log_lab: (0..pairs)
                .flat_map(|pair| {
                    chances.labs_of(pair).iter().map(move |p| (chances.more_labs[pair] * p).ln())
                })
                .collect(),
            ordered: vec![0.0; pairs],
            measured: vec![0.0; treatments * labs],
        };
        let orders = |pair: usize| chances.more_treatments[pair / treatments] * chances.treatment[pair];
        for treatment in 0..treatments {
            let best = (0..diagnoses).map(|diagnosis| diagnosis * treatments + treatment);
            sampler.causes[most_likely(best, orders)] = true;
        }
        for lab in 0..labs {
            let measures = |pair: usize| orders(pair) * chances.more_labs[pair] * chances.labs_of(pair)[lab];
            let best = most_likely(0..pairs, measures);
            sampler.causes[best] = true;
            sampler.draws[best * labs + lab] = 1;
        }
        sampler
    }

    fn round(&mut self) {
        self.sample_treatment_rates();
        for treatment in 0..self.chances.treatments {
            self.sample_single_cause(treatment);
            self.sample_further_causes(treatment);
        }
        self.sample_lab_rates();
        self.sample_lab_draws();
    }

    fn sample_treatment_rates(&mut self) {
        let treatments = self.chances.treatments;
        for diagnosis in 0..self.chances.diagnoses {
            let rate = self.treatment_rate[diagnosis];
            let mut orders = 0;
            for pair in diagnosis * treatments..(diagnosis + 1) * treatments {
                if self.causes[pair] {
                    orders += positive_poisson(&mut self.rng, rate * self.chances.treatment[pair]);
                }
            }
            self.treatment_rate[diagnosis] =
                gamma(&mut self.rng, orders, self.chances.more_treatments[diagnosis]);
        }
    }

    /// How often a diagnosis orders a treatment in the mean, at its present rate.
    fn rate(&self, pair: usize) -> f64 {
        self.treatment_rate[pair / self.chances.treatments] * self.chances.treatment[pair]
    }

    /// If a treatment has one cause, it may as well have another, which then measured its labs.
    fn sample_single_cause(&mut self, treatment: usize) {
        let &Chances { diagnoses, treatments, labs, .. } = self.chances;
        let pairs = || (0..diagnoses).map(|diagnosis| diagnosis * treatments + treatment);
        let mut causes = pairs().filter(|&pair| self.causes[pair]);
        let (Some(cause), None) = (causes.next(), causes.next()) else {
            for pair in pairs() {
                self.ordered[pair] += f64::from(u8::from(self.causes[pair]));
            }
            return;
        };
        let drawn: Vec<(usize, u32)> = (0..labs)
            .map(|lab| (lab, self.draws[cause * labs + lab]))
            .filter(|(_, times)| *times > 0)
            .collect();
        // In logarithms: a rate can be large, and many labs are together very unlikely.
        let mut weights: Vec<f64> = pairs()
            .map(|pair| {
                let ordered = log_odds(self.rate(pair)) + self.log_enough[pair];
                drawn.iter().fold(ordered, |weight, &(lab, times)| {
                    weight + f64::from(times) * self.log_lab[pair * labs + lab]
                })
            })
            .collect();
        let largest = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if largest == f64::NEG_INFINITY {
            // Rounding has made all of them impossible: stay.
            self.ordered[cause] += 1.0;
            return;
        }
        weights.iter_mut().for_each(|weight| *weight = (*weight - largest).exp());
        let total: f64 = weights.iter().sum();
        for (pair, weight) in pairs().zip(&weights) {
            self.ordered[pair] += weight / total;
        }
        let chosen = choose(&mut self.rng, &weights, total) * treatments + treatment;
        self.causes[cause] = false;
        self.causes[chosen] = true;
        if chosen != cause {
            for (lab, times) in drawn {
                self.draws[cause * labs + lab] = 0;
                self.draws[chosen * labs + lab] = times;
            }
        }
    }

    /// A pair that the encounter can do without comes and goes, and its labs with it.
    fn sample_further_causes(&mut self, treatment: usize) {
        let &Chances { diagnoses, treatments, labs, .. } = self.chances;
        let mut causes = (0..diagnoses).filter(|d| self.causes[d * treatments + treatment]).count();
        for pair in (0..diagnoses).map(|diagnosis| diagnosis * treatments + treatment) {
            let draws = pair * labs..(pair + 1) * labs;
            if self.causes[pair] {
                let only_source = |(times, sources): (&u32, &u32)| *times > 0 && *sources == 1;
                if causes == 1 || self.draws[draws.clone()].iter().zip(&self.sources).any(only_source) {
                    continue;
                }
                for (times, sources) in self.draws[draws].iter_mut().zip(&mut self.sources) {
                    *sources -= u32::from(*times > 0);
                    *times = 0;
                }
                self.causes[pair] = false;
                causes -= 1;
            }
            // If it is a cause, all labs that it measures are among those that the encounter has. Beyond
            // e^700 the odds are as good as certain.
            let (more, mass) = (self.chances.more_labs[pair], self.lab_mass[pair]);
            let odds = self.rate(pair).min(700.0).exp_m1() * self.within_labs[pair];
            if self.rng.random::<f64>() < odds / (1.0 + odds) {
                self.causes[pair] = true;
                causes += 1;
                if more > 0.0 && mass > 0.0 {
                    let rate = gamma(&mut self.rng, 0, 1.0 / (1.0 / more - mass));
                    for _ in 0..poisson(&mut self.rng, rate * mass) {
                        let lab = choose(&mut self.rng, self.chances.labs_of(pair), mass);
                        let times = &mut self.draws[pair * labs + lab];
                        self.sources[lab] += u32::from(*times == 0);
                        *times += 1;
                    }
                }
            }
        }
    }

    fn sample_lab_rates(&mut self) {
        let labs = self.chances.labs;
        for pair in 0..self.causes.len() {
            self.lab_rate[pair] = if self.causes[pair] {
                let drawn = self.draws[pair * labs..][..labs].iter().sum();
                gamma(&mut self.rng, drawn, self.chances.more_labs[pair])
            } else {
                0.0
            };
        }
    }

    fn sample_lab_draws(&mut self) {
        let &Chances { treatments, labs, .. } = self.chances;
        let causes: Vec<usize> = (0..self.causes.len()).filter(|&pair| self.causes[pair]).collect();
        let mut of_treatment = vec![0.0; treatments];
        self.draws.fill(0);
        for lab in 0..labs {
            of_treatment.fill(0.0);
            let rates: Vec<f64> = causes
                .iter()
                .map(|&pair| {
                    let rate = self.lab_rate[pair] * self.chances.labs_of(pair)[lab];
                    of_treatment[pair % treatments] += rate;
                    rate
                })
                .collect();
            let total: f64 = rates.iter().sum();
            let anybody = at_least_one(total);
            for (treatment, rate) in of_treatment.iter().enumerate() {
                if *rate > 0.0 {
                    self.measured[treatment * labs + lab] += at_least_one(*rate) / anybody;
                }
            }
            self.sources[lab] = 0;
            for _ in 0..positive_poisson(&mut self.rng, total) {
                let pair = causes[choose(&mut self.rng, &rates, total)];
                let times = &mut self.draws[pair * labs + lab];
                self.sources[lab] += u32::from(*times == 0);
                *times += 1;
            }
        }
    }
}

fn most_likely(pairs: impl Iterator<Item = usize>, chance: impl Fn(usize) -> f64) -> usize {
    pairs.max_by(|&a, &b| chance(a).total_cmp(&chance(b))).expect("an encounter has codes of each kind")
}

/// The rate of a loop that continues with probability `more` and drew `drawn` times.
fn gamma(rng: &mut Xoshiro256PlusPlus, drawn: u32, more: f64) -> f64 {
    if more <= 0.0 {
        return 0.0;
    }
    Gamma::new(1.0 + f64::from(drawn), more).expect("shape and scale are positive").sample(rng)
}

fn poisson(rng: &mut Xoshiro256PlusPlus, rate: f64) -> u32 {
    if rate <= 0.0 {
        return 0;
    }
    Poisson::new(rate).expect("the rate is positive and small").sample(rng) as u32
}

/// The chance that a Poisson number is not zero. Most rates are tiny, and then two terms are enough.
fn at_least_one(rate: f64) -> f64 {
    if rate < 1e-3 { rate * (1.0 - 0.5 * rate) } else { -(-rate).exp_m1() }
}

/// The logarithm of the odds that a Poisson number is not zero: ln(e^rate - 1).
fn log_odds(rate: f64) -> f64 {
    rate + at_least_one(rate).ln()
}

/// A Poisson number that is not zero.
fn positive_poisson(rng: &mut Xoshiro256PlusPlus, rate: f64) -> u32 {
    if rate > 20.0 {
        return poisson(rng, rate).max(1);
    }
    let mut left: f64 = rng.random();
    let mut number = 1;
    // For a tiny rate the quotient is 0/0; it tends to 1.
    let mut chance = if rate > 1e-9 { rate / rate.exp_m1() } else { 1.0 };
    while left > chance && number < 10_000 {
        left -= chance;
        number += 1;
        chance *= rate / f64::from(number);
    }
    number
}

/// A position, with a chance in proportion to its weight.
fn choose(rng: &mut Xoshiro256PlusPlus, weights: &[f64], total: f64) -> usize {
    let mut left = rng.random::<f64>() * total;
    for (position, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return position;
        }
    }
    // Rounding: the last one that can be.
    weights.iter().rposition(|weight| *weight > 0.0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    /// The chance that a loop that continues with `more` draws exactly the set `of` (a bit mask) and nothing
    /// else: inclusion and exclusion over its subsets.
    fn exactly(of: usize, more: f64, p: &[f64]) -> f64 {
        (0..1usize << p.len())
            .filter(|subset| subset & !of == 0)
            .map(|subset| {
                let mass: f64 =
                    p.iter().enumerate().filter(|(i, _)| subset >> i & 1 == 1).map(|(_, p)| p).sum();
                let sign = if (of ^ subset).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
                sign * (1.0 - more) / (1.0 - more * mass)
            })
            .sum()
    }

    /// Both posteriors by going through every explanation of the encounter: who ordered what, who measured
    /// what.
    fn enumerate(chances: &Chances) -> (Vec<f64>, Vec<f64>) {
        let &Chances { diagnoses, treatments, labs, .. } = chances;
        let pairs = diagnoses * treatments;
        let (mut ordered, mut measured) = (vec![0.0; pairs], vec![0.0; treatments * labs]);
        let mut total = 0.0;
        for causes in 0..1usize << pairs {
            let orders = |d: usize| causes >> (d * treatments) & ((1 << treatments) - 1);
            if (0..diagnoses).fold(0, |all, d| all | orders(d)) != (1 << treatments) - 1 {
                continue;
            }
            let prior: f64 = (0..diagnoses)
                .map(|d| {
                    let p = &chances.treatment[d * treatments..][..treatments];
                    exactly(orders(d), chances.more_treatments[d], p)
                })
                .product();
            for results in 0..1usize << (pairs * labs) {
                let drawn = |pair: usize| results >> (pair * labs) & ((1 << labs) - 1);
                let impossible = |pair: usize| causes >> pair & 1 == 0 && drawn(pair) != 0;
                let all = (0..pairs).fold(0, |all, pair| all | drawn(pair));
                if all != (1 << labs) - 1 || (0..pairs).any(impossible) {
                    continue;
                }
                let weight: f64 = prior
                    * (0..pairs)
                        .filter(|pair| causes >> pair & 1 == 1)
                        .map(|pair| exactly(drawn(pair), chances.more_labs[pair], chances.labs_of(pair)))
                        .product::<f64>();
                total += weight;
                for pair in (0..pairs).filter(|pair| causes >> pair & 1 == 1) {
                    ordered[pair] += weight;
                }
                for treatment in 0..treatments {
                    let of = (0..diagnoses).fold(0, |all, d| all | drawn(d * treatments + treatment));
                    for lab in (0..labs).filter(|lab| of >> lab & 1 == 1) {
                        measured[treatment * labs + lab] += weight;
                    }
                }
            }
        }
        (ordered.iter().map(|w| w / total).collect(), measured.iter().map(|w| w / total).collect())
    }

    #[test]
    fn agrees_with_every_explanation_weighed() {
        // Two diagnoses, two treatments, two labs, with chances from near to far.
        let chances = Chances {
            diagnoses: 2,
            treatments: 2,
            labs: 2,
            more_treatments: vec![0.7, 0.4],
            treatment: vec![0.3, 0.02, 0.1, 0.2],
            more_labs: vec![0.5, 0.8, 0.0, 0.3],
            lab: vec![0.2, 0.01, 0.05, 0.4, 0.3, 0.3, 0.02, 0.1],
        };
        let (ordered, measured) = enumerate(&chances);
        let runs = 200;
        let mut means = (vec![0.0; 4], vec![0.0; 4]);
        for run in 0..runs {
            let got = posterior(&chances, Xoshiro256PlusPlus::seed_from_u64(run));
            for i in 0..4 {
                means.0[i] += f64::from(got.diagnosis_treatment[i]) / runs as f64;
                means.1[i] += f64::from(got.treatment_lab[i]) / runs as f64;
            }
        }
        for (got, expected) in means.0.iter().chain(&means.1).zip(ordered.iter().chain(&measured)) {
            // 200 runs of 400 rounds leave a standard error below 0.002.
            assert!((got - expected).abs() < 0.008, "{means:?}\n{ordered:?} {measured:?}");
        }
    }
}
