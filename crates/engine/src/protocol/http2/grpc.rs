//! gRPC: the messages and status of a response on an HTTP/2 stream.

use std::sync::LazyLock;

use samples::{Kind, Rule};
use wire::grpc::{Messages, status};
use wire::http2::{Code, Data, Grpc, Head};

use super::{State, respond};
use crate::{check::Check, exchange::Exchange, protocol::Progress, request::Call, watch::Watch};

/// The field expected in the head of a response to a call (gRPC over HTTP2, Response-Headers).
pub(super) static TYPE: LazyLock<[(String, String); 1]> =
    LazyLock::new(|| [("content-type".to_owned(), String::new())]);

/// The gRPC part of a request under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calling {
    messages: Messages,
    call: Option<Call>,
}

/// With any other HTTP status, a response has no messages.
const OK_OF_HTTP: u16 = 200;

impl Calling {
    pub(super) fn new(call: Option<Call>) -> Calling {
        Calling { messages: Messages::default(), call }
    }

    /// Whether it is a gRPC call.
    pub(super) fn is_one(&self) -> bool {
        self.call.is_some()
    }
}

/// The head of a response has come; `is_typed`: its content type is gRPC, or is not checked here.
pub(super) fn head<'a>(
    state: &mut State,
    place: usize,
    head: &Head<'_>,
    is_typed: bool,
    used: usize,
) -> Progress<'a> {
    if head.status == OK_OF_HTTP && !is_typed {
        return fail(state, place, used, Rule::GrpcType);
    }
    state.under_way[place].call.messages = Messages::new(head.grpc.has_encoding);
    if !head.ends {
        return Progress::Turned(used);
    }
    // Without messages, the status is in the head.
    conclude(state, place, Some(&head.grpc), 0, used)
}

/// Reads a piece of the body, with the messages that it completes.
pub(super) fn data<'a>(
    state: &mut State,
    place: usize,
    data: &Data<'_>,
    (exchange, check): (&mut Exchange, &Check),
    mut watch: Option<&mut Watch>,
    used: usize,
) -> Progress<'a> {
    let it = &mut state.under_way[place];
    if it.status != OK_OF_HTTP {
        return if data.ends { respond(state, place, used) } else { Progress::Turned(used) };
    }
    let (mut at, mut came) = (0, 0);
    loop {
        let Ok((n, piece)) = it.call.messages.handle_bytes(&data.bytes[at..]) else {
            return fail(state, place, used, Rule::GrpcPrefix);
        };
        at += n;
        let Some(piece) = piece else {
            // The piece has been read.
            break;
        };
        exchange.content += piece.bytes.len() as u64;
        exchange.found = check.content(exchange.found, &mut watch, piece.bytes.iter().copied());
        came += u32::from(piece.ends);
    }
    exchange.nth = exchange.nth.saturating_add(came);
    if it.call.call == Some(Call::Unary) && exchange.nth > 1 {
        return fail(state, place, used, Rule::GrpcMessages);
    }
    if data.ends {
        // The status would be in trailers, but none follow.
        return conclude(state, place, None, exchange.nth, used);
    }
    if came > 0 { Progress::Messages(used, came) } else { Progress::Turned(used) }
}

/// The trailers have come.
pub(super) fn finish<'a>(
    state: &mut State,
    place: usize,
    result: &Grpc<'_>,
    exchange: &Exchange,
    used: usize,
) -> Progress<'a> {
    conclude(state, place, Some(result), exchange.nth, used)
}

/// The stream has ended, after this number of messages.
fn conclude<'a>(
    state: &mut State,
    place: usize,
    result: Option<&Grpc<'_>>,
    messages: u32,
    used: usize,
) -> Progress<'a> {
    result.into_iter().for_each(|result| state.say(place, "grpc-message", &decoded(result.message)));
    let it = &mut state.under_way[place];
    let Some(status) = result.and_then(|result| result.status) else {
        if it.status != OK_OF_HTTP {
            // An HTTP status without a gRPC status counts as it is.
            return respond(state, place, used);
        }
        let is_cut = !it.call.messages.is_between_messages();
        state.end(place, Code::CANCEL);
        return failed(used, is_cut, Rule::GrpcStatus);
    };
    let is_cut = !it.call.messages.is_between_messages();
    let is_short = status == 0 && it.call.call == Some(Call::Unary) && messages != 1;
    if is_cut || is_short {
        state.end(place, Code::CANCEL);
        return failed(used, is_cut, Rule::GrpcNoMessage);
    }
    it.status =
        u16::try_from(status).ok().filter(|status| *status <= status::LAST).unwrap_or(status::UNKNOWN);
    respond(state, place, used)
}

/// A `grpc-message` with its percent-encoding decoded; malformed parts stay as they are (gRPC over HTTP2, Status-Message).
fn decoded(message: &[u8]) -> Vec<u8> {
    let (mut text, mut rest) = (Vec::with_capacity(message.len()), message);
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind.get(..2).filter(|_| *first == b'%').and_then(|hex| str::from_utf8(hex).ok());
        let octet = hex.filter(|hex| !hex.starts_with('+')).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        text.push(octet.unwrap_or(*first));
        rest = if octet.is_some() { &behind[2..] } else { behind };
    }
    text
}

/// The stream ended in the middle of a message, or without what this rule requires.
fn failed<'a>(used: usize, is_cut: bool, rule: Rule) -> Progress<'a> {
    Progress::Failed(used, if is_cut { Kind::Truncated.into() } else { rule.into() })
}

/// The response violates this rule: cancels the stream.
fn fail<'a>(state: &mut State, place: usize, used: usize, rule: Rule) -> Progress<'a> {
    state.end(place, Code::CANCEL);
    Progress::Failed(used, rule.into())
}

#[cfg(test)]
mod tests;
