//! The dataset folder: what goes in comes out, and what is not as it should be is refused by file and row.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StringArray, StructArray, UInt32Array};
use arrow_schema::DataType;
use gct::dataset::Dataset;
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
    for file in ["dataset.json", "encounters.parquet", "vocabulary.parquet"] {
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
        refusal(|folder| edit_manifest(folder, |manifest| manifest["schema_version"] = 2.into())),
        "data/dataset.json: schema version 2, but this program reads version 1"
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
        "data/encounters.parquet is damaged: it has 6 rows, but dataset.json says 7"
    );
}

#[test]
fn a_cut_off_file_is_refused() {
    for file in ["encounters.parquet", "vocabulary.parquet"] {
        let (_home, folder) = folder();
        let whole = fs::read(folder.join(file)).unwrap();
        for length in (0..whole.len()).step_by(whole.len() / 37) {
            fs::write(folder.join(file), &whole[..length]).unwrap();
            let error = fixture::read(&folder).unwrap_err().to_string();
            assert!(error.contains(file) && error.contains("is damaged: cut off"), "{length}: {error}");
        }
    }
}

#[test]
fn a_changed_bit_is_refused_and_never_a_panic() {
    let (_home, folder) = folder();
    for file in ["encounters.parquet", "vocabulary.parquet"] {
        let whole = fs::read(folder.join(file)).unwrap();
        for position in (0..whole.len()).step_by(7) {
            let mut changed = whole.clone();
            changed[position] ^= 1 << (position % 8);
            fs::write(folder.join(file), &changed).unwrap();
            let error = fixture::read(&folder).unwrap_err().to_string();
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
                let error = fixture::read(&folder).unwrap_err().to_string();
                assert!(error.contains(file), "{error}");
                // Also if dataset.json agrees, though then there may be nothing to refuse.
                let before = fs::read(folder.join("dataset.json")).unwrap();
                agree(&folder, file);
                if let Err(error) = fixture::read(&folder) {
                    assert!(error.to_string().contains(file), "{error}");
                }
                fs::write(folder.join("dataset.json"), before).unwrap();
            }
        }
        fs::write(folder.join(file), &whole).unwrap();
    }
    fixture::read(&folder).unwrap();
}

/// Replaces one column of the encounters; `honest` puts the new file's hash into dataset.json, as another
/// program would that writes the format by itself.
fn edit_column(folder: &Path, column: &str, honest: bool, edit: impl Fn(&ArrayRef) -> ArrayRef) {
    let path = folder.join("encounters.parquet");
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(&path).unwrap()).unwrap().build().unwrap();
    let batch = reader.into_iter().next().unwrap().unwrap();
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns()).map(|(field, values)| {
        (field.name(), if field.name() == column { edit(values) } else { values.clone() })
    });
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    if honest {
        agree(folder, "encounters.parquet");
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
            "data/encounters.parquet: row 3: column `diagnosis`: an id is outside the vocabulary, which has 3 codes"
        );
        let repeated = refusal(|folder| {
            edit_column(folder, "treatment", honest, |values| edit_ids(values, |ids| ids[2] = 0));
        });
        assert_eq!(
            repeated,
            "data/encounters.parquet: row 2: column `treatment`: ids must be distinct and ascending"
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
            "data/encounters.parquet: row 2: column `diagnosis_treatment`: an edge names a treatment that is not in \
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
    assert_eq!(refusal(twice), format!("data/encounters.parquet: {expected}"));
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
    assert_eq!(error, "data/encounters.parquet: column `lab`: expected list of uint32, found boolean");
}

#[test]
fn a_change_that_breaks_no_rule_is_refused_too() {
    let change = |folder: &Path, honest| {
        edit_column(folder, "diagnosis", honest, |values| edit_ids(values, |ids| ids[0] = 2));
    };
    assert_eq!(
        refusal(|folder| change(folder, false)),
        "data/encounters.parquet is not the file that was written: its SHA-256 differs from the one in dataset.json"
    );
    let (_home, folder) = folder();
    change(&folder, true);
    assert_eq!(fixture::read(&folder).unwrap()[0].codes.diagnosis, [2], "unless dataset.json agrees");
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_encounters_come_out_as_they_went_in(
        mut encounters in prop::collection::vec(any_encounter(), 0..20),
    ) {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data");
        for (row, encounter) in encounters.iter_mut().enumerate() {
            encounter.id = EncounterId::new(format!("{row} {}", encounter.id.as_str()));
        }
        fixture::write(&folder, &encounters);
        prop_assert_eq!(fixture::read(&folder).unwrap(), encounters);
    }
}
