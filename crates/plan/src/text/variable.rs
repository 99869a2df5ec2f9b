//! The variables of texts: each is a row of one table, or a [function](super::function).

use super::curve::Curve;
use super::encoding::Encoding;
use super::function::Function;
use super::now::Now;
use super::values::{RequestPart, Values};
use super::written::Written;
use super::{Place, Text, digits};
use crate::capture::LONGEST_VALUE;
use crate::csv::Column;
use crate::nearest::nearest;
use std::fmt;
use std::sync::Arc;
use units::Count;

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
        /// How often each number is drawn.
        curve: Curve,
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
    /// `{now}`: the time at which the text is written.
    Now(Now),
    /// `{uuid}`: a random UUID (RFC 9562, version 4).
    Uuid,
    /// `{string N}`: this many random letters and digits.
    Random(u16),
    /// `{body}` or `{path}`: a part of the request whose header is written.
    Part(RequestPart),
    /// `{sha256 TEXT}` and others: computed from a text.
    Derived(Box<Derived>),
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

/// Length of a UUID as text.
pub(super) const UUID_LEN: usize = 36;

type Parse = fn(&Written, &[&str]) -> Result<Segment, String>;

/// The variables that are no function of a text: the name, an example, and how the words after the name are parsed.
const VARIABLES: [(&str, &str, Parse); 11] = [
    ("rand", "{rand 1 4096}", rand),
    ("seq", "{seq}", |written, words| written.alone(words, Segment::Seq)),
    ("choice", "{choice a b c}", choice),
    ("csv", "{csv users.id}", |written, words| column(written, written.one(words)?)),
    ("env", "{env TOKEN}", env),
    ("var", "{var token}", |written, words| {
        let name = written.one(words)?.to_owned();
        Ok(Segment::Var { name, nth: UNKNOWN, encoding: written.encoding })
    }),
    ("now", "{now}", |written, words| Now::parse(written.whole, words).map(Segment::Now)),
    ("uuid", "{uuid}", |written, words| written.alone(words, Segment::Uuid)),
    ("body", "{sha256 {body}}", |written, words| part(written, words, RequestPart::Body)),
    ("path", "{sha256 {path}}", |written, words| part(written, words, RequestPart::Path)),
    ("string", "{string 16}", |written, words| match written.one(words)?.parse() {
        Ok(length) if (1..=LONGEST_VALUE).contains(&usize::from(length)) => Ok(Segment::Random(length)),
        _ => Err(format!("{:?} needs a length from 1 to {LONGEST_VALUE}; use {{string 16}}", written.whole)),
    }),
];

impl Segment {
    /// Parses a variable such as `{rand 1 4096}`.
    pub(super) fn parse(written: &Written) -> Result<Segment, String> {
        if let Some(function) = Function::named(written.name) {
            return Derived::parse(function, written).map(|derived| Segment::Derived(Box::new(derived)));
        }
        let words: Vec<&str> = written.rest.split_whitespace().collect();
        match VARIABLES.iter().find(|(name, ..)| *name == written.name) {
            Some((.., parse)) => parse(written, &words),
            None => Err(unknown(written)),
        }
    }

    /// Maximum length in bytes.
    pub(super) fn max_len(&self) -> usize {
        match self {
            Segment::Fixed(text) => text.len(),
            Segment::Rand { high, .. } => digits(*high),
            Segment::Seq => digits(u64::MAX),
            Segment::Choice(words) => words.iter().map(String::len).max().unwrap_or(0),
            Segment::Csv(column) => column.max_len(),
            Segment::Env(variable) => variable.value.as_ref().map_or(LONGEST_VALUE, |value| value.len()),
            Segment::Var { encoding, .. } => LONGEST_VALUE * encoding.most(),
            Segment::Now(now) => now.max_len(),
            Segment::Uuid => UUID_LEN,
            Segment::Random(length) => usize::from(*length),
            // Only in a digest, which makes room for it.
            Segment::Part(_) => 0,
            Segment::Derived(derived) => derived.max_len(),
        }
    }

    /// Whether its length is unknown here: that of a captured value depends on the server, and an environment variable may be one of
    /// another machine.
    pub(super) fn is_open(&self) -> bool {
        match self {
            Segment::Var { .. } | Segment::Env(Variable { value: None, .. }) => true,
            Segment::Derived(derived) => {
                derived.texts().any(|text| text.segments.iter().any(Segment::is_open))
            }
            _ => false,
        }
    }
}

