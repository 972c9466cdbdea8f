//! The dataset folder: what goes in comes out, and what is not as it should be is refused by file and row.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StringArray, StructArray, UInt32Array};
use arrow_schema::DataType;
use gct::dataset::{Dataset, Manifest, Source, Writer, part_of};
use gct::files::Overwrite;
use gct::job::Job;
use gct::record::{CodeKind, EncounterId};
use gct::run::Settings;
use gct::split::{By, Split};
use gct::train::{self, Execution};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use proptest::prelude::*;
use sha2::{Digest, Sha256};

use crate::fixture;

/// SHA-256 of 300 synthetic encounters of seed 3, as the version before format 2 wrote them.
const BEFORE_PARTS: &str = "5cece3ca853db5406d0b3285c82c349914289b9b613d0fc8009cb1436a875d87";

/// The only part of a small dataset.
const PART: &str = "encounters/part-00000.parquet";

fn folder() -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data");
    fixture::write(&folder, &fixture::encounters());
    (home, folder)
}

#[test]
fn what_goes_in_comes_out() {
    let (_home, folder) = folder();
    assert_eq!(fixture::read(&folder).unwrap(), fixture::encounters());

    let dataset = Dataset::open(&folder).unwrap();
    let manifest = dataset.manifest();
    assert_eq!((manifest.encounters, manifest.with_edges), (6, 2));
    assert_eq!(manifest.labels, fixture::labels());
    let cough = &dataset.vocabulary()[CodeKind::Diagnosis][0];
    assert_eq!(
        (cough.code.as_str(), cough.description.as_deref(), cough.count),
        ("cough", Some("about cough"), 3)
    );
}

#[test]
fn an_empty_dataset_is_one_too() {
    let home = tempfile::tempdir().unwrap();
    fixture::write(&home.path().join("data"), &[]);
    assert_eq!(fixture::read(&home.path().join("data")).unwrap(), []);
}

#[test]
fn the_same_data_make_the_same_bytes() {
    let (_one, one) = folder();
    let (_two, two) = folder();
    for file in ["dataset.json", PART, "vocabulary.parquet"] {
        assert_eq!(fs::read(one.join(file)).unwrap(), fs::read(two.join(file)).unwrap(), "{file}");
    }
}

/// The error of opening and reading a folder after something was done to it, without the folder's own path.
fn refusal(change: impl FnOnce(&Path)) -> String {
    let (home, folder) = folder();
    change(&folder);
    let error = fixture::read(&folder).unwrap_err().to_string();
    for identifier in ["stay-", "anna", "bert", "carl", "dora"] {
        assert!(!error.contains(identifier), "a message must not name anyone: {error}");
    }
    error.replace(&format!("{}/", home.path().display()), "")
}

#[test]
fn a_folder_without_its_files_is_refused() {
    assert_eq!(
        refusal(|folder| fs::remove_file(folder.join("dataset.json")).unwrap()),
        "data is not a dataset folder: it has no dataset.json"
    );
    assert_eq!(
        refusal(|folder| fs::remove_file(folder.join("vocabulary.parquet")).unwrap()),
        "data/vocabulary.parquet is missing, but dataset.json lists it"
    );
    assert_eq!(
        refusal(|folder| fs::remove_dir_all(folder).unwrap()),
        "cannot open data: No such file or directory (os error 2)"
    );
}

