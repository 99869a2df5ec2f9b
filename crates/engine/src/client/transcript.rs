//! What the client reports to its transcript, if it has one: its events, with the bytes that it reads.

use net::{Cx, Io, Key};
use samples::{
    Fault, Kind,
    transcript::{Event, Mismatch, Response},
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
        // The upgrade of a WebSocket has header fields before any step begins.
        transcriber.learn(self.job.secrets(&self.source, k.index));
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
        transcriber.learn(self.job.secrets(&self.source, index));
        transcriber.step(now, step);
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

    /// The response of this exchange is complete. `fault`: what is wrong with it; these checks found that, and `taken` is what is wrong
    /// with its values.
    pub(super) fn transcribe_response(
        &mut self,
        exchange: &Exchange,
        (index, status): (u32, Option<u16>),
        (fault, checks, taken): (Option<Fault>, &[Kind], Option<Kind>),
        now: Nanos,
    ) {
        let Client { transport, job, source, .. } = self;
        let Some(transcriber) = transport.transcriber_of(index) else { return };
        let op = job.op(exchange.at);
        let mut response =
            Response { status, wrong: fault, length: exchange.content(), ..Response::default() };
        let sent = match op {
            Op::Exchange(message) | Op::Ping(message, _)
                if message.check.expected.echo && !message.is_ping() =>
            {
                source.again(message, (exchange.nth, exchange.started), index).to_vec()
            }
            _ => Vec::new(),
        };
        let findings = transcriber.findings(op.wanted().is_some_and(|wanted| wanted.decodes));
        response.first_byte = findings.first_byte.map(|at| at.since(findings.sent));
        response.took = now.since(findings.sent);
        if let Some(expected) = op.expected() {
            let of_values = taken.filter(|kind| *kind == Kind::WrongBody && !checks.contains(kind));
            let checks: Vec<Kind> = checks.iter().copied().chain(of_values).collect();
            response.mismatches = findings.mismatches(&checks, expected, (exchange, status), &sent);
            let until =
                op.check().and_then(|check| check.until.as_ref()).filter(|_| taken == Some(Kind::WrongBody));
            if let Some(until) = until.filter(|until| !source.holds(until, index)) {
                let [got, wanted] = source.sides(until, index);
                response.mismatches.push(Mismatch { place: format!("until {}", until.left), wanted, got });
            }
            if let (Some(captures), Some(wanted)) = (&source.captures, op.wanted()) {
                let is_kept = checks.is_empty() && taken.is_none();
                // If one is missing, none is kept.
                let value = |nth| match is_kept {
                    true => Some(Some(captures.value(index, nth).to_owned())),
                    false => captures.lacked(wanted, nth).then_some(None),
                };
                let of = |capture: &plan::Capture| Some((capture.name.clone(), value(capture.nth)?));
                response.captured = expected.captures.iter().filter_map(of).collect();
            }
        }
        self.transcribe_end(index, Event::Response(response), now);
    }

    /// The step under way, or the connection, has ended with this event.
    pub(super) fn transcribe_end(&mut self, index: u32, event: Event, now: Nanos) {
        let Client { transport, job, source, .. } = self;
        let Some(transcriber) = transport.transcriber_of(index) else { return };
        let fault = match &event {
            Event::Failed(fault) | Event::End(Some(fault)) => Some(*fault),
            Event::Response(response) => response.wrong,
            _ => None,
        };
        transcriber.learn(job.secrets(source, index));
        transcriber.enter(now, event);
        self.magnified(fault, now);
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
