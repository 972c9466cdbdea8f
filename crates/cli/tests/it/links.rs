use std::fs;

use snapbox::str;

use crate::{gct, json, names, refusal, trained};

/// The rows of a CSV file, without its header.
fn rows(text: &str) -> Vec<Vec<String>> {
    text.lines().skip(1).map(|row| row.split(',').map(str::to_owned).collect()).collect()
}

#[test]
fn writes_a_row_for_each_pair_of_codes_of_a_run() {
    let (_guard, home) = trained("graph_reconstruction");
    let written = json(&home, "links run --split all --min-support 3 --out links.csv");
    assert_eq!((&written["strength"], &written["encounters"]), (&"probability".into(), &300.into()));
    let text = fs::read_to_string(home.join("links.csv")).unwrap();
    let header = text.lines().next().unwrap();
    assert_eq!(
        header,
        "kind,cause,cause_description,effect,effect_description,strength,low,high,forward,backward,\
         encounters,edges_known,edges"
    );
    let rows = rows(&text);
    assert_eq!(written["links"], rows.len());
    let number = |row: &[String], column: usize| row[column].parse::<f64>().unwrap();
    for row in &rows {
        assert!(number(row, 10) >= 3.0 && row[10] == row[11], "true edges are known everywhere: {row:?}");
        assert!(number(row, 6) <= number(row, 5) && number(row, 5) <= number(row, 7), "{row:?}");
        assert_eq!((&row[8], row[9].as_str()), (&row[5], ""), "one direction");
    }
    assert!(rows.is_sorted_by_key(|row| row[0] == "treatment-lab"), "diagnoses first");
    // The links on the page are the same.
    let top = json(&home, "links run --split all --min-support 3 --top 2 --out top.csv");
    assert_eq!(top["links"], 4, "two of each kind");
    gct(&home, "links run --out links.csv").assert().code(2);
    gct(&home, "links run --out links.csv --force --quiet").assert().success();
}

#[test]
fn counts_a_dataset_and_a_table_alike() {
    let (_guard, home) = trained("d1_m1");
    gct(&home, "split data --out split.parquet").assert().success();
    gct(&home, "prior data --out prior.parquet").assert().success();
    for by in ["association", "conditional", "explained"] {
        let written = json(&home, &format!("links data --by {by} --out {by}.parquet"));
        assert_eq!((&written["strength"], &written["encounters"]), (&by.into(), &300.into()));
    }
    let error = refusal(&home, "links prior.parquet --by explained --out table.csv");
    assert!(error.contains("conditional or association"), "{error}");
    let of_table = json(&home, "links prior.parquet --min-support 4 --out table.csv");
    let prior = json(&home, "prior data");
    assert_eq!(of_table["encounters"], prior["training_encounters"]);
    gct(&home, "links prior.parquet --top 1 --min-support 4 --out -").assert().success().stdout_eq(str![[
        r#"
{"kind":"diagnosis-treatment","cause":"[..]","cause_description":null,"effect":"[..]",[..]}
{"kind":"treatment-lab","cause":"[..]","cause_description":null,"effect":"[..]",[..]}

"#
    ]]);
    // Attention has two directions.
    json(&home, "links run --split all --out attention.csv");
    let attention = rows(&fs::read_to_string(home.join("attention.csv")).unwrap());
    let both = |row: &Vec<String>| [5, 8, 9].map(|column: usize| row[column].parse::<f64>().unwrap());
    assert!(attention.iter().map(both).all(|[mean, there, back]| (mean - (there + back) / 2.0).abs() < 1e-6));
}

