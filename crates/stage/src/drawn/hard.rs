//! What only seeds from [`HARD`] on draw besides: stalls of throng, bodies of megabytes, and servers that take their time, flood the
//! client, time out what is idle, or number their messages anyhow.

use engine::Job;
use net::io::sim::Faults;
use samples::Tick;
use units::{Nanos, Random};

use super::{
    books::{SLACK, Times},
    http2,
    load::{Carries, Habit, Load},
    server::{LATE, Palette, Step, Turn},
};

/// The first of these seeds.
pub const HARD: u64 = 1 << 32;

/// What else is drawn comes from a stream of its own, and only in half of the seeds: the others play as they did when they were found.
const SUCCESSION: u64 = 0x51_0e52 << 32;

/// What is drawn for the run, beside what a server does at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Hardships {
    pub(super) is_hard: bool,
    /// The server takes its time for some of the requests, so that there are stalls within one.
    pub(super) is_slow: bool,
    /// No client shard runs between each two of these times.
    pub(super) stalls: Vec<(Nanos, Nanos)>,
}

/// How many requests of a hundred meet one of the server's.
const PERCENT: u64 = 4;
/// The least of a hundred that a server may treat otherwise than at once, if it takes its time.
const SLOW_PERCENT: u64 = 40;
/// With one of [`PIECES`] pieces of a flood: as many frames as fill the widest window of the network with their replies, and what the
/// server's end keeps, and some thousands more.
const PIECES: u64 = 40;
const PINGS: usize = 700;
const SETTINGS: usize = 1_200;
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0";
const EMPTY_SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";

impl Hardships {
    pub(super) fn draw(seed: u64, random: &mut Random, load: &mut Load, habit: Habit) -> Hardships {
        if habit.carries == Carries::Requests && load.tables.is_none() && random.below(4) == 0 {
            load.body = 1_100_000 + random.below(1_500_000) as usize;
        }
        // One in the drain, or longer, would be as a thread that never ends.
        let end = if load.tables.is_some() { Nanos::ZERO } else { load.duration };
        let (mut stalls, mut at) = (Vec::new(), Nanos::ZERO);
        for _ in 0..random.below(3) {
            at = at + Nanos::from_millis(random.between(20, 400));
            let until = at + Nanos::from_millis(random.between(100, 900));
            if until < end {
                stalls.push((at, until));
            }
            at = until;
        }
        let mut own = Random::new(seed ^ SUCCESSION);
        let is_slow = own.below(2) == 0;
        for _ in 0..if is_slow { 1 + own.below(2) } else { 0 } {
            at = at + Nanos::from_millis(own.between(5, 60));
            let until = at + Nanos::from_millis(own.between(200, 500));
            if until < end {
                stalls.push((at, until));
            }
            at = until;
        }
        Hardships { is_hard: true, is_slow, stalls }
    }

    /// Lets the server take its time for some of the requests, where it does.
    pub(super) fn slow_down(&self, palette: &mut Palette) {
        if self.is_slow {
            palette.ways.push(LATE);
            palette.wrong_percent = palette.wrong_percent.max(SLOW_PERCENT);
        }
    }

    /// The longest that is not the server's doing of what is measured of a request; none where the client, the network or the listener
    /// may take longer.
    pub(super) fn slowest(&self, load: &Load, faults: &Faults, is_prompt: bool) -> Option<Nanos> {
        let is_simple =
            self.is_hard && load.streams == 1 && load.tables.is_none() && is_prompt && faults.loss == 0;
        // What is due at a time is late by a stall, which is measured too.
        let has = |flag: &&str| load.flags.contains(flag);
        let is_closed = ["think=0s", "ping=0"].iter().any(has) && !["probe=", "requests="].iter().any(has);
        let windows = (load.body / faults.window.min(http2::WINDOW) + 1) as u64;
        // What a stall is taken to be begins with the time at which a thread wanted to be called: it looks for orders that often.
        let slack = Nanos(SLACK.0 + self.stalls.len() as u64 * Job::PERIOD.0 / 2);
        (is_simple && is_closed).then(|| Nanos(2 * faults.delay.1.0 * windows) + slack)
    }

    /// For how long the client stands still in all.
    pub(super) fn stalled(&self) -> Nanos {
        Nanos(self.stalls.iter().map(|(from, until)| until.since(*from).0).sum())
    }
}

/// When the client stands still: its server knows what it has to take off what it measures.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    stalls: Vec<(Nanos, Nanos)>,
    /// Of a response, the least and the most.
    delay: (Nanos, Nanos),
}

impl Standstill {
    /// None is known where segments may be lost.
    pub(super) fn new(hard: &Hardships, faults: &Faults) -> Standstill {
        let stalls = if faults.loss == 0 { hard.stalls.clone() } else { Vec::new() };
        Standstill { stalls, delay: faults.delay }
    }

    /// The least that the client takes off a request that came at `asked`, and had its response at `done`, if that surely arrives in a
    /// stall and before the timeout. It is read when the stall ends, and of no stall until then is any time the server's.
    pub(super) fn taken_off(&self, asked: Nanos, done: Nanos, times: Times) -> Option<Nanos> {
        let (first, last) = (done + self.delay.0, done + self.delay.1);
        let nth = self.stalls.iter().position(|(from, until)| *from <= first && last < *until)?;
        let (_, read) = self.stalls[nth];
        let of_it = || self.stalls.iter().filter(|(_, until)| (asked..=read).contains(until));
        let stalled = Nanos(of_it().map(|(from, until)| until.since(asked.max(*from)).0).sum());
        // What a stall is taken to be begins with the time at which a thread wanted to be called: it looks for orders that often.
        let unknown = |stalls: usize| Nanos(stalls as u64 * Job::PERIOD.0 / 2);
        let rest = Nanos(read.since(asked).0 - stalled.0) + unknown(nth + 1);
        let is_in_time = rest + self.delay.1 + times.upload + SLACK < times.timeout;
        let taken_off = stalled.since(unknown(of_it().count()));
        (is_in_time && taken_off >= Tick::STALL).then_some(taken_off)
    }
}

impl Turn<'_> {
    /// Whether this request meets one.
    pub(super) fn meets_hardship(&mut self) -> bool {
        self.is_hard && self.random.below(100) < PERCENT
    }

    /// Asks for more replies than a client may have waiting, and reads none of them (CVE-2019-9512, CVE-2019-9515): the client is to end
    /// the connection.
    pub(super) fn flood(&mut self) {
        let piece = if self.coin() { PING.repeat(PINGS) } else { EMPTY_SETTINGS.repeat(SETTINGS) };
        self.plan(Nanos::ZERO, Step::Deafen);
        for nth in 0..PIECES {
            self.send(Nanos::from_millis(nth), piece.clone());
        }
        let most = self.times.most.0.saturating_mul(2).saturating_add(SLACK.0);
        if most < self.times.timeout.0 * 10 {
            // In windows of the network.
            let at = Nanos::from_millis(PIECES) + Nanos(4 * most);
            self.plan(at, Step::Discard);
            // A client that ends what it cannot send on does so when that can go out.
            self.plan(at + Nanos(most), Step::Bear);
        }
    }

    /// Numbers that no sequence has.
    pub(super) fn numbers(&mut self) -> Vec<u8> {
        let number = |random: &mut Random| {
            [0, 7, 1 << 32, u64::MAX - 1, random.below(u64::MAX)][random.below(5) as usize]
        };
        let texts = (0..3).map(|_| format!("n={}", number(self.random)));
        texts.flat_map(|text| [&[0x81, text.len() as u8], text.as_bytes()].concat()).collect()
    }
}
