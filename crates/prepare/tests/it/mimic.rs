use std::path::Path;

use serde_json::json;

use super::{json, lines, prepare, write};

/// Five admissions of four patients, small enough to follow by hand.
const ADMISSIONS: &str = "subject_id,hadm_id,admittime,dischtime,deathtime,admission_type,race,hospital_expire_flag\n\
     1,101,2150-01-01 10:00:00,2150-01-05 12:00:00,,EW EMER.,,0\n\
     1,102,2150-01-20 08:00:00,2150-01-30 08:00:00,,ELECTIVE,,0\n\
     2,201,2150-02-01 00:30:00,2150-02-02 06:00:00,2150-02-02 05:00:00,URGENT,,1\n\
     3,301,2150-03-01 09:00:00,2150-03-03 09:00:00,,EW EMER.,,0\n\
     4,401,2150-05-01 09:00:00,2150-05-03 09:00:00,,EW EMER.,,0\n";

pub(super) const TABLES: [(&str, &str); 10] = [
    ("iv/hosp/admissions.csv", ADMISSIONS),
    (
        "iv/hosp/patients.csv",
        "subject_id,gender,anchor_age,dod\n1,F,60,\n2,M,70,2150-02-02\n3,F,80,2150-03-20\n4,M,50,\n",
    ),
    (
        "iv/hosp/diagnoses_icd.csv",
        "subject_id,hadm_id,seq_num,icd_code,icd_version\n\
         1,101,1,E1065,10\n1,101,2,25000,9\n1,102,1,E1065,10\n2,201,1,4019,9\n3,301,1,I10,10\n4,401,1,I10,10\n\
         3,301,2,5A10,11\n9,999,1,I10,10\n",
    ),
    (
        "iv/hosp/procedures_icd.csv",
        "subject_id,hadm_id,seq_num,chartdate,icd_code,icd_version\n\
         1,101,1,2150-01-02,0JH60DZ,10\n2,201,1,2150-02-01,3893,9\n2,201,2,,9671,9\n",
    ),
    (
        "iv/hosp/prescriptions.csv",
        "subject_id,hadm_id,starttime,stoptime,drug_type,drug,ndc\n\
         1,101,2150-01-01 12:00:00,,MAIN, Insulin ,00002831501\n\
         1,101,2150-01-05 13:00:00,,MAIN,Aspirin,0\n\
         1,102,2150-01-20 09:00:00,,MAIN,Insulin,00002831501\n\
         3,301,2150-03-01 10:00:00,,MAIN,Aspirin,0\n\
         4,401,2150-05-02 10:00:00,,MAIN,Aspirin,00904628889\n",
    ),
    (
        "iv/hosp/labevents.csv",
        "labevent_id,subject_id,hadm_id,itemid,charttime,value,valuenum\n\
         1,1,101,50931,2150-01-01 11:00:00,100,100\n\
         2,1,,50931,2150-01-03 07:00:00,200,200\n\
         3,1,,50931,2150-01-10 07:00:00,150,150\n\
         4,2,,50931,2150-02-02 06:00:00,300,300\n\
         5,4,401,51486,,NEG,\n\
         6,4,401,51486,2150-05-02 11:00:00,NEG,\n",
    ),
    (
        "iv/hosp/d_icd_diagnoses.csv",
        "icd_code,icd_version,long_title\nE1065,10,Type 1 diabetes mellitus with hyperglycemia\n4019,9,Unspecified essential hypertension\n",
    ),
    (
        "iv/hosp/d_icd_procedures.csv",
        "icd_code,icd_version,long_title\n3893,9,\"Venous catheterization, not elsewhere classified\"\n",
    ),
    ("iv/hosp/d_labitems.csv", "itemid,label,fluid,category\n50931,Glucose,Blood,Chemistry\n"),
    (
        "iv/icu/icustays.csv",
        "subject_id,hadm_id,stay_id,intime,outtime,los\n\
         1,101,11,2150-01-01 14:00:00,2150-01-02 20:00:00,1.25\n\
         1,101,12,2150-01-02 22:00:00,2150-01-04 10:00:00,1.5\n\
         2,201,21,2150-02-01 01:00:00,2150-02-02 05:30:00,1.2\n\
         3,301,31,2150-03-01 10:00:00,2150-03-01 20:00:00,0.4\n",
    ),
];

