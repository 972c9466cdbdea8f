use gct::dataset::Dataset;
use gct::experiment::{self, Experiment, Share};
use gct::job::Job;
use gct::record::SplitPart;
use gct::split::{self, By};
use serde_json::json;

use super::{json, lines, prepare, write};

/// Two stays of a subject with a negative number and one of another, as MIMIC-IV is written: some rows do not
/// name their stay.
const DATA: &str = "subject_id,time,code,numeric_value,hadm_id\n\
    -5,,GENDER//F,,\n\
    -5,1950-01-01,MEDS_BIRTH,,\n\
    -5,2020-01-01T00:00:00,HOSPITAL_ADMISSION//EMERGENCY,,11\n\
    -5,2020-01-01T01:00:00,LAB//RESULT//1//mg,5.5,11\n\
    -5,2020-01-01T02:00:00,MEDICATION//START//Aspirin,,\n\
    -5,2020-01-01T09:00:00,MEDICATION//STOP//Aspirin,,\n\
    -5,2020-01-02T00:00:00,DIAGNOSIS//ICD//10//I10,,11\n\
    -5,2020-01-02T00:00:00,PROCEDURE//ICD//10//X,,11\n\
    -5,2020-01-02T00:00:00,HOSPITAL_DISCHARGE//HOME,,11\n\
    -5,2020-02-01T00:00:00,LAB//RESULT//1//mg,6.5,\n\
    -5,2020-03-01T00:00:00,HOSPITAL_ADMISSION//EMERGENCY,,12\n\
    -5,2020-03-01T05:00:00,DIAGNOSIS//ICD//10//E11,,12\n\
    -5,2020-03-01T06:00:00,MEDICATION//START//Insulin,,\n\
    -5,2020-03-03T00:00:00,HOSPITAL_DISCHARGE//HOME,,12\n\
    7,2020-01-04T00:00:00,HOSPITAL_ADMISSION//URGENT,,11\n\
    7,2020-01-04T05:00:00,DIAGNOSIS//ICD//10//I10,,11\n\
    7,2020-01-04T06:00:00,INFUSION_START//225,,11\n\
    7,2020-01-05T00:00:00,HOSPITAL_DISCHARGE//DIED,,11\n\
    7,2020-01-05T00:00:00,MEDS_DEATH,,\n";

/// Without a column.
fn without(data: &str, column: usize) -> String {
    let cut = |line: &str| -> String {
        let fields = line.split(',').enumerate().filter(|(position, _)| *position != column);
        fields.map(|(_, field)| field).collect::<Vec<_>>().join(",") + "\n"
    };
    data.lines().map(cut).collect()
}

#[test]
fn visits_are_those_that_events_name_or_lie_in() {
    let home = tempfile::tempdir().unwrap();
    let codes = "code,description\nDIAGNOSIS//ICD//10//I10,Hypertension\n";
    write(home.path(), &[("in/data/train/0.csv", DATA), ("in/metadata/codes.csv", codes)]);
    let counts = json(home.path(), "meds in --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "-5:11 of -5: DIAGNOSIS//ICD//10//I10 | MEDICATION//START//Aspirin PROCEDURE//ICD//10//X | LAB//RESULT//1//mg//1-of-2",
            "-5:12 of -5: DIAGNOSIS//ICD//10//E11 | MEDICATION//START//Insulin | ",
            "7:11 of 7: DIAGNOSIS//ICD//10//I10 | INFUSION_START//225 | ",
        ]
    );
    assert_eq!(
        counts["options"],
        json!({"encounters": "visit", "gap_hours": 24.0, "per": "visit", "task": null, "vitals": "drop"})
    );
    assert_eq!(
        counts["events_dropped"],
        json!({"no_time": 1, "other_code": 3, "visit_boundary": 6, "no_encounter": 1})
    );
    assert_eq!(counts["labels"], json!({}));
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    assert_eq!(dataset.manifest().labels, [""; 0]);
    let described = dataset.vocabulary().diagnosis.iter().find_map(|code| code.description.clone());
    assert_eq!(described.as_deref(), Some("Hypertension"));
}

