use std::collections::BTreeSet;
use std::path::Path;

use datafusion::arrow::util::display::array_value_to_string;
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use gct::dataset::Dataset;
use gct::files::Overwrite;
use gct::job::Job;
use gct::split::{By, Split};
use serde_json::json;

use super::{json, lines, names, prepare, write, write_parquet};

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
fn context_is_a_kind_that_only_some_data_have() {
    let home = tempfile::tempdir().unwrap();
    let rows = "encounter_id,subject_id,kind,code\n\
        1,a,dx,I10\n1,a,rx,aspirin\n1,a,context,sex=female\n1,a,Context,age=65-74\n\
        2,b,dx,I10\n2,b,rx,aspirin\n2,b,context,age=65-74\n";
    let without: String = rows
        .lines()
        .filter(|row| !row.to_lowercase().contains("context"))
        .fold(String::new(), |text, row| text + row + "\n");
    write(home.path(), &[("with.csv", rows), ("without.csv", &without)]);
    let counts = json(home.path(), "events with.csv --out with");
    assert_eq!(counts["vocabulary"], json!({"context": 2, "diagnosis": 1, "treatment": 1, "lab": 0}));
    // What is context is counted apart.
    assert_eq!((&counts["events_kept"], &counts["context_kept"]), (&json!(4), &json!(3)));
    let dataset = Dataset::open(&home.path().join("with")).unwrap();
    let codes: Vec<&str> = dataset.vocabulary().context.iter().map(|code| code.code.as_str()).collect();
    assert_eq!(codes, ["age=65-74", "sex=female"]);
    let context = dataset.encounters().unwrap().map(|encounter| encounter.unwrap().codes.context);
    assert_eq!(context.collect::<Vec<_>>(), [vec![0, 1], vec![0]]);
    // A bound that is asked for holds; one of all kinds is not for context.
    let counts = json(home.path(), "events with.csv --max-codes context=1 --dry-run");
    assert_eq!(counts["dropped"], json!({"too_many_context": 1}));
    assert_eq!(json(home.path(), "events with.csv --max-codes 1 --dry-run")["encounters_kept"], 2);
    let counts = json(home.path(), "events without.csv --out without");
    assert!(!counts.to_string().contains("context"), "{counts}");
    let without = Dataset::open(&home.path().join("without")).unwrap();
    assert!(without.vocabulary().context.is_empty());
    assert_eq!(without.manifest().source.findings["context_bounds"], json!({}));
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

/// Many encounters of several subjects, with codes that repeat.
fn many() -> String {
    let mut text = "encounter_id,subject_id,kind,code,numeric_value\n".to_owned();
    for visit in 0..400_u32 {
        for number in 0..visit % 7 + 2 {
            let code = (visit * 31 + number * number * 17) % 23;
            let kind = ["dx", "rx", "lab"][(number % 3) as usize];
            text +=
                &format!("v{visit},s{},{kind},{kind}{code},{}\n", visit / 3, f64::from(visit * 7 % 13) / 4.0);
        }
    }
    text
}

/// The rows of a Parquet file, as text.
fn rows(path: &Path) -> BTreeSet<String> {
    let file = std::fs::File::open(path).unwrap();
    let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    let mut rows = BTreeSet::new();
    for batch in batches {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
            rows.insert(cells.collect::<Vec<_>>().join(" "));
        }
    }
    rows
}

#[test]
fn the_prior_of_the_engine_is_that_of_the_library() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("visits.csv", &many())]);
    for (flags, split) in [
        ("", Split::by_hash(0, By::Subject)),
        ("--split-seed 3 --split-by encounter", Split::by_hash(3, By::Encounter)),
    ] {
        json(home.path(), &format!("events visits.csv --out data --prior engine.parquet --force {flags}"));
        let dataset = Dataset::open(&home.path().join("data")).unwrap();
        let library = home.path().join("library.parquet");
        let prior = gct::prior::fit(&dataset, &split, &Job::silent()).unwrap();
        prior.write(&library, Overwrite::Replace, dataset.vocabulary()).unwrap();
        let expected = rows(&library);
        assert!(expected.len() > 500, "{}", expected.len());
        assert_eq!(rows(&home.path().join("engine.parquet")), expected);
    }
}

