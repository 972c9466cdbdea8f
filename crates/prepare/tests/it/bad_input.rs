//! What is wrong is said in one line with its position, and nothing is left on disk.

/// Labels, cohorts and groups.
mod labels;

use std::io::Write;
use std::path::Path;

use super::{names, prepare, write};

/// A value that must not be in any message.
const SECRET: &str = "PATIENT-4711";

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

/// Runs a command that must fail, and returns what it says.
fn failure(folder: &Path, line: &str) -> String {
    let before = names(folder);
    let output = prepare(folder, line).assert().code(2).stdout_eq("").get_output().stderr.clone();
    assert_eq!(names(folder), before, "nothing is left behind");
    let said = String::from_utf8(output).unwrap();
    assert!(!said.contains(SECRET) && !said.contains("panicked"), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines.len() == 2 && lines[1].starts_with("hint: "), "what is wrong, and what to do: {said}");
    said
}

fn event_failure(bytes: &[u8], flags: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("e.csv"), bytes).unwrap();
    failure(home.path(), &format!("events e.csv --out data {flags}"))
}

const HEADER: &str = "encounter_id,subject_id,kind,code";

#[test]
fn a_missing_table_names_what_is_there() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("eicu/patients.csv", "patientunitstayid\n1\n"), ("eicu/diagnosis.csv", "a\n1\n")]);
    let said = failure(home.path(), "eicu eicu --table admissiondx=eicu/diagnosis.csv --out data");
    let other =
        "error: eicu/diagnosis.csv: its first line does not name the expected columns: admitdxentered";
    assert!(said.starts_with(other), "{said}");
    let said = failure(home.path(), "eicu eicu --out data");
    assert!(
        said.starts_with("error: eicu has no table `admissiondx`; it has: diagnosis, patients\nhint: "),
        "{said}"
    );
    let said = failure(home.path(), "eicu nowhere --out data");
    assert!(said.starts_with("error: cannot read nowhere: "), "{said}");
}

#[test]
fn a_missing_column_suggests_the_one_that_was_meant() {
    let said = event_failure(b"encounter_id,subject_id,kind,codes\n1,2,dx,x\n", "");
    assert_eq!(
        said,
        "error: e.csv: no column `code`; it has: encounter_id, subject_id, kind, codes\n\
         hint: is it `codes`? then say so: --column code=codes\n"
    );
}

#[test]
fn another_delimiter_is_recognised() {
    let said = event_failure(b"encounter_id;subject_id;kind;code\n1;2;dx;x\n", "");
    assert_eq!(
        said,
        "error: e.csv: its columns seem to be separated by semicolons, not by commas\nhint: run again with --delimiter ';'\n"
    );
}

#[test]
fn rows_of_other_lengths_bytes_that_are_no_text_and_cut_off_archives_are_placed() {
    let long = format!("{HEADER}\n1,{SECRET},dx,I10\n1,{SECRET},dx\n");
    let said = event_failure(long.as_bytes(), "");
    assert!(said.starts_with("error: e.csv: row 2: expected 4 fields, found 3\n"), "{said}");
    let mut bytes = format!("{HEADER}\n1,{SECRET},dx,").into_bytes();
    bytes.extend(b"caf\xe9\n");
    let said = event_failure(&bytes, "");
    assert!(said.starts_with("error: e.csv: row 1: column `code`: is not UTF-8 text\n"), "{said}");

    let home = tempfile::tempdir().unwrap();
    let rows: String =
        (0..20_000).map(|row| format!("{row},{SECRET}{},dx,I{}\n", row % 97, row * 7919 % 10007)).collect();
    let whole = gzip(&format!("{HEADER}\n{rows}"));
    std::fs::write(home.path().join("e.csv.gz"), &whole[..whole.len() / 2]).unwrap();
    let said = failure(home.path(), "events e.csv.gz --out data");
    assert!(said.starts_with("error: e.csv.gz is damaged: it is cut off\n"), "{said}");
    std::fs::write(home.path().join("e.csv.gz"), "not an archive").unwrap();
    let said = failure(home.path(), "events e.csv.gz --out data");
    assert!(said.starts_with("error: e.csv.gz is damaged: it cannot be unpacked\n"), "{said}");
}

