//! Codes that give a label away, such as a resuscitation among the codes that mortality is predicted from.
//!
//! A code is a leak if having it, or lacking it, nearly determines the label: among the training encounters
//! that have it (or lack it) and whose label is known,
//!
//! - there are at least `MIN_ENCOUNTERS`,
//! - most have the same value of the label, and
//! - the odds of that value are at least `MIN_LIKELIHOOD_RATIO` times those of the base rate, the lower end
//!   of the 95 % Wilson interval taken for the share.
//!
//! That is the likelihood ratio of diagnostic tests, of which 10 is the usual mark of a conclusive one. It is
//! one scale for rare and for frequent labels, and for both values of a label. With a base rate of 2 %, 24
//! positives among 40 encounters are a leak (a ratio of 39); with one of 50 %, it takes 39 of 39. A code that
//! the label does not depend on is listed with a probability below one in a million, if encounters are
//! independent of each other.
//!
//! Only the training split is counted: to leave out a code for what it says about test labels is a choice
//! made on the test split.

use serde::Serialize;

use crate::cells::{is_small, is_told};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::job::Job;
use crate::metric::{Areas, Ranking};
use crate::record::{Code, CodeKind, Encounter, PerKind, Vocabulary};
use crate::split::{Split, SplitPart};

/// Fewer encounters with a code, or without it, are no evidence.
pub const MIN_ENCOUNTERS: u32 = 10;

/// How many times the odds of the base rate the odds of a leak are at least.
pub const MIN_LIKELIHOOD_RATIO: f64 = 10.0;

/// The codes that give a label away. With a least cell, counts that are too small are `None`, and so is what
/// they can be computed from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leaks {
    /// The label.
    pub label: String,
    /// Encounters of the training split.
    pub training_encounters: Option<u64>,
    /// In how many of them the label is known. All other counts are among these.
    pub known: Option<u64>,
    /// In how many of these it is true.
    pub positive: Option<u64>,
    /// The share of these; also undefined if the label is never known.
    pub base_rate: Option<f64>,
    /// Different codes that these have.
    pub codes: u64,
    /// The code with the highest AUROC, if both values of the label occur.
    pub best_auroc: Option<SingleCode>,
    /// The code with the highest AUCPR, if both values of the label occur.
    pub best_aucpr: Option<SingleCode>,
    /// How many leaks are not listed, since fewer encounters than the least cell have the code.
    pub hidden: u64,
    /// The others, the strongest first.
    pub leaks: Vec<Leak>,
}

/// A code that gives the label away.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Leak {
    /// The code.
    #[serde(flatten)]
    pub code: SingleCode,
    /// Whether encounters with the code are meant, or those without it.
    pub present: bool,
    /// The value of the label that most of them have.
    pub value: bool,
    /// The likelihood ratio, at the lower end of its interval: how many times the odds of the base rate the
    /// odds of the value are at least.
    pub likelihood_ratio: Option<f64>,
}

/// What a code alone says about the label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SingleCode {
    /// The code as the source writes it.
    pub code: String,
    /// Its kind.
    pub kind: CodeKind,
    /// What it means, where the source says.
    pub description: Option<String>,
    /// Encounters that have it.
    pub encounters: Option<u64>,
    /// In how many of them the label is true.
    pub positive: Option<u64>,
    /// The share of positives among the encounters that have it.
    pub precision: Option<f64>,
    /// The share of all positives that have it.
    pub coverage: Option<f64>,
    /// AUROC if the code is all that is known. A code that speaks against the label counts by its absence, so
    /// this is at least 0.5.
    pub auroc: Option<f64>,
    /// AUCPR, in the same way.
    pub aucpr: Option<f64>,
}

/// Finds the codes that give a label away, without counts from 1 to below `min_cell`. The job is told how
/// many encounters are read.
///
/// # Errors
/// If there is no such label, a row is bad, or the job is stopped.
pub fn find(
    dataset: &Dataset,
    split: &Split,
    label: &str,
    min_cell: u64,
    job: &Job<'_, u64>,
) -> Result<Leaks> {
    let column = dataset.label(label)?;
    let mut counter = Counter::new(dataset.vocabulary());
    for (read, encounter) in (1..).zip(dataset.encounters()?) {
        let encounter = encounter?;
        if split.part(&encounter) == SplitPart::Train {
            counter.add(&encounter, encounter.labels[column]);
        }
        if u64::is_multiple_of(read, 1024) {
            job.advance(read)?;
        }
    }
    Ok(counter.finish(label, dataset.vocabulary(), min_cell))
}

