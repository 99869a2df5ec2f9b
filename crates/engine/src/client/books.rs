//! The accounts of requests, dials and connections: each function moves one item from an account to the next
//! ([`samples::books`]). Nothing else counts them, so that the books balance at every tick.

use net::Key;
use samples::{
    Fault, Kind, Tick, Timing, Took,
    books::{End, Entry, Standing},
    breakdown::Outcome,
};
use units::Nanos;

use super::{Client, withdrawn::Again};
use crate::{
    exchange::{Begun, Exchange},
    full_load::FullLoad,
    op::Op,
    pacer::Slot,
    pool::NOTHING,
    protocol::Head,
};

/// Counts a slot of the schedule: its request is due, or given up without a connection.
pub(super) fn slot(tick: &mut Tick, full_load: &FullLoad, has_first_byte: bool, slot: Slot) {
    match slot {
        Slot::Due(_) => tick.due(),
        Slot::Missed(due) => tick.missed(Entry::unsent(full_load.has(due), has_first_byte)),
    }
}

impl Client {
    /// Counts a request as due: the operation `at`.
    pub(super) fn due(&mut self, at: u16) {
        // Waiting for an unsolicited message does not count towards a number of requests.
        if !matches!(self.job.op(at), Op::Expect(_)) {
            self.quota.take();
        }
        self.tick.due();
    }

    /// Counts a request that was due as sent; `by_dial`: its connection was dialled for it.
    pub(super) fn sent(&mut self, destination: u16, by_dial: bool) {
        self.due_dials -= u64::from(by_dial);
        self.tick.sent(self.job.row(destination));
    }

    /// Counts a complete response; `wrong`: what is wrong with it; `useless`: the value the connection needs and did not get.
    pub(super) fn answered(
        &mut self,
        exchange: &Exchange,
        index: u32,
        head: Option<Head>,
        (took, wrong, useless): (Took, Option<Fault>, Option<Fault>),
    ) {
        let destination = self.conns[index].destination;
        self.settle(exchange);
        let entry = self.entry(exchange, destination);
        self.tick.answered(entry, took, exchange.content());
        let outcome = match (wrong, useless) {
            (None, None) if entry.at_load => Outcome::Took(took.time),
            (None, None) => Outcome::InRamp,
            _ => Outcome::Wrong,
        };
        let size = head.map_or(0, |head| u64::from(head.bytes)) + exchange.content();
        self.break_down(exchange, index, Some(size), outcome);
        match (wrong, useless) {
            (Some(fault), _) => self.tick.wrong(entry, fault),
            (None, Some(fault)) => self.tick.unusable(entry, fault),
            (None, None) => {}
        }
    }

    /// Counts a request that a fault has ended.
    pub(super) fn failed(&mut self, exchange: &Exchange, index: u32, fault: Fault, now: Nanos) {
        let destination = self.conns[index].destination;
        self.learn(exchange, now, false);
        self.magnifier.saw(fault);
        if fault.kind == Kind::Timeout && exchange.nth > 0 && self.job.is_streaming(exchange.at) {
            // A streaming call: its next message did not come in time.
            self.count_silence(exchange.started, now);
        }
        self.settle(exchange);
        let entry = self.entry(exchange, destination);
        self.tick.failed(entry, fault);
        let outcome = if fault.kind == Kind::Timeout { Outcome::Missing } else { Outcome::Wrong };
        self.break_down(exchange, index, None, outcome);
    }

    /// Takes back a request that the server did not act on, or redirected, when it ended the connection: it is due again.
    pub(super) fn withdraw(&mut self, exchange: &Exchange, destination: u16) -> Again {
        self.settle(exchange);
        self.tick.withdrawn(self.job.row(destination));
        let Exchange { due, at, nth, begun, expected, .. } = *exchange;
        let followed = if self.job.follows_redirects(at) { nth } else { 0 };
        let begun = if followed > 0 { begun } else { Begun::NOT };
        Again { due, at, followed, begun, expected }
    }

    /// Counts a withdrawn request that is never sent again as missed.
    pub(super) fn miss_withdrawn(&mut self, again: Again, destination: u16) {
        self.miss(&again.exchange(again.due), destination);
    }

    /// Counts a request as missed because the connection dialled for it failed.
    pub(super) fn miss_by_dial(&mut self, exchange: &Exchange, destination: u16) {
        self.due_dials -= 1;
        self.settle(exchange);
        self.miss(exchange, destination);
    }

