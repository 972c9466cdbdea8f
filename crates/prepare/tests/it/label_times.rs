//! Labels for a moment, of sources in which every table has its own times: what was not known by then is cut.

use serde_json::{Value, json};

use super::claims::SYNPUF;
use super::{json, lines, write};

/// Synthea's newer layout: days of conditions, moments of everything else.
const SYNTHEA: [(&str, &str); 5] = [
    (
        "csv/encounters.csv",
        "Id,START,STOP,PATIENT,ENCOUNTERCLASS\n\
         e1,2020-01-01T10:00:00Z,2020-01-03T10:00:00Z,p1,inpatient\n\
         e2,2020-01-01T10:00:00Z,2020-03-03T10:00:00Z,p2,inpatient\n",
    ),
    (
        "csv/conditions.csv",
        "START,ENCOUNTER,CODE\n2020-01-01,e1,1\n2020-01-02,e1,2\nsoon,e1,3\n,e1,4\n2020-01-02,e2,1\nsoon,e2,3\n",
    ),
    (
        "csv/procedures.csv",
        "START,STOP,ENCOUNTER,CODE,REASONCODE\n\
         2020-01-01T11:00:00Z,,e1,10,1\n\
         2020-01-02T12:00:01Z,,e1,11,2\n\
         2020-01-01T12:00:00Z,,e1,12,\n\
         2020-01-03T08:00:00Z,,e1,12,1\n\
         2020-02-01T08:00:00Z,,e2,10,1\n",
    ),
    ("csv/medications.csv", "START,ENCOUNTER,CODE\n2020-01-02T12:00:00Z,e1,77\n"),
    (
        "csv/observations.csv",
        "DATE,ENCOUNTER,CODE,VALUE,TYPE\n\
         2020-01-02T11:59:59Z,e1,L1,5.5,numeric\n2020-01-03T08:00:00Z,e1,L2,7.5,numeric\n",
    ),
];

const LABELS: &str = "encounter_id,late,prediction_time\ne1,1,2020-01-02 12:00:00\ne2,0,\n";

#[test]
fn events_and_edges_of_synthea_are_cut() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &SYNTHEA);
    write(home.path(), &[("labels.csv", LABELS)]);
    let line = "synthea csv --lab-bins 0 --context none";
    // Without a moment nothing is dropped, not even rows whose time cannot be read.
    let plain = json(home.path(), &format!("{line} --out plain"));
    assert_eq!((&plain["events_dropped"], &plain["rows_unreadable"]), (&json!({}), &json!({})));
    assert_eq!(
        lines(&home.path().join("plain"))[0],
        "e1 of p1: SNOMED:1 SNOMED:2 SNOMED:3 SNOMED:4 | RXNORM:77 SNOMED:10 SNOMED:11 SNOMED:12 | \
         LOINC:L1 LOINC:L2, SNOMED:1>SNOMED:10, SNOMED:1>SNOMED:12, SNOMED:2>SNOMED:11, readmission=false"
    );
    let counts = json(home.path(), &format!("{line} --out data --labels labels.csv"));
    let found = lines(&home.path().join("data"));
    // The second condition is of a day that is not over; the second procedure comes a second late, with its
    // reason, and so does the reason of the third, which is known before.
    assert_eq!(
        found,
        [
            "e1 of p1: SNOMED:1 | RXNORM:77 SNOMED:10 SNOMED:12 | LOINC:L1, SNOMED:1>SNOMED:10, \
             readmission=false, late=true",
            "e2 of p2: SNOMED:1 SNOMED:3 | SNOMED:10 | , SNOMED:1>SNOMED:10, readmission=?, late=false",
        ]
    );
    assert_eq!(counts["events_dropped"], json!({"after_prediction": 6, "no_time": 2}));
    assert_eq!(counts["links_dropped"], json!({"after_prediction": 1, "unknown_cause": 1}));
    assert_eq!(counts["unbalanced"], json!([]));
}

fn coded(system: &str, code: &str) -> Value {
    json!({"coding": [{"system": system, "code": code}]})
}

/// A resource of an encounter with a code, and what else it has.
fn resource(kind: &str, id: &str, encounter: &str, code: &str, more: Value) -> Value {
    let mut resource = json!({
        "resourceType": kind, "id": id, "encounter": {"reference": format!("Encounter/{encounter}")},
    });
    let (field, system) = match kind {
        "MedicationRequest" => ("medicationCodeableConcept", "http://www.nlm.nih.gov/research/umls/rxnorm"),
        "Observation" => ("code", "http://loinc.org"),
        _ => ("code", "http://snomed.info/sct"),
    };
    resource[field] = coded(system, code);
    let Value::Object(more) = more else { panic!("fields are an object") };
    resource.as_object_mut().unwrap().extend(more);
    resource
}

