//! The file as TOML, checked against the table of keys: values with their places, and what is not allowed. A command line is
//! the top level of a file whose places are its flags.

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

/// The mistakes found so far, and where they are.
pub(super) struct Notes<'t> {
    /// None: on a command line.
    file: Option<File<'t>>,
    /// Each with its offset: an octet of the file, or the number of a flag.
    found: Vec<(usize, Mistake)>,
}

struct File<'t> {
    name: String,
    text: &'t str,
    /// The octet where each line begins.
    lines: Vec<usize>,
}

/// A text of the file, or a number in it, with its offset.
#[derive(Clone, Debug)]
pub(super) struct Scalar {
    pub(super) text: String,
    pub(super) at: usize,
}

/// A table of the file with known keys and values of the right kind; others are noted as mistakes.
pub(super) struct Section {
    /// As a mistake names it: `population.users`.
    pub(super) path: String,
    /// The octet where it begins.
    pub(super) at: usize,
    /// The key, its offset and its value.
    pub(super) values: Vec<(&'static Key, Value)>,
    /// Keys that are there with a mistake in them: absent, and still not missing.
    pub(super) wrong: Vec<&'static str>,
    /// Keys that it cannot have.
    pub(super) unknown: usize,
}

/// A value of the right kind.
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

    /// Those of a command line.
    pub(super) fn of_flags() -> Notes<'static> {
        Notes { file: None, found: Vec::new() }
    }

    /// Notes what is wrong at an offset, with the key that it is about.
    pub(super) fn add(&mut self, at: usize, key: &str, why: impl fmt::Display) {
        let (place, text) = (self.place(at, key), escaped(&why.to_string()));
        self.found.push((at, Mistake { place, text }));
    }

    /// The same, where `why` has several lines of our own.
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

    /// A flag as it is written here, where it may be a key: `--think`, or `think`.
    pub(super) fn name(&self, flag: &Flag) -> String {
        if self.file.is_some() { flag.in_file().name.to_owned() } else { flag.place() }
    }

    /// The same with a value, which is written so in a file: `--think 5s`, or `think = "5s"`. A flag that takes none has `true` there.
    pub(super) fn written(&self, flag: &Flag, value: &str) -> String {
        match (&self.file, flag.takes) {
            (Some(_), _) => format!("{} = {value}", flag.in_file().name),
            (None, _) if flag.name == flag::TARGET.name => value.trim_matches('"').to_owned(),
            (None, Takes::Nothing) => flag.place(),
            (None, _) => format!("{} {}", flag.place(), value.trim_matches('"')),
        }
    }

    /// The octet of a text in the file, from `at` on.
    pub(super) fn find(&self, at: usize, text: &str) -> Option<usize> {
        let file = self.file.as_ref()?;
        let at = file.text.floor_char_boundary(at);
        file.text[at..].find(text).map(|found| at + found)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Is there none?
    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// All of them, in the order of the file, or of the flags.
    pub(super) fn into_mistakes(mut self) -> Vec<Mistake> {
        self.found.sort_by_key(|(at, _)| *at);
        // What several populations take over from the top is read for each of them.
        let mut seen = HashSet::new();
        let all = self.found.into_iter().map(|(_, mistake)| mistake);
        all.filter(|mistake| seen.insert(mistake.to_string())).collect()
    }
}

impl File<'_> {
    /// Line and column of an octet, both from 1; a column is a character.
    fn position(&self, at: usize) -> (usize, usize) {
        let at = self.text.floor_char_boundary(at);
        let line = self.lines.partition_point(|start| *start <= at);
        (line, self.text[self.lines[line - 1]..at].chars().count() + 1)
    }
}

/// The flag of a key, which may be one inside the flag's: `headers.X-A`.
fn of_key(key: &str) -> Option<&'static Flag> {
    let first = key.split(['.', '[']).next().unwrap_or_default();
    FLAGS.iter().find(|flag| flag.key.is_some_and(|own| own.name == first)).copied()
}

/// A text of the user in one line of a message: what would move the cursor of a terminal is escaped.
fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { shown.extend(c.escape_debug()) } else { shown.push(c) }
    }
    shown
}

/// Reads a file against its table. Invalid TOML is noted, and the rest is read nevertheless.
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

/// What to write instead of a key that a table has not.
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

