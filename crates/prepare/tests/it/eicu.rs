use serde_json::json;

use super::{json, lines, prepare, test_data, write};

/// Three stays of two patients, small enough to follow by hand.
pub(super) const TABLES: [(&str, &str); 4] = [
    (
        "eicu/patient.csv",
        "patientunitstayid,patienthealthsystemstayid,uniquepid,hospitaladmitoffset,unitdischargeoffset,unitdischargestatus,hospitaldischargestatus\n\
         11,1,p1,-10,600,Alive,Expired\n\
         12,1,p1,-2000,1441,Alive,Expired\n\
         21,2,p2,0,1440,Expired,Expired\n",
    ),
    (
        "eicu/admissionDx.csv",
        "admissiondxid,patientunitstayid,admitdxenteredoffset,admitdxpath\n1,11,5,A|Sepsis\n2,12,5,A|CABG\n3,21,0,A|Sepsis\n4,99,0,A|Sepsis\n",
    ),
    (
        "eicu/diagnosis.csv",
        "patientunitstayid,diagnosisoffset,diagnosisstring\n11,700,renal|failure\n11,20,Shock\n11,30,shock\n21,10,shock\n",
    ),
    (
        "eicu/treatment.csv",
        "patientunitstayid,treatmentoffset,treatmentstring\n11,10,fluids\n12,10,fluids\n21,10,001.0\n21,10,fluids\n",
    ),
];

#[test]
fn careful_rules_drop_what_was_recorded_after_discharge() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let counts = json(home.path(), "eicu eicu --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "11 of p1: a|sepsis shock | fluids | , readmission=true, mortality=false",
            "12 of p1: a|cabg | fluids | , readmission=?, mortality=false",
            "21 of p2: a|sepsis shock | 001.0 fluids | , readmission=?, mortality=true",
        ]
    );
    assert_eq!(counts["encounters_read"], 3);
    assert_eq!(counts["encounters_kept"], 3);
    assert_eq!(counts["events_dropped"], json!({"after_discharge": 1, "no_encounter": 1}));
    assert_eq!(counts["vocabulary"], json!({"diagnosis": 3, "treatment": 2, "lab": 0}));
    assert_eq!(counts["labels"], json!({"readmission": 1, "mortality": 1}));
    assert_eq!(counts["subjects_with_several_encounters"], 1);
}

#[test]
fn the_rules_of_the_paper_keep_them_and_leave_out_long_stays() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let counts = json(home.path(), "eicu eicu --rules paper --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "11 of p1: a|sepsis renal|failure shock | fluids | , readmission=true, mortality=false",
            "21 of p2: a|sepsis shock | 001.0 fluids | , readmission=false, mortality=true",
        ]
    );
    assert_eq!(counts["dropped"], json!({"stay_too_long": 1}));
    // A flag says more than a set of rules.
    let counts = json(home.path(), "eicu eicu --rules paper --max-hours 1000 --mortality hospital --dry-run");
    assert_eq!((&counts["encounters_kept"], &counts["labels"]["mortality"]), (&json!(3), &json!(3)));
}

#[test]
fn the_real_demo_has_the_counts_that_are_known() {
    let Some(demo) = test_data("eicu-demo") else { return };
    let home = tempfile::tempdir().unwrap();
    let counts = |flags: &str| json(home.path(), &format!("eicu {} {flags}", demo.display()));
    let paper = counts("--rules paper --out paper");
    assert_eq!((&paper["encounters_read"], &paper["encounters_kept"]), (&json!(2520), &json!(561)));
    assert_eq!(paper["labels"], json!({"readmission": 76, "mortality": 36}));
    assert_eq!(paper["vocabulary"], json!({"diagnosis": 727, "treatment": 677, "lab": 0}));
    assert_eq!(counts("--dry-run --after-discharge keep")["encounters_kept"], 1905);
    let careful = counts("--dry-run");
    assert_eq!(careful["encounters_kept"], 1894);
    assert_eq!(careful["events_dropped"], json!({"after_discharge": 627, "encounter_dropped": 7678}));
    let medicated = counts("--dry-run --medications --max-codes 100");
    assert!(medicated["vocabulary"]["treatment"].as_u64() > careful["vocabulary"]["treatment"].as_u64());
    // The folder is one that gct reads from end to end.
    let dataset = gct::dataset::Dataset::open(&home.path().join("paper")).unwrap();
    assert_eq!(dataset.encounters().unwrap().map(Result::unwrap).count(), 561);
    assert!(prepare(home.path(), "eicu --help").assert().success().get_output().stdout.len() > 1000);
}

