use serde_json::json;

use super::{json, lines, prepare, write};

/// Five visits of two people, as 5.3 has them; some rows have dates only, some belong to no visit.
const TABLES: [(&str, &str); 7] = [
    (
        "cdm/visit_occurrence.csv",
        "visit_occurrence_id,person_id,visit_concept_id,visit_start_date,visit_start_datetime,visit_end_date,visit_end_datetime,visit_type_concept_id\n\
         1,7,9201,2020-01-01,2020-01-01 10:00:00,2020-01-03,2020-01-03 12:00:00,44818517\n\
         2,7,262,2020-02-02,2020-02-02 08:00:00,2020-02-05,2020-02-05 08:00:00,44818517\n\
         3,7,9202,2020-06-01,,2020-06-01,,44818517\n\
         4,8,9201,2020-03-01,,2020-03-04,,44818517\n\
         5,8,9201,2020-04-04,,2020-04-06,,44818517\n",
    ),
    (
        "cdm/condition_occurrence.csv",
        "condition_occurrence_id,person_id,condition_concept_id,condition_start_date,condition_start_datetime,visit_occurrence_id,condition_source_value,condition_source_concept_id\n\
         1,7,320128,2020-01-01,2020-01-01 10:00:00,1,401.9,44821949\n\
         2,7,0,2020-01-01,,1,0010,0\n\
         3,7,0,2020-01-01,,1,,0\n\
         4,7,320128,2020-02-03,,,401.9,44821949\n\
         5,7,320128,2020-06-01,,3,401.9,44821949\n\
         6,8,201826,2020-03-04,,4,250.00,44820682\n\
         7,8,320128,2020-03-05,,4,401.9,44821949\n\
         8,8,320128,2020-04-05,,,401.9,44821949\n\
         9,8,320128,2020-09-05,,,401.9,44821949\n",
    ),
    (
        "cdm/procedure_occurrence.csv",
        "procedure_occurrence_id,person_id,procedure_concept_id,procedure_date,procedure_datetime,visit_occurrence_id,procedure_source_value,procedure_source_concept_id\n\
         1,7,4163872,2020-01-03,2020-01-03 12:00:01,1,87.44,2007\n\
         2,7,4163872,2020-02-02,2020-02-02 09:00:00,2,87.44,2007\n",
    ),
    (
        "cdm/drug_exposure.csv",
        "drug_exposure_id,person_id,drug_concept_id,drug_exposure_start_date,drug_exposure_start_datetime,visit_occurrence_id,drug_source_value,drug_source_concept_id\n\
         1,7,1127433,2020-01-02,,1,0001,0\n\
         2,7,1127433,2020-06-01,,3,0001,0\n\
         3,8,1127433,2020-03-04,2020-03-04 15:00:00,4,0001,0\n\
         4,8,1127433,2020-04-06,2020-04-06 00:00:00,,0001,0\n",
    ),
    (
        "cdm/measurement.csv",
        "measurement_id,person_id,measurement_concept_id,measurement_date,measurement_datetime,visit_occurrence_id,value_as_number,value_as_concept_id,measurement_source_value,measurement_source_concept_id\n\
         1,7,3000963,2020-01-02,,1,11.5,,718-7,0\n\
         2,7,3000963,2020-02-03,,2,13.5,0,718-7,0\n\
         3,8,3009542,2020-03-02,,4,,9191,COV,0\n\
         4,8,3009542,2020-04-05,,5,,9189,COV,0\n\
         5,7,3000963,2020-06-01,,3,,0,718-7,0\n",
    ),
    (
        "cdm/concept.csv",
        "concept_id,concept_name,domain_id,vocabulary_id,concept_code\n\
         320128,Essential hypertension,Condition,SNOMED,59621000\n\
         201826,Type 2 diabetes mellitus,Condition,SNOMED,44054006\n\
         44821949,Unspecified essential hypertension,Condition,ICD9CM,401.9\n\
         4163872,Plain chest X-ray,Procedure,SNOMED,399208008\n\
         1127433,acetaminophen 325 MG,Drug,RxNorm,313782\n\
         3000963,Hemoglobin,Measurement,LOINC,718-7\n\
         9191,Positive,Meas Value,SNOMED,10828004\n",
    ),
    (
        "cdm/death.csv",
        "person_id,death_date,death_datetime\n\
         8,2020-04-06,\n7,2020-03-01,\n",
    ),
];

