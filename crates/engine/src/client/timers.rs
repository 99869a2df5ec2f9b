//! The one timer of a connection: for its next request, for the first of what is under way that takes too long, and for its
//! protocol's own timer, its heartbeat and its PING, whichever comes first.

use net::{Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::{connections::State, out::Out};

impl Client {
    /// The connection's own business is at `at`, or never; its protocol's may be before that.
    pub(super) fn wake_at<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, at: Nanos) {
        let at = match self.timers.get_mut(k.index as usize) {
            None => at,
            Some(own) => {
                *own = at;
                let beat = self.beats.get(k.index as usize).copied().unwrap_or(Nanos::NEVER);
                at.min(self.conns.poll_timeout(k.index)).min(beat).min(self.keep_alive_due(k.index))
            }
        };
        if at == Nanos::NEVER { cx.let_sleep(k) } else { cx.wake_at(k, at) }
    }

    /// When the connection's own timer is due; for one whose timer was set.
    pub(super) fn timer<I: Io>(&self, cx: &Cx<I>, k: Key) -> Nanos {
        self.timers.get(k.index as usize).copied().unwrap_or_else(|| cx.timer(k))
    }

    /// The timer of a connection has come: lets its protocol do what is due, and returns when the connection's own business was
    /// due, if it was.
    pub(super) fn handle_timer<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> Option<Nanos> {
        let due = self.timer(cx, k);
        if self.timers.is_empty() {
            return Some(due);
        }
        let now = cx.now();
        if self.conns.poll_timeout(k.index) <= now {
            let Client { conns, source, tick, layer, .. } = self;
            let out = &mut Out::new(cx, k, layer, &mut tick.counts.bytes_out, source);
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

    /// Requests outstanding for too long have failed; others continue, if the protocol can give up the one without the other.
    pub(super) fn timed_out<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) {
        let now = cx.now();
        let (mut next, mut late) = (Nanos::NEVER, None);
        for (stream, exchange) in self.conns.exchanges(k.index) {
            // The time in which the shard itself stalled is not the target's.
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
            // The next one may be late too; and the timer is set for the first that is not.
            self.timed_out(cx, k);
        }
    }
}
