//! What counts say: how likely a diagnosis is to order one more treatment, which one, whether that leads to
//! one more lab, and to which.

use super::counts::Counts;
use super::shrinkage::{Chance, Histogram, Shrinkage};

/// Powers of the share of a code among all choices that are tried as its base: 0 takes all codes for equally
/// likely, 1 takes the share as it is.
const POWERS: [f64; 3] = [0.0, 0.5, 1.0];

/// Groups of codes whose bases are nearly the same.
const GROUPS: usize = 24;

/// Rounds in which the chances of all treatments of a diagnosis come to sum to 1.
const ROUNDS: usize = 3;

/// How the leak is believed, which is no diagnosis: nearly as it was counted.
const LEAK: Chance = Chance { before: [0.1, 1.0] };

/// How likely each code is before anything is known of its cause.
#[derive(Debug, Clone, Default, PartialEq)]
struct Base {
    shares: Vec<f64>,
    /// Codes with nearly the same share: the share, and how many they are.
    groups: Vec<(f64, f64)>,
    group_of: Vec<u8>,
}

impl Base {
    fn new(counts: &[f64], power: f64) -> Self {
        let few = 0.5;
        let weights: Vec<f64> = counts.iter().map(|count| (count + few).powf(power)).collect();
        let all: f64 = weights.iter().sum();
        let shares: Vec<f64> = weights.iter().map(|weight| weight / all).collect();
        let mut order: Vec<usize> = (0..shares.len()).collect();
        order.sort_by(|a, b| shares[*a].total_cmp(&shares[*b]).then(a.cmp(b)));
        let size = order.len().div_ceil(GROUPS).max(1);
        let mut base = Base { groups: Vec::new(), group_of: vec![0; shares.len()], shares };
        for codes in order.chunks(size) {
            codes.iter().for_each(|code| base.group_of[*code] = base.groups.len() as u8);
            let share = codes.iter().map(|code| base.shares[*code]).sum::<f64>() / codes.len() as f64;
            base.groups.push((share, codes.len() as f64));
        }
        base
    }

    /// The share of a code; of the leak, which is no code, that of a usual one.
    fn of(&self, code: u32) -> f64 {
        self.shares.get(code as usize).copied().unwrap_or(1.0 / self.shares.len().max(1) as f64)
    }
}

/// The choices of one cause, and how often which code was chosen.
#[derive(Clone, Copy)]
struct Row<'a> {
    choices: f64,
    codes: &'a [u32],
    counts: &'a [f32],
}

impl Row<'_> {
    fn add(self, base: &Base, histogram: &mut Histogram) {
        for (share, codes) in &base.groups {
            histogram.add(0.0, self.choices * share, *codes);
        }
        for (code, count) in self.codes.iter().zip(self.counts) {
            let expected = self.choices * base.of(*code);
            histogram.add(f64::from(*count), expected, 1.0);
            // It was in its group, of those that were never chosen.
            histogram.add(0.0, self.choices * base.groups[base.group_of[*code as usize] as usize].0, -1.0);
        }
    }
}

/// How a kind of code is chosen by what leads to it, as it is learned and written down.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Habit {
    pub(super) power: f64,
    pub(super) shrinkage: Shrinkage,
}

/// The same for these counts.
#[derive(Debug, Clone, PartialEq)]
struct Choice {
    base: Base,
    habit: Habit,
}

