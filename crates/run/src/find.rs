//! The largest load that a target bears: run after run, led by [`Search`].

use std::time::Duration;

use host::Root;
use plan::{Hold, Load, Plan, Ramp};
use samples::{FindOutcome, FindSummary, Limit, Point, Summary, ThresholdResult, Verdict};
use units::{Count, Nanos, Rate};

use crate::{
    Interrupt, Refusal, judge,
    search::{Outcome, Search, Step, Went},
};

/// To within this share of the answer.
const TOLERANCE: f64 = 0.02;
/// The first load: small enough for any server, so that it shows what an unloaded one is like.
const FIRST_CONNECTIONS: u64 = 500;
const FIRST_PER_S: u64 = 100;
/// A load that confirms the answer is looked at so much longer.
const CONFIRM: u64 = 2;
/// A probe that takes so many times as long as at the first load, and so much longer, says that the target is not well.
const PROBE_TIMES: f64 = 5.0;
const PROBE_MORE_US: f64 = 20_000.0;
/// Between two steps, and for each connection of the first: ten times what `throng serve` takes to close it.
const SETTLE: Duration = Duration::from_millis(500);
const SETTLE_EACH: Duration = Duration::from_micros(50);
/// Of a rate that was asked for, this share must have been answered.
const RATE_SHARE: f64 = 0.98;

/// What is made larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Connections held.
    Connections,
    /// Connections that arrive in a second.
    Arrival,
    /// Connections dialled at once.
    Burst,
    /// Requests a second.
    Rate,
}

impl By {
    /// The word of the command line and of the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "arrival",
            By::Burst => "burst",
            By::Rate => "rate",
        }
    }

    /// What a load is counted in.
    pub const fn unit(self) -> &'static str {
        match self {
            By::Connections => "connections",
            By::Arrival => "connections/s",
            By::Burst => "connections at once",
            By::Rate => "requests/s",
        }
    }

    fn first(self) -> u64 {
        match self {
            By::Connections | By::Burst => FIRST_CONNECTIONS,
            By::Arrival | By::Rate => FIRST_PER_S,
        }
    }

    /// The plan with this load, held for `dwell`.
    fn plan(self, plan: &Plan, load: u64, dwell: Nanos) -> Plan {
        let n = u32::try_from(load).unwrap_or(u32::MAX);
        let mut plan = plan.clone();
        let (population, stage) = (&mut plan.populations[0], &mut plan.stages[0]);
        let connections = population.load.connections();
        stage.hold = Hold::For(dwell);
        match self {
            By::Connections => population.load = Load::Held { connections: n },
            By::Burst => {
                population.load = Load::Held { connections: n };
                stage.ramp = Ramp::Within(Nanos::ZERO);
            }
            By::Rate => population.load = Load::Rate { connections, rate: Rate::per_s(n) },
            By::Arrival => {
                let all = load.saturating_mul(dwell.0) / Nanos::from_secs(1).0;
                let total = Some(u32::try_from(all.max(1)).unwrap_or(u32::MAX));
                population.load = Load::Arrivals { rate: Rate::per_s(n), total };
                population.calls = Some(1);
            }
        }
        plan
    }

    /// So much of a load that failed was borne all the same.
    fn borne(self, s: &Summary) -> Option<u64> {
        let n = match self {
            By::Connections => s.connections.held,
            By::Burst => s.connections.opened,
            By::Arrival => s.connections.open_per_s as u64,
            By::Rate => s.requests.per_s as u64,
        };
        (n > 0).then_some(n)
    }
}

/// A search: what, how far, and each step's time at full load.
#[derive(Clone, Copy, Debug)]
pub struct Find {
    /// What is made larger.
    pub by: By,
    /// Not beyond this load.
    pub most: u64,
    /// Each step is held, and judged, for this long.
    pub dwell: Nanos,
}

