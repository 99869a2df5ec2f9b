//! The relay between the two devices: passes packets on later, twice, damaged or not at all, depending on a seed.

use std::{
    cmp::Reverse,
    collections::BinaryHeap,
    fs::File,
    io::{Read, Write},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::{Clock, Nanos, Random};

use crate::way::Way;

/// One-way delay.
const DELAY: Nanos = Nanos::from_micros(500);
/// Maximum additional delay of packets that are overtaken by others.
const MORE: Nanos = Nanos::from_millis(4);
/// Maximum packets in transit per direction; further ones are dropped, as by a router's queue.
const MOST: usize = 4096;
/// How often the end of the test is checked.
const LOOK: Nanos = Nanos::from_millis(20);

/// Packet counters for both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) lost: u64,
    pub(crate) repeated: u64,
    pub(crate) delayed: u64,
    pub(crate) damaged: u64,
    pub(crate) overflowed: u64,
}

/// One direction.
struct Lane {
    from: File,
    to: File,
    /// When it is due, its number, and the packet.
    under_way: BinaryHeap<Reverse<(Nanos, u64, Vec<u8>)>>,
    number: u64,
}

impl Lane {
    fn new(from: &File, to: &File) -> Lane {
        let [from, to] = [from, to].map(|file| file.try_clone().expect("a descriptor is free"));
        Lane { from, to, under_way: BinaryHeap::new(), number: 0 }
    }

    /// Reads all available packets.
    fn take(&mut self, way: &Way, random: &mut Random, now: Nanos, counts: &mut Counts) {
        let mut buffer = [0; 65_536];
        while let Ok(len @ 1..) = self.from.read(&mut buffer) {
            let mut chance = |percent: f64| random.below(100_000) < (percent * 1000.0) as u64;
            if chance(way.lost) {
                counts.lost += 1;
                continue;
            }
            let copies = if chance(way.repeated) { 2 } else { 1 };
            counts.repeated += copies - 1;
            for _ in 0..copies {
                self.pass_on(&buffer[..len], way, random, now, counts);
            }
        }
    }

    fn pass_on(&mut self, packet: &[u8], way: &Way, random: &mut Random, now: Nanos, counts: &mut Counts) {
        if self.under_way.len() >= MOST {
            counts.overflowed += 1;
            return;
        }
        let mut chance = |percent: f64| random.below(100_000) < (percent * 1000.0) as u64;
        let (is_damaged, is_delayed) = (chance(way.damaged), chance(way.delayed));
        let mut packet = packet.to_vec();
        if is_damaged {
            counts.damaged += 1;
            damage(&mut packet, random);
        }
        let mut due = now + DELAY;
        if is_delayed {
            counts.delayed += 1;
            due = due + Nanos(random.below(MORE.0));
        }
        self.number += 1;
        self.under_way.push(Reverse((due, self.number, packet)));
    }

    /// Passes on the packets that are due.
    fn hand_over(&mut self, now: Nanos, counts: &mut Counts) {
        while self.under_way.peek().is_some_and(|Reverse((due, ..))| *due <= now)
            && let Some(Reverse((_, _, packet))) = self.under_way.pop()
        {
            // The kernel refuses a packet with a damaged header: it is lost too.
            counts.passed += u64::from(self.to.write(&packet).is_ok());
        }
    }

    fn due(&self) -> Nanos {
        self.under_way.peek().map_or(Nanos::NEVER, |Reverse((due, ..))| *due)
    }
}

/// Flips a bit after the IP header, which the TCP checksum must detect.
fn damage(packet: &mut [u8], random: &mut Random) {
    let header = if packet[0] >> 4 == 4 { 20 } else { 40 };
    if packet.len() > header {
        let at = header as u64 + random.below((packet.len() - header) as u64);
        packet[at as usize] ^= 1 << random.below(8);
    }
}

/// Passes packets on until `is_over`.
pub(crate) fn run(near: &File, far: &File, way: &Way, seed: u64, is_over: &AtomicBool) -> Counts {
    let (clock, mut random, mut counts) = (Clock::start(), Random::new(seed), Counts::default());
    let mut lanes = [Lane::new(near, far), Lane::new(far, near)];
    while !is_over.load(Relaxed) {
        let now = clock.now();
        for lane in &mut lanes {
            lane.take(way, &mut random, now, &mut counts);
            lane.hand_over(now, &mut counts);
        }
        let wait = lanes[0].due().min(lanes[1].due()).since(clock.now()).min(LOOK);
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.0 as _ };
        // An error is a signal, and 0 is the timeout: the loop continues in either case.
        let _ = poll(&mut [near, far].map(|file| PollFd::new(file, PollFlags::IN)), Some(&wait));
    }
    counts
}
