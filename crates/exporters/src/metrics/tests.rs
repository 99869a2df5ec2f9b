use samples::{AgentShare, AgentTicks};

use super::{agents::MAX_AGENTS, made_up::two_seconds, *};

/// The value of a series; for a histogram, of a part of it.
fn value(snapshot: &Snapshot, series: &str) -> Option<f64> {
    let parts = |sample: &Sample| {
        let named = |(ending, n): Part| (sample.series(ending), n);
        sample.value.parts(sample.metric().kind).into_iter().map(named).collect::<Vec<_>>()
    };
    let mut found = snapshot.samples.iter().flat_map(parts).filter(|(name, _)| name == series);
    let (one, further) = (found.next(), found.next());
    assert_eq!(further, None, "twice");
    one.unwrap_or_else(|| panic!("no {series}")).1
}

const OTHER: &str = "population=\"a,\\\"b\\\" =c\\\\\"";

#[test]
fn names_are_unique_and_follow_the_conventions() {
    for (at, metric) in TABLE.iter().enumerate() {
        let Metric { name, kind, help, .. } = metric;
        assert!(name.starts_with("throng_") && !help.is_empty(), "{name}");
        assert!(name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
        assert!(*kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        assert!(TABLE[..at].iter().all(|before| before.name != *name), "{name} twice");
    }
}

#[test]
fn a_series_has_the_labels_of_its_row() {
    let (blank, [_, last]) = two_seconds();
    for sample in blank.samples.iter().chain(&last.samples) {
        let metric = sample.metric();
        assert!(sample.labels.iter().map(|(name, _)| name).eq(metric.labels()), "{}", sample.series(""));
        let is_times = matches!(sample.value, Value::Times(_));
        assert_eq!(is_times, metric.kind == Kind::Histogram, "{}", metric.name);
    }
}

#[test]
fn closed_series_are_known_before_the_run() {
    let (blank, seconds) = two_seconds();
    let closed = |snapshot: &Snapshot| {
        let closed = snapshot.samples.iter().filter(|sample| !sample.metric().is_open);
        closed.map(|sample| sample.series("")).collect::<Vec<_>>()
    };
    for second in &seconds {
        assert_eq!(closed(&blank), closed(second));
    }
    assert!(!blank.samples.is_empty() && blank.samples.iter().all(|sample| !sample.metric().is_open));
}

#[test]
fn counters_add_up_and_gauges_do_not() {
    let (_, [_, second]) = two_seconds();
    let check =
        |series: &str, expected: Option<f64>| assert_eq!(value(&second, series), expected, "{series}");
    check("throng_connections_open{population=\"idle\"}", Some(20.0));
    check(&format!("throng_connections_open{{{OTHER}}}"), Some(2.0));
    check("throng_connections_wanted{population=\"idle\"}", Some(20.0));
    check("throng_requests_total{population=\"idle\"}", Some(3000.0));
    check("throng_answers_total{population=\"idle\"}", Some(2997.0));
    check("throng_received_bytes_total{population=\"idle\"}", Some(15e9));
    check("throng_statuses_total{population=\"idle\",status=\"200\"}", Some(2997.0));
    check(&format!("throng_statuses_total{{{OTHER},status=\"503\"}}"), Some(2.0));
    let fault = "side=\"target\",stage=\"exchange\",kind=\"wrong-status\"";
    check(&format!("throng_faults_total{{{OTHER},{fault}}}"), Some(2.0));
    let there = |name: &str, n: u8| format!("throng_destination_{name}{{destination=\"10.0.0.{n}:80\"}}");
    check(&there("connections_open", 1), Some(10.0));
    check(&there("connections_open", 2), Some(3.0));
    check(&there("requests_total", 1), Some(21.0));
    check(&there("answers_total", 2), Some(0.0));
    check(&there("faults_total", 2), Some(2.0));
    check(&there("without_response_total", 2), Some(3.0));
    check(&there("latency_seconds_count", 1), Some(2.0));
    check(&there("latency_seconds_max", 1), Some(0.002));
    check("throng_phase{phase=\"hold\"}", Some(1.0));
    check("throng_phase{phase=\"ramp\"}", Some(0.0));
    check("throng_generator_cpu_seconds_total{mode=\"system\"}", Some(0.1));
    check("throng_generator_cpu_seconds_total{mode=\"user\"}", Some(0.5));
    check("throng_target_open_files", Some(2.0));
    check("throng_target_open_files_limit", None);
    check("throng_host_tcp_events_total{host=\"generator\",event=\"listen_drops\"}", Some(10.0));
    check("throng_host_tcp_events_total{host=\"target\",event=\"listen_drops\"}", None);
    assert_eq!((second.at, second.elapsed), (Date(1_700_000_002_250), Nanos::from_secs(2)));
}

#[test]
fn times_have_their_buckets_and_the_quantiles_of_the_period() {
    let (_, [_, second]) = two_seconds();
    let series = "throng_latency_seconds{population=\"idle\"}";
    let sample = second.samples.iter().find(|sample| sample.series("") == series).unwrap();
    let Value::Times(times) = &sample.value else { panic!("{sample:?}") };
    // Values from 1 to 1,000 ms, and the even ones up to 2,000 ms.
    let at = |ms: u64| times.up_to[BOUNDS.iter().position(|bound| *bound == Nanos::from_millis(ms)).unwrap()];
    assert_eq!([1, 10, 100, 500, 1000, 2500].map(at), [1, 15, 150, 750, 1500, 2000]);
    let part = |ending: &str| value(&second, &sample.series(ending)).unwrap();
    assert_eq!((part("_count"), part("_max")), (2000.0, 2.0));
    assert!((part("_sum") - 1501.5).abs() < 1e-9, "{}", part("_sum"));
    assert!((part("_p50") - 1.0).abs() < 2e-3 && (part("_p99") - 1.98).abs() < 4e-3);
    assert_eq!(value(&second, &format!("throng_latency_seconds_p50{{{OTHER}}}")), None);
}

#[test]
fn one_population_needs_no_label() {
    let mut metrics_state = MetricsState::new(Date(0));
    metrics_state.begin(&Header { populations: vec!["main".to_owned()], ..Header::default() });
    let tick = Tick { open: 5, ..Tick::default() };
    let snapshot = metrics_state.tick(&tick, &Samples::default());
    assert_eq!(value(&snapshot, "throng_connections_open"), Some(5.0));
}

/// Agent a is lost in the second second; it has used 0.5 and 1 s of CPU, and no request was due for it. Agent b has all other counts.
#[test]
fn each_agent_has_its_own_figures() {
    let (_, [first, second]) = two_seconds();
    let check = |snapshot: &Snapshot, name: &str, a: Option<f64>, b: Option<f64>| {
        let of = |agent: &str| value(snapshot, &format!("throng_agent_{name}{{agent=\"{agent}\"}}"));
        assert_eq!((of("a"), of("b")), (a, b), "{name}");
    };
    check(&first, "up", Some(1.0), Some(1.0));
    check(&first, "connections_open", Some(10.0), Some(1.0));
    check(&second, "up", Some(0.0), Some(1.0));
    check(&second, "connections_open", Some(0.0), Some(2.0));
    check(&second, "processors", Some(2.0), Some(2.0));
    check(&second, "connects_total", Some(0.0), Some(30.0));
    check(&second, "requests_total", Some(0.0), Some(2997.0));
    check(&second, "faults_total", Some(0.0), Some(2.0));
    check(&second, "cpu_seconds_total", Some(1.5), Some(0.75));
    check(&second, "lag_p99_seconds", None, Some(0.004));
    let p99 = |agent: &str| value(&second, &format!("throng_agent_latency_p99_seconds{{agent=\"{agent}\"}}"));
    assert!(
        p99("a").is_none() && (1.978..1.984).contains(&p99("b").unwrap()),
        "{:?} {:?}",
        p99("a"),
        p99("b")
    );
    let states = |snapshot| {
        ["up", "silent", "lost"].map(|state| value(snapshot, &format!("throng_agents{{state=\"{state}\"}}")))
    };
    assert_eq!(states(&first), [2.0, 0.0, 0.0].map(Some));
    assert_eq!(states(&second), [1.0, 0.0, 1.0].map(Some));
}

/// Late values are counted from the next second on.
#[test]
fn an_agent_that_is_silent_has_no_present_figures() {
    let mut state = MetricsState::new(Date(0));
    let agents = ["a", "b"].map(|id| AgentShare { id: id.to_owned(), wanted: 9, cores: 2 });
    state.begin(&Header { agents: agents.into(), ..Header::default() });
    let second = |n: u64, reporting: &[usize]| {
        let mut agents = AgentTicks::default();
        let mut own = Tick { open: 4 + n, cpu_ns: 500_000_000, ..Tick::default() };
        own.counts.answered = 10 * n;
        reporting.iter().for_each(|place| own.report(*place, &mut agents));
        let (from, until) = (Nanos::from_secs(n), Nanos::from_secs(n + 1));
        Tick { from, until, agents: Some(Box::new(agents)), ..Tick::default() }
    };
    let seen = |snapshot: &Snapshot| {
        let of = |series: &str| value(snapshot, series);
        let silent = of("throng_agents{state=\"silent\"}").unwrap();
        let [open, requests, cpu] = ["connections_open", "requests_total", "cpu_seconds_total"]
            .map(|name| of(&format!("throng_agent_{name}{{agent=\"b\"}}")));
        (silent, open, requests, cpu)
    };
    let none = Samples::default();
    assert_eq!(seen(&state.tick(&second(1, &[0, 1]), &none)), (0.0, Some(5.0), Some(10.0), Some(0.5)));
    assert_eq!(seen(&state.tick(&second(2, &[0]), &none)), (1.0, None, Some(10.0), Some(0.5)));
    state.late(&second(2, &[1]));
    assert_eq!(seen(&state.tick(&second(3, &[0, 1]), &none)), (0.0, Some(7.0), Some(60.0), Some(1.5)));
}

#[test]
fn of_a_large_fleet_the_first_agents_have_series_and_all_are_counted() {
    let agents = |n: usize| {
        let mut state = MetricsState::new(Date(0));
        let agent = |at: usize| AgentShare { id: format!("load-{at}"), ..AgentShare::default() };
        state.begin(&Header { agents: (0..n).map(agent).collect(), ..Header::default() });
        let mut agents = AgentTicks::default();
        (0..n).for_each(|at| Tick::default().report(at, &mut agents));
        agents.lose(n.saturating_sub(1));
        state.tick(&Tick { agents: Some(Box::new(agents)), ..Tick::default() }, &Samples::default())
    };
    let named = |snapshot: &Snapshot| {
        let of_agents = snapshot.samples.iter().filter(|sample| sample.metric().labels() == ["agent"]);
        of_agents.map(|sample| &*sample.labels[0].1).collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!((named(&agents(0)), named(&agents(2)), named(&agents(MAX_AGENTS))), (0, 2, MAX_AGENTS));
    let large = agents(1_000);
    assert_eq!(named(&large), MAX_AGENTS);
    let last = format!("throng_agent_up{{agent=\"load-{}\"}}", MAX_AGENTS - 1);
    assert_eq!(value(&large, &last), Some(1.0));
    assert_eq!(value(&large, "throng_agents{state=\"up\"}"), Some(999.0));
    assert_eq!(value(&large, "throng_agents{state=\"lost\"}"), Some(1.0), "the last, which has no series");
    assert!(agents(0).samples.iter().all(|sample| !sample.series("").starts_with("throng_agent")));
}
