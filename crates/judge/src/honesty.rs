//! Whether the figures can be trusted: was throng itself slow, and do the counts agree with each other and with the target's host?

use plan::{DEFAULT_MAX_LAG, Plan, Population, Threshold};
use samples::{
    AgentState, AgentSummary, Figure, Kind, Quantiles, Side, Stage, Statistic, Summary, ThresholdResult,
};
use units::{Count, Nanos};

use super::{
    evidence::Facts,
    evidence::{Evidence, OwnSeen},
};
use record::{ends::BothSides, tolerances::NEARLY_ALL};

/// Maximum lag as a share of the latency, besides `--max-lag`: with more, the latency is not the target's alone.
const LAG_SHARE: f64 = 0.05;
/// Tolerance between the counts of both ends, absolute and as a share: some connections open or close between the two counts.
const ENDS_DIFFER: u64 = 10;
const ENDS_DIFFER_SHARE: f64 = 0.001;
/// Tolerance between outstanding requests and rate × latency, as a share.
const LITTLE: f64 = 0.05;

/// Dials that this machine failed to make: then the target cannot be judged.
pub(super) fn undialled(s: &Summary) -> Option<String> {
    let ours = s.faults.iter().filter(|f| f.side == Side::Host && f.stage == Stage::Dial);
    let n: u64 = ours.map(|f| f.count).sum();
    (n > 0).then(|| format!("{} could not be dialled by this machine", Count(n).of("connection")))
}

/// Reports lag: requests that were sent, or responses that were read, too late for their latency to be the target's. Checked at p99, and at
/// the higher percentiles that thresholds judge.
pub(super) fn late(s: &Summary, judged: &[Statistic], max_lag: Nanos) -> Option<String> {
    type Of = fn(&Quantiles) -> f64;
    const AT: [(&str, Statistic, Of); 4] = [
        ("p99", Statistic::P99, |q| q.p99),
        ("p999", Statistic::P999, |q| q.p999),
        ("p9999", Statistic::P9999, |q| q.p9999),
        ("max", Statistic::Max, |q| q.max),
    ];
    let is_judged = |own: &Statistic| *own == Statistic::P99 || judged.contains(own);
    let late = AT.iter().filter(|(_, own, _)| is_judged(own)).find_map(|(name, _, of)| {
        let (lag, allowed) = (of(&s.lag_us), allowed(max_lag, of(&s.latency_us)));
        (lag > allowed).then_some((name, lag, allowed))
    });
    late.map(|(name, lag, allowed)| format!("throng was late: lag {name} {}", beyond(lag, max_lag, allowed)))
}

/// The maximum lag for a latency, both in microseconds.
fn allowed(max_lag: Nanos, latency_us: f64) -> f64 {
    (max_lag.0 as f64 / 1e3).max(LAG_SHARE * latency_us)
}

/// Text for a lag, its limit and where the limit comes from, with enough digits for the two to differ and for none to be zero.
fn beyond(lag_us: f64, max_lag: Nanos, allowed_us: f64) -> String {
    let from = if allowed_us > max_lag.0 as f64 / 1e3 {
        "5 % of the latency, more than --max-lag"
    } else {
        "--max-lag"
    };
    let in_ms = |digits: usize| [lag_us, allowed_us].map(|us| format!("{:.digits$} ms", us / 1e3));
    // Times are measured in nanoseconds: more digits are not known.
    let is_shown = |ms: &str| allowed_us == 0.0 || ms.contains(|c: char| ('1'..='9').contains(&c));
    let differ = (1..=6).map(in_ms).find(|[lag, allowed]| lag != allowed && is_shown(allowed));
    let [lag, allowed] = differ.unwrap_or_else(|| in_ms(6));
    format!("{lag} > {allowed} ({from})")
}

/// Mentions throng's lag beside times that failed a threshold, if `--max-lag` allows more than the default does: the lag is part of these
/// times, and may be why they failed.
pub(super) fn name_own_lag(plan: &Plan, s: &mut Summary) {
    let lag = s.lag_us.p99;
    let is_allowed = late(s, &[], plan.max_lag).is_none();
    if !is_allowed || lag <= allowed(DEFAULT_MAX_LAG, s.latency_us.p99) {
        return;
    }
    for (threshold, result) in plan.thresholds.iter().zip(&mut s.thresholds) {
        let Some(value) = result.value.filter(|_| threshold.figure.is_latency() && !result.pass) else {
            continue;
        };
        let so = match threshold.is_met_by(value - lag) {
            true => ", without which it may have been met",
            false => "",
        };
        let lag = threshold.figure.unit.brief(lag);
        result.shown += &format!(", including throng's own lag (p99 {lag}){so}");
    }
}

