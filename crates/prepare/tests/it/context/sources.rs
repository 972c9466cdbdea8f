//! What each source knows of encounters beside codes; by hand, and of real data.

use std::collections::BTreeMap;
use std::path::Path;

use gct::dataset::Dataset;
use serde_json::json;

use super::super::{json, test_data, write};
use super::{EICU, contexts, settings};

#[test]
fn eicu_knows_the_patient_the_unit_and_where_they_come_from() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &EICU);
    let counts = json(home.path(), "eicu eicu --out data");
    assert_eq!(
        contexts(&home.path().join("data")),
        [
            "11: admission_source=emergency department, age=90+, earlier_visits=1, ethnicity=caucasian, \
             hospital_admission_source=floor, sex=female, unit=micu",
            "12: age=90+, earlier_visits=0, ethnicity=caucasian, hospital_admission_source=floor, sex=female, \
             unit=med-surg icu",
            "21: admission_source=operating room, age=55-64, earlier_visits=0",
        ]
    );
    // Sixteen codes, and an ethnicity that says that it is not known; no sex of 21.
    assert_eq!((&counts["context_read"], &counts["context_kept"]), (&json!(17), &json!(16)));
    assert_eq!(counts["context_dropped"], json!({"unknown_value": 1}));
    assert_eq!(
        counts["context"],
        json!({"admission_source": 2, "age": 3, "earlier_visits": 3, "ethnicity": 2, "height": 0,
               "hospital_admission_source": 2, "sex": 2, "unit": 2, "weight": 0})
    );
    // Events are what was recorded: three and one diagnoses, three treatments.
    assert_eq!((&counts["events_read"], &counts["events_kept"]), (&json!(7), &json!(7)));
    assert_eq!(counts["unbalanced"], json!([]));
    assert_eq!(
        settings(&home.path().join("data"))["context"],
        json!([
            "admission_source",
            "age",
            "earlier_visits",
            "ethnicity",
            "height",
            "hospital_admission_source",
            "sex",
            "unit",
            "weight"
        ])
    );
}