#[test]
fn the_same_bytes_come_with_any_number_of_threads_and_little_memory() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("visits.csv", &many())]);
    let bytes = |flags: &str| {
        json(home.path(), &format!("events visits.csv --out data --force {flags}"));
        std::fs::read(home.path().join("data/encounters/part-00000.parquet")).unwrap()
    };
    let one = bytes("--threads 1");
    assert!(one == bytes("--threads 4") && one == bytes("--threads 2 --memory-limit 30M"));
}

#[test]
fn bounds_of_buckets_are_those_of_the_training_split() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("visits.csv", &many())]);
    for flags in
        ["--min-codes 0", "--min-codes 1 --max-codes lab=1", "--min-count 12 --min-codes 0 --max-codes lab=1"]
    {
        check_bounds(home.path(), flags);
    }
}

/// The bounds are the quantiles of the values of training encounters that are written.
fn check_bounds(home: &Path, flags: &str) {
    json(home, &format!("events visits.csv --out data --force --lab-bins 4 {flags}"));
    let dataset = Dataset::open(&home.join("data")).unwrap();
    let bounds = &dataset.manifest().source.findings["lab_bounds"];
    let split = Split::by_hash(0, By::Subject);
    let training: BTreeSet<String> = (dataset.encounters().unwrap().map(Result::unwrap))
        .filter(|encounter| split.part(encounter) == gct::split::SplitPart::Train)
        .map(|encounter| encounter.id.as_str().to_owned())
        .collect();
    assert!(bounds.as_object().unwrap().len() > 5, "{flags}");
    for (lab, found) in bounds.as_object().unwrap() {
        let mut values: Vec<f64> = (many().lines().map(|line| line.split(',').collect::<Vec<_>>()))
            .filter(|row| row[3] == lab && training.contains(row[0]))
            .map(|row| row[4].parse().unwrap())
            .collect();
        values.sort_by(f64::total_cmp);
        // The smallest value that at least k of 4 parts do not exceed.
        let mut expected: Vec<f64> =
            (1..4).map(|part| values[(values.len() * part).div_ceil(4) - 1]).collect();
        expected.dedup();
        assert_eq!(found, &json!(expected), "{lab} with {flags}");
    }
}

#[test]
fn what_is_dropped_late_is_counted_too() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[
            (
                "in/events.csv",
                "encounter_id,subject_id,kind,code\n1.0,a,dx,I10\n1,a,rx,pill\n1,a,rx,rare\n2,b,dx,I10\n2,b,rx,pill\n\
                 3,c,dx,I10\n9,d,dx,\n",
            ),
            ("in/encounters.csv", "encounter_id,start\n1,2020-01-01\n7,2020-01-01\n"),
            (
                "in/links.csv",
                "encounter_id,cause,effect\n1,I10,pill\n1,I10,pill\n1,I10,rare\n1,I11,pill\n1,I10,scan\n3,I10,pill\n8,I10,pill\n",
            ),
        ],
    );
    let counts = json(home.path(), "events in --dry-run --min-count 2");
    assert_eq!(
        counts["dropped"],
        json!({"no_events": 1, "too_few_diagnosis": 1, "too_few_treatment": 1}),
        "{counts}"
    );
    assert_eq!(counts["events_dropped"], json!({"no_code": 1, "encounter_dropped": 1, "rare_code": 1}));
    assert_eq!(counts["events_kept"], 4);
    assert_eq!(
        counts["links_dropped"],
        json!({"unknown_cause": 1, "unknown_effect": 1, "no_encounter": 1, "encounter_dropped": 1, "end_left_out": 1})
    );
    assert_eq!(
        (&counts["links_read"], &counts["links_kept"], &counts["edges"]),
        (&json!(7), &json!(2), &json!(1))
    );
}

