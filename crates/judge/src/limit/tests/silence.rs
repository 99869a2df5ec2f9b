//! Silences, stops and shared processors; connections in a queue.

use samples::{AgentSummary, PopulationSummary};

use super::*;
use crate::{
    evidence::{Shared, Stall, State},
    starved::Starved,
};

/// A run that failed a threshold on latency: responses usually take half a millisecond, and `max_ms` at most.
fn slow(max_ms: f64) -> Summary {
    let mut s = stopped(1_000, Vec::new());
    (s.connections.opened, s.connections.peak) = (1_000, 1_000);
    (s.latency_us.count, s.latency_us.p50, s.latency_us.max) = (5_000, 500.0, max_ms * 1e3);
    s
}

fn silent(state: State) -> Evidence {
    let stall = Stall { from_s: 8.0, until_s: 10.0, count: 1, is_over: true, state, ..Stall::default() };
    Evidence { stall: Some(stall), timeout: Nanos::from_secs(10), ..target(TargetSeen::default()) }
}

#[test]
fn a_target_that_goes_silent_and_recovers_is_named_with_its_state() {
    for (state, detail, fix) in [
        (State::Unseen, "from second 8.0 to 10.0 (2.0 s), while throng was on time", "its log"),
        (State::Stopped, "state T", "SIGSTOP"),
        (State::Blocked, "state D", "iostat"),
        (State::Collecting, "collecting garbage", "heap"),
        (State::Cpu, "all of its CPU", "perf"),
        (State::Idle, "little CPU", "a lock"),
    ] {
        check(&slow(2_010.0), &silent(state), ("target", "stall", 1_000, detail, fix));
    }
    let mut often = silent(State::Idle);
    often.stall.as_mut().unwrap().count = 4;
    check(&slow(2_010.0), &often, ("target", "stall", 1_000, "the longest of 4 times", ""));
    assert_eq!(limit(&slow(2_010.0), &often).unwrap().certainty, Certainty::Seen);
    // Ticks show only the middle of the silence; the longest response shows its length.
    check(&slow(2_300.0), &often, ("target", "stall", 1_000, "from second 7.8 to 10.2 (2.3 s)", ""));
}

#[test]
fn of_a_silence_in_which_segments_were_sent_again_the_path_is_suspected() {
    let found = |state, retrans_segs, syn_retrans, is_loopback| {
        let mut e = silent(state);
        (e.here.net.retrans_segs, e.here.net.syn_retrans, e.subject.is_loopback) =
            (retrans_segs, syn_retrans, is_loopback);
        let limit = limit(&slow(2_010.0), &e).expect("something stopped it");
        assert_eq!(limit.cause, Cause::Stall);
        limit.sentence.ends_with("segments were sent again: perhaps the path was interrupted")
            && limit.fix.starts_with("check the path at that time")
    };
    for state in [State::Idle, State::Unseen] {
        assert!(found(state, 100, 0, false));
        // Too few, or dials, or packets that do not leave the machine.
        assert!(!found(state, 99, 0, false) && !found(state, 150, 60, false) && !found(state, 100, 0, true));
    }
    assert!(!found(State::Cpu, 100, 0, false));
}

#[test]
fn of_several_populations_the_silent_one_is_named() {
    let mut s = slow(2_010.0);
    let own = PopulationSummary { figures: s.figures.clone(), ..PopulationSummary::default() };
    s.populations.insert("api".to_owned(), own);
    // Responses to the other population usually take long.
    s.latency_us.p50 = 1.5e6;
    let e = Evidence { stall_of: Some("api".to_owned()), ..silent(State::Unseen) };
    let detail = "no connection of api received a response from second 8.0 to 10.0";
    check(&s, &e, ("target", "stall", 1_000, detail, "its log"));
    let sentence = limit(&s, &e).expect("something stopped it").sentence;
    assert_eq!(sentence, "the target of api stalled: no response for 2.0 s");
}

#[test]
fn not_every_gap_is_a_stall() {
    let is_stall = |s: &Summary, e: &Evidence| limit(s, e).is_some_and(|limit| limit.cause == Cause::Stall);
    // The waiting requests never got a response: a request was lost, and there is little other traffic.
    assert!(!is_stall(&slow(9.0), &silent(State::Idle)));
    // The silence is only as long as responses take.
    let mut usual = slow(2_010.0);
    usual.latency_us.p50 = 1.5e6;
    assert!(!is_stall(&usual, &silent(State::Idle)));
    // The silence lasts.
    let mut lasting = silent(State::Idle);
    lasting.stall.as_mut().unwrap().is_over = false;
    assert!(!is_stall(&slow(2_010.0), &lasting));
    // A silence of two seconds does not explain waits of ten.
    let mut waited = slow(2_010.0);
    waited.faults = waiting();
    assert!(!is_stall(&waited, &silent(State::Idle)));
    let brief = Evidence { timeout: Nanos::from_secs(3), ..silent(State::Idle) };
    assert!(is_stall(&waited, &brief));
    waited.faults = closed();
    assert!(!is_stall(&waited, &brief));
}

