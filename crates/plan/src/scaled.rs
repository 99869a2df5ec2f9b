//! A plan made smaller.

use units::Rate;

use crate::{LoadKeys, Plan, Ramp, Share};

impl Plan {
    /// The same with this share of its connections, arrivals, totals and rates, of each at least one, and of the rates of
    /// its ramps, so that everything takes as long as it did. What each connection does, and the probe, stays as it is.
    ///
    /// # Panics
    /// The share is nothing.
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

/// This share of a rate; one a second where that is more, and there was more than that.
fn part(share: Share, rate: Rate) -> Rate {
    let least = rate.per_s_f64().min(1.0);
    let part = share.of_rate(rate);
    if part.per_s_f64() < least { Rate::from_per_s_f64(least) } else { part }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use crate::{Environment, Flags, Load, Plan, Ramp, Share, scenario};

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

    fn written(load: Load) -> String {
        match load {
            Load::Held { connections } => connections.to_string(),
            Load::Rate { connections, rate } => format!("{connections} at {rate}"),
            Load::Arrivals { rate, total: Some(total) } => format!("{rate}, {total}"),
            Load::Arrivals { rate, total } => format!("{rate}, {total:?}"),
        }
    }
}
