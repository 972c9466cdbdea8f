//! What codes do to answers, beside the definition, and beside what is known of synthetic encounters.

use std::fs;

use gct::dataset::Dataset;
use gct::files::Overwrite;
use gct::graph::{self, NodeRanges};
use gct::infer::{Predictor, Reader, Which};
use gct::ingest::synthetic::{self, Generator};
use gct::job::Job;
use gct::metric::Bootstrap;
use gct::predict::{self, Change, Explainer, PairChange, Ranking};
use gct::question::{HeadConfig, Hide, Prediction, Question, TableOptions};
use gct::record::{CodeKind, Edge, Edges, Encounter};
use gct::run::Run;
use gct::sample::Sample;
use serde_json::Value;
use tempfile::TempDir;

use crate::context;
use crate::run::{data, settings, start};

/// A code, by its kind and id.
type Id = (CodeKind, u32);

fn encounters(run: &Run, dataset: &Dataset) -> Vec<Encounter> {
    Reader::new(run, dataset, Which::All).unwrap().map(Result::unwrap).collect()
}

/// A run of each question, one of them with a model that is given the edges.
fn runs(home: &TempDir) -> Vec<(Run, Vec<Encounter>)> {
    let (with_context, own) = (tempfile::tempdir().unwrap(), data(home));
    let older = context::data(&with_context);
    let run = |(task, model, dataset): (&str, &str, &Dataset)| {
        let mut settings = settings(task, model);
        if settings.task == Question::Edges {
            // Untrained, it would find no edge at all.
            settings.head = HeadConfig::Edges { initial_bias: 1.0, kinds: true };
        }
        let folder = home.path().join(task.replace(':', "-"));
        start(settings, dataset, &folder, None).unwrap();
        let run = Run::open(&folder).unwrap();
        let encounters = encounters(&run, dataset);
        (run, encounters)
    };
    let runs = [
        ("diagnosis_treatment", "gct", &own),
        ("label:d1_m1", "gcn", &own),
        ("masked_diagnosis", "gct", &own),
        ("masked_code", "gct", &own),
        ("graph_reconstruction", "gct", &own),
        ("label:older", "gct", &older),
    ];
    runs.map(run).into()
}

/// The encounter as it would have been recorded without some codes.
fn without(encounter: &Encounter, gone: &[Id]) -> Encounter {
    let mut codes = encounter.codes.clone();
    for kind in CodeKind::ALL {
        codes[kind].retain(|id| !gone.contains(&(kind, *id)));
    }
    let position = |kind: CodeKind, before: u16| {
        let id = encounter.codes[kind][usize::from(before)];
        codes[kind].iter().position(|other| *other == id).map(|position| position as u16)
    };
    let left = |edges: &[Edge], causes: CodeKind, effects: CodeKind| -> Vec<Edge> {
        let edge = |edge: &Edge| {
            Some(Edge { cause: position(causes, edge.cause)?, effect: position(effects, edge.effect)? })
        };
        edges.iter().filter_map(edge).collect()
    };
    let edges = encounter.edges.as_ref().map(|edges| Edges {
        diagnosis_treatment: left(&edges.diagnosis_treatment, CodeKind::Diagnosis, CodeKind::Treatment),
        treatment_lab: left(&edges.treatment_lab, CodeKind::Treatment, CodeKind::Lab),
    });
    Encounter { edges, ..Encounter::new(codes) }
}