#[test]
fn an_empty_table_and_a_wrong_parquet_file_are_refused() {
    for text in [String::new(), format!("{HEADER}\n")] {
        let said = event_failure(text.as_bytes(), "");
        assert!(said.starts_with("error: e.csv has no rows\n"), "{said}");
    }
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("e.parquet"), "PAR1 and nothing more").unwrap();
    let said = failure(home.path(), "events e.parquet --out data");
    assert!(said.starts_with("error: e.parquet is damaged: cut off, or not a Parquet file\n"), "{said}");
}

#[test]
fn a_stay_that_occurs_twice_is_placed() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "eicu/patient.csv",
                &format!(
                    "patientunitstayid,patienthealthsystemstayid,uniquepid,hospitaladmitoffset,unitdischargeoffset,unitdischargestatus,hospitaldischargestatus\n\
             {SECRET},1,p1,0,5,Alive,Alive\n12,1,p1,0,5,Alive,Alive\n{SECRET},1,p1,0,5,Alive,Alive\n"
                ),
            ),
            ("eicu/admissiondx.csv", "patientunitstayid,admitdxenteredoffset,admitdxpath\n12,0,x\n"),
            ("eicu/diagnosis.csv", "patientunitstayid,diagnosisoffset,diagnosisstring\n12,0,x\n"),
            ("eicu/treatment.csv", "patientunitstayid,treatmentoffset,treatmentstring\n12,0,x\n"),
        ],
    );
    let said = failure(home.path(), "eicu eicu --out data");
    let column = "error: eicu/patient.csv: row 3: column `patientunitstayid`: ";
    let expected = format!("{column}is that of an earlier row; each may occur once\n");
    assert!(said.starts_with(&expected), "{said}");
}

#[test]
fn unreadable_rows_are_counted_and_refused_when_asked() {
    let home = tempfile::tempdir().unwrap();
    let table = format!(
        "{HEADER},time\n1,{SECRET},dx,I10,2020-01-01\n1,{SECRET},rx,a,2020-01-01\n1,{SECRET},dx,I11,{SECRET}\n"
    );
    write(home.path(), &[("e.csv", &table)]);
    let said = failure(home.path(), "events e.csv --out data --strict");
    assert!(
        said.starts_with(
            "error: e.csv: row 3: column `time`: expected a date or time (refused because of --strict)\n"
        ),
        "{said}"
    );
    let output =
        prepare(home.path(), "events e.csv --dry-run").assert().success().get_output().stdout.clone();
    let said = String::from_utf8(output).unwrap();
    assert!(
        said.contains("\n1 rows left out, the first: e.csv: row 3: column `time`: expected a date or time\n"),
        "{said}"
    );
    assert!(!said.contains(SECRET), "{said}");
}

#[test]
fn absurd_codes_are_dropped_and_counted() {
    let home = tempfile::tempdir().unwrap();
    let long = "x".repeat(1001);
    write(
        home.path(),
        &[("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n1,s,dx,{long}\n1,s,dx,\n1,s,shoe,I10\n"))],
    );
    let counts = super::json(home.path(), "events e.csv --dry-run");
    assert_eq!(
        counts["events_dropped"],
        serde_json::json!({"code_too_long": 1, "no_code": 1, "unknown_kind": 1})
    );
    let said = failure(home.path(), "events e.csv --out data --strict");
    assert!(
        said.starts_with("error: 1 events dropped: code_too_long (refused because of --strict)\n"),
        "{said}"
    );
}

#[test]
fn bad_flags_are_refused_before_anything_is_read() {
    let home = tempfile::tempdir().unwrap();
    for (flags, expected) in [
        (
            "--min-codes many",
            "error: option `min_codes`: many is not allowed; expected a number, or numbers per kind: diagnosis=1,treatment=0\n",
        ),
        (
            "--memory-limit lots",
            "error: option `memory-limit`: lots is not allowed; expected a size of at least 1M, as 1G or 500M\n",
        ),
        (
            "--delimiter ab",
            "error: option `delimiter`: ab is not allowed; expected one character, or `tab`\n",
        ),
        ("--table events", "error: option `table`: events is not allowed; expected NAME=VALUE\n"),
    ] {
        let said = failure(home.path(), &format!("events e.csv --out data {flags}"));
        assert!(said.starts_with(expected), "{said}");
    }
    let said = failure(home.path(), "eicu e --out data --max-hours=-1");
    let expected = "error: option `max_hours`: -1 is not allowed; expected a number above 0\n";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn an_existing_dataset_is_replaced_only_on_request() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n"))]);
    prepare(home.path(), "events e.csv --out data").assert().success();
    assert!(failure(home.path(), "events e.csv --out data").starts_with("error: data already exists\n"));
    prepare(home.path(), "events e.csv --out data --force").assert().success();
    let said = failure(home.path(), "events e.csv --out other --min-codes 2");
    assert!(
        said.starts_with("error: no encounter is left: of 1 read, 1 dropped as too_few_diagnosis\n"),
        "{said}"
    );
}

