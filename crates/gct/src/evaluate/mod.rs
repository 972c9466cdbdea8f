//! How good a model is: metrics with intervals, and how near its attention is to the true structure (Section
//! 4.6).

use std::path::PathBuf;

use serde::Serialize;

mod attention;
mod groups;

pub(crate) use attention::attention_within;
use attention::{attention_of, of_encounter};

use crate::batch::Example;
use crate::calibration::{Calibration, Method};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::graph;
use crate::infer::{LOOKED_AT, Overlap, Predictor, Reader, TestSet, Unseen, Which, in_rounds};
use crate::job::Job;
use crate::metric::{self, Aim, Bootstrap, Scores};
use crate::model::normalized_adjacency;
use crate::question::{Asked, Chosen, Question, Tally};
pub use crate::question::{CodeScores, Counts, Decisions, Details, LabelScores, Subgroup};
use crate::record::Encounter;
use crate::run::Run;
use crate::sample::Sample;
use crate::split::SplitPart;
use groups::Groups;

/// The part that encounters in memory are.
const GIVEN: &str = "given";

/// What is asked of a model beside its metrics. From a [`Bootstrap`] alone: the usual thresholds, and no
/// subgroups.
///
/// ```
/// use gct::evaluate::Options;
///
/// let options = Options { at: vec!["sensitivity=0.8".parse()?], ..Options::default() };
/// # let _ = options;
/// # Ok::<(), gct::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// For the intervals.
    pub bootstrap: Bootstrap,
    /// Thresholds at which labels are looked at: probabilities, above which an answer is positive.
    pub thresholds: Vec<f64>,
    /// What further thresholds are chosen for, on the validation split of the dataset that the run was
    /// trained on. For labels alone.
    pub at: Vec<Aim>,
    /// What encounters are grouped by: names of context, as `sex` for the codes `sex=female` and `sex=male`,
    /// or columns of the table.
    pub by: Vec<String>,
    /// A table as CSV or Parquet, with a column `encounter_id` and a row per encounter.
    pub table: Option<PathBuf>,
    /// Subgroups of fewer encounters, subjects, positives or negatives are not told, unless it is none; nor
    /// are those that would give them by subtraction, nor diagnoses of the next visit one by one.
    pub min_cell: u64,
}

impl Options {
    /// Thresholds that are looked at if none are given: more of low ones, by which rare outcomes are decided.
    pub const THRESHOLDS: [f64; 7] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5];

    /// Fewer are few enough for someone to be recognised by, as many data owners have it.
    pub const MIN_CELL: u64 = 11;

    fn check(&self, question: &Question) -> Result<()> {
        for threshold in &self.thresholds {
            if !(0.0..=1.0).contains(threshold) {
                return Err(Error::setting("threshold", threshold, "a number from 0 to 1"));
            }
        }
        self.at.iter().try_for_each(Aim::check)?;
        match (question, self.at.first()) {
            (
                Question::Edges
                | Question::HiddenDiagnosis
                | Question::HiddenCode
                | Question::NextDiagnoses(_),
                Some(aim),
            ) => Err(Error::setting("at", aim, "nothing: thresholds are for runs that predict labels")),
            (Question::Labels(_), _) | (_, None) => Ok(()),
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Bootstrap::default().into()
    }
}

impl From<Bootstrap> for Options {
    fn from(bootstrap: Bootstrap) -> Self {
        Options {
            bootstrap,
            thresholds: Options::THRESHOLDS.to_vec(),
            at: Vec::new(),
            by: Vec::new(),
            table: None,
            min_cell: Options::MIN_CELL,
        }
    }
}

/// How a model does on some encounters.
#[derive(Debug, Clone)]
pub struct Evaluation {
    /// On which part: `train`, `validation`, `test`, `all`, or `given` for encounters in memory.
    pub split: &'static str,
    /// On how many encounters.
    pub encounters: u64,
    /// How many had nothing to ask.
    pub left_out: u64,
    /// Codes that the run does not know.
    pub unseen: Unseen,
    /// Encounters of other data whose subjects the run learned from.
    pub overlap: Overlap,
    /// How the probabilities of labels are calibrated, if they are.
    pub calibrated: Option<Method>,
    /// The metrics.
    pub scores: Scores,
    /// Counts and, of labels, what happens at thresholds, calibration and the decision curve; subgroups.
    pub details: Details,
    /// The same of each label, if there are several.
    pub labels: Vec<LabelScores>,
    /// How near attention is to the truth, where both are known.
    pub structure: Option<StructureScores>,
}

