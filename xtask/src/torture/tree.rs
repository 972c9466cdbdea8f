//! Folders as values: copied, read and compared, apart from clock times.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::checks::Problem;

/// What a command leaves behind, while it works, under a random name that begins like this.
const PARTIAL: &str = ".gct-partial-";

/// The files below a folder by their paths; a folder is a path that ends with `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree(BTreeMap<String, Vec<u8>>);

impl Tree {
    /// Reads a folder. Clock times, and the path of the folder itself, are left out.
    pub(crate) fn read(home: &Path) -> Result<Self> {
        let mut entries = BTreeMap::new();
        walk(home, &mut |path, bytes| {
            let name = path.strip_prefix(home).expect("below it").to_string_lossy().into_owned();
            match bytes {
                None => entries.insert(name + "/", Vec::new()),
                Some(bytes) => entries.insert(name, without_clock(path, bytes, home)),
            };
        })?;
        Ok(Tree(entries))
    }

    /// The file or folder at this path, with all below it.
    pub(crate) fn at(&self, path: &str) -> Self {
        let below = format!("{path}/");
        let is_part = |name: &str| name == path || name.starts_with(&below);
        let entries = self.0.iter().filter(|(name, _)| is_part(name));
        Tree(entries.map(|(name, bytes)| (name.clone(), bytes.clone())).collect())
    }

    /// Paths directly below the folder.
    pub(crate) fn top(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| name.trim_end_matches('/')).filter(|name| !name.contains('/'))
    }

    /// Unfinished files and folders.
    pub(crate) fn partial(&self) -> Vec<Problem> {
        let names = self.0.keys().map(|name| generic(name)).filter(|name| name.contains(PARTIAL));
        names.map(left_over).collect()
    }

    /// How it differs from what it should be.
    pub(crate) fn differences(&self, expected: &Self) -> Vec<Problem> {
        let more = self.0.keys().filter(|name| !expected.0.contains_key(*name));
        let fewer = expected.0.keys().filter(|name| !self.0.contains_key(*name));
        let other =
            expected.0.iter().filter(|(name, bytes)| self.0.get(*name).is_some_and(|own| own != *bytes));
        let mut problems: Vec<Problem> = more.map(|name| left_over(generic(name))).collect();
        problems.extend(fewer.map(|name| Problem::new("a file is missing", name)));
        problems.extend(
            other.map(|(name, _)| Problem::new("a file differs from that of an undisturbed run", name)),
        );
        problems
    }
}

fn left_over(name: String) -> Problem {
    Problem::new("something is left over", name)
}

/// The path without random letters, up to the first partial folder.
fn generic(name: &str) -> String {
    match name.find(PARTIAL) {
        Some(at) => format!("{}*", &name[..at + PARTIAL.len()]),
        None => name.to_owned(),
    }
}

/// Visits everything below a folder: files with their contents, folders with none. Links are not followed.
pub(crate) fn walk(folder: &Path, visit: &mut impl FnMut(&Path, Option<Vec<u8>>)) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            visit(&path, None);
            walk(&path, visit)?;
        } else {
            let bytes = if kind.is_file() { fs::read(&path)? } else { Vec::new() };
            visit(&path, Some(bytes));
        }
    }
    Ok(())
}

/// Copies a folder with all below it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut result = fs::create_dir_all(to);
    walk(from, &mut |path, bytes| {
        let target = to.join(path.strip_prefix(from).expect("below it"));
        let copied = match bytes {
            None => fs::create_dir(&target),
            Some(bytes) => fs::write(&target, bytes),
        };
        result = std::mem::replace(&mut result, Ok(())).and(copied);
    })?;
    result.with_context(|| format!("cannot copy {}", from.display()))
}

/// The contents of a file but for times and for where it is.
fn without_clock(path: &Path, bytes: Vec<u8>, home: &Path) -> Vec<u8> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == "log.txt" || name.starts_with("events.out.tfevents") {
        return Vec::new();
    }
    if name.ends_with(".safetensors") {
        return without_description(&bytes).unwrap_or(bytes);
    }
    let Ok(text) = String::from_utf8(bytes.clone()) else { return bytes };
    // The way from a run to its dataset depends on how deep the folder is.
    let is_way = |line: &&str| line.trim_start().starts_with("\"relative\":");
    let text: String = text.split_inclusive('\n').filter(|line| !is_way(line)).collect();
    let text = text.replace(&*home.to_string_lossy(), "HOME");
    if name == "history.csv" {
        let columns =
            text.lines().map(|line| line.rsplit_once(',').map_or(line, |(others, _seconds)| others));
        return columns.collect::<Vec<_>>().join("\n").into_bytes();
    }
    untimed(&text).into_bytes()
}

/// Tensors without the description of a checkpoint, which says how long it took: the header is JSON, its
/// length before it.
fn without_description(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (header, tensors) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let mut header: Value = serde_json::from_slice(header).ok()?;
    header.as_object_mut()?.remove("__metadata__");
    Some([header.to_string().as_bytes(), tensors].concat())
}

/// A text without the numbers of JSON fields such as `seconds` and `encounters_per_second`, wherever in it
/// they are.
fn untimed(text: &str) -> String {
    let is_number = |character: char| character.is_ascii_digit() || " .-+e".contains(character);
    let mut parts = text.split("second");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| match part.trim_start_matches('s').strip_prefix("\":") {
        Some(value) => text + value.trim_start_matches(is_number),
        None => text + part,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text.replace("{home}", &home.path().to_string_lossy())).unwrap();
        }
        Tree::read(home.path()).unwrap()
    }

    #[test]
    fn times_and_places_do_not_count() {
        let one =
            tree(&[("r/m.jsonl", "{\"seconds\": 2.5e3,\"a\":1}\n"), ("r/log.txt", "now"), ("x", "{home}/y")]);
        let two =
            tree(&[("r/m.jsonl", "{\"seconds\": 3,\"a\":1}\n"), ("r/log.txt", "then"), ("x", "{home}/y")]);
        assert_eq!(one, two);
    }

    #[test]
    fn whatever_is_missing_left_over_or_other_is_found() {
        let expected = tree(&[("a", "1"), ("b", "2")]);
        let problems = tree(&[("a", "other"), (".gct-partial-xyz/c", "3")]).differences(&expected);
        let kinds: Vec<&str> = problems.iter().map(|problem| problem.kind.as_str()).collect();
        let (left, missing, other) =
            ("something is left over", "a file is missing", "a file differs from that of an undisturbed run");
        assert_eq!(kinds, [left, left, missing, other]);
        assert_eq!(problems[0].detail, ".gct-partial-*");
        assert!(expected.differences(&expected).is_empty());
    }

    #[test]
    fn a_part_of_a_tree_does_not_take_in_names_that_begin_alike() {
        let whole = tree(&[("out/a", "1"), ("out2", "2")]);
        assert_eq!(whole.at("out"), tree(&[("out/a", "1")]));
        assert_eq!(whole.top().collect::<Vec<_>>(), ["out", "out2"]);
    }
}
