//! Codes as text to encounters in numbers.

use std::collections::BTreeSet;
use std::sync::Arc;

use gct::coding::{Recorded, RecordedTimes, WrongTime};
use gct::graph::{NodeKind, NodeRanges};
use gct::history::Aggregator;
use gct::predict::Explainer;
use gct::question::Hide;
use gct::record::{CodeKind, Encounter, PerKind};
use gct::run::Run;
use gct::sample::{OwnedSample, WrongVisits};

use crate::problem::{Place, Problem};
use crate::settings::Limits;
use crate::shape::{self, Code, UnknownCode};

/// The most codes of an encounter that are left out one by one.
const MOST_LEFT_OUT: usize = 200;

/// What a visit costs however small it is, in pairs of nodes.
const LEAST: usize = 500;

/// What it costs to go over one more visit whose vector is known.
const STEP: usize = 100;

/// An encounter as the model is asked about it.
pub(crate) struct Question {
    pub(crate) sample: OwnedSample,
    pub(crate) hide: Hide,
    /// Codes that are not known, each once; the model is not asked about them.
    pub(crate) unknown: Vec<UnknownCode>,
    /// How many of the earlier visits that were sent are not seen; `None` without history, or if none were to
    /// be sent.
    pub(crate) not_seen: Option<usize>,
    /// How many nodes each graph has that the model looks at: the encounter, and the earlier visits that are
    /// seen; of a bag all as one.
    graphs: Vec<usize>,
}

impl Question {
    /// A question of which nothing is unknown. Of what is before the encounter, only what counts is kept.
    pub(crate) fn new(run: &Run, sample: &OwnedSample, hide: Hide) -> Self {
        let explainer = Explainer::new(run).expect("a run keeps the model that it has loaded");
        let given = sample.before.len();
        let sample = explainer.predictor().sample_hiding(sample, hide);
        let not_seen = sample.has_history().then(|| given - sample.history().count());
        let nodes = |encounter: &Encounter| NodeRanges::of(encounter).len();
        let seen = std::iter::once(sample.encounter()).chain(sample.history());
        let graphs: Vec<usize> = seen.map(nodes).collect();
        let graphs = match run.settings().history.aggregator {
            Aggregator::Bag => vec![graphs.iter().sum()],
            Aggregator::None | Aggregator::Gru | Aggregator::Cnn | Aggregator::Attention => graphs,
        };
        Question { sample: sample.to_owned_sample(), hide, unknown: Vec::new(), not_seen, graphs }
    }

    /// How many nodes the encounter has.
    pub(crate) fn nodes(&self) -> usize {
        NodeRanges::of(&self.sample.encounter).len()
    }

    /// How many nodes the model looks at.
    pub(crate) fn all_nodes(&self) -> usize {
        self.graphs.iter().sum()
    }

    /// What it costs to ask about all of it so many times, and once more for each of its codes if that is
    /// wanted; in pairs of nodes, for which attention has a number each.
    pub(crate) fn cost(&self, times: usize, with_reasons: bool) -> usize {
        let steps = STEP * (self.graphs.len() - 1);
        let of_graph = |nodes: &usize| {
            let once = LEAST + nodes.pow(2);
            times * once + if with_reasons { nodes * (once + steps) } else { 0 }
        };
        self.graphs.iter().map(of_graph).sum()
    }

    /// Whether an explanation says what each code does: an answer for each takes long if there are many, and
    /// others wait.
    pub(crate) fn has_reasons(&self) -> bool {
        let most = 1 + MOST_LEFT_OUT;
        self.cost(0, true) <= most * (LEAST + most.pow(2))
    }
}

/// Codes of kinds that have no values.
fn without_value(codes: Vec<Code<'_>>) -> Vec<Recorded<'_>> {
    codes.into_iter().map(|code| Recorded::new(code.0)).collect()
}

/// Codes that are not known, of each kind.
type Unknown = PerKind<BTreeSet<String>>;

/// What is recorded of a visit.
struct Record<'a> {
    place: Place,
    codes: PerKind<Vec<Recorded<'a>>>,
    start: Option<Code<'a>>,
    end: Option<Code<'a>>,
    prediction_time: Option<Code<'a>>,
}

impl<'a> Record<'a> {
    fn of_visit(place: Place, visit: shape::Visit<'a>) -> Self {
        let shape::Visit { start, end, context, diagnosis, treatment, lab } = visit;
        let (diagnosis, treatment) = (without_value(diagnosis), without_value(treatment));
        let codes = PerKind { context, diagnosis, treatment, lab };
        Record { place, codes, start, end, prediction_time: None }
    }
}

/// The codes that a run knows.
pub(crate) struct Words {
    run: Arc<Run>,
    most_codes: usize,
    most_visits: usize,
}

impl Words {
    pub(crate) fn new(run: Arc<Run>, limits: &Limits) -> Self {
        Words { run, most_codes: limits.codes, most_visits: limits.encounters }
    }

    /// An encounter of a dataset. Nobody sent its earlier visits.
    pub(crate) fn known(&self, sample: &OwnedSample) -> Question {
        Question { not_seen: None, ..Question::new(&self.run, sample, Hide::ByEncounter) }
    }

