//! Judges a run from its [`Record`] alone: the summary, the verdict, and the limiting factor. Pure: no clock, no I/O, so a stored record
//! gives the same summary again.
//!
//! The order is fixed: `gather` collects the evidence, `measured` computes the figures, and `pronounce` adds thresholds, verdict, limit and
//! notes, each from the results of the step before.

// A new variant must be a decision at every match.
#![deny(clippy::wildcard_enum_match_arm)]

use indexmap::IndexMap;
use plan::{Plan, Population, Threshold};
use record::{PopulationRecord, Record, rejection::Rejection, tolerances};
use samples::{
    Connections, Errors, FAILED, Figures, Generator, Latency, Observation, PopulationSummary, PushFigures,
    Requests, StepSummary, StreamLimit, Summary, ThresholdResult, Tick, Verdict,
};
use units::{Count, Nanos, caught};

pub use evidence::By;
pub use limit::{gone, is_nobody, may_have_ended, weight};
pub use longer_queue::{USUAL_SOMAXCONN, longer_queue};
pub use measured::{difference, rejudge, stored};
pub use subject::{find_command, longest_pause};

mod away;
mod case;
mod cause;
mod causes;
mod closes;
mod cpu;
mod destinations;
mod dials;
mod evidence;
pub mod experiments;
mod gather;
mod headline;
mod honesty;
pub mod in_common;
mod limit;
mod longer_queue;
mod measured;
mod own_part;
mod paced;
mod probe;
mod queue;
mod resolve;
mod say;
mod seen;
mod sent;
mod slow;
mod stall;
mod starved;
mod statuses;
mod stranded;
mod streams;
mod subject;
mod thresholds;
mod throughput;
mod tls;
mod trouble;
mod verdict;
mod words;

use case::Scope;
use evidence::{Evidence, Paced};
use gather::gather;
use subject::Subject;

/// Judges a complete run.
pub fn judge(plan: &Plan, r: &Record) -> Summary {
    judged(plan, r, gather(plan, r, Subject::of(plan)))
}

/// The summary of a run whose judgement panicked: the figures, or only the plan's basics if computing the figures panics too.
pub fn unjudged(plan: &Plan, r: &Record) -> Summary {
    let least = || {
        let figures = Figures { target: plan.text.clone(), threads: r.threads, ..Figures::default() };
        Summary { schema: SCHEMA.into(), seed: plan.seed, io: r.io.clone(), figures, ..Summary::default() }
    };
    caught(|| measured(plan, r, r.ended)).unwrap_or_else(least)
}

/// The failure message of the first agent on which throng itself failed, unless another agent took over its part.
pub fn failed_agent(r: &Record) -> Option<String> {
    r.agents.iter().filter(|agent| agent.taken_over_by.is_empty()).find_map(|agent| {
        let why = agent.why.as_ref()?.strip_prefix(FAILED)?;
        Some(format!("agent {}{why}", agent.id))
    })
}

/// Judges one step of a search. Fixes do not suggest a smaller load, because the search varies the load itself. `has_passed`: a smaller
/// load passed; `unloaded`: the lowest median latency among the loads that passed.
pub fn judge_step(plan: &Plan, r: &Record, by: By, has_passed: bool, unloaded: Option<Nanos>) -> Summary {
    let paced = paced(plan, r, unloaded).filter(|_| by == By::Rate);
    judged(plan, r, Evidence { search: Some(by), has_passed, paced, ..gather(plan, r, Subject::of(plan)) })
}

/// The target's apparent idle timeout: the silence after which connections were closed, if it was the same for all and is long enough to be
/// configured. `None` if connections were closed to make room for new ones.
pub fn idle_timeout(r: &Record) -> Option<Nanos> {
    let pattern = evidence::Pattern::of(r, false);
    pattern.silence.filter(|time| *time >= tolerances::CONFIGURED && !pattern.is_surplus)
}

