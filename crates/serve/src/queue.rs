//! Who asks the model, and when.
//!
//! A few encounters are asked about where they arrived: that takes a tenth of a millisecond for each, and handing them to another thread and
//! back takes as long. Others go into a queue, and one thread asks about them on all cores. Batches make themselves there: while the
//! model works on some encounters, others queue up, and it takes them all at once when it is free. Nobody waits for company.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use gct::graph::Nodes;
use tokio::sync::oneshot;

use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::model::{Ask, Model, Told};
use crate::problem::Problem;
use crate::settings::Limits;
use crate::words::Question;

/// Nodes of all encounters of a request that is answered where it arrived: three encounters of the usual size, and less than a
/// millisecond for which its thread takes nothing else.
const HERE: usize = 128;

/// The questions of one request, and who waits for the answers.
struct Job {
    ask: Ask,
    questions: Vec<Question>,
    answer: oneshot::Sender<Result<Told, Problem>>,
}

/// Where requests wait, if they have to.
pub(crate) struct Queue {
    sender: SyncSender<Job>,
    model: Arc<Model>,
    metrics: Arc<Metrics>,
}

/// Whether a request is answered where it arrived. Explanations are long, and so is writing them down.
pub(crate) fn is_quick(ask: Ask, questions: &[Question]) -> bool {
    let nodes = questions.iter().map(|question| Nodes::of(&question.encounter).len()).sum::<usize>();
    ask != Ask::Explain && nodes <= HERE
}

impl Queue {
    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, ask: Ask, questions: Vec<Question>) -> Result<Told, Problem> {
        if is_quick(ask, &questions) {
            let told = tell(&self.model, &self.metrics, ask, &[&questions]);
            return told.into_iter().flatten().next().unwrap_or(Err(Problem::Broken));
        }
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

/// Asks the model. A panic is our mistake; it costs these requests and no others.
fn tell(
    model: &Model,
    metrics: &Metrics,
    ask: Ask,
    requests: &[&[Question]],
) -> Option<Vec<Result<Told, Problem>>> {
    let encounters: usize = requests.iter().map(|questions| questions.len()).sum();
    metrics.batches.observe(encounters as f64);
    metrics.encounters.inc_by(encounters as u64);
    catch_unwind(AssertUnwindSafe(|| model.tell(ask, requests))).ok()
}

/// Starts the thread that asks the model.
pub(crate) fn start(model: Model, limits: Limits, metrics: Arc<Metrics>) -> Result<(Queue, JoinHandle<()>)> {
    let (sender, jobs) = sync_channel(limits.queue);
    let queue = Queue { sender, model: Arc::new(model), metrics };
    let (model, metrics) = (queue.model.clone(), queue.metrics.clone());
    let work = move || Worker { model, metrics, most: limits.batch }.work(&jobs);
    let thread = std::thread::Builder::new().name("model".into()).spawn(work).map_err(Error::Threads)?;
    Ok((queue, thread))
}

struct Worker {
    model: Arc<Model>,
    metrics: Arc<Metrics>,
    most: usize,
}

impl Worker {
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
            for ask in [Ask::Predict, Ask::Explain, Ask::Embed] {
                let (now, later): (Vec<Job>, _) = batch.into_iter().partition(|job| job.ask == ask);
                batch = later;
                if !now.is_empty() {
                    self.answer(ask, now);
                }
            }
        }
    }

    fn answer(&self, ask: Ask, jobs: Vec<Job>) {
        let requests: Vec<&[Question]> = jobs.iter().map(|job| &job.questions[..]).collect();
        let told = tell(&self.model, &self.metrics, ask, &requests).unwrap_or_default();
        for (job, told) in jobs.into_iter().zip(told) {
            // Whoever does not wait any more does not want it.
            let _ = job.answer.send(told);
        }
    }
}
