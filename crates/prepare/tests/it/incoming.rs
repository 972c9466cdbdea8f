//! A run asked about encounters as they are recorded, beside the same encounters in a dataset.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::Path;

use gct::coding::Recorded;
use gct::dataset::Dataset;
use gct::files::Overwrite;
use gct::incoming::Incoming;
use gct::infer::Which;
use gct::job::Job;
use gct::metric::Bootstrap;
use gct::predict::{self, Format, Target, Written};
use gct::record::{CodeKind, PerKind};
use gct::run::{Run, Settings};
use gct::train::{self, Execution};
use serde_json::json;

use super::{json, write, write_parquet};

/// Events of 60 encounters: diagnoses of ICD, labs with values and without, context.
fn events() -> String {
    let mut rows = "encounter_id,subject_id,kind,code,value\n".to_owned();
    for visit in 0..60 {
        let (head, half) = (format!("v{visit},s{}", visit / 2), visit / 2);
        rows += &format!(
            "{head},dx,ICD10CM:I{}.{},\n{head},dx,ICD9CM:{},\n",
            10 + visit % 3,
            visit % 5,
            401 + visit % 2
        );
        rows += &format!("{head},rx,aspirin,\n{head},rx,R{},\n", half % 4);
        rows +=
            &format!("{head},lab,K,{}\n{head},lab,Na,{}\n", 3.0 + f64::from(visit) / 20.0, 130 + visit % 11);
        rows += &format!("{head},lab,culture,\n{head},context,sex={},\n", visit % 2);
        rows += &format!("{head},context,bmi,{}\n", 20 + visit % 13);
    }
    rows
}

/// The same as JSON lines.
fn as_lines(events: &str) -> String {
    let mut encounters: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
    for row in events.lines().skip(1) {
        let [id, subject, kind, code, value] = row.split(',').collect::<Vec<_>>()[..] else { unreachable!() };
        let encounter =
            encounters.entry(id).or_insert_with(|| json!({"encounter_id": id, "subject_id": subject}));
        let kind = gct::coding::kind_named(kind).unwrap().name();
        let code = match value.parse::<f64>() {
            Ok(value) => json!({"code": code, "value": value}),
            Err(_) => json!(code),
        };
        match encounter.get_mut(kind) {
            Some(codes) => codes.as_array_mut().unwrap().push(code),
            None => encounter[kind] = json!([code]),
        }
    }
    encounters.values().map(|encounter| format!("{encounter}\n")).collect()
}

/// A folder with the events, a dataset `data` of them, and a run that learned a label from it.
fn home() -> (tempfile::TempDir, Run) {
    let home = tempfile::tempdir().unwrap();
    let labels: String = (0..60).map(|visit| format!("v{visit},{}\n", visit % 3 == 0)).collect();
    let labels = format!("encounter_id,late\n{labels}");
    write(home.path(), &[("e.csv", &events()), ("labels.csv", &labels)]);
    let line =
        "events e.csv --out data --labels labels.csv --rollup diagnosis=icd3 --min-count 2 --lab-bins 4";
    json(home.path(), line);
    let run = trained(&home.path().join("data"), &home.path().join("run"));
    (home, run)
}

fn trained(data: &Path, folder: &Path) -> Run {
    let dataset = Dataset::open(data).unwrap();
    let task = "label:late".parse().unwrap();
    let settings =
        Settings { steps: 4, validate_every: 2, batch: 8, ..Settings::paper(task, "gct", "events").unwrap() };
    train::start(settings, &dataset, folder, Overwrite::Refuse, Execution::default(), &Job::silent())
        .unwrap();
    Run::open(folder).unwrap()
}

/// The probability of each encounter as it is written, by subject and encounter.
fn probabilities(path: &Path) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(path).unwrap();
    let rows = text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect::<Vec<_>>());
    rows.map(|row| (format!("{} of {}", row[1], row[0]), row[6].clone())).collect()
}

fn target(path: &Path) -> Target<'_> {
    Target { path, overwrite: Overwrite::Replace, format: Some(Format::Csv) }
}

fn of_incoming(run: &Run, incoming: Incoming<'_>, out: &Path) -> (BTreeMap<String, String>, Written) {
    let written =
        predict::score_incoming(run, incoming, Default::default(), target(out), &Job::silent()).unwrap();
    (probabilities(out), written)
}

