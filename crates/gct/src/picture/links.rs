//! Which pairs of nodes attend to each other, and whether they should.

use itertools::Itertools;
use rustc_hash::FxHashSet;

use crate::graph::{NodeKind, NodePair, Structure, pairs};

/// Links without a true edge that are drawn: more are neither seen nor quickly drawn. The page of a report
/// draws as many.
const DRAWN: usize = 1500;

/// Attention below this share of what its giver's favourite gets would not be seen.
const VISIBLE: f64 = 0.01;

/// What a node gives to another: half of the line between the two.
pub(super) struct DrawnLink {
    /// The node that gives, and the other one.
    pub(super) ends: NodePair,
    /// The attention that it gives.
    pub(super) strength: f64,
    pub(super) mark: Mark,
}

/// What a link is to the true edges. Both halves of a line have the same mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// None of them.
    Other,
    /// One to which an end gives at least what it gives to nodes of that kind on average.
    Found,
    /// One to which neither does.
    Missed,
}

/// Pairs of codes that may be connected: how many there are, and in how many an end gives the other at least
/// its average share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) pairs: usize,
    pub(super) passed: usize,
}

/// The links of a layer.
pub(super) struct Links {
    /// Both halves of true edges and the strongest of the others, those to be drawn on top last.
    pub(super) drawn: Vec<DrawnLink>,
    /// How many others there are.
    pub(super) left_out: usize,
    /// The true edges between codes. Those of the visit are given.
    pub(super) edges: Passed,
    /// Pairs of codes without an edge that could have one.
    pub(super) others: Passed,
}

impl Links {
    pub(super) fn of(structure: &Structure, layer: usize) -> Self {
        Links::strongest(structure, layer, DRAWN)
    }

    fn strongest(structure: &Structure, layer: usize, most: usize) -> Self {
        let mut others = 0;
        let weaker =
            |a: &DrawnLink, b: &DrawnLink| b.strength.total_cmp(&a.strength).then(a.ends.cmp(&b.ends));
        let attended = Attended::new(structure, layer);
        // Never all of them: those of thousands of nodes would fill the memory.
        let mut drawn: Vec<DrawnLink> = (attended.links())
            .filter(|link| link.mark == Mark::Other)
            .inspect(|_| others += 1)
            .k_smallest_by(most, weaker)
            .collect();
        let left_out = others - drawn.len();
        drawn.extend(attended.links().filter(|link| link.mark != Mark::Other));
        let below = |a: &DrawnLink, b: &DrawnLink| {
            a.mark.cmp(&b.mark).then(a.strength.total_cmp(&b.strength)).then(a.ends.cmp(&b.ends))
        };
        drawn.sort_unstable_by(below);
        let [edges, others] = attended.passed();
        Links { drawn, left_out, edges, others }
    }
}

/// A layer with what each node gives.
struct Attended<'a> {
    structure: &'a Structure,
    layer: usize,
    giving: Vec<Giving>,
    edges: FxHashSet<NodePair>,
}

impl<'a> Attended<'a> {
    fn new(structure: &'a Structure, layer: usize) -> Self {
        let ordered = |&(a, b): &NodePair| (a.min(b), a.max(b));
        Attended {
            structure,
            layer,
            giving: (0..structure.nodes.len()).map(|node| Giving::of(structure, layer, node)).collect(),
            edges: structure.edges.iter().flatten().map(ordered).collect(),
        }
    }

    fn kind(&self, node: usize) -> NodeKind {
        self.structure.nodes[node].kind
    }

    /// What a node gives to another; zero if that is no number.
    fn share(&self, (from, to): NodePair) -> f64 {
        self.structure.attention(self.layer, from, to).unwrap_or(0.0)
    }

    /// Whether either end of a pair gives the other at least what it gives to nodes of that kind on average.
    fn passes(&self, (a, b): NodePair) -> bool {
        [(a, b), (b, a)].into_iter().any(|(from, to)| {
            let share = self.share((from, to));
            // Equal shares are all average, whatever rounding says.
            share > 0.0 && share >= self.giving[from].means[self.kind(to).index()] * (1.0 - 1e-6)
        })
    }

    /// Both halves of true edges, and of other pairs those that can be seen.
    fn links(&self) -> impl Iterator<Item = DrawnLink> + '_ {
        pairs(self.structure.nodes.len()).flat_map(move |(a, b)| {
            let mark = match self.edges.contains(&(a, b)) {
                true if self.passes((a, b)) => Mark::Found,
                true => Mark::Missed,
                false => Mark::Other,
            };
            let half = move |ends: NodePair| {
                let strength = self.share(ends);
                let is_seen = strength > 0.0 && strength >= VISIBLE * self.giving[ends.0].most;
                (is_seen || mark != Mark::Other).then_some(DrawnLink { ends, strength, mark })
            };
            [(a, b), (b, a)].into_iter().filter_map(half)
        })
    }

    /// Of true edges between codes, and of other pairs of codes that could be connected.
    fn passed(&self) -> [Passed; 2] {
        let mut counts = [Passed::default(); 2];
        for (a, b) in pairs(self.structure.nodes.len()) {
            let (a_kind, b_kind) = (self.kind(a), self.kind(b));
            let is_code = |kind: NodeKind| kind != NodeKind::Visit;
            if is_code(a_kind) && is_code(b_kind) && a_kind.is_next_to(b_kind) {
                let count = &mut counts[usize::from(!self.edges.contains(&(a, b)))];
                count.pairs += 1;
                count.passed += usize::from(self.passes((a, b)));
            }
        }
        counts
    }
}