impl Choice {
    /// With the most likely of some powers, if it is not known.
    fn new<'a>(rows: impl Iterator<Item = Row<'a>> + Clone, codes: usize, known: Option<Habit>) -> Self {
        let mut totals = vec![0.0; codes];
        for row in rows.clone() {
            let counted = row.codes.iter().zip(row.counts);
            counted.for_each(|(code, count)| totals[*code as usize] += f64::from(*count));
        }
        if let Some(habit) = known {
            return Choice { base: Base::new(&totals, habit.power), habit };
        }
        let tried = POWERS.into_iter().map(|power| {
            let base = Base::new(&totals, power);
            let mut histogram = Histogram::new();
            rows.clone().for_each(|row| row.add(&base, &mut histogram));
            let (shrinkage, likelihood) = Shrinkage::learn(&histogram);
            (likelihood, Choice { base, habit: Habit { power, shrinkage } })
        });
        let best = tried.max_by(|a, b| a.0.total_cmp(&b.0));
        best.expect("some powers are tried").1
    }

    /// The chance of a code that was chosen so often among so many choices.
    fn chance(&self, code: u32, count: f64, choices: f64) -> f64 {
        self.at(self.base.of(code), count, choices)
    }

    fn at(&self, base: f64, count: f64, choices: f64) -> f64 {
        base * self.habit.shrinkage.mean(count, choices * base)
    }

    /// The sum of the chances of all codes.
    fn total(&self, row: Row<'_>) -> f64 {
        let unseen = self.base.groups.iter().map(|(base, codes)| codes * self.at(*base, 0.0, row.choices));
        let seen = row.codes.iter().zip(row.counts).map(|(code, count)| {
            let base = self.base.of(*code);
            self.at(base, f64::from(*count), row.choices) - self.at(base, 0.0, row.choices)
        });
        unseen.sum::<f64>() + seen.sum::<f64>()
    }
}

/// What is learned beside counts, and written down with them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Habits {
    pub(super) treatments: Habit,
    pub(super) labs: Habit,
    /// How much counts are believed of how likely one more treatment is, and one more lab.
    pub(super) more: Chance,
    pub(super) more_labs: Chance,
}

/// What counts say.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    /// Of each diagnosis and the leak: how likely it is to order one more treatment.
    pub(super) more: Vec<f64>,
    /// How many orders of each were expected.
    choices: Vec<f64>,
    /// What the chances of its treatments are multiplied with to sum to 1.
    scales: Vec<f64>,
    /// For each diagnosis and each group of treatments: the chance of one that it was never seen to order.
    unseen: Vec<f32>,
    treatments: Choice,
    labs: Choice,
    habits: [Chance; 2],
}

impl Rates {
    /// Learns from counts how much each is to be believed.
    pub(super) fn learn(counts: &Counts) -> Self {
        Rates::new(counts, None, None)
    }

    /// What other counts say, where codes are chosen in the same way.
    pub(super) fn again(self, counts: &Counts) -> Self {
        Rates::new(counts, Some((self.treatments.habit, self.labs.habit)), None)
    }

    /// What counts say by what was learned of them before.
    pub(super) fn of(counts: &Counts, habits: Habits) -> Self {
        let Habits { treatments, labs, more, more_labs } = habits;
        Rates::new(counts, Some((treatments, labs)), Some([more, more_labs]))
    }

    fn new(counts: &Counts, habits: Option<(Habit, Habit)>, chances: Option<[Chance; 2]>) -> Self {
        let (treatments, labs) = habits.unzip();
        let [chance, chance_of_labs] = chances.unwrap_or_else(|| Rates::chances(counts));
        let leak = counts.leak();
        let ordered = counts.ordered();
        let chance_of = |diagnosis: usize| if diagnosis == leak { LEAK } else { chance };
        let more: Vec<f64> = (0..=leak)
            .map(|one| chance_of(one).after(ordered[one], f64::from(counts.diagnoses[one])))
            .collect();
        let expected = |(more, there): (&f64, &f32)| f64::from(*there) * more / (1.0 - more);
        let choices: Vec<f64> = more.iter().zip(&counts.diagnoses).map(expected).collect();
        let row = |diagnosis: usize| {
            let (codes, orders) = counts.treatments_of(diagnosis);
            Row { choices: choices[diagnosis], codes, counts: orders }
        };
        let known = counts.vocabulary.treatment as usize;
        let seen = (0..leak).map(row).filter(|row| row.choices > 0.0);
        let treatments = Choice::new(seen, known, treatments);
        let lab_row = |pair: usize| {
            let orders = f64::from(counts.orders[pair]);
            let more = chance_of_labs.after(f64::from(counts.labs_after[pair]), orders);
            let (codes, results) = counts.results_of(pair);
            Row { choices: orders * more / (1.0 - more), codes, counts: results }
        };
        let pairs = 0..counts.treatments.len();
        let labs = Choice::new(pairs.map(lab_row), counts.vocabulary.lab as usize, labs);
        let scale = |diagnosis: usize| {
            (0..ROUNDS).fold(1.0, |scale: f64, _| {
                1.0 / treatments
                    .total(Row { choices: choices[diagnosis] * scale, ..row(diagnosis) })
                    .max(1e-9)
            })
        };
        let scales = (0..=leak).map(scale).collect();
        let habits = [chance, chance_of_labs];
        let rates = Rates { more, scales, unseen: Vec::new(), treatments, labs, habits, choices };
        Rates { unseen: rates.unseen_orders(), ..rates }
    }

