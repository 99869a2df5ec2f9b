//! How the shard hands over its ticks: when, to whom, and whether the books still balance.

use samples::{Counts, Destination, Faults, Latency, Tick, books::Standing};
use units::Nanos;

use crate::{
    job::Job,
    link::{Control, Link, SPARE},
};

/// The tick being filled is the client's; this is what becomes of it when it ends.
pub(super) struct Handover {
    link: Link,
    period: Nanos,
    /// When the current tick ends at the latest.
    ends: Nanos,
    /// Ticks that were never filled.
    spare: [Option<Box<Tick>>; SPARE],
    /// Everything counted so far, in ticks that were handed over.
    books: Counts,
    /// Whether connections ended unplanned in the previous tick.
    is_losing: bool,
    /// Whether the shard was stopped: the tick handed over then is its last.
    is_finished: bool,
}

impl Handover {
    /// Of a shard whose first tick begins at `start`; also that tick.
    pub(super) fn new(job: &Job, link: Link, start: Nanos) -> (Handover, Box<Tick>) {
        let empty = || {
            let steps = vec![Latency::default(); job.steps];
            let (ramp_steps, step_faults) = (steps.clone(), vec![Faults::default(); job.steps]);
            let destinations = vec![Destination::default(); job.rows_of_plan];
            let mut tick =
                Tick { from: start, steps, ramp_steps, step_faults, destinations, ..Tick::default() };
            tick.reserve();
            Box::new(tick)
        };
        let handover = Handover {
            link,
            period: job.period,
            ends: end_of_period(start, job.period),
            spare: std::array::from_fn(|_| Some(empty())),
            books: Counts::default(),
            is_losing: false,
            is_finished: false,
        };
        (handover, empty())
    }

    /// The next order of the run, if one has come.
    pub(super) fn order(&self) -> Option<Control> {
        self.link.control.try_recv().ok()
    }

    /// When the current tick ends at the latest.
    pub(super) fn ends(&self) -> Nanos {
        self.ends
    }

    /// The shard was stopped: the next tick that is handed over is its last.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    pub(super) fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Whether the next unplanned end of a connection is the first after a tick without one.
    pub(super) fn would_be_first_loss(&self, tick: &Tick) -> bool {
        !self.is_losing && !has_losses(tick)
    }

    /// Hands over the tick, which is complete, and begins the next one. Without a used tick to refill, this one keeps growing: a
    /// slow reader costs resolution, not counts.
    pub(super) fn hand_over(&mut self, tick: &mut Box<Tick>, standing: &Standing, now: Nanos) {
        tick.index = self.ends.0 / self.period.0 - 1;
        tick.until = now;
        self.is_losing = has_losses(tick);
        self.ends = end_of_period(now, self.period);
        let spare = || self.spare.iter_mut().find_map(Option::take);
        if let Some(mut next) = self.link.used.try_recv().ok().or_else(spare) {
            next.clear();
            next.from = now;
            self.close(tick, standing);
            let _ = self.link.ticks.try_send((self.link.shard, std::mem::replace(tick, next)));
        } else if self.is_finished {
            self.close(tick, standing);
            let _ = self.link.ticks.send((self.link.shard, std::mem::take(tick)));
        }
    }

    /// Adds a tick to the shard's totals, and notes whether the books balance.
    fn close(&mut self, tick: &mut Tick, standing: &Standing) {
        self.books += &tick.counts;
        tick.imbalance = self.books.balance(standing);
        debug_assert!(tick.imbalance.is_none(), "{:?} of {:?} and {standing:?}", tick.imbalance, self.books);
    }
}

/// Ticks end at multiples of the period, the same for all shards.
fn end_of_period(now: Nanos, period: Nanos) -> Nanos {
    Nanos((now.0 / period.0 + 1) * period.0)
}

/// Whether connections ended unplanned in the tick.
fn has_losses(tick: &Tick) -> bool {
    tick.counts.dropped + tick.counts.closed > 0
}
