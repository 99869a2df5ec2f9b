//! Parses and checks the steps of a population.

use super::document::Section;
use super::expectation::{self, Context};
use super::outgoing::with_defaults;
use super::{Reader, StepContext, name};
use super::{graphql, grpc};
use crate::body::{from_base64, from_hex};
use crate::header;
use crate::nearest::nearest_or_all;
use crate::request::{LONGEST_REQUEST, too_long};
use crate::text::{Place, is_link, path};
use crate::{Act, Body, Content, Expectation, Request, Scheme, Step, Text, Then, Think};
use std::collections::{HashMap, HashSet};
use units::{Bytes, Count};

/// Refusal of a key if a rate schedules the steps.
const NOT_BY_RATE: &str = "cannot be used with rate, which sets when requests are due; remove it";

/// Keys that send a message.
const SENDS: [&str; 4] = ["send", "send-hex", "send-base64", "send-file"];
/// Most redirects that a request may follow.
const MOST_REDIRECTS: u8 = 20;

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
        let (mut steps, mut chosen, mut is_whole) = (Vec::new(), Vec::new(), true);
        for (section, given) in sections.iter().zip(given) {
            let Some(act) = self.act(section, context) else {
                is_whole = false;
                continue;
            };
            let is_message = matches!(act, Act::Send { .. } | Act::Expect { .. });
            if context.logs_in && is_message && !upgraded(&steps) {
                // An implicit upgrade uses the target's path, as a WebSocket without earlier requests does.
                let (path, headers) = (context.target.path.clone(), Vec::new());
                let upgrade = Act::Upgrade { path, headers, think: Think::default() };
                steps.push(Step::new(&unused(&mut taken, "upgrade"), upgrade));
            }
            let name = given.unwrap_or_else(|| unused(&mut taken, &called(section, &act)));
            let weight = self.weight(section, &act);
            if section.has("weight") && is_of_choice(&act) {
                chosen.push((steps.len(), section));
            }
            let (only_if, repeat) = (self.only_if(section, &act), self.repeat(section, &act));
            steps.push(Step { name, act, weight, only_if, repeat });
        }
        // If a step was left out because of a mistake, a weight may only seem to be alone.
        if is_whole {
            self.lone(&steps, &chosen);
        }
        steps
    }

    /// Reports a weight without a weighted neighbour, which would have no effect. `chosen`: indices and sections of steps with a weight.
    fn lone(&mut self, steps: &[Step], chosen: &[(usize, &Section)]) {
        let has = |at: usize| chosen.iter().any(|(other, _)| *other == at);
        let is_known = |at: usize| steps.get(at).is_some_and(|step| step.weight.is_some());
        for (at, section) in chosen.iter().filter(|(at, _)| is_known(*at)) {
            if !has(at + 1) && !at.checked_sub(1).is_some_and(has) {
                section.note(self.notes, "weight", LONE);
            }
        }
    }

    /// The weight of a step among its alternatives.
    fn weight(&mut self, section: &Section, act: &Act) -> Option<u32> {
        let weight = section.read(self.notes, "weight", |text| match Count::parse(text) {
            Ok(Count(weight @ 1..=MOST_WEIGHT)) => Ok(weight as u32),
            _ => Err(format!("{text:?} is not a weight; use 1 to {MOST_WEIGHT}")),
        });
        if weight.is_some() && !is_of_choice(act) {
            section.note(
                self.notes,
                "weight",
                "a choice is between requests, messages and pauses; remove it",
            );
        }
        weight
    }

    /// The act of a step.
    fn act(&mut self, section: &Section, context: &StepContext) -> Option<Act> {
        let scheme = context.target.scheme;
        let verbs = ["request", "upgrade", "wait", "close"].into_iter().chain(SENDS);
        let verbs: Vec<&str> = verbs.filter(|verb| section.has(verb)).collect();
        let verb = match verbs[..] {
            [] if section.has("graphql") => "request",
            [] if section.has("expect") && !scheme.has_requests() => "expect",
            [] => {
                let fix = if scheme.has_requests() { "request = \"GET /\"" } else { "send = \"hello\"" };
                self.notes.add(section.at, &section.path, format!("the step does nothing; use {fix}"));
                return None;
            }
            [first, ref others @ ..] => {
                for other in others {
                    let why =
                        format!("a step has one action, and this one also has {first}; use another step");
                    section.note(self.notes, other, why);
                }
                first
            }
        };
        self.belongs(section, verb, scheme);
        self.no_pushes(section);
        match verb {
            "request" => self.request(section, context),
            "upgrade" => self.upgrade(section, context),
            "wait" => {
                let wait = section.read(self.notes, "wait", Think::parse_or_seconds)?;
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
            verb => self.message(section, context, verb),
        }
    }

    /// Reports keys that do not apply to the step's act.
    fn belongs(&mut self, section: &Section, verb: &str, scheme: Scheme) {
        let wrong: &[&str] = match verb {
            "request" => &[],
            "upgrade" => &["body", "body-file", "expect", "redirects", "capture"],
            "wait" | "close" => &["headers", "body", "body-file", "expect", "think", "redirects", "capture"],
            _ => &["headers", "body", "body-file", "redirects"],
        };
        let why = format!("cannot be used with {verb}; remove it, or use another step");
        section.refuse(self.notes, wrong, &why);
        if verb != "request" {
            section.refuse(self.notes, &graphql::KEYS, why);
        }
        match verb {
            "request" if !scheme.of_requests().has_requests() => {
                section.note(self.notes, verb, format!("{scheme} sends messages; use send = \"hello\""));
            }
            "upgrade" if !scheme.is_upgraded() => {
                section.note(self.notes, verb, Scheme::required(Scheme::BOTH, Scheme::is_upgraded));
            }
            verb if SENDS.contains(&verb) && scheme.has_requests() => {
                section.note(self.notes, verb, "http:// sends requests; use request = \"POST /\" and body");
            }
            _ => {}
        }
    }

    fn step_think(&mut self, section: &Section, context: &StepContext) -> Think {
        if context.rated {
            section.refuse(self.notes, &["think"], NOT_BY_RATE);
        }
        section.read(self.notes, "think", Think::parse_or_seconds).unwrap_or(context.think)
    }

    fn request(&mut self, section: &Section, context: &StepContext) -> Option<Act> {
        let think = self.step_think(section, context);
        let tables = self.tables;
        let line = section.read(self.notes, "request", |text| {
            request_line(text, &context.target.path, |text| path(text, tables))
        });
        let headers = self.headers(section, context, context.target.scheme.of_requests());
        let call = self.call(section, context, line.as_ref());
        let is_graphql = section.has("graphql");
        let body = match call {
            Some(_) => self.grpc_body(section, context),
            None if is_graphql => self.graphql(section),
            None => self.body(section),
        };
        let line = match section.has("request") {
            false => Some(("POST".to_owned(), context.target.path.clone())),
            true => line,
        };
        let (method, path) = line?;
        let method = if call.is_some() { "POST".to_owned() } else { method };
        let redirects = section.read(self.notes, "redirects", redirects).unwrap_or_default();
        let mut request =
            Request { method, path, headers, body, call, expect: Expectation::default(), redirects };
        request.expect = self.expected(section, context, request.numbers());
        request.expect.captures = self.captures(section, &context.variables, true);
        if is_graphql {
            request.be_graphql();
        }
        if request.call.is_some() {
            section.refuse(self.notes, &["capture", "redirects"], "not for gRPC; remove it");
        }
        let longest = request.max_len(context.target.host_header(0).len());
        if longest > LONGEST_REQUEST {
            let key = if section.has("body") { "body" } else { "headers" };
            section.note(self.notes, key, too_long(longest));
        }
        Some(Act::Request { request, think })
    }

    /// The act that opens the WebSocket after requests.
    fn upgrade(&mut self, section: &Section, context: &StepContext) -> Option<Act> {
        let think = self.step_think(section, context);
        let tables = self.tables;
        let headers = self.headers(section, context, context.target.scheme);
        for (name, _) in
            section.pairs("headers").iter().filter(|(name, _)| name.text.eq_ignore_ascii_case("host"))
        {
            self.notes.add(
                name.at,
                &section.key("headers"),
                "the Host is the population's; use the key host there",
            );
        }
        let path =
            section.read(self.notes, "upgrade", |text| match text.starts_with('/') || is_link(text) {
                true => path(text, tables),
                false => Err(format!(
                    "a path starts with /, and the host is that of the target; use /chat: {text:?}"
                )),
            })?;
        Some(Act::Upgrade { path, headers, think })
    }

    fn headers(&mut self, section: &Section, context: &StepContext, scheme: Scheme) -> Vec<(String, Text)> {
        let own = section.pairs("headers").iter().map(|pair| self.header(section, pair, scheme)).collect();
        with_defaults(own, context.headers)
    }

    /// The expectation of a response: the step's, or else the population's, or else the top-level one.
    pub(super) fn expected(
        &mut self,
        section: &Section,
        context: &StepContext,
        numbers: usize,
    ) -> Expectation {
        // A request before an upgrade has only its step's expectation: the defaults do not concern it.
        let is_ws = context.target.scheme.is_upgraded();
        let scheme = context.target.scheme.of_requests();
        let expect_context = Context { scheme, numbers: Some(numbers), sent: true };
        let places = [section, context.own, self.top].into_iter().take(if is_ws { 1 } else { 3 });
        let own_expect = places.into_iter().find(|section| section.has("expect"));
        let expected = own_expect
            .and_then(|section| expectation::read(self.notes, section, expect_context))
            .unwrap_or_default();
        if context.grpc.is_some() { grpc::expected(expected) } else { expected }
    }

    /// An act of WebSocket or TCP that sends, expects, or both.
    fn message(&mut self, section: &Section, context: &StepContext, verb: &str) -> Option<Act> {
        let think = self.step_think(section, context);
        let tables = self.tables;
        let sends = verb != "expect";
        let message = section.read(self.notes, verb, |text| match verb {
            "send" => message(text, |text| Text::parse(text, Place::Content, tables)).map(Body::Text),
            "send-hex" => binary(from_hex(text)?).map(Body::Hex),
            "send-base64" => binary(from_base64(text)?).map(Body::Base64),
            "send-file" => Content::named(text).map(Body::File),
            _ => Err("unreachable: no message".to_owned()),
        });
        let message = message.filter(|_| sends);
        let numbers = message.as_ref().map(Body::numbers);
        let expect_context = Context { scheme: context.target.scheme, numbers, sent: sends };
        let expected = match context.target.scheme.has_requests() {
            true => None,
            false => expectation::read(self.notes, section, expect_context),
        };
        let captures = self.captures(section, &context.variables, false);
        let expected = match expected {
            None if captures.is_empty() => None,
            expected => Some(Expectation { captures, ..expected.unwrap_or_default() }),
        };
        match (sends, message, expected) {
            (true, message, expected) => Some(Act::Send { message: message?, expected, think }),
            (false, _, expected) => Some(Act::Expect { expected: expected?, think }),
        }
    }

    /// Reports a `loop` to a step that does not exist. If steps have mistakes, no more can be checked.
    pub(super) fn check_loop(&mut self, own: &Section) {
        let Some(scalar) = own.scalar("loop") else { return };
        let text = scalar.text.as_str();
        let names: Vec<&str> =
            own.sections("step").iter().filter_map(|step| Some(step.scalar("name")?.text.as_str())).collect();
        let begins = text.split('-').next().unwrap_or_default();
        if !names.is_empty() && !names.contains(&text) && !UNNAMED.contains(&begins) {
            own.note(self.notes, "loop", no_such_step(text, names.into_iter()));
        }
    }

    /// What follows the last step; `done` is the default, `end` applies if `loop` is false.
    pub(super) fn behind(&mut self, own: &Section, steps: &[Step], done: Then, end: Then) -> Then {
        let then = match (own.truth("loop"), own.scalar("loop")) {
            (Some(true), _) => Then::Again(0),
            (Some(false), _) => end,
            // A connection cannot be upgraded twice, so the loop starts after the upgrade.
            (None, None) if done == Then::Again(0) => match upgrade_of(steps) {
                None => done,
                Some(at) if at + 1 < steps.len() => Then::Again(at as u16 + 1),
                Some(_) => Then::Stay,
            },
            (None, None) => done,
            (None, Some(scalar)) => match steps.iter().position(|step| step.name == scalar.text) {
                Some(at) => Then::Again(at as u16),
                None => {
                    let names = steps.iter().map(|step| step.name.as_str());
                    own.note(self.notes, "loop", no_such_step(&scalar.text, names));
                    return end;
                }
            },
        };
        if let Then::Again(from) = then
            && !steps.is_empty()
            && !steps
                .iter()
                .skip(usize::from(from))
                .any(|step| step.act.takes_time() && !step.may_be_skipped())
        {
            let why = "infinite loop without a pause; let a step expect a response, or use wait = \"1s\"";
            own.note(self.notes, "loop", why);
        }
        then
    }
}

