//! A user's own source: `examples/diabetes`, which reads the published UCI diabetes encounters.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{json, lines, prepare, test_data};

const COLUMNS: [&str; 50] = [
    "encounter_id",
    "patient_nbr",
    "race",
    "gender",
    "age",
    "weight",
    "admission_type_id",
    "discharge_disposition_id",
    "admission_source_id",
    "time_in_hospital",
    "payer_code",
    "medical_specialty",
    "num_lab_procedures",
    "num_procedures",
    "num_medications",
    "number_outpatient",
    "number_emergency",
    "number_inpatient",
    "diag_1",
    "diag_2",
    "diag_3",
    "number_diagnoses",
    "max_glu_serum",
    "A1Cresult",
    "metformin",
    "repaglinide",
    "nateglinide",
    "chlorpropamide",
    "glimepiride",
    "acetohexamide",
    "glipizide",
    "glyburide",
    "tolbutamide",
    "pioglitazone",
    "rosiglitazone",
    "acarbose",
    "miglitol",
    "troglitazone",
    "tolazamide",
    "examide",
    "citoglipton",
    "insulin",
    "glyburide-metformin",
    "glipizide-metformin",
    "glimepiride-pioglitazone",
    "metformin-rosiglitazone",
    "metformin-pioglitazone",
    "change",
    "diabetesMed",
    "readmitted",
];

/// A row in which nothing is known but these columns: no drug, no lab, everything else missing.
fn row(known: &[(&str, &str)]) -> String {
    let cell = |(at, name): (usize, &&str)| match known.iter().find(|(known, _)| known == name) {
        Some((_, value)) => *value,
        None if name.ends_with("_id") || *name == "time_in_hospital" => "1",
        None if name.starts_with("num") => "0",
        None if (22..24).contains(&at) => "None",
        None if (24..48).contains(&at) => "No",
        None => "?",
    };
    COLUMNS.iter().enumerate().map(cell).collect::<Vec<_>>().join(",")
}

fn write_rows(path: &Path, rows: &[String]) {
    std::fs::write(path, format!("{}\n{}\n", COLUMNS.join(","), rows.join("\n"))).unwrap();
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/diabetes")
}

/// Four encounters of three patients, of whom one died and one went to a hospice.
fn small(home: &Path) -> String {
    let rows = [
        row(&[
            ("encounter_id", "11"),
            ("patient_nbr", "1"),
            ("race", "Caucasian"),
            ("gender", "Female"),
            ("age", "[70-80)"),
            ("discharge_disposition_id", "3"),
            ("time_in_hospital", "4"),
            ("num_lab_procedures", "43"),
            ("num_medications", "81"),
            ("number_outpatient", "4"),
            ("number_inpatient", "6"),
            ("diag_1", "250.83"),
            ("diag_3", "V27"),
            ("number_diagnoses", "9"),
            ("A1Cresult", ">8"),
            ("insulin", "Up"),
            ("glyburide-metformin", "Steady"),
            ("change", "Ch"),
            ("diabetesMed", "Yes"),
            ("readmitted", "<30"),
        ]),
        row(&[
            ("encounter_id", "12"),
            ("patient_nbr", "1"),
            ("gender", "Unknown/Invalid"),
            ("readmitted", ">30"),
        ]),
        row(&[
            ("encounter_id", "21"),
            ("patient_nbr", "2"),
            ("discharge_disposition_id", "11"),
            ("diag_1", "428"),
        ]),
        row(&[("encounter_id", "31"), ("patient_nbr", "3"), ("discharge_disposition_id", "14")]),
    ];
    write_rows(&home.join("diabetic_data.csv"), &rows);
    format!("sql diabetic_data.csv --source {}", source().display())
}

#[test]
fn the_published_file_is_read_as_it_is() {
    let home = tempfile::tempdir().unwrap();
    let line = small(home.path());
    let counts = json(home.path(), &format!("{line} --context none --out codes"));
    assert_eq!(
        lines(&home.path().join("codes")),
        [
            "11 of 1: ICD9CM:250.83 ICD9CM:V27 | glyburide-metformin=steady insulin=up | A1C=>8, \
             readmission=true",
            "12 of 1:  |  | , readmission=false",
        ]
    );
    assert_eq!(counts["encounters_read"], 4);
    assert_eq!(counts["dropped"], json!({"died": 1, "hospice": 1}));
    assert_eq!(counts["unbalanced"], json!([]));
    assert_eq!(counts["events_dropped"], json!({"encounter_dropped": 1}));
}

#[test]
fn what_is_known_at_discharge_is_context() {
    let home = tempfile::tempdir().unwrap();
    let line = small(home.path());
    prepare(home.path(), &format!("{line} --out data")).assert().success();
    let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
    let codes = &dataset.vocabulary().context;
    let of = |encounter: gct::record::Encounter| -> Vec<&str> {
        encounter.codes.context.iter().map(|id| codes[*id as usize].code.as_str()).collect()
    };
    let found: Vec<Vec<&str>> = dataset.encounters().unwrap().map(|one| of(one.unwrap())).collect();
    let expected = [
        "admission=emergency",
        "admission_source=1",
        "age=70-79",
        "days=4",
        "diabetes_drugs=yes",
        "diagnoses=9",
        "discharge=3",
        "drugs_changed=yes",
        "emergency_visits=0",
        "inpatient_visits=6-7",
        "lab_procedures=40-49",
        "medications=40+",
        "outpatient_visits=3-4",
        "procedures=0",
        "race=caucasian",
        "sex=female",
    ];
    assert_eq!(found[0], expected);
    // A patient of whom neither age nor sex is known has no code for them.
    assert!(
        found[1].iter().all(|code| !code.starts_with("age") && !code.starts_with("sex")),
        "{:?}",
        found[1]
    );
}

#[test]
fn how_long_ago_the_encounter_before_was_is_context_if_wanted() {
    let home = tempfile::tempdir().unwrap();
    let line = small(home.path());
    for (option, expected) in
        [("", [None, None]), ("--option last_visit=true", [None, Some("within 30 days")])]
    {
        prepare(home.path(), &format!("{line} {option} --out data --force")).assert().success();
        let dataset = gct::dataset::Dataset::open(&home.path().join("data")).unwrap();
        let codes = &dataset.vocabulary().context;
        let of = |encounter: gct::record::Encounter| {
            let mut codes = encounter.codes.context.iter().map(|id| codes[*id as usize].code.as_str());
            codes.find_map(|code| code.strip_prefix("last_visit="))
        };
        let found: Vec<Option<&str>> = dataset.encounters().unwrap().map(|one| of(one.unwrap())).collect();
        assert_eq!(found, expected, "the label of an encounter is no context of its own");
    }
}

#[test]
fn the_real_encounters_are_all_there() {
    let Some(folder) = test_data("uci-diabetes") else { return };
    let home = tempfile::tempdir().unwrap();
    let line = format!("sql {} --source {} --dry-run", folder.display(), source().display());
    let counts = json(home.path(), &line);
    assert_eq!(counts["encounters_read"], 101_766);
    assert_eq!(counts["dropped"], json!({"died": 1_652, "hospice": 771}));
    assert_eq!(counts["encounters_kept"], 99_343);
    assert_eq!(counts["subjects"], 69_990);
    assert_eq!(counts["labels"], json!({"readmission": 11_314}));
    assert_eq!(counts["unbalanced"], json!([]));
}
