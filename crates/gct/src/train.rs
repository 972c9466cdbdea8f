//! Training, from a dataset to a run folder.
//!
//! Everything that is random depends on the seed and the step, and a step gives the same bits with any number
//! of threads. So a run that was stopped or killed goes on from its last checkpoint and ends with the same
//! weights as one that never was.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::batch::{EmbeddingRows, Encoding, Example};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::evaluate;
use crate::explainer::{self, Account};
use crate::files::{Overwrite, write_own};
use crate::history::{History, Order};
use crate::infer::{Predictor, is_of_same_subject};
use crate::job::{Job, Stop};
use crate::metric::Scores;
use crate::model::{Config, Learner, Learning, Model, Moments, Observed, Strengths, TapeLearner};
use crate::prior::{Counter, Prior};
use crate::question::{Hide, Question};
use crate::record::{CodeKind, Encounter, PerKind};
use crate::run::checkpoint::{self, Loaded, Losses, State};
use crate::run::journal::Journal;
use crate::run::{self, Best, ClassWeight, Entry, Hasher, Init, InitEntry, Learned, Run, Settings};
use crate::sample::Sample;
use crate::split::{Split, SplitPart};

/// A loss above this has exploded.
const EXPLODED: f64 = 1e4;

/// Numbers that the weights of an explainer are fitted to at most, for each clue.
const FITTED: usize = 5_000_000;

/// Weights that a thread adds to their average at a time.
const PIECE: usize = 1 << 14;

/// What happens on the way.
#[derive(Debug)]
pub enum Event {
    /// So many encounters of the dataset have been read.
    Read(u64),
    /// It is drawn who causes what.
    Drawn(explainer::Progress),
    /// The first weights are those of another run.
    Began(Box<InitEntry>),
    /// Training begins, or goes on.
    Started {
        /// After so many steps.
        step: u64,
        /// Of so many.
        steps: u64,
        /// Encounters that each step learns from.
        batch: u64,
        /// Encounters to learn from.
        train: usize,
        /// Encounters to validate on.
        validation: usize,
        /// Encounters of both that have nothing to ask.
        left_out: usize,
        /// With history: what of it is seen in training.
        history: Option<HistoryCounts>,
    },
    /// A step was made.
    Step {
        /// Steps made.
        step: u64,
        /// The loss of its batch.
        loss: f64,
    },
    /// A validation was made.
    Validated(Entry),
}

/// What training sees of earlier encounters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    /// Earlier encounters, over all encounters to learn from.
    pub seen: u64,
    /// Encounters to learn from that have more of them than may be seen.
    pub cut: u64,
}

/// How a training ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Steps made.
    pub step: u64,
    /// The best validation.
    pub best: Option<Best>,
    /// Whether it ended before its last step because nothing got better.
    pub early: bool,
    /// Seconds of training.
    pub seconds: f64,
}

/// Makes a learner of a model and Adam's moments, which are zero before the first step.
pub type MakeLearner<'a> = &'a dyn Fn(Model<f32>, Moments<f32>) -> Box<dyn Learner<f32>>;

/// How a training is carried out. Nothing here is a setting of the run: a run can be resumed in another way.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// What makes the steps: the tape, which is the default, or tensors on another device.
    pub learner: MakeLearner<'a>,
    /// The longest time between checkpoints, which is what a kill can lose; there is one at every validation
    /// too.
    pub checkpoint_every: Duration,
}

impl Default for Execution<'_> {
    fn default() -> Self {
        Execution {
            learner: &|model, moments| Box::new(TapeLearner::resume(model, moments)),
            checkpoint_every: Duration::from_secs(120),
        }
    }
}

