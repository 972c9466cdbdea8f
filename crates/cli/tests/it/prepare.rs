//! `gct prepare` where `gct-prepare` is not installed.

use std::fs;
use std::path::Path;

use crate::alone;

#[test]
fn help_lists_the_sources_and_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["prepare --help", "prepare -h", "prepare eicu --help", "help prepare"] {
        let output = alone(folder.path(), line);
        assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]), "{line}");
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("\n  cargo install --locked --path crates/prepare\n"), "{line}: {help}");
        assert!(help.contains("\n  sql       Your own source"), "{line}: {help}");
    }
}

/// What is said of a source here is what it says of itself.
#[test]
fn every_source_is_in_the_help() {
    let folder = tempfile::tempdir().unwrap();
    let help = String::from_utf8(alone(folder.path(), "prepare --help").stdout).unwrap();
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../prepare/sources");
    let mut found = 0;
    for source in fs::read_dir(sources).unwrap() {
        let source = source.unwrap();
        let text = fs::read_to_string(source.path().join("source.toml")).unwrap();
        let about = text.parse::<toml::Table>().unwrap()["about"].as_str().unwrap().to_owned();
        let line = format!("{} {about}", source.file_name().to_string_lossy());
        assert!(words(&help).contains(&words(&line)), "{line}\n{help}");
        found += 1;
    }
    assert!(found >= 7, "{found} sources");
}

#[test]
fn without_it_the_error_says_how_to_install_it() {
    let folder = tempfile::tempdir().unwrap();
    for line in ["prepare", "prepare eicu data --out out"] {
        let output = alone(folder.path(), line);
        assert_eq!((output.status.code(), output.stdout), (Some(2), vec![]));
        assert_eq!(
            String::from_utf8(output.stderr).unwrap(),
            "error: the program `gct-prepare` is not installed\n\
             hint: in the source of gct: cargo install --locked --path crates/prepare\n"
        );
    }
}
