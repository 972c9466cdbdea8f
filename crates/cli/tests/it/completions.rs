use snapbox::str;

use crate::{COMMANDS, gct, names};

#[test]
fn completions_of_every_shell_have_all_commands_sources_and_flags() {
    let home = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let assert = gct(home.path(), &format!("completions {shell}")).assert().success().stderr_eq("");
        let script = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
        for word in COMMANDS.into_iter().chain(["eicu", "fhir", "split-seed", "min-probability"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    gct(home.path(), "completions tcsh").assert().code(2).stdout_eq("").stderr_eq(str![[r#"
error: invalid value 'tcsh' for '<SHELL>'
  [possible values: bash, elvish, fish, powershell, zsh]

  tip: a similar value exists: 'zsh'

For more information, try '--help'.

"#]]);
    assert_eq!(names(home.path()), [""; 0]);
}
