use std::fs;
use std::path::Path;

use gct::dataset::{Source, Writer};
use gct::files::Overwrite;
use gct::record::{Code, Encounter, EncounterId, PerKind, SubjectId};
use snapbox::str;

use crate::{gct, home, json, refusal};

#[test]
fn shows_table_1_beside_the_papers_labels_histograms_and_the_ceiling() {
    let (_home, home) = home();
    gct(&home, "inspect data").assert().success().stderr_eq("").stdout_eq(str![[r#"
data: synthetic data, written by gct [..]

                                this dataset   the paper's
encounters                               300        50,000
diagnosis codes                        1,000         1,000
treatment codes                        1,000         1,000
lab codes                              1,000         1,000
diagnosis codes per encounter         [..]          7.93
treatment codes per encounter        [..]         14.59
lab codes per encounter              [..]         21.31

label   positive   known   prevalence
d1_m1[..]300[..]%
d2_m1[..]300[..]%

300 subjects, 0 of them with several encounters
true edges are known in 300 encounters, [..] each besides the visit's

diagnosis codes per encounter
...
treatment codes per encounter
...
lab codes per encounter
...
graph reconstruction by                            AUCPR    AUROC   hidden AUCPR   hidden AUROC   encounters
ceiling, given the whole encounter                0.[..]
ceiling, pair by pair                             0.[..]
conditional probabilities of the training split   0.[..]
the kinds of the two codes alone                  0.[..]
the paper's GCT                                   0.5965   0.8931
The first row is the best that any model can do, estimated by sampling.
Hidden: only diagnosis-treatment and treatment-lab pairs.

diagnosis-treatment classification by    AUCPR    AUROC   encounters
ceiling, given the whole encounter     [..]
the paper's GCT                         0.8671   0.9600

masked diagnosis by           accuracy   encounters
ceiling, at least             [..]
the same without labs         [..]
the most frequent diagnosis   [..]
the paper's GCT                 [..]
The first row is a rule that approximates the chance of each diagnosis: the best rule is at least as good.

"#]]);
}

#[test]
fn json_agrees_with_what_synth_said() {
    let home = tempfile::tempdir().unwrap();
    let made = json(home.path(), "synth --out data --encounters 250");
    let seen = json(home.path(), "inspect data");
    for key in [
        "encounters",
        "raw_encounters",
        "diagnoses_per_encounter",
        "treatments_per_encounter",
        "labs_per_encounter",
        "label_prevalence",
        "ceiling",
        "ceiling_joint",
        "prior",
        "kinds",
        "diagnosis_treatment",
        "masked_diagnosis",
    ] {
        assert_eq!(seen[key], made[key], "{key}");
    }
    let histogram: Vec<u64> = serde_json::from_value(seen["codes"]["lab"]["histogram"].clone()).unwrap();
    assert_eq!(histogram.iter().sum::<u64>(), 250);
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let (_home, home) = home();
    let script = "\"$0\" inspect data | true; exit ${PIPESTATUS[0]}";
    let status = std::process::Command::new("bash")
        .args(["-c", script])
        .arg(snapbox::cmd::cargo_bin!("gct"))
        .current_dir(&home)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_cut_off_file_is_named() {
    let (_home, home) = home();
    let file = home.join("data/encounters/part-00000.parquet");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    gct(&home, "inspect data").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: data/encounters/part-00000.parquet is damaged: cut off, or not a Parquet file ([..])
hint: copy the folder again from where it came, or make it again

"#]]);
}

#[test]
fn verify_says_what_it_verified() {
    let (_home, home) = home();
    gct(&home, "inspect data --verify").assert().success().stderr_eq("").stdout_eq(str![[r#"
data: every file is as it was written, and every row is valid

file  [..]   bytes  [..]SHA-256
encounters/part-00000.parquet   [..]
vocabulary.parquet              [..]

[..] bytes and 300 encounters in [..] s

"#]]);
    let report = json(&home, "inspect data --verify");
    assert_eq!((&report["verified"], &report["encounters"]), (&true.into(), &300.into()));
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(home.join("data/dataset.json")).unwrap()).unwrap();
    assert_eq!(report["files"], manifest["files"]);
    assert_eq!(report["sha256"], manifest["files"]["encounters/part-00000.parquet"]["sha256"]);
    gct(&home, "inspect data --verify --leaks d1_m1").assert().code(2).stdout_eq("");
}

#[test]
fn verify_names_the_file_in_which_a_byte_was_flipped() {
    let (_home, home) = home();
    for name in ["encounters/part-00000.parquet", "vocabulary.parquet"] {
        let file = home.join("data").join(name);
        let whole = fs::read(&file).unwrap();
        // In the beginning, in the data, and in the footer.
        for position in [5, whole.len() / 3, whole.len() - 100] {
            let mut flipped = whole.clone();
            flipped[position] ^= 0x20;
            fs::write(&file, &flipped).unwrap();
            let said = gct(&home, "inspect data --verify").assert().code(2).stdout_eq("");
            let said = String::from_utf8(said.get_output().stderr.clone()).unwrap();
            assert!(said.starts_with(&format!("error: data/{name}")) && said.contains("hint: "), "{said}");
        }
        fs::write(&file, &whole).unwrap();
    }
    gct(&home, "inspect data --verify").assert().success();
    // dataset.json has no hash, but its counts are compared.
    let manifest = fs::read_to_string(home.join("data/dataset.json")).unwrap();
    for (from, to) in
        [("\"encounters\": 300", "\"encounters\": 301"), ("\"with_edges\": 300", "\"with_edges\": 30")]
    {
        assert!(manifest.contains(from), "{manifest}");
        fs::write(home.join("data/dataset.json"), manifest.replace(from, to)).unwrap();
        gct(&home, "inspect data --verify").assert().code(2).stdout_eq("");
    }
}

/// A dataset `planted` of 600 encounters. In one of 8 the label `died` is true, and so is the treatment
/// `RESUS`; in the others is `home`, but in one of 5. The label `again` is as frequent and depends on
/// nothing.
fn plant_a_leak(home: &Path) {
    let code = |code: &str, description: Option<&str>| Code {
        code: code.into(),
        description: description.map(Into::into),
        count: 0,
    };
    let vocabulary = PerKind {
        diagnosis: (0..20).map(|number| code(&format!("D{number}"), None)).collect(),
        treatment: vec![code("home", None), code("RESUS\u{1b}[31m", Some("resuscitation"))],
        ..PerKind::default()
    };
    let labels = vec!["died".to_owned(), "again".to_owned()];
    let mut writer = Writer::create(&home.join("planted"), Overwrite::Refuse, vocabulary, labels).unwrap();
    let encounter = |number: u32| {
        // Any mixing of the bits makes numbers that have nothing to do with the others.
        let mixed =
            |salt: u32| (number ^ salt).wrapping_mul(2_654_435_761).rotate_left(11).wrapping_mul(salt) >> 9;
        let died = number.is_multiple_of(8);
        let treatment = if died {
            vec![1]
        } else if number.is_multiple_of(5) {
            vec![]
        } else {
            vec![0]
        };
        Encounter {
            id: EncounterId::new(format!("e{number}")),
            subject: SubjectId::new(format!("s{number}")),
            labels: vec![(number % 20 != 1).then_some(died), Some(mixed(0xc2b3).is_multiple_of(8))],
            ..Encounter::new(PerKind {
                diagnosis: vec![mixed(77) % 10, 10 + mixed(0x9e37) % 10],
                treatment,
                lab: vec![],
                ..PerKind::default()
            })
        }
    };
    writer.write(&(0..600).map(encounter).collect::<Vec<_>>()).unwrap();
    let (kind, nothing) = ("events".into(), serde_json::json!({}));
    writer.finish(Source { kind, settings: nothing.clone(), findings: nothing }).unwrap();
}

#[test]
fn leaks_are_listed_with_their_counts_the_strongest_first() {
    let home = tempfile::tempdir().unwrap();
    plant_a_leak(home.path());
    gct(home.path(), "inspect planted --leaks died").assert().success().stderr_eq("").stdout_eq(str![[r#"
label died, training split: 474 encounters, known in 452, positive in 61 (13.50 %)

code                                 kind         gives away   encounters   positive   precision   coverage   LR at least    AUROC    AUCPR
RESUS[..]u001b[31m resuscitation   treatment   positive with it           61         61    100.00 %   100.00 %         101.8   1.0000   1.0000
home                            treatment   negative with it          304          0      0.00 %     0.00 %          12.3   0.8887   0.4122

2 codes of 22 give it away
This is a list to look at, not a test: is each code known before the label is?
best AUROC of one code alone: 1.0000, RESUS[..]u001b[31m
best AUCPR of one code alone: 1.0000, RESUS[..]u001b[31m

"#]]);
}

#[test]
fn leaks_as_json_have_every_field_and_as_many_as_top_says() {
    let home = tempfile::tempdir().unwrap();
    plant_a_leak(home.path());
    let found = json(home.path(), "inspect planted --leaks label:died --top 1");
    assert_eq!(found["leaks_found"], 2);
    let [leak] = &found["leaks"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!(leak["code"], "RESUS\u{1b}[31m");
    assert_eq!(leak["kind"], "treatment");
    assert_eq!(leak["description"], "resuscitation");
    assert_eq!(leak["present"], true);
    assert_eq!(leak["value"], true);
    for field in ["precision", "coverage", "auroc", "aucpr"] {
        assert_eq!(leak[field], 1.0, "{field}");
    }
    for field in ["encounters", "positive"] {
        assert_eq!(leak[field], found["positive"], "{field}");
    }
    assert!((leak["likelihood_ratio"].as_f64().unwrap() - 101.784).abs() < 0.001, "{leak}");
    for best in ["best_auroc", "best_aucpr"] {
        assert_eq!(found[best]["code"], leak["code"], "{best}");
    }
}

/// The split of the other commands is the one that is counted.
#[test]
fn leaks_are_counted_on_the_training_split() {
    let home = tempfile::tempdir().unwrap();
    plant_a_leak(home.path());
    for flags in ["", " --split-seed 3", " --stratify died"] {
        let found = json(home.path(), &format!("inspect planted --leaks died{flags}"));
        let split = json(home.path(), &format!("split planted{flags}"));
        assert_eq!(found["training_encounters"], split["train"]["encounters"], "{flags}");
        assert_eq!(found["base_rate"], split["train"]["label_prevalence"]["died"], "{flags}");
    }
}

#[test]
fn patients_with_several_visits_have_the_ceiling_of_later() {
    let home = tempfile::tempdir().unwrap();
    let line = "synth --preset appendix --visits 3 --encounters 2000 --out data";
    gct(home.path(), line).assert().success();
    let shown = gct(home.path(), "inspect data").assert().success().get_output().stdout.clone();
    let shown = String::from_utf8(shown).unwrap();
    let later = shown.find("label later by").expect("a table of its own");
    snapbox::assert_data_eq!(
        &shown[later..],
        str![[r#"
label later by                           AUCPR    AUROC   encounters
ceiling, given all earlier encounters   [..]
d1 and m1 in an earlier encounter       [..]
d1 in the encounter itself              [..]

next diagnoses by                         recall@10   recall@20   recall@30    AUCPR   encounters
ceiling, drawn after the encounter        [..]
those it has already, then the frequent   [..]

"#]]
    );
    let report = json(home.path(), "inspect data");
    assert!(report["subjects_with_several_encounters"].as_u64() > Some(200), "{report}");
    for path in [
        "/later/aucpr",
        "/later/auroc",
        "/later/encounters",
        "/later/codes/aucpr",
        "/later/visit/auroc",
        "/next_diagnoses/recall@20",
        "/next_diagnoses/repeated/aucpr",
    ] {
        assert!(report.pointer(path).is_some_and(serde_json::Value::is_number), "{path}: {report:#}");
    }
    let (_home, one) = self::home();
    assert!(json(&one, "inspect data").get("later").is_none(), "the paper's patients have no such label");
}

#[test]
fn a_label_that_depends_on_nothing_has_no_leak() {
    let home = tempfile::tempdir().unwrap();
    plant_a_leak(home.path());
    gct(home.path(), "inspect planted --leaks again").assert().success().stderr_eq("").stdout_eq(str![[r#"
label again, training split: 474 encounters, known in 474, positive in 53 (11.18 %)

no code of 22 gives it away
best AUROC of one code alone: 0.5433, D2
best AUCPR of one code alone: 0.[..], D[..]

"#]]);
}

#[test]
fn leaks_without_small_counts_are_named_alone() {
    let home = tempfile::tempdir().unwrap();
    plant_a_leak(home.path());
    let found = json(home.path(), "inspect planted --leaks died --min-cell 40");
    assert!(found["positive"].is_u64(), "{found}");
    gct(home.path(), "inspect planted --leaks died --min-cell 100").assert().success().stdout_eq(str![[r#"
label died, training split: 474 encounters, known in hidden, positive in hidden (hidden)

code        kind         gives away   encounters   positive   precision   coverage   LR at least    AUROC    AUCPR
home   treatment   negative with it          304     hidden      hidden     hidden        hidden   hidden   hidden

2 codes of 22 give it away; 1 not listed, since too few encounters have the code
This is a list to look at, not a test: is each code known before the label is?
best AUROC of one code alone: hidden, home
best AUCPR of one code alone: hidden, home

"#]]);
}

#[test]
fn a_label_that_is_not_there_and_flags_without_leaks_are_refused() {
    let (_home, home) = home();
    for (name, shown) in [("x", "x"), ("label:x", "x"), ("graph_reconstruction", "graph_reconstruction")] {
        gct(&home, &format!("inspect data --leaks {name}")).assert().code(2).stdout_eq("").stderr_eq(
            format!(
                "error: unknown label `{shown}`; known: d1_m1, d2_m1\nhint: give one of the known names\n"
            ),
        );
    }
    for flag in ["--top 3", "--min-cell 11", "--split-seed 3", "--split-by subject", "--stratify d1_m1"] {
        assert!(refusal(&home, &format!("inspect data {flag}")).contains("--leaks <LABEL>"), "{flag}");
    }
}