/// `None` unless the run has exactly one population, at a request rate and without concurrent requests per connection.
fn paced(plan: &Plan, r: &Record, unloaded: Option<Nanos>) -> Option<Paced> {
    let [own] = &plan.populations[..] else { return None };
    let rate = own.load.rate().filter(|_| own.load.is_paced() && own.streams.is_none())?;
    let response = unloaded.unwrap_or_else(|| r.totals.latency.min());
    Some(Paced { due_per_s: rate.per_s_f64(), response })
}

fn judged(plan: &Plan, r: &Record, evidence: Evidence) -> Summary {
    let mut summary = measured(plan, r, r.ended);
    summary.figures.requests.lower_bound =
        honesty::is_closed_loop(plan) && honesty::saturated(&evidence).is_some();
    summary.generator.cpu_share = evidence.own.map(|own| own.cpu_share);
    if evidence.search.is_some() {
        let at_load = r.totals.probe.as_deref().and_then(|all| r.probe_at_load.of(all));
        let own = plan.probe.as_ref().zip(at_load);
        summary.probe = own.map(|(probe, own)| r.curve.summary(probe.rate, Some(&own))).or(summary.probe);
    }
    pronounce(plan, r, &evidence, &mut summary);
    summary
}

/// The message for a search that reaches a limit of this machine; `what`: `ports: 676 free, 1,000 needed`.
pub fn not_enough_here(what: String) -> String {
    format!("this machine does not have enough {what}")
}

/// Version of the summary's JSON.
const SCHEMA: &str = "throng.summary/1";

/// Sections of the summary that are known only when the run has ended.
const AT_END: [&str; 6] =
    ["generator", "target_cost", "kernel_bytes_per_connection", "cost", "observed", "rig"];

/// Judges the thresholds by the figures up to `ended`, while the run continues. Thresholds on figures that only the end of a run provides
/// are left out.
pub fn thresholds_so_far(plan: &Plan, r: &Record, ended: Nanos) -> Vec<ThresholdResult> {
    let is_known = |threshold: &&Threshold| {
        let first = threshold.figure.key.split('.').next();
        !AT_END.iter().any(|name| first == Some(*name))
    };
    let known: Vec<Threshold> = plan.thresholds.iter().filter(is_known).cloned().collect();
    thresholds::judge(&known, &measured(plan, r, ended))
}

/// The figures of a run, before anything is judged.
fn measured(plan: &Plan, r: &Record, ended: Nanos) -> Summary {
    let populations: IndexMap<String, PopulationSummary> = plan
        .populations
        .iter()
        .zip(&r.populations)
        .zip(0..)
        .map(|((p, measured), nth)| (p.name.clone(), population(plan, nth, p, measured, has_own_clock(p, r))))
        .collect();
    let elapsed = ended.since(r.started);
    let (connections, requests) = together(r, &populations, elapsed);
    let mut figures = Figures {
        target: plan.text.clone(),
        threads: r.threads,
        // Several populations ramp at the same time: the longest ramp counts.
        ramp_s: populations.values().map(|p| p.ramp_s).fold(0.0, f64::max),
        duration_s: populations.values().map(|p| p.duration_s).fold(0.0, f64::max),
        elapsed_s: elapsed.secs_f64(),
        connections,
        requests,
        streams: StreamLimit::fewest(populations.values().filter_map(|own| own.streams)),
        ..times(&r.totals)
    };
    let has_clock = plan.populations.iter().all(|p| has_own_clock(p, r));
    figures.pushes = pushes(&r.totals, elapsed, has_clock);
    figures.errors = Errors::new(&r.totals.counts);
    Summary {
        schema: SCHEMA.into(),
        seed: plan.seed,
        io: r.io.clone(),
        figures,
        asks: r.commands.clone(),
        experiments: r.answers.for_summary(),
        agents: r.agents.clone(),
        destinations: destinations::summaries(plan, &r.totals),
        in_common: in_common::in_common(plan, &r.shares, &r.totals, r.started),
        lag_us: r.totals.lag.quantiles(),
        populations,
        probe: plan.probe.as_ref().map(|probe| r.curve.summary(probe.rate, r.totals.probe.as_deref())),
        generator: Generator { stall_us: r.totals.stalled.0 as f64 / 1e3, ..r.observed.generator.clone() },
        target_cost: r.observed.target.clone(),
        kernel_bytes_per_connection: r.observed.kernel.clone(),
        cost: r.observed.cost.clone(),
        observed: Observation {
            rejection: r.rejection.map(Rejection::for_summary),
            ..r.observed.seen.clone()
        },
        failing_s: r.moments.failing().map(Nanos::secs_f64),
        planned_s: plan.hold().filter(|_| r.is_deserted).map(Nanos::secs_f64),
        // Verdict, reasons and limit are judged later.
        ..Summary::default()
    }
}

