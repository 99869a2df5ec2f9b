//! Scenarios run as they say: their steps, their populations, their stages, and the files that come with throng.

use net::{Shard, io::sim::SimIo};
use units::Nanos;

use crate::{
    listener::{Heard, Listener, Say, Speaks},
    stage::{Story, listening, network, play, scenario},
};

mod blocked;
mod files;
mod messages;
mod stages;
mod steps;

const S: fn(u64) -> Nanos = Nanos::from_secs;
const MS: fn(u64) -> Nanos = Nanos::from_millis;

/// One way through the network, always: an answer takes two of them.
const WAY: Nanos = Nanos::from_micros(50);
/// Timers come up to so much late.
const TIMER: Nanos = Nanos::from_millis(1);

/// A run of a scenario whose target is `127.0.0.1:80`, against what is scripted; the server and what it heard.
fn run(
    text: &str,
    shards: u32,
    speaks: Speaks,
    script: impl Fn(&Heard) -> Vec<Say> + 'static,
) -> (Story, Listener) {
    let net = network(1, |f| f.delay = (WAY, WAY));
    let plan = scenario(text, 1);
    let at = plan.destinations()[0];
    let mut server: Shard<SimIo, Listener> = listening(&net, at, 20_000, Listener::new(speaks, script));
    let story = play(&net, &plan, shards, &mut [&mut server], |_, _| {});
    let empty = Listener::new(speaks, |_| vec![]);
    (story, std::mem::replace(server.program(), empty))
}

/// What came in, thing by thing, where that is so long behind what came before; `first` may be anything.
fn lines<'a>(heard: &[&'a Heard]) -> Vec<&'a str> {
    heard.iter().map(|heard| heard.line()).collect()
}

/// Asserts that `later` follows `earlier` by a time, and what the timers add.
fn check_gap(earlier: Nanos, later: Nanos, time: Nanos) {
    let gap = later.since(earlier);
    assert!((time..=time + TIMER).contains(&gap), "{gap} instead of {time}");
}