#[test]
fn an_open_quote_does_not_swallow_the_rest_of_the_file() {
    let home = tempfile::tempdir().unwrap();
    let rows: String = (0..50)
        .map(|row| format!("{row},s,dx,I{row}\n{row},s,rx,{}a\n", if row == 9 { "\"" } else { "" }))
        .collect();
    write(home.path(), &[("e.csv", &format!("{HEADER}\n{rows}"))]);
    write(home.path(), &[("last.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,\"a\n"))]);
    for (line, expected) in [
        (
            "events e.csv",
            "error: e.csv: row 20: column `code`: holds rows that follow it: a quote is left open\n",
        ),
        // There is nothing left to swallow.
        (
            "events last.csv --strict",
            "error: last.csv: row 2: column `code`: holds a line break; is a quote left open? (refused because of --strict)\n",
        ),
    ] {
        let said = failure(home.path(), &format!("{line} --out data"));
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_first_line_that_is_no_header_is_not_shown() {
    // The second was a header until its line break was lost.
    let merged = format!("encounter_id,subject_id,kind,co1,{SECRET},dx,I10,2020-01-01\n2,{SECRET},dx,I10\n");
    event_failure(merged.as_bytes(), "");
    let said = event_failure(format!("1,{SECRET},dx,I10\n2,{SECRET},dx,I10\n").as_bytes(), "");
    assert!(
        said.starts_with(
            "error: e.csv: its first line does not name the expected columns: code, description, "
        ),
        "{said}"
    );
    // Nor one whose every field could be a name.
    let said = event_failure("Smith,John,dx,PATIENT4711\nMiller,Jane,rx,a\n".as_bytes(), "");
    assert!(!said.contains("Smith") && !said.contains("4711"), "{said}");
}

#[test]
fn what_is_said_of_columns_and_delimiters_is_heeded_or_refused() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("e.csv", "encounter_id;subject_id;kind;code\n1;2;dx;x\n1;2;rx;y\n")]);
    prepare(home.path(), "events e.csv --dry-run --delimiter ;").assert().success();
    for column in ["cdoe=code", "code=nowhere", "encounters.prediction_time=wehn"] {
        let said = failure(home.path(), &format!("events e.csv --delimiter ; --dry-run --column {column}"));
        assert!(said.starts_with(&format!("error: option `column`: {column} is not allowed; ")), "{said}");
    }
    let said = failure(home.path(), "events e.csv --delimiter ; --out data --prior data/prior.parquet");
    assert!(said.starts_with("error: option `prior`: data/prior.parquet is not allowed; "), "{said}");
}

#[test]
fn two_patients_with_one_encounter_are_refused() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            ("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n2,s,dx,I10\n2,{SECRET},rx,a\n")),
            (
                "fhir/all.ndjson",
                "{\"resourceType\": \"Encounter\", \"id\": \"1\", \"subject\": {\"reference\": \"Patient/a\"}}\n\
                 {\"resourceType\": \"Encounter\", \"id\": \"1\", \"subject\": {\"reference\": \"Patient/b\"}}\n",
            ),
        ],
    );
    let said = failure(home.path(), "events e.csv --dry-run");
    assert!(said.starts_with("error: e.csv: 1 encounters have events of two subjects"), "{said}");
    let said = failure(home.path(), "events e.csv --dry-run --min-cell 5");
    assert!(said.starts_with("error: e.csv: <5 encounters have events of two subjects"), "{said}");
    let said = failure(home.path(), "fhir fhir --dry-run");
    assert!(said.starts_with("error: fhir: 2 encounters have events of two subjects"), "{said}");
}

