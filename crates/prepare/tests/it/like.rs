//! Records prepared with the codes of another dataset, and a run that is asked about them.

use std::path::Path;

use gct::dataset::Dataset;
use gct::files::Overwrite;
use gct::job::Job;
use gct::record::CodeKind;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::json;

use super::context::contexts;
use super::omop::{COHORT, DRUGS};
use super::{json, lines, mimic, prepare, write};

/// Ten encounters, each with the values 1, 2, 3 and 4 of K, so that the bound of two buckets is 2 on any
/// part of them. The first two have a diagnosis more.
fn old() -> String {
    let mut rows = "encounter_id,subject_id,kind,code,value\n".to_owned();
    for visit in 1..=10 {
        rows += &format!("{visit},s{visit},dx,I10.0,\n{visit},s{visit},rx,aspirin,\n");
        (1..=4).for_each(|value| rows += &format!("{visit},s{visit},lab,K,{value}\n"));
        if visit <= 2 {
            rows += &format!("{visit},s{visit},dx,E11.0,\n");
        }
    }
    rows
}

const NEW: &str = "encounter_id,subject_id,kind,code,value\n\
    11,s11,dx,I10.9,\n11,s11,dx,J45.0,\n11,s11,rx,aspirin,\n11,s11,lab,K,10\n11,s11,lab,Na,140\n\
    12,s12,dx,J45,\n12,s12,rx,aspirin,\n\
    13,s13,dx,E11.9,\n13,s13,rx,aspirin,\n13,s13,lab,K,0.5\n";

const FLAGS: &str = "--lab-bins 2 --min-count 2 --rollup diagnosis=icd3";

/// A folder with the tables and the dataset `old`.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("old.csv", &old()), ("new.csv", NEW)]);
    json(home.path(), &format!("events old.csv --out old {FLAGS}"));
    home
}

/// The codes of a kind with their counts.
fn codes(dataset: &Path, kind: CodeKind) -> Vec<String> {
    let dataset = Dataset::open(dataset).unwrap();
    dataset.vocabulary()[kind].iter().map(|code| format!("{} {}", code.code, code.count)).collect()
}

#[test]
fn codes_buckets_rollups_and_filters_are_those_of_the_other_dataset() {
    let home = home();
    let (old, new) = (home.path().join("old"), home.path().join("new"));
    assert_eq!(lines(&old)[0], "1 of s1: E11 I10 | aspirin | K//1-of-2 K//2-of-2");
    let counts = json(home.path(), "events new.csv --out new --like old");
    // 10 is in the upper bucket of the old values and 0.5 in the lower one; E11 is kept, though it is in one
    // encounter; J45 and Na are unknown, and without J45 encounter 12 has no diagnosis.
    assert_eq!(lines(&new), ["11 of s11: I10 | aspirin | K//2-of-2", "13 of s13: E11 | aspirin | K//1-of-2"]);
    assert_eq!(counts["dropped"], json!({"too_few_diagnosis": 1}));
    assert_eq!((&counts["events_read"], &counts["events_kept"]), (&json!(10), &json!(6)));
    assert_eq!(counts["events_dropped"], json!({"encounter_dropped": 2, "unseen_code": 2}));
    assert_eq!(counts["unseen"], json!({"diagnosis": 1, "treatment": 0, "lab": 1}));
    assert_eq!(counts["unbalanced"], json!([]));
    for (kind, of_old, of_new) in [
        (CodeKind::Diagnosis, ["E11 2", "I10 10"].as_slice(), ["E11 1", "I10 1"].as_slice()),
        (CodeKind::Treatment, &["aspirin 10"], &["aspirin 2"]),
        (CodeKind::Lab, &["K//1-of-2 10", "K//2-of-2 10"], &["K//1-of-2 1", "K//2-of-2 1"]),
    ] {
        assert_eq!(codes(&old, kind), of_old);
        assert_eq!(codes(&new, kind), of_new);
    }
    let source = Dataset::open(&new).unwrap().manifest().source.clone();
    assert_eq!(source.settings["like"], "old");
    assert_eq!(source.settings["lab_bins"], 2);
    assert_eq!(source.settings["min_count"], 2);
    assert_eq!(source.settings["rollup"]["diagnosis"], "icd3");
    assert_eq!(source.findings["lab_bounds"], json!({"K": [2.0]}));
    assert_eq!(source.findings["like"], json!({"source": "events"}));
    // What is made like it is like the first one.
    json(home.path(), "events new.csv --out third --like new");
    assert_eq!(lines(&home.path().join("third")), lines(&new));
    // By itself, it has other codes and other buckets: of the values 0.5 and 10, half are up to 0.5.
    json(home.path(), "events new.csv --out alone --lab-bins 2 --rollup diagnosis=icd3");
    let alone = home.path().join("alone");
    assert_eq!(lines(&alone)[0], "11 of s11: I10 J45 | aspirin | K//2-of-2 Na//1-of-2");
    let source = Dataset::open(&alone).unwrap().manifest().source.clone();
    assert_eq!(source.findings["lab_bounds"], json!({"K": [0.5], "Na": [140.0]}));
}

