//! Text of SQL: quotes, names, and `$name` for what is filled in.

/// A text in SQL.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A name in SQL.
pub(crate) fn named(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Replaces every `$name`, but not inside of quotes and comments.
///
/// # Errors
/// The name, if `value` does not know it.
pub(crate) fn substitute(sql: &str, value: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find(['$', '\'', '"', '-']) {
        let (before, from) = rest.split_at(at);
        out += before;
        let end = |found: Option<usize>| found.map_or(from.len(), |end| end + 2).min(from.len());
        let taken = match from.as_bytes()[0] {
            b'\'' => end(from[1..].find('\'')),
            b'"' => end(from[1..].find('"')),
            b'-' if from.starts_with("--") => from.find('\n').unwrap_or(from.len()),
            b'-' => 1,
            _ => {
                let name: String =
                    from[1..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
                rest = &from[1 + name.len()..];
                out += &value(&name).ok_or(name)?;
                continue;
            }
        };
        out += &from[..taken];
        rest = &from[taken..];
    }
    Ok(out + rest)
}

/// Fills in the `$names` of a query of this program, each with SQL.
///
/// # Panics
/// If a name is missing: then the query and its caller do not fit.
pub(crate) fn filled(sql: &str, parts: &[(&str, &str)]) -> String {
    let value = |name: &str| parts.iter().find(|(known, _)| *known == name).map(|(_, sql)| (*sql).to_owned());
    substitute(sql, value).unwrap_or_else(|name| panic!("`${name}` is not filled in: {sql}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filled_in_but_not_in_texts_and_comments() {
        let value = |name: &str| match name {
            "hours" => Some("(-3)".to_owned()),
            "who" => Some(quoted("O'Hara")),
            _ => None,
        };
        let sql = "SELECT 1-$hours, '$hours', \"$who\" -- $other\nFROM t WHERE n = $who";
        assert_eq!(
            substitute(sql, value).unwrap(),
            "SELECT 1-(-3), '$hours', \"$who\" -- $other\nFROM t WHERE n = 'O''Hara'"
        );
        assert_eq!(substitute("SELECT $nobody", value), Err("nobody".into()));
    }
}