/// Trains a model on a dataset, into a new run folder. Once it is to stop, it does so after the step that it
/// is at; the fit of a logistic regression is given up, and [`resume`] begins it again.
///
/// # Errors
/// If a setting makes no sense, the data lack what the task or the model needs, the folder is there already,
/// the loss explodes, or the user stops it.
pub fn start(
    settings: Settings,
    dataset: &Dataset,
    folder: &Path,
    overwrite: Overwrite,
    execution: Execution<'_>,
    job: &Job<'_, Event>,
) -> Result<Outcome> {
    settings.check()?;
    settings.split.check_for(dataset)?;
    run::check_place(folder, overwrite)?;
    let columns = settings.task.columns(&dataset.manifest().labels)?;
    let rows = EmbeddingRows::new(PerKind::from_fn(|kind| dataset.vocabulary()[kind].len() as u32));
    // Before anything is read: a model that does not go with its head or the data is refused.
    let mut model =
        Model::with_history(&settings.model, &settings.history, &settings.head, rows, settings.seed)?;
    if settings.task.reads_edges() && dataset.manifest().with_edges == 0 {
        return Err(settings.task.no_answers("the dataset"));
    }
    model.check_data(dataset.manifest().with_edges > 0)?;
    let sizes = PerKind::from_fn(|kind| dataset.vocabulary()[kind].len());
    let mut noted = Noted {
        counter: Counter::new(sizes).for_cells(settings.prior.cells),
        hasher: Hasher::new(&dataset.manifest().identity(), dataset),
        learned: Learned::default(),
        causes: settings.explainer().map(|own| explainer::Counter::new(own, sizes, settings.seed)),
        init: Init::open(&settings, dataset)?,
    };
    let given = settings.prior.file.as_deref().map(|path| given_prior(path, dataset)).transpose()?;
    let data = Data::read(&settings, &columns, dataset, Some(&mut noted), job)?;
    let prior = match given {
        Some(prior) => prior.with_encounters(noted.counter.encounters()),
        None => noted.counter.finish(),
    };
    let prior = match noted.causes {
        Some(causes) => prior.with_account(account(causes, &settings, &data, job)?),
        None => prior,
    };
    let positives = data.positives(&settings)?;
    let init = noted.init.map(|init| init.give(&mut model, &settings, dataset.vocabulary())).transpose()?;
    init.iter().for_each(|init| job.tell(Event::Began(Box::new(init.clone()))));
    let noted = (noted.learned, init);
    let (run, _lock) = Run::create(folder, overwrite, settings, dataset, prior, noted)?;
    let moments = Moments::zeros(model.parameters().len());
    let begin = Loaded { model, moments, average: None, state: State::default() };
    Session::new(&run, &data, positives, begin, execution)?.train(execution.checkpoint_every, job)
}

/// Learns who causes what and, for a model that is asked about labels, which pair each of them is about.
fn account(
    causes: explainer::Counter,
    settings: &Settings,
    data: &Data,
    job: &Job<'_, Event>,
) -> Result<Account> {
    let mut account = causes.learn(&job.inner(|progress| Some(Event::Drawn(progress))))?;
    if let Config::Explainer(_) = settings.model {
        account.find_labels(&settings.task.labels(), data.train.encounters.iter())?;
    }
    Ok(account)
}

/// Conditional probabilities from a file, for the codes of a dataset.
fn given_prior(path: &Path, dataset: &Dataset) -> Result<Prior> {
    let (prior, unknown) = Prior::read(path, dataset.vocabulary())?;
    if unknown > 0 {
        log::warn!("{unknown} rows of {} have codes that the dataset does not have", path.display());
    }
    Ok(prior)
}

/// Resumes a run; `steps` makes it longer.
///
/// # Errors
/// As [`start`]; if the dataset is another one; if the last checkpoint is damaged.
pub fn resume(
    folder: &Path,
    dataset: &Dataset,
    steps: Option<u64>,
    execution: Execution<'_>,
    job: &Job<'_, Event>,
) -> Result<Outcome> {
    let mut run = Run::open(folder)?;
    run.check_dataset(dataset)?;
    let _lock = run.lock()?;
    run.check_checkpoints()?;
    let steps = steps.unwrap_or(run.settings().steps);
    let settings = Settings { steps, ..run.settings().clone() };
    settings.check()?;
    let rows = run.embedding_rows();
    let mut model =
        Model::with_history(&settings.model, &settings.history, &settings.head, rows, settings.seed)?;
    if !checkpoint::exists(folder)? {
        begin_again(&run, &settings, dataset, &mut model)?;
    }
    let loaded = checkpoint::load(&run, model)?;
    let state = &loaded.state;
    if steps < state.step {
        let problem = format!("it has made {} steps already, which is more than {steps}", state.step);
        return Err(Error::RunMismatch { path: folder.to_owned(), problem });
    }
    if is_over(&settings, state) && steps == run.settings().steps {
        checkpoint::remove_old(folder)?;
        return Ok(outcome(&settings, state));
    }
    let columns = settings.task.columns(&dataset.manifest().labels)?;
    let data = Data::read(&settings, &columns, dataset, None, job)?;
    let positives = data.positives(&settings)?;
    if steps != run.settings().steps {
        run.set_steps(steps)?;
    }
    Session::new(&run, &data, positives, loaded, execution)?.train(execution.checkpoint_every, job)
}

