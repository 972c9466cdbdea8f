//! A run asked about encounters: the encounters of a dataset in the words of the run, and what its model says
//! of them.

use std::iter::Peekable;
use std::path::PathBuf;

use rayon::prelude::*;
use serde::Serialize;

use crate::batch::{Encoding, Example};
use crate::dataset::{Dataset, Encounters};
use crate::error::{Error, Result};
use crate::history::Window;
use crate::model::{Frozen, LoadedModel, Model, Pool};
use crate::question::{Hide, Question};
use crate::record::{Code, CodeKind, Edge, Edges, Encounter, PerKind};
use crate::run::{Hasher, Learned, Run};
use crate::sample::{OwnedSample, Sample};
use crate::split::{Split, SplitPart};

/// Encounters that one thread takes at a time.
const SHARE: usize = 16;

/// Samples of one subject that one thread takes at a time.
const SUBJECT_SHARE: usize = 16 * SHARE;

/// Encounters that are in memory at a time.
pub(crate) const ROUND: usize = 4096;

/// Encounters whose matrices of attention are in memory at a time: each has thousands of numbers in every
/// block.
pub(crate) const LOOKED_AT: usize = 256;

/// Numbers of answers that are in memory at a time.
const NUMBERS: usize = 1 << 24;

/// Which encounters of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Those of one part of the run's split.
    Part(SplitPart),
    /// All.
    All,
}

impl Which {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Which::Part(part) => part.name(),
            Which::All => "all",
        }
    }

    /// The test split of the dataset that a run was trained on, even if it has changed since, and all of any
    /// other.
    pub fn default_for(run: &Run, dataset: &Dataset) -> Self {
        if run.is_of(dataset) { Which::Part(SplitPart::Test) } else { Which::All }
    }
}

/// What becomes of encounters that a run learned from, in a test on other data than its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Training {
    /// They are left out: a model knows their answers.
    #[default]
    LeaveOut,
    /// They are tested on like any other.
    Include,
}

/// Encounters to test on. From [`Which`] alone: without those that the run learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestSet {
    /// Which encounters of the dataset.
    pub which: Which,
    /// What becomes of those that the run learned from.
    pub training: Training,
}

impl From<Which> for TestSet {
    fn from(which: Which) -> Self {
        TestSet { which, training: Training::LeaveOut }
    }
}

/// Encounters of other data whose subjects a run learned from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Overlap {
    /// How many.
    pub encounters: u64,
    /// Whether they are in the test nevertheless.
    pub included: bool,
}

impl Overlap {
    /// What must be said beside every metric of such a test.
    pub fn warning(&self) -> Option<&'static str> {
        (self.included && self.encounters > 0)
            .then_some("the run learned from some of these subjects: the metrics are too good")
    }
}

/// Recognises encounters that a run learned from in other data than its own.
struct Recognition {
    learned: Learned,
    hasher: Hasher,
    training: Training,
    dataset: PathBuf,
    /// Whether the dataset stands where the one was that was learned from.
    same_path: bool,
    /// Labels of which one must be known for an encounter to be a test of anything; any will do if there are
    /// none.
    labels: Vec<usize>,
    /// Recognised in the whole dataset.
    found: u64,
    /// Recognised in the part that is tested.
    overlap: u64,
    /// Encounters in that part whose answer is known.
    tests: u64,
    /// Encounters that are predicted.
    passed: u64,
}

impl Recognition {
    /// Whether an encounter is tested on.
    fn takes(&mut self, encounter: &Encounter, in_part: bool) -> bool {
        let known = self.learned.knows(&self.hasher, encounter);
        self.found += u64::from(known);
        let is_labelled = |label: &usize| encounter.labels[*label].is_some();
        let is_test = in_part && (self.labels.is_empty() || self.labels.iter().any(is_labelled));
        self.overlap += u64::from(known && is_test);
        let is_left_out = known && is_test && self.training == Training::LeaveOut;
        let passes = in_part && !is_left_out;
        self.tests += u64::from(is_test);
        self.passed += u64::from(passes);
        passes
    }

