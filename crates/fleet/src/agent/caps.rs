//! How much an agent may load: for runs of a fleet and for the clients of its control API together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use plan::Plan;
use units::{Count, Rate};

use crate::rates::{dial_rate, request_rate};

/// The caps of an agent, and what is held against them. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Caps {
    connections: Option<u64>,
    rate: Option<Rate>,
    held: Arc<AtomicU64>,
}

/// Connections that count against the cap until this is dropped.
#[derive(Debug)]
pub struct Held {
    all: Arc<AtomicU64>,
    connections: u64,
}

impl Caps {
    /// At most this many connections at once, and this many dials or requests a second each; none: no limit.
    pub fn new(connections: Option<u64>, rate: Option<Rate>) -> Caps {
        Caps { connections, rate, held: Arc::default() }
    }

    /// The most dials a second.
    pub fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// The most connections at once.
    pub fn connections(&self) -> Option<u64> {
        self.connections
    }

    /// Connections that may be held beside those that are.
    pub(super) fn free(&self) -> Option<u64> {
        self.connections.map(|most| most.saturating_sub(self.held.load(Relaxed)))
    }

    /// Takes the connections of a plan, of which only this agent's part counts: [`Plan::sliced`].
    ///
    /// # Errors
    /// The plan is over a cap; with the number and the flag that raises it.
    pub fn take(&self, plan: &Plan) -> Result<Held, String> {
        self.check_rates(plan)?;
        self.hold(plan.places().into())
    }

    /// Takes connections.
    ///
    /// # Errors
    /// With those that are held they are more than allowed; with the number and the flag that raises it.
    pub fn hold(&self, connections: u64) -> Result<Held, String> {
        let most = self.connections.unwrap_or(u64::MAX);
        let sum = |held: u64| held.checked_add(connections).filter(|sum| *sum <= most);
        let held = self.held.fetch_update(Relaxed, Relaxed, sum);
        held.map(|_| Held { all: self.held.clone(), connections }).map_err(|held| {
            let are = Count(held).one_or("is", "are");
            let beside =
                if held > 0 { format!(", of which {} {are} held", Count(held)) } else { String::new() };
            let (asked, most) = (Count(connections).of("connection"), Count(most));
            let are = Count(connections).one_or("is", "are");
            let needed = held.saturating_add(connections);
            format!(
                "{asked} {are} more than allowed here ({most}{beside}); start the agent with \
                 --max-connections {needed}"
            )
        })
    }

    /// A rate at which something is to be dialled or sent.
    ///
    /// # Errors
    /// It is over the cap; with the number and the flag that raises it.
    pub fn check_rate(&self, what: &str, rate: Rate) -> Result<(), String> {
        match self.rate {
            Some(most) if rate.per_s_f64() > most.per_s_f64() => {
                let flag = format!("start the agent with --max-rate {rate}");
                Err(format!("{what}: {rate} is more than the {most} allowed here; {flag}"))
            }
            _ => Ok(()),
        }
    }

    /// Checks the rates of all that an agent has of a plan.
    ///
    /// # Errors
    /// One is over the cap; with the flag that raises it.
    pub(super) fn check_rates(&self, plan: &Plan) -> Result<(), String> {
        let Some(most) = self.rate else { return Ok(()) };
        let unlimited = |what: &str, fix: &str| {
            Err(format!(
                "{what}, and at most {most} are allowed here; {fix}, or start the agent without --max-rate"
            ))
        };
        for stage in &plan.stages {
            match dial_rate(plan, stage) {
                Some(rate) => self.check_rate("ramp", rate)?,
                None => return unlimited("an adaptive ramp has no rate", &format!("use --ramp {most}")),
            }
        }
        for population in &plan.populations {
            let name = &population.name;
            match request_rate(population) {
                Some(rate) => self.check_rate(name, rate)?,
                None => {
                    let what = format!("{name}: a closed loop has no rate of requests");
                    return unlimited(&what, &format!("use --rate {most}, --think or --ping"));
                }
            }
        }
        plan.probe.as_ref().map_or(Ok(()), |probe| self.check_rate("probe", probe.rate))
    }
}

impl Held {
    /// Takes some of them out, to be given back on their own.
    ///
    /// # Panics
    /// They are more than there are.
    #[must_use]
    pub fn split(&mut self, connections: u64) -> Held {
        self.connections = self.connections.checked_sub(connections).expect("what is taken out was taken");
        Held { all: self.all.clone(), connections }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.connections, Relaxed);
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
        let taken = caps.take(&plan(args)).map(drop);
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
        let mut clients = caps.hold(300).unwrap();
        let why = "701 connections are more than allowed here (1,000, of which 300 are held); start the agent with \
                   --max-connections 1001";
        check(&caps, &[(&flag::CONNECTIONS, "701")], Err(why));
        drop(clients.split(100));
        let run = caps.take(&plan(&[(&flag::CONNECTIONS, "800")])).unwrap();
        assert!(caps.hold(1).is_err());
        drop(run);
        drop(clients);
        assert_eq!(caps.held.load(Relaxed), 0);
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
        // 50 connections, each twice a second at the most.
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
            Err("probe: 200/s is more than the 100/s allowed here; start the agent with --max-rate 200/s"),
        );
        check(&Caps::default(), &[], Ok(()));
    }
}