#[test]
fn mimic_has_the_age_of_an_anchor_year_or_of_a_birth_long_ago() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "iv/hosp/admissions.csv",
                "subject_id,hadm_id,admittime,dischtime,deathtime,admission_type,admission_location,discharge_location,\
                 insurance,language,marital_status,race,hospital_expire_flag\n\
                 1,101,2150-01-01 10:00:00,2150-01-05 12:00:00,,EW EMER.,EMERGENCY ROOM,HOME,Medicare,ENGLISH,MARRIED,WHITE,0\n\
                 1,102,2152-01-20 08:00:00,2152-01-30 08:00:00,,ELECTIVE,,HOME,Medicare,?,WIDOWED,UNKNOWN,0\n\
                 2,201,2150-02-01 00:30:00,2150-02-02 06:00:00,,URGENT,,,,,,UNABLE TO OBTAIN,0\n",
            ),
            (
                "iv/hosp/patients.csv",
                "subject_id,gender,anchor_age,anchor_year,dod\n1,F,63,2149,\n2,M,91,2150,\n",
            ),
            (
                "iv/hosp/diagnoses_icd.csv",
                "subject_id,hadm_id,icd_code,icd_version\n1,101,I10,10\n1,102,I10,10\n2,201,I10,10\n",
            ),
            (
                "iv/hosp/procedures_icd.csv",
                "subject_id,hadm_id,chartdate,icd_code,icd_version\n\
                 1,101,2150-01-02,3893,9\n1,102,2152-01-21,3893,9\n2,201,2150-02-01,3893,9\n",
            ),
            (
                "iv/icu/icustays.csv",
                "subject_id,hadm_id,stay_id,first_careunit,intime,outtime\n\
                 1,101,11,Coronary Care Unit (CCU),2150-01-01 14:00:00,2150-01-03 20:00:00\n",
            ),
            (
                "iii/ADMISSIONS.csv",
                "SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,DEATHTIME,ADMISSION_TYPE,ADMISSION_LOCATION,ETHNICITY,HOSPITAL_EXPIRE_FLAG\n\
                 1,101,2150-01-01 10:00:00,2150-01-05 12:00:00,,EMERGENCY,CLINIC REFERRAL/PREMATURE,ASIAN,0\n\
                 2,201,2150-01-01 10:00:00,2150-01-05 12:00:00,,NEWBORN,,,0\n",
            ),
            (
                "iii/PATIENTS.csv",
                "SUBJECT_ID,GENDER,DOB,DOD\n1,F,1850-01-01 00:00:00,\n2,M,2150-01-01 00:00:00,\n",
            ),
            ("iii/DIAGNOSES_ICD.csv", "SUBJECT_ID,HADM_ID,ICD9_CODE\n1,101,4019\n2,201,V3000\n"),
            ("iii/PROCEDURES_ICD.csv", "SUBJECT_ID,HADM_ID,ICD9_CODE\n1,101,3893\n2,201,9955\n"),
        ],
    );
    json(home.path(), "mimic4 iv --out iv4");
    assert_eq!(
        contexts(&home.path().join("iv4")),
        [
            "101: admission=emergency, admission_source=emergency room, age=55-64, earlier_visits=0, \
             insurance=medicare, language=english, marital_status=married, race=white, sex=female",
            "102: admission=elective, age=65-74, days_since_last_visit=366+, earlier_visits=1, \
             insurance=medicare, marital_status=widowed, sex=female",
            "201: admission=urgent, age=90+, earlier_visits=0, sex=male",
        ]
    );
    json(home.path(), "mimic4 iv --context discharge,length_of_stay --lab-bins 0 --out after");
    assert_eq!(
        contexts(&home.path().join("after")),
        ["101: discharge=home, length_of_stay", "102: discharge=home, length_of_stay", "201: length_of_stay"]
    );
    json(home.path(), "mimic4 iv --encounters icu --context unit,sex --out unit");
    assert_eq!(contexts(&home.path().join("unit")), ["11: sex=female, unit=coronary care unit (ccu)"]);
    json(home.path(), "mimic3 iii --out iii3");
    assert_eq!(
        contexts(&home.path().join("iii3")),
        [
            "101: admission=emergency, admission_source=clinic referral/premature, age=90+, earlier_visits=0, \
             race=asian, sex=female",
            "201: admission=newborn, age=0-4, earlier_visits=0, sex=male",
        ]
    );
    // Without a table of patients nothing is known of them.
    std::fs::remove_file(home.path().join("iv/hosp/patients.csv")).unwrap();
    json(home.path(), "mimic4 iv --context sex,age,admission --out partial");
    assert_eq!(
        contexts(&home.path().join("partial")),
        ["101: admission=emergency", "102: admission=elective", "201: admission=urgent"]
    );
}