#[test]
fn without_visits_admissions_count_and_without_those_gaps() {
    let home = tempfile::tempdir().unwrap();
    let anonymous = without(DATA, 4);
    let quiet: String = anonymous.split_inclusive('\n').filter(|line| !line.contains("HOSPITAL_")).collect();
    write(home.path(), &[("admissions/data.csv", &anonymous), ("gaps/data.csv", &quiet)]);
    let counts = json(home.path(), "meds admissions --out admitted");
    assert_eq!(counts["options"]["encounters"], "admission");
    assert_eq!(
        lines(&home.path().join("admitted")),
        [
            "-5:1 of -5: DIAGNOSIS//ICD//10//I10 | MEDICATION//START//Aspirin PROCEDURE//ICD//10//X | LAB//RESULT//1//mg//1-of-2",
            "-5:2 of -5: DIAGNOSIS//ICD//10//E11 | MEDICATION//START//Insulin | ",
            "7:1 of 7: DIAGNOSIS//ICD//10//I10 | INFUSION_START//225 | ",
        ]
    );
    assert_eq!(counts["events_dropped"]["no_encounter"], 1);

    // The lab in February is an encounter of its own, and has too few codes.
    let counts = json(home.path(), "meds gaps --out gapped --lab-bins 0");
    assert_eq!(counts["options"]["encounters"], "gap");
    assert_eq!(
        (&counts["encounters_read"], &counts["dropped"]),
        (&json!(4), &json!({"too_few_diagnosis": 1}))
    );
    assert_eq!(
        lines(&home.path().join("gapped")),
        [
            "-5:1 of -5: DIAGNOSIS//ICD//10//I10 | MEDICATION//START//Aspirin PROCEDURE//ICD//10//X | LAB//RESULT//1//mg",
            "-5:3 of -5: DIAGNOSIS//ICD//10//E11 | MEDICATION//START//Insulin | ",
            "7:1 of 7: DIAGNOSIS//ICD//10//I10 | INFUSION_START//225 | ",
        ]
    );
    let counts = json(home.path(), "meds gaps --dry-run --gap-hours 10");
    assert_eq!(counts["encounters_read"], 6, "the 15 hours before each discharge are a gap too");
    let counts = json(home.path(), "meds gaps --dry-run --gap-hours 1e5");
    assert_eq!(counts["encounters_read"], 2);
}

#[test]
fn visits_that_touch_or_have_no_length_keep_apart() {
    let home = tempfile::tempdir().unwrap();
    let data = "subject_id,time,code\n\
        1,2020-01-01,ADMISSION\n1,2020-01-01,ICD10CM/A\n1,2020-01-01,RxNorm/1\n1,2020-01-01,DISCHARGE\n\
        1,2020-01-02,ICD10CM/Z\n\
        1,2020-01-03,Visit/IP\n1,2020-01-04,ICD10CM/B\n1,2020-01-04,ICD10PCS/2\n1,2020-01-05,VISIT_END//HOME\n\
        1,2020-01-05,ADMISSION//AGAIN\n1,2020-01-05,SNOMED/C\n1,2020-01-06,LOINC/3\n1,2020-01-06,CPT4/3\n";
    write(home.path(), &[("data.csv", data)]);
    let counts = json(home.path(), "meds data.csv --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "1:1 of 1: ICD10CM/A | RxNorm/1 | ",
            "1:2 of 1: ICD10CM/B | ICD10PCS/2 | ",
            "1:3 of 1: SNOMED/C | CPT4/3 | LOINC/3",
        ]
    );
    assert_eq!(counts["events_dropped"], json!({"visit_boundary": 5, "no_encounter": 1}));
}

