//! What the generator knows about one encounter.

use crate::ingest::synthetic::Generator;
use crate::record::Encounter;

/// The generator's chances, restricted to the codes of one encounter. Cell (d, m) of a table over diagnoses
/// and treatments is at `d * treatments + m`; labs come innermost.
#[derive(Debug, Clone)]
pub(super) struct Chances {
    pub(super) diagnoses: usize,
    pub(super) treatments: usize,
    pub(super) labs: usize,
    /// b(d).
    pub(super) more_treatments: Vec<f64>,
    /// p(m|d), over (d, m).
    pub(super) treatment: Vec<f64>,
    /// c(m,d), over (d, m).
    pub(super) more_labs: Vec<f64>,
    /// p(r|m,d), over (d, m, r).
    pub(super) lab: Vec<f64>,
}

impl Chances {
    pub(super) fn of(generator: &Generator, encounter: &Encounter) -> Self {
        let codes = &encounter.codes;
        let pairs = codes.diagnosis.len() * codes.treatment.len();
        let mut chances = Chances {
            diagnoses: codes.diagnosis.len(),
            treatments: codes.treatment.len(),
            labs: codes.lab.len(),
            more_treatments: codes.diagnosis.iter().map(|&d| generator.more_treatments(d)).collect(),
            treatment: Vec::with_capacity(pairs),
            more_labs: Vec::with_capacity(pairs),
            lab: Vec::with_capacity(pairs * codes.lab.len()),
        };
        let mut row = Vec::new();
        for &diagnosis in &codes.diagnosis {
            generator.treatment_probabilities(diagnosis, &mut row);
            chances.treatment.extend(codes.treatment.iter().map(|&m| f64::from(row[m as usize])));
            for &treatment in &codes.treatment {
                chances.more_labs.push(generator.more_labs(treatment, diagnosis));
                generator.lab_probabilities(treatment, diagnosis, &mut row);
                chances.lab.extend(codes.lab.iter().map(|&r| f64::from(row[r as usize])));
            }
        }
        chances
    }

    /// p(r|m,d) for all labs.
    pub(super) fn labs_of(&self, pair: usize) -> &[f64] {
        &self.lab[pair * self.labs..][..self.labs]
    }
}