/// How probable the answer of this name is for an encounter without some codes; `None` if it is about one.
fn probability_without(run: &Run, sample: &Sample<'_>, gone: &[Id], what: &str) -> Option<f64> {
    let (predictor, rest) = (Predictor::of_run(run).unwrap(), without(sample.encounter(), gone));
    let of_any_kind = *predictor.question() == Question::HiddenCode;
    // Where a code of any kind may be hidden, positions go on from one kind to the next.
    let before = |kind: CodeKind| match of_any_kind {
        true => CodeKind::OF_PAPER.iter().take_while(|of| **of != kind).map(|of| rest.codes[*of].len()).sum(),
        false => 0,
    };
    let hidden = sample
        .hidden_code()
        .map(|(kind, id)| before(kind) + rest.codes[kind].iter().position(|other| *other == id).unwrap());
    let hide = hidden.map_or(Hide::ByEncounter, Hide::Position);
    let asked = predictor.question().sample(&rest, hide);
    let logits = predictor.answers(&[asked]).unwrap().remove(0);
    let sigmoid = |logit: f32| 1.0 / (1.0 + (-f64::from(logit)).exp());
    let code = |(kind, id): Id| run.vocabulary()[kind][id as usize].code.as_str();
    match predictor.question() {
        Question::Labels(labels) => {
            Some(sigmoid(logits[labels.names().iter().position(|label| label == what).unwrap()]))
        }
        Question::NextDiagnoses(_) => {
            let id = run.code_id(CodeKind::Diagnosis, what).unwrap();
            Some(sigmoid(logits[id as usize]))
        }
        Question::HiddenDiagnosis | Question::HiddenCode => {
            let sum: f64 = logits.iter().map(|logit| f64::from(*logit).exp()).sum();
            let id = run.code_id(sample.hidden_code().unwrap().0, what).unwrap();
            Some(f64::from(logits[id as usize]).exp() / sum)
        }
        Question::Edges => {
            let nodes = NodeRanges::of(&rest).len();
            let (cause, effect) = what.split_once(" - ").unwrap();
            let is_it =
                |node: usize, name: &str| graph::code_of(&rest, node).is_some_and(|id| code(id) == name);
            let pair = graph::pairs(nodes).position(|(i, j)| is_it(i, cause) && is_it(j, effect));
            pair.map(|pair| sigmoid(logits[pair]))
        }
    }
}

fn log_odds(probability: f64) -> f64 {
    (probability / (1.0 - probability)).ln()
}

fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-4, "{a} {b}");
}

#[test]
fn a_change_is_what_happens_to_an_encounter_that_never_had_the_code() {
    let home = tempfile::tempdir().unwrap();
    for (run, encounters) in runs(&home) {
        let explainer = Explainer::new(&run).unwrap();
        let mut seen = 0;
        for encounter in &encounters[..3] {
            let sample = explainer.predictor().sample(encounter);
            let told = explainer.attribute(&sample, 3).unwrap();
            for why in told.iter().take(3) {
                let strengths: Vec<f64> = why.changes.iter().map(|one| one.log_odds_change.abs()).collect();
                assert!(strengths.is_sorted_by(|a, b| a >= b), "the strongest first");
                let id = |node: usize| graph::code_of(encounter, node).unwrap();
                for node in 1..NodeRanges::of(encounter).len() {
                    let expected = match sample.hidden_code() {
                        Some(hidden) if id(node) == hidden => None,
                        _ => probability_without(&run, &sample, &[id(node)], &why.what),
                    };
                    let change: Option<&Change> = why.changes.iter().find(|change| change.node == node);
                    assert_eq!(change.is_some(), expected.is_some(), "{} node {node}", why.what);
                    let Some((change, expected)) = change.zip(expected) else { continue };
                    assert_close(change.without, expected);
                    assert_close(change.change, expected - why.probability);
                    assert_close(change.log_odds_change, log_odds(expected) - log_odds(why.probability));
                    assert_eq!(run.vocabulary()[id(node).0][id(node).1 as usize].code, change.code);
                    seen += 1;
                }
                for PairChange { nodes: (a, b), without, log_odds_change, interaction, .. } in &why.pairs {
                    let both = probability_without(&run, &sample, &[id(*a), id(*b)], &why.what).unwrap();
                    assert_close(*without, both);
                    let single =
                        |node: &usize| why.changes.iter().find(|change| change.node == *node).unwrap();
                    let sum = single(a).log_odds_change + single(b).log_odds_change;
                    assert_close(log_odds_change - sum, *interaction);
                    assert_close(*log_odds_change, log_odds(both) - log_odds(why.probability));
                }
                assert_eq!(why.pairs.len(), 3, "of three codes");
            }
        }
        assert!(seen >= 50, "{seen}");
    }
}

