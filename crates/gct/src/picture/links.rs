//! Which pairs of nodes attend to each other, and whether they should.

use itertools::Itertools;
use rustc_hash::FxHashSet;

use crate::graph::{NodeKind, NodePair, Structure, pairs};

/// Links without a true edge that are drawn: more are neither seen nor quickly drawn. The page of a report
/// draws as many.
const DRAWN: usize = 1500;

/// Attention below this share of what its giver's favourite gets would not be seen.
const VISIBLE: f64 = 0.01;

/// Two nodes that are connected, or that a model connects.
pub(super) struct DrawnLink {
    /// The node nearer to the visit first.
    pub(super) ends: NodePair,
    /// The larger of the attentions that the two give each other.
    pub(super) strength: f64,
    pub(super) mark: Mark,
}

/// What a link is to the true edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// None of them.
    Other,
    /// One to which an end gives at least what it gives to nodes of that kind on average.
    Found,
    /// One to which neither does.
    Missed,
}

/// The links of a layer.
pub(super) struct Links {
    /// The true edges and the strongest others, those to be drawn on top last.
    pub(super) drawn: Vec<DrawnLink>,
    /// How many others there are.
    pub(super) left_out: usize,
}

impl Links {
    pub(super) fn of(structure: &Structure, layer: usize) -> Self {
        Links::strongest(structure, layer, DRAWN)
    }

    fn strongest(structure: &Structure, layer: usize, most: usize) -> Self {
        let mut others = 0;
        let weaker =
            |a: &DrawnLink, b: &DrawnLink| b.strength.total_cmp(&a.strength).then(a.ends.cmp(&b.ends));
        // Never all of them: those of thousands of nodes would fill the memory.
        let mut drawn: Vec<DrawnLink> = links(structure, layer)
            .filter(|link| link.mark == Mark::Other)
            .inspect(|_| others += 1)
            .k_smallest_by(most, weaker)
            .collect();
        let left_out = others - drawn.len();
        drawn.extend(links(structure, layer).filter(|link| link.mark != Mark::Other));
        let below = |a: &DrawnLink, b: &DrawnLink| {
            a.mark.cmp(&b.mark).then(a.strength.total_cmp(&b.strength)).then(a.ends.cmp(&b.ends))
        };
        drawn.sort_unstable_by(below);
        Links { drawn, left_out }
    }
}

/// The true edges of a layer, and the pairs whose attention can be seen.
fn links(structure: &Structure, layer: usize) -> impl Iterator<Item = DrawnLink> {
    let nodes = structure.nodes.len();
    let giving: Vec<Giving> = (0..nodes).map(|node| Giving::of(structure, layer, node)).collect();
    let ordered = |&(a, b): &NodePair| (a.min(b), a.max(b));
    let edges: FxHashSet<NodePair> = structure.edges.iter().flatten().map(ordered).collect();
    let kind = |node: usize| structure.nodes[node].kind;
    let link = move |(a, b): NodePair| {
        let given = [(a, b), (b, a)].map(|(from, to)| {
            let share = structure.attention(layer, from, to).unwrap_or(0.0);
            (share, giving[from].most, giving[from].means[kind(to).index()])
        });
        let seen = given.iter().any(|&(share, most, _)| share > 0.0 && share >= VISIBLE * most);
        // Equal shares are all average, whatever rounding says.
        let found = given.iter().any(|&(share, _, mean)| share > 0.0 && share >= mean * (1.0 - 1e-6));
        let mark = match edges.contains(&(a, b)) {
            true if found => Mark::Found,
            true => Mark::Missed,
            false if seen => Mark::Other,
            false => return None,
        };
        let ends = if kind(a) <= kind(b) { (a, b) } else { (b, a) };
        Some(DrawnLink { ends, strength: given[0].0.max(given[1].0), mark })
    };
    pairs(nodes).filter_map(link)
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
        let expected = [((1, 2), 0.4, Mark::Other), ((0, 1), 0.5, Mark::Found), ((1, 3), 0.1, Mark::Missed)];
        assert_eq!(found(&structure), expected);
    }

    #[test]
    fn a_visit_that_gets_most_hides_no_treatment() {
        let mut structure = with_edges(&[(1, 2)], small());
        structure.layers[0].matrix[4..8].copy_from_slice(&[0.9, 0.0, 0.06, 0.04]);
        assert_eq!(found(&structure)[2], ((1, 2), 0.06, Mark::Found));
    }

    #[test]
    fn either_end_may_know_an_edge() {
        let mut structure = with_edges(&[(1, 3)], small());
        structure.layers[0].matrix[3 * 4 + 1] = 0.7;
        assert_eq!(found(&structure)[2], ((1, 3), 0.7, Mark::Found));
    }

    #[test]
    fn equal_shares_miss_nothing() {
        let mut structure = with_edges(&[(1, 2), (1, 3)], small());
        structure.layers[0].matrix.fill(0.1);
        assert_eq!(found(&structure)[4..], [((1, 2), 0.1, Mark::Found), ((1, 3), 0.1, Mark::Found)]);
    }

    #[test]
    fn what_cannot_be_seen_is_left_out_and_so_is_what_a_node_gives_itself() {
        let mut structure = small();
        // Of what the visit gets, just under a hundredth; and itself must not count as the favourite.
        structure.layers[0].matrix[4..8].copy_from_slice(&[0.1, 0.9, 0.001, 0.000_9]);
        assert_eq!(found(&structure), [((1, 2), 0.001, Mark::Other), ((0, 1), 0.1, Mark::Other)]);
    }

    #[test]
    fn what_is_no_number_is_left_out() {
        let mut structure = with_edges(&[(1, 2)], small());
        structure.layers[0].matrix.fill(f32::NAN);
        assert_eq!(found(&structure), [((1, 2), 0.0, Mark::Missed)]);
    }

    #[test]
    fn of_too_many_links_the_strongest_are_drawn_and_all_true_edges() {
        let mut structure = with_edges(&[(1, 3)], small());
        structure.layers[0].matrix.fill(0.1);
        structure.layers[0].matrix[4..8].copy_from_slice(&[0.5, 0.0, 0.4, 0.1]);
        let links = Links::strongest(&structure, 0, 2);
        let expected = [((1, 2), 0.4, Mark::Other), ((0, 1), 0.5, Mark::Other), ((1, 3), 0.1, Mark::Found)];
        assert_eq!((marked(&links), links.left_out), (expected.to_vec(), 3));
        let none = Links::strongest(&structure, 0, 0);
        assert_eq!((none.drawn.len(), none.left_out), (1, 5));
    }
}
