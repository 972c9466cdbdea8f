//! What an answer owes to each code: how it changes when the code is left out.
//!
//! The change is exact. The model is asked again about the encounter as if the code had never been recorded:
//! its edges are gone, P and M are made anew. So a code that speaks for an answer has a negative change, and
//! changes of several codes do not add up: a diagnosis and a treatment that mean something only together each
//! take it all away. What two codes do together is told on request.
//!
//! Attention is not this: it says where a model looks, and an answer need not depend on what it looks at.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools;
use serde::Serialize;

use super::{Explainer, hidden_node};
use crate::error::Result;
use crate::graph::{self, NodeKind, NodePair, NodeRanges};
use crate::infer::Predictor;
use crate::job::Stop;
use crate::question::{Answer, Statement, probability_of};
use crate::record::{Code, CodeKind, Encounter};
use crate::sample::Sample;

/// Of how many of the strongest codes all pairs can be left out.
pub const MOST_PAIRED: usize = 20;

/// Cells of P of the encounters that are asked about at a time.
const CELLS: usize = 1 << 23;

/// Why an answer is what it is: what each code does to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attribution {
    /// What is answered: a label, a diagnosis, or two codes that are connected.
    pub what: String,
    /// How probable the model finds it with all codes.
    pub probability: f64,
    /// What happens when one code is left out, the largest change of log-odds first. A code without which
    /// nothing can be answered is not among them: the hidden diagnosis, and both ends of a pair.
    pub changes: Vec<Change>,
    /// What happens when two codes are left out, if that was wanted; the strongest interaction first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairChange>,
}

/// What happens to an answer when a code is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The node of the code.
    pub node: usize,
    /// Its kind.
    pub kind: NodeKind,
    /// The code.
    pub code: String,
    /// What it means, where the source says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The probability without it.
    pub without: f64,
    /// That minus the probability with it: negative if the code speaks for the answer.
    pub change: f64,
    /// The same in log-odds.
    pub log_odds_change: f64,
}

/// What happens to an answer when two codes are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairChange {
    /// Their nodes.
    pub nodes: NodePair,
    /// The codes.
    pub codes: [String; 2],
    /// The probability without both.
    pub without: f64,
    /// That minus the probability with both.
    pub change: f64,
    /// The same in log-odds.
    pub log_odds_change: f64,
    /// What of the change in log-odds is not the sum of the changes without one of them. Opposite in sign to
    /// these: each takes away what both are needed for. The same sign: each can stand in for the other.
    pub interaction: f64,
}

