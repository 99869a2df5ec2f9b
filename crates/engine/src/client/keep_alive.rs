//! Keep-alive PINGs on HTTP/2 connections, independent of requests, as in gRPC
//! (<https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md>): one is sent when nothing has arrived for a time;
//! a connection on which it is not acknowledged in time is lost.

use net::{Cx, Io, Key};
use samples::Kind;
use units::Nanos;

use super::Client;
use crate::{out::Out, protocol::http2};

/// The keep-alive state of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alive {
    /// When input last arrived; never, while no session is open.
    received: Nanos,
    /// When the unacknowledged PING was sent, which also identifies it; never, if there is none.
    sent: Nanos,
}

impl Alive {
    pub(super) const CLOSED: Alive = Alive { received: Nanos::NEVER, sent: Nanos::NEVER };
}

impl Client {
    /// The session of a connection is open: keep-alive begins.
    pub(super) fn begin_keep_alive(&mut self, k: Key, now: Nanos) {
        if let Some(alive) = self.columns.alive.get_mut(k.index) {
            *alive = Alive { received: now, ..Alive::CLOSED };
        }
    }

    /// The connection has ended: so does its keep-alive.
    pub(super) fn end_keep_alive(&mut self, k: Key) {
        if let Some(alive) = self.columns.alive.get_mut(k.index) {
            *alive = Alive::CLOSED;
        }
    }

    /// Input has arrived on a connection.
    pub(super) fn note_input(&mut self, k: Key, now: Nanos) {
        if let Some(alive) = self.columns.alive.get_mut(k.index).filter(|it| it.received != Nanos::NEVER) {
            alive.received = now;
        }
    }

    /// When a connection has to send a PING, or has waited too long for its acknowledgement.
    pub(super) fn keep_alive_due(&self, index: u32) -> Nanos {
        let (Some(alive), Some(every)) = (self.columns.alive.get(index), self.job.keep_alive) else {
            return Nanos::NEVER;
        };
        match alive {
            _ if self.course.is_draining() => Nanos::NEVER,
            Alive { received, sent: Nanos::NEVER } => received + every,
            Alive { sent, .. } => sent + self.job.timeout + self.lateness.since(sent),
        }
    }

    /// Sends a PING if due. Returns false if the previous one was not acknowledged in time: the connection is lost.
    pub(super) fn keep_alive<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> bool {
        let now = cx.now();
        if self.keep_alive_due(k.index) > now {
            return true;
        }
        let Client { columns, source, tick, transport, .. } = self;
        let alive = columns.alive.get_mut(k.index).expect("a PING is due, so its state is kept");
        if alive.sent != Nanos::NEVER {
            tick.ping_rtt.censor();
            self.misread(cx, k, Kind::Timeout.into());
            return false;
        }
        alive.sent = now;
        http2::keep_alive(now.0, &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source));
        true
    }

    /// The PING with this number is acknowledged; ignored if it is not the outstanding one of this connection.
    pub(super) fn acknowledged<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u64) {
        let (sent, now) = (Nanos(number), cx.now());
        let is_awaited = |it: &&mut Alive| it.sent == sent && sent != Nanos::NEVER;
        let Some(alive) = self.columns.alive.get_mut(k.index).filter(is_awaited) else { return };
        alive.sent = Nanos::NEVER;
        let took = self.took(sent, sent, now);
        self.tick.ping_rtt.record_seen(took);
        self.conn(k).received(now, None);
        // The timer was set for the end of the wait.
        let own = self.timer(cx, k);
        self.wake_at(cx, k, own);
    }
}
