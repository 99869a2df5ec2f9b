//! `--fleet k8s`: derives what the launched agents need from the plan and the flags, and launches them for the duration of a run.

use fleet::{Kubernetes, Link, Needs};
use plan::{Flags, Plan, Ramp, Target, flag};
use run::Interrupt;
use units::Nanos;

use crate::{Failure, job, mistakes::Mistakes};

/// Maximum number of ports or addresses that an agent's allow list names individually.
const NAMED: usize = 64;

/// Parses `--fleet` and `--agents`; `None` if no cluster is requested.
fn asked(flags: &Flags) -> Result<Option<(Kubernetes, Option<u32>)>, Failure> {
    let Some(text) = flags.get(&flag::FLEET).filter(|text| Kubernetes::is_meant(text)) else {
        return Ok(None);
    };
    let mut mistakes = Mistakes::default();
    let asked = Kubernetes::parse(text).map_err(|all| {
        all.iter().for_each(|mistake| mistakes.add(format_args!("--fleet: {mistake}")));
    });
    let agents = job::agents(flags, &mut mistakes);
    if asked.is_ok() && !cfg!(feature = "k8s") {
        let fix = "use the packaged release, or build with cargo build --release --features k8s";
        mistakes.add(format_args!("--fleet: this build of throng has no Kubernetes client; {fix}"));
    }
    mistakes.end(()).map(|()| Some((asked.expect("it is no mistake"), agents)))
}

/// The requirements of a plan for its agents.
fn needs(plan: &Plan, agents: Option<u32>) -> Needs {
    let probes = plan.probe.iter().flat_map(|probe| &probe.populations);
    let mut targets = Vec::new();
    for population in plan.populations.iter().chain(probes) {
        for target in allowed(&population.target) {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    Needs { connections: u64::from(plan.places()), agents, targets, lasts: lasts(plan) }
}

/// The duration of all stages; `None` if it is not known. Adaptive ramps, whose duration is never known, count as 0.
fn lasts(plan: &Plan) -> Option<Nanos> {
    let ramp = |ramp: Ramp| match ramp {
        Ramp::Adaptive => Nanos::ZERO,
        Ramp::Rate(rate) => rate.time_of(u64::from(plan.places())),
        Ramp::Within(time) => time,
    };
    let ramps = plan.stages.iter().map(|stage| ramp(stage.ramp)).fold(Nanos::ZERO, |sum, time| sum + time);
    plan.hold().map(|hold| hold + ramps + plan.longest_timeout())
}

/// The entries of an agent's allow list for a target. A host name is passed as typed, because the agent resolves it.
fn allowed(target: &Target) -> Vec<String> {
    let mut ports: Vec<u16> = target.destinations.iter().map(|to| to.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    if target.is_named() {
        return match ports.len() {
            ..=NAMED => ports.iter().map(|port| format!("{}:{port}", target.host)).collect(),
            _ => vec![target.host.clone()],
        };
    }
    if target.destinations.len() <= NAMED {
        return target.destinations.iter().map(ToString::to_string).collect();
    }
    let mut hosts: Vec<String> = target.destinations.iter().map(|to| to.ip().to_string()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

#[cfg(feature = "k8s")]
mod launched {
    use fleet::{Error, Launched, Waiting};

    use super::*;
    use crate::message;

    /// The agents of this run in a Kubernetes cluster; they are removed when this is dropped.
    pub(crate) struct Cluster<'a> {
        launched: Launched,
        interrupt: &'a Interrupt,
    }

    impl Cluster<'_> {
        /// Launches the agents that `--fleet k8s` requests; `None` if it does not.
        pub(crate) fn launch<'a>(
            plan: &Plan,
            flags: &Flags,
            interrupt: &'a Interrupt,
        ) -> Result<Option<Cluster<'a>>, Failure> {
            let Some((asked, agents)) = asked(flags)? else { return Ok(None) };
            let mut waiting = Waiting { interrupt, say: &mut say };
            let needs = needs(plan, agents);
            let launched = Launched::new(&asked, &needs, &mut waiting);
            Ok(Some(Cluster { launched: launched.map_err(|why| failed(&why, interrupt))?, interrupt }))
        }

        /// The URL of the NATS server that the agents join.
        pub(crate) fn url(&self) -> &str {
            self.launched.url()
        }

        /// The number of launched agents.
        pub(crate) fn agents(&self) -> u32 {
            self.launched.agents()
        }

        /// Waits until all agents have joined.
        pub(crate) fn wait_for_agents(&self, link: &Link) -> Result<(), Failure> {
            let mut waiting = Waiting { interrupt: self.interrupt, say: &mut say };
            let waited = self.launched.wait_for_agents(link, &mut waiting);
            waited.map_err(|why| failed(&why, self.interrupt))
        }
    }

    fn failed(why: &Error, interrupt: &Interrupt) -> Failure {
        Failure::waiting(format!("--fleet: {why}"), interrupt)
    }

    fn say(line: &str) {
        message(&format!("k8s: {line}"));
    }
}

#[cfg(not(feature = "k8s"))]
mod launched {
    use super::*;

    /// Not supported in this build.
    pub(crate) enum Cluster {}

    impl Cluster {
        /// Refuses `--fleet k8s`; `None` without it.
        pub(crate) fn launch(plan: &Plan, flags: &Flags, _: &Interrupt) -> Result<Option<Cluster>, Failure> {
            asked(flags).map(|asked| asked.map(|(_, agents)| needs(plan, agents)).and(None))
        }

        pub(crate) fn url(&self) -> &str {
            match *self {}
        }

        pub(crate) fn agents(&self) -> u32 {
            match *self {}
        }

        pub(crate) fn wait_for_agents(&self, _: &Link) -> Result<(), Failure> {
            match *self {}
        }
    }
}

pub(crate) use launched::Cluster;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(target: &str, more: &[(&plan::Flag, &str)]) -> Plan {
        let mut flags = Flags::new(target);
        for (flag, value) in more {
            flags = flags.with(flag, value);
        }
        crate::plans::plan_unseen(&flags).map_err(|failure| failure.lines).unwrap()
    }

    #[test]
    fn agents_may_load_what_the_plan_names_and_nothing_else() {
        let targets = |target| needs(&plan(target, &[]), None).targets;
        assert_eq!(targets("http://localhost:81/"), ["localhost:81"]);
        assert_eq!(
            targets("tcp://127.0.0.1:{7000..7002}"),
            ["127.0.0.1:7000", "127.0.0.1:7001", "127.0.0.1:7002"]
        );
        assert_eq!(targets("tcp://[::1]:7000"), ["[::1]:7000"]);
        assert_eq!(targets("tcp://127.0.0.{1..2}:{7000..7099}"), ["127.0.0.1", "127.0.0.2"]);
    }

    #[test]
    fn a_run_lasts_as_long_as_its_stages() {
        let lasts = |more: &[(&plan::Flag, &str)]| lasts(&plan("tcp://127.0.0.1:7000", more));
        let timeout = plan("tcp://127.0.0.1:7000", &[]).longest_timeout();
        let ten = [(&flag::DURATION, "10s"), (&flag::CONNECTIONS, "1000"), (&flag::RAMP, "100/s")];
        assert_eq!(lasts(&ten), Some(Nanos::from_secs(20) + timeout));
        assert_eq!(lasts(&[(&flag::DURATION, "forever")]), None);
    }
}
