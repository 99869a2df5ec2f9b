//! A text with variables in it: `user={seq}&id={csv users.id}`.

mod encoding;

use encoding::Encoding;

use crate::capture::{Captured, LONGEST_VALUE};
use crate::csv::{Column, Csv};
use crate::nearest::nearest;
use std::fmt;
use std::sync::Arc;
use units::{Count, Nanos, Random};

/// A text in segments, written for each request or message. Prints as it can be parsed again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// In order; no two fixed ones beside each other, none empty.
    pub segments: Vec<Segment>,
}

/// A segment of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Literal text.
    Fixed(String),
    /// `{rand A B}`: a number from `low` to `high`, both included, drawn each time, in decimal.
    Rand {
        /// The least.
        low: u64,
        /// The greatest; not less than `low`.
        high: u64,
    },
    /// `{seq}`: the number that the caller gives, in decimal.
    Seq,
    /// `{choice A B …}`: one of these words, drawn each time.
    Choice(Vec<String>),
    /// `{csv NAME.COLUMN}`: the column's value in the row that the caller gives.
    Csv(Arc<Column>),
    /// `{env NAME}`: the value of an environment variable, which is printed nowhere.
    Env(Variable),
    /// `{var NAME}`: what the connection has captured.
    Var {
        /// As written.
        name: String,
        /// Its place among the variables of the population; [`UNKNOWN`] until it is known.
        nth: u16,
        /// Which of its octets are percent-encoded.
        encoding: Encoding,
    },
}

/// An environment variable.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, where it is known: here, or elsewhere.
    pub value: Option<Arc<str>>,
}

/// Its value may be a secret.
impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({})", self.name)
    }
}

/// The place of a variable of which it is not known.
pub(crate) const UNKNOWN: u16 = u16::MAX;

