use std::fs;

use snapbox::str;

use crate::{gct, json, refusal, trained};

#[test]
fn lists_runs_at_any_depth() {
    let (_guard, home) = trained("graph_reconstruction");
    fs::create_dir_all(home.join("old/2025")).unwrap();
    fs::rename(home.join("run"), home.join("old/2025/first")).unwrap();
    gct(&home, "runs old").assert().success().stderr_eq("").stdout_eq(str![[r#"
run                          task   model   seed, split    steps   metric     best   at step   time
2025/first   graph_reconstruction     gct          0, 0   4 of 4    aucpr   0.[..]         [..] s

"#]]);
    let runs = json(&home, "runs");
    assert_eq!(runs.as_array().unwrap().len(), 1);
    assert_eq!(runs[0]["path"], "./old/2025/first");
    assert_eq!((&runs[0]["step"], &runs[0]["steps"]), (&4.into(), &4.into()));
}

#[test]
fn a_folder_without_runs_is_no_error() {
    let home = tempfile::tempdir().unwrap();
    gct(home.path(), "runs").assert().success().stderr_eq("").stdout_eq("no runs in .\n");
    assert_eq!(json(home.path(), "runs"), serde_json::json!([]));
    assert!(refusal(home.path(), "runs nowhere").starts_with("error: cannot read nowhere: "));
}

#[test]
fn a_run_that_cannot_be_read_is_named_below_the_others() {
    let (_guard, home) = trained("graph_reconstruction");
    let file = home.join("run/run.json");
    let manifest = fs::read_to_string(&file).unwrap();
    fs::write(&file, manifest.replace("\"schema_version\": 1", "\"schema_version\": 9")).unwrap();
    let assert = gct(&home, "runs .").assert().success().stderr_eq("");
    let text = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert!(text.contains("not listed: ./run/run.json: schema version 9"), "{text}");
    assert!(json(&home, "runs .")[0]["problem"].as_str().unwrap().contains("schema version 9"));
}
