//! PINGs that keep connections of HTTP/2 alive beside their requests, as those of gRPC do
//! (<https://github.com/grpc/proposal/blob/master/A8-client-side-keepalive.md>): one goes out when nothing has come for a time, and a
//! connection on which it is not acknowledged in time is lost.

use net::{Cx, Io, Key};
use samples::Kind;
use units::Nanos;

use super::Client;
use crate::{out::Out, protocol::http2};

/// What is known of a connection for its PINGs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alive {
    /// When something came last; never, while no session is open.
    received: Nanos,
    /// When the PING was sent that is not acknowledged yet, which is its number too; never, if there is none.
    sent: Nanos,
}

impl Alive {
    pub(super) const CLOSED: Alive = Alive { received: Nanos::NEVER, sent: Nanos::NEVER };
}

impl Client {
    /// The session of a connection is open.
    pub(super) fn begin_keep_alive(&mut self, k: Key, now: Nanos) {
        if let Some(alive) = self.alive.get_mut(k.index as usize) {
            *alive = Alive { received: now, ..Alive::CLOSED };
        }
    }

    /// It is no more.
    pub(super) fn end_keep_alive(&mut self, k: Key) {
        if let Some(alive) = self.alive.get_mut(k.index as usize) {
            *alive = Alive::CLOSED;
        }
    }

    /// Something has come on a connection.
    pub(super) fn note_input(&mut self, k: Key, now: Nanos) {
        if let Some(alive) = self.alive.get_mut(k.index as usize).filter(|it| it.received != Nanos::NEVER) {
            alive.received = now;
        }
    }

    /// When a connection is to send a PING, or has waited too long for the reply to one.
    pub(super) fn keep_alive_due(&self, index: u32) -> Nanos {
        let (Some(alive), Some(every)) = (self.alive.get(index as usize), self.job.keep_alive) else {
            return Nanos::NEVER;
        };
        match *alive {
            _ if self.draining => Nanos::NEVER,
            Alive { received, sent: Nanos::NEVER } => received + every,
            Alive { sent, .. } => sent + self.job.timeout + self.lateness.since(sent),
        }
    }

    /// Sends a PING where that is due; false: the one before was not acknowledged in time, and the connection is lost.
    pub(super) fn keep_alive<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> bool {
        let now = cx.now();
        if self.keep_alive_due(k.index) > now {
            return true;
        }
        let Client { alive, source, tick, layer, .. } = self;
        let alive = &mut alive[k.index as usize];
        if alive.sent != Nanos::NEVER {
            tick.ping_rtt.censor();
            self.misread(cx, k, Kind::Timeout.into());
            return false;
        }
        alive.sent = now;
        http2::keep_alive(now.0, &mut Out::new(cx, k, layer, &mut tick.counts.bytes_out, source));
        true
    }

    /// The PING with this number is acknowledged; one that was not sent, or not on this connection, is none.
    pub(super) fn acknowledged<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, number: u64) {
        let (sent, now) = (Nanos(number), cx.now());
        let is_awaited = |it: &&mut Alive| it.sent == sent && sent != Nanos::NEVER;
        let Some(alive) = self.alive.get_mut(k.index as usize).filter(is_awaited) else { return };
        alive.sent = Nanos::NEVER;
        let took = self.took(sent, sent, now);
        self.tick.ping_rtt.record_seen(took);
        self.conn(k).received(now, None);
        // It was set for the end of the wait.
        let own = self.timer(cx, k);
        self.wake_at(cx, k, own);
    }
}
