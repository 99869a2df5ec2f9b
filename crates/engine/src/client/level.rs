//! How many connections there shall be: it may change while they are held.

use net::{Close, Cx, Io, Key};
use units::Nanos;

use super::{Client, figures::miss};
use crate::{
    connections::{Conn, State},
    pace::Tempo,
};

/// Connections closed, and records looked at, in one turn, so that answers are not kept waiting.
const CLOSES_A_TURN: u32 = 128;
const LOOKS_A_TURN: u32 = 4_096;

impl Client {
    /// Connections that there are, or will be without a further order.
    fn there(&self) -> u64 {
        self.conns.open() + self.conns.dialling() + self.conns.resting()
    }

    /// Whether one less would still be enough.
    pub(super) fn is_surplus(&self) -> bool {
        match self.job.most_idle() {
            Some(idle) => self.conns.idle() > idle,
            None => self.pacer.is_surplus(self.there()),
        }
    }

    /// Whether a connection that is gone may be dialled again.
    pub(super) fn is_replaced(&self) -> bool {
        !self.draining && self.pacer.replaces(self.there())
    }

    /// From now on there shall be `n`; of connections that come and go, so many come in all. First dials are due from
    /// `from` on.
    pub(super) fn set_load(&mut self, n: u32, tempo: Option<Tempo>, from: Nanos) {
        self.pacer.set_load(n, self.there(), tempo, from);
        self.ramped_at = Nanos::NEVER;
        if self.is_surplus() {
            self.surplus_below = self.conns.len();
        }
    }

    /// Whether all first dials are decided, and no connection is one too many.
    pub(super) fn is_ramped(&self) -> bool {
        self.pacer.is_ramped(self.conns.resolved()) && !self.is_surplus()
    }

    /// A tempo for the requests of an open loop, or for connections that come and go, from this time on.
    pub(super) fn set_tempo(&mut self, tempo: Tempo, from: Nanos, now: Nanos) {
        let Client { pacer, tick, full_load, .. } = self;
        pacer.set_tempo(tempo, from, now, &mut |due| miss(tick, full_load, due));
    }

    /// Closes those that are too many and idle, the latest first; who is busy goes when it is answered. When to go on.
    pub(super) fn close_surplus<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let (mut closes, mut looks) = (CLOSES_A_TURN, LOOKS_A_TURN);
        while self.surplus_below > 0 && self.is_surplus() {
            if closes == 0 || looks == 0 {
                return cx.now();
            }
            looks -= 1;
            self.surplus_below -= 1;
            let Some(k) = cx.at(self.surplus_below) else { continue };
            match self.conn(k).state() {
                State::Idle => self.finish(cx, k),
                State::Resting => {
                    self.forget(k);
                    cx.close(k, Close::Graceful);
                }
                _ => continue,
            }
            closes -= 1;
        }
        self.surplus_below = 0;
        Nanos::NEVER
    }

    /// One more call of a connection that came for a number of them has been answered: was it the last?
    pub(super) fn is_last_call(&mut self, k: Key) -> bool {
        let Some(left) = self.calls_left.get_mut(k.index as usize) else { return false };
        *left -= 1;
        *left == 0
    }

    /// A connection is dialled for the first time at this place.
    pub(super) fn begin_at(&mut self, k: Key, conn: Conn) {
        let at = k.index as usize;
        if self.pacer.comes_and_goes() {
            self.ink.comes(k.index);
        }
        if let Some(calls) = self.job.calls {
            self.calls_left.resize(self.calls_left.len().max(at + 1), 0);
            self.calls_left[at] = calls;
        }
        if matches!(self.job.reconnect, plan::Reconnect::Backoff(_)) {
            self.failures.resize(self.failures.len().max(at + 1), 0);
            self.failures[at] = 0;
        }
        if self.job.protocol.has_timeouts() {
            self.timers.resize(self.timers.len().max(at + 1), Nanos::NEVER);
        }
        self.conns.insert(k.index, conn);
    }
}
