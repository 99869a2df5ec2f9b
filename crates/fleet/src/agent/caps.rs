//! The caps of an agent on connections and rates, which runs of a fleet and the clients of its control API share.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
};

use plan::Plan;
use units::{Count, Rate};

use crate::{
    error::Error,
    rates::{busiest, dial_rate, request_rate, totals},
};

/// Rates are summed in integer millionths per second, so that what is taken is given back exactly.
const MILLIONTHS: f64 = 1e6;

/// The caps of an agent, and what is used of them. Clones share the usage.
#[derive(Clone, Debug, Default)]
pub struct Caps {
    connections: Option<u64>,
    rate: Option<Rate>,
    used: Arc<Mutex<Used>>,
}

/// Total usage of the agent.
#[derive(Debug, Default)]
struct Used {
    connections: u64,
    /// Dials or requests of all uses together, whichever are more, in millionths per second.
    sends: u64,
}

/// Connections and their rate that count against the caps until this is dropped.
#[derive(Debug)]
pub struct Held {
    all: Arc<Mutex<Used>>,
    connections: u64,
    sends: u64,
}

/// What the user of an agent does not allow, and the flag that would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidden(pub(super) Beyond);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beyond {
    /// Not in the allow list.
    Target(SocketAddr),
    /// More connections than a cap of `most` allows beside those in use.
    Connections { asked: u64, held: u64, most: u64 },
    /// More dials or requests per second than a cap of `most` allows beside those in use, in millionths per second.
    Rate { what: String, rate: Rate, used: u64, most: Rate },
    /// Dials or requests without a limited rate, where `most` is left of a cap.
    Unlimited { what: String, fix: String, most: Rate },
}

impl fmt::Display for Forbidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Beyond::Target(to) => write!(f, "{to} is not allowed here; start the agent with --allow {to}"),
            Beyond::Connections { asked, held, most } => {
                let (needed, asked, held) = (held.saturating_add(*asked), Count(*asked), Count(*held));
                let are = asked.one_or("is", "are");
                write!(f, "{} {are} more than allowed here ({}", asked.of("connection"), Count(*most))?;
                if held.0 > 0 {
                    write!(f, ", of which {held} {} held", held.one_or("is", "are"))?;
                }
                write!(f, "); start the agent with --max-connections {needed}")
            }
            Beyond::Rate { what, rate, used, most } => {
                let free = left(*most, *used).down_to_per_s();
                write!(f, "{what}: {rate} is more than the {free} allowed here")?;
                let used = *used as f64 / MILLIONTHS;
                if used > 0.0 {
                    let in_use = Rate::from_per_s_f64(used).up_to_per_s();
                    write!(f, " ({most}, of which {in_use} is in use)")?;
                }
                let needed = Rate::from_per_s_f64(rate.per_s_f64() + used).up_to_per_s();
                write!(f, "; start the agent with --max-rate {needed}")
            }
            Beyond::Unlimited { what, fix, most } => write!(
                f,
                "{what}, and at most {most} are allowed here; {fix}, or start the agent without --max-rate"
            ),
        }
    }
}

impl std::error::Error for Forbidden {}

impl From<Forbidden> for Error {
    fn from(forbidden: Forbidden) -> Error {
        Error::refused(forbidden)
    }
}

impl Caps {
    /// Limits the number of concurrent connections, and the dials and the requests per second; `None`: no limit.
    pub fn new(connections: Option<u64>, rate: Option<Rate>) -> Caps {
        Caps { connections, rate, used: Arc::default() }
    }

    /// The cap on dials and on requests per second.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The unused part of the cap on rates.
    pub fn free_rate(&self) -> Option<Rate> {
        self.rate.map(|most| left(most, self.used().sends))
    }

    /// The cap on concurrent connections.
    pub fn connections(&self) -> Option<u64> {
        self.connections
    }

    /// The unused part of the cap on connections.
    pub(super) fn free(&self) -> Option<u64> {
        self.connections.map(|most| most.saturating_sub(self.used().connections))
    }

    /// Takes a part of a plan ([`Plan::sliced`]). `together`: this part and the agent's other parts of the plan, which already hold `has`
    /// of the rate.
    ///
    /// # Errors
    /// A cap is exceeded; contains the number and the flag that raises it.
    pub(super) fn take(&self, part: &Plan, together: &Plan, has: u64) -> Result<Held, Forbidden> {
        let mut used = self.used();
        self.check_rates(together, used.sends.saturating_sub(has))?;
        let sends = self.rate.map_or(0, |_| millionths(busiest(together)).saturating_sub(has));
        self.add(&mut used, part.places().into(), sends)
    }

