//! How fast connections are dialled: exactly on schedule, or as fast as the target accepts them.

use samples::{Kind, Stage, Verdict};
use stage::{
    connections, listening, measured, network, plan, play, play_frozen,
    scripted::{Act, Request, Script, Scripted, Then},
};
use units::Nanos;

const OK: Act = Act { send: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", then: Then::Stay };

/// A paced ramp over a network without delay, where a dial arrives when it is made: the n-th at n/rate.
fn check_pace(flags: &str, shards: u32, per_s: f64) {
    let net = network(1, |f| f.delay = (Nanos::ZERO, Nanos::ZERO));
    let plan = plan("http://127.0.0.1:80/", flags, 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(|_| OK));
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    let accepted = &server.program().accepted_at;
    assert_eq!((accepted.len() as u64, result.faults().len()), (connections(&plan).into(), 0));
    for (n, at) in accepted.iter().enumerate() {
        let due = n as f64 / per_s;
        assert!((at.secs_f64() - due).abs() <= 1.0 / per_s, "{flags}: dial {n} at {at}, due at {due} s");
    }
    assert_eq!(result.ramped_at, *accepted.last().unwrap());
}

#[test]
fn a_paced_ramp_follows_its_schedule() {
    check_pace("connections=20k think=1h duration=1s ramp=5k/s", 4, 5_000.0);
    check_pace("connections=20k think=1h duration=1s ramp=10s", 4, 2_000.0);
    check_pace("connections=1000 think=1h duration=1s ramp=100/s", 3, 100.0);
    check_pace("connections=7 think=1h duration=1s ramp=2/s", 4, 2.0);
    // More are due at once than a turn dials.
    check_pace("connections=50k think=1h duration=1s ramp=1m/s", 2, 1e6);
}

/// Ten seconds of a ramp, in one of which throng stands still: a tenth of the dials is late by that, and the target's part in their
/// connect times is not known.
#[test]
fn dials_that_a_stall_of_throng_delays_are_not_the_targets() {
    let judged = |threshold: &str, until: u64| {
        let net = network(1, |_| {});
        let flags = format!("connections=1000 think=1h duration=1s ramp=100/s threshold={threshold}");
        let plan = plan("http://127.0.0.1:80/", &flags, 1);
        let mut server = listening(&net, plan.destinations()[0], 1_064, Scripted::new(|_| OK));
        let stall = (Nanos::from_millis(3_000), Nanos::from_millis(until));
        let result = play_frozen(&net, &plan, 1, &mut [&mut server], stall);
        assert_eq!((result.whole.counts.opened, result.faults()), (1_000, vec![]));
        let (late, longest) = (result.whole.late_dials, result.whole.dial_lag.millis());
        let s = result.judge(&plan);
        (late, longest, s.verdict, s.reasons.into_iter().next().unwrap_or_default())
    };
    let (late, longest, verdict, why) = judged("connect.p99<5ms", 4_000);
    assert!((99..=101).contains(&late) && (985..=1_000).contains(&longest), "{late} by up to {longest} ms");
    let seen = "threshold connect.p99<5ms cannot be judged: throng stalled, so the value is between ";
    assert_eq!((verdict, why.starts_with(seen)), (Verdict::Invalid, true), "{why}");
    // The stall changes nothing: a bound above it, a percentile below those that were late, and one that no dial meets.
    for (threshold, expected) in [
        ("connect.p99<2s", Verdict::Pass),
        ("connect.p75<5ms", Verdict::Pass),
        ("connect.p99<100us", Verdict::Fail),
    ] {
        let (_, _, verdict, why) = judged(threshold, 4_000);
        assert_eq!(verdict, expected, "{threshold}: {why}");
    }
    // Nor is there any where throng is on time.
    let (late, longest, verdict, why) = judged("connect.p99<100us", 3_000);
    assert_eq!((late, longest, verdict), (0, 0, Verdict::Fail), "{why}");
}

/// An adaptive ramp against a server that accepts 2,000 connections a second, with room for `backlog` in its queue.
fn check_adaptive(backlog: usize, shards: u32) {
    for seed in 1..=3 {
        let net = network(seed, |f| f.backlog = backlog);
        let plan = plan("http://127.0.0.1:80/", "connections=20k think=1h duration=1s", seed);
        let at = plan.destinations()[0];
        let slow = Scripted::accepting_each(Nanos::from_micros(500), |_| OK);
        let mut server = listening(&net, at, connections(&plan) + 64, slow);
        let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
        let c = &result.whole.counts;
        assert_eq!((c.opened, c.failed, c.answered), (20_000, 0, 20_000), "{:?}", result.faults());
        let per_s = c.opened as f64 / server.program().accepted_at.last().unwrap().secs_f64();
        assert!(per_s >= 0.9 * 2_000.0, "backlog {backlog}, {shards} shards, seed {seed}: {per_s:.0}/s");
        assert!(per_s <= 2_001.0, "the server is the one that is slow: {per_s:.0}/s");
        // Hardly any SYN was dropped; a dropped one is retransmitted after a second.
        let connect = measured(&result.whole.connect);
        assert!(
            connect.count > 0 && connect.p99 < 400.0,
            "backlog {backlog}, {shards} shards, seed {seed}: {connect:?}"
        );
    }
}

#[test]
fn an_adaptive_ramp_is_as_fast_as_the_target_accepts() {
    for backlog in [128, 4096] {
        for shards in [1, 4] {
            check_adaptive(backlog, shards);
        }
    }
}

/// As of a fleet: each of many shards has a small part of the dials, and alone sees little of what they meet. The target has
/// room for fewer than one of each.
#[test]
fn many_shards_together_dial_no_faster_than_the_target_accepts() {
    let ramp = |shards| {
        let net = network(1, |f| f.backlog = 64);
        let plan = plan("http://127.0.0.1:80/", "connections=3k think=1h duration=1s", 1);
        let at = plan.destinations()[0];
        let slow = Scripted::accepting_each(Nanos::from_millis(2), |_| OK);
        let mut server = listening(&net, at, connections(&plan) + 64, slow);
        let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
        let c = &result.whole.counts;
        assert_eq!((c.opened, c.failed), (3_000, 0), "{shards} shards: {:?}", result.faults());
        let lost = result.whole.connect.count_within(Nanos::from_millis(500), Nanos::from_secs(60));
        (lost, result.ramped_at)
    };
    let (_, alone) = ramp(1);
    for shards in [4, 16, 100] {
        let (lost, ramped_at) = ramp(shards);
        assert!(lost <= 240, "{shards} shards: {lost} dials lost a SYN");
        assert!(ramped_at <= Nanos(3 * alone.0), "{shards} shards: {ramped_at}, one alone {alone}");
    }
}

/// First responses that take two seconds, however few, are no sign of pressure: the window doubles with each.
#[test]
fn an_adaptive_ramp_waits_for_first_responses_but_no_longer() {
    const LATER: Act = Act { send: b"", then: Then::SendAfter(Nanos::from_secs(2), OK.send) };
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", "connections=500 think=1h duration=1s", 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(|_| LATER));
    let result = play(&net, &plan, 1, &mut [&mut server], |_, _| {});
    assert_eq!((result.whole.counts.opened, result.faults().len()), (500, 0));
    let accepted = &server.program().accepted_at;
    let by = |s| accepted.iter().filter(|at| **at < Nanos::from_secs(s)).count();
    assert_eq!([by(2), by(4), by(6), by(8), by(9)], [32, 32 + 64, 32 + 64 + 128, 480, 500]);
}

/// A target that accepts connections and responds to none, or to none beyond some number: the ramp ends within two
/// timeouts and the wait of its last connections.
fn check_silence(connections: u32, shards: u32, script: Script, answered: u64) {
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", &format!("connections={connections} think=1h duration=1s"), 1);
    let at = plan.destinations()[0];
    let mut server = listening(&net, at, connections + 64, Scripted::new(script));
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.answered), (connections.into(), answered), "{:?}", result.faults());
    assert!(c.forced > 0, "{c:?}");
    let last = *server.program().accepted_at.last().unwrap();
    assert!(last <= Nanos::from_secs(21), "{connections} connections, {shards} shards: {last}");
    assert_eq!(result.faults(), [(Stage::Exchange, Kind::Timeout, u64::from(connections) - answered)]);
}