/// Splits into method and path; the default method is GET, the default path is `target`.
fn request_line(
    text: &str,
    target: &Text,
    read: impl FnOnce(&str) -> Result<Text, String>,
) -> Result<(String, Text), String> {
    let text = text.trim();
    let (method, path) = match text.split_once(' ') {
        _ if text.starts_with('/') || is_link(text) => ("GET", Some(text)),
        Some((method, path)) => (method, Some(path.trim())),
        None => (text, None),
    };
    header::method(method)?;
    let path = match path {
        Some(path) if !path.starts_with('/') && !is_link(path) => {
            let why = "a path starts with /, and the host is that of the target";
            return Err(format!("{why}; use {method} /: {path:?}"));
        }
        Some(path) => read(path)?,
        None => target.clone(),
    };
    Ok((method.to_owned(), path))
}

/// The error for a weight without a weighted neighbour.
const LONE: &str = "weights choose between consecutive steps, and neither the step before nor the one after has one; give its \
    alternatives a weight too, or remove it";

/// Whether a step may be an alternative in a choice, skipped or repeated.
pub(super) fn is_of_choice(act: &Act) -> bool {
    !matches!(act, Act::Close | Act::Upgrade { .. })
}

/// Highest weight of a step.
const MOST_WEIGHT: u64 = 1_000_000;