/// If only slow responses miss a threshold on latency, and no resource is used up, they are named.
#[test]
fn responses_that_are_slow_now_and_then_are_named() {
    let failed = |expr: &str, value: f64, faults: Vec<FaultCount>| {
        let (expr, value) = (expr.to_owned(), Some(value));
        let thresholds = vec![samples::ThresholdResult { expr, value, ..Default::default() }];
        Summary { thresholds, ..stopped(1_000, faults) }
    };
    let part = SlowPart { share: 0.05, slow: Nanos::from_secs(4), usual: Nanos::from_millis(21) };
    let e = Evidence { slow_part: Some(part), ..Evidence::default() };
    let said = |s: &Summary, e: &Evidence| limit(s, e).expect("it is bad").sentence_with_fix();
    let slow = failed("latency.p99 < 1s", 4.01e6, Vec::new());
    let expected = "5.0 % of responses took 4.0 s, the others 21 ms; to find out: check what the slow ones have in common, ";
    assert!(said(&slow, &e).starts_with(expected), "{}", said(&slow, &e));
    assert!(said(&slow, &Evidence::default()).starts_with("no cause was found"));
    // The time that slow responses have in common.
    let came = |seconds: &[u64]| {
        let evidence = Evidence { slow_seconds: seconds.to_vec(), ..e.clone() };
        let limit = limit(&slow, &evidence).expect("it is bad");
        let when = limit.detail.split_once("; the slow ones came ").map(|(_, when)| when.to_owned());
        assert_eq!(when.is_some(), limit.fix.starts_with("check what the target did at those times, "));
        when
    };
    assert_eq!(came(&[]), None);
    assert_eq!(came(&[4]).as_deref(), Some("in second 4"));
    assert_eq!(came(&[4, 7, 1_010]).as_deref(), Some("in seconds 4, 7 and 1,010"));
    assert_eq!(came(&[4, 5, 6, 7, 8, 9]).as_deref(), Some("in seconds 4, 5, 6, 7, 8 and 9"));
    assert_eq!(came(&[4, 5, 6, 7, 8, 9, 10]).as_deref(), Some("in 7 seconds, the first of them 4"));
    // Shorter garbage collections do not explain them.
    let paused = |ms: u64| Evidence { pause: Nanos::from_millis(ms), ..e.clone() };
    assert!(said(&slow, &paused(1_990)).starts_with(expected), "{}", said(&slow, &paused(1_990)));
    let collected = limit(&slow, &paused(2_010)).expect("it is bad");
    assert_eq!(
        collected.sentence_with_fix(),
        "5.0 % of responses took 4.0 s, the others 21 ms, while the target collected garbage; increase its heap or use another \
        collector, and check its garbage collection log"
    );
    assert_eq!((collected.side, collected.cause), (samples::Side::Target, Cause::Stall));
    let detail = "in those seconds the target was collecting garbage for 2.0 s at a time";
    assert!(collected.detail.ends_with(detail), "{}", collected.detail);
    // Slow responses do not explain these: another figure fails, or requests fail.
    assert!(said(&failed("latency.p50 < 10ms", 21e3, Vec::new()), &e).starts_with("no cause was found"));
    assert!(said(&failed("connect.p99 < 1s", 4e6, Vec::new()), &e).starts_with("no cause was found"));
    assert!(said(&failed("latency.p99 < 1s", 4e6, waiting()), &e).starts_with("800 dials and requests"));
}

#[test]
fn a_stopped_process_is_no_cpu_and_no_queue() {
    let queue = Some(Fill { used: 500, limit: 500 });
    let e = Evidence { stopped: Some((3.0, 12.0)), accept_queue: queue, ..target(TargetSeen::default()) };
    let expected =
        ("target", "stall", 300, "was stopped (process 81, state T) from second 3 to 12", "SIGSTOP");
    check(&stopped(300, waiting()), &e, expected);
    // A raw TCP server: nothing failed, and nothing was accepted.
    let mut none = stopped(0, Vec::new());
    (none.connections.opened, none.connections.peak) = (500, 500);
    let expected = ("target", "stall", 0, "500 connections in its accept queue", "");
    check(&none, &Evidence { unaccepted: 500, ..e.clone() }, expected);
    check(&stopped(300, closed()), &e, ("target", "closed", 800, "", ""));
}