#[test]
fn omop_knows_person_and_visit_by_concepts() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "cdm/visit_occurrence.csv",
                "visit_occurrence_id,person_id,visit_concept_id,visit_start_date,visit_end_date,admitting_source_concept_id,\
                 admitting_source_value,discharge_to_concept_id\n\
                 1,7,9201,2020-06-14,2020-06-16,8870,,8536\n\
                 2,7,9203,2020-06-20,2020-06-20,0,Ambulance,0\n\
                 3,8,581477,2020-06-20,2020-06-20,0,,0\n",
            ),
            (
                "cdm/person.csv",
                "person_id,gender_concept_id,year_of_birth,month_of_birth,day_of_birth,birth_datetime,race_concept_id,ethnicity_concept_id\n\
                 7,8532,1950,6,15,,8527,38003564\n8,8507,1930,,,1930-01-02 00:00:00,4077359,0\n",
            ),
            (
                "cdm/condition_occurrence.csv",
                "person_id,visit_occurrence_id,condition_concept_id,condition_start_date\n\
                 7,1,1,2020-06-14\n7,2,1,2020-06-20\n8,3,1,2020-06-20\n",
            ),
            (
                "cdm/concept.csv",
                "concept_id,concept_name,vocabulary_id,concept_code\n\
                 8870,Emergency Room - Hospital,CMS,23\n581477,Office Visit,Visit,OP\n8536,Home,CMS,12\n",
            ),
        ],
    );
    json(home.path(), "omop cdm --min-codes treatment=0 --out data");
    assert_eq!(
        contexts(&home.path().join("data")),
        [
            "1: admission_source=emergency room - hospital, age=65-74, earlier_visits=0, \
             ethnicity=not hispanic or latino, race=white, sex=female, visit=inpatient",
            "2: admission_source=ambulance, age=65-74, days_since_last_visit=2-7, earlier_visits=1, \
             ethnicity=not hispanic or latino, race=white, sex=female, visit=emergency",
            "3: age=90+, earlier_visits=0, race=4077359, sex=male, visit=office visit",
        ]
    );
    // A visit that the options do not take has taken place.
    json(
        home.path(),
        "omop cdm --visits emergency --min-codes treatment=0 --context earlier_visits,discharge --out some",
    );
    assert_eq!(contexts(&home.path().join("some")), ["2: earlier_visits=1"]);
}

/// Two stays of a subject and one of another; what is recorded without a time, or at birth.
const MEDS: &str = "subject_id,time,code,numeric_value\n\
    5,,GENDER//F,\n\
    5,,RACE//WHITE,\n\
    5,1950-01-01,MEDS_BIRTH,\n\
    5,2020-01-01T00:00:00,HOSPITAL_ADMISSION//URGENT//CLINIC,\n\
    5,2020-01-01T05:00:00,DIAGNOSIS//I10,\n\
    5,2020-01-02T00:00:00,PROCEDURE//X,\n\
    5,2020-01-02T00:00:00,HOSPITAL_DISCHARGE//HOME,\n\
    5,2020-03-01T00:00:00,HOSPITAL_ADMISSION//ELECTIVE,\n\
    5,2020-03-01T05:00:00,DIAGNOSIS//E11,\n\
    5,2020-03-01T06:00:00,PROCEDURE//X,\n\
    5,2020-03-02T00:00:00,RACE//BLACK,\n\
    5,2020-03-03T00:00:00,HOSPITAL_DISCHARGE//HOME,\n\
    7,1929-06-01,MEDS_BIRTH,\n\
    7,1929-06-01,Gender/MALE,\n\
    7,2020-05-01T00:00:00,HOSPITAL_ADMISSION,\n\
    7,2020-05-01T05:00:00,DIAGNOSIS//I10,\n\
    7,2020-05-01T06:00:00,PROCEDURE//X,\n\
    7,2020-05-05T00:00:00,HOSPITAL_DISCHARGE//HOME,\n";

#[test]
fn meds_knows_what_has_no_time_the_birth_and_the_admission() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("in/data.csv", MEDS)]);
    json(home.path(), "meds in --out data");
    assert_eq!(
        contexts(&home.path().join("data")),
        [
            "5:1: admission=urgent, admission_source=clinic, age=65-74, earlier_visits=0, race=white, sex=female",
            "5:2: admission=elective, age=65-74, days_since_last_visit=31-90, earlier_visits=1, race=white, sex=female",
            "7:1: age=90+, earlier_visits=0, sex=male",
        ]
    );
    // Of a label, everything by the time of its prediction: all visits count, also those without a label.
    let labels =
        "subject_id,prediction_time,boolean_value\n5,2020-03-01T00:00:00,true\n5,2020-03-01T08:00:00,true\n";
    write(home.path(), &[("in/labels/died.csv", labels)]);
    json(home.path(), "meds in --min-codes 0 --out labelled");
    let second = "admission=elective, age=65-74, days_since_last_visit=31-90, earlier_visits=1, race=white, sex=female";
    assert_eq!(
        contexts(&home.path().join("labelled")),
        [format!("5@2020-03-01T00:00:00: {second}"), format!("5@2020-03-01T08:00:00: {second}")]
    );
}

