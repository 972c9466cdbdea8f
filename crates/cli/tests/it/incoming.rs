//! New patients: `predict`, `explain` and `embed` on files that are no datasets.

use std::fs;
use std::path::Path;

use gct::dataset::{Source, Writer};
use gct::files::Overwrite;
use gct::record::{Code, Encounter, EncounterId, PerKind, SubjectId};
use serde_json::json;
use snapbox::str;

use super::{gct, json, names, refusal, trained};

/// A folder with a dataset `data` of 200 encounters, whose diagnoses were rolled up to categories and whose
/// potassium went into two buckets, and the run `run` that learned a label from it.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let code = |code: &str| Code { code: code.into(), description: None, count: 0 };
    let vocabulary = PerKind {
        diagnosis: vec![code("E11"), code("I50")],
        treatment: vec![code("rest")],
        lab: vec![code("K"), code("K//1-of-2"), code("K//2-of-2")],
        ..PerKind::default()
    };
    let encounter = |number: u32| Encounter {
        id: EncounterId::new(format!("e{number}")),
        subject: SubjectId::new(format!("s{number}")),
        labels: vec![Some(number % 2 == 1)],
        ..Encounter::new(PerKind {
            diagnosis: vec![number / 2 % 2],
            treatment: vec![0],
            lab: vec![number % 3],
            ..PerKind::default()
        })
    };
    let folder = home.path().join("data");
    let mut writer = Writer::create(&folder, Overwrite::Refuse, vocabulary, vec!["late".into()]).unwrap();
    writer.write(&(0..200).map(encounter).collect::<Vec<_>>()).unwrap();
    let settings = json!({
        "rollup": {"diagnosis": "icd3", "treatment": null, "lab": null},
        "rollup_unmapped": "keep", "min_count": 1, "lab_bins": 2,
    });
    let findings = json!({"counts": {}, "lab_bounds": {"K": [4.0]}, "rollups": {}});
    writer.finish(Source { kind: "events".into(), settings, findings }).unwrap();
    let settings = "--steps 4 --set validate_every=2 --set batch=8 --set model.width=16";
    let line = format!("train --data data --task label:late --model gct --out run --quiet {settings}");
    gct(home.path(), &line).assert().success();
    home
}

/// Encounters 0 to 5 as they are recorded: of the buckets of K, 1 has the lower and 2 the upper one.
const LINES: &str = r#"{"encounter_id": "e0", "diagnosis": ["E11.9"], "treatment": ["rest"], "lab": ["K"]}
{"encounter_id": "e1", "diagnosis": ["E11"], "treatment": ["rest"], "lab": [{"code": "K", "value": 4}]}
{"id": "e2", "diagnosis": ["I50.1"], "treatment": ["rest"], "lab": [{"code": "K", "value": 4.1}]}
{"id": "e3", "diagnosis": ["I501", "I50.9"], "treatment": ["rest"], "lab": [{"code": "K", "value": null}]}
{"id": "e4", "diagnosis": ["e11.0"], "treatment": ["rest"], "lab": [{"code": "K", "value": -1}]}
{"id": "e5", "diagnosis": ["E11.00"], "treatment": ["rest"], "lab": ["K//2-of-2"]}
"#;

const EVENTS: &str = "\
Encounter_ID;kind;code;numeric_value;note
e0;diagnosis;E11.9;;
e1;dx;E11;;
e0;treatment;rest;;
e0;lab;K;;
e1;Treatment;rest;;
e1;lab;K;4;a note; nothing
";

/// The probability of each of these encounters, as text.
fn probabilities(csv: &str) -> Vec<(String, String)> {
    let rows = csv.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect::<Vec<_>>());
    rows.map(|row| (row[1].clone(), row[6].clone())).collect()
}

