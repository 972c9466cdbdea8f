//! Labels, cohorts and groups that do not go with the records.

use super::super::{json, prepare, write};
use super::{HEADER, SECRET, failure};

#[test]
fn names_of_labels_can_be_anything_and_are_never_code() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n2,s,dx,I10\n2,s,rx,a\n"))]);
    for name in
        ["x' WHEN true THEN 'y", "patient's wish", "unreadable", "c0", "has_line_break", "a \"\"b\"\"", "$1"]
    {
        let quoted = format!("\"{name}\"");
        write(home.path(), &[("l.csv", &format!("encounter_id,{quoted}\n1,1.0\n2,0.0\n"))]);
        let counts = json(home.path(), "events e.csv --dry-run --labels l.csv");
        assert_eq!(counts["labels"], serde_json::json!({name.replace("\"\"", "\""): 1}));
        write(home.path(), &[("l.csv", &format!("encounter_id,{quoted}\n1,1.0\n2,{SECRET}\n"))]);
        let said = failure(home.path(), "events e.csv --dry-run --labels l.csv");
        assert!(said.starts_with("error: l.csv: row 2: column `"), "{said}");
    }
}

#[test]
fn labels_that_cannot_be_joined_are_refused() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            ("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n")),
            ("bad.csv", "encounter_id,late\n1,perhaps\n"),
            ("taken.csv", "encounter_id,dropped\n1,true\n"),
        ],
    );
    let said = failure(home.path(), "events e.csv --dry-run --labels bad.csv");
    assert!(said.starts_with("error: bad.csv: row 1: column `late`: expected true or false\n"), "{said}");
    let said = failure(home.path(), "events e.csv --dry-run --labels taken.csv");
    assert!(said.starts_with("error: taken.csv: two columns are called `dropped`\n"), "{said}");
}

#[test]
fn labels_that_belong_to_no_encounter_are_counted_and_refused_when_none_does() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            ("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n2,s,dx,I10\n2,s,rx,a\n")),
            ("some.csv", &format!("encounter_id,late\n1,true\n2,false\n{SECRET},true\n,true\n")),
            ("none.csv", &format!("encounter_id,late\n01,true\n{SECRET},true\n")),
        ],
    );
    for flags in ["", "--limit 1"] {
        let counts = json(home.path(), &format!("events e.csv --dry-run --labels some.csv {flags}"));
        assert_eq!(counts["labels_unmatched"], 2, "{flags}");
    }
    assert_eq!(json(home.path(), "events e.csv --dry-run")["labels_unmatched"], 0);
    let shown = prepare(home.path(), "events e.csv --dry-run --labels some.csv").assert().success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("\nlabels of no encounter "), "{shown}");
    let said = failure(home.path(), "events e.csv --out data --labels some.csv --strict");
    assert!(
        said.starts_with(
            "error: some.csv: 2 of 4 labels are of no encounter (refused because of --strict)\n"
        ),
        "{said}"
    );
    let said = failure(home.path(), "events e.csv --out data --labels none.csv");
    assert_eq!(
        said,
        "error: none.csv: none of its 2 labels is of an encounter of e.csv\n\
         hint: its `encounter_id` must be what the source takes for one; identifiers are compared as text, so 7 is not 007\n"
    );
}

#[test]
fn prediction_times_need_times_of_events() {
    let home = tempfile::tempdir().unwrap();
    let events = format!("{HEADER},time\n1,s,dx,I10,2020-01-01\n1,s,rx,a,2020-01-01\n");
    write(
        home.path(),
        &[
            ("e.csv", &events),
            ("labels.csv", "encounter_id,late,prediction_time\n1,1,2020-01-01\n"),
            ("bad.csv", &format!("encounter_id,late,prediction_time\n1,1,{SECRET}\n")),
            ("twice.csv", "encounter_id,late,prediction_time\n1,1,2020-01-01\n1,1,2020-01-02\n"),
            (
                "eicu/patient.csv",
                "patientunitstayid,patienthealthsystemstayid,uniquepid,hospitaladmitoffset,unitdischargeoffset,unitdischargestatus,hospitaldischargestatus\n1,1,p,0,100,Alive,Alive\n",
            ),
            ("eicu/admissiondx.csv", "patientunitstayid,admitdxenteredoffset,admitdxpath\n1,1,a\n"),
            ("eicu/diagnosis.csv", "patientunitstayid,diagnosisoffset,diagnosisstring\n1,1,a\n"),
            ("eicu/treatment.csv", "patientunitstayid,treatmentoffset,treatmentstring\n1,1,a\n"),
        ],
    );
    assert_eq!(
        failure(home.path(), "eicu eicu --out data --labels labels.csv"),
        "error: labels.csv has a column `prediction_time`, but events of eicu have no time; they have minutes since admission to the unit\n\
         hint: remove that column, or write a table of events with their times for `gct prepare events`\n"
    );
    let said = failure(home.path(), "events e.csv --out data --labels bad.csv");
    assert!(
        said.starts_with("error: bad.csv: row 1: column `prediction_time`: expected a date or time\n"),
        "{said}"
    );
    let said = failure(home.path(), "events e.csv --out data --labels twice.csv");
    assert!(
        said.starts_with("error: twice.csv: row 2: column `encounter_id`: is that of an earlier row"),
        "{said}"
    );
}