    /// Takes connections of clients that together send pings at this rate.
    ///
    /// # Errors
    /// A cap is exceeded; contains the number and the flag that raises it.
    pub fn hold(&self, connections: u64, pings: Rate) -> Result<Held, Forbidden> {
        let mut used = self.used();
        self.check_beside("ping", pings, used.sends)?;
        self.add(&mut used, connections, millionths(pings.per_s_f64()))
    }

    fn add(&self, used: &mut Used, connections: u64, sends: u64) -> Result<Held, Forbidden> {
        let (most, held) = (self.connections.unwrap_or(u64::MAX), used.connections);
        let Some(sum) = held.checked_add(connections).filter(|sum| *sum <= most) else {
            return Err(Forbidden(Beyond::Connections { asked: connections, held, most }));
        };
        (used.connections, used.sends) = (sum, used.sends.saturating_add(sends));
        Ok(Held { all: self.used.clone(), connections, sends })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        lock(&self.used)
    }

    /// Checks an additional rate of dials or requests against the unused part of the cap.
    ///
    /// # Errors
    /// The cap is exceeded; contains the number and the flag that raises it.
    pub fn check_rate(&self, what: &str, rate: Rate) -> Result<(), Forbidden> {
        self.check_beside(what, rate, self.used().sends)
    }

    /// Like `check_rate`, beside others that use this much, in millionths per second.
    fn check_beside(&self, what: &str, rate: Rate, used: u64) -> Result<(), Forbidden> {
        match self.rate {
            Some(most) if rate.per_s_f64() > left(most, used).per_s_f64() => {
                Err(Forbidden(Beyond::Rate { what: what.to_owned(), rate, used, most }))
            }
            _ => Ok(()),
        }
    }

    /// Checks the dials and the requests of all of an agent's parts of a plan together, beside others that use this much, in millionths
    /// per second.
    fn check_rates(&self, plan: &Plan, others: u64) -> Result<(), Forbidden> {
        let Some(most) = self.rate.map(|most| left(most, others).down_to_per_s()) else {
            return Ok(());
        };
        if plan.stages.iter().any(|stage| dial_rate(plan, stage).is_none()) {
            let (what, fix) = ("an adaptive ramp has no rate".to_owned(), format!("use --ramp {most}"));
            return Err(Forbidden(Beyond::Unlimited { what, fix, most }));
        }
        if let Some(population) = plan.populations.iter().find(|all| request_rate(all).is_none()) {
            let what = format!("{}: a closed loop has no rate of requests", population.name);
            let fix = format!("use --rate {most}, --think or --ping");
            return Err(Forbidden(Beyond::Unlimited { what, fix, most }));
        }
        totals(plan).iter().try_for_each(|(what, rate)| self.check_beside(what, *rate, others))
    }
}

/// What others leave of a cap; without others, the exact cap.
fn left(most: Rate, others: u64) -> Rate {
    if others == 0 { most } else { Rate::from_per_s_f64(most.per_s_f64() - others as f64 / MILLIONTHS) }
}

fn millionths(per_s: f64) -> u64 {
    (per_s * MILLIONTHS).ceil() as u64
}

fn lock(used: &Mutex<Used>) -> MutexGuard<'_, Used> {
    used.lock().expect("nothing panics while it has this")
}

impl Held {
    /// The rate that it uses, in millionths per second.
    pub(super) fn sends(&self) -> u64 {
        self.sends
    }

    /// Separates some of the connections with their part of the rate, to be given back independently.
    ///
    /// # Panics
    /// If it has fewer connections.
    #[must_use]
    pub fn split(&mut self, connections: u64) -> Held {
        let all = self.connections;
        self.connections = all.checked_sub(connections).expect("what is taken out was taken");
        let sends = u128::from(self.sends) * u128::from(connections) / u128::from(all.max(1));
        let sends = sends as u64;
        self.sends -= sends;
        Held { all: self.all.clone(), connections, sends }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut used = lock(&self.all);
        used.connections -= self.connections;
        used.sends -= self.sends;
    }
}

#[cfg(test)]
mod tests {
    use plan::{Environment, Flags, flag};

    use super::*;

    /// The plan of these arguments, `name value`.
    fn plan(args: &[(&plan::Flag, &str)]) -> Plan {
        let flags = Flags::new("http://127.0.0.1:80/");
        let flags = args.iter().fold(flags, |flags, (flag, value)| flags.with(flag, value));
        let resolve = |_: &str| unreachable!("the target is an address");
        plan::from_flags(&flags, &Environment { cores: 1, seed: 1, resolve: &resolve }).unwrap()
    }

