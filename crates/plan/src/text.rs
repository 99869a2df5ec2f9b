//! Texts with variables: `user={seq}&id={csv users.id}`. Parsed once, and written for each request without allocation.

mod curve;
mod encoding;
mod function;
mod now;
mod values;
mod variable;
mod written;

use encoding::Encoding;
pub use encoding::forms;
pub(crate) use values::RequestPart;
pub use values::{Cookies, MAX_NUMBERS, Values};
pub(crate) use variable::UNKNOWN;
pub use variable::{Derived, Segment, Variable};

use crate::csv::Csv;
use std::fmt;
use units::Random;
use written::Written;

/// A text as segments. It prints in a form that parses to the same text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// In order; no two adjacent fixed segments, and none empty.
    pub segments: Vec<Segment>,
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
    /// The argument of a function in a field value: anything.
    Argument,
    /// The text of a digest in a field value: anything, and parts of the request.
    Signed,
}

/// Minimum length of request targets that recipients should support (RFC 9112 section 3), used as the maximum.
const LONGEST_PATH: usize = 8_000;

/// Parses a path with query. A fragment is dropped, because it is never sent: RFC 9110 section 4.2.5.
pub(crate) fn path(text: &str, tables: &[Csv]) -> Result<Text, String> {
    let text = text.split('#').next().unwrap_or(text);
    let slash = if text.starts_with('/') || is_link(text) { "" } else { "/" };
    let path = Text::parse(&format!("{slash}{text}"), Place::Path, tables)?;
    let open = path.segments.iter().filter(|segment| segment.is_open());
    match path.max_len() - open.map(Segment::max_len).sum::<usize>() {
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
            lines.extend(value);
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
            let end = match function::end(rest) {
                Some(end) => end?,
                None => {
                    1 + rest
                        .find('}')
                        .ok_or_else(|| format!("unclosed brace; use {{rand 1 4096}}: {:?}", excerpt(rest)))?
                }
            };
            read.push(&text[from..found]);
            let whole = &rest[..end];
            let inner = whole[1..end - 1].trim_start();
            let (name, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
            let encoding = Encoding::at(place, &text[..found]);
            read.segments.push(Segment::parse(&Written { whole, name, rest, place, encoding, tables })?);
            (from, at) = (found + end, found + end);
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

    /// Appends another text.
    pub(crate) fn extend(&mut self, other: &Text) {
        for segment in &other.segments {
            match segment {
                Segment::Fixed(text) => self.push(text),
                variable => self.segments.push(variable.clone()),
            }
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
            // All others are letters, digits and punctuation, or were checked when they were captured.
            _ => Ok(()),
        })
    }

    /// Its segments, and those of the texts in them.
    pub fn all<'a>(&'a self) -> Vec<&'a Segment> {
        let within = |segment: &'a Segment| match segment {
            Segment::Derived(derived) => derived.texts().flat_map(Text::all).collect(),
            segment => vec![segment],
        };
        self.segments.iter().flat_map(within).collect()
    }

    /// Its segments, and those of the texts in them.
    pub(crate) fn all_mut<'a>(&'a mut self) -> Vec<&'a mut Segment> {
        let within = |segment: &'a mut Segment| match segment {
            Segment::Derived(derived) => derived.texts_mut().flat_map(Text::all_mut).collect(),
            segment => vec![segment],
        };
        self.segments.iter_mut().flat_map(within).collect()
    }

    /// Whether it has variables that are only available in scenario files.
    pub(crate) fn is_of_a_file(&self) -> bool {
        self.all().iter().any(|segment| matches!(segment, Segment::Env(_) | Segment::Var { .. }))
    }

    /// Whether it signs this part of the request.
    pub(crate) fn signs(&self, part: RequestPart) -> bool {
        self.segments.iter().any(|segment| match segment {
            Segment::Part(own) => *own == part,
            Segment::Derived(derived) => derived.texts().any(|text| text.signs(part)),
            _ => false,
        })
    }

    /// Its environment variables.
    pub fn env_mut(&mut self) -> impl Iterator<Item = &mut Variable> {
        self.all_mut().into_iter().filter_map(|segment| match segment {
            Segment::Env(variable) => Some(variable),
            _ => None,
        })
    }

    /// Its captured variables, with their indices.
    pub(crate) fn vars_mut(&mut self) -> impl Iterator<Item = (&str, &mut u16)> {
        self.all_mut().into_iter().filter_map(|segment| match segment {
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
        self.all().iter().filter(|segment| matches!(segment, Segment::Rand { .. })).count()
    }

    /// Maximum length in bytes.
    pub fn max_len(&self) -> usize {
        self.segments.iter().map(Segment::max_len).sum()
    }

    /// Writes one text to the start of `out`, which must have room for [`Text::max_len`] bytes, and returns its length. Only times and
    /// functions allocate.
    pub fn write(&self, values: &mut Values, out: &mut [u8]) -> usize {
        let mut end = 0;
        for segment in &self.segments {
            let out = &mut out[end..];
            end += match segment {
                Segment::Fixed(text) => copy(text, out),
                Segment::Rand { low, high, curve } => write_decimal(values.draw(*low, *high, *curve), out),
                Segment::Seq => write_decimal(values.seq, out),
                Segment::Choice(words) => copy(&words[values.random.below(words.len() as u64) as usize], out),
                Segment::Csv(column) => copy(column.value(values.row_of(column)), out),
                Segment::Env(variable) => copy(variable.value.as_deref().unwrap_or_default(), out),
                Segment::Var { nth, encoding, .. } => {
                    let value = values.captured.map_or("", |(captured, all)| captured.value(*nth, all));
                    encoding.write(value.as_bytes(), out)
                }
                Segment::Now(now) => now.write(values.now, out),
                Segment::Uuid => uuid(values.random, out),
                Segment::Random(length) => random_string(values.random, &mut out[..usize::from(*length)]),
                Segment::Part(part) => {
                    let part = values.part(*part);
                    out[..part.len()].copy_from_slice(part);
                    part.len()
                }
                Segment::Derived(derived) => derived.write(values, out),
            };
        }
        end
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

/// Writes a random UUID (RFC 9562, section 5.4) to the start of `out`, and returns its length.
fn uuid(random: &mut Random, out: &mut [u8]) -> usize {
    let bits = u128::from(random.bits()) << 64 | u128::from(random.bits());
    // Version 4, variant 10.
    let bits = bits & !(0xf << 76 | 0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{bits:032x}");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    copy(&parts.join("-"), out)
}

/// Fills `out` with random letters and digits, and returns its length.
fn random_string(random: &mut Random, out: &mut [u8]) -> usize {
    const LETTERS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    out.iter_mut().for_each(|byte| *byte = LETTERS[random.below(LETTERS.len() as u64) as usize]);
    out.len()
}

/// How many braces are open before each byte of a text, and at its end.
pub(crate) fn depths(text: &str) -> Vec<i32> {
    let deeper = |depth: &mut i32, byte| {
        let before = *depth;
        *depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        Some(before)
    };
    text.bytes().chain([0]).scan(0, deeper).collect()
}

/// Whether a variable begins here. `{"a": 1}` and `{}` are JSON.
fn starts_variable(text: &str) -> bool {
    text.as_bytes().get(1).is_some_and(u8::is_ascii_lowercase)
}

/// The first characters of a text that may be long.
fn excerpt(text: &str) -> String {
    text.chars().take(24).collect()
}

/// Checks that a text is allowed in a place. `shown`: the text as an error message may show it.
fn allowed(text: &str, place: Place, shown: &str) -> Result<(), String> {
    let wrong = match place {
        Place::Path => text.chars().find(|c| !c.is_ascii_graphic()),
        Place::Field => text.chars().find(|c| !(c.is_ascii_graphic() || matches!(c, ' ' | '\t'))),
        Place::Content | Place::Argument | Place::Signed => None,
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

#[cfg(test)]
mod tests;