/// What a node gives to others, where it is not zero.
struct Giving {
    most: f64,
    /// By kind, since one visit may get more than all treatments together.
    means: [f64; NodeKind::ALL.len()],
}

impl Giving {
    fn of(structure: &Structure, layer: usize, node: usize) -> Self {
        let others = (0..structure.nodes.len()).filter(|&other| other != node);
        let given: Vec<(NodeKind, f64)> = others
            .filter_map(|other| Some((structure.nodes[other].kind, structure.attention(layer, node, other)?)))
            .filter(|&(_, share)| share > 0.0)
            .collect();
        let mean = |kind: NodeKind| {
            let to_kind = given.iter().filter(|(of, _)| *of == kind).map(|(_, share)| share);
            to_kind.clone().sum::<f64>() / to_kind.count().max(1) as f64
        };
        Giving {
            most: given.iter().map(|(_, share)| *share).fold(0.0, f64::max),
            means: NodeKind::ALL.map(mean),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::structures::small;

    fn with_edges(edges: &[NodePair], structure: Structure) -> Structure {
        Structure { edges: Some(edges.to_vec()), ..structure }
    }

    fn found(structure: &Structure) -> Vec<(NodePair, f32, Mark)> {
        marked(&Links::of(structure, 0))
    }

    fn marked(links: &Links) -> Vec<(NodePair, f32, Mark)> {
        links.drawn.iter().map(|link| (link.ends, link.strength as f32, link.mark)).collect()
    }

    #[test]
    fn true_edges_are_found_or_missed() {
        // A treatment gets 0.25 on average, T_1 less.
        let structure = with_edges(&[(0, 1), (1, 3)], small());
        let expected = [
            ((1, 2), 0.4, Mark::Other),
            ((0, 1), 0.0, Mark::Found),
            ((1, 0), 0.5, Mark::Found),
            ((3, 1), 0.0, Mark::Missed),
            ((1, 3), 0.1, Mark::Missed),
        ];
        assert_eq!(found(&structure), expected);
        let links = Links::of(&structure, 0);
        // The edge of the visit is given, and counts as neither.
        assert_eq!(links.edges, Passed { pairs: 1, passed: 0 });
        assert_eq!(links.others, Passed { pairs: 1, passed: 1 });
    }

    #[test]
    fn a_visit_that_gets_most_hides_no_treatment() {
        let mut structure = with_edges(&[(1, 2)], small());
        structure.layers[0].matrix[4..8].copy_from_slice(&[0.9, 0.0, 0.06, 0.04]);
        assert!(found(&structure).contains(&((1, 2), 0.06, Mark::Found)));
    }

    #[test]
    fn either_end_may_know_an_edge() {
        let mut structure = with_edges(&[(1, 3)], small());
        structure.layers[0].matrix[3 * 4 + 1] = 0.7;
        let of_edge = [((1, 3), 0.1, Mark::Found), ((3, 1), 0.7, Mark::Found)];
        assert_eq!(found(&structure)[2..], of_edge);
    }

    #[test]
    fn equal_shares_miss_nothing() {
        let mut structure = with_edges(&[(1, 2), (1, 3)], small());
        structure.layers[0].matrix.fill(0.1);
        let links = found(&structure);
        assert_eq!((links[8..].len(), links[7].2), (4, Mark::Other));
        assert!(links[8..].iter().all(|(_, _, mark)| *mark == Mark::Found));
    }

    #[test]
    fn what_cannot_be_seen_is_left_out_and_so_is_what_a_node_gives_itself() {
        let mut structure = small();
        // Of what the visit gets, just under a hundredth; and itself must not count as the favourite.
        structure.layers[0].matrix[4..8].copy_from_slice(&[0.1, 0.9, 0.001, 0.000_9]);
        assert_eq!(found(&structure), [((1, 2), 0.001, Mark::Other), ((1, 0), 0.1, Mark::Other)]);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let mut structure = with_edges(&[(1, 2)], small());
        structure.layers[0].matrix.fill(f32::NAN);
        assert_eq!(found(&structure), [((1, 2), 0.0, Mark::Missed), ((2, 1), 0.0, Mark::Missed)]);
    }

    #[test]
    fn of_too_many_links_the_strongest_are_drawn_and_all_true_edges() {
        let mut structure = with_edges(&[(1, 3)], small());
        structure.layers[0].matrix.fill(0.1);
        structure.layers[0].matrix[4..8].copy_from_slice(&[0.5, 0.0, 0.4, 0.1]);
        let links = Links::strongest(&structure, 0, 2);
        let expected = [
            ((1, 2), 0.4, Mark::Other),
            ((1, 0), 0.5, Mark::Other),
            ((1, 3), 0.1, Mark::Found),
            ((3, 1), 0.1, Mark::Found),
        ];
        assert_eq!((marked(&links), links.left_out), (expected.to_vec(), 8));
        let none = Links::strongest(&structure, 0, 0);
        assert_eq!((none.drawn.len(), none.left_out), (2, 10));
    }
}
