use std::fs;

use snapbox::str;

use crate::{gct, json, names, trained};

#[test]
fn lists_predictions_and_the_strongest_links() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "explain run --top 2").assert().success().stderr_eq("").stdout_eq(str![[r#"
no connections predicted: every pair of codes has a probability below 0.5

attention of block 3, the mean of both ways
from       to   attention   true
T_329    L_83      0.[..]     no
visit   D_276      0.[..]    yes

"#]]);
    let one = gct(&home, "explain run --top 2 --block 1").assert().success();
    let text = String::from_utf8(one.get_output().stdout.clone()).unwrap();
    assert!(text.contains("attention of P, the mean of both ways"), "{text}");
}

#[test]
fn the_attention_of_each_node_sums_to_one() {
    let (_guard, home) = trained("graph_reconstruction");
    let explanation = json(&home, "explain run");
    let nodes = explanation["nodes"].as_array().unwrap().len();
    let blocks = explanation["blocks"].as_array().unwrap();
    assert_eq!(blocks.len(), 3);
    for block in blocks {
        let rows = block["attention"].as_array().unwrap();
        assert_eq!(rows.len(), nodes);
        for row in rows {
            let sum: f64 = row.as_array().unwrap().iter().map(|cell| cell.as_f64().unwrap()).sum();
            assert!((sum - 1.0).abs() < 1e-5, "{}: {row}", block["name"]);
        }
    }
}

#[test]
fn draws_pictures_and_replaces_none() {
    let (_guard, home) = trained("graph_reconstruction");
    let explanation = json(&home, "explain run --graph graph.svg --bars bars.svg");
    assert_eq!(explanation["links_left_out"], 0);
    for picture in ["graph.svg", "bars.svg"] {
        assert!(fs::read_to_string(home.join(picture)).unwrap().starts_with("<svg"));
    }
    gct(&home, "explain run --graph graph.svg").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: graph.svg already exists
hint: choose another path, or replace it with --force

"#]]);
    gct(&home, "explain run --graph graph.svg --force").assert().success();
    assert_eq!(names(&home), ["bars.svg", "data", "graph.svg", "run"]);
}

#[test]
fn a_hidden_diagnosis_is_marked_and_guessed() {
    let (_guard, home) = trained("masked_diagnosis");
    let explanation = json(&home, "explain run");
    let hidden = explanation["hidden"].as_u64().unwrap() as usize;
    let codes = explanation["nodes"].as_array().unwrap().iter().map(|node| node["code"].as_str().unwrap());
    let marked = codes.enumerate().filter(|(_, code)| code.ends_with(" (hidden)"));
    assert_eq!(marked.map(|(index, _)| index).collect::<Vec<_>>(), [hidden]);
    assert!(explanation["predictions"].as_array().unwrap().len() >= 5);
}