fn edit_manifest(folder: &Path, edit: impl FnOnce(&mut serde_json::Value)) {
    let path = folder.join("dataset.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    edit(&mut manifest);
    fs::write(path, manifest.to_string()).unwrap();
}

#[test]
fn a_wrong_manifest_is_refused() {
    assert_eq!(
        refusal(|folder| edit_manifest(folder, |manifest| manifest["schema_version"] = 3.into())),
        "data/dataset.json: schema version 3, but this program reads version 2"
    );
    assert_eq!(
        refusal(|folder| edit_manifest(folder, |manifest| manifest["encounters"] = "six".into())),
        "data/dataset.json: encounters: invalid type: text \"six\", expected a whole number from 0"
    );
    assert_eq!(
        refusal(|folder| edit_manifest(folder, |manifest| manifest["codes"] = "six".into())),
        "data/dataset.json: codes: invalid type: text \"six\", expected a table"
    );
    assert_eq!(
        refusal(|folder| fs::write(folder.join("dataset.json"), "{\"schema").unwrap()),
        "data/dataset.json: not valid JSON: EOF while parsing a string at line 1 column 8"
    );
    assert_eq!(
        refusal(|folder| edit_manifest(folder, |manifest| manifest["encounters"] = 7.into())),
        "data/encounters/part-00000.parquet is damaged: it has 6 rows, but dataset.json says 7"
    );
}

#[test]
fn a_cut_off_file_is_refused() {
    for file in [PART, "vocabulary.parquet"] {
        let (_home, folder) = folder();
        let whole = fs::read(folder.join(file)).unwrap();
        for length in (0..whole.len()).step_by(whole.len() / 37) {
            fs::write(folder.join(file), &whole[..length]).unwrap();
            let error = fixture::read(&folder).unwrap_err().to_string();
            assert!(error.contains(file) && error.contains("is damaged: cut off"), "{length}: {error}");
        }
    }
}

/// The error of checking everything in a folder.
fn verify(folder: &Path) -> gct::Result<()> {
    let dataset = Dataset::open(folder)?;
    dataset.check_hashes(&Job::silent())?;
    dataset.check_rows(&Job::silent())
}

#[test]
fn a_changed_bit_is_found_by_hashing_and_never_a_panic() {
    let (_home, folder) = folder();
    verify(&folder).unwrap();
    for file in [PART, "vocabulary.parquet"] {
        let whole = fs::read(folder.join(file)).unwrap();
        for position in (0..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[position] ^= 1 << (position % 8);
            fs::write(folder.join(file), &changed).unwrap();
            let error = verify(&folder).unwrap_err().to_string();
            assert!(error.contains(file), "{position}: {error}");
        }
        // And several bytes anywhere: the Parquet library itself panics on some of these.
        let mut state = 1u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        for _ in 0..1500 {
            let mut changed = whole.clone();
            for _ in 0..=next(8) {
                changed[next(whole.len())] = next(256) as u8;
            }
            if changed != whole {
                fs::write(folder.join(file), &changed).unwrap();
                let error = verify(&folder).unwrap_err().to_string();
                assert!(error.contains(file), "{error}");
                // Without hashing there may be nothing to refuse, but never a panic.
                if let Err(error) = fixture::read(&folder) {
                    assert!(error.to_string().contains(file), "{error}");
                }
            }
        }
        fs::write(folder.join(file), &whole).unwrap();
    }
    fixture::read(&folder).unwrap();
}

/// Replaces one column of the encounters; `honest` puts the new file's hash into dataset.json, as another
/// program would that writes the format by itself.
fn edit_column(folder: &Path, column: &str, honest: bool, edit: impl Fn(&ArrayRef) -> ArrayRef) {
    edit_columns(folder, honest, |columns| {
        for (name, values) in columns {
            if name == column {
                *values = edit(values);
            }
        }
    });
}

/// Adds a column to the encounters, or replaces it.
fn add_column(folder: &Path, column: &str, values: ArrayRef) {
    edit_columns(folder, true, |columns| {
        columns.retain(|(name, _)| name != column);
        columns.push((column.into(), values));
    });
}

fn edit_columns(folder: &Path, honest: bool, edit: impl FnOnce(&mut Vec<(String, ArrayRef)>)) {
    let path = folder.join(PART);
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
    let batch = reader.into_iter().next().unwrap().unwrap();
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let mut columns = columns.map(|(field, values)| (field.name().clone(), values.clone())).collect();
    edit(&mut columns);
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    if honest {
        agree(folder, PART);
    }
}

/// Puts the size and hash of a file into dataset.json.
fn agree(folder: &Path, file: &str) {
    let bytes = fs::read(folder.join(file)).unwrap();
    let sha256: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    edit_manifest(folder, |manifest| {
        manifest["files"][file] = serde_json::json!({"bytes": bytes.len(), "sha256": sha256});
    });
}

/// Changes the code ids of a list column.
fn edit_ids(values: &ArrayRef, edit: impl Fn(&mut Vec<u32>)) -> ArrayRef {
    let lists = values.as_list::<i32>();
    let mut ids = lists.values().as_primitive::<UInt32Type>().values().to_vec();
    edit(&mut ids);
    let DataType::List(field) = lists.data_type() else { panic!("a list column") };
    Arc::new(ListArray::new(field.clone(), lists.offsets().clone(), Arc::new(UInt32Array::from(ids)), None))
}

#[test]
fn a_bad_row_is_refused_by_its_number() {
    for honest in [false, true] {
        let outside = refusal(|folder| {
            // The third row's only diagnosis.
            edit_column(folder, "diagnosis", honest, |values| edit_ids(values, |ids| ids[3] = 77));
        });
        assert_eq!(
            outside,
            "data/encounters/part-00000.parquet: row 3: column `diagnosis`: an id is outside the vocabulary, which has 3 codes"
        );
        let repeated = refusal(|folder| {
            edit_column(folder, "treatment", honest, |values| edit_ids(values, |ids| ids[2] = 0));
        });
        assert_eq!(
            repeated,
            "data/encounters/part-00000.parquet: row 2: column `treatment`: ids must be distinct and ascending"
        );
        let elsewhere = refusal(|folder| {
            edit_column(folder, "diagnosis_treatment", honest, |values| {
                let lists = values.as_list::<i32>();
                let pairs = lists.values().as_struct();
                let ends =
                    vec![pairs.column(0).clone(), Arc::new(UInt32Array::from(vec![0, 3, 2, 3])) as ArrayRef];
                let pairs = StructArray::new(pairs.fields().clone(), ends, None);
                let DataType::List(field) = lists.data_type() else { panic!("a list column") };
                let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
                Arc::new(ListArray::new(field.clone(), offsets, Arc::new(pairs), nulls))
            });
        });
        assert_eq!(
            elsewhere,
            "data/encounters/part-00000.parquet: row 2: column `diagnosis_treatment`: an edge names a treatment that is not in \
             the encounter"
        );
    }
}

#[test]
fn an_id_that_occurs_twice_is_refused() {
    let twice = |folder: &Path| {
        edit_column(folder, "encounter_id", true, |_| {
            Arc::new(StringArray::from(vec!["stay-0", "stay-1", "stay-2", "stay-3", "stay-1", "stay-5"]))
        });
    };
    let expected = "row 5: column `encounter_id`: is that of an earlier row; ids must be unique";
    assert_eq!(refusal(twice), format!("data/encounters/part-00000.parquet: {expected}"));
    let (_home, folder) = folder();
    twice(&folder);
    let dataset = Dataset::open(&folder).unwrap();
    let counted = gct::prior::fit(&dataset, &Split::by_hash(0, By::Subject), &Job::silent()).map(drop);
    let settings = Settings::paper("label:died".parse().unwrap(), "gct", "synthetic").unwrap();
    let run = folder.with_file_name("run");
    let job = Job::silent();
    let trained =
        train::start(settings, &dataset, &run, Overwrite::Refuse, Execution::default(), &job).map(drop);
    for done in [counted, trained] {
        let error = done.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    assert!(!run.exists());
}

#[test]
fn another_type_is_refused_by_its_column() {
    let error = refusal(|folder| {
        edit_column(folder, "lab", true, |values| {
            Arc::new(arrow_array::BooleanArray::from(vec![true; values.len()]))
        });
    });
    assert_eq!(
        error,
        "data/encounters/part-00000.parquet: column `lab`: expected list of uint32, found boolean"
    );
}

#[test]
fn a_change_that_breaks_no_rule_is_refused_too() {
    let change = |folder: &Path, honest| {
        edit_column(folder, "diagnosis", honest, |values| edit_ids(values, |ids| ids[0] = 2));
    };
    assert_eq!(
        refusal(|folder| change(folder, false)),
        "data/encounters/part-00000.parquet is not the file that was written: its SHA-256 differs from the one in \
         dataset.json",
        "its size is another"
    );
    let (_home, folder) = folder();
    change(&folder, true);
    assert_eq!(fixture::read(&folder).unwrap()[0].codes.diagnosis, [2], "unless dataset.json agrees");
    let error = verify(&folder).unwrap_err().to_string();
    assert!(
        error.ends_with("vocabulary.parquet is damaged: column `count` is wrong for a diagnosis code"),
        "{error}"
    );
}

#[test]
fn whoever_learns_or_evaluates_finds_a_file_of_the_same_size_that_is_another() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data");
    let settings = gct::ingest::synthetic::Settings { encounters: 200, ..Default::default() };
    gct::synth::run(&settings, &folder, Overwrite::Refuse, &Job::silent()).unwrap();
    // As if another encounter had been written with a hash of its own: every row is valid.
    edit_manifest(&folder, |manifest| manifest["files"][PART]["sha256"] = "0".repeat(64).into());
    let dataset = Dataset::open(&folder).unwrap();
    assert_eq!(dataset.encounters().unwrap().filter(|encounter| encounter.is_ok()).count(), 200);
    let settings = Settings::paper("masked_diagnosis".parse().unwrap(), "gct", "synthetic").unwrap();
    let run = home.path().join("run");
    let (execution, job) = (Execution::default(), Job::silent());
    let error = train::start(settings, &dataset, &run, Overwrite::Refuse, execution, &job).err().unwrap();
    assert!(error.to_string().contains("is not the file that was written"), "{error}");
    assert!(!run.exists());
}

#[test]
fn counts_that_are_not_those_of_the_encounters_are_found() {
    let found = |edit: fn(&mut serde_json::Value)| {
        let (_home, folder) = folder();
        edit_manifest(&folder, edit);
        fixture::read(&folder).unwrap();
        verify(&folder).unwrap_err().to_string()
    };
    let edges = found(|manifest| manifest["with_edges"] = 3.into());
    assert!(edges.ends_with("with_edges is 3, but 2 encounters have known edges"), "{edges}");
    let codes = found(|manifest| manifest["codes"]["lab"] = 9.into());
    assert!(codes.ends_with("codes.lab is 9, but the encounters have 4"), "{codes}");
}

#[test]
fn files_that_are_not_those_of_the_format_are_refused() {
    let with = |edit: fn(&mut serde_json::Map<String, serde_json::Value>)| {
        refusal(|folder| edit_manifest(folder, |manifest| edit(manifest["files"].as_object_mut().unwrap())))
    };
    let missing = with(|files| drop(files.remove(PART)));
    assert_eq!(missing, "data/dataset.json: files: `encounters/part-00000.parquet` is missing");
    let gap = with(|files| {
        let entry = files[PART].clone();
        files.insert("encounters/part-00002.parquet".into(), entry);
    });
    assert_eq!(gap, "data/dataset.json: files: `encounters/part-00001.parquet` is missing");
    let outside = with(|files| {
        let entry = files.remove(PART).unwrap();
        files.insert("../encounters.parquet".into(), entry);
    });
    assert_eq!(outside, "data/dataset.json: files: `encounters/part-00000.parquet` is missing");
    let both = with(|files| {
        let entry = files[PART].clone();
        files.insert("encounters.parquet".into(), entry);
    });
    assert_eq!(
        both,
        "data/dataset.json: files: `encounters/part-00000.parquet` is no file of such a dataset"
    );
    let old = refusal(|folder| edit_manifest(folder, |manifest| manifest["schema_version"] = 1.into()));
    assert_eq!(old, "data/dataset.json: files: `encounters.parquet` is missing");
}

#[test]
fn encounters_out_of_order_and_ends_before_starts_are_refused_by_row() {
    use arrow_array::TimestampMicrosecondArray;
    let text = |values: [&str; 6]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let subjects = refusal(|folder| {
        edit_column(folder, "subject_id", true, |_| text(["anna", "anna", "carl", "bert", "dora", "dora"]));
    });
    let order = "encounters of a part must be sorted by subject, start and id";
    assert_eq!(subjects, format!("data/{PART}: row 4: column `subject_id`: {order}"));
    let starts = refusal(|folder| {
        edit_column(folder, "start", true, |_| {
            Arc::new(TimestampMicrosecondArray::from(vec![Some(2), Some(1), None, None, None, None]))
        });
    });
    assert_eq!(starts, format!("data/{PART}: row 2: column `start`: {order}"));
    let ids = refusal(|folder| {
        edit_column(folder, "start", true, |_| Arc::new(TimestampMicrosecondArray::from(vec![1; 6])));
        edit_column(folder, "encounter_id", true, |_| text(["e9", "e8", "e3", "e4", "e5", "e10"]));
    });
    assert_eq!(ids, format!("data/{PART}: row 2: column `encounter_id`: {order}"));

    let (_home, folder) = folder();
    // A column in the place of a label that nobody reads.
    let ends = |folder: &Path, ends: [Option<i64>; 6]| {
        add_column(folder, "end", Arc::new(TimestampMicrosecondArray::from(ends.to_vec())));
    };
    let start = 1_600_000_000_000_000;
    ends(&folder, [Some(start), Some(5), None, None, Some(start + 4), None]);
    let read: Vec<Option<i64>> = fixture::read(&folder).unwrap().iter().map(|e| e.end).collect();
    assert_eq!(read, [Some(start), Some(5), None, None, Some(start + 4), None]);
    let early = refusal(|folder| ends(folder, [None, None, Some(start + 1), None, None, None]));
    assert_eq!(early, format!("data/{PART}: row 3: column `end`: is before `start`"));
    let other = refusal(|folder| add_column(folder, "end", text(["x"; 6])));
    assert_eq!(other, format!("data/{PART}: column `end`: expected timestamp in microseconds, found text"));
}

/// Any encounter over small vocabularies, its edges included.
fn any_encounter() -> impl Strategy<Value = gct::record::Encounter> {
    use gct::record::{Edge, Edges, Encounter, EncounterId, PerKind, SubjectId};
    let codes = |size: u32| {
        prop::collection::btree_set(0..size, 0..=size as usize)
            .prop_map(|ids| ids.into_iter().collect::<Vec<u32>>())
    };
    let codes = (codes(3), codes(4), codes(2));
    let ids = (".{0,8}", ".{0,8}", any::<Option<i64>>());
    let labels = prop::collection::vec(any::<Option<bool>>(), 2);
    (ids, codes, labels, any::<Option<(u64, u64)>>()).prop_map(
        |((id, subject, start), codes, labels, edges)| {
            let subset = |causes: &[u32], effects: &[u32], bits: u64| {
                let pairs = (0..causes.len() as u16)
                    .flat_map(|cause| (0..effects.len() as u16).map(move |effect| Edge { cause, effect }));
                pairs.enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, edge)| edge).collect()
            };
            Encounter {
                id: EncounterId::new(id),
                subject: SubjectId::new(subject),
                start,
                edges: edges.map(|(dm, mr)| Edges {
                    diagnosis_treatment: subset(&codes.0, &codes.1, dm),
                    treatment_lab: subset(&codes.1, &codes.2, mr),
                }),
                labels,
                ..Encounter::new(PerKind {
                    diagnosis: codes.0,
                    treatment: codes.1,
                    lab: codes.2,
                    ..PerKind::default()
                })
            }
        },
    )
}