#[test]
fn splits_are_those_of_the_source() {
    let home = tempfile::tempdir().unwrap();
    let more = DATA.to_owned()
        + "8,2020-01-04,DIAGNOSIS//ICD//10//I10,,1\n8,2020-01-04,INFUSION_START//225,,1\n9,2020-01-04,DIAGNOSIS//ICD//10//I10,,1\n";
    let splits = "subject_id,split\n-5,tuning\n7,held_out\n8,train\n9,other\n";
    write(home.path(), &[("in/data/0.csv", &more), ("in/metadata/subject_splits.csv", splits)]);
    let counts = json(home.path(), "meds in --out data");
    assert_eq!(counts["dropped"], json!({"other_split": 1}));
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    let parts: Vec<_> = dataset.encounters().unwrap().map(|encounter| encounter.unwrap().part).collect();
    let [train, validation, test] = [SplitPart::Train, SplitPart::Validation, SplitPart::Test].map(Some);
    // Subjects 7, 8, and -5 twice.
    assert_eq!(parts, [test, train, validation, validation]);
    // No seed and no stratification changes it.
    let split = split::Settings { seed: 1, ..Default::default() };
    assert!(matches!(split.check_for(&dataset), Err(gct::Error::FixedSplit)));
    split::Settings { by: By::Subject, ..split }.check_for(&dataset).unwrap();
    split::Settings::default().check_for(&dataset).unwrap();
    // With one split there is nothing to take a mean over.
    let file = "title = \"t\"\ntasks = [\"masked_diagnosis\"]\nmodels = [\"deep\"]\nsplit_seeds = [0, 1]\n";
    write(home.path(), &[("several.toml", file)]);
    let experiment = Experiment::read(&home.path().join("several.toml"), Default::default()).unwrap();
    let out = home.path().join("out");
    let ran = experiment::run(&experiment, &dataset, &out, Share::ALL, None, &Job::silent());
    assert!(matches!(ran, Err(gct::Error::FixedSplit)), "{ran:?}");
    assert!(!out.exists());
}

#[test]
fn a_label_sees_what_was_known_by_its_time() {
    let home = tempfile::tempdir().unwrap();
    let labels = "subject_id,prediction_time,boolean_value\n\
        -5,2020-01-01T02:00:00,true\n\
        -5,2020-01-02T00:00:00,false\n\
        -5,2020-02-20T00:00:00,true\n\
        7,2020-01-04T05:59:59,true\n\
        7,2020-01-03T00:00:00,false\n";
    write(home.path(), &[("in/data.csv", DATA), ("in/labels/mortality/0.csv", labels)]);
    let counts = json(home.path(), "meds in --out data --min-codes 0 --lab-bins 0");
    assert_eq!(counts["options"]["per"], "label");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "-5@2020-01-01T02:00:00 of -5:  | MEDICATION//START//Aspirin | LAB//RESULT//1//mg, boolean_value=true",
            "-5@2020-01-02T00:00:00 of -5: DIAGNOSIS//ICD//10//I10 | MEDICATION//START//Aspirin PROCEDURE//ICD//10//X | LAB//RESULT//1//mg, boolean_value=false",
            // The last stay before it, and not the lab since.
            "-5@2020-02-20T00:00:00 of -5: DIAGNOSIS//ICD//10//I10 | MEDICATION//START//Aspirin PROCEDURE//ICD//10//X | LAB//RESULT//1//mg, boolean_value=true",
            "7@2020-01-04T05:59:59 of 7: DIAGNOSIS//ICD//10//I10 |  | , boolean_value=true",
        ]
    );
    assert_eq!(counts["dropped"], json!({"no_visit_yet": 1}));
    assert_eq!(counts["events_dropped"]["after_prediction"], 3);
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    // After that of subject 7, whose id is shorter.
    let first = dataset.encounters().unwrap().nth(1).unwrap().unwrap();
    assert_eq!(first.prediction_time, Some(1_577_844_000_000_000));
    assert_eq!(first.start, Some(1_577_836_800_000_000));

    // Labels of two tasks are two datasets.
    write(home.path(), &[("in/labels/readmission/0.csv", labels)]);
    let error = prepare(home.path(), "meds in --out both").assert().code(2).get_output().stderr.clone();
    let error = String::from_utf8(error).unwrap();
    assert!(error.contains("one per task: mortality, readmission"), "{error}");
    let one = json(home.path(), "meds in --table task_labels=in/labels/mortality --dry-run --min-codes 0");
    assert_eq!(one["encounters_kept"], 4);
    let visits = json(home.path(), "meds in --table task_labels=in/labels/mortality --per visit --dry-run");
    assert_eq!((&visits["encounters_kept"], &visits["labels"]), (&json!(3), &json!({})));
}

