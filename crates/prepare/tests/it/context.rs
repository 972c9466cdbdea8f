//! What is known of encounters beside codes, from every source; by hand, at random, and of real data.

/// What each source knows.
mod sources;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gct::dataset::Dataset;
use gct::record::CodeKind;
use gct::split::{By, Split, SplitPart};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use super::{json, names, prepare, write};

/// The context of every encounter of a dataset, by its identifier.
pub(super) fn contexts(dataset: &Path) -> Vec<String> {
    let dataset = Dataset::open(dataset).unwrap();
    let codes = &dataset.vocabulary()[CodeKind::Context];
    let encounters = dataset.encounters().unwrap().map(Result::unwrap);
    let line = |encounter: gct::record::Encounter| {
        let names: Vec<&str> =
            encounter.codes.context.iter().map(|id| codes[*id as usize].code.as_str()).collect();
        format!("{}: {}", encounter.id.as_str(), names.join(", "))
    };
    let mut lines: Vec<String> = encounters.map(line).collect();
    lines.sort();
    lines
}

/// The settings that a dataset was made with.
fn settings(dataset: &Path) -> Value {
    Dataset::open(dataset).unwrap().manifest().source.settings.clone()
}

const EICU: [(&str, &str); 4] = [
    (
        "eicu/patient.csv",
        "patientunitstayid,patienthealthsystemstayid,uniquepid,hospitaladmitoffset,unitdischargeoffset,unitdischargestatus,hospitaldischargestatus,\
         age,gender,ethnicity,unittype,unitadmitsource,hospitaladmitsource,unitvisitnumber,unitdischargelocation\n\
         11,1,p1,-10,600,Alive,Expired,> 89,Female,Caucasian,MICU,Emergency Department,Floor,2,Floor\n\
         12,1,p1,-2000,1441,Alive,Expired,> 89,Female,Caucasian,Med-Surg ICU,,Floor,1,\n\
         21,2,p2,0,1440,Expired,Expired,64,Unknown,Other/Unknown,,Operating Room,,1,Death\n",
    ),
    (
        "eicu/admissionDx.csv",
        "patientunitstayid,admitdxenteredoffset,admitdxpath\n11,5,A|Sepsis\n12,5,A|CABG\n21,0,A|Sepsis\n",
    ),
    ("eicu/diagnosis.csv", "patientunitstayid,diagnosisoffset,diagnosisstring\n11,20,Shock\n"),
    (
        "eicu/treatment.csv",
        "patientunitstayid,treatmentoffset,treatmentstring\n11,10,fluids\n12,10,fluids\n21,10,fluids\n",
    ),
];

#[test]
fn names_choose_and_what_is_known_afterwards_must_be_named() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &EICU);
    json(home.path(), "eicu eicu --context sex,age --out some");
    assert_eq!(
        contexts(&home.path().join("some")),
        ["11: age=90+, sex=female", "12: age=90+, sex=female", "21: age=55-64"]
    );
    json(home.path(), "eicu eicu --context discharge --out later");
    assert_eq!(contexts(&home.path().join("later")), ["11: discharge=floor", "12: ", "21: discharge=death"]);
    let both = json(home.path(), "eicu eicu --context all,discharge --dry-run");
    assert_eq!((&both["context_read"], &both["context"]["discharge"]), (&json!(19), &json!(2)));
    let stays = json(home.path(), "eicu eicu --context length_of_stay --lab-bins 2 --dry-run");
    assert_eq!((&stays["context_kept"], &stays["bucketed_context"]), (&json!(3), &json!(1)));
    // None, and the rules of the paper.
    let none = json(home.path(), "eicu eicu --context none --out none");
    assert!(!none.to_string().contains("context"), "{none}");
    assert_eq!(settings(&home.path().join("none"))["context"], json!([]));
    let paper = json(home.path(), "eicu eicu --rules paper --out paper");
    assert!(!paper.to_string().contains("context"), "{paper}");
    assert_eq!(json(home.path(), "eicu eicu --rules paper --context sex --dry-run")["context_kept"], 1);
    // A file of settings says the same as a flag, and what is shown can be given back.
    write(home.path(), &[("prepare.toml", "context = [\"sex\", \"age\"]\n")]);
    json(home.path(), "eicu eicu --config prepare.toml --out filed");
    assert_eq!(settings(&home.path().join("filed"))["context"], json!(["age", "sex"]));
    let shown = prepare(home.path(), "eicu --context none --show-config").assert().success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(shown.contains("context = []\n"), "{shown}");
}

