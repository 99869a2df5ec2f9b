//! The figures of a second for the live view, copied from its tick. They are small, so that they can be queued while a terminal is
//! slow.

use std::borrow::Cow;

use samples::{
    AgentShare, Errors, Fault, Faults, Header, Latency, MarkKind, Phase, Samples, TargetSample,
    ThresholdBound, ThresholdResult, Tick,
};
use units::Nanos;

use super::distribution::Distribution;
use crate::{
    agents::Agents,
    line::{MIN_PERIOD, latency},
};

/// The figures of one second.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Second {
    /// Phase at the end of the second.
    pub(crate) phase: Phase,
    /// Time since the first dial.
    pub(crate) elapsed: Nanos,
    /// Progress of the ramp or of full load, from 0 to 1; `None` if it has no end.
    pub(crate) progress: Option<f64>,
    /// Remaining time at full load; `None` if it has no end.
    pub(crate) left: Option<Nanos>,
    /// Open connections.
    pub(crate) open: u64,
    /// Connections that the plan requires now.
    pub(crate) wanted: u64,
    /// Successful dials per second.
    pub(crate) opens_per_s: f64,
    /// Responses per second.
    pub(crate) requests_per_s: f64,
    /// Bytes received per second.
    pub(crate) bytes_in_per_s: f64,
    /// Number of outstanding requests.
    pub(crate) waiting: u64,
    /// Time from due to the complete response; during the ramp, of the ramp's requests.
    pub(crate) latency: Option<Percentiles>,
    /// Share of requests without a response, which the percentiles do not cover; `None` if each had one.
    pub(crate) no_response: Option<f64>,
    /// Latencies at full load since the run began.
    pub(crate) distribution: Distribution,
    /// Time from due to connected.
    pub(crate) connect: Option<Percentiles>,
    /// Share of dials that failed, which the percentiles do not cover.
    pub(crate) no_connection: Option<f64>,
    /// Duration of TLS handshakes, full and resumed.
    pub(crate) tls: Option<Percentiles>,
    pub(crate) has_tls: bool,
    /// Time from due to sent.
    pub(crate) lag: Option<Percentiles>,
    /// CPU usage of this process (on a fleet, of the coordinator), as a share of one core.
    pub(crate) own_cpu: f64,
    /// Memory of this process in bytes.
    pub(crate) own_memory: u64,
    /// The target's processes, if they can be observed.
    pub(crate) target: Option<TargetSample>,
    /// Errors per second, as the summary counts them.
    pub(crate) errors_per_s: f64,
    /// Responses by status since the run began, in the order of status.
    pub(crate) statuses: Vec<StatusFigures>,
    /// The current stage, if the plan has several.
    pub(crate) stage: Option<String>,
    /// The state of each threshold so far.
    pub(crate) thresholds: Vec<ThresholdResult>,
    /// The agents, on a fleet.
    pub(crate) agents: Option<Agents>,
    /// The populations, if there are several.
    pub(crate) populations: Vec<PopulationFigures>,
    /// Faults since the run began, most frequent first.
    pub(crate) faults: Vec<FaultFigures>,
}

impl Second {
    /// Whether fewer connections are open than the plan requires at full load.
    pub(crate) fn is_short(&self) -> bool {
        self.phase == Phase::Hold && self.open < self.wanted
    }
}

/// Percentiles of the last second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Percentiles {
    pub(crate) p50: Nanos,
    pub(crate) p90: Nanos,
    pub(crate) p95: Nanos,
    pub(crate) p99: Nanos,
    pub(crate) max: Nanos,
}

impl Percentiles {
    /// `None` if there were no values.
    fn of(latency: &Latency) -> Option<Percentiles> {
        let at = |q| latency.quantile(q);
        (latency.count() > 0).then(|| Percentiles {
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            max: latency.max(),
        })
    }
}

