//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! - In `crates/gct/src`, a file uses only modules that `lib.rs` declares above its own.
//! - ARCHITECTURE.md lists those modules in that order.
//! - No text in `crates/gct/src` and `crates/serve/src` names a flag or a command: they know no command line.
//! - Documents name only paths that exist.
//! - No `match` on a `Question` has a wildcard arm.
//! - Every command has a file of tests.
//! - Lines of Rust and Markdown have at most 110 columns.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, Result, bail};
use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{root, width};

pub(crate) fn run() -> Result<()> {
    let library = root().join("crates/gct/src");
    let modules = declared_modules(&read(&library.join("lib.rs"))?)?;
    let mut problems = Vec::new();
    for file in files(&library, "rs")? {
        if file != library.join("lib.rs") {
            let name = file.strip_prefix(root()).expect("below the root").display().to_string();
            let path = module_path(file.strip_prefix(&library).expect("below the library"));
            problems.extend(
                wrong_way(&read(&file)?, &path, &modules)?.into_iter().map(|p| format!("{name}:{p}")),
            );
        }
    }
    for file in files(&library, "rs")?.into_iter().chain(files(&root().join("crates/serve/src"), "rs")?) {
        let name = file.strip_prefix(root()).expect("below the root").display();
        let found = words_of_a_command_line(&read(&file)?)?;
        problems.extend(found.into_iter().map(|problem| format!("{name}:{problem}")));
    }
    problems.extend(architecture_order(&read(&root().join("ARCHITECTURE.md"))?, &modules));
    for document in documents()? {
        problems.extend(missing_paths(&document)?);
    }
    problems.extend(untested_commands(&read(&root().join("crates/cli/src/main.rs"))?));
    problems.extend(wildcards_on_questions()?);
    problems.extend(wide_lines()?);
    if problems.is_empty() {
        return Ok(());
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    bail!("tidy found {} problem(s)", problems.len())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// All files below a folder with this ending, in order.
fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|of| of == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// `ingest/synthetic/rows.rs` as ingest, synthetic, rows; `ingest/mod.rs` as ingest.
fn module_path(file: &Path) -> Vec<String> {
    let parts = file.with_extension("");
    parts.iter().map(|part| part.to_string_lossy().into_owned()).filter(|part| part != "mod").collect()
}

pub(crate) fn tokens(source: &str) -> Result<Vec<TokenTree>> {
    let stream = TokenStream::from_str(source).map_err(|error| anyhow::anyhow!("not Rust: {error}"))?;
    Ok(stream.into_iter().collect())
}

/// The modules that a file declares with `mod name;`, in order.
fn declared_modules(source: &str) -> Result<Vec<String>> {
    let tokens = tokens(source)?;
    let names = tokens.windows(3).filter_map(|window| match window {
        [TokenTree::Ident(word), TokenTree::Ident(name), TokenTree::Punct(end)]
            if word == "mod" && end.as_char() == ';' =>
        {
            Some(name.to_string())
        }
        _ => None,
    });
    Ok(names.collect())
}

/// The references in a source file that point down the list of modules. Comments and strings are no
/// references.
fn wrong_way(source: &str, file: &[String], modules: &[String]) -> Result<Vec<String>> {
    let mut references = Vec::new();
    collect_references(&tokens(source)?, file, &mut references);
    let position = |name: &str| modules.iter().position(|module| module == name);
    let own = file.first().map_or("", String::as_str);
    let Some(own_position) = position(own) else {
        return Ok(vec![format!("1: `{own}` is not declared in lib.rs")]);
    };
    let problems = references.into_iter().filter_map(|(name, line)| match position(&name) {
        Some(used) if used <= own_position => None,
        Some(_) => Some(format!("{line}: `{own}` uses `{name}`, which lib.rs declares below it")),
        None => Some(format!("{line}: `crate::{name}` is no module; name the module that it comes from")),
    });
    Ok(problems.collect())
}

/// Every first name below the crate's root that is reached by `crate::` or by climbing up with `super::`,
/// with its line.
fn collect_references(tokens: &[TokenTree], module: &[String], found: &mut Vec<(String, usize)>) {
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(word) if *word == "crate" && is_path(tokens, at + 1) => {
                at = follow(tokens, at + 3, &[], found);
            }
            TokenTree::Ident(word) if *word == "super" && is_path(tokens, at + 1) => {
                let above = module.split_last().map_or(&[][..], |(_, above)| above);
                at = follow(tokens, at + 3, above, found);
            }
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                // `mod name { ... }` is one level further down.
                match at.checked_sub(2).map(|from| &tokens[from..at]) {
                    Some([TokenTree::Ident(word), TokenTree::Ident(name)]) if *word == "mod" => {
                        collect_references(&inner, &[module, &[name.to_string()]].concat(), found);
                    }
                    _ => collect_references(&inner, module, found),
                }
                at += 1;
            }
            _ => at += 1,
        }
    }
}

