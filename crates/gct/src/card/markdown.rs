//! A card as Markdown.

use super::{Card, Item, Section, Table};

impl Card {
    /// The card as one Markdown document. What comes from data or from names is escaped, so that it stays
    /// text.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n", escaped(&self.title));
        for section in &self.sections {
            text += &section_text(section);
        }
        text
    }
}

fn section_text(Section { title, tripod, items }: &Section) -> String {
    let items: String = items.iter().map(|item| format!("\n{}", item_text(item))).collect();
    let number = if tripod.is_empty() { String::new() } else { format!(" (TRIPOD+AI {tripod})") };
    format!("\n## {title}{number}\n{items}")
}

fn item_text(item: &Item) -> String {
    match item {
        Item::Text(text) => format!("{}\n", escaped(text)),
        Item::ToComplete(what) => format!("> **To be completed by the authors:** {}\n", escaped(what)),
        Item::Points(points) => points.iter().map(|point| format!("- {}\n", escaped(point))).collect(),
        Item::Facts(facts) => {
            let rows = facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]).collect();
            let columns = vec![String::new(); 2];
            rows_text(&columns, rows, false)
        }
        Item::Table(Table { caption, columns, rows }) => {
            format!("{}:\n\n{}", escaped(caption), rows_text(columns, rows.clone(), true))
        }
        Item::Code(text) => code(text),
    }
}

/// A table; all columns but the first can hold numbers, which stand on the right.
fn rows_text(columns: &[String], rows: Vec<Vec<String>>, are_numbers: bool) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell).replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let rule = |index: usize| if are_numbers && index > 0 { "---:" } else { "---" };
    let rules: Vec<&str> = (0..columns.len()).map(rule).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}| {} |\n{rows}", line(columns), rules.join(" | "))
}

/// A block of code, in a fence longer than any in it.
fn code(text: &str) -> String {
    let fence = "`".repeat(text.split(|letter| letter != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

/// Text that Markdown takes for text, on one line.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut before = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_inside = |other: Option<&char>| other.is_some_and(|other| other.is_alphanumeric());
        match letter {
            '\\' | '`' | '*' | '[' | ']' | '<' => escaped.extend(['\\', letter]),
            // Within a word it is a letter like any other.
            '_' if !(is_inside(before.as_ref()) && is_inside(letters.peek())) => escaped.push_str("\\_"),
            '#' | '>' | '-' | '+' if before.is_none() && letters.peek() == Some(&' ') => {
                escaped.extend(['\\', letter]);
            }
            letter if letter.is_whitespace() => escaped.push(' '),
            letter if letter.is_control() || is_turning(letter) => escaped.extend(letter.escape_unicode()),
            letter => escaped.push(letter),
        }
        before = Some(letter);
    }
    escaped
}

/// Whether a letter is not seen and turns the direction of what follows.
fn is_turning(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_text() {
        assert_eq!(escaped("a|b <b> [x](y) `z`\n\u{202e}"), "a|b \\<b> \\[x\\](y) \\`z\\` \\u{202e}");
        assert_eq!(escaped("d1_m1 _x_ *y*"), "d1_m1 \\_x\\_ \\*y\\*");
        assert_eq!(["# a", "-", "-1"].map(escaped), ["\\# a", "-", "-1"]);
        let rows = vec![vec!["a|b".into(), "1".into()]];
        assert_eq!(
            rows_text(&["x".into(), "n".into()], rows, true),
            "| x | n |\n| --- | ---: |\n| a\\|b | 1 |\n"
        );
        assert_eq!(code("a ``` b"), "````\na ``` b\n````\n");
        assert_eq!(code("a"), "```\na\n```\n");
    }
}