#[test]
fn the_report_counts_context_apart_and_help_lists_its_names() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &EICU);
    let said = prepare(home.path(), "eicu eicu --dry-run").assert().success();
    let said = String::from_utf8(said.get_output().stdout.clone()).unwrap();
    let lines: Vec<Vec<&str>> = said.lines().map(|line| line.split_whitespace().collect()).collect();
    for line in [
        &["context", "read", "17"][..],
        &["dropped:", "unknown", "value", "1"],
        &["context", "kept", "16"],
        &["context", "11", "5.33", "0"],
    ] {
        assert!(lines.iter().any(|found| found == line), "{line:?} in {said}");
    }
    let help = prepare(home.path(), "eicu --help").assert().success();
    let help = String::from_utf8(help.get_output().stdout.clone()).unwrap();
    assert!(help.contains("--context <NAMES>"), "{help}");
    assert!(help.contains("  age                        Age at the start, in bands\n"), "{help}");
    // Lines are as long as the terminal allows.
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("Where the patient went from the unit (known only afterwards: taken if named)"),
        "{help}"
    );
    // With small counts hidden, none can be had by subtraction.
    let hidden = json(home.path(), "eicu eicu --dry-run --min-cell 2");
    assert_eq!((&hidden["context_read"], &hidden["context"]["age"]), (&json!("hidden"), &json!("hidden")));
}

#[test]
fn what_context_cannot_be_is_refused() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &EICU);
    let rows = "encounter_id,subject_id,kind,code\n1,a,dx,I10\n1,a,rx,pill\n1,a,context,sex=female\n";
    write(home.path(), &[("visits.csv", rows)]);
    let offered = "all, none, or names with commas between them: admission_source, age, earlier_visits, ethnicity, \
                   height, hospital_admission_source, sex, unit, weight; and, known only afterwards, discharge, \
                   length_of_stay";
    let before = names(home.path());
    for (line, said) in [
        ("eicu eicu --context gender", format!("gender is not allowed; expected {offered}")),
        (
            "eicu eicu --context days_since_last_visit",
            format!("days_since_last_visit is not allowed; expected {offered}"),
        ),
        ("eicu eicu --context none,age", "none,age is not allowed; expected `none` alone".into()),
        ("eicu eicu --context age,", format!("nothing is not allowed; expected {offered}")),
        ("eicu eicu --context=", format!("nothing is not allowed; expected {offered}")),
        (
            "events visits.csv --context sex,weight",
            "weight is not allowed; expected all, none, or names with commas between them: sex, \
             days_since_last_visit, earlier_visits, length_of_stay"
                .into(),
        ),
    ] {
        prepare(home.path(), &format!("{line} --out data")).assert().code(2).stdout_eq("").stderr_eq(format!(
            "error: option `context`: {said}\nhint: give a value that is expected; --help lists all options\n"
        ));
    }
    assert_eq!(names(home.path()), before);
}

/// Synthea's tables of these encounters, each with a condition.
fn synthea(folder: &Path, encounters: &str) {
    let ids = encounters.lines().map(|line| line.split(',').next().unwrap());
    let conditions: String = ids.map(|id| format!("{id},1\n")).collect();
    write(
        folder,
        &[
            ("csv/encounters.csv", &format!("Id,START,STOP,PATIENT,ENCOUNTERCLASS\n{encounters}")),
            ("csv/conditions.csv", &format!("ENCOUNTER,CODE\n{conditions}")),
            (
                "csv/patients.csv",
                "Id,BIRTHDATE,DEATHDATE,MARITAL,RACE,ETHNICITY,GENDER\np,1980-01-10,,M,white,nonhispanic,F\nq,,,,,,\n",
            ),
        ],
    );
}

