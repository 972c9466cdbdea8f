//! A run asked in memory says what it writes to files.

use std::fs::File;
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use gct::Error;
use gct::dataset::Dataset;
use gct::evaluate;
use gct::files::Overwrite;
use gct::graph::NodeRanges;
use gct::infer::{Reader, Which};
use gct::job::Job;
use gct::metric::Bootstrap;
use gct::predict::{self, Embedded};
use gct::question::{Prediction, TableOptions};
use gct::record::{CodeKind, Edge, Edges, Encounter, EncounterId, PerKind, SubjectId};
use gct::run::Run;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::run::{data, settings, start};

const TASKS: [&str; 5] =
    ["graph_reconstruction", "diagnosis_treatment", "masked_diagnosis", "masked_code", "label:d1_m1"];

/// A run of each task, and all encounters of its dataset in its words.
fn runs(home: &tempfile::TempDir) -> (Dataset, Vec<(Run, Vec<Encounter>)>) {
    let dataset = data(home);
    let run = |task: &str| {
        let folder = home.path().join(task.replace(':', "-"));
        start(settings(task, "gct"), &dataset, &folder, None).unwrap();
        let run = Run::open(&folder).unwrap();
        let encounters = Reader::new(&run, &dataset, Which::All).unwrap().map(Result::unwrap).collect();
        (run, encounters)
    };
    let runs = TASKS.map(run).into_iter().collect();
    (dataset, runs)
}

fn rows(file: &Path) -> Vec<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(file).unwrap()).unwrap();
    reader.build().unwrap().map(Result::unwrap).collect()
}

fn numbers(rows: &[RecordBatch], column: &str) -> Vec<f64> {
    let values = |batch: &RecordBatch| {
        batch.column_by_name(column).unwrap().as_primitive::<Float64Type>().values().to_vec()
    };
    rows.iter().flat_map(values).collect()
}

fn texts(rows: &[RecordBatch], column: &str) -> Vec<String> {
    let values = |batch: &RecordBatch| -> Vec<String> {
        batch
            .column_by_name(column)
            .unwrap()
            .as_string::<i32>()
            .iter()
            .map(|text| text.unwrap().into())
            .collect()
    };
    rows.iter().flat_map(values).collect()
}

#[test]
fn predictions_are_those_of_the_file_to_the_bit() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, runs) = runs(&home);
    for (run, encounters) in &runs {
        let out: PathBuf = run.path().with_extension("parquet");
        let top = run.vocabulary().lab.len().max(run.vocabulary().diagnosis.len());
        let options = TableOptions { min_probability: 0.0, top, ..Default::default() };
        predict::score(run, &dataset, Which::All, options, (&out, Overwrite::Refuse), &Job::silent())
            .unwrap();
        let rows = rows(&out);
        let (mut probabilities, mut what) = (Vec::new(), Vec::new());
        for (prediction, encounter) in run.predict(encounters).unwrap().into_iter().zip(encounters) {
            match prediction {
                Prediction::Edges(links) => {
                    let ranges = NodeRanges::of(encounter);
                    probabilities.extend(links.iter().map(|link| link.weight));
                    what.extend(links.iter().map(|link| ranges.locate(link.to).0.name().to_owned()));
                }
                Prediction::Labels(labels) => {
                    what.extend(run.settings().task.labels());
                    probabilities.extend(labels);
                }
                Prediction::HiddenDiagnosis { hidden, ranked } => {
                    assert!(encounter.codes.diagnosis.contains(&hidden));
                    let code = |id: u32| run.vocabulary().diagnosis[id as usize].code.clone();
                    what.extend(ranked.iter().map(|(id, _)| code(*id)));
                    probabilities.extend(ranked.iter().map(|(_, probability)| *probability));
                }
                Prediction::HiddenCode { kind, hidden, ranked } => {
                    assert!(encounter.codes[kind].contains(&hidden));
                    let code = |id: u32| run.vocabulary()[kind][id as usize].code.clone();
                    what.extend(ranked.iter().map(|(id, _)| code(*id)));
                    probabilities.extend(ranked.iter().map(|(_, probability)| *probability));
                }
                Prediction::NextDiagnoses { .. } => unreachable!("no run is asked about the next visit"),
            }
        }
        let [of_probability, of_what] = match run.settings().task.kind() {
            "graph_reconstruction" => ["probability", "effect_kind"],
            "masked_diagnosis" => ["probability", "predicted_diagnosis"],
            "masked_code" => ["probability", "predicted_code"],
            _ => ["predicted_boolean_probability", "label"],
        };
        assert_eq!(texts(&rows, of_what), what);
        assert_eq!(numbers(&rows, of_probability), probabilities, "{}", run.settings().task);
    }
}

#[test]
fn vectors_explanations_and_metrics_are_those_of_the_dataset() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, runs) = runs(&home);
    let bootstrap = Bootstrap { replicates: 20, seed: 0 };
    for (run, encounters) in &runs {
        let task = &run.settings().task;
        let out = run.path().with_extension("npy");
        predict::embed(
            run,
            Embedded::Visits,
            &dataset,
            Which::All,
            (&out, Overwrite::Refuse),
            &Job::silent(),
        )
        .unwrap();
        let vectors = run.embed(encounters).unwrap().concat();
        let bytes: Vec<u8> = vectors.iter().flat_map(|number| number.to_le_bytes()).collect();
        assert!(std::fs::read(&out).unwrap()[128..] == bytes, "{task}");
        for encounter in &encounters[..5] {
            let id = Some(encounter.id.as_str());
            let expected = predict::explain(run, &dataset, id, 0, &Job::silent()).unwrap();
            assert_eq!(run.explain(encounter).unwrap(), expected, "{task}");
        }
        let expected = evaluate::run(run, &dataset, Which::All, bootstrap, &Job::silent()).unwrap();
        let got = run.evaluate(encounters, bootstrap).unwrap();
        assert_eq!((got.encounters, got.left_out), (expected.encounters, expected.left_out), "{task}");
        assert_eq!((got.scores, got.labels), (expected.scores, expected.labels), "{task}");
        assert_eq!(got.structure, expected.structure, "{task}");
        assert_eq!(got.split, "given");
    }
}