/// The figures of one population.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PopulationFigures {
    pub(crate) open: u64,
    pub(crate) wanted: u64,
    pub(crate) requests_per_s: f64,
    pub(crate) latency_p99: Option<Nanos>,
    /// Share of requests without a response, as in [`Second::no_response`].
    pub(crate) no_response: Option<f64>,
    /// Faults since the run began.
    pub(crate) faults: u64,
}

/// The responses with one status.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StatusFigures {
    pub(crate) status: u16,
    /// Number since the run began.
    pub(crate) count: u64,
    /// Number per second in the last second.
    pub(crate) per_s: f64,
}

/// The faults of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FaultFigures {
    pub(crate) fault: Fault,
    /// Number since the run began.
    pub(crate) count: u64,
    /// Number in the last second.
    pub(crate) recent: u64,
}

/// The state from which the figures of each tick are computed.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    hold: Option<Nanos>,
    agents: Vec<AgentShare>,
    start: Option<Nanos>,
    /// Time at full load so far.
    held: Nanos,
    /// Open connections when the present ramp began.
    moved_from: u64,
    cpu_s: f64,
    has_tls: bool,
    faults: Faults,
    faults_of: Vec<u64>,
    statuses: Vec<u64>,
    distribution: Distribution,
    stage: Option<String>,
    /// The thresholds of the plan, as not yet measured.
    pub(crate) thresholds: Vec<ThresholdResult>,
}

impl Figures {
    /// The state of a run that has not begun.
    pub(crate) fn of(header: &Header) -> Figures {
        let hold = header.hold_s.map(|hold| Nanos((hold * 1e9) as u64));
        let agents = header.agents.clone();
        let not_measured =
            |bound: &ThresholdBound| ThresholdResult { expr: bound.expr.clone(), ..Default::default() };
        let thresholds = header.thresholds.iter().map(not_measured).collect();
        let faults_of = vec![0; header.populations.len()];
        Figures { hold, agents, faults_of, thresholds, ..Figures::default() }
    }

    /// The figures of a tick; `None` if it is too short for rates.
    pub(crate) fn tick(&mut self, tick: &Tick, samples: &Samples) -> Option<Second> {
        let start = *self.start.get_or_insert(tick.from);
        let stages = tick.marks.iter().filter(|mark| mark.kind == MarkKind::Stage);
        self.stage = stages.last().map(|mark| mark.what.clone()).or(self.stage.take());
        self.faults.merge(&tick.faults);
        self.statuses.resize(tick.status.len(), 0);
        self.statuses.iter_mut().zip(&tick.status[..]).for_each(|(sum, n)| *sum += n);
        self.distribution.add(&tick.latency);
        for (sum, population) in self.faults_of.iter_mut().zip(&tick.populations) {
            *sum += population.faults.total();
        }
        if tick.phase == Phase::Hold {
            // In the tick in which the ramp ended, only the rest is at full load.
            let since = if tick.ramped_at == Nanos::NEVER { tick.from } else { tick.ramped_at };
            self.held = self.held + tick.until.since(tick.from.max(since));
        }
        let progress = self.progress(tick);
        let period = tick.until.since(tick.from).secs_f64();
        if period < MIN_PERIOD {
            return None;
        }
        let per_s = |n: u64| n as f64 / period;
        let (cpu_s, own_memory) = samples.own.as_ref().map_or((0.0, 0), |own| (own.cpu_s(), own.rss_bytes));
        let own_cpu = (cpu_s - self.cpu_s) / period;
        self.cpu_s = cpu_s;
        self.has_tls |= tick.handshakes() > 0;
        Some(Second {
            phase: tick.phase,
            elapsed: tick.until.since(start),
            progress,
            left: self.hold.map(|hold| hold.since(self.held)),
            open: tick.open,
            wanted: tick.wanted,
            opens_per_s: per_s(tick.counts.opened + tick.counts.redialled),
            requests_per_s: per_s(tick.counts.answered),
            bytes_in_per_s: per_s(tick.counts.bytes_in),
            waiting: tick.waiting,
            latency: Percentiles::of(latency(tick)),
            no_response: without(latency(tick)),
            distribution: self.distribution,
            connect: Percentiles::of(&tick.connect),
            no_connection: without(&tick.connect),
            tls: Percentiles::of(&tls(tick)),
            has_tls: self.has_tls,
            lag: Percentiles::of(&tick.lag),
            own_cpu,
            own_memory,
            target: samples.target.clone(),
            errors_per_s: per_s(errors_of(tick)),
            statuses: self.statuses(tick, period),
            stage: self.stage.clone(),
            thresholds: self.thresholds(samples),
            agents: Agents::of(&self.agents, tick),
            populations: self.populations(tick, period),
            faults: self.faults(tick),
        })
    }

