//! What merging the ticks of many agents costs, for `bench/merge`: a conductor takes a second's ticks of 1,000 agents and
//! ends the line, again and again. The ticks have come over a network: they are read from JSON. Prints CPU time as JSON,
//! in seconds.

#![allow(clippy::print_stdout, reason = "what it measured is all that it is for")]

use std::{borrow::Cow, fs};

use plan::{Environment, Flags, Plan, Role};
use run::{Conductor, Order, Update, Workers};
use samples::{
    Destination, Fault, FaultCount, Faults, Kind, Latency, Phase, Stage, Tick, TickRecord, Timing,
};
use units::Nanos;

/// Each has a worker for each population.
const AGENTS: usize = 1_000;
/// Different ones, which take turns: together they do not fit into any cache.
const DIFFERENT: usize = 100;
const ROUNDS: usize = 20;
/// Responses of a population in a tick: all agents together have 20,000,000 a second.
const RESPONSES: u64 = 10_000;
/// Connections in it that come and go.
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

/// What a second at full load measures, how often, and the median in microseconds: each response, and now and then a
/// connection.
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

/// Numbers that are different and always the same (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    /// Below 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Most of them within a factor of five of the median (a log-normal distribution), and one of a hundred ten times as long.
    fn times(&mut self, n: u64, median_us: f64, mut times: Latency) -> Latency {
        for _ in 0..n {
            // The sum of twelve is nearly normal.
            let deviation = (0..12).map(|_| self.next()).sum::<f64>() - 6.0;
            let slow = if self.next() < 0.01 { 10.0 } else { 1.0 };
            times.record(Nanos((median_us * 1e3 * (0.6 * deviation).exp() * slow) as u64));
        }
        times
    }
}

/// Of a population's worker, whose steps come after those of the populations before.
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

/// All agents' workers, which take no orders.
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

/// Time on a processor, to a few milliseconds: other programs do not count.
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
    // The first is to get warm.
    let merging: Vec<f64> = (0..=ROUNDS).map(|nth| seconds(|| second(nth)).0).skip(1).collect();
    println!(
        r#"{{"agents":{AGENTS},"merging_s":{merging:?},"reading_s_each":{},"bytes_each":{}}}"#,
        reading / DIFFERENT as f64,
        bytes / DIFFERENT
    );
}
