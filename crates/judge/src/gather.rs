//! Gathers the evidence for the verdict and the limit from the record of a run.

use plan::{Load, Plan, Population};
use samples::{Fault, Kind, SlowPart};
use units::Nanos;

use super::{
    evidence::{Evidence, Pattern, Queueing, Stall},
    in_common::{failing_silence, pauses},
    starved,
    stranded::stranded,
    subject::Subject,
    words::Words,
};
use record::{
    PopulationRecord, Record,
    backlog::Backlog,
    tolerances::{HALF, QUARTER},
};

/// Requests waiting at the end, summed over populations with a growing backlog: arrivals (`arrives`), or others. `None` if the load was
/// changed by stages or the user, because that alone lets more wait.
fn backlog(plan: &Plan, r: &Record, arrives: bool, of: fn(&Backlog) -> Option<u64>) -> Option<u64> {
    if changes(plan, r) {
        return None;
    }
    let own = plan.populations.iter().zip(&r.populations).filter(|(own, _)| own.comes_and_goes() == arrives);
    own.filter_map(|(_, measured)| of(&measured.backlog)).reduce(|all, own| all + own)
}

/// Whether the load changes, by stages or by the user.
fn changes(plan: &Plan, r: &Record) -> bool {
    plan.stages.len() > 1 || !r.commands.is_empty()
}

/// Connections that arrive per second, if the whole load consists of arrivals at constant rates. Half of the probe's requests use new
/// connections.
fn arrivals_per_s(plan: &Plan, r: &Record) -> Option<f64> {
    if changes(plan, r) {
        return None;
    }
    let rate = |own: &Population| match own.load {
        Load::Arrivals { rate, .. } => Some(rate.per_s_f64()),
        Load::Held { .. } | Load::Rate { .. } => None,
    };
    let load = plan.populations.iter().map(rate).sum::<Option<f64>>()?;
    Some(load + plan.probe.as_ref().map_or(0.0, |probe| probe.rate.per_s_f64() / 2.0))
}

/// How responses at a rate delayed each other, while all connections were waiting for one. Judged by the population that missed most
/// requests, because its number of connections is a limit.
fn queueing(r: &Record) -> Queueing {
    let missed = |own: &&PopulationRecord| own.totals.counts.missed;
    let Some(own) = r.populations.iter().max_by_key(missed) else { return Queueing::None };
    let (totals, at_load_s) = (&own.totals, own.at_load.secs_f64());
    let counts = &totals.counts;
    if counts.missed == 0 || counts.answered_at_load == 0 || own.held == 0 || at_load_s <= 0.0 {
        return Queueing::None;
    }
    // Little's law for connections that are never free.
    let each_s = own.held as f64 * at_load_s / counts.answered_at_load as f64;
    let most = Nanos((HALF * each_s * 1e9) as u64);
    let quick = [&totals.latency, &totals.ramp_latency].map(|times| times.count_within(Nanos::ZERO, most));
    if (quick.iter().sum::<u64>() as f64) < QUARTER * own.held as f64 {
        return Queueing::None;
    }
    // Times start when requests were due: within a tick they grow by the part that is not served.
    let served = counts.answered_at_load as f64 / (counts.sent + counts.missed) as f64;
    let grows_s = (1.0 - served.min(1.0)) * own.backlog.period().secs_f64();
    let is_equal = |spread: Nanos| spread.secs_f64() <= HALF * each_s + grows_s;
    if own.backlog.spread().is_some_and(is_equal) { Queueing::InLine } else { Queueing::Unclear }
}

/// Whether there were wrong texts, and only in messages.
fn wrong_messages(plan: &Plan, r: &Record) -> bool {
    let is_wrong = |(fault, n): (Fault, u64)| fault.kind == Kind::WrongBody && n > 0;
    let met = |(_, measured): &(&Population, &PopulationRecord)| measured.totals.faults.iter().any(is_wrong);
    let mut wrong = plan.populations.iter().zip(&r.populations).filter(met).peekable();
    wrong.peek().is_some() && wrong.all(|(own, _)| !own.target.scheme.has_requests())
}

/// The slow parts of responses, by population and by step.
fn slow_parts(plan: &Plan, r: &Record) -> Vec<((String, Option<String>), SlowPart)> {
    let populations = plan.populations.iter().zip(&r.populations);
    let of_populations =
        populations.map(|(own, measured)| ((own.name.clone(), None), &measured.totals.latency));
    let full =
        |(of, step): (u16, &str)| (plan.populations[usize::from(of)].name.clone(), Some(step.to_owned()));
    let of_steps = plan.steps().map(full).zip(&r.totals.steps);
    of_populations.chain(of_steps).filter_map(|(name, times)| Some((name, times.slow_part()?))).collect()
}