/// The same, in one folder and in the words of MIMIC-III.
const OLDER: [(&str, &str); 8] = [
    (
        "iii/ADMISSIONS.csv",
        "\"ROW_ID\",\"SUBJECT_ID\",\"HADM_ID\",\"ADMITTIME\",\"DISCHTIME\",\"DEATHTIME\",\"ADMISSION_TYPE\",\"HOSPITAL_EXPIRE_FLAG\"\n\
         1,1,101,2150-01-01 10:00:00,2150-01-05 12:00:00,,\"EMERGENCY\",0\n\
         2,1,102,2150-01-20 08:00:00,2150-03-30 08:00:00,2150-03-30 08:00:00,\"EMERGENCY\",1\n",
    ),
    ("iii/PATIENTS.csv", "ROW_ID,SUBJECT_ID,GENDER,DOB,DOD\n1,1,F,2090-01-01 00:00:00,2150-03-30 00:00:00\n"),
    (
        "iii/DIAGNOSES_ICD.csv",
        "ROW_ID,SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE\n1,1,101,1,\"0389\"\n2,1,102,1,\"25000\"\n3,1,102,2,\n",
    ),
    ("iii/PROCEDURES_ICD.csv", "ROW_ID,SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE\n1,1,101,1,\"0066\"\n"),
    (
        "iii/PRESCRIPTIONS.csv",
        "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,STARTDATE,ENDDATE,DRUG,NDC\n\
         1,1,101,,2150-01-01 00:00:00,2150-01-02 00:00:00,Heparin,00641040025\n\
         2,1,101,,2150-01-02 00:00:00,2150-01-02 00:00:00,Aspirin,0\n\
         3,1,101,,2150-01-05 00:00:00,2150-01-06 00:00:00,Insulin,0\n\
         4,1,102,,2150-01-20 00:00:00,2150-01-22 00:00:00,Heparin,00641040025\n",
    ),
    (
        "iii/LABEVENTS.csv",
        "ROW_ID,SUBJECT_ID,HADM_ID,ITEMID,CHARTTIME,VALUE,VALUENUM,VALUEUOM,FLAG\n\
         1,1,101,50931,2150-01-01 11:00:00,100,100,mg/dL,\n2,1,,50931,2150-02-01 11:00:00,110,110,mg/dL,\n",
    ),
    (
        "iii/D_ICD_DIAGNOSES.csv",
        "ROW_ID,ICD9_CODE,SHORT_TITLE,LONG_TITLE\n1,\"0389\",Septicemia NOS,Unspecified septicemia\n",
    ),
    (
        "iii/ICUSTAYS.csv",
        "ROW_ID,SUBJECT_ID,HADM_ID,ICUSTAY_ID,INTIME,OUTTIME,LOS\n\
         1,1,101,7,2150-01-01 10:00:00,2150-01-05 08:00:00,3.9\n2,1,102,8,2150-01-20 10:00:00,2150-01-25 10:00:00,5\n",
    ),
];

fn description(dataset: &Path, code: &str) -> Option<String> {
    let dataset = gct::dataset::Dataset::open(dataset).unwrap();
    let kinds = gct::record::CodeKind::ALL.into_iter();
    let found = kinds.flat_map(|kind| &dataset.vocabulary()[kind]).find(|known| known.code == code);
    found.unwrap_or_else(|| panic!("no {code}")).description.clone()
}

fn gzipped(folder: &Path, name: &str, text: &str) {
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, gzip.finish().unwrap()).unwrap();
}

/// The labels of encounters, in their order: `readmission`, `mortality`, `long_stay`.
fn labels(dataset: &Path) -> Vec<String> {
    lines(dataset).iter().map(|line| line.split_once(", ").unwrap().1.to_owned()).collect()
}

