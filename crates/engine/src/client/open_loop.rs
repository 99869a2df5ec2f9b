//! The open loop: requests that the schedule makes due are sent on free connections.

use net::{Cx, Io, Key};
use units::Nanos;

use super::{Client, books::slot};
use crate::{
    connections::State,
    exchange::{Exchange, PendingRequest},
    pacer::Slot,
};

impl Client {
    /// Sends what is due by the schedule.
    pub(super) fn serve_slots<I: Io>(&mut self, cx: &mut Cx<I>) {
        let now = cx.now();
        let has_first_byte = self.has_first_bytes();
        let Client { pacer, tick, job, lateness, full_load, .. } = self;
        let collected_at = pacer.collect_due(now, &mut |it| {
            if let Slot::Due(due) = it
                && full_load.has(due)
            {
                lateness.leaves(due);
            }
            slot(tick, full_load, has_first_byte, it);
        });
        let limit = |due| job.timeout + lateness.since(due);
        pacer.give_up(now, limit, &mut |it| slot(tick, full_load, has_first_byte, it));
        // A connection may have lost its place since it became free: its session was ended, or a withdrawn request was sent on
        // it. It becomes free again with its next response.
        let pair = |client: &mut Client| client.pacer.pair(|index| client.conns.may_begin(index));
        while let Some((index, due)) = pair(self) {
            let k = cx.at(index).expect("who is free is there");
            if self.use_free(cx, k, due, due) {
                self.go_on_beside(cx, k);
            }
        }
        if self.job.dials_on_demand() {
            self.dial_for_slots(cx, collected_at);
        }
    }

    /// Dials a connection for each slot that finds none idle, as long as there are places. A slot that was due before the
    /// previous collection, at `collected_at`, had to wait for a place: its dial is due now.
    fn dial_for_slots<I: Io>(&mut self, cx: &mut Cx<I>, collected_at: Nanos) {
        while !cx.is_full()
            && let Some(due) = self.pacer.take_slot()
        {
            let dial_due = if due < collected_at { cx.now() } else { due };
            self.dial_next(cx, Exchange { request: PendingRequest::Due, ..Exchange::new(due, dial_due) });
        }
    }

    /// The connection can take a request: the slot that has waited longest takes it, otherwise the connection waits for one.
    /// Returns whether a request has begun.
    pub(super) fn set_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> bool {
        if self.conn(k).state() != State::Busy {
            self.wake_at(cx, k, Nanos::NEVER);
        }
        // A waiting slot had no connection until now, and none to dial.
        let Some(due) = self.pacer.set_free(k.index) else { return false };
        self.use_free(cx, k, cx.now(), due)
    }

    fn use_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, dial_due: Nanos, due: Nanos) -> bool {
        if self.conn(k).state() == State::Disconnected {
            self.redial(cx, k, Exchange { request: PendingRequest::Due, ..Exchange::new(due, dial_due) });
            return false;
        }
        self.start_request(cx, k, Exchange::new(due, cx.now()))
    }

    /// Gives up the scheduled requests that are due by now and have no connection.
    pub(super) fn end_slots(&mut self, now: Nanos) {
        let has_first_byte = self.has_first_bytes();
        let Client { pacer, tick, full_load, .. } = self;
        pacer.end_slots(now, &mut |it| slot(tick, full_load, has_first_byte, it));
    }

    /// Gives up the slots that wait for a connection. What became due after the load or a step of a search ended is not part of
    /// it.
    pub(super) fn give_up_slots(&mut self, now: Nanos) {
        let has_first_byte = self.has_first_bytes();
        let Client { pacer, tick, full_load, .. } = self;
        pacer.give_up(now, |_| Nanos::ZERO, &mut |it| slot(tick, full_load, has_first_byte, it));
    }
}
