//! Order, parts and ends of the encounters in a prepared dataset.

use std::path::Path;

use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use gct::dataset::{Dataset, part_of};
use gct::job::Job;
use gct::record::Encounter;
use gct_prepare::{Request, Source};

use super::synthea::TABLES;
use super::{json, names, write};

/// Events of visits of these subjects, on days that go backwards.
fn events(subjects: &[&str]) -> String {
    let mut text = "encounter_id,subject_id,kind,code,time\n".to_owned();
    for (visit, subject) in subjects.iter().enumerate() {
        for (kind, codes) in [("dx", 5), ("rx", 3)] {
            let day = 28 - visit % 28;
            text += &format!("v{visit},{subject},{kind},{kind}{},2020-01-{day:02}\n", visit % codes);
        }
    }
    text
}

/// Prepares a table of events in parts of about so many encounters, with the prior beside it.
fn prepare(home: &Path, out: &str, per_part: u64) -> Dataset {
    let source = Source::builtin().into_iter().find(|known| known.name == "events").unwrap();
    let input = home.join("events.csv").display().to_string();
    let mut request = Request::new(source, &input, None, Vec::new()).unwrap();
    request.limits.encounters_per_part = Some(per_part);
    request.prior = Some(home.join(format!("{out}.parquet")));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let out = home.join(out);
    runtime.block_on(gct_prepare::prepare(&request, Some(&out), &Job::silent())).unwrap();
    let dataset = Dataset::open(&out).unwrap();
    dataset.check_hashes(&Job::silent()).unwrap();
    dataset.check_rows(&Job::silent()).unwrap();
    dataset
}

fn read(dataset: &Dataset) -> Vec<Encounter> {
    dataset.encounters().unwrap().map(Result::unwrap).collect()
}

#[test]
fn encounters_are_sorted_by_subject_and_start() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("events.csv", &events(&["s10", "s9", "s10", "s9", "t", "s10"]))]);
    let ids: Vec<String> = (read(&prepare(home.path(), "data", 100)).iter())
        .map(|encounter| format!("{} {}", encounter.subject.as_str(), encounter.id.as_str()))
        .collect();
    // Later visits are on earlier days.
    assert_eq!(ids, ["t v4", "s9 v3", "s9 v1", "s10 v5", "s10 v2", "s10 v0"]);
    assert_eq!(names(&home.path().join("data/encounters")), ["part-00000.parquet"]);
}

#[test]
fn several_parts_hold_what_one_does_and_one_may_be_empty() {
    let home = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..300).map(|visit| format!("s{}", visit * 7 % 90)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (subjects, per_part) in [(&many[..], 70), (&["a", "a", "a", "b", "a"][..], 1)] {
        let home = home.path().join(per_part.to_string());
        write(&home, &[("events.csv", &events(subjects))]);
        let (one, several) = (prepare(&home, "one", 1000), prepare(&home, "several", per_part));
        let parts = several.manifest().files.encounters.len();
        assert_eq!((one.manifest().files.encounters.len(), parts), (1, 5));
        // The order of one part, cut by the hash of the subject.
        let mut expected = read(&one);
        expected.sort_by_key(|encounter| part_of(encounter.subject.as_str(), parts));
        assert_eq!(read(&several), expected);
        assert_ne!(one.manifest().identity(), several.manifest().identity());
        assert_eq!(one.manifest().codes, several.manifest().codes);
        let prior = |name: &str| std::fs::read(home.join(name)).unwrap();
        assert!(prior("one.parquet") == prior("several.parquet"));
    }
}

#[test]
fn ends_are_written_where_the_source_knows_them_and_are_not_before_the_start() {
    let home = tempfile::tempdir().unwrap();
    let mut tables = TABLES;
    let visits = TABLES[0].1.replace("2020-05-01T11:00:00Z", "2020-05-01T09:00:00Z");
    tables[0].1 = &visits;
    write(home.path(), &tables);
    let counts = json(home.path(), "synthea csv --out data");
    assert_eq!((&counts["encounters_kept"], &counts["ends_left_out"]), (&3.into(), &1.into()));
    let encounters = read(&Dataset::open(&home.path().join("data")).unwrap());
    let hours: Vec<Option<i64>> = (encounters.iter())
        .map(|encounter| Some((encounter.end? - encounter.start?) / 3_600_000_000))
        .collect();
    assert_eq!(hours, [Some(48), Some(24), None]);
    let events = home.path().join("events");
    write(&events, &[("events.csv", &self::events(&["a"]))]);
    let parquet = prepare(&events, "data", 9);
    let file = std::fs::File::open(parquet.path().join("encounters/part-00000.parquet")).unwrap();
    let schema = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().schema().clone();
    assert!(schema.field_with_name("start").is_ok() && schema.field_with_name("end").is_err());
}