#[test]
fn what_does_not_apply_is_refused() {
    let (_guard, home) = trained("graph_reconstruction");
    for (line, expected) in [
        ("links run --by association --out links.csv", "--by is for counts"),
        ("links data --split test --out links.csv", "--split is for runs"),
        ("links data --out links.txt", "must end in .parquet or .csv or .jsonl"),
        ("links nothing --out links.csv", "nothing"),
    ] {
        let error = refusal(&home, line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    assert_eq!(names(&home), ["data", "run"]);
}

#[test]
fn links_are_compared_with_the_true_edges() {
    let (_guard, home) = trained("graph_reconstruction");
    let compared = json(&home, "evaluate run --split all --links true --min-support 3");
    let candidates = compared["candidates"].as_f64().unwrap();
    assert!(
        (compared["chance"].as_f64().unwrap() - compared["positives"].as_f64().unwrap() / candidates).abs()
            < 1e-12
    );
    let rules: Vec<&str> =
        compared["rules"].as_array().unwrap().iter().map(|rule| rule["rule"].as_str().unwrap()).collect();
    let expected = ["probability", "p(treatment|diagnosis)", "p(diagnosis|treatment)", "association"];
    assert_eq!(rules, expected);
    gct(&home, "evaluate run --split all --links true --min-support 3").assert().success().stdout_eq(str![[
        r#"
links of gct on graph_reconstruction beside the true edges, 300 encounters of all
[..]
[..] pairs of a diagnosis and a treatment of the reference in at least 3 encounters each, [..]
[..] treatments in an encounter with a diagnosis of the reference

by [..] average precision [..] precision at 100   first in encounter[..]
probability [..]
p(treatment|diagnosis) [..]
p(diagnosis|treatment) [..]
association [..]
chance [..]
Intervals (95 %) of the average precision are over diagnoses, in encounters over subjects.

"#
    ]]);
}

#[test]
fn a_list_of_known_links_is_read_by_codes() {
    let (_guard, home) = trained("graph_reconstruction");
    json(&home, "links run --split all --min-support 8 --out links.csv");
    let links = rows(&fs::read_to_string(home.join("links.csv")).unwrap());
    // The weakest candidates are the reference: chance would do better.
    let of_kind: Vec<_> = links.iter().filter(|row| row[0] == "diagnosis-treatment").collect();
    let mut list = String::from("treatment,note,diagnosis\n");
    for row in of_kind.iter().rev().take(3) {
        list += &format!("{},,{}\n", row[3], row[1]);
    }
    list += &format!("{},,no such diagnosis\nno such treatment,,{}\n", of_kind[0][3], of_kind[0][1]);
    fs::write(home.join("list.csv"), list).unwrap();
    let compared = json(&home, "evaluate run --split all --min-support 8 --links list.csv");
    assert_eq!((&compared["known_pairs"], &compared["positives"]), (&3.into(), &3.into()));
    let reference = &compared["reference"];
    assert_eq!(reference["rows"], 5);
    assert_eq!((&reference["unknown_diagnoses"], &reference["unknown_treatments"]), (&1.into(), &1.into()));
}

#[test]
fn a_list_that_cannot_be_used_is_refused() {
    let (_guard, home) = trained("graph_reconstruction");
    for (text, expected) in [
        ("diagnosis,drug\nD_1,T_1\n", "column `treatment`: expected text, found no such column"),
        ("code,treatment\nD_1,T_1\n", "column `diagnosis`: expected text, found no such column"),
        ("diagnosis,treatment\n", "column `diagnosis`: expected a row per link, found no row"),
        ("diagnosis,treatment\nD_1,T_1\nD_1,\n", "row 2: column `treatment`: is empty"),
        ("diagnosis,treatment\nI10,aspirin\n", "a diagnosis and a treatment that the run knows"),
    ] {
        fs::write(home.join("list.csv"), text).unwrap();
        let error = refusal(&home, "evaluate run --links list.csv");
        assert!(error.contains(expected), "{text}: {error}");
    }
    let error = refusal(&home, "evaluate run --split all --links true --min-support 1000");
    assert!(error.contains("a pair that at least 1000 encounters have"), "{error}");
    let error = refusal(&home, "evaluate run --links true --by sex");
    assert!(error.contains("--by"), "{error}");
}
