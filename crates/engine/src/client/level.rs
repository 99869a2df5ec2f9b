//! How many connections there shall be: it may change while they are held.

use net::{Close, Cx, Io, Key};
use units::Nanos;

use super::Client;
use crate::conn::{Conn, State};

/// Connections closed, and records looked at, in one turn, so that answers are not kept waiting.
const CLOSES_A_TURN: u32 = 128;
const LOOKS_A_TURN: u32 = 4_096;

impl Client {
    /// Connections that there are, or will be without a further order.
    fn there(&self) -> u64 {
        self.open + self.dialling + self.resting
    }

    /// Whether one less would still be enough.
    pub(super) fn is_surplus(&self) -> bool {
        self.there() > u64::from(self.wanted)
    }

    /// Whether there is room for one more.
    pub(super) fn is_short(&self) -> bool {
        self.there() < u64::from(self.wanted)
    }

    /// From now on there shall be `n`.
    pub(super) fn set_load(&mut self, n: u32, now: Nanos) {
        if self.job.calls().is_some() {
            return;
        }
        self.wanted = n.min(self.part.connections);
        let to_dial = u64::from(self.wanted).saturating_sub(self.there()) as u32;
        self.ramp.order(to_dial, now);
        if self.resolved < self.ramp.ordered {
            self.ramped_at = Nanos::NEVER;
        }
        if self.is_surplus() {
            self.surplus_below = self.conns.len() as u32;
        }
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
            match self.conn(k).state {
                State::Idle => self.finish(cx, k),
                State::Resting => {
                    self.resting -= 1;
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
        if let Some(calls) = self.job.calls() {
            self.calls_left.resize(self.calls_left.len().max(at + 1), 0);
            self.calls_left[at] = calls;
        }
        if matches!(self.job.reconnect, plan::Reconnect::Backoff(_)) {
            self.failures.resize(self.failures.len().max(at + 1), 0);
            self.failures[at] = 0;
        }
        self.place(k, conn);
    }
}
