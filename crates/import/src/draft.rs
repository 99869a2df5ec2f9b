//! A scenario that is being imported, and its text.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write,
};

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;
use url::Url;

/// A scenario of one population.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// Scheme, host and port: `https://shop.example`.
    pub(crate) origin: String,
    pub(crate) http2: bool,
    pub(crate) cookies: bool,
    pub(crate) insecure: bool,
    pub(crate) compressed: bool,
    pub(crate) steps: Vec<Step>,
    pub(crate) left_out: Vec<String>,
}

/// A request. Its texts are those of a scenario: literal braces are escaped.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    /// The status that was received or is documented, if it is not any 2xx.
    pub(crate) status: Option<u16>,
    pub(crate) redirects: u8,
    /// Pause after it, in milliseconds.
    pub(crate) think_ms: u64,
    /// Variables, each with the JSON pointer of its value.
    pub(crate) captures: Vec<(String, String)>,
    /// What the user should know about it.
    pub(crate) remarks: Vec<String>,
    /// What of it is not in the scenario.
    pub(crate) left_out: Vec<String>,
    /// Whether it is written as a comment, because it changes data.
    pub(crate) is_off: bool,
    /// The response that was recorded, if it is JSON.
    pub(crate) response: Option<Value>,
}

/// Header fields that throng sets itself, or that belong to the recorded connection, cache or browser.
const NOT_TAKEN: [&str; 20] = [
    "host",
    "content-length",
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
    "te",
    "expect",
    "upgrade-insecure-requests",
    "if-none-match",
    "if-modified-since",
    "cache-control",
    "pragma",
    "dnt",
    "priority",
    "origin-trial",
    "sec-gpc",
    "postman-token",
    "accept-encoding",
];

/// The target of a file that names none.
pub(crate) const NO_SERVER: &str = "http://localhost:8080";

/// Longest body that is written into the scenario.
const LONGEST_BODY: usize = 32 << 10;
/// Longest name of a step.
const LONGEST_NAME: usize = 40;

/// Characters that a path may not contain (RFC 3986, section 3.3); a brace would begin a variable.
const PATH: &AsciiSet = &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}');
/// Characters that mean something in a form or query: all but the unreserved ones (RFC 3986, section 2.3).
const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

impl Draft {
    /// Takes the origin of the first URL; false if this one has another, which is then to be left out.
    pub(crate) fn is_of_origin(&mut self, url: &Url) -> bool {
        let origin = url.origin().ascii_serialization();
        if self.origin.is_empty() {
            self.origin.clone_from(&origin);
        }
        self.origin == origin
    }

    /// Lists requests to other origins, each once.
    pub(crate) fn leave_out_others(&mut self, others: &BTreeMap<String, usize>) {
        for (origin, count) in others {
            let requests = counted(*count, "request");
            self.left_out.push(format!("{requests} to {origin}: a scenario has one target per population"));
        }
    }

    /// Gives each step without a name one of its method and path; names are distinct. Lists what of the steps is left out.
    pub(crate) fn name_steps(&mut self) {
        let mut taken = HashSet::new();
        for step in &mut self.steps {
            let text = if step.name.is_empty() {
                format!("{} {}", step.method, step.path.split('?').next().unwrap_or_default())
            } else {
                step.name.clone()
            };
            let name = word(&text, "step");
            let numbered = (2..).map(|n| format!("{name}-{n}"));
            let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
            step.name = free.expect("some number is free");
            taken.insert(step.name.clone());
            for left in std::mem::take(&mut step.left_out) {
                self.left_out.push(format!("of {}: {left}", step.name));
                step.remarks.push(left);
            }
        }
    }

    /// The text of the scenario.
    pub(crate) fn text(&self, name: &str) -> String {
        let mut out = String::new();
        let mut line = |text: &str| writeln!(out, "{text}").expect("a String takes it");
        line(&comment(&format!(
            "Made by `throng import {name}`. One user, step by step: throng try FILE. A load: throng run FILE"
        )));
        self.left_out.iter().for_each(|left| line(&comment(&format!("Not in it: {left}"))));
        line(&format!("target = {}", quoted(&format!("{}/", self.origin))));
        line("duration = \"30s\"");
        line("");
        line("[[population]]");
        line("name = \"users\"");
        line("connections = 50");
        for (is_set, key) in [
            (self.http2, "http2"),
            (self.cookies, "cookies"),
            (self.insecure, "insecure"),
            (self.compressed, "compressed"),
        ] {
            if is_set {
                line(&format!("{key} = true"));
            }
        }
        for step in &self.steps {
            let mark = if step.is_off { "# " } else { "" };
            line("");
            step.remarks.iter().for_each(|remark| line(&comment(remark)));
            step.lines().iter().for_each(|text| line(&format!("{mark}{text}")));
        }
        out
    }
}

