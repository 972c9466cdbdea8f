//! How good a model is: figures with intervals, and how near its attention is to the true structure (Section 4.6).

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::graph;
use crate::infer::{Askable, Asker, LOOKED_AT, Overlap, Reader, TestSet, Unseen, in_rounds};
use crate::metric::{self, Bootstrap, Figure, Means, Predictions, Scored, SubjectRanking};
use crate::model::{Frozen, Model, normalized_adjacency};
use crate::record::{Encounter, SubjectId};
use crate::run::Run;
use crate::task::{Selection, Task};

/// How a model does on some encounters.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// On which part.
    pub split: &'static str,
    /// On how many encounters.
    pub encounters: u64,
    /// How many had nothing to ask.
    pub left_out: u64,
    /// Codes that the run does not know.
    pub unseen: Unseen,
    /// Encounters of other data whose subjects the run learned from.
    pub overlap: Overlap,
    /// The figures.
    pub scores: Scores,
    /// The figures of each label, if there are several.
    pub labels: Vec<(String, Scores)>,
    /// How near attention is to the truth, where both are known.
    pub structure: Option<Structure>,
}

/// Figures by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores(pub Vec<(&'static str, Figure)>);

impl Scores {
    /// One of them, if it is there and defined.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(of, _)| *of == name).and_then(|(_, figure)| figure.value)
    }

    /// The one by which models are chosen.
    pub fn selection(&self, selection: Selection) -> Option<f64> {
        self.value(selection.name())
    }
}

/// Attention beside the normalised true adjacency, D^-1 (A + I), in nats: for each block the mean over encounters of the mean over
/// nodes. Logarithms are of numbers to which 1e-12 was added.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Structure {
    /// KL(attention || truth): what fits the paper's table.
    pub kl_attention_truth: PerBlock,
    /// KL(truth || attention): what the paper's text says.
    pub kl_truth_attention: PerBlock,
    /// The entropy of attention.
    pub entropy: PerBlock,
    /// How well attention alone ranks the true edges: average precision over all pairs, each with the mean of both directions, of
    /// the first [`RANKED`] encounters.
    pub edges_aucpr: PerBlock,
    /// On how many encounters.
    pub encounters: u64,
}

/// Encounters whose pairs attention ranks: each pair is kept until all are sorted, for each block, and more would hardly change it.
pub const RANKED: u64 = 5000;

/// A figure for each block, and the mean over blocks, where they are defined.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PerBlock {
    /// From the first block to the last.
    pub blocks: Vec<Option<f64>>,
    /// The mean.
    pub mean: Option<f64>,
}

impl PerBlock {
    fn new(blocks: Vec<Option<f64>>) -> Self {
        let sum: Option<f64> = blocks.iter().copied().sum();
        PerBlock { mean: sum.map(|sum| sum / blocks.len() as f64), blocks }
    }
}