/// Any encounters with ids of their own.
fn any_encounters() -> impl Strategy<Value = Vec<gct::record::Encounter>> {
    prop::collection::vec(any_encounter(), 0..20).prop_map(|mut encounters| {
        for (row, encounter) in encounters.iter_mut().enumerate() {
            encounter.id = EncounterId::new(format!("{row} {}", encounter.id.as_str()));
        }
        encounters
    })
}

/// Writes encounters in so many parts, some at a time, with a column for ends if there are any.
fn write_parts(folder: &Path, encounters: &[gct::record::Encounter], parts: usize) -> Manifest {
    let (vocabulary, labels) = (fixture::vocabulary(), fixture::labels());
    let has_ends = encounters.iter().any(|encounter| encounter.end.is_some());
    let mut writer =
        Writer::create_parts(folder, Overwrite::Replace, vocabulary, labels, parts, has_ends).unwrap();
    encounters.chunks(3).for_each(|some| writer.write(some).unwrap());
    let nothing = serde_json::json!({});
    writer.finish(Source { kind: "x".into(), settings: nothing.clone(), findings: nothing }).unwrap()
}

/// As the format says, in other words than the library's.
fn sort_key(encounter: &gct::record::Encounter) -> (usize, Vec<u8>, i128, usize, Vec<u8>) {
    let (subject, id) = (encounter.subject.as_str(), encounter.id.as_str());
    let start = encounter.start.map_or(i128::MAX, i128::from);
    (subject.len(), subject.into(), start, id.len(), id.into())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_encounters_come_out_sorted(mut encounters in any_encounters()) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        fixture::write(&folder, &encounters);
        encounters.sort_by_key(sort_key);
        prop_assert_eq!(fixture::read(&folder).unwrap(), encounters);
        verify(&folder).unwrap();
    }

    #[test]
    fn every_subject_is_in_one_part_and_all_are_in_some(
        mut encounters in any_encounters(),
        parts in 1..6_usize,
        has_ends in any::<bool>(),
    ) {
        for encounter in encounters.iter_mut().filter(|_| has_ends) {
            encounter.end = encounter.start.map(|start| start.saturating_add(5));
        }
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        let manifest = write_parts(&folder, &encounters, parts);
        prop_assert_eq!(manifest.files.encounters.len(), parts);
        verify(&folder).unwrap();
        encounters.sort_by_key(|encounter| (part_of(encounter.subject.as_str(), parts), sort_key(encounter)));
        prop_assert_eq!(fixture::read(&folder).unwrap(), encounters.clone());
        // The order in which they are written changes nothing.
        encounters.reverse();
        let again = write_parts(&home.path().join("again"), &encounters, parts);
        prop_assert_eq!(again.identity(), manifest.identity());
    }
}