#[test]
fn a_quote_that_opens_anywhere_and_closes_rows_later_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let table = |open: usize, close: usize, column: usize| -> String {
        let rows = (1..=60).map(|row| {
            let mut cells = [
                format!("{row}"),
                format!("{SECRET}{row}"),
                "dx".into(),
                "I10".into(),
                "text".into(),
                "note".into(),
            ];
            if row == open {
                cells[column].insert(0, '"');
            }
            if row == close {
                cells[column].push('"');
            }
            cells.join(",") + "\n"
        });
        format!("{HEADER},description,note\n{}", rows.collect::<String>())
    };
    for (open, close, column) in
        [(10, 40, 4), (10, 40, 5), (10, 11, 4), (10, 11, 5), (60, 61, 5), (59, 99, 5)]
    {
        write(home.path(), &[("e.csv", &table(open, close, column))]);
        if open == 60 {
            // It swallows nothing, since nothing follows.
            prepare(home.path(), "events e.csv --dry-run --min-codes 0").assert().success();
            continue;
        }
        let said = failure(home.path(), "events e.csv --dry-run --min-codes 0");
        let name = ["description", "note"][column - 4];
        let expected = format!(
            "error: e.csv: row {open}: column `{name}`: holds rows that follow it: a quote is left open\n"
        );
        assert!(said.starts_with(&expected), "{said}");
    }
    // Text can have lines, and commas in them.
    let text =
        format!("{HEADER},description\n1,s,dx,I10,\"a, b\nc, d, e, f, g\nh\"\n2,s,dx,I10,\"x\ny, z\"\n");
    write(home.path(), &[("e.csv", &text)]);
    let counts = super::json(home.path(), "events e.csv --dry-run --min-codes 0");
    assert_eq!(counts["events_kept"], 2);
}

#[test]
fn a_source_can_only_ask() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            ("e.csv", "id\n1\n"),
            ("mine/source.toml", "about = \"\"\nexample = \"\"\n[tables.e.columns]\nid = \"id\"\n"),
            ("mine/events.sql", "SELECT id AS encounter_id, 'lab' AS kind, id AS code FROM e"),
        ],
    );
    for statement in [
        "COPY (SELECT 1 AS encounter_id, 1 AS subject_id) TO 'stolen.csv'",
        "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'e.csv'",
        "CREATE TABLE t AS SELECT 1 AS encounter_id, 1 AS subject_id",
        "SET datafusion.execution.batch_size = 1",
        "DROP TABLE e",
    ] {
        write(home.path(), &[("mine/encounters.sql", statement)]);
        let said = failure(home.path(), "sql e.csv --source mine --dry-run");
        assert!(said.starts_with("error: mine/encounters.sql: "), "{said}");
    }
}

#[tokio::test]
async fn rows_of_parquet_that_cannot_be_read_are_placed() {
    let home = tempfile::tempdir().unwrap();
    let rows = |bad: &str| {
        format!(
            "SELECT CAST(n AS VARCHAR) AS encounter_id, 's' AS subject_id, CASE WHEN n % 2 = 0 THEN 'dx' ELSE 'rx' END AS kind, \
             'c' AS code, CASE WHEN n IN ({bad}) THEN '{SECRET}' ELSE '2020-01-01' END AS time \
             FROM (SELECT unnest(generate_series(1, 30000)) AS n) ORDER BY n"
        )
    };
    for (part, bad) in [(0, "0"), (1, "20001, 20002"), (2, "3")] {
        super::write_parquet(&home.path().join(format!("e/events/{part}.parquet")), &rows(bad)).await;
    }
    let said = failure(home.path(), "events e --dry-run --strict --min-codes 0");
    let expected = "error: e/events/1.parquet: row 20001: column `time`: expected a date or time, found other text (refused";
    assert!(said.starts_with(expected), "{said}");
    let counts = super::json(home.path(), "events e --dry-run --min-codes 0");
    assert_eq!(counts["tables"]["events"]["unreadable"], 3);
}

