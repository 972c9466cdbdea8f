use gct::graph::{LayerKind, NodeKind, NodeRanges};
use gct::predict::Explainer;
use gct::question::Hide;
use gct::record::{CodeKind, Encounter, PerKind};
use gct::run::Run;
use gct_serve::shape::{Answer, Attribution, Embeddings, Explanations, Predictions, UnknownCode};
use serde_json::{Value, json};

use crate::home::{RUNS, Served, by_codes, home, run_with_context};

fn request(run: &Run, encounters: &[Encounter]) -> Value {
    json!({"encounters": encounters.iter().map(|encounter| by_codes(run, encounter)).collect::<Vec<_>>()})
}

/// What the library says of an encounter.
fn expected(explainer: &Explainer<'_>, encounter: &Encounter, hide: Hide) -> Vec<Answer> {
    let predictor = explainer.predictor();
    let sample = predictor.question().sample(encounter, hide);
    let logits = predictor.answers(&[sample]).unwrap();
    let answers = explainer.answers(&sample, &logits[0]);
    answers.into_iter().take(30).map(Into::into).collect()
}

#[test]
fn predictions_are_those_of_the_library_to_the_bit() {
    let home = home();
    for (task, model) in RUNS {
        let (run, served) = (home.run(task), Served::of(&home, task));
        let (explainer, encounters) = (Explainer::new(&run).unwrap(), home.encounters(&run, 40));
        let answer = served.client().post("/v1/predict", &request(&run, &encounters));
        assert_eq!(answer.status, 200, "{answer:?}");
        let got: Predictions = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(got.predictions.len(), 40);
        for (prediction, encounter) in got.predictions.iter().zip(&encounters) {
            assert_eq!(
                prediction.answers,
                expected(&explainer, encounter, Hide::ByEncounter),
                "{task} {model}"
            );
            assert_eq!(prediction.unknown, []);
        }
    }
}

#[test]
fn embeddings_are_those_of_the_library_to_the_bit() {
    let home = home();
    for (task, _) in RUNS {
        let (run, served) = (home.run(task), Served::of(&home, task));
        let encounters = home.encounters(&run, 20);
        let answer = served.client().post("/v1/embed", &request(&run, &encounters));
        let got: Embeddings = serde_json::from_slice(&answer.body).unwrap();
        let vectors = run.embed(&encounters).unwrap();
        let got: Vec<Vec<f32>> = got.embeddings.into_iter().map(|embedding| embedding.vector).collect();
        assert_eq!(got, vectors, "{task}");
        assert_eq!(got[0].len(), run.settings().width());
    }
}

#[test]
fn explanations_have_the_layers_that_the_model_has() {
    let home = home();
    let names = |task: &str| match task {
        "graph_reconstruction" => vec!["P", "block 2", "block 3", "answer"],
        "masked_diagnosis" | "masked_code" => vec!["P", "block 2", "block 3"],
        "diagnosis_treatment" => vec!["block 1", "block 2", "block 3"],
        _ => vec![],
    };
    for (task, _) in RUNS {
        let (run, served) = (home.run(task), Served::of(&home, task));
        let (explainer, encounters) = (Explainer::new(&run).unwrap(), home.encounters(&run, 5));
        let answer = served.client().post("/v1/explain", &request(&run, &encounters));
        let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
        let model = served.client().get("/v1/model").json();
        for (explanation, encounter) in got.explanations.iter().zip(&encounters) {
            let whole = run.explain(encounter).unwrap();
            let nodes = explanation.nodes.len();
            assert_eq!(nodes, NodeRanges::of(encounter).len());
            assert_eq!(
                (explanation.nodes[0].kind, explanation.nodes[0].code.as_str()),
                (NodeKind::Visit, "visit")
            );
            assert_eq!(explanation.hidden, whole.structure.hidden());
            assert_eq!(explanation.edges, None);
            let why: Vec<Attribution> = whole.attributions.iter().cloned().map(Into::into).collect();
            assert_eq!(explanation.attributions.as_ref(), Some(&why));
            assert!(
                why.iter().all(|why| why.changes.len() >= nodes - 3),
                "the visit, and what is asked about"
            );
            assert_eq!(explanation.answers, expected(&explainer, encounter, Hide::ByEncounter));
            assert!(explanation.nodes.iter().all(|node| !node.code.contains("hidden")), "codes are codes");
            let layers: Vec<&str> = explanation.layers.iter().map(|layer| layer.name.as_str()).collect();
            assert_eq!(layers, names(task));
            let matrices = whole.structure.layers.iter().map(|layer| &layer.matrix);
            for (layer, matrix) in explanation.layers.iter().zip(matrices.chain(&whole.connected)) {
                assert_eq!(&layer.matrix.concat(), matrix, "{task} {}", layer.name);
            }
            for layer in explanation.layers.iter().filter(|layer| layer.kind == LayerKind::Probability) {
                let cell = |i: usize, j: usize| layer.matrix[i][j];
                assert!((0..nodes).all(|i| cell(i, i) == 0.0 && (0..i).all(|j| cell(i, j) == cell(j, i))));
            }
        }
        let listed: Vec<&str> =
            model["layers"].as_array().unwrap().iter().map(|layer| layer["name"].as_str().unwrap()).collect();
        assert_eq!(listed, names(task));
    }
}

