//! The ways in which a metric's series are read from ticks and samples; they determine the labels of the series.

use samples::{
    AgentTicks, Destination, HostSample, JvmSample, Latency, Probe, ProcessSample, TargetSample, Tick,
};

use super::{Moment, POPULATION, Series, Value};

pub(super) type Labels = &'static [&'static str];

pub(super) const AT: Labels = &["destination"];
pub(super) const AGENT: Labels = &["agent"];

/// The source of a metric's series, which determines their labels.
pub(super) enum Read {
    /// For each population, a count since the run began.
    Sum(fn(&Tick) -> u64),
    /// For each population, a state at the end of the period.
    Now(fn(&Tick) -> u64),
    /// For each population, a distribution.
    Times(fn(&Tick) -> &Latency),
    /// For each destination, a count since the run began.
    At(fn(&Destination) -> u64),
    /// For each agent of a fleet, a value computed from the figures of all agents since the run began, those of the last period, and
    /// the agent's index in them.
    OfAgent(fn(&AgentTicks, &AgentTicks, usize) -> Option<f64>),
    /// A count of the probe since the run began.
    OfProbe(fn(&Probe) -> u64),
    /// A value of the target's processes.
    Target(fn(&TargetSample) -> Option<u64>),
    /// A value of the target's Java virtual machines.
    Jvm(fn(&JvmSample) -> f64),
    /// A value of throng's host, and of the target's host if it is another one.
    Host(fn(&HostSample) -> Option<u64>),
    /// A single series.
    One(fn(&Moment) -> Option<f64>),
    /// Series with these labels after the population.
    Each(Labels, fn(&Moment, &mut Series)),
}

use Read::{At, Each, Host, Jvm, Now, OfAgent, OfProbe, One, Sum, Target, Times};

impl Read {
    /// The labels of the series.
    pub(super) const fn labels(&self) -> Labels {
        match self {
            Sum(_) | Now(_) | Times(_) => &[POPULATION],
            At(_) => AT,
            OfAgent(_) => AGENT,
            Host(_) => &["host"],
            OfProbe(_) | Target(_) | Jvm(_) | One(_) => &[],
            Each(labels, _) => labels,
        }
    }

    /// Adds the metric's series at this moment.
    pub(super) fn series(&self, m: &Moment, s: &mut Series) {
        let target = m.samples.target.as_ref();
        match self {
            Sum(of) => m.populations(|label, total, _| s.number(label, Some(of(total) as f64))),
            Now(of) => m.populations(|label, _, last| s.number(label, Some(of(last) as f64))),
            Times(of) => m.populations(|label, total, last| s.times(label, of(total), of(last))),
            At(of) => m.destinations(|name, total, _| s.number(&[name], Some(of(total) as f64))),
            OfAgent(of) => m.agents(|name, total, last, at| s.number(&[name], of(total, last, at))),
            OfProbe(of) => s.number(&[], Some(m.total.probe.as_deref().map_or(0, of) as f64)),
            Target(of) => s.number(&[], target.and_then(of).map(|n| n as f64)),
            Jvm(of) => s.number(&[], target.and_then(|target| target.jvm.as_ref()).map(of)),
            Host(of) => {
                for (host, sample) in hosts(m) {
                    s.number(&[host], sample.and_then(of).map(|n| n as f64));
                }
            }
            One(of) => s.number(&[], of(m)),
            Each(_, read) => read(m, s),
        }
    }
}

/// The value of the agent at index `at`; see [`AgentTicks::value`].
pub(super) fn value(column: &[u64], at: usize) -> u64 {
    AgentTicks::value(column, at)
}

pub(super) fn reported(agents: &AgentTicks, at: usize) -> bool {
    value(&agents.reports, at) > 0
}

/// Converts microseconds to seconds; 0 means not measured.
pub(super) fn seconds(us: u64) -> Option<f64> {
    (us > 0).then_some(us as f64 / 1e6)
}

pub(super) fn probe_times(m: &Moment, s: &mut Series, connection: &str, of: fn(&Probe) -> &Latency) {
    match (&m.total.probe, &m.last.probe) {
        (Some(total), Some(last)) => s.times(&[connection], of(total), of(last)),
        _ => s.add(&[connection], Value::Times(Box::default())),
    }
}

/// Adds the CPU time of processes, by mode.
pub(super) fn cpu(s: &mut Series, process: Option<&ProcessSample>) {
    s.number(&["user"], process.map(|process| process.cpu_user_ns as f64 / 1e9));
    s.number(&["system"], process.map(|process| process.cpu_system_ns as f64 / 1e9));
}

/// throng's host, and the target's host if it is another one, each with the value of its label.
pub(super) fn hosts<'a>(m: &Moment<'a>) -> [(&'static str, Option<&'a HostSample>); 2] {
    [("generator", m.samples.host.as_ref()), ("target", m.samples.target_host.as_ref())]
}