#[test]
fn cohorts_and_ancestors_that_there_are_not_are_named() {
    let home = tempfile::tempdir().unwrap();
    let person = "person_id,visit_occurrence_id";
    write(
        home.path(),
        &[
            (
                "cdm/visit_occurrence.csv",
                &format!(
                    "{person},visit_concept_id,visit_start_date,visit_end_date\n1,1,9201,2020-01-01,2020-01-02\n"
                ),
            ),
            (
                "cdm/condition_occurrence.csv",
                &format!("{person},condition_concept_id,condition_start_date\n1,1,5,2020-01-01\n"),
            ),
            (
                "c.csv",
                "cohort_definition_id,subject_id,cohort_start_date,cohort_end_date\n7,1,2020-03-01,\n12,1,2020-03-01,\n",
            ),
            ("empty.csv", "cohort_definition_id,subject_id,cohort_start_date,cohort_end_date\n"),
        ],
    );
    let said = |flags: &str| failure(home.path(), &format!("omop cdm --out data --min-codes 0 {flags}"));
    for (flags, expected) in [
        (
            "--cohort c.csv --within 365..1",
            "error: option `within`: 365..1 is not allowed; expected two whole numbers with .. between them, the smaller one first, as 1..365\n",
        ),
        ("--cohort c.csv:8", "error: option `cohort`: 8 is not allowed; expected one of 7, 12\n"),
        (
            "--within 1..30",
            "error: option `within` does nothing without `onset` or `cohort`\nhint: give --onset or --cohort too, or leave --within out\n",
        ),
        ("--within 1..365", "error: option `within` does nothing without `onset` or `cohort`\n"),
        ("--set within=1..365", "error: option `within` does nothing without `onset` or `cohort`\n"),
        ("--cohort nowhere.csv", "error: cannot read nowhere.csv: "),
        ("--cohort empty.csv", "error: empty.csv has no rows\n"),
        ("--cohort :7", "error: cdm has no table `cohort`; it has: condition_occurrence, visit_occurrence\n"),
        (
            "--cohort c.csv:7 --table cohort=empty.csv",
            "error: option `table`: cohort=empty.csv is not allowed; expected one path for it: --cohort has another\n",
        ),
        ("--rollup diagnosis=ancestors:Ingredient", "error: cdm has no table `concept`; it has: "),
        (
            "--rollup diagnosis=ancestors",
            "error: the rollup of diagnosis: `ancestors` does not say which groups are meant\n",
        ),
        (
            "--rollup diagnosis=parents",
            "error: the rollup of diagnosis: `parents` needs tables of meds, which omop does not have\n",
        ),
    ] {
        let said = said(flags);
        assert!(said.starts_with(expected), "{said}");
    }
    // A file of all settings has it, and that is no mistake.
    let shown = prepare(home.path(), "omop cdm --min-codes 0 --show-config").assert().success();
    std::fs::write(home.path().join("all.toml"), &shown.get_output().stdout).unwrap();
    assert!(std::fs::read_to_string(home.path().join("all.toml")).unwrap().contains("within = \"1..365\""));
    prepare(home.path(), "omop cdm --config all.toml --dry-run").assert().success();
    let concepts =
        "concept_id,concept_name,vocabulary_id,concept_code,concept_class_id\n5,Asthma,SNOMED,1,Disorder\n";
    write(home.path(), &[("cdm/concept.csv", concepts)]);
    let missing = said("--rollup diagnosis=ancestors:Disorder");
    assert!(missing.starts_with("error: cdm has no table `concept_ancestor`; it has: "), "{missing}");
    let ancestors = "ancestor_concept_id,descendant_concept_id,min_levels_of_separation\n5,5,0\n";
    write(home.path(), &[("cdm/concept_ancestor.csv", ancestors)]);
    assert_eq!(
        said("--rollup diagnosis=ancestors:Disorders"),
        "error: the rollup of diagnosis: `ancestors:Disorders` puts none of the 1 codes into a group\n\
         hint: give `ancestors:CLASS` with a class of the table `concept`, as its column concept_class_id has them: Ingredient, ATC 3rd\n"
    );
}