    /// How much counts are believed of how likely one more treatment is, and one more lab.
    fn chances(counts: &Counts) -> [Chance; 2] {
        let ordered = counts.ordered();
        let orders = ordered.iter().zip(&counts.diagnoses).take(counts.leak());
        let orders = orders.map(|(orders, there)| (*orders, f64::from(*there)));
        let labs = counts.labs_after.iter().zip(&counts.orders);
        let labs = labs.map(|(labs, orders)| (f64::from(*labs), f64::from(*orders)));
        [Chance::learn(orders.filter(|(_, there)| *there > 0.0)), Chance::learn(labs)]
    }

    fn unseen_orders(&self) -> Vec<f32> {
        let groups = &self.treatments.base.groups;
        let of = |diagnosis: usize| {
            groups.iter().map(move |(base, _)| {
                let scale = self.scales[diagnosis];
                let chance = self.treatments.at(*base, 0.0, self.choices[diagnosis] * scale);
                (self.more[diagnosis] * chance * scale) as f32
            })
        };
        (0..self.more.len()).flat_map(of).collect()
    }

    /// What was learned beside counts.
    pub(super) fn habits(&self) -> Habits {
        let [more, more_labs] = self.habits;
        Habits { treatments: self.treatments.habit.clone(), labs: self.labs.habit.clone(), more, more_labs }
    }

    /// How likely a diagnosis is to order one more treatment, and this one, if it was counted so often.
    pub(super) fn order(&self, diagnosis: usize, treatment: u32, count: f64) -> f64 {
        let scale = self.scales[diagnosis];
        let chance = self.treatments.chance(treatment, count, self.choices[diagnosis] * scale);
        self.more[diagnosis] * (chance * scale).min(1.0)
    }

    /// The same for each diagnosis, if it was never counted; about, for those with alike treatments.
    pub(super) fn unseen(&self, treatment: u32) -> impl Iterator<Item = f32> {
        let group = self.treatments.base.group_of[treatment as usize] as usize;
        self.unseen.iter().skip(group).step_by(self.treatments.base.groups.len()).copied()
    }

    /// How likely a pair of a diagnosis and a treatment is to lead to one more lab.
    pub(super) fn more_labs(&self, orders: f64, labs_after: f64) -> f64 {
        self.habits[1].after(labs_after, orders)
    }

    /// How likely this lab is then, if it was counted so often.
    pub(super) fn lab(&self, lab: u32, count: f64, orders: f64, more: f64) -> f64 {
        self.labs.chance(lab, count, orders * more / (1.0 - more)).min(1.0)
    }

    /// How likely each of some labs is then, if it was never counted; about, for alike labs.
    pub(super) fn unseen_labs(&self, labs: &[u32], orders: f64, more: f64, chances: &mut [f64]) {
        let choices = orders * more / (1.0 - more);
        let mut of_groups = [-1.0; GROUPS];
        for (chance, lab) in chances.iter_mut().zip(labs) {
            let group = self.labs.base.group_of[*lab as usize] as usize;
            if of_groups[group] < 0.0 {
                of_groups[group] = self.labs.at(self.labs.base.groups[group].0, 0.0, choices).min(1.0);
            }
            *chance = of_groups[group];
        }
    }
}
