//! The constants of Appendix A and of the diagnosis-treatment task, all of them settings.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::record::PerKind;

/// Which reading of the paper's diagnosis-treatment task to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Preset {
    /// p(d1) lowered until both labels have about the prevalence that the paper states, 3.3 %.
    #[default]
    Paper,
    /// The constants of the appendix as written. They give about 13 %, because an encounter has two or more
    /// independent draws and the filter favours long encounters; the appendix counts one draw.
    Appendix,
}

/// A normal distribution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normal {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation.
    pub sd: f64,
}

/// The diagnosis-treatment task of Appendix B: which codes make the labels `d1_m1` and `d2_m1`, and how
/// likely they are made to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Labels {
    /// The diagnosis d1, by id.
    pub d1: u32,
    /// The diagnosis d2, by id.
    pub d2: u32,
    /// The treatment m1, by id.
    pub m1: u32,
    /// p(d1).
    pub p_d1: f64,
    /// a(d1).
    pub a_d1: f64,
    /// p(d2|d1).
    pub p_d2_given_d1: f64,
    /// b(d1).
    pub b_d1: f64,
    /// b(d2).
    pub b_d2: f64,
    /// p(m1|d1).
    pub p_m1_given_d1: f64,
    /// p(m1|d2).
    pub p_m1_given_d2: f64,
}

/// Patients with several visits, which the paper does not have.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Visits {
    /// How many visits a patient has in the mean. 1 is the paper's: everybody has one, and nothing below
    /// matters.
    pub mean: f64,
    /// The share of the diagnoses that are chronic. d1 of the labels always is.
    pub chronic: f64,
    /// The chance that a chronic diagnosis is there at the next visit too.
    pub persistence: f64,
    /// The chance that a new diagnosis comes with one of the visit before, by p(D|d), and not by p(D).
    pub follow_on: f64,
    /// The chance of the label `later` if d1 led to m1 in an earlier visit of the patient.
    pub later_hit: f64,
    /// Its chance otherwise.
    pub later_base: f64,
}

impl Visits {
    /// Whether patients have several.
    pub fn are_several(&self) -> bool {
        self.mean > 1.0
    }

    /// So that files of one visit per patient do not speak of it.
    fn are_default(&self) -> bool {
        *self == Visits::default()
    }

    fn check(&self) -> Result<()> {
        number("visits.mean", self.mean, 1.0, 20.0)?;
        for (name, probability) in [
            ("visits.chronic", self.chronic),
            ("visits.persistence", self.persistence),
            ("visits.follow_on", self.follow_on),
            ("visits.later_hit", self.later_hit),
            ("visits.later_base", self.later_base),
        ] {
            number(name, probability, 0.0, 1.0)?;
        }
        Ok(())
    }
}

impl Default for Visits {
    fn default() -> Self {
        Visits { mean: 1.0, chronic: 0.3, persistence: 0.8, follow_on: 0.5, later_hit: 0.8, later_base: 0.05 }
    }
}

/// Everything that decides which encounters are drawn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How many encounters to keep.
    pub encounters: u64,
    /// The seed of all tables and all encounters.
    pub seed: u64,
    /// Vocabulary sizes: \|D\|, \|M\|, \|R\|.
    pub vocabulary: PerKind<u32>,
    /// Pareto shape of p(D).
    pub diagnosis_pareto: f64,
    /// Pareto shape of the rows of p(D|d).
    pub co_diagnosis_pareto: f64,
    /// Pareto shape of the rows of p(M|d).
    pub treatment_pareto: f64,
    /// Pareto shape of the rows of p(R|m,d).
    pub lab_pareto: f64,
    /// The chance of one more independent diagnosis.
    pub more_diagnoses: f64,
    /// Diagnoses are drawn until there are this many, those that came with another one counted: as in the
    /// authors' generator.
    pub min_drawn_diagnoses: usize,
    /// How many independent diagnoses are drawn at least.
    pub min_independent_diagnoses: usize,
    /// a(D): the chance that a diagnosis brings another one.
    pub co_diagnosis: Normal,
    /// b(D): the chance of one more treatment.
    pub more_treatments: Normal,
    /// c(M,D): the chance of one more lab.
    pub more_labs: Normal,
    /// Values of a, b and c above this ...
    pub too_likely: f64,
    /// ... become this.
    pub too_likely_becomes: f64,
    /// An encounter needs at least this many distinct codes of each kind.
    pub min_codes: usize,
    /// An encounter may have at most this many distinct codes of each kind.
    pub max_codes: usize,
    /// The diagnosis-treatment task.
    pub labels: Labels,
    /// The visits of a patient.
    #[serde(default, skip_serializing_if = "Visits::are_default")]
    pub visits: Visits,
}

