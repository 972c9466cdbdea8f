//! A batch in parts: shards for threads, and chunks that stay in a processor's cache.

use std::ops::Range;

use super::layout::{NodeCount, share};
use crate::batch::Example;

/// Parts of a batch that threads can take, and so the most threads that one training uses. Gradients of each
/// are added up, which on two cores costs more than a further part gains; another number gives other bits.
pub(super) const SHARDS: usize = 4;

/// Nodes that are worked on together: few enough that everything about them stays in the cache.
const CHUNK_NODES: usize = 160;

/// Nodes of examples that share visits, which are worked on together lest a visit be computed for each; twice
/// those of the first example, if that sees more, so that half of what is computed is new.
const SHARING_NODES: usize = 8 * CHUNK_NODES;

/// Cuts a part of a batch into chunks of not too many nodes.
pub(super) fn chunks(batch: &[Example], part: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = part.start;
    std::iter::from_fn(move || {
        let (first, mut count, mut of_first) = (start, NodeCount::default(), 0);
        while start < part.end {
            let shares = start > first && share(&batch[start - 1], &batch[start]);
            let most = if shares { SHARING_NODES.max(2 * of_first) } else { CHUNK_NODES };
            if start > first && count.nodes + count.more(&batch[start]) > most {
                break;
            }
            count.add(&batch[start]);
            if start == first {
                of_first = count.nodes;
            }
            start += 1;
        }
        (start > first).then_some(first..start)
    })
}

/// Cuts a batch into one part for each shard.
pub(super) fn shards(batch: &[Example]) -> Vec<Range<usize>> {
    even_parts(batch, SHARDS)
}

/// Cuts a batch into chunks of like size, as many of them for each shard: of a batch that is only asked,
/// every chunk can go to any thread.
pub(super) fn even_chunks(batch: &[Example]) -> Vec<Range<usize>> {
    let nodes: usize = sizes(batch).iter().sum();
    even_parts(batch, nodes.div_ceil(CHUNK_NODES).next_multiple_of(SHARDS))
}

/// Cuts a batch into parts of about equal numbers of nodes, but not between examples that share visits.
fn even_parts(batch: &[Example], parts: usize) -> Vec<Range<usize>> {
    let sizes = sizes(batch);
    let nodes: usize = sizes.iter().sum();
    let (mut at, mut passed) = (0, 0);
    (1..=parts)
        .map(|part| {
            let start = at;
            let shares = |at: usize| at > start && share(&batch[at - 1], &batch[at]);
            while at < batch.len() && (passed < nodes * part / parts || shares(at)) {
                passed += sizes[at];
                at += 1;
            }
            start..at
        })
        .collect()
}

/// The nodes of each example that the one before it does not have.
fn sizes(batch: &[Example]) -> Vec<usize> {
    let more = |at: usize| {
        let mut before = NodeCount::default();
        batch[..at].last().into_iter().for_each(|example| before.add(example));
        before.more(&batch[at])
    };
    (0..batch.len()).map(more).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::batch::{Step, Visit};
    use crate::graph::NodeRanges;
    use crate::record::PerKind;

    fn visit(nodes: usize) -> Visit {
        let ranges = NodeRanges::new(PerKind { diagnosis: nodes - 1, ..PerKind::default() });
        Visit::from_parts(ranges, vec![0; nodes], None, &vec![0.0; nodes * nodes], None)
    }

    #[test]
    fn visits_of_a_long_history_are_computed_twice_at_most() {
        let visits: Vec<Arc<Visit>> = (0..200).map(|_| Arc::new(visit(40))).collect();
        let example = |asked: usize| {
            let seen = visits[..=asked].iter().rev().take(20);
            let steps = seen.map(|visit| Step { visit: Arc::clone(visit), since: 0, ago: 0 }).collect();
            Example { visit: Arc::clone(&visits[asked]), labels: Vec::new(), steps }
        };
        let batch: Vec<Example> = (0..visits.len()).map(example).collect();
        let nodes = |chunk: Range<usize>| {
            let mut count = NodeCount::default();
            batch[chunk].iter().for_each(|example| count.add(example));
            count.nodes
        };
        let computed: Vec<usize> = chunks(&batch, 0..batch.len()).map(nodes).collect();
        assert!(computed.iter().sum::<usize>() <= 2 * 200 * 40, "{computed:?}");
        assert!(computed.iter().all(|nodes| *nodes <= 2 * 20 * 40), "{computed:?}");
    }

    #[test]
    fn shards_are_of_like_size_and_leave_nobody_out() {
        let example = |nodes: usize| Example::of(visit(nodes));
        for sizes in [vec![], vec![5], vec![2, 2, 2], vec![10, 20, 30, 40, 50, 60, 70, 80]] {
            let batch: Vec<Example> = sizes.iter().map(|nodes| example(*nodes)).collect();
            let parts = shards(&batch);
            assert_eq!(parts.len(), SHARDS);
            assert_eq!(parts[0].start, 0);
            assert_eq!(parts[SHARDS - 1].end, batch.len());
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
        let batch: Vec<Example> = (0..40).map(|_| example(10)).collect();
        assert!(shards(&batch).iter().all(|part| part.len() == 10));
    }
}
