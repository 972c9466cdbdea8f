//! What codes give to each other over many encounters: what a clinician would check.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Link;
use crate::cells::is_told;
use crate::graph::{Layer, LayerKind, NodeRanges};
use crate::record::{CodeKind, Encounter, SubjectId};

/// Links that a page tells.
const TOLD: usize = 2000;

/// What one code gives to another in the encounters that have both. What the other gives back is a link of
/// its own.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CodeLink {
    /// The code that gives, as an index among all codes. The probability of an edge is the same both ways,
    /// and one link: from the cause.
    pub from: usize,
    /// The other one.
    pub to: usize,
    /// How many encounters have both.
    pub encounters: u64,
    /// The mean over these encounters: of attention, or of the probability of an edge.
    pub mean: f64,
    /// The lower end of its 95 % interval over subjects; `None` of a single subject.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
    /// In how many of the encounters true edges are known.
    pub known: Option<u64>,
    /// In how many of these the two are connected.
    #[serde(rename = "true")]
    pub truly: Option<u64>,
}

/// Sums over encounters, by cause and effect. The encounters of a subject are told one after the other, as a
/// dataset has them; in format 1 it may not, and a subject who comes back counts as another one.
#[derive(Default)]
pub(crate) struct Tally {
    sums: FxHashMap<(u32, u32), Sum>,
    /// The subject of the last encounter, and its number.
    subject: Option<SubjectId>,
    number: u32,
}

/// Sums over the encounters that have both a cause and an effect.
#[derive(Default)]
struct Sum {
    encounters: u32,
    known: u32,
    truly: u32,
    /// What the cause gives to the effect, the effect to the cause, and the mean of both.
    given: [Given; 3],
    /// The squares of the numbers of encounters of subjects.
    squares: f64,
    subjects: u32,
    /// The last subject, which is not among these yet, since more of its encounters may follow.
    last: u32,
    own: OfSubject,
}

/// What was given one way: the sum, and over subjects the squares of their sums and the products of these
/// with their numbers of encounters.
#[derive(Default)]
struct Given {
    sum: f64,
    squares: f64,
    products: f64,
}

/// How many encounters a subject has, and what was given in them either way.
#[derive(Default)]
struct OfSubject {
    encounters: f64,
    given: [f64; 3],
}

/// Which of what is given is the strength of a pair.
pub(super) const BOTH_WAYS: usize = 2;

impl Tally {
    /// Adds what a layer says of an encounter; `code` is the index of a code among all codes. A node that was
    /// hidden from the model is left out.
    pub(crate) fn add(
        &mut self,
        encounter: &Encounter,
        hidden: Option<usize>,
        adjacency: Option<&[bool]>,
        layer: &Layer,
        code: impl Fn(CodeKind, u32) -> u32,
    ) {
        let (nodes, subject) = (NodeRanges::of(encounter), self.number_of(&encounter.subject));
        for (causes, effects) in
            [(CodeKind::Diagnosis, CodeKind::Treatment), (CodeKind::Treatment, CodeKind::Lab)]
        {
            let seen = nodes.range(causes).zip(&encounter.codes[causes]).filter(|(i, _)| Some(*i) != hidden);
            for (i, cause) in seen {
                for (j, effect) in nodes.range(effects).zip(&encounter.codes[effects]) {
                    let sum = self.sums.entry((code(causes, *cause), code(effects, *effect))).or_default();
                    sum.add(subject, either_way(layer, nodes.len(), i, j));
                    sum.known += u32::from(adjacency.is_some());
                    sum.truly += u32::from(adjacency.is_some_and(|edges| edges[i * nodes.len() + j]));
                }
            }
        }
    }

