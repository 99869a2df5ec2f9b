//! A file parsed as TOML and checked against the table of keys: values with their offsets, and mistakes. A command line is read as the top
//! level of a file whose offsets are the numbers of its flags.

use super::keys::{SYNONYMS, TABLES};
use crate::Mistake;
use crate::flag::{self, FLAGS, Flag, Takes};
use crate::key::{Key, Kind, Table};
use crate::nearest::{nearest, one_of};
use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The mistakes found so far, with their places.
pub(super) struct Notes<'t> {
    /// `None` for a command line.
    file: Option<File<'t>>,
    /// Each mistake with its offset: an octet of the file, or the number of a flag.
    found: Vec<(usize, Mistake)>,
}

struct File<'t> {
    name: String,
    text: &'t str,
    /// Octet at which each line begins.
    lines: Vec<usize>,
}

/// A text or number of the file, with its offset.
#[derive(Clone, Debug)]
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) at: usize,
}

/// A table of the file: only known keys with values of the right kind; all others were reported as mistakes.
pub(super) struct Section {
    /// Its name in mistakes: `population.users`.
    pub(super) path: String,
    /// Octet at which it begins.
    pub(super) at: usize,
    /// Keys with their values.
    pub(super) values: Vec<(&'static Key, Value)>,
    /// Keys with an invalid value: they are not in `values`, but not missing either.
    pub(super) wrong: Vec<&'static str>,
    /// Number of unknown keys.
    pub(super) unknown: usize,
}

/// A value of the kind that its key requires.
pub(super) enum Value {
    Scalar(Scalar),
    Scalars(Vec<Scalar>),
    Truth(bool, usize),
    Pairs(Vec<(Scalar, Scalar)>),
    Section(Section),
    Sections(Vec<Section>),
    Named(Vec<(Scalar, Section)>),
}

impl<'t> Notes<'t> {
    pub(super) fn new(file: &str, text: &'t str) -> Notes<'t> {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1)).collect();
        Notes { file: Some(File { name: escaped(file), text, lines }), found: Vec::new() }
    }

    /// For a command line.
    pub(super) fn of_flags() -> Notes<'static> {
        Notes { file: None, found: Vec::new() }
    }

    /// Reports a mistake at an offset, with the key that it concerns.
    pub(super) fn add(&mut self, at: usize, key: &str, why: impl fmt::Display) {
        let (place, text) = (self.place(at, key), escaped(&why.to_string()));
        self.found.push((at, Mistake { place, text }));
    }

    /// Like [`Notes::add`], for a message of throng in several lines.
    pub(super) fn add_lines(&mut self, at: usize, key: &str, why: &str) {
        let text = why.lines().map(escaped).collect::<Vec<_>>().join("\n");
        self.found.push((at, Mistake { place: self.place(at, key), text }));
    }

    fn place(&self, at: usize, key: &str) -> String {
        let Some(file) = &self.file else {
            return of_key(key).map_or_else(|| escaped(key), Flag::place);
        };
        let (line, column) = file.position(at);
        let colon = if key.is_empty() { "" } else { ": " };
        format!("{}:{line}:{column}{colon}{}", file.name, escaped(key))
    }

    /// A flag's name in this input: `--think`, or the key `think`.
    pub(super) fn name(&self, flag: &Flag) -> String {
        if self.file.is_some() { flag.in_file().name.to_owned() } else { flag.place() }
    }

    /// A flag with a value, as this input writes it: `--think 5s`, or `think = "5s"`. In a file, `value` is `true` for a flag that takes
    /// none.
    pub(super) fn written(&self, flag: &Flag, value: &str) -> String {
        match (&self.file, flag.takes) {
            (Some(_), _) => format!("{} = {value}", flag.in_file().name),
            (None, _) if flag.name == flag::TARGET.name => value.trim_matches('"').to_owned(),
            (None, Takes::Nothing) => flag.place(),
            (None, _) => format!("{} {}", flag.place(), value.trim_matches('"')),
        }
    }

    /// Octet of a text in the file, at or after `at`.
    pub(super) fn find(&self, at: usize, text: &str) -> Option<usize> {
        let file = self.file.as_ref()?;
        let at = file.text.floor_char_boundary(at);
        file.text[at..].find(text).map(|found| at + found)
    }

    /// Number of mistakes.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether there are no mistakes.
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All mistakes, in the order of the file or the flags.
    pub(super) fn into_mistakes(mut self) -> Vec<Mistake> {
        self.found.sort_by_key(|(at, _)| *at);
        // A top-level value is read for each population that inherits it, which repeats its mistakes.
        let mut seen = HashSet::new();
        let all = self.found.into_iter().map(|(_, mistake)| mistake);
        all.filter(|mistake| seen.insert(mistake.to_string())).collect()
    }
}