#[tokio::test]
async fn predictions_are_those_of_the_dataset_to_the_bit() {
    let (home, run) = home();
    let home = home.path();
    let out = home.join("out");
    let dataset = Dataset::open(&home.join("data")).unwrap();
    assert!(dataset.vocabulary().lab.iter().any(|code| code.code == "K//4-of-4"));
    assert!(dataset.vocabulary().diagnosis.iter().all(|code| !code.code.contains('.')));
    predict::score(&run, &dataset, Which::All, Default::default(), target(&out), &Job::silent()).unwrap();
    let expected = probabilities(&out);
    assert_eq!(expected.len(), 60);
    assert!(expected.contains_key("v7 of s3"));
    assert!(expected.values().collect::<std::collections::BTreeSet<_>>().len() > 10, "they differ");
    let lines = as_lines(&events());
    let sql = "SELECT * FROM (VALUES ".to_owned()
        + &events()
            .lines()
            .skip(1)
            .map(|row| {
                let [id, subject, kind, code, value] = row.split(',').collect::<Vec<_>>()[..] else {
                    unreachable!()
                };
                let value = if value.is_empty() {
                    "CAST(NULL AS DOUBLE)".into()
                } else {
                    format!("CAST({value} AS DOUBLE)")
                };
                format!("('{code}', {value}, '{id}', '{subject}', '{kind}')")
            })
            .collect::<Vec<_>>()
            .join(",")
        + ") AS t(code, numeric_value, encounter_id, subject_id, kind)";
    write_parquet(&home.join("e.parquet"), &sql).await;
    write(home, &[("e.jsonl", &lines)]);
    for name in ["e.csv", "e.jsonl", "e.parquet"] {
        let incoming = Incoming::open(&run, &home.join(name), &Job::silent()).unwrap();
        let (found, written) = of_incoming(&run, incoming, &out);
        assert_eq!(found, expected, "{name}");
        assert_eq!((written.encounters, written.left_out, written.unseen.codes), (60, 0, 0), "{name}");
        // From a stream, which cannot be read from its end.
        let stream = Cursor::new(std::fs::read(home.join(name)).unwrap());
        let incoming = Incoming::read(&run, "standard input", stream, &Job::silent()).unwrap();
        assert_eq!(of_incoming(&run, incoming, &out).0, expected, "{name}");
    }
    // In memory too.
    let first = lines.lines().next().unwrap();
    let line: serde_json::Value = serde_json::from_str(first).unwrap();
    let mut codes = PerKind::<Vec<_>>::default();
    for kind in CodeKind::ALL {
        let texts = line[kind.name()].as_array().unwrap().iter().map(ToString::to_string);
        let texts: Vec<&'static str> = texts.map(|text| &*text.leak()).collect();
        codes[kind] = texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    }
    let (encounter, unknown) = run.recorded(&codes).unwrap();
    assert!(CodeKind::ALL.iter().all(|kind| unknown[*kind].is_empty()));
    let same = dataset.encounters().unwrap().map(Result::unwrap).find(|known| known.id.as_str() == "v0");
    assert_eq!(encounter.codes, same.unwrap().codes);
}

#[test]
fn a_number_of_context_goes_into_the_bucket_of_the_run() {
    let (_home, run) = home();
    let bucket = |value: f64| {
        let mut codes = PerKind::<Vec<Recorded<'_>>>::default();
        codes.context.push(Recorded { code: "bmi".into(), value: Some(value) });
        let (encounter, _) = run.recorded(&codes).unwrap();
        encounter.codes.context.iter().map(|id| run.vocabulary().context[*id as usize].code.clone()).collect()
    };
    let (low, high): (Vec<String>, Vec<String>) = (bucket(-5.0), bucket(100.0));
    assert_eq!((low, high), (vec!["bmi=1-of-4".into()], vec!["bmi=4-of-4".into()]));
}

#[test]
fn what_the_run_does_not_know_is_counted_by_kind() {
    let (home, run) = home();
    let lines = concat!(
        r#"{"id": 1, "diagnosis": ["ICD10CM:I10.7", "ICD10CM:Z99", "ICD10CM:Z98.1"], "lab": ["K", "Cl"]}"#,
        "\n\n",
        r#"{"diagnosis": ["ICD10CM:Z99"], "lab": [{"code": "Cl", "value": 1}]}"#,
        "\n"
    );
    let incoming = Incoming::read(&run, "x", Cursor::new(lines), &Job::silent()).unwrap();
    let (found, written) = of_incoming(&run, incoming, &home.path().join("out"));
    // Where no id is given, it is the number of the line.
    assert_eq!(found.into_keys().collect::<Vec<_>>(), ["1 of ", "3 of "]);
    let unknown = |kind: CodeKind| (written.unknown[kind].codes, written.unknown[kind].occurrences);
    assert_eq!(unknown(CodeKind::Diagnosis), (2, 3));
    // The dataset has no lab K without a value, so K alone is unknown as well.
    assert_eq!(unknown(CodeKind::Lab), (2, 3));
    assert_eq!(written.without_codes, 1);
    assert_eq!((written.unseen.codes, written.unseen.occurrences), (4, 6));
}

#[test]
fn a_run_evaluates_on_records_that_were_prepared_like_its_data() {
    let (home, run) = home();
    // Other subjects, other values, a code that is new.
    let rows = events().replace("\nv", "\nw").replace("aspirin", "heparin");
    let (header, rows) = rows.split_once('\n').unwrap();
    let others: String = rows.lines().map(|row| row.replacen(",s", ",t", 1) + "\n").collect();
    let rows = format!("{header}\n{others}");
    let labels: String = (0..60).map(|visit| format!("w{visit},{}\n", visit % 2 == 0)).collect();
    let labels = format!("encounter_id,late\n{labels}");
    write(home.path(), &[("new.csv", &rows), ("new-labels.csv", &labels)]);
    for (like, out) in [("data", "new"), ("run", "new-of-run")] {
        let line = format!("events new.csv --out {out} --like {like} --labels new-labels.csv");
        let counts = json(home.path(), &line);
        assert_eq!(counts["encounters_kept"], 60);
        assert_eq!(counts["unseen"]["treatment"], 1);
        let new = Dataset::open(&home.path().join(out)).unwrap();
        let codes = |dataset: &Dataset, kind| -> Vec<String> {
            dataset.vocabulary()[kind].iter().map(|code| code.code.clone()).collect()
        };
        let old = Dataset::open(&home.path().join("data")).unwrap();
        for kind in CodeKind::ALL {
            assert_eq!(codes(&new, kind), codes(&old, kind));
        }
        let none = Bootstrap { replicates: 0, seed: 0 };
        let evaluation = gct::evaluate::run(&run, &new, Which::All, none, &Job::silent()).unwrap();
        assert_eq!(evaluation.encounters, 60);
        assert_eq!(evaluation.unseen.codes, 0, "all codes are those of the run");
    }
}
