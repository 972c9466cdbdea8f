//! What an answer owes to each code: how it changes when the code is left out.
//!
//! The change is exact. The model is asked again about the encounter as if the code had never been recorded:
//! its edges are gone, P and M are made anew. So a code that speaks for an answer has a negative change, and
//! changes of several codes do not add up: a diagnosis and a treatment that mean something only together each
//! take it all away. What two codes do together is told on request.
//!
//! With history the same is done to each code of each earlier visit that is seen, and to whole visits.
//! Without one, the times between the others are those that there would have been, and where there were more
//! visits than are seen, one more is.
//!
//! Attention is not this: it says where a model looks, and an answer need not depend on what it looks at.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use itertools::Itertools;
use serde::Serialize;

use super::past::days_before;
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
    /// What happens when a whole earlier visit is left out, the largest change of log-odds first; `None`
    /// without history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits: Option<Vec<VisitChange>>,
    /// What happens when one code is left out of one visit, the largest change of log-odds first. A code
    /// without which nothing can be answered is not among them: the hidden diagnosis, and both ends of a
    /// pair.
    pub changes: Vec<Change>,
    /// What happens when two codes of the encounter asked about are left out, if that was wanted; the
    /// strongest interaction first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairChange>,
}

/// What happens to an answer when an earlier visit is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VisitChange {
    /// How many visits before the one asked about, of those that are seen: 1 for the latest.
    pub visits_before: usize,
    /// Whole days from its start to that of the visit asked about, where both are known.
    pub days_before: Option<i64>,
    /// The probability without it.
    pub without: f64,
    /// That minus the probability with it: negative if the visit speaks for the answer.
    pub change: f64,
    /// The same in log-odds.
    pub log_odds_change: f64,
}

/// What happens to an answer when a code is left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The visit that it is left out of, by how many visits before the one asked about: 0 for that one.
    /// `None` without history.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visits_before: Option<usize>,
    /// The node of the code in its visit.
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
    /// What each code and each earlier visit does to each answer of [`Explainer::first_answers`]; and for the
    /// strongest `paired` codes of the encounter and each answer, [`MOST_PAIRED`] at most, what every two of
    /// them do.
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
        let places = |asked: &Asked<'_>| asked.visits().chain(asked.codes()).collect();
        let one = std::slice::from_ref(&asked);
        let effects = single_effects(self.predictor(), one, places, stop)?.swap_remove(0);
        let pairs = self.pair_changes(&asked, &effects, paired.min(MOST_PAIRED), stop)?;
        let told = self.first_answers(sample, logits).into_iter().zip(effects).zip(pairs);
        let attribution =
            |((answer, effects), pairs): ((Answer, Vec<Effect>), Vec<PairChange>)| Attribution {
                what: answer.what,
                probability: answer.probability,
                visits: sample.has_history().then(|| visit_changes(sample, &effects)),
                changes: (effects.iter().filter(|effect| !effect.place.is_visit()))
                    .map(|effect| self.change(sample, effect))
                    .collect(),
                pairs,
            };
        Ok(told.map(attribution).collect())
    }

    /// An effect in words.
    pub(super) fn change(&self, sample: &Sample<'_>, effect: &Effect) -> Change {
        let Place { visits_before, node } = effect.place;
        let (kind, Code { code, description, .. }) = self.code(effect.place.encounter(sample), node);
        Change {
            visits_before: sample.has_history().then_some(visits_before),
            node,
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
            let own = effects.iter().filter(|effect| effect.place.visits_before == 0);
            own.take(paired).map(|effect| (effect.place.node, *effect)).collect()
        };
        let strongest: Vec<BTreeMap<usize, Effect>> = effects.iter().map(|some| strongest(some)).collect();
        let wanted: BTreeSet<[usize; 2]> =
            strongest.iter().flat_map(|some| some.keys().copied().array_combinations()).collect();
        let cuts = wanted.into_iter().map(|nodes| Cut { asked: 0, visits_before: 0, nodes: nodes.into() });
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
            nodes: (first.place.node, second.place.node),
            codes: singles.map(|effect| self.code(encounter, effect.place.node).1.code.clone()),
            without: probability_of(after),
            change: both.change(),
            log_odds_change: both.log_odds_change(),
            interaction: both.log_odds_change() - sum,
        }
    }
}

/// What every earlier visit does, of effects that are sorted.
fn visit_changes(sample: &Sample<'_>, effects: &[Effect]) -> Vec<VisitChange> {
    let change = |effect: &Effect| VisitChange {
        visits_before: effect.place.visits_before,
        days_before: days_before(sample, effect.place.encounter(sample)),
        without: probability_of(effect.after),
        change: effect.change(),
        log_odds_change: effect.log_odds_change(),
    };
    effects.iter().filter(|effect| effect.place.is_visit()).map(change).collect()
}