impl Settings {
    /// The paper's constants.
    pub fn preset(preset: Preset) -> Self {
        Settings {
            encounters: 50_000,
            seed: 0,
            vocabulary: PerKind { diagnosis: 1000, treatment: 1000, lab: 1000, ..PerKind::default() },
            diagnosis_pareto: 2.0,
            co_diagnosis_pareto: 1.5,
            treatment_pareto: 1.5,
            lab_pareto: 1.5,
            more_diagnoses: 0.5,
            min_drawn_diagnoses: 2,
            min_independent_diagnoses: 1,
            co_diagnosis: Normal { mean: 0.5, sd: 0.1 },
            more_treatments: Normal { mean: 0.5, sd: 0.25 },
            more_labs: Normal { mean: 0.5, sd: 0.25 },
            too_likely: 0.99,
            too_likely_becomes: 0.5,
            min_codes: 5,
            max_codes: 50,
            labels: Labels {
                d1: 199,
                d2: 133,
                m1: 939,
                p_d1: match preset {
                    Preset::Paper => 0.055,
                    Preset::Appendix => 0.33,
                },
                a_d1: 0.8,
                p_d2_given_d1: 0.33,
                b_d1: 0.5,
                b_d2: 0.5,
                p_m1_given_d1: 0.2,
                p_m1_given_d2: 0.8,
            },
            visits: Visits::default(),
        }
    }

    /// Refuses every value that makes no sense, before anything is drawn.
    pub fn check(&self) -> Result<()> {
        whole("encounters", self.encounters, 1, 100_000_000)?;
        whole("vocabulary.diagnosis", self.vocabulary.diagnosis.into(), 3, 100_000)?;
        whole("vocabulary.treatment", self.vocabulary.treatment.into(), 2, 100_000)?;
        whole("vocabulary.lab", self.vocabulary.lab.into(), 2, 100_000)?;
        if self.vocabulary.context > 0 {
            let allowed = "0, because synthetic encounters have no context";
            return Err(Error::setting("vocabulary.context", self.vocabulary.context, allowed));
        }
        for (name, shape) in [
            ("diagnosis_pareto", self.diagnosis_pareto),
            ("co_diagnosis_pareto", self.co_diagnosis_pareto),
            ("treatment_pareto", self.treatment_pareto),
            ("lab_pareto", self.lab_pareto),
        ] {
            number(name, shape, 0.5, 20.0)?;
        }
        for (name, normal) in [
            ("co_diagnosis", self.co_diagnosis),
            ("more_treatments", self.more_treatments),
            ("more_labs", self.more_labs),
        ] {
            number(&format!("{name}.mean"), normal.mean, 0.0, 0.99)?;
            number(&format!("{name}.sd"), normal.sd, 0.0, 1.0)?;
        }
        // A loop that continues with probability 0.999 draws a thousand codes.
        number("more_diagnoses", self.more_diagnoses, 0.0, 0.999)?;
        number("too_likely", self.too_likely, 0.0, 0.999)?;
        number("too_likely_becomes", self.too_likely_becomes, 0.0, self.too_likely)?;
        whole("min_drawn_diagnoses", self.min_drawn_diagnoses as u64, 1, 1000)?;
        whole("min_independent_diagnoses", self.min_independent_diagnoses as u64, 1, 1000)?;
        whole("min_codes", self.min_codes as u64, 1, 200)?;
        whole("max_codes", self.max_codes as u64, self.min_codes as u64, 200)?;

        let labels = &self.labels;
        code("labels.d1", labels.d1, self.vocabulary.diagnosis)?;
        code("labels.d2", labels.d2, self.vocabulary.diagnosis)?;
        code("labels.m1", labels.m1, self.vocabulary.treatment)?;
        if labels.d1 == labels.d2 {
            return Err(Error::setting("labels.d2", labels.d2, "another diagnosis than labels.d1"));
        }
        for (name, probability) in [
            ("labels.p_d1", labels.p_d1),
            ("labels.a_d1", labels.a_d1),
            ("labels.p_d2_given_d1", labels.p_d2_given_d1),
            ("labels.b_d1", labels.b_d1),
            ("labels.b_d2", labels.b_d2),
            ("labels.p_m1_given_d1", labels.p_m1_given_d1),
            ("labels.p_m1_given_d2", labels.p_m1_given_d2),
        ] {
            number(name, probability, 0.0, 0.999)?;
        }
        self.visits.check()
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings::preset(Preset::Paper)
    }
}

