//! Names of tasks and models as users write them.

use std::fs;

use crate::{gct, home, json, refusal};

const TRAIN: &str = "train --data data --steps 3 --set batch=4 --set model.width=8 --quiet";

#[test]
fn any_spelling_makes_the_same_run_under_the_canonical_name() {
    let (_guard, home) = home();
    gct(&home, &format!("{TRAIN} --task graph_reconstruction --model gcn_p --out canonical"))
        .assert()
        .success();
    gct(&home, &format!("{TRAIN} --task Graph-Reconstruction --model GCN-P --out flags")).assert().success();
    fs::write(home.join("file.toml"), "task = \"graph-reconstruction\"\nmodel.name = \"GCN_P\"\n").unwrap();
    gct(&home, &format!("{TRAIN} --config file.toml --out file")).assert().success();
    // One and the same name twice is no contradiction.
    gct(&home, &format!("{TRAIN} --config file.toml --model gcn-p --out both")).assert().success();
    for out in ["flags", "file", "both"] {
        for file in ["config.toml", "best.safetensors", "last.safetensors"] {
            let read = |run: &str| fs::read(home.join(run).join(file)).unwrap();
            assert!(read(out) == read("canonical"), "{out}/{file}");
        }
    }
    let resumed = json(&home, "train --out flags --resume --task GRAPH-RECONSTRUCTION --model Gcn-P --quiet");
    assert_eq!((&resumed["task"], &resumed["model"]), (&"graph_reconstruction".into(), &"gcn_p".into()));
}

#[test]
fn the_name_of_a_label_alone_is_its_task() {
    let (_guard, home) = home();
    let made = json(&home, &format!("{TRAIN} --task d1_m1 --out run"));
    assert_eq!(made["task"], "label:d1_m1");
    assert!(fs::read_to_string(home.join("run/config.toml")).unwrap().contains("task = \"label:d1_m1\""));
    json(&home, "train --out run --resume --task d1_m1 --quiet");
    let settings = gct(&home, "train --show-config --data data --set task=d1_m1").assert().success();
    assert!(String::from_utf8_lossy(&settings.get_output().stdout).starts_with("task = \"label:d1_m1\""));
    assert_eq!(
        refusal(&home, "train --data data --task d1-m1 --out other"),
        "error: unknown task `d1-m1`; known: graph_reconstruction, diagnosis_treatment, masked_diagnosis, \
         readmission, mortality, masked_code, next_diagnoses, next_diagnoses:new, label:d1_m1, label:d2_m1\nhint: give one of the known names\n"
    );
    assert!(!home.join("other").exists());
}

#[test]
fn experiments_know_models_and_tasks_by_any_spelling_and_write_the_canonical_one() {
    let (_guard, home) = home();
    fs::write(
        home.join("e.toml"),
        "title = \"E\"\ntasks = [\"Diagnosis-Treatment\"]\nmodels = [\"GCT\", \"Deep\", \"own\"]\ncompare_with = \"Gct\"\n\
         split_seeds = [0]\ntest = false\n[variants.own]\nmodel = \"SHALLOW\"\n\
         [[settings]]\nmodels = [\"Gct\", \"DEEP\", \"Shallow\"]\nset.steps = 2\nset.batch = 2\nset.model.width = 8\n",
    )
    .unwrap();
    let made = json(&home, "experiment e.toml --data data --out results --quiet");
    assert_eq!(made["experiments"]["e"]["finished"], 3);
    let written = fs::read_to_string(home.join("results/e.toml")).unwrap();
    assert!(written.contains("models = [\"gct\", \"deep\", \"own\"]"), "{written}");
    assert!(written.contains("tasks = [\"diagnosis_treatment\"]"), "{written}");
    assert!(
        written.contains("compare_with = \"gct\"") && written.contains("model = \"shallow\""),
        "{written}"
    );
}
