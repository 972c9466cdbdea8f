//! Which pairs of nodes are connected: a logit for each pair, from the inner product of the vectors of its
//! nodes.

use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder};
use gct_kernels::engine::{Connected, DecoderParameters, Engine};

use super::answer::{Answer, Statement, probability};
use super::head::HeadConfig;
use super::table::{Column, Keys, TableOptions};
use crate::batch::{EmbeddingRows, Example};
use crate::graph::{self, Link, NodeKind, NodePair, NodeRanges};
use crate::record::{CodeKind, Encounter, Vocabulary};
use crate::sample::Sample;

/// The head before training. It begins with the log-odds of an edge in the synthetic data, where about 4 of
/// 100 pairs are connected.
pub(super) const HEAD: HeadConfig = HeadConfig::Edges { initial_bias: -3.0, kinds: true };

/// How many pairs the kinds of nodes make, each with each and with itself. Those of the paper make 10; if the
/// vocabulary has context, they are 15.
pub(super) fn pairs_of_kinds(rows: EmbeddingRows) -> usize {
    if rows.codes(CodeKind::Context) > 0 { WITH_CONTEXT } else { WITHOUT_CONTEXT }
}

const WITHOUT_CONTEXT: usize = NodeKind::ALL.len() * (NodeKind::ALL.len() - 1) / 2;
const WITH_CONTEXT: usize = NodeKind::ALL.len() * (NodeKind::ALL.len() + 1) / 2;

/// The sizes of each example's groups of nodes, in the order of the decoder's biases. A decoder with biases
/// for the kinds of the paper alone has none for context, of which the examples then have no nodes.
pub(super) fn groups(decoder: Option<DecoderParameters>, examples: &[Example]) -> Vec<Vec<usize>> {
    let lacks_context = decoder.is_some_and(|decoder| decoder.bias.len == WITHOUT_CONTEXT);
    let is_known = |kind: NodeKind| !lacks_context || kind != NodeKind::Code(CodeKind::Context);
    let known = |example: &Example| {
        let sizes = NodeKind::ALL.into_iter().zip(example.visit.ranges.sizes());
        sizes.filter(|(kind, _)| is_known(*kind)).map(|(_, size)| *size).collect()
    };
    examples.iter().map(known).collect()
}

/// How many ordered pairs the nodes of these examples make: the terms of the loss.
pub(super) fn terms(examples: &[Example]) -> usize {
    examples.iter().map(|example| example.nodes() * (example.nodes() - 1)).sum()
}

/// The sum of the cross entropies of all pairs; `share` is what each counts in the gradient.
pub(super) fn loss<E: Engine>(
    decoder: Option<DecoderParameters>,
    engine: &mut E,
    nodes: &E::Matrix,
    examples: &[Example],
    share: f64,
) -> f64 {
    let groups = groups(decoder, examples);
    let graphs: Vec<Connected<'_>> = (examples.iter().zip(&groups))
        .map(|(example, sizes)| Connected { sizes, edges: example.visit.known_edges() })
        .collect();
    engine.edge_loss(nodes, decoder, &graphs, share)
}

/// Calls `each` with the logit of every pair of nodes and whether they are connected, if that is known.
pub(super) fn each_outcome(sample: &Sample<'_>, logits: &[f32], mut each: impl FnMut(f32, bool)) {
    let nodes = NodeRanges::of(sample.encounter()).len();
    let Some(adjacency) = graph::adjacency(sample.encounter()) else { return };
    for ((i, j), logit) in graph::pairs(nodes).zip(logits) {
        each(*logit, adjacency[i * nodes + j]);
    }
}

/// The probabilities of edges as a symmetric matrix, row after row.
pub(super) fn probabilities(nodes: usize, logits: &[f32]) -> Vec<f32> {
    let mut matrix = vec![0.0; nodes * nodes];
    for ((i, j), logit) in graph::pairs(nodes).zip(logits) {
        let probability = probability(*logit) as f32;
        (matrix[i * nodes + j], matrix[j * nodes + i]) = (probability, probability);
    }
    matrix
}