/// A node of a visit that a sample sees. That of an earlier visit itself stands for all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// How many visits before the encounter asked about.
    pub(super) visits_before: usize,
    pub(super) node: usize,
}

impl Place {
    /// Whether it is a whole visit.
    pub(super) fn is_visit(self) -> bool {
        self.node == 0
    }

    fn encounter<'a>(self, sample: &Sample<'a>) -> &'a Encounter {
        visit_before(sample, self.visits_before)
    }
}

/// The encounter asked about, or the one so many visits before it.
fn visit_before<'a>(sample: &Sample<'a>, visits_before: usize) -> &'a Encounter {
    let seen = std::iter::once(sample.encounter()).chain(sample.history()).nth(visits_before);
    seen.expect("a visit that is seen")
}

/// A sample, what was said of it, and which of that is to be explained.
pub(super) struct Asked<'a> {
    pub(super) sample: Sample<'a>,
    pub(super) logits: &'a [f32],
    pub(super) statements: Vec<Statement>,
}

impl Asked<'_> {
    pub(super) fn nodes(&self) -> usize {
        NodeRanges::of(self.sample.encounter()).len()
    }

    /// The codes of the encounter that can be left out: not the hidden diagnosis, which is what is asked.
    pub(super) fn own_codes(&self) -> impl Iterator<Item = Place> + use<> {
        let hidden = hidden_node(&self.sample);
        let nodes = (1..self.nodes()).filter(move |node| Some(*node) != hidden);
        nodes.map(|node| Place { visits_before: 0, node })
    }

    /// The same, and the codes of each earlier visit; of a bag without context, which it has of the encounter
    /// alone.
    pub(super) fn codes(&self) -> impl Iterator<Item = Place> + use<'_> {
        let nodes = |visit: &Encounter| {
            let ranges = NodeRanges::of(visit);
            let first = if self.sample.is_bag() { ranges.range(CodeKind::Context).end } else { 1 };
            first..ranges.len()
        };
        let earlier = (1..).zip(self.sample.history()).flat_map(move |(visits_before, visit)| {
            nodes(visit).map(move |node| Place { visits_before, node })
        });
        self.own_codes().chain(earlier)
    }

    /// The earlier visits.
    pub(super) fn visits(&self) -> impl Iterator<Item = Place> + use<'_> {
        self.sample.history().zip(1..).map(|(_, visits_before)| Place { visits_before, node: 0 })
    }

    /// The log-odds of a statement with all codes.
    pub(super) fn before(&self, statement: usize) -> f64 {
        self.statements[statement].log_odds(self.nodes(), self.logits)
    }
}

/// What happens to the log-odds of a statement when a code or a visit is left out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effect {
    pub(super) place: Place,
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

    /// The strongest first; of equal ones the first place.
    fn order(&self, other: &Effect) -> Ordering {
        let strength = |effect: &Effect| effect.log_odds_change().abs();
        strength(other).total_cmp(&strength(self)).then(self.place.cmp(&other.place))
    }
}