#[test]
fn text_of_two_bytes_per_letter_is_named() {
    let home = tempfile::tempdir().unwrap();
    let text = format!("{HEADER}\n1,{SECRET},dx,I10\n");
    for mark in ["\u{feff}", ""] {
        let bytes: Vec<u8> = format!("{mark}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        std::fs::write(home.path().join("e.csv"), bytes).unwrap();
        assert_eq!(
            failure(home.path(), "events e.csv --dry-run"),
            "error: e.csv: expected UTF-8 text, found UTF-16\n\
             hint: convert it first: iconv -f UTF-16 -t UTF-8 e.csv > NEW\n"
        );
    }
}

#[tokio::test]
async fn times_that_are_too_far_away_are_counted() {
    let home = tempfile::tempdir().unwrap();
    super::write_parquet(
        &home.path().join("p/events.parquet"),
        "SELECT '1' AS encounter_id, 's' AS subject_id, kind, 'c' AS code, arrow_cast(t, 'Timestamp(Microsecond, None)') AS time \
         FROM (VALUES ('dx', 0), ('rx', 0), ('dx', 9223372036854775807), ('rx', -9223372036854775807)) AS v(kind, t)",
    )
    .await;
    let rows = format!(
        "{HEADER},time\n1,s,dx,c,2020-01-01\n1,s,rx,c,9999-12-31\n1,s,dx,c,12020-01-01\n1,s,rx,c,262000-01-01\n"
    );
    write(home.path(), &[("c/events.csv", &rows)]);
    for path in ["p", "c"] {
        let counts = super::json(home.path(), &format!("events {path} --dry-run"));
        assert_eq!(counts["tables"]["events"], serde_json::json!({"rows": 4, "unreadable": 2, "events": 2}));
    }
}

#[tokio::test]
async fn an_index_of_pandas_is_no_label_and_any_other_column_is_named_with_what_it_holds() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            ("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n2,s,dx,I10\n2,s,rx,a\n")),
            ("unnamed.csv", ",encounter_id,died,late\n0,1,1.0,TRUE\n1,2,0.0,False\n"),
            ("again.csv", "Unnamed: 0,encounter_id,died,late\n0,1,1,yes\n1,2,0,no\n"),
        ],
    );
    let good = "t(encounter_id, died, late, __index_level_0__)";
    let rows = [
        ("whole.parquet", format!("('1', 1, true, 0), ('2', 0, false, 1)) AS {good}")),
        ("floats.parquet", format!("('1', 1.0, 1, 0), ('2', 0.0, 0, 1)) AS {good}")),
        ("age.parquet", "('1', 61), ('2', 1)) AS t(encounter_id, age)".into()),
        ("share.parquet", "('1', 0.5), ('2', 1.0)) AS t(encounter_id, share)".into()),
        ("word.parquet", "('1', 'true'), ('2', 'perhaps')) AS t(encounter_id, word)".into()),
        ("day.parquet", "('1', DATE '2020-01-01')) AS t(encounter_id, day)".into()),
    ];
    for (name, rows) in rows {
        super::write_parquet(&home.path().join(name), &format!("SELECT * FROM (VALUES {rows}")).await;
    }
    for (name, index) in [
        ("whole.parquet", "__index_level_0__"),
        ("floats.parquet", "__index_level_0__"),
        ("unnamed.csv", "column 0"),
        ("again.csv", "Unnamed: 0"),
    ] {
        let counts = super::json(home.path(), &format!("events e.csv --dry-run --labels {name}"));
        assert_eq!(counts["labels"], serde_json::json!({"died": 1, "late": 1}), "{name}");
        assert_eq!(counts["labels_known"], serde_json::json!({"died": 2, "late": 2}), "{name}");
        assert_eq!(counts["label_columns_ignored"], serde_json::json!([index]), "{name}");
        let shown =
            prepare(home.path(), &format!("events e.csv --dry-run --labels {name}")).assert().success();
        let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
        assert!(shown.contains(&format!("\nThe column `{index}` of the labels was left out")), "{shown}");
    }
    for (name, column, found) in [
        ("age.parquet", "age", "other whole numbers"),
        ("share.parquet", "share", "other numbers"),
        ("word.parquet", "word", "other text"),
        ("day.parquet", "day", "date32"),
    ] {
        let said = failure(home.path(), &format!("events e.csv --dry-run --labels {name}"));
        let row = match name {
            "age.parquet" | "share.parquet" => "row 1: ",
            "word.parquet" => "row 2: ",
            _ => "",
        };
        let expected =
            format!("error: {name}: {row}column `{column}`: expected true or false, found {found}\n");
        assert!(said.starts_with(&expected), "{said}");
    }
}

