//! What led to what in an encounter, as an explainer says: of each treatment the diagnosis that ordered it,
//! of each lab the treatment that it follows, and which orders and labs nothing explains.

use serde::Serialize;

use super::hidden_node;
use crate::batch::Explained;
use crate::explainer::Links;
use crate::graph::NodeRanges;
use crate::record::CodeKind;
use crate::sample::Sample;

/// What probably led to a treatment or a lab. Nodes are indices of those of the explanation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cause {
    /// The treatment or the lab.
    pub effect: usize,
    /// The diagnosis or the treatment that led to it most probably; `None` if there is none in the encounter.
    pub cause: Option<usize>,
    /// How probable that is, among all that could have led to it.
    pub probability: f64,
    /// How probable it is that nothing in the encounter led to it.
    pub unexplained: f64,
}

/// The cause of each treatment and of each lab of a sample.
pub(super) fn causes(sample: &Sample<'_>, explained: &Explained) -> Vec<Cause> {
    let nodes = NodeRanges::of(sample.encounter());
    let [diagnoses, treatments, labs] = CodeKind::OF_PAPER.map(|kind| nodes.range(kind));
    let hidden = hidden_node(sample);
    let seen: Vec<usize> = diagnoses.filter(|node| Some(*node) != hidden).collect();
    let Links { orders, results } = &explained.links;
    let measured: Vec<usize> = treatments.clone().collect();
    let ordered = treatments.enumerate().map(|(at, effect)| most_probable(orders, &seen, effect, at));
    let followed = labs.enumerate().map(|(at, effect)| most_probable(results, &measured, effect, at));
    ordered.chain(followed).collect()
}

/// The most probable one of some causes of the effect in a column of a matrix, whose last row is that of
/// nothing.
fn most_probable(matrix: &[f32], causes: &[usize], effect: usize, column: usize) -> Cause {
    let columns = matrix.len() / (causes.len() + 1);
    let share = |row: usize| f64::from(matrix[row * columns + column]);
    let best = (0..causes.len()).max_by(|a, b| share(*a).total_cmp(&share(*b)));
    Cause {
        effect,
        cause: best.map(|row| causes[row]),
        probability: best.map_or(0.0, share),
        unexplained: share(causes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_probable_cause_is_told_beside_nothing() {
        // Two causes, two effects, and nothing.
        let matrix = [0.7, 0.1, 0.2, 0.0, 0.1, 0.9];
        let first = most_probable(&matrix, &[1, 3], 5, 0);
        assert_eq!((first.effect, first.cause), (5, Some(1)));
        assert!((first.probability - 0.7).abs() < 1e-6 && (first.unexplained - 0.1).abs() < 1e-6);
        let alone = most_probable(&[1.0, 1.0], &[], 6, 1);
        assert_eq!((alone.cause, alone.probability, alone.unexplained), (None, 0.0, 1.0));
    }
}