/// Gives a model the weights that a run began with, if it was killed before it kept them: before its first
/// step.
fn begin_again(run: &Run, settings: &Settings, dataset: &Dataset, model: &mut Model<f32>) -> Result<()> {
    let (Some(init), Some(began)) = (Init::open(settings, dataset)?, &run.manifest().init) else {
        return Ok(());
    };
    let found = init.give(model, settings, run.vocabulary())?;
    if found.weights_sha256 == began.weights_sha256 {
        return Ok(());
    }
    let problem = "it has other weights than when the training began".into();
    Err(Error::CannotBeginWith { run: found.path, problem })
}

fn is_over(settings: &Settings, state: &State) -> bool {
    state.step >= settings.last_step() || is_early(settings, state)
}

fn is_early(settings: &Settings, state: &State) -> bool {
    settings.patience > 0 && state.validations_since_best >= settings.patience
}

fn outcome(settings: &Settings, state: &State) -> Outcome {
    let early = state.step < settings.last_step() && is_early(settings, state);
    Outcome { step: state.step, best: state.best, early, seconds: state.seconds }
}

/// The encounters to learn from and to validate on. Their labels are those of the task.
struct Data {
    train: Part,
    validation: Part,
    left_out: usize,
    history: HistoryCounts,
}

/// The encounters of a part of the split, in the order of the dataset: those that are asked about and, where
/// it takes them to ask, the others of the same subjects.
#[derive(Default)]
struct Part {
    encounters: Vec<Encounter>,
    /// Which of them are asked about.
    asked: Vec<u32>,
    /// How many of them are asked about of each subject or, where subjects are not kept together, one by one.
    groups: Vec<u32>,
    /// What their samples see of earlier encounters.
    history: History,
    /// Whether a subject's encounters are kept together.
    keeps_subjects: bool,
}

impl Part {
    fn new(settings: &Settings) -> Self {
        let history = settings.history.clone();
        Part { keeps_subjects: settings.task.needs_subject(&history), history, ..Part::default() }
    }

    /// After the last encounter was added: finds those whose answer is known. Returns how many of the others
    /// there are.
    fn ask(&mut self, question: &Question) -> usize {
        let mut first = 0;
        let same = |one: &Encounter, next: &Encounter| self.keeps_subjects && is_of_same_subject(one, next);
        for subject in self.encounters.chunk_by(same) {
            let next = |at: usize| question.next(&subject[at], &subject[at + 1..], &self.history);
            let asked = (0..subject.len()).filter(|at| question.has_answer(&subject[*at], next(*at)));
            let before = self.asked.len();
            self.asked.extend(asked.map(|at| first + at as u32));
            self.groups.push((self.asked.len() - before) as u32);
            first += subject.len() as u32;
        }
        self.encounters.len() - self.asked.len()
    }

    /// How many encounters are asked about.
    fn len(&self) -> usize {
        self.asked.len()
    }

    /// The n-th encounter that is asked about, with those of its subject that it takes to ask.
    fn sample(&self, question: &Question, number: usize, hide: Hide) -> Sample<'_> {
        let at = self.asked[number] as usize;
        let (encounter, after) = (&self.encounters[at], &self.encounters[at + 1..]);
        let same = |other: &&Encounter| self.keeps_subjects && is_of_same_subject(other, encounter);
        let first = at - self.encounters[..at].iter().rev().take_while(same).count();
        let end = at + 1 + after.iter().take_while(same).count();
        question.sample_among(&self.encounters[first..end], at - first, &self.history, hide)
    }

    /// What is seen of history.
    fn history(&self, question: &Question) -> HistoryCounts {
        let mut counts = HistoryCounts::default();
        for number in 0..self.len() {
            let sample = self.sample(question, number, Hide::ByEncounter);
            counts.seen += sample.history().count() as u64;
            counts.cut += u64::from(sample.history_is_cut());
        }
        counts
    }
}

/// What a new run notes of the encounters, whether or not they have something to ask: counts of the training
/// split, and whom models learn from or are chosen by.
struct Noted {
    counter: Counter,
    hasher: Hasher,
    learned: Learned,
    /// Who causes what, if that is learned.
    causes: Option<explainer::Counter>,
    init: Option<Init>,
}

