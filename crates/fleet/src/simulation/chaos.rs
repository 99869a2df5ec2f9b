//! Faults, drawn from a seed.

use units::{Nanos, Random};

use crate::coordinator::OnLost;

/// The faults of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Chaos {
    /// How many of a thousand messages are lost, and how many arrive twice.
    pub(super) lost: u64,
    pub(super) doubled: u64,
    /// Maximum delay of a message; any order is possible.
    pub(super) delay: Nanos,
    /// How many of a thousand entries are not stored, and how many acknowledgements are lost.
    pub(super) unstored: u64,
    pub(super) unheard: u64,
    pub(super) on_lost: OnLost,
    /// Events with their times.
    pub(super) events: Vec<(Nanos, Event)>,
}

/// An event that affects a process or a link, some of them for a duration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// An agent neither sends nor receives.
    Cut(usize, Nanos),
    /// An agent's process is suspended, and continues.
    Freeze(usize, Nanos),
    /// An agent's process dies, and another one starts.
    Kill(usize, Nanos),
    /// An agent's user stops it.
    Stop(usize),
    /// An agent's machine has no further capacity.
    Full(usize),
    /// The target resets all connections, including later ones.
    Reset,
    /// The broker is unreachable; stored entries are kept.
    Outage(Nanos),
    /// The broker's wall clock is set: by how much it is ahead of virtual time.
    Set(Nanos),
    /// The coordinator's process is suspended, and continues.
    Pause(Nanos),
    /// The coordinator's process dies, and another one starts.
    Restart(Nanos),
}

impl Chaos {
    pub(super) fn none() -> Chaos {
        Chaos { delay: Nanos::from_millis(2), ..Chaos::default() }
    }

    /// A broker that loses few messages, and repeats and reorders them.
    pub(super) fn carrier_only() -> Chaos {
        let delay = Nanos::from_millis(20);
        Chaos { lost: 20, doubled: 50, delay, unstored: 20, unheard: 50, ..Chaos::none() }
    }

    pub(super) fn drawn(seed: u64) -> Chaos {
        let mut random = Random::new(seed ^ 0x0063_6861_6f73);
        let mut of = |values: &[u64]| values[random.below(values.len() as u64) as usize];
        let (lost, doubled) = (of(&[0, 20, 200]), of(&[0, 50, 300]));
        let delay = Nanos::from_millis(of(&[2, 20, 300]));
        let (unstored, unheard) = (of(&[0, 100]), of(&[0, 100, 300]));
        let events = (0..of(&[0, 1, 1, 2, 3])).map(|_| {
            let at = Nanos::from_millis(1_500 + random.below(9_000));
            let agent = random.below(5) as usize;
            let longest = [2_000, 6_000, 14_000][random.below(3) as usize];
            let span = Nanos::from_millis(200 + random.below(longest));
            let event = match random.below(6) {
                0 => Event::Cut(agent, span),
                1 => Event::Freeze(agent, span),
                2 => Event::Kill(agent, span),
                3 => Event::Outage(Nanos(span.0 / 2)),
                4 => Event::Pause(span),
                _ => Event::Restart(span),
            };
            (at, event)
        });
        let events = events.collect();
        let on_lost = [OnLost::Continue, OnLost::Reassign][seed as usize / 5 % 2];
        Chaos { lost, doubled, delay, unstored, unheard, on_lost, events }
    }

    /// One in fifty agents is disconnected, suspended or killed, each at its own time; and the broker is unreachable, or the coordinator
    /// dies.
    pub(super) fn of_many(seed: u64, agents: u32) -> Chaos {
        let mut random = Random::new(seed ^ 0x6d61_6e79);
        let mut time = |from: u64, until: u64| Nanos::from_millis(from + random.below(until - from));
        let (at, span) = (time(8_000, 34_000), time(500, 6_000));
        let middle = [Event::Restart(span), Event::Outage(span)][seed as usize / 2 % 2];
        let mut events = vec![(at, middle)];
        for nth in 0..agents / 50 {
            let (at, span) = (time(8_000, 26_000), time(500, 14_000));
            // No two are the same.
            let agent = (nth * 50) as usize + seed as usize % 50;
            let event = match nth % 3 {
                0 => Event::Cut(agent, span),
                1 => Event::Freeze(agent, span),
                _ => Event::Kill(agent, span),
            };
            events.push((at, event));
        }
        let on_lost = [OnLost::Continue, OnLost::Reassign][seed as usize % 2];
        Chaos { on_lost, events, ..Chaos::carrier_only() }
    }

    /// Whether the events include an absence of an agent that a coordinator notices, and sees end.
    pub(super) fn has_absence(&self) -> bool {
        self.events.iter().any(|(_, event)| match event {
            Event::Cut(_, span) | Event::Freeze(_, span) => *span >= Nanos::from_secs(5),
            _ => false,
        })
    }

    pub(super) fn has_restart(&self) -> bool {
        self.events.iter().any(|(_, event)| matches!(event, Event::Restart(_)))
    }
}
