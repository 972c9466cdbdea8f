//! What is predicted, and when: definitions of labels as far as the source of the data gives them.

use serde_json::Value;

use super::preparation::Preparation;
use crate::ingest::synthetic;
use crate::question::{Next, Question};

/// What is predicted, in a sentence.
pub(super) fn of_question(question: &Question) -> String {
    match question {
        Question::Edges => {
            "Which codes of an encounter belong together: which diagnosis led to which treatment, and \
                            which treatment to which lab. The answer is a probability for each pair of codes."
                .into()
        }
        Question::Labels(_) => {
            let labels = question.labels();
            let names = labels.join(", ");
            match labels.len() {
                1 => {
                    format!("Whether the label {names} of an encounter is true. The answer is a probability.")
                }
                _ => format!(
                    "Whether each of the labels {names} of an encounter is true. The answer is a probability for each."
                ),
            }
        }
        Question::HiddenDiagnosis => {
            "Which diagnosis of an encounter was hidden from the model. The answer is a \
                                      probability for each diagnosis that it knows."
                .into()
        }
        Question::HiddenCode => {
            "Which diagnosis, treatment or lab of an encounter was hidden from the model. The answer is a \
                                 probability for each code of the same kind that it knows."
                .into()
        }
        Question::NextDiagnoses(next) => {
            let which = match next {
                Next::All => "",
                Next::New => " that are in no visit that the model sees",
            };
            format!(
                "Which diagnoses{which} the next visit of the patient has. The answer is a probability for each \
                 diagnosis that the model knows."
            )
        }
    }
}

/// What a label means; nothing where the source does not say.
pub(super) fn of_label(preparation: &Preparation, label: &str) -> Option<String> {
    if let Some(settings) = preparation.synthetic() {
        return of_synthetic(&settings, label);
    }
    if let Some(onset) = of_onset(preparation, label) {
        return Some(onset);
    }
    let option = |name: &str| preparation.text(name).unwrap_or_default();
    let days = readmission_days(preparation);
    let label = if label == format!("readmission_{days}") { "readmission" } else { label };
    let definition = match (preparation.kind(), label) {
        ("eicu", "readmission") => of_eicu_readmission(option("readmission_of_dead")),
        ("eicu", "mortality") => match option("mortality") {
            "hospital" => "the patient died in the hospital".into(),
            _ => "the patient died in the unit".into(),
        },
        ("mimic4" | "mimic3", _) => of_mimic(preparation, label)?,
        ("omop" | "claims" | "synthea" | "fhir", "readmission") => {
            of_readmission(preparation.kind(), option("readmission"), &days)
        }
        ("omop", "mortality") => "the day of death is one of the visit's days".into(),
        ("omop", cohort) => of_cohort(preparation, cohort)?,
        ("claims", "mortality") => {
            "the person died by the day on which the claim ends; unknown for persons who are not \
                                    among the beneficiaries"
                .into()
        }
        ("synthea", "mortality") => "dead by the day on which the encounter ends".into(),
        ("fhir", "mortality") => {
            "dead by the day on which the encounter ends; unknown if the patient or the day of \
                                  death is missing"
                .into()
        }
        _ => return None,
    };
    Some(definition)
}

/// In how many days a readmission counts.
fn readmission_days(preparation: &Preparation) -> String {
    preparation.option("readmission_days").map_or_else(|| "30".into(), Value::to_string)
}

/// Readmission to what counts as an admission of a source.
fn of_readmission(source: &str, which: &str, days: &str) -> String {
    match (source, which) {
        ("omop", _) => {
            let what = match which {
                "unplanned" => "another admission of the person by way of the emergency room",
                "acute" => "another admission of the person, or a visit to the emergency room,",
                _ => "another admission of the person",
            };
            format!(
                "{what} starts on the day of the visit's end or in the {days} days after it; unknown for visits that are \
                 not admissions, and where the person is not observed for that long"
            )
        }
        ("claims", _) => {
            let what = if which == "unplanned" { "unplanned inpatient claim" } else { "inpatient claim" };
            format!(
                "another {what} of the person starts on the day on which this one ends or in the {days} days after it; \
                 unknown for claims that are not inpatient"
            )
        }
        ("synthea", _) => {
            let what = if which == "acute" { ", or in emergency or urgent care," } else { "" };
            format!("admitted again{what} within {days} days; unknown for encounters that are not admissions")
        }
        _ => {
            let what = match which {
                "acute" => "encounter of class IMP, ACUTE or EMER",
                _ => "admission (class IMP, ACUTE or NONACUTE)",
            };
            format!(
                "another {what} within {days} days after the end of the encounter; unknown for other classes, without an \
                 end, and for parts of another encounter"
            )
        }
    }
}