#[test]
fn an_admission_has_codes_with_versions_and_labs_by_time() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let counts = json(home.path(), "mimic4 iv --lab-bins 0 --out data");
    let data = home.path().join("data");
    assert_eq!(
        lines(&data),
        [
            "101 of 1: ICD10CM:E1065 ICD9CM:25000 | ICD10PCS:0JH60DZ insulin | 50931, readmission=true, mortality=false, long_stay=false",
            "102 of 1: ICD10CM:E1065 | insulin | , readmission=false, mortality=false, long_stay=true",
            "201 of 2: ICD9CM:4019 | ICD9PROC:3893 ICD9PROC:9671 | 50931, readmission=?, mortality=true, long_stay=false",
            "301 of 3: ICD10CM:I10 | aspirin | , readmission=?, mortality=false, long_stay=false",
            "401 of 4: ICD10CM:I10 | aspirin | 51486, readmission=?, mortality=false, long_stay=false",
        ]
    );
    assert_eq!(
        counts["events_dropped"],
        json!({
            "after_discharge": 1, "no_encounter": 1, "no_time": 1, "outside_admissions": 1, "unknown_icd_version": 1
        })
    );
    assert_eq!(counts["events_noted"], json!({"linked_by_time": 2}));
    assert_eq!(counts["tables"]["labevents"], json!({"rows": 6, "unreadable": 0, "events": 6}));
    let title = description(&data, "ICD10CM:E1065");
    assert_eq!(title.as_deref(), Some("Type 1 diabetes mellitus with hyperglycemia"));
    let title = description(&data, "ICD9PROC:3893");
    assert_eq!(title.as_deref(), Some("Venous catheterization, not elsewhere classified"));
    assert_eq!(description(&data, "50931").as_deref(), Some("Glucose"));
    assert_eq!(description(&data, "51486"), None);
    // Values go into buckets.
    json(home.path(), "mimic4 iv --lab-bins 2 --out binned");
    let codes = lines(&home.path().join("binned")).join(" ");
    assert!(codes.contains("50931//1-of-2") && codes.contains(" 51486,"), "{codes}");
}

#[test]
fn options_choose_drugs_labs_and_what_counts_as_an_outcome() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    json(home.path(), "mimic4 iv --out ndc --drugs ndc --labs none --min-codes 0");
    let codes = lines(&home.path().join("ndc"));
    assert!(codes[1].contains("| NDC:00002831501 | ,"), "{codes:?}");
    assert!(codes[3].contains("ICD10CM:I10 |  | ,"), "{codes:?}");
    assert_eq!(description(&home.path().join("ndc"), "NDC:00002831501").as_deref(), Some("Insulin"));
    let counts = |flags: &str| json(home.path(), &format!("mimic4 iv --dry-run --min-codes 0 {flags}"));
    assert_eq!(counts("--drugs ndc")["events_dropped"]["no_ndc"], 2);
    // A table that the options do not need is not read.
    assert_eq!(counts("--drugs none")["tables"]["prescriptions"], json!(null));
    assert_eq!(counts("--after-discharge keep")["events_dropped"]["after_discharge"], json!(null));
    let outcomes = |flags: &str| counts(flags)["labels"].clone();
    assert_eq!(outcomes(""), json!({"readmission": 1, "mortality": 1, "long_stay": 1}));
    // The next admission was planned.
    assert_eq!(outcomes("--readmission unplanned")["readmission"], 0);
    // Stays of 4.1, 10, 1.2, 2 and 2 days.
    assert_eq!(outcomes("--long-stay-days 2")["long_stay"], 2);
    assert_eq!(outcomes("--long-stay-days 1.9")["long_stay"], 4);
}

#[test]
fn a_stay_in_a_unit_has_what_was_recorded_in_it_and_the_bill_of_its_admission() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let counts = json(home.path(), "mimic4 iv --encounters icu --lab-bins 0 --min-codes 0 --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            // Of two stays on the day of the procedure, the one that began last has it.
            "11 of 1: ICD10CM:E1065 ICD9CM:25000 |  | , readmission=true, mortality=false, long_stay=false",
            "12 of 1: ICD10CM:E1065 ICD9CM:25000 | ICD10PCS:0JH60DZ | 50931, readmission=true, mortality=false, long_stay=false",
            "21 of 2: ICD9CM:4019 | ICD9PROC:3893 ICD9PROC:9671 | , readmission=?, mortality=true, long_stay=false",
            "31 of 3: ICD10CM:I10 | aspirin | , readmission=?, mortality=false, long_stay=false",
        ]
    );
    // Diagnoses of 102 and 401, which have no stay, and of nobody; drugs and labs outside of stays.
    assert_eq!(
        counts["events_dropped"],
        json!({"no_time": 1, "outside_stays": 11, "unknown_icd_version": 1}),
        "{counts:#}"
    );
    assert_eq!(counts["unbalanced"], json!([]));
    assert_eq!(counts["tables"]["icustays"]["encounters"], 4);
    // Whoever died in the hospital at an unknown time may have died in the unit.
    let admissions = ADMISSIONS.replace(",2150-02-02 05:00:00,", ",,");
    write(home.path(), &[("iv/hosp/admissions.csv", &admissions)]);
    json(home.path(), "mimic4 iv --encounters icu --min-codes 0 --out unknown");
    assert_eq!(labels(&home.path().join("unknown"))[2], "readmission=?, mortality=?, long_stay=false");
}

