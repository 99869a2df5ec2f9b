//! Judges thresholds against the summary.

use plan::Threshold;
use samples::{Figure, Place, Summary, ThresholdResult};
use units::{Count, percent};

/// The result of each threshold, in order.
pub(super) fn judge(thresholds: &[Threshold], s: &Summary) -> Vec<ThresholdResult> {
    let judged = thresholds.iter().map(|threshold| {
        let value = measured(threshold, s);
        let pass = value.is_some_and(|value| threshold.is_met_by(value));
        let why = || missing(&threshold.figure, s).or_else(|| in_the_ramp(&threshold.figure, s));
        let shown = value.map(|value| threshold.shown(value) + &among(&threshold.figure, s)).or_else(why);
        let shown = shown.unwrap_or_default();
        ThresholdResult { expr: threshold.text.clone(), value, shown, pass, unreliable: false }
    });
    judged.collect()
}

/// The measured value in the bound's unit; `None` if nothing was measured.
fn measured(threshold: &Threshold, s: &Summary) -> Option<f64> {
    let value = threshold.figure.judged(s)?;
    match threshold.is_share {
        true => threshold.figure.whole_value(s).map(|whole| value * 100.0 / whole),
        false => Some(value),
    }
}

/// The composition of a number of faults: ` (3 and 4 requests without a response)`.
fn among(figure: &Figure, s: &Summary) -> String {
    let without = figure.without_fault(s).filter(|n| *n > 0);
    let parts = figure.value(s).zip(without);
    parts.map_or(String::new(), |(faults, without)| {
        format!(" ({} and {} without a response)", Count(faults as u64), Count(without).of("request"))
    })
}

/// Leaves thresholds on the held connections of one population undecided, if `unattributed` connections may belong to any population.
pub(super) fn leave_held_open(thresholds: &[Threshold], results: &mut [ThresholdResult], unattributed: u64) {
    for (threshold, result) in thresholds.iter().zip(results) {
        let is_of_one = threshold.is_of_held() && threshold.figure.population().is_some();
        if unattributed > 0 && is_of_one {
            (result.value, result.pass) = (None, false);
            let waiting = Count(unattributed).of("connection");
            result.shown =
                format!("not known: {waiting} in the target's accept queue may be of any population");
        }
    }
}

/// Why a time has no value: the share of events that never ended, which count as longer than any bound.
fn missing(figure: &Figure, s: &Summary) -> Option<String> {
    let share = percent(figure.censored_share(s)?);
    let missing = match figure.times()? {
        "spread_us" => return Some(format!("{share} not received by all")),
        // Refused dials end immediately.
        "connect_us" | "probe.connect_us" => "connection",
        "tls_us" | "tls_resumed_us" | "handshake_us" => "handshake",
        // A wrong response to the probe counts as none.
        of if of.starts_with("probe.") => "correct response in time",
        _ => "response in time",
    };
    Some(format!("{share} had no {missing}"))
}