    fn check(caps: &Caps, args: &[(&plan::Flag, &str)], expected: Result<(), &str>) {
        let plan = plan(args);
        let taken = caps.take(&plan, &plan, 0).map(drop).map_err(|why| why.to_string());
        assert_eq!(
            taken,
            expected.map_err(str::to_owned),
            "{:?}",
            args.iter().map(|(_, v)| v).collect::<Vec<_>>()
        );
    }

    #[test]
    fn connections_of_all_together_stay_below_the_cap() {
        let caps = Caps::new(Some(1_000), None);
        check(&caps, &[(&flag::CONNECTIONS, "1000")], Ok(()));
        let why = "1,001 connections are more than allowed here (1,000); start the agent with --max-connections 1001";
        check(&caps, &[(&flag::CONNECTIONS, "1001")], Err(why));
        let none = Rate::default();
        let mut clients = caps.hold(300, none).unwrap();
        let why = "701 connections are more than allowed here (1,000, of which 300 are held); start the agent with \
                   --max-connections 1001";
        check(&caps, &[(&flag::CONNECTIONS, "701")], Err(why));
        drop(clients.split(100));
        let own = plan(&[(&flag::CONNECTIONS, "800")]);
        let run = caps.take(&own, &own, 0).unwrap();
        assert!(caps.hold(1, none).is_err());
        drop(run);
        drop(clients);
        assert_eq!(caps.used().connections, 0);
        check(&Caps::default(), &[(&flag::CONNECTIONS, "4m")], Ok(()));
    }

    #[test]
    fn rates_stay_below_the_cap_and_what_has_none_is_refused() {
        let caps = Caps::new(None, Some(Rate::per_s(100)));
        let (ramp, rate, think) = (&flag::RAMP, &flag::RATE, &flag::THINK);
        let calm = (think, "10s..20s");
        check(&caps, &[(ramp, "100/s"), calm], Ok(()));
        check(
            &caps,
            &[(ramp, "101/s"), calm],
            Err("ramp: 101/s is more than the 100/s allowed here; start the agent with --max-rate 101/s"),
        );
        check(&caps, &[(ramp, "1s"), calm], Ok(()));
        check(
            &caps,
            &[(ramp, "100ms"), calm],
            Err("ramp: 500/s is more than the 100/s allowed here; start the agent with --max-rate 500/s"),
        );
        let fix = "or start the agent without --max-rate";
        let adaptive = format!(
            "an adaptive ramp has no rate, and at most 100/s are allowed here; use --ramp 100/s, {fix}"
        );
        check(&caps, &[calm], Err(&adaptive));
        let closed = format!(
            "main: a closed loop has no rate of requests, and at most 100/s are allowed here; use --rate 100/s, --think \
             or --ping, {fix}"
        );
        check(&caps, &[(ramp, "100/s")], Err(&closed));
        check(&caps, &[(ramp, "100/s"), (rate, "100/s")], Ok(()));
        check(
            &caps,
            &[(ramp, "100/s"), (rate, "200/s")],
            Err("main: 200/s is more than the 100/s allowed here; start the agent with --max-rate 200/s"),
        );
        // 50 connections, each at most twice per second.
        check(&caps, &[(ramp, "100/s"), (think, "500ms..9s")], Ok(()));
        check(
            &caps,
            &[(ramp, "100/s"), (think, "250ms..9s")],
            Err("main: 200/s is more than the 100/s allowed here; start the agent with --max-rate 200/s"),
        );
        check(&caps, &[(&flag::ARRIVE, "100/s"), (&flag::TOTAL, "10")], Ok(()));
        check(
            &caps,
            &[(ramp, "100/s"), calm, (&flag::PROBE, "200/s")],
            Err(
                "ramp + probe: 300/s is more than the 100/s allowed here; start the agent with --max-rate 300/s",
            ),
        );
        check(&Caps::default(), &[], Ok(()));
    }

