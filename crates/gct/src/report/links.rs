//! Which code goes with which, over many encounters: what a clinician would check.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::round;
use crate::cells::is_told;
use crate::graph::NodeRanges;
use crate::record::{CodeKind, Encounter};

/// Links that are told.
const TOLD: usize = 2000;

/// A cause and an effect that were in the same encounters.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeLink {
    /// The diagnosis or treatment, as an index among all codes.
    pub cause: usize,
    /// The treatment or lab.
    pub effect: usize,
    /// In how many encounters both were.
    pub encounters: u64,
    /// What the cause gave to the effect there, in the mean: attention, or the probability of an edge.
    pub mean: f64,
    /// The 95 % interval of that mean, by how it varied; `None` of a single encounter.
    pub low: Option<f64>,
    /// Its other end.
    pub high: Option<f64>,
    /// What the effect gave to the cause. Of probabilities it is the same.
    pub back: f64,
    /// In how many of them it is known what was truly connected.
    pub known: Option<u64>,
    /// In how many of these they were.
    #[serde(rename = "true")]
    pub truly: Option<u64>,
}

/// Sums over encounters, by pair of codes.
#[derive(Default)]
pub(super) struct Links {
    sums: FxHashMap<(u32, u32), Sum>,
}

#[derive(Default)]
struct Sum {
    encounters: u64,
    given: f64,
    /// Its squares, for the interval.
    squares: f64,
    back: f64,
    known: u64,
    truly: u64,
}

impl Links {
    /// Adds what a model said of an encounter: `strengths(i, j)` is what i gives to j, and what j gives to i;
    /// `code` the index of a code among all codes. A node that was hidden from it is left out.
    pub(super) fn add(
        &mut self,
        encounter: &Encounter,
        hidden: Option<usize>,
        adjacency: Option<&[bool]>,
        strengths: impl Fn(usize, usize) -> [f32; 2],
        code: impl Fn(CodeKind, u32) -> u32,
    ) {
        let nodes = NodeRanges::of(encounter);
        for (causes, effects) in
            [(CodeKind::Diagnosis, CodeKind::Treatment), (CodeKind::Treatment, CodeKind::Lab)]
        {
            let seen = nodes.range(causes).zip(&encounter.codes[causes]).filter(|(i, _)| Some(*i) != hidden);
            for (i, cause) in seen {
                for (j, effect) in nodes.range(effects).zip(&encounter.codes[effects]) {
                    let sum = self.sums.entry((code(causes, *cause), code(effects, *effect))).or_default();
                    sum.encounters += 1;
                    let [given, back] = strengths(i, j).map(f64::from);
                    sum.given += given;
                    sum.squares += given * given;
                    sum.back += back;
                    sum.known += u64::from(adjacency.is_some());
                    sum.truly += u64::from(adjacency.is_some_and(|edges| edges[i * nodes.len() + j]));
                }
            }
        }
    }

    /// Those that the model believes in most, over all encounters and both ways together, by what causes give
    /// to effects in all of them. Pairs of
    /// fewer than `min_cell` encounters are left out, and a count below it is not told, nor one that leaves
    /// so few.
    pub(super) fn finish(self, min_cell: u64) -> Vec<CodeLink> {
        let mut sums: Vec<((u32, u32), Sum)> =
            self.sums.into_iter().filter(|(_, sum)| sum.encounters >= min_cell.max(1)).collect();
        let total = |sum: &Sum| sum.given + sum.back;
        sums.sort_unstable_by(|(a, one), (b, other)| total(other).total_cmp(&total(one)).then(a.cmp(b)));
        sums.truncate(TOLD);
        let link = |((cause, effect), sum): ((u32, u32), Sum)| CodeLink {
            cause: cause as usize,
            effect: effect as usize,
            encounters: sum.encounters,
            mean: round(sum.given / sum.encounters as f64),
            low: sum.interval().map(|ends| round(ends[0])),
            high: sum.interval().map(|ends| round(ends[1])),
            back: round(sum.back / sum.encounters as f64),
            known: is_told(sum.known, sum.encounters, min_cell).then_some(sum.known),
            truly: (sum.known > 0
                && is_told(sum.known, sum.encounters, min_cell)
                && is_told(sum.truly, sum.known, min_cell))
            .then_some(sum.truly),
        };
        sums.into_iter().map(link).collect()
    }
}