impl File<'_> {
    /// Line and column of an octet, both from 1; columns count characters.
    fn position(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.lines.partition_point(|start| *start <= at);
        (line, self.text[self.lines[line - 1]..at].chars().count() + 1)
    }
}

/// The flag of a key, or of the key that contains it: `headers.X-A`.
fn of_key(key: &str) -> Option<&'static Flag> {
    let first = key.split(['.', '[']).next().unwrap_or_default();
    FLAGS.iter().find(|flag| flag.key.is_some_and(|own| own.name == first)).copied()
}

/// The user's text for a one-line message: control characters are escaped, because they could move a terminal's cursor.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}

/// Reads a file with the keys of `table`. Invalid TOML is reported, and the rest is read nevertheless.
pub(super) fn read(notes: &mut Notes, text: &str, table: &'static Table) -> Section {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut last = None;
    for error in &errors {
        let at = error.span().map_or(0, |span| span.start);
        if last.replace(at) == Some(at) {
            continue; // an alias of it
        }
        notes.add(at, "", format!("not valid TOML: {}", error.message().replace('\n', " ")));
    }
    section(notes, String::new(), 0, root.get_ref(), table)
}

fn section(notes: &mut Notes, path: String, at: usize, found: &DeTable, table: &'static Table) -> Section {
    let mut section = Section { path, at, values: Vec::new(), wrong: Vec::new(), unknown: 0 };
    let mut entries: Vec<_> = found.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    for (name, found) in entries {
        let text = name.get_ref().as_ref();
        let Some(key) = table.key(text) else {
            let why = format!("{text:?} is not a key of {}; use {}", table.place, instead(text, table));
            notes.add(name.span().start, &section.path, why);
            section.unknown += 1;
            continue;
        };
        match value(notes, &section.key(key.name), key, found) {
            Some(value) => section.values.push((key, value)),
            None => section.wrong.push(key.name),
        }
    }
    section
}