/// Attention beside the normalised true adjacency, D^-1 (A + I), in nats: for each block the mean over
/// encounters of the mean over nodes. Logarithms are of numbers to which 1e-12 was added.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct StructureScores {
    /// KL(attention || truth): what fits the paper's table.
    pub kl_attention_truth: PerBlock,
    /// KL(truth || attention): what the paper's text says.
    pub kl_truth_attention: PerBlock,
    /// The entropy of attention.
    pub entropy: PerBlock,
    /// How well attention alone ranks the true edges: average precision over all pairs, each with the mean of
    /// both directions, of the first [`RANKED`] encounters.
    pub edges_aucpr: PerBlock,
    /// On how many encounters.
    pub encounters: u64,
}

/// Encounters whose pairs attention ranks: each pair is kept until all are sorted, for each block, and more
/// would hardly change it.
pub const RANKED: u64 = 5000;

/// A metric for each block, and the mean over blocks, where they are defined.
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

/// Evaluates the best model of a run. The job is told how many encounters are done.
///
/// # Errors
/// If the run has no model, the dataset does not go with it, lacks what the task asks for, or cannot
/// be read, an option makes no sense, no threshold can be chosen, or the job is stopped.
pub fn run(
    run: &Run,
    dataset: &Dataset,
    test_set: impl Into<TestSet>,
    options: impl Into<Options>,
    job: &Job<'_, u64>,
) -> Result<Evaluation> {
    with(run, dataset, test_set.into(), options, job, None)
}

impl Run {
    /// How the model does on encounters in memory, which are in the words of the run, as for
    /// [`Run::predict`]. Those whose answer is not known, or that cannot be asked about, are left out and
    /// counted. Whether the run learned from some of them is for the caller to know; intervals are over
    /// subjects.
    ///
    /// # Errors
    /// If the run has no model, an encounter is not in the words of the run, none has an answer, or an option
    /// makes no sense.
    pub fn evaluate(&self, encounters: &[Encounter], options: impl Into<Options>) -> Result<Evaluation> {
        let (options, predictor) = (options.into(), Predictor::of_run(self)?);
        options.check(predictor.question())?;
        predictor.check_words(encounters)?;
        let groups = Groups::new(&options, &self.vocabulary().context, &Job::silent())?;
        let chosen = choose(self, None, &predictor, &options.at, &Job::silent())?;
        let samples = predictor.samples_of(encounters, |encounter, next| predictor.can_test(encounter, next));
        let mut sums = Sums::new(predictor.question(), groups);
        sums.add(&predictor, &samples, &mut None)?;
        let left_out = (encounters.len() - samples.len()) as u64;
        let calibrated = self.calibration()?.map(Calibration::method);
        let evaluation = sums.finish(self, GIVEN, &options, &chosen)?;
        Ok(Evaluation { left_out, calibrated, ..evaluation })
    }
}

/// What a model made of one sample: for a caller that wants more than metrics.
pub(crate) struct Inferred<'a> {
    pub(crate) sample: Sample<'a>,
    pub(crate) logits: Vec<f32>,
    /// The attention of each block, the mean over heads; empty for a model that does not mix nodes.
    pub(crate) attentions: Vec<Vec<f32>>,
    /// Attention beside the truth, where both are known.
    measured: Option<Measured>,
}

