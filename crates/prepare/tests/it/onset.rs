//! Labels of onset: who has a diagnosis for the first time in the days after a visit.

use std::collections::BTreeMap;
use std::path::Path;

use gct::dataset::Dataset;
use serde_json::{Value, json};

use super::omop::COHORT;
use super::{eicu, json, mimic, prepare, write};

/// Visits of seven patients, with one diagnosis each, which is heart failure where it begins with I50. The
/// first visit of most ends on 5 January.
const VISITS: &str = "\
    p1a,2020-01-01,2020-01-05,E11\n\
    p1b,2020-01-20,2020-01-21,I50.1\n\
    p1c,2020-06-01,2020-06-02,E11\n\
    p2a,2020-01-01,2020-01-05,E11\n\
    p2b,2020-02-04,2020-02-04,E11\n\
    p3a,2020-01-01,2020-01-05,E11\n\
    p3b,2020-02-03,2020-02-03,E11\n\
    p4a,2020-01-01,2020-01-05,E11\n\
    p4b,2020-02-05,2020-02-06,I50.9\n\
    p5a,2020-01-01,2020-01-05 12:00:00,E11\n\
    p5b,2020-01-05 15:00:00,2020-01-09,I50.1\n\
    p6a,,,E11\n\
    p7a,2020-01-01,2020-01-10,E11\n\
    p7b,2020-01-05,2020-01-06,I50.1\n";

/// The same as the tables of `gct prepare events`.
fn write_visits(home: &Path) {
    let rows = VISITS.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (mut events, mut encounters) =
        ("encounter_id,subject_id,kind,code\n".to_owned(), "encounter_id,start,end\n".to_owned());
    for row in rows {
        events += &format!("{},{},dx,{}\n", row[0], &row[0][..2], row[3]);
        encounters += &format!("{},{},{}\n", row[0], row[1], row[2]);
    }
    write(home, &[("in/events.csv", &events), ("in/encounters.csv", &encounters)]);
}

/// A label of each encounter of a dataset: `p1a+` where it is true, `p1a-` where it is false, `p1a?`.
fn labels(dataset: &Path, label: &str) -> String {
    let dataset = Dataset::open(dataset).unwrap();
    let column = dataset.manifest().labels.iter().position(|name| name == label).unwrap();
    let sign = |value: Option<bool>| value.map_or("?", |value| if value { "+" } else { "-" });
    let encounters = dataset.encounters().unwrap().map(Result::unwrap);
    let mut found: Vec<_> =
        encounters.map(|one| format!("{}{}", one.id.as_str(), sign(one.labels[column]))).collect();
    found.sort();
    found.join(" ")
}

const EVENTS: &str = "events in --min-codes treatment=0 --out data --force";

/// The label `onset`, and what was counted.
fn onset(home: &Path, flags: &str) -> (String, Value) {
    let counts = json(home, &format!("{EVENTS} {flags}"));
    assert_eq!(counts["unbalanced"], json!([]), "{flags}");
    (labels(&home.join("data"), "onset"), counts)
}