/// The value, where it is of the key's kind; what is wrong with it is noted.
fn value(notes: &mut Notes, path: &str, key: &'static Key, found: &Spanned<DeValue>) -> Option<Value> {
    let at = found.span().start;
    let read = match (key.kind, found.get_ref()) {
        (Kind::Text | Kind::OneOf(_) | Kind::TextOrTable(_) | Kind::TruthOrText, DeValue::String(_))
        | (Kind::Number, DeValue::String(_) | DeValue::Integer(_)) => scalar(found).map(Value::Scalar),
        // TOML takes each number with an exponent for a floating-point one; whether it is whole, its reader sees.
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

/// A value inside that of a key; what is wrong with it is noted, and the others are read nevertheless.
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

/// The example, with its key where that is not in it already.
fn as_written(key: &Key) -> String {
    match key.kind {
        Kind::Tables(_) | Kind::Named(_) => key.example.to_owned(),
        _ => format!("{} = {}", key.name, key.example),
    }
}

/// The article and the name of the value's type.
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

/// A text, or a whole number in decimal as it was written.
fn scalar(found: &Spanned<DeValue>) -> Option<Scalar> {
    let text = match found.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
        _ => return None,
    };
    Some(Scalar { text, at: found.span().start })
}

/// A key of the user's.
fn named_by(name: &Spanned<Cow<str>>) -> Scalar {
    Scalar { text: name.get_ref().to_string(), at: name.span().start }
}

/// `true` or `false`, as a text.
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

/// The tables of a list; each is called by its `name` key, or counted from 1.
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
    /// The first value of a flag, as typed; none of one that takes none.
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
    /// A key of this section, as a mistake names it.
    pub(super) fn key(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.values.iter().find(|(key, _)| key.name == name).map(|(_, value)| value)
    }

    /// Is the key present, even if with a mistake?
    pub(super) fn has(&self, name: &str) -> bool {
        self.value(name).is_some() || self.is_wrong(name)
    }

    /// Whether one of its own keys is a mistake: what it says is not known then.
    pub(super) fn has_mistake(&self) -> bool {
        self.unknown > 0 || !self.wrong.is_empty()
    }

    /// Whether the value of a key is of the wrong kind.
    pub(super) fn is_wrong(&self, name: &str) -> bool {
        self.wrong.contains(&name)
    }

    /// A text or a number.
    pub(super) fn scalar(&self, name: &str) -> Option<&Scalar> {
        let Value::Scalar(scalar) = self.value(name)? else { return None };
        Some(scalar)
    }

    /// Texts in brackets; none where the key is absent.
    pub(super) fn scalars(&self, name: &str) -> Option<&[Scalar]> {
        let Value::Scalars(scalars) = self.value(name)? else { return None };
        Some(scalars)
    }

    /// `true` or `false`.
    pub(super) fn truth(&self, name: &str) -> Option<bool> {
        let Value::Truth(truth, _) = self.value(name)? else { return None };
        Some(*truth)
    }

    /// The user's own keys.
    pub(super) fn pairs(&self, name: &str) -> &[(Scalar, Scalar)] {
        if let Some(Value::Pairs(pairs)) = self.value(name) { pairs } else { &[] }
    }

    /// A table.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        let Value::Section(section) = self.value(name)? else { return None };
        Some(section)
    }

    /// An array of tables; none if the key is absent.
    pub(super) fn sections(&self, name: &str) -> &[Section] {
        if let Some(Value::Sections(sections)) = self.value(name) { sections } else { &[] }
    }

    /// Is it a list of tables, without any?
    pub(super) fn is_empty_list(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Sections(sections)) if sections.is_empty())
    }

    /// Tables with names of the user.
    pub(super) fn named(&self, name: &str) -> &[(Scalar, Section)] {
        if let Some(Value::Named(sections)) = self.value(name) { sections } else { &[] }
    }

    /// The place of a key's value; the section's start if it is absent.
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

    /// The value of a key as `parse` reads it; none where it is absent, or a mistake, which is noted.
    pub(super) fn read<T, E: fmt::Display>(
        &self,
        notes: &mut Notes,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Option<T> {
        let scalar = self.scalar(name)?;
        parse(&scalar.text).map_err(|why| notes.add(scalar.at, &self.key(name), why)).ok()
    }

    /// Notes a mistake at each of these keys that is present; on a command line, with its value.
    pub(super) fn refuse(&self, notes: &mut Notes, keys: &[&str], why: impl fmt::Display) {
        for key in keys.iter().filter(|key| self.has(key)) {
            match self.value(key).filter(|_| notes.file.is_none()).and_then(Value::typed) {
                Some(typed) => self.note(notes, key, format!("{why}: {typed:?}")),
                None => self.note(notes, key, &why),
            }
        }
    }

    /// Notes a mistake at a key's value.
    pub(super) fn note(&self, notes: &mut Notes, name: &str, why: impl fmt::Display) {
        notes.add(self.at(name), &self.key(name), why);
    }
}
