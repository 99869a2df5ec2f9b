//! Smaller versions of a plan: scaled down for a search, or sliced for one machine of a fleet.

use units::Rate;

use crate::{LoadKeys, Plan, Ramp, Share, Slice};

impl Plan {
    /// The plan with this share of its connections, arrivals, totals and rates, each at least one, and of the rates of its ramps, so that
    /// all phases keep their duration. The work of a connection and the probe stay the same.
    ///
    /// # Panics
    /// The share is zero.
    #[must_use]
    pub fn scaled(&self, share: Share) -> Plan {
        assert!(share > Share::NONE, "nothing is no load");
        let number = |n: u32| share.of(n.into()) as u32;
        let of_rate = |whole: Option<Rate>| whole.map(|whole| part(share, whole));
        let mut plan = self.clone();
        for population in &mut plan.populations {
            let LoadKeys { connections, rate, arrive, total } = population.load.keys();
            let scaled = LoadKeys {
                connections: connections.map(number),
                rate: of_rate(rate),
                arrive: of_rate(arrive),
                total: total.map(number),
            };
            population.load = scaled.load();
        }
        for stage in &mut plan.stages {
            if let Ramp::Rate(rate) = &mut stage.ramp {
                *rate = part(share, *rate);
            }
        }
        plan
    }
}

impl Plan {
    /// The part of one machine: these slices of the populations, and the probe if `has_probe`.
    #[must_use]
    pub fn sliced(&self, slices: &[Slice], has_probe: bool) -> Plan {
        let mut plan = self.clone();
        for (population, &slice) in plan.populations.iter_mut().zip(slices) {
            let LoadKeys { connections, rate, arrive, total } = population.load.keys();
            let of_rate = |whole: Rate| rounded_down(whole.per_s_f64() * slice.share());
            let sliced = LoadKeys {
                connections: connections.map(|n| slice.of(n)),
                rate: rate.map(of_rate),
                arrive: arrive.map(of_rate),
                total: total.map(|n| slice.of(n)),
            };
            population.load = sliced.load();
        }
        let held = |plan: &Plan, of: &[u16]| -> u64 {
            of.iter().map(|nth| u64::from(plan.populations[usize::from(*nth)].load.held())).sum()
        };
        for nth in 0..plan.stages.len() {
            let (own, all) = (held(&plan, &self.stages[nth].of), held(self, &self.stages[nth].of));
            if let Ramp::Rate(rate) = &mut plan.stages[nth].ramp
                && all > 0
            {
                *rate = rounded_down(rate.per_s_f64() * own as f64 / all as f64);
            }
        }
        plan.probe = plan.probe.filter(|_| has_probe);
        plan
    }
}

/// Rounds down to a thousandth per minute: a machine must not do more than its part.
fn rounded_down(per_s: f64) -> Rate {
    const UNITS: f64 = 60_000.0;
    Rate::from_per_s_f64((per_s * UNITS * (1.0 + 1e-12)).floor() / UNITS)
}

/// This share of a rate, but at least one per second, or the whole rate if that is less.
fn part(share: Share, rate: Rate) -> Rate {
    let least = rate.per_s_f64().min(1.0);
    let part = share.of_rate(rate);
    if part.per_s_f64() < least { Rate::from_per_s_f64(least) } else { part }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use crate::{Environment, Flags, Load, Plan, Ramp, Share, Slice, scenario};

    fn plan() -> Plan {
        let text = r#"
            target = "http://127.0.0.1:80/"
            probe = "10/s"
            [[stage]]
            ramp = "4k/s"
            [[stage]]
            to = "50%"
            ramp = "10s"
            [[population]]
            name = "held-users"
            connections = "20k"
            [[population]]
            name = "few"
            connections = 3
            rate = "30/s"
            [[population]]
            name = "guests"
            arrive = "6k/s"
            total = "40k"
            [[population]]
            name = "rare"
            arrive = "6/m"
        "#;
        let resolve = |_: &str| unreachable!("the target is an address");
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| unreachable!("it names no file");
        scenario::read("load.toml", text, &Flags::default(), &around, &open).unwrap()
    }

    #[test]
    fn everything_is_less_and_takes_as_long() {
        let plan = plan();
        let small = plan.scaled(Share::parse("1%").unwrap());
        let loads: Vec<String> = small.populations.iter().map(|p| written(p.load)).collect();
        assert_eq!(loads, ["200", "1 at 1/s", "60/s, 400", "0.1/s, None"]);
        let ramps: Vec<Ramp> = small.stages.iter().map(|stage| stage.ramp).collect();
        assert_eq!(ramps, [Ramp::Rate(units::Rate::per_s(40)), Ramp::Within(Nanos::from_secs(10))]);
        let stages = plan.stages.iter().zip(&small.stages);
        assert!(stages.into_iter().all(|(was, is)| (was.to, was.hold) == (is.to, is.hold)));
        let activities =
            |plan: &Plan| plan.populations.iter().map(|p| p.activity.clone()).collect::<Vec<_>>();
        assert_eq!((activities(&small), &small.probe), (activities(&plan), &plan.probe));
        assert_eq!(plan.scaled(Share::ALL), plan);
    }

    #[test]
    fn slices_of_a_plan_sum_to_it() {
        let plan = plan();
        let slices = |from: [u32; 4], width: [u32; 4]| -> Vec<Slice> {
            let of = [20_000, 3, 40_000, 10];
            (0..4).map(|nth| Slice { from: from[nth], width: width[nth], of: of[nth] }).collect()
        };
        let one = plan.sliced(&slices([0; 4], [5_000, 0, 10_000, 1]), true);
        let other = plan.sliced(&slices([5_000, 0, 10_000, 1], [15_000, 3, 30_000, 9]), false);
        let loads = |plan: &Plan| plan.populations.iter().map(|p| written(p.load)).collect::<Vec<_>>();
        assert_eq!(loads(&one), ["5000", "0 at 0/s", "1500/s, 10000", "0.01/s, None"]);
        assert_eq!(loads(&other), ["15000", "3 at 30/s", "4500/s, 30000", "0.09/s, None"]);
        assert!(one.probe.is_some() && other.probe.is_none());
        // A ramp's rate is divided in proportion to the connections that it opens.
        let ramps = [&one, &other].map(|plan| match plan.stages[0].ramp {
            Ramp::Rate(rate) => rate.per_s_f64().round(),
            _ => panic!("it has a rate"),
        });
        assert_eq!(ramps, [1_000.0, 3_000.0]);
        let whole = plan.sliced(&[Slice::WHOLE; 4], true);
        assert_eq!(whole, plan);
    }

    fn written(load: Load) -> String {
        match load {
            Load::Held { connections } => connections.to_string(),
            Load::Rate { connections, rate } => format!("{connections} at {rate}"),
            Load::Arrivals { rate, total: Some(total) } => format!("{rate}, {total}"),
            Load::Arrivals { rate, total } => format!("{rate}, {total:?}"),
        }
    }
}