#[test]
fn a_stall_of_our_own_is_named() {
    let mut s = slow(1_020.0);
    s.generator.stall_us = 1e6;
    check(&s, &silent(State::Idle), ("host", "stall", 1_000, "throng itself was stopped", "suspend"));
    let detail = |s: &Summary, e: &Evidence| limit(s, e).expect("something stopped it").detail;
    assert!(!detail(&s, &silent(State::Idle)).contains("failures"), "there are none");
    // Responses took longer than the stop.
    s.latency_us.max = 5e6;
    check(&s, &Evidence::default(), ("unknown", "unknown", 1_000, "", ""));
    // The stop was only as long as responses usually take.
    (s.latency_us.max, s.latency_us.p50) = (1.02e6, 0.9e6);
    check(&s, &Evidence::default(), ("unknown", "unknown", 1_000, "", ""));
    let mut waited = stopped(300, waiting());
    waited.generator.stall_us = 6e6;
    let e = Evidence { timeout: Nanos::from_secs(10), ..Evidence::default() };
    check(&waited, &e, ("host", "stall", 300, "may have caused the failures", ""));
    // throng had no processor all the time.
    waited.verdict = Verdict::Invalid;
    waited.reasons = vec!["the generator was starved".to_owned()];
    let starved = Evidence { own: Some(OwnSeen { cpu_share: 0.1, demand: 1.0 }), ..e.clone() };
    check(&waited, &starved, ("host", "cpu", 300, "starved", ""));
    waited.verdict = Verdict::Fail;
    waited.generator.stall_us = 1e6;
    check(&waited, &e, ("target", "timeout", 800, "", ""));
}

#[test]
fn of_a_fleet_the_agent_that_was_stopped_is_named() {
    let check_agents = |agents: &[(f64, f64)], detail: &str| {
        let mut s = slow(5_600.0);
        s.generator.stall_us = 5.5e6;
        let agent = |(id, (away_s, lag_s)): (&str, &(f64, f64))| AgentSummary {
            id: id.to_owned(),
            state: samples::AgentState::Done,
            sealed: true,
            away_s: *away_s,
            lag_p99_us: Some(lag_s * 1e6),
            ..AgentSummary::default()
        };
        s.agents = ["a1", "a2"].into_iter().zip(agents).map(agent).collect();
        check(&s, &Evidence::default(), ("host", "stall", 1_000, detail, "do not suspend agents"));
    };
    check_agents(&[(0.0, 0.001), (5.1, 0.2)], "agent a2 was stopped, or had no processor, for 5.5 s");
    check_agents(&[(0.0, 5.2), (0.0, 0.1)], "agent a1 was stopped");
    check_agents(&[(0.0, 0.1), (0.0, 0.1)], "an agent was stopped");
    check_agents(&[(5.0, 0.1), (5.0, 0.1)], "an agent was stopped");
}

#[test]
fn that_an_agent_was_lost_is_reason_enough() {
    let mut s = stopped(200, Vec::new());
    assert!(limit(&s, &Evidence::default()).is_some(), "it is unknown");
    s.agents = vec![AgentSummary { state: samples::AgentState::Lost, ..AgentSummary::default() }];
    assert_eq!(limit(&s, &Evidence::default()), None);
    // Another cause counts, and so does the unknown one where its part was taken over.
    let e = Evidence { stopped: Some((3.0, 12.0)), ..target(TargetSeen::default()) };
    assert_eq!(limit(&s, &e).map(|limit| limit.cause), Some(Cause::Stall));
    s.agents[0].taken_over_by = vec!["a2".to_owned()];
    assert!(limit(&s, &Evidence::default()).is_some());
}

#[test]
fn processors_that_both_are_confined_to_are_shared() {
    let on = |own, target| Shared { list: "0".to_owned(), own, target, wanted: 1.0 };
    let busy = TargetSeen { cpu_thread: Some(1.0), cpu_share: 0.6, ..TargetSeen::default() };
    let e = |shared| Evidence { shared: Some(shared), ..target(busy) };
    let expected = ("host", "cpu", 1_000, "the same processors (0)", "taskset");
    check(&slow(9.0), &e(on(0.38, 0.6)), expected);
    check(&slow(9.0), &e(on(0.02, 0.97)), ("target", "cpu", 1_000, "", ""));
    check(&slow(9.0), &e(on(0.2, 0.3)), ("target", "cpu", 1_000, "", ""));
    // Other programs use some processors; both ends wait.
    check(&slow(9.0), &e(Shared { wanted: 1.3, ..on(0.2, 0.3) }), expected);
    let passed = Summary { verdict: Verdict::Pass, ..slow(9.0) };
    assert_eq!(suspect(&passed, &e(on(0.38, 0.6))).map(|limit| limit.side), Some(Side::Host));
}

