//! Orders come in, ticks go out.

use samples::{Latency, Phase};
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
                Control::Load { connections, tempo, from } => self.set_load(connections, tempo, from),
                Control::Tempo(tempo, from) => self.set_tempo(tempo, from, now),
                Control::Hold(from) => self.full_load.begin(from, now),
                Control::Until(at) => self.end_at(at),
                Control::Rest(rests) => self.rests = rests,
                Control::Drain => told |= self.drain(now),
                Control::Stop => (self.finished, told) = (true, true),
            }
        }
        if self.ramped_at == Nanos::NEVER && self.is_ramped() {
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

    fn end_at(&mut self, at: Nanos) {
        self.hold_until = at;
        if let Some(open_loop) = &mut self.open_loop {
            open_loop.end_at(at);
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
        let come = self.job.comes_and_goes() && self.ramp.is_ordered() && self.ramp.is_over();
        come && self.open + self.dialling == 0
    }

    fn seal(&mut self, now: Nanos) {
        let waiting = self.waiting();
        let tick = &mut self.tick;
        tick.until = now;
        tick.index = self.tick_ends.0 / self.job.period.0 - 1;
        (tick.open, tick.resolved, tick.waiting) = (self.open, self.resolved, waiting);
        tick.ramped_at = self.ramped_at;
        tick.phase = match (self.draining, self.full_load.is(now)) {
            (true, _) => Phase::Drain,
            (false, true) => Phase::Hold,
            (false, false) => Phase::Ramp,
        };
        self.tick_ends = Nanos((now.0 / self.job.period.0 + 1) * self.job.period.0);
        // Without a used tick to fill, this one grows on: the reader is behind, nothing is lost.
        if let Ok(mut next) = self.link.used.try_recv() {
            next.clear();
            next.from = now;
            next.steps.resize_with(tick.steps.len(), Latency::default);
            let full = std::mem::replace(tick, next);
            let _ = self.link.ticks.try_send((self.link.shard, full));
        } else if self.finished {
            let _ = self.link.ticks.send((self.link.shard, std::mem::take(tick)));
        }
    }
}