/// Index of the step that opens the WebSocket; `None` if a step closes the connection, which may then be upgraded again.
fn upgrade_of(steps: &[Step]) -> Option<usize> {
    let closes = steps.iter().any(|step| matches!(step.act, Act::Close));
    steps.iter().position(|step| matches!(step.act, Act::Upgrade { .. })).filter(|_| !closes)
}

/// Whether the connection is a WebSocket after these steps.
fn upgraded(steps: &[Step]) -> bool {
    let last = steps.iter().rev().find(|step| !matches!(step.act, Act::Wait(_)));
    // At the beginning, and after a close, the dial opens the WebSocket if a message comes next.
    last.is_none_or(|last| !matches!(last.act, Act::Request { .. }))
}

fn redirects(text: &str) -> Result<u8, String> {
    text.parse()
        .ok()
        .filter(|most| *most <= MOST_REDIRECTS)
        .ok_or_else(|| format!("{text:?} is not a number of redirects; use 0 to {MOST_REDIRECTS}"))
}

/// Checks the length of a binary message.
fn binary(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    match bytes.len() {
        0 => Err("an empty message has no echo; use a non-empty one: \"\"".to_owned()),
        1..=LONGEST_REQUEST => Ok(bytes),
        length => Err(format!("a message may have at most 64 KiB: {}", Bytes(length as u64).brief())),
    }
}