/// Agents that were late even if the fleet as a whole was not: the latency of their share is not the target's.
pub(super) fn late_agents(s: &Summary, max_lag: Nanos) -> Vec<String> {
    let allowed = allowed(max_lag, s.latency_us.p99);
    let all: u64 = s.agents.iter().map(|agent| agent.wanted).sum();
    let late = |agent: &AgentSummary| {
        let lag = agent.lag_p99_us.filter(|lag| *lag > allowed)?;
        let (beyond, id, busy) =
            (beyond(lag, max_lag, allowed), &agent.id, agent.cpu_share.unwrap_or(0.0) * 1e2);
        let (own, all) = (Count(agent.wanted), Count(all).of("connection"));
        Some(format!(
            "agent {id} was late: lag p99 {beyond} at {busy:.0} % CPU, so the latency of its {own} of {all} \
            is not the target's"
        ))
    };
    s.agents.iter().filter_map(late).collect()
}

/// The reason why a threshold on a time cannot be judged: throng stalled (or was late to dial), and the threshold may be met or not within
/// the resulting range of the value.
pub(crate) fn unsure(
    facts: &Facts,
    s: &Summary,
    threshold: &Threshold,
    result: &ThresholdResult,
) -> Option<String> {
    let (value, figure) = (result.value?, &threshold.figure);
    let (times, statistic) = figure.distribution(s).zip(figure.statistic())?;
    let (late, delay) = late_dials(facts, figure);
    let least = times.at_least(statistic, late, delay.0 as f64 / 1e3).unwrap_or(value);
    let most = times.at_most(statistic).unwrap_or(value);
    (threshold.is_met_by(least) != threshold.is_met_by(most)).then(|| {
        let (least, most) = (Nanos((least * 1e3) as u64).brief(), Nanos((most * 1e3) as u64).brief());
        let expr = &threshold.text;
        format!(
            "threshold {expr} cannot be judged: throng stalled, so the value is between {least} and {most}"
        )
    })
}

/// Number of dials that a stall of throng delayed, within the scope of a figure of connect time, and the longest delay. Connect time starts
/// when the dial was due, and the lag of requests does not include it.
fn late_dials(facts: &Facts, figure: &Figure) -> (u64, Nanos) {
    let of = figure.population();
    if figure.times() != Some("connect_us") {
        return (0, Nanos::ZERO);
    }
    let all = facts.plan.populations.iter().zip(facts.populations);
    let own = all.filter(|(population, _)| of.is_none_or(|name| population.name == name));
    own.fold((0, Nanos::ZERO), |(late, longest), (_, measured)| {
        (late + measured.totals.late_dials, longest.max(measured.totals.dial_lag))
    })
}

/// The reason, if throng's threads had no spare CPU at full load.
pub(super) fn saturated(e: &Evidence) -> Option<String> {
    let OwnSeen { cpu_share, demand } = e.own.filter(|own| own.demand >= NEARLY_ALL)?;
    Some(if cpu_share >= NEARLY_ALL {
        format!("throng's threads used {:.0} % of their processors", cpu_share * 100.0)
    } else {
        let (ready, ran) = (demand * 100.0, cpu_share * 100.0);
        format!(
            "throng was short of CPU: its threads were runnable for {ready:.0} % of the time, and ran for \
            {ran:.0} %"
        )
    })
}

/// The reason, if TLS handshakes timed out while throng's threads had no spare CPU during the ramp: throng does half of the work of a
/// handshake.
pub(super) fn late_handshakes(s: &Summary) -> Option<String> {
    let timed_out = s.faults.iter().filter(|f| f.stage == Stage::Tls && f.kind == Kind::Timeout);
    let n: u64 = timed_out.map(|f| f.count).sum();
    // In a fleet this process is the coordinator, which does no handshakes.
    let own = s.observed.own.as_ref().filter(|_| n > 0 && s.agents.is_empty())?;
    let over_ns = s.ramp_s * 1e9 * f64::from(s.threads.max(1));
    let used = (own.cpu_user_ns.ramp + own.cpu_system_ns.ramp) as f64;
    let wanted = used + own.run_queue_wait_ns.ramp as f64;
    (s.ramp_s > 0.0 && wanted >= NEARLY_ALL * over_ns).then(|| {
        format!(
            "throng's threads were runnable for {:.0} % of the ramp and ran for {:.0} %, and {} timed out: \
            throng was short of CPU for its own part of them",
            (wanted / over_ns).min(1.0) * 100.0,
            (used / over_ns).min(1.0) * 100.0,
            Count(n).of("TLS handshake")
        )
    })
}