    fn miss(&mut self, exchange: &Exchange, destination: u16) {
        let entry = self.entry(exchange, destination);
        self.tick.missed(entry);
    }

    /// Counts messages that were due at intervals by `until`, but never sent because the connection still awaited earlier
    /// replies, as missed.
    pub(super) fn miss_backlog(&mut self, index: u32, until: Nanos) {
        let Some((next, every)) = self.next_at_intervals(index).filter(|(next, _)| *next <= until) else {
            return;
        };
        let due_by = |time: Nanos| if time < next { 0 } else { 1 + time.since(next).0 / every.0 };
        let all = due_by(until);
        let before = due_by(Nanos(self.full_load.from().0.saturating_sub(1))).min(all);
        let conn = self.conns[index];
        let (step, row) = (self.job.step(self.conns.exchange(index).at), self.job.row(conn.destination));
        let has_first_byte = self.has_first_bytes();
        for (at_load, n) in [(false, before), (true, all - before)] {
            self.tick.due_and_missed(Entry { step, row, ..Entry::unsent(at_load, has_first_byte) }, n);
        }
    }

    /// Counts a request that throng ends together with the load.
    pub(super) fn revoke(&mut self, exchange: &Exchange, destination: u16) {
        self.settle(exchange);
        self.tick.revoked(self.job.row(destination));
    }

    /// The run ends: whatever is still waiting or under way is counted as given up or unanswered.
    pub(super) fn give_up(&mut self, now: Nanos) {
        self.give_up_slots(now);
        for index in 0..self.conns.len() {
            let conn = self.conns[index];
            if conn.state().is_opening() {
                let exchange = *self.conns.exchange(index);
                self.tick.dial_given_up();
                if exchange.request.is_due() {
                    self.miss_by_dial(&exchange, conn.destination);
                }
            } else {
                self.leave_unanswered(index, conn.destination);
            }
            for again in self.withdrawn.take(index) {
                self.miss_withdrawn(again, conn.destination);
            }
        }
    }

    fn leave_unanswered(&mut self, index: u32, destination: u16) {
        let mut stream = self.conns.first_stream(index);
        while stream != NOTHING {
            let exchange = *self.conns.at(stream);
            let entry = self.entry(&exchange, destination);
            self.tick.unanswered(entry);
            self.break_down(&exchange, index, None, Outcome::Missing);
            stream = exchange.next;
        }
    }

    /// Removes a request from those outstanding of a past full load.
    fn settle(&mut self, exchange: &Exchange) {
        self.full_load.settle(exchange.due);
    }

    /// The accounts in which a request is counted: full load or ramp, step, destination, and first-byte time.
    fn entry(&self, exchange: &Exchange, destination: u16) -> Entry {
        let at_load = self.full_load.has(exchange.due);
        let is_measured = self.has_first_bytes() && !exchange.begun.has();
        // A streaming call begins in the ramp, but its messages belong to the load.
        let of_load = at_load || self.job.is_streaming(exchange.at);
        let first_byte = if of_load { Timing::FirstByte } else { Timing::RampFirstByte };
        Entry {
            at_load,
            step: self.job.step(exchange.at),
            row: self.job.row(destination),
            first_byte: is_measured.then_some(first_byte),
        }
    }

    /// Whether time to first byte is measured: not where the server may send unsolicited messages.
    pub(super) fn has_first_bytes(&self) -> bool {
        !self.job.protocol.properties().server_may_speak
    }

    /// Counts a dial; `is_due`: it is for a request that is already in the books.
    pub(super) fn dialled(&mut self, is_due: bool) {
        self.due_dials += u64::from(is_due);
        self.tick.dialled();
    }

    /// Counts an opened connection; `first`: the first one dialled for its place.
    pub(super) fn count_opened(&mut self, destination: u16, first: bool) {
        self.tick.opened(self.job.row(destination), first);
    }

    /// Counts the end of a connection.
    pub(super) fn count_ended(&mut self, k: Key, end: End) {
        let row = self.job.row(self.conns[k.index].destination);
        self.tick.ended(row, end);
    }

    /// What is under way, waiting, dialling and open now.
    pub(super) fn standing(&self) -> Standing {
        let open = self.conns.open();
        if self.handover.is_finished() {
            return Standing { open, ..Standing::default() };
        }
        Standing {
            under_way: self.conns.waiting(),
            waiting: self.due_dials + self.withdrawn.len() + self.pacer.waiting(),
            dialling: self.conns.dialling(),
            open,
        }
    }
}
