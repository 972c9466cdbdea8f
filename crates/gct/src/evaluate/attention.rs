//! Who attends to whom in each block of a model.

use crate::batch::Example;
use crate::graph::NodeRanges;
use crate::infer::Predictor;
use crate::model::Frozen;
use crate::record::{CodeKind, Encounter};
use crate::sample::Sample;

/// The attention of each block among the nodes of the encounter that a sample is about.
pub(crate) fn attention_within(predictor: &Predictor<'_>, sample: &Sample<'_>) -> Vec<Vec<f32>> {
    of_encounter(sample, attention_of(predictor.model(), &predictor.example(sample)))
}

/// Of matrices over all nodes that a model mixes, those cells that are about the encounter itself: a bag has
/// the codes of earlier visits as well. What goes to these is left out, so that rows do not sum to 1.
pub(super) fn of_encounter(sample: &Sample<'_>, attentions: Vec<Vec<f32>>) -> Vec<Vec<f32>> {
    let Some(bag) = sample.bag().filter(|_| !attentions.is_empty()) else { return attentions };
    let (own, nodes) = (nodes_in_bag(sample.encounter(), &bag), NodeRanges::of(&bag).len());
    let cells = |matrix: Vec<f32>| {
        own.iter()
            .flat_map(|row| own.iter().map(move |to| row * nodes + to))
            .map(|cell| matrix[cell])
            .collect()
    };
    attentions.into_iter().map(cells).collect()
}

/// The nodes of a bag that are those of an encounter, in its order.
fn nodes_in_bag(encounter: &Encounter, bag: &Encounter) -> Vec<usize> {
    let ranges = NodeRanges::of(bag);
    let of_kind = |kind| {
        let (first, all) = (ranges.range(kind).start, &bag.codes[kind]);
        encounter.codes[kind].iter().map(move |id| {
            first + all.iter().position(|other| other == id).expect("a bag has all codes of its encounter")
        })
    };
    std::iter::once(0).chain(CodeKind::ALL.into_iter().flat_map(of_kind)).collect()
}

/// The attention of each block over the nodes of an example, the mean over heads; for a convolution, the
/// matrix that it mixes with.
pub(super) fn attention_of(model: &Frozen<f32>, example: &Example) -> Vec<Vec<f32>> {
    let attentions = model.look(std::slice::from_ref(example), |activations| activations.attentions());
    let mean = |heads: Vec<Vec<Vec<f32>>>| {
        let count = heads.len() as f32;
        let mut sum = vec![0.0; example.nodes() * example.nodes()];
        for matrix in heads.iter().flatten() {
            sum.iter_mut().zip(matrix).for_each(|(sum, cell)| *sum += cell / count);
        }
        sum
    };
    attentions.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Aggregator, History};
    use crate::record::PerKind;

    #[test]
    fn of_a_bag_only_the_nodes_of_the_encounter_are_looked_at() {
        let encounter = |start, diagnosis: Vec<u32>, lab: Vec<u32>| Encounter {
            start: Some(start),
            ..Encounter::new(PerKind { diagnosis, lab, ..PerKind::default() })
        };
        let (before, asked) = ([encounter(1, vec![2, 5], vec![1])], encounter(9, vec![3, 5], vec![4]));
        let window = History { aggregator: Aggregator::Bag, ..History::default() }.window();
        let sample = Sample::of(&asked).with_history(&before, window);
        // The visit, diagnoses 2, 3 and 5, labs 1 and 4.
        let matrix: Vec<f32> = (0..36u8).map(f32::from).collect();
        let own = of_encounter(&sample, vec![matrix.clone()]);
        let expected = [0, 2, 3, 5].map(|row| [0, 2, 3, 5].map(|to| (row * 6 + to) as f32)).concat();
        assert_eq!(own, [expected]);
        let alone = Sample::of(&asked);
        assert_eq!(of_encounter(&alone, vec![matrix.clone()]), [matrix], "without a bag nothing is left out");
    }
}
