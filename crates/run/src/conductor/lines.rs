//! What workers report, second by second: ticks come in, lines go out, and the record holds all of it.

use plan::Whose;
use samples::{Phase, Tick};
use units::Nanos;

use super::{Conductor, Report};
use crate::record::line;

/// A line sums up this time.
const LINE: Nanos = Nanos::from_secs(1);

/// Lines end at whole seconds.
pub(super) fn end_after(now: Nanos) -> Nanos {
    Nanos((now.0 / LINE.0 + 1) * LINE.0)
}

impl Conductor<'_> {
    /// A tick of a worker came.
    pub fn handle_tick(&mut self, worker: u32, tick: &Tick) {
        let period = tick.until.since(tick.from);
        let report = &mut self.reports[worker as usize];
        // A worker ends a tick where its ramp ends: between two ends their mean is good enough.
        let open = report.open + tick.open;
        let is_after = report.drained_at != Nanos::NEVER;
        let ended = tick.phase == Phase::Drain && !is_after;
        *report = Report {
            whose: report.whose,
            drained_at: if ended { tick.until } else { report.drained_at },
            open: tick.open,
            resolved: tick.resolved,
            waiting: tick.waiting,
            owed: tick.owed,
            ramped_at: tick.ramped_at,
            until: tick.until,
            phase: tick.phase,
        };
        let whose = report.whose;
        let open_ns = u128::from(open) * u128::from(period.0) / 2;
        self.line.open_ns += open_ns;
        self.line.extend(tick);
        self.record.losses.take(tick);
        if let Whose::Population(nth) = whose {
            self.take_of(nth, tick, open_ns);
            // The tick in which its load ended is not among them.
            if is_after {
                self.record.crowds[usize::from(nth)].dropped_in_drain += tick.counts.dropped;
            }
        }
        self.record.peak = self.record.peak.max(self.open());
        if let Some(probe) = &tick.probe {
            self.record.curve.add(self.open(), probe);
        }
    }

    /// What a population's worker has reported.
    fn take_of(&mut self, nth: u16, tick: &Tick, open_ns: u128) {
        let period = tick.until.since(tick.from);
        // The rate of a short tick is noise.
        let has_rate = tick.phase == Phase::Hold && period >= Nanos(self.period.0 / 2);
        let rate = has_rate.then(|| tick.counts.answered as f64 / period.secs_f64());
        rate.into_iter().for_each(|rate| self.line.shard_rates.record(rate));
        let (open, waiting) = (self.of(nth).map(|r| r.open).sum(), self.of(nth).map(|r| r.waiting).sum());
        let (resolved, owed) = (self.of(nth).map(|r| r.resolved).sum(), self.of(nth).map(|r| r.owed).sum());
        let ramped_at = self.of(nth).map(|r| r.ramped_at).max().unwrap_or_default();
        let hold_from = self.course.progress(nth).hold_from;
        let complete = self.of(nth).map(|r| r.until).min().unwrap_or_default();
        self.record.crowds[usize::from(nth)].take(tick, open, complete, hold_from);
        if let Some(own) = self.line.populations.get_mut(usize::from(nth)) {
            own.extend(tick);
            own.open_ns += open_ns;
            rate.into_iter().for_each(|rate| own.shard_rates.record(rate));
            (own.open, own.wanted, own.waiting) = (open, self.course.wanted(nth), waiting);
            (own.resolved, own.owed, own.ramped_at) = (resolved, owed, ramped_at);
        }
    }

    /// The line of the second that is over, once all workers have reported it, or as soon as they should have.
    pub fn poll_line(&mut self, now: Nanos) -> Option<Tick> {
        // Workers end their ticks together, and those ticks need a moment to arrive.
        let is_complete = self.reports.iter().all(|report| report.until >= self.line_ends);
        if !is_complete && now.since(self.line_ends) < self.latency || now < self.line_ends {
            return None;
        }
        self.line_ends = end_after(now);
        Some(self.end_line())
    }

    pub(super) fn end_line(&mut self) -> Tick {
        let until = self.reports.iter().map(|report| report.until).max().unwrap_or_default();
        self.line.open = self.open();
        self.line.resolved = self.resolved();
        self.line.waiting = self.of_load().map(|report| report.waiting).sum();
        self.line.owed = self.of_load().map(|report| report.owed).sum();
        self.line.ramped_at = self.of_load().map(|report| report.ramped_at).max().unwrap_or_default();
        self.line.phase = match self.course.is_paused() && self.draining.is_none() {
            true => Phase::Pause,
            false => self.of_load().map(|report| report.phase).min().unwrap_or_default(),
        };
        self.line.until = until;
        self.line.wanted = (0..self.record.crowds.len() as u16).map(|nth| self.course.wanted(nth)).sum();
        self.record.totals.extend(&self.line);
        let ended = self.line.clone();
        self.line.clear();
        (self.line.index, self.line.from) = (ended.index + 1, until);
        self.line.populations = line(until, self.record.crowds.len()).populations;
        ended
    }
}