#[test]
fn a_code_that_no_encounter_had_is_as_rare_as_any() {
    let home = home();
    let mut rows = old();
    rows += "1,s1,dx,C50,\n2,s2,dx,C61,\n";
    write(home.path(), &[("old.csv", &rows)]);
    json(home.path(), &format!("events old.csv --out old --force {FLAGS} --rare group"));
    let counts = json(home.path(), "events new.csv --out new --like old");
    assert_eq!(lines(&home.path().join("new"))[1], "12 of s12: (rare) | aspirin | ");
    assert_eq!((&counts["rare"]["diagnosis"], &counts["unseen"]["diagnosis"]), (&json!(1), &json!(0)));
    assert_eq!(counts["events_dropped"], json!({"unseen_code": 1}), "that of Na: no lab was rare");
}

#[test]
fn what_contradicts_the_other_dataset_is_refused() {
    let home = home();
    let refused = |line: &str| {
        let assert = prepare(home.path(), line).assert().code(2).stdout_eq("");
        let said = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
        assert!(said.contains("\nhint: ") && !home.path().join("x").exists(), "{said}");
        said.lines().next().unwrap().to_owned()
    };
    let with = |flags: &str| refused(&format!("events new.csv --out x --like old {flags}"));
    let expected = "error: option `lab_bins`: 3 is not allowed; expected 2, as old has it: --like decides";
    assert_eq!(with("--lab-bins 3"), expected);
    assert!(with("--rollup treatment=atc3").starts_with("error: option `rollup`: "));
    assert!(with("--min-codes 0").starts_with("error: option `min_codes`: "));
    assert!(with("--set min_count=1").starts_with("error: option `min_count`: 1 is not allowed; expected 2"));
    prepare(home.path(), "events new.csv --dry-run --like old --lab-bins 2 --min-cell 5").assert().success();
    // Other data, and no data.
    let settings = gct::ingest::synthetic::Settings { encounters: 20, ..Default::default() };
    gct::synth::run(&settings, &home.path().join("synthetic"), Overwrite::Refuse, &Job::silent()).unwrap();
    let problem = refused("events new.csv --out x --like synthetic");
    assert!(problem.contains("expected a dataset that `gct prepare` made"), "{problem}");
    assert!(refused("events new.csv --out x --like nowhere").contains("nowhere"));
    write(home.path(), &[("other.csv", "encounter_id,subject_id,kind,code\n1,a,dx,Z99\n1,a,rx,rest\n")]);
    let problem = refused("events other.csv --out x --like old");
    assert!(problem.ends_with("expected a dataset with codes of these records: it has none"), "{problem}");
}

