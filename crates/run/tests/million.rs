//! A million connections held for an hour in virtual time: client, loop and server count correctly at full size. `cargo xtask test sim`
//! runs it; the ordinary test shows at a hundredth of the size that the seed determines everything.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use stage::{RunResult, measured, network, plan, play, servers, turns};
use units::{Count, Nanos};

const SEED: u64 = 1_000_000;

struct Run {
    result: RunResult,
    server: serve::Stats,
    /// A digest of all ticks, of what the network carried, and of the server's counts: the same for the same seed.
    fingerprint: u64,
    /// Maximum memory of the process at the end of a minute, in bytes.
    rss_bytes: u64,
}

/// Each connection sends at least one request in every third of the time, over four client and two server shards.
fn hold(connections: u32, minutes: u32, seed: u64) -> Run {
    let net = network(seed, |_| {});
    let think = format!("{}s..{}s", 18 * minutes, 20 * minutes);
    let flags = format!(
        "connections={connections} think={think} duration={minutes}m ramp=20k/s expect=status=200,length=$1"
    );
    let plan = plan("http://127.0.0.{1..30}:8000/?length={rand 1 4096}", &flags, seed);
    let (mut servers, counters) = servers(&net, "0.0.0.0:8000".parse().unwrap(), 2, connections);
    let mut turns = turns(&mut servers);
    let mut hasher = DefaultHasher::new();
    let (mut rss_bytes, mut minute) = (0, Nanos::ZERO);
    let result = play(&net, &plan, 4, &mut turns, |shard, tick| {
        if tick.until >= minute {
            minute = minute + Nanos::from_secs(60);
            let usage = host::Processes::own(&host::Root::real()).usage_sample();
            rss_bytes = usage.rss_bytes.max(rss_bytes);
        }
        let c = &tick.counts;
        (shard, tick.index, tick.until, tick.open, tick.waiting, tick.faults.total()).hash(&mut hasher);
        (c.opened, c.sent, c.answered, c.bytes_in, c.bytes_out, c.body_bytes_in).hash(&mut hasher);
        for times in [&tick.latency, &tick.ramp_latency, &tick.connect, &tick.lag] {
            (times.count(), times.quantile(0.5), times.quantile(1.0)).hash(&mut hasher);
        }
    });
    let server = counters.read();
    (net.carried(), net.now(), server.to_json()).hash(&mut hasher);
    Run { result, server, fingerprint: hasher.finish(), rss_bytes }
}

/// All connections are held, without faults, and both ends have the same counts.
fn check(run: &Run, n: u64) {
    let Run { result, server, .. } = run;
    let c = &result.whole.counts;
    assert_eq!(result.faults(), []);
    assert_eq!((c.opened, result.peak, result.held, server.open), (n, n, n, n));
    assert_eq!((c.sent, c.answered), (server.requests, server.requests));
    assert_eq!((c.bytes_in, c.bytes_out), (server.bytes_out, server.bytes_in));
    // The first request during the ramp, which takes less than a minute, then three.
    assert_eq!((c.answered, result.whole.latency.count()), (4 * n, 3 * n));
    assert!(measured(&result.whole.lag).max == 0.0 && measured(&result.whole.latency).max <= 400.0);
}

#[test]
fn ten_thousand_hold_the_same_way_twice() {
    const N: u32 = 10_000;
    let (first, again, other) = (hold(N, 10, SEED), hold(N, 10, SEED), hold(N, 10, SEED + 1));
    check(&first, N.into());
    check(&other, N.into());
    assert_eq!(first.fingerprint, again.fingerprint, "the seed decides everything");
    assert_ne!(first.fingerprint, other.fingerprint, "and nothing else does");
}

#[test]
#[ignore = "a minute in a release build: cargo xtask test sim"]
fn a_million_hold_for_an_hour() {
    const N: u32 = 1_000_000;
    let start = Instant::now();
    let run = hold(N, 60, SEED);
    let wall = start.elapsed();
    check(&run, N.into());
    println!(
        "{} connections, {} exchanges, {} virtual, {:.1} s wall, {} MiB resident, seed {SEED}, fingerprint {:016x}",
        Count(N.into()),
        Count(run.result.whole.counts.answered),
        run.result.hold_until.since(Nanos::ZERO).brief(),
        wall.as_secs_f64(),
        run.rss_bytes >> 20,
        run.fingerprint,
    );
    assert!(wall < Duration::from_secs(90), "an hour of a million takes less than 90 s: {wall:?}");
}
