//! No row is lost in silence: what is read is kept, dropped by a rule that has a name, or counted as
//! unreadable, in every source. Tables are made at random, with everything in them that tables should not
//! have. `GCT_CONSERVATION_ROUNDS=500` looks longer.

/// The tables that are made.
mod shapes;

use std::collections::BTreeMap;
use std::path::Path;

use gct::job::Job;
use gct::overrides::Layer;
use gct_prepare::{Request, Source};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};

use super::write;
use shapes::Holds::{self, Integer, Key, Number, Of, Time, Word};
use shapes::{SOURCES, Shape};

fn pick<'a>(words: &[&'a str], random: &mut Xoshiro256PlusPlus) -> &'a str {
    words[random.random_range(0..words.len())]
}

fn value(holds: Holds, row: u32, random: &mut Xoshiro256PlusPlus) -> String {
    let is_odd = random.random_bool(0.05);
    match holds {
        Key => format!("{row}{}", if is_odd { ".0" } else { "" }),
        Of(_) if is_odd => pick(&["", "99999", " 3 ", "7.0"], random).into(),
        Of(all) => random.random_range(0..all).to_string(),
        Word(words) => pick(words, random).into(),
        Time if is_odd => pick(
            &["", "soon", "99999-01-01", "2020-01-02T23:30:00-05:00", "9999-12-31", "0001-01-01"],
            random,
        )
        .into(),
        Time => format!("2020-01-{:02}", random.random_range(1..29)),
        Number if is_odd => pick(&["", "inf", "-inf", "NaN", "1e308", "high"], random).into(),
        Number => format!("{}", f64::from(random.random_range(0..40)) / 4.0),
        Integer if is_odd => {
            pick(&["", "-9223372036854775808", "9223372036854775807", "1.0", "late"], random).into()
        }
        Integer => random.random_range(-100..4000).to_string(),
    }
}

/// Writes random tables; how many rows each has.
fn tables(folder: &Path, shapes: &[Shape], random: &mut Xoshiro256PlusPlus) -> BTreeMap<String, u64> {
    let mut rows = BTreeMap::new();
    for (file, most, columns) in shapes {
        let count = random.random_range(1..=*most);
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let mut text = names.join(",") + "\n";
        for row in 0..count {
            let cells: Vec<String> = columns.iter().map(|(_, holds)| value(*holds, row, random)).collect();
            text += &(cells.join(",") + "\n");
        }
        write(folder, &[(file, &text)]);
        rows.insert(file.trim_end_matches(".csv").to_owned(), u64::from(count));
    }
    rows
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a count"))
}

/// A count, and the sum of the counts of what it is made of.
fn sums(counts: &Value) -> Vec<(String, u64, u64)> {
    let all = |counts: &Value| counts.as_object().unwrap().values().map(number).sum::<u64>();
    let mut sums = vec![];
    for (what, dropped) in
        [("encounters", "dropped"), ("events", "events_dropped"), ("links", "links_dropped")]
    {
        let kept = number(&counts[format!("{what}_kept")]) + all(&counts[dropped]);
        sums.push((what.to_owned(), number(&counts[format!("{what}_read")]), kept));
    }
    if let Some(read) = counts.get("context_read") {
        let kept = number(&counts["context_kept"]) + all(&counts["context_dropped"]);
        sums.push(("context".into(), number(read), kept));
    }
    let mut from_tables = number(&counts["events_derived"]);
    for (name, table) in counts["tables"].as_object().unwrap() {
        for part in ["events", "encounters"] {
            if let Some(part) = table.get(part) {
                let context = table.get("context").map_or(0, number);
                sums.push((
                    name.clone(),
                    number(&table["rows"]),
                    number(&table["unreadable"]) + number(part) + context,
                ));
            }
        }
        from_tables += table.get("events").map_or(0, number);
    }
    sums.push(("events of tables".into(), number(&counts["events_read"]), from_tables));
    sums
}

