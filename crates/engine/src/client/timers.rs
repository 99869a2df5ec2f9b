//! The one timer of a connection. It is set to the earliest of its deadlines: next request, first timeout of what is under way,
//! protocol timer, heartbeat and keep-alive PING.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, out::Out, protocol::Speaks};

impl Client {
    /// Sets when the client is due on this connection (never, if not at all); the timer fires earlier if the protocol or a
    /// heartbeat is due.
    pub(super) fn wake_at<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, at: Nanos) {
        let at = match self.columns.timers.get_mut(k.index) {
            None => at,
            Some(own) => {
                *own = at;
                let beat = self.columns.beats.get(k.index).unwrap_or(Nanos::NEVER);
                at.min(self.conns.poll_timeout(k.index)).min(beat).min(self.keep_alive_due(k.index))
            }
        };
        if at == Nanos::NEVER { cx.let_sleep(k) } else { cx.wake_at(k, at) }
    }

    /// When the client is due on a connection whose timer was set.
    pub(super) fn timer<I: Io>(&self, cx: &Cx<I>, k: Key) -> Nanos {
        self.columns.timers.get(k.index).unwrap_or_else(|| cx.timer(k))
    }

    /// The timer of a connection has fired: does what the protocol, heartbeat or keep-alive needs, and returns when the client
    /// was due, if it is due by now.
    pub(super) fn handle_timer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> Option<Nanos> {
        let due = self.timer(cx, k);
        if !self.columns.timers.is_kept() {
            return Some(due);
        }
        let now = cx.now();
        if self.conns.poll_timeout(k.index) <= now {
            let Client { conns, source, tick, transport, .. } = self;
            let out = &mut Out::new(cx, k, transport, &mut tick.counts.bytes_out, source);
            if let Err(kind) = conns.session(k.index).handle_timeout(out) {
                self.misread(cx, k, kind.into());
                return None;
            }
        }
        self.beat(cx, k);
        if !self.keep_alive(cx, k) {
            return None;
        }
        if due <= now {
            return Some(due);
        }
        self.wake_at(cx, k, due);
        None
    }

    /// Fails the requests that have timed out; the others continue, if the protocol can cancel one request alone.
    pub(super) fn timed_out<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let (mut next, mut late) = (Nanos::NEVER, None);
        for (stream, exchange) in self.conns.exchanges(k.index) {
            // Time in which the shard stalled is not charged to the target.
            match exchange.started + self.job.timeout + self.lateness.since(exchange.started) {
                deadline if deadline > now => next = next.min(deadline),
                _ => late = late.or(Some(stream)),
            }
        }
        let Some(late) = late else { return self.wake_at(cx, k, next) };
        let state = self.conn(k).state();
        if state.is_opening() || !self.cancel(cx, k, late) {
            let fault = self.timeout_of(k, late);
            self.sample_begun(cx, k, fault);
            return self.fail(cx, k, fault);
        }
        self.go_on_without(cx, k);
        if cx.is_open(k) && self.conn(k).state() == State::Busy {
            // Further requests may be late; the last call sets the timer for the first that is not.
            self.timed_out(cx, k);
        }
    }
}
