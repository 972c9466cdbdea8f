use std::fs;

use snapbox::str;

use crate::{gct, json, names, trained};

#[test]
fn lists_predictions_and_where_the_model_looks() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "explain run --top 2").assert().success().stderr_eq("").stdout_eq(str![[r#"
no connections predicted: every pair of codes has a probability below 0.5

where the model looks: attention of block 3
[..]node[..]gives to   attention   true edge
[..] 0.[..]
[..] 0.[..]

"#]]);
    let one = gct(&home, "explain run --top 2 --block 1").assert().success();
    let text = String::from_utf8(one.get_output().stdout.clone()).unwrap();
    assert!(text.contains("where the model looks: attention of P\n"), "{text}");
}

#[test]
fn attention_is_listed_as_what_one_node_gives_to_another() {
    let (_guard, home) = trained("diagnosis_treatment");
    let explanation = json(&home, "explain run");
    let shown = gct(&home, "explain run --top 100000").assert().success();
    let text = String::from_utf8(shown.get_output().stdout.clone()).unwrap();
    let name = |node: usize| explanation["nodes"][node]["code"].as_str().unwrap();
    let matrix = explanation["blocks"][2]["attention"].as_array().unwrap();
    for (from, to) in [(0, 1), (1, 0)] {
        let weight = format!("{:.4}", matrix[from][to].as_f64().unwrap());
        let is_it = |line: &&str| line.split_whitespace().take(3).eq([name(from), name(to), &weight]);
        assert!(text.lines().any(|line| is_it(&line)), "{} {} {weight}: {text}", name(from), name(to));
    }
}

#[test]
fn says_what_each_code_does_before_where_the_model_looks() {
    let (_guard, home) = trained("diagnosis_treatment");
    let explanation = json(&home, "explain run --pairs 3");
    let attributions = explanation["attributions"].as_array().unwrap();
    let codes = explanation["nodes"].as_array().unwrap().len() - 1;
    assert_eq!(attributions.len(), 2);
    for (why, prediction) in attributions.iter().zip(explanation["predictions"].as_array().unwrap()) {
        assert_eq!((&why["what"], &why["probability"]), (&prediction["what"], &prediction["probability"]));
        let changes = why["changes"].as_array().unwrap();
        assert_eq!((changes.len(), why["pairs"].as_array().unwrap().len()), (codes, 3));
        for change in changes {
            let node = &explanation["nodes"][change["node"].as_u64().unwrap() as usize];
            assert_eq!((&node["code"], &node["kind"]), (&change["code"], &change["kind"]));
            let [change, without] = ["change", "without"].map(|key| change[key].as_f64().unwrap());
            assert!((without - why["probability"].as_f64().unwrap() - change).abs() < 1e-12);
        }
    }
    gct(&home, "explain run --top 1 --pairs 2").assert().success().stderr_eq("").stdout_eq(str![[r#"
prediction   probability   true
d1_m1             0.[..]
[..]
why d1_m1, 0.[..]: what happens when one code is left out
code[..]kind   without it    change   log-odds
[..] 0.[..]

why d1_m1, 0.[..]: what happens when two codes are left out
code[..]and   without both    change   log-odds   beyond the sum
[..] 0.[..]

why d2_m1, 0.[..]: what happens when one code is left out
code[..]kind   without it    change   log-odds
[..] 0.[..]

why d2_m1, 0.[..]: what happens when two codes are left out
code[..]and   without both    change   log-odds   beyond the sum
[..] 0.[..]

where the model looks: attention of block 3
[..]
[..]

"#]]);
}

#[test]
fn pairs_and_deletion_are_refused_where_there_are_none() {
    let (_guard, home) = trained("graph_reconstruction");
    gct(&home, "explain run --pairs 3").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: --pairs: nothing is predicted that codes could speak for
hint: leave it out

"#]]);
    gct(&home, "explain run --deletion").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: no true answer of [..] encounters has a probability of 0.9 or more
hint: train for longer, or explain one encounter

"#]]);
    for pairs in ["0", "1", "21", "x"] {
        let said = crate::refusal(&home, &format!("explain run --pairs {pairs}"));
        assert!(said.contains("expected a whole number from 2 to 20"), "{said}");
    }
    fs::write(home.join("one.jsonl"), "{\"id\": \"E1\", \"diagnosis\": [\"D_1\"]}\n").unwrap();
    let said = crate::refusal(&home, "explain run --deletion --data one.jsonl");
    assert!(said.contains("--deletion is for datasets with answers"), "{said}");
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