#[test]
fn tables_that_are_not_asked_for_are_not_read() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let lab =
        "patientunitstayid,labresultoffset,labname,labresult\n11,5,Na,140\n11,soon,Na,141\n21,5,Na,138\n";
    write(
        home.path(),
        &[
            ("eicu/lab.csv", lab),
            ("eicu/medication.csv", "something,else\n1,2\n"),
            (
                "all.csv",
                "patientunitstayid,admitdxenteredoffset,admitdxpath\n11,5,A|Sepsis\n12,5,A|CABG\n21,0,A|Sepsis\n",
            ),
        ],
    );
    let plain = json(home.path(), "eicu eicu --dry-run --strict --table admissiondx=all.csv");
    assert_eq!((&plain["encounters_kept"], &plain["rows_unreadable"]), (&json!(3), &json!({})));
    let labs = json(home.path(), "eicu eicu --dry-run --labs");
    assert_eq!(labs["rows_unreadable"], json!({"lab.labresultoffset": 1}));
    // What is said of the columns of such a table is no mistake.
    json(home.path(), "eicu eicu --dry-run --column lab.labname=name");
    for (flags, expected) in [
        ("--labs --strict", "error: eicu/lab.csv: row 2: column `labresultoffset`: expected a whole number "),
        ("--medications", "error: eicu/medication.csv: its first line does not name the expected columns: "),
    ] {
        let said = prepare(home.path(), &format!("eicu eicu --dry-run {flags}")).assert().code(2);
        let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
        assert!(said.starts_with(expected), "{said}");
    }
    // A table that is asked for must be there.
    std::fs::remove_file(home.path().join("eicu/lab.csv")).unwrap();
    let said = prepare(home.path(), "eicu eicu --dry-run --labs").assert().code(2);
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    assert!(said.contains("table `lab`"), "{said}");
}

#[test]
fn an_outcome_does_not_lie_inside_of_what_is_observed() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    // Stays of 600, 1,440 and 1,441 minutes.
    let early = json(home.path(), "eicu eicu --dry-run --observe-hours 24");
    assert_eq!(early["dropped"], json!({"ends_in_observation": 2}));
    let kept = json(home.path(), "eicu eicu --dry-run --observe-hours 24 --early-ends keep");
    assert_eq!(kept["dropped"], json!({}));
}

#[test]
fn codes_are_counted_and_values_bucketed_in_what_is_written() {
    let Some(demo) = test_data("eicu-demo") else { return };
    let home = tempfile::tempdir().unwrap();
    for flags in
        ["--min-count 10", "--rules paper --min-count 10", "--min-count 10 --rare group --medications"]
    {
        let counts = json(home.path(), &format!("eicu {} --out data --force {flags}", demo.display()));
        let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
        let mut found = gct::record::PerKind::from_fn(|kind| vec![0; dataset.vocabulary()[kind].len()]);
        for encounter in dataset.encounters().unwrap() {
            let encounter = encounter.unwrap();
            for kind in gct::record::CodeKind::ALL {
                encounter.codes[kind].iter().for_each(|id| found[kind][*id as usize] += 1);
            }
            assert!(
                !encounter.codes.diagnosis.is_empty() && !encounter.codes.treatment.is_empty(),
                "{flags}"
            );
        }
        let least = gct::record::CodeKind::ALL.into_iter().flat_map(|kind| found[kind].clone()).min();
        assert!(least >= Some(10), "{flags}: {least:?}");
        assert!(counts["rare"]["diagnosis"].as_u64().unwrap() > 0, "{flags}");
    }
}

#[test]
fn offsets_at_the_limits_of_numbers_are_counted() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &TABLES);
    let treatments = "patientunitstayid,treatmentoffset,treatmentstring\n11,10,fluids\n11,-9223372036854775808,x\n\
        12.0,9223372036854775807,x\n21,9223372036854775808,x\n21,5,fluids\n";
    let labs = "patientunitstayid,labresultoffset,labname,labresult\n11,5,Na,inf\n11,6,Na,140\n21,5,Na,NaN\n";
    write(home.path(), &[("eicu/treatment.csv", treatments), ("eicu/lab.csv", labs)]);
    let counts = json(home.path(), "eicu eicu --dry-run --labs");
    assert_eq!(counts["events_dropped"]["absurd_time"], 2);
    assert_eq!(counts["rows_unreadable"], json!({"treatment.treatmentoffset": 1}));
    assert_eq!(counts["events_noted"], json!({"no_finite_value": 2}));
    assert_eq!(counts["tables"]["treatment"], json!({"rows": 5, "unreadable": 1, "events": 4}));
}