#[test]
fn connections_in_the_queue_are_not_served() {
    let queue = Some(Fill { used: 500, limit: 2_000 });
    let e = Evidence { accept_queue: queue, stood: 500, ..here(NetCounters::default()) };
    let mut s = stopped(2_000, vec![fault(Stage::Exchange, Kind::Timeout, 500)]);
    (s.connections.wanted, s.connections.opened, s.connections.peak) = (2_500, 2_500, 2_500);
    let expected =
        ("target", "accept-queue", 2_000, "500 connections were in its accept queue of 2,000", "maxconn");
    check(&s, &e, expected);
    // In the end all are lost: the target served the others.
    s.connections.held = 0;
    check(&s, &e, ("target", "accept-queue", 2_000, "the target serves 2,000 at a time", ""));
    // Ten connections in the queue do not explain five hundred.
    check(&s, &Evidence { stood: 10, ..e.clone() }, ("target", "timeout", 2_500, "", ""));
    // A steady accept rate is another cause.
    let slow = Evidence { accepts_per_s: Some(50.0), ..e.clone() };
    check(&s, &slow, ("target", "slow-accept", 2_500, "", ""));
    // Still open at the end, but never accepted.
    let mut open = stopped(2_000, Vec::new());
    open.connections.peak = 2_500;
    let expected =
        ("target", "accept-queue", 2_000, "500 connections were accepted by the kernel only", "accept()");
    check(&open, &Evidence { unaccepted: 500, ..e }, expected);
}

#[test]
fn a_run_that_passes_is_warned() {
    let mut s = slow(9.0);
    s.verdict = Verdict::Pass;
    let queue = |used| Evidence { accept_queue: Some(Fill { used, limit: 128 }), ..here(overflows(6_695)) };
    (s.connect_us.p99, s.connect_us.max) = (2e6, 3.1e6);
    for used in [128, 100, 3] {
        let warned = warnings(&s, &queue(used));
        assert_eq!(warned.len(), 1, "{used}: {warned:?}");
        assert!(warned[0].starts_with("warning: the target's accept queue overflowed"), "{warned:?}");
        assert!(warned[0].contains("p99 2.0 s") && warned[0].contains("somaxconn"), "{warned:?}");
    }
    // The overflow is that of another listener.
    (s.connect_us.p99, s.connect_us.max) = (900.0, 2e4);
    assert_eq!(warnings(&s, &queue(3)).len(), 0);
    assert_eq!(warnings(&s, &here(NetCounters::default())).len(), 0);
    s.latency_us.max = 2e6;
    let warned = warnings(&s, &silent(State::Collecting));
    assert!(warned.len() == 1 && warned[0].contains("second 8.0 to 10.0"), "{warned:?}");
}

/// As many handshakes as timed out in a ramp of four seconds, in which throng's two threads used this much CPU.
#[test]
fn handshakes_that_our_own_cryptography_delays_are_not_the_targets() {
    let ramp = |cpu_s: f64| {
        let mut s = stopped(300, vec![fault(Stage::Tls, Kind::Timeout, 700)]);
        (s.ramp_s, s.threads) = (4.0, 2);
        for cpu_ns in [0.0, cpu_s * 1e9] {
            let own =
                samples::ProcessSample { cpu_user_ns: cpu_ns as u64, ..samples::ProcessSample::default() };
            s.observed.see_here(samples::Phase::Ramp, &samples::HostSample::default(), &own);
        }
        s
    };
    let patient = Evidence { timeout: units::Nanos::from_secs(10), ..Evidence::default() };
    check(&ramp(7.9), &patient, ("host", "cpu", 300, "700 TLS handshakes timed out", "more processors"));
    check(&ramp(4.0), &patient, ("target", "timeout", 800, "700 TLS handshakes timed out", ""));
}

#[test]
fn a_handshake_that_times_out_is_no_request() {
    let s = stopped(0, vec![fault(Stage::Handshake, Kind::Timeout, 3)]);
    check(
        &s,
        &Evidence::default(),
        ("target", "timeout", 800, "3 handshakes timed out", "speaks this protocol"),
    );
}