#[test]
fn standard_concepts_have_vocabularies_and_events_find_their_visits_by_date() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let counts = json(home.path(), "omop cdm --link-by-date --lab-bins 2 --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "1 of 7: 0010 SNOMED:59621000 | RxNorm:313782 | LOINC:718-7//1-of-2, readmission=true, mortality=false",
            "2 of 7: SNOMED:59621000 | SNOMED:399208008 | LOINC:718-7//2-of-2, readmission=?, mortality=false",
            "3 of 7: SNOMED:59621000 | RxNorm:313782 | LOINC:718-7, readmission=?, mortality=false",
            "4 of 8: SNOMED:44054006 | RxNorm:313782 | 3009542=SNOMED:10828004, readmission=false, mortality=false",
            "5 of 8: SNOMED:59621000 | RxNorm:313782 | 3009542=9189, readmission=?, mortality=true",
        ]
    );
    assert_eq!(
        counts["events_dropped"],
        json!({"after_discharge": 2, "unmapped": 1, "no_encounter": 1}),
        "{counts}"
    );
    assert_eq!(counts["events_noted"], json!({"linked_by_date": 3, "source_value_taken": 1}));
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    let names: Vec<_> = (dataset.vocabulary().lab.iter()).map(|code| code.description.clone()).collect();
    assert_eq!(names[1].as_deref(), Some("COV: Positive"));
    let shown = prepare(home.path(), "omop cdm --link-by-date --dry-run").assert().success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("  noted: linked by date        3\n"), "{shown}");
}

#[test]
fn options_choose_visits_and_what_becomes_of_events() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let counts = |flags: &str| json(home.path(), &format!("omop cdm --min-codes 0 --dry-run {flags}"));
    let plain = counts("");
    assert_eq!(plain["encounters_kept"], 5);
    assert_eq!(plain["events_dropped"]["no_encounter"], 4);
    assert_eq!(plain["events_noted"], json!({"source_value_taken": 1}));
    for visits in ["9201,262", "Inpatient", "inpatient,9201"] {
        assert_eq!(counts(&format!("--visits {visits}"))["dropped"], json!({"other_visit_type": 1}));
    }
    let said = prepare(home.path(), "omop cdm --dry-run --visits ward").assert().code(2);
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    let expected = "error: option `visits`: ward is not allowed; expected whole numbers, or emergency, inpatient, outpatient";
    assert!(said.starts_with(expected), "{said}");
    assert_eq!(counts("--unmapped drop")["events_dropped"]["unmapped"], 2);
    assert_eq!(counts("--after-discharge keep")["events_dropped"]["after_discharge"], json!(null));
    assert_eq!(counts("--measurements none")["vocabulary"]["lab"], 0);
}

/// As 5.4 has them, in upper case and as some programs write them: whole numbers with a point, moments
/// without dates.
const NEWER: [(&str, &str); 5] = [
    (
        "CDM/VISIT_OCCURRENCE.csv",
        "PERSON_ID,VISIT_OCCURRENCE_ID,VISIT_CONCEPT_ID,VISIT_START_DATETIME,VISIT_END_DATETIME,ADMITTED_FROM_CONCEPT_ID,DISCHARGED_TO_CONCEPT_ID\n\
         7,-10,9201,2020-01-01 10:00:00,2020-01-09 12:00:00,0,0\n\
         7,-11,9202,2020-01-04 10:00:00,2020-01-04 11:00:00,0,0\n",
    ),
    (
        "CDM/CONDITION_OCCURRENCE.csv",
        "PERSON_ID,VISIT_OCCURRENCE_ID,CONDITION_CONCEPT_ID,CONDITION_START_DATE,CONDITION_SOURCE_VALUE,CONDITION_SOURCE_CONCEPT_ID,CONDITION_STATUS_CONCEPT_ID\n\
         7,-10.0,320128,2020-01-01,0010,44821949,0\n\
         7,,320128,2020-01-04,401.9,0,0\n",
    ),
    (
        "CDM/PROCEDURE_OCCURRENCE.csv",
        "PERSON_ID,VISIT_OCCURRENCE_ID,PROCEDURE_CONCEPT_ID,PROCEDURE_DATE,PROCEDURE_END_DATE,PROCEDURE_SOURCE_VALUE\n\
         7,-10,4163872,2020-01-02,2020-01-02,00.66\n\
         7,,4163872,2020-01-04,2020-01-04,00.66\n",
    ),
    (
        "CDM/MEASUREMENT.csv",
        "PERSON_ID,VISIT_OCCURRENCE_ID,MEASUREMENT_CONCEPT_ID,MEASUREMENT_DATE,MEASUREMENT_SOURCE_VALUE,MEASUREMENT_EVENT_ID\n\
         7,-10,0,2020-01-02,gas,1\n",
    ),
    ("CDM/DEATH.csv", "PERSON_ID,DEATH_DATE\n7,2020-01-09\n"),
];

#[test]
fn codes_of_the_source_stay_text_and_a_day_goes_to_the_visit_that_began_last() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &NEWER);
    json(home.path(), "omop CDM --concepts source --link-by-date --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        ["-10 of 7: 0010 | 00.66 | gas, mortality=true", "-11 of 7: 401.9 | 00.66 | , mortality=false",]
    );
    // Among the visits that are taken.
    json(home.path(), "omop CDM --link-by-date --visits 9201 --out standard");
    assert_eq!(lines(&home.path().join("standard")), ["-10 of 7: 320128 | 4163872 | gas, mortality=true"]);
}