    /// All pairs of at least so many encounters, in no order; counts of true edges as in [`Tally::finish`].
    /// `code` gives back the kind and id of a code by its index among all codes.
    pub(super) fn pairs(
        mut self,
        min_support: u64,
        min_cell: u64,
        code: impl Fn(u32) -> (CodeKind, u32),
    ) -> Vec<Link> {
        self.sums.retain(|_, sum| u64::from(sum.encounters) >= min_support.max(min_cell).max(1));
        self.sums.values_mut().for_each(Sum::end_subject);
        self.sums.iter().map(|((c, e), sum)| sum.pair(code(*c), code(*e), min_cell)).collect()
    }

    fn number_of(&mut self, subject: &SubjectId) -> u32 {
        if self.subject.as_ref() != Some(subject) {
            self.subject = Some(subject.clone());
            self.number += 1;
        }
        self.number
    }

    /// The links with the largest sums over all encounters. Pairs of fewer than `min_cell` encounters are
    /// left out, and a count below it is not told, nor one that leaves so few.
    pub(crate) fn finish(mut self, min_cell: u64) -> Vec<CodeLink> {
        self.sums.retain(|_, sum| u64::from(sum.encounters) >= min_cell.max(1));
        self.sums.values_mut().for_each(Sum::end_subject);
        let ways = |(codes, sum)| [0, 1].map(|way: usize| (codes, sum, way));
        let mut links: Vec<(&(u32, u32), &Sum, usize)> = self.sums.iter().flat_map(ways).collect();
        let total = |(_, sum, way): &(_, &Sum, usize)| sum.given[*way].sum;
        links.retain(|link| total(link) > 0.0);
        links.sort_unstable_by(|a, b| total(b).total_cmp(&total(a)).then((a.0, a.2).cmp(&(b.0, b.2))));
        links.truncate(TOLD);
        links.into_iter().map(|(codes, sum, way)| sum.link(*codes, way, min_cell)).collect()
    }
}

/// What node i gives to j, j to i, and the mean of both. A probability is the same both ways and counted
/// once.
pub(super) fn either_way(layer: &Layer, nodes: usize, i: usize, j: usize) -> [f64; 3] {
    let given = |from: usize, to: usize| f64::from(layer.matrix[from * nodes + to]);
    match layer.kind {
        LayerKind::Probability => [given(i, j), 0.0, given(i, j)],
        LayerKind::Prior | LayerKind::Attention => {
            let [there, back] = [given(i, j), given(j, i)];
            [there, back, (there + back) / 2.0]
        }
    }
}