/// How probable an edge is, for each pair that M allows.
pub(super) fn links(sample: &Sample<'_>, logits: &[f32]) -> Vec<Link> {
    let nodes = NodeRanges::of(sample.encounter());
    graph::pairs(nodes.len())
        .zip(logits)
        .filter(|((i, j), _)| nodes.allowed(*i, *j))
        .map(|((from, to), logit)| Link { from, to, weight: probability(*logit) })
        .collect()
}

/// The kind and the code of a node.
fn name<'a>(encounter: &Encounter, node: usize, vocabulary: &'a Vocabulary) -> (&'static str, &'a str) {
    match graph::code_of(encounter, node) {
        Some((kind, id)) => (kind.name(), &vocabulary[kind][id as usize].code),
        None => (NodeKind::Visit.name(), NodeKind::Visit.name()),
    }
}

/// The pairs of codes that a model finds connected, the most probable first, at most so many. The visit is
/// connected with all diagnoses and all context, so its pairs say nothing, and they would all come first.
pub(super) fn answers(
    sample: &Sample<'_>,
    logits: &[f32],
    vocabulary: &Vocabulary,
    most: usize,
) -> Vec<Answer> {
    let encounter = sample.encounter();
    let (nodes, adjacency) = (NodeRanges::of(encounter), graph::adjacency(encounter));
    let answer = |&Link { from, to, weight }: &Link| {
        let [(_, cause), (_, effect)] = [from, to].map(|node| name(encounter, node, vocabulary));
        Answer {
            what: format!("{cause} - {effect}"),
            probability: weight,
            truth: adjacency.as_ref().map(|edges| edges[from * nodes.len() + to]),
        }
    };
    connected(sample, logits, most).iter().map(answer).collect()
}

/// The same as statements.
pub(super) fn statements(sample: &Sample<'_>, logits: &[f32], most: usize) -> Vec<Statement> {
    let connected = connected(sample, logits, most).into_iter();
    connected.map(|Link { from, to, .. }| Statement::Pair(from, to)).collect()
}

fn connected(sample: &Sample<'_>, logits: &[f32], most: usize) -> Vec<Link> {
    let nodes = NodeRanges::of(sample.encounter());
    let mut connected: Vec<Link> = graph::pairs(nodes.len())
        .zip(logits)
        .filter(|((i, j), logit)| *i > 0 && **logit >= 0.0 && nodes.allowed(*i, *j))
        .map(|((from, to), logit)| Link { from, to, weight: probability(*logit) })
        .collect();
    connected.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    connected.truncate(most);
    connected
}

/// The logit of a pair among those of all pairs of so many nodes.
pub(super) fn log_odds(nodes: usize, logits: &[f32], (from, to): NodePair) -> f64 {
    let (i, j) = (from.min(to), from.max(to));
    f64::from(logits[i * (2 * nodes - i - 1) / 2 + j - i - 1])
}

/// A row per encounter and pair that may be connected: a visit and a diagnosis or context, a diagnosis and a
/// treatment, a treatment and a lab.
pub(crate) struct Table<'a> {
    vocabulary: &'a Vocabulary,
    min_probability: f64,
    keys: Keys,
    cause_kinds: StringBuilder,
    causes: StringBuilder,
    effect_kinds: StringBuilder,
    effects: StringBuilder,
    truths: BooleanBuilder,
    probabilities: Float64Builder,
}

impl<'a> Table<'a> {
    pub(super) fn new(vocabulary: &'a Vocabulary, options: TableOptions) -> Self {
        Table {
            vocabulary,
            min_probability: options.min_probability,
            keys: Keys::default(),
            cause_kinds: StringBuilder::new(),
            causes: StringBuilder::new(),
            effect_kinds: StringBuilder::new(),
            effects: StringBuilder::new(),
            truths: BooleanBuilder::new(),
            probabilities: Float64Builder::new(),
        }
    }

