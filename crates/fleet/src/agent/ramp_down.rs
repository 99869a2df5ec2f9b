//! The early end of an agent's part: it starts nothing new, and waits briefly for outstanding responses. If its lease has expired, it
//! closes its connections step by step meanwhile.

use std::collections::BTreeMap;

use run::Order;
use samples::{FAILED, Phase, Tick};
use units::{Failure, Nanos};

use super::{Agent, Machine, Stage};
use crate::message::RAMPS_DOWN;

/// Number of steps, so that connections are not closed in bursts.
const STEPS: u64 = 30;

/// A load that is being reduced to zero.
pub(super) struct RampDown {
    from: Nanos,
    /// The last ordered connections of each population of the plan.
    loads: BTreeMap<u16, u32>,
    /// The last step ordered.
    step: Option<u64>,
    /// Ends as soon as no response is outstanding.
    is_leaving: bool,
    /// The load had not ended before: it continues without this agent.
    is_early: bool,
}

impl RampDown {
    /// Reduces the load that results from these orders. `is_early`: it has not ended.
    pub(super) fn new(orders: &[Order], now: Nanos, is_early: bool) -> RampDown {
        let load = |order: &Order| match *order {
            Order::Load(population, connections, ..) => Some((population, connections)),
            _ => None,
        };
        let loads = orders.iter().filter_map(load).collect();
        RampDown { from: now, loads, step: None, is_leaving: false, is_early }
    }

    /// Ends the part of an agent that its user stops: others wait for the part, and its connections end with it.
    pub(super) fn leaving(now: Nanos, is_early: bool) -> RampDown {
        RampDown { is_leaving: true, ..RampDown::new(&[], now, is_early) }
    }

    /// Whether the lease has expired.
    pub(super) fn is_of_lease(&self) -> bool {
        !self.is_leaving
    }

    /// Hides the end of the load: it continues without this agent, whose connections do not count as held until the end.
    pub(super) fn hide_end(&self, tick: &mut Tick) {
        if self.is_early && tick.phase == Phase::Drain {
            tick.phase = if tick.ramped_at == Nanos::NEVER { Phase::Ramp } else { Phase::Hold };
        }
    }

    /// The orders due: first to start nothing new, finally to stop. `awaits`: responses are outstanding, as far as known.
    pub(super) fn poll(&mut self, now: Nanos, awaits: bool) -> Vec<Order> {
        let is_over = self.is_leaving && self.step.is_some() && !awaits;
        let step = (now.since(self.from).0.saturating_mul(STEPS) / RAMPS_DOWN.0).min(STEPS);
        let step = if is_over { STEPS } else { step };
        let before = self.step.replace(step);
        if before == Some(step) {
            return Vec::new();
        }
        let mut orders = Vec::new();
        if before.is_none() {
            orders.push(Order::DRAIN);
        }
        if step > 0 {
            let left = |all: u32| (u64::from(all) * (STEPS - step) / STEPS) as u32;
            let fewer =
                |(population, all): (&u16, &u32)| Order::Load(*population, left(*all), None, Nanos::ZERO);
            orders.extend(self.loads.iter().map(fewer));
        }
        if step == STEPS {
            orders.push(Order::STOP);
        }
        orders
    }
}

/// The reason for an early end: a failure of throng, if there was one, else `why`.
pub(super) fn ends_early(why: &str) -> String {
    Failure::first().map_or_else(|| why.to_owned(), |failure| format!("{FAILED}: {failure}"))
}

impl<M: Machine> Agent<M> {
    /// The agent's user stops it: its part ends, whatever its coordinator orders. If its load has ended, there is nothing for others to
    /// take over, and requests without a response after the wait remain without one.
    pub(crate) fn stop(&mut self, now: Nanos) {
        let Some(work) = &mut self.work else { return };
        match &work.stage {
            Stage::Running(_, counting) if !counting.has_ended() => {
                work.why.get_or_insert_with(|| ends_early("it was stopped"));
            }
            Stage::Running(..) if !work.is_stopping => {
                work.is_stopping = true;
                work.ramp_down = Some(RampDown::leaving(now, false));
            }
            Stage::Running(..) => {}
            _ => self.end(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Nanos = Nanos::from_secs;

    fn load(population: u16, connections: u32) -> Order {
        Order::Load(population, connections, None, Nanos::ZERO)
    }

    #[test]
    fn a_load_is_left_in_equal_steps_within_its_time() {
        // The first population was last at half of its load.
        let orders = [load(0, 6_000), load(1, 90), Order::DRAIN, load(0, 3_000)];
        let mut ramp_down = RampDown::new(&orders, S(50), true);
        assert_eq!(ramp_down.poll(S(50), true), [Order::DRAIN]);
        assert_eq!(ramp_down.poll(S(50), true), [], "once");
        let at = |step: u64| S(50) + Nanos(RAMPS_DOWN.0 * step / STEPS);
        assert_eq!(ramp_down.poll(at(1), true), [load(0, 2_900), load(1, 87)]);
        // A delayed poll does not make up for steps.
        assert_eq!(ramp_down.poll(at(15), true), [load(0, 1_500), load(1, 45)]);
        assert_eq!(ramp_down.poll(at(29), true), [load(0, 100), load(1, 3)]);
        assert_eq!(ramp_down.poll(S(50) + RAMPS_DOWN, true), [load(0, 0), load(1, 0), Order::STOP]);
        assert_eq!(ramp_down.poll(S(99), true), []);
    }

    #[test]
    fn an_agent_that_stood_still_ends_at_once() {
        let mut ramp_down = RampDown::new(&[load(0, 10)], S(1), true);
        assert_eq!(ramp_down.poll(S(20), true), [Order::DRAIN, load(0, 0), Order::STOP]);
    }

    #[test]
    fn an_agent_that_is_stopped_waits_for_its_responses_and_not_for_long() {
        let mut ramp_down = RampDown::leaving(S(50), true);
        // Requests outstanding before it began to end are not known yet.
        assert_eq!(ramp_down.poll(S(50), false), [Order::DRAIN]);
        assert_eq!(ramp_down.poll(S(51), true), []);
        assert_eq!(ramp_down.poll(S(51), false), [Order::STOP]);
        assert_eq!(ramp_down.poll(S(52), false), []);
        let mut ramp_down = RampDown::leaving(S(50), true);
        assert_eq!(ramp_down.poll(S(50), true), [Order::DRAIN]);
        assert_eq!(ramp_down.poll(S(50) + RAMPS_DOWN, true), [Order::STOP]);
    }

    #[test]
    fn a_load_that_an_agent_leaves_has_not_ended() {
        let check = |is_early, phase, ramped_at, expected| {
            let mut tick = Tick { phase, ramped_at, ..Tick::default() };
            for ramp_down in [RampDown::leaving(S(9), is_early), RampDown::new(&[], S(9), is_early)] {
                ramp_down.hide_end(&mut tick);
                assert_eq!(tick.phase, expected);
            }
        };
        check(true, Phase::Drain, S(1), Phase::Hold);
        check(true, Phase::Drain, Nanos::NEVER, Phase::Ramp);
        check(true, Phase::Ramp, S(1), Phase::Ramp);
        check(false, Phase::Drain, S(1), Phase::Drain);
    }
}