fn per_second(n: u64, time: Nanos) -> f64 {
    if time == Nanos::ZERO { 0.0 } else { n as f64 / time.secs_f64() }
}

/// The figures of one population.
fn population(
    plan: &Plan,
    nth: u16,
    population: &Population,
    measured: &PopulationRecord,
    has_clock: bool,
) -> PopulationSummary {
    let totals = &measured.totals;
    let mut figures = Figures {
        target: population.target.text.clone(),
        threads: measured.threads,
        ramp_s: measured.ramp.secs_f64(),
        duration_s: measured.at_load.secs_f64(),
        elapsed_s: measured.elapsed.secs_f64(),
        connections: Connections {
            wanted: measured.wanted,
            arriving: if population.comes_and_goes() { measured.wanted } else { 0 },
            peak: measured.peak,
            held: measured.held,
            dropped_in_drain: measured.dropped_in_drain,
            lost: measured.lost,
            open_per_s: per_second(totals.counts.opened, measured.ramp),
            bent_at: totals.congestion.bent_at(),
            accept_per_s: per_second(measured.accepted.0, measured.accepted.1),
            ..Connections::new(&totals.counts)
        },
        requests: Requests::new(totals, (measured.at_load, measured.elapsed), measured.lost_requests),
        pushes: pushes(totals, measured.elapsed, has_clock),
        streams: streams::limit(population, totals),
        ..times(totals)
    };
    figures.errors = Errors::new(&totals.counts);
    PopulationSummary { figures, steps: steps(plan, nth, population, totals) }
}

/// The figures that a population and the whole run compute in the same way: faults and times.
fn times(totals: &Tick) -> Figures {
    let mut figures = Figures { faults: totals.faults.clone().into(), ..Figures::default() };
    figures.set_times(totals);
    figures
}

/// Whether timestamps of a population's target come from the clock of this host, as those of containers and network namespaces on it do.
fn has_own_clock(population: &Population, r: &Record) -> bool {
    let is_here = r.observed.both_here || r.is_translated;
    population.target.is_loopback() || is_here && r.agents.is_empty()
}

/// The figures of messages that servers sent unprompted. `has_clock`: the timestamps in them are by this host's clock.
fn pushes(totals: &Tick, elapsed: Nanos, has_clock: bool) -> PushFigures {
    let is_known = has_clock && totals.delay.count() > 0;
    let clock_offset_us = is_known.then_some(0.0);
    PushFigures { clock_offset_us, ..PushFigures::new(&totals.pushes, elapsed.secs_f64()) }
}

/// Latency by step, if the population has several steps; steps without a due request are left out.
fn steps(plan: &Plan, nth: u16, population: &Population, totals: &Tick) -> IndexMap<String, StepSummary> {
    if population.step_names().len() < 2 {
        return IndexMap::new();
    }
    let own = plan.steps().enumerate().filter(|(_, (of, _))| *of == nth);
    let step = |(at, (_, name)): (usize, (u16, &str))| {
        let [latency, ramp] = [&totals.steps, &totals.ramp_steps].map(|all| all.get(at));
        let began = [latency, ramp].into_iter().flatten().any(|times| !times.is_empty());
        let [latency_us, ramp_latency_us] =
            [latency, ramp].map(|times| times.map(Latency::quantiles).unwrap_or_default());
        let faults = totals.step_faults.get(at).cloned().unwrap_or_default().into();
        began.then(|| (name.to_owned(), StepSummary { latency_us, ramp_latency_us, faults }))
    };
    own.filter_map(step).collect()
}