#[test]
fn context_is_that_of_the_other_dataset() {
    let home = tempfile::tempdir().unwrap();
    let mut rows = old();
    for visit in 1..=10 {
        rows += &format!("{visit},s{visit},context,sex=female,\n{visit},s{visit},context,smoker=yes,\n");
        (1..=4).for_each(|value| rows += &format!("{visit},s{visit},context,weight,{value}\n"));
    }
    let new = "encounter_id,subject_id,kind,code,value\n11,s11,dx,I10,\n11,s11,rx,aspirin,\n\
        11,s11,context,weight,10\n11,s11,context,sex=male,\n11,s11,context,smoker=yes,\n\
        12,s12,dx,I10,\n12,s12,rx,aspirin,\n12,s12,context,weight,0.5\n12,s12,context,sex=female,\n";
    let without = "encounter_id,subject_id,kind,code\n13,s13,dx,I10\n13,s13,rx,aspirin\n";
    write(home.path(), &[("old.csv", &rows), ("new.csv", new), ("without.csv", without)]);
    json(home.path(), &format!("events old.csv --out old {FLAGS} --context sex,weight"));
    let counts = json(home.path(), "events new.csv --out new --like old");
    // The bound of the old weights is 2; that someone smokes was not asked for, and sex=male is new.
    let new = home.path().join("new");
    assert_eq!(contexts(&new), ["11: weight=2-of-2", "12: sex=female, weight=1-of-2"]);
    assert_eq!((&counts["context_read"], &counts["context_kept"]), (&json!(5), &json!(3)));
    assert_eq!(counts["context_dropped"], json!({"not_chosen": 1, "unseen_code": 1}));
    assert_eq!(counts["unseen"]["context"], 1);
    assert_eq!(counts["unbalanced"], json!([]));
    assert_eq!(codes(&new, CodeKind::Context), ["sex=female 1", "weight=1-of-2 1", "weight=2-of-2 1"]);
    let source = Dataset::open(&new).unwrap().manifest().source.clone();
    assert_eq!(source.settings["context"], json!(["sex", "weight"]));
    assert_eq!(source.findings["context_bounds"], json!({"weight": [2.0]}));
    // Records without any are no error, and a choice of their own is.
    json(home.path(), "events without.csv --out without --like old");
    assert_eq!(contexts(&home.path().join("without")), ["13: "]);
    assert_eq!(codes(&home.path().join("without"), CodeKind::Context)[0], "sex=female 0");
    let refused = prepare(home.path(), "events new.csv --out x --like old --context sex").assert().code(2);
    let said = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(
        said.starts_with("error: option `context`: [\"sex\"] is not allowed; expected [\"sex\", "),
        "{said}"
    );
}

#[test]
fn labels_are_ones_own() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &COHORT);
    let line = "omop cdm --min-codes treatment=0 --out old --cohort cohorts.csv:1 --within 1..30";
    json(home.path(), line);
    std::fs::rename(home.path().join("cohorts.csv"), home.path().join("others.csv")).unwrap();
    let options = |flags: &str| {
        let counts = json(home.path(), &format!("omop cdm --out new --force --like old {flags}"));
        let mut labels: Vec<String> = counts["labels_known"].as_object().unwrap().keys().cloned().collect();
        labels.sort_unstable();
        let dataset = Dataset::open(&home.path().join("new")).unwrap();
        let within = dataset.manifest().source.settings["within"].clone();
        (labels.join(" "), counts["options"]["cohort"].clone(), within)
    };
    // Where the cohort is, is not taken over; the days at risk are.
    let known = "mortality readmission".to_owned();
    assert_eq!(options(""), (known.clone(), json!(null), json!(null)));
    let with = |cohort: &str, days: &str| (format!("{cohort} {known}"), json!("others.csv:2"), json!(days));
    assert_eq!(options("--cohort others.csv:2"), with("cohort_2", "1..30"));
    assert_eq!(options("--cohort others.csv:2 --within 0..9"), with("cohort_2", "0..9"));
    write(home.path(), &[("labels.csv", "encounter_id,late\n1,1\n2,0\n")]);
    assert_eq!(options("--labels labels.csv").0, "late mortality readmission");
    // What is no label is decided, and days at risk of nothing are none.
    let refused = |flags: &str| {
        let refused = prepare(home.path(), &format!("omop cdm --out x --like old {flags}")).assert().code(2);
        String::from_utf8(refused.get_output().stderr.clone()).unwrap()
    };
    let said = refused("--visits inpatient");
    assert!(
        said.starts_with("error: option `visits`: 9201,262 is not allowed; expected none, as old"),
        "{said}"
    );
    let said = refused("--within 1..30");
    assert!(said.starts_with("error: option `within` does nothing without `onset` or `cohort`\n"), "{said}");
    write(home.path(), &mimic::TABLES);
    json(home.path(), "mimic4 iv --out stays --long-stay-days 3");
    let counts = json(home.path(), "mimic4 iv --dry-run --like stays --readmission unplanned");
    let days = &counts["options"]["long_stay_days"];
    assert_eq!((&counts["options"]["readmission"], days), (&json!("unplanned"), &json!(3.0)));
}

