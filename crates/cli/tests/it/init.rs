//! A run that begins with the weights of another, and the task that such runs learn: a hidden code of any
//! kind.

use std::fs;

use crate::{gct, json, names, refusal, trained};

const SMALL: &str = "--steps 4 --set validate_every=2 --set batch=8 --set model.width=16";

#[test]
fn every_command_answers_for_a_hidden_code() {
    let (_guard, home) = trained("masked_code");
    let metrics = json(&home, "evaluate run --bootstrap 20");
    for name in ["accuracy", "log_loss", "accuracy_diagnosis", "accuracy_treatment", "accuracy_lab"] {
        assert!(metrics[name].is_f64(), "{name}: {metrics}");
    }
    let written = json(&home, "predict run --top 3 --out guesses.csv");
    assert_eq!(written["rows"].as_u64().unwrap(), 3 * written["encounters"].as_u64().unwrap());
    let guesses = fs::read_to_string(home.join("guesses.csv")).unwrap();
    let header =
        "subject_id,encounter_id,prediction_time,hidden_kind,hidden_code,rank,predicted_code,probability";
    assert_eq!(guesses.lines().next(), Some(header));
    for kind in ["diagnosis", "treatment", "lab"] {
        assert!(guesses.contains(&format!(",{kind},")), "{kind}");
    }
    // A guess is of the kind that is hidden.
    for line in guesses.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells[4].split('_').next(), cells[6].split('_').next(), "{line}");
    }
    let explanation = json(&home, "explain run");
    assert!(explanation["hidden"].is_u64(), "{explanation}");
    assert!(explanation["attributions"][0]["changes"].as_array().is_some_and(|changes| !changes.is_empty()));
    gct(&home, "embed run --out visits.npy --quiet").assert().success();
    gct(&home, "report run --out page.html --quiet").assert().success();
    gct(&home, "card run --out card.md --quiet").assert().success();
    let card = fs::read_to_string(home.join("card.md")).unwrap();
    assert!(card.contains("Which diagnosis, treatment or lab of an encounter was hidden"), "{card}");
    gct(&home, &format!("train --data data --task masked_code --seed 1 --out other --quiet {SMALL}"))
        .assert()
        .success();
    let compared = json(&home, "compare run other --bootstrap 20").to_string();
    assert!(compared.contains("accuracy_treatment"), "{compared}");
    let error = refusal(&home, "calibrate run");
    assert!(error.starts_with("error: the task `masked_code` cannot be calibrated"), "{error}");
}

#[test]
fn a_run_that_begins_with_another_says_so_everywhere() {
    let (_guard, home) = trained("masked_code");
    let train = format!("train --data data --task d1_m1 --init run --out fine {SMALL}");
    let trained = json(&home, &(train + " --quiet"));
    assert_eq!(trained["init"]["path"], "run");
    assert_eq!(trained["init"]["task"], "masked_code");
    assert_eq!(trained["init"]["new"], serde_json::json!(["head.weight", "head.bias"]));
    assert_eq!(trained["init"]["test_encounters"], 0);
    let said = gct(&home, &format!("train --data data --task d1_m1 --init run --out told {SMALL}"));
    let said = said.assert().success().get_output().stderr.clone();
    let said = String::from_utf8(said).unwrap();
    let known = "begins with the weights of run (masked_code)\n1,000 of 1,000 diagnoses known to the run\n";
    assert!(said.contains(known) && said.contains("begins at random: head.weight, head.bias\n"), "{said}");
    gct(&home, "card fine --out card.md --quiet").assert().success();
    let card = fs::read_to_string(home.join("card.md")).unwrap();
    let hash = trained["init"]["weights_sha256"].as_str().unwrap();
    assert!(card.contains("masked code; it learned from no encounter of the test split"), "{card}");
    assert!(card.contains(hash), "{card}");
    let config = fs::read_to_string(home.join("fine/config.toml")).unwrap();
    assert!(config.contains("init = \"run\"\n"), "{config}");
    // The run that it began with is not needed any more.
    fs::remove_dir_all(home.join("run")).unwrap();
    gct(&home, "train --out fine --resume --steps 6 --quiet").assert().success();
    gct(&home, "evaluate fine --bootstrap 0 --quiet").assert().success();
}

#[test]
fn what_cannot_be_begun_with_is_refused() {
    let (_guard, home) = trained("masked_code");
    let before = names(&home);
    let train = format!("train --data data --task d1_m1 --out fine {SMALL}");
    for (line, expected) in [
        (
            format!("{train} --init nowhere"),
            "error: cannot open nowhere: No such file or directory (os error 2)\nhint: check the spelling of the path",
        ),
        (
            format!("{train} --init data"),
            "error: data is not a run folder: it has no run.json\nhint: a run folder is made by `gct train",
        ),
        (
            format!("{train} --init run --model transformer"),
            "error: a training cannot begin with the weights of run: it is of the model gct, and transformer is to be \
             trained\nhint: give a run of the same model and width, or leave --init out to begin at random\n",
        ),
        (
            format!("{train} --init run --set model.width=24"),
            "error: a training cannot begin with the weights of run: its width is 16, and that of the model to be \
             trained 24\nhint: give a run of the same model and width",
        ),
        (
            "train --data data --task d1_m1 --out fine --model logistic --init run".into(),
            "error: setting `init`: run is not allowed; expected nothing, because logistic regression is fitted",
        ),
        (
            format!("{train} --init run --resume"),
            "error: the argument '--init <RUN>' cannot be used with '--resume'",
        ),
        (
            format!("{train} --set train_share=0"),
            "error: setting `train_share`: 0 is not allowed; expected a number above 0, up to 1, which is all of",
        ),
    ] {
        let said = refusal(&home, &line);
        assert!(said.starts_with(expected), "{line}: {said}");
    }
    assert_eq!(names(&home), before);
}

#[test]
fn trials_of_an_experiment_begin_with_a_run_of_their_split() {
    let (_guard, home) = trained("masked_code");
    let file = "title = \"t\"\ntasks = [\"label:d1_m1\"]\nmodels = [\"gct\", \"begun\"]\nsplit_seeds = [0]\n\
                [variants.begun]\nmodel = \"gct\"\nset.init = \"run-{split}\"\n[[settings]]\nset.steps = 4\n\
                set.batch = 8\nset.validate_every = 2\nset.model.width = 16\nset.train_share = 0.5\n";
    fs::write(home.join("e.toml"), file).unwrap();
    fs::rename(home.join("run"), home.join("run-0")).unwrap();
    gct(&home, "experiment e.toml --data data --out results --quiet").assert().success();
    let manifest = fs::read_to_string(home.join("results/runs/label.d1_m1-begun-0/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(manifest["init"]["path"], "run-0");
    assert!(manifest["settings"]["train_share"] == 0.5, "{manifest}");
}