fn failure(home: &Path, line: &str) -> String {
    let output = prepare(home, line).assert().code(2).get_output().clone();
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_diagnosis_begins_in_the_days_after_the_visit() {
    let home = tempfile::tempdir().unwrap();
    write_visits(home.path());
    let (found, counts) = onset(home.path(), "--onset I50* --within 1..30");
    // On day 15; not by day 30, but on day 31; on the last day of the visit itself. The third patient is seen
    // for the last time on day 29, the second on day 30.
    assert_eq!(found, "p1a+ p2a- p2b? p3a? p3b? p4a- p5a? p6a?");
    // Who has it in the visit or before, or in a visit that began while this one went on.
    assert_eq!((&counts["encounters_read"], &counts["dropped"]), (&json!(14), &json!({"had_onset": 6})));
    assert_eq!(counts["labels_unknown"], json!({"onset": {"no_date": 1, "not_observed": 3, "too_early": 1}}));
    assert_eq!((&counts["labels"]["onset"], &counts["labels_known"]["onset"]), (&json!(1), &json!(3)));
    let (found, counts) = onset(home.path(), "--onset I50* --within 1..30 --prevalent keep");
    assert_eq!(found, "p1a+ p1b? p1c? p2a- p2b? p3a? p3b? p4a- p4b? p5a? p5b? p6a? p7a? p7b?");
    assert_eq!(
        (&counts["dropped"], &counts["labels_unknown"]["onset"]["had_already"]),
        (&json!({}), &json!(6))
    );
    // Other days: from day 16 on the first patient is too early, up to day 31 the fourth counts, and on day 0
    // the fifth, whose second visit begins after the first.
    let (found, _) = onset(home.path(), "--onset I50* --within 16..31");
    assert_eq!(found, "p1a? p2a? p2b? p3a? p3b? p4a+ p5a? p6a?");
    let (found, _) = onset(home.path(), "--onset I50* --within 0..30");
    assert_eq!(found, "p1a+ p2a- p2b? p3a? p3b? p4a- p5a+ p6a?");
}

#[test]
fn codes_are_listed_or_in_a_file_and_those_of_the_source() {
    let home = tempfile::tempdir().unwrap();
    write_visits(home.path());
    let expected = "p1a+ p2a- p2b? p3a? p3b? p4a- p5a? p6a?";
    write(
        home.path(),
        &[("hf.csv", "name,code\na,I50*\nb,I11.0\nc,\n"), ("two.tsv", "CODE\tx\nI50.1\t\nI50.9\t1\n")],
    );
    for flags in [
        "--onset I50.1,I50.9",
        "--onset onset=I50*",
        "--onset hf.csv",
        "--onset two.tsv",
        // Before rollups, and whatever becomes of rare codes.
        "--onset I50.1,I50.9 --rollup diagnosis=icd3",
        "--onset I50* --rollup diagnosis=icd3 --rollup-unmapped drop --min-count 3",
        "--set onset=I50*",
        "--set onset.onset=hf.csv",
    ] {
        let (found, _) = onset(home.path(), &format!("{flags} --within 1..30"));
        assert_eq!(found, expected, "{flags}");
    }
    let (_, _) = onset(home.path(), "--onset hf.csv --within 1..30");
    let manifest = Dataset::open(&home.path().join("data")).unwrap().manifest().clone();
    assert_eq!(manifest.source.findings["onset"], json!({"onset": ["I11.0", "I50*"]}));
    let settings = &manifest.source.settings;
    assert_eq!(
        (&settings["onset"], &settings["within"], &settings["prevalent"]),
        (&json!({"onset": "hf.csv"}), &json!("1..30"), &json!("drop"))
    );
}

#[tokio::test]
async fn a_file_of_codes_can_be_parquet() {
    let home = tempfile::tempdir().unwrap();
    write_visits(home.path());
    super::write_parquet(&home.path().join("hf.parquet"), "SELECT 1 AS row, 'I50*' AS code").await;
    let (found, _) = onset(home.path(), "--onset hf.parquet --within 1..30");
    assert_eq!(found, "p1a+ p2a- p2b? p3a? p3b? p4a- p5a? p6a?");
}

#[test]
fn several_onsets_are_several_labels() {
    let home = tempfile::tempdir().unwrap();
    write_visits(home.path());
    let line = format!("{EVENTS} --onset I50* --onset diabetes=E11 --within 1..30");
    let counts = json(home.path(), &format!("{line} --prevalent keep"));
    let data = home.path().join("data");
    assert!(labels(&data, "onset").starts_with("p1a+ p1b? p1c? p2a- "), "{}", labels(&data, "onset"));
    // A label that is known nowhere is none.
    assert!(counts["labels"]["diabetes"].is_null(), "{counts}");
    assert_eq!(counts["labels_unknown"]["diabetes"], json!({"had_already": 13, "no_date": 1}));
    // Who had one of them is dropped by the first rule by name.
    let counts = json(home.path(), &line);
    assert_eq!(counts["dropped"], json!({"had_diabetes": 13}));
}

#[test]
fn a_diagnosis_counts_where_its_event_or_encounter_is_dropped() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &mimic::TABLES);
    // All diagnoses are billed after the first day; the first patient has the same in both admissions.
    let line = "mimic4 iv --observe-hours 24 --min-codes 0 --dry-run --within 1..30";
    let counts = json(home.path(), &format!("{line} --onset ICD10CM:E10*"));
    assert_eq!(counts["dropped"], json!({"had_onset": 2}));
    let counts = json(home.path(), &format!("{line} --onset ICD10CM:I10,ICD9CM:4019"));
    assert_eq!(counts["dropped"], json!({"had_onset": 3}));
    // Long enough: nothing of what follows an encounter is lost with the others.
    write_visits(home.path());
    let (found, counts) = onset(home.path(), "--onset I50* --within 1..30 --limit 1");
    assert_eq!((found.as_str(), &counts["encounters_read"]), ("p1a+", &json!(1)));
}