/// Evaluates the best model of a run; `progress` hears now and then how many encounters are done, and can end it with an error.
///
/// # Errors
/// If the run has no model, the dataset does not go with it, lacks what the task asks for, or cannot be read.
pub fn run(
    run: &Run,
    dataset: &Dataset,
    test_set: impl Into<TestSet>,
    bootstrap: Bootstrap,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<Evaluation> {
    let model = run.model()?;
    with(run, (&model, Askable::new(&model)), dataset, test_set.into(), bootstrap, progress)
}

/// The same with a model that was loaded before.
pub(crate) fn with(
    run: &Run,
    (model, asked): (&Model<f32>, Askable),
    dataset: &Dataset,
    TestSet { which, training }: TestSet,
    bootstrap: Bootstrap,
    progress: &dyn Fn(u64) -> Result<()>,
) -> Result<Evaluation> {
    let task = &run.settings().task;
    model.check_data(dataset.manifest().with_edges > 0)?;
    let columns = task.columns(&dataset.manifest().labels)?;
    let asker = Asker::of(asked, run.view());
    let mut reader = Reader::new(run, dataset, which)?.testing(run, dataset, training)?;
    let mut tally = Tally::new(task, columns.clone());
    let (mut done, mut structures) = (0, Structures::default());
    let left_out = in_rounds(
        &mut reader,
        |encounter| task.asks(encounter, &columns) && asker.can_ask(encounter),
        |encounters| {
            tally.add_all(encounters, &asker)?;
            encounters.chunks(LOOKED_AT).for_each(|some| structures.add(some, &asker));
            done += encounters.len() as u64;
            progress(done)
        },
    )?;
    let overlap = reader.overlap()?;
    if done == 0 {
        return Err(nothing_to_ask(task, which.name()));
    }
    Ok(Evaluation {
        split: which.name(),
        encounters: done,
        left_out,
        unseen: reader.unseen(),
        overlap,
        labels: tally.label_scores(bootstrap),
        scores: tally.scores(bootstrap),
        structure: structures.finish(),
    })
}

/// The error for a part of which nothing can be asked.
pub(crate) fn nothing_to_ask(task: &Task, part: &'static str) -> Error {
    let missing = match task {
        Task::GraphReconstruction => "known edges",
        Task::MaskedDiagnosis => "a diagnosis",
        _ => "a known label",
    };
    Error::NothingToAsk { task: task.to_string(), part, missing }
}

/// How a model that is being trained does on encounters that are in memory.
pub(crate) fn validate(
    asker: &Asker<'_>,
    task: &Task,
    columns: &[usize],
    encounters: &[Encounter],
) -> Result<Scores> {
    let mut tally = Tally::new(task, columns.to_vec());
    tally.add_all(encounters, asker)?;
    Ok(tally.scores(Bootstrap { replicates: 0, seed: 0 }))
}

/// What models said, and whether it was so.
struct Tally {
    columns: Vec<usize>,
    names: Vec<String>,
    subjects: FxHashMap<SubjectId, u32>,
    /// Of all labels together; for several labels, of each one too.
    ranked: Vec<(SubjectRanking, Predictions)>,
    /// For one answer among many.
    right: Means,
    loss: Means,
}

impl Tally {
    fn new(task: &Task, columns: Vec<usize>) -> Self {
        let names = task.labels();
        let several = if names.len() > 1 { names.len() } else { 0 };
        Tally {
            columns,
            ranked: (0..=several).map(|_| Default::default()).collect(),
            names,
            subjects: FxHashMap::default(),
            right: Means::default(),
            loss: Means::default(),
        }
    }

    fn add_all(&mut self, encounters: &[Encounter], asker: &Asker<'_>) -> Result<()> {
        for some in encounters.chunks(asker.at_once()) {
            let answers = asker.answers(some)?;
            some.iter().zip(answers).for_each(|(encounter, answer)| self.add(encounter, asker, &answer));
        }
        Ok(())
    }

    fn add(&mut self, encounter: &Encounter, asker: &Asker<'_>, answer: &[f32]) {
        let next = self.subjects.len() as u32;
        let subject = *self.subjects.entry(encounter.subject.clone()).or_insert(next);
        match asker.task() {
            Task::MaskedDiagnosis => {
                let truth = asker.hidden(encounter) as usize;
                self.right.add(f64::from(u8::from(is_largest(answer, truth))), subject);
                self.loss.add(class_loss(answer, truth), subject);
            }
            Task::GraphReconstruction => {
                let nodes = graph::Nodes::of(encounter).len();
                let adjacency = graph::adjacency(encounter).unwrap_or_default();
                for ((i, j), logit) in pairs(nodes).zip(answer) {
                    self.score(0, *logit, adjacency[i * nodes + j], subject);
                }
            }
            _ => {
                for (label, (column, logit)) in self.columns.clone().iter().zip(answer).enumerate() {
                    let Some(truth) = encounter.labels[*column] else { continue };
                    self.score(0, *logit, truth, subject);
                    if self.ranked.len() > 1 {
                        self.score(1 + label, *logit, truth, subject);
                    }
                }
            }
        }
    }

    fn score(&mut self, place: usize, score: f32, positive: bool, subject: u32) {
        let (ranking, predictions) = &mut self.ranked[place];
        ranking.add(Scored { score, positive, subject });
        predictions.add(score.into(), positive, subject);
    }

    /// Of each label, if there are several. Takes them out.
    fn label_scores(&mut self, bootstrap: Bootstrap) -> Vec<(String, Scores)> {
        let labels = self.ranked.split_off(1);
        self.names
            .iter()
            .cloned()
            .zip(labels.into_iter().map(|ranked| ranked_scores(ranked, bootstrap)))
            .collect()
    }

    fn scores(mut self, bootstrap: Bootstrap) -> Scores {
        let accuracy = self.right.figure(&bootstrap);
        if accuracy.value.is_some() {
            return Scores(vec![("accuracy", accuracy), ("log_loss", self.loss.figure(&bootstrap))]);
        }
        ranked_scores(self.ranked.swap_remove(0), bootstrap)
    }
}

fn ranked_scores((ranking, predictions): (SubjectRanking, Predictions), bootstrap: Bootstrap) -> Scores {
    let (areas, others) = (ranking.figures(&bootstrap), predictions.figures(&bootstrap));
    Scores(vec![
        ("aucpr", areas.aucpr),
        ("auroc", areas.auroc),
        ("accuracy", others.accuracy),
        ("log_loss", others.log_loss),
        ("brier_score", others.brier_score),
        ("calibration_error", others.calibration_error),
    ])
}

/// The pairs of so many nodes, in the order of [`Frozen::answers`].
pub(crate) fn pairs(nodes: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..nodes).flat_map(move |i| (i + 1..nodes).map(move |j| (i, j)))
}

/// Whether one is larger than all others; of equal ones the first counts.
fn is_largest(logits: &[f32], place: usize) -> bool {
    let beats = |(other, logit): (usize, &f32)| {
        other == place || logits[place] > *logit || (logits[place] == *logit && place < other)
    };
    logits.iter().enumerate().all(beats)
}