/// What the variables of one request are filled from, and which numbers it drew.
#[derive(Debug)]
pub struct Values<'r> {
    random: &'r mut Random,
    seq: u64,
    row: u64,
    numbers: [u64; MAX_NUMBERS],
    drawn: usize,
    captured: Option<(&'r Captured, usize)>,
    cookies: Option<(&'r dyn Cookies, Nanos)>,
}

/// The cookies of a connection.
pub trait Cookies: fmt::Debug {
    /// Writes those for a path with its query that have not expired, as the value of a Cookie field, to the front of `out`; how many
    /// octets, 0 where there are none.
    fn write(&self, now: Nanos, path: &[u8], out: &mut [u8]) -> usize;
}

/// How many numbers of a request an expectation can name: `$1` to `$8`.
pub const MAX_NUMBERS: usize = 8;

impl<'r> Values<'r> {
    /// `seq` is the value of `{seq}`, and `row` selects the row of each table, modulo its rows.
    pub fn new(random: &'r mut Random, seq: u64, row: u64) -> Values<'r> {
        Values { random, seq, row, numbers: [0; MAX_NUMBERS], drawn: 0, captured: None, cookies: None }
    }

    /// With what the connection has captured; `variables` is the number of variables.
    pub fn with_captured(self, captured: &'r Captured, variables: usize) -> Values<'r> {
        Values { captured: Some((captured, variables)), ..self }
    }

    /// With the connection's cookies.
    pub fn with_cookies(self, cookies: &'r dyn Cookies, now: Nanos) -> Values<'r> {
        Values { cookies: Some((cookies, now)), ..self }
    }

    /// Whether the connection keeps cookies.
    pub fn has_cookies(&self) -> bool {
        self.cookies.is_some()
    }

    /// Writes the connection's cookies for a path.
    pub fn write_cookies(&self, path: &[u8], out: &mut [u8]) -> usize {
        self.cookies.map_or(0, |(cookies, now)| cookies.write(now, path, out))
    }

    /// The numbers that `{rand}` drew so far, in the order in which they were written; the first
    /// [`MAX_NUMBERS`] of them.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers[..self.drawn.min(MAX_NUMBERS)]
    }

    fn draw(&mut self, low: u64, high: u64) -> u64 {
        let number = self.random.between(low, high);
        if let Some(slot) = self.numbers.get_mut(self.drawn) {
            *slot = number;
        }
        self.drawn += 1;
        number
    }
}

/// Where a text is used, which determines what it may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A request target, RFC 9112 section 3.2.1: printable ASCII; every brace is a variable's.
    Path,
    /// A field's value, RFC 9110 section 5.5, without what is obsolete there.
    Field,
    /// Content, or a message: anything. Only a brace before a lower-case letter begins a variable, so that
    /// JSON may be written as it is.
    Content,
}

/// Octets of the longest request target that every recipient should take: RFC 9112 section 3.
const LONGEST_PATH: usize = 8_000;

/// A path and query. A fragment is never sent: RFC 9110 section 4.2.5.
pub(crate) fn path(text: &str, tables: &[Csv]) -> Result<Text, String> {
    let text = text.split('#').next().unwrap_or(text);
    let slash = if text.starts_with('/') || is_link(text) { "" } else { "/" };
    let path = Text::parse(&format!("{slash}{text}"), Place::Path, tables)?;
    // How long a captured value is depends on the server, and one of the environment is not known yet.
    let is_open = |segment: &&Segment| {
        matches!(segment, Segment::Var { .. } | Segment::Env(Variable { value: None, .. }))
    };
    match path.max_len() - path.segments.iter().filter(is_open).map(Segment::max_len).sum::<usize>() {
        0..=LONGEST_PATH => Ok(path),
        length => Err(format!("path and query may have at most {LONGEST_PATH} octets: {length}")),
    }
}

/// Whether a path is a captured link, or begins with one.
pub(crate) fn is_link(path: &str) -> bool {
    path.starts_with("{var ")
}

impl Text {
    /// A text without variables.
    pub fn fixed(text: &str) -> Text {
        let mut read = Text::default();
        read.push(text);
        read
    }

    /// These fields as lines of a head, each with its end.
    pub fn of_fields(fields: &[(String, Text)]) -> Text {
        let mut lines = Text::default();
        for (name, value) in fields {
            lines.push(name);
            lines.push(": ");
            for segment in &value.segments {
                match segment {
                    Segment::Fixed(text) => lines.push(text),
                    variable => lines.segments.push(variable.clone()),
                }
            }
            lines.push("\r\n");
        }
        lines
    }

    /// Parses a text. The error has the place and the fix.
    pub(crate) fn parse(text: &str, place: Place, tables: &[Csv]) -> Result<Text, String> {
        let mut read = Text::default();
        let (mut from, mut at) = (0, 0);
        while let Some(found) = text[at..].find('{').map(|found| at + found) {
            let rest = &text[found..];
            if place != Place::Path && rest.starts_with("{{") && starts_variable(&rest[1..]) {
                // The second brace is the one that is meant.
                read.push(&text[from..found]);
                (from, at) = (found + 1, found + 2);
                continue;
            }
            if place != Place::Path && !starts_variable(rest) {
                at = found + 1;
                continue;
            }
            let end = rest
                .find('}')
                .ok_or_else(|| format!("unclosed brace; use {{rand 1 4096}}: {:?}", excerpt(rest)))?;
            read.push(&text[from..found]);
            read.segments.push(variable(&rest[..=end], Encoding::at(place, &text[..found]), tables)?);
            (from, at) = (found + end + 1, found + end + 1);
        }
        read.push(&text[from..]);
        read.check(place)?;
        Ok(read)
    }

    /// Adds a fixed text.
    pub(crate) fn push(&mut self, text: &str) {
        match self.segments.last_mut() {
            _ if text.is_empty() => {}
            Some(Segment::Fixed(last)) => last.push_str(text),
            _ => self.segments.push(Segment::Fixed(text.to_owned())),
        }
    }

    /// Are all its values allowed in this place?
    pub(crate) fn check(&self, place: Place) -> Result<(), String> {
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Fixed(text) => allowed(text, place, text),
            Segment::Choice(words) => words.iter().try_for_each(|word| allowed(word, place, word)),
            Segment::Csv(column) => column.values().try_for_each(|(row, value)| {
                let named = |why| format!("{{csv {}}}, row {}: {why}", column.name(), row + 1);
                // A row may be a secret.
                allowed(value, place, "…").map_err(named)
            }),
            Segment::Env(Variable { name, value: Some(value) }) => {
                allowed(value, place, "…").map_err(|why| format!("{{env {name}}}: {why}"))
            }
            Segment::Rand { .. } | Segment::Seq | Segment::Env(_) | Segment::Var { .. } => Ok(()),
        })
    }

    /// Whether it has variables that only a scenario file has.
    pub(crate) fn is_of_a_file(&self) -> bool {
        self.segments.iter().any(|segment| matches!(segment, Segment::Env(_) | Segment::Var { .. }))
    }

    /// Its environment variables.
    pub fn env_mut(&mut self) -> impl Iterator<Item = &mut Variable> {
        self.segments.iter_mut().filter_map(|segment| match segment {
            Segment::Env(variable) => Some(variable),
            _ => None,
        })
    }

    /// The captured variables in it, each with its place.
    pub(crate) fn vars_mut(&mut self) -> impl Iterator<Item = (&str, &mut u16)> {
        self.segments.iter_mut().filter_map(|segment| match segment {
            Segment::Var { name, nth, .. } => Some((name.as_str(), nth)),
            _ => None,
        })
    }

    /// The captured link with which it begins.
    pub(crate) fn link(&self) -> Option<&str> {
        match self.segments.first()? {
            Segment::Var { name, encoding: Encoding::Link, .. } => Some(name),
            _ => None,
        }
    }

    /// The text, where it is always the same.
    pub fn fixed_text(&self) -> Option<&str> {
        match &self.segments[..] {
            [] => Some(""),
            [Segment::Fixed(text)] => Some(text),
            _ => None,
        }
    }

    /// Is it empty?
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// How many numbers `{rand}` draws in it.
    pub fn numbers(&self) -> usize {
        self.segments.iter().filter(|segment| matches!(segment, Segment::Rand { .. })).count()
    }

    /// Octets of the longest text that it can give.
    pub fn max_len(&self) -> usize {
        self.segments.iter().map(Segment::max_len).sum()
    }

    /// Writes one text to the front of `out`, which must have room for [`Text::max_len`] octets, and returns
    /// how many it wrote. Allocates nothing.
    pub fn write(&self, values: &mut Values, out: &mut [u8]) -> usize {
        let mut end = 0;
        for segment in &self.segments {
            let out = &mut out[end..];
            end += match segment {
                Segment::Fixed(text) => copy(text, out),
                Segment::Rand { low, high } => write_decimal(values.draw(*low, *high), out),
                Segment::Seq => write_decimal(values.seq, out),
                Segment::Choice(words) => copy(&words[values.random.below(words.len() as u64) as usize], out),
                Segment::Csv(column) => copy(column.value(values.row), out),
                Segment::Env(variable) => copy(variable.value.as_deref().unwrap_or_default(), out),
                Segment::Var { nth, encoding, .. } => {
                    let value = values.captured.map_or("", |(captured, all)| captured.value(*nth, all));
                    encoding.write(value, out)
                }
            };
        }
        end
    }
}