#[test]
fn earlier_visits_are_the_history_of_labels() {
    let home = tempfile::tempdir().unwrap();
    // In the first stay of one patient, twice in the second, after which nothing is history; and before there
    // is anything.
    let labels = "subject_id,prediction_time,boolean_value\n\
        -5,2020-01-01T02:00:00,true\n\
        -5,2020-03-01T05:00:00,false\n\
        -5,2020-03-02T00:00:00,true\n\
        7,2020-01-04T05:59:59,true\n\
        7,2020-01-03T00:00:00,false\n";
    write(home.path(), &[("in/data.csv", DATA), ("in/labels/mortality/0.csv", labels)]);
    let counts = json(home.path(), "meds in --out data --min-codes 0 --lab-bins 0 --per history");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "-5:11 of -5: DIAGNOSIS//ICD//10//I10 | MEDICATION//START//Aspirin PROCEDURE//ICD//10//X | LAB//RESULT//1//mg, boolean_value=?",
            "-5@2020-01-01T02:00:00 of -5:  | MEDICATION//START//Aspirin | LAB//RESULT//1//mg, boolean_value=true",
            "-5@2020-03-01T05:00:00 of -5: DIAGNOSIS//ICD//10//E11 |  | , boolean_value=false",
            "-5@2020-03-02T00:00:00 of -5: DIAGNOSIS//ICD//10//E11 | MEDICATION//START//Insulin | , boolean_value=true",
            "7@2020-01-04T05:59:59 of 7: DIAGNOSIS//ICD//10//I10 |  | , boolean_value=true",
        ]
    );
    assert_eq!(counts["dropped"], json!({"no_visit_yet": 1}));
    assert_eq!(
        (&counts["tables"]["task_labels"]["encounters"], &counts["unbalanced"]),
        (&json!(5), &json!([]))
    );
    // Only labels have a time of prediction, and none sees what comes after it.
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    for encounter in dataset.encounters().unwrap().map(Result::unwrap) {
        assert_eq!(encounter.prediction_time.is_some(), encounter.id.as_str().contains('@'));
    }
}

#[test]
fn what_codes_are_can_be_said_otherwise() {
    let home = tempfile::tempdir().unwrap();
    let kinds = "prefix,kind\ninfusion,lab\nDIAGNOSIS//,diagnosis\nDIAGNOSIS//ICD//10//E,treatment\nDIAGNOSIS//ICD//10//E119,\n";
    write(home.path(), &[("data.csv", DATA), ("kinds.csv", kinds)]);
    json(home.path(), "meds data.csv --table kinds=kinds.csv --min-codes 0 --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [
            "-5:11 of -5: DIAGNOSIS//ICD//10//I10 |  | ",
            "-5:12 of -5:  | DIAGNOSIS//ICD//10//E11 | ",
            "7:11 of 7: DIAGNOSIS//ICD//10//I10 |  | INFUSION_START//225",
        ]
    );
}

#[test]
fn labels_of_several_tasks_are_not_mixed() {
    let home = tempfile::tempdir().unwrap();
    let header = "subject_id,prediction_time,boolean_value\n";
    let dead = format!("{header}7,2020-01-04T06:00:00,true\n");
    let back = format!("{header}-5,2020-01-02T00:00:00,false\n-5,2020-03-02T00:00:00,true\n");
    write(
        home.path(),
        &[
            ("folders/data.csv", DATA),
            ("folders/labels/mortality/icu/train/0.csv", &dead),
            ("folders/labels/readmission/train/0.csv", &back),
            ("folders/labels/readmission/held_out/0.csv", header),
            ("files/data.csv", DATA),
            ("files/task_labels/mortality.csv", &dead),
            ("files/task_labels/readmission.csv", &back),
            ("shards/data.csv", DATA),
            ("shards/labels/train/0.csv", &dead),
            ("shards/labels/tuning/part-00001.csv", &back),
        ],
    );
    for (path, mortality) in [("folders", "mortality/icu"), ("files", "mortality")] {
        let said = prepare(home.path(), &format!("meds {path} --out data")).assert().code(2);
        assert_eq!(
            String::from_utf8(said.get_output().stderr.clone()).unwrap(),
            format!(
                "error: {path} has several tables `task_labels`, one per task: {mortality}, readmission\n\
                 hint: say which one is meant: --task {mortality}\n"
            )
        );
        // A folder of tasks is named by its beginning.
        let one = json(home.path(), &format!("meds {path} --task mortality --dry-run --min-codes 0"));
        assert_eq!((&one["encounters_kept"], &one["options"]["task"]), (&json!(1), &json!("mortality")));
        let other = json(home.path(), &format!("meds {path} --task readmission --dry-run --min-codes 0"));
        assert_eq!((&other["encounters_kept"], &other["labels"]), (&json!(2), &json!({"boolean_value": 1})));
        let said = prepare(home.path(), &format!("meds {path} --task death --dry-run")).assert().code(2);
        assert_eq!(
            String::from_utf8(said.get_output().stderr.clone()).unwrap(),
            format!(
                "error: option `task`: death is not allowed; expected {mortality}, readmission\n\
                 hint: give a value that is expected; --help lists all options\n"
            )
        );
    }
    let visits = json(home.path(), "meds folders --per visit --dry-run");
    assert_eq!(visits["encounters_kept"], 3, "labels are not looked at");
    let shards = json(home.path(), "meds shards --dry-run --min-codes 0");
    assert_eq!(shards["encounters_kept"], 3, "splits and numbers are shards of one task");
    let elsewhere = json(
        home.path(),
        "meds shards --table task_labels=files/task_labels --task mortality --dry-run --min-codes 0",
    );
    assert_eq!(elsewhere["encounters_kept"], 1);
}

