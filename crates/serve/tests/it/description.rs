//! The server about itself.

use std::collections::BTreeSet;

use serde_json::json;

use crate::home::{Served, home};

#[test]
fn the_description_lists_every_route() {
    let home = home();
    let served = Served::of(&home, "graph_reconstruction");
    let description = served.client().get("/openapi.json").json();
    assert!(description["openapi"].as_str().unwrap().starts_with("3.1."), "{}", description["openapi"]);
    let listed: BTreeSet<(&str, &str)> = (description["paths"].as_object().unwrap().iter())
        .flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| (path.as_str(), method.as_str()))
        })
        .collect();
    let expected = [
        ("/healthz", "get"),
        ("/metrics", "get"),
        ("/openapi.json", "get"),
        ("/v1/embed", "post"),
        ("/v1/explain", "post"),
        ("/v1/model", "get"),
        ("/v1/predict", "post"),
    ];
    assert_eq!(listed, expected.into());
    let schemas = description["components"]["schemas"].as_object().unwrap();
    for name in ["Request", "Encounter", "Predictions", "Explanation", "Embedding", "Model", "Refusal"] {
        assert!(schemas.contains_key(name), "{name}");
    }
    assert_eq!(schemas["Encounter"]["additionalProperties"], false);
}

#[test]
fn the_model_tells_what_it_is() {
    let home = home();
    let served = Served::of(&home, "diagnosis_treatment");
    let run = home.run("diagnosis_treatment");
    let attention = |name: &str| json!({"name": name, "kind": "attention"});
    let expected = json!({
        "model": "transformer",
        "task": "diagnosis_treatment",
        "program": concat!("gct ", env!("CARGO_PKG_VERSION")),
        "labels": ["d1_m1", "d2_m1"],
        "calibrated": null,
        "codes": {
            "diagnosis": run.vocabulary().diagnosis.len(),
            "treatment": run.vocabulary().treatment.len(),
            "lab": run.vocabulary().lab.len(),
        },
        "width": 16,
        "layers": [attention("block 1"), attention("block 2"), attention("block 3")],
    });
    assert_eq!(served.client().get("/v1/model").json(), expected);
    assert_eq!(served.client().get("/healthz").json(), json!({"status": "ok"}));
    let page = served.client().get("/");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.text().contains("openapi.json"));
}
