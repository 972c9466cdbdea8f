//! The model, asked from any thread.

use std::sync::Arc;

use gct::infer::Askable;
use gct::predict::Explainer;
use gct::record::PerKind;
use gct::run::Run;
use gct::task::Hide;
use serde::Serialize;

use crate::problem::Problem;
use crate::shape::{self, LayerName};
use crate::words::{Question, encounter};

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Predict,
    Explain,
    Embed,
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

    /// What it says to each question, as JSON; on this thread.
    pub(crate) fn tell(&self, ask: Ask, questions: &[&Question]) -> Vec<Result<Vec<u8>, Problem>> {
        let explainer = self.explainer();
        match ask {
            Ask::Predict => predictions(&explainer, questions),
            Ask::Explain => questions.iter().map(|question| explanation(&explainer, question)).collect(),
            Ask::Embed => embeddings(&explainer, questions),
        }
    }
}

fn predictions(explainer: &Explainer<'_>, questions: &[&Question]) -> Vec<Result<Vec<u8>, Problem>> {
    let asker = explainer.asker();
    let logits = asker.map_examples(
        questions,
        |question| asker.example_hiding(&question.encounter, question.hide),
        |model, examples, pool| model.answers(examples, pool),
    );
    let prediction = |(question, logits): (&&Question, Vec<f32>)| {
        let Question { encounter, hide, unknown } = question;
        let answers = explainer.first_answers(encounter, *hide, finite(&logits)?);
        let answers = answers.into_iter().map(Into::into).collect();
        Ok(text(&shape::Prediction { answers, unknown: unknown.clone() }))
    };
    questions.iter().zip(logits).map(prediction).collect()
}

fn embeddings(explainer: &Explainer<'_>, questions: &[&Question]) -> Vec<Result<Vec<u8>, Problem>> {
    let asker = explainer.asker();
    let vectors = asker.map_examples(
        questions,
        |question| asker.example_hiding(&question.encounter, question.hide),
        |model, examples, pool| model.visits(examples, pool),
    );
    let embedding = |(question, vector): (&&Question, Vec<f32>)| {
        finite(&vector)?;
        Ok(text(&shape::Embedding { vector, unknown: question.unknown.clone() }))
    };
    questions.iter().zip(vectors).map(embedding).collect()
}

fn explanation(explainer: &Explainer<'_>, question: &Question) -> Result<Vec<u8>, Problem> {
    let Question { encounter, hide, unknown } = question;
    let mut explanation = explainer.explain(encounter, *hide).map_err(|_| Problem::NoAnswer)?;
    explainer.shorten(&mut explanation.answers);
    let explanation = shape::Explanation::of(explanation, explainer.nodes(encounter));
    Ok(text(&shape::Explanation { unknown: unknown.clone(), ..explanation }))
}

fn finite(numbers: &[f32]) -> Result<&[f32], Problem> {
    match numbers.iter().all(|number| number.is_finite()) {
        true => Ok(numbers),
        false => Err(Problem::NoAnswer),
    }
}

fn text(answer: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(answer).expect("answers have text keys")
}