/// Searches; `show` is told each step as it ends. A signal ends the search with what is known.
///
/// # Errors
/// This machine cannot do even the first step.
pub fn find(
    find: Find,
    plan: &Plan,
    root: &Root,
    interrupt: &Interrupt,
    say: &mut dyn FnMut(&str),
    show: &mut dyn FnMut(&Point),
) -> Result<FindSummary, Refusal> {
    let mut search = Search::new(find.by.first().min(find.most), find.most, TOLERANCE);
    let mut unloaded_us = None;
    let mut curve: Vec<Point> = Vec::new();
    let mut limit: Option<Limit> = None;
    let mut thresholds: Vec<(u64, Vec<ThresholdResult>)> = Vec::new();
    while let Some(Step { load, confirms }) = search.step() {
        let dwell = Nanos(find.dwell.0 * if confirms { CONFIRM } else { 1 });
        let summary = match attempt(&find.by.plan(plan, load, dwell), root, interrupt, say) {
            Err(Refusal::Findings(findings)) if search.passed().is_some() => {
                // More than this machine can do: the load stays below that.
                limit = judge::refused_here(&findings, search.passed().unwrap_or(0)).or(limit);
                search.learn(Went::Badly(None));
                continue;
            }
            other => other?,
        };
        if summary.verdict == Verdict::Interrupted {
            break;
        }
        let reasons = reasons(find.by, load, &summary, unloaded_us);
        let pass = reasons.is_empty();
        settle(&summary);
        let point = point(load, &summary, reasons);
        unloaded_us = unloaded_us.or(point.probe_p99_us);
        show(&point);
        curve.push(point);
        if pass {
            thresholds.push((load, summary.thresholds));
            search.learn(Went::Well);
        } else {
            // The closer to the answer, the better; but just above it too few are lost to know a cause by.
            let told = summary.limit.clone().or_else(|| summary.suspect.clone());
            let is_gone = limit.is_some() && told.as_ref().is_some_and(judge::is_nobody);
            let explains = |new: &Limit| judge::weight(new) >= limit.as_ref().map_or(0, judge::weight);
            limit = told.filter(explains).or(limit);
            if is_gone {
                search.give_up();
            } else {
                search.learn(Went::Badly(find.by.borne(&summary)));
            }
        }
    }
    // Just above the answer too few are lost to know a cause by: what stops twice as much is plain.
    let is_unknown = limit.as_ref().is_none_or(|limit| judge::weight(limit) == 0);
    if let (Some(Outcome::Found { max, .. }), true, false) =
        (search.outcome(), is_unknown, interrupt.is_set())
    {
        let load = max.saturating_mul(2).min(find.most.max(max));
        let twice = attempt(&find.by.plan(plan, load, find.dwell), root, interrupt, say);
        let told = twice.ok().and_then(|summary| summary.limit.or(summary.suspect));
        limit = told.filter(|limit| judge::weight(limit) > 0).or(limit);
    }
    curve.sort_by_key(|point| point.load);
    let (outcome, max, error) = match search.outcome() {
        Some(Outcome::Found { max, error }) => (FindOutcome::Found, max, error),
        Some(Outcome::Impossible { .. }) => (FindOutcome::Impossible, 0, 0),
        Some(Outcome::NotReached { most }) => (FindOutcome::NotReached, most, 0),
        None => (FindOutcome::NotReached, search.passed().unwrap_or(0), 0),
    };
    let at_max = thresholds.into_iter().rev().find(|(load, _)| *load == max);
    Ok(FindSummary {
        schema: "throng.find/1",
        by: find.by.name(),
        target: plan.text.clone(),
        seed: plan.seed,
        max,
        error,
        outcome,
        limit: limit.filter(|_| outcome != FindOutcome::NotReached),
        thresholds: at_max.map(|(_, results)| results).unwrap_or_default(),
        curve,
    })
}

/// A run with this plan, and another where throng itself was late: that tells nothing of the target, and may pass.
fn attempt(
    plan: &Plan,
    root: &Root,
    interrupt: &Interrupt,
    say: &mut dyn FnMut(&str),
) -> Result<Summary, Refusal> {
    let summary = crate::run(plan, root, &mut [], interrupt, say)?;
    if summary.verdict != Verdict::Invalid {
        return Ok(summary);
    }
    settle(&summary);
    crate::run(plan, root, &mut [], interrupt, say)
}

/// The connections of a step are still being taken apart by the target when it ends: those of the next one would come on
/// top of them.
fn settle(s: &Summary) {
    std::thread::sleep(SETTLE + SETTLE_EACH * u32::try_from(s.connections.peak).unwrap_or(u32::MAX));
}

fn point(load: u64, s: &Summary, reasons: Vec<String>) -> Point {
    Point {
        load,
        pass: reasons.is_empty(),
        held: s.connections.held,
        requests_per_s: s.requests.per_s,
        latency_p50_us: s.latency_us.p50,
        latency_p99_us: s.latency_us.p99,
        probe_p99_us: probe_p99_us(s),
        connect_p99_us: s.connect_us.p99,
        reasons,
    }
}

/// At full load only: what a ramp makes of a target is not what its connections make of it.
fn probe_p99_us(s: &Summary) -> Option<f64> {
    s.probe.as_ref().filter(|probe| probe.held_us.count > 0).map(|probe| probe.held_us.p99)
}

/// Why a step did not pass: its own verdict, and what only a search can tell.
fn reasons(by: By, load: u64, s: &Summary, unloaded_us: Option<f64>) -> Vec<String> {
    let mut reasons = Vec::new();
    if s.verdict != Verdict::Pass {
        reasons.extend(s.reasons.iter().cloned());
        if reasons.is_empty() {
            reasons.push(s.verdict.name().to_owned());
        }
    }
    if !s.thresholds.is_empty() {
        return reasons;
    }
    let asked = load as f64;
    if by == By::Rate && s.requests.per_s < RATE_SHARE * asked {
        let (got, asked) = (Count(s.requests.per_s as u64), Count(load));
        reasons.push(format!("{got} of {asked} requests/s answered"));
    }
    if let (Some(now), Some(before)) = (probe_p99_us(s), unloaded_us) {
        let allowed = (before * PROBE_TIMES).max(before + PROBE_MORE_US);
        if now > allowed {
            let ms = |us: f64| us / 1e3;
            reasons.push(format!(
                "a probe took {:.1} ms at the 99th percentile, {:.1} ms without load, {:.1} ms allowed",
                ms(now),
                ms(before),
                ms(allowed)
            ));
        }
    }
    reasons
}
