//! Finds a number in the text of a scenario file by its path, so that a search can replace it.

use super::document::Notes;
use crate::Mistake;
use crate::nearest::nearest_or_all;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use units::Count;

/// A number of a scenario file, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number {
    /// Its value, in the unit that follows it in the file: 100 for `"100/s"`.
    pub value: u64,
    /// The unit, `/s` or empty; it stays when the number is replaced.
    pub unit: String,
    /// Octets of the number, including a multiplier such as `k`.
    at: Range<usize>,
}

/// The value at a path.
struct Entry {
    path: String,
    at: usize,
    /// The number, or why a search cannot vary the value.
    number: Result<Number, Why>,
}

/// Why a search cannot vary a value, and what to write instead, if that helps.
type Why = (String, Option<&'static str>);

impl Number {
    /// Finds the number at a path such as `population.chat.connections`. Tables in a list are named by their `name`, or by a number as in
    /// `[1]`.
    ///
    /// # Errors
    /// There is no value at the path, it is not an integer, or the search itself sets it. The message has the place and the available
    /// paths.
    pub fn find(file: &str, text: &str, path: &str) -> Result<Number, Mistake> {
        let (root, _) = DeTable::parse_recoverable(text);
        let mut entries = Vec::new();
        in_table(text, "", root.get_ref(), &mut entries);
        let numbers = entries.iter().filter(|entry| entry.number.is_ok() && set(&entry.path).is_none());
        let others = nearest_or_all(path, numbers.map(|entry| &*entry.path).collect::<Vec<_>>().into_iter());
        let others = (!others.is_empty()).then(|| format!("use {others}"));
        let Some(entry) = entries.into_iter().find(|entry| entry.path == path) else {
            let instead = others.map(|others| format!("; {others}")).unwrap_or_default();
            return Err(Mistake { place: file.to_owned(), text: format!("has no {path:?}{instead}") });
        };
        let (why, instead) = match (entry.number, set(path)) {
            (_, Some((why, instead))) => (why.to_owned(), instead),
            (Ok(number), None) => return Ok(number),
            (Err(why), None) => why,
        };
        let fixes: Vec<String> = instead.map(str::to_owned).into_iter().chain(others).collect();
        let semicolon = if fixes.is_empty() { "" } else { "; " };
        let mut notes = Notes::new(file, text);
        notes.add(entry.at, path, format!("{why}{semicolon}{}", fixes.join(", or ")));
        Err(notes.into_mistakes().remove(0))
    }

    /// The text that the number was found in, with `value` in its place.
    pub fn replaced(&self, text: &str, value: u64) -> String {
        [&text[..self.at.start], &value.to_string(), &text[self.at.end..]].concat()
    }
}

/// Why the number at this path cannot be searched: the search sets it in each step.
fn set(path: &str) -> Option<(&'static str, Option<&'static str>)> {
    match path {
        "duration" => Some(("is set by the search", Some("use -d"))),
        "seed" => Some(("is the same in all steps of a search", None)),
        _ if path.starts_with("stage.") || path.starts_with("stage[") => {
            Some(("is set by the search, which has one stage for each step", None))
        }
        _ => None,
    }
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
                // Named as in mistakes.
                let path = name.map_or_else(|| format!("{path}[{nth}]"), |name| joined(path, name));
                in_value(text, &path, item, entries);
            }
        }
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::String(_) => {
            let (at, written) = (value.span().start, &text[value.span()]);
            let number = number(written, at).ok_or_else(|| why_none(written));
            entries.push(Entry { path: path.to_owned(), at, number });
        }
        _ => {
            let number = Err((NO_NUMBER.to_owned(), None));
            entries.push(Entry { path: path.to_owned(), at: value.span().start, number });
        }
    }
}

fn joined(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// An integer such as `200`, `"20k"`, `"100/s"` or `"4 KiB"`, in a text that begins at octet `at`. The unit is kept; only a multiplier such
/// as `k` is resolved.
fn number(written: &str, at: usize) -> Option<Number> {
    let inner = written.trim_matches(['"', '\'']);
    let begin = at + written.find(inner)?;
    let digits = digits(inner);
    let (counted, unit) = inner.split_at(digits + usize::from(is_of_thousands(&inner[digits..])));
    let is_unit = unit.chars().all(|c| c.is_alphabetic() || "/% ".contains(c));
    let Count(value) = Count::parse(counted).ok().filter(|_| is_unit)?;
    Some(Number { value, unit: unit.trim().to_owned(), at: begin..begin + counted.len() })
}

/// Number of octets in the digits at the beginning of a text.
fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit() && !"_,".contains(c)).unwrap_or(text.len())
}

