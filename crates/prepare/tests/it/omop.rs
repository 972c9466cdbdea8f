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

/// Two visits with drugs, their concepts and their ancestors. The second drug of the first visit has two
/// ingredients that are equally near; its first one has a second that is farther away.
pub(super) const DRUGS: [(&str, &str); 5] = [
    (
        "cdm/visit_occurrence.csv",
        "visit_occurrence_id,person_id,visit_concept_id,visit_start_date,visit_end_date\n\
         1,7,9201,2020-01-01,2020-01-03\n2,8,9201,2020-01-01,2020-01-03\n",
    ),
    (
        "cdm/condition_occurrence.csv",
        "person_id,visit_occurrence_id,condition_concept_id,condition_start_date,condition_source_value\n7,1,320128,2020-01-01,I10\n8,2,320128,2020-01-01,I10\n",
    ),
    (
        "cdm/drug_exposure.csv",
        "person_id,visit_occurrence_id,drug_concept_id,drug_exposure_start_date,drug_source_value,drug_source_concept_id\n\
         7,1,1127433,2020-01-02,n1,44\n\
         7,1,40213201,2020-01-02,n2,45\n\
         8,2,1125315,2020-01-02,n3,0\n\
         8,2,999,2020-01-02,n4,0\n",
    ),
    (
        "cdm/concept.csv",
        "concept_id,concept_name,vocabulary_id,concept_class_id,concept_code\n\
         1127433,acetaminophen 325 MG,RxNorm,Clinical Drug,313782\n\
         40213201,acetaminophen / codeine,RxNorm,Clinical Drug,993837\n\
         1125315,acetaminophen,RxNorm,Ingredient,161\n\
         1201620,codeine,RxNorm,Ingredient,2670\n\
         1000001,something else,RxNorm,Ingredient,100\n\
         21604303,Other analgesics and antipyretics,ATC,ATC 3rd,N02B\n\
         44,Tylenol,NDC,11-digit NDC,0001\n",
    ),
    (
        "cdm/concept_ancestor.csv",
        "ancestor_concept_id,descendant_concept_id,min_levels_of_separation,max_levels_of_separation\n\
         1127433,1127433,0,0\n\
         1125315,1127433,1,2\n\
         1000001,1127433,2,2\n\
         1125315,40213201,1,1\n\
         1201620,40213201,1,1\n\
         1125315,1125315,0,0\n\
         21604303,1127433,4,5\n\
         21604303,1125315,3,3\n",
    ),
];

#[test]
fn drugs_become_their_nearest_ancestors_of_a_class() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &DRUGS);
    let rolled = |flags: &str| {
        let counts = json(home.path(), &format!("omop cdm --out data --force {flags}"));
        let treatments = |line: &String| line.split('|').nth(1).unwrap().trim().to_owned();
        let found: Vec<String> = lines(&home.path().join("data")).iter().map(treatments).collect();
        (found, counts["rollups"][0].clone())
    };
    let (found, counts) = rolled("--rollup treatment=ancestors:ingredient");
    assert_eq!(found, ["RxNorm:161", "999 RxNorm:161"]);
    assert_eq!(
        counts,
        json!({"kind": "treatment", "rule": "ancestors:ingredient", "codes_mapped": 3, "codes_unmapped": 1,
            "groups": 1, "events_unmapped": 1, "ties": 1})
    );
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    let group = dataset.vocabulary().treatment.iter().find(|code| code.code == "RxNorm:161").unwrap();
    assert_eq!((group.description.as_deref(), group.count), (Some("acetaminophen"), 2));
    let mapping = |flags: &str| {
        rolled(flags);
        let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
        dataset.manifest().source.findings["rollups"].clone()
    };
    assert_eq!(
        mapping("--rollup treatment=ancestors:Ingredient"),
        json!({"treatment": {"RxNorm:161": "RxNorm:161", "RxNorm:313782": "RxNorm:161", "RxNorm:993837": "RxNorm:161"}})
    );
    let all = lines(&home.path().join("data"));
    json(home.path(), "omop cdm --out like --like data");
    assert_eq!(lines(&home.path().join("like")), all);
    // Each code is in one encounter only, and must not be disclosed, though the group is in two.
    assert_eq!(mapping("--rollup treatment=ancestors:Ingredient --min-count 2"), json!({"treatment": {}}));
    // The codes of the source have no ancestors of their own.
    let (found, counts) = rolled("--concepts source --rollup treatment=ancestors:ingredient");
    assert_eq!(found, ["RxNorm:161", "RxNorm:161 n4"]);
    assert_eq!(counts["codes_mapped"], 3);
    let file = "rollup.treatment = \"ancestors:ATC 3rd\"\nrollup_unmapped = \"drop\"\n";
    write(home.path(), &[("atc.toml", file)]);
    let (found, counts) = rolled("--config atc.toml --min-codes treatment=0");
    assert_eq!((found, &counts["ties"]), (vec!["ATC:N02B".to_owned(), "ATC:N02B".to_owned()], &json!(0)));
}