/// A file that puts some of the codes into groups at random.
fn mapping(random: &mut Xoshiro256PlusPlus) -> tempfile::NamedTempFile {
    let codes = ["B", "C", "1", "ä", "ICD10CM/A", "LOINC/2", "9999"];
    let rows: String = codes.map(|code| format!("{code},{}\n", pick(&["A", "g"], random))).concat();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("code,group\n{rows}")).unwrap();
    file
}

/// Rolls some kinds up, by a rule that applies to few of the codes or by a mapping.
fn roll_up(given: &mut toml::Table, map: &str, random: &mut Xoshiro256PlusPlus) {
    let mut rollup = toml::Table::new();
    for kind in ["diagnosis", "treatment", "lab"] {
        let rule = pick(&["", "icd3", "icd_chapter", "atc2", map, map], random);
        if !rule.is_empty() && (kind != "lab" || given["lab_bins"].as_integer() == Some(0)) {
            rollup.insert(kind.into(), rule.into());
        }
    }
    given.insert("rollup".into(), rollup.into());
    given.insert("rollup_unmapped".into(), pick(&["keep", "drop", "group"], random).into());
}

/// Prepares what is in a folder, without writing anything. None if nothing is left, which says nothing about
/// counts.
fn counts(source: &str, folder: &Path, options: &str, random: &mut Xoshiro256PlusPlus) -> Option<Value> {
    let source = Source::builtin().into_iter().find(|known| known.name == source).unwrap();
    let pairs = options.split(',').filter_map(|option| option.split_once('='));
    let mut given: toml::Table = pairs.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let rules = given.remove("rules").and_then(|rules| rules.as_str().map(str::to_owned));
    given.insert("min_count".into(), random.random_range(1..4i64).into());
    given.insert("min_codes".into(), pick(&["0", "1", "diagnosis=2,lab=1"], random).into());
    given.insert("max_codes".into(), pick(&["3", "50", "lab=2"], random).into());
    given.insert("lab_bins".into(), pick(&["0", "3"], random).parse::<i64>().unwrap().into());
    given.insert("context".into(), pick(&["all", "all", "none"], random).into());
    let map = mapping(random);
    roll_up(&mut given, &map.path().display().to_string(), random);
    let given = vec![Layer { name: "given".into(), settings: given }];
    let input = folder.display().to_string();
    let request = Request::new(source, &input, rules.as_deref(), given).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    match runtime.block_on(gct_prepare::prepare(&request, None, &Job::silent())) {
        Ok(summary) => Some(summary.json(0)),
        Err(gct_prepare::Error::NothingKept { .. } | gct_prepare::Error::NoOnset { .. }) => None,
        Err(error) => panic!("{} with {options}: {error}", request.source.name),
    }
}

