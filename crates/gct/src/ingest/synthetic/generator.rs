//! Algorithm 1: draws encounters, filters them, labels them.

use std::sync::Arc;

use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use super::history::{self, Patient, Place, Visit};
use super::rows::{Cache, Categorical, Pin, Purpose, Rows, stream};
use super::settings::{Normal, Settings};
use crate::error::{Error, Result};
use crate::job::Stop;
use crate::record::{Code, CodeKind, Edge, Edges, Encounter, EncounterId, PerKind, SubjectId, Vocabulary};

/// How many encounters are drawn between two looks at the result, if patients have one each.
const DRAWS_PER_ROUND: u64 = 16_384;

/// How many are kept between two looks, about, if patients have several.
const VISITS_PER_ROUND: f64 = 4096.0;

/// Fewer kept than this share means that the settings contradict each other.
const LEAST_SHARE_KEPT: f64 = 1e-4;

/// The label that patients with several visits have: whether d1 led to m1 in an earlier visit, by chance.
pub const LATER: &str = "later";

/// Memory for the rows of p(D|d) and p(M|d), each, and of p(R|m,d).
const ROW_CACHE_BYTES: usize = 32 << 20;
const LAB_CACHE_BYTES: usize = 128 << 20;

/// The tables of Appendix A, ready to draw encounters.
pub struct Generator {
    settings: Settings,
    pub(super) diagnosis: Arc<Categorical>,
    pub(super) co_diagnosis: Rows,
    treatment: Rows,
    lab: Rows,
    /// a(D).
    more_co_diagnoses: Vec<f64>,
    /// b(D).
    more_treatments: Vec<f64>,
    /// Whether a diagnosis may persist into the next visit.
    chronic: Vec<bool>,
    next_patient: u64,
    kept_patients: u64,
    kept: u64,
    drawn: u64,
}

/// A round of encounters.
pub struct Drawn {
    /// Those that passed the filter: patient by patient, the visits of each in the order of time.
    pub encounters: Vec<Encounter>,
    /// How many have been drawn so far to keep those kept so far, over all rounds.
    pub raw_encounters: u64,
}