impl Segment {
    /// Octets of the longest text that it can give.
    fn max_len(&self) -> usize {
        match self {
            Segment::Fixed(text) => text.len(),
            Segment::Rand { high, .. } => digits(*high),
            Segment::Seq => digits(u64::MAX),
            Segment::Choice(words) => words.iter().map(String::len).max().unwrap_or(0),
            Segment::Csv(column) => column.max_len(),
            Segment::Env(variable) => variable.value.as_ref().map_or(LONGEST_VALUE, |value| value.len()),
            Segment::Var { encoding, .. } => LONGEST_VALUE * encoding.most(),
        }
    }
}

/// Copies to the front of `out`; how many octets.
pub(crate) fn copy(text: &str, out: &mut [u8]) -> usize {
    out[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

pub(crate) fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes `number` to the front of `out` and returns how many digits it has.
pub(crate) fn write_decimal(number: u64, out: &mut [u8]) -> usize {
    copy(itoa::Buffer::new().format(number), out)
}

/// Does a variable begin here? `{"a": 1}` and `{}` are JSON.
fn starts_variable(text: &str) -> bool {
    text.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase)
}

/// The first few letters: what was not closed may be long.
fn excerpt(text: &str) -> String {
    text.chars().take(24).collect()
}

/// The variables, as one writes them.
const VARIABLES: [(&str, &str); 6] = [
    ("rand", "{rand 1 4096}"),
    ("seq", "{seq}"),
    ("choice", "{choice a b c}"),
    ("csv", "{csv users.id}"),
    ("env", "{env TOKEN}"),
    ("var", "{var token}"),
];

/// `{rand 1 4096}` and the others.
fn variable(text: &str, encoding: Encoding, tables: &[Csv]) -> Result<Segment, String> {
    let words: Vec<&str> = text[1..text.len() - 1].split_whitespace().collect();
    match words[..] {
        ["seq"] => Ok(Segment::Seq),
        ["rand", low, high] => match (Count::parse(low), Count::parse(high)) {
            (Ok(from), Ok(to)) if from <= to => Ok(Segment::Rand { low: from.0, high: to.0 }),
            (Ok(_), Ok(_)) => Err(format!("{text:?} is reversed; use {{rand {high} {low}}}")),
            _ => Err(format!("{text:?} needs two integers; use {{rand 1 4096}}")),
        },
        ["choice", ref words @ ..] if !words.is_empty() => {
            match words.iter().find(|word| word.contains('{')) {
                None => Ok(Segment::Choice(words.iter().map(|word| (*word).to_owned()).collect())),
                Some(word) => Err(format!("{{choice}} takes plain words, without braces: {word:?}")),
            }
        }
        ["csv", name] => column(text, name, tables),
        ["env", name] => match is_env(name) {
            true => Ok(Segment::Env(Variable { name: name.to_owned(), value: None })),
            false => Err(format!("{name:?} is not the name of an environment variable; use {{env TOKEN}}")),
        },
        ["var", name] => Ok(Segment::Var { name: name.to_owned(), nth: UNKNOWN, encoding }),
        [name, ..] => {
            let known = nearest(name, VARIABLES.iter().map(|(name, _)| *name));
            let like = VARIABLES.iter().find(|(name, _)| Some(*name) == known);
            Err(match like {
                Some((_, fix)) => format!("unknown variable {text:?}; use {fix}"),
                None => format!(
                    "unknown variable {text:?}; use {{rand 1 4096}}, {{seq}}, {{choice a b c}}, {{csv \
                    users.id}}, {{env TOKEN}} or {{var token}}"
                ),
            })
        }
        [] => Err(format!("unknown variable {text:?}; use {{rand 1 4096}}")),
    }
}

/// A name as shells take it (POSIX.1, XBD section 8.1).
fn is_env(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    name.bytes().next().is_some_and(is_letter) && name.bytes().all(|b| is_letter(b) || b.is_ascii_digit())
}

/// The column of `{csv NAME.COLUMN}`.
fn column(text: &str, path: &str, tables: &[Csv]) -> Result<Segment, String> {
    let (name, column) =
        path.split_once('.').ok_or_else(|| format!("{text:?} has no column; use {{csv {path}.COLUMN}}"))?;
    let Some(table) = tables.iter().find(|table| table.name == name) else {
        let near = nearest(name, tables.iter().map(|table| table.name.as_str()));
        return Err(match near {
            Some(near) => {
                format!("{text:?}: no such table; use {{csv {near}.{column}}}: {name:?}")
            }
            None => format!("{text:?}: no such table; add [csv.{name}] with file = \"{name}.csv\": {name:?}"),
        });
    };
    table.column(column).map(Segment::Csv).ok_or_else(|| {
        let names: Vec<&str> = table.columns.iter().map(|column| column.short_name()).collect();
        let near = nearest(column, names.iter().copied());
        let fix = near
            .map_or_else(|| format!("one of {}", names.join(", ")), |near| format!("{{csv {name}.{near}}}"));
        format!("{text:?}: {} has no such column; use {fix}: {column:?}", table.file)
    })
}

/// Is this text allowed there?
/// `shown`: how a mistake shows the text.
fn allowed(text: &str, place: Place, shown: &str) -> Result<(), String> {
    let wrong = match place {
        Place::Path => text.chars().find(|c| !c.is_ascii_graphic()),
        Place::Field => text.chars().find(|c| !(c.is_ascii_graphic() || matches!(c, ' ' | '\t'))),
        Place::Content => None,
    };
    match wrong {
        Some(c) if place == Place::Path => Err(format!("{c:?} is not allowed in a path; use {}", percent(c))),
        Some(c) => Err(format!("{c:?} is not allowed in a header; remove it: {:?}", excerpt(shown))),
        None if place == Place::Path && text.contains(['{', '}']) => {
            Err(format!("closing brace without an opening one; use {{rand 1 4096}}: {shown:?}"))
        }
        None => Ok(()),
    }
}

/// RFC 3986 section 2.1.
fn percent(c: char) -> String {
    c.encode_utf8(&mut [0; 4]).bytes().map(|byte| format!("%{byte:02X}")).collect()
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.segments.iter().try_for_each(|segment| segment.fmt(f))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Fixed(text) => {
                for (at, c) in text.char_indices() {
                    if c == '{' && starts_variable(&text[at..]) {
                        f.write_str("{")?;
                    }
                    write!(f, "{c}")?;
                }
                Ok(())
            }
            Segment::Rand { low, high } => write!(f, "{{rand {low} {high}}}"),
            Segment::Seq => f.write_str("{seq}"),
            Segment::Choice(words) => write!(f, "{{choice {}}}", words.join(" ")),
            Segment::Csv(column) => write!(f, "{{csv {}}}", column.name()),
            Segment::Env(variable) => write!(f, "{{env {}}}", variable.name),
            Segment::Var { name, .. } => write!(f, "{{var {name}}}"),
        }
    }
}

#[cfg(test)]
mod tests;
