//! A load held over a good network: as many requests as the think time implies, each with a correct response, and each counted at both
//! ends. The same seed gives the same result.

use samples::Tick;
use stage::{RunResult, connections, measured, network, plan, play, servers, turns};
use units::Nanos;

const DRAWN: &str = "http://127.0.0.{1..3}:8000/?length={rand 1 4096}";

/// Runs against two shards of the reference server. Also returns the segments that the network carried.
fn run(flags: &str, seed: u64, see: impl FnMut(u32, &Tick)) -> (RunResult, serve::Stats, u64) {
    let net = network(seed, |_| {});
    let plan = plan(DRAWN, flags, seed);
    let at = "0.0.0.0:8000".parse().unwrap();
    let (mut servers, counters) = servers(&net, at, 2, connections(&plan));
    let mut turns = turns(&mut servers);
    let result = play(&net, &plan, 4, &mut turns, see);
    (result, counters.read(), net.carried())
}

#[test]
fn the_seed_decides_everything() {
    let run = |seed| {
        let mut ticks = Vec::new();
        let flags = "connections=2k think=500ms..3s duration=5s expect=status=200,length=$1";
        let (result, stats, carried) = run(flags, seed, |shard, tick| ticks.push((shard, tick.clone())));
        assert!(result.faults().is_empty() && ticks.len() > 4 * 25, "{:?}", result.faults());
        (ticks, stats, carried)
    };
    let (first, again, other) = (run(7), run(7), run(8));
    // Not assert_eq: the output of two hundred ticks with their histograms is unreadable.
    assert!(first.0 == again.0, "the same seed gives the same ticks");
    assert_eq!((first.1, first.2), (again.1, again.2), "and the same on the other side and between");
    assert!(first.0 != other.0 && first.2 != other.2, "another seed gives others");
}

#[test]
fn twenty_thousand_connections_send_at_the_rate_of_their_think_time() {
    const N: u64 = 20_000;
    let flags = "connections=20k think=5s..45s duration=3m expect=status=200,length=$1";
    let (result, server, _) = run(flags, 11, |_, _| {});
    let c = &result.whole.counts;
    assert!(result.faults().is_empty(), "{:?}", result.faults());
    assert_eq!((c.opened, c.failed, c.dropped, c.closed, c.redialled), (N, 0, 0, 0, 0));
    assert_eq!((result.peak, result.held, result.whole.open, result.whole.resolved), (N, N, N, N));

    // Each connection is a renewal process with a request at its beginning. Think time is uniform in 5..45 s: mean
    // 25 s, variance 40²/12 s². In time T it sends 1 + T/mean + (variance - mean²) / 2 mean² requests (Feller 1971,
    // section XI.3); the standard deviation over all connections is below 200 requests, a tenth of a percent.
    let (mean, variance) = (25.0, 40.0 * 40.0 / 12.0);
    let time = result.hold_until.secs_f64();
    let expected = N as f64 * (1.0 + time / mean + (variance - mean * mean) / (2.0 * mean * mean));
    assert!((c.sent as f64 / expected - 1.0).abs() < 0.006, "{} requests, {expected:.0} expected", c.sent);
    assert!(result.ramped_at < Nanos::from_secs(1), "the time above counts from the first dial");

    assert_eq!((c.sent, c.sent), (c.answered, server.requests));
    assert_eq!((c.bytes_in, c.bytes_out), (server.bytes_out, server.bytes_in));
    assert_eq!((server.open, server.accepted, server.closed, server.errors), (N, N, 0, 0));
    assert_eq!(result.whole.status[200], c.answered);
    // 1..=4096 characters, uniform.
    let body = c.body_bytes_in as f64 / c.answered as f64;
    assert!((body / 2048.5 - 1.0).abs() < 0.01, "{body:.1} bytes an answer");

    // The network takes 20 to 200 µs each way, the server no time. A timer of the wheel is due at the full millisecond at which it fires,
    // so that in virtual time nothing is ever late.
    let (latency, connect) = (measured(&result.whole.latency), measured(&result.whole.connect));
    for (what, q) in [("latency", latency), ("connect", connect)] {
        assert!((q.mean / 220.0 - 1.0).abs() < 0.02, "{what} {q:?}");
        assert!(q.p50 > 200.0 && q.p50 < 240.0 && q.p999 > 380.0 && q.max <= 400.0, "{what} {q:?}");
    }
    result.assert_on_time();
    // All first requests are due during the ramp, and no others, since the think time is longer.
    assert_eq!(result.whole.ramp_latency.count(), N);
    assert_eq!(result.whole.lag.count(), c.sent - N);
    // A few requests were outstanding when full load ended.
    assert!(c.answered - N - c.answered_at_load < 20, "{c:?}");
}

#[test]
fn a_closed_loop_is_never_idle() {
    let (result, server, _) = run("connections=50 duration=2s expect=length=$1", 3, |_, _| {});
    let c = &result.whole.counts;
    assert!(result.faults().is_empty(), "{:?}", result.faults());
    assert_eq!((c.sent, c.answered), (server.requests, server.requests));
    // One request after the other, 220 µs each.
    let per_s = c.answered_at_load as f64 / result.hold_until.since(result.hold_from).secs_f64();
    assert!((per_s / (50.0 / 220e-6) - 1.0).abs() < 0.01, "{per_s:.0} requests a second");
    result.assert_on_time();
}

#[test]
fn raw_tcp_is_opened_and_held() {
    let net = network(5, |_| {});
    let plan = plan("tcp://127.0.0.1:8000", "connections=500 duration=30s", 5);
    let (mut servers, counters) = servers(&net, plan.destinations()[0], 1, connections(&plan));
    let result = play(&net, &plan, 2, &mut [&mut servers[0]], |_, _| {});
    let c = &result.whole.counts;
    assert_eq!((c.opened, c.sent, c.bytes_out, result.held, result.whole.open), (500, 0, 0, 500, 500));
    assert_eq!((counters.read().open, counters.read().requests), (500, 0));
    assert!(result.faults().is_empty());
}