#[test]
fn labels_of_unknown_subjects_are_counted() {
    let home = tempfile::tempdir().unwrap();
    let header = "subject_id,prediction_time,boolean_value\n";
    write(
        home.path(),
        &[
            ("data.csv", DATA),
            (
                "labels.csv",
                &format!(
                    "{header}7,2020-01-04T06:00:00,true\n7,2019-01-01,true\n8,2020-01-04T06:00:00,true\n5,2020-01-04,true\n"
                ),
            ),
            ("none.csv", &format!("{header}8,2020-01-04T06:00:00,true\n")),
        ],
    );
    let counts = json(home.path(), "meds data.csv --table task_labels=labels.csv --dry-run --min-codes 0");
    assert_eq!(counts["dropped"], json!({"no_visit_yet": 1, "unknown_subject": 2}));
    let said = prepare(home.path(), "meds data.csv --table task_labels=none.csv --dry-run").assert().code(2);
    assert_eq!(
        String::from_utf8(said.get_output().stderr.clone()).unwrap(),
        "error: no encounter is left: of 1 read, 1 dropped as unknown_subject\n\
         hint: no label is of a subject that has events; are labels and events of the same dataset?\n"
    );
}

#[test]
fn a_stay_is_open_until_the_next_boundary() {
    let home = tempfile::tempdir().unwrap();
    let event = |day: u32, code: &str| format!("1,2020-01-{day:02},{code}\n");
    let stay = |day: u32| event(day, &format!("ICD10CM/{day}")) + &event(day, &format!("RxNorm/{day}"));
    // A discharge of nothing; two admissions with one discharge; then one at the moment of the next
    // admission, twice.
    let data = format!(
        "subject_id,time,code\n{}{}{}{}{}{}{}{}{}{}{}{}{}",
        event(1, "DISCHARGE"),
        event(2, "ADMISSION"),
        stay(3),
        event(4, "ADMISSION"),
        stay(5),
        event(6, "DISCHARGE"),
        stay(7),
        event(8, "DISCHARGE") + &event(8, "ADMISSION"),
        stay(9),
        event(10, "DISCHARGE") + &event(10, "ADMISSION"),
        stay(11),
        event(12, "DISCHARGE"),
        stay(13),
    );
    write(home.path(), &[("data.csv", &data)]);
    let counts = json(home.path(), "meds data.csv --encounters admission --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        [3, 5, 9, 11]
            .iter()
            .enumerate()
            .map(|(index, day)| format!("1:{} of 1: ICD10CM/{day} | RxNorm/{day} | ", index + 1))
            .collect::<Vec<_>>()
    );
    assert_eq!(counts["events_dropped"], json!({"no_encounter": 4, "visit_boundary": 9}));
}

