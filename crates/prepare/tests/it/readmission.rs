//! The label `readmission` of several sources: in how many days, and which visits count.

use std::path::Path;

use serde_json::json;

use super::{json, lines, mimic, synthea, write};

/// What a dataset says of the label that begins with `readmission`, by encounter.
fn readmission(home: &Path, line: &str) -> String {
    json(home, &format!("{line} --min-codes 0 --out data --force"));
    let found = lines(&home.join("data")).into_iter().map(|line| {
        let label =
            line.split(", ").find(|part| part.starts_with("readmission")).unwrap_or("none").to_owned();
        format!("{} {label}", line.split(' ').next().unwrap())
    });
    found.collect::<Vec<_>>().join("; ")
}

#[test]
fn another_number_of_days_is_another_label() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &mimic::TABLES);
    // Discharged on 5 January at noon, and admitted on 20 January at 8.
    let first = |days: &str| readmission(home.path(), &format!("mimic4 iv {days}"))[..24].to_owned();
    assert_eq!(first("--readmission-days 15"), "101 readmission_15=true;");
    assert_eq!(first("--readmission-days 14"), "101 readmission_14=false");
    assert_eq!(first("--readmission-days 30"), "101 readmission=true; 10");
    let line = "mimic4 iv --dry-run --min-codes 0 --readmission-days 14";
    assert_eq!(json(home.path(), line)["options"]["readmission_days"], 14);
    // It is free where everything else is that of another dataset.
    json(home.path(), "mimic4 iv --out old --readmission-days 14");
    let like =
        |flags: &str| json(home.path(), &format!("mimic4 iv --dry-run --like old {flags}"))["labels"].clone();
    assert!(like("")["readmission_14"].is_u64() && like("--readmission-days 30")["readmission"].is_u64());
}

#[test]
fn synthea_has_days_and_acute_care() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &synthea::TABLES);
    let (table, rows) = synthea::TABLES[0];
    let urgent = "e4,2020-01-10T10:00:00Z,2020-01-10T11:00:00Z,p1,urgentcare\n";
    write(home.path(), &[(table, &format!("{rows}{urgent}"))]);
    let first = |flags: &str| {
        let all = readmission(home.path(), &format!("synthea csv {flags}"));
        all.split(';').next().unwrap().to_owned()
    };
    // The second admission begins after exactly 17 days, the visit to urgent care after 7.
    assert_eq!(first("--readmission-days 17"), "e1 readmission_17=true");
    assert_eq!(first("--readmission-days 16"), "e1 readmission_16=false");
    assert_eq!(first("--readmission-days 7 --readmission acute"), "e1 readmission_7=true");
    assert_eq!(first("--readmission-days 6 --readmission acute"), "e1 readmission_6=false");
}

/// Three people with two admissions each, five days apart, the second by way of the emergency room or not, as
/// far as that is known; a visit to the emergency room after three days; and one long after, so that data do
/// not end before.
const OMOP: &str = "visit_occurrence_id,person_id,visit_concept_id,visit_start_date,visit_end_date,admitted_from_concept_id\n\
    1,1,9201,2020-01-01,2020-01-05,0\n2,1,9201,2020-01-10,2020-01-12,8870\n\
    3,2,9201,2020-01-01,2020-01-05,0\n4,2,9201,2020-01-10,2020-01-12,\n\
    5,3,9201,2020-01-01,2020-01-05,0\n6,3,9201,2020-01-10,2020-01-12,581476\n\
    7,4,262,2020-01-01,2020-01-05,0\n8,4,9203,2020-01-08,2020-01-08,0\n\
    9,5,9202,2020-09-01,2020-09-01,0\n";

