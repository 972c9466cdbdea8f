//! The model, asked from any thread.

use std::sync::Arc;

use gct::infer::Askable;
use gct::predict::Explainer;
use gct::record::PerKind;
use gct::run::Run;
use gct::task::Hide;
use rayon::prelude::*;

use crate::problem::Problem;
use crate::shape::{self, LayerName};
use crate::words::{Question, encounter};

/// Encounters that are not worth another thread.
const FEW: usize = 16;

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

/// The model of a run.
pub(crate) struct Model {
    run: Arc<Run>,
    asked: Askable,
    columns: Vec<usize>,
}

impl Model {
    /// Loads it. `columns` are where encounters of the page have the labels of the task.
    pub(crate) fn load(run: Arc<Run>, columns: Vec<usize>) -> gct::Result<Self> {
        Ok(Model { asked: Askable::new(&run.model()?), run, columns })
    }

    fn explainer(&self) -> Explainer<'_> {
        Explainer::of(&self.run, self.asked.clone(), self.columns.clone())
    }

    /// The layers of this run's explanations: those of an encounter with one diagnosis.
    pub(crate) fn layers(&self) -> gct::Result<Vec<LayerName>> {
        let diagnosis = (0..self.run.vocabulary().diagnosis.len().min(1) as u32).collect();
        let one = encounter(PerKind { diagnosis, treatment: Vec::new(), lab: Vec::new() });
        let explanation = self.explainer().explain(&one, Hide::ByEncounter)?;
        let layers = explanation.layers().into_iter();
        Ok(layers.map(|layer| LayerName { name: layer.name, kind: layer.part.into() }).collect())
    }

    /// What it says to the questions of some requests: one result for each of them.
    pub(crate) fn tell(&self, ask: Ask, requests: &[&[Question]]) -> Vec<Result<Told, Problem>> {
        let questions: Vec<&Question> = requests.iter().copied().flatten().collect();
        let explainer = self.explainer();
        match ask {
            Ask::Predict => of_each(answers(&explainer, &questions), requests, Told::Answers),
            Ask::Explain => {
                let explanations = map(&questions, |question| explain(&explainer, question));
                of_each(explanations, requests, Told::Explanations)
            }
            Ask::Embed => of_each(vectors(&explainer, &questions), requests, Told::Vectors),
        }
    }
}

fn answers(explainer: &Explainer<'_>, questions: &[&Question]) -> Vec<Result<Vec<shape::Answer>, Problem>> {
    let asker = explainer.asker();
    let logits = asker.map_examples(
        questions,
        |question| asker.example_hiding(&question.encounter, question.hide),
        |model, examples, pool| model.answers(examples, pool),
    );
    let asked: Vec<(&Question, Vec<f32>)> = questions.iter().copied().zip(logits).collect();
    map(&asked, |(question, logits)| {
        if !logits.iter().all(|logit| logit.is_finite()) {
            return Err(Problem::NoAnswer);
        }
        let mut answers = explainer.answers(&question.encounter, question.hide, logits);
        explainer.shorten(&mut answers);
        Ok(answers.into_iter().map(Into::into).collect())
    })
}

fn vectors(explainer: &Explainer<'_>, questions: &[&Question]) -> Vec<Result<Vec<f32>, Problem>> {
    let asker = explainer.asker();
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

fn explain(explainer: &Explainer<'_>, question: &Question) -> Result<shape::Explanation, Problem> {
    let Question { encounter, hide } = question;
    let mut explanation = explainer.explain(encounter, *hide).map_err(|_| Problem::NoAnswer)?;
    explainer.shorten(&mut explanation.answers);
    Ok(shape::Explanation::of(explanation, explainer.nodes(encounter)))
}

/// On all threads, if there are many.
fn map<Q: Sync, R: Send>(questions: &[Q], one: impl Fn(&Q) -> R + Sync + Send) -> Vec<R> {
    match questions.len() {
        0..=FEW => questions.iter().map(one).collect(),
        _ => questions.par_iter().map(one).collect(),
    }
}

/// The results of each request again, in order.
fn of_each<T>(
    results: Vec<Result<T, Problem>>,
    requests: &[&[Question]],
    told: impl Fn(Vec<T>) -> Told,
) -> Vec<Result<Told, Problem>> {
    let mut results = results.into_iter();
    let of_one = |request: &&[Question]| results.by_ref().take(request.len()).collect::<Result<_, _>>();
    requests.iter().map(of_one).map(|of_one| of_one.map(&told)).collect()
}