/// Cross entropy of a class and the logits of all classes.
pub(crate) fn class_loss(logits: &[f32], class: usize) -> f64 {
    let largest = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - largest).exp()).sum();
    sum.ln() + largest - f64::from(logits[class])
}

/// Sums for [`Structure`], over encounters.
#[derive(Default)]
struct Structures {
    encounters: u64,
    /// For each block: the two divergences and the entropy.
    sums: Vec<[f64; 3]>,
    rankings: Vec<metric::Ranking>,
}

/// The same for one encounter: for each block, and for each pair of nodes.
struct Measured {
    sums: Vec<[f64; 3]>,
    scores: Vec<Vec<f32>>,
    edges: Vec<bool>,
}

impl Structures {
    fn add(&mut self, encounters: &[Encounter], asker: &Asker<'_>) {
        let measured: Vec<Option<Measured>> =
            encounters.par_iter().map(|encounter| measure(encounter, asker)).collect();
        for Measured { sums, scores, edges } in measured.into_iter().flatten() {
            self.encounters += 1;
            self.sums.resize(sums.len(), [0.0; 3]);
            self.rankings.resize_with(scores.len(), metric::Ranking::default);
            for (total, one) in self.sums.iter_mut().flatten().zip(sums.iter().flatten()) {
                *total += one;
            }
            for (ranking, scores) in
                self.rankings.iter_mut().zip(&scores).take_while(|_| self.encounters <= RANKED)
            {
                scores.iter().zip(&edges).for_each(|(score, edge)| ranking.add(*score, *edge));
            }
        }
    }

    fn finish(self) -> Option<Structure> {
        let figure = |place: usize| {
            PerBlock::new(self.sums.iter().map(|sums| Some(sums[place] / self.encounters as f64)).collect())
        };
        (self.encounters > 0 && !self.sums.is_empty()).then(|| Structure {
            kl_attention_truth: figure(0),
            kl_truth_attention: figure(1),
            entropy: figure(2),
            encounters: self.encounters,
            edges_aucpr: PerBlock::new(
                self.rankings.into_iter().map(|ranking| ranking.areas().aucpr).collect(),
            ),
        })
    }
}

/// `None` if the edges are not known or the model does not mix nodes.
fn measure(encounter: &Encounter, asker: &Asker<'_>) -> Option<Measured> {
    let adjacency = graph::adjacency(encounter).filter(|_| asker.model().config().mixes())?;
    let nodes = graph::Nodes::of(encounter).len();
    let example = asker.example(encounter);
    let (attentions, truth) = (attention_of(asker.model(), &example), normalized_adjacency(&example));
    let of_block = |attention: &Vec<f32>| {
        let mut sums = [0.0; 3];
        for (row, truth) in attention.chunks_exact(nodes).zip(truth.chunks_exact(nodes)) {
            sums[0] += metric::kl(row, truth);
            sums[1] += metric::kl(truth, row);
            sums[2] += metric::entropy(row);
        }
        sums.map(|sum| sum / nodes as f64)
    };
    let scores = |attention: &Vec<f32>| {
        pairs(nodes).map(|(i, j)| 0.5 * (attention[i * nodes + j] + attention[j * nodes + i])).collect()
    };
    Some(Measured {
        sums: attentions.iter().map(of_block).collect(),
        scores: attentions.iter().map(scores).collect(),
        edges: pairs(nodes).map(|(i, j)| adjacency[i * nodes + j]).collect(),
    })
}

/// The attention of each block over the nodes of an example, the mean over heads; for a convolution, the matrix that it mixes with.
pub(crate) fn attention_of(model: &Frozen<f32>, example: &crate::batch::Example) -> Vec<Vec<f32>> {
    let attentions = model.look(std::slice::from_ref(example), |view| view.attentions());
    let mean = |heads: Vec<Vec<Vec<f32>>>| {
        let count = heads.len() as f32;
        let mut sum = vec![0.0; example.nodes() * example.nodes()];
        for matrix in heads.iter().flatten() {
            sum.iter_mut().zip(matrix).for_each(|(sum, cell)| *sum += cell / count);
        }
        sum
    };
    attentions.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_in_the_order_of_answers() {
        assert_eq!(pairs(3).collect::<Vec<_>>(), [(0, 1), (0, 2), (1, 2)]);
        assert_eq!(pairs(1).count(), 0);
    }

    #[test]
    fn of_equal_answers_the_first_is_given() {
        assert!(is_largest(&[1.0, 3.0, 3.0], 1));
        assert!(!is_largest(&[1.0, 3.0, 3.0], 2));
        assert!(!is_largest(&[1.0, 3.0, 3.0], 0));
    }

    #[test]
    fn the_loss_of_a_class_is_minus_the_logarithm_of_its_share() {
        let logits = [1f32.ln(), 3f32.ln(), 4f32.ln()];
        assert!((class_loss(&logits, 1) - (8f64 / 3.0).ln()).abs() < 1e-6);
        assert!((class_loss(&[1000.0, 0.0], 1) - 1000.0).abs() < 1e-9, "far from what a float can hold");
    }
}