#[test]
fn an_ancestor_that_the_other_dataset_does_not_know_is_none() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &DRUGS);
    let rollup = "--rollup treatment=ancestors:Ingredient";
    json(home.path(), &format!("omop cdm --out kept {rollup}"));
    json(home.path(), &format!("omop cdm --out grouped {rollup} --rollup-unmapped group"));
    // A drug of the second visit that nobody had, although its ingredient is known; and the mapping is taken
    // from the dataset, so that the table of ancestors can be gone.
    let [.., (drugs, old), (concepts, known), (ancestors, _)] = DRUGS;
    let new = format!("{old}8,2,198440,2020-01-02,n5,0\n");
    let known = format!("{known}198440,acetaminophen 500 MG,RxNorm,Clinical Drug,198440\n");
    write(home.path(), &[(drugs, &new), (concepts, &known)]);
    std::fs::remove_file(home.path().join(ancestors)).unwrap();
    for (like, second, unseen) in [("kept", "999 RxNorm:161", 1), ("grouped", "(unmapped) RxNorm:161", 0)] {
        let counts = json(home.path(), &format!("omop cdm --out new --force --like {like}"));
        let found = lines(&home.path().join("new"));
        let treatments = |line: &String| line.split('|').nth(1).unwrap().trim().to_owned();
        assert_eq!(found.iter().map(treatments).collect::<Vec<_>>(), ["RxNorm:161", second]);
        assert_eq!(counts["unseen"]["treatment"], unseen, "{like}");
        assert_eq!(counts["events_dropped"]["unseen_code"].as_u64().unwrap_or(0), unseen, "{like}");
        let rollup = &counts["rollups"][0];
        assert_eq!((&rollup["codes_mapped"], &rollup["codes_unmapped"]), (&json!(3), &json!(2)), "{like}");
        assert_eq!((&rollup["groups"], &rollup["events_unmapped"]), (&json!(1), &json!(2)), "{like}");
        assert_eq!(counts["unbalanced"], json!([]), "{like}");
    }
}

/// Events of 60 encounters, at random: codes that are frequent and rare, in and out of groups, labs with
/// values and without.
fn random_events(seed: u64) -> String {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows = "encounter_id,subject_id,kind,code,value\n".to_owned();
    for visit in 0..60 {
        let mut add = |kind: &str, code: String, value: String| {
            rows += &format!("{visit},s{},{kind},{code},{value}\n", visit / 2);
        };
        for _ in 0..random.random_range(0..4) {
            add("dx", format!("D{}", random.random_range(0..8) * random.random_range(0..8)), String::new());
        }
        for _ in 0..random.random_range(1..3) {
            add("rx", format!("R{}", random.random_range(0..6) * random.random_range(0..6)), String::new());
        }
        for _ in 0..random.random_range(0..5) {
            let value = random.random_range(-50..50) as f64 / 4.0;
            let value = if random.random_bool(0.8) { value.to_string() } else { String::new() };
            add("lab", format!("L{}", random.random_range(0..3)), value);
        }
        if random.random_bool(0.5) {
            add("context", format!("sex={}", random.random_range(0..2)), String::new());
            add("context", "weight".into(), random.random_range(50..90).to_string());
        }
    }
    rows
}

#[test]
fn a_dataset_is_like_itself() {
    let groups = "code,group\nD0,zero\nD2,even\nD4,even\nD6,even\nD12,even\n";
    for (seed, flags) in [
        "",
        "--min-count 3",
        "--min-count 3 --rare group",
        "--lab-bins 3 --min-count 4 --rare group --min-codes lab=1",
        "--rollup diagnosis=groups.csv --rollup-unmapped group --min-count 2",
        "--rollup diagnosis=groups.csv --rollup-unmapped drop",
        "--rollup diagnosis=groups.csv --lab-bins 0",
    ]
    .into_iter()
    .enumerate()
    {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), &[("e.csv", &random_events(seed as u64)), ("groups.csv", groups)]);
        let first = json(home.path(), &format!("events e.csv --out first {flags}"));
        // What the dataset knows of groups is enough.
        std::fs::remove_file(home.path().join("groups.csv")).unwrap();
        let second = json(home.path(), "events e.csv --out second --like first");
        let [one, two] = ["first", "second"].map(|name| home.path().join(name));
        assert_eq!(lines(&one), lines(&two), "{flags}");
        assert_eq!(contexts(&one), contexts(&two), "{flags}");
        for kind in CodeKind::ALL {
            assert_eq!(codes(&one, kind), codes(&two, kind), "{flags}");
        }
        assert_eq!(first["encounters_kept"], second["encounters_kept"]);
        assert_eq!(first["events_kept"], second["events_kept"], "{flags}");
        assert_eq!(second["unbalanced"], json!([]));
        let findings = |path: &Path| Dataset::open(path).unwrap().manifest().source.findings.clone();
        for name in ["lab_bounds", "context_bounds", "rollups"] {
            assert_eq!(findings(&one)[name], findings(&two)[name], "{flags}");
        }
    }
}