/// Why a step has no time: all of its requests were due in the ramp.
fn in_the_ramp(figure: &Figure, s: &Summary) -> Option<String> {
    let Place::Step(population, step) = &figure.place else { return None };
    let statistic = figure.key.strip_prefix("latency_us.")?;
    let count = s.populations.get(population)?.steps.get(step)?.ramp_latency_us.count;
    (count > 0).then(|| {
        format!(
            "nothing was measured at full load: all {} requests of the step were due in the ramp; use \
             {population}.{step}.ramp_latency.{statistic}",
            Count(count)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::fixture::fault;
    use samples::{Kind, Stage};
    use serde_json::Value;

    /// Checks (measured value, pass).
    fn check(expr: &str, expected: (Option<f64>, bool)) {
        let mut s = Summary::default();
        (s.connections.wanted, s.connections.held, s.connections.failed) = (1_000, 999, 1);
        (s.connections.opened, s.requests.due) = (999, 500);
        (s.requests.sent, s.requests.answered, s.requests.per_s) = (500, 400, 12_345.6);
        s.requests.status.extend([(200, 396), (503, 4)]);
        (s.latency_us.count, s.latency_us.p99) = (400, 150_000.5);
        s.errors.of = 500;
        s.faults = vec![fault(Stage::Hold, Kind::Reset, 3), fault(Stage::Dial, Kind::Timeout, 4)];
        let threshold = Threshold::parse(expr, &[]).unwrap_or_else(|e| panic!("{e}"));
        let result = &judge(&[threshold], &s)[0];
        assert_eq!((result.value, result.pass), expected, "{expr}");
        assert_eq!((result.expr.as_str(), result.shown.is_empty()), (expr, result.value.is_none()));
    }

    #[test]
    fn what_one_of_several_populations_has_held_may_not_be_known() {
        let check = |expr: &str, unattributed, expected: (Option<f64>, bool, &str)| {
            let mut s = Summary::default();
            let mut own = samples::PopulationSummary::default();
            (own.figures.connections.wanted, own.figures.connections.held) = (4, 4);
            (s.connections.wanted, s.connections.held) = (7, 4);
            s.populations.insert("readers".to_owned(), own);
            let mut populations = record::fixture::plan(&[]).populations;
            populations.push(populations[0].clone());
            for (population, name) in populations.iter_mut().zip(["readers", "writers"]) {
                name.clone_into(&mut population.name);
            }
            let threshold = [Threshold::parse(expr, &populations).unwrap_or_else(|e| panic!("{e}"))];
            let mut results = judge(&threshold, &s);
            leave_held_open(&threshold, &mut results, unattributed);
            let result = &results[0];
            assert_eq!((result.value, result.pass, result.shown.as_str()), expected, "{expr}");
        };
        let unknown = "not known: 3 connections in the target's accept queue may be of any population";
        check("readers.held >= 4", 3, (None, false, unknown));
        check("readers.held >= 4", 0, (Some(4.0), true, "4"));
        check("held >= 5", 3, (Some(4.0), false, "4"));
    }

    #[test]
    fn figures_are_held_against_their_bounds() {
        check("latency.p99 < 200ms", (Some(150_000.5), true));
        check("latency_us.p99 < 150000", (Some(150_000.5), false));
        check("faults == 0", (Some(7.0), false));
        check("faults <= 7", (Some(7.0), true));
        check("errors < 1%", (Some(0.0), true));
        check("held >= 99.9%", (Some(99.9), true));
        check("held >= 99.91%", (Some(99.9), false));
        check("held >= 999", (Some(999.0), true));
        check("failed <= 0", (Some(1.0), false));
        check("answered >= 80%", (Some(80.0), true));
        check("status.200 >= 79%", (Some(79.2), true));
        check("status.200 >= 80%", (Some(79.2), false));
        check("status.404 == 0", (Some(0.0), true));
        check("requests.per_s >= 12k/s", (Some(12_345.6), true));
    }

    #[test]
    fn requests_that_no_fault_ended_are_said_beside_the_faults() {
        let mut s = Summary::default();
        (s.requests.due, s.requests.missed, s.requests.unanswered, s.errors.of) = (20, 3, 1, 20);
        s.faults = vec![fault(Stage::Dial, Kind::Timeout, 3)];
        let result = &judge(&[Threshold::parse("faults <= 6", &[]).unwrap()], &s)[0];
        assert_eq!((result.value, result.pass), (Some(7.0), false));
        assert_eq!(result.shown, "7 (3 and 4 requests without a response)");
    }

    /// Without errors the rate is 0; without attempts there is no rate.
    #[test]
    fn without_an_error_their_rate_is_zero() {
        let check = |count: u64, of: u64, expected: Option<f64>| {
            let mut s = Summary::default();
            (s.errors.count, s.errors.of) = (count, of);
            let threshold = Threshold::parse("errors < 1%", &[]).unwrap_or_else(|e| panic!("{e}"));
            let result = &judge(&[threshold], &s)[0];
            assert_eq!((result.value, result.pass), (expected, expected.is_some_and(|value| value < 1.0)));
        };
        check(0, 500, Some(0.0));
        check(5, 500, Some(1.0));
        check(0, 0, None);
    }

    /// Percentiles that include responses only are not judged.
    #[test]
    fn requests_without_a_response_are_longer_than_any_bound() {
        let check = |answered: u64, without: u64, expr: &str, expected: (bool, bool)| {
            let mut s = Summary::default();
            let mut latency = samples::Latency::default();
            latency.record_n(units::Nanos::from_millis(2), answered);
            (0..without).for_each(|_| latency.censor());
            s.latency_us = latency.quantiles();
            let result = &judge(&[Threshold::parse(expr, &[]).unwrap()], &s)[0];
            assert_eq!((result.pass, result.value.is_some()), expected, "{answered} {without} {expr}");
            let share = without as f64 / (answered + without) as f64;
            let missing = format!("{} had no response in time", percent(share));
            assert_eq!(result.measured() == missing, result.value.is_none(), "{result:?}");
        };
        check(990, 10, "latency.p99 < 50ms", (true, true));
        check(989, 11, "latency.p99 < 50ms", (false, false));
        check(989, 11, "latency.p90 < 50ms", (true, true));
        check(999, 1, "latency.max < 50ms", (false, false));
        check(999, 1, "latency.mean < 50ms", (false, false));
        check(999, 1, "latency.min < 50ms", (true, true));
        check(0, 5, "latency.p50 < 50ms", (false, false));
        check(1_000, 0, "latency.max < 50ms", (true, true));
        // Nor does it prove that something is slow.
        check(900, 100, "latency.p99 > 1ms", (false, false));
    }

    #[test]
    fn what_a_time_is_missing_is_what_it_ends_with() {
        let mut times = samples::Latency::default();
        times.censor();
        let q = times.quantiles();
        let mut s = Summary::default();
        (s.connect_us, s.tls_us, s.handshake_us, s.latency_us, s.spread_us) = (q, q, q, q, q);
        s.probe = Some(samples::ProbeSummary { latency_us: q, connect_us: q, ..Default::default() });
        for (figure, missing) in [
            ("connect", "connection"),
            ("probe.connect", "connection"),
            ("tls", "handshake"),
            ("handshake", "handshake"),
            ("probe", "correct response in time"),
            ("latency", "response in time"),
        ] {
            let threshold = Threshold::parse(&format!("{figure}.p99 < 5ms"), &[]).unwrap();
            assert_eq!(judge(&[threshold], &s)[0].shown, format!("100 % had no {missing}"));
        }
        let broadcasts = Threshold::parse("spread.p99 < 5ms", &[]).unwrap();
        assert_eq!(judge(&[broadcasts], &s)[0].shown, "100 % not received by all");
    }

    #[test]
    fn an_unmeasured_figure_meets_no_threshold() {
        check("connect.p99 < 1s", (None, false));
        check("connect.p99 >= 0", (None, false));
        check("connect.count == 0", (Some(0.0), true));
        check("probe.p99 < 50ms", (None, false));
        check("target_cost.cpu_s < 5", (None, false));
        check("seen_by_target > 1", (None, false));
    }

    #[test]
    fn shares_of_nothing_are_none() {
        let threshold = Threshold::parse("answered >= 0%", &[]).unwrap();
        assert_eq!(judge(&[threshold], &Summary::default())[0].value, None);
    }

    /// If the number is read from a wrong place, losses are unknown.
    #[test]
    fn of_messages_without_a_number_none_is_known_to_be_lost() {
        let check = |numbered: u64, expr: &str, expected: (Option<f64>, bool)| {
            let mut s = Summary::default();
            (s.pushes.count, s.pushes.numbered, s.pushes.unread) = (90, numbered, 90 - numbered);
            let pushes = s.pushes.clone();
            s.populations.entry("fans".into()).or_default().pushes = pushes;
            let threshold = Threshold::parse(expr, &[fans()]).unwrap_or_else(|e| panic!("{e}"));
            let result = &judge(&[threshold], &s)[0];
            assert_eq!((result.value, result.pass), expected, "{numbered} {expr}");
            assert_eq!(result.measured() == "nothing was measured", expected.0.is_none(), "{result:?}");
        };
        for expr in ["lost == 0", "duplicates == 0", "out_of_order == 0", "pushes.restarts == 0"] {
            check(0, expr, (None, false));
            check(90, expr, (Some(0.0), true));
        }
        check(0, "fans.lost == 0", (None, false));
        check(0, "lost <= 1%", (None, false));
        check(0, "pushes.numbered >= 0", (Some(0.0), true));
        check(0, "pushes.unread == 0", (Some(90.0), false));
    }

    #[test]
    fn a_step_of_the_ramp_has_its_own_figure() {
        let mut s = Summary::default();
        let mut times = samples::Latency::default();
        times.record_n(units::Nanos::from_millis(2), 30);
        let login = samples::StepSummary { ramp_latency_us: times.quantiles(), ..Default::default() };
        let step = fans().step_names()[0].to_owned();
        s.populations.entry("fans".into()).or_default().steps.insert(step.clone(), login);
        let judged = |expr: &str| {
            let threshold = Threshold::parse(expr, &[fans()]).unwrap_or_else(|e| panic!("{e}"));
            judge(&[threshold], &s).remove(0)
        };
        let none = judged(&format!("fans.{step}.latency.p99 < 1s"));
        assert!(!none.pass && none.value.is_none());
        assert_eq!(
            none.measured(),
            format!(
                "nothing was measured at full load: all 30 requests of the step were due in the ramp; use \
                 fans.{step}.ramp_latency.p99"
            )
        );
        assert!(judged(&format!("fans.{step}.ramp_latency.p99 < 1s")).pass);
    }

    fn fans() -> plan::Population {
        let mut population = record::fixture::plan(&[]).populations.remove(0);
        "fans".clone_into(&mut population.name);
        population
    }

    /// Every number of a summary can be used in a threshold.
    #[test]
    fn every_number_has_a_name() {
        let mut s = Summary::default();
        s.requests.status.insert(204, 1);
        s.target_cost = Some(samples::ProcessCost::default());
        s.kernel_bytes_per_connection = Some(samples::KernelCost { value: 1.0, both_ends: true });
        s.connections.seen_by_target = Some(1);
        s.generator.cpu_share = Some(0.5);
        let c = &mut s.connections;
        (c.arriving, c.lost, c.forced, c.given_up, c.accept_per_s) = (1, 1, 1, 1, 1.0);
        (c.bent_at, c.unaccepted, c.quiet_s) = (Some(1), Some(1), Some(1.0));
        (s.requests.lost, s.pushes.clock_offset_us) = (1, Some(0.0));
        let fit = Some(samples::Fit { value: 1.0, error: 0.1, r2: 0.99 });
        (s.cost.target_bytes, s.cost.generator_cpu_us_per_open) = (fit, fit);
        (s.cost.ceiling_connections, s.cost.target_live_bytes) = (Some(1), Some(1.0));
        s.observed.host = Some(samples::HostSeen::default());
        let mut unnamed = Vec::new();
        numbers(&serde_json::to_value(&s).unwrap(), "", &mut |path| {
            if Threshold::parse(&format!("{path} >= 0"), &[]).is_err() {
                unnamed.push(path.to_owned());
            }
        });
        assert!(unnamed.is_empty(), "not in samples::NUMBERS: {unnamed:?}");
    }

    fn numbers(value: &Value, path: &str, take: &mut dyn FnMut(&str)) {
        if value.is_number() {
            take(path.trim_start_matches('.'));
        }
        let fields = value.as_object().into_iter().flatten();
        fields.for_each(|(key, value)| numbers(value, &format!("{path}.{key}"), take));
    }
}
