//! The open loop: what is due by the schedule goes out on connections that are free.

use net::{Cx, Io, Key};
use units::Nanos;

use super::{Client, figures::miss};
use crate::{
    connections::State,
    exchange::{Exchange, PendingRequest},
};

impl Client {
    /// Sends what is due.
    pub(super) fn serve_slots<I: Io>(&mut self, cx: &mut Cx<I>) {
        let now = cx.now();
        let Client { pacer, tick, job, lateness, full_load, .. } = self;
        let collected_at = pacer.collect_due(now, &mut |due| {
            if full_load.has(due) {
                lateness.leaves(due);
            }
        });
        let limit = |due| job.timeout + lateness.since(due);
        pacer.give_up(now, limit, &mut |due| miss(tick, full_load, due));
        // Since it was free, its session may have been ended by the server, or what was withdrawn has been sent again on it: it comes back
        // with its next response.
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

    /// Slots that find no connection idle come by one of their own, as long as there is a place. What was due before the previous
    /// collection, at `collected_at`, has waited for that.
    fn dial_for_slots<I: Io>(&mut self, cx: &mut Cx<I>, collected_at: Nanos) {
        while !cx.is_full()
            && let Some(due) = self.pacer.take_slot()
        {
            let dial_due = if due < collected_at { cx.now() } else { due };
            self.dial_next(cx, Exchange { request: PendingRequest::Yes, ..Exchange::new(due, dial_due) });
        }
    }

    /// The connection has a place for a request: the slot that has waited longest takes it, or it waits for one. True: a
    /// request has begun.
    pub(super) fn set_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key) -> bool {
        if self.conn(k).state() != State::Busy {
            self.wake_at(cx, k, Nanos::NEVER);
        }
        // A slot that waits had no connection until now, and none to dial.
        let Some(due) = self.pacer.set_free(k.index) else { return false };
        self.use_free(cx, k, cx.now(), due)
    }

    fn use_free<I: Io>(&mut self, cx: &mut Cx<I>, k: Key, dial_due: Nanos, due: Nanos) -> bool {
        if self.conn(k).state() == State::Disconnected {
            self.redial(cx, k, dial_due, due, PendingRequest::Yes);
            return false;
        }
        self.start_request(cx, k, due)
    }

    /// A dial was for a slot, whose request is not sent now.
    pub(super) fn missed_by_dial(&mut self, exchange: &Exchange) {
        if exchange.has_request() && self.pacer.is_open_loop() {
            miss(&mut self.tick, &self.full_load, exchange.due);
            self.tick.counts.withdrawn +=
                u64::from(self.job.dials_on_demand() && exchange.request == PendingRequest::Retry);
        }
    }
}