/// What is printed to standard output, which has rows.
fn rows(home: &Path, line: &str, input: &str) -> String {
    let assert = gct(home, line).stdin(input).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn new_encounters_are_predicted_as_those_of_the_dataset() {
    let home = home();
    let home = home.path();
    fs::write(home.join("new.jsonl"), LINES).unwrap();
    gct(home, "predict run --data data --split all --out all.csv").assert().success();
    let all = probabilities(&fs::read_to_string(home.join("all.csv")).unwrap());
    gct(home, "predict run --data new.jsonl --out new.csv").assert().success().stderr_eq("").stdout_eq(str![
        [r#"
new.csv: 6 rows for 6 encounters

"#]
    ]);
    let text = fs::read_to_string(home.join("new.csv")).unwrap();
    assert!(text.starts_with(
        "subject_id,encounter_id,prediction_time,label,boolean_value,predicted_boolean_value,\
         predicted_boolean_probability\n,e0,,late,,"
    ));
    let new = probabilities(&text);
    assert_eq!(new[0..6], all[0..6]);
    assert!(new[0] != new[1] && new[1].1 != new[5].1, "values and codes matter");
    // To standard output, from standard input.
    let printed = rows(home, "predict run --data - --out - --format csv", LINES);
    assert_eq!(printed, text);
    let printed = rows(home, "predict run --data - --out -", LINES);
    let first: serde_json::Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
    assert_eq!((first.get("subject_id"), first["encounter_id"].as_str()), (Some(&json!(null)), Some("e0")));
    assert_eq!(first["predicted_boolean_probability"].to_string(), new[0].1);
    assert_eq!(first["boolean_value"], serde_json::Value::Null);
    // The same as events, and packed; the summary is on standard error.
    let events = EVENTS.replace(";a note; nothing", ";a note");
    gct(home, "predict run --data - --out - --format csv").stdin(&*events).assert().success().stderr_eq(
        str![[r#"
2 rows for 2 encounters

"#]],
    );
    let printed = rows(home, "predict run --data - --out - --format csv", &events);
    assert_eq!(probabilities(&printed), new[0..2]);
    fs::write(home.join("events.csv"), &events).unwrap();
    assert!(std::process::Command::new("gzip").arg(home.join("events.csv")).status().unwrap().success());
    gct(home, "predict run --data events.csv.gz --out packed.csv").assert().success();
    assert_eq!(probabilities(&fs::read_to_string(home.join("packed.csv")).unwrap()), new[0..2]);
    let parquet = rows_of_parquet(home);
    assert!(parquet.starts_with(b"PAR1"));
}

fn rows_of_parquet(home: &Path) -> Vec<u8> {
    let line = "predict run --data new.jsonl --out - --format parquet";
    gct(home, line).assert().success().get_output().stdout.clone()
}

#[test]
fn vectors_and_explanations_too() {
    let home = home();
    let home = home.path();
    fs::write(home.join("new.jsonl"), LINES).unwrap();
    let written = json(home, "embed run --data new.jsonl --out new.jsonl.csv");
    assert_eq!((&written["rows"], &written["width"]), (&6.into(), &16.into()));
    let text = fs::read_to_string(home.join("new.jsonl.csv")).unwrap();
    assert!(text.starts_with("subject_id,encounter_id,embedding_0,embedding_1,"));
    gct(home, "embed run --split all --out all.csv").assert().success();
    let all = fs::read_to_string(home.join("all.csv")).unwrap();
    let vectors = |text: &str| -> Vec<String> {
        text.lines().skip(1).map(|row| row.splitn(3, ',').nth(2).unwrap().to_owned()).collect()
    };
    assert_eq!(vectors(&text)[..], vectors(&all)[..6]);
    let printed = rows(home, "embed run --data - --out -", r#"{"id": "a", "diagnosis": ["E11.9"]}"#);
    assert!(printed.starts_with(r#"{"subject_id":null,"encounter_id":"a","embedding":["#), "{printed}");
    let error = refusal(home, "embed run --data new.jsonl --out new.npy");
    assert!(error.contains("expected a .parquet, .csv or .jsonl file"), "{error}");
    let of_file = json(home, "explain run --data new.jsonl --encounter e2");
    let mut of_dataset = json(home, "explain run --data data --encounter e2");
    assert_eq!(of_file["blocks"], of_dataset["blocks"]);
    assert_eq!(
        of_file["unknown"],
        json!({"diagnosis": {"codes": 0, "occurrences": 0},
        "treatment": {"codes": 0, "occurrences": 0}, "lab": {"codes": 0, "occurrences": 0}})
    );
    of_dataset["predictions"][0]["truth"] = json!(null);
    assert_eq!(of_file["predictions"], of_dataset["predictions"]);
    gct(home, "explain run --data -").stdin(LINES).assert().success();
    let error = refusal(home, "explain run --data new.jsonl --encounter e9");
    assert!(error.starts_with("error: no encounter of the dataset has this identifier"), "{error}");
}

#[test]
fn unknown_codes_are_counted_by_kind() {
    let home = home();
    let home = home.path();
    let lines = r#"{"id": "a", "diagnosis": ["E11.9", "Z99"], "treatment": ["run", "swim"], "lab": ["Na"]}
{"id": "b", "diagnosis": ["Z99"], "treatment": ["run"]}
"#;
    fs::write(home.join("new.jsonl"), lines).unwrap();
    gct(home, "predict run --data new.jsonl --out new.parquet").assert().success().stdout_eq(str![[r#"
new.parquet: 2 rows for 2 encounters
1 diagnosis code that the run does not know, left out 2 times
2 treatment codes that the run does not know, left out 3 times
1 lab code that the run does not know, left out 1 time
1 encounter has no code that the run knows

"#]]);
    let report = json(home, "predict run --data new.jsonl --out again.parquet");
    assert_eq!(report["unknown"]["treatment"], json!({"codes": 2, "occurrences": 3}));
    assert_eq!((&report["split"], &report["without_codes"]), (&json!(null), &json!(1)));
    assert_eq!((&report["unseen_codes"], &report["unseen_occurrences"]), (&json!(4), &json!(6)));
}

#[test]
fn unknown_codes_of_an_explanation_are_those_of_its_encounter() {
    let home = home();
    let home = home.path();
    let lines = r#"{"id": "a", "diagnosis": ["E11.9", "Z99"], "treatment": ["run", "swim", "run"], "lab": ["Na"]}
{"id": "b", "diagnosis": ["I50", "Z99"]}
{"id": "c", "diagnosis": ["I50"], "lab": ["Cl"]}
"#;
    // Rows of an encounter can be anywhere.
    let events = "encounter_id,kind,code\na,dx,E11.9\nb,dx,Z99\na,dx,Z99\na,rx,run\nc,lab,Cl\na,rx,swim\na,rx,run\n\
        a,lab,Na\nb,dx,I50\nc,dx,I50\n";
    fs::write(home.join("new.jsonl"), lines).unwrap();
    fs::write(home.join("new.csv"), events).unwrap();
    let unseen = |codes: u32, occurrences: u32| json!({"codes": codes, "occurrences": occurrences});
    let none = unseen(0, 0);
    for file in ["new.jsonl", "new.csv"] {
        for (id, diagnosis, treatment, lab) in [
            ("a", unseen(1, 1), unseen(2, 3), unseen(1, 1)),
            ("b", unseen(1, 1), none.clone(), none.clone()),
            ("c", none.clone(), none.clone(), unseen(1, 1)),
        ] {
            let found = json(home, &format!("explain run --data {file} --encounter {id}"))["unknown"].clone();
            assert_eq!(
                found,
                json!({"diagnosis": diagnosis, "treatment": treatment, "lab": lab}),
                "{file}: {id}"
            );
        }
    }
    let assert = gct(home, "explain run --data new.jsonl --encounter c").assert().success();
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert_eq!(said, "1 lab code that the run does not know, left out 1 time\n");
}

#[test]
fn a_run_without_buckets_takes_codes_as_they_are() {
    let (_guard, home) = trained("diagnosis_treatment");
    let lines = r#"{"diagnosis": ["D_1"], "treatment": ["T_3"], "lab": ["L_9", "other"]}"#;
    gct(&home, "predict run --data - --out -").stdin(lines).assert().success().stderr_eq(str![[r#"
2 rows for 1 encounter
1 lab code that the run does not know, left out 1 time
codes were taken as they are: the run does not keep rollups and buckets

"#]]);
    let valued = r#"{"lab": [{"code": "L_9", "value": 1}]}"#;
    let refused = gct(&home, "predict run --data - --out -").stdin(valued).assert().code(2).stdout_eq("");
    refused.stderr_eq(str![[r#"
error: run does not know how values become codes: its data had none, or an older version of gct trained it
hint: give codes of the run without values, as `gct embed RUN --what codes` lists them, or train the run again

"#]]);
}

#[test]
fn bad_files_are_refused_with_their_line_or_row() {
    let home = home();
    let home = home.path();
    let before = names(home);
    let header = "encounter_id,kind,code,value,subject_id\n";
    let of_events = |rows: &str| format!("{header}{rows}");
    let cases: Vec<(String, &str)> = vec![
        (String::new(), "it is empty"),
        (" \n\n".into(), "it is empty"),
        ("{\"diagnosis\": [\"E11\"]}\nsecret\n".into(), "line 2: it is not one JSON object"),
        ("{\"diagnosis\": [\"E11\"]} {}\n".into(), "line 1, column 24: it is not one JSON object"),
        ("{\"diagnosis\": \"E11\"}\n".into(), "line 1, column 19: expected an object with `encounter_id`"),
        ("{\"age\": 71}\n".into(), "line 1, column 6: expected an object with `encounter_id`"),
        (
            "{\"diagnosis\": [{\"code\": \"E11\", \"value\": 1}]}\n".into(),
            "line 1, column 15: expected an object",
        ),
        (
            "{\"lab\": [{\"code\": \"K\", \"value\": \"high\"}]}\n".into(),
            "line 1, column 38: expected an object",
        ),
        ("[{\"id\": 1}]\n".into(), "line 1: it is not one JSON object"),
        (
            "{\"id\": \"a\"}\n{\"id\": \"a\"}\n".into(),
            "line 2: its `encounter_id` is that of an earlier line",
        ),
        ("{\"id\": \" \"}\n".into(), "line 1: its `encounter_id` is empty"),
        ("{\"diagnosis\": [\"\"]}\n".into(), "line 1: a code of `diagnosis` is empty"),
        ("{\"id\": \"a\", \"diagnosis\": [\"Z99\"]}\n".into(), "the run knows none of its codes"),
        (header.into(), "it has no rows"),
        ("encounter_id,code\n1,E11\n".into(), "no column `kind`; expected encounter_id, kind, code"),
        ("encounter_id,kind,code,value,numeric_value\n".into(), "two columns are called `value` or mean it"),
        (
            of_events("1,diagnosis,E11,,\n1,symptom,E11,,\n"),
            "row 2: column `kind`: expected context, diagnosis",
        ),
        (of_events("1,lab,K,high,\n"), "row 1: column `value`: expected a number"),
        (of_events("1,lab,,4,\n"), "row 1: column `code`: is empty"),
        (of_events(",lab,K,4,\n"), "row 1: column `encounter_id`: is empty"),
        (of_events("1,lab,K,4,s1\n1,lab,K,5,s2\n"), "row 2: column `subject_id`: is another one than"),
        (of_events("1,lab,K\n"), "row 1: expected 5 fields, found 3"),
    ];
    for (text, problem) in cases {
        let line = "predict run --data - --out new.parquet";
        let assert = gct(home, line).stdin(&*text).assert().code(2).stdout_eq("");
        let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        let expected = format!("error: standard input: {problem}");
        assert!(said.starts_with(&expected), "{text}: {said}");
        assert!(said.contains("\nhint: correct the file; docs/runs.md"), "{said}");
        assert!(!said.contains("secret") && !said.contains("high"), "{said}");
        assert_eq!(names(home), before);
    }
    fs::write(home.join("cut.parquet"), "PAR1 and no more").unwrap();
    let error = refusal(home, "predict run --data cut.parquet --out new.parquet");
    assert!(error.starts_with("error: cut.parquet is damaged: "), "{error}");
    fs::write(home.join("latin.csv"), b"encounter_id,kind,code\n1,lab,K\xe4\n").unwrap();
    let error = refusal(home, "predict run --data latin.csv --out new.parquet");
    assert!(error.starts_with("error: latin.csv: row 1: expected UTF-8 text"), "{error}");
    fs::write(home.join("utf-16.csv"), b"\xff\xfee\0n\0").unwrap();
    let error = refusal(home, "predict run --data utf-16.csv --out new.parquet");
    assert!(error.starts_with("error: utf-16.csv: expected UTF-8 text, found UTF-16"), "{error}");
    let many: Vec<String> = (0..5000).map(|code| format!("\"{code}\"")).collect();
    let many = format!("{{\"diagnosis\": [{}]}}", many.join(","));
    let assert = gct(home, "predict run --data - --out -").stdin(many).assert().code(2);
    let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert!(said.contains("line 1: the encounter has more than 4096 codes"), "{said}");
}

#[test]
fn flags_that_do_not_apply_are_refused() {
    let home = home();
    let home = home.path();
    fs::write(home.join("new.jsonl"), LINES).unwrap();
    for (line, problem) in [
        ("predict run --data new.jsonl --split test --out x.csv", "--split is for datasets"),
        ("predict run --data new.jsonl --include-training --out x.csv", "--include-training is for datasets"),
        (
            "predict run --data new.jsonl --meds --out x.parquet",
            "these predictions cannot be written as MEDS",
        ),
        ("predict run --data new.jsonl --format csv --out x.parquet", "setting `format`: csv is not allowed"),
        ("predict run --data new.jsonl --out x.txt", "x.txt cannot be written: its name must end in"),
        ("predict run --data new.jsonl --out - --json", "--json and --out - are both for standard output"),
        ("predict run --data new.jsonl --out - --force", "--force is for files"),
        ("embed run --out x.npy --format csv", "--format is for rows"),
        ("embed run --data new.jsonl --what codes --out x.csv", "--what codes is not about encounters"),
        ("predict run --data nowhere.jsonl --out x.csv", "cannot open nowhere.jsonl"),
    ] {
        let error = refusal(home, line);
        assert!(error.contains(problem), "{line}: {error}");
        assert!(!names(home).iter().any(|name| name.starts_with('x')), "{line}");
    }
}

#[test]
fn what_becomes_of_codes_is_a_file_of_the_run_that_may_not_change() {
    let home = home();
    let home = home.path();
    let coding = fs::read_to_string(home.join("run/coding.json")).unwrap();
    assert!(coding.contains("lab_bounds") && !coding.contains("counts"), "{coding}");
    fs::write(home.join("new.jsonl"), LINES).unwrap();
    fs::write(home.join("run/coding.json"), coding.replace("4.0", "5.0")).unwrap();
    let error = refusal(home, "predict run --data new.jsonl --out x.csv");
    assert!(error.starts_with("error: run/coding.json is damaged"), "{error}");
    // Predictions on datasets do not need it.
    gct(home, "predict run --out x.csv").assert().success();
}
