//! Texts with variables: `user={seq}&id={csv users.id}`. Parsed once, and written for each request without allocation.

mod encoding;

use encoding::Encoding;
pub use encoding::forms;

use crate::capture::{Captured, LONGEST_VALUE};
use crate::csv::{Column, Csv};
use crate::nearest::nearest;
use std::fmt;
use std::sync::Arc;
use units::{Count, Nanos, Random};

/// A text as segments. It prints in a form that parses to the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// In order; no two adjacent fixed segments, and none empty.
    pub segments: Vec<Segment>,
}

/// A segment of a [`Text`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Literal text.
    Fixed(String),
    /// `{rand A B}`: a random number from `low` to `high`, both included, in decimal.
    Rand {
        /// Minimum.
        low: u64,
        /// Maximum; at least `low`.
        high: u64,
    },
    /// `{seq}`: a number from the caller, in decimal.
    Seq,
    /// `{choice A B …}`: one of these words, chosen at random.
    Choice(Vec<String>),
    /// `{csv NAME.COLUMN}`: the value of the column in the row selected by the caller.
    Csv(Arc<Column>),
    /// `{env NAME}`: the value of an environment variable, which is never printed.
    Env(Variable),
    /// `{var NAME}`: a value that the connection has captured.
    Var {
        /// Name as written.
        name: String,
        /// Index among the variables of the population; [`UNKNOWN`] until resolved.
        nth: u16,
        /// Which bytes of the value are percent-encoded.
        encoding: Encoding,
    },
}

/// An environment variable.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value; `None` if unknown on this machine.
    pub value: Option<Arc<str>>,
}

/// Omits the value, which may be a secret.
impl fmt::Debug for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Variable({})", self.name)
    }
}

/// Index of an unresolved variable.
pub(crate) const UNKNOWN: u16 = u16::MAX;

/// Values for the variables of one request, and the random numbers that it drew.
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
    /// Writes the unexpired cookies for a path with query to the start of `out`, as the value of a Cookie field. Returns the length; 0
    /// without cookies.
    fn write(&self, now: Nanos, path: &[u8], out: &mut [u8]) -> usize;
}

/// Maximum number of random numbers that an expectation can refer to: `$1` to `$8`.
pub const MAX_NUMBERS: usize = 8;