/// Encounters by their label.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Tally {
    positive: u32,
    negative: u32,
}

impl Tally {
    fn add(&mut self, label: bool) {
        *(if label { &mut self.positive } else { &mut self.negative }) += 1;
    }

    fn total(self) -> u32 {
        self.positive + self.negative
    }

    fn of(self, value: bool) -> u32 {
        if value { self.positive } else { self.negative }
    }

    fn minus(self, other: Tally) -> Tally {
        Tally { positive: self.positive - other.positive, negative: self.negative - other.negative }
    }

    /// The share of positives; undefined if there are no encounters.
    fn precision(self) -> Option<f64> {
        (self.total() > 0).then(|| f64::from(self.positive) / f64::from(self.total()))
    }
}

/// What the training encounters with a code, or without it, have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Sign {
    present: bool,
    value: bool,
    likelihood_ratio: f64,
}

impl Sign {
    /// The stronger one of having a code and of lacking it, if either gives the label away.
    fn of(with: Tally, all: Tally) -> Option<Sign> {
        let signs = [(true, with), (false, all.minus(with))].into_iter().filter_map(|(present, group)| {
            let value = group.positive > group.negative;
            let is_evidence = group.total() >= MIN_ENCOUNTERS && group.of(value) > group.of(!value);
            is_evidence.then(|| Sign {
                present,
                value,
                likelihood_ratio: least_likelihood_ratio(group, all, value),
            })
        });
        let leaks = signs.filter(|sign| sign.likelihood_ratio >= MIN_LIKELIHOOD_RATIO);
        leaks.max_by(|a, b| a.likelihood_ratio.total_cmp(&b.likelihood_ratio))
    }
}

/// The odds of a value among some encounters, at the lower end of their interval, over those among all.
fn least_likelihood_ratio(group: Tally, all: Tally, value: bool) -> f64 {
    let share = wilson_lower(group.of(value), group.total());
    share / (1.0 - share) * f64::from(all.of(!value)) / f64::from(all.of(value))
}

/// The lower end of the 95 % Wilson interval of a share: `some` of `all`, of which there is at least one.
fn wilson_lower(some: u32, all: u32) -> f64 {
    const Z: f64 = 1.959_963_984_540_054;
    let (n, share, z2) = (f64::from(all), f64::from(some) / f64::from(all), Z * Z);
    let half_width = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    (share + z2 / (2.0 * n) - half_width) / (1.0 + z2 / n)
}

/// How well a code alone ranks encounters, by its presence or by its absence.
fn areas(with: Tally, all: Tally) -> Areas {
    let without = all.minus(with);
    let ranked = |above: Tally, below: Tally| {
        let mut ranking = Ranking::default();
        ranking.add_many(1.0, above.positive, above.negative);
        ranking.add_many(0.0, below.positive, below.negative);
        ranking.areas()
    };
    let by_presence = ranked(with, without);
    match by_presence.auroc {
        Some(auroc) if auroc < 0.5 => ranked(without, with),
        _ => by_presence,
    }
}

/// Training encounters, counted one by one.
struct Counter {
    training: u64,
    /// Those whose label is known.
    all: Tally,
    /// Those of them that have each code.
    with: PerKind<Vec<Tally>>,
}

impl Counter {
    fn new(vocabulary: &Vocabulary) -> Self {
        let with = PerKind::from_fn(|kind| vec![Tally::default(); vocabulary[kind].len()]);
        Counter { training: 0, all: Tally::default(), with }
    }

    fn add(&mut self, encounter: &Encounter, label: Option<bool>) {
        self.training += 1;
        let Some(label) = label else { return };
        self.all.add(label);
        for kind in CodeKind::ALL {
            encounter.codes[kind].iter().for_each(|id| self.with[kind][*id as usize].add(label));
        }
    }

