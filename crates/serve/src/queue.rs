//! Who asks the model, and when.
//!
//! A few encounters are asked about where they arrived: that takes a tenth of a millisecond for each, and
//! handing them to another thread and back takes as long. Others go to one thread that asks about them on all
//! cores, in short turns. A turn has two halves, so that neither small nor large
//! requests can keep the other waiting for long:
//!
//! - Small requests, as many as fit. Batches make themselves: while the model works on some encounters,
//!   others queue up, and it takes them all at once when it is free. Nobody waits for company.
//! - Some encounters of the first large request. Only their text is kept until its next turn.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rayon::prelude::*;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::answer::{Envelope, Text};
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::model::{Ask, Model};
use crate::problem::Problem;
use crate::settings::Limits;
use crate::words::Question;

/// Nodes of all encounters of a request that is answered where it arrived: three encounters of the usual
/// size, and less than a millisecond for which its thread takes nothing else.
const HERE: usize = 128;

/// Encounters that one thread takes at a time, if they are not large.
const SHARE: usize = 16;

/// The cost of these.
const SHARE_COST: usize = 40_000;

/// Whether a request is answered where it arrived. Explanations are long, and so is writing them down.
fn is_quick(ask: Ask, questions: &[Question]) -> bool {
    ask != Ask::Explain && questions.iter().map(Question::all_nodes).sum::<usize>() <= HERE
}

/// What it costs to answer.
fn cost(ask: Ask, question: &Question) -> usize {
    match ask {
        Ask::Predict | Ask::Embed => question.cost(1, false),
        // All numbers of an explanation are written down, and it takes an answer for each code.
        Ask::Explain => question.cost(8, question.has_reasons()),
    }
}

/// The cost of all.
fn cost_of(ask: Ask, questions: &[Question]) -> usize {
    questions.iter().map(|question| cost(ask, question)).sum()
}

/// How many questions together cost no more than this, and one at least if there is one.
fn fitting<'a>(ask: Ask, questions: impl Iterator<Item = &'a Question>, most: usize) -> usize {
    let mut sum = 0;
    let fits = |(index, question): &(usize, &Question)| {
        sum += cost(ask, question);
        *index == 0 || sum <= most
    };
    questions.enumerate().take_while(fits).count()
}

/// What the model says to each question: a JSON object.
type Told = Vec<Result<Vec<u8>, Problem>>;

/// A slot of the queue, held while a request waits.
struct Slot {
    metrics: Arc<Metrics>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.metrics.waiting.dec();
    }
}

/// The questions of one request, and who waits for the answers.
struct Job {
    ask: Ask,
    questions: Vec<Question>,
    is_large: bool,
    /// How many questions were answered.
    answered: usize,
    text: Text,
    answer: oneshot::Sender<Result<Vec<u8>, Problem>>,
    /// It has one until it is begun.
    slot: Option<Slot>,
}

impl Job {
    /// The questions of its next turn.
    fn next(&self, most: usize) -> &[Question] {
        let rest = &self.questions[self.answered..];
        &rest[..fitting(self.ask, rest.iter(), most)]
    }

    /// Takes the answers to its next questions, or that there was a panic. Gives itself back if there are
    /// further questions.
    fn take(mut self, told: Option<Told>) -> Option<Self> {
        let told = told.unwrap_or_else(|| vec![Err(Problem::Broken)]);
        self.answered += told.len();
        let taken = self.text.extend(told);
        if taken.is_ok() && self.answered < self.questions.len() {
            return Some(self);
        }
        // Whoever does not wait any more does not want it.
        let _ = self.answer.send(taken.map(|()| self.text.finish()));
        None
    }
}

/// Where requests wait, if they have to.
pub(crate) struct Queue {
    sender: Sender<Job>,
    /// Slots for small and for large requests: the ones cannot take those of the others.
    slots: [Arc<Semaphore>; 2],
    worker: Worker,
    most_bytes: usize,
}

impl Queue {
    /// Asks, and waits for the answer: a JSON object for each question, in the envelope.
    pub(crate) async fn ask(
        &self,
        ask: Ask,
        questions: Vec<Question>,
        envelope: Envelope,
    ) -> Result<Vec<u8>, Problem> {
        let mut text = Text::new(envelope, self.most_bytes);
        if is_quick(ask, &questions) {
            text.extend(self.worker.tell_here(ask, &questions).ok_or(Problem::Broken)?)?;
            return Ok(text.finish());
        }
        let (answer, told) = oneshot::channel();
        let is_large = cost_of(ask, &questions) > self.worker.turn;
        let slot = Some(self.slot(is_large)?);
        let job = Job { ask, questions, is_large, answered: 0, text, answer, slot };
        self.sender.send(job).map_err(|_| Problem::Broken)?;
        told.await.unwrap_or(Err(Problem::Broken))
    }

