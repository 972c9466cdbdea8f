//! The rows of a resource.

use serde::Deserialize;
use serde_json::Value;

use super::List;
use super::codes::{Coded, Coding, Concept, coded};
use super::moment::{Moment, NOT_A_TIME, known, known_period};
use super::references::{Addresses, Reference, Scope, Target, last_part};
use super::sheet::Row;

/// What is wrong with a resource, without a value of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) path: String,
    pub(super) problem: String,
}

#[derive(Deserialize)]
struct Identified {
    id: Option<String>,
    meta: Option<Meta>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    last_updated: Option<Moment>,
}

#[derive(Deserialize)]
struct Period {
    start: Option<Moment>,
    end: Option<Moment>,
}

#[derive(Deserialize)]
struct Quantity {
    value: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Encounter {
    status: Option<String>,
    class: Option<Coding>,
    subject: Option<Reference>,
    part_of: Option<Reference>,
    period: Option<Period>,
    diagnosis: List<EncounterDiagnosis>,
}

#[derive(Deserialize)]
struct EncounterDiagnosis {
    condition: Option<Reference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    verification_status: Option<Concept>,
    code: Option<Concept>,
    encounter: Option<Reference>,
    /// What R4's `encounter` was called before, and still is in data that calls itself R4.
    context: Option<Reference>,
    #[serde(default, deserialize_with = "known")]
    recorded_date: Option<i64>,
    #[serde(default, deserialize_with = "known")]
    onset_date_time: Option<i64>,
    #[serde(default, deserialize_with = "known_period")]
    onset_period: Option<i64>,
}

impl Condition {
    /// When it is known: when it was recorded, or else when it began.
    fn time(&self) -> Option<i64> {
        self.recorded_date.or(self.onset_date_time).or(self.onset_period)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Treatment {
    status: Option<String>,
    do_not_perform: Option<bool>,
    /// Of a procedure.
    code: Option<Concept>,
    /// Of a medication request.
    medication_codeable_concept: Option<Concept>,
    medication_reference: Option<Reference>,
    encounter: Option<Reference>,
    context: Option<Reference>,
    reason_code: List<Concept>,
    reason_reference: List<Reference>,
    /// Of a procedure.
    #[serde(default, deserialize_with = "known")]
    performed_date_time: Option<i64>,
    #[serde(default, deserialize_with = "known_period")]
    performed_period: Option<i64>,
    /// Of a medication request.
    #[serde(default, deserialize_with = "known")]
    authored_on: Option<i64>,
}

#[derive(Deserialize)]
struct Medication {
    code: Option<Concept>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Observation {
    status: Option<String>,
    category: List<Concept>,
    encounter: Option<Reference>,
    context: Option<Reference>,
    component: List<Measured>,
    /// When the result was made available.
    #[serde(default, deserialize_with = "known")]
    issued: Option<i64>,
    #[serde(default, deserialize_with = "known")]
    effective_date_time: Option<i64>,
    #[serde(default, deserialize_with = "known")]
    effective_instant: Option<i64>,
    #[serde(default, deserialize_with = "known_period")]
    effective_period: Option<i64>,
}

/// What an observation says, and what each of its components says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Measured {
    code: Option<Concept>,
    value_quantity: Option<Quantity>,
    value_integer: Option<f64>,
    value_codeable_concept: Option<Concept>,
    value_string: Option<String>,
    value_boolean: Option<bool>,
    data_absent_reason: Option<Concept>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Patient {
    deceased_boolean: Option<bool>,
    deceased_date_time: Option<Moment>,
    gender: Option<String>,
    birth_date: Option<Moment>,
}

/// Reads a part of a resource as what FHIR says that it is.
fn read<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let said = error.inner().to_string();
        // What was found comes first and can be a value; what was expected comes last and is ours.
        let problem = match said.rsplit_once(", expected ").map(|(_, expected)| expected) {
            _ if said == NOT_A_TIME => NOT_A_TIME.into(),
            Some("a string") => "expected text".into(),
            Some("a sequence") => "expected a list".into(),
            Some("a boolean") => "expected true or false".into(),
            Some("f64") => "expected a number".into(),
            Some(expected) if expected.starts_with("struct ") => "expected an object".into(),
            _ => "is not what FHIR R4 has there".into(),
        };
        Problem { path: if path == "." { String::new() } else { path }, problem }
    })
}

/// The rows of a resource, each with the name of its table.
pub(super) fn rows(
    kind: &str,
    resource: &Value,
    number: u64,
    address: Option<&str>,
    addresses: &Addresses,
) -> Result<Vec<(&'static str, Row)>, Problem> {
    let Identified { id, meta } = read(resource)?;
    let id = id.or_else(|| address.map(|address| last_part(address).to_owned()));
    let id = id.filter(|id| !id.trim().is_empty());
    let id = id.ok_or_else(|| Problem { path: "id".into(), problem: "is missing".into() })?;
    let contained = resource.get("contained").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let scope = Scope { contained, addresses };
    let updated = meta.and_then(|meta| meta.last_updated).map(|moment| moment.at);
    let row = Row { id, resource: number, updated, ..Row::default() };
    match kind {
        "Encounter" => encounter(row, read(resource)?, &scope),
        "Condition" => {
            let found: Condition = read(resource)?;
            let time = found.time();
            let Condition { verification_status, code, encounter, context, .. } = found;
            let Coded { code, description } = coded(code.as_ref());
            let status = ["entered-in-error", "refuted"]
                .into_iter()
                .find(|status| verification_status.as_ref().is_some_and(|found| found.has(status)));
            let encounter = scope.id(encounter.or(context).as_ref(), "Encounter");
            let status = status.map(str::to_owned);
            Ok(vec![("condition", Row { encounter, status, code, description, time, ..row })])
        }
        "Procedure" => treatment("procedure", row, read(resource)?, &scope),
        "MedicationRequest" => treatment("medication_request", row, read(resource)?, &scope),
        "Medication" => {
            let Coded { code, description } = coded(read::<Medication>(resource)?.code.as_ref());
            Ok(vec![("medication", Row { code, description, ..row })])
        }
        "Observation" => Ok(observations(row, read(resource)?, read(resource)?, &scope)),
        _ => {
            let Patient { deceased_boolean, deceased_date_time, gender, birth_date } = read(resource)?;
            let deceased = Some(deceased_date_time.is_some() || deceased_boolean == Some(true));
            let deceased_day = deceased_date_time.and_then(|moment| moment.day);
            let birth_date = birth_date.map(|moment| moment.at);
            Ok(vec![("patient", Row { deceased, deceased_day, gender, birth_date, ..row })])
        }
    }
}

fn encounter(row: Row, found: Encounter, scope: &Scope<'_>) -> Result<Vec<(&'static str, Row)>, Problem> {
    let (start, end) = found.period.map_or((None, None), |period| (period.start, period.end));
    let mut rows = vec![];
    for diagnosis in found.diagnosis.iter().flatten() {
        rows.extend(reason(&row, scope.target(diagnosis.condition.as_ref(), "Condition"))?);
    }
    rows.push((
        "encounter",
        Row {
            status: found.status,
            class: found.class.and_then(|class| class.code),
            patient: scope.id(found.subject.as_ref(), "Patient"),
            part_of: scope.id(found.part_of.as_ref(), "Encounter"),
            start: start.map(|moment| moment.at),
            stop: end.map(|moment| moment.at),
            last_day: end.or(start).and_then(|moment| moment.day),
            time: end.map(|moment| moment.over),
            ..row
        },
    ));
    Ok(rows)
}

/// A reason that is a condition.
fn reason(row: &Row, target: Option<Target<'_>>) -> Result<Option<(&'static str, Row)>, Problem> {
    let mut reason = Row { resource: row.resource, ..Row::default() };
    match target {
        None => return Ok(None),
        Some(Target::Id(id)) => reason.condition = Some(id),
        Some(Target::Inside(inside)) => {
            let found: Condition = within("contained", read(inside))?;
            reason.time = found.time();
            Coded { code: reason.code, description: reason.description } = coded(found.code.as_ref());
        }
    }
    Ok(Some(("reason", reason)))
}

fn treatment(
    table: &'static str,
    row: Row,
    found: Treatment,
    scope: &Scope<'_>,
) -> Result<Vec<(&'static str, Row)>, Problem> {
    let mut rows = vec![];
    for concept in found.reason_code.iter().flatten() {
        let Coded { code, description } = concept.coded();
        rows.push(("reason", Row { resource: row.resource, code, description, ..Row::default() }));
    }
    for reference in found.reason_reference.iter().flatten() {
        rows.extend(reason(&row, scope.target(Some(reference), "Condition"))?);
    }
    let own = found.code.or(found.medication_codeable_concept);
    let (coded, medication) = match scope.target(found.medication_reference.as_ref(), "Medication") {
        Some(Target::Inside(inside)) => {
            let found: Medication = within("contained", read(inside))?;
            (coded(found.code.as_ref()), None)
        }
        Some(Target::Id(id)) => (coded(own.as_ref()), Some(id)),
        None => (coded(own.as_ref()), None),
    };
    rows.push((
        table,
        Row {
            encounter: scope.id(found.encounter.or(found.context).as_ref(), "Encounter"),
            status: found.status,
            do_not_perform: found.do_not_perform,
            code: coded.code,
            description: coded.description,
            medication,
            time: found.performed_date_time.or(found.performed_period).or(found.authored_on),
            ..row
        },
    ));
    Ok(rows)
}

/// The same problem, in a part.
fn within<T>(part: &str, result: Result<T, Problem>) -> Result<T, Problem> {
    result.map_err(|problem| Problem { path: format!("{part}.{}", problem.path), ..problem })
}

/// Its own value, and those of its components. One that has only components says nothing itself.
fn observations(row: Row, found: Observation, own: Measured, scope: &Scope<'_>) -> Vec<(&'static str, Row)> {
    let categories: Vec<&Concept> = found.category.iter().flatten().collect();
    let category = if categories.iter().any(|category| category.has("laboratory")) {
        Some("laboratory".to_owned())
    } else {
        let codings = categories.iter().flat_map(|category| category.coding.iter().flatten());
        codings.filter_map(|coding| coding.code.clone()).next()
    };
    let encounter = scope.id(found.encounter.or(found.context).as_ref(), "Encounter");
    let taken = found.effective_date_time.or(found.effective_instant).or(found.effective_period);
    let row = Row { encounter, status: found.status, category, time: found.issued.or(taken), ..row };
    let components: Vec<Row> =
        found.component.into_iter().flatten().map(|component| component.row(row.clone())).collect();
    let own = own.row(row);
    let has_value = own.value.is_some() || own.numeric_value.is_some();
    let own = (has_value || components.is_empty()).then_some(own);
    own.into_iter().chain(components).map(|row| ("observation", row)).collect()
}

impl Measured {
    /// A number, or else a word.
    fn row(self, row: Row) -> Row {
        let Coded { code, description } = coded(self.code.as_ref());
        let numeric_value = self.value_quantity.and_then(|quantity| quantity.value).or(self.value_integer);
        let word = match (self.value_codeable_concept, self.value_string, self.value_boolean) {
            (Some(concept), ..) => {
                let Coded { code, description } = concept.coded();
                Coded { code: code.or_else(|| description.clone()), description }
            }
            (None, Some(text), _) => Coded {
                code: Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
                description: None,
            },
            (None, None, Some(value)) => Coded { code: Some(value.to_string()), description: None },
            (None, None, None) => Coded::default(),
        };
        let (value, value_description) =
            if numeric_value.is_some() { (None, None) } else { (word.code, word.description) };
        let absent = numeric_value.is_none() && value.is_none() && self.data_absent_reason.is_some();
        Row { code, description, numeric_value, value, value_description, absent: Some(absent), ..row }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn flat(resource: &Value) -> Result<Vec<(&'static str, Row)>, Problem> {
        rows(resource["resourceType"].as_str().unwrap(), resource, 7, None, &Addresses::new())
    }

    #[test]
    fn components_are_observations_of_their_own() {
        let loinc = |code: &str| json!({"coding": [{"system": "http://loinc.org", "code": code}]});
        let pressure = json!({
            "resourceType": "Observation", "id": "o", "code": loinc("85354-9"),
            "encounter": {"reference": "Encounter/e"},
            "category": [{"coding": [{"code": "vital-signs"}]}, {"coding": [{"code": "laboratory"}]}],
            "component": [
                {"code": loinc("8480-6"), "valueQuantity": {"value": 120}},
                {"code": loinc("8462-4"), "valueCodeableConcept": {"text": "low"}},
                {"code": loinc("8478-0"), "dataAbsentReason": {"text": "unknown"}},
            ],
        });
        let rows = flat(&pressure).unwrap();
        let shown: Vec<String> = rows
            .iter()
            .map(|(table, row)| {
                format!(
                    "{table} {} {} {:?} {:?} {:?} {}",
                    row.resource,
                    row.code.as_deref().unwrap(),
                    row.numeric_value,
                    row.value,
                    row.absent,
                    row.category.as_deref().unwrap()
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "observation 7 LOINC:8480-6 Some(120.0) None Some(false) laboratory",
                "observation 7 LOINC:8462-4 None Some(\"low\") Some(false) laboratory",
                "observation 7 LOINC:8478-0 None None Some(true) laboratory",
            ]
        );
    }

    #[test]
    fn what_is_not_fhir_is_named_by_its_path_and_not_by_its_value() {
        let problem = |resource: Value| {
            let Problem { path, problem } = flat(&resource).unwrap_err();
            format!("{path}: {problem}")
        };
        let secret = "PATIENT-4711, expected a string";
        for (resource, expected) in [
            (json!({"resourceType": "Condition"}), "id: is missing"),
            (json!({"resourceType": "Condition", "id": 4711}), "id: expected text"),
            (
                json!({"resourceType": "Condition", "id": "c", "code": {"coding": secret}}),
                "code.coding: expected a list",
            ),
            (
                json!({"resourceType": "Condition", "id": "c", "code": {"coding": [{"code": [secret]}]}}),
                "code.coding[0].code: expected text",
            ),
            (json!({"resourceType": "Encounter", "id": "e", "class": secret}), "class: expected an object"),
            (
                json!({"resourceType": "Encounter", "id": "e", "period": {"end": secret}}),
                "period.end: expected a date or time",
            ),
            (
                json!({"resourceType": "Observation", "id": "o", "valueQuantity": {"value": secret}}),
                "valueQuantity.value: expected a number",
            ),
            (
                json!({"resourceType": "Patient", "id": "p", "deceasedBoolean": secret}),
                "deceasedBoolean: expected true or false",
            ),
        ] {
            assert_eq!(problem(resource), expected);
        }
    }
}
