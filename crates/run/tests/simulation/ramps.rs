//! The rate of dials: exactly on schedule, or as fast as the target accepts connections.

use samples::{Kind, Stage, Verdict};
use stage::{
    RunResult, connections, listening, network, plan, play, play_frozen,
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
    // More dials are due at once than a turn makes.
    check_pace("connections=50k think=1h duration=1s ramp=1m/s", 2, 1e6);
}

/// A ramp of ten seconds, during one of which throng is suspended: a tenth of the dials is late by that, and the target's part in their
/// connect times is unknown.
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
    // The suspension makes no difference to a bound above it, a percentile below the late dials, and a bound that no dial meets.
    for (threshold, expected) in [
        ("connect.p99<2s", Verdict::Pass),
        ("connect.p75<5ms", Verdict::Pass),
        ("connect.p99<100us", Verdict::Fail),
    ] {
        let (_, _, verdict, why) = judged(threshold, 4_000);
        assert_eq!(verdict, expected, "{threshold}: {why}");
    }
    // Nor is there a difference if throng is on time.
    let (late, longest, verdict, why) = judged("connect.p99<100us", 3_000);
    assert_eq!((late, longest, verdict), (0, 0, Verdict::Fail), "{why}");
}

/// An adaptive ramp against a server that accepts 2,000 connections per second, with a queue of length `backlog`.
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
        assert!(per_s >= 0.88 * 2_000.0, "backlog {backlog}, {shards} shards, seed {seed}: {per_s:.0}/s");
        assert!(per_s <= 2_001.0, "the server is the one that is slow: {per_s:.0}/s");
        // The limit is known, unless all connections fit into the queue.
        let summary = result.judge(&plan);
        let c = &summary.connections;
        if backlog < 4_096 {
            let bent_at = c.bent_at.expect("SYNs were lost");
            assert!((64..=500).contains(&bent_at), "backlog {backlog}, {shards} shards: {bent_at}");
            assert!((1_600.0..=2_020.0).contains(&c.accept_per_s), "{shards} shards: {}/s", c.accept_per_s);
        } else {
            assert_eq!(c.accept_per_s, 0.0);
        }
        // Hardly any SYN was dropped; a dropped one is retransmitted after a second. Each shard must find out independently.
        let lost = result.whole.connect.count_within(Nanos::from_millis(500), Nanos::from_secs(60));
        assert!(lost <= 30 * u64::from(shards), "backlog {backlog}, {shards} shards, seed {seed}: {lost}");
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

/// A listener with the shortest common backlog, that of Python, at three speeds.
#[test]
fn an_adaptive_ramp_loses_no_connection_to_a_short_backlog() {
    for (each_us, n) in [(500, 10_000), (2_000, 3_000), (10_000, 900)] {
        for shards in [1, 2] {
            let net = network(1, |f| f.backlog = 5);
            let plan = plan("http://127.0.0.1:80/", &format!("connections={n} think=1h duration=1s"), 1);
            let slow = Scripted::accepting_each(Nanos::from_micros(each_us), |_| OK);
            let mut server = listening(&net, plan.destinations()[0], n + 64, slow);
            let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
            let c = &result.whole.counts;
            assert_eq!((c.opened, c.failed, c.forced), (n.into(), 0, 0), "{each_us} us, {shards} shards");
            assert!(result.ramped_at < Nanos::from_secs(20), "{each_us} us, {shards}: {}", result.ramped_at);
        }
    }
}

/// Many shards, as in a fleet: each makes a small part of the dials, and alone sees little of the congestion. The target's queue is
/// shorter than the number of shards.
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
        assert!(lost <= 360, "{shards} shards: {lost} dials lost a SYN");
        assert!(ramped_at <= Nanos(3 * alone.0), "{shards} shards: {ramped_at}, one alone {alone}");
    }
}

/// A firewall that passes 500 SYNs per second with a burst of 5, the default of nft.
#[test]
fn an_adaptive_ramp_meets_a_firewall_at_its_rate() {
    for shards in [1, 2, 8, 64] {
        let net = network(1, |f| f.syns = Some((500, 5)));
        let plan = plan("http://127.0.0.1:80/", "connections=10k think=1h duration=1s", 1);
        let mut server = listening(&net, plan.destinations()[0], 10_064, Scripted::new(|_| OK));
        let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
        let c = &result.whole.counts;
        assert!(c.failed <= 10 && c.forced == 0, "{shards} shards: {c:?}");
        // The last ones are those whose SYNs were dropped repeatedly.
        let per_s = 9_500.0 / server.program().accepted_at[9_499].secs_f64();
        assert!((0.8 * 500.0..=501.0).contains(&per_s), "{shards} shards: {per_s:.0}/s");
        let accepts = result.judge(&plan).connections.accept_per_s;
        assert!((380.0..=501.0).contains(&accepts), "{shards} shards: {accepts}/s");
    }
}