#[test]
fn earlier_visits_are_those_that_began_before() {
    let home = tempfile::tempdir().unwrap();
    synthea(
        home.path(),
        "a,2020-01-01T10:00:00Z,2020-01-09T10:00:00Z,p,inpatient\n\
         b,2020-01-03T10:00:00Z,2020-01-04T10:00:00Z,p,wellness\n\
         c,2020-02-01T10:00:00Z,2020-02-02T10:00:00Z,p,inpatient\n\
         d,2020-02-01T10:00:00Z,,p,inpatient\n\
         e,2020-02-03T09:00:00Z,2020-02-03T10:00:00Z,p,inpatient\n\
         f,2020-02-03T09:00:00Z,2020-02-03T10:00:00Z,q,inpatient\n",
    );
    json(
        home.path(),
        "synthea csv --min-codes treatment=0 --context earlier_visits,days_since_last_visit --out all",
    );
    let expected = [
        "a: earlier_visits=0",
        // Still in the first one.
        "b: days_since_last_visit=0-1, earlier_visits=1",
        // 23 days after the end of a, which ended after b; two visits that begin at once are not earlier.
        "c: days_since_last_visit=8-30, earlier_visits=2",
        "d: days_since_last_visit=8-30, earlier_visits=2",
        // Less than a day after the end of c.
        "e: days_since_last_visit=0-1, earlier_visits=3-4",
        "f: earlier_visits=0",
    ];
    assert_eq!(contexts(&home.path().join("all")), expected);
    // What a rule drops has taken place, and so has what a limit leaves out.
    let flags = "--min-codes treatment=0 --context earlier_visits,days_since_last_visit";
    json(home.path(), &format!("synthea csv {flags} --classes inpatient --out inpatient"));
    let inpatient: Vec<&str> = expected.into_iter().filter(|line| !line.starts_with('b')).collect();
    assert_eq!(contexts(&home.path().join("inpatient")), inpatient);
    json(home.path(), &format!("synthea csv {flags} --limit 3 --out limited"));
    assert_eq!(contexts(&home.path().join("limited")), expected[..3]);
    // Everything that is known of two of them. Marital status is that of the export.
    json(home.path(), "synthea csv --min-codes treatment=0 --out known");
    let known = contexts(&home.path().join("known"));
    assert_eq!(
        (&*known[0], &*known[5]),
        (
            "a: age=35-44, earlier_visits=0, ethnicity=nonhispanic, race=white, sex=female, visit=inpatient",
            "f: earlier_visits=0, visit=inpatient"
        )
    );
    json(home.path(), "synthea csv --min-codes treatment=0 --context marital_status --out married");
    assert_eq!(contexts(&home.path().join("married"))[0], "a: marital_status=married");
}

/// What is known of a visit from those before it, as the documentation has it.
fn expected(visits: &[(u32, u32, u32)], (patient, start, _): (u32, u32, u32)) -> String {
    let earlier: Vec<&(u32, u32, u32)> =
        visits.iter().filter(|(other, begin, _)| *other == patient && *begin < start).collect();
    let count = match earlier.len() {
        few @ 0..=2 => few.to_string(),
        3..=4 => "3-4".into(),
        5..=9 => "5-9".into(),
        _ => "10+".into(),
    };
    let last = earlier.iter().map(|(_, _, end)| (*end).min(start)).max();
    let days = last.map(|last| match start - last {
        0..=1 => "days_since_last_visit=0-1, ",
        2..=7 => "days_since_last_visit=2-7, ",
        8..=30 => "days_since_last_visit=8-30, ",
        _ => "days_since_last_visit=31-90, ",
    });
    format!("{}earlier_visits={count}", days.unwrap_or_default())
}