#[test]
fn an_adaptive_ramp_ends_at_a_target_that_is_silent() {
    const SILENT: Act = Act { send: b"", then: Then::Stay };
    check_silence(200, 2, |_| SILENT, 0);
    check_silence(20_000, 4, |_| SILENT, 0);
    // A server at its limit on open files: earlier connections are served.
    check_silence(5_000, 2, |request| if request.conn < 1_000 { OK } else { SILENT }, 1_000);
}

#[test]
fn an_adaptive_ramp_goes_on_at_a_target_that_is_back() {
    // Requests of the first twelve seconds get their responses when those are over.
    let net = network(1, |_| {});
    let plan = plan("http://127.0.0.1:80/", "connections=20k think=1h duration=1s timeout=15s", 1);
    let at = plan.destinations()[0];
    const LATER: Act = Act { send: b"", then: Then::SendAfter(Nanos::from_secs(12), OK.send) };
    let back = |request: Request| if request.conn < 128 { LATER } else { OK };
    let mut server = listening(&net, at, connections(&plan) + 64, Scripted::new(back));
    let result = play(&net, &plan, 2, &mut [&mut server], |_, _| {});
    assert_eq!(
        (result.whole.counts.opened, result.whole.counts.forced, result.faults().len()),
        (20_000, 0, 0)
    );
    assert!(result.ramped_at < Nanos::from_secs(15), "{}", result.ramped_at);
}