/// Twelve visits of eleven people, all but the last from the first to the fifth of January: whoever enters a
/// cohort on 4 February does so on the thirtieth day after them.
pub(super) const COHORT: [(&str, &str); 5] = [
    (
        "cdm/visit_occurrence.csv",
        "visit_occurrence_id,person_id,visit_concept_id,visit_start_date,visit_end_date\n\
         1,1,9201,2020-01-01,2020-01-05\n2,2,9201,2020-01-01,2020-01-05\n3,3,9201,2020-01-01,2020-01-05\n\
         4,4,9201,2020-01-01,2020-01-05\n5,5,9201,2020-01-01,2020-01-05\n6,6,9201,2020-01-01,2020-01-05\n\
         7,7,9201,2020-01-01,2020-01-05\n8,8,9201,2020-01-01,2020-01-05\n9,9,9201,2020-01-01,2020-01-05\n\
         10,10,9201,2020-01-01,2020-01-05\n11,11,9201,2020-01-01,2020-01-05\n12,2,9202,2020-06-01,2020-06-02\n",
    ),
    (
        "cdm/condition_occurrence.csv",
        "person_id,visit_occurrence_id,condition_concept_id,condition_start_date\n\
         1,1,5,2020-01-01\n2,2,5,2020-01-01\n3,3,5,2020-01-01\n4,4,5,2020-01-01\n5,5,5,2020-01-01\n6,6,5,2020-01-01\n\
         7,7,5,2020-01-01\n8,8,5,2020-01-01\n9,9,5,2020-01-01\n10,10,5,2020-01-01\n11,11,5,2020-01-01\n2,12,5,2020-06-01\n",
    ),
    (
        "cdm/observation_period.csv",
        "person_id,observation_period_start_date,observation_period_end_date\n\
         1,2019-01-01,2020-12-31\n2,2019-01-01,2020-12-31\n3,2019-01-01,2020-01-20\n3,2020-03-01,2020-12-31\n\
         4,2019-01-01,2020-12-31\n5,2019-01-01,2020-12-31\n6,2019-01-01,2020-12-31\n7,2019-01-01,2020-12-31\n\
         8,2019-01-01,2020-12-31\n9,2019-01-01,2020-12-31\n10,2019-01-01,2020-01-10\n",
    ),
    ("cdm/death.csv", "person_id,death_date\n9,2020-01-15\n"),
    (
        "cohorts.csv",
        "cohort_definition_id,subject_id,cohort_start_date,cohort_end_date\n\
         1,1,2020-01-20,2020-12-31\n\
         1,4,2019-01-01,2020-06-01\n\
         1,5,2020-01-05,2020-06-01\n\
         1,6,2020-02-04,\n\
         1,7,2020-02-05,2020-12-31\n\
         1,8,2019-01-01,2019-02-01\n\
         1,10,2020-01-06,2020-12-31\n\
         2,1,2020-01-03,2020-01-03\n",
    ),
];