/// What to use instead of a key that a table lacks.
fn instead(text: &str, table: &Table) -> String {
    let names = || table.keys.iter().map(|key| key.name);
    let here =
        |(other, ours): &(&str, &'static str)| (*other == text && table.key(ours).is_some()).then_some(*ours);
    if let Some(key) = SYNONYMS.iter().find_map(here).or_else(|| nearest(text, names())) {
        return key.to_owned();
    }
    match TABLES.iter().find(|table| table.key(text).is_some()) {
        Some(home) => format!("it in {}", home.place),
        None => one_of(names()),
    }
}

/// The value if it is of the key's kind; otherwise reports why not.
fn value(notes: &mut Notes, path: &str, key: &'static Key, found: &Spanned<DeValue>) -> Option<Value> {
    let at = found.span().start;
    let read = match (key.kind, found.get_ref()) {
        (Kind::Text | Kind::OneOf(_) | Kind::TextOrTable(_) | Kind::TruthOrText, DeValue::String(_))
        | (Kind::Number, DeValue::String(_) | DeValue::Integer(_)) => scalar(found).map(Value::Scalar),
        // TOML reads a number with an exponent as floating point; the key's parser decides whether it is an integer.
        (Kind::Number, DeValue::Float(number)) if number.as_str().contains(['e', 'E']) => {
            Some(Value::Scalar(Scalar { text: number.as_str().to_owned(), at }))
        }
        (Kind::Truth | Kind::TruthOrText, DeValue::Boolean(truth)) => Some(Value::Truth(*truth, at)),
        (Kind::Texts, DeValue::Array(items)) => {
            let text = |item| {
                read_or_note(notes, path, key, item, |item| scalar(item).filter(|_| item.get_ref().is_str()))
            };
            Some(Value::Scalars(items.iter().filter_map(text).collect()))
        }
        (Kind::Pairs, DeValue::Table(table)) => Some(Value::Pairs(pairs(notes, path, key, table, scalar))),
        (Kind::Values, DeValue::Table(table)) => {
            let value = |value: &Spanned<DeValue>| scalar(value).or_else(|| truth(value));
            Some(Value::Pairs(pairs(notes, path, key, table, value)))
        }
        (Kind::TextOrTable(inner), DeValue::Table(table)) => {
            Some(Value::Section(section(notes, path.to_owned(), at, table, inner)))
        }
        (Kind::Tables(inner), DeValue::Array(items)) => {
            tables(notes, path, inner, items.iter()).map(Value::Sections)
        }
        (Kind::Named(inner), DeValue::Table(table)) => named(notes, path, inner, table).map(Value::Named),
        _ => None,
    };
    if read.is_none() {
        not_allowed(notes, path, key, found);
    }
    read
}

fn not_allowed(notes: &mut Notes, path: &str, key: &Key, found: &Spanned<DeValue>) {
    let what = what(found.get_ref());
    notes.add(found.span().start, path, format!("{what} is not allowed here; use {}", as_written(key)));
}

/// An element of a key's value; a mistake in it is reported, and the others are read nevertheless.
fn read_or_note(
    notes: &mut Notes,
    path: &str,
    key: &Key,
    found: &Spanned<DeValue>,
    read: impl Fn(&Spanned<DeValue>) -> Option<Scalar>,
) -> Option<Scalar> {
    let value = read(found);
    if value.is_none() {
        not_allowed(notes, path, key, found);
    }
    value
}

/// A key's example, with the key unless the example contains it.
fn as_written(key: &Key) -> String {
    match key.kind {
        Kind::Tables(_) | Kind::Named(_) => key.example.to_owned(),
        _ => format!("{} = {}", key.name, key.example),
    }
}

/// Name of the value's type, with its article.
fn what(found: &DeValue) -> &'static str {
    match found {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a floating-point number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A text, or a decimal integer as it was written.
fn scalar(found: &Spanned<DeValue>) -> Option<Scalar> {
    let text = match found.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        _ => return None,
    };
    Some(Scalar { text, at: found.span().start })
}

/// A key that the user chose.
fn named_by(name: &Spanned<Cow<str>>) -> Scalar {
    Scalar { text: name.get_ref().to_string(), at: name.span().start }
}

/// `true` or `false` as a text.
fn truth(found: &Spanned<DeValue>) -> Option<Scalar> {
    let DeValue::Boolean(truth) = found.get_ref() else { return None };
    Some(Scalar { text: truth.to_string(), at: found.span().start })
}

fn pairs(
    notes: &mut Notes,
    path: &str,
    key: &Key,
    table: &DeTable,
    value: impl Fn(&Spanned<DeValue>) -> Option<Scalar>,
) -> Vec<(Scalar, Scalar)> {
    let mut pairs = Vec::new();
    for (name, found) in table.iter() {
        let name = named_by(name);
        let path = format!("{path}.{}", name.text);
        pairs.extend(read_or_note(notes, &path, key, found, &value).map(|value| (name, value)));
    }
    pairs.sort_by_key(|(name, _)| name.at);
    pairs
}

/// The tables of a list; their paths contain the value of `name`, or a number from 1.
fn tables<'v, 'i: 'v>(
    notes: &mut Notes,
    path: &str,
    inner: &'static Table,
    items: impl Iterator<Item = &'v Spanned<DeValue<'i>>>,
) -> Option<Vec<Section>> {
    let tables: Vec<_> =
        items.map(|item| item.get_ref().as_table().map(|table| (item, table))).collect::<Option<_>>()?;
    let read = tables.into_iter().enumerate().map(|(i, (item, table))| {
        let name = table.get("name").and_then(|name| name.get_ref().as_str()).filter(|name| !name.is_empty());
        let path = match name {
            Some(name) => format!("{path}.{name}"),
            None => format!("{path}[{}]", i + 1),
        };
        section(notes, path, item.span().start, table, inner)
    });
    Some(read.collect())
}

fn named(
    notes: &mut Notes,
    path: &str,
    inner: &'static Table,
    table: &DeTable,
) -> Option<Vec<(Scalar, Section)>> {
    let mut read = Vec::new();
    for (name, found) in table.iter() {
        let name = named_by(name);
        let path = format!("{path}.{}", name.text);
        let section = section(notes, path, found.span().start, found.get_ref().as_table()?, inner);
        read.push((name, section));
    }
    read.sort_by_key(|(name, _)| name.at);
    Some(read)
}