#[test]
fn omop_tells_who_came_by_way_of_the_emergency_room() {
    let home = tempfile::tempdir().unwrap();
    let conditions =
        "person_id,visit_occurrence_id,condition_concept_id,condition_start_date\n1,1,5,2020-01-01\n";
    write(home.path(), &[("cdm/visit_occurrence.csv", OMOP), ("cdm/condition_occurrence.csv", conditions)]);
    let of = |flags: &str| {
        let all = readmission(home.path(), &format!("omop cdm {flags}"));
        let first = |id: &str| {
            let found = all.split("; ").find(|part| part.starts_with(&format!("{id} "))).unwrap();
            found.rsplit_once('=').unwrap().1.to_owned()
        };
        ["1", "3", "5", "7"].map(first).join(" ")
    };
    assert_eq!(of(""), "true true true false");
    assert_eq!(of("--readmission-days 4"), "false false false false");
    assert_eq!(of("--readmission-days 5"), "true true true false");
    // Where the second admission does not say from where, it is not known whether it was planned.
    assert_eq!(of("--readmission unplanned"), "true ? false false");
    assert_eq!(of("--readmission acute"), "true true true true");
    assert_eq!(of("--readmission acute --readmission-days 2"), "false false false false");
}

#[test]
fn claims_tell_the_type_of_admission() {
    let home = tempfile::tempdir().unwrap();
    let claim = |id: &str, who: &str, from: &str, thru: &str, how: &str| {
        format!("{id},{who},2020-{from},2020-{thru},Inpatient,I10,ICD10CM,{how}\n")
    };
    let rows = [
        claim("a1", "a", "01-01", "01-05", ""),
        claim("a2", "a", "01-10", "01-12", "1"),
        claim("b1", "b", "01-01", "01-05", ""),
        claim("b2", "b", "01-10", "01-12", "Elective"),
        claim("c1", "c", "01-01", "01-05", ""),
        claim("c2", "c", "01-10", "01-12", "9"),
        claim("d1", "d", "09-01", "09-02", "1"),
    ];
    let header = "claim_id,subject_id,from_date,thru_date,type,code,code_type,admission_type\n";
    write(home.path(), &[("claims.csv", &(header.to_owned() + &rows.concat()))]);
    let of = |flags: &str| {
        let all = readmission(home.path(), &format!("claims claims.csv {flags}"));
        let of_first = all.split("; ").filter(|part| part[1..].starts_with('1'));
        of_first.map(|part| part.rsplit_once('=').unwrap().1.to_owned()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(of(""), "true true true ?");
    assert_eq!(of("--readmission unplanned"), "true false ? ?");
    assert_eq!(of("--readmission-days 4"), "false false false ?");
    assert_eq!(of("--readmission unplanned --readmission-days 5"), "true false ? ?");
}

#[test]
fn fhir_has_days_and_acute_care() {
    let home = tempfile::tempdir().unwrap();
    let encounter = |id: &str, class: &str, start: &str, end: &str| {
        json!({"resourceType": "Encounter", "id": id, "status": "finished", "class": {"code": class},
               "subject": {"reference": "Patient/p"}, "period": {"start": start, "end": end}})
    };
    let all = [
        encounter("e1", "IMP", "2020-01-01", "2020-01-05T10:00:00Z"),
        encounter("e2", "EMER", "2020-01-08T09:00:00Z", "2020-01-08T10:00:00Z"),
        encounter("e3", "NONACUTE", "2020-01-15T10:00:00Z", "2020-01-20"),
        encounter("e4", "AMB", "2020-09-01", "2020-09-01"),
    ];
    let lines: String = all.iter().map(|one| format!("{one}\n")).collect();
    write(home.path(), &[("all.ndjson", &lines)]);
    let first = |flags: &str| {
        let all = readmission(home.path(), &format!("fhir all.ndjson {flags}"));
        all.split(';').next().unwrap().to_owned()
    };
    assert_eq!(first(""), "e1 readmission=true");
    assert_eq!(first("--readmission-days 10"), "e1 readmission_10=true");
    assert_eq!(first("--readmission-days 9"), "e1 readmission_9=false");
    assert_eq!(first("--readmission-days 9 --readmission acute"), "e1 readmission_9=true");
    assert_eq!(first("--readmission-days 2 --readmission acute"), "e1 readmission_2=false");
}