impl Noted {
    fn add(&mut self, encounter: &Encounter, part: SplitPart) {
        if part == SplitPart::Train {
            self.counter.add(encounter);
            if let Some(causes) = &mut self.causes {
                causes.add(encounter);
            }
        }
        if part != SplitPart::Test {
            self.learned.add(&self.hasher, encounter);
        }
        self.init.iter_mut().for_each(|init| init.note(encounter, part));
    }
}

impl Data {
    /// What a positive of each label counts in the loss; nothing if all count alike.
    fn positives(&self, settings: &Settings) -> Result<Vec<f64>> {
        settings.class_weight.positives(&settings.task.labels(), &self.train.encounters)
    }

    /// Reads them.
    fn read(
        settings: &Settings,
        columns: &[usize],
        dataset: &Dataset,
        mut noted: Option<&mut Noted>,
        job: &Job<'_, Event>,
    ) -> Result<Self> {
        dataset.check_hashes(&job.inner(|_| None))?;
        let split = Split::new(&settings.split, dataset)?;
        let part = || Part::new(settings);
        let mut data =
            Data { train: part(), validation: part(), left_out: 0, history: HistoryCounts::default() };
        let needs_edges = settings.model.needs_edges();
        for (read, encounter) in (1..).zip(dataset.encounters()?) {
            let mut encounter = encounter?;
            if u64::is_multiple_of(read, 1024) {
                job.advance(Event::Read(read))?;
            }
            let part = split.part(&encounter);
            if let Some(noted) = noted.as_deref_mut() {
                noted.add(&encounter, part);
            }
            let side = match part {
                SplitPart::Train if !split.is_in_share(&encounter, settings.train_share) => continue,
                SplitPart::Train => &mut data.train,
                SplitPart::Validation => &mut data.validation,
                SplitPart::Test => continue,
            };
            let usable = encounter.edges.is_some() || !needs_edges;
            encounter.labels = columns.iter().map(|column| encounter.labels[*column]).collect();
            match usable && (side.keeps_subjects || settings.task.has_answer(&encounter, None)) {
                true => side.encounters.push(encounter),
                false => data.left_out += 1,
            }
        }
        data.left_out += data.train.ask(&settings.task) + data.validation.ask(&settings.task);
        for (encounters, part) in [(&data.train, SplitPart::Train), (&data.validation, SplitPart::Validation)]
        {
            if encounters.len() == 0 {
                return Err(settings.task.no_answers(part.name()));
            }
        }
        data.history = data.train.history(&settings.task);
        if !settings.history.is_none() && data.history.seen == 0 {
            return Err(data.no_history(&settings.history));
        }
        Ok(data)
    }

    /// The error for encounters of which none sees another.
    fn no_history(&self, history: &History) -> Error {
        let lacks_times = self.train.encounters.iter().all(|encounter| encounter.start.is_none());
        match history.order {
            Order::Time if lacks_times => {
                let allowed = "recorded, because no encounter of the training split has a time";
                Error::setting("history.order", "time", allowed)
            }
            Order::Time | Order::Recorded => {
                let allowed =
                    "none, because no encounter of the training split has an earlier one of its subject";
                Error::setting("history.aggregator", history.aggregator.name(), allowed)
            }
        }
    }
}

/// What makes the steps of a training.
enum Steps {
    /// A learner, each from a batch.
    Batches(Box<dyn Learner<f32>>),
    /// Fits of logistic regression, each to all encounters.
    Fits(Box<Strengths>),
    /// The one fit of the few weights of an explainer.
    Weights(Box<(Model<f32>, Moments<f32>)>),
}

impl Steps {
    fn new(
        (model, moments): (Model<f32>, Moments<f32>),
        (question, data): (&Question, &Data),
        positives: &[f64],
        execution: Execution<'_>,
    ) -> Self {
        match model.config() {
            Config::Logistic(_) => {}
            Config::Explainer(_) => return Steps::Weights(Box::new((model, moments))),
            _ => return Steps::Batches((execution.learner)(model, moments)),
        }
        let (rows, train) = (model.embedding_rows(), &data.train);
        let all = (0..train.len()).map(|number| {
            let sample = train.sample(question, number, Hide::ByEncounter);
            let bag = sample.bag();
            (rows.of(bag.as_ref().unwrap_or(sample.encounter())), &sample.encounter().labels[..])
        });
        let observed = Observed::new(rows.count(), all);
        Steps::Fits(Box::new(Strengths::new(model, moments, observed, positives.to_vec())))
    }