fn rounds() -> u64 {
    std::env::var("GCT_CONSERVATION_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2)
}

#[test]
fn every_row_of_a_table_is_kept_or_dropped_by_a_rule_or_unreadable() {
    let mut compared = 0;
    for seed in 0..rounds() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for (source, options, shapes) in SOURCES {
            for options in *options {
                let home = tempfile::tempdir().unwrap();
                let written = tables(home.path(), shapes, &mut random);
                let Some(counts) = counts(source, home.path(), options, &mut random) else { continue };
                let said = format!("{source} with `{options}`, seed {seed}: {counts:#}");
                for (what, read, sum) in sums(&counts) {
                    assert_eq!(read, sum, "{what} of {said}");
                }
                assert_eq!(counts["unbalanced"], json!([]), "{said}");
                for (table, counted) in counts["tables"].as_object().unwrap() {
                    if let Some(rows) = written.get(table) {
                        assert_eq!(number(&counted["rows"]), *rows, "{table} of {said}");
                    }
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 10, "{compared}");
}

/// Sources whose encounters have the numbers of their rows, and whose events have times.
const TIMED: [&str; 5] = ["claims", "events", "mimic4", "omop", "synthea"];

/// Labels of encounters that have the numbers of their rows, each with a moment of prediction or none.
fn timed_labels(random: &mut Xoshiro256PlusPlus) -> String {
    let row = |number: u32| {
        let time = match random.random_range(0..4) {
            0 => String::new(),
            _ => format!("2020-01-{:02} 12:00:00", random.random_range(1..29)),
        };
        format!("{number},{},{time}\n", pick(&["0", "1", ""], random))
    };
    let rows: String = (0..40).map(row).collect();
    format!("encounter_id,late,prediction_time\n{rows}")
}

#[test]
fn no_event_is_lost_at_the_time_of_a_label() {
    let mut cut = BTreeMap::new();
    for seed in 0..rounds() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        for (source, options, shapes) in SOURCES.iter().filter(|(source, ..)| TIMED.contains(source)) {
            let home = tempfile::tempdir().unwrap();
            tables(home.path(), shapes, &mut random);
            let other = tempfile::tempdir().unwrap();
            write(other.path(), &[("labels.csv", &timed_labels(&mut random))]);
            let with = format!("labels={}/labels.csv,{}", other.path().display(), options[0]);
            let Some(counts) = counts(source, home.path(), &with, &mut random) else { continue };
            for (what, read, sum) in sums(&counts) {
                assert_eq!(read, sum, "{what} of {source}, seed {seed}: {counts:#}");
            }
            assert_eq!(counts["unbalanced"], json!([]), "{source}, seed {seed}");
            let after = counts["events_dropped"]["after_prediction"].as_u64().unwrap_or(0);
            *cut.entry(*source).or_insert(0) += after;
        }
    }
    assert!(cut.len() == TIMED.len() && cut.values().all(|count| *count > 0), "{cut:?}");
}

/// Resources of FHIR at random: versions of the same, references to nothing, things that are not what they
/// should be.
fn resources(random: &mut Xoshiro256PlusPlus) -> (String, BTreeMap<&'static str, u64>) {
    let mut lines = String::new();
    let mut written = BTreeMap::new();
    let reference = |kind: &str, all: u32, random: &mut Xoshiro256PlusPlus| {
        let id = format!("{kind}/{}", random.random_range(0..all));
        json!({"reference": id})
    };
    let code = |random: &mut Xoshiro256PlusPlus| json!({"coding": [{"system": "http://snomed.info/sct", "code": pick(&["1", "2", "3"], random)}]});
    for _ in 0..random.random_range(50..150) {
        let kind = pick(
            &["Encounter", "Condition", "Procedure", "MedicationRequest", "Observation", "Patient", "Claim"],
            random,
        );
        let id = random.random_range(0..25).to_string();
        let mut resource = json!({
            "resourceType": kind, "id": id,
            "meta": {"lastUpdated": format!("2020-01-{:02}T00:00:00Z", random.random_range(1..29))},
            "status": pick(&["finished", "completed", "entered-in-error", "cancelled", "not-done"], random),
        });
        match kind {
            "Encounter" => {
                // One patient per encounter, whatever the version.
                resource["subject"] = json!({"reference": format!("Patient/{}", id.len())});
                resource["class"] = json!({"code": pick(&["IMP", "AMB"], random)});
                resource["period"] = json!({"start": "2020-01-01", "end": pick(&["2020-01-03", "2020-02-01", "soon"], random)});
                resource["diagnosis"] = json!([{"condition": reference("Condition", 30, random)}]);
            }
            "Patient" => {
                resource["gender"] = json!(pick(&["female", "unknown"], random));
                resource["birthDate"] = json!(pick(&["1950", "1960-07-01", "soon"], random));
            }
            "Claim" => {}
            _ => {
                resource["encounter"] = reference("Encounter", 30, random);
                resource["code"] = code(random);
                resource["medicationCodeableConcept"] = code(random);
                resource["reasonReference"] = json!([reference("Condition", 30, random)]);
                let field = pick(&["recordedDate", "authoredOn", "issued", "performedDateTime"], random);
                resource[field] =
                    json!(pick(&["2020-01-10", "2020", "soon", "2020-01-20T10:00:00Z"], random));
                if kind == "Observation" {
                    resource["valueQuantity"] = json!({"value": random.random_range(0..9)});
                }
            }
        }
        lines += &format!("{resource}\n");
        *written.entry(WANTED.iter().find(|known| **known == kind).unwrap_or(&"other")).or_default() += 1;
    }
    (lines, written.into_iter().map(|(kind, count)| (*kind, count)).collect())
}

const WANTED: [&str; 6] =
    ["Encounter", "Condition", "Procedure", "MedicationRequest", "Observation", "Patient"];

#[test]
fn every_resource_is_kept_or_dropped_by_a_rule_or_left_out() {
    let (mut compared, mut cut) = (0, 0);
    // Of many, no encounter is kept.
    for seed in 0..rounds() * 10 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let home = tempfile::tempdir().unwrap();
        let (lines, written) = resources(&mut random);
        write(home.path(), &[("all.ndjson", &lines), ("empty.ndjson", ""), ("blank.json", "\n \n")]);
        let other = tempfile::tempdir().unwrap();
        write(other.path(), &[("labels.csv", &timed_labels(&mut random))]);
        let timed = format!("labels={}/labels.csv", other.path().display());
        let options = if seed % 2 == 1 { &*timed } else { "" };
        let Some(counts) = counts("fhir", home.path(), options, &mut random) else { continue };
        cut += counts["events_dropped"]["after_prediction"].as_u64().unwrap_or(0);
        let said = format!("seed {seed}: {counts:#}");
        for (what, read, sum) in sums(&counts) {
            assert_eq!(read, sum, "{what} of {said}");
        }
        assert_eq!(counts["files_empty"], 2);
        for (kind, count) in &written {
            assert_eq!(number(&counts["resources"][*kind]["read"]), *count, "{kind} of {said}");
        }
        for (kind, table) in
            [("Encounter", "encounter"), ("Condition", "condition"), ("Procedure", "procedure")]
        {
            let resource = &counts["resources"][kind];
            let taken = number(&resource["read"]) - number(&resource["left_out"]);
            assert_eq!(number(&counts["tables"][table]["rows"]), taken, "{kind} of {said}");
        }
        compared += 1;
    }
    assert!(compared > 0 && cut > 0, "{compared}, {cut}");
}

#[test]
fn a_source_that_loses_rows_is_told() {
    let home = tempfile::tempdir().unwrap();
    let source = "about = \"\"\nexample = \"\"\n[tables.visits.columns]\nid = \"id\"\n[tables.codes.columns]\nvisit = \"id\"\nkind = \"text\"\ncode = \"text\"\n";
    write(
        home.path(),
        &[
            ("mine/source.toml", source),
            (
                "mine/encounters.sql",
                "SELECT id AS encounter_id, id AS subject_id, 'visits' AS from_table FROM visits",
            ),
            (
                "mine/events.sql",
                "SELECT visit AS encounter_id, kind, code, 'codes' AS from_table FROM codes JOIN visits ON visit = id",
            ),
            ("in/visits.csv", "id\n1\n"),
            ("in/codes.csv", "visit,kind,code\n1,diagnosis,a\n1,treatment,b\n2,treatment,c\n"),
        ],
    );
    let counts = super::json(home.path(), "sql in --source mine --dry-run");
    assert_eq!(counts["unbalanced"], json!(["codes"]));
    assert_eq!(counts["tables"]["codes"], json!({"rows": 3, "unreadable": 0, "events": 2}));
    let said = super::prepare(home.path(), "sql in --source mine --dry-run --strict").assert().code(2);
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    assert!(
        said.starts_with("error: the source loses rows of `codes`, or counts some twice (refused"),
        "{said}"
    );
}
