use super::*;
use crate::{Censored, Fault, FaultCount, Kind, ProbeSummary, Stage, Stalled};

fn of_run(name: &str) -> Figure {
    Figure::of_run(name).unwrap_or_else(|| panic!("no figure {name}"))
}

#[test]
fn subtracted_stalls_may_belong_to_the_figure() {
    let stalled = Some(Stalled { count: 20, share: 0.02, most: 40.0 });
    let times =
        Quantiles { count: 1_000, mean: 3.0, p90: 4.0, p99: 5.0, max: 9.0, stalled, ..Quantiles::default() };
    let check = |times: Quantiles, statistic, expected| {
        assert_eq!(times.at_most(statistic), expected, "{statistic:?}");
    };
    check(times, Statistic::P90, None);
    check(times, Statistic::P99, Some(45.0));
    check(times, Statistic::Max, Some(49.0));
    check(times, Statistic::Mean, Some(43.0));
    check(times, Statistic::Count, None);
    check(Quantiles { count: 9, p99: 1.0, ..Quantiles::default() }, Statistic::P99, None);
    // If some events never ended, another time is judged.
    let censored = Some(Censored { count: 90, share: 0.08, p90: Some(9.0), ..Censored::default() });
    check(Quantiles { censored, ..times }, Statistic::P90, Some(49.0));
    check(Quantiles { censored, ..times }, Statistic::P99, None);
}

#[test]
fn delays_of_our_own_may_belong_to_the_figure() {
    let times = Quantiles {
        count: 1_000,
        min: 2.0,
        p50: 3.0,
        p75: 3.5,
        p90: 4.0,
        p95: 5.0,
        p99: 900.0,
        max: 990.0,
        ..Quantiles::default()
    };
    let check = |statistic, late, most, expected| {
        assert_eq!(times.at_least(statistic, late, most), expected, "{statistic:?} {late}");
    };
    check(Statistic::P99, 20, 800.0, Some(100.0));
    // Not shorter than 95 % of the others, which were not delayed.
    check(Statistic::P99, 20, 1_000.0, Some(5.0));
    check(Statistic::P99, 100, 1_000.0, Some(3.5));
    check(Statistic::P99, 900, 1_000.0, Some(2.0));
    check(Statistic::Max, 2, 980.0, Some(900.0));
    check(Statistic::P99, 10, 1_000.0, None);
    check(Statistic::P90, 20, 1_000.0, None);
    check(Statistic::Max, 0, 1_000.0, None);
    check(Statistic::Count, 20, 1_000.0, None);
}

#[test]
fn requests_without_a_response_count_in_judged_figures() {
    let censored = Some(Censored { count: 5, share: 0.5, p50: Some(9.0), ..Censored::default() });
    let latency_us = Quantiles {
        count: 5,
        mean: 3.0,
        min: 1.0,
        p50: 3.0,
        p99: 8.0,
        max: 9.0,
        censored,
        ..Quantiles::default()
    };
    let connect_us = Quantiles { count: 2, p99: 5.0, max: 6.0, ..Quantiles::default() };
    let mut s =
        Summary { figures: Figures { latency_us, connect_us, ..Figures::default() }, ..Summary::default() };
    (s.requests.due, s.requests.per_s) = (9, 7.0);
    let of_a =
        Quantiles { censored: Some(Censored { count: 1, ..Censored::default() }), ..Quantiles::default() };
    s.populations.entry("a".to_owned()).or_default().latency_us = of_a;
    let check = |name: &str, expected| assert_eq!(of_run(name).judged(&s), expected, "{name}");
    check("latency_us.p50", Some(9.0));
    check("latency_us.p99", None);
    check("latency_us.mean", None);
    check("latency_us.max", None);
    check("latency_us.count", Some(5.0));
    check("latency_us.min", Some(1.0));
    check("connect_us.p99", Some(5.0));
    check("connect_us.max", Some(6.0));
    check("requests.per_s", Some(7.0));
    assert_eq!(Figure::of_population("a", "latency.p50").unwrap().judged(&s), None);
    let share = |name: &str| of_run(name).censored_share(&s);
    assert_eq!([share("latency_us.p99"), share("connect_us.p99"), share("seed")], [Some(0.5), None, None]);
}