#[test]
fn an_encounter_in_the_part_of_others_is_refused_and_so_is_an_id_of_another_part() {
    let (home, folder) = folder();
    let encounters = fixture::encounters();
    let manifest = write_parts(&folder, &encounters, 2);
    let [first, second] = [0, 1].map(|part| folder.join(&manifest.files.encounters[part].name));
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    assert!(size(&first) > 0 && size(&second) > 0);
    // The two parts change places.
    let aside = home.path().join("aside");
    fs::rename(&first, &aside).unwrap();
    fs::rename(&second, &first).unwrap();
    fs::rename(&aside, &second).unwrap();
    for part in &manifest.files.encounters {
        agree(&folder, &part.name);
    }
    let error = fixture::read(&folder).unwrap_err().to_string();
    let expected = format!("{PART}: row 1: column `subject_id`: belongs to another part, by its hash");
    assert!(error.ends_with(&expected), "{error}");

    let mut twice = encounters;
    twice[5].id = twice[0].id.clone();
    assert_ne!(part_of("anna", 4), part_of("dora", 4), "in two parts");
    write_parts(&folder, &twice, 4);
    let error = fixture::read(&folder).unwrap_err().to_string();
    assert!(
        error.ends_with("column `encounter_id`: is that of an earlier row; ids must be unique"),
        "{error}"
    );
}

