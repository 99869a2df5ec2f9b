//! The CPU demand of a plan beyond plain connections: number and rate of TLS handshakes and HTTP/2 requests.

use units::Rate;

use crate::{Plan, Population, Ramp, Stage};

/// TLS handshakes of the connections that a plan opens, without redials, which are not known in advance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Handshakes {
    /// Number for the maximum load: one per held connection.
    pub count: u64,
    /// Maximum per second, by ramp or rate of arrivals; `None` if limited only by the target.
    pub per_s: Option<f64>,
}

/// HTTP/2 requests of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Http2Requests {
    /// Concurrent requests per connection; the minimum of all populations.
    pub streams: u16,
    /// Maximum per second, if at a rate; `None` if limited by the target's responses or by think time.
    pub per_s: Option<f64>,
}

impl Plan {
    /// The requests of its HTTP/2 populations; `None` without one.
    pub fn http2_requests(&self) -> Option<Http2Requests> {
        let own = || (0..).zip(&self.populations).filter(|(_, own)| own.streams.is_some());
        let streams = own().filter_map(|(_, own)| own.streams).min()?;
        let of = |(nth, own): (u16, &Population)| {
            let share = self.peak(nth).millionths() as f64 / 1e6;
            own.load.rate().map(|rate| rate.per_s_f64() * share)
        };
        let per_s = own().filter_map(of).fold(0.0, |sum, rate| sum + rate);
        Some(Http2Requests { streams, per_s: (per_s > 0.0).then_some(per_s) })
    }

    /// The handshakes of its populations with TLS; `None` without one.
    pub fn handshakes(&self) -> Option<Handshakes> {
        let secured = || (0..).zip(&self.populations).filter(|(_, own)| own.target.secure);
        secured().next()?;
        let count = secured().map(|(nth, own)| self.peak(nth).of(own.load.held().into())).sum();
        let per_s = self.stages.iter().map(|stage| self.handshakes_per_s(stage)).fold(0.0, f64::max);
        Some(Handshakes { count, per_s: (per_s > 0.0).then_some(per_s) })
    }

    fn handshakes_per_s(&self, stage: &Stage) -> f64 {
        let own = || stage.of.iter().map(|nth| &self.populations[usize::from(*nth)]);
        let held = |is_counted: fn(bool) -> bool| -> u64 {
            let held =
                own().filter(|one| is_counted(one.target.secure)).map(|one| u64::from(one.load.held()));
            held.map(|held| stage.to.of(held)).sum()
        };
        let (secured, all) = (held(|secure| secure), held(|_| true).max(1));
        let by_ramp = match stage.ramp {
            Ramp::Adaptive => 0.0,
            Ramp::Rate(rate) => rate.per_s_f64() * secured as f64 / all as f64,
            Ramp::Within(time) => secured as f64 / time.secs_f64().max(1.0),
        };
        let arrivals = own().filter(|one| one.target.secure).filter_map(|one| one.load.arrival_rate());
        let arrivals: f64 = arrivals.map(|rate: Rate| rate.per_s_f64()).sum();
        by_ramp + arrivals * stage.to.millionths() as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use crate::{Environment, Flags, scenario};

    fn check(text: &str, expected: Option<(u64, Option<f64>)>) {
        let resolve = |_: &str| unreachable!("targets are addresses");
        let around = Environment { cores: 1, seed: 1, resolve: &resolve };
        let open = |_: &str| Err("no file is named".to_owned());
        let plan = scenario::read("load.toml", text, &Flags::default(), &around, &open).unwrap();
        let found = plan.handshakes().map(|found| (found.count, found.per_s.map(f64::round)));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn they_are_those_of_secured_connections() {
        let one = |target: &str, lines: &str| format!("target = \"{target}\"\nduration = \"1s\"\n{lines}\n");
        check(&one("http://127.0.0.1:1/", "connections = 900\nramp = \"300/s\""), None);
        check(&one("https://127.0.0.1:1/", "connections = 900"), Some((900, None)));
        check(&one("wss://127.0.0.1:1/", "connections = 900\nramp = \"300/s\""), Some((900, Some(300.0))));
        check(&one("tls://127.0.0.1:1", "connections = 900\nramp = \"3s\""), Some((900, Some(300.0))));
        // All within less than a second: counted as one second.
        check(&one("tls://127.0.0.1:1", "connections = 900\nramp = \"10ms\""), Some((900, Some(900.0))));
        check(&one("https://127.0.0.1:1/", "arrive = \"70/s\""), Some((0, Some(70.0))));
        let two = "duration = \"1s\"\nramp = \"400/s\"\n[[population]]\nname = \"a\"\ntarget = \"https://127.0.0.1:1/\"\n\
            connections = 100\n[[population]]\nname = \"b\"\ntarget = \"http://127.0.0.1:1/\"\nconnections = 300\n";
        check(two, Some((100, Some(100.0))));
    }
}