#[test]
fn periods_of_omop_say_until_when_and_events_need_no_visit() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &COHORT);
    let (table, rows) = COHORT[1];
    let events = "1,,9,2020-01-20\n4,,9,2019-12-01\n5,,9,2020-01-05\n6,,9,2020-02-04\n7,,9,2020-02-05\n2,12,9,2020-06-01\n";
    write(home.path(), &[(table, &format!("{rows}{events}"))]);
    let line = "omop cdm --min-codes treatment=0 --out data --force --within 1..30";
    let counts = json(home.path(), &format!("{line} --onset 9"));
    // The fifth has it on the last day of the visit, the ninth has died, the third and the tenth are not
    // observed for so long, and the eleventh has no period.
    assert_eq!(labels(&home.path().join("data"), "onset"), "1+ 10? 11? 2- 3? 6+ 7- 8- 9?");
    assert_eq!(counts["dropped"], json!({"had_onset": 3}));
    assert_eq!(counts["unbalanced"], json!([]));
    // Beside a cohort, which has the same days.
    let counts = json(home.path(), &format!("{line} --onset 9 --prevalent keep --cohort cohorts.csv:1"));
    assert_eq!(
        counts["labels_unknown"]["cohort_1"],
        json!({"died": 1, "in_cohort_already": 2, "not_observed": 1})
    );
    assert_eq!(counts["labels_known"]["onset"], 5);
}

#[test]
fn labels_of_onset_are_ones_own_under_like() {
    let home = tempfile::tempdir().unwrap();
    write_visits(home.path());
    let old = format!("{EVENTS} --onset hf=I50* --within 1..30 --prevalent keep");
    json(home.path(), &old.replace("--out data", "--out old"));
    let like = |flags: &str| {
        let counts = json(home.path(), &format!("events in --out data --force --like old {flags}"));
        (counts["encounters_kept"].clone(), counts["labels_known"].clone())
    };
    assert_eq!(like(""), (json!(14), json!({})));
    // The days and what becomes of those who had it are those of the other dataset.
    assert_eq!(like("--onset I50*"), (json!(14), json!({"onset": 3})));
    assert_eq!(like("--onset I50* --prevalent drop --within 1..31"), (json!(8), json!({"onset": 2})));
}