    /// The encounter at an index of the request.
    pub(crate) fn question(&self, index: usize, asked: shape::Encounter<'_>) -> Result<Question, Problem> {
        let shape::Encounter { context, diagnosis, treatment, lab, hide, .. } = asked;
        let shape::Encounter { start, end, prediction_time, visits, .. } = asked;
        let (diagnosis, treatment) = (without_value(diagnosis), without_value(treatment));
        let codes = PerKind { context, diagnosis, treatment, lab };
        let (place, mut unknown) = (Place { index, visit: None }, Unknown::default());
        let record = Record { place, codes, start, end, prediction_time };
        let encounter = self.encounter(&record, &mut unknown)?;
        let hide = self.hide(index, hide.as_ref().map(AsRef::as_ref), &encounter.codes)?;
        let visits = self.visits(index, visits, &mut unknown)?;
        let sample = OwnedSample::with_visits(encounter, visits, &self.run.settings().history);
        let sample = sample.map_err(|wrong| wrong_visits(index, wrong))?;
        Ok(Question { unknown: listed(unknown), ..Question::new(&self.run, &sample, hide) })
    }

    /// Earlier visits of an encounter.
    fn visits(
        &self,
        index: usize,
        visits: Vec<shape::Visit<'_>>,
        unknown: &mut Unknown,
    ) -> Result<Vec<Encounter>, Problem> {
        if visits.len() > self.most_visits {
            return Err(Problem::TooManyVisits { index, most: self.most_visits });
        }
        let visits = visits.into_iter().enumerate();
        let encounter = |(position, visit)| {
            let place = Place { index, visit: Some(position) };
            self.encounter(&Record::of_visit(place, visit), unknown)
        };
        visits.map(encounter).collect()
    }

    /// What is recorded in numbers; what is not known is added to `unknown`.
    fn encounter(&self, record: &Record<'_>, unknown: &mut Unknown) -> Result<Encounter, Problem> {
        let Record { place, codes, start, end, prediction_time } = record;
        let place = *place;
        if CodeKind::ALL.iter().map(|kind| codes[*kind].len()).sum::<usize>() > self.most_codes {
            return Err(Problem::TooManyCodes { place, most: self.most_codes });
        }
        // The file about values was read when the server began.
        let (encounter, mut missing) = self.run.recorded(codes).map_err(|_| Problem::NoBuckets { place })?;
        CodeKind::ALL.iter().for_each(|kind| unknown[*kind].extend(std::mem::take(&mut missing[*kind])));
        let [start, end, prediction_time] =
            [start, end, prediction_time].map(|time| time.as_ref().map(AsRef::as_ref));
        RecordedTimes { start, end, prediction_time }.of(encounter).map_err(|wrong| match wrong {
            WrongTime::NotATime(name) => Problem::NotATime { place, name },
            WrongTime::EndBeforeStart => Problem::EndBeforeStart { place },
        })
    }

    /// The position of a recorded code of a kind among those of an encounter, if it is there.
    fn position(
        &self,
        index: usize,
        kind: CodeKind,
        code: &str,
        ids: &[u32],
    ) -> Result<Option<usize>, Problem> {
        let mut alone = PerKind::<Vec<Recorded<'_>>>::default();
        alone[kind].push(Recorded::new(code));
        let place = Place { index, visit: None };
        let alone = self.run.recorded(&alone).map_err(|_| Problem::NoBuckets { place })?.0;
        Ok(alone.codes[kind].first().and_then(|id| ids.binary_search(id).ok()))
    }

    /// Which code is hidden, of those that the run's question may hide. A code that is named by two kinds is
    /// the first of them.
    fn hide(&self, index: usize, wanted: Option<&str>, codes: &PerKind<Vec<u32>>) -> Result<Hide, Problem> {
        use gct::question::Question;
        let kinds: &[CodeKind] = match self.run.settings().task {
            Question::HiddenDiagnosis => &[CodeKind::Diagnosis],
            Question::HiddenCode => &CodeKind::OF_PAPER,
            Question::Edges | Question::Labels(_) | Question::NextDiagnoses(_) => &[],
        };
        let hides = !kinds.is_empty();
        match wanted {
            Some(_) if !hides => Err(Problem::HidesNothing { index }),
            None if !hides => Ok(Hide::ByEncounter),
            _ if kinds.iter().all(|kind| codes[*kind].is_empty()) => Err(Problem::NothingToHide { index }),
            // The encounter has no name, so what is hidden depends on how many codes there are, and on
            // nothing else.
            None => Ok(Hide::ByEncounter),
            Some(code) => {
                let mut before = 0;
                for kind in kinds {
                    if let Some(position) = self.position(index, *kind, code, &codes[*kind])? {
                        return Ok(Hide::Position(before + position));
                    }
                    before += codes[*kind].len();
                }
                Err(Problem::NotThereToHide { index })
            }
        }
    }
}

/// Codes that are not known, as answers have them.
fn listed(mut unknown: Unknown) -> Vec<UnknownCode> {
    let of_kind = |kind: CodeKind| {
        let codes = std::mem::take(&mut unknown[kind]).into_iter();
        codes.map(move |code| UnknownCode { kind: NodeKind::Code(kind), code })
    };
    CodeKind::ALL.into_iter().flat_map(of_kind).collect()
}

fn wrong_visits(index: usize, wrong: WrongVisits) -> Problem {
    match wrong {
        WrongVisits::NoHistory => Problem::NoHistory { index },
        WrongVisits::NoStart(visit) => Problem::NoStart { place: Place { index, visit } },
        WrongVisits::NotBefore(visit) => Problem::NotBefore { place: Place { index, visit: Some(visit) } },
        WrongVisits::SameStart([first, second]) => Problem::SameStart { index, first, second },
    }
}