#[test]
fn an_encounter_is_made_of_codes_and_unknown_codes_are_given_back() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let folder = home.path().join("run");
    start(settings("label:d1_m1", "shallow"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let one = dataset.encounters().unwrap().next().unwrap().unwrap();
    let name = |kind: CodeKind, id: &u32| run.vocabulary()[kind][*id as usize].code.as_str();
    let mut codes =
        PerKind::from_fn(|kind| one.codes[kind].iter().rev().map(|id| name(kind, id)).collect::<Vec<_>>());
    assert_eq!(run.encounter(&codes), (Encounter::new(one.codes.clone()), PerKind::default()));
    codes.diagnosis.extend(["zebra", "ant", "zebra"]);
    codes.lab.push(name(CodeKind::Diagnosis, &one.codes.diagnosis[0]));
    codes.treatment.push(codes.treatment[0]);
    let (encounter, unknown) = run.encounter(&codes);
    assert_eq!(encounter, Encounter::new(one.codes.clone()));
    assert_eq!(unknown.diagnosis, ["ant", "zebra"]);
    assert_eq!((unknown.treatment.len(), unknown.lab.len()), (0, 1), "a diagnosis is no lab");
}

#[test]
fn an_encounter_that_cannot_be_asked_about_is_told_by_its_index() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    let run = |task: &str, model: &str| {
        let folder = home.path().join(format!("{task}-{model}"));
        start(settings(task, model), &dataset, &folder, None).unwrap();
        Run::open(&folder).unwrap()
    };
    let good = dataset.encounters().unwrap().next().unwrap().unwrap();
    let named = |encounter: Encounter| Encounter {
        id: EncounterId::new("stay-4711"),
        subject: SubjectId::new("patient-0815"),
        ..encounter
    };
    let refused = |run: &Run, bad: Encounter| {
        let encounters = [good.clone(), named(bad)];
        let problems =
            [run.predict(&encounters).map(drop).unwrap_err(), run.embed(&encounters).map(drop).unwrap_err()];
        for error in problems {
            assert!(matches!(error, Error::EncounterRefused { index: 1, .. }), "{error}");
            let text = format!("{error} {error:?}");
            assert!(!text.contains("4711") && !text.contains("0815"), "{text}");
        }
        run.explain(&encounters[1]).unwrap_err().to_string()
    };
    let codes = |diagnosis: Vec<u32>| PerKind { diagnosis, ..PerKind::default() };
    let nothing = || Encounter::new(PerKind::default());
    let masked = run("masked_diagnosis", "gct");
    let expected =
        "the encounter at index 0 of those given has no diagnosis, which the run needs to be asked";
    assert_eq!(refused(&masked, nothing()), expected);
    let expected = "has a diagnosis id outside of the run's vocabulary";
    assert!(refused(&masked, Encounter::new(codes(vec![1_000_000]))).contains(expected));
    let unordered = Encounter { codes: codes(vec![7, 3]), ..nothing() };
    assert!(refused(&masked, unordered).contains("has diagnosis ids that are not ascending"));
    let edge = vec![Edge { cause: 0, effect: 0 }];
    let edges = Some(Edges { diagnosis_treatment: edge, treatment_lab: vec![] });
    let unfit = Encounter { edges, ..Encounter::new(codes(vec![3])) };
    assert!(refused(&masked, unfit).contains("has an edge to a code that it does not have"));
    let given_edges = run("diagnosis_treatment", "gcn");
    let unknown = Encounter::new(good.codes.clone());
    assert!(refused(&given_edges, unknown).contains("has no known edges"));
    let labels = Encounter { labels: vec![None; 3], ..good.clone() };
    assert!(refused(&given_edges, labels).contains("has 3 labels, and the run predicts 2"));
    // An evaluation leaves out what has no answer, and says so if there is nothing else.
    let none = Bootstrap { replicates: 0, seed: 0 };
    let evaluation = masked.evaluate(&[good.clone(), nothing()], none).unwrap();
    assert_eq!((evaluation.encounters, evaluation.left_out), (1, 1));
    assert!(matches!(masked.evaluate(&[nothing()], none), Err(Error::NoSamples { part: "given", .. })));
    assert!(masked.predict(&[]).unwrap().is_empty());
}

#[test]
fn a_model_is_loaded_once() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("label:d1_m1", "shallow"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let encounters: Vec<Encounter> =
        Reader::new(&run, &dataset, Which::All).unwrap().take(3).map(Result::unwrap).collect();
    let first = run.predict(&encounters).unwrap();
    for name in ["best.safetensors", "last.safetensors"] {
        std::fs::remove_file(folder.join(name)).unwrap();
    }
    assert_eq!(run.predict(&encounters).unwrap(), first);
    assert!(Run::open(&folder).unwrap().predict(&encounters).is_err());
}