/// The evidence of a run; `subject`: the plan's part of it.
pub(super) fn gather(plan: &Plan, r: &Record, subject: Subject) -> Evidence {
    let seen = Evidence::seen(&r.observed, r.threads);
    let mut evidence = Evidence {
        subject,
        thresholds: plan.thresholds.clone(),
        both_sides: r.both_sides,
        answers: r.answers.clone(),
        losses: Pattern::of(r, plan.populations.iter().any(|population| population.load.is_paced())),
        failing_silence: failing_silence(&r.shares, &r.totals),
        pauses: pauses(&r.shares, &r.totals),
        backlog: backlog(plan, r, true, Backlog::grown),
        rate_backlog: backlog(plan, r, false, Backlog::grown),
        outpaced: backlog(plan, r, true, Backlog::outpaced),
        arrivals_per_s: arrivals_per_s(plan, r),
        queueing: queueing(r),
        starved: starved::starved(plan, r),
        stranded: stranded(plan, &r.populations, r.is_deserted),
        slow_part: r.totals.latency.slow_part(),
        slow_parts: slow_parts(plan, r),
        is_mute: r.is_mute(),
        unended: r.unended(),
        unserved: r.populations.iter().map(PopulationRecord::unserved).sum(),
        words: Words::of(&r.totals.error_samples),
        wrong_messages: wrong_messages(plan, r),
        speaks_tls: r.speaks_tls,
        ..seen
    };
    evidence.add_times(r, timeout(plan, r));
    if plan.populations.len() > 1 {
        let name = |stall: Stall| plan.populations[usize::from(stall.population)].name.clone();
        evidence.stall_of = evidence.stall.map(name);
    }
    evidence
}

/// How long requests without a response waited: the longest timeout of the populations with timeouts, or of all populations.
fn timeout(plan: &Plan, r: &Record) -> Nanos {
    let has_waited = |(_, measured): &(&Population, &PopulationRecord)| {
        let is_one = |(fault, n): (Fault, u64)| fault.kind == Kind::Timeout && n > 0;
        measured.totals.counts.unanswered > 0 || measured.totals.faults.iter().any(is_one)
    };
    let waited = plan.populations.iter().zip(&r.populations).filter(has_waited);
    waited.map(|(population, _)| population.timeout).max().unwrap_or_else(|| plan.longest_timeout())
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture;
    use samples::{Stage, Tick};

    #[test]
    fn the_timeout_is_that_of_what_timed_out() {
        let (mut plan, mut r) = (fixture::plan(&[]), fixture::record());
        let mut other = plan.populations[0].clone();
        other.timeout = Nanos::from_secs(60);
        plan.populations.push(other);
        r.populations.push(PopulationRecord::default());
        assert_eq!(timeout(&plan, &r), Nanos::from_secs(60));
        r.populations[0].totals.faults.count(Fault::target(Stage::Exchange, Kind::Timeout));
        assert_eq!(timeout(&plan, &r), Nanos::from_secs(10));
        r.populations[1].totals.counts.unanswered = 1;
        assert_eq!(gather(&plan, &r, Subject::default()).timeout, Nanos::from_secs(60));
    }

    /// 20 connections at 200 requests per second, of which 100 are answered; response times grow by 100 ms per tick.
    #[test]
    fn a_queue_is_distinguished_from_slow_and_from_varied_responses() {
        let check = |quick_ms: u64, spread_ms: u64, expected: Queueing| {
            let mut r = fixture::record();
            let load = Load::Rate { connections: 20, rate: units::Rate::per_s(200) };
            let own = &mut r.populations[0];
            own.backlog = record::backlog::Backlog::of(load, Nanos::from_millis(200));
            for n in 0..15 {
                let (from, until) = (Nanos::from_millis(200 * n), Nanos::from_millis(200 * (n + 1)));
                let mut tick = Tick { from, until, phase: samples::Phase::Hold, ..Tick::default() };
                for nth in 0..20 {
                    tick.latency.record(Nanos::from_millis(quick_ms + 100 * n + spread_ms * nth / 19));
                }
                own.backlog.take(&tick);
                own.totals.latency.merge(&tick.latency);
            }
            (own.held, own.at_load) = (20, Nanos::from_secs(3));
            let counts = &mut own.totals.counts;
            (counts.sent, counts.answered_at_load, counts.missed) = (300, 300, 300);
            assert_eq!(queueing(&r), expected, "{quick_ms} ms, {spread_ms} ms");
            r.populations[0].totals.counts.missed = 0;
            assert_eq!(queueing(&r), Queueing::None);
        };
        // Each connection gets a response every 200 ms.
        check(10, 95, Queueing::InLine);
        check(10, 400, Queueing::Unclear);
        check(200, 95, Queueing::None);
    }

    #[test]
    fn arrivals_at_one_rate_have_one() {
        let (mut plan, mut r) = (fixture::plan(&[]), fixture::record());
        assert_eq!(arrivals_per_s(&plan, &r), None);
        plan.populations[0].load = Load::Arrivals { rate: units::Rate::per_s(50), total: None };
        assert_eq!(arrivals_per_s(&plan, &r), Some(50.0));
        plan.populations.push(plan.populations[0].clone());
        plan.probe = Some(plan::Probe::new(units::Rate::per_s(20), plan.populations[0].clone()));
        assert_eq!(arrivals_per_s(&plan, &r), Some(110.0));
        r.commands.push(samples::UserCommand::default());
        assert_eq!(arrivals_per_s(&plan, &r), None);
    }
}
