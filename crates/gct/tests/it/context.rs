//! Context: codes that are connected with the visit alone.

use std::fs;
use std::path::Path;

use gct::dataset::{Dataset, Source, Writer};
use gct::evaluate;
use gct::files::Overwrite;
use gct::graph::NodeKind;
use gct::infer::Which;
use gct::ingest::synthetic::{Generator, Settings};
use gct::job::{Job, Stop};
use gct::leaks;
use gct::metric::Bootstrap;
use gct::picture;
use gct::record::{Code, CodeKind, Encounter, EncounterId, PerKind, SplitPart, SubjectId};
use gct::run::Run;
use gct::split::{By, Split};
use gct::statistics;
use tempfile::TempDir;

use crate::fixture;
use crate::run::{settings, start};

/// Synthetic encounters with an age and a sex; the label `older` is the age, and nothing else tells it.
pub(crate) fn data(home: &TempDir) -> Dataset {
    let of = Settings { encounters: 300, ..Settings::default() };
    let mut generator = Generator::new(&of).unwrap();
    let code = |code: &&str| Code { code: (*code).into(), description: None, count: 0 };
    let context = ["age=18-64", "age=65-", "sex=female", "sex=male"].iter().map(code).collect();
    let vocabulary = PerKind { context, ..generator.vocabulary() };
    let mut encounters = Vec::new();
    while let Some(drawn) = generator.next_round(&Stop::new()).unwrap() {
        encounters.extend(drawn.encounters);
    }
    for (number, encounter) in (0u32..).zip(&mut encounters) {
        let mixed = number.wrapping_mul(2_654_435_761) >> 16;
        encounter.codes.context = vec![mixed % 2, 2 + (mixed >> 1) % 2];
        encounter.labels = vec![Some(mixed % 2 == 1)];
    }
    write(&home.path().join("data"), vocabulary, &encounters, "older")
}

fn write(folder: &Path, vocabulary: PerKind<Vec<Code>>, encounters: &[Encounter], label: &str) -> Dataset {
    let mut writer = Writer::create(folder, Overwrite::Refuse, vocabulary, vec![label.into()]).unwrap();
    writer.write(encounters).unwrap();
    let nothing = serde_json::json!({});
    writer.finish(Source { kind: "synthetic".into(), settings: nothing.clone(), findings: nothing }).unwrap();
    Dataset::open(folder).unwrap()
}

fn three(context: [&[u32]; 3]) -> Vec<Encounter> {
    let encounter = |(number, context): (usize, &[u32])| Encounter {
        id: EncounterId::new(format!("stay-{number}")),
        subject: SubjectId::new("anna"),
        labels: vec![None],
        ..Encounter::new(PerKind { context: context.to_vec(), diagnosis: vec![0], ..PerKind::default() })
    };
    context.into_iter().enumerate().map(encounter).collect()
}

#[test]
fn context_comes_out_as_it_went_in() {
    let home = tempfile::tempdir().unwrap();
    let vocabulary = || fixture::numbered(PerKind { context: 3, diagnosis: 1, ..PerKind::default() });
    let encounters = three([&[0, 2], &[], &[1]]);
    let dataset = write(&home.path().join("data"), vocabulary(), &encounters, "died");
    assert_eq!(fixture::read(dataset.path()).unwrap(), encounters);
    assert_eq!(dataset.manifest().vocabulary.context, 3);
    assert_eq!(dataset.manifest().codes.context, 3);
    let counts: Vec<u64> = dataset.vocabulary().context.iter().map(|code| code.count).collect();
    assert_eq!(counts, [1, 1, 1]);
    let statistics = statistics::collect(&dataset, &Job::silent()).unwrap();
    assert_eq!((statistics.codes.context.vocabulary, statistics.codes.context.per_encounter), (3, 1.0));
}

