//! The machine against the server of [`crate::server`], over a link that loses, repeats, delays, reorders, joins and damages packets,
//! depending on a seed: bytes arrive complete, in order and once, connections end as scripted, and no state is left over.

use tcp::Why;

mod network;
mod peers;
mod program;
mod world;

use program::Plan;
use world::World;

/// Number of seeds of an ordinary run; `TCP_SEEDS` sets another number, `TCP_SEED` a single seed.
const SEEDS: u64 = 3_000;
/// Number of seeds of `cargo xtask test sim`.
const ALL_SEEDS: u64 = 100_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|n| n.parse().expect("a number"))
}

/// What occurred over all seeds: a simulation in which nothing is lost or refused tests nothing.
#[derive(Debug, Default)]
struct Seen {
    complete: u64,
    bytes: u64,
    reset_here: u64,
    reset_there: u64,
    refused: u64,
    timed_out: u64,
    retransmitted: u64,
    out_of_order: u64,
    sacked: u64,
    duplicates: u64,
    damaged: u64,
    challenges: u64,
    blocked: u64,
    kept: u64,
    cut: u64,
}

#[test]
fn bytes_arrive_and_nothing_is_left() {
    check(match number("TCP_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TCP_SEEDS").unwrap_or(SEEDS),
    });
}

#[test]
#[ignore = "takes a while: cargo xtask test sim"]
fn bytes_arrive_from_all_seeds() {
    println!("{:?}", check(0..ALL_SEEDS));
}

fn check(seeds: std::ops::Range<u64>) -> Seen {
    let is_ordinary = seeds.end - seeds.start >= SEEDS;
    let mut seen = Seen::default();
    for seed in seeds {
        let run = std::panic::catch_unwind(|| one(seed));
        let run = run.unwrap_or_else(|_| panic!("again with TCP_SEED={seed}"));
        seen.add(&run);
    }
    if is_ordinary {
        let least = [
            seen.complete,
            seen.bytes / 1000,
            seen.reset_here,
            seen.reset_there,
            seen.refused,
            seen.timed_out,
            seen.retransmitted,
            seen.out_of_order,
            seen.sacked,
            seen.duplicates,
            seen.damaged,
            seen.challenges,
            seen.blocked,
            seen.kept,
            seen.cut,
        ];
        assert!(least.iter().all(|n| *n > 100), "too little of something: {seen:?}");
    }
    seen
}

fn one(seed: u64) -> World {
    let mut world = World::new(seed);
    world.run();
    world
}

impl Seen {
    fn add(&mut self, world: &World) {
        for done in &world.done {
            match (done.plan, done.gone) {
                (Plan::Refuses, _) => self.refused += 1,
                (_, Some(Why::TimedOut)) => self.timed_out += 1,
                (Plan::ClientResets, _) => self.reset_here += 1,
                (Plan::ServerResets, Some(_)) => self.reset_there += 1,
                (Plan::ClientCloses | Plan::ServerCloses | Plan::BothClose, _) => self.complete += 1,
                _ => {}
            }
            self.bytes += done.received as u64;
        }
        let counts = world.tcp.counts();
        self.retransmitted += counts.retransmitted;
        self.out_of_order += counts.out_of_order;
        self.sacked += world.sacked();
        self.duplicates += counts.duplicates;
        self.damaged += counts.malformed + counts.wrong_checksum;
        self.challenges += counts.challenges;
        self.blocked += world.drained;
        self.kept += world.kept;
        self.cut += world.network.cut;
    }
}