    fn finish(&self, label: &str, vocabulary: &Vocabulary, min_cell: u64) -> Leaks {
        let limit = Limit { training: self.training, all: self.all, min_cell };
        let seen: Vec<Seen<'_>> = (CodeKind::ALL.into_iter())
            .flat_map(|kind| vocabulary[kind].iter().zip(&self.with[kind]).map(move |pair| (kind, pair)))
            .filter(|(_, (_, with))| with.total() > 0)
            .map(|(kind, (code, with))| Seen { kind, code, with: *with, areas: areas(*with, self.all) })
            .collect();
        let mut leaks: Vec<(&Seen<'_>, Sign)> =
            seen.iter().filter_map(|seen| Some((seen, Sign::of(seen.with, self.all)?))).collect();
        leaks.sort_by(|(_, a), (_, b)| b.likelihood_ratio.total_cmp(&a.likelihood_ratio));
        let found = leaks.len();
        leaks.retain(|(seen, _)| limit.names(seen.with));
        Leaks {
            label: label.into(),
            training_encounters: (!is_small(self.training, min_cell)).then_some(self.training),
            known: limit.known(),
            positive: limit.positive(),
            base_rate: self.all.precision().filter(|_| limit.shows_label()),
            codes: seen.len() as u64,
            best_auroc: limit.best(&seen, |areas| areas.auroc),
            best_aucpr: limit.best(&seen, |areas| areas.aucpr),
            hidden: (found - leaks.len()) as u64,
            leaks: leaks.into_iter().map(|(seen, sign)| limit.leak(seen, sign)).collect(),
        }
    }
}

/// A code, and the encounters that have it.
struct Seen<'a> {
    kind: CodeKind,
    code: &'a Code,
    with: Tally,
    areas: Areas,
}

/// What may be shown of counts.
struct Limit {
    training: u64,
    all: Tally,
    min_cell: u64,
}

impl Limit {
    fn known(&self) -> Option<u64> {
        let known = u64::from(self.all.total());
        is_told(known, self.training, self.min_cell).then_some(known)
    }

    fn positive(&self) -> Option<u64> {
        let (positive, known) = (u64::from(self.all.positive), u64::from(self.all.total()));
        is_told(positive, known, self.min_cell).then_some(positive)
    }

    /// Whether the counts of the label are shown. If not, nothing is that they could be computed from.
    fn shows_label(&self) -> bool {
        self.known().is_some() && self.positive().is_some()
    }

    /// Whether a code is named that these encounters have.
    fn names(&self, with: Tally) -> bool {
        !is_small(with.total().into(), self.min_cell)
    }

    /// Whether the labels of encounters with a code are counted: no cell of the four is small.
    fn counts(&self, with: Tally) -> bool {
        let without = self.all.minus(with);
        let cells = [with.positive, with.negative, without.positive, without.negative];
        self.shows_label() && !cells.iter().any(|cell| is_small(u64::from(*cell), self.min_cell))
    }

    /// The code that has the highest area, of equal ones the first.
    fn best(&self, seen: &[Seen<'_>], area: impl Fn(&Areas) -> Option<f64>) -> Option<SingleCode> {
        let named = seen.iter().rev().filter(|seen| self.names(seen.with));
        let defined = named.filter_map(|seen| Some((seen, area(&seen.areas)?)));
        defined.max_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(seen, _)| self.single(seen))
    }

    fn single(&self, seen: &Seen<'_>) -> SingleCode {
        let (encounters, counts) = (u64::from(seen.with.total()), self.counts(seen.with));
        let coverage = f64::from(seen.with.positive) / f64::from(self.all.positive);
        SingleCode {
            code: seen.code.code.clone(),
            kind: seen.kind,
            description: seen.code.description.clone(),
            encounters: is_told(encounters, self.all.total().into(), self.min_cell).then_some(encounters),
            positive: counts.then_some(seen.with.positive.into()),
            precision: seen.with.precision().filter(|_| counts),
            coverage: (counts && self.all.positive > 0).then_some(coverage),
            auroc: seen.areas.auroc.filter(|_| counts),
            aucpr: seen.areas.aucpr.filter(|_| counts),
        }
    }

    fn leak(&self, seen: &Seen<'_>, Sign { present, value, likelihood_ratio }: Sign) -> Leak {
        let likelihood_ratio = self.counts(seen.with).then_some(likelihood_ratio);
        Leak { code: self.single(seen), present, value, likelihood_ratio }
    }
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{Binomial, DiscreteCDF};

    use super::*;

    fn tally(positive: u32, negative: u32) -> Tally {
        Tally { positive, negative }
    }

    /// What is left of a number after four decimals is not compared.
    fn assert_near(a: f64, b: f64) {
        assert!((a - b).abs() < 5e-5, "{a} is not {b}");
    }