    /// After the last encounter: whether those who were learned from could be left out, and others remained.
    fn check(&self) -> Result<()> {
        let (path, found, learned) = (self.dataset.clone(), self.found, self.learned.encounters());
        match self.training {
            Training::Include => Ok(()),
            Training::LeaveOut if self.tests == 0 => Ok(()),
            Training::LeaveOut if self.same_path && 2 * found < learned => {
                Err(Error::IdentifiersChanged { path, found, learned })
            }
            Training::LeaveOut if self.passed == 0 => {
                Err(Error::OnlyTraining { path, encounters: self.overlap })
            }
            Training::LeaveOut => Ok(()),
        }
    }
}

/// Codes of a dataset that a run does not know. They are left out of their encounters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// How many codes.
    pub codes: u64,
    /// How often they were met.
    pub occurrences: u64,
}

/// The encounters of a dataset with the code ids of a run and the labels of its task.
pub struct Reader {
    encounters: Encounters,
    /// The part of the split that is wanted, if not all.
    part: Option<(SplitPart, Split)>,
    /// The run's id of every code, unless they are the same.
    ids: Option<PerKind<Vec<Option<u32>>>>,
    /// Where the dataset has the labels of the run's task.
    labels: Vec<Option<usize>>,
    unseen: Unseen,
    /// For a test on other data than the run's own.
    recognition: Option<Recognition>,
}

impl Reader {
    /// Begins to read.
    ///
    /// # Errors
    /// If the dataset is of another kind, has no code that the run knows, or cannot be read.
    pub fn new(run: &Run, dataset: &Dataset, which: Which) -> Result<Self> {
        Reader::with_edges(run, dataset, which, true)
    }