    /// All thresholds, with their state if they have been measured.
    fn thresholds(&self, samples: &Samples) -> Vec<ThresholdResult> {
        let standing = |own: &ThresholdResult| {
            samples.thresholds.iter().find(|standing| standing.expr == own.expr).cloned()
        };
        self.thresholds.iter().map(|own| standing(own).unwrap_or_else(|| own.clone())).collect()
    }

    /// Progress of a ramp by connections, from their number at its beginning; otherwise by time.
    fn progress(&mut self, tick: &Tick) -> Option<f64> {
        let share = |part: f64, whole: f64| if whole == 0.0 { 1.0 } else { (part / whole).clamp(0.0, 1.0) };
        if tick.phase == Phase::Ramp {
            let from = self.moved_from as f64;
            return Some(share(tick.open as f64 - from, tick.wanted as f64 - from));
        }
        self.moved_from = tick.open;
        self.hold.map(|hold| share(self.held.secs_f64(), hold.secs_f64()))
    }

    fn populations(&self, tick: &Tick, period: f64) -> Vec<PopulationFigures> {
        let figures = |(population, &faults): (&Tick, &u64)| PopulationFigures {
            open: population.open,
            wanted: population.wanted,
            requests_per_s: population.counts.answered as f64 / period,
            latency_p99: Percentiles::of(latency(population)).map(|latency| latency.p99),
            no_response: without(latency(population)),
            faults,
        };
        tick.populations.iter().zip(&self.faults_of).map(figures).collect()
    }

    fn statuses(&self, tick: &Tick, period: f64) -> Vec<StatusFigures> {
        let all = (0..).zip(&self.statuses).zip(&tick.status[..]);
        let seen = all.filter(|((_, count), _)| **count > 0);
        seen.map(|((status, count), recent)| StatusFigures {
            status,
            count: *count,
            per_s: *recent as f64 / period,
        })
        .collect()
    }

    fn faults(&self, tick: &Tick) -> Vec<FaultFigures> {
        let recent = |fault: Fault| tick.faults.iter().find(|(own, _)| *own == fault).map_or(0, |(_, n)| n);
        let figures = |(fault, count)| FaultFigures { fault, count, recent: recent(fault) };
        let mut faults: Vec<FaultFigures> = self.faults.iter().map(figures).collect();
        faults.sort_by_key(|fault| std::cmp::Reverse(fault.count));
        faults
    }
}

/// All TLS handshakes of a tick, full and resumed.
fn tls(tick: &Tick) -> Cow<'_, Latency> {
    match (tick.tls.is_empty(), tick.tls_resumed.is_empty()) {
        (_, true) => Cow::Borrowed(&tick.tls),
        (true, _) => Cow::Borrowed(&tick.tls_resumed),
        _ => {
            let mut all = tick.tls.clone();
            all.merge(&tick.tls_resumed);
            Cow::Owned(all)
        }
    }
}

/// Requests without a correct response, and connections that failed while no request was outstanding.
fn errors_of(tick: &Tick) -> u64 {
    Errors::new(&tick.counts).count
}

/// The share of values that were never completed; `None` if all were.
fn without(latency: &Latency) -> Option<f64> {
    (latency.censored() > 0).then(|| latency.censored_share())
}