/// For each sample and each statement about it: what the code or visit at each of some places does, the
/// strongest first.
pub(super) fn single_effects(
    predictor: &Predictor<'_>,
    asked: &[Asked<'_>],
    places: impl Fn(&Asked<'_>) -> Vec<Place>,
    stop: &Stop,
) -> Result<Vec<Vec<Vec<Effect>>>> {
    let before: Vec<Vec<f64>> =
        asked.iter().map(|one| (0..one.statements.len()).map(|at| one.before(at)).collect()).collect();
    let mut effects: Vec<Vec<Vec<Effect>>> =
        before.iter().map(|before| vec![Vec::new(); before.len()]).collect();
    let cuts = asked.iter().enumerate().filter(|(_, one)| !one.statements.is_empty());
    let cuts = cuts.flat_map(|(at, one)| places(one).into_iter().map(move |place| Cut::of(at, place)));
    ask_without(predictor, asked, cuts, stop, |cut, after| {
        let before = &before[cut.asked];
        let place = Place { visits_before: cut.visits_before, node: cut.nodes[0] };
        for ((effects, after), before) in effects[cut.asked].iter_mut().zip(after).zip(before) {
            let effect = |after: &f64| Effect { place, before: *before, after: *after };
            effects.extend(after.as_ref().map(effect));
        }
    })?;
    effects.iter_mut().flatten().for_each(|effects| effects.sort_by(Effect::order));
    Ok(effects)
}

/// Codes to leave out of a sample, or a visit.
pub(super) struct Cut {
    /// The index of the sample.
    pub(super) asked: usize,
    /// The visit that they are left out of, as in [`Place`].
    pub(super) visits_before: usize,
    /// Their nodes; that of the visit alone if it is left out itself.
    pub(super) nodes: Vec<usize>,
}

impl Cut {
    fn of(asked: usize, Place { visits_before, node }: Place) -> Self {
        Cut { asked, visits_before, nodes: vec![node] }
    }

    /// The nodes that are left out of the encounter asked about.
    fn own_nodes(&self) -> &[usize] {
        if self.visits_before == 0 { &self.nodes } else { &[] }
    }
}

/// Asks again about samples without some codes or a visit, many at a time. `each` hears of every cut, in
/// order, the log-odds of each statement about the sample: `None` for one that is about a code that is left
/// out. Of a sample that cannot be asked about without the codes, it hears nothing.
pub(super) fn ask_without(
    predictor: &Predictor<'_>,
    asked: &[Asked<'_>],
    cuts: impl Iterator<Item = Cut>,
    stop: &Stop,
    mut each: impl FnMut(&Cut, &[Option<f64>]),
) -> Result<()> {
    let mut cuts = cuts.peekable();
    while cuts.peek().is_some() {
        let (mut some, mut cells): (Vec<(Cut, Rest<'_>)>, usize) = (Vec::new(), 0);
        while cells < CELLS && some.len() < predictor.at_once() {
            let Some(cut) = cuts.next() else { break };
            let rest = Rest::of(&asked[cut.asked].sample, &cut);
            if predictor.can_ask(rest.sample().encounter()) {
                cells += rest.cells();
                some.push((cut, rest));
            }
        }
        stop.check()?;
        let samples: Vec<Sample<'_>> = some.iter().map(|(_, rest)| rest.sample()).collect();
        for ((cut, sample), logits) in
            some.iter().map(|(cut, _)| cut).zip(&samples).zip(predictor.answers(&samples)?)
        {
            let nodes = NodeRanges::of(sample.encounter()).len();
            let after =
                |statement: &Statement| Some(statement.without(cut.own_nodes())?.log_odds(nodes, &logits));
            each(cut, &asked[cut.asked].statements.iter().map(after).collect::<Vec<_>>());
        }
    }
    Ok(())
}

/// What is left of a sample without some codes or a visit.
struct Rest<'a> {
    whole: Sample<'a>,
    left: Left<'a>,
}

enum Left<'a> {
    /// Of the encounter asked about, and where its hidden diagnosis is then.
    Own(Encounter, Option<(CodeKind, usize)>),
    /// Of an earlier visit; nothing if it is left out itself.
    Earlier(&'a Encounter, Option<Encounter>),
}

impl<'a> Rest<'a> {
    fn of(sample: &Sample<'a>, cut: &Cut) -> Self {
        let encounter = visit_before(sample, cut.visits_before);
        let left = match (cut.visits_before, &cut.nodes[..]) {
            (0, nodes) => {
                let rest = graph::without(encounter, nodes);
                let hidden = hidden_node(sample).and_then(|node| graph::node_without(node, nodes));
                let kind = sample.hidden_position().map(|(kind, _)| kind);
                let position =
                    |(kind, node): (CodeKind, usize)| (kind, node - NodeRanges::of(&rest).range(kind).start);
                let hidden = kind.zip(hidden).map(position);
                Left::Own(rest, hidden)
            }
            (_, [0]) => Left::Earlier(encounter, None),
            (_, nodes) => Left::Earlier(encounter, Some(graph::without(encounter, nodes))),
        };
        Rest { whole: *sample, left }
    }

    /// The sample that is left.
    fn sample(&self) -> Sample<'_> {
        match &self.left {
            Left::Own(encounter, hidden) => {
                let sample = self.whole.about(encounter);
                hidden.map_or(sample, |(kind, position)| sample.hiding_code(kind, position))
            }
            Left::Earlier(earlier, version) => self.whole.with_earlier(earlier, version.as_ref()),
        }
    }

    /// Cells of P that only this sample has; of a bag, those of all codes as if no two were the same.
    fn cells(&self) -> usize {
        let nodes = |encounter: &Encounter| NodeRanges::of(encounter).len();
        let sample = self.sample();
        let nodes = match &self.left {
            _ if sample.is_bag() => nodes(sample.encounter()) + sample.history().map(nodes).sum::<usize>(),
            Left::Own(encounter, _) | Left::Earlier(_, Some(encounter)) => nodes(encounter),
            Left::Earlier(_, None) => 0,
        };
        nodes.pow(2)
    }
}
