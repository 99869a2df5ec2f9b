//! Parses and checks gRPC calls.

use super::document::Section;
use super::{Reader, StepContext};
use crate::request::LONGEST_REQUEST;
use crate::text::Place;
use crate::{Body, Call, Content, Expectation, Grpc, Request, Scheme, Target, Text, flag};
use units::{Bytes, Status};

impl Reader<'_, '_> {
    /// Settings that a population's calls share; `None` if it does not use gRPC.
    pub(super) fn grpc(&mut self, own: &Section, target: &Target) -> Option<Grpc> {
        if !target.scheme.has_calls() {
            let why = Scheme::required(Scheme::BOTH, Scheme::has_calls);
            own.refuse(self.notes, &flag::OF_GRPC.map(|flag| flag.name), why);
            return None;
        }
        let protoset = self.inherited(own, "protoset", Content::named);
        let is_streaming = own.truth("server-streaming").or_else(|| self.top.truth("server-streaming"));
        if protoset.is_some() {
            let protoset = self.notes.name(&flag::PROTOSET);
            let why = format!("the descriptors of {protoset} say which methods stream; remove it");
            own.refuse(self.notes, &["server-streaming"], why);
        }
        if !own.has("step")
            && let Err(why) = method(&target.path)
        {
            let section = if own.has("target") { own } else { self.top };
            section.note(self.notes, "target", why);
        }
        // The top-level value applies only to populations without descriptors.
        let is_streaming = protoset.is_none() && is_streaming.unwrap_or(false);
        Some(Grpc { protoset, is_streaming })
    }

    /// The message of a call in a section.
    pub(super) fn grpc_body(&mut self, section: &Section, context: &StepContext) -> Option<Body> {
        self.one_body(section);
        let has_protoset = context.grpc.as_ref().is_some_and(|grpc| grpc.protoset.is_some());
        if section.has("body") && !has_protoset {
            let protoset = self.notes.written(&flag::PROTOSET, "\"FILE\"");
            let file = self.notes.name(&flag::BODY_FILE);
            let why = format!("a message as JSON requires {protoset}; or use {file} with its bytes");
            section.refuse(self.notes, &["body"], why);
        }
        let text = section.read(self.notes, "body", json).map(Body::Text);
        text.or_else(|| section.read(self.notes, "body-file", Content::named).map(Body::File))
    }

    /// The call that a request makes; reports what calls do not support.
    pub(super) fn call(
        &mut self,
        section: &Section,
        context: &StepContext,
        line: Option<&(String, Text)>,
    ) -> Option<Call> {
        let grpc = context.grpc.as_ref()?;
        if let Some((verb, path)) = line {
            if verb != "POST"
                && section.scalar("request").is_some_and(|line| line.text.starts_with(verb.as_str()))
            {
                section.note(self.notes, "request", "gRPC has no other method than POST; remove it");
            }
            if let Err(why) = method(path) {
                section.note(self.notes, "request", why);
            }
        }
        Some(Call { is_streaming: grpc.is_streaming, message: Vec::new() })
    }
}

/// A message as JSON. It has no variables, because it is encoded before the run.
fn json(text: &str) -> Result<Text, String> {
    if text.len() > LONGEST_REQUEST {
        return Err(format!("at most 64 KiB; use --body-file: {}", Bytes(text.len() as u64).brief()));
    }
    let read = Text::parse(text, Place::Content, &[])?;
    match read.fixed_text() {
        Some(_) => Ok(read),
        None => Err(format!("a message of gRPC has no variables; write {{{{ for a brace: {text:?}")),
    }
}

/// The call to a target's method.
pub(super) fn call(target: &Target, body: Option<Body>, grpc: &Grpc, expect: Expectation) -> Request {
    let call = Call { is_streaming: grpc.is_streaming, message: Vec::new() };
    Request {
        method: "POST".to_owned(),
        body,
        call: Some(call),
        ..Request::get(target.path.clone(), expected(expect))
    }
}

/// Adds the status OK unless another is expected.
pub(super) fn expected(expect: Expectation) -> Expectation {
    Expectation { status: expect.status.or(Some(OK.0)), ..expect }
}

const OK: Status = Status(0);

/// Checks the name of a method: `/package.Service/Method`.
fn method(path: &Text) -> Result<(), String> {
    let text = path.to_string();
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        ["", service, method] if !service.is_empty() && !method.is_empty() => Ok(()),
        _ => Err(format!("{text:?} is not a method; use grpc://host:port/package.Service/Method")),
    }
}
