use serde_json::json;

use super::{json, lines, test_data, write};

pub(super) const TABLES: [(&str, &str); 6] = [
    (
        "csv/encounters.csv",
        "Id,START,STOP,PATIENT,ENCOUNTERCLASS\n\
         e1,2020-01-01T10:00:00Z,2020-01-03T10:00:00Z,p1,inpatient\n\
         e2,2020-01-20T10:00:00Z,2020-01-21T10:00:00Z,p1,inpatient\n\
         e3,2020-05-01T10:00:00Z,2020-05-01T11:00:00Z,p2,wellness\n",
    ),
    ("csv/patients.csv", "Id,DEATHDATE\np1,2020-01-21\np2,\n"),
    ("csv/conditions.csv", "START,ENCOUNTER,CODE,DESCRIPTION\n2020-01-01,e1,1,Flu\n2020-05-01,e3,2,Cold\n"),
    (
        "csv/procedures.csv",
        "DATE,ENCOUNTER,CODE,DESCRIPTION,REASONCODE\n2020-01-01,e1,10,Scan,1\n2020-01-20,e2,10,Scan,1\n",
    ),
    (
        "csv/medications.csv",
        "START,ENCOUNTER,CODE,DESCRIPTION,REASONCODE\n2020-01-01,e1,77,Pill,\n2020-05-01,e3,77,Pill,\n",
    ),
    (
        "csv/observations.csv",
        "DATE,ENCOUNTER,CODE,DESCRIPTION,VALUE,UNITS,TYPE\n2020-01-01,e1,L1,Iron,5.5,mg,numeric\n2020-01-20,e2,L1,Iron,7.5,mg,numeric\n2020-01-01,e1,L2,Mood,fine,,text\n",
    ),
];

#[test]
fn reasons_are_diagnoses_and_true_edges() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let counts = json(home.path(), "synthea csv --out data --lab-bins 2");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "e1 of p1: SNOMED:1 | RXNORM:77 SNOMED:10 | LOINC:L1//1-of-2 LOINC:L2=fine, SNOMED:1>SNOMED:10, readmission=true, mortality=false",
            "e2 of p1: SNOMED:1 | SNOMED:10 | LOINC:L1//2-of-2, SNOMED:1>SNOMED:10, readmission=?, mortality=true",
            "e3 of p2: SNOMED:2 | RXNORM:77 | , readmission=?, mortality=false",
        ]
    );
    assert_eq!((&counts["edges"], &counts["encounters_with_edges"]), (&json!(2), &json!(2)));
    let inpatient = json(home.path(), "synthea csv --dry-run --classes inpatient,emergency");
    assert_eq!(inpatient["dropped"], json!({"other_class": 1}));
}

#[test]
fn real_synthea_output_gives_edges() {
    let Some(data) = test_data("synthea") else { return };
    let home = tempfile::tempdir().unwrap();
    let counts = json(home.path(), &format!("synthea {} --out data", data.display()));
    assert_eq!(counts["encounters_read"], 604);
    assert!(counts["edges"].as_u64().unwrap() > 100, "{counts}");
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    assert_eq!(json!(dataset.manifest().encounters), counts["encounters_kept"]);
    assert!(dataset.manifest().source.findings["lab_bounds"].as_object().unwrap().len() > 10);
}

#[test]
fn an_admission_within_another_is_no_readmission_and_what_has_no_end_is_unknown() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "csv/encounters.csv",
                "Id,START,STOP,PATIENT,ENCOUNTERCLASS\n\
             e1,2020-01-01T10:00:00Z,2020-01-09T10:00:00Z,p1,inpatient\n\
             e2,2020-01-03T10:00:00Z,2020-01-04T10:00:00Z,p1,inpatient\n\
             e3,2020-02-01T10:00:00Z,,p1,inpatient\n",
            ),
            ("csv/conditions.csv", "ENCOUNTER,CODE\ne1,1\ne2,1\ne3,1\ne3,\n"),
            ("csv/procedures.csv", "ENCOUNTER,CODE\ne1,10\ne2,10\ne3,10\n"),
        ],
    );
    let counts = json(home.path(), "synthea csv --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "e1 of p1: SNOMED:1 | SNOMED:10 | , readmission=true",
            "e2 of p1: SNOMED:1 | SNOMED:10 | , readmission=true",
            "e3 of p1: SNOMED:1 | SNOMED:10 | , readmission=?",
        ]
    );
    assert_eq!(counts["events_dropped"], json!({"no_code": 1}));
}

#[test]
fn readmission_is_unknown_where_nobody_could_have_seen_it() {
    let home = tempfile::tempdir().unwrap();
    let encounters = "Id,START,STOP,PATIENT,ENCOUNTERCLASS\n\
        alive,2020-01-01,2020-01-02,p1,Inpatient\n\
        died,2020-01-01,2020-01-02,p2,inpatient\n\
        died_later,2020-01-01,2020-01-02,p3,inpatient\n\
        died_then,2020-01-01,2020-01-02,p4,inpatient\n\
        again,2020-01-20T10:00:00,2020-01-21T23:30:00-05:00,p4,inpatient\n\
        recent,2020-03-01,2020-03-02,p5,inpatient\n";
    let patients = "Id,DEATHDATE\np1,\np2,2020-01-02\np3,2020-01-30\np4,2020-01-21\np5,\n";
    let ids = ["alive", "died", "died_later", "died_then", "again", "recent"];
    let codes = ids.map(|id| format!("{id},1\n")).concat();
    write(
        home.path(),
        &[
            ("csv/encounters.csv", encounters),
            ("csv/patients.csv", patients),
            ("csv/conditions.csv", &format!("ENCOUNTER,CODE\n{codes}")),
            ("csv/procedures.csv", &format!("ENCOUNTER,CODE\n{codes}")),
        ],
    );
    json(home.path(), "synthea csv --out data");
    let labels: Vec<String> = lines(&home.path().join("data"))
        .iter()
        .map(|line| format!("{} {}", line.split(' ').next().unwrap(), line.split(" | , ").nth(1).unwrap()))
        .collect();
    assert_eq!(
        labels,
        [
            "again readmission=?, mortality=true",
            "alive readmission=false, mortality=false",
            "died readmission=?, mortality=true",
            "died_later readmission=?, mortality=false",
            "died_then readmission=true, mortality=false",
            "recent readmission=?, mortality=false",
        ]
    );
}