    fn slot(&self, is_large: bool) -> Result<Slot, Problem> {
        let slots = self.slots[usize::from(is_large)].clone();
        let permit = slots.try_acquire_owned().map_err(|_| Problem::Busy)?;
        let metrics = self.worker.metrics.clone();
        metrics.waiting.inc();
        Ok(Slot { metrics, _permit: permit })
    }
}

/// Starts the thread that asks the model.
pub(crate) fn start(model: Model, limits: Limits, metrics: Arc<Metrics>) -> Result<(Queue, JoinHandle<()>)> {
    let (sender, jobs) = channel();
    let turn = limits.batch.saturating_mul(rayon::current_num_threads());
    let worker = Worker { model: Arc::new(model), metrics, turn };
    let slots = [(); 2].map(|()| Arc::new(Semaphore::new(limits.queue)));
    let queue = Queue { sender, slots, worker: worker.clone(), most_bytes: limits.answers };
    let work = move || worker.work(&jobs);
    let thread = std::thread::Builder::new().name("model".into()).spawn(work).map_err(Error::Threads)?;
    Ok((queue, thread))
}

#[derive(Clone)]
struct Worker {
    model: Arc<Model>,
    metrics: Arc<Metrics>,
    /// The cost of one half of a turn.
    turn: usize,
}

impl Worker {
    /// Answers until nobody can ask any more.
    fn work(&self, jobs: &Receiver<Job>) {
        let mut lanes = [VecDeque::new(), VecDeque::new()];
        loop {
            let first = if lanes.iter().all(VecDeque::is_empty) { Some(jobs.recv()) } else { None };
            let Ok(first) = first.transpose() else { return };
            for job in first.into_iter().chain(jobs.try_iter()) {
                lanes[usize::from(job.is_large)].push_back(job);
            }
            for lane in &mut lanes {
                // Some do not wait any more.
                lane.retain(|job: &Job| !job.answer.is_closed());
            }
            let [small, large] = &mut lanes;
            self.answer_small(small);
            self.answer_large(large);
        }
    }

    fn answer_small(&self, waiting: &mut VecDeque<Job>) {
        let costs = waiting.iter().scan(0, |sum, job| {
            *sum += cost_of(job.ask, &job.questions);
            Some(*sum)
        });
        let fitting = costs.take_while(|sum| *sum <= self.turn).count();
        let mut batch: Vec<Job> = waiting.drain(..fitting).collect();
        for ask in [Ask::Predict, Ask::Explain, Ask::Embed] {
            let (mut now, later): (Vec<Job>, _) = batch.into_iter().partition(|job| job.ask == ask);
            batch = later;
            if now.is_empty() {
                continue;
            }
            now.iter_mut().for_each(|job| job.slot = None);
            let questions: Vec<&Question> = now.iter().flat_map(|job| &job.questions).collect();
            let mut told = self.tell(ask, &questions).map(Vec::into_iter);
            for job in now {
                let own = job.questions.len();
                job.take(told.as_mut().map(|told| told.take(own).collect()));
            }
        }
    }

    fn answer_large(&self, waiting: &mut VecDeque<Job>) {
        let Some(mut job) = waiting.pop_front() else { return };
        job.slot = None;
        let questions: Vec<&Question> = job.next(self.turn).iter().collect();
        let told = self.tell(job.ask, &questions);
        if let Some(rest) = job.take(told) {
            waiting.push_front(rest);
        }
    }

    /// Asks the model on all cores.
    fn tell(&self, ask: Ask, questions: &[&Question]) -> Option<Told> {
        let shares = shares(ask, questions);
        self.watch(questions.len(), || match &shares[..] {
            // What one thread takes anyway is quicker taken here than by a thread that has to be woken.
            [share] => self.model.tell(ask, share),
            shares => shares.par_iter().flat_map_iter(|share| self.model.tell(ask, share)).collect(),
        })
    }

    /// Asks the model on this thread, which waits for no other.
    fn tell_here(&self, ask: Ask, questions: &[Question]) -> Option<Told> {
        let questions: Vec<&Question> = questions.iter().collect();
        let shares = questions.chunks(SHARE);
        self.watch(questions.len(), || shares.flat_map(|share| self.model.tell(ask, share)).collect())
    }

    /// Counts, and catches a panic: it is our mistake, and costs these requests and no others.
    fn watch(&self, encounters: usize, tell: impl FnOnce() -> Told) -> Option<Told> {
        if encounters > 0 {
            self.metrics.batches.observe(encounters as f64);
            self.metrics.encounters.inc_by(encounters as u64);
        }
        catch_unwind(AssertUnwindSafe(tell)).ok()
    }
}

/// Cuts questions into what threads take at a time.
fn shares<'a, 'q>(ask: Ask, mut questions: &'a [&'q Question]) -> Vec<&'a [&'q Question]> {
    let mut shares = Vec::new();
    while !questions.is_empty() {
        let count = fitting(ask, questions.iter().take(SHARE).copied(), SHARE_COST);
        let (share, rest) = questions.split_at(count);
        shares.push(share);
        questions = rest;
    }
    shares
}
