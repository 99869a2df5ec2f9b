//! The steps of a population, as written, checked.

use super::document::Section;
use super::expectation::{self, Context};
use super::outgoing::with_defaults;
use super::population::{Reader, name};
use crate::flags::grpc;
use crate::header;
use crate::nearest::nearest_or_all;
use crate::request::LONGEST_REQUEST;
use crate::text::{Place, path};
use crate::{Act, Expectation, Grpc, Request, Scheme, Step, Target, Text, Then, Think};
use std::collections::{HashMap, HashSet};
use units::Bytes;

/// Where a rate paces the steps.
const NOT_BY_RATE: &str = "cannot be used with rate, which sets when requests are due; remove it";

/// What the steps of a population share.
pub(super) struct StepContext<'g> {
    /// Its own section.
    pub(super) own: &'g Section,
    pub(super) target: &'g Target,
    /// gRPC: what its calls share.
    pub(super) grpc: &'g Option<Grpc>,
    /// The fields of each request that has none of that name.
    pub(super) headers: &'g [(String, Text)],
    /// The default.
    pub(super) think: Think,
    /// Whether requests are scheduled by a rate; then there is no think time.
    pub(super) rated: bool,
}

impl Reader<'_, '_> {
    /// All steps; those with a mistake are left out.
    pub(super) fn steps(&mut self, context: &StepContext) -> Vec<Step> {
        let sections = context.own.sections("step");
        let given: Vec<Option<String>> =
            sections.iter().map(|section| section.read(self.notes, "name", name)).collect();
        let mut seen = HashSet::new();
        for (section, name) in sections.iter().zip(&given) {
            if let Some(name) = name.as_ref().filter(|name| !seen.insert(name.as_str())) {
                section.note(self.notes, "name", format!("duplicate step name: {name:?}"));
            }
        }
        let mut taken = given.iter().flatten().map(|name| (name.clone(), 1)).collect();
        let mut steps = Vec::new();
        for (section, given) in sections.iter().zip(given) {
            let Some(act) = self.act(section, context) else { continue };
            let name = given.unwrap_or_else(|| unused(&mut taken, &called(&act)));
            steps.push(Step { name, act });
        }
        steps
    }

    /// What a step does.
    fn act(&mut self, section: &Section, context: &StepContext) -> Option<Act> {
        let scheme = context.target.scheme;
        let verbs: Vec<&str> =
            ["request", "send", "wait", "close"].into_iter().filter(|verb| section.has(verb)).collect();
        let verb = match verbs[..] {
            [] if section.has("expect") && !scheme.has_requests() => "expect",
            [] => {
                let fix = if scheme.has_requests() { "request = \"GET /\"" } else { "send = \"hello\"" };
                self.notes.add(section.at, &section.path, format!("the step does nothing; use {fix}"));
                return None;
            }
            [verb] => verb,
            [first, second, ..] => {
                let why = format!("a step has one action, and this one also has {first}; use another step");
                section.note(self.notes, second, why);
                return None;
            }
        };
        self.belongs(section, verb, scheme);
        match verb {
            "request" => self.request(section, context),
            "wait" => {
                let wait = section.read(self.notes, "wait", Think::parse)?;
                if context.rated {
                    section.note(self.notes, "wait", NOT_BY_RATE);
                }
                Some(Act::Wait(wait))
            }
            "close" => {
                if section.truth("close") == Some(false) {
                    section.note(self.notes, "close", "false does nothing; remove the step");
                }
                Some(Act::Close)
            }
            _ => self.message(section, context),
        }
    }

    /// Notes the keys that do not go with what the step does.
    fn belongs(&mut self, section: &Section, verb: &str, scheme: Scheme) {
        let wrong: &[&str] = match verb {
            "request" => &[],
            "send" | "expect" => &["headers", "body", "body-file"],
            _ => &["headers", "body", "body-file", "expect", "think"],
        };
        let why = format!("cannot be used with {verb}; remove it, or use another step");
        section.refuse(self.notes, wrong, why);
        match (verb, scheme.has_requests()) {
            ("request", false) => {
                section.note(self.notes, verb, format!("{scheme} sends messages; use send = \"hello\""));
            }
            ("send", true) => {
                section.note(self.notes, verb, "http:// sends requests; use request = \"POST /\" and body");
            }
            _ => {}
        }
    }

    fn step_think(&mut self, section: &Section, context: &StepContext) -> Think {
        if context.rated {
            section.refuse(self.notes, &["think"], NOT_BY_RATE);
        }
        section.read(self.notes, "think", Think::parse).unwrap_or(context.think)
    }

    fn request(&mut self, section: &Section, context: &StepContext) -> Option<Act> {
        let think = self.step_think(section, context);
        let tables = self.tables;
        let line = section.read(self.notes, "request", |text| {
            request_line(text, &context.target.path, |text| path(text, tables))
        });
        let own =
            section.pairs("headers").iter().map(|pair| self.header(section, pair, Scheme::Http)).collect();
        let headers = with_defaults(own, context.headers);
        let call = self.call(section, context, line.as_ref());
        let body = match call {
            Some(_) => self.grpc_body(section, context),
            None => self.body(section),
        };
        let (method, path) = line?;
        let method = if call.is_some() { "POST".to_owned() } else { method };
        let mut request = Request { method, path, headers, body, call, expect: Expectation::default() };
        request.expect = self.expected(section, context, request.numbers());
        let longest = request.max_len(context.target.host_header(0).len());
        if longest > LONGEST_REQUEST {
            let key = if section.has("body") { "body" } else { "headers" };
            section.note(self.notes, key, too_long(longest));
        }
        Some(Act::Request { request, think })
    }