#[test]
fn fhir_knows_the_patient_and_the_class() {
    let home = tempfile::tempdir().unwrap();
    let encounter = |id: &str, class: &str, start: &str, status: &str, updated: &str| {
        json!({"resourceType": "Encounter", "id": id, "status": status, "class": {"code": class},
               "subject": {"reference": "Patient/p"}, "period": {"start": start, "end": start},
               "meta": {"lastUpdated": updated}})
    };
    let code = |code: &str| json!({"coding": [{"system": "http://snomed.info/sct", "code": code}]});
    let of = |id: &str| json!({"reference": format!("Encounter/{id}")});
    let resources = [
        json!({"resourceType": "Patient", "id": "p", "gender": "female", "birthDate": "1950-06-15"}),
        encounter("e1", "AMB", "2020-01-01", "finished", "2021-01-01T00:00:00Z"),
        encounter("e1", "EMER", "2019-01-01", "finished", "2020-01-01T00:00:00Z"),
        encounter("planned", "IMP", "2020-05-01", "planned", "2021-01-01T00:00:00Z"),
        encounter("e2", "IMP", "2020-06-14", "finished", "2021-01-01T00:00:00Z"),
        json!({"resourceType": "Condition", "id": "c1", "code": code("1"), "encounter": of("e1")}),
        json!({"resourceType": "Condition", "id": "c2", "code": code("1"), "encounter": of("e2")}),
    ];
    let lines: String = resources.iter().map(|resource| format!("{resource}\n")).collect();
    write(home.path(), &[("all.ndjson", &lines)]);
    json(home.path(), "fhir all.ndjson --min-codes treatment=0 --out data");
    // An earlier version and what was only planned are no visits.
    assert_eq!(
        contexts(&home.path().join("data")),
        [
            "e1: age=65-74, earlier_visits=0, sex=female, visit=ambulatory",
            "e2: age=65-74, days_since_last_visit=91-365, earlier_visits=1, sex=female, visit=inpatient",
        ]
    );
}

#[test]
fn claims_know_the_beneficiary_and_the_type() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "synpuf/Inpatient_Claims.csv",
                "DESYNPUF_ID,CLM_ID,SEGMENT,CLM_FROM_DT,CLM_THRU_DT,ICD9_DGNS_CD_1,ICD9_PRCDR_CD_1\n\
                 A,101,1,20100312,20100313,7802,0066\nA,102,1,20100321,20100325,7802,0066\nB,103,1,20100101,20100101,486,0066\n",
            ),
            (
                "synpuf/2009_Beneficiary_Summary.csv",
                "DESYNPUF_ID,BENE_BIRTH_DT,BENE_DEATH_DT,BENE_SEX_IDENT_CD,BENE_RACE_CD\nA,19230501,,2,1\nB,19600101,,1,5\n",
            ),
            (
                "synpuf/2010_Beneficiary_Summary.csv",
                "DESYNPUF_ID,BENE_BIRTH_DT,BENE_DEATH_DT,BENE_SEX_IDENT_CD,BENE_RACE_CD\nA,19230501,,2,1\n",
            ),
        ],
    );
    json(home.path(), "claims synpuf --out data");
    assert_eq!(
        contexts(&home.path().join("data")),
        [
            "101: age=85-89, earlier_visits=0, race=white, sex=female, visit=inpatient",
            "102: age=85-89, days_since_last_visit=8-30, earlier_visits=1, race=white, sex=female, visit=inpatient",
            "103: age=45-54, earlier_visits=0, race=hispanic, sex=male, visit=inpatient",
        ]
    );
}