    #[test]
    fn the_interval_is_wilsons() {
        // (p + z²/2n - z √(p (1 - p)/n + z²/4n²)) / (1 + z²/n) with p = 0.6, n = 40, z = 1.96.
        assert_near(wilson_lower(24, 40), 0.4460);
        assert_near(wilson_lower(0, 40), 0.0);
        // Where all are alike, n / (n + z²).
        assert_near(wilson_lower(40, 40), 40.0 / 43.8415);
    }

    #[test]
    fn a_code_that_most_positives_of_a_rare_label_have_is_a_leak() {
        // 2 % of 10,000 are positive. 0.44596 / 0.55404 * 9800 / 200 = 39.44.
        let sign = Sign::of(tally(24, 16), tally(200, 9800)).unwrap();
        assert!(sign.present && sign.value);
        assert!((sign.likelihood_ratio - 39.44).abs() < 0.01, "{sign:?}");
        // Tenfold odds, yet most encounters that have it are negative.
        assert_eq!(Sign::of(tally(30, 70), tally(200, 9800)), None);
    }

    #[test]
    fn few_encounters_are_no_evidence() {
        let all = tally(200, 9800);
        assert_eq!(Sign::of(tally(2, 0), all), None, "both died");
        assert_eq!(Sign::of(tally(9, 0), all), None);
        assert!(Sign::of(tally(10, 0), all).is_some());
        // Half of them are positive, so that 38 / 3.8415 = 9.9 and 39 / 3.8415 = 10.2.
        let all = tally(5000, 5000);
        assert_eq!(Sign::of(tally(38, 0), all), None);
        assert!(Sign::of(tally(39, 0), all).is_some());
        assert_eq!(Sign::of(tally(0, 0), tally(0, 0)), None);
    }

    #[test]
    fn a_negative_and_an_absent_code_give_it_away_too() {
        // What only survivors have: 2000 / 3.8415 * 200 / 9800 = 10.6.
        let sign = Sign::of(tally(0, 2000), tally(200, 9800)).unwrap();
        assert!(sign.present && !sign.value);
        assert!((sign.likelihood_ratio - 10.63).abs() < 0.01, "{sign:?}");
        // What is common among the negatives and rare among the positives, without being near certain.
        assert_eq!(Sign::of(tally(15, 2985), tally(200, 9800)), None);
        // What all negatives have and no positive has: those without it are 200 of 200, 200 / 3.8415 * 49 =
        // 2551.
        let sign = Sign::of(tally(0, 9800), tally(200, 9800)).unwrap();
        assert!(!sign.present && sign.value);
        assert!((sign.likelihood_ratio - 2551.1).abs() < 0.1, "{sign:?}");
        // What all positives have, and half of the negatives: 4900 / 3.8415 * 200 / 9800 = 26.0.
        let sign = Sign::of(tally(200, 4900), tally(200, 9800)).unwrap();
        assert!(!sign.present && !sign.value);
        assert!((sign.likelihood_ratio - 26.03).abs() < 0.01, "{sign:?}");
    }

    #[test]
    fn a_label_with_one_value_has_no_leak() {
        assert_eq!(Sign::of(tally(0, 500), tally(0, 1000)), None);
        assert_eq!(Sign::of(tally(500, 0), tally(1000, 0)), None);
    }

    /// The probability that so many encounters at least have a value, if it does not depend on the code.
    fn chance(some: u32, all: u32, base_rate: f64) -> f64 {
        Binomial::new(base_rate, all.into()).unwrap().sf((some - 1).into())
    }

    #[test]
    fn chance_alone_makes_no_leak() {
        for per_mille in [1, 5, 10, 20, 30, 40, 50, 60, 80, 100, 150, 200, 250, 300, 500, 700, 900, 980] {
            let all = tally(per_mille * 10_000, (1000 - per_mille) * 10_000);
            let base_rate = all.precision().unwrap();
            for total in (10..100_u32).chain([200, 500, 1000, 2000, 5000]) {
                let is_leak = |positive: &u32| {
                    let group = tally(*positive, total - positive);
                    Sign::of(group, all).is_some_and(|sign| sign.present && sign.value)
                };
                if let Some(least) = (1..=total).find(is_leak) {
                    let chance = chance(least, total, base_rate);
                    assert!(chance < 1e-6, "{least} of {total} at {base_rate}: {chance}");
                }
            }
        }
    }

