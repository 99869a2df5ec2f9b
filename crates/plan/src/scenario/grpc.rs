//! Calls of gRPC, as written, checked.

use super::document::Section;
use super::population::Reader;
use super::step::StepContext;
use crate::flags::grpc::{NEEDS_PROTOSET, PROTOSET_SAYS, json, method};
use crate::flags::request::BODY_TWICE;
use crate::{Body, Call, Content, Grpc, Scheme, Target, Text, flag};

impl Reader<'_, '_> {
    /// What the calls of a population share; none where it is not gRPC.
    pub(super) fn grpc(&mut self, own: &Section, target: &Target) -> Option<Grpc> {
        if !target.scheme.has_calls() {
            let why = Scheme::required(Scheme::BOTH, Scheme::has_calls);
            own.refuse(self.notes, &flag::OF_GRPC.map(|flag| flag.name), why);
            return None;
        }
        let protoset = self.inherited(own, "protoset", Content::named);
        let is_streaming = own.truth("server-streaming").or_else(|| self.top.truth("server-streaming"));
        if protoset.is_some() {
            own.refuse(self.notes, &["server-streaming"], PROTOSET_SAYS);
        }
        if !own.has("step")
            && let Err(why) = method(&target.path)
        {
            let section = if own.has("target") { own } else { self.top };
            section.note(self.notes, "target", why);
        }
        // That of the file's top is for populations without descriptors.
        let is_streaming = protoset.is_none() && is_streaming.unwrap_or(false);
        Some(Grpc { protoset, is_streaming })
    }

    /// The message of a call, which a section has.
    pub(super) fn grpc_body(&mut self, section: &Section, context: &StepContext) -> Option<Body> {
        if section.has("body") && section.has("body-file") {
            section.note(self.notes, "body-file", BODY_TWICE);
        }
        let has_protoset = context.grpc.as_ref().is_some_and(|grpc| grpc.protoset.is_some());
        if section.has("body") && !has_protoset {
            section.note(self.notes, "body", NEEDS_PROTOSET);
        }
        let text = section.read(self.notes, "body", json).map(Body::Text);
        text.or_else(|| section.read(self.notes, "body-file", Content::named).map(Body::File))
    }

    /// The call that a request is; notes what a call cannot have.
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