/// Context that is made of visits is what it is said to be, and what comes later does not change it.
#[test]
fn nothing_that_comes_later_is_known() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(7);
    for _ in 0..2 {
        let visits: Vec<(u32, u32, u32)> = (0..60)
            .map(|_| {
                let start = random.random_range(0..80);
                (random.random_range(0..5), start, start + random.random_range(0..12))
            })
            .collect();
        let first = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
        let on = |day: u32| (first + chrono::Days::new(day.into())).to_string();
        let rows = |visits: &[(u32, u32, u32)]| -> String {
            let row = |(id, (patient, start, end)): (usize, &(u32, u32, u32))| {
                format!("{id:03},{},{},s{patient},inpatient\n", on(*start), on(*end))
            };
            visits.iter().enumerate().map(row).collect()
        };
        let prepared = |visits: &[(u32, u32, u32)]| {
            let home = tempfile::tempdir().unwrap();
            synthea(home.path(), &rows(visits));
            let flags = "--min-codes treatment=0 --context earlier_visits,days_since_last_visit";
            json(home.path(), &format!("synthea csv {flags} --out data"));
            contexts(&home.path().join("data"))
        };
        let all = prepared(&visits);
        for (id, visit) in visits.iter().enumerate() {
            assert_eq!(all[id], format!("{id:03}: {}", expected(&visits, *visit)));
        }
        // What begins after some day is left out, and what goes on then ends later: nobody knew of it.
        let mut ordered = visits.clone();
        ordered.sort_by_key(|(_, start, _)| *start);
        let past: Vec<(u32, u32, u32)> = ordered
            .iter()
            .filter(|(_, start, _)| *start <= 40)
            .map(|(patient, start, end)| (*patient, *start, if *end > 40 { end + 30 } else { *end }))
            .collect();
        assert_eq!(prepared(&past), prepared(&ordered)[..past.len()]);
    }
}

/// Numbers that are known of encounters, beside codes and words.
fn weights() -> String {
    let mut text = "encounter_id,subject_id,kind,code,numeric_value\n".to_owned();
    for visit in 0..200_u32 {
        let weight = f64::from(visit * 37 % 101) / 2.0;
        text += &format!(
            "v{visit},s{visit},dx,D,\nv{visit},s{visit},rx,T,\nv{visit},s{visit},context,weight,{weight}\n"
        );
        if visit % 3 == 0 {
            text += &format!("v{visit},s{visit},context,sex=female,\n");
        }
    }
    text
}

#[test]
fn numbers_go_into_buckets_as_those_of_labs_do() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("visits.csv", &weights())]);
    let counts = json(home.path(), "events visits.csv --lab-bins 4 --out data");
    assert_eq!((&counts["bucketed_context"], &counts["bucketed_labs"]), (&json!(1), &json!(0)));
    assert_eq!((&counts["context_read"], &counts["context_kept"]), (&json!(267), &json!(267)));
    assert_eq!(
        counts["tables"]["events"],
        json!({"rows": 667, "unreadable": 0, "events": 400, "context": 267})
    );
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    let findings = &dataset.manifest().source.findings;
    // The smallest values that at least k of 4 parts of those of training encounters do not exceed.
    let split = Split::by_hash(0, By::Subject);
    let training: BTreeSet<String> = (dataset.encounters().unwrap().map(Result::unwrap))
        .filter(|encounter| split.part(encounter) == SplitPart::Train)
        .map(|encounter| encounter.id.as_str().to_owned())
        .collect();
    let value = |id: &str| f64::from(id[1..].parse::<u32>().unwrap() * 37 % 101) / 2.0;
    let mut values: Vec<f64> = training.iter().map(|id| value(id)).collect();
    values.sort_by(f64::total_cmp);
    let mut bounds: Vec<f64> = (1..4).map(|part| values[(values.len() * part).div_ceil(4) - 1]).collect();
    bounds.dedup();
    assert_eq!(findings["context_bounds"], json!({"weight": bounds}));
    assert_eq!(findings["lab_bounds"], json!({}));
    for line in contexts(&home.path().join("data")) {
        let (id, codes) = line.split_once(": ").unwrap();
        let bucket = 1 + bounds.iter().filter(|bound| **bound < value(id)).count();
        assert!(codes.ends_with(&format!("weight={bucket}-of-4")), "{line} with {bounds:?}");
    }
    let codes = dataset.vocabulary().context.iter();
    let described: BTreeMap<&str, Option<&str>> =
        codes.map(|code| (code.code.as_str(), code.description.as_deref())).collect();
    assert_eq!(described["weight=1-of-4"], Some(format!("weight, up to {}", bounds[0]).as_str()));
    assert_eq!(described["sex=female"], None);
    // Without buckets, only that it is known.
    json(home.path(), "events visits.csv --lab-bins 0 --context weight --out plain");
    assert_eq!(contexts(&home.path().join("plain"))[0], "v0: weight");
}