/// Whether throng was late enough to cause a timeout of a dial or request, or had no spare CPU.
pub(super) fn is_too_slow(s: &Summary, e: &Evidence) -> bool {
    saturated(e).is_some() || is_of_timeout(e, s.lag_us.max.max(s.generator.stall_us))
}

/// Whether the time that throng lost is long enough to cause a timeout.
pub(super) fn is_of_timeout(e: &Evidence, lost_us: f64) -> bool {
    let timeout_us = e.timeout.0 as f64 / 1e3;
    timeout_us > 0.0 && 2.0 * lost_us >= timeout_us
}

/// Whether in all populations each response is immediately followed by the next request.
pub(super) fn is_closed_loop(plan: &Plan) -> bool {
    plan.populations.iter().all(Population::is_closed_loop)
}

/// Reports connections that throng counts as open and the target's host does not. `missing`: their number, if each connection was looked
/// for. `gone_since`: otherwise, the number of connections that were lost or closed after the load had ended; they were counted here, and
/// may have been gone when the target's host was counted.
pub(super) fn half_open(both: Option<BothSides>, missing: Option<u64>, gone_since: u64) -> Option<String> {
    let BothSides { here, there } = both?;
    let missing = missing.unwrap_or_else(|| here.saturating_sub(there + gone_since));
    let allowed = ENDS_DIFFER.max((here as f64 * ENDS_DIFFER_SHARE) as u64);
    let (here, there) = (Count(here).of("connection"), Count(there));
    (missing > allowed).then(|| {
        format!(
            "the two ends disagree: {here} open on this machine, {there} according to the \
            target's host"
        )
    })
}

