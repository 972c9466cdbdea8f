use std::fs;

use snapbox::str;

use crate::{gct, home, json};

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
The first row is the best that any model can do, sampled.
Hidden: the diagnosis-treatment and treatment-lab pairs alone.

diagnosis-treatment classification by    AUCPR    AUROC   encounters
ceiling, given the whole encounter     [..]
the paper's GCT                         0.8671   0.9600

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
    let file = home.join("data/encounters.parquet");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    gct(&home, "inspect data").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: data/encounters.parquet is damaged: cut off, or not a Parquet file ([..])
hint: copy the folder again from where it came, or make it again

"#]]);
}