#[test]
fn values_go_to_disk_where_memory_is_small() {
    let home = tempfile::tempdir().unwrap();
    let mut text = "encounter_id,subject_id,kind,code,numeric_value\n".to_owned();
    for row in 0..400_000_u64 {
        let value = row.wrapping_mul(6_364_136_223_846_793_005) as f64 / 1e9;
        text += &format!("v{0},s{0},lab,L{1},{value}\n", row / 20, row % 7);
    }
    write(home.path(), &[("e.csv", &text)]);
    let all = json(home.path(), "events e.csv --dry-run --min-codes 0");
    let small = json(home.path(), "events e.csv --dry-run --min-codes 0 --memory-limit 100M");
    assert_eq!(all, small);
    assert_eq!(all["bucketed_labs"], 7);
    let shown = prepare(home.path(), "events e.csv --dry-run --min-codes 0").assert().success();
    let shown = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    assert!(
        shown.contains("\nTemporary files in ")
            && shown.ends_with(" are deleted.\nNothing else was written.\n"),
        "{shown}"
    );
}

#[test]
fn an_address_is_as_good_as_a_path() {
    let home = tempfile::tempdir().unwrap();
    write(home.path(), &[("tables/events.csv", &many())]);
    let path = json(home.path(), "events tables --dry-run");
    let folder = home.path().canonicalize().unwrap();
    assert_eq!(json(home.path(), &format!("events file://{}/tables --dry-run", folder.display())), path);
    for (address, said) in [
        #[cfg(not(feature = "cloud"))]
        (
            "s3://bucket/tables",
            "error: cannot read s3://bucket/tables: this gct-prepare was built without object stores\n\
             hint: build it with them: cargo install --locked --path crates/prepare --features cloud; or copy the tables into a folder\n",
        ),
        (
            "hdfs://bucket/tables",
            "error: cannot read hdfs://bucket/tables: its kind of address is not known\n\
             hint: known are paths, s3://BUCKET/PATH, gs://BUCKET/PATH and az://CONTAINER/PATH\n",
        ),
        (
            "s3://me:secret@bucket/tables",
            "error: cannot read s3://...: an address has no user, key or port\n\
             hint: say s3://BUCKET/PATH; who is asking is said in the environment\n",
        ),
        (
            "az://bucket/tables?sig=secret",
            "error: cannot read az://bucket/tables...: an address ends with the path\n\
             hint: where `?` or `#` are part of a name, write %3F or %23\n",
        ),
    ] {
        prepare(home.path(), &format!("events {address} --dry-run"))
            .assert()
            .code(2)
            .stdout_eq("")
            .stderr_eq(said);
    }
}

#[tokio::test]
async fn identifiers_are_text_whatever_their_type() {
    let home = tempfile::tempdir().unwrap();
    // Whole numbers, numbers with a point as pandas makes them of whole ones, and text.
    write_parquet(
        &home.path().join("in/events.parquet"),
        "SELECT CAST(v AS BIGINT) AS encounter_id, CAST(5 AS INT) AS subject_id, kind, code, DATE '2020-01-02' AS time \
         FROM (VALUES (11, 'dx', 'I10'), (11, 'rx', 'a'), (12, 'dx', 'I10'), (12, 'rx', 'b')) AS t(v, kind, code)",
    )
    .await;
    write_parquet(
        &home.path().join("in/links.parquet"),
        "SELECT CAST(11 AS DOUBLE) AS encounter_id, 'I10' AS cause, 'a' AS effect",
    )
    .await;
    write_parquet(
        &home.path().join("labels.parquet"),
        "SELECT CAST(12 AS DOUBLE) AS encounter_id, true AS late UNION ALL SELECT NULL, false",
    )
    .await;
    let encounters = "encounter_id,prediction_time\nv1,2020-01-01\n11,2020-01-03\n12,2020-01-03\n";
    write(home.path(), &[("in/encounters.csv", encounters)]);
    let counts = json(home.path(), "events in --labels labels.parquet --out data");
    assert_eq!(
        lines(&home.path().join("data")),
        ["11 of 5: I10 | a | , I10>a, late=?", "12 of 5: I10 | b | , late=true"]
    );
    assert_eq!(counts["labels_unmatched"], 1);

    // And in a source of one's own, which can make numbers of some.
    write(
        home.path(),
        &[
            (
                "mine/source.toml",
                "about = \"mine\"\nexample = \"gct prepare sql\"\n\
                 [tables.visits.columns]\nid = \"integer\"\n[tables.codes.columns]\nvisit = \"text\"\ncode = \"text\"\n",
            ),
            ("mine/encounters.sql", "SELECT id AS encounter_id, id AS subject_id FROM visits"),
            ("mine/events.sql", "SELECT visit AS encounter_id, 'diagnosis' AS kind, code FROM codes"),
            ("tables/visits.csv", "id\n1\n2\n"),
            ("tables/codes.csv", "visit,code\n1,I10\nv2,I10\n"),
        ],
    );
    let counts = json(home.path(), "sql tables --source mine --out mixed --min-codes treatment=0");
    assert_eq!(lines(&home.path().join("mixed")), ["1 of 1: I10 |  | "]);
    assert_eq!(counts["events_dropped"], json!({"no_encounter": 1}));
}

