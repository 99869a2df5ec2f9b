//! Parses a request body that is a JSON object. All mistakes are collected and reported at once, as messages for the author of the
//! request.

use serde_json::{Map, Value};

use crate::problem::Problem;

/// The schema of an object.
pub(super) struct Form {
    /// The object's name in messages: `a run`.
    pub(super) name: &'static str,
    pub(super) keys: &'static [&'static str],
    /// The fix, as a suffix of each message.
    pub(super) fix: &'static str,
}

/// The fields that have not been taken yet, and the mistakes found so far.
pub(super) struct Fields<'f> {
    form: &'f Form,
    left: Map<String, Value>,
    mistakes: Vec<String>,
}

impl<'f> Fields<'f> {
    /// Reads the fields of a body.
    ///
    /// # Errors
    /// The body is not a JSON object.
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

    /// Whether a field is present and has not been taken.
    pub(super) fn has(&self, name: &str) -> bool {
        self.left.get(name).is_some_and(|value| !value.is_null())
    }

    /// Takes the value of a field; `None` if it is absent or null.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        self.left.remove(name).filter(|value| !value.is_null())
    }

    /// Takes a string field; another type is a mistake.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.take(name)? {
            Value::String(text) => Some(text),
            other => self.wrong(name, "a string", &other),
        }
    }

    /// Takes an object field; empty if it is absent.
    pub(super) fn object(&mut self, name: &str) -> Map<String, Value> {
        let read = match self.take(name) {
            None => None,
            Some(Value::Object(fields)) => Some(fields),
            Some(other) => self.wrong(name, "an object", &other),
        };
        read.unwrap_or_default()
    }

    /// Records a value of the wrong type as a mistake.
    fn wrong<T>(&mut self, name: &str, wanted: &str, value: &Value) -> Option<T> {
        let fix = self.form.fix;
        self.add(format!("{name}: use {wanted}, not {}; {fix}", kind(value)));
        None
    }

    /// Records a mistake.
    pub(super) fn add(&mut self, mistake: impl Into<String>) {
        self.mistakes.push(mistake.into());
    }

    /// All mistakes found.
    pub(super) fn into_mistakes(self) -> Vec<String> {
        self.mistakes
    }

    /// Ends the parsing: returns `read` if there are no mistakes.
    ///
    /// # Errors
    /// All mistakes.
    pub(super) fn end<T>(self, read: T) -> Result<T, Problem> {
        if self.mistakes.is_empty() { Ok(read) } else { Err(Problem::wrong(self.mistakes)) }
    }
}

/// A message with the position of a JSON syntax error.
fn unreadable(e: &serde_json::Error) -> String {
    let why = if e.is_eof() { "it ends too early" } else { "check its quotes, commas and braces" };
    format!("not JSON: line {}, column {}: {why}", e.line(), e.column())
}

/// The name of a value's type, for messages.
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