/// Whether `::` stands at this index.
fn is_path(tokens: &[TokenTree], at: usize) -> bool {
    let colon = |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(p)) if p.as_char() == ':');
    colon(at) && colon(at + 1)
}

/// Follows a path from `base`, whose `::` is behind us; returns the index after it.
fn follow(tokens: &[TokenTree], at: usize, base: &[String], found: &mut Vec<(String, usize)>) -> usize {
    match tokens.get(at) {
        Some(TokenTree::Ident(word)) if *word == "super" && is_path(tokens, at + 1) => {
            let above = base.split_last().map_or(&[][..], |(_, above)| above);
            follow(tokens, at + 3, above, found)
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let inner: Vec<TokenTree> = group.stream().into_iter().collect();
            let is_comma = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ',');
            for name in inner.split(is_comma).filter(|name| !name.is_empty()) {
                follow(name, 0, base, found);
            }
            at + 1
        }
        Some(token) => {
            if base.is_empty() {
                found.push((token.to_string(), token.span().start().line));
            }
            at + 1
        }
        None => at,
    }
}

/// Texts that name a flag such as `--out` or a command such as `gct train`, outside of comments and tests.
fn words_of_a_command_line(source: &str) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    collect_texts(&tokens(source)?, &mut texts);
    let problem = |(text, line): &(String, usize)| {
        format!("{line}: {text} speaks of a command line; an edge words what to do, by `Remedy`")
    };
    Ok(texts.iter().filter(|(text, _)| names_flag(text) || names_command(text)).map(problem).collect())
}

/// Literals with their lines. A doc comment is an attribute `#[doc = "..."]` here, which is no text.
fn collect_texts(tokens: &[TokenTree], found: &mut Vec<(String, usize)>) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Literal(text) => found.push((text.to_string(), text.span().start().line)),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                let is_test =
                    at >= 2 && is_word(tokens.get(at - 2), "mod") && is_word(tokens.get(at - 1), "tests");
                if !is_test && !is_word(inner.first(), "doc") {
                    collect_texts(&inner, found);
                }
            }
            _ => {}
        }
    }
}

fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}

/// Whether a text has two dashes with a letter behind them, but no third dash before them.
fn names_flag(text: &str) -> bool {
    text.match_indices("--").any(|(at, dashes)| {
        let is_name = text[at + dashes.len()..].starts_with(|letter: char| letter.is_ascii_lowercase());
        is_name && !text[..at].ends_with('-')
    })
}

/// Whether a text has a command of ours in backticks.
fn names_command(text: &str) -> bool {
    text.split("`gct ").skip(1).any(|rest| rest.starts_with(|letter: char| letter.is_ascii_lowercase()))
}

/// ARCHITECTURE.md has a table whose rows begin with the modules, in the order of `lib.rs`.
fn architecture_order(document: &str, modules: &[String]) -> Option<String> {
    let listed: Vec<&str> = document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(name, _)| name)
        .filter(|name| !name.contains(['/', '.']))
        .collect();
    (listed != modules).then(|| {
        format!(
            "ARCHITECTURE.md: lists the modules {listed:?}, but crates/gct/src/lib.rs declares {modules:?}"
        )
    })
}

/// The commands, variants such as `Train(train::Arguments)`, that have no file in `crates/cli/tests/it`.
fn untested_commands(main: &str) -> Vec<String> {
    let names = main.lines().filter_map(|line| line.trim().strip_suffix("::Arguments),")?.split_once('('));
    let files = names.map(|(_, name)| format!("crates/cli/tests/it/{name}.rs"));
    files.filter(|file| !root().join(file).exists()).map(|file| format!("{file}: does not exist")).collect()
}

/// All documents that speak of the repository as it is now.
fn documents() -> Result<Vec<PathBuf>> {
    let mut documents = files(&root().join("docs"), "md")?;
    documents.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    Ok(documents)
}

/// The paths that a document names, in backticks or as the target of a link, and that do not exist.
fn missing_paths(document: &Path) -> Result<Vec<String>> {
    let name = document.strip_prefix(root()).expect("below the root").display();
    let mut problems = Vec::new();
    for (number, line) in (1..).zip(read(document)?.lines()) {
        for path in named_paths(line) {
            let beside = document.parent().expect("a file has a folder").join(path);
            if !root().join(path).exists() && !beside.exists() {
                problems.push(format!("{name}:{number}: `{path}` does not exist"));
            }
        }
    }
    Ok(problems)
}

