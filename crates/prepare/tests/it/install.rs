//! What comes with the program: its version, manual pages.

use snapbox::str;

use super::prepare;

#[test]
fn the_version_has_the_name_of_the_program() {
    let home = tempfile::tempdir().unwrap();
    prepare(home.path(), "--version").assert().success().stderr_eq("").stdout_eq(str![[r#"
gct-prepare 0.1.0

"#]]);
}

#[test]
fn manual_pages_have_the_options_of_each_source() {
    let home = tempfile::tempdir().unwrap();
    prepare(home.path(), "man --out .").assert().success().stdout_eq("").stderr_eq("");
    let page = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap();
    assert!(page("gct-prepare.1").contains("gct\\-prepare\\-eicu(1)"), "{}", page("gct-prepare.1"));
    assert!(page("gct-prepare-omop.1").contains("link\\-by\\-date"), "{}", page("gct-prepare-omop.1"));
    prepare(home.path(), "man --out nowhere").assert().code(2);
}