    #[test]
    fn a_code_alone_ranks_by_presence_or_by_absence() {
        // Sensitivity 30 / 50, specificity 90 / 100: AUROC 0.75. Precision 30 / 40 for 30 positives, 50 / 150
        // for 20.
        let all = tally(50, 100);
        let by_presence = areas(tally(30, 10), all);
        assert_near(by_presence.auroc.unwrap(), 0.75);
        assert_near(by_presence.aucpr.unwrap(), 0.6 * 0.75 + 0.4 / 3.0);
        assert_eq!(areas(all.minus(tally(30, 10)), all), by_presence);
        assert_eq!(areas(tally(3, 0), tally(5, 0)), Areas::default());
    }

    /// Encounters with codes 0 and 1 of three treatments, and a label. Code 0 is a leak: 20 of its 21 are
    /// positive, as are 24 of 250.
    fn counted() -> (Counter, Vocabulary) {
        let code = |code: &str| Code { code: code.into(), description: None, count: 0 };
        let treatment = ["resuscitation", "aspirin", "never"].map(code).to_vec();
        let vocabulary = PerKind { diagnosis: vec![], treatment, lab: vec![], ..PerKind::default() };
        let mut counter = Counter::new(&vocabulary);
        let groups: [(&[u32], Option<bool>, u32); 6] = [
            (&[0], Some(true), 20),
            (&[0], Some(false), 1),
            (&[1], Some(true), 2),
            (&[1], Some(false), 25),
            (&[], Some(true), 2),
            (&[], Some(false), 200),
        ];
        for (codes, label, encounters) in groups.into_iter().chain([(&[0, 1][..], None, 30)]) {
            let codes =
                PerKind { diagnosis: vec![], treatment: codes.to_vec(), lab: vec![], ..PerKind::default() };
            (0..encounters).for_each(|_| counter.add(&Encounter::new(codes.clone()), label));
        }
        (counter, vocabulary)
    }

    #[test]
    fn a_leak_has_its_counts() {
        let (counter, vocabulary) = counted();
        let found = counter.finish("died", &vocabulary, 0);
        assert_eq!(
            (found.training_encounters, found.known, found.positive),
            (Some(280), Some(250), Some(24))
        );
        assert_eq!((found.codes, found.hidden, found.base_rate), (2, 0, Some(0.096)));
        let [leak] = &found.leaks[..] else { panic!("{found:?}") };
        assert_eq!((leak.code.code.as_str(), leak.code.kind), ("resuscitation", CodeKind::Treatment));
        assert_eq!((leak.code.encounters, leak.code.positive), (Some(21), Some(20)));
        assert_near(leak.code.precision.unwrap(), 20.0 / 21.0);
        assert_near(leak.code.coverage.unwrap(), 20.0 / 24.0);
        assert_near(leak.code.auroc.unwrap(), (1.0 + 20.0 / 24.0 - 1.0 / 226.0) / 2.0);
        assert!(leak.present && leak.value);
        assert_eq!(found.best_auroc.as_ref(), Some(&leak.code));
        assert_eq!(found.best_aucpr.as_ref(), Some(&leak.code));
    }

    #[test]
    fn small_cells_are_hidden_and_what_gives_them_by_subtraction() {
        let (counter, vocabulary) = counted();
        let found = counter.finish("died", &vocabulary, 11);
        assert_eq!(
            (found.training_encounters, found.known, found.positive),
            (Some(280), Some(250), Some(24))
        );
        // One negative has the code, and four positives do not.
        let [leak] = &found.leaks[..] else { panic!("{found:?}") };
        assert_eq!((leak.code.encounters, leak.code.positive, leak.code.precision), (Some(21), None, None));
        let rest = [leak.code.coverage, leak.code.auroc, leak.code.aucpr, leak.likelihood_ratio];
        assert_eq!(rest, [None; 4]);
        assert_eq!(found.best_auroc.as_ref(), Some(&leak.code));
        // The code itself is not named if few have it, and the label not counted if few are positive.
        let found = counter.finish("died", &vocabulary, 22);
        assert_eq!((found.leaks.len(), found.hidden), (0, 1));
        assert_eq!(found.best_auroc.map(|code| code.code).as_deref(), Some("aspirin"));
        let found = counter.finish("died", &vocabulary, 25);
        assert_eq!((found.positive, found.base_rate), (None, None));
        let found = counter.finish("died", &vocabulary, 31);
        assert_eq!((found.known, found.base_rate), (None, None), "30 are unknown");
    }
}