/// What looks like a path of the repository: it starts with one of our folders, or is a link without a
/// scheme.
fn named_paths(line: &str) -> Vec<&str> {
    let quoted = line.split('`').skip(1).step_by(2).filter(|text| {
        let ours = [
            "crates/",
            "xtask/",
            "docs/",
            "reference/",
            "experiments/",
            "examples/",
            "bindings/",
            ".ci/",
            ".cargo/",
        ];
        ours.iter().any(|folder| text.starts_with(folder)) && !text.contains([' ', '*', '<', '{'])
    });
    let linked = line.match_indices("](").filter_map(|(at, _)| line[at + 2..].split(')').next());
    let linked = linked.filter(|target| !target.contains("://") && !target.starts_with('#'));
    quoted.chain(linked.map(|target| target.split('#').next().unwrap_or(target))).collect()
}

/// Lines of Rust and Markdown that are too wide.
fn wide_lines() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let name = |file: &Path| file.strip_prefix(root()).expect("below the root").display().to_string();
    for folder in ["crates", "xtask"] {
        for file in files(&root().join(folder), "rs")? {
            let source = read(&file)?;
            let wide = width::wide_in_rust(&source, &tokens(&source)?);
            problems.extend(width::problems(&name(&file), wide));
        }
    }
    for document in documents()?.into_iter().chain([root().join("CHANGELOG.md")]) {
        problems.extend(width::problems(&name(&document), width::wide_in_markdown(&read(&document)?)));
    }
    Ok(problems)
}

/// Arms of a `match` on a question that would take a new question in silence.
fn wildcards_on_questions() -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in files(&root().join("crates"), "rs")? {
        let name = file.strip_prefix(root()).expect("below the root").display().to_string();
        let mut lines = Vec::new();
        collect_wildcards(&tokens(&read(&file)?)?, &mut lines);
        let problem = |line: usize| format!("{name}:{line}: this arm would take any new question");
        problems.extend(lines.into_iter().map(problem));
    }
    Ok(problems)
}

/// The lines of such arms, in all groups of tokens.
fn collect_wildcards(tokens: &[TokenTree], lines: &mut Vec<usize>) {
    let mut is_match = false;
    for token in tokens {
        match token {
            TokenTree::Ident(word) if word == "match" => is_match = true,
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                if is_match && group.delimiter() == Delimiter::Brace {
                    lines.extend(wildcards_of(&inner));
                    is_match = false;
                }
                collect_wildcards(&inner, lines);
            }
            _ => {}
        }
    }
}

/// The lines of arms that take anything, if other arms name questions.
fn wildcards_of(arms: &[TokenTree]) -> Vec<usize> {
    let patterns = patterns(arms);
    let names_question = |pattern: &[TokenTree]| {
        let starts = |at: usize| {
            matches!(&pattern[at], TokenTree::Ident(word) if word == "Question") && is_path(pattern, at + 1)
        };
        (0..pattern.len()).any(starts)
    };
    if !patterns.iter().any(|pattern| names_question(pattern)) {
        return Vec::new();
    }
    let takes_anything = |pattern: &&[TokenTree]| matches!(pattern, [TokenTree::Ident(_)]);
    patterns.into_iter().filter(takes_anything).map(|pattern| pattern[0].span().start().line).collect()
}

