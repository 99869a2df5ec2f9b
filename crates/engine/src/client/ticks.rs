//! Orders come in, ticks go out.

use samples::Phase;
use units::Nanos;

use super::Client;
use crate::link::Control;

impl Client {
    /// Requests that wait for their answer.
    fn waiting(&self) -> u64 {
        self.exchanges.len() - self.dialling - self.incoming
    }

    pub(super) fn obey(&mut self, now: Nanos) {
        let mut told = false;
        while let Ok(control) = self.link.control.try_recv() {
            match control {
                Control::Hold(from) => self.hold_from = from,
                Control::Drain => (self.draining, told) = (true, true),
                Control::Stop => (self.finished, told) = (true, true),
            }
        }
        if self.ramped_at == Nanos::NEVER && self.resolved == u64::from(self.wanted) {
            (self.ramped_at, told) = (now, true);
        }
        let drained = self.draining && self.waiting() == 0 && !self.told_drained;
        self.told_drained |= drained;
        if now >= self.tick_ends || told || drained {
            self.seal(now);
        }
    }

    fn seal(&mut self, now: Nanos) {
        let waiting = self.waiting();
        let tick = &mut self.tick;
        tick.until = now;
        tick.index = self.tick_ends.0 / self.job.period.0 - 1;
        (tick.open, tick.resolved, tick.waiting) = (self.open, self.resolved, waiting);
        tick.ramped_at = self.ramped_at;
        tick.phase = match (self.draining, now >= self.hold_from) {
            (true, _) => Phase::Drain,
            (false, true) => Phase::Hold,
            (false, false) => Phase::Ramp,
        };
        self.tick_ends = Nanos((now.0 / self.job.period.0 + 1) * self.job.period.0);
        // Without a used tick to fill, this one grows on: the reader is behind, nothing is lost.
        if let Ok(mut next) = self.link.used.try_recv() {
            next.clear();
            next.from = now;
            let full = std::mem::replace(tick, next);
            let _ = self.link.ticks.try_send((self.link.shard, full));
        } else if self.finished {
            let _ = self.link.ticks.send((self.link.shard, std::mem::take(tick)));
        }
    }
}