/// Who hears what a model made of each sample.
pub(crate) type Observe<'o> = Option<&'o mut dyn FnMut(&Inferred<'_>)>;

/// Evaluates the best model of a run. Every sample becomes an example once; `observe`, if there is one, hears
/// what the model made of each, in the order of the dataset.
pub(crate) fn with(
    run: &Run,
    dataset: &Dataset,
    TestSet { which, training }: TestSet,
    options: impl Into<Options>,
    job: &Job<'_, u64>,
    mut observe: Observe<'_>,
) -> Result<Evaluation> {
    let (question, options) = (&run.settings().task, options.into());
    options.check(question)?;
    let predictor = Predictor::of_run(run)?;
    predictor.model().check_data(dataset.manifest().with_edges > 0)?;
    question.columns(&dataset.manifest().labels)?;
    dataset.check_hashes(&job.inner(|_| None))?;
    let mut reader = Reader::new(run, dataset, which)?.testing(run, dataset, training)?;
    let groups = Groups::of_dataset(&options, dataset, &job.inner(|_| None))?;
    let chosen = choose(run, Some(dataset), &predictor, &options.at, &job.inner(|_| None))?;
    let mut sums = Sums::new(question, groups);
    let left_out = in_rounds(
        &predictor,
        &mut reader,
        |encounter, next| predictor.can_test(encounter, next),
        |samples| {
            sums.add(&predictor, samples, &mut observe)?;
            job.advance(sums.encounters)
        },
    )?;
    let overlap = reader.overlap()?;
    let evaluation = sums.finish(run, which.name(), &options, &chosen)?;
    let calibrated = run.calibration()?.map(Calibration::method);
    Ok(Evaluation { left_out, unseen: reader.unseen(), overlap, calibrated, ..evaluation })
}

/// The thresholds that aims choose on the validation split of the dataset that a run was trained on, whatever
/// it is evaluated on.
fn choose(
    run: &Run,
    dataset: Option<&Dataset>,
    predictor: &Predictor<'_>,
    aims: &[Aim],
    job: &Job<'_, u64>,
) -> Result<Chosen> {
    let Some(first) = aims.first() else { return Ok(Chosen::new()) };
    let own = match dataset.filter(|dataset| run.check_dataset(dataset).is_ok()) {
        Some(dataset) => dataset,
        None => &run.dataset().and_then(|own| run.check_dataset(&own).map(|()| own)).map_err(|error| {
            let problem = format!("it needs the validation split that the run was trained with, and {error}");
            Error::NoThreshold { aim: first.to_string(), problem }
        })?,
    };
    own.check_hashes(job)?;
    let mut reader = Reader::new(run, own, Which::Part(SplitPart::Validation))?;
    let mut tally = predictor.question().tally();
    in_rounds(
        predictor,
        &mut reader,
        |encounter, next| predictor.can_test(encounter, next),
        |samples| {
            let answers = predictor.answers(samples)?;
            samples.iter().zip(answers).for_each(|(sample, logits)| tally.add(sample, &logits));
            job.check()
        },
    )?;
    tally.choose(aims)
}

/// What an evaluation adds up.
struct Sums {
    encounters: u64,
    groups: Groups,
    tally: Tally,
    structures: Structures,
}

impl Sums {
    fn new(question: &Question, groups: Groups) -> Self {
        Sums { encounters: 0, groups, tally: question.tally(), structures: Structures::default() }
    }

    fn add(
        &mut self,
        predictor: &Predictor<'_>,
        samples: &[Sample<'_>],
        observe: &mut Observe<'_>,
    ) -> Result<()> {
        for some in samples.chunks(LOOKED_AT) {
            for inferred in infer(predictor, some, observe.is_some())? {
                let groups = self.groups.of(inferred.sample.encounter());
                self.tally.add_to_groups(&inferred.sample, &inferred.logits, &groups);
                inferred.measured.iter().for_each(|measured| self.structures.add(measured));
                if let Some(observe) = observe {
                    observe(&inferred);
                }
            }
        }
        self.encounters += samples.len() as u64;
        Ok(())
    }

    /// # Errors
    /// If there was no encounter, or none is in a subgroup.
    fn finish(
        self,
        run: &Run,
        split: &'static str,
        options: &Options,
        chosen: &Chosen,
    ) -> Result<Evaluation> {
        if self.encounters == 0 {
            return Err(run.settings().task.no_answers(split));
        }
        let Options { bootstrap, ref thresholds, min_cell, .. } = *options;
        let diagnoses = &run.vocabulary().diagnosis;
        let asked = Asked { bootstrap, thresholds, chosen, min_cell, diagnoses };
        let (scores, details, labels) = self.tally.finish(&asked, &self.groups.by)?;
        Ok(Evaluation {
            split,
            encounters: self.encounters,
            left_out: 0,
            unseen: Unseen::default(),
            overlap: Overlap::default(),
            calibrated: None,
            scores,
            details,
            labels,
            structure: self.structures.finish(),
        })
    }
}

/// What a model makes of some samples. Attention is computed where it is compared with true edges, or for
/// all.
pub(crate) fn infer<'a>(
    predictor: &Predictor<'_>,
    samples: &[Sample<'a>],
    all_attention: bool,
) -> Result<Vec<Inferred<'a>>> {
    let mixes = predictor.model().config().mixes();
    let inferred = predictor.map(samples, |model, examples, pool| {
        let attention = |example: &Example| match mixes && (all_attention || example.visit.edges.is_some()) {
            true => attention_of(model, example),
            false => Vec::new(),
        };
        let inferred = |(logits, example): (Vec<f32>, &Example)| {
            let attentions = attention(example);
            (logits, measure(example, &attentions), attentions)
        };
        model.answers(examples, pool).into_iter().zip(examples).map(inferred).collect()
    });
    if !inferred.iter().flat_map(|(logits, ..)| logits).all(|logit| logit.is_finite()) {
        return Err(Error::NotFinite);
    }
    let inferred = samples.iter().zip(inferred).map(|(&sample, (logits, measured, attentions))| Inferred {
        sample,
        logits,
        attentions: of_encounter(&sample, attentions),
        measured,
    });
    Ok(inferred.collect())
}

/// How a model that is being trained does on encounters that are in memory: on those of them whose answer is
/// known.
pub(crate) fn validate(predictor: &Predictor<'_>, encounters: &[Encounter]) -> Result<Scores> {
    let mut tally = predictor.question().tally();
    let samples = predictor.samples_of(encounters, |encounter, next| predictor.can_test(encounter, next));
    for some in samples.chunks(predictor.at_once()) {
        for (sample, logits) in some.iter().zip(predictor.answers(some)?) {
            tally.add(sample, &logits);
        }
    }
    Ok(tally.scores(&Bootstrap { replicates: 0, seed: 0 }))
}

/// Sums for [`StructureScores`], over encounters.
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
    fn add(&mut self, Measured { sums, scores, edges }: &Measured) {
        self.encounters += 1;
        self.sums.resize(sums.len(), [0.0; 3]);
        self.rankings.resize_with(scores.len(), metric::Ranking::default);
        for (total, one) in self.sums.iter_mut().flatten().zip(sums.iter().flatten()) {
            *total += one;
        }
        for (ranking, scores) in
            self.rankings.iter_mut().zip(scores).take_while(|_| self.encounters <= RANKED)
        {
            scores.iter().zip(edges).for_each(|(score, edge)| ranking.add(*score, *edge));
        }
    }

    fn finish(self) -> Option<StructureScores> {
        let metric = |index: usize| {
            PerBlock::new(self.sums.iter().map(|sums| Some(sums[index] / self.encounters as f64)).collect())
        };
        (self.encounters > 0 && !self.sums.is_empty()).then(|| StructureScores {
            kl_attention_truth: metric(0),
            kl_truth_attention: metric(1),
            entropy: metric(2),
            encounters: self.encounters,
            edges_aucpr: PerBlock::new(
                self.rankings.into_iter().map(|ranking| ranking.areas().aucpr).collect(),
            ),
        })
    }
}

/// `None` if the edges are not known or the model does not mix nodes.
fn measure(example: &Example, attentions: &[Vec<f32>]) -> Option<Measured> {
    example.visit.edges.as_ref().filter(|_| !attentions.is_empty())?;
    let (nodes, truth) = (example.nodes(), normalized_adjacency(&example.visit));
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
        graph::pairs(nodes)
            .map(|(i, j)| 0.5 * (attention[i * nodes + j] + attention[j * nodes + i]))
            .collect()
    };
    Some(Measured {
        sums: attentions.iter().map(of_block).collect(),
        scores: attentions.iter().map(scores).collect(),
        edges: graph::pairs(nodes).map(|(i, j)| truth[i * nodes + j] > 0.0).collect(),
    })
}
