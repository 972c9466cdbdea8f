//! Lines of Rust and Markdown have at most 110 columns. Exempt is what cannot be broken without changing it:
//! text in quotes, tables, links and output.

use std::collections::BTreeMap;

use proc_macro2::TokenTree;

/// The widest line.
const COLUMNS: usize = 110;

/// The lines of a Rust file that are too wide, counted from 1. `tokens` are those of the file.
pub(crate) fn wide_in_rust(source: &str, tokens: &[TokenTree]) -> Vec<usize> {
    let mut quoted = BTreeMap::new();
    count_quoted(tokens, source, &mut quoted);
    let is_wide = |number: usize, line: &str| {
        let comment = line.trim_start().starts_with("//").then(|| line.trim_start_matches(['/', '!', ' ']));
        match comment {
            Some(text) => line.chars().count() > COLUMNS && !text.starts_with('|'),
            None => line.chars().count() - quoted.get(&number).copied().unwrap_or(0) > COLUMNS,
        }
    };
    (1..)
        .zip(source.lines())
        .filter(|(number, line)| is_wide(*number, line))
        .map(|(number, _)| number)
        .collect()
}

/// How many characters of each line are inside of texts in quotes.
fn count_quoted(tokens: &[TokenTree], source: &str, quoted: &mut BTreeMap<usize, usize>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                count_quoted(&group.stream().into_iter().collect::<Vec<_>>(), source, quoted);
            }
            TokenTree::Literal(literal) if literal.to_string().ends_with(['"', '#']) => {
                let (start, end) = (literal.span().start(), literal.span().end());
                let lines = source.lines().enumerate().skip(start.line - 1).take(end.line + 1 - start.line);
                for (number, line) in lines.map(|(at, line)| (at + 1, line)) {
                    let first = if number == start.line { start.column } else { 0 };
                    let last = if number == end.line { end.column } else { line.chars().count() };
                    *quoted.entry(number).or_default() += last - first;
                }
            }
            _ => {}
        }
    }
}

/// The lines of a Markdown file that are too wide, counted from 1.
pub(crate) fn wide_in_markdown(text: &str) -> Vec<usize> {
    let mut is_output = false;
    let mut wide = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_output = !is_output;
        }
        let exempt = is_output || line.trim_start().starts_with('|') || line.contains("](");
        if !exempt && line.chars().count() > COLUMNS {
            wide.push(number);
        }
    }
    wide
}

/// Such lines of a file as problems.
pub(crate) fn problems(name: &str, lines: Vec<usize>) -> impl Iterator<Item = String> {
    lines.into_iter().map(move |line| format!("{name}:{line}: more than {COLUMNS} columns"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tokens;

    #[test]
    fn only_what_can_be_broken_is_too_wide() {
        let long = "x".repeat(COLUMNS);
        let source = format!(
            "// {long}\n//! | {long} |\nconst A: &str = \"{long}\";\nfn {long}() {{}}\nconst B: &str = r#\"\n{long} {long}\n\"#;\n\
             /// {long}\nconst C: char = '\"';\n"
        );
        assert_eq!(wide_in_rust(&source, &tokens(&source).unwrap()), [1, 4, 8]);
        let text = format!("{long}\n{long}!\n| {long} |\n[a]({long})\n```\n{long}!\n```\n{long}!\n");
        assert_eq!(wide_in_markdown(&text), [2, 8]);
    }
}