    /// The check of the response: that of the step, else of the population, else of the file.
    pub(super) fn expected(
        &mut self,
        section: &Section,
        context: &StepContext,
        numbers: usize,
    ) -> Expectation {
        let expect_context = Context { scheme: context.target.scheme, numbers: Some(numbers), sent: true };
        let own_expect = [section, context.own, self.top].into_iter().find(|section| section.has("expect"));
        let expected = own_expect
            .and_then(|section| expectation::read(self.notes, section, expect_context))
            .unwrap_or_default();
        if context.grpc.is_some() { grpc::expected(expected) } else { expected }
    }

    /// A step of WebSocket or TCP that sends, expects, or both.
    fn message(&mut self, section: &Section, context: &StepContext) -> Option<Act> {
        let think = self.step_think(section, context);
        let tables = self.tables;
        let text = section
            .read(self.notes, "send", |text| message(text, |text| Text::parse(text, Place::Content, tables)));
        let numbers = text.as_ref().map(Text::numbers);
        let expect_context = Context { scheme: context.target.scheme, numbers, sent: section.has("send") };
        let expected = match context.target.scheme.has_requests() {
            true => None,
            false => expectation::read(self.notes, section, expect_context),
        };
        match (section.has("send"), text, expected) {
            (true, text, expected) => Some(Act::Send { text: text?, expected, think }),
            (false, _, expected) => Some(Act::Expect { expected: expected?, think }),
        }
    }

    /// What follows the last step; `done` is the default, `end` if `loop` is false.
    pub(super) fn behind(&mut self, own: &Section, steps: &[Step], done: Then, end: Then) -> Then {
        let then = match (own.truth("loop"), own.scalar("loop")) {
            (Some(true), _) => Then::Again(0),
            (Some(false), _) => end,
            (None, None) => done,
            (None, Some(scalar)) => match steps.iter().position(|step| step.name == scalar.text) {
                Some(at) => Then::Again(at as u16),
                None => {
                    let text = &scalar.text;
                    let near = nearest_or_all(text, steps.iter().map(|step| step.name.as_str()));
                    own.note(self.notes, "loop", format!("no such step; use {near}: {text:?}"));
                    return end;
                }
            },
        };
        if let Then::Again(from) = then
            && !steps.is_empty()
            && !steps.iter().skip(usize::from(from)).any(|step| step.act.takes_time())
        {
            let why = "infinite loop without a pause; let a step expect a response, or use wait = \"1s\"";
            own.note(self.notes, "loop", why);
        }
        then
    }
}

/// The message for a request of this length.
pub(super) fn too_long(length: usize) -> String {
    format!("a request may have at most 64 KiB in total: {}", Bytes(length as u64).brief())
}

/// A method and a path; the one that is absent is GET, or `path`.
fn request_line(
    text: &str,
    target: &Text,
    read: impl FnOnce(&str) -> Result<Text, String>,
) -> Result<(String, Text), String> {
    let text = text.trim();
    let (method, path) = match text.split_once(' ') {
        _ if text.starts_with('/') => ("GET", Some(text)),
        Some((method, path)) => (method, Some(path.trim())),
        None => (text, None),
    };
    header::method(method)?;
    let path = match path {
        Some(path) if !path.starts_with('/') => {
            let why = "a path starts with /, and the host is that of the target";
            return Err(format!("{why}; use {method} /: {path:?}"));
        }
        Some(path) => read(path)?,
        None => target.clone(),
    };
    Ok((method.to_owned(), path))
}

/// A message of WebSocket or TCP.
pub(super) fn message(text: &str, read: impl FnOnce(&str) -> Result<Text, String>) -> Result<Text, String> {
    let read = read(text)?;
    match read.max_len() {
        0 => Err("an empty message has no echo; use a non-empty text: \"\"".to_owned()),
        1..=LONGEST_REQUEST => Ok(read),
        length => Err(format!("a message may have at most 64 KiB: {}", Bytes(length as u64).brief())),
    }
}

/// A name for a step, from what it does: `post-login`.
fn called(act: &Act) -> String {
    let Act::Request { request, .. } = act else {
        let name = match act {
            Act::Send { .. } => "send",
            Act::Expect { .. } => "expect",
            Act::Wait(_) => "wait",
            _ => "close",
        };
        return name.to_owned();
    };
    let path = request.path.to_string();
    let path = path.split(['?', '{']).next().unwrap_or_default();
    let parts = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    // A method may have letters that no name has.
    let method: String = request.method.chars().filter(char::is_ascii_alphabetic).collect();
    let method = if method.is_empty() { "request" } else { &method };
    let name = parts.fold(method.to_owned(), |name, part| format!("{name}-{part}"));
    name.chars().take(32).collect::<String>().to_ascii_lowercase()
}

/// An unused name: this one, or with a number appended. `taken`: the names in use, each with the last number appended to it.
fn unused(taken: &mut HashMap<String, u32>, name: &str) -> String {
    let mut free = name.to_owned();
    while taken.contains_key(&free) {
        let number = taken.entry(name.to_owned()).or_insert(1);
        *number += 1;
        free = format!("{name}-{number}");
    }
    taken.insert(free.clone(), 1);
    free
}