#[test]
fn the_identity_of_several_parts_is_the_hash_of_their_hashes() {
    let (_home, folder) = folder();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let one = write_parts(&folder, &fixture::encounters(), 1);
    assert_eq!(one.identity(), hex(&Sha256::digest(fs::read(folder.join(PART)).unwrap())));
    let three = write_parts(&folder, &fixture::encounters(), 3);
    let hashes: String = (0..3)
        .map(|part| fs::read(folder.join(format!("encounters/part-0000{part}.parquet"))).unwrap())
        .map(|content| hex(&Sha256::digest(content)))
        .collect();
    assert_eq!(three.identity(), hex(&Sha256::digest(hashes)));
    assert_ne!(one.identity(), three.identity());
    let before = fs::read(folder.join("encounters/part-00002.parquet")).unwrap();
    fs::write(folder.join("encounters/part-00002.parquet"), &before[1..]).unwrap();
    let error = Dataset::open(&folder).unwrap_err().to_string();
    assert!(error.contains("encounters/part-00002.parquet is damaged"), "{error}");
    fs::write(folder.join("encounters/part-00002.parquet"), &before).unwrap();
    edit_manifest(&folder, |manifest| manifest["encounters"] = 5.into());
    let error = Dataset::open(&folder).unwrap_err().to_string();
    assert!(
        error.ends_with("encounters is damaged: its parts have 6 rows, but dataset.json says 5"),
        "{error}"
    );
}