/// In how many encounters each code of context of some names occurs.
fn found(dataset: &Path, names: &[&str]) -> BTreeMap<String, u64> {
    let dataset = Dataset::open(dataset).unwrap();
    let is_named = |code: &str| names.iter().any(|name| code.starts_with(&format!("{name}=")));
    let codes = dataset.vocabulary().context.iter().filter(|code| is_named(&code.code));
    codes.map(|code| (code.code.clone(), code.count)).collect()
}

fn as_counts(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
    counts.iter().map(|(code, count)| ((*code).to_owned(), *count)).collect()
}

/// The counts were computed from the published file by other means.
#[test]
fn the_real_demo_of_eicu_has_the_context_that_is_known() {
    let Some(demo) = test_data("eicu-demo") else { return };
    let home = tempfile::tempdir().unwrap();
    let counts = json(home.path(), &format!("eicu {} --out data", demo.display()));
    assert_eq!((&counts["context_read"], &counts["context_kept"]), (&json!(21750), &json!(16388)));
    assert_eq!(counts["context_dropped"], json!({"unknown_value": 83, "encounter_dropped": 5279}));
    assert_eq!(
        counts["context"],
        json!({"admission_source": 2498, "age": 2516, "earlier_visits": 2520, "ethnicity": 2398, "height": 2451,
               "hospital_admission_source": 1926, "sex": 2516, "unit": 2520, "weight": 2322})
    );
    assert_eq!(
        found(&home.path().join("data"), &["age", "sex", "earlier_visits"]),
        as_counts(&[
            ("age=15-24", 57),
            ("age=25-34", 121),
            ("age=35-44", 132),
            ("age=45-54", 201),
            ("age=55-64", 364),
            ("age=65-74", 445),
            ("age=75-84", 395),
            ("age=85-89", 110),
            ("age=90+", 66),
            ("earlier_visits=0", 1700),
            ("earlier_visits=1", 143),
            ("earlier_visits=2", 41),
            ("earlier_visits=3-4", 10),
            ("sex=female", 720),
            ("sex=male", 1171),
        ])
    );
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    let bounds = &dataset.manifest().source.findings["context_bounds"];
    assert_eq!(bounds.as_object().unwrap().keys().collect::<Vec<_>>(), ["height", "weight"]);
}

#[test]
fn real_synthea_output_has_the_context_that_is_known() {
    let Some(data) = test_data("synthea") else { return };
    let home = tempfile::tempdir().unwrap();
    let flags = "--min-codes 0 --max-codes 1000";
    let counts = json(home.path(), &format!("synthea {} {flags} --out data", data.display()));
    assert_eq!((&counts["encounters_kept"], &counts["context_kept"]), (&json!(604), &json!(4201)));
    assert_eq!(
        found(&home.path().join("data"), &["age", "sex", "earlier_visits", "days_since_last_visit", "visit"]),
        as_counts(&[
            ("age=0-4", 37),
            ("age=15-24", 118),
            ("age=25-34", 135),
            ("age=35-44", 98),
            ("age=45-54", 87),
            ("age=5-14", 62),
            ("age=55-64", 44),
            ("age=65-74", 23),
            ("days_since_last_visit=0-1", 4),
            ("days_since_last_visit=2-7", 23),
            ("days_since_last_visit=31-90", 43),
            ("days_since_last_visit=366+", 297),
            ("days_since_last_visit=8-30", 87),
            ("days_since_last_visit=91-365", 123),
            ("earlier_visits=0", 27),
            ("earlier_visits=1", 25),
            ("earlier_visits=10+", 381),
            ("earlier_visits=2", 24),
            ("earlier_visits=3-4", 46),
            ("earlier_visits=5-9", 101),
            ("sex=female", 283),
            ("sex=male", 321),
            ("visit=ambulatory", 174),
            ("visit=emergency", 17),
            ("visit=inpatient", 11),
            ("visit=outpatient", 52),
            ("visit=urgentcare", 2),
            ("visit=wellness", 348),
        ])
    );
}