impl<'r> Values<'r> {
    /// `seq`: value of `{seq}`; `row`: row of each table, modulo its number of rows.
    pub fn new(random: &'r mut Random, seq: u64, row: u64) -> Values<'r> {
        Values { random, seq, row, numbers: [0; MAX_NUMBERS], drawn: 0, captured: None, cookies: None }
    }

    /// Adds the values that the connection has captured; `variables`: number of variables.
    pub fn with_captured(self, captured: &'r Captured, variables: usize) -> Values<'r> {
        Values { captured: Some((captured, variables)), ..self }
    }

    /// Adds the connection's cookies.
    pub fn with_cookies(self, cookies: &'r dyn Cookies, now: Nanos) -> Values<'r> {
        Values { cookies: Some((cookies, now)), ..self }
    }

    /// Whether the connection stores cookies.
    pub fn has_cookies(&self) -> bool {
        self.cookies.is_some()
    }

    /// Writes the connection's cookies for a path.
    pub fn write_cookies(&self, path: &[u8], out: &mut [u8]) -> usize {
        self.cookies.map_or(0, |(cookies, now)| cookies.write(now, path, out))
    }

    /// The random numbers drawn so far, in the order of writing; only the first [`MAX_NUMBERS`].
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

/// The place in which a text is used, which determines the allowed characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// A request target (RFC 9112 section 3.2.1): printable ASCII; every brace belongs to a variable.
    Path,
    /// A field value (RFC 9110 section 5.5), without obsolete forms.
    Field,
    /// Content or a message: anything. Only a brace before a lower-case letter begins a variable, so JSON can be written unchanged.
    Content,
}

/// Minimum length of request targets that recipients should support (RFC 9112 section 3), used as the maximum.
const LONGEST_PATH: usize = 8_000;

/// Parses a path with query. A fragment is dropped, because it is never sent: RFC 9110 section 4.2.5.
pub(crate) fn path(text: &str, tables: &[Csv]) -> Result<Text, String> {
    let text = text.split('#').next().unwrap_or(text);
    let slash = if text.starts_with('/') || is_link(text) { "" } else { "/" };
    let path = Text::parse(&format!("{slash}{text}"), Place::Path, tables)?;
    // The length of a captured value depends on the server, and an environment variable may be unknown here.
    let is_open = |segment: &&Segment| {
        matches!(segment, Segment::Var { .. } | Segment::Env(Variable { value: None, .. }))
    };
    match path.max_len() - path.segments.iter().filter(is_open).map(Segment::max_len).sum::<usize>() {
        0..=LONGEST_PATH => Ok(path),
        length => Err(format!("path and query may have at most {LONGEST_PATH} octets: {length}")),
    }
}

/// Whether a path is, or begins with, a captured link.
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

    /// These header fields as lines, each with its line end.
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

    /// Parses a text. The error contains the position and the fix.
    pub(crate) fn parse(text: &str, place: Place, tables: &[Csv]) -> Result<Text, String> {
        let mut read = Text::default();
        let (mut from, mut at) = (0, 0);
        while let Some(found) = text[at..].find('{').map(|found| at + found) {
            let rest = &text[found..];
            if place != Place::Path && rest.starts_with("{{") && starts_variable(&rest[1..]) {
                // The second brace begins the variable.
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

    /// Appends a fixed text.
    pub(crate) fn push(&mut self, text: &str) {
        match self.segments.last_mut() {
            _ if text.is_empty() => {}
            Some(Segment::Fixed(last)) => last.push_str(text),
            _ => self.segments.push(Segment::Fixed(text.to_owned())),
        }
    }

    /// Checks that all of its possible values are allowed in this place.
    pub(crate) fn check(&self, place: Place) -> Result<(), String> {
        self.segments.iter().try_for_each(|segment| match segment {
            Segment::Fixed(text) => allowed(text, place, text),
            Segment::Choice(words) => words.iter().try_for_each(|word| allowed(word, place, word)),
            Segment::Csv(column) => column.values().try_for_each(|(row, value)| {
                let named = |why| format!("{{csv {}}}, row {}: {why}", column.name(), row + 1);
                // A value in a table may be secret.
                allowed(value, place, "…").map_err(named)
            }),
            Segment::Env(Variable { name, value: Some(value) }) => {
                allowed(value, place, "…").map_err(|why| format!("{{env {name}}}: {why}"))
            }
            Segment::Rand { .. } | Segment::Seq | Segment::Env(_) | Segment::Var { .. } => Ok(()),
        })
    }

    /// Whether it has variables that are only available in scenario files.
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

    /// Its captured variables, with their indices.
    pub(crate) fn vars_mut(&mut self) -> impl Iterator<Item = (&str, &mut u16)> {
        self.segments.iter_mut().filter_map(|segment| match segment {
            Segment::Var { name, nth, .. } => Some((name.as_str(), nth)),
            _ => None,
        })
    }

    /// The name of the captured link with which it begins.
    pub(crate) fn link(&self) -> Option<&str> {
        match self.segments.first()? {
            Segment::Var { name, encoding: Encoding::Link, .. } => Some(name),
            _ => None,
        }
    }

    /// The text, if it has no variables.
    pub fn fixed_text(&self) -> Option<&str> {
        match &self.segments[..] {
            [] => Some(""),
            [Segment::Fixed(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Number of random numbers it draws.
    pub fn numbers(&self) -> usize {
        self.segments.iter().filter(|segment| matches!(segment, Segment::Rand { .. })).count()
    }

    /// Maximum length in bytes.
    pub fn max_len(&self) -> usize {
        self.segments.iter().map(Segment::max_len).sum()
    }

    /// Writes one text to the start of `out`, which must have room for [`Text::max_len`] bytes, and returns its length. Does not allocate.
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
    /// Maximum length in bytes.
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

/// Copies to the start of `out`, and returns the length.
pub(crate) fn copy(text: &str, out: &mut [u8]) -> usize {
    out[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

pub(crate) fn digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Writes `number` to the start of `out`, and returns its number of digits.
pub(crate) fn write_decimal(number: u64, out: &mut [u8]) -> usize {
    copy(itoa::Buffer::new().format(number), out)
}

/// Whether a variable begins here. `{"a": 1}` and `{}` are JSON.
fn starts_variable(text: &str) -> bool {
    text.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase)
}

/// The first characters of a text that may be long.
fn excerpt(text: &str) -> String {
    text.chars().take(24).collect()
}

/// The variables, with an example of each.
const VARIABLES: [(&str, &str); 6] = [
    ("rand", "{rand 1 4096}"),
    ("seq", "{seq}"),
    ("choice", "{choice a b c}"),
    ("csv", "{csv users.id}"),
    ("env", "{env TOKEN}"),
    ("var", "{var token}"),
];

/// Parses a variable such as `{rand 1 4096}`.
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

/// Whether it is a name of an environment variable (POSIX.1, XBD section 8.1).
fn is_env(name: &str) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    name.bytes().next().is_some_and(is_letter) && name.bytes().all(|b| is_letter(b) || b.is_ascii_digit())
}

/// Looks up the column of `{csv NAME.COLUMN}`.
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

/// Checks that a text is allowed in a place. `shown`: the text as an error message may show it.
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

/// Percent-encoding (RFC 3986 section 2.1).
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