fn whole(name: &str, value: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::setting(name, value, &format!("a whole number from {least} to {most}")))
}

fn number(name: &str, value: f64, least: f64, most: f64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::setting(name, value, &format!("a number from {least} to {most}")))
}

fn code(name: &str, id: u32, vocabulary: u32) -> Result<()> {
    if id < vocabulary {
        return Ok(());
    }
    Err(Error::setting(name, id, &format!("an id below the vocabulary size, {vocabulary}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_presets_pass_their_own_check() {
        Settings::preset(Preset::Paper).check().unwrap();
        Settings::preset(Preset::Appendix).check().unwrap();
    }

    #[test]
    fn bad_values_are_refused_by_name() {
        let refused = |change: fn(&mut Settings)| {
            let mut settings = Settings::default();
            change(&mut settings);
            settings.check().unwrap_err().to_string()
        };
        assert_eq!(
            refused(|s| s.encounters = 0),
            "setting `encounters`: 0 is not allowed; expected a whole number from 1 to 100000000"
        );
        assert_eq!(
            refused(|s| s.more_labs.mean = f64::NAN),
            "setting `more_labs.mean`: NaN is not allowed; expected a number from 0 to 0.99"
        );
        assert_eq!(
            refused(|s| s.max_codes = 4),
            "setting `max_codes`: 4 is not allowed; expected a whole number from 5 to 200"
        );
        assert_eq!(
            refused(|s| s.vocabulary.treatment = 900),
            "setting `labels.m1`: 939 is not allowed; expected an id below the vocabulary size, 900"
        );
        for (mean, found) in [(0.5, "0.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (21.0, "21")] {
            let visits = Visits { mean, ..Visits::default() };
            assert_eq!(
                Settings { visits, ..Settings::default() }.check().unwrap_err().to_string(),
                format!("setting `visits.mean`: {found} is not allowed; expected a number from 1 to 20")
            );
        }
        assert_eq!(
            refused(|s| s.visits.persistence = 1.5),
            "setting `visits.persistence`: 1.5 is not allowed; expected a number from 0 to 1"
        );
    }

    #[test]
    fn one_visit_per_patient_is_not_spoken_of() {
        let of_one = serde_json::to_value(Settings::default()).unwrap();
        assert!(of_one.get("visits").is_none());
        assert_eq!(serde_json::from_value::<Settings>(of_one).unwrap(), Settings::default());
        let visits = Visits { mean: 3.0, ..Visits::default() };
        let of_several = serde_json::to_value(Settings { visits, ..Settings::default() }).unwrap();
        assert_eq!(of_several["visits"]["persistence"], 0.8, "with every constant that it was made with");
    }
}