/// A label of whether diagnoses begin after the encounter.
fn of_onset(preparation: &Preparation, label: &str) -> Option<String> {
    let codes = preparation.onset(label)?;
    let days = preparation.text("within").unwrap_or("1..365").replace("..", " to ");
    let had = match preparation.text("prevalent") {
        Some("keep") => "who had one by the end of the visit, and for those ",
        _ => "",
    };
    Some(format!(
        "a diagnosis among {codes} is made for the first time on days {days} after the last day of the visit; unknown for \
         those {had}who are not observed for that long"
    ))
}

fn of_synthetic(settings: &synthetic::Settings, label: &str) -> Option<String> {
    let (labels, visits) = (&settings.labels, &settings.visits);
    let led = |diagnosis: u32| format!("diagnosis D_{diagnosis} led to treatment T_{}", labels.m1);
    match label {
        "d1_m1" => Some(format!("in the encounter, {}", led(labels.d1))),
        "d2_m1" => Some(format!("in the encounter, {}", led(labels.d2))),
        synthetic::LATER => Some(format!(
            "drawn: with probability {} if {} in an earlier encounter of the patient, otherwise with {}",
            visits.later_hit,
            led(labels.d1),
            visits.later_base
        )),
        _ => None,
    }
}

fn of_eicu_readmission(of_dead: &str) -> String {
    let dead = match of_dead {
        "no" => "false for patients who died",
        _ => "unknown for patients who died",
    };
    format!("another unit stay follows in the same hospital stay; {dead}")
}

fn of_mimic(preparation: &Preparation, label: &str) -> Option<String> {
    let is_stay = preparation.text("encounters") == Some("icu");
    Some(match label {
        "mortality" if is_stay => {
            "the patient died in the unit; unknown if the patient died in the hospital without a \
                                   recorded time"
                .into()
        }
        "mortality" => "the patient died in the hospital".into(),
        "readmission" => {
            let which = match preparation.text("readmission") {
                Some("unplanned") => "another admission that was not planned",
                _ => "another admission",
            };
            let days = readmission_days(preparation);
            format!(
                "{which} begins in the {days} days after discharge from the hospital; unknown for those who died in the \
                 hospital and, unless they were readmitted, for those who died within the {days} days and for discharges in \
                 the last {days} days of the data"
            )
        }
        "long_stay" => {
            let days = preparation.option("long_stay_days").map_or_else(|| "7".into(), Value::to_string);
            format!("the encounter lasts longer than {days} days")
        }
        _ => return None,
    })
}

fn of_cohort(preparation: &Preparation, label: &str) -> Option<String> {
    let cohort = label.strip_prefix("cohort_").filter(|_| preparation.option("cohort").is_some())?;
    let days = preparation.text("within").unwrap_or("1..365").replace("..", " to ");
    Some(format!(
        "the person enters cohort {cohort} on days {days} after the last day of the visit; unknown for those who were in \
         it before, who died by then, or who are not observed for that long"
    ))
}

/// When the prediction is made: what is known of an encounter by then.
pub(super) fn moment(preparation: &Preparation, with_prediction_time: Option<u64>) -> Vec<String> {
    let mut points = Vec::new();
    if preparation.is_synthetic() {
        points.push("Synthetic encounters have no time: all of their codes are given.".into());
        return points;
    }
    let hours = preparation.option("observe_hours").map(Value::to_string);
    points.push(match (&hours, with_prediction_time) {
        (Some(hours), _) => format!(
            "The prediction is made {hours} hours after the start of the encounter, from what was recorded by then."
        ),
        (None, Some(0)) => "The data have no earlier moment: all codes of an encounter are given, so the prediction is \
                            made at its end."
            .into(),
        (None, Some(_)) => "Encounters have a prediction time, and what was recorded later was left out.".into(),
        (None, None) => "The data that the run learned from are not at hand: whether they have prediction times is not \
                         known."
            .into(),
    });
    let choices = [
        ("early_ends", "Encounters that end within the observed hours", ["are left out", "are kept"]),
        ("after_discharge", "Codes recorded after the end of the encounter", ["are left out", "are kept"]),
        (
            "billed",
            "Diagnoses and undated procedures, which are billed at discharge,",
            ["are left out", "are kept"],
        ),
    ];
    for (name, what, words) in choices {
        let applies = hours.is_some() || name == "after_discharge";
        let choice = preparation.text(name).filter(|_| applies);
        points.extend(choice.map(|choice| format!("{what} {}.", words[usize::from(choice == "keep")])));
    }
    points
}

/// Sources whose names of context are known to this program.
const OUR_SOURCES: [&str; 9] =
    ["eicu", "mimic4", "mimic3", "meds", "omop", "claims", "synthea", "fhir", "events"];

/// Context that is known only after the encounter, or later.
pub(super) fn hindsight(preparation: &Preparation) -> Vec<&str> {
    let kind = preparation.kind();
    // Of other sources a name does not say when its value is known.
    let is_ours = OUR_SOURCES.contains(&kind);
    let is_late = |name: &&str| {
        is_ours && ["discharge", "length_of_stay"].contains(name)
            || (kind == "synthea" && *name == "marital_status")
    };
    preparation.context().into_iter().filter(is_late).collect()
}