/// Whether the digits are followed by a multiplier: `k`, `g`, `k/s`, `m/s`. An `m` alone may mean minutes.
fn is_of_thousands(rest: &str) -> bool {
    let mut letters = rest.chars();
    let (scale, next) = (letters.next(), letters.next());
    match scale {
        Some('k' | 'K' | 'g' | 'G') => matches!(next, None | Some('/')),
        Some('m' | 'M') => next == Some('/'),
        _ => false,
    }
}

const NO_NUMBER: &str = "is no whole number";
/// Most characters of a value that a message shows.
const SHOWN: usize = 40;

/// Why a search cannot vary a value.
fn why_none(written: &str) -> Why {
    let inner = written.trim_matches(['"', '\'']);
    let (why, instead) = match digits(inner) {
        // A text without a number may be secret, so it is not shown.
        0 => return (NO_NUMBER.to_owned(), None),
        _ if inner.contains("..") => ("is a range", "write one number"),
        n if inner[n..].starts_with('.') => {
            ("is no whole number", "write it in a smaller unit, as \"500ms\" for 0.5 s")
        }
        _ => ("is not one number with a unit", "write it as one, as \"90s\" for 1m30s"),
    };
    let shown: String = written.chars().take(SHOWN).collect();
    let more = if shown.len() < written.len() { "…" } else { "" };
    (format!("{shown}{more} {why}"), Some(instead))
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
        let set = "is set by the search, which has one stage for each step";
        check("stage[1].for", &at("6:7: stage[1].for", set));
        let range = "load.toml:12:9: population.chat.think: \"5s..45s\" is a range; write one number, or use";
        check("population.chat.think", &format!("{range} {all}"));
    }

    #[test]
    fn an_amount_is_searched_in_its_own_unit_or_has_what_to_write_instead() {
        let find = |written: &str| {
            let text = format!("think = {written}\n");
            let found = Number::find("f", &text, "think");
            found
                .map(|number| (number.value, number.unit.clone(), number.replaced(&text, 77)))
                .map_err(|mistake| mistake.text)
        };
        for (written, value, unit, replaced) in [
            ("5", 5, "", "77"),
            ("\"400/s\"", 400, "/s", "\"77/s\""),
            ("\"2k/s\"", 2_000, "/s", "\"77/s\""),
            ("\"2m/s\"", 2_000_000, "/s", "\"77/s\""),
            ("\"600/m\"", 600, "/m", "\"77/m\""),
            ("\"1g\"", 1_000_000_000, "", "\"77\""),
            ("\"2m\"", 2, "m", "\"77m\""),
            ("\"500ms\"", 500, "ms", "\"77ms\""),
            ("\"10 s\"", 10, "s", "\"77 s\""),
            ("'4KiB'", 4, "KiB", "'77KiB'"),
            ("\"4kB\"", 4, "kB", "\"77kB\""),
            ("\"4GB\"", 4, "GB", "\"77GB\""),
            ("\"50%\"", 50, "%", "\"77%\""),
        ] {
            let replaced = format!("think = {replaced}\n");
            assert_eq!(find(written), Ok((value, unit.to_owned(), replaced)), "{written}");
        }
        let fraction = "is no whole number; write it in a smaller unit, as \"500ms\" for 0.5 s";
        let parts = "is not one number with a unit; write it as one, as \"90s\" for 1m30s";
        for (written, why) in [
            ("\"1.5..3\"", "\"1.5..3\" is a range; write one number".to_owned()),
            ("0.5", format!("0.5 {fraction}")),
            ("\"99.9%\"", format!("\"99.9%\" {fraction}")),
            ("\"1m30s\"", format!("\"1m30s\" {parts}")),
            ("1e6", format!("1e6 {parts}")),
            ("\"Bearer 4\"", NO_NUMBER.to_owned()),
            ("true", NO_NUMBER.to_owned()),
            (&format!("\"1 .{}\"", "é".repeat(60)), format!("\"1 .{}… {parts}", "é".repeat(36))),
        ] {
            assert_eq!(find(written), Err(why), "{written}");
        }
    }

    #[test]
    fn what_each_step_sets_is_no_load() {
        let text = "duration = \"5s\"\nseed = 3\nthreads = 2\n";
        let why = |path: &str| Number::find("f", text, path).map_err(|mistake| mistake.to_string());
        let duration = "f:1:12: duration: is set by the search; use -d, or use threads";
        assert_eq!(why("duration"), Err(duration.to_owned()));
        let seed = "f:2:8: seed: is the same in all steps of a search; use threads";
        assert_eq!(why("seed"), Err(seed.to_owned()));
    }
}
