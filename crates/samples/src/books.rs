//! The books of a shard: every request that was due, every dial and every connection is in exactly one account at any time.
//!
//! ```text
//!  due ─┬─► waiting ─► sent ─┬─► answered (rightly or wrong)
//!       │      ▲             ├─► failed, by the kind of its fault
//!       │      └─ withdrawn ─┤        (it met an announced end of its connection)
//!       │                    ├─► unanswered, when the run ends
//!       └─► missed           └─► revoked, by throng itself
//!
//!  dialled ─► opened or redialled, failed, given up        opened ─► held, closed, dropped, finished, ended after the load
//! ```
//!
//! Entries are made and moved between accounts only by the functions below, which also record the histograms and censored times.
//! [`Counts::balance`] checks the equations at every tick.

use units::Nanos;

use crate::{
    fault::{Fault, Stage},
    latency::Took,
    tick::{Tick, Timing},
};

pub use crate::counts::{Imbalance, Standing};

/// Where a request is counted, besides the totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whether it was due at full load, as opposed to the ramp.
    pub at_load: bool,
    /// Its step in the plan, if steps are counted.
    pub step: Option<usize>,
    /// The row of its destination, if destinations are counted.
    pub row: Option<usize>,
    /// The distribution for its time to first byte, if that is measured and has not been recorded yet.
    pub first_byte: Option<Timing>,
}

impl Entry {
    /// A request without a connection, so that its step and destination are unknown.
    pub const fn unsent(at_load: bool, first_byte: bool) -> Entry {
        let first_byte = match (first_byte, at_load) {
            (false, _) => None,
            (true, true) => Some(Timing::FirstByte),
            (true, false) => Some(Timing::RampFirstByte),
        };
        Entry { at_load, step: None, row: None, first_byte }
    }
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Closed by the server, with an announcement.
    Closed,
    /// Lost without an announcement.
    Dropped,
    /// Ended after the load: by the server, or by throng to make room for others.
    EndedAfter,
    /// Closed by throng, as planned.
    Finished,
}

/// Accounts of requests.
impl Tick {
    /// A request is due.
    pub fn due(&mut self) {
        self.counts.due += 1;
    }

    /// A due request is sent.
    pub fn sent(&mut self, row: Option<usize>) {
        self.counts.sent += 1;
        self.destination(row).into_iter().for_each(|own| own.sent += 1);
    }

    /// A request got its response of `content` bytes.
    pub fn answered(&mut self, entry: Entry, took: Took, content: u64) {
        self.counts.answered += 1;
        self.counts.body_bytes_in += content;
        if let Some(own) = self.destination(entry.row) {
            own.response(entry.at_load.then_some(took));
        }
        self[latency(entry.at_load)].record_seen(took);
        if let Some(step) = entry.step {
            self.times_of_steps(entry.at_load)[step].record_seen(took);
        }
        if entry.at_load && took.stalled > Nanos::ZERO {
            self.lag.record(took.stalled);
        }
    }

    /// A response that has been counted is wrong.
    pub fn wrong(&mut self, entry: Entry, fault: Fault) {
        self.counts.wrong += 1;
        self.count_fault(entry, fault);
    }

    /// A response that has been counted lacks what its connection needs. The fault is counted when the connection ends.
    pub fn unusable(&mut self, entry: Entry, fault: Fault) {
        self.counts.wrong += 1;
        entry.step.into_iter().for_each(|step| self.step_faults[step].count(fault));
    }

    /// A request failed: a fault ended it without a response.
    pub fn failed(&mut self, entry: Entry, fault: Fault) {
        self.counts.failed_requests += 1;
        self.count_fault(entry, fault);
        self.censor_n(entry, 1);
    }

    /// A request has no response at the end of the run.
    pub fn unanswered(&mut self, entry: Entry) {
        self.counts.unanswered += 1;
        self.censor_n(entry, 1);
    }

    /// A due request will never be sent.
    pub fn missed(&mut self, entry: Entry) {
        self.counts.missed += 1;
        self.censor_n(entry, 1);
    }

    /// `n` requests became due and will never be sent.
    pub fn due_and_missed(&mut self, entry: Entry, n: u64) {
        self.counts.due += n;
        self.counts.missed += n;
        self.censor_n(entry, n);
    }