impl Explainer<'_> {
    /// What each code does to each answer of [`Explainer::first_answers`]; and for the strongest `paired`
    /// codes of each answer, [`MOST_PAIRED`] at most, what every two of them do.
    ///
    /// # Errors
    /// If an answer is not a number.
    ///
    /// # Panics
    /// If the sample cannot be asked about: see [`Predictor::missing`].
    pub fn attribute(&self, sample: &Sample<'_>, paired: usize) -> Result<Vec<Attribution>> {
        let logits = self.predictor().answers(std::slice::from_ref(sample))?.swap_remove(0);
        self.attribute_answers(sample, &logits, paired, &Stop::new())
    }

    /// The same of logits that are known.
    pub(super) fn attribute_answers(
        &self,
        sample: &Sample<'_>,
        logits: &[f32],
        paired: usize,
        stop: &Stop,
    ) -> Result<Vec<Attribution>> {
        let asked = Asked { sample: *sample, logits, statements: self.first_statements(sample, logits) };
        let effects = single_effects(self.predictor(), std::slice::from_ref(&asked), stop)?.swap_remove(0);
        let pairs = self.pair_changes(&asked, &effects, paired.min(MOST_PAIRED), stop)?;
        let told = self.first_answers(sample, logits).into_iter().zip(effects).zip(pairs);
        let attribution =
            |((answer, effects), pairs): ((Answer, Vec<Effect>), Vec<PairChange>)| Attribution {
                what: answer.what,
                probability: answer.probability,
                changes: effects.iter().map(|effect| self.change(sample.encounter(), effect)).collect(),
                pairs,
            };
        Ok(told.map(attribution).collect())
    }

    /// An effect in words.
    pub(super) fn change(&self, encounter: &Encounter, effect: &Effect) -> Change {
        let (kind, Code { code, description, .. }) = self.code(encounter, effect.node);
        Change {
            node: effect.node,
            kind: NodeKind::Code(kind),
            code: code.clone(),
            description: description.clone(),
            without: probability_of(effect.after),
            change: effect.change(),
            log_odds_change: effect.log_odds_change(),
        }
    }

    /// What every two of the strongest codes do, for each statement.
    fn pair_changes(
        &self,
        asked: &Asked<'_>,
        effects: &[Vec<Effect>],
        paired: usize,
        stop: &Stop,
    ) -> Result<Vec<Vec<PairChange>>> {
        let strongest = |effects: &[Effect]| -> BTreeMap<usize, Effect> {
            effects.iter().take(paired).map(|effect| (effect.node, *effect)).collect()
        };
        let strongest: Vec<BTreeMap<usize, Effect>> = effects.iter().map(|some| strongest(some)).collect();
        let wanted: BTreeSet<[usize; 2]> =
            strongest.iter().flat_map(|some| some.keys().copied().array_combinations()).collect();
        let cuts = wanted.into_iter().map(|nodes| Cut { asked: 0, nodes: nodes.into() });
        let mut told = vec![Vec::new(); effects.len()];
        ask_without(self.predictor(), std::slice::from_ref(asked), cuts, stop, |cut, after| {
            for ((told, after), strongest) in told.iter_mut().zip(after).zip(&strongest) {
                let single = |at: usize| strongest.get(&cut.nodes[at]);
                if let (Some(first), Some(second), Some(after)) = (single(0), single(1), after) {
                    told.push(self.pair_change(asked.sample.encounter(), [first, second], *after));
                }
            }
        })?;
        let order = |a: &PairChange, b: &PairChange| {
            b.interaction.abs().total_cmp(&a.interaction.abs()).then(a.nodes.cmp(&b.nodes))
        };
        told.iter_mut().for_each(|pairs| pairs.sort_by(order));
        Ok(told)
    }

    fn pair_change(&self, encounter: &Encounter, singles: [&Effect; 2], after: f64) -> PairChange {
        let [first, second] = singles;
        let both = Effect { after, ..*first };
        let sum = first.log_odds_change() + second.log_odds_change();
        PairChange {
            nodes: (first.node, second.node),
            codes: singles.map(|effect| self.code(encounter, effect.node).1.code.clone()),
            without: probability_of(after),
            change: both.change(),
            log_odds_change: both.log_odds_change(),
            interaction: both.log_odds_change() - sum,
        }
    }
}

/// A sample, what was said of it, and which of that is to be explained.
pub(super) struct Asked<'a> {
    pub(super) sample: Sample<'a>,
    pub(super) logits: &'a [f32],
    pub(super) statements: Vec<Statement>,
}

impl Asked<'_> {
    fn nodes(&self) -> usize {
        NodeRanges::of(self.sample.encounter()).len()
    }

    /// The nodes of codes that can be left out: not that of the hidden diagnosis, which is what is asked.
    pub(super) fn codes(&self) -> impl Iterator<Item = usize> + use<> {
        let hidden = hidden_node(&self.sample);
        (1..self.nodes()).filter(move |node| Some(*node) != hidden)
    }

    /// The log-odds of a statement with all codes.
    pub(super) fn before(&self, statement: usize) -> f64 {
        self.statements[statement].log_odds(self.nodes(), self.logits)
    }
}

/// What happens to the log-odds of a statement when a code is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    pub(super) node: usize,
    before: f64,
    after: f64,
}

impl Effect {
    pub(super) fn change(&self) -> f64 {
        probability_of(self.after) - probability_of(self.before)
    }

    pub(super) fn log_odds_change(&self) -> f64 {
        self.after - self.before
    }