    pub(super) fn add(&mut self, sample: &Sample<'_>, logits: &[f32]) {
        let encounter = sample.encounter();
        let (nodes, adjacency) = (NodeRanges::of(encounter), graph::adjacency(encounter));
        for ((i, j), logit) in probable(nodes, logits, self.min_probability) {
            let [cause, effect] = [i, j].map(|node| name(encounter, node, self.vocabulary));
            self.keys.add(sample);
            self.cause_kinds.append_value(cause.0);
            self.causes.append_value(cause.1);
            self.effect_kinds.append_value(effect.0);
            self.effects.append_value(effect.1);
            self.truths.append_option(adjacency.as_ref().map(|edges| edges[i * nodes.len() + j]));
            self.probabilities.append_value(probability(logit));
        }
    }

    /// What each row of a sample says.
    pub(super) fn statements(&self, sample: &Sample<'_>, logits: &[f32]) -> Vec<Statement> {
        let rows = probable(NodeRanges::of(sample.encounter()), logits, self.min_probability);
        rows.map(|((cause, effect), _)| Statement::Pair(cause, effect)).collect()
    }

    pub(super) fn take(&mut self) -> Vec<Column> {
        let mut columns = self.keys.take();
        columns.extend::<[Column; 6]>([
            ("cause_kind", Arc::new(self.cause_kinds.finish()), false),
            ("cause", Arc::new(self.causes.finish()), false),
            ("effect_kind", Arc::new(self.effect_kinds.finish()), false),
            ("effect", Arc::new(self.effects.finish()), false),
            ("boolean_value", Arc::new(self.truths.finish()), true),
            ("probability", Arc::new(self.probabilities.finish()), false),
        ]);
        columns
    }
}

/// The pairs that M allows and that have at least this probability, with their logits.
fn probable(nodes: NodeRanges, logits: &[f32], least: f64) -> impl Iterator<Item = (NodePair, f32)> {
    // Few pairs are probable, and a logit is compared faster than it becomes a probability.
    let least_logit = (least.ln() - (-least).ln_1p()) as f32 - 1e-3;
    let is_probable = move |logit: f32| logit >= least_logit && probability(logit) >= least;
    (graph::pairs(nodes.len()).zip(logits).map(|(pair, logit)| (pair, *logit)))
        .filter(move |((i, j), logit)| is_probable(*logit) && nodes.allowed(*i, *j))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Code, PerKind};

    #[test]
    fn connected_pairs_are_of_codes_and_the_most_probable_come_first() {
        let encounter = Encounter::new(PerKind {
            diagnosis: vec![0],
            treatment: vec![0, 1],
            lab: Vec::new(),
            ..PerKind::default()
        });
        let code = |code: &str| Code { code: code.into(), description: None, count: 1 };
        let vocabulary = PerKind {
            diagnosis: vec![code("D")],
            treatment: vec![code("T"), code("U")],
            lab: vec![],
            ..PerKind::default()
        };
        // Visit with each; the diagnosis with each treatment; these with each other, which nothing connects.
        let logits = [9.0, 8.0, 7.0, 0.5, 1.5, 6.0];
        let found = |most: usize| -> Vec<String> {
            let found = answers(&Sample::of(&encounter), &logits, &vocabulary, most);
            found.into_iter().map(|answer| answer.what).collect()
        };
        assert_eq!(found(9), ["D - U", "D - T"]);
        assert_eq!(found(1), ["D - U"]);
    }

    #[test]
    fn the_logit_of_a_pair_is_found() {
        let logits: Vec<f32> = (0..10u8).map(f32::from).collect();
        for (index, (i, j)) in graph::pairs(5).enumerate() {
            assert_eq!(log_odds(5, &logits, (i, j)), index as f64);
            assert_eq!(log_odds(5, &logits, (j, i)), index as f64);
        }
    }
}