#[tokio::test]
async fn the_damaged_one_of_several_parquet_files_is_named() {
    let home = tempfile::tempdir().unwrap();
    let rows = "SELECT CAST(n AS VARCHAR) AS encounter_id, 's' AS subject_id, 'dx' AS kind, CAST(n % 7 AS VARCHAR) AS code \
                FROM (SELECT unnest(generate_series(1, 5000)) AS n)";
    for part in 0..3 {
        super::write_parquet(&home.path().join(format!("e/events/{part}.parquet")), rows).await;
    }
    let path = home.path().join("e/events/1.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    // A page of the first column; the footer stays, so that the columns are known.
    bytes[64..256].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let said = failure(home.path(), "events e --dry-run --min-codes 0");
    assert!(
        said.starts_with("error: e/events/1.parquet is damaged: cut off, or not a Parquet file\n"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_without_waiting_for_who_writes_to_it() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[("e.csv", &format!("{HEADER}\n1,s,dx,I10\n1,s,rx,a\n")), ("mine/encounters.sql", "")],
    );
    for pipe in ["p.csv", "p.toml", "mine/source.toml"] {
        let made = std::process::Command::new("mkfifo").arg(home.path().join(pipe)).status();
        assert!(made.unwrap().success());
    }
    for (line, pipe) in [
        ("events p.csv --dry-run", "p.csv"),
        ("events e.csv --dry-run --labels p.csv", "p.csv"),
        ("events e.csv --dry-run --columns p.toml", "p.toml"),
        ("sql e.csv --source mine --dry-run", "mine/source.toml"),
    ] {
        let expected = format!(
            "error: cannot read {pipe}: found a pipe, expected a regular file\n\
             hint: write its contents into a file, and give that\n"
        );
        assert_eq!(failure(home.path(), line), expected, "{line}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn too_many_open_files_are_not_blamed_on_a_table() {
    let home = tempfile::tempdir().unwrap();
    let rows = "SELECT '1' AS encounter_id, 's' AS subject_id, 'dx' AS kind, 'I10' AS code";
    for part in 0..40 {
        super::write_parquet(&home.path().join(format!("e/events/{part}.parquet")), rows).await;
    }
    let program = snapbox::cmd::cargo_bin!("gct-prepare").display().to_string();
    for limit in (14..40).step_by(2) {
        let line = format!("ulimit -n {limit}; exec {program} events e --dry-run");
        let run =
            std::process::Command::new("sh").args(["-c", &line]).current_dir(home.path()).output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert!(!said.contains("damaged") && !said.contains("panicked"), "{limit}: {said}");
        assert!(said.is_empty() || said.contains("\nhint: "), "{limit}: {said}");
    }
}

#[test]
fn a_missing_table_says_what_is_expected_and_what_is_like_it() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "mine/source.toml",
                "about = \"\"\nexample = \"\"\n[tables.stays]\nfiles = [\"unit_stays\", \"*_stays_*\"]\n[tables.stays.columns]\nid = \"id\"\n",
            ),
            ("mine/encounters.sql", "SELECT id AS encounter_id, id AS subject_id FROM stays"),
            ("mine/events.sql", "SELECT id AS encounter_id, 'lab' AS kind, id AS code FROM stays"),
            ("near/unit_stay.csv", "id\n1\n"),
            ("near/labs.csv", "id\n1\n"),
            ("below/2020/unit_stays.csv", "id\n1\n"),
            ("far/weather.csv", "id\n1\n"),
        ],
    );
    for (path, found, hint) in [
        ("near", "labs, unit_stay", "is it `unit_stay`? then say so: --table stays=unit_stay"),
        ("below", "2020", "is it `2020/unit_stays`? then say so: --table stays=2020/unit_stays"),
        (
            "far",
            "weather",
            "expected a file `unit_stays` as .csv, .csv.gz or .parquet, or a folder of such files; or say where it is: --table stays=PATH",
        ),
    ] {
        let said = failure(home.path(), &format!("sql {path} --source mine --dry-run"));
        assert_eq!(
            said,
            format!(
                "error: {path} has no table `stays`, which is called `unit_stays` or `*_stays_*`; it has: {found}\nhint: {hint}\n"
            )
        );
    }
    // And what the hint says helps.
    let said =
        failure(home.path(), "sql below --source mine --dry-run --table stays=2020/unit_stays --min-codes 1");
    assert!(said.starts_with("error: no encounter is left"), "{said}");
}

#[test]
fn a_single_file_of_several_tables_asks_for_the_folder() {
    let home = tempfile::tempdir().unwrap();
    let admissions = "subject_id,hadm_id,admittime,dischtime,deathtime,hospital_expire_flag\n";
    write(home.path(), &[("admissions.csv", &format!("{admissions}{SECRET},1,,,,\n"))]);
    let said = failure(home.path(), "mimic4 admissions.csv --out data");
    let expected =
        "error: admissions.csv is one file; mimic4 has several tables: admissions, d_icd_diagnoses, ";
    assert!(said.starts_with(expected), "{said}");
    assert!(said.ends_with("\nhint: give the folder that the tables are in\n"), "{said}");
    let said = failure(home.path(), "omop admissions.csv --out data");
    assert!(said.starts_with("error: admissions.csv is one file; omop has several tables: "), "{said}");
}