    #[test]
    fn all_of_a_plan_together_stays_below_the_cap() {
        let caps = Caps::new(None, Some(Rate::per_s(100)));
        let (ramp, rate, probe) = (&flag::RAMP, &flag::RATE, &flag::PROBE);
        check(&caps, &[(ramp, "95/s"), (rate, "95/s"), (probe, "5/s")], Ok(()));
        check(
            &caps,
            &[(ramp, "90/s"), (rate, "96/s"), (probe, "5/s")],
            Err(
                "main + probe: 101/s is more than the 100/s allowed here; start the agent with --max-rate 101/s",
            ),
        );
        // Each arriving connection sends as many.
        let (arrive, calls) = ((&flag::ARRIVE, "25/s"), &flag::CALLS);
        check(&caps, &[arrive, (calls, "4"), (&flag::TOTAL, "9")], Ok(()));
        check(
            &caps,
            &[arrive, (calls, "5"), (&flag::TOTAL, "9")],
            Err("main: 125/s is more than the 100/s allowed here; start the agent with --max-rate 125/s"),
        );
        let two = |rate: &str, arrive: &str| {
            let text = format!(
                "target = \"http://127.0.0.1:80/\"\n\
                [[population]]\nname = \"users\"\nconnections = 10\nrate = \"{rate}\"\n\
                [[population]]\nname = \"guests\"\narrive = \"{arrive}\"\ntotal = 90\n\
                [[stage]]\nramp = \"10/s\"\nfor = \"1s\"\n"
            );
            let resolve = |_: &str| unreachable!("the target is an address");
            let open = |_: &str| unreachable!("it names no file");
            let around = Environment { cores: 1, seed: 1, resolve: &resolve };
            let plan = plan::scenario::read("load.toml", &text, &Flags::default(), &around, &open).unwrap();
            caps.take(&plan, &plan, 0)
                .map(|held| held.sends())
                .map_err(|why| why.to_string().replace(" is more", "|"))
        };
        let over = |refused: Result<u64, String>| refused.unwrap_err().split('|').next().unwrap().to_owned();
        assert_eq!(two("50/s", "50/s"), Ok(100_000_000));
        assert_eq!(over(two("60/s", "50/s")), "users + guests: 110/s");
        assert_eq!(over(two("1/s", "95/s")), "ramp + guests: 105/s");
    }

    #[test]
    fn what_is_left_of_a_rate_is_printed_per_second() {
        let caps = Caps::new(None, Some(Rate::per_s(100)));
        let clients = caps.hold(1, Rate::parse("10/m").unwrap()).unwrap();
        let (ramp, calm) = (&flag::RAMP, (&flag::THINK, "10s..20s"));
        let adaptive = "an adaptive ramp has no rate, and at most 99.833/s are allowed here; use --ramp 99.833/s, or \
                        start the agent without --max-rate";
        check(&caps, &[calm], Err(adaptive));
        check(&caps, &[(ramp, "99.833/s"), calm], Ok(()));
        let why = "ramp: 100/s is more than the 99.833/s allowed here (100/s, of which 10/m is in use); start the \
                   agent with --max-rate 100.167/s";
        check(&caps, &[(ramp, "100/s"), calm], Err(why));
        drop(clients);
    }

    #[test]
    fn runs_and_clients_share_the_rate() {
        let caps = Caps::new(None, Some(Rate::per_s(100)));
        let paced = |rate| plan(&[(&flag::RAMP, "1/s"), (&flag::RATE, rate)]);
        let free = || caps.free_rate().unwrap().to_string();
        let mut clients = caps.hold(60, Rate::per_s(30)).unwrap();
        assert_eq!(free(), "70/s");
        let args = [(&flag::RAMP, "1/s"), (&flag::RATE, "71/s")];
        let why = "main: 71/s is more than the 70/s allowed here (100/s, of which 30/s is in use); start the agent with \
                   --max-rate 101/s";
        check(&caps, &args, Err(why));
        let own = paced("50/s");
        let run = caps.take(&own, &own, 0).unwrap();
        assert_eq!((free().as_str(), run.sends()), ("20/s", 50_000_000));
        // Another part of the same run counts together with the existing one.
        let more = caps.take(&paced("10/s"), &paced("60/s"), run.sends()).unwrap();
        assert_eq!((free().as_str(), more.sends()), ("10/s", 10_000_000));
        assert!(caps.take(&paced("11/s"), &paced("71/s"), run.sends() + more.sends()).is_err());
        let why = "ping: 11/s is more than the 10/s allowed here (100/s, of which 90/s is in use); start the agent with \
                   --max-rate 101/s";
        assert_eq!(
            caps.hold(1, Rate::per_s(11)).map(drop).map_err(|why| why.to_string()),
            Err(why.to_owned())
        );
        assert!(caps.check_rate("rate", Rate::per_s(10)).is_ok());
        // Each client takes its share of the rate with it.
        drop(clients.split(20));
        assert_eq!(free(), "20/s");
        drop((run, more, clients));
        assert_eq!((free().as_str(), caps.used().sends), ("100/s", 0));
    }
}