#[test]
fn an_encounter_of_very_many_codes_has_no_reasons() {
    let home = home();
    let (run, served) = (home.run("diagnosis_treatment"), Served::of(&home, "diagnosis_treatment"));
    let labs = run.vocabulary().lab.iter().map(|code| code.code.as_str());
    for (count, has_reasons) in [(200, true), (201, false)] {
        let labs: Vec<&str> = labs.clone().take(count).collect();
        let answer = served.client().post("/v1/explain", &json!({"encounters": [{"lab": labs}]}));
        let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
        let why = &got.explanations[0].attributions;
        assert_eq!(why.as_ref().map(|why| why[0].changes.len()), has_reasons.then_some(count));
    }
}

#[test]
fn the_hidden_diagnosis_can_be_chosen() {
    let home = home();
    let (run, served) = (home.run("masked_diagnosis"), Served::of(&home, "masked_diagnosis"));
    let explainer = Explainer::new(&run).unwrap();
    let encounter =
        home.encounters(&run, 50).into_iter().find(|encounter| encounter.codes.diagnosis.len() >= 3).unwrap();
    for (position, id) in encounter.codes.diagnosis.iter().enumerate() {
        let code = &run.vocabulary().diagnosis[*id as usize].code;
        let mut asked = by_codes(&run, &encounter);
        asked["hide"] = code.as_str().into();
        let answer = served.client().post("/v1/explain", &json!({"encounters": [asked]}));
        let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
        let [explanation] = &got.explanations[..] else { panic!("one was asked about") };
        assert_eq!(explanation.hidden, Some(1 + position));
        assert_eq!(explanation.answers, expected(&explainer, &encounter, Hide::Position(position)));
        let truth: Vec<&str> = (explanation.answers.iter())
            .filter(|answer| answer.truth == Some(true))
            .map(|answer| answer.what.as_str())
            .collect();
        assert_eq!(truth, [code]);
    }
}

#[test]
fn a_hidden_code_of_any_kind_can_be_chosen() {
    let home = home();
    let (run, served) = (home.run("masked_code"), Served::of(&home, "masked_code"));
    let explainer = Explainer::new(&run).unwrap();
    let encounter = home.encounters(&run, 5).swap_remove(0);
    let codes = CodeKind::OF_PAPER.into_iter().flat_map(|kind| {
        encounter.codes[kind].iter().map(move |id| (kind, *id as usize)).collect::<Vec<_>>()
    });
    for (position, (kind, id)) in codes.enumerate() {
        let code = &run.vocabulary()[kind][id].code;
        let mut asked = by_codes(&run, &encounter);
        asked["hide"] = code.as_str().into();
        let answer = served.client().post("/v1/explain", &json!({"encounters": [asked]}));
        let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(got.explanations[0].hidden, Some(1 + position), "there is no context");
        assert_eq!(got.explanations[0].answers, expected(&explainer, &encounter, Hide::Position(position)));
    }
}

#[test]
fn codes_that_the_run_does_not_know_are_told_and_left_out() {
    let home = home();
    let (run, served) = (home.run("graph_reconstruction"), Served::of(&home, "graph_reconstruction"));
    let encounter = &home.encounters(&run, 1)[0];
    let known = by_codes(&run, encounter);
    let mut asked = known.clone();
    asked["diagnosis"].as_array_mut().unwrap().extend([json!("no such code"), json!("no such code")]);
    asked["lab"].as_array_mut().unwrap().insert(0, known["diagnosis"][0].clone());
    // The order does not matter, and neither does how often a code is told.
    let twice =
        asked["treatment"].as_array().unwrap().iter().rev().cloned().chain([known["treatment"][0].clone()]);
    asked["treatment"] = twice.collect();
    let answer = served.client().post("/v1/predict", &json!({"encounters": [known, asked]}));
    let got: Predictions = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(got.predictions[0].answers, got.predictions[1].answers);
    assert_eq!(got.predictions[0].unknown, []);
    let unknown = |kind, code: &str| UnknownCode { kind: NodeKind::Code(kind), code: code.into() };
    let expected = [
        unknown(CodeKind::Diagnosis, "no such code"),
        unknown(CodeKind::Lab, known["diagnosis"][0].as_str().unwrap()),
    ];
    assert_eq!(got.predictions[1].unknown, expected);
    let counted = served.client().get("/metrics");
    assert!(counted.text().contains("gct_unknown_codes_total 2\n"), "{}", counted.text());
}

