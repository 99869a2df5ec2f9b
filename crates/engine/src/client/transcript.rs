//! What the client reports to its transcript, if it has one: its events, with the bytes that it reads.

use net::{Cx, Io, Key};
use samples::{
    Fault, Kind,
    transcript::{Event, Response},
};
use units::Nanos;
use wire::websocket::Role;

use super::Client;
use crate::{exchange::Exchange, op::Op, out::Transport, protocol::Properties, transcriber::Pieces};

impl Client {
    /// Reports an event beside the steps.
    pub(super) fn transcribe(&mut self, k: Key, now: Nanos, event: impl FnOnce() -> Event) {
        if let Some(transcriber) = self.transport.transcriber_of(k.index) {
            transcriber.enter(now, event());
        }
    }

    /// The transport is open: what passes from here on is in the format of the protocol.
    pub(super) fn transcribe_opened(&mut self, k: Key, now: Nanos) {
        let Some(transcriber) = self.transport.transcriber_of(k.index) else { return };
        let Properties { is_http2, has_messages, .. } = self.job.protocol.properties();
        let begins_with_http = has_messages || self.job.only_requests() || self.job.is_before_upgrade(0);
        match (is_http2, begins_with_http) {
            (true, _) => transcriber.begin(Pieces::http2(), Pieces::http2()),
            (false, true) => transcriber.begin(Pieces::request(), Pieces::response(false)),
            (false, false) => transcriber.begin(Pieces::Raw, Pieces::Raw),
        }
        transcriber.opened(now);
    }

    /// A step begins in this exchange, or its request is sent again after a redirect.
    pub(super) fn transcribe_step(&mut self, now: Nanos, k: Key, stream: u32) {
        let begins = self.magnify(k);
        let index = k.index;
        let Some(transcriber) = self.transport.transcriber_of(index) else { return };
        let Exchange { at, nth: followed, .. } = *self.conns.at(stream);
        let is_new = followed == 0 || !self.job.follows_redirects(at);
        let step = is_new.then(|| self.job.step_of_plan(at) as u16);
        transcriber.step(now, step, self.job.secrets(&self.source, index));
        match self.job.op(at) {
            Op::Request(request) if !self.job.is_http2() => {
                transcriber.begin(Pieces::request(), Pieces::response(request.is_head));
            }
            Op::Upgrade if !self.job.is_http2() => {
                transcriber.begin(Pieces::request(), Pieces::response(false));
            }
            _ if begins && self.job.is_http2() => transcriber.begin(Pieces::http2(), Pieces::http2()),
            _ if begins && self.job.protocol.properties().has_messages => {
                transcriber.begin(Pieces::messages(Role::Server), Pieces::messages(Role::Client));
            }
            _ => {}
        }
    }

    /// The connection has become a WebSocket.
    pub(super) fn transcribe_upgraded(&mut self, k: Key) {
        let has_frames = !self.job.is_http2();
        if let Some(transcriber) = self.transport.transcriber_of(k.index).filter(|_| has_frames) {
            transcriber.begin(Pieces::messages(Role::Server), Pieces::messages(Role::Client));
        }
    }

    /// The response of this exchange is complete; these checks found it `wrong`, `taken` is what is wrong with its values.
    pub(super) fn transcribe_response(
        &mut self,
        exchange: &Exchange,
        (index, status): (u32, Option<u16>),
        (wrong, taken): (&[Kind], Option<Kind>),
        now: Nanos,
    ) {
        let Client { transport, job, source, .. } = self;
        let Some(transcriber) = transport.transcriber_of(index) else { return };
        let Some(expected) = job.op(exchange.at).expected() else {
            return transcriber.end_step(
                now,
                job.secrets(source, index),
                Event::Response(Response::default()),
            );
        };
        let sent = match job.op(exchange.at) {
            Op::Exchange(message) | Op::Ping(message, _) if expected.echo && !message.is_ping() => {
                source.again(message, exchange.nth, index).to_vec()
            }
            _ => Vec::new(),
        };
        let of_values = taken.filter(|kind| *kind == Kind::WrongBody && !wrong.contains(kind));
        let wrong: Vec<Kind> = wrong.iter().copied().chain(of_values).collect();
        let findings = transcriber.findings(!wrong.is_empty());
        let response = Response {
            status,
            length: exchange.content(),
            first_byte: findings.first_byte.map(|at| at.since(findings.sent)),
            took: now.since(findings.sent),
            mismatches: findings.mismatches(&wrong, expected, (exchange, status), &sent),
            captured: expected
                .captures
                .iter()
                .map(|capture| {
                    let is_kept = wrong.is_empty() && taken.is_none();
                    let value = source.captures.as_ref().filter(|_| is_kept);
                    let value = value.map(|captures| captures.value(index, capture.nth).to_owned());
                    (capture.name.clone(), value)
                })
                .collect(),
        };
        transcriber.end_step(now, job.secrets(source, index), Event::Response(response));
    }

    /// The step under way, or the connection, has ended with this event.
    pub(super) fn transcribe_end(&mut self, index: u32, event: Event, now: Nanos) {
        let Client { transport, job, source, .. } = self;
        let fault = match &event {
            Event::Failed(fault) | Event::End(Some(fault)) => Some(*fault),
            _ => None,
        };
        if let Some(transcriber) = transport.transcriber_of(index) {
            transcriber.end_step(now, job.secrets(source, index), event);
            self.magnified(fault, now);
        }
    }

    /// A connection that was open, or a dial, has ended because of this fault; what was not read yet is shown as it is.
    pub(super) fn transcribe_lost<I: Io>(&mut self, cx: &Cx<I>, k: Key, fault: Fault) {
        let Transport { layer, transcriber } = &mut self.transport;
        if let Some(transcriber) = transcriber.as_mut().filter(|transcriber| transcriber.is_of(k.index)) {
            let unsealed = layer.as_ref().map(|layered| layered.leftover(k.index));
            transcriber.left_over(cx.now(), unsealed.unwrap_or_else(|| cx.leftover(k)));
        }
        self.transcribe_end(k.index, Event::End(Some(fault)), cx.now());
    }
}
