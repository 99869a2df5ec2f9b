//! The cost of merging the ticks of many agents, for `bench/merge`. A conductor repeatedly takes a second's ticks of 1,000 agents and
//! ends the line. The ticks are read from JSON, as received over a network. Prints CPU time in seconds, as JSON.

#![allow(clippy::print_stdout, reason = "what it measured is all that it is for")]

use std::{borrow::Cow, fs};

use plan::{Environment, Flags, Plan, Role};
use run::{Conductor, Order, Update, Workers};
use samples::{
    Destination, Fault, FaultCount, Faults, Kind, Latency, Phase, Stage, Tick, TickRecord, Timing,
};
use units::Nanos;

/// Number of agents, with one worker for each population.
const AGENTS: usize = 1_000;
/// Number of different ticks, used in turn; together they exceed any cache.
const DIFFERENT: usize = 100;
const ROUNDS: usize = 20;
/// Responses of a population per tick; all agents together have 20,000,000 per second.
const RESPONSES: u64 = 10_000;
/// Connections per tick that come and go.
const CONNECTIONS: u64 = 100;
const DESTINATIONS: u64 = 16;
const STEPS: u64 = 2;
const SECOND: Nanos = Nanos::from_secs(1);

const SCENARIO: &str = r#"
duration = "1h"

[[population]]
name = "pages"
target = "http://127.0.0.{1..16}:80/"
connections = "1m"

[[population]]
name = "messages"
target = "ws://127.0.0.{1..16}:80/"
connections = "1m"
"#;

type Times = (Timing, u64, f64);

/// The times measured in a second at full load, with their number and their median in microseconds: for each response, and for some
/// connections.
const HTTP: [Times; 5] = [
    (Timing::Latency, RESPONSES, 2_000.0),
    (Timing::FirstByte, RESPONSES, 1_500.0),
    (Timing::Lag, RESPONSES, 20.0),
    (Timing::Connect, CONNECTIONS, 300.0),
    (Timing::Silence, CONNECTIONS, 1e6),
];
const WEBSOCKET: [Times; 5] = [
    (Timing::Latency, RESPONSES, 500.0),
    (Timing::Handshake, CONNECTIONS, 1_000.0),
    (Timing::Lag, RESPONSES, 20.0),
    (Timing::Connect, CONNECTIONS, 300.0),
    (Timing::Silence, CONNECTIONS, 1e6),
];

/// Deterministic pseudo-random numbers (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    /// A number from 0 to below 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Most times are within a factor of five of the median (log-normal distribution), one in a hundred is ten times as long.
    fn times(&mut self, n: u64, median_us: f64, mut times: Latency) -> Latency {
        for _ in 0..n {
            // The sum of twelve uniform numbers is nearly normal.
            let deviation = (0..12).map(|_| self.next()).sum::<f64>() - 6.0;
            let slow = if self.next() < 0.01 { 10.0 } else { 1.0 };
            times.record(Nanos((median_us * 1e3 * (0.6 * deviation).exp() * slow) as u64));
        }
        times
    }
}

/// A tick of a population's worker. Its steps follow those of earlier populations.
fn tick(random: &mut Random, nth: usize, measured: &[Times]) -> Tick {
    let mut tick = Tick { open: 1_000, phase: Phase::Hold, ..Tick::default() };
    (tick.counts.sent, tick.counts.answered) = (RESPONSES, RESPONSES);
    (tick.counts.dropped, tick.counts.redialled) = (CONNECTIONS, CONNECTIONS);
    for (timing, n, median_us) in measured {
        tick[*timing] = random.times(*n, *median_us, Latency::default());
    }
    tick.steps.resize_with(nth * STEPS as usize, Latency::default);
    tick.steps.extend((0..STEPS).map(|_| random.times(RESPONSES / STEPS, 2_000.0, Latency::default())));
    let each = RESPONSES / DESTINATIONS;
    let lost = |n| Faults::from(vec![FaultCount::new(Fault::target(Stage::Exchange, Kind::Reset), n)]);
    tick.faults = lost(CONNECTIONS);
    let destination = |_| Destination {
        sent: each,
        answered: each,
        faults: lost(CONNECTIONS / DESTINATIONS),
        latency: random.times(each, 2_000.0, Latency::coarse()),
        ..Destination::default()
    };
    tick.destinations = (0..DESTINATIONS).map(destination).collect();
    (0..RESPONSES).for_each(|_| tick.count_status(200));
    tick
}

/// The workers of all agents; they ignore orders.
struct Agents(Vec<Role>);

impl Workers for Agents {
    fn role(&self) -> Vec<Role> {
        self.0.clone()
    }

    fn notice(&self) -> Nanos {
        SECOND
    }

    fn period(&self) -> Nanos {
        SECOND
    }

    fn now(&self) -> Nanos {
        Nanos::ZERO
    }

    fn order(&mut self, _: Order) {}

    fn next(&mut self, _: Nanos) -> Update<'_> {
        Update::Nothing
    }
}

fn plan() -> Plan {
    let around = Environment { cores: 1, seed: 1, resolve: &|_| Err("there are no names".to_owned()) };
    let no_file = |_: &str| Err("there are no files".to_owned());
    plan::scenario::read("merge.toml", SCENARIO, &Flags::default(), &around, &no_file).expect("it is right")
}

/// CPU time, with a resolution of a few milliseconds; other programs do not count.
fn seconds<T>(what: impl FnOnce() -> T) -> (f64, T) {
    let now = || -> f64 {
        let text = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
        text.split(' ').next().and_then(|ns| ns.parse().ok()).expect("it begins with nanoseconds")
    };
    let from = now();
    let done = what();
    ((now() - from) / 1e9, done)
}

fn main() {
    let (mut random, plan) = (Random(88_172_645_463_325_252), plan());
    let json = |tick| TickRecord { tick: Cow::Owned(tick), ..TickRecord::default() }.to_json();
    let agent = |_| [tick(&mut random, 0, &HTTP), tick(&mut random, 1, &WEBSOCKET)].map(json);
    let texts: Vec<_> = (0..DIFFERENT).map(agent).collect();
    let read = |text: &String| TickRecord::from_json(text).expect("it was just written").tick.into_owned();
    let (reading, mut agents) =
        seconds(|| texts.iter().map(|texts| texts.each_ref().map(read)).collect::<Vec<_>>());
    let bytes = texts.iter().flatten().map(String::len).sum::<usize>();

    let workers = Agents((0..AGENTS).flat_map(|_| [0, 1]).map(Role::Population).collect());
    let mut conductor = Conductor::new(&plan, &workers, Nanos::ZERO, Nanos::ZERO);
    let mut second = |nth: usize| {
        let (from, until) = (Nanos(nth as u64 * SECOND.0), Nanos((nth as u64 + 1) * SECOND.0));
        for worker in 0..2 * AGENTS {
            let tick = &mut agents[worker / 2 % DIFFERENT][worker % 2];
            (tick.from, tick.until) = (from, until);
            conductor.handle_tick(worker as u32, tick);
        }
        let line = conductor.poll_line(until).expect("all have reported");
        assert_eq!(line[Timing::Latency].count(), 2 * RESPONSES * AGENTS as u64);
    };
    // The first round warms up.
    let merging: Vec<f64> = (0..=ROUNDS).map(|nth| seconds(|| second(nth)).0).skip(1).collect();
    println!(
        r#"{{"agents":{AGENTS},"merging_s":{merging:?},"reading_s_each":{},"bytes_each":{}}}"#,
        reading / DIFFERENT as f64,
        bytes / DIFFERENT
    );
}
