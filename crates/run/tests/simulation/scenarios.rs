//! Scenarios: steps, populations, stages, and the files that come with throng.

use net::{Shard, io::sim::SimIo};
use stage::{RunResult, listening, network, play, scenario};
use units::Nanos;

use crate::listener::{Listener, Received, Reply, Speaks};

mod blocked;
mod files;
mod logins;
mod logins_http2;
mod messages;
mod pushes;
mod repeats;
mod responses;
mod stages;
mod steps;
mod whose;

const S: fn(u64) -> Nanos = Nanos::from_secs;
const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// The constant one-way delay: a response takes twice as long.
const WAY: Nanos = Nanos::from_micros(50);
/// Maximum delay of timers.
const TIMER: Nanos = Nanos::from_millis(1);

/// Runs a scenario with the target `127.0.0.1:80` against a script; returns what the server received.
fn run(
    text: &str,
    shards: u32,
    speaks: Speaks,
    script: impl Fn(&Received) -> Vec<Reply> + 'static,
) -> (RunResult, Listener) {
    let net = network(1, |f| f.delay = (WAY, WAY));
    let plan = scenario(text, 1);
    let at = plan.destinations()[0];
    let mut server: Shard<SimIo, Listener> = listening(&net, at, 20_000, Listener::new(speaks, script));
    let result = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    let empty = Listener::new(speaks, |_| vec![]);
    (result, std::mem::replace(server.program(), empty))
}

/// What was received, in turn, if it came this long after the previous input; `first` may be anything.
fn lines<'a>(received: &[&'a Received]) -> Vec<&'a str> {
    received.iter().map(|received| received.line()).collect()
}

/// Asserts that `later` follows `earlier` by this time plus the delay of timers.
fn check_gap(earlier: Nanos, later: Nanos, time: Nanos) {
    let gap = later.since(earlier);
    assert!((time..=time + TIMER).contains(&gap), "{gap} instead of {time}");
}