    /// The same without the edges, unless the task or the model needs them: quicker, for predictions.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub fn for_predictions(run: &Run, dataset: &Dataset, which: Which) -> Result<Self> {
        let settings = run.settings();
        let needed = settings.task.reads_edges() || settings.model.needs_edges();
        Reader::with_edges(run, dataset, which, needed)
    }

    fn with_edges(run: &Run, dataset: &Dataset, which: Which, edges: bool) -> Result<Self> {
        let (source, expected) = (&dataset.manifest().source.kind, &run.manifest().dataset.source);
        let wrong = |problem: String| Error::DatasetMismatch { path: dataset.path().to_owned(), problem };
        // Records of another source can be prepared with the codes of that one.
        if source != expected && dataset.manifest().source.findings["like"]["source"] != **expected {
            return Err(wrong(format!("it holds {source} data, but the run learned from {expected} data")));
        }
        // Where an encounter belongs then depends on the others.
        let moves = matches!(which, Which::Part(_)) && run.settings().split.stratify.is_some();
        if moves && run.check_dataset(dataset).is_err() {
            return Err(Error::StratificationChanged { path: dataset.path().to_owned() });
        }
        let ids = ids_of_run(run, dataset);
        let known = |kind: CodeKind| ids[kind].iter().flatten().count();
        if CodeKind::ALL.iter().all(|kind| known(*kind) == 0) {
            return Err(wrong("the run knows none of its codes".into()));
        }
        let unseen = CodeKind::ALL.iter().map(|kind| ids[*kind].len() - known(*kind)).sum::<usize>() as u64;
        let same = |kind: CodeKind| (0..).zip(&ids[kind]).all(|(id, of_run)| *of_run == Some(id));
        Ok(Reader {
            encounters: dataset.encounters_with(edges)?,
            part: match which {
                Which::Part(part) => Some((part, Split::new(&run.settings().split, dataset)?)),
                Which::All => None,
            },
            ids: if CodeKind::ALL.into_iter().all(same) { None } else { Some(ids) },
            labels: label_columns(run, dataset),
            unseen: Unseen { codes: unseen, occurrences: 0 },
            recognition: None,
        })
    }

    /// Makes it a test: if the dataset is not the one that the run was trained on, subjects that the run
    /// learned from are recognised.
    ///
    /// # Errors
    /// If the run does not know whom it learned from, and they are to be left out.
    pub fn testing(mut self, run: &Run, dataset: &Dataset, training: Training) -> Result<Self> {
        if run.check_dataset(dataset).is_ok() {
            return Ok(self);
        }
        let Some(learned) = run.learned()? else {
            return match training {
                Training::LeaveOut => Err(Error::TrainingUnknown { run: run.path().to_owned() }),
                Training::Include => Ok(self),
            };
        };
        self.recognition = Some(Recognition {
            learned,
            hasher: Hasher::new(&run.manifest().dataset.sha256, dataset),
            training,
            dataset: dataset.path().to_owned(),
            same_path: run.is_of(dataset),
            labels: Vec::new(),
            found: 0,
            overlap: 0,
            tests: 0,
            passed: 0,
        });
        Ok(self)
    }

    /// Lets encounters pass of which no label of the task is known: a prediction of them is compared with
    /// nothing.
    pub(crate) fn of_labels(mut self) -> Self {
        if let Some(recognition) = &mut self.recognition {
            recognition.labels = self.labels.iter().flatten().copied().collect();
        }
        self
    }

    /// After the last encounter: those that the run learned from.
    ///
    /// # Errors
    /// If they could not be left out, or nothing else was there.
    pub fn overlap(&self) -> Result<Overlap> {
        let Some(recognition) = &self.recognition else { return Ok(Overlap::default()) };
        recognition.check()?;
        let included = recognition.training == Training::Include;
        Ok(Overlap { encounters: recognition.overlap, included })
    }

    /// What was left out so far.
    pub fn unseen(&self) -> Unseen {
        self.unseen
    }

    fn translate(&mut self, mut encounter: Encounter) -> Encounter {
        let label = |column: &Option<usize>| column.and_then(|column| encounter.labels[column]);
        encounter.labels = self.labels.iter().map(label).collect();
        let Some(ids) = &self.ids else { return encounter };
        // The new position of each code: ids of the run may be in another order.
        let mut positions: PerKind<Vec<Option<u16>>> = PerKind::default();
        for kind in CodeKind::ALL {
            let old = std::mem::take(&mut encounter.codes[kind]);
            let translated: Vec<Option<u32>> = old.iter().map(|id| ids[kind][*id as usize]).collect();
            let mut new: Vec<u32> = translated.iter().flatten().copied().collect();
            new.sort_unstable();
            self.unseen.occurrences += (old.len() - new.len()) as u64;
            let position = |id: Option<u32>| new.binary_search(&id?).ok().map(|position| position as u16);
            positions[kind] = translated.iter().map(|id| position(*id)).collect();
            encounter.codes[kind] = new;
        }
        let translate = |edges: Vec<Edge>, causes: CodeKind, effects: CodeKind| -> Vec<Edge> {
            let end = |kind: CodeKind, position: u16| positions[kind][usize::from(position)];
            let edge = |edge: Edge| {
                Some(Edge { cause: end(causes, edge.cause)?, effect: end(effects, edge.effect)? })
            };
            let mut edges: Vec<Edge> = edges.into_iter().filter_map(edge).collect();
            edges.sort_unstable();
            edges
        };
        encounter.edges = encounter.edges.map(|edges| Edges {
            diagnosis_treatment: translate(
                edges.diagnosis_treatment,
                CodeKind::Diagnosis,
                CodeKind::Treatment,
            ),
            treatment_lab: translate(edges.treatment_lab, CodeKind::Treatment, CodeKind::Lab),
        });
        encounter
    }
}

impl Iterator for Reader {
    type Item = Result<Encounter>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.encounters.next()? {
                Ok(encounter) => {
                    let mut is_wanted =
                        self.part.as_ref().is_none_or(|(part, split)| split.part(&encounter) == *part);
                    if let Some(recognition) = &mut self.recognition {
                        is_wanted = recognition.takes(&encounter, is_wanted);
                    }
                    if is_wanted {
                        return Some(Ok(self.translate(encounter)));
                    }
                }
                error => return Some(error),
            }
        }
    }
}

/// The run's id of every code of a dataset.
fn ids_of_run(run: &Run, dataset: &Dataset) -> PerKind<Vec<Option<u32>>> {
    let id = |kind: CodeKind, code: &Code| run.code_id(kind, &code.code);
    PerKind::from_fn(|kind| dataset.vocabulary()[kind].iter().map(|code| id(kind, code)).collect())
}