    fn model(&self) -> &Model<f32> {
        match self {
            Steps::Batches(learner) => learner.model(),
            Steps::Fits(strengths) => strengths.model(),
            Steps::Weights(both) => &both.0,
        }
    }

    fn moments(&self) -> &Moments<f32> {
        match self {
            Steps::Batches(learner) => learner.moments(),
            Steps::Fits(strengths) => strengths.moments(),
            Steps::Weights(both) => &both.1,
        }
    }
}

/// A training under way.
struct Session<'a> {
    run: &'a Run,
    settings: &'a Settings,
    encoding: Encoding<'a>,
    data: &'a Data,
    steps: Steps,
    /// What a positive of each label counts in the loss; empty where all count alike.
    positives: Vec<f64>,
    /// The average of its weights, if that is what is validated and saved.
    average: Option<Average>,
    state: State,
    /// The step of the last checkpoint.
    kept: u64,
    journal: Journal,
    order: Shuffled,
    clock: Clock,
}

/// Times of this sitting.
struct Clock {
    start: Instant,
    /// Seconds of earlier sittings.
    before: f64,
    /// When the last validation ended, and the step of it.
    lap: (Instant, u64),
    /// When the last checkpoint was written.
    kept: Instant,
}

impl<'a> Session<'a> {
    fn new(
        run: &'a Run,
        data: &'a Data,
        positives: Vec<f64>,
        begin: Loaded,
        execution: Execution<'_>,
    ) -> Result<Self> {
        let (settings, now) = (run.settings(), Instant::now());
        let Loaded { model, moments, average, state } = begin;
        let average = (settings.average > 0.0).then(|| Average {
            decay: settings.average,
            // Before the first step, when it is the average of nothing, any values do.
            values: average.unwrap_or_else(|| model.weights().values().to_vec()),
        });
        let steps = Steps::new((model, moments), (&settings.task, data), &positives, execution);
        Ok(Session {
            run,
            settings,
            encoding: run.encoding(),
            data,
            steps,
            positives,
            average,
            kept: state.step,
            journal: Journal::open(run.path(), state.journal)?,
            order: Shuffled::new(settings.seed, &data.train.groups),
            clock: Clock { start: now, before: state.seconds, lap: (now, state.step), kept: now },
            state,
        })
    }

    fn train(mut self, checkpoint_every: Duration, job: &Job<'_, Event>) -> Result<Outcome> {
        let (settings, steps) = (self.settings, self.settings.last_step());
        self.journal.note(&format!(
            "{} of {} on {} encounters, from step {} to {steps}",
            settings.task,
            settings.model.name(),
            self.data.train.len(),
            self.state.step
        ))?;
        self.note_weights()?;
        if self.state.step == 0 {
            // From now on, a run without a checkpoint is one that has lost it.
            self.checkpoint()?;
        }
        job.tell(Event::Started {
            step: self.state.step,
            steps,
            batch: self.encounters_per_step(),
            train: self.data.train.len(),
            validation: self.data.validation.len(),
            left_out: self.data.left_out,
            history: (!settings.history.is_none()).then_some(self.data.history),
        });
        // Stopped there, and now told to end there.
        if self.state.step == steps && self.state.losses.steps > 0 {
            job.tell(Event::Validated(self.validate_and_keep()?));
        }
        while !is_over(settings, &self.state) {
            match self.step(job.stop()) {
                // In the midst of a fit, which is as if it had not begun.
                Err(Error::Interrupted) => {}
                loss => {
                    job.tell(Event::Step { step: self.state.step, loss: loss? });
                    if settings.validates_after(self.state.step) {
                        job.tell(Event::Validated(self.validate_and_keep()?));
                    }
                }
            }
            if job.stop().is_requested() && !is_over(settings, &self.state) {
                self.checkpoint()?;
                self.journal.note(&format!("stopped at step {}", self.state.step))?;
                return Err(Error::Stopped { step: self.state.step, path: self.run.path().to_owned() });
            }
            if self.clock.kept.elapsed() >= checkpoint_every && self.kept < self.state.step {
                self.checkpoint()?;
            }
        }
        self.journal.note(&format!("ended at step {}", self.state.step))?;
        Ok(outcome(settings, &self.state))
    }