#[test]
fn a_code_that_is_called_as_the_group_of_rare_ones_stays_apart() {
    let home = tempfile::tempdir().unwrap();
    let rows: String = (0..6)
        .map(|visit| {
            let code = if visit < 3 { "(rare)".into() } else { format!("D{visit}") };
            format!("{visit},s,dx,{code}\n{visit},s,rx,M{visit}\n")
        })
        .collect();
    write(home.path(), &[("e.csv", &format!("encounter_id,subject_id,kind,code\n{rows}"))]);
    json(home.path(), "events e.csv --out data --min-count 2 --rare group");
    let lines = lines(&home.path().join("data"));
    assert_eq!(lines[0], "0 of s: (rare) | (rare) | ");
    assert_eq!(lines[5], "5 of s: (rare 2) | (rare) | ");
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    let codes: Vec<_> =
        dataset.vocabulary().diagnosis.iter().map(|code| (code.code.as_str(), code.count)).collect();
    assert_eq!(codes, [("(rare)", 3), ("(rare 2)", 3)]);
}

/// What lies between two steps can hold rows of patients.
#[cfg(target_os = "linux")]
#[test]
fn what_a_kill_left_is_removed_and_output_that_cannot_be_written_is_an_error() {
    let home = tempfile::tempdir().unwrap();
    let temporary = home.path().join("tmp");
    write(home.path(), &[EVENTS]);
    let line = format!("events visits.csv {COLUMNS}");
    for (command, folder) in [("--dry-run", &*temporary), ("--out data", home.path())] {
        std::fs::create_dir_all(folder.join(".gct-partial-killed/spill")).unwrap();
        std::fs::write(folder.join(".gct-partial-killed/spill/rows"), "").unwrap();
        prepare(home.path(), &format!("{line} {command}")).env("TMPDIR", &temporary).assert().success();
        assert!(!folder.join(".gct-partial-killed").exists(), "{command}");
    }
    assert_eq!(names(home.path()), ["data", "tmp", "visits.csv"]);
    assert_eq!(names(&temporary), [""; 0]);
    for line in [format!("{line} --dry-run"), "--help".into(), "events --help".into()] {
        let output = std::process::Command::new(snapbox::cmd::cargo_bin!("gct-prepare"))
            .args(line.split_whitespace())
            .current_dir(home.path())
            .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        assert!(said.starts_with("error: cannot write to standard output: "), "{line}: {said}");
    }
}