#[test]
fn a_cohort_is_a_label_of_who_enters_it_after_the_visit() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &COHORT);
    let labels = |flags: &str| {
        let counts =
            json(home.path(), &format!("omop cdm --min-codes treatment=0 --out data --force {flags}"));
        let found = lines(&home.path().join("data"));
        let label =
            |line: &String| line.rsplit_once(", cohort_1=").map_or("none", |(_, label)| label).to_owned();
        let label = |line: &String| label(line).split(',').next().unwrap().to_owned();
        let by_id: std::collections::BTreeMap<u32, String> = found
            .iter()
            .map(|line| (line.split(' ').next().unwrap().parse().unwrap(), label(line)))
            .collect();
        (by_id.into_values().collect::<Vec<_>>().join(" "), counts)
    };
    let (found, counts) = labels("--cohort cohorts.csv:1 --within 1..30");
    assert_eq!(found, "true false ? ? ? true false false ? true false false");
    assert_eq!((&counts["labels"]["cohort_1"], &counts["labels_known"]["cohort_1"]), (&json!(3), &json!(8)));
    assert_eq!(
        counts["labels_unknown"],
        json!({"cohort_1": {"died": 1, "in_cohort_already": 2, "not_observed": 1}})
    );
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    assert_eq!(dataset.manifest().source.settings["within"], "1..30");
    assert_eq!(counts["options"]["cohort"], "cohorts.csv:1");
    // Who has entered before the days at risk begin is not at risk any more.
    let (found, _) = labels("--cohort cohorts.csv:1 --within 10..30");
    assert_eq!(found, "true false ? ? ? true false false ? ? false false");
    // A year, by default: those who entered in it are known, others are not observed so long.
    let (found, _) = labels("--cohort cohorts.csv:1");
    assert_eq!(found, "true ? ? ? ? true true ? ? true ? ?");
    // On the last day of the visit.
    let (found, _) = labels("--cohort cohorts.csv:1 --within 0..0");
    assert_eq!(found, "false false false ? true false false false false false false false");
    // All definitions, each a label of its own; a table among the others, or one that is named.
    let (_, counts) = labels("--cohort cohorts.csv --within 1..30");
    assert_eq!(counts["labels"]["cohort_2"], 0);
    assert_eq!(
        counts["labels_unknown"]["cohort_2"],
        json!({"died": 1, "in_cohort_already": 1, "not_observed": 2})
    );
    std::fs::copy(home.path().join("cohorts.csv"), home.path().join("cdm/cohort.csv")).unwrap();
    for flags in ["--cohort :1", "--cohort 1", "--cohort cohort:1", "--cohort 1 --table cohort=cohorts.csv"] {
        let (found, _) = labels(&format!("{flags} --within 1..30"));
        assert_eq!(found, "true false ? ? ? true false false ? true false false", "{flags}");
    }
    // Not without being asked for.
    let (found, counts) = labels("");
    assert!(found.starts_with("none none"), "{found}");
    assert_eq!(counts["labels_unknown"], json!({}));
    let shown = prepare(home.path(), "omop cdm --min-codes treatment=0 --dry-run --cohort 1 --within 1..30");
    let shown = shown.assert().success().get_output().stdout.clone();
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("cohort_1   in cohort already            2\n"), "{shown}");
    let hidden = json(
        home.path(),
        "omop cdm --min-codes treatment=0 --dry-run --cohort 1 --within 1..30 --min-cell 2",
    );
    assert_eq!(
        hidden["labels_unknown"]["cohort_1"],
        json!({"died": "hidden", "in_cohort_already": "hidden", "not_observed": "hidden"})
    );
}

#[test]
fn what_is_not_known_at_the_time_of_a_label_is_cut() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let labels = "encounter_id,late,prediction_time\n1,1,2020-01-02 12:00:00\n2,0,\n";
    write(home.path(), &[("labels.csv", labels)]);
    let counts = json(home.path(), "omop cdm --min-codes 0 --out data --labels labels.csv --lab-bins 0");
    // A day without a time is known when it is over: the drug and the lab of the second day are not.
    let found = lines(&home.path().join("data"));
    assert!(found[0].starts_with("1 of 7: 0010 SNOMED:59621000 |  | , "), "{found:?}");
    assert!(found[0].ends_with(", late=true"), "{found:?}");
    assert!(found[1].starts_with("2 of 7:  | SNOMED:399208008 | LOINC:718-7, "), "{found:?}");
    assert_eq!(counts["events_dropped"]["after_prediction"], 2);
    assert_eq!(counts["unbalanced"], json!([]));
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    let times: Vec<_> = dataset.encounters().unwrap().map(|one| one.unwrap().prediction_time).collect();
    assert_eq!(times[..2], [Some(1_577_966_400_000_000), None]);
}