/// Little's law (J. D. C. Little, 1961): outstanding requests = rate × latency. `under_way`: mean of the outstanding requests at full load.
/// If the equation fails by more than the edges of the measurement explain, a count or a clock is wrong.
pub(super) fn littles_law(s: &Summary, under_way: f64) -> Option<String> {
    if s.duration_s <= 0.0 || s.latency_us.count == 0 || under_way <= 0.0 {
        return None;
    }
    // While a connection is redialled, its next request is due and not yet outstanding.
    if s.connections.redialled as f64 > LITTLE * s.requests.answered as f64 {
        return None;
    }
    // Requests without a response were outstanding until their timeout, and have no latency.
    if s.latency_us.censored.is_some() {
        return None;
    }
    // The requests of a lost agent are not outstanding until other agents take them over.
    if s.agents.iter().any(|agent| agent.state == AgentState::Lost) {
        return None;
    }
    let expected = s.requests.per_s * s.latency_us.mean / 1e6;
    // Requests outstanding at either end are included in only one of the figures.
    let edges = 2.0 * s.latency_us.max / 1e6 / s.duration_s;
    let differs = (expected / under_way - 1.0).abs() > LITTLE + edges;
    differs.then(|| {
        format!(
            "warning: the figures disagree: {under_way:.1} requests outstanding, but rate × latency is \
            {expected:.1}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thresholds;
    use record::fixture::plan;

    #[test]
    fn lag_is_held_against_the_larger_of_two() {
        let check = |lag_ms: f64, latency_ms: f64, expected: bool| {
            let mut s = Summary::default();
            (s.lag_us.p99, s.latency_us.p99) = (lag_ms * 1e3, latency_ms * 1e3);
            assert_eq!(late(&s, &[], DEFAULT_MAX_LAG).is_some(), expected, "{lag_ms} {latency_ms}");
        };
        check(9.9, 1.0, false);
        check(10.1, 1.0, true);
        check(49.0, 1_000.0, false);
        check(51.0, 1_000.0, true);
        // A stall that only the longest latency includes matters if the maximum is judged.
        let mut s = Summary::default();
        (s.lag_us.max, s.latency_us.max) = (1e6, 2e6);
        assert_eq!(
            [late(&s, &[], DEFAULT_MAX_LAG), late(&s, &[Statistic::P999, Statistic::P50], DEFAULT_MAX_LAG)],
            [None, None]
        );
        let seen = "throng was late: lag max 1000.0 ms > 100.0 ms (5 % of the latency, more than --max-lag)";
        assert_eq!(late(&s, &[Statistic::Max], DEFAULT_MAX_LAG).as_deref(), Some(seen));
        // A limit set by the user.
        let mut s = Summary::default();
        s.lag_us.p99 = 40_000.0;
        let seen = "throng was late: lag p99 40.0 ms > 30.0 ms (--max-lag)";
        assert_eq!(late(&s, &[], Nanos::from_millis(30)).as_deref(), Some(seen));
        assert_eq!(late(&s, &[], Nanos::from_millis(50)), None);
    }

    #[test]
    fn a_lag_and_its_limit_are_told_apart() {
        let check = |lag_us: f64, expected: &str| {
            let mut s = Summary::default();
            s.lag_us.p99 = lag_us;
            let seen = late(&s, &[], DEFAULT_MAX_LAG).unwrap_or_default();
            assert_eq!(seen, format!("throng was late: lag p99 {expected} (--max-lag)"));
        };
        check(10_100.0, "10.1 ms > 10.0 ms");
        check(10_040.0, "10.04 ms > 10.00 ms");
        check(10_000.4, "10.0004 ms > 10.0000 ms");
        check(10_000.000_1, "10.000000 ms > 10.000000 ms");
        assert_eq!(beyond(200.0, Nanos::from_micros(1), 1.0), "0.200 ms > 0.001 ms (--max-lag)");
        assert_eq!(beyond(0.4, Nanos::ZERO, 0.0), "0.0004 ms > 0.0000 ms (--max-lag)");
    }

    #[test]
    fn a_time_that_failed_names_the_lag_that_the_user_allowed() {
        let check = |max_lag_ms: u64, lag_ms: f64, exprs: [&str; 2], expected: [&str; 2]| {
            let mut plan = plan(&exprs);
            plan.max_lag = Nanos::from_millis(max_lag_ms);
            let mut s = Summary::default();
            (s.latency_us.count, s.latency_us.p99, s.lag_us.p99) = (1_000, 45_000.0, lag_ms * 1e3);
            (s.connections.wanted, s.connections.held) = (7, 7);
            s.thresholds = thresholds::judge(&plan.thresholds, &s);
            name_own_lag(&plan, &mut s);
            let shown: Vec<&str> = s.thresholds.iter().map(|result| result.shown.as_str()).collect();
            assert_eq!(shown, expected, "{max_lag_ms} {lag_ms}");
        };
        let failing = ["latency.p99 < 20ms", "held > 7"];
        let part = "45.0 ms, including throng's own lag (p99 14.0 ms)";
        check(50, 14.0, failing, [part, "7"]);
        let why = "45.0 ms, including throng's own lag (p99 26.0 ms), without which it may have been met";
        check(50, 26.0, failing, [why, "7"]);
        check(50, 26.0, ["latency.p99 < 50ms", "held > 7"], ["45.0 ms", "7"]);
        // A lag below the default limit is not mentioned, and a lag above the limit makes the run invalid.
        check(50, 9.0, failing, ["45.0 ms", "7"]);
        check(10, 14.0, failing, ["45.0 ms", "7"]);
    }

    #[test]
    fn a_saturated_generator_is_explained() {
        let check = |cpu_share: f64, demand: f64, expected: Option<&str>| {
            let evidence = Evidence { own: Some(OwnSeen { cpu_share, demand }), ..Evidence::default() };
            let reason = saturated(&evidence);
            assert_eq!(reason.is_some(), expected.is_some(), "{reason:?}");
            assert!(reason.unwrap_or_default().contains(expected.unwrap_or_default()));
        };
        check(0.96, 0.97, Some("used 96 %"));
        check(0.5, 0.99, Some("short of CPU"));
        check(0.9, 0.94, None);
        assert_eq!(saturated(&Evidence::default()), None);
    }

    #[test]
    fn handshakes_that_time_out_are_ours_where_our_processors_were_used_up() {
        use samples::{FaultCount, Observation, Phase, ProcessSample};
        let check = |kind, cpu_s: f64, waited_s: f64, expected: Option<&str>| {
            let mut s = Summary::default();
            (s.ramp_s, s.threads) = (4.0, 2);
            s.faults = vec![FaultCount::new(samples::Fault::target(Stage::Tls, kind), 70)];
            let mut seen = Observation::default();
            let ns = |s: f64| (s * 1e9) as u64;
            for (cpu_s, waited_s) in [(0.0, 0.0), (cpu_s, waited_s)] {
                let (cpu_user_ns, run_queue_wait_ns) = (ns(cpu_s), ns(waited_s));
                let process = ProcessSample { cpu_user_ns, run_queue_wait_ns, ..ProcessSample::default() };
                seen.see_here(Phase::Ramp, &samples::HostSample::default(), &process);
            }
            s.observed = seen;
            let reason = late_handshakes(&s);
            assert_eq!(reason.is_some(), expected.is_some(), "{reason:?}");
            assert!(reason.unwrap_or_default().contains(expected.unwrap_or_default()));
        };
        // Two threads for four seconds.
        check(
            Kind::Timeout,
            7.8,
            0.0,
            Some("runnable for 98 % of the ramp and ran for 98 %, and 70 TLS handshakes"),
        );
        check(Kind::Timeout, 4.0, 3.9, Some("runnable for 99 % of the ramp and ran for 50 %"));
        check(Kind::Timeout, 7.5, 0.0, None);
        check(Kind::Expired, 8.0, 0.0, None);
    }

    #[test]
    fn ends_may_differ_a_little() {
        let check = |here, there, expected: bool| {
            assert_eq!(
                half_open(Some(BothSides { here, there }), None, 0).is_some(),
                expected,
                "{here} {there}"
            );
        };
        check(100, 100, false);
        check(100, 90, false);
        check(100, 89, true);
        check(1_000_000, 999_000, false);
        check(1_000_000, 998_999, true);
        // The target's host may count other clients' connections, too.
        check(100, 5_000, false);
        assert_eq!(half_open(None, Some(50), 0), None);
    }

    #[test]
    fn what_timed_out_after_it_was_counted_is_no_half_open_connection() {
        let check = |there, gone_since, expected: Option<&str>| {
            let reason = half_open(Some(BothSides { here: 300, there }), None, gone_since);
            let seen = reason.as_deref().map(|reason| reason.split_once(": ").expect("it has numbers").1);
            assert_eq!(seen, expected, "{there} {gone_since}");
        };
        let disagree = "300 connections open on this machine, 121 according to the target's host";
        check(121, 0, Some(disagree));
        check(121, 100, Some(disagree));
        check(121, 292, None);
        check(290, 0, None);
    }

    #[test]
    fn what_existed_here_only_is_not_excused_by_its_timeouts() {
        let is_one = |missing, gone_since| {
            half_open(Some(BothSides { here: 200, there: 159 }), missing, gone_since).is_some()
        };
        assert!(is_one(Some(41), 41), "it was lost after the load had ended because it never was");
        assert!(!is_one(None, 41));
        // Connections closed between the two counts, as by an idle timeout, or completed before the end.
        assert!(!is_one(Some(0), 0) && !is_one(Some(10), 0));
    }

    #[test]
    fn littles_law_is_held_against_rate_and_latency() {
        let check = |under_way: f64, per_s: f64, mean_ms: f64, max_ms: f64, expected: bool| {
            let mut s = Summary::default();
            (s.duration_s, s.requests.per_s) = (10.0, per_s);
            (s.latency_us.count, s.latency_us.mean, s.latency_us.max) = (100, mean_ms * 1e3, max_ms * 1e3);
            assert_eq!(littles_law(&s, under_way).is_some(), expected, "{under_way} {per_s} {mean_ms}");
        };
        check(50.0, 1_000.0, 50.0, 60.0, false);
        check(50.0, 1_000.0, 48.0, 60.0, false);
        check(50.0, 1_000.0, 40.0, 60.0, true);
        check(50.0, 1_200.0, 50.0, 60.0, true);
        // Requests as long as the measurement: no statement is possible.
        check(50.0, 5.0, 4_000.0, 5_000.0, false);
        check(0.0, 0.0, 0.0, 0.0, false);
        // A server that closes each connection after its response.
        let mut s = Summary::default();
        (s.duration_s, s.requests.per_s, s.requests.answered) = (10.0, 1_000.0, 10_000);
        (s.latency_us.count, s.latency_us.mean, s.latency_us.max) = (10_000, 50e3, 60e3);
        for (redialled, expected) in [(0, true), (400, true), (9_995, false)] {
            s.connections.redialled = redialled;
            assert_eq!(littles_law(&s, 40.0).is_some(), expected, "{redialled}");
        }
        s.connections.redialled = 0;
        for (state, expected) in [(AgentState::Done, true), (AgentState::Lost, false)] {
            s.agents = vec![AgentSummary { state, ..AgentSummary::default() }];
            assert_eq!(littles_law(&s, 40.0).is_some(), expected, "{state:?}");
        }
    }
}