#[test]
fn settings_come_from_a_file_from_set_and_from_flags() {
    let home = tempfile::tempdir().unwrap();
    write(
        home.path(),
        &[("visits.csv", &many()), ("own.toml", "min_count = 50\nlab_bins = 0\nmin_codes = 0\n")],
    );
    let shown = |line: &str| -> toml::Table {
        let shown = prepare(home.path(), line).assert().success();
        String::from_utf8(shown.get_output().stdout.clone()).unwrap().parse().unwrap()
    };
    let all =
        shown("events --show-config --config own.toml --set lab_bins=4 --set max_codes.lab=9 --min-count 2");
    let number = |name: &str| all[name].as_integer().unwrap();
    assert_eq!(
        (number("min_count"), number("lab_bins")),
        (2, 4),
        "flags come last, then --set, then the file"
    );
    assert_eq!(all["min_codes"]["treatment"].as_integer(), Some(0));
    assert_eq!((&all["max_codes"]["lab"], &all["max_codes"]["diagnosis"]), (&9.into(), &50.into()));
    // What is shown can be given.
    write(home.path(), &[("shown.toml", &toml::to_string(&all).unwrap())]);
    assert_eq!(shown("events --show-config --config shown.toml"), all);
    let counts = |flags: &str| json(home.path(), &format!("events visits.csv --dry-run {flags}"));
    let flags = "--min-codes 0 --min-count 2 --lab-bins 4 --max-codes lab=9";
    assert_eq!(counts("--config shown.toml"), counts(flags));
    let help = prepare(home.path(), "events --help").assert().success();
    let help = String::from_utf8(help.get_output().stdout.clone()).unwrap();
    assert!(help.starts_with("Any long table with a row per recorded code"), "{help}");
    let said = prepare(home.path(), "events visits.csv --dry-run --set min_cuont=2").assert().code(2);
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    assert!(said.starts_with("error: option `min_cuont`: 2 is not allowed; expected one of "), "{said}");
}

#[test]
fn encounters_of_a_table_can_have_an_end() {
    let home = tempfile::tempdir().unwrap();
    // A subject of the training split, on which buckets are computed.
    let row = |id: u32| format!("{id},a,dx,A,2020-01-0{id}\n{id},a,rx,m,2020-01-0{id}\n");
    let events: String = (1..=4).map(row).collect();
    let encounters =
        "encounter_id,start,end\n1,2020-01-01,2020-01-02\n2,,2020-01-05 12:00:00\n3,,2020-01-02\n";
    write(
        home.path(),
        &[
            ("in/events.csv", &format!("encounter_id,subject_id,kind,code,time\n{events}")),
            ("in/encounters.csv", encounters),
        ],
    );
    let counts = json(home.path(), "events in --out data --context all,length_of_stay --lab-bins 2");
    let dataset = Dataset::open(&home.path().join("data")).unwrap();
    let ends: Vec<_> = dataset.encounters().unwrap().map(|one| one.unwrap().end).collect();
    let end = |day: i64| Some((18_261 + day) * 86_400_000_000);
    // The third one ends before its first event, and the fourth has no row.
    assert_eq!(ends, [end(2), end(5).map(|end| end + 43_200_000_000), None, None]);
    assert_eq!(counts["ends_left_out"], 1);
    assert_eq!(
        super::context::contexts(&home.path().join("data")),
        [
            "1: earlier_visits=0, length_of_stay=1-of-2",
            "2: days_since_last_visit=0-1, earlier_visits=1, length_of_stay=2-of-2",
            "3: days_since_last_visit=0-1, earlier_visits=2",
            "4: days_since_last_visit=0-1, earlier_visits=3-4",
        ]
    );
}