/// The patterns of the arms of a `match`, without their guards.
fn patterns(arms: &[TokenTree]) -> Vec<&[TokenTree]> {
    let is = |token: &TokenTree, sign: char| matches!(token, TokenTree::Punct(p) if p.as_char() == sign);
    let (mut found, mut start) = (Vec::new(), 0);
    while start < arms.len() {
        let arrow = |at: &usize| is(&arms[*at], '=') && arms.get(at + 1).is_some_and(|next| is(next, '>'));
        let Some(end) = (start..arms.len()).find(arrow) else { break };
        let pattern = &arms[start..end];
        let guard = pattern.iter().position(|token| matches!(token, TokenTree::Ident(word) if word == "if"));
        found.push(&pattern[..guard.unwrap_or(pattern.len())]);
        let body = end + 2;
        let is_block =
            matches!(arms.get(body), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace);
        start = match is_block {
            true => body + 1 + usize::from(arms.get(body + 1).is_some_and(|next| is(next, ','))),
            false => (body..arms.len()).find(|at| is(&arms[*at], ',')).map_or(arms.len(), |comma| comma + 1),
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(source: &str) -> Vec<String> {
        let modules = ["error", "record", "ingest", "dataset"].map(String::from);
        wrong_way(source, &["ingest".into(), "synthetic".into()], &modules).unwrap()
    }

    #[test]
    fn the_order_of_modules_is_that_of_lib_rs() {
        let source =
            "//! mod not;\n/// First.\npub mod error;\n\n/// Second.\nmod record;\npub use error::Error;";
        assert_eq!(declared_modules(source).unwrap(), ["error", "record"]);
    }

    #[test]
    fn upward_references_and_comments_are_fine() {
        let source = "
            // crate::dataset is only mentioned
            /// See [`crate::dataset::Dataset`].
            use crate::{error::{Error, Result}, record::Encounter};
            use super::rows::Rows;
            pub(crate) fn f() -> &'static str { \"crate::dataset\" }
            fn g(e: crate::record::Encounter) { super::super::ingest::f() }";
        assert_eq!(problems(source), [""; 0]);
    }

    #[test]
    fn a_planted_back_edge_is_found_however_it_is_written() {
        let found = |source: &str| problems(source).len();
        assert_eq!(
            problems(
                "use crate::error::Error;\nuse crate::{\n    record::Encounter,\n    dataset::{\n        Dataset,\n    },\n};"
            ),
            ["4: `ingest` uses `dataset`, which lib.rs declares below it"]
        );
        assert_eq!(found("fn f() { let _ = crate::dataset::Dataset::open; }"), 1);
        assert_eq!(found("fn f() { assert!(crate::dataset::is_good()); }"), 1, "inside a macro");
        assert_eq!(found("use super::super::dataset::Dataset;"), 1, "by climbing up");
        assert_eq!(
            found("mod tests { use super::super::super::dataset::Dataset; }"),
            1,
            "from a module inside"
        );
        assert_eq!(found("use super::{super::dataset, rows};"), 1, "by climbing up inside braces");
        assert_eq!(found("use crate :: { /* all */ dataset as d };"), 1);
    }

    #[test]
    fn the_root_itself_cannot_be_used() {
        assert_eq!(problems("use crate::*;").len(), 1);
        assert_eq!(problems("use crate::{self as all};").len(), 1);
        assert_eq!(
            problems("use crate::Error;"),
            ["1: `crate::Error` is no module; name the module that it comes from"]
        );
    }

    #[test]
    fn texts_that_speak_of_a_command_line_are_found() {
        let found = |source: &str| words_of_a_command_line(source).unwrap().len();
        assert_eq!(found("fn f() -> &'static str { \"give --data DIR\" }"), 1);
        assert_eq!(found("enum E { #[error(\"{path} exists: --force\")] Exists }"), 1, "an attribute");
        assert_eq!(found("const A: &str = r#\"run `gct train` first\"#;"), 1);
        assert_eq!(found("const A: [&str; 2] = [\"--\", \"a --- b, `gct` reads\"];"), 0);
        assert_eq!(found("//! `gct train --out RUN`\n/// See --force.\nfn f() {} // --data"), 0, "comments");
        assert_eq!(found("#[cfg(test)] mod tests { const A: &str = \"--data\"; }"), 0, "tests");
    }

    #[test]
    fn paths_are_found_in_backticks_and_links() {
        let line = "See `crates/gct/src/lib.rs`, [this](docs/data.md#splits), [that](https://example.org) and `gct synth`.";
        assert_eq!(named_paths(line), ["crates/gct/src/lib.rs", "docs/data.md"]);
        assert_eq!(named_paths("`experiments/*.toml` and `crates/<name>/`"), [""; 0]);
    }

    #[test]
    fn the_architecture_must_list_the_modules_in_order() {
        let modules = ["error", "record"].map(String::from);
        assert_eq!(architecture_order("| module |\n| `error` | a |\n| `record` | b |", &modules), None);
        assert!(architecture_order("| `record` | b |\n| `error` | a |", &modules).is_some());
    }

    #[test]
    fn a_command_without_tests_is_found() {
        let main = "enum Command {\n    Train(train::Arguments),\n    Dream(dream::Arguments),\n}";
        assert_eq!(untested_commands(main), ["crates/cli/tests/it/dream.rs: does not exist"]);
    }

    #[test]
    fn an_arm_that_takes_any_question_is_found() {
        let lines = |source: &str| {
            let mut lines = Vec::new();
            collect_wildcards(&tokens(source).unwrap(), &mut lines);
            lines
        };
        let arms = |last: &str| format!("fn f() {{ match q {{\n Question::Edges => {{ 1 }}\n {last} }} }}");
        assert_eq!(lines(&arms("_ => 2,")), [3]);
        assert_eq!(lines(&arms("other => g(other),")), [3], "a name for anything");
        assert_eq!(lines(&arms("_ if is_late() => 2, Question::Labels(_) => 3,")), [3], "with a guard");
        assert_eq!(lines(&arms("Question::Labels(_) | Question::HiddenDiagnosis => 2,")), [0; 0]);
        assert_eq!(lines("fn f() { match name { \"edges\" => Question::Edges, _ => panic!() } }"), [0; 0]);
    }
}