#[test]
fn only_what_is_known_by_then_is_observed() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let line = "mimic4 iv --observe-hours 24 --min-codes 0 --lab-bins 0";
    let counts = json(home.path(), &format!("{line} --out data"));
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "101 of 1:  | insulin | 50931, readmission=true, mortality=false, long_stay=false",
            "102 of 1:  | insulin | , readmission=false, mortality=false, long_stay=true",
            // Its procedure of the first day is known when that day is over.
            "201 of 2:  | ICD9PROC:3893 | , readmission=?, mortality=true, long_stay=false",
            "301 of 3:  | aspirin | , readmission=?, mortality=false, long_stay=false",
            "401 of 4:  |  | , readmission=?, mortality=false, long_stay=false",
        ]
    );
    let dropped = &counts["events_dropped"];
    // Six diagnoses of admissions and one of none, and the procedure without a date.
    assert_eq!(dropped["billed_at_discharge"], 8, "{counts:#}");
    // The procedure on the second day, a drug and a lab 25 and 26 hours after admission, two labs later on.
    assert_eq!(dropped["after_observation"], 5, "{counts:#}");
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    let times = dataset.encounters().unwrap().map(|encounter| encounter.unwrap().prediction_time);
    assert!(times.into_iter().all(|time| time.is_some()));
    let shown = prepare(home.path(), &format!("{line} --dry-run")).assert().success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("billed at discharge"), "{shown}");

    let kept = json(home.path(), &format!("{line} --billed keep --dry-run"));
    assert_eq!(kept["events_noted"]["billed_at_discharge"], 8);
    assert_eq!(kept["events_dropped"]["billed_at_discharge"], json!(null));
    // 201 is over after 29.5 hours.
    let early = |flags: &str| {
        json(home.path(), &format!("mimic4 iv --observe-hours 29.5 --min-codes 0 --dry-run {flags}"))["dropped"]
            .clone()
    };
    assert_eq!(early(""), json!({"ends_in_observation": 1}));
    assert_eq!(early("--early-ends keep"), json!({}));
}

#[test]
fn a_flat_folder_an_archive_and_a_partial_copy_are_read() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    json(home.path(), "mimic4 iv --lab-bins 0 --out nested");
    for (name, text) in TABLES {
        let file = name.rsplit('/').next().unwrap();
        write(home.path(), &[(&format!("flat/{file}"), text)]);
        gzipped(home.path(), &format!("{}.gz", name.replace("iv/", "gz/")), text);
    }
    for folder in ["flat", "gz", "iv/hosp"] {
        json(home.path(), &format!("mimic4 {folder} --lab-bins 0 --out data --force"));
        assert_eq!(lines(&home.path().join("data")), lines(&home.path().join("nested")), "{folder}");
    }
    // Without labs, titles and what happened after discharge.
    for table in
        ["labevents", "d_labitems", "d_icd_diagnoses", "d_icd_procedures", "patients", "procedures_icd"]
    {
        std::fs::remove_file(home.path().join(format!("flat/{table}.csv"))).unwrap();
    }
    json(home.path(), "mimic4 flat --out partial");
    assert_eq!(
        lines(&home.path().join("partial"))[2],
        "301 of 3: ICD10CM:I10 | aspirin | , readmission=false, mortality=false, long_stay=false"
    );
    assert_eq!(description(&home.path().join("partial"), "ICD10CM:E1065"), None);
}