#[test]
fn a_prediction_time_of_labels_is_as_good_as_one_of_encounters() {
    let home = tempfile::tempdir().unwrap();
    let events = "encounter_id,subject_id,kind,code,time\n\
        1,s,dx,A,2020-01-01T10:00:00\n\
        1,s,rx,m,2020-01-01T12:00:00\n\
        1,s,dx,B,2020-01-01T12:00:01\n\
        1,s,rx,n,\n\
        2,t,dx,A,2020-01-05T00:00:00\n\
        2,t,rx,m,\n";
    let [first, second] = ["1,2020-01-01 12:00:00", "2,"];
    write(
        home.path(),
        &[
            ("in/events.csv", events),
            ("with/events.csv", events),
            ("with/encounters.csv", &format!("encounter_id,prediction_time\n{first}\n{second}\n")),
            ("labels.csv", &format!("encounter_id,prediction_time,late\n{first},1\n{second},0\n")),
            ("late.csv", "encounter_id,late\n1,1\n2,0\n"),
            ("other.csv", "encounter_id,late,Prediction_Time\n1,1,2020-01-01 10:00:00\n2,0,\n"),
        ],
    );
    let ours = json(home.path(), "events in --out ours --labels labels.csv");
    let theirs = json(home.path(), "events with --out theirs --labels late.csv");
    assert_eq!(
        lines(&home.path().join("ours")),
        ["1 of s: A | m | , late=true", "2 of t: A | m | , late=false"]
    );
    assert_eq!(lines(&home.path().join("theirs")), lines(&home.path().join("ours")));
    assert_eq!(ours["events_dropped"], json!({"after_prediction": 1, "no_time": 1}));
    assert_eq!(ours["events_dropped"], theirs["events_dropped"]);
    assert_eq!(ours["unbalanced"], json!([]));
    let times = |name: &str| -> Vec<_> {
        let dataset = Dataset::open(&home.path().join(name)).unwrap();
        dataset.encounters().unwrap().map(|one| one.unwrap().prediction_time).collect()
    };
    assert_eq!(times("ours"), [Some(1_577_880_000_000_000), None]);
    assert_eq!(times("theirs"), times("ours"));
    // The earlier of two counts.
    let line = "events with --out both --labels other.csv --min-codes 0";
    let both = json(home.path(), line);
    assert_eq!(lines(&home.path().join("both"))[0], "1 of s: A |  | , late=true");
    assert_eq!(both["events_dropped"], json!({"after_prediction": 2, "no_time": 1}));
    assert_eq!(times("both")[0], Some(1_577_872_800_000_000));
}

#[test]
fn a_source_of_ones_own_can_have_labels_and_rollups_from_its_tables() {
    let home = tempfile::tempdir().unwrap();
    let source = "about = \"\"\nexample = \"\"\n\
        [tables.stays.columns]\nid = \"id\"\ndx = \"text\"\ndays = \"integer?\"\n\
        [options.long]\nabout = \"\"\ntype = \"range\"\ndefault = \"5..9\"\n\
        [rollups.letter]\nexpects = \"letter\"\nseveral = \"first\"\n";
    write(
        home.path(),
        &[
            ("mine/source.toml", source),
            ("mine/encounters.sql", "SELECT id AS encounter_id, id AS subject_id FROM stays"),
            ("mine/events.sql", "SELECT id AS encounter_id, 'diagnosis' AS kind, dx AS code FROM stays"),
            (
                "mine/labels.sql",
                "SELECT id AS encounter_id, 'long' AS label, \
                 days BETWEEN array_element($long, 1) AND array_element($long, 2) AS value, \
                 CASE WHEN days IS NULL THEN 'no_days' END AS note FROM stays",
            ),
            (
                "mine/letter.sql",
                "SELECT code, left(code, 1) AS group_code, 'begins so' AS description, 1 AS distance \
                 FROM source_events WHERE kind = $kind AND ($word IS NULL OR left(code, 1) = $word)",
            ),
            ("stays.csv", "id,dx,days\n1,A1,5\n2,A2,10\n3,B1,\n"),
        ],
    );
    let flags = "--min-codes treatment=0 --out data --force";
    let counts =
        json(home.path(), &format!("sql stays.csv --source mine {flags} --rollup diagnosis=letter:A"));
    assert_eq!(
        lines(&home.path().join("data")),
        ["1 of 1: A |  | , long=true", "2 of 2: A |  | , long=false", "3 of 3: B1 |  | , long=?"]
    );
    assert_eq!(counts["labels_unknown"], json!({"long": {"no_days": 1}}));
    json(home.path(), &format!("sql stays.csv --source mine {flags} --option long=10..10"));
    let found = lines(&home.path().join("data"));
    assert_eq!(found[1], "2 of 2: A2 |  | , long=true");
    // A label cannot be called as another column.
    write(
        home.path(),
        &[(
            "mine/labels.sql",
            "SELECT id AS encounter_id, 'start' AS label, true AS value, NULL AS note FROM stays",
        )],
    );
    let said = prepare(home.path(), "sql stays.csv --source mine --dry-run").assert().code(2);
    let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
    assert!(said.starts_with("error: mine/labels.sql: a label cannot be called `start`\n"), "{said}");
}