#[test]
fn connections_without_a_response_of_which_nothing_arrives_are_not_kept_waiting() {
    let starved = vec![Starved { count: 92, served: 8, responses: 80_000, ..Starved::default() }];
    let e = Evidence { starved, ..Evidence::default() };
    let s = stopped(8, vec![fault(Stage::Exchange, Kind::Timeout, 92)]);
    check(&s, &e, ("target", "connection-limit", 8, "a worker or a thread", "raise its number of workers"));
    let quiet = Some(Nanos::from_secs(5));
    let segments = record::segments::Segments {
        connections: 92,
        unacknowledged: 92,
        quiet,
        ..record::segments::Segments::default()
    };
    check(&s, &Evidence { segments, ..e }, ("path", "unacknowledged", 800, "", ""));
}

#[test]
fn connections_without_a_response_may_be_those_of_one_backend() {
    let said = |count, served| {
        let starved = vec![Starved { count, served, responses: 80_000, ..Starved::default() }];
        let s = stopped(served, vec![fault(Stage::Exchange, Kind::Timeout, count)]);
        limit(&s, &Evidence { starved, ..Evidence::default() }).expect("it is bad")
    };
    let found = said(10, 40);
    let begin = "10 of 50 connections had no response by the end of the load: probably the target serves 40 at a time, or one of several \
        backends or workers does not respond; check that each of its backends";
    assert!(found.sentence_with_fix().starts_with(begin), "{found:?}");
    assert!(found.detail.ends_with("or one of several backends or workers does not respond"), "{found:?}");
    // More than the others have are not of one.
    let found = said(41, 40);
    assert!(found.sentence_with_fix().starts_with("probably the target serves 40 connections at a time"));
    assert!(!found.detail.contains("backends") && found.fix.starts_with("raise its number of workers"));
}

/// Responses that came when the load's connections were closed do not count as service beside the load.
#[test]
fn a_probe_is_beside_the_load_where_most_of_its_requests_are_served() {
    let sentence = |kept: (u64, u64)| {
        let censored = Some(samples::Censored { count: kept.1, ..Default::default() });
        let kept_us = samples::Quantiles { count: kept.0, censored, ..Default::default() };
        let probe = Some(samples::ProbeSummary { answered: kept.0, kept_us, ..Default::default() });
        let starved = vec![Starved { count: 92, served: 8, responses: 80_000, ..Starved::default() }];
        let s = Summary { probe, ..stopped(8, vec![fault(Stage::Exchange, Kind::Timeout, 92)]) };
        limit(&s, &Evidence { starved, ..Evidence::default() }).expect("it is bad").sentence
    };
    let end = ": 92 others had no response by the end of the load";
    assert_eq!(
        sentence((16, 0)),
        format!("the target serves 8 connections at a time, plus the probe's{end}")
    );
    assert_eq!(sentence((1, 15)), format!("the target serves 8 connections at a time{end}"));
}

#[test]
fn a_probe_that_is_served_on_what_it_keeps_alone_shows_a_limit() {
    let times = |(count, without): (u64, u64)| {
        let censored = Some(samples::Censored { count: without, ..Default::default() });
        samples::Quantiles { count, censored, ..Default::default() }
    };
    let of = |kept: (u64, u64), fresh: (u64, u64), dials: u64| {
        let (kept_us, fresh_us, connect_us) = (times(kept), times(fresh), times((dials, 0)));
        let probe = samples::ProbeSummary { kept_us, fresh_us, connect_us, ..Default::default() };
        Summary { probe: Some(probe), ..stopped(3, Vec::new()) }
    };
    let served = of((22, 0), (1, 21), 23);
    let expected = ("target", "connection-limit", 3, "3 and the probe's", "raise its number of workers");
    check(&served, &Evidence::default(), expected);
    let search = Evidence { search: Some(crate::By::Connections), ..Evidence::default() };
    check(
        &served,
        &search,
        (
            "target",
            "connection-limit",
            3,
            "",
            "the result does not count the places that the probe's connections take",
        ),
    );
    // Five requests of the load wait, too.
    let mut waits = served;
    (waits.connections.held, waits.faults) = (7, vec![fault(Stage::Exchange, Kind::Timeout, 5)]);
    check(&waits, &Evidence::default(), ("target", "connection-limit", 2, "", ""));
    // Not this cause: no connection is served, new ones are, dials fail, or there are too few requests.
    let others =
        [of((0, 22), (1, 21), 23), of((22, 0), (9, 21), 30), of((22, 0), (1, 21), 3), of((4, 0), (0, 4), 9)];
    for other in others {
        check(&other, &Evidence::default(), ("unknown", "unknown", 3, "", ""));
    }
}