#[test]
fn what_was_not_given_is_no_treatment_and_vitals_are_no_labs() {
    let home = tempfile::tempdir().unwrap();
    // As MIMIC-IV is converted: `emar` by medication and what became of it, charts as LAB//item//unit.
    let data = "subject_id,time,code,numeric_value,hadm_id\n\
        1,2020-01-01T01:00:00,DIAGNOSIS//ICD//10//I10,,5\n\
        1,2020-01-01T02:00:00,MEDICATION//Furosemide//Administered,,5\n\
        1,2020-01-01T02:00:00,MEDICATION//Heparin//Not Given,,5\n\
        1,2020-01-01T02:00:00,MEDICATION//Heparin//Hold Dose,,5\n\
        1,2020-01-01T02:00:00,MEDICATION//Insulin//not given per sliding scale,,5\n\
        1,2020-01-01T02:00:00,MEDICATION//Nicotine Patch//Removed Existing / Applied New,,5\n\
        1,2020-01-01T02:00:00,MEDICATION//Oxycodone/Aspirin//Stopped,,5\n\
        1,2020-01-01T03:00:00,LAB//RESULT//50912//mg/dL,1.1,5\n\
        1,2020-01-01T03:00:00,LAB//220045//bpm,80,5\n\
        1,2020-01-01T03:00:00,LOINC/8867-4,81,5\n\
        1,2020-01-01T03:00:00,LOINC/2160-0,1.0,5\n\
        1,2020-01-01T03:00:00,Blood Pressure,,5\n";
    write(home.path(), &[("data.csv", data), ("mine.csv", "status\nadministered\n")]);
    let counts = json(home.path(), "meds data.csv --out data --lab-bins 0");
    assert_eq!(
        lines(&home.path().join("data")),
        ["1:5 of 1: DIAGNOSIS//ICD//10//I10 | MEDICATION//Furosemide//Administered \
          MEDICATION//Nicotine Patch//Removed Existing / Applied New | \
          LAB//RESULT//50912//mg/dL LOINC/2160-0"]
    );
    assert_eq!(counts["events_dropped"], json!({"not_given": 4, "vital": 3}));
    json(home.path(), "meds data.csv --out vitals --lab-bins 0 --vitals labs");
    let with_vitals = &lines(&home.path().join("vitals"))[0];
    let labs = "| Blood Pressure LAB//220045//bpm LAB//RESULT//50912//mg/dL LOINC/2160-0 LOINC/8867-4";
    assert!(with_vitals.ends_with(labs), "{with_vitals}");
    let counts = json(home.path(), "meds data.csv --dry-run --table not_given=mine.csv");
    assert_eq!(counts["events_dropped"], json!({"not_given": 1, "vital": 3}));
}

#[test]
fn stays_in_units_lie_between_their_codes() {
    let home = tempfile::tempdir().unwrap();
    let data = "subject_id,time,code\n\
        1,2020-01-01T00:00:00,HOSPITAL_ADMISSION//E\n\
        1,2020-01-01T01:00:00,DIAGNOSIS//A\n\
        1,2020-01-02T00:00:00,ICU_ADMISSION//MICU\n\
        1,2020-01-02T01:00:00,DIAGNOSIS//B\n\
        1,2020-01-02T02:00:00,MEDICATION//x\n\
        1,2020-01-03T00:00:00,ICU_DISCHARGE//MICU\n\
        1,2020-01-04T00:00:00,ICU_ADMISSION//SICU\n\
        1,2020-01-04T01:00:00,DIAGNOSIS//C\n\
        1,2020-01-04T02:00:00,MEDICATION//y\n\
        1,2020-01-05T00:00:00,ICU_DISCHARGE//SICU\n\
        1,2020-01-06T00:00:00,HOSPITAL_DISCHARGE//HOME\n";
    write(home.path(), &[("data.csv", data)]);
    let counts = json(home.path(), "meds data.csv --out units --encounters icu");
    assert_eq!(
        lines(&home.path().join("units")),
        ["1:1 of 1: DIAGNOSIS//B | MEDICATION//x | ", "1:2 of 1: DIAGNOSIS//C | MEDICATION//y | "]
    );
    assert_eq!(counts["events_dropped"], json!({"visit_boundary": 6, "no_encounter": 1}));
    let counts = json(home.path(), "meds data.csv --out whole");
    assert_eq!(counts["options"]["encounters"], "admission");
    assert_eq!(
        lines(&home.path().join("whole")),
        ["1:1 of 1: DIAGNOSIS//A DIAGNOSIS//B DIAGNOSIS//C | MEDICATION//x MEDICATION//y | "]
    );
}