#[test]
fn context_is_one_more_list_of_codes() {
    let home = tempfile::tempdir().unwrap();
    let run = run_with_context(home.path());
    let codes = |age: u32| PerKind { context: vec![age], diagnosis: vec![1], ..PerKind::default() };
    let expected = run.predict(&[0, 1].map(|age| Encounter::new(codes(age)))).unwrap();
    assert_ne!(expected[0], expected[1], "the model hears of it");
    let explainer = Explainer::new(&run).unwrap();
    let expected = [0, 1].map(|age| {
        let encounter = Encounter::new(codes(age));
        self::expected(&explainer, &encounter, Hide::ByEncounter)
    });
    let served = Served::with(Run::open(run.path()).unwrap(), |_| {}, None);
    let asked = json!({"encounters": [
        {"context": ["age=18-64"], "diagnosis": ["fever"]},
        {"context": ["age=65-", "sex=?"], "diagnosis": ["fever"]},
    ]});
    let answer = served.client().post("/v1/predict", &asked);
    let got: Predictions = serde_json::from_slice(&answer.body).unwrap();
    for (prediction, expected) in got.predictions.iter().zip(&expected) {
        assert_eq!(&prediction.answers, expected);
    }
    let unknown = UnknownCode { kind: NodeKind::Code(CodeKind::Context), code: "sex=?".into() };
    assert_eq!(got.predictions[1].unknown, [unknown]);
    let answer = served.client().post("/v1/explain", &asked);
    let got: Explanations = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(got.explanations[0].nodes[1].kind, NodeKind::Code(CodeKind::Context));
    assert_eq!(served.client().get("/v1/model").json()["codes"]["context"], 2);
}

#[test]
fn values_go_into_the_buckets_of_the_run() {
    let home = tempfile::tempdir().unwrap();
    let served = Served::with(run_with_context(home.path()), |_| {}, None);
    // A lab is connected with the visit by way of a treatment.
    let encounter = |labs: Value| json!({"diagnosis": ["fever"], "treatment": ["rest"], "lab": labs});
    let asked = json!({"encounters": [
        encounter(json!([{"code": "K", "value": 4}])),
        encounter(json!(["K//1-of-2"])),
        encounter(json!([{"value": 4.01, "code": "K"}, {"code": "Na", "value": 140}])),
    ]});
    let answer = served.client().post("/v1/predict", &asked);
    let got: Predictions = serde_json::from_slice(&answer.body).unwrap();
    let [at_bound, by_code, over] = &got.predictions[..] else { unreachable!("as many as were asked for") };
    assert_eq!(at_bound.answers, by_code.answers);
    assert_ne!(at_bound.answers, over.answers);
    assert!(at_bound.unknown.is_empty());
    assert_eq!(over.unknown, [UnknownCode { kind: NodeKind::Code(CodeKind::Lab), code: "Na".into() }]);
}

#[test]
fn an_encounter_without_codes_is_a_visit() {
    let home = home();
    for (task, _) in RUNS {
        let (run, served) = (home.run(task), Served::of(&home, task));
        let empty = json!({"encounters": [{}, {"diagnosis": ["?"]}]});
        for path in ["/v1/predict", "/v1/explain", "/v1/embed"] {
            let answer = served.client().post(path, &empty);
            if task.starts_with("masked_") {
                let (status, error, _) = answer.refusal();
                assert_eq!(status, 422);
                assert!(error.starts_with("encounters[0] has no code that may be hidden"), "{error}");
                continue;
            }
            assert_eq!(answer.status, 200, "{task} {path} {answer:?}");
        }
        let explainer = Explainer::new(&run).unwrap();
        let none = Encounter::new(PerKind::default());
        if !task.starts_with("masked_") {
            let answer = served.client().post("/v1/predict", &empty);
            let got: Predictions = serde_json::from_slice(&answer.body).unwrap();
            assert_eq!(got.predictions[0].answers, expected(&explainer, &none, Hide::ByEncounter));
        }
        let nothing = served.client().post("/v1/predict", &json!({"encounters": []}));
        assert_eq!(nothing.json(), json!({"predictions": []}));
    }
}