/// Reads a WebSocket or TCP message and checks its length.
pub(super) fn message(text: &str, read: impl FnOnce(&str) -> Result<Text, String>) -> Result<Text, String> {
    let read = read(text)?;
    match read.max_len() {
        0 => Err("an empty message has no echo; use a non-empty text: \"\"".to_owned()),
        1..=LONGEST_REQUEST => Ok(read),
        length => Err(format!("a message may have at most 64 KiB: {}", Bytes(length as u64).brief())),
    }
}

/// The error for a step that does not exist.
fn no_such_step<'n>(text: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    format!("no such step; use {}: {text:?}", nearest_or_all(text, names))
}

/// First parts of the names that unnamed steps get.
const UNNAMED: [&str; 13] = [
    "send", "expect", "upgrade", "wait", "close", "request", "get", "head", "post", "put", "patch", "delete",
    "options",
];

/// A name for a step from what it does: `post-login`.
fn called(section: &Section, act: &Act) -> String {
    if let Some(operation) = graphql::operation(section).and_then(|operation| name(&operation).ok()) {
        return operation;
    }
    let Act::Request { request, .. } = act else {
        let name = match act {
            Act::Send { .. } => "send",
            Act::Expect { .. } => "expect",
            Act::Upgrade { .. } => "upgrade",
            Act::Wait(_) => "wait",
            _ => "close",
        };
        return name.to_owned();
    };
    let path = request.path.to_string();
    let path = path.split(['?', '{']).next().unwrap_or_default();
    let parts = path.split(|c: char| !c.is_ascii_alphanumeric()).filter(|part| !part.is_empty());
    // Methods may contain characters that names may not.
    let method: String = request.method.chars().filter(char::is_ascii_alphabetic).collect();
    let method = if method.is_empty() { "request" } else { &method };
    let name = parts.fold(method.to_owned(), |name, part| format!("{name}-{part}"));
    name.chars().take(32).collect::<String>().to_ascii_lowercase()
}

/// An unused name: `name`, or `name` with a number. `taken`: the names in use, each with the last number appended to it.
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