#[test]
fn figures_are_read_by_their_names() {
    let mut s = Summary { seed: 9, ..Summary::default() };
    s.ramp_s = 1.5;
    let fault = |kind, count| FaultCount::new(Fault::target(Stage::Hold, kind), count);
    s.faults = vec![fault(Kind::Reset, 3), fault(Kind::Timeout, 4)];
    (s.requests.unanswered, s.requests.missed, s.requests.answered, s.errors.of) = (5, 2, 7, 14);
    s.requests.status.insert(200, 7);
    (s.latency_us.count, s.latency_us.p99, s.connections.wanted) = (2, 5.0, 3);
    s.cost.target_bytes = Some(Fit { value: 4_700.0, error: 20.0, r2: 0.95 });
    let check = |name: &str, expected| assert_eq!(of_run(name).value(&s), expected, "{name}");
    check("ramp_s", Some(1.5));
    check("seed", Some(9.0));
    check("faults", Some(7.0));
    assert_eq!(of_run("faults").judged(&s), Some(14.0));
    assert_eq!(of_run("faults").without_fault(&s), Some(7));
    check("requests.status.200", Some(7.0));
    check("status.404", Some(0.0));
    check("given_up", Some(0.0));
    check("latency.p99", Some(5.0));
    check("connect.p99", None);
    check("connect.count", Some(0.0));
    check("probe.p99", None);
    check("cost.target_bytes.value", Some(4_700.0));
    check("cost.target_bytes.error", Some(20.0));
    check("cost.target_bytes.r2", Some(0.95));
    check("cost.kernel_bytes.value", None);
    check("cost.ceiling_connections", None);
    check("observed.host.tcp_sockets.last", None);
    for name in ["weather", "latency.p98", "requests.per", "cost.target_bytes", "status.99", ""] {
        assert_eq!(Figure::of_run(name), None, "{name}");
    }
    s.faults.clear();
    assert_eq!(of_run("faults").value(&s).map(f64::is_sign_positive), Some(true));
    // Without an attempt there is nothing to count.
    s.errors.of = 0;
    assert_eq!([of_run("faults").value(&s), of_run("answered").value(&s)], [None, None]);
    s.probe = Some(ProbeSummary { sent: 4, answered: 3, ..ProbeSummary::default() });
    assert_eq!(of_run("probe.answered").value(&s), Some(3.0));
}

#[test]
fn a_figure_is_of_its_place() {
    let mut s = Summary::default();
    let own = s.populations.entry("users".to_owned()).or_default();
    (own.connections.wanted, own.connections.held, own.requests.due) = (9, 8, 5);
    let step = own.steps.entry("login".to_owned()).or_default();
    (step.latency_us.count, step.latency_us.p50) = (4, 2.5);
    let held = Figure::of_population("users", "held").unwrap();
    assert_eq!((held.path().as_str(), held.value(&s)), ("populations.users.connections.held", Some(8.0)));
    let latency = Figure::of_step("users", "login", "latency.p50").unwrap();
    assert_eq!(latency.path(), "populations.users.steps.login.latency_us.p50");
    assert_eq!((latency.population(), latency.step()), (Some("users"), Some("login")));
    assert_eq!(latency.value(&s), Some(2.5));
    assert_eq!(Figure::of_step("users", "login", "faults").unwrap().value(&s), Some(0.0));
    assert_eq!(Figure::of_step("users", "logout", "faults").unwrap().value(&s), None);
    assert_eq!(Figure::of_population("others", "held").unwrap().value(&s), None);
    for name in ["lag.p99", "seed", "elapsed", "cost.target_bytes.value", "observed.own.threads", "probe.p99"]
    {
        assert_eq!(Figure::of_population("users", name), None, "{name}");
    }
    assert_eq!(Figure::of_step("users", "login", "held"), None);
}

#[test]
fn the_share_without_a_response_is_known_or_zero_or_unknown() {
    let check = |latency_us, expected: Option<f64>| {
        let figures = Figures { latency_us, ..Figures::default() };
        let s = Summary { figures, ..Summary::default() };
        assert_eq!(Figure::of_comparison("latency_us.censored.share").unwrap().value(&s), expected);
    };
    let censored = |count, share| Quantiles {
        count,
        censored: Some(Censored { count: 1, share, ..Censored::default() }),
        ..Quantiles::default()
    };
    check(censored(9, 0.1), Some(0.1));
    check(censored(0, 1.0), Some(1.0));
    check(Quantiles { count: 9, ..Quantiles::default() }, Some(0.0));
    check(Quantiles::default(), None);
}

#[test]
fn what_a_row_refers_to_is_a_row() {
    for row in NUMBERS {
        for path in row.whole.iter().chain(&row.about) {
            assert!(NUMBERS.iter().any(|other| other.path == *path), "{}: {path}", row.path);
        }
    }
}