    fn validate_and_keep(&mut self) -> Result<Entry> {
        let entry = self.validate()?;
        self.checkpoint()?;
        Ok(entry)
    }

    /// Writes down what positives count, where that depends on the data.
    fn note_weights(&self) -> Result<()> {
        if self.settings.class_weight != ClassWeight::Balanced {
            return Ok(());
        }
        for (label, weight) in self.settings.task.labels().into_iter().zip(&self.positives) {
            self.journal.note(&format!("positives of {label} count {weight}"))?;
        }
        Ok(())
    }

    /// Learns from the next batch, or fits the next regression, which alone can be interrupted.
    fn step(&mut self, stop: &Stop) -> Result<f64> {
        let (settings, step) = (self.settings, self.state.step);
        let outcome = match &mut self.steps {
            Steps::Fits(strengths) => strengths.step(step, stop)?,
            Steps::Weights(both) => both.0.fit_explainer(&validation(settings, self.data, self.encoding)),
            Steps::Batches(learner) => {
                let examples = batch(settings, self.data, self.encoding, &mut self.order, step);
                let learning = Learning {
                    rate: settings.rate(step),
                    clip: (settings.clip > 0.0).then_some(settings.clip),
                    weight_decay: settings.weight_decay,
                    label_smoothing: settings.label_smoothing,
                    positives: &self.positives,
                    dropout_key: mixed(settings.seed, Purpose::Dropping, step) as u32,
                };
                learner.step(&examples, learning)
            }
        };
        if !outcome.prediction.is_finite()
            || !outcome.regularizer.is_finite()
            || outcome.prediction > EXPLODED
        {
            return Err(self.diverged(step + 1, outcome.prediction)?);
        }
        self.state.step += 1;
        if let Some(average) = &mut self.average {
            average.add(self.state.step, self.steps.model().weights().values());
        }
        self.state.losses.prediction += outcome.prediction;
        self.state.losses.regularizer += outcome.regularizer;
        self.state.losses.steps += 1;
        Ok(outcome.prediction)
    }

    /// Encounters that a step learns from.
    fn encounters_per_step(&self) -> u64 {
        match self.steps {
            Steps::Batches(_) => self.settings.batch as u64,
            Steps::Fits(_) | Steps::Weights(_) => self.data.train.len() as u64,
        }
    }

    fn diverged(&self, step: u64, loss: f64) -> Result<Error> {
        let error = Error::Diverged { step, loss, kept: self.kept };
        self.journal.note(&error.to_string())?;
        Ok(error)
    }

    /// Whether every weight is a number: a step can break them after its loss was computed.
    fn check_weights(&self) -> Result<()> {
        match self.steps.model().weights().values().iter().all(|weight| weight.is_finite()) {
            true => Ok(()),
            false => Err(self.diverged(self.state.step, f64::NAN)?),
        }
    }

    /// Gives `look` the model that is validated and saved: that of the last step, or the average.
    fn with_model<R>(&self, look: impl FnOnce(&Model<f32>) -> R) -> R {
        let last = self.steps.model();
        match &self.average {
            Some(average) => look(&last.with_weights(average.values.clone())),
            None => look(last),
        }
    }

    /// Measures the model on the validation split, and keeps it if it is the best.
    fn validate(&mut self) -> Result<Entry> {
        self.check_weights()?;
        let settings = self.settings;
        let (now, (lap, lap_step)) = (Instant::now(), self.clock.lap);
        let learned = (self.state.step - lap_step) * self.encounters_per_step();
        let scores = match self.scores() {
            Err(Error::NotFinite) => return Err(self.diverged(self.state.step, f64::NAN)?),
            scores => scores?,
        };
        let value = scores.value(settings.task.chosen_by());
        let best = value.is_some_and(|value| self.state.best.is_none_or(|best| value > best.value));
        match value.filter(|_| best) {
            Some(value) => {
                self.save_weights(run::BEST)?;
                self.state.best = Some(Best { step: self.state.step, value });
                self.state.validations_since_best = 0;
            }
            None => self.state.validations_since_best += 1,
        }
        let Losses { prediction, regularizer, steps } = std::mem::take(&mut self.state.losses);
        let entry = Entry {
            step: self.state.step,
            epoch: (self.state.step * self.encounters_per_step()) as f64 / self.data.train.len() as f64,
            learning_rate: settings.rate(self.state.step - 1),
            train_loss: prediction / steps as f64,
            train_regularizer: regularizer / steps as f64,
            validation_loss: scores.value("log_loss"),
            metric: settings.task.chosen_by().into(),
            value,
            auroc: scores.value("auroc"),
            best,
            encounters_per_second: learned as f64 / (now - lap).as_secs_f64(),
            seconds: self.clock.before + self.clock.start.elapsed().as_secs_f64(),
        };
        self.journal.add(&entry)?;
        self.clock.lap = (Instant::now(), self.state.step);
        Ok(entry)
    }