#[test]
fn what_cannot_be_is_said() {
    let home = tempfile::tempdir().unwrap();
    write_visits(home.path());
    write(home.path(), &mimic::TABLES);
    write(home.path(), &eicu::TABLES);
    write(home.path(), &[("icd.csv", "icd,name\nI50,x\n"), ("empty.csv", "code\n")]);
    for (flags, expected) in [
        (
            "--onset I60*,I61",
            "error: `onset` of `onset`: none of the 3 codes of diagnoses in in is I61, I60*\n\
             hint: write codes as the source does, with * at the end for any rest: --onset 'I50*'\n",
        ),
        (
            "--onset I50* --onset I60*",
            "error: option `onset`: I60* is not allowed; expected one list of codes for the label `onset`: give others as NAME=CODES\n",
        ),
        ("--onset start=I50*", "error: option `onset`: start is not allowed; expected a name that "),
        (
            "--onset I5*0",
            "error: option `onset`: I5*0 is not allowed; expected codes with commas between them, ",
        ),
        ("--onset ,", "error: option `onset`: an empty list is not allowed; "),
        ("--onset nowhere.csv", "error: cannot read nowhere.csv: "),
        ("--onset icd.csv", "error: icd.csv: its first line does not name the expected columns: code\n"),
        ("--onset empty.csv", "error: empty.csv has no rows\n"),
        (
            "--within 1..30",
            "error: option `within` does nothing without `onset`\nhint: give --onset too, or leave --within out\n",
        ),
        ("--prevalent keep", "error: option `prevalent` does nothing without `onset`\n"),
        (
            "--onset I50* --within 30",
            "error: option `within`: 30 is not allowed; expected two whole numbers ",
        ),
    ] {
        let said = failure(home.path(), &format!("{EVENTS} {flags}"));
        assert!(said.starts_with(expected), "{flags}: {said}");
    }
    let said = failure(home.path(), "mimic4 iv --dry-run --onset hf=I50*");
    assert_eq!(
        said,
        "error: `onset` of `hf`: none of the 4 codes of diagnoses in iv is I50*\n\
         hint: write codes as the source does: they begin with ICD10CM:, ICD9CM:\n"
    );
    let said = failure(home.path(), "eicu eicu --dry-run --min-codes 0 --onset x");
    assert_eq!(
        said,
        "error: `onset` needs the dates of encounters, and those of eicu have minutes since admission to the unit\n\
         hint: leave --onset out, or write tables of events and of encounters with their `start` for `gct prepare events`\n"
    );
    // A file of all settings has them, and that is no mistake.
    let shown = prepare(home.path(), "events in --show-config").assert().success();
    std::fs::write(home.path().join("all.toml"), &shown.get_output().stdout).unwrap();
    prepare(home.path(), &format!("{EVENTS} --config all.toml")).assert().success();
}

/// Onsets by definition: a naive version, patient by patient.
#[test]
fn onsets_are_those_of_a_naive_version() {
    let home = tempfile::tempdir().unwrap();
    let mut random = 7_u64;
    let mut next = |below: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let (mut visits, mut events, mut encounters) = (
        BTreeMap::<u64, Vec<(String, u64, u64, bool)>>::new(),
        "encounter_id,subject_id,kind,code\n".to_owned(),
        "encounter_id,start,end\n".to_owned(),
    );
    for visit in 0..200 {
        let (subject, start, length, has_it) = (next(40), next(27) + 1, next(4), next(6) == 0);
        let (id, end) = (format!("v{visit:03}"), (start + length).min(28));
        events += &format!("{id},{subject},dx,{}\n", if has_it { "I50" } else { "E11" });
        encounters += &format!("{id},2020-02-{start:02},2020-02-{end:02}\n");
        visits.entry(subject).or_default().push((id, start, end, has_it));
    }
    write(home.path(), &[("in/events.csv", &events), ("in/encounters.csv", &encounters)]);
    let mut expected = vec![];
    for visits in visits.values() {
        let first = visits.iter().filter(|visit| visit.3).map(|visit| visit.1).min();
        let last = visits.iter().map(|visit| visit.2).max().unwrap();
        for (id, _, end, _) in visits {
            match first {
                Some(first) if first <= *end => {}
                Some(first) if first < end + 2 => expected.push(format!("{id}?")),
                Some(first) if first <= end + 7 => expected.push(format!("{id}+")),
                _ if last < end + 7 => expected.push(format!("{id}?")),
                _ => expected.push(format!("{id}-")),
            }
        }
    }
    expected.sort();
    let (found, counts) = onset(home.path(), "--onset I50 --within 2..7");
    assert_eq!(found, expected.join(" "));
    assert_eq!(counts["dropped"]["had_onset"], 200 - expected.len());
    assert!(found.contains('+') && found.contains('-') && found.contains('?'), "{found}");
}
