//! How an agent ends its part when its coordinator is silent: it begins nothing new, and closes its connections little by little.

use std::collections::BTreeMap;

use run::Order;
use units::Nanos;

use crate::message::RAMPS_DOWN;

/// In this many steps: none of them is a burst of closes.
const STEPS: u64 = 30;

/// A load on its way to nothing.
pub(super) struct RampDown {
    from: Nanos,
    /// The connections of each population of the plan, as they were ordered last.
    loads: BTreeMap<u16, u32>,
    /// The last step that was ordered.
    step: Option<u64>,
}

impl RampDown {
    /// Of the load that these orders have led to, from now on.
    pub(super) fn new(orders: &[Order], now: Nanos) -> RampDown {
        let load = |order: &Order| match *order {
            Order::Load(population, connections, ..) => Some((population, connections)),
            _ => None,
        };
        RampDown { from: now, loads: orders.iter().filter_map(load).collect(), step: None }
    }

    /// The orders that are due: first that nothing new begins, last that all ends.
    pub(super) fn poll(&mut self, now: Nanos) -> Vec<Order> {
        let step = (now.since(self.from).0.saturating_mul(STEPS) / RAMPS_DOWN.0).min(STEPS);
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

#[cfg(test)]
mod tests {
    use super::*;

    const S: fn(u64) -> Nanos = Nanos::from_secs;

    fn load(population: u16, connections: u32) -> Order {
        Order::Load(population, connections, None, Nanos::ZERO)
    }

    #[test]
    fn a_load_is_left_in_equal_steps_within_its_time() {
        // The first population was at half of its load last.
        let orders = [load(0, 6_000), load(1, 90), Order::DRAIN, load(0, 3_000)];
        let mut ramp_down = RampDown::new(&orders, S(50));
        assert_eq!(ramp_down.poll(S(50)), [Order::DRAIN]);
        assert_eq!(ramp_down.poll(S(50)), [], "once");
        let at = |step: u64| S(50) + Nanos(RAMPS_DOWN.0 * step / STEPS);
        assert_eq!(ramp_down.poll(at(1)), [load(0, 2_900), load(1, 87)]);
        // One that was late does not make up for steps.
        assert_eq!(ramp_down.poll(at(15)), [load(0, 1_500), load(1, 45)]);
        assert_eq!(ramp_down.poll(at(29)), [load(0, 100), load(1, 3)]);
        assert_eq!(ramp_down.poll(S(50) + RAMPS_DOWN), [load(0, 0), load(1, 0), Order::STOP]);
        assert_eq!(ramp_down.poll(S(99)), []);
    }

    #[test]
    fn an_agent_that_stood_still_ends_at_once() {
        let mut ramp_down = RampDown::new(&[load(0, 10)], S(1));
        assert_eq!(ramp_down.poll(S(20)), [Order::DRAIN, load(0, 0), Order::STOP]);
    }
}