    /// The strongest first; of equal ones the first node.
    fn order(&self, other: &Effect) -> Ordering {
        let strength = |effect: &Effect| effect.log_odds_change().abs();
        strength(other).total_cmp(&strength(self)).then(self.node.cmp(&other.node))
    }
}

/// For each sample and each statement about it: what each code does, the strongest first.
pub(super) fn single_effects(
    predictor: &Predictor<'_>,
    asked: &[Asked<'_>],
    stop: &Stop,
) -> Result<Vec<Vec<Vec<Effect>>>> {
    let before: Vec<Vec<f64>> =
        asked.iter().map(|one| (0..one.statements.len()).map(|at| one.before(at)).collect()).collect();
    let mut effects: Vec<Vec<Vec<Effect>>> =
        before.iter().map(|before| vec![Vec::new(); before.len()]).collect();
    let cuts = asked.iter().enumerate().filter(|(_, one)| !one.statements.is_empty());
    let cuts = cuts.flat_map(|(at, one)| one.codes().map(move |node| Cut { asked: at, nodes: vec![node] }));
    ask_without(predictor, asked, cuts, stop, |cut, after| {
        let before = &before[cut.asked];
        for ((effects, after), before) in effects[cut.asked].iter_mut().zip(after).zip(before) {
            let effect = |after: &f64| Effect { node: cut.nodes[0], before: *before, after: *after };
            effects.extend(after.as_ref().map(effect));
        }
    })?;
    effects.iter_mut().flatten().for_each(|effects| effects.sort_by(Effect::order));
    Ok(effects)
}

/// Codes to leave out of a sample.
pub(super) struct Cut {
    /// The index of the sample.
    pub(super) asked: usize,
    /// The nodes of the codes.
    pub(super) nodes: Vec<usize>,
}

/// Asks again about samples without some codes, many at a time. `each` hears of every cut, in order, the
/// log-odds of each statement about the sample: `None` for one that is about a code that is left out. Of a
/// sample that cannot be asked about without the codes, it hears nothing.
pub(super) fn ask_without(
    predictor: &Predictor<'_>,
    asked: &[Asked<'_>],
    cuts: impl Iterator<Item = Cut>,
    stop: &Stop,
    mut each: impl FnMut(&Cut, &[Option<f64>]),
) -> Result<()> {
    let mut cuts = cuts.peekable();
    while cuts.peek().is_some() {
        let (mut some, mut cells): (Vec<(Cut, Rest)>, usize) = (Vec::new(), 0);
        while cells < CELLS && some.len() < predictor.at_once() {
            let Some(cut) = cuts.next() else { break };
            let rest = Rest::of(&asked[cut.asked].sample, &cut.nodes);
            if predictor.can_ask(&rest.encounter) {
                cells += NodeRanges::of(&rest.encounter).len().pow(2);
                some.push((cut, rest));
            }
        }
        stop.check()?;
        let samples: Vec<Sample<'_>> =
            some.iter().map(|(cut, rest)| rest.sample(&asked[cut.asked].sample)).collect();
        for ((cut, rest), logits) in some.iter().zip(predictor.answers(&samples)?) {
            let nodes = NodeRanges::of(&rest.encounter).len();
            let after = |statement: &Statement| Some(statement.without(&cut.nodes)?.log_odds(nodes, &logits));
            each(cut, &asked[cut.asked].statements.iter().map(after).collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// What is left of a sample without some codes.
struct Rest {
    encounter: Encounter,
    /// The position of the hidden diagnosis.
    hidden: Option<usize>,
}

impl Rest {
    fn of(sample: &Sample<'_>, left_out: &[usize]) -> Self {
        let encounter = graph::without(sample.encounter(), left_out);
        let first = NodeRanges::of(&encounter).range(CodeKind::Diagnosis).start;
        let hidden = hidden_node(sample).and_then(|node| graph::node_without(node, left_out));
        Rest { encounter, hidden: hidden.map(|node| node - first) }
    }

    /// The sample that it is left of, about what is left.
    fn sample<'s>(&'s self, whole: &Sample<'s>) -> Sample<'s> {
        let sample = whole.about(&self.encounter);
        self.hidden.map_or(sample, |position| sample.hiding(position))
    }
}