/// Makes a folder of format 1 of one of format 2 with one part: the same bytes under another name.
fn as_format_1(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    fs::copy(from.join("vocabulary.parquet"), to.join("vocabulary.parquet")).unwrap();
    fs::copy(from.join(PART), to.join("encounters.parquet")).unwrap();
    fs::copy(from.join("dataset.json"), to.join("dataset.json")).unwrap();
    edit_manifest(to, |manifest| {
        manifest["schema_version"] = 1.into();
        let files = manifest["files"].as_object_mut().unwrap();
        let entry = files.remove(PART).unwrap();
        files.insert("encounters.parquet".into(), entry);
    });
}

#[test]
fn a_folder_of_format_1_is_read_in_its_own_order() {
    let (home, folder) = folder();
    let old = home.path().join("old");
    edit_column(&folder, "subject_id", true, |_| {
        Arc::new(StringArray::from(vec!["carl", "anna", "x", "anna", "bert", "carl"]))
    });
    as_format_1(&folder, &old);
    let subjects: Vec<String> =
        fixture::read(&old).unwrap().iter().map(|encounter| encounter.subject.as_str().to_owned()).collect();
    assert_eq!(subjects, ["carl", "anna", "x", "anna", "bert", "carl"]);
    verify(&old).unwrap();
    assert_eq!(Dataset::open(&old).unwrap().manifest().schema_version, 1);
    // A damaged one is refused by its own file, and a new one takes its place.
    let whole = fs::read(old.join("encounters.parquet")).unwrap();
    fs::write(old.join("encounters.parquet"), &whole[..whole.len() / 2]).unwrap();
    let error = fixture::read(&old).unwrap_err().to_string();
    assert!(error.contains("old/encounters.parquet is damaged"), "{error}");
    fixture::write(&old, &fixture::encounters());
    assert!(!old.join("encounters.parquet").exists() && old.join(PART).exists());
}

