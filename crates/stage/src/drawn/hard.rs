//! Hardships, drawn only for seeds from [`HARD`] on: stalls of throng, bodies of megabytes, and servers that are slow, flood the
//! client, time out idle connections, or send arbitrary sequence numbers.

use engine::Job;
use net::io::sim::Faults;
use units::{Nanos, Random};

use super::{
    books::{SLACK, Standstill},
    http2,
    load::{Carries, Habit, Load},
    server::{LATE, Palette, Step, Turn},
};

/// The first of the hard seeds.
pub const HARD: u64 = 1 << 32;

/// Further stalls are drawn from a separate random stream, and only for half of the seeds: the others play as they did when they
/// were found.
const SUCCESSION: u64 = 0x51_0e52 << 32;

/// The hardships of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Hardships {
    pub(super) is_hard: bool,
    /// The server delays some responses, so that several stalls fall into one request.
    pub(super) is_slow: bool,
    /// Intervals in which no client shard runs.
    pub(super) stalls: Vec<(Nanos, Nanos)>,
}

/// Percentage of requests that meet a hardship of the server.
const PERCENT: u64 = 4;
/// Minimum percentage of requests without an immediate response, if the server is slow.
const SLOW_PERCENT: u64 = 40;
/// A flood has [`PIECES`] pieces, each with this many frames: enough for the replies to fill the widest window of the network and
/// the buffers of the server's end, plus some thousands.
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
        // A stall in the drain, or a longer one, would look like a thread that never ends.
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

    /// Lets a slow server delay some responses.
    pub(super) fn slow_down(&self, palette: &mut Palette) {
        if self.is_slow {
            palette.ways.push(LATE);
            palette.wrong_percent = palette.wrong_percent.max(SLOW_PERCENT);
        }
    }

    /// The most that a measured latency may exceed the server's time; `None` if the client, the network or the listener may take
    /// longer.
    pub(super) fn slowest(&self, load: &Load, faults: &Faults, is_prompt: bool) -> Option<Nanos> {
        let is_simple =
            self.is_hard && load.streams == 1 && load.tables.is_none() && is_prompt && faults.loss == 0;
        // Requests due at fixed times are late by a stall, which is measured, too.
        let has = |flag: &&str| load.flags.contains(flag);
        let is_closed = ["think=0s", "ping=0"].iter().any(has) && !["probe=", "requests="].iter().any(has);
        let windows = (load.body / faults.window.min(http2::WINDOW) + 1) as u64;
        // A stall counts from when the thread wanted its next turn: it checks for orders this often.
        let slack = Nanos(SLACK.0 + self.stalls.len() as u64 * Job::PERIOD.0 / 2);
        (is_simple && is_closed).then(|| Nanos(2 * faults.delay.1.0 * windows) + slack)
    }

    /// When the client stands still; no stalls if segments may be lost: nothing is certain then.
    pub(super) fn standstill(&self, faults: &Faults) -> Standstill {
        let stalls = if faults.loss == 0 { self.stalls.clone() } else { Vec::new() };
        Standstill { stalls, delay: faults.delay }
    }

    /// Total time in which the client stands still.
    pub(super) fn stalled(&self) -> Nanos {
        Nanos(self.stalls.iter().map(|(from, until)| until.since(*from).0).sum())
    }
}

impl Turn<'_> {
    /// Whether this request meets a hardship.
    pub(super) fn meets_hardship(&mut self) -> bool {
        self.is_hard && self.random.below(100) < PERCENT
    }

    /// Causes more replies than a client may have waiting, and reads none of them (CVE-2019-9512, CVE-2019-9515): the client must
    /// end the connection.
    pub(super) fn flood(&mut self) {
        let piece = if self.coin() { PING.repeat(PINGS) } else { EMPTY_SETTINGS.repeat(SETTINGS) };
        self.plan(Nanos::ZERO, Step::Deafen);
        for nth in 0..PIECES {
            self.send(Nanos::from_millis(nth), piece.clone());
        }
        let most = self.times.most.0.saturating_mul(2).saturating_add(SLACK.0);
        if most < self.times.timeout.0 * 10 {
            // Windows of the network.
            let at = Nanos::from_millis(PIECES) + Nanos(4 * most);
            self.plan(at, Step::Discard);
            // A client that ends a blocked connection does so once that can be sent.
            self.plan(at + Nanos(most), Step::Bear);
        }
    }

    /// Messages with numbers that no sequence has.
    pub(super) fn numbers(&mut self) -> Vec<u8> {
        let number = |random: &mut Random| {
            [0, 7, 1 << 32, u64::MAX - 1, random.below(u64::MAX)][random.below(5) as usize]
        };
        let texts = (0..3).map(|_| format!("n={}", number(self.random)));
        texts.flat_map(|text| [&[0x81, text.len() as u8], text.as_bytes()].concat()).collect()
    }
}
