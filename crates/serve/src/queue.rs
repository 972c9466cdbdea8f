//! The queue, and the one thread that asks the model.
//!
//! Batches make themselves: while the model works on some encounters, others queue up, and it takes them all at once when it is
//! free. Nobody waits for company.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use gct::predict::{Answer, Explainer};
use gct::record::PerKind;
use gct::run::Run;
use gct::task::{Hide, Task};
use rayon::prelude::*;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::settings::Limits;
use crate::shape::{self, LayerName};
use crate::words::{Question, encounter};

/// How many connected pairs are told.
const PAIRS: usize = 30;

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Predict,
    Explain,
    Embed,
}

/// What the model says, for each question.
pub(crate) enum Told {
    Answers(Vec<Vec<shape::Answer>>),
    /// Without the codes that are not known.
    Explanations(Vec<shape::Explanation>),
    Vectors(Vec<Vec<f32>>),
}

/// The questions of one request, and who waits for the answers.
struct Job {
    ask: Ask,
    questions: Vec<Question>,
    answer: oneshot::Sender<Result<Told, Problem>>,
}

/// Where requests wait.
pub(crate) struct Queue {
    sender: SyncSender<Job>,
    metrics: Arc<Metrics>,
}

impl Queue {
    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, ask: Ask, questions: Vec<Question>) -> Result<Told, Problem> {
        let (answer, told) = oneshot::channel();
        // Before it is sent: the other side counts it out again.
        self.metrics.waiting.inc();
        if let Err(error) = self.sender.try_send(Job { ask, questions, answer }) {
            self.metrics.waiting.dec();
            return Err(match error {
                TrySendError::Full(_) => Problem::Busy,
                TrySendError::Disconnected(_) => Problem::Broken,
            });
        }
        // Nobody answers if there was a panic.
        told.await.unwrap_or(Err(Problem::Broken))
    }
}

/// Starts the thread that asks the model, once it has loaded it; also returns the layers that its explanations have. `columns` are where
/// encounters of the page have the labels of the task.
pub(crate) fn start(
    run: Arc<Run>,
    columns: Vec<usize>,
    limits: Limits,
    metrics: Arc<Metrics>,
) -> Result<(Queue, Vec<LayerName>, JoinHandle<()>)> {
    let (sender, jobs) = sync_channel(limits.queue);
    let (ready, loaded) = sync_channel(1);
    let queue = Queue { sender, metrics: metrics.clone() };
    let work = move || {
        let load = || -> gct::Result<(Explainer<'_>, Vec<LayerName>)> {
            let explainer = Explainer::new(&run, columns)?;
            let layers = layers(&run, &explainer)?;
            Ok((explainer, layers))
        };
        match load() {
            Ok((explainer, layers)) => {
                let _ = ready.send(Ok(layers));
                Worker { explainer, metrics, most: limits.batch }.work(&jobs);
            }
            Err(error) => {
                let _ = ready.send(Err(error));
            }
        }
    };
    let thread = std::thread::Builder::new().name("model".into()).spawn(work).map_err(Error::Threads)?;
    match loaded.recv() {
        Ok(layers) => Ok((queue, layers?, thread)),
        Err(_) => std::panic::resume_unwind(thread.join().expect_err("it said nothing because it panicked")),
    }
}

/// The layers of this run's explanations: those of an encounter with one diagnosis.
fn layers(run: &Run, explainer: &Explainer<'_>) -> gct::Result<Vec<LayerName>> {
    let diagnosis = (0..run.vocabulary().diagnosis.len().min(1) as u32).collect();
    let one = encounter(PerKind { diagnosis, treatment: Vec::new(), lab: Vec::new() });
    let explanation = explainer.explain(&one, Hide::ByEncounter)?;
    let layers = explanation.layers().into_iter();
    Ok(layers.map(|layer| LayerName { name: layer.name, kind: layer.part.into() }).collect())
}

struct Worker<'a> {
    explainer: Explainer<'a>,
    metrics: Arc<Metrics>,
    most: usize,
}

