//! A run asked about encounters that are in memory.

use super::{Attribution, Explainer, Explanation};
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
        for some in predictor.samples(encounters).chunks(predictor.at_once()) {
            let logits = predictor.answers(some)?;
            let told = some.iter().zip(&logits);
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

    /// What each code of an encounter does to what the model predicts: how the answer changes when the code
    /// is left out.
    ///
    /// ```
    /// # use gct::dataset::Dataset;
    /// # use gct::files::Overwrite;
    /// # use gct::ingest::synthetic;
    /// # use gct::job::Job;
    /// # use gct::question::Question;
    /// # use gct::run::Settings;
    /// # use gct::train::{self, Execution};
    /// use gct::record::PerKind;
    /// use gct::run::Run;
    ///
    /// # let home = tempfile::tempdir().unwrap();
    /// # let (data, folder) = (home.path().join("data"), home.path().join("run"));
    /// # let records = synthetic::Settings { encounters: 100, ..Default::default() };
    /// # gct::synth::run(&records, &data, Overwrite::Refuse, &Job::silent())?;
    /// # let dataset = Dataset::open(&data)?;
    /// # let question: Question = "label:d1_m1".parse()?;
    /// # let settings = Settings { steps: 1, ..Settings::paper(question, "gct", "synthetic")? };
    /// # train::start(settings, &dataset, &folder, Overwrite::Refuse, Execution::default(), &Job::silent())?;
    /// let run = Run::open(&folder)?;
    /// let codes = PerKind { diagnosis: vec!["D_1", "D_5"], treatment: vec!["T_3"], ..Default::default() };
    /// let (encounter, _) = run.encounter(&codes);
    /// let why = &run.attribute(&encounter)?[0];
    /// assert_eq!((why.what.as_str(), why.changes.len()), ("d1_m1", 3));
    /// // The strongest comes first. Without a code that speaks for the label it is less probable.
    /// for change in &why.changes {
    ///     println!("without {}: {:.4} ({:+.4})", change.code, change.without, change.change);
    ///     assert_eq!(change.change, change.without - why.probability);
    /// }
    /// # Ok::<(), gct::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Run::predict`].
    pub fn attribute(&self, encounter: &Encounter) -> Result<Vec<Attribution>> {
        let explainer = Explainer::new(self)?;
        explainer.predictor().check(std::slice::from_ref(encounter))?;
        explainer.attribute(&explainer.predictor().sample(encounter), 0)
    }

    /// What the model believes about an encounter: who attends to whom, what it predicts, and why.
    ///
    /// # Errors
    /// As [`Run::predict`].
    pub fn explain(&self, encounter: &Encounter) -> Result<Explanation> {
        let explainer = Explainer::new(self)?;
        explainer.predictor().check(std::slice::from_ref(encounter))?;
        explainer.explain(&explainer.predictor().sample(encounter))
    }
}
