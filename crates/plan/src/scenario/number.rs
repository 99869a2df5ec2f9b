//! A number in the text of a scenario file, found by its path: a search puts others in its place.

use super::document::Notes;
use crate::Mistake;
use crate::nearest::nearest_or_all;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::Count;

/// A number that a scenario file has, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// As the file has it, in the unit that stands after it there: 100 of `"100/s"`.
    pub value: u64,
    /// The octets of its digits.
    at: Range<usize>,
}

/// What a file has at a path.
struct Entry {
    path: String,
    at: usize,
    number: Option<Number>,
}

impl Number {
    /// Finds the number at a path like `population.chat.connections`: keys, and of tables in a list the `name`, or
    /// `[1]` for the first.
    ///
    /// # Errors
    /// There is nothing, or no whole number; with the place, and the paths that there are.
    pub fn find(file: &str, text: &str, path: &str) -> Result<Number, Mistake> {
        let (root, _) = DeTable::parse_recoverable(text);
        let mut entries = Vec::new();
        in_table(text, "", root.get_ref(), &mut entries);
        let numbers = entries.iter().filter(|entry| entry.number.is_some() && !is_of_stage(&entry.path));
        let others = nearest_or_all(path, numbers.map(|entry| &*entry.path).collect::<Vec<_>>().into_iter());
        let instead = if others.is_empty() { String::new() } else { format!("; use {others}") };
        let Some(entry) = entries.into_iter().find(|entry| entry.path == path) else {
            return Err(Mistake { place: file.to_owned(), text: format!("has no {path:?}{instead}") });
        };
        let why = match entry.number {
            Some(number) if !is_of_stage(path) => return Ok(number),
            Some(_) => "is set by the search, which has one stage for each step",
            None => "is no whole number",
        };
        let mut notes = Notes::new(file, text);
        notes.add(entry.at, path, format!("{why}{instead}"));
        Err(notes.into_mistakes().remove(0))
    }

    /// The text that it was found in, with this value instead.
    pub fn replaced(&self, text: &str, value: u64) -> String {
        [&text[..self.at.start], &value.to_string(), &text[self.at.end..]].concat()
    }
}

fn is_of_stage(path: &str) -> bool {
    path.starts_with("stage.") || path.starts_with("stage[")
}

fn in_table(text: &str, path: &str, table: &DeTable, entries: &mut Vec<Entry>) {
    let mut inner: Vec<_> = table.iter().collect();
    inner.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in inner {
        in_value(text, &joined(path, key.get_ref()), value, entries);
    }
}

fn in_value(text: &str, path: &str, value: &Spanned<DeValue>, entries: &mut Vec<Entry>) {
    match value.get_ref() {
        DeValue::Table(table) => in_table(text, path, table, entries),
        DeValue::Array(items) => {
            for (item, nth) in items.iter().zip(1..) {
                let table = item.get_ref().as_table();
                let name = table.and_then(|table| table.get("name")?.get_ref().as_str());
                // As mistakes name them.
                let path = name.map_or_else(|| format!("{path}[{nth}]"), |name| joined(path, name));
                in_value(text, &path, item, entries);
            }
        }
        DeValue::Integer(_) | DeValue::String(_) => {
            let span = value.span();
            let number = number(&text[span.clone()], span.start);
            entries.push(Entry { path: path.to_owned(), at: span.start, number });
        }
        _ => entries.push(Entry { path: path.to_owned(), at: value.span().start, number: None }),
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// A whole number, as `200`, `"20k"` and `"100/s"` are, in a text that begins at this octet. What it is counted in stays: only thousands
/// become ones.
fn number(written: &str, at: usize) -> Option<Number> {
    let inner = written.trim_matches(['"', '\'']);
    let begin = at + written.find(inner)?;
    let digits = inner.find(|c: char| !c.is_ascii_digit() && !"_,".contains(c)).unwrap_or(inner.len());
    let thousands = usize::from(inner[digits..].starts_with('k'));
    let (counted, unit) = inner.split_at(digits + thousands);
    let is_unit = unit.chars().all(|c| c.is_alphabetic() || "/%".contains(c));
    let Count(value) = Count::parse(counted).ok().filter(|_| is_unit)?;
    Some(Number { value, at: begin..begin + counted.len() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"target = "http://127.0.0.1:80/"
threads = 2
thresholds = ["held >= 99%"]

[[stage]]
for = "30s"

[[population]]
name = "chat"
connections = "20k"
rate = '1_500/s'
think = "5s..45s"

[[population.step]]
request = "GET /?length={rand 1 9}"
timeout = "30s"

[[population]]
connections = 0x10
loop = true
"#;

    #[test]
    fn a_number_is_found_by_its_path_and_replaced_in_its_place() {
        let check = |path: &str, value: u64, before: &str, after: &str| {
            let number = Number::find("load.toml", FILE, path).unwrap();
            assert_eq!(number.value, value, "{path}");
            assert_eq!(number.replaced(FILE, 77), FILE.replacen(before, after, 1), "{path}");
        };
        check("threads", 2, "threads = 2", "threads = 77");
        check("population.chat.connections", 20_000, "\"20k\"", "\"77\"");
        check("population.chat.rate", 1_500, "'1_500/s'", "'77/s'");
        check("population.chat.step[1].timeout", 30, "timeout = \"30s\"", "timeout = \"77s\"");
    }

    #[test]
    fn what_is_no_number_has_its_place_and_others_instead() {
        let check = |path: &str, expected: &str| {
            let why = Number::find("load.toml", FILE, path).map_err(|mistake| mistake.to_string());
            assert_eq!(why, Err(expected.to_owned()), "{path}");
        };
        let all =
            "threads, population.chat.connections, population.chat.rate or population.chat.step[1].timeout";
        check(
            "population.chat.connection",
            "load.toml: has no \"population.chat.connection\"; use population.chat.connections",
        );
        check("rows", &format!("load.toml: has no \"rows\"; use {all}"));
        let at = |place: &str, why: &str| format!("load.toml:{place}: {why}; use {all}");
        let no_number = "is no whole number";
        check("population[2].loop", &at("20:8: population[2].loop", no_number));
        check("population.chat.think", &at("12:9: population.chat.think", no_number));
        let set = "is set by the search, which has one stage for each step";
        check("stage[1].for", &at("6:7: stage[1].for", set));
    }
}