impl Worker<'_> {
    fn work(&self, jobs: &Receiver<Job>) {
        while let Ok(first) = jobs.recv() {
            let mut encounters = first.questions.len();
            let mut batch = vec![first];
            while encounters < self.most {
                let Ok(next) = jobs.try_recv() else { break };
                encounters += next.questions.len();
                batch.push(next);
            }
            self.metrics.waiting.dec_by(batch.len() as i64);
            // Some clients have gone away meanwhile.
            batch.retain(|job| !job.answer.is_closed());
            if batch.is_empty() {
                continue;
            }
            let encounters: usize = batch.iter().map(|job| job.questions.len()).sum();
            self.metrics.batches.observe(encounters as f64);
            self.metrics.encounters.inc_by(encounters as u64);
            for ask in [Ask::Predict, Ask::Explain, Ask::Embed] {
                let (now, later) = batch.into_iter().partition(|job| job.ask == ask);
                batch = later;
                // A panic is our mistake; it costs these requests and no others.
                let _ = catch_unwind(AssertUnwindSafe(|| self.answer(ask, now)));
            }
        }
    }

    fn answer(&self, ask: Ask, jobs: Vec<Job>) {
        let questions: Vec<&Question> = jobs.iter().flat_map(|job| &job.questions).collect();
        let sizes: Vec<usize> = jobs.iter().map(|job| job.questions.len()).collect();
        let told: Vec<Result<Told, Problem>> = match ask {
            Ask::Predict => {
                let answers = self.answers(&questions);
                of_each(answers, &sizes).map(|of_one| all(of_one).map(Told::Answers)).collect()
            }
            Ask::Explain => {
                let explanations = questions.par_iter().map(|question| self.explain(question)).collect();
                of_each(explanations, &sizes).map(|of_one| all(of_one).map(Told::Explanations)).collect()
            }
            Ask::Embed => {
                let vectors = self.vectors(&questions);
                of_each(vectors, &sizes).map(|of_one| all(of_one).map(Told::Vectors)).collect()
            }
        };
        for (job, told) in jobs.into_iter().zip(told) {
            // Whoever does not wait any more does not want it.
            let _ = job.answer.send(told);
        }
    }

    fn answers(&self, questions: &[&Question]) -> Vec<Result<Vec<shape::Answer>, Problem>> {
        let asker = self.explainer.asker();
        let logits = asker.map_examples(
            questions,
            |question| asker.example_hiding(&question.encounter, question.hide),
            |model, examples, pool| model.answers(examples, pool),
        );
        let answers = |(question, logits): (&&Question, &Vec<f32>)| {
            if !logits.iter().all(|logit| logit.is_finite()) {
                return Err(Problem::NoAnswer);
            }
            Ok(self.tell(self.explainer.answers(&question.encounter, question.hide, logits)))
        };
        questions.par_iter().zip(&logits).map(answers).collect()
    }

    fn vectors(&self, questions: &[&Question]) -> Vec<Result<Vec<f32>, Problem>> {
        let asker = self.explainer.asker();
        let vectors = asker.map_examples(
            questions,
            |question| asker.example_hiding(&question.encounter, question.hide),
            |model, examples, pool| model.visits(examples, pool),
        );
        let finite = |vector: Vec<f32>| match vector.iter().all(|number| number.is_finite()) {
            true => Ok(vector),
            false => Err(Problem::NoAnswer),
        };
        vectors.into_iter().map(finite).collect()
    }

    fn explain(&self, question: &Question) -> Result<shape::Explanation, Problem> {
        let Question { encounter, hide } = question;
        let mut explanation = self.explainer.explain(encounter, *hide).map_err(|_| Problem::NoAnswer)?;
        self.shorten(&mut explanation.answers);
        Ok(shape::Explanation::of(explanation, self.explainer.nodes(encounter)))
    }

    fn tell(&self, mut answers: Vec<Answer>) -> Vec<shape::Answer> {
        self.shorten(&mut answers);
        answers.into_iter().map(Into::into).collect()
    }

    /// An encounter may have thousands of pairs.
    fn shorten(&self, answers: &mut Vec<Answer>) {
        if *self.explainer.asker().task() == Task::GraphReconstruction {
            answers.truncate(PAIRS);
        }
    }
}

/// The results of each request again, in order.
fn of_each<T>(results: Vec<T>, sizes: &[usize]) -> impl Iterator<Item = Vec<T>> {
    let mut results = results.into_iter();
    sizes.iter().map(move |size| results.by_ref().take(*size).collect())
}

fn all<T>(results: Vec<Result<T, Problem>>) -> Result<Vec<T>, Problem> {
    results.into_iter().collect()
}
