//! The model, asked from any thread.

use std::sync::Arc;

use gct::predict::Explainer;
use gct::record::{Encounter, PerKind};
use gct::run::Run;
use gct::sample::Sample;
use serde::Serialize;

use crate::problem::Problem;
use crate::shape::{self, LayerName};
use crate::words::Question;

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
}

impl Model {
    /// Loads it.
    pub(crate) fn load(run: Arc<Run>) -> gct::Result<Self> {
        Explainer::new(&run)?;
        run.coder()?;
        Ok(Model { run })
    }

    fn explainer(&self) -> Explainer<'_> {
        Explainer::new(&self.run).expect("a run keeps the model that it has loaded")
    }

    /// The layers of this run's explanations: those of an encounter with one diagnosis.
    pub(crate) fn layers(&self) -> gct::Result<Vec<LayerName>> {
        let diagnosis = (0..self.run.vocabulary().diagnosis.len().min(1) as u32).collect();
        let explanation = self.run.explain(&Encounter::new(PerKind { diagnosis, ..PerKind::default() }))?;
        let layers = explanation.layers().into_iter();
        Ok(layers.map(|layer| LayerName { name: layer.name, kind: layer.kind }).collect())
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
    let samples = samples(explainer, questions);
    let logits = explainer.predictor().map(&samples, |model, examples, pool| model.answers(examples, pool));
    let prediction = |((question, sample), logits): ((&&Question, &Sample<'_>), Vec<f32>)| {
        let answers = explainer.first_answers(sample, finite(&logits)?);
        let answers = answers.into_iter().map(Into::into).collect();
        let (unknown, not_seen) = (question.unknown.clone(), question.not_seen);
        Ok(text(&shape::Prediction { answers, unknown, not_seen }))
    };
    questions.iter().zip(&samples).zip(logits).map(prediction).collect()
}

fn embeddings(explainer: &Explainer<'_>, questions: &[&Question]) -> Vec<Result<Vec<u8>, Problem>> {
    let samples = samples(explainer, questions);
    let predictor = explainer.predictor();
    if predictor.check_vectors().is_err() {
        return questions.iter().map(|_| Err(Problem::NoVectors)).collect();
    }
    let vectors = predictor.map(&samples, |model, examples, pool| model.visits(examples, pool));
    let mut subjects = match samples.first().is_some_and(Sample::has_history) {
        true => predictor.map(&samples, |model, examples, pool| model.subjects(examples, pool)),
        false => Vec::new(),
    }
    .into_iter();
    let embedding = |(question, vector): (&&Question, Vec<f32>)| {
        let subject = subjects.next();
        finite(&vector)?;
        finite(subject.as_deref().unwrap_or_default())?;
        let (unknown, not_seen) = (question.unknown.clone(), question.not_seen);
        Ok(text(&shape::Embedding { vector, subject, unknown, not_seen }))
    };
    questions.iter().zip(vectors).map(embedding).collect()
}

fn explanation(explainer: &Explainer<'_>, question: &Question) -> Result<Vec<u8>, Problem> {
    let (sample, has_reasons) = (sample(explainer, question), question.has_reasons());
    let explanation = match has_reasons {
        true => explainer.explain(&sample),
        false => explainer.explain_without_why(&sample),
    };
    let mut explanation = explanation.map_err(|_| Problem::NoAnswer)?;
    explainer.shorten(&mut explanation.answers);
    let (unknown, not_seen) = (question.unknown.clone(), question.not_seen);
    Ok(text(&shape::Explanation::of(explanation, has_reasons, unknown, not_seen)))
}

fn sample<'a>(explainer: &Explainer<'_>, question: &'a Question) -> Sample<'a> {
    explainer.predictor().sample_hiding(&question.sample, question.hide)
}

fn samples<'a>(explainer: &Explainer<'_>, questions: &[&'a Question]) -> Vec<Sample<'a>> {
    questions.iter().map(|question| sample(explainer, question)).collect()
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
