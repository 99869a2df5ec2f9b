//! Orders come in, ticks go out.

use samples::Phase;
use units::{Nanos, Rate};

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
                Control::Hold(from) => self.hold(from),
                Control::SetLoad(n) => self.set_load(n, now),
                Control::SetRate(rate, from) => self.set_rate(rate, from, now),
                Control::Drain => told |= self.drain(now),
                Control::Stop => (self.finished, told) = (true, true),
            }
        }
        if self.ramped_at == Nanos::NEVER && self.resolved == self.ramp.ordered {
            (self.ramped_at, told) = (now, true);
        }
        if now >= self.hold_until || self.all_have_gone() {
            told |= self.drain(now);
        }
        let drained = self.draining && self.waiting() == 0 && !self.told_drained;
        self.told_drained |= drained;
        if now >= self.tick_ends || told || drained {
            self.seal(now);
        }
    }

    /// Full load begins at `from`. Its end is not left to an order, which would come a little later to each shard.
    fn hold(&mut self, from: Nanos) {
        (self.hold_from, self.hold_until) = (from, from + self.job.hold);
        if let Some(open_loop) = &mut self.open_loop {
            open_loop.begin(&self.part, from, self.job.hold);
        }
    }

    /// A new schedule from `from` on, for what is left of full load.
    fn set_rate(&mut self, rate: Rate, from: Nanos, now: Nanos) {
        let Some(open_loop) = &mut self.open_loop else { return };
        self.tick.counts.missed += open_loop.end(now);
        open_loop.rate = rate;
        if self.hold_from != Nanos::NEVER {
            let left =
                if self.hold_until == Nanos::NEVER { Nanos::NEVER } else { self.hold_until.since(from) };
            open_loop.begin(&self.part, from, left);
        }
    }

    /// Full load ends; false where it had ended before.
    fn drain(&mut self, now: Nanos) -> bool {
        if let Some(open_loop) = &mut self.open_loop {
            self.tick.counts.missed += open_loop.end(now);
        }
        !std::mem::replace(&mut self.draining, true)
    }

    /// All connections that were to come and go have done so.
    fn all_have_gone(&self) -> bool {
        self.job.calls().is_some() && self.ramp.is_over() && self.open + self.dialling == 0
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