fn fhir() -> String {
    let encounter = |id: &str, patient: &str, conditions: &[&str]| {
        let diagnosis =
            conditions.iter().map(|id| json!({"condition": {"reference": format!("Condition/{id}")}}));
        json!({
            "resourceType": "Encounter", "id": id, "subject": {"reference": format!("Patient/{patient}")},
            "class": {"code": "AMB"}, "diagnosis": diagnosis.collect::<Vec<_>>(),
            "period": {"start": "2020-01-01T10:00:00Z", "end": "2020-01-03T10:00:00Z"},
        })
    };
    let because = |id: &str| json!([{"reference": format!("Condition/{id}")}]);
    let resources = [
        encounter("e1", "p1", &["c1", "c5"]),
        encounter("e2", "p2", &[]),
        // Recorded later than it began; of a day; of a month; of no time; of an earlier encounter.
        resource(
            "Condition",
            "c1",
            "e1",
            "1",
            json!({"recordedDate": "2020-01-01T11:00:00Z", "onsetDateTime": "2019"}),
        ),
        resource("Condition", "c2", "e1", "2", json!({"onsetDateTime": "2020-01-02"})),
        resource("Condition", "c3", "e1", "3", json!({"onsetPeriod": {"start": "2019-12"}})),
        resource("Condition", "c4", "e1", "4", json!({"recordedDate": "soon"})),
        resource("Condition", "c5", "e0", "5", json!({"recordedDate": "2019-01-01"})),
        resource(
            "Procedure",
            "x1",
            "e1",
            "10",
            json!({"performedDateTime": "2020-01-01T12:00:00Z", "reasonReference": because("c1")}),
        ),
        resource(
            "Procedure",
            "x2",
            "e1",
            "11",
            json!({"performedPeriod": {"start": "2020-01-02T13:00:00Z"}}),
        ),
        resource(
            "MedicationRequest",
            "r1",
            "e1",
            "77",
            json!({"authoredOn": "2020-01-02T12:00:00Z", "reasonReference": because("c2")}),
        ),
        resource("MedicationRequest", "r2", "e1", "78", json!({})),
        // A result is known when it is issued.
        resource(
            "Observation",
            "l1",
            "e1",
            "L1",
            json!({"effectiveDateTime": "2020-01-02T08:00:00Z", "issued": "2020-01-02T14:00:00Z"}),
        ),
        resource("Observation", "l2", "e1", "L2", json!({"effectiveDateTime": "2020-01-02T08:00:00Z"})),
        resource("Observation", "l3", "e1", "L3", json!({"effectivePeriod": {"start": "2020"}})),
        resource("Condition", "c6", "e2", "1", json!({"recordedDate": 7})),
        resource("Procedure", "x3", "e2", "10", json!({})),
    ];
    resources.iter().map(|resource| format!("{resource}\n")).collect()
}

#[test]
fn events_of_fhir_are_cut() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("all.ndjson", &fhir()), ("labels.csv", LABELS)]);
    let line = "fhir all.ndjson --lab-bins 0 --context none";
    let plain = json(home.path(), &format!("{line} --out plain"));
    assert_eq!(
        (&plain["events_dropped"]["no_encounter"], &plain["rows_unreadable"]),
        (&json!(1), &json!({}))
    );
    assert_eq!(
        lines(&home.path().join("plain")),
        [
            "e1 of p1: SNOMED:1 SNOMED:2 SNOMED:3 SNOMED:4 SNOMED:5 | RXNORM:77 RXNORM:78 SNOMED:10 SNOMED:11 | \
             LOINC:L1 LOINC:L2 LOINC:L3, SNOMED:1>SNOMED:10, SNOMED:2>RXNORM:77",
            "e2 of p2: SNOMED:1 | SNOMED:10 | ",
        ]
    );
    let counts = json(home.path(), &format!("{line} --out data --labels labels.csv"));
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "e1 of p1: SNOMED:1 SNOMED:3 | RXNORM:77 SNOMED:10 | LOINC:L2, SNOMED:1>SNOMED:10, late=true",
            "e2 of p2: SNOMED:1 | SNOMED:10 | , late=false",
        ]
    );
    // The diagnoses that the encounter refers to are known when it is over, the reason of the medication not
    // before its condition.
    assert_eq!(counts["events_dropped"], json!({"after_prediction": 7, "no_encounter": 1, "no_time": 2}));
    assert_eq!(counts["unbalanced"], json!([]));
}

#[test]
fn rows_of_claims_are_known_when_their_last_day_is_over() {
    let home = tempfile::tempdir().unwrap();
    let claims = "claim_id,subject_id,from_date,thru_date,code,code_type\n\
        c1,p1,2020-01-01,,I10,ICD10CM\n\
        c1,p1,2020-01-01,2020-01-03,99213,CPT\n\
        c1,p1,2020-01-02,,718-7,LOINC\n\
        c1,p1,,,E11,ICD10CM\n\
        c2,p2,2020-01-05,,I10,ICD10CM\n\
        c2,p2,,,99213,CPT\n";
    let labels = "encounter_id,late,prediction_time\nc1,1,2020-01-03\nc2,0,\n";
    write(home.path(), &[("claims.csv", claims), ("labels.csv", labels)]);
    let line = "claims claims.csv --min-codes 0 --context none";
    let counts = json(home.path(), &format!("{line} --out data --labels labels.csv"));
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "c1 of p1: ICD10CM:I10 |  | LOINC:718-7, late=true",
            "c2 of p2: ICD10CM:I10 | CPT:99213 | , late=false"
        ]
    );
    assert_eq!(counts["events_dropped"], json!({"after_prediction": 1, "no_time": 1}));
    assert_eq!(counts["unbalanced"], json!([]));
    // Wide ones: a segment without dates has no time, a prescription its own day.
    write(home.path(), &SYNPUF);
    let labels = "encounter_id,late,prediction_time\n101,1,2010-03-14\n103,0,2009-04-15\n";
    write(home.path(), &[("labels.csv", labels)]);
    let line = "claims synpuf --min-codes 0 --context none --prescriptions link_by_date --types inpatient";
    let counts = json(home.path(), &format!("{line} --out wide --labels labels.csv"));
    let found = lines(&home.path().join("wide"));
    assert!(
        found[0].starts_with("101 of 00013D: ICD9DX:0380 ICD9DX:4580 ICD9DX:7802 | ICD9PROC:0066 | , "),
        "{found:?}"
    );
    assert!(found[2].starts_with("103 of 00016F:  | NDC:00049398025 | , "), "{found:?}");
    assert_eq!(counts["events_dropped"]["after_prediction"], 2);
    assert_eq!(counts["events_dropped"]["no_time"], 2);
}