/// Codes with their parents, as the standard has them: a list of texts.
const PARENTS: &str = "SELECT 'ICD10CM/I50.1' AS code, 'left' AS description, make_array('ICD10CM/I50') AS parent_codes \
    UNION ALL SELECT 'ICD10CM/I50.9', 'other', make_array('ICD10CM/I50') \
    UNION ALL SELECT 'ICD10CM/I50', 'Heart failure', arrow_cast(NULL, 'List(Utf8)') \
    UNION ALL SELECT 'RxNorm/1', 'one', make_array('RxNorm/9', 'ATC/C07AB02') \
    UNION ALL SELECT 'RxNorm/2', 'two', make_array('ATC/C07AB02') \
    UNION ALL SELECT 'RxNorm/7', 'never given', make_array('ATC/A')";

#[tokio::test]
async fn parents_of_codes_are_read() {
    let home = tempfile::tempdir().unwrap();
    let data = "subject_id,time,code,hadm_id\n\
        1,2020-01-01,ICD10CM/I50.1,5\n1,2020-01-01,ICD10CM/I50.9,5\n1,2020-01-01,RxNorm/1,5\n\
        2,2020-01-01,ICD10CM/I10,6\n2,2020-01-01,RxNorm/2,6\n";
    write(home.path(), &[("in/data.csv", data)]);
    super::write_parquet(&home.path().join("in/metadata/codes.parquet"), PARENTS).await;
    let rolled = |flags: &str| {
        let counts = json(home.path(), &format!("meds in --out data --force {flags}"));
        (lines(&home.path().join("data")), counts["rollups"].clone())
    };
    let (found, counts) = rolled("--rollup diagnosis=parents --rollup treatment=parents:atc");
    assert_eq!(found, ["1:5 of 1: ICD10CM/I50 | ATC/C07AB02 | ", "2:6 of 2: ICD10CM/I10 | ATC/C07AB02 | "]);
    assert_eq!(
        counts[0],
        json!({"kind": "diagnosis", "rule": "parents", "codes_mapped": 2, "codes_unmapped": 1, "groups": 1,
            "events_unmapped": 1, "ties": 0})
    );
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    let group = dataset.vocabulary().diagnosis.iter().find(|code| code.code == "ICD10CM/I50").unwrap();
    assert_eq!(group.description.as_deref(), Some("Heart failure"));
    // Of codes that occur, and no others.
    assert_eq!(
        dataset.manifest().source.findings["rollups"],
        json!({
            "diagnosis": {"ICD10CM/I50.1": "ICD10CM/I50", "ICD10CM/I50.9": "ICD10CM/I50"},
            "treatment": {"RxNorm/1": "ATC/C07AB02", "RxNorm/2": "ATC/C07AB02"},
        })
    );
    // What was written down is enough for other records.
    let like = json(home.path(), "meds in/data.csv --out like --like data");
    assert_eq!(lines(&home.path().join("like")), found);
    assert_eq!((&like["rollups"][0]["codes_mapped"], &like["rollups"][0]["ties"]), (&json!(2), &json!(null)));
    let (found, counts) = rolled("--rollup treatment=first_parent");
    assert!(found[0].ends_with("| ATC/C07AB02 | "), "{found:?}");
    assert_eq!(counts[0]["ties"], 1);
    for (rule, said) in [
        (
            "parents",
            "error: the rollup of treatment: by `parents`, 1 codes have several groups\n\
             hint: say which ones by how they begin, for instance parents:ATC/; or take the first by name with first_parent, or write a file of codes and groups\n",
        ),
        (
            "parents:UMLS",
            "error: the rollup of treatment: `parents:UMLS` puts none of the 2 codes into a group\n\
             hint: give `parents` for the parent of a code in `parent_codes`, or `parents:PREFIX` for the one that begins so\n",
        ),
    ] {
        let output = prepare(home.path(), &format!("meds in --dry-run --rollup treatment={rule}"));
        output.assert().code(2).stderr_eq(said);
    }
}
