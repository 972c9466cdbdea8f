use serde_json::json;

use super::{json, lines, prepare, write};

const EVENTS: (&str, &str) = (
    "visits.csv",
    "visit,pid,type,icd,when,value\n\
     1,a,dx,I10,2020-01-02,\n\
     1,a,rx,aspirin,2020-01-02,\n\
     1,a,rx,aspirin,2020-01-03,\n\
     -7,b,dx,001.0,2020-01-02,\n\
     -7,b,px,scan,2020-01-02,\n\
     -7,b,lab,Na,2020-01-02,140\n",
);
const COLUMNS: &str = "--column encounter_id=visit --column subject_id=pid --column kind=type --column code=icd --column time=when";

#[test]
fn columns_are_named_by_flags_or_by_a_file() {
    let home = tempfile::tempdir().unwrap();
    let names = (
        "names.toml",
        "encounter_id = \"visit\"\nsubject_id = \"pid\"\nkind = \"type\"\ncode = \"icd\"\ntime = \"when\"\n",
    );
    write(home.path(), &[EVENTS, names]);
    let counts = json(home.path(), &format!("events visits.csv {COLUMNS} --out data"));
    assert_eq!(
        lines(&home.path().join("data")),
        ["-7 of b: 001.0 | scan | Na//1-of-2", "1 of a: I10 | aspirin | "]
    );
    assert_eq!(json(home.path(), "events visits.csv --columns names.toml --dry-run"), {
        let mut same = counts;
        same["bucketed_labs"] = json!(1);
        same
    });
}

#[test]
fn the_same_comes_from_shards_in_any_order_of_columns_and_any_compression() {
    let home = tempfile::tempdir().unwrap();
    let shards = [
        ("events/part-0.csv", "encounter_id,subject_id,kind,code\n1,a,dx,I10\n1,a,rx,aspirin\n"),
        (
            "events/part-1.csv",
            "code,kind,subject_id,encounter_id\nI10,diagnosis,b,2\naspirin,Treatment,b,2\n",
        ),
    ];
    write(home.path(), &shards);
    let whole = json(home.path(), "events events --table events=events --out a");
    assert_eq!(lines(&home.path().join("a")), ["1 of a: I10 | aspirin | ", "2 of b: I10 | aspirin | "]);
    assert_eq!(whole["encounters_kept"], 2);
}

#[test]
fn labels_can_be_joined_and_rare_codes_grouped() {
    let home = tempfile::tempdir().unwrap();
    let rows: String = (0..20)
        .map(|visit| format!("{visit},s{visit},dx,D{}\n{visit},s{visit},rx,M\n", visit.min(2)))
        .collect();
    let labels: String = (0..10).map(|visit| format!("{visit},{}\n", visit % 2)).collect();
    write(
        home.path(),
        &[
            ("visits.csv", &format!("encounter_id,subject_id,kind,code\n{rows}")),
            ("labels.csv", &format!("encounter_id,late\n{labels}")),
        ],
    );
    let counts =
        json(home.path(), "events visits.csv --out data --labels labels.csv --min-count 2 --rare group");
    assert_eq!(counts["labels"], json!({"late": 5}));
    assert_eq!(counts["labels_known"], json!({"late": 10}));
    assert_eq!(counts["vocabulary"]["diagnosis"], 2);
    assert_eq!(counts["rare"]["diagnosis"], 2);
    assert_eq!(lines(&home.path().join("data"))[0], "0 of s0: (rare) | M | , late=false");
    let dropped = json(home.path(), "events visits.csv --dry-run --min-count 2");
    assert_eq!(dropped["dropped"], json!({"too_few_diagnosis": 2}));
    let hidden = json(home.path(), "events visits.csv --dry-run --min-count 2 --min-cell 11");
    assert_eq!(
        (&hidden["dropped"]["too_few_diagnosis"], &hidden["encounters_kept"]),
        (&json!("<11"), &json!(18))
    );
}

#[test]
fn a_user_can_bring_a_source_of_their_own() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            EVENTS,
            (
                "mine/source.toml",
                "about = \"mine\"\nexample = \"gct prepare sql\"\n[tables.visits.columns]\nvisit = \"id\"\npid = \"id\"\ntype = \"text\"\nicd = \"text\"\n\
             [options.skip]\nabout = \"a visit to leave out\"\ntype = \"integer\"\n",
            ),
            (
                "mine/encounters.sql",
                "SELECT DISTINCT visit AS encounter_id, pid AS subject_id, CASE WHEN CAST(visit AS BIGINT) = $skip THEN 'skipped' END AS dropped FROM visits",
            ),
            (
                "mine/events.sql",
                "SELECT visit AS encounter_id, CASE type WHEN 'dx' THEN 'diagnosis' ELSE 'treatment' END AS kind, icd AS code FROM visits",
            ),
        ],
    );
    let counts = json(home.path(), "sql visits.csv --source mine --option skip=-7 --out data");
    assert_eq!(lines(&home.path().join("data")), ["1 of a: I10 | aspirin | "]);
    assert_eq!(counts["dropped"], json!({"skipped": 1}));
    write(home.path(), &[("mine/events.sql", "SELECT visit AS encounter_id, nothing AS code FROM visits")]);
    prepare(home.path(), "sql visits.csv --source mine --dry-run")
        .assert()
        .code(2)
        .stdout_eq("")
        .stderr_eq("error: mine/events.sql: [..]nothing[..]\n...\n");
}