#[tokio::test]
async fn tables_can_be_parquet_with_types_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    for (name, rows) in [
        (
            "visit_occurrence",
            "SELECT 10 AS visit_occurrence_id, 7 AS person_id, CAST(9201 AS INT) AS visit_concept_id, \
                 DATE '2020-01-01' AS visit_start_date, TIMESTAMP '2020-01-01T10:00:00' AS visit_start_datetime, \
                 DATE '2020-01-02' AS visit_end_date",
        ),
        (
            "condition_occurrence",
            "SELECT 7 AS person_id, CAST(NULL AS BIGINT) AS visit_occurrence_id, 320128 AS condition_concept_id, \
                 DATE '2020-01-02' AS condition_start_date, 'x' AS condition_source_value",
        ),
        (
            "drug_exposure",
            "SELECT 7 AS person_id, CAST(10 AS DOUBLE) AS visit_occurrence_id, 1127433 AS drug_concept_id, \
                 DATE '2020-01-02' AS drug_exposure_start_date",
        ),
    ] {
        super::write_parquet(&home.path().join(format!("cdm/{name}.parquet")), rows).await;
    }
    write(home.path(), &[("cdm/death.csv", "person_id,death_date\n7,2020-01-02\n")]);
    json(home.path(), "omop cdm --link-by-date --out data");
    assert_eq!(lines(&home.path().join("data")), ["10 of 7: 320128 | 1127433 | , mortality=true"]);
}

#[test]
fn concepts_are_read_as_athena_writes_them() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let with_commas = json(home.path(), "omop cdm --dry-run --link-by-date");
    let (_, concepts) = TABLES.iter().find(|(name, _)| name.contains("concept.csv")).unwrap();
    // Separated by tabs, and a quote is a letter like any other.
    let concepts = concepts.replace(',', "\t").replace("Plain chest", "\"Plain chest");
    std::fs::remove_file(home.path().join("cdm/concept.csv")).unwrap();
    write(home.path(), &[("cdm/CONCEPT.csv", &concepts)]);
    let with_tabs = json(home.path(), "omop cdm --out data --link-by-date");
    assert_eq!(with_tabs, with_commas);
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    let described = dataset.vocabulary().treatment.iter().find(|code| code.code == "SNOMED:399208008");
    assert_eq!(described.unwrap().description.as_deref(), Some("\"Plain chest X-ray"));
}

#[test]
fn a_visit_without_an_end_is_over_with_its_first_day() {
    let home = tempfile::tempdir().unwrap();
    let person = "person_id,visit_occurrence_id";
    write(
        home.path(),
        &[
            (
                "cdm/visit_occurrence.csv",
                &format!("{person},visit_concept_id,visit_start_date,visit_end_date\n7,1,9201,2020-01-01,\n"),
            ),
            (
                "cdm/condition_occurrence.csv",
                &format!(
                    "{person},condition_concept_id,condition_start_date\n7,1,5,2020-01-01\n7,1,6,2023-01-01\n"
                ),
            ),
            (
                "cdm/procedure_occurrence.csv",
                &format!("{person},procedure_concept_id,procedure_date\n7,1,8,2020-01-01\n"),
            ),
            ("cdm/death.csv", "person_id,death_date\n"),
        ],
    );
    let counts = json(home.path(), "omop cdm --out data");
    // A table of deaths without rows says that nobody died.
    assert_eq!(lines(&home.path().join("data")), ["1 of 7: 5 | 8 | , mortality=false"]);
    assert_eq!(counts["events_dropped"], json!({"after_first_day": 1}));
}

#[test]
fn days_are_those_of_the_place_and_observation_ends() {
    let home = tempfile::tempdir().unwrap();
    let person = "person_id,visit_occurrence_id";
    write(
        home.path(),
        &[
            (
                "cdm/visit_occurrence.csv",
                &format!(
                    "{person},visit_concept_id,visit_start_datetime,visit_end_datetime\n\
                     1,1,9201,2020-01-01T10:00:00-05:00,2020-01-02T23:30:00-05:00\n\
                     2,2,9201,2020-01-01T10:00:00-05:00,2020-01-02T10:00:00-05:00\n\
                     3,3,9201,2020-01-01T10:00:00-05:00,2020-01-02T10:00:00-05:00\n\
                     4,4,9202,2020-06-01T10:00:00-05:00,2020-06-02T10:00:00-05:00\n"
                ),
            ),
            (
                "cdm/condition_occurrence.csv",
                &format!(
                    "{person},condition_concept_id,condition_start_datetime\n1,1,5,2020-01-02T23:00:00-05:00\n\
                     2,2,5,2020-01-01\n3,3,5,2020-01-01\n4,4,5,2020-06-01\n"
                ),
            ),
            ("cdm/death.csv", "person_id,death_date\n1,2020-01-02\n"),
            (
                "cdm/observation_period.csv",
                "person_id,observation_period_end_date\n2,2020-01-20\n3,2020-02-20\n",
            ),
        ],
    );
    json(home.path(), "omop cdm --out data --min-codes treatment=0");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "1 of 1: 5 |  | , readmission=?, mortality=true",
            "2 of 2: 5 |  | , readmission=?, mortality=false",
            "3 of 3: 5 |  | , readmission=false, mortality=false",
            "4 of 4: 5 |  | , readmission=?, mortality=false",
        ]
    );
}
