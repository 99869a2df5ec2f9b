//! Moves of a population to its share of the load in a stage: dialling at the ramp's rate, closing connections, changing the request
//! rate. Shards dial by a rate profile on their own; for a descent, the schedule orders fewer connections step by step.

use engine::{Control, RateProfile};
use plan::Ramp;
use units::{Nanos, Rate};

use super::{Order, Schedule, manual::Slope};

/// The time within which an immediate change happens.
const AT_ONCE: Nanos = Nanos::from_millis(1);

/// A population that closes connections at a rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descent {
    pub(super) population: u16,
    pub(super) since: Nanos,
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) rate: Rate,
    pub(super) ordered: u32,
}

impl Schedule<'_> {
    /// Connections that a population must still open to reach the current stage's level.
    pub(super) fn missing(&self, population: u16) -> u64 {
        let level = self.manual.of(self.plan.stages[self.stage].to);
        let wanted = level.of(self.of(population).load.held().into());
        wanted.saturating_sub(self.progress(population).connections.into())
    }

    /// Starts to move a population to the stage's level. Returns the earliest time at which it can arrive. `all`: the connections to be
    /// opened in this stage by all populations.
    pub(super) fn start_moving(&mut self, population: u16, all: u64, now: Nanos) -> Nanos {
        let (stage, own) = (&self.plan.stages[self.stage], self.of(population));
        let comes_and_goes = own.comes_and_goes();
        let level = self.manual.of(stage.to);
        let before = std::mem::replace(&mut self.progress_mut(population).level, level);
        let over = match stage.ramp {
            Ramp::Within(time) => time,
            _ => Nanos::ZERO,
        };
        let applied = self.applied;
        let progress = self.progress_mut(population);
        let is_new = !progress.has_held;
        let profile = own.load.rate().map(|rate| {
            let (from, to) = (before.of_rate(rate), level.of_rate(rate));
            progress.slope = (over > Nanos::ZERO).then_some(Slope { from, to, over, began: applied });
            if over == Nanos::ZERO { RateProfile::Steady(to) } else { RateProfile::Slope { from, to, over } }
        });
        if comes_and_goes && is_new {
            // Arrivals are at full load from the first one.
            (progress.hold_from, progress.has_held) = (applied, true);
            self.orders.push(Order::Load(population, own.load.connections(), profile, applied));
            self.orders.push(Order::Population(population, Control::Hold(applied)));
        } else if !is_new && let Some(profile) = profile {
            self.orders.push(Order::Population(population, Control::RateProfile(profile, applied)));
        }
        if comes_and_goes {
            return applied + over;
        }
        let to = level.of(own.load.connections().into()) as u32;
        let from = std::mem::replace(&mut self.progress_mut(population).connections, to);
        self.leave_hold(population, to < from, now);
        self.dial_or_close(population, (from, to), all, now);
        if is_new { Nanos::ZERO } else { now + over }
    }

    /// Marks a population as moving, and ends its full load: what is due from now on is not due at full load. `closes`: it closes
    /// connections.
    pub(super) fn leave_hold(&mut self, population: u16, closes: bool, now: Nanos) {
        let progress = self.progress_mut(population);
        (progress.is_moving, progress.closes, progress.moved_at) = (true, closes, now);
        if progress.hold_from != Nanos::NEVER {
            self.end_hold(population, now);
        }
    }

    pub(super) fn end_hold(&mut self, population: u16, now: Nanos) {
        let progress = self.progress_mut(population);
        progress.holding = progress.holding + now.since(progress.hold_from);
        progress.hold_from = Nanos::NEVER;
        self.orders.push(Order::Population(population, Control::Hold(Nanos::NEVER)));
    }

    /// Changes the number of held connections from `from` to `to` at the stage's rate.
    pub(super) fn dial_or_close(&mut self, population: u16, (from, to): (u32, u32), all: u64, now: Nanos) {
        let changes = f64::from(from.abs_diff(to));
        let rate = match self.plan.stages[self.stage].ramp {
            Ramp::Adaptive => None,
            // No rate for redialling lost connections: a rate of zero would never restore them.
            Ramp::Within(_) if to == from => None,
            // The dial rate is shared by all populations that grow in this stage, in proportion.
            Ramp::Rate(rate) if to > from => Some(rate.per_s_f64() * changes / all.max(1) as f64),
            Ramp::Rate(rate) => Some(rate.per_s_f64()),
            Ramp::Within(time) => Some(changes / time.max(AT_ONCE).secs_f64()),
        };
        let rate = rate.map(Rate::from_per_s_f64);
        if to >= from {
            self.progress_mut(population).dials = rate;
        }
        // With a request rate, connections close only after every shard has received the lower rate, so that requests have their
        // connections until then.
        let by_rate = self.of(population).load.rate().is_some();
        let descends = match rate {
            _ if to >= from => None,
            None if by_rate => Some(Rate::from_per_s_f64(changes / AT_ONCE.secs_f64())),
            rate => rate,
        };
        if let Some(rate) = descends {
            let since = if by_rate { self.applied.max(now) } else { now };
            self.descents.push(Descent { population, since, from, to, rate, ordered: from });
            return;
        }
        match rate {
            Some(rate) => {
                self.orders.push(Order::Load(population, to, Some(RateProfile::Steady(rate)), self.applied));
            }
            None => self.orders.push(Order::Load(population, to, None, now)),
        }
    }

    /// Orders the connections due to be closed by now.
    pub(super) fn descend(&mut self, now: Nanos) {
        let Schedule { orders, progress, descents, .. } = self;
        descents.retain_mut(|descent| {
            let due =
                descent.rate.due(now.since(descent.since)).min(u64::from(descent.from - descent.to)) as u32;
            let level = descent.from - due;
            if level < descent.ordered {
                descent.ordered = level;
                progress[usize::from(descent.population)].moved_at = now;
                orders.push(Order::Load(descent.population, level, None, now));
            }
            level > descent.to
        });
    }
}