/// Where a dataset has the labels of the run's task.
fn label_columns(run: &Run, dataset: &Dataset) -> Vec<Option<usize>> {
    let column = |label: String| dataset.manifest().labels.iter().position(|known| *known == label);
    run.settings().task.labels().into_iter().map(column).collect()
}

/// A model with what it takes to ask it about encounters, on all threads.
pub struct Predictor<'a> {
    loaded: LoadedModel,
    question: &'a Question,
    encoding: Encoding<'a>,
}

impl<'a> Predictor<'a> {
    /// Makes one that knows the model as it is now. Nothing is calibrated: validation during training must
    /// not be.
    pub fn new(model: &Model<f32>, question: &'a Question, encoding: Encoding<'a>) -> Self {
        Predictor { loaded: LoadedModel::new(model, Vec::new()), question, encoding }
    }

    /// The predictor of a run. The model is loaded at the first call for a run, and shared by all others. If
    /// the run is calibrated, so is all that is asked here.
    ///
    /// # Errors
    /// If the run has no model, its file or its calibration is damaged, or that one is of other weights.
    pub fn of_run(run: &'a Run) -> Result<Self> {
        Ok(Predictor { loaded: run.loaded()?, question: &run.settings().task, encoding: run.encoding() })
    }

    /// The model.
    pub fn model(&self) -> &Frozen<f32> {
        self.loaded.frozen()
    }

