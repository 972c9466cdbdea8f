use std::fs;
use std::path::Path;

use gct::dataset::{Source, Writer};
use gct::files::Overwrite;
use gct::record::{Code, Encounter, EncounterId, PerKind, SubjectId};
use serde_json::{Value, json};
use snapbox::str;

use super::{gct, json};

/// A dataset `data` of 200 encounters with an age, a diagnosis and a treatment.
fn data_with_context(home: &Path) {
    let code = |code: &str| Code { code: code.into(), description: None, count: 0 };
    let vocabulary = PerKind {
        context: vec![code("age=18-64"), code("age=65-")],
        diagnosis: vec![code("cough"), code("fever")],
        treatment: vec![code("rest")],
        ..PerKind::default()
    };
    let encounter = |number: u32| Encounter {
        id: EncounterId::new(format!("e{number}")),
        subject: SubjectId::new(format!("s{number}")),
        labels: vec![Some(number % 2 == 1)],
        ..Encounter::new(PerKind {
            context: vec![number % 2],
            diagnosis: vec![number / 2 % 2],
            treatment: vec![0],
            ..PerKind::default()
        })
    };
    let mut writer =
        Writer::create(&home.join("data"), Overwrite::Refuse, vocabulary, vec!["older".into()]).unwrap();
    writer.write(&(0..200).map(encounter).collect::<Vec<_>>()).unwrap();
    writer.finish(Source { kind: "by hand".into(), settings: json!({}), findings: json!({}) }).unwrap();
}

#[test]
fn every_command_knows_context() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    data_with_context(home);
    gct(home, "inspect data").assert().success().stdout_eq(str![[r#"
data: by hand data, written by gct 0.1.0

                                this dataset
encounters                               200
context codes                              2
diagnosis codes                            2
treatment codes                            1
lab codes                                  0
context codes per encounter             1.00
diagnosis codes per encounter           1.00
treatment codes per encounter           1.00
lab codes per encounter                 0.00

label   positive   known   prevalence
older        100     200      50.00 %

context   codes   encounters      share
age           2          200   100.00 %

200 subjects, 0 of them with several encounters
true edges are not known

context codes per encounter
        1 ████████████████████████████████████████████████ 200

diagnosis codes per encounter
        1 ████████████████████████████████████████████████ 200

treatment codes per encounter
        1 ████████████████████████████████████████████████ 200

lab codes per encounter
        0 ████████████████████████████████████████████████ 200

"#]]);
    assert_eq!(json(home, "inspect data")["codes"]["context"]["vocabulary"], 2);
    let leaks = json(home, "inspect data --leaks older");
    assert_eq!(leaks["best_auroc"]["kind"], "context");
    let settings = "--steps 4 --set validate_every=2 --set batch=8 --set model.width=16";
    let line = format!("train --data data --task label:older --model gct --out run --quiet {settings}");
    gct(home, &line).assert().success();
    assert!(fs::read_to_string(home.join("run/run.json")).unwrap().contains("\"context\": 2"));
    for line in [
        "evaluate run --by age --min-cell 0",
        "predict run --out predictions.parquet",
        "embed run --out codes.parquet --what codes",
        "report run --out page.html",
    ] {
        gct(home, line).assert().success();
    }
    let explained = json(home, "explain run --graph graph.svg");
    assert_eq!(explained["nodes"][1]["kind"], "context");
    assert!(fs::read_to_string(home.join("graph.svg")).unwrap().contains(">context (1)<"));
    let page = fs::read_to_string(home.join("page.html")).unwrap();
    assert!(page.contains("\"kind\":[4,4,1,1,2]"), "context is the kind 4 of the page");
    // Everybody of an age is older, or nobody: what needs both is undefined, and said to be.
    let report = json(home, "evaluate run --split all --by age --bootstrap 5");
    let groups = report["subgroups"].as_array().unwrap();
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert_eq!((&groups[0]["group"], &groups[0]["positives"]), (&"18-64".into(), &0.into()));
    assert_eq!((&groups[0]["auroc"], &groups[0]["auroc_gap"]), (&Value::Null, &Value::Null));
    assert!(groups[0]["note"].as_str().unwrap().starts_with("no positives"));
    assert!(groups[1]["accuracy_gap_interval"][0].is_f64());
}