impl Generator {
    /// Prepares the tables.
    ///
    /// # Errors
    /// If a setting makes no sense.
    pub fn new(settings: &Settings) -> Result<Self> {
        settings.check()?;
        let (seed, labels, vocabulary) = (settings.seed, settings.labels, settings.vocabulary);
        let rows = |purpose, columns, shape, pins| Rows {
            seed,
            purpose,
            columns,
            shape,
            zero_diagonal: matches!(purpose, Purpose::CoDiagnosis),
            pins,
            cache: Cache::new(vocabulary.diagnosis.into(), columns, ROW_CACHE_BYTES),
        };
        let pin = |row: u32, column, probability| Pin { row: row.into(), column, probability };

        let diagnosis = rows(
            Purpose::Diagnosis,
            vocabulary.diagnosis,
            settings.diagnosis_pareto,
            vec![pin(0, labels.d1, labels.p_d1)],
        );
        let mut more_co_diagnoses = continuations(settings, Purpose::MoreCoDiagnoses, settings.co_diagnosis);
        more_co_diagnoses[labels.d1 as usize] = labels.a_d1;
        let mut more_treatments = continuations(settings, Purpose::MoreTreatments, settings.more_treatments);
        more_treatments[labels.d1 as usize] = labels.b_d1;
        more_treatments[labels.d2 as usize] = labels.b_d2;

        let lab_rows = u64::from(vocabulary.treatment) * u64::from(vocabulary.diagnosis);
        Ok(Generator {
            diagnosis: diagnosis.get(0),
            co_diagnosis: rows(
                Purpose::CoDiagnosis,
                vocabulary.diagnosis,
                settings.co_diagnosis_pareto,
                vec![pin(labels.d1, labels.d2, labels.p_d2_given_d1)],
            ),
            treatment: rows(
                Purpose::Treatment,
                vocabulary.treatment,
                settings.treatment_pareto,
                vec![
                    pin(labels.d1, labels.m1, labels.p_m1_given_d1),
                    pin(labels.d2, labels.m1, labels.p_m1_given_d2),
                ],
            ),
            lab: Rows {
                cache: Cache::new(lab_rows, vocabulary.lab, LAB_CACHE_BYTES),
                ..rows(Purpose::Lab, vocabulary.lab, settings.lab_pareto, vec![])
            },
            more_co_diagnoses,
            more_treatments,
            chronic: history::chronic(seed, vocabulary.diagnosis, settings.visits.chronic, labels.d1),
            next_patient: 0,
            kept_patients: 0,
            kept: 0,
            drawn: 0,
            settings: settings.clone(),
        })
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The names of the labels that every encounter carries.
    pub fn label_names(&self) -> Vec<String> {
        let of_several = self.settings.visits.are_several().then_some(LATER);
        ["d1_m1", "d2_m1"].into_iter().chain(of_several).map(str::to_owned).collect()
    }

    /// The diagnosis and the treatment of the labels `d1_m1` and `d2_m1`: does one lead to the other?
    pub fn label_pairs(&self) -> [(u32, u32); 2] {
        let labels = &self.settings.labels;
        [(labels.d1, labels.m1), (labels.d2, labels.m1)]
    }

    /// The codes, named as in the paper's figures: `D_199`, `T_939`, `L_7`. Counts are zero.
    pub fn vocabulary(&self) -> Vocabulary {
        PerKind::from_fn(|kind| {
            let letter = match kind {
                CodeKind::Context => 'C',
                CodeKind::Diagnosis => 'D',
                CodeKind::Treatment => 'T',
                CodeKind::Lab => 'L',
            };
            (0..self.settings.vocabulary[kind])
                .map(|id| Code { code: format!("{letter}_{id}"), description: None, count: 0 })
                .collect()
        })
    }

    /// Draws one more round, on all threads; `None` when there are enough encounters.
    ///
    /// # Errors
    /// If hardly any draw passes the filter, or it is stopped.
    pub fn next_round(&mut self, stop: &Stop) -> Result<Option<Drawn>> {
        if self.kept == self.settings.encounters {
            return Ok(None);
        }
        let first = self.next_patient;
        self.next_patient += self.patients_per_round();
        let patients: Vec<Patient> = (first..self.next_patient)
            .into_par_iter()
            .filter(|_| !stop.is_requested())
            .map(|number| self.patient(number))
            .collect();
        stop.check()?;
        let mut encounters = Vec::new();
        for patient in patients {
            if self.kept == self.settings.encounters {
                break;
            }
            self.take(patient, &mut encounters);
        }
        if (self.kept as f64) < LEAST_SHARE_KEPT * self.drawn as f64 && self.drawn >= 500_000 {
            let Settings { min_codes, max_codes, .. } = self.settings;
            return Err(Error::NothingKept { kept: self.kept, drawn: self.drawn, min_codes, max_codes });
        }
        Ok(Some(Drawn { encounters, raw_encounters: self.drawn }))
    }

    fn patients_per_round(&self) -> u64 {
        let visits = self.settings.visits;
        if visits.are_several() { (VISITS_PER_ROUND / visits.mean).ceil() as u64 } else { DRAWS_PER_ROUND }
    }

    /// Adds the visits of a patient, as far as they are wanted, who gets a number if there are any.
    fn take(&mut self, patient: Patient, encounters: &mut Vec<Encounter>) {
        self.drawn += patient.draws;
        let wanted = usize::try_from(self.settings.encounters - self.kept).unwrap_or(usize::MAX);
        let subject = self.kept_patients;
        self.kept_patients += u64::from(!patient.visits.is_empty());
        for visit in patient.visits.into_iter().take(wanted) {
            encounters.push(self.finish(visit, subject, self.kept));
            self.kept += 1;
        }
    }

    /// Random numbers that no encounter is made of, by number.
    pub fn spare_stream(&self, number: u64) -> Xoshiro256PlusPlus {
        stream(self.settings.seed, Purpose::Spare, number)
    }

    /// b(d): the chance of one more treatment.
    pub fn more_treatments(&self, diagnosis: u32) -> f64 {
        self.more_treatments[diagnosis as usize]
    }

    /// a(d): the chance that one more diagnosis comes with it.
    pub fn more_co_diagnoses(&self, diagnosis: u32) -> f64 {
        self.more_co_diagnoses[diagnosis as usize]
    }

    /// p(D), all of it.
    pub fn diagnosis_probabilities(&self, out: &mut Vec<f32>) {
        *out = self.diagnosis.probabilities();
    }

    /// p(D|d), all of it.
    pub fn co_diagnosis_probabilities(&self, diagnosis: u32, out: &mut Vec<f32>) {
        self.co_diagnosis.probabilities(diagnosis.into(), out);
    }

    /// c(m,d): the chance of one more lab.
    pub fn more_labs(&self, treatment: u32, diagnosis: u32) -> f64 {
        let mut rng = stream(self.settings.seed, Purpose::MoreLabs, self.lab_row(treatment, diagnosis));
        continuation(&self.settings, &mut rng, self.settings.more_labs)
    }

    /// p(M|d), all of it.
    pub fn treatment_probabilities(&self, diagnosis: u32, out: &mut Vec<f32>) {
        self.treatment.probabilities(diagnosis.into(), out);
    }

    /// p(R|m,d), all of it.
    pub fn lab_probabilities(&self, treatment: u32, diagnosis: u32, out: &mut Vec<f32>) {
        self.lab.probabilities(self.lab_row(treatment, diagnosis), out);
    }

    /// Whether a diagnosis persists from visit to visit, by chance.
    pub fn is_chronic(&self, diagnosis: u32) -> bool {
        self.chronic[diagnosis as usize]
    }

    fn lab_row(&self, treatment: u32, diagnosis: u32) -> u64 {
        u64::from(treatment) * u64::from(self.settings.vocabulary.diagnosis) + u64::from(diagnosis)
    }

    /// A visit after one with these diagnoses, unless the filter rejects it. Labs cost most, so they are
    /// drawn last.
    pub(super) fn draw(&self, rng: &mut Xoshiro256PlusPlus, before: &[u32]) -> Option<Draft> {
        let diagnoses = self.draw_diagnoses(rng, before);
        self.passes(&diagnoses)?;

        let mut causes = Vec::new();
        for &diagnosis in &diagnoses {
            let already = causes.len();
            while happens(rng, self.more_treatments[diagnosis as usize]) {
                let treatment = self.treatment.get(diagnosis.into()).sample(rng);
                if !causes[already..].contains(&(diagnosis, treatment)) {
                    causes.push((diagnosis, treatment));
                }
            }
        }
        let treatments = distinct(causes.iter().map(|&(_, treatment)| treatment));
        self.passes(&treatments)?;

        let mut results = Vec::new();
        for &(diagnosis, treatment) in &causes {
            let more = self.more_labs(treatment, diagnosis);
            let mut row = None;
            while happens(rng, more) {
                let row = row.get_or_insert_with(|| self.lab.get(self.lab_row(treatment, diagnosis)));
                results.push((treatment, row.sample(rng)));
            }
        }
        let labs = distinct(results.iter().map(|&(_, lab)| lab));
        self.passes(&labs)?;
        Some(Draft { diagnoses, treatments, labs, causes, results })
    }

    fn draw_diagnoses(&self, rng: &mut Xoshiro256PlusPlus, before: &[u32]) -> Vec<u32> {
        let mut drawn = Vec::new();
        let mut independent = 0;
        while independent < self.settings.min_independent_diagnoses
            || drawn.len() < self.settings.min_drawn_diagnoses
            || happens(rng, self.settings.more_diagnoses)
        {
            let mut last = self.new_diagnosis(rng, before);
            independent += 1;
            drawn.push(last);
            while happens(rng, self.more_co_diagnoses[last as usize]) {
                last = self.co_diagnosis.get(last.into()).sample(rng);
                drawn.push(last);
            }
        }
        // What persists is not counted among the draws: how many are new is as at a first visit.
        drawn.extend(self.persisting(rng, before));
        distinct(drawn.into_iter())
    }

    fn passes(&self, codes: &[u32]) -> Option<()> {
        (self.settings.min_codes..=self.settings.max_codes).contains(&codes.len()).then_some(())
    }

    fn finish(&self, Visit { draft, place }: Visit, subject: u64, number: u64) -> Encounter {
        let led = self.label_pairs().map(|pair| draft.causes.contains(&pair));
        let later = place.as_ref().map(|place: &Place| place.later);
        Encounter {
            id: EncounterId::new(format!("E{number}")),
            subject: SubjectId::new(format!("S{subject}")),
            start: place.as_ref().map(|place| place.start),
            end: place.as_ref().map(|place| place.end),
            prediction_time: None,
            part: None,
            labels: led.into_iter().chain(later).map(Some).collect(),
            edges: Some(Edges {
                diagnosis_treatment: positions(&draft.causes, &draft.diagnoses, &draft.treatments),
                treatment_lab: positions(&draft.results, &draft.treatments, &draft.labs),
            }),
            codes: PerKind {
                diagnosis: draft.diagnoses,
                treatment: draft.treatments,
                lab: draft.labs,
                ..PerKind::default()
            },
        }
    }
}

/// An encounter in code ids.
pub(super) struct Draft {
    pub(super) diagnoses: Vec<u32>,
    treatments: Vec<u32>,
    labs: Vec<u32>,
    pub(super) causes: Vec<(u32, u32)>,
    results: Vec<(u32, u32)>,
}

pub(super) fn happens(rng: &mut Xoshiro256PlusPlus, probability: f64) -> bool {
    rng.random::<f64>() < probability
}

fn distinct(codes: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut codes: Vec<u32> = codes.collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

/// Pairs of code ids as pairs of positions in the two ascending lists, ascending and distinct themselves.
fn positions(pairs: &[(u32, u32)], causes: &[u32], effects: &[u32]) -> Vec<Edge> {
    let position = |codes: &[u32], code| {
        codes.binary_search(&code).expect("every code of an edge is in the encounter") as u16
    };
    let mut edges: Vec<Edge> = pairs
        .iter()
        .map(|&(cause, effect)| Edge { cause: position(causes, cause), effect: position(effects, effect) })
        .collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

/// a(D) or b(D): one probability for each diagnosis.
fn continuations(settings: &Settings, purpose: Purpose, normal: Normal) -> Vec<f64> {
    let mut rng = stream(settings.seed, purpose, 0);
    (0..settings.vocabulary.diagnosis).map(|_| continuation(settings, &mut rng, normal)).collect()
}

fn continuation(settings: &Settings, rng: &mut impl Rng, normal: Normal) -> f64 {
    let z: f64 = StandardNormal.sample(rng);
    let probability = (normal.mean + normal.sd * z).max(0.0);
    if probability > settings.too_likely { settings.too_likely_becomes } else { probability }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_those_of_the_appendix() {
        let settings = Settings::default();
        let generator = Generator::new(&settings).unwrap();
        let labels = &settings.labels;
        let mut row = Vec::new();
        let mut probability = |rows: &Rows, of: u32, given: u32| {
            rows.probabilities(given.into(), &mut row);
            f64::from(row[of as usize])
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        for diagnosis in [0, 7, labels.d1, 999] {
            assert_eq!(probability(&generator.co_diagnosis, diagnosis, diagnosis), 0.0, "zero diagonal");
        }
        assert!(probability(&generator.treatment, 7, 7) > 0.0, "but not in the other tables");
        assert!(close(probability(&generator.co_diagnosis, labels.d2, labels.d1), 0.33));
        assert!(close(probability(&generator.treatment, labels.m1, labels.d1), 0.2));
        assert!(close(probability(&generator.treatment, labels.m1, labels.d2), 0.8));
        assert_eq!(generator.more_co_diagnoses[labels.d1 as usize], 0.8);
        assert_eq!([labels.d1, labels.d2].map(|d| generator.more_treatments(d)), [0.5, 0.5]);
    }

    #[test]
    fn chances_to_continue_are_clipped() {
        let generator = Generator::new(&Settings::default()).unwrap();
        let labs: Vec<f64> = (0..20_000).map(|pair| generator.more_labs(pair / 1000, pair % 1000)).collect();
        for chances in [&generator.more_treatments, &labs] {
            assert!(chances.iter().all(|chance| (0.0..=0.99).contains(chance)));
            // 2.3 % of a normal distribution with mean 0.5 and deviation 0.25 are below 0, 2.5 % above 0.99.
            let share = |value: f64| {
                chances.iter().filter(|chance| **chance == value).count() as f64 / chances.len() as f64
            };
            assert!((0.01..0.04).contains(&share(0.0)), "{}", share(0.0));
            assert!((0.01..0.04).contains(&share(0.5)), "{}", share(0.5));
        }
    }

    #[test]
    fn two_diagnoses_are_drawn_at_least() {
        let sizes = |co_diagnosis: f64, min_independent_diagnoses| {
            let co_diagnosis = Normal { mean: co_diagnosis, sd: 0.0 };
            let settings = Settings {
                more_diagnoses: 0.0,
                co_diagnosis,
                min_independent_diagnoses,
                ..Settings::default()
            };
            let generator = Generator::new(&settings).unwrap();
            let size = |n| generator.draw_diagnoses(&mut stream(0, Purpose::Encounter, n), &[]).len();
            (0..400).map(size).collect::<Vec<usize>>()
        };
        let mean = |sizes: &[usize]| sizes.iter().sum::<usize>() as f64 / sizes.len() as f64;
        let alone = sizes(0.0, 1);
        assert!(
            alone.iter().filter(|size| **size == 2).count() > 350,
            "but for twice the same, and those with d1"
        );
        // With a(d) = 1/2, a first diagnosis brings one more on average: often nobody else is needed. Two
        // independent ones bring two.
        let (released, independent) = (mean(&sizes(0.5, 1)), mean(&sizes(0.5, 2)));
        assert!(released + 0.3 < independent, "{released} {independent}");
    }
}
