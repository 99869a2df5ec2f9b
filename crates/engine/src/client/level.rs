//! The wanted number of connections, which may change during a run.

use net::{Close, Cx, Io, Key};
use units::Nanos;

use super::{Client, books::slot};
use crate::{
    connections::{Conn, State},
    pace::RateProfile,
};

/// Maximum number of closes, and of records examined, in one turn, so that responses are not delayed.
const CLOSES_A_TURN: u32 = 128;
const CHECKS_A_TURN: u32 = 4_096;

impl Client {
    /// Connections that are open, dialling, or waiting to be dialled again.
    pub(super) fn there(&self) -> u64 {
        self.conns.open() + self.conns.dialling() + self.conns.disconnected()
    }

    /// Whether there are more connections than wanted.
    pub(super) fn is_surplus(&self) -> bool {
        match self.job.most_idle() {
            Some(idle) => self.conns.idle() > idle,
            None => self.pacer.is_surplus(self.there()),
        }
    }

    /// Whether an ended connection may be dialled again.
    pub(super) fn is_replaced(&self) -> bool {
        !self.begins_nothing() && self.pacer.replaces(self.there())
    }

    /// Sets the wanted number of connections; for arrivals, their total. First dials are due from `from` on.
    pub(super) fn set_load(&mut self, n: u32, profile: Option<RateProfile>, from: Nanos) {
        if profile.is_none() && u64::from(n) > self.there() && self.opens_first() {
            self.quota.wait();
        }
        self.pacer.set_load(n, self.there(), profile, from);
        self.course.ramped_at = Nanos::NEVER;
        if self.is_surplus() {
            self.closing.unexamined = self.conns.len();
        }
    }

    /// Whether all new connections must be open before one of them sends: in a closed loop, the open ones would use up the
    /// target's capacity and slow down an adaptive ramp. Existing connections continue.
    fn opens_first(&self) -> bool {
        self.pacer.is_closed_loop() && !self.pacer.comes_and_goes() && self.job.only_requests()
    }

    /// Whether every first dial is decided and no connection is surplus. Always true once the load has ended by itself, as with
    /// the last connection of a number of requests: nothing is dialled any more, whatever a later stage wants.
    pub(super) fn is_ramped(&self) -> bool {
        self.course.is_draining() || self.pacer.is_ramped(self.conns.resolved()) && !self.is_surplus()
    }

    /// Sets the rate profile of an open loop's requests, or of arrivals, from `from` on.
    pub(super) fn set_profile(&mut self, profile: RateProfile, from: Nanos, now: Nanos) {
        let has_first_byte = self.has_first_bytes();
        let Client { pacer, tick, full_load, .. } = self;
        pacer.set_profile(profile, from, now, &mut |it| slot(tick, full_load, has_first_byte, it));
    }

    /// Closes idle connections that are surplus or released, the latest first; busy ones close after their response. Returns when
    /// to continue.
    pub(super) fn close_surplus<I: Io>(&mut self, cx: &mut Cx<I>) -> Nanos {
        let (mut closes, mut checks) = (CLOSES_A_TURN, CHECKS_A_TURN);
        while self.closing.unexamined > 0 && (self.is_surplus() || self.is_released()) {
            if closes == 0 || checks == 0 {
                return cx.now();
            }
            checks -= 1;
            self.closing.unexamined -= 1;
            let Some(k) = cx.at(self.closing.unexamined) else { continue };
            match self.conn(k).state() {
                State::Idle if self.is_released() => self.release(cx, k),
                State::Idle => self.finish(cx, k),
                // Streaming calls do not end by themselves.
                State::Busy if self.job.streams() && self.is_surplus() && self.leave_streams(cx, k) => {}
                State::Disconnected if self.is_surplus() => {
                    self.forget(k);
                    cx.close(k, Close::Graceful);
                }
                _ => continue,
            }
            closes -= 1;
        }
        self.closing.unexamined = 0;
        Nanos::NEVER
    }

    /// One more call of a connection with a limited number has completed; returns whether it was the last.
    pub(super) fn is_last_call(&mut self, k: Key) -> bool {
        let Some(left) = self.columns.calls_left.get_mut(k.index) else { return false };
        *left -= 1;
        *left == 0
    }

    /// A new connection begins at this place: initialises its records.
    pub(super) fn begin_at(&mut self, k: Key, conn: Conn) {
        if self.pacer.comes_and_goes() {
            self.source.comes(k.index);
        }
        self.source.captures.iter_mut().for_each(|captures| captures.comes(k.index));
        self.columns.begin(k.index);
        self.conns.insert(k.index, conn);
    }
}