#[test]
fn a_run_of_format_1_knows_the_same_encounters_in_format_2() {
    let home = tempfile::tempdir().unwrap();
    let [new, old, run] = ["new", "old", "run"].map(|name| home.path().join(name));
    let settings = gct::ingest::synthetic::Settings { encounters: 300, seed: 3, ..Default::default() };
    gct::synth::run(&settings, &new, Overwrite::Refuse, &Job::silent()).unwrap();
    as_format_1(&new, &old);
    assert_eq!(fixture::read(&new).unwrap(), fixture::read(&old).unwrap());
    let [new, old] = [new, old].map(|folder| Dataset::open(&folder).unwrap());
    assert_eq!(new.manifest().identity(), old.manifest().identity());
    // The SHA-256 that the program wrote for these settings before there were parts.
    assert_eq!(new.manifest().identity(), BEFORE_PARTS);
    let mut settings = Settings::paper("masked_diagnosis".parse().unwrap(), "shallow", "synthetic").unwrap();
    (settings.steps, settings.batch, settings.validate_every) = (4, 8, 2);
    let (execution, job) = (Execution::default(), Job::silent());
    train::start(settings, &old, &run, Overwrite::Refuse, execution, &job).unwrap();
    let trained = gct::run::Run::open(&run).unwrap();
    assert_eq!(trained.dataset().unwrap().manifest().schema_version, 1);
    let all = |dataset: &Dataset| {
        let none = gct::metric::Bootstrap { replicates: 0, seed: 0 };
        let test = gct::infer::Which::Part(gct::split::SplitPart::Test);
        assert_eq!(gct::infer::Which::default_for(&trained, dataset), test);
        gct::evaluate::run(&trained, dataset, test, none, &Job::silent()).unwrap().scores
    };
    assert_eq!(all(&old), all(&new));
    // Gone on with on the other folder.
    train::resume(&run, &new, Some(6), Execution::default(), &Job::silent()).unwrap();
}
