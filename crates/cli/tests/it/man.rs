use std::process::{Command, Stdio};

use crate::{COMMANDS, alone, gct, names, refusal};

#[test]
fn every_command_has_a_manual_page_that_can_be_set() {
    let home = tempfile::tempdir().unwrap();
    let output = alone(home.path(), "man --out pages");
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let pages = names(&home.path().join("pages"));
    for command in COMMANDS {
        assert!(pages.contains(&format!("gct-{command}.1")), "{command}: {pages:?}");
    }
    for source in ["eicu", "mimic4", "mimic3", "meds", "omop", "synthea", "fhir", "claims", "events", "sql"] {
        assert!(pages.contains(&format!("gct-prepare-{source}.1")), "{source}: {pages:?}");
    }
    let main = gct(home.path(), "man").assert().success().stderr_eq("").get_output().stdout.clone();
    assert_eq!(main, std::fs::read(home.path().join("pages/gct.1")).unwrap());
    if Command::new("groff").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("groff is not installed: pages were not set");
        return;
    }
    for page in pages {
        let groff = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww", "-Kutf8"])
            .arg(home.path().join("pages").join(&page))
            .output()
            .unwrap();
        assert!(
            groff.status.success() && groff.stderr.is_empty(),
            "{page}: {}",
            String::from_utf8_lossy(&groff.stderr)
        );
        assert!(groff.stdout.len() > 500, "{page}");
    }
}

#[test]
fn a_path_that_cannot_be_a_folder_is_named() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("file"), "").unwrap();
    let error = refusal(home.path(), "man --out file");
    assert!(error.starts_with("error: cannot write manual pages to file: "), "{error}");
}
