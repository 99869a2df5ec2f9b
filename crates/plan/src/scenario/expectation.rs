//! Parses and checks `expect`: a text as on the command line, or a table.

use super::document::{Notes, Scalar, Section};
use crate::capture::pointer;
use crate::expect::{length, status};
use crate::header::{is_token, not_a_field};
use crate::{Expectation, ExpectedLength, LONGEST_VALUE, Scheme};

/// Octets of the longest text to search for in a response.
const LONGEST_SOUGHT: usize = 8_192;

/// What an expectation has to fit.
#[derive(Clone, Copy)]
pub(super) struct Context {
    /// The target's protocol.
    pub(super) scheme: Scheme,
    /// How many random numbers the request draws, if known.
    pub(super) numbers: Option<usize>,
    /// Whether something was sent that may be echoed.
    pub(super) sent: bool,
}

/// The expectation of a section; `None` if it is absent or invalid, which is reported.
pub(super) fn read(notes: &mut Notes, section: &Section, context: Context) -> Option<Expectation> {
    if let Some(table) = section.section("expect") {
        return Some(from_table(notes, table, context));
    }
    section.read(notes, "expect", |text| {
        let scheme = context.scheme;
        if !scheme.has_requests() {
            return Err(format!("{scheme} has no status; use expect = {{ body = {text:?} }}"));
        }
        let expect = Expectation::parse(text, scheme, context.numbers)?;
        expect.length.map(ExpectedLength::kept).transpose()?;
        Ok(expect)
    })
}

fn from_table(notes: &mut Notes, table: &Section, context: Context) -> Expectation {
    let scheme = context.scheme;
    if scheme.has_requests() {
        table.refuse(notes, &["echo"], "http:// has no echo; remove it, or use body = \"…\"");
        table.refuse(notes, &["skip"], "http:// has one response to a request; remove it");
    } else {
        let why = format!("not for {scheme}; remove it, or use body = \"…\"");
        table.refuse(notes, &["status", "headers"], why);
    }
    let echo = table.truth("echo").unwrap_or(false);
    if echo && !context.sent {
        table.note(notes, "echo", "this step sends nothing; move it to the step that sends");
    }
    let skip = table.truth("skip").unwrap_or(false);
    if skip && scheme.has_bytes() {
        table.note(notes, "skip", format!("{scheme} has no messages; remove it"));
    } else if skip && !["length", "body", "json", "absent", "echo"].iter().any(|key| table.has(key)) {
        table.note(notes, "skip", "without a condition, every message passes; add body = \"…\"");
    }
    for key in ["headers", "json"] {
        for (name, value) in table.pairs(key) {
            if let Some(why) = variable(&value.text, scheme) {
                notes.add(value.at, &format!("{}.{}", table.key(key), name.text), why);
            }
        }
    }
    let headers = table.pairs("headers").iter().map(|pair| header(notes, table, pair)).collect();
    let status = table.read(notes, "status", |text| status(text, scheme));
    let length = table.read(notes, "length", |text| length(text, context.numbers)?.kept());
    let json = table.pairs("json").iter().filter_map(|pair| json(notes, table, pair)).collect();
    let absent = table.scalars("absent").unwrap_or_default().iter();
    let absent = absent.filter_map(|scalar| {
        pointer(&scalar.text).map_err(|why| notes.add(scalar.at, &table.key("absent"), why)).ok()
    });
    let absent = absent.collect();
    let body = table.read(notes, "body", |text| sought(text, scheme));
    Expectation { status, length, headers, body, echo, skip, json, absent, captures: Vec::new() }
}

/// A value that the content must have at a JSON pointer.
fn json(notes: &mut Notes, table: &Section, (name, value): &(Scalar, Scalar)) -> Option<(String, String)> {
    let key = table.key("json");
    if value.text.len() > LONGEST_VALUE {
        notes.add(value.at, &key, format!("at most {LONGEST_VALUE} octets: {}", value.text.len()));
    }
    pointer(&name.text)
        .map(|pointer| (pointer, value.text.clone()))
        .map_err(|why| notes.add(name.at, &key, why))
        .ok()
}

/// An error if an expected text contains a variable, which would not be replaced. Other braces belong to JSON.
fn variable(text: &str, scheme: Scheme) -> Option<String> {
    let written = text.match_indices('{').find_map(|(at, _)| {
        let length = text[at..].find('}')?;
        let words: Vec<&str> = text[at + 1..at + length].split_whitespace().collect();
        let is_variable = matches!(
            words[..],
            ["seq" | "uuid"] | ["rand", _, _, ..] | ["csv" | "env" | "var" | "string", _]
        ) || matches!(words[..], ["choice" | "now", _, ..]);
        is_variable.then(|| &text[at..=at + length])
    })?;
    let echo = if scheme.has_requests() { "" } else { ", or echo = true for the message that was sent" };
    Some(format!(
        "{written} is not replaced in what is expected; use a text that all responses have in common{echo}: {text:?}"
    ))
}

/// A text to search for in a response.
fn sought(text: &str, scheme: Scheme) -> Result<String, String> {
    if let Some(why) = variable(text, scheme) {
        return Err(why);
    }
    match text.len() {
        0..=LONGEST_SOUGHT => Ok(text.to_owned()),
        length => Err(format!("at most {LONGEST_SOUGHT} octets: {length}")),
    }
}

fn header(notes: &mut Notes, table: &Section, (name, value): &(Scalar, Scalar)) -> (String, String) {
    if !is_token(&name.text) {
        notes.add(name.at, &table.key("headers"), not_a_field(&name.text));
    }
    (name.text.clone(), value.text.clone())
}
