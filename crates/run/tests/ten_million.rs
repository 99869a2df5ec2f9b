//! Ten million requests in virtual time: memory grows with connections, never with requests. `cargo xtask test sim` runs it; the ordinary
//! test shows the same with an eighth of the requests. No other test is in this executable, so that its resident memory belongs to this
//! one.

#![allow(clippy::unwrap_used, reason = "a test: a panic names the line")]

use std::time::Instant;

use stage::{network, plan, play, servers, turns};
use units::Count;

const SEED: u64 = 10_000_000;
/// The error of the kernel's count, in bytes; one byte per request would exceed it.
const AT_MOST_MORE_BYTES: u64 = 1 << 20;

fn rss_bytes() -> u64 {
    host::Processes::own(&host::Root::real()).usage_sample().rss_bytes
}

#[test]
fn a_million_requests_take_the_memory_of_a_tenth() {
    check("300ms", 120_000, 1_200_000);
}

#[test]
#[ignore = "ten seconds in a release build: cargo xtask test sim"]
fn ten_million_requests_take_the_memory_of_a_million() {
    check("2300ms", 1_000_000, 10_000_000);
}

/// A run of this duration has at least `all` responses, and uses hardly more memory than after the `early` ones.
#[allow(clippy::print_stdout, reason = "its figures, where it runs by itself")]
fn check(duration: &str, early: u64, all: u64) {
    let start = Instant::now();
    let net = network(SEED, |_| {});
    let flags = format!("connections=1000 duration={duration} expect=status=200,length=$1");
    let plan = plan("http://127.0.0.1:8000/?length={rand 1 64}", &flags, SEED);
    let (mut servers, _) = servers(&net, "0.0.0.0:8000".parse().unwrap(), 1, 1_000);
    let mut turns = turns(&mut servers);
    let (mut answered, mut first, mut most) = (0, None, 0);
    let result = play(&net, &plan, 1, &mut turns, |_, tick| {
        answered += tick.counts.answered;
        if answered >= early {
            most = rss_bytes().max(most);
            first = first.or(Some(most));
        }
    });
    let first = first.expect("there are that many responses");
    println!(
        "{} requests, {} KiB resident after {}, {} KiB at most since, {:.1} s wall",
        Count(result.whole.counts.answered),
        first >> 10,
        Count(early),
        most >> 10,
        start.elapsed().as_secs_f64(),
    );
    assert_eq!(result.faults(), []);
    assert!(result.whole.counts.answered >= all, "{:?}", result.whole.counts);
    assert!(most - first <= AT_MOST_MORE_BYTES, "{first} bytes, then {most}");
}
