//! A small hand-made dataset: six encounters of four subjects, with two labels of which one is often unknown.

use std::path::Path;

use gct::dataset::{Dataset, Source, Writer};
use gct::files::Overwrite;
use gct::record::{Code, CodeKind, Edge, Edges, Encounter, EncounterId, PerKind, SubjectId, Vocabulary};

pub(crate) fn vocabulary() -> Vocabulary {
    let codes = |codes: &[&str]| {
        codes
            .iter()
            .map(|code| Code { code: (*code).into(), description: Some(format!("about {code}")), count: 0 })
            .collect()
    };
    PerKind {
        diagnosis: codes(&["cough", "fever", "chest pain"]),
        treatment: codes(&["benzonatate", "acetaminophen", "EKG", "x-ray"]),
        lab: codes(&["troponin high", "troponin low"]),
        ..PerKind::default()
    }
}

pub(crate) fn encounters() -> Vec<Encounter> {
    let encounter = |n: usize, subject: &str, diagnosis: &[u32], treatment: &[u32], lab: &[u32]| Encounter {
        id: EncounterId::new(format!("stay-{n}")),
        subject: SubjectId::new(subject),
        start: n.is_multiple_of(2).then_some(1_600_000_000_000_000 + n as i64),
        labels: vec![Some(n.is_multiple_of(3)), (n < 2).then_some(n == 1)],
        ..Encounter::new(PerKind {
            diagnosis: diagnosis.into(),
            treatment: treatment.into(),
            lab: lab.into(),
            ..PerKind::default()
        })
    };
    let mut all = vec![
        encounter(0, "anna", &[0], &[0], &[]),
        encounter(1, "anna", &[0, 1], &[0, 1], &[]),
        encounter(2, "bert", &[2], &[2, 3], &[0, 1]),
        encounter(3, "carl", &[0, 1, 2], &[0, 1, 2, 3], &[1]),
        encounter(4, "dora", &[1], &[], &[]),
        encounter(5, "dora", &[], &[3], &[0]),
    ];
    let edge = |cause, effect| Edge { cause, effect };
    all[1].edges = Some(Edges { diagnosis_treatment: vec![edge(0, 0), edge(1, 1)], treatment_lab: vec![] });
    all[2].edges = Some(Edges {
        diagnosis_treatment: vec![edge(0, 0), edge(0, 1)],
        treatment_lab: vec![edge(0, 0), edge(0, 1)],
    });
    all
}

pub(crate) fn labels() -> Vec<String> {
    vec!["died".into(), "readmitted".into()]
}

/// Writes the encounters to a folder.
pub(crate) fn write(folder: &Path, encounters: &[Encounter]) -> gct::dataset::Manifest {
    let mut writer = Writer::create(folder, Overwrite::Replace, vocabulary(), labels()).unwrap();
    writer.write(encounters).unwrap();
    let source = Source {
        kind: "hand-made".into(),
        settings: serde_json::json!({}),
        findings: serde_json::Value::Null,
    };
    writer.finish(source).unwrap()
}

/// Reads all encounters of a folder.
pub(crate) fn read(folder: &Path) -> gct::Result<Vec<Encounter>> {
    Dataset::open(folder)?.encounters()?.collect()
}

/// Some codes of each kind, whatever they are called.
pub(crate) fn numbered(sizes: PerKind<usize>) -> Vocabulary {
    PerKind::from_fn(|kind: CodeKind| {
        (0..sizes[kind])
            .map(|id| Code { code: format!("{} {id}", kind.name()), description: None, count: 0 })
            .collect()
    })
}