    fn scores(&self) -> Result<Scores> {
        let predictor = |model: &Model<f32>| Predictor::new(model, &self.settings.task, self.encoding);
        let predictor = self.with_model(predictor);
        evaluate::validate(&predictor, &self.data.validation.encounters)
    }

    fn save_weights(&self, name: &str) -> Result<()> {
        let path = self.run.path().join(name);
        let identity = self.run.identity().to_json();
        write_own(&path, &self.with_model(|model| model.to_file(&path, Some(identity)))?)
    }

    /// Writes down where it stands.
    fn checkpoint(&mut self) -> Result<()> {
        self.check_weights()?;
        self.state.journal = self.journal.lengths()?;
        self.state.seconds = self.clock.before + self.clock.start.elapsed().as_secs_f64();
        if self.state.step > 0 {
            self.save_weights(run::LAST)?;
        }
        let average = self.average.as_ref().map(|average| &average.values[..]);
        checkpoint::save(self.run, (self.steps.model(), self.steps.moments()), average, &self.state)?;
        (self.kept, self.clock.kept) = (self.state.step, Instant::now());
        Ok(())
    }
}

/// The examples of a step, counted from 0.
fn batch(
    settings: &Settings,
    data: &Data,
    encoding: Encoding<'_>,
    order: &mut Shuffled,
    step: u64,
) -> Vec<Example> {
    let first = step * settings.batch as u64;
    let sample = |number: u64| {
        let hide = Hide::ByKey(mixed(settings.seed, Purpose::Hiding, number));
        data.train.sample(&settings.task, order.at(number), hide).counted()
    };
    let samples: Vec<Sample<'_>> = (first..first + settings.batch as u64).map(sample).collect();
    // Samples of a subject share visits.
    let share = |one: &Sample<'_>, next: &Sample<'_>| {
        one.has_history() && is_of_same_subject(one.encounter(), next.encounter())
    };
    let diagnoses = encoding.rows.codes(CodeKind::Diagnosis);
    let examples = |samples: &[Sample<'_>]| -> Vec<Example> {
        let examples = encoding.examples(samples).into_iter().zip(samples);
        examples.map(|(example, sample)| settings.task.with_targets(example, sample, diagnoses)).collect()
    };
    samples.par_chunk_by(share).flat_map_iter(examples).collect()
}

/// The examples that the few weights of an explainer are fitted to.
fn validation(settings: &Settings, data: &Data, encoding: Encoding<'_>) -> Vec<Example> {
    let diagnoses = encoding.rows.codes(CodeKind::Diagnosis);
    // Each has a number for every clue of every diagnosis.
    let most = (FITTED / diagnoses.max(1)).max(100);
    let examples = (0..data.validation.len().min(most))
        .into_par_iter()
        .map(|number| encoding.example(&data.validation.sample(&settings.task, number, Hide::ByEncounter)));
    examples.collect()
}

/// An exponential moving average of the weights after each step. It begins with the first step and not with
/// the random weights before it, so it is an average of learned weights from the beginning.
struct Average {
    /// How much less a step counts than the one after it.
    decay: f64,
    values: Vec<f32>,
}

impl Average {
    /// Adds the weights after a step, counted from 1.
    fn add(&mut self, step: u64, weights: &[f32]) {
        // Step i of n counts decay^(n-i), divided by the sum of all of these: this is the share of the last.
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        let share = ((1.0 - self.decay) / (1.0 - self.decay.powi(step))) as f32;
        let pieces = self.values.par_chunks_mut(PIECE).zip(weights.par_chunks(PIECE));
        pieces.for_each(|(values, weights)| {
            values.iter_mut().zip(weights).for_each(|(value, weight)| *value += share * (weight - *value));
        });
    }
}

