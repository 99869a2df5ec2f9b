//! A load that is drawn.

use units::{Nanos, Random};

/// A load of the command line.
#[derive(Clone, Debug)]
pub(super) struct Load {
    pub(super) flags: String,
    pub(super) timeout_ms: u64,
    pub(super) shards: u32,
    pub(super) streams: u64,
    /// Octets that each request has.
    pub(super) body: usize,
    /// For how long responses are awaited when the load has ended, if not for as long as any may take.
    pub(super) patience: Option<Nanos>,
    /// Connections stay, and none is dialled for a request.
    pub(super) is_held: bool,
}

/// Of the protocol's, beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Habit {
    /// Whether it sends messages, instead of requests.
    pub(super) is_echo: bool,
    /// Whether its requests may have bodies of any length.
    pub(super) has_bodies: bool,
    pub(super) has_streams: bool,
    /// What all of its loads have.
    pub(super) flags: &'static str,
}

impl Load {
    /// All of its flags.
    pub(super) fn all_flags(&self) -> String {
        match self.body {
            0 => self.flags.clone(),
            body => format!("{} method=POST body={}", self.flags, "x".repeat(body)),
        }
    }

    pub(super) fn draw(random: &mut Random, habit: Habit) -> Load {
        let timeout_ms = [300, 500, 700, 2_500][random.below(4) as usize];
        let duration = random.between(600, 2_500);
        let connections = random.between(2, 12);
        let mut flags = format!("{} timeout={timeout_ms}ms duration={duration}ms ", habit.flags);
        let model = random.below(7);
        let pause = match (habit.is_echo, random.below(3)) {
            (false, 0) => "think=0s",
            (false, 1) => "think=20ms..200ms",
            (false, _) => "think=300ms..1500ms",
            (true, 0) => "ping=0",
            (true, _) => "ping=100ms",
        };
        let rate = random.between(20, 200);
        let held = format!("connections={connections} ramp={}ms", random.below(2) * 300);
        flags += &match model {
            0..=2 => format!("{held} {pause}"),
            3 => format!("{held} rate={rate}/s"),
            4 => format!("{held} requests={rate} {pause}"),
            5 => format!("{held} requests={rate} rate={rate}/s"),
            _ if habit.is_echo => format!("{held} {pause}"),
            _ => format!("arrive={rate}/s total={} calls={}", 2 * rate, 1 + random.below(4)),
        };
        let is_held = model < 6 || habit.is_echo;
        let reconnect = ["", "", " reconnect=never", " reconnect=20ms..100ms"][random.below(4) as usize];
        flags += if is_held { reconnect } else { "" };
        // With a pause between requests there is one at a time.
        let has_several = habit.has_streams && (flags.contains("think=0s") || !flags.contains("think="));
        let streams = if has_several { 1 + random.below(4) } else { 1 };
        if has_several {
            flags += &format!(" streams={streams}");
        }
        let body = [0, 0, 0, 1, 300, 5_000, 20_000, 50_000][random.below(8) as usize];
        let body = if habit.has_bodies { body } else { 0 };
        let shards = 1 + random.below(2) as u32;
        let patience = Nanos::from_millis(random.below(timeout_ms));
        let patience = (random.below(6) == 0).then_some(patience);
        Load { flags, timeout_ms, shards, streams, body, patience, is_held }
    }
}