/// The number of connections accepted by the given second of a ramp, and the result. `flags`: in addition to those of a load that holds.
fn ramp(flags: &str, shards: u32, server: Scripted) -> (Vec<Nanos>, RunResult) {
    let net = network(1, |f| f.backlog = 128);
    let plan = plan("http://127.0.0.1:80/", flags, 1);
    let mut server = listening(&net, plan.destinations()[0], connections(&plan) + 64, server);
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    (server.program().accepted_at.clone(), result)
}

/// Responses that take two seconds are no reason to dial more slowly: the window doubles with each round of them.
#[test]
fn an_adaptive_ramp_goes_on_with_slow_responses() {
    const LATER: Act = Act { send: b"", then: Then::SendAfter(Nanos::from_secs(2), OK.send) };
    let (accepted, result) = ramp("connections=500 think=1h duration=1s", 1, Scripted::new(|_| LATER));
    assert_eq!((result.whole.counts.opened, result.faults().len()), (500, 0));
    assert!(*accepted.last().unwrap() < Nanos::from_secs(10), "{:?}", accepted.last());
}

/// A service whose users demand more than its single processor can do, with costly logins: responses are slow, but no dial or request
/// fails.
#[test]
fn an_adaptive_ramp_ends_at_a_target_that_is_overloaded() {
    // 800 users who want 400/s, twice the capacity; and logins of 50 ms beside requests of 1 ms.
    let service: fn(Request) -> Nanos = |_| Nanos::from_millis(5);
    let logins: fn(Request) -> Nanos = |request| Nanos::from_millis(if request.nth == 0 { 50 } else { 1 });
    for (flags, cost, within) in [
        ("connections=800 think=2s duration=5s", service, 4),
        ("connections=400 think=500ms duration=5s", logins, 20),
    ] {
        for shards in [1, 2, 4] {
            let (_, result) = ramp(flags, shards, Scripted::on_one_processor(cost, |_| OK));
            let c = &result.whole.counts;
            assert_eq!((c.failed, c.forced, result.faults()), (0, 0, vec![]), "{flags}, {shards} shards");
            assert!(
                result.ramped_at < Nanos::from_secs(within),
                "{flags}, {shards} shards: {}",
                result.ramped_at
            );
        }
    }
}

/// A target that accepts connections and responds to none, or only to some: the ramp ends within two timeouts and the wait of its last
/// connections.
fn check_silence(connections: u32, shards: u32, script: Script, answered: u64) {
    let (accepted, result) =
        ramp(&format!("connections={connections} think=1h duration=1s"), shards, Scripted::new(script));
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.answered), (connections.into(), answered), "{:?}", result.faults());
    assert!(c.forced > 0, "{c:?}");
    let last = *accepted.last().unwrap();
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

/// A target that accepts 50 connections per second, and one that accepts none: at the deadline, or when nothing more succeeds, the
/// remaining connections are dialled at a fixed rate.
#[test]
fn an_adaptive_ramp_ends_at_a_target_that_does_not_accept() {
    for (each, n, failed) in
        [(Nanos::from_millis(20), 4_000, 0..=400), (Nanos::from_secs(1_000), 5_000, 4_000..=4_900)]
    {
        let server = Scripted::accepting_each(each, |_| OK);
        let flags = format!("connections={n} think=1h duration=1s");
        let (_, result) = ramp(&flags, 2, server);
        let c = &result.whole.counts;
        assert_eq!(c.failed + c.opened, n);
        assert!(failed.contains(&c.failed) && c.forced > 0, "{c:?}");
        assert!(result.ramped_at < Nanos::from_secs(95), "{n}: {}", result.ramped_at);
        let forced = c.forced;
        let s = result.judge(&plan("http://127.0.0.1:80/", &flags, 1));
        let why = s.reasons.iter().find(|why| why.starts_with("the ramp stopped adapting")).expect("it did");
        let expected =
            if failed.contains(&0) { "its deadline of 30s was over" } else { "no more first dials" };
        assert!(why.contains(expected) && s.connections.forced == forced, "{why}");
    }
}