/// The order in which encounters are learned from: all of them once, in random order, then all of them again
/// in another. With history those of a subject follow each other, so that what they see is computed once.
struct Shuffled {
    seed: u64,
    epoch: u64,
    /// The encounters of each group, which stay together.
    groups: Vec<Range<u32>>,
    indices: Vec<u32>,
}

impl Shuffled {
    /// For groups of these sizes.
    fn new(seed: u64, sizes: &[u32]) -> Self {
        let mut end = 0;
        let group = |size: &u32| {
            end += size;
            end - size..end
        };
        let groups = sizes.iter().map(group).collect();
        let mut order = Shuffled { seed, epoch: 0, groups, indices: Vec::new() };
        order.shuffle(0);
        order
    }

    /// Index of the n-th encounter to learn from.
    fn at(&mut self, number: u64) -> usize {
        let encounters = self.indices.len() as u64;
        let epoch = number / encounters;
        if epoch != self.epoch {
            self.shuffle(epoch);
        }
        self.indices[(number % encounters) as usize] as usize
    }

    fn shuffle(&mut self, epoch: u64) {
        self.epoch = epoch;
        // From the same beginning each time, so that an epoch does not depend on the one before.
        let mut groups: Vec<u32> = (0..self.groups.len() as u32).collect();
        let key = mixed(self.seed, Purpose::Ordering, epoch);
        groups.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(key));
        self.indices.clear();
        self.indices.extend(groups.iter().flat_map(|group| self.groups[*group as usize].clone()));
    }
}

/// What a random number is for, so that none is used twice.
#[derive(Clone, Copy)]
enum Purpose {
    Ordering = 1,
    Dropping = 2,
    Hiding = 3,
}

/// A number that looks random, by seed, purpose and position (the finisher of SplitMix64 after each).
fn mixed(seed: u64, purpose: Purpose, position: u64) -> u64 {
    [purpose as u64, position].into_iter().fold(finish(seed), |state, part| finish(state.wrapping_add(part)))
}

fn finish(state: u64) -> u64 {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_has_every_encounter_once_in_another_order() {
        let one_by_one = [1; 50];
        let mut order = Shuffled::new(7, &one_by_one);
        let epochs: Vec<Vec<usize>> =
            (0..3).map(|epoch| (0..50).map(|number| order.at(epoch * 50 + number)).collect()).collect();
        for epoch in &epochs {
            let mut sorted = epoch.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..50).collect::<Vec<_>>());
        }
        assert_ne!(epochs[0], epochs[1]);
        // From the middle, as after a stop.
        assert_eq!(Shuffled::new(7, &one_by_one).at(50 + 33), epochs[1][33]);
        let orders = [7, 8].map(|seed| Shuffled::new(seed, &one_by_one).indices);
        assert_ne!(orders[0], orders[1], "another seed");
    }

    #[test]
    fn encounters_of_a_subject_follow_each_other() {
        let mut order = Shuffled::new(7, &[2, 0, 3, 1]);
        for epoch in 0..5 {
            let indices: Vec<usize> = (0..6).map(|number| order.at(epoch * 6 + number)).collect();
            for group in [&[0, 1][..], &[2, 3, 4], &[5]] {
                assert!(indices.windows(group.len()).any(|window| window == group), "{indices:?}");
            }
        }
    }

    #[test]
    fn an_average_counts_later_steps_more_and_the_first_weights_not_at_all() {
        let mut average = Average { decay: 0.5, values: vec![100.0] };
        let found: Vec<f32> = [(1, 7.0), (2, 1.0), (3, 4.0)]
            .map(|(step, weight)| {
                average.add(step, &[weight]);
                average.values[0]
            })
            .to_vec();
        // 7; (7/2 + 1) / (3/2); (7/4 + 1/2 + 4) / (7/4).
        for (found, expected) in found.into_iter().zip([7.0, 3.0, 25.0 / 7.0]) {
            assert!((found - expected).abs() < 1e-6, "{found} {expected}");
        }
    }

    #[test]
    fn numbers_differ_by_seed_purpose_and_position() {
        let mut all: Vec<u64> = (0..10)
            .flat_map(|seed| (0..10).map(move |position| (seed, position)))
            .flat_map(|(seed, position)| {
                [Purpose::Ordering, Purpose::Dropping, Purpose::Hiding]
                    .map(|purpose| mixed(seed, purpose, position))
            })
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 300);
    }
}