#[test]
fn mimic_iii_has_another_spelling() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &OLDER);
    let counts = json(home.path(), "mimic3 iii --lab-bins 0 --out data --min-codes treatment=0");
    let data = home.path().join("data");
    assert_eq!(
        lines(&data),
        [
            "101 of 1: ICD9CM:0389 | ICD9PROC:0066 aspirin heparin insulin | 50931, readmission=true, mortality=false, long_stay=false",
            "102 of 1: ICD9CM:25000 | heparin | 50931, readmission=?, mortality=true, long_stay=true",
        ]
    );
    assert_eq!(counts["events_dropped"], json!({"no_code": 1}));
    assert_eq!(counts["events_noted"], json!({"linked_by_time": 1}));
    assert_eq!(description(&data, "ICD9CM:0389").as_deref(), Some("Unspecified septicemia"));
    // In lower case and compressed, as it comes too. A drug has a day and no time: on the second day it may
    // have been ordered after the first 24 hours. Procedures have neither.
    for (name, text) in OLDER {
        gzipped(
            home.path(),
            &format!("{}.gz", name.to_lowercase().replace("iii/", "lower/")),
            &text.to_lowercase(),
        );
    }
    let line = "mimic3 lower --lab-bins 0 --min-codes 0 --out first --observe-hours 24";
    let counts = json(home.path(), line);
    assert_eq!(
        lines(&home.path().join("first")),
        [
            "101 of 1:  | heparin | 50931, readmission=true, mortality=false, long_stay=false",
            "102 of 1:  | heparin | , readmission=?, mortality=true, long_stay=true",
        ]
    );
    assert_eq!(counts["events_dropped"], json!({"after_observation": 3, "billed_at_discharge": 4}));
    // Death was in the hospital, and not in the unit.
    json(home.path(), "mimic3 iii --lab-bins 0 --out icu --encounters icu");
    assert_eq!(
        lines(&home.path().join("icu")),
        [
            "7 of 1: ICD9CM:0389 | ICD9PROC:0066 aspirin heparin insulin | 50931, readmission=true, mortality=false, long_stay=false",
            "8 of 1: ICD9CM:25000 | heparin | , readmission=?, mortality=false, long_stay=false",
        ]
    );
}

#[test]
fn encounters_with_impossible_times_are_dropped_by_name() {
    let home = tempfile::tempdir().unwrap();
    let header = "subject_id,hadm_id,admittime,dischtime,deathtime,hospital_expire_flag\n";
    let rows = "1,1,2150-01-02,2150-01-01,,0\n1,2,,2150-01-01,,0\n1,3,2150-02-01,,,0\n1,4,2150-03-01,2150-03-02,,0\n";
    write(
        home.path(),
        &[
            ("iv/admissions.csv", &format!("{header}{rows}")),
            ("iv/diagnoses_icd.csv", "subject_id,hadm_id,icd_code,icd_version\n1,1,I10,10\n1,4,I10,10\n"),
        ],
    );
    let counts = json(home.path(), "mimic4 iv --dry-run --min-codes 0");
    assert_eq!(
        counts["dropped"],
        json!({"ends_before_start": 1, "no_discharge_time": 1, "no_start_time": 1})
    );
    assert_eq!(counts["events_dropped"], json!({"encounter_dropped": 1}));
}

#[test]
fn what_cannot_be_missing_is_named() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let refusal = |line: &str| {
        let said = prepare(home.path(), line).assert().code(2).stdout_eq("");
        let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
        assert_eq!(said.lines().count(), 2, "{said}");
        said
    };
    std::fs::remove_file(home.path().join("iv/icu/icustays.csv")).unwrap();
    let said = refusal("mimic4 iv --out data --encounters icu");
    assert!(
        said.starts_with("error: iv has no table `icustays`, which is called `icu/icustays` or "),
        "{said}"
    );
    std::fs::remove_file(home.path().join("iv/hosp/admissions.csv")).unwrap();
    let said = refusal("mimic4 iv --out data");
    assert!(
        said.starts_with("error: iv has no table `admissions`, which is called `hosp/admissions` or "),
        "{said}"
    );
    write(home.path(), &[("only/ADMISSIONS.csv", ADMISSIONS)]);
    let said = refusal("mimic3 only --out data");
    assert!(
        said.starts_with("error: only has none of the tables `diagnoses_icd`, `procedures_icd`, "),
        "{said}"
    );
    assert!(!home.path().join("data").exists());
}

#[test]
fn at_the_time_of_a_label_nothing_is_billed_yet() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    write(home.path(), &[("labels.csv", "encounter_id,late,prediction_time\n101,1,2150-01-02 12:00:00\n")]);
    let counts = json(home.path(), "mimic4 iv --out data --min-codes 0 --lab-bins 0 --labels labels.csv");
    let found = lines(&home.path().join("data"));
    // Its two diagnoses are billed, its procedure is of a day that is not over, and one lab comes later.
    assert!(found[0].starts_with("101 of 1:  | insulin | 50931, "), "{found:?}");
    assert!(found[0].ends_with("late=true"), "{found:?}");
    assert_eq!(counts["events_dropped"]["after_prediction"], 4);
    assert_eq!(counts["unbalanced"], json!([]));
}
