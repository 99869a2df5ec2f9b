//! A body that is a JSON object: its fields, or all that is wrong with them, in words for those who wrote it.

use serde_json::{Map, Value};

use crate::problem::Problem;

/// What an object may have.
pub(super) struct Form {
    /// What it is: `a run`.
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static str],
    /// What to write instead of what is wrong.
    pub(super) fix: &'static str,
}

/// The fields that were not taken yet, and what is wrong with those that were.
pub(super) struct Fields<'f> {
    form: &'f Form,
    left: Map<String, Value>,
    mistakes: Vec<String>,
}

impl<'f> Fields<'f> {
    /// Those of a body.
    ///
    /// # Errors
    /// It is no JSON, or no object.
    pub(super) fn read(body: &[u8], form: &'f Form) -> Result<Fields<'f>, Problem> {
        let Form { name, keys, fix } = form;
        let wrong = |why: String| Problem::wrong(vec![format!("{why}; {fix}")]);
        let left = match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => fields,
            Ok(other) => return Err(wrong(format!("{name} is a JSON object, not {}", kind(&other)))),
            Err(e) => return Err(wrong(unreadable(&e))),
        };
        let unknown = left.keys().filter(|key| !keys.contains(&key.as_str()));
        let mistakes = unknown.map(|key| format!("{key}: no key of {name}; {fix}")).collect();
        Ok(Fields { form, left, mistakes })
    }

    /// Whether a field is there, and not taken yet.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|value| !value.is_null())
    }

    /// The value of a field, if it has one.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// A field that is a text.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other => self.wrong(name, "a string", &other),
        }
    }

    /// What is in a field that is an object; nothing, where it is absent.
    pub(super) fn object(&mut self, name: &str) -> Map<String, Value> {
        let read = match self.take(name) {
            None => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(other) => self.wrong(name, "an object", &other),
        };
        read.unwrap_or_default()
    }

    /// A field of another kind than it should be.
    fn wrong<T>(&mut self, name: &str, wanted: &str, value: &Value) -> Option<T> {
        let fix = self.form.fix;
        self.add(format!("{name}: use {wanted}, not {}; {fix}", kind(value)));
        None
    }

    /// One more mistake.
    pub(super) fn add(&mut self, mistake: impl Into<String>) {
        self.mistakes.push(mistake.into());
    }

    /// All mistakes.
    pub(super) fn into_mistakes(self) -> Vec<String> {
        self.mistakes
    }

    /// What was read.
    ///
    /// # Errors
    /// All mistakes.
    pub(super) fn end<T>(self, read: T) -> Result<T, Problem> {
        if self.mistakes.is_empty() { Ok(read) } else { Err(Problem::wrong(self.mistakes)) }
    }
}

/// Where JSON cannot be read.
fn unreadable(e: &serde_json::Error) -> String {
    let why = if e.is_eof() { "it ends too early" } else { "check its quotes, commas and braces" };
    format!("not JSON: line {}, column {}: {why}", e.line(), e.column())
}

/// What a value is.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