#[test]
fn a_table_tells_the_strongest_codes_of_each_row() {
    let home = tempfile::tempdir().unwrap();
    let dataset = data(&home);
    for (task, what) in [
        ("diagnosis_treatment", &["label"][..]),
        ("masked_diagnosis", &["predicted_diagnosis"]),
        ("masked_code", &["predicted_code"]),
        ("graph_reconstruction", &["cause", "effect"]),
    ] {
        let folder = home.path().join(task);
        let mut settings = settings(task, "gct");
        if settings.task == Question::Edges {
            settings.head = HeadConfig::Edges { initial_bias: 1.0, kinds: true };
        }
        start(settings, &dataset, &folder, None).unwrap();
        let (run, out) = (Run::open(&folder).unwrap(), folder.with_extension("jsonl"));
        let options = TableOptions { why: 2, ..Default::default() };
        predict::score(
            &run,
            &dataset,
            Which::default_for(&run, &dataset),
            options,
            (&out, Overwrite::Refuse),
            &Job::silent(),
        )
        .unwrap();
        let text = fs::read_to_string(out).unwrap();
        let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let encounter = encounters(&run, &dataset);
        let encounter = encounter.iter().find(|one| one.id.as_str() == rows[0]["encounter_id"]).unwrap();
        let mut compared = 0;
        for why in run.attribute(encounter).unwrap() {
            let name = |row: &Value| {
                what.iter().map(|key| row[key].as_str().unwrap()).collect::<Vec<_>>().join(" - ")
            };
            let is_it = |row: &&Value| row["encounter_id"] == encounter.id.as_str() && name(row) == why.what;
            let Some(row) = rows.iter().find(is_it) else { continue };
            let told: Vec<(&str, f64)> = (row["why"].as_array().unwrap().iter())
                .map(|one| (one["code"].as_str().unwrap(), one["change"].as_f64().unwrap()))
                .collect();
            let expected: Vec<(&str, f64)> =
                why.changes.iter().take(2).map(|one| (one.code.as_str(), one.change)).collect();
            assert_eq!(told, expected, "{task} {}", why.what);
            compared += 1;
        }
        assert!(compared >= 2, "{task}");
    }
}

/// A run that has learned which diagnosis leads to the treatment of the labels, with confidence where both
/// are there.
fn learned(home: &TempDir) -> (Run, Dataset) {
    let (folder, records) =
        (home.path().join("data"), synthetic::Settings { encounters: 2000, ..Default::default() });
    gct::synth::run(&records, &folder, Overwrite::Refuse, &Job::silent()).unwrap();
    let dataset = Dataset::open(&folder).unwrap();
    let mut settings = settings("diagnosis_treatment", "gct");
    (settings.steps, settings.validate_every, settings.batch) = (120, 60, 32);
    settings.learning_rate = 0.003;
    let mut config = serde_json::to_value(&settings.model).unwrap();
    (config["width"], config["dropout"]["mlp"]) = (32.into(), 0.into());
    settings.model = serde_json::from_value(config).unwrap();
    let run = home.path().join("run");
    start(settings, &dataset, &run, None).unwrap();
    (Run::open(&run).unwrap(), dataset)
}

#[test]
fn the_codes_that_make_a_label_come_first() {
    let home = tempfile::tempdir().unwrap();
    let (run, dataset) = learned(&home);
    let generator = Generator::new(&synthetic::Settings { encounters: 2000, ..Default::default() }).unwrap();
    let encounters = encounters(&run, &dataset);
    let (mut sure, mut first) = (0u32, 0u32);
    for (encounter, prediction) in encounters.iter().zip(run.predict(&encounters).unwrap()) {
        let Prediction::Labels(probabilities) = prediction else { unreachable!("labels are asked for") };
        for (label, (probability, (diagnosis, treatment))) in
            probabilities.into_iter().zip(generator.label_pairs()).enumerate()
        {
            if probability < 0.9 || encounter.labels[label] != Some(true) {
                continue;
            }
            let changes = &run.attribute(encounter).unwrap()[label].changes;
            let mut ids = [0, 1].map(|at| graph::code_of(encounter, changes[at].node).unwrap());
            ids.sort_unstable();
            sure += 1;
            first += u32::from(ids == [(CodeKind::Diagnosis, diagnosis), (CodeKind::Treatment, treatment)]);
        }
    }
    assert!(sure >= 20, "{sure} true labels with a probability of 0.9");
    assert!(f64::from(first) >= 0.95 * f64::from(sure), "{first} of {sure}");

    let deletion = predict::deletion(
        &run,
        &dataset,
        Which::All,
        0.9,
        Bootstrap { replicates: 0, seed: 0 },
        &Job::silent(),
    )
    .unwrap();
    assert_eq!(deletion.answers, u64::from(sure));
    let change = |ranking: Ranking, codes: usize| {
        let curve = deletion.curves.iter().find(|curve| curve.ranking == ranking).unwrap();
        curve.steps[codes - 1].change.value.unwrap()
    };
    for codes in 1..=5 {
        let [attributed, attended, random] = Ranking::ALL.map(|ranking| change(ranking, codes));
        assert!(attributed < -0.5, "{codes} codes: {attributed}");
        assert!(attributed < attended && attributed < random, "{codes}: {attributed} {attended} {random}");
    }
}
