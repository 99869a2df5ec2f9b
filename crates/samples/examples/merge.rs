//! What merging the ticks of many agents costs, for `bench/merge`: a second's ticks of 1,000 agents, added up as who leads
//! them would, again and again. Prints seconds of each round as JSON.

#![allow(clippy::print_stdout, reason = "what it measured is all that it is for")]

use samples::{Destination, Fault, Kind, Latency, Stage, Tick, TickRecord, Timing};
use units::{Clock, Nanos};

/// Agents whose ticks are added up in each round.
const AGENTS: usize = 1_000;
/// Different ones, which take turns: together they do not fit into any cache.
const DIFFERENT: usize = 100;
const ROUNDS: usize = 20;
/// Times in each distribution: of 1,000,000 requests a second, all agents together.
const TIMES: u64 = 1_000;

/// Numbers that are different and always the same (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 100 µs to 100 ms, each factor of two as often as the next.
    fn times(&mut self, n: u64, mut times: Latency) -> Latency {
        for _ in 0..n {
            let octave = self.next() % 10;
            times.record(Nanos((100_000 << octave) + self.next() % (100_000 << octave)));
        }
        times
    }
}

/// Of an agent, or of one of its populations: something in everything that merges.
fn tick(random: &mut Random) -> Tick {
    let mut tick = Tick { open: 1_000, open_ns: 1_000_000_000_000, ..Tick::default() };
    (tick.counts.sent, tick.counts.answered) = (TIMES, TIMES);
    (0..20).for_each(|n| tick.count_status(200 + n));
    Kind::ALL.iter().for_each(|kind| tick.faults.count(Fault::target(Stage::Exchange, *kind)));
    for timing in Timing::ALL {
        tick[*timing] = random.times(TIMES, Latency::default());
    }
    tick.steps = (0..4).map(|_| random.times(TIMES / 4, Latency::default())).collect();
    let destination = |latency| Destination { sent: TIMES, latency, ..Destination::default() };
    tick.destinations = (0..16).map(|_| destination(random.times(TIMES / 16, Latency::coarse()))).collect();
    let probe = tick.probe.get_or_insert_default();
    for times in [&mut probe.kept, &mut probe.fresh, &mut probe.held, &mut probe.connect] {
        *times = random.times(100, Latency::default());
    }
    tick
}

fn seconds(clock: &Clock, what: impl FnOnce()) -> f64 {
    let from = clock.now();
    what();
    clock.now().since(from).secs_f64()
}

fn main() {
    let (clock, mut random) = (Clock::start(), Random(88_172_645_463_325_252));
    let agent = |_| {
        let populations = (0..2).map(|_| tick(&mut random)).collect();
        Tick { populations, ..tick(&mut random) }
    };
    let ticks: Vec<Tick> = (0..DIFFERENT).map(agent).collect();
    let mut line = Tick::default();
    let mut merge = || {
        line.clear();
        (0..AGENTS).for_each(|n| line.merge(&ticks[n % DIFFERENT]));
        assert_eq!(line[Timing::Latency].count(), TIMES * AGENTS as u64);
    };
    // What it has to allocate, and a round to get warm.
    merge();
    let merging: Vec<f64> = (0..ROUNDS).map(|_| seconds(&clock, &mut merge)).collect();
    let texts: Vec<String> = ticks
        .iter()
        .map(|tick| TickRecord { tick: std::borrow::Cow::Borrowed(tick), ..TickRecord::default() }.to_json())
        .collect();
    let reading = seconds(&clock, || {
        texts.iter().for_each(|text| drop(TickRecord::from_json(text).expect("it was just written")));
    });
    let bytes = texts.iter().map(String::len).sum::<usize>() / DIFFERENT;
    println!(
        r#"{{"agents":{AGENTS},"merging_s":{merging:?},"reading_s_each":{},"bytes_each":{bytes}}}"#,
        reading / DIFFERENT as f64
    );
}