impl Step {
    /// A request to this URL; the header fields that are not the connection's own follow.
    pub(crate) fn new(method: &str, url: &Url) -> Step {
        let query = url.query().map_or(String::new(), |query| format!("?{query}"));
        Step {
            method: method.to_ascii_uppercase(),
            path: path(&format!("{}{query}", url.path())),
            ..Step::default()
        }
    }

    /// Adds a header field, unless it is one that throng sets.
    pub(crate) fn header(&mut self, name: &str, value: &str) {
        self.header_text(name, escaped(value.trim()));
    }

    /// As [`Step::header`], with a value that is a text of a scenario.
    pub(crate) fn header_text(&mut self, name: &str, value: String) {
        let lower = name.to_ascii_lowercase();
        let is_of_browser = lower.starts_with(':') || lower.starts_with("sec-");
        let is_there = self.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        if is_of_browser || NOT_TAKEN.contains(&&*lower) || is_there || value.is_empty() {
            return;
        }
        // RFC 9110, section 5.6.2.
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if !name.is_empty()
            && name.bytes().all(is_token)
            && !value.contains(|c: char| c.is_control() && c != '\t')
        {
            self.headers.push((name.to_owned(), value));
        } else {
            self.leave_out(format!("the header field {name:?}, which HTTP does not allow"));
        }
    }

    /// Sets the body, unless it is too long for a scenario.
    pub(crate) fn set_body(&mut self, text: &str) {
        self.set_body_text(escaped(text));
    }

    /// As [`Step::set_body`], with a text of a scenario.
    pub(crate) fn set_body_text(&mut self, text: String) {
        if text.len() > LONGEST_BODY {
            self.leave_out(format!(
                "its body of {} bytes: write it to a file, and set body-file",
                text.len()
            ));
        } else if !text.is_empty() {
            self.body = Some(text);
        }
    }

    /// Notes that this is not in the scenario.
    pub(crate) fn leave_out(&mut self, what: String) {
        self.left_out.push(what);
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![
            "[[population.step]]".to_owned(),
            format!("name = {}", quoted(&self.name)),
            format!("request = {}", quoted(&format!("{} {}", self.method, self.path))),
        ];
        if !self.headers.is_empty() {
            let fields =
                self.headers.iter().map(|(name, value)| format!("{} = {}", key(name), quoted(value)));
            lines.push(format!("headers = {{ {} }}", fields.collect::<Vec<_>>().join(", ")));
        }
        lines.extend(self.body.as_ref().map(|body| format!("body = {}", quoted(body))));
        lines.extend(self.status.map(|status| format!("expect = {{ status = {status} }}")));
        if self.redirects > 0 {
            lines.push(format!("redirects = {}", self.redirects));
        }
        if !self.captures.is_empty() {
            let captures = self
                .captures
                .iter()
                .map(|(name, pointer)| format!("{name} = {{ json = {} }}", quoted(pointer)));
            lines.push(format!("capture = {{ {} }}", captures.collect::<Vec<_>>().join(", ")));
        }
        if self.think_ms > 0 {
            lines.push(format!("think = \"{}ms\"", self.think_ms));
        }
        lines
    }
}

/// `1 request`, `2 requests`.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A comment of TOML: one line without control characters.
fn comment(text: &str) -> String {
    format!("# {}", text.replace(|c: char| c.is_control(), " "))
}

/// A path in a scenario: what it may not contain is percent-encoded.
pub(crate) fn path(text: &str) -> String {
    utf8_percent_encode(text, PATH).to_string()
}

/// A value of a form or query, percent-encoded.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, FORM).to_string()
}

/// Text in a scenario's header or body: a brace before a lower-case letter would begin a variable.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c == '{' && chars.peek().is_some_and(char::is_ascii_lowercase) {
            out.push('{');
        }
    }
    out
}

/// A name in a scenario: letters, digits and `-`, beginning with a letter.
pub(crate) fn word(text: &str, otherwise: &str) -> String {
    let letters = text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    let parts: String = letters.collect();
    let parts: Vec<&str> = parts.split('-').filter(|part| !part.is_empty()).collect();
    let mut name = parts.join("-");
    name.truncate(LONGEST_NAME);
    let name = name.trim_end_matches('-');
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => name.to_owned(),
        Some(_) => format!("{otherwise}-{name}"),
        None => otherwise.to_owned(),
    }
}

/// A string of TOML: literal if that is possible, so that JSON in it stays readable.
fn quoted(text: &str) -> String {
    let is_plain = !text.contains('\'') && !text.contains(|c: char| c.is_control());
    match () {
        () if is_plain && text.contains(['"', '\\']) => format!("'{text}'"),
        // JSON's escapes are TOML's, too, except that TOML wants DEL escaped.
        () => Value::from(text).to_string().replace('\u{7f}', "\\u007f"),
    }
}

/// A key of TOML.
fn key(name: &str) -> String {
    let is_bare = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
    if is_bare { name.to_owned() } else { quoted(name) }
}