/// The figures of all populations together: counts are sums, and the rate is the sum of each population's rate at its full load.
fn together(
    r: &Record,
    populations: &IndexMap<String, PopulationSummary>,
    elapsed: Nanos,
) -> (Connections, Requests) {
    let sum = |of: fn(&PopulationSummary) -> f64| populations.values().map(of).sum::<f64>();
    let count = |of: fn(&PopulationRecord) -> u64| r.populations.iter().map(of).sum::<u64>();
    let connections = Connections {
        wanted: count(|measured| measured.wanted),
        arriving: populations.values().map(|own| own.connections.arriving).sum(),
        peak: r.peak,
        held: r.held(),
        dropped_in_drain: count(|measured| measured.dropped_in_drain),
        lost: count(|measured| measured.lost),
        open_per_s: per_second(r.totals.counts.opened, r.ramp),
        bent_at: populations.values().filter_map(|own| own.connections.bent_at).reduce(|a, b| a + b),
        accept_per_s: populations.values().map(|own| own.connections.accept_per_s).sum(),
        seen_by_target: r.both_sides.map(|both| both.there),
        unaccepted: r.unaccepted,
        quiet_s: r.quiet.map(Nanos::secs_f64),
        ..Connections::new(&r.totals.counts)
    };
    let requests = Requests {
        per_s: sum(|p| p.requests.per_s),
        ..Requests::new(&r.totals, (Nanos::ZERO, elapsed), count(|measured| measured.lost_requests))
    };
    (connections, requests)
}

/// Adds thresholds, verdict and limit to the summary, each computed from the results before it.
fn pronounce(plan: &Plan, r: &Record, evidence: &Evidence, summary: &mut Summary) {
    summary.thresholds = thresholds::judge(&plan.thresholds, summary);
    thresholds::leave_held_open(&plan.thresholds, &mut summary.thresholds, r.unattributed);
    honesty::name_own_lag(plan, summary);
    let populations = &r.populations;
    let facts = evidence::Facts { plan, evidence, populations, interrupted: r.interrupted.as_deref() };
    verdict::pronounce(&facts, summary);
    if let Some(why) = away::began_without(r.began_short, summary) {
        // Reasons that already make the run invalid come first.
        let place = usize::from(summary.verdict == Verdict::Invalid);
        summary.reasons.insert(place, why);
        summary.verdict = Verdict::Invalid;
    }
    summary.reasons.extend(gave_up(plan, summary));
    let scope = Scope::of(&plan.thresholds, summary);
    summary.limit = limit::limit(summary, evidence, scope);
    // Destinations are counted for the whole run, not per population.
    if let Some(limit) = summary.limit.as_mut().filter(|_| scope.population.is_none()) {
        destinations::name(limit, &summary.destinations);
    }
    summary.suspect = limit::suspect(summary, evidence).filter(|_| summary.limit.is_none());
    if r.is_translated && summary.verdict != Verdict::Pass {
        summary.reasons.push(TRANSLATED.to_owned());
    }
    if summary.verdict == Verdict::Pass {
        summary.reasons.extend(limit::warnings(summary, evidence));
    }
    summary.reasons.extend(away::notes(summary));
    summary.reasons.extend(streams::notes(summary));
    summary.headline = headline::headline(summary);
}

/// Note for a target whose process cannot be observed from this network namespace.
const TRANSLATED: &str = "note: the target's address is local, but its ends of the connections are not in \
this network namespace (a published container port, or other address translation), so its process and \
accept queue cannot be observed from here; run throng observe there";

/// Why the adaptive ramp had to dial the remaining connections at a fixed rate; `None` if it did not.
fn gave_up(plan: &Plan, summary: &Summary) -> Option<String> {
    let forced = summary.connections.forced;
    let deadline = plan.stages.iter().filter_map(|stage| plan.ramp_deadline(stage)).min()?;
    let why = if summary.ramp_s >= deadline.secs_f64() {
        format!("its deadline of {deadline} was over")
    } else {
        "within one --timeout no more first dials and responses succeeded than failed".to_owned()
    };
    let were = Count(forced).were("connection");
    (forced > 0)
        .then(|| format!("the ramp stopped adapting: {why}; the remaining {were} dialled at a fixed rate"))
}