#[test]
fn a_source_of_ones_own_has_context_too() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "mine/source.toml",
                "about = \"mine\"\nexample = \"gct prepare sql\"\n\
                 [tables.visits.columns]\nid = \"id\"\nperson = \"id\"\nward = \"text\"\nkg = \"number\"\nbegin = \"time\"\n\
                 [context]\nward = { about = \"Where\" }\nweight = { about = \"kg\" }\nfate = { about = \"Later\", after = true }\n",
            ),
            (
                "mine/encounters.sql",
                "SELECT id AS encounter_id, person AS subject_id, begin AS start FROM visits",
            ),
            ("mine/events.sql", "SELECT id AS encounter_id, 'diagnosis' AS kind, 'D' AS code FROM visits"),
            (
                "mine/context.sql",
                "SELECT id AS encounter_id, 'ward' AS name, ward AS value, NULL AS numeric_value FROM visits \
                 UNION ALL SELECT id, 'weight', NULL, kg FROM visits \
                 UNION ALL SELECT id, 'fate', 'unclear', NULL FROM visits \
                 UNION ALL SELECT id, 'secret', 'x', NULL FROM visits",
            ),
            ("visits.csv", "id,person,ward,kg,begin\n1,a, North ,60,2020-01-01\n2,a,,70,2020-01-03\n"),
        ],
    );
    let counts =
        json(home.path(), "sql visits.csv --source mine --min-codes treatment=0 --lab-bins 0 --out data");
    assert_eq!(
        contexts(&home.path().join("data")),
        ["1: earlier_visits=0, ward=north, weight", "2: days_since_last_visit=2-7, earlier_visits=1, weight"]
    );
    // A name that `source.toml` does not have is counted.
    assert_eq!(counts["context_dropped"], json!({"not_chosen": 2}));
    json(home.path(), "sql visits.csv --source mine --min-codes treatment=0 --context fate --out fate");
    assert_eq!(contexts(&home.path().join("fate")), ["1: fate=unclear", "2: fate=unclear"]);
    for (file, text, said) in [
        (
            "mine/context.sql",
            "SELECT id AS encounter_id, 'x' AS value FROM visits",
            "error: mine/context.sql: its result has no column `name`; it has: encounter_id, value\n",
        ),
        (
            "mine/source.toml",
            "about = \"\"\nexample = \"\"\n[tables]\n[context]\nall = { about = \"x\" }\n",
            "error: mine/source.toml: context cannot be called `all`: use letters, digits and underscores\n",
        ),
    ] {
        write(home.path(), &[(file, text)]);
        let found = prepare(home.path(), "sql visits.csv --source mine --dry-run").assert().code(2);
        let found = String::from_utf8(found.get_output().stderr.clone()).unwrap();
        assert!(found.starts_with(said), "{found}");
    }
}

#[test]
fn context_of_events_can_be_chosen_by_names_of_the_data() {
    let home = tempfile::tempdir().unwrap();
    let rows = "encounter_id,subject_id,kind,code,time\n\
        1,a,dx,I10,2020-01-01\n1,a,rx,pill,2020-01-01\n1,a,context,sex=female,2020-01-01\n1,a,context,ward=north,2020-01-01\n\
        2,a,dx,I10,2020-01-05\n2,a,rx,pill,2020-01-05\n2,a,context,ward=south,2020-01-05\n";
    write(home.path(), &[("visits.csv", rows)]);
    let all = json(home.path(), "events visits.csv --out all");
    assert_eq!(
        contexts(&home.path().join("all")),
        [
            "1: earlier_visits=0, sex=female, ward=north",
            "2: days_since_last_visit=2-7, earlier_visits=1, ward=south"
        ]
    );
    assert_eq!((&all["context_read"], &all["events_read"]), (&json!(6), &json!(4)));
    assert_eq!(
        settings(&home.path().join("all"))["context"],
        json!(["all", "days_since_last_visit", "earlier_visits"])
    );
    let some = json(home.path(), "events visits.csv --context ward --out some");
    assert_eq!(contexts(&home.path().join("some")), ["1: ward=north", "2: ward=south"]);
    assert_eq!(some["context_dropped"], json!({"not_chosen": 1}));
    let none = json(home.path(), "events visits.csv --context none --dry-run");
    assert_eq!((&none["context_dropped"], &none["context_kept"]), (&json!({"not_chosen": 3}), &json!(0)));
    assert_eq!(none["tables"]["events"], json!({"rows": 7, "unreadable": 0, "events": 4, "context": 3}));
}