#[test]
fn data_without_context_do_not_speak_of_it() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data");
    let vocabulary = fixture::numbered(PerKind { diagnosis: 1, ..PerKind::default() });
    let dataset = write(&folder, vocabulary, &three([&[], &[], &[]]), "died");
    assert!(!fs::read_to_string(folder.join("dataset.json")).unwrap().contains("context"));
    let parquet = fs::read(folder.join(PART)).unwrap();
    assert!(!parquet.windows(7).any(|bytes| bytes == b"context"), "no column");
    let statistics = statistics::collect(&dataset, &Job::silent()).unwrap();
    assert!(!serde_json::to_string(&statistics).unwrap().contains("context"));
}

const PART: &str = "encounters/part-00000.parquet";

/// Puts the file of one dataset into another, whose `dataset.json` then lists it.
fn exchange(from: &Path, to: &Path) -> String {
    fs::copy(from.join(PART), to.join(PART)).unwrap();
    Dataset::open(to)
        .and_then(|data| data.encounters()?.collect::<gct::Result<Vec<_>>>())
        .unwrap_err()
        .to_string()
}

#[test]
fn context_outside_of_the_vocabulary_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let data = |name: &str, context: usize, codes: [&[u32]; 3]| {
        let folder = home.path().join(name);
        let vocabulary = fixture::numbered(PerKind { context, diagnosis: 1, ..PerKind::default() });
        write(&folder, vocabulary, &three(codes), "died");
        folder
    };
    let large = data("large", 4, [&[0], &[3], &[]]);
    let small = data("small", 2, [&[0], &[1], &[]]);
    let none = data("none", 0, [&[], &[], &[]]);
    let refusal = exchange(&large, &small);
    assert!(
        refusal.ends_with("row 2: column `context`: an id is outside the vocabulary, which has 2 codes"),
        "{refusal}"
    );
    let missing = exchange(&none, &small);
    assert!(missing.contains("`context`") && missing.contains("no such column"), "{missing}");
    let unexpected = exchange(&large, &none);
    assert!(unexpected.contains("which has 0 codes"), "{unexpected}");
}

#[test]
fn what_context_alone_decides_is_learned() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for model in ["gct", "shallow"] {
        let folder = home.path().join(model);
        let mut settings = settings("label:older", model);
        (settings.steps, settings.validate_every, settings.batch) = (150, 50, 16);
        settings.learning_rate = 5e-3;
        start(settings, &dataset, &folder, None).unwrap();
        let run = Run::open(&folder).unwrap();
        let none = Bootstrap { replicates: 0, seed: 0 };
        let part = Which::Part(SplitPart::Test);
        let scores = evaluate::run(&run, &dataset, part, none, &Job::silent()).unwrap().scores;
        assert!(scores.value("auroc").unwrap() > 0.95, "{model}: {scores:?}");
    }
}

#[test]
fn context_is_explained_and_can_give_a_label_away() {
    let home = tempfile::tempdir().unwrap();
    let (dataset, folder) = (data(&home), home.path().join("run"));
    start(settings("graph_reconstruction", "gct"), &dataset, &folder, None).unwrap();
    let run = Run::open(&folder).unwrap();
    let encounter = dataset.encounters().unwrap().next().unwrap().unwrap();
    let structure = run.explain(&encounter).unwrap().structure;
    let is_context = |kind: NodeKind| kind == NodeKind::Code(CodeKind::Context);
    let context: Vec<usize> =
        (0..structure.nodes.len()).filter(|node| is_context(structure.nodes[*node].kind)).collect();
    assert_eq!(context, [1, 2]);
    let nodes = structure.nodes.len();
    for layer in &structure.layers {
        for &node in &context {
            let row = &layer.matrix[node * nodes..][..nodes];
            let given: Vec<usize> = (0..nodes).filter(|other| row[*other] > 0.0).collect();
            assert_eq!(given, [0, node], "{}: to the visit and itself alone", layer.name);
        }
    }
    let svg = picture::graph(&structure, 0).svg;
    assert!(svg.contains(">context (2)<") && svg.contains("five columns, context, visit"), "{svg}");
    let split = Split::by_hash(0, By::Encounter);
    let found = leaks::find(&dataset, &split, "older", 0, &Job::silent()).unwrap();
    let leak = found.best_auroc.unwrap();
    assert_eq!((leak.kind, leak.auroc), (CodeKind::Context, Some(1.0)));
}