    /// What it is asked.
    pub fn question(&self) -> &'a Question {
        self.question
    }

    /// How many samples to ask about at a time: fewer where an answer has a number for each of many
    /// diagnoses.
    pub(crate) fn at_once(&self) -> usize {
        let numbers = self.question.answer_len(self.encoding.rows);
        (NUMBERS / numbers.max(1)).clamp(LOOKED_AT, ROUND)
    }

    /// Whether an encounter can be asked about: a diagnosis must be there to be hidden, and some models must
    /// be given the edges.
    pub fn can_ask(&self, encounter: &Encounter) -> bool {
        self.missing(encounter).is_none()
    }

    /// What an encounter lacks to be asked about.
    pub fn missing(&self, encounter: &Encounter) -> Option<&'static str> {
        let lacks_edges = self.model().config().needs_edges() && encounter.edges.is_none();
        self.question.missing(encounter).or(lacks_edges.then_some("known edges"))
    }

    /// Refuses a dataset without edges if the model must be given them.
    pub(crate) fn check_given(&self, dataset: &Dataset) -> Result<()> {
        self.check_edges(dataset.manifest().with_edges > 0)
    }

    /// Refuses data whose edges are not known if the model must be given them.
    pub(crate) fn check_edges(&self, are_known: bool) -> Result<()> {
        match self.model().config().needs_edges() {
            true => self.model().check_data(are_known),
            false => Ok(()),
        }
    }

    /// Whether an encounter can be asked about, and its true answer is known; beside it the next one of its
    /// subject, if the question is about that.
    pub(crate) fn can_test(&self, encounter: &Encounter, next: Option<&Encounter>) -> bool {
        self.question.has_answer(encounter, next) && self.can_ask(encounter)
    }

    /// Refuses encounters that are not in the words of the run, or cannot be asked about.
    ///
    /// # Errors
    /// The first one, by its index.
    pub(crate) fn check(&self, encounters: &[Encounter]) -> Result<()> {
        let lack = |missing: &str| format!("has no {missing}, which the run needs to be asked");
        self.check_words(encounters)?;
        refuse(encounters, |encounter| self.missing(encounter).map(lack))
    }

    /// Refuses encounters that are not in the words of the run.
    ///
    /// # Errors
    /// The first one, by its index.
    pub(crate) fn check_words(&self, encounters: &[Encounter]) -> Result<()> {
        refuse(encounters, |encounter| self.problem(encounter))
    }

    fn problem(&self, encounter: &Encounter) -> Option<String> {
        for kind in CodeKind::ALL {
            let (codes, known) = (&encounter.codes[kind], self.encoding.rows.codes(kind));
            if !codes.is_sorted_by(|a, b| a < b) {
                return Some(format!("has {} ids that are not ascending", kind.name()));
            }
            if codes.last().is_some_and(|id| *id as usize >= known) {
                return Some(format!("has a {} id outside of the run's vocabulary", kind.name()));
            }
        }
        let (given, asked) = (encounter.labels.len(), self.question.labels().len());
        if asked > 0 && given > 0 && given != asked {
            return Some(format!("has {given} labels, and the run predicts {asked}"));
        }
        let fits = encounter.edges.as_ref().is_none_or(|edges| edges.fit(&encounter.codes));
        (!fits).then(|| "has an edge to a code that it does not have".into())
    }

    /// What is known of an encounter when it is asked about, without earlier ones of its subject; what is
    /// hidden depends on the encounter alone.
    pub fn sample<'e>(&self, encounter: &'e Encounter) -> Sample<'e> {
        self.question.sample(encounter, Hide::ByEncounter).with_history(&[], self.window())
    }

    /// The same with those of its subject before it that are seen, and the next one as the truth if the
    /// question is about it.
    pub fn sample_of<'e>(&self, sample: &'e OwnedSample) -> Sample<'e> {
        self.sample_hiding(sample, Hide::ByEncounter)
    }

    /// The same of an encounter with so much hidden, if its question hides something.
    pub fn sample_hiding<'e>(&self, sample: &'e OwnedSample, hide: Hide) -> Sample<'e> {
        let alone = self.question.sample(&sample.encounter, hide);
        alone.with_history(&sample.before, self.window()).with_next(sample.next.as_ref())
    }

    /// The samples of some encounters. If the model sees history, or is asked about the next encounter, those
    /// of a subject follow each other, the oldest first, and each sees those before it.
    pub fn samples<'e>(&self, encounters: &'e [Encounter]) -> Vec<Sample<'e>> {
        self.samples_of(encounters, |_, _| true)
    }

    /// The same of those encounters that are wanted, each told with its next one if the question is about
    /// that; all of them are history.
    pub(crate) fn samples_of<'e>(
        &self,
        encounters: &'e [Encounter],
        wanted: impl Fn(&Encounter, Option<&Encounter>) -> bool,
    ) -> Vec<Sample<'e>> {
        let of_subject = |subject: &'e [Encounter]| {
            let asked = (0..subject.len()).filter(|at| wanted(&subject[*at], self.next_in(subject, *at)));
            let (question, history) = (self.question, self.model().history());
            let sample = |at: usize| question.sample_among(subject, at, history, Hide::ByEncounter);
            asked.map(sample).collect::<Vec<_>>()
        };
        encounters.chunk_by(is_of_same_subject).flat_map(of_subject).collect()
    }

    /// Of each of some encounters, which are as for [`Predictor::samples`], whether it is a test.
    pub(crate) fn tests(&self, encounters: &[Encounter]) -> Vec<bool> {
        let of_subject = |subject: &[Encounter]| -> Vec<bool> {
            (0..subject.len()).map(|at| self.can_test(&subject[at], self.next_in(subject, at))).collect()
        };
        encounters.chunk_by(is_of_same_subject).flat_map(of_subject).collect()
    }

    /// The next one after an encounter of a subject, if the question is about it.
    fn next_in<'e>(&self, subject: &'e [Encounter], at: usize) -> Option<&'e Encounter> {
        self.question.next(&subject[at], &subject[at + 1..], self.model().history())
    }

    /// The next encounter after one, if the question is about it: the first of those that follow.
    pub(crate) fn next_of(
        &self,
        encounter: &Encounter,
        following: &mut impl Iterator<Item = Result<Encounter>>,
    ) -> Result<Option<Encounter>> {
        if !self.question.is_about_next() {
            return Ok(None);
        }
        for later in following {
            let later = later?;
            if !is_of_same_subject(encounter, &later) {
                return Ok(None);
            }
            if self.model().history().is_followed(encounter, &later) {
                return Ok(Some(later));
            }
        }
        Ok(None)
    }

    /// Whether the other encounters of a subject must be at hand to ask about one.
    fn needs_subject(&self) -> bool {
        self.question.needs_subject(self.model().history())
    }

    /// Whether the model sees earlier encounters.
    pub(crate) fn sees_history(&self) -> bool {
        self.window().is_some()
    }

    /// How far back the model looks; `None` without history.
    fn window(&self) -> Option<Window> {
        self.model().history().window()
    }

    /// A sample in numbers.
    pub fn example(&self, sample: &Sample<'_>) -> Example {
        self.encoding.example(sample)
    }

    /// What the model says of each sample: see [`Frozen::answers`].
    ///
    /// # Errors
    /// If an answer is not a number.
    ///
    /// # Panics
    /// If one cannot be asked about.
    pub fn answers(&self, samples: &[Sample<'_>]) -> Result<Vec<Vec<f32>>> {
        finite(self.map(samples, |model, examples, pool| model.answers(examples, pool)))
    }

    /// Refuses a model that has no vectors.
    ///
    /// # Errors
    /// If it is an explainer.
    pub fn check_vectors(&self) -> Result<()> {
        self.model().config().check_vectors()
    }

    /// The vector of the visit of each sample: see [`Frozen::visits`].
    ///
    /// # Errors
    /// If the model has none, or one is not of numbers.
    ///
    /// # Panics
    /// If one cannot be asked about.
    pub fn vectors(&self, samples: &[Sample<'_>]) -> Result<Vec<Vec<f32>>> {
        self.check_vectors()?;
        finite(self.map(samples, |model, examples, pool| model.visits(examples, pool)))
    }

    /// The vector of all that each sample sees of its subject: see [`Frozen::subjects`].
    ///
    /// # Errors
    /// As [`Predictor::vectors`].
    ///
    /// # Panics
    /// As [`Predictor::vectors`].
    pub fn subject_vectors(&self, samples: &[Sample<'_>]) -> Result<Vec<Vec<f32>>> {
        finite(self.map(samples, |model, examples, pool| model.subjects(examples, pool)))
    }

    /// What `ask` makes of some examples at a time, in the order of the samples.
    pub fn map<R: Send>(
        &self,
        samples: &[Sample<'_>],
        ask: impl Fn(&Frozen<f32>, &[Example], &mut Pool<f32>) -> Vec<R> + Sync,
    ) -> Vec<R> {
        let share = |samples: &[Sample<'_>]| {
            let examples = self.encoding.examples(samples);
            self.loaded.with_pool(|pool| ask(self.model(), &examples, pool))
        };
        // What one thread takes anyway is quicker taken here than by a thread that has to be woken.
        if samples.len() <= SHARE {
            return share(samples);
        }
        match self.window() {
            None => samples.par_chunks(SHARE).flat_map_iter(share).collect(),
            Some(_) => shares(samples).into_par_iter().flat_map_iter(share).collect(),
        }
    }
}

/// Samples in shares that a thread takes at a time. Those of a subject stay together, as long as they are not
/// too many, so that the visits that they share are computed once.
fn shares<'s, 'e>(samples: &'s [Sample<'e>]) -> Vec<&'s [Sample<'e>]> {
    let (mut shares, mut rest) = (Vec::new(), samples);
    while !rest.is_empty() {
        let same = |at: usize| {
            let [one, next] = [rest[at - 1], rest[at]];
            is_of_same_subject(one.encounter(), next.encounter()) || one.shares_history(&next)
        };
        let most = rest.len().min(SUBJECT_SHARE);
        let end = (SHARE..most).find(|at| !same(*at)).unwrap_or(most);
        let (share, left) = rest.split_at(end);
        shares.push(share);
        rest = left;
    }
    shares
}

/// Whether two encounters that follow each other are of one subject that is known.
pub(crate) fn is_of_same_subject(one: &Encounter, next: &Encounter) -> bool {
    one.subject == next.subject && !one.subject.as_str().is_empty()
}

/// Refuses the first encounter with a problem, by its index.
fn refuse(encounters: &[Encounter], problem: impl Fn(&Encounter) -> Option<String>) -> Result<()> {
    let refused = |(index, encounter): (usize, &Encounter)| {
        problem(encounter).map(|problem| Error::EncounterRefused { index, problem })
    };
    encounters.iter().enumerate().find_map(refused).map_or(Ok(()), Err)
}

/// Refuses numbers that are NaN or infinite.
fn finite(rows: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>> {
    match rows.iter().flatten().all(|number| number.is_finite()) {
        true => Ok(rows),
        false => Err(Error::NotFinite),
    }
}

/// Calls `each` with the samples of some encounters at a time, those that `wanted` wants, told as to
/// [`Predictor::samples_of`]; returns how many it did not. The next ones are read meanwhile.
pub(crate) fn in_rounds(
    predictor: &Predictor<'_>,
    reader: &mut (impl Iterator<Item = Result<Encounter>> + Send),
    wanted: impl Fn(&Encounter, Option<&Encounter>) -> bool + Sync,
    mut each: impl FnMut(&[Sample<'_>]) -> Result<()>,
) -> Result<u64> {
    let mut left_out = 0;
    std::thread::scope(|scope| {
        let (sender, rounds) = std::sync::mpsc::sync_channel::<Result<Vec<Encounter>>>(1);
        let wanted = &wanted;
        let reading = scope.spawn(move || {
            let mut rounds = Rounds::new(predictor, reader);
            loop {
                let round = rounds.next(wanted);
                let is_last = !matches!(&round, Ok(round) if !round.is_empty());
                // If nobody takes it, there was an error on the other side.
                if sender.send(round).is_err() || is_last {
                    return rounds.left_out;
                }
            }
        });
        for round in &rounds {
            let round = round?;
            let samples = predictor.samples_of(&round, wanted);
            left_out += (round.len() - samples.len()) as u64;
            if !samples.is_empty() {
                each(&samples)?;
            }
        }
        Ok(left_out + reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Encounters, some at a time.
pub(crate) struct Rounds<I: Iterator> {
    reader: Peekable<I>,
    /// Whether encounters that nobody asks about are kept, because it takes them to ask about others, and a
    /// subject's stay together.
    needs_subject: bool,
    /// Encounters that were not wanted and are not kept.
    left_out: u64,
}

impl<I: Iterator<Item = Result<Encounter>>> Rounds<I> {
    pub(crate) fn new(predictor: &Predictor<'_>, reader: I) -> Self {
        Rounds { reader: reader.peekable(), needs_subject: predictor.needs_subject(), left_out: 0 }
    }

    /// The next ones, none at the end; those that nobody wants are left out if nothing takes them.
    pub(crate) fn next(
        &mut self,
        wanted: impl Fn(&Encounter, Option<&Encounter>) -> bool,
    ) -> Result<Vec<Encounter>> {
        let mut round: Vec<Encounter> = Vec::new();
        while let Some(encounter) = self.reader.next() {
            let encounter = encounter?;
            match self.needs_subject || wanted(&encounter, None) {
                true => round.push(encounter),
                false => self.left_out += 1,
            }
            if round.len() >= ROUND && !self.is_amid_subject(&round) {
                break;
            }
        }
        Ok(round)
    }

    /// Whether the next encounter is of the subject of the last one.
    fn is_amid_subject(&mut self, round: &[Encounter]) -> bool {
        match (round.last(), self.reader.peek()) {
            (Some(last), Some(Ok(next))) => self.needs_subject && is_of_same_subject(last, next),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Aggregator, History};

    #[test]
    fn samples_that_share_a_history_stay_together() {
        let visit = || Encounter::new(PerKind::default());
        let (asked, earlier) = (vec![visit(); 2 * SHARE], [visit(), visit()]);
        let window = History { aggregator: Aggregator::Gru, ..History::default() }.window();
        let alone: Vec<Sample<'_>> = asked.iter().map(Sample::of).collect();
        assert_eq!(shares(&alone).len(), 2, "of subjects that are not known");
        let of_one: Vec<Sample<'_>> =
            alone.iter().map(|sample| sample.with_history(&earlier, window)).collect();
        assert_eq!(shares(&of_one).len(), 1);
    }
}