/// As many digits as a page shows.
fn round(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

impl Sum {
    fn add(&mut self, subject: u32, given: [f64; 3]) {
        if self.last != subject {
            self.end_subject();
            self.last = subject;
        }
        self.encounters += 1;
        self.own.encounters += 1.0;
        for (way, given) in given.into_iter().enumerate() {
            self.given[way].sum += given;
            self.own.given[way] += given;
        }
    }

    fn end_subject(&mut self) {
        let OfSubject { encounters, given } = std::mem::take(&mut self.own);
        self.subjects += u32::from(encounters > 0.0);
        self.squares += encounters * encounters;
        for (of, own) in self.given.iter_mut().zip(given) {
            of.squares += own * own;
            of.products += own * encounters;
        }
    }

    fn link(&self, (cause, effect): (u32, u32), way: usize, min_cell: u64) -> CodeLink {
        let [encounters, known, truly] = [self.encounters, self.known, self.truly].map(u64::from);
        let (from, to) = if way == 0 { (cause, effect) } else { (effect, cause) };
        let interval = self.interval(&self.given[way]);
        let is_known = is_told(known, encounters, min_cell);
        CodeLink {
            from: from as usize,
            to: to as usize,
            encounters,
            mean: round(self.mean(&self.given[way])),
            low: interval.map(|ends| round(ends[0])),
            high: interval.map(|ends| round(ends[1])),
            known: is_known.then_some(known),
            truly: (known > 0 && is_known && is_told(truly, known, min_cell)).then_some(truly),
        }
    }

    fn pair(&self, cause: (CodeKind, u32), effect: (CodeKind, u32), min_cell: u64) -> Link {
        let [encounters, known, truly] = [self.encounters, self.known, self.truly].map(u64::from);
        let is_known = is_told(known, encounters, min_cell);
        Link {
            cause,
            effect,
            strength: self.mean(&self.given[BOTH_WAYS]),
            interval: self.interval(&self.given[BOTH_WAYS]),
            forward: self.mean(&self.given[0]),
            backward: Some(self.mean(&self.given[1])).filter(|_| self.given[1].sum > 0.0),
            encounters,
            known: is_known.then_some(known),
            truly: (known > 0 && is_known && is_told(truly, known, min_cell)).then_some(truly),
        }
    }

    fn mean(&self, of: &Given) -> f64 {
        of.sum / f64::from(self.encounters)
    }

    /// The 95 % interval of the mean, as of a ratio of two sums over many independent subjects.
    fn interval(&self, of: &Given) -> Option<[f64; 2]> {
        let (mean, subjects) = (self.mean(of), f64::from(self.subjects));
        // Over subjects, the squares of what was given less the mean of as many encounters.
        let squares = (of.squares - 2.0 * mean * of.products + mean * mean * self.squares).max(0.0);
        let variance = squares * subjects / (subjects - 1.0) / f64::from(self.encounters).powi(2);
        let reach = 1.96 * variance.sqrt();
        (self.subjects > 1).then(|| [mean - reach, mean + reach].map(|end| end.clamp(0.0, 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::PerKind;

    /// The visit (0), a diagnosis (1), two treatments (2, 3), a lab (4).
    fn encounter(subject: u32) -> Encounter {
        let codes = PerKind { diagnosis: vec![7], treatment: vec![1, 2], lab: vec![5], ..PerKind::default() };
        Encounter { subject: SubjectId::new(format!("S{subject}")), ..Encounter::new(codes) }
    }

    fn code(kind: CodeKind, id: u32) -> u32 {
        100 * (kind as u32 - CodeKind::Diagnosis as u32) + id
    }

    /// Every node gives every other so much.
    fn layer(given: f32) -> Layer {
        Layer { name: "block 1".into(), kind: LayerKind::Attention, matrix: vec![given; 25] }
    }

    /// Links of encounters of these subjects in which the diagnosis gives so much to the first treatment.
    fn links(of: &[(u32, f32)]) -> Tally {
        let mut links = Tally::default();
        for (subject, given) in of {
            let mut layer = layer(0.125);
            layer.matrix[5 + 2] = *given;
            links.add(&encounter(*subject), None, None, &layer, code);
        }
        links
    }

    /// The interval of the strongest link.
    fn interval(of: &[(u32, f32)]) -> Option<(f64, f64)> {
        let strongest = &links(of).finish(0)[0];
        assert_eq!((strongest.from, strongest.to), (7, 101));
        strongest.low.zip(strongest.high)
    }

    /// Links of as many encounters, each of its own subject, as there are adjacencies; everything gives 0.5.
    fn with_truth(adjacencies: &[Option<&[bool]>]) -> Tally {
        let mut links = Tally::default();
        for (subject, adjacency) in (0..).zip(adjacencies) {
            links.add(&encounter(subject), None, *adjacency, &layer(0.5), code);
        }
        links
    }

    fn from_to(links: &[CodeLink]) -> Vec<(usize, usize)> {
        links.iter().map(|link| (link.from, link.to)).collect()
    }

    #[test]
    fn sums_are_over_encounters_and_each_way_is_a_link() {
        let mut links = Tally::default();
        let mut layer = layer(0.125);
        layer.matrix[5 + 2] = 0.5;
        layer.matrix[2 * 5 + 1] = 0.25;
        let mut edges = vec![false; 25];
        edges[5 + 2] = true;
        links.add(&encounter(0), None, Some(&edges), &layer, code);
        links.add(&encounter(1), None, Some(&[false; 25]), &layer, code);
        let told = links.finish(0);
        let strongest = CodeLink {
            from: 7,
            to: 101,
            encounters: 2,
            mean: 0.5,
            low: Some(0.5),
            high: Some(0.5),
            known: Some(2),
            truly: Some(1),
        };
        assert_eq!(told[0], strongest);
        let back = CodeLink { from: 101, to: 7, mean: 0.25, low: Some(0.25), high: Some(0.25), ..strongest };
        assert_eq!(told[1], back);
        assert_eq!(told.len(), 8, "a diagnosis with two treatments, these with a lab, and back");
    }

    #[test]
    fn probabilities_are_one_link_and_nothing_is_none() {
        let mut links = Tally::default();
        let mut layer = Layer { kind: LayerKind::Probability, ..layer(0.5) };
        (layer.matrix[3 * 5 + 4], layer.matrix[4 * 5 + 3]) = (0.0, 0.0);
        links.add(&encounter(0), None, None, &layer, code);
        assert_eq!(from_to(&links.finish(0)), [(7, 101), (7, 102), (101, 205)]);
    }

    #[test]
    fn the_interval_is_that_of_a_mean_over_subjects() {
        let of = [(0, 0.3), (1, 0.4), (2, 0.5), (3, 0.6)];
        // The mean 0.45, the deviation 0.1291, by the root of four 0.0645.
        let (low, high) = interval(&of).expect("there are four");
        assert!((low - 0.3235).abs() < 1e-4 && (high - 0.5765).abs() < 1e-4, "{low} {high}");
        assert_eq!(interval(&of.map(|(_, given)| (0, given))), None, "of one subject");
    }

    #[test]
    fn more_encounters_of_the_same_subjects_are_no_news() {
        let of = [(0, 0.3), (1, 0.4), (2, 0.5), (3, 0.6)];
        let thrice: Vec<(u32, f32)> = of.iter().flat_map(|of| [*of; 3]).collect();
        assert_eq!(interval(&thrice), interval(&of));
        // By hand: sums of 0.25 and 1.5 of one and two encounters, a mean of 7/12, which they miss by 1/3.
        let (low, high) = interval(&[(0, 0.25), (1, 0.75), (1, 0.75)]).expect("there are two");
        let reach = 1.96 * (2.0 * 2.0 / 9.0f64).sqrt() / 3.0;
        assert!((low - (7.0 / 12.0 - reach)).abs() < 1e-4, "{low}");
        assert!((high - 1.0).abs() < 1e-9, "{high}");
    }

    #[test]
    fn what_was_hidden_links_nothing() {
        let mut links = Tally::default();
        links.add(&encounter(0), Some(1), None, &layer(0.5), code);
        assert_eq!(from_to(&links.finish(0)), [(101, 205), (205, 101), (102, 205), (205, 102)]);
    }

    #[test]
    fn small_counts_are_not_told() {
        let mut edges = [false; 25];
        edges[5 + 2] = true;
        let mut known: Vec<Option<&[bool]>> = vec![Some(&[false; 25]); 11];
        known[0] = Some(&edges);
        let told = with_truth(&known).finish(11);
        assert_eq!((told[0].to, told[0].truly), (101, None), "one of eleven is a small cell");
        assert_eq!((told[2].to, told[2].truly), (102, Some(0)));
        assert_eq!(with_truth(&[None]).finish(2), []);
    }

    #[test]
    fn truth_is_not_told_where_it_is_not_known() {
        let told = with_truth(&[None]).finish(0);
        assert!(told.iter().all(|link| (link.known, link.truly) == (Some(0), None)));
    }

    #[test]
    fn it_is_told_of_how_many_the_truth_is_known() {
        let mut known: Vec<Option<&[bool]>> = vec![None; 3];
        known[0] = Some(&[true; 25]);
        let one = &with_truth(&known).finish(0)[0];
        assert_eq!((one.encounters, one.known, one.truly), (3, Some(1), Some(1)));
        known.resize(12, None);
        let one = &with_truth(&known).finish(11)[0];
        assert_eq!((one.encounters, one.known, one.truly), (12, None, None), "one of twelve is a small cell");
    }
}