impl Sum {
    /// The 95 % interval of what was given in the mean, as of a sum of many independent numbers.
    fn interval(&self) -> Option<[f64; 2]> {
        let count = self.encounters as f64;
        let mean = self.given / count;
        let variance = (self.squares - count * mean * mean).max(0.0) / (count - 1.0);
        let reach = 1.96 * (variance / count).sqrt();
        (self.encounters > 1).then(|| [mean - reach, mean + reach].map(|end| end.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    /// The visit (0), a diagnosis (1), two treatments (2, 3), a lab (4).
    fn encounter() -> Encounter {
        Encounter::new(PerKind {
            diagnosis: vec![7],
            treatment: vec![1, 2],
            lab: vec![5],
            ..PerKind::default()
        })
    }

    fn code(kind: CodeKind, id: u32) -> u32 {
        100 * (kind as u32 - CodeKind::Diagnosis as u32) + id
    }

    #[test]
    fn sums_are_over_encounters_and_by_pair_of_codes() {
        let (mut links, encounter) = (Links::default(), encounter());
        let strengths = |i: usize, j: usize| if (i, j) == (1, 2) { [0.5, 0.25] } else { [0.1, 0.1] };
        let mut edges = vec![false; 25];
        edges[5 + 2] = true;
        links.add(&encounter, None, Some(&edges), strengths, code);
        links.add(&encounter, None, Some(&[false; 25]), strengths, code);
        let told = links.finish(0);
        let strongest = CodeLink {
            cause: 7,
            effect: 101,
            encounters: 2,
            mean: 0.5,
            low: Some(0.5),
            high: Some(0.5),
            back: 0.25,
            known: Some(2),
            truly: Some(1),
        };
        assert_eq!(told[0], strongest);
        assert_eq!(told.len(), 4, "a diagnosis with two treatments, and these with a lab");
    }

    #[test]
    fn the_interval_is_that_of_a_mean() {
        let (mut links, encounter) = (Links::default(), encounter());
        links.add(&encounter, None, None, |_, _| [0.5; 2], code);
        assert_eq!((links.sums[&(7, 101)].interval(), links.sums.len()), (None, 4));
        for strength in [0.3, 0.4, 0.6] {
            links.add(&encounter, None, None, |_, _| [strength, 0.5], code);
        }
        // 0.3, 0.4, 0.5, 0.6: the mean 0.45, the deviation 0.1291, by the root of four 0.0645.
        let [low, high] = links.sums[&(7, 101)].interval().expect("there are four");
        assert!((low - 0.3235).abs() < 1e-4 && (high - 0.5765).abs() < 1e-4, "{low} {high}");
    }

    #[test]
    fn what_was_hidden_links_nothing() {
        let mut links = Links::default();
        links.add(&encounter(), Some(1), None, |_, _| [0.5; 2], code);
        assert!(links.finish(0).iter().all(|link| link.cause >= 100), "only treatments are causes");
    }

    #[test]
    fn small_counts_are_not_told() {
        let (mut links, encounter) = (Links::default(), encounter());
        let mut edges = vec![false; 25];
        edges[5 + 2] = true;
        links.add(&encounter, None, Some(&edges), |_, _| [0.5; 2], code);
        for _ in 0..10 {
            links.add(&encounter, None, Some(&[false; 25]), |_, _| [0.5; 2], code);
        }
        let told = links.finish(11);
        assert_eq!(told[0].truly, None, "one of eleven is a small cell");
        assert_eq!(told[1].truly, Some(0));
        let mut few = Links::default();
        few.add(&encounter, None, None, |_, _| [0.5; 2], code);
        assert_eq!(few.finish(2), []);
    }

    #[test]
    fn truth_is_not_told_where_it_is_not_known() {
        let mut links = Links::default();
        links.add(&encounter(), None, None, |_, _| [0.5; 2], code);
        assert!(links.finish(0).iter().all(|link| (link.known, link.truly) == (Some(0), None)));
    }

    #[test]
    fn it_is_told_of_how_many_the_truth_is_known() {
        let (mut links, encounter) = (Links::default(), encounter());
        links.add(&encounter, None, Some(&[true; 25]), |_, _| [0.5; 2], code);
        links.add(&encounter, None, None, |_, _| [0.5; 2], code);
        links.add(&encounter, None, None, |_, _| [0.5; 2], code);
        let one = &links.finish(0)[0];
        assert_eq!((one.encounters, one.known, one.truly), (3, Some(1), Some(1)));
        let mut few = Links::default();
        (0..11).for_each(|_| few.add(&encounter, None, None, |_, _| [0.5; 2], code));
        few.add(&encounter, None, Some(&[true; 25]), |_, _| [0.5; 2], code);
        let one = &few.finish(11)[0];
        assert_eq!((one.encounters, one.known, one.truly), (12, None, None), "one of twelve is a small cell");
    }
}
