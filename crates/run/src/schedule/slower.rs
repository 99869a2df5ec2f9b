//! Rate limits on orders from a source that is not trusted, such as a compromised coordinator.

use engine::{Control, RateProfile};
use units::{Nanos, Rate};

use super::Order;

/// Which rate an order sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paced {
    /// Dials, of held connections or of arrivals.
    Dials,
    /// Requests, or arrivals, by a rate profile.
    Profile,
}

impl Order {
    /// Limits the rates of this order. `most` returns the maximum rate of a population, or of the probe (`None`), for the whole run; what
    /// was due before `since` is not made up for. `None` if no conductor gives such an order.
    pub fn no_faster(self, most: impl Fn(Option<u16>, Paced) -> Rate, since: Nanos) -> Option<Order> {
        let most_of = |population| most(population, Paced::Profile);
        Some(match self {
            Order::Load(nth, n, profile, from) => {
                let most = most(Some(nth), Paced::Dials);
                let profile = profile.map_or(RateProfile::Steady(most), |profile| slower(profile, most));
                Order::Load(nth, n, Some(profile), from.max(since))
            }
            Order::Population(nth, Control::RateProfile(profile, from)) => Order::Population(
                nth,
                Control::RateProfile(slower(profile, most_of(Some(nth))), from.max(since)),
            ),
            Order::Probe(Control::RateProfile(profile, from)) => {
                Order::Probe(Control::RateProfile(slower(profile, most_of(None)), from.max(since)))
            }
            Order::All(Control::Load { .. } | Control::RateProfile(..))
            | Order::Population(_, Control::Load { .. })
            | Order::Probe(Control::Load { .. }) => return None,
            other => other,
        })
    }
}

fn slower(profile: RateProfile, most: Rate) -> RateProfile {
    let slower = |rate: Rate| if rate.per_s_f64() > most.per_s_f64() { most } else { rate };
    match profile {
        RateProfile::Steady(rate) => RateProfile::Steady(slower(rate)),
        RateProfile::Slope { from, to, over } => {
            RateProfile::Slope { from: slower(from), to: slower(to), over }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Population 0 may dial at 10/s, others and the probe at 5/s; all may send at 5/s.
    fn check(order: Order, expected: Option<Order>) {
        let most = |of: Option<u16>, paced: Paced| {
            Rate::per_s(if of == Some(0) && paced == Paced::Dials { 10 } else { 5 })
        };
        assert_eq!(order.no_faster(most, Nanos::ZERO), expected, "{order:?}");
    }

    #[test]
    fn no_order_is_faster_than_allowed() {
        let at = Nanos::from_secs(1);
        let steady = |rate| RateProfile::Steady(Rate::per_s(rate));
        let slope = |from, to| RateProfile::Slope { from: Rate::per_s(from), to: Rate::per_s(to), over: at };
        let load = |nth, profile| Order::Load(nth, 99, profile, at);
        check(load(0, Some(steady(9))), Some(load(0, Some(steady(9)))));
        check(load(0, Some(steady(11))), Some(load(0, Some(steady(10)))));
        check(load(0, None), Some(load(0, Some(steady(10)))));
        check(load(1, Some(slope(1, 90))), Some(load(1, Some(slope(1, 5)))));
        let rate = |profile| Control::RateProfile(profile, at);
        check(Order::Population(1, rate(slope(90, 0))), Some(Order::Population(1, rate(slope(5, 0)))));
        check(Order::Population(0, rate(steady(9))), Some(Order::Population(0, rate(steady(5)))));
        check(Order::Probe(rate(steady(6))), Some(Order::Probe(rate(steady(5)))));
        // What was due long ago would be due all at once.
        let (most, now) = (|_: Option<u16>, _: Paced| Rate::per_s(5), Nanos::from_secs(9));
        let of = |from| Order::Load(0, 99, Some(steady(5)), from);
        assert_eq!(of(at).no_faster(most, now), Some(of(now)));
        assert_eq!(of(Nanos::from_secs(10)).no_faster(most, now), Some(of(Nanos::from_secs(10))));
        let shard = Control::Load { connections: 99, profile: None, from: at };
        for unknown in
            [Order::All(shard), Order::Population(0, shard), Order::Probe(shard), Order::All(rate(steady(1)))]
        {
            check(unknown, None);
        }
        for same in [
            Order::DRAIN,
            Order::STOP,
            Order::All(Control::Pause(true)),
            Order::Population(0, Control::Hold(at)),
        ] {
            check(same, Some(same));
        }
    }
}