/// A value that is computed from a text by a [function](Function).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    function: Function,
    /// The key, for functions that take one; otherwise empty.
    key: Text,
    of: Text,
    encoding: Encoding,
}

impl Derived {
    fn parse(function: Function, written: &Written) -> Result<Derived, String> {
        let Written { whole, place, encoding, tables, .. } = *written;
        let rest = written.rest.trim();
        let (key, of) = if function.takes_key() { first_word(rest) } else { ("", rest) };
        if of.is_empty() {
            let what = if function.takes_key() { "a key and a text" } else { "a text" };
            return Err(format!("{whole:?} needs {what}; use {}", function.example()));
        }
        let inner = match place {
            Place::Path | Place::Content => Place::Content,
            Place::Field | Place::Argument | Place::Signed => Place::Argument,
        };
        let signed = if inner == Place::Argument && function.is_digest() { Place::Signed } else { inner };
        let key = Text::parse(key, inner, tables)?;
        Ok(Derived { function, key, of: Text::parse(of, signed, tables)?, encoding })
    }

    /// The name of its function.
    pub fn name(&self) -> &'static str {
        self.function.name()
    }

    /// The texts in it.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        [&self.key, &self.of].into_iter()
    }

    /// The texts in it.
    pub(super) fn texts_mut(&mut self) -> impl Iterator<Item = &mut Text> {
        [&mut self.key, &mut self.of].into_iter()
    }

    fn octets(&self, values: &mut Values) -> Vec<u8> {
        let key = octets(&self.key, values);
        self.function.octets(&key, &octets(&self.of, values))
    }

    fn max_len(&self) -> usize {
        // A digest has fewer octets than digits.
        let length = self.function.max_len(self.of.max_len());
        if self.function.is_encoded() { length } else { length * self.encoding.most() }
    }

    /// Writes it to the start of `out`, and returns its length.
    pub(super) fn write(&self, values: &mut Values, out: &mut [u8]) -> usize {
        let mut written = self.octets(values);
        if self.function.is_digest() {
            written = written.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect();
        }
        if !self.function.is_encoded() {
            written = self.encoding.encoded(&written);
        }
        out[..written.len()].copy_from_slice(&written);
        written.len()
    }
}

/// The octets of a text: those of a digest, if it is one.
fn octets(text: &Text, values: &mut Values) -> Vec<u8> {
    match &text.segments[..] {
        [Segment::Derived(derived)] if derived.function.is_digest() => derived.octets(values),
        segments => {
            let parts = segments.iter().map(|segment| match segment {
                Segment::Part(part) => values.part(*part).len(),
                _ => 0,
            });
            let mut written = vec![0; text.max_len() + parts.sum::<usize>()];
            let length = text.write(values, &mut written);
            written.truncate(length);
            written
        }
    }
}

/// The first word of a text, whose variables may have spaces in them, and what follows it.
fn first_word(text: &str) -> (&str, &str) {
    let depths = super::depths(text);
    let end = text.char_indices().find(|(at, c)| c.is_whitespace() && depths[*at] == 0);
    let (word, rest) = text.split_at(end.map_or(text.len(), |(at, _)| at));
    (word, rest.trim_start())
}

impl fmt::Display for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{} ", self.name())?;
        if self.function.takes_key() {
            write!(f, "{} ", self.key)?;
        }
        write!(f, "{}}}", self.of)
    }
}

impl Written<'_> {
    /// A variable without words after its name.
    fn alone(&self, words: &[&str], segment: Segment) -> Result<Segment, String> {
        words.is_empty().then_some(segment).ok_or_else(|| self.misread())
    }

    /// The only word after its name.
    fn one<'w>(&self, words: &[&'w str]) -> Result<&'w str, String> {
        if let [word] = words { Ok(word) } else { Err(self.misread()) }
    }

    fn misread(&self) -> String {
        let example = VARIABLES.iter().find(|(name, ..)| *name == self.name).map_or("", |row| row.1);
        format!("unknown variable {:?}; use {example}", self.whole)
    }
}

