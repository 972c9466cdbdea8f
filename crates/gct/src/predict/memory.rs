//! A run asked about encounters that are in memory.

use super::{Explainer, Explanation};
use crate::error::Result;
use crate::infer::Predictor;
use crate::question::Prediction;
use crate::record::Encounter;
use crate::run::Run;

/// Encounters are in the words of the run: as [`Run::encounter`] makes them of codes, and as
/// [`Reader`](crate::infer::Reader) reads them from a dataset. The model is loaded at the first call and
/// kept.
impl Run {
    /// What the model predicts for each encounter.
    ///
    /// # Errors
    /// If the run has no model, or an encounter cannot be asked about; its index is told.
    pub fn predict(&self, encounters: &[Encounter]) -> Result<Vec<Prediction>> {
        let predictor = Predictor::of_run(self)?;
        predictor.check(encounters)?;
        let mut predictions = Vec::with_capacity(encounters.len());
        for some in encounters.chunks(predictor.at_once()) {
            let samples = predictor.samples(some);
            let logits = predictor.answers(&samples)?;
            let told = samples.iter().zip(&logits);
            predictions.extend(told.map(|(sample, logits)| predictor.question().prediction(sample, logits)));
        }
        Ok(predictions)
    }

    /// The vector of the visit of each encounter, as the model's head sees it. A run that learned masked
    /// diagnosis sees each encounter as it learned to: with one diagnosis hidden.
    ///
    /// # Errors
    /// As [`Run::predict`].
    pub fn embed(&self, encounters: &[Encounter]) -> Result<Vec<Vec<f32>>> {
        let predictor = Predictor::of_run(self)?;
        predictor.check(encounters)?;
        predictor.vectors(&predictor.samples(encounters))
    }

    /// What the model believes about an encounter: who attends to whom, and what it predicts.
    ///
    /// # Errors
    /// As [`Run::predict`].
    pub fn explain(&self, encounter: &Encounter) -> Result<Explanation> {
        let explainer = Explainer::new(self)?;
        explainer.predictor().check(std::slice::from_ref(encounter))?;
        explainer.explain(&explainer.predictor().sample(encounter))
    }
}