impl Value {
    /// The first value of a flag, as typed; `None` for a flag that takes none.
    fn typed(&self) -> Option<String> {
        match self {
            Value::Scalar(scalar) => Some(scalar.text.clone()),
            Value::Scalars(scalars) => Some(scalars.first()?.text.clone()),
            Value::Pairs(pairs) => {
                pairs.first().map(|(name, value)| format!("{}: {}", name.text, value.text))
            }
            _ => None,
        }
    }
}

impl Section {
    /// Name in mistakes of a key in this section.
    pub(super) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// Whether the key is present, even with an invalid value.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some() || self.is_wrong(name)
    }

    /// Whether any of its keys is unknown or invalid, so that its meaning is unknown.
    pub(super) fn has_mistake(&self) -> bool {
        self.unknown > 0 || !self.wrong.is_empty()
    }

    /// Whether the value of a key is of the wrong kind.
    pub(super) fn is_wrong(&self, name: &str) -> bool {
        self.wrong.contains(&name)
    }

    /// The value of a key that is a text or number.
    pub(super) fn scalar(&self, name: &str) -> Option<&Scalar> {
        let Value::Scalar(scalar) = self.value(name)? else { return None };
        Some(scalar)
    }

    /// The value of a key that is an array of texts; `None` if absent.
    pub(super) fn scalars(&self, name: &str) -> Option<&[Scalar]> {
        let Value::Scalars(scalars) = self.value(name)? else { return None };
        Some(scalars)
    }

    /// The value of a key that is `true` or `false`.
    pub(super) fn truth(&self, name: &str) -> Option<bool> {
        let Value::Truth(truth, _) = self.value(name)? else { return None };
        Some(*truth)
    }

    /// The pairs of a key whose names the user chose.
    pub(super) fn pairs(&self, name: &str) -> &[(Scalar, Scalar)] {
        if let Some(Value::Pairs(pairs)) = self.value(name) { pairs } else { &[] }
    }

    /// The value of a key that is a table.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        let Value::Section(section) = self.value(name)? else { return None };
        Some(section)
    }

    /// The value of a key that is an array of tables; empty if absent.
    pub(super) fn sections(&self, name: &str) -> &[Section] {
        if let Some(Value::Sections(sections)) = self.value(name) { sections } else { &[] }
    }

    /// Whether the key is an empty array of tables.
    pub(super) fn is_empty_list(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Sections(sections)) if sections.is_empty())
    }

    /// The tables of a key whose names the user chose.
    pub(super) fn named(&self, name: &str) -> &[(Scalar, Section)] {
        if let Some(Value::Named(sections)) = self.value(name) { sections } else { &[] }
    }

    /// Offset of a key's value; the section's if absent.
    pub(super) fn at(&self, name: &str) -> usize {
        match self.value(name) {
            Some(Value::Scalar(scalar)) => scalar.at,
            Some(Value::Scalars(scalars)) => scalars.first().map_or(self.at, |scalar| scalar.at),
            Some(Value::Truth(_, at)) => *at,
            Some(Value::Pairs(pairs)) => pairs.first().map_or(self.at, |(name, _)| name.at),
            Some(Value::Section(section)) => section.at,
            Some(Value::Sections(sections)) => sections.first().map_or(self.at, |section| section.at),
            Some(Value::Named(sections)) => sections.first().map_or(self.at, |(name, _)| name.at),
            None => self.at,
        }
    }

    /// Parses the value of a key; `None` if it is absent or invalid, which is reported.
    pub(super) fn read<T, E: fmt::Display>(
        &self,
        notes: &mut Notes,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let scalar = self.scalar(name)?;
        parse(&scalar.text).map_err(|why| notes.add(scalar.at, &self.key(name), why)).ok()
    }

    /// Reports each of these keys that is present; on a command line, with its value unless that is secret.
    pub(super) fn refuse(&self, notes: &mut Notes, keys: &[&str], why: impl fmt::Display) {
        for key in keys.iter().filter(|key| self.has(key)) {
            let is_shown = notes.file.is_none() && !flag::is_secret(key);
            match self.value(key).filter(|_| is_shown).and_then(Value::typed) {
                Some(typed) => self.note(notes, key, format!("{why}: {typed:?}")),
                None => self.note(notes, key, &why),
            }
        }
    }

    /// Reports a mistake at a key's value.
    pub(super) fn note(&self, notes: &mut Notes, name: &str, why: impl fmt::Display) {
        notes.add(self.at(name), &self.key(name), why);
    }
}