fn unknown(written: &Written) -> String {
    let plain = VARIABLES.iter().map(|(name, example, _)| (*name, (*example).to_owned()));
    let all: Vec<(&str, String)> = plain.chain(Function::examples()).collect();
    let near = nearest(written.name, all.iter().map(|(name, _)| *name));
    match all.iter().find(|(name, _)| Some(*name) == near) {
        Some((_, example)) => format!("unknown variable {:?}; use {example}", written.whole),
        None => {
            let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            format!(
                "unknown variable {:?}; use {{rand 1 4096}}, or one of {}",
                written.whole,
                names.join(", ")
            )
        }
    }
}

fn part(written: &Written, words: &[&str], part: RequestPart) -> Result<Segment, String> {
    match written.place {
        Place::Signed => written.alone(words, Segment::Part(part)),
        Place::Path | Place::Field | Place::Content | Place::Argument => {
            let name = written.name;
            Err(format!("{{{name}}} is for digests in a header; use {{hmac-sha256 {{env KEY}} {{{name}}}}}"))
        }
    }
}

fn rand(written: &Written, words: &[&str]) -> Result<Segment, String> {
    let whole = written.whole;
    let (low, high, curve) = match words {
        [low, high] => (low, high, Curve::Even),
        [low, high, name] => match Curve::NAMED.iter().find(|(own, _)| own == name) {
            Some((_, curve)) => (low, high, *curve),
            None => return Err(format!("{whole:?}: no such distribution; use zipf or normal: {name:?}")),
        },
        _ => return Err(format!("{whole:?} needs two integers; use {{rand 1 4096}}")),
    };
    match (Count::parse(low), Count::parse(high)) {
        (Ok(from), Ok(to)) if from <= to => Ok(Segment::Rand { low: from.0, high: to.0, curve }),
        (Ok(_), Ok(_)) => Err(format!("{whole:?} is reversed; use {{rand {high} {low}}}")),
        _ => Err(format!("{whole:?} needs two integers; use {{rand 1 4096}}")),
    }
}

fn choice(written: &Written, words: &[&str]) -> Result<Segment, String> {
    if words.is_empty() {
        return Err(written.misread());
    }
    match words.iter().find(|word| word.contains('{')) {
        None => Ok(Segment::Choice(words.iter().map(|word| (*word).to_owned()).collect())),
        Some(word) => Err(format!("{{choice}} takes plain words, without braces: {word:?}")),
    }
}

fn env(written: &Written, words: &[&str]) -> Result<Segment, String> {
    let name = written.one(words)?;
    // POSIX.1, XBD section 8.1.
    let is_letter = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let is_env = name.bytes().next().is_some_and(is_letter)
        && name.bytes().all(|b| is_letter(b) || b.is_ascii_digit());
    match is_env {
        true => Ok(Segment::Env(Variable { name: name.to_owned(), value: None })),
        false => Err(format!("{name:?} is not the name of an environment variable; use {{env TOKEN}}")),
    }
}

/// Looks up the column of `{csv NAME.COLUMN}`.
fn column(written: &Written, path: &str) -> Result<Segment, String> {
    let Written { whole: text, tables, .. } = written;
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

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Segment::Fixed(text) => {
                for (at, c) in text.char_indices() {
                    if c == '{' && super::starts_variable(&text[at..]) {
                        f.write_str("{")?;
                    }
                    write!(f, "{c}")?;
                }
                Ok(())
            }
            Segment::Rand { low, high, curve } => {
                let name = Curve::NAMED.iter().find(|(_, own)| own == curve).map_or("", |(name, _)| name);
                write!(f, "{{rand {low} {high}{}{name}}}", if name.is_empty() { "" } else { " " })
            }
            Segment::Seq => f.write_str("{seq}"),
            Segment::Choice(words) => write!(f, "{{choice {}}}", words.join(" ")),
            Segment::Csv(column) => write!(f, "{{csv {}}}", column.name()),
            Segment::Env(variable) => write!(f, "{{env {}}}", variable.name),
            Segment::Var { name, .. } => write!(f, "{{var {name}}}"),
            Segment::Now(now) => now.fmt(f),
            Segment::Uuid => f.write_str("{uuid}"),
            Segment::Random(length) => write!(f, "{{string {length}}}"),
            Segment::Part(RequestPart::Body) => f.write_str("{body}"),
            Segment::Part(RequestPart::Path) => f.write_str("{path}"),
            Segment::Derived(derived) => derived.fmt(f),
        }
    }
}
