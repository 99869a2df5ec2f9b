//! What a run means: the summary, the verdict, and what stopped it.

use std::collections::BTreeMap;

use plan::Plan;
use samples::{Connections, Fault, FaultCount, Generator, Requests, Stage, Summary, Verdict};
use units::Nanos;

use crate::{conduct::Record, losses::FEW};

mod evidence;
#[cfg(test)]
mod fixture;
mod honesty;
mod limit;
mod thresholds;
mod verdict;

pub(crate) use evidence::{BothSides, Evidence, OwnSeen, Pattern, TargetSeen};

/// Silences that differ by no more than this, or by a tenth, are the same: servers look at their clocks now and then.
const SILENCE_SPREAD: Nanos = Nanos::from_millis(250);

/// The summary of a run.
pub(crate) fn judge(plan: &Plan, r: &Record) -> Summary {
    let counts = &r.totals.counts;
    let ramp = r.ramped_at.min(r.hold_until).since(r.started);
    let duration = r.hold_until.since(r.hold_from.min(r.hold_until));
    let per_second = |n: u64, time: Nanos| if time == Nanos::ZERO { 0.0 } else { n as f64 / time.secs_f64() };
    let status: BTreeMap<u16, u64> =
        (0..).zip(r.totals.status.iter().copied()).filter(|(_, n)| *n > 0).collect();
    let evidence = evidence(r);
    let mut summary = Summary {
        schema: "throng.summary/1",
        verdict: Verdict::Pass,
        reasons: Vec::new(),
        limit: None,
        target: plan.target.text.clone(),
        seed: plan.seed,
        io: r.io,
        threads: r.threads,
        ramp_s: ramp.secs_f64(),
        duration_s: duration.secs_f64(),
        elapsed_s: r.hold_until.since(r.started).secs_f64(),
        connections: Connections {
            wanted: plan.connections.into(),
            opened: counts.opened,
            failed: counts.failed,
            peak: r.peak,
            held: r.held,
            dropped: counts.dropped,
            closed: counts.closed,
            redialled: counts.redialled,
            finished: counts.finished,
            open_per_s: per_second(counts.opened, ramp),
            seen_by_target: r.both_sides.map(|both| both.there),
        },
        faults: (r.totals.faults.iter())
            .map(|(Fault { side, stage, kind }, count)| FaultCount { side, stage, kind, count })
            .collect(),
        requests: Requests {
            sent: counts.sent,
            answered: counts.answered,
            missed: counts.missed,
            per_s: per_second(counts.answered_at_load, duration),
            lower_bound: honesty::is_closed_loop(plan) && honesty::saturated(&evidence).is_some(),
            bytes_in: counts.bytes_in,
            bytes_out: counts.bytes_out,
            body_bytes_in: counts.body_bytes_in,
            status,
        },
        latency_us: r.totals.latency.quantiles(),
        ramp_latency_us: r.totals.ramp_latency.quantiles(),
        connect_us: r.totals.connect.quantiles(),
        handshake_us: r.totals.handshake.quantiles(),
        first_byte_us: r.totals.first_byte.quantiles(),
        lag_us: r.totals.lag.quantiles(),
        probe: plan.probe.map(|rate| r.curve.summary(rate, r.totals.probe.as_deref())),
        generator: Generator {
            cpu_share: evidence.own.map(|own| own.cpu_share),
            stall_us: r.totals.stalled.0 as f64 / 1e3,
            ..r.observed.generator.clone()
        },
        target_cost: r.observed.target.clone(),
        kernel_bytes_per_connection: r.observed.kernel.clone(),
        cost: r.observed.cost.clone(),
        observed: r.observed.seen.clone(),
        rig: None,
        thresholds: Vec::new(),
    };
    pronounce(plan, r, &evidence, &mut summary);
    summary
}

/// Thresholds, verdict and limit, each from what stands before it.
fn pronounce(plan: &Plan, r: &Record, evidence: &Evidence, summary: &mut Summary) {
    summary.thresholds = thresholds::judge(&plan.thresholds, summary);
    let each_ns = r.loaded_ns as f64 / f64::from(r.threads.max(1));
    let under_way = if r.loaded_ns == 0 { 0.0 } else { r.waiting_ns as f64 / each_ns };
    let (resting, interrupted) = (r.resting, r.interrupted);
    let facts = verdict::Facts { plan, evidence, resting, interrupted, under_way };
    (summary.verdict, summary.reasons) = verdict::verdict(&facts, summary);
    summary.limit = limit::limit(summary, evidence);
}

/// What the hosts showed, and what the losses have in common.
fn evidence(r: &Record) -> Evidence {
    Evidence { both_sides: r.both_sides, losses: pattern(r), ..r.evidence.clone() }
}

fn pattern(r: &Record) -> Pattern {
    let silence = &r.totals.silence;
    let quantile = |q: f64| silence.quantile(q);
    let spread = quantile(0.95).since(quantile(0.05));
    let allowed = SILENCE_SPREAD.0.max(quantile(0.5).0 / 10);
    let is_constant = silence.count() >= FEW && spread.0 <= allowed;
    // Handshakes that were turned away are failed, not lost.
    let handshakes = r.totals.faults.iter().filter(|(fault, _)| fault.stage == Stage::Handshake);
    let turned_away = r.losses.lost + handshakes.map(|(_, n)| n).sum::<u64>();
    Pattern {
        silence: is_constant.then(|| quantile(0.5)),
        age: r.losses.constant_age(),
        is_surplus: turned_away >= FEW
            && r.losses.lost_late * 10 <= turned_away
            && (1..=r.losses.opened_by_then).contains(&r.held),
    }
}