    /// `n` requests of a planned number did not become due before the load ended: they count as due and missed. It is unknown which of the
    /// `steps` they would have been, so each step gets an equal part.
    pub fn never_due(&mut self, n: u64, has_first_bytes: bool, steps: &[usize]) {
        self.counts.due += n;
        self.counts.missed += n;
        self.latency.censor_n(n);
        self.first_byte.censor_n(if has_first_bytes { n } else { 0 });
        let of_each = n.div_ceil(steps.len().max(1) as u64);
        for step in steps {
            self.steps.resize_with(self.steps.len().max(step + 1), Default::default);
            self.steps[*step].censor_n(of_each);
        }
    }

    /// The server did not act on the request: it is due again, with its original due time.
    pub fn withdrawn(&mut self, row: Option<usize>) {
        self.counts.withdrawn += 1;
        self.destination(row).into_iter().for_each(|own| own.withdrawn += 1);
    }

    /// throng ends a request, because the load has ended and the message it listened for is no longer awaited.
    pub fn revoked(&mut self, row: Option<usize>) {
        self.counts.revoked += 1;
        self.destination(row).into_iter().for_each(|own| own.withdrawn += 1);
    }

    /// Counts times without an end, which rank above all recorded times.
    fn censor_n(&mut self, entry: Entry, n: u64) {
        self[latency(entry.at_load)].censor_n(n);
        if let Some(first_byte) = entry.first_byte {
            self[first_byte].censor_n(n);
        }
        if let Some(step) = entry.step {
            self.times_of_steps(entry.at_load)[step].censor_n(n);
        }
        if let Some(own) = self.destination(entry.row) {
            own.latency.censor_n(n);
        }
    }

    fn count_fault(&mut self, entry: Entry, fault: Fault) {
        self.faults.count(fault);
        self.destination(entry.row).into_iter().for_each(|own| own.faults.count(fault));
        entry.step.into_iter().for_each(|step| self.step_faults[step].count(fault));
    }

    fn times_of_steps(&mut self, at_load: bool) -> &mut [crate::Latency] {
        if at_load { &mut self.steps } else { &mut self.ramp_steps }
    }
}

/// Accounts of dials and connections. `row`: the destination's row, if destinations are counted.
impl Tick {
    /// A dial begins.
    pub fn dialled(&mut self) {
        self.counts.dialled += 1;
    }

    /// A dial led to a connection; `first`: the first one in its slot.
    pub fn opened(&mut self, row: Option<usize>, first: bool) {
        *if first { &mut self.counts.opened } else { &mut self.counts.redialled } += 1;
        if let Some(own) = self.destination(row) {
            *if first { &mut own.opened } else { &mut own.redialled } += 1;
        }
    }

    /// A dial failed with this fault.
    pub fn dial_failed(&mut self, row: Option<usize>, fault: Fault, for_request: bool) {
        self.counts.failed += 1;
        self.destination(row).into_iter().for_each(|own| own.failed += 1);
        self.connection_failed(row, fault, for_request);
    }

    /// The run ends before the outcome of a dial is known.
    pub fn dial_given_up(&mut self) {
        self.counts.given_up += 1;
    }

    /// A connection had a fault; `of_request`: a request accounts for it.
    pub fn connection_failed(&mut self, row: Option<usize>, fault: Fault, of_request: bool) {
        // A fault caused by a response is counted as a wrong response. The response to an upgrade belongs to no request.
        let is_of_response =
            fault.kind.is_of_response() && matches!(fault.stage, Stage::Exchange | Stage::Hold);
        let has_account = of_request || is_of_response;
        self.counts.connection_faults += u64::from(!has_account);
        self.count_fault(Entry { at_load: false, step: None, row, first_byte: None }, fault);
    }

    /// A connection has ended.
    pub fn ended(&mut self, row: Option<usize>, end: End) {
        let counts = &mut self.counts;
        *match end {
            End::Closed => &mut counts.closed,
            End::Dropped => &mut counts.dropped,
            End::EndedAfter => &mut counts.ended_after,
            End::Finished => &mut counts.finished,
        } += 1;
        self.destination(row).into_iter().for_each(|own| match end {
            End::Closed => own.closed += 1,
            End::Dropped => own.dropped += 1,
            End::Finished => own.finished += 1,
            End::EndedAfter => {}
        });
    }

    fn destination(&mut self, row: Option<usize>) -> Option<&mut crate::Destination> {
        self.destinations.get_mut(row?)
    }
}

const fn latency(at_load: bool) -> Timing {
    if at_load { Timing::Latency } else { Timing::RampLatency }
}

#[cfg(test)]
mod tests;
